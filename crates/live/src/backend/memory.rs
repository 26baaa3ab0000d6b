//! A disk in memory, gone with the process. Pages that nothing was written to take no memory.

use std::io;

use iosched::{Op, Time};
use memmap2::{Advice, MmapMut, MmapOptions, UncheckedAdvice};

use super::{Backend, Card, Completion};
use crate::Errno;
use crate::buffer::Segment;
use crate::disk::Command;
use crate::ring::Submissions;

/// What is trimmed or zeroed page by page rather than byte by byte is at least so long.
const PAGE: usize = 4096;

/// The bytes.
pub(super) struct Bytes(MmapMut);

impl Bytes {
    pub(super) fn new(length: u64) -> io::Result<Self> {
        let length = usize::try_from(length).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let map = MmapOptions::new().len(length).no_reserve_swap().map_anon()?;
        Ok(Self(map))
    }

    /// Faster to read and write, and slower to touch first: the kernel may make room for a huge page for milliseconds.
    fn prefer_huge_pages(&self) {
        // Where they are not to be had it is as well.
        let _ = self.0.advise(Advice::HugePage);
    }

    /// Does what `command` says to the bytes.
    pub(super) fn execute(&mut self, command: &Command, segments: &[Segment]) -> Result<(), Errno> {
        let (from, to) = (command.offset as usize, (command.offset + command.length) as usize);
        let bytes = self.0.get_mut(from..to).ok_or(Errno::EIO)?;
        match command.op {
            Op::Read => {
                let mut bytes = &*bytes;
                for mut segment in segments.iter().copied() {
                    let (this, rest) = bytes.split_at_checked(segment.length).ok_or(Errno::EIO)?;
                    segment.bytes_mut().copy_from_slice(this);
                    bytes = rest;
                }
            }
            Op::Write => {
                let mut bytes = bytes;
                for segment in segments {
                    let (this, rest) = bytes.split_at_mut_checked(segment.length).ok_or(Errno::EIO)?;
                    this.copy_from_slice(segment.bytes());
                    bytes = rest;
                }
            }
            Op::WriteZeroes if command.no_hole => bytes.fill(0),
            Op::Discard | Op::WriteZeroes => self.zero(from, to),
            Op::Flush => {}
        }
        Ok(())
    }

    #[allow(unsafe_code)]
    fn zero(&mut self, from: usize, to: usize) {
        let (first, last) = (from.next_multiple_of(PAGE), to / PAGE * PAGE);
        // SAFETY: the map is private and anonymous, borrowed mutably, and the range lies in it: the pages read as zeroes afterwards.
        let dropped = first < last
            && unsafe { self.0.unchecked_advise_range(UncheckedAdvice::DontNeed, first, last - first) }.is_ok();
        if dropped {
            self.0[from..first].fill(0);
            self.0[last..to].fill(0);
        } else {
            self.0[from..to].fill(0);
        }
    }
}

/// A back end in memory.
pub struct Memory {
    card: Card,
    bytes: Bytes,
}

impl Memory {
    /// Commands at once: each is done in no time.
    const DEPTH: u32 = 128;

    /// A disk of that size, all zeroes.
    ///
    /// # Errors
    /// If there is no room for it in the address space.
    pub fn new(capacity_bytes: u64) -> io::Result<Self> {
        let card = Card {
            about: "memory".to_owned(),
            capacity_bytes,
            block_bytes: 512,
            depth: Self::DEPTH,
            depth_max: 4096,
            rotational: false,
            write_cache: false,
            fua: false,
            trim_zeroes: true,
            fast_zeroes: true,
            max_hw_sectors_kb: 4096,
        };
        let bytes = Bytes::new(capacity_bytes)?;
        bytes.prefer_huge_pages();
        Ok(Self { card, bytes })
    }
}

impl Backend for Memory {
    fn card(&self) -> &Card {
        &self.card
    }

    fn start(
        &mut self,
        _now: Time,
        command: &Command,
        segments: &[Segment],
        _ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    ) {
        done.push((command.id, self.bytes.execute(command, segments)));
    }
}
