//! Tables of requests: our own columns, separated by commas and named in the first line, and whatever else names its
//! columns so, or is read with names given ([`Columns`]): other units, other delimiters.
//!
//! Columns are found by name and may stand in any order. When, what, where and how much must be there; the rest may be.
//! What is not known of a request is empty. A name with a comma or a quote is quoted as in RFC 4180.
//!
//! The `csv` crate follows a quote over the ends of lines, as it should: one that damage left open would take the rest
//! of the trace with it. Here a record is a line, and a bad one is told and passed over.

use std::io::{self, Write};

use iosched::{Flags, IoClass, IoPriority, MICROSECOND_NS, MILLISECOND_NS, Op, SECTOR_BYTES, Time};

use super::columns::{Column, Columns, Delimiter, Fields, decimal, unquoted};
use crate::blktrace::{Category, ProcessName};
use crate::input::excerpt;
use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{Line, LineFormat, RecordFormat, number, number_u32, plain, sectors_of_bytes};

/// The first line as it is written.
const HEADING: &str = "arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns,flags,process,ioprio";

/// Flags beside sync, which is a column of its own.
const FLAGS: [(Flags, u8); 5] =
    [(Flags::IDLE, b'I'), (Flags::PRIO, b'P'), (Flags::FUA, b'F'), (Flags::PREFLUSH, b'B'), (Flags::AHEAD, b'A')];

/// Reads lines whose columns are given or named by the first line; writes all that it knows.
pub(crate) struct Csv {
    columns: Option<Columns>,
    delimiter: Option<Delimiter>,
}

impl Csv {
    /// Columns are named by the heading.
    pub(crate) const fn new() -> Self {
        Self { columns: None, delimiter: None }
    }

    /// Columns are these; a first line that names any is passed over.
    pub(crate) const fn of(columns: Columns) -> Self {
        Self { columns: Some(columns), delimiter: None }
    }

    fn request(&self, line: &[u8], names: &mut Names) -> Option<TraceRequest> {
        let (columns, delimiter) = self.columns.as_ref().zip(self.delimiter)?;
        let mut row = Row::default();
        let mut fields = Fields::new(line, delimiter);
        for &column in &columns.columns {
            row.take(column, fields.next()?, names)?;
        }
        if fields.next().is_some() {
            return None;
        }
        let request = row.request()?;
        if !row.process.is_empty() {
            names.process(request.pid, ProcessName::new(&row.process));
        }
        Some(request)
    }
}

/// What the fields of a line say.
struct Row {
    request: TraceRequest,
    process: Vec<u8>,
    offset_bytes: Option<u64>,
    length_bytes: Option<u64>,
}

impl Default for Row {
    fn default() -> Self {
        let request = plain(Time::ZERO, Op::Read, 0, 0);
        Self { request, process: Vec::new(), offset_bytes: None, length_bytes: None }
    }
}

impl Row {
    /// `None` if the column does not take the field.
    fn take(&mut self, column: Column, field: &[u8], names: &mut Names) -> Option<()> {
        let request = &mut self.request;
        match column {
            Column::Arrival(unit_ns) => request.arrival = Time::from_ns(decimal(field, unit_ns)?),
            Column::Pid => request.pid = number_u32(field)?,
            Column::Op => {
                let (op, flags) = op_of(field)?;
                request.op = op;
                request.flags |= flags;
            }
            Column::Sync => request.flags.set(Flags::SYNC, sync_of(field)?),
            Column::Sector => request.sector = number(field)?,
            Column::Sectors => request.nr_sectors = number_u32(field)?,
            Column::OffsetBytes => self.offset_bytes = Some(number(field)?),
            Column::LengthBytes => self.length_bytes = Some(number(field)?),
            Column::Flags => request.flags |= flags_of(field)?,
            Column::Process => self.process = unquoted(field)?,
            Column::IoPriority if field.is_empty() => {}
            Column::IoPriority => request.ioprio = Some(std::str::from_utf8(field).ok()?.parse().ok()?),
            Column::Device if field.is_empty() => {}
            Column::Device => request.device = Some(device_of(field, names)?),
            Column::Latency(_) if field.is_empty() => {}
            Column::Latency(unit_ns) => request.latency_ns = Some(decimal(field, unit_ns)?),
            Column::Unknown => {}
        }
        Some(())
    }

