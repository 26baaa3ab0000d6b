//! Rules that differ between versions of Linux: each test holds under
//! one version and not under its neighbour.

use iosched::{
    Bio, Cgroup, CgroupId, ContextId, Flags, IoClass, IoPriority, Issued, Op, QueueConfig, Registry, RequestId,
    RequestQueue, Submit, Time,
};

pub(super) const NOW: Time = Time::from_ns(1_000_000_000_000);
pub(super) const MS: u64 = 1_000_000;

pub(super) fn config(kernel: &str) -> QueueConfig {
    QueueConfig { kernel: kernel.parse().unwrap(), write_cache: false, ..QueueConfig::default() }
}

pub(super) fn queue_of(scheduler: &str, config: &QueueConfig) -> RequestQueue {
    RequestQueue::new(NOW, config, Registry::linux().get(scheduler).unwrap())
}

pub(super) fn queue(scheduler: &str, kernel: &str) -> RequestQueue {
    queue_of(scheduler, &config(kernel))
}

pub(super) fn process_in(queue: &mut RequestQueue, class: IoClass, cgroup: CgroupId) -> ContextId {
    let pid = queue.env().contexts.len() as u32;
    queue.create_context(pid, IoPriority::new(class, 4), cgroup)
}

pub(super) fn process(queue: &mut RequestQueue) -> ContextId {
    process_in(queue, IoClass::BestEffort, CgroupId::ROOT)
}

pub(super) fn cgroup(queue: &mut RequestQueue, name: &str) -> CgroupId {
    queue.create_cgroup(Cgroup { name: name.to_owned(), parent: None, weight: None, leaf_weight: None }).unwrap()
}

pub(super) fn bio(op: Op, sector: u64, context: ContextId) -> Bio {
    Bio { op, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie: sector }
}

pub(super) fn complete(queue: &mut RequestQueue, id: RequestId) {
    queue.complete(NOW, id, Ok(()), |_, _| {});
}

/// Dispatches and completes a request. Returns its sector.
pub(super) fn serve(queue: &mut RequestQueue) -> Option<u64> {
    let id = queue.dispatch(NOW)?;
    let sector = queue.request(id).sector();
    complete(queue, id);
    Some(sector)
}

/// Returns how many distant writes get a tag.
fn writes_with_a_tag(queue: &mut RequestQueue, flags: Flags) -> usize {
    let context = process(queue);
    let write = |sector| Bio { flags, ..bio(Op::Write, sector, context) };
    (0..1000).take_while(|number| queue.submit(NOW, &write(number * 1000)).accepted()).count()
}

// ---- mq-deadline

#[test]
fn a_lone_sequential_reader_keeps_its_batch_from_6_5() {
    for (kernel, reads) in [("5.10", 2), ("5.15", 2), ("6.4", 2), ("6.5", 32), ("6.12", 32)] {
        let mut queue = queue("mq-deadline", kernel);
        let [reader, writer] = [(); 2].map(|()| process(&mut queue));
        // The batch of writes is over: no write is after its position.
        queue.submit(NOW, &bio(Op::Write, 1 << 31, writer));
        assert_eq!(serve(&mut queue), Some(1 << 31));
        queue.submit(NOW, &bio(Op::Write, 1 << 30, writer));
        let served = (0..100).map_while(|number| {
            queue.submit(NOW, &bio(Op::Read, number * 1000, reader));
            serve(&mut queue).filter(|&sector| sector < 1 << 30)
        });
        assert_eq!(served.count(), reads, "{kernel}");
        queue.check();
    }
}

#[test]
fn mq_deadline_forgets_the_next_write_after_a_read_up_to_5_13() {
    for (kernel, next) in [("5.4", 3000), ("5.13", 3000), ("5.14", 2000), ("6.4", 2000), ("6.12", 2000)] {
        let mut queue = queue("mq-deadline", kernel);
        queue.set_tunable(NOW, "fifo_batch", "1").unwrap();
        let [reader, writer] = [(); 2].map(|()| process(&mut queue));
        for sector in [1000, 3000, 2000] {
            queue.submit(NOW, &bio(Op::Write, sector, writer));
        }
        assert_eq!(serve(&mut queue), Some(1000));
        queue.submit(NOW, &bio(Op::Read, 0, reader));
        assert_eq!([serve(&mut queue), serve(&mut queue)], [Some(0), Some(next)], "{kernel}");
    }
}

