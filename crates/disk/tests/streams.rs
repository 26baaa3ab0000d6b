//! One sequential stream reaches the rate of the disk, at every size and depth.

use std::collections::VecDeque;

use iosched::{Op, Time};
use iosched_disk::hdd::{ReadAheadAfter, ReadAheadUntil};
use iosched_disk::measure::Figure;
use iosched_disk::{Command, Device, HddConfig, Model, Profile};
use proptest::prelude::*;

/// Bytes that a stream reads, limited to [`REQUESTS_MAX`] requests.
const RUN: u64 = 64 << 20;
const REQUESTS_MAX: u64 = 4096;
/// Sizes of requests, sectors: 4 KiB to 16 MiB.
const SIZES: [u64; 13] = [8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768];

/// Sequential access of a host to one file from its first sector on.
#[derive(Clone, Copy, Debug)]
struct Stream {
    op: Op,
    /// Sectors of a request.
    sectors: u64,
    /// Requests in flight.
    depth: u64,
    /// Largest command, sectors. The host splits larger requests.
    command_sectors: u64,
    /// Time from the end of a request to the next one, ns.
    think_ns: u64,
}

/// Returns the number of requests of a stream.
fn requests(config: Option<&HddConfig>, stream: Stream) -> u64 {
    if stream.op == Op::Read {
        return (RUN / 512 / stream.sectors).clamp(16, REQUESTS_MAX);
    }
    // Much more data than the cache can have.
    let cache_sectors = config.map_or(0, |config| u64::from(config.write_cache.sectors));
    (4 * cache_sectors).clamp(32_768, 262_144).div_ceil(stream.sectors).max(8)
}

/// Returns the bytes per second of a stream, until all its data is on the medium.
fn rate(profile: &Profile, stream: Stream) -> f64 {
    let Stream { op, sectors, depth, command_sectors, think_ns } = stream;
    let mut device = profile.device(1);
    let requests = requests(hdd(profile), stream);
    let tags = device.card().depth;
    let mut free: Vec<u32> = (0..tags).rev().collect();
    let mut request_of = vec![0; tags as usize];
    let mut commands_left = vec![0; requests as usize];
    let mut arrivals: VecDeque<(u64, u64)> = (0..depth.min(requests)).map(|request| (0, request)).collect();
    let mut next = depth.min(requests);
    let mut waiting: VecDeque<(u64, Command)> = VecDeque::new();
    let mut now = Time::ZERO;
    loop {
        let arrival = arrivals.front().map(|&(at_ns, _)| Time::from_ns(at_ns));
        let Some(at) = device.next_event().into_iter().chain(arrival).min() else { break };
        now = at;
        while let Some(tag) = device.advance(now) {
            free.push(tag);
            let request: u64 = request_of[tag as usize];
            commands_left[request as usize] -= 1;
            if commands_left[request as usize] == 0 && next < requests {
                arrivals.push_back((now.as_ns() + think_ns, next));
                next += 1;
            }
        }
        while let Some(&(_, request)) = arrivals.front().filter(|&&(at_ns, _)| at_ns <= now.as_ns()) {
            arrivals.pop_front();
            let (mut sector, end) = (request * sectors, (request + 1) * sectors);
            while sector < end {
                let nr_sectors = command_sectors.min(end - sector) as u32;
                waiting.push_back((request, Command { tag: 0, op, sector, nr_sectors, fua: false }));
                commands_left[request as usize] += 1;
                sector += u64::from(nr_sectors);
            }
        }
        while let Some(&tag) = free.last().filter(|_| !waiting.is_empty()) {
            let Some((request, command)) = waiting.pop_front() else { break };
            free.pop();
            request_of[tag as usize] = request;
            device.submit(now, Command { tag, ..command });
        }
    }
    device.submit(now, Command { tag: 0, op: Op::Flush, sector: 0, nr_sectors: 0, fua: false });
    while let Some(at) = device.next_event() {
        now = at;
        while device.advance(now).is_some() {}
    }
    (requests * sectors * 512) as f64 * 1e9 / now.as_ns() as f64
}

/// Returns the parameters of a rotating disk.
fn hdd(profile: &Profile) -> Option<&HddConfig> {
    if let Model::Hdd(config) = profile.model() { Some(config) } else { None }
}