    /// `None` if the fields do not go together.
    fn request(&self) -> Option<TraceRequest> {
        let mut request = self.request;
        if (self.offset_bytes, self.length_bytes) != (None, None) {
            let offset = self.offset_bytes.map_or_else(|| request.sector.checked_mul(SECTOR_BYTES), Some)?;
            let length = self.length_bytes.unwrap_or(u64::from(request.nr_sectors) * SECTOR_BYTES);
            (request.sector, request.nr_sectors) = sectors_of_bytes(offset, length)?;
        }
        (request.op.has_data() || request.nr_sectors == 0).then_some(request)
    }
}

impl LineFormat for Csv {
    const EXPECTED: &'static str = "a heading that names at least a time (arrival_ns or time_ns, _us, _ms, _s), op, \
        sector or offset_bytes, and nr_sectors or length_bytes; then a line of as many columns each, op R, W, D, Z or, \
        of length 0, F";

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line {
        if line.trim_ascii().is_empty() {
            return Line::Other;
        }
        let Some(columns) = &self.columns else {
            if let Some((columns, delimiter)) = Columns::of_heading(line) {
                (self.columns, self.delimiter) = (Some(columns), Some(delimiter));
                return Line::Other;
            }
            return if line.starts_with(b"#") { Line::Other } else { Line::Bad };
        };
        if self.delimiter.is_none() {
            if line.starts_with(b"#") {
                return Line::Other;
            }
            self.delimiter = columns.delimiter(line);
            // A heading, by whatever names: nothing in it is a number.
            let is_heading =
                !line.split(|b| b",\t;| ".contains(b)).any(|field| field.first().is_some_and(u8::is_ascii_digit));
            if is_heading {
                return Line::Other;
            }
        }
        self.request(line, names).map_or(Line::Bad, Line::Request)
    }

    fn wrong(&self, line: &[u8]) -> Option<(String, String)> {
        let columns = self.columns.as_ref()?;
        let fields: Vec<&[u8]> = Fields::new(line, self.delimiter.unwrap_or(Delimiter::Byte(b','))).collect();
        let (found, needed) = (fields.len(), columns.columns.len());
        if self.delimiter.is_none() || found != needed {
            let s = if found == 1 { "" } else { "s" };
            return Some((excerpt(line), format!("{needed} columns ({columns}); it has {found} field{s}")));
        }
        let (mut row, mut names) = (Row::default(), Names::default());
        let named = columns.columns.iter().zip(columns.names());
        for (number, ((&column, name), field)) in (1..).zip(named.zip(fields)) {
            if row.take(column, field, &mut names).is_none() {
                return Some((excerpt(field), format!("{} in column {number}, {name}", takes(column))));
            }
        }
        let together = "an operation that goes with its length (a flush has none), within 64 bits of bytes";
        row.request().is_none().then(|| (excerpt(line), together.to_owned()))
    }
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
        for (_, letter) in FLAGS.into_iter().filter(|(flag, _)| flags.contains(*flag)) {
            out.write_all(&[letter])?;
        }
        let name = labels.process.map(ProcessName::to_text).unwrap_or_default();
        // A line stays a line.
        let name = name.replace(char::is_control, "?");
        if name.contains([',', '"']) || name.trim() != name {
            write!(out, ",\"{}\"", name.replace('"', "\"\""))?;
        } else {
            write!(out, ",{name}")?;
        }
        match ioprio {
            Some(IoPriority { class: IoClass::None, level }) => writeln!(out, ",none/{level}"),
            Some(ioprio) => writeln!(out, ",{ioprio}"),
            None => writeln!(out, ","),
        }
    }
}

