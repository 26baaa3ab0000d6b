//! `iosched ls`: disks, the kernel's and ours.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};

use crate::output;
use crate::served::size;
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
    let sectors = read("size").and_then(|sectors| sectors.parse::<u64>().ok());
    let rotational = read("queue/rotational").map(|text| if text == "0" { "no" } else { "yes" }.to_owned());
    let unknown = || "-".to_owned();
    [
        disk.name.clone(),
        sectors.map_or_else(unknown, |sectors| size(sectors.saturating_mul(SECTOR_BYTES))),
        read("queue/scheduler").map_or_else(unknown, |text| present(&text).to_owned()),
        rotational.unwrap_or_else(unknown),
        read("device/queue_depth").unwrap_or_else(unknown),
    ]
}
