//! The journal of a file system: transactions of metadata blocks that reach the medium whole or not at all.
//!
//! Written after the descriptions of ext3's journal (Tweedie, "Journaling the Linux ext2fs Filesystem", 1998;
//! Prabhakaran et al., "Analysis and Evolution of Journaling File Systems", USENIX 2005;
//! Documentation/filesystems/ext4/journal). A [`Journal`] is a state machine: it knows no time and does no I/O. What it
//! decides is which transaction a change joins, who has to wait and for what, which blocks of the log are written in
//! which order, and when room in the log is free again. Waiting, writing, flushing and what is in memory is the
//! caller's.
//!
//! # The calls, in the order a host makes them
//!
//! A task that changes metadata: [`start`](Journal::start) with the number of blocks it may change, or it waits;
//! [`dirty`](Journal::dirty) for each block it changes, [`forget`](Journal::forget) for each it frees,
//! [`order`](Journal::order) for a file that got blocks; [`stop`](Journal::stop). Who must be sure calls
//! [`request_commit`](Journal::request_commit) and waits until [`is_committed`](Journal::is_committed).
//!
//! The journal's thread: when [`wants_commit`](Journal::wants_commit), or the running transaction is as old as
//! [`needs_commit`](Journal::needs_commit) says, [`begin_commit`](Journal::begin_commit), then
//! [`next_step`](Journal::next_step) again and again, each time what the step before asked for is done.
//!
//! Whoever is told to wait for [room in the log](Wait::Space), and nobody else, calls
//! [`checkpoint`](Journal::checkpoint) and does what it says. Every write of a block to its place is told with
//! [`written`](Journal::written), whoever made it.

mod buffer;
mod check;
mod checkpoint;
mod commit;
mod log;
#[cfg(test)]
mod tests;
mod transaction;

use std::collections::{BTreeMap, VecDeque};

pub use checkpoint::{Checkpoint, TailUpdate};
pub use commit::CommitStep;

use crate::fs::{Block, BlockRun, DataMode, FsConfig, Ino};
use buffer::{Buffer, Part};
use checkpoint::Committed;
use commit::Phase;
use log::Log;
use transaction::Transaction;

/// Blocks of the log that are kept free in any case.
const RESERVED_BLOCKS: u64 = 32;

/// Number of a transaction; one follows the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u64);

/// Part of a transaction that one operation makes; from [`Journal::start`] to [`Journal::stop`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a handle holds up the commit until it is stopped"]
pub struct Handle {
    tid: Tid,
    credits: u32,
}

impl Handle {
    /// The transaction it is part of.
    #[must_use]
    pub const fn tid(&self) -> Tid {
        self.tid
    }
}

/// Whether an operation may begin.
#[derive(Debug, PartialEq, Eq)]
pub enum Start {
    /// It may.
    Started(Handle),
    /// It has to ask again later.
    Wait(Wait),
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The transaction about to be committed takes no more, and the next begins when its open handles are stopped: when
    /// [`next_step`](Journal::next_step) gives something else than [`CommitStep::WaitHandles`].
    Locked(Tid),
    /// The running transaction has no room for so many blocks; its commit is wanted now. As for `Locked`, but the
    /// commit may have to wait for the one before.
    Full(Tid),
    /// The log has no room: [`checkpoint`](Journal::checkpoint).
    Space,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dirtied {
    /// The block joined the running transaction: it must not be written to its place until that is committed.
    Joined,
    /// It was in it already.
    Already,
    /// It joined the running transaction, and the committing one goes on with a copy of what the block was.
    Copied,
}

/// How a journal works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Age of a running transaction at which it is committed, ms.
    pub commit_interval_ms: u64,
    /// Commits and tail updates go with cache flushes.
    pub barrier: bool,
    /// What is guaranteed of data.
    pub data: DataMode,
    /// Bytes that a descriptor block spends for each block it describes: 8 with jbd, and with jbd2 below 2^32 blocks;
    /// 12 or 16 with jbd2 beyond or with checksums.
    pub tag_bytes: u32,
}

impl JournalConfig {
    /// As a file system of these settings has it.
    #[must_use]
    pub fn new(config: &FsConfig) -> Self {
        Self {
            commit_interval_ms: u64::from(config.commit_interval_s) * 1000,
            barrier: config.barrier(),
            data: config.data,
            tag_bytes: 8,
        }
    }
}

