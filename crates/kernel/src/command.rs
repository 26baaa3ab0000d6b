//! Commands of others, run and timed: benchmarks that are not ours.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// What is kept of each output; what comes beyond is read and forgotten.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// How often an interrupt is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// What a command that is to end has time for.
const PATIENCE: Duration = Duration::from_secs(5);

/// A command that has run.
#[derive(Debug)]
pub struct Finished {
    /// From its start to its end, ns.
    pub wall_ns: u64,
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed to its standard output.
    pub output: String,
    /// What it printed to its standard error.
    pub errors: String,
}

/// Runs `command` to its end, without input, in a process group of its own. `None` if `interrupt` became true: then the
/// whole group was told to end, and killed 5 s later if it had not.
///
/// # Errors
/// It cannot be started.
pub fn run(mut command: Command, interrupt: &AtomicBool) -> io::Result<Option<Finished>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let group = Pid::from_child(&child);
    let (output, errors) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let (sender, ended) = channel();
    let waiter = thread::spawn(move || {
        let status = child.wait();
        // Nobody listens any more after an interrupt.
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
    // What it left running holds its output open, and would disturb the next run.
    signal(group, Signal::KILL);
    let [output, errors] = [output, errors].map(|reader| reader.join().unwrap_or_default());
    let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
    Ok(interrupted_at.is_none().then_some(Finished { wall_ns, status, output, errors }))
}

/// That there is none any more is as well.
fn signal(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// Reads to the end, so that the command never waits for us.
fn reader(source: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let Some(mut source) = source else { return String::new() };
        let mut kept = Vec::new();
        // What is lost by an error is the end of what it printed.
        let _ = (&mut source).take(OUTPUT_BYTES_MAX).read_to_end(&mut kept);
        let _ = io::copy(&mut source, &mut io::sink());
        String::from_utf8_lossy(&kept).into_owned()
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
    fn output_and_status_are_kept_apart() {
        let never = AtomicBool::new(false);
        let finished = run(shell("echo out; echo err >&2; exit 3"), &never).unwrap().unwrap();
        assert_eq!((finished.output.as_str(), finished.errors.as_str()), ("out\n", "err\n"));
        assert_eq!(finished.status.code(), Some(3));
        assert!(finished.wall_ns > 0);
        assert!(run(Command::new("/no/such/program"), &never).is_err());
    }

    #[test]
    fn much_output_does_not_hold_it_up() {
        let finished = run(shell("yes | head -c 3000000"), &AtomicBool::new(false)).unwrap().unwrap();
        assert_eq!(finished.output.len(), 3_000_000);
    }

    #[test]
    fn an_interrupt_ends_the_whole_group() {
        // Killed, the shell's child cannot write the file.
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("late");
        let script = format!("(sleep 2; touch {}) & wait", file.display());
        assert!(run(shell(&script), &AtomicBool::new(true)).unwrap().is_none());
        thread::sleep(Duration::from_millis(2500));
        assert!(!file.exists());
    }

    #[test]
    fn processes_left_running_are_ended() {
        // It holds the output open.
        let finished = run(shell("sleep 3600 & echo done"), &AtomicBool::new(false)).unwrap().unwrap();
        assert_eq!(finished.output, "done\n");
    }
}
