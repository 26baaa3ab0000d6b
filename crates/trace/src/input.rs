//! Bytes and lines of one file, decompressed if necessary, with their offsets.

use std::io::{self, Read};
use std::sync::Arc;

use crate::decompress::plain;
use crate::error::{TraceError, TracePlace, WarningKind, Warnings};

/// Size of the buffer. It holds the longest record or line, and has room for reading ahead.
const BUFFER_BYTES: usize = 128 * 1024;
/// Longest line that is parsed, bytes.
pub(crate) const LINE_MAX_BYTES: usize = 64 * 1024;
/// Number of bytes at the start of a file that determine its format.
pub(crate) const HEAD_BYTES: usize = 64 * 1024;

/// One file, read forwards.
pub(crate) struct Input {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset_bytes: u64,
    line: u64,
    line_ended: bool,
    at_end: bool,
    failure: Option<String>,
    name: Arc<str>,
    decompressed: bool,
}

impl Input {
    /// Reads `reader`. The first bytes show whether the data is compressed.
    pub(crate) fn new(reader: Box<dyn Read + Send>, name: &str) -> io::Result<Self> {
        let (reader, decompressed) = plain(reader)?;
        Ok(Self {
            reader,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            end: 0,
            offset_bytes: 0,
            line: 0,
            line_ended: true,
            at_end: false,
            failure: None,
            name: name.into(),
            decompressed,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the next bytes: at least `want` bytes, unless the file ends before.
    #[inline]
    pub(crate) fn peek(&mut self, want: usize) -> &[u8] {
        if self.end - self.start < want {
            self.fill(want);
        }
        &self.buffer[self.start..self.end]
    }

    #[inline]
    pub(crate) fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start);
        self.start += bytes;
        self.offset_bytes += bytes as u64;
    }

    fn fill(&mut self, want: usize) {
        debug_assert!(want <= BUFFER_BYTES);
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        while self.end < want && !self.at_end {
            // Reads are small: if the decompressor fails within a read, the read returns none of
            // the data before the failure.
            let limit = (self.end + 64 * 1024).min(BUFFER_BYTES);
            match self.reader.read(&mut self.buffer[self.end..limit]) {
                Ok(0) => self.at_end = true,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.at_end = true;
                    self.failure = Some(error.to_string());
                }
            }
        }
    }

    /// Returns the place of the next byte.
    pub(crate) fn place(&self) -> TracePlace {
        self.place_at(self.offset_bytes)
    }

    pub(crate) fn place_at(&self, offset_bytes: u64) -> TracePlace {
        TracePlace { file: Arc::clone(&self.name), offset_bytes, line: None, decompressed: self.decompressed }
    }

    /// Returns the place of the start of the last returned line.
    pub(crate) fn line_place(&self, length_bytes: usize) -> TracePlace {
        TracePlace { line: Some(self.line), ..self.place_at(self.offset_bytes.saturating_sub(length_bytes as u64)) }
    }

    /// Returns whether the last returned line ends with a newline. Only the last line of a file can
    /// lack a newline.
    pub(crate) fn line_ended(&self) -> bool {
        self.line_ended
    }

    /// Returns whether reading ahead or decompressing has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the number of bytes that were consumed.
    pub(crate) fn offset_bytes(&self) -> u64 {
        self.offset_bytes
    }

    /// Skips the byte order mark that some editors and Windows programs put before UTF-8 text.
    pub(crate) fn skip_byte_order_mark(&mut self) {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        if self.offset_bytes == 0 && self.peek(MARK.len()).starts_with(MARK) {
            self.consume(MARK.len());
        }
    }

    /// Returns the error of a file whose first byte could not be read.
    pub(crate) fn failure_at_start(&mut self) -> Option<TraceError> {
        let message = self.failure.take()?;
        Some(TraceError::Unreadable { place: self.place(), problem: WarningKind::Unreadable { message } })
    }

    /// Adds a warning if reading has failed. Call this at the end.
    pub(crate) fn warn_failure(&mut self, warnings: &mut Warnings) {
        if let Some(message) = self.failure.take() {
            warnings.push(self.place(), WarningKind::Unreadable { message });
        }
    }

    /// Returns the next line without its newline, and its length including the newline. Lines that
    /// are too long are skipped.
    pub(crate) fn line(&mut self, warnings: &mut Warnings) -> Option<(&[u8], usize)> {
        let mut searched = 0;
        let (length, ended) = loop {
            let available = self.end - self.start;
            if let Some(at) = find_newline(&self.buffer[self.start + searched..self.end]) {
                break (searched + at, true);
            }
            searched = available;
            if self.at_end {
                if available == 0 {
                    return None;
                }
                break (available, false);
            }
            if available >= LINE_MAX_BYTES {
                self.skip_long_line(warnings);
                searched = 0;
            } else {
                self.fill(available + 1);
            }
        };
        self.line += 1;
        self.line_ended = ended;
        let line_bytes = length + usize::from(ended);
        let from = self.start;
        self.consume(line_bytes);
        let line = &self.buffer[from..from + length];
        Some((line.strip_suffix(b"\r").unwrap_or(line), line_bytes))
    }

    fn skip_long_line(&mut self, warnings: &mut Warnings) {
        self.line += 1;
        let place = TracePlace { line: Some(self.line), ..self.place() };
        let mut length_bytes = 0;
        loop {
            let head = self.peek(1);
            let found = find_newline(head);
            let bytes = found.map_or(head.len(), |at| at + 1);
            if bytes == 0 {
                break;
            }
            self.consume(bytes);
            length_bytes += bytes as u64;
            if found.is_some() {
                break;
            }
        }
        warnings.push(place, WarningKind::LongLine { length_bytes, max_bytes: LINE_MAX_BYTES as u64 });
    }
}

#[inline]
fn find_newline(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|&b| b == b'\n')
}

/// Returns the start of a line for a message.
pub(crate) fn excerpt(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(&line[..line.len().min(80)]);
    text.trim().to_owned()
}
