//! The versions of pages that applications wrote, and the versions that are on the medium.

use std::collections::BTreeMap;

/// Contents of a block of the device: file, page, version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) node: u32,
    pub(crate) page: u64,
    pub(crate) version: u64,
}

/// A write in progress.
#[derive(Clone, Copy, Debug)]
struct Pending {
    task: usize,
    node: u32,
    from: u64,
    end: u64,
    version: u64,
}

/// Contents that system calls have written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    next: u64,
    pages: BTreeMap<(u32, u64), u64>,
    pending: Vec<Pending>,
}

impl Written {
    /// Begins a task's write to pages `from..end`.
    pub(crate) fn begins(&mut self, task: usize, node: u32, from: u64, end: u64) {
        self.next += 1;
        self.pending.push(Pending { task, node, from, end, version: self.next });
    }

    /// Ends a task's write. Contents that were removed since the write began need not be anywhere.
    pub(crate) fn returned(&mut self, task: usize) {
        let Some(at) = self.pending.iter().position(|pending| pending.task == task) else { return };
        let Pending { node, from, end, version, .. } = self.pending.swap_remove(at);
        for page in from..end {
            self.pages.insert((node, page), version);
        }
    }

    /// Truncates a file.
    pub(crate) fn removed(&mut self, node: u32) {
        self.pages.retain(|(of, _), _| *of != node);
        self.pending.retain(|pending| pending.node != node);
    }

    /// Returns the known pages, each with the version of the last write that has returned.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.pages.iter().map(|(&(node, page), &version)| (node, page, version))
    }

    /// Returns the known pages of one file.
    pub(crate) fn pages_of(&self, node: u32) -> Vec<(u64, u64)> {
        self.pages.range((node, 0)..=(node, u64::MAX)).map(|(&(_, page), &version)| (page, version)).collect()
    }

    /// Returns the latest version of a page that may be in memory.
    pub(crate) fn youngest(&self, node: u32, page: u64) -> u64 {
        let pending =
            self.pending.iter().filter(|pending| pending.node == node && (pending.from..pending.end).contains(&page));
        let known = self.pages.get(&(node, page)).copied().unwrap_or(0);
        pending.map(|pending| pending.version).fold(known, u64::max)
    }
}

/// A medium with a volatile cache.
#[derive(Debug, Default)]
pub(crate) struct Medium {
    /// Contents that a read returns.
    visible: BTreeMap<u64, Content>,
    /// Contents that remain after a loss of power.
    stable: BTreeMap<u64, Content>,
    /// Contents that are written but not flushed, in order. The number of the first one is
    /// `flushed`.
    volatile: Vec<(u64, Content)>,
    flushed: usize,
}

impl Medium {
    /// Writes contents to blocks.
    pub(crate) fn write(&mut self, blocks: &[(u64, Content)], volatile: bool) {
        for &(block, content) in blocks {
            self.visible.insert(block, content);
            if volatile {
                self.volatile.push((block, content));
            } else {
                self.stable.insert(block, content);
            }
        }
    }

    /// Begins a flush. Returns a mark: the flush brings all contents before this mark to the
    /// medium.
    pub(crate) fn flush_begins(&self) -> usize {
        self.flushed + self.volatile.len()
    }

    /// Ends the flush with this mark.
    pub(crate) fn flush_ends(&mut self, mark: usize) {
        let count = mark.saturating_sub(self.flushed).min(self.volatile.len());
        for (block, content) in self.volatile.drain(..count) {
            self.stable.insert(block, content);
        }
        self.flushed += count;
    }

    /// Returns whether a block holds this version of a page or a later one.
    pub(crate) fn holds(&self, block: u64, wanted: Content, stable: bool) -> bool {
        let blocks = if stable { &self.stable } else { &self.visible };
        blocks.get(&block).is_some_and(|content| {
            (content.node, content.page) == (wanted.node, wanted.page) && content.version >= wanted.version
        })
    }
}
