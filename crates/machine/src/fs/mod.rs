//! The layout of ext3 and ext4: the positions of files, directories and metadata on the device, and
//! the metadata blocks that an operation needs and changes.
//!
//! A [`FileSystem`] is a data structure. It has no time, does no I/O and contains no data. Every
//! operation adds two lists to [`Effects`]: the metadata blocks that it needs in memory, and the
//! metadata blocks that it changes. The caller reads these blocks, keeps them in memory and passes
//! them to the [journal](crate::journal). Descriptors and the superblock are in memory after mount,
//! so [`Effects::reads`] never contains them. If a block of the inode table has no inodes in use, a
//! new inode in the block needs no read, because the contents are known. With `uninit_groups`,
//! bitmaps of unused groups also need no read.
//!
//! | file | contents |
//! |---|---|
//! | `geometry` | places of superblocks, bitmaps and inode tables |
//! | `groups`, `bitmap` | free blocks and inodes |
//! | `orlov` | the group of a new inode |
//! | `directory`, `names` | the block of a directory in which a name is stored and found |
//! | `map`, `indirect` | lookup of a file's blocks |
//! | `allocate`, `mballoc`, `reservation` | allocation of blocks: common parts, ext4, ext3 |
//!
//! The model can reuse freed blocks at once. Linux reuses freed blocks only after the commit of the
//! transaction that freed them. No blocks are reserved for root, because the applications run as
//! root.

mod allocate;
mod bitmap;
mod check;
mod config;
mod directory;
mod effects;
mod error;
mod geometry;
mod groups;
mod indirect;
mod inode;
mod map;
mod mballoc;
mod names;
mod orlov;
mod reservation;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use iosched_numbers::SplitMix64;

pub use config::{DataMode, FsConfig, FsKind, JournalPlace};
pub use effects::Effects;
pub use error::FsError;

use directory::Directory;
use geometry::{GROUP_BLOCKS, Geometry};
use groups::Groups;
use inode::Inode;

/// Number of a block of 4 KiB of a file system. Block `n` begins at sector `8 n`.
pub type Block = u64;

/// Inodes that the file system reserves for itself, including the inode of lost+found.
const RESERVED_INODES: u32 = 11;
/// Number of the root directory's inode, counted from 0. The next constant is the number of
/// lost+found's inode.
const ROOT_NUMBER: u32 = 1;
const LOST_AND_FOUND_NUMBER: u32 = 10;
/// Number of pages of lost+found.
const LOST_AND_FOUND_PAGES: u32 = 4;

/// A run of consecutive blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// First block.
    pub block: Block,
    /// Number of blocks, at least 1.
    pub blocks: u64,
}

/// Slot of a file or directory: a small number. After the file or directory is removed, another one
/// can get the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u32);

/// Position of a file's page on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Block of the page.
    pub block: Block,
    /// Number of pages, including this page, whose blocks are consecutive, at least 1. Later pages
    /// may also be consecutive, because the length of an extent is limited.
    pub pages: u64,
    /// Whether the blocks are unwritten. Unwritten blocks read as zeroes.
    pub unwritten: bool,
}

/// The layout of a file system.
#[derive(Debug)]
pub struct FileSystem {
    config: FsConfig,
    geometry: Geometry,
    groups: Groups,
    inodes: Vec<Inode>,
    free_slots: Vec<u32>,
    random: SplitMix64,
    journal: Vec<BlockRun>,
    work_directory: Ino,
    /// Number of blocks that are preallocated in memory for later pages. On the medium, they are
    /// free.
    preallocated: u64,
    /// Number of blocks that are reserved for pages that are not allocated yet.
    reserved: u64,
    /// Chunks that small files share: first block, and number of free blocks.
    locality: Vec<(Block, u32)>,
    /// The block after the last allocation for a large file.
    stream_goal: Option<Block>,
    /// Reservation windows: first block, and number of blocks.
    windows: BTreeMap<Block, u32>,
    colour: u32,
}

