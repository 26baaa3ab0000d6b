//! Alibaba's block traces: `device,opcode,offset,length,timestamp` on each
//! line, with opcode R or W, bytes and µs.

use std::io::{self, Write};

use iosched::{MICROSECOND_NS, Op};

use super::bare::BareTimes;
use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{
    Line, LineFormat, RecordFormat, bytes_of, comma_fields, number, number_u32, plain, sectors_of_bytes,
};

pub(crate) struct Alibaba(pub(crate) BareTimes);

impl LineFormat for Alibaba {
    const EXPECTED: &'static str =
        "\"device,R or W,offset,length,timestamp\", offset and length in bytes, timestamp in µs";

    fn parse(&mut self, line: &[u8], _: &mut Names) -> Line {
        match request(line, self.0) {
            Some(request) => Line::Request(request),
            None if line.starts_with(b"device_id,") => Line::Other,
            None => Line::Bad,
        }
    }
}

fn request(line: &[u8], times: BareTimes) -> Option<TraceRequest> {
    let mut fields = comma_fields(line);
    let device = number_u32(fields.next()?)?;
    let op = match fields.next()?.to_ascii_lowercase().as_slice() {
        b"r" | b"read" => Op::Read,
        b"w" | b"write" => Op::Write,
        _ => return None,
    };
    let (sector, nr_sectors) = sectors_of_bytes(number(fields.next()?)?, number(fields.next()?)?)?;
    let arrival = times.parse(fields.next()?)?;
    let request = TraceRequest { device: Some(device), ..plain(arrival, op, sector, nr_sectors) };
    fields.next().is_none().then_some(request)
}

impl RecordFormat for Alibaba {
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, _: Labels<'_>) -> io::Result<()> {
        let (offset, length) = bytes_of(request);
        let time_us = request.arrival.as_ns() / MICROSECOND_NS;
        writeln!(out, "{},{},{offset},{length},{time_us}", request.device.unwrap_or(0), request.op.letter())
    }
}
