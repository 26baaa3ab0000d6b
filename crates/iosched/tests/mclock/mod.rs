//! mclock: reservations, weights and limits, on one server and on several.

mod pool;

use iosched::{
    Bio, Cgroup, CgroupId, Flags, IoPriority, Op, Phase, QueueConfig, Registry, RequestQueue, SECOND_NS, Setting, Time,
};
use pool::{Devices, Load, Pool, is_near, one_server};

const NOW: Time = Time::BEGINNING;

fn assert_near(had: &[f64], expected: &[f64], percent: f64) {
    let near = had.iter().zip(expected).all(|(&had, &expected)| is_near(had, expected, percent));
    assert!(near, "{had:.0?} IOPS, expected {expected:?} within {percent} %");
}

#[test]
fn a_reservation_is_met_beside_groups_of_higher_weight() {
    for (iops, reserved) in [(1_000, 400.0), (10_000, 4_000.0), (50_000, 20_000.0)] {
        let rates = match iops {
            1_000 => "reservation=400 weight=1",
            10_000 => "reservation=4000 weight=1",
            _ => "reservation=20000 weight=1",
        };
        let loads = [Load::new(rates, 32), Load::new("weight=1000", 32), Load::new("weight=1000", 64)];
        let (_, had) = one_server(iops, &loads, 11);
        assert_near(&had[..1], &[reserved], 3.0);
        assert_near(&[had.iter().sum()], &[iops as f64], 1.0);
    }
}

#[test]
fn several_reservations_are_met_up_to_99_percent_of_a_device() {
    let loads = [
        Load::new("reservation=5000 weight=1", 32),
        Load::new("reservation=3000 weight=1", 16),
        Load::new("reservation=1900 weight=1", 8),
        Load::new("weight=1000", 64),
    ];
    let (_, had) = one_server(10_000, &loads, 11);
    assert_near(&had[..3], &[5_000.0, 3_000.0, 1_900.0], 3.0);
}

#[test]
fn spare_capacity_follows_the_weights() {
    let loads = [Load::new("weight=100", 32), Load::new("weight=200", 32), Load::new("weight=500", 32)];
    let (_, had) = one_server(8_000, &loads, 11);
    assert_near(&had, &[1_000.0, 2_000.0, 5_000.0], 1.0);
    // Service by reservation counts for the weight: a reservation below the share changes nothing.
    let loads = [Load::new("weight=100 reservation=900", 32), loads[1].clone(), loads[2].clone()];
    let (_, had) = one_server(8_000, &loads, 11);
    assert_near(&had, &[1_000.0, 2_000.0, 5_000.0], 1.0);
    // A reservation above the share is fulfilled, and the others share the rest.
    let loads = [Load::new("weight=100 reservation=4500", 32), loads[1].clone(), loads[2].clone()];
    let (_, had) = one_server(8_000, &loads, 11);
    assert_near(&had, &[4_500.0, 1_000.0, 2_500.0], 3.0);
}

/// Checks that in every stretch of the run at most `burst` requests beyond `iops` are dispatched.
fn assert_limited(pool: &Pool, client: usize, iops: u64, burst: u64) {
    let times: Vec<u64> = pool.dispatched[client].iter().map(|one| one.at_ns).collect();
    // The largest excess over all stretches. The excess is the number of requests so far, minus the
    // number that the limit permits.
    let mut lowest = i128::MAX;
    for (number, &at_ns) in times.iter().enumerate() {
        let level = number as i128 * i128::from(SECOND_NS) - i128::from(at_ns) * i128::from(iops);
        lowest = lowest.min(level);
        let excess = (level - lowest) as f64 / SECOND_NS as f64;
        assert!(excess <= burst as f64 + 1e-6, "{excess} requests beyond the limit at {at_ns} ns");
    }
}

#[test]
fn limit_is_reached_and_never_exceeded() {
    let loads = [Load::new("limit=1000 weight=1000", 32), Load::new("weight=10", 32)];
    let (pool, had) = one_server(8_000, &loads, 11);
    assert_near(&had, &[1_000.0, 7_000.0], 1.0);
    assert_limited(&pool, 0, 1_000, 1);
    // The limit also holds for a group that is alone, and after a pause.
    let paused = Load { active_s: (3, 6), ..loads[0].clone() };
    let (pool, _) = one_server(8_000, &[Load { active_s: (0, 2), ..loads[0].clone() }, paused], 8);
    assert_near(&pool.iops(4, 6), &[0.0, 1_000.0], 1.0);
    assert_limited(&pool, 1, 1_000, 1);
}

