//! What a run of a workload gave: plain data, the same wherever it ran, in simulation or on a real device.

mod job;
mod timeline;

use iosched_trace::Fit;
use serde::{Deserialize, Serialize};

pub use iosched_numbers::Histogram;
pub use job::{DirectionResult, JobResult, SAMPLE_NS, Samples, SyncCalls, SyncKind};
pub(crate) use job::{batch_class, level_class};
pub use timeline::{IoBin, IoKind, IoTimeline, LatencyClasses, SizeClass};

/// The result of one run. All moments are ns since the run's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// When the last I/O completed, ns.
    pub finished_ns: u64,
    /// I/Os completed, as tasks submitted them.
    pub ios: u64,
    /// Requests sent to the device: after merging and splitting, flushes included.
    pub requests_dispatched: u64,
    /// Bytes read by tasks.
    pub bytes_read: u64,
    /// Bytes written by tasks; discards and zeroing not counted.
    pub bytes_written: u64,
    /// From submission (before any wait for allocation) to completion.
    pub latency: Latencies,
    /// One a task or recorded process, in the workload's order.
    pub tasks: Vec<TaskResult>,
    /// Time during which the device had at least one command, ns.
    pub device_busy_ns: u64,
    /// On a real device: the kernel told nothing of it, so that requests, busy time and the queue's statistics are
    /// not known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub device_unwatched: bool,
    /// The request queue's own statistics.
    pub queue: QueueStat,
    /// Events the engine handled.
    pub events: u64,
    /// What a reader of the figures should know.
    pub notes: Vec<Note>,
    /// Of fio jobs: one a job, in the order of `tasks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobResult>,
    /// Of an application: what it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<crate::app::Report>,
    /// Of an application: latencies of the calls of all its tasks that sync a file.
    #[serde(default, skip_serializing_if = "SyncCalls::is_empty")]
    pub sync_calls: SyncCalls,
    /// From when I/Os count, ns: after a warm-up, or the `ramp_time` that all fio jobs have. Requests, the queue's
    /// statistics and the device's busy time count from then on, too.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub counted_from_ns: u64,
    /// On a real device: how much later than it was due each I/O with a time of its own was submitted, ns: those of a
    /// replay, those after a think time, and scheduled arrivals. The executor's own error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Histogram>,
    /// On a real device: when its I/Os were done. Of a simulated run its timeline has that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_timeline: Option<Box<IoTimeline>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl RunResult {
    /// The time that counts: from the end of the warm-up to the last completion, ns.
    #[must_use]
    pub const fn counted_ns(&self) -> u64 {
        self.finished_ns.saturating_sub(self.counted_from_ns)
    }

    /// How long `tasks` of this run were active, ns: from the earliest start to the latest end. A
    /// job counts as in fio. Another task counts from its first submission to its last completion.
    /// `None`: they have fewer than two I/Os that count.
    #[must_use]
    pub fn active_ns(&self, tasks: &[&TaskResult]) -> Option<u64> {
        if tasks.iter().map(|task| task.latency.count()).sum::<u64>() < 2 {
            return None;
        }
        let span = |(number, task): (usize, &TaskResult)| {
            let is_meant = tasks.iter().any(|meant| std::ptr::eq(*meant, task));
            match self.jobs.get(number).filter(|_| is_meant) {
                Some(job) => Some((job.counted_from_ns, job.ended_ns)),
                None if is_meant => Some((task.first_submit_ns?.max(self.counted_from_ns), task.last_completion_ns?)),
                None => None,
            }
        };
        let spans = self.tasks.iter().enumerate().filter_map(span);
        let (from_ns, to_ns) = spans.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
        (to_ns > from_ns).then(|| to_ns - from_ns)
    }

    /// Whether anything is known of I/Os: of a command that only was timed, nothing is.
    #[must_use]
    pub const fn knows_ios(&self) -> bool {
        self.ios > 0 || !self.tasks.is_empty()
    }

    /// Share of the time that counts in which the device had work, 0 to 1; `None` if that is not known.
    #[must_use]
    pub fn utilisation(&self) -> Option<f64> {
        let counted_ns = self.counted_ns();
        let is_known = counted_ns > 0 && !self.device_unwatched;
        is_known.then(|| (self.device_busy_ns as f64 / counted_ns as f64).min(1.0))
    }

    /// The tasks of jobs that sync count without their syncs, as fio counts: these have latencies of their own.
    pub fn leave_syncs_out(&mut self) {
        let pairs = self.tasks.iter_mut().zip(&self.jobs);
        pairs.filter(|(_, job)| !job.sync.is_empty()).for_each(|(task, job)| task.count_as(job));
    }

    /// Bytes moved per second of the run that counts.
    #[must_use]
    pub fn throughput_bytes_per_s(&self) -> f64 {
        let bytes = (self.bytes_read + self.bytes_written) as f64;
        let counted_ns = self.counted_ns();
        if counted_ns == 0 { 0.0 } else { bytes * 1e9 / counted_ns as f64 }
    }
}

