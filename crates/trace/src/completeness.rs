//! How much of a recording a trace is: what is missing of it, how sure that is, and what can be done. For whoever has
//! to say so before anything is concluded from the rest.

use std::fmt;

use crate::Format;
use crate::error::{TracePlace, Warning, WarningKind};
use crate::grouped::grouped;

/// Of what was recorded, so much may be lost or damaged before the rest no longer passes for the whole, per cent.
/// Below, means and shares move by less than the 2 % that a comparison takes for a difference of quantiles.
pub const LOST_PERCENT_MAX: f64 = 1.0;

/// Fewer events than these without their counterparts prove nothing: I/O that was under way when tracing began or
/// ended can be overtaken by that of a whole run.
pub const UNMATCHED_MIN: u64 = 10;

/// Something of a recording that is missing in what was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The data end inside a record, a line or a compressed stream.
    Cut {
        /// Where.
        place: TracePlace,
        /// How it shows.
        cause: WarningKind,
    },
    /// Events whose counterparts are nowhere in what was read.
    Unmatched(Unmatched),
    /// Requests were issued, and not one completion is there.
    NoCompletions {
        /// Requests issued.
        issued: u64,
        /// The CPUs whose events were read, rising.
        cpus: Vec<u32>,
        /// Whether it is the file of one CPU alone that was read.
        one_file: bool,
    },
    /// The submissions (Q) of requests are not there: readers take other events as requests.
    NoSubmissions {
        /// Requests that were inserted, allocated or issued instead.
        issued: u64,
    },
    /// The numbers of per-CPU files leave some out.
    MissingCpus {
        /// Those left out, rising.
        missing: Vec<u32>,
        /// Those read, rising.
        read: Vec<u32>,
        /// Whether events are without their counterparts, too.
        unmatched: bool,
    },
    /// Records were lost while recording.
    Dropped {
        /// How many.
        records: u64,
        /// Of how many, these counted.
        of: u64,
    },
    /// Bytes that belong to no record.
    Damaged {
        /// How many.
        bytes: u64,
        /// Of how many.
        of: u64,
    },
    /// Lines that are no records.
    BadLines {
        /// How many.
        lines: u64,
        /// Of how many that are not blank.
        of: u64,
        /// The first ones.
        first: Vec<Warning>,
        /// The format they are not of.
        format: Format,
    },
    /// Records that are no I/O: of no length, or commands that move no data.
    PassedOver {
        /// How many.
        records: u64,
        /// Of how many.
        of: u64,
        /// The first one.
        first: Box<Warning>,
    },
    /// Times go back, further than writers disorder them: recordings put one behind the other, perhaps.
    Disorder {
        /// Records whose times had to be raised.
        records: u64,
        /// Of how many.
        of: u64,
        /// The furthest one was raised, ns.
        most_ns: u64,
    },
    /// The last line has no end: nobody knows whether it is whole.
    NoLineEnd {
        /// Where it begins.
        place: TracePlace,
    },
    /// Files of a fio log that were opened and not closed.
    Unclosed {
        /// How many.
        files: u64,
    },
}

/// Events without their counterparts. I/O under way when tracing began completes early, and I/O under way when it ended
/// was issued late: what tells of a missing part is counted away from the ends, over the whole and in the halves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmatched {
    /// Completions.
    pub completions: u64,
    /// Those of requests that were neither submitted nor issued before.
    pub orphans: u64,
    /// Completions in the later half or so.
    pub late_completions: u64,
    /// Orphans among them.
    pub late_orphans: u64,
    /// Requests issued; submitted, where issues were not recorded.
    pub issued: u64,
    /// Those that never completed.
    pub pending: u64,
    /// Those among them that were not under way when tracing ended: issued in the earlier half, overtaken by more than
    /// a device holds, or issued long after the last completion.
    pub stale_pending: u64,
    /// Whether issues were recorded.
    pub by_issue: bool,
    /// The CPUs whose events were read, rising.
    pub cpus: Vec<u32>,
    /// The numbers of per-CPU files leave some out.
    pub cpus_missing: bool,
}

impl Unmatched {
    /// Whether a part is missing for certain.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        let many = |some: u64, of: u64| some >= UNMATCHED_MIN && percent(some, of) > LOST_PERCENT_MAX;
        many(self.late_orphans, self.late_completions)
            || (self.by_issue && many(self.stale_pending, self.issued))
            || (self.cpus_missing && self.is_inside())
    }

    /// Whether any is away from the ends of the recording.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.late_orphans > 0 || self.stale_pending > 0
    }
}

impl Gap {
    /// A name for machines.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::Unmatched(_) => "unmatched",
            Self::NoCompletions { .. } => "no_completions",
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

