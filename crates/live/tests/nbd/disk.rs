//! A served disk with its scheduler and back end, for tests with clients that are separate
//! programs.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use iosched::Setting;
use iosched_live::nbd::Exports;
use iosched_live::reactor::nbd::{Config, Limits, Listener};
use iosched_live::reactor::{self, ServeOptions, Served};
use iosched_testing::machine::{available, output};

/// A disk that is served until it is dropped.
pub(crate) struct Disk {
    folder: tempfile::TempDir,
    served: Option<Served>,
}

impl Disk {
    /// Serves `backend`. `DIR` in `backend` stands for a new directory. All clients together may
    /// hold `budget_mib` MiB.
    pub(crate) fn new(backend: &str, budget_mib: u64) -> Self {
        Self::within(tempfile::tempdir().unwrap(), backend, budget_mib)
    }

    /// Serves a disk as [`Self::new`] does, but with an existing directory.
    pub(crate) fn within(folder: tempfile::TempDir, backend: &str, budget_mib: u64) -> Self {
        let backend = backend.replace("DIR", &folder.path().display().to_string()).parse().unwrap();
        let options = ServeOptions::new("disk", backend, Setting::defaults("cfq"));
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let config = Config {
            listeners: vec![Listener::Unix(listener)],
            exports: Exports::default().or_default("disk"),
            tls: None,
            plain: true,
            limits: Limits::default(),
        };
        let served = reactor::start(&ServeOptions { budget_bytes: budget_mib << 20, ..options }, Some(config)).unwrap();
        Self { folder, served: Some(served) }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Returns the bytes that the back end has read.
    pub(crate) fn bytes_read(&self) -> u64 {
        let stat = self.served.as_ref().unwrap().handle.control(|disk, now| disk.stat(now)).unwrap();
        let read = stat.to_string().split_whitespace().nth(2).unwrap().parse::<u64>().unwrap();
        read * iosched::SECTOR_BYTES
    }

    /// Runs a client and returns its output. Replaces `URI` and `DIR` in its arguments. Returns
    /// `None` if the client is not installed.
    #[track_caller]
    pub(crate) fn client(&self, program: &str, args: &[&str]) -> Option<String> {
        let (folder, uri) =
            (self.folder().display().to_string(), format!("nbd+unix:///?socket={}", self.path("s").display()));
        let fill = |arg: &&str| arg.replace("URI", &uri).replace("DIR", &folder);
        output(Command::new(program).args(args.iter().map(fill)))
    }

    /// Runs a libnbd script. The connection is `h`. The script must end without an exception.
    /// Returns whether libnbd is installed.
    #[track_caller]
    pub(crate) fn libnbd(&self, script: &str) -> bool {
        // Debian's libnbd works only with Debian's Python. Another Python may come first in PATH.
        const PYTHON: &str = "/usr/bin/python3";
        let has_module = Command::new(PYTHON).args(["-c", "import nbd"]).output();
        let is_there = has_module.is_ok_and(|output| output.status.success());
        if !available(is_there, "Python's module nbd (package python3-libnbd)") {
            return false;
        }
        let head = "import errno, nbd\nh = nbd.NBD()\nh.set_strict_mode(0)\nh.add_meta_context('base:allocation')\n\
                    h.connect_uri('URI')\n";
        self.client(PYTHON, &["-c", &format!("{head}{script}\nh.shutdown()\n")]).is_some()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Some(served) = self.served.take() {
            served.handle.stop();
            let ended = served.wait();
            assert!(std::thread::panicking() || ended.flushed.is_ok(), "{ended:?}");
        }
    }
}
