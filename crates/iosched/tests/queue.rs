//! Request queue, one behaviour per test.

use iosched::{
    Bio, CgroupId, ContextId, Flags, IoPriority, MILLISECOND_NS, Op, QueueConfig, RequestId, RequestQueue, Submit,
    Time, TunableError,
};

const NOW: Time = Time::from_ns(1_000_000_000_000);

fn queue(scheduler: &str, config: &QueueConfig) -> RequestQueue {
    RequestQueue::new(NOW, config, iosched::Registry::linux().get(scheduler).unwrap())
}

fn process(queue: &mut RequestQueue) -> ContextId {
    queue.create_context(1, IoPriority::default(), CgroupId::ROOT)
}

fn bio(op: Op, flags: Flags, sector: u64, context: ContextId) -> Bio {
    let nr_sectors = if op == Op::Flush { 0 } else { 8 };
    Bio { op, flags, sector, nr_sectors, context, cookie: sector }
}

fn read(sector: u64, context: ContextId) -> Bio {
    bio(Op::Read, Flags::empty(), sector, context)
}

fn submit(queue: &mut RequestQueue, bio: &Bio) -> RequestId {
    match queue.submit(NOW, bio) {
        Submit::Queued(id) => id,
        other => panic!("{other:?}"),
    }
}

/// Dispatches all requests to a device without a limit. Returns them in order.
fn dispatched(queue: &mut RequestQueue) -> Vec<(Op, u64, u32)> {
    let ids: Vec<_> = std::iter::from_fn(|| queue.dispatch(NOW)).collect();
    ids.into_iter()
        .map(|id| (queue.request(id).op(), queue.request(id).sector(), queue.request(id).nr_sectors()))
        .collect()
}

/// Completes a request. Returns the cookies of the completed bios.
fn complete(queue: &mut RequestQueue, id: RequestId) -> Vec<u64> {
    let mut done = Vec::new();
    queue.complete(NOW, id, Ok(()), |bio, result| {
        result.unwrap();
        done.push(bio.cookie);
    });
    queue.check();
    done
}

#[test]
fn merged_bios_complete_in_sector_order() {
    let mut queue = queue("deadline", &QueueConfig::default());
    let task = process(&mut queue);
    submit(&mut queue, &read(100, task));
    assert_eq!(queue.submit(NOW, &read(108, task)), Submit::Merged);
    assert_eq!(queue.submit(NOW, &read(92, task)), Submit::Merged);
    submit(&mut queue, &read(124, task));
    assert_eq!(
        queue.submit(NOW, &read(116, task)),
        Submit::Merged,
        "the bio closes the gap, so two requests become one"
    );
    let id = queue.dispatch(NOW).unwrap();
    assert_eq!((queue.request(id).sector(), queue.request(id).nr_sectors()), (92, 40));
    assert_eq!(queue.dispatch(NOW), None);
    assert_eq!(complete(&mut queue, id), [92, 100, 108, 116, 124]);
    assert_eq!(queue.stat(NOW).reads.merges, 4);
}

#[test]
fn a_request_that_was_too_large_to_merge_never_merges_again() {
    let mut queue = queue("noop", &QueueConfig::default());
    queue.set_attribute(NOW, "max_sectors_kb", "8").unwrap();
    let task = process(&mut queue);
    submit(&mut queue, &read(0, task));
    assert_eq!(queue.submit(NOW, &read(8, task)), Submit::Merged);
    submit(&mut queue, &read(16, task));
    queue.set_attribute(NOW, "max_sectors_kb", "512").unwrap();
    assert_eq!(queue.submit(NOW, &read(24, task)), Submit::Merged, "the bio joins the second request");
    assert_eq!(dispatched(&mut queue), [(Op::Read, 0, 16), (Op::Read, 16, 16)]);
}

