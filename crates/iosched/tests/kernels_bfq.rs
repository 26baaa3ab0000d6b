//! Rules of bfq that differ between versions of Linux: each test holds under one version and not
//! under its neighbour.

use iosched::{BfqEvent, CgroupId, ContextId, Decision, IoClass, IoPriority, Op, QueueConfig, RequestQueue, Time};

use crate::kernels::{MS, NOW, bio, cgroup, config, process, process_in, queue_of, serve};

/// Distance of two processes on the disk, sectors.
const APART: u64 = 1 << 29;

/// Returns a queue with recorded decisions.
fn recorded(kernel: &str, rotational: bool) -> RequestQueue {
    let mut queue = queue_of("bfq", &QueueConfig { rotational, ..config(kernel) });
    queue.record_decisions(true);
    queue
}

/// Submits and completes a read. Returns the time of the completion.
fn read(queue: &mut RequestQueue, at: Time, sector: u64, process: ContextId) -> Time {
    queue.timer(at);
    queue.submit(at, &bio(Op::Read, sector, process));
    let mut now = at;
    let id = loop {
        if let Some(id) = queue.dispatch(now) {
            break id;
        }
        now = queue.next_timer().unwrap();
        queue.timer(now);
    };
    now = now + MS;
    queue.complete(now, id, Ok(()), |_, _| {});
    now
}

fn count(queue: &mut RequestQueue, wanted: impl Fn(&BfqEvent) -> bool) -> usize {
    let decisions = queue.take_decisions();
    decisions.filter(|(_, decision)| matches!(decision, Decision::Bfq(event) if wanted(event))).count()
}

#[test]
fn bfq_idles_for_fairness_in_a_single_cgroup_up_to_6_1() {
    for (kernel, waits) in [("5.10", true), ("6.1", true), ("6.2", false), ("6.12", false)] {
        for in_root in [false, true] {
            let mut queue = queue_of("bfq", &QueueConfig { groups: true, rotational: false, ..config(kernel) });
            queue.set_tunable(NOW, "low_latency", "0").unwrap();
            let cgroup = if in_root { CgroupId::ROOT } else { cgroup(&mut queue, "only") };
            let [first, second] = [(); 2].map(|()| process_in(&mut queue, IoClass::BestEffort, cgroup));
            // The second process is so much older that bfq does not merge the two as created
            // together.
            queue.submit(NOW, &bio(Op::Read, 1 << 29, second));
            assert_eq!(serve(&mut queue), Some(1 << 29));
            let now = NOW + 2000 * MS;
            queue.timer(now);
            queue.submit(now, &bio(Op::Read, 0, first));
            let id = queue.dispatch(now).unwrap();
            assert_eq!(queue.request(id).sector(), 0);
            queue.submit(now, &bio(Op::Read, 1 << 30, second));
            queue.complete(now, id, Ok(()), |_, _| {});
            assert_eq!(queue.dispatch(now).is_none(), waits && !in_root, "{kernel}, in the root: {in_root}");
        }
    }
}

#[test]
fn bfq_limits_the_tags_of_a_cgroup_from_5_17() {
    let counts = ["5.16", "5.17"].map(|kernel| {
        let mut queue = queue_of("bfq", &QueueConfig { groups: true, ..config(kernel) });
        let [greedy, other] = ["greedy", "other"].map(|name| {
            let cgroup = cgroup(&mut queue, name);
            process_in(&mut queue, IoClass::BestEffort, cgroup)
        });
        queue.submit(NOW, &bio(Op::Write, 1 << 30, other));
        (0..100).take_while(|number| queue.submit(NOW, &bio(Op::Write, number * 1000, greedy)).accepted()).count()
    });
    assert!(counts[1] < counts[0], "{counts:?}");
}

/// Lets several processes begin at the times `begin_ms`. The last process reads again `at_ms` after
/// the first process has begun. Returns whether it then moves to the queue of another process.
fn are_merged(kernel: &str, begin_ms: &[u64], at_ms: u64) -> bool {
    let mut queue = recorded(kernel, true);
    let processes: Vec<_> = begin_ms.iter().map(|_| process(&mut queue)).collect();
    for (number, (&process, &ms)) in processes.iter().zip(begin_ms).enumerate() {
        read(&mut queue, NOW + ms * MS, number as u64 * APART, process);
    }
    // Scattered reads, so that idling for the process does not make the disk faster.
    let (last, begin) = (processes[processes.len() - 1], NOW + begin_ms[begin_ms.len() - 1] * MS);
    (1..40).fold(begin + 2 * MS, |now, number| read(&mut queue, now, (10 + number % 5) * APART, last));
    read(&mut queue, NOW + at_ms * MS, 20 * APART, last);
    count(&mut queue, |event| matches!(event, BfqEvent::Merge { .. })) > 0
}

#[test]
fn processes_that_began_together_share_a_queue_from_5_13() {
    for (kernel, after_ms) in [("5.12", None), ("5.13", Some(400)), ("5.14", Some(900)), ("6.12", Some(900))] {
        for at_ms in [250, 400, 900, 5000] {
            let is_merged = after_ms.is_some_and(|after_ms| at_ms >= after_ms);
            assert_eq!(are_merged(kernel, &[0, 100], at_ms), is_merged, "{kernel}, after {at_ms} ms");
        }
    }
    // In 5.13, the third process meets the second process. In later versions, it meets the first
    // process, which is too old.
    assert!(are_merged("5.13", &[0, 300, 350], 5000));
    assert!(!are_merged("5.14", &[0, 300, 350], 5000));
}

