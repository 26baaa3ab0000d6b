//! IOzone: thirteen tests that access a file by records. Options: [`options`].
//!
//! Each test opens the file, times its loop, and closes the file. The time includes an fsync with
//! `-e`, and the close with `-c`. Otherwise the flush and the close come after the timed part.
//! Random tests visit each record once, in an order that is the same in all runs. With `-t`, each
//! process has a separate file, and all processes begin a test together. When the first process
//! finishes, the clocks of all processes stop. Readers then stop reading, but writers complete
//! their files. With several sizes of files or records, all tests run with each combination of
//! sizes.

mod options;
mod pattern;
#[cfg(test)]
mod tests;

pub(super) use options::{ABOUT, IozoneOptions};

use options::Round;
use pattern::{Pattern, Test};

use crate::app::{AppTask, Application, Better, Call, Existing, Figure, Node, OpenFlags, Report, Series, Source, Step};

const KIB: f64 = 1024.0;
/// Largest number of rounds with separate metrics. For more rounds, the report has means.
const ROUNDS_SHOWN: usize = 8;

/// Next action of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IozoneStage {
    Open,
    /// Wait until all processes have opened their files.
    Begin,
    /// Access the records, from this record on.
    Records {
        from: u64,
    },
    FlushTimed,
    CloseTimed,
    Measured,
    Flush,
    Close,
    /// Wait for the other processes.
    Next,
    Ended,
}

/// State of a process.
#[derive(Clone, Debug)]
struct Process {
    stage: IozoneStage,
    /// Records done in this test.
    done: u64,
    start_ns: u64,
    /// Rates of the tests so far, KB/s, round by round.
    rates: Vec<f64>,
}

/// A running IOzone.
#[derive(Debug)]
pub(super) struct Iozone {
    options: IozoneOptions,
    tasks: Vec<AppTask>,
    existing: Vec<Existing>,
    processes: Vec<Process>,
    /// Number of the current test, counted over all rounds.
    test: usize,
    pattern: Pattern,
    /// Number of processes that wait for the other processes.
    waiting: usize,
    /// Time at which the first process finished its loop in this test, ns.
    first_end_ns: Option<u64>,
    woken: std::ops::Range<usize>,
    /// The last process to arrive. This process does not wait, so nothing wakes it.
    awake: usize,
}

impl Iozone {
    pub(super) fn new(options: &IozoneOptions) -> Self {
        let options = options.clone();
        let count = options.task_count();
        let name = |number: usize| if count == 1 { "iozone".to_owned() } else { format!("iozone {number}") };
        let tasks = (0..count).map(|number| AppTask { name: name(number) }).collect();
        let file = |number| Existing {
            node: node(number),
            parent: Node::root(0),
            name_bytes: options.name_bytes,
            bytes: options.rounds.iter().map(|round| round.bytes()).max(),
        };
        let existing = if options.tests[0].makes_file() { Vec::new() } else { (0..count).map(file).collect() };
        let process = Process { stage: IozoneStage::Open, done: 0, start_ns: 0, rates: Vec::new() };
        let pattern = Pattern::new(options.tests[0], options.rounds[0].records);
        let processes = vec![process; count];
        Self {
            options,
            tasks,
            existing,
            processes,
            test: 0,
            pattern,
            waiting: 0,
            first_end_ns: None,
            woken: 0..0,
            awake: usize::MAX,
        }
    }

    fn kind(&self) -> Test {
        self.options.tests[self.test % self.options.tests.len()]
    }

    fn round(&self) -> Round {
        self.options.rounds[self.test / self.options.tests.len()]
    }

    /// Returns the number of tests in all rounds.
    fn tests(&self) -> usize {
        self.options.rounds.len() * self.options.tests.len()
    }

    /// Records that process `task` has reached this point. Returns whether all processes have
    /// reached it. The last process does not wait, and wakes the other processes.
    fn meet(&mut self, task: usize) -> bool {
        self.waiting += 1;
        if self.waiting < self.processes.len() {
            return false;
        }
        self.waiting = 0;
        self.woken = 0..self.processes.len();
        self.awake = task;
        true
    }

