//! Rules in which older CFQs differ from the last CFQ, one property per test, beyond the recorded
//! runs.

use iosched::{
    Bio, CgroupId, ContextId, Decision, Flags, IoClass, IoPriority, MILLISECOND_NS, Op, QueueConfig, RequestQueue, Time,
};

const START: Time = Time::from_ns(1_000_000_000_000);
const LAST: &str = "cfq";
const OF_2010: &str = "cfq-2.6.34";
const OF_2009: &str = "cfq-2.6.30";

/// Queue, a device that serves one request at a time in 1 ms, and all decisions.
struct Host {
    queue: RequestQueue,
    now: Time,
    decisions: Vec<Decision>,
}

impl Host {
    fn new(elevator: &str) -> Self {
        Self::with(elevator, &QueueConfig::default())
    }

    fn with(elevator: &str, config: &QueueConfig) -> Self {
        let mut queue = RequestQueue::new(START, config, iosched::Registry::linux().get(elevator).unwrap());
        queue.record_decisions(true);
        Self { queue, now: START, decisions: Vec::new() }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.queue.set_tunable(START, name, value).unwrap();
    }

    fn process(&mut self, pid: u32) -> ContextId {
        self.queue.create_context(pid, IoPriority::default(), CgroupId::ROOT)
    }

    fn of_class(&mut self, pid: u32, class: IoClass, level: u8) -> ContextId {
        self.queue.create_context(pid, IoPriority::new(class, level), CgroupId::ROOT)
    }

    fn submit(&mut self, op: Op, flags: Flags, sector: u64, context: ContextId) {
        let bio = Bio { op, flags, sector, nr_sectors: 8, context, cookie: sector };
        assert!(self.queue.submit(self.now, &bio).accepted());
        self.queue.check();
    }

    fn read(&mut self, sector: u64, context: ContextId) {
        self.submit(Op::Read, Flags::empty(), sector, context);
    }

    /// Dispatches as many requests as the elevator allows. Returns their sectors.
    fn take_all(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.queue.dispatch(self.now).map(|id| self.queue.request(id).sector())).collect()
    }

    /// Serves one request, and waits for the elevator if
    /// necessary. Returns the process and the sector.
    fn serve(&mut self) -> Option<(ContextId, u64)> {
        loop {
            if let Some(id) = self.queue.dispatch(self.now) {
                let request = self.queue.request(id);
                let served = (request.context(), request.sector());
                self.now = self.now + MILLISECOND_NS;
                self.queue.complete(self.now, id, Ok(()), |_, _| {});
                self.gather();
                return Some(served);
            }
            self.now = self.queue.next_timer()?;
            self.queue.timer(self.now);
            self.gather();
        }
    }

    fn gather(&mut self) {
        self.queue.check();
        self.decisions.extend(self.queue.take_decisions().map(|(_, decision)| decision));
    }

    fn happened(&self, what: fn(&Decision) -> bool) -> bool {
        self.decisions.iter().any(what)
    }
}

/// Lets two processes read one file in turns of 64 KiB. Each process sends its next request before
/// the request of the other process is served.
fn read_together(elevator: &str) -> Host {
    let mut host = Host::new(elevator);
    let readers = [host.process(1), host.process(2)];
    for turn in 0..200 {
        host.read(1_000_000 + turn * 128, readers[turn as usize % 2]);
        if turn > 0 {
            host.serve().unwrap();
        }
    }
    host
}

#[test]
fn close_queues_merge_in_2_6_34_but_not_in_2_6_30() {
    let merged = |decision: &Decision| matches!(decision, Decision::CooperatorMerge { .. });
    assert!(read_together(LAST).happened(merged));
    assert!(read_together(OF_2010).happened(merged));
    let old = read_together(OF_2009);
    assert!(!old.happened(merged));
    let jumps = old.decisions.windows(2).filter(|pair| {
        matches!(pair, [Decision::Expire { queue: from, timed_out: false }, Decision::Active { queue: to, .. }] if from != to)
    });
    // CFQ does not switch to the same queue again before the queue's own turn.
    assert_eq!(jumps.count(), 2, "CFQ switches to the close queue and back");
}

/// Returns whether the elevator idles after a sync write of the only process.
fn waits_after_write(elevator: &str, yielding: bool, flags: Flags) -> bool {
    let mut host = Host::new(elevator);
    if yielding {
        host.set("yield", "1");
    }
    let (writer, journal) = (host.process(1), host.process(2));
    host.submit(Op::Write, Flags::SYNC | flags, 5000, writer);
    let id = host.queue.dispatch(host.now).unwrap();
    host.queue.yield_to(host.now, writer, journal);
    host.now = host.now + MILLISECOND_NS;
    host.queue.complete(host.now, id, Ok(()), |_, _| {});
    host.gather();
    host.queue.next_timer().is_some()
}

