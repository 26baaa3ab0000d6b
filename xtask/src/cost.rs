//! The cost of an elevator per request: insertion, dispatch and completion, including the hash for
//! merges.
//!
//! Every elevator of the registry runs the same loads. The table has two columns. The column
//! *elevator* is the cost of the elevator's own calls and of its hash for merges, without a queue.
//! For comparison, Linux' original code was measured in the same way. The cost of the measuring
//! loop (random numbers, the device, a request's fields) is measured without an elevator and
//! subtracted. The column *whole* is the cost through the request queue and its driver. It includes
//! limits or tags, statistics, bios, the arena and the loop.
//!
//! Each controller has a separate case together with `none` (such as `none+io.cost`), and does not
//! limit anything. The cost of the controller per request is the column *whole* of this case minus
//! the column *whole* of `none`.
//!
//! For a shape without lookup, the elevator of the column *elevator* makes no lookups, and the
//! queue of the column *whole* has `nomerges` 1. Two kinds of lookups remain: the lookup of the
//! request that merged last, and the lookups that elevators make themselves (kyber, none).
//!
//! The unit of times is U. U is the time to remove a random key from a `BTreeMap<u64, u64>` of
//! 1,024 entries, and to insert a new key. Each run measures U again. Costs on different machines
//! are therefore comparable. Instructions, in [`counts`], need no unit and are the same in every
//! run.

mod counts;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use iosched::Registry;
use iosched_judge::load::{
    Alone, CONTROLLER_LOADS, CONTROLLER_SHAPE, Load, Nothing, QueueTarget, Random, SHAPES, Shape, Target,
};

/// Arguments of `cargo xtask cost`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Measure only cases with this text in their names
    #[arg(long, value_name = "SUBSTRING")]
    name: Option<String>,
    /// Count instructions with valgrind instead of measuring times
    #[arg(long)]
    instructions: bool,
    /// Write the counts to xtask/counts.tsv
    #[arg(long, requires = "instructions", conflicts_with_all = ["check", "name"])]
    record: bool,
    /// List only the cases that take more instructions than xtask/counts.tsv says
    #[arg(long, requires = "instructions")]
    check: bool,
    /// Run one load and nothing else, for valgrind to count: column, scheduler, load and number of requests
    #[arg(long, hide = true, num_args = 4, value_names = ["COLUMN", "ELEVATOR", "LOAD", "REQUESTS"])]
    counted: Option<Vec<String>>,
}

/// The elevator with which other elevators are compared. No other elevator may cost more than
/// [`OF_BASELINE_MAX`] times as much.
const BASELINE: &str = "cfq";
/// Largest ratio of an elevator's cost to the cost of the baseline.
const OF_BASELINE_MAX: f64 = 1.5;
/// Upper limits of costs, in U: elevator, shape, and limit.
const LIMITS: &[(&str, &str, f64)] = &[("bfq", "random", 2.0), ("bfq", "random, lookup", 2.0)];

/// Costs of Linux' original C code, measured in the same way: elevator, shape, lowest and highest
/// cost in U. The costs of the multi-queue elevators were measured on a machine with other load.
const LINUX: &[(&str, &str, f64, f64)] = &[
    ("cfq", "sequential", 0.51, 0.51),
    ("cfq", "random", 0.85, 0.85),
    ("cfq", "random, half writes", 1.33, 1.33),
    ("cfq", "1,000 tasks x 1", 1.44, 1.44),
    ("cfq", "10,000 tasks x 1", 2.4, 2.4),
    ("cfq", "10 tasks x 10,000", 7.4, 7.4),
    ("deadline", "sequential", 0.48, 0.48),
    ("deadline", "random", 1.02, 1.02),
    ("mq-deadline", "sequential", 1.17, 1.43),
    ("mq-deadline", "random", 1.66, 1.66),
    ("mq-deadline", "sequential, lookup", 1.66, 1.66),
    ("mq-deadline", "random, lookup", 2.38, 2.38),
    ("kyber", "sequential", 0.26, 0.42),
    ("kyber", "random", 0.26, 0.30),
    ("kyber", "sequential, lookup", 0.42, 0.67),
    ("kyber", "random, lookup", 0.41, 0.41),
    ("bfq", "sequential", 1.2, 1.2),
    ("bfq", "random", 0.8, 2.0),
    ("bfq", "sequential, lookup", 1.44, 1.76),
    ("bfq", "random, lookup", 1.68, 4.64),
    ("bfq", "10,000 tasks x 1", 20.8, 20.8),
];

