//! Old elevators, beyond the recorded runs: anticipatory and CFQ 2.6.16.

use iosched::{
    Anticipation, AnticipatoryEvent, Bio, Cfq2616Event, CgroupId, ContextId, Decision, Flags, IoClass, IoPriority,
    MILLISECOND_NS, Op, QueueConfig, RequestId, RequestQueue, Time,
};

const START: Time = Time::from_ns(1_000_000_000_000);
const MS: u64 = MILLISECOND_NS;
/// Two distant positions.
const HERE: u64 = 1_000_000;
const FAR: u64 = 900_000_000;

/// Queue for a device that takes up to `depth` requests.
struct Host {
    queue: RequestQueue,
    now: Time,
    depth: usize,
    in_device: Vec<RequestId>,
    /// Cookies of completed bios.
    done: Vec<u64>,
    submitted: u64,
}

impl Host {
    fn new(scheduler: &str, tunables: &[(&str, &str)]) -> Self {
        let mut queue =
            RequestQueue::new(START, &QueueConfig::default(), iosched::Registry::linux().get(scheduler).unwrap());
        queue.record_decisions(true);
        for (name, value) in tunables {
            queue.set_tunable(START, name, value).unwrap();
        }
        Self { queue, now: START, depth: 1, in_device: Vec::new(), done: Vec::new(), submitted: 0 }
    }

    fn process(&mut self, pid: u32) -> ContextId {
        self.process_of(pid, IoPriority::default())
    }

    fn process_of(&mut self, pid: u32, ioprio: IoPriority) -> ContextId {
        self.queue.create_context(pid, ioprio, CgroupId::ROOT)
    }

    fn bio(&mut self, op: Op, flags: Flags, sector: u64, context: ContextId) {
        self.submitted += 1;
        let bio = Bio { op, flags, sector, nr_sectors: 8, context, cookie: self.submitted };
        assert!(self.queue.submit(self.now, &bio).accepted());
        self.queue.check();
        if self.queue.take_kick() {
            self.run();
        }
    }

    fn read(&mut self, sector: u64, context: ContextId) {
        self.bio(Op::Read, Flags::empty(), sector, context);
    }

    fn write(&mut self, sector: u64, context: ContextId) {
        self.bio(Op::Write, Flags::empty(), sector, context);
    }

    /// Dispatches while the device has room. Returns the sectors.
    fn run(&mut self) -> Vec<u64> {
        let before = self.in_device.len();
        while self.in_device.len() < self.depth {
            let Some(id) = self.queue.dispatch(self.now) else { break };
            self.in_device.push(id);
        }
        self.queue.check();
        self.in_device[before..].iter().map(|&id| self.queue.request(id).sector()).collect()
    }

    /// Completes the oldest request in the device `after_ns` from now, and then runs the queue.
    fn complete(&mut self, after_ns: u64) -> Vec<u64> {
        self.now = self.now + after_ns;
        let id = self.in_device.remove(0);
        let done = &mut self.done;
        self.queue.complete(self.now, id, Ok(()), |bio, result| {
            result.unwrap();
            done.push(bio.cookie);
        });
        self.run()
    }

    /// Lets time pass until the timer fires, and then runs the queue.
    fn fire(&mut self) -> Vec<u64> {
        self.now = self.queue.next_timer().expect("a timer is set");
        self.queue.timer(self.now);
        self.run()
    }

    /// Serves until no request is left. Returns the sectors in order.
    fn drain(&mut self) -> Vec<u64> {
        let mut order = self.run();
        loop {
            order.extend(if !self.in_device.is_empty() {
                self.complete(MS)
            } else if self.queue.next_timer().is_some() {
                self.fire()
            } else {
                return order;
            });
        }
    }

    fn decisions(&mut self) -> Vec<Decision> {
        self.queue.take_decisions().map(|(_, decision)| decision).collect()
    }
}

/// Returns a host where the first request of a reader has been
/// served, and another reader waits far away.
fn two_readers(tunables: &[(&str, &str)]) -> (Host, ContextId, ContextId) {
    let mut host = Host::new("anticipatory", tunables);
    let [first, second] = [1, 2].map(|pid| host.process(pid));
    host.read(HERE, first);
    assert_eq!(host.run(), [HERE]);
    host.read(FAR, second);
    (host, first, second)
}

