//! Behaviour of servers behind one queue, one property per test.

use crate::common::{Outcome, closed_loop};
use iosched::{Op, Time};
use iosched_disk::server::{ServerBatch, ServerMissedTurns, ServerSettling, ServerStalls, ServerTimes};
use iosched_disk::{Command, Device, FixedConfig, Model, Profile, ServerConfig};
use iosched_disk::{CreditsConfig, CreditsOf, CreditsUnit, QuantilePoint};

const FULL_NS: u64 = 100_000;

fn times() -> ServerTimes {
    ServerTimes { transit_ns: 0, service_ns: FULL_NS, bytes_per_second: None, extra_in_service: 0.0, extra: Vec::new() }
}

fn config() -> ServerConfig {
    ServerConfig {
        capacity_sectors: 1 << 21,
        depth: 64,
        hw_queues: 1,
        command_slots: None,
        max_hw_sectors_kb: 1280,
        rotational: false,
        write_cache: false,
        fua: false,
        servers: 1,
        choice: 1,
        missed_turns: None,
        batch: None,
        piece_sectors: None,
        link_bytes_per_second: None,
        flush_ns: FULL_NS,
        read: times(),
        write: None,
        random_read: None,
        random_write: None,
        stalls: None,
        settling: None,
        write_servers: None,
        rest: None,
        credits: Vec::new(),
    }
}

fn profile(config: ServerConfig) -> Profile {
    Profile::of("mine", "a test's", Model::Server(Box::new(config)), Vec::new()).unwrap()
}

/// Returns the latencies of `count` reads of `nr_sectors`, `depth` at a time, in the order of
/// completion, and the time of the last completion, ns.
fn read(profile: &Profile, depth: u32, nr_sectors: u32, count: usize) -> (Vec<u64>, u64) {
    let command = Command { tag: 0, op: Op::Read, sector: 0, nr_sectors, fua: false };
    let mut left = count;
    let outcomes = closed_loop(&mut profile.device(7), depth, || {
        left = left.checked_sub(1)?;
        Some((0, command))
    });
    let end_ns = outcomes.last().map_or(0, |last| last.done_ns);
    (outcomes.iter().map(Outcome::latency_ns).collect(), end_ns)
}

fn points<const N: usize>(points: [(f64, u64); N]) -> Vec<QuantilePoint> {
    points.map(QuantilePoint::from).to_vec()
}

#[test]
fn server_without_spread_equals_the_fixed_device() {
    for servers in [1, 3] {
        let fixed = FixedConfig {
            depth: 64,
            parallel: servers,
            lat_ns: FULL_NS,
            ns_per_sector: 0,
            write_lat_ns: None,
            steps: Vec::new(),
            capacity_sectors: 1 << 21,
            max_hw_sectors_kb: 1280,
        };
        let fixed = Profile::of("fixed", "", Model::Fixed(fixed), Vec::new()).unwrap();
        let server = profile(ServerConfig { servers, ..config() });
        for depth in [1, 2, 5, 64] {
            assert_eq!(read(&server, depth, 8, 500), read(&fixed, depth, 8, 500), "{servers} {depth}");
        }
    }
}

#[test]
fn transit_times_overlap_and_service_times_do_not() {
    let read_times = ServerTimes { transit_ns: 300_000, ..times() };
    let server = profile(ServerConfig { read: read_times, ..config() });
    assert_eq!(read(&server, 1, 8, 1).1, 400_000);
    let (_, end_ns) = read(&server, 16, 8, 1000);
    assert_eq!(end_ns, 1000 * FULL_NS + 300_000);
}

#[test]
fn random_order_changes_latencies_but_not_the_rate() {
    let in_order = read(&profile(config()), 8, 8, 4000);
    let by_chance = read(&profile(ServerConfig { choice: 64, ..config() }), 8, 8, 4000);
    assert_eq!(in_order.1, by_chance.1);
    let p99_ns = |mut latencies: Vec<u64>| {
        latencies.sort_unstable();
        latencies[latencies.len() * 99 / 100]
    };
    assert_eq!(p99_ns(in_order.0), 8 * FULL_NS);
    // One of seven commands is taken each time, so one in a hundred still waits after 30 turns.
    let by_chance_ns = p99_ns(by_chance.0);
    assert!((25 * FULL_NS..36 * FULL_NS).contains(&by_chance_ns), "{by_chance_ns}");
}

