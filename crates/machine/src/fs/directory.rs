//! Directories: the block in which a name is stored, and the blocks that a lookup reads.
//!
//! A directory of one block is a list. A longer directory is also a list or, with `dir_index`, a
//! tree by hash of the name, as Phillips describes ("A Directory Index for Ext2", ALS 2001). The
//! first block of the tree is the root. If a block is full, half of its names, by hash, move to a
//! new block. The map of the inode determines the blocks of the directory's pages. The model only
//! counts the free bytes of a block. In reality, these bytes may be in holes that are too small for
//! a name.

use super::FsError;

/// Bytes of a block.
const BLOCK_BYTES: u16 = 4096;
/// Length of the entries "." and "..", bytes.
const DOTS_BYTES: u16 = 24;
/// Number of index entries in the root, 8 bytes each, after the entries "." and ".." and a header
/// of 16 bytes.
const ROOT_ENTRIES: usize = 507;
/// Number of index entries in an index block below the root.
const NODE_ENTRIES: u32 = 510;

/// Returns the length of a name's entry, bytes: 8 plus the length of the name, rounded up to a
/// multiple of 4.
pub(super) const fn entry_bytes(name_bytes: u8) -> u16 {
    (8 + name_bytes as u16).next_multiple_of(4)
}

/// Hash and entry size of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    hash: u32,
    bytes: u16,
}

/// A block of names.
#[derive(Clone, Debug)]
struct Leaf {
    /// Lowest hash of the block, if the directory is indexed by hash.
    hash: u32,
    page: u32,
    used: u16,
    names: Vec<Name>,
}

/// A block of the index below the root.
#[derive(Clone, Copy, Debug)]
struct Node {
    hash: u32,
    page: u32,
    entries: u32,
}

/// A directory.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    pub(super) entries: u32,
    pub(super) pages: u32,
    /// The unit of groups that got the last files of this directory, because the directory's own
    /// unit was full.
    pub(super) overflow_unit: Option<u32>,
    /// Whether the directory uses an index by hash when it is longer than a block.
    dir_index: bool,
    indexed: bool,
    leaves: Vec<Leaf>,
    nodes: Vec<Node>,
    /// In a list, the index of the first block that may have room.
    room_from: usize,
}

/// Pages of the directory that an insertion changes.
#[derive(Debug, Default)]
pub(super) struct Insertion {
    /// Existing pages whose contents or place in the tree change.
    pub(super) changed: Vec<u32>,
    /// The page that contains the new name.
    pub(super) page: u32,
}

impl Directory {
    /// Creates an empty directory of `pages` blocks. If `dir_index` is true, `pages` must be 1.
    pub(super) fn new(dir_index: bool, pages: u32) -> Self {
        debug_assert!(pages == 1 || !dir_index);
        let used = |page| if page == 0 { DOTS_BYTES } else { 0 };
        let leaves = (0..pages).map(|page| Leaf { hash: 0, page, used: used(page), names: Vec::new() }).collect();
        Self {
            entries: 0,
            pages,
            overflow_unit: None,
            dir_index,
            indexed: false,
            leaves,
            nodes: Vec::new(),
            room_from: 0,
        }
    }

    fn leaf_of(&self, hash: u32) -> usize {
        self.leaves.partition_point(|leaf| leaf.hash <= hash).saturating_sub(1)
    }

    fn node_of(&self, hash: u32) -> usize {
        self.nodes.partition_point(|node| node.hash <= hash).saturating_sub(1)
    }

    /// Returns the pages that a lookup of a name reads, in order. `page`
    /// is the page of the name, or `None` if the name does not exist.
    pub(super) fn search(&self, hash: u32, page: Option<u32>) -> impl Iterator<Item = u32> {
        let list = if self.indexed { 0 } else { page.map_or(self.pages, |page| page + 1) };
        let tree = self.indexed.then(|| {
            let node = (!self.nodes.is_empty()).then(|| self.nodes[self.node_of(hash)].page);
            std::iter::once(0).chain(node).chain([self.leaves[self.leaf_of(hash)].page])
        });
        (0..list).chain(tree.into_iter().flatten())
    }

    /// Returns the number of new pages that are needed to add a name.
    pub(super) fn pages_needed(&self, hash: u32, bytes: u16) -> u32 {
        if !self.indexed {
            let fits = self.leaves[self.room_from..].iter().any(|leaf| leaf.used + bytes <= BLOCK_BYTES);
            return if fits {
                0
            } else if self.dir_index {
                2
            } else {
                1
            };
        }
        if self.leaves[self.leaf_of(hash)].used + bytes <= BLOCK_BYTES {
            return 0;
        }
        let index = if self.nodes.is_empty() {
            self.leaves.len() >= ROOT_ENTRIES
        } else {
            self.nodes[self.node_of(hash)].entries >= NODE_ENTRIES
        };
        1 + u32::from(index)
    }

