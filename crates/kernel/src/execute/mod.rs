//! Workloads carried out with real system calls, on a device or in a directory, under whatever scheduler the kernel has
//! set. What they give is what a simulation of them gives: a [`RunResult`].
//!
//! | file | what it does |
//! |---|---|
//! | `jobs.rs`, `tasks.rs`, `trace.rs`, `application.rs` | one kind of workload each: what a thread submits when |
//! | `worker.rs` | threads that start together, wait, and end early when asked |
//! | `port.rs` | what a thread's I/Os are done by: pread(2) and pwrite(2), or an io_uring (`ring.rs`) |
//! | `recorder.rs` | what a thread counts |
//! | `ground.rs` | the device, or files that are made, filled, and removed |
//! | `cgroup.rs` | cgroups that are made for a run, and removed |
//! | `message.rs` | what threads tell each other |
//! | `memory.rs` | what is written |
//!
//! Each task is a thread, or where cgroups are told apart by processes a process, with its own ioprio, its own
//! descriptors and, where it has more than one I/O under way, its own io_uring. All times are of one monotonic clock
//! that starts when every thread is ready.

mod application;
mod cgroup;
mod ground;
mod jobs;
mod memory;
mod message;
mod port;
mod recorder;
mod ring;
mod tasks;
mod trace;
mod worker;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use iosched::{IoPriority, SECTOR_BYTES};
use iosched_system::Bell;
use iosched_workload::outcome::{Note, QueueStat, QueueStatGroup, RunResult};
use iosched_workload::{Replay, Workload, WorkloadError};

pub use self::cgroup::{CgroupsOfRun, cgroups};
use self::ground::Ground;
use self::memory::WriteData;
use self::port::{Counts, Engine};
use self::recorder::{Recorder, Watch};
use self::ring::Ring;
use self::worker::Shared;
use crate::block::Stat;
use crate::consent::{Refusal, unasked};
use crate::quiet::drop_caches;
use crate::target::{OpenTarget, Target};

/// The longest I/O, bytes.
const IO_BYTES_MAX: u64 = 1 << 30;

/// How a workload is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecuteOptions<'a> {
    /// Decides what the workload leaves to chance.
    pub seed: u64,
    /// How a trace is replayed; without meaning for other workloads.
    pub replay: Replay,
    /// I/Os that complete before this moment do not count, ns since the start.
    pub warm_up_ns: u64,
    /// Nothing is submitted later than so long after the warm-up, ns; what is under way then completes. `None`: the
    /// workload decides.
    pub run_for_ns: Option<u64>,
    /// Whether everything that the machine has cached goes before the run, not only what it has of the target. As root
    /// only.
    pub drop_caches: bool,
    /// Where the workload's cgroups are made; `None`: as threads' cgroups of version 1, where there are such.
    pub cgroups: Option<CgroupsOfRun<'a>>,
    /// Once it is true, the run ends within 100 ms and what is under way, with [`ExecuteError::Interrupted`].
    pub interrupt: Option<&'a AtomicBool>,
}

