//! A case of the list, the place where it happens, and what the command answered.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{IOSCHED, directory};

/// One odd input or hostile client.
pub(crate) struct Odd {
    /// What must hold, in a few words.
    pub(crate) name: &'static str,
    /// Makes it happen, and panics where it does not hold.
    pub(crate) check: fn(&Sandbox),
}

pub(crate) const fn odd(name: &'static str, check: fn(&Sandbox)) -> Odd {
    Odd { name, check }
}

/// A directory of a case's own, empty.
pub(crate) struct Sandbox {
    pub(crate) here: PathBuf,
}

/// What the command answered.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    args: String,
}

/// Tries every case of a list; what does not hold is told at the end.
#[track_caller]
pub(crate) fn hold(list: &str, cases: &[Odd]) {
    let mut failed = Vec::new();
    for (number, odd) in cases.iter().enumerate() {
        let place = Sandbox { here: directory(&format!("odd-{list}-{number}")) };
        if panic::catch_unwind(AssertUnwindSafe(|| (odd.check)(&place))).is_err() {
            failed.push(odd.name);
        }
    }
    assert!(failed.is_empty(), "{} of {} do not hold: {failed:#?}", failed.len(), cases.len());
}

impl Sandbox {
    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.here.join(name)
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// What a file in it holds.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}")))
            .into_owned()
    }

    /// The command in this directory, with everything that outlives it kept here, too.
    pub(crate) fn command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(IOSCHED);
        command.args(args).current_dir(&self.here).stdin(Stdio::null());
        command.env("IOSCHED_STATE_DIR", self.path("state")).env_remove("NO_COLOR").env_remove("COLUMNS");
        command
    }

    /// What it answers; it must end by itself and not panic.
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

    /// It must have ended so.
    #[track_caller]
    pub(crate) fn code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{}: {}{}", self.args, self.out, self.err);
        self
    }

    /// It must have said each of these, on standard output or standard error; where lines are broken does not count.
    #[track_caller]
    pub(crate) fn says(&self, parts: &[&str]) -> &Self {
        let unbroken = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (out, err) = (unbroken(&self.out), unbroken(&self.err));
        for part in parts {
            let said = [&self.out, &self.err, &out, &err].into_iter().any(|text| text.contains(part));
            assert!(said, "{} should say {part:?}:\n{}{}", self.args, self.out, self.err);
        }
        self
    }

    /// It must have said none of these.
    #[track_caller]
    pub(crate) fn never(&self, parts: &[&str]) -> &Self {
        for part in parts {
            let said = self.out.contains(part) || self.err.contains(part);
            assert!(!said, "{} should not say {part:?}:\n{}{}", self.args, self.out, self.err);
        }
        self
    }

    /// It is an error, with this exit code, that says each of these.
    #[track_caller]
    pub(crate) fn refused(&self, code: i32, parts: &[&str]) -> &Self {
        assert!(self.err.starts_with("error: "), "{}: {}{}", self.args, self.out, self.err);
        self.code(code).says(parts)
    }
}

/// A file of this repository.
pub(crate) fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
