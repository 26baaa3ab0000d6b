//! The summary of a trace as text and as JSON, and warnings about it.

use std::path::Path;

use anyhow::Result;
use iosched_lab::grouped;
use iosched_trace::{
    Completeness, Gap, ProcessSummary, ReadOptions, Source, StageSummary, TraceSummary, Warnings, summarize,
    summarize_stages,
};

use crate::output::say;

/// Largest number of processes that are named.
const PROCESSES_SHOWN: usize = 4;

/// The document of `--json`.
#[derive(serde::Serialize)]
struct Info<'a> {
    /// The files that were read together.
    files: Vec<&'a str>,
    /// The missing parts of the recording. Parts that are certainly missing come first.
    missing: Vec<Missing>,
    #[serde(flatten)]
    summary: TraceSummary,
    /// The stages, only for traces with events.
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<StageSummary>,
}

/// A gap in JSON.
#[derive(serde::Serialize)]
struct Missing {
    kind: &'static str,
    certain: bool,
    problem: String,
    remedy: &'static str,
}

impl From<&Gap> for Missing {
    fn from(gap: &Gap) -> Self {
        Self { kind: gap.kind(), certain: gap.is_certain(), problem: gap.to_string(), remedy: gap.remedy() }
    }
}

/// The summary of a trace, with the missing parts of the recording.
#[derive(Debug)]
pub struct TraceReport {
    source: Source,
    summary: TraceSummary,
    stages: Option<StageSummary>,
    completeness: Completeness,
}

impl TraceReport {
    /// Reads the whole trace.
    ///
    /// # Errors
    /// The trace cannot be read.
    pub fn of(file: &Path, options: &ReadOptions) -> Result<Self> {
        let source = Source::open(file)?;
        let mut requests = source.requests(options)?;
        let summary = summarize(&mut requests)?;
        let completeness = requests.completeness();
        let stages = match summary.format.has_events() {
            true => Some(summarize_stages(&mut source.events(options)?)?),
            false => None,
        };
        Ok(Self { source, summary, stages, completeness })
    }

    /// Returns the summary of the requests.
    pub const fn summary(&self) -> &TraceSummary {
        &self.summary
    }

    /// Returns everything as text.
    pub fn text(&self) -> String {
        let Self { source, summary, stages, completeness } = self;
        let warnings: String = gaps(completeness).iter().map(|line| format!("warning: {line}\n")).collect();
        let notes = completeness.gaps().iter().filter(|gap| !gap.matters());
        let notes: String = notes.map(|gap| format!("note: {gap}\n")).collect();
        let stages = stages.as_ref().map(|stages| format!("{stages}\n\n")).unwrap_or_default();
        format!("{warnings}{}\n{notes}\n{stages}{summary}\n", source.title())
    }

    /// Returns everything as one JSON document.
    ///
    /// # Errors
    /// The summary cannot be written as JSON.
    pub fn json(self) -> Result<String> {
        let missing = self.completeness.gaps().iter().map(Missing::from).collect();
        let info = Info { files: self.source.files().collect(), missing, summary: self.summary, stages: self.stages };
        Ok(serde_json::to_string_pretty(&info)? + "\n")
    }
}

/// Returns a sentence for each part of a recording that is missing or may be missing.
fn gaps(completeness: &Completeness) -> Vec<String> {
    let gaps: Vec<&Gap> = completeness.gaps().iter().filter(|gap| gap.matters()).collect();
    let line = |(number, gap): (usize, &&Gap)| {
        let is = if gap.is_certain() { "is" } else { "may be" };
        let line = format!("the recording {is} incomplete: {gap}");
        // If several gaps have the same remedy, only the last of these gaps shows it.
        let again = gaps.get(number + 1).is_some_and(|next| next.remedy() == gap.remedy());
        if again { line } else { format!("{line}; {}", gap.remedy()) }
    };
    gaps.iter().enumerate().map(line).collect()
}

/// Prints warnings about missing parts of a recording on standard error, before other output.
pub fn warn_of_gaps(completeness: &Completeness) {
    gaps(completeness).iter().for_each(|line| say!("warning: {line}"));
}

/// Prints the warnings of a reader on standard error.
pub fn warn(warnings: &Warnings) {
    for warning in warnings.kept() {
        say!("warning: {warning}");
    }
    let more = warnings.total() - warnings.kept().len() as u64;
    if more > 0 {
        say!("warning: iosched does not print {} more warnings of this kind", grouped(more));
    }
}

/// Returns the operations that a filter can select.
pub fn kinds(seen: &TraceSummary) -> Vec<String> {
    let ops = [
        (&seen.reads, "read"),
        (&seen.writes, "write"),
        (&seen.discards, "discard"),
        (&seen.write_zeroes, "write-zeroes"),
        (&seen.flushes, "flush"),
    ];
    let ops = ops
        .iter()
        .filter(|(count, _)| count.requests > 0)
        .map(|(count, op)| format!("{op} {}", grouped(count.requests)));
    let of_process = |process: &ProcessSummary| match &process.name {
        Some(name) => format!("{name} ({})", process.pid),
        None => process.pid.to_string(),
    };
    let (mut processes, more) = first_processes(seen, of_process);
    processes.extend((more > 0).then(|| format!("{more} more")));
    let devices: Vec<&str> = seen.devices.iter().filter_map(|device| device.name.as_deref()).collect();
    let mut kinds = vec![format!("by operation {}", ops.collect::<Vec<_>>().join(", "))];
    kinds.push(format!("by process {}", processes.join(", ")));
    kinds.extend((!devices.is_empty()).then(|| format!("to {}", devices.join(", "))));
    kinds.push(format!("up to sector {}", seen.size_sectors.saturating_sub(1)));
    kinds
}

/// Describes the first few processes of a trace. Also returns the number of the other processes.
pub fn first_processes(seen: &TraceSummary, words: impl Fn(&ProcessSummary) -> String) -> (Vec<String>, usize) {
    let (shown, more) = seen.processes.split_at(seen.processes.len().min(PROCESSES_SHOWN));
    (shown.iter().map(words).collect(), more.len())
}
