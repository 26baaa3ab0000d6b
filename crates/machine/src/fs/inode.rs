//! An inode: a file or a directory.

use super::directory::Directory;
use super::map::Map;
use super::{Block, Ino};

/// Blocks that are reserved for the next pages of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ahead {
    #[default]
    Nothing,
    /// ext4: blocks that are preallocated for pages of this file.
    Preallocated { page: u32, block: Block, count: u32 },
    /// ext3: window of blocks from `start` on. Other files do not use these blocks.
    Window { start: Block, blocks: u32, hits: u32, next_page: u32, next_block: Block },
}

/// A file or a directory.
#[derive(Debug)]
pub(super) struct Inode {
    /// Number on the medium, counted from 0.
    pub(super) number: u32,
    pub(super) parent: Ino,
    /// Hash of the name.
    pub(super) hash: u32,
    /// Bytes of the inode's entry in its directory.
    pub(super) entry_bytes: u16,
    /// The page of the directory that contains the inode's entry, unless the directory is indexed
    /// by hash.
    pub(super) entry_page: u32,
    pub(super) size: u64,
    pub(super) map: Map,
    pub(super) ahead: Ahead,
    /// Number of times that the file is open for writing.
    pub(super) writers: u32,
    pub(super) directory: Option<Box<Directory>>,
    pub(super) in_use: bool,
}

impl Inode {
    pub(super) fn new(number: u32, parent: Ino) -> Self {
        Self {
            number,
            parent,
            hash: 0,
            entry_bytes: 0,
            entry_page: 0,
            size: 0,
            map: Map::default(),
            ahead: Ahead::Nothing,
            writers: 0,
            directory: None,
            in_use: true,
        }
    }
}
