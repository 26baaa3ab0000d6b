//! A timeline of a run: an observer whose result has a limited size.
//!
//! Time is divided into bins of equal width. When a run needs more bins than the maximum, each pair
//! of neighbouring bins becomes one bin, and the width doubles.

use iosched::{Decision, Op, SECTOR_BYTES};
use iosched_workload::outcome::{IoKind, IoTimeline};
use serde::{Deserialize, Serialize};

use crate::observer::{Completed, Dispatched, Observer};

/// Largest number of bins, a power of two.
const BINS_MAX: usize = 1024;
/// Width of a bin at the start, ns. With [`BINS_MAX`] bins, the width doubles for the first time
/// after about a second.
const WIDTH_START_NS: u64 = 1_000_000;
/// Largest number of [`TaskBins`]. The last one covers all tasks without separate bins.
const TASKS_MAX: usize = 64;
/// Number of spans at which short spans are dropped. The totals still count dropped spans.
const SPANS_MAX: usize = 8192;
/// Largest number of queues with separate totals. All other queues share one total.
const TOTALS_MAX: usize = 1024;

/// Throughput and depth in one bin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// Bytes of completed reads.
    pub bytes_read: u64,
    /// Bytes of completed writes.
    pub bytes_written: u64,
    /// Number of completed I/Os.
    pub ios: u64,
    /// Sum of the latencies of these I/Os, ns.
    pub latency_sum_ns: u64,
    /// Largest latency of these I/Os, ns.
    pub latency_max_ns: u64,
    /// Number of dispatched requests.
    pub dispatched: u64,
    /// Sum over all dispatches of the number of requests that wait in the queue. Divide by
    /// `dispatched` for the mean.
    pub waiting_sum: u64,
    /// Largest number of requests that wait in the queue at a dispatch.
    pub waiting_max: u64,
    /// Sum over all dispatches of the number of requests in the device.
    pub in_device_sum: u64,
}

/// Positions of dispatched requests in one bin, in sectors. All are 0 if only
/// flushes were dispatched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeadBin {
    /// Smallest first sector.
    pub min: u64,
    /// Largest first sector.
    pub max: u64,
    /// Last first sector.
    pub last: u64,
}

/// Bytes per bin of one task. After the first 63 tasks, all other tasks share one list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskBins {
    /// Index of the task in [`RunResult::tasks`](crate::RunResult::tasks), or `None` for all other
    /// tasks together.
    pub task: Option<usize>,
    /// Completed bytes per bin. The list is shorter than the timeline if the task ended early.
    pub bytes: Vec<u64>,
}

/// Activity of a scheduler over a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    /// A queue was active: it had its turn.
    Active {
        /// Id of the process whose request created the queue.
        pid: u32,
        /// Whether the queue holds sync requests.
        sync: bool,
    },
    /// The scheduler idled: the device waited for the active queue's next request.
    Idle {
        /// Whether the expected request came in time.
        paid: bool,
        /// Whether another queue preempted the queue before the expected request came.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        preempted: bool,
    },
    /// A queue preempted another one. The span has no length.
    Preempt {
        /// Id of the process whose request created the preempting queue.
        pid: u32,
    },
}

/// An interval in which a scheduler did only one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Start of the span, ns.
    pub from_ns: u64,
    /// End of the span, ns.
    pub to_ns: u64,
    /// Activity of the scheduler.
    #[serde(flatten)]
    pub kind: SpanKind,
}

/// Totals of a queue for the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueTotal {
    /// Id of the process that created the queue, and whether the queue holds sync requests. `None`
    /// stands for all queues without a separate total.
    pub queue: Option<(u32, bool)>,
    /// Number of times that the queue was active.
    pub turns: u64,
    /// Time in which the queue was active, ns.
    pub active_ns: u64,
    /// Idle time for requests of the queue that came in time, ns.
    pub idle_paid_ns: u64,
    /// Idle time for requests of the queue that did not come in time, ns.
    pub idle_vain_ns: u64,
    /// Idle time until another queue preempted the queue, ns.
    pub idle_preempted_ns: u64,
    /// Number of times that the queue preempted another queue.
    pub preemptions: u64,
}