/// Returns the sequential rate of the disk, bytes per second. It is the anchor of the profile, or
/// else one track of the outermost zone per revolution and skew.
fn media_rate(profile: &Profile, config: &HddConfig) -> f64 {
    if let Some(anchor) = profile.anchors().iter().find(|anchor| anchor.figure == Figure::SequentialReadOuterEdge) {
        return anchor.value * 1e6;
    }
    let zone = &config.zones[0];
    let revolution_s = 60.0 / config.rpm;
    let skew_s = f64::from(zone.track_skew_sectors.unwrap_or(0)) / f64::from(zone.sectors_per_track) * revolution_s;
    f64::from(zone.sectors_per_track) * 512.0 / (revolution_s + skew_s.max(config.head_switch_ns as f64 / 1e9))
}

/// Returns whether the head continues to read until the segment has no space for data that was not
/// requested. Some old disks stop before this, and wait for the next command.
fn streams(config: &HddConfig) -> bool {
    let cache = &config.read_cache;
    cache.replace_requested
        && cache.read_ahead_until == ReadAheadUntil::Distance
        && cache.read_ahead_after == ReadAheadAfter::AnyRead
}

/// Returns the smallest valid rate of a stream, bytes per second. `None` if the disk waits for the
/// host.
fn least_rate(profile: &Profile, config: &HddConfig, stream: Stream) -> Option<f64> {
    let Stream { op, sectors, depth, command_sectors, think_ns } = stream;
    if op == Op::Write {
        return least_write_rate(profile, config, stream);
    }
    let bytes = (sectors * 512) as f64;
    let media_ns = bytes * 1e9 / media_rate(profile, config);
    let link_ns = bytes * 1e9 / config.interface.bytes_per_second as f64;
    let overhead_ns =
        config.interface.overheads.read_hit_ns.map_or(config.interface.command_ns, |[after_read, _]| after_read);
    // Commands of one disk cross the link one after another, each with its overhead.
    let served_ns = (sectors.div_ceil(command_sectors) * overhead_ns) as f64 + link_ns;
    let host_ns = served_ns.max((served_ns + think_ns as f64) / depth as f64);
    if !streams(config) {
        // At each end of a track or segment the head can be a revolution late.
        let leg = config.zones[0].sectors_per_track.min(config.read_cache.segment_sectors);
        let lost_ns = 60e9 / config.rpm * sectors as f64 / f64::from(leg);
        return Some(bytes * 1e9 / (host_ns.max(media_ns) + lost_ns));
    }
    if link_ns > media_ns {
        return Some(bytes * 1e9 / host_ns);
    }
    (host_ns <= media_ns).then_some(bytes * 1e9 / media_ns)
}

/// Returns the smallest valid rate of a stream of writes, until all data is on the medium.
fn least_write_rate(profile: &Profile, config: &HddConfig, stream: Stream) -> Option<f64> {
    let Stream { sectors, depth, command_sectors, think_ns, .. } = stream;
    let all = requests(Some(config), stream);
    let bytes = (sectors * 512) as f64;
    let media_ns = bytes * 1e9 / media_rate(profile, config);
    let link_ns = bytes * 1e9 / config.interface.bytes_per_second as f64;
    let commands = sectors.div_ceil(command_sectors) as f64;
    let revolution_ns = 60e9 / config.rpm;
    let overhead_ns = |of: Option<[u64; 2]>| of.map_or(config.interface.command_ns, |of| of[1]) as f64;
    let request_ns = if config.write_cache.enabled {
        let served_ns = commands * overhead_ns(config.interface.overheads.write_hit_ns) + link_ns;
        // Sectors that are written separately from the previous ones cost a revolution. A cache of
        // little more than a track must be written back in such pieces.
        let cache = &config.write_cache;
        let lost = if cache.sectors < 2 * config.zones[0].sectors_per_track {
            sectors as f64 / f64::from(cache.destage_sectors.min(config.zones[0].sectors_per_track))
        } else {
            0.0
        };
        served_ns.max((served_ns + think_ns as f64) / depth as f64).max(media_ns + lost * revolution_ns)
    } else {
        // Without a cache, a command that is queued too late waits for a revolution.
        let served_ns = commands * overhead_ns(config.interface.overheads.write_miss_ns) + link_ns;
        let late_ns = served_ns + (think_ns + config.head_switch_ns) as f64;
        let is_queued = (depth as f64 - 1.0) * media_ns > late_ns;
        media_ns.max(served_ns) + if is_queued { 0.0 } else { think_ns as f64 + revolution_ns }
    };
    // The first write must be positioned, and the last may have to be.
    let ends_ns = 2.0 * revolution_ns + config.write_cache.idle_ns as f64;
    Some(bytes * all as f64 * 1e9 / (request_ns * all as f64 + ends_ns))
}

