//! What every back end is, and what a disk needs to know of it.

use std::ops::Range;
use std::path::PathBuf;

use iosched::{SECTOR_BYTES, Time};
use iosched_system::{self as system, Segment};

use crate::Errno;
use crate::disk::{Command, Measure};
use crate::ring::Submissions;

/// What a live disk needs to know of its back end.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendCard {
    /// What it is, for people.
    pub about: String,
    /// What any device has. Its depth is how many commands it takes at once if nothing else is asked for.
    pub device: iosched_disk::Card,
    /// What it reads and writes at least, in bytes: a power of two from 512 on. The size is a multiple of it.
    pub block_bytes: u32,
    /// Commands it takes at once at most.
    pub depth_max: u32,
    /// Whether what is trimmed reads as zeroes.
    pub trim_zeroes: bool,
    /// Whether zeroes, if they may become a hole, are written faster than data.
    pub fast_zeroes: bool,
}

impl BackendCard {
    /// Size in bytes when it was opened.
    #[must_use]
    pub const fn capacity_bytes(&self) -> u64 {
        self.device.capacity_sectors * SECTOR_BYTES
    }
}

/// Part of a disk that is data throughout, or a hole throughout.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Bytes.
    pub length: u64,
    /// It takes no room, and reads as zeroes.
    pub is_hole: bool,
}

/// A command is complete: its number and its result.
pub(crate) type Completion = (u32, Result<(), Errno>);

/// What keeps the data.
pub(crate) trait Backend: Send {
    /// What it is.
    fn card(&self) -> &BackendCard;

    /// Begins a command. `segments` are its data in order: whoever takes them away drops them before the command is
    /// complete. If that is at once, it is put into `done`.
    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    );

    /// The ring has completed what was submitted for the command `id`, with `result` as a system call has it, and hands
    /// back its memory.
    fn completed(
        &mut self,
        _now: Time,
        _id: u32,
        _result: i32,
        _memory: system::Memory,
        _ring: &mut Submissions<'_>,
        _done: &mut Vec<Completion>,
    ) {
    }

    /// When [`Backend::advance`] has something to do.
    fn next_event(&self) -> Option<Time> {
        None
    }

    /// How large it is now can be asked so, if it may grow.
    fn measure(&self) -> Option<Measure> {
        None
    }

    /// The file that the data was found by, if that name is no longer its: it was deleted, or another file has taken
    /// its place.
    fn gone(&self) -> Option<PathBuf> {
        None
    }

    /// The data or the hole that begins at `bytes.start`, as far as `bytes` go, which are within the disk and at least
    /// one. What the back end does not know is data.
    fn extent(&self, bytes: Range<u64>) -> Extent {
        Extent { length: bytes.end - bytes.start, is_hole: false }
    }

    /// Does what is due at `now`.
    fn advance(&mut self, _now: Time, _ring: &mut Submissions<'_>, _done: &mut Vec<Completion>) {}
}
