//! Regression tests. Each of these properties was violated once.

use iosched::{Bio, CgroupId, ContextId, Decision, Flags, IoPriority, Op, QueueConfig, RequestQueue, Submit, Time};

fn queue(scheduler: &str) -> (RequestQueue, ContextId) {
    let mut queue =
        RequestQueue::new(Time::ZERO, &QueueConfig::default(), iosched::Registry::linux().get(scheduler).unwrap());
    let context = queue.create_context(1, IoPriority::default(), CgroupId::ROOT);
    (queue, context)
}

fn read(context: ContextId, sector: u64) -> Bio {
    Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie: sector }
}

fn inserts(queue: &mut RequestQueue) -> usize {
    queue.take_decisions().filter(|(_, decision)| matches!(decision, Decision::Insert { .. })).count()
}

#[test]
fn a_plug_that_was_full_collects_again() {
    let (mut queue, context) = queue("noop");
    queue.record_decisions(true);
    queue.plug(context);
    for number in 0..16 {
        queue.submit(Time::ZERO, &read(context, 1000 * number));
    }
    assert_eq!(inserts(&mut queue), 16, "a full plug is emptied into the elevator");
    queue.submit(Time::ZERO, &read(context, 99));
    assert_eq!(inserts(&mut queue), 0, "the plug holds the next bio");
    assert!(queue.unplug(Time::ZERO, context));
    assert_eq!(inserts(&mut queue), 1);
}

#[test]
fn during_a_switch_tunables_are_those_of_the_new_elevator() {
    let (mut queue, context) = queue("noop");
    assert!(matches!(queue.submit(Time::ZERO, &read(context, 0)), Submit::Queued(_)));
    let request = queue.dispatch(Time::ZERO).unwrap();
    queue.switch(Time::ZERO, iosched::Registry::linux().get("deadline").unwrap());
    assert!(queue.is_switching());
    queue.set_tunable(Time::ZERO, "fifo_batch", "7").unwrap();
    assert_eq!(queue.tunable("fifo_batch"), Ok(7));
    queue.complete(Time::ZERO, request, Ok(()), |_, _| ());
    assert!(!queue.is_switching());
    assert_eq!(queue.tunable("fifo_batch"), Ok(7), "the value stays after the switch");
}

#[test]
fn a_process_that_exits_during_a_switch_leaves_no_state() {
    let (mut queue, first) = queue("noop");
    let serve = |queue: &mut RequestQueue| {
        while let Some(request) = queue.dispatch(Time::ZERO) {
            queue.complete(Time::ZERO, request, Ok(()), |_, _| ());
        }
    };
    queue.submit(Time::ZERO, &read(first, 0));
    let request = queue.dispatch(Time::ZERO).unwrap();
    queue.switch(Time::ZERO, iosched::Registry::linux().get("cfq").unwrap());
    queue.submit(Time::ZERO, &read(first, 1000));
    queue.exit(Time::ZERO, first);
    queue.complete(Time::ZERO, request, Ok(()), |_, _| ());
    serve(&mut queue);
    assert_eq!(queue.waiting(), 0);

    let second = queue.create_context(2, IoPriority::default(), CgroupId::ROOT);
    assert_eq!(second, first, "the context id is reused");
    queue.record_decisions(true);
    queue.submit(Time::ZERO, &read(second, 2000));
    let request = queue.dispatch(Time::ZERO);
    let active = queue.take_decisions().find_map(|(_, decision)| match decision {
        Decision::Active { queue, .. } => Some(queue.pid),
        _ => None,
    });
    assert_eq!((request.is_some(), active), (true, Some(2)));
}

#[test]
fn waiters_are_woken_when_earlier_waiters_merge() {
    let (mut queue, holder) = queue("noop");
    queue.set_attribute(Time::ZERO, "nr_requests", "4").unwrap();
    let write = |context, flags, sector| Bio { op: Op::Write, flags, ..read(context, sector) };
    // Four async writes are in the device, and six tasks wait to submit further async writes. The
    // sectors of these writes follow a queued sync write, so that they can merge.
    for sector in [1000, 2000, 3000, 4000] {
        assert!(queue.submit(Time::ZERO, &write(holder, Flags::empty(), sector)).accepted());
    }
    let started: Vec<_> = (0..4).map(|_| queue.dispatch(Time::ZERO).unwrap()).collect();
    let tasks: Vec<_> = (2..8).map(|pid| queue.create_context(pid, IoPriority::default(), CgroupId::ROOT)).collect();
    let bio_of = |task: ContextId| write(task, Flags::empty(), 8 * task.index() as u64);
    for &task in &tasks {
        assert_eq!(queue.submit(Time::ZERO, &bio_of(task)), Submit::Full);
    }
    queue.submit(Time::ZERO, &write(holder, Flags::SYNC, 0));

    let mut outcomes = Vec::new();
    for request in started {
        queue.complete(Time::ZERO, request, Ok(()), |_, _| ());
        while let Some(task) = queue.take_woken() {
            outcomes.push(queue.submit(Time::ZERO, &bio_of(task)));
        }
    }
    assert_eq!(outcomes, [Submit::Merged; 6], "all waiters are woken, although none allocates a request");
}
