//! The binary records of VMware's vscsiStats, versions 1 and 2: SCSI commands of one
//! virtual disk, little-endian, with times in microseconds. Version 2 has response times.

use std::io::{self, Write};

use iosched::{MICROSECOND_NS, Op, SECTOR_BYTES, Time};

use crate::error::{TracePlace, WarningKind, Warnings};
use crate::input::Input;
use crate::names::{Labels, Names};
use crate::record::TraceRequest;
use crate::text::{RecordFormat, RequestSource, plain};

/// Bytes of a record of version 1: serial, length, segments, command, version, block, time.
const RECORD_1_BYTES: usize = 32;
/// Bytes of a record of version 2: command, version, serial, length, segments,
/// block, time, response time.
const RECORD_2_BYTES: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

impl Version {
    const fn record_bytes(self) -> usize {
        match self {
            Self::One => RECORD_1_BYTES,
            Self::Two => RECORD_2_BYTES,
        }
    }

    /// Returns whether `record` has this version number and a valid SCSI command for disks.
    fn fits(self, record: &[u8]) -> bool {
        let (version_at, command_at, major) = match self {
            Self::One => (14, 12, 1),
            Self::Two => (2, 0, 2),
        };
        record.len() >= self.record_bytes()
            && u16_at(record, version_at) >> 8 == major
            && u16_at(record, command_at) < 256
    }
}

/// Returns the version if `head` is the start of a file of this format. The first two records must
/// agree.
pub(crate) fn sniff(head: &[u8]) -> Option<Version> {
    [Version::One, Version::Two].into_iter().find(|version| {
        let size = version.record_bytes();
        let two_fit = version.fits(head) && (head.len() < 2 * size || version.fits(&head[size..]));
        two_fit && (head.len() >= 2 * size || head.len().is_multiple_of(size))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at + 4)) << 32 | u64::from(u32_at(bytes, at))
}

/// Reads one file.
pub(crate) struct VscsiReader {
    input: Input,
    version: Version,
}

impl VscsiReader {
    pub(crate) fn new(input: Input, version: Version) -> Self {
        Self { input, version }
    }

    /// Returns a copy of the next record that has the version number of the file.
    fn record(&mut self, warnings: &mut Warnings) -> Option<[u8; RECORD_2_BYTES]> {
        let size = self.version.record_bytes();
        let mut skipped_bytes = 0;
        let mut damage = None;
        loop {
            let available = self.input.peek(size);
            let length = available.len();
            let mut record = [0; RECORD_2_BYTES];
            if length >= size {
                record[..size].copy_from_slice(&available[..size]);
            }
            let fits = self.version.fits(&record);
            if (fits || length < size)
                && let Some(place) = damage.take()
            {
                warnings.push(place, WarningKind::Damaged { skipped_bytes });
            }
            if length < size {
                if length > 0 {
                    if !self.input.has_failed() {
                        let kind = WarningKind::Truncated { have_bytes: length as u64, want_bytes: size as u64 };
                        warnings.push(self.input.place(), kind);
                    }
                    self.input.consume(length);
                }
                self.input.warn_failure(warnings);
                warnings.tally.bytes = self.input.offset_bytes();
                return None;
            }
            if fits {
                return Some(record);
            }
            damage.get_or_insert_with(|| self.input.place());
            self.input.consume(1);
            skipped_bytes += 1;
        }
    }
}

impl RequestSource for VscsiReader {
    fn place(&self) -> TracePlace {
        self.input.place()
    }

    fn next_request(&mut self, warnings: &mut Warnings, _: &mut Names) -> Option<TraceRequest> {
        loop {
            let record = self.record(warnings)?;
            let (command, length, block, time_us, response_us) = match self.version {
                Version::One => {
                    (u16_at(&record, 12), u32_at(&record, 4), u64_at(&record, 16), u64_at(&record, 24), None)
                }
                Version::Two => {
                    let response_us = Some(u64_at(&record, 32));
                    (u16_at(&record, 0), u32_at(&record, 8), u64_at(&record, 16), u64_at(&record, 24), response_us)
                }
            };
            let nr_sectors = u64::from(length).div_ceil(SECTOR_BYTES) as u32;
            let op = match op_of_command(command) {
                None => Err(WarningKind::UnknownCommand { command }),
                Some(op) if op.has_data() && nr_sectors == 0 => Err(WarningKind::NoLength),
                Some(op) => Ok(op),
            };
            let op = op.map_err(|passed_over| warnings.push(self.input.place(), passed_over));
            self.input.consume(self.version.record_bytes());
            let Ok(op) = op else { continue };
            let arrival = Time::from_ns(time_us.saturating_mul(MICROSECOND_NS));
            let (block, nr_sectors) = if op.has_data() { (block, nr_sectors) } else { (0, 0) };
            let latency_ns = response_us.map(|us| us.saturating_mul(MICROSECOND_NS));
            return Some(TraceRequest { latency_ns, ..plain(arrival, op, block, nr_sectors) });
        }
    }
}

/// Returns the operation of a SCSI operation code (SBC): reads and writes of 6,
/// 10, 12 and 16 bytes, write and verify, synchronize cache, unmap, write same.
fn op_of_command(command: u16) -> Option<Op> {
    match command {
        0x08 | 0x28 | 0xa8 | 0x88 => Some(Op::Read),
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0xae | 0x8e => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        0x42 => Some(Op::Discard),
        0x41 | 0x93 => Some(Op::WriteZeroes),
        _ => None,
    }
}

/// Returns the operation code that is written for `op`.
const fn command_of_op(op: Op) -> u16 {
    match op {
        Op::Read => 0x28,
        Op::Write => 0x2a,
        Op::Discard => 0x42,
        Op::WriteZeroes => 0x41,
        Op::Flush => 0x35,
    }
}

/// Writes records of version 1, numbered from 1.
#[derive(Default)]
pub(crate) struct VscsiWriter {
    serial: u32,
}

impl RecordFormat for VscsiWriter {
    fn write(&mut self, out: &mut dyn Write, request: &TraceRequest, _: Labels<'_>) -> io::Result<()> {
        self.serial = self.serial.wrapping_add(1);
        let mut record = [0; RECORD_1_BYTES];
        record[0..4].copy_from_slice(&self.serial.to_le_bytes());
        record[4..8].copy_from_slice(&(request.nr_sectors << 9).to_le_bytes());
        record[8..12].copy_from_slice(&1u32.to_le_bytes());
        record[12..14].copy_from_slice(&command_of_op(request.op).to_le_bytes());
        record[14..16].copy_from_slice(&0x0100u16.to_le_bytes());
        record[16..24].copy_from_slice(&request.sector.to_le_bytes());
        record[24..32].copy_from_slice(&(request.arrival.as_ns() / MICROSECOND_NS).to_le_bytes());
        out.write_all(&record)
    }
}
