//! Drives a kernel with a request queue. The queue completes its requests in any order. After every
//! event, the executor checks that no data is lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use iosched::{Flags, Op};
use iosched_machine::cache::{Cached, State};
use iosched_machine::description::Machine;
use iosched_machine::model::{DiskConfig, Io, Model, Outcome};
use iosched_numbers::SplitMix64;
use iosched_workload::app::{Call, Existing, Node};

use crate::model::{Content, Medium, Written};

/// Number of sectors in a block.
const BLOCK_SECTORS: u64 = 8;
/// Maximum number of pages that a writer dirties between two checks of the limits.
const TURN_PAGES: u64 = 256;
/// Maximum number of events at one time. With more events, the test fails, because time would not
/// advance.
const STILL_EVENTS: u32 = 100_000;
/// End of the test: ten minutes, ns. No call takes longer.
const END_NS: u64 = 600_000_000_000;

/// A queue and its device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) depth: usize,
    /// Longest duration of an I/O, ns.
    pub slowest_ns: u64,
    /// Whether the device has a volatile cache.
    pub(crate) volatile: bool,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Run(u32),
    TimeUp(u32),
    Done(usize),
}

/// An I/O in flight.
#[derive(Debug)]
struct Flight {
    io: Io,
    contents: Vec<(u64, Content)>,
    flush: Option<usize>,
    submitted: u64,
}

#[derive(Debug, Default)]
struct Task {
    calls: VecDeque<Call>,
    now: Option<Call>,
    /// Number of the event that began the present call.
    began: u64,
    /// Whether the call creates or truncates the file.
    makes: bool,
    /// Pages that were written to the file before an fsync began.
    before: Vec<(u64, u64)>,
    /// Number of the event that began the last call that had changed the file.
    changed: u64,
    sync: BTreeSet<u32>,
    direct: BTreeSet<u32>,
}

pub(crate) struct Executor {
    kernel: Model,
    queue: Queue,
    rng: SplitMix64,
    now_ns: u64,
    events: BTreeMap<(u64, u64), Event>,
    /// Counter of all events.
    number: u64,
    still: u32,
    flights: Vec<Option<Flight>>,
    busy: Vec<usize>,
    congested: Vec<bool>,
    waiting: Vec<VecDeque<u32>>,
    application: usize,
    first: u32,
    tasks: Vec<Task>,
    left: usize,
    written: Written,
    media: Vec<Medium>,
    /// Completed writes to the log: the disk, and the number of the event that submitted the write.
    commits: Vec<(usize, u64)>,
    /// For each page, its block and the number of the event at which data first reached this block.
    /// The number is 0 if the test does not check the order.
    first_data: BTreeMap<(u32, u64), (u64, u64)>,
    /// For each file, the number of the event that began the last call that changed the file. An
    /// fsync must not return before this change is committed.
    changed: BTreeMap<u32, u64>,
    pub(crate) log: Vec<(u64, Io)>,
    barrier: bool,
}

impl Executor {
    pub(crate) fn new(
        machine: &Machine,
        disk: DiskConfig,
        disks: usize,
        queue: Queue,
        existing: &[Existing],
        calls: Vec<Vec<Call>>,
        seed: u64,
    ) -> Self {
        let mut kernel = Model::new(machine, &vec![disk; disks], seed).unwrap();
        let first = kernel.threads().len() as u32;
        let application = kernel.add_application(existing).unwrap();
        let tasks: Vec<_> = calls.into_iter().map(|calls| Task { calls: calls.into(), ..Task::default() }).collect();
        for _ in &tasks {
            kernel.add_task(application);
        }
        let mut first_data = BTreeMap::new();
        for existing in existing {
            let (disk, ino, _) = kernel.node(application, existing.node).unwrap();
            for page in 0..existing.bytes.unwrap_or(0).div_ceil(4096) {
                let block = kernel.file_system(disk).map(ino, page).unwrap().block;
                first_data.insert((existing.node.0, page), (block, 0));
            }
        }
        Self {
            left: tasks.len(),
            kernel,
            queue,
            rng: SplitMix64::new(seed),
            now_ns: 0,
            events: BTreeMap::new(),
            number: 0,
            still: 0,
            flights: Vec::new(),
            busy: vec![0; disks],
            congested: vec![false; disks],
            waiting: vec![VecDeque::new(); disks],
            application,
            first,
            tasks,
            written: Written::default(),
            media: (0..disks).map(|_| Medium::default()).collect(),
            commits: Vec::new(),
            first_data,
            changed: BTreeMap::new(),
            log: Vec::new(),
            barrier: machine.file_system.barrier(),
        }
    }

