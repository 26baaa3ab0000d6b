//! The model of the kernel: tasks in system calls, the kernel's own threads, and the I/O that all
//! of them submit.
//!
//! The caller makes the calls in this order:
//!
//! 1. [`Model::begin`] starts a system call of a task.
//! 2. [`Model::run`] continues the call until CPU time passes, bios are to be submitted
//!    ([`Model::take_io`]), the task waits, or the call returns.
//! 3. [`Model::completed`] reports the completion of an I/O.
//! 4. [`Model::take_ready`] returns the tasks that may run again. [`Model::time_is_up`] ends a wait
//!    with a time limit.
//!
//! As in a kernel, a task is a stack of frames. The top frame runs, may push frames for work that
//! must be done first, and pops itself. Each kind of frame has a file here. Every disk has a
//! writeback thread and a journal thread. If the kernel marks blocks as written only after their
//! data is on the disk, a disk also has a thread that converts extents. These threads are tasks
//! without system calls.
//!
//! Not modelled: competition for CPUs (every task has its own CPU), memory other than the page
//! cache, limits of the caches of directories and inodes (a name that was seen once is always in
//! memory), and mount options beyond the settings.

mod balance;
mod call;
mod commit;
mod convert;
mod direct;
mod flusher;
mod inode;
mod io;
mod metadata;
mod read;
mod sync;
mod task;
mod throttle;
mod write;
mod writeback;

use std::collections::VecDeque;

use iosched_numbers::SplitMix64;
use iosched_workload::app::{Advice, Existing, Node};

use self::balance::Share;
use self::inode::{DirtyInode, Inode};
pub use self::io::Io;
use self::io::Ios;
use self::task::{Action, Frame, Task, Wait};
use self::throttle::Rate;
use crate::cache::{Mapping, PageCache};
use crate::description::Machine;
use crate::fs::{FileSystem, FsError, Ino};
use crate::journal::{Journal, JournalConfig};
use crate::readahead::Readahead;
use crate::{PAGE_BYTES, PAGE_SECTORS};

/// Minimum CPU time that passes in one step, ns. Shorter times are added up until they reach this
/// minimum.
const CPU_MIN_NS: u64 = 20_000;
/// Sleep of a task that finds no room in the page cache, ns.
const MEMORY_WAIT_NS: u64 = 20_000_000;
/// Maximum number of pages that a writer dirties in one step.
const TURN_PAGES_MAX: u64 = 256;

/// Result of running a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The task continues after this CPU time, ns.
    Cpu(u64),
    /// The task continues when the request queue has taken its bios.
    Submit,
    /// The task waits until [`Model::take_ready`] returns it.
    Blocked {
        /// Latest end of the wait, ns. Call [`Model::time_is_up`] then.
        until_ns: Option<u64>,
    },
    /// The task's system call has returned.
    Returned,
    /// The run cannot continue. See [`Model::error`].
    Failed,
}

/// Reason why a run cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The file system reports an error.
    #[error(transparent)]
    FileSystem(#[from] FsError),
    /// An application uses a file that does not exist.
    #[error("the application uses the file {node}, which does not exist")]
    NoSuchFile {
        /// Number of the file.
        node: u32,
    },
}

/// A disk as the kernel sees it.
#[derive(Clone, Copy, Debug)]
pub struct DiskConfig {
    /// Size in sectors.
    pub capacity_sectors: u64,
    /// Maximum size of a request, sectors.
    pub max_sectors: u32,
    /// Maximum size of the readahead window, KiB.
    pub read_ahead_kb: u32,
}

/// A mounted disk.
#[derive(Debug)]
struct Disk {
    fs: FileSystem,
    journal: Journal,
    barrier: bool,
    commit_interval_ns: u64,
    /// Whether a task waits for the next commit.
    sync_commit: bool,
    /// Time at which the running transaction must be committed at the latest, ns.
    commit_due_ns: u64,
    bio_sectors_max: u64,
    read_ahead_kb: u64,
    capacity_sectors: u64,
    /// Whether the queue has so many writes that tasks should not add more.
    congested: bool,
    /// Inodes with dirty pages, in the order in which they became dirty.
    dirty_inodes: VecDeque<DirtyInode>,
    /// Inodes that writeback is processing now. During this time, they are not in `dirty_inodes`.
    held: Vec<Mapping>,
    writeback_pages: u64,
    /// Pages written back since the start.
    written_pages: u64,
    rate: Rate,
    share: Share,
    flusher_task: u32,
    journal_task: u32,
    /// The thread that converts extents, in kernels whose writeback allocates unwritten blocks.
    convert_task: Option<u32>,
    conversions: VecDeque<convert::Conversion>,
}

impl Disk {
    fn bio_pages_max(&self) -> u64 {
        self.bio_sectors_max / PAGE_SECTORS
    }
}

