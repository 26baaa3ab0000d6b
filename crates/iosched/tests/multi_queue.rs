//! The multi-queue layer: tags, waiting, plugs, merging at insertion, requeue, and switching
//! between the layers.

use std::collections::{BTreeMap, BTreeSet};

use iosched::{
    Bio, CgroupId, ContextId, Decision, Flags, IoClass, IoPriority, Op, QueueConfig, RequestId, RequestQueue, Submit,
    Time,
};
use proptest::prelude::*;

const NOW: Time = Time::from_ns(1_000_000_000_000);

fn queue(scheduler: &str, depth: u32, hw_queues: u16) -> RequestQueue {
    let config = QueueConfig { depth, hw_queues, write_cache: false, ..QueueConfig::default() };
    RequestQueue::new(NOW, &config, iosched::Registry::linux().get(scheduler).unwrap())
}

fn process(queue: &mut RequestQueue, class: IoClass) -> ContextId {
    queue.create_context(1, IoPriority::new(class, 4), CgroupId::ROOT)
}

fn bio(op: Op, sector: u64, context: ContextId) -> Bio {
    Bio { op, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie: sector }
}

fn complete(queue: &mut RequestQueue, now: Time, id: RequestId) -> Vec<u64> {
    let mut done = Vec::new();
    queue.complete(now, id, Ok(()), |bio, _| done.push(bio.cookie));
    done
}

#[test]
fn nr_requests_follows_the_device_and_the_elevator() {
    for (scheduler, depth, expected) in
        [("mq-deadline", 32, "64"), ("kyber", 1023, "256"), ("none", 1023, "1023"), ("deadline", 32, "128")]
    {
        assert_eq!(queue(scheduler, depth, 1).attribute("nr_requests").unwrap(), expected, "{scheduler}");
    }
    let mut queue = queue("mq-deadline", 16, 1);
    assert_eq!(queue.tunable("async_depth"), Ok(32));
    queue.set_attribute(NOW, "nr_requests", "10").unwrap();
    assert_eq!(queue.tunable("async_depth"), Ok(10));
}

#[test]
fn a_freed_tag_is_reserved_for_the_waiting_process() {
    let mut queue = queue("mq-deadline", 8, 1);
    queue.set_attribute(NOW, "nr_requests", "1").unwrap();
    let [a, b] = [(); 2].map(|()| process(&mut queue, IoClass::None));
    assert!(queue.submit(NOW, &bio(Op::Read, 0, a)).accepted());
    assert_eq!(queue.submit(NOW, &bio(Op::Read, 100, b)), Submit::Full);
    assert_eq!(queue.take_woken(), None);
    let id = queue.dispatch(NOW).unwrap();
    complete(&mut queue, NOW, id);
    assert_eq!(queue.take_woken(), Some(b));
    assert_eq!(queue.submit(NOW, &bio(Op::Read, 200, a)), Submit::Full, "the tag is reserved for b");
    assert!(matches!(queue.submit(NOW, &bio(Op::Read, 100, b)), Submit::Queued(_)));
    queue.check();
}

#[test]
fn a_tag_reserved_for_an_exiting_process_goes_to_the_next() {
    let mut queue = queue("kyber", 8, 1);
    queue.set_attribute(NOW, "nr_requests", "1").unwrap();
    let [a, b, c] = [(); 3].map(|()| process(&mut queue, IoClass::None));
    queue.submit(NOW, &bio(Op::Read, 0, a));
    for (context, sector) in [(b, 100), (c, 200)] {
        assert_eq!(queue.submit(NOW, &bio(Op::Read, sector, context)), Submit::Full);
    }
    let id = queue.dispatch(NOW).unwrap();
    complete(&mut queue, NOW, id);
    assert_eq!(queue.take_woken(), Some(b));
    queue.exit(NOW, b);
    assert_eq!(queue.take_woken(), Some(c));
    queue.check();
}

