//! The circular log: it maps positions to blocks of the device.

use crate::fs::{Block, BlockRun};

/// A position in the log: the number of blocks that were written since the log was created. A
/// position never decreases, although the log on the device is circular.
pub(super) type Position = u64;

/// The log. Its first block is the journal's superblock. The other blocks are used as a circle.
#[derive(Clone, Debug)]
pub(super) struct Log {
    runs: Vec<BlockRun>,
    blocks: u64,
    /// Position of the next write.
    pub(super) head: Position,
    /// First position that is still needed, according to the superblock.
    pub(super) tail: Position,
}

impl Log {
    /// Creates an empty log in these blocks.
    ///
    /// # Panics
    /// If there are fewer than two blocks.
    pub(super) fn new(runs: &[BlockRun]) -> Self {
        let all: u64 = runs.iter().map(|run| run.blocks).sum();
        assert!(all > 1, "a log needs a superblock and free blocks");
        Self { runs: runs.to_vec(), blocks: all - 1, head: 0, tail: 0 }
    }

    /// Returns the number of blocks of the log, without the superblock.
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
    /// If fewer than `count` blocks are free.
    pub(super) fn take(&mut self, count: u64) -> Vec<BlockRun> {
        assert!(
            count <= self.free(),
            "the log is full: it needs {count} blocks, but has only {} free blocks",
            self.free()
        );
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

    /// Returns the run of the log's blocks that begins at block number `index` of the log. It has
    /// at most `count` blocks.
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
