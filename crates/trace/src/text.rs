//! What line formats share: numbers, fields, names, and the loop from lines to requests.

use std::collections::BTreeMap;
use std::io::{self, Write};

use iosched::{Op, SECTOR_BYTES, Time};

use crate::blkparse::NAMES_MAX;
use crate::blktrace::ProcessName;
use crate::error::{Place, WarningKind, Warnings};
use crate::input::{Input, excerpt};
use crate::{Format, ProcessNames, TraceRequest};

/// What a line is.
pub(crate) enum Line {
    Request(TraceRequest),
    /// A heading or a comment.
    Other,
    /// Nothing the format knows.
    Bad,
}

/// A format of one request per line.
pub(crate) trait LineFormat: Send {
    /// What a line should look like, for messages.
    const EXPECTED: &'static str;

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line;

    /// Files that the lines so far opened and did not close.
    fn unclosed(&self) -> u64 {
        0
    }
}

/// Names that a trace gives to numbers; of at most [`NAMES_MAX`] processes and as many devices.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) processes: ProcessNames,
    pub(crate) devices: DeviceNames,
    numbers: BTreeMap<Box<str>, u32>,
}

/// Names of devices by number, of the first 65,536.
pub type DeviceNames = BTreeMap<u32, Box<str>>;

/// Longest name of a device, bytes: a path of fio's.
const DEVICE_NAME_MAX_BYTES: usize = 4096;

impl Names {
    pub(crate) fn process(&mut self, pid: u32, name: ProcessName) {
        if self.processes.len() < NAMES_MAX || self.processes.contains_key(&pid) {
            self.processes.insert(pid, name);
        }
    }

    /// The number of the device called `name`: the first is 0. `None` if the name is no text or there are too many.
    pub(crate) fn device(&mut self, name: &[u8]) -> Option<u32> {
        let name = std::str::from_utf8(name).ok().filter(|name| name.len() <= DEVICE_NAME_MAX_BYTES)?;
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        let number = self.devices.len() as u32;
        (self.devices.len() < NAMES_MAX).then(|| {
            self.devices.insert(number, name.into());
            self.numbers.insert(name.into(), number);
            number
        })
    }
}

/// What a request is called beside its numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Labels<'a> {
    pub(crate) process: Option<ProcessName>,
    pub(crate) device: Option<&'a str>,
}

/// Writes requests in a format of one record each. Requests are only those that the format holds, with the operation
/// they are to be written as.
pub(crate) trait RecordFormat {
    /// What stands above the first.
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, labels: Labels<'_>) -> io::Result<()>;

    /// What stands below the last.
    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// The writer of such a format; `None` of one that has none.
pub(crate) fn record_format(format: Format) -> Option<Box<dyn RecordFormat>> {
    Some(match format {
        Format::Blktrace | Format::Blkparse => return None,
        Format::FioV2 => Box::new(crate::fio::FioWriter::new(crate::fio::Version::Two)),
        Format::FioV3 => Box::new(crate::fio::FioWriter::new(crate::fio::Version::Three)),
        Format::Msr => Box::new(crate::msr::Msr),
        Format::Spc => Box::new(crate::spc::Spc),
        Format::Fiu => Box::new(crate::fiu::Fiu),
        Format::Alibaba => Box::new(crate::alibaba::Alibaba),
        Format::Tencent => Box::new(crate::tencent::Tencent),
        Format::Blkreplay => Box::new(crate::blkreplay::Blkreplay::new()),
        Format::Vscsi => Box::new(crate::vscsi::VscsiWriter::default()),
        Format::Mqsim => Box::new(crate::mqsim::Mqsim),
        Format::Csv => Box::new(crate::csv::Csv::new()),
    })
}

/// Gives requests one by one as they are in the file; damage goes to the warnings.
pub(crate) trait RequestSource: Send {
    fn next_request(&mut self, warnings: &mut Warnings, names: &mut Names) -> Option<TraceRequest>;

    /// How far it has read.
    fn place(&self) -> Place;
}

/// Requests from the lines of a file.
pub(crate) struct TextReader<F> {
    input: Input,
    format: F,
}

impl<F: LineFormat> TextReader<F> {
    pub(crate) fn new(input: Input, format: F) -> Self {
        Self { input, format }
    }
}

impl<F: LineFormat> RequestSource for TextReader<F> {
    fn place(&self) -> Place {
        self.input.line_place(0)
    }

