//! Programs and features that a test needs. If a program or feature is missing, the test prints a
//! message and ends. If `CI` is set, the test fails instead.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Returns `found`. If `found` is false, prints that the test is skipped.
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

/// Returns whether a test may take minutes, because `CI` or `IOSCHED_LONG_TESTS` is set.
#[must_use]
pub fn has_minutes() -> bool {
    let is_long = ["CI", "IOSCHED_LONG_TESTS"].iter().any(|name| std::env::var_os(name).is_some());
    if !is_long {
        println!("skipped: it takes minutes; to run it, set IOSCHED_LONG_TESTS=1");
    }
    is_long
}

/// Returns the folder `name` next to the repository, or the folder in the environment variable
/// `variable`. If the folder is missing, prints that the test is skipped and returns `None`.
#[must_use]
pub fn shared_folder(name: &str, variable: &str) -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    let path = std::env::var_os(variable).map_or_else(default, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: there is no folder {} (set {variable} to a folder with {name})", path.display());
    None
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

/// Returns the messages of udev about lines of the file `name` in a directory of rules. udev reads
/// the rules in a separate mount namespace, without other rules and without changes to the machine.
/// It tests the rules with a device that matches no rule. Returns `None` if this machine does not
/// support such a test.
///
/// # Panics
/// If udevadm is not available and `CI` is set.
#[track_caller]
pub fn udev_messages(rules: &Path, name: &str) -> Option<String> {
    const TRY: &str = "set -e
mkdir -p /run/udev
mount -t tmpfs none /run/udev
mkdir /run/udev/rules.d /run/udev/none
cp \"$1\"/* /run/udev/rules.d
for other in /etc/udev/rules.d /lib/udev/rules.d /usr/lib/udev/rules.d; do
    if [ -d $other ]; then mount --bind /run/udev/none $other; fi
done
exec udevadm test /sys/class/mem/zero";
    if !available(Command::new("udevadm").arg("--version").output().is_ok(), "udevadm") {
        return None;
    }
    if !Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|status| status.success()) {
        println!("skipped: only root can have a separate mount namespace");
        return None;
    }
    let output = Command::new("unshare").args(["--mount", "sh", "-c", TRY, "sh"]).arg(rules).output().ok()?;
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let of_a_line = format!("{name}:");
    Some(text.lines().filter(|line| line.contains(&of_a_line)).collect::<Vec<_>>().join("\n"))
}
