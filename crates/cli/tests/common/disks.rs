//! Disks of the kernel for tests with real devices: fast disks in memory, and a disk that executes
//! one command at a time.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Loop, PATIENCE, answer, available, command_in, directory, image};

/// Runs the command with its state in `here/state`. Asserts that the exit code is `code`.
#[track_caller]
pub(crate) fn iosched(here: &Path, args: &[&str], code: i32) -> (String, String) {
    let (found, out, err) = answer(command_in(here, args).env("IOSCHED_STATE_DIR", here.join("state")));
    assert_eq!(found, code, "{args:?}: {out}{err}");
    (out, err)
}

#[track_caller]
pub(crate) fn json(here: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&iosched(here, args, 0).0).unwrap()
}

/// Returns the lock of tests that measure. These tests run one after another, because a busy
/// processor would disturb the measurement.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    // If another test failed while it held the lock, the lock is still usable.
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates a loop device of a file in memory.
pub(crate) fn quick_disk(name: &str, bytes: u64) -> Option<(PathBuf, Loop)> {
    let here = directory(name);
    let memory = Path::new("/dev/shm");
    available(memory.is_dir(), "/dev/shm").then_some(())?;
    let file = image(memory, &format!("iosched-test-{name}-{}", std::process::id()), bytes);
    let found = Loop::new(&file);
    // The loop device keeps the file open.
    let _ = fs::remove_file(&file);
    found.map(|device| (here, device))
}

pub(crate) fn scheduler(device: &Loop) -> String {
    let name = device.device.file_name().unwrap().to_str().unwrap();
    fs::read_to_string(format!("/sys/block/{name}/queue/scheduler")).unwrap().trim().to_owned()
}

pub(crate) fn choose(device: &Loop, name: &str) {
    let of = device.device.file_name().unwrap().to_str().unwrap();
    fs::write(format!("/sys/block/{of}/queue/scheduler"), name).unwrap();
}

/// Returns whether the kernel has all of today's schedulers.
#[track_caller]
pub(crate) fn has_all_schedulers(device: &Loop) -> bool {
    let there = scheduler(device).replace(['[', ']'], "");
    let has = |name: &&str| there.split(' ').any(|known| known == *name);
    available(
        ["none", "mq-deadline", "kyber", "bfq"].iter().all(has),
        "the schedulers none, mq-deadline, kyber and bfq",
    )
}

/// A process that is killed at the end of the test.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A disk of nbdkit that is mounted as a file.
pub(crate) struct FuseDisk {
    pub(crate) directory: PathBuf,
    pub(crate) nbdkit: Running,
    _nbdfuse: Running,
}

impl FuseDisk {
    /// Creates a disk with this name and these arguments of nbdkit.
    pub(crate) fn new(here: &Path, name: &str, args: &[&str]) -> Self {
        let socket = here.join(format!("{name}.sock"));
        // A server that was killed may have left a socket with this name.
        let _ = fs::remove_file(&socket);
        let log = |program| fs::File::create(here.join(format!("{name}-{program}.log"))).unwrap();
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.args(["--foreground", "--exit-with-parent", "-U"]).arg(&socket).args(args);
        let nbdkit = Running(nbdkit.stdout(Stdio::null()).stderr(log("nbdkit")).spawn().unwrap());
        wait_for(|| socket.exists());
        let directory = here.join(name);
        fs::create_dir_all(&directory).unwrap();
        let file_name = directory.join("disk");
        let mut fuse = Command::new("nbdfuse");
        fuse.arg(&file_name).arg("--unix").arg(&socket).stdout(Stdio::null()).stderr(log("nbdfuse"));
        let _nbdfuse = Running(fuse.spawn().unwrap());
        wait_for(|| file_name.exists());
        Self { directory, nbdkit, _nbdfuse }
    }

    /// Creates a disk that executes one command at a time, in 2 ms.
    pub(crate) fn slow(here: &Path) -> Self {
        let filters = ["--filter=noparallel", "--filter=delay"];
        let disk = ["memory", "1G", "rdelay=2ms", "wdelay=2ms", "serialize=all-requests"];
        Self::new(here, "slow", &[&filters[..], &disk].concat())
    }

    /// Returns the path of the file.
    pub(crate) fn file(&self) -> PathBuf {
        self.directory.join("disk")
    }
}

impl Drop for FuseDisk {
    fn drop(&mut self) {
        let _ = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.directory).status();
    }
}

#[track_caller]
pub(crate) fn wait_for(mut condition: impl FnMut() -> bool) {
    let step = Duration::from_millis(20);
    let mut waited = Duration::ZERO;
    while !condition() {
        assert!(waited < PATIENCE, "the condition is still false");
        thread::sleep(step);
        waited += step;
    }
}

pub(crate) const TWO_CLASSES: &str = "\
name = \"two classes\"
end_ns = 3600000000000
[[tasks]]
pid = 1
name = \"be\"
class = \"be\"
pattern = \"random\"
range = [0, 2097152]
iodepth = 8
[[tasks]]
pid = 2
name = \"idle\"
class = \"idle\"
pattern = \"random\"
range = [0, 2097152]
iodepth = 8
";
