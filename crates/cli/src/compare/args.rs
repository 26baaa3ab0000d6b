//! What `iosched compare` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use iosched_lab::asked::DEVICE;
use iosched_lab::goal::{Goal, Wish};

use super::RealArgs;
use crate::options::{Reading, ReplayMode, VerdictArgs, speed, whole};
use crate::output::WriteArgs;

/// Runs of each setting if nothing is said, and at most if they end when it is sure.
const RUNS: u32 = 10;
const RUNS_UNTIL_SURE: u32 = 60;

/// Say which scheduler and settings serve a workload best on a device, and how sure that is.
///
/// In simulation, on a modelled device (--device); or on a real one, under the kernel's own schedulers (--on), where
/// also any other command can be compared, as hyperfine would: what fio, iozone, fs_mark, fdtree, dd and pgbench print
/// is read.
///
/// Every setting is run on the same workload and the same seeds: run i of one setting is compared with run i of the
/// others. With several devices that is done on each of them, and the end says which setting wins where.
///
/// There are three verdicts on a metric. Each follows from the confidence interval that is shown with it, of the mean
/// paired difference to the baseline. Settings are equal if the whole interval is within --equal-within. Else one is
/// better or worse if the interval does not hold 0. Else nobody can tell, and the verdict says how many runs would.
/// Intervals hold with 95 % confidence for all metrics and settings together (Holm), and are widened by the error that
/// the device's profile is known to have. The mark * is for what the published rule calls a difference: means whose
/// standard deviations do not reach each other.
///
/// Fairness is Jain's index of the processes' slowdowns: mean latency in company over mean latency alone, on the same
/// device under the same setting; of the 16 busiest processes with 30 I/Os or more.
///
/// Ctrl-C keeps the runs that are finished, after the current ones; a second Ctrl-C ends those, too. Only complete
/// rounds (one run of every setting on every device) count.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// What to do: a trace in any format `iosched trace info` reads, a fio job file (*.fio, *.job, *.ini), a task file
    /// (*.toml), - for any of these on standard input, or the command line of an application, such as
    /// "iozone -s 64 -e -i 0", "fs_mark -S 1 -n 100" or "dd if=/dev/zero of=file bs=1M count=100 conv=fsync"
    /// [default: a recorded pgbench run that comes with iosched]
    #[arg(short, long, value_name = "FILE|COMMAND", value_hint = ValueHint::FilePath)]
    pub(crate) workload: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// The device to do it to: a profile of `iosched device list`, or a file (with a / or *.toml); once per device, to
    /// see which setting wins where [default: sata-7200]
    #[arg(short = 'd', long = "device", value_name = "PROFILE|FILE", conflicts_with = "on")]
    given_devices: Vec<String>,

    /// The machine that an application, or fio jobs with buffered I/O, run on: desktop-2013, linux-6.12, phenom-ii-2009,
    /// server-2005 or server-2010, or a file (with a / or *.toml) [default: linux-6.12; server-2010 for an application
    /// if a scheduler that Linux no longer has is among those compared]
    #[arg(short, long, value_name = "MACHINE|FILE")]
    pub(crate) machine: Option<String>,

    /// A scheduler and what to set of it or of the queue, as cfq or cfq:slice_idle=0,quantum=32,nr_requests=512; once
    /// per setting to compare; cfq:slice_idle=0..8/2 scans from 0 to 8 in steps of 2, a setting each; all stands for
    /// every elevator there is, today for those that Linux has today [default: those that Linux has today, and cfq;
    /// with --on, those that the device has]
    #[arg(short, long = "scheduler", value_name = "SETTING|all|today")]
    pub(crate) schedulers: Vec<String>,

    /// The setting the others are compared with, written as with --scheduler [default: the first one given;
    /// mq-deadline if none is given]
    #[arg(short, long, value_name = "SETTING")]
    pub(crate) baseline: Option<String>,

    /// The metric that counts, as "p99(db)", "mean(sync)" or "throughput(backup)"; once for each. The answer and
    /// --until-sure speak of goals alone, and the correction for many comparisons begins with them [default: time or
    /// throughput, latencies, fairness and what a program reports]
    #[arg(short, long = "goal", value_name = "GOAL", value_parser = goal)]
    pub(crate) goals: Vec<Goal>,

    #[command(flatten)]
    pub(crate) real: RealArgs,

    /// Runs of each setting on each device; in simulation they differ in where the platters are at the start and in
    /// arrivals within the recording's resolution [default: 10; with --until-sure at most 60]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Decides everything that is left to chance; the same seed gives the same figures
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,

    /// Runs at a time; changes nothing but the time it takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// How a trace's times are used [default: closed if the recording says when I/Os completed, and no --speed is
    /// given; else open]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) replay: Option<ReplayMode>,

    /// How many times faster than recorded I/Os arrive, in open replay
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub(crate) speed: Option<f64>,

    /// Leave out the runs of each process alone, up to half of the time; the metric fairness is
    /// then absent
    #[arg(long)]
    pub(crate) no_fairness: bool,

    #[command(flatten)]
    pub(crate) verdicts: VerdictArgs,

    /// What to print
    #[arg(long, value_enum, value_name = "FORMAT", group = "format", default_value_t = OutputFormat::Text)]
    output_format: OutputFormat,

    /// The same as --output-format json
    #[arg(long, group = "format")]
    json: bool,

    /// The same as --output-format csv
    #[arg(long, group = "format")]
    csv: bool,

    /// The same as --output-format markdown
    #[arg(long, group = "format")]
    markdown: bool,

    /// Where records go, line by line as runs finish [default: last.jsonl in $XDG_STATE_HOME/iosched or
    /// ~/.local/state/iosched, which `iosched report --last` shows]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) records: Option<PathBuf>,

    /// Write a report, one HTML page, to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Write every decision of the first run of each setting on each device to this file, as JSON lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) decisions: Option<PathBuf>,

    /// Write the first run of each setting on each device to this directory, in blktrace's binary format: look at it
    /// with blkparse -i DIR/cfq, and what blkparse -d makes of it with btt; decisions of cfq are messages in it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) blktrace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

