//! Names: creating, finding and removing files and directories.

use super::directory::{Directory, entry_bytes};
use super::inode::Inode;
use super::{Effects, FileSystem, FsError, Ino};
use crate::PAGE_BYTES;

impl FileSystem {
    /// Creates a directory in `parent`, with a name of `name_bytes` bytes (1 to 255).
    ///
    /// # Errors
    /// [`FsError::NoInodes`], [`FsError::NoSpace`] or [`FsError::DirectoryFull`]; the directory is
    /// not created. A new name may need two new blocks in `parent`. If only one block was free,
    /// `parent` keeps this block, as in Linux, and uses it for the next name that needs a block.
    ///
    /// # Panics
    /// If `parent` is not a directory.
    pub fn make_directory(&mut self, parent: Ino, name_bytes: u8, effects: &mut Effects) -> Result<Ino, FsError> {
        self.make(parent, name_bytes, true, effects)
    }

    /// Creates an empty file in `parent`, with a name of `name_bytes` bytes (1 to 255).
    ///
    /// # Errors
    /// As for [`make_directory`](Self::make_directory).
    ///
    /// # Panics
    /// If `parent` is not a directory.
    pub fn create(&mut self, parent: Ino, name_bytes: u8, effects: &mut Effects) -> Result<Ino, FsError> {
        self.make(parent, name_bytes, false, effects)
    }

    fn make(&mut self, parent: Ino, name_bytes: u8, directory: bool, effects: &mut Effects) -> Result<Ino, FsError> {
        self.make_in(parent, name_bytes, directory, None, effects)
    }

    /// Creates a file or directory. If `group` is given, takes the inode from this group.
    pub(super) fn make_in(
        &mut self,
        parent: Ino,
        name_bytes: u8,
        directory: bool,
        group: Option<u32>,
        effects: &mut Effects,
    ) -> Result<Ino, FsError> {
        let hash = (self.random.next_u64() >> 32) as u32;
        self.read_to_find(parent, hash, None, effects);
        let number = self.take_inode(parent, directory, group, effects)?;
        let mut inode = Inode::new(number, parent);
        inode.hash = hash;
        inode.entry_bytes = entry_bytes(name_bytes);
        inode.directory = directory.then(|| Box::new(Directory::new(self.config.dir_index, 1)));
        let ino = self.add_slot(inode);
        let mut result = Ok(());
        if directory {
            result = self.add_directory_page(ino, 0, effects);
            self.inode_mut(ino).size = PAGE_BYTES;
        }
        match result.and_then(|()| self.add_name(parent, ino, effects)) {
            Ok(()) => Ok(ino),
            Err(error) => {
                self.drop_inode(ino, effects);
                Err(error)
            }
        }
    }

    /// Adds the name of an inode to its parent directory.
    fn add_name(&mut self, parent: Ino, ino: Ino, effects: &mut Effects) -> Result<(), FsError> {
        let (hash, bytes) = (self.inode(ino).hash, self.inode(ino).entry_bytes);
        let (needed, pages) = {
            let directory = self.directory(parent);
            (directory.pages_needed(hash, bytes), directory.pages)
        };
        let there = (self.inode(parent).size / PAGE_BYTES) as u32;
        for page in there..pages + needed {
            self.add_directory_page(parent, page, effects)?;
            self.inode_mut(parent).size = u64::from(page + 1) * PAGE_BYTES;
        }
        let done = self.directory_mut(parent).insert(hash, bytes)?;
        self.inode_mut(ino).entry_page = done.page;
        for page in done.changed {
            self.change_directory_page(parent, page, effects);
        }
        effects.change(self.inode_block(parent));
        Ok(())
    }

    /// Records the blocks that are read to find `ino` by name in its directory, and the block of
    /// its inode. To find the directory itself, nothing is read, because the kernel caches names.
    pub fn lookup(&self, ino: Ino, effects: &mut Effects) {
        let inode = self.inode(ino);
        if ino != self.root() {
            self.read_to_find(inode.parent, inode.hash, Some(inode.entry_page), effects);
        }
        effects.read(self.inode_block(ino));
    }

