//! Measurement of modelled devices, as a benchmark measures real ones: the metrics of data sheets
//! and reviews, with the values of the real device for comparison.
//!
//! `iosched device show`, the tables of docs/devices.md and the tests of the anchors all use these
//! functions and therefore agree. Measurements are deterministic: the same profile gives the same
//! results.

mod figure;
mod latency;
mod load;
mod saturation;

use iosched::Op;
use serde::Serialize;

pub use self::figure::{Figure, Quantity, Unit, UnknownFigure};
pub use self::latency::Latencies;
use self::load::{Done, Next, closed_loop, random, sequential};
pub use self::saturation::{Saturated, Saturation, saturation};
use crate::profile::{Anchor, Model, Profile, StartState};
use crate::ssd::SsdStartConfig;
use crate::{AnyDevice, Card};
use iosched_numbers::SplitMix64;

/// Sectors of a sequential command: 128 KiB.
const SEQUENTIAL_SECTORS: u32 = 256;
/// Number of commands for a random rate, on rotating disks and on other devices.
const RANDOM_ROTATING: u64 = 8_000;
const RANDOM_OTHER: u64 = 60_000;
/// Number of commands for the random writes of an array. Half of them fill its memory.
const RANDOM_ARRAY_WRITES: u64 = 150_000;
/// Bytes of a measurement of a sequential rate. A smaller device is measured completely.
const SEQUENTIAL_BYTES: u64 = 512 << 20;
/// Number of places for the average sequential rate.
const AVERAGE_PLACES: u64 = 16;
/// Number of pairs of sectors for the average seek.
const SEEKS: u64 = 100_000;
/// Number of flushes whose mean latency is measured.
const FLUSHES: u64 = 40;
/// Number of writes after a rest. A cache of any size should accept them.
const WRITES_AFTER_REST: u64 = 200;
/// Rest before these writes, ns.
const REST_NS: u64 = 2_000_000_000;

/// A metric measured on a model, and the value of the real device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// The metric.
    #[serde(rename = "metric")]
    pub figure: Figure,
    /// Value of the model, in `unit`.
    pub value: f64,
    /// Unit of the anchor. Without an anchor, this is a unit that suits the value.
    pub unit: Unit,
    /// Value of the real device in the profile.
    pub anchor: Option<Anchor>,
}

impl Measured {
    /// Returns the deviation of the model as a share of the real value: 0.1 means 10 % more.
    /// Returns `None` without an anchor.
    #[must_use]
    pub fn deviation(&self) -> Option<f64> {
        self.anchor.as_ref().map(|anchor| self.value / anchor.value - 1.0)
    }
}

/// Distribution of the latencies of one kind of command.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Operation, read or write. Commands are random and have 4 KiB.
    pub op: Op,
    /// Number of outstanding commands.
    pub depth: u32,
    /// Latencies, sorted.
    pub latencies: Latencies,
}

/// All measurements of a device.
#[derive(Clone, Debug)]
pub struct DataSheet {
    /// The usual metrics of this kind of device, and all metrics with an anchor.
    pub figures: Vec<Measured>,
    /// Latencies of random reads and writes.
    pub distributions: Vec<Distribution>,
}

/// Returns whether a metric exists for this kind of device. Flash has no seeks, and a rotating disk
/// has no queue of depth 256.
#[must_use]
pub fn applies(model: &Model, card: &Card, figure: Figure) -> bool {
    match figure {
        Figure::AverageReadSeek
        | Figure::AverageWriteSeek
        | Figure::TrackToTrackReadSeek
        | Figure::TrackToTrackWriteSeek
        | Figure::FullStrokeReadSeek
        | Figure::FullStrokeWriteSeek => matches!(model, Model::Hdd(_)),
        Figure::RandomRead4kDepth256 => card.depth >= 256,
        Figure::SteadyRandomWrite4kDepth32 => matches!(model, Model::Ssd(_)),
        _ => true,
    }
}

