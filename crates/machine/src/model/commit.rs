//! The journal thread of a disk. It commits a transaction when the transaction is old enough, or
//! when a task waits for it.
//!
//! This file also contains checkpoints. The journal thread makes no checkpoints: a task that needs
//! space in the log makes the checkpoint.

use std::collections::VecDeque;

use iosched::{Flags, Op};

use super::Model;
use super::io::{DiskRange, Purpose};
use super::task::{Action, Frame, Wait};
use super::writeback::{Scope, Writeback};
use crate::cache::{Cached, State};
use crate::fs::{Block, Ino};
use crate::journal::{self, CommitStep, TailUpdate, Tid};

/// Maximum number of blocks that a checkpoint writes to their places at once.
const CHECKPOINT_BLOCKS: usize = 256;

/// The loop of the journal thread.
#[derive(Debug)]
pub(super) struct Commit {
    disk: usize,
    stage: CommitStage,
    /// Whether a task waits for this commit.
    sync: bool,
    /// Files with data that the commit must still submit. The next field contains the files with
    /// data that it has submitted. It waits for these writes.
    files: VecDeque<Ino>,
    put_out: VecDeque<Ino>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitStage {
    Idle,
    /// The writes of the last step are in flight. The next step begins when they are complete.
    Step,
    /// Data of files is being submitted.
    Data,
    /// Data of files is in flight.
    DataWait,
}

impl Commit {
    pub(super) const fn new(disk: usize) -> Self {
        Self { disk, stage: CommitStage::Idle, sync: false, files: VecDeque::new(), put_out: VecDeque::new() }
    }
}

/// A checkpoint in progress.
#[derive(Debug)]
pub(super) struct Checkpoint {
    disk: usize,
    stage: CheckpointStage,
}

#[derive(Clone, Copy, Debug)]
enum CheckpointStage {
    Begin,
    /// The journal's superblock is being written.
    Tail(TailUpdate),
    /// Blocks are being written to their places.
    Sent,
}

impl Checkpoint {
    pub(super) const fn new(disk: usize) -> Self {
        Self { disk, stage: CheckpointStage::Begin }
    }
}

impl Model {
    pub(super) fn commit(&mut self, task: u32, commit: &mut Commit) -> Action {
        let disk = commit.disk;
        match commit.stage {
            CommitStage::Idle => {
                let this = &mut self.disks[disk];
                let due = this.journal.wants_commit() || self.now_ns >= this.commit_due_ns;
                if !due || this.journal.begin_commit().is_none() {
                    return Action::Block(Wait::Work(this.commit_due_ns));
                }
                this.commit_due_ns = u64::MAX;
                commit.sync = std::mem::take(&mut this.sync_commit);
                commit.stage = CommitStage::Step;
                Action::Cpu(0)
            }
            CommitStage::Step if self.tasks[task as usize].own_ios > 0 => Action::Block(Wait::OwnIo),
            CommitStage::Step => self.next_step(task, commit),
            CommitStage::Data => {
                let Some(ino) = commit.files.pop_front() else {
                    commit.stage = CommitStage::DataWait;
                    return Action::Cpu(0);
                };
                commit.put_out.push_back(ino);
                let mapping = self.mapping(disk, ino);
                let pass = Writeback::new(disk, Scope::File(mapping), u64::MAX).mapped_only();
                Action::Push(Frame::Writeback(if commit.sync { pass.sync() } else { pass }))
            }
            CommitStage::DataWait => {
                let Some(ino) = commit.put_out.pop_front() else {
                    commit.stage = CommitStage::Step;
                    return Action::Cpu(0);
                };
                self.wait_for_writeback(self.mapping(disk, ino))
            }
        }
    }

    fn next_step(&mut self, task: u32, commit: &mut Commit) -> Action {
        let disk = commit.disk;
        let kernel = self.machine.kernel;
        match self.disks[disk].journal.next_step() {
            Some(CommitStep::WaitHandles) | None => unreachable!("the process that starts a handle also stops it"),
            Some(CommitStep::WriteData { files }) => {
                commit.files = files.into();
                commit.stage = CommitStage::Data;
                Action::Cpu(0)
            }
            Some(CommitStep::WriteLog { runs, sync }) => {
                for run in runs {
                    let place = DiskRange::blocks(disk, run.block, run.blocks);
                    self.send(task, Op::Write, kernel.log_flags(sync), place, |_, _| Purpose::Own { task });
                }
                Action::Submit
            }
            Some(CommitStep::WriteCommit { block, barrier, .. }) => {
                // Now tasks may change the blocks again that were being written to the log.
                self.wake(|wait| matches!(wait, Wait::Journal(of) if *of == disk));
                let barrier = if barrier { Flags::PREFLUSH | Flags::FUA } else { Flags::empty() };
                let place = DiskRange::blocks(disk, block, 1);
                self.send(task, Op::Write, kernel.log_flags(true) | barrier, place, |_, _| Purpose::Own { task });
                Action::Submit
            }
            Some(CommitStep::Done { tid, dirty }) => {
                self.committed(disk, tid, &dirty);
                commit.stage = CommitStage::Idle;
                Action::Cpu(0)
            }
        }
    }

