//! The traces of Florida International University:
//! `ns pid process LBA sectors R|W major minor [md5]` on each line, with
//! sectors of 512 bytes. A process called `?` has no name.

use std::io::{self, Write};

use iosched::Op;

use super::bare::BareTimes;
use crate::blktrace::ProcessName;
use crate::names::{Labels, Names};
use crate::text::{Line, LineFormat, RecordFormat, Words, number, number_u32, plain};
use crate::{DeviceName, TraceRequest};

/// Maximum number of words of a line. A process's name may contain blanks, and has at most 16
/// bytes.
const WORDS_MAX: usize = 24;
const UNNAMED: &[u8] = b"?";

pub(crate) struct Fiu(pub(crate) BareTimes);

impl LineFormat for Fiu {
    const EXPECTED: &'static str = "\"ns pid process LBA sectors R|W major minor md5\", with LBA and sectors in \
        units of 512 bytes";

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line {
        request(line, self.0, names).map_or(Line::Bad, Line::Request)
    }
}

/// Parses a line. The name is in the middle and may have several words. Therefore the fields before
/// the name are counted from the start of the line, and the fields after the name from the end.
fn request(line: &[u8], times: BareTimes, names: &mut Names) -> Option<TraceRequest> {
    let words: Vec<&[u8]> = Words::new(line).take(WORDS_MAX + 1).collect();
    let op_of = |word: &[u8]| match word {
        b"R" | b"Read" => Some(Op::Read),
        b"W" | b"Write" => Some(Op::Write),
        _ => None,
    };
    let count = words.len();
    if !(8..=WORDS_MAX).contains(&count) {
        return None;
    }
    let op_at = [count - 4, count - 3].into_iter().find(|&at| at >= 5 && op_of(words[at]).is_some())?;
    let arrival = times.parse(words[0])?;
    let pid = number_u32(words[1])?;
    let name = words[2..op_at - 2].join(&b' ');
    let sector = number(words[op_at - 2])?;
    let nr_sectors = number_u32(words[op_at - 1])?;
    let (major, minor) = (number_u32(words[op_at + 1])?, number_u32(words[op_at + 2])?);
    if name != UNNAMED {
        names.process(pid, ProcessName::new(&name));
    }
    let device = DeviceName::new(major, minor)?;
    Some(TraceRequest { pid, device: Some(device.0), ..plain(arrival, op_of(words[op_at])?, sector, nr_sectors) })
}

impl RecordFormat for Fiu {
    /// Writes a request. The hash is left out, because the contents are not known.
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, labels: Labels<'_>) -> io::Result<()> {
        let TraceRequest { arrival, pid, op, sector, nr_sectors, device, .. } = *request;
        let name = labels.process.map(ProcessName::to_text).unwrap_or_default();
        let name: Vec<&str> =
            name.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()).collect();
        let name = if name.is_empty() { "?".to_owned() } else { name.join(" ") };
        let device = device.unwrap_or(0);
        let (major, minor) = (device >> 20, device & 0xf_ffff);
        let ns = arrival.as_ns();
        writeln!(out, "{ns} {pid} {name} {sector} {nr_sectors} {} {major} {minor}", op.letter())
    }
}
