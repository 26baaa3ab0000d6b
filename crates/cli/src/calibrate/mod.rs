//! `iosched calibrate`: makes a profile of a device.

mod table;
mod trace;

use std::fs::File;
use std::io::{BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_advise::calibrate::{
    CalibrateError, Calibration, FILE_SIZE_MIB, FILE_SIZE_MIB_DEFAULT, Kind as ModelKind, Measurements, Measurer, Pace,
    Place, Progress, Simulated, is_model, measure, open_device, write_header, write_sample,
};
use iosched_disk::Profile;
use iosched_lab::request::quoted;

use crate::invocation::Invocation;
use iosched_terminal::fail::{FAILED, INTERRUPTED, all_of, of_place, usage};
use iosched_terminal::output::{Kind, Output, Outputs, Records, WriteArgs, say};
use iosched_terminal::progress::Meter;
use iosched_terminal::show::calibration;
use iosched_terminal::signals::on_signal;

pub(crate) use table::validate as validate_table;

/// Default file of the measurements.
const RECORDS_DEFAULT: &str = "calibration.jsonl";
/// Name of the profile if the profile is not written to a file.
const NAME_DEFAULT: &str = "calibrated.toml";

/// Measure a device and make a profile of the device, for the option --device
///
/// iosched runs about fifty small fio jobs on the device, several times and in changing order. Then
/// iosched fits three kinds of model to the results: a rotating disk, flash, and a storage server
/// with varying latency (virtual disks, network disks). The model that is closest to the
/// measurements becomes the profile.
///
/// The output compares the profile with the measurements. iosched also checks the profile with
/// workloads that the fit did not use. These are 4 KiB random reads at depths 1, 8 and 32, and
/// sequential reads of 128 KiB and 1 MiB. If writing is allowed, these workloads include mixed
/// reads and writes.
///
/// If you do not have the device, but you have a trace of its requests, use --trace. The device
/// must be a rotating disk that served one request at a time during the recording.
///
/// iosched writes to a device only if you name the device again with --destroy-data. If you
/// give a file to measure, iosched only reads this file. In a directory, iosched creates a file,
/// writes to this file, and removes the file at the end.
///
/// After Ctrl-C, iosched keeps the finished measurements. Use --from to fit a model to these
/// measurements. If no model fits, the exit status is 1.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CalibrateArgs {
    /// A block device, such as /dev/sdb; a file, which iosched does not change; or a directory in a
    /// file system on the device
    ///
    /// To try the command without a device, give a profile from `iosched device list` or a *.toml
    /// file.
    #[arg(value_name = "DEVICE|FILE|DIR|PROFILE", value_hint = ValueHint::AnyPath, required_unless_present_any = ["from", "trace", "table"])]
    target: Option<String>,

    /// Write the profile to this file
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// Measure only one short round, which takes half a minute, or longer on a slow device
    #[arg(long, conflicts_with = "from")]
    quick: bool,

    /// Allow writes that destroy the data on this device; give the exact name of the device again
    #[arg(long, value_name = "DEVICE", conflicts_with = "from")]
    destroy_data: Option<PathBuf>,

    /// Size of the file to measure in a directory, in MiB
    #[arg(long, value_name = "MIB", default_value_t = FILE_SIZE_MIB_DEFAULT, value_parser = crate::options::whole(FILE_SIZE_MIB))]
    file_size: u64,

    /// Write the measurements to this file; iosched adds a line after each measurement
    #[arg(long, value_name = "FILE", default_value = RECORDS_DEFAULT, conflicts_with = "from", value_hint = ValueHint::FilePath)]
    records: PathBuf,

    /// Fit a model to the measurements in this file, and measure nothing
    #[arg(long, value_name = "RECORDS", value_hint = ValueHint::FilePath)]
    from: Option<PathBuf>,

    /// Fit the model of a rotating disk to this trace of a disk, and measure nothing; each line of
    /// the trace is one request
    ///
    /// `iosched validate disk --help` describes the format. The file can be compressed (.gz, .zst).
    /// iosched fits the model to the first half of the trace. The second half shows the error of
    /// the model.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["target", "from", "check", "report", "destroy_data"])]
    trace: Option<PathBuf>,

    /// Fit a model of flash or of a server to this table of results, and measure nothing
    ///
    /// Each row is the result of one job that ran alone. The first line contains the names of the
    /// columns. The columns rw, bs and iops are required. The columns depth, jobs, read_percent,
    /// mean, p50, p99 and split are optional. The latencies mean, p50 and p99 are in us. For
    /// another unit, add the unit to the name of the column, such as p99_ms. If the column `split`
    /// of a row contains `kept`, the fit does not use this row. The file can also be the output of
    /// `fio --output-format=json`. The fit minimises the squared errors of the logarithms of rates,
    /// p50 and p99. `iosched validate --table` shows the rows that the fit did not use.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath,
        conflicts_with_all = ["target", "from", "trace", "check", "report", "destroy_data", "quick"])]
    table: Option<PathBuf>,

    /// Size in GB of the device that was measured for --table
    #[arg(long, value_name = "GB", default_value_t = 1000, requires = "table", value_parser = crate::options::whole(1..=500_000))]
    size: u64,

    /// Queue depth of the device that was measured for --table: the number of commands that it
    /// accepts at once
    #[arg(long, value_name = "N", default_value_t = 1023, requires = "table", value_parser = clap::value_parser!(u16).range(1..))]
    depth: u16,

    /// Profile with which the fit to --trace begins, such as a profile from `iosched import`
    #[arg(long, value_name = "PROFILE|FILE", requires = "trace")]
    start: Option<String>,

    /// Fit only this kind of model
    #[arg(long, value_name = "KIND", conflicts_with_all = ["trace", "check"], value_parser = kind)]
    kind: Option<ModelKind>,

    /// Compare this profile with the measurements, and fit nothing
    #[arg(long, value_name = "PROFILE|FILE", conflicts_with = "output")]
    check: Option<String>,

    /// Seed for the positions of random reads and for the order of measurements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,

    /// Write a report (one HTML page) to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    #[command(flatten)]
    write: WriteArgs,
}

