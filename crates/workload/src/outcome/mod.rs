//! Results of a run of a workload: plain data, the same for simulations and real devices.

mod contention;
mod job;
mod timeline;

use iosched_trace::Fit;
use serde::{Deserialize, Serialize};

pub use contention::{BUSY_NS, BUSY_SHARE, Contended, Progress};
pub use iosched_numbers::Histogram;
pub use job::{DirectionResult, JobResult, SAMPLE_NS, Samples, SyncCalls, SyncKind};
pub(crate) use job::{batch_class, level_class};
pub use timeline::{IoBin, IoKind, IoTimeline, LatencyClasses, SizeClass};

/// Result of one run. All times are in ns since the start of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Time of the last completion, ns.
    pub finished_ns: u64,
    /// Number of completed I/Os, counted as tasks submitted them: before merging and splitting.
    pub ios: u64,
    /// Requests dispatched to the device, after merging and splitting, including flushes.
    pub requests_dispatched: u64,
    /// Bytes read by tasks.
    pub bytes_read: u64,
    /// Bytes written by tasks, without discards and zeroing.
    pub bytes_written: u64,
    /// Latencies from submission (before any wait for allocation) to completion.
    pub latency: Latencies,
    /// Results of each task or recorded process, in the order of the workload.
    pub tasks: Vec<TaskResult>,
    /// Time during which the device had at least one command, ns.
    pub device_busy_ns: u64,
    /// Whether the kernel reported nothing about a real device. The requests, the busy time and the
    /// statistics of the queue are then unknown.
    #[serde(default, skip_serializing_if = "is_false")]
    pub device_unwatched: bool,
    /// Statistics of the request queue.
    pub queue: QueueStat,
    /// Number of events that the engine handled.
    pub events: u64,
    /// Notes for readers of the results.
    pub notes: Vec<Note>,
    /// Results of each fio job, in the order of `tasks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobResult>,
    /// Report of an application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<crate::app::Report>,
    /// Latencies of all calls of an application that sync a file.
    #[serde(default, skip_serializing_if = "SyncCalls::is_empty")]
    pub sync_calls: SyncCalls,
    /// Time from which I/Os count, ns: after a warm-up, or after the `ramp_time` that all fio jobs
    /// have. The requests, the statistics of the queue and the busy time of the device also count
    /// from this time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub counted_from_ns: u64,
    /// Lateness of submissions on a real device, ns. This is the error of the code that executes
    /// the I/Os. Only I/Os with a given time count: I/Os of a replay, I/Os after a think time, and
    /// scheduled arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Histogram>,
    /// Completions over time on a real device. Simulated runs have them in their timeline.
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
    /// Returns the time that counts, ns: from the end of the warm-up to the last completion.
    #[must_use]
    pub const fn counted_ns(&self) -> u64 {
        self.finished_ns.saturating_sub(self.counted_from_ns)
    }

    /// Returns the time during which `tasks` of this run were active, ns: from the earliest start
    /// to the latest end. A job is active from the end of its ramp time to its end, as in fio. Any
    /// other task is active from its first submission to its last completion. Returns `None` if the
    /// tasks have fewer than two I/Os that count.
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

    /// Returns whether the run has results of I/Os. If only the duration of a command was measured,
    /// the run has no such results.
    #[must_use]
    pub const fn knows_ios(&self) -> bool {
        self.ios > 0 || !self.tasks.is_empty()
    }

    /// Returns the fraction of the counted time in which the device had work, 0 to 1. Returns
    /// `None` if it is unknown.
    #[must_use]
    pub fn utilisation(&self) -> Option<f64> {
        let counted_ns = self.counted_ns();
        let is_known = counted_ns > 0 && !self.device_unwatched;
        is_known.then(|| (self.device_busy_ns as f64 / counted_ns as f64).min(1.0))
    }

    /// Removes the syncs of jobs from the results of their tasks, as fio does. Syncs have separate
    /// latencies.
    pub fn leave_syncs_out(&mut self) {
        let pairs = self.tasks.iter_mut().zip(&self.jobs);
        pairs.filter(|(_, job)| !job.sync.is_empty()).for_each(|(task, job)| task.count_as(job));
    }

    /// Returns the bytes moved per second of the time that counts.
    #[must_use]
    pub fn throughput_bytes_per_s(&self) -> f64 {
        let bytes = (self.bytes_read + self.bytes_written) as f64;
        let counted_ns = self.counted_ns();
        if counted_ns == 0 { 0.0 } else { bytes * 1e9 / counted_ns as f64 }
    }
}

