//! Rules of io.max that differ between versions of Linux: each test holds under one version and not
//! under its neighbour.

use iosched::{Bio, CgroupId, ContextId, Flags, IoClass, Issued, Op, Part, QueueConfig, RequestQueue, Submit};

use crate::kernels::{MS, NOW, bio, cgroup, config, process_in, queue_of};

/// Returns a queue with a cgroup that io.max limits, and a process in that cgroup.
fn limited(kernel: &str, rotational: bool, limits: &str) -> (RequestQueue, ContextId, CgroupId) {
    let mut queue = queue_of("none", &QueueConfig { rotational, depth: 256, ..config(kernel) });
    let cgroup = cgroup(&mut queue, "limited");
    let context = process_in(&mut queue, IoClass::BestEffort, cgroup);
    queue.set_cgroup_attribute(NOW, cgroup, "io.max", limits).unwrap();
    (queue, context, cgroup)
}

#[test]
fn slices_of_io_max_were_short_on_ssds_from_6_10_to_6_18() {
    for (kernel, passed) in [("6.9", 24), ("6.10", 4), ("6.12.0", 4), ("6.12.62", 4), ("6.12.63", 24), ("6.18", 4)] {
        for (rotational, expected) in [(false, passed), (true, 24)] {
            let (mut queue, context, _) = limited(kernel, rotational, "wbps=1000000");
            let writes = (0..100).map(|number| queue.submit(NOW, &bio(Op::Write, number * 1000, context)));
            let count = writes.take_while(|submit| *submit != Submit::Held).count();
            assert_eq!(count, expected, "{kernel}, rotational: {rotational}");
        }
    }
    let (mut queue, context, _) = limited("6.19", false, "wbps=1000000");
    let writes = (0..100).map(|number| queue.submit(NOW, &bio(Op::Write, number * 1000, context)));
    assert_eq!(writes.take_while(|submit| *submit != Submit::Held).count(), 24, "6.19");
}

#[test]
fn io_max_counts_each_part_of_a_long_read_from_5_15() {
    for (kernel, is_held) in [("5.4", false), ("5.14", false), ("5.18", true), ("6.12", true)] {
        let (mut queue, context, _) = limited(kernel, true, "riops=10");
        let mut part = |sector, part| {
            let read = Bio { nr_sectors: 512, ..bio(Op::Read, sector, context) };
            queue.submit_issued(NOW, &read, &Issued { part, ..Issued::default() })
        };
        assert!(matches!(part(0, Part::First { of_sectors: 1024 }), Submit::Queued(_)));
        assert_eq!(part(512, Part::Rest) == Submit::Held, is_held, "{kernel}");
    }
}

#[test]
fn held_bios_continue_when_their_cgroup_is_removed_from_6_13() {
    for (kernel, least, most) in [("6.12", 3_000, 5_000), ("6.13", 0, 20), ("7.0", 0, 20)] {
        let (mut queue, context, cgroup) = limited(kernel, true, "wbps=1000");
        assert_eq!(queue.submit(NOW, &bio(Op::Write, 0, context)), Submit::Held);
        queue.move_context(NOW, context, CgroupId::ROOT);
        queue.remove_cgroup(NOW, cgroup);
        let ms = released_ms(&mut queue);
        assert!((least..=most).contains(&ms), "{kernel}: {ms} ms");
    }
}

#[test]
fn io_max_refuses_a_limit_of_1_from_5_10_to_6_12() {
    for (kernel, is_refused) in [("5.9", false), ("5.10", true), ("6.12", true), ("6.13", false)] {
        let (mut queue, _, cgroup) = limited(kernel, true, "wbps=1000");
        assert_eq!(queue.set_cgroup_attribute(NOW, cgroup, "io.max", "riops=1").is_err(), is_refused, "{kernel}");
    }
}

#[test]
fn metadata_passes_io_max_at_once_from_6_12() {
    for (kernel, is_held) in [("6.11", true), ("6.12.0", false), ("6.12", false)] {
        let (mut queue, context, _) = limited(kernel, true, "wbps=1000");
        let write = |sector, flags| Bio { flags, ..bio(Op::Write, sector, context) };
        assert_eq!(queue.submit(NOW, &write(0, Flags::empty())), Submit::Held);
        assert_eq!(queue.submit(NOW, &write(1000, Flags::PRIO)) == Submit::Held, is_held, "{kernel}");
    }
}

/// Returns when a held bio continues, in ms from the beginning.
fn released_ms(queue: &mut RequestQueue) -> u64 {
    loop {
        let at = queue.next_timer().unwrap();
        queue.timer(at);
        if queue.dispatch(at).is_some() {
            return at.since(NOW) / MS;
        }
    }
}