#[test]
fn group_does_not_exceed_its_limit_after_waiting() {
    // For 5 s the device is too slow for the limit, then the other groups leave.
    let heavy = Load { active_s: (0, 5), ..Load::new("reservation=950 weight=1000", 32) };
    let loads = [Load::new("limit=500 weight=1", 32), heavy];
    let (pool, _) = one_server(1_000, &loads, 10);
    assert!(pool.iops(1, 5)[0] < 60.0);
    assert_near(&pool.iops(6, 10)[..1], &[500.0], 1.0);
    assert_limited(&pool, 0, 500, 1);
}

#[test]
fn a_timer_continues_when_every_group_is_at_its_limit() {
    let loads = [
        Load { active_s: (0, 4), ..Load::new("limit=50 reservation=50", 16) },
        Load { active_s: (0, 4), ..Load::new("limit=20", 16) },
    ];
    let (mut pool, _) = one_server(10_000, &loads, 4);
    assert_near(&pool.iops(1, 4), &[50.0, 20.0], 2.0);
    pool.run(10);
    assert_eq!(pool.under_way(), 0, "every accepted request is served");
}

#[test]
fn limits_and_reservations_in_bytes_count_bytes() {
    // 128 KiB requests count as two I/Os, and as 131,072 bytes.
    let long = |rates| Load { sectors: 256, ..Load::new(rates, 32) };
    let (_, had) = one_server(8_000, &[long("limit=1000"), Load::new("", 1)].map(fill), 11);
    assert_near(&had[..1], &[500.0], 1.0);
    let (_, had) = one_server(8_000, &[long("limit=131072kB"), Load::new("limit=4096kB", 32)], 11);
    assert_near(&had, &[1_000.0, 1_000.0], 1.0);
    let (_, had) = one_server(1_000, &[long("reservation=64MiB weight=1"), Load::new("weight=1000", 32)], 11);
    assert_near(&had, &[512.0, 488.0], 3.0);
}

/// Gives a load without rates the default weight.
fn fill(load: Load) -> Load {
    if load.rates.is_empty() { Load { rates: "weight=100", ..load } } else { load }
}

#[test]
fn idle_groups_gain_no_credit() {
    // The second group is idle for 5 s, and then gets its share, and no more.
    let loads = [Load::new("weight=100", 32), Load { active_s: (5, 20), ..Load::new("weight=100", 32) }];
    let (pool, _) = one_server(4_000, &loads, 8);
    assert_near(&pool.iops(5, 6), &[2_000.0, 2_000.0], 2.0);
    let in_a_row = first_in_a_row(&pool, 1);
    assert!(in_a_row <= 4, "the group that was idle got {in_a_row} requests in a row");
    // A reservation gives no credit for the idle time either.
    let loads = [loads[0].clone(), Load { rates: "weight=1 reservation=1000", ..loads[1].clone() }];
    let (pool, _) = one_server(4_000, &loads, 8);
    assert_near(&pool.iops(5, 6)[1..], &[1_000.0], 3.0);
}

/// Returns how many requests of the group were dispatched before the next request of the other
/// group.
fn first_in_a_row(pool: &Pool, client: usize) -> usize {
    let times = |client: usize| pool.dispatched[client].iter().map(|one| one.at_ns);
    let first_ns = times(client).next().unwrap();
    let other_ns = times(1 - client).find(|&at_ns| at_ns > first_ns).unwrap();
    times(client).take_while(|&at_ns| at_ns < other_ns).count()
}

#[test]
fn a_reservation_does_not_reduce_the_share_after_a_pause() {
    // Service by reservation advances the weight tag of the first group by much. After a pause of 3
    // s, the group shares by weight again.
    let loads = [Load { pause_s: (10, 13), ..Load::new("weight=1 reservation=3900", 32) }, Load::new("weight=100", 32)];
    let mut pool = Pool::new(1, Devices::new(4_000), &loads, &[]);
    pool.run(12);
    let (queue, cgroups) = pool.queue(0);
    let (now, first) = (Time::from_ns(12 * SECOND_NS), cgroups[0]);
    queue.set_cgroup_attribute(now, first, "io.mclock", "reservation=0 weight=100").unwrap();
    pool.run(16);
    assert_near(&pool.iops(2, 10)[..1], &[3_900.0], 3.0);
    assert_near(&pool.iops(14, 16), &[2_000.0, 2_000.0], 2.0);
}

