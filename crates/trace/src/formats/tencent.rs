//! The traces of Tencent's cloud block storage: `timestamp,offset,size,type,volume` on
//! each line, in seconds and sectors of 512 bytes, with type 0 for reads and 1 for writes.

use std::io::{self, Write};

use iosched::{Op, SECOND_NS};

use super::bare::BareTimes;
use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{Line, LineFormat, RecordFormat, comma_fields, number, number_u32, plain};

pub(crate) struct Tencent(pub(crate) BareTimes);

impl LineFormat for Tencent {
    const EXPECTED: &'static str =
        "\"timestamp,offset,size,type,volume\" in whole seconds and sectors, type 0 (read) or 1 (write)";

    fn parse(&mut self, line: &[u8], _: &mut Names) -> Line {
        match request(line, self.0) {
            Some(request) => Line::Request(request),
            None if line.to_ascii_lowercase().starts_with(b"timestamp,") => Line::Other,
            None => Line::Bad,
        }
    }
}

fn request(line: &[u8], times: BareTimes) -> Option<TraceRequest> {
    let mut fields = comma_fields(line);
    let arrival = times.parse(fields.next()?)?;
    let sector = number(fields.next()?)?;
    let nr_sectors = number_u32(fields.next()?)?;
    let op = match fields.next()? {
        b"0" => Op::Read,
        b"1" => Op::Write,
        _ => return None,
    };
    let volume = number_u32(fields.next()?)?;
    let request = TraceRequest { device: Some(volume), ..plain(arrival, op, sector, nr_sectors) };
    fields.next().is_none().then_some(request)
}

impl RecordFormat for Tencent {
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, _: Labels<'_>) -> io::Result<()> {
        let TraceRequest { op, sector, nr_sectors, device, .. } = *request;
        let seconds = request.arrival.as_ns() / SECOND_NS;
        writeln!(out, "{seconds},{sector},{nr_sectors},{},{}", u8::from(op != Op::Read), device.unwrap_or(0))
    }
}