    fn next_request(&mut self, warnings: &mut Warnings, names: &mut Names) -> Option<TraceRequest> {
        loop {
            let Some((line, length)) = self.input.line(warnings) else {
                self.input.warn_failure(warnings);
                warnings.tally.unclosed = self.format.unclosed();
                return None;
            };
            let parsed = self.format.parse(line, names);
            let is_blank = line.trim_ascii().is_empty();
            let found = if matches!(parsed, Line::Bad) { excerpt(line) } else { String::new() };
            warnings.tally.lines += u64::from(!is_blank);
            if !self.input.line_ended() && self.input.has_failed() {
                // Whatever it looks like, it is cut.
                continue;
            }
            let place = || self.input.line_place(length);
            let is_bad = matches!(parsed, Line::Bad) && !is_blank;
            if is_bad {
                warnings.push(place(), bad_line(&self.input, found, F::EXPECTED));
            } else if !self.input.line_ended() {
                warnings.push(place(), WarningKind::NoLineEnd);
            }
            let Line::Request(request) = parsed else { continue };
            if request.nr_sectors > 0 || !request.op.has_data() {
                return Some(request);
            }
            warnings.push(place(), WarningKind::NoLength);
        }
    }
}

/// What is wrong with a line that is no record: the last one without an end is cut.
pub(crate) fn bad_line(input: &Input, found: String, expected: &'static str) -> WarningKind {
    match input.line_ended() {
        true => WarningKind::BadLine { found, expected },
        false => WarningKind::CutLine { found, expected },
    }
}

/// A request of a format that knows little of it.
pub(crate) fn plain(arrival: Time, op: Op, sector: u64, nr_sectors: u32) -> TraceRequest {
    TraceRequest {
        arrival,
        pid: 0,
        device: None,
        op,
        flags: iosched::Flags::empty(),
        sector,
        nr_sectors,
        latency_ns: None,
    }
}

/// A decimal number, nothing else.
#[inline]
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 20 {
        return None;
    }
    let mut value = 0u64;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

#[inline]
pub(crate) fn number_u32(digits: &[u8]) -> Option<u32> {
    number(digits)?.try_into().ok()
}

/// The sectors that hold `length` bytes from `offset` on: begun ones counted, none of no length. `None` if there are
/// too many.
pub(crate) fn sectors_of_bytes(offset: u64, length: u64) -> Option<(u64, u32)> {
    let end = offset.checked_add(length)?.div_ceil(SECTOR_BYTES);
    let sector = offset / SECTOR_BYTES;
    let nr_sectors = if length > 0 { u32::try_from(end - sector).ok()? } else { 0 };
    Some((sector, nr_sectors))
}

/// First byte and length in bytes.
pub(crate) fn bytes_of(request: &TraceRequest) -> (u128, u64) {
    (u128::from(request.sector) * u128::from(SECTOR_BYTES), u64::from(request.nr_sectors) * SECTOR_BYTES)
}

/// Fields apart by commas, without the blanks around them.
pub(crate) fn comma_fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b',').map(<[u8]>::trim_ascii)
}

/// `seconds` or `seconds.fraction`, in ns; digits beyond the ninth are dropped.
pub(crate) fn seconds(text: &[u8]) -> Option<Time> {
    let (whole, fraction) = match text.iter().position(|&b| b == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    let mut ns = 0;
    let mut scale = iosched::SECOND_NS;
    for &digit in fraction {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        scale /= 10;
        ns += u64::from(digit) * scale;
    }
    Some(Time::from_ns(number(whole)?.checked_mul(iosched::SECOND_NS)?.checked_add(ns)?))
}

/// The words of a line, apart by spaces or tabs.
#[derive(Clone)]
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// What has not been given out yet, without the blanks around it.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest.trim_ascii()
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let blank = |b: &u8| *b == b' ' || *b == b'\t';
        let start = self.rest.iter().position(|b| !blank(b))?;
        let word = &self.rest[start..];
        let length = word.iter().position(blank).unwrap_or(word.len());
        self.rest = &word[length..];
        Some(&word[..length])
    }
}
