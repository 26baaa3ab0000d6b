//! BFQ, beyond the recorded runs of Linux: shares, budgets, the order of queues, and no lost
//! requests in any sequence of calls.

use std::collections::BTreeMap;

use iosched::{
    BfqEvent, Bio, Cgroup, CgroupId, ContextId, Decision, Flags, IoClass, IoPriority, MILLISECOND_NS, Op, QueueConfig,
    RequestId, RequestQueue, SECOND_NS, Submit, Time,
};
use proptest::prelude::*;

const START: Time = Time::from_ns(1_000_000_000_000);

/// Process that keeps a number of sequential requests queued.
struct Reader {
    context: ContextId,
    position: u64,
    nr_sectors: u32,
    served_sectors: u64,
}

/// Queue with its readers, and a device that serves one request at a time.
struct Host {
    queue: RequestQueue,
    now: Time,
    readers: Vec<Reader>,
}

impl Host {
    fn new(config: &QueueConfig, tunables: &[(&str, &str)]) -> Self {
        let mut queue = RequestQueue::new(START, config, iosched::Registry::linux().get("bfq").unwrap());
        for (name, value) in tunables {
            queue.set_tunable(START, name, value).unwrap();
        }
        queue.set_attribute(START, "nomerges", "2").unwrap();
        Self { queue, now: START, readers: Vec::new() }
    }

    fn cgroup(&mut self, weight: u32) -> CgroupId {
        let parent = Some(CgroupId::ROOT);
        let group = Cgroup { name: format!("w{weight}"), parent, weight: Some(weight), leaf_weight: None };
        self.queue.create_cgroup(group).unwrap()
    }

    fn reader(&mut self, ioprio: IoPriority, cgroup: CgroupId, nr_sectors: u32, depth: usize) -> usize {
        let number = self.readers.len();
        let context = self.queue.create_context(100 + number as u32, ioprio, cgroup);
        let position = number as u64 * 1_000_000_000;
        self.readers.push(Reader { context, position, nr_sectors, served_sectors: 0 });
        for _ in 0..depth {
            self.submit(number);
        }
        number
    }

    fn submit(&mut self, reader: usize) {
        let Reader { context, position, nr_sectors, .. } = &mut self.readers[reader];
        let (sector, flags) = (*position, Flags::empty());
        let bio =
            Bio { op: Op::Read, flags, sector, nr_sectors: *nr_sectors, context: *context, cookie: reader as u64 };
        *position += u64::from(*nr_sectors);
        assert!(self.queue.submit(self.now, &bio).accepted());
    }

    /// Returns the next request, as soon as the elevator dispatches one.
    fn dispatch(&mut self) -> RequestId {
        loop {
            if let Some(id) = self.queue.dispatch(self.now) {
                return id;
            }
            self.now = self.queue.next_timer().expect("bfq dispatches queued requests or sets a timer");
            self.queue.timer(self.now);
        }
    }

    /// Serves one request, and lets its reader send another. Returns the reader.
    fn serve(&mut self, service_ns: u64) -> usize {
        let id = self.dispatch();
        self.now = self.now + service_ns;
        let mut reader = 0;
        self.queue.complete(self.now, id, Ok(()), |bio, _| reader = bio.cookie as usize);
        self.readers[reader].served_sectors += u64::from(self.readers[reader].nr_sectors);
        self.submit(reader);
        self.queue.check();
        reader
    }
}

fn best_effort(level: u8) -> IoPriority {
    IoPriority::new(IoClass::BestEffort, level)
}

const FAIR: &[(&str, &str)] = &[("low_latency", "0"), ("max_budget", "2048")];
/// Largest distance of a queue from its share: a budget in each direction.
const LAG_SECTORS: u64 = 2 * 2048;

#[test]
fn sectors_are_shared_by_weight_at_any_request_size() {
    let mut host = Host::new(&QueueConfig::default(), FAIR);
    // The weights are 80, 40 and 20.
    let readers = [(0, 8), (4, 64), (6, 256)];
    for (level, nr_sectors) in readers {
        host.reader(best_effort(level), CgroupId::ROOT, nr_sectors, 4);
    }
    while host.readers[0].served_sectors < 400_000 {
        // Service is so fast that no queue is charged for time.
        host.serve(MILLISECOND_NS / 50);
    }
    let served: Vec<u64> = host.readers.iter().map(|reader| reader.served_sectors).collect();
    assert!(served[0].abs_diff(2 * served[1]) <= 2 * LAG_SECTORS, "2 to 1: {served:?}");
    assert!(served[1].abs_diff(2 * served[2]) <= 2 * LAG_SECTORS, "2 to 1: {served:?}");
}

