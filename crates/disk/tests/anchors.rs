//! The profiles against what is known of the devices they are of: measured by driving the models.
//!
//! `cargo test -p iosched-disk --test anchors -- --nocapture` prints the figures.

mod common;

use common::{Random, at_once, closed_loop};
use iosched::Op::{self, Flush, Read, Write};
use iosched_disk::{AnyDevice, Profile};

/// How far a model may be from the real device.
const TOLERANCE: f64 = 0.10;

fn check(profile: &Profile, figure: &str, measured: f64) {
    let anchor = profile.anchor(figure).expect("the profile has this anchor");
    let off = measured / anchor.value - 1.0;
    let name = profile.name();
    println!(
        "{name} {figure}: {measured:.2} {}, {} by {} ({:+.1} %)",
        anchor.unit,
        anchor.value,
        anchor.source,
        off * 100.0
    );
    assert!(off.abs() <= TOLERANCE, "{name}: {figure} is {measured} {}, not {}", anchor.unit, anchor.value);
}

/// MB/s of reading or writing `total` sectors one after another from `start` on, 128 KiB at a time.
fn sequential(device: &mut AnyDevice, depth: u32, op: Op, start: u64, total: u64) -> f64 {
    let mut sector = start;
    let outcomes = closed_loop(device, depth, || {
        sector += 256;
        (sector <= start + total).then(|| at_once(op, sector - 256, 256))
    });
    let first = outcomes[0].done_ns;
    let last = outcomes[outcomes.len() - 1].done_ns;
    (total - 256) as f64 * 512.0 / 1e6 / ((last - first) as f64 / 1e9)
}

/// Mean time between completions of 4 KiB commands anywhere, in ns.
fn random(profile: &Profile, depth: u32, op: Op, total: u32) -> f64 {
    let mut device = profile.device(u64::from(depth));
    let blocks = profile.card().capacity_sectors / 8;
    let (mut random, mut left) = (Random(5), total);
    let outcomes = closed_loop(&mut device, depth, || {
        left = left.checked_sub(1)?;
        Some(at_once(op, random.below(blocks) * 8, 8))
    });
    outcomes[outcomes.len() - 1].done_ns as f64 / f64::from(total)
}

#[test]
fn sata_7200() {
    let profile = Profile::named("sata-7200").unwrap();
    let AnyDevice::Hdd(hdd) = profile.device(0) else { panic!("an hdd") };
    let capacity_sectors = profile.card().capacity_sectors;
    let mut pairs = Random(11);
    let total = 200_000;
    let seeks_ns: u64 =
        (0..total).map(|_| hdd.seek_ns(pairs.below(capacity_sectors), pairs.below(capacity_sectors))).sum();
    check(&profile, "average_read_seek", seeks_ns as f64 / total as f64 / 1e6);

    // 500 MB each: of the middle it is the mean over the disk, as the rate falls evenly.
    let span = 1_000_000 / 256 * 256;
    let outer = sequential(&mut profile.device(1), 1, Read, 0, span);
    check(&profile, "sequential_read_outer_edge", outer);
    let inner = sequential(&mut profile.device(1), 1, Read, (capacity_sectors - span) / 8 * 8, span);
    check(&profile, "sequential_read_inner_edge", inner);
    let parts = 16;
    let slowness: f64 = (0..parts)
        .map(|i| {
            sequential(&mut profile.device(1), 1, Read, capacity_sectors / parts * i / 8 * 8, span / 4 / 256 * 256)
        })
        .map(|rate| 1.0 / rate)
        .sum();
    check(&profile, "sequential_read_average", parts as f64 / slowness);

    check(&profile, "random_read_4k_depth_1", random(&profile, 1, Read, 20_000) / 1e6);
    check(&profile, "random_read_4k_depth_32", 1e9 / random(&profile, 32, Read, 20_000));
}

#[test]
fn sata_7200_writes_as_fast_as_it_reads() {
    let profile = Profile::named("sata-7200").unwrap();
    let read = sequential(&mut profile.device(1), 1, Read, 0, 4_000_000 / 256 * 256);
    // Far more than the cache holds.
    let written = sequential(&mut profile.device(1), 1, Write, 0, 4_000_000 / 256 * 256);
    assert!((written / read - 1.0).abs() < 0.05, "read {read} MB/s, written {written} MB/s");
}

#[test]
fn sata_ssd() {
    let profile = Profile::named("sata-ssd").unwrap();
    for (op, depth, figure) in [
        (Read, 1, "random_read_4k_depth_1"),
        (Read, 32, "random_read_4k_depth_32"),
        (Write, 1, "random_write_4k_depth_1"),
        (Write, 32, "random_write_4k_depth_32"),
    ] {
        check(&profile, figure, 1e9 / random(&profile, depth, op, 100_000));
    }
    check(&profile, "sequential_read", sequential(&mut profile.device(1), 8, Read, 0, 2_560_000));
    check(&profile, "sequential_write", sequential(&mut profile.device(1), 8, Write, 0, 2_560_000));
    let mut commands = vec![at_once(Flush, 0, 0), at_once(Write, 0, 8)];
    let outcomes = closed_loop(&mut profile.device(1), 1, || commands.pop());
    check(&profile, "flush_after_write", outcomes[1].latency_ns() as f64 / 1e6);
}

#[test]
fn every_profile_that_comes_along_is_sound() {
    for name in Profile::names() {
        let profile = Profile::named(name).unwrap();
        assert_eq!(profile.name(), name);
        assert!(!profile.about().is_empty() && !profile.anchors().is_empty());
        assert_eq!(profile.card(), iosched_disk::Device::card(&profile.device(3)));
    }
    assert!(Profile::names().is_sorted());
}
