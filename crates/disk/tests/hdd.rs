//! Behaviour of rotating disks, one property per test.

use crate::common::{Outcome, at_once, closed_loop};
use iosched::Op::{self, Flush, Read, Write};
use iosched_disk::hdd::{ReadAheadAfter, ReadAheadUntil};
use iosched_disk::{AnyDevice, Command, Hdd, HddConfig, Model, Profile};
use iosched_numbers::SplitMix64;

fn config() -> HddConfig {
    match Profile::named("sata-7200").unwrap().model() {
        Model::Hdd(config) => (**config).clone(),
        _ => unreachable!("sata-7200 is an hdd"),
    }
}

fn list(device: &mut Hdd, depth: u32, commands: &[(u64, Command)]) -> Vec<Outcome> {
    let mut commands = commands.iter().copied();
    closed_loop(device, depth, || commands.next())
}

/// Returns the time of the last of `total` completions, ns. The commands continue the `streams` in
/// turn (round robin).
fn interleaved_ns(device: &mut Hdd, op: Op, streams: &[u64], nr_sectors: u32, total: u64) -> u64 {
    let mut i = 0;
    let outcomes = closed_loop(device, 1, || {
        let stream = streams[(i % streams.len() as u64) as usize];
        let sector = stream + i / streams.len() as u64 * u64::from(nr_sectors);
        i += 1;
        (i <= total).then(|| at_once(op, sector, nr_sectors))
    });
    outcomes[outcomes.len() - 1].done_ns
}

#[test]
fn read_ahead_data_transfers_at_link_speed() {
    let mut device = Hdd::new(&config()).unwrap();
    let outcomes = list(&mut device, 1, &[at_once(Read, 800_000, 8), (20_000_000, at_once(Read, 800_008, 256).1)]);
    assert!(outcomes[0].latency_ns() > 1_000_000);
    assert!(outcomes[1].latency_ns() < 500_000, "{outcomes:?}");
}

/// Returns the number of commands for which the head was positioned. The pauses between the reads
/// are long enough for read-ahead.
fn misses(config: &HddConfig, reads: &[(u64, u32)]) -> u64 {
    let mut device = Hdd::new(config).unwrap();
    let commands: Vec<_> =
        reads.iter().map(|&(sector, length)| (50_000_000, at_once(Read, sector, length).1)).collect();
    list(&mut device, 1, &commands);
    device.medium_commands()
}

#[test]
fn read_ahead_on_continuation_misses_the_first_continued_read() {
    let mut config = config();
    let reads = [(800_000, 8), (800_008, 8), (800_016, 8), (800_024, 8)];
    assert_eq!(misses(&config, &reads), 1);
    config.read_cache.read_ahead_after = ReadAheadAfter::ContinuedRead;
    assert_eq!(misses(&config, &reads), 2, "the second continues the first, and reads ahead for the others");
    assert_eq!(misses(&config, &[(800_000, 8), (900_000, 8), (900_008, 8)]), 3);
}

#[test]
fn read_ahead_ends_at_its_configured_boundary() {
    let mut config = HddConfig { heads: 4, capacity_sectors: 3_800_000_000, ..config() };
    config.read_cache.read_ahead_sectors = 1 << 15;
    config.read_cache.segment_sectors = 1 << 17;
    let track = u64::from(config.zones[0].sectors_per_track);
    let cylinder = track * u64::from(config.heads);
    // Whether a sector is in the cache, in two cases: after a read of the first sectors, and after
    // another read that continued onto the second track.
    let mut held = |until, sector| {
        config.read_cache.read_ahead_until = until;
        [vec![(0, 8)], vec![(0, 8), (8, track as u32)]].map(|before| {
            let with = [&before[..], &[(sector, 8)]].concat();
            misses(&config, &with) == misses(&config, &before)
        })
    };
    let ends = [track - 8, track, 2 * track, cylinder - 8, cylinder];
    let expected = [
        (ReadAheadUntil::Track, [[true, true], [false, true], [false, false], [false, false], [false, false]]),
        (ReadAheadUntil::NextTrack, [[true, true], [false, true], [false, true], [false, false], [false, false]]),
        (ReadAheadUntil::Cylinder, [[true, true], [true, true], [true, true], [true, true], [false, false]]),
        (ReadAheadUntil::Distance, [[true, true]; 5]),
    ];
    for (until, expected) in expected {
        assert_eq!(ends.map(|sector| held(until, sector)), expected, "{until:?}");
    }
}