    /// Records the blocks that are read to list a directory.
    ///
    /// # Panics
    /// If `ino` is not a directory.
    pub fn read_directory(&self, ino: Ino, effects: &mut Effects) {
        for page in 0..self.directory(ino).pages {
            self.read_directory_page(ino, page, effects);
        }
    }

    fn read_to_find(&self, parent: Ino, hash: u32, page: Option<u32>, effects: &mut Effects) {
        for page in self.directory(parent).search(hash, page) {
            self.read_directory_page(parent, page, effects);
        }
    }

    fn read_directory_page(&self, ino: Ino, page: u32, effects: &mut Effects) {
        let map = &self.inode(ino).map;
        map.reads(page, effects);
        let Some(extent) = map.find(page) else { unreachable!("a directory has no holes") };
        effects.read(extent.block + u64::from(page - extent.page));
    }

    fn change_directory_page(&self, ino: Ino, page: u32, effects: &mut Effects) {
        let Some(extent) = self.inode(ino).map.find(page) else { unreachable!("a directory has no holes") };
        effects.change(extent.block + u64::from(page - extent.page));
    }

    /// Removes a file: its name, its inode and its blocks. Afterwards, another file may get the
    /// number `ino`.
    ///
    /// # Errors
    /// [`FsError::IsDirectory`]; nothing is changed.
    pub fn unlink(&mut self, ino: Ino, effects: &mut Effects) -> Result<(), FsError> {
        if self.inode(ino).directory.is_some() {
            return Err(FsError::IsDirectory);
        }
        self.remove(ino, effects);
        Ok(())
    }

    /// Removes an empty directory. Afterwards, another file may get the number `ino`.
    ///
    /// # Errors
    /// [`FsError::NotDirectory`], [`FsError::NotEmpty`], [`FsError::IsRoot`]; nothing is changed.
    pub fn remove_directory(&mut self, ino: Ino, effects: &mut Effects) -> Result<(), FsError> {
        let Some(directory) = &self.inode(ino).directory else { return Err(FsError::NotDirectory) };
        if ino == self.root() {
            return Err(FsError::IsRoot);
        }
        if directory.entries > 0 {
            return Err(FsError::NotEmpty);
        }
        self.read_directory(ino, effects);
        self.remove(ino, effects);
        Ok(())
    }

    /// Removes a name and its inode. The inode first joins the orphan list, which begins in the
    /// superblock. Then the inode is freed and leaves this list.
    fn remove(&mut self, ino: Ino, effects: &mut Effects) {
        let inode = self.inode(ino);
        let (parent, hash, bytes, page) = (inode.parent, inode.hash, inode.entry_bytes, inode.entry_page);
        self.read_to_find(parent, hash, Some(page), effects);
        let page = self.directory_mut(parent).remove(hash, bytes, page);
        self.change_directory_page(parent, page, effects);
        effects.change(self.inode_block(parent));
        effects.change(self.inode_block(ino));
        effects.dirty(self.geometry.superblock());
        self.drop_inode(ino, effects);
    }

    fn drop_inode(&mut self, ino: Ino, effects: &mut Effects) {
        self.drop_blocks(ino, effects);
        let number = self.inode(ino).number;
        let group = self.group_of_inode(number);
        let directory = self.inode(ino).directory.is_some();
        self.groups.give_inode(&self.geometry, number, directory);
        effects.change(self.geometry.inode_bitmap(group));
        effects.dirty(self.geometry.descriptor(group));
        self.drop_slot(ino);
    }

    /// Frees all blocks of a file. Its size becomes 0.
    ///
    /// # Panics
    /// If `ino` is a directory.
    pub fn truncate(&mut self, ino: Ino, effects: &mut Effects) {
        assert!(self.inode(ino).directory.is_none(), "{ino:?} is a directory");
        self.inode_mut(ino).size = 0;
        effects.change(self.inode_block(ino));
        if !self.inode(ino).map.extents.is_empty() {
            effects.dirty(self.geometry.superblock());
        }
        self.drop_blocks(ino, effects);
    }
}
