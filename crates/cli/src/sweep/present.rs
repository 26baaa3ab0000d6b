//! Sweeps on this machine.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{HumanBytes, HumanDuration};
use iosched_lab::grouped;
use iosched_sweep::dataset::{Directory, FAILED};
use iosched_sweep::{
    Choice, Estimate, Event, Failed, Outcome, Plan, Summary, SweepError, Sweeping, Units, estimate, find, is_url,
};
use serde::Serialize;

use super::SweepArgs;
use crate::options::or_cpus;
use iosched_terminal::fail::{INTERRUPTED, all_of, of_comparison, of_file, usage};
use iosched_terminal::output::{Kind, Outputs, say};
use iosched_terminal::progress::Meter;
use iosched_terminal::show::left;
use iosched_terminal::signals::{is_patient, on_signal};

const UNITS: &str = "{bar:30} {pos} of {len} comparisons, {eta} to go";
/// Maximum number of failures that are listed.
const FAILURES_SHOWN_MAX: usize = 10;
/// Maximum number of volumes that are listed on the terminal.
const LISTED_MAX: usize = 20;

/// The document that --json prints.
#[derive(Serialize)]
struct Document<'a> {
    before: usize,
    #[serde(rename = "made")]
    finished: usize,
    failed: &'a [Failed],
    interrupted: bool,
    summary: Option<&'a Summary>,
}