#[test]
fn requests_of_a_plug_merge_when_they_are_inserted() {
    let mut queue = queue("mq-deadline", 8, 1);
    queue.record_decisions(true);
    let a = process(&mut queue, IoClass::None);
    queue.plug(a);
    for sector in [0, 16, 8] {
        queue.submit(NOW, &bio(Op::Write, sector, a));
    }
    assert!(queue.unplug(NOW, a));
    assert!(!queue.unplug(NOW, a));
    let merges = queue.take_decisions().filter(|(_, d)| matches!(d, Decision::RequestMerge { .. })).count();
    assert_eq!(merges, 1);
    queue.check();
    let id = queue.dispatch(NOW).unwrap();
    assert_eq!((queue.request(id).sector(), queue.request(id).nr_sectors()), (0, 24));
}

#[test]
fn returned_requests_are_served_first() {
    for elevator in iosched::Registry::linux().elevators() {
        let mut queue = queue(elevator.name, 8, 1);
        let a = process(&mut queue, IoClass::None);
        for sector in [0, 1000] {
            queue.submit(NOW, &bio(Op::Read, sector, a));
        }
        let first = queue.dispatch(NOW).unwrap();
        queue.requeue(NOW, first);
        assert_eq!(queue.dispatch(NOW), Some(first), "{}", elevator.name);
        queue.check();
        assert_eq!(complete(&mut queue, NOW, first).len(), 1);
        queue.check();
    }
}

#[test]
fn idle_class_requests_wait_at_most_prio_aging_expire() {
    let mut queue = queue("mq-deadline", 1, 1);
    queue.set_tunable(NOW, "prio_aging_expire", "100").unwrap();
    let [eager, idle] = [IoClass::RealTime, IoClass::Idle].map(|class| process(&mut queue, class));
    queue.submit(NOW, &bio(Op::Read, 1 << 30, idle));
    let mut served_ms = None;
    for ms in 0..1000 {
        let now = NOW + ms * 1_000_000;
        queue.submit(now, &bio(Op::Read, ms * 1000, eager));
        let id = queue.dispatch(now).unwrap();
        if queue.request(id).context() == idle {
            served_ms = Some(ms);
            break;
        }
        complete(&mut queue, now, id);
    }
    assert_eq!(served_ms, Some(100));
}

#[test]
fn hardware_queues_take_turns_within_the_device_depth() {
    for scheduler in ["none", "kyber"] {
        let mut queue = queue(scheduler, 2, 2);
        let [a, b] = [(); 2].map(|()| process(&mut queue, IoClass::None));
        queue.set_attribute(NOW, "nr_requests", "8").unwrap();
        for sector in [0, 100, 200, 300] {
            assert!(queue.submit(NOW, &bio(Op::Read, sector, a)).accepted());
        }
        queue.submit(NOW, &bio(Op::Read, 5000, b));
        let given: Vec<RequestId> = std::iter::from_fn(|| queue.dispatch(NOW)).collect();
        let sectors: Vec<u64> = given.iter().map(|&id| queue.request(id).sector()).collect();
        assert_eq!(sectors, [0, 5000, 100], "{scheduler}");
    }
}

#[test]
fn mq_deadline_parses_numbers_like_linux() {
    let mut queue = queue("mq-deadline", 32, 1);
    let mut written = |name: &str, text: &str| {
        queue.set_tunable(NOW, name, text).map(|()| queue.tunable(name).expect("the tunable exists"))
    };
    assert_eq!(written("writes_starved", "-1"), Ok(u64::MAX), "-1 is stored in two's complement");
    assert!(written("writes_starved", "-99999999999").is_err(), "more than 32 bits");
    assert_eq!(written("fifo_batch", "0x20"), Ok(32));
    assert_eq!(written("fifo_batch", "010"), Ok(8));
    assert_eq!(written("front_merges", "7"), Ok(1));
    assert_eq!(written("read_expire", "-5"), Ok(0));
    assert!(written("fifo_batch", "many").is_err());
}

#[test]
fn negative_writes_starved_delays_writes_behind_all_reads() {
    let mut queue = queue("mq-deadline", 128, 1);
    queue.set_tunable(NOW, "writes_starved", "-1").unwrap();
    queue.set_tunable(NOW, "fifo_batch", "1").unwrap();
    let a = process(&mut queue, IoClass::None);
    for sector in 0..51 {
        queue.submit(NOW, &bio(Op::Read, 1000 + sector * 100, a));
    }
    let first = queue.dispatch(NOW).unwrap();
    complete(&mut queue, NOW, first);
    // If there had been writes, the very first batch would have been a batch of writes.
    queue.submit(NOW, &bio(Op::Write, 0, a));
    for _ in 0..50 {
        let id = queue.dispatch(NOW).unwrap();
        assert_eq!(queue.request(id).op(), Op::Read);
        complete(&mut queue, NOW, id);
    }
}

