//! Hosts with every order of calls: a process that finds
//! the queue full is woken, and misuse panics.

use std::collections::VecDeque;

use iosched::{
    Bio, BioError, Cgroup, CgroupId, ContextId, Driver, Due, Flags, IoClass, IoPriority, Op, QueueConfig, Registry,
    RequestId, RequestQueue, Rerun, Step, Submit, Time,
};
use proptest::prelude::*;

#[path = "../examples/two_tenants.rs"]
mod two_tenants;

const NOW: Time = Time::from_ns(1_000_000_000_000);
/// Time between completions.
const SERVICE_NS: u64 = 1_000_000;

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
    /// The device completes a request, and its process submits again at once.
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

struct Host {
    driver: Driver,
    now: Time,
    processes: Vec<ContextId>,
    op: Op,
    /// Whether processes submit although they wait.
    impatient: bool,
    /// By process: the start of a wait without own requests in flight, in completions. While
    /// requests of the process are in flight, the elevator decides when they are served.
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
    fn new(scheduler: &str, depth: u32, nr_requests: u32, op: Op, processes: usize, impatient: bool) -> Self {
        let config = QueueConfig { depth, ..QueueConfig::default() };
        let queue = RequestQueue::new(NOW, &config, Registry::linux().get(scheduler).unwrap());
        let mut driver = Driver::new(queue, Rerun::SERVED);
        driver.set_attribute(NOW, "nr_requests", &nr_requests.to_string()).unwrap();
        let process = |pid| driver.create_context(pid, IoPriority::default(), CgroupId::ROOT);
        let processes: Vec<ContextId> = (0..processes as u32).map(process).collect();
        let waits = vec![None; processes.len()];
        let (in_device, depth) = (VecDeque::new(), depth as usize);
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
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// The calls repeat, so that a process that starves once starves for good.
    #[test]
    fn processes_at_a_full_queue_are_woken_in_any_call_order(
        depth in 1u32..5,
        nr_requests in 4u32..10,
        // All bios have one operation. Elevators prefer reads, so a write with the only tag for
        // writes may wait for a long time.
        op in prop_oneof![Just(Op::Read), Just(Op::Write)],
        processes in 2usize..5,
        impatient in any::<bool>(),
        calls in prop::collection::vec(call(), 1..12),
    ) {
        for elevator in Registry::linux().elevators() {
            let mut host = Host::new(elevator.name, depth, nr_requests, op, processes, impatient);
            for process in (0..3 * processes).map(|i| i % processes) {
                host.call(Call::Submit { process });
            }
            for _ in 0..40 {
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
            // In the single-queue layer, each process may first have a batch of 32 requests.
            let first = if elevator.layer.is_multi_queue() { u64::from(2 * nr_requests) } else { 40 };
            let bound = first * processes as u64;
            prop_assert!(longest <= bound, "{}: {longest} completions, allowed {bound}", elevator.name);
            host.driver.queue().check();
        }
    }
}

/// Returns a queue with one process, and a read of that process.
fn one_process() -> (Driver, Bio) {
    let queue = RequestQueue::new(NOW, &QueueConfig::default(), Registry::linux().get("mq-deadline").unwrap());
    let mut driver = Driver::new(queue, Rerun::LINUX);
    let context = driver.create_context(1, IoPriority::default(), CgroupId::ROOT);
    let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: 0, nr_sectors: 8, context, cookie: 0 };
    (driver, bio)
}

/// Puts one request of the process into the device.
fn in_device(driver: &mut Driver, bio: &Bio) -> RequestId {
    let _ = driver.submit(NOW, bio);
    let Some(Step::Start(id)) = driver.turn(NOW, true) else { panic!("the device takes it") };
    assert_eq!(driver.turn(NOW, true), None);
    id
}

#[test]
#[should_panic(expected = "the device does not have rq0")]
fn a_request_is_completed_once() {
    let (mut driver, bio) = one_process();
    let id = in_device(&mut driver, &bio);
    driver.complete(NOW, id, Ok(()), |_, _| {});
    driver.complete(NOW, id, Ok(()), |_, _| {});
}

#[test]
#[should_panic(expected = "the device does not have rq0")]
fn a_request_that_waits_cannot_be_requeued() {
    let (mut driver, bio) = one_process();
    let Submit::Queued(id) = driver.submit(NOW, &bio) else { panic!("there is room") };
    driver.requeue(NOW, id);
}

#[test]
#[should_panic(expected = "time went back")]
fn time_never_goes_back() {
    let (mut driver, bio) = one_process();
    let _ = driver.submit(NOW + 1, &bio);
    let _ = driver.submit(NOW, &bio);
}

#[test]
fn a_bio_from_outside_is_checked_before_it_is_submitted() {
    let (mut driver, bio) = one_process();
    let most = 2 * QueueConfig::default().max_hw_sectors_kb;
    let unknown = ContextId::numbered(7);
    let gone = driver.create_context(2, IoPriority::default(), CgroupId::ROOT);
    driver.exit(NOW, gone);
    let end = u64::MAX - 7;
    for (wrong, expected) in [
        (Bio { nr_sectors: 0, ..bio }, BioError::NoSectors),
        (Bio { sector: end, ..bio }, BioError::BeyondEnd { sector: end, nr_sectors: 8 }),
        (Bio { nr_sectors: most + 1, ..bio }, BioError::TooLong { nr_sectors: most + 1, most }),
        (Bio { context: unknown, ..bio }, BioError::UnknownContext(unknown)),
        (Bio { context: gone, ..bio }, BioError::Exited(gone)),
    ] {
        assert_eq!(driver.queue().check_bio(&wrong), Err(expected));
        let submitted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| driver.submit(NOW, &wrong)));
        let message = submitted.unwrap_err().downcast::<String>().unwrap();
        assert_eq!(*message, expected.to_string());
    }
    for right in [
        bio,
        Bio { sector: end - 1, ..bio },
        Bio { nr_sectors: most, ..bio },
        Bio { op: Op::Discard, nr_sectors: most + 1, ..bio },
        Bio { op: Op::Flush, nr_sectors: 0, ..bio },
    ] {
        assert_eq!(driver.queue().check_bio(&right), Ok(()));
    }
}