#[test]
fn groups_share_by_weight_regardless_of_process_count() {
    let config = QueueConfig { groups: true, ..QueueConfig::default() };
    let mut host = Host::new(&config, FAIR);
    let (light, heavy) = (host.cgroup(100), host.cgroup(300));
    for cgroup in [light, light, light, heavy] {
        host.reader(best_effort(4), cgroup, 64, 4);
    }
    for _ in 0..20_000 {
        host.serve(MILLISECOND_NS);
    }
    let light: u64 = host.readers[..3].iter().map(|reader| reader.served_sectors).sum();
    let heavy = host.readers[3].served_sectors;
    assert!(heavy.abs_diff(3 * light) <= 3 * 4 * LAG_SECTORS, "3 to 1: {heavy} and {light}");
}

#[test]
fn a_queue_never_gets_more_than_its_budget_per_turn() {
    let mut host = Host::new(&QueueConfig::default(), &[("low_latency", "0"), ("max_budget", "1024")]);
    host.queue.record_decisions(true);
    for nr_sectors in [8, 24, 200] {
        host.reader(best_effort(4), CgroupId::ROOT, nr_sectors, 4);
    }
    let mut left = BTreeMap::new();
    let (mut active, mut giving) = (0, 0);
    for _ in 0..5_000 {
        host.serve(MILLISECOND_NS / 10);
        for (_, decision) in host.queue.take_decisions() {
            match decision {
                Decision::Bfq(BfqEvent::Active { queue, budget, .. }) => {
                    active = queue;
                    left.insert(queue, budget);
                }
                Decision::Bfq(BfqEvent::Give { queue }) => giving = queue,
                Decision::Dispatch { nr_sectors, .. } if giving == active => {
                    let left = left.get_mut(&active).expect("the queue became active");
                    *left -= i64::from(nr_sectors);
                    assert!(*left >= 0, "queue {active} got more than its budget");
                }
                _ => {}
            }
        }
    }
    assert_eq!(left.len(), 3);
}

#[test]
fn a_new_process_is_served_first_and_gets_most_turns() {
    let mut host = Host::new(&QueueConfig::default(), &[]);
    let old: Vec<usize> = (0..3).map(|_| host.reader(best_effort(4), CgroupId::ROOT, 64, 8)).collect();
    // This is long enough for the old queues to finish loading.
    for _ in 0..16_000 {
        host.serve(MILLISECOND_NS);
    }
    let new = host.reader(best_effort(4), CgroupId::ROOT, 8, 1);
    let turns: Vec<usize> = (0..40).map(|_| host.serve(MILLISECOND_NS)).collect();
    let first = turns.iter().position(|&reader| reader == new);
    assert_eq!(first, Some(0), "the new process is served first");
    let of_new = turns.iter().filter(|&&reader| reader == new).count();
    assert!(of_new >= 36, "the new process got {of_new} of 40 turns, the others are {old:?}");
}

#[test]
fn real_time_goes_first_and_idle_is_not_starved() {
    let mut host = Host::new(&QueueConfig::default(), FAIR);
    let idle = host.reader(IoPriority::new(IoClass::Idle, 7), CgroupId::ROOT, 8, 2);
    let usual = host.reader(best_effort(0), CgroupId::ROOT, 8, 2);
    let urgent = host.reader(IoPriority::new(IoClass::RealTime, 7), CgroupId::ROOT, 8, 2);
    for _ in 0..4_000 {
        host.serve(MILLISECOND_NS);
    }
    let [idle, usual, urgent] = [idle, usual, urgent].map(|reader| host.readers[reader].served_sectors / 8);
    assert_eq!(usual, 0, "best effort waits while real time has requests");
    assert!((10..=40).contains(&idle), "the idle class is served every 200 ms: {idle}");
    assert!(urgent >= 3_900, "{urgent}");
}

#[test]
fn an_elevator_switch_loses_no_requests() {
    let mut host = Host::new(&QueueConfig::default(), &[]);
    for level in 0..4 {
        host.reader(best_effort(level), CgroupId::ROOT, 8, 6);
    }
    for _ in 0..10 {
        host.serve(MILLISECOND_NS);
    }
    let waiting = host.queue.waiting();
    host.queue.switch(host.now, iosched::Registry::linux().get("noop").unwrap());
    let mut done = 0;
    while let Some(id) = host.queue.dispatch(host.now) {
        host.queue.check();
        host.queue.complete(host.now, id, Ok(()), |_, _| done += 1);
    }
    assert_eq!(done, waiting);
}