    /// Whether it is certain that what was read is not the whole, and by more than a small share.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Cut { .. } => true,
            Self::Unmatched(unmatched) => unmatched.is_certain(),
            Self::NoCompletions { issued, one_file, .. } => *one_file && *issued >= UNMATCHED_MIN,
            Self::MissingCpus { unmatched, .. } => *unmatched,
            Self::Dropped { records: some, of }
            | Self::Damaged { bytes: some, of }
            | Self::BadLines { lines: some, of, .. }
            | Self::Disorder { records: some, of, .. } => percent(*some, *of) > LOST_PERCENT_MAX,
            Self::NoSubmissions { .. } | Self::PassedOver { .. } | Self::NoLineEnd { .. } | Self::Unclosed { .. } => {
                false
            }
        }
    }

    /// Whether it can change what is concluded: not what was under way when tracing began or ended, nor a CPU that
    /// nothing is missing of.
    #[must_use]
    pub fn matters(&self) -> bool {
        match self {
            Self::Unmatched(unmatched) => unmatched.is_certain() || unmatched.is_inside(),
            Self::MissingCpus { unmatched, .. } => *unmatched,
            _ => true,
        }
    }

    /// What can be done about it, beside doing without.
    #[must_use]
    pub const fn remedy(&self) -> &'static str {
        match self {
            Self::Unmatched(_) | Self::NoCompletions { .. } | Self::MissingCpus { .. } => {
                "put the files of all CPUs into one directory"
            }
            Self::NoSubmissions { .. } => "record submissions as well (blktrace without -a, or block:block_bio_queue)",
            Self::Cut { .. } | Self::Damaged { .. } | Self::NoLineEnd { .. } => "copy the whole file",
            Self::Dropped { .. } => "record again with larger buffers (blktrace -b and -n)",
            Self::BadLines { .. } => "give the right format with --input-format",
            Self::Disorder { .. } => "read each recording separately, or sort the trace by time",
            Self::PassedOver { .. } => "correct the lengths, or remove these records",
            Self::Unclosed { .. } => "let fio run to its end",
        }
    }
}

/// `some` of `of`, per cent.
pub(crate) fn percent(some: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { some as f64 / of as f64 * 100.0 }
}

/// Per cent, so that little is not nothing.
fn share(some: u64, of: u64) -> String {
    match percent(some, of) {
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
        let (some, of) = (grouped(orphans), grouped(completions));
        if orphans > 0 {
            let part = share(orphans, completions);
            write!(f, "{some} of {of} completions ({part}) belong to requests without a submission in the trace")?;
        }
        if pending > 0 {
            let (some, of, part) = (grouped(pending), grouped(issued), share(pending, issued));
            let done = if self.by_issue { "issued" } else { "submitted" };
            let and = if orphans > 0 { ", and " } else { "" };
            write!(f, "{and}{some} of {of} {done} requests ({part}) have no completion in the trace")?;
        }
        let read = list(&self.cpus);
        match (self.is_certain(), self.is_inside()) {
            (true, _) => write!(f, "; files of other CPUs are missing or incomplete (read: {read})"),
            (false, true) => write!(f, "; part of the recording may be missing (read: {read})"),
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
                write!(f, "{issued} requests were issued, but there is no completion: ")?;
                match one_file {
                    true => {
                        write!(f, "files of other CPUs are missing (read: {cpus}), or completions were not recorded")
                    }
                    false => f.write_str("completions were not recorded"),
                }
            }
            Self::NoSubmissions { issued } => write!(
                f,
                "{} requests have no submission (Q): iosched takes their insertion (I), allocation (G) or issue (D) \
                 as the submission, so latency begins there",
                grouped(*issued)
            ),
            Self::MissingCpus { missing, read, unmatched } => {
                let (is, missing) = (if missing.len() == 1 { "file" } else { "files" }, list(missing));
                let are = if is == "file" { "is" } else { "are" };
                write!(f, "the {is} of {missing} {are} missing (read: {})", list(read))?;
                f.write_str(if *unmatched { "" } else { "; every submission that was read has its completion" })
            }
            Self::Dropped { records, of } => {
                let (some, of, part) = (grouped(*records), grouped(*of), share(*records, *of));
                write!(f, "{some} of {of} records ({part}) were dropped while recording")
            }
            Self::Damaged { bytes, of } => {
                let (some, of, part) = (grouped(*bytes), grouped(*of), share(*bytes, *of));
                write!(f, "{some} of {of} bytes ({part}) belong to no record")
            }
            Self::BadLines { lines, of, first, format } => {
                let (some, total, part) = (grouped(*lines), grouped(*of), share(*lines, *of));
                write!(f, "{some} of {total} lines ({part}) are not {format} records")?;
                first.iter().try_for_each(|warning| write!(f, "; {warning}"))
            }
            Self::PassedOver { records, of, first } => {
                let (some, of, part) = (grouped(*records), grouped(*of), share(*records, *of));
                write!(f, "{some} of {of} records ({part}) are not I/O and were skipped; the first: {first}")
            }
            Self::Disorder { records, of, most_ns } => {
                let (some, of, part) = (grouped(*records), grouped(*of), share(*records, *of));
                let most_s = *most_ns as f64 / 1e9;
                write!(
                    f,
                    "times go backwards: {some} of {of} ({part}) are older than an earlier record, by up to \
                 {most_s:.6} s"
                )
            }
            Self::NoLineEnd { place } => {
                write!(f, "{place}: the last line has no newline: the file may be truncated, and its last number wrong")
            }
            Self::Unclosed { files } => {
                let files =
                    if *files == 1 { "1 file was".to_owned() } else { format!("{} files were", grouped(*files)) };
                write!(f, "{files} opened but not closed in the log: fio ended early, or the log is truncated")
            }
        }
    }
}

/// What is missing of a recording, what is certain first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    gaps: Vec<Gap>,
}

impl Completeness {
    pub(crate) fn of(mut gaps: Vec<Gap>) -> Self {
        // Stable: within each kind as they were found.
        gaps.sort_by_key(|gap| !gap.is_certain());
        Self { gaps }
    }

    /// Everything, what is certain first.
    #[must_use]
    pub fn gaps(&self) -> &[Gap] {
        &self.gaps
    }

    /// Whether nothing is known to be missing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.gaps.is_empty()
    }

    /// Whether it is certain that this is not the whole.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.gaps.iter().any(Gap::is_certain)
    }

    /// What is certain.
    pub fn certain(&self) -> impl Iterator<Item = &Gap> {
        self.gaps.iter().filter(|gap| gap.is_certain())
    }
}
