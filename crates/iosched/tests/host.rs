//! Hosts with every order of calls: a process that finds the queue full is woken.

use std::collections::VecDeque;

use iosched::{
    Bio, Cgroup, ContextId, Driver, Due, Flags, IoPriority, KernelVersion, Op, QueueConfig, Registry, RequestId,
    RequestQueue, Rerun, Step, Submit, TagLayout, Time,
};
use proptest::prelude::*;

#[path = "../examples/two_tenants.rs"]
mod two_tenants;

const NOW: Time = Time::from_ns(1_000_000_000_000);
/// Time between completions.
const SERVICE_NS: u64 = 1_000_000;
/// Completions in the longest slice of bfq: its default `timeout_sync`, 125 ms.
const BFQ_SLICE: u64 = 125_000_000 / SERVICE_NS;

#[test]
fn a_tenant_that_submits_before_the_turn_starves_nobody() {
    for elevator in Registry::linux().elevators() {
        let served = two_tenants::served(elevator.name).unwrap();
        let all: u64 = served.iter().sum();
        assert!(all > 5_000, "{}: {served:?}", elevator.name);
        assert!(served.iter().all(|&bytes| 4 * bytes > all), "{}: {served:?}", elevator.name);
    }
}

/// Call of a host.
#[derive(Clone, Copy, Debug)]
enum Call {
    /// The device completes a request, and its process submits again immediately.
    Complete { again: bool },
    /// A process submits.
    Submit { process: usize },
    /// A turn, in which the device takes as many requests as it can.
    Turn,
    /// A number of steps of a turn.
    Steps(u8),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        4 => any::<bool>().prop_map(|again| Call::Complete { again }),
        4 => (0usize..4).prop_map(|process| Call::Submit { process }),
        1 => Just(Call::Turn),
        1 => (1u8..4).prop_map(Call::Steps),
    ]
}

/// Load of a host.
#[derive(Clone, Copy, Debug)]
struct Plan {
    nr_requests: u32,
    /// All bios have one operation. Elevators prefer reads, so a write that has the only tag for
    /// writes may wait for a long time.
    op: Op,
    processes: usize,
    /// Whether processes submit although they wait.
    impatient: bool,
}

fn plan() -> impl Strategy<Value = Plan> {
    let op = prop_oneof![Just(Op::Read), Just(Op::Write)];
    (prop_oneof![4u32..10, 10u32..80], op, 2usize..5, any::<bool>())
        .prop_map(|(nr_requests, op, processes, impatient)| Plan { nr_requests, op, processes, impatient })
}

fn config() -> impl Strategy<Value = QueueConfig> {
    let depth = prop_oneof![1u32..5, 5u32..40];
    let layout = prop_oneof![Just(TagLayout::Spread), Just(TagLayout::Compact)];
    let kernel = prop_oneof![Just("5.4"), Just("5.10"), Just("6.1"), Just("6.12"), Just("7.0")];
    let kernel = kernel.prop_map(|text| text.parse::<KernelVersion>().unwrap());
    let rest = (1u16..4, any::<bool>(), any::<bool>(), any::<bool>());
    (depth, layout, kernel, rest).prop_map(|(depth, tag_layout, kernel, rest)| {
        let (hw_queues, groups, run_at_insertion, rotational) = rest;
        QueueConfig { depth, tag_layout, kernel, hw_queues, groups, run_at_insertion, rotational, ..Default::default() }
    })
}

struct Host {
    driver: Driver,
    now: Time,
    processes: Vec<ContextId>,
    op: Op,
    /// Whether processes submit although they wait.
    impatient: bool,
    /// For each process: the start of its wait, in completions, if none of its requests is in
    /// flight. While its requests are in flight, the elevator decides when they are served.
    waits: Vec<Option<u64>>,
    under_way: Vec<u32>,
    completions: u64,
    /// Longest wait so far, in completions.
    longest: u64,
    in_device: VecDeque<RequestId>,
    depth: usize,
    sector: u64,
}

impl Host {
    fn new(scheduler: &str, config: &QueueConfig, plan: &Plan) -> Self {
        let &Plan { nr_requests, op, processes, impatient } = plan;
        let queue = RequestQueue::new(NOW, config, Registry::linux().get(scheduler).unwrap());
        let mut driver = Driver::new(queue, Rerun::SERVED);
        driver.set_attribute(NOW, "nr_requests", &nr_requests.to_string()).unwrap();
        let process = |pid: u32| {
            // Without groups, the elevators ignore these cgroups.
            let cgroup = Cgroup { name: pid.to_string(), parent: None, weight: None, leaf_weight: None };
            let cgroup = driver.create_cgroup(cgroup).unwrap();
            driver.create_context(pid, IoPriority::default(), cgroup)
        };
        let processes: Vec<ContextId> = (0..processes as u32).map(process).collect();
        let waits = vec![None; processes.len()];
        let (in_device, depth) = (VecDeque::new(), config.depth as usize);
        Self {
            driver,
            now: NOW,
            under_way: vec![0; processes.len()],
            processes,
            op,
            impatient,
            waits,
            completions: 0,
            longest: 0,
            in_device,
            depth,
            sector: 0,
        }
    }

