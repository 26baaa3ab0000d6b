//! `iosched validate DEVICE --profile P`: a profile beside the device it is of, on workloads that no fit saw.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched::{Registry, Setting};
use iosched_advise::battery::{
    Battery, BatteryError, Cell, FORMAT, Header, Judged, Measured, Outcome, RATE_WITHIN, Run, TAIL_WITHIN, simulate,
    trials, write_header, write_run,
};
use iosched_advise::calibrate::{Measurer, Target};
use iosched_disk::{Profile, is_path};
use iosched_kernel::StateDirectory;
use iosched_lab::request::{CommandLine, ns};
use iosched_lab::verify::{KernelBench, Limits, Verification, Work, for_records, verify};
use iosched_lab::{
    Control, EQUAL_WITHIN_PERCENT, Progress, Record, RunRecord, SettingRecord, grouped, workload_record,
};
use iosched_sim::{Limit, Replay};
use serde_json::json;

use crate::calibrate::{Place, is_model, open_device};
use crate::fail::{INTERRUPTED, usage};
use crate::options::seconds_above_0;
use crate::output::{Kind, Outputs, Records, WriteArgs, all_of, say};
use crate::show::Look;
use crate::watched::{Meter, on_interrupt};

/// The file of runs if none is named.
const RECORDS_DEFAULT: &str = "validation.jsonl";
/// What the first part of each run is that does not count.
const WARM_UP: u64 = 5;
/// Schedulers that a modelled device has.
const TODAY: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];
/// Width of the column that names schedulers.
const NAME_WIDTH: usize = 14;
/// A figure that varies more is marked.
const NOISY: f64 = 0.1;

#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    /// Device, file or directory to measure, as for `iosched calibrate`
    ///
    /// To try the command without a device, give a profile or a *.toml file.
    #[arg(value_name = "DEVICE|FILE|DIR|PROFILE", value_hint = ValueHint::AnyPath, required_unless_present = "from")]
    target: Option<String>,

    /// Profile to validate
    #[arg(short, long, value_name = "PROFILE|FILE", required = true)]
    profile: Option<String>,

    /// Write the profile with its trust and errors to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Allow writes to this device, which destroy its data; repeat the exact name of the device
    #[arg(long, value_name = "DEVICE", conflicts_with = "from")]
    destroy_data: Option<PathBuf>,

    /// Size of the file to measure in a directory, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = crate::options::whole(crate::calibrate::FILE_SIZE_MIB))]
    file_size: u64,

    /// Schedulers to run the workloads under; separate them with commas or repeat the option [default: all that the
    /// device offers]
    #[arg(short, long = "scheduler", value_name = "NAME,…", value_delimiter = ',', conflicts_with = "from")]
    schedulers: Vec<String>,

    /// Runs of each workload under each scheduler
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3, conflicts_with = "from",
        value_parser = clap::value_parser!(u32).range(2..=100))]
    runs: u32,

    /// Measured time of each run
    #[arg(long, value_name = "SECONDS", default_value_t = 1.5, conflicts_with = "from", value_parser = seconds_above_0)]
    run_for: f64,

    /// Write the runs to this file, a line as each one ends
    #[arg(long, value_name = "FILE", default_value = RECORDS_DEFAULT, conflicts_with = "from", value_hint = ValueHint::FilePath)]
    records: PathBuf,

    /// Measure nothing; compare the profile with the runs in this file
    #[arg(long, value_name = "RECORDS", value_hint = ValueHint::FilePath, conflicts_with = "target")]
    from: Option<PathBuf>,

    /// Seed for the positions of random I/Os and for the order of runs
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "from", value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: WriteArgs,
}