/// A journal.
#[derive(Debug)]
pub struct Journal {
    config: JournalConfig,
    log: Log,
    /// Blocks that a transaction may change at most: a quarter of the log.
    transaction_max: u32,
    next_tid: Tid,
    running: Option<Transaction>,
    committing: Option<Transaction>,
    phase: Phase,
    buffers: BTreeMap<Block, Buffer>,
    /// Committed transactions that the log still holds, oldest first, without gaps in their numbers.
    committed: VecDeque<Committed>,
}

impl Journal {
    /// A journal on an empty log that lies in `log`; its first block is the journal's superblock.
    ///
    /// # Panics
    /// The log has fewer than 256 blocks (mke2fs makes none below 1024), or `tag_bytes` is not from 8 to 16.
    #[must_use]
    pub fn new(config: &JournalConfig, log: &[BlockRun]) -> Self {
        assert!((8..=16).contains(&config.tag_bytes), "tag_bytes must be from 8 to 16");
        let log = Log::new(log);
        assert!(log.blocks() >= 255, "a log of {} blocks is too short", log.blocks());
        Self {
            config: config.clone(),
            transaction_max: u32::try_from((log.blocks() + 1) / 4).unwrap_or(u32::MAX),
            log,
            next_tid: Tid(1),
            running: None,
            committing: None,
            phase: Phase::Idle,
            buffers: BTreeMap::new(),
            committed: VecDeque::new(),
        }
    }

    /// Blocks that one transaction, and so one handle, may change at most: a quarter of the log.
    #[must_use]
    pub const fn credits_max(&self) -> u32 {
        self.transaction_max
    }

    /// Begins an operation that changes at most `credits` blocks ([`Effects::credits`](crate::fs::Effects::credits)).
    ///
    /// # Panics
    /// `credits` is above [`credits_max`](Self::credits_max): such an operation has to go in several steps.
    pub fn start(&mut self, credits: u32) -> Start {
        assert!(credits <= self.transaction_max, "{credits} blocks are more than a transaction may change");
        if let Some(running) = &mut self.running {
            if running.locked {
                return Start::Wait(Wait::Locked(running.tid));
            }
            if running.outstanding() + credits > self.transaction_max {
                running.wanted = true;
                return Start::Wait(Wait::Full(running.tid));
            }
        }
        if self.space_left() < self.space_needed() {
            return Start::Wait(Wait::Space);
        }
        let next_tid = &mut self.next_tid;
        let running = self.running.get_or_insert_with(|| {
            let tid = *next_tid;
            next_tid.0 += 1;
            Transaction::new(tid)
        });
        running.handles += 1;
        running.credits += credits;
        Start::Started(Handle { tid: running.tid, credits })
    }

    /// Lets an operation change `credits` more blocks, if its transaction has room. If not, the operation has to stop
    /// and start again.
    #[must_use]
    pub fn extend(&mut self, handle: &mut Handle, credits: u32) -> bool {
        let transaction_max = self.transaction_max;
        let running = self.running_of(handle);
        let room = !running.locked && running.outstanding() + credits <= transaction_max;
        if room {
            running.credits += credits;
            handle.credits += credits;
        }
        room
    }

    /// An operation changes a block. Beyond the credits it was started with it is counted too, but nothing was kept
    /// free for it.
    pub fn dirty(&mut self, handle: &mut Handle, block: Block) -> Dirtied {
        let buffer = self.buffers.entry(block).or_default();
        let (was, committing) = (buffer.running, buffer.committing);
        buffer.running = Part::Dirty;
        let running = self.running_of(handle);
        match was {
            Part::Dirty => return Dirtied::Already,
            Part::Forgotten => {
                running.revoked.remove(&block);
            }
            Part::None => running.blocks.push(block),
        }
        running.dirty += 1;
        if handle.credits > 0 {
            handle.credits -= 1;
            running.credits -= 1;
        }
        if committing == Part::Dirty { Dirtied::Copied } else { Dirtied::Joined }
    }

    /// An operation frees a metadata block: what is in memory of it must not be written any more. No older change of it
    /// is brought back after a crash.
    pub fn forget(&mut self, handle: &mut Handle, block: Block) {
        let buffer = self.buffers.entry(block).or_default();
        let was = std::mem::replace(&mut buffer.running, Part::Forgotten);
        let running = self.running_of(handle);
        match was {
            Part::Forgotten => return,
            Part::Dirty => running.dirty -= 1,
            Part::None => running.blocks.push(block),
        }
        running.revoked.insert(block);
    }

