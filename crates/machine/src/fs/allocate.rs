//! Allocation of blocks: the common part of ext3 and ext4. Freeing of blocks.

use super::inode::Ahead;
use super::map::{EXTENT_PAGES_MAX, Extent, Map};
use super::{Block, BlockRun, Effects, FileSystem, FsError, FsKind, Ino, indirect};

/// Number of pages of ext4's largest file: 16 TiB.
const EXT4_PAGES_MAX: u64 = u32::MAX as u64;
/// Number of parts of an ext3 group in which new files can begin. The process id selects the part.
const COLOURS: u32 = 16;

impl FileSystem {
    /// Allocates a block for each page of `page..page + pages` that has no block. If all pages have
    /// blocks, nothing changes.
    ///
    /// With ext4, writeback calls this method with ranges as long as possible, and many blocks are
    /// allocated at a time (`mballoc`). With ext3, write(2) calls it, and blocks are allocated one
    /// by one in windows (`reservation`). The caller must [set](Self::set_size) the file's size
    /// first.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]: the device is full. A part of the range may have got blocks.
    /// [`FsError::FileTooLarge`]: the range exceeds the largest file. Nothing is changed.
    ///
    /// # Panics
    /// If `ino` is not a file.
    pub fn allocate(&mut self, ino: Ino, page: u64, pages: u64, effects: &mut Effects) -> Result<(), FsError> {
        self.allocate_as(ino, (page, pages), false, effects)
    }

    /// Allocates blocks as [`allocate`](Self::allocate) does, but marks them as unwritten until
    /// [`convert`](Self::convert) is called. fallocate(2) allocates such blocks. Since Linux 5.6,
    /// ext4's writeback also allocates such blocks, and marks them as written when the data is on
    /// the disk.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    ///
    /// # Panics
    /// As [`allocate`](Self::allocate).
    pub fn allocate_unwritten(
        &mut self,
        ino: Ino,
        page: u64,
        pages: u64,
        effects: &mut Effects,
    ) -> Result<(), FsError> {
        self.allocate_as(ino, (page, pages), self.config.is_ext4(), effects)
    }

    fn allocate_as(
        &mut self,
        ino: Ino,
        (page, pages): (u64, u64),
        unwritten: bool,
        effects: &mut Effects,
    ) -> Result<(), FsError> {
        assert!(self.inode(ino).directory.is_none(), "{ino:?} is a directory");
        let pages_max = if self.config.is_ext4() { EXT4_PAGES_MAX } else { indirect::PAGES_MAX.min(EXT4_PAGES_MAX) };
        if page.checked_add(pages).is_none_or(|end| end > pages_max) {
            return Err(FsError::FileTooLarge { pages_max });
        }
        let (mut from, end) = (page as u32, (page + pages) as u32);
        while let Some((start, count)) = self.inode(ino).map.hole(from, end) {
            match self.config.kind {
                FsKind::Ext4 => self.allocate_extents(ino, (start, count), unwritten, effects)?,
                FsKind::Ext3 => self.allocate_indirect(ino, start, count, effects)?,
            }
            from = start + count;
            effects.change(self.inode_block(ino));
        }
        Ok(())
    }

    /// Returns whether any of these pages has an unwritten block.
    #[must_use]
    pub fn has_unwritten(&self, ino: Ino, page: u64, pages: u64) -> bool {
        let end = u32::try_from(page + pages).unwrap_or(u32::MAX);
        u32::try_from(page).is_ok_and(|page| self.inode(ino).map.unwritten(page, end).is_some())
    }

    /// Marks the blocks of these pages as written. This splits or shrinks unwritten extents. The
    /// caller makes the [inode's block](Self::inode_block) dirty. If the device has no room for a
    /// larger extent tree, the whole extent counts as written. ext4 fills the rest of the extent
    /// with zeroes in this case.
    pub fn convert(&mut self, ino: Ino, page: u64, pages: u64, effects: &mut Effects) {
        let end = u32::try_from(page + pages).unwrap_or(u32::MAX);
        let mut from = u32::try_from(page).unwrap_or(u32::MAX);
        let mut map = std::mem::take(&mut self.inode_mut(ino).map);
        while let Some((start, stop)) = map.unwritten(from, end) {
            map.dirty_leaf(start, effects);
            for new in map.write(start, stop, EXTENT_PAGES_MAX).into_iter().flatten() {
                map.insert_split(new);
                if self.grow_tree(&mut map, new, effects).is_err() {
                    map.take_back(new);
                }
            }
            from = stop;
        }
        self.inode_mut(ino).map = map;
    }

    /// Adds an inserted extent to the extent tree.
    fn grow_tree(&mut self, map: &mut Map, new: Extent, effects: &mut Effects) -> Result<(), FsError> {
        let mut blocks = Vec::new();
        for _ in 0..map.tree_blocks_needed(new.page) {
            match self.take_near(new.block_end(), effects) {
                Ok(block) => blocks.push(block),
                Err(error) => {
                    blocks.into_iter().for_each(|block| self.give_back(BlockRun { block, blocks: 1 }, effects));
                    return Err(error);
                }
            }
        }
        map.tree_add(new.page, blocks.into_iter(), effects);
        Ok(())
    }

    /// Records that blocks of `group` were allocated or freed.
    pub(super) fn touch(&mut self, group: u32, effects: &mut Effects) {
        let bitmap = self.geometry.block_bitmap(group);
        if self.groups.first_use_of_blocks(group) {
            effects.read(bitmap);
        }
        effects.dirty(bitmap);
        effects.dirty(self.geometry.descriptor(group));
    }

