//! What applications wrote, version by version, and which of it is on the medium.

use std::collections::BTreeMap;

/// What a block of the device holds: of which file, which page of it, in which version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) node: u32,
    pub(crate) page: u64,
    pub(crate) version: u64,
}

/// A write under way.
#[derive(Clone, Copy, Debug)]
struct Pending {
    task: usize,
    node: u32,
    from: u64,
    end: u64,
    version: u64,
}

/// What system calls have written.
#[derive(Debug, Default)]
pub(crate) struct Written {
    next: u64,
    pages: BTreeMap<(u32, u64), u64>,
    pending: Vec<Pending>,
}

impl Written {
    /// A task begins to write to pages `from..end`.
    pub(crate) fn begins(&mut self, task: usize, node: u32, from: u64, end: u64) {
        self.next += 1;
        self.pending.push(Pending { task, node, from, end, version: self.next });
    }

    /// The write of a task has returned. What was removed meanwhile is not expected to be anywhere.
    pub(crate) fn returned(&mut self, task: usize) {
        let Some(at) = self.pending.iter().position(|pending| pending.task == task) else { return };
        let Pending { node, from, end, version, .. } = self.pending.swap_remove(at);
        for page in from..end {
            self.pages.insert((node, page), version);
        }
    }

    /// A file loses its contents.
    pub(crate) fn removed(&mut self, node: u32) {
        self.pages.retain(|(of, _), _| *of != node);
        self.pending.retain(|pending| pending.node != node);
    }

    /// Pages of which something is known, with the version that the last write that has returned left.
    pub(crate) fn pages(&self) -> impl Iterator<Item = (u32, u64, u64)> {
        self.pages.iter().map(|(&(node, page), &version)| (node, page, version))
    }

    /// Pages of one file.
    pub(crate) fn pages_of(&self, node: u32) -> Vec<(u64, u64)> {
        self.pages.range((node, 0)..=(node, u64::MAX)).map(|(&(_, page), &version)| (page, version)).collect()
    }

    /// The youngest version that memory may hold of a page.
    pub(crate) fn youngest(&self, node: u32, page: u64) -> u64 {
        let pending =
            self.pending.iter().filter(|pending| pending.node == node && (pending.from..pending.end).contains(&page));
        let known = self.pages.get(&(node, page)).copied().unwrap_or(0);
        pending.map(|pending| pending.version).fold(known, u64::max)
    }
}

/// A medium with a volatile cache in front of it.
#[derive(Debug, Default)]
pub(crate) struct Medium {
    /// What a read gives.
    visible: BTreeMap<u64, Content>,
    /// What is there after power was lost.
    stable: BTreeMap<u64, Content>,
    /// Written and not flushed yet, in order, from number `flushed` on.
    volatile: Vec<(u64, Content)>,
    flushed: usize,
}

impl Medium {
    /// Blocks were written.
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

    /// What a flush that begins now will bring to the medium.
    pub(crate) fn flush_begins(&self) -> usize {
        self.flushed + self.volatile.len()
    }

    /// A flush is done that began then.
    pub(crate) fn flush_ends(&mut self, mark: usize) {
        let count = mark.saturating_sub(self.flushed).min(self.volatile.len());
        for (block, content) in self.volatile.drain(..count) {
            self.stable.insert(block, content);
        }
        self.flushed += count;
    }

    /// Whether a block holds this page in this version or a younger one.
    pub(crate) fn holds(&self, block: u64, wanted: Content, stable: bool) -> bool {
        let blocks = if stable { &self.stable } else { &self.visible };
        blocks.get(&block).is_some_and(|content| {
            (content.node, content.page) == (wanted.node, wanted.page) && content.version >= wanted.version
        })
    }
}
