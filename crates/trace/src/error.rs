//! What goes wrong with a trace, and where: errors where it cannot be read or is not the whole, warnings where
//! something could be read.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::Format;
use crate::completeness::{Completeness, Gap};

/// A place in a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePlace {
    /// The file, as it was named when opened.
    pub file: Arc<str>,
    /// Byte offset from the file's start; of the decompressed data if [`TracePlace::decompressed`].
    pub offset_bytes: u64,
    /// Line number from 1, for text formats.
    pub line: Option<u64>,
    /// The file is compressed, so the offset counts decompressed bytes.
    pub decompressed: bool,
}

impl fmt::Display for TracePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        write!(f, "byte {}", self.offset_bytes)?;
        if self.decompressed {
            f.write_str(" of the decompressed data")?;
        }
        Ok(())
    }
}

/// Why a file is not in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The format that was tried.
    pub format: Format,
    /// The first line that is not of it, from 1; `None` of binary formats.
    pub line: Option<u64>,
    /// How it begins.
    pub found: String,
    /// What would be right.
    pub expected: &'static str,
    /// Lines of the file's beginning that are records of it.
    pub records: u64,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.format)?;
        match self.line {
            Some(line) => write!(f, "line {line}: found {:?}, expected {}", self.found, self.expected),
            None => write!(f, "it does not begin with {}", self.expected),
        }
    }
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file system refuses.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        source: io::Error,
    },
    /// There is no such file, and none that the name could stand for.
    #[error("{file}: no such file, nor {file}.0, {file}.blktrace.0, {file}.gz or {file}.zst")]
    NotFound {
        /// The name given.
        file: String,
    },
    /// No file was named.
    #[error("no trace file is given")]
    NoFile,
    /// Every file is of 0 bytes.
    #[error("{file}: the trace is empty (0 bytes)")]
    Empty {
        /// The first file.
        file: String,
    },
    /// It is a directory.
    #[error("{file}: is a directory; name a file in it{}", found_in(found))]
    Directory {
        /// The directory.
        file: String,
        /// Names in it that stand for traces, a few of them.
        found: Vec<String>,
    },
    /// The content is in no format that is known.
    #[error("{file}: not a trace in a known format: {looks_like}")]
    UnknownFormat {
        /// The file.
        file: String,
        /// The most likely cause, and what to do about it.
        looks_like: Cow<'static, str>,
        /// What was tried, and why it does not fit.
        misfits: Vec<Misfit>,
    },
    /// Names of columns that make no table of requests.
    #[error("columns {columns:?}: {problem}")]
    Columns {
        /// As given.
        columns: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// More than a small share of the lines are no records of the format.
    #[error("{file}: {gap}; at most {} % of the lines may be bad", crate::LOST_PERCENT_MAX)]
    BadLines {
        /// The file.
        file: String,
        /// How many, and the first ones.
        gap: Box<Gap>,
    },
    /// What was read is for certain not the whole recording.
    #[error("{file}: the recording is incomplete: {}", gaps(completeness))]
    Partial {
        /// The file or files.
        file: String,
        /// What is missing.
        completeness: Completeness,
    },
    /// A block trace of another version.
    #[error("{file}: the block trace has version {version}; iosched reads only version 7")]
    UnsupportedVersion {
        /// The file.
        file: String,
        /// The version it claims.
        version: u8,
    },
    /// Several files, but only block traces come in several.
    #[error("{file}: a trace in the format {format} is a single file; only blktrace has several files, one per CPU")]
    SeveralFiles {
        /// A file that cannot be merged with others.
        file: String,
        /// Its format.
        format: Format,
    },
    /// A unit of time was given for a format that says it itself.
    #[error(
        "{file}: times in the format {format} have a fixed unit; --time-unit is only for formats with bare numbers, \
         such as {}",
        Format::bare_time_names()
    )]
    TimeUnit {
        /// The file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// Events were asked of a format that records requests only.
    #[error("{file}: a trace in the format {format} has no events; only blktrace, blkparse and tracepoints have them")]
    NoEvents {
        /// The file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// Damaged, and not one record could be read.
    #[error("{place}: {problem}; the file has no readable record")]
    Unreadable {
        /// Where the first damage was met.
        place: TracePlace,
        /// What was wrong and what would be right.
        problem: WarningKind,
    },
    /// The format given to a writer cannot be written.
    #[error("iosched cannot write the format {format}; it can write {}", Format::writable_names())]
    NotWritable {
        /// The format.
        format: Format,
    },
    /// Writing failed.
    #[error("writing the trace: {0}")]
    Write(#[source] io::Error),
}

fn found_in(found: &[String]) -> String {
    if found.is_empty() { String::new() } else { format!(", such as {}", found.join(" or ")) }
}

impl TraceError {
    /// With [`TraceError::UnknownFormat`]: the formats that were tried and why the file is in
    /// none, a line each.
    #[must_use]
    pub fn tried(&self) -> Option<String> {
        let Self::UnknownFormat { misfits, .. } = self else { return None };
        let lines: Vec<String> = misfits.iter().map(|misfit| format!("\n  {misfit}")).collect();
        (!lines.is_empty()).then(|| format!("tried:{}", lines.concat()))
    }
}

/// What is certain, with its remedies.
fn gaps(completeness: &Completeness) -> String {
    let problems: Vec<String> = completeness.certain().map(ToString::to_string).collect();
    let mut remedies: Vec<&str> = completeness.certain().map(Gap::remedy).collect();
    remedies.dedup();
    format!("{}; {}", problems.join("; and "), remedies.join(", and "))
}

/// What was wrong at one place of a trace that could be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// The file ends inside a record.
    #[error("the file ends inside a record, after {have_bytes} of {want_bytes} bytes")]
    Truncated {
        /// Bytes of the record that are there.
        have_bytes: u64,
        /// Bytes the record should have.
        want_bytes: u64,
    },
    /// Bytes that belong to no record.
    #[error("{skipped_bytes} bytes belong to no record and were skipped")]
    Damaged {
        /// How many were skipped.
        skipped_bytes: u64,
    },
    /// The data that follow a record's header are not followed by a record.
    #[error("the length of a record is damaged: {claimed_bytes} bytes of data cannot follow")]
    BadLength {
        /// Bytes of data the header claims.
        claimed_bytes: u64,
    },
    /// Reading or decompressing failed here; what comes after is lost.
    #[error("cannot be read from here on: {message}")]
    Unreadable {
        /// What the system or the decompressor says.
        message: String,
    },
    /// A line that is no record.
    #[error("found {found:?}, expected {expected}")]
    BadLine {
        /// The start of the line, or the field of it that is wrong.
        found: String,
        /// What a line should look like, or the field.
        expected: Cow<'static, str>,
    },
    /// The file ends inside a line.
    #[error("the file ends inside a line: found {found:?}, expected {expected}")]
    CutLine {
        /// The start of the line, or the field of it that is wrong.
        found: String,
        /// What a line should look like, or the field.
        expected: Cow<'static, str>,
    },
    /// The last line is a record, but has no end.
    #[error("the last line has no newline, so it may be truncated")]
    NoLineEnd,
    /// An I/O of no length, which is none.
    #[error("an I/O of length 0 was skipped")]
    NoLength,
    /// A line too long to be a record.
    #[error("a line has {length_bytes} bytes; it may have at most {max_bytes}")]
    LongLine {
        /// Its length.
        length_bytes: u64,
        /// The longest that is looked at.
        max_bytes: u64,
    },
    /// Records were dropped while the trace was recorded: their sequence numbers are missing.
    #[error("{records} records were dropped while recording")]
    Dropped {
        /// How many, before this place.
        records: u64,
    },
    /// A record whose number is not the next, while those of the records around it follow one another.
    #[error("the number of a record is damaged: it is {found}, but should be {expected}; no records were dropped")]
    BadSequence {
        /// What it says.
        found: u32,
        /// What it should say.
        expected: u32,
    },
    /// A record that is older than one already given out; its time was raised to that one's.
    #[error(
        "a record is {late_ns} ns older than an earlier one, too late for the reorder window; its time was moved \
         forward"
    )]
    Late {
        /// By how much it was raised, ns.
        late_ns: u64,
    },
    /// A command that is neither read, write, flush nor discard.
    #[error("the command {command:#04x} is neither read, write, flush nor discard and was skipped")]
    UnknownCommand {
        /// Its SCSI operation code.
        command: u16,
    },
}

