//! `iosched trace`: summaries and conversions of traces.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use iosched::{Op, SECOND_NS, Sector, Time};
use iosched_lab::grouped;
use iosched_trace::{
    Chain, DeviceName, Extent, Filter, Fit, Format, ProcessName, ReadOptions, Source, Step, TraceError, WriteReport,
    convert_events, convert_with, read_rates, summarize,
};

use crate::options::any_duration;
use crate::options::reading::Reading;
use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, Kind, Output, Outputs, WriteArgs, say};
use iosched_terminal::show;
use iosched_terminal::show::trace::{self, TraceReport};

#[derive(Debug, Subcommand)]
pub(crate) enum TraceCommand {
    /// Summarize a trace: length, requests, sizes, processes, queue depth over time, times in each stage
    ///
    /// For block traces, info also shows the statistics of btt: merges, seeks, plugs and the times between events. The
    /// events are Q (queued), G (got a request), I (inserted), M (merged), D (issued) and C (completed). The
    /// output does not contain values that the trace does not have.
    Info {
        /// Trace to read; - for standard input; for blktrace's per-CPU files, the common part of their names
        ///
        /// The formats are blktrace, blkparse, fio's I/O logs, MSR, SPC, FIU, Alibaba, Tencent,
        /// blkreplay, vscsi, MQSim and CSV, also as .gz and .zst. info also summarizes the output
        /// of `iostat -x` (text or JSON) and of `sar -d`, which are not traces.
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        #[command(flatten)]
        reading: Reading,
        /// Print everything as one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Convert a trace to another format
    ///
    /// The output ends with a list of the data that the new format cannot store. A conversion from
    /// blktrace or blkparse to blktrace keeps every event; slice, filter and remap also keep every
    /// event. All other conversions keep the submissions, and also the completions if the trace
    /// contains completions.
    Convert {
        #[command(flatten)]
        files: Files,
    },
    /// Write a time range of a trace; the result starts at time 0
    Slice {
        #[command(flatten)]
        files: Files,
        /// Start of the range, counted from the start of the trace: seconds, or a time such as 200ms, 10us or 2m
        #[arg(long, value_name = "TIME", default_value = "0", value_parser = time, allow_hyphen_values = true)]
        from: Time,
        /// End of the range, exclusive [default: the end of the trace]
        #[arg(long, value_name = "TIME", value_parser = time, allow_hyphen_values = true)]
        to: Option<Time>,
    },
    /// Write a trace with arrivals closer together or further apart
    Scale {
        #[command(flatten)]
        files: Files,
        /// Factor for the rate of arrivals; with 2, I/Os arrive twice as fast as recorded
        #[arg(long, value_name = "FACTOR", value_parser = crate::options::speed)]
        speed: f64,
    },
    /// Write a trace with changed positions, so that the trace fits a smaller device
    ///
    /// The areas that the trace uses keep their size and order. The gaps between these areas shrink
    /// by a common factor. If the used areas together are larger than the device, positions wrap
    /// around. If the device is larger than the recorded device, all positions stay the same.
    /// iosched reads the trace twice.
    Remap {
        #[command(flatten)]
        files: Files,
        #[command(flatten)]
        target: Target,
    },
    /// Write the requests of a trace that match all criteria
    Filter {
        #[command(flatten)]
        files: Files,
        #[command(flatten)]
        criteria: Criteria,
    },
}

/// The files of a command that writes a trace.
#[derive(Args, Debug)]
pub(crate) struct Files {
    /// Trace to read; - for standard input
    #[arg(value_name = "IN", value_hint = ValueHint::FilePath)]
    input: PathBuf,
    /// File to write; - for standard output
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Format of OUT: blktrace, fio-v2, fio-v3, msr, spc, fiu, alibaba, tencent, blkreplay, vscsi,
    /// mqsim or csv [default: from the extension of OUT]
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    format: Option<Format>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    reading: Reading,
}

/// How large the device is.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Target {
    /// Size of the device: bytes, or with a unit, such as 500GB or 128GiB
    #[arg(long, value_name = "SIZE", value_parser = capacity)]
    capacity: Option<Sector>,
    /// Smaller device that the trace must fit on: a profile from `iosched device list`, or a file
    /// whose name contains a / or ends in .toml
    #[arg(long, value_name = "PROFILE|FILE")]
    device: Option<String>,
}

