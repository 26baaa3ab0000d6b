//! Programs and devices that a machine has or not: what is missing is told and skipped; with CI set, it fails.
#![allow(dead_code, reason = "each test uses its part")]

use std::process::{Command, Stdio};

/// Whether `found`; if not, says so, and fails where everything must be there.
#[track_caller]
pub(crate) fn available(found: bool, what: &str) -> bool {
    if !found {
        println!("skipped: {what} is not available here");
        assert!(std::env::var_os("CI").is_none(), "{what} is not available");
    }
    found
}

/// Whether a test may take minutes: where everything is tested, or where that is asked for.
pub(crate) fn has_minutes() -> bool {
    let is_long = ["CI", "IOSCHED_LONG_TESTS"].iter().any(|name| std::env::var_os(name).is_some());
    if !is_long {
        println!("skipped: it takes minutes; IOSCHED_LONG_TESTS=1 has it run");
    }
    is_long
}

/// Whether a program is installed.
#[track_caller]
pub(crate) fn has_program(name: &str) -> bool {
    let mut command = Command::new(name);
    let runs = command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    available(runs.is_ok(), name)
}

/// What a program prints; it must succeed. `None` if it is not installed.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> Option<String> {
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
