//! The commit: the steps that write a transaction to the log.

use super::buffer::Part;
use super::checkpoint::Committed;
use super::{Journal, Tid};
use crate::fs::{Block, BlockRun, Ino};

/// Length of the header of a descriptor or revocation block, bytes.
const HEAD_BYTES: u32 = 16;
/// Length of the identifier after a descriptor block's first tag, bytes.
const UUID_BYTES: u32 = 16;
/// Length of the number of a revoked block, bytes.
const REVOKED_BYTES: u32 = 4;

/// Phase of the commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// No new handles start. The commit waits for open handles.
    Locked,
    /// Data is being written.
    Data,
    /// Descriptors and metadata are being written to the log. The value is the position of the
    /// commit block.
    Log(Block),
    /// The commit block is being written.
    Record,
}

impl Phase {
    pub(super) const fn is_in_log(self) -> bool {
        matches!(self, Self::Log(_) | Self::Record)
    }
}

/// Next step of the journal's thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitStep {
    /// Wait until an open operation stops, then call [`next_step`](Journal::next_step) again.
    WaitHandles,
    /// Write the data of these files for which blocks are allocated, and wait for the writes. From
    /// now on, a new transaction may start.
    WriteData {
        /// Files in the order in which they joined the transaction.
        files: Vec<Ino>,
    },
    /// Write these blocks to the log in parallel, and wait for all of them.
    WriteLog {
        /// Blocks in the order of the log: revocations, then descriptors. The blocks that a
        /// descriptor describes follow this descriptor.
        runs: Vec<BlockRun>,
        /// Whether a task waits for the commit.
        sync: bool,
    },
    /// Write the commit block, and wait for the write.
    WriteCommit {
        /// Position of the commit block.
        block: Block,
        /// Whether the write is a barrier: the device flushes its cache before the write, and the
        /// write completes only when the commit block is on the medium.
        barrier: bool,
        /// Whether a task waits for the commit.
        sync: bool,
    },
    /// The transaction is committed. Tasks that waited for it continue.
    Done {
        /// Number of the transaction.
        tid: Tid,
        /// Blocks that may now be written to their places, and that are dirty in memory from now
        /// on. Blocks that the running transaction has changed again are not included.
        dirty: Vec<Block>,
    },
}

impl Journal {
    /// Begins to commit the running transaction. From now on, no operation joins it. Returns `None`
    /// if no transaction is running, or if a commit is in progress.
    pub fn begin_commit(&mut self) -> Option<Tid> {
        if self.phase != Phase::Idle {
            return None;
        }
        let running = self.running.as_mut()?;
        running.locked = true;
        self.phase = Phase::Locked;
        Some(running.tid)
    }

    /// Returns the next step of the commit in progress. Call this method when the previous step is
    /// done. Returns `None` if no commit is in progress.
    ///
    /// Steps without work are skipped. The commit block is always written.
    pub fn next_step(&mut self) -> Option<CommitStep> {
        match self.phase {
            Phase::Idle => None,
            Phase::Locked => {
                if self.running.as_ref()?.handles > 0 {
                    return Some(CommitStep::WaitHandles);
                }
                let mut transaction = self.running.take()?;
                for block in &transaction.blocks {
                    let Some(buffer) = self.buffers.get_mut(block) else {
                        unreachable!("the journal has a buffer for each block of a transaction");
                    };
                    debug_assert_eq!(buffer.committing, Part::None);
                    buffer.committing = std::mem::take(&mut buffer.running);
                }
                let files = transaction.take_ordered();
                self.committing = Some(transaction);
                self.phase = Phase::Data;
                if files.is_empty() { self.write_log() } else { Some(CommitStep::WriteData { files }) }
            }
            Phase::Data => self.write_log(),
            Phase::Log(block) => {
                self.phase = Phase::Record;
                let sync = self.committing.as_ref()?.sync;
                Some(CommitStep::WriteCommit { block, barrier: self.config.barrier, sync })
            }
            Phase::Record => self.finish(),
        }
    }

    /// Returns the metadata blocks that the committing transaction writes to the
    /// log, in the order of the log.
    pub fn committing_blocks(&self) -> impl Iterator<Item = Block> {
        let blocks = self.committing.iter().flat_map(|committing| committing.blocks.iter().copied());
        blocks.filter(|block| self.buffers[block].committing == Part::Dirty)
    }

    /// Returns whether the present contents of a block are being written to the log. In Linux, a
    /// task that wants to change this block waits until the block is written, that is, until
    /// [`WriteLog`](CommitStep::WriteLog) is done.
    #[must_use]
    pub fn is_on_the_way_to_the_log(&self, block: Block) -> bool {
        matches!(self.phase, Phase::Log(_))
            && self.buffers.get(&block).is_some_and(|buffer| {
                // If a later transaction has changed the block, a copy of the old contents is being
                // written.
                buffer.committing == Part::Dirty && buffer.running == Part::None
            })
    }

    fn write_log(&mut self) -> Option<CommitStep> {
        let tags = (crate::PAGE_BYTES as u32 - HEAD_BYTES - UUID_BYTES) / self.config.tag_bytes;
        let revocations = (crate::PAGE_BYTES as u32 - HEAD_BYTES) / REVOKED_BYTES;
        let committing = self.committing.as_mut()?;
        committing.start = self.log.head;
        let revoked = committing.revoked.len() as u32;
        let blocks = revoked.div_ceil(revocations) + committing.dirty.div_ceil(tags) + committing.dirty;
        let sync = committing.sync;
        let runs = self.log.take(blocks.into());
        let record = self.log.take(1)[0].block;
        self.phase = Phase::Log(record);
        if runs.is_empty() { self.next_step() } else { Some(CommitStep::WriteLog { runs, sync }) }
    }

    /// Ends the commit after the commit block is written. The transaction then needs a checkpoint.
    fn finish(&mut self) -> Option<CommitStep> {
        self.phase = Phase::Idle;
        let transaction = self.committing.take()?;
        let tid = transaction.tid;
        let mut committed = Committed { tid, start: transaction.start, left: 0, blocks: Vec::new(), gone: 0 };
        let mut dirty = Vec::new();
        for block in transaction.blocks {
            let Some(buffer) = self.buffers.get_mut(&block) else {
                unreachable!("the journal has a buffer for each block of a transaction");
            };
            let part = std::mem::take(&mut buffer.committing);
            let before = buffer.checkpoint.take();
            if part == Part::Dirty {
                buffer.checkpoint = Some(tid);
                committed.left += 1;
                committed.blocks.push(block);
                if buffer.running == Part::None {
                    dirty.push(block);
                }
            } else if buffer.is_idle() {
                self.buffers.remove(&block);
            }
            if let Some(before) = before {
                self.one_less(before);
            }
        }
        self.committed.push_back(committed);
        self.drop_empty();
        Some(CommitStep::Done { tid, dirty })
    }
}
