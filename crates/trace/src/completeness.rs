//! How complete a trace is: the missing parts, their certainty and the
//! remedies. A program reports these before it draws conclusions from the rest.

use std::fmt;

use crate::Format;
use crate::error::{TracePlace, Warning, WarningKind};
use crate::grouped::grouped;

/// Maximum percentage of a recording that may be missing if the rest counts as complete. A loss of
/// this size changes means and percentages by less than 2 %. A comparison recognises differences of
/// quantiles from 2 % on.
pub const LOST_PERCENT_MAX: f64 = 1.0;

/// Minimum number of events without counterparts that proves a missing part. A smaller number can
/// also be I/O that was in flight at the start or end of the trace.
pub const UNMATCHED_MIN: u64 = 10;

/// A part of a recording that is missing in the data.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The data ends inside a record, a line or a compressed stream.
    Cut {
        /// Place of the end.
        place: TracePlace,
        /// Warning that reports the cut.
        cause: WarningKind,
    },
    /// Events whose counterparts are missing in the data.
    Unmatched(Unmatched),
    /// Requests were issued, but none has a completion.
    NoCompletions {
        /// Requests issued.
        issued: u64,
        /// The CPUs whose events were read, in rising order.
        cpus: Vec<u32>,
        /// Whether only the file of one CPU was read.
        one_file: bool,
    },
    /// There are completions, but no other events of requests.
    CompletionsAlone {
        /// Completions.
        completions: u64,
    },
    /// The submissions (Q) are missing, so readers use other events as requests.
    NoSubmissions {
        /// Requests that were inserted, allocated or issued.
        issued: u64,
    },
    /// The numbers of per-CPU files have gaps.
    MissingCpus {
        /// Missing CPUs, in rising order.
        missing: Vec<u32>,
        /// Read CPUs, in rising order.
        read: Vec<u32>,
        /// Whether some events also have no counterparts.
        unmatched: bool,
    },
    /// Records were lost during recording.
    Dropped {
        /// Lost records.
        records: u64,
        /// All records, including the lost ones.
        total: u64,
    },
    /// Bytes that belong to no record.
    Damaged {
        /// Number of these bytes.
        bytes: u64,
        /// Number of all bytes.
        total: u64,
    },
    /// Lines that are not records.
    BadLines {
        /// Number of these lines.
        lines: u64,
        /// Number of all lines that are not blank.
        total: u64,
        /// The first of these lines.
        first: Vec<Warning>,
        /// The format that was expected.
        format: Format,
    },
    /// Records that are not I/O: of zero length, or commands that move no data.
    PassedOver {
        /// Number of these records.
        records: u64,
        /// Number of all records.
        total: u64,
        /// The first of these records.
        first: Box<Warning>,
    },
    /// Times step back further than a writer of the format can cause. Perhaps recordings were
    /// concatenated.
    Disorder {
        /// Records whose times the reader moved forward.
        records: u64,
        /// Number of all records.
        total: u64,
        /// The largest correction, ns.
        most_ns: u64,
    },
    /// The last line has no newline, so it may be incomplete.
    NoLineEnd {
        /// Start of the line.
        place: TracePlace,
    },
    /// Files of a fio log that were opened and not closed.
    Unclosed {
        /// Number of these files.
        files: u64,
    },
}

/// Events without their counterparts. I/O in flight at the start completes early in the trace, and
/// I/O in flight at the end was issued late. Only events far from both ends prove a missing part,
/// so events are counted for the whole trace and for its halves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Completions.
    pub completions: u64,
    /// Completions of requests that were neither submitted nor issued before (orphans).
    pub orphans: u64,
    /// Completions in about the second half of the trace.
    pub late_completions: u64,
    /// Orphans among the late completions.
    pub late_orphans: u64,
    /// Requests that were issued, or submitted if issues were not recorded.
    pub issued: u64,
    /// Requests that never completed.
    pub pending: u64,
    /// Pending requests that were not in flight at the end: issued in the first half, overtaken by
    /// more requests than a device holds, or issued long after the last completion.
    pub stale_pending: u64,
    /// Whether issues were recorded.
    pub by_issue: bool,
    /// The CPUs whose events were read, in rising order.
    pub cpus: Vec<u32>,
    /// Whether the numbers of per-CPU files have gaps.
    pub cpus_missing: bool,
}

