//! Meanings and separators of the columns of a table of requests. The user or the heading of the
//! file names the columns.

use std::borrow::Cow;
use std::fmt;

use iosched::{MICROSECOND_NS, MILLISECOND_NS, Op, SECOND_NS};

use super::{heading, value};
use crate::error::TraceError;
use crate::text::{decimal, number};

/// Meaning of a column of a trace that is a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// Time of arrival. The field is its unit, ns.
    Arrival(u64),
    /// Time of completion; the field is its unit, ns. Without a column of arrivals, the arrival is
    /// the completion minus the latency. Without a column of latencies, the latency is the
    /// completion minus the arrival.
    Completion(u64),
    /// The number of the process.
    Pid,
    /// The operation.
    Op,
    /// Whether the I/O is sync.
    Sync,
    /// The first sector.
    Sector,
    /// The length in sectors.
    Sectors,
    /// The first byte.
    OffsetBytes,
    /// The length in bytes.
    LengthBytes,
    /// Start of the I/O. The field is its unit, bytes.
    Offset(u64),
    /// Length of the I/O. The field is its unit, bytes.
    Length(u64),
    /// The device.
    Device,
    /// Latency. The field is its unit, ns.
    Latency(u64),
    /// Time during which the I/O waited before the device received it. The field is its unit, ns.
    /// The latency column does not include this time.
    Queued(u64),
    /// Flags as letters.
    Flags,
    /// The name of the process.
    Process,
    /// The ioprio of the process.
    IoPriority,
    /// A column without a meaning for iosched, which is skipped.
    Unknown,
}

/// Role of a column. A table can have only one column for each role.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Time,
    End,
    Start,
    Length,
    Latency,
    Queued,
    Other(Column),
}

/// All names of columns with their meanings. The reader returns times of the column `arrival_ns` as
/// written. Times of other columns count from the first record.
const NAMES: [(&str, Column); 40] = [
    ("arrival_ns", Column::Arrival(1)),
    ("time_ns", Column::Arrival(1)),
    ("time_us", Column::Arrival(MICROSECOND_NS)),
    ("time_ms", Column::Arrival(MILLISECOND_NS)),
    ("time_s", Column::Arrival(SECOND_NS)),
    ("completed_ns", Column::Completion(1)),
    ("completed_us", Column::Completion(MICROSECOND_NS)),
    ("completed_ms", Column::Completion(MILLISECOND_NS)),
    ("completed_s", Column::Completion(SECOND_NS)),
    ("end_ns", Column::Completion(1)),
    ("end_us", Column::Completion(MICROSECOND_NS)),
    ("end_ms", Column::Completion(MILLISECOND_NS)),
    ("end_s", Column::Completion(SECOND_NS)),
    ("op", Column::Op),
    ("sector", Column::Sector),
    ("offset_bytes", Column::OffsetBytes),
    ("offset_kib", Column::Offset(KIB)),
    ("offset_mib", Column::Offset(KIB * KIB)),
    ("nr_sectors", Column::Sectors),
    ("length_bytes", Column::LengthBytes),
    ("size_bytes", Column::LengthBytes),
    ("length_kib", Column::Length(KIB)),
    ("length_mib", Column::Length(KIB * KIB)),
    ("size_kib", Column::Length(KIB)),
    ("size_mib", Column::Length(KIB * KIB)),
    ("pid", Column::Pid),
    ("process", Column::Process),
    ("device", Column::Device),
    ("sync", Column::Sync),
    ("flags", Column::Flags),
    ("ioprio", Column::IoPriority),
    ("latency_ns", Column::Latency(1)),
    ("latency_us", Column::Latency(MICROSECOND_NS)),
    ("latency_ms", Column::Latency(MILLISECOND_NS)),
    ("latency_s", Column::Latency(SECOND_NS)),
    ("queue_ns", Column::Queued(1)),
    ("queue_us", Column::Queued(MICROSECOND_NS)),
    ("queue_ms", Column::Queued(MILLISECOND_NS)),
    ("queue_s", Column::Queued(SECOND_NS)),
    (IGNORED, Column::Unknown),
];

const KIB: u64 = 1_024;
/// Name of a column that is skipped.
pub(super) const IGNORED: &str = "-";
/// Maximum number of columns of a table.
pub(super) const COLUMNS_MAX: usize = 64;
/// Separators of columns. Blanks come last, because they also occur within fields.
pub(super) const DELIMITERS: [Delimiter; 5] =
    [Delimiter::Byte(b','), Delimiter::Byte(b'\t'), Delimiter::Byte(b';'), Delimiter::Byte(b'|'), Delimiter::Blanks];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Byte(u8),
    Blanks,
}

