//! Properties of every elevator of the registry, under short random lists of operations.

use std::cell::RefCell;

use iosched_check::{Config, Coverage, Mix, Operation, Theme, elevator_index, elevators, run_alike, shrink};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

/// Number of lists of operations for each elevator.
const CASES: u32 = 40;
/// Largest number of operations in a list.
const LENGTH_MAX: usize = 600;

/// Checks lists of `theme` on the elevators `homes`. `reached` returns the count of an event that
/// must happen, because the test would otherwise prove nothing.
fn check_on(homes: impl IntoIterator<Item = usize>, theme: Theme, reached: fn(&Coverage) -> u64) {
    let mix = Mix::of(theme);
    let operation = any::<u64>().prop_map(move |word| Operation::decode(word, &mix));
    let lists = (any::<u64>().no_shrink(), prop::collection::vec(operation, 100..LENGTH_MAX));
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        // Shrinking is off here, because `fail` shrinks lists by removing operations.
        max_shrink_iters: 0,
        ..ProptestConfig::default()
    };
    for home in homes {
        let coverage = RefCell::new(Coverage::default());
        let tried = runner(&config).run(&lists, |(seed, operations)| {
            let outcome = run_alike(&Config::from_seed(home, seed), &operations);
            let outcome = outcome.map_err(|violation| TestCaseError::fail(violation.to_string()))?;
            coverage.borrow_mut().add(&outcome.coverage);
            Ok(())
        });
        let name = elevators()[home].name;
        match tried {
            Ok(()) => {}
            Err(TestError::Fail(reason, (seed, operations))) => fail(home, seed, &operations, &reason.to_string()),
            Err(TestError::Abort(reason)) => panic!("{name}: {reason}"),
        }
        let coverage = coverage.into_inner();
        assert!(reached(&coverage) > 0, "{name}: the tested event did not happen: {coverage}");
    }
}

/// Returns a runner that uses the same lists each time, so that all runs have the same events.
/// `cargo soak` uses other lists.
fn runner(config: &ProptestConfig) -> TestRunner {
    TestRunner::new_with_rng(config.clone(), TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Panics with the shortest failing list of operations.
fn fail(home: usize, seed: u64, operations: &[Operation], reason: &str) {
    let config = Config::from_seed(home, seed);
    let fewest = shrink(operations, |list| run_alike(&config, list));
    let reason = run_alike(&config, &fewest).err().map_or_else(|| reason.to_owned(), |violation| violation.to_string());
    let fewest: String = fewest.iter().map(|operation| format!("\n  {operation:?}")).collect();
    panic!("{}: {reason}\n{config:?}{fewest}", elevators()[home].name);
}

fn check(theme: Theme, reached: fn(&Coverage) -> u64) {
    check_on(0..elevators().len(), theme, reached);
}

fn only(name: &str) -> Option<usize> {
    elevator_index(name)
}

/// Returns all versions of CFQ since Linux 2.6.30.
fn cfqs() -> impl Iterator<Item = usize> {
    ["cfq", "cfq-2.6.34", "cfq-2.6.30"].into_iter().filter_map(elevator_index)
}

#[test]
fn every_bio_is_completed_exactly_once() {
    check(Theme::Everything, |coverage| coverage.errors.min(coverage.exits));
}

#[test]
fn a_request_consists_of_its_bios_in_order() {
    // Under kyber and none, only bios merge with requests.
    let (bios_only, all) = (["kyber", "none"].map(elevator_index), 0..elevators().len());
    check_on(all.filter(|&home| !bios_only.contains(&Some(home))), Theme::Queueing, |coverage| coverage.absorbed);
    check_on(bios_only.into_iter().flatten(), Theme::Queueing, |coverage| coverage.merges);
}

#[test]
fn sync_bios_do_not_join_async_requests_under_cfq() {
    check_on(cfqs(), Theme::Queueing, |coverage| coverage.merges);
}

#[test]
fn no_request_crosses_a_flush() {
    check(Theme::Flushes, |coverage| coverage.flushes);
}

#[test]
fn no_request_crosses_a_barrier() {
    let in_single_queue = (0..elevators().len()).filter(|&home| !elevators()[home].layer.is_multi_queue());
    check_on(in_single_queue, Theme::Flushes, |coverage| coverage.barriers);
}

#[test]
fn allocation_respects_nr_requests_and_every_waiter_is_woken() {
    check(Theme::Queueing, |coverage| coverage.full.min(coverage.woken));
}

#[test]
fn statistics_and_counters_match_the_events() {
    check(Theme::Control, |coverage| coverage.merges.min(coverage.flushes));
}

#[test]
fn noop_serves_in_order() {
    check_on(only("noop"), Theme::Queueing, |coverage| coverage.requests);
}

#[test]
fn deadline_passes_over_expired_requests_a_bounded_time() {
    check_on(only("deadline"), Theme::Time, |coverage| coverage.expired);
}

#[test]
fn waiting_requests_make_progress() {
    check(Theme::Time, |coverage| coverage.drains);
}

#[test]
fn a_request_or_a_timer_ends_the_idling_of_cfq() {
    check_on(cfqs(), Theme::Time, |coverage| coverage.idle.min(coverage.timers));
}

#[test]
fn values_out_of_range_are_refused_and_change_nothing() {
    check(Theme::Control, |coverage| coverage.refused);
}

#[test]
fn processes_start_and_exit_with_requests_in_flight() {
    check(Theme::Processes, |coverage| coverage.exits.min(coverage.exits_waiting));
}

#[test]
fn switching_elevators_loses_no_requests() {
    check(Theme::Switching, |coverage| coverage.switches.min(coverage.switches_twice));
}