const ROUNDS: usize = 7;
const ROUND_REQUESTS: u64 = 300_000;

/// The unit U: a remove and an insert in a `BTreeMap` of 1,024 entries. The result is the time of
/// one such pair, ns.
struct Unit {
    map: BTreeMap<u64, u64>,
    keys: Vec<u64>,
    random: Random,
}

impl Unit {
    fn new() -> Self {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let keys: Vec<u64> = (0..1024).map(|_| random.next()).collect();
        Self { map: keys.iter().map(|&key| (key, key)).collect(), keys, random }
    }

    fn measure_ns(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..ROUND_REQUESTS {
            let slot = (self.random.next() % 1024) as usize;
            black_box(self.map.remove(&self.keys[slot]));
            let key = self.random.next();
            self.map.insert(key, key);
            self.keys[slot] = key;
        }
        start.elapsed().as_nanos() as f64 / ROUND_REQUESTS as f64
    }
}

/// Creates a load, and brings it into its steady state.
fn loaded<'a, T: Target>(elevator: &str, shape: &'a Shape) -> anyhow::Result<Load<'a, T>> {
    let mut load = Load::new(&Registry::linux(), elevator, shape, shape.warm_up())?;
    load.requests(ROUND_REQUESTS);
    Ok(load)
}

/// Returns the time per request, ns.
fn measure_ns<T: Target>(load: &mut Load<'_, T>) -> f64 {
    let start = Instant::now();
    load.requests(ROUND_REQUESTS);
    start.elapsed().as_nanos() as f64 / ROUND_REQUESTS as f64
}

/// Results of several rounds: the median in ns, and the lowest, the median and the highest in U.
/// Each round also measures the unit U again.
struct Rounds {
    ns: f64,
    low: f64,
    ratio: f64,
    high: f64,
}

impl Rounds {
    /// Creates the results from the times of all rounds and the units of these rounds, ns.
    fn new(ns: &[f64], units_ns: &[f64]) -> Self {
        let ratios = ns.iter().zip(units_ns).map(|(ns, unit_ns)| ns / unit_ns).collect();
        let (low, ratio, high) = spread(ratios);
        Self { ns: middle(ns), low, ratio, high }
    }

    /// Formats the median, with the lowest and the highest in brackets, in U.
    fn text(&self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.ratio, self.low, self.high)
    }
}

/// Returns the lowest, the median and the highest of the rounds.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn middle(values: &[f64]) -> f64 {
    spread(values.to_vec()).1
}

/// Rounds `value` to `digits` decimals.
fn rounded(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

/// The cost of an elevator with one shape of load.
struct Figure {
    elevator: &'static str,
    shape: &'static Shape,
    /// Cost of the elevator's own calls and its hash for merges, without the loop.
    alone: Rounds,
    /// Cost through the whole queue, including the loop.
    whole: Rounds,
    /// Cost of the loop.
    in_order: Rounds,
}

fn measure(unit: &mut Unit, elevator: &'static str, shape: &'static Shape) -> anyhow::Result<Figure> {
    let mut in_order = loaded::<Nothing>(elevator, shape)?;
    let mut alone = loaded::<Alone>(elevator, shape)?;
    let mut whole = loaded::<QueueTarget>(elevator, shape)?;
    let (mut units_ns, mut loops_ns, mut own_ns, mut whole_ns) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        units_ns.push(unit.measure_ns());
        let loop_ns = measure_ns(&mut in_order);
        loops_ns.push(loop_ns);
        own_ns.push(measure_ns(&mut alone) - loop_ns);
        whole_ns.push(measure_ns(&mut whole));
    }
    alone.check();
    whole.check();
    let unit_ns = middle(&units_ns);
    let rounds = |ns: &[f64]| Rounds::new(ns, &units_ns);
    let (in_order, alone, whole) = (rounds(&loops_ns), rounds(&own_ns), rounds(&whole_ns));
    let name = shape.name;
    let Rounds { ns, low, ratio, high } = &whole;
    let line = serde_json::json!({
        "elevator": elevator,
        "load": name,
        "ns": rounded(*ns, 1),
        "unit_ns": rounded(unit_ns, 1),
        "ratio": rounded(*ratio, 3),
        "ratio_low": rounded(*low, 3),
        "ratio_high": rounded(*high, 3),
        "elevator_ns": rounded(alone.ns, 1),
        "elevator_ratio": rounded(alone.ratio, 3),
        "elevator_ratio_low": rounded(alone.low, 3),
        "elevator_ratio_high": rounded(alone.high, 3),
        "loop_ns": rounded(in_order.ns, 1),
    });
    println!("{line}");
    Ok(Figure { elevator, shape, alone, whole, in_order })
}

