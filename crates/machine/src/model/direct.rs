//! Direct I/O, which bypasses the page cache, one call at a time.

use std::ops::Range;

use iosched::{Flags, Op, SECTOR_BYTES};
use iosched_workload::app::{Node, OpenFlags};

use super::Model;
use super::io::{DiskRange, Purpose};
use super::metadata::Metadata;
use super::sync::Fsync;
use super::task::{Action, Frame, Wait};
use super::writeback::{Scope, Writeback};
use crate::fs::Ino;
use crate::{PAGE_BYTES, PAGE_SECTORS};

/// A run of direct reads or writes in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    pub(super) node: Node,
    pub(super) is_write: bool,
    /// Offset at which the next call begins, bytes. The next field is the end of all calls.
    pub(super) position: u64,
    pub(super) end: u64,
    /// Length of one call, bytes.
    pub(super) call_bytes: u64,
    /// Flags of the open file, such as `O_SYNC`.
    pub(super) flags: OpenFlags,
    /// Tag for the report of the completion, if the call does not wait for the I/O.
    pub(super) tag: Option<u32>,
    /// Stage of the present call.
    pub(super) stage: DirectStage,
}

/// Stage of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectStage {
    /// The call begins.
    Begin,
    /// The blocks of the call are allocated.
    Allocated,
    /// The bios of the call are in flight.
    Sent,
    /// The bios of the call are complete.
    Done,
}

/// A range of a file whose data the device may discard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Discard {
    pub(super) node: Node,
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) sent: bool,
}

/// Direct writes to allocated blocks that are submitted together.
#[derive(Clone, Debug)]
pub(super) struct Scatter {
    pub(super) node: Node,
    /// Length of each write, bytes.
    pub(super) bytes: u64,
    /// Offset of each write, bytes.
    pub(super) offsets: Vec<u64>,
    /// Index of the next offset to be submitted.
    pub(super) next: usize,
}

impl Model {
    pub(super) fn direct(&mut self, task: u32, direct: &mut Direct) -> Action {
        let (disk, ino) = self.file(task, direct.node);
        let size = self.disks[disk].fs.size(ino);
        if !direct.is_write {
            direct.end = direct.end.min(size);
        }
        if direct.position >= direct.end {
            return Action::Pop;
        }
        let to = (direct.position + direct.call_bytes).min(direct.end);
        let (page, last) = (direct.position / PAGE_BYTES, to.div_ceil(PAGE_BYTES));
        match direct.stage {
            DirectStage::Begin => {
                if let Some(action) = self.leave_cache(disk, ino, page..last, direct.is_write) {
                    return action;
                }
                direct.stage = DirectStage::Allocated;
                if !direct.is_write {
                    return Action::Cpu(self.machine.cpu.syscall_ns);
                }
                if self.is_device(disk, ino) {
                    return Action::Cpu(self.machine.cpu.syscall_ns);
                }
                let effects = &mut self.tasks[task as usize].effects;
                effects.clear();
                let fs = &mut self.disks[disk].fs;
                let allocated = match self.machine.kernel.allocates_unwritten() {
                    true => fs.allocate_unwritten(ino, page, last - page, effects),
                    false => fs.allocate(ino, page, last - page, effects),
                };
                if let Err(error) = allocated {
                    self.fail(error);
                }
                let grows = to > size;
                if grows {
                    self.disks[disk].fs.set_size(ino, to);
                }
                let work = match grows || !self.tasks[task as usize].effects.dirties.is_empty() {
                    true => self.allocated(disk, ino),
                    false => Metadata::new(disk, 0).changing(ino),
                };
                self.tasks[task as usize].debt_ns += self.machine.cpu.syscall_ns;
                Action::Push(Frame::Metadata(work))
            }
            DirectStage::Allocated => {
                let (op, flags) = match direct.is_write {
                    true => (Op::Write, self.machine.kernel.direct_write_flags()),
                    false => (Op::Read, Flags::empty()),
                };
                let bytes = direct.position..to;
                if let Some(action) = self.find_direct(task, disk, ino, &bytes) {
                    return action;
                }
                let writes = direct.is_write.then(|| (self.mapping(disk, ino), page, last - page));
                let begun = direct.tag.map(|tag| self.ios.begin(task, tag, writes));
                self.send_direct(task, disk, ino, (op, flags), bytes, begun);
                if let Some(begun) = begun {
                    direct.position = to;
                    self.begun_done(begun);
                    return if self.tasks[task as usize].outbox.is_empty() { Action::Pop } else { Action::Submit };
                }
                direct.stage = DirectStage::Sent;
                Action::Submit
            }
            DirectStage::Sent => {
                direct.stage = DirectStage::Done;
                self.wait_for_own(task)
            }
            DirectStage::Done => {
                if direct.is_write && self.disks[disk].fs.has_unwritten(ino, page, last - page) {
                    return Action::Push(Frame::Metadata(self.note_written(task, disk, ino, page, last - page)));
                }
                direct.stage = DirectStage::Begin;
                direct.position = to;
                match direct.flags.sync && direct.is_write {
                    true => Action::Push(Frame::Fsync(Fsync::new(direct.node, direct.flags.data_only))),
                    false => Action::Cpu(0),
                }
            }
        }
    }

