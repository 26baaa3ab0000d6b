//! A task of the kernel: a stack of what it is in the middle of, and what it waits for.

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

/// Something a task is in the middle of. What it needs done first stands above it on the task's stack.
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
    /// A file or directory is removed.
    Remove {
        node: Node,
        directory: bool,
    },
    /// A file loses its contents.
    Truncate(Node),
    Throttle(Throttle),
    Writeback(Writeback),
    Checkpoint(Checkpoint),
    /// CPU time, ns.
    Compute(u64),
    /// The journal thread's loop.
    Commit(Commit),
    /// The loop of the thread that converts extents.
    Convert(Convert),
    /// The writeback thread's loop.
    Flusher(Flusher),
}

/// What a frame gives back when it was run for a moment.
#[derive(Debug)]
pub(super) enum Action {
    /// It goes on when this much CPU time is spent, ns.
    Cpu(u64),
    /// It goes on when the bios it has put out are with the request queue.
    Submit,
    /// It goes on when this has come about.
    Block(Wait),
    /// It goes on when this was done.
    Push(Frame),
    /// It is done but for this.
    Become(Frame),
    /// It is done.
    Pop,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// A page that is being read.
    Page(Mapping, u64),
    /// Pages of a file that are under writeback.
    Written(Mapping),
    /// Blocks of a file that are on their way into a transaction.
    Allocated(Mapping),
    /// All pages of a disk that are under writeback.
    AllWritten(usize),
    /// The I/Os of its own that nobody else waits for.
    OwnIo,
    /// The journal of a disk is in another state.
    Journal(usize),
    /// A commit of the journal of a disk.
    Committed(usize, Tid),
    /// The queue of a disk is not congested any more, or a moment, ns.
    Congestion(usize, u64),
    /// The moment, ns.
    Until(u64),
    /// Work, or the moment, ns: of kernel threads.
    Work(u64),
}

/// A file that a task has open.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) node: Node,
    pub(super) flags: OpenFlags,
    pub(super) readahead: Readahead,
    /// What the last call moved, offset and length: the CPU may have that in its cache.
    pub(super) last: (u64, u64),
}

/// One task.
#[derive(Debug, Default)]
pub(super) struct Task {
    /// Whose nodes it names.
    pub(super) namespace: usize,
    pub(super) stack: Vec<Frame>,
    /// Bios that the request queue is to be given, in order.
    pub(super) outbox: VecDeque<Io>,
    /// I/Os that only this task waits for.
    pub(super) own_ios: u32,
    pub(super) waits: Option<Wait>,
    /// CPU time that was used and has not passed, ns.
    pub(super) debt_ns: u64,
    pub(super) open: Vec<Open>,
    /// Which of them it used last.
    pub(super) used: usize,
    /// Of the operation under way.
    pub(super) effects: Effects,
    /// Pages dirtied since it was last held up to the limits.
    pub(super) dirtied_pages: u64,
    /// How its dirtying is paced.
    pub(super) pacing: super::throttle::Pacing,
    /// What its last pass of writeback came to.
    pub(super) written: super::writeback::Outcome,
}
