//! Bios, and what is done when they are.

use iosched::{Flags, Op};

use super::convert::{Conversion, Then};
use super::{Model, Wait};
use crate::cache::Mapping;
use crate::{PAGE_SECTORS, fs::Block};

/// A bio on its way to a disk's request queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Io {
    /// Which disk.
    pub disk: usize,
    /// What it does.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Given back to [`Model::completed`].
    pub tag: u32,
}

/// Whom the end of an I/O concerns.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// Pages are read.
    Fill { mapping: Mapping, page: u64, pages: u64 },
    /// Pages are written to their place.
    Clean { mapping: Mapping, page: u64, pages: u64 },
    /// The task that sent it waits for it.
    Own { task: u32 },
    /// The task that sent it goes on meanwhile, and is told when all that is begun as this is done.
    Begun { begun: u32 },
    /// The slot is free.
    Free { next: u32 },
}

const NONE: u32 = u32::MAX;

/// I/O that a task was not to wait for.
#[derive(Clone, Copy, Debug)]
struct Begun {
    task: u32,
    /// What its end is told with; of one that is free: the next free one.
    tag: u32,
    /// Bios that are not done.
    left: u32,
    /// What is written by it: whose pages, from where on, how many.
    writes: Option<(Mapping, u64, u64)>,
}

/// The I/Os under way, by tag.
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

    /// A task begins an I/O; it is done when all bios sent for it are, and it is
    /// [told](Model::begun_done) that there are no more.
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

/// Where on a disk something is read or written.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskRange {
    pub(super) disk: usize,
    pub(super) sector: u64,
    pub(super) nr_sectors: u64,
}

impl DiskRange {
    /// So many blocks from `block` on.
    pub(super) const fn blocks(disk: usize, block: Block, blocks: u64) -> Self {
        Self { disk, sector: block * PAGE_SECTORS, nr_sectors: blocks * PAGE_SECTORS }
    }
}

impl Model {
    /// Puts out I/O for `task`, in bios that a request can hold. Each but the last is as long as it may be.
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
            let tag = self.ios.add(purpose);
            let io = Io { disk, op, flags, sector: sector + done, nr_sectors: part as u32, tag };
            self.tasks[task as usize].outbox.push_back(io);
            done += part;
        }
        self.tasks[task as usize].debt_ns += self.machine.cpu.submit_ns;
    }

    /// Puts out a flush of the disk's cache; `task` waits for it.
    pub(super) fn send_flush(&mut self, task: u32, disk: usize) {
        let tag = self.ios.add(Purpose::Own { task });
        let this = &mut self.tasks[task as usize];
        this.own_ios += 1;
        this.outbox.push_back(Io { disk, op: Op::Flush, flags: Flags::SYNC, sector: 0, nr_sectors: 0, tag });
    }

    /// Reads pages that are not cached, from where they are on a disk.
    pub(super) fn send_fill(&mut self, task: u32, place: DiskRange, flags: Flags, mapping: Mapping, page: u64) {
        let purpose =
            |done, part| Purpose::Fill { mapping, page: page + done / PAGE_SECTORS, pages: part / PAGE_SECTORS };
        self.send(task, Op::Read, flags, place, purpose);
    }

    /// Writes pages to their place on a disk.
    pub(super) fn send_clean(&mut self, task: u32, place: DiskRange, flags: Flags, mapping: Mapping, page: u64) {
        let purpose =
            |done, part| Purpose::Clean { mapping, page: page + done / PAGE_SECTORS, pages: part / PAGE_SECTORS };
        self.disks[place.disk].writeback_pages += place.nr_sectors / PAGE_SECTORS;
        self.send(task, Op::Write, flags, place, purpose);
    }

    /// A part of what a task has begun is done.
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

    /// The I/O of that tag is done.
    pub fn completed(&mut self, tag: u32) {
        match self.ios.take(tag) {
            Purpose::Fill { mapping, page, pages } => {
                self.cache.read_done(mapping, page, pages);
                self.wake(
                    |wait| matches!(wait, Wait::Page(of, at) if *of == mapping && (page..page + pages).contains(at)),
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
