//! Compares simulated runs with recorded runs of Linux' original elevators. Both must have the same
//! requests at the same times, for the same reasons.
//!
//! `cargo xtask golden DIR` compares with the recordings themselves and shows where two runs
//! diverge. `cargo xtask golden DIR --record FILE` writes the archives that this test reads. Some
//! runs were made for one rule each. The archives contain all of these runs, so that each rule is
//! tested. They also contain all random runs of Linux 4.19, and every second random run of the
//! other recordings (`--thin 2`).

#![allow(clippy::disallowed_methods, reason = "the runs are independent")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use iosched_golden::controlled::Family;
use iosched_golden::fixture::{self, Encoder, LineHash, Minimal, Run};
use iosched_golden::{Events, lines, reason};
use iosched_sim::run_scenario;
use iosched_workload::Scenario;

/// Result of a comparison.
#[derive(Debug, PartialEq)]
enum Outcome {
    Identical,
    DecisionsDiffer(String),
    Differs(String),
    MayDiffer,
}

fn compare(run: &Run) -> Outcome {
    if let Some(family) = Family::of(&run.scenario) {
        return match family.play(&run.scenario) {
            Ok(lines) => compare_lines(run, &lines),
            Err(error) => Outcome::Differs(error.to_string()),
        };
    }
    let scenario = match Scenario::parse(&run.name, &run.scenario) {
        Ok(scenario) => scenario,
        Err(error) => return Outcome::Differs(error.to_string()),
    };
    match compare_strictly(run, &scenario) {
        Outcome::Differs(_) if reason(&scenario.sched, &run.name).is_some() => Outcome::MayDiffer,
        outcome => outcome,
    }
}

fn compare_strictly(run: &Run, scenario: &Scenario) -> Outcome {
    let mut ours = Events::of(scenario);
    if let Err(error) = run_scenario(scenario, &mut ours) {
        return Outcome::Differs(error.to_string());
    }
    let mut encoder = Encoder::default();
    let (mut bytes, mut at) = (Vec::new(), 0);
    for (now_ns, minimal) in Minimal::all(scenario, &ours.events) {
        bytes.clear();
        encoder.encode(&mut bytes, now_ns, &minimal);
        if run.minimal.get(at..at + bytes.len()) != Some(&bytes[..]) {
            return Outcome::Differs(format!("the recording has no {minimal:?} at {now_ns} ns"));
        }
        at += bytes.len();
    }
    if at < run.minimal.len() {
        return Outcome::Differs("the recording has more events".to_owned());
    }
    compare_lines(run, &lines(scenario, &ours.events))
}

fn compare_lines(run: &Run, lines: &[String]) -> Outcome {
    let hashes = LineHash::of(lines.iter().map(String::as_str));
    if hashes == run.hashes {
        return Outcome::Identical;
    }
    let same = hashes.iter().zip(&run.hashes).take_while(|(a, b)| a == b).count();
    Outcome::DecisionsDiffer(format!("after event {}", same * fixture::HASH_EVENTS))
}

/// Compares all runs of an archive on two threads. Returns the number of runs, and the names of the
/// runs that are not identical, with the reason.
fn check(archive: &[u8]) -> (usize, Vec<String>, Vec<String>) {
    let runs = fixture::read(archive).expect("the archive can be read");
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            found.push((run.name.clone(), compare(run)));
        }
        found
    };
    let mut found = thread::scope(|scope| {
        let other = scope.spawn(work);
        let mut found = work();
        found.extend(other.join().expect("no run panics"));
        found
    });
    found.sort_by(|a, b| a.0.cmp(&b.0));
    let (mut differ, mut decisions) = (Vec::new(), Vec::new());
    for (name, outcome) in found {
        match outcome {
            Outcome::Identical => {}
            Outcome::DecisionsDiffer(reason) => decisions.push(format!("{name}: {reason}")),
            Outcome::Differs(reason) => differ.push(format!("{name}: {reason}")),
            Outcome::MayDiffer => {}
        }
    }
    (runs.len(), differ, decisions)
}

/// Checks that all runs of an archive are identical in every event, except for runs that may
/// differ.
fn check_archive(archive: &[u8], expected: usize) {
    let (runs, differ, decisions) = check(archive);
    assert_eq!(runs, expected);
    assert!(differ.is_empty(), "{} of {runs} differ:\n{}", differ.len(), differ.join("\n"));
    assert!(decisions.is_empty(), "{} of {runs} have different decisions:\n{}", decisions.len(), decisions.join("\n"));
}

#[test]
fn simulated_runs_match_linux_4_19() {
    check_archive(include_bytes!("../runs/linux-4.19.gz"), 179);
}

#[test]
fn simulated_runs_match_linux_2_6() {
    check_archive(include_bytes!("../runs/historic.gz"), 279);
}

#[test]
fn simulated_runs_match_linux_6_12() {
    check_archive(include_bytes!("../runs/linux-6.12.gz"), 62);
}

#[test]
fn simulated_runs_match_linux_6_12_bfq() {
    check_archive(include_bytes!("../runs/linux-6.12-bfq.gz"), 201);
}

#[test]
fn simulated_runs_match_linux_6_12_adios() {
    check_archive(include_bytes!("../runs/linux-6.12-adios.gz"), 102);
}

#[test]
fn simulated_runs_match_linux_6_12_rqos() {
    check_archive(include_bytes!("../runs/linux-6.12-rqos.gz"), 158);
}

#[test]
fn simulated_runs_match_linux_6_12_iocost() {
    check_archive(include_bytes!("../runs/linux-6.12-iocost.gz"), 102);
}