#[test]
fn mq_deadline_has_classes_from_5_14_and_blocks_lower_from_5_16() {
    for (kernel, first, while_in_device) in
        [("5.13", 0, Some(5000)), ("5.14", 5000, Some(0)), ("5.15", 5000, Some(0)), ("5.16", 5000, None)]
    {
        let mut queue = queue("mq-deadline", kernel);
        let [idle, real_time] =
            [IoClass::Idle, IoClass::RealTime].map(|class| process_in(&mut queue, class, CgroupId::ROOT));
        queue.submit(NOW, &bio(Op::Read, 0, idle));
        queue.submit(NOW, &bio(Op::Read, 5000, real_time));
        let given = queue.dispatch(NOW).unwrap();
        assert_eq!(queue.request(given).sector(), first, "{kernel}");
        let second = queue.dispatch(NOW).map(|id| queue.request(id).sector());
        assert_eq!(second, while_in_device, "{kernel}");
        queue.check();
    }
}

#[test]
fn head_insertions_precede_classes_except_in_5_14_to_6_18() {
    let cases = [("5.13", true), ("5.14", false), ("6.12.0", false), ("6.12.62", false), ("6.12.63", true)];
    for (kernel, is_first) in cases.into_iter().chain([("6.18", false), ("6.19", true)]) {
        let mut queue = queue("mq-deadline", kernel);
        let urgent = process_in(&mut queue, IoClass::RealTime, CgroupId::ROOT);
        let usual = process(&mut queue);
        queue.submit(NOW, &bio(Op::Read, 0, urgent));
        let at_head = Issued { at_head: true, ..Issued::default() };
        queue.submit_issued(NOW, &bio(Op::Read, 1000, usual), &at_head);
        assert_eq!(serve(&mut queue) == Some(1000), is_first, "{kernel}");
    }
}

#[test]
fn merging_two_queued_requests_keeps_the_sector_order() {
    let mut queue = queue("mq-deadline", "6.1");
    let writer = process(&mut queue);
    for sector in [0, 1000, 1016, 3000] {
        queue.submit(NOW, &bio(Op::Write, sector, writer));
    }
    assert_eq!(serve(&mut queue), Some(0));
    assert_eq!(queue.submit(NOW, &bio(Op::Write, 1008, writer)), Submit::Merged, "the request at 1016 merges too");
    queue.check();
    assert_eq!([serve(&mut queue), serve(&mut queue), serve(&mut queue)], [Some(1000), Some(3000), None]);
}

#[test]
fn writes_are_limited_to_three_quarters_in_6_6_to_6_8() {
    for (kernel, writes) in
        [("5.13", 256), ("5.15", 256), ("6.1.53", 192), ("6.1.84", 256), ("6.5", 256), ("6.6", 192), ("6.9", 256)]
    {
        let mut queue = queue_of("mq-deadline", &QueueConfig { depth: 128, ..config(kernel) });
        assert_eq!(writes_with_a_tag(&mut queue, Flags::empty()), writes, "{kernel}");
    }
}

// ---- kyber and limits on tags

#[test]
fn tag_limits_are_per_word_up_to_6_16() {
    for (kernel, writes) in [("6.1", 5), ("6.12.42", 5), ("6.12.43", 7), ("6.16", 5), ("6.17", 7)] {
        let mut queue = queue_of("kyber", &QueueConfig { depth: 5, ..config(kernel) });
        assert_eq!(writes_with_a_tag(&mut queue, Flags::empty()), writes, "{kernel}");
    }
}

#[test]
fn kyber_limits_sync_writes_from_7_0() {
    for (kernel, writes) in [("6.19", 64), ("7.0", 48)] {
        assert_eq!(writes_with_a_tag(&mut queue("kyber", kernel), Flags::SYNC), writes, "{kernel}");
    }
}

