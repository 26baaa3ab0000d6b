//! Fits `empirical`: the measurements become the model.
//!
//! Probes of one kind of I/O become cells of a table. A cell has a size, a number of commands in
//! flight and the distribution of their latencies. Cells without a measurement are filled in from
//! their neighbours. For random reads, the estimate adds two measured effects: the effect of the
//! size at the fewest commands in flight, and the effect of the commands in flight at the smallest
//! size. For other kinds, the estimate is the latency of random reads. Measured cells nearby then
//! correct the estimate. No estimate is faster than the highest measured bandwidth.

use iosched_disk::empirical::EmpiricalCell;
use iosched_disk::{EmpiricalConfig, Model};
use iosched_sim::Histogram;

use super::credits::credits;
use super::rest::rest;
use super::{Fit, most_iops};
use crate::calibrate::error::CalibrateError;
use crate::calibrate::evidence::{Evidence, Measured};
use crate::calibrate::probe::{Probe, Role};

/// Shares of the distribution at which times are stored.
const SHARES: [f64; 14] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0];
const COUNT: usize = SHARES.len();
/// Index of the median in [`SHARES`].
const MEDIAN: usize = 6;
/// Longest stored time, ns.
const NS_MAX: f64 = 1e12;
/// Largest factor between latencies in a mix and latencies of reads or writes alone.
const FACTOR_MAX: f64 = 100.0;

/// Logarithms of the times at [`SHARES`], ns.
type Times = [f64; COUNT];

/// A point in the plane of sizes and commands in flight.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spot {
    bytes: u32,
    under_way: u32,
}

impl Spot {
    /// Returns the square of the distance to another point, in natural logarithms.
    fn distance2(self, other: Self) -> f64 {
        let apart = |a: u32, b: u32| (f64::from(a) / f64::from(b)).ln();
        apart(self.bytes, other.bytes).powi(2) + apart(self.under_way, other.under_way).powi(2)
    }
}

/// The measurements of commands of one kind.
#[derive(Clone, Debug, Default)]
struct Cells {
    known: Vec<(Spot, Times)>,
    /// Highest measured bandwidth, bytes per second.
    bandwidth: f64,
}

/// Fits the model.
pub(super) fn fit(evidence: &Evidence) -> Result<Fit, CalibrateError> {
    most_iops(evidence)?;
    let target = &evidence.target;
    let cells_of = |writes, sequential| Cells::of(evidence, writes, sequential);
    let reads = cells_of(false, false);
    let surface = reads.filled(&Spot::grid(&reads.spots()), |spot| reads.alone_and_in_company(spot));
    let as_reads = |spot| nearby(&surface, spot);
    let cells = |measured_cells: &Cells| measured_cells.filled(&Spot::grid(&measured_cells.spots()), as_reads);
    let sequential_reads = cells(&cells_of(false, true));
    let random_writes = cells(&cells_of(true, false));
    let sequential_writes = cells(&cells_of(true, true));
    let company = |writes: bool, surface: &[(Spot, Times)]| {
        let mixed = evidence.of_role(Role::Mixed).filter_map(|measured| {
            let latency = if writes { &measured.summary.writes } else { &measured.summary.reads };
            (latency.count() > 0 && !surface.is_empty()).then(|| {
                let alone = nearby(surface, Spot { bytes: measured.probe.bytes, under_way: measured.probe.depth });
                difference(&times(latency, None), &alone)
            })
        });
        factors(&mixed.collect::<Vec<_>>())
    };
    let (reads_beside_writes, writes_beside_reads) = (company(false, &surface), company(true, &random_writes));
    let flush = evidence.of_role(Role::Flush).find(|measured| measured.probe.flush_every == 1);
    Ok(Ok(Model::Empirical(Box::new(EmpiricalConfig {
        capacity_sectors: target.capacity_sectors,
        depth: target.depth.max(1),
        hw_queues: 1,
        max_hw_sectors_kb: target.max_sectors_kb.max(4),
        rotational: target.rotational,
        write_cache: target.write_cache,
        fua: target.fua,
        flush_ns: flush.map_or(0, |measured| measured.summary.flushes.mean_ns() as u64),
        shares: SHARES.to_vec(),
        reads_beside_writes,
        writes_beside_reads,
        rest: rest(evidence, u64::MAX),
        random_reads: written(&surface),
        sequential_reads: written(&sequential_reads),
        random_writes: written(&random_writes),
        sequential_writes: written(&sequential_writes),
        credits: credits(evidence),
    }))))
}

