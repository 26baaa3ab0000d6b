//! Writeback of dirty pages: inode by inode, in the order in which the inodes became dirty. In each
//! inode, writeback continues where the last pass ended, in order of offset.

use iosched::Flags;

use super::Model;
use super::io::DiskRange;
use super::task::{Action, Frame, Wait};
use crate::cache::Mapping;
use crate::description::Resumption;

/// Maximum number of pages whose blocks are allocated at once: 2048 pages, which are 8 MiB. This is
/// the longest chunk of ext4's allocator.
const ALLOCATED_PAGES_MAX: u64 = 2048;

/// Pages that a pass writes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// Pages of a file.
    File(Mapping),
    /// All pages of a disk.
    All,
    /// Pages of a disk that became dirty before or at this time, ns.
    Older(u64),
}

/// A pass of writeback in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writeback {
    disk: usize,
    scope: Scope,
    /// Number of pages that the pass may still write.
    budget: u64,
    /// Whether a task waits for the pass. If so, the pass writes all pages that are dirty at its
    /// start.
    sync: bool,
    /// Whether the pass stops at a congested queue.
    nonblocking: bool,
    /// Whether pages without blocks are skipped.
    mapped_only: bool,
    /// Whether some pages were already under writeback when the pass began. If such a page is
    /// dirtied during this writeback, the pass must write the page again.
    again: bool,
    current: Option<Cursor>,
    /// Number of inodes that the pass may still process.
    inodes: usize,
    written: u64,
}

/// Position of writeback in a file.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    mapping: Mapping,
    /// Page at which the pass began in this file.
    start: u64,
    /// Number of pages of the file that the pass has written.
    written: u64,
    page: u64,
    /// Page at which the pass over the file ends. This is the end of the file. If the pass has
    /// continued at page 0, this is the page at which it began.
    end: u64,
}

/// Result of a pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Number of written pages.
    pub(super) written: u64,
    /// Whether the queue was congested.
    pub(super) congested: bool,
    /// Whether dirty pages of the scope are left.
    pub(super) more: bool,
}

impl Writeback {
    pub(super) const fn new(disk: usize, scope: Scope, budget: u64) -> Self {
        Self {
            disk,
            scope,
            budget,
            sync: false,
            nonblocking: false,
            mapped_only: false,
            again: false,
            current: None,
            inodes: usize::MAX,
            written: 0,
        }
    }

    /// Makes the pass one for which a task waits.
    pub(super) const fn sync(self) -> Self {
        Self { sync: true, ..self }
    }

    /// Makes the pass skip pages without blocks.
    pub(super) const fn mapped_only(self) -> Self {
        Self { mapped_only: true, ..self }
    }

    /// Makes the pass stop at a congested queue.
    pub(super) const fn nonblocking(self) -> Self {
        Self { nonblocking: true, ..self }
    }
}

impl Model {
    pub(super) fn writeback(&mut self, task: u32, pass: &mut Writeback) -> Action {
        let disk = pass.disk;
        if pass.inodes == usize::MAX {
            pass.inodes = match pass.scope {
                Scope::File(_) => 1,
                _ => self.disks[disk].dirty_inodes.len(),
            };
        }
        loop {
            let congested = pass.nonblocking && self.disks[disk].congested;
            if pass.budget == 0 || congested {
                let more = self.leave(pass);
                return self.end_pass(task, pass, congested, more);
            }
            let Some(mut cursor) = pass.current else {
                match self.next_inode(pass) {
                    Some(cursor) => pass.current = Some(cursor),
                    None => return self.end_pass(task, pass, false, false),
                }
                continue;
            };
            let found = self.cache.next_dirty_up_to(cursor.mapping, cursor.page, pass.budget.min(ALLOCATED_PAGES_MAX));
            let found = found.filter(|(page, _)| *page < cursor.end);
            let Some((page, pages)) = found else {
                let index = self.inode(cursor.mapping).writeback_index;
                if std::mem::take(&mut pass.again) && self.cache.has_dirty(cursor.mapping) {
                    pass.current = Some(Cursor { page: 0, ..cursor });
                    if self.cache.nr_writeback_of(cursor.mapping) > 0 {
                        return Action::Block(Wait::Written(cursor.mapping));
                    }
                } else if cursor.end == u64::MAX && index > 0 && !pass.sync && self.begins_again(&cursor) {
                    pass.current = Some(Cursor { start: 0, page: 0, end: index, ..cursor });
                } else {
                    self.finish_inode(pass, cursor);
                }
                continue;
            };
            let pages = pages.min(pass.budget).min(cursor.end - page);
            let (block, mapped_pages) = if cursor.mapping == self.device_mapping(disk) {
                // Blocks that an uncommitted transaction has changed stay in memory.
                let journal = &self.disks[disk].journal;
                let writable = (page..page + pages).take_while(|&block| journal.is_writable(block)).count() as u64;
                if writable == 0 {
                    pass.current = Some(Cursor { page: page + 1, ..cursor });
                    continue;
                }
                (page, writable)
            } else {
                let (_, ino) = self.owner(cursor.mapping);
                match self.disks[disk].fs.map(ino, page) {
                    Some(mapped) => (mapped.block, mapped.pages),
                    None if pass.mapped_only => {
                        pass.current = Some(Cursor { page: page + pages, ..cursor });
                        continue;
                    }
                    None => return self.allocate_delayed(task, disk, cursor.mapping, page, pages),
                }
            };
            let pages = pages.min(mapped_pages).min(self.disks[disk].bio_pages_max());
            cursor.page = page + pages;
            cursor.written += pages;
            pass.budget -= pages;
            pass.written += pages;
            pass.current = Some(cursor);
            self.cache.start_writeback(cursor.mapping, page, pages);
            let flags = if pass.sync { Flags::SYNC } else { Flags::empty() };
            self.send_clean(task, DiskRange::blocks(disk, block, pages), flags, cursor.mapping, page);
            return Action::Submit;
        }
    }

