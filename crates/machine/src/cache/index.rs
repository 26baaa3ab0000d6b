//! Index of the runs of a mapping with many runs. The runs are sorted by first page. They are
//! stored in blocks of up to 64 runs, and a tree contains the blocks.
//!
//! Each run stores the number of its block. The first page of a run changes whenever the front of
//! the run is read, written or dropped. The index then only stores the new page, and neither sorts
//! nor searches. A block has one bit for each run, which says whether the run is dirty.
//!
//! A mapping with many runs is usually a device's own cache, and most accesses use the same few
//! blocks of the device. The index therefore first tries the run in which it last found a page.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::run::{NIL, Runs};

/// Maximum number of runs in a block: the number of bits in the field `dirty`.
const BLOCK_RUNS: usize = 64;
/// Largest number of runs in two neighbouring blocks at which the blocks are merged.
const MERGED_RUNS: usize = 40;
/// Number of pages whose runs are remembered. This is enough for about 16 groups of a file system,
/// with their bitmaps, inodes and directories.
const REMEMBERED: usize = 256;

#[derive(Clone, Debug)]
struct Block {
    len: usize,
    /// One bit for each run. The bit is set if the run is dirty.
    dirty: u64,
    starts: [u64; BLOCK_RUNS],
    ids: [u32; BLOCK_RUNS],
}

impl Block {
    const EMPTY: Self = Self { len: 0, dirty: 0, starts: [0; BLOCK_RUNS], ids: [NIL; BLOCK_RUNS] };

    /// Returns the number of runs that begin at or before `page`.
    #[inline]
    fn rank(&self, page: u64) -> usize {
        self.starts[..self.len].partition_point(|&start| start <= page)
    }

    fn insert(&mut self, at: usize, start: u64, id: u32, dirty: bool) {
        self.starts.copy_within(at..self.len, at + 1);
        self.ids.copy_within(at..self.len, at + 1);
        (self.starts[at], self.ids[at]) = (start, id);
        let below = (1 << at) - 1;
        self.dirty = (self.dirty & below) | (self.dirty & !below) << 1 | u64::from(dirty) << at;
        self.len += 1;
    }

    fn remove(&mut self, at: usize) {
        self.starts.copy_within(at + 1..self.len, at);
        self.ids.copy_within(at + 1..self.len, at);
        let below = (1 << at) - 1;
        self.dirty = (self.dirty & below) | (self.dirty >> 1) & !below;
        self.len -= 1;
    }

    /// Moves the runs from position `from` on to the end of another block, which has room for them.
    fn move_to(&mut self, from: usize, to: &mut Self) {
        let moved = self.len - from;
        to.starts[to.len..to.len + moved].copy_from_slice(&self.starts[from..self.len]);
        to.ids[to.len..to.len + moved].copy_from_slice(&self.ids[from..self.len]);
        to.dirty |= (self.dirty >> from) << to.len;
        to.len += moved;
        self.dirty &= (1 << from) - 1;
        self.len = from;
    }
}

/// All runs of a mapping by first page.
#[derive(Clone, Debug)]
pub(super) struct Index {
    blocks: Vec<Block>,
    free: Vec<u32>,
    /// Blocks, by the first page of their first run.
    by_start: BTreeMap<u64, u32>,
    /// Keys of `by_start` whose blocks have dirty runs.
    dirty: BTreeSet<u64>,
    /// The run in which a page was last found, by a hash of the page's number. The run may have
    /// been released or reused since then.
    remembered: [Cell<u32>; REMEMBERED],
}

impl Default for Index {
    fn default() -> Self {
        let remembered = std::array::from_fn(|_| Cell::new(NIL));
        Self { blocks: Vec::new(), free: Vec::new(), by_start: BTreeMap::new(), dirty: BTreeSet::new(), remembered }
    }
}

impl Index {
    /// Returns the remembered run for `page`, if this run contains `page` and belongs to `mapping`.
    #[inline]
    pub(super) fn recall(&self, runs: &Runs, mapping: u32, page: u64) -> Option<u32> {
        let id = self.place_of(page).get();
        (id != NIL && runs[id].mapping == mapping && (runs[id].page..runs[id].end()).contains(&page)).then_some(id)
    }