impl Column {
    /// Returns the column with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)
    }

    /// Returns whether the column contains only numbers.
    pub(super) const fn is_number(self) -> bool {
        self.has_fraction() || self.is_place()
    }

    /// Returns whether the numbers of the column may have a fraction.
    pub(super) const fn has_fraction(self) -> bool {
        matches!(
            self,
            Self::Arrival(_)
                | Self::Completion(_)
                | Self::Latency(_)
                | Self::Queued(_)
                | Self::Offset(_)
                | Self::Length(_)
        )
    }

    /// Returns whether the value of a row may be empty.
    pub(super) const fn is_optional(self) -> bool {
        !matches!(self, Self::Arrival(_) | Self::Completion(_) | Self::Op) && !self.is_place()
    }

    const fn is_place(self) -> bool {
        let is_start = matches!(self, Self::Sector | Self::OffsetBytes | Self::Offset(_));
        is_start || matches!(self, Self::Sectors | Self::LengthBytes | Self::Length(_))
    }

    /// Returns the same column with another unit, in ns or bytes.
    pub(super) const fn in_units_of(self, unit: u64) -> Self {
        match self {
            Self::Arrival(_) => Self::Arrival(unit),
            Self::Completion(_) => Self::Completion(unit),
            Self::Latency(_) => Self::Latency(unit),
            Self::Queued(_) => Self::Queued(unit),
            Self::OffsetBytes | Self::Offset(_) => Self::Offset(unit),
            Self::LengthBytes | Self::Length(_) => Self::Length(unit),
            other => other,
        }
    }
}

/// The columns of a table of requests, in their order in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(crate) columns: Vec<Column>,
    names: Vec<String>,
    /// Words of the operation column, with their meanings. If empty, the usual letters and words
    /// apply.
    op_words: Vec<(Vec<u8>, Op)>,
}