#[test]
fn cfq_2_6_34_idles_for_a_lone_queue_unless_it_yields() {
    for (elevator, yielding, fsync_waits, direct_waits) in
        [(OF_2010, false, true, true), (OF_2010, true, false, false), (OF_2009, false, false, true)]
    {
        assert_eq!(waits_after_write(elevator, yielding, Flags::empty()), fsync_waits, "{elevator} {yielding}");
        assert_eq!(waits_after_write(elevator, yielding, Flags::IDLE), direct_waits, "{elevator} {yielding}");
    }
}

/// Returns the time of fifty rounds, each with a write of a process and then a distant write of its
/// journal thread. Each write is sent 50 µs after the previous write is complete.
fn fsync_rounds_ms(elevator: &str, yielding: bool) -> u64 {
    let mut host = Host::new(elevator);
    if yielding {
        host.set("yield", "1");
    }
    let processes = [host.process(1), host.process(2)];
    for round in 0..100 {
        let [from, to] = [processes[(round + 1) % 2], processes[round % 2]];
        host.queue.yield_to(host.now, from, to);
        host.now = host.now + 50_000;
        host.submit(Op::Write, Flags::SYNC, 100_000_000 * (round as u64 % 2 + 1) + 8 * round as u64, to);
        host.serve().unwrap();
    }
    host.now.since(START) / MILLISECOND_NS
}

#[test]
fn cfq_2_6_34_idling_delays_fsync_unless_it_yields() {
    // The service alone takes 105 ms.
    let [stalled, yielded, of_2009] =
        [fsync_rounds_ms(OF_2010, false), fsync_rounds_ms(OF_2010, true), fsync_rounds_ms(OF_2009, false)];
    assert!(stalled > 500, "{stalled} ms");
    assert!(yielded < 110, "{yielded} ms");
    assert!(of_2009 < 110, "2.6.30 does not idle without Flags::IDLE: {of_2009} ms");
}

#[test]
fn a_lone_queue_gets_four_times_quantum_only_in_2_6_30() {
    for (elevator, quantum, alone) in [(OF_2009, "4", 16), (OF_2009, "32", 100), (OF_2010, "8", 100), (LAST, "8", 100)]
    {
        let mut host = Host::new(elevator);
        host.set("quantum", quantum);
        let reader = host.process(1);
        for i in 0..100 {
            host.read(i * 1000, reader);
        }
        assert_eq!(host.take_all().len(), alone, "{elevator} with quantum {quantum}");
    }
}

#[test]
fn a_queue_among_others_gets_half_of_quantum_from_2_6_34() {
    for (elevator, quantum, in_device) in [(OF_2009, "8", 8), (OF_2010, "8", 4)] {
        let mut host = Host::new(elevator);
        host.set("quantum", quantum);
        let readers = [host.process(1), host.process(2)];
        for i in 0..30 {
            host.read(i * 1000, readers[0]);
            host.read(500_000_000 + i * 1000, readers[1]);
        }
        assert_eq!(host.take_all().len(), in_device, "{elevator}");
    }
}

#[test]
fn old_cfq_dispatches_a_request_early_if_its_sector_repeats() {
    for (elevator, order) in [(OF_2009, [2, 1, 3]), (OF_2010, [2, 1, 3]), (LAST, [1, 2, 3])] {
        let mut host = Host::new(elevator);
        host.queue.set_attribute(START, "nomerges", "2").unwrap();
        let reader = host.process(1);
        for (sector, cookie) in [(100, 1), (700, 2), (700, 3)] {
            let bio = Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 8, context: reader, cookie };
            assert!(host.queue.submit(host.now, &bio).accepted());
            host.queue.check();
        }
        let given = std::iter::from_fn(|| host.queue.dispatch(host.now).map(|id| host.queue.cookie(id)));
        assert_eq!(given.collect::<Vec<_>>(), order, "{elevator}");
    }
}

#[test]
fn real_time_preempts_and_the_idle_class_is_served_last() {
    for elevator in [OF_2009, OF_2010] {
        let mut host = Host::new(elevator);
        let idle = host.of_class(1, IoClass::Idle, 7);
        let usual = host.process(2);
        let urgent = host.of_class(3, IoClass::RealTime, 4);
        for i in 0..3 {
            host.read(i * 1000, idle);
            host.read(400_000_000 + i * 1000, usual);
        }
        assert_eq!(host.serve().map(|(process, _)| process), Some(usual), "{elevator}");
        for i in 0..3 {
            host.read(800_000_000 + i * 1000, urgent);
        }
        let order: Vec<_> = std::iter::from_fn(|| host.serve()).map(|(process, _)| process).collect();
        assert_eq!(order, [urgent, urgent, urgent, usual, usual, idle, idle, idle], "{elevator}");
    }
}

