//! Fits `hdd`.
//!
//! Reads close to each other differ only by the rotational position, so the width of their
//! latencies gives the time of a revolution. Rates across the disk give the zones. Reads of data
//! that was read ahead give the work per command. The seek curve follows from the mean latencies of
//! reads in regions of different sizes. Short runs of reads from random places, and backward reads,
//! show three properties: after which reads the disk reads ahead, how far, and which data it keeps.
//! Skews and the settle time of writes are assumed.

use iosched_disk::hdd::{
    InterfaceConfig, OverheadsConfig, QueueConfig, ReadAheadAfter, ReadAheadUntil, ReadCacheConfig, SeekConfig,
    SeekPoint, TrackOrder, WriteCacheConfig, ZoneConfig,
};
use iosched_disk::{HddConfig, Model};

use super::search::{Search, times};
use super::{Fit, single};
use crate::calibrate::error::CalibrateError;
use crate::calibrate::evidence::{Evidence, Measured};
use crate::calibrate::probe::Role;

/// Usual spindle speeds of disks, revolutions per minute.
const SPEEDS: [f64; 8] = [3_600.0, 4_200.0, 5_400.0, 5_900.0, 7_200.0, 10_000.0, 12_000.0, 15_000.0];
/// Largest relative difference between an estimate and the usual speed to which it is rounded.
const SPEED_TOLERANCE: f64 = 0.08;
/// Least mean latency of a rotating disk, ns.
const LATENCY_NS_MIN: f64 = 1_500_000.0;
/// Least ratio of the latency of distant reads to the latency of close reads.
const DISTANCE_RATIO_MIN: f64 = 1.1;
const HEADS: u32 = 2;
/// Work per command if no probe shows it, ns.
const COMMAND_NS: u64 = 60_000;
/// Rate of the link, bytes per second: SATA 6 Gb/s.
const LINK_BYTES_PER_SECOND: u64 = 550_000_000;
/// Time of a switch to the next track, as a share of a revolution. Assumed.
const SWITCH: f64 = 0.11;
/// Margin by which the skew exceeds the switch time, ns. Assumed.
const SKEW_MARGIN_NS: u64 = 30_000;
/// Means of the square root of the distance, and of the
/// distance, between two random points of a unit interval.
const MEAN_ROOT: f64 = 8.0 / 15.0;
const MEAN_DISTANCE: f64 = 1.0 / 3.0;
/// Number of rounds. Each round fits one part of the seek curve, and then the other.
const SEEK_ROUNDS: u32 = 200;
/// Kinds of read-ahead that are tried.
const AHEAD_AFTER: [ReadAheadAfter; 2] = [ReadAheadAfter::AnyRead, ReadAheadAfter::ContinuedRead];
const AHEAD_UNTIL: [ReadAheadUntil; 4] =
    [ReadAheadUntil::Distance, ReadAheadUntil::Track, ReadAheadUntil::NextTrack, ReadAheadUntil::Cylinder];
/// Distances of the seek table, as shares of all cylinders.
const TABLE: [f64; 9] = [1e-4, 1e-3, 5e-3, 0.02, 0.06, 0.15, 0.33, 0.66, 1.0];

fn model(config: HddConfig) -> Model {
    Model::Hdd(Box::new(config))
}

