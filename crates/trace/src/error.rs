//! Errors and warnings of traces, with their positions in the file. After an error, the trace is
//! unreadable or incomplete. After a warning, reading continues.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::Format;
use crate::completeness::{Completeness, Gap};

/// A place in a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePlace {
    /// The file, with the name under which it was opened.
    pub file: Arc<str>,
    /// Byte offset from the start of the file. If [`TracePlace::decompressed`] is true, the offset
    /// counts decompressed bytes.
    pub offset_bytes: u64,
    /// Line number from 1, for text formats.
    pub line: Option<u64>,
    /// Whether the file is compressed, so that the offset counts decompressed bytes.
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

/// Reason why a file is not in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The format that was tried.
    pub format: Format,
    /// The first line that is not of the format, from 1; `None` for binary formats.
    pub line: Option<u64>,
    /// Start of that line.
    pub found: String,
    /// Description of the correct contents.
    pub expected: &'static str,
    /// Number of records of the format before that line.
    pub records: u64,
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.format)?;
        match self.line {
            Some(line) => write!(f, "line {line}: found {:?}, expected {}", self.found, self.expected),
            None => write!(f, "the file does not begin with {}", self.expected),
        }
    }
}

/// Reason why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The system reported an error.
    #[error("{file}: {source}")]
    Io {
        /// Name of the file.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
    /// The file does not exist, and no per-CPU or compressed file has this name with an extension.
    #[error("{file}: there is no such file, and no file {file}.0, {file}.blktrace.0, {file}.gz or {file}.zst")]
    NotFound {
        /// The given name.
        file: String,
    },
    /// No file was given.
    #[error("no trace file is given")]
    NoFile,
    /// All files have 0 bytes.
    #[error("{file}: the trace is empty (0 bytes)")]
    Empty {
        /// The first file.
        file: String,
    },
    /// The name is the name of a directory.
    #[error("{file}: this is a directory; name a file in it{}", found_in(found))]
    Directory {
        /// The directory.
        file: String,
        /// A few names of traces in the directory.
        found: Vec<String>,
    },
    /// The contents are in no known format.
    #[error("{file}: this is not a trace in a known format: {looks_like}")]
    UnknownFormat {
        /// Name of the file.
        file: String,
        /// The most likely cause and its remedy.
        looks_like: Cow<'static, str>,
        /// Formats that were tried, with the reasons.
        misfits: Vec<Misfit>,
    },
    /// The named columns do not form a table of requests.
    #[error("columns {columns:?}: {problem}")]
    Columns {
        /// The columns as given.
        columns: String,
        /// The problem and its remedy.
        problem: String,
    },
    /// Too many lines are not records of the format.
    #[error(
        "{file}: {gap}; iosched accepts a file only if at most {} % of its lines are not \
         records",
        crate::LOST_PERCENT_MAX
    )]
    BadLines {
        /// Name of the file.
        file: String,
        /// Number of these lines, and the first ones.
        gap: Box<Gap>,
    },
    /// The recording is certainly incomplete.
    #[error("{file}: the recording is incomplete: {}", gaps(completeness))]
    Partial {
        /// The file or files.
        file: String,
        /// The missing parts.
        completeness: Completeness,
    },
    /// A block trace of another format version.
    #[error("{file}: the block trace has version {version}; iosched reads only version 7")]
    UnsupportedVersion {
        /// Name of the file.
        file: String,
        /// Format version of the file.
        version: u8,
    },
    /// Several files were given for a format that has one file per trace. Only block traces have
    /// several files.
    #[error("{file}: a trace in the format {format} is a single file; only blktrace has several files, one per CPU")]
    SeveralFiles {
        /// A file that cannot be merged with others.
        file: String,
        /// Its format.
        format: Format,
    },
    /// A unit of time was given for a format with a fixed unit.
    #[error(
        "{file}: times in the format {format} have a fixed unit; --time-unit is only for formats whose times have no \
         fixed unit, such as {}",
        Format::bare_time_names()
    )]
    TimeUnit {
        /// Name of the file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// Events were requested from a format that records only requests.
    #[error(
        "{file}: a trace in the format {format} has no events; only the formats blktrace, blkparse and tracepoints \
         have events"
    )]
    NoEvents {
        /// Name of the file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// The file is damaged, and no record could be read.
    #[error("{place}: {problem}; the file has no readable record")]
    Unreadable {
        /// Place of the first damage.
        place: TracePlace,
        /// The problem and the correct contents.
        problem: WarningKind,
    },
    /// The format cannot be written.
    #[error(
        "iosched cannot write the format {format}; the formats that iosched can write are {}",
        Format::writable_names()
    )]
    NotWritable {
        /// Name of the format.
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
    /// Returns a line for each format that was tried, with the reason why the file is not in it.
    /// Only [`TraceError::UnknownFormat`] has these lines.
    #[must_use]
    pub fn tried(&self) -> Option<String> {
        let Self::UnknownFormat { misfits, .. } = self else { return None };
        let lines: Vec<String> = misfits.iter().map(|misfit| format!("\n  {misfit}")).collect();
        (!lines.is_empty()).then(|| format!("tried:{}", lines.concat()))
    }
}

/// Returns the certain gaps with their remedies.
fn gaps(completeness: &Completeness) -> String {
    let problems: Vec<String> = completeness.certain().map(ToString::to_string).collect();
    let mut remedies: Vec<&str> = completeness.certain().map(Gap::remedy).collect();
    remedies.dedup();
    format!("{}; {}", problems.join("; and "), remedies.join(", and "))
}

