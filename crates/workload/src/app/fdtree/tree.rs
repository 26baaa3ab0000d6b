//! A complete tree of directories, numbered as a recursion comes upon them: a directory before what is in it, and all
//! below one child before the next. Parents and children are arithmetic: nothing is kept.

/// The tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    /// Directories in a directory, except in those of the last level.
    fan_out: u64,
    /// Directories of a tree so many levels deep: 1, 1 + d, 1 + d + d², ...
    sizes: Vec<u64>,
}

/// A directory, and where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) number: u64,
    /// Levels below it.
    pub(super) height: usize,
    /// The one it is in; none: the top.
    pub(super) parent: Option<u64>,
    /// The how-many-th there, from 0.
    pub(super) place: u64,
}

impl Tree {
    /// A tree with `levels` below its top; `None` if it has more than `most` directories.
    pub(super) fn new(fan_out: u64, levels: u64, most: u64) -> Option<Self> {
        let mut sizes = vec![1u64];
        for _ in 0..levels {
            let next = sizes.last()?.checked_mul(fan_out)?.checked_add(1).filter(|&size| size <= most)?;
            sizes.push(next);
        }
        Some(Self { fan_out, sizes })
    }

    /// How many directories there are, the top included.
    pub(super) fn count(&self) -> u64 {
        self.sizes[self.levels()]
    }

    /// Levels below the top.
    pub(super) const fn levels(&self) -> usize {
        self.sizes.len() - 1
    }

    /// How many directories are in one of this height.
    pub(super) const fn children(&self, height: usize) -> u64 {
        if height == 0 { 0 } else { self.fan_out }
    }

    /// A child of a directory of height 1 or more.
    pub(super) fn child(&self, parent: u64, height: usize, place: u64) -> u64 {
        parent + 1 + place * self.sizes[height - 1]
    }

    /// The directory of this number, below the count.
    pub(super) fn directory(&self, number: u64) -> Directory {
        let mut found = Directory { number: 0, height: self.levels(), parent: None, place: 0 };
        while found.number != number {
            let height = found.height - 1;
            let place = (number - found.number - 1) / self.sizes[height];
            let own = self.child(found.number, found.height, place);
            found = Directory { number: own, height, parent: Some(found.number), place };
        }
        found
    }
}
