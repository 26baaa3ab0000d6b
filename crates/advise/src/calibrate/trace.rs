//! Fits a rotating disk to a trace of requests that the disk served one at a time.
//!
//! The model is fitted to the first half of the trace and judged by the second half. The rotational
//! position during the trace is unknown, so the fit compares distributions instead of single
//! requests. Each kind of request has its own distribution. A kind is an operation, read or write,
//! and a class of distances from the previous request. The measure is the root mean square of the
//! horizontal distances ([`Closeness`]) over all kinds.
//!
//! The search changes one parameter at a time. For a numeric parameter, the search tries a larger
//! and a smaller value. The step to these values grows after a success and shrinks after a failure.
//! For choices, such as the end of read-ahead, the search tries every value. Without an initial
//! profile, the search first tries the usual spindle speeds, with usual values for all other
//! parameters.
//!
//! Distributions do not identify every parameter: a faster spindle with
//! slower seeks may fit as well. The model predicts requests like those
//! of the trace. Its parameters can differ from the parameters of the real disk.

use iosched::{Op, Time};
use iosched_disk::disksim::Service;
use iosched_disk::hdd::{
    InterfaceConfig, OverheadsConfig, QueueConfig, ReadAheadAfter, ReadAheadUntil, ReadCacheConfig, SeekConfig,
    WriteCacheConfig, ZoneConfig,
};
use iosched_disk::{Command, Hdd, HddConfig, Model, Profile};
use iosched_lab::validate::{Closeness, serve_alone, validate};

use super::error::CalibrateError;
use super::fit::seek_table;

/// Least number of requests for a fit.
const REQUESTS_MIN: usize = 200;
/// Spindle speeds that the search starts with, revolutions per minute.
const SPEEDS: [f64; 10] = [3_600.0, 4_000.0, 4_500.0, 5_400.0, 5_900.0, 6_400.0, 7_200.0, 10_000.0, 12_000.0, 15_000.0];
/// Rounds over all parameters for each speed in the first pass.
const ROUNDS_FIRST: u32 = 8;
/// Number of speeds that remain after the first pass.
const SPEEDS_LEFT: usize = 3;
const ROUNDS: u32 = 24;
/// First step, and the least step. Steps are logarithms of the factor by which a parameter changes.
const STEP_FIRST: f64 = 0.25;
const STEP_LAST: f64 = 0.004;
/// Distances between requests that separate the kinds of requests, as shares of the disk. Distance
/// 0 is a separate kind.
const DISTANCES: [f64; 4] = [0.0005, 0.01, 0.1, 0.35];
/// Zones and heads of an unknown disk.
const ZONES: u32 = 6;
const HEADS: u32 = 8;
/// Distances of the seek table of an unknown disk, as shares of all cylinders.
const TABLE: [f64; 8] = [0.002, 0.01, 0.03, 0.08, 0.18, 0.35, 0.65, 1.0];

/// A model fitted to a trace.
#[derive(Clone, Debug)]
pub struct TraceFit {
    /// The fitted model.
    pub profile: Profile,
    /// Distance from the first half of the trace, to which the model was fitted.
    pub fitted: Closeness,
    /// Distance from the second half, which the fit did not use.
    pub held_out: Closeness,
    /// Number of models that were tried.
    pub tried: u32,
}

