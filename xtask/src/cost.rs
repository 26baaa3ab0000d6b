//! What an elevator costs per request: insert, dispatch, complete, hashing for merges included.
//!
//! Every elevator of the registry goes through the same shapes of load. Where the shape says no lookup, `nomerges` is
//! 1, as in the measurement of Linux' own code that the figures stand beside.
//!
//! Times are given in units U: the time to remove a random key from a `BTreeMap<u64, u64>` of 1,024 entries and insert
//! a new random one, measured in the same run. That makes figures of different machines comparable.

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::Instant;

use iosched::{
    Bio, CgroupId, ContextId, Driver, Due, Flags, IoPriority, Op, QueueConfig, Registry, RequestQueue, Rerun, Step,
    Submit, Time,
};

/// Where a task's next request lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Behind the last one, with a gap, so that nothing merges.
    Sequential,
    Random,
}

/// What is done to an elevator.
struct Shape {
    name: &'static str,
    tasks: u64,
    queued_per_task: u64,
    pattern: Pattern,
    /// Of 100 requests, so many are async writes.
    write_percent: u64,
    /// Whether queued requests are looked up that a bio could join. None is ever found.
    lookup: bool,
}

const SHAPES: &[Shape] = &[
    shape("sequential", 64, 16, Pattern::Sequential, 0, false),
    shape("random", 64, 16, Pattern::Random, 0, false),
    shape("random, half writes", 64, 16, Pattern::Random, 50, false),
    shape("sequential, lookup", 64, 16, Pattern::Sequential, 0, true),
    shape("random, lookup", 64, 16, Pattern::Random, 0, true),
    shape("1,000 tasks x 1", 1_000, 1, Pattern::Random, 0, false),
    shape("10,000 tasks x 1", 10_000, 1, Pattern::Random, 0, false),
    shape("10 tasks x 10,000", 10, 10_000, Pattern::Random, 0, false),
];

const fn shape(
    name: &'static str,
    tasks: u64,
    queued_per_task: u64,
    pattern: Pattern,
    write_percent: u64,
    lookup: bool,
) -> Shape {
    Shape { name, tasks, queued_per_task, pattern, write_percent, lookup }
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

const DEPTH: usize = 32;
const REQUEST_SECTORS: u32 = 8;
const SERVICE_NS: u64 = 100_000;
const ROUNDS: usize = 7;
const ROUND_REQUESTS: u64 = 300_000;

/// xorshift64: cheap enough not to be what is measured.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

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

/// A queue kept full by tasks that send a new request for each that completes.
struct Load<'a> {
    shape: &'a Shape,
    driver: Driver,
    contexts: Vec<ContextId>,
    positions: Vec<u64>,
    in_device: VecDeque<iosched::RequestId>,
    random: Random,
    now: Time,
}

impl<'a> Load<'a> {
    fn new(elevator: &str, shape: &'a Shape) -> anyhow::Result<Self> {
        let now = Time::from_ns(1_000_000_000_000);
        let mut queue = RequestQueue::new(now, &QueueConfig::default(), Registry::linux().get(elevator)?);
        // Enough for everybody, those included that may only have a part of them.
        queue.set_attribute(now, "nr_requests", &(8 * shape.tasks * shape.queued_per_task).to_string())?;
        queue.set_attribute(now, "nomerges", if shape.lookup { "0" } else { "1" })?;
        let contexts: Vec<_> = (0..shape.tasks)
            .map(|task| queue.create_context(task as u32, IoPriority::default(), CgroupId::ROOT))
            .collect();
        let positions = (0..shape.tasks).map(|task| task * 100_000_000).collect();
        let random = Random(0x1234_5678_9ABC_DEF1);
        let driver = Driver::new(queue, Rerun::LINUX);
        let mut load = Self { shape, driver, contexts, positions, in_device: VecDeque::new(), random, now };
        for _ in 0..shape.queued_per_task {
            for task in 0..shape.tasks {
                load.submit(task);
            }
        }
        // Into the steady state.
        load.requests(2 * shape.tasks * shape.queued_per_task.max(50));
        Ok(load)
    }

    fn submit(&mut self, task: u64) {
        let sector = match self.shape.pattern {
            Pattern::Sequential => {
                let position = &mut self.positions[task as usize];
                *position += 2 * u64::from(REQUEST_SECTORS);
                *position
            }
            Pattern::Random => self.random.next() % 200_000_000 * 16,
        };
        let write = self.shape.write_percent > 0 && self.random.next() % 100 < self.shape.write_percent;
        let bio = Bio {
            op: if write { Op::Write } else { Op::Read },
            flags: Flags::empty(),
            sector,
            nr_sectors: REQUEST_SECTORS,
            context: self.contexts[task as usize],
            cookie: task,
        };
        let submitted = self.driver.submit(self.now, &bio);
        debug_assert!(matches!(submitted, Submit::Queued(_) | Submit::Merged));
        black_box(submitted);
        while let Some(id) = self.driver.kicked(self.now, self.in_device.len() < DEPTH) {
            self.in_device.push_back(id);
        }
    }