/// Latencies by kind. Every I/O is in exactly one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// Reads; all are sync.
    pub reads: Histogram,
    /// Writes that a process waits for.
    pub writes_sync: Histogram,
    /// Writes that no process waits for.
    pub writes_async: Histogram,
    /// Flushes, discards and zeroing.
    pub others: Histogram,
}

impl Latencies {
    /// Returns the latencies of reads and sync writes together.
    #[must_use]
    pub fn sync(&self) -> Histogram {
        let mut all = self.reads.clone();
        all.merge(&self.writes_sync);
        all
    }

    /// Returns the latencies of sync and async writes together.
    #[must_use]
    pub fn writes(&self) -> Histogram {
        let mut all = self.writes_sync.clone();
        all.merge(&self.writes_async);
        all
    }

    /// Returns the latencies of all kinds in one histogram.
    #[must_use]
    pub fn all(&self) -> Histogram {
        let mut all = self.sync();
        all.merge(&self.writes_async);
        all.merge(&self.others);
        all
    }

    /// Adds the latencies of another run.
    pub fn merge(&mut self, other: &Self) {
        self.reads.merge(&other.reads);
        self.writes_sync.merge(&other.writes_sync);
        self.writes_async.merge(&other.writes_async);
        self.others.merge(&other.others);
    }
}

/// Results of one task of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Process id.
    pub pid: u32,
    /// Name of the task; empty if the workload has none.
    pub name: String,
    /// Ioprio of the task at the start, such as `be/4`.
    pub ioprio: String,
    /// Initial cgroup of the task, as a path with slashes; empty for the root.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cgroup: String,
    /// I/Os completed.
    pub ios: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Latencies of all I/Os of the task.
    pub latency: Histogram,
    /// Time of the first submission, ns; `None` if there was none.
    pub first_submit_ns: Option<u64>,
    /// Time of the last completion, ns; `None` if there was none.
    pub last_completion_ns: Option<u64>,
    /// Work of this task before the first busy task of the run ended. `None` if this task was not
    /// busy, or if no busy task ended before the end of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contended: Option<Contended>,
    /// Progress during the run; empty after [`RunResult::find_contention`].
    #[serde(skip)]
    pub progress: Progress,
}

impl TaskResult {
    /// Copies the counts and latencies of the job's reads, writes and discards into the task's
    /// result. Leaves out syncs, as fio does.
    pub fn count_as(&mut self, job: &JobResult) {
        self.latency = job.read.latency.clone();
        self.latency.merge(&job.write.latency);
        self.latency.merge(&job.trim.latency);
        self.ios = self.latency.count();
        (self.bytes_read, self.bytes_written) = (job.read.bytes, job.write.bytes);
    }
}

/// A copy of [`iosched::Stat`] that can be stored. Times are in ns.
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
    /// Time during which any request was in flight, ns.
    pub busy_ns: u64,
    /// Sum of the times in flight of all requests, ns.
    pub weighted_ns: u64,
}

