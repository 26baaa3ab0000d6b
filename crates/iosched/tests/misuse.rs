//! Mistakes of a host. Each is a documented panic in every build, an error value, or a documented
//! call without effect. The tests that need debug assertions say so.

use std::panic::{AssertUnwindSafe, catch_unwind};

use iosched::{
    Bio, BioError, Cgroup, CgroupId, ContextId, Driver, Flags, IoClass, IoPriority, Op, QueueConfig, Registry,
    RequestId, RequestQueue, Rerun, Submit, Time,
};

const NOW: Time = Time::from_ns(1_000_000_000_000);
const BEFORE: Time = Time::from_ns(999_999_999_999);
const UNKNOWN: ContextId = ContextId::numbered(7);

fn driver(elevator: &str) -> (Driver, Bio) {
    let queue = RequestQueue::new(NOW, &QueueConfig::default(), Registry::linux().get(elevator).unwrap());
    let mut driver = Driver::new(queue, Rerun::LINUX);
    let context = driver.create_context(1, IoPriority::default(), CgroupId::ROOT);
    let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: 0, nr_sectors: 8, context, cookie: 0 };
    (driver, bio)
}

/// Returns a queue with one process, and a read of that process.
fn one_process() -> (Driver, Bio) {
    driver("mq-deadline")
}

/// Puts one request of the process into the device.
fn in_device(driver: &mut Driver, bio: &Bio) -> RequestId {
    let Submit::Queued(id) = driver.submit(NOW, bio) else { panic!("the bio is not queued") };
    while driver.kicked(NOW, true).is_some() {}
    while driver.turn(NOW, true).is_some() {}
    assert_eq!(driver.queue().in_driver(), 1);
    id
}

/// Returns the message of the panic that `call` must cause.
fn panic_of(name: &str, call: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(call)).expect_err(name);
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).expect("a panic has a text")
}

fn group(name: &str, parent: Option<CgroupId>) -> Cgroup {
    Cgroup { name: name.to_owned(), parent, weight: None, leaf_weight: None }
}