impl Unmatched {
    /// Returns whether a part is certainly missing.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        let many = |some: u64, total: u64| some >= UNMATCHED_MIN && percent(some, total) > LOST_PERCENT_MAX;
        many(self.late_orphans, self.late_completions)
            || (self.by_issue && many(self.stale_pending, self.issued))
            || (self.cpus_missing && self.is_inside())
    }

    /// Returns whether events without counterparts are far from the ends of the recording.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.late_orphans > 0 || self.stale_pending > 0
    }
}

impl Gap {
    /// Returns a name for machine-readable output.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::Unmatched(_) => "unmatched",
            Self::NoCompletions { .. } => "no_completions",
            Self::CompletionsAlone { .. } => "completions_alone",
            Self::NoSubmissions { .. } => "no_submissions",
            Self::MissingCpus { .. } => "missing_cpus",
            Self::Dropped { .. } => "dropped",
            Self::Damaged { .. } => "damaged",
            Self::BadLines { .. } => "bad_lines",
            Self::PassedOver { .. } => "passed_over",
            Self::Disorder { .. } => "disorder",
            Self::NoLineEnd { .. } => "no_line_end",
            Self::Unclosed { .. } => "unclosed",
        }
    }

    /// Returns whether the data is certainly incomplete, and lacks more than a small part.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Unmatched(unmatched) => unmatched.is_certain(),
            Self::NoCompletions { issued, one_file, .. } => *one_file && *issued >= UNMATCHED_MIN,
            Self::CompletionsAlone { completions } => *completions >= UNMATCHED_MIN,
            Self::MissingCpus { unmatched, .. } => *unmatched,
            Self::Dropped { records: some, total }
            | Self::Damaged { bytes: some, total }
            | Self::BadLines { lines: some, total, .. }
            | Self::Disorder { records: some, total, .. } => percent(*some, *total) > LOST_PERCENT_MAX,
            Self::NoSubmissions { .. } | Self::PassedOver { .. } | Self::NoLineEnd { .. } | Self::Unclosed { .. } => {
                false
            }
        }
    }

    /// Returns whether the gap can change conclusions. I/O in flight at the start or end cannot
    /// change them. A missing CPU cannot change them if no events are missing.
    #[must_use]
    pub fn matters(&self) -> bool {
        match self {
            Self::Unmatched(unmatched) => unmatched.is_certain() || unmatched.is_inside(),
            Self::MissingCpus { unmatched, .. } => *unmatched,
            _ => true,
        }
    }

    /// Returns a remedy that completes or corrects the data.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Unmatched(_) | Self::NoCompletions { .. } | Self::MissingCpus { .. } => {
                "put the files of all CPUs into one directory"
            }
            Self::CompletionsAlone { .. } => {
                "record again, with issues (D) or submissions (Q): use blktrace without -a, or the event \
                 block:block_rq_issue"
            }
            Self::NoSubmissions { .. } => {
                "record again, with submissions (Q): use blktrace without -a, or the event block:block_bio_queue"
            }
            Self::Cut { .. } | Self::Damaged { .. } | Self::NoLineEnd { .. } => "copy the whole file",
            Self::Dropped { .. } => "record again with larger buffers (blktrace -b and -n)",
            Self::BadLines { .. } => "give the right format with --input-format",
            Self::Disorder { .. } => "read each recording separately, or sort the trace by time",
            Self::PassedOver { .. } => "correct the lengths, or remove these records",
            Self::Unclosed { .. } => "let fio finish its run",
        }
    }
}

/// Returns `some` as a percentage of `total`.
pub(crate) fn percent(some: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { some as f64 / total as f64 * 100.0 }
}