// ---- plugs and merging

/// Returns a queue whose only process has a plug.
fn plugged(scheduler: &str, kernel: &str) -> (RequestQueue, ContextId) {
    let mut queue = queue(scheduler, kernel);
    let context = process(&mut queue);
    queue.plug(context);
    (queue, context)
}

#[test]
fn plugs_hold_sixteen_requests_up_to_5_15_and_then_thirty_two() {
    for (kernel, sixteen, thirty_two) in [("5.15", 16, 32), ("5.16", 0, 32), ("6.12", 0, 32)] {
        let (mut queue, context) = plugged("mq-deadline", kernel);
        let mut queued = |numbers: std::ops::Range<u64>| {
            numbers.for_each(|number| {
                queue.submit(NOW, &bio(Op::Write, number * 1000, context));
            });
            queue.env().queued()
        };
        assert_eq!([queued(0..17), queued(17..33)], [sixteen, thirty_two], "{kernel}");
    }
}

#[test]
fn the_kernel_decides_which_plugged_requests_accept_bios() {
    for (kernel, joins) in [
        ("5.15", [true, true, true]),
        ("5.16", [false, false, true]),
        ("6.12.24", [false, false, true]),
        ("6.12.25", [true, false, false]),
        ("6.12.35", [false, false, true]),
        ("6.14", [true, false, false]),
        ("6.16", [false, false, true]),
    ] {
        let joined = [0, 1000, 2000].map(|before| {
            let (mut queue, context) = plugged("mq-deadline", kernel);
            for sector in [0, 1000, 2000] {
                queue.submit(NOW, &bio(Op::Write, sector, context));
            }
            queue.submit(NOW, &bio(Op::Write, before + 8, context)) == Submit::Merged
        });
        assert_eq!(joined, joins, "{kernel}: oldest, middle, newest");
    }
}

#[test]
fn the_kernel_decides_which_long_request_empties_a_plug() {
    for (kernel, as_last) in [("6.1", 2), ("6.12.24", 2), ("6.12.25", 0), ("6.13", 0), ("6.12", 0)] {
        let queued = |lengths: [u32; 3]| {
            let (mut queue, context) = plugged("mq-deadline", kernel);
            for (number, nr_sectors) in (0..).zip(lengths) {
                queue.submit(NOW, &Bio { nr_sectors, ..bio(Op::Write, number * 10_000, context) });
            }
            queue.env().queued()
        };
        assert_eq!(queued([8, 256, 8]), as_last, "{kernel}: the newest request is long when the third arrives");
        assert_eq!(queued([256, 8, 8]), 1, "{kernel}: the only request is long when the second arrives");
    }
}

#[test]
fn plugs_are_emptied_in_reverse_from_5_18_to_6_2() {
    let (came, reversed) = ([0, 1000, 2000], [2000, 1000, 0]);
    for (kernel, order) in
        [("5.17", came), ("5.18", reversed), ("6.1.20", reversed), ("6.1.21", came), ("6.2", reversed), ("6.3", came)]
    {
        let (mut queue, context) = plugged("none", kernel);
        for sector in came {
            queue.submit(NOW, &bio(Op::Write, sector, context));
        }
        while queue.unplug(NOW, context) {}
        assert_eq!([(); 3].map(|()| serve(&mut queue).unwrap()), order, "{kernel}");
    }
}

#[test]
fn bios_of_different_cgroups_merge_up_to_5_17() {
    for (kernel, expected) in [("5.17", true), ("5.18", false), ("6.12", false)] {
        let mut queue = queue("none", kernel);
        let [first, second] = ["a", "b"].map(|name| {
            let cgroup = cgroup(&mut queue, name);
            process_in(&mut queue, IoClass::BestEffort, cgroup)
        });
        queue.submit(NOW, &bio(Op::Write, 0, first));
        assert_eq!(queue.submit(NOW, &bio(Op::Write, 8, second)) == Submit::Merged, expected, "{kernel}");
    }
}

// ---- dispatch and defaults

