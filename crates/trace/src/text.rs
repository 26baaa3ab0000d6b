//! What line formats share: numbers, fields, and the loop from lines to requests.

use iosched::{Op, Time};

use crate::TraceRequest;
use crate::error::{Place, WarningKind, Warnings};
use crate::input::{Input, excerpt};

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

    fn parse(&mut self, line: &[u8]) -> Line;
}

/// Gives requests one by one as they are in the file; damage goes to the warnings.
pub(crate) trait RequestSource: Send {
    fn next_request(&mut self, warnings: &mut Warnings) -> Option<TraceRequest>;

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

    fn next_request(&mut self, warnings: &mut Warnings) -> Option<TraceRequest> {
        loop {
            let Some((line, length)) = self.input.line(warnings) else {
                self.input.warn_failure(warnings);
                return None;
            };
            match self.format.parse(line) {
                Line::Request(request) => return Some(request),
                Line::Other => {}
                Line::Bad if line.trim_ascii().is_empty() => {}
                Line::Bad => {
                    let found = excerpt(line);
                    let kind = WarningKind::BadLine { found, expected: F::EXPECTED };
                    warnings.push(self.input.line_place(length), kind);
                }
            }
        }
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
