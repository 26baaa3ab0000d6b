//! blkreplay's text: first lines of prose and a heading, then
//! `seconds ; sector ; sectors ; operation ; …` on each line.

use std::io::{self, Write};

use iosched::{Flags, SECOND_NS};

use crate::blktrace::Category;
use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{Line, LineFormat, RecordFormat, Words, number, number_u32, plain, seconds};

/// The heading above the columns.
const HEADING: &str = "start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0";

pub(crate) struct Blkreplay {
    heading_seen: bool,
}

impl Blkreplay {
    pub(crate) fn new() -> Self {
        Self { heading_seen: false }
    }
}

impl LineFormat for Blkreplay {
    const EXPECTED: &'static str = "\"seconds ; sector ; sectors ; R or W ; …\"";

    fn parse(&mut self, line: &[u8], _: &mut Names) -> Line {
        if let Some(request) = request(line) {
            self.heading_seen = true;
            return Line::Request(request);
        }
        if is_heading(line) {
            self.heading_seen = true;
            return Line::Other;
        }
        // Lines of prose come before the heading.
        if self.heading_seen { Line::Bad } else { Line::Other }
    }
}

impl RecordFormat for Blkreplay {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{HEADING}")
    }

    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, _: Labels<'_>) -> io::Result<()> {
        let TraceRequest { arrival, op, flags, sector, nr_sectors, .. } = *request;
        let (seconds, ns) = (arrival.as_ns() / SECOND_NS, arrival.as_ns() % SECOND_NS);
        let ahead = if flags.contains(Flags::AHEAD) { "A" } else { "" };
        let letters = format_args!("{}{ahead}", op.letter());
        writeln!(out, "{seconds:7}.{ns:09} ; {sector:12} ; {nr_sectors:4} ; {letters} ; 0.0 ; 0.0")
    }
}

fn is_heading(line: &[u8]) -> bool {
    let mut fields = line.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    fields.next() == Some(b"start") && fields.next() == Some(b"sector")
}

fn request(line: &[u8]) -> Option<TraceRequest> {
    let mut fields = line.split(|&b| b == b';').map(<[u8]>::trim_ascii);
    let arrival = seconds(fields.next()?)?;
    let sector = number(fields.next()?)?;
    let nr_sectors = number_u32(fields.next()?)?;
    let op = Words::new(fields.next()?).next()?;
    let (op, flags) = Category::from_letters(op)?.to_op(nr_sectors > 0)?;
    let sector = if nr_sectors == 0 { 0 } else { sector };
    Some(TraceRequest { flags, ..plain(arrival, op, sector, nr_sectors) })
}