/// The modelled kernel of one machine.
#[derive(Debug)]
pub struct Model {
    machine: Machine,
    now_ns: u64,
    cache: PageCache,
    disks: Vec<Disk>,
    tasks: Vec<Task>,
    /// Disk and inode of each node of each application.
    namespaces: Vec<Vec<Option<(u8, Ino)>>>,
    /// Records of inodes, by mapping.
    inodes: Vec<Inode>,
    ios: Ios,
    ready: VecDeque<u32>,
    yields: Vec<(u32, usize, u32)>,
    /// Tasks that sleep because they have dirtied many pages, and the disk of these pages.
    throttled: Vec<(u32, usize)>,
    /// Tasks with an I/O that completed and that they did not wait for, and the tag of the I/O.
    finished: VecDeque<(u32, u32)>,
    /// Whether the limit on dirty pages was exceeded at the last check.
    dirty_exceeded: bool,
    error: Option<MachineError>,
}

impl Model {
    /// Creates a kernel with new file systems and an empty page cache. The machine varies with
    /// `seed` (see [`Machine::found`]). The kernel's [threads](Self::threads) are the first tasks.
    /// They are [ready](Self::take_ready).
    ///
    /// # Errors
    /// If a disk has no room for its file system.
    pub fn new(machine: &Machine, disks: &[DiskConfig], seed: u64) -> Result<Self, MachineError> {
        let machine = machine.found(seed);
        let mut kernel = Self {
            machine: machine.clone(),
            now_ns: 0,
            cache: PageCache::with_balance(machine.cache_mib * (1 << 20) / PAGE_BYTES, machine.kernel.balance()),
            disks: Vec::with_capacity(disks.len()),
            tasks: Vec::new(),
            namespaces: Vec::new(),
            inodes: Vec::new(),
            ios: Ios::new(),
            ready: VecDeque::new(),
            yields: Vec::new(),
            throttled: Vec::new(),
            finished: VecDeque::new(),
            dirty_exceeded: false,
            error: None,
        };
        let fs = &machine.file_system;
        for (number, config) in disks.iter().enumerate() {
            let mut rng = SplitMix64::entity(seed, number as u64);
            let file_system = FileSystem::new(fs, config.capacity_sectors, rng.next_u64())?;
            let journal = Journal::new(&JournalConfig::new(fs), file_system.journal());
            let flusher_task = kernel.new_task(0);
            let journal_task = kernel.new_task(0);
            let first_ns = rng.below(machine.vm.dirty_writeback_ms * 1_000_000);
            kernel.tasks[flusher_task as usize].stack.push(Frame::Flusher(flusher::Flusher::new(number, first_ns)));
            kernel.tasks[journal_task as usize].stack.push(Frame::Commit(commit::Commit::new(number)));
            kernel.ready.extend([flusher_task, journal_task]);
            let converts = fs.delayed_allocation() && machine.kernel.allocates_unwritten();
            let convert_task = converts.then(|| kernel.new_task(0));
            if let Some(task) = convert_task {
                kernel.tasks[task as usize].stack.push(Frame::Convert(convert::Convert::new(number)));
                kernel.ready.push_back(task);
            }
            kernel.disks.push(Disk {
                fs: file_system,
                journal,
                barrier: fs.barrier(),
                commit_interval_ns: u64::from(fs.commit_interval_s) * 1_000_000_000,
                sync_commit: false,
                commit_due_ns: u64::MAX,
                bio_sectors_max: (u64::from(config.max_sectors) / PAGE_SECTORS).max(1) * PAGE_SECTORS,
                read_ahead_kb: u64::from(config.read_ahead_kb),
                capacity_sectors: config.capacity_sectors,
                congested: false,
                dirty_inodes: VecDeque::new(),
                held: Vec::new(),
                writeback_pages: 0,
                written_pages: 0,
                rate: Rate::new(),
                share: Share::new(),
                flusher_task,
                journal_task,
                convert_task,
                conversions: VecDeque::new(),
            });
        }
        Ok(kernel)
    }

    /// Adds an application and creates the files that exist before it starts. Returns its number
    /// for [`add_task`](Self::add_task).
    ///
    /// # Errors
    /// If the existing files do not fit, or name a missing directory.
    pub fn add_application(&mut self, existing: &[Existing]) -> Result<usize, MachineError> {
        let mut roots = vec![None; Node::DISKS_MAX as usize];
        for (disk, root) in self.disks.iter().zip(&mut roots) {
            *root = Some((0, disk.fs.work_directory()));
        }
        for (number, root) in (0..).zip(&mut roots) {
            if let Some((disk, _)) = root {
                *disk = number;
            }
        }
        self.namespaces.push(roots);
        let application = self.namespaces.len() - 1;
        self.prepare(application, existing)?;
        Ok(application)
    }

