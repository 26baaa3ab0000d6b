//! The traces of Microsoft Research Cambridge: `timestamp,host,disk,type,offset,size,response` on
//! each line. Timestamps are Windows file times. Timestamps and response times are in units of 100
//! ns. Offset and size are in bytes.
//!
//! A device is a host's disk, called `host.disk`. An empty or missing response is unknown.

use std::io::{self, Write};

use iosched::{Op, Time};

use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{
    Line, LineFormat, RecordFormat, bytes_of, comma_fields, number, number_u32, plain, sectors_of_bytes,
};

/// Length of a unit of time, ns.
const TICK_NS: u64 = 100;
/// Host of devices whose names are not of the format `host.disk`.
const HOST: &str = "trace";

pub(crate) struct Msr;

impl LineFormat for Msr {
    const EXPECTED: &'static str =
        "\"timestamp,host,disk,Read or Write,offset,size,response\", times in 100 ns, offset and size in bytes";

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line {
        match request(line, names) {
            Some(request) => Line::Request(request),
            None if line.to_ascii_lowercase().starts_with(b"timestamp,") => Line::Other,
            None => Line::Bad,
        }
    }
}

fn request(line: &[u8], names: &mut Names) -> Option<TraceRequest> {
    let mut fields = comma_fields(line);
    let ticks = |field: &[u8]| number(field)?.checked_mul(TICK_NS);
    let arrival = Time::from_ns(ticks(fields.next()?)?);
    let host = fields.next().filter(|host| !host.is_empty())?;
    let disk = number_u32(fields.next()?)?;
    let kind = fields.next()?;
    let op = match () {
        () if kind.eq_ignore_ascii_case(b"Read") => Op::Read,
        () if kind.eq_ignore_ascii_case(b"Write") => Op::Write,
        () => return None,
    };
    let (sector, nr_sectors) = sectors_of_bytes(number(fields.next()?)?, number(fields.next()?)?)?;
    // Some copies of the traces lack the response time.
    let response = fields.next().unwrap_or_default();
    let latency_ns = if response.is_empty() { None } else { Some(ticks(response)?) };
    if fields.next().is_some() {
        return None;
    }
    let device = names.device(&[host, b".", disk.to_string().as_bytes()].concat());
    Some(TraceRequest { device, latency_ns, ..plain(arrival, op, sector, nr_sectors) })
}

impl RecordFormat for Msr {
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, labels: Labels<'_>) -> io::Result<()> {
        let kind = if request.op == Op::Read { "Read" } else { "Write" };
        let ticks = request.arrival.as_ns() / TICK_NS;
        let (offset, length) = bytes_of(request);
        match labels.device.and_then(split_name) {
            Some((host, disk)) => write!(out, "{ticks},{host},{disk},")?,
            None => write!(out, "{ticks},{HOST},{},", request.device.unwrap_or(0))?,
        }
        write!(out, "{kind},{offset},{length},")?;
        match request.latency_ns {
            Some(latency_ns) => writeln!(out, "{}", latency_ns / TICK_NS),
            None => writeln!(out),
        }
    }
}

/// Splits a name of the format `host.disk`.
fn split_name(name: &str) -> Option<(&str, u32)> {
    let (host, disk) = name.rsplit_once('.')?;
    let plain = !host.is_empty() && host.bytes().all(|b| b.is_ascii_graphic() && b != b',');
    plain.then_some(())?;
    Some((host, disk.parse().ok()?))
}
