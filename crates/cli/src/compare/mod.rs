//! `iosched compare`: the main job, in simulation or on a real device.

mod real;
mod simulated;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use iosched_lab::{Control, Finished, LabError, Progress, RecordReader};
use iosched_sim::Replay;
use iosched_workload::Workload;

use crate::args::{CompareArgs, OutputFormat, ReplayMode};
use crate::fail::{INTERRUPTED, usage};
use crate::output::{Kind, LAST_PAGE, Output, Outputs, Records, WriteArgs, all_of, say};
use crate::reading::{self, Reading};
use crate::show::{self, Page};
use crate::signals::on_signal;
use crate::watched::{RUNS, Watched};
use crate::{output, sample};

pub(crate) use real::{RealArgs, RunLength, UNTIL_SURE_PERCENT, percent, target};
pub(crate) use simulated::{is_file, machine, replay_options};

/// The device if none is named.
pub(crate) const DEVICE_DEFAULT: &str = "sata-7200";

pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    match &args.real.on {
        None => simulated::compare(args),
        Some(on) => real::compare(args, on),
    }
}

/// What a comparison writes beside its answer.
struct Written {
    records: Records,
    report: Option<Output>,
    decisions: Option<Output>,
}

impl Written {
    /// All of it is looked at before anything runs.
    fn of(args: &CompareArgs, outputs: &mut Outputs) -> Result<Self> {
        let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
        let decisions = outputs.optional("--decisions", args.decisions.as_ref(), Kind::Decisions)?;
        let records = match &args.records {
            Some(path) => outputs.records(path, Kind::Comparison)?,
            None => Records::last(),
        };
        Ok(Self { records, report, decisions })
    }
}

/// What a comparison reads, and that it prints its answer.
fn outputs(args: &CompareArgs) -> Outputs {
    let outputs =
        Outputs::new(args.write).prints("what was found").reads_all(args.workload.iter().flat_map(|own| files(own)));
    outputs.reads_all(args.devices()).reads_all(&args.machine)
}

/// The files of a workload: those of a trace may be several.
pub(crate) fn files(workload: &Path) -> Vec<PathBuf> {
    iosched_trace::files(workload).unwrap_or_else(|_| vec![workload.to_owned()])
}

/// A comparison on its way: where its records go, and how far it has come.
struct Comparing<'a> {
    args: &'a CompareArgs,
    watched: Watched,
    report: Option<Output>,
    started: Instant,
}

impl<'a> Comparing<'a> {
    fn begin(args: &'a CompareArgs, records: Records, report: Option<Output>) -> Self {
        Self { args, watched: Watched::new(RUNS, records), report, started: Instant::now() }
    }

    fn observe(&mut self, progress: Progress<'_>) -> Result<(), LabError> {
        match progress {
            Progress::Record(record) => self.watched.record(record),
            Progress::Done { done, of } => self.watched.done(done, of),
        }
        Ok(())
    }

