//! The thread of a disk that converts extents. When data is on the disk, ext4 marks its blocks as
//! written, in a transaction of the journal. The writeback of the data is complete only after that.

use super::Model;
use super::metadata::Metadata;
use super::task::{Action, Frame, Wait};
use crate::cache::Mapping;

/// Pages of a file whose data is on the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conversion {
    pub(super) mapping: Mapping,
    pub(super) page: u64,
    pub(super) pages: u64,
    /// Action after the conversion.
    pub(super) then: Then,
}

/// Action after a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    /// The writeback of the pages is complete.
    Written,
    /// Report the completion of a task's I/O. The fields are the task, and the tag of the I/O.
    Finished(u32, u32),
}

/// The loop of the converting thread.
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
    /// Marks the blocks of pages as written. If any of these blocks is unwritten, leaves the work
    /// to the disk's thread.
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

    /// Marks blocks as written. Returns the operation on metadata that `task` must perform.
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