impl Columns {
    /// Parses names separated by commas, such as `time_s,op,offset_bytes,length_bytes,-`. A column
    /// `-` is skipped. `op=1:read` or `op=0:write/1:read` defines the words of the operation
    /// column.
    ///
    /// # Errors
    /// [`TraceError::Columns`] if a name is unknown or repeated, or if time, op,
    /// start or length is missing.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        let wrong = |problem: String| TraceError::Columns { columns: text.to_owned(), problem };
        let mut columns = Vec::new();
        let mut op_words = Vec::new();
        for name in &names {
            if let Some((other, _)) = name.split_once('=').filter(|(other, _)| *other != "op") {
                return Err(wrong(format!(
                    "{other:?}: you can give the meaning of values only for the column op, as in op=1:read"
                )));
            }
            let column = meaning(name, &mut op_words).map_err(wrong)?;
            columns.push(
                column.ok_or_else(|| wrong(format!("there is no column {name:?}; available: {}", Self::known())))?,
            );
        }
        Ok(Self { op_words, ..Self::new(columns, names).map_err(wrong)? })
    }

    /// Recognises a line `time_ms, latency_ns, direction, bytes, offset` of a fio log. Up to two
    /// further numbers can follow: the priority and the time of the issue.
    pub(crate) fn of_fio_log(line: &[u8]) -> Option<(Self, Delimiter)> {
        let delimiter = Delimiter::Byte(b',');
        let fields: Vec<&[u8]> = Fields::new(line, delimiter).take(8).collect();
        let (first, rest) = fields.split_at_checked(5)?;
        let is_log = first.iter().all(|field| number(field).is_some())
            && matches!(first[2], b"0" | b"1" | b"2")
            && number(first[3]).is_some_and(|bytes| bytes >= 512)
            && rest.iter().all(|field| number(field.strip_prefix(b"0x").unwrap_or(field)).is_some() || is_hex(field))
            && rest.len() <= 2;
        let known = "completed_ms,latency_ns,op=0:read/1:write/2:trim,length_bytes,offset_bytes";
        let columns = Self::parse(&format!("{known}{}", ",-".repeat(rest.len()))).ok()?;
        is_log.then_some((columns, delimiter))
    }

    /// Returns the value of a column in the form that [`TableRow`](super::TableRow) accepts.
    /// Returns `None` for an operation that is not one of the defined words.
    #[must_use]
    pub fn value<'v>(&self, column: Column, value: Cow<'v, [u8]>) -> Option<Cow<'v, [u8]>> {
        if column != Column::Op || self.op_words.is_empty() {
            return Some(value);
        }
        let (_, op) = self.op_words.iter().find(|(word, _)| *word == *value)?;
        Some(vec![op.letter() as u8].into())
    }

    /// Returns the value of a line's field in the form of [`Columns::value`], and the column with
    /// the unit of the field. Returns `None` if the operation has no defined meaning, or the number
    /// is ambiguous.
    pub(crate) fn of_field<'v>(
        &self,
        column: Column,
        field: &'v [u8],
        delimiter: Delimiter,
    ) -> Option<(Column, Cow<'v, [u8]>)> {
        Some(match unquoted(field)? {
            value if !column.is_number() => (column, self.value(column, value)?),
            Cow::Borrowed(value) => value::plain(value, column, delimiter)?,
            Cow::Owned(value) => {
                let (column, value) = value::plain(&value, column, delimiter)?;
                (column, Cow::Owned(value.into_owned()))
            }
        })
    }

    /// Returns the words for operations, for messages. Returns `None` if the usual words apply.
    #[must_use]
    pub fn op_takes(&self) -> Option<String> {
        let words: Vec<_> = self.op_words.iter().map(|(word, _)| String::from_utf8_lossy(word)).collect();
        (!words.is_empty()).then(|| format!("an operation ({})", words.join(", ")))
    }

    /// Returns the fields of a line. If blanks separate the fields, the name of a process may have
    /// several words: all words that no other column needs.
    pub(crate) fn fields<'l>(&self, line: &'l [u8], delimiter: Delimiter) -> Vec<&'l [u8]> {
        let mut fields: Vec<&[u8]> = Fields::new(line, delimiter).collect();
        let spare = fields.len().saturating_sub(self.columns.len());
        let process = self.columns.iter().position(|column| *column == Column::Process);
        if let (Delimiter::Blanks, Some(at), 1..) = (delimiter, process, spare) {
            let place = |field: &[u8]| field.as_ptr().addr() - line.as_ptr().addr();
            let (start, last) = (place(fields[at]), fields[at + spare]);
            let name = &line[start..place(last) + last.len()];
            fields.splice(at..=at + spare, [name]);
        }
        fields
    }

    /// Returns the columns of a heading. Unknown columns are skipped. Returns
    /// `None` if required columns are missing.
    pub(crate) fn of_heading(line: &[u8]) -> Option<(Self, Delimiter)> {
        let delimiter = DELIMITERS.into_iter().find_map(|delimiter| {
            let mut columns = Vec::new();
            let mut names = Vec::new();
            for field in Fields::new(line, delimiter).take(COLUMNS_MAX + 1) {
                let name = String::from_utf8(unquoted(field)?.into_owned()).ok()?;
                columns.push(Column::of_name(&name).unwrap_or(Column::Unknown));
                names.push(name);
            }
            Some((Self::new(columns, names).ok()?, delimiter))
        });
        delimiter
            .or_else(|| heading::of_tool(line))
            .or_else(|| heading::with_units(line))
            .or_else(|| Self::of_fio_log(line))
    }

    /// Returns what is wrong with a heading that names at least two columns.
    pub(crate) fn lacking(line: &[u8]) -> Option<String> {
        DELIMITERS.into_iter().find_map(|delimiter| {
            let fields = Fields::new(line, delimiter).take(COLUMNS_MAX).map(unquoted).collect::<Option<Vec<_>>>()?;
            let names: Vec<String> =
                fields.into_iter().map(|name| String::from_utf8(name.into_owned())).collect::<Result<_, _>>().ok()?;
            let columns: Vec<_> = names.iter().map(|name| Column::of_name(name).unwrap_or(Column::Unknown)).collect();
            let is_table = columns.iter().filter(|column| **column != Column::Unknown).count() > 1;
            let unknown: Vec<_> =
                names.iter().filter(|name| Column::of_name(name).is_none()).map(String::as_str).collect();
            let problem = Self::new(columns, names.clone()).err().filter(|_| is_table)?;
            let passed_over =
                if unknown.is_empty() { String::new() } else { format!("; unknown columns: {}", unknown.join(", ")) };
            Some(format!("{problem}{passed_over}"))
        })
    }

    /// Returns the columns with these names. Unknown columns are skipped.
    ///
    /// # Errors
    /// The errors of [`Columns::parse`], except the error about an unknown name.
    pub fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, TraceError> {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let text = names.join(",");
        let wrong = |problem| TraceError::Columns { columns: text.clone(), problem };
        let mut op_words = Vec::new();
        let columns = names.iter().map(|name| Ok(meaning(name, &mut op_words)?.unwrap_or(Column::Unknown)));
        let columns = columns.collect::<Result<_, String>>().map_err(wrong)?;
        Ok(Self { op_words, ..Self::new(columns, names).map_err(wrong)? })
    }

    /// Returns the names and meanings of the columns, in their order in a line.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Column)> {
        self.names.iter().map(String::as_str).zip(self.columns.iter().copied())
    }

    fn new(columns: Vec<Column>, names: Vec<String>) -> Result<Self, String> {
        if columns.len() > COLUMNS_MAX {
            return Err(format!("there are {} columns; at most {COLUMNS_MAX} are allowed", columns.len()));
        }
        let role = |column: &Column| match column {
            Column::Arrival(_) => Role::Time,
            Column::Completion(_) => Role::End,
            Column::Sector | Column::OffsetBytes | Column::Offset(_) => Role::Start,
            Column::Sectors | Column::LengthBytes | Column::Length(_) => Role::Length,
            Column::Latency(_) => Role::Latency,
            Column::Queued(_) => Role::Queued,
            other => Role::Other(*other),
        };
        for (at, column) in columns.iter().enumerate().filter(|(_, column)| **column != Column::Unknown) {
            if let Some(before) = columns[..at].iter().position(|other| role(other) == role(column)) {
                return Err(format!(
                    "the columns {} and {} have the same meaning; replace one of the two names by `-`",
                    names[before], names[at]
                ));
            }
        }
        for (needed, names) in [
            (
                Role::Time,
                "a column with a time (arrival_ns, time_ns, time_us, time_ms or time_s; or completed_ns, _us, _ms or \
                 _s)",
            ),
            (Role::Other(Column::Op), "op"),
            (Role::Start, "sector, offset_bytes, offset_kib or offset_mib"),
            (Role::Length, "nr_sectors, length_bytes, length_kib or length_mib"),
        ] {
            let is_needed = |column: &Column| {
                let found = role(column);
                found == needed || found == Role::End && needed == Role::Time
            };
            if !columns.iter().any(is_needed) {
                return Err(format!("{names} is missing"));
            }
        }
        let completes = columns.iter().position(|column| matches!(column, Column::Completion(_)));
        let has_start = columns.iter().any(|column| matches!(role(column), Role::Time | Role::Latency));
        if let Some(at) = completes.filter(|_| !has_start) {
            return Err(format!(
                "the column {} gives the time of the completion, but not of the submission; add a column with the \
                 latency (latency_ns, _us, _ms or _s), or with the time of submission",
                names[at]
            ));
        }
        Ok(Self { columns, names, op_words: Vec::new() })
    }

    /// Returns the names of all columns, for messages.
    #[must_use]
    pub fn known() -> String {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).filter(|name| *name != IGNORED).collect();
        format!("{}, and {IGNORED} to skip a column", names.join(", "))
    }

    /// Returns whether times count from the first record. Otherwise the reader returns them as
    /// written.
    pub(crate) fn are_times_from_first(&self) -> bool {
        !self.names.iter().any(|name| name == "arrival_ns")
    }

    /// Returns the resolution of times, ns, as this line shows it.
    pub(crate) fn resolution_ns(&self, line: &[u8], delimiter: Delimiter) -> Option<u64> {
        let fields = self.fields(line, delimiter);
        let has_completions = self.has_completions();
        let parts = self.columns.iter().enumerate().filter(|(_, column)| match column {
            Column::Arrival(_) => true,
            // A computed arrival has the resolution of the values from which it is computed.
            Column::Completion(_) | Column::Latency(_) | Column::Queued(_) => has_completions,
            _ => false,
        });
        let resolutions = parts.map(|(at, column)| {
            let (column, field) = self.of_field(*column, fields.get(at)?, delimiter)?;
            let (Column::Arrival(unit_ns)
            | Column::Completion(unit_ns)
            | Column::Latency(unit_ns)
            | Column::Queued(unit_ns)) = column
            else {
                return None;
            };
            decimal(&field, unit_ns)?;
            let digits = field.iter().position(|&b| b == b'.').map_or(0, |dot| field.len() - dot - 1);
            Some((0..digits).fold(unit_ns, |ns, _| ns / 10).max(1))
        });
        resolutions.collect::<Option<Vec<_>>>()?.into_iter().max()
    }

    /// Returns whether the times of a line are times of day without a date.
    pub(super) fn are_times_of_day(&self, line: &[u8], delimiter: Delimiter) -> bool {
        let fields = self.fields(line, delimiter);
        let is_arrival = |column: &Column| match column {
            Column::Arrival(_) => true,
            Column::Completion(_) => self.has_completions(),
            _ => false,
        };
        let at = self.columns.iter().position(is_arrival);
        let field = at.and_then(|at| unquoted(fields.get(at)?));
        let clock = field.and_then(|field| value::Clock::of(std::str::from_utf8(&field).ok()?));
        clock.is_some_and(|clock| !clock.is_dated)
    }

    /// Returns whether the table has times of completions, but no times of arrivals.
    #[must_use]
    pub fn has_completions(&self) -> bool {
        let has = |is_such: fn(&Column) -> bool| self.columns.iter().any(is_such);
        has(|column| matches!(column, Column::Completion(_))) && !has(|column| matches!(column, Column::Arrival(_)))
    }

    /// Returns the separator of the fields of `line`: the first separator that splits the line into
    /// one field per column.
    pub(crate) fn delimiter(&self, line: &[u8]) -> Option<Delimiter> {
        DELIMITERS.into_iter().find(|delimiter| self.fields(line, *delimiter).len() == self.columns.len())
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names.join(","))
    }
}

