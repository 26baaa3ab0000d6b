//! `iosched compare`, in simulation or on a real device.

mod args;
mod real;
mod simulated;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use iosched_lab::{Finished, LabError, Progress};

use crate::invocation::Invocation;
use crate::options::{files, or_cpus};
use crate::report::html;
use iosched_terminal::estimate::DurationEstimate;
use iosched_terminal::fail::{INTERRUPTED, all_of};
use iosched_terminal::output::{self, Kind, Output, Outputs, Records};
use iosched_terminal::progress::{RUNS, Watched};
use iosched_terminal::show::{self, Page};

pub(crate) use args::{CompareArgs, OutputFormat};
pub(crate) use real::RealArgs;

pub(crate) fn compare(args: &CompareArgs, given: &Invocation) -> Result<ExitCode> {
    match &args.real.on {
        None => simulated::compare(args, given),
        Some(on) => real::compare(args, given, on),
    }
}

/// The files that a comparison writes besides its answer.
struct Written {
    records: Records,
    report: Option<Output>,
    decisions: Option<Output>,
}

impl Written {
    /// Checks all outputs before anything runs.
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

/// Returns the outputs of a comparison. They also contain the files that the comparison reads, and
/// state that standard output has the result.
fn outputs(args: &CompareArgs) -> Outputs {
    let outputs = Outputs::new(args.write)
        .prints("the result")
        .reads_all(args.workload.iter().flat_map(|workload| files(workload)));
    outputs.reads_all(args.devices()).reads_all(&args.machine)
}

/// A comparison in progress, with its records and its progress bar.
struct Comparing<'a> {
    args: &'a CompareArgs,
    watched: Watched,
    report: Option<Output>,
    started: Instant,
    /// Estimate of the duration of a simulated comparison.
    estimate: Option<DurationEstimate>,
}

impl<'a> Comparing<'a> {
    fn begin(args: &'a CompareArgs, records: Records, report: Option<Output>) -> Self {
        let estimate = args.real.on.is_none().then(|| DurationEstimate::new(or_cpus(args.jobs)));
        Self { args, watched: Watched::new(RUNS, records), report, started: Instant::now(), estimate }
    }

    fn observe(&mut self, progress: Progress<'_>) -> Result<(), LabError> {
        match progress {
            Progress::Record(record) => {
                self.estimate.iter_mut().for_each(|estimate| estimate.record(record));
                self.watched.record(record);
            }
            Progress::Done { done, total } => {
                self.watched.done(done, total);
                let elapsed = self.started.elapsed();
                self.watched.warn(self.estimate.as_mut().and_then(|estimate| estimate.warning(done, total, elapsed)));
            }
            Progress::Discarded { .. } | Progress::Left { .. } => self.watched.warn(progress.warning()),
        }
        Ok(())
    }

    /// Shows the result, even if writing an earlier output failed. `others` are the results of
    /// writing the earlier outputs.
    fn show(mut self, finished: &Finished, others: Vec<Result<()>>) -> Result<ExitCode> {
        let Finished { records: gathered, interrupted } = finished;
        let args = self.args;
        self.watched.clear();
        let elapsed_s = self.started.elapsed().as_secs_f64();
        let records = &mut self.watched.records;
        let mut written = others;
        written.push(records.finish());
        let (stored, of_last) = (records.stored_at().map(Path::to_owned), records.are_last());
        if gathered.rounds().is_empty() {
            let stored =
                stored.map_or_else(String::new, |path| format!("; the finished runs are in {}", path.display()));
            eprintln!("interrupted before every setting ran once, so there is nothing to compare{stored}");
            all_of(written)?;
            return Ok(ExitCode::from(INTERRUPTED));
        }
        let mut reported = None;
        if let Some(report) = &self.report {
            let file = args.records.as_deref().filter(|_| stored.is_some());
            let result = report.text(&html(gathered, file));
            reported = (result.is_ok() && report.is_file()).then(|| report.name().to_owned());
            written.push(result);
        }
        let next = match (&stored, &reported) {
            (_, Some(page)) => Some(format!("open {} in a browser", page.display())),
            (Some(_), None) if of_last => Some("iosched report --last".to_owned()),
            (Some(records), None) => Some(show::report_command(records)),
            (None, None) => None,
        };
        let input = args.input();
        let page = Page { input, ..Page::of(gathered, Some(elapsed_s), stored, next) };
        let text = match args.output_format() {
            OutputFormat::Text => {
                Ok(show::text(&page, show::Look::of_standard_output().with_details(args.verdicts.details)))
            }
            OutputFormat::Json => show::json(&page),
            OutputFormat::Csv => Ok(show::csv(&page)),
            OutputFormat::Markdown => Ok(show::markdown(&page)),
            OutputFormat::FioJson => iosched_lab::fio_json(gathered).map_err(Into::into),
        };
        written.push(text.and_then(|text| output::print(&text)));
        all_of(written)?;
        Ok(if *interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
    }
}