#[test]
#[should_panic(expected = "the process of io context 0 has exited")]
fn a_process_exits_once() {
    let (mut driver, bio) = one_process();
    let _ = in_device(&mut driver, &bio);
    driver.exit(NOW, bio.context);
    driver.exit(NOW, bio.context);
}

#[test]
#[should_panic(expected = "the queue has no cgroup 9")]
fn a_cgroup_is_under_one_that_there_is() {
    let (mut driver, _) = one_process();
    let parent = Some(CgroupId::numbered(9));
    let _ = driver.create_cgroup(Cgroup { name: "db".to_owned(), parent, weight: None, leaf_weight: None });
}

#[test]
#[should_panic(expected = "the queue has no cgroup 9")]
fn a_process_is_in_a_cgroup_that_there_is() {
    let (mut driver, _) = one_process();
    let _ = driver.create_context(2, IoPriority::default(), CgroupId::numbered(9));
}

#[test]
fn a_level_from_outside_is_checked() {
    assert_eq!(IoPriority::checked(IoClass::BestEffort, 99), None);
    assert_eq!(IoPriority::checked(IoClass::BestEffort, 7), Some(IoPriority::new(IoClass::BestEffort, 7)));
    assert!(std::panic::catch_unwind(|| IoPriority::new(IoClass::BestEffort, 8)).is_err());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a host ends `Driver::turn` before the next event")]
fn a_turn_ends_before_the_next_event() {
    let (mut driver, bio) = one_process();
    let _ = driver.submit(NOW, &bio);
    let _ = driver.turn(NOW, true);
    let _ = driver.next_due(None, None);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a host submits when `Driver::kicked` gives nothing more")]
fn a_kick_ends_before_the_next_submission() {
    let queue = RequestQueue::new(NOW, &QueueConfig::default(), Registry::linux().get("none").unwrap());
    let mut driver = Driver::new(queue, Rerun::LINUX);
    let context = driver.create_context(1, IoPriority::default(), CgroupId::ROOT);
    let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: 0, nr_sectors: 8, context, cookie: 0 };
    let _ = driver.submit(NOW, &bio);
    assert!(driver.kicked(NOW, true).is_some());
    let _ = driver.submit(NOW, &Bio { sector: 1000, ..bio });
}