/// Returns the best model, or the reason why the device is no rotating disk.
pub(super) fn fit(evidence: &Evidence) -> Result<Fit, CalibrateError> {
    let mean_ns = single(evidence)?.latency.mean_ns();
    if mean_ns < LATENCY_NS_MIN {
        return Ok(Err("the reads are faster than the reads of any rotating disk"));
    }
    let mut distances: Vec<&Measured> = evidence.of_role(Role::Distance).collect();
    distances.sort_by_key(|measured| measured.probe.sectors);
    let (Some(near), Some(far)) = (distances.first(), distances.last()) else {
        return Ok(Err("the target is too small for a measurement of the seek time"));
    };
    if far.summary.mean_ns.median < near.summary.mean_ns.median * DISTANCE_RATIO_MIN {
        return Ok(Err("the time of a seek does not depend on its distance"));
    }
    let revolution_ns = revolution_ns(near);
    let Some(zones) = zones(evidence, revolution_ns) else {
        return Ok(Err("the measurements have no sequential reads"));
    };
    // Each distance probe covers a region. The smallest reads of the size probes cover the whole
    // disk, so they are one more point of the seek curve.
    distances.extend(evidence.of_role(Role::Size).min_by_key(|measured| measured.probe.bytes));
    let config = start(evidence, revolution_ns, zones, seek(&distances, revolution_ns, command_ns(evidence)));
    let mut search = Search::new(evidence, model, config, &[Role::Sequential])?;
    search
        .scale(scale_shortest)?
        .scale(|config, factor| config.head_switch_ns = times(config.head_switch_ns, factor))?
        .judged_by(&[Role::Place, Role::Sequential])?
        .scale(scale_tracks)?
        .judged_by(&[Role::Distance, Role::Size, Role::Think])?
        .scale(|config, factor| scale_seek(config, |_| factor))?
        .scale(|config, factor| scale_seek(config, |share| factor.powf(share)))?
        .scale(|config, factor| scale_seek(config, |share| factor.powf(1.0 - share)))?
        .scale(|config, factor| scale_seek(config, |share| factor.powf(4.0 * share * (1.0 - share))))?
        .judged_by(&[Role::Runs, Role::Sequential])?
        .among(&AHEAD_AFTER, |config, after| config.read_cache.read_ahead_after = after)?
        .among(&AHEAD_UNTIL, |config, until| config.read_cache.read_ahead_until = until)?
        .among(&[false, true], |config, on_arrival| config.read_cache.read_on_arrival = on_arrival)?
        .scale(scale_ahead)?
        .judged_by(&[Role::Sequential, Role::Size])?
        .scale(|config, factor| config.interface.command_ns = times(config.interface.command_ns, factor))?
        .judged_by(&[Role::Depth])?
        .scale(|config, factor| config.queue.starvation_ns = times(config.queue.starvation_ns, factor))?;
    if evidence.of_role(Role::Write).next().is_some() {
        search
            .judged_by(&[Role::Write, Role::Flush])?
            .scale(|config, factor| config.write_settle_ns = times(config.write_settle_ns, factor))?
            .scale(|config, factor| scale_count(&mut config.write_cache.extents, factor))?
            .scale(|config, factor| scale_count(&mut config.write_cache.sectors, factor))?;
    }
    Ok(Ok(model(search.into_best())))
}

fn scale_count(count: &mut u32, factor: f64) {
    *count = (f64::from(*count) * factor).round() as u32;
}

/// Returns the time of a revolution, ns. The latencies of close reads are evenly spread over a
/// revolution. The 5th and the 95th percentile are therefore nine tenths of a revolution apart.
fn revolution_ns(near: &Measured) -> f64 {
    let latency = &near.summary.latency;
    let estimate_ns = (latency.quantile_ns(0.95) - latency.quantile_ns(0.05)) as f64 / 0.9;
    let off = |speed: f64| (60e9 / speed / estimate_ns.max(1.0)).ln().abs();
    let nearest = SPEEDS.into_iter().min_by(|a, b| off(*a).total_cmp(&off(*b)));
    let revolution_ns = nearest.filter(|&speed| off(speed) < SPEED_TOLERANCE).map_or(estimate_ns, |speed| 60e9 / speed);
    // The model accepts 1,000 to 100,000 revolutions per minute.
    revolution_ns.clamp(6e5, 6e7)
}

/// Returns the time of a read from the cache without its data transfer, ns.
fn command_ns(evidence: &Evidence) -> u64 {
    let small = evidence.of_role(Role::Sequential).find(|measured| measured.probe.bytes == 4096);
    let hit_ns = small.map(|measured| measured.summary.p50_ns.median - 4096e9 / LINK_BYTES_PER_SECOND as f64);
    hit_ns.map_or(COMMAND_NS, |ns| (ns.max(1_000.0) as u64).min(2_000_000))
}

