//! Completions and latencies over time, in bounded memory. The format is the same for simulated and
//! real runs.
//!
//! Time is divided into bins. When a run needs more bins, pairs of neighbouring bins are joined, so
//! bins become twice as wide. Because widths differ only by powers of two, timelines of several
//! threads can always be added. Latencies are counted in classes, four for each power of two.

use iosched::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

use super::Histogram;

/// Largest number of bins; a power of two.
const BINS_MAX: usize = 512;
/// Initial width of a bin, ns. With [`BINS_MAX`] bins, the width first doubles after half a second.
const WIDTH_START_NS: u64 = 1_000_000;
/// Number of size classes. Each class is a power of two, from one sector on. The last class, from
/// 16 GiB on, contains all larger sizes.
const SIZES: usize = 26;
/// Number of bits that distinguish the latency classes within a power of two.
const CLASS_BITS: u32 = 2;

/// Kind of an I/O in the timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// A read.
    Read,
    /// A write that a process waits for.
    WriteSync,
    /// A write that no process waits for.
    WriteAsync,
    /// A flush, a discard, or zeroing.
    Other,
}

/// Number of latencies in each class. A class is a quarter of a power of two wide, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct LatencyClasses {
    /// Class of the first element of `counts`.
    first: usize,
    counts: Vec<u64>,
}

const fn class(ns: u64) -> usize {
    if ns < 1 << CLASS_BITS {
        return ns as usize;
    }
    let shift = ns.ilog2() - CLASS_BITS;
    ((shift as usize + 1) << CLASS_BITS) + (ns >> shift) as usize % (1 << CLASS_BITS)
}

impl LatencyClasses {
    /// Returns the smallest latency of a class, ns. Returns 2^64 for the class after the last one.
    #[must_use]
    pub fn bound_ns(class: usize) -> f64 {
        let (octave, part) = (class >> CLASS_BITS, class % (1 << CLASS_BITS));
        match octave {
            0 => part as f64,
            octave => ((1 << CLASS_BITS) + part) as f64 * 2f64.powi(octave as i32 - 1),
        }
    }

    fn add(&mut self, class: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = class;
        } else if class < self.first {
            self.counts.splice(0..0, std::iter::repeat_n(0, self.first - class));
            self.first = class;
        }
        let at = class - self.first;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += count;
    }

    /// Counts one latency in its class.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let class = class(ns);
        match self.counts.get_mut(class.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.add(class, 1),
        }
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.classes().for_each(|(class, count)| self.add(class, count));
    }

    /// Returns the classes that are not empty, ascending, with their counts.
    pub fn classes(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(at, &count)| (self.first + at, count))
    }

    /// Returns whether there are no latencies.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

impl From<LatencyClasses> for Vec<u64> {
    /// Converts into pairs of class and count, for classes that are not empty.
    fn from(classes: LatencyClasses) -> Self {
        classes.classes().flat_map(|(class, count)| [class as u64, count]).collect()
    }
}

impl From<Vec<u64>> for LatencyClasses {
    /// Converts from pairs of class and count. Invalid classes are left out.
    fn from(pairs: Vec<u64>) -> Self {
        let mut classes = Self::default();
        for pair in pairs.chunks_exact(2).filter(|pair| pair[0] <= class(u64::MAX) as u64) {
            classes.add(pair[0] as usize, pair[1]);
        }
        classes
    }
}

/// Completed I/Os in one bin of a timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoBin {
    /// I/Os completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub ios: u64,
    /// Reads completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub reads: u64,
    /// Bytes of reads completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_read: u64,
    /// Bytes of writes completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_written: u64,
    /// Sum of the times in flight of all I/Os during this bin, ns. The sum divided by the width of
    /// the bin is the mean number of I/Os in flight.
    #[serde(skip_serializing_if = "is_zero")]
    pub under_way_ns: u64,
    /// Latencies of I/Os that a process waited for: reads, sync writes, flushes, discards.
    #[serde(skip_serializing_if = "LatencyClasses::is_empty")]
    pub sync: LatencyClasses,
    /// Latencies of writes that no process waited for.
    #[serde(rename = "async", skip_serializing_if = "LatencyClasses::is_empty")]
    pub nobody_waits: LatencyClasses,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl IoBin {
    fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.under_way_ns += other.under_way_ns;
        self.sync.merge(&other.sync);
        self.nobody_waits.merge(&other.nobody_waits);
    }
}