impl Figure {
    /// Returns the cost of Linux' original code, in U, and the goal that the column *whole* misses,
    /// if any. The goal applies to the lowest round, because other programs disturbed this round
    /// least.
    fn remarks(&self, baseline: &Self) -> (String, String) {
        let key = (self.elevator, self.shape.name);
        let linux =
            LINUX.iter().find(|known| (known.0, known.1) == key).map_or_else(String::new, |&(.., low, high)| {
                if low < high { format!("{low:.2}-{high:.2}") } else { format!("{low:.2}") }
            });
        let limit = LIMITS.iter().find(|known| (known.0, known.1) == key).map(|known| known.2);
        let goal = match limit {
            Some(limit) if self.whole.low > limit => format!("above {limit} U"),
            _ if self.whole.low > OF_BASELINE_MAX * baseline.whole.low => {
                format!("above {OF_BASELINE_MAX} of {BASELINE}")
            }
            _ => "met".to_owned(),
        };
        (linux, goal)
    }
}

/// Returns the elevators, with and without controllers, that are measured with this shape. If
/// `only` is given, the name of the case must contain it. The name of a case has the form
/// `ELEVATOR SHAPE`.
fn wanted(only: Option<&str>, shape: &Shape) -> Vec<&'static str> {
    let wanted = |elevator: &&str| only.is_none_or(|part| format!("{elevator} {}", shape.name).contains(part));
    let beside = CONTROLLER_LOADS.iter().map(|load| load.name).filter(|_| shape.name == CONTROLLER_SHAPE);
    Registry::linux().names().into_iter().chain(beside).filter(wanted).collect()
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(case) = &args.counted {
        iosched_judge::cost::run_counted(&Registry::linux(), case)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.instructions {
        return counts::run(args.name.as_deref(), args.record, args.check);
    }
    time(args.name.as_deref())
}

/// Measures every elevator with every load. Prints a JSON line for each case, and a table at the
/// end. `only` selects the cases whose name contains this text. The name of a case has the form
/// `ELEVATOR SHAPE`. The baseline is measured with the same loads.
fn time(only: Option<&str>) -> anyhow::Result<ExitCode> {
    let mut unit = Unit::new();
    unit.measure_ns();
    let mut table = Vec::new();
    for shape in SHAPES {
        let elevators = wanted(only, shape);
        if elevators.is_empty() {
            continue;
        }
        let baseline = table.len();
        table.push((measure(&mut unit, BASELINE, shape)?, baseline));
        for elevator in elevators.into_iter().filter(|&elevator| elevator != BASELINE) {
            table.push((measure(&mut unit, elevator, shape)?, baseline));
        }
    }
    println!(
        "\n{:34} {:>18} {:>10} {:>8} {:>18} {:>7}  goal",
        "per request", "elevator, U", "Linux U", "whole ns", "whole, U", "of cfq"
    );
    for (figure, baseline) in &table {
        let Figure { elevator, shape, alone, whole, .. } = figure;
        let baseline = &table[*baseline].0;
        let (linux, goal) = figure.remarks(baseline);
        let name = format!("{elevator} {}", shape.name);
        let (alone, spread, ns) = (alone.text(), whole.text(), whole.ns);
        let of_baseline = whole.ratio / baseline.whole.ratio;
        println!("{name:34} {alone:>18} {linux:>10} {ns:8.1} {spread:>18} {of_baseline:7.2}  {goal}");
    }
    println!("\n{:34} {:>18}", "the loop, in whole only", "U");
    for (figure, _) in table.iter().enumerate().filter(|(at, (_, baseline))| at == baseline).map(|(_, row)| row) {
        println!("{:34} {:>18}", figure.shape.name, figure.in_order.text());
    }
    Ok(ExitCode::SUCCESS)
}