    fn has_room(&self) -> bool {
        self.in_device.len() < self.depth
    }

    fn submit(&mut self, process: usize) {
        self.sector += 1000;
        let (op, context, cookie) = (self.op, self.processes[process], process as u64);
        let bio = Bio { op, flags: Flags::empty(), sector: self.sector, nr_sectors: 8, context, cookie };
        if self.driver.submit(self.now, &bio) == Submit::Full {
            self.waits[process].get_or_insert(self.completions);
        } else {
            self.under_way[process] += 1;
            self.waits[process] = None;
        }
        while let Some(id) = self.driver.kicked(self.now, self.has_room()) {
            self.in_device.push_back(id);
        }
    }

    fn step(&mut self) -> bool {
        match self.driver.turn(self.now, self.has_room()) {
            Some(Step::Start(id)) => self.in_device.push_back(id),
            Some(Step::Wake(context)) => {
                let process = self.processes.iter().position(|&known| known == context).unwrap();
                if let Some(since) = self.waits[process].take() {
                    self.note_wait(process, since);
                }
                self.submit(process);
            }
            None => return false,
        }
        true
    }

    fn note_wait(&mut self, process: usize, since: u64) {
        if self.under_way[process] == 0 {
            self.longest = self.longest.max(self.completions - since);
        }
    }

    fn turn(&mut self) {
        while self.step() {}
    }

    /// Completes the oldest request in the device. Turns follow until the device has one.
    fn complete(&mut self, again: bool) {
        self.now = self.now + SERVICE_NS;
        while self.in_device.is_empty() {
            self.turn();
            if !self.in_device.is_empty() {
                break;
            }
            let Some((at, due)) = self.driver.next_due(None, None) else { return };
            self.now = self.now.max(at);
            match due {
                Due::Timer => _ = self.driver.timer(self.now),
                _ => self.driver.rerun(self.now),
            }
        }
        let Some(id) = self.in_device.pop_front() else { return };
        let mut done = Vec::new();
        self.driver.complete(self.now, id, Ok(()), |bio, _| done.push(bio.cookie as usize));
        self.completions += 1;
        for process in done {
            self.under_way[process] -= 1;
            if let Some(since) = &mut self.waits[process] {
                *since = self.completions;
            }
            if again && (self.impatient || self.waits[process].is_none()) {
                self.submit(process);
            }
        }
    }

    fn call(&mut self, call: Call) {
        match call {
            Call::Complete { again } => self.complete(again),
            Call::Submit { process } => {
                let process = process % self.processes.len();
                if self.impatient || self.waits[process].is_none() {
                    self.submit(process);
                }
            }
            Call::Turn => self.turn(),
            Call::Steps(steps) => _ = (0..steps).all(|_| self.step()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// The calls repeat, so that a process that starves once starves permanently.
    #[test]
    fn processes_at_a_full_queue_are_woken_in_any_call_order(
        config in config(),
        plan in plan(),
        calls in prop::collection::vec(call(), 1..12),
    ) {
        let Plan { nr_requests, processes, .. } = plan;
        for elevator in Registry::linux().elevators() {
            let mut host = Host::new(elevator.name, &config, &plan);
            // Enough bios to fill the queue.
            let fill = processes.max(2 * nr_requests as usize * usize::from(config.hw_queues));
            for process in (0..fill).map(|i| i % processes) {
                host.call(Call::Submit { process });
            }
            for _ in 0..40.max(nr_requests) {
                calls.iter().for_each(|&call| host.call(call));
                host.complete(true);
                host.turn();
            }
            for process in 0..processes {
                if let Some(since) = host.waits[process] {
                    host.note_wait(process, since);
                }
            }
            let longest = host.longest;
            let first = match elevator.name {
                // bfq limits the tags of a process by its weight. So a process may need a tag that
                // a request of another process holds until the other process has its slice.
                "bfq" => u64::from(2 * nr_requests) + BFQ_SLICE,
                _ if elevator.layer.is_multi_queue() => u64::from(2 * nr_requests),
                // In the single-queue layer, each process may first have a batch of 32 requests.
                _ => 40,
            };
            let bound = first * processes as u64;
            prop_assert!(longest <= bound, "{}: {longest} completions, allowed {bound}", elevator.name);
            host.driver.queue().check();
        }
    }
}
