//! Loop devices and mounts of the kernel. They need root. The end of a test removes them, even if
//! the test fails.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use super::{available, output, sh};

/// Returns whether the test runs as root.
#[track_caller]
pub(crate) fn is_root() -> bool {
    available(fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0), "root")
}

/// A loop device with direct I/O.
pub(crate) struct Loop {
    pub(crate) device: PathBuf,
}

impl Loop {
    /// Creates a loop device of a file. Returns `None` if loop devices are not available.
    #[track_caller]
    pub(crate) fn new(file: &Path) -> Option<Self> {
        let mut command = Command::new("losetup");
        let found = command.args(["--find", "--show", "--direct-io=on"]).arg(file).output();
        let found = found.ok().filter(|found| found.status.success());
        available(found.is_some(), "a loop device").then_some(())?;
        let device = String::from_utf8(found?.stdout).unwrap().trim().into();
        Some(Self { device })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("--detach").arg(&self.device).status();
    }
}

/// A mounted file system.
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
}

impl Mount {
    /// Mounts a file system in memory, with options of tmpfs.
    #[track_caller]
    pub(crate) fn in_memory(options: &str, at: PathBuf) -> Self {
        fs::create_dir_all(&at).unwrap();
        sh("mount -t tmpfs -o \"$1\" none \"$2\"", &[options.as_ref(), &at]);
        Self { at }
    }

    /// Mounts `source` on `at`. Creates the directory `at`.
    #[track_caller]
    pub(crate) fn new(kind: &str, source: &Path, at: PathBuf) -> Self {
        fs::create_dir_all(&at).unwrap();
        output(Command::new("mount").args(["-t", kind]).arg(source).arg(&at)).expect("mount is installed");
        Self { at }
    }

    /// Unmounts the file system, which must not be in use.
    #[track_caller]
    pub(crate) fn end(self) {
        sh("umount \"$1\"", &[&self.at]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmount = |lazily: &[&str]| {
            let mut command = Command::new("umount");
            command.args(lazily).arg(&self.at).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let is_mounted = || {
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
            mounts.lines().any(|line| line.split(' ').nth(1) == self.at.to_str())
        };
        if is_mounted() && !unmount(&[]) {
            thread::sleep(Duration::from_millis(100));
            unmount(&["-l"]);
        }
    }
}
