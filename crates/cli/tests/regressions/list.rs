//! A case, its directory, and the output of the command.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{IOSCHED, directory};

/// An input or a client that once made the command fail.
pub(crate) struct Case {
    /// The property that must hold, in a few words.
    pub(crate) name: &'static str,
    /// Panics if the property does not hold.
    pub(crate) check: fn(&Sandbox),
}

pub(crate) const fn case(name: &'static str, check: fn(&Sandbox)) -> Case {
    Case { name, check }
}

impl Case {
    /// Checks the property in a directory of this name.
    pub(crate) fn run(&self, name: &str) {
        (self.check)(&Sandbox { here: directory(name) });
    }
}

/// The directory of one case, empty at the start.
pub(crate) struct Sandbox {
    pub(crate) here: PathBuf,
}

/// The exit code and the output of the command.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    args: String,
}

impl Sandbox {
    /// Returns a path in the directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.here.join(name)
    }

    /// Writes a file in the directory.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Returns the content of a file in the directory.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
            .into_owned()
    }

    /// Returns the command with this directory as its working directory and its state directory.
    pub(crate) fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(IOSCHED);
        command.args(args).current_dir(&self.here).stdin(Stdio::null());
        command.env("IOSCHED_STATE_DIR", self.path("state")).env_remove("NO_COLOR").env_remove("COLUMNS");
        command
    }

    /// Runs the command. The command must exit without a panic.
    #[track_caller]
    pub(crate) fn iosched(&self, args: &[&str]) -> Answer {
        Answer::of(self.command(args).output().unwrap(), args)
    }
}

impl Answer {
    #[track_caller]
    pub(crate) fn of(output: Output, args: &[&str]) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let signal = output.status.signal();
        let (out, err) = (text(output.stdout), text(output.stderr));
        let args = args.join(" ");
        let code = output.status.code().unwrap_or_else(|| panic!("{args}: ended by signal {signal:?}: {out}{err}"));
        for never in ["panicked", "Error(", "Os {", "kind:"] {
            assert!(!err.contains(never), "{args}: {err}");
        }
        Self { code, out, err, args }
    }

    /// Checks the exit code.
    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}: {}{}", self.args, self.out, self.err);
        self
    }

    /// Checks that standard output or standard error contains each of these parts. Line breaks are
    /// ignored.
    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) -> &Self {
        let unbroken = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (out, err) = (unbroken(&self.out), unbroken(&self.err));
        for part in parts {
            let is_there = [&self.out, &self.err, &out, &err].into_iter().any(|text| text.contains(part));
            assert!(is_there, "{} should say {part:?}:\n{}{}", self.args, self.out, self.err);
        }
        self
    }

    /// Checks that neither standard output nor standard error contains any of these parts.
    #[track_caller]
    pub(crate) fn never(&self, parts: &[&str]) -> &Self {
        for part in parts {
            let is_there = self.out.contains(part) || self.err.contains(part);
            assert!(!is_there, "{} should not say {part:?}:\n{}{}", self.args, self.out, self.err);
        }
        self
    }

    /// Checks that the command failed with an error message, this exit code and each of these
    /// parts.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, parts: &[&str]) -> &Self {
        assert!(self.err.starts_with("error: "), "{}: {}{}", self.args, self.out, self.err);
        self.code(code).says(parts)
    }
}

/// Returns the path of a file of this repository.
pub(crate) fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