#[test]
fn nomerges_1_tries_only_the_last_merge_and_2_disables_merges() {
    for (nomerges, expected) in [("0", 2), ("1", 3), ("2", 4)] {
        let mut queue = queue("noop", &QueueConfig::default());
        queue.set_attribute(NOW, "nomerges", nomerges).unwrap();
        let task = process(&mut queue);
        // The first request stays the request merged last. The second request is only in the hash.
        for sector in [0, 8, 1000, 1008] {
            queue.submit(NOW, &read(sector, task));
        }
        assert_eq!(dispatched(&mut queue).len(), expected, "nomerges {nomerges}");
    }
}

#[test]
fn a_plug_collects_merges_and_sorts_requests() {
    let mut queue = queue("noop", &QueueConfig::default());
    let task = process(&mut queue);
    queue.plug(task);
    for sector in [300, 100, 200, 108] {
        queue.submit(NOW, &read(sector, task));
    }
    assert_eq!(queue.dispatch(NOW), None, "the elevator has no request yet");
    while queue.unplug(NOW, task) {}
    assert_eq!(dispatched(&mut queue), [(Op::Read, 100, 16), (Op::Read, 200, 8), (Op::Read, 300, 8)]);
}

#[test]
fn a_full_plug_empties_itself() {
    let mut queue = queue("noop", &QueueConfig::default());
    let task = process(&mut queue);
    queue.plug(task);
    for i in 0..20 {
        submit(&mut queue, &read(i * 100, task));
    }
    assert_eq!(dispatched(&mut queue).len(), 16, "the plug stays open and holds the last four");
}

#[test]
fn a_process_at_a_full_queue_may_allocate_a_batch() {
    let mut queue = queue("noop", &QueueConfig::default());
    queue.set_attribute(NOW, "nr_requests", "16").unwrap();
    let [greedy, late] = [process(&mut queue), process(&mut queue)];
    let mut accepted = 0;
    while queue.submit(NOW, &read(accepted * 1000, greedy)).accepted() {
        accepted += 1;
    }
    assert_eq!(accepted, 24, "1.5 times nr_requests: the process that fills the queue gets a batch");
    assert!(queue.congested(true) && !queue.congested(false), "sync and async requests are counted separately");
    assert_eq!(queue.submit(NOW, &read(1, late)), Submit::Full);
    assert!(queue.submit(NOW, &bio(Op::Write, Flags::empty(), 7, late)).accepted());
    let ids: Vec<_> = std::iter::from_fn(|| queue.dispatch(NOW)).collect();
    let mut woken = Vec::new();
    for id in ids {
        complete(&mut queue, id);
        woken.extend(queue.take_woken());
    }
    assert_eq!(woken, [greedy, late]);
    assert!(queue.submit(NOW, &read(1, late)).accepted());
}

#[test]
fn a_woken_process_that_exits_leaves_its_place_to_the_next() {
    let mut queue = queue("noop", &QueueConfig::default());
    queue.set_attribute(NOW, "nr_requests", "4").unwrap();
    let [filler, first, second] = [process(&mut queue), process(&mut queue), process(&mut queue)];
    let mut ids = Vec::new();
    while queue.submit(NOW, &read(ids.len() as u64 * 1000, filler)).accepted() {
        ids.push(queue.dispatch(NOW).unwrap());
    }
    assert_eq!(queue.submit(NOW, &read(1, first)), Submit::Full);
    assert_eq!(queue.submit(NOW, &read(1, second)), Submit::Full);
    for id in ids.drain(..) {
        complete(&mut queue, id);
    }
    while queue.take_woken().is_some() {}
    queue.exit(NOW, first);
    assert!(queue.submit(NOW, &read(1, second)).accepted());
}

#[test]
fn waiting_flushes_share_one_later_device_flush() {
    let mut queue = queue("cfq", &QueueConfig::default());
    let task = process(&mut queue);
    let flush = |cookie| Bio { cookie, ..bio(Op::Flush, Flags::empty(), 0, task) };
    submit(&mut queue, &flush(1));
    let first = queue.dispatch(NOW).unwrap();
    assert_eq!(queue.request(first).op(), Op::Flush);
    // These flushes came after the device flush began, so it does not cover them.
    submit(&mut queue, &flush(2));
    submit(&mut queue, &flush(3));
    assert_eq!(queue.dispatch(NOW), None);
    assert_eq!(complete(&mut queue, first), [1]);
    let second = queue.dispatch(NOW).unwrap();
    assert_eq!(complete(&mut queue, second), [2, 3]);
}