/// Fits a rotating disk to the requests that it served. `start` is a profile of the disk; the fit
/// may change all its parameters. `watch` receives the number of models tried and the least
/// distance from the trace so far, ns. If `watch` returns `false`, the search ends with the best
/// model so far.
///
/// # Errors
/// There are too few requests, or `start` is not a rotating disk.
pub fn fit_trace(
    name: &str,
    trace: &str,
    services: &[Service],
    start: Option<&Profile>,
    mut watch: impl FnMut(u32, f64) -> bool,
) -> Result<TraceFit, CalibrateError> {
    check_length(trace, services)?;
    let half = services.len() / 2;
    let mut search = Search::new(&services[..half], &mut watch);
    let config = match start.map(Profile::model) {
        Some(Model::Hdd(config)) => search.refine((**config).clone(), ROUNDS).1,
        Some(other) => return Err(CalibrateError::Start { kind: other.kind() }),
        None => {
            let mut first: Vec<(f64, HddConfig)> = Vec::new();
            for rpm in SPEEDS {
                first.push(search.refine(unknown(services, rpm), ROUNDS_FIRST));
            }
            first.sort_by(|a, b| a.0.total_cmp(&b.0));
            first.truncate(SPEEDS_LEFT);
            let best = first.into_iter().map(|(_, config)| search.refine(config, ROUNDS));
            best.min_by(|a, b| a.0.total_cmp(&b.0)).map_or_else(|| unknown(services, SPEEDS[0]), |(_, config)| config)
        }
    };
    let tried = search.tried;
    let gigabytes = config.capacity_sectors as f64 * 512.0 / 1e9;
    let about = format!("{gigabytes:.1} GB, {:.0} rpm, fitted to a trace of {half} requests", config.rpm);
    let profile = Profile::of(name, &about, Model::Hdd(Box::new(config)), Vec::new())?;
    let [fitted, held_out] = judged_by_half(&profile, trace, services);
    Ok(TraceFit { profile, fitted, held_out, tried })
}

/// Kind of read-ahead that a trace shows.
#[derive(Clone, Copy, Debug)]
pub struct ReadAheadFound {
    /// Reads that start read-ahead.
    pub after: ReadAheadAfter,
    /// Distance of the model with this kind from the first half of the trace, ms.
    pub rms_ms: f64,
    /// Distance of the model with the other kind from the first half, ms.
    pub other_rms_ms: f64,
    /// Distance from the second half of the trace, which the choice did not use, ms.
    pub held_out_rms_ms: f64,
}

/// Finds out which reads start read-ahead, for the description of a disk that lacks this parameter.
/// Compares a model for each choice with the first half of the trace, and takes the closest model.
/// No other parameter changes.
///
/// # Errors
/// There are too few requests, or `config` is not valid.
pub fn find_read_ahead(
    config: &HddConfig,
    trace: &str,
    services: &[Service],
) -> Result<ReadAheadFound, CalibrateError> {
    check_length(trace, services)?;
    let halves = |after: ReadAheadAfter| -> Result<(ReadAheadAfter, [f64; 2]), CalibrateError> {
        let mut config = config.clone();
        config.read_cache.read_ahead_after = after;
        let profile = Profile::of(trace, "", Model::Hdd(Box::new(config)), Vec::new())?;
        Ok((after, judged_by_half(&profile, trace, services).map(|half| half.rms_ms)))
    };
    let (one, other) = (halves(ReadAheadAfter::AnyRead)?, halves(ReadAheadAfter::ContinuedRead)?);
    let (found, other) = if other.1[0] < one.1[0] { (other, one) } else { (one, other) };
    let (after, [rms_ms, held_out_rms_ms]) = found;
    Ok(ReadAheadFound { after, rms_ms, other_rms_ms: other.1[0], held_out_rms_ms })
}

/// Checks that a trace is long enough for a fit.
fn check_length(trace: &str, services: &[Service]) -> Result<(), CalibrateError> {
    if services.len() >= REQUESTS_MIN {
        return Ok(());
    }
    let missing = format!("a trace of at least {REQUESTS_MIN} requests ({trace} has only {})", services.len());
    Err(CalibrateError::Incomplete { missing })
}

/// Returns the distance of a model from the first and from the second half of a trace.
fn judged_by_half(profile: &Profile, trace: &str, services: &[Service]) -> [Closeness; 2] {
    let half = services.len() / 2;
    let mut first = validate(profile, trace, services, 1);
    let mut second = first.clone();
    second.served.drain(..half);
    first.served.truncate(half);
    [first.overall(), second.overall()]
}