impl std::str::FromStr for Columns {
    type Err = TraceError;

    fn from_str(text: &str) -> Result<Self, TraceError> {
        Self::parse(text)
    }
}

/// Returns the column with this name. `op=1:read` also defines words for operations. Returns `None`
/// if the name is unknown.
fn meaning(name: &str, op_words: &mut Vec<(Vec<u8>, Op)>) -> Result<Option<Column>, String> {
    match name.split_once('=') {
        Some(("op", words)) => {
            *op_words = words_of(words)?;
            Ok(Some(Column::Op))
        }
        _ => Ok(Column::of_name(name)),
    }
}

/// Parses words of a file with their meanings, such as `0:write/1:read`. If
/// only one of 0 and 1 is given, the other is the opposite.
fn words_of(text: &str) -> Result<Vec<(Vec<u8>, Op)>, String> {
    let mut words: Vec<(Vec<u8>, Op)> = Vec::new();
    for pair in text.split('/') {
        let (word, meaning) = pair.split_once(':').unwrap_or((pair, ""));
        let op = match meaning.to_ascii_lowercase().as_str() {
            "read" | "r" => Op::Read,
            "write" | "w" => Op::Write,
            "discard" | "trim" | "d" => Op::Discard,
            "flush" | "sync" | "f" => Op::Flush,
            _ => {
                return Err(format!(
                    "{pair:?} is not of the form VALUE:MEANING; write VALUE:read, VALUE:write, VALUE:discard or \
                     VALUE:flush, separated by /, such as op=0:write/1:read"
                ));
            }
        };
        if word.is_empty() || words.iter().any(|(known, _)| known == word.as_bytes()) {
            return Err(format!("{pair:?}: each value must appear exactly once"));
        }
        words.push((word.as_bytes().to_vec(), op));
    }
    if let [(word, op @ (Op::Read | Op::Write))] = &words[..]
        && let [digit @ (b'0' | b'1')] = word[..]
    {
        let opposite = if *op == Op::Read { Op::Write } else { Op::Read };
        words.push((vec![digit ^ 1], opposite));
    }
    Ok(words)
}