/// What a column takes.
fn takes(column: Column) -> String {
    let unit = |ns: u64| match ns {
        1 => "ns",
        MICROSECOND_NS => "us",
        MILLISECOND_NS => "ms",
        _ => "s",
    };
    match column {
        Column::Arrival(unit_ns) => format!("a time, a number of {}", unit(unit_ns)),
        Column::Latency(unit_ns) => format!("a number of {}, or nothing", unit(unit_ns)),
        Column::Pid => "the number of a process".to_owned(),
        Column::Op => "an operation (R, W, D, Z, F; read, write, discard, flush; RA, WS)".to_owned(),
        Column::Sync => "0 or 1".to_owned(),
        Column::Sector | Column::Sectors => "a number of sectors of 512 bytes".to_owned(),
        Column::OffsetBytes | Column::LengthBytes => "a number of bytes".to_owned(),
        Column::Device => "the number or name of a device".to_owned(),
        Column::Flags => "letters of I, P, F, B and A".to_owned(),
        Column::Process => "a name, with quotes in pairs".to_owned(),
        Column::IoPriority => "none, idle, rt/LEVEL or be/LEVEL with LEVEL 0 to 7, or nothing".to_owned(),
        Column::Unknown => "anything".to_owned(),
    }
}

/// What is done: our letters, words, or what blkparse prints, which may say how, too.
fn op_of(field: &[u8]) -> Option<(Op, Flags)> {
    let letters = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush];
    if let Some(op) = letters.into_iter().find(|op| field.eq_ignore_ascii_case(&[op.letter() as u8])) {
        return Some((op, Flags::empty()));
    }
    let words: [(&str, Op); 6] = [
        ("read", Op::Read),
        ("write", Op::Write),
        ("discard", Op::Discard),
        ("trim", Op::Discard),
        ("flush", Op::Flush),
        ("sync", Op::Flush),
    ];
    if let Some((_, op)) = words.into_iter().find(|(word, _)| field.eq_ignore_ascii_case(word.as_bytes())) {
        return Some((op, Flags::empty()));
    }
    Category::from_letters(field)?.to_op(true)
}

/// Its number, or the number that stands for its name.
fn device_of(field: &[u8], names: &mut Names) -> Option<u32> {
    match number_u32(field) {
        Some(number) => Some(number),
        None if field.iter().all(|&b| b.is_ascii_digit() || b == b'-' || b == b'.') => None,
        None => names.device(&unquoted(field)?),
    }
}

fn sync_of(field: &[u8]) -> Option<bool> {
    match field {
        b"0" => Some(false),
        b"1" => Some(true),
        _ => None,
    }
}

fn flags_of(field: &[u8]) -> Option<Flags> {
    field.iter().try_fold(Flags::empty(), |flags, letter| {
        let (flag, _) = FLAGS.into_iter().find(|(_, known)| known == letter)?;
        Some(flags | flag)
    })
}

/// What is to be known of the times of a file before it is read: whether they are as written, and how exact they are,
/// ns.
pub(crate) fn times(head: &[u8], given: Option<&Columns>) -> (bool, u64) {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let heading = lines.clone().find(|line| !line.starts_with(b"#")).and_then(Columns::of_heading);
    let Some(columns) = given.or(heading.as_ref().map(|(columns, _)| columns)) else { return (true, 1) };
    let of_line = |line| columns.resolution_ns(line, columns.delimiter(line)?);
    (!columns.are_times_from_first(), lines.find_map(of_line).unwrap_or(1))
}

/// What a first line lacks that seems to be the heading of a table, for it names some of the columns.
pub(crate) fn lacking(head: &[u8]) -> Option<String> {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.find(|line| !line.starts_with(b"#") && !line.is_empty())?;
    Columns::lacking(first)
}

/// Whether `head` is the start of such a file.
pub(crate) fn sniff(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii_end);
    let first = lines.find(|line| !line.starts_with(b"#") && !line.is_empty());
    first.is_some_and(|line| Columns::of_heading(line).is_some())
}
