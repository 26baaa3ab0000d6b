//! Programs and features that the machine may lack. A test that needs a missing one prints a
//! message and ends. If `CI` is set, the test fails instead.

use std::process::{Command, Stdio};

/// Returns `found`. If it is false, prints that the test is skipped.
///
/// # Panics
/// If `found` is false and `CI` is set.
#[track_caller]
pub fn available(found: bool, what: &str) -> bool {
    if !found {
        println!("skipped: {what} is not available here");
        assert!(std::env::var_os("CI").is_none(), "{what} is not available");
    }
    found
}

/// Returns whether a test may take minutes, which is so if `CI` or `IOSCHED_LONG_TESTS` is set.
#[must_use]
pub fn has_minutes() -> bool {
    let is_long = ["CI", "IOSCHED_LONG_TESTS"].iter().any(|name| std::env::var_os(name).is_some());
    if !is_long {
        println!("skipped: it takes minutes; to run it, set IOSCHED_LONG_TESTS=1");
    }
    is_long
}

/// Returns whether a program is installed.
#[track_caller]
#[must_use]
pub fn has_program(name: &str) -> bool {
    let mut command = Command::new(name);
    let runs = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    available(runs.is_ok(), name)
}

/// Returns the standard output of a program, or `None` if it cannot be started.
///
/// # Panics
/// If the program fails.
#[track_caller]
pub fn output(command: &mut Command) -> Option<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) => {
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{command:?}: {out}{err}");
            Some(out.into_owned())
        }
        Err(error) => {
            available(false, &format!("{name} ({error})"));
            None
        }
    }
}
