//! The commit: the steps that bring a transaction to the log.

use super::buffer::Part;
use super::checkpoint::Committed;
use super::{Journal, Tid};
use crate::fs::{Block, BlockRun, Ino};

/// Bytes of a descriptor or revocation block before what it lists.
const HEAD_BYTES: u32 = 16;
/// Bytes of the identifier that follows a descriptor block's first tag.
const UUID_BYTES: u32 = 16;
/// Bytes of a revoked block's number.
const REVOKED_BYTES: u32 = 4;

/// How far the commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// No new handles; those that are open are waited for.
    Locked,
    /// Data is on its way.
    Data,
    /// Descriptors and metadata are on their way to the log; the commit block's place in it.
    Log(Block),
    /// The commit block is on its way.
    Record,
}

impl Phase {
    pub(super) const fn is_in_log(self) -> bool {
        matches!(self, Self::Log(_) | Self::Record)
    }
}

/// What the journal's thread does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitStep {
    /// Operations are not stopped yet: ask again when one is.
    WaitHandles,
    /// Write the data of these files, as far as it has blocks, and wait for it. From now on a new transaction may run.
    WriteData {
        /// In the order they joined.
        files: Vec<Ino>,
    },
    /// Write to the log, all at once, and wait for all.
    WriteLog {
        /// Where, in the log's order: revocations, then descriptors, each followed by what it describes.
        runs: Vec<BlockRun>,
        /// A task waits for it.
        sync: bool,
    },
    /// Write the commit block and wait for it.
    WriteCommit {
        /// Where.
        block: Block,
        /// The device's cache is flushed before it is written, and it is on the medium when the write is complete.
        barrier: bool,
        /// A task waits for it.
        sync: bool,
    },
    /// The transaction is committed; who waited for it goes on.
    Done {
        /// Which.
        tid: Tid,
        /// Blocks that may now be written to their places, when there is time: they are dirty in memory from now on.
        /// Those that the running transaction has changed again are not among them.
        dirty: Vec<Block>,
    },
}

impl Journal {
    /// Begins to commit the running transaction: no operation joins it any more. `None`: there is none, or a commit
    /// is under way.
    pub fn begin_commit(&mut self) -> Option<Tid> {
        if self.phase != Phase::Idle {
            return None;
        }
        let running = self.running.as_mut()?;
        running.locked = true;
        self.phase = Phase::Locked;
        Some(running.tid)
    }

    /// What a commit that has begun needs next; to be asked when what it needed before is done. `None`: there is no
    /// commit under way.
    ///
    /// Steps that have nothing to do are left out; the commit block is always written.
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
                        unreachable!("blocks of a transaction are known");
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

    /// The metadata blocks that the committing transaction writes to the log, in their order there.
    pub fn committing_blocks(&self) -> impl Iterator<Item = Block> {
        let blocks = self.committing.iter().flat_map(|committing| committing.blocks.iter().copied());
        blocks.filter(|block| self.buffers[block].committing == Part::Dirty)
    }

    /// Whether a block is being written to the log as it is in memory. Linux makes a task that wants to change it wait
    /// until it is written ([`WriteLog`](CommitStep::WriteLog) is done).
    #[must_use]
    pub fn is_on_the_way_to_the_log(&self, block: Block) -> bool {
        matches!(self.phase, Phase::Log(_))
            && self.buffers.get(&block).is_some_and(|buffer| {
                // One that was changed since has a copy on the way.
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

    /// The commit block is written: the transaction joins those whose changes are to be brought to their places.
    fn finish(&mut self) -> Option<CommitStep> {
        self.phase = Phase::Idle;
        let transaction = self.committing.take()?;
        let tid = transaction.tid;
        let mut committed = Committed { tid, start: transaction.start, left: 0, blocks: Vec::new(), gone: 0 };
        let mut dirty = Vec::new();
        for block in transaction.blocks {
            let Some(buffer) = self.buffers.get_mut(&block) else {
                unreachable!("blocks of a transaction are known");
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
