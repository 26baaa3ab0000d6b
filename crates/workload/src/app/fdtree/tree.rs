//! A complete tree of directories, numbered in preorder: a directory comes before its contents, and
//! all contents of one child come before the next child. Parents and children are computed, not
//! stored.

/// A complete tree of directories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// Number of subdirectories of each directory above the last level.
    fan_out: u64,
    /// Number of directories of a tree with 0, 1, 2, ... levels below its top: 1, 1 + d, 1 + d +
    /// d², ... (d is `fan_out`).
    sizes: Vec<u64>,
}

/// A directory and its place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) number: u64,
    /// Number of levels below the directory.
    pub(super) height: usize,
    /// Number of the parent; `None` for the top directory.
    pub(super) parent: Option<u64>,
    /// Position among the children of the parent, from 0.
    pub(super) place: u64,
}

impl Tree {
    /// Creates a tree with `levels` below its top. Returns `None` if the tree has more than `most`
    /// directories.
    pub(super) fn new(fan_out: u64, levels: u64, most: u64) -> Option<Self> {
        let mut sizes = vec![1u64];
        for _ in 0..levels {
            let next = sizes.last()?.checked_mul(fan_out)?.checked_add(1).filter(|&size| size <= most)?;
            sizes.push(next);
        }
        Some(Self { fan_out, sizes })
    }

    /// Returns the number of directories, including the top.
    pub(super) fn count(&self) -> u64 {
        self.sizes[self.levels()]
    }

    /// Returns the number of levels below the top.
    pub(super) const fn levels(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Returns the number of subdirectories of a directory with this height.
    pub(super) const fn children(&self, height: usize) -> u64 {
        if height == 0 { 0 } else { self.fan_out }
    }

    /// Returns a child of a directory with height 1 or more.
    pub(super) fn child(&self, parent: u64, height: usize, place: u64) -> u64 {
        parent + 1 + place * self.sizes[height - 1]
    }

    /// Returns the directory with this number. The number must be below [`count`](Self::count).
    pub(super) fn directory(&self, number: u64) -> Directory {
        let mut found = Directory { number: 0, height: self.levels(), parent: None, place: 0 };
        while found.number != number {
            let height = found.height - 1;
            let place = (number - found.number - 1) / self.sizes[height];
            let child = self.child(found.number, found.height, place);
            found = Directory { number: child, height, parent: Some(found.number), place };
        }
        found
    }
}
