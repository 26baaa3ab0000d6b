//! An operation on metadata blocks. The blocks are read if necessary, and
//! changed under the journal.

use iosched::Flags;

use super::Model;
use super::io::DiskRange;
use super::task::{Action, Wait};
use crate::cache::{Cached, State};
use crate::fs::Ino;
use crate::journal::Start;

/// Frame that applies the task's [`Effects`](crate::fs::Effects) to a disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metadata {
    disk: usize,
    /// Index of the next block to look up.
    next: usize,
    /// CPU time of the operation, ns.
    cpu_ns: u64,
    /// The inode that changes.
    inode: Option<Ino>,
    /// Whether the blocks of the inode's data change.
    data: bool,
    /// Whether the new data of the inode must be on the disk before the transaction commits.
    order: bool,
}

impl Metadata {
    pub(super) const fn new(disk: usize, cpu_ns: u64) -> Self {
        Self { disk, next: 0, cpu_ns, inode: None, data: false, order: false }
    }

    /// Lets a commit complete without waiting for the data.
    pub(super) const fn unordered(self) -> Self {
        Self { order: false, ..self }
    }

    /// Sets the inode that changes.
    pub(super) const fn changing(self, ino: Ino) -> Self {
        Self { inode: Some(ino), ..self }
    }
}

impl Model {
    /// Returns the operation that adds the allocation of a file's blocks to a transaction.
    pub(super) fn allocated(&mut self, disk: usize, ino: Ino) -> Metadata {
        let mapping = self.mapping(disk, ino);
        self.inode_mut(mapping).allocating += 1;
        Metadata { disk, next: 0, cpu_ns: 0, inode: Some(ino), data: true, order: true }
    }

    pub(super) fn metadata(&mut self, task: u32, work: &mut Metadata) -> Action {
        let disk = work.disk;
        while let Some(&block) = self.tasks[task as usize].effects.reads.get(work.next) {
            match self.find_block(task, disk, block) {
                Some(action) => return action,
                None => work.next += 1,
            }
        }
        let cpu_ns = std::mem::take(&mut work.cpu_ns);
        if cpu_ns > 0 {
            return Action::Cpu(cpu_ns);
        }
        let effects = std::mem::take(&mut self.tasks[task as usize].effects);
        if effects.dirties.is_empty() && work.inode.is_none() {
            self.tasks[task as usize].effects = effects;
            return Action::Pop;
        }
        let inode_block = work.inode.map(|ino| self.disks[disk].fs.inode_block(ino));
        if effects.dirties.iter().chain(&inode_block).any(|&block| self.is_being_written(disk, block)) {
            self.tasks[task as usize].effects = effects;
            return Action::Block(Wait::Journal(disk));
        }
        let this = &mut self.disks[disk];
        let begins = this.journal.running().is_none();
        let credits = (effects.dirties.len() + effects.forgets.len() + 1) as u32;
        let mut handle = match this.journal.start(credits) {
            Start::Started(handle) => handle,
            Start::Wait(why) => {
                self.tasks[task as usize].effects = effects;
                return self.wait_for_journal(disk, why);
            }
        };
        for &block in &effects.dirties {
            this.journal.dirty(&mut handle, block);
        }
        for &block in &effects.forgets {
            this.journal.forget(&mut handle, block);
        }
        if let Some(ino) = work.inode {
            this.journal.dirty(&mut handle, this.fs.inode_block(ino));
            if work.order {
                this.journal.order(&mut handle, ino);
            }
        }
        let tid = this.journal.stop(handle, false);
        if let Some(ino) = work.inode {
            let mapping = self.mapping(disk, ino);
            let inode = self.inode_mut(mapping);
            inode.tid = Some(tid);
            if work.data {
                inode.data_tid = Some(tid);
                inode.allocating -= 1;
                if inode.allocating == 0 {
                    self.wake(|wait| *wait == Wait::Allocated(mapping));
                }
            }
        }
        if begins {
            self.transaction_begins(disk);
        }
        let device = self.device_mapping(disk);
        for &block in &effects.forgets {
            self.cache.discard(device, block, 1);
        }
        for &block in &effects.dirties {
            // A new block has no contents to read. If the cache has no room for the block, the
            // journal still has a copy of it.
            if matches!(self.cache.get(device, block), Cached::Absent { .. }) {
                let _ = self.cache.insert(device, block, 1, State::Clean);
            }
        }
        self.tasks[task as usize].effects = effects;
        Action::Pop
    }

    /// Adds an inode to the running transaction, because its times have changed. If `grows` is
    /// true, its size has also changed. Returns `None` when this is done.
    pub(super) fn inode_changed(&mut self, disk: usize, ino: Ino, grows: bool) -> Option<Action> {
        let mapping = self.mapping(disk, ino);
        if self.is_device(disk, ino) {
            return None;
        }
        let running = self.disks[disk].journal.running();
        let known = self.inode(mapping).tid(grows);
        if running.is_some() && running == known {
            return None;
        }
        if self.is_being_written(disk, self.disks[disk].fs.inode_block(ino)) {
            return Some(Action::Block(Wait::Journal(disk)));
        }
        let this = &mut self.disks[disk];
        match this.journal.start(1) {
            Start::Started(mut handle) => {
                this.journal.dirty(&mut handle, this.fs.inode_block(ino));
                let tid = this.journal.stop(handle, false);
                let inode = self.inode_mut(mapping);
                inode.tid = Some(tid);
                inode.data_tid = if grows { Some(tid) } else { inode.data_tid };
                if running.is_none() {
                    self.transaction_begins(disk);
                }
                None
            }
            Start::Wait(why) => Some(self.wait_for_journal(disk, why)),
        }
    }

    /// Returns whether the present contents of a block are being written to the log or to their
    /// place. A task that wants to change the block must wait.
    fn is_being_written(&self, disk: usize, block: u64) -> bool {
        let state = self.cache.get(self.device_mapping(disk), block);
        self.disks[disk].journal.is_on_the_way_to_the_log(block)
            || matches!(state, Cached::Run { state, .. } if state.is_writeback())
    }

    /// Ensures that a block of the file system is in memory. Returns `None` if the block is in
    /// memory.
    pub(super) fn find_block(&mut self, task: u32, disk: usize, block: u64) -> Option<Action> {
        let device = self.device_mapping(disk);
        match self.cache.get(device, block) {
            Cached::Run { state: State::Reading, .. } => Some(Action::Block(Wait::Page(device, block))),
            Cached::Run { .. } => {
                self.cache.access(device, block, 1);
                None
            }
            Cached::Absent { .. } => {
                if self.cache.insert(device, block, 1, State::Reading).is_err() {
                    return Some(self.wait_for_memory());
                }
                let place = DiskRange::blocks(disk, block, 1);
                self.send_fill(task, place, Flags::PRIO, device, block);
                Some(Action::Submit)
            }
        }
    }

    /// Ensures that the metadata that maps a page of a file to its block is in memory. Returns
    /// `None` if the metadata is in memory.
    pub(super) fn need_map(&mut self, task: u32, disk: usize, ino: Ino, page: u64) -> Option<Action> {
        let mut effects = std::mem::take(&mut self.tasks[task as usize].effects);
        effects.clear();
        self.disks[disk].fs.map_reads(ino, page, &mut effects);
        let action = effects.reads.iter().find_map(|&block| self.find_block(task, disk, block));
        self.tasks[task as usize].effects = effects;
        action
    }
}
