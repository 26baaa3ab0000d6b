//! ext4's allocation of many blocks at a time.
//!
//! The method is described by Kumar et al. ("Ext4 block and inode allocator improvements", OLS
//! 2008). A request is rounded up to a chunk, whose length depends on the size of the file. The
//! unused part of the chunk is reserved for the file. The search begins after the file's last
//! extent. If this fails, it begins where the last allocation for a large file ended. The search
//! prefers a free chunk at a multiple of its size, then any run that is long enough, then the
//! longest run. Small files share chunks of 2 MiB in order of arrival. They are therefore adjacent,
//! even if they are in different directories.
//!
//! Not modelled: several chunks that are reserved for one file at a time; the order of free chunks
//! by size within a group (the model takes the first that fits); and locality groups of more than
//! one CPU (writeback is one thread).

use super::inode::Ahead;
use super::map::Extent;
use super::{Block, Effects, FileSystem, FsError, Ino};

/// Number of pages below which a file shares chunks with other files.
const STREAM_PAGES: u32 = 16;
/// Maximum number of blocks of a chunk: 2048 blocks, which are 8 MiB.
const CHUNK_BLOCKS_MAX: u32 = 2048;
/// Number of blocks of a chunk that small files share: 512 blocks, which are 2 MiB.
const LOCALITY_BLOCKS: u32 = 512;
/// Maximum number of chunks for small files that the allocator remembers because they have free
/// blocks.
const LOCALITY_CHUNKS_MAX: usize = 8;
/// Maximum length at which the search looks for a free run at a multiple of its length, blocks.
const ALIGNED_BLOCKS_MAX: u32 = 8192;
/// Maximum number of groups in which the search looks for the longest run, if no run is long
/// enough.
const LONGEST_GROUPS: u32 = 64;

impl FileSystem {
    /// Allocates blocks for `count` pages from `page` on that have none.
    pub(super) fn allocate_extents(
        &mut self,
        ino: Ino,
        (mut page, mut count): (u32, u32),
        unwritten: bool,
        effects: &mut Effects,
    ) -> Result<(), FsError> {
        while count > 0 {
            let (block, pages) = match self.take_for(ino, page, count) {
                Some(taken) => taken,
                None => {
                    self.discard_all_ahead();
                    self.take_for(ino, page, count).ok_or(FsError::NoSpace)?
                }
            };
            self.touch(self.geometry.group_of(block), effects);
            self.map_blocks(ino, Extent { page, pages, block, unwritten }, effects)?;
            page += pages;
            count -= pages;
        }
        Ok(())
    }

    /// Takes one run of blocks for `page` and for as many of the following pages as possible, up to
    /// `count` pages.
    fn take_for(&mut self, ino: Ino, page: u32, count: u32) -> Option<(Block, u32)> {
        if let Some(taken) = self.take_preallocated(ino, page, count) {
            return Some(taken);
        }
        let inode = self.inode(ino);
        let size = inode.size.div_ceil(crate::PAGE_BYTES).min(u32::MAX.into()) as u32;
        let size = size.max(page + count);
        let closed = inode.writers == 0;
        let shares = size < STREAM_PAGES && (!closed || self.config.preallocate_closed);
        if shares && let Some(taken) = self.take_shared(ino, count) {
            return Some(taken);
        }
        let (start, want) = if closed {
            (page, count.min(CHUNK_BLOCKS_MAX - page % CHUNK_BLOCKS_MAX))
        } else {
            self.chunk(ino, page, count, size)
        };
        let (block, got) = self.find_chunk(ino, start, want)?;
        self.groups.take(&self.geometry, block, got);
        self.stream_goal = Some(block + u64::from(got));
        let start = if page - start < got { start } else { page };
        self.discard_ahead(ino);
        self.preallocated += u64::from(got);
        self.inode_mut(ino).ahead = Ahead::Preallocated { page: start, block, count: got };
        self.take_preallocated(ino, page, count)
    }

    /// Takes blocks that are reserved for this file. Then reserved blocks may be left before and
    /// after the taken blocks. In this case, frees the blocks before them.
    fn take_preallocated(&mut self, ino: Ino, page: u32, count: u32) -> Option<(Block, u32)> {
        let Ahead::Preallocated { page: start, block, count: kept } = self.inode(ino).ahead else { return None };
        if page < start || page - start >= kept {
            return None;
        }
        let before = page - start;
        let taken = count.min(kept - before);
        let behind = kept - before - taken;
        let at = block + u64::from(before);
        self.preallocated -= u64::from(taken);
        self.inode_mut(ino).ahead = if behind > 0 {
            if before > 0 {
                self.preallocated -= u64::from(before);
                self.groups.give(&self.geometry, block, before);
            }
            Ahead::Preallocated { page: page + taken, block: at + u64::from(taken), count: behind }
        } else if before > 0 {
            Ahead::Preallocated { page: start, block, count: before }
        } else {
            Ahead::Nothing
        };
        Some((at, taken))
    }