    /// Shows what came of it, whatever became of `others`, which were written before.
    fn show(mut self, finished: &Finished, others: Vec<Result<()>>) -> Result<ExitCode> {
        let Finished { records: gathered, interrupted } = finished;
        let args = self.args;
        self.watched.clear();
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let records = &mut self.watched.records;
        let mut written = others;
        written.push(records.finish());
        let (kept, of_last) = (records.kept().map(Path::to_owned), records.are_last());
        if gathered.rounds().is_empty() {
            let kept = kept.map_or_else(String::new, |path| format!("; what was run is in {}", path.display()));
            eprintln!("interrupted before every setting was run once: there is nothing to compare{kept}");
            all_of(written)?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        let mut reported = None;
        if let Some(report) = &self.report {
            let file = args.records.as_deref().filter(|_| kept.is_some());
            let result = report.text(&html(gathered, file));
            reported = (result.is_ok() && report.is_file()).then(|| report.name().to_owned());
            written.push(result);
        }
        let next = match (&kept, &reported) {
            (_, Some(page)) => Some(format!("look at {}", page.display())),
            (Some(_), None) if of_last => Some("iosched report --last".to_owned()),
            (Some(records), None) => Some(next(records)),
            (None, None) => None,
        };
        let page = Page::of(gathered, Some(elapsed_s), kept, next);
        let told = match args.output_format() {
            OutputFormat::Text => {
                Ok(show::text(&page, show::Look::of_standard_output().with_details(args.verdicts.details)))
            }
            OutputFormat::Json => show::json(&page),
            OutputFormat::Csv => Ok(show::csv(&page)),
            OutputFormat::Markdown => Ok(show::markdown(&page)),
            OutputFormat::FioJson => iosched_lab::fio_json(gathered).map_err(Into::into),
        };
        written.push(told.and_then(|text| output::print(&text)));
        all_of(written)?;
        Ok(if *interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    }
}

/// What to do next.
fn next(records: &Path) -> String {
    let [from, to] = [records.to_owned(), records.with_extension("html")].map(|path| quoted(&path.to_string_lossy()));
    format!("iosched report {from} -o {to}")
}

/// `iosched report`: everything again from records; from those of the last comparison, if no others are named.
pub(crate) fn report(path: Option<&Path>, page: Option<&Path>, args: WriteArgs) -> Result<()> {
    let (path, page, of_last) = match path {
        Some(path) => (path.to_owned(), page.map_or_else(|| path.with_extension("html"), Path::to_owned), false),
        None => (output::last_records()?, page.unwrap_or(Path::new(LAST_PAGE)).to_owned(), true),
    };
    std::fs::File::open(&path).map_err(|source| LabError::Io { file: path.display().to_string(), source })?;
    let mut outputs = Outputs::new(args).reads(&path);
    let out = outputs.output("-o", &page, Kind::Page)?;
    let other = match crate::tune::page_of(&path)? {
        Some(html) => Some(html),
        None => crate::calibrate::page_of(&path)?,
    };
    let html = match other {
        Some(html) => html,
        None => {
            let records = RecordReader::open(&path)?;
            records.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
            html(&records, (!of_last).then_some(&*path))
        }
    };
    out.text(&html)?;
    if of_last && !out.is_standard_output() {
        eprintln!("{}: the report of {}", page.display(), path.display());
    }
    Ok(())
}

/// The page; it names the file of records, unless that is another's with the next comparison.
fn html(records: &iosched_lab::Records, path: Option<&Path>) -> String {
    let name = path.map(|path| path.display().to_string());
    iosched_report::html(records, name.as_deref())
}

/// The workload; the sample if none is named. What is missing of a recording is the first that is said.
pub(crate) fn open_workload(path: Option<&Path>, reading: &Reading) -> Result<Workload> {
    let workload = match path {
        Some(path) => Workload::open_as(path, &crate::job::ProcessEnvironment, &reading.options())?,
        None => sample::open()?,
    };
    match (&workload, reading.given()) {
        (Workload::Trace(trace), _) => reading::warn(trace.completeness()),
        (_, Some(option)) => return Err(usage(format_args!("{option} is for traces, and this workload is none"))),
        (_, None) => {}
    }
    Ok(workload)
}

/// How a trace's times are used: as was asked for; else open with a speed, or where the recording does not tell which I/O waited for
/// which.
pub(crate) fn replay(mode: Option<ReplayMode>, speed: Option<f64>, workload: &Workload) -> Result<Replay> {
    if !matches!(workload, Workload::Trace(_)) && (mode.is_some() || speed.is_some()) {
        return Err(usage("--replay and --speed are for traces; other workloads say themselves when tasks submit"));
    }
    if mode == Some(ReplayMode::Closed) && speed.is_some() {
        return Err(usage(
            "--speed needs --replay open: in closed replay, processes go as fast as the device lets them",
        ));
    }
    let blind = matches!(workload, Workload::Trace(trace) if !trace.knows_completions());
    let open = mode.map_or(speed.is_some() || blind, |mode| mode == ReplayMode::Open);
    Ok(if open { Replay::Open { speed: speed.unwrap_or(1.0) } } else { Replay::Closed })
}

/// So many runs at a time, or one per CPU.
pub(crate) fn or_cpus(jobs: Option<u16>) -> usize {
    let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    jobs.map_or_else(cpus, usize::from)
}

/// As a POSIX shell wants it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub(crate) fn on_interrupt(control: &Arc<Control>) -> Result<()> {
    let control = Arc::clone(control);
    on_signal(move |_| {
        control.interrupt();
        say!("\nending after the current runs; Ctrl-C again ends those, too");
    })
}