    fn open(&self, task: usize) -> Step {
        let kind = self.kind();
        // fopen(3) has no equivalent of O_DIRECT and O_SYNC.
        let (direct, sync) = (self.options.direct && !kind.is_stdio(), self.options.sync && !kind.is_stdio());
        let flags =
            OpenFlags { create: kind.makes_file(), truncate: kind.makes_file(), direct, sync, ..OpenFlags::default() };
        let (parent, name_bytes) = (Node::root(0), self.options.name_bytes);
        Step::Call(Call::Open { parent, node: node(task), name_bytes, flags })
    }

    /// Returns the access to the next records of a process. Returns `None` after the last record.
    fn records(&mut self, task: usize, from: u64, now_ns: u64) -> Option<Step> {
        let (kind, round) = (self.kind(), self.round());
        let alone = self.processes.len() == 1;
        let process = &mut self.processes[task];
        process.done = from;
        if from == round.records {
            return None;
        }
        if !alone && self.first_end_ns.is_some() && process.rates.len() == self.test {
            // Another process has finished, which stops this clock (stonewall).
            let bytes = from * round.record_bytes;
            process.rates.push(rate(bytes, now_ns - process.start_ns));
            if !kind.writes() {
                return None;
            }
        }
        let run = self.pattern.run(from);
        let count = if alone { run.count } else { 1 };
        process.stage = IozoneStage::Records { from: from + count };
        let (node, bytes) = (node(task), round.record_bytes);
        let offset = run.record * bytes;
        Some(Step::Call(if kind.writes() {
            Call::Write { node, offset, bytes, calls: count, source: Source::Buffer }
        } else {
            Call::Read { node, offset, bytes, calls: count }
        }))
    }

    /// Records the end of a process' loop, including the timed flush and close.
    fn measure(&mut self, task: usize, now_ns: u64) {
        if self.options.stonewall && self.first_end_ns.is_none() {
            self.first_end_ns = Some(now_ns);
        }
        let bytes = self.round().bytes();
        let process = &mut self.processes[task];
        if process.rates.len() == self.test {
            process.rates.push(rate(bytes, now_ns - process.start_ns));
        }
    }

    /// Ends a test of all processes.
    fn next_test(&mut self) {
        self.test += 1;
        self.first_end_ns = None;
        let is_last = self.test == self.tests();
        for process in &mut self.processes {
            process.done = 0;
            process.stage = if is_last { IozoneStage::Ended } else { IozoneStage::Open };
        }
        if !is_last {
            self.pattern = Pattern::new(self.kind(), self.round().records);
        }
    }
}

/// Returns the node of a process' file.
const fn node(task: usize) -> Node {
    Node::new(task as u32)
}

/// Returns the rate in KB/s as IOzone prints it: whole KiB per second.
fn rate(bytes: u64, ns: u64) -> f64 {
    (bytes as f64 / KIB / (ns.max(1) as f64 / 1e9)).floor()
}

impl Application for Iozone {
    fn tasks(&self) -> &[AppTask] {
        &self.tasks
    }

    fn existing(&self) -> &[Existing] {
        &self.existing
    }