    /// The data of a file that got blocks in this operation goes to the medium before the commit, in ordered mode.
    pub fn order(&mut self, handle: &mut Handle, ino: Ino) {
        if self.config.data == DataMode::Ordered {
            self.running_of(handle).order(ino);
        }
    }

    /// A file is removed: nobody waits for its data any more.
    pub fn forget_order(&mut self, ino: Ino) {
        for transaction in [&mut self.running, &mut self.committing].into_iter().flatten() {
            transaction.forget_order(ino);
        }
    }

    /// An operation is done. `sync`: its task will wait for the commit, so its log is written as sync I/O. Gives the
    /// transaction to wait for.
    pub fn stop(&mut self, mut handle: Handle, sync: bool) -> Tid {
        let credits = std::mem::take(&mut handle.credits);
        let transaction_max = self.transaction_max;
        let running = self.running_of(&handle);
        running.handles -= 1;
        running.credits -= credits;
        running.sync |= sync;
        running.wanted |= running.outstanding() > transaction_max;
        handle.tid
    }

    /// Wants a transaction committed. `sync`: a task waits for it. False: it is committed already.
    pub fn request_commit(&mut self, tid: Tid, sync: bool) -> bool {
        if let Some(running) = self.running.as_mut().filter(|running| running.tid == tid) {
            running.wanted = true;
            running.sync |= sync;
            return true;
        }
        self.committing.as_ref().is_some_and(|committing| committing.tid == tid)
    }

    /// Whether a transaction is committed: what it changed survives a crash.
    ///
    /// # Panics
    /// There was no such transaction yet.
    #[must_use]
    pub fn is_committed(&self, tid: Tid) -> bool {
        assert!(tid < self.next_tid, "{tid:?} is not yet");
        let open = |transaction: &Option<Transaction>| transaction.as_ref().is_some_and(|open| open.tid == tid);
        !open(&self.running) && !open(&self.committing)
    }

    /// The transaction that takes changes, or will be committed next.
    #[must_use]
    pub fn running(&self) -> Option<Tid> {
        self.running.as_ref().map(|running| running.tid)
    }

    /// The transaction on its way to the log.
    #[must_use]
    pub fn committing(&self) -> Option<Tid> {
        self.committing.as_ref().map(|committing| committing.tid)
    }

    /// Whether the commit of a transaction will flush the device's cache from now on: what is in there now will be on
    /// the medium when it is done.
    #[must_use]
    pub fn will_flush(&self, tid: Tid) -> bool {
        let recorded = self.phase == Phase::Record && self.committing() == Some(tid);
        self.config.barrier && !recorded && !self.is_committed(tid)
    }

    /// Whether somebody wants a commit that can begin now.
    #[must_use]
    pub fn wants_commit(&self) -> bool {
        self.phase == Phase::Idle && self.running.as_ref().is_some_and(|running| running.wanted)
    }

    /// Whether a running transaction that began `age_ms` ago is old enough to be committed.
    #[must_use]
    pub fn needs_commit(&self, age_ms: u64) -> bool {
        self.running.is_some() && age_ms >= self.config.commit_interval_ms
    }

    /// Whether a block's contents may be written to their place: no transaction that is not committed has changed it.
    #[must_use]
    pub fn is_writable(&self, block: Block) -> bool {
        self.buffers.get(&block).is_none_or(Buffer::is_writable)
    }

    /// Free blocks of the log.
    #[must_use]
    pub const fn free_log_blocks(&self) -> u64 {
        self.log.free()
    }

    /// What may be used of the free blocks: some are kept, and an eighth goes to descriptors and revocations.
    const fn space_left(&self) -> u64 {
        let left = self.log.free().saturating_sub(RESERVED_BLOCKS);
        left - left / 8
    }

    /// What has to be there for an operation to begin: room for the longest transaction, and for the committing one as
    /// long as it is not in the log.
    fn space_needed(&self) -> u64 {
        let committing = self.committing.as_ref().filter(|_| !self.phase.is_in_log());
        u64::from(self.transaction_max) + committing.map_or(0, |committing| u64::from(committing.outstanding()))
    }

    fn running_of(&mut self, handle: &Handle) -> &mut Transaction {
        let running = self.running.as_mut().filter(|running| running.tid == handle.tid);
        running.expect("a transaction with open handles is running")
    }
}