#[test]
fn a_change_of_io_max_counts_earlier_waiting_from_6_1() {
    for (kernel, seconds) in [("6.0", 10), ("6.1", 6), ("6.12", 6)] {
        let (mut queue, context, cgroup) = limited(kernel, true, "wbps=2048");
        assert_eq!(queue.submit(NOW, &Bio { nr_sectors: 16, ..bio(Op::Write, 0, context) }), Submit::Held);
        queue.set_cgroup_attribute(NOW + 2000 * MS, cgroup, "io.max", "wbps=1024").unwrap();
        let released = released_ms(&mut queue);
        assert_eq!((released + 500) / 1000, seconds, "{kernel}: {released} ms");
    }
}

#[test]
fn io_max_enforces_low_iops_limits_from_6_11() {
    for (kernel, gap_ms) in [("6.9", 100), ("6.11", 200)] {
        let (mut queue, context, _) = limited(kernel, true, "wiops=5");
        let submitted = [0, 1000].map(|sector| queue.submit(NOW, &bio(Op::Write, sector, context)));
        assert!(submitted.contains(&Submit::Held), "{kernel}");
        while queue.dispatch(NOW).is_some() {}
        let released = released_ms(&mut queue);
        assert_eq!(released / 100 * 100, gap_ms, "{kernel}: {released} ms");
    }
}

/// Lets two processes submit one long write each, at the same time, in parts of 4 KiB. Returns when
/// each write is complete, ms.
fn completed_ms(queue: &mut RequestQueue, processes: [ContextId; 2], of_sectors: u32) -> [u64; 2] {
    const APART: u64 = 1_000_000;
    let part = |write: usize, offset: u64, part| {
        let bio = bio(Op::Write, write as u64 * APART + offset, processes[write]);
        (bio, Issued { part, ..Issued::default() })
    };
    for write in [0, 1] {
        let (first, issued) = part(write, 0, Part::First { of_sectors });
        assert_eq!(queue.submit_issued(NOW, &first, &issued), Submit::Held);
    }
    let (mut left, mut completed) = ([of_sectors; 2], [0; 2]);
    while left != [0; 2] {
        let at = queue.next_timer().unwrap();
        queue.timer(at);
        while let Some(id) = queue.dispatch(at) {
            let (sector, nr_sectors) = (queue.request(id).sector(), queue.request(id).nr_sectors());
            queue.complete(at, id, Ok(()), |_, _| {});
            let write = (sector / APART) as usize;
            left[write] -= nr_sectors;
            completed[write] = at.since(NOW) / MS;
            // The other parts follow the first one.
            if sector % APART == 0 {
                for offset in (8..u64::from(of_sectors)).step_by(8) {
                    let (rest, issued) = part(write, offset, Part::Rest);
                    assert_ne!(queue.submit_issued(at, &rest, &issued), Submit::Full);
                }
            }
        }
    }
    completed
}

#[test]
fn io_max_has_separate_byte_and_bio_queues_from_6_16() {
    for (kernel, seconds) in [("6.12", [2, 2]), ("6.15", [2, 2]), ("6.16", [1, 2]), ("7.0", [1, 2])] {
        let (mut queue, context, cgroup) = limited(kernel, true, "wbps=1048576 wiops=100000");
        let other = process_in(&mut queue, IoClass::BestEffort, cgroup);
        let completed = completed_ms(&mut queue, [context, other], 2048);
        assert_eq!(completed.map(|ms| (ms + 200) / 1000), seconds, "{kernel}: {completed:?} ms");
    }
}

#[test]
fn io_max_did_not_limit_a_second_write_from_5_18_to_6_0_2() {
    let cases = [("5.17", [10, 20]), ("5.18", [10, 10]), ("5.19", [10, 10]), ("6.0.2", [10, 10])];
    for (kernel, seconds) in cases.into_iter().chain([("6.0.3", [10, 20]), ("6.1.0", [10, 20])]) {
        let (mut queue, context, _) = limited(kernel, true, "wbps=1024");
        for sector in [0, 1000] {
            let write = Bio { nr_sectors: 20, ..bio(Op::Write, sector, context) };
            assert_eq!(queue.submit(NOW, &write), Submit::Held, "{kernel}");
        }
        let mut released = Vec::new();
        while released.len() < 2 {
            let at = queue.next_timer().unwrap();
            queue.timer(at);
            while let Some(id) = queue.dispatch(at) {
                queue.complete(at, id, Ok(()), |_, _| {});
                released.push((at.since(NOW) / MS + 500) / 1000);
            }
        }
        assert_eq!(released, seconds, "{kernel}");
    }
}
