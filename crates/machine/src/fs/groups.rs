//! Free blocks and inodes of block groups, and the totals that the allocator uses.

use super::bitmap::Bitmap;
use super::geometry::Geometry;
use super::{Block, FsConfig};

/// A group. Its bitmaps are created when they are first needed.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) free_blocks: u32,
    pub(super) free_inodes: u32,
    /// Number of recently created directories that got no files yet: Orlov's debt.
    pub(super) debt: u32,
    /// Upper bound for the length of a run of free blocks in the group.
    run_max: u32,
    blocks: Option<Bitmap>,
    inodes: Option<Bitmap>,
    /// Whether the block bitmap on the medium was never written, and therefore needs no read. The
    /// next field is the same for the inode bitmap.
    block_uninit: bool,
    inode_uninit: bool,
}

/// Totals of a unit. A unit is one group, or the groups that store their tables together. The
/// allocator spreads directories over units.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unit {
    pub(super) free_blocks: u64,
    pub(super) free_inodes: u64,
    pub(super) directories: u64,
}

/// All groups.
#[derive(Debug)]
pub(super) struct Groups {
    pub(super) list: Vec<Group>,
    pub(super) units: Vec<Unit>,
    /// Number of groups in a unit.
    pub(super) unit_groups: u32,
    pub(super) total: Unit,
}

impl Groups {
    pub(super) fn new(config: &FsConfig, geometry: &Geometry) -> Self {
        let unit_groups = config.flex_groups();
        let mut units = vec![Unit::default(); geometry.groups.div_ceil(unit_groups) as usize];
        let mut total = Unit::default();
        let list = (0..geometry.groups)
            .map(|number| {
                let bits = birth(geometry, number);
                let group = Group {
                    free_blocks: bits.count_clear(),
                    free_inodes: geometry.inodes_per_group,
                    debt: 0,
                    run_max: bits.longest_run().1,
                    blocks: None,
                    inodes: None,
                    block_uninit: config.uninit_groups()
                        && !geometry.holds_tables(number)
                        && number + 1 < geometry.groups,
                    inode_uninit: config.uninit_groups(),
                };
                for sums in [&mut total, &mut units[(number / unit_groups) as usize]] {
                    sums.free_blocks += u64::from(group.free_blocks);
                    sums.free_inodes += u64::from(group.free_inodes);
                }
                group
            })
            .collect();
        Self { list, units, unit_groups, total }
    }

    pub(super) fn count(&self) -> u32 {
        self.list.len() as u32
    }

    fn bits(&mut self, geometry: &Geometry, group: u32) -> &mut Bitmap {
        self.list[group as usize].blocks.get_or_insert_with(|| birth(geometry, group))
    }

    fn change(&mut self, group: u32, change: impl Fn(&mut Unit)) {
        change(&mut self.total);
        change(&mut self.units[(group / self.unit_groups) as usize]);
    }

    /// Takes blocks of one group.
    ///
    /// # Panics
    /// If one of them is in use, or they belong to several groups.
    pub(super) fn take(&mut self, geometry: &Geometry, block: Block, count: u32) {
        let group = geometry.group_of(block);
        self.bits(geometry, group).set(geometry.offset_of(block), count);
        self.list[group as usize].free_blocks -= count;
        self.change(group, |sums| sums.free_blocks -= u64::from(count));
    }

    /// Frees blocks of one group.
    ///
    /// # Panics
    /// If one of them is free, or they belong to several groups.
    pub(super) fn give(&mut self, geometry: &Geometry, block: Block, count: u32) {
        let group = geometry.group_of(block);
        self.bits(geometry, group).clear(geometry.offset_of(block), count);
        self.list[group as usize].free_blocks += count;
        self.list[group as usize].run_max = geometry.group_blocks(group);
        self.change(group, |sums| sums.free_blocks += u64::from(count));
    }

    /// Returns the length of the run of free blocks from `block` on, up to the end of the group.
    pub(super) fn run_at(&mut self, geometry: &Geometry, block: Block) -> u32 {
        let group = geometry.group_of(block);
        if self.list[group as usize].free_blocks == 0 {
            return 0;
        }
        self.bits(geometry, group).clear_run(geometry.offset_of(block))
    }

    /// Returns the first free block of a group from `offset` on.
    pub(super) fn next_free(&mut self, geometry: &Geometry, group: u32, offset: u32) -> Option<Block> {
        if self.list[group as usize].free_blocks == 0 {
            return None;
        }
        self.bits(geometry, group).next_clear(offset).map(|bit| geometry.first_block(group) + u64::from(bit))
    }