#[test]
fn groups_without_reservation_do_not_starve_in_an_overload() {
    let loads = [
        Load::new("reservation=8000 weight=1000", 64),
        Load::new("reservation=4000 weight=1000", 64),
        Load::new("weight=1", 4),
        Load { active_s: (8, 20), ..Load::new("weight=1", 1) },
    ];
    let (pool, had) = one_server(6_000, &loads, 20);
    // Reservations that the device cannot keep are shared in proportion.
    assert_near(&had[..2], &[4_000.0, 2_000.0], 3.0);
    for (client, loads) in loads.iter().enumerate().skip(2) {
        let waits = pool.dispatched[client].iter().map(|one| one.waited_ns).max().unwrap();
        let longest_s = waits as f64 / SECOND_NS as f64;
        assert!(longest_s <= 2.5 * f64::from(loads.depth), "a request of {} waited for {longest_s} s", loads.rates);
        assert!(pool.dispatched[client].len() >= 4, "{} requests", pool.dispatched[client].len());
    }
}

#[test]
fn catch_up_bounds_compensation_for_missed_reservations() {
    // The device stands still for 4 s. Afterwards, one second of the reservation is made up for.
    let loads = [Load::new("reservation=1000 weight=1", 2000), Load::new("weight=1000", 64)];
    let mut pool = Pool::new(1, Devices { stalled_s: (3, 7), ..Devices::new(4_000) }, &loads, &[]);
    pool.run(12);
    let had: f64 = pool.iops(7, 10)[0] * 3.0;
    assert!((3_900.0..4_150.0).contains(&had), "{had} requests in the 3 s after the device continued");
    assert_near(&pool.iops(10, 12)[..1], &[1_000.0], 3.0);
    let mut none = Pool::new(1, Devices { stalled_s: (3, 7), ..Devices::new(4_000) }, &loads, &[("catch_up", "10")]);
    none.run(12);
    assert_near(&none.iops(7, 10)[..1], &[1_000.0], 3.0);
}

#[test]
fn clients_with_queue_depth_1_get_their_reservation() {
    // One request at a time: 400 I/Os per second need an answer in 2.5 ms.
    let loads = [Load::new("reservation=400 weight=1", 1), Load::new("weight=1000", 64)];
    let (_, had) = one_server(4_000, &loads, 11);
    assert_near(&had[..1], &[400.0], 3.0);
}

#[test]
fn reservations_weights_and_limits_hold_across_all_servers() {
    // Each server serves 4,000 IOPS. The first client has more requests at some servers than at
    // others.
    for (servers, reserved) in [(2_usize, 1_500), (4, 3_000), (8, 6_000), (16, 12_000)] {
        let rates = match servers {
            2 => ["reservation=1500 weight=1", "weight=200", "weight=100", "weight=100 limit=500"],
            4 => ["reservation=3000 weight=1", "weight=200", "weight=100", "weight=100 limit=1000"],
            8 => ["reservation=6000 weight=1", "weight=200", "weight=100", "weight=100 limit=2000"],
            _ => ["reservation=12000 weight=1", "weight=200", "weight=100", "weight=100 limit=4000"],
        };
        let depth = 32 * servers as u32;
        let uneven: &[u32] = &[3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2, 1, 2];
        let loads = [
            Load { spread: &uneven[..servers], ..Load::new(rates[0], depth) },
            Load::new(rates[1], 2 * depth),
            Load::new(rates[2], 2 * depth),
            Load::new(rates[3], depth),
        ];
        let mut pool = Pool::new(servers, Devices::new(4_000), &loads, &[]);
        pool.run(6);
        let had = pool.iops(2, 6);
        let (total, reserved) = (4_000.0 * servers as f64, f64::from(reserved));
        let limited = reserved / 3.0;
        let rest = total - reserved - limited;
        println!(
            "{servers} servers: {had:.0?} of {total}; expected {reserved}, {:.0}, {:.0}, {limited:.0}",
            rest * 2.0 / 3.0,
            rest / 3.0
        );
        assert_near(&had, &[reserved, rest * 2.0 / 3.0, rest / 3.0, limited], 3.0);
    }
}

#[test]
fn without_service_reports_each_server_reserves_in_full() {
    let loads = [Load::new("reservation=1500 weight=1", 128), Load::new("weight=1000", 256)];
    let had = [true, false].map(|carries| {
        let mut pool = Pool::new(4, Devices::new(4_000), &loads, &[]);
        pool.carries = carries;
        pool.run(6);
        pool.iops(2, 6)[0]
    });
    assert_near(&had, &[1_500.0, 6_000.0], 3.0);
}