#[test]
fn driver_without_budget_empties_the_elevator_in_5_9_to_5_13() {
    for (kernel, driver_has_budget, is_emptied) in [
        ("5.8", false, false),
        ("5.9", false, true),
        ("5.10", true, false),
        ("5.13", false, true),
        ("5.14", false, false),
    ] {
        for scheduler in ["mq-deadline", "kyber", "bfq", "none"] {
            let mut queue = queue_of(scheduler, &QueueConfig { driver_has_budget, ..config(kernel) });
            let context = process(&mut queue);
            for sector in [3000, 2000] {
                queue.submit(NOW, &bio(Op::Read, sector, context));
            }
            let first = queue.dispatch(NOW).unwrap();
            assert_eq!(queue.env().queued() == 0, is_emptied, "{scheduler} {kernel}");
            queue.check();
            queue.submit(NOW, &bio(Op::Read, 2500, context));
            complete(&mut queue, first);
            let rest: Vec<u64> = std::iter::from_fn(|| serve(&mut queue)).collect();
            assert_eq!(rest.len(), 2, "{scheduler} {kernel}");
            assert!(!is_emptied || rest[1] == 2500, "{scheduler} {kernel}: the new request is last");
            queue.check();
        }
    }
}

/// Journal commits have both flags; writes with `O_DSYNC` have FUA.
#[test]
fn data_of_flush_sequences_goes_through_the_elevator_from_6_5() {
    let order = |scheduler: &str, kernel: &str, flags: Flags, writer: IoClass| {
        let mut queue = queue_of(scheduler, &QueueConfig { write_cache: true, ..config(kernel) });
        let reader = process_in(&mut queue, IoClass::RealTime, CgroupId::ROOT);
        let writer = process_in(&mut queue, writer, CgroupId::ROOT);
        queue.submit(NOW, &Bio { flags: Flags::SYNC | flags, ..bio(Op::Write, 5000, writer) });
        if flags.contains(Flags::PREFLUSH) {
            let flush = queue.dispatch(NOW).expect("a flush is due");
            assert_eq!(queue.request(flush).op(), Op::Flush);
            queue.submit(NOW, &bio(Op::Read, 1000, reader));
            queue.submit(NOW, &Bio { flags: Flags::SYNC, ..bio(Op::Write, 9000, writer) });
            complete(&mut queue, flush);
        } else {
            queue.submit(NOW, &bio(Op::Read, 1000, reader));
            queue.submit(NOW, &Bio { flags: Flags::SYNC, ..bio(Op::Write, 9000, writer) });
        }
        queue.check();
        let (mut order, mut done, mut now) = (Vec::new(), 0, NOW);
        while done < 3 {
            let Some(id) = queue.dispatch(now) else {
                now = queue.next_timer().expect("bfq idles");
                queue.timer(now);
                continue;
            };
            // The flush after the data is not in the order.
            if queue.request(id).op() != Op::Flush {
                order.push(queue.request(id).sector());
            }
            queue.complete(now, id, Ok(()), |_, _| done += 1);
            queue.check();
        }
        assert_eq!((order.len(), done), (3, 3), "{scheduler} {kernel}");
        order
    };
    let both = Flags::PREFLUSH | Flags::FUA;
    let [real_time, usual] = [IoClass::RealTime, IoClass::BestEffort];
    for scheduler in ["none", "mq-deadline", "kyber", "adios"] {
        for flags in [Flags::FUA, both] {
            assert_eq!(order(scheduler, "6.4", flags, usual)[0], 5000, "{scheduler}: the data bypasses the elevator");
        }
    }
    for kernel in ["6.5", "6.12", "7.0"] {
        assert_eq!(order("mq-deadline", kernel, Flags::FUA, usual), [1000, 5000, 9000], "reads are first");
        assert_eq!(order("bfq", kernel, Flags::FUA, usual)[0], 1000);
        assert_eq!(order("none", kernel, both, usual), [5000, 1000, 9000], "the data is at the head of the list");
    }
    // Data after a flush is at the head of its class, or of all classes.
    for (kernel, first) in [("6.5", 1000), ("6.12.62", 1000), ("6.18", 1000), ("6.12.63", 5000), ("6.19", 5000)] {
        assert_eq!(order("mq-deadline", kernel, both, usual)[0], first, "{kernel}");
        assert_eq!(order("mq-deadline", kernel, both, real_time)[0], 5000, "{kernel}");
    }
}