/// A place and what was wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where.
    pub place: TracePlace,
    /// What.
    pub kind: WarningKind,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

/// Most warnings kept of one trace; more are only counted.
pub const WARNINGS_MAX: usize = 64;

/// The warnings of one trace: the first [`WARNINGS_MAX`], how many there were, and what they come to.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    kept: Vec<Warning>,
    total: u64,
    pub(crate) tally: Tally,
}

/// What was counted while reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Lines that are not blank.
    pub(crate) lines: u64,
    bad_lines: u64,
    first_bad: Vec<Warning>,
    passed_over: u64,
    first_passed_over: Option<Box<Warning>>,
    /// Bytes read, of binary formats.
    pub(crate) bytes: u64,
    skipped_bytes: u64,
    dropped: u64,
    late: u64,
    late_most_ns: u64,
    cut: Vec<Warning>,
    open_end: Option<TracePlace>,
    /// Files of a log that were opened and not closed.
    pub(crate) unclosed: u64,
}

/// Bad lines that are told with an error.
const BAD_LINES_TOLD: usize = 3;
/// Ends before their time that are told: one for each file of many CPUs.
const CUTS_TOLD: usize = 16;

impl Warnings {
    /// The first of them.
    #[must_use]
    pub fn kept(&self) -> &[Warning] {
        &self.kept
    }

