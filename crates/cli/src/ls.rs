//! `iosched ls`: disks, the kernel's and ours.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};

use crate::output;
use crate::tree::{Disk, Disks, SYS_BLOCK, present};

/// List disks and their schedulers
///
/// By default the kernel's own; with --at those of a disk that iosched mounts or serves.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LsArgs {
    /// Whose disks: a directory of disks, one disk, the directory of a mounted disk, or a control socket
    #[arg(long, value_name = "TREE", default_value = SYS_BLOCK, value_hint = ValueHint::AnyPath)]
    at: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  iosched ls
  iosched ls --at /mnt/disk
  iosched ls --at /run/iosched.control";

/// Bytes in a sector, the unit of `size`.
const SECTOR_BYTES: u64 = iosched::SECTOR_BYTES;

const TITLES: [&str; 5] = ["name", "size", "scheduler", "rotational", "depth"];

pub(crate) fn run(args: &LsArgs) -> Result<()> {
    let mut disks = Disks::open(&args.at)?;
    let mut rows = vec![TITLES.map(str::to_owned)];
    for disk in disks.disks.clone() {
        rows.push(row(&mut disks, &disk));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for [name, size, scheduler, rotational, depth] in &rows {
        let _ = writeln!(
            text,
            "{name:0$}  {size:>1$}  {scheduler:2$}  {rotational:3$}  {depth:>4$}",
            widths[0], widths[1], widths[2], widths[3], widths[4]
        );
    }
    output::print(&text)
}

fn row(disks: &mut Disks, disk: &Disk) -> [String; 5] {
    let mut read = |name: &str| disks.tree.read(&disk.path_of(name)).ok().map(|text| text.trim().to_owned());
    let size = read("size").and_then(|size| size.parse::<u64>().ok());
    let rotational = read("queue/rotational").map(|text| if text == "0" { "no" } else { "yes" }.to_owned());
    let unknown = || "-".to_owned();
    [
        disk.name.clone(),
        size.map_or_else(unknown, |sectors| human(sectors.saturating_mul(SECTOR_BYTES))),
        read("queue/scheduler").map_or_else(unknown, |text| present(&text).to_owned()),
        rotational.unwrap_or_else(unknown),
        read("device/queue_depth").unwrap_or_else(unknown),
    ]
}

/// A size in the largest binary unit of which there is one, with three digits where they say something.
fn human(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = (bytes.max(1).ilog2() / 10) as usize;
    let value = bytes as f64 / (1u64 << (10 * unit)) as f64;
    let digits = if unit == 0 || value.fract() == 0.0 || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (1024, "1 KiB"),
            (1 << 30, "1 GiB"),
            (1_500_000_000, "1.40 GiB"),
            (1_000_204_886_016, "932 GiB"),
            (u64::MAX, "16 EiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }
}