/// The new elevator learns of an exited process only when the process' data follows the flush.
#[test]
fn data_after_a_flush_survives_process_exit_and_a_switch() {
    for (from, to) in
        [("none", "bfq"), ("bfq", "mq-deadline"), ("mq-deadline", "cfq"), ("cfq", "adios"), ("bfq", "bfq")]
    {
        let mut queue = queue_of(from, &QueueConfig { write_cache: true, ..config("6.12") });
        let writer = process(&mut queue);
        let write = Bio { flags: Flags::PREFLUSH | Flags::FUA, ..bio(Op::Write, 5000, writer) };
        assert!(queue.submit(NOW, &bio(Op::Read, 100, writer)).accepted() && queue.submit(NOW, &write).accepted());
        let flush = queue.dispatch(NOW).expect("a flush is due");
        queue.exit(NOW, writer);
        queue.switch(NOW, Registry::linux().get(to).unwrap());
        complete(&mut queue, flush);
        let mut done = 0;
        while let Some(id) = queue.dispatch(NOW) {
            queue.complete(NOW, id, Ok(()), |_, _| done += 1);
            queue.check();
        }
        assert_eq!((done, queue.scheduler(), queue.is_switching()), (2, to, false), "{from}");
        assert!(queue.env().requests.is_empty());
    }
}

#[test]
fn an_emptied_elevator_can_be_switched() {
    let mut queue = queue_of("mq-deadline", &QueueConfig { driver_has_budget: false, ..config("5.10") });
    let context = process(&mut queue);
    for sector in [0, 1000, 2000] {
        queue.submit(NOW, &bio(Op::Read, sector, context));
    }
    let first = queue.dispatch(NOW).unwrap();
    queue.switch(NOW, Registry::linux().get("bfq").unwrap());
    complete(&mut queue, first);
    assert_eq!([serve(&mut queue), serve(&mut queue), serve(&mut queue)], [Some(1000), Some(2000), None]);
    queue.check();
    assert_eq!(queue.scheduler(), "bfq");
}

#[test]
fn default_max_sectors_kb_is_4096_from_6_17() {
    for (kernel, kb) in [("6.16", "512"), ("6.17", "4096"), ("7.0", "4096")] {
        let queue = queue_of("none", &QueueConfig { max_hw_sectors_kb: 32_767, ..config(kernel) });
        assert_eq!(queue.attribute("max_sectors_kb").unwrap(), kb, "{kernel}");
        let small = queue_of("none", &QueueConfig { max_hw_sectors_kb: 128, ..config(kernel) });
        assert_eq!(small.attribute("max_sectors_kb").unwrap(), "128", "{kernel}");
    }
}

#[test]
fn wbt_was_off_by_default_in_6_15_and_6_16() {
    for (kernel, us) in [("6.12", "75000"), ("6.14", "75000"), ("6.15", "0"), ("6.16", "0"), ("6.17", "75000")] {
        let mut queue = queue_of("none", &QueueConfig { throttles_writeback: true, ..config(kernel) });
        assert_eq!(queue.attribute("wbt_lat_usec").unwrap(), us, "{kernel}");
        queue.set_attribute(NOW, "wbt_lat_usec", "2000").unwrap();
        assert_eq!(queue.attribute("wbt_lat_usec").unwrap(), "2000", "{kernel}: writing a target enables wbt");
    }
}