    /// Adds a name. Pages from the old number of [`pages`](Self::pages) on are new.
    pub(super) fn insert(&mut self, hash: u32, bytes: u16) -> Result<Insertion, FsError> {
        let mut done = Insertion::default();
        let becomes_indexed = !self.indexed;
        if !self.indexed {
            let room = (self.room_from..self.leaves.len()).find(|at| self.leaves[*at].used + bytes <= BLOCK_BYTES);
            if let Some(at) = room {
                self.room_from = at;
                self.put(at, Name { hash, bytes }, &mut done);
                return Ok(done);
            }
            if !self.dir_index {
                self.room_from = self.leaves.len();
                let leaf = Leaf { hash: 0, page: self.pages, used: 0, names: Vec::new() };
                self.pages += 1;
                self.leaves.push(leaf);
                self.put(self.room_from, Name { hash, bytes }, &mut done);
                return Ok(done);
            }
            self.indexed = true;
            self.leaves[0].page = 1;
            self.leaves[0].used -= DOTS_BYTES;
            self.pages = 2;
            done.changed.push(0);
        }
        let mut at = self.leaf_of(hash);
        if becomes_indexed || self.leaves[at].used + bytes > BLOCK_BYTES {
            self.make_room_in_index(hash, &mut done)?;
            self.split(at, &mut done);
            at = self.leaf_of(hash);
        }
        self.put(at, Name { hash, bytes }, &mut done);
        Ok(done)
    }

    fn put(&mut self, at: usize, name: Name, done: &mut Insertion) {
        let leaf = &mut self.leaves[at];
        leaf.used += name.bytes;
        if self.dir_index {
            leaf.names.push(name);
        }
        self.entries += 1;
        done.page = leaf.page;
        done.changed.push(leaf.page);
    }

    /// Moves the upper half of a full block, in the order of hashes, to a new block.
    fn split(&mut self, at: usize, done: &mut Insertion) {
        let leaf = &mut self.leaves[at];
        leaf.names.sort_unstable();
        let (mut keep, mut kept_bytes) = (0, 0);
        while keep < leaf.names.len() - 1 && (keep == 0 || kept_bytes + leaf.names[keep].bytes <= leaf.used / 2) {
            kept_bytes += leaf.names[keep].bytes;
            keep += 1;
        }
        let names = leaf.names.split_off(keep);
        let upper = Leaf { hash: names[0].hash, page: self.pages, used: leaf.used - kept_bytes, names };
        leaf.used = kept_bytes;
        done.changed.push(leaf.page);
        done.changed.push(upper.page);
        self.pages += 1;
        if self.nodes.is_empty() {
            done.changed.push(0);
        } else {
            let node = self.node_of(upper.hash);
            self.nodes[node].entries += 1;
            done.changed.push(self.nodes[node].page);
        }
        self.leaves.insert(at + 1, upper);
    }

    /// Makes room for one more entry in the index block that leads to `hash`.
    fn make_room_in_index(&mut self, hash: u32, done: &mut Insertion) -> Result<(), FsError> {
        if self.nodes.is_empty() {
            if self.leaves.len() >= ROOT_ENTRIES {
                self.nodes.push(Node { hash: 0, page: self.pages, entries: self.leaves.len() as u32 });
                done.changed.push(0);
                done.changed.push(self.pages);
                self.pages += 1;
            }
            return Ok(());
        }
        let at = self.node_of(hash);
        let node = self.nodes[at];
        if node.entries < NODE_ENTRIES {
            return Ok(());
        }
        if self.nodes.len() >= ROOT_ENTRIES {
            return Err(FsError::DirectoryFull);
        }
        let keep = node.entries / 2;
        let first = self.leaves.partition_point(|leaf| leaf.hash < node.hash);
        let hash = self.leaves[first + keep as usize].hash;
        self.nodes[at].entries = keep;
        self.nodes.insert(at + 1, Node { hash, page: self.pages, entries: node.entries - keep });
        done.changed.extend([0, node.page, self.pages]);
        self.pages += 1;
        Ok(())
    }

    /// Removes a name that was inserted into `page`. Returns the page that changes.
    pub(super) fn remove(&mut self, hash: u32, bytes: u16, page: u32) -> u32 {
        let at = if self.indexed { self.leaf_of(hash) } else { page as usize };
        // Names with equal hashes may be in both blocks of a split.
        let at = if self.dir_index { (0..=at).rev().find(|at| self.leaves[*at].holds(hash, bytes)) } else { Some(at) };
        let Some(at) = at else { unreachable!("the name is here") };
        let leaf = &mut self.leaves[at];
        if let Some(name) = leaf.names.iter().position(|name| *name == Name { hash, bytes }) {
            leaf.names.swap_remove(name);
        }
        leaf.used -= bytes;
        self.entries -= 1;
        if !self.indexed {
            self.room_from = self.room_from.min(at);
        }
        leaf.page
    }

    /// Checks the counts and the order of hashes.
    ///
    /// # Panics
    /// If the counts do not agree with the names.
    pub(super) fn check(&self) {
        assert!(self.leaves.iter().all(|leaf| leaf.used <= BLOCK_BYTES));
        assert_eq!(self.leaves.len() + self.nodes.len() + usize::from(self.indexed), self.pages as usize);
        if !self.dir_index {
            return;
        }
        for (at, leaf) in self.leaves.iter().enumerate() {
            let used_bytes = leaf.names.iter().map(|name| name.bytes).sum::<u16>();
            assert_eq!(used_bytes + if self.indexed { 0 } else { DOTS_BYTES }, leaf.used);
            let end = self.leaves.get(at + 1).map_or(u32::MAX, |next| next.hash);
            assert!(leaf.names.iter().all(|name| leaf.hash <= name.hash && name.hash <= end));
        }
        assert_eq!(self.leaves.iter().map(|leaf| leaf.names.len()).sum::<usize>(), self.entries as usize);
        let reached = self.nodes.iter().map(|node| node.entries as usize).sum::<usize>();
        assert!(self.nodes.is_empty() || reached == self.leaves.len());
    }
}

impl Leaf {
    fn holds(&self, hash: u32, bytes: u16) -> bool {
        self.names.contains(&Name { hash, bytes })
    }
}