fn is_hex(field: &[u8]) -> bool {
    field.strip_prefix(b"0x").is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Iterator over the fields of a line. Fields keep their quotes, but not the blanks around them.
pub(crate) struct Fields<'a> {
    rest: Option<&'a [u8]>,
    delimiter: Delimiter,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(line: &'a [u8], delimiter: Delimiter) -> Self {
        let line = if delimiter == Delimiter::Blanks { line.trim_ascii() } else { line };
        Self { rest: Some(line), delimiter }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let quoted = rest.trim_ascii_start().first() == Some(&b'"');
        let mut inside = false;
        let ends = |b: u8| match self.delimiter {
            Delimiter::Byte(byte) => b == byte,
            Delimiter::Blanks => b == b' ' || b == b'\t',
        };
        let end = rest.iter().position(|&b| {
            inside ^= quoted && b == b'"';
            !inside && ends(b)
        });
        self.rest = end.map(|end| {
            let after = &rest[end + 1..];
            if self.delimiter == Delimiter::Blanks { after.trim_ascii_start() } else { after }
        });
        Some(rest[..end.unwrap_or(rest.len())].trim_ascii())
    }
}

/// Returns a field without its quotes, or `None` if they do not match.
pub(crate) fn unquoted(field: &[u8]) -> Option<Cow<'_, [u8]>> {
    let Some(inner) = field.strip_prefix(b"\"") else { return Some(field.into()) };
    let inner = inner.strip_suffix(b"\"")?;
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'"' && bytes.next() != Some(&b'"') {
            return None;
        }
        text.push(byte);
    }
    Some(text.into())
}
