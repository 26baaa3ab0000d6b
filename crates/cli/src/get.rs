//! `iosched get`: attributes of disks.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};

use crate::output;
use crate::tree::{Disks, Named};

/// Read attributes of disks
///
/// Prints NAME=VALUE, a line each, of every disk that has it; the disk's name stands before it unless there is but one.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GetArgs {
    /// A disk, as sda, /dev/sda, a mount point or a file on it, or live:NAME for a live disk, the directory of a
    /// mounted disk, or a control socket [default: all of the kernel's]; then attributes, as scheduler, nr_requests,
    /// iosched/slice_idle, stat, clients/3/ioprio or, of a cgroup, cgroup/system.slice/io.max; of several disks also as
    /// sda/scheduler [default: all there are; of cgroups what is set for the disk]
    #[arg(value_name = "DISK|NAME")]
    words: Vec<String>,

    /// Whose, instead: a directory of disks, or any DISK
    #[arg(long, value_name = "TREE", value_hint = ValueHint::AnyPath)]
    at: Option<PathBuf>,

    /// Print values alone
    #[arg(short = 'n', long)]
    values: bool,
}

const EXAMPLES: &str = "\
Examples:
  iosched get scheduler
  iosched get /srv/data scheduler nr_requests
  iosched get sda/scheduler sda/nr_requests
  iosched get sda cgroup/backup.slice/io.max cgroup/io.cost.qos
  iosched get /mnt/disk
  iosched get live:db clients/3/stat";

pub(crate) fn run(args: &GetArgs) -> Result<()> {
    let (mut disks, names) = Disks::of(args.at.as_deref(), &args.words)?;
    let mut text = String::new();
    let alone = disks.disks.len() == 1;
    let mut line = |file: &Named, value: &str| {
        // One value a line, whatever it holds.
        let value = value.trim_end().replace('\n', "\\n");
        let _ = match (args.values, alone) {
            (true, _) => writeln!(text, "{value}"),
            (false, true) => writeln!(text, "{}={value}", file.name),
            (false, false) => writeln!(text, "{}/{}={value}", file.disk.name, file.name),
        };
    };
    for name in names {
        for file in disks.find(name)? {
            let value = disks.tree.read(&file.path)?;
            line(&file, &value);
        }
    }
    if names.is_empty() {
        for disk in disks.disks.clone() {
            for file in disks.all_of(&disk)? {
                // Some of the kernel's can only be written.
                if let Ok(value) = disks.tree.read(&file.path) {
                    line(&file, &value);
                }
            }
        }
    }
    output::print(&text)
}
