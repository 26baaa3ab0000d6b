//! `iosched ls`: lists the disks of the kernel and served disks.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_attributes::{DiskSummary, Disks, KernelDisk, SYS_BLOCK, lives};

use iosched_terminal::output;
use iosched_terminal::show::{Look, disks as shown};

/// List disks and their schedulers
///
/// For each disk of the kernel, ls shows its scheduler, the queue depth of its driver, and the
/// disks or partitions below and above the disk. It also shows mount points, and the cgroup files
/// with settings for the disk. Served disks that have a name come last. --at lists the disks in
/// another directory, such as a mount directory of `iosched mount`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LsArgs {
    /// Disk to list: sda, /dev/sda, a mount point or a file on the disk [default: all disks of the kernel, and named
    /// served disks]
    ///
    /// Name a served disk as live:NAME, or give its mount directory or its control socket.
    #[arg(value_name = "DISK", conflicts_with = "at", value_hint = ValueHint::AnyPath)]
    disk: Option<PathBuf>,

    /// Use the disks in this directory, or this one disk, instead of the kernel's disks
    #[arg(long, value_name = "DIR|DISK", value_hint = ValueHint::AnyPath)]
    at: Option<PathBuf>,

    /// Include drives without a medium, and loop devices without a file
    #[arg(long)]
    all: bool,

    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  iosched ls
  iosched ls --json
  iosched ls /mnt/disk
  iosched ls live:db";

pub(crate) fn run(args: &LsArgs) -> Result<()> {
    let at = args.at.as_deref().or(args.disk.as_deref());
    let mut disks = Disks::open(at.unwrap_or(Path::new(SYS_BLOCK)))?;
    if disks.are_the_kernels {
        let listed = KernelDisk::all(&disks);
        if args.json {
            return output::json(&listed);
        }
        let lives = if at.is_none() { lives() } else { Vec::new() };
        let table = shown::kernels(&listed, args.all || at.is_some(), Look::of_standard_output());
        return output::print(&format!("{table}{}{}", shown::of_cgroups(&listed), shown::live(&lives)));
    }
    let listed: Vec<_> = disks.disks.clone().iter().map(|disk| DiskSummary::read(&mut disks, disk)).collect();
    if args.json {
        return output::json(&listed);
    }
    output::print(&shown::served(&listed, Look::of_standard_output()))
}