impl QueueStat {
    /// Returns the counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let group = |now: &QueueStatGroup, earlier: &QueueStatGroup| QueueStatGroup {
            ios: now.ios.saturating_sub(earlier.ios),
            merges: now.merges.saturating_sub(earlier.merges),
            sectors: now.sectors.saturating_sub(earlier.sectors),
            time_ns: now.time_ns.saturating_sub(earlier.time_ns),
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
    /// Bios that were merged into requests, and requests that were merged into other requests.
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

/// A note for readers of the results. `Display` writes it as a sentence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "note", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// The recorded disk is larger than the device, so iosched shrank unused gaps. Used regions
    /// keep their order, their size and their neighbours. Seeks are shorter.
    #[error(
        "the recorded device has {recorded_sectors} sectors, but this device has only {capacity_sectors} sectors. \
         iosched shrank the areas without I/O to {gap_percent:.0} % of their size"
    )]
    GapsShrunk {
        /// Sectors that the trace spans.
        recorded_sectors: u64,
        /// Sectors of the device.
        capacity_sectors: u64,
        /// Remaining share of each gap, per cent.
        gap_percent: f64,
    },
    /// The trace uses more sectors than the device has. Positions were taken modulo the capacity,
    /// so distant regions of the recording overlap.
    #[error(
        "the trace touches {touched_sectors} sectors, but the device has only {capacity_sectors} sectors. iosched \
         wraps positions around, so distances differ from the recording"
    )]
    Wrapped {
        /// Sectors that the trace uses.
        touched_sectors: u64,
        /// Sectors of the device.
        capacity_sectors: u64,
    },
    /// The pattern of a task went past the end of the device and continued at its start.
    #[error(
        "{ios} I/Os were beyond the end of the device; iosched moved each of these I/Os to its position modulo the \
         number of sectors ({capacity_sectors})"
    )]
    PastEnd {
        /// Number of I/Os.
        ios: u64,
        /// Sectors of the device.
        capacity_sectors: u64,
    },
    /// I/Os longer than the queue's `max_sectors_kb` were sent in parts.
    #[error("iosched split {} longer than max_sectors_kb ({max_sectors_kb} KiB) into {parts} parts", counted(*.ios, "I/O"))]
    Split {
        /// Number of I/Os.
        ios: u64,
        /// Number of parts of all these I/Os.
        parts: u64,
        /// Limit of the queue, KiB.
        max_sectors_kb: u64,
    },
    /// Tasks waited because all requests (`nr_requests`) were allocated.
    #[error("{times} times, all requests of the queue (nr_requests) were in use, so {ios} I/Os were submitted late")]
    WaitedForAllocation {
        /// Number of times that a task slept for this reason.
        times: u64,
        /// Number of I/Os that were delayed: the I/O of the waiting task, and the I/Os that were
        /// queued behind this I/O.
        ios: u64,
    },
    /// A processor of the modelled host was busy most of the time, so the host limits the rate.
    #[error(
        "a processor of the modelled host was busy {percent} % of the time, so the host limits the rate ([host] in \
         the profile, {})", counted(u64::from(*.cores), "processor")
    )]
    ProcessorBusy {
        /// Share of the run in which the busiest processor worked, per cent.
        percent: u32,
        /// Number of processors of the host.
        cores: u32,
    },
    /// A controller delayed I/Os of a cgroup.
    #[error("{controller} delayed {} of {cgroup}, by {:.3} ms on \
     average", counted(*.bios, "bio"), *.wait_ns as f64 / 1e6 / *.bios as f64)]
    Throttled {
        /// Name of the controller.
        controller: String,
        /// Name of the cgroup.
        cgroup: String,
        /// Number of bios that waited.
        bios: u64,
        /// Sum of the waits, ns.
        wait_ns: u64,
    },
    /// Controllers delayed processes of a cgroup at the end of their system calls.
    #[error("io.latency or io.cost delayed processes of {cgroup} {} at the end of a system call, by {:.3} ms on \
     average", counted(*.rests, "time"), *.rest_ns as f64 / 1e6 / *.rests as f64)]
    Rested {
        /// Name of the cgroup.
        cgroup: String,
        /// Number of delays.
        rests: u64,
        /// Sum of the delays, ns.
        rest_ns: u64,
    },
    /// The trace of a closed replay lacks completions. The replay then assumes one I/O at a time
    /// per process.
    #[error(
        "{ios} recorded I/Os have no completion; for these I/Os, the closed replay assumes that each process waited \
         for its previous I/O"
    )]
    CompletionsUnknown {
        /// Number of I/Os.
        ios: u64,
    },
    /// The limit of I/Os ended the workload early.
    #[error("the run stopped at its limit of {ios} I/Os, after {at_ns} ns")]
    Limited {
        /// Number of I/Os submitted.
        ios: u64,
        /// Time of the end, ns.
        at_ns: u64,
    },
    /// Jobs do buffered I/O, but there is no machine model.
    #[error(
        "{} buffered I/O, but there is no machine model with a page cache. Every I/O goes to the device, and iosched \
         sends writes as writeback. Set direct=1, or give --machine", jobs_do(*.jobs)
    )]
    NoPageCache {
        /// Number of jobs.
        jobs: u64,
    },
    /// Jobs do buffered I/O with an asynchronous engine.
    #[error(
        "{} buffered I/O with an asynchronous engine. As with libaio, such I/Os run one after another, even if \
         iodepth is above 1", jobs_do(*.jobs)
    )]
    BufferedOneByOne {
        /// Number of jobs.
        jobs: u64,
    },
    /// Buffered jobs use `sync_file_range`.
    #[error(
        "{jobs} buffered job(s) called sync_file_range, which iosched does not model; these calls caused no writes"
    )]
    NoRangeSync {
        /// Number of jobs.
        jobs: u64,
    },
    /// `write_barrier` has no effect on a machine with a page cache.
    #[error(
        "{ios} writes of the job are barriers (write_barrier). On a machine with a page cache, iosched runs these \
         writes without barriers"
    )]
    NoBarriers {
        /// Number of I/Os.
        ios: u64,
    },
    /// Priorities of single I/Os (`cmdprio_*`) have no effect on these schedulers.
    #[error(
        "{ios} I/Os set their own priority (cmdprio), but the schedulers of Linux 4.19 use the priority of the process"
    )]
    PriorityPerIo {
        /// Number of I/Os.
        ios: u64,
    },
    /// I/Os do not begin and end at whole sectors.
    #[error("{ios} I/Os do not begin and end at multiples of 512 bytes; iosched extended these I/Os to whole sectors")]
    PartSectors {
        /// Number of I/Os.
        ios: u64,
    },
    /// A job ended because it violated one of its limits.
    #[error("job {job} ended early, because it violated rate_min, rate_iops_min, max_latency or latency_target")]
    JobFailed {
        /// Name of the job.
        job: String,
    },
    /// The executor cannot run a part of the workload here.
    #[error("iosched left out a part of the workload: {what}. Reason: {why}")]
    NotCarriedOut {
        /// The part of the workload.
        what: String,
        /// The reason.
        why: String,
    },
    /// I/Os do not begin and end at whole blocks of a real device or file system.
    #[error(
        "{} do not begin and end at multiples of {block_bytes} bytes; iosched extended these I/Os to whole \
         blocks", counted(*.ios, "I/O")
    )]
    PartBlocks {
        /// Number of I/Os.
        ios: u64,
        /// Unit of direct I/O on this device or file system, bytes.
        block_bytes: u64,
    },
    /// The file system does not support direct I/O.
    #[error("the file system of {directory} does not support direct I/O, so the workload uses the page cache")]
    NotDirect {
        /// Directory of the file system.
        directory: String,
    },
    /// Tasks on a real device do not wait for their writes.
    #[error(
        "{} without waiting for the completion. These writes went to the page cache, and later the kernel's \
         writeback sent these writes to the device", tasks_write(*.tasks)
    )]
    ThroughPageCache {
        /// Number of tasks.
        tasks: u64,
    },
    /// Recorded async writes ran as direct I/O on a real device.
    #[error("in the trace, no process waited for {}. iosched replays these writes as direct I/O, so the scheduler \
         treats these writes as sync", counted(*.ios, "recorded write"))]
    AsyncAsDirect {
        /// Number of writes.
        ios: u64,
    },
    /// The executor submitted I/Os late.
    #[error(
        "iosched submitted I/Os late, by {p50_us:.0} µs (median), {p99_us:.0} µs (p99) and {max_us:.0} µs (maximum). \
         This is long compared with the mean latency of the I/Os, {latency_us:.0} µs"
    )]
    Late {
        /// Median lateness, µs.
        p50_us: f64,
        /// 99th percentile of the lateness, µs.
        p99_us: f64,
        /// Largest lateness, µs.
        max_us: f64,
        /// Mean latency of the I/Os, µs.
        latency_us: f64,
    },
    /// Records of the trace were left out because they are not valid.
    #[error("iosched left out {requests} records of the trace, because their positions or times are impossible")]
    LeftOut {
        /// Number of records.
        requests: u64,
    },
}

impl Note {
    /// Returns the note on a trace that spans `recorded_sectors` and runs on a device of
    /// `capacity_sectors`. `None` if the trace fits.
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

/// Formats a number of jobs with the verb "do".
fn jobs_do(jobs: u64) -> String {
    format!("{} do{}", counted(jobs, "job"), if jobs == 1 { "es" } else { "" })
}

/// Formats a number of tasks with the verb "write".
fn tasks_write(tasks: u64) -> String {
    format!("{} write{}", counted(tasks, "task"), if tasks == 1 { "s" } else { "" })
}

/// Formats a number with its noun.
fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
