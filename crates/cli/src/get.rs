//! `iosched get`: prints attributes of disks.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};

use iosched_attributes::{Disks, Named};
use iosched_terminal::output;

/// Read attributes of disks
///
/// Prints one line NAME=VALUE for each disk that has the attribute. With several disks, the line starts with the name
/// of the disk.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GetArgs {
    /// A disk and names of its attributes [default: all disks of the kernel with all attributes;
    /// cgroup attributes only if they have a value]
    ///
    /// Name a disk of the kernel as sda, /dev/sda, a mount point or a file on the disk. Name a
    /// served disk as live:NAME, or give its mount directory or its control socket.
    ///
    /// Attributes are names such as scheduler, nr_requests, iosched/slice_idle, stat and clients/3/ioprio. An attribute
    /// of a cgroup is written as cgroup/system.slice/io.max. To choose among several disks, put the name of the disk in
    /// front, as in sda/scheduler.
    #[arg(value_name = "DISK|NAME")]
    words: Vec<String>,

    /// Use the disks in this directory, or this one disk, instead of the kernel's disks
    #[arg(long, value_name = "DIR|DISK", value_hint = ValueHint::AnyPath)]
    at: Option<PathBuf>,

    /// Print only the values
    #[arg(short = 'n', long)]
    values: bool,
}

const EXAMPLES: &str = "Examples:
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
        // Each value is printed in one line, even if it contains newlines.
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
                // Some files of the kernel are write-only.
                if let Ok(value) = disks.tree.read(&file.path) {
                    line(&file, &value);
                }
            }
        }
    }
    output::print(&text)
}
