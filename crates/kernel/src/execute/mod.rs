//! Runs workloads with real system calls, on a device or in a directory, under the scheduler that
//! the kernel has set. A run returns a [`RunResult`], as a simulation does.
//!
//! | file | contents |
//! |---|---|
//! | `jobs.rs`, `tasks.rs`, `trace.rs`, `application.rs` | when a thread submits which I/Os, for each kind of workload |
//! | `worker.rs` | threads that start together, wait, and end early on request |
//! | `port.rs` | executes the I/Os of a thread: pread(2) and pwrite(2), or an io_uring (`ring.rs`) |
//! | `recorder.rs` | counters of a thread |
//! | `ground.rs` | the device, or files that are created, filled, and removed |
//! | `cgroup.rs` | cgroups that are created for a run, and removed |
//! | `message.rs` | messages between threads |
//! | `memory.rs` | memory and data for I/Os |
//!
//! Each task is a thread, or a process if it must be in a cgroup of version 2. Each task has its
//! own ioprio and its own descriptors. A task with more than one I/O in flight has its own
//! io_uring. All times come from one monotonic clock, which starts when every thread is ready.

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

/// Longest I/O, bytes.
const IO_BYTES_MAX: u64 = 1 << 30;

/// Options of a run of a workload on a real device.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecuteOptions<'a> {
    /// Seed of the workload's random choices.
    pub seed: u64,
    /// Mode in which a trace is replayed. Other workloads ignore it.
    pub replay: Replay,
    /// Time before which completions do not count, ns since the start.
    pub warm_up_ns: u64,
    /// Duration after the warm-up in which I/O is submitted, ns. Afterwards, the run waits for the
    /// I/Os in flight. If `None`, the workload determines the duration.
    pub run_for_ns: Option<u64>,
    /// Whether to drop all caches of the machine before the run, instead of only the target's data.
    /// Needs root.
    pub drop_caches: bool,
    /// Location of the workload's cgroups. If `None`, threads use cgroups of version 1, if these
    /// are available.
    pub cgroups: Option<CgroupsOfRun<'a>>,
    /// Flag that ends the run with [`ExecuteError::Interrupted`]. After at most 100 ms, the run
    /// submits no more I/O. It then waits for the I/Os in flight.
    pub interrupt: Option<&'a AtomicBool>,
}

