//! `iosched sweep`: many comparisons, and the gain of a fleet.

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

/// Compare schedulers for many workloads, devices and seeds
///
/// A plan in TOML lists workloads, devices, schedulers and seeds. Each combination of workload,
/// device and seed is one comparison. When a comparison ends, iosched adds its results to a dataset
/// of Parquet files. If you stop a sweep or extend its plan, the next sweep runs only the missing
/// comparisons. If an input of a comparison changes, the next sweep runs the comparison again. The
/// inputs include the content of a trace and the version of iosched. If iosched cannot read a
/// workload, the sweep continues without this workload, and lists it at the end.
///
/// In a sweep, each pair of a workload and a device is called a volume. At the end, the output
/// shows the best setting for each volume. Then the output compares the total gain of three
/// choices: one setting for all volumes, one setting for each device, and one setting for each
/// volume.
///
/// To sweep a plan on several machines, use `python -m iosched.sweep` with Ray or Dask.
///
/// After Ctrl-C, iosched finishes the current comparisons and starts no others. A second Ctrl-C or
/// SIGTERM stops the current comparisons too; the next sweep runs them again.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepArgs {
    /// Plan of the sweep, a TOML file
    #[arg(value_name = "PLAN", value_hint = ValueHint::FilePath)]
    plan: PathBuf,

    /// Directory of the dataset; created if it does not exist
    #[arg(short = 'o', long = "output", value_name = "DIR", value_hint = ValueHint::DirPath,
        required_unless_present = "dry_run")]
    dataset: Option<PathBuf>,

    /// Only print the plan, and estimate its time and memory from a few of its comparisons
    #[arg(long)]
    dry_run: bool,

    /// Number of comparisons at the same time; affects only how long the sweep takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Metric to choose settings by, such as sync_mean, sync_p99, throughput or finish
    #[arg(short, long, value_name = "METRIC", default_value = "sync_mean")]
    metric: String,

    /// Write a report (one HTML page) to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    /// Print the result as one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: iosched_terminal::output::WriteArgs,
}

const EXAMPLES: &str = "In packages, docs/examples is /usr/share/doc/iosched/examples.

Examples:
  iosched sweep docs/examples/sweep.toml --dry-run
  iosched sweep docs/examples/sweep.toml -o results
  iosched sweep fleet.toml -o results --metric sync_p99 --report fleet.html

A plan:
  workloads = [\"traces/*.csv\", \"jobs/oltp.fio\"]
  devices = [\"sata-7200\", \"nvme\"]
  schedulers = [\"mq-deadline\", \"bfq\", \"kyber\", \"none\"]
  runs = 10";

pub(crate) fn run(args: &SweepArgs) -> Result<ExitCode> {
    present::run(args)
}
