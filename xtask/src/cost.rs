//! What an elevator costs per request: insert, dispatch, complete, hashing for merges included.
//!
//! Every elevator of the registry goes through the same shapes of load, in two columns. *Elevator* is what the
//! elevator's own calls and its hash for merges cost, without a queue around them, as in the measurement of Linux' own
//! code that the figures stand beside; what the loop of the measurement costs (random numbers, the device, a request's
//! fields) is measured with no elevator in it and subtracted. *Whole* is all of it through the request queue and its
//! driver: limits or tags, statistics, bios, the arena, and the loop, too.
//!
//! Controllers stand beside `none` in cases of their own (`none+io.cost`), and let everything pass: their whole column less
//! that of `none` is what a controller costs a request.
//!
//! Where the shape says no lookup, nothing is looked up in the first column, and `nomerges` is 1 in the second, which
//! leaves the request merged last, and the elevators that look for merges themselves (kyber, none).
//!
//! Times are given in units U: the time to remove a random key from a `BTreeMap<u64, u64>` of 1,024 entries and insert
//! a new random one, measured in the same run. That makes figures of different machines comparable. Instructions, in
//! [`counts`], need no unit, and are the same in every run.

mod counts;
mod load;

use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use iosched::Registry;

use load::{Alone, BESIDE, BESIDE_SHAPE, Load, Nothing, Random, SHAPES, Shape, Target, Whole};

/// The measurement.
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

/// What others are measured against: none is to be dearer by more than half.
const BASELINE: &str = "cfq";
/// Times the baseline's cost that an elevator may have.
const OF_BASELINE_MAX: f64 = 1.5;
/// What an elevator may cost at most, in U: elevator, shape, limit.
const LIMITS: &[(&str, &str, f64)] = &[("bfq", "random", 2.0), ("bfq", "random, lookup", 2.0)];

/// Linux' own C code, measured the same way: elevator, shape, lowest and highest U. Those of the multi-queue elevators
/// were taken on a busy machine.
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

/// Remove and insert in a `BTreeMap` of 1,024 entries: ns per pair.
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

/// One load, ready to be measured.
fn loaded<'a, T: Target>(elevator: &str, shape: &'a Shape) -> anyhow::Result<Load<'a, T>> {
    let mut load = Load::new(elevator, shape, shape.warm_up())?;
    load.requests(ROUND_REQUESTS);
    Ok(load)
}

/// ns per request.
fn measure_ns<T: Target>(load: &mut Load<'_, T>) -> f64 {
    let start = Instant::now();
    load.requests(ROUND_REQUESTS);
    start.elapsed().as_nanos() as f64 / ROUND_REQUESTS as f64
}

/// What was measured in several rounds, each beside the unit: ns in the middle, and in U the lowest, the middle and the
/// highest.
struct Rounds {
    ns: f64,
    low: f64,
    ratio: f64,
    high: f64,
}

impl Rounds {
    /// `ns` and the unit's, of each round.
    fn new(ns: &[f64], units_ns: &[f64]) -> Self {
        let ratios = ns.iter().zip(units_ns).map(|(ns, unit_ns)| ns / unit_ns).collect();
        let (low, ratio, high) = spread(ratios);
        Self { ns: middle(ns), low, ratio, high }
    }

    /// The middle of them, and in brackets the lowest and the highest, in U.
    fn text(&self) -> String {
        format!("{:.2} ({:.2}-{:.2})", self.ratio, self.low, self.high)
    }
}

/// Lowest, middle and highest of the rounds.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

fn middle(values: &[f64]) -> f64 {
    spread(values.to_vec()).1
}

/// `value` to so many digits behind the point.
fn rounded(value: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (value * factor).round() / factor
}

/// What an elevator costs under one shape of load.
struct Figure {
    elevator: &'static str,
    shape: &'static Shape,
    /// Its own calls and its hash; the loop is subtracted.
    alone: Rounds,
    /// Through the whole queue, the loop included.
    whole: Rounds,
    /// The loop.
    in_order: Rounds,
}

fn measure(unit: &mut Unit, elevator: &'static str, shape: &'static Shape) -> anyhow::Result<Figure> {
    let mut in_order = loaded::<Nothing>(elevator, shape)?;
    let mut alone = loaded::<Alone>(elevator, shape)?;
    let mut whole = loaded::<Whole>(elevator, shape)?;
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
    /// What Linux' own code needs, in U, and the goal this misses as a whole, if it does: by the lowest round, which is
    /// disturbed least.
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

/// The elevators, and those with a controller beside them, whose "elevator load" holds `only`.
fn wanted(only: Option<&str>, shape: &Shape) -> Vec<&'static str> {
    let wanted = |elevator: &&str| only.is_none_or(|part| format!("{elevator} {}", shape.name).contains(part));
    let beside = BESIDE.iter().map(|load| load.name).filter(|_| shape.name == BESIDE_SHAPE);
    Registry::linux().names().into_iter().chain(beside).filter(wanted).collect()
}

/// Does what the arguments say.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if let Some(case) = &args.counted {
        return counts::run_counted(case);
    }
    if args.instructions {
        return counts::run(args.name.as_deref(), args.record, args.check);
    }
    time(args.name.as_deref())
}

/// Measures every elevator under every load, prints a JSON line for each and a table at the end. `only`: those whose
/// "elevator load" holds it; the baseline is measured with them.
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