/// Criteria of the requests to keep.
#[derive(Args, Debug)]
#[group(required = true, multiple = true)]
pub(crate) struct Criteria {
    /// Keep requests of the process with this number; repeat the option for more
    ///
    /// If you give both --pid and --process, a request needs to match only one of these options.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    /// Keep requests of processes with this name; repeat the option for more
    #[arg(long, alias = "comm", value_name = "NAME")]
    process: Vec<String>,
    /// Keep requests with this operation; repeat the option for more
    #[arg(long, value_enum, value_name = "OP")]
    op: Vec<OpName>,
    /// Keep requests that touch this range of 512-byte sectors: FROM-TO, inclusive; you can leave out either end
    #[arg(long, value_name = "RANGE", value_parser = sectors)]
    sectors: Option<Range<Sector>>,
    /// Keep requests to this device; repeat the option for more
    ///
    /// In block traces, a device is major,minor. In other traces, the device is the number or name
    /// that `iosched trace info` shows.
    #[arg(long, value_name = "DEVICE")]
    device: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OpName {
    Read,
    Write,
    Discard,
    WriteZeroes,
    Flush,
}

impl OpName {
    const fn op(self) -> Op {
        match self {
            Self::Read => Op::Read,
            Self::Write => Op::Write,
            Self::Discard => Op::Discard,
            Self::WriteZeroes => Op::WriteZeroes,
            Self::Flush => Op::Flush,
        }
    }
}

pub(crate) fn run(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Info { file, reading, json } => info(file, reading, *json),
        TraceCommand::Convert { files } => write(files, Vec::new(), &files.reading.options()),
        TraceCommand::Slice { files, from, to } => {
            if to.is_some_and(|to| to <= *from) {
                return Err(usage("--to must be later than --from"));
            }
            write(files, vec![Step::Slice { from: *from, to: *to }], &files.reading.options())
        }
        TraceCommand::Scale { files, speed } => {
            write(files, vec![Step::Scale { speed: *speed }], &files.reading.options())
        }
        TraceCommand::Remap { files, target } => remap(files, target),
        TraceCommand::Filter { files, criteria } => {
            // A single device number becomes an option of the reader. Otherwise the reader would
            // leave out requests to a device below another traced device, because it takes them for
            // requests that were passed on.
            let device = match &criteria.device[..] {
                [device] if device.contains(',') => DeviceName::parse(device).map(|device| device.0),
                _ => None,
            };
            let options = ReadOptions { device, ..files.reading.options() };
            write(files, vec![Step::Filter(criteria.filter())], &options)
        }
    }
}

impl Criteria {
    fn filter(&self) -> Filter {
        Filter {
            pids: self.pid.iter().copied().collect(),
            names: self.process.iter().map(|name| ProcessName::new(name.as_bytes())).collect(),
            ops: self.op.iter().map(|op| op.op()).collect(),
            sectors: self.sectors.clone(),
            devices: self.device.iter().cloned().collect(),
        }
    }
}

fn info(file: &Path, reading: &Reading, json: bool) -> Result<()> {
    if file.is_file()
        && let Some(rates) = read_rates(file)?
    {
        return if json { output::json(&rates) } else { show::page(&format!("{}\n{rates}\n", file.display())) };
    }
    let report = TraceReport::of(file, &reading.options())?;
    if json { output::print(&report.json()?) } else { show::page(&report.text()) }
}

fn remap(files: &Files, target: &Target) -> Result<()> {
    let capacity_sectors = match (&target.device, target.capacity) {
        (Some(device), _) => iosched_disk::Profile::load(device)?.card().capacity_sectors,
        (None, capacity) => capacity.unwrap_or_default(),
    };
    let mut extent = Extent::new();
    let source = Source::open(&files.input)?;
    for request in source.requests(&ReadOptions { latencies: false, ..files.reading.options() })? {
        let request = request?;
        extent.add(request.op, request.sector, request.nr_sectors);
    }
    let placement = extent.placed_on(capacity_sectors);
    let fit = placement.fit();
    write_from(&source, files, vec![Step::Remap(placement)], &files.reading.options())?;
    match fit {
        Fit::AsIs => {
            say!(
                "the trace fits without changes: it ends at sector {}, and the device has {capacity_sectors} \
                 sectors",
                extent.end_sector()
            )
        }
        Fit::GapsShrunk { gap_percent } => {
            say!("iosched shrank the gaps between used areas to {gap_percent:.1} % of their size")
        }
        Fit::Wrapped { touched_sectors } => say!(
            "warning: the trace touches {touched_sectors} sectors, but the device has only {capacity_sectors} \
             sectors, so positions wrap around"
        ),
    }
    Ok(())
}