/// Returns the starting configuration of a disk that
/// turns at `rpm` and is known only from its trace.
fn unknown(services: &[Service], rpm: f64) -> HddConfig {
    let revolution_ns = 60e9 / rpm;
    let capacity_sectors = end_sector(services);
    // The additional time per sector of a request gives the number of sectors per track.
    let sector_ns = slope(services).clamp(revolution_ns / 20_000.0, revolution_ns / 16.0);
    let sectors_per_track = (revolution_ns / sector_ns).clamp(16.0, 20_000.0);
    let zones: Vec<ZoneConfig> = (0..ZONES)
        .map(|zone| {
            let tilt = 1.2 - 0.4 * f64::from(zone) / f64::from(ZONES - 1);
            zone_of(capacity_sectors, sectors_per_track * tilt)
        })
        .collect();
    let cylinders: u32 = zones.iter().map(|zone| zone.cylinders).sum();
    let seek = seek_table(cylinders, 2_000_000, &TABLE, |share| 3e6 + 14e6 * share.sqrt());
    HddConfig {
        capacity_sectors,
        depth: 1,
        max_hw_sectors_kb: 32_767,
        fua: false,
        rpm,
        heads: HEADS,
        physical_block_bytes: 512,
        track_order: iosched_disk::hdd::TrackOrder::default(),
        head_switch_ns: 1_500_000,
        write_settle_ns: 500_000,
        write_to_read_ns: Some(1_000_000),
        skew_margin_ns: 100_000,
        seek,
        zones,
        interface: InterfaceConfig {
            command_ns: 500_000,
            bytes_per_second: 10_000_000,
            overheads: OverheadsConfig {
                read_hit_ns: Some([500_000; 2]),
                read_miss_ns: Some([500_000; 2]),
                write_hit_ns: Some([500_000; 2]),
                write_miss_ns: Some([500_000; 2]),
            },
        },
        queue: QueueConfig { starvation_ns: 1_000_000_000 },
        read_cache: ReadCacheConfig {
            segments: 4,
            segment_sectors: 256,
            read_ahead_sectors: 256,
            sequential_read_ahead_sectors: 0,
            read_ahead_after: ReadAheadAfter::AnyRead,
            read_ahead_until: ReadAheadUntil::Distance,
            read_on_arrival: false,
            replace_requested: true,
            keep_written: false,
        },
        write_cache: WriteCacheConfig {
            enabled: false,
            sectors: 256,
            extents: 16,
            high_percent: 75,
            idle_ns: 20_000_000,
            destage_sectors: 256,
            flush_ns: 0,
        },
    }
}

fn end_sector(services: &[Service]) -> u64 {
    services.iter().map(|service| service.sector + u64::from(service.nr_sectors)).max().unwrap_or(1)
}

/// Returns one of [`ZONES`] zones with tracks of `sectors_per_track`.
fn zone_of(capacity_sectors: u64, sectors_per_track: f64) -> ZoneConfig {
    let sectors_per_track = sectors_per_track.round().clamp(8.0, 65_536.0) as u32;
    let cylinders = capacity_sectors.div_ceil(u64::from(ZONES * HEADS * sectors_per_track));
    ZoneConfig { cylinders: cylinders.max(1) as u32 + 1, sectors_per_track, ..ZoneConfig::default() }
}

/// Returns the additional time per sector of a request, ns, by least squares.
fn slope(services: &[Service]) -> f64 {
    let count = services.len() as f64;
    let size = |service: &Service| f64::from(service.nr_sectors);
    let size_mean = services.iter().map(size).sum::<f64>() / count;
    let ns_mean = services.iter().map(|service| service.service_ns as f64).sum::<f64>() / count;
    let spread: f64 = services.iter().map(|service| (size(service) - size_mean).powi(2)).sum();
    let rise: f64 =
        services.iter().map(|service| (size(service) - size_mean) * (service.service_ns as f64 - ns_mean)).sum();
    if spread > 0.0 { rise / spread } else { 0.0 }
}

// ---- parameters

