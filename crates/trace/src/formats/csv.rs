//! Tables of requests. iosched writes its own columns, separated by commas and named in the first
//! line. The reader also accepts other units and separators. Other tables must use the same names
//! of columns, or the user gives the names ([`Columns`]).
//!
//! The reader finds columns by name, in any order. Time, operation, start and length are required;
//! the others are optional. A value that is not known is empty. A name with a comma or a quote is
//! quoted as in RFC 4180.
//!
//! This module does not use the `csv` crate, because in that crate a quoted field can contain line
//! ends, as the standard requires. In a damaged file, a missing closing quote would then hide the
//! rest of the trace. Here each line is a record, and a bad line is reported and skipped.

use std::io::{self, Write};

use iosched::{Flags, SECOND_NS, Time};

use super::columns::{Column, Columns, Delimiter, Fields};
use super::lines::{is_passed_over, is_preamble, is_rounded, is_rule};
use super::row::{TableRow, flag_letters, ioprio_text};
use super::times::Times;
use crate::blktrace::ProcessName;
use crate::input::excerpt;
use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{Line, LineFormat, RecordFormat};

/// The first line of a written file.
const HEADING: &str = "arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns,flags,process,ioprio";

/// Reads tables. The user or the first line names the columns. Writes all data of requests.
pub(crate) struct Csv {
    columns: Option<Columns>,
    delimiter: Option<Delimiter>,
    /// The first line, if it is a heading. Some tools repeat it.
    heading: Vec<u8>,
    midnight: Midnight,
    lacked_columns: bool,
}

/// State of times of day without a date. Such times begin again at midnight.
struct Midnight {
    /// Whether the times are times of day, or `None` until the first time is known.
    is_clock: Option<bool>,
    last_ns: u64,
    /// Sum of the days that have ended, ns.
    past_ns: u64,
}

const DAY_NS: u64 = 86_400 * SECOND_NS;

impl Midnight {
    /// Adds the days that have ended to `time`. A day has ended when the time of day steps back by
    /// more than half a day.
    fn passed(&mut self, time: Time) -> Time {
        let at_ns = time.as_ns().saturating_add(self.past_ns);
        let has_ended = at_ns.saturating_add(DAY_NS / 2) < self.last_ns;
        self.past_ns += if has_ended { DAY_NS } else { 0 };
        self.last_ns = at_ns + if has_ended { DAY_NS } else { 0 };
        Time::from_ns(self.last_ns)
    }
}

impl Csv {
    /// Creates a reader that takes the columns from the heading.
    pub(crate) const fn new() -> Self {
        Self::with(None)
    }

    /// Creates a reader with these columns. If the first line is a heading, the reader skips it.
    pub(crate) const fn of(columns: Columns) -> Self {
        Self::with(Some(columns))
    }

    const fn with(columns: Option<Columns>) -> Self {
        let midnight = Midnight { is_clock: None, last_ns: 0, past_ns: 0 };
        Self { columns, delimiter: None, heading: Vec::new(), midnight, lacked_columns: false }
    }

    fn request(&mut self, line: &[u8], names: &mut Names) -> Option<TraceRequest> {
        let (columns, delimiter) = self.columns.as_ref().zip(self.delimiter)?;
        let mut row = TableRow::default();
        let mut lacked_columns = false;
        let mut take = |column, field| {
            let (column, value) = columns.of_field(column, field, delimiter)?;
            row.take(column, &value, names)
        };
        if delimiter == Delimiter::Blanks {
            let fields = columns.fields(line, delimiter);
            (fields.len() == columns.columns.len()).then_some(())?;
            columns.columns.iter().zip(fields).try_for_each(|(&column, field)| take(column, field))?;
        } else {
            let mut fields = Fields::new(line, delimiter);
            // Some programs omit the last columns of a row if they are empty, or end each row with
            // a separator.
            for &column in &columns.columns {
                match fields.next() {
                    Some(field) => take(column, field)?,
                    None => {
                        column.is_optional().then_some(())?;
                        lacked_columns = true;
                    }
                }
            }
            fields.all(<[u8]>::is_empty).then_some(())?;
        }
        self.lacked_columns = lacked_columns;
        let mut request = row.request(names).ok()?;
        if !row.process().is_empty() {
            names.process(request.pid, ProcessName::new(row.process()));
        }
        let is_clock = || columns.are_times_of_day(line, delimiter);
        if *self.midnight.is_clock.get_or_insert_with(is_clock) {
            request.arrival = self.midnight.passed(request.arrival);
        }
        Some(request)
    }
}

impl LineFormat for Csv {
    const EXPECTED: &'static str = "a heading, and then lines with its columns. Needed columns: a time (arrival_ns \
                                    or time_ns, _us, _ms, _s), op, sector or offset_bytes, and nr_sectors or \
                                    length_bytes. op is R, W, D or Z, or F with length 0";

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line {
        if line.trim_ascii().is_empty() {
            return Line::Other;
        }
        let Some(columns) = &self.columns else {
            if let Some((columns, delimiter)) = Columns::of_heading(line) {
                (self.columns, self.delimiter) = (Some(columns), Some(delimiter));
                self.heading = line.trim_ascii().to_vec();
                // A log of fio has no heading, so the first line is a record.
                return self.request(line, names).map_or(Line::Other, Line::Request);
            }
            return if line.starts_with(b"#") || is_preamble(line) || is_rule(line) { Line::Other } else { Line::Bad };
        };
        if self.delimiter.is_none() {
            if line.starts_with(b"#") {
                return Line::Other;
            }
            self.delimiter = columns.delimiter(line);
            // A heading can contain any names, but no numbers.
            let is_heading =
                !line.split(|b| b",\t;| ".contains(b)).any(|field| field.first().is_some_and(u8::is_ascii_digit));
            if is_heading {
                self.heading = line.trim_ascii().to_vec();
                return Line::Other;
            }
        }
        match self.request(line, names) {
            Some(request) => Line::Request(request),
            None if is_rule(line) || line.starts_with(b"^C") || line.trim_ascii() == self.heading => Line::Other,
            None => Line::Bad,
        }
    }

