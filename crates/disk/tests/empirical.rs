//! Behaviour of a device with measured latencies.

use crate::common::{Outcome, closed_loop};
use iosched::Op;
use iosched_disk::empirical::EmpiricalCell;
use iosched_disk::{Command, EmpiricalConfig, Model, Profile, QuantilePoint, RestConfig};

fn cell(sectors: u32, under_way: u32, ns: [u64; 3]) -> EmpiricalCell {
    EmpiricalCell { sectors, under_way, ns: ns.to_vec() }
}

/// Returns a configuration with latencies of 100 us with one command in flight, and of 400 us with
/// four. Each latency varies by up to half. Commands of eight times the size take twice as long.
fn config() -> EmpiricalConfig {
    EmpiricalConfig {
        capacity_sectors: 1 << 21,
        depth: 64,
        hw_queues: 1,
        max_hw_sectors_kb: 1280,
        rotational: false,
        write_cache: false,
        fua: false,
        flush_ns: 7_000,
        shares: vec![0.0, 0.5, 1.0],
        reads_beside_writes: Vec::new(),
        writes_beside_reads: Vec::new(),
        rest: None,
        random_reads: vec![
            cell(8, 1, [50_000, 100_000, 150_000]),
            cell(8, 4, [200_000, 400_000, 600_000]),
            cell(64, 1, [100_000, 200_000, 300_000]),
            cell(64, 4, [400_000, 800_000, 1_200_000]),
        ],
        sequential_reads: Vec::new(),
        random_writes: Vec::new(),
        sequential_writes: Vec::new(),
        credits: Vec::new(),
    }
}

fn profile(config: EmpiricalConfig) -> Profile {
    Profile::of("mine", "a test's", Model::Empirical(Box::new(config)), Vec::new()).unwrap()
}

/// Returns the mean latency of `count` commands of `nr_sectors`, `depth` at a time, ns. `next`
/// gives the operation and the place of each command.
fn mean_ns(config: EmpiricalConfig, depth: u32, nr_sectors: u32, next: impl Fn(u64) -> (Op, u64)) -> f64 {
    let mut number = 0;
    let outcomes = closed_loop(&mut profile(config).device(7), depth, || {
        number += 1;
        let (op, sector) = next(number);
        (number <= 4_000).then_some((0, Command { tag: 0, op, sector, nr_sectors, fua: false }))
    });
    outcomes.iter().map(|outcome| outcome.latency_ns() as f64).sum::<f64>() / outcomes.len() as f64
}

fn near(value: f64, wanted: f64) -> bool {
    (value / wanted - 1.0).abs() < 0.03
}

const FAR: fn(u64) -> (Op, u64) = |number| (Op::Read, number * 7_919 % (1 << 20));

#[test]
fn measured_latencies_are_reproduced() {
    for (nr_sectors, depth, ns) in [(8, 1, 100e3), (8, 4, 400e3), (64, 1, 200e3), (64, 4, 800e3)] {
        let mean = mean_ns(config(), depth, nr_sectors, FAR);
        assert!(near(mean, ns), "{nr_sectors} sectors, {depth} under way: {mean}");
    }
}

#[test]
fn latencies_are_interpolated_and_extrapolated() {
    // Between measured values, the model interpolates the logarithms.
    assert!(near(mean_ns(config(), 2, 8, FAR), 200e3));
    assert!(near(mean_ns(config(), 1, 23, FAR), 141e3));
    // Beyond the largest value, the latency is proportional. Below the smallest value, it is
    // constant.
    assert!(near(mean_ns(config(), 16, 8, FAR), 1_600e3));
    assert!(near(mean_ns(config(), 1, 128, FAR), 400e3));
    assert!(near(mean_ns(config(), 1, 1, FAR), 100e3));
}

#[test]
fn sequential_commands_have_separate_times() {
    let sequential_reads = vec![cell(8, 1, [10_000, 10_000, 10_000])];
    let config = EmpiricalConfig { sequential_reads, ..config() };
    assert!(near(mean_ns(config.clone(), 1, 8, FAR), 100e3));
    assert!(near(mean_ns(config, 1, 8, |number| (Op::Read, number * 8)), 10e3));
}

#[test]
fn writes_in_flight_slow_reads_by_the_configured_factor() {
    let beside = EmpiricalConfig { reads_beside_writes: vec![3.0; 3], ..config() };
    assert!(near(mean_ns(beside.clone(), 1, 8, FAR), 100e3), "reads without writes are unchanged");
    // Reads take three times as long as without writes. Writes take as long as reads without
    // writes.
    let mixed = |number: u64| (if number.is_multiple_of(2) { Op::Write } else { Op::Read }, number * 7_919 % (1 << 20));
    assert!(near(mean_ns(beside, 1, 8, mixed), 200e3));
}

