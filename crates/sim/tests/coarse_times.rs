//! Traces with coarse times: the simulated arrivals, and the start of latencies.

use std::sync::Arc;

use iosched::{Flags, Op, Time};
use iosched_disk::Profile;
use iosched_numbers::SplitMix64;
use iosched_sim::{Plan, run};
use iosched_trace::TraceRequest;
use iosched_workload::{Trace, Workload};

const SECOND_NS: u64 = 1_000_000_000;

/// Returns a device that serves one command of 8 sectors at a time, in 1 ms.
fn one_at_a_time(depth: u32) -> Profile {
    let text =
        format!("kind = \"fixed\"\n[fixed]\ndepth = {depth}\nparallel = 1\nlat_ns = 1000000\nns_per_sector = 0\n");
    Profile::parse("fixed", &text).unwrap()
}

/// Returns independent arrivals of three processes, `rate` per second in total. The times are
/// rounded down to multiples of `grain_ns`.
fn arrivals(rate: u64, seconds: u64, grain_ns: u64, resolution_ns: u64) -> Workload {
    let mut rng = SplitMix64::new(5);
    let mut times: Vec<u64> = (0..rate * seconds).map(|_| rng.below(seconds * SECOND_NS)).collect();
    times.sort_unstable();
    times[0] = 0;
    let requests = times.iter().enumerate().map(|(i, at_ns)| {
        Ok(TraceRequest {
            arrival: Time::from_ns(at_ns / grain_ns * grain_ns),
            pid: i as u32 % 3,
            device: None,
            op: Op::Read,
            flags: Flags::SYNC,
            sector: i as u64 * 1_000,
            nr_sectors: 8,
            latency_ns: None,
            ioprio: None,
        })
    });
    Workload::Trace(Arc::new(Trace::collect("t", resolution_ns, requests).unwrap()))
}

/// Returns the mean latency of an open replay, ns. The queue has at most `nr_requests` requests.
fn mean_ns(workload: &Workload, depth: u32, nr_requests: u32, seed: u64) -> f64 {
    let profile = one_at_a_time(depth);
    let setting = format!("noop:nr_requests={nr_requests}").parse().unwrap();
    let plan = Plan { seed, ..Plan::new(workload, &profile, setting) };
    run(&plan, ()).unwrap().latency.reads.mean_ns()
}

#[test]
fn times_in_seconds_give_the_latency_of_exact_times() {
    let exact = mean_ns(&arrivals(300, 60, 1, 1), 1, 64, 1);
    for seed in 1..4 {
        let coarse = mean_ns(&arrivals(300, 60, SECOND_NS, SECOND_NS), 1, 64, seed);
        assert!((coarse / exact - 1.0).abs() < 0.03, "{coarse} against {exact} ns");
    }
}

#[test]
fn waits_for_tags_count_from_the_simulated_arrival() {
    // With only four requests, processes often wait at a load of 60 %.
    let exact = mean_ns(&arrivals(600, 60, 1, 1), 1, 4, 1);
    let coarse = mean_ns(&arrivals(600, 60, SECOND_NS, SECOND_NS), 1, 4, 1);
    assert!((coarse / exact - 1.0).abs() < 0.06, "{coarse} against {exact} ns");
}
