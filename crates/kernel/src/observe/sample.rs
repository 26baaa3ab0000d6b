//! Results of observing disks during a period.

use iosched::IoClass;
use iosched_numbers::Histogram;
use serde::Serialize;

use super::event::Operation;
use super::io_stat::GroupIo;
use super::owner::Owner;
use crate::block::Stat;

/// Results since the last sample.
#[derive(Clone, Default, Debug)]
pub struct Sample {
    /// Length of the period, s.
    pub seconds: f64,
    /// Results of each disk.
    pub disks: Vec<DiskSample>,
    /// Completed requests. The list is empty without trace events.
    pub series: Vec<Series>,
    /// I/O of cgroups, from `io.stat`. Cgroups without I/O are left out.
    pub groups: Vec<GroupSample>,
    /// Fraction of the time in which iosched observed every request that started, 0 to 1.
    pub sampled: f64,
    /// Number of trace events that were lost.
    pub lost: u64,
    /// Number of observed requests whose completion was not seen.
    pub unfinished: u64,
}

/// A disk in a period.
#[derive(Clone, Debug)]
pub struct DiskSample {
    /// Name in `/sys/block`.
    pub name: String,
    /// Present scheduler of the disk.
    pub scheduler: Option<String>,
    /// Whether the disk has requests. A logical volume has none, so it has no latencies here.
    pub has_requests: bool,
    /// Number of commands that the driver accepts at once.
    pub driver_depth: Option<u32>,
    /// Statistics of the period. `None` if the kernel does not count.
    pub stat: Option<Stat>,
}

impl DiskSample {
    /// Returns the mean number of requests in flight during the time with at least one request in
    /// flight.
    #[must_use]
    pub fn depth_while_busy(&self) -> Option<f64> {
        let stat = self.stat.filter(|stat| stat.busy_ms > 0)?;
        Some(stat.queue_ms as f64 / stat.busy_ms as f64)
    }

    /// Returns the fraction of the period with at least one request in flight, 0 to 1. `seconds` is
    /// the length of the period.
    #[must_use]
    pub fn busy(&self, seconds: f64) -> Option<f64> {
        let stat = self.stat.filter(|_| seconds > 0.0)?;
        Some((stat.busy_ms as f64 / 1e3 / seconds).min(1.0))
    }
}

/// Completed requests of one disk, operation, class and owner.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the disk.
    pub disk: String,
    /// The operation.
    pub operation: Operation,
    /// I/O priority class of the requests.
    pub class: IoClass,
    /// Cgroup and thread that made the requests.
    pub owner: Owner,
    /// Number of requests. It is an estimate if only a sample was observed.
    pub ios: u64,
    /// Bytes of the requests. It is an estimate if only a sample was observed.
    pub bytes: u64,
    /// Latencies of the observed requests, from start to completion.
    pub latency: Histogram,
    /// Number of observed requests for which the issue to the driver was also observed.
    pub issued: u64,
    /// Time from start to issue, summed over the `issued` requests, ns.
    pub waited_ns: u64,
}

impl Series {
    /// Returns the mean share of the latency between the start of a request and its issue to the
    /// driver, 0 to 1.
    #[must_use]
    pub fn waited_share(&self) -> Option<f64> {
        let all = self.latency.mean_ns() * self.issued as f64;
        (all > 0.0).then(|| (self.waited_ns as f64 / all).min(1.0))
    }
}

/// I/O of a cgroup on a disk in a period.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GroupSample {
    /// Path of the cgroup.
    pub cgroup: String,
    /// Name of the disk.
    pub disk: String,
    /// The I/O.
    pub io: GroupIo,
}

/// Returns the name of an I/O priority class, as labels of metrics use it.
#[must_use]
pub const fn class_name(class: IoClass) -> &'static str {
    match class {
        IoClass::None => "none",
        IoClass::RealTime => "rt",
        IoClass::BestEffort => "be",
        IoClass::Idle => "idle",
    }
}

/// If the observed fraction of the time is above this limit, all requests count as observed.
const ALL: f64 = 0.97;