    /// Ends the commit of a transaction: its blocks become dirty, and waiting tasks continue.
    fn committed(&mut self, disk: usize, committed: Tid, dirty: &[Block]) {
        let device = self.device_mapping(disk);
        for &block in dirty {
            match self.cache.get(device, block) {
                Cached::Run { .. } => {
                    self.cache.set_dirty(device, block, 1);
                }
                // The cache has dropped the block since then. If there is room, the journal puts
                // its copy back into the cache. Otherwise the block counts as written.
                Cached::Absent { .. } => {
                    if self.cache.insert(device, block, 1, State::Dirty).is_err() {
                        self.disks[disk].journal.written(block);
                    }
                }
            }
        }
        if !dirty.is_empty() {
            self.now_dirty(device);
        }
        self.wake(|wait| match wait {
            Wait::Committed(waited, tid) => *waited == disk && *tid <= committed,
            Wait::Journal(waited) => *waited == disk,
            _ => false,
        });
    }

    /// Sets the time at which the running transaction of a disk must be committed at the latest.
    /// The transaction has just begun.
    pub(super) fn transaction_begins(&mut self, disk: usize) {
        let this = &mut self.disks[disk];
        this.commit_due_ns = self.now_ns + this.commit_interval_ns;
        self.wake_journal(disk);
    }

    /// Requests a commit of the running transaction of a disk.
    fn ask_for_commit(&mut self, disk: usize) {
        let journal = &mut self.disks[disk].journal;
        if let Some(tid) = journal.running() {
            journal.request_commit(tid, false);
        }
        self.wake_journal(disk);
    }

    pub(super) fn wake_journal(&mut self, disk: usize) {
        let thread = self.disks[disk].journal_task;
        self.wake_if(thread, |wait| matches!(wait, Wait::Work(_)));
    }

    /// Returns the action of a task for which the journal could not start an operation.
    pub(super) fn wait_for_journal(&mut self, disk: usize, why: journal::Wait) -> Action {
        match why {
            journal::Wait::Space => Action::Push(Frame::Checkpoint(Checkpoint::new(disk))),
            journal::Wait::Full(_) | journal::Wait::Locked(_) => {
                self.wake_journal(disk);
                Action::Block(Wait::Journal(disk))
            }
        }
    }

    /// Frees space in the log. Either writes the blocks of the log's oldest transaction to their
    /// places, or moves the log's tail.
    pub(super) fn checkpoint(&mut self, task: u32, checkpoint: &mut Checkpoint) -> Action {
        let disk = checkpoint.disk;
        match checkpoint.stage {
            CheckpointStage::Sent => return Action::Pop,
            CheckpointStage::Tail(_) if self.tasks[task as usize].own_ios > 0 => return Action::Block(Wait::OwnIo),
            CheckpointStage::Tail(update) => {
                self.disks[disk].journal.tail_updated(update);
                return Action::Pop;
            }
            CheckpointStage::Begin => {}
        }
        let mut blocks = Vec::new();
        match self.disks[disk].journal.checkpoint(CHECKPOINT_BLOCKS, &mut blocks) {
            journal::Checkpoint::Nothing => Action::Pop,
            journal::Checkpoint::Tail(update) => {
                let flush = if update.flush { Flags::PREFLUSH } else { Flags::empty() };
                let place = DiskRange::blocks(disk, update.superblock, 1);
                self.send(task, Op::Write, Flags::SYNC | flush, place, |_, _| Purpose::Own { task });
                checkpoint.stage = CheckpointStage::Tail(update);
                Action::Submit
            }
            journal::Checkpoint::Commit(_) => {
                self.ask_for_commit(disk);
                checkpoint.stage = CheckpointStage::Sent;
                Action::Block(Wait::Journal(disk))
            }
            journal::Checkpoint::Write => {
                let device = self.device_mapping(disk);
                for block in blocks {
                    if matches!(self.cache.get(device, block), Cached::Run { state: State::Dirty, .. }) {
                        self.cache.start_writeback(device, block, 1);
                        self.send_clean(task, DiskRange::blocks(disk, block, 1), Flags::empty(), device, block);
                    }
                }
                if !self.tasks[task as usize].outbox.is_empty() {
                    return Action::Submit;
                }
                // Other tasks are already writing all of these blocks.
                checkpoint.stage = CheckpointStage::Sent;
                Action::Block(Wait::Journal(disk))
            }
        }
    }
}