#[test]
fn preflush_comes_before_the_data_and_fua_after_it() {
    let mut queue = queue("cfq", &QueueConfig::default());
    let task = process(&mut queue);
    submit(&mut queue, &bio(Op::Write, Flags::PREFLUSH | Flags::FUA | Flags::SYNC, 64, task));
    for (op, done) in [(Op::Flush, vec![]), (Op::Write, vec![]), (Op::Flush, vec![64])] {
        let id = queue.dispatch(NOW).unwrap();
        assert_eq!(queue.request(id).op(), op);
        assert_eq!(queue.dispatch(NOW), None);
        assert_eq!(complete(&mut queue, id), done);
    }
}

#[test]
fn fua_devices_and_uncached_devices_need_no_flush() {
    let fua = bio(Op::Write, Flags::FUA | Flags::SYNC, 64, {
        let mut queue = queue("noop", &QueueConfig::default());
        process(&mut queue)
    });
    let mut with_fua = queue("noop", &QueueConfig { fua: true, ..QueueConfig::default() });
    process(&mut with_fua);
    let id = submit(&mut with_fua, &fua);
    assert_eq!(with_fua.dispatch(NOW), Some(id));
    assert!(with_fua.request(id).needs_fua());
    assert_eq!(complete(&mut with_fua, id), [64]);

    let mut without_cache = queue("noop", &QueueConfig { write_cache: false, ..QueueConfig::default() });
    let task = process(&mut without_cache);
    assert!(matches!(without_cache.submit(NOW, &bio(Op::Flush, Flags::empty(), 0, task)), Submit::Done(_)));
    let id = submit(&mut without_cache, &fua);
    assert_eq!(without_cache.dispatch(NOW), Some(id));
    assert_eq!(complete(&mut without_cache, id), [64]);
}

/// Returns a queue whose flushes are barriers, with a process.
fn with_barriers(scheduler: &str, write_cache: bool) -> (RequestQueue, ContextId) {
    let mut queue = queue(scheduler, &QueueConfig { barriers: true, write_cache, ..QueueConfig::default() });
    let task = process(&mut queue);
    (queue, task)
}

const BARRIER: Flags = Flags::PREFLUSH.union(Flags::FUA).union(Flags::SYNC);

#[test]
fn no_request_passes_a_barrier() {
    for scheduler in ["noop", "deadline", "cfq", "anticipatory", "cfq-2.6.16"] {
        for write_cache in [false, true] {
            let (mut queue, task) = with_barriers(scheduler, write_cache);
            let in_device = submit(&mut queue, &bio(Op::Write, Flags::SYNC, 900, task));
            assert_eq!(queue.dispatch(NOW), Some(in_device));
            let queued = submit(&mut queue, &bio(Op::Write, Flags::SYNC, 500, task));
            submit(&mut queue, &bio(Op::Write, BARRIER, 700, task));
            // The first write would continue a request from before the barrier. The second write is
            // nearer to the device's position.
            let after = [508, 100].map(|sector| submit(&mut queue, &bio(Op::Write, Flags::SYNC, sector, task)));

            assert_eq!(queue.dispatch(NOW), Some(queued), "{scheduler}");
            assert_eq!(queue.dispatch(NOW), None, "{scheduler}: a request before the barrier is in flight");
            assert_eq!(complete(&mut queue, queued), [500]);
            assert_eq!(queue.dispatch(NOW), None, "{scheduler}: a request before the barrier is in flight");
            assert_eq!(complete(&mut queue, in_device), [900]);
            let mut steps = Vec::new();
            loop {
                let step = queue.dispatch(NOW).unwrap();
                assert_eq!(queue.dispatch(NOW), None, "{scheduler}: the barrier is in flight");
                steps.push(queue.request(step).op());
                if complete(&mut queue, step) == [700] {
                    break;
                }
            }
            let expected: &[Op] = if write_cache { &[Op::Flush, Op::Write, Op::Flush] } else { &[Op::Write] };
            assert_eq!(steps, expected, "{scheduler}");
            let mut rest = [queue.dispatch(NOW), queue.dispatch(NOW)].map(Option::unwrap);
            rest.sort_unstable();
            assert_eq!(rest, after, "{scheduler}");
        }
    }
}

