//! Fits `server`.
//!
//! The least latency of a single 4 KiB read in flight is service and transit. Longer latencies of
//! such reads give the spread. The highest read rate and the number of servers give the busy time
//! of a server. Probes at several depths give the number of servers, the part of the spread that
//! delays other commands, and whether the order is random. If the latency rises evenly with the
//! depth from depth 1, the fit also tries a model with one server that takes commands in batches.

use iosched_disk::QuantilePoint;
use iosched_disk::server::{ServerBatch, ServerMissedTurns, ServerStalls, ServerTimes};
use iosched_disk::{Model, ServerConfig};
use iosched_sim::Histogram;

use super::credits::credits;
use super::rest::rest;
use super::search::{Search, times};
use super::{Fit, Single, bandwidth, below, bytes_per_second, mean_ns, median_slope, most_iops, single};
use crate::calibrate::error::CalibrateError;
use crate::calibrate::evidence::Evidence;
use crate::calibrate::probe::Role;

/// Numbers of servers that are tried.
const SERVERS: [u32; 14] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];
/// Number of candidates, each with a number of servers, that are refined.
const REFINED: usize = 2;
/// Values that the search tries for commands that miss their turn: the share of such commands, and
/// the number of commands that pass them.
const MISSED_SHARES: [f64; 6] = [0.03, 0.06, 0.1, 0.15, 0.2, 0.3];
const BEHIND: [u32; 6] = [2, 4, 8, 16, 32, 64];
/// Sizes of pieces that are tried, sectors.
const PIECES: [Option<u32>; 6] = [None, Some(128), Some(256), Some(512), Some(1024), Some(2048)];
/// Shares of the distribution at which the spread is stored.
const SHARES: [f64; 17] = [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 1.0];
/// Quantile that counts as the least latency. Single I/Os can be faster by chance.
const LEAST_SHARE: f64 = 0.02;
/// A stall is a rare latency above both this multiple
/// of the median and this margin over the median.
const STALL_TIMES: u64 = 8;
const STALL_NS_MIN: u64 = 300_000;
const STALLS_MIN: u64 = 8;
const STALLS_SHARE_MAX: f64 = 0.006;

const READS: [Role; 5] = [Role::Depth, Role::Size, Role::Bandwidth, Role::Sequential, Role::Distance];

fn model(config: ServerConfig) -> Model {
    Model::Server(Box::new(config))
}

/// Returns the best model.
pub(super) fn fit(evidence: &Evidence) -> Result<Fit, CalibrateError> {
    let start = start(evidence)?;
    // Highest rate that the device would have without stalls, I/Os per second.
    let most_iops = most_iops(evidence)? * (1.0 + start.stalls.as_ref().map_or(0.0, stalled));
    let mut found = Vec::new();
    let fixed_ns = start.read.service_ns;
    let extra_ns = mean_ns(&start.read.extra);
    for servers in SERVERS.into_iter().filter(|&servers| servers <= start.depth) {
        let busy_ns = f64::from(servers) * 1e9 / most_iops - extra_ns * start.read.extra_in_service;
        let mut config = ServerConfig { servers, ..start.clone() };
        config.read.service_ns = fixed_ns.min(busy_ns.max(0.0) as u64);
        config.read.transit_ns = fixed_ns - config.read.service_ns;
        found.push(Search::new(evidence, model, config, &[Role::Depth, Role::Distance])?);
        // With more servers, some servers would never be busy.
        if busy_ns > 2.0 * fixed_ns as f64 {
            break;
        }
    }
    found.sort_by(|a, b| a.miss().total_cmp(&b.miss()));
    found.truncate(REFINED);
    if let Some(config) = together(evidence, &start)? {
        found.push(Search::new(evidence, model, config, &[Role::Depth, Role::Distance])?);
    }
    found.iter_mut().try_for_each(refine)?;
    let Some(mut search) = found.into_iter().min_by(|a, b| a.miss().total_cmp(&b.miss())) else {
        return Ok(Err("no values of the parameters give a valid model"));
    };
    refine(&mut search)?;
    if evidence.of_role(Role::Write).next().is_some() {
        fit_writes(evidence, &mut search)?;
    }
    Ok(Ok(model(search.into_best())))
}