/// Parses the name of a kind of model.
fn kind(text: &str) -> Result<ModelKind, String> {
    let known = ModelKind::ALL.into_iter().find(|kind| kind.name() == text);
    known.ok_or_else(|| format!("available: {}", ModelKind::ALL.map(ModelKind::name).join(", ")))
}

const EXAMPLES: &str = "Examples:
  iosched calibrate /dev/sdb -o sdb.toml
  iosched calibrate /srv/data -o data.toml --quick
  iosched calibrate /dev/sdX -o sdX.toml --destroy-data /dev/sdX
  iosched calibrate --from calibration.jsonl -o sdb.toml --report sdb.html
  iosched calibrate /dev/sdb --check ./sdb.toml
  iosched calibrate --table results.csv -o disk.toml
  iosched calibrate --trace served.trace.gz --start ./imported.toml -o disk.toml
  iosched compare --workload jobs.fio --device ./sdb.toml --scheduler today";

pub(crate) fn run(args: &CalibrateArgs, given: &Invocation) -> Result<ExitCode> {
    let check = args.check.as_deref().map(Profile::load).transpose()?;
    let interrupt = Arc::new(AtomicBool::new(false));
    let name = args.output.as_deref().unwrap_or_else(|| Path::new(NAME_DEFAULT)).display().to_string();
    if let Some(file) = &args.trace {
        return trace::run(args, given, file, &name, &interrupt);
    }
    if let Some(file) = &args.table {
        return table::run(args, given, file, &name);
    }
    let mut outputs = Outputs::new(args.write).prints("the result").reads_all(&args.from);
    outputs = outputs.reads_all(&args.target).reads_all(&args.check);
    let output = outputs.optional("--output", args.output.as_ref(), Kind::Profile)?;
    let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
    let mut records = match args.from {
        Some(_) => Records::none(),
        None => outputs.records(&args.records, Kind::Measurements)?,
    };
    let measurements = match (&args.from, &args.target) {
        (Some(file), _) => read(file)?,
        (None, Some(target)) => measure_target(args, given, target, &mut records, &interrupt)?,
        (None, None) => return Err(usage("the device to calibrate is missing; name a device, for example /dev/sdb")),
    };
    for warning in &measurements.warnings {
        say!("warning: {warning}");
    }
    let recorded = records.finish();
    let interrupted = interrupt.load(Ordering::Relaxed);
    let calibration = match &check {
        Some(profile) => Calibration::check(&measurements, profile),
        None => Calibration::of(&measurements, &name, args.kind),
    };
    let calibration = match calibration {
        Err(error @ CalibrateError::Incomplete { .. }) if interrupted => {
            let measured_in = records.stored_at();
            let measured_in =
                measured_in.map_or_else(String::new, |path| format!("; the measurements are in {}", path.display()));
            say!("interrupted: {error}{measured_in}");
            recorded?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        calibration => calibration?,
    };
    let profile = calibration.to_toml(&measurements.header)?;
    let mut written = vec![recorded];
    let profile_written = output.as_ref().map(|out| out.text(&profile));
    let is_made = output.as_ref().is_some_and(Output::is_file) && profile_written.as_ref().is_some_and(Result::is_ok);
    let next = args.output.as_deref().filter(|_| is_made);
    let shown = if args.json {
        calibration::json(&measurements, &calibration)?
    } else {
        as_text(next, &measurements, &calibration)
    };
    written.extend(profile_written);
    written.extend(report.map(|out| out.text(&iosched_report::calibration_html(&measurements, &calibration))));
    written.push(iosched_terminal::show::answer(&shown, args.json));
    all_of(written)?;
    Ok(match (interrupted, calibration.verdict.fits) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::from(FAILED),
    })
}

