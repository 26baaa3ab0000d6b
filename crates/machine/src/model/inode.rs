//! The kernel's records of files: which file a page belongs to, which inodes have dirty pages, and
//! which blocks are reserved.

use iosched_workload::app::Node;

use super::Model;
use crate::cache::Mapping;
use crate::fs::Ino;
use crate::journal::Tid;

/// An inode in the list of inodes with dirty pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirtyInode {
    pub(super) mapping: Mapping,
    pub(super) since_ns: u64,
}

/// The kernel's record of an inode.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Inode {
    /// Whether the inode represents the disk itself, without file system and journal.
    pub(super) device: bool,
    /// Whether the inode is in its disk's list of inodes with dirty pages.
    pub(super) listed: bool,
    pub(super) since_ns: u64,
    /// Page at which writeback continues.
    pub(super) writeback_index: u64,
    /// Number of pages for which blocks are reserved.
    pub(super) promised: u64,
    /// Number of operations that allocate blocks for the file and that have not yet joined a
    /// transaction.
    pub(super) allocating: u32,
    /// The transaction that last changed the inode. The next field is the transaction that last
    /// changed the size or the blocks of the file.
    pub(super) tid: Option<Tid>,
    pub(super) data_tid: Option<Tid>,
}

impl Inode {
    pub(super) const fn tid(&self, data_only: bool) -> Option<Tid> {
        if data_only { self.data_tid } else { self.tid }
    }
}

impl Model {
    /// Returns the disk and the inode of an existing node.
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

    /// Returns the mapping of a disk's own blocks, such as metadata.
    pub(super) fn device_mapping(&self, disk: usize) -> Mapping {
        Mapping(disk as u32)
    }

    /// Returns the mapping of a file.
    pub(super) fn mapping(&self, disk: usize, ino: Ino) -> Mapping {
        let disks = self.disks.len() as u32;
        Mapping((ino.0 + 1) * disks + disk as u32)
    }

    /// Returns the disk and the inode of a mapping. The mapping must belong to a file, not to a
    /// disk's own blocks.
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

    /// Records that pages of a file have become dirty.
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

    /// Puts an inode back into the list of inodes with dirty pages, if it has any. A pass had taken
    /// it out of the list.
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

    /// Reserves blocks for pages. Their blocks are allocated at writeback.
    pub(super) fn promise(&mut self, disk: usize, mapping: Mapping, pages: u64) {
        match self.disks[disk].fs.reserve(pages) {
            Ok(()) => self.inode_mut(mapping).promised += pages,
            Err(error) => self.fail(error),
        }
    }

    /// Releases the reserved blocks of pages whose blocks are now allocated.
    pub(super) fn keep_promise(&mut self, disk: usize, mapping: Mapping, pages: u64) {
        let inode = self.inode_mut(mapping);
        let pages = pages.min(inode.promised);
        inode.promised -= pages;
        self.disks[disk].fs.release(pages);
    }

    /// Drops the pages of a file.
    pub(super) fn forget(&mut self, disk: usize, mapping: Mapping) {
        self.cache.truncate(mapping, 0);
        let promised = self.inode(mapping).promised;
        self.keep_promise(disk, mapping, promised);
        let listed = self.inode(mapping).listed;
        *self.inode_mut(mapping) = Inode { listed, ..Inode::default() };
    }
}