#[test]
fn strict_guarantees_resets_slice_idle_and_hz_rounds_timeouts() {
    let mut queue = RequestQueue::new(START, &QueueConfig::default(), iosched::Registry::linux().get("bfq").unwrap());
    queue.set_tunable(START, "slice_idle", "0").unwrap();
    queue.set_tunable(START, "strict_guarantees", "1").unwrap();
    assert_eq!(queue.tunable("slice_idle_us"), Ok(8000), "strict guarantees require idling");
    queue.set_tunable(START, "strict_guarantees", "0").unwrap();
    assert_eq!(queue.tunable("slice_idle"), Ok(8), "slice_idle stays at 8 ms");
    let hz250 = QueueConfig { hz: 250, ..QueueConfig::default() };
    let queue = RequestQueue::new(START, &hz250, iosched::Registry::linux().get("bfq").unwrap());
    assert_eq!(queue.tunable("timeout_sync"), Ok(124), "31 jiffies of 4 ms");
}

#[test]
fn bfq_serves_all_readers_at_any_hz() {
    for hz in [1, 7, 250, 300, 1_000_000] {
        let mut host = Host::new(&QueueConfig { hz, ..QueueConfig::default() }, &[("low_latency", "0")]);
        for level in 0..3 {
            host.reader(best_effort(level), CgroupId::ROOT, 8, 2);
        }
        for _ in 0..2_000 {
            host.serve(7 * MILLISECOND_NS);
        }
        assert!(host.readers.iter().all(|reader| reader.served_sectors > 0), "at {hz} Hz");
    }
}

/// Calls that a host may make in any order.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submit { process: usize, write: bool, sync: bool, place: u64, nr_sectors: u32 },
    Dispatch,
    Complete { which: usize },
    Requeue { which: usize },
    Advance { ns: u64 },
    Priority { process: usize, class: u8, level: u8 },
    Move { process: usize, cgroup: usize },
    Exit { process: usize },
    Weight { cgroup: usize, weight: u32 },
    Remove { cgroup: usize },
    Tunable { which: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let process = 0..6usize;
    let submit = (process.clone(), any::<bool>(), any::<bool>(), 0..40u64, 1..80u32)
        .prop_map(|(process, write, sync, place, nr_sectors)| Step::Submit { process, write, sync, place, nr_sectors });
    prop_oneof![
        12 => submit,
        8 => Just(Step::Dispatch),
        6 => any::<prop::sample::Index>().prop_map(|which| Step::Complete { which: which.index(1 << 20) }),
        1 => any::<prop::sample::Index>().prop_map(|which| Step::Requeue { which: which.index(1 << 20) }),
        3 => prop_oneof![0..2_000_000u64, 0..200_000_000u64, 0..3 * SECOND_NS].prop_map(|ns| Step::Advance { ns }),
        1 => (process.clone(), 0..4u8, 0..8u8)
            .prop_map(|(process, class, level)| Step::Priority { process, class, level }),
        1 => (process.clone(), 0..4usize).prop_map(|(process, cgroup)| Step::Move { process, cgroup }),
        1 => process.prop_map(|process| Step::Exit { process }),
        1 => (1..4usize, 1..1000u32).prop_map(|(cgroup, weight)| Step::Weight { cgroup, weight }),
        1 => (1..4usize).prop_map(|cgroup| Step::Remove { cgroup }),
        1 => (0..TUNABLES.len()).prop_map(|which| Step::Tunable { which }),
    ]
}

const TUNABLES: &[(&str, &str)] = &[
    ("low_latency", "0"),
    ("low_latency", "1"),
    ("slice_idle", "0"),
    ("slice_idle", "8"),
    ("max_budget", "64"),
    ("max_budget", "0"),
    ("timeout_sync", "10"),
    ("strict_guarantees", "1"),
    ("strict_guarantees", "0"),
];

/// Queue for any sequence of calls.
struct Anything {
    queue: RequestQueue,
    now: Time,
    processes: Vec<ContextId>,
    cgroups: Vec<CgroupId>,
    in_device: Vec<RequestId>,
    accepted: u64,
    done: u64,
}