    /// Adds a task to an application and returns its number. The task is idle.
    pub fn add_task(&mut self, application: usize) -> u32 {
        self.new_task(application)
    }

    fn new_task(&mut self, namespace: usize) -> u32 {
        self.tasks.push(Task { namespace, ..Task::default() });
        (self.tasks.len() - 1) as u32
    }

    /// Returns the names of the kernel's threads, by task number.
    #[must_use]
    pub fn threads(&self) -> Vec<String> {
        let of_disk = |(number, disk): (usize, &Disk)| {
            let convert = disk.convert_task.map(|_| format!("ext4-convert-{number}"));
            [format!("flush-{number}"), format!("jbd-{number}")].into_iter().chain(convert)
        };
        self.disks.iter().enumerate().flat_map(of_disk).collect()
    }

    /// Continues `task`. The task must not wait, and the caller must have taken its bios.
    pub fn run(&mut self, task: u32, now_ns: u64) -> Outcome {
        self.now_ns = now_ns;
        loop {
            let this = &mut self.tasks[task as usize];
            if self.error.is_some() {
                return Outcome::Failed;
            }
            if !this.outbox.is_empty() {
                // The CPU time that the task used before its bios must pass first.
                return match std::mem::take(&mut this.debt_ns) {
                    0 => Outcome::Submit,
                    debt_ns => Outcome::Cpu(debt_ns),
                };
            }
            let Some(mut frame) = this.stack.pop() else {
                return match std::mem::take(&mut this.debt_ns) {
                    0 => Outcome::Returned,
                    debt_ns => Outcome::Cpu(debt_ns),
                };
            };
            let action = self.run_frame(task, &mut frame);
            let this = &mut self.tasks[task as usize];
            match action {
                Action::Pop => {}
                Action::Submit => this.stack.push(frame),
                Action::Become(other) => this.stack.push(other),
                Action::Push(above) => this.stack.extend([frame, above]),
                Action::Cpu(ns) => {
                    this.stack.push(frame);
                    this.debt_ns += ns;
                    if this.debt_ns >= CPU_MIN_NS {
                        return Outcome::Cpu(std::mem::take(&mut this.debt_ns));
                    }
                }
                Action::Block(wait) => {
                    this.stack.push(frame);
                    this.waits = Some(wait);
                    return Outcome::Blocked { until_ns: wait.until_ns() };
                }
            }
        }
    }

    fn run_frame(&mut self, task: u32, frame: &mut Frame) -> Action {
        match frame {
            Frame::Read(read) => self.read(task, read),
            Frame::ReadAhead(ahead) => self.read_ahead(task, ahead),
            Frame::Write(write) => self.write(task, write),
            Frame::Direct(direct) => self.direct(task, direct),
            Frame::Discard(discard) => self.discard(task, discard),
            Frame::Scatter(scatter) => self.scatter(task, scatter),
            Frame::Fsync(fsync) => self.fsync(task, fsync),
            Frame::SyncAll(sync) => self.sync_all(task, sync),
            Frame::Metadata(work) => self.metadata(task, work),
            Frame::Remove { node, directory } => self.remove(task, *node, *directory),
            Frame::Truncate(node) => self.truncate(task, *node),
            Frame::Throttle(throttle) => self.throttle(task, throttle),
            Frame::Writeback(pass) => self.writeback(task, pass),
            Frame::Checkpoint(checkpoint) => self.checkpoint(task, checkpoint),
            Frame::Commit(commit) => self.commit(task, commit),
            Frame::Convert(convert) => self.convert(task, convert),
            Frame::Flusher(flusher) => self.flusher(task, flusher),
            Frame::Compute(ns) => match std::mem::take(ns) {
                0 => Action::Pop,
                ns => Action::Cpu(ns),
            },
        }
    }

    /// Returns the next bio of `task` for the request queue.
    pub fn take_io(&mut self, task: u32) -> Option<Io> {
        self.tasks[task as usize].outbox.pop_front()
    }

    /// Returns a task that may run again.
    pub fn take_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    /// Returns a task that yields its turn on a disk to another task. The values are the task, the
    /// disk, and the other task.
    pub fn take_yield(&mut self) -> Option<(u32, usize, u32)> {
        self.yields.pop()
    }

    /// Returns a task that has begun to sleep because it has dirtied many pages, and the disk of
    /// the pages.
    pub fn take_throttled(&mut self) -> Option<(u32, usize)> {
        self.throttled.pop()
    }

    /// Returns a task with a completed I/O that it [began](iosched_workload::app::Call::Submit)
    /// earlier, and the tag of the I/O.
    pub fn take_finished(&mut self) -> Option<(u32, u32)> {
        self.finished.pop_front()
    }

    /// Ends the wait of `task` if its time limit is reached.
    pub fn time_is_up(&mut self, task: u32, now_ns: u64) {
        self.wake_if(task, |wait| wait.until_ns().is_some_and(|until_ns| until_ns <= now_ns));
    }

