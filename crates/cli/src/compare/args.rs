//! The arguments of `iosched compare`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use iosched::KernelVersion;
use iosched_lab::goal::{Goal, GoalOrConstraint};
use iosched_lab::request::DEVICE;

use super::RealArgs;
use crate::options::{Reading, ReplayMode, VerdictArgs, sample, speed, whole};
use iosched_terminal::output::WriteArgs;

/// Default number of runs of each setting, and the default maximum with --until-sure.
const RUNS: u32 = 10;
const RUNS_UNTIL_SURE: u32 = 60;

/// Compare schedulers and settings for a workload on a device.
///
/// With --device, iosched simulates the runs on a modelled device. With --on, iosched makes the
/// runs on a real device, under the kernel's schedulers. On a real device, you can also compare the
/// speed of any command, as with hyperfine. If the command is fio, iozone, fs_mark, fdtree, dd or
/// pgbench, iosched also reads the metrics that the command prints.
///
/// Every setting runs the same workload with the same seeds. iosched compares run 1 of one setting
/// with run 1 of the others, and so on. With several devices, iosched compares the settings on each
/// device. The end of the output names the best setting for each device.
///
/// For each metric, iosched computes the mean difference between a setting and the baseline. The
/// output shows the confidence interval of this difference. The setting is equal to the baseline if
/// all differences in the interval are smaller than --equal-within. The setting is better or worse if the interval
/// excludes 0. Otherwise the verdict is "cannot tell", and the output says how many runs a clear
/// verdict needs. With 95 % confidence, all intervals contain the true differences (Holm's
/// correction). On a modelled device, iosched widens the intervals by the known error of the
/// profile.
///
/// Fairness says how equally the processes slow each other down, from 0 (unequally) to 1 (equally).
/// Fairness is Jain's index of the slowdowns of the processes. The slowdown of a process is its
/// mean latency while the others run, divided by its mean latency while it runs alone. Only the 16
/// busiest processes count, and only if they have at least 30 I/Os.
///
/// After Ctrl-C, iosched finishes the current runs, starts no others, and keeps the results. A
/// second Ctrl-C or SIGTERM stops the current runs too. The results contain only complete rounds. A
/// round is one run of every setting on every device.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Workload to run: a trace, a fio job file, a task file or a command line [default: a recorded pgbench run that
    /// comes with iosched]
    ///
    /// A trace can have any format that `iosched trace info` reads. The name of a fio job file ends
    /// in .fio, .job or .ini. The name of a task file ends in .toml. If FILE is -, iosched reads the
    /// workload from standard input. You can also give the command line of an application that iosched
    /// simulates, such as "iozone -s 64 -e -i 0" or "fs_mark -S 1 -n 100".
    #[arg(short, long, value_name = "FILE|COMMAND", value_hint = ValueHint::FilePath)]
    pub(crate) workload: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: Reading,

    /// Device to simulate: a profile from `iosched device list`, or a file whose name contains a /
    /// or ends in .toml [default: sata-7200]
    ///
    /// To compare the settings on several devices, separate them with commas or repeat the option.
    #[arg(short = 'd', long = "device", value_name = "PROFILE|FILE,…", conflicts_with = "on")]
    given_devices: Vec<String>,

    /// Machine model for applications and for fio jobs with buffered I/O [default: linux-6.12, or server-2010 for an
    /// application with a scheduler that Linux no longer has]
    ///
    /// The models are desktop-2013, linux-6.12, phenom-ii-2009, server-2005 and server-2010. You
    /// can also give a file; its name must contain a / or end in .toml. The default is linux-6.12.
    /// For an application, the default is server-2010 if you compare a scheduler that Linux no
    /// longer has.
    #[arg(short, long, value_name = "MACHINE|FILE")]
    pub(crate) machine: Option<String>,

    /// Settings to compare, such as none,bfq or cfq:slice_idle=0,quantum=32; separate them with commas or repeat the
    /// option [default: all schedulers of today's Linux, and cfq; with --on, all that the device offers]
    ///
    /// A setting is a scheduler, with values for its tunables and for queue attributes such as
    /// nr_requests=512. cfq:slice_idle=0..8/2 makes one setting for each value from 0 to 8 in steps
    /// of 2. "all" stands for every scheduler that iosched has. "today" stands for the schedulers
    /// of today's Linux.
    #[arg(short, long = "scheduler", value_name = "SETTING,…|all|today")]
    pub(crate) schedulers: Vec<String>,

    /// Version of Linux to simulate, such as 6.1, 6.1.21, debian-12 or rhel9; repeat the option to
    /// compare versions [default: 6.12]
    ///
    /// docs/kernels.md lists the rules that differ. With several versions, iosched compares each setting under each
    /// version. The name of such a setting is, for example, "mq-deadline @ 6.1". You can also give this name to
    /// --scheduler.
    #[arg(long = "kernel", value_name = "VERSION", conflicts_with = "on")]
    pub(crate) kernels: Vec<KernelVersion>,

    /// Setting to compare the others with [default: the first --scheduler]
    ///
    /// Without --scheduler, and for the sets "all" and "today", the default is mq-deadline. With
    /// --on, the default is the present setting of the device, if you compare this setting.
    /// Otherwise the default is the first compared setting.
    #[arg(short, long, value_name = "SETTING")]
    pub(crate) baseline: Option<String>,

    /// Metric that matters, such as "p99(db)", "mean(sync)" or "throughput(backup)"; repeat the option for more
    /// [default: time or throughput, latencies, fairness, and metrics that a program reports]
    ///
    /// The decision and --until-sure consider only the goals. The first goal counts most. iosched
    /// widens the confidence intervals to correct for multiple comparisons. The intervals of metrics
    /// that are goals become less wide. Therefore, verdicts about goals need fewer runs.
    #[arg(short, long = "goal", value_name = "GOAL", value_parser = goal)]
    pub(crate) goals: Vec<Goal>,

    /// Runs of each setting on each device [default: 10; with --until-sure, at most 60]
    ///
    /// Simulated runs differ in the initial position of the platters. If the workload is a trace,
    /// the arrival times also differ, within the resolution of the trace.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Seed of the random numbers; the same seed gives the same results
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub(crate) seed: u64,

    /// Number of runs at the same time; affects only how long the comparison takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// How to use the times in a trace [default: "open" if --speed is given or the trace has no completion times;
    /// otherwise "closed"]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) replay: Option<ReplayMode>,

    /// Factor for the rate of arrivals in open replay; with 2, I/Os arrive twice as fast as recorded
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub(crate) speed: Option<f64>,

    /// Do not compute fairness; iosched then skips the runs of each process alone, which take up to
    /// half of the time
    #[arg(long)]
    pub(crate) no_fairness: bool,

    #[command(flatten)]
    pub(crate) verdicts: VerdictArgs,

    /// Format of the output
    #[arg(long, value_enum, value_name = "FORMAT", group = "format", default_value_t = OutputFormat::Text)]
    output_format: OutputFormat,

    /// Same as --output-format json
    #[arg(long, group = "format")]
    json: bool,

    /// Same as --output-format csv
    #[arg(long, group = "format")]
    csv: bool,

    /// Same as --output-format markdown
    #[arg(long, group = "format")]
    markdown: bool,

    /// Write the records to this file; iosched adds a line after each run [default: last.jsonl in
    /// $XDG_STATE_HOME/iosched or ~/.local/state/iosched]
    ///
    /// `iosched report --last` reads the default file.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) records: Option<PathBuf>,

    /// Write a report (one HTML page) to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,

    /// Write the scheduling decisions of the first run of each setting and device to this file, as JSON lines
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) decisions: Option<PathBuf>,

    /// Write the first run of each setting and device to this directory, as a binary trace of blktrace
    ///
    /// To read a trace of the scheduler cfq, run `blkparse -i DIR/cfq`. For btt, first convert the
    /// trace with `blkparse -d`. CFQ's decisions are messages in the trace.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) blktrace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    // This must be the last field, because its heading would also apply to options after it.
    #[command(flatten)]
    pub(crate) real: RealArgs,
}