/// Function that multiplies a parameter by a factor.
type Scale = fn(&mut HddConfig, f64);
/// Function that sets a choice to its value with a given number. Returns `false` if there is no
/// such value.
type Choose = fn(&mut HddConfig, usize) -> bool;

fn ns(value: &mut u64, factor: f64) {
    *value = ((*value).max(1_000) as f64 * factor).round() as u64;
}

fn both(value: &mut Option<[u64; 2]>, default_ns: u64, which: usize, factor: f64) {
    let pair = value.get_or_insert([default_ns; 2]);
    ns(&mut pair[which], factor);
}

fn count(value: &mut u32, factor: f64) {
    let next = (f64::from(*value) * factor).round() as u32;
    *value = if next == *value { if factor > 1.0 { next + 1 } else { next.saturating_sub(1) } } else { next }.max(1);
}

/// Multiplies seek times by `factor`, a function of the position in the table, from 0 to 1.
fn seek(config: &mut HddConfig, factor: impl Fn(f64) -> f64) {
    match &mut config.seek {
        SeekConfig::Table(points) => {
            let last = (points.len().max(2) - 1) as f64;
            let mut least_ns = 0;
            for (number, point) in points.iter_mut().enumerate() {
                point.ns = ((point.ns as f64 * factor(number as f64 / last)) as u64).max(least_ns);
                least_ns = point.ns;
            }
        }
        SeekConfig::Formula(formula) => {
            formula.near_ns *= factor(0.0);
            formula.near_root_ns *= factor(0.5);
            formula.far_ns *= factor(0.5);
            formula.far_cylinder_ns *= factor(1.0);
        }
    }
}

/// Multiplies the track lengths by `factor`, and adapts the number of cylinders. `factor` is a
/// function of the position of the zone, from 0 for the first zone to 1 for the last.
fn tracks(config: &mut HddConfig, factor: impl Fn(f64) -> f64) {
    let last = (config.zones.len().max(2) - 1) as f64;
    for (number, zone) in config.zones.iter_mut().enumerate() {
        let (cylinders, sectors) = (f64::from(zone.cylinders), f64::from(zone.sectors_per_track));
        let wanted = (sectors * factor(number as f64 / last)).round().clamp(8.0, 65_536.0);
        zone.sectors_per_track = wanted as u32;
        zone.cylinders = (cylinders * sectors / wanted).ceil().max(1.0) as u32;
    }
    fill(config);
}

/// Gives the last zone all cylinders that the other zones do not have.
fn fill(config: &mut HddConfig) {
    let heads = u64::from(config.heads);
    let Some((last, others)) = config.zones.split_last_mut() else { return };
    let zoned_sectors: u64 =
        others.iter().map(|zone| u64::from(zone.cylinders) * heads * u64::from(zone.sectors_per_track)).sum();
    let rest = config.capacity_sectors.saturating_sub(zoned_sectors).max(1);
    last.cylinders = rest.div_ceil(heads * u64::from(last.sectors_per_track)).max(1) as u32 + 1;
}

fn heads(config: &mut HddConfig, factor: f64) {
    let before = f64::from(config.heads);
    count(&mut config.heads, factor);
    let share = before / f64::from(config.heads);
    for zone in &mut config.zones {
        zone.cylinders = (f64::from(zone.cylinders) * share).ceil().max(1.0) as u32;
    }
    fill(config);
    if let SeekConfig::Table(points) = &mut config.seek {
        for point in points.iter_mut().skip(1) {
            point.cylinders = ((f64::from(point.cylinders) * share) as u32).max(1);
        }
        points.dedup_by_key(|point| point.cylinders);
    }
}