/// Measures a metric, in the base unit of its quantity (ns, IOPS, bytes per second). Returns `None`
/// if the metric does not exist for this kind of device. For example, flash has no seeks.
#[must_use]
pub fn measure(profile: &Profile, figure: Figure) -> Option<f64> {
    if !applies(profile.model(), profile.card(), figure) {
        return None;
    }
    let bench = Bench::new(profile);
    let capacity = bench.capacity;
    Some(match figure {
        Figure::AverageReadSeek => bench.average_seek()?,
        Figure::AverageWriteSeek => bench.average_seek()? + bench.write_settle_ns()?,
        Figure::TrackToTrackReadSeek => bench.least_seek()?,
        Figure::TrackToTrackWriteSeek => bench.least_seek()? + bench.write_settle_ns()?,
        Figure::FullStrokeReadSeek => bench.full_stroke()?,
        Figure::FullStrokeWriteSeek => bench.full_stroke()? + bench.write_settle_ns()?,
        Figure::RandomRead4kLatency => bench.random(Op::Read, 1, capacity).latencies.mean_ns(),
        Figure::RandomRead4kDepth1 => bench.random(Op::Read, 1, capacity).rate(),
        Figure::RandomRead4kDepth32 => bench.random(Op::Read, 32, capacity).rate(),
        Figure::RandomRead4kDepth256 => bench.random(Op::Read, 256, capacity).rate(),
        Figure::RandomWrite4kLatency => bench.writes_after_rest().latencies.mean_ns(),
        Figure::RandomWrite4kDepth1 => bench.random(Op::Write, 1, capacity).rate(),
        Figure::RandomWrite4kDepth32 => bench.random(Op::Write, 32, capacity).rate(),
        Figure::SteadyRandomWrite4kDepth32 => {
            if matches!(profile.model(), Model::Ssd(config) if config.start == SsdStartConfig::STEADY) {
                return Some(bench.random(Op::Write, 32, capacity).rate());
            }
            let steady = profile.starting(StartState::Steady).ok()?;
            Bench::new(&steady).random(Op::Write, 32, capacity).rate()
        }
        Figure::SequentialReadOuterEdge => bench.sequential(Op::Read, SequentialStart::First),
        Figure::SequentialReadAverage => bench.sequential_average(),
        Figure::SequentialReadInnerEdge => bench.sequential(Op::Read, SequentialStart::Last),
        Figure::SequentialWriteOuterEdge => bench.sequential(Op::Write, SequentialStart::First),
        Figure::SequentialWriteInnerEdge => bench.sequential(Op::Write, SequentialStart::Last),
        Figure::FlushAfterWrite => bench.flush_after(1),
        Figure::FlushAfter4ScatteredWrites => bench.flush_after(4),
        Figure::FlushAfter16ScatteredWrites => bench.flush_after(16),
        Figure::FlushAfter64ScatteredWrites => bench.flush_after(64),
        Figure::ShortStrokeHalf => bench.short_stroke(2),
        Figure::ShortStrokeTenth => bench.short_stroke(10),
    })
}

/// Measures the metric of an anchor. Returns `None` if it does not exist for this kind of device.
#[must_use]
pub fn measure_anchor(profile: &Profile, anchor: &Anchor) -> Option<Measured> {
    let value = measure(profile, anchor.figure)? / anchor.unit.factor();
    Some(Measured { figure: anchor.figure, value, unit: anchor.unit, anchor: Some(anchor.clone()) })
}

/// Measures all metrics and distributions of a device.
#[must_use]
pub fn data_sheet(profile: &Profile) -> DataSheet {
    let is_needed = |figure: &Figure| profile.anchor(*figure).is_some() || is_usual(profile, *figure);
    let figures = Figure::ALL.iter().copied().filter(is_needed).filter_map(|figure| match profile.anchor(figure) {
        Some(anchor) => measure_anchor(profile, anchor),
        None => measure(profile, figure).map(|value| {
            let unit = figure.unit_for(value);
            Measured { figure, value: value / unit.factor(), unit, anchor: None }
        }),
    });
    let bench = Bench::new(profile);
    let distributions = [(Op::Read, 1), (Op::Read, 32), (Op::Write, 1), (Op::Write, 32)].map(|(op, depth)| {
        let mut latencies = bench.random(op, depth, bench.capacity).latencies;
        latencies.sort();
        Distribution { op, depth: depth.min(bench.depth()), latencies }
    });
    DataSheet { figures: figures.collect(), distributions: distributions.into() }
}

