//! Counters of one thread during a run. Threads share nothing until the end.

use std::sync::{Arc, OnceLock};

use iosched_workload::outcome::{Histogram, IoKind, IoTimeline, Latencies, RunResult, TaskResult};

use crate::block::{BlockDevice, Stat};

/// Statistics of a device from the kernel when counting began. The first thread that counts an I/O
/// reads these statistics.
#[derive(Debug, Default)]
pub(super) struct Watch {
    device: Option<BlockDevice>,
    before: OnceLock<Option<Stat>>,
}

impl Watch {
    pub(super) fn of(device: Option<&BlockDevice>) -> Self {
        Self { device: device.cloned(), before: OnceLock::new() }
    }

    /// Reads the statistics, unless counting has already begun.
    pub(super) fn begin(&self) {
        self.before.get_or_init(|| self.device.as_ref().and_then(BlockDevice::stat));
    }

    /// Returns the statistics since counting began. Returns `None` if they are not known.
    pub(super) fn end(&self) -> Option<Stat> {
        let before = self.before.get().copied().flatten()?;
        Some(self.device.as_ref()?.stat()?.since(&before))
    }
}

/// Results of a thread.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    /// Results of the thread's tasks, in the order of the workload.
    pub(super) tasks: Vec<TaskResult>,
    latency: Latencies,
    timeline: IoTimeline,
    lateness: Histogram,
    /// Time from which completions count, ns.
    pub(super) counted_from_ns: u64,
    watch: Arc<Watch>,
    /// Whether at least one I/O has counted.
    counts: bool,
    finished_ns: u64,
    /// Number of submitted I/Os, including those that do not count.
    pub(super) submitted: u64,
}

impl Recorder {
    pub(super) fn new(tasks: Vec<TaskResult>, counted_from_ns: u64, watch: &Arc<Watch>) -> Self {
        Self { tasks, counted_from_ns, watch: Arc::clone(watch), ..Self::default() }
    }

    #[inline]
    pub(super) fn submitted(&mut self, task: usize, now_ns: u64) {
        self.submitted += 1;
        let first = &mut self.tasks[task].first_submit_ns;
        if first.is_none() {
            *first = Some(now_ns);
        }
    }

    /// Records the lateness of an I/O that was due at `due_ns` and is submitted at `now_ns`.
    #[inline]
    pub(super) fn was_due(&mut self, due_ns: u64, now_ns: u64) {
        if now_ns >= self.counted_from_ns {
            self.lateness.record(now_ns.saturating_sub(due_ns));
        }
    }

    #[inline]
    pub(super) fn completed(&mut self, task: usize, kind: IoKind, bytes: u64, (submitted_ns, now_ns): (u64, u64)) {
        self.finished_ns = now_ns;
        if now_ns < self.counted_from_ns {
            return;
        }
        if !std::mem::replace(&mut self.counts, true) {
            self.watch.begin();
        }
        let latency_ns = now_ns - submitted_ns;
        let result = &mut self.tasks[task];
        let histogram = match kind {
            IoKind::Read => {
                result.bytes_read += bytes;
                &mut self.latency.reads
            }
            IoKind::WriteSync => {
                result.bytes_written += bytes;
                &mut self.latency.writes_sync
            }
            IoKind::WriteAsync => {
                result.bytes_written += bytes;
                &mut self.latency.writes_async
            }
            IoKind::Other => &mut self.latency.others,
        };
        histogram.record(latency_ns);
        result.latency.record(latency_ns);
        result.last_completion_ns = Some(now_ns);
        result.progress.completed(now_ns);
        self.timeline.completed(now_ns, kind, bytes, latency_ns);
    }

    /// Adds the results to a run's result. Tasks are appended.
    pub(super) fn add_to(self, result: &mut RunResult) {
        for mut task in self.tasks {
            task.ios = task.latency.count();
            result.ios += task.ios;
            result.bytes_read += task.bytes_read;
            result.bytes_written += task.bytes_written;
            result.tasks.push(task);
        }
        result.latency.merge(&self.latency);
        result.finished_ns = result.finished_ns.max(self.finished_ns);
        result.events += self.submitted;
        if !self.timeline.is_empty() {
            result.io_timeline.get_or_insert_default().merge(self.timeline);
        }
        if !self.lateness.is_empty() {
            result.lateness.get_or_insert_default().merge(&self.lateness);
        }
    }
}