    /// Takes blocks from a shared chunk for small files: the nearest chunk that has enough free
    /// blocks.
    fn take_shared(&mut self, ino: Ino, count: u32) -> Option<(Block, u32)> {
        let goal = self.goal_of_inode(ino);
        let fits = self.locality.iter().enumerate().filter(|(_, (_, left))| *left >= count);
        let mut best = fits.min_by_key(|(_, (block, _))| block.abs_diff(goal)).map(|(at, _)| at);
        if best.is_none() {
            let (block, got) = self.find_free(goal, LOCALITY_BLOCKS)?;
            if got < count {
                return None;
            }
            if self.locality.len() == LOCALITY_CHUNKS_MAX {
                let (block, left) = self.locality.remove(0);
                self.preallocated -= u64::from(left);
                self.groups.give(&self.geometry, block, left);
            }
            self.groups.take(&self.geometry, block, got);
            self.preallocated += u64::from(got);
            self.locality.push((block, got));
            best = Some(self.locality.len() - 1);
        }
        let at = best?;
        let (block, left) = self.locality[at];
        self.preallocated -= u64::from(count);
        if left == count {
            self.locality.remove(at);
        } else {
            self.locality[at] = (block + u64::from(count), left - count);
        }
        Some((block, count))
    }

    /// Returns the range of pages to allocate when `count` pages from `page` on need blocks. The
    /// range is a chunk, without the pages that already have blocks. Larger files have larger
    /// chunks.
    fn chunk(&self, ino: Ino, page: u32, count: u32, size: u32) -> (u32, u32) {
        let aligned = |chunk: u32| (page - page % chunk, chunk);
        let (start, chunk) = match size {
            0..=256 => (0, size.next_power_of_two().max(4)),
            257..=1024 => aligned(512),
            1025..=2048 => aligned(1024),
            _ => aligned(CHUNK_BLOCKS_MAX),
        };
        let wanted = (page + count).min(page - page % CHUNK_BLOCKS_MAX + CHUNK_BLOCKS_MAX);
        let end = (start + chunk).max(wanted);
        let map = &self.inode(ino).map;
        let start = map.before(page).map_or(start, |before| before.end().max(start));
        let hole = map.hole(page, end).map_or(1, |(_, pages)| pages);
        (start, page + hole - start)
    }

    /// Finds free blocks for the chunk of `want` pages from `start` on.
    fn find_chunk(&mut self, ino: Ino, start: u32, want: u32) -> Option<(Block, u32)> {
        let behind = self.inode(ino).map.before(start).filter(|before| before.end() == start);
        if let Some(before) = behind.filter(|before| before.block_end() < self.geometry.blocks) {
            let goal = before.block_end();
            if self.groups.run_at(&self.geometry, goal) >= want {
                return Some((goal, want));
            }
        }
        let goal = self.stream_goal.unwrap_or_else(|| self.goal_of_inode(ino));
        self.find_free(goal, want)
    }

    /// Finds `want` free blocks in one run, or the longest run, from the group of `goal` on.
    fn find_free(&mut self, goal: Block, want: u32) -> Option<(Block, u32)> {
        let (first, groups) = (self.geometry.group_of(goal.min(self.geometry.blocks - 1)), self.groups.count());
        let mut order = (0..groups).map(|step| (first + step) % groups);
        if want.is_power_of_two() && want <= ALIGNED_BLOCKS_MAX {
            let found = order.clone().find_map(|group| self.groups.find_aligned(&self.geometry, group, want));
            if let Some(block) = found {
                return Some((block, want));
            }
        }
        if let Some(block) = order.clone().find_map(|group| self.groups.find_run(&self.geometry, group, want)) {
            return Some((block, want));
        }
        let mut best = (0, 0);
        let mut looked = 0;
        while let Some(group) = order.next().filter(|_| looked < LONGEST_GROUPS) {
            let run = self.groups.longest_run(&self.geometry, group);
            looked += u32::from(run.1 > 0);
            if run.1 > best.1 {
                best = run;
            }
        }
        Some((best.0, best.1.min(want))).filter(|best| best.1 > 0)
    }
}