    /// Allocates blocks for pages that only have reserved blocks.
    fn allocate_delayed(&mut self, task: u32, disk: usize, mapping: Mapping, page: u64, pages: u64) -> Action {
        let (_, ino) = self.owner(mapping);
        let this = &mut self.tasks[task as usize];
        this.effects.clear();
        let fs = &mut self.disks[disk].fs;
        let unwritten = self.machine.kernel.allocates_unwritten();
        let allocated = match unwritten {
            true => fs.allocate_unwritten(ino, page, pages, &mut this.effects),
            false => fs.allocate(ino, page, pages, &mut this.effects),
        };
        if let Err(error) = allocated {
            self.fail(error);
        }
        self.keep_promise(disk, mapping, pages);
        let work = self.allocated(disk, ino);
        Action::Push(Frame::Metadata(if unwritten { work.unordered() } else { work }))
    }

    /// Returns the next inode in the scope of the pass.
    fn next_inode(&mut self, pass: &mut Writeback) -> Option<Cursor> {
        loop {
            if pass.inodes == 0 {
                return None;
            }
            pass.inodes -= 1;
            let mapping = match pass.scope {
                Scope::File(mapping) => mapping,
                Scope::All => self.disks[pass.disk].dirty_inodes.pop_front()?.mapping,
                Scope::Older(moment_ns) => {
                    let queue = &mut self.disks[pass.disk].dirty_inodes;
                    queue.front().filter(|inode| inode.since_ns <= moment_ns)?;
                    queue.pop_front()?.mapping
                }
            };
            if self.cache.has_dirty(mapping) {
                let page = if pass.sync { 0 } else { self.inode(mapping).writeback_index };
                pass.again = pass.sync && self.cache.nr_writeback_of(mapping) > 0;
                if !matches!(pass.scope, Scope::File(_)) {
                    self.disks[pass.disk].held.push(mapping);
                }
                return Some(Cursor { mapping, start: page, written: 0, page, end: u64::MAX });
            }
            if !matches!(pass.scope, Scope::File(_)) {
                self.inode_mut(mapping).listed = false;
            }
        }
    }

    /// Ends the pass over a file.
    fn finish_inode(&mut self, pass: &mut Writeback, cursor: Cursor) {
        pass.current = None;
        self.keep_index(pass, &cursor);
        if !matches!(pass.scope, Scope::File(_)) {
            self.relist(pass.disk, cursor.mapping);
        }
    }

    /// Stores where the next pass over the file begins.
    fn keep_index(&mut self, pass: &Writeback, cursor: &Cursor) {
        if !pass.sync {
            self.inode_mut(cursor.mapping).writeback_index = match self.resumption(cursor.mapping) {
                Resumption::BehindScanned => cursor.page,
                Resumption::BehindAsMany => cursor.start + cursor.written,
            };
        }
    }

    /// Returns whether a pass that reaches the end of a file continues at its beginning.
    fn begins_again(&self, cursor: &Cursor) -> bool {
        self.resumption(cursor.mapping) == Resumption::BehindScanned || cursor.written == 0
    }

    /// Returns the rule for the page at which the next pass over a file begins. For a disk's own
    /// pages, the rules of the file system do not apply.
    fn resumption(&self, mapping: Mapping) -> Resumption {
        let (disk, _) = self.owner(mapping);
        if mapping == self.device_mapping(disk) || !self.machine.file_system.delayed_allocation() {
            return Resumption::BehindScanned;
        }
        self.machine.kernel.resumption()
    }

    /// Stops the pass in the middle of a file. The next pass continues at this position. Returns
    /// whether dirty pages may remain.
    fn leave(&mut self, pass: &mut Writeback) -> bool {
        let Some(cursor) = pass.current.take() else {
            return pass.inodes > 0;
        };
        self.keep_index(pass, &cursor);
        if !matches!(pass.scope, Scope::File(_)) {
            self.relist(pass.disk, cursor.mapping);
        }
        true
    }

    fn end_pass(&mut self, task: u32, pass: &Writeback, congested: bool, more: bool) -> Action {
        self.tasks[task as usize].written = Outcome { written: pass.written, congested, more };
        Action::Pop
    }

    /// Records that pages of a file are on the disk.
    pub(super) fn written(&mut self, mapping: Mapping, page: u64, pages: u64) {
        let (disk, _) = self.owner(mapping);
        let this = &mut self.disks[disk];
        this.writeback_pages -= pages;
        this.written_pages += pages;
        let all = this.writeback_pages == 0;
        if mapping == self.device_mapping(disk) {
            for block in page..page + pages {
                self.disks[disk].journal.written(block);
            }
            self.wake(|wait| matches!(wait, Wait::Journal(of) if *of == disk));
        }
        let of_file = self.cache.nr_writeback_of(mapping) == 0;
        self.wake(|wait| match wait {
            Wait::Written(waited) => *waited == mapping && of_file,
            Wait::AllWritten(waited) => *waited == disk && all,
            _ => false,
        });
    }
}