/// Returns the parameters that the probes show directly,
/// with one server that is busy for the whole read.
fn start(evidence: &Evidence) -> Result<ServerConfig, CalibrateError> {
    let single = single(evidence)?;
    let target = &evidence.target;
    let slope = bytes_per_second(evidence);
    let stalls = stalls(&single);
    let usual_ns = if stalls.is_some() { stall_ns(&single.latency) } else { u64::MAX };
    let data_ns = slope.map_or(0.0, |rate| f64::from(single.bytes) * 1e9 / rate);
    let least_ns = single.latency.quantile_ns(LEAST_SHARE);
    let rate = |bytes_per_second: f64| (bytes_per_second as u64).clamp(10_000, 1_000_000_000_000);
    let link = bandwidth(evidence) * 1.05;
    // A byte passes through the server and then through the link.
    let server_slope = slope.map(|both| 1.0 / both - 1.0 / link).filter(|&server_slope| server_slope > 0.0);
    let bytes_per_second = server_slope.map(|server_slope| rate(1.0 / server_slope));
    Ok(ServerConfig {
        capacity_sectors: target.capacity_sectors,
        depth: target.depth.max(1),
        hw_queues: 1,
        command_slots: None,
        max_hw_sectors_kb: target.max_sectors_kb.max(4),
        rotational: target.rotational,
        write_cache: target.write_cache,
        fua: target.fua,
        servers: 1,
        choice: 1,
        missed_turns: None,
        batch: None,
        piece_sectors: None,
        link_bytes_per_second: Some(rate(link)),
        flush_ns: 0,
        read: ServerTimes {
            transit_ns: 0,
            service_ns: least_ns.saturating_sub(data_ns as u64),
            bytes_per_second,
            extra_in_service: 0.5,
            extra: spread(&single.latency, least_ns, usual_ns),
        },
        write: None,
        random_read: None,
        random_write: None,
        stalls,
        settling: None,
        write_servers: None,
        rest: rest(evidence, usual_ns),
        credits: credits(evidence),
    })
}

/// Returns the configuration of one server that takes commands in batches. The service time is the
/// slope of the latency over the depth. The rest of the latency is gathering and transit. `None` if
/// the latency does not rise with the depth.
fn together(evidence: &Evidence, start: &ServerConfig) -> Result<Option<ServerConfig>, CalibrateError> {
    let depths = evidence.needed(Role::Depth)?;
    let medians: Vec<(f64, f64)> =
        depths.iter().map(|measured| (f64::from(measured.probe.depth), measured.summary.p50_ns.median)).collect();
    let Some(each_ns) = median_slope(&medians).filter(|&each_ns| each_ns >= 1.0) else { return Ok(None) };
    let data_ns = bytes_per_second(evidence).map_or(0.0, |rate| f64::from(depths[0].probe.bytes) * 1e9 / rate);
    let mut config = start.clone();
    let fixed_ns = config.read.service_ns;
    config.read.service_ns = ((each_ns - data_ns).max(0.0) as u64).min(fixed_ns);
    let rest_ns = fixed_ns - config.read.service_ns;
    config.batch = Some(ServerBatch { commands: start.depth, gather_ns: (rest_ns / 2).max(1) });
    config.read.transit_ns = rest_ns / 2;
    Ok(Some(config))
}

/// Returns the amounts by which latencies below `below_ns` exceed `least_ns`, at each of
/// [`SHARES`].
fn spread(latency: &Histogram, least_ns: u64, below_ns: u64) -> Vec<QuantilePoint> {
    let usual = below(latency, below_ns);
    let mut points: Vec<QuantilePoint> = SHARES
        .map(|share| QuantilePoint { share, ns: usual.quantile_ns(share).saturating_sub(least_ns) })
        .into_iter()
        .collect();
    if let Some(last) = points.last_mut() {
        last.ns = usual.max_ns().saturating_sub(least_ns).max(last.ns);
    }
    // A point between two equal neighbours is not needed.
    let says = |i: usize| {
        let ns = |i: usize| points.get(i).map(|point| point.ns);
        i == 0 || ns(i - 1) != ns(i) || ns(i + 1) != ns(i)
    };
    (0..points.len()).filter(|&i| says(i)).map(|i| points[i]).collect()
}

/// Returns the least latency that counts as a stall, ns.
fn stall_ns(latency: &Histogram) -> u64 {
    let median_ns = latency.quantile_ns(0.5);
    (STALL_TIMES * median_ns).max(median_ns + STALL_NS_MIN)
}

