//! Whether the units of the package do what the book says of them, under a systemd that runs in the root.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// What is done there.
const SCRIPT: &str = include_str!("units.sh");
/// Where it is, and what it said.
const PLACE: &str = "try-units";
const SAID: &str = "said";
/// What systemd starts in place of anything else.
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
/// What the last line of the script says.
const DONE: &str = "units: done";

/// Boots the root and tries them.
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
    let Ok(said) = fs::read_to_string(root.join(SAID)) else {
        let console = String::from_utf8_lossy(&booted.stdout);
        let error = String::from_utf8_lossy(&booted.stderr);
        let last = console.lines().chain(error.lines()).next_back().unwrap_or("it says nothing").trim();
        // That is the machine's fault; what the units do can only be wrong where a systemd runs.
        println!("in a fresh root: units: not tried, for systemd-nspawn boots no system here: {last}");
        return Ok(());
    };
    if !said.lines().any(|line| line == DONE) {
        bail!("units: {}\n{said}", booted.status);
    }
    for line in said.lines().filter(|line| line.starts_with("units: ")) {
        println!("in a fresh root: {line}");
    }
    [PLACE, SAID, UNIT].into_iter().try_for_each(|file| Ok(fs::remove_file(root.join(file))?))
}