fn as_text(profile: Option<&Path>, measurements: &Measurements, calibration: &Calibration) -> String {
    let mut text = calibration::text(measurements, calibration);
    if let Some(path) = profile {
        // A name without a slash usually means a profile that is part of iosched. With the
        // extension `.toml`, it is a path.
        let path = quoted(&path.to_string_lossy());
        text += &format!("next: iosched compare --device {path} --workload FILE --scheduler today\n");
    }
    text
}

/// Returns the report page of a file of records, if the file contains a calibration. Fits the model
/// again, but measures nothing.
pub(crate) fn page_of(records: &Path) -> Result<Option<String>> {
    // The caller tries all kinds of records, and reports the error of a file that cannot be read.
    if !Kind::Measurements.recognises(records).unwrap_or(false) {
        return Ok(None);
    }
    let measurements = read(records)?;
    for warning in &measurements.warnings {
        say!("warning: {warning}");
    }
    let calibration = Calibration::of(&measurements, NAME_DEFAULT, None)?;
    Ok(Some(iosched_report::calibration_html(&measurements, &calibration)))
}

fn read(file: &Path) -> Result<Measurements> {
    let name = file.display().to_string();
    let opened = File::open(file).map_err(|source| CalibrateError::Io { file: name.clone(), source })?;
    Ok(Measurements::read(BufReader::new(opened), &name)?)
}

/// Measures a device, a directory or a model.
fn measure_target(
    args: &CalibrateArgs,
    given: &Invocation,
    target: &str,
    records: &mut Records,
    interrupt: &Arc<AtomicBool>,
) -> Result<Measurements> {
    let flag = Arc::clone(interrupt);
    on_signal(move |_| {
        flag.store(true, Ordering::Relaxed);
        say!("\nstopping; iosched keeps the finished measurements");
    })?;
    if is_model(target) {
        if args.destroy_data.is_some() {
            return Err(usage("--destroy-data is only for block devices; a model has no data"));
        }
        let mut device = Simulated::new(Profile::load(target)?);
        return measure_on(args, given, &mut device, Pace::SIMULATED, records, interrupt);
    }
    let destroy_data = args.destroy_data.as_deref();
    let place = Place { name: target, destroy_data, file_size_mib: args.file_size };
    let mut device = open_device(&place, interrupt).map_err(of_place)?;
    let pace = if args.quick { Pace::QUICK } else { Pace::FULL };
    measure_on(args, given, &mut device, pace, records, interrupt)
}

fn measure_on<M: Measurer>(
    args: &CalibrateArgs,
    given: &Invocation,
    device: &mut M,
    pace: Pace,
    records: &mut Records,
    interrupt: &AtomicBool,
) -> Result<Measurements> {
    let command = given.rerun().chosen("seed", [args.seed]).to_string();
    let bar = Meter::new(MEASURING);
    let measured = measure(device, pace, args.seed, &command, interrupt, |progress| {
        observe(progress, records, &bar);
        Ok(())
    });
    bar.clear();
    if std::io::stderr().is_terminal() && measured.is_ok() {
        say!("fitting");
    }
    Ok(measured?)
}

/// Template of the progress bar of measurements.
pub(crate) const MEASURING: &str = "measuring {bar:30} {pos} of {len}, {eta} to go: {msg}";

/// Stores a measurement, and shows the progress.
pub(crate) fn observe(progress: Progress<'_>, records: &mut Records, bar: &Meter) {
    match progress {
        Progress::Header(header) => records.line_of(|out| write_header(out, header)),
        Progress::Sample(sample) => records.line_of(|out| write_sample(out, sample)),
        Progress::Begins { probe, done, total } => {
            bar.message(probe);
            bar.set(done, total);
        }
    }
}
