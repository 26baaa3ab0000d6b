//! Bios, and the actions when they complete.

use iosched::{Flags, Op};

use super::convert::{Conversion, Then};
use super::{Model, Wait};
use crate::cache::Mapping;
use crate::{PAGE_SECTORS, fs::Block};

/// A bio on its way to a disk's request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Number of the disk.
    pub disk: usize,
    /// Operation.
    pub op: Op,
    /// Flags.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Tag that the caller passes to [`Model::completed`].
    pub tag: u32,
    /// Whether the I/O reads or writes pages of the page cache.
    pub buffered: bool,
}

/// Purpose of an I/O, which selects the action at its completion.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Pages are read.
    Fill { mapping: Mapping, page: u64, pages: u64 },
    /// Pages are written to their place.
    Clean { mapping: Mapping, page: u64, pages: u64 },
    /// The submitting task waits for the I/O.
    Own { task: u32 },
    /// The submitting task does not wait. It gets a report when all bios of its I/O are complete.
    /// `begun` is the number of this I/O.
    Begun { begun: u32 },
    /// The slot is free.
    Free { next: u32 },
}

const NONE: u32 = u32::MAX;

/// An I/O for which its task does not wait.
#[derive(Clone, Copy, Debug)]
struct Begun {
    task: u32,
    /// Tag that the report of the completion contains. In a free slot, the index of the next free
    /// slot.
    tag: u32,
    /// Number of bios that are not complete. It is one higher while more bios may follow.
    left: u32,
    /// Pages that the I/O writes: mapping, first page, number of pages.
    writes: Option<(Mapping, u64, u64)>,
}

/// The I/Os in flight, by tag.
#[derive(Debug)]
pub(super) struct Ios {
    slots: Vec<Purpose>,
    free: u32,
    begun: Vec<Begun>,
    free_begun: u32,
}

impl Ios {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: NONE, begun: Vec::new(), free_begun: NONE }
    }

    fn add(&mut self, purpose: Purpose) -> u32 {
        if self.free == NONE {
            self.slots.push(purpose);
            return (self.slots.len() - 1) as u32;
        }
        let tag = self.free;
        if let Purpose::Free { next } = std::mem::replace(&mut self.slots[tag as usize], purpose) {
            self.free = next;
        }
        tag
    }

    /// Begins an I/O for which `task` does not wait. The I/O is complete when all its bios are
    /// complete, and [`begun_done`](Model::begun_done) has reported that no more bios follow.
    pub(super) fn begin(&mut self, task: u32, tag: u32, writes: Option<(Mapping, u64, u64)>) -> u32 {
        let begun = Begun { task, tag, left: 1, writes };
        if self.free_begun == NONE {
            self.begun.push(begun);
            return (self.begun.len() - 1) as u32;
        }
        let number = self.free_begun;
        self.free_begun = std::mem::replace(&mut self.begun[number as usize], begun).tag;
        number
    }

    fn take(&mut self, tag: u32) -> Purpose {
        let free = Purpose::Free { next: self.free };
        self.free = tag;
        std::mem::replace(&mut self.slots[tag as usize], free)
    }
}

/// A range of sectors of a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskRange {
    pub(super) disk: usize,
    pub(super) sector: u64,
    pub(super) nr_sectors: u64,
}

impl DiskRange {
    /// Returns the sectors of `blocks` blocks from `block` on.
    pub(super) const fn blocks(disk: usize, block: Block, blocks: u64) -> Self {
        Self { disk, sector: block * PAGE_SECTORS, nr_sectors: blocks * PAGE_SECTORS }
    }
}