    /// Runs until all calls have returned.
    pub(crate) fn run(&mut self) {
        for task in 0..self.tasks.len() as u32 {
            self.go(self.first + task);
        }
        self.attend();
        while self.left > 0 {
            self.next("calls do not return");
            assert!(self.now_ns < END_NS, "calls do not return: {:?}", self.stuck());
        }
    }

    /// Runs until no page is dirty.
    pub(crate) fn run_until_clean(&mut self) {
        let end_ns = self.now_ns + END_NS;
        while !self.kernel.is_clean() {
            self.next("dirty pages stay dirty");
            assert!(self.now_ns < end_ns, "dirty pages stay dirty: {:?}", self.kernel.unclean_pages());
        }
    }

    /// Checks that everything that was written and not removed is on the medium.
    pub(crate) fn check_all_written(&self) {
        for (node, page, version) in self.written.pages() {
            self.check_on_medium(node, page, version, false);
        }
    }

    fn stuck(&self) -> Vec<Option<Call>> {
        self.tasks.iter().map(|task| task.now).collect()
    }

    fn next(&mut self, problem: &str) {
        let Some(((at_ns, _), event)) = self.events.pop_first() else {
            panic!("{problem}, and no event is left: {:?}", self.stuck());
        };
        self.still = if at_ns > self.now_ns { 0 } else { self.still + 1 };
        assert!(self.still < STILL_EVENTS, "time stands still: {:?}", self.stuck());
        self.now_ns = at_ns;
        self.number += 1;
        match event {
            Event::Run(task) => self.go(task),
            Event::TimeUp(task) => self.kernel.time_is_up(task, at_ns),
            Event::Done(flight) => self.done(flight),
        }
        self.attend();
        self.check();
    }

    fn at(&mut self, at_ns: u64, event: Event) {
        self.number += 1;
        self.events.insert((at_ns, self.number), event);
    }

    fn attend(&mut self) {
        loop {
            for disk in 0..self.busy.len() {
                while self.busy[disk] < self.queue.depth
                    && let Some(task) = self.waiting[disk].pop_front()
                {
                    self.go(task);
                }
                let congested = self.busy[disk] > self.queue.depth * 7 / 8;
                if congested != self.congested[disk] {
                    self.congested[disk] = congested;
                    self.kernel.set_congested(disk, congested);
                }
            }
            let Some(task) = self.kernel.take_ready() else { return };
            self.still += 1;
            assert!(self.still < STILL_EVENTS, "time stands still: {:?}", self.stuck());
            self.go(task);
        }
    }

    fn go(&mut self, task: u32) {
        for _ in 0..STILL_EVENTS {
            let outcome = self.kernel.run(task, self.now_ns);
            self.number += 1;
            while self.kernel.take_yield().is_some() {}
            while self.kernel.take_throttled().is_some() {}
            match outcome {
                Outcome::Cpu(ns) => {
                    assert!(ns > 0);
                    return self.at(self.now_ns + ns, Event::Run(task));
                }
                Outcome::Submit => {
                    if !self.submit(task) {
                        return;
                    }
                }
                Outcome::Blocked { until_ns } => {
                    if let Some(until_ns) = until_ns {
                        self.at(until_ns.max(self.now_ns), Event::TimeUp(task));
                    }
                    return;
                }
                Outcome::Returned => {
                    if !self.returned((task - self.first) as usize) {
                        return;
                    }
                }
                Outcome::Failed => panic!("{}", self.kernel.error().unwrap()),
            }
        }
        panic!("task {task} runs without an end: {:?}", self.stuck());
    }

    /// Submits the bios of a task. Returns false if the queue is full.
    fn submit(&mut self, task: u32) -> bool {
        loop {
            // The disk of the next bio is not known yet, so every disk must have room.
            if let Some(full) = (0..self.busy.len()).find(|&disk| self.busy[disk] >= self.queue.depth) {
                self.waiting[full].push_back(task);
                return false;
            }
            let Some(io) = self.kernel.take_io(task) else { return true };
            self.start(io);
        }
    }

    fn start(&mut self, io: Io) {
        self.number += 1;
        self.log.push((self.now_ns, io));
        self.busy[io.disk] += 1;
        let flushes = io.op == Op::Flush || io.flags.contains(Flags::PREFLUSH);
        let flight = Flight {
            io,
            contents: if io.op == Op::Write { self.contents(&io) } else { Vec::new() },
            flush: flushes.then(|| self.media[io.disk].flush_begins()),
            submitted: self.number,
        };
        let free = self.flights.iter().position(Option::is_none).unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        self.flights[free] = Some(flight);
        let takes_ns = 1_000 + self.rng.below(self.queue.slowest_ns);
        self.at(self.now_ns + takes_ns, Event::Done(free));
    }