    /// Returns the first run of at least `want` free blocks in a group.
    pub(super) fn find_run(&mut self, geometry: &Geometry, group: u32, want: u32) -> Option<Block> {
        if self.list[group as usize].run_max < want {
            return None;
        }
        let found = self.bits(geometry, group).find_run(0, want);
        if found.is_none() {
            self.list[group as usize].run_max = want - 1;
        }
        found.map(|bit| geometry.first_block(group) + u64::from(bit))
    }

    /// Returns the first run of `want` free blocks in a group that begins at a multiple of `want`.
    /// `want` must be a power of two.
    pub(super) fn find_aligned(&mut self, geometry: &Geometry, group: u32, want: u32) -> Option<Block> {
        if self.list[group as usize].run_max < want {
            return None;
        }
        let found = self.bits(geometry, group).find_aligned(want);
        found.map(|bit| geometry.first_block(group) + u64::from(bit))
    }

    /// Returns the longest run of free blocks in a group.
    pub(super) fn longest_run(&mut self, geometry: &Geometry, group: u32) -> (Block, u32) {
        if self.list[group as usize].free_blocks == 0 {
            return (geometry.first_block(group), 0);
        }
        let (bit, count) = self.bits(geometry, group).longest_run();
        self.list[group as usize].run_max = count;
        (geometry.first_block(group) + u64::from(bit), count)
    }

    /// Returns whether the block bitmap of a group must be read. From now on, the bitmap counts as
    /// initialised.
    pub(super) fn first_use_of_blocks(&mut self, group: u32) -> bool {
        !std::mem::take(&mut self.list[group as usize].block_uninit)
    }

    /// Returns whether the inode bitmap of a group must be read. From now on, the bitmap counts as
    /// initialised.
    pub(super) fn first_use_of_inodes(&mut self, group: u32) -> bool {
        !std::mem::take(&mut self.list[group as usize].inode_uninit)
    }

    /// Takes the first free inode of a group. Returns its index. Also returns whether another inode
    /// in the same block of the inode table is in use.
    pub(super) fn take_inode(&mut self, geometry: &Geometry, group: u32, directory: bool) -> Option<(u32, bool)> {
        let group_state = &mut self.list[group as usize];
        if group_state.free_inodes == 0 {
            return None;
        }
        let bits = group_state.inodes.get_or_insert_with(|| Bitmap::new(geometry.inodes_per_group));
        let index = bits.next_clear(0)?;
        let first = index - index % geometry.inodes_per_block;
        let shared = (first..first + geometry.inodes_per_block).any(|other| bits.is_set(other));
        bits.set(index, 1);
        group_state.free_inodes -= 1;
        group_state.debt = if directory { (group_state.debt + 1).min(255) } else { group_state.debt.saturating_sub(1) };
        self.change(group, |sums| {
            sums.free_inodes -= 1;
            sums.directories += u64::from(directory);
        });
        Some((index, shared))
    }

    /// Frees an inode.
    pub(super) fn give_inode(&mut self, geometry: &Geometry, number: u32, directory: bool) {
        let (group, index) = (number / geometry.inodes_per_group, number % geometry.inodes_per_group);
        let group_state = &mut self.list[group as usize];
        let Some(inodes) = group_state.inodes.as_mut() else {
            unreachable!("a group with a used inode has a map of inodes")
        };
        inodes.clear(index, 1);
        group_state.free_inodes += 1;
        self.change(group, |sums| {
            sums.free_inodes += 1;
            sums.directories -= u64::from(directory);
        });
    }

    /// Returns a copy of the bitmap of a group's blocks, for checks.
    pub(super) fn copy_of_bits(&self, geometry: &Geometry, group: u32) -> Bitmap {
        self.list[group as usize].blocks.clone().unwrap_or_else(|| birth(geometry, group))
    }

    /// Returns a copy of the bitmap of a group's inodes, for checks.
    pub(super) fn copy_of_inode_bits(&self, geometry: &Geometry, group: u32) -> Bitmap {
        self.list[group as usize].inodes.clone().unwrap_or_else(|| Bitmap::new(geometry.inodes_per_group))
    }
}

/// Returns the block bitmap of a group in a new file system.
fn birth(geometry: &Geometry, group: u32) -> Bitmap {
    let mut bits = Bitmap::new(geometry.group_blocks(group));
    for (start, count) in geometry.used_at_birth(group) {
        bits.set(*start, *count);
    }
    bits
}