#[test]
fn reads_with_small_gaps_lose_no_revolution() {
    // 64 of every 72 sectors are read. Only the gaps reduce the rate, by an eighth.
    let total = 2000u64;
    let mut i = 0;
    let outcomes = closed_loop(&mut Hdd::new(&config()).unwrap(), 1, || {
        i += 1;
        (i <= total).then(|| at_once(Read, (i - 1) * 72, 64))
    });
    let rate = (total * 72 * 512) as f64 / 1e6 / (outcomes[outcomes.len() - 1].done_ns as f64 / 1e9);
    assert!(rate > 190.0, "{rate} MB/s over the medium");
}

#[test]
fn two_streams_are_slower_than_one_and_faster_than_random() {
    let one_ns = interleaved_ns(&mut Hdd::new(&config()).unwrap(), Read, &[0], 256, 400);
    let two_ns = interleaved_ns(&mut Hdd::new(&config()).unwrap(), Read, &[0, 900_000_000], 256, 400);
    assert!(two_ns > 5 * one_ns, "seeks cost: {one_ns} and {two_ns}");
    assert!(two_ns < 400 * 8_000_000, "read-ahead helps: {two_ns}");
}

#[test]
fn a_flush_of_cached_writes_waits_for_the_medium() {
    let mut random = SplitMix64::new(3);
    let mut commands: Vec<_> = (0..20).map(|_| at_once(Write, random.below(1 << 27) * 8, 8)).collect();
    commands.push(at_once(Flush, 0, 0));
    commands.push(at_once(Flush, 0, 0));
    let outcomes = list(&mut Hdd::new(&config()).unwrap(), 1, &commands);
    assert!(outcomes[..20].iter().all(|outcome| outcome.latency_ns() < 200_000));
    let flush_ns = outcomes[20].latency_ns();
    assert!((40_000_000..240_000_000).contains(&flush_ns), "20 scattered writes took {flush_ns}");
    assert!(outcomes[21].latency_ns() < 200_000, "a flush of a clean cache");
}

#[test]
fn a_full_cache_makes_writes_wait_for_the_medium() {
    let mut config = config();
    config.write_cache.extents = 16;
    let (mut random, mut left) = (SplitMix64::new(4), 300);
    let outcomes = closed_loop(&mut Hdd::new(&config).unwrap(), 1, || {
        left -= 1;
        (left >= 0).then(|| at_once(Write, random.below(1 << 27) * 8, 8))
    });
    let mean_ns = outcomes[outcomes.len() - 1].done_ns / 300;
    assert!((3_000_000..14_000_000).contains(&mean_ns), "{mean_ns}");
}

#[test]
fn without_cache_each_sequential_write_misses_a_revolution() {
    let mut config = config();
    config.write_cache.enabled = false;
    let revolution_ns = Hdd::new(&config).unwrap().revolution_ns();
    let total_ns = interleaved_ns(&mut Hdd::new(&config).unwrap(), Write, &[0], 8, 200);
    assert!((total_ns / 200).abs_diff(revolution_ns) < revolution_ns / 20, "{total_ns}");
}

