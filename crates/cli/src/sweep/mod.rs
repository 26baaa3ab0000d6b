//! `iosched sweep`: many comparisons, and what a fleet gains.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};

#[cfg(not(feature = "sweep"))]
mod absent;
#[cfg(feature = "sweep")]
mod present;
#[cfg(not(feature = "sweep"))]
use absent as present;

/// Compare schedulers for many workloads, on many devices, with many seeds
///
/// A plan says in TOML which workloads, devices, schedulers and seeds are crossed; each workload on each device with
/// each seed is a comparison of its own, and what it gives goes into a dataset of Parquet files as soon as it is there.
/// A sweep that was stopped, or extended, makes what is missing: a comparison is known by all that goes into it, the
/// content of the trace and the version of iosched included. A workload that cannot be read is told at the end, and
/// stops nothing.
///
/// In the end it is said which setting each volume (a workload on a device) should have, and what all gain together by
/// one setting for all, by one for each device, or by one for each volume.
///
/// On more machines than one the same plan is swept by python -m iosched.sweep, with Ray or Dask.
///
/// Ctrl-C finishes the comparisons under way and begins no others; a second Ctrl-C ends those, too, and they are made
/// the next time.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// The plan
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    plan: PathBuf,

    /// The dataset: a directory, which is made if it is not there
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, required_unless_present = "dry_run")]
    output: Option<PathBuf>,

    /// Only say what the plan is, and how long it takes and how much memory it needs, by trying a few of its
    /// comparisons
    #[arg(long)]
    dry_run: bool,

    /// Comparisons at a time; changes nothing but the time it takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// The figure that settings are chosen by, such as sync_mean, sync_p99, throughput or finish
    #[arg(short, long, value_name = "FIGURE", default_value = "sync_mean")]
    figure: String,

    /// Write what was found, one HTML page, to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// Print what was found as one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: crate::output::WriteArgs,
}

const EXAMPLES: &str = "\
Examples:
  iosched sweep docs/examples/sweep.toml --dry-run
  iosched sweep docs/examples/sweep.toml -o results
  iosched sweep fleet.toml -o results --figure sync_p99 --report fleet.html

A plan:
  workloads = [\"traces/*.csv\", \"jobs/oltp.fio\"]
  devices = [\"sata-7200\", \"nvme\"]
  schedulers = [\"mq-deadline\", \"bfq\", \"kyber\", \"none\"]
  runs = 10";

pub(crate) fn run(args: &SweepArgs) -> Result<ExitCode> {
    present::run(args)
}
