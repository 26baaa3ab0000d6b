//! `iosched validate DEVICE --profile P`: compares a profile with its device. No fit used the
//! workloads of this comparison.

use std::fmt::Write as _;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_advise::calibrate::{FILE_SIZE_MIB, FILE_SIZE_MIB_DEFAULT};
use iosched_advise::validation::{
    Battery, Header, Measured, Progress, ValidationError, ValidationRequest, write_header, write_load, write_run,
};
use iosched_disk::{Profile, is_path};
use iosched_lab::Control;

use crate::invocation::Invocation;
use crate::options::seconds_above_0;
use iosched_terminal::fail::{INTERRUPTED, all_of, of_validation, usage};
use iosched_terminal::output::{Kind, Outputs, Records, WriteArgs, say};
use iosched_terminal::progress::{Meter, on_interrupt};
use iosched_terminal::show::{Look, validation};

/// Default file of the runs.
const RECORDS_DEFAULT: &str = "validation.jsonl";

#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    /// Device, file or directory to measure, as for `iosched calibrate`
    ///
    /// To try the command without a device, give a profile or a *.toml file.
    #[arg(value_name = "DEVICE|FILE|DIR|PROFILE", value_hint = ValueHint::AnyPath, required_unless_present_any = ["from", "table"])]
    target: Option<String>,

    /// Profile to validate
    #[arg(short, long, value_name = "PROFILE|FILE", required = true)]
    profile: Option<String>,

    /// Write the profile with its score and errors to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Allow writes that destroy the data on this device; give the exact name of the device again
    #[arg(long, value_name = "DEVICE", conflicts_with = "from")]
    destroy_data: Option<PathBuf>,

    /// Size of the file to measure in a directory, in MiB
    #[arg(long, value_name = "MIB", default_value_t = FILE_SIZE_MIB_DEFAULT, value_parser = crate::options::whole(FILE_SIZE_MIB))]
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

    /// Write the runs to this file; iosched adds a line after each run
    #[arg(long, value_name = "FILE", default_value = RECORDS_DEFAULT, conflicts_with = "from", value_hint = ValueHint::FilePath)]
    records: PathBuf,

    /// Measure nothing; compare the profile with the runs in this file
    #[arg(long, value_name = "RECORDS", value_hint = ValueHint::FilePath, conflicts_with = "target")]
    from: Option<PathBuf>,

    /// Measure nothing; show the rows of this table that the fit of the profile did not use
    ///
    /// `iosched calibrate --help` describes this table, at the option --table.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["target", "from", "output", "schedulers", "destroy_data"])]
    table: Option<PathBuf>,

    /// Seed for the positions of random I/Os and for the order of runs
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "from", value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: WriteArgs,
}

pub(super) fn run(args: &DeviceArgs, given: &Invocation) -> Result<ExitCode> {
    let named =
        args.profile.as_deref().ok_or_else(|| usage("the profile to validate is missing; add --profile PROFILE"))?;
    let profile = Profile::load(named)?;
    if let Some(table) = &args.table {
        return crate::calibrate::validate_table(&profile, table, args.json);
    }
    let mut outputs = Outputs::new(args.write).prints("the result").reads_all(&args.from);
    let out = outputs.optional("--output", args.output.as_ref(), Kind::Profile)?;
    let control = Arc::new(Control::new(1));
    let (measured, recorded) = match (&args.from, &args.target) {
        // Nothing must be restored, so the command does not handle signals: a signal ends it at
        // once.
        (Some(file), _) => (read(file)?, Ok(())),
        (None, Some(target)) => {
            on_interrupt(&control)?;
            let mut records = outputs.records(&args.records, Kind::Validation)?;
            let measured = measure(args, given, target, &mut records, &control)?;
            (measured, records.finish())
        }
        (None, None) => {
            return Err(usage("the device to validate on is missing; name a device, for example /dev/sdb"));
        }
    };
    measured.warnings.iter().for_each(|warning| say!("warning: {warning}"));
    let interrupted = control.is_stopping();
    let bar = Meter::new("simulating {bar:30} {pos} of {len}");
    let battery = Battery::of(&measured, &profile, |done, of| {
        bar.set(done, of);
    });
    bar.clear();
    let battery = match battery {
        Err(ValidationError::TooLittle) if interrupted => {
            eprintln!("interrupted before the first measurement");
            recorded?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        battery => battery?,
    };
    let profile_written = match out {
        Some(out) => {
            Some(out.text(&(preface(named, &measured.header, &battery) + &battery.trusted(profile.clone()).to_toml()?)))
        }
        None => None,
    };
    let text = if args.json {
        validation::json(&measured, &profile, &battery)?
    } else {
        validation::text(&measured, &profile, &battery, Look::of_standard_output())
    };
    all_of([recorded].into_iter().chain(profile_written).chain([iosched_terminal::show::answer(&text, args.json)]))?;
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn read(file: &Path) -> Result<Measured> {
    let name = file.display().to_string();
    let opened = File::open(file).map_err(|source| usage(ValidationError::Io { file: name.clone(), source }))?;
    Measured::read(BufReader::new(opened), &name).map_err(usage)
}

/// Runs every workload with every scheduler, on the device or on a model.
fn measure(
    args: &DeviceArgs,
    given: &Invocation,
    target: &str,
    records: &mut Records,
    control: &Control,
) -> Result<Measured> {
    let bar = Meter::new("measuring {bar:30} {pos} of {len} runs, {eta} to go: {msg}");
    let observe = |progress: Progress<'_>| match progress {
        Progress::Header(header) => {
            records.line_of(|out| write_header(out, header));
            bar.set_length(header.runs() as u64);
        }
        Progress::Begins { trial } => bar.message(trial),
        Progress::Run(run) => {
            records.line_of(|out| write_run(out, run));
            bar.advance();
        }
        Progress::Load(load) => records.line_of(|out| write_load(out, load)),
        Progress::Warning(warning) => bar.warn(Some(warning.to_owned())),
    };
    let request = ValidationRequest {
        target: target.to_owned(),
        destroy_data: args.destroy_data.clone(),
        file_size_mib: args.file_size,
        schedulers: args.schedulers.clone(),
        runs: args.runs,
        run_for_s: args.run_for,
        seed: args.seed,
    };
    let command = |header: &Header| {
        let line = given.rerun().set("schedulers", &header.schedulers).chosen("runs", [args.runs]);
        line.chosen("run_for", [args.run_for]).chosen("seed", [args.seed]).to_string()
    };
    request.measure(control, command, observe).map_err(of_validation)
}

/// Returns the comments of the profile, with an additional one about this validation.
fn preface(named: &str, header: &Header, battery: &Battery) -> String {
    let text = if is_path(named) { std::fs::read_to_string(named).unwrap_or_default() } else { String::new() };
    let lines = text
        .lines()
        .take_while(|line| line.starts_with('#'))
        .filter(|line| !["# Validated on ", "# Result: "].iter().any(|begin| line.starts_with(begin)));
    let mut comments: Vec<&str> = lines.collect();
    while comments.last().is_some_and(|line| line.trim() == "#") {
        comments.pop();
    }
    let mut preface: String = comments.into_iter().flat_map(|line| [line, "\n"]).collect();
    if preface.is_empty() {
        let _ = writeln!(preface, "# A model of {}, validated by iosched {}.\n#", header.target.name, header.version);
    }
    let _ = writeln!(preface, "# Validated on {} with: {}\n# Result: {battery}.\n", header.target.name, header.command);
    preface
}