/// Latencies by kind; every I/O is in exactly one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Reads; all are sync.
    pub reads: Histogram,
    /// Writes that somebody waits for.
    pub writes_sync: Histogram,
    /// Writes that nobody waits for.
    pub writes_async: Histogram,
    /// Flushes, discards and zeroing.
    pub others: Histogram,
}

impl Latencies {
    /// Reads and sync writes together.
    #[must_use]
    pub fn sync(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.merge(&self.writes_sync);
        all
    }

    /// Sync and async writes together.
    #[must_use]
    pub fn writes(&self) -> Histogram {
        let mut all = self.writes_sync.clone();
        all.merge(&self.writes_async);
        all
    }

    /// Everything together.
    #[must_use]
    pub fn all(&self) -> Histogram {
        let mut all = self.sync();
        all.merge(&self.writes_async);
        all.merge(&self.others);
        all
    }

    /// Adds those of another run.
    pub fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes_sync.merge(&other.writes_sync);
        self.writes_async.merge(&other.writes_async);
        self.others.merge(&other.others);
    }
}

/// One task's share of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Process id.
    pub pid: u32,
    /// Its name; empty if the workload gives none.
    pub name: String,
    /// Its ioprio at the start, as `be/4`.
    pub ioprio: String,
    /// The cgroup that the workload begins it in, with those above it before slashes; empty for the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cgroup: String,
    /// I/Os completed.
    pub ios: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Latency of all its I/Os.
    pub latency: Histogram,
    /// When it first submitted, ns; `None` if never.
    pub first_submit_ns: Option<u64>,
    /// When its last I/O completed, ns; `None` if none did.
    pub last_completion_ns: Option<u64>,
}

impl TaskResult {
    /// Counts the I/Os that a job made itself, as fio does: its reads, writes and discards, without its syncs.
    pub fn count_as(&mut self, job: &JobResult) {
        self.latency = job.read.latency.clone();
        self.latency.merge(&job.write.latency);
        self.latency.merge(&job.trim.latency);
        self.ios = self.latency.count();
        (self.bytes_read, self.bytes_written) = (job.read.bytes, job.write.bytes);
    }
}

/// A copy of [`iosched::Stat`] that can be stored. Times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStat {
    /// Reads.
    pub reads: QueueStatGroup,
    /// Writes, and write zeroes.
    pub writes: QueueStatGroup,
    /// Discards.
    pub discards: QueueStatGroup,
    /// Flushes.
    pub flushes: QueueStatGroup,
    /// Time during which anything was in flight, ns.
    pub busy_ns: u64,
    /// Time in flight summed over requests, ns.
    pub weighted_ns: u64,
}

impl QueueStat {
    /// What happened after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let group = |own: &QueueStatGroup, earlier: &QueueStatGroup| QueueStatGroup {
            ios: own.ios.saturating_sub(earlier.ios),
            merges: own.merges.saturating_sub(earlier.merges),
            sectors: own.sectors.saturating_sub(earlier.sectors),
            time_ns: own.time_ns.saturating_sub(earlier.time_ns),
        };
        Self {
            reads: group(&self.reads, &earlier.reads),
            writes: group(&self.writes, &earlier.writes),
            discards: group(&self.discards, &earlier.discards),
            flushes: group(&self.flushes, &earlier.flushes),
            busy_ns: self.busy_ns.saturating_sub(earlier.busy_ns),
            weighted_ns: self.weighted_ns.saturating_sub(earlier.weighted_ns),
        }
    }
}

/// Counts of one kind of request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueStatGroup {
    /// Requests completed.
    pub ios: u64,
    /// Bios and requests that were merged into others.
    pub merges: u64,
    /// Sectors transferred.
    pub sectors: u64,
    /// Time from allocation to completion, summed over requests, ns.
    pub time_ns: u64,
}