fn goal(text: &str) -> Result<Goal, String> {
    match text.parse::<Wish>().map_err(|error| error.to_string())? {
        Wish::Goal(goal) => Ok(goal),
        Wish::Constraint(own) => {
            Err(format!("a comparison keeps no bounds: write \"{}\"; iosched tune and advise take bounds", own.measure))
        }
    }
}

impl CompareArgs {
    /// The modelled devices.
    pub(crate) fn devices(&self) -> Vec<String> {
        let given = &self.given_devices;
        if given.is_empty() { vec![DEVICE.to_owned()] } else { given.clone() }
    }

    /// Runs of each setting.
    pub(crate) fn runs(&self) -> u32 {
        self.runs.unwrap_or(if self.real.until_sure.is_some() { RUNS_UNTIL_SURE } else { RUNS })
    }

    /// What to print.
    pub(crate) const fn output_format(&self) -> OutputFormat {
        match (self.json, self.csv, self.markdown) {
            (true, ..) => OutputFormat::Json,
            (_, true, _) => OutputFormat::Csv,
            (.., true) => OutputFormat::Markdown,
            _ => self.output_format,
        }
    }
}

/// What `iosched compare` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Tables and sentences for people
    Text,
    /// Everything as one JSON document; of several devices with a list of their results and an overview
    Json,
    /// A line per figure and setting, comma-separated; of several devices with a first column that names them
    Csv,
    /// Tables in Markdown
    Markdown,
    /// The first run of each setting on each device as fio's JSON: of one run fio's document, of several a list of
    /// them; the workload is a job file
    FioJson,
}

const COMPARE_EXAMPLES: &str = "\
Examples:
  iosched compare --workload server.blktrace --scheduler deadline \\
      --scheduler cfq:slice_idle=0
  iosched compare --workload server.blktrace --replay open --speed 2
  iosched compare --workload server.blktrace --device sata-7200 \\
      --device sata-ssd --device ./mine.toml
  iosched compare --workload \"iozone -s 64 -e -i 0\" --device san-lun \\
      --scheduler deadline --scheduler cfq
  iosched compare --workload random-read.fio --scheduler cfq \\
      --output-format fio-json
  iosched compare --workload jobs.toml --device sata-ssd --runs 20 --csv
  iosched compare --workload mixed.fio --goal \"p99(db)\"
  iosched compare --scheduler deadline --scheduler cfq:slice_idle=0..8/2
  iosched compare --on /srv/test --workload mixed.fio --scheduler none \\
      --scheduler bfq --until-sure 3
  iosched compare --on /dev/sdb --workload random-read.fio --run-for 60 \\
      --warm-up 5
  iosched compare --on /srv/test --scheduler mq-deadline --scheduler bfq \\
      -- fs_mark -d /srv/test/f -n 1000 -s 65536";