/// Returns a percentage as text. A small percentage is not rounded to 0.
fn share(some: u64, total: u64) -> String {
    match percent(some, total) {
        percent if percent > 0.0 && percent < 0.1 => "less than 0.1 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

fn list(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    let (what, words) = (if numbers.len() == 1 { "CPU" } else { "CPUs" }, words.as_slice());
    match words {
        [first @ .., last] if !first.is_empty() => format!("{what} {} and {last}", first.join(", ")),
        _ => format!("{what} {}", words.concat()),
    }
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { completions, orphans, issued, pending, .. } = *self;
        let (some, total) = (grouped(orphans), grouped(completions));
        if orphans > 0 {
            let part = share(orphans, completions);
            write!(
                f,
                "{some} of the {total} completions ({part}) belong to requests whose submission is not in the trace"
            )?;
        }
        if pending > 0 {
            let (some, total, part) = (grouped(pending), grouped(issued), share(pending, issued));
            let done = if self.by_issue { "issued" } else { "submitted" };
            let and = if orphans > 0 { ", and " } else { "" };
            write!(f, "{and}{some} of {total} {done} requests ({part}) have no completion in the trace")?;
        }
        let read = list(&self.cpus);
        match (self.is_certain(), self.is_inside()) {
            (true, _) => write!(
                f,
                "; files of other CPUs are missing or incomplete (iosched read the files of \
                                    {read})"
            ),
            (false, true) => write!(f, "; a part of the recording may be missing (iosched read the files of {read})"),
            (false, false) => f.write_str("; this I/O was in flight when tracing began or ended"),
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cut { place, cause } => write!(f, "the data is truncated: {place}: {cause}"),
            Self::Unmatched(unmatched) => unmatched.fmt(f),
            Self::NoCompletions { issued, cpus, one_file } => {
                let (issued, cpus) = (grouped(*issued), list(cpus));
                write!(f, "the trace has no completion for any of the {issued} issued requests: ")?;
                match one_file {
                    true => {
                        write!(
                            f,
                            "files of other CPUs are missing (iosched read the files of {cpus}), or the recording \
                             has no completions"
                        )
                    }
                    false => f.write_str("the recording has no completions"),
                }
            }
            Self::CompletionsAlone { completions } => write!(
                f,
                "{} requests completed, but the recording has no submissions (Q) and no issues (D), so iosched \
                 cannot read requests from this recording",
                grouped(*completions)
            ),
            Self::NoSubmissions { issued } => write!(
                f,
                "{} requests have no submission (Q). iosched takes their insertion (I), allocation (G) or issue (D) \
                 as the submission. The latencies of these requests begin at this event",
                grouped(*issued)
            ),
            Self::MissingCpus { missing, read, unmatched } => {
                let (is, missing) = (if missing.len() == 1 { "file" } else { "files" }, list(missing));
                let are = if is == "file" { "is" } else { "are" };
                write!(f, "the {is} of {missing} {are} missing (iosched read the files of {})", list(read))?;
                f.write_str(if *unmatched { "" } else { "; all submissions in the other files have completions" })
            }
            Self::Dropped { records, total } => {
                let (some, total, part) = (grouped(*records), grouped(*total), share(*records, *total));
                write!(f, "{some} of the {total} records ({part}) were lost during the recording")
            }
            Self::Damaged { bytes, total } => {
                let (some, total, part) = (grouped(*bytes), grouped(*total), share(*bytes, *total));
                write!(f, "{some} of the {total} bytes ({part}) do not belong to any record")
            }
            Self::BadLines { lines, total, first, format } => {
                let (some, total, part) = (grouped(*lines), grouped(*total), share(*lines, *total));
                write!(f, "{some} of the {total} lines ({part}) are not {format} records")?;
                first.iter().try_for_each(|warning| write!(f, "; {warning}"))
            }
            Self::PassedOver { records, total, first } => {
                let (some, total, part) = (grouped(*records), grouped(*total), share(*records, *total));
                write!(
                    f,
                    "iosched skipped {some} of the {total} records ({part}), because they are not I/O; the first of \
                     these records is {first}"
                )
            }
            Self::Disorder { records, total, most_ns } => {
                let (some, total, part) = (grouped(*records), grouped(*total), share(*records, *total));
                let most_s = *most_ns as f64 / 1e9;
                write!(
                    f,
                    "times go backwards: {some} of the {total} records ({part}) are older than an earlier record, \
                     by up to {most_s:.6} s"
                )
            }
            Self::NoLineEnd { place } => {
                write!(
                    f,
                    "{place}: the last line has no newline. The file may be truncated, and its last number may be \
                     wrong"
                )
            }
            Self::Unclosed { files } => {
                let files =
                    if *files == 1 { "1 file was".to_owned() } else { format!("{} files were", grouped(*files)) };
                write!(f, "{files} opened and never closed in the log, so fio ended early, or the log is truncated")
            }
        }
    }
}

/// The missing parts of a recording. Certain gaps come first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    gaps: Vec<Gap>,
}

impl Completeness {
    pub(crate) fn of(mut gaps: Vec<Gap>) -> Self {
        // The sort is stable, so gaps of the same certainty keep their order of discovery.
        gaps.sort_by_key(|gap| !gap.is_certain());
        Self { gaps }
    }

    /// Returns all gaps, certain ones first.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Returns whether no part is known to be missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Returns whether the data is certainly incomplete.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.gaps.iter().any(Gap::is_certain)
    }

    /// Returns the gaps that certainly exist in the recording.
    pub fn certain(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(|gap| gap.is_certain())
    }
}