#[test]
fn anticipatory_waits_for_the_reader_it_served_last() {
    let (mut host, ..) = two_readers(&[]);
    assert_eq!(host.complete(MS), []);
    assert_eq!(host.queue.next_timer(), Some(host.now + 6 * MS));
    assert_eq!(host.fire(), [FAR]);
    assert_eq!(host.complete(MS), []);
    assert_eq!(host.queue.next_timer(), None, "without a waiting reader, anticipatory sets no timer");
}

#[test]
fn anticipatory_serves_the_awaited_reader_first() {
    let (mut host, first, _) = two_readers(&[]);
    assert_eq!(host.complete(MS), []);
    host.now = host.now + 2 * MS;
    host.read(HERE + 8, first);
    assert_eq!(host.run(), [HERE + 8]);
    assert_eq!(host.queue.next_timer(), None);
}

#[test]
fn anticipatory_serves_a_near_request_of_another_reader() {
    let (mut host, _, second) = two_readers(&[]);
    assert_eq!(host.complete(MS), []);
    host.read(HERE + 100, second);
    assert_eq!(host.run(), [HERE + 100]);
}

#[test]
fn anticipatory_never_waits_with_antic_expire_0() {
    let (mut host, first, _) = two_readers(&[("antic_expire", "0")]);
    assert_eq!(host.complete(MS), [FAR]);
    for round in 0..20 {
        host.read(HERE + round * 8, first);
        host.complete(MS);
        assert_eq!(host.queue.next_timer(), None);
    }
    let waits = |decision: &Decision| {
        matches!(
            decision,
            Decision::Anticipatory(AnticipatoryEvent::Anticipation(Anticipation::WaitNext | Anticipation::WaitRequest))
        )
    };
    assert!(!host.decisions().iter().any(waits));
}

#[test]
fn anticipatory_does_not_wait_for_readers_with_long_think_time() {
    let mut host = Host::new("anticipatory", &[]);
    let [thinker, other] = [1, 2].map(|pid| host.process(pid));
    let mut waits = Vec::new();
    for round in 0..10 {
        let (here, far) = (HERE + round * 8, FAR + round * 50_000_000);
        host.read(here, thinker);
        assert_eq!(host.run(), [here]);
        host.read(far, other);
        let mut began = host.complete(MS);
        waits.push(began.is_empty());
        if began.is_empty() {
            began = host.fire();
        }
        assert_eq!(began, [far]);
        assert_eq!(host.complete(MS), []);
        host.now = host.now + 15 * MS;
    }
    assert!(waits[0], "the think time of a new process is not known");
    assert!(!waits[3..].contains(&true), "{waits:?}");
}

#[test]
fn anticipatory_serves_all_writes_despite_a_busy_reader() {
    let mut host = Host::new("anticipatory", &[]);
    let [reader, writer] = [1, 2].map(|pid| host.process(pid));
    for number in 0..20 {
        host.write(FAR + number * 1000, writer);
    }
    let mut next = HERE;
    host.read(next, reader);
    host.run();
    let mut longest_ms = 0;
    let mut since = host.now;
    while host.done.len() < 2000 && host.queue.waiting() > 0 {
        let began = host.complete(MS);
        if began.iter().any(|&sector| sector >= FAR) {
            longest_ms = longest_ms.max(host.now.since(since) / MS);
            since = host.now;
        }
        next += 8;
        host.read(next, reader);
        host.run();
    }
    assert!(host.done.iter().filter(|&&cookie| cookie <= 20).count() == 20, "every write is served");
    // A batch of reads lasts 500 ms, a batch of writes at most 125 ms.
    assert!(longest_ms <= 700, "{longest_ms} ms without a write");
}

#[test]
fn requests_at_the_same_sector_are_all_served() {
    for scheduler in ["anticipatory", "cfq-2.6.16"] {
        let mut host = Host::new(scheduler, &[]);
        host.queue.set_attribute(START, "nomerges", "2").unwrap();
        let [first, second] = [1, 2].map(|pid| host.process(pid));
        host.read(FAR, second);
        host.run();
        for _ in 0..3 {
            host.read(HERE, first);
        }
        let mut order = host.drain();
        order.retain(|&sector| sector == HERE);
        assert_eq!(order.len(), 3, "{scheduler}");
        assert_eq!(host.done.len(), 4, "{scheduler}");
    }
}