#[test]
fn a_missed_turn_adds_a_wait_and_keeps_the_rate() {
    let missed = |share, behind| ServerConfig { missed_turns: Some(ServerMissedTurns { share, behind }), ..config() };
    let in_order = read(&profile(config()), 8, 8, 4000);
    assert_eq!(read(&profile(missed(0.0, 16)), 8, 8, 4000), in_order);
    for (behind, again) in [(16, 6), (3, 3)] {
        let (mut latencies, end_ns) = read(&profile(missed(0.1, behind)), 8, 8, 40_000);
        assert_eq!(end_ns, 10 * in_order.1);
        latencies.sort_unstable();
        let turns = |share: f64| latencies[(latencies.len() as f64 * share) as usize] / FULL_NS;
        // One command in ten misses one turn, and one in a hundred misses two turns. Up to seven
        // commands precede a command.
        assert!(turns(0.5) <= 8, "{}", turns(0.5));
        assert!((7 + again..=9 + again).contains(&turns(0.95)), "{behind}: {}", turns(0.95));
        assert!(turns(0.995) >= 7 + 2 * again, "{behind}: {}", turns(0.995));
    }
    // A single command never misses its turn.
    assert!(read(&profile(missed(0.9, 16)), 1, 8, 100).0.iter().all(|&ns| ns == FULL_NS));
}

#[test]
fn drawn_times_have_the_given_distribution() {
    let extra = points([(0.0, 0), (0.5, 10_000), (0.9, 50_000), (1.0, 1_000_000)]);
    let read_times = ServerTimes { extra, ..times() };
    let (mut latencies, _) = read(&profile(ServerConfig { read: read_times, ..config() }), 1, 8, 40_000);
    latencies.sort_unstable();
    for (share, ns) in [(0.25, 5_000), (0.5, 10_000), (0.9, 50_000), (0.95, 525_000)] {
        let found_ns = latencies[(latencies.len() as f64 * share) as usize] - FULL_NS;
        assert!(found_ns.abs_diff(ns) < ns / 20 + 500, "{share}: {found_ns}");
    }
}

#[test]
fn only_extra_time_in_service_delays_other_commands() {
    let mean_extra_ns = 50_000;
    let extra = points([(0.0, 0), (1.0, 2 * mean_extra_ns)]);
    let end_ns = |extra_in_service| {
        let read_times = ServerTimes { extra: extra.clone(), extra_in_service, ..times() };
        read(&profile(ServerConfig { read: read_times, ..config() }), 16, 8, 10_000).1 / 10_000
    };
    assert!(end_ns(0.0).abs_diff(FULL_NS) < 100);
    assert!(end_ns(1.0).abs_diff(FULL_NS + mean_extra_ns) < 2_000, "{}", end_ns(1.0));
}

#[test]
fn commands_of_a_batch_complete_together() {
    let batch = Some(ServerBatch { commands: 64, gather_ns: 20_000 });
    let read_times = ServerTimes { transit_ns: 80_000, ..times() };
    let server = profile(ServerConfig { batch, read: read_times, ..config() });
    // Latency is linear in the depth, from depth 1 on: 100 us for the batch, plus 100 us for each
    // command.
    for depth in [1, 2, 3, 8, 64] {
        let (latencies, end_ns) = read(&server, depth, 8, 640);
        let one_ns = 100_000 + u64::from(depth) * FULL_NS;
        assert!(latencies.iter().take(600).all(|&ns| ns == one_ns), "{depth}: {latencies:?}");
        // The last batch has fewer commands.
        let missing = u64::from(depth) - 1 - 639 % u64::from(depth);
        assert_eq!(end_ns, 640_u64.div_ceil(depth.into()) * one_ns - missing * FULL_NS);
    }
}

#[test]
fn the_size_of_a_batch_is_limited() {
    let batch = Some(ServerBatch { commands: 4, gather_ns: 20_000 });
    let server = |servers| profile(ServerConfig { batch, servers, ..config() });
    let latencies = |servers| read(&server(servers), 10, 8, 10).0;
    let us = |us: [u64; 10]| us.map(|us| us * 1000).to_vec();
    // A free server gathers a batch each time.
    assert_eq!(latencies(1), us([420, 420, 420, 420, 840, 840, 840, 840, 1060, 1060]));
    assert_eq!(latencies(3), us([220, 220, 420, 420, 420, 420, 420, 420, 420, 420]));
}

