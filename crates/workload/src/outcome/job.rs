//! What fio tells of a job, beyond what is told of any task: plain data.
//!
//! An I/O's time from when the job asked for it until the queue had taken it (a wait for allocation, or for the rest of
//! its batch) is its submission latency; from there until the job took notice of its completion, its completion
//! latency. With batched completions that is later than the device's completion, which
//! [`TaskResult`](super::TaskResult) counts to.

use serde::{Deserialize, Serialize};

use super::Histogram;

/// Over how long bandwidth and I/Os are sampled, ns: fio's `bwavgtime` and `iopsavgtime`.
pub const SAMPLE_NS: u64 = 500_000_000;

/// One job's share of a run. Of the task of the same number in [`RunResult::tasks`](super::RunResult::tasks).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Its name, as in the job file: copies share it.
    pub name: String,
    /// Number of its group.
    pub group: u32,
    /// When it began, ns since the run's start; `None`: never.
    pub started_ns: Option<u64>,
    /// From when its figures count, ns: behind its `ramp_time`, or once `latency_target` has found its depth.
    pub counted_from_ns: u64,
    /// When it ended, or the run did, ns.
    pub ended_ns: u64,
    /// Its reads.
    pub read: DirectionResult,
    /// Its writes.
    pub write: DirectionResult,
    /// Its discards.
    pub trim: DirectionResult,
    /// Latency of its syncs: from the call to its return.
    pub sync: Histogram,
    /// The same latencies, by the call. Records of older versions lack them.
    #[serde(default, skip_serializing_if = "SyncCalls::is_empty")]
    pub sync_calls: SyncCalls,
    /// I/Os by how many were under way when they were issued, itself included: 1, 2-3, 4-7, 8-15, 16-31, 32-63, more.
    pub depth_level: [u64; 7],
    /// Submissions by how many I/Os they had: 0, 1-4, 5-8, 9-16, 17-32, 33-64, more.
    pub depth_submit: [u64; 7],
    /// Likewise completions.
    pub depth_complete: [u64; 7],
    /// The depth that `latency_target` led to.
    pub target_depth: Option<u32>,
    /// Whether a limit ended it: `rate_min`, `max_latency`, `latency_target`.
    pub failed: bool,
}

impl JobResult {
    /// Takes in what another job of its group did: `group_reporting`. Samples are pooled.
    pub fn merge(&mut self, other: &Self) {
        self.started_ns = [self.started_ns, other.started_ns].into_iter().flatten().min();
        self.counted_from_ns = self.counted_from_ns.min(other.counted_from_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.read.merge(&other.read);
        self.write.merge(&other.write);
        self.trim.merge(&other.trim);
        self.sync.merge(&other.sync);
        self.sync_calls.merge(&other.sync_calls);
        for (mine, theirs) in [
            (&mut self.depth_level, &other.depth_level),
            (&mut self.depth_submit, &other.depth_submit),
            (&mut self.depth_complete, &other.depth_complete),
        ] {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
        self.target_depth = self.target_depth.max(other.target_depth);
        self.failed |= other.failed;
    }

    /// How long its figures count, ns.
    #[must_use]
    pub const fn counted_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.counted_from_ns)
    }
}

/// Which call syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncKind {
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `sync_file_range`: writes are waited for, the device's cache is not flushed.
    Range,
}

impl SyncKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fsync, Self::Fdatasync, Self::Range];

    /// The call's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Range => "sync_file_range",
        }
    }
}

/// Latencies of syncs, by the call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SyncCalls {
    /// `fsync`.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub fsync: Histogram,
    /// `fdatasync`.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub fdatasync: Histogram,
    /// `sync_file_range`.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub sync_file_range: Histogram,
}

impl SyncCalls {
    /// Those of one call.
    #[must_use]
    pub const fn of(&self, call: SyncKind) -> &Histogram {
        match call {
            SyncKind::Fsync => &self.fsync,
            SyncKind::Fdatasync => &self.fdatasync,
            SyncKind::Range => &self.sync_file_range,
        }
    }

    /// One more call.
    pub fn record(&mut self, call: SyncKind, ns: u64) {
        self.of_mut(call).record(ns);
    }