/// Returns the mean time of random writes at block boundaries, ns.
fn random_writes_ns(config: &HddConfig, nr_sectors: u32) -> u64 {
    let (mut random, mut left) = (SplitMix64::new(4), 400);
    let outcomes = closed_loop(&mut Hdd::new(config).unwrap(), 1, || {
        left -= 1;
        (left >= 0).then(|| at_once(Write, random.below(1 << 27) * 8, nr_sectors))
    });
    outcomes[outcomes.len() - 1].done_ns / 400
}

#[test]
fn write_of_a_part_of_a_block_takes_another_revolution() {
    let mut config = config();
    config.write_cache.extents = 16;
    let revolution_ns = Hdd::new(&config).unwrap().revolution_ns();
    for cached in [false, true] {
        config.write_cache.enabled = cached;
        config.physical_block_bytes = 4096;
        let (part_ns, block_ns) = (random_writes_ns(&config, 1), random_writes_ns(&config, 8));
        assert!((part_ns - block_ns).abs_diff(revolution_ns) < revolution_ns / 10, "{part_ns} and {block_ns}");
        config.physical_block_bytes = 512;
        assert!(random_writes_ns(&config, 1).abs_diff(block_ns) < revolution_ns / 10);
    }
}

#[test]
fn partial_block_write_does_not_reread_a_cached_block() {
    let mut config = config();
    config.write_cache.enabled = false;
    let write_ns = |nr_sectors: u32| {
        let commands = [at_once(Read, 8_000_000, 64), (50_000_000, at_once(Write, 8_000_000, nr_sectors).1)];
        list(&mut Hdd::new(&config).unwrap(), 1, &commands)[1].latency_ns()
    };
    assert!(write_ns(1).abs_diff(write_ns(8)) < 100_000, "{} and {}", write_ns(1), write_ns(8));
}

#[test]
fn sequential_small_writes_are_combined_to_blocks_in_the_cache() {
    let config = config();
    let total_ns = |bytes: u32| {
        let config = HddConfig { physical_block_bytes: bytes, ..config.clone() };
        interleaved_ns(&mut Hdd::new(&config).unwrap(), Write, &[0], 1, 200_000)
    };
    let (large, small) = (total_ns(4096), total_ns(512));
    assert!(large < small + small / 50, "{large} and {small}");
}

#[test]
fn fua_writes_wait_for_the_medium_despite_the_cache() {
    let fua = |sector| (0, Command { tag: 0, op: Write, sector, nr_sectors: 8, fua: true });
    let outcomes = list(&mut Hdd::new(&config()).unwrap(), 1, &[fua(1_000_000_000), fua(1_000_000_000)]);
    // A second write of the same place takes a full revolution.
    assert!(outcomes[0].latency_ns() > 5_000_000);
    assert!(outcomes[1].latency_ns() > 8_000_000);
}

#[test]
fn an_append_with_a_flush_takes_a_revolution() {
    let commands: Vec<_> = (0..100).flat_map(|i| [at_once(Write, 9000 + i * 8, 8), at_once(Flush, 0, 0)]).collect();
    let mut device = Hdd::new(&config()).unwrap();
    let outcomes = list(&mut device, 1, &commands);
    let each_ns = outcomes[outcomes.len() - 1].done_ns / 100;
    assert!(each_ns.abs_diff(device.revolution_ns()) < device.revolution_ns() / 20, "{each_ns}");
}

#[test]
fn dirty_data_is_read_from_the_cache() {
    let outcomes = list(&mut Hdd::new(&config()).unwrap(), 1, &[at_once(Write, 5000, 64), at_once(Read, 5008, 16)]);
    assert!(outcomes[1].latency_ns() < 200_000, "{outcomes:?}");
}

#[test]
fn an_idle_disk_writes_back_by_itself() {
    let mut device = Hdd::new(&config()).unwrap();
    let mut random = SplitMix64::new(9);
    let mut commands: Vec<_> = (0..50).map(|_| at_once(Write, random.below(1 << 30), 8)).collect();
    commands.push((2_000_000_000, at_once(Flush, 0, 0).1));
    let outcomes = list(&mut device, 1, &commands);
    assert!(outcomes[50].latency_ns() < 200_000, "two seconds were enough for 50 writes");
    assert_eq!(device.dirty_sectors(), 0);
}

