//! What the columns of a table of requests mean, and what separates them: named by a heading, or by who reads it.

use std::borrow::Cow;
use std::fmt;

use iosched::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};

use crate::error::TraceError;
use crate::text::number;

/// A column's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// When, with its unit, ns.
    Arrival(u64),
    /// The number of the process.
    Pid,
    /// The operation.
    Op,
    /// Whether a process waits for it.
    Sync,
    /// The first sector.
    Sector,
    /// The length in sectors.
    Sectors,
    /// The first byte.
    OffsetBytes,
    /// The length in bytes.
    LengthBytes,
    /// The device.
    Device,
    /// The latency, with its unit, ns.
    Latency(u64),
    /// Flags as letters.
    Flags,
    /// The name of the process.
    Process,
    /// The ioprio of the process.
    IoPriority,
    /// None of these: it is passed over.
    Unknown,
}

/// What is said once by one of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Time,
    Start,
    Length,
    Latency,
    Other(Column),
}

/// Every name of a column, and what it means. Times called `arrival_ns` are as written, others since the first record.
const NAMES: [(&str, Column); 22] = [
    ("arrival_ns", Column::Arrival(1)),
    ("time_ns", Column::Arrival(1)),
    ("time_us", Column::Arrival(MICROSECOND_NS)),
    ("time_ms", Column::Arrival(MILLISECOND_NS)),
    ("time_s", Column::Arrival(SECOND_NS)),
    ("op", Column::Op),
    ("sector", Column::Sector),
    ("offset_bytes", Column::OffsetBytes),
    ("nr_sectors", Column::Sectors),
    ("length_bytes", Column::LengthBytes),
    ("size_bytes", Column::LengthBytes),
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
    (IGNORED, Column::Unknown),
];

/// Stands for a column that is passed over.
const IGNORED: &str = "-";
/// Columns looked at; more make no sense.
const COLUMNS_MAX: usize = 64;
/// What is between the columns of a line; blanks come last, since they stand within the fields of others.
const DELIMITERS: [Delimiter; 5] =
    [Delimiter::Byte(b','), Delimiter::Byte(b'\t'), Delimiter::Byte(b';'), Delimiter::Byte(b'|'), Delimiter::Blanks];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delimiter {
    Byte(u8),
    Blanks,
}

impl Column {
    /// The one that is called so.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, column)| *column)
    }
}

/// The columns of a table of requests, in the order of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    pub(crate) columns: Vec<Column>,
    names: Vec<String>,
}