/// Returns pseudo-random numbers.
fn scattered(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed), |&x| Some(x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
        .map(|x| x >> 33)
}

#[test]
fn a_switch_loses_and_repeats_no_request() {
    for scheduler in ["anticipatory", "cfq-2.6.16"] {
        for seed in 0..30 {
            let mut host = Host::new(scheduler, &[]);
            host.queue.set_attribute(START, "nr_requests", "1000").unwrap();
            host.depth = 4;
            let contexts: Vec<_> = (0..5).map(|pid| host.process(pid)).collect();
            let mut numbers = scattered(seed);
            for step in 0..200 {
                let [kind, who, sector] = std::array::from_fn(|_| numbers.next().unwrap());
                let (context, sector) = (contexts[(who % 5) as usize], sector % 400 * 8);
                match kind % 5 {
                    0 => host.write(sector, context),
                    1 => host.bio(Op::Write, Flags::SYNC, sector, context),
                    2 if !host.in_device.is_empty() => drop(host.complete(MS / 2)),
                    _ => host.read(sector, context),
                }
                if step == 120 {
                    host.queue.switch(host.now, iosched::Registry::linux().get("noop").unwrap());
                }
            }
            host.drain();
            host.done.sort_unstable();
            assert!(host.done.iter().copied().eq(1..=host.submitted), "{scheduler}, seed {seed}");
        }
    }
}

/// Returns the levels in the order of service. Each level has one queue that always has requests.
fn level_turns(turns: usize) -> Vec<u8> {
    let mut host = Host::new("cfq-2.6.16", &[("quantum", "1"), ("slice_sync", "1")]);
    let contexts: Vec<_> =
        (0..8).map(|level| host.process_of(u32::from(level), IoPriority::new(IoClass::BestEffort, level))).collect();
    let mut next = HERE;
    // The first queue that sends a request is served immediately.
    for &context in contexts.iter().rev() {
        for _ in 0..2 {
            next += 1000;
            host.read(next, context);
        }
    }
    let mut levels = Vec::new();
    while levels.len() < turns {
        let context = host.queue.request(host.in_device[0]).context();
        levels.push(contexts.iter().position(|&c| c == context).unwrap() as u8);
        next += 1000;
        host.read(next, context);
        host.complete(3 * MS);
    }
    levels
}

#[test]
fn cfq_2_6_16_serves_levels_0_then_0_1_then_0_1_2() {
    let expected: Vec<u8> = [7].into_iter().chain((0..8).flat_map(|last| 0..=last)).chain([0, 0, 1]).collect();
    assert_eq!(level_turns(expected.len()), expected);
}

#[test]
fn cfq_2_6_16_idles_for_a_reader_within_its_slice() {
    let mut host = Host::new("cfq-2.6.16", &[]);
    let [first, second] = [1, 2].map(|pid| host.process(pid));
    host.read(FAR, first);
    host.read(HERE, second);
    assert_eq!(host.complete(MS), []);
    assert_eq!(host.queue.next_timer(), Some(host.now + 10 * MS));
    assert_eq!(host.fire(), [HERE]);

    let mut host = Host::new("cfq-2.6.16", &[("slice_idle", "0")]);
    let [first, second] = [1, 2].map(|pid| host.process(pid));
    host.read(FAR, first);
    host.read(HERE, second);
    assert_eq!(host.complete(MS), [HERE], "cfq does not idle with slice_idle 0");
}

#[test]
fn max_depth_limits_requests_of_cfq_2_6_16_without_idling() {
    for (max_depth, begun) in [("1", 1), ("2", 2), ("64", 6)] {
        let mut host = Host::new("cfq-2.6.16", &[("slice_idle", "0"), ("quantum", "1"), ("max_depth", max_depth)]);
        host.depth = 32;
        for pid in 0..6 {
            let context = host.process(pid);
            host.read(HERE + u64::from(pid) * 1000, context);
        }
        host.run();
        assert_eq!(host.in_device.len(), begun, "max_depth {max_depth}");
    }
}