impl FileSystem {
    /// Creates a file system on a device of `capacity_sectors`. `seed` determines the
    /// random choices: the groups of top-level directories, and the hashes of names.
    ///
    /// # Errors
    /// [`FsError::Setting`], [`FsError::TooSmall`], [`FsError::TooLarge`].
    pub fn new(config: &FsConfig, capacity_sectors: u64, seed: u64) -> Result<Self, FsError> {
        config.validate()?;
        let own_sectors = config.size_mib.map_or(u64::MAX, |mib| mib.saturating_mul(2048));
        let capacity_sectors = capacity_sectors.min(own_sectors);
        let mut geometry = Geometry::new(config, capacity_sectors)?;
        let journal = place_journal(config, &mut geometry).ok_or(FsError::TooSmall { capacity_sectors })?;
        let groups = Groups::new(config, &geometry);
        let mut fs = Self {
            config: config.clone(),
            geometry,
            groups,
            inodes: Vec::new(),
            free_slots: Vec::new(),
            random: SplitMix64::entity(seed, 0x6673),
            journal,
            work_directory: Ino(0),
            preallocated: 0,
            reserved: 0,
            locality: Vec::new(),
            stream_goal: None,
            windows: BTreeMap::new(),
            colour: 0,
        };
        fs.make_first_directories().map_err(|_| FsError::TooSmall { capacity_sectors })?;
        if let Some(percent) = config.directory_percent {
            let group = u64::from(fs.groups.count() - 1) * u64::from(percent) / 100;
            let name_bytes = 8;
            fs.work_directory = fs.make_in(fs.root(), name_bytes, true, Some(group as u32), &mut Effects::default())?;
        }
        Ok(fs)
    }

    /// Makes the root directory with lost+found.
    fn make_first_directories(&mut self) -> Result<(), FsError> {
        let effects = &mut Effects::default();
        for number in 0..RESERVED_INODES {
            let directory = matches!(number, ROOT_NUMBER | LOST_AND_FOUND_NUMBER);
            self.groups.take_inode(&self.geometry, 0, directory).ok_or(FsError::NoInodes)?;
        }
        self.groups.first_use_of_inodes(0);
        self.groups.list[0].debt = 0;
        for (number, pages) in [(ROOT_NUMBER, 1), (LOST_AND_FOUND_NUMBER, LOST_AND_FOUND_PAGES)] {
            let mut inode = Inode::new(number, Ino(0));
            let directory = Directory::new(self.config.dir_index && number == ROOT_NUMBER, pages);
            inode.directory = Some(Box::new(directory));
            inode.entry_bytes = directory::entry_bytes(10);
            inode.size = u64::from(pages) * crate::PAGE_BYTES;
            let ino = self.add_slot(inode);
            for page in 0..pages {
                self.add_directory_page(ino, page, effects)?;
            }
        }
        let entry = self.inode(Ino(1)).entry_bytes;
        self.directory_mut(Ino(0)).insert(0, entry)?;
        Ok(())
    }

    /// Returns the root directory.
    #[must_use]
    pub const fn root(&self) -> Ino {
        Ino(0)
    }

    /// Returns the directory in which applications work. This is the root directory, unless the
    /// [configuration](FsConfig::directory_percent) selects another directory.
    #[must_use]
    pub const fn work_directory(&self) -> Ino {
        self.work_directory
    }

    /// Adds a file that represents the whole device, with `blocks` blocks. Lookups of its pages
    /// need no metadata. The file is in no directory, and its blocks do not belong to the file
    /// system.
    pub fn add_device(&mut self, blocks: Block) -> Ino {
        let mut inode = Inode::new(ROOT_NUMBER, Ino(0));
        let pages = u32::try_from(blocks).unwrap_or(u32::MAX);
        inode.size = u64::from(pages) * crate::PAGE_BYTES;
        inode.map.extents.push(map::Extent { page: 0, pages, block: 0, unwritten: false });
        self.add_slot(inode)
    }

