//! The trait that all back ends implement, and the properties of a back end that a disk needs.

use std::ops::Range;
use std::path::PathBuf;

use iosched::{SECTOR_BYTES, Time};
use iosched_system::{self as system, Segment};

use crate::Errno;
use crate::disk::{Command, Measure};
use crate::ring::Submissions;

/// Properties of a back end that a served disk needs.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendCard {
    /// Description for the user.
    pub about: String,
    /// Properties that all devices have. The depth is the default queue depth.
    pub device: iosched_disk::Card,
    /// Block size in bytes: the smallest unit of reads and writes. It is a power of two, at least
    /// 512. The size of the disk is a multiple of the block size.
    pub block_bytes: u32,
    /// Maximum number of commands at the same time.
    pub depth_max: u32,
    /// Whether trimmed ranges read as zeroes.
    pub trim_zeroes: bool,
    /// Whether the back end writes zeroes faster than data, if the zeroes may become a hole.
    pub fast_zeroes: bool,
}

impl BackendCard {
    /// Returns the size in bytes at the time when the back end was opened.
    #[must_use]
    pub const fn capacity_bytes(&self) -> u64 {
        self.device.capacity_sectors * SECTOR_BYTES
    }
}

/// A range of a disk that is completely data or completely a hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Length, bytes.
    pub length: u64,
    /// Whether the range is a hole. A hole occupies no space and reads as zeroes.
    pub is_hole: bool,
}

/// A completed command: its identifier and its result.
pub(crate) type Completion = (u32, Result<(), Errno>);

/// Storage of the data.
pub(crate) trait Backend: Send {
    /// Returns the properties of the back end.
    fn card(&self) -> &BackendCard;

    /// Starts a command. `segments` contains its data in order. A back end that takes the segments
    /// must drop them before the command completes. If the command completes immediately, the back
    /// end adds its completion to `done`.
    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    );

    /// Handles a completion of the ring for the command `id`. `result` is the result of the system
    /// call. `memory` is the memory that the back end submitted with the call.
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

    /// Returns the time at which the caller must call [`Backend::advance`].
    fn next_event(&self) -> Option<Time> {
        None
    }

    /// Returns a function that measures the current size, if the size can grow.
    fn measure(&self) -> Option<Measure> {
        None
    }

    /// Returns the path of the backing file, if somebody has deleted or replaced the file, so that
    /// the path no longer leads to it.
    fn gone(&self) -> Option<PathBuf> {
        None
    }

    /// Returns the data or the hole that begins at `bytes.start`, limited to `bytes`. The range
    /// must be within the disk and must not be empty. A range with an unknown state counts as data.
    fn extent(&self, bytes: Range<u64>) -> Extent {
        Extent { length: bytes.end - bytes.start, is_hole: false }
    }

    /// Processes the events that are due at `now`.
    fn advance(&mut self, _now: Time, _ring: &mut Submissions<'_>, _done: &mut Vec<Completion>) {}
}