pub(super) fn run(args: &DeviceArgs) -> Result<ExitCode> {
    let named =
        args.profile.as_deref().ok_or_else(|| usage("missing the profile to validate: add --profile PROFILE"))?;
    let profile = Profile::load(named)?;
    let mut outputs = Outputs::new(args.write).prints("the figures").reads_all(&args.from);
    let out = outputs.optional("--output", args.output.as_ref(), Kind::Profile)?;
    let control = Arc::new(Control::new(1));
    on_interrupt(&control)?;
    let (measured, recorded) = match (&args.from, &args.target) {
        (Some(file), _) => (read(file)?, Ok(())),
        (None, Some(target)) => {
            let mut records = outputs.records(&args.records, Kind::Validation)?;
            let measured = measure(args, target, &mut records, &control)?;
            (measured, records.finish())
        }
        (None, None) => return Err(usage("missing the device to validate on, such as /dev/sdb")),
    };
    measured.warnings.iter().for_each(|warning| say!("warning: {warning}"));
    let interrupted = control.is_stopping();
    let bar = Meter::new("simulating {bar:30} {pos} of {len}");
    let battery = Battery::of(&measured, &profile, |done, of| {
        bar.set(done, of);
    });
    bar.clear();
    let battery = match battery {
        Err(BatteryError::TooLittle) if interrupted => {
            eprintln!("interrupted before the first measurement");
            recorded?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        battery => battery?,
    };
    let made = match out {
        Some(out) => {
            Some(out.text(&(preface(named, &measured.header, &battery) + &battery.trusted(profile.clone()).to_toml()?)))
        }
        None => None,
    };
    let text = if args.json { as_json(&measured, &profile, &battery)? } else { as_text(&measured, &profile, &battery) };
    all_of([recorded].into_iter().chain(made).chain([crate::show::answer(&text, args.json)]))?;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn read(file: &Path) -> Result<Measured> {
    let name = file.display().to_string();
    let opened = File::open(file).map_err(|source| usage(BatteryError::Io { file: name.clone(), source }))?;
    Measured::read(BufReader::new(opened), &name).map_err(usage)
}

/// Every workload under every scheduler, some times.
fn measure(args: &DeviceArgs, target: &str, records: &mut Records, control: &Arc<Control>) -> Result<Measured> {
    if is_model(target) {
        if args.destroy_data.is_some() {
            return Err(usage("--destroy-data is only for block devices; a model has no data"));
        }
        let device = Profile::load(target)?;
        let header = header(args, Target::of_card(device.name(), device.card()), &TODAY.map(str::to_owned))?;
        return simulated(&header, &device, records, control);
    }
    let never = AtomicBool::new(false);
    let opened = open_device(
        &Place { name: target, destroy_data: args.destroy_data.as_deref(), file_size_mib: args.file_size },
        &never,
    )?;
    let Some(disk) = opened.place().block_device().map(iosched_kernel::BlockDevice::disk) else {
        return Err(usage(format!(
            "{target}: is not on a block device of this machine, so there is no scheduler to \
             set; name a disk or a directory on one"
        )));
    };
    let header = header(args, opened.target().clone(), &disk.schedulers())?;
    on_device(&header, opened.place(), records, control)
}

fn header(args: &DeviceArgs, target: Target, there: &[String]) -> Result<Header> {
    let named = args.schedulers.iter().map(|name| name.trim().to_owned());
    let schedulers = if args.schedulers.is_empty() { there.to_vec() } else { named.collect() };
    if schedulers.is_empty() {
        return Err(usage(format!("{}: has no scheduler of its own", target.name)));
    }
    if let Some(wrong) = schedulers.iter().find(|name| !there.contains(name)) {
        let there = there.join(", ");
        return Err(usage(format!(
            "--scheduler {wrong}: {} does not offer this scheduler now; it offers {there}",
            target.name
        )));
    }
    if let Some(wrong) = schedulers.iter().find(|name| Setting::parse(name, &Registry::linux()).is_err()) {
        return Err(usage(format!(
            "--scheduler {wrong}: iosched does not have this scheduler, so it cannot predict it"
        )));
    }
    let mut line = CommandLine::of("validate");
    line.word(&target.name);
    line.options("--profile", &args.profile);
    line.options("--destroy-data", args.destroy_data.iter().map(|path| path.display()));
    line.options("--scheduler", &schedulers);
    line.option("--runs", args.runs);
    line.option("--run-for", args.run_for);
    line.option("--seed", args.seed);
    Ok(Header {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: line.to_string(),
        target,
        schedulers,
        rounds: args.runs,
        seed: args.seed,
        warm_up_ns: ns(args.run_for) / WARM_UP,
        measured_ns: ns(args.run_for),
    })
}

/// Runs on their way into the file and to whoever judges them.
struct Taking<'r> {
    records: &'r mut Records,
    measured: Measured,
    bar: Meter,
}

impl<'r> Taking<'r> {
    fn begin(header: &Header, records: &'r mut Records) -> Result<Self> {
        records.line_of(|out| write_header(out, header));
        let bar = Meter::new("measuring {bar:30} {pos} of {len} runs, {eta} to go: {msg}");
        let all = trials(header.target.writable).len() * header.schedulers.len() * header.rounds as usize;
        bar.set_length(all as u64);
        Ok(Self { records, measured: Measured::new(header.clone()), bar })
    }

    fn take(&mut self, run: Run) {
        self.records.line_of(|out| write_run(out, &run));
        self.measured.runs.push(run);
        self.bar.advance();
    }

    fn end(self) -> Measured {
        self.bar.clear();
        self.measured
    }
}

/// On a model in the device's stead.
fn simulated(header: &Header, device: &Profile, records: &mut Records, control: &Control) -> Result<Measured> {
    let mut taking = Taking::begin(header, records)?;
    let bytes = header.target.capacity_sectors * iosched::SECTOR_BYTES;
    'all: for (number, trial) in header.trials().iter().enumerate() {
        taking.bar.message(trial.name);
        for round in 0..header.rounds {
            for (scheduler, name) in header.schedulers.iter().enumerate() {
                if control.is_stopping() {
                    break 'all;
                }
                let seed = header.seed_of_run(round);
                let outcome = simulate(trial, (bytes, header.span()), device, name, seed)?;
                taking.take(Run { trial: number, scheduler, run: round, outcome });
            }
        }
    }
    Ok(taking.end())
}