type Named<C> = [(&'static str, C)];

/// Calls that name a context.
const OF_CONTEXT: &Named<fn(&mut Driver, ContextId)> = &[
    ("submit", |driver, context| {
        let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: 0, nr_sectors: 8, context, cookie: 0 };
        let _ = driver.submit(NOW, &bio);
    }),
    ("plug", |driver, context| driver.plug(context)),
    ("unplug", |driver, context| _ = driver.unplug(NOW, context)),
    ("decline", |driver, context| driver.decline(context)),
    ("set_ioprio", |driver, context| driver.set_ioprio(context, IoPriority::default())),
    ("move_context", |driver, context| driver.move_context(NOW, context, CgroupId::ROOT)),
    ("yield_to, from", |driver, context| driver.yield_to(NOW, context, ContextId::numbered(0))),
    ("yield_to, to", |driver, context| driver.yield_to(NOW, ContextId::numbered(0), context)),
    ("dirtier_sleeps", |driver, context| driver.dirtier_sleeps(NOW, context)),
    ("rest_ns", |driver, context| _ = driver.rest_ns(NOW, context)),
    ("exit", |driver, context| driver.exit(NOW, context)),
];

/// Calls that need a process that has not exited. Other calls have no effect after an exit.
const OF_LIVING: [&str; 3] = ["submit", "plug", "exit"];

#[test]
fn every_call_refuses_an_unknown_context() {
    for elevator in Registry::linux().elevators() {
        for (name, call) in OF_CONTEXT {
            let name = format!("{}: {name}", elevator.name);
            let (mut driver, _) = driver(elevator.name);
            let message = panic_of(&name, || call(&mut driver, UNKNOWN));
            assert_eq!(message, "the queue has no io context 7", "{name}");
        }
    }
}

#[test]
fn calls_for_an_exited_process_panic_or_have_no_effect() {
    for elevator in Registry::linux().elevators() {
        for (name, call) in OF_CONTEXT {
            let labelled = format!("{}: {name}", elevator.name);
            let (mut driver, bio) = driver(elevator.name);
            let gone = driver.create_context(2, "be/2".parse().unwrap(), CgroupId::ROOT);
            // A request in flight keeps the id from being used again.
            let id = in_device(&mut driver, &Bio { context: gone, ..bio });
            driver.exit(NOW, gone);
            if OF_LIVING.contains(name) {
                let message = panic_of(&labelled, || call(&mut driver, gone));
                assert_eq!(message, "the process of io context 1 has exited", "{labelled}");
            } else {
                call(&mut driver, gone);
                let context = driver.queue().env().contexts.get(gone);
                assert_eq!(context.ioprio, "be/2".parse().unwrap(), "{labelled}");
                driver.complete(NOW, id, Ok(()), |_, _| {});
                driver.queue().check();
            }
        }
    }
}

/// Calls that name a cgroup.
const OF_CGROUP: &Named<fn(&mut Driver, CgroupId)> = &[
    ("create_cgroup", |driver, cgroup| _ = driver.create_cgroup(group("db", Some(cgroup)))),
    ("create_context", |driver, cgroup| _ = driver.create_context(2, IoPriority::default(), cgroup)),
    ("move_context", |driver, cgroup| driver.move_context(NOW, ContextId::numbered(0), cgroup)),
    ("set_weights", |driver, cgroup| _ = driver.set_weights(cgroup, Some(200), None)),
    ("set_cgroup_attribute", |driver, cgroup| _ = driver.set_cgroup_attribute(NOW, cgroup, "io.max", "riops=1")),
    ("cgroup_attribute", |driver, cgroup| _ = driver.cgroup_attribute(cgroup, "io.max")),
    ("remove_cgroup", |driver, cgroup| driver.remove_cgroup(NOW, cgroup)),
];

#[test]
fn every_call_refuses_an_unknown_cgroup() {
    for elevator in Registry::linux().elevators() {
        for (name, call) in OF_CGROUP {
            let name = format!("{}: {name}", elevator.name);
            let (mut driver, _) = driver(elevator.name);
            let message = panic_of(&name, || call(&mut driver, CgroupId::numbered(9)));
            assert_eq!(message, "the queue has no cgroup 9", "{name}");
        }
    }
}

#[test]
fn calls_for_a_removed_cgroup_apply_to_its_ancestor() {
    for elevator in Registry::linux().elevators() {
        for (name, call) in OF_CGROUP {
            let name = format!("{}: {name}", elevator.name);
            let (mut driver, bio) = driver(elevator.name);
            let parent = driver.create_cgroup(group("a", None)).unwrap();
            let removed = driver.create_cgroup(group("b", Some(parent))).unwrap();
            let inside = driver.create_context(3, IoPriority::default(), removed);
            let first = in_device(&mut driver, &Bio { context: inside, ..bio });
            driver.remove_cgroup(NOW, removed);
            call(&mut driver, removed);
            assert_eq!(driver.queue().env().cgroups.living(removed), parent, "{name}");
            driver.complete(NOW, first, Ok(()), |_, _| {});
            let second = in_device(&mut driver, &Bio { context: inside, sector: 1000, ..bio });
            driver.complete(NOW, second, Ok(()), |_, _| {});
            driver.queue().check();
        }
    }
}

/// Calls that take the present time, on a queue with a request in the device.
const AT_A_TIME: &Named<fn(&mut Driver, RequestId, Time)> = &[
    ("submit", |driver, id, now| {
        let context = driver.queue().request(id).context();
        let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: 800, nr_sectors: 8, context, cookie: 1 };
        let _ = driver.submit(now, &bio);
    }),
    ("unplug", |driver, id, now| {
        let context = driver.queue().request(id).context();
        let _ = driver.unplug(now, context);
    }),
    ("complete", |driver, id, now| driver.complete(now, id, Ok(()), |_, _| {})),
    ("requeue", |driver, id, now| driver.requeue(now, id)),
    ("timer", |driver, _, now| _ = driver.timer(now)),
    ("rerun", |driver, _, now| driver.rerun(now)),
    ("turn with room", |driver, _, now| _ = driver.turn(now, true)),
    ("turn without room", |driver, _, now| _ = driver.turn(now, false)),
    ("rest_ns", |driver, id, now| {
        let context = driver.queue().request(id).context();
        let _ = driver.rest_ns(now, context);
    }),
    ("stat", |driver, _, now| _ = driver.stat(now)),
    ("exit", |driver, id, now| {
        let context = driver.queue().request(id).context();
        driver.exit(now, context);
    }),
    ("yield_to", |driver, id, now| {
        let context = driver.queue().request(id).context();
        driver.yield_to(now, context, context);
    }),
    ("dirtier_sleeps", |driver, id, now| {
        let context = driver.queue().request(id).context();
        driver.dirtier_sleeps(now, context);
    }),
    ("move_context", |driver, id, now| {
        let context = driver.queue().request(id).context();
        driver.move_context(now, context, CgroupId::ROOT);
    }),
    ("remove_cgroup", |driver, _, now| {
        let cgroup = driver.create_cgroup(group("db", None)).unwrap();
        driver.remove_cgroup(now, cgroup);
    }),
    ("set_attribute", |driver, _, now| _ = driver.set_attribute(now, "nr_requests", "64")),
    ("set_cgroup_attribute", |driver, _, now| {
        let _ = driver.set_cgroup_attribute(now, CgroupId::ROOT, "io.max", "riops=1");
    }),
    ("set_tunable", |driver, _, now| _ = driver.set_tunable(now, "fifo_batch", "1")),
    ("switch", |driver, _, now| driver.switch(now, Registry::linux().get("adios").unwrap())),
];

