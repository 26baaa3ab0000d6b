//! Checkpoints: the kernel writes committed changes to their places. After that, the space of these
//! changes in the log is free.

use super::buffer::Part;
use super::log::Position;
use super::{Journal, Tid};
use crate::fs::Block;

/// A committed transaction that the log still holds.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    pub(super) tid: Tid,
    /// First position of the transaction in the log.
    pub(super) start: Position,
    /// Number of blocks whose committed contents are not yet at their places. If a later committed
    /// transaction has changed a block again, the block does not count.
    pub(super) left: u32,
    pub(super) blocks: Vec<Block>,
    /// Number of entries at the start of `blocks` that need no more work. These blocks are at their
    /// places, or a later transaction has changed them.
    pub(super) gone: usize,
}

/// Action that frees space in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// Write the superblock of the journal, because the log no longer needs the oldest
    /// transactions.
    Tail(TailUpdate),
    /// Write the listed blocks to their places, and [report](Journal::written) each.
    Write,
    /// Commit this transaction first. It has uncommitted changes of all remaining blocks of the
    /// oldest transaction.
    Commit(Tid),
    /// Do nothing: the log is empty.
    Nothing,
}

/// An update of the log's tail. When the journal's superblock is written, the space before the new
/// tail is free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailUpdate {
    /// The block to write.
    pub superblock: Block,
    /// Whether the device's cache must be flushed before the update, so that the blocks at their
    /// places are on the medium.
    pub flush: bool,
    tail: Position,
}

impl Journal {
    /// Returns the next action that frees space in the log. For
    /// [`Checkpoint::Write`], it adds up to `blocks_max` blocks of the oldest
    /// transaction to `blocks`, in the order in which they were committed.
    pub fn checkpoint(&mut self, blocks_max: usize, blocks: &mut Vec<Block>) -> Checkpoint {
        if let Some(update) = self.tail_update() {
            return Checkpoint::Tail(update);
        }
        let committing = self.committing();
        let Some(oldest) = self.committed.front_mut() else {
            return committing.map_or(Checkpoint::Nothing, Checkpoint::Commit);
        };
        // Blocks that have left this transaction do not return to it.
        let is_left =
            |block: &Block| self.buffers.get(block).is_some_and(|buffer| buffer.checkpoint == Some(oldest.tid));
        oldest.gone += oldest.blocks[oldest.gone..].iter().take_while(|block| !is_left(block)).count();
        let mut again = None;
        let before = blocks.len();
        for block in &oldest.blocks[oldest.gone..] {
            let Some(buffer) = self.buffers.get(block).filter(|buffer| buffer.checkpoint == Some(oldest.tid)) else {
                continue;
            };
            if buffer.is_writable() {
                if blocks.len() - before == blocks_max {
                    break;
                }
                blocks.push(*block);
            } else {
                let by = if buffer.committing == Part::None { &self.running } else { &self.committing };
                again = again.or(by.as_ref().map(|transaction| transaction.tid));
            }
        }
        match again {
            Some(tid) if blocks.len() == before => Checkpoint::Commit(tid),
            _ => Checkpoint::Write,
        }
    }

    /// Returns the update that frees space at the tail of the log, if the tail in the journal's
    /// superblock is out of date.
    #[must_use]
    pub fn tail_update(&self) -> Option<TailUpdate> {
        let committing = self.committing.as_ref().filter(|_| self.phase.is_in_log()).map(|committing| committing.start);
        let needed = self.committed.front().map(|oldest| oldest.start).or(committing).unwrap_or(self.log.head);
        (needed > self.log.tail).then(|| TailUpdate {
            superblock: self.log.superblock(),
            flush: self.config.barrier,
            tail: needed,
        })
    }

    /// Reports that the journal's superblock is written.
    pub fn tail_updated(&mut self, update: TailUpdate) {
        self.log.tail = self.log.tail.max(update.tail);
    }

    /// Reports that a block was written to its place. The written contents are the contents at the
    /// time when the block was [writable](Self::is_writable). Returns whether the log no longer
    /// needs the block's space. The log still needs it if an uncommitted transaction has changed
    /// the block since then. As in Linux, the caller must not change and commit a block while it is
    /// being written to its place.
    pub fn written(&mut self, block: Block) -> bool {
        let Some(buffer) = self.buffers.get(&block).filter(|buffer| buffer.is_writable()) else { return false };
        let Some(tid) = buffer.checkpoint else { return false };
        self.buffers.remove(&block);
        self.one_less(tid);
        self.drop_empty();
        true
    }

    /// Returns the number of committed blocks for which no write to their places was reported.
    #[must_use]
    pub fn checkpoint_blocks(&self) -> u64 {
        self.committed.iter().map(|committed| u64::from(committed.left)).sum()
    }

    pub(super) fn one_less(&mut self, tid: Tid) {
        let Some(oldest) = self.committed.front().map(|oldest| oldest.tid) else {
            unreachable!("the log has each transaction with remaining blocks");
        };
        self.committed[(tid.0 - oldest.0) as usize].left -= 1;
    }

    pub(super) fn drop_empty(&mut self) {
        while self.committed.front().is_some_and(|oldest| oldest.left == 0) {
            self.committed.pop_front();
        }
    }
}