/// Returns the rotating disks among the built-in profiles.
fn disks() -> impl Iterator<Item = (Profile, HddConfig)> {
    Profile::names().filter_map(|name| {
        let profile = Profile::named(name).unwrap();
        let Model::Hdd(config) = profile.model() else { return None };
        let config = (**config).clone();
        Some((profile, config))
    })
}

/// Returns the sizes of commands: the largest of the disk, the default of Linux, and 128 KiB.
fn command_sizes(profile: &Profile) -> impl Iterator<Item = u64> {
    let most = u64::from(profile.card().max_hw_sectors_kb) * 2;
    [65_534, 2560, 256].into_iter().map(move |sectors| most.min(sectors))
}

/// Checks one stream at every size and depth on every rotating disk. Returns the violations, and
/// the number of rates with a bound.
fn check(op: Op) -> (Vec<String>, usize) {
    let (mut off, mut checked) = (Vec::new(), 0);
    for (profile, config) in disks() {
        for command_sectors in command_sizes(&profile) {
            for (depth, think_ns) in
                [1, 2, 3, 4, 8, 32].into_iter().flat_map(|depth| [0, 5_000, 50_000, 1_000_000].map(|ns| (depth, ns)))
            {
                let mut best = 0.0;
                for sectors in SIZES {
                    let stream = Stream { op, sectors, depth, command_sectors, think_ns };
                    let got = rate(&profile, stream);
                    let megabytes = got / 1e6;
                    if let Some(least) = least_rate(&profile, &config, stream) {
                        checked += 1;
                        if got < 0.95 * least {
                            off.push(format!(
                                "{}: {megabytes:.1} of {:.1} MB/s, {stream:?}",
                                profile.name(),
                                least / 1e6
                            ));
                        }
                    }
                    if (op == Op::Write || streams(&config)) && got < 0.97 * best {
                        off.push(format!(
                            "{}: {megabytes:.1} after {:.1} MB/s, {stream:?}",
                            profile.name(),
                            best / 1e6
                        ));
                    }
                    best = got.max(best);
                }
            }
        }
    }
    (off, checked)
}

#[test]
fn a_stream_reads_at_disk_rate_at_any_size_and_depth() {
    let (off, checked) = check(Op::Read);
    assert!(checked > 1000, "{checked}");
    assert!(off.is_empty(), "{} of {checked}:\n{}", off.len(), off.join("\n"));
}

#[test]
fn a_stream_writes_at_disk_rate_at_any_size_and_depth() {
    let (off, checked) = check(Op::Write);
    assert!(checked > 1000, "{checked}");
    assert!(off.is_empty(), "{} of {checked}:\n{}", off.len(), off.join("\n"));
}

#[test]
fn an_array_reads_a_stream_no_slower_in_larger_requests() {
    let mut off = Vec::new();
    for name in ["raid-2005", "san-lun", "san-lun-2g"] {
        let profile = Profile::named(name).unwrap();
        for command_sectors in command_sizes(&profile) {
            for depth in [1, 2, 4, 8, 32] {
                let mut best = 0.0;
                for sectors in SIZES {
                    let stream = Stream { op: Op::Read, sectors, depth, command_sectors, think_ns: 5_000 };
                    let got = rate(&profile, stream);
                    if got < 0.97 * best {
                        off.push(format!("{name}: {:.1} after {:.1} MB/s, {stream:?}", got / 1e6, best / 1e6));
                    }
                    best = got.max(best);
                }
            }
        }
    }
    assert!(off.is_empty(), "{}:\n{}", off.len(), off.join("\n"));
}

proptest! {
    #[test]
    fn a_stream_of_any_length_loses_no_revolution(
        op in prop::sample::select(vec![Op::Read, Op::Write]),
        disk in 0usize..100,
        sectors in 1u64..6000,
        depth in 1u64..=32,
        command_sectors in 8u64..6000,
        think_ns in 0u64..500_000,
    ) {
        let disks: Vec<_> = disks().collect();
        let (profile, config) = &disks[disk % disks.len()];
        let command_sectors = command_sectors.min(u64::from(profile.card().max_hw_sectors_kb) * 2);
        let stream = Stream { op, sectors: sectors * 8, depth, command_sectors, think_ns };
        if let Some(least) = least_rate(profile, config, stream) {
            let got = rate(profile, stream);
            prop_assert!(got >= 0.95 * least, "{}: {} of {} B/s, {:?}", profile.name(), got, least, stream);
        }
    }
}
