//! What the kernel keeps of a file: which pages are whose, which inodes have dirty ones, what blocks were promised.

use iosched_workload::app::Node;

use super::Model;
use crate::cache::Mapping;
use crate::fs::Ino;
use crate::journal::Tid;

/// An inode on the list of those with dirty pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyInode {
    pub(super) mapping: Mapping,
    pub(super) since_ns: u64,
}

/// What the kernel keeps of an inode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inode {
    /// It is the disk itself: no file system, no journal.
    pub(super) device: bool,
    /// It is on its disk's list.
    pub(super) listed: bool,
    pub(super) since_ns: u64,
    /// Where writeback goes on.
    pub(super) writeback_index: u64,
    /// Pages that were promised a block.
    pub(super) promised: u64,
    /// Operations that give it blocks and have not joined a transaction yet.
    pub(super) allocating: u32,
    /// The transaction that changed it last, and the one that changed where its data is.
    pub(super) tid: Option<Tid>,
    pub(super) data_tid: Option<Tid>,
}

impl Inode {
    pub(super) const fn tid(&self, data_only: bool) -> Option<Tid> {
        if data_only { self.data_tid } else { self.tid }
    }
}

impl Model {
    /// Disk and inode of a node that exists.
    pub(super) fn file(&self, task: u32, node: Node) -> (usize, Ino) {
        let Some(file) = self.find(self.tasks[task as usize].namespace, node) else {
            unreachable!("an open file exists");
        };
        file
    }

    pub(super) fn find(&self, namespace: usize, node: Node) -> Option<(usize, Ino)> {
        let (disk, ino) = self.namespaces[namespace].get(node.0 as usize).copied().flatten()?;
        Some((disk as usize, ino))
    }

    /// The pages of a disk's own blocks.
    pub(super) fn device_mapping(&self, disk: usize) -> Mapping {
        Mapping(disk as u32)
    }

    /// The pages of a file.
    pub(super) fn mapping(&self, disk: usize, ino: Ino) -> Mapping {
        let disks = self.disks.len() as u32;
        Mapping((ino.0 + 1) * disks + disk as u32)
    }

    /// Whose pages these are. Not for a disk's own blocks.
    pub(super) fn owner(&self, mapping: Mapping) -> (usize, Ino) {
        let disks = self.disks.len() as u32;
        ((mapping.0 % disks) as usize, Ino((mapping.0 / disks).wrapping_sub(1)))
    }

    pub(super) fn inode(&self, mapping: Mapping) -> Inode {
        self.inodes.get(mapping.0 as usize).copied().unwrap_or_default()
    }

    pub(super) fn inode_mut(&mut self, mapping: Mapping) -> &mut Inode {
        let index = mapping.0 as usize;
        if self.inodes.len() <= index {
            self.inodes.resize(index + 1, Inode::default());
        }
        &mut self.inodes[index]
    }

    /// Pages of a file became dirty.
    pub(super) fn now_dirty(&mut self, mapping: Mapping) {
        let since_ns = self.now_ns;
        let inode = self.inode_mut(mapping);
        if !inode.listed {
            inode.listed = true;
            inode.since_ns = since_ns;
            let (disk, _) = self.owner(mapping);
            self.disks[disk].dirty_inodes.push_back(DirtyInode { mapping, since_ns });
        }
    }

    /// An inode that was taken off the list goes back to it, if it has dirty pages.
    pub(super) fn relist(&mut self, disk: usize, mapping: Mapping) {
        let held = &mut self.disks[disk].held;
        if let Some(at) = held.iter().position(|held| *held == mapping) {
            held.swap_remove(at);
        }
        let dirty = self.cache.has_dirty(mapping);
        let inode = self.inode_mut(mapping);
        inode.listed = dirty;
        let since_ns = inode.since_ns;
        if dirty {
            self.disks[disk].dirty_inodes.push_back(DirtyInode { mapping, since_ns });
        }
    }

    /// Blocks are set aside for pages that get theirs at writeback.
    pub(super) fn promise(&mut self, disk: usize, mapping: Mapping, pages: u64) {
        match self.disks[disk].fs.reserve(pages) {
            Ok(()) => self.inode_mut(mapping).promised += pages,
            Err(error) => self.fail(error),
        }
    }

    /// Pages have got the blocks that they were promised.
    pub(super) fn keep_promise(&mut self, disk: usize, mapping: Mapping, pages: u64) {
        let inode = self.inode_mut(mapping);
        let pages = pages.min(inode.promised);
        inode.promised -= pages;
        self.disks[disk].fs.release(pages);
    }

    /// A file has lost its pages.
    pub(super) fn forget(&mut self, disk: usize, mapping: Mapping) {
        self.cache.truncate(mapping, 0);
        let promised = self.inode(mapping).promised;
        self.keep_promise(disk, mapping, promised);
        let listed = self.inode(mapping).listed;
        *self.inode_mut(mapping) = Inode { listed, ..Inode::default() };
    }
}