/// Kind of a problem at a place of a trace, after which reading continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// The file ends inside a record.
    #[error("the file ends inside a record, after {have_bytes} of {want_bytes} bytes")]
    Truncated {
        /// Available bytes of the record.
        have_bytes: u64,
        /// Bytes that the record should have.
        want_bytes: u64,
    },
    /// Bytes that belong to no record.
    #[error("iosched skipped {skipped_bytes} bytes that do not belong to any record")]
    Damaged {
        /// Number of skipped bytes.
        skipped_bytes: u64,
    },
    /// No other record follows the data of a record.
    #[error(
        "the length of a record is damaged: the record claims {claimed_bytes} bytes of data, but no other record \
         begins after this data"
    )]
    BadLength {
        /// Bytes of data according to the header.
        claimed_bytes: u64,
    },
    /// Reading or decompressing failed here. The rest is lost.
    #[error("the rest of the file cannot be read: {message}")]
    Unreadable {
        /// Message of the system or the decompressor.
        message: String,
    },
    /// A line that is not a record.
    #[error("found {found:?}, expected {expected}")]
    BadLine {
        /// The start of the line, or the wrong field.
        found: String,
        /// Description of a correct line or field.
        expected: Cow<'static, str>,
    },
    /// The file ends inside a line.
    #[error("the file ends inside a line: found {found:?}, expected {expected}")]
    CutLine {
        /// The start of the line, or the wrong field.
        found: String,
        /// Description of a correct line or field.
        expected: Cow<'static, str>,
    },
    /// The last line is a record without a newline.
    #[error("the last line has no newline, so the line may be truncated")]
    NoLineEnd,
    /// An I/O of zero length.
    #[error("iosched skipped an I/O of length 0")]
    NoLength,
    /// A line that is too long for a record.
    #[error("a line has {length_bytes} bytes; it may have at most {max_bytes}")]
    LongLine {
        /// Its length, bytes.
        length_bytes: u64,
        /// The longest line that is parsed, bytes.
        max_bytes: u64,
    },
    /// Records were dropped during recording: their sequence numbers are missing.
    #[error("{records} records were lost during the recording")]
    Dropped {
        /// Number of dropped records before this place.
        records: u64,
    },
    /// A record with a wrong sequence number between neighbours with consecutive numbers.
    #[error(
        "the sequence number of a record is {found} instead of {expected}. Only this number is damaged; no record \
         is lost"
    )]
    BadSequence {
        /// The number of the record.
        found: u32,
        /// The expected number.
        expected: u32,
    },
    /// A record that is older than a record that was already returned. The reader raised its time
    /// to the time of that record.
    #[error(
        "a record is {late_ns} ns older than an earlier record. iosched sorts records only within a short window, so \
         iosched gave this record the time of the earlier record"
    )]
    Late {
        /// The correction, ns.
        late_ns: u64,
    },
    /// A command that is neither read, write, flush nor discard.
    #[error("iosched skipped the command {command:#04x}, which is neither read, write, flush nor discard")]
    UnknownCommand {
        /// Its SCSI operation code.
        command: u16,
    },
}

/// A warning: a problem and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Place of the problem.
    pub place: TracePlace,
    /// Kind of the problem.
    pub kind: WarningKind,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.kind)
    }
}

/// Maximum number of warnings that are kept of one trace. Later warnings are only counted.
pub const WARNINGS_MAX: usize = 64;

/// The warnings of one trace: the first [`WARNINGS_MAX`], their number, and the counts of problems.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    kept: Vec<Warning>,
    total: u64,
    pub(crate) tally: Tally,
}

/// Counts made while reading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Lines that are not blank.
    pub(crate) lines: u64,
    bad_lines: u64,
    first_bad: Vec<Warning>,
    passed_over: u64,
    first_passed_over: Option<Box<Warning>>,
    /// Bytes read, for binary formats.
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

/// Maximum number of bad lines in an error message.
const BAD_LINES_TOLD: usize = 3;
/// Maximum number of truncated files in an error message. A trace can have one file for each of
/// many CPUs.
const CUTS_TOLD: usize = 16;

impl Warnings {
    /// Returns the first warnings.
    #[must_use]
    pub fn kept(&self) -> &[Warning] {
        &self.kept
    }

    /// Returns the number of warnings.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of records that were dropped during recording, according to gaps in the
    /// sequence numbers.
    #[must_use]
    pub fn dropped_records(&self) -> u64 {
        self.tally.dropped
    }

    /// Returns whether there are no warnings.
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

    /// Returns the gaps in a trace in `format` with `records` records, according to the warnings.
    pub(crate) fn gaps(&self, format: Format, records: u64) -> Vec<Gap> {
        let Tally { lines, bad_lines, bytes, skipped_bytes, dropped, late, unclosed, .. } = self.tally;
        let cuts = self.tally.cut.iter().cloned();
        let mut gaps: Vec<Gap> = cuts.map(|Warning { place, kind: cause }| Gap::Cut { place, cause }).collect();
        if bad_lines > 0 {
            let first = self.tally.first_bad.clone();
            gaps.push(Gap::BadLines { lines: bad_lines, total: lines, first, format });
        }
        if let Some(first) = self.tally.first_passed_over.clone() {
            let passed_over = self.tally.passed_over;
            gaps.push(Gap::PassedOver { records: passed_over, total: records + passed_over, first });
        }
        if skipped_bytes > 0 {
            gaps.push(Gap::Damaged { bytes: skipped_bytes, total: bytes.max(skipped_bytes) });
        }
        if dropped > 0 {
            gaps.push(Gap::Dropped { records: dropped, total: records + dropped });
        }
        if late > 0 {
            gaps.push(Gap::Disorder { records: late, total: records, most_ns: self.tally.late_most_ns });
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