/// Under the kernel's own schedulers.
fn on_device(
    header: &Header,
    place: &iosched_kernel::target::Target,
    records: &mut Records,
    control: &Control,
) -> Result<Measured> {
    let state = StateDirectory::usual()?;
    let settings: Vec<SettingRecord> =
        header.schedulers.iter().map(|name| for_records(Setting::defaults(name))).collect();
    let mut taking = Taking::begin(header, records)?;
    let bytes = header.target.capacity_sectors * iosched::SECTOR_BYTES;
    for (number, trial) in header.trials().iter().enumerate() {
        if control.is_stopping() {
            break;
        }
        taking.bar.message(trial.name);
        let work = Work::Workload(trial.workload(bytes, header.span()));
        let Work::Workload(workload) = &work else { continue };
        let verification = Verification {
            workload: workload_record(workload),
            settings: settings.clone(),
            baseline: 0,
            runs: header.rounds,
            seed: header.seed + number as u64,
            replay: Replay::Closed,
            warm_up_ns: 0,
            limit: Limit::default(),
            until_sure_percent: None,
            equal_within_percent: EQUAL_WITHIN_PERCENT,
            goals: Vec::new(),
            command: header.command.clone(),
        };
        let mut bench = KernelBench::new(place, &state, &work, &settings, Replay::Closed, Limits::default())?;
        let mut problem = None;
        let finished = verify(&verification, &mut bench, control, |progress| {
            if let Some(warning) = progress.warning() {
                eprintln!("warning: {warning}");
            }
            if let Progress::Record(Record::Run(own)) = progress {
                let RunRecord { setting, run, result, .. } = &**own;
                match Outcome::of(trial, &header.schedulers[*setting], result) {
                    Ok(outcome) => taking.take(Run { trial: number, scheduler: *setting, run: *run, outcome }),
                    Err(error) => problem = Some(error),
                }
            }
            Ok(())
        });
        finished?;
        problem.map_or(Ok(()), Err)?;
    }
    Ok(taking.end())
}

