//! The Storage Performance Council's trace format (SPC Trace File Format Specification,
//! revision 1.0.1): `ASU,LBA,size,opcode,timestamp` on each line, possibly with more
//! columns. LBA is in sectors of 512 bytes, size in bytes, and time in seconds.

use std::io::{self, Write};

use iosched::{MICROSECOND_NS, Op, SECOND_NS};

use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{
    Line, LineFormat, RecordFormat, bytes_of, comma_fields, number, number_u32, plain, seconds, sectors_of_bytes,
};

pub(crate) struct Spc;

impl LineFormat for Spc {
    const EXPECTED: &'static str = "\"ASU,LBA,size,R or W,seconds\", LBA in sectors of 512 bytes, size in bytes";

    fn parse(&mut self, line: &[u8], _: &mut Names) -> Line {
        request(line).map_or(Line::Bad, Line::Request)
    }
}

fn request(line: &[u8]) -> Option<TraceRequest> {
    let mut fields = comma_fields(line);
    let unit = number_u32(fields.next()?)?;
    let sector = number(fields.next()?)?;
    let (_, nr_sectors) = sectors_of_bytes(0, number(fields.next()?)?)?;
    let op = match fields.next()? {
        b"r" | b"R" => Op::Read,
        b"w" | b"W" => Op::Write,
        _ => return None,
    };
    let arrival = seconds(fields.next()?)?;
    Some(TraceRequest { device: Some(unit), ..plain(arrival, op, sector, nr_sectors) })
}

impl RecordFormat for Spc {
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, _: Labels<'_>) -> io::Result<()> {
        let TraceRequest { arrival, op, sector, device, .. } = *request;
        let (unit, (_, size), letter) = (device.unwrap_or(0), bytes_of(request), op.letter());
        let (seconds, us) = (arrival.as_ns() / SECOND_NS, arrival.as_ns() % SECOND_NS / MICROSECOND_NS);
        writeln!(out, "{unit},{sector},{size},{letter},{seconds}.{us:06}")
    }
}
