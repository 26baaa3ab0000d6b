//! One sequential stream reaches the rate of the disk, at every size and depth.

use std::collections::VecDeque;

use iosched::{Op, Time};
use iosched_disk::hdd::{ReadAheadAfter, ReadAheadUntil};
use iosched_disk::measure::Figure;
use iosched_disk::{Command, Device, Hdd, HddConfig, Model, Profile};
use iosched_numbers::SplitMix64;
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
    /// Time from the end of a request to the next request, ns.
    think_ns: u64,
}

/// Returns the number of requests of a stream.
fn requests(config: Option<&HddConfig>, stream: Stream) -> u64 {
    if stream.op == Op::Read {
        return (RUN / 512 / stream.sectors).clamp(16, REQUESTS_MAX);
    }
    // The stream moves much more data than the cache can have.
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

/// Returns the sequential rate of the disk, bytes per second: the anchor of the profile. Without an
/// anchor, this is one track of the outermost zone in the time of a revolution and a skew.
fn media_rate(profile: &Profile, config: &HddConfig) -> f64 {
    if let Some(anchor) = profile.anchors().iter().find(|anchor| anchor.figure == Figure::SequentialReadOuterEdge) {
        return anchor.value * 1e6;
    }
    let zone = &config.zones[0];
    let revolution_s = 60.0 / config.rpm;
    let skew_s = f64::from(zone.track_skew_sectors.unwrap_or(0)) / f64::from(zone.sectors_per_track) * revolution_s;
    f64::from(zone.sectors_per_track) * 512.0 / (revolution_s + skew_s.max(config.head_switch_ns as f64 / 1e9))
}

/// Returns whether the head reads on until the segment has no space for data that was not
/// requested. Some old disks stop earlier, and wait for the next command.
fn streams(config: &HddConfig) -> bool {
    let cache = &config.read_cache;
    cache.replace_requested
        && cache.read_ahead_until == ReadAheadUntil::Distance
        && cache.read_ahead_after == ReadAheadAfter::AnyRead
}

/// Returns the smallest valid rate of a stream, bytes per second. Returns `None` if the disk waits
/// for the host.
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

/// Returns the smallest valid rate of a stream of writes until all data is on the medium, bytes per
/// second.
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
        // Sectors that are written separately from the previous sectors cost a revolution. A cache
        // that is little larger than a track writes back in such pieces.
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
    // The first write needs positioning, and the last one may need it.
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

/// Returns the sizes of commands, sectors: the largest of the disk, the default of Linux, and 128
/// KiB.
fn command_sizes(profile: &Profile) -> impl Iterator<Item = u64> {
    let most = u64::from(profile.card().max_hw_sectors_kb) * 2;
    [65_534, 2560, 256].into_iter().map(move |sectors| most.min(sectors))
}

/// Checks one stream at every size and depth on every rotating disk. Returns the violations, and
/// the number of rates that have a bound.
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
fn larger_requests_do_not_slow_an_array_stream() {
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

/// An endless stream, and reads of 4 KiB at random places.
#[derive(Clone, Copy, Debug)]
struct Mixed {
    op: Op,
    /// Sectors of a request of the stream.
    sectors: u64,
    /// Requests of the stream in flight.
    depth: u32,
    /// Random reads in flight.
    others: u32,
    seed: u64,
}

/// Returns the longest wait of a random read, ns, and the bytes of the stream, in a run of
/// `for_ns`.
fn longest_wait(profile: &Profile, mixed: Mixed, for_ns: u64) -> (u64, u64) {
    let Mixed { op, sectors, depth, others, seed } = mixed;
    let mut device = profile.device(seed);
    let capacity = device.card().capacity_sectors;
    let mut random = SplitMix64::new(seed);
    let (mut next_sector, mut bytes, mut longest_ns) = (0, 0, 0);
    let mut since_ns = vec![0; (depth + others) as usize];
    let mut command = |tag: u32| {
        if tag >= depth {
            let sector = random.below(capacity / 8 - 1) * 8;
            return Command { tag, op: Op::Read, sector, nr_sectors: 8, fua: false };
        }
        let sector = if next_sector + sectors > capacity { 0 } else { next_sector };
        next_sector = sector + sectors;
        Command { tag, op, sector, nr_sectors: sectors as u32, fua: false }
    };
    let mut now = Time::ZERO;
    for tag in 0..depth + others {
        device.submit(now, command(tag));
    }
    while let Some(at) = device.next_event().filter(|at| at.as_ns() < for_ns) {
        now = at;
        while let Some(tag) = device.advance(now) {
            if tag < depth {
                bytes += sectors * 512;
            } else {
                longest_ns = longest_ns.max(now.as_ns() - since_ns[tag as usize]);
            }
            since_ns[tag as usize] = now.as_ns();
            device.submit(now, command(tag));
        }
    }
    // A read that still waits also counts.
    let waiting = since_ns[depth as usize..].iter().map(|since_ns| now.as_ns() - since_ns).max();
    (longest_ns.max(waiting.unwrap_or(0)), bytes)
}

/// Returns the longest valid wait of a read during a stream, ns. Two parameters of the disk
/// determine it: the time after which a command precedes younger commands, and the number of older
/// commands in the queue.
fn wait_bound_ns(profile: &Profile, config: &HddConfig, mixed: Mixed) -> u64 {
    let disk = Hdd::new(config).unwrap();
    let revolution_ns = disk.revolution_ns();
    let seek_ns = disk.seek_ns(0, profile.card().capacity_sectors - 1);
    let settle_ns = config.head_switch_ns + config.write_settle_ns + config.write_to_read_ns.unwrap_or(seek_ns);
    // Sectors that the head passes for one command: the sectors of the command, read-ahead that
    // cannot be interrupted, or a piece that is written back. The head crosses a track in a
    // revolution and a head switch.
    let passed = mixed.sectors
        + u64::from(config.read_cache.sequential_read_ahead_sectors)
        + u64::from(config.write_cache.destage_sectors);
    let least_per_track = config.zones.iter().map(|zone| zone.sectors_per_track).min().unwrap();
    let tracks = passed.div_ceil(u64::from(least_per_track)) + 1;
    let link_ns = mixed.sectors * 512 * 1_000_000_000 / config.interface.bytes_per_second;
    let overheads = &config.interface.overheads;
    let overheads = [overheads.read_hit_ns, overheads.read_miss_ns, overheads.write_hit_ns, overheads.write_miss_ns];
    let overheads_ns = overheads.into_iter().flatten().flatten().fold(config.interface.command_ns, u64::max);
    let service_ns =
        seek_ns + settle_ns + revolution_ns + tracks * (revolution_ns + settle_ns) + link_ns + overheads_ns;
    config.queue.starvation_ns + u64::from(mixed.depth + mixed.others + 1) * service_ns
}

/// Checks that the longest wait is within its bound. Returns the wait and the bound.
fn check_wait(profile: &Profile, config: &HddConfig, mixed: Mixed) -> Result<(u64, u64), String> {
    let bound_ns = wait_bound_ns(profile, config, mixed);
    let (wait_ns, bytes) = longest_wait(profile, mixed, 2 * bound_ns);
    if wait_ns > bound_ns || bytes == 0 {
        return Err(format!("{}: {wait_ns} of {bound_ns} ns, {bytes} bytes, {mixed:?}", profile.name()));
    }
    Ok((wait_ns, bound_ns))
}

#[test]
fn stream_delays_other_reads_at_most_by_the_disks_bound() {
    let mut longest = 0.0f64;
    for (profile, config) in disks() {
        let tags = profile.card().depth;
        for op in [Op::Read, Op::Write] {
            for (sectors, depth, others) in [(8, 1, 1), (8, 16, 1), (256, 4, 1), (256, 16, 8), (2048, 2, 4)] {
                if depth + others <= tags {
                    let mixed = Mixed { op, sectors, depth, others, seed: 1 };
                    let (wait_ns, _) = check_wait(&profile, &config, mixed).unwrap();
                    longest = longest.max(wait_ns as f64 / config.queue.starvation_ns as f64);
                }
            }
        }
    }
    // Streams delay other reads until the disk's limit ends the delay.
    assert!(longest > 0.9, "no read waited for long: {longest}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn random_reads_wait_within_the_bound_during_any_stream(
        op in prop::sample::select(vec![Op::Read, Op::Write]),
        disk in 0usize..100,
        sectors in 1u64..256,
        depth in 1u32..=24,
        others in 1u32..=7,
        seed in 0u64..1000,
    ) {
        let disks: Vec<_> = disks().collect();
        let (profile, config) = &disks[disk % disks.len()];
        let others = others.min(profile.card().depth.saturating_sub(1).max(1));
        let depth = depth.min(profile.card().depth.saturating_sub(others));
        prop_assume!(depth > 0);
        let mixed = Mixed { op, sectors: sectors * 8, depth, others, seed };
        let checked = check_wait(profile, config, mixed);
        prop_assert!(checked.is_ok(), "{}", checked.unwrap_err());
    }
}

proptest! {
    #[test]
    fn stream_with_any_request_size_reaches_its_minimum_rate(
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
