//! The positions of the superblocks, descriptors, bitmaps and inode tables of a new file system.

use super::{Block, BlockRun, FsConfig, FsError};
use crate::PAGE_SECTORS;

/// Number of blocks of a group: the number of bits in one block of 4 KiB.
pub(super) const GROUP_BLOCKS: u32 = 32768;
/// Number of group descriptors in a block, 32 bytes each.
const DESCRIPTORS_PER_BLOCK: u32 = 128;
/// Minimum number of blocks of the last group, besides its metadata. If the last group would be
/// smaller, the file system does not use it.
const LAST_GROUP_BLOCKS_MIN: u32 = 50;
/// Largest growth of a file system, as a multiple of its size. mke2fs reserves space for the
/// descriptors of this growth (mke2fs -E resize).
const GROWTH: u64 = 1024;
/// Maximum number of blocks that are reserved for the descriptors of a growth. One indirect block
/// must list all of them.
const RESERVED_DESCRIPTOR_BLOCKS_MAX: u64 = 1024;

/// Places of the metadata of a file system.
#[derive(Debug)]
pub(super) struct Geometry {
    pub(super) blocks: Block,
    pub(super) groups: u32,
    pub(super) inodes_per_group: u32,
    pub(super) inodes_per_block: u32,
    flex_groups: u32,
    descriptor_blocks: u32,
    reserved_descriptor_blocks: u32,
    block_bitmaps: Vec<Block>,
    inode_bitmaps: Vec<Block>,
    inode_tables: Vec<Block>,
    used: Vec<Vec<(u32, u32)>>,
    holds_tables: Vec<bool>,
}

impl Geometry {
    /// Computes the layout of a device of `capacity_sectors`.
    pub(super) fn new(config: &FsConfig, capacity_sectors: u64) -> Result<Self, FsError> {
        let too_small = FsError::TooSmall { capacity_sectors };
        let mut blocks = capacity_sectors / PAGE_SECTORS;
        if blocks > u64::from(u32::MAX) {
            return Err(FsError::TooLarge { capacity_sectors });
        }
        loop {
            let groups = blocks.div_ceil(GROUP_BLOCKS.into()) as u32;
            if groups == 0 {
                return Err(too_small);
            }
            let mut geometry = Self::sized(config, blocks, groups);
            let last = blocks - u64::from(groups - 1) * u64::from(GROUP_BLOCKS);
            let needed_blocks =
                geometry.backup_blocks(groups - 1) + 2 + geometry.table_blocks() + LAST_GROUP_BLOCKS_MIN;
            if last < u64::from(needed_blocks) {
                blocks = u64::from(groups - 1) * u64::from(GROUP_BLOCKS);
                continue;
            }
            return if geometry.place() { Ok(geometry) } else { Err(too_small) };
        }
    }

    fn sized(config: &FsConfig, blocks: Block, groups: u32) -> Self {
        let inodes_per_block = crate::PAGE_BYTES as u32 / config.inode_bytes;
        let inodes = (blocks * crate::PAGE_BYTES / config.bytes_per_inode).div_ceil(groups.into()) as u32;
        let inodes_per_group = inodes.max(16).next_multiple_of(inodes_per_block.max(8)).min(GROUP_BLOCKS);
        let descriptor_blocks = groups.div_ceil(DESCRIPTORS_PER_BLOCK);
        let grown = (blocks * GROWTH).min(u32::MAX.into()).div_ceil(GROUP_BLOCKS.into());
        let reserved = grown.div_ceil(DESCRIPTORS_PER_BLOCK.into()) - u64::from(descriptor_blocks);
        Self {
            blocks,
            groups,
            inodes_per_group,
            inodes_per_block,
            flex_groups: config.flex_groups(),
            descriptor_blocks,
            reserved_descriptor_blocks: reserved.min(RESERVED_DESCRIPTOR_BLOCKS_MAX) as u32,
            block_bitmaps: Vec::with_capacity(groups as usize),
            inode_bitmaps: Vec::with_capacity(groups as usize),
            inode_tables: Vec::with_capacity(groups as usize),
            used: vec![Vec::new(); groups as usize],
            holds_tables: vec![false; groups as usize],
        }
    }