/// Returns a queue with `requests` reads of a group that may do one I/O per second, and the group.
fn queue_at_its_limit(requests: u64) -> (RequestQueue, CgroupId) {
    let config = QueueConfig { depth: 64, groups: true, ..QueueConfig::default() };
    let mut queue = RequestQueue::new(NOW, &config, Registry::linux().get("mclock").unwrap());
    let group = Cgroup { name: "a".into(), parent: None, weight: None, leaf_weight: None };
    let cgroup = queue.create_cgroup(group).unwrap();
    queue.set_cgroup_attribute(NOW, cgroup, "io.mclock", "limit=1").unwrap();
    let context = queue.create_context(1, IoPriority::default(), cgroup);
    for sector in (0..requests).map(|number| number * 1_000) {
        let bio = Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie: sector };
        assert!(queue.submit(NOW, &bio).accepted());
    }
    (queue, cgroup)
}

#[test]
fn requests_of_a_removed_group_go_to_its_parent() {
    let (mut queue, cgroup) = queue_at_its_limit(4);
    let dispatched = |queue: &mut RequestQueue| std::iter::from_fn(|| queue.dispatch(NOW)).count();
    assert_eq!(dispatched(&mut queue), 2, "the limit allows one request and a burst of one");
    assert!(queue.next_timer().is_some());
    queue.check();
    queue.remove_cgroup(NOW, cgroup);
    queue.check();
    assert_eq!(dispatched(&mut queue), 2, "the root has no limit");
    queue.check();
}

#[test]
fn a_raised_limit_applies_at_once_and_drains_ignore_limits() {
    let (mut queue, cgroup) = queue_at_its_limit(6);
    let dispatched = |queue: &mut RequestQueue, now| std::iter::from_fn(|| queue.dispatch(now)).count();
    assert_eq!(dispatched(&mut queue, NOW), 2);
    let later = NOW + 100_000_000;
    queue.set_cgroup_attribute(later, cgroup, "io.mclock", "limit=1000").unwrap();
    assert_eq!(queue.next_timer(), Some(later), "the queue runs again");
    queue.timer(later);
    let soon = NOW + 101_000_000;
    assert_eq!(dispatched(&mut queue, soon), 1);
    queue.drain(soon);
    assert_eq!(dispatched(&mut queue, soon), 3);
    queue.check();
}

#[test]
fn io_mclock_settings_are_accepted_only_under_mclock() {
    let setting: Setting = "mclock:io.mclock=db:reservation=500/weight=2/limit=50MB".parse().unwrap();
    let mut queue = setting.build(Time::ZERO, &QueueConfig::default()).unwrap();
    let group = Cgroup { name: "db".into(), parent: None, weight: None, leaf_weight: None };
    let cgroup = queue.create_cgroup(group).unwrap();
    assert_eq!(queue.cgroup_attribute(cgroup, "io.mclock").unwrap(), "reservation=500 weight=2 limit=50MB");
    let error = queue.set_cgroup_attribute(Time::ZERO, cgroup, "io.mclock", "limit=400").unwrap_err();
    assert!(error.to_string().contains("the reservation is above the limit"), "{error}");
    assert_eq!(queue.cgroup_attribute(CgroupId::ROOT, "io.mclock").unwrap(), "reservation=0 weight=1000 limit=max");
    let other: Setting = "none:io.mclock=db:weight=2".parse().unwrap();
    let error = other.build(Time::ZERO, &QueueConfig::default()).err().unwrap().to_string();
    assert!(error.contains("only mclock has this file, and mclock is not the current scheduler"), "{error}");
    assert!("mclock:io.mclock=db:reservation=2/limit=1".parse::<Setting>().is_err());
}

#[test]
fn decisions_name_the_phase() {
    let loads = [Load::new("reservation=1000 weight=1", 32), Load::new("weight=1000", 32)];
    let (pool, _) = one_server(4_000, &loads, 3);
    let by_reservation = |client: usize| {
        let all = &pool.dispatched[client];
        all.iter().filter(|one| one.phase == Phase::Reservation).count() as f64 / all.len() as f64
    };
    assert!(by_reservation(0) > 0.95, "{}", by_reservation(0));
    assert!(by_reservation(1) < 0.01, "share by reservation of a group without a reservation: {}", by_reservation(1));
}