/// The numeric parameters.
const SCALES: &[Scale] = &[
    // The usual speeds are accurate to about one per cent.
    |config, factor| config.rpm *= factor.powf(0.02),
    |config, factor| seek(config, |_| factor),
    |config, factor| seek(config, |place| factor.powf(place)),
    |config, factor| seek(config, |place| factor.powf(1.0 - place)),
    |config, factor| seek(config, |place| factor.powf(4.0 * place * (1.0 - place))),
    |config, factor| seek(config, |place| if place == 0.0 { factor } else { 1.0 }),
    |config, factor| tracks(config, |_| factor),
    |config, factor| tracks(config, |place| factor.powf(0.5 - place)),
    |config, factor| both(&mut config.interface.overheads.read_hit_ns, config.interface.command_ns, 0, factor),
    |config, factor| both(&mut config.interface.overheads.read_hit_ns, config.interface.command_ns, 1, factor),
    |config, factor| both(&mut config.interface.overheads.read_miss_ns, config.interface.command_ns, 0, factor),
    |config, factor| both(&mut config.interface.overheads.read_miss_ns, config.interface.command_ns, 1, factor),
    |config, factor| both(&mut config.interface.overheads.write_hit_ns, config.interface.command_ns, 0, factor),
    |config, factor| both(&mut config.interface.overheads.write_hit_ns, config.interface.command_ns, 1, factor),
    |config, factor| both(&mut config.interface.overheads.write_miss_ns, config.interface.command_ns, 0, factor),
    |config, factor| both(&mut config.interface.overheads.write_miss_ns, config.interface.command_ns, 1, factor),
    |config, factor| {
        config.interface.bytes_per_second = (config.interface.bytes_per_second as f64 * factor).round() as u64;
    },
    |config, factor| ns(&mut config.head_switch_ns, factor),
    |config, factor| ns(&mut config.write_settle_ns, factor),
    |config, factor| ns(config.write_to_read_ns.get_or_insert(1_000_000), factor),
    |config, factor| ns(&mut config.skew_margin_ns, factor),
    heads,
    |config, factor| count(&mut config.read_cache.segments, factor),
    |config, factor| {
        count(&mut config.read_cache.segment_sectors, factor);
        let cache = &mut config.read_cache;
        cache.read_ahead_sectors = cache.read_ahead_sectors.min(cache.segment_sectors);
    },
    |config, factor| {
        count(&mut config.read_cache.read_ahead_sectors, factor);
        let cache = &mut config.read_cache;
        cache.segment_sectors = cache.segment_sectors.max(cache.read_ahead_sectors);
    },
    |config, factor| count(&mut config.write_cache.sectors, factor),
];

/// The parameters with a list of values.
const CHOICES: &[Choose] = &[
    |config, number| {
        use ReadAheadAfter::{AnyRead, ContinuedRead};
        [AnyRead, ContinuedRead].get(number).map(|choice| config.read_cache.read_ahead_after = *choice).is_some()
    },
    |config, number| {
        use ReadAheadUntil::{Cylinder, Distance, NextTrack, Track};
        let all = [Distance, Track, NextTrack, Cylinder];
        all.get(number).map(|choice| config.read_cache.read_ahead_until = *choice).is_some()
    },
    |config, number| [false, true].get(number).map(|choice| config.read_cache.read_on_arrival = *choice).is_some(),
    |config, number| [true, false].get(number).map(|choice| config.read_cache.replace_requested = *choice).is_some(),
    |config, number| [false, true].get(number).map(|choice| config.read_cache.keep_written = *choice).is_some(),
    |config, number| [false, true].get(number).map(|choice| config.write_cache.enabled = *choice).is_some(),
];

// ---- the search

/// Search for the parameters with which a model is nearest to the requests.
struct Search<'a, W> {
    services: &'a [Service],
    /// The kind of each request. `measured` has the sorted times of each kind, ns.
    kinds: Vec<usize>,
    measured: Vec<Vec<u64>>,
    simulated: Vec<Vec<u64>>,
    tried: u32,
    least: f64,
    stopped: bool,
    watch: &'a mut W,
}

