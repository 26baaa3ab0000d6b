//! The common part of line formats: numbers, fields, and the loop from lines to requests.

use std::borrow::Cow;
use std::io::{self, Write};

use iosched::{Op, SECTOR_BYTES, Time};

use crate::error::{TracePlace, WarningKind, Warnings};
use crate::input::{Input, excerpt};
use crate::names::{Labels, Names};
use crate::record::TraceRequest;

/// Kind of a line.
pub(crate) enum Line {
    Request(TraceRequest),
    /// A heading or a comment.
    Other,
    /// A line that does not fit the format.
    Bad,
}

/// A format of one request per line.
pub(crate) trait LineFormat: Send {
    /// Description of a correct line, for messages.
    const EXPECTED: &'static str;

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line;

    /// Returns the wrong part of a bad line and a description of the correct
    /// part, if the format can find it.
    fn wrong(&self, _line: &[u8]) -> Option<(String, String)> {
        None
    }

    /// Returns whether the last parsed line lacked optional columns. If this line also has no
    /// newline, it is truncated.
    fn lacked_columns(&self) -> bool {
        false
    }

    /// Returns the number of files that the lines up to now opened and did not close.
    fn unclosed(&self) -> u64 {
        0
    }
}

/// Writes requests in a format with one record per request. The caller passes only requests that
/// the format can hold, with the operation that is to be written.
pub(crate) trait RecordFormat {
    /// Writes the text before the first record.
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, labels: Labels<'_>) -> io::Result<()>;

    /// Writes the text after the last record.
    fn end(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Returns requests one by one, in the order of the file. Damage is reported as warnings.
pub(crate) trait RequestSource: Send {
    fn next_request(&mut self, warnings: &mut Warnings, names: &mut Names) -> Option<TraceRequest>;

    /// Returns the position of the reader.
    fn place(&self) -> TracePlace;
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
    fn place(&self) -> TracePlace {
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
            let has_end = length > line.len();
            let is_cut = !has_end && self.format.lacked_columns();
            let parsed = if is_cut { Line::Bad } else { parsed };
            let is_bad = matches!(parsed, Line::Bad) && !is_blank && !is_comment(line);
            let wrong = is_bad.then(|| wrong(&self.format, line));
            warnings.tally.lines += u64::from(!is_blank);
            if !self.input.line_ended() && self.input.has_failed() {
                // Reading failed within this line, so the line is truncated, even if it looks
                // complete.
                continue;
            }
            let place = || self.input.line_place(length);
            if let Some((found, expected)) = wrong {
                warnings.push(place(), bad_line(&self.input, found, expected));
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

/// Returns whether a line that is not a record is a comment.
pub(crate) fn is_comment(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

/// Returns the wrong part of a bad line and a description of the correct part. If the format cannot
/// find the part, returns the start of the line and a description of a correct line.
fn wrong<F: LineFormat>(format: &F, line: &[u8]) -> (String, Cow<'static, str>) {
    let fault = format.wrong(line).map(|(found, expected)| (found, expected.into()));
    fault.unwrap_or_else(|| (excerpt(line), F::EXPECTED.into()))
}

/// Returns the warning for a line that is not a record. A line without a newline is truncated.
pub(crate) fn bad_line(input: &Input, found: String, expected: impl Into<Cow<'static, str>>) -> WarningKind {
    let expected = expected.into();
    match input.line_ended() {
        true => WarningKind::BadLine { found, expected },
        false => WarningKind::CutLine { found, expected },
    }
}

/// Creates a request of a format with few fields.
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
        ioprio: None,
    }
}

/// Parses a number of `unit`, possibly with decimals. Rounds the result down.
pub(crate) fn decimal(text: &[u8], unit: u64) -> Option<u64> {
    let (integer, fraction) = match text.iter().position(|&b| b == b'.') {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &[][..]),
    };
    // The sum of the further digits is below 1 in the unit of the result.
    let (mut digits, mut scale) = (0u64, 1u64);
    for &digit in fraction {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if scale <= u64::MAX / 10 / unit {
            (digits, scale) = (digits * 10 + u64::from(digit), scale * 10);
        }
    }
    number(integer)?.checked_mul(unit)?.checked_add(digits * unit / scale)
}

/// Parses a decimal number that consists only of digits.
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

/// Returns the first sector and the number of sectors that hold `length` bytes from `offset` on. A
/// partial sector counts as a whole one. A length of 0 has no sectors. Returns `None` if there are
/// too many.
pub(crate) fn sectors_of_bytes(offset: u64, length: u64) -> Option<(u64, u32)> {
    let end = offset.checked_add(length)?.div_ceil(SECTOR_BYTES);
    let sector = offset / SECTOR_BYTES;
    let nr_sectors = if length > 0 { u32::try_from(end - sector).ok()? } else { 0 };
    Some((sector, nr_sectors))
}

/// Returns the first byte of a request, and the length in bytes.
pub(crate) fn bytes_of(request: &TraceRequest) -> (u128, u64) {
    (u128::from(request.sector) * u128::from(SECTOR_BYTES), u64::from(request.nr_sectors) * SECTOR_BYTES)
}

/// Returns the fields between commas, without the blanks around them.
pub(crate) fn comma_fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| b == b',').map(<[u8]>::trim_ascii)
}

/// Parses `seconds` or `seconds.fraction`, in ns. Digits beyond the ninth are dropped.
pub(crate) fn seconds(text: &[u8]) -> Option<Time> {
    decimal(text, iosched::SECOND_NS).map(Time::from_ns)
}

/// The words of a line, separated by spaces or tabs.
#[derive(Clone)]
pub(crate) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// Returns the rest of the line, without the blanks around it.
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
