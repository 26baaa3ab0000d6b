//! Checkpoints: committed changes are brought to their places, and their room in the log is free again.

use super::buffer::Part;
use super::log::Position;
use super::{Journal, Tid};
use crate::fs::Block;

/// A committed transaction that the log still holds.
#[derive(Clone, Debug)]
pub(super) struct Committed {
    pub(super) tid: Tid,
    /// Where it begins in the log.
    pub(super) start: Position,
    /// How many of its blocks are not at their places yet and not changed by a younger committed transaction.
    pub(super) left: u32,
    pub(super) blocks: Vec<Block>,
    /// Of `blocks` so many at the beginning are at their places, or a younger transaction's.
    pub(super) gone: usize,
}

/// What makes room in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoint {
    /// The superblock of the journal is to be written: the oldest transactions are not needed any more.
    Tail(TailUpdate),
    /// The blocks that were listed are to be written to their places, and [told](Journal::written).
    Write,
    /// What the oldest transaction changed was changed again: this transaction has to be committed first.
    Commit(Tid),
    /// The log is empty.
    Nothing,
}

/// Room in the log that is free again when the journal's superblock says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailUpdate {
    /// The block to write.
    pub superblock: Block,
    /// The device's cache is to be flushed before: what was written to its place has to be on the medium.
    pub flush: bool,
    tail: Position,
}

impl Journal {
    /// What makes room in the log, as far as can be done now. With [`Checkpoint::Write`] up to `blocks_max` blocks of
    /// the oldest transaction are added to `blocks`, in the order they were committed in.
    pub fn checkpoint(&mut self, blocks_max: usize, blocks: &mut Vec<Block>) -> Checkpoint {
        if let Some(update) = self.tail_update() {
            return Checkpoint::Tail(update);
        }
        let committing = self.committing();
        let Some(oldest) = self.committed.front_mut() else {
            return committing.map_or(Checkpoint::Nothing, Checkpoint::Commit);
        };
        // A block that left this transaction does not come back to it.
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

    /// Room at the end of the log that the journal's superblock does not know to be free yet.
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

    /// The journal's superblock is written.
    pub fn tail_updated(&mut self, update: TailUpdate) {
        self.log.tail = self.log.tail.max(update.tail);
    }

    /// A block was written to its place as it was when it was [writable](Self::is_writable). True: its room in the log
    /// is not needed for it any more. If a transaction that is not committed has changed it since, it still is. As in
    /// Linux a block is not to be changed and committed while it is being written to its place.
    pub fn written(&mut self, block: Block) -> bool {
        let Some(buffer) = self.buffers.get(&block).filter(|buffer| buffer.is_writable()) else { return false };
        let Some(tid) = buffer.checkpoint else { return false };
        self.buffers.remove(&block);
        self.one_less(tid);
        self.drop_empty();
        true
    }

    /// Blocks that are committed and not known to be at their places.
    #[must_use]
    pub fn checkpoint_blocks(&self) -> u64 {
        self.committed.iter().map(|committed| u64::from(committed.left)).sum()
    }

    pub(super) fn one_less(&mut self, tid: Tid) {
        let Some(oldest) = self.committed.front().map(|oldest| oldest.tid) else {
            unreachable!("a transaction with blocks left is in the log");
        };
        self.committed[(tid.0 - oldest.0) as usize].left -= 1;
    }

    pub(super) fn drop_empty(&mut self) {
        while self.committed.front().is_some_and(|oldest| oldest.left == 0) {
            self.committed.pop_front();
        }
    }
}
