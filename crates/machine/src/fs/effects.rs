//! Effects of an operation on metadata: the blocks that it reads, changes and frees.

use super::Block;

/// Minimum number of blocks that one revocation block of the journal can list.
const REVOKED_PER_BLOCK: usize = 500;

/// The metadata blocks of one or more operations, collected until [`clear`](Self::clear).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Blocks that must be in memory, in the order in which they are needed. Blocks that the
    /// operation creates are not included. A block may occur more than once.
    pub reads: Vec<Block>,
    /// Blocks that are changed or created. Each block occurs once.
    pub dirties: Vec<Block>,
    /// Metadata blocks that are freed: directory blocks, indirect blocks and blocks of extent
    /// trees. Nobody may write their contents from memory any more, and the journal revokes them.
    /// `dirties` contains none of them.
    pub forgets: Vec<Block>,
    /// Whether the operations are not recorded.
    ignored: bool,
}

impl Effects {
    /// Creates effects that record nothing. They are for operations long before the run, whose
    /// changes are already on the disk.
    #[must_use]
    pub fn ignored() -> Self {
        Self { ignored: true, ..Self::default() }
    }

    /// Removes all collected blocks.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.dirties.clear();
        self.forgets.clear();
    }

    /// Returns the credits that a [handle](crate::journal::Journal::start) needs for these changes:
    /// the number of changed blocks, plus the number of blocks that list revoked blocks.
    #[must_use]
    pub fn credits(&self) -> u32 {
        (self.dirties.len() + self.forgets.len().div_ceil(REVOKED_PER_BLOCK)) as u32
    }

    /// Records that a block is needed. Records nothing if the last record is the same block, or if
    /// an operation has changed the block.
    pub(super) fn read(&mut self, block: Block) {
        if !self.ignored && self.reads.last() != Some(&block) && !self.dirties.contains(&block) {
            self.reads.push(block);
        }
    }

    /// Records the change of a block that is in memory or new.
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

    /// Records that a block is needed and changed.
    pub(super) fn change(&mut self, block: Block) {
        self.read(block);
        self.dirty(block);
    }

    /// Records that a block is freed and no longer contains metadata.
    pub(super) fn forget(&mut self, block: Block) {
        if self.ignored {
            return;
        }
        self.dirties.retain(|known| *known != block);
        self.forgets.push(block);
    }
}