/// Why a workload was not run, or not to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// It cannot be put on the target.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// It writes, and nobody agreed to that.
    #[error(
        "{workload}: the workload writes, but a device is only read; {refusal}; or give a directory, in which iosched \
         writes only to files that it creates"
    )]
    NoConsent {
        /// The workload.
        workload: String,
        /// Why the device is not written.
        refusal: Box<Refusal>,
    },
    /// It writes, and the target is a file of somebody's.
    #[error("{workload}: the workload writes, but {path} is a file, which is only read; give a directory instead")]
    OnlyRead {
        /// The workload.
        workload: String,
        /// The file.
        path: String,
    },
    /// It works on files, and the target is a device.
    #[error(
        "{workload}: the workload needs files, but {path} is not a directory; give one in a file system on the \
         device"
    )]
    NeedsDirectory {
        /// The workload.
        workload: String,
        /// The device file.
        path: String,
    },
    /// It works on a device, and the target is a directory.
    #[error("{workload}: works on a device itself; write the name of a file instead of the device's")]
    UsesDevice {
        /// The workload.
        workload: String,
    },
    /// The device has no medium.
    #[error("{}: has no medium, or no file", path.display())]
    Empty {
        /// The device file.
        path: PathBuf,
    },
    /// The files do not fit.
    #[error(
        "{}: the files of the workload need {} MiB, but only {} MiB are free; free some space, or make the files smaller",
        path.display(), needed_bytes.div_ceil(1 << 20), available_bytes >> 20
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// What they take, bytes.
        needed_bytes: u64,
        /// What there is, bytes.
        available_bytes: u64,
    },
    /// An I/O longer than any that is done here.
    #[error("an I/O of {bytes} bytes; the maximum is {IO_BYTES_MAX}")]
    TooLong {
        /// Its length, bytes.
        bytes: u64,
    },
    /// A file cannot be made, filled or opened.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// An I/O failed.
    #[error("{}: {task}: {op} of {bytes} bytes at {offset}: {error}", path.display())]
    Io {
        /// The task's name.
        task: String,
        /// What it did.
        op: &'static str,
        /// The file or device.
        path: PathBuf,
        /// Where, bytes.
        offset: u64,
        /// How much, bytes.
        bytes: u64,
        /// What the system says.
        error: io::Error,
    },
    /// A system call of an application failed.
    #[error("{}: {task}: {call}: {error}", path.display())]
    Call {
        /// The task's name.
        task: String,
        /// Which call.
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// An ioprio cannot be set.
    #[error("ioprio {ioprio}: {error}{}", priority_remedy(ioprio))]
    IoPriority {
        /// Which.
        ioprio: IoPriority,
        /// What the system says.
        error: io::Error,
    },
    /// A cgroup cannot be changed, or a thread not be put into it.
    #[error("cgroup {cgroup}: {error}")]
    Cgroup {
        /// Its name in the workload.
        cgroup: String,
        /// What the system says.
        error: io::Error,
    },
    /// The system refuses something else.
    #[error("{what}: {error}")]
    System {
        /// The call.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A replay's speed.
    #[error("speed: {speed} is out of range; it must be from 0.000001 to 1,000,000")]
    Speed {
        /// What it was.
        speed: f64,
    },
    /// The interrupt flag was set.
    #[error("interrupted {} ms after the start", at_ns / 1_000_000)]
    Interrupted {
        /// When, ns since the start; 0 before it.
        at_ns: u64,
    },
}

fn priority_remedy(ioprio: &IoPriority) -> &'static str {
    if ioprio.class() == iosched::IoClass::RealTime { "; only root may use the real-time class" } else { "" }
}

impl ExecuteError {
    fn file(path: &Path, error: io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }
}

/// Carries out a workload once: [`prepare`] and [`Prepared::run`].
///
/// # Errors
/// As both.
pub fn run(workload: &Workload, target: &Target, options: &ExecuteOptions<'_>) -> Result<RunResult, ExecuteError> {
    prepare(workload, target, options.interrupt)?.run(options)
}

/// A workload on a target: what it needs there is made and filled, and is removed with this. It can be run any number
/// of times.
#[derive(Debug)]
pub struct Prepared<'t> {
    workload: &'t Workload,
    target: &'t Target,
    kind: Kind<'t>,
    io_bytes: u64,
    /// A run has left holes in its files.
    has_holes: AtomicBool,
}

