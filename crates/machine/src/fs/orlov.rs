//! Choice of the group in which a new directory or file gets its inode.
//!
//! Directories follow Orlov's method (Corbet, "The Orlov block allocator", LWN 2002). Top-level
//! directories are spread over the groups: the search begins at a random group. It considers the
//! groups with at least the average number of free blocks and inodes, and takes the one with the
//! fewest directories. Other directories stay near their parent. They use another group if the
//! parent's group has too many directories or too little free space. With ext3, they also use
//! another group if the parent's group has too much debt: it got many directories, but few files.
//!
//! Files use the group of their directory. If this group is full, ext3 selects another group by a
//! quadratic hash. If groups of ext4 store their tables together, these groups form a unit. The
//! rules then apply to units instead of groups. Inodes fill the tables of a unit from the beginning
//! (Mathur et al., "The new ext4 filesystem", OLS 2007; Documentation/filesystems/ext4).

use super::groups::Unit;
use super::{Effects, FileSystem, FsError, Ino};

/// In the computation of the largest debt, a directory counts as at least this many blocks.
const DIRECTORY_BLOCKS_MIN: u64 = 256;
/// In the computation of the largest debt, a directory counts as this many inodes.
const DIRECTORY_INODES: u32 = 64;

impl FileSystem {
    /// Takes an inode for a directory or file in `parent`. If `group` is given, takes it from this
    /// group. Returns the inode's number, and records the blocks that are read and changed.
    pub(super) fn take_inode(
        &mut self,
        parent: Ino,
        directory: bool,
        group: Option<u32>,
        effects: &mut Effects,
    ) -> Result<u32, FsError> {
        if self.groups.total.free_inodes == 0 {
            return Err(FsError::NoInodes);
        }
        let group =
            group.or_else(|| if directory { self.group_for_directory(parent) } else { self.group_for_file(parent) });
        let group =
            group.or_else(|| self.groups.list.iter().position(|group| group.free_inodes > 0).map(|at| at as u32));
        let group = group.ok_or(FsError::NoInodes)?;
        let bitmap = self.geometry.inode_bitmap(group);
        if self.groups.first_use_of_inodes(group) {
            effects.read(bitmap);
        }
        let (index, shared) = self.groups.take_inode(&self.geometry, group, directory).ok_or(FsError::NoInodes)?;
        effects.dirty(bitmap);
        effects.dirty(self.geometry.descriptor(group));
        let number = group * self.geometry.inodes_per_group + index;
        let table = self.geometry.inode_block(number);
        if shared {
            effects.read(table);
        }
        effects.dirty(table);
        Ok(number)
    }

    pub(super) fn group_of_inode(&self, number: u32) -> u32 {
        number / self.geometry.inodes_per_group
    }

    fn unit_of(&self, ino: Ino) -> u32 {
        self.group_of_inode(self.inode(ino).number) / self.groups.unit_groups
    }

    /// Returns the first group of a unit with a free inode.
    fn first_in_unit(&self, unit: u32) -> Option<u32> {
        let first = unit * self.groups.unit_groups;
        let end = (first + self.groups.unit_groups).min(self.groups.count());
        (first..end).find(|group| self.groups.list[*group as usize].free_inodes > 0)
    }

    fn group_for_directory(&mut self, parent: Ino) -> Option<u32> {
        let unit = if parent == self.root() { self.unit_at_top() } else { self.unit_near(parent) };
        unit.or_else(|| self.unit_with_average(parent)).and_then(|unit| self.first_in_unit(unit))
    }

    fn average(&self) -> Unit {
        let (sums, units) = (self.groups.total, self.groups.units.len() as u64);
        Unit {
            free_blocks: sums.free_blocks / units,
            free_inodes: sums.free_inodes / units,
            directories: sums.directories / units,
        }
    }

    /// Returns the unit for a top-level directory. Among the units with at least the average number
    /// of free blocks and inodes, this is the unit with the fewest directories. The search begins
    /// at a random unit.
    fn unit_at_top(&mut self) -> Option<u32> {
        let units = self.groups.units.len() as u64;
        let (start, average) = (self.random.below(units), self.average());
        let mut best: Option<(u64, u32)> = None;
        for step in 0..units {
            let number = ((start + step) % units) as u32;
            let unit = self.groups.units[number as usize];
            let fit = unit.free_inodes > 0
                && unit.free_inodes >= average.free_inodes
                && unit.free_blocks >= average.free_blocks;
            if fit && best.is_none_or(|(directories, _)| unit.directories < directories) {
                best = Some((unit.directories, number));
                if unit.directories == 0 {
                    break;
                }
            }
        }
        best.map(|(_, number)| number)
    }

