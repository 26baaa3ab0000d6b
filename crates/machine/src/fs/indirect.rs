//! Indirect blocks. They contain the numbers of a file's blocks, except the first twelve, which the
//! inode contains.

use super::{Block, Effects};

/// Number of blocks that the inode lists.
pub(super) const DIRECT: u32 = 12;
/// Number of blocks that an indirect block lists, 4 bytes each.
pub(super) const PER_BLOCK: u32 = 1024;
/// Number of pages of the largest file.
pub(super) const PAGES_MAX: u64 = 12 + 1024 + 1024 * 1024 + 1024 * 1024 * 1024;

/// Position of an indirect block in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndirectBlock {
    /// The double indirect block, which lists leaves.
    Double,
    /// The triple indirect block, which lists double indirect blocks.
    Triple,
    /// A double indirect block below [`Triple`](Self::Triple).
    Middle(u32),
    /// A block that lists data blocks. Leaf `n` lists the blocks of the pages from `12 + 1024 n`
    /// on.
    Leaf(u32),
}

/// The indirect blocks of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct IndirectBlocks {
    double: Option<Block>,
    triple: Option<Block>,
    middle: Vec<Option<Block>>,
    leaves: Vec<Option<Block>>,
}

/// Returns the indirect blocks that lead from the inode to `page`.
pub(super) fn path(page: u32) -> impl Iterator<Item = IndirectBlock> {
    let leaf = page.checked_sub(DIRECT).map(|beyond| beyond / PER_BLOCK);
    let (top, middle) = match leaf {
        None | Some(0) => (None, None),
        Some(leaf) if leaf <= PER_BLOCK => (Some(IndirectBlock::Double), None),
        Some(leaf) => (Some(IndirectBlock::Triple), Some(IndirectBlock::Middle((leaf - 1 - PER_BLOCK) / PER_BLOCK))),
    };
    top.into_iter().chain(middle).chain(leaf.map(IndirectBlock::Leaf))
}

/// Returns the first page after `page` that belongs to another leaf.
pub(super) const fn leaf_end(page: u32) -> u32 {
    if page < DIRECT { DIRECT } else { page - (page - DIRECT) % PER_BLOCK + PER_BLOCK }
}

impl IndirectBlocks {
    pub(super) fn get(&self, place: IndirectBlock) -> Option<Block> {
        match place {
            IndirectBlock::Double => self.double,
            IndirectBlock::Triple => self.triple,
            IndirectBlock::Middle(number) => self.middle.get(number as usize).copied().flatten(),
            IndirectBlock::Leaf(number) => self.leaves.get(number as usize).copied().flatten(),
        }
    }

    pub(super) fn set(&mut self, place: IndirectBlock, block: Block) {
        let (list, number) = match place {
            IndirectBlock::Double => return self.double = Some(block),
            IndirectBlock::Triple => return self.triple = Some(block),
            IndirectBlock::Middle(number) => (&mut self.middle, number as usize),
            IndirectBlock::Leaf(number) => (&mut self.leaves, number as usize),
        };
        if list.len() <= number {
            list.resize(number + 1, None);
        }
        list[number] = Some(block);
    }

    pub(super) fn reads(&self, page: u32, effects: &mut Effects) {
        for block in path(page).map_while(|place| self.get(place)) {
            effects.read(block);
        }
    }

    pub(super) fn blocks(&self) -> Vec<Block> {
        let tops = [self.double, self.triple];
        tops.iter().chain(&self.middle).chain(&self.leaves).copied().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_to_a_page_has_the_indirect_blocks_for_its_position() {
        let way = |page| path(page).collect::<Vec<_>>();
        assert_eq!(way(11), []);
        assert_eq!(way(12), [IndirectBlock::Leaf(0)]);
        assert_eq!(way(1035), [IndirectBlock::Leaf(0)]);
        assert_eq!(way(1036), [IndirectBlock::Double, IndirectBlock::Leaf(1)]);
        assert_eq!(way(12 + 1024 + 1024 * 1024 - 1), [IndirectBlock::Double, IndirectBlock::Leaf(1024)]);
        assert_eq!(
            way(12 + 1024 + 1024 * 1024),
            [IndirectBlock::Triple, IndirectBlock::Middle(0), IndirectBlock::Leaf(1025)]
        );
        assert_eq!(
            way(12 + 1024 + 2 * 1024 * 1024),
            [IndirectBlock::Triple, IndirectBlock::Middle(1), IndirectBlock::Leaf(2049)]
        );
    }

    #[test]
    fn leaf_end_is_the_first_page_of_the_next_leaf() {
        assert_eq!(leaf_end(0), 12);
        assert_eq!(leaf_end(12), 1036);
        assert_eq!(leaf_end(1035), 1036);
        assert_eq!(leaf_end(1036), 2060);
    }
}