#[derive(Debug)]
enum Kind<'t> {
    Jobs(jobs::PreparedJobs<'t>),
    Tasks(tasks::PreparedTasks<'t>),
    Trace(trace::PreparedTrace<'t>),
    Application(application::PreparedApplication<'t>),
}

/// Whether `workload` may be run on `target` at all: known before anything is prepared.
///
/// # Errors
/// It writes, and the target is a device that is only read; an I/O is longer than can be made; or
/// there is no room for its files.
pub fn check(workload: &Workload, target: &Target) -> Result<(), ExecuteError> {
    let needs_files = matches!(workload, Workload::Application(_));
    if !target.is_writable() && !needs_files && writes(workload) {
        let (workload, path) = (workload.name().to_owned(), target.to_string());
        return Err(match &target.place {
            OpenTarget::ReadOnly(device) => ExecuteError::NoConsent { workload, refusal: Box::new(unasked(device)) },
            _ => ExecuteError::OnlyRead { workload, path },
        });
    }
    let bytes = longest_io(workload);
    if bytes > IO_BYTES_MAX {
        return Err(ExecuteError::TooLong { bytes });
    }
    if target.is_directory() {
        match workload {
            Workload::Jobs(jobs) => jobs::need(jobs, target).map(|_| ())?,
            Workload::Tasks(_) | Workload::Trace(_) => ground::disk_bytes(target, 0).map(|_| ())?,
            Workload::Application(spec) => ground::check_files(target, spec.file_bytes())?,
        }
    }
    Ok(())
}

/// Puts a workload on a target: checks that it can be run there, makes its files and fills them with data.
///
/// # Errors
/// It does not fit, writes where only reads are allowed, needs files where there is a device; or the system refuses.
pub fn prepare<'t>(
    workload: &'t Workload,
    target: &'t Target,
    interrupt: Option<&AtomicBool>,
) -> Result<Prepared<'t>, ExecuteError> {
    check(workload, target)?;
    let io_bytes = longest_io(workload);
    let kind = match workload {
        Workload::Jobs(jobs) => Kind::Jobs(jobs::PreparedJobs::new(jobs, target)?),
        Workload::Tasks(set) => Kind::Tasks(tasks::PreparedTasks::new(set, target)?),
        Workload::Trace(trace) => Kind::Trace(trace::PreparedTrace::new(trace, target)?),
        Workload::Application(spec) => Kind::Application(application::PreparedApplication::new(spec, target)?),
    };
    let prepared = Prepared { workload, target, kind, io_bytes, has_holes: AtomicBool::new(false) };
    prepared.ground().fill(interrupt)?;
    Ok(prepared)
}

/// Whether a workload changes data.
fn writes(workload: &Workload) -> bool {
    match workload {
        Workload::Jobs(jobs) => jobs.iter().any(|(_, job)| jobs::writes(job)),
        Workload::Tasks(set) => tasks::writes(set),
        Workload::Trace(trace) => trace::writes(trace),
        Workload::Application(_) => true,
    }
}

/// A workload's longest I/O, bytes.
fn longest_io(workload: &Workload) -> u64 {
    match workload {
        Workload::Jobs(jobs) => jobs.iter().map(|(_, job)| jobs::longest_io(job)).max().unwrap_or(0),
        Workload::Tasks(set) => tasks::longest_io(set),
        Workload::Trace(trace) => trace::longest_io(trace),
        Workload::Application(_) => 0,
    }
}

impl Prepared<'_> {
    fn ground(&self) -> &Ground<'_> {
        match &self.kind {
            Kind::Jobs(jobs) => &jobs.ground,
            Kind::Tasks(tasks) => &tasks.ground,
            Kind::Trace(trace) => &trace.ground,
            Kind::Application(application) => &application.ground,
        }
    }

    /// Carries out the workload. What the page cache has of the target is dropped before.
    ///
    /// # Errors
    /// An I/O failed, the system refuses something, the run was interrupted, or its directory was
    /// exchanged.
    pub fn run(&self, options: &ExecuteOptions<'_>) -> Result<RunResult, ExecuteError> {
        if let Replay::Open { speed } = options.replay
            && !(speed.is_finite() && (1e-6..=1e6).contains(&speed))
        {
            return Err(ExecuteError::Speed { speed });
        }
        if self.has_holes.swap(false, Ordering::Relaxed) {
            self.ground().fill(options.interrupt)?;
        }
        self.ground().drop_cached()?;
        if options.drop_caches {
            drop_caches().map_err(|error| ExecuteError::System { what: "drop_caches", error })?;
        }
        let run = Run::new(self, options);
        let mut gathered = match &self.kind {
            Kind::Jobs(jobs) => jobs.run(&run, options)?,
            Kind::Tasks(tasks) => tasks.run(&run)?,
            Kind::Trace(trace) => trace.run(&run, options)?,
            Kind::Application(application) => application.run(&run, options)?,
        };
        self.ground().check_place()?;
        if gathered.counts.emptied > 0 {
            self.has_holes.store(true, Ordering::Relaxed);
        }
        self.add_notes(&mut gathered);
        Ok(gathered.result)
    }

    /// What a reader of the figures should know.
    fn add_notes(&self, gathered: &mut Gathered) {
        let Gathered { result, counts } = gathered;
        let ground = self.ground();
        let late = late(result);
        let notes = &mut result.notes;
        if !ground.direct {
            notes.push(Note::NotDirect { directory: self.target.to_string() });
        }
        if counts.past_end > 0 {
            let capacity_sectors = ground.pieces[0].bytes / SECTOR_BYTES;
            notes.push(Note::PastEnd { ios: counts.past_end, capacity_sectors });
        }
        if counts.part_blocks > 0 {
            notes.push(Note::PartBlocks { ios: counts.part_blocks, block_bytes: ground.block_bytes });
        }
        let mut not = |ios: u64, what: &str, why: &str| {
            if ios > 0 {
                notes.push(Note::NotCarriedOut { what: format!("{what} ({ios} I/Os)"), why: why.to_owned() });
            }
        };
        not(counts.unsupported, "the target does not support it", "the target cannot do it");
        not(
            counts.priorities_ignored,
            "priorities of single I/Os",
            "pread(2) and pwrite(2) have no priority; use an asynchronous ioengine",
        );
        notes.extend(late);
    }
}

/// Whether the executor's own error is not small: on average more than a tenth of the latency.
fn late(result: &RunResult) -> Option<Note> {
    let lateness = result.lateness.as_ref()?;
    let latency_ns = result.latency.all().mean_ns();
    let us = |ns: u64| ns as f64 / 1e3;
    (lateness.mean_ns() > latency_ns / 10.0).then(|| Note::Late {
        p50_us: us(lateness.quantile_ns(0.5)),
        p99_us: us(lateness.quantile_ns(0.99)),
        max_us: us(lateness.max_ns()),
        latency_us: latency_ns / 1e3,
    })
}