#[test]
fn late_commands_wait_for_the_next_batch() {
    let batch = Some(ServerBatch { commands: 64, gather_ns: 20_000 });
    let mut device = profile(ServerConfig { batch, ..config() }).device(7);
    let mut done = Vec::new();
    let mut submitted = [(0, 0), (1, 19_999), (2, 20_001), (3, 100_000)].into_iter().peekable();
    loop {
        let next = device.next_event();
        if let Some(&(tag, at_ns)) = submitted.peek().filter(|(_, at_ns)| next.is_none_or(|at| *at_ns < at.as_ns())) {
            device.submit(Time::from_ns(at_ns), Command { tag, op: Op::Read, sector: 0, nr_sectors: 8, fua: false });
            submitted.next();
            continue;
        }
        let Some(at) = next else { break };
        while let Some(tag) = device.advance(at) {
            done.push((tag, at.as_ns()));
        }
    }
    assert_eq!(done, [(0, 220_000), (1, 220_000), (2, 440_000), (3, 440_000)]);
}

#[test]
fn extra_time_of_a_batch_is_that_of_its_first_command() {
    let extra = points([(0.0, 0), (1.0, 100_000)]);
    for extra_in_service in [0.0, 1.0] {
        let read_times = ServerTimes { extra: extra.clone(), extra_in_service, ..times() };
        let batch = Some(ServerBatch { commands: 64, gather_ns: 1 });
        let (_, end_ns) = read(&profile(ServerConfig { batch, read: read_times, ..config() }), 10, 8, 10_000);
        let mean_ns = end_ns / 1000;
        assert!(mean_ns.abs_diff(10 * FULL_NS + 50_000) < 3_000, "{mean_ns}");
    }
}

#[test]
fn a_command_of_several_pieces_takes_several_turns() {
    let whole = config();
    let pieces = ServerConfig { piece_sectors: Some(64), ..config() };
    assert_eq!(read(&profile(whole), 1, 200, 1).1, FULL_NS);
    assert_eq!(read(&profile(pieces.clone()), 1, 200, 1).1, 4 * FULL_NS);
    assert_eq!(read(&profile(ServerConfig { servers: 2, ..pieces }), 1, 200, 1).1, 2 * FULL_NS);
}

#[test]
fn transfer_time_counts_on_the_server_and_on_the_link() {
    let read_times = ServerTimes { bytes_per_second: Some(512_000_000), ..times() };
    let four_servers = ServerConfig { servers: 4, read: read_times, ..config() };
    // 1,000 sectors take a millisecond.
    assert_eq!(read(&profile(four_servers.clone()), 1, 1000, 1).1, FULL_NS + 1_000_000);
    assert_eq!(read(&profile(four_servers), 4, 1000, 4).1, FULL_NS + 1_000_000);
    let shared = ServerConfig { servers: 4, link_bytes_per_second: Some(512_000_000), ..config() };
    assert_eq!(read(&profile(shared), 4, 1000, 4).1, FULL_NS + 4_000_000);
}

#[test]
fn stall_delays_all_commands_in_flight() {
    let length = points([(0.0, 400_000), (1.0, 400_000)]);
    let stalls = Some(ServerStalls { every_ns: 4_000_000, length });
    let server = profile(ServerConfig { stalls, ..config() });
    let (latencies, end_ns) = read(&server, 1, 8, 20_000);
    // The run takes a tenth longer. The number of late commands equals the number of stalls.
    assert!(end_ns.abs_diff(20_000 * (FULL_NS + FULL_NS / 10)) < end_ns / 50, "{end_ns}");
    let late = latencies.iter().filter(|&&ns| ns > FULL_NS).count();
    assert!((450..550).contains(&late), "{late}");
    let (latencies, _) = read(&server, 8, 8, 20_000);
    let late = latencies.iter().filter(|&&ns| ns > 8 * FULL_NS).count();
    assert!((8 * 450..8 * 550).contains(&late), "each stall meets all eight: {late}");
}

