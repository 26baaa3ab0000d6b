//! The layout of a file system like ext3 or ext4: where files, directories and what leads to them lie, and which
//! metadata blocks an operation needs and changes.
//!
//! A [`FileSystem`] is a data structure: it knows no time and does no I/O, and it holds no data. Every operation adds
//! to [`Effects`] the metadata blocks it needs in memory and those it changes; reading them, keeping them in memory and
//! giving them to the [journal](crate::journal) is the caller's. Descriptors and the superblock are in memory from
//! mount on and never in [`Effects::reads`]. A block of the inode table in which no inode is in use needs no read for a
//! new one: its contents are known. The same goes, with `uninit_groups`, for bitmaps of groups never used.
//!
//! | file | what it decides |
//! |---|---|
//! | `geometry` | where superblocks, bitmaps and inode tables are |
//! | `groups`, `bitmap` | what is free |
//! | `orlov` | the group of a new inode |
//! | `directory`, `names` | the block of a directory a name goes to and is found in |
//! | `map`, `indirect` | how blocks of a file are found |
//! | `allocate`, `mballoc`, `reservation` | blocks for a file: what is common, ext4's way, ext3's way |
//!
//! Freed blocks are free at once; Linux gives them out again only after the transaction that freed them is committed.
//! The blocks kept for root are not kept: the applications are root's.

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

/// Number of a block of 4 KiB of a file system; block `n` begins at sector `8 n`.
pub type Block = u64;

/// Inodes that the file system keeps for itself, with that of lost+found.
const RESERVED_INODES: u32 = 11;
/// Numbers, from 0, of the inodes of the root directory and of lost+found.
const ROOT_NUMBER: u32 = 1;
const LOST_AND_FOUND_NUMBER: u32 = 10;
/// Pages of lost+found.
const LOST_AND_FOUND_PAGES: u32 = 4;

/// Blocks that lie one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// The first.
    pub block: Block,
    /// How many, at least 1.
    pub blocks: u64,
}

/// A file or directory, by its slot: small numbers, given again after what they named was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ino(pub u32);

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapped {
    /// Its block.
    pub block: Block,
    /// So many pages from it on lie one behind the other, at least 1. What follows may continue there too: extents have
    /// a longest length.
    pub pages: u64,
    /// Nothing was written there: they read as zeroes.
    pub unwritten: bool,
}

/// A file system.
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
    /// Blocks kept in memory for pages to come; free on the medium.
    preallocated: u64,
    /// Blocks promised to pages that are not allocated yet.
    reserved: u64,
    /// Chunks that small files share: first block, blocks left.
    locality: Vec<(Block, u32)>,
    /// Behind what a large file got last.
    stream_goal: Option<Block>,
    /// Reservation windows: first block, blocks.
    windows: BTreeMap<Block, u32>,
    colour: u32,
}

impl FileSystem {
    /// A freshly made file system on a device of `capacity_sectors`. `seed` decides what is left to chance: the groups
    /// of directories at the top, and what names hash to.
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

    /// The root directory, with lost+found in it.
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

    /// The root directory.
    #[must_use]
    pub const fn root(&self) -> Ino {
        Ino(0)
    }

    /// The directory that applications work in: the root, unless the [configuration](FsConfig::directory_percent) says
    /// another.
    #[must_use]
    pub const fn work_directory(&self) -> Ino {
        self.work_directory
    }

    /// A file that stands for the device itself, of so many blocks: where its pages are needs no metadata. It is not in
    /// any directory, and has nothing of the file system's.
    pub fn add_device(&mut self, blocks: Block) -> Ino {
        let mut inode = Inode::new(ROOT_NUMBER, Ino(0));
        let pages = u32::try_from(blocks).unwrap_or(u32::MAX);
        inode.size = u64::from(pages) * crate::PAGE_BYTES;
        inode.map.extents.push(map::Extent { page: 0, pages, block: 0, unwritten: false });
        self.add_slot(inode)
    }

    /// How it was made.
    #[must_use]
    pub const fn config(&self) -> &FsConfig {
        &self.config
    }