/// Latencies of I/Os in one size class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeClass {
    /// Smallest size of the class, bytes. All sizes of the class are below twice this size.
    pub from_bytes: u64,
    /// Latencies of reads.
    pub reads: Histogram,
    /// Latencies of writes, sync and async.
    pub writes: Histogram,
}

/// Completions and latencies over time. See the module page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoTimeline {
    /// Width of a bin, ns.
    pub bin_ns: u64,
    /// Bins from the start of the run.
    pub bins: Vec<IoBin>,
    /// Latencies by size, for sizes that occurred, ascending.
    pub sizes: Vec<SizeClass>,
}

impl Default for IoTimeline {
    fn default() -> Self {
        Self { bin_ns: WIDTH_START_NS, bins: Vec::new(), sizes: Vec::new() }
    }
}

impl IoTimeline {
    /// Returns whether no I/O completed.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bins.is_empty()
    }

    fn widen(&mut self) {
        let mut joined = Vec::with_capacity(BINS_MAX);
        for pair in self.bins.chunks(2) {
            let mut bin = pair[0].clone();
            pair[1..].iter().for_each(|other| bin.add(other));
            joined.push(bin);
        }
        self.bins = joined;
        self.bin_ns *= 2;
    }

    /// Returns the latencies of the size class of `bytes`.
    fn size(&mut self, bytes: u64) -> &mut SizeClass {
        let most = SECTOR_BYTES << (SIZES - 1);
        let from_bytes = 1 << bytes.clamp(SECTOR_BYTES, most).ilog2();
        let at = self.sizes.partition_point(|class| class.from_bytes < from_bytes);
        if self.sizes.get(at).is_none_or(|class| class.from_bytes != from_bytes) {
            self.sizes.insert(at, SizeClass { from_bytes, ..SizeClass::default() });
        }
        &mut self.sizes[at]
    }

    /// Records the completion of an I/O of `bytes` at `now_ns`, after `latency_ns`.
    pub fn completed(&mut self, now_ns: u64, kind: IoKind, bytes: u64, latency_ns: u64) {
        while now_ns / self.bin_ns >= BINS_MAX as u64 {
            self.widen();
        }
        let index = (now_ns / self.bin_ns) as usize;
        if self.bins.len() <= index {
            self.bins.resize(index + 1, IoBin::default());
        }
        self.under_way(now_ns.saturating_sub(latency_ns), now_ns);
        let bin = &mut self.bins[index];
        bin.ios += 1;
        let classes = if kind == IoKind::WriteAsync { &mut bin.nobody_waits } else { &mut bin.sync };
        classes.record(latency_ns);
        match kind {
            IoKind::Read => {
                bin.reads += 1;
                bin.bytes_read += bytes;
                self.size(bytes).reads.record(latency_ns);
            }
            IoKind::WriteSync | IoKind::WriteAsync => {
                bin.bytes_written += bytes;
                self.size(bytes).writes.record(latency_ns);
            }
            IoKind::Other => {}
        }
    }

    /// Adds the time in flight of an I/O to the bins, in one step per bin. The width of bins grows
    /// with the run. The total number of steps is therefore little more than the number of bins
    /// times the number of I/Os in flight.
    fn under_way(&mut self, from_ns: u64, to_ns: u64) {
        let bin_ns = self.bin_ns;
        let mut at_ns = from_ns;
        for bin in &mut self.bins[(from_ns / bin_ns) as usize..=(to_ns / bin_ns) as usize] {
            let end_ns = to_ns.min((at_ns / bin_ns + 1) * bin_ns);
            bin.under_way_ns += end_ns - at_ns;
            at_ns = end_ns;
        }
    }

    /// Adds the timeline of another thread of the same run.
    pub fn merge(&mut self, mut other: Self) {
        while self.bin_ns < other.bin_ns {
            self.widen();
        }
        while other.bin_ns < self.bin_ns {
            other.widen();
        }
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), IoBin::default());
        }
        self.bins.iter_mut().zip(&other.bins).for_each(|(bin, other)| bin.add(other));
        for class in &other.sizes {
            let merged = self.size(class.from_bytes);
            merged.reads.merge(&class.reads);
            merged.writes.merge(&class.writes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns I/Os of every kind: completion time, kind, bytes and latency.
    fn ios() -> impl Iterator<Item = (u64, IoKind, u64, u64)> {
        let kinds = [IoKind::Read, IoKind::WriteSync, IoKind::WriteAsync, IoKind::Other];
        (1..4000u64).map(move |i| {
            let (kind, bytes) = (kinds[(i % 4) as usize], 512 * (1 + i % 600));
            (i * 700_001, kind, bytes, (i * i * 7919) % (i * 650_000) + 1)
        })
    }

    fn of(ios: impl Iterator<Item = (u64, IoKind, u64, u64)>) -> IoTimeline {
        let mut timeline = IoTimeline::default();
        ios.for_each(|(now, kind, bytes, latency)| timeline.completed(now, kind, bytes, latency));
        timeline
    }

    #[test]
    fn every_io_is_in_one_bin_one_class_and_one_size() {
        let timeline = of(ios());
        assert!(timeline.bin_ns >= 4 * WIDTH_START_NS && timeline.bins.len() <= BINS_MAX);
        let sum = |of: fn(&IoBin) -> u64| timeline.bins.iter().map(of).sum::<u64>();
        assert_eq!(sum(|bin| bin.ios), 3999);
        let classes = |of: fn(&IoBin) -> &LatencyClasses| {
            timeline.bins.iter().flat_map(|bin| of(bin).classes()).map(|(_, count)| count).sum::<u64>()
        };
        assert_eq!((classes(|bin| &bin.sync), classes(|bin| &bin.nobody_waits)), (2999, 1000));
        let sizes = &timeline.sizes;
        assert_eq!(sizes.iter().map(|class| class.reads.count()).sum::<u64>(), sum(|bin| bin.reads));
        assert_eq!(sizes.iter().map(|class| class.writes.count()).sum::<u64>(), 2000);
        assert!(sizes.windows(2).all(|two| two[0].from_bytes < two[1].from_bytes));
    }

    #[test]
    fn in_flight_time_equals_the_sum_of_latencies() {
        let timeline = of(ios());
        let under_way: u64 = timeline.bins.iter().map(|bin| bin.under_way_ns).sum();
        assert_eq!(under_way, ios().map(|(now, _, _, latency)| latency.min(now)).sum::<u64>());
    }

    #[test]
    fn merged_timelines_of_threads_equal_one_timeline() {
        let mut joined = IoTimeline::default();
        for thread in 0..3 {
            // The first thread ends early, with narrow bins.
            joined.merge(of(ios().take(if thread == 0 { 100 } else { 4000 }).filter(|io| io.0 % 3 == thread)));
        }
        let all = of(ios().enumerate().filter(|(i, io)| io.0 % 3 != 0 || *i < 100).map(|(_, io)| io));
        assert_eq!(joined, all);
    }

    #[test]
    fn classes_of_latency_are_a_quarter_of_a_power_of_two_wide() {
        for ns in [0, 1, 3, 4, 7, 8, 1000, 999_999, 1 << 40, u64::MAX] {
            let class = class(ns);
            assert!(LatencyClasses::bound_ns(class) <= ns as f64, "{ns}");
            assert!(LatencyClasses::bound_ns(class + 1) >= ns as f64 && class < 252, "{ns}");
        }
        assert_eq!([16, 20, 24, 28, 32].map(|ns| LatencyClasses::bound_ns(class(ns))), [16.0, 20.0, 24.0, 28.0, 32.0]);
    }

    #[test]
    fn serialized_timeline_reads_back_unchanged() {
        let timeline = of(ios());
        let text = serde_json::to_string(&timeline).unwrap();
        assert_eq!(serde_json::from_str::<IoTimeline>(&text).unwrap(), timeline);
    }
}