#[test]
fn flushes_without_data_are_barriers_in_order() {
    let (mut queue, task) = with_barriers("noop", true);
    let flush = |cookie| Bio { cookie, ..bio(Op::Flush, Flags::empty(), 0, task) };
    let first = submit(&mut queue, &read(100, task));
    submit(&mut queue, &flush(1));
    let between = submit(&mut queue, &read(300, task));
    submit(&mut queue, &flush(2));
    for (request, done) in [(Some(first), 100), (None, 1), (Some(between), 300), (None, 2)] {
        let given = queue.dispatch(NOW).unwrap();
        assert!(request.map_or(queue.request(given).op() == Op::Flush, |request| request == given));
        assert_eq!(queue.dispatch(NOW), None);
        assert_eq!(complete(&mut queue, given), [done]);
    }
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn requests_in_plugs_are_dispatched_before_a_later_barrier() {
    let (mut queue, task) = with_barriers("noop", false);
    let other = queue.create_context(2, IoPriority::default(), CgroupId::ROOT);
    queue.plug(other);
    let collected = submit(&mut queue, &read(100, other));
    let barrier = submit(&mut queue, &bio(Op::Write, BARRIER, 700, task));
    let after = submit(&mut queue, &read(300, other));
    assert_eq!(queue.dispatch(NOW), Some(collected));
    complete(&mut queue, collected);
    assert_eq!(queue.dispatch(NOW), Some(barrier));
    complete(&mut queue, barrier);
    assert_eq!(queue.dispatch(NOW), None, "the plug still holds the request");
    assert!(queue.unplug(NOW, other));
    assert_eq!(queue.dispatch(NOW), Some(after));
}

#[test]
fn switches_and_barriers_wait_for_each_other() {
    let (mut queue, task) = with_barriers("noop", true);
    let before = submit(&mut queue, &read(100, task));
    submit(&mut queue, &Bio { cookie: 1, ..bio(Op::Flush, Flags::empty(), 0, task) });
    queue.switch(NOW, iosched::Registry::linux().get("deadline").unwrap());
    let held = submit(&mut queue, &read(900, task));
    submit(&mut queue, &Bio { cookie: 2, ..bio(Op::Flush, Flags::empty(), 0, task) });
    let last = submit(&mut queue, &read(300, task));

    for (request, done, switching) in
        [(Some(before), 100, true), (None, 1, false), (Some(held), 900, false), (None, 2, false)]
    {
        let given = queue.dispatch(NOW).unwrap();
        assert!(request.map_or(queue.request(given).op() == Op::Flush, |request| request == given));
        assert_eq!(queue.dispatch(NOW), None);
        assert_eq!(complete(&mut queue, given), [done]);
        assert_eq!(queue.is_switching(), switching);
    }
    assert_eq!(queue.dispatch(NOW), Some(last));
}

#[test]
fn a_requeued_barrier_blocks_and_a_failed_barrier_does_not() {
    let (mut queue, task) = with_barriers("noop", true);
    let barrier = submit(&mut queue, &bio(Op::Write, Flags::PREFLUSH, 700, task));
    let after = submit(&mut queue, &read(100, task));
    let flush = queue.dispatch(NOW).unwrap();
    assert_eq!(complete(&mut queue, flush), []);
    assert_eq!(queue.dispatch(NOW), Some(barrier));
    queue.requeue(NOW, barrier);
    assert_eq!((queue.dispatch(NOW), queue.dispatch(NOW)), (Some(barrier), None));
    assert_eq!(complete(&mut queue, barrier), [700]);
    assert_eq!(queue.dispatch(NOW), Some(after));
    complete(&mut queue, after);

    submit(&mut queue, &bio(Op::Write, Flags::PREFLUSH, 800, task));
    let after = submit(&mut queue, &read(200, task));
    let flush = queue.dispatch(NOW).unwrap();
    let mut failed = Vec::new();
    queue.complete(NOW, flush, Err(iosched::IoError(5)), |bio, result| failed.push((bio.cookie, result)));
    assert_eq!(failed, [(800, Err(iosched::IoError(5)))]);
    assert_eq!(queue.dispatch(NOW), Some(after));
}

#[test]
fn a_failed_flush_fails_the_write_that_waited_for_it() {
    let mut queue = queue("noop", &QueueConfig::default());
    let task = process(&mut queue);
    submit(&mut queue, &bio(Op::Write, Flags::PREFLUSH, 64, task));
    let flush = queue.dispatch(NOW).unwrap();
    let mut failed = Vec::new();
    queue.complete(NOW, flush, Err(iosched::IoError(5)), |bio, result| failed.push((bio.cookie, result)));
    assert_eq!(failed, [(64, Err(iosched::IoError(5)))]);
    assert_eq!(queue.dispatch(NOW), None);
    queue.check();
}

/// Returns the names of all elevators, with the present one in brackets.
fn shown(present: &str) -> String {
    let names = iosched::Registry::linux().names().into_iter();
    names.map(|name| if name == present { format!("[{name}]") } else { name.to_owned() }).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_switch_drains_the_old_elevator_and_holds_new_bios() {
    let mut queue = queue("cfq", &QueueConfig::default());
    let [a, b] = [process(&mut queue), process(&mut queue)];
    for sector in [5000, 100] {
        submit(&mut queue, &read(sector, a));
        submit(&mut queue, &read(sector + 50_000, b));
    }
    assert_eq!(queue.attribute("scheduler").unwrap(), shown("cfq"));
    queue.switch(NOW, iosched::Registry::linux().get("deadline").unwrap());
    assert!(queue.is_switching());
    assert_eq!(queue.attribute("scheduler").unwrap(), shown("deadline"));
    submit(&mut queue, &read(1, a));
    let old: Vec<_> = std::iter::from_fn(|| queue.dispatch(NOW)).collect();
    assert_eq!(old.len(), 4, "all requests of the old elevator and none of the new one");
    for id in old {
        assert!(queue.is_switching());
        complete(&mut queue, id);
    }
    assert!(!queue.is_switching());
    assert_eq!(dispatched(&mut queue), [(Op::Read, 1, 8)]);
    assert!(queue.tunable("fifo_batch").is_ok(), "the new elevator has its tunables");
}

#[test]
fn nr_requests_written_during_a_switch_stays_in_effect() {
    let mut queue = queue("deadline", &QueueConfig::default());
    let task = process(&mut queue);
    submit(&mut queue, &read(100, task));
    queue.switch(NOW, iosched::Registry::linux().get("noop").unwrap());
    assert!(queue.is_switching());
    queue.set_attribute(NOW, "nr_requests", "64").unwrap();
    let id = queue.dispatch(NOW).unwrap();
    complete(&mut queue, id);
    assert!(!queue.is_switching());
    assert_eq!(queue.attribute("nr_requests").unwrap(), "64");
}

#[test]
fn errors_for_unknown_elevators_list_known_ones() {
    let error = iosched::Registry::linux().get("fastest").unwrap_err();
    let names = iosched::Registry::linux().names().join(", ");
    assert_eq!(error.to_string(), format!("there is no scheduler \"fastest\"; available: {names}"));
}

#[test]
fn invalid_tunable_values_are_refused_and_change_nothing() {
    let mut queue = queue("cfq", &QueueConfig::default());
    let refusal = |queue: &mut RequestQueue, name: &str, value: &str| {
        queue.set_tunable(NOW, name, value).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(&mut queue, "quantum", "0"),
        "quantum: 0 is out of range; it must be from 1 to 4294967295 requests"
    );
    assert_eq!(
        refusal(&mut queue, "slice_idle", "8ms"),
        "slice_idle: \"8ms\" is not a whole number; it must be from 0 to 4294967295 ms"
    );
    assert!(
        refusal(&mut queue, "max_depth", "64").starts_with("max_depth: cfq has no such tunable; available: quantum, ")
    );
    assert_eq!(queue.tunable("quantum"), Ok(8));
    queue.set_tunable(NOW, "slice_idle_us", "7500\n").unwrap();
    assert_eq!((queue.tunable("slice_idle"), queue.tunable("slice_idle_us")), (Ok(7), Ok(7500)));
}

#[test]
fn attributes_stay_within_device_limits() {
    let mut queue = queue("noop", &QueueConfig { max_hw_sectors_kb: 256, ..QueueConfig::default() });
    assert_eq!(queue.attribute("max_sectors_kb").unwrap(), "256");
    let error = queue.set_attribute(NOW, "max_sectors_kb", "512").unwrap_err();
    assert_eq!(error.to_string(), "max_sectors_kb: 512 is out of range; it must be from 4 to 256 KiB");
    assert!(matches!(queue.set_attribute(NOW, "rotational", "0"), Err(TunableError::ReadOnly { .. })));
    assert_eq!(queue.attribute("rotational").unwrap(), "1");
}

#[test]
fn cfq_defaults_depend_on_the_device_and_groups() {
    let tunable = |config: &QueueConfig, name: &str| queue("cfq", config).tunable(name).unwrap();
    let disk = QueueConfig::default();
    assert_eq!(tunable(&disk, "slice_idle"), 8);
    assert_eq!(tunable(&disk, "group_idle"), 0);
    assert_eq!(tunable(&QueueConfig { rotational: false, ..disk.clone() }, "slice_idle"), 0);
    assert_eq!(tunable(&QueueConfig { groups: true, ..disk }, "group_idle"), 8);
}

#[test]
fn stat_counts_like_sys_block_stat() {
    let mut queue = queue("noop", &QueueConfig::default());
    let task = process(&mut queue);
    let id = submit(&mut queue, &read(0, task));
    queue.dispatch(NOW);
    let later = NOW + 3 * MILLISECOND_NS;
    queue.submit(later, &bio(Op::Write, Flags::empty(), 100, task));
    queue.complete(later, id, Ok(()), |_, _| {});
    let stat = *queue.stat(later + MILLISECOND_NS);
    assert_eq!((stat.reads.ios, stat.reads.sectors, stat.reads.time_ns), (1, 8, 3 * MILLISECOND_NS));
    assert_eq!((stat.in_flight, stat.busy_ns, stat.weighted_ns), (1, 4 * MILLISECOND_NS, 4 * MILLISECOND_NS));
    let columns: Vec<u64> = stat.to_string().split_whitespace().map(|c| c.parse().unwrap()).collect();
    assert_eq!(columns, [1, 0, 8, 3, 0, 0, 0, 0, 1, 4, 4, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn memory_depends_on_queued_requests_not_on_past_ones() {
    let mut queue = queue("cfq", &QueueConfig::default());
    for round in 0..1000 {
        let task = process(&mut queue);
        assert_eq!(task.index(), 0, "ids of exited processes are reused");
        submit(&mut queue, &read(round * 64, task));
        queue.submit(NOW, &read(round * 64 + 8, task));
        queue.exit(NOW, task);
        let id = queue.dispatch(NOW).unwrap();
        assert_eq!(complete(&mut queue, id).len(), 2);
    }
    assert_eq!(queue.env().requests.capacity(), 1);
}