    /// Places bitmaps and inode tables. Returns false if there is no room.
    fn place(&mut self) -> bool {
        for group in 0..self.groups {
            let backup = self.backup_blocks(group);
            if backup > 0 {
                self.used[group as usize].push((0, backup));
            }
        }
        for first in (0..self.groups).step_by(self.flex_groups as usize) {
            let members = self.flex_groups.min(self.groups - first);
            let mut cursor = self.first_block(first);
            let mut place = |geometry: &mut Self, count: u32| {
                let block = geometry.clear_of_backups(&mut cursor, count);
                cursor += u64::from(count);
                geometry.use_at_birth(BlockRun { block, blocks: count.into() });
                block
            };
            for _ in 0..members {
                let block = place(self, 1);
                self.block_bitmaps.push(block);
            }
            for _ in 0..members {
                let block = place(self, 1);
                self.inode_bitmaps.push(block);
            }
            for _ in 0..members {
                let block = place(self, self.table_blocks());
                self.inode_tables.push(block);
            }
            let end = self.first_block(first + members).min(self.blocks);
            if cursor > end {
                return false;
            }
        }
        true
    }

    /// Moves the cursor to the next position where `count` blocks fit without a backup of the
    /// superblock. Returns this position.
    fn clear_of_backups(&self, cursor: &mut Block, count: u32) -> Block {
        loop {
            let first = self.group_of((*cursor).min(self.blocks - 1));
            let last = self.group_of((*cursor + u64::from(count) - 1).min(self.blocks - 1));
            let hit = (first..=last).find(|group| {
                let backup = self.first_block(*group);
                let end = backup + u64::from(self.backup_blocks(*group));
                *cursor < end && backup < *cursor + u64::from(count)
            });
            match hit {
                Some(group) => *cursor = self.first_block(group) + u64::from(self.backup_blocks(group)),
                None => return *cursor,
            }
        }
    }

    /// Marks blocks as used in the new file system.
    pub(super) fn use_at_birth(&mut self, run: BlockRun) {
        let (mut block, end) = (run.block, (run.block + run.blocks).min(self.blocks));
        while block < end {
            let group = self.group_of(block);
            let count = (self.first_block(group + 1).min(end) - block) as u32;
            let offset = self.offset_of(block);
            self.used[group as usize].push((offset, count));
            self.holds_tables[group as usize] = true;
            block += u64::from(count);
        }
    }

    /// Returns the blocks of a group that are used in the new file system, as offsets and counts.
    pub(super) fn used_at_birth(&self, group: u32) -> &[(u32, u32)] {
        &self.used[group as usize]
    }

    /// Returns whether a group of the new file system contains other metadata than a superblock
    /// with its descriptors.
    pub(super) fn holds_tables(&self, group: u32) -> bool {
        self.holds_tables[group as usize]
    }

    fn table_blocks(&self) -> u32 {
        self.inodes_per_group / self.inodes_per_block
    }

    /// Returns the number of blocks of the superblock and descriptors at the beginning of a group.
    /// Groups 0, 1 and the powers of 3, 5 and 7 have them (sparse_super, mke2fs(8)).
    fn backup_blocks(&self, group: u32) -> u32 {
        let is_power_of = |base: u32| {
            let mut power = base;
            while power < group {
                power = power.saturating_mul(base);
            }
            power == group
        };
        if group <= 1 || [3, 5, 7].into_iter().any(is_power_of) {
            1 + self.descriptor_blocks + self.reserved_descriptor_blocks
        } else {
            0
        }
    }

    pub(super) fn group_of(&self, block: Block) -> u32 {
        (block / u64::from(GROUP_BLOCKS)) as u32
    }

    pub(super) fn offset_of(&self, block: Block) -> u32 {
        (block % u64::from(GROUP_BLOCKS)) as u32
    }

    pub(super) fn first_block(&self, group: u32) -> Block {
        u64::from(group) * u64::from(GROUP_BLOCKS)
    }

    /// Returns the number of blocks of a group. The last group may be shorter.
    pub(super) fn group_blocks(&self, group: u32) -> u32 {
        (self.blocks - self.first_block(group)).min(GROUP_BLOCKS.into()) as u32
    }

    pub(super) fn superblock(&self) -> Block {
        0
    }

    /// Returns the block that contains the descriptor of a group.
    pub(super) fn descriptor(&self, group: u32) -> Block {
        u64::from(1 + group / DESCRIPTORS_PER_BLOCK)
    }

    pub(super) fn block_bitmap(&self, group: u32) -> Block {
        self.block_bitmaps[group as usize]
    }

    pub(super) fn inode_bitmap(&self, group: u32) -> Block {
        self.inode_bitmaps[group as usize]
    }

    /// Returns the block of the inode table that holds inode `number`, counted from 0.
    pub(super) fn inode_block(&self, number: u32) -> Block {
        let (group, index) = (number / self.inodes_per_group, number % self.inodes_per_group);
        self.inode_tables[group as usize] + u64::from(index / self.inodes_per_block)
    }
}