#[test]
fn every_call_refuses_a_time_that_went_back() {
    for elevator in Registry::linux().elevators() {
        for (name, call) in AT_A_TIME {
            let name = format!("{}: {name}", elevator.name);
            let (mut driver, bio) = driver(elevator.name);
            let id = in_device(&mut driver, &bio);
            let message = panic_of(&name, || call(&mut driver, id, BEFORE));
            assert!(
                message.starts_with("time went back from 1000.000000000 s to 999.999999999 s"),
                "{name}: {message}"
            );
        }
    }
}

#[test]
fn a_kick_refuses_a_time_that_went_back() {
    let (mut driver, bio) = driver("none");
    let _ = driver.submit(NOW, &bio);
    let message = panic_of("kicked", || _ = driver.kicked(BEFORE, true));
    assert!(message.starts_with("time went back"), "{message}");
}

/// Calls that name a request in the device.
const OF_REQUEST: &Named<fn(&mut Driver, RequestId)> = &[
    ("complete", |driver, id| driver.complete(NOW, id, Ok(()), |_, _| panic!("nothing is complete"))),
    ("requeue", |driver, id| driver.requeue(NOW, id)),
];

#[test]
fn completed_requests_cannot_be_completed_or_requeued() {
    for elevator in Registry::linux().elevators() {
        for (name, call) in OF_REQUEST {
            let name = format!("{}: {name}", elevator.name);
            let (mut driver, bio) = driver(elevator.name);
            let id = in_device(&mut driver, &bio);
            driver.complete(NOW, id, Ok(()), |_, _| {});
            let message = panic_of(&name, || call(&mut driver, id));
            assert!(message.starts_with("the device does not have rq0"), "{name}: {message}");
        }
    }
}

#[test]
fn requests_outside_the_device_cannot_complete_or_requeue() {
    for (name, call) in OF_REQUEST {
        let (mut driver, bio) = one_process();
        let Submit::Queued(id) = driver.submit(NOW, &bio) else { panic!("the bio is not queued") };
        let message = panic_of(name, || call(&mut driver, id));
        assert!(message.starts_with("the device does not have rq0"), "{name}: {message}");
        // An id of another queue.
        let (mut other, _) = one_process();
        let message = panic_of(name, || call(&mut other, id));
        assert!(message.starts_with("the device does not have rq0"), "{name}: {message}");
    }
}

#[test]
fn reading_a_completed_request_panics() {
    let calls: &Named<fn(&RequestQueue, RequestId)> = &[
        ("request", |queue, id| _ = queue.request(id)),
        ("cookie", |queue, id| _ = queue.cookie(id)),
        ("bios", |queue, id| _ = queue.bios(id).count()),
    ];
    for (name, call) in calls {
        let (mut driver, bio) = one_process();
        let id = in_device(&mut driver, &bio);
        call(driver.queue(), id);
        driver.complete(NOW, id, Ok(()), |_, _| {});
        let message = panic_of(name, || call(driver.queue(), id));
        assert!(message.starts_with("the queue has no request rq0"), "{name}: {message}");
        let (other, _) = one_process();
        let message = panic_of(name, || call(other.queue(), id));
        assert!(message.starts_with("the queue has no request rq0"), "{name}: {message}");
    }
}