#[test]
fn start_angle_depends_on_the_seed() {
    let profile = Profile::named("sata-7200").unwrap();
    let first = |seed| {
        let AnyDevice::Hdd(mut hdd) = profile.device(seed) else { panic!("sata-7200 is not an hdd") };
        list(&mut hdd, 1, &[at_once(Read, 1_000_000_000, 8)])[0].done_ns
    };
    let times: Vec<u64> = (0..50).map(first).collect();
    let spread_ns = times.iter().max().unwrap() - times.iter().min().unwrap();
    assert!((7_500_000..8_400_000).contains(&spread_ns), "uniform over a revolution: {spread_ns}");
    assert_eq!(first(7), first(7));
}

#[test]
fn errors_name_the_wrong_parameter() {
    let check = |change: fn(&mut HddConfig), part: &str| {
        let mut config = config();
        change(&mut config);
        let error = Hdd::new(&config).unwrap_err().to_string();
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    };
    check(|config| config.depth = 0, "hdd.depth: 0 is out of range");
    check(|config| config.rpm = f64::NAN, "hdd.rpm: NaN is out of range");
    check(|config| config.zones.clear(), "hdd.zones");
    check(|config| config.zones[3].cylinders = 0, "hdd.zones[3].cylinders");
    check(|config| config.capacity_sectors += 1 << 30, "hdd.capacity_sectors");
    check(|config| config.write_cache.high_percent = 101, "hdd.write_cache.high_percent");
    check(|config| config.read_cache.read_ahead_sectors = 4096, "hdd.read_cache.read_ahead_sectors");
}

/// Returns the latency of the last command of `far`, ns. During this time, `near` other commands
/// wait in a narrow band.
fn latency_during_near_reads(config: &HddConfig, far: &[Command], near: u32, total: u32) -> u64 {
    let (mut random, mut issued) = (SplitMix64::new(21), 0);
    let outcomes = closed_loop(&mut Hdd::new(config).unwrap(), near + 1, || {
        issued += 1;
        let (_, neighbour) = at_once(Read, random.below(2_000_000) * 8, 8);
        (issued <= total)
            .then(|| (0, (issued as usize).checked_sub(40).and_then(|i| far.get(i)).copied().unwrap_or(neighbour)))
    });
    let last = far[far.len() - 1];
    outcomes
        .iter()
        .find(|outcome| outcome.command.sector == last.sector && outcome.command.op == last.op)
        .map_or(u64::MAX, Outcome::latency_ns)
}

#[test]
fn starvation_limit_bounds_the_latency_of_a_far_read() {
    let far = [at_once(Read, 1_900_000_000, 8).1];
    let mut config = config();
    config.queue.starvation_ns = 100_000_000;
    let bounded_ns = latency_during_near_reads(&config, &far, 30, 3000);
    // Commands of the same age come first, and one more command is in service.
    assert!(bounded_ns < 100_000_000 + 32 * 15_000_000, "{bounded_ns}");
    config.queue.starvation_ns = 100_000_000_000;
    let unbounded_ns = latency_during_near_reads(&config, &far, 30, 3000);
    assert!(unbounded_ns > 2 * bounded_ns, "without the limit, the read waits longer: {unbounded_ns}");
}

#[test]
fn reads_do_not_starve_a_flush() {
    let far = [at_once(Write, 1_900_000_000, 8).1, at_once(Flush, 0, 0).1];
    let mut config = config();
    config.queue.starvation_ns = 100_000_000;
    let bounded_ns = latency_during_near_reads(&config, &far, 30, 3000);
    assert!(bounded_ns < 100_000_000 + 33 * 15_000_000, "{bounded_ns}");
}
