//! What an elevator costs per request: insert, dispatch, complete, hashing for merges included.
//!
//! Bios are not looked up for merging in the comparable figures (`nomerges` is 1), as in the measurement of Linux' own
//! code that they stand beside; what the lookups add is the last column.
//!
//! Times are given in units U: the time to remove a random key from a `BTreeMap<u64, u64>` of 1,024 entries and insert a
//! new random one, measured in the same run. That makes figures of different machines comparable.

use std::collections::{BTreeMap, VecDeque};
use std::hint::black_box;
use std::time::Instant;

use iosched::{Bio, CgroupId, ContextId, Flags, IoPriority, Op, QueueConfig, RequestQueue, Submit, Time};

/// Where a task's next request lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// Behind the last one, with a gap, so that nothing merges.
    Sequential,
    Random,
}

/// One measurement.
struct Case {
    name: &'static str,
    elevator: &'static str,
    tasks: u64,
    queued_per_task: u64,
    pattern: Pattern,
    /// Of 100 requests, so many are async writes.
    write_percent: u64,
    /// Linux' own C code, measured the same way, in U.
    linux_ratio: f64,
}

const CASES: &[Case] = &[
    case("cfq sequential", "cfq", 64, 16, Pattern::Sequential, 0, 0.51),
    case("cfq random", "cfq", 64, 16, Pattern::Random, 0, 0.85),
    case("cfq random, half writes", "cfq", 64, 16, Pattern::Random, 50, 1.33),
    case("deadline sequential", "deadline", 64, 16, Pattern::Sequential, 0, 0.48),
    case("deadline random", "deadline", 64, 16, Pattern::Random, 0, 1.02),
    case("cfq random, 1,000 tasks x 1", "cfq", 1_000, 1, Pattern::Random, 0, 1.44),
    case("cfq random, 10,000 tasks x 1", "cfq", 10_000, 1, Pattern::Random, 0, 2.4),
    case("cfq random, 10 tasks x 10,000", "cfq", 10, 10_000, Pattern::Random, 0, 7.4),
];

const fn case(
    name: &'static str,
    elevator: &'static str,
    tasks: u64,
    queued_per_task: u64,
    pattern: Pattern,
    write_percent: u64,
    linux_ratio: f64,
) -> Case {
    Case { name, elevator, tasks, queued_per_task, pattern, write_percent, linux_ratio }
}

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
    case: &'a Case,
    queue: RequestQueue,
    contexts: Vec<ContextId>,
    positions: Vec<u64>,
    in_device: VecDeque<iosched::RequestId>,
    random: Random,
    now: Time,
}

impl<'a> Load<'a> {
    fn new(case: &'a Case) -> anyhow::Result<Self> {
        let now = Time::from_ns(1_000_000_000_000);
        let mut queue = RequestQueue::new(now, &QueueConfig::default(), case.elevator)?;
        queue.set_attribute(now, "nr_requests", "1000000")?;
        queue.set_attribute(now, "nomerges", "1")?;
        let contexts: Vec<_> = (0..case.tasks)
            .map(|task| queue.create_context(task as u32, IoPriority::default(), CgroupId::ROOT))
            .collect();
        let positions = (0..case.tasks).map(|task| task * 100_000_000).collect();
        let random = Random(0x1234_5678_9ABC_DEF1);
        let mut load = Self { case, queue, contexts, positions, in_device: VecDeque::new(), random, now };
        for _ in 0..case.queued_per_task {
            for task in 0..case.tasks {
                load.submit(task);
            }
        }
        // Into the steady state.
        load.requests(2 * case.tasks * case.queued_per_task.max(50));
        Ok(load)
    }

    fn submit(&mut self, task: u64) {
        let sector = match self.case.pattern {
            Pattern::Sequential => {
                let position = &mut self.positions[task as usize];
                *position += 2 * u64::from(REQUEST_SECTORS);
                *position
            }
            Pattern::Random => self.random.next() % 200_000_000 * 16,
        };
        let write = self.case.write_percent > 0 && self.random.next() % 100 < self.case.write_percent;
        let bio = Bio {
            op: if write { Op::Write } else { Op::Read },
            flags: Flags::empty(),
            sector,
            nr_sectors: REQUEST_SECTORS,
            context: self.contexts[task as usize],
            cookie: task,
        };
        let submitted = self.queue.submit(self.now, &bio);
        debug_assert!(matches!(submitted, Submit::Queued(_) | Submit::Merged));
        black_box(submitted);
        self.queue.take_kick();
    }

    /// Lets `count` requests go through.
    fn requests(&mut self, count: u64) {
        for _ in 0..count {
            while self.in_device.len() < DEPTH {
                match self.queue.dispatch(self.now) {
                    Some(id) => self.in_device.push_back(id),
                    None => break,
                }
            }
            let Some(id) = self.in_device.pop_front() else {
                // The elevator waits for a process that has nothing to send.
                let at = self.queue.next_timer().expect("a queue with requests gives one out or has a timer");
                self.now = self.now.max(at);
                self.queue.timer(self.now);
                continue;
            };
            self.now = self.now + SERVICE_NS;
            let mut task = 0;
            self.queue.complete(self.now, id, Ok(()), |bio, _| task = bio.cookie);
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

/// Measures every case, prints a JSON line for each and a table at the end.
pub(crate) fn run(only: Option<&str>) -> anyhow::Result<()> {
    let mut unit = Unit::new();
    unit.measure_ns();
    let mut table = Vec::new();
    for case in CASES.iter().filter(|case| only.is_none_or(|part| case.name.contains(part))) {
        let mut load = Load::new(case)?;
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
        load.queue.check();
        let ((_, ns, _), (_, unit_ns, _)) = (spread(figures), spread(units));
        let (low, ratio, high) = spread(ratios);
        println!(
            "{{\"case\":\"{}\",\"ns\":{ns:.1},\"unit_ns\":{unit_ns:.1},\"ratio\":{ratio:.3},\"ratio_low\":{low:.3},\"ratio_high\":{high:.3},\"linux_ratio\":{}}}",
            case.name, case.linux_ratio
        );
        table.push((case, ns, low, ratio, high));
    }
    println!("\n{:32} {:>8} {:>17} {:>8} {:>8}", "per request", "ns", "U (low to high)", "Linux U", "of Linux");
    for (case, ns, low, ratio, high) in table {
        let spread = format!("{ratio:.2} ({low:.2}-{high:.2})");
        let of_linux = 100.0 * ratio / case.linux_ratio;
        println!("{:32} {ns:8.1} {spread:>17} {:8.2} {of_linux:6.0} %", case.name, case.linux_ratio);
    }
    Ok(())
}
