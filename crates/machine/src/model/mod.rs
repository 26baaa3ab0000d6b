//! The kernel at work: tasks in system calls, its own threads, the I/O they ask for.
//!
//! The caller makes the calls in this order. [`Model::begin`] starts a system call of a task; [`Model::run`] goes on
//! with it until CPU time is to pass, bios are to be submitted ([`Model::take_io`]), the task waits, or the call
//! returns. When an I/O is done, [`Model::completed`] is told; then [`Model::take_ready`] names the tasks that may run
//! again. A wait that ends by itself ends with [`Model::time_is_up`].
//!
//! A task is a stack of frames, as a kernel's is: the frame on top runs, may push what must be done first, and pops
//! itself. Each frame is a file here. Every disk has a writeback thread and a journal thread, and where data is written
//! before its blocks count as written to, one for that; they are tasks without system calls.
//!
//! Left out: competition for CPUs (every task has its own), memory other than the page cache, directory and inode
//! caches (names once seen are looked up in memory), mount options beyond the settings.

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

/// CPU time that is let pass at once, ns: shorter times are put together.
const CPU_MIN_NS: u64 = 20_000;
/// How long a task sleeps that finds no room in the page cache, ns.
const MEMORY_WAIT_NS: u64 = 20_000_000;
/// Pages that a writer dirties at most between two moments.
const TURN_PAGES_MAX: u64 = 256;

/// What a task does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It runs on after so much CPU time, ns.
    Cpu(u64),
    /// It runs on when the request queue has its bios.
    Submit,
    /// It waits: until [`Model::take_ready`] names it, or until this moment at the latest, ns.
    Blocked {
        /// When [`Model::time_is_up`] is to be called.
        until_ns: Option<u64>,
    },
    /// Its system call has returned.
    Returned,
    /// The run cannot go on: see [`Model::error`].
    Failed,
}

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The file system refuses.
    #[error(transparent)]
    FileSystem(#[from] FsError),
    /// An application uses a file that it has not made.
    #[error("the application uses file {node}, which does not exist")]
    NoSuchFile {
        /// Its number.
        node: u32,
    },
}

/// A disk as the kernel is told of it.
#[derive(Clone, Copy, Debug)]
pub struct DiskConfig {
    /// Its size in sectors.
    pub capacity_sectors: u64,
    /// The longest request, in sectors.
    pub max_sectors: u32,
    /// The largest readahead window, in KiB.
    pub read_ahead_kb: u32,
}

/// A mounted disk.
#[derive(Debug)]
struct Disk {
    fs: FileSystem,
    journal: Journal,
    barrier: bool,
    commit_interval_ns: u64,
    /// Somebody waits for the next commit.
    sync_commit: bool,
    /// When the running transaction is committed at the latest, ns.
    commit_due_ns: u64,
    bio_sectors_max: u64,
    read_ahead_kb: u64,
    capacity_sectors: u64,
    /// Its queue has so many writes that nobody should add more.
    congested: bool,
    /// Inodes with dirty pages, in the order they became dirty.
    dirty_inodes: VecDeque<DirtyInode>,
    /// Those that a pass of writeback has taken off that list for as long as it is at them.
    held: Vec<Mapping>,
    writeback_pages: u64,
    /// Pages written back since the start.
    written_pages: u64,
    rate: Rate,
    share: Share,
    flusher_task: u32,
    journal_task: u32,
    /// Of kernels whose writeback allocates blocks as unwritten.
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
    /// Of each application: disk and inode of its nodes.
    namespaces: Vec<Vec<Option<(u8, Ino)>>>,
    /// By mapping.
    inodes: Vec<Inode>,
    ios: Ios,
    ready: VecDeque<u32>,
    yields: Vec<(u32, usize, u32)>,
    /// Tasks whose begun I/O is done, and its tag.
    finished: VecDeque<(u32, u32)>,
    /// The limit on dirty pages was exceeded when last looked at.
    dirty_exceeded: bool,
    error: Option<MachineError>,
}

impl Model {
    /// A kernel with freshly made file systems and an empty page cache, on `machine` as the run with `seed`
    /// [finds](Machine::found) it. Its own [threads](Self::threads) are its first tasks, and
    /// [ready](Self::take_ready).
    ///
    /// # Errors
    /// A file system that a disk has no room for.
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

    /// A new application finds what exists; returns the number that its tasks are [added](Self::add_task) with.
    ///
    /// # Errors
    /// What is to exist does not fit, or names a directory that is not there.
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

    /// A new task of an application, that does nothing yet; returns its number.
    pub fn add_task(&mut self, application: usize) -> u32 {
        self.new_task(application)
    }

    fn new_task(&mut self, namespace: usize) -> u32 {
        self.tasks.push(Task { namespace, ..Task::default() });
        (self.tasks.len() - 1) as u32
    }

    /// Names of the kernel's own threads, by task number.
    #[must_use]
    pub fn threads(&self) -> Vec<String> {
        let of_disk = |(number, disk): (usize, &Disk)| {
            let convert = disk.convert_task.map(|_| format!("ext4-convert-{number}"));
            [format!("flush-{number}"), format!("jbd-{number}")].into_iter().chain(convert)
        };
        self.disks.iter().enumerate().flat_map(of_disk).collect()
    }

