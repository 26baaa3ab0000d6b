//! Results of fio jobs that the results of tasks do not have: plain data.
//!
//! The submission latency of an I/O begins when the job generates the I/O, and ends when the queue
//! accepts it. It includes waits for allocation and for the rest of a batch. Then the completion
//! latency begins. It ends when the job handles the completion. If the job handles completions in
//! batches, the device completes an I/O before the job handles it. The latency in
//! [`TaskResult`](super::TaskResult) ends at the completion by the device.

use serde::{Deserialize, Serialize};

use super::Histogram;

/// Interval of the samples of bandwidth and IOPS, ns: fio's `bwavgtime` and `iopsavgtime`.
pub const SAMPLE_NS: u64 = 500_000_000;

/// Results of one job. The job is the task with the same number in
/// [`RunResult::tasks`](super::RunResult::tasks).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// Name of the job, as in the job file. Copies have the same name.
    pub name: String,
    /// Number of the job's group.
    pub group: u32,
    /// Start of the job, ns since the start of the run; `None`: it never started.
    pub started_ns: Option<u64>,
    /// Time from which the job's metrics count, ns: after its `ramp_time`, or after
    /// `latency_target` has found a depth.
    pub counted_from_ns: u64,
    /// End of the job or of the run, ns.
    pub ended_ns: u64,
    /// Results of reads.
    pub read: DirectionResult,
    /// Results of writes.
    pub write: DirectionResult,
    /// Results of discards.
    pub trim: DirectionResult,
    /// Latencies of syncs, from the call to its return.
    pub sync: Histogram,
    /// The same latencies for each system call. Records of older versions lack them.
    #[serde(default, skip_serializing_if = "SyncCalls::is_empty")]
    pub sync_calls: SyncCalls,
    /// Number of I/Os, by the depth when they were issued: 1, 2-3, 4-7, 8-15, 16-31, 32-63, more.
    /// The depth includes the issued I/O.
    pub depth_level: [u64; 7],
    /// Number of submissions, by the I/Os submitted together: 0, 1-4, 5-8, 9-16, 17-32, 33-64,
    /// more.
    pub depth_submit: [u64; 7],
    /// Number of batches of completions, by the completions in the batch, with the same classes.
    pub depth_complete: [u64; 7],
    /// Depth that `latency_target` found.
    pub target_depth: Option<u32>,
    /// Whether a limit ended the job: `rate_min`, `max_latency`, `latency_target`.
    pub failed: bool,
}

impl JobResult {
    /// Adds the results of another job of the group: `group_reporting`. Samples are pooled.
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

    /// Returns the time during which the job's metrics count, ns.
    #[must_use]
    pub const fn counted_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.counted_from_ns)
    }
}

/// System call of a sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncKind {
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// `sync_file_range`, which waits for writes and does not flush the cache of the device.
    Range,
}

impl SyncKind {
    /// All kinds of syncs that fio counts.
    pub const ALL: [Self; 3] = [Self::Fsync, Self::Fdatasync, Self::Range];

    /// Returns the name of the system call.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Range => "sync_file_range",
        }
    }
}

/// Latencies of syncs for each system call.
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
    /// Returns the latencies of one call.
    #[must_use]
    pub const fn of(&self, call: SyncKind) -> &Histogram {
        match call {
            SyncKind::Fsync => &self.fsync,
            SyncKind::Fdatasync => &self.fdatasync,
            SyncKind::Range => &self.sync_file_range,
        }
    }

    /// Records the latency of a call.
    pub fn record(&mut self, call: SyncKind, ns: u64) {
        self.of_mut(call).record(ns);
    }

    /// Returns the latencies of one call, mutable.
    pub(crate) const fn of_mut(&mut self, call: SyncKind) -> &mut Histogram {
        match call {
            SyncKind::Fsync => &mut self.fsync,
            SyncKind::Fdatasync => &mut self.fdatasync,
            SyncKind::Range => &mut self.sync_file_range,
        }
    }

    /// Returns whether there were no calls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        SyncKind::ALL.iter().all(|&call| self.of(call).is_empty())
    }

    /// Adds the calls of another job.
    pub fn merge(&mut self, other: &Self) {
        SyncKind::ALL.iter().for_each(|&call| self.of_mut(call).merge(other.of(call)));
    }
}

/// Results of one direction of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionResult {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Submission latencies.
    pub submission: Histogram,
    /// Completion latencies.
    pub completion: Histogram,
    /// Latencies from the generation of the I/O to the handling of its completion.
    pub latency: Histogram,
    /// Samples of the bytes/s: one for each interval of [`SAMPLE_NS`] in which bytes were moved.
    pub bytes_per_s: Samples,
    /// Samples of the I/Os/s: one for each interval of [`SAMPLE_NS`] in which I/Os completed.
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

/// Statistics of samples, without the samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    /// Number of samples.
    pub count: u64,
    /// Smallest sample; 0 without samples.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// Mean of the samples.
    pub mean: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl Samples {
    /// Adds a sample (Welford's method).
    pub(crate) fn add(&mut self, value: f64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        let difference = value - self.mean;
        self.mean += difference / self.count as f64;
        self.squares += difference * (value - self.mean);
    }

    /// Adds other samples (Chan, Golub and LeVeque's formula).
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

    /// Returns the standard deviation; 0 with fewer than two samples.
    #[must_use]
    pub fn deviation(&self) -> f64 {
        if self.count < 2 { 0.0 } else { (self.squares / (self.count - 1) as f64).sqrt() }
    }
}

/// Returns the class of a number of I/Os submitted or completed at once.
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

/// Returns the class of a number of I/Os in flight.
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
    fn merged_samples_equal_samples_added_one_by_one() {
        let values = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0];
        let of = |values: &[f64]| {
            let mut samples = Samples::default();
            values.iter().for_each(|&value| samples.add(value));
            samples
        };
        for at in 0..=values.len() {
            let mut samples = of(&values[..at]);
            samples.merge(&of(&values[at..]));
            let total = of(&values);
            assert_eq!((samples.count, samples.min, samples.max), (total.count, total.min, total.max));
            assert!((samples.mean - total.mean).abs() < 1e-12);
            assert!((samples.deviation() - total.deviation()).abs() < 1e-12);
        }
    }

    #[test]
    fn level_and_batch_classes_match_fio() {
        assert_eq!([1, 2, 3, 4, 31, 32, 63, 64, 1000].map(level_class), [0, 1, 1, 2, 4, 5, 5, 6, 6]);
        assert_eq!([0, 1, 4, 5, 16, 17, 64, 65].map(batch_class), [0, 1, 1, 2, 3, 4, 5, 6]);
    }
}
