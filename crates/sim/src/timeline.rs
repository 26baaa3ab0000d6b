//! What happened when: an observer that keeps a picture of bounded size.
//!
//! Time is cut into bins. When a run outgrows them, neighbouring bins are joined and become twice as wide.

use iosched::{Decision, Op, SECTOR_BYTES};
use serde::{Deserialize, Serialize};

use crate::observer::{Completed, Dispatched, Observer};

/// Bins kept at most; a power of two.
const BINS_MAX: usize = 1024;
/// Width of a bin at the start, ns: with [`BINS_MAX`] bins, the first doubling comes after a second.
const WIDTH_START_NS: u64 = 1_000_000;
/// Tasks with bins of their own; those after share the last [`TaskBins`].
const TASKS_MAX: usize = 64;
/// Spans kept at most; when there are more, short ones are dropped.
const SPANS_MAX: usize = 8192;

/// Throughput and depth in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Bytes of reads completed.
    pub bytes_read: u64,
    /// Bytes of writes completed.
    pub bytes_written: u64,
    /// I/Os completed.
    pub ios: u64,
    /// Sum of their latencies, ns.
    pub latency_sum_ns: u64,
    /// Longest of them, ns.
    pub latency_max_ns: u64,
    /// Requests dispatched.
    pub dispatched: u64,
    /// Requests waiting in the queue, summed over dispatches: divide by `dispatched`.
    pub waiting_sum: u64,
    /// Most requests waiting at a dispatch.
    pub waiting_max: u64,
    /// Requests in the device, summed over dispatches.
    pub in_device_sum: u64,
}

/// Where requests were dispatched to in one bin, in sectors; all 0 if nothing but flushes was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadBin {
    /// Smallest first sector.
    pub min: u64,
    /// Largest first sector.
    pub max: u64,
    /// The latest first sector.
    pub last: u64,
}

/// Bytes per bin of one task, or of all tasks beyond the first 63 together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBins {
    /// Number of the task in [`RunResult::tasks`](crate::RunResult::tasks); `None` for all the others together.
    pub task: Option<usize>,
    /// Bytes completed per bin; shorter than the timeline if it ended early.
    pub bytes: Vec<u64>,
}

/// What an elevator did over a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// A queue was active: its turn.
    Active {
        /// The process that founded the queue.
        pid: u32,
        /// Whether the queue holds sync requests.
        sync: bool,
    },
    /// The device was kept waiting for the active queue's next request.
    Idle {
        /// Whether it came in time.
        paid: bool,
    },
    /// A queue took another's place: a moment.
    Preempt {
        /// Founder of the queue that came.
        pid: u32,
    },
}

/// A time over which an elevator did one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// From, ns.
    pub from_ns: u64,
    /// To, ns.
    pub to_ns: u64,
    /// What.
    #[serde(flatten)]
    pub kind: SpanKind,
}

/// A picture of a run, at most a few hundred KiB however long it takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Width of a bin, ns.
    pub bin_ns: u64,
    /// Throughput, latency, depth.
    pub bins: Vec<Bin>,
    /// Where the device was sent; as long as `bins`.
    pub head: Vec<HeadBin>,
    /// Bytes of tasks.
    pub tasks: Vec<TaskBins>,
    /// Turns, idling and preemptions, in the order they ended.
    pub spans: Vec<Span>,
    /// Spans shorter than this are not in `spans`, ns; 0 if all are. Preemptions are dropped evenly.
    pub spans_shorter_dropped_ns: u64,
    #[serde(skip)]
    active: Option<(u64, u32, bool)>,
    #[serde(skip)]
    idle: Option<u64>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self {
            bin_ns: WIDTH_START_NS,
            bins: Vec::new(),
            head: Vec::new(),
            tasks: Vec::new(),
            spans: Vec::new(),
            spans_shorter_dropped_ns: 0,
            active: None,
            idle: None,
        }
    }
}

fn halve<T: Copy>(bins: &mut Vec<T>, join: impl Fn(T, T) -> T) {
    let joined = bins.chunks(2).map(|pair| if let [a, b] = *pair { join(a, b) } else { pair[0] }).collect();
    *bins = joined;
}

impl Bin {
    fn join(self, other: Self) -> Self {
        Self {
            bytes_read: self.bytes_read + other.bytes_read,
            bytes_written: self.bytes_written + other.bytes_written,
            ios: self.ios + other.ios,
            latency_sum_ns: self.latency_sum_ns + other.latency_sum_ns,
            latency_max_ns: self.latency_max_ns.max(other.latency_max_ns),
            dispatched: self.dispatched + other.dispatched,
            waiting_sum: self.waiting_sum + other.waiting_sum,
            waiting_max: self.waiting_max.max(other.waiting_max),
            in_device_sum: self.in_device_sum + other.in_device_sum,
        }
    }
}

impl HeadBin {
    fn join(self, later: Self) -> Self {
        if self == Self::default() {
            return later;
        }
        if later == Self::default() {
            return self;
        }
        Self { min: self.min.min(later.min), max: self.max.max(later.max), last: later.last }
    }
}