impl Columns {
    /// Reads names between commas, such as `time_s,op,offset_bytes,length_bytes,-`; `-` is passed over.
    ///
    /// # Errors
    /// [`TraceError::Columns`] if a name is unknown or there twice, or if time, op, start or length is missing.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        let wrong = |problem: String| TraceError::Columns { columns: text.to_owned(), problem };
        let mut columns = Vec::new();
        for name in &names {
            let column = Column::of_name(name);
            columns.push(column.ok_or_else(|| wrong(format!("{name:?} is none; they are {}", Self::known())))?);
        }
        Self::new(columns, names).map_err(wrong)
    }

    /// Those of a heading; columns of other names are passed over. `None` if it does not name what is needed.
    pub(crate) fn of_heading(line: &[u8]) -> Option<(Self, Delimiter)> {
        DELIMITERS.into_iter().find_map(|delimiter| {
            let mut columns = Vec::new();
            let mut names = Vec::new();
            for field in Fields::new(line, delimiter).take(COLUMNS_MAX + 1) {
                let name = String::from_utf8(unquoted(field)?.into_owned()).ok()?;
                columns.push(Column::of_name(&name).unwrap_or(Column::Unknown));
                names.push(name);
            }
            Some((Self::new(columns, names).ok()?, delimiter))
        })
    }

    /// What is wrong with a heading that names some columns, two at least.
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
            let passed_over = if unknown.is_empty() {
                String::new()
            } else {
                format!("; no columns that are known: {}", unknown.join(", "))
            };
            Some(format!("{problem}{passed_over}"))
        })
    }

    /// The columns that `names` mean; columns of other names are passed over.
    ///
    /// # Errors
    /// As [`Columns::parse`], unknown names aside.
    pub fn of_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Result<Self, TraceError> {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let columns = names.iter().map(|name| Column::of_name(name).unwrap_or(Column::Unknown)).collect();
        let text = names.join(",");
        Self::new(columns, names).map_err(|problem| TraceError::Columns { columns: text, problem })
    }

    /// Names and meanings, in the order of a line.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Column)> {
        self.names.iter().map(String::as_str).zip(self.columns.iter().copied())
    }

    fn new(columns: Vec<Column>, names: Vec<String>) -> Result<Self, String> {
        if columns.len() > COLUMNS_MAX {
            return Err(format!("there are {}; at most {COLUMNS_MAX} make sense", columns.len()));
        }
        let role = |column: &Column| match column {
            Column::Arrival(_) => Role::Time,
            Column::Sector | Column::OffsetBytes => Role::Start,
            Column::Sectors | Column::LengthBytes => Role::Length,
            Column::Latency(_) => Role::Latency,
            other => Role::Other(*other),
        };
        for (at, column) in columns.iter().enumerate().filter(|(_, column)| **column != Column::Unknown) {
            if let Some(before) = columns[..at].iter().position(|other| role(other) == role(column)) {
                return Err(format!("{} and {} say the same; leave one out, as -", names[before], names[at]));
            }
        }
        for (needed, names) in [
            (Role::Time, "arrival_ns, time_ns, time_us, time_ms or time_s"),
            (Role::Other(Column::Op), "op"),
            (Role::Start, "sector or offset_bytes"),
            (Role::Length, "nr_sectors, length_bytes or size_bytes"),
        ] {
            if !columns.iter().any(|column| role(column) == needed) {
                return Err(format!("{names} is missing"));
            }
        }
        Ok(Self { columns, names })
    }

    /// The names there are.
    #[must_use]
    pub fn known() -> String {
        let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).filter(|name| *name != IGNORED).collect();
        format!("{}, and {IGNORED} for one to ignore", names.join(", "))
    }

    /// Whether times are those since the first record, not as written.
    pub(crate) fn are_times_from_first(&self) -> bool {
        !self.names.iter().any(|name| name == "arrival_ns")
    }

    /// How exact times are that look like this line's, ns.
    pub(crate) fn resolution_ns(&self, line: &[u8], delimiter: Delimiter) -> Option<u64> {
        let at = self.columns.iter().position(|column| matches!(column, Column::Arrival(_)))?;
        let Column::Arrival(unit_ns) = self.columns[at] else { return None };
        let field = Fields::new(line, delimiter).nth(at)?;
        decimal(field, unit_ns)?;
        let digits = field.iter().position(|&b| b == b'.').map_or(0, |dot| field.len() - dot - 1);
        Some((0..digits).fold(unit_ns, |ns, _| ns / 10).max(1))
    }

    /// What separates the fields of `line`: the first that makes as many as there are columns.
    pub(crate) fn delimiter(&self, line: &[u8]) -> Option<Delimiter> {
        DELIMITERS.into_iter().find(|delimiter| Fields::new(line, *delimiter).count() == self.columns.len())
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

/// A number of `unit_ns`, perhaps with decimals, in ns; what is finer is dropped.
pub(crate) fn decimal(text: &[u8], unit_ns: u64) -> Option<u64> {
    let (whole, fraction) = match text.iter().position(|&b| b == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    let mut ns = 0;
    let mut scale = unit_ns;
    for &digit in fraction {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        scale /= 10;
        ns += u64::from(digit) * scale;
    }
    number(whole)?.checked_mul(unit_ns)?.checked_add(ns)
}

/// Fields with their quotes, without the blanks around them.
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
            Delimiter::Byte(own) => b == own,
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

/// A field without its quotes; `None` if they do not match.
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
