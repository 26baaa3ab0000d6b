//! What goes wrong with a trace, and where: errors where nothing could be read, warnings where something could.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::Format;

/// A place in a trace file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named when opened.
    pub file: Arc<str>,
    /// Byte offset from the file's start; of the decompressed data if [`Place::decompressed`].
    pub offset_bytes: u64,
    /// Line number from 1, for text formats.
    pub line: Option<u64>,
    /// The file is compressed, so the offset counts decompressed bytes.
    pub decompressed: bool,
}

impl fmt::Display for Place {
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
    #[error("no trace file was named")]
    NoFile,
    /// Every file is of 0 bytes.
    #[error("{file}: the trace is empty (0 bytes)")]
    Empty {
        /// The first file.
        file: String,
    },
    /// Neither content nor name tell the format.
    #[error("{file}: not a trace in a known format; known are {}", Format::names())]
    UnknownFormat {
        /// The file.
        file: String,
    },
    /// A block trace of another version.
    #[error("{file}: a block trace of version {version}; version 7 can be read")]
    UnsupportedVersion {
        /// The file.
        file: String,
        /// The version it claims.
        version: u8,
    },
    /// Several files, but only block traces come in several.
    #[error("{file}: a trace in the format {format} is one file; only blktrace comes in several, one per CPU")]
    SeveralFiles {
        /// A file that cannot be merged with others.
        file: String,
        /// Its format.
        format: Format,
    },
    /// Events were asked of a format that records requests only.
    #[error("{file}: a trace in the format {format} holds no events; blktrace and blkparse do")]
    NoEvents {
        /// The file.
        file: String,
        /// Its format.
        format: Format,
    },
    /// Damaged, and not one record could be read.
    #[error("{place}: {problem}; no record could be read")]
    Unreadable {
        /// Where the first damage was met.
        place: Place,
        /// What was wrong and what would be right.
        problem: WarningKind,
    },
    /// The format given to a writer cannot be written.
    #[error("the format {format} cannot be written; {} can", Format::writable_names())]
    NotWritable {
        /// The format.
        format: Format,
    },
    /// Writing failed.
    #[error("writing the trace: {0}")]
    Write(#[source] io::Error),
}

/// What was wrong at one place of a trace that could be read on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WarningKind {
    /// The file ends inside a record.
    #[error("the file ends inside a record: {have_bytes} of {want_bytes} bytes are there")]
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
    #[error("a record's length is damaged: it says {claimed_bytes} bytes of data follow")]
    BadLength {
        /// Bytes of data the header claims.
        claimed_bytes: u64,
    },
    /// Reading or decompressing failed here; what comes after is lost.
    #[error("cannot be read on from here: {message}")]
    Unreadable {
        /// What the system or the decompressor says.
        message: String,
    },
    /// A line that is no record.
    #[error("found {found:?}, expected {expected}")]
    BadLine {
        /// The start of the line.
        found: String,
        /// What a line should look like.
        expected: &'static str,
    },
    /// A line too long to be a record.
    #[error("a line of {length_bytes} bytes; at most {max_bytes} make sense")]
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
    /// A record that is older than one already given out; its time was raised to that one's.
    #[error(
        "a record {late_ns} ns older than one before it, more than the reorder window can mend; its time was raised"
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
    pub place: Place,
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

/// The warnings of one trace: the first [`WARNINGS_MAX`], and how many there were.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    kept: Vec<Warning>,
    total: u64,
    dropped_records: u64,
}

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
        self.dropped_records
    }

    /// Whether there was none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) fn push(&mut self, place: Place, kind: WarningKind) {
        if let WarningKind::Dropped { records } = kind {
            self.dropped_records += records;
        }
        self.total += 1;
        if self.kept.len() < WARNINGS_MAX {
            self.kept.push(Warning { place, kind });
        }
    }
}
