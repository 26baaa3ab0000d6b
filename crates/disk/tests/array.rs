//! Behaviour of arrays, one property per test.

use crate::common::{Outcome, at_once, closed_loop};
use iosched::Op::{self, Flush, Read, Write};
use iosched_disk::array::{Array, ArrayConfig};
use iosched_disk::{AnyDevice, Command, Device, Model, Profile};
use iosched_numbers::SplitMix64;
use proptest::prelude::*;

fn config() -> ArrayConfig {
    match Profile::named("san-lun").unwrap().model() {
        Model::Array(config) => (**config).clone(),
        _ => unreachable!("san-lun is an array"),
    }
}

fn array(config: &ArrayConfig) -> Array {
    let members: Vec<AnyDevice> =
        config.members.iter().map(|member| Profile::named(&member.profile).unwrap().device(1)).collect();
    Array::new(config, &members).unwrap()
}

fn list(device: &mut Array, depth: u32, commands: &[(u64, Command)]) -> Vec<Outcome> {
    let mut commands = commands.iter().copied();
    closed_loop(device, depth, || commands.next())
}

/// Runs random 4 KiB commands and returns the commands per second.
fn random_rate(device: &mut Array, op: Op, depth: u32, count: u64) -> f64 {
    let (mut random, mut left, blocks) = (SplitMix64::new(3), count, device.card().capacity_sectors / 8);
    let outcomes = closed_loop(device, depth, || {
        left = left.checked_sub(1)?;
        Some(at_once(op, random.below(blocks) * 8, 8))
    });
    count as f64 * 1e9 / outcomes[outcomes.len() - 1].done_ns as f64
}

#[test]
fn writes_are_acknowledged_from_memory_until_it_is_full() {
    let mut config = config();
    config.write_cache.sectors = 8 * 1000;
    config.write_cache.destage_percent = 100;
    let mut random = SplitMix64::new(5);
    let commands: Vec<_> = (0..3000).map(|_| at_once(Write, random.below(1 << 30) * 8 % 3_900_000_000, 8)).collect();
    let mut device = array(&config);
    let outcomes = list(&mut device, 1, &commands);
    let latencies: Vec<u64> = outcomes.iter().map(Outcome::latency_ns).collect();
    assert!(latencies[..1000].iter().all(|ns| (300_000..500_000).contains(ns)), "{:?}", latencies[..1000].iter().max());
    assert!(latencies[1000..].iter().any(|&ns| ns > 500_000), "some had to wait for a disk");
}

#[test]
fn flush_is_immediate_and_no_write_cache_is_reported() {
    let mut device = array(&config());
    assert!(!device.card().write_cache);
    let outcomes = list(&mut device, 1, &[at_once(Write, 0, 8), at_once(Flush, 0, 0)]);
    assert!(outcomes[1].latency_ns() < 500_000, "{outcomes:?}");
}

#[test]
fn written_and_read_data_is_read_from_memory() {
    let read = |sector| at_once(Read, sector, 8);
    let outcomes = list(&mut array(&config()), 1, &[at_once(Write, 800, 8), read(800), read(80_000), read(80_000)]);
    assert!(outcomes[1].latency_ns() < 300_000, "{outcomes:?}");
    assert!(outcomes[2].latency_ns() > 1_000_000, "{outcomes:?}");
    assert!(outcomes[3].latency_ns() < 300_000, "{outcomes:?}");
}

#[test]
fn idle_array_writes_back_all_cached_data() {
    let mut config = config();
    config.write_cache.destage_after_ns = 1_000_000_000;
    let mut device = array(&config);
    let mut random = SplitMix64::new(8);
    let mut commands: Vec<_> = (0..500).map(|_| at_once(Write, random.below(400_000_000) * 8, 9)).collect();
    commands.push((20_000_000_000, at_once(Flush, 0, 0).1));
    list(&mut device, 4, &commands);
    assert_eq!(device.cached_sectors(), 0);
    assert_eq!(device.next_event(), None, "nothing is left to do");
}

#[test]
fn many_readers_use_all_members() {
    let mut one = config();
    one.members[0].count = 1;
    one.capacity_sectors = Some(270_000_000);
    let (one, all) =
        (random_rate(&mut array(&one), Read, 32, 3000), random_rate(&mut array(&config()), Read, 32, 6000));
    assert!(all > 4.0 * one, "{one} on one disk, {all} on 14");
}

#[test]
fn write_back_in_order_is_faster_than_single_writes() {
    let mut config = config();
    config.write_cache.sectors = 8 * 20_000;
    let sorted = random_rate(&mut array(&config), Write, 32, 60_000);
    config.write_cache.sectors = 64;
    config.write_cache.destage_percent = 1;
    let at_once = random_rate(&mut array(&config), Write, 32, 5_000);
    assert!(sorted > 1.5 * at_once, "{sorted} gathered, {at_once} at once");
}

