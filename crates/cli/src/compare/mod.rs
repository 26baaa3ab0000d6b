//! `iosched compare`: the main job, in simulation or on a real device.

mod real;
mod simulated;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use iosched_lab::{Control, Finished, LabError, Progress, RecordReader, RecordWriter, Records};
use iosched_sim::Replay;
use iosched_workload::Workload;

use crate::args::{CompareArgs, OutputFormat, ReplayMode};
use crate::fail::{INTERRUPTED, usage};
use crate::output::say;
use crate::show::{self, Page};
use crate::signals::on_signal;
use crate::watched::{RUNS, Watched};
use crate::{output, sample};

pub(crate) use real::{RealArgs, UNTIL_SURE_PERCENT, percent, seconds, target};
pub(crate) use simulated::{is_file, machine, replay_options};

/// The device if none is named.
pub(crate) const DEVICE_DEFAULT: &str = "sata-7200";
/// The file of records if none is named.
pub(crate) const RECORDS_DEFAULT: &str = "last.jsonl";
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode> {
    match &args.real.on {
        None => simulated::compare(args),
        Some(on) => real::compare(args, on),
    }
}

/// A comparison on its way: where its records go, and how far it has come.
struct Comparing<'a> {
    args: &'a CompareArgs,
    watched: Watched,
    started: Instant,
}

impl<'a> Comparing<'a> {
    fn begin(args: &'a CompareArgs) -> Result<Self> {
        let records = open_records(&args.records)?.map(|out| (args.records.clone(), out));
        Ok(Self { args, watched: Watched::new(RUNS, records), started: Instant::now() })
    }

    fn observe(&mut self, progress: Progress<'_>) -> Result<(), LabError> {
        match progress {
            Progress::Record(record) => self.watched.record(record)?,
            Progress::Done { done, of } => self.watched.done(done, of),
        }
        Ok(())
    }

    /// Shows what came of it.
    fn show(&self, Finished { records: gathered, interrupted }: &Finished) -> Result<ExitCode> {
        let args = self.args;
        self.watched.clear();
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let kept = self.watched.keeps_records();
        if gathered.rounds().is_empty() {
            let kept = if kept { format!("; what was run is in {}", args.records.display()) } else { String::new() };
            eprintln!("interrupted before every setting was run once: there is nothing to compare{kept}");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        if let Some(page) = &args.report {
            write_page(page, &html(gathered, &args.records))?;
        }
        let page = Page::of(gathered, Some(elapsed_s), kept.then(|| next(&args.records, args.report.as_deref())));
        output::print(&match args.output_format() {
            OutputFormat::Text => show::text(&page, &show::Look::of_standard_output()),
            OutputFormat::Json => show::json(&page)?,
            OutputFormat::Csv => show::csv(&page),
            OutputFormat::Markdown => show::markdown(&page),
            OutputFormat::FioJson => iosched_lab::fio_json(gathered)?,
        })?;
        Ok(if *interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    }
}

/// What to do next.
fn next(records: &Path, reported: Option<&Path>) -> String {
    match reported {
        Some(page) => format!("look at {}", page.display()),
        None => {
            let [from, to] =
                [records.to_owned(), records.with_extension("html")].map(|path| quoted(&path.to_string_lossy()));
            format!("iosched report {from} -o {to}")
        }
    }
}

/// `iosched report`: everything again from records.
pub(crate) fn report(path: &Path, page: Option<&Path>) -> Result<()> {
    let with_html = path.with_extension("html");
    let page = page.unwrap_or(&with_html);
    if page == path {
        return Err(usage(format_args!("{}: the page would replace the records; say where with -o", path.display())));
    }
    let other = match crate::tune::page_of(path)? {
        Some(html) => Some(html),
        None => crate::calibrate::page_of(path)?,
    };
    let html = match other {
        Some(html) => html,
        None => {
            let records = RecordReader::open(path)?;
            records.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
            html(&records, path)
        }
    };
    if page == Path::new("-") { output::print(&html) } else { write_page(page, &html) }
}

fn html(records: &Records, path: &Path) -> String {
    iosched_lab::report::html(records, Some(&path.display().to_string()))
}

fn write_page(page: &Path, html: &str) -> Result<()> {
    output::whole_file(page, |out| Ok(out.write_all(html.as_bytes())?))
}

/// The workload; the sample if none is named.
pub(crate) fn open_workload(path: Option<&Path>) -> Result<Workload> {
    match path {
        Some(path) => Ok(Workload::open_with(path, &crate::job::ProcessEnvironment)?),
        None => sample::open(),
    }
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

/// The file of records; `None` if the default one cannot be made, which only costs a warning.
fn open_records(path: &Path) -> Result<Option<RecordWriter<std::fs::File>>> {
    let is_default = path == Path::new(RECORDS_DEFAULT);
    if is_default && is_something_else(path) {
        eprintln!(
            "warning: {RECORDS_DEFAULT} is no file of records and was left alone; keep records with --records FILE"
        );
        return Ok(None);
    }
    match RecordWriter::create(path) {
        Ok(writer) => Ok(Some(writer)),
        Err(error) if is_default => {
            eprintln!("warning: {error}; records are not kept; say where with --records FILE");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether a file is there that we did not write.
fn is_something_else(path: &Path) -> bool {
    use std::io::Read;
    const BEGINNING: &[u8] = br#"{"record":"header""#;
    let Ok(file) = std::fs::File::open(path) else { return false };
    let mut head = Vec::new();
    file.take(BEGINNING.len() as u64).read_to_end(&mut head).is_ok() && !head.is_empty() && head != BEGINNING
}