#[test]
fn kyber_limits_a_domain_to_its_tokens() {
    let mut queue = queue("kyber", 1000, 1);
    queue.set_attribute(NOW, "nr_requests", "1000").unwrap();
    let a = process(&mut queue, IoClass::None);
    for sector in 0..100 {
        queue.submit(NOW, &bio(Op::WriteZeroes, sector * 100, a));
    }
    let mut given: Vec<RequestId> = std::iter::from_fn(|| queue.dispatch(NOW)).collect();
    assert_eq!(given.len(), 16);
    let id = given.pop().unwrap();
    queue.requeue(NOW, id);
    assert_eq!(queue.dispatch(NOW), Some(id), "a requeued request keeps its token");
    assert_eq!(queue.dispatch(NOW), None);
    complete(&mut queue, NOW, id);
    assert!(queue.dispatch(NOW).is_some());
    queue.check();
}

/// Returns ADIOS with known latencies: 100 µs for 4 KiB, and no more for larger requests.
fn adios() -> (RequestQueue, ContextId) {
    let config = QueueConfig { depth: 8, write_cache: false, rotational: false, ..QueueConfig::default() };
    let mut queue = RequestQueue::new(NOW, &config, iosched::Registry::linux().get("adios").unwrap());
    queue.set_tunable(NOW, "reset_lat_model", "100000 0 100000 0 100000 0").unwrap();
    let context = process(&mut queue, IoClass::None);
    // Latencies are unknown for the first request; later requests are sorted.
    queue.submit(NOW, &bio(Op::Read, 1 << 30, context));
    let first = queue.dispatch(NOW).unwrap();
    complete(&mut queue, NOW, first);
    (queue, context)
}

/// Dispatches all requests. Returns their sectors, in order.
fn given(queue: &mut RequestQueue) -> Vec<u64> {
    std::iter::from_fn(|| queue.dispatch(NOW).map(|id| queue.request(id).sector())).collect()
}

#[test]
fn adios_serves_reads_before_writes_each_with_sync_first() {
    let (mut queue, context) = adios();
    queue.submit(NOW, &bio(Op::Write, 100, context));
    queue.submit(NOW, &bio(Op::Read, 200, context));
    queue.submit(NOW, &Bio { flags: Flags::SYNC, ..bio(Op::Read, 300, context) });
    queue.submit(NOW, &Bio { flags: Flags::SYNC, ..bio(Op::Write, 400, context) });
    queue.check();
    assert_eq!(given(&mut queue), [300, 200, 400, 100]);
    queue.check();
}

#[test]
fn adios_serves_head_insertions_first_without_merges() {
    let (mut queue, context) = adios();
    queue.submit(NOW, &bio(Op::Read, 100, context));
    let at_head = iosched::Issued { at_head: true, ..iosched::Issued::default() };
    assert!(matches!(queue.submit_issued(NOW, &bio(Op::Read, 108, context), &at_head), Submit::Queued(_)));
    assert!(matches!(queue.submit(NOW, &bio(Op::Read, 116, context)), Submit::Queued(_)));
    queue.check();
    assert_eq!(given(&mut queue), [108, 100, 116]);
}

#[test]
fn adios_merges_only_with_known_latencies_and_outside_batches() {
    let mut fresh = queue("adios", 8, 1);
    let context = process(&mut fresh, IoClass::None);
    fresh.submit(NOW, &bio(Op::Read, 0, context));
    assert!(matches!(fresh.submit(NOW, &bio(Op::Read, 8, context)), Submit::Queued(_)), "latencies are not known");
    let (mut queue, context) = adios();
    queue.submit(NOW, &bio(Op::Read, 0, context));
    queue.submit(NOW, &bio(Op::Read, 100, context));
    assert_eq!(queue.submit(NOW, &bio(Op::Read, 108, context)), Submit::Merged);
    assert!(queue.dispatch(NOW).is_some(), "both requests are in the batch now");
    assert!(matches!(queue.submit(NOW, &bio(Op::Read, 116, context)), Submit::Queued(_)));
    queue.check();
}