    /// Remembers that `page` is in this run.
    #[inline]
    pub(super) fn remember(&self, page: u64, id: u32) {
        self.place_of(page).set(id);
    }

    /// Returns the slot of a page. Many pages belong to the same group of blocks, so they are close
    /// together. Other pages are a power of two apart. The hash must give different slots in both
    /// cases.
    #[inline]
    const fn place_of(&self, page: u64) -> &Cell<u32> {
        &self.remembered[((page ^ page >> 8 ^ page >> 15) % REMEMBERED as u64) as usize]
    }

    /// Returns the last run that begins at or before `page`.
    #[inline]
    pub(super) fn last_from(&self, page: u64) -> u32 {
        let Some((_, &block)) = self.by_start.range(..=page).next_back() else { return NIL };
        let block = &self.blocks[block as usize];
        block.ids[block.rank(page) - 1]
    }

    /// Returns the first dirty run after this run.
    pub(super) fn first_dirty_behind(&self, runs: &Runs, id: u32) -> u32 {
        let run = &runs[id];
        let block = &self.blocks[run.block as usize];
        let from = block.rank(run.page);
        let later = if from < BLOCK_RUNS { block.dirty >> from << from } else { 0 };
        if later != 0 {
            return block.ids[later.trailing_zeros() as usize];
        }
        let Some(start) = self.dirty.range((Bound::Excluded(block.starts[0]), Bound::Unbounded)).next() else {
            return NIL;
        };
        let block = &self.blocks[self.by_start[start] as usize];
        block.ids[block.dirty.trailing_zeros() as usize]
    }

    /// Inserts a run that is already linked between its neighbours.
    pub(super) fn insert(&mut self, runs: &mut Runs, id: u32) {
        let run = runs[id];
        let (block, at) = match (run.before, run.behind) {
            (NIL, NIL) => (self.add_block(Block::EMPTY), 0),
            (NIL, behind) => (runs[behind].block, 0),
            (before, behind) => {
                let block = runs[before].block;
                let at = self.blocks[block as usize].rank(run.page);
                // If a block is full, a new run after its last run goes to the front of the next
                // block. Without this rule, many runs that are inserted in descending order would
                // each get a separate block.
                if at == BLOCK_RUNS && behind != NIL { (runs[behind].block, 0) } else { (block, at) }
            }
        };
        let full = self.blocks[block as usize].len == BLOCK_RUNS;
        let (block, at) = if full { self.make_room(runs, block, at) } else { (block, at) };
        runs[id].block = block;
        let old = self.key(block);
        self.blocks[block as usize].insert(at, run.page, id, run.is_dirty());
        self.file(block, old);
    }

    /// Removes a run that is still linked between its neighbours.
    pub(super) fn remove(&mut self, runs: &mut Runs, id: u32) {
        let run = runs[id];
        let old = self.key(run.block);
        let block = &mut self.blocks[run.block as usize];
        block.remove(block.rank(run.page) - 1);
        let (len, last) = (block.len, block.ids[block.len.saturating_sub(1)]);
        self.file(run.block, old);
        if len == 0 {
            self.free.push(run.block);
        } else if len < MERGED_RUNS / 2 {
            let behind = if last == run.before { run.behind } else { runs[last].behind };
            if behind != NIL && len + self.blocks[runs[behind].block as usize].len <= MERGED_RUNS {
                self.merge(runs, run.block, runs[behind].block);
            }
        }
    }

    /// Changes the first page of a run that keeps its position among the runs.
    #[inline]
    pub(super) fn move_start(&mut self, block: u32, old_start: u64, start: u64) {
        let old = self.key(block);
        let entry = &mut self.blocks[block as usize];
        let at = entry.rank(old_start) - 1;
        entry.starts[at] = start;
        if at == 0 {
            self.file(block, old);
        }
    }

    /// Sets whether a run is dirty.
    #[inline]
    pub(super) fn set_dirty(&mut self, block: u32, start: u64, dirty: bool) {
        let old = self.key(block);
        let entry = &mut self.blocks[block as usize];
        let bit = 1 << (entry.rank(start) - 1);
        entry.dirty = if dirty { entry.dirty | bit } else { entry.dirty & !bit };
        self.file(block, old);
    }