    /// Sets whether writes congest the queue of a disk.
    pub fn set_congested(&mut self, disk: usize, congested: bool) {
        self.disks[disk].congested = congested;
        if !congested {
            self.wake(|wait| matches!(wait, Wait::Congestion(waited, _) if *waited == disk));
        }
    }

    /// Returns whether no page is dirty or under writeback. The kernel writes old dirty data within
    /// seconds, so this state comes soon after the last write.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.cache.nr_dirty() + self.cache.nr_writeback() == 0
    }

    /// Returns the reason why the run cannot continue.
    #[must_use]
    pub fn error(&self) -> Option<&MachineError> {
        self.error.as_ref()
    }

    /// Returns the numbers of dirty pages and of pages under writeback.
    #[must_use]
    pub fn unclean_pages(&self) -> (u64, u64) {
        (self.cache.nr_dirty(), self.cache.nr_writeback())
    }

    /// Returns the page cache of the modelled kernel.
    #[must_use]
    pub const fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// Returns the file system of a disk.
    #[must_use]
    pub fn file_system(&self, disk: usize) -> &FileSystem {
        &self.disks[disk].fs
    }

    /// Returns the journal of a disk.
    #[must_use]
    pub fn journal(&self, disk: usize) -> &Journal {
        &self.disks[disk].journal
    }

    /// Returns the disk, the inode and the [page cache](Self::cache) mapping of a node of an
    /// application, if the node exists.
    #[must_use]
    pub fn node(&self, application: usize, node: Node) -> Option<(usize, Ino, Mapping)> {
        let (disk, ino) = self.find(application, node)?;
        Some((disk, ino, self.mapping(disk, ino)))
    }

    // ---- waking tasks

    fn wake(&mut self, what: impl Fn(&Wait) -> bool) {
        for (number, task) in self.tasks.iter_mut().enumerate() {
            if task.waits.as_ref().is_some_and(&what) {
                task.waits = None;
                self.ready.push_back(number as u32);
            }
        }
    }

    fn wake_task(&mut self, task: u32) {
        self.wake_if(task, |_| true);
    }

    fn wake_if(&mut self, task: u32, what: impl Fn(&Wait) -> bool) {
        let this = &mut self.tasks[task as usize];
        if this.waits.as_ref().is_some_and(what) {
            this.waits = None;
            self.ready.push_back(task);
        }
    }

    fn fail(&mut self, error: impl Into<MachineError>) {
        self.error.get_or_insert(error.into());
    }

    /// Returns the maximum size of the readahead window, in pages, for a read that wants `wanted`
    /// pages of a file on a disk.
    fn readahead_pages_max(&self, disk: usize, wanted: u64, advice: Advice) -> u64 {
        let free = self.cache.pages_max() - self.cache.pages();
        let kb = self.disks[disk].read_ahead_kb << u32::from(advice == Advice::Sequential);
        let max = Readahead::pages_max(kb, free, self.cache.nr_inactive());
        let large = if self.machine.kernel.reads_large() { wanted.min(self.disks[disk].bio_pages_max()) } else { 0 };
        if max > 0 { max.max(large) } else { 0 }
    }

    /// Returns the number of pages that a writer dirties before the kernel checks the limits.
    fn dirty_turn_pages(&self, task: u32) -> u64 {
        self.ratelimit_pages(task).min(TURN_PAGES_MAX)
    }

    /// Returns a wait of a task for which the page cache has no free page.
    fn wait_for_memory(&self) -> Action {
        Action::Block(Wait::Until(self.now_ns + MEMORY_WAIT_NS))
    }

    /// Returns the CPU time of copying `bytes` in calls of `call_bytes` each, ns. `again` is true
    /// if the same bytes were copied just before.
    fn copy_ns(&self, bytes: u64, call_bytes: u64, again: bool) -> u64 {
        let cpu = &self.machine.cpu;
        let slow_ns = transfer_ns(bytes, cpu.copy_bytes_per_s);
        if !again {
            return slow_ns;
        }
        // If the same bytes are copied again and again, the CPU's cache holds both the source and
        // the destination, or neither of them.
        match 2 * call_bytes <= cpu.cache_bytes {
            true => transfer_ns(bytes, cpu.cached_copy_bytes_per_s),
            false => slow_ns,
        }
    }
}

/// Returns the duration of a transfer, ns.
fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1))) as u64
}

impl Wait {
    /// Returns the time limit of the wait, ns, if it has one.
    const fn until_ns(self) -> Option<u64> {
        match self {
            Self::Congestion(_, until_ns) | Self::Until(until_ns) => Some(until_ns),
            Self::Work(u64::MAX) => None,
            Self::Work(until_ns) => Some(until_ns),
            _ => None,
        }
    }
}
