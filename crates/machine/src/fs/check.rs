//! Checks that the parts of a file system agree.

use super::bitmap::Bitmap;
use super::inode::{Ahead, Inode};
use super::{BlockRun, FileSystem};

impl FileSystem {
    /// Checks all invariants. It is slow, and meant for tests.
    ///
    /// # Panics
    /// If an invariant is broken: a block has two owners, or is in use without an owner; free
    /// counts disagree with bitmaps; or the entries of a directory disagree with the inodes in it.
    pub fn check(&self) {
        self.check_blocks();
        self.check_inodes();
        for inode in self.inodes.iter().filter(|inode| inode.in_use) {
            inode.map.check();
            if let Some(directory) = &inode.directory {
                directory.check();
                // A directory may have one block without names. The block was added, but then
                // adding the name failed. The next name that needs a block uses this block.
                let waiting = inode.size / crate::PAGE_BYTES - u64::from(directory.pages);
                assert!(inode.size % crate::PAGE_BYTES == 0 && waiting <= 1);
            }
        }
    }

    fn check_blocks(&self) {
        let mut owned: Vec<Bitmap> = (0..self.groups.count())
            .map(|group| {
                let mut bits = Bitmap::new(self.geometry.group_blocks(group));
                for (start, count) in self.geometry.used_at_birth(group) {
                    bits.set(*start, *count);
                }
                bits
            })
            .collect();
        let mut preallocated = 0;
        let mut mark_owned = |run: BlockRun| {
            for block in run.block..run.block + run.blocks {
                owned[self.geometry.group_of(block) as usize].set(self.geometry.offset_of(block), 1);
            }
        };
        for inode in self.inodes.iter().filter(|inode| inode.in_use) {
            inode.map.runs().for_each(&mut mark_owned);
            if let Ahead::Preallocated { block, count, .. } = inode.ahead {
                preallocated += u64::from(count);
                mark_owned(BlockRun { block, blocks: count.into() });
            }
        }
        for (block, count) in &self.locality {
            preallocated += u64::from(*count);
            mark_owned(BlockRun { block: *block, blocks: (*count).into() });
        }
        assert_eq!(preallocated, self.preallocated);
        let mut free = 0;
        for group in 0..self.groups.count() {
            let kept = self.groups.copy_of_bits(&self.geometry, group);
            let bits = &owned[group as usize];
            for bit in 0..self.geometry.group_blocks(group) {
                assert_eq!(
                    bits.is_set(bit),
                    kept.is_set(bit),
                    "block {bit} of group {group}: the owner and the bitmap agree"
                );
            }
            assert_eq!(bits.count_clear(), self.groups.list[group as usize].free_blocks);
            free += u64::from(bits.count_clear());
        }
        assert_eq!(free, self.groups.total.free_blocks);
        assert_eq!(free, self.groups.units.iter().map(|unit| unit.free_blocks).sum::<u64>());
        let windows: Vec<_> = self.windows.iter().map(|(start, blocks)| (*start, start + u64::from(*blocks))).collect();
        assert!(windows.windows(2).all(|pair| pair[0].1 <= pair[1].0), "windows overlap");
    }

    fn check_inodes(&self) {
        let in_use: Vec<&Inode> = self.inodes.iter().filter(|inode| inode.in_use).collect();
        let mut free = 0;
        for group in 0..self.groups.count() {
            let mut bits = Bitmap::new(self.geometry.inodes_per_group);
            if group == 0 {
                bits.set(0, super::RESERVED_INODES);
            }
            for inode in in_use.iter().filter(|inode| self.group_of_inode(inode.number) == group) {
                let index = inode.number % self.geometry.inodes_per_group;
                if group > 0 || index >= super::RESERVED_INODES {
                    bits.set(index, 1);
                }
            }
            let kept = self.groups.copy_of_inode_bits(&self.geometry, group);
            assert!((0..self.geometry.inodes_per_group).all(|bit| bits.is_set(bit) == kept.is_set(bit)));
            assert_eq!(bits.count_clear(), self.groups.list[group as usize].free_inodes);
            free += u64::from(bits.count_clear());
        }
        assert_eq!(free, self.groups.total.free_inodes);
        let directories = in_use.iter().filter(|inode| inode.directory.is_some()).count() as u64;
        assert_eq!(directories, self.groups.total.directories);
        assert_eq!(directories, self.groups.units.iter().map(|unit| unit.directories).sum::<u64>());
        let mut entries = vec![0; self.inodes.len()];
        for inode in in_use.iter().filter(|inode| inode.number != super::ROOT_NUMBER) {
            entries[inode.parent.0 as usize] += 1;
        }
        for (inode, entries) in self.inodes.iter().zip(entries) {
            assert_eq!(inode.directory.as_ref().map_or(0, |directory| directory.entries), entries);
        }
    }
}
