//! fsync(2), fdatasync(2), sync(2).

use iosched_workload::app::Node;

use super::Model;
use super::task::{Action, Frame, Wait};
use super::writeback::{Scope, Writeback};
use crate::cache::Mapping;
use crate::journal::Tid;

/// fsync(2) or fdatasync(2) of a file in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fsync {
    node: Node,
    /// Whether only the data, and the metadata that maps it, must be on the medium (fdatasync).
    data_only: bool,
    stage: FsyncStage,
}

#[derive(Clone, Copy, Debug)]
enum FsyncStage {
    Begin,
    Written,
    Commit,
    Flush,
    Flushed,
    End,
}

impl Fsync {
    pub(super) const fn new(node: Node, data_only: bool) -> Self {
        Self { node, data_only, stage: FsyncStage::Begin }
    }
}

/// sync(2) in progress.
#[derive(Clone, Debug, Default)]
pub(super) struct SyncAll {
    disk: usize,
    stage: u8,
    /// Files whose pages are still to be written.
    files: Vec<Mapping>,
}

impl Model {
    pub(super) fn fsync(&mut self, task: u32, fsync: &mut Fsync) -> Action {
        let (disk, ino) = self.file(task, fsync.node);
        let mapping = self.mapping(disk, ino);
        match fsync.stage {
            FsyncStage::Begin => {
                fsync.stage = FsyncStage::Written;
                Action::Push(Frame::Writeback(Writeback::new(disk, Scope::File(mapping), u64::MAX).sync()))
            }
            FsyncStage::Written => {
                fsync.stage = FsyncStage::Commit;
                self.wait_for_writeback(mapping)
            }
            FsyncStage::Commit if self.inode(mapping).allocating > 0 => Action::Block(Wait::Allocated(mapping)),
            FsyncStage::Commit => {
                let this = &self.disks[disk];
                let tid = self.inode(mapping).tid(fsync.data_only).filter(|tid| !this.journal.is_committed(*tid));
                // If the commit has not yet sent its flush, this flush also brings the data to the
                // medium. Otherwise, another flush is necessary.
                let flushed = tid.is_some_and(|tid| this.journal.will_flush(tid));
                fsync.stage = if this.barrier && !flushed { FsyncStage::Flush } else { FsyncStage::End };
                match tid {
                    Some(tid) => self.commit_and_wait(task, disk, tid),
                    None => Action::Cpu(0),
                }
            }
            FsyncStage::Flush => {
                fsync.stage = FsyncStage::Flushed;
                self.send_flush(task, disk);
                Action::Submit
            }
            FsyncStage::Flushed => {
                fsync.stage = FsyncStage::End;
                self.wait_for_own(task)
            }
            FsyncStage::End => Action::Pop,
        }
    }

    /// Requests the commit of a transaction and waits for it. During this wait, `task` yields the
    /// disk to the journal thread.
    pub(super) fn commit_and_wait(&mut self, task: u32, disk: usize, tid: Tid) -> Action {
        let this = &mut self.disks[disk];
        this.sync_commit = true;
        this.journal.request_commit(tid, true);
        self.yields.push((task, disk, this.journal_task));
        self.wake_journal(disk);
        Action::Block(Wait::Committed(disk, tid))
    }

    pub(super) fn sync_all(&mut self, task: u32, sync: &mut SyncAll) -> Action {
        let disk = sync.disk;
        if disk == self.disks.len() {
            return Action::Pop;
        }
        if let Some(mapping) = sync.files.pop() {
            return Action::Push(Frame::Writeback(Writeback::new(disk, Scope::File(mapping), u64::MAX).sync()));
        }
        sync.stage += 1;
        match sync.stage {
            1 => {
                // Passes of other tasks may stop early. Therefore this pass also writes the files
                // that other passes are processing.
                let this = &self.disks[disk];
                let listed = this.dirty_inodes.iter().rev().map(|inode| inode.mapping);
                sync.files.extend(listed.chain(this.held.iter().copied()));
                Action::Cpu(0)
            }
            2 if self.disks[disk].writeback_pages > 0 => Action::Block(Wait::AllWritten(disk)),
            3 => {
                let journal = &self.disks[disk].journal;
                match journal.running().or(journal.committing()) {
                    Some(tid) => self.commit_and_wait(task, disk, tid),
                    None => Action::Cpu(0),
                }
            }
            4 => {
                *sync = SyncAll { disk: disk + 1, ..SyncAll::default() };
                Action::Cpu(0)
            }
            _ => Action::Cpu(0),
        }
    }

    /// Waits until no page of a file is under writeback.
    pub(super) fn wait_for_writeback(&mut self, mapping: Mapping) -> Action {
        if self.cache.nr_writeback_of(mapping) == 0 { Action::Cpu(0) } else { Action::Block(Wait::Written(mapping)) }
    }
}
