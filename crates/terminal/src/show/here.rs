//! Additional output of `iosched` without a command, on a terminal: the disks of this machine, and
//! suggested commands.

use std::fmt::Write as _;

use iosched_kernel::block::DeviceCard;
use iosched_kernel::{BlockDevice, Roots};

use super::grid::size;

/// Number of disks that are shown.
const DISKS_SHOWN: usize = 5;
/// Prefixes of devices in memory, in files or without a medium, which are not shown.
const NO_DISKS: [&str; 4] = ["loop", "ram", "zram", "sr"];

/// Returns the disks of this machine and the next commands. Empty without disks.
pub fn found(roots: &Roots) -> String {
    let is_disk =
        |device: &BlockDevice| !NO_DISKS.iter().any(|kind| device.name().starts_with(kind)) && device.size_bytes() > 0;
    let disks: Vec<_> = BlockDevice::disks(roots).into_iter().filter(is_disk).map(|device| device.card()).collect();
    // The parts of a stacked device are also disks, so the suggestion names a mounted disk.
    let Some(first) = disks.iter().find(|disk| !disk.usage.mounts.is_empty()).or(disks.first()) else {
        return String::new();
    };
    let mut text = String::new();
    for (number, disk) in disks.iter().take(DISKS_SHOWN).enumerate() {
        let head = if number == 0 { "here:" } else { "" };
        let _ = writeln!(text, "{head:10} {:10} {:>8}  {}", disk.name, size(disk.size_bytes), about(disk));
    }
    if disks.len() > DISKS_SHOWN {
        let _ = writeln!(text, "{:10} and {} more: iosched ls", "", disks.len() - DISKS_SHOWN);
    }
    let name = &first.name;
    let commands = [
        (format!("iosched doctor {name}"), "check which settings take effect"),
        (format!("iosched record {name} --for 60"), "record the requests of this disk (as root)"),
        (format!("iosched advise {name} --workload {name}.blktrace.0"), "recommend settings, with evidence"),
        ("iosched top".to_owned(), "load and waits of all disks"),
    ];
    let width = commands.iter().map(|(command, _)| command.len()).max().unwrap_or(0);
    for (number, (command, what)) in commands.iter().enumerate() {
        let head = if number == 0 { "on them:" } else { "" };
        let _ = writeln!(text, "{head:10} {command:width$}  {what}");
    }
    text
}

/// Describes a disk, such as `mq-deadline; rotating; / and 1 more`.
fn about(disk: &DeviceCard) -> String {
    let scheduler = disk.scheduler.clone().unwrap_or_else(|| "no scheduler".to_owned());
    let kind = if disk.is_rotational { "rotating" } else { "not rotating" };
    let mut about = format!("{scheduler}; {kind}");
    if let Some(first) = disk.usage.mounts.first() {
        let _ = write!(about, "; {}", first.at.display());
        if disk.usage.mounts.len() > 1 {
            let _ = write!(about, " and {} more", disk.usage.mounts.len() - 1);
        }
    }
    about
}