/// A timeline of a run. It has at most a few hundred KiB, however long the run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// Width of a bin, ns.
    pub bin_ns: u64,
    /// Throughput, latency and depth.
    pub bins: Vec<Bin>,
    /// Positions of dispatched requests. This list is as long as `bins`.
    pub head: Vec<HeadBin>,
    /// Bytes of tasks.
    pub tasks: Vec<TaskBins>,
    /// Turns, idling and preemptions, in the order in which they ended.
    pub spans: Vec<Span>,
    /// Limit of length: shorter spans were dropped, ns. It is 0 if no span was dropped. Preemptions
    /// have no length, so each reduction drops every second preemption instead.
    pub spans_shorter_dropped_ns: u64,
    /// Totals of each queue, sorted by queue. They include dropped spans. Empty in timelines of
    /// earlier versions, and for schedulers whose queues are not active in turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<QueueTotal>,
    /// I/Os from the view of the submitting process. Empty in timelines of earlier versions. A run
    /// on a real device has only this part of a timeline.
    #[serde(default, skip_serializing_if = "IoTimeline::is_empty")]
    pub io: IoTimeline,
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
            totals: Vec::new(),
            io: IoTimeline::default(),
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

impl From<IoTimeline> for Timeline {
    /// Creates the timeline of a run without an observer of the queue.
    fn from(io: IoTimeline) -> Self {
        Self { io, ..Self::default() }
    }
}

impl Timeline {
    /// Returns the bin of a time, and makes room for it.
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

    /// Drops about half of the spans: the short ones, and every second preemption.
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

    /// Returns the total of a queue, or the common total if there are too many queues.
    fn total(&mut self, queue: (u32, bool)) -> &mut QueueTotal {
        let find = |queue| self.totals.binary_search_by_key(&queue, |total: &QueueTotal| total.queue);
        let (at, new) = match find(Some(queue)) {
            Ok(at) => (at, None),
            Err(at) if self.totals.len() < TOTALS_MAX => (at, Some(Some(queue))),
            Err(_) => match find(None) {
                Ok(at) => (at, None),
                Err(at) => (at, Some(None)),
            },
        };
        if let Some(queue) = new {
            self.totals.insert(at, QueueTotal { queue, ..QueueTotal::default() });
        }
        &mut self.totals[at]
    }

    fn end_active(&mut self, now_ns: u64) {
        if let Some((from_ns, pid, sync)) = self.active.take() {
            let total = self.total((pid, sync));
            total.turns += 1;
            total.active_ns += now_ns - from_ns;
            self.span(from_ns, now_ns, SpanKind::Active { pid, sync });
        }
    }

    fn end_idle(&mut self, now_ns: u64, paid: bool, preempted: bool) {
        let Some(from_ns) = self.idle.take() else { return };
        if let Some((_, pid, sync)) = self.active {
            let total = self.total((pid, sync));
            *match (paid, preempted) {
                (true, _) => &mut total.idle_paid_ns,
                (false, true) => &mut total.idle_preempted_ns,
                (false, false) => &mut total.idle_vain_ns,
            } += now_ns - from_ns;
        }
        self.span(from_ns, now_ns, SpanKind::Idle { paid, preempted });
    }
}

