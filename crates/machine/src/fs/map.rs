//! Map from a file's pages to blocks, with the extent tree or the indirect blocks that store the
//! map on the medium.

use super::indirect::IndirectBlocks;
use super::{Block, BlockRun, Effects};

/// Maximum number of pages of an extent of ext4: 128 MiB.
pub(super) const EXTENT_PAGES_MAX: u32 = 32768;
/// Number of extents or index entries in the inode.
const ROOT_ENTRIES: usize = 4;
/// Number of extents or index entries in a block: 12 bytes each, after a header of 12 bytes.
const NODE_ENTRIES: u32 = 340;

/// Consecutive pages in consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) page: u32,
    pub(super) pages: u32,
    pub(super) block: Block,
    /// Whether the blocks are unwritten. Unwritten blocks read as zeroes.
    pub(super) unwritten: bool,
}

impl Extent {
    pub(super) const fn end(&self) -> u32 {
        self.page + self.pages
    }

    pub(super) const fn block_end(&self) -> Block {
        self.block + self.pages as Block
    }

    /// Returns whether `next` may become a part of this extent.
    const fn joins(&self, next: &Self, pages_max: u32) -> bool {
        self.end() == next.page
            && self.block_end() == next.block
            && self.unwritten == next.unwritten
            && self.pages.saturating_add(next.pages) <= pages_max
    }

    /// Returns the part of the extent from `from` to `end`.
    const fn part(&self, from: u32, end: u32) -> Self {
        let block = self.block + (from - self.page) as Block;
        Self { page: from, pages: end - from, block, unwritten: self.unwritten }
    }
}

/// A block of an extent tree.
#[derive(Clone, Copy, Debug)]
struct Node {
    first: u32,
    entries: u32,
    block: Block,
}

/// The blocks of an extent tree, without the inode. The leaves come first, then the levels above.
#[derive(Clone, Debug, Default)]
pub(super) struct ExtentTree {
    levels: Vec<Vec<Node>>,
}

/// Metadata blocks that store a file's map.
#[derive(Clone, Debug, Default)]
pub(super) enum Tree {
    /// No blocks: the inode has room for all entries.
    #[default]
    Inode,
    Extents(Box<ExtentTree>),
    Indirect(Box<IndirectBlocks>),
}

/// Map from a file's pages to blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Map {
    /// Extents in the order of pages. No extent is empty.
    pub(super) extents: Vec<Extent>,
    pub(super) tree: Tree,
}

impl Map {
    /// Returns the extent that contains `page`.
    pub(super) fn find(&self, page: u32) -> Option<Extent> {
        let at = self.extents.partition_point(|extent| extent.page <= page).checked_sub(1)?;
        Some(self.extents[at]).filter(|extent| page < extent.end())
    }

    /// Returns the last extent that begins at or before `page`.
    pub(super) fn before(&self, page: u32) -> Option<Extent> {
        let at = self.extents.partition_point(|extent| extent.page <= page).checked_sub(1)?;
        Some(self.extents[at])
    }

    /// Returns the start and end of the first run of pages without blocks in `from..end`.
    pub(super) fn hole(&self, mut from: u32, end: u32) -> Option<(u32, u32)> {
        let mut at = self.extents.partition_point(|extent| extent.end() <= from);
        while let Some(extent) = self.extents.get(at).filter(|extent| extent.page <= from) {
            from = extent.end();
            at += 1;
        }
        let end = self.extents.get(at).map_or(end, |extent| extent.page.min(end));
        (from < end).then(|| (from, end - from))
    }

    /// Adds the blocks of pages that had no blocks. Joins the new extent with its neighbours if the
    /// joined extent is not too long. Returns whether there is a new extent.
    pub(super) fn insert(&mut self, new: Extent, pages_max: u32) -> bool {
        let at = self.extents.partition_point(|extent| extent.page <= new.page);
        let left = at.checked_sub(1).map(|left| self.extents[left]);
        let right = self.extents.get(at).copied();
        debug_assert!(left.is_none_or(|left| left.end() <= new.page));
        debug_assert!(right.is_none_or(|right| new.end() <= right.page));
        let joins = |a: Extent, b: Extent| a.joins(&b, pages_max);
        if let Some(left) = left.filter(|left| joins(*left, new)) {
            let grown = &mut self.extents[at - 1];
            grown.pages += new.pages;
            let grown = *grown;
            if let Some(right) =
                right.filter(|right| joins(grown, *right) && self.tree.same_leaf(left.page, right.page))
            {
                self.extents[at - 1].pages += right.pages;
                self.extents.remove(at);
                self.tree.drop_entry(right.page);
            }
            return false;
        }
        if let Some(right) = right.filter(|right| joins(new, *right) && self.tree.same_leaf(new.page, right.page)) {
            self.extents[at] = Extent { pages: new.pages + right.pages, ..new };
            self.tree.lower(new.page);
            return false;
        }
        self.extents.insert(at, new);
        true
    }

