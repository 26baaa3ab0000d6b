//! fio's I/O logs, versions 2 and 3, which fio's `write_iolog` writes and `read_iolog` replays.
//!
//! The first line names the version. Each further line is `file action [offset length]`, in bytes;
//! in version 3, a time precedes the name of the file. fio's manual does not give the unit of this
//! time; fio 3.33 writes and replays µs. fio replays a log of version 3 at its times, and a log of
//! version 2 as fast as the device allows.
//!
//! In version 2, the action `wait` advances the time. The reader takes its number as µs since the
//! previous wait, as the manual says. fio 3.33 instead takes the number as ms since the start of
//! fio, so that a log that follows the manual waits for hours. Therefore the writer never writes
//! `wait`.
//!
//! Each file is a device; devices are numbered in the order of their first mention. `sync` and
//! `datasync` are flushes. `sync_file_range` is skipped, because it only starts writeback of a file
//! and no request for it reaches the device.

use std::collections::BTreeSet;
use std::io::{self, Write};

use iosched::{MICROSECOND_NS, Op, Time};

use super::bare::BareTimes;
use crate::names::{Labels, NAMES_MAX, Names};
use crate::record::TraceRequest;
use crate::text::{Line, LineFormat, RecordFormat, Words, bytes_of, is_comment, number, plain, sectors_of_bytes};

/// Maximum number of files that are distinguished.
const FILES_MAX: usize = NAMES_MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    Two,
    Three,
}

impl Version {
    const fn heading(self) -> &'static str {
        match self {
            Self::Two => "fio version 2 iolog",
            Self::Three => "fio version 3 iolog",
        }
    }
}

/// Reads logs of either version.
pub(crate) struct Fio {
    version: Version,
    times: BareTimes,
    now: Time,
    open: BTreeSet<Vec<u8>>,
}

impl Fio {
    pub(crate) fn new(version: Version, times: BareTimes) -> Self {
        Self { version, times, now: Time::ZERO, open: BTreeSet::new() }
    }

    fn line(&mut self, line: &[u8], names: &mut Names) -> Option<Line> {
        let mut words = Words::new(line);
        if self.version == Version::Three {
            self.now = self.times.parse(words.next()?)?;
        }
        let file = words.next()?;
        let op = match words.next()? {
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Discard,
            b"sync" | b"datasync" => Op::Flush,
            b"wait" if self.version == Version::Two => {
                let wait = self.times.parse(words.next()?)?;
                self.now = Time::from_ns(self.now.as_ns().checked_add(wait.as_ns())?);
                return Some(Line::Other);
            }
            b"open" => {
                if self.open.len() < FILES_MAX {
                    self.open.insert(file.to_vec());
                }
                return Some(Line::Other);
            }
            b"close" => {
                self.open.remove(file);
                return Some(Line::Other);
            }
            b"add" | b"sync_file_range" => return Some(Line::Other),
            _ => return None,
        };
        if op == Op::Flush {
            return Some(Line::Request(TraceRequest { device: names.device(file), ..plain(self.now, op, 0, 0) }));
        }
        let (offset, length) = (number(words.next()?)?, number(words.next()?)?);
        let (sector, nr_sectors) = sectors_of_bytes(offset, length)?;
        if words.next().is_some() {
            return None;
        }
        Some(Line::Request(TraceRequest { device: names.device(file), ..plain(self.now, op, sector, nr_sectors) }))
    }
}

impl LineFormat for Fio {
    const EXPECTED: &'static str = "lines \"file action\" or \"file action offset length\". In version 3, each line \
         begins with a time in µs. Actions are add, open, close, read, write, trim, sync, datasync and \
         sync_file_range; version 2 also has wait";

    fn parse(&mut self, line: &[u8], names: &mut Names) -> Line {
        if version_of(line).is_some() {
            return Line::Other;
        }
        self.line(line, names).unwrap_or(Line::Bad)
    }

    fn unclosed(&self) -> u64 {
        self.open.len() as u64
    }
}

fn version_of(line: &[u8]) -> Option<Version> {
    [Version::Two, Version::Three].into_iter().find(|version| line.trim_ascii() == version.heading().as_bytes())
}

/// Returns the version, if `head` is the start of a log.
pub(crate) fn sniff(head: &[u8]) -> Option<Version> {
    version_of(head.split(|&b| b == b'\n').find(|line| !line.trim_ascii().is_empty() && !is_comment(line))?)
}

/// Writes logs of either version.
pub(crate) struct FioWriter {
    version: Version,
    files: BTreeSet<String>,
    last_us: u64,
}

impl FioWriter {
    pub(crate) fn new(version: Version) -> Self {
        Self { version, files: BTreeSet::new(), last_us: 0 }
    }

    fn line(&self, out: &mut dyn Write, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        match self.version {
            Version::Two => writeln!(out, "{line}"),
            Version::Three => writeln!(out, "{} {line}", self.last_us),
        }
    }
}

impl RecordFormat for FioWriter {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "{}", self.version.heading())
    }

    /// Writes a request. If the request comes from a log of fio, the name of its file is kept.
    /// Otherwise the name contains the device's number. fio's option `replay_redirect` can replace
    /// the names.
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, labels: Labels<'_>) -> io::Result<()> {
        self.last_us = request.arrival.as_ns() / MICROSECOND_NS;
        let file = file_name(request.device, labels.device);
        if !self.files.contains(&file) && self.files.len() < FILES_MAX {
            self.line(out, format_args!("{file} add"))?;
            self.line(out, format_args!("{file} open"))?;
            self.files.insert(file.clone());
        }
        let (offset, length) = bytes_of(request);
        match request.op {
            Op::Read => self.line(out, format_args!("{file} read {offset} {length}")),
            Op::Write | Op::WriteZeroes => self.line(out, format_args!("{file} write {offset} {length}")),
            Op::Discard => self.line(out, format_args!("{file} trim {offset} {length}")),
            Op::Flush => self.line(out, format_args!("{file} sync 0 0")),
        }
    }

    fn end(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.files.iter().try_for_each(|file| self.line(out, format_args!("{file} close")))
    }
}

/// Returns the name of a file. fio accepts names below 256 bytes and without blanks.
fn file_name(device: Option<u32>, name: Option<&str>) -> String {
    let fits = |name: &&str| !name.is_empty() && name.len() < 256 && name.bytes().all(|b| b.is_ascii_graphic());
    match (name.filter(fits), device) {
        (Some(name), _) => name.to_owned(),
        (None, Some(device)) => format!("device-{device}"),
        (None, None) => "device".to_owned(),
    }
}