/// Returns zones of equal size between the places with known rates.
fn zones(evidence: &Evidence, revolution_ns: f64) -> Option<Vec<ZoneConfig>> {
    let mut places: Vec<&Measured> = evidence.of_role(Role::Place).collect();
    places.sort_by_key(|measured| measured.probe.start_sector);
    let rates: Vec<f64> =
        places.iter().map(|measured| measured.summary.iops.median * f64::from(measured.probe.bytes)).collect();
    let parts = rates.len().checked_sub(1).filter(|&parts| parts > 0)?;
    let sectors = evidence.target.capacity_sectors.div_ceil(parts as u64);
    let track_ns = revolution_ns * (1.0 + SWITCH) + SKEW_MARGIN_NS as f64;
    let zone_of_pair = |pair: &[f64]| zone(sectors, f64::midpoint(pair[0], pair[1]) * track_ns / 1e9 / 512.0);
    Some(rates.windows(2).map(zone_of_pair).collect())
}

/// Returns a zone of at least `sectors` sectors with tracks
/// of `sectors_per_track`, rounded down to 4 KiB blocks.
fn zone(sectors: u64, sectors_per_track: f64) -> ZoneConfig {
    let sectors_per_track = (sectors_per_track as u32 / 8 * 8).clamp(8, 65_536);
    let cylinders = sectors.div_ceil(u64::from(sectors_per_track) * u64::from(HEADS)) as u32;
    ZoneConfig { cylinders: cylinders.max(1), sectors_per_track, ..ZoneConfig::default() }
}

/// Multiplies the track lengths by `factor` and adapts the number of tracks.
fn scale_tracks(config: &mut HddConfig, factor: f64) {
    let sectors = config.capacity_sectors.div_ceil(config.zones.len() as u64);
    for stored in &mut config.zones {
        *stored = zone(sectors, f64::from(stored.sectors_per_track) * factor);
    }
}

/// Multiplies the read-ahead distance by `factor` and enlarges the segments to hold it.
fn scale_ahead(config: &mut HddConfig, factor: f64) {
    let cache = &mut config.read_cache;
    scale_count(&mut cache.read_ahead_sectors, factor);
    cache.segment_sectors = cache.segment_sectors.max(cache.read_ahead_sectors);
    cache.sequential_read_ahead_sectors = cache.sequential_read_ahead_sectors.min(cache.read_ahead_sectors);
}

/// Multiplies the shortest seek time by `factor`, up to the next seek time.
fn scale_shortest(config: &mut HddConfig, factor: f64) {
    if let SeekConfig::Table(points) = &mut config.seek {
        let next_ns = points.get(1).map_or(u64::MAX, |next| next.ns);
        points[0].ns = times(points[0].ns, factor).min(next_ns);
    }
}

/// Seek time in ns as a function of the distance, which is a share of the longest distance. It is
/// the sum of a constant, a term with the square root, and a linear term.
#[derive(Clone, Copy)]
struct Curve {
    shortest_ns: f64,
    root_ns: f64,
    line_ns: f64,
}

/// Returns the curve whose mean over each region is nearest to the measured latency, by least
/// squares. Neither term decreases with the distance.
fn seek(distances: &[&Measured], revolution_ns: f64, command_ns: u64) -> Curve {
    let all = distances.iter().map(|measured| measured.probe.sectors).max().unwrap_or(1) as f64;
    let points: Vec<(f64, f64, f64)> = distances
        .iter()
        .map(|measured| {
            let share = measured.probe.sectors as f64 / all;
            let seek_ns = measured.summary.mean_ns.median - revolution_ns / 2.0 - command_ns as f64;
            (share.sqrt() * MEAN_ROOT, share * MEAN_DISTANCE, seek_ns)
        })
        .collect();
    // The two terms are fitted in turn. Each term is fitted to the residuals of the other term.
    let (mut shortest_ns, mut root_ns, mut line_ns) = (0.0f64, 0.0f64, 0.0f64);
    for _ in 0..SEEK_ROUNDS {
        let rest: Vec<(f64, f64)> = points.iter().map(|&(root, far, ns)| (root, ns - line_ns * far)).collect();
        root_ns = line(&rest).1.max(0.0);
        let rest: Vec<(f64, f64)> = points.iter().map(|&(root, far, ns)| (far, ns - root_ns * root)).collect();
        (shortest_ns, line_ns) = line(&rest);
        line_ns = line_ns.max(0.0);
    }
    Curve { shortest_ns: shortest_ns.max(revolution_ns / 20.0), root_ns, line_ns }
}