    /// Returns the contents of files that a write stores in blocks.
    fn contents(&self, io: &Io) -> Vec<(u64, Content)> {
        let blocks = io.sector / BLOCK_SECTORS..(io.sector + u64::from(io.nr_sectors)).div_ceil(BLOCK_SECTORS);
        let mut contents = Vec::new();
        for node in self.nodes() {
            let Some((disk, ino, _)) = self.kernel.node(self.application, node).filter(|place| place.0 == io.disk)
            else {
                continue;
            };
            let fs = self.kernel.file_system(disk);
            let mut page = 0;
            while page < fs.size(ino).div_ceil(4096) {
                let Some(mapped) = fs.map(ino, page) else {
                    page += 1;
                    continue;
                };
                for (page, block) in (page..).zip(mapped.block..mapped.block + mapped.pages) {
                    if blocks.contains(&block) {
                        let version = self.written.youngest(node.0, page);
                        contents.push((block, Content { node: node.0, page, version }));
                    }
                }
                page += mapped.pages;
            }
        }
        contents
    }

    /// Returns the files that have known contents.
    fn nodes(&self) -> BTreeSet<Node> {
        self.changed.keys().map(|&node| Node(node)).collect()
    }

    fn done(&mut self, flight: usize) {
        let Flight { io, contents, flush, submitted } = self.flights[flight].take().unwrap();
        self.busy[io.disk] -= 1;
        let medium = &mut self.media[io.disk];
        if let Some(mark) = flush {
            medium.flush_ends(mark);
        }
        let volatile = self.queue.volatile && !io.flags.contains(Flags::FUA);
        medium.write(&contents, volatile);
        for (block, Content { node, page, .. }) in contents {
            // For direct I/O, the order of the data and the commit that maps its blocks is not
            // fixed.
            let direct = self.tasks.iter().any(|task| task.direct.contains(&node));
            let number = if direct { 0 } else { self.number };
            let first = self.first_data.entry((node, page)).or_insert((block, number));
            if first.0 != block {
                *first = (block, number);
            }
        }
        if io.op == Op::Write {
            let block = io.sector / BLOCK_SECTORS;
            let log = self.kernel.file_system(io.disk).journal();
            let in_log =
                log.iter().any(|run| (run.block..run.block + run.blocks).contains(&block)) && block != log[0].block;
            if in_log && (!self.barrier || io.flags.contains(Flags::FUA)) {
                self.commits.push((io.disk, submitted));
            }
        }
        self.kernel.completed(io.tag);
    }

    // ---- calls

    /// Ends a call of a task. Returns false after the last call.
    fn returned(&mut self, number: usize) -> bool {
        if let Some(call) = self.tasks[number].now.take() {
            self.call_returned(number, &call);
        }
        let Some(call) = self.tasks[number].calls.pop_front() else {
            self.left -= 1;
            self.kernel.exit(self.first + number as u32);
            return false;
        };
        self.call_begins(number, &call);
        self.tasks[number].now = Some(call);
        self.kernel.begin(self.first + number as u32, &call, &[]);
        true
    }

    fn call_begins(&mut self, number: usize, call: &Call) {
        self.number += 1;
        self.tasks[number].began = self.number;
        match *call {
            Call::Write { node, offset, bytes, calls, .. } => {
                let end = offset + bytes * calls;
                self.written.begins(number, node.0, offset / 4096, end.div_ceil(4096));
            }
            Call::Unlink { node } => {
                self.written.removed(node.0);
                self.first_data.retain(|(of, _), _| *of != node.0);
            }
            Call::Open { node, flags, .. } => {
                if flags.truncate {
                    self.written.removed(node.0);
                    self.first_data.retain(|(of, _), _| *of != node.0);
                }
                let makes = match self.kernel.node(self.application, node) {
                    Some((disk, ino, _)) => flags.truncate && self.kernel.file_system(disk).size(ino) > 0,
                    None => true,
                };
                let task = &mut self.tasks[number];
                task.makes = makes;
                if flags.sync {
                    task.sync.insert(node.0)
                } else {
                    task.sync.remove(&node.0)
                };
                if flags.direct {
                    task.direct.insert(node.0)
                } else {
                    task.direct.remove(&node.0)
                };
                self.changed.entry(node.0).or_insert(0);
            }
            Call::Fsync { node } | Call::Fdatasync { node } => {
                self.tasks[number].before = self.written.pages_of(node.0);
                self.tasks[number].changed = self.changed[&node.0];
            }
            _ => {}
        }
    }

