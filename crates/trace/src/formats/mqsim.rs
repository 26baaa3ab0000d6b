//! MQSim's text: `arrival_ns device sector sectors type` on each line, with
//! type 0 for writes and 1 for reads.

use std::io::{self, Write};

use iosched::Op;

use super::bare::BareTimes;
use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{Line, LineFormat, RecordFormat, Words, number, number_u32, plain};

pub(crate) struct Mqsim(pub(crate) BareTimes);

impl LineFormat for Mqsim {
    const EXPECTED: &'static str = "\"arrival_ns device sector sectors type\", type 0 (write) or 1 (read)";

    fn parse(&mut self, line: &[u8], _: &mut Names) -> Line {
        request(line, self.0).map_or(Line::Bad, Line::Request)
    }
}

impl RecordFormat for Mqsim {
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, _: Labels<'_>) -> io::Result<()> {
        let TraceRequest { arrival, op, sector, nr_sectors, .. } = *request;
        let device = request.device.unwrap_or(0);
        writeln!(out, "{} {device} {sector} {nr_sectors} {}", arrival.as_ns(), u8::from(op == Op::Read))
    }
}

fn request(line: &[u8], times: BareTimes) -> Option<TraceRequest> {
    let mut words = Words::new(line);
    let arrival = times.parse(words.next()?)?;
    let device = number_u32(words.next()?)?;
    let sector = number(words.next()?)?;
    let nr_sectors = number_u32(words.next()?)?;
    let op = match words.next()? {
        b"0" => Op::Write,
        b"1" => Op::Read,
        _ => return None,
    };
    let request = TraceRequest { device: Some(device), ..plain(arrival, op, sector, nr_sectors) };
    words.next().is_none().then_some(request)
}