    /// Returns the options of the file system.
    #[must_use]
    pub const fn config(&self) -> &FsConfig {
        &self.config
    }

    /// Returns the blocks of the journal's log, in order.
    #[must_use]
    pub fn journal(&self) -> &[BlockRun] {
        &self.journal
    }

    /// Returns the block of the superblock.
    #[must_use]
    pub fn superblock(&self) -> Block {
        self.geometry.superblock()
    }

    /// Returns the number of free blocks, including those that are preallocated
    /// or reserved for later pages.
    #[must_use]
    pub const fn free_blocks(&self) -> u64 {
        self.groups.total.free_blocks + self.preallocated
    }

    /// Returns the number of free inodes.
    #[must_use]
    pub const fn free_inodes(&self) -> u64 {
        self.groups.total.free_inodes
    }

    /// Returns the size of a file or directory, bytes.
    #[must_use]
    pub fn size(&self, ino: Ino) -> u64 {
        self.inode(ino).size
    }

    /// Sets the size of a file. Its blocks stay. The caller makes the
    /// [inode's block](Self::inode_block) dirty.
    pub fn set_size(&mut self, ino: Ino, bytes: u64) {
        self.inode_mut(ino).size = bytes;
    }

    /// Returns the block of the inode table that contains the inode. A change of the size or the
    /// times of the inode makes this block dirty.
    #[must_use]
    pub fn inode_block(&self, ino: Ino) -> Block {
        self.geometry.inode_block(self.inode(ino).number)
    }

    /// Returns the position of a page of a file, if the page has a block.
    #[must_use]
    pub fn map(&self, ino: Ino, page: u64) -> Option<Mapped> {
        let page = u32::try_from(page).ok()?;
        let extent = self.inode(ino).map.find(page)?;
        let into = page - extent.page;
        let (block, pages) = (extent.block + u64::from(into), (extent.pages - into).into());
        Some(Mapped { block, pages, unwritten: extent.unwritten })
    }

    /// Returns the number of extents of a file.
    #[must_use]
    pub fn extents(&self, ino: Ino) -> usize {
        self.inode(ino).map.extents.len()
    }

    /// Records the blocks that the lookup of a page reads: blocks of the extent tree, or indirect
    /// blocks.
    pub fn map_reads(&self, ino: Ino, page: u64, effects: &mut Effects) {
        if let Ok(page) = u32::try_from(page) {
            self.inode(ino).map.reads(page, effects);
        }
    }

    /// Records all blocks that are read to find pages of a file.
    pub fn map_blocks_of(&self, ino: Ino, effects: &mut Effects) {
        self.inode(ino).map.tree_blocks().into_iter().for_each(|block| effects.read(block));
    }

    /// Opens a file for writing. While a file is open, the file system may preallocate blocks or
    /// reserve a window for it. Each call needs a call of [`close`](Self::close). A file that is
    /// not open gets only the blocks that it needs.
    pub fn open(&mut self, ino: Ino) {
        self.inode_mut(ino).writers += 1;
    }

    /// Closes a file that was opened for writing. The last close frees the preallocated blocks of
    /// the file.
    ///
    /// # Panics
    /// If the file is not open.
    pub fn close(&mut self, ino: Ino) {
        let inode = self.inode_mut(ino);
        inode.writers = inode.writers.checked_sub(1).expect("the file is open for writing");
        if inode.writers == 0 {
            self.discard_ahead(ino);
        }
    }

    /// Sets the process that creates the next files. In ext3, a group has 16 parts. The process id
    /// selects the part in which the new files of a process begin.
    pub fn set_colour(&mut self, process: u32) {
        self.colour = process;
    }

    /// Reserves blocks for pages that are [allocated](Self::allocate) later
    /// (delayed allocation). [Release](Self::release) them after the allocation.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]: there are too few free blocks.
    pub fn reserve(&mut self, pages: u64) -> Result<(), FsError> {
        if self.free_blocks().saturating_sub(self.reserved) < pages {
            return Err(FsError::NoSpace);
        }
        self.reserved += pages;
        Ok(())
    }