/// Returns the number of reads after which bfq finds the waker of a process. The process reads
/// three times, in intervals of `period_ms`, and each time `gap_us` after a completion of the
/// waker.
fn waker_after(kernel: &str, gap_us: u64, period_ms: u64) -> Option<u64> {
    let mut queue = recorded(kernel, true);
    queue.set_tunable(NOW, "low_latency", "0").unwrap();
    let [waker, woken] = [(); 2].map(|()| process(&mut queue));
    read(&mut queue, NOW, 0, waker);
    // The second process begins so late that bfq does not merge the two. Its think time is long.
    for number in 0..10 {
        read(&mut queue, NOW + (5000 + number * 100) * MS, (10 + number) * APART, woken);
    }
    queue.take_decisions();
    (1..=3).find(|&number| {
        let begin = NOW + (10_000 + number * period_ms) * MS;
        let completion = read(&mut queue, begin, number * 100_000, waker);
        read(&mut queue, completion + gap_us * 1000, (20 + number) * APART, woken);
        count(&mut queue, |event| matches!(event, BfqEvent::Waker { .. })) > 0
    })
}

#[test]
fn bfq_finds_a_waker_at_once_until_5_11_then_after_3_reads() {
    for (kernel, expected) in [("5.11", [Some(1), None]), ("5.12", [Some(3), Some(3)]), ("6.12", [Some(3), Some(3)])] {
        assert_eq!([100, 1000].map(|gap_us| waker_after(kernel, gap_us, 100)), expected, "{kernel}");
    }
    for (kernel, expected) in [("5.16", Some(3)), ("5.17", None), ("6.12", None)] {
        assert_eq!(waker_after(kernel, 100, 1000), expected, "{kernel}: 2 s is too long from 5.17 on");
    }
}

#[test]
fn bfq_idles_for_a_lone_queue_from_5_12() {
    for (kernel, waits) in [("5.11", false), ("5.12", true), ("6.12", true)] {
        let mut queue = recorded(kernel, false);
        queue.set_tunable(NOW, "low_latency", "0").unwrap();
        let alone = process(&mut queue);
        // Scattered reads: idling for them does not make the disk faster.
        let now = (0..40).fold(NOW, |now, number| read(&mut queue, now + 50 * MS, number % 7 * APART, alone));
        queue.timer(now + 50 * MS);
        queue.take_decisions();
        let now = read(&mut queue, now + 50 * MS, 9 * APART, alone);
        assert!(queue.dispatch(now).is_none());
        let expired = count(&mut queue, |event| matches!(event, BfqEvent::Expire { .. }));
        assert_eq!(expired == 0, waits, "{kernel}");
    }
}

#[test]
fn bfq_raises_queues_of_each_weight_up_to_5_11() {
    for (kernel, raises_all) in [("5.11", true), ("5.12", false), ("6.12", false)] {
        for (level, is_raised) in [(4, true), (0, raises_all)] {
            let mut queue = recorded(kernel, false);
            let process = queue.create_context(1, IoPriority::new(IoClass::BestEffort, level), CgroupId::ROOT);
            read(&mut queue, NOW, 0, process);
            let raised = count(&mut queue, |event| matches!(event, BfqEvent::State { state, .. } if state.raise > 1));
            assert_eq!(raised > 0, is_raised, "{kernel}, level {level}");
        }
    }
}

/// Returns whether bfq serves the woken process during the turn of its waker.
fn serves_woken(kernel: &str) -> bool {
    let mut queue = recorded(kernel, true);
    queue.set_tunable(NOW, "low_latency", "0").unwrap();
    // The device takes one request at a time, so bfq idles and injects nothing else.
    for loader in [(); 2].map(|()| process(&mut queue)) {
        (0..24).for_each(|number| _ = queue.submit(NOW, &bio(Op::Read, number * 1_000_000, loader)));
    }
    let mut now = NOW;
    for _ in 0..48 {
        while !serve_at(&mut queue, now) {
            now = queue.next_timer().unwrap();
            queue.timer(now);
        }
    }
    let [waker, woken] = [(); 2].map(|()| process(&mut queue));
    let begin = now + 10_000 * MS;
    read(&mut queue, begin, 0, waker);
    for number in 0..10 {
        read(&mut queue, begin + (5000 + number * 100) * MS, (10 + number) * APART, woken);
    }
    for number in 1..=4 {
        let begin = begin + (10_000 + number * 100) * MS;
        let completion = read(&mut queue, begin, number * 100_000, waker);
        now = read(&mut queue, completion + MS / 10, (20 + number) * APART, woken);
    }
    now = read(&mut queue, now + 100 * MS, 500_000, waker);
    // bfq idles for the waker, and the woken process reads again.
    queue.submit(now, &bio(Op::Read, 30 * APART, woken));
    queue.dispatch(now).is_some()
}

/// Dispatches and completes a request. Returns whether there was one.
fn serve_at(queue: &mut RequestQueue, now: Time) -> bool {
    let id = queue.dispatch(now);
    id.into_iter().for_each(|id| queue.complete(now, id, Ok(()), |_, _| {}));
    id.is_some()
}

#[test]
fn bfq_serves_woken_queues_in_the_turn_of_their_waker_from_5_13() {
    assert_eq!(["5.12", "5.13", "6.12"].map(serves_woken), [false, true, true]);
}
