//! When I/Os were done and how long they took: a picture of bounded size, the same of simulated and of real runs.
//!
//! Time is cut into bins. When a run outgrows them, neighbouring bins are joined and become twice as wide, so what two
//! threads kept can be joined, too. Latencies are kept by classes, four to a power of two.

use iosched::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

use super::Histogram;

/// Bins kept at most; a power of two.
const BINS_MAX: usize = 512;
/// Width of a bin at the start, ns: with [`BINS_MAX`] bins, the first doubling comes after half a second.
const WIDTH_START_NS: u64 = 1_000_000;
/// Classes of sizes: powers of two from a sector on; the last, from 16 GiB on, has all that are larger.
const SIZES: usize = 26;
/// Binary digits that tell classes of latency in a power of two apart.
const CLASS_BITS: u32 = 2;

/// What an I/O was, as far as it is told apart over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoKind {
    /// A read.
    Read,
    /// A write that somebody waits for.
    WriteSync,
    /// A write that nobody waits for.
    WriteAsync,
    /// A flush, a discard, zeroing.
    Other,
}

/// How many latencies of each class there were. A class is a quarter of a power of two wide, in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub struct LatencyClasses {
    /// The class that `counts` begins with.
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
    /// The smallest latency of a class, ns; of the class behind the last one, 2^64.
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

    /// Counts one.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let class = class(ns);
        match self.counts.get_mut(class.wrapping_sub(self.first)) {
            Some(count) => *count += 1,
            None => self.add(class, 1),
        }
    }

    /// Counts all that `other` has counted.
    pub fn merge(&mut self, other: &Self) {
        other.classes().for_each(|(class, count)| self.add(class, count));
    }

    /// The classes that are not empty, rising, and how many there are in each.
    pub fn classes(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(at, &count)| (self.first + at, count))
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

impl From<LatencyClasses> for Vec<u64> {
    /// Class and count of each that is not empty, one after the other.
    fn from(classes: LatencyClasses) -> Self {
        classes.classes().flat_map(|(class, count)| [class as u64, count]).collect()
    }
}

impl From<Vec<u64>> for LatencyClasses {
    /// What is no class is left out.
    fn from(pairs: Vec<u64>) -> Self {
        let mut classes = Self::default();
        for pair in pairs.chunks_exact(2).filter(|pair| pair[0] <= class(u64::MAX) as u64) {
            classes.add(pair[0] as usize, pair[1]);
        }
        classes
    }
}

/// What was done in one bin.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IoBin {
    /// I/Os completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub ios: u64,
    /// Reads of those.
    #[serde(skip_serializing_if = "is_zero")]
    pub reads: u64,
    /// Bytes of reads completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_read: u64,
    /// Bytes of writes completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_written: u64,
    /// Time that I/Os were under way in this bin, summed over them, ns: divided by the width of the bin, how many were
    /// under way on average.
    #[serde(skip_serializing_if = "is_zero")]
    pub under_way_ns: u64,
    /// Latencies of what somebody waited for: reads, sync writes, flushes, discards.
    #[serde(skip_serializing_if = "LatencyClasses::is_empty")]
    pub sync: LatencyClasses,
    /// Latencies of writes that nobody waited for.
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

/// Latencies of I/Os of one class of sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeClass {
    /// The smallest size in it, bytes; it ends below twice that.
    pub from_bytes: u64,
    /// Latencies of reads.
    pub reads: Histogram,
    /// Latencies of writes, whether or not somebody waited.
    pub writes: Histogram,
}

/// See the module page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoTimeline {
    /// Width of a bin, ns.
    pub bin_ns: u64,
    /// From the run's start on.
    pub bins: Vec<IoBin>,
    /// Latencies by size, of sizes that there were; rising.
    pub sizes: Vec<SizeClass>,
}

impl Default for IoTimeline {
    fn default() -> Self {
        Self { bin_ns: WIDTH_START_NS, bins: Vec::new(), sizes: Vec::new() }
    }
}

impl IoTimeline {
    /// Whether nothing was completed.
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

    /// The latencies of sizes as those of `bytes`.
    fn size(&mut self, bytes: u64) -> &mut SizeClass {
        let most = SECTOR_BYTES << (SIZES - 1);
        let from_bytes = 1 << bytes.clamp(SECTOR_BYTES, most).ilog2();
        let at = self.sizes.partition_point(|class| class.from_bytes < from_bytes);
        if self.sizes.get(at).is_none_or(|class| class.from_bytes != from_bytes) {
            self.sizes.insert(at, SizeClass { from_bytes, ..SizeClass::default() });
        }
        &mut self.sizes[at]
    }

    /// An I/O of that many bytes is done now, so long after it was submitted.
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

    /// An I/O was under way. Bins double with the run, so all I/Os together take a few steps more than there are bins
    /// times what is under way at once.
    fn under_way(&mut self, from_ns: u64, to_ns: u64) {
        let bin_ns = self.bin_ns;
        let mut at_ns = from_ns;
        for bin in &mut self.bins[(from_ns / bin_ns) as usize..=(to_ns / bin_ns) as usize] {
            let end_ns = to_ns.min((at_ns / bin_ns + 1) * bin_ns);
            bin.under_way_ns += end_ns - at_ns;
            at_ns = end_ns;
        }
    }

    /// Adds what another thread kept of the same run.
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
            let own = self.size(class.from_bytes);
            own.reads.merge(&class.reads);
            own.writes.merge(&class.writes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some I/Os of every kind: when they are done, what they are, how long they are and take.
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
    fn timelines_of_threads_join_to_that_of_one() {
        let mut joined = IoTimeline::default();
        for thread in 0..3 {
            // The first ends early, with narrow bins.
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
    fn a_timeline_that_was_written_reads_as_it_was() {
        let timeline = of(ios());
        let text = serde_json::to_string(&timeline).unwrap();
        assert_eq!(serde_json::from_str::<IoTimeline>(&text).unwrap(), timeline);
    }
}
