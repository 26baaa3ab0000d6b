//! The journal of a file system: transactions of metadata blocks. Either all changes of a
//! transaction survive a crash, or none of them. The *place* of a block is its position outside the
//! log.
//!
//! The model follows the descriptions of ext3's journal (Tweedie, "Journaling the Linux ext2fs
//! Filesystem", 1998; Prabhakaran et al., "Analysis and Evolution of Journaling File Systems",
//! USENIX 2005; Documentation/filesystems/ext4/journal). A [`Journal`] is a state machine. It has
//! no time and does no I/O. It decides which transaction a change joins, and which operations must
//! wait, with the reason. It also decides in which order blocks are written to the log, and when
//! space in the log becomes free. The caller waits, writes, flushes, and stores the blocks in
//! memory.
//!
//! # The order of calls
//!
//! A task that changes metadata calls:
//!
//! 1. [`start`](Journal::start) with the number of blocks that it may change;
//!    the task may have to wait
//! 2. [`dirty`](Journal::dirty) for each block that it changes, [`forget`](Journal::forget) for
//!    each block that it frees, and [`order`](Journal::order) for a file that got blocks
//! 3. [`stop`](Journal::stop)
//! 4. if its changes must be durable, [`request_commit`](Journal::request_commit); the task then
//!    waits until [`is_committed`](Journal::is_committed) returns true
//!
//! The journal's thread commits when [`wants_commit`](Journal::wants_commit) is true, or
//! when the running transaction is older than the commit interval of the file system. It calls
//! [`begin_commit`](Journal::begin_commit), then [`next_step`](Journal::next_step) repeatedly,
//! each time after the previous step is done.
//!
//! Only a task that must wait for [space in the log](Wait::Space) calls
//! [`checkpoint`](Journal::checkpoint) and carries out the returned action. If any task writes a
//! block to its place, the caller reports the write with [`written`](Journal::written).

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

/// Number of blocks of the log that always stay free.
const RESERVED_BLOCKS: u64 = 32;

/// Number of a transaction. Numbers are consecutive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u64);

/// Part of a transaction that belongs to one operation, from [`Journal::start`] to
/// [`Journal::stop`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a handle holds up the commit until it is stopped"]
pub struct Handle {
    tid: Tid,
    credits: u32,
}

impl Handle {
    /// Returns the transaction of the handle.
    #[must_use]
    pub const fn tid(&self) -> Tid {
        self.tid
    }
}

/// Result of starting an operation.
#[derive(Debug, PartialEq, Eq)]
pub enum Start {
    /// The operation begins.
    Started(Handle),
    /// The operation must wait and start again later.
    Wait(Wait),
}

/// Reason why an operation waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// This transaction is the next one to be committed, and accepts no more operations. The next
    /// transaction begins when all open handles of this transaction are stopped.
    /// [`next_step`](Journal::next_step) then returns another step than
    /// [`CommitStep::WaitHandles`].
    Locked(Tid),
    /// The running transaction has no room for the requested blocks, so the journal requests its
    /// commit. The wait ends in the same way as for [`Wait::Locked`]. The commit may first have to
    /// wait for the preceding commit.
    Full(Tid),
    /// The log has no room. Call [`checkpoint`](Journal::checkpoint).
    Space,
}

/// Result of changing a metadata block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dirtied {
    /// The block joined the running transaction. It must not be written to its
    /// place until the transaction is committed.
    Joined,
    /// The block was already in the transaction.
    Already,
    /// The block joined the running transaction. The committing transaction
    /// continues with a copy of the old contents.
    Copied,
}

/// Settings of a journal, derived from the settings of its file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalConfig {
    /// Whether commits and tail updates include cache flushes.
    pub barrier: bool,
    /// Mode that determines when file data is written.
    pub data: DataMode,
    /// Length of the entry for one block in a descriptor block, bytes. The length is 8 with jbd,
    /// and also with jbd2 if there are no checksums and at most 2^32 blocks. Otherwise the length
    /// is 12 or 16.
    pub tag_bytes: u32,
}

impl JournalConfig {
    /// Returns the settings for a file system with these options.
    #[must_use]
    pub fn new(config: &FsConfig) -> Self {
        Self { barrier: config.barrier(), data: config.data, tag_bytes: 8 }
    }
}

/// Journal of a file system, as jbd and jbd2 implement it.
#[derive(Debug)]
pub struct Journal {
    config: JournalConfig,
    log: Log,
    /// Maximum number of blocks that a transaction may change: a quarter of the log.
    transaction_max: u32,
    next_tid: Tid,
    running: Option<Transaction>,
    committing: Option<Transaction>,
    phase: Phase,
    buffers: BTreeMap<Block, Buffer>,
    /// Committed transactions whose blocks the log still holds. The oldest comes first, and the
    /// numbers are consecutive.
    committed: VecDeque<Committed>,
}