    /// Returns the unit for a directory near its parent. This is the first unit, from the parent's
    /// unit on, that has enough free space and not too many directories.
    fn unit_near(&self, parent: Ino) -> Option<u32> {
        let (units, groups) = (self.groups.units.len() as u32, u64::from(self.groups.unit_groups));
        let average = self.average();
        let inodes = u64::from(self.geometry.inodes_per_group) * groups;
        let directories_max = average.directories + inodes / 16;
        let free_inodes_min = average.free_inodes.saturating_sub(inodes / 4).max(1);
        let free_blocks_min = average.free_blocks.saturating_sub(u64::from(super::GROUP_BLOCKS) * groups / 4);
        let debt_max = self.debt_max();
        let start = self.overflow_or_own_unit(parent);
        (0..units).map(|step| (start + step) % units).find(|number| {
            let unit = self.groups.units[*number as usize];
            let in_debt = groups == 1 && self.groups.list[*number as usize].debt >= debt_max;
            unit.directories < directories_max
                && unit.free_inodes >= free_inodes_min
                && unit.free_blocks >= free_blocks_min
                && !in_debt
        })
    }

    /// Returns the largest debt of a group: the number of directories that it may get before it
    /// must get files.
    fn debt_max(&self) -> u32 {
        let used = self.geometry.blocks - self.groups.total.free_blocks;
        let per_directory = (used / self.groups.total.directories.max(1)).max(DIRECTORY_BLOCKS_MIN);
        let by_blocks = u64::from(super::GROUP_BLOCKS) / per_directory;
        let by_inodes = self.geometry.inodes_per_group / DIRECTORY_INODES;
        (by_blocks as u32).min(by_inodes).clamp(1, 255)
    }

    fn unit_with_average(&self, parent: Ino) -> Option<u32> {
        let (units, average) = (self.groups.units.len() as u32, self.average());
        let start = self.unit_of(parent);
        (0..units).map(|step| (start + step) % units).find(|number| {
            let free = self.groups.units[*number as usize].free_inodes;
            free > 0 && free >= average.free_inodes
        })
    }

    fn overflow_or_own_unit(&self, parent: Ino) -> u32 {
        let overflow = self.inode(parent).directory.as_ref().and_then(|directory| directory.overflow_unit);
        overflow.unwrap_or_else(|| self.unit_of(parent))
    }

    fn group_for_file(&mut self, parent: Ino) -> Option<u32> {
        if self.groups.unit_groups > 1 { self.group_for_file_in_unit(parent) } else { self.group_by_hash(parent) }
    }

    /// Returns a group in the parent's unit. If this unit is full, returns a group in another unit,
    /// and stores the other unit for the directory's next file.
    fn group_for_file_in_unit(&mut self, parent: Ino) -> Option<u32> {
        let near_parent = self.first_in_unit(self.unit_of(parent));
        near_parent.or_else(|| self.first_in_unit(self.overflow_or_own_unit(parent))).or_else(|| {
            let unit = self.unit_near(parent).or_else(|| self.unit_with_average(parent))?;
            if let Some(directory) = self.inode_mut(parent).directory.as_mut() {
                directory.overflow_unit = Some(unit);
            }
            self.first_in_unit(unit)
        })
    }

    /// Returns the parent's group if it has free inodes and blocks. Otherwise tries groups at
    /// doubling distances from a start that depends on the parent's number. Files of different
    /// directories are therefore spread.
    fn group_by_hash(&self, parent: Ino) -> Option<u32> {
        let number = self.inode(parent).number;
        let (home, groups) = (self.group_of_inode(number), self.groups.count());
        let fits = |group: u32| {
            let group = &self.groups.list[group as usize];
            group.free_inodes > 0 && group.free_blocks > 0
        };
        if fits(home) {
            return Some(home);
        }
        let mut group = (home + number) % groups;
        let mut step = 1;
        while step < groups {
            group = (group + step) % groups;
            if fits(group) {
                return Some(group);
            }
            step *= 2;
        }
        (0..groups).map(|step| (home + step) % groups).find(|group| self.groups.list[*group as usize].free_inodes > 0)
    }
}