/// Returns the intercept and the slope of the least-squares line.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let (x_mean, y_mean) =
        (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let spread: f64 = points.iter().map(|p| (p.0 - x_mean).powi(2)).sum();
    let rise: f64 = points.iter().map(|p| (p.0 - x_mean) * (p.1 - y_mean)).sum();
    let slope = if spread > 0.0 { rise / spread } else { 0.0 };
    (y_mean - slope * x_mean, slope)
}

/// Returns a seek table: the shortest seek, and `ns` at each of `shares` of all cylinders.
pub(in crate::calibrate) fn seek_table(
    cylinders: u32,
    shortest_ns: u64,
    shares: &[f64],
    ns: impl Fn(f64) -> f64,
) -> SeekConfig {
    let mut table = vec![SeekPoint { cylinders: 1, ns: shortest_ns }];
    for &share in shares {
        let point = SeekPoint { cylinders: (f64::from(cylinders) * share) as u32, ns: ns(share) as u64 };
        if table.last().is_some_and(|last| last.cylinders < point.cylinders) {
            table.push(point);
        }
    }
    SeekConfig::Table(table)
}

fn start(evidence: &Evidence, revolution_ns: f64, zones: Vec<ZoneConfig>, curve: Curve) -> HddConfig {
    let target = &evidence.target;
    let cylinders: u32 = zones.iter().map(|zone| zone.cylinders).sum();
    let seek_ns = |share: f64| curve.shortest_ns + curve.root_ns * share.sqrt() + curve.line_ns * share;
    let seek = seek_table(cylinders, curve.shortest_ns as u64, &TABLE, seek_ns);
    HddConfig {
        capacity_sectors: target.capacity_sectors,
        depth: target.depth.clamp(1, 256),
        max_hw_sectors_kb: target.max_sectors_kb.max(4),
        fua: target.fua,
        rpm: 60e9 / revolution_ns,
        heads: HEADS,
        physical_block_bytes: 4096,
        track_order: TrackOrder::default(),
        head_switch_ns: (revolution_ns * SWITCH) as u64,
        write_settle_ns: (revolution_ns * SWITCH) as u64,
        write_to_read_ns: None,
        skew_margin_ns: SKEW_MARGIN_NS,
        seek,
        zones,
        interface: InterfaceConfig {
            command_ns: command_ns(evidence),
            bytes_per_second: LINK_BYTES_PER_SECOND,
            overheads: OverheadsConfig::default(),
        },
        queue: QueueConfig { starvation_ns: 1_000_000_000 },
        read_cache: ReadCacheConfig {
            segments: 32,
            segment_sectors: 2_048,
            read_ahead_sectors: 1_536,
            sequential_read_ahead_sectors: 256,
            read_ahead_after: ReadAheadAfter::AnyRead,
            read_ahead_until: ReadAheadUntil::Distance,
            read_on_arrival: false,
            replace_requested: true,
            keep_written: false,
        },
        write_cache: WriteCacheConfig {
            enabled: target.write_cache,
            sectors: 65_536,
            extents: 1_024,
            high_percent: 75,
            idle_ns: 20_000_000,
            destage_sectors: 1_024,
            flush_ns: 0,
        },
    }
}

/// Multiplies the seek times by `factor`. `factor` is a function of the square root of the seek
/// distance, as a share of the longest distance.
fn scale_seek(config: &mut HddConfig, factor: impl Fn(f64) -> f64) {
    let SeekConfig::Table(points) = &mut config.seek else { return };
    let longest = f64::from(points.last().map_or(1, |last| last.cylinders));
    for point in points {
        point.ns = times(point.ns, factor((f64::from(point.cylinders) / longest).sqrt()));
    }
}
