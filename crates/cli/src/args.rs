//! The command line, declared once: parsing, help, man pages and completions come from here.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use iosched::{Registered, Registry, Setting};
use iosched_lab::EQUAL_WITHIN_PERCENT;

use crate::device::DeviceCommand;
use crate::output::WriteArgs;

/// Choose, tune and run I/O schedulers, with evidence.
///
/// Without a command, compares noop, deadline and cfq on a recorded pgbench run that comes with iosched, on a modelled
/// 7200 rpm SATA disk: what `iosched compare` does without options.
///
/// Exit status: 0 if all went well; 1 if something failed; 2 if the command line, a setting or a file's format is wrong;
/// 130 if Ctrl-C ended it early.
#[derive(Debug, Parser)]
#[command(name = "iosched", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compare(Box<CompareArgs>),
    Calibrate(Box<crate::calibrate::CalibrateArgs>),
    Tune(Box<crate::tune::TuneArgs>),
    Advise(Box<crate::advise::AdviseArgs>),
    Reproduce(crate::reproduce::ReproduceArgs),
    Serve(Box<crate::serve::ServeArgs>),
    Top(crate::top::TopArgs),
    /// Make a report of records, without running anything again
    ///
    /// The report is one HTML page that needs nothing else: tables and verdicts, latency distributions, throughput and
    /// shares over time, slices, and how to make the records again. The same records give the same page.
    Report {
        /// A file that `iosched compare`, `tune` or `calibrate` left
        #[arg(value_name = "RECORDS", value_hint = ValueHint::FilePath)]
        records: Option<PathBuf>,
        /// Of the last comparison that was given no --records
        #[arg(long, conflicts_with = "records")]
        last: bool,
        /// The page to write; - for standard output [default: the name of RECORDS, ending in .html; last.html with
        /// --last]
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        #[command(flatten)]
        write: WriteArgs,
    },
    /// Read, convert and change traces
    #[command(subcommand)]
    Trace(crate::trace::TraceCommand),
    /// Tell about modelled devices
    #[command(subcommand)]
    Device(DeviceCommand),
    /// Tell about schedulers and what can be set of them
    #[command(subcommand)]
    Elevator(ElevatorCommand),
    /// Make profiles of what others know of devices
    #[command(subcommand)]
    Import(crate::import::ImportCommand),
    /// Compare models with what was measured of real devices
    #[command(subcommand)]
    Validate(crate::validate::ValidateCommand),
    /// Check fio job files
    #[command(subcommand)]
    Job(crate::job::JobCommand),
    Mount(crate::mount::MountArgs),
    Ublk(Box<crate::ublk::UblkArgs>),
    Ls(crate::ls::LsArgs),
    Get(crate::get::GetArgs),
    Set(crate::set::SetArgs),
    Restore(crate::restore::RestoreArgs),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    Man(crate::man::ManArgs),
}

/// Runs of each setting if nothing is said, and at most if they end when it is sure.
const RUNS: u32 = 10;
const RUNS_UNTIL_SURE: u32 = 60;

/// Say which scheduler and settings serve a workload best on a device, and how sure that is.
///
/// In simulation, on a modelled device (--device); or on a real one, under the kernel's own schedulers (--on), where also any other
/// command can be compared, as hyperfine would: what fio, iozone, fs_mark, fdtree, dd and pgbench print is read.
///
/// Every setting is run on the same workload and the same seeds: run i of one setting is compared with run i of the
/// others. With several devices that is done on each of them, and the end says which setting wins where.
///
/// There are three verdicts on a figure, from the 95 % confidence interval of the mean paired difference to the
/// baseline. Settings are equal if all of it is within --equal-within; else one is better or worse if it leaves no
/// doubt that there is a difference; else it cannot be told, and how many runs would tell is said. The interval is
/// widened by how wrong the device's profile is known to be. Beside it, * marks what the published rule calls a
/// difference: means whose standard deviations do not reach each other.
///
/// Fairness is Jain's index of the processes' slowdowns: mean latency in company over mean latency alone, on the same
/// device under the same setting; of the 16 busiest processes with 30 I/Os or more.
///
/// Ctrl-C keeps the runs that are finished, after the current ones; a second Ctrl-C ends those, too. Only complete
/// rounds (one run of every setting on every device) count.
#[derive(Args, Debug)]
#[command(after_help = COMPARE_EXAMPLES)]
pub(crate) struct CompareArgs {
    /// What to do: a trace in any format `iosched trace info` reads (- for standard input), a fio job file (*.fio,
    /// *.job, *.ini), a task file (*.toml), or the command line of an application, such as "iozone -s 64 -e -i 0",
    /// "fs_mark -S 1 -n 100" or "dd if=/dev/zero of=file bs=1M count=100 conv=fsync" [default: a recorded pgbench run
    /// that comes with iosched]
    #[arg(short, long, value_name = "FILE|COMMAND", value_hint = ValueHint::FilePath)]
    pub(crate) workload: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: crate::reading::Reading,

    /// The device to do it to: a profile of `iosched device list`, or a file (with a / or *.toml); once per device, to
    /// see which setting wins where [default: sata-7200]
    #[arg(short = 'd', long = "device", value_name = "PROFILE|FILE", conflicts_with = "on")]
    given_devices: Vec<String>,

    /// The machine that an application runs on: desktop-2013, phenom-ii-2009, server-2005 or server-2010, or a file
    /// (with a / or *.toml) [default: server-2010]
    #[arg(short, long, value_name = "MACHINE|FILE")]
    pub(crate) machine: Option<String>,