    fn step(&mut self, task: usize, now_ns: u64) -> Step {
        let node = node(task);
        let (flush, close) = (self.options.include_flush, self.options.include_close);
        loop {
            let stage = self.processes[task].stage;
            match stage {
                IozoneStage::Open => {
                    self.processes[task].stage = IozoneStage::Begin;
                    return self.open(task);
                }
                IozoneStage::Begin => {
                    // The next stage is set here, so that the process is counted only once. After
                    // the process is woken, it continues in this stage, which starts its clock.
                    self.processes[task].stage = IozoneStage::Records { from: 0 };
                    self.processes[task].start_ns = u64::MAX;
                    if !self.meet(task) {
                        return Step::Wait;
                    }
                }
                IozoneStage::Records { from } => {
                    let process = &mut self.processes[task];
                    process.start_ns = process.start_ns.min(now_ns);
                    if let Some(step) = self.records(task, from, now_ns) {
                        return step;
                    }
                    self.processes[task].stage = IozoneStage::FlushTimed;
                }
                IozoneStage::FlushTimed => {
                    self.processes[task].stage = IozoneStage::CloseTimed;
                    if flush {
                        return Step::Call(Call::Fsync { node });
                    }
                }
                IozoneStage::CloseTimed => {
                    self.processes[task].stage = IozoneStage::Measured;
                    if close {
                        return Step::Call(Call::Close { node });
                    }
                }
                IozoneStage::Measured => {
                    self.measure(task, now_ns);
                    self.processes[task].stage = if close { IozoneStage::Next } else { IozoneStage::Flush };
                }
                IozoneStage::Flush => {
                    self.processes[task].stage = IozoneStage::Close;
                    if !flush && self.kind().writes() {
                        return Step::Call(Call::Fsync { node });
                    }
                }
                IozoneStage::Close => {
                    self.processes[task].stage = IozoneStage::Next;
                    return Step::Call(Call::Close { node });
                }
                IozoneStage::Next => {
                    if !self.meet(task) {
                        return Step::Wait;
                    }
                    self.next_test();
                }
                IozoneStage::Ended => return Step::Exit,
            }
        }
    }

    fn take_woken(&mut self) -> Option<usize> {
        let awake = self.awake;
        self.woken.find(|&task| task != awake)
    }

    fn progress(&self) -> f64 {
        if self.test == self.tests() {
            return 1.0;
        }
        let records = self.round().records as f64;
        let done: u64 = self.processes.iter().map(|process| process.done).sum();
        let of_test = done as f64 / records / self.processes.len() as f64;
        (self.test as f64 + of_test) / self.tests() as f64
    }

    fn report(&self) -> Report {
        if self.options.rounds.len() > ROUNDS_SHOWN {
            return self.means();
        }
        let mut report = Report::default();
        for number in 0..self.tests() {
            let Some(values) = self.rates(number) else { break };
            let name = self.name(number);
            report.figures.push(figure(&name, values.iter().sum()));
            if values.len() > 1 {
                report.series.push(series(&name, values));
            }
        }
        report
    }
}

impl Iozone {
    /// Returns the rate of each process in a test, KB/s. Returns `None` if the test has not ended
    /// for all processes.
    fn rates(&self, number: usize) -> Option<Vec<f64>> {
        self.processes.iter().map(|process| process.rates.get(number).copied()).collect()
    }

    /// Returns the name of a test, with the sizes that differ between rounds.
    fn name(&self, number: usize) -> String {
        let tests = self.options.tests.len();
        let (round, mut name) =
            (self.options.rounds[number / tests], self.options.tests[number % tests].name().to_owned());
        let differ = |of: fn(&Round) -> u64| self.options.rounds.iter().any(|other| of(other) != of(&round));
        if differ(|round| round.bytes()) {
            name = format!("{name}_{}", size(round.bytes()));
        }
        if differ(|round| round.record_bytes) {
            name = format!("{name}_{}", size(round.record_bytes));
        }
        name
    }

    /// Reports many rounds: the mean of each test over the finished rounds, and all values.
    fn means(&self) -> Report {
        let mut report = Report::default();
        for (test, kind) in self.options.tests.iter().enumerate() {
            let numbers = (test..self.tests()).step_by(self.options.tests.len());
            let values: Vec<f64> =
                numbers.map_while(|number| self.rates(number)).map(|rates| rates.iter().sum()).collect();
            if values.is_empty() {
                break;
            }
            report.figures.push(figure(kind.name(), values.iter().sum::<f64>() / values.len() as f64));
            report.series.push(series(kind.name(), values));
        }
        report
    }
}

fn figure(name: &str, value: f64) -> Figure {
    Figure { name: name.to_owned(), unit: "KB/s".into(), value, better: Better::Higher }
}

fn series(name: &str, values: Vec<f64>) -> Series {
    Series { name: name.to_owned(), unit: "KB/s".into(), values, step_s: None }
}

/// Formats a size in IOzone's syntax.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
    let unit = UNITS.iter().find(|(unit, _)| bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(unit, ending)| format!("{}{ending}", bytes / unit))
}
