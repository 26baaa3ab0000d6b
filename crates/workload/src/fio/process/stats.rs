//! Metrics of a job, and the limits that end it.

use crate::fio::job::Job;
use crate::fio::value::{Direction, PerDirection};

use super::Slot;
use crate::outcome::{DirectionResult, JobResult, SAMPLE_NS, SyncKind, batch_class, level_class};

const SECOND_NS: f64 = 1e9;

/// I/Os and bytes since the start of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    ios: u64,
    bytes: u64,
}

/// Metrics of a job.
pub(super) struct Stats {
    result: JobResult,
    sample_ns: u64,
    sampled: PerDirection<Window>,
    cycle_ns: u64,
    cycle_length_ns: u64,
    cycled: PerDirection<Window>,
    bytes_min: PerDirection<Option<u64>>,
    ios_min: PerDirection<Option<u64>>,
    has_minimum: bool,
    latency_max_ns: PerDirection<Option<u64>>,
}

impl Stats {
    pub(super) fn new(job: &Job) -> Self {
        // A minimum for all directions applies only to the directions of the job.
        let of_job = |minimum: &PerDirection<Option<u64>>| {
            let mut minima = PerDirection::default();
            job.mode.directions().iter().for_each(|&direction| *minima.of_mut(direction) = *minimum.of(direction));
            minima
        };
        let (bytes_min, ios_min) = (of_job(&job.rate_min_bytes_per_s), of_job(&job.rate_iops_min));
        Self {
            result: JobResult { name: job.name.clone(), group: job.group, ..JobResult::default() },
            sample_ns: 0,
            sampled: PerDirection::default(),
            cycle_ns: 0,
            cycle_length_ns: job.rate_cycle_ns.max(1),
            cycled: PerDirection::default(),
            bytes_min,
            ios_min,
            has_minimum: [bytes_min, ios_min].iter().any(|m| Direction::ALL.iter().any(|&d| m.of(d).is_some())),
            latency_max_ns: job.max_latency_ns,
        }
    }

    /// Begins the job. I/Os from `counted_ns` on count in the metrics.
    pub(super) fn begin(&mut self, now_ns: u64, counted_ns: u64) {
        self.result.started_ns = Some(now_ns);
        self.result.counted_from_ns = counted_ns;
        (self.sample_ns, self.cycle_ns) = (counted_ns, counted_ns);
    }

    /// Counts only I/Os from this time on, ns.
    pub(super) fn count_from(&mut self, counted_ns: u64) {
        let counted_ns = counted_ns.max(self.result.counted_from_ns);
        self.result.counted_from_ns = counted_ns;
        (self.sample_ns, self.cycle_ns) = (counted_ns, counted_ns);
    }

    /// Discards the metrics so far.
    pub(super) fn restart(&mut self, now_ns: u64) {
        let JobResult { name, group, started_ns, failed, .. } = std::mem::take(&mut self.result);
        self.result = JobResult { name, group, started_ns, failed, counted_from_ns: now_ns, ..JobResult::default() };
        (self.sample_ns, self.cycle_ns) = (now_ns, now_ns);
        self.sampled = PerDirection::default();
        self.cycled = PerDirection::default();
    }

    fn counts(&self, now_ns: u64) -> bool {
        now_ns >= self.result.counted_from_ns
    }

    pub(super) fn issued(&mut self, now_ns: u64, under_way: u32) {
        if self.counts(now_ns) {
            self.result.depth_level[level_class(under_way)] += 1;
        }
    }

    pub(super) fn batch_submitted(&mut self, now_ns: u64, ios: u32) {
        if self.counts(now_ns) {
            self.result.depth_submit[batch_class(ios)] += 1;
        }
    }

    pub(super) fn batch_completed(&mut self, now_ns: u64, ios: u32) {
        if self.counts(now_ns) {
            self.result.depth_complete[batch_class(ios)] += 1;
        }
    }

    /// Counts a completed I/O. Returns whether a limit ends the job.
    pub(super) fn completed(&mut self, now_ns: u64, slot: &Slot) -> bool {
        if !self.counts(now_ns) {
            return false;
        }
        self.close_sample(now_ns);
        let direction = slot.io.direction;
        let latency_ns = now_ns - slot.asked_ns;
        let result = match direction {
            Direction::Read => &mut self.result.read,
            Direction::Write => &mut self.result.write,
            Direction::Trim => &mut self.result.trim,
        };
        result.ios += 1;
        result.bytes += slot.io.bytes;
        result.submission.record(slot.issued_ns - slot.asked_ns);
        result.completion.record(now_ns - slot.issued_ns);
        result.latency.record(latency_ns);
        for window in [self.sampled.of_mut(direction), self.cycled.of_mut(direction)] {
            window.ios += 1;
            window.bytes += slot.io.bytes;
        }
        let late = self.latency_max_ns.of(direction).is_some_and(|most| latency_ns > most);
        if late || self.has_minimum && self.is_too_slow(now_ns) {
            self.result.failed = true;
        }
        self.result.failed
    }

    /// Ends the current sample if its interval is over.
    fn close_sample(&mut self, now_ns: u64) {
        let passed_ns = now_ns - self.sample_ns;
        if passed_ns < SAMPLE_NS {
            return;
        }
        self.sample_ns += passed_ns / SAMPLE_NS * SAMPLE_NS;
        let seconds = SAMPLE_NS as f64 / SECOND_NS;
        for direction in Direction::ALL {
            let Window { ios, bytes } = std::mem::take(self.sampled.of_mut(direction));
            if bytes > 0 {
                let result: &mut DirectionResult = match direction {
                    Direction::Read => &mut self.result.read,
                    Direction::Write => &mut self.result.write,
                    Direction::Trim => &mut self.result.trim,
                };
                result.bytes_per_s.add(bytes as f64 / seconds);
                result.ios_per_s.add(ios as f64 / seconds);
            }
        }
    }

    /// At the end of a `rate_cycle`, returns whether a rate was below its minimum.
    fn is_too_slow(&mut self, now_ns: u64) -> bool {
        let passed_ns = now_ns - self.cycle_ns;
        if passed_ns < self.cycle_length_ns {
            return false;
        }
        self.cycle_ns = now_ns;
        let cycled = std::mem::take(&mut self.cycled);
        let least = |amount: u64| (u128::from(amount) * 1_000_000_000 / u128::from(passed_ns)) as u64;
        Direction::ALL.into_iter().any(|direction| {
            let window = cycled.of(direction);
            self.bytes_min.of(direction).is_some_and(|min| least(window.bytes) < min)
                || self.ios_min.of(direction).is_some_and(|min| least(window.ios) < min)
        })
    }

    pub(super) fn synced(&mut self, now_ns: u64, call: SyncKind, latency_ns: u64) {
        if self.counts(now_ns) {
            self.result.sync.record(latency_ns);
            self.result.sync_calls.of_mut(call).record(latency_ns);
        }
    }

    pub(super) fn fail(&mut self) {
        self.result.failed = true;
    }

    pub(super) fn has_failed(&self) -> bool {
        self.result.failed
    }

    pub(super) fn end(&mut self, now_ns: u64) {
        self.result.ended_ns = now_ns;
        // The job can end before its metrics begin to count.
        self.result.counted_from_ns = self.result.counted_from_ns.min(now_ns);
    }

    pub(super) fn into_result(self) -> JobResult {
        self.result
    }
}