#[test]
fn drawn_times_depend_only_on_the_seed() {
    let read_times = ServerTimes { extra: points([(0.0, 0), (1.0, 90_000)]), ..times() };
    let profile = profile(ServerConfig { read: read_times, ..config() });
    let done_ns = |seed| {
        let mut device = profile.device(seed);
        device.submit(Time::ZERO, Command { tag: 0, op: Op::Read, sector: 0, nr_sectors: 8, fua: false });
        device.submit(Time::ZERO, Command { tag: 1, op: Op::Flush, sector: 0, nr_sectors: 0, fua: false });
        let mut now = Time::ZERO;
        while let Some(at) = device.next_event() {
            now = at;
            while device.advance(now).is_some() {}
        }
        now.as_ns()
    };
    assert_eq!(done_ns(1), done_ns(1));
    assert_ne!(done_ns(1), done_ns(2));
}

#[test]
fn errors_name_the_wrong_parameter() {
    for wrong in [
        points([(0.0, 1), (0.5, 2)]),
        points([(0.1, 1), (1.0, 2)]),
        points([(0.0, 3), (1.0, 2)]),
        points([(0.0, 3)]),
        points([(0.0, 1), (f64::NAN, 2), (1.0, 3)]),
    ] {
        let wrong = ServerConfig { read: ServerTimes { extra: wrong, ..times() }, ..config() };
        let error = wrong.validate().unwrap_err().to_string();
        assert!(error.starts_with("server.read.extra"), "{error}");
    }
    let missed_turns = Some(ServerMissedTurns { share: 1.0, behind: 16 });
    let error = ServerConfig { missed_turns, ..config() }.validate().unwrap_err().to_string();
    assert!(error.starts_with("server.missed_turns.share"), "{error}");
    let batch = Some(ServerBatch { commands: 4, gather_ns: 0 });
    let error = ServerConfig { batch, ..config() }.validate().unwrap_err().to_string();
    assert!(error.starts_with("server.batch.gather_ns"), "{error}");
    let stalls = Some(ServerStalls { every_ns: 1_000_000, length: Vec::new() });
    let error = ServerConfig { stalls, ..config() }.validate().unwrap_err().to_string();
    assert!(error.starts_with("server.stalls.length: the list is empty"), "{error}");
}

#[test]
fn written_profile_round_trips() {
    let extra = points([(0.0, 0), (0.5, 10), (1.0, 90_000)]);
    let read_times = ServerTimes { extra, bytes_per_second: Some(1_000_000), extra_in_service: 0.25, ..times() };
    let stalls = Some(ServerStalls { every_ns: 1_000_000, length: points([(0.0, 1), (1.0, 2)]) });
    let batch = Some(ServerBatch { commands: 8, gather_ns: 1 });
    let missed_turns = Some(ServerMissedTurns { share: 0.1, behind: 16 });
    let server =
        ServerConfig { batch, missed_turns, read: read_times.clone(), write: Some(read_times), stalls, ..config() };
    let known = Profile::names().map(|name| Profile::named(name).unwrap());
    for profile in known.chain([profile(server)]) {
        let text = profile.to_toml().unwrap();
        let again = Profile::parse(profile.name(), &text).unwrap();
        assert_eq!(again.model(), profile.model(), "{text}");
        assert_eq!((again.about(), again.anchors()), (profile.about(), profile.anchors()));
    }
}

#[test]
fn saved_credit_is_spent_before_the_rate_applies() {
    let bucket = CreditsConfig { of: CreditsOf::All, unit: CreditsUnit::Ios, per_second: 1_000, saved: 100 };
    let limited = profile(ServerConfig { credits: vec![bucket], ..config() });
    let (latencies, end_ns) = read(&limited, 4, 8, 1_100);
    assert_eq!(latencies[10], 4 * FULL_NS, "as without a limit");
    assert_eq!(latencies[1_000], 4_000_000, "four at a time, a thousand a second");
    assert!((end_ns as f64 / 1e9 - 1.0).abs() < 0.01, "all but those saved up are credited first: {end_ns}");
}

#[test]
fn byte_credits_for_writes_limit_writes_and_not_reads() {
    let bucket = CreditsConfig { of: CreditsOf::Writes, unit: CreditsUnit::Bytes, per_second: 1 << 20, saved: 1 << 20 };
    let cached = profile(ServerConfig { credits: vec![bucket], ..config() });
    assert_eq!(read(&cached, 1, 8, 5_000).1, 5_000 * FULL_NS, "reads cost nothing");
    let write = Command { tag: 0, op: Op::Write, sector: 0, nr_sectors: 8, fua: false };
    let mut left = 768;
    let outcomes = closed_loop(&mut cached.device(7), 1, || {
        left -= 1;
        (left >= 0).then_some((0, write))
    });
    // 3 MiB are written. The device accepts 1 MiB immediately, and empties a part of it during the
    // run.
    let end_ns = outcomes.last().unwrap().done_ns;
    assert!((end_ns as f64 / 1e9 - 2.0).abs() < 0.01, "{end_ns}");
    assert_eq!(outcomes[100].latency_ns(), FULL_NS);
}