impl<'a, W: FnMut(u32, f64) -> bool> Search<'a, W> {
    fn new(services: &'a [Service], watch: &'a mut W) -> Self {
        let kinds = kinds(services);
        let count = 2 * (DISTANCES.len() + 2);
        let mut measured = vec![Vec::new(); count];
        for (service, kind) in services.iter().zip(&kinds) {
            measured[*kind].push(service.service_ns);
        }
        measured.iter_mut().for_each(|times: &mut Vec<u64>| times.sort_unstable());
        let simulated = vec![Vec::new(); count];
        Self { services, kinds, measured, simulated, tried: 0, least: f64::INFINITY, stopped: false, watch }
    }

    /// Returns the distance of a model from the measurement, ns. Infinite for invalid parameters.
    fn distance(&mut self, config: &HddConfig) -> f64 {
        let Ok(mut disk) = Hdd::new(config) else { return f64::INFINITY };
        self.tried += 1;
        self.simulated.iter_mut().for_each(Vec::clear);
        let mut now = Time::ZERO;
        for (service, kind) in self.services.iter().zip(&self.kinds) {
            let &Service { op, sector, nr_sectors, .. } = service;
            let done = serve_alone(&mut disk, now, Command { tag: 0, op, sector, nr_sectors, fua: false });
            self.simulated[*kind].push(done.since(now));
            now = done + service.next_ns;
        }
        let mut sum = 0.0;
        for (measured, simulated) in self.measured.iter().zip(&mut self.simulated) {
            simulated.sort_unstable();
            sum += measured.iter().zip(simulated).map(|(a, b)| (*a as f64 - *b as f64).powi(2)).sum::<f64>();
        }
        let distance = (sum / self.services.len() as f64).sqrt();
        if distance < self.least {
            self.least = distance;
        }
        self.stopped |= !(self.watch)(self.tried, self.least);
        distance
    }

    /// Changes `config` in small steps for as long as it improves. Returns the distance and the
    /// result.
    fn refine(&mut self, mut config: HddConfig, rounds: u32) -> (f64, HddConfig) {
        let mut least = self.distance(&config);
        let mut steps = vec![STEP_FIRST; SCALES.len()];
        for _ in 0..rounds {
            for choose in CHOICES {
                let mut number = 0;
                loop {
                    let mut other = config.clone();
                    if !choose(&mut other, number) || self.stopped {
                        break;
                    }
                    number += 1;
                    if other != config {
                        self.take_if_better(other, &mut config, &mut least);
                    }
                }
            }
            for (scale, step) in SCALES.iter().zip(&mut steps) {
                if *step < STEP_LAST || self.stopped {
                    continue;
                }
                let tried = [*step, -*step].into_iter().any(|change| {
                    let mut other = config.clone();
                    scale(&mut other, change.exp());
                    self.take_if_better(other, &mut config, &mut least)
                });
                *step *= if tried { 1.3 } else { 0.5 };
            }
            if self.stopped || steps.iter().all(|step| *step < STEP_LAST) {
                break;
            }
        }
        (least, config)
    }

    fn take_if_better(&mut self, other: HddConfig, config: &mut HddConfig, least: &mut f64) -> bool {
        let distance = self.distance(&other);
        let better = distance < *least;
        if better {
            (*config, *least) = (other, distance);
        }
        better
    }
}