    /// Lets `count` requests go through.
    fn requests(&mut self, count: u64) {
        for _ in 0..count {
            while let Some(step) = self.driver.turn(self.now, self.in_device.len() < DEPTH) {
                match step {
                    Step::Start(id) => self.in_device.push_back(id),
                    Step::Wake(_) => unreachable!("there is room for everybody"),
                }
            }
            let Some(id) = self.in_device.pop_front() else {
                // The elevator waits for a process that has nothing to send, or until it is asked again.
                let Some((at, due)) = self.driver.next_due(None, None) else {
                    unreachable!("what is queued is given out, now or later");
                };
                self.now = self.now.max(at);
                if due == Due::Timer {
                    self.driver.timer(self.now);
                } else {
                    self.driver.rerun(self.now);
                }
                continue;
            };
            self.now = self.now + SERVICE_NS;
            let mut task = 0;
            self.driver.complete(self.now, id, Ok(()), |bio, _| task = bio.cookie);
            self.submit(task);
        }
    }

    fn measure_ns(&mut self) -> f64 {
        let start = Instant::now();
        self.requests(ROUND_REQUESTS);
        start.elapsed().as_nanos() as f64 / ROUND_REQUESTS as f64
    }
}

/// Lowest, middle and highest of the rounds.
fn spread(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[0], values[values.len() / 2], values[values.len() - 1])
}

/// What an elevator costs under one shape of load.
struct Figure {
    elevator: &'static str,
    shape: &'static Shape,
    ns: f64,
    low: f64,
    ratio: f64,
    high: f64,
}

fn measure(unit: &mut Unit, elevator: &'static str, shape: &'static Shape) -> anyhow::Result<Figure> {
    let mut load = Load::new(elevator, shape)?;
    load.measure_ns();
    let mut figures = Vec::new();
    let mut ratios = Vec::new();
    let mut units = Vec::new();
    for _ in 0..ROUNDS {
        let (unit_ns, ns) = (unit.measure_ns(), load.measure_ns());
        figures.push(ns);
        units.push(unit_ns);
        ratios.push(ns / unit_ns);
    }
    load.driver.queue().check();
    let ((_, ns, _), (_, unit_ns, _)) = (spread(figures), spread(units));
    let (low, ratio, high) = spread(ratios);
    let name = shape.name;
    println!(
        "{{\"elevator\":\"{elevator}\",\"load\":\"{name}\",\"ns\":{ns:.1},\"unit_ns\":{unit_ns:.1},\"ratio\":{ratio:.3},\"ratio_low\":{low:.3},\"ratio_high\":{high:.3}}}"
    );
    Ok(Figure { elevator, shape, ns, low, ratio, high })
}

impl Figure {
    /// What Linux' own code needs, in U, and the goal this misses, if it does: by the lowest round, which is disturbed
    /// least.
    fn remarks(&self, baseline: &Self) -> (String, String) {
        let key = (self.elevator, self.shape.name);
        let linux =
            LINUX.iter().find(|known| (known.0, known.1) == key).map_or_else(String::new, |&(.., low, high)| {
                if low < high { format!("{low:.2}-{high:.2}") } else { format!("{low:.2}") }
            });
        let limit = LIMITS.iter().find(|known| (known.0, known.1) == key).map(|known| known.2);
        let goal = match limit {
            Some(limit) if self.low > limit => format!("above {limit} U"),
            _ if self.low > OF_BASELINE_MAX * baseline.low => format!("above {OF_BASELINE_MAX} of {BASELINE}"),
            _ => "met".to_owned(),
        };
        (linux, goal)
    }
}

/// Measures every elevator under every load, prints a JSON line for each and a table at the end. `only`: those whose
/// "elevator load" holds it; the baseline is measured with them.
pub(crate) fn run(only: Option<&str>) -> anyhow::Result<()> {
    let mut unit = Unit::new();
    unit.measure_ns();
    let mut table = Vec::new();
    for shape in SHAPES {
        let wanted = |elevator: &&str| only.is_none_or(|part| format!("{elevator} {}", shape.name).contains(part));
        let elevators: Vec<&'static str> = Registry::linux().names().into_iter().filter(wanted).collect();
        if elevators.is_empty() {
            continue;
        }
        let baseline = table.len();
        table.push((measure(&mut unit, BASELINE, shape)?, baseline));
        for elevator in elevators.into_iter().filter(|&elevator| elevator != BASELINE) {
            table.push((measure(&mut unit, elevator, shape)?, baseline));
        }
    }
    println!("\n{:34} {:>8} {:>18} {:>10} {:>7}  goal", "per request", "ns", "U (low to high)", "Linux U", "of cfq");
    for (figure, baseline) in &table {
        let Figure { elevator, shape, ns, low, ratio, high } = figure;
        let baseline = &table[*baseline].0;
        let (linux, goal) = figure.remarks(baseline);
        let name = format!("{elevator} {}", shape.name);
        let spread = format!("{ratio:.2} ({low:.2}-{high:.2})");
        println!("{name:34} {ns:8.1} {spread:>18} {linux:>10} {:7.2}  {goal}", ratio / baseline.ratio);
    }
    Ok(())
}