/// Reads the trace, applies the steps and writes the result.
fn write(files: &Files, steps: Vec<Step>, options: &ReadOptions) -> Result<()> {
    write_from(&Source::open(&files.input)?, files, steps, options)
}

fn write_from(source: &Source, files: &Files, steps: Vec<Step>, options: &ReadOptions) -> Result<()> {
    let format = match files.format.or_else(|| format_of_name(&files.output)) {
        Some(format) => format,
        None => return Err(no_format(&files.output)),
    };
    let mut outputs = Outputs::new(files.write).reads_all(crate::options::files(&files.input));
    let out = outputs.output("", &files.output, Kind::Trace)?;
    let selects = steps.iter().any(|step| matches!(step, Step::Slice { .. } | Step::Filter(_)));
    let chain = Chain::new(steps);
    let is_left = |report: &WriteReport| match selects && report.written + report.left_out == 0 {
        true => Err(nothing_left(source, options)),
        false => Ok(()),
    };
    if !out.is_file() && !options.partial {
        // Data in a stream cannot be removed again, so the whole input is checked first.
        read_on(source.requests(&ReadOptions { latencies: false, ..options.clone() })?)?;
    }
    let mut reader = source.requests(options)?;
    if format == Format::Blktrace && reader.format().has_events() && chain.suits_events() {
        return write_events(source, &out, &chain, options, is_left);
    }
    let report = out.write(|out| {
        let report = convert_with(&mut reader, &chain, out, format)?;
        is_left(&report)?;
        read_on(reader.by_ref())?;
        Ok(report)
    })?;
    trace::warn_of_gaps(&reader.completeness());
    trace::warn(reader.warnings());
    say(&report);
    Ok(())
}

/// Converts a block trace to a block trace. Keeps all events of the kept requests.
fn write_events(
    source: &Source,
    out: &Output,
    chain: &Chain,
    options: &ReadOptions,
    is_left: impl Fn(&WriteReport) -> Result<()>,
) -> Result<()> {
    let mut events = source.events(options)?;
    let report = out.write(|out| {
        let report = convert_events(&mut events, chain, out)?;
        is_left(&report)?;
        read_on(events.by_ref())?;
        Ok(report)
    })?;
    trace::warn_of_gaps(&events.completeness());
    trace::warn(events.warnings());
    say(&report);
    Ok(())
}

/// Returns the error for a slice or filter that keeps no requests. The error says what the trace
/// contains.
fn nothing_left(source: &Source, options: &ReadOptions) -> anyhow::Error {
    let there_is = || -> Result<String, TraceError> {
        let mut ends: Option<(u64, u64)> = None;
        for request in source.requests(options)? {
            let at = request?.arrival.as_ns();
            ends = Some(ends.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
        }
        let Some((first, last)) = ends else { return Ok("has no requests".to_owned()) };
        let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
        let seen = summarize(&mut source.requests(options)?)?;
        Ok(format!(
            "has {} requests, from {} s to {} s: {}",
            grouped(seen.all.requests),
            seconds(first),
            seconds(last),
            trace::kinds(&seen).join("; ")
        ))
    };
    match there_is() {
        Ok(there_is) => usage(format_args!("no request of {} matches; the trace {there_is}", source.title())),
        Err(error) => error.into(),
    }
}

/// Reads the rest of the trace, because only the end of a recording shows whether it is complete.
fn read_on<T>(mut rest: impl Iterator<Item = Result<T, TraceError>>) -> Result<(), TraceError> {
    rest.try_for_each(|item| item.map(drop))
}

fn say(report: &WriteReport) {
    if report.written + report.left_out == 0 {
        say!("warning: the result has no requests");
    }
    say!("{report}");
}

fn format_of_name(path: &Path) -> Option<Format> {
    Format::of_file_name(path.file_name()?.to_str()?).filter(|format| format.is_writable())
}

fn no_format(path: &Path) -> anyhow::Error {
    let writable = Format::ALL.into_iter().filter(|format| format.is_writable());
    let first = writable.filter_map(|format| format.spec().extensions.first().copied());
    let endings: Vec<_> = first.map(|ending| format!(".{ending}")).collect();
    if path == Path::new("-") {
        return usage("the format for standard output is missing; add --format FORMAT, such as --format csv");
    }
    usage(format_args!(
        "{}: the name of the file does not show the format; add --format FORMAT, or use one of the extensions {}",
        path.display(),
        endings.join(", ")
    ))
}

fn format(text: &str) -> Result<Format, String> {
    Format::from_name(text)
        .filter(|format| format.is_writable())
        .ok_or_else(|| format!("iosched can write {}", Format::writable_names()))
}

/// Splits a text into a number and its unit.
fn split_unit(text: &str) -> (&str, &str) {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..at], text[at..].trim())
}