impl Journal {
    /// Creates a journal with an empty log in the blocks of `log`. The first
    /// block is the journal's superblock.
    ///
    /// # Panics
    /// If the log has fewer than 256 blocks (mke2fs creates at least 1024), or `tag_bytes` is not
    /// from 8 to 16.
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

    /// Begins an operation that changes at most `credits` blocks
    /// ([`Effects::credits`](crate::fs::Effects::credits)).
    ///
    /// # Panics
    /// If `credits` is above a quarter of the log. The caller must split such an operation into
    /// smaller operations.
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

    /// Lets an operation change `credits` more blocks, if its transaction has room. If the result
    /// is false, the caller must stop the operation and start it again.
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

    /// Records that an operation changes a block. The operation may change more blocks than its
    /// credits, but no space is reserved for the additional blocks.
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

    /// Records that an operation frees a metadata block. Nobody may write the contents of the block
    /// from memory any more. After a crash, recovery does not restore older changes of the block.
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

    /// Adds a file that got blocks in this operation. In ordered mode, the commit writes the data
    /// of this file before it writes the log.
    pub fn order(&mut self, handle: &mut Handle, ino: Ino) {
        if self.config.data == DataMode::Ordered {
            self.running_of(handle).order(ino);
        }
    }

    /// Removes a file from the list of files whose data a commit waits for. The caller removes the
    /// file itself.
    pub fn forget_order(&mut self, ino: Ino) {
        for transaction in [&mut self.running, &mut self.committing].into_iter().flatten() {
            transaction.forget_order(ino);
        }
    }

    /// Ends an operation. `sync` means that the task waits for the commit, so the writes to the log
    /// are sync I/O. Returns the transaction to wait for.
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

    /// Requests the commit of a transaction. `sync` means that a task waits for the commit. Returns
    /// false if the transaction is already committed.
    pub fn request_commit(&mut self, tid: Tid, sync: bool) -> bool {
        if let Some(running) = self.running.as_mut().filter(|running| running.tid == tid) {
            running.wanted = true;
            running.sync |= sync;
            return true;
        }
        self.committing.as_ref().is_some_and(|committing| committing.tid == tid)
    }

    /// Returns whether a transaction is committed, so that its changes survive a crash.
    ///
    /// # Panics
    /// If no transaction with this number has begun yet.
    #[must_use]
    pub fn is_committed(&self, tid: Tid) -> bool {
        assert!(tid < self.next_tid, "{tid:?} is not yet");
        let open = |transaction: &Option<Transaction>| transaction.as_ref().is_some_and(|open| open.tid == tid);
        !open(&self.running) && !open(&self.committing)
    }

    /// Returns the transaction that accepts changes, or that will be committed next.
    #[must_use]
    pub fn running(&self) -> Option<Tid> {
        self.running.as_ref().map(|running| running.tid)
    }

    /// Returns the transaction that is being written to the log.
    #[must_use]
    pub fn committing(&self) -> Option<Tid> {
        self.committing.as_ref().map(|committing| committing.tid)
    }

    /// Returns whether the commit of a transaction will still flush the device's cache. If so, all
    /// data that is now in the device's cache will be on the medium when the commit is done.
    #[must_use]
    pub fn will_flush(&self, tid: Tid) -> bool {
        let recorded = self.phase == Phase::Record && self.committing() == Some(tid);
        self.config.barrier && !recorded && !self.is_committed(tid)
    }

    /// Returns whether a commit is requested and can begin now.
    #[must_use]
    pub fn wants_commit(&self) -> bool {
        self.phase == Phase::Idle && self.running.as_ref().is_some_and(|running| running.wanted)
    }

    /// Returns whether a block may be written to its place, because no
    /// uncommitted transaction has changed it.
    #[must_use]
    pub fn is_writable(&self, block: Block) -> bool {
        self.buffers.get(&block).is_none_or(Buffer::is_writable)
    }

    /// Returns the number of free blocks that transactions can use. [`RESERVED_BLOCKS`] must stay
    /// free, and an eighth of the rest is for descriptors and revocations.
    const fn space_left(&self) -> u64 {
        let left = self.log.free().saturating_sub(RESERVED_BLOCKS);
        left - left / 8
    }

    /// Returns the space that the log must have before an operation may begin, blocks. This is room
    /// for the longest transaction, and for the committing transaction until it is in the log.
    fn space_needed(&self) -> u64 {
        let committing = self.committing.as_ref().filter(|_| !self.phase.is_in_log());
        u64::from(self.transaction_max) + committing.map_or(0, |committing| u64::from(committing.outstanding()))
    }

    fn running_of(&mut self, handle: &Handle) -> &mut Transaction {
        let running = self.running.as_mut().filter(|running| running.tid == handle.tid);
        running.expect("a transaction with open handles is running")
    }
}