    fn lacked_columns(&self) -> bool {
        self.lacked_columns
    }

    fn wrong(&self, line: &[u8]) -> Option<(String, String)> {
        let columns = self.columns.as_ref()?;
        let fields = columns.fields(line, self.delimiter.unwrap_or(Delimiter::Byte(b',')));
        let (found, needed) = (fields.len(), columns.columns.len());
        if self.delimiter.is_none() || found != needed {
            let s = if found == 1 { "" } else { "s" };
            return Some((excerpt(line), format!("{needed} columns ({columns}), but the line has {found} field{s}")));
        }
        let (mut row, mut names) = (TableRow::default(), Names::default());
        for (number, ((name, column), field)) in (1..).zip(columns.iter().zip(fields)) {
            let value = columns.of_field(column, field, self.delimiter.unwrap_or(Delimiter::Byte(b',')));
            if value.and_then(|(column, value)| row.take(column, &value, &mut names)).is_none() {
                let takes = columns.op_takes().filter(|_| column == Column::Op).unwrap_or_else(|| column.takes());
                let remedy = match column {
                    Column::Op if !field.is_empty() && field.iter().all(u8::is_ascii_digit) => {
                        give_meaning(columns, "numbers", "op=1:read")
                    }
                    Column::Op if !field.is_empty() && field.iter().all(u8::is_ascii_alphanumeric) => {
                        give_meaning(columns, "words", &format!("op={}:read/OTHER:write", excerpt(field)))
                    }
                    Column::Arrival(_) | Column::Completion(_) if field.contains(&b':') => {
                        "; or a clock time such as 23:59:59.5 or 2026-11-20T23:59:59.5; convert other dates to \
                         seconds, for example with date +%s.%N -d TIME"
                            .to_owned()
                    }
                    _ if is_rounded(field) => {
                        "; a spreadsheet has rounded this number, so some of its digits are lost. Export the \
                         table again with whole numbers"
                            .to_owned()
                    }
                    _ => String::new(),
                };
                return Some((excerpt(field), format!("{takes} in column {number}, {name}{remedy}")));
            }
        }
        row.request(&mut names).err().map(|expected| (excerpt(line), expected.to_owned()))
    }
}

/// Returns the remedy for values of the operation that iosched does not know.
fn give_meaning(columns: &Columns, values: &str, example: &str) -> String {
    let name = |(name, column)| if column == Column::Op { example } else { name };
    let names: Vec<_> = columns.iter().map(name).collect();
    format!("; give {values} their meaning, such as --columns {}", names.join(","))
}

impl RecordFormat for Csv {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADING}")
    }

    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, labels: Labels<'_>) -> io::Result<()> {
        let TraceRequest { arrival, pid, op, flags, sector, nr_sectors, device, latency_ns, ioprio } = *request;
        let sync = u8::from(flags.contains(Flags::SYNC));
        write!(out, "{},{pid},{},{sync},{sector},{nr_sectors},", arrival.as_ns(), op.letter())?;
        if let Some(device) = device {
            write!(out, "{device}")?;
        }
        out.write_all(b",")?;
        if let Some(latency_ns) = latency_ns {
            write!(out, "{latency_ns}")?;
        }
        out.write_all(b",")?;
        out.write_all(flag_letters(flags).as_bytes())?;
        let name = labels.process.map(ProcessName::to_text).unwrap_or_default();
        // A control character in the name would break the line.
        let name = name.replace(char::is_control, "?");
        if name.contains([',', '"']) || name.trim() != name {
            write!(out, ",\"{}\"", name.replace('"', "\"\""))?;
        } else {
            write!(out, ",{name}")?;
        }
        writeln!(out, ",{}", ioprio.map_or_else(String::new, ioprio_text))
    }
}

/// Returns the properties of a file's times, as the start of the file shows them.
pub(crate) fn times(head: &[u8], given: Option<&Columns>) -> Times {
    let lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let mut text = lines.clone().filter(|line| !is_passed_over(line));
    let heading = text.next().and_then(Columns::of_heading);
    let Some(columns) = given.or(heading.as_ref().map(|(columns, _)| columns)) else {
        return Times { as_written: true, resolution_ns: 1, of_completions: false, in_sectors: false };
    };
    let of_line = |line| columns.resolution_ns(line, columns.delimiter(line)?);
    Times {
        as_written: !columns.are_times_from_first(),
        resolution_ns: lines.filter_map(of_line).min().unwrap_or(1),
        of_completions: columns.has_completions(),
        in_sectors: columns.columns.iter().any(|column| matches!(column, Column::Sector | Column::Sectors)),
    }
}

/// Returns the problem of a first line that seems to be the heading of a table, but lacks columns.
pub(crate) fn lacking(head: &[u8]) -> Option<String> {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.find(|line| !is_passed_over(line))?;
    Columns::lacking(first)
}

/// Returns whether `head` is the start of a table of requests.
pub(crate) fn sniff(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.find(|line| !is_passed_over(line));
    first.is_some_and(|line| Columns::of_heading(line).is_some())
}
