//! A task of the kernel: a stack of frames, and the reason why it waits.

use std::collections::VecDeque;

use iosched_workload::app::{Node, OpenFlags};

use super::commit::{Checkpoint, Commit};
use super::convert::Convert;
use super::direct::{Direct, Discard, Scatter};
use super::flusher::Flusher;
use super::io::Io;
use super::metadata::Metadata;
use super::read::{Read, ReadAhead};
use super::sync::{Fsync, SyncAll};
use super::throttle::Throttle;
use super::write::Write;
use super::writeback::Writeback;
use crate::cache::Mapping;
use crate::fs::Effects;
use crate::journal::Tid;
use crate::readahead::Readahead;

/// An operation in progress. If other work must be done first, the frames of this work are above
/// this frame on the stack.
#[derive(Debug)]
pub(super) enum Frame {
    Read(Read),
    ReadAhead(ReadAhead),
    Write(Write),
    Direct(Direct),
    Scatter(Scatter),
    Discard(Discard),
    Fsync(Fsync),
    SyncAll(SyncAll),
    Metadata(Metadata),
    /// Remove a file or directory.
    Remove {
        node: Node,
        directory: bool,
    },
    /// Truncate a file.
    Truncate(Node),
    Throttle(Throttle),
    Writeback(Writeback),
    Checkpoint(Checkpoint),
    /// Spend CPU time, ns.
    Compute(u64),
    /// The loop of the journal thread.
    Commit(Commit),
    /// The loop of the thread that converts extents.
    Convert(Convert),
    /// The loop of the writeback thread.
    Flusher(Flusher),
}

/// Result of one step of a frame.
#[derive(Debug)]
pub(super) enum Action {
    /// Continue after this CPU time, ns.
    Cpu(u64),
    /// Continue when the request queue has taken the submitted bios.
    Submit,
    /// Continue when this wait ends.
    Block(Wait),
    /// Push a frame, and continue when the pushed frame is done.
    Push(Frame),
    /// Replace the frame by another one.
    Become(Frame),
    /// The frame is done.
    Pop,
}

/// Reason why a task waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A page is being read.
    Page(Mapping, u64),
    /// Pages of a file are under writeback.
    Written(Mapping),
    /// Blocks of a file are joining a transaction.
    Allocated(Mapping),
    /// Pages of a disk are under writeback.
    AllWritten(usize),
    /// I/Os for which only this task waits are in flight.
    OwnIo,
    /// The state of a disk's journal must change.
    Journal(usize),
    /// A transaction of a disk's journal must be committed.
    Committed(usize, Tid),
    /// The queue of a disk is congested. The wait ends at this time at the latest, ns.
    Congestion(usize, u64),
    /// The task sleeps until this time, ns.
    Until(u64),
    /// A kernel thread has no work. The wait ends at this time at the latest, ns.
    Work(u64),
}

/// A file that a task has open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) node: Node,
    pub(super) flags: OpenFlags,
    pub(super) readahead: Readahead,
    /// Offset and length of the last call, bytes. The CPU's cache may contain these bytes.
    pub(super) last: (u64, u64),
}

/// A task.
#[derive(Debug, Default)]
pub(super) struct Task {
    /// Application whose nodes the task uses.
    pub(super) namespace: usize,
    pub(super) stack: Vec<Frame>,
    /// Bios for the request queue, in the order of submission.
    pub(super) outbox: VecDeque<Io>,
    /// Number of I/Os for which only this task waits.
    pub(super) own_ios: u32,
    pub(super) waits: Option<Wait>,
    /// CPU time that the task has used but that has not yet passed on the clock, ns.
    pub(super) debt_ns: u64,
    pub(super) open: Vec<Open>,
    /// Index in `open` of the file that was used last.
    pub(super) used: usize,
    /// Effects of the operation in progress.
    pub(super) effects: Effects,
    /// Number of pages dirtied since the limits were last checked.
    pub(super) dirtied_pages: u64,
    /// Pacing of the task's writes.
    pub(super) pacing: super::throttle::Pacing,
    /// Outcome of the task's last pass of writeback.
    pub(super) written: super::writeback::Outcome,
}