#[test]
fn adios_does_not_merge_requests_of_unequal_ioprio() {
    let (mut queue, context) = adios();
    let other = process(&mut queue, IoClass::Idle);
    queue.submit(NOW, &bio(Op::Read, 0, context));
    assert!(matches!(queue.submit(NOW, &bio(Op::Read, 8, other)), Submit::Queued(_)));
    assert_eq!(given(&mut queue), [0, 8], "ioprio does not change the order");
}

#[test]
fn adios_sets_a_timer_that_does_not_run_the_queue() {
    let (mut queue, context) = adios();
    queue.submit(NOW, &bio(Op::Read, 0, context));
    let id = queue.dispatch(NOW).unwrap();
    complete(&mut queue, NOW + 700_000, id);
    let at = queue.next_timer().unwrap();
    assert_eq!(at, NOW + 104_000_000, "the timer wheel rounds 100 ms up to 104 ms");
    assert!(!queue.runs_after_timer());
    queue.timer(at);
    assert_eq!(queue.next_timer(), None);
}

#[derive(Clone, Debug)]
enum Step {
    Submit { task: usize, op: u8, place: u64, sync: bool },
    Plug { task: usize },
    Unplug { task: usize },
    Dispatch,
    Complete { pick: prop::sample::Index },
    Requeue { pick: prop::sample::Index },
    Switch { to: usize },
    Resize { nr_requests: u32 },
    Timer,
    Exit { task: usize },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..6usize, 0..5u8, 0..40u64, any::<bool>()).prop_map(|(task, op, place, sync)| Step::Submit { task, op, place, sync }),
        1 => (0..6usize).prop_map(|task| Step::Plug { task }),
        2 => (0..6usize).prop_map(|task| Step::Unplug { task }),
        8 => Just(Step::Dispatch),
        7 => any::<prop::sample::Index>().prop_map(|pick| Step::Complete { pick }),
        1 => any::<prop::sample::Index>().prop_map(|pick| Step::Requeue { pick }),
        1 => (0..iosched::Registry::linux().elevators().len()).prop_map(|to| Step::Switch { to }),
        1 => prop_oneof![1..12u32, Just(u32::MAX)].prop_map(|nr_requests| Step::Resize { nr_requests }),
        1 => Just(Step::Timer),
        1 => (0..6usize).prop_map(|task| Step::Exit { task }),
    ];
    prop::collection::vec(step, 1..200)
}

/// Host that follows the contract.
struct Host {
    queue: RequestQueue,
    now: Time,
    tasks: Vec<Option<ContextId>>,
    /// Waiting bio of each context.
    waiting: BTreeMap<ContextId, Bio>,
    in_device: Vec<RequestId>,
    under_way: BTreeSet<u64>,
    cookies: u64,
}

impl Host {
    fn new(elevator: usize, hw_queues: u16) -> Self {
        let mut queue = queue(iosched::Registry::linux().elevators()[elevator].name, 4, hw_queues);
        let classes =
            [IoClass::None, IoClass::BestEffort, IoClass::RealTime, IoClass::Idle, IoClass::None, IoClass::None];
        let tasks = classes.map(|class| Some(process(&mut queue, class))).to_vec();
        let _ = queue.set_attribute(NOW, "nr_requests", "4");
        Self {
            queue,
            now: NOW,
            tasks,
            waiting: BTreeMap::new(),
            in_device: Vec::new(),
            under_way: BTreeSet::new(),
            cookies: 0,
        }
    }

    fn submit(&mut self, bio: &Bio) {
        match self.queue.submit(self.now, bio) {
            Submit::Full => {
                self.waiting.insert(bio.context, *bio);
                self.unplug(bio.context);
            }
            Submit::Done(_) => panic!("a bio completed immediately"),
            Submit::Queued(_) | Submit::Merged | Submit::Held => {}
        }
        self.kick();
    }

    fn kick(&mut self) {
        if self.queue.take_kick() {
            while self.dispatch() {}
        }
    }

    fn unplug(&mut self, context: ContextId) {
        while self.queue.unplug(self.now, context) {
            self.kick();
        }
    }