#[test]
fn commands_after_a_rest_wait_for_the_wake_up() {
    let extra = [(0.0, 300_000), (1.0, 300_000)].map(QuantilePoint::from).to_vec();
    let rested = EmpiricalConfig { rest: Some(RestConfig { ns: 1_000_000, extra }), ..config() };
    for (think_ns, depth, wanted_ns) in [(10_000, 1, 100e3), (2_000_000, 1, 400e3), (2_000_000, 2, 450e3)] {
        let mut number = 0;
        let command = Command { tag: 0, op: Op::Read, sector: 8_000, nr_sectors: 8, fua: false };
        // With the longer think time, the device rests before each round of `depth` commands.
        let outcomes = closed_loop(&mut profile(rested.clone()).device(7), depth, || {
            number += 1;
            (number <= 4_000).then_some((think_ns, command))
        });
        let mean_ns = outcomes.iter().map(|outcome| outcome.latency_ns() as f64).sum::<f64>() / outcomes.len() as f64;
        if depth == 1 {
            assert!(near(mean_ns, wanted_ns), "{think_ns}: {mean_ns}");
        } else {
            assert!(mean_ns > 350e3, "both wait: {mean_ns}");
        }
    }
}

#[test]
fn large_commands_in_flight_slow_a_small_command_more() {
    // A command of 64 sectors costs twice as much as a command of 8 sectors.
    let mut number = 0;
    let outcomes = closed_loop(&mut profile(config()).device(7), 2, || {
        number += 1;
        let nr_sectors = if number == 1 { 8 } else { 64 };
        (number <= 2).then_some((0, Command { tag: 0, op: Op::Read, sector: FAR(number).1, nr_sectors, fua: false }))
    });
    assert_eq!(outcomes.len(), 2);
    let mean = |sizes: [u32; 2]| {
        let mut number = 0;
        let outcomes = closed_loop(&mut profile(config()).device(7), 2, || {
            number += 1;
            let nr_sectors = sizes[number as usize % 2];
            (number <= 4_000)
                .then_some((0, Command { tag: 0, op: Op::Read, sector: FAR(number).1, nr_sectors, fua: false }))
        });
        let small = outcomes.iter().filter(|outcome| outcome.command.nr_sectors == 8);
        small.clone().map(|outcome| outcome.latency_ns() as f64).sum::<f64>() / small.count() as f64
    };
    assert!(mean([8, 64]) > 1.2 * mean([8, 8]), "{} {}", mean([8, 64]), mean([8, 8]));
}

#[test]
fn runs_depend_only_on_seed_and_written_profile() {
    let run = |profile: &Profile, seed| {
        let mut number = 0;
        let outcomes = closed_loop(&mut profile.device(seed), 8, || {
            number += 1;
            (number <= 200)
                .then_some((0, Command { tag: 0, op: Op::Read, sector: FAR(number).1, nr_sectors: 8, fua: false }))
        });
        outcomes.iter().map(Outcome::latency_ns).collect::<Vec<_>>()
    };
    let original = profile(config());
    let again = Profile::parse("mine", &original.to_toml().unwrap()).unwrap();
    assert_eq!(run(&original, 1), run(&again, 1));
    assert_ne!(run(&original, 1), run(&original, 2));
}

#[test]
fn errors_name_contradictory_parameters_and_the_remedy() {
    let mut no_grid = config();
    no_grid.random_reads.pop();
    let mut falls = config();
    falls.random_reads[0].ns[2] = 1;
    let mut short = config();
    short.random_reads[0].ns.pop();
    let bad = [
        (no_grid, "give exactly one cell for each pair of these values"),
        (falls, "times must not decrease from one share to the next"),
        (short, "one time for each of the 3 shares"),
        (EmpiricalConfig { shares: vec![0.1, 0.5, 1.0], ..config() }, "the last share must be 1"),
        (EmpiricalConfig { reads_beside_writes: vec![1.0], ..config() }, "one value for each of the 3 shares"),
        (EmpiricalConfig { random_reads: Vec::new(), ..config() }, "at least one cell"),
    ];
    for (config, remedy) in bad {
        let error = config.validate().unwrap_err();
        assert!(error.field.starts_with("empirical."), "{error}");
        assert!(error.remedy.contains(remedy), "{error}");
    }
}
