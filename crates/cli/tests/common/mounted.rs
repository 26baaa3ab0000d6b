//! A mounted disk.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{IOSCHED, PATIENCE, available};

/// Returns whether disks can be mounted.
#[track_caller]
pub(crate) fn has_fuse() -> bool {
    let opens = OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    let is_root = fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0);
    available(opens && (is_root || Command::new("fusermount3").arg("-V").output().is_ok()), "/dev/fuse")
}

/// A disk that stays mounted until this value is dropped.
pub(crate) struct Mounted {
    pub(crate) child: Child,
    pub(crate) at: PathBuf,
    name: &'static str,
}

impl Mounted {
    pub(crate) fn new(here: &Path, name: &'static str, backing: &str, options: &[&str]) -> Self {
        Self::with(here, name, backing, options, [])
    }

    /// Mounts a disk with additional environment variables.
    pub(crate) fn with<const N: usize>(
        here: &Path,
        name: &'static str,
        backing: &str,
        options: &[&str],
        environment: [(&str, PathBuf); N],
    ) -> Self {
        let at = here.join("mnt");
        // A server that was killed leaves its mount.
        let _ = Command::new("umount").arg("-l").arg(&at).stderr(Stdio::null()).status();
        fs::create_dir_all(&at).unwrap();
        let errors = File::create(here.join("stderr")).unwrap();
        let mut child = Command::new(IOSCHED)
            .args(["mount", backing])
            .arg(&at)
            .args(["--name", name])
            .args(options)
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .unwrap();
        let mut text = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        for _ in 0..3 {
            out.read_line(&mut text).unwrap();
        }
        let mounted = Self { child, at, name };
        let errors = fs::read_to_string(here.join("stderr")).unwrap();
        assert!(text.contains("to stop, press Ctrl-C or run: umount"), "{text}{errors}");
        mounted
    }

    pub(crate) fn disk(&self) -> PathBuf {
        self.at.join(self.name)
    }

    pub(crate) fn attribute(&self, path: &str) -> PathBuf {
        self.at.join("block").join(self.name).join(path)
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.attribute(path)).unwrap_or_else(|error| panic!("{path}: {error}")).trim_end().to_owned()
    }

    /// Does the same as `echo VALUE > FILE`. Returns the errno on failure.
    pub(crate) fn echo(&self, path: &str, value: &str) -> Result<(), i32> {
        let written = || {
            let mut file = OpenOptions::new().write(true).truncate(true).open(self.attribute(path))?;
            file.write_all(format!("{value}\n").as_bytes())
        };
        written().map_err(|error| error.raw_os_error().unwrap())
    }

    pub(crate) fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    pub(crate) fn wait(&mut self) -> i32 {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(began.elapsed() < PATIENCE, "the mount does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn is_mounted(&self) -> bool {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.lines().any(|line| line.split(' ').nth(1) == self.at.to_str())
    }

    /// Ends the mount with SIGTERM, as a user does. Returns the exit code.
    pub(crate) fn end(mut self) -> i32 {
        self.signal("-TERM");
        self.wait()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if self.is_mounted() {
            let _ = Command::new("umount").arg("-l").arg(&self.at).status();
        }
    }
}