    /// Returns the goal for the first block of a file or directory: the start of its inode's group.
    /// If 16 or more ext4 groups store their tables together, directories use the first and files
    /// the second of these groups. With ext3, each process begins in one of several parts of the
    /// group.
    pub(super) fn goal_of_inode(&self, ino: Ino) -> Block {
        let inode = self.inode(ino);
        let mut group = self.group_of_inode(inode.number);
        if self.config.is_ext4() {
            if self.groups.unit_groups >= 16 {
                group -= group % self.groups.unit_groups;
                group = (group + u32::from(inode.directory.is_none())).min(self.groups.count() - 1);
            }
            return self.geometry.first_block(group);
        }
        let part = self.geometry.group_blocks(group) / COLOURS;
        self.geometry.first_block(group) + u64::from(self.colour % COLOURS * part)
    }

    /// Takes one block, the first free one from `goal` on.
    pub(super) fn take_near(&mut self, goal: Block, effects: &mut Effects) -> Result<Block, FsError> {
        let block = match self.find_near(goal) {
            Some(block) => block,
            None => {
                self.discard_all_ahead();
                self.find_near(goal).ok_or(FsError::NoSpace)?
            }
        };
        self.groups.take(&self.geometry, block, 1);
        self.touch(self.geometry.group_of(block), effects);
        Ok(block)
    }

    fn find_near(&mut self, goal: Block) -> Option<Block> {
        let goal = goal.min(self.geometry.blocks - 1);
        let (first, groups) = (self.geometry.group_of(goal), self.groups.count());
        let offset = self.geometry.offset_of(goal);
        let behind = self.groups.next_free(&self.geometry, first, offset);
        behind.or_else(|| {
            let mut others = (1..=groups).map(|step| (first + step) % groups);
            others.find_map(|group| self.groups.next_free(&self.geometry, group, 0))
        })
    }

    /// Adds blocks to the map of a file or directory.
    pub(super) fn map_blocks(&mut self, ino: Ino, new: Extent, effects: &mut Effects) -> Result<(), FsError> {
        let pages_max = if self.config.is_ext4() { EXTENT_PAGES_MAX } else { u32::MAX };
        let mut map = std::mem::take(&mut self.inode_mut(ino).map);
        let own_entry = map.insert(new, pages_max);
        let mut result = Ok(());
        if self.config.is_ext4() {
            if own_entry {
                result = self.grow_tree(&mut map, new, effects);
                if result.is_err() {
                    map.extents.retain(|extent| *extent != new);
                    self.give_back(BlockRun { block: new.block, blocks: new.pages.into() }, effects);
                }
            } else {
                map.dirty_leaf(new.page, effects);
            }
        }
        self.inode_mut(ino).map = map;
        result
    }

    /// Adds page number `page` to a directory.
    pub(super) fn add_directory_page(&mut self, ino: Ino, page: u32, effects: &mut Effects) -> Result<(), FsError> {
        let before = self.inode(ino).map.before(page);
        let mut goal = before.map_or_else(|| self.goal_of_inode(ino), |extent| extent.block_end());
        if !self.config.is_ext4() {
            goal = self.add_indirect(ino, page, goal, effects)?;
        }
        let block = self.take_near(goal, effects)?;
        effects.dirty(block);
        self.map_blocks(ino, Extent { page, pages: 1, block, unwritten: false }, effects)
    }

    /// Frees blocks.
    pub(super) fn give_back(&mut self, run: BlockRun, effects: &mut Effects) {
        let (mut block, end) = (run.block, run.block + run.blocks);
        while block < end {
            let group = self.geometry.group_of(block);
            let count = self.geometry.first_block(group + 1).min(end) - block;
            self.touch(group, effects);
            self.groups.give(&self.geometry, block, count as u32);
            block += count;
        }
    }

    /// Frees all blocks of a file or directory.
    pub(super) fn drop_blocks(&mut self, ino: Ino, effects: &mut Effects) {
        self.discard_ahead(ino);
        let map = std::mem::take(&mut self.inode_mut(ino).map);
        let tree = map.tree_blocks();
        for block in &tree {
            effects.read(*block);
        }
        for extent in &map.extents {
            self.give_back(BlockRun { block: extent.block, blocks: extent.pages.into() }, effects);
        }
        if self.inode(ino).directory.is_some() {
            for extent in &map.extents {
                (extent.block..extent.block_end()).for_each(|block| effects.forget(block));
            }
        }
        for block in tree {
            self.give_back(BlockRun { block, blocks: 1 }, effects);
            effects.forget(block);
        }
    }

    /// Frees the blocks that were reserved for later pages of a file.
    pub(super) fn discard_ahead(&mut self, ino: Ino) {
        match std::mem::take(&mut self.inode_mut(ino).ahead) {
            Ahead::Nothing => {}
            Ahead::Preallocated { block, count, .. } => {
                self.preallocated -= u64::from(count);
                self.groups.give(&self.geometry, block, count);
            }
            Ahead::Window { start, blocks, .. } => {
                if blocks > 0 {
                    self.windows.remove(&start);
                }
            }
        }
    }

    /// Frees all blocks that are reserved for later pages and later files. The allocator needs them
    /// when the device is nearly full.
    pub(super) fn discard_all_ahead(&mut self) {
        for slot in 0..self.inodes.len() as u32 {
            if matches!(self.inode(Ino(slot)).ahead, Ahead::Preallocated { .. }) {
                self.discard_ahead(Ino(slot));
            }
        }
        for (block, count) in std::mem::take(&mut self.locality) {
            self.preallocated -= u64::from(count);
            self.groups.give(&self.geometry, block, count);
        }
    }
}