    /// Goes on with what `task` is doing. Not for a task that waits or whose bios were not taken.
    pub fn run(&mut self, task: u32, now_ns: u64) -> Outcome {
        self.now_ns = now_ns;
        loop {
            let this = &mut self.tasks[task as usize];
            if self.error.is_some() {
                return Outcome::Failed;
            }
            if !this.outbox.is_empty() {
                // What the CPU did before comes before.
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

    /// The next bio of `task` for the request queue.
    pub fn take_io(&mut self, task: u32) -> Option<Io> {
        self.tasks[task as usize].outbox.pop_front()
    }

    /// A task that may run again.
    pub fn take_ready(&mut self) -> Option<u32> {
        self.ready.pop_front()
    }

    /// A task that leaves the disk to another: from whom, which disk, to whom.
    pub fn take_yield(&mut self) -> Option<(u32, usize, u32)> {
        self.yields.pop()
    }

    /// A task whose I/O, [begun](iosched_workload::app::Call::Submit) earlier, is done, and what it was begun with.
    pub fn take_finished(&mut self) -> Option<(u32, u32)> {
        self.finished.pop_front()
    }

    /// The moment has come until which `task` waited at most.
    pub fn time_is_up(&mut self, task: u32, now_ns: u64) {
        self.wake_if(task, |wait| wait.until_ns().is_some_and(|until_ns| until_ns <= now_ns));
    }

    /// The queue of a disk has become congested by writes, or is not any more.
    pub fn set_congested(&mut self, disk: usize, congested: bool) {
        self.disks[disk].congested = congested;
        if !congested {
            self.wake(|wait| matches!(wait, Wait::Congestion(of, _) if *of == disk));
        }
    }

    /// Whether everything is where it belongs: nothing dirty, no I/O under way. Old data is written within seconds.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.cache.nr_dirty() + self.cache.nr_writeback() == 0
    }

    /// Why the run cannot go on.
    #[must_use]
    pub fn error(&self) -> Option<&MachineError> {
        self.error.as_ref()
    }

    /// Pages in the page cache that are dirty, and that are being written back.
    #[must_use]
    pub fn unclean_pages(&self) -> (u64, u64) {
        (self.cache.nr_dirty(), self.cache.nr_writeback())
    }

    /// The page cache.
    #[must_use]
    pub const fn cache(&self) -> &PageCache {
        &self.cache
    }

    /// The file system of a disk.
    #[must_use]
    pub fn file_system(&self, disk: usize) -> &FileSystem {
        &self.disks[disk].fs
    }

    /// The journal of a disk.
    #[must_use]
    pub fn journal(&self, disk: usize) -> &Journal {
        &self.disks[disk].journal
    }

    /// Where a node of an application is, if it exists: its disk, its inode there, and whose pages are its own in the
    /// [page cache](Self::cache).
    #[must_use]
    pub fn node(&self, application: usize, node: Node) -> Option<(usize, Ino, Mapping)> {
        let (disk, ino) = self.find(application, node)?;
        Some((disk, ino, self.mapping(disk, ino)))
    }

    // ---- who is woken

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

    /// The largest readahead window of a read that wants so many pages of a file on a disk.
    fn readahead_pages_max(&self, disk: usize, wanted: u64, advice: Advice) -> u64 {
        let free = self.cache.pages_max() - self.cache.pages();
        let kb = self.disks[disk].read_ahead_kb << u32::from(advice == Advice::Sequential);
        let max = Readahead::pages_max(kb, free, self.cache.nr_inactive());
        let large = if self.machine.kernel.reads_large() { wanted.min(self.disks[disk].bio_pages_max()) } else { 0 };
        if max > 0 { max.max(large) } else { 0 }
    }

    /// Pages that a writer dirties before limits are looked at.
    fn dirty_turn_pages(&self, task: u32) -> u64 {
        self.ratelimit_pages(task).min(TURN_PAGES_MAX)
    }

    /// No page can be had now.
    fn wait_for_memory(&self) -> Action {
        Action::Block(Wait::Until(self.now_ns + MEMORY_WAIT_NS))
    }

    /// CPU time of copying bytes in calls of so many; `again`: the same were copied just before.
    fn copy_ns(&self, bytes: u64, call_bytes: u64, again: bool) -> u64 {
        let cpu = &self.machine.cpu;
        let slow_ns = transfer_ns(bytes, cpu.copy_bytes_per_s);
        if !again {
            return slow_ns;
        }
        // Gone over from end to end again and again, a cache keeps all of both copies or nothing.
        match 2 * call_bytes <= cpu.cache_bytes {
            true => transfer_ns(bytes, cpu.cached_copy_bytes_per_s),
            false => slow_ns,
        }
    }
}

/// How long bytes take at a rate, ns.
fn transfer_ns(bytes: u64, bytes_per_s: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1))) as u64
}

impl Wait {
    /// When it ends by itself, ns.
    const fn until_ns(self) -> Option<u64> {
        match self {
            Self::Congestion(_, until_ns) | Self::Until(until_ns) => Some(until_ns),
            Self::Work(u64::MAX) => None,
            Self::Work(until_ns) => Some(until_ns),
            _ => None,
        }
    }
}
