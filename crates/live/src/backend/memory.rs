//! A disk in memory, whose data is lost when the process ends. Pages that were never written occupy
//! no memory.

use std::io;
use std::ops::Range;

use iosched::{Op, Time};
use iosched_system::Segment;
use iosched_system::map::ZeroedMap;

use super::contract::{Backend, BackendCard, Completion, Extent};
use super::written::Written;
use crate::Errno;
use crate::disk::Command;
use crate::ring::Submissions;

/// The bytes of a disk, and a map of the written pages.
pub(super) struct Bytes {
    map: ZeroedMap,
    written: Written,
}

impl Bytes {
    pub(super) fn new(length: u64) -> io::Result<Self> {
        Ok(Self { map: ZeroedMap::new(length)?, written: Written::new(length)? })
    }

    /// Returns an extent, as [`Backend::extent`] does.
    pub(super) fn extent(&self, bytes: Range<u64>) -> Extent {
        self.written.extent(bytes)
    }

    /// Executes `command` on the bytes.
    pub(super) fn execute(&mut self, command: &Command, segments: &mut [Segment]) -> Result<(), Errno> {
        let range = command.offset..command.offset + command.length;
        let (from, to) = (range.start as usize, range.end as usize);
        let bytes = self.map.get_mut(from..to).ok_or(Errno::EIO)?;
        match command.op {
            Op::Read => {
                let mut at = from;
                for segment in segments {
                    let place = at..at + segment.len();
                    let this = self.map.get(place.clone()).ok_or(Errno::EIO)?;
                    if !segment.stands_for(|| self.map.view(place.clone())) {
                        segment.copy_from_slice(this);
                    }
                    at = place.end;
                }
            }
            Op::Write => {
                let mut bytes = bytes;
                for segment in segments {
                    let (this, rest) = bytes.split_at_mut_checked(segment.len()).ok_or(Errno::EIO)?;
                    this.copy_from_slice(segment);
                    bytes = rest;
                }
                self.written.write(&range);
            }
            Op::WriteZeroes if command.no_hole => {
                bytes.fill(0);
                self.written.write(&range);
            }
            Op::Discard | Op::WriteZeroes => {
                self.map.zero(from..to);
                self.written.punch(&range);
            }
            Op::Flush => {}
        }
        Ok(())
    }
}

/// A back end in memory.
pub struct Memory {
    card: BackendCard,
    bytes: Bytes,
}

impl Memory {
    /// Default queue depth. Every command completes immediately.
    const DEPTH: u32 = 128;

    /// Creates a disk of this size, filled with zeroes.
    ///
    /// # Errors
    /// The address space has not enough room for the disk.
    pub fn new(capacity_bytes: u64) -> io::Result<Self> {
        let card = BackendCard {
            about: "memory".to_owned(),
            device: iosched_disk::Card {
                capacity_sectors: capacity_bytes / iosched::SECTOR_BYTES,
                depth: Self::DEPTH,
                hw_queues: 1,
                rotational: false,
                write_cache: false,
                fua: false,
                max_hw_sectors_kb: 4096,
            },
            block_bytes: 512,
            depth_max: 4096,
            trim_zeroes: true,
            fast_zeroes: true,
        };
        let bytes = Bytes::new(capacity_bytes)?;
        bytes.map.prefer_huge_pages();
        Ok(Self { card, bytes })
    }
}

impl Backend for Memory {
    fn card(&self) -> &BackendCard {
        &self.card
    }

    fn start(
        &mut self,
        _now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        _ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        done.push((command.id, self.bytes.execute(command, segments)));
    }

    fn extent(&self, bytes: Range<u64>) -> Extent {
        self.bytes.extent(bytes)
    }
}
