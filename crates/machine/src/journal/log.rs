//! The circular log: which blocks of the device the next so many blocks of it are.

use crate::fs::{Block, BlockRun};

/// A position in the log: blocks written since it was made. It wraps on the device only.
pub(super) type Position = u64;

/// The log. Its first block is the journal's superblock, the others are used round and round.
#[derive(Clone, Debug)]
pub(super) struct Log {
    runs: Vec<BlockRun>,
    blocks: u64,
    /// What will be written next.
    pub(super) head: Position,
    /// What is before this is not needed any more, as the superblock says.
    pub(super) tail: Position,
}

impl Log {
    /// # Panics
    /// There is no block.
    pub(super) fn new(runs: &[BlockRun]) -> Self {
        let all: u64 = runs.iter().map(|run| run.blocks).sum();
        assert!(all > 1, "a log needs a superblock and room");
        Self { runs: runs.to_vec(), blocks: all - 1, head: 0, tail: 0 }
    }

    /// Blocks there are, without the superblock.
    pub(super) const fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(super) const fn free(&self) -> u64 {
        self.blocks - (self.head - self.tail)
    }

    pub(super) fn superblock(&self) -> Block {
        self.runs[0].block
    }

    /// Takes the next `count` blocks of the log.
    ///
    /// # Panics
    /// There are not as many free.
    pub(super) fn take(&mut self, count: u64) -> Vec<BlockRun> {
        assert!(count <= self.free(), "the log overruns: {count} blocks of {} free ones", self.free());
        let mut taken: Vec<BlockRun> = Vec::new();
        let mut left = count;
        while left > 0 {
            let run = self.run_at(1 + self.head % self.blocks, left);
            match taken.last_mut() {
                Some(last) if last.block + last.blocks == run.block => last.blocks += run.blocks,
                _ => taken.push(run),
            }
            self.head += run.blocks;
            left -= run.blocks;
        }
        taken
    }

    /// Where block number `index` of the log is, and how many up to `count` lie behind it.
    fn run_at(&self, mut index: u64, count: u64) -> BlockRun {
        for run in &self.runs {
            if index < run.blocks {
                return BlockRun { block: run.block + index, blocks: count.min(run.blocks - index) };
            }
            index -= run.blocks;
        }
        unreachable!("the index is within the log");
    }
}