    fn add_block(&mut self, block: Block) -> u32 {
        if let Some(number) = self.free.pop() {
            self.blocks[number as usize] = block;
            return number;
        }
        self.blocks.push(block);
        self.blocks.len() as u32 - 1
    }

    /// Returns the entry of a block in the tree: its first page, and whether
    /// any of its runs is dirty. Returns `None` if the block has no runs.
    #[inline]
    fn key(&self, block: u32) -> Option<(u64, bool)> {
        let block = &self.blocks[block as usize];
        (block.len > 0).then_some((block.starts[0], block.dirty != 0))
    }

    /// Updates the entry of a block in the tree. `old` is the entry before the change.
    #[inline]
    fn file(&mut self, block: u32, old: Option<(u64, bool)>) {
        let new = self.key(block);
        if new == old {
            return;
        }
        if old.map(|old| old.0) != new.map(|new| new.0) {
            if let Some((start, _)) = old {
                self.by_start.remove(&start);
            }
            if let Some((start, _)) = new {
                self.by_start.insert(start, block);
            }
        }
        if let Some((start, true)) = old {
            self.dirty.remove(&start);
        }
        if let Some((start, true)) = new {
            self.dirty.insert(start);
        }
    }

    /// Splits a full block to insert a run at position `at`. Returns the block and the position for
    /// this run. If the run comes after all runs of the block, the old block stays full.
    fn make_room(&mut self, runs: &mut Runs, block: u32, at: usize) -> (u32, usize) {
        let from = if at == BLOCK_RUNS { BLOCK_RUNS } else { BLOCK_RUNS / 2 };
        let old = self.key(block);
        let mut high = Block::EMPTY;
        if from < BLOCK_RUNS {
            self.blocks[block as usize].move_to(from, &mut high);
        }
        let moved = high.ids;
        let len = high.len;
        let number = self.add_block(high);
        moved[..len].iter().for_each(|&id| runs[id].block = number);
        self.file(block, old);
        self.file(number, None);
        if at > from || at == BLOCK_RUNS { (number, at - from) } else { (block, at) }
    }

    /// Moves all runs of the block `high`, which follows `low`, into `low`.
    fn merge(&mut self, runs: &mut Runs, low: u32, high: u32) {
        let (old_low, old_high) = (self.key(low), self.key(high));
        let mut from = std::mem::replace(&mut self.blocks[high as usize], Block::EMPTY);
        from.ids[..from.len].iter().for_each(|&id| runs[id].block = low);
        from.move_to(0, &mut self.blocks[low as usize]);
        self.file(high, old_high);
        self.file(low, old_low);
        self.free.push(high);
    }

    /// Checks that the index contains the runs from `first` on and no others. Panics otherwise.
    pub(super) fn check(&self, runs: &Runs, first: u32) {
        let mut id = first;
        for (&start, &number) in &self.by_start {
            let block = &self.blocks[number as usize];
            assert!(block.len > 0 && block.starts[0] == start, "the tree knows where a block begins");
            assert_eq!(self.dirty.contains(&start), block.dirty != 0, "the tree knows which blocks have dirty runs");
            for at in 0..block.len {
                let run = &runs[id];
                assert_eq!(
                    (block.ids[at], block.starts[at], number),
                    (id, run.page, run.block),
                    "a block knows its runs"
                );
                assert_eq!(block.dirty >> at & 1 == 1, run.is_dirty(), "a block knows which of its runs are dirty");
                id = run.behind;
            }
            assert!(
                block.len == BLOCK_RUNS || block.dirty >> block.len == 0,
                "there are at most as many dirty bits as runs"
            );
        }
        assert_eq!(id, NIL, "the index has every run");
        assert_eq!(self.blocks.len(), self.by_start.len() + self.free.len(), "every block is in the tree or free");
        assert!(self.dirty.iter().all(|start| self.by_start.contains_key(start)), "dirty blocks are blocks");
    }
}