/// Reason why a workload did not run, or did not complete.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecuteError {
    /// The workload does not fit the target.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The workload writes, and no person has allowed writing.
    #[error(
        "{workload}: the workload writes, but iosched does not write to this device: {refusal}; or give a \
         directory, in which iosched writes only to files that it creates"
    )]
    NoConsent {
        /// Name of the workload.
        workload: String,
        /// Reason why the device is not written.
        refusal: Box<Refusal>,
    },
    /// The workload writes, and the target is a user's file.
    #[error(
        "{workload}: the workload writes, but {path} is a file, and iosched does not write to files that \
         you name; give a directory instead"
    )]
    OnlyRead {
        /// Name of the workload.
        workload: String,
        /// Path of the file.
        path: String,
    },
    /// The workload needs files, and the target is not a directory.
    #[error(
        "{workload}: the workload needs files, but {path} is not a directory; give a directory in a file system on \
         the device"
    )]
    NeedsDirectory {
        /// Name of the workload.
        workload: String,
        /// Path of the target.
        path: String,
    },
    /// Workloads of several units run only in simulation.
    #[error(
        "several workloads at the same time run only in simulation; put the jobs of all workloads into one fio \
             job file"
    )]
    Several,
    /// The application uses a device directly, which is not supported.
    #[error(
        "{workload}: the workload uses a device directly; write the name of a file instead of the name of the \
         device"
    )]
    UsesDevice {
        /// Name of the workload.
        workload: String,
    },
    /// The device has no medium.
    #[error("{}: the drive has no medium, or the loop device has no file", path.display())]
    Empty {
        /// Path of the device file.
        path: PathBuf,
    },
    /// The files do not fit.
    #[error(
        "{}: the files of the workload need {} MiB, but only {} MiB are free; free some space, or make the files smaller",
        path.display(), needed_bytes.div_ceil(1 << 20), available_bytes >> 20
    )]
    NoRoom {
        /// Path of the directory.
        path: PathBuf,
        /// Needed bytes.
        needed_bytes: u64,
        /// Available bytes.
        available_bytes: u64,
    },
    /// An I/O is longer than the maximum.
    #[error("an I/O has {bytes} bytes; the maximum is {IO_BYTES_MAX}")]
    TooLong {
        /// Length of the I/O, bytes.
        bytes: u64,
    },
    /// A file cannot be created, filled or opened.
    #[error("{}: {error}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// An I/O failed.
    #[error("{}: {task}: {op} of {bytes} bytes at {offset}: {error}", path.display())]
    Io {
        /// Name of the task.
        task: String,
        /// Operation.
        op: &'static str,
        /// Path of the file or device.
        path: PathBuf,
        /// Offset, bytes.
        offset: u64,
        /// Length, bytes.
        bytes: u64,
        /// Error from the system.
        error: io::Error,
    },
    /// A system call of an application failed.
    #[error("{}: {task}: {call}: {error}", path.display())]
    Call {
        /// Name of the task.
        task: String,
        /// Name of the call.
        call: &'static str,
        /// Path of the file or directory.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
    /// An ioprio cannot be set.
    #[error("ioprio {ioprio}: {error}{}", priority_remedy(ioprio))]
    IoPriority {
        /// The ioprio.
        ioprio: IoPriority,
        /// Error from the system.
        error: io::Error,
    },
    /// A cgroup cannot be changed, or a thread cannot be moved into it.
    #[error("cgroup {cgroup}: {error}")]
    Cgroup {
        /// Name or path of the cgroup.
        cgroup: String,
        /// Error from the system.
        error: io::Error,
    },
    /// Another system call failed.
    #[error("{what}: {error}")]
    System {
        /// Name of the call.
        what: &'static str,
        /// Error from the system.
        error: io::Error,
    },
    /// The speed of a replay is out of range.
    #[error("speed: {speed} is out of range; it must be from 0.000001 to 1,000,000")]
    Speed {
        /// Given speed.
        speed: f64,
    },
    /// The interrupt flag was set.
    #[error("interrupted {} ms after the start", at_ns / 1_000_000)]
    Interrupted {
        /// Time of the interrupt, ns since the start. 0 before the start.
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

/// Runs a workload once. Calls [`prepare`] and then [`Prepared::run`].
///
/// # Errors
/// The errors of both functions.
pub fn run(workload: &Workload, target: &Target, options: &ExecuteOptions<'_>) -> Result<RunResult, ExecuteError> {
    prepare(workload, target, options.interrupt)?.run(options)
}

/// A workload on a target, with its files created and filled. Dropping the value removes the files.
/// The workload can run any number of times.
#[derive(Debug)]
pub struct Prepared<'t> {
    workload: &'t Workload,
    target: &'t Target,
    kind: Kind<'t>,
    io_bytes: u64,
    /// Whether a run has left holes in the files, by discards or zeroing.
    has_holes: AtomicBool,
}

#[derive(Debug)]
enum Kind<'t> {
    Jobs(jobs::PreparedJobs<'t>),
    Tasks(tasks::PreparedTasks<'t>),
    Trace(trace::PreparedTrace<'t>),
    Application(application::PreparedApplication<'t>),
}

/// Checks whether `workload` can run on `target`. Prepares nothing.
///
/// # Errors
/// - The workload writes, but the target is read-only.
/// - An I/O is longer than the maximum.
/// - There is no room for the files.
pub fn check(workload: &Workload, target: &Target) -> Result<(), ExecuteError> {
    if let Workload::Several(_) = workload {
        return Err(ExecuteError::Several);
    }
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
            Workload::Several(_) => return Err(ExecuteError::Several),
        }
    }
    Ok(())
}

/// Prepares a workload on a target: checks that it can run there, creates its files and fills them
/// with data.
///
/// # Errors
/// The workload does not fit on the target, writes to a read-only target, or needs files on a
/// device. Or the system refuses.
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
        Workload::Several(_) => return Err(ExecuteError::Several),
    };
    let prepared = Prepared { workload, target, kind, io_bytes, has_holes: AtomicBool::new(false) };
    prepared.ground().fill(interrupt)?;
    Ok(prepared)
}