    /// How many there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Records dropped while the trace was recorded, as far as sequence numbers tell.
    #[must_use]
    pub fn dropped_records(&self) -> u64 {
        self.tally.dropped
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) fn push(&mut self, place: TracePlace, kind: WarningKind) {
        let warning = Warning { place, kind };
        self.tally.count(&warning);
        self.total += 1;
        if self.kept.len() < WARNINGS_MAX {
            self.kept.push(warning);
        }
    }

    /// What they say is missing of a trace in `format` of so many `records`.
    pub(crate) fn gaps(&self, format: Format, records: u64) -> Vec<Gap> {
        let Tally { lines, bad_lines, bytes, skipped_bytes, dropped, late, unclosed, .. } = self.tally;
        let cuts = self.tally.cut.iter().cloned();
        let mut gaps: Vec<Gap> = cuts.map(|Warning { place, kind: cause }| Gap::Cut { place, cause }).collect();
        if bad_lines > 0 {
            let first = self.tally.first_bad.clone();
            gaps.push(Gap::BadLines { lines: bad_lines, of: lines, first, format });
        }
        if let Some(first) = self.tally.first_passed_over.clone() {
            let passed_over = self.tally.passed_over;
            gaps.push(Gap::PassedOver { records: passed_over, of: records + passed_over, first });
        }
        if skipped_bytes > 0 {
            gaps.push(Gap::Damaged { bytes: skipped_bytes, of: bytes.max(skipped_bytes) });
        }
        if dropped > 0 {
            gaps.push(Gap::Dropped { records: dropped, of: records + dropped });
        }
        if late > 0 {
            gaps.push(Gap::Disorder { records: late, of: records, most_ns: self.tally.late_most_ns });
        }
        gaps.extend(self.tally.open_end.clone().map(|place| Gap::NoLineEnd { place }));
        if unclosed > 0 {
            gaps.push(Gap::Unclosed { files: unclosed });
        }
        gaps
    }
}

impl Tally {
    fn count(&mut self, warning: &Warning) {
        match warning.kind {
            WarningKind::Dropped { records } => self.dropped += records,
            WarningKind::Damaged { skipped_bytes } => self.skipped_bytes += skipped_bytes,
            WarningKind::Late { late_ns } => {
                self.late += 1;
                self.late_most_ns = self.late_most_ns.max(late_ns);
            }
            WarningKind::BadLine { .. } | WarningKind::LongLine { .. } => {
                self.bad_lines += 1;
                if self.first_bad.len() < BAD_LINES_TOLD {
                    self.first_bad.push(warning.clone());
                }
            }
            WarningKind::Truncated { .. } | WarningKind::Unreadable { .. } | WarningKind::CutLine { .. } => {
                if self.cut.len() < CUTS_TOLD {
                    self.cut.push(warning.clone());
                }
            }
            WarningKind::NoLineEnd => self.open_end = Some(warning.place.clone()),
            WarningKind::UnknownCommand { .. } | WarningKind::NoLength => {
                self.passed_over += 1;
                self.first_passed_over.get_or_insert_with(|| Box::new(warning.clone()));
            }
            WarningKind::BadLength { .. } | WarningKind::BadSequence { .. } => {}
        }
    }
}
