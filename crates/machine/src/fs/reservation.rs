//! ext3's allocation of blocks one by one, with reservation windows.
//!
//! Cao et al. describe the windows ("State of the Art: Where we are with the Ext3 filesystem", OLS
//! 2005). A file that is being written has a window: a range of blocks that does not overlap the
//! windows of other files. The first window has 8 blocks. When a window is used up, the next window
//! lies after it. If the file got more than half of the blocks of the previous window, the next
//! window is twice as long, up to 1024 blocks. An indirect block is taken just before the first
//! block that it lists. Indirect blocks therefore lie between the data.

use super::inode::Ahead;
use super::map::{Extent, Tree};
use super::{Block, Effects, FileSystem, FsError, Ino, indirect};

/// Number of blocks of the first window of a file.
const WINDOW_BLOCKS: u32 = 8;
/// Maximum number of blocks of a window.
const WINDOW_BLOCKS_MAX: u32 = 1024;

/// The window of a file that is being written. During an allocation, the inode does not contain it.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    start: Block,
    blocks: u32,
    hits: u32,
}

impl FileSystem {
    /// Allocates blocks for `count` pages that have no blocks, and the indirect blocks for these
    /// pages.
    pub(super) fn allocate_indirect(
        &mut self,
        ino: Ino,
        mut page: u32,
        count: u32,
        effects: &mut Effects,
    ) -> Result<(), FsError> {
        let end = page + count;
        while page < end {
            let leaf_end = indirect::leaf_end(page).min(end);
            let goal = self.goal_for(ino, page);
            self.add_indirect(ino, page, goal, effects)?;
            while page < leaf_end {
                let goal = self.goal_for(ino, page);
                let (block, pages) = self.take_in_window(ino, goal, leaf_end - page, effects)?;
                self.map_blocks(ino, Extent { page, pages, block, unwritten: false }, effects)?;
                page += pages;
                self.remember(ino, page, block + u64::from(pages));
            }
        }
        if self.inode(ino).writers == 0 {
            self.discard_ahead(ino);
        }
        Ok(())
    }

    /// Returns the goal for a page: the block after the last written page. If there is none, the
    /// block after the preceding extent. Otherwise, a block in the inode's group.
    fn goal_for(&self, ino: Ino, page: u32) -> Block {
        let inode = self.inode(ino);
        match inode.ahead {
            Ahead::Window { next_page, next_block, .. } if next_page == page => next_block,
            _ => inode.map.before(page).map_or_else(|| self.goal_of_inode(ino), |before| before.block_end()),
        }
    }

    fn remember(&mut self, ino: Ino, page: u32, block: Block) {
        if let Ahead::Window { next_page, next_block, .. } = &mut self.inode_mut(ino).ahead {
            (*next_page, *next_block) = (page, block);
        }
    }