impl Model {
    /// Submits I/O for `task`. Divides it into bios that fit into a request. All bios except the
    /// last have the largest size.
    pub(super) fn send(
        &mut self,
        task: u32,
        op: Op,
        flags: Flags,
        place: DiskRange,
        mut purpose: impl FnMut(u64, u64) -> Purpose,
    ) {
        let DiskRange { disk, sector, nr_sectors } = place;
        let sectors_max = self.disks[disk].bio_sectors_max;
        let mut done = 0;
        while done < nr_sectors {
            let part = sectors_max.min(nr_sectors - done);
            let purpose = purpose(done, part);
            match purpose {
                Purpose::Own { task } => self.tasks[task as usize].own_ios += 1,
                Purpose::Begun { begun } => self.ios.begun[begun as usize].left += 1,
                _ => {}
            }
            let buffered = matches!(purpose, Purpose::Fill { .. } | Purpose::Clean { .. });
            let tag = self.ios.add(purpose);
            let io = Io { disk, op, flags, sector: sector + done, nr_sectors: part as u32, tag, buffered };
            self.tasks[task as usize].outbox.push_back(io);
            done += part;
        }
        self.tasks[task as usize].debt_ns += self.machine.cpu.submit_ns;
    }

    /// Submits a flush of the disk's cache. `task` waits for it.
    pub(super) fn send_flush(&mut self, task: u32, disk: usize) {
        let tag = self.ios.add(Purpose::Own { task });
        let this = &mut self.tasks[task as usize];
        this.own_ios += 1;
        let (op, flags) = (Op::Flush, Flags::SYNC);
        this.outbox.push_back(Io { disk, op, flags, sector: 0, nr_sectors: 0, tag, buffered: false });
    }

    /// Reads pages that are not cached from `place`, their position on a disk.
    pub(super) fn send_fill(&mut self, task: u32, place: DiskRange, flags: Flags, mapping: Mapping, page: u64) {
        let purpose =
            |done, part| Purpose::Fill { mapping, page: page + done / PAGE_SECTORS, pages: part / PAGE_SECTORS };
        self.send(task, Op::Read, flags, place, purpose);
    }

    /// Writes pages to `place`, their position on a disk.
    pub(super) fn send_clean(&mut self, task: u32, place: DiskRange, flags: Flags, mapping: Mapping, page: u64) {
        let purpose =
            |done, part| Purpose::Clean { mapping, page: page + done / PAGE_SECTORS, pages: part / PAGE_SECTORS };
        self.disks[place.disk].writeback_pages += place.nr_sectors / PAGE_SECTORS;
        self.send(task, Op::Write, flags, place, purpose);
    }

    /// Reports that a part of an I/O is complete for which its task does not wait.
    pub(super) fn begun_done(&mut self, number: u32) {
        let begun = &mut self.ios.begun[number as usize];
        begun.left -= 1;
        if begun.left == 0 {
            let Begun { task, tag, writes, .. } = *begun;
            begun.tag = self.ios.free_begun;
            self.ios.free_begun = number;
            match writes {
                Some((mapping, page, pages)) => {
                    self.data_is_there(Conversion { mapping, page, pages, then: Then::Finished(task, tag) });
                }
                None => self.finished.push_back((task, tag)),
            }
        }
    }

    /// Reports the completion of the I/O with this tag.
    pub fn completed(&mut self, tag: u32) {
        match self.ios.take(tag) {
            Purpose::Fill { mapping, page, pages } => {
                self.cache.read_done(mapping, page, pages);
                self.wake(
                    |wait| matches!(wait, Wait::Page(waited, at) if *waited == mapping && (page..page + pages).contains(at)),
                );
            }
            Purpose::Clean { mapping, page, pages } => {
                self.data_is_there(Conversion { mapping, page, pages, then: Then::Written });
            }
            Purpose::Own { task } => {
                let this = &mut self.tasks[task as usize];
                this.own_ios -= 1;
                if this.own_ios == 0 && this.waits == Some(Wait::OwnIo) {
                    self.wake_task(task);
                }
            }
            Purpose::Begun { begun } => self.begun_done(begun),
            Purpose::Free { .. } => unreachable!("an I/O completes once"),
        }
    }
}