#[test]
fn disabling_wbt_waits_for_writers_except_in_6_5_to_6_10() {
    for (kernel, drains) in
        [("6.1", true), ("6.4", true), ("6.5", false), ("6.10", false), ("6.11", true), ("6.12", true)]
    {
        let mut queue = queue("none", kernel);
        queue.set_attribute(NOW, "wbt_lat_usec", "2000").unwrap();
        let writers = [(); 64].map(|()| process(&mut queue));
        let write = |at: usize| bio(Op::Write, at as u64 * 1000, writers[at]);
        let asleep: Vec<_> = (0..63).filter(|&at| !queue.submit(NOW, &write(at)).accepted()).collect();
        assert!(asleep.len() > 10, "{kernel}: {} writers sleep", asleep.len());
        queue.set_attribute(NOW, "wbt_lat_usec", "0").unwrap();
        // A new write passes if wbt is off. It waits for all other writes if the queue drains.
        assert_eq!(queue.submit(NOW, &write(63)).accepted(), !drains, "{kernel}");
        let mut left = 64;
        while left > 0 {
            while let Some(woken) = queue.take_woken() {
                queue.submit(NOW, &write(writers.iter().position(|&writer| writer == woken).unwrap()));
            }
            assert!(serve(&mut queue).is_some(), "{kernel}: {left} writers hang");
            left -= 1;
        }
        assert_eq!(queue.attribute("wbt_lat_usec").unwrap(), "0", "{kernel}");
        queue.check();
    }
}

#[test]
fn sleeping_dirtiers_of_cgroups_raise_the_limit_of_wbt_from_6_8() {
    let accepted = |kernel: &str, in_cgroup: bool, sleeps: bool| {
        let config = QueueConfig { throttles_writeback: true, depth: 32, ..config(kernel) };
        let mut queue = queue_of("none", &config);
        let cgroup = if in_cgroup { cgroup(&mut queue, "limited") } else { CgroupId::ROOT };
        let dirtier = process_in(&mut queue, IoClass::BestEffort, cgroup);
        let flusher = process(&mut queue);
        if sleeps {
            queue.dirtier_sleeps(NOW, dirtier);
        }
        let write = |sector| Bio { flags: Flags::AHEAD, ..bio(Op::Write, sector, flusher) };
        (0..100).take_while(|number| queue.submit(NOW, &write(number * 1000)).accepted()).count()
    };
    for (kernel, of_cgroup) in [("6.1", 4), ("6.7", 4), ("6.8", 16), ("6.12", 16)] {
        assert_eq!(accepted(kernel, false, false), 4, "{kernel}: no process sleeps");
        assert_eq!(accepted(kernel, false, true), 16, "{kernel}: the process is in the root cgroup");
        assert_eq!(accepted(kernel, true, true), of_cgroup, "{kernel}: the process is in another cgroup");
    }
}

#[test]
fn io_cost_switches_wbt_off_from_6_2() {
    let target = |queue: &RequestQueue| queue.attribute("wbt_lat_usec").unwrap();
    let switch_on = |queue: &mut RequestQueue, on: bool| {
        let text = format!("enable={}", u8::from(on));
        queue.set_cgroup_attribute(NOW, CgroupId::ROOT, "io.cost.qos", &text).unwrap();
    };
    for (kernel, stays) in [("5.15", true), ("6.1", true), ("6.2", false), ("6.12", false), ("7.0", false)] {
        let mut queue = queue_of("none", &QueueConfig { throttles_writeback: true, ..config(kernel) });
        switch_on(&mut queue, true);
        assert_eq!(target(&queue) != "0", stays, "{kernel}");
        let writes = writes_with_a_tag(&mut queue, Flags::empty());
        assert_eq!(writes < 32, stays, "{kernel}: {writes} writes, the queue has 32 requests");
    }
    let config = QueueConfig { throttles_writeback: true, ..config("6.12") };
    let mut queue = queue_of("none", &config);
    switch_on(&mut queue, true);
    queue.switch(NOW, Registry::linux().get("bfq").unwrap());
    switch_on(&mut queue, false);
    assert_eq!(target(&queue), "0", "bfq still disables wbt");
    queue.switch(NOW, Registry::linux().get("none").unwrap());
    assert_eq!(target(&queue), "75000");
    let mut queue = queue_of("none", &config);
    queue.set_attribute(NOW, "wbt_lat_usec", "9000").unwrap();
    switch_on(&mut queue, true);
    assert_eq!(target(&queue), "9000", "a written target stays");
}
