//! Our own columns, separated by commas, named in the first line: whatever is known of a request.
//!
//! Columns are found by name and may stand in any order: `arrival_ns`, `op` (one of the letters R, W, D, Z and F),
//! `sector` and `nr_sectors` must be there; `pid`, `sync` (0 or 1), `device`, `latency_ns`, `flags` (letters, see
//! [`FLAGS`]) and `process` may be. What is not known of a request is empty. A name with a comma or a quote is quoted
//! as in RFC 4180.

use std::io::{self, Write};

use iosched::{Flags, Op, Time};

use crate::TraceRequest;
use crate::blktrace::ProcessName;
use crate::text::{Labels, Line, LineFormat, Names, RecordFormat, number, number_u32, plain};

/// The first line as it is written.
const HEADING: &str = "arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns,flags,process";

/// Flags beside sync, which is a column of its own.
const FLAGS: [(Flags, u8); 5] =
    [(Flags::IDLE, b'I'), (Flags::PRIO, b'P'), (Flags::FUA, b'F'), (Flags::PREFLUSH, b'B'), (Flags::AHEAD, b'A')];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    Arrival,
    Pid,
    Op,
    Sync,
    Sector,
    Sectors,
    Device,
    Latency,
    Flags,
    Process,
    Unknown,
}

pub(crate) struct Csv {
    columns: Vec<Column>,
}

/// Columns looked at; more make no sense.
const COLUMNS_MAX: usize = 64;

impl Csv {
    pub(crate) fn new() -> Self {
        Self { columns: Vec::new() }
    }

    fn request(&self, line: &[u8], names: &mut Names) -> Option<TraceRequest> {
        let mut request = plain(Time::ZERO, Op::Read, 0, 0);
        let mut process = Vec::new();
        let mut fields = Fields(Some(line));
        for &column in &self.columns {
            let field = fields.next()?;
            match column {
                Column::Arrival => request.arrival = Time::from_ns(number(field)?),
                Column::Pid => request.pid = number_u32(field)?,
                Column::Op => request.op = op_of_letter(field)?,
                Column::Sync => request.flags.set(Flags::SYNC, sync_of(field)?),
                Column::Sector => request.sector = number(field)?,
                Column::Sectors => request.nr_sectors = number_u32(field)?,
                Column::Flags => request.flags |= flags_of(field)?,
                Column::Process => process = unquoted(field)?,
                Column::Device if field.is_empty() => {}
                Column::Device => request.device = Some(number_u32(field)?),
                Column::Latency if field.is_empty() => {}
                Column::Latency => request.latency_ns = Some(number(field)?),
                Column::Unknown => {}
            }
        }
        let sensible = (request.nr_sectors > 0) == request.op.has_data();
        if !sensible || fields.next().is_some() {
            return None;
        }
        if !process.is_empty() {
            names.process(request.pid, ProcessName::new(&process));
        }
        Some(request)
    }
}

impl LineFormat for Csv {
    const EXPECTED: &'static str = "a line of the columns named in the heading, as arrival_ns,pid,op,sync,sector,nr_sectors; op R, W, D or Z with nr_sectors over 0, or F with 0";

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line {
        if self.columns.is_empty() {
            if let Some(columns) = columns_of(line) {
                self.columns = columns;
                return Line::Other;
            }
            return if line.starts_with(b"#") { Line::Other } else { Line::Bad };
        }
        self.request(line, names).map_or(Line::Bad, Line::Request)
    }
}

impl RecordFormat for Csv {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADING}")
    }

    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, labels: Labels<'_>) -> io::Result<()> {
        let TraceRequest { arrival, pid, op, flags, sector, nr_sectors, device, latency_ns } = *request;
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
            writeln!(out, ",\"{}\"", name.replace('"', "\"\""))
        } else {
            writeln!(out, ",{name}")
        }
    }
}

/// Fields with their quotes, without the blanks around them.
struct Fields<'a>(Option<&'a [u8]>);

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.0?;
        let quoted = rest.trim_ascii_start().first() == Some(&b'"');
        let mut inside = false;
        let end = rest.iter().position(|&b| {
            inside ^= quoted && b == b'"';
            b == b',' && !inside
        });
        self.0 = end.map(|end| &rest[end + 1..]);
        Some(rest[..end.unwrap_or(rest.len())].trim_ascii())
    }
}

/// A field without its quotes; `None` if they do not match.
fn unquoted(field: &[u8]) -> Option<Vec<u8>> {
    let Some(inner) = field.strip_prefix(b"\"") else { return Some(field.to_vec()) };
    let inner = inner.strip_suffix(b"\"")?;
    let mut text = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'"' && bytes.next() != Some(&b'"') {
            return None;
        }
        text.push(byte);
    }
    Some(text)
}

fn op_of_letter(field: &[u8]) -> Option<Op> {
    [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush].into_iter().find(|op| field == [op.letter() as u8])
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

fn columns_of(line: &[u8]) -> Option<Vec<Column>> {
    let name = |field: &[u8]| match field.trim_ascii() {
        b"arrival_ns" => Column::Arrival,
        b"pid" => Column::Pid,
        b"op" => Column::Op,
        b"sync" => Column::Sync,
        b"sector" => Column::Sector,
        b"nr_sectors" => Column::Sectors,
        b"device" => Column::Device,
        b"latency_ns" => Column::Latency,
        b"flags" => Column::Flags,
        b"process" => Column::Process,
        _ => Column::Unknown,
    };
    let columns: Vec<_> = line.split(|&b| b == b',').take(COLUMNS_MAX + 1).map(name).collect();
    let needed = [Column::Arrival, Column::Op, Column::Sector, Column::Sectors];
    (columns.len() <= COLUMNS_MAX && needed.iter().all(|column| columns.contains(column))).then_some(columns)
}

/// Whether `head` is the start of such a file.
pub(crate) fn sniff(head: &[u8]) -> bool {
    let mut lines = head.split(|&b| b == b'\n');
    lines.find(|line| !line.starts_with(b"#")).is_some_and(|line| columns_of(line).is_some())
}