impl Anything {
    fn new(config: &QueueConfig, nr_requests: Option<u32>) -> Self {
        let mut queue = RequestQueue::new(START, config, iosched::Registry::linux().get("bfq").unwrap());
        let nr_requests = nr_requests.unwrap_or(u32::MAX);
        queue.set_attribute(START, "nr_requests", &nr_requests.to_string()).unwrap();
        let mut cgroups = vec![CgroupId::ROOT];
        for number in 1..4 {
            // The last cgroup is below the previous cgroup.
            let parent = Some(if number == 3 { cgroups[2] } else { CgroupId::ROOT });
            let group = Cgroup { name: format!("c{number}"), parent, weight: None, leaf_weight: None };
            cgroups.push(queue.create_cgroup(group).unwrap());
        }
        let processes = (0..6).map(|i| queue.create_context(i as u32, IoPriority::default(), cgroups[i % 4])).collect();
        Self { queue, now: START, processes, cgroups, in_device: Vec::new(), accepted: 0, done: 0 }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Submit { process, write, sync, place, nr_sectors } => {
                let op = if write { Op::Write } else { Op::Read };
                let flags = if sync { Flags::SYNC } else { Flags::empty() };
                let context = self.processes[process];
                let bio = Bio { op, flags, sector: place * 40, nr_sectors, context, cookie: 0 };
                // A process that must wait for a tag exits.
                if self.queue.submit(self.now, &bio) == Submit::Full {
                    self.exit(process);
                } else {
                    self.accepted += 1;
                }
            }
            Step::Dispatch => self.in_device.extend(self.queue.dispatch(self.now)),
            Step::Complete { which } if !self.in_device.is_empty() => {
                let id = self.in_device.swap_remove(which % self.in_device.len());
                self.queue.complete(self.now, id, Ok(()), |_, _| self.done += 1);
            }
            Step::Requeue { which } if !self.in_device.is_empty() => {
                let id = self.in_device.swap_remove(which % self.in_device.len());
                self.queue.requeue(self.now, id);
            }
            Step::Complete { .. } | Step::Requeue { .. } => {}
            Step::Advance { ns } => {
                let until = self.now + ns;
                while let Some(at) = self.queue.next_timer().filter(|&at| at <= until) {
                    self.now = at;
                    self.queue.timer(at);
                }
                self.now = until;
            }
            Step::Priority { process, class, level } => {
                let classes = [IoClass::None, IoClass::RealTime, IoClass::BestEffort, IoClass::Idle];
                let ioprio = IoPriority::new(classes[usize::from(class)], level);
                self.queue.set_ioprio(self.processes[process], ioprio);
            }
            Step::Move { process, cgroup } => {
                self.queue.move_context(self.now, self.processes[process], self.cgroups[cgroup]);
            }
            Step::Exit { process } => self.exit(process),
            Step::Weight { cgroup, weight } => {
                self.queue.set_weights(self.cgroups[cgroup], Some(weight), None).unwrap();
            }
            Step::Remove { cgroup } => self.queue.remove_cgroup(self.now, self.cgroups[cgroup]),
            Step::Tunable { which } => {
                let (name, value) = TUNABLES[which];
                self.queue.set_tunable(self.now, name, value).unwrap();
            }
        }
        while self.queue.take_woken().is_some() {}
        self.queue.check();
    }

    /// Replaces an exiting process by another one.
    fn exit(&mut self, process: usize) {
        self.queue.exit(self.now, self.processes[process]);
        self.processes[process] =
            self.queue.create_context(process as u32, IoPriority::default(), self.cgroups[process % 4]);
    }

    /// Serves until every accepted bio is complete.
    fn finish(&mut self) {
        let mut idle = 0;
        while self.done < self.accepted {
            if let Some(id) = self.queue.dispatch(self.now) {
                self.in_device.push(id);
                idle = 0;
            } else if let Some(id) = self.in_device.pop() {
                self.queue.complete(self.now, id, Ok(()), |_, _| self.done += 1);
            } else {
                self.step(Step::Advance { ns: 100 * MILLISECOND_NS });
                idle += 1;
                assert!(idle < 20, "only {} of {} bios complete", self.done, self.accepted);
            }
            self.queue.check();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn counters_agree_with_contents_under_random_operations(
        steps in prop::collection::vec(step(), 1..250),
        rotational in any::<bool>(),
        groups in any::<bool>(),
        nr_requests in prop_oneof![Just(None), (1..40u32).prop_map(Some)],
        recorded in any::<bool>(),
    ) {
        let config = QueueConfig { rotational, groups, ..QueueConfig::default() };
        let mut host = Anything::new(&config, nr_requests);
        host.queue.record_decisions(recorded);
        for step in steps {
            host.step(step);
        }
        host.finish();
    }
}