impl Timeline {
    /// The bin of a moment; makes room for it.
    fn bin(&mut self, now_ns: u64) -> usize {
        while now_ns / self.bin_ns >= BINS_MAX as u64 {
            self.widen();
        }
        let index = (now_ns / self.bin_ns) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, Bin::default());
            self.head.resize(index + 1, HeadBin::default());
        }
        index
    }

    fn widen(&mut self) {
        halve(&mut self.head, HeadBin::join);
        halve(&mut self.bins, Bin::join);
        for task in &mut self.tasks {
            halve(&mut task.bytes, |a, b| a + b);
        }
        self.bin_ns *= 2;
    }

    fn span(&mut self, from_ns: u64, to_ns: u64, kind: SpanKind) {
        let moment = matches!(kind, SpanKind::Preempt { .. });
        if !moment && to_ns - from_ns < self.spans_shorter_dropped_ns {
            return;
        }
        self.spans.push(Span { from_ns, to_ns, kind });
        if self.spans.len() >= SPANS_MAX {
            self.thin_spans();
        }
    }

    /// Drops about half of the spans: the short ones, and every second moment.
    fn thin_spans(&mut self) {
        let mut lengths: Vec<u64> = self.spans.iter().map(|span| span.to_ns - span.from_ns).collect();
        lengths.sort_unstable();
        let keep_ns = lengths[lengths.len() / 2].max(self.spans_shorter_dropped_ns + 1);
        self.spans_shorter_dropped_ns = keep_ns;
        let mut moments = 0;
        self.spans.retain(|span| match span.kind {
            SpanKind::Preempt { .. } => {
                moments += 1;
                moments % 2 == 1
            }
            _ => span.to_ns - span.from_ns >= keep_ns,
        });
    }

    fn end_active(&mut self, now_ns: u64) {
        if let Some((from_ns, pid, sync)) = self.active.take() {
            self.span(from_ns, now_ns, SpanKind::Active { pid, sync });
        }
    }

    fn end_idle(&mut self, now_ns: u64, paid: bool) {
        if let Some(from_ns) = self.idle.take() {
            self.span(from_ns, now_ns, SpanKind::Idle { paid });
        }
    }
}

impl Observer for Timeline {
    const DECISIONS: bool = true;

    fn begin(&mut self, tasks: usize, _depth: u32) {
        *self = Self::default();
        let own = if tasks > TASKS_MAX { TASKS_MAX - 1 } else { tasks };
        self.tasks = (0..own).map(|task| TaskBins { task: Some(task), bytes: Vec::new() }).collect();
        if own < tasks {
            self.tasks.push(TaskBins::default());
        }
    }

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        match *decision {
            Decision::Active { queue, .. } => {
                self.end_active(now_ns);
                self.active = Some((now_ns, queue.pid, queue.sync));
            }
            Decision::Expire { .. } => {
                self.end_idle(now_ns, false);
                self.end_active(now_ns);
            }
            Decision::Preempt { queue } => self.span(now_ns, now_ns, SpanKind::Preempt { pid: queue.pid }),
            Decision::IdleArm { .. } => {
                self.end_idle(now_ns, true);
                self.idle = Some(now_ns);
            }
            Decision::IdleCancel => self.end_idle(now_ns, true),
            Decision::IdleFire => self.end_idle(now_ns, false),
            _ => {}
        }
    }

    fn dispatched(&mut self, now_ns: u64, request: &Dispatched, waiting: usize, in_device: u32) {
        let index = self.bin(now_ns);
        let bin = &mut self.bins[index];
        if request.op != Op::Flush {
            let head = &mut self.head[index];
            let sector = request.sector;
            *head = head.join(HeadBin { min: sector, max: sector, last: sector });
        }
        bin.dispatched += 1;
        bin.waiting_sum += waiting as u64;
        bin.waiting_max = bin.waiting_max.max(waiting as u64);
        bin.in_device_sum += u64::from(in_device);
    }

    fn completed(&mut self, now_ns: u64, io: &Completed) {
        let index = self.bin(now_ns);
        let bin = &mut self.bins[index];
        let bytes = match io.op {
            Op::Read | Op::Write => u64::from(io.nr_sectors) * SECTOR_BYTES,
            _ => 0,
        };
        if io.op.is_write() {
            bin.bytes_written += bytes;
        } else {
            bin.bytes_read += bytes;
        }
        bin.ios += 1;
        bin.latency_sum_ns += io.latency_ns;
        bin.latency_max_ns = bin.latency_max_ns.max(io.latency_ns);
        let last = self.tasks.len() - 1;
        let task = &mut self.tasks[io.task.min(last)].bytes;
        if task.len() <= index {
            task.resize(index + 1, 0);
        }
        task[index] += bytes;
    }

    fn end(&mut self, finished_ns: u64) {
        self.end_idle(finished_ns, false);
        self.end_active(finished_ns);
    }
}