#[test]
fn invalid_bios_are_found_by_check_bio_and_refused_by_submit() {
    let (mut driver, bio) = one_process();
    let most = 2 * QueueConfig::default().max_hw_sectors_kb;
    let gone = driver.create_context(2, IoPriority::default(), CgroupId::ROOT);
    driver.exit(NOW, gone);
    let end = u64::MAX - 7;
    for (wrong, expected) in [
        (Bio { nr_sectors: 0, ..bio }, BioError::NoSectors),
        (Bio { sector: end, ..bio }, BioError::BeyondEnd { sector: end, nr_sectors: 8 }),
        (Bio { nr_sectors: most + 1, ..bio }, BioError::TooLong { nr_sectors: most + 1, most }),
        (Bio { context: UNKNOWN, ..bio }, BioError::UnknownContext(UNKNOWN)),
        (Bio { context: gone, ..bio }, BioError::Exited(gone)),
    ] {
        assert_eq!(driver.queue().check_bio(&wrong), Err(expected));
        let message = panic_of("submit", || _ = driver.submit(NOW, &wrong));
        assert_eq!(message, expected.to_string());
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
fn priority_levels_above_7_are_refused() {
    assert_eq!(IoPriority::checked(IoClass::BestEffort, 99), None);
    assert_eq!(IoPriority::checked(IoClass::BestEffort, 7), Some(IoPriority::new(IoClass::BestEffort, 7)));
    let message = panic_of("new", || _ = IoPriority::new(IoClass::BestEffort, 8));
    assert_eq!(message, "the level must be from 0 (most urgent) to 7");
    assert!("be/99".parse::<IoPriority>().is_err());
}

#[test]
fn cgroup_weights_out_of_range_are_refused() {
    let (mut driver, _) = driver("bfq");
    for wrong in [0, 1001, u32::MAX] {
        let given = Cgroup { weight: Some(wrong), ..group("db", None) };
        let expected = format!("weight {wrong} of cgroup db is out of range; it must be from 1 to 1000");
        assert_eq!(driver.create_cgroup(given).unwrap_err().to_string(), expected);
    }
    let db = driver.create_cgroup(group("db", None)).unwrap();
    assert!(driver.set_weights(db, Some(1001), None).is_err());
    assert_eq!(driver.queue().env().cgroups.weight(db), 100, "an error does not change the weight");
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a host ends `Driver::turn` before the next event")]
fn next_due_panics_before_the_turn_ends() {
    let (mut driver, bio) = one_process();
    let _ = driver.submit(NOW, &bio);
    let _ = driver.turn(NOW, true);
    let _ = driver.next_due(None, None);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a host submits when `Driver::kicked` gives nothing more")]
fn submit_panics_before_kicked_has_returned_none() {
    let (mut driver, bio) = driver("none");
    let _ = driver.submit(NOW, &bio);
    assert!(driver.kicked(NOW, true).is_some());
    let _ = driver.submit(NOW, &Bio { sector: 1000, ..bio });
}

/// Without debug assertions, the mistake in the order of calls loses no request.
#[test]
#[cfg(not(debug_assertions))]
fn a_wrong_order_of_calls_loses_no_request() {
    for elevator in Registry::linux().elevators() {
        let (mut driver, bio) = driver(elevator.name);
        let mut device = Vec::new();
        let mut done = 0;
        for cookie in 0..20 {
            let bio = Bio { sector: 1000 * cookie, cookie, ..bio };
            let submit = driver.submit(NOW, &bio);
            assert!(matches!(submit, Submit::Queued(_)), "{}", elevator.name);
            device.extend(driver.kicked(NOW, true));
            if let Some(iosched::Step::Start(id)) = driver.turn(NOW, true) {
                device.push(id);
            }
            let _ = driver.next_due(None, None);
        }
        let mut now = NOW;
        while done < 20 {
            while let Some(id) = device.pop() {
                driver.complete(now, id, Ok(()), |_, _| done += 1);
            }
            while let Some(step) = driver.turn(now, true) {
                let iosched::Step::Start(id) = step else { panic!("a process waits") };
                device.push(id);
            }
            if device.is_empty() && done < 20 {
                now = driver.next_due(None, None).expect("the queue runs again").0;
                let _ = driver.timer(now);
                driver.rerun(now);
            }
        }
        driver.queue().check();
    }
}