    /// Returns the start and end of the first run of unwritten pages in `from..end`.
    pub(super) fn unwritten(&self, from: u32, end: u32) -> Option<(u32, u32)> {
        let at = self.extents.partition_point(|extent| extent.end() <= from);
        let found = self.extents[at..].iter().take_while(|extent| extent.page < end).find(|extent| extent.unwritten)?;
        Some((found.page.max(from), found.end().min(end)))
    }

    /// Marks pages `from..end` of an unwritten extent as written. The extent shrinks or splits, and
    /// the written part joins its neighbours. Returns the new extents, which the tree does not
    /// contain yet. [Add](Self::tree_add) the first one to the tree before you
    /// [insert](Self::insert_split) the second one.
    pub(super) fn write(&mut self, from: u32, end: u32, pages_max: u32) -> [Option<Extent>; 2] {
        let at = self.extents.partition_point(|extent| extent.page <= from) - 1;
        let old = self.extents[at];
        debug_assert!(old.unwritten && old.page <= from && end <= old.end());
        let new = Extent { unwritten: false, ..old.part(from, end) };
        let behind = (end < old.end()).then(|| old.part(end, old.end()));
        if from > old.page {
            self.extents[at] = old.part(old.page, from);
            let right = self.extents.get(at + 1).copied();
            let joined = behind.is_none()
                && right.is_some_and(|right| new.joins(&right, pages_max) && self.tree.same_leaf(from, right.page));
            if let Some(right) = right.filter(|_| joined) {
                self.extents[at + 1] = Extent { pages: new.pages + right.pages, ..new };
                return [None, None];
            }
            return [Some(new), behind];
        }
        let left = at.checked_sub(1).map(|left| self.extents[left]);
        match (left.filter(|left| left.joins(&new, pages_max)), behind) {
            (Some(_), Some(behind)) => {
                self.extents[at - 1].pages += new.pages;
                self.extents[at] = behind;
                [None, None]
            }
            (_, behind) => {
                self.extents[at] = new;
                if behind.is_none() {
                    self.join_right(at, pages_max);
                    at.checked_sub(1).into_iter().for_each(|left| self.join_right(left, pages_max));
                }
                [behind, None]
            }
        }
    }

    /// Inserts an extent that [`write`](Self::write) returned.
    pub(super) fn insert_split(&mut self, new: Extent) {
        let at = self.extents.partition_point(|extent| extent.page <= new.page);
        self.extents.insert(at, new);
    }

    /// Merges an inserted extent into the preceding extent. Call this method if the tree has no
    /// room for the inserted extent. The preceding extent then counts as written.
    pub(super) fn take_back(&mut self, new: Extent) {
        let at = self.extents.partition_point(|extent| extent.page < new.page);
        self.extents.remove(at);
        self.extents[at - 1].pages += new.pages;
        self.extents[at - 1].unwritten = false;
    }

    /// Joins an extent with the next one, if they can be one extent.
    fn join_right(&mut self, at: usize, pages_max: u32) {
        if let [left, right, ..] = self.extents[at..]
            && left.joins(&right, pages_max)
            && self.tree.same_leaf(left.page, right.page)
        {
            self.extents[at].pages += right.pages;
            self.extents.remove(at + 1);
            self.tree.drop_entry(right.page);
        }
    }

    /// Returns the number of blocks that the extent tree needs for an extent
    /// [inserted](Self::insert) at `page`.
    pub(super) fn tree_blocks_needed(&self, page: u32) -> usize {
        let Tree::Extents(tree) = &self.tree else { return usize::from(self.extents.len() > ROOT_ENTRIES) };
        let full = tree.levels.iter().take_while(|level| level[node_at(level, page)].entries >= NODE_ENTRIES).count();
        let top = tree.levels.last().map_or(0, Vec::len);
        full + usize::from(full == tree.levels.len() && top >= ROOT_ENTRIES)
    }