    /// Releases reserved blocks, because their pages were allocated or dropped.
    ///
    /// # Panics
    /// If fewer blocks are reserved than are released.
    pub fn release(&mut self, pages: u64) {
        self.reserved = self.reserved.checked_sub(pages).expect("they were reserved");
    }

    fn inode(&self, ino: Ino) -> &Inode {
        &self.inodes[ino.0 as usize]
    }

    fn inode_mut(&mut self, ino: Ino) -> &mut Inode {
        &mut self.inodes[ino.0 as usize]
    }

    fn directory(&self, ino: Ino) -> &Directory {
        self.inode(ino).directory.as_ref().expect("it is a directory")
    }

    fn directory_mut(&mut self, ino: Ino) -> &mut Directory {
        self.inode_mut(ino).directory.as_mut().expect("it is a directory")
    }

    fn add_slot(&mut self, inode: Inode) -> Ino {
        if let Some(slot) = self.free_slots.pop() {
            self.inodes[slot as usize] = inode;
            return Ino(slot);
        }
        self.inodes.push(inode);
        Ino(self.inodes.len() as u32 - 1)
    }

    fn drop_slot(&mut self, ino: Ino) {
        let inode = self.inode_mut(ino);
        inode.in_use = false;
        inode.directory = None;
        self.free_slots.push(ino.0);
    }
}

/// Returns the number of blocks of the journal: from `journal_mib`, or otherwise from mke2fs's
/// default for a device of this size.
fn journal_blocks(config: &FsConfig, blocks: Block) -> u64 {
    let by_size = match blocks {
        0..32_768 => 1024,
        32_768..262_144 => 4096,
        262_144..524_288 => 8192,
        524_288..1_048_576 => 16384,
        _ => 32768,
    };
    config.journal_mib.map_or(by_size, |mib| mib * 256)
}

/// Takes blocks for the journal, in one run as far as the metadata of groups allows. If there are
/// too few blocks between the usual position and the end of the file system, the journal begins at
/// the first group instead.
fn place_journal(config: &FsConfig, geometry: &mut Geometry) -> Option<Vec<BlockRun>> {
    let first = match config.journal_place {
        JournalPlace::Middle => geometry.groups / 2 / config.flex_groups() * config.flex_groups(),
        JournalPlace::Beginning => 0,
    };
    let blocks = journal_blocks(config, geometry.blocks);
    let runs = free_from(geometry, first, blocks).or_else(|| free_from(geometry, 0, blocks))?;
    runs.iter().for_each(|run| geometry.use_at_birth(*run));
    Some(runs)
}

/// Returns the first `count` blocks that contain no metadata, from the group `first` on.
fn free_from(geometry: &Geometry, first: u32, count: u64) -> Option<Vec<BlockRun>> {
    let mut left = count;
    let mut runs: Vec<BlockRun> = Vec::new();
    let (mut block, end) = (geometry.first_block(first), geometry.blocks);
    while left > 0 && block < end {
        let group = geometry.group_of(block);
        let group_end = geometry.first_block(group) + u64::from(geometry.group_blocks(group));
        let offset = geometry.offset_of(block);
        let mut used: Vec<_> = geometry.used_at_birth(group).to_vec();
        used.sort_unstable();
        let inside = used.iter().find(|(start, count)| *start <= offset && offset < start + count);
        if let Some((start, count)) = inside {
            block = geometry.first_block(group) + u64::from(start + count);
            continue;
        }
        let next = used.iter().find(|(start, _)| *start > offset);
        let free_end = next.map_or(group_end, |(start, _)| geometry.first_block(group) + u64::from(*start));
        let blocks = left.min(free_end - block);
        match runs.last_mut() {
            Some(last) if last.block + last.blocks == block => last.blocks += blocks,
            _ => runs.push(BlockRun { block, blocks }),
        }
        left -= blocks;
        block += blocks;
    }
    (left == 0).then_some(runs)
}