/// Returns whether a metric of this kind of device is measured even without an anchor.
fn is_usual(profile: &Profile, figure: Figure) -> bool {
    match figure {
        Figure::RandomRead4kDepth1
        | Figure::RandomRead4kDepth32
        | Figure::RandomWrite4kDepth1
        | Figure::RandomWrite4kDepth32
        | Figure::SequentialReadOuterEdge
        | Figure::SequentialWriteOuterEdge => true,
        Figure::SequentialReadInnerEdge | Figure::SequentialWriteInnerEdge => profile.card().rotational,
        Figure::FlushAfterWrite | Figure::FlushAfter16ScatteredWrites => profile.card().write_cache,
        Figure::RandomRead4kDepth256 | Figure::SteadyRandomWrite4kDepth32 => true,
        _ => false,
    }
}

/// Position at which sequential commands start.
#[derive(Clone, Copy)]
enum SequentialStart {
    First,
    Last,
    /// One of [`AVERAGE_PLACES`] places.
    Part(u64),
}

/// A profile for measurements. Each measurement begins with a new device.
struct Bench<'a> {
    profile: &'a Profile,
    capacity: u64,
}

impl<'a> Bench<'a> {
    fn new(profile: &'a Profile) -> Self {
        Self { profile, capacity: profile.card().capacity_sectors }
    }

    fn depth(&self) -> u32 {
        self.profile.card().depth
    }

    /// Returns a function that computes the seek time between two sectors, ns.
    fn seek(&self) -> Option<impl Fn(u64, u64) -> u64> {
        let AnyDevice::Hdd(hdd) = self.profile.device(0) else { return None };
        Some(move |from, to| hdd.seek_ns(from, to))
    }

    fn average_seek(&self) -> Option<f64> {
        let seek_ns = self.seek()?;
        let mut pairs = SplitMix64::new(11);
        let sum: u64 = (0..SEEKS).map(|_| seek_ns(pairs.below(self.capacity), pairs.below(self.capacity))).sum();
        Some(sum as f64 / SEEKS as f64)
    }

    /// Returns the time of the shortest seek that starts at the first sector, ns. The seek leads to
    /// the first sector that needs a seek.
    fn least_seek(&self) -> Option<f64> {
        let seek_ns = self.seek()?;
        let (mut none, mut some) = (0, self.capacity - 1);
        while some - none > 1 {
            let middle = none.midpoint(some);
            if seek_ns(0, middle) == 0 { none = middle } else { some = middle }
        }
        Some(seek_ns(0, some) as f64)
    }

    fn full_stroke(&self) -> Option<f64> {
        Some(self.seek()?(0, self.capacity - 1) as f64)
    }

    fn write_settle_ns(&self) -> Option<f64> {
        match self.profile.model() {
            Model::Hdd(config) => Some(config.write_settle_ns as f64),
            _ => None,
        }
    }

    /// Runs random 4 KiB commands below `end_sector`. For writes, only the second half counts.
    fn random(&self, op: Op, depth: u32, end_sector: u64) -> Done {
        let count = match self.profile.model() {
            Model::Array(_) if op == Op::Write => RANDOM_ARRAY_WRITES,
            _ if self.profile.card().rotational => RANDOM_ROTATING,
            _ => RANDOM_OTHER,
        };
        let warm_up = if op == Op::Write { count / 2 } else { 0 };
        let mut device = self.profile.device(u64::from(depth));
        closed_loop(&mut device, 0, depth, warm_up, random(op, end_sector, count, 5))
    }

    fn writes_after_rest(&self) -> Done {
        let mut device = self.profile.device(1);
        closed_loop(&mut device, 0, 1, 0, random(Op::Write, self.capacity, WRITES_AFTER_REST, 6))
    }