#[test]
fn cfq_2_6_16_idle_class_waits_100_ms_after_other_requests() {
    let mut host = Host::new("cfq-2.6.16", &[("slice_idle", "0")]);
    let busy = host.process(1);
    let idle = host.process_of(2, IoPriority::new(IoClass::Idle, 7));
    host.read(HERE, busy);
    host.read(FAR, idle);
    assert_eq!(host.complete(MS), []);
    assert_eq!(host.queue.next_timer(), Some(host.now + 100 * MS));
    host.now = host.now + 50 * MS;
    host.read(HERE, busy);
    assert_eq!(host.in_device.len(), 1, "a new request is served immediately, and the wait starts again");
    assert_eq!(host.complete(MS), []);
    assert_eq!(host.queue.next_timer(), Some(host.now + 100 * MS));
    assert_eq!(host.fire(), [FAR]);
    let decisions = host.decisions();
    let count = |wanted: Cfq2616Event| decisions.iter().filter(|&&d| d == Decision::Cfq2616(wanted)).count();
    assert_eq!((count(Cfq2616Event::GraceCancel), count(Cfq2616Event::GraceFire)), (1, 1));
}

/// Returns the number of queues for two async writers with `ioprio`.
fn queues_of_two_writers(ioprio: IoPriority) -> usize {
    let mut host = Host::new("cfq-2.6.16", &[]);
    for pid in 1..=2 {
        let context = host.process_of(pid, ioprio);
        host.write(u64::from(pid) * FAR, context);
    }
    host.drain();
    let decisions = host.decisions();
    let mut numbers: Vec<_> = decisions
        .iter()
        .filter_map(|decision| match decision {
            Decision::Cfq2616(Cfq2616Event::Active { queue: Some(queue) }) => Some(queue.number),
            _ => None,
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len()
}

#[test]
fn cfq_2_6_16_writers_share_a_queue_only_with_a_set_ioprio() {
    assert_eq!(queues_of_two_writers(IoPriority::new(IoClass::BestEffort, 4)), 1);
    assert_eq!(queues_of_two_writers(IoPriority::default()), 2);
}

#[test]
fn cfq_2_6_16_applies_a_new_ioprio_immediately() {
    let mut host = Host::new("cfq-2.6.16", &[("slice_idle", "0")]);
    let [first, second, third] = [1, 2, 3].map(|pid| host.process(pid));
    for (context, place) in [(first, 1), (second, 2), (third, 3)] {
        host.read(place * HERE, context);
    }
    host.queue.set_ioprio(third, IoPriority::new(IoClass::RealTime, 4));
    assert_eq!(host.complete(MS), [3 * HERE]);
}

#[test]
fn cfq_2_6_16_raises_priority_of_fs_exclusive_requests() {
    let order = |flags: Flags| {
        let mut host = Host::new("cfq-2.6.16", &[("slice_idle", "0"), ("quantum", "1"), ("slice_sync", "1")]);
        let [high, low] =
            [(1, 5), (2, 7)].map(|(pid, level)| host.process_of(pid, IoPriority::new(IoClass::BestEffort, level)));
        host.read(HERE, high);
        host.read(2 * HERE, high);
        host.read(FAR, low);
        // The queue exists by now, and the next request has the flag.
        host.bio(Op::Read, flags, FAR + 1000, low);
        host.complete(3 * MS)
    };
    assert_eq!(order(Flags::empty()), [2 * HERE]);
    assert_eq!(order(Flags::FS_EXCL), [FAR]);
}

#[test]
fn values_out_of_range_are_clamped() {
    let mut host = Host::new("cfq-2.6.16", &[("quantum", "0"), ("slice_sync", "-3"), ("slice_idle", "99999999999")]);
    assert_eq!(host.queue.tunable("quantum"), Ok(1));
    assert_eq!(host.queue.tunable("slice_sync"), Ok(1));
    assert_eq!(host.queue.tunable("slice_idle"), Ok(u64::from(u32::MAX)));
    host = Host::new("anticipatory", &[]);
    assert!(host.queue.set_tunable(START, "est_time", "1").is_err(), "est_time is read-only");
    assert!(host.queue.set_tunable(START, "antic_expire", "6x").is_err());
    assert_eq!(host.queue.tunable("antic_expire"), Ok(6));
}
