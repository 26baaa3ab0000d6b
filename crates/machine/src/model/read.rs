//! Buffered reads. The kernel looks up each page in the page cache, and readahead reads missing
//! pages.

use iosched::Flags;
use iosched_workload::app::{Advice, Node};

use super::io::DiskRange;
use super::task::{Action, Frame, Wait};
use super::{Model, PAGE_BYTES};
use crate::cache::{Cached, Mapping, State};
use crate::readahead::Plan;

/// Maximum number of pages that are copied in one step: 1 MiB.
const COPY_PAGES_MAX: u64 = 256;

/// A run of reads in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    pub(super) node: Node,
    /// Offset of the next byte to read. The next field is the end of all calls.
    pub(super) position: u64,
    pub(super) end: u64,
    /// Length of one call, bytes.
    pub(super) call_bytes: u64,
    /// End of the present call, bytes.
    pub(super) call_end: u64,
    /// Whether the same bytes were read just before, so that they may be in the CPU's cache.
    pub(super) again: bool,
}

/// A range of a file that readahead reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadAhead {
    mapping: Mapping,
    /// The next page to read. The next field is the page after the range.
    page: u64,
    end: u64,
    /// Page that triggers the next readahead when the reader comes to it.
    mark: Option<u64>,
}

impl ReadAhead {
    fn new(mapping: Mapping, plan: &Plan) -> Self {
        Self { mapping, page: plan.start, end: plan.start + plan.pages, mark: plan.mark }
    }

    /// Returns a range of one page.
    pub(super) const fn page(mapping: Mapping, page: u64) -> Self {
        Self::pages(mapping, page, 1)
    }

    /// Returns a range of pages without a mark.
    const fn pages(mapping: Mapping, page: u64, pages: u64) -> Self {
        Self { mapping, page, end: page + pages, mark: None }
    }
}

impl Model {
    pub(super) fn read(&mut self, task: u32, read: &mut Read) -> Action {
        let (disk, ino) = self.file(task, read.node);
        let mapping = self.mapping(disk, ino);
        let size = self.disks[disk].fs.size(ino);
        let end = read.end.min(size);
        if read.position >= end {
            return Action::Pop;
        }
        while read.call_end <= read.position {
            read.call_end += read.call_bytes;
        }
        let page = read.position / PAGE_BYTES;
        let call_end = read.call_end.min(end);
        let wanted = call_end.div_ceil(PAGE_BYTES) - page;
        let open = self.open_file(task, read.node);
        match self.cache.get(mapping, page) {
            Cached::Absent { .. } => {
                let advice = self.tasks[task as usize].open[open].flags.advice;
                if advice == Advice::Random {
                    return Action::Push(Frame::ReadAhead(ReadAhead::pages(mapping, page, wanted)));
                }
                let max = self.readahead_pages_max(disk, wanted, advice);
                let cache = &self.cache;
                let before = || {
                    (1..=max.min(page))
                        .take_while(|&n| matches!(cache.get(mapping, page - n), Cached::Run { .. }))
                        .count() as u64
                };
                let plan = self.tasks[task as usize].open[open].readahead.sync(page, wanted, max, before);
                Action::Push(Frame::ReadAhead(ReadAhead::new(mapping, &plan)))
            }
            Cached::Run { state: State::Reading, .. } => {
                // A page that is still being read may have a readahead mark.
                self.ahead_of(task, mapping, open, page, wanted).unwrap_or(Action::Block(Wait::Page(mapping, page)))
            }
            Cached::Run { until, state } => {
                // The mark of a page under writeback is ignored, because Linux uses the same bit
                // for mark and writeback.
                if !state.is_writeback()
                    && let Some(action) = self.ahead_of(task, mapping, open, page, wanted)
                {
                    return action;
                }
                let until = until.min(page + COPY_PAGES_MAX);
                let until = self.cache.next_mark(mapping, page + 1, until).unwrap_or(until);
                // One step executes all calls within the run.
                let to = (until * PAGE_BYTES).min(end);
                let bytes = to - read.position;
                let calls = bytes.div_ceil(read.call_bytes);
                let pages = to.div_ceil(PAGE_BYTES) - page;
                let this = &mut self.tasks[task as usize].open[open];
                // If a read continues in the middle of the page that the previous read used, it
                // does not use this page again.
                let within = !read.position.is_multiple_of(PAGE_BYTES) && this.readahead.previous_page() == Some(page);
                let skipped = u64::from(within);
                self.cache.access(mapping, page + skipped, pages - skipped);
                this.readahead.read_ended((to - 1) / PAGE_BYTES);
                read.position = to;
                let cpu = &self.machine.cpu;
                let kernel_ns = calls * cpu.syscall_ns + pages.max(calls) * cpu.page_ns;
                Action::Cpu(self.copy_ns(bytes, read.call_bytes, read.again) + kernel_ns)
            }
        }
    }

    /// Returns the action of the next readahead, if the page has a mark.
    fn ahead_of(&mut self, task: u32, mapping: Mapping, open: usize, page: u64, wanted: u64) -> Option<Action> {
        if !self.cache.take_mark(mapping, page) {
            return None;
        }
        let (disk, _) = self.owner(mapping);
        let advice = self.tasks[task as usize].open[open].flags.advice;
        let max = self.readahead_pages_max(disk, wanted, advice);
        let mut absent = page + 1;
        while let Cached::Run { until, .. } = self.cache.get(mapping, absent)
            && absent <= page + max
        {
            absent = until;
        }
        let plan = self.tasks[task as usize].open[open].readahead.hit_mark(page, wanted, max, absent)?;
        Some(Action::Push(Frame::ReadAhead(ReadAhead::new(mapping, &plan))))
    }

    /// Reads the pages of a readahead plan that are in the file and not cached.
    pub(super) fn read_ahead(&mut self, task: u32, ahead: &mut ReadAhead) -> Action {
        let mapping = ahead.mapping;
        let (disk, ino) = self.owner(mapping);
        let end = ahead.end.min(self.disks[disk].fs.size(ino).div_ceil(PAGE_BYTES));
        while ahead.page < end {
            let page = ahead.page;
            let until = match self.cache.get(mapping, page) {
                Cached::Run { until, .. } => {
                    ahead.page = until;
                    continue;
                }
                Cached::Absent { until } => until.min(end),
            };
            if let Some(action) = self.need_map(task, disk, ino, page) {
                return action;
            }
            let (state, pages, block) = match self.disks[disk].fs.map(ino, page) {
                Some(mapped) if mapped.unwritten => (State::Clean, mapped.pages.min(until - page), None),
                Some(mapped) => (State::Reading, mapped.pages.min(until - page), Some(mapped.block)),
                // A hole reads as zeroes.
                None => (State::Clean, 1, None),
            };
            if self.cache.insert(mapping, page, pages, state).is_err() {
                return self.wait_for_memory();
            }
            if let Some(block) = block {
                self.send_fill(task, DiskRange::blocks(disk, block, pages), Flags::empty(), mapping, page);
            }
            ahead.page += pages;
        }
        if let Some(mark) = ahead.mark.take().filter(|mark| *mark < end) {
            self.cache.mark(mapping, mark);
        }
        if self.tasks[task as usize].outbox.is_empty() { Action::Pop } else { Action::Submit }
    }
}