/// Comments about how the profile was tried: those it had, and one more.
fn preface(named: &str, header: &Header, battery: &Battery) -> String {
    let text = if is_path(named) { std::fs::read_to_string(named).unwrap_or_default() } else { String::new() };
    let lines = text.lines().take_while(|line| line.starts_with('#')).filter(|line| !line.starts_with("# Tried on "));
    let mut comments: Vec<&str> = lines.collect();
    while comments.last().is_some_and(|line| line.trim() == "#") {
        comments.pop();
    }
    let mut preface: String = comments.into_iter().flat_map(|line| [line, "\n"]).collect();
    if preface.is_empty() {
        let _ = writeln!(preface, "# A model of {}, tried by iosched {}.\n#", header.target.name, header.version);
    }
    let _ = writeln!(preface, "# Tried on {} by: {}: {battery}.\n", header.target.name, header.command);
    preface
}

fn as_json(measured: &Measured, profile: &Profile, battery: &Battery) -> Result<String> {
    let mut document = json!({
        "target": measured.header.target,
        "profile": profile.name(),
        "about": profile.about(),
        "schedulers": measured.header.schedulers,
        "runs": measured.header.rounds,
        "battery": battery,
        "decision": battery.decision(),
        "answer": battery.to_string(),
    });
    let trials = measured.header.trials();
    document["trials"] = trials.iter().map(|trial| json!({ "name": trial.name, "about": trial.about })).collect();
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

fn as_text(measured: &Measured, profile: &Profile, battery: &Battery) -> String {
    let Header { target, schedulers, rounds, measured_ns, .. } = &measured.header;
    let look = Look::of_standard_output();
    let mut text = format!("{}\n\n", look.wrap(&battery.decision(), ""));
    let access = if target.writable { "read and written" } else { "only read" };
    let _ = writeln!(text, "{}    {:.1} GB, {access}", target.name, target.capacity_sectors as f64 * 512.0 / 1e9);
    for condition in &target.conditions {
        let _ = writeln!(text, "{condition}");
    }
    let _ = writeln!(text, "{}    {}", profile.name(), profile.about());
    let seconds = *measured_ns as f64 / 1e9;
    let _ = writeln!(text, "{} schedulers, {rounds} runs of {seconds} s of each workload under each", schedulers.len());
    let trials = measured.header.trials();
    for (number, trial) in trials.iter().enumerate() {
        let cells: Vec<&Cell> = battery.cells.iter().filter(|cell| cell.number == number).collect();
        if cells.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{}: {}", trial.name, trial.about);
        let _ = writeln!(
            text,
            "{:NAME_WIDTH$}{:>10}{:>8}{:>11}{:>9}{:>11}{:>8}{:>11}{:>9}",
            "", "IOPS", "±", "predicted", "off", "p99 us", "±", "predicted", "off"
        );
        for cell in cells {
            let _ = write!(text, "{:NAME_WIDTH$}", cell.scheduler);
            figure(&mut text, &cell.iops, 1.0, RATE_WITHIN);
            figure(&mut text, &cell.p99_ns, 1e3, TAIL_WITHIN);
            text.push('\n');
        }
    }
    text.push('\n');
    for wrong in &battery.wrong_orders {
        let _ = writeln!(text, "wrong: {wrong}");
    }
    let _ = writeln!(text, "{battery}");
    text
}

/// A figure, its variation, the prediction, and how far off that is; marked if it is too far.
fn figure(text: &mut String, judged: &Judged, divisor: f64, within: f64) {
    let number = |value: f64| grouped((value / divisor).round() as u64);
    let variation = judged.variation.map_or_else(String::new, |variation| {
        format!("{:.0} %{}", variation * 100.0, if variation > NOISY { "!" } else { " " })
    });
    let difference = judged.difference();
    let mark = if difference.abs() > within { "*" } else { " " };
    // No minus before a zero.
    let off = format!("{:+} %{mark}", (difference * 100.0).round() + 0.0);
    let width = if divisor > 1.0 { 11 } else { 10 };
    let _ = write!(text, "{:>width$}{variation:>8}{:>11}{off:>9}", number(judged.measured), number(judged.predicted));
}