    pub(super) fn scatter(&mut self, task: u32, scatter: &mut Scatter) -> Action {
        let (disk, ino) = self.file(task, scatter.node);
        if scatter.next == 0
            && let Some(&first) = scatter.offsets.first()
        {
            let all = scatter.offsets.iter().fold(first..first, |all, at| all.start.min(*at)..all.end.max(*at));
            let pages = all.start / PAGE_BYTES..(all.end + scatter.bytes).div_ceil(PAGE_BYTES);
            if let Some(action) = self.leave_cache(disk, ino, pages, true) {
                return action;
            }
        }
        let kind = (Op::Write, self.machine.kernel.direct_write_flags());
        while let Some(&offset) = scatter.offsets.get(scatter.next) {
            let bytes = offset..offset + scatter.bytes;
            if let Some(action) = self.find_direct(task, disk, ino, &bytes) {
                return action;
            }
            self.send_direct(task, disk, ino, kind, bytes, None);
            scatter.next += 1;
        }
        match std::mem::take(&mut scatter.next) {
            0 if self.tasks[task as usize].own_ios > 0 => Action::Block(Wait::OwnIo),
            0 => Action::Pop,
            _ => {
                scatter.offsets.clear();
                self.tasks[task as usize].debt_ns += self.machine.cpu.syscall_ns;
                Action::Submit
            }
        }
    }

    /// Prepares the page cache for direct I/O: writes the dirty pages of the file to the disk, and
    /// drops cached pages that a write replaces. Returns `None` when this is done.
    fn leave_cache(&mut self, disk: usize, ino: Ino, pages: Range<u64>, is_write: bool) -> Option<Action> {
        let mapping = self.mapping(disk, ino);
        if self.cache.has_dirty(mapping) {
            return Some(Action::Push(Frame::Writeback(Writeback::new(disk, Scope::File(mapping), u64::MAX).sync())));
        }
        if self.cache.nr_writeback_of(mapping) > 0 {
            return Some(Action::Block(Wait::Written(mapping)));
        }
        if is_write && self.cache.pages_of(mapping) > 0 {
            self.cache.invalidate(mapping, pages.start, pages.end - pages.start);
        }
        None
    }

    /// Discards a range of a file on the device, and drops its cached pages.
    pub(super) fn discard(&mut self, task: u32, discard: &mut Discard) -> Action {
        if std::mem::replace(&mut discard.sent, true) {
            return match self.tasks[task as usize].own_ios {
                0 => Action::Pop,
                _ => Action::Block(Wait::OwnIo),
            };
        }
        let (disk, ino) = self.file(task, discard.node);
        let bytes = discard.offset..discard.end;
        let pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
        discard.sent = false;
        if let Some(action) = self.leave_cache(disk, ino, pages, true) {
            return action;
        }
        if let Some(action) = self.find_direct(task, disk, ino, &bytes) {
            return action;
        }
        discard.sent = true;
        self.tasks[task as usize].debt_ns += self.machine.cpu.syscall_ns;
        self.send_direct(task, disk, ino, (Op::Discard, Flags::empty()), bytes, None);
        Action::Submit
    }

    /// Ensures that the metadata that maps these bytes to blocks is in memory. Returns `None` when
    /// it is. All of this metadata must be in memory before any I/O is submitted, because otherwise
    /// a part of the I/O would be submitted twice.
    fn find_direct(&mut self, task: u32, disk: usize, ino: Ino, bytes: &Range<u64>) -> Option<Action> {
        let mut pages = bytes.start / PAGE_BYTES..bytes.end.div_ceil(PAGE_BYTES);
        pages.find_map(|page| self.need_map(task, disk, ino, page))
    }

    /// Submits direct I/O of bytes of a file, in whole sectors. If the task does not wait, the bios
    /// belong to the I/O with the number `begun`.
    fn send_direct(
        &mut self,
        task: u32,
        disk: usize,
        ino: Ino,
        (op, flags): (Op, Flags),
        bytes: Range<u64>,
        begun: Option<u32>,
    ) {
        let mut at = bytes.start / SECTOR_BYTES;
        let end = bytes.end.div_ceil(SECTOR_BYTES);
        while at < end {
            let (page, within) = (at / PAGE_SECTORS, at % PAGE_SECTORS);
            let mapped = self.disks[disk].fs.map(ino, page);
            let Some(mapped) = mapped.filter(|mapped| op.is_write() || !mapped.unwritten) else {
                // A hole reads as zeroes.
                at += PAGE_SECTORS - within;
                continue;
            };
            let nr_sectors = (mapped.pages * PAGE_SECTORS - within).min(end - at);
            let place = DiskRange { disk, sector: mapped.block * PAGE_SECTORS + within, nr_sectors };
            let purpose = begun.map_or(Purpose::Own { task }, |begun| Purpose::Begun { begun });
            self.send(task, op, flags, place, |_, _| purpose);
            at += nr_sectors;
        }
    }

    /// Waits for the I/Os for which only `task` waits, if there are any.
    pub(super) fn wait_for_own(&mut self, task: u32) -> Action {
        if self.tasks[task as usize].own_ios == 0 { Action::Cpu(0) } else { Action::Block(Wait::OwnIo) }
    }
}