#[test]
fn read_ahead_speeds_up_a_sequential_reader() {
    let rate = |read_ahead_sectors| {
        let mut config = config();
        config.read_cache.read_ahead_sectors = read_ahead_sectors;
        let mut i = 0;
        let outcomes = closed_loop(&mut array(&config), 1, || {
            i += 1;
            (i <= 2000).then(|| at_once(Read, i * 64, 64))
        });
        2000.0 * 32_768.0 * 1e3 / outcomes[outcomes.len() - 1].done_ns as f64
    };
    let (with, without) = (rate(4096), rate(0));
    assert!(with > 1.3 * without, "{with} MB/s with, {without} without");
}

#[test]
fn read_latency_depends_on_the_seed() {
    let profile = Profile::named("san-lun").unwrap();
    let first = |seed| {
        closed_loop(&mut profile.device(seed), 1, {
            let mut command = Some(at_once(Read, 1_000_000, 8));
            move || command.take()
        })
    };
    assert_eq!(first(1), first(1));
    assert_ne!(first(1)[0].done_ns, first(2)[0].done_ns);
}

#[test]
fn errors_name_the_wrong_array_parameter() {
    let text = include_str!("../profiles/san-lun.toml");
    let check = |from: &str, to: &str, expected: &[&str]| {
        assert!(text.contains(from), "{from}");
        let error = Profile::parse("mine.toml", &text.replace(from, to)).unwrap_err().to_string();
        for part in ["mine.toml"].iter().chain(expected) {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    };
    check("\"scsi-15k\"", "\"scsi\"", &["array.members[0].profile", "no device profile \"scsi\"", "scsi-15k"]);
    check("\"scsi-15k\"", "\"san-lun\"", &["array.members[0].profile: a member of an array cannot be an array"]);
    check("count = 14", "count = 0", &["array.members[0].count: 0 is out of range"]);
    check("count = 14", "count = 2", &["array.capacity_sectors: 3906250000 is out of range"]);
    check("chunk_sectors = 128", "chunk_sectors = 12", &["array.chunk_sectors: 12 sectors are not a multiple of 8"]);
    check(
        "destage_depth = 8",
        "destage_depth = 32",
        &["array.write_cache.destage_depth: 32 is out of range; it must be from 1 to 31"],
    );
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test creates these files")]
fn member_profiles_are_relative_to_the_array_file() {
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("array-members");
    std::fs::create_dir_all(&directory).unwrap();
    let text = include_str!("../profiles/san-lun.toml").replace("\"scsi-15k\"", "\"./own.toml\"");
    std::fs::write(directory.join("own.toml"), include_str!("../profiles/scsi-15k.toml")).unwrap();
    std::fs::write(directory.join("array.toml"), text).unwrap();
    let path = directory.join("array.toml").to_string_lossy().into_owned();
    assert_eq!(Profile::load(&path).unwrap().card(), Profile::named("san-lun").unwrap().card());
    std::fs::remove_file(directory.join("own.toml")).unwrap();
    let error = Profile::load(&path).unwrap_err().to_string();
    assert!(error.contains("array.members[0].profile") && error.contains("own.toml: cannot be read"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_command_completes_once_and_cache_stays_in_bounds(seed in any::<u64>(), depth in 1u32..=32) {
        let mut config = config();
        config.capacity_sectors = Some(100_000);
        config.write_cache.sectors = 512;
        config.write_cache.destage_after_ns = 50_000_000;
        config.read_cache.sectors = 4096;
        config.read_cache.read_ahead_sectors = 512;
        config.members[0].count = 3;
        let mut device = array(&config);
        let (mut random, mut left, mut follows) = (SplitMix64::new(seed), 300, 0);
        let outcomes = closed_loop(&mut device, depth, || {
            left -= 1;
            let op = [Read, Read, Write, Write, Flush][random.below(5) as usize];
            let nr_sectors = if op == Flush { 0 } else { [1, 8, 40, 1000][random.below(4) as usize] };
            let sector = if random.below(2) == 0 { random.below(99_000) } else { follows % 99_000 };
            follows = sector + u64::from(nr_sectors);
            let think_ns = [0, 0, 100_000, 20_000_000][random.below(4) as usize];
            (left >= 0).then_some((think_ns, Command { tag: 0, op, sector, nr_sectors, fua: false }))
        });
        prop_assert_eq!(outcomes.len(), 300);
        prop_assert!(device.cached_sectors() <= 512);
    }
}