impl Sample {
    /// Returns the disk of this name.
    #[must_use]
    pub fn disk(&self, name: &str) -> Option<&DiskSample> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// Scales the counts of a sample to estimates for all requests. For reads, writes and discards,
    /// the sum over all owners is then equal to the disk's exact counter.
    pub(super) fn estimate(&mut self) {
        if self.sampled >= ALL || self.series.is_empty() {
            return;
        }
        for disk in &self.disks {
            for operation in Operation::ALL {
                let is_one = |series: &&mut Series| series.disk == disk.name && series.operation == operation;
                let (ios, bytes) = self
                    .series
                    .iter_mut()
                    .filter(is_one)
                    .fold((0, 0), |(ios, bytes), series| (ios + series.ios, bytes + series.bytes));
                let truth = disk.stat.and_then(|stat| match operation {
                    Operation::Read => Some((stat.reads.requests, stat.reads.bytes)),
                    Operation::Write => Some((stat.writes.requests, stat.writes.bytes)),
                    Operation::Discard => Some((stat.discards.requests, stat.discards.bytes)),
                    // The kernel combines flushes, and its counter counts only the combined
                    // flushes.
                    Operation::Flush | Operation::Fsync => None,
                });
                let by_time = 1.0 / self.sampled.max(1e-2);
                let scale = |truth: Option<u64>, found: u64| match truth {
                    Some(truth) if found > 0 => truth as f64 / found as f64,
                    _ => by_time,
                };
                let (by_ios, by_bytes) =
                    (scale(truth.map(|truth| truth.0), ios), scale(truth.map(|truth| truth.1), bytes));
                for series in self.series.iter_mut().filter(is_one) {
                    series.ios = (series.ios as f64 * by_ios).round() as u64;
                    series.bytes = (series.bytes as f64 * by_bytes).round() as u64;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Direction;

    fn series(cgroup: &str, operation: Operation, ios: u64, latency_ns: u64) -> Series {
        let mut latency = Histogram::default();
        (0..ios).for_each(|_| latency.record(latency_ns));
        let owner = Owner { cgroup: Some(cgroup.to_owned()), process: None };
        let (class, disk) = (IoClass::None, "sda".to_owned());
        let (issued, waited_ns) = (ios, ios * latency_ns / 4);
        Series { disk, operation, class, owner, ios, bytes: ios * 4096, latency, issued, waited_ns }
    }

    fn sample(sampled: f64) -> Sample {
        let reads = Direction { requests: 1_000, bytes: 8_000_000, ..Direction::default() };
        let stat = Stat { reads, busy_ms: 500, queue_ms: 2_000, ..Stat::default() };
        let disk = DiskSample {
            name: "sda".to_owned(),
            scheduler: None,
            has_requests: true,
            driver_depth: None,
            stat: Some(stat),
        };
        let series = vec![
            series("a", Operation::Read, 75, 1_000),
            series("b", Operation::Read, 25, 1_000),
            series("b", Operation::Flush, 5, 1_000),
        ];
        Sample { seconds: 1.0, disks: vec![disk], series, sampled, ..Sample::default() }
    }

    #[test]
    fn a_sample_is_scaled_to_the_counters_of_the_disk() {
        let mut scaled = sample(0.1);
        scaled.estimate();
        let found: Vec<_> = scaled.series.iter().map(|series| (series.ios, series.bytes)).collect();
        assert_eq!(found, [(750, 6_000_000), (250, 2_000_000), (50, 204_800)]);
        let mut all = sample(1.0);
        all.estimate();
        assert_eq!(all.series[0].ios, 75);
    }

    #[test]
    fn sample_computes_depth_busy_share_and_waited_share() {
        let sample = sample(1.0);
        assert_eq!(sample.disks[0].depth_while_busy(), Some(4.0));
        assert_eq!(sample.disks[0].busy(1.0), Some(0.5));
        assert_eq!(sample.series[0].waited_share(), Some(0.25));
    }
}