    /// Likewise, to add to.
    pub(crate) const fn of_mut(&mut self, call: SyncKind) -> &mut Histogram {
        match call {
            SyncKind::Fsync => &mut self.fsync,
            SyncKind::Fdatasync => &mut self.fdatasync,
            SyncKind::Range => &mut self.sync_file_range,
        }
    }

    /// Whether no call was made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        SyncKind::ALL.iter().all(|&call| self.of(call).is_empty())
    }

    /// Takes in other calls.
    pub fn merge(&mut self, other: &Self) {
        SyncKind::ALL.iter().for_each(|&call| self.of_mut(call).merge(other.of(call)));
    }
}

/// One direction of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionResult {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Submission latency.
    pub submission: Histogram,
    /// Completion latency.
    pub completion: Histogram,
    /// Both together.
    pub latency: Histogram,
    /// Bytes/s in each [`SAMPLE_NS`] in which any were moved.
    pub bytes_per_s: Samples,
    /// I/Os/s likewise.
    pub ios_per_s: Samples,
}

impl DirectionResult {
    fn merge(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.submission.merge(&other.submission);
        self.completion.merge(&other.completion);
        self.latency.merge(&other.latency);
        self.bytes_per_s.merge(&other.bytes_per_s);
        self.ios_per_s.merge(&other.ios_per_s);
    }
}

/// A number of samples, without the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// How many.
    pub count: u64,
    /// The smallest; 0 without any.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Their mean.
    pub mean: f64,
    /// The sum of the squares of their differences from the mean.
    squares: f64,
}

impl Samples {
    /// One more (Welford's method).
    pub(crate) fn add(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        let difference = value - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value - self.mean);
    }

    /// Takes in other samples (Chan, Golub and LeVeque's formula).
    fn merge(&mut self, other: &Self) {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = *other;
            }
            return;
        }
        let (mine, theirs) = (self.count as f64, other.count as f64);
        let difference = other.mean - self.mean;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.mean += difference * theirs / (mine + theirs);
        self.squares += other.squares + difference * difference * mine * theirs / (mine + theirs);
        self.count += other.count;
    }

    /// Their standard deviation; 0 with fewer than two.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }
}

/// The class of a number of I/Os submitted or completed at once.
pub(crate) const fn batch_class(ios: u32) -> usize {
    match ios {
        0 => 0,
        1..=4 => 1,
        5..=8 => 2,
        9..=16 => 3,
        17..=32 => 4,
        33..=64 => 5,
        _ => 6,
    }
}

/// The class of a number of I/Os under way.
pub(crate) const fn level_class(ios: u32) -> usize {
    match ios {
        0 | 1 => 0,
        _ => {
            let class = ios.ilog2() as usize;
            if class > 6 { 6 } else { class }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_the_deviation_of_their_values() {
        let mut samples = Samples::default();
        [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().for_each(|value| samples.add(value));
        assert_eq!((samples.count, samples.min, samples.max, samples.mean), (8, 2.0, 9.0, 5.0));
        assert!((samples.deviation() - (32.0f64 / 7.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn samples_taken_in_are_as_if_added_one_by_one() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let of = |values: &[f64]| {
            let mut samples = Samples::default();
            values.iter().for_each(|&value| samples.add(value));
            samples
        };
        for at in 0..=values.len() {
            let mut samples = of(&values[..at]);
            samples.merge(&of(&values[at..]));
            let whole = of(&values);
            assert_eq!((samples.count, samples.min, samples.max), (whole.count, whole.min, whole.max));
            assert!((samples.mean - whole.mean).abs() < 1e-12);
            assert!((samples.deviation() - whole.deviation()).abs() < 1e-12);
        }
    }

    #[test]
    fn classes_are_those_of_fio() {
        assert_eq!([1, 2, 3, 4, 31, 32, 63, 64, 1000].map(level_class), [0, 1, 1, 2, 4, 5, 5, 6, 6]);
        assert_eq!([0, 1, 4, 5, 16, 17, 64, 65].map(batch_class), [0, 1, 1, 2, 3, 4, 5, 6]);
    }
}