/// Returns the stalls: rare latencies far above all others, during which the device serves nothing.
fn stalls(single: &Single) -> Option<ServerStalls> {
    let latency = &single.latency;
    let (median_ns, from_ns) = (latency.quantile_ns(0.5), stall_ns(latency));
    let mut lengths = Histogram::default();
    for (first_ns, width_ns, count) in latency.buckets().filter(|&(first_ns, ..)| first_ns >= from_ns) {
        (0..count).for_each(|_| lengths.record(first_ns + width_ns / 2 - median_ns));
    }
    let count = lengths.count();
    if count < STALLS_MIN || count as f64 > latency.count() as f64 * STALLS_SHARE_MAX {
        return None;
    }
    let between_ns = single.counted_ns / count;
    let every_ns = between_ns.saturating_sub(lengths.mean_ns() as u64).max(1_000);
    Some(ServerStalls { every_ns, length: spread(&lengths, 0, u64::MAX) })
}

/// Returns the ratio of the time in stalls to the time between them.
fn stalled(stalls: &ServerStalls) -> f64 {
    mean_ns(&stalls.length) / stalls.every_ns as f64
}

/// Refines all parameters but the number of servers, one after another.
fn refine(search: &mut Search<'_, ServerConfig>) -> Result<(), CalibrateError> {
    let depth = search.best().depth;
    let choices: Vec<u32> = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128].into_iter().filter(|&n| n <= depth).collect();
    search.judged_by(&[Role::Depth])?;
    if search.best().batch.is_some() {
        search.among(&choices, |config, most| config.batch.iter_mut().for_each(|batch| batch.commands = most))?.scale(
            |config, factor| {
                config.batch.iter_mut().for_each(|batch| batch.gather_ns = times(batch.gather_ns, factor).max(1));
            },
        )?;
    } else {
        // Either the next command is chosen at random, or commands miss turns.
        let missed = MISSED_SHARES.iter().flat_map(|&share| BEHIND.map(|behind| ServerMissedTurns { share, behind }));
        let missed: Vec<_> = missed.filter(|missed| missed.behind <= depth).collect();
        search
            .among(&choices, |config, choice| (config.choice, config.missed_turns) = (choice, None))?
            .among(&missed, |config, missed| (config.choice, config.missed_turns) = (1, Some(missed)))?;
    }
    search
        .among(&[0.0, 0.1, 0.25, 0.5, 0.75, 1.0], |config, share| config.read.extra_in_service = share)?
        .scale(|config, factor| config.read.service_ns = times(config.read.service_ns, factor))?
        .judged_by(&[Role::Depth, Role::Distance])?
        .scale(|config, factor| config.read.transit_ns = times(config.read.transit_ns, factor))?
        .judged_by(&[Role::Size, Role::Bandwidth, Role::Sequential])?
        .among(&PIECES, |config, piece| config.piece_sectors = piece)?
        .scale(|config, factor| scale_rate(&mut config.read.bytes_per_second, factor))?
        .scale(|config, factor| scale_rate(&mut config.link_bytes_per_second, factor))?
        .judged_by(&READS)?
        .scale(|config, factor| config.read.service_ns = times(config.read.service_ns, factor))?
        .scale(|config, factor| config.read.extra.iter_mut().for_each(|point| point.ns = times(point.ns, factor)))?;
    Ok(())
}

fn scale_rate(rate: &mut Option<u64>, factor: f64) {
    *rate = rate.map(|rate| times(rate, factor));
}

/// Fits the writes. The search starts with the parameters of reads. The time of a flush is the
/// measured time.
fn fit_writes(evidence: &Evidence, search: &mut Search<'_, ServerConfig>) -> Result<(), CalibrateError> {
    let flush = evidence.of_role(Role::Flush).next().map(|measured| measured.summary.flushes.mean_ns());
    let transit_ns = search.best().read.transit_ns;
    let flush_ns = flush.map_or(0, |ns| (ns as u64).saturating_sub(transit_ns));
    search.judged_by(&[Role::Write, Role::Mixed])?.set(|config| {
        config.flush_ns = flush_ns;
        config.write = Some(config.read.clone());
    })?;
    let scaled = |field: fn(&mut ServerTimes) -> &mut u64| {
        move |config: &mut ServerConfig, factor: f64| {
            if let Some(write) = &mut config.write {
                let value = field(write);
                *value = times(*value, factor);
            }
        }
    };
    let servers = search.best().servers;
    let fewer: Vec<Option<u32>> = SERVERS.into_iter().filter(|&n| n < servers).map(Some).chain([None]).collect();
    for _ in 0..2 {
        if search.best().batch.is_none() {
            search.among(&fewer, |config, servers| config.write_servers = servers)?;
        }
        search.scale(scaled(|write| &mut write.service_ns))?.scale(scaled(|write| &mut write.transit_ns))?.scale(
            |config, factor| {
                if let Some(write) = &mut config.write {
                    scale_rate(&mut write.bytes_per_second, factor);
                }
            },
        )?;
    }
    Ok(())
}
