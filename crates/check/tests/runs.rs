//! Tests with longer runs: the same seed gives the same events, and every kind of event happens.

use iosched_check::{Config, Coverage, Preset, Watch, elevators, operations, run};

const SEEDS: u64 = 40;
const OPERATIONS: u64 = 3_000;
const WATCH: Watch = Watch { record: true, check_every: 32 };

fn run_seed(home: usize, seed: u64, watch: Watch) -> iosched_check::Outcome {
    run_config(Config::from_seed(home, seed), seed, watch)
}

fn run_config(config: Config, seed: u64, watch: Watch) -> iosched_check::Outcome {
    let list = operations(seed, Config::swarm(seed), OPERATIONS);
    match run(&config, list, watch) {
        Ok(outcome) => outcome,
        Err(violation) => panic!("{}, seed {seed}: {violation}", elevators()[config.home].name),
    }
}

#[test]
fn the_same_seed_gives_the_same_events() {
    for home in 0..elevators().len() {
        for seed in 0..4 {
            let recorded = run_seed(home, seed, WATCH);
            assert_eq!(recorded, run_seed(home, seed, WATCH));
            let unrecorded = run_seed(home, seed, Watch::FAST);
            assert_eq!(recorded.digest, unrecorded.digest, "recording decisions changes nothing");
            let other = run_seed(home, seed + 100, Watch::FAST);
            assert_ne!(recorded.digest, other.digest, "another seed gives other events");
        }
    }
}

#[test]
fn every_kind_of_event_happens_in_the_runs() {
    let mut all = Coverage::default();
    for home in 0..elevators().len() {
        for seed in 1000..1000 + SEEDS {
            all.add(&run_seed(home, seed, WATCH).coverage);
        }
        // Switches that are off by default may be off in all these runs, so further runs turn them
        // on.
        for seed in 3000..3000 + SEEDS / 2 {
            let config = Config { preset: Preset::SwitchedOn, ..Config::from_seed(home, seed) };
            all.add(&run_config(config, seed, WATCH).coverage);
        }
    }
    for (name, count) in all.counts() {
        assert!(count > 0, "{name} never happened: {all}");
    }
}

#[test]
fn smallest_and_largest_values_cause_no_violation() {
    for (home, elevator) in elevators().iter().enumerate() {
        for (seed, preset) in (2000..2020).flat_map(|seed| [(seed, Preset::Smallest), (seed, Preset::Largest)]) {
            let config = Config { preset, ..Config::from_seed(home, seed) };
            let list = operations(seed, Config::swarm(seed), 600);
            if let Err(violation) = run(&config, list, Watch::CLOSE) {
                panic!("{}, seed {seed}, {preset:?}: {violation}", elevator.name);
            }
        }
    }
}
