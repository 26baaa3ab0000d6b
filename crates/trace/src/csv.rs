//! Our own columns, separated by commas, named in the first line: `arrival_ns,pid,op,sync,sector,nr_sectors`.
//!
//! Columns are found by name and may stand in any order; `pid` and `sync` may be missing, and `device` and
//! `latency_ns` may be there. `op` is one of the letters R, W, D, Z and F, `sync` is 0 or 1.

use iosched::{Flags, Op, Time};

use crate::TraceRequest;
use crate::text::{Line, LineFormat, number, number_u32, plain};

/// The first line as it is written.
pub(crate) const HEADING: &str = "arrival_ns,pid,op,sync,sector,nr_sectors";

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

    fn request(&self, line: &[u8]) -> Option<TraceRequest> {
        let mut request = plain(Time::ZERO, Op::Read, 0, 0);
        let mut fields = line.split(|&b| b == b',').map(<[u8]>::trim_ascii);
        for &column in &self.columns {
            let field = fields.next()?;
            match column {
                Column::Arrival => request.arrival = Time::from_ns(number(field)?),
                Column::Pid => request.pid = number_u32(field)?,
                Column::Op => request.op = op_of_letter(field)?,
                Column::Sync => request.flags.set(Flags::SYNC, sync_of(field)?),
                Column::Sector => request.sector = number(field)?,
                Column::Sectors => request.nr_sectors = number_u32(field)?,
                Column::Device if field.is_empty() => {}
                Column::Device => request.device = Some(number_u32(field)?),
                Column::Latency if field.is_empty() => {}
                Column::Latency => request.latency_ns = Some(number(field)?),
                Column::Unknown => {}
            }
        }
        let sensible = (request.nr_sectors > 0) == request.op.has_data();
        (sensible && fields.next().is_none()).then_some(request)
    }
}

impl LineFormat for Csv {
    const EXPECTED: &'static str = "a line of the columns named in the heading, as arrival_ns,pid,op,sync,sector,nr_sectors; op R, W, D or Z with nr_sectors over 0, or F with 0";

    fn parse(&mut self, line: &[u8]) -> Line {
        if self.columns.is_empty() {
            if let Some(columns) = columns_of(line) {
                self.columns = columns;
                return Line::Other;
            }
            return if line.starts_with(b"#") { Line::Other } else { Line::Bad };
        }
        self.request(line).map_or(Line::Bad, Line::Request)
    }
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