impl Observer for Timeline {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn begin(&mut self, tasks: usize, _depth: u32) {
        *self = Self::default();
        let separate = if tasks > TASKS_MAX { TASKS_MAX - 1 } else { tasks };
        self.tasks = (0..separate).map(|task| TaskBins { task: Some(task), bytes: Vec::new() }).collect();
        if separate < tasks {
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
                self.end_idle(now_ns, false, false);
                self.end_active(now_ns);
            }
            Decision::Preempt { queue } => {
                // Another queue preempted this queue before the expected request came.
                self.end_idle(now_ns, false, true);
                self.total((queue.pid, queue.sync)).preemptions += 1;
                self.span(now_ns, now_ns, SpanKind::Preempt { pid: queue.pid });
            }
            Decision::IdleArm { .. } => {
                self.end_idle(now_ns, true, false);
                self.idle = Some(now_ns);
            }
            Decision::IdleCancel => self.end_idle(now_ns, true, false),
            Decision::IdleFire => self.end_idle(now_ns, false, false),
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
        let kind = match (io.op, io.sync) {
            (Op::Read, _) => IoKind::Read,
            (Op::Write, true) => IoKind::WriteSync,
            (Op::Write, false) => IoKind::WriteAsync,
            _ => IoKind::Other,
        };
        self.io.completed(now_ns, kind, bytes, io.latency_ns);
        let last = self.tasks.len() - 1;
        let task = &mut self.tasks[io.task.min(last)].bytes;
        if task.len() <= index {
            task.resize(index + 1, 0);
        }
        task[index] += bytes;
    }

    fn end(&mut self, finished_ns: u64) {
        self.end_idle(finished_ns, false, false);
        self.end_active(finished_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched::{CgroupId, IoClass, QueueName, Workload};

    fn name(pid: u32) -> QueueName {
        QueueName { pid, sync: true }
    }

    fn active(pid: u32) -> Decision {
        let (class, workload, cgroup) = (IoClass::BestEffort, Workload::Sync, CgroupId::ROOT);
        Decision::Active { queue: name(pid), class, workload, cgroup }
    }

    fn of(decisions: impl IntoIterator<Item = (u64, Decision)>) -> Timeline {
        let mut timeline = Timeline::default();
        timeline.begin(1, 1);
        decisions.into_iter().for_each(|(at, decision)| timeline.decision(at, &decision));
        timeline
    }

    #[test]
    fn preempted_idling_counts_as_neither_paid_nor_vain() {
        let expired = Decision::Expire { queue: name(1), timed_out: true };
        let arm = Decision::IdleArm { wait_ns: 8 };
        let timeline = of([
            (0, active(1)),
            (10, arm),
            (13, Decision::IdleCancel),
            (20, arm),
            (25, Decision::Preempt { queue: name(2) }),
            (25, expired),
            (25, active(2)),
            (30, arm),
            (38, Decision::IdleFire),
            (38, Decision::Expire { queue: name(2), timed_out: false }),
        ]);
        let kept: Vec<SpanKind> = timeline.spans.iter().map(|span| span.kind).collect();
        assert_eq!(kept[1], SpanKind::Idle { paid: false, preempted: true });
        let one = QueueTotal {
            queue: Some((1, true)),
            turns: 1,
            active_ns: 25,
            idle_paid_ns: 3,
            idle_preempted_ns: 5,
            ..QueueTotal::default()
        };
        let two = QueueTotal {
            queue: Some((2, true)),
            turns: 1,
            active_ns: 13,
            idle_vain_ns: 8,
            preemptions: 1,
            ..QueueTotal::default()
        };
        assert_eq!(timeline.totals, [one, two]);
    }

    #[test]
    fn totals_include_turns_of_dropped_spans() {
        let turns = 3 * SPANS_MAX as u64;
        let turn = |i: u64| {
            let pid = i as u32 % (TOTALS_MAX as u32 + 10);
            // Short turns and long ones.
            let end = i * 100 + 1 + i % 50;
            [(i * 100, active(pid)), (end, Decision::Expire { queue: name(pid), timed_out: false })]
        };
        let timeline = of((0..turns).flat_map(turn));
        assert!(timeline.spans.len() < SPANS_MAX && timeline.spans_shorter_dropped_ns > 0);
        assert_eq!(timeline.totals.len(), TOTALS_MAX + 1);
        assert_eq!(timeline.totals[0].queue, None);
        assert_eq!(timeline.totals.iter().map(|total| total.turns).sum::<u64>(), turns);
        assert_eq!(
            timeline.totals.iter().map(|total| total.active_ns).sum::<u64>(),
            (0..turns).map(|i| 1 + i % 50).sum::<u64>()
        );
    }
}
