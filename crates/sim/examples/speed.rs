//! Measures the speed of the engine: simulated requests per second of real time, on one core.
//!
//! Run
//! `cargo run --release -p iosched-sim --example speed -- [SCHEDULER] [DEVICE] [REQUESTS | FILE]`,
//! for example with `noop fixed 2000000` or `cfq:slice_idle=0 sata-7200 trace.blktrace.0`.

#![allow(clippy::disallowed_methods, reason = "it measures this machine")]

use std::sync::Arc;
use std::time::Instant;

use iosched::{Flags, Op, Setting, Time};
use iosched_disk::Profile;
use iosched_numbers::SplitMix64;
use iosched_sim::{Histogram, Plan, Replay, Timeline, run};
use iosched_trace::TraceRequest;
use iosched_workload::{TaskSet, Trace, Workload};

const FIXED: &str = "kind = \"fixed\"\n[fixed]\ndepth = 32\nparallel = 4\nlat_ns = 50000\nns_per_sector = 100\n";

fn profile(name: &str) -> Profile {
    let profile = if name == "fixed" { Profile::parse("fixed", FIXED) } else { Profile::load(name) };
    profile.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a trace of sixteen processes, half of them sequential, at about 50,000 I/Os per second.
fn trace(requests: u64) -> Workload {
    let mut random = SplitMix64::new(1);
    let mut at_ns = 0;
    let mut next = [0u64; 16];
    let items = (0..requests).map(|_| {
        let number = random.next_u64();
        at_ns += number % 40_000;
        let process = (number >> 32) as usize % 16;
        if process < 8 {
            next[process] += 8;
        } else {
            next[process] = (number >> 20) % 10_000_000 / 8 * 8;
        }
        let op = if process % 4 == 3 { Op::Write } else { Op::Read };
        let flags = if op == Op::Read { Flags::SYNC } else { Flags::empty() };
        let sector = process as u64 * 50_000_000 + next[process] % 40_000_000;
        let arrival = Time::from_ns(at_ns);
        let latency_ns = Some(100_000);
        Ok(TraceRequest {
            arrival,
            pid: process as u32,
            device: None,
            op,
            flags,
            sector,
            nr_sectors: 8,
            latency_ns,
            ioprio: None,
        })
    });
    Workload::Trace(Arc::new(Trace::collect("synthetic", 1, items).unwrap_or_else(|error| panic!("{error}"))))
}

fn tasks(count: u64, requests: u64) -> Workload {
    let mut text = String::new();
    for pid in 1..=count {
        let pattern = if pid % 2 == 0 { "seq" } else { "random" };
        let (start, total) = (pid * 1_000_000, requests / count);
        text += &format!(
            "[[tasks]]\npid = {pid}\npattern = \"{pattern}\"\nstart_sector = {start}\nrange = [0, 1000000000]\ntotal = {total}\n\
             think_ns = [1000, 100000]\n"
        );
    }
    Workload::Tasks(TaskSet::parse("tasks", &text).unwrap_or_else(|error| panic!("{error}")).into())
}

fn main() {
    let mut args = std::env::args().skip(1);
    let scheduler = args.next().unwrap_or_else(|| "noop".to_owned());
    let device = args.next().unwrap_or_else(|| "fixed".to_owned());
    let input = args.next().unwrap_or_else(|| "1000000".to_owned());
    let setting: Setting = scheduler.parse().unwrap_or_else(|error| panic!("{error}"));
    let profile = profile(&device);
    println!("{setting} on {device}, {input}");
    histogram();
    if let Ok(requests) = input.parse() {
        let trace = trace(requests);
        measure("open replay", &setting, &profile, &trace, Replay::default());
        measure("closed replay", &setting, &profile, &trace, Replay::Closed);
        measure("16 tasks", &setting, &profile, &tasks(16, requests), Replay::default());
        measure("10,000 tasks", &setting, &profile, &tasks(10_000, requests), Replay::default());
    } else {
        let started = Instant::now();
        let workload = Workload::open(&input).unwrap_or_else(|error| panic!("{error}"));
        println!("{} processes, loaded in {:.3} s", workload.task_count(), started.elapsed().as_secs_f64());
        measure("open replay", &setting, &profile, &workload, Replay::default());
        measure("closed replay", &setting, &profile, &workload, Replay::Closed);
    }
}

fn histogram() {
    let (mut histogram, mut random) = (Histogram::default(), SplitMix64::new(1));
    let values: Vec<u64> = (0..1 << 16).map(|_| (random.next_u64() >> 40) * (random.next_u64() >> 60)).collect();
    let started = Instant::now();
    for _ in 0..100 {
        values.iter().for_each(|&ns| histogram.record(ns));
    }
    let ns = started.elapsed().as_nanos() as f64 / histogram.count() as f64;
    println!("a histogram records in {ns:.1} ns");
}

fn measure(name: &str, setting: &Setting, profile: &Profile, workload: &Workload, replay: Replay) {
    let plan = Plan { replay, ..Plan::new(workload, profile, setting.clone()) };
    let started = Instant::now();
    let result = run(&plan, ()).unwrap_or_else(|error| panic!("{error}"));
    let seconds = started.elapsed().as_secs_f64();
    let mut timeline = Timeline::default();
    let watched = Instant::now();
    run(&plan, &mut timeline).unwrap_or_else(|error| panic!("{error}"));
    let watched_seconds = watched.elapsed().as_secs_f64();
    println!(
        "{name:14} {:6.2} M/s ({:6.2} M/s with a timeline), {} requests, simulated {:.1} s, {}",
        result.ios as f64 / seconds / 1e6,
        result.ios as f64 / watched_seconds / 1e6,
        result.requests_dispatched,
        result.finished_ns as f64 / 1e9,
        result.notes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
    );
}