    fn dispatch(&mut self) -> bool {
        if self.in_device.len() >= 4 {
            return false;
        }
        let given = self.queue.dispatch(self.now);
        self.in_device.extend(given);
        given.is_some()
    }

    fn complete(&mut self, at: usize) {
        let id = self.in_device.swap_remove(at);
        for cookie in complete(&mut self.queue, self.now, id) {
            assert!(self.under_way.remove(&cookie), "bio {cookie} completes once");
        }
    }

    fn resubmit_woken(&mut self) {
        while let Some(context) = self.queue.take_woken() {
            let bio = self.waiting.remove(&context).expect("a woken process has a waiting bio");
            self.submit(&bio);
        }
    }

    fn step(&mut self, step: &Step) {
        self.now = self.now + 700_000;
        match *step {
            Step::Submit { task, op, place, sync } => {
                let Some(context) = self.tasks[task].filter(|context| !self.waiting.contains_key(context)) else {
                    return;
                };
                self.cookies += 1;
                let op = [Op::Read, Op::Read, Op::Write, Op::Discard, Op::WriteZeroes][usize::from(op)];
                let flags = if sync { Flags::SYNC } else { Flags::empty() };
                self.under_way.insert(self.cookies);
                self.submit(&Bio { op, flags, sector: place * 8, nr_sectors: 8, context, cookie: self.cookies });
            }
            Step::Plug { task } => {
                if let Some(context) = self.tasks[task].filter(|context| !self.waiting.contains_key(context)) {
                    self.queue.plug(context);
                }
            }
            Step::Unplug { task } => self.tasks[task].into_iter().for_each(|context| self.unplug(context)),
            Step::Dispatch => {
                self.dispatch();
            }
            Step::Complete { pick } if !self.in_device.is_empty() => {
                self.complete(pick.index(self.in_device.len()));
            }
            Step::Requeue { pick } if !self.in_device.is_empty() => {
                let id = self.in_device.swap_remove(pick.index(self.in_device.len()));
                self.queue.requeue(self.now, id);
            }
            Step::Complete { .. } | Step::Requeue { .. } => {}
            Step::Switch { to } => {
                self.queue.switch(self.now, iosched::Registry::linux().elevators()[to]);
            }
            Step::Resize { nr_requests } => {
                self.queue.set_attribute(self.now, "nr_requests", &nr_requests.to_string()).expect("in range");
            }
            Step::Timer => {
                if let Some(at) = self.queue.next_timer() {
                    self.now = self.now.max(at);
                    self.queue.timer(self.now);
                }
            }
            Step::Exit { task } => {
                if let Some(context) = self.tasks[task].take() {
                    if let Some(bio) = self.waiting.remove(&context) {
                        self.under_way.remove(&bio.cookie);
                    }
                    self.queue.exit(self.now, context);
                }
            }
        }
        self.resubmit_woken();
        self.kick();
        self.queue.check();
    }

    /// Continues until everything is complete.
    fn finish(&mut self) {
        for context in self.tasks.clone().into_iter().flatten() {
            self.unplug(context);
        }
        for _ in 0..10_000 {
            self.resubmit_woken();
            while self.dispatch() {}
            if let Some(at) = self.in_device.len().checked_sub(1) {
                self.now = self.now + 1_000_000;
                self.complete(at);
            } else if self.under_way.is_empty() {
                break;
            } else {
                self.now = self.queue.next_timer().unwrap_or(self.now + 3_000_000).max(self.now);
                self.queue.timer(self.now);
            }
        }
        assert!(self.waiting.is_empty(), "every waiting process is woken");
        assert!(self.under_way.is_empty(), "every bio completes");
        self.queue.check();
        assert_eq!(self.queue.waiting(), 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// Covers every elevator, with switches between the
    /// layers, resizes, exits, plugs, and requeues.
    #[test]
    fn every_bio_completes_once_under_random_operations(
        elevator in 0..iosched::Registry::linux().elevators().len(),
        hw_queues in prop_oneof![3 => Just(1u16), 1 => 2..4u16],
        steps in steps(),
    ) {
        let mut host = Host::new(elevator, hw_queues);
        for step in &steps {
            host.step(step);
        }
        host.finish();
    }
}