#[test]
fn write_servers_limits_the_servers_for_writes() {
    let narrow = profile(ServerConfig { servers: 4, write_servers: Some(1), ..config() });
    assert_eq!(read(&narrow, 4, 8, 400).1, 100 * FULL_NS, "reads use all servers");
    let mut number = 0;
    let outcomes = closed_loop(&mut narrow.device(7), 8, || {
        number += 1;
        let op = if number % 2 == 0 { Op::Write } else { Op::Read };
        (number <= 400).then_some((0, Command { tag: 0, op, sector: 0, nr_sectors: 8, fua: false }))
    });
    // 200 writes run one at a time, and reads overtake them.
    assert_eq!(outcomes.last().unwrap().done_ns, 200 * FULL_NS);
    let batch = ServerBatch { commands: 4, gather_ns: 1 };
    let error = ServerConfig { write_servers: Some(1), batch: Some(batch), ..config() }.validate().unwrap_err();
    assert_eq!(error.field, "server.write_servers");
}

/// Returns the number of reads, of 64 reads at `at_ns`, that take more than 1 ms. If `written` is
/// true, 512 KiB were written at time 0.
fn late_reads(profile: &Profile, written: bool, at_ns: u64) -> usize {
    let mut device = profile.device(3);
    let command = |op, tag: u32, nr_sectors| Command { tag, op, sector: 8 * u64::from(tag), nr_sectors, fua: false };
    if written {
        device.submit(Time::ZERO, command(Op::Write, 0, 1024));
        while let Some(next) = device.next_event() {
            device.advance(next);
        }
    }
    (0..64).for_each(|tag| device.submit(Time::from_ns(at_ns), command(Op::Read, tag, 8)));
    let mut late = 0;
    while let Some(next) = device.next_event() {
        let is_done = device.advance(next).is_some();
        late += usize::from(is_done && next.as_ns() > at_ns + 1_000_000);
    }
    late
}

#[test]
fn reads_wait_for_flash_only_while_written_data_settles() {
    let settling =
        ServerSettling { bytes_per_second: 1 << 20, share: 0.5, longest_ns: 8_000_000, behind_ns: 1_000_000_000 };
    let profile = profile(ServerConfig { servers: 64, settling: Some(settling), ..config() });
    // 512 KiB take half a second to settle. During this time, half of the reads meet an occupied
    // part, and seven of eight of these reads wait for more than a millisecond.
    let late = late_reads(&profile, true, 400_000_000);
    assert!((20..40).contains(&late), "{late}");
    assert_eq!(late_reads(&profile, true, 600_000_000), 0, "all data is settled");
    assert_eq!(late_reads(&profile, false, 400_000_000), 0, "nothing was written");
    let error = ServerConfig { settling: Some(ServerSettling { share: 1.5, ..settling }), ..config() }.validate();
    assert!(error.unwrap_err().to_string().contains("server.settling.share"));
}

#[test]
fn a_command_does_not_wait_for_commands_that_are_not_fetched() {
    // Eight commands wait in one hardware queue; one more arrives in the other queue.
    let latency_ns = |command_slots| {
        let server = profile(ServerConfig { hw_queues: 2, command_slots, ..config() });
        let mut device = server.build(1);
        for tag in 0..9 {
            let command = Command { tag, op: Op::Read, sector: u64::from(tag) * 8, nr_sectors: 8, fua: false };
            device.submit_to(Time::from_ns(0), u16::from(tag == 8), command);
        }
        loop {
            let now = device.next_event().expect("commands are under way");
            if device.advance(now) == Some(8) {
                return now.as_ns();
            }
        }
    };
    assert_eq!(latency_ns(None), 9 * FULL_NS);
    assert_eq!(latency_ns(Some(2)), 4 * FULL_NS, "two fetched commands and one of the other queue's turn come first");
}