impl Spot {
    /// Returns the points for every combination of a size and a number in flight.
    fn grid(spots: &[Self]) -> Vec<Self> {
        let all = |value: fn(&Self) -> u32| {
            let mut all: Vec<u32> = spots.iter().map(value).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let numbers = all(|spot| spot.under_way);
        let sizes = all(|spot| spot.bytes).into_iter();
        sizes.flat_map(|bytes| numbers.iter().map(move |&under_way| Self { bytes, under_way })).collect()
    }
}

impl Cells {
    /// Returns the cells of closed loops of one kind, without other I/O and without pauses.
    fn of(evidence: &Evidence, writes: bool, sequential: bool) -> Self {
        let roles =
            [Role::Depth, Role::Size, Role::Bandwidth, Role::Sequential, Role::Place, Role::Distance, Role::Write];
        let wanted = |probe: &Probe| {
            let kind = if writes { probe.read_percent == 0 } else { probe.read_percent == 100 };
            // A larger I/O is sent in parts.
            let is_whole = probe.bytes <= evidence.target.max_sectors_kb.saturating_mul(1024).max(4096);
            kind && is_whole && probe.sequential == sequential
        };
        let all =
            || roles.into_iter().flat_map(|role| evidence.of_role(role)).filter(|measured| wanted(&measured.probe));
        let mut spots: Vec<Spot> = Vec::new();
        for spot in all().map(|measured| spot_of(&measured.probe)) {
            if !spots.contains(&spot) {
                spots.push(spot);
            }
        }
        let known = spots.into_iter().map(|spot| {
            let here: Vec<&Measured> = all().filter(|measured| spot_of(&measured.probe) == spot).collect();
            let mut latency = Histogram::default();
            here.iter().for_each(|measured| latency.merge(&measured.summary.latency));
            let iops = here.iter().map(|measured| measured.summary.iops.median).sum::<f64>() / here.len() as f64;
            (spot, times(&latency, Some(f64::from(spot.under_way) * 1e9 / iops.max(1e-6))))
        });
        let rates = all().map(|measured| measured.summary.iops.median * f64::from(measured.probe.bytes));
        Self { bandwidth: rates.fold(1.0, f64::max), known: known.collect() }
    }

    fn spots(&self) -> Vec<Spot> {
        self.known.iter().map(|(spot, _)| *spot).collect()
    }

    /// Returns all points of `grid`. Points without a measurement
    /// get the value of `base`, corrected by measured points nearby.
    fn filled(&self, grid: &[Spot], base: impl Fn(Spot) -> Times) -> Vec<(Spot, Times)> {
        let off: Vec<(Spot, Times)> =
            self.known.iter().map(|(spot, times)| (*spot, difference(times, &base(*spot)))).collect();
        let fill = |&spot: &Spot| {
            if let Some((_, times)) = self.known.iter().find(|(known, _)| *known == spot) {
                return (spot, *times);
            }
            let (start, right) = (base(spot), weighted(&off, spot));
            let up = (self.crossing_ns(spot).max(1.0).ln() - start[MEDIAN] - right[MEDIAN]).max(0.0);
            (spot, rising(std::array::from_fn(|i| start[i] + right[i] + up)))
        };
        grid.iter().map(fill).collect()
    }

    /// Returns the sum of two effects on random reads: the effect of the size at the fewest
    /// commands in flight, and the effect of the commands in flight at the smallest size.
    fn alone_and_in_company(&self, spot: Spot) -> Times {
        let smallest = self.known.iter().map(|(known, _)| known.bytes).min().unwrap_or(1);
        let fewest = self.known.iter().map(|(known, _)| known.under_way).min().unwrap_or(1);
        let along_sizes: Vec<(f64, &Times)> = line(&self.known, |known| known.under_way == fewest, |known| known.bytes);
        let along_numbers: Vec<(f64, &Times)> =
            line(&self.known, |known| known.bytes == smallest, |known| known.under_way);
        let by_size = between(&along_sizes, f64::from(spot.bytes).ln());
        let by_number = between(&along_numbers, f64::from(spot.under_way).ln());
        let corner = between(&along_sizes, f64::from(smallest).ln());
        let sum = |i: usize| (by_size[i].exp() + by_number[i].exp() - corner[i].exp()).max(by_size[i].exp());
        // Far below the bandwidth limit, the limit has little effect. Far above, the limit
        // dominates.
        let up = sum(MEDIAN).hypot(self.crossing_ns(spot)) / sum(MEDIAN).max(1.0);
        std::array::from_fn(|i| (sum(i) * up).max(1.0).ln())
    }

