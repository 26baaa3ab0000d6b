//! The thread of a disk that converts extents: once data is where it belongs, ext4 notes that its blocks are written to,
//! under the journal, and only then is its writeback over.

use super::Model;
use super::metadata::Metadata;
use super::task::{Action, Frame, Wait};
use crate::cache::Mapping;

/// Pages of a file whose data has got to the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conversion {
    pub(super) mapping: Mapping,
    pub(super) page: u64,
    pub(super) pages: u64,
    /// What they are waited for by.
    pub(super) then: Then,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// Their writeback is over.
    Written,
    /// A task is told that what it began is done: who, and its tag.
    Finished(u32, u32),
}

/// The thread's loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Convert {
    disk: usize,
    at: Option<Conversion>,
}

impl Convert {
    pub(super) const fn new(disk: usize) -> Self {
        Self { disk, at: None }
    }
}

impl Model {
    /// Blocks of pages to which data was written count as such from now on, or soon.
    pub(super) fn data_is_there(&mut self, conversion: Conversion) {
        let (disk, ino) = self.owner(conversion.mapping);
        let of_disk = conversion.mapping == self.device_mapping(disk);
        if of_disk || !self.disks[disk].fs.has_unwritten(ino, conversion.page, conversion.pages) {
            return self.converted(&conversion);
        }
        self.disks[disk].conversions.push_back(conversion);
        if let Some(thread) = self.disks[disk].convert_task {
            self.wake_if(thread, |wait| matches!(wait, Wait::Work(_)));
        }
    }

    fn converted(&mut self, conversion: &Conversion) {
        let &Conversion { mapping, page, pages, then } = conversion;
        match then {
            Then::Written => {
                self.cache.end_writeback(mapping, page, pages);
                self.written(mapping, page, pages);
            }
            Then::Finished(task, tag) => self.finished.push_back((task, tag)),
        }
    }

    pub(super) fn convert(&mut self, task: u32, convert: &mut Convert) -> Action {
        let disk = convert.disk;
        if let Some(done) = convert.at.take() {
            self.converted(&done);
        }
        let Some(next) = self.disks[disk].conversions.pop_front() else {
            return Action::Block(Wait::Work(u64::MAX));
        };
        convert.at = Some(next);
        let (_, ino) = self.owner(next.mapping);
        let work = self.note_written(task, disk, ino, next.page, next.pages);
        Action::Push(Frame::Metadata(work))
    }

    /// Notes that blocks are written to, as an operation that `task` is to carry out.
    pub(super) fn note_written(
        &mut self,
        task: u32,
        disk: usize,
        ino: crate::fs::Ino,
        page: u64,
        pages: u64,
    ) -> Metadata {
        let effects = &mut self.tasks[task as usize].effects;
        effects.clear();
        self.disks[disk].fs.convert(ino, page, pages, effects);
        self.allocated(disk, ino).unordered()
    }
}
