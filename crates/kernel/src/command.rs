//! Runs and times external commands, such as other benchmarks.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// Largest size of each output that is kept, bytes. Further output is read and discarded.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// Interval at which the interrupt flag is checked.
const LOOK: Duration = Duration::from_millis(50);
/// Time for a command to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

/// Result of a finished command.
#[derive(Debug)]
pub struct Finished {
    /// Duration from start to end, ns.
    pub wall_ns: u64,
    /// Exit status.
    pub status: ExitStatus,
    /// Standard output.
    pub output: String,
    /// Standard error.
    pub errors: String,
}

/// Runs `command` to its end, without input and in its own process group. If `interrupt` becomes
/// true, sends SIGTERM to the group. If the command has not ended 5 s later, sends SIGKILL. Returns
/// `None` after an interrupt.
///
/// # Errors
/// The command cannot be started.
pub fn run(mut command: Command, interrupt: &AtomicBool) -> io::Result<Option<Finished>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let (sender, ended) = channel();
    let waiter = thread::spawn(move || {
        let status = child.wait();
        // Sending fails only if the receiver has already returned an error.
        let _ = sender.send((status, begun.elapsed()));
        child
    });
    let mut interrupted_at: Option<Instant> = None;
    let (status, wall) = loop {
        match ended.recv_timeout(LOOK) {
            Ok((status, wall)) => break (status?, wall),
            Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::BrokenPipe.into()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        match interrupted_at {
            None if interrupt.load(Ordering::Relaxed) => {
                interrupted_at = Some(Instant::now());
                signal(group, Signal::TERM);
            }
            Some(since) if since.elapsed() > PATIENCE => signal(group, Signal::KILL),
            _ => {}
        }
    };
    drop::<Option<Child>>(waiter.join().ok());
    // Processes that the command left running keep its output open and would disturb the next run.
    signal(group, Signal::KILL);
    let [output, errors] = [output, errors].map(|reader| reader.join().unwrap_or_default());
    let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
    Ok(interrupted_at.is_none().then_some(Finished { wall_ns, status, output, errors }))
}

/// Sends a signal to a process group. An error means that the group no longer exists, which is the
/// goal.
fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// Reads to the end, so that the command never blocks on a full pipe.
fn reader(source: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let Some(mut source) = source else { return String::new() };
        let mut output = Vec::new();
        // An error only loses the end of the output.
        let _ = (&mut source).take(OUTPUT_BYTES_MAX).read_to_end(&mut output);
        let _ = io::copy(&mut source, &mut io::sink());
        String::from_utf8_lossy(&output).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn output_errors_and_status_are_separate() {
        let never = AtomicBool::new(false);
        let finished = run(shell("echo out; echo err >&2; exit 3"), &never).unwrap().unwrap();
        assert_eq!((finished.output.as_str(), finished.errors.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.status.code(), Some(3));
        assert!(finished.wall_ns > 0);
        assert!(run(Command::new("/no/such/program"), &never).is_err());
    }

    #[test]
    fn large_output_does_not_block_the_command() {
        let finished = run(shell("yes | head -c 3000000"), &AtomicBool::new(false)).unwrap().unwrap();
        assert_eq!(finished.output.len(), 3_000_000);
    }

    #[test]
    fn interrupt_ends_the_whole_process_group() {
        // After a kill, the shell's child cannot write the file.
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("late");
        let script = format!("(sleep 2; touch {}) & wait", file.display());
        assert!(run(shell(&script), &AtomicBool::new(true)).unwrap().is_none());
        thread::sleep(Duration::from_millis(2500));
        assert!(!file.exists());
    }

    #[test]
    fn background_processes_of_a_command_are_ended() {
        // The background process keeps the output open.
        let finished = run(shell("sleep 3600 & echo done"), &AtomicBool::new(false)).unwrap().unwrap();
        assert_eq!(finished.output, "done\n");
    }
}