impl From<&iosched::Stat> for QueueStat {
    fn from(stat: &iosched::Stat) -> Self {
        let group = |g: &iosched::StatGroup| QueueStatGroup {
            ios: g.ios,
            merges: g.merges,
            sectors: g.sectors,
            time_ns: g.time_ns,
        };
        Self {
            reads: group(&stat.reads),
            writes: group(&stat.writes),
            discards: group(&stat.discards),
            flushes: group(&stat.flushes),
            busy_ns: stat.busy_ns,
            weighted_ns: stat.weighted_ns,
        }
    }
}

/// Something a reader of the figures should know. `Display` says it in a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// The recorded disk is larger than the device: untouched gaps were shrunk. Touched regions keep their order,
    /// their size and what is next to them; seeks are shorter.
    #[error(
        "the trace was recorded on {recorded_sectors} sectors, and the device has {capacity_sectors}: gaps that the \
         trace never touches were shrunk to {gap_percent:.0} %"
    )]
    GapsShrunk {
        /// Sectors the trace spans.
        recorded_sectors: u64,
        /// Sectors of the device.
        capacity_sectors: u64,
        /// What is left of each gap, in per cent.
        gap_percent: f64,
    },
    /// The trace touches more than the device holds: positions were taken modulo its capacity, so far-apart
    /// regions of the recording lie upon each other.
    #[error(
        "the trace touches {touched_sectors} sectors, and the device has {capacity_sectors}: positions wrap around, \
         so distances differ from the recording"
    )]
    Wrapped {
        /// Sectors the trace touches.
        touched_sectors: u64,
        /// Sectors of the device.
        capacity_sectors: u64,
    },
    /// A task's pattern ran past the end of the device and went on at its start.
    #[error(
        "{ios} I/Os were beyond the end of the device; their positions were taken modulo its {capacity_sectors} \
     sectors"
    )]
    PastEnd {
        /// How many I/Os.
        ios: u64,
        /// Sectors of the device.
        capacity_sectors: u64,
    },
    /// I/Os longer than the queue's `max_sectors_kb` were sent in parts.
    #[error("{} longer than max_sectors_kb ({max_sectors_kb} KiB), sent in {parts} parts", counted(*.ios, "I/O"))]
    Split {
        /// How many I/Os.
        ios: u64,
        /// Into how many parts altogether.
        parts: u64,
        /// The limit, KiB.
        max_sectors_kb: u64,
    },
    /// Tasks found all requests (`nr_requests`) allocated and waited.
    #[error("nr_requests was exhausted {times} times; {ios} I/Os were submitted late because of this")]
    WaitedForAllocation {
        /// How often a task went to sleep for it.
        times: u64,
        /// I/Os behind such a wait, that of the waiting task and those queued up behind it.
        ios: u64,
    },
    /// A controller beside the elevator let I/Os of a cgroup wait.
    #[error("{controller} delayed {} of {cgroup}, by {:.3} ms on \
     average", counted(*.bios, "bio"), *.wait_ns as f64 / 1e6 / *.bios as f64)]
    Throttled {
        /// The controller.
        controller: String,
        /// Whose.
        cgroup: String,
        /// How many bios waited.
        bios: u64,
        /// How long altogether, ns.
        wait_ns: u64,
    },
    /// Controllers beside the elevator let the processes of a cgroup rest at the end of their system calls.
    #[error("io.latency or io.cost delayed processes of {cgroup} {} at the end of a system call, by {:.3} ms on \
     average", counted(*.rests, "time"), *.rest_ns as f64 / 1e6 / *.rests as f64)]
    Rested {
        /// Whose.
        cgroup: String,
        /// How often one did.
        rests: u64,
        /// How long altogether, ns.
        rest_ns: u64,
    },
    /// Closed loop, and the recording does not say when requests completed: one at a time per process was assumed.
    #[error(
        "{ios} recorded I/Os have no completion; the closed loop assumes that each process waited for its previous I/O"
    )]
    CompletionsUnknown {
        /// How many I/Os.
        ios: u64,
    },
    /// The limit of the plan ended the workload before its end.
    #[error("the limit of I/Os stopped the run after {ios} I/Os, at {at_ns} ns")]
    Limited {
        /// I/Os submitted.
        ios: u64,
        /// When, ns.
        at_ns: u64,
    },
    /// Buffered jobs, where no machine was given.
    #[error(
        "{} buffered I/O, but there is no machine model with a page cache: every I/O goes to the device, and writes \
         go as writeback; set direct=1, or give --machine", jobs_do(*.jobs)
    )]
    NoPageCache {
        /// How many jobs.
        jobs: u64,
    },
    /// Buffered jobs of an asynchronous engine.
    #[error(
        "{} buffered I/O by an asynchronous engine: I/Os run one after another at any iodepth, as with \
         libaio", jobs_do(*.jobs)
    )]
    BufferedOneByOne {
        /// How many jobs.
        jobs: u64,
    },
    /// `sync_file_range` of buffered jobs.
    #[error("sync_file_range of {jobs} buffered job(s) is not modelled and caused no writes")]
    NoRangeSync {
        /// How many jobs.
        jobs: u64,
    },
    /// `write_barrier` on a machine with a page cache.
    #[error(
        "{ios} writes were requested as barriers (write_barrier), but run as plain writes on a machine with a \
     page cache"
    )]
    NoBarriers {
        /// How many I/Os.
        ios: u64,
    },
    /// `cmdprio_*`.
    #[error(
        "{ios} I/Os set their own priority (cmdprio), but the schedulers of Linux 4.19 use the priority of the process"
    )]
    PriorityPerIo {
        /// How many I/Os.
        ios: u64,
    },
    /// I/Os that are no whole sectors.
    #[error("{ios} I/Os do not begin and end at multiples of 512 bytes; iosched extended them to whole sectors")]
    PartSectors {
        /// How many I/Os.
        ios: u64,
    },
    /// A job's own limit ended it.
    #[error("job {job} ended early, because it violated rate_min, rate_iops_min, max_latency or latency_target")]
    JobFailed {
        /// Its name.
        job: String,
    },
    /// Part of the workload that the real executor cannot do here.
    #[error("{what}: not supported here: {why}")]
    NotCarriedOut {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
    /// I/Os that are no whole blocks of a real device or file system.
    #[error(
        "{} do not begin and end at multiples of {block_bytes} bytes; iosched extended them to whole \
         blocks", counted(*.ios, "I/O")
    )]
    PartBlocks {
        /// How many.
        ios: u64,
        /// What direct I/O needs there, bytes.
        block_bytes: u64,
    },
    /// A file system without direct I/O.
    #[error("{directory}: its file system does not support direct I/O, so the workload goes through the page cache")]
    NotDirect {
        /// The directory.
        directory: String,
    },
    /// Tasks that do not wait for their writes, on a real device.
    #[error(
        "{} without waiting for it: these writes went to the page cache, and the kernel's writeback sent them to \
         the device later", tasks_write(*.tasks)
    )]
    ThroughPageCache {
        /// How many tasks.
        tasks: u64,
    },
    /// Recorded writes that nobody waited for, on a real device.
    #[error("{} that no process waited for: iosched replays them as direct I/O, which the scheduler treats as \
     sync", counted(*.ios, "recorded write"))]
    AsyncAsDirect {
        /// How many.
        ios: u64,
    },
    /// The executor did not keep the workload's times.
    #[error(
        "I/Os were submitted late, by {p50_us:.0} µs (median), {p99_us:.0} µs (p99) and {max_us:.0} µs (maximum); \
         this is long compared with their mean latency of {latency_us:.0} µs"
    )]
    Late {
        /// Half of them were late by less, µs.
        p50_us: f64,
        /// 99 % of them, µs.
        p99_us: f64,
        /// All of them, µs.
        max_us: f64,
        /// Their mean latency, µs.
        latency_us: f64,
    },
    /// Records of the trace that could not be used.
    #[error("{requests} records of the trace have impossible positions or times and were left out")]
    LeftOut {
        /// How many.
        requests: u64,
    },
}

impl Note {
    /// What there is to say of a trace that reaches to `recorded_sectors`, put on a device of `capacity_sectors`.
    #[must_use]
    pub fn of_fit(fit: Fit, recorded_sectors: u64, capacity_sectors: u64) -> Option<Self> {
        match fit {
            Fit::AsIs => None,
            Fit::GapsShrunk { gap_percent } => {
                Some(Self::GapsShrunk { recorded_sectors, capacity_sectors, gap_percent })
            }
            Fit::Wrapped { touched_sectors } => Some(Self::Wrapped { touched_sectors, capacity_sectors }),
        }
    }
}

/// So many jobs do something.
fn jobs_do(jobs: u64) -> String {
    format!("{} do{}", counted(jobs, "job"), if jobs == 1 { "es" } else { "" })
}

/// So many tasks write.
fn tasks_write(tasks: u64) -> String {
    format!("{} write{}", counted(tasks, "task"), if tasks == 1 { "s" } else { "" })
}

/// A number and what is counted.
fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