pub(super) fn run(args: &SweepArgs) -> Result<ExitCode> {
    let plan = Plan::open(&args.plan).map_err(of_sweep)?;
    let units = plan.units(|pattern| {
        if is_url(pattern) {
            return Err("only python -m iosched.sweep reads URLs; this command reads only files".to_owned());
        }
        find(pattern, plan.directory())
    });
    let jobs = or_cpus(args.jobs);
    let Some(root) = args.dataset.as_ref().filter(|_| !args.dry_run) else {
        return dry_run(&units, jobs);
    };
    let mut outputs = Outputs::new(args.write).prints("the result").reads(&args.plan);
    let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
    if units.units.is_empty() {
        tell_failed(&units.refused);
        return Err(usage(format_args!(
            "{}: iosched can read none of the workloads of this plan",
            args.plan.display()
        )));
    }
    let directory = Directory::create(root).map_err(of_sweep)?;
    // The library writes the file. This check only ensures that the file belongs to iosched.
    outputs.output("--output", &root.join(FAILED), Kind::Failures)?;
    let (outcome, elapsed) = sweep(&units, &directory, jobs)?;
    tell_failed(&outcome.failed);
    let summary = directory.summary(&args.metric).map_err(of_sweep)?;
    let reported = report.zip(summary.as_ref()).map(|(out, summary)| out.text(&summary.html()));
    let text = if args.json {
        let document = Document {
            before: outcome.before,
            finished: outcome.finished,
            failed: &outcome.failed,
            interrupted: outcome.interrupted,
            summary: summary.as_ref(),
        };
        serde_json::to_string_pretty(&document)? + "\n"
    } else {
        as_text(&units, &outcome, summary.as_ref(), elapsed)
    };
    all_of(reported.into_iter().chain([iosched_terminal::show::answer(&text, args.json)]))?;
    Ok(match &outcome {
        Outcome { interrupted: true, .. } => ExitCode::from(INTERRUPTED),
        Outcome { failed, .. } if !failed.is_empty() => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

fn of_sweep(error: SweepError) -> anyhow::Error {
    match error {
        SweepError::Io { ref source, .. } => of_file(error.to_string(), source),
        SweepError::Request(error) => of_comparison(error),
        SweepError::Lab(error) => error.into(),
        SweepError::Plan { .. } | SweepError::Summary(_) => usage(error),
        SweepError::NoDirectory { .. } => usage(format_args!("--output {error}")),
        _ => error.into(),
    }
}

fn sweep(units: &Units, directory: &Directory, jobs: usize) -> Result<(Outcome, Duration)> {
    let sweeping = Arc::new(Sweeping::default());
    let stopped = Arc::clone(&sweeping);
    on_signal(move |signal| {
        if is_patient(signal) {
            stopped.interrupt();
            say!("\nstopping after the current comparisons; a second Ctrl-C stops them too");
        } else {
            stopped.abort();
            say!("\nstopping; iosched keeps the results of finished comparisons");
        }
    })?;
    let meter = Meter::new(UNITS);
    let began = Instant::now();
    let outcome = iosched_sweep::run(units, directory, jobs, &sweeping, |event, done, of| {
        if let Event::Done(unit) = event {
            meter.message(unit.workload());
        }
        meter.set(done, of);
        Ok(())
    });
    meter.clear();
    Ok((outcome.map_err(of_sweep)?, began.elapsed()))
}

fn tell_failed(failed: &[Failed]) {
    for Failed { workload, problem, .. } in failed.iter().take(FAILURES_SHOWN_MAX) {
        // If the error is about reading a file, it already contains the file's name.
        let named = if problem.contains(workload) { String::new() } else { format!("{workload}: ") };
        say!("failed: {named}{problem}");
    }
    if failed.len() > FAILURES_SHOWN_MAX {
        say!("and {} more; failed.json in the dataset lists all", failed.len() - FAILURES_SHOWN_MAX);
    }
}

fn dry_run(units: &Units, jobs: usize) -> Result<ExitCode> {
    let Estimate { units: count, runs, workloads, bytes, core_s, memory_bytes, unreadable } =
        estimate(&units.units, |unit| unit.open(None));
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push([name.to_owned(), value]);
    row("comparisons", grouped(count as u64));
    row("workloads", format!("{}, {}", grouped(workloads as u64), HumanBytes(bytes)));
    row("runs", format!("{}, and also runs of each task alone", grouped(runs)));
    let jobs = jobs.min(count.max(1));
    let time = core_s.map_or("unknown, because iosched can read none of the sampled workloads".to_owned(), |core_s| {
        let here = Duration::from_secs_f64(core_s / jobs as f64);
        let alone = Duration::from_secs_f64(core_s);
        format!("about {} with {jobs} comparisons at a time; {} on one core", HumanDuration(here), HumanDuration(alone))
    });
    row("time", time);
    row(
        "memory",
        format!(
            "at most about {} in total, and {} for each comparison",
            HumanBytes(memory_bytes * jobs as u64),
            HumanBytes(memory_bytes)
        ),
    );
    if unreadable > 0 || !units.refused.is_empty() {
        let refused = units.refused.len();
        row(
            "not readable",
            format!("{refused} workloads do not exist; {unreadable} of the sampled files are not workloads"),
        );
    }
    iosched_terminal::show::page(&columns(&rows))?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(units: &Units, outcome: &Outcome, summary: Option<&Summary>, elapsed: Duration) -> String {
    let decision = summary.map(Summary::decision).unwrap_or_default();
    let look = iosched_terminal::show::Look::of_standard_output();
    let mut text: String = decision.iter().map(|sentence| look.wrap(sentence, "") + "\n").collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text += &format!(
        "{} comparisons ran in {:.1} s, {} existed already, {} failed\n",
        grouped(outcome.finished as u64),
        elapsed.as_secs_f64(),
        grouped(outcome.before as u64),
        grouped(outcome.failed.len() as u64),
    );
    if outcome.others > 0 {
        text.push_str(&format!(
            "{} comparisons in the dataset are from another plan or version. The results below include these \
             comparisons; to exclude them, use another directory\n",
            grouped(outcome.others as u64)
        ));
    }
    if outcome.interrupted {
        let missing = units.units.len() - outcome.before - outcome.finished;
        text.push_str(&format!(
            "stopped: {} comparisons are missing; to continue, run the same command again\n",
            grouped(missing as u64)
        ));
    }
    let Some(summary) = summary else { return text };
    text.push('\n');
    let mut rows = vec![["setting", "volumes", "why"].map(str::to_owned)];
    let choice = |(label, choice, count): (&str, Choice, usize)| {
        [label.to_owned(), grouped(count as u64), choice.words().to_owned()]
    };
    rows.extend(summary.choices().into_iter().map(choice));
    text.push_str(&columns(&rows));
    if !summary.doubts.is_empty() {
        text.push_str("\ndoubts:\n");
    }
    for doubt in &summary.doubts {
        text.push_str(&format!("  - {doubt}\n"));
    }
    let doubtful: Vec<_> = summary.doubtful().collect();
    if !doubtful.is_empty() {
        text.push('\n');
        let mut rows = vec![["doubtful", "device", "now", "may be better"].map(str::to_owned)];
        for volume in doubtful.iter().take(LISTED_MAX) {
            let maybe = volume.maybe.clone().unwrap_or_default();
            rows.push([volume.workload.clone(), volume.device.clone(), volume.baseline.clone(), maybe]);
        }
        text.push_str(&columns(&rows));
        if doubtful.len() > LISTED_MAX {
            text.push_str(&format!("and {} more; the page of --report shows all\n", doubtful.len() - LISTED_MAX));
        }
    }
    text
}

/// Formats rows with aligned columns.
fn columns<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: [usize; N] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| left(cell, width));
        text.push_str(cells.collect::<Vec<_>>().join("   ").trim_end());
        text.push('\n');
    }
    text
}