    /// Where the log of the journal lies, in order.
    #[must_use]
    pub fn journal(&self) -> &[BlockRun] {
        &self.journal
    }

    /// The superblock.
    #[must_use]
    pub fn superblock(&self) -> Block {
        self.geometry.superblock()
    }

    /// Blocks that are free, those included that are kept or promised for pages to come.
    #[must_use]
    pub const fn free_blocks(&self) -> u64 {
        self.groups.total.free_blocks + self.preallocated
    }

    /// Inodes that are free.
    #[must_use]
    pub const fn free_inodes(&self) -> u64 {
        self.groups.total.free_inodes
    }

    /// Size of a file or directory, bytes.
    #[must_use]
    pub fn size(&self, ino: Ino) -> u64 {
        self.inode(ino).size
    }

    /// Changes what a file's size is; its blocks stay. The caller makes the [inode's block](Self::inode_block) dirty.
    pub fn set_size(&mut self, ino: Ino, bytes: u64) {
        self.inode_mut(ino).size = bytes;
    }

    /// The block of the inode table that the inode is in: dirty when size or times change.
    #[must_use]
    pub fn inode_block(&self, ino: Ino) -> Block {
        self.geometry.inode_block(self.inode(ino).number)
    }

    /// Where a page of a file is, if it has a block.
    #[must_use]
    pub fn map(&self, ino: Ino, page: u64) -> Option<Mapped> {
        let page = u32::try_from(page).ok()?;
        let extent = self.inode(ino).map.find(page)?;
        let into = page - extent.page;
        let (block, pages) = (extent.block + u64::from(into), (extent.pages - into).into());
        Some(Mapped { block, pages, unwritten: extent.unwritten })
    }

    /// Of how many extents the blocks of a file are.
    #[must_use]
    pub fn extents(&self, ino: Ino) -> usize {
        self.inode(ino).map.extents.len()
    }

    /// The blocks of the extent tree, or the indirect blocks, that are read to find a page.
    pub fn map_reads(&self, ino: Ino, page: u64, effects: &mut Effects) {
        if let Ok(page) = u32::try_from(page) {
            self.inode(ino).map.reads(page, effects);
        }
    }

    /// All blocks that are read to find pages of a file.
    pub fn map_blocks_of(&self, ino: Ino, effects: &mut Effects) {
        self.inode(ino).map.tree_blocks().into_iter().for_each(|block| effects.read(block));
    }

    /// A file is opened for writing: blocks are kept for it in advance, or a window around them, until it was
    /// [closed](Self::close) as often. A file that gets blocks without being open gets just those.
    pub fn open(&mut self, ino: Ino) {
        self.inode_mut(ino).writers += 1;
    }

    /// A file that was opened for writing is closed. After the last what was kept for it in advance is free.
    ///
    /// # Panics
    /// It is not open.
    pub fn close(&mut self, ino: Ino) {
        let inode = self.inode_mut(ino);
        inode.writers = inode.writers.checked_sub(1).expect("it is open for writing");
        if inode.writers == 0 {
            self.discard_ahead(ino);
        }
    }

    /// Who makes files from now on: with ext3, tasks' new files begin in different sixteenths of a group, by process
    /// id.
    pub fn set_colour(&mut self, process: u32) {
        self.colour = process;
    }

    /// Delayed allocation: promises blocks to pages that will be [allocated](Self::allocate) later. The promise is to
    /// be [released](Self::release) when they are.
    ///
    /// # Errors
    /// [`FsError::NoSpace`]: there are not as many.
    pub fn reserve(&mut self, pages: u64) -> Result<(), FsError> {
        if self.free_blocks().saturating_sub(self.reserved) < pages {
            return Err(FsError::NoSpace);
        }
        self.reserved += pages;
        Ok(())
    }

    /// Takes a promise back: the pages have their blocks, or are gone.
    ///
    /// # Panics
    /// So many were not promised.
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

/// Blocks of the journal: what mke2fs gives a device of this size unless told.
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

/// Takes blocks for the journal, in one run as far as groups' own blocks allow: from the beginning if there are too few
/// behind its place.
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

/// The first `count` blocks from a group on that groups do not use themselves.
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
