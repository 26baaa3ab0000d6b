//! Buffered writes. Pages become dirty in the page cache. Tasks that dirty many pages are
//! throttled.

use iosched_workload::app::{Node, OpenFlags, Source};

use super::read::ReadAhead;
use super::sync::Fsync;
use super::task::{Action, Frame, Wait};
use super::throttle::Throttle;
use super::{Model, PAGE_BYTES};
use crate::cache::{Cached, State};
use crate::fs::FsKind;

/// A run of writes in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    pub(super) node: Node,
    /// Offset of the next byte to write. The next field is the end of all calls.
    pub(super) position: u64,
    pub(super) end: u64,
    /// Length of one call, bytes.
    pub(super) call_bytes: u64,
    pub(super) start: u64,
    pub(super) source: Source,
    /// End of the pages with allocated or reserved blocks.
    pub(super) allocated: u64,
    /// Flags of the open file. With `O_SYNC`, the data of each call is on the
    /// medium before the call ends.
    pub(super) flags: OpenFlags,
    /// Whether the same bytes were written just before, so that they may be in the CPU's cache.
    pub(super) again: bool,
}

impl Model {
    pub(super) fn write(&mut self, task: u32, write: &mut Write) -> Action {
        if write.position >= write.end {
            return Action::Pop;
        }
        let (disk, ino) = self.file(task, write.node);
        let mapping = self.mapping(disk, ino);
        let size = self.disks[disk].fs.size(ino);
        let page = write.position / PAGE_BYTES;
        // With O_SYNC, every call is a step. Otherwise a step contains all pages that the task may
        // dirty before the next check of the limits.
        let turn_end = match write.flags.sync {
            true => write.start + ((write.position - write.start) / write.call_bytes + 1) * write.call_bytes,
            false => write.position + self.dirty_turn_pages(task) * PAGE_BYTES,
        };
        let to = turn_end.min(write.end);
        // If a write covers only a part of an existing page, the kernel first reads the page.
        for edge in [write.position, to] {
            let at = edge / PAGE_BYTES;
            let partly = !edge.is_multiple_of(PAGE_BYTES) && at * PAGE_BYTES < size;
            if partly && (edge == write.position || to < size) {
                match self.cache.get(mapping, at) {
                    Cached::Absent { .. } => return Action::Push(Frame::ReadAhead(ReadAhead::page(mapping, at))),
                    Cached::Run { state: State::Reading, .. } => return Action::Block(Wait::Page(mapping, at)),
                    Cached::Run { .. } => {}
                }
            }
        }
        let last = to.div_ceil(PAGE_BYTES);
        if let Some(action) = self.allocate_for_write(task, write, disk, page, last) {
            return action;
        }
        if let Some(action) = self.dirty(mapping, page, last) {
            return action;
        }
        if let Some(action) = self.inode_changed(disk, ino, to > size) {
            return action;
        }
        if to > size {
            self.disks[disk].fs.set_size(ino, to);
        }
        let bytes = to - write.position;
        let calls_before = |position: u64| (position - write.start).div_ceil(write.call_bytes);
        let calls = calls_before(to) - calls_before(write.position);
        // If a part of the first page was written before, an earlier step has counted this page.
        let pages = last - write.position.div_ceil(PAGE_BYTES);
        self.tasks[task as usize].dirtied_pages += pages;
        write.position = to;
        let cpu = &self.machine.cpu;
        let each_ns = cpu.syscall_ns * (1 + u64::from(write.source == Source::Zero));
        let zero_ns = match write.source {
            Source::Zero => super::transfer_ns(bytes, cpu.zero_bytes_per_s),
            Source::Buffer => 0,
        };
        let cpu_ns = calls * each_ns + zero_ns + pages.max(calls) * cpu.page_ns;
        self.tasks[task as usize].debt_ns += cpu_ns + self.copy_ns(bytes, write.call_bytes, write.again);
        if write.flags.sync {
            return Action::Push(Frame::Fsync(Fsync::new(write.node, write.flags.data_only)));
        }
        if self.tasks[task as usize].dirtied_pages >= self.ratelimit_pages(task) {
            let dirtied = std::mem::take(&mut self.tasks[task as usize].dirtied_pages);
            return Action::Push(Frame::Throttle(Throttle::new(disk, dirtied)));
        }
        Action::Cpu(0)
    }

    /// Allocates or reserves blocks for pages that have none. Returns `None` when this is done.
    fn allocate_for_write(
        &mut self,
        task: u32,
        write: &mut Write,
        disk: usize,
        page: u64,
        last: u64,
    ) -> Option<Action> {
        let (_, ino) = self.file(task, write.node);
        if last <= write.allocated || self.is_device(disk, ino) {
            return None;
        }
        let mapping = self.mapping(disk, ino);
        let fs = &mut self.disks[disk].fs;
        write.allocated = last;
        match fs.config().kind {
            // ext4 allocates blocks at writeback. If a page is mapped or dirty, it already has a
            // block or a reserved block.
            FsKind::Ext4 => {
                let mut at = page;
                while at < last {
                    if let Some(mapped) = self.disks[disk].fs.map(ino, at) {
                        at += mapped.pages;
                    } else {
                        match self.cache.get(mapping, at) {
                            Cached::Run { state: State::Dirty, until } => at = until,
                            Cached::Run { .. } => {
                                self.promise(disk, mapping, 1);
                                at += 1;
                            }
                            Cached::Absent { until } => {
                                self.promise(disk, mapping, until.min(last) - at);
                                at = until;
                            }
                        }
                    }
                }
                None
            }
            FsKind::Ext3 => {
                let effects = &mut self.tasks[task as usize].effects;
                effects.clear();
                if let Err(error) = fs.allocate(ino, page, last - page, effects) {
                    self.fail(error);
                }
                Some(Action::Push(Frame::Metadata(self.allocated(disk, ino))))
            }
        }
    }

    /// Makes the pages in `page..last` dirty. Returns `None` when this is done.
    fn dirty(&mut self, mapping: crate::cache::Mapping, page: u64, last: u64) -> Option<Action> {
        let mut at = page;
        while at < last {
            at = match self.cache.get(mapping, at) {
                Cached::Absent { until } => {
                    let until = until.min(last);
                    if self.cache.insert_accessed(mapping, at, until - at, State::Dirty).is_err() {
                        return Some(self.wait_for_memory());
                    }
                    until
                }
                Cached::Run { state: State::Reading, .. } => return Some(Action::Block(Wait::Page(mapping, at))),
                Cached::Run { until, .. } => {
                    let until = until.min(last);
                    self.cache.set_dirty(mapping, at, until - at);
                    self.cache.access(mapping, at, until - at);
                    until
                }
            };
        }
        self.now_dirty(mapping);
        None
    }
}
