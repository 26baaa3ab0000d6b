//! Tests that the units of the package behave as documented. The tests run under a systemd in the
//! root directory.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The script of the test.
const SCRIPT: &str = include_str!("units.sh");
/// Path of the script in the root directory, and of its output.
const PLACE: &str = "try-units";
const MESSAGES: &str = "said";
/// The unit that systemd starts instead of its default target.
const UNIT: &str = "etc/systemd/system/try-units.service";
const UNIT_TEXT: &str = "\
[Unit]
Description=Try the units of iosched
Requires=basic.target
After=basic.target

[Service]
Type=oneshot
ExecStart=/bin/sh /try-units
ExecStopPost=/bin/systemctl --no-block exit 0
";
const WAIT: &str = "180";
/// Last line of the script's output.
const DONE: &str = "units: done";

/// Boots systemd in the root directory and runs the tests.
pub(super) fn tried(root: &Path) -> Result<()> {
    fs::write(root.join(PLACE), SCRIPT)?;
    fs::write(root.join(UNIT), UNIT_TEXT)?;
    let booted = Command::new("timeout")
        .args(["--kill-after=10", WAIT, "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot"])
        .args(["--bind=/dev/fuse", "--system-call-filter=@aio @mount", "--directory"])
        .arg(root)
        .arg("systemd.unit=try-units.service")
        .env_clear()
        .envs([("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")])
        .stdin(Stdio::null())
        .output()
        .context("timeout cannot be run")?;
    let Ok(text) = fs::read_to_string(root.join(MESSAGES)) else {
        let console = String::from_utf8_lossy(&booted.stdout);
        let error = String::from_utf8_lossy(&booted.stderr);
        let last = console.lines().chain(error.lines()).next_back().unwrap_or("it says nothing").trim();
        // The cause is the machine, not the units. The units cannot be tested without a running
        // systemd.
        println!("in a fresh root: units: not tried, for systemd-nspawn boots no system here: {last}");
        return Ok(());
    };
    if !text.lines().any(|line| line == DONE) {
        bail!("units: {}\n{text}", booted.status);
    }
    for line in text.lines().filter(|line| line.starts_with("units: ")) {
        println!("in a fresh root: {line}");
    }
    [PLACE, MESSAGES, UNIT].into_iter().try_for_each(|file| Ok(fs::remove_file(root.join(file))?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page;

    const SERVE: &str = include_str!("../../../packaging/systemd/iosched-serve@.service");
    const MOUNT: &str = include_str!("../../../packaging/systemd/iosched-mount@.service");
    const WATCH: &str = include_str!("../../../packaging/systemd/iosched-watch.service");
    const DROP_IN: &str = include_str!("../../../packaging/examples/block-device.conf");

    /// Returns all values of a setting of a unit, in the order of its lines.
    fn values<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
        unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('=')).collect()
    }

    /// Asserts that systemd computes an exposure of at most `tenths` tenths for a unit.
    #[track_caller]
    fn assert_exposure_at_most(tenths: u32, unit: &str) {
        let here =
            std::env::temp_dir().join(format!("iosched-exposure-{}-{tenths}-{}", std::process::id(), unit.len()));
        fs::create_dir_all(&here).unwrap();
        let file = here.join("iosched@.service");
        fs::write(&file, unit).unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(["security", "--no-pager", "--offline=true", &format!("--threshold={tenths}")]).arg(&file);
        let output = command.stdin(Stdio::null()).output();
        fs::remove_dir_all(&here).unwrap();
        let Ok(output) = output else {
            println!("skipped: systemd-analyze is not available here");
            assert!(std::env::var_os("CI").is_none(), "systemd-analyze is not available");
            return;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("Overall exposure level"), "{text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{text}");
    }

    #[test]
    fn exposure_is_below_2_for_serve_and_3_8_for_mount() {
        assert_exposure_at_most(19, SERVE);
        assert_exposure_at_most(19, &format!("{SERVE}{DROP_IN}"));
        assert_exposure_at_most(37, MOUNT);
        assert_exposure_at_most(37, &format!("{MOUNT}{DROP_IN}"));
    }

    #[test]
    fn exposure_of_watch_is_below_2_without_capabilities() {
        assert_exposure_at_most(19, WATCH);
        assert_eq!((values(WATCH, "CapabilityBoundingSet"), values(WATCH, "DevicePolicy")), (vec![""], vec!["closed"]));
        assert_eq!(values(WATCH, "ReadWritePaths"), ["-/sys/kernel/tracing/instances"]);
    }

    #[test]
    fn units_allow_only_devices_of_the_drop_in() {
        for (unit, devices, capabilities) in [(SERVE, &[][..], ""), (MOUNT, &["/dev/fuse rw"], "CAP_SYS_ADMIN")] {
            assert_eq!(values(unit, "DeviceAllow"), devices);
            assert_eq!(values(unit, "DevicePolicy"), ["closed"]);
            assert_eq!(values(unit, "CapabilityBoundingSet"), [capabilities]);
            assert_eq!(values(unit, "SupplementaryGroups"), [""; 0]);
        }
        assert_eq!(values(DROP_IN, "DeviceAllow"), ["/dev/disk/by-id/NAME rw"]);
        let book = fs::read_to_string(page::path("docs/howto/services.md")).unwrap();
        let settings: Vec<&str> = DROP_IN.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(book.contains(&format!("```ini\n{}\n```", settings.join("\n"))), "the book has the drop-in");
    }
}