    /// Adds the missing indirect blocks on the way to `page`, and changes the last of them. Returns
    /// the goal for the next block.
    pub(super) fn add_indirect(
        &mut self,
        ino: Ino,
        page: u32,
        mut goal: Block,
        effects: &mut Effects,
    ) -> Result<Block, FsError> {
        if page < indirect::DIRECT {
            return Ok(goal);
        }
        let mut tree = match std::mem::take(&mut self.inode_mut(ino).map.tree) {
            Tree::Indirect(tree) => tree,
            _ => Box::default(),
        };
        let mut result = Ok(());
        let mut above = None;
        for place in indirect::path(page) {
            if let Some(block) = tree.get(place) {
                effects.read(block);
                above = Some(block);
                continue;
            }
            let taken = if self.inode(ino).directory.is_some() {
                self.take_near(goal, effects)
            } else {
                self.take_in_window(ino, goal, 1, effects).map(|(block, _)| block)
            };
            match taken {
                Ok(block) => {
                    above.iter().for_each(|above| effects.dirty(*above));
                    effects.dirty(block);
                    tree.set(place, block);
                    goal = block + 1;
                    self.remember(ino, page, goal);
                    above = Some(block);
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        above.iter().for_each(|leaf| effects.dirty(*leaf));
        self.inode_mut(ino).map.tree = Tree::Indirect(tree);
        result.map(|()| goal)
    }

    /// Takes up to `count` blocks in one run, from the file's window or from its next window.
    fn take_in_window(
        &mut self,
        ino: Ino,
        goal: Block,
        count: u32,
        effects: &mut Effects,
    ) -> Result<(Block, u32), FsError> {
        let goal = goal.min(self.geometry.blocks - 1);
        let mut window = match self.inode(ino).ahead {
            Ahead::Window { start, blocks, hits, .. } => Window { start, blocks, hits },
            _ => Window::default(),
        };
        let mut free = self.free_in(window, goal);
        if free.is_none() {
            if window.blocks > 0 {
                self.windows.remove(&window.start);
            }
            let size = match window.blocks {
                0 => WINDOW_BLOCKS,
                blocks if window.hits > blocks / 2 => (blocks * 2).clamp(WINDOW_BLOCKS, WINDOW_BLOCKS_MAX),
                blocks => blocks.max(WINDOW_BLOCKS),
            };
            window = self.find_window(goal, size).unwrap_or_default();
            if window.blocks > 0 {
                self.windows.insert(window.start, window.blocks);
                free = self.free_in(window, window.start);
            }
        }
        let Window { start, blocks, hits } = window;
        let Some((block, run)) = free else {
            self.inode_mut(ino).ahead = Ahead::Nothing;
            return self.take_near(goal, effects).map(|block| (block, 1));
        };
        let taken = run.min(count);
        self.groups.take(&self.geometry, block, taken);
        self.touch(self.geometry.group_of(block), effects);
        let (next_page, next_block) = (u32::MAX, block + u64::from(taken));
        let hits = hits + taken;
        self.inode_mut(ino).ahead = Ahead::Window { start, blocks, hits, next_page, next_block };
        Ok((block, taken))
    }

    /// Returns the first run of free blocks of a window from `goal` on.
    fn free_in(&mut self, window: Window, goal: Block) -> Option<(Block, u32)> {
        let end = window.start + u64::from(window.blocks);
        if !(window.start..end).contains(&goal) {
            return None;
        }
        let group = self.geometry.group_of(goal);
        let block = self.groups.next_free(&self.geometry, group, self.geometry.offset_of(goal))?;
        let run = self.groups.run_at(&self.geometry, block);
        (block < end).then(|| (block, run.min((end - block) as u32)))
    }

    /// Returns the first window of `size` blocks at or after `goal` that begins with a free block
    /// and does not overlap another window.
    fn find_window(&mut self, goal: Block, size: u32) -> Option<Window> {
        let (first, groups) = (self.geometry.group_of(goal), self.groups.count());
        for step in 0..=groups {
            let group = (first + step) % groups;
            let end = self.geometry.first_block(group) + u64::from(self.geometry.group_blocks(group));
            let mut offset = if step == 0 { self.geometry.offset_of(goal) } else { 0 };
            while let Some(start) = self.groups.next_free(&self.geometry, group, offset) {
                let before = self.windows.range(..=start).next_back().map(|(at, blocks)| at + u64::from(*blocks));
                let after = self.windows.range(start..).next().map(|(at, blocks)| (*at, at + u64::from(*blocks)));
                let blocked = before.filter(|before| *before > start);
                let blocked = blocked.or(after.filter(|(at, _)| *at - start < size.into()).map(|(_, end)| end));
                match blocked {
                    None => return Some(Window { start, blocks: size.min((end - start) as u32), hits: 0 }),
                    Some(next) if next >= end => break,
                    Some(next) => offset = self.geometry.offset_of(next),
                }
            }
        }
        None
    }
}
