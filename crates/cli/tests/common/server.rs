//! A server for a disk over NBD.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;

use super::{IOSCHED, PATIENCE};

/// A server with the working directory `here`. It listens on the socket `s`, and its control socket
/// is `c`.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) here: PathBuf,
    /// Messages up to the time when the server was ready, if the test waited for this.
    pub(crate) messages: String,
    output: Mutex<mpsc::Receiver<String>>,
}

impl Server {
    pub(crate) fn start(here: &Path, args: &[&str]) -> Self {
        Self::start_by(Command::new(IOSCHED), here, args)
    }

    /// Starts a server with a command whose last argument is the program.
    pub(crate) fn start_by(mut command: Command, here: &Path, args: &[&str]) -> Self {
        command.current_dir(here).arg("serve").args(args).args(["--unix", "s", "--control", "c"]);
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, output) = mpsc::channel();
        thread::spawn(move || errors.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { child, here: here.to_owned(), messages: String::new(), output: Mutex::new(output) }
    }

    /// Waits until the server is ready. Returns its messages.
    pub(crate) fn ready(&self) -> String {
        let mut output = String::new();
        while !output.contains("control: ") {
            output +=
                &self.output.lock().unwrap().recv_timeout(PATIENCE).unwrap_or_else(|error| panic!("{error}: {output}"));
            output.push('\n');
        }
        output
    }

    pub(crate) fn serving(here: &Path, args: &[&str]) -> Self {
        Self::start(here, args).served()
    }

    /// Waits until the server is ready.
    pub(crate) fn served(mut self) -> Self {
        self.messages = self.ready();
        self
    }

    /// Returns the port of the network socket.
    #[track_caller]
    pub(crate) fn port(&self) -> u16 {
        let place = self.messages.lines().find_map(|line| line.strip_prefix("nbd://"));
        place.and_then(|place| place.rsplit_once(':')).expect("a port").1.parse().unwrap()
    }

    /// Returns the address and port of the metrics.
    #[track_caller]
    pub(crate) fn metrics(&self) -> String {
        let place = self.messages.lines().find_map(|line| line.strip_prefix("metrics: http://"));
        place.and_then(|place| place.strip_suffix("/metrics")).expect("metrics").to_owned()
    }

    /// Waits for a message that contains `part`.
    #[track_caller]
    pub(crate) fn says(&self, part: &str) {
        let mut output = String::new();
        while !output.contains(part) {
            let next = self.output.lock().unwrap().recv_timeout(PATIENCE);
            output += &next.unwrap_or_else(|error| panic!("no message contains {part:?} ({error}): {output}"));
            output.push('\n');
        }
    }

    /// Closes the reading end of the messages.
    pub(crate) fn close_messages(&self) {
        *self.output.lock().unwrap() = mpsc::channel().1;
    }

    pub(crate) fn stop(mut self) -> Option<i32> {
        let kill = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        self.child.wait().unwrap().code()
    }

    /// Returns the output of a client. Returns `None` if the client is not installed.
    #[track_caller]
    pub(crate) fn client(&self, program: &str, args: &[&str]) -> Option<String> {
        super::output(Command::new(program).current_dir(&self.here).args(args))
    }

    /// Runs fio with random writes and verification.
    #[track_caller]
    pub(crate) fn fio_verifies(&self, name: &str, depth: u32, size: &str, seed: u64) -> Option<String> {
        let mut fio = Command::new("fio");
        fio.current_dir(&self.here).args(["--ioengine=nbd", "--uri=nbd+unix:///?socket=s"]);
        super::output(fio.args(super::verified_writes(name, depth, size, seed)))
    }

    /// Returns a connection after its handshake, with simple replies.
    pub(crate) fn connect(&self) -> UnixStream {
        let mut socket = UnixStream::connect(self.here.join("s")).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.read_exact(&mut [0; 18]).unwrap();
        socket.write_all(&[0, 0, 0, 3]).unwrap();
        socket.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        socket.read_exact(&mut [0; 10]).unwrap();
        socket
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Sends SIGKILL in case the test has failed. Otherwise the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