    /// Adds an extent that was inserted at `page` to the tree. `blocks` are the new blocks that the
    /// tree [needs](Self::tree_blocks_needed) for this.
    pub(super) fn tree_add(&mut self, page: u32, mut blocks: impl Iterator<Item = Block>, effects: &mut Effects) {
        let mut fresh = |effects: &mut Effects| {
            let Some(block) = blocks.next() else { unreachable!("the allocator gives as many blocks as needed") };
            effects.dirty(block);
            block
        };
        if matches!(self.tree, Tree::Inode) {
            if self.extents.len() > ROOT_ENTRIES {
                let leaf =
                    Node { first: self.extents[0].page, entries: self.extents.len() as u32, block: fresh(effects) };
                self.tree = Tree::Extents(Box::new(ExtentTree { levels: vec![vec![leaf]] }));
            }
            return;
        }
        let Tree::Extents(tree) = &mut self.tree else { return };
        tree.lower(page);
        let mut page = page;
        for level in 0.. {
            let (below, nodes) = tree.levels.split_at_mut(level);
            let nodes = &mut nodes[0];
            let at = node_at(nodes, page);
            effects.change(nodes[at].block);
            nodes[at].entries += 1;
            if nodes[at].entries <= NODE_ENTRIES {
                return;
            }
            let Node { first, entries, .. } = nodes[at];
            let begin =
                |entry: usize| below.last().map_or_else(|| self.extents[entry].page, |below| below[entry].first);
            let count = below.last().map_or(self.extents.len(), Vec::len);
            let start = partition(count, |entry| begin(entry) < first);
            let appended = at + 1 == nodes.len() && begin(count - 1) == page;
            let keep = if appended { entries - 1 } else { entries / 2 };
            nodes[at].entries = keep;
            let split = Node { first: begin(start + keep as usize), entries: entries - keep, block: fresh(effects) };
            nodes.insert(at + 1, split);
            page = split.first;
            if level + 1 == tree.levels.len() {
                let top = &tree.levels[level];
                if top.len() > ROOT_ENTRIES {
                    let node = Node { first: top[0].first, entries: top.len() as u32, block: fresh(effects) };
                    tree.levels.push(vec![node]);
                }
                return;
            }
        }
    }

    /// Records that the metadata blocks on the way from the inode to `page` are read.
    pub(super) fn reads(&self, page: u32, effects: &mut Effects) {
        match &self.tree {
            Tree::Inode => {}
            Tree::Extents(tree) => {
                for level in tree.levels.iter().rev() {
                    effects.read(level[node_at(level, page)].block);
                }
            }
            Tree::Indirect(indirect) => indirect.reads(page, effects),
        }
    }

    /// Records that the leaf that leads to `page` changes.
    pub(super) fn dirty_leaf(&self, page: u32, effects: &mut Effects) {
        if let Tree::Extents(tree) = &self.tree {
            self.reads(page, effects);
            effects.dirty(tree.levels[0][node_at(&tree.levels[0], page)].block);
        }
    }

    /// Returns the blocks of the tree.
    pub(super) fn tree_blocks(&self) -> Vec<Block> {
        match &self.tree {
            Tree::Inode => Vec::new(),
            Tree::Extents(tree) => tree.levels.iter().rev().flatten().map(|node| node.block).collect(),
            Tree::Indirect(indirect) => indirect.blocks(),
        }
    }

    /// Returns all blocks, of data and of the tree.
    pub(super) fn runs(&self) -> impl Iterator<Item = BlockRun> {
        let data = self.extents.iter().map(|extent| BlockRun { block: extent.block, blocks: extent.pages.into() });
        data.chain(self.tree_blocks().into_iter().map(|block| BlockRun { block, blocks: 1 }))
    }

    /// Checks the extents and the tree.
    ///
    /// # Panics
    /// If extents overlap, or the tree does not lead to all extents.
    pub(super) fn check(&self) {
        for pair in self.extents.windows(2) {
            assert!(pair[0].end() <= pair[1].page, "extents overlap: {pair:?}");
        }
        let Tree::Extents(tree) = &self.tree else { return };
        let mut begins: Vec<u32> = self.extents.iter().map(|extent| extent.page).collect();
        for level in &tree.levels {
            assert_eq!(level.iter().map(|node| node.entries as usize).sum::<usize>(), begins.len());
            let mut entry = 0;
            for node in level {
                assert!((1..=NODE_ENTRIES).contains(&node.entries));
                assert!(node.first <= begins[entry], "the node {node:?} does not point to {}", begins[entry]);
                entry += node.entries as usize;
                assert!(begins.get(entry).is_none_or(|next| begins[entry - 1] < *next));
            }
            begins = level.iter().map(|node| node.first).collect();
        }
        assert!(begins.len() <= ROOT_ENTRIES);
    }
}

impl Tree {
    fn same_leaf(&self, page: u32, other: u32) -> bool {
        let Self::Extents(tree) = self else { return true };
        node_at(&tree.levels[0], page) == node_at(&tree.levels[0], other)
    }

    /// Removes the entry of an extent that became a part of the preceding extent.
    fn drop_entry(&mut self, page: u32) {
        if let Self::Extents(tree) = self {
            let at = node_at(&tree.levels[0], page);
            tree.levels[0][at].entries -= 1;
        }
    }

    /// Updates the first page of the tree, because the first extent may now begin earlier.
    fn lower(&mut self, page: u32) {
        if let Self::Extents(tree) = self {
            tree.lower(page);
        }
    }
}

impl ExtentTree {
    fn lower(&mut self, page: u32) {
        for level in &mut self.levels {
            level[0].first = level[0].first.min(page);
        }
    }
}

/// Returns the index of the node with the entry for `page`: the last node that begins at or before
/// `page`.
fn node_at(level: &[Node], page: u32) -> usize {
    level.partition_point(|node| node.first <= page).saturating_sub(1)
}

/// Returns the first index in `0..count` for which `is_before` is false, or `count`.
fn partition(count: usize, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