/// Returns `number` times `unit`, rounded. Returns `None` if the text is not a number or the result
/// is too large.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let value: f64 = number.parse().ok()?;
    let scaled = (value * unit as f64).round();
    (0.0..1.8e19).contains(&scaled).then_some(scaled as u64)
}

fn time(text: &str) -> Result<Time, String> {
    if text.starts_with('-') {
        return Err("a time must not be negative; times count from the start of the trace".to_owned());
    }
    let ns = any_duration(text).map(|seconds| (seconds * SECOND_NS as f64).round());
    let ns = ns.filter(|ns| (0.0..1.8e19).contains(ns));
    let time = ns.map(|ns| Time::from_ns(ns as u64));
    time.ok_or_else(|| "give a time in seconds, or with a unit: ns, us, ms, s, m or h".to_owned())
}

fn capacity(text: &str) -> Result<Sector, String> {
    let (number, unit) = split_unit(text);
    let power = |base: u64, exponent: u32| Some(base.pow(exponent));
    let unit_bytes = match unit {
        "" | "B" => Some(1),
        "kB" | "KB" => power(1_000, 1),
        "MB" => power(1_000, 2),
        "GB" => power(1_000, 3),
        "TB" => power(1_000, 4),
        "KiB" => power(1_024, 1),
        "MiB" => power(1_024, 2),
        "GiB" => power(1_024, 3),
        "TiB" => power(1_024, 4),
        _ => None,
    };
    let sectors = unit_bytes.and_then(|bytes| scaled(number, bytes)).map(|bytes| bytes / iosched::SECTOR_BYTES);
    sectors.filter(|&sectors| sectors > 0).ok_or_else(|| {
        "give a size of at least 512 bytes, as a number or with kB, MB, GB, TB, KiB, MiB, GiB or TiB".to_owned()
    })
}

fn sectors(text: &str) -> Result<Range<Sector>, String> {
    let problem = || "give FROM-TO, FROM- or -TO, in sectors; FROM must not be larger than TO".to_owned();
    let (from, to) = text.split_once('-').filter(|_| text != "-").ok_or_else(problem)?;
    let from: Sector = if from.is_empty() { 0 } else { from.parse().map_err(|_| problem())? };
    let to: Sector = if to.is_empty() { Sector::MAX } else { to.parse().map_err(|_| problem())? };
    if from <= to { Ok(from..to.saturating_add(1)) } else { Err(problem()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let ns = |text| time(text).map(Time::as_ns);
        assert_eq!(ns("1.5"), Ok(1_500_000_000));
        assert_eq!(
            (ns("200ms"), ns("10us"), ns("7ns"), ns("2m")),
            (Ok(200_000_000), Ok(10_000), Ok(7), Ok(120_000_000_000))
        );
        for wrong in ["", "s", "-1", "1.2.3", "5 fortnights", "1e400", "99999999999h"] {
            assert!(ns(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((capacity("512"), capacity("1GiB"), capacity("1.5MB")), (Ok(1), Ok(2_097_152), Ok(2_929)));
        for wrong in ["0", "511", "GB", "1XB", "-5"] {
            assert!(capacity(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn ranges_may_be_open() {
        assert_eq!((sectors("5-9"), sectors("5-"), sectors("-9")), (Ok(5..10), Ok(5..Sector::MAX), Ok(0..10)));
        for wrong in ["", "-", "9", "9-5", "a-b"] {
            assert!(sectors(wrong).is_err(), "{wrong}");
        }
    }
}