/// Returns whether a workload changes data.
fn writes(workload: &Workload) -> bool {
    match workload {
        Workload::Jobs(jobs) => jobs.iter().any(|(_, job)| jobs::writes(job)),
        Workload::Tasks(set) => tasks::writes(set),
        Workload::Trace(trace) => trace::writes(trace),
        Workload::Application(_) => true,
        Workload::Several(several) => several.parts.iter().any(|part| writes(&part.workload)),
    }
}

/// Returns the longest I/O of a workload, bytes.
fn longest_io(workload: &Workload) -> u64 {
    match workload {
        Workload::Jobs(jobs) => jobs.iter().map(|(_, job)| jobs::longest_io(job)).max().unwrap_or(0),
        Workload::Tasks(set) => tasks::longest_io(set),
        Workload::Trace(trace) => trace::longest_io(trace),
        Workload::Application(_) => 0,
        Workload::Several(several) => several.parts.iter().map(|part| longest_io(&part.workload)).max().unwrap_or(0),
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

    /// Runs the workload. Before that, drops the target's data from the page cache.
    ///
    /// # Errors
    /// An I/O failed, the system refuses a call, the run was interrupted, or its directory was
    /// replaced.
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
        gathered.result.find_contention();
        Ok(gathered.result)
    }

    /// Removes the files of the workload. Dropping the value does the same without an error.
    ///
    /// # Errors
    /// The directory was replaced, or the system refuses.
    pub fn finish(self) -> Result<(), ExecuteError> {
        match self.kind {
            Kind::Jobs(mut jobs) => jobs.ground.remove(),
            Kind::Tasks(mut tasks) => tasks.ground.remove(),
            Kind::Trace(mut trace) => trace.ground.remove(),
            Kind::Application(mut application) => application.ground.remove(),
        }
    }

    /// Adds notes for the readers of the results.
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
        not(counts.unsupported, "I/Os that the target does not support", "the target does not support these I/Os");
        not(
            counts.priorities_ignored,
            "priorities of single I/Os",
            "the system calls pread and pwrite have no parameter for a priority; use an asynchronous ioengine",
        );
        notes.extend(late);
    }
}

/// Returns a note if I/Os were submitted too late. The limit for the mean delay is a tenth of the
/// mean latency.
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

/// Results of the threads of a run.
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

/// Parameters for the threads of one run.
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
        // The port extends I/Os to whole blocks, so an I/O can be longer than in the workload.
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

    /// Creates the engine of a thread. The engine executes up to `depth` I/Os at once, each of up
    /// to `io_bytes`.
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

    /// Returns the number of the first write of the thread with index `thread`. The number of a
    /// write determines its data.
    fn first_write(&self, thread: usize) -> u64 {
        // 397 and the number of start positions in the write data have no common divisor. With this
        // factor, the data of different threads starts far apart.
        thread as u64 * 397
    }

    /// Starts the observation of the device when all threads are ready. With a warm-up or with
    /// `ramps`, the observation starts later, at the first I/O that counts.
    fn begin(&self, ramps: bool) -> Result<(), ExecuteError> {
        if self.counted_from_ns == 0 && !ramps {
            self.watch.begin();
        }
        Ok(())
    }

    /// Completes the results after all threads have ended.
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

/// Adds the kernel's statistics of the device during the run, which include the I/O of other
/// programs.
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
