//! Shared code of the tests of job files.
#![allow(dead_code, clippy::disallowed_methods, reason = "tests look at folders and at an installed fio")]

use std::process::Command;

use iosched_workload::fio::{CheckedJobs, Environment, Job, JobError};

/// Environment variables of a test.
pub(crate) struct Variables(pub(crate) &'static [(&'static str, &'static str)]);

impl Environment for Variables {
    fn variable(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    }
}

pub(crate) fn check(text: &str) -> Result<CheckedJobs, JobError> {
    CheckedJobs::parse("job.fio", text.as_bytes(), &Variables(&[("SIZE", "64k"), ("EMPTY", "")]))
}

/// Returns the jobs of a text that must be valid.
#[track_caller]
pub(crate) fn jobs(text: &str) -> Vec<Job> {
    check(text).unwrap_or_else(|error| panic!("{text}\n{error}")).jobs
}

/// Returns the single job with these options and a size.
#[track_caller]
pub(crate) fn job(options: &str) -> Job {
    let mut jobs = jobs(&format!("[j]\nsize=1g\n{options}\n"));
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

/// Returns the error of a text that must not be valid.
#[track_caller]
pub(crate) fn error(text: &str) -> String {
    check(text).expect_err(text).to_string()
}

/// Returns the version of the installed fio. Without fio, prints a message and returns `None`.
pub(crate) fn installed_fio() -> Option<String> {
    let version = Command::new("fio").arg("--version").output().ok().filter(|output| output.status.success());
    if version.is_none() {
        assert!(std::env::var_os("CI").is_none(), "fio cannot be run, and CI skips nothing");
        println!("skipped: no fio is installed (apt-get install fio)");
    }
    version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