/// Returns the kind of each request, by its operation and its distance from the previous request.
fn kinds(services: &[Service]) -> Vec<usize> {
    let capacity = end_sector(services) as f64;
    let mut end = None;
    let kind = |service: &Service| {
        let distance =
            end.replace(service.sector + u64::from(service.nr_sectors)).map(|end: u64| end.abs_diff(service.sector));
        let class = match distance {
            Some(0) => 0,
            Some(sectors) => 1 + DISTANCES.iter().filter(|share| sectors as f64 > **share * capacity).count(),
            None => 1 + DISTANCES.len(),
        };
        2 * class + usize::from(service.op == Op::Write)
    };
    services.iter().map(kind).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_numbers::SplitMix64;

    /// Returns requests with their times on a disk of a
    /// profile: reads, some of them sequential, and writes.
    fn served(name: &str, count: usize) -> Vec<Service> {
        let profile = Profile::named(name).unwrap();
        let mut random = SplitMix64::entity(7, 1);
        let mut sector = 0;
        let capacity = profile.card().capacity_sectors;
        let requests: Vec<Service> = (0..count)
            .map(|_| {
                let op = if random.below(3) == 0 { Op::Write } else { Op::Read };
                let nr_sectors = 2 + 2 * random.below(30) as u32;
                sector = match random.below(4) {
                    0 => sector,
                    1 => (sector + random.below(4_000)).min(capacity - 200),
                    _ => random.below(capacity - 200),
                };
                let service = Service { op, sector, nr_sectors, service_ns: 0, next_ns: random.below(20_000_000) };
                sector = (sector + u64::from(nr_sectors)).min(capacity - 200);
                service
            })
            .collect();
        let validation = validate(&profile, "made", &requests, 3);
        validation.served.iter().map(|served| Service { service_ns: served.simulated_ns, ..served.service }).collect()
    }

    #[test]
    fn disk_model_is_fitted_from_a_trace_without_a_profile() {
        let services = served("barracuda", 800);
        let fit = fit_trace("x.toml", "made", &services, None, |_, _| true).unwrap();
        let share = |closeness: &Closeness| closeness.rms_ms / closeness.measured_mean_ms;
        assert!(share(&fit.held_out) < 0.08, "{:.3} of the mean", share(&fit.held_out));
        assert!(fit.fitted.requests == 400 && fit.held_out.requests == 400);
    }

    #[test]
    fn fit_corrects_a_wrong_kind_of_read_ahead() {
        let services = served("atlas_III", 800);
        let profile = Profile::named("atlas_III").unwrap();
        let Model::Hdd(config) = profile.model() else { panic!("a rotating disk") };
        let mut wrong = (**config).clone();
        assert_eq!(wrong.read_cache.read_ahead_after, ReadAheadAfter::ContinuedRead);
        wrong.read_cache.read_ahead_after = ReadAheadAfter::AnyRead;
        let wrong = Profile::of("wrong", "wrong", Model::Hdd(Box::new(wrong)), Vec::new()).unwrap();
        let fit = fit_trace("x.toml", "made", &services, Some(&wrong), |_, _| true).unwrap();
        let Model::Hdd(found) = fit.profile.model() else { panic!("a rotating disk") };
        assert_eq!(found.read_cache.read_ahead_after, ReadAheadAfter::ContinuedRead);
    }

    #[test]
    fn kind_of_read_ahead_is_found_from_a_trace() {
        for (name, expected) in [("atlas_III", ReadAheadAfter::ContinuedRead), ("cheetah9LP", ReadAheadAfter::AnyRead)]
        {
            let services = served(name, 800);
            let Model::Hdd(config) = Profile::named(name).unwrap().model().clone() else { panic!("a rotating disk") };
            for given in [ReadAheadAfter::AnyRead, ReadAheadAfter::ContinuedRead] {
                let mut config = (*config).clone();
                config.read_cache.read_ahead_after = given;
                let found = find_read_ahead(&config, "made", &services).unwrap();
                assert_eq!(found.after, expected, "{name}: {found:?}");
                assert!(found.rms_ms < found.other_rms_ms, "{name}: {found:?}");
            }
            assert!(find_read_ahead(&config, "made", &services[..100]).is_err());
        }
    }

    #[test]
    fn too_few_requests_and_ssd_profiles_are_errors() {
        let services = served("barracuda", 50);
        let error = fit_trace("x.toml", "t", &services, None, |_, _| true).unwrap_err().to_string();
        assert!(error.contains("200 requests"), "{error}");
        let services = served("barracuda", 300);
        let ssd = Profile::named("nvme").unwrap();
        let error = fit_trace("x.toml", "t", &services, Some(&ssd), |_, _| true).unwrap_err().to_string();
        assert!(error.contains("rotating disk"), "{error}");
    }
}