/// What the threads of a run brought back.
#[derive(Debug, Default)]
struct Gathered {
    result: RunResult,
    counts: Counts,
}

impl Gathered {
    fn add(&mut self, recorder: Recorder, counts: &Counts) {
        recorder.add_to(&mut self.result);
        self.counts.merge(counts);
    }
}

/// What the threads of one run are given.
struct Run<'a> {
    written: Option<Arc<WriteData>>,
    counted_from_ns: u64,
    end_ns: u64,
    cgroups: Option<CgroupsOfRun<'a>>,
    interrupt: Option<&'a AtomicBool>,
    watch: Arc<Watch>,
}

impl<'a> Run<'a> {
    fn new(prepared: &'a Prepared<'_>, options: &ExecuteOptions<'a>) -> Self {
        let io_bytes = prepared.io_bytes as usize;
        // Blocks that an I/O touches are moved whole.
        let room = io_bytes + 2 * memory::ALIGN_BYTES;
        let run_for_ns = options.run_for_ns.map(|run_for_ns| options.warm_up_ns.saturating_add(run_for_ns));
        Self {
            written: writes(prepared.workload).then(|| Arc::new(WriteData::new(room, options.seed))),
            counted_from_ns: options.warm_up_ns,
            end_ns: [run_for_ns, prepared.workload.limit_ns()].into_iter().flatten().min().unwrap_or(u64::MAX),
            cgroups: options.cgroups,
            interrupt: options.interrupt,
            watch: Arc::new(Watch::of(prepared.target.block_device())),
        }
    }

    fn shared(&self, threads: usize) -> Result<Shared<'a>, ExecuteError> {
        Shared::new(threads, self.interrupt, self.counted_from_ns, self.end_ns, &self.watch)
    }

    /// What a thread's I/Os of up to `io_bytes` are done by, `depth` at once.
    fn engine(&self, ring: bool, depth: usize, io_bytes: u64, bell: &Arc<Bell>) -> Result<Engine, ExecuteError> {
        let io_bytes = io_bytes as usize + 2 * memory::ALIGN_BYTES;
        let written = self.written.clone().unwrap_or_else(|| Arc::new(WriteData::none()));
        if !ring {
            return Ok(Engine::Calls { read: memory::room(io_bytes), written });
        }
        let ring = Ring::new(depth, io_bytes, written, Some(bell));
        ring.map(|ring| Engine::Ring(Box::new(ring)))
            .map_err(|error| ExecuteError::System { what: "io_uring_setup", error })
    }

    /// Where thread number `thread` begins in the data there is to write.
    fn first_write(&self, thread: usize) -> u64 {
        // Prime to the number of places, and far from neighbours.
        thread as u64 * 397
    }

    /// All threads are ready. Without a warm-up everything counts from now on, unless `ramps`: then once the first
    /// I/O does.
    fn begin(&self, ramps: bool) -> Result<(), ExecuteError> {
        if self.counted_from_ns == 0 && !ramps {
            self.watch.begin();
        }
        Ok(())
    }

    /// All threads are done.
    fn ended(&self, mut gathered: Gathered, shared: &Shared<'_>) -> Gathered {
        let result = &mut gathered.result;
        result.counted_from_ns = result.counted_from_ns.max(self.counted_from_ns);
        match self.watch.end() {
            Some(stat) => add_stat(result, &stat),
            None => result.device_unwatched = true,
        }
        if let Some(at_ns) = shared.limited_ns() {
            result.notes.push(Note::Limited { ios: result.events, at_ns });
        }
        gathered
    }
}

/// Adds what the kernel counted of the device meanwhile, whoever caused it.
pub fn add_stat(result: &mut RunResult, stat: &Stat) {
    let ns = |ms: u64| ms.saturating_mul(1_000_000);
    let group = |direction: &crate::block::Direction| QueueStatGroup {
        ios: direction.requests,
        merges: direction.merges,
        sectors: direction.bytes / SECTOR_BYTES,
        time_ns: ns(direction.waited_ms),
    };
    result.requests_dispatched = stat.requests() + stat.flushes;
    result.device_busy_ns = ns(stat.busy_ms);
    result.queue = QueueStat {
        reads: group(&stat.reads),
        writes: group(&stat.writes),
        discards: group(&stat.discards),
        flushes: QueueStatGroup { ios: stat.flushes, ..QueueStatGroup::default() },
        busy_ns: ns(stat.busy_ms),
        weighted_ns: ns(stat.queue_ms),
    };
}