#[test]
fn idling_ends_at_a_jiffy_boundary() {
    for (elevator, hz, wait_ms) in [(OF_2009, 1000, 8), (OF_2010, 1000, 8), (OF_2009, 250, 8), (OF_2010, 100, 10)] {
        let mut host = Host::with(elevator, &QueueConfig { hz, ..QueueConfig::default() });
        let reader = host.process(1);
        host.now = host.now + 300_000;
        host.read(0, reader);
        host.serve().unwrap();
        // The time is 1.3 ms after a tick.
        let jiffy_ns = 1_000_000_000 / u64::from(hz);
        let tick_ns = host.now.as_ns() / jiffy_ns * jiffy_ns;
        let ends = Time::from_ns(tick_ns + wait_ms * MILLISECOND_NS);
        assert_eq!(host.queue.next_timer(), Some(ends), "{elevator}, {hz} Hz");
    }
}

#[test]
fn tunables_are_clamped_and_stored_in_jiffies() {
    for elevator in [OF_2009, OF_2010] {
        for (hz, name, default_ms) in [
            (1000, "fifo_expire_sync", 125),
            (250, "fifo_expire_sync", 124),
            (100, "slice_idle", 10),
            (100, "slice_async", 40),
        ] {
            let mut queue = RequestQueue::new(
                START,
                &QueueConfig { hz, ..QueueConfig::default() },
                iosched::Registry::linux().get(elevator).unwrap(),
            );
            assert_eq!(queue.tunable(name), Ok(default_ms), "{elevator} {name} with {hz}");
            queue.set_tunable(START, name, "33").unwrap();
            let jiffy_ms = 1000 / u64::from(hz);
            assert_eq!(queue.tunable(name), Ok(33u64.div_ceil(jiffy_ms) * jiffy_ms), "{elevator} {name} with {hz}");
        }
        let mut queue =
            RequestQueue::new(START, &QueueConfig::default(), iosched::Registry::linux().get(elevator).unwrap());
        queue.set_tunable(START, "quantum", "0").unwrap();
        assert_eq!(queue.tunable("quantum"), Ok(1));
        queue.set_tunable(START, "slice_idle", "99999999999999").unwrap();
        assert_eq!(queue.tunable("slice_idle"), Ok(u32::MAX.into()));
        for name in ["group_idle", "target_latency", "max_depth"] {
            assert!(queue.set_tunable(START, name, "1").is_err(), "{elevator} has no {name}");
        }
    }
}

#[test]
fn fs_exclusive_requests_leave_the_idle_class_in_old_cfq() {
    for (elevator, flags, first) in [
        (OF_2009, Flags::FS_EXCL, 1),
        (OF_2010, Flags::FS_EXCL, 1),
        (OF_2009, Flags::empty(), 2),
        (OF_2010, Flags::empty(), 2),
        (LAST, Flags::FS_EXCL, 2),
    ] {
        let mut host = Host::new(elevator);
        let (idle, usual) = (host.of_class(1, IoClass::Idle, 7), host.process(2));
        host.read(0, idle);
        host.serve().unwrap();
        host.submit(Op::Read, flags, 8, idle);
        host.read(400_000_000, usual);
        let (served, _) = host.serve().unwrap();
        assert_eq!(host.queue.env().pid(served), first, "{elevator} {flags:?}");
    }
}

#[test]
fn an_elevator_switch_loses_no_requests() {
    for elevator in [OF_2009, OF_2010] {
        let mut host = Host::new(elevator);
        let readers = [host.process(1), host.process(2), host.of_class(3, IoClass::Idle, 7)];
        for (number, &reader) in readers.iter().enumerate() {
            for i in 0..20 {
                let op = if i % 3 == 0 { Op::Write } else { Op::Read };
                host.submit(op, Flags::empty(), 10_000_000 * number as u64 + i * 1000, reader);
            }
        }
        let started = host.take_all().len();
        host.queue.switch(host.now, iosched::Registry::linux().get("noop").unwrap());
        let mut rest = host.take_all();
        rest.sort_unstable();
        rest.dedup();
        assert_eq!(started + rest.len(), 60, "{elevator}");
    }
}