    /// A scheduler and what to set of it or of the queue, as cfq or cfq:slice_idle=0,quantum=32,nr_requests=512;
    /// once per setting to compare; all stands for every elevator there is, today for those that Linux has today
    /// [default: noop, deadline and cfq]
    #[arg(short, long = "scheduler", value_name = "SETTING|all|today")]
    pub(crate) schedulers: Vec<String>,

    /// The setting the others are compared with, written as with --scheduler [default: the first one given;
    /// deadline if none is given]
    #[arg(short, long, value_name = "SETTING")]
    pub(crate) baseline: Option<String>,

    #[command(flatten)]
    pub(crate) real: crate::compare::RealArgs,

    /// Runs of each setting on each device; in simulation they differ in where the platters are at the start and in arrivals within the
    /// recording's resolution [default: 10; with --until-sure at most 60]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,

    /// Decides everything that is left to chance; the same seed gives the same figures
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::args::whole(0..=u64::MAX))]
    pub(crate) seed: u64,

    /// Runs at a time; changes nothing but the time it takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,

    /// How a trace's times are used [default: closed if the recording says when I/Os completed, and no --speed is given;
    /// else open]
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) replay: Option<ReplayMode>,

    /// How many times faster than recorded I/Os arrive, in open replay
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub(crate) speed: Option<f64>,

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

    /// Write the first run of each setting on each device to this directory, in blktrace's binary format: look at it with
    /// blkparse -i DIR/cfq, and what blkparse -d makes of it with btt; decisions of cfq are messages in it
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) blktrace: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

impl CompareArgs {
    /// The modelled devices.
    pub(crate) fn devices(&self) -> Vec<String> {
        let given = &self.given_devices;
        if given.is_empty() { vec![crate::compare::DEVICE_DEFAULT.to_owned()] } else { given.clone() }
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

/// How differences are judged, and how much is told of them.
#[derive(Args, Debug)]
pub(crate) struct VerdictArgs {
    /// Differences within so many per cent of the baseline matter to nobody: settings that are no further apart for
    /// sure are equal
    #[arg(long, value_name = "PERCENT", default_value_t = EQUAL_WITHIN_PERCENT, value_parser = crate::compare::percent)]
    pub(crate) equal_within: f64,

    /// Print everything: all figures, every doubt, what is said of each setting and each device
    #[arg(long)]
    pub(crate) details: bool,
}

impl VerdictArgs {
    /// As options of the command that makes the same records.
    pub(crate) fn options(&self, option: &mut impl FnMut(&str, String)) {
        if self.equal_within != EQUAL_WITHIN_PERCENT {
            option("--equal-within", self.equal_within.to_string());
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
    /// The first run of each setting on each device as fio's JSON: of one run fio's document, of several a list of them;
    /// the workload is a job file
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
  iosched compare --on /srv/test --workload mixed.fio --scheduler none \\
      --scheduler bfq --until-sure 3
  iosched compare --on /dev/sdb --workload random-read.fio --run-for 60 \\
      --warm-up 5
  iosched compare --on /srv/test --scheduler mq-deadline --scheduler bfq \\
      -- fs_mark -d /srv/test/f -n 1000 -s 65536";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Each process keeps its order and its think times: an I/O is sent its recorded think time after the completion of
    /// the one that its process waited for. Right where the recorded device and this one are not equally fast, since
    /// processes that wait for I/O send the next one later on a slower device
    Closed,
    /// I/Os arrive when they did in the recording, however fast the device is. Right where load comes from outside and
    /// waits for nothing, on a device about as fast as the recorded one; a slower one is buried in requests
    Open,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ElevatorCommand {
    /// List the schedulers
    List,
    /// Say what can be set of a scheduler and of its queue
    Show {
        /// Its name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// What one --scheduler names: a setting, or several elevators with their defaults.
pub(crate) fn settings(text: &str) -> Result<Vec<Setting>, String> {
    let defaults = |wanted: fn(&Registered) -> bool| {
        let linux = Registry::linux();
        let elevators = linux.elevators().iter().filter(|elevator| wanted(elevator));
        elevators.map(|elevator| Setting::defaults(elevator.name)).collect()
    };
    match text {
        "all" => Ok(defaults(|_| true)),
        "today" => Ok(defaults(|elevator| elevator.until.is_none())),
        _ => setting(text).map(|setting| vec![setting]),
    }
}

pub(crate) fn setting(text: &str) -> Result<Setting, String> {
    text.parse().map_err(|error: iosched::SettingError| error.to_string())
}

/// A whole number in `range`. One below 0 is out of range, as any other.
pub(crate) fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| match text.parse::<i128>() {
        Ok(number) => {
            let found = u64::try_from(number).ok().filter(|number| range.contains(number));
            found.ok_or_else(|| format!("{text} is not in {}..={}", range.start(), range.end()))
        }
        Err(_) => Err(format!("is no whole number in {}..={}", range.start(), range.end())),
    }
}

/// The command line. A negative number is a value, which is then out of range, and no option that does not exist.
pub(crate) fn command() -> clap::Command {
    fn numbers(command: clap::Command) -> clap::Command {
        let takes = |argument: &clap::Arg| argument.get_action().takes_values();
        let command = command.mut_args(|own| if takes(&own) { own.allow_negative_numbers(true) } else { own });
        command.mut_subcommands(numbers)
    }
    numbers(Cli::command())
}

pub(crate) fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| speed.is_finite() && (1e-6..=1e6).contains(speed));
    speed.ok_or_else(|| "a speed is a number from 0.000001 to 1000000, such as 2 or 0.5".to_owned())
}