fn goal(text: &str) -> Result<Goal, String> {
    match text.parse::<GoalOrConstraint>().map_err(|error| error.to_string())? {
        GoalOrConstraint::Goal(goal) => Ok(goal),
        GoalOrConstraint::Constraint(constraint) => Err(format!(
            "iosched compare does not check limits; write only the metric, \"{}\". To search for a setting that \
             meets a \
             limit, use iosched tune or iosched advise",
            constraint.measure
        )),
    }
}

impl CompareArgs {
    /// Returns the names of the modelled devices.
    pub(crate) fn devices(&self) -> Vec<String> {
        if self.given_devices.is_empty() {
            return vec![DEVICE.to_owned()];
        }
        // The name of a file may contain commas.
        let names = |given: &String| match Path::new(given).exists() {
            true => vec![given.clone()],
            false => given.split(',').map(str::to_owned).collect(),
        };
        self.given_devices.iter().flat_map(names).collect()
    }

    /// Returns a sentence if the workload or the device is the default one. The sentence says how
    /// to choose another one.
    pub(crate) fn input(&self) -> Option<String> {
        let is_default = self.given_devices.is_empty() && self.real.on.is_none();
        let is_sample = self.workload.is_none() && self.real.command.is_empty();
        sample(is_sample, is_default, "--device PROFILE or --on DEVICE")
    }

    /// Returns the number of runs of each setting.
    pub(crate) fn runs(&self) -> u32 {
        self.runs.unwrap_or(if self.real.until_sure.is_some() { RUNS_UNTIL_SURE } else { RUNS })
    }

    /// Returns the format of the output.
    pub(crate) const fn output_format(&self) -> OutputFormat {
        match (self.json, self.csv, self.markdown) {
            (true, ..) => OutputFormat::Json,
            (_, true, _) => OutputFormat::Csv,
            (.., true) => OutputFormat::Markdown,
            _ => self.output_format,
        }
    }
}

/// Formats of the output of `iosched compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Tables and sentences for people
    Text,
    /// One JSON document with everything; for several devices, a list of results and an overview
    Json,
    /// Comma-separated lines, one per metric and setting; for several devices, the first column names the device
    Csv,
    /// Tables in Markdown
    Markdown,
    /// fio's JSON, only for fio job files: one document for the first run of each setting on each device. Several
    /// documents form a list
    FioJson,
}

const COMPARE_EXAMPLES: &str = "Examples:
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