    fn call_returned(&mut self, number: usize, call: &Call) {
        let began = self.tasks[number].began;
        match *call {
            Call::Write { node, offset, bytes, calls, .. } => {
                self.written.returned(number);
                let (sync, direct) =
                    (self.tasks[number].sync.contains(&node.0), self.tasks[number].direct.contains(&node.0));
                let end = (offset + bytes * calls).div_ceil(4096);
                let pages: Vec<_> = self.written.pages_of(node.0);
                let pages = pages.into_iter().filter(|(page, _)| (offset / 4096..end).contains(page));
                if sync {
                    // Another task may have written the pages since the fsync began. Then at least
                    // the older contents must be durable.
                    let before: Vec<_> = pages.collect();
                    self.check_durable(node.0, &before);
                } else if direct {
                    pages.for_each(|(page, version)| self.check_on_medium(node.0, page, version, false));
                } else {
                    self.changed.insert(node.0, began);
                }
            }
            Call::Open { node, flags, .. } => {
                if flags.truncate {
                    self.written.removed(node.0);
                    self.first_data.retain(|(of, _), _| *of != node.0);
                }
                if self.tasks[number].makes {
                    self.changed.insert(node.0, began);
                }
            }
            Call::Unlink { node } => {
                self.changed.remove(&node.0);
            }
            Call::Fsync { node } => {
                let before = std::mem::take(&mut self.tasks[number].before);
                self.check_durable(node.0, &before);
                let changed = self.tasks[number].changed;
                if changed > 0 {
                    let disk = self.kernel.node(self.application, node).unwrap().0;
                    let committed = self.commits.iter().any(|&(of, submitted)| of == disk && submitted > changed);
                    assert!(committed, "fsync of {node:?} returns, and no transaction was committed since it changed");
                }
            }
            Call::Fdatasync { node } => {
                let before = std::mem::take(&mut self.tasks[number].before);
                self.check_durable(node.0, &before);
            }
            _ => {}
        }
    }

    // ---- invariants

    fn check_durable(&self, node: u32, before: &[(u64, u64)]) {
        let now: BTreeMap<_, _> = self.written.pages_of(node).into_iter().collect();
        for &(page, version) in before {
            // If the contents were removed since then, they need not be on the medium.
            if now.get(&page).is_none_or(|now| *now < version) {
                continue;
            }
            self.check_on_medium(node, page, version, self.queue.volatile && self.barrier);
            let disk = self.kernel.node(self.application, Node(node)).unwrap().0;
            let Some(&(block, first)) = self.first_data.get(&(node, page)) else { continue };
            let committed = self.commits.iter().any(|&(of, submitted)| of == disk && submitted > first);
            assert!(committed || first == 0, "page {page} of {node}: block {block} was not committed after its data");
        }
    }

    fn check_on_medium(&self, node: u32, page: u64, version: u64, stable: bool) {
        let (disk, ino, _) = self.kernel.node(self.application, Node(node)).unwrap();
        let mapped = self.kernel.file_system(disk).map(ino, page);
        let block = mapped.unwrap_or_else(|| panic!("page {page} of {node} has no block")).block;
        let held = self.media[disk].holds(block, Content { node, page, version }, stable);
        assert!(held, "version {version} of page {page} of {node} is not in block {block} of the medium");
    }

    fn check(&self) {
        let cache = self.kernel.cache();
        assert!(cache.pages() <= cache.pages_max());
        for (node, page, version) in self.written.pages() {
            let (_, _, mapping) = self.kernel.node(self.application, Node(node)).expect("the file exists");
            match cache.get(mapping, page) {
                Cached::Run { state: State::Dirty | State::Writeback | State::Redirtied, .. } => {}
                _ => self.check_on_medium(node, page, version, false),
            }
        }
        let (_, hard) = self.kernel.dirty_limits();
        let metadata: u64 = (0..self.busy.len()).map(|disk| self.kernel.journal(disk).checkpoint_blocks()).sum();
        let (dirty, writeback) = self.kernel.unclean_pages();
        let under_way =
            self.flights.iter().flatten().map(|flight| u64::from(flight.io.nr_sectors).div_ceil(BLOCK_SECTORS));
        let allowed = hard + TURN_PAGES * self.tasks.len() as u64 + metadata + under_way.sum::<u64>();
        assert!(
            dirty + writeback <= allowed,
            "{dirty} dirty, {writeback} under writeback, limit {hard}, {metadata} metadata"
        );
    }
}
