//! Measures how many requests per second the simulator replays on a rotational disk, on one core.

use std::sync::Arc;
use std::time::Instant;

use iosched::{Flags, Op, Time};
use iosched_disk::Profile;
use iosched_numbers::SplitMix64;
use iosched_sim::{Plan, Replay, run as simulate};
use iosched_trace::TraceRequest;
use iosched_workload::{Trace, Workload};

/// Arguments of `cargo xtask speed`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Requests in the replayed trace
    #[arg(long, default_value_t = 1_000_000)]
    requests: u64,
    /// Measured rounds of each case
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Modelled disk
    #[arg(long, default_value = "sata-7200")]
    device: String,
    /// Measure only cases with this text in their names, such as "cfq sequential"
    #[arg(long, value_name = "SUBSTRING")]
    name: Option<String>,
}

/// Speed of published simulators, in simulated requests per second.
const PUBLISHED: f64 = 0.06e6;

/// A generated trace with 16 processes. One quarter of the processes are async writers.
struct Shape {
    name: &'static str,
    /// Number of processes with sequential I/O. The other processes have random I/O.
    sequential: usize,
    /// Mean time between arrivals, ns.
    gap_ns: u64,
    replay: Replay,
    /// Goal for the speed with CFQ, in simulated requests per second.
    goal: f64,
}

const OPEN: Replay = Replay::Open { speed: 1.0 };

const SHAPES: &[Shape] = &[
    Shape { name: "sequential, open loop", sequential: 16, gap_ns: 150_000, replay: OPEN, goal: 12e6 },
    Shape { name: "half random, open loop, overload", sequential: 8, gap_ns: 20_000, replay: OPEN, goal: 6e6 },
    Shape { name: "half random, closed loop", sequential: 8, gap_ns: 20_000, replay: Replay::Closed, goal: 5e6 },
];

fn trace(shape: &Shape, requests: u64) -> anyhow::Result<Workload> {
    let mut random = SplitMix64::new(1);
    let mut at_ns = 0;
    let mut next = [0u64; 16];
    let items = (0..requests).map(|_| {
        let number = random.next_u64();
        at_ns += number % (2 * shape.gap_ns);
        let process = (number >> 32) as usize % 16;
        if process < shape.sequential {
            next[process] += 8;
        } else {
            next[process] = (number >> 20) % 40_000_000 / 8 * 8;
        }
        let op = if process % 4 == 3 { Op::Write } else { Op::Read };
        Ok(TraceRequest {
            arrival: Time::from_ns(at_ns),
            pid: process as u32,
            device: None,
            op,
            flags: if op == Op::Read { Flags::SYNC } else { Flags::empty() },
            sector: process as u64 * 50_000_000 + next[process] % 40_000_000,
            nr_sectors: 8,
            latency_ns: Some(100_000),
            ioprio: None,
        })
    });
    Ok(Workload::Trace(Arc::new(Trace::collect("made", 1, items)?)))
}

/// Measures every case. Prints a JSON line for each case, and a table at the end.
pub(crate) fn run(args: &Args) -> anyhow::Result<std::process::ExitCode> {
    let profile = Profile::load(&args.device)?;
    let mut table = Vec::new();
    for shape in SHAPES {
        let is_wanted = |scheduler: &&str| {
            args.name.as_ref().is_none_or(|part| format!("{scheduler} {}", shape.name).contains(part))
        };
        let schedulers: Vec<&str> = ["cfq", "deadline", "noop"].into_iter().filter(is_wanted).collect();
        if schedulers.is_empty() {
            continue;
        }
        let workload = trace(shape, args.requests)?;
        for scheduler in schedulers {
            let plan = Plan { replay: shape.replay, ..Plan::new(&workload, &profile, scheduler.parse()?) };
            let mut rates = Vec::new();
            let mut simulated_s = 0.0;
            for round in 0..=args.rounds.max(1) {
                let start = Instant::now();
                let result = simulate(&plan, ())?;
                let rate = result.ios as f64 / start.elapsed().as_secs_f64();
                simulated_s = result.finished_ns as f64 / 1e9;
                if round > 0 {
                    rates.push(rate);
                }
            }
            rates.sort_by(f64::total_cmp);
            let (low, median, high) = (rates[0], rates[rates.len() / 2], rates[rates.len() - 1]);
            println!(
                "{{\"case\":\"{}\",\"scheduler\":\"{scheduler}\",\"device\":\"{}\",\"requests\":{},\"requests_per_s\":{median:.0},\"low\":{low:.0},\"high\":{high:.0},\"simulated_s\":{simulated_s:.1}}}",
                shape.name, args.device, args.requests
            );
            table.push((shape, scheduler, low, median, high));
        }
    }
    if let (Some(name), true) = (&args.name, table.is_empty()) {
        let names = SHAPES.iter().map(|shape| shape.name).collect::<Vec<_>>().join("; ");
        anyhow::bail!("--name {name:?}: no case contains this text. Cases are cfq, deadline and noop with: {names}");
    }
    let published = PUBLISHED / 1e6;
    println!("\nmillion simulated requests per second, one core, {}; published {published}", args.device);
    println!("{:36} {:10} {:>20} {:>8} {:>8} {:>14}", "", "", "median (low-high)", "goal", "of goal", "of published");
    for (shape, scheduler, low, median, high) in table {
        let spread = format!("{:.2} ({:.2}-{:.2})", median / 1e6, low / 1e6, high / 1e6);
        println!(
            "{:36} {scheduler:10} {spread:>20} {:>8.0} {:>6.0} % {:>12.0} x",
            shape.name,
            shape.goal / 1e6,
            100.0 * median / shape.goal,
            median / PUBLISHED
        );
    }
    Ok(std::process::ExitCode::SUCCESS)
}