    /// Returns the time in which all bytes in flight are
    /// transferred at the highest measured bandwidth, ns.
    fn crossing_ns(&self, spot: Spot) -> f64 {
        f64::from(spot.bytes) * f64::from(spot.under_way) * 1e9 / self.bandwidth
    }
}

const fn spot_of(probe: &Probe) -> Spot {
    Spot { bytes: probe.bytes, under_way: probe.depth }
}

/// Returns the known times along one axis in ascending order, each with the logarithm of its value
/// on this axis.
fn line(known: &[(Spot, Times)], on: impl Fn(&Spot) -> bool, by: impl Fn(&Spot) -> u32) -> Vec<(f64, &Times)> {
    let mut line: Vec<_> =
        known.iter().filter(|(spot, _)| on(spot)).map(|(spot, times)| (f64::from(by(spot)).ln(), times)).collect();
    line.sort_by(|a, b| a.0.total_cmp(&b.0));
    line
}

/// Interpolates the known times linearly. Beyond the last point, the times grow in proportion to
/// the value on the axis.
fn between(line: &[(f64, &Times)], at: f64) -> Times {
    let behind = line.partition_point(|(place, _)| *place <= at);
    match (behind.checked_sub(1).map(|i| line[i]), line.get(behind)) {
        (Some((from, times)), Some((to, next))) => {
            let part = (at - from) / (to - from);
            std::array::from_fn(|i| times[i] + part * (next[i] - times[i]))
        }
        (Some((last, times)), None) => times.map(|ln_ns| ln_ns + at - last),
        (None, Some((_, next))) => **next,
        (None, None) => [0.0; COUNT],
    }
}

/// Interpolates a full grid at any point, in the same way as the model does.
fn nearby(surface: &[(Spot, Times)], spot: Spot) -> Times {
    let mut sizes: Vec<u32> = surface.iter().map(|(known, _)| known.bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let rows: Vec<(f64, Times)> = sizes
        .into_iter()
        .map(|bytes| {
            let row = line(surface, |known| known.bytes == bytes, |known| known.under_way);
            (f64::from(bytes).ln(), between(&row, f64::from(spot.under_way).ln()))
        })
        .collect();
    let rows: Vec<(f64, &Times)> = rows.iter().map(|(at, times)| (*at, times)).collect();
    between(&rows, f64::from(spot.bytes).ln())
}

/// Returns the mean of the known points, weighted by the inverse distance (Shepard).
fn weighted(known: &[(Spot, Times)], spot: Spot) -> Times {
    let weights: Vec<f64> = known.iter().map(|(place, _)| place.distance2(spot).max(1e-4).powi(-2)).collect();
    let all = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    std::array::from_fn(|i| known.iter().zip(&weights).map(|((_, times), weight)| times[i] * weight).sum::<f64>() / all)
}

/// Returns a distribution at [`SHARES`]. A measurement rarely contains the largest value of the
/// distribution. The last point is therefore chosen so that the mean becomes `mean_ns`.
fn times(latency: &Histogram, mean_ns: Option<f64>) -> Times {
    let mut ns: [f64; COUNT] = SHARES.map(|share| (latency.quantile_ns(share) as f64).max(1.0));
    ns[0] = (latency.min_ns() as f64).clamp(1.0, ns[1]);
    let mean_ns = mean_ns.unwrap_or_else(|| latency.mean_ns());
    let part = |i: usize| (SHARES[i + 1] - SHARES[i]) / 2.0;
    let but_last: f64 = (0..COUNT - 1).map(|i| part(i) * (ns[i] + if i + 2 < COUNT { ns[i + 1] } else { 0.0 })).sum();
    let before = ns[COUNT - 2];
    let last = (mean_ns - but_last) / part(COUNT - 2);
    ns[COUNT - 1] = last.clamp(before, before * 50.0);
    // The remaining difference of the mean is spread over all points.
    let mean: f64 = (0..COUNT - 1).map(|i| part(i) * (ns[i] + ns[i + 1])).sum();
    ns.map(|value| (value * (mean_ns / mean).clamp(0.2, 5.0)).ln())
}

fn difference(times: &Times, other: &Times) -> Times {
    std::array::from_fn(|i| times[i] - other[i])
}

fn rising(mut times: Times) -> Times {
    for i in 1..COUNT {
        times[i] = times[i].max(times[i - 1]);
    }
    times
}

/// Returns the mean differences as factors. Empty without differences.
fn factors(differences: &[Times]) -> Vec<f64> {
    if differences.is_empty() {
        return Vec::new();
    }
    let mean = |i: usize| differences.iter().map(|difference| difference[i]).sum::<f64>() / differences.len() as f64;
    // Four decimals are significant.
    (0..COUNT).map(|i| (mean(i).exp().clamp(1.0 / FACTOR_MAX, FACTOR_MAX) * 1e4).round() / 1e4).collect()
}

fn written(cells: &[(Spot, Times)]) -> Vec<EmpiricalCell> {
    let ns = |times: &Times| times.iter().map(|ln_ns| ln_ns.exp().clamp(1.0, NS_MAX) as u64).collect();
    let cell = |(spot, times): &(Spot, Times)| EmpiricalCell {
        sectors: spot.bytes.div_ceil(512),
        under_way: spot.under_way,
        ns: ns(times),
    };
    cells.iter().map(cell).collect()
}
