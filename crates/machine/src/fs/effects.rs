//! What an operation does to metadata: the blocks it has to have in memory, and those it changes.

use super::Block;

/// Blocks that a revocation block of the journal lists, at least.
const REVOKED_PER_BLOCK: usize = 500;

/// The metadata blocks of one or more operations, collected until [`clear`](Self::clear).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Blocks an operation must have in memory, in the order it needs them. Those it makes itself are not among them; a
    /// block may be named more than once.
    pub reads: Vec<Block>,
    /// Blocks it changes or makes, each once.
    pub dirties: Vec<Block>,
    /// Metadata blocks it gives back, directory blocks, indirect blocks and extent-tree blocks: what is in memory of
    /// them must not be written any more, and the journal revokes them. None of them is in `dirties`.
    pub forgets: Vec<Block>,
    /// Nothing is collected.
    ignored: bool,
}

impl Effects {
    /// Those of operations that were done long ago: what they changed is where it belongs.
    #[must_use]
    pub fn ignored() -> Self {
        Self { ignored: true, ..Self::default() }
    }

    /// Nothing collected.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.dirties.clear();
        self.forgets.clear();
    }

    /// What a [handle](crate::journal::Journal::start) has to be started with for these changes: the blocks that
    /// change, and those that list what is revoked.
    #[must_use]
    pub fn credits(&self) -> u32 {
        (self.dirties.len() + self.forgets.len().div_ceil(REVOKED_PER_BLOCK)) as u32
    }

    /// A block is needed unless it was made or needed just before.
    pub(super) fn read(&mut self, block: Block) {
        if !self.ignored && self.reads.last() != Some(&block) && !self.dirties.contains(&block) {
            self.reads.push(block);
        }
    }

    /// A block that is in memory or is made anew is changed.
    pub(super) fn dirty(&mut self, block: Block) {
        if self.ignored {
            return;
        }
        if !self.dirties.iter().rev().any(|known| *known == block) {
            self.dirties.push(block);
        }
        if !self.forgets.is_empty() {
            self.forgets.retain(|known| *known != block);
        }
    }

    /// A block is needed and changed.
    pub(super) fn change(&mut self, block: Block) {
        self.read(block);
        self.dirty(block);
    }

    /// A block is no metadata any more.
    pub(super) fn forget(&mut self, block: Block) {
        if self.ignored {
            return;
        }
        self.dirties.retain(|known| *known != block);
        self.forgets.push(block);
    }
}