    /// Returns the bytes per second of sequential 128 KiB commands. The depth is 1 on rotating
    /// disks, which read ahead, and 32 on other devices. The first quarter does not count, because
    /// a cache may accept it.
    fn sequential(&self, op: Op, place: SequentialStart) -> f64 {
        let chunk = u64::from(SEQUENTIAL_SECTORS);
        let chunks = self.capacity / chunk;
        if chunks == 0 {
            return 0.0;
        }
        let share = if matches!(place, SequentialStart::Part(_)) { 4 } else { 1 };
        let count = (SEQUENTIAL_BYTES / share / 512 / chunk).min(chunks);
        let first = match place {
            SequentialStart::First => 0,
            SequentialStart::Last => chunks - count,
            SequentialStart::Part(part) => (chunks - count) / AVERAGE_PLACES * part,
        };
        let depth = if self.profile.card().rotational { 1 } else { 32 };
        let mut device = self.profile.device(1);
        let done = closed_loop(&mut device, 0, depth, count / 4, sequential(op, first * chunk, count));
        done.rate() * (chunk * 512) as f64
    }

    fn sequential_average(&self) -> f64 {
        let slowness: f64 =
            (0..AVERAGE_PLACES).map(|part| 1.0 / self.sequential(Op::Read, SequentialStart::Part(part))).sum();
        AVERAGE_PLACES as f64 / slowness
    }

    /// Returns the mean latency of a flush directly after this number of random writes, ns.
    fn flush_after(&self, writes: u64) -> f64 {
        let mut device = self.profile.device(1);
        let mut places = SplitMix64::new(7);
        let blocks = self.capacity / 8;
        let (mut now_ns, mut sum) = (0, 0.0);
        for _ in 0..FLUSHES {
            let mut left = writes;
            let written = closed_loop(&mut device, now_ns, 1, 0, || {
                left = left.checked_sub(1)?;
                Some(Next { op: Op::Write, sector: places.below(blocks) * 8, nr_sectors: 8 })
            });
            let mut flush = Some(Next { op: Op::Flush, sector: 0, nr_sectors: 0 });
            let flushed = closed_loop(&mut device, written.last_ns, 1, 0, || flush.take());
            sum += flushed.latencies.mean_ns();
            now_ns = flushed.last_ns + REST_NS;
        }
        sum / FLUSHES as f64
    }

    /// Returns the random read rate on the first 1/`part` of the device, divided by the random read
    /// rate on the whole device.
    fn short_stroke(&self, part: u64) -> f64 {
        self.random(Op::Read, 1, self.capacity / part).rate() / self.random(Op::Read, 1, self.capacity).rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_match_a_device_of_known_latency() {
        let text = "kind = \"fixed\"\n[fixed]\ndepth = 4\nparallel = 2\nlat_ns = 100_000\nns_per_sector = 0\n";
        let profile = Profile::parse("known", text).unwrap();
        let measured = |figure| measure(&profile, figure).unwrap();
        assert!((measured(Figure::RandomRead4kLatency) - 100_000.0).abs() < 1e-6);
        assert!((measured(Figure::RandomRead4kDepth1) - 10_000.0).abs() < 1e-6);
        assert!((measured(Figure::RandomRead4kDepth32) - 20_000.0).abs() < 20.0);
        // Two commands of 128 KiB take 0.1 ms.
        assert!((measured(Figure::SequentialReadOuterEdge) - 2.621_44e9).abs() < 3e7);
        assert!((measured(Figure::FlushAfterWrite) - 100_000.0).abs() < 1e-6);
        assert_eq!(measure(&profile, Figure::AverageReadSeek), None);
        assert_eq!(measure(&profile, Figure::RandomRead4kDepth256), None);
    }

    #[test]
    fn figures_parse_by_name_and_unknown_names_fail() {
        for &figure in Figure::ALL {
            assert_eq!(figure.name().parse(), Ok(figure));
            assert_eq!(figure.unit_for(1.0).quantity(), figure.quantity());
        }
        let error = "seek".parse::<Figure>().unwrap_err().to_string();
        assert!(error.contains("\"seek\"") && error.contains("average_read_seek"), "{error}");
    }
}
