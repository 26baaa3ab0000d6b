//! Shares of the clients of a modelled disk, in simulated time. Each client sends its next
//! operation shortly after it receives an answer.

use std::collections::VecDeque;

use iosched::{IoPriority, Rate, Rates, Time};
use iosched_check::Random;
use iosched_disk::{AnyDevice, Device, Profile};

use crate::backend::modelled::{card, device_command};
use crate::disk::{Action, ClientId, Identity, LiveDisk, Operation, Settings};
use crate::{Pool, Portion, Shares};

const CAPACITY_BYTES: u64 = 4 << 30;
/// Default time from an answer to the client's next operation, ns.
const TURNAROUND_NS: u64 = 30_000;
/// Operations before this time are not counted.
const WARM_UP: Time = Time::from_ns(iosched::SECOND_NS);

/// A client that always has `depth` operations in flight, at random offsets.
#[derive(Clone)]
struct Load {
    /// Group of the client. An empty name is the root.
    group: &'static str,
    action: Action,
    bytes: u32,
    depth: u32,
    ioprio: IoPriority,
}

/// Service that a client got.
#[derive(Clone, Default)]
struct Share {
    bytes: u64,
    latencies_ns: Vec<u64>,
}

impl Share {
    fn p99_ns(&mut self) -> u64 {
        self.latencies_ns.sort_unstable();
        self.latencies_ns[self.latencies_ns.len() * 99 / 100]
    }
}

struct Run {
    now: Time,
    disk: LiveDisk,
    device: AnyDevice,
    random: Random,
    clients: Vec<(ClientId, Load)>,
    shares: Vec<Share>,
    /// Client and submission time of each operation, by cookie.
    sent: Vec<(usize, Time)>,
    next: VecDeque<(Time, usize)>,
    turnaround_ns: u64,
}

impl Run {
    fn new(profile: &str, scheduler: &str, tunables: &[(&str, &str)], depth: Option<u32>, loads: &[Load]) -> Self {
        let profile = Profile::named(profile).unwrap();
        let mut card = card(&profile, Some(CAPACITY_BYTES));
        card.device.depth = depth.unwrap_or(card.device.depth);
        let settings = Settings {
            name: "disk".into(),
            setting: iosched::Setting::defaults(scheduler),
            registry: iosched::Registry::linux(),
            card,
            budget_bytes: 256 << 20,
            recorded: false,
        };
        let mut disk = LiveDisk::new(Time::ZERO, settings, Pool::default()).unwrap();
        for (name, value) in tunables {
            disk.set_tunable(Time::ZERO, name, value).unwrap();
        }
        let mut connect = |load: &Load| {
            let (name, group) = (load.group.to_owned(), Some(load.group.to_owned()).filter(|group| !group.is_empty()));
            let identity = Identity { group, ioprio: load.ioprio, ..Identity::new(name, 0) };
            (disk.connect(Time::ZERO, identity).unwrap(), load.clone())
        };
        let clients: Vec<_> = loads.iter().map(&mut connect).collect();
        let next = loads.iter().enumerate().flat_map(|(client, load)| vec![(Time::ZERO, client); load.depth as usize]);
        Self {
            now: Time::ZERO,
            shares: vec![Share::default(); clients.len()],
            next: next.collect(),
            device: profile.device(1),
            random: Random::new(7),
            turnaround_ns: TURNAROUND_NS,
            sent: Vec::new(),
            disk,
            clients,
        }
    }

    fn send(&mut self) {
        while let Some((_, client)) = self.next.pop_front_if(|(at, _)| *at <= self.now) {
            let (id, Load { action, bytes, .. }) = self.clients[client];
            let offset = self.random.below(CAPACITY_BYTES / u64::from(bytes)) * u64::from(bytes);
            let data = (action == Action::Write).then(|| self.disk.buffer(bytes as usize));
            let cookie = self.sent.len() as u64;
            self.sent.push((client, self.now));
            let operation = Operation { data, cookie, ..Operation::new(action, offset, bytes.into()) };
            self.disk.submit(self.now, id, operation);
        }
    }

    fn start(&mut self) {
        let mut segments = Vec::new();
        while let Some(command) = self.disk.next_command(self.now, &mut segments) {
            self.device.submit(self.now, device_command(&command));
            segments.clear();
        }
    }

    fn serve(&mut self) {
        let now = self.now;
        while self.device.next_event().is_some_and(|at| at <= now) {
            while let Some(id) = self.device.advance(now) {
                self.disk.complete(now, id, Ok(()));
                self.start();
            }
        }
        if self.disk.timer(now) {
            self.start();
        }
        self.start();
        while self.disk.arrive(now) {
            self.start();
        }
        for done in self.disk.take_done() {
            let (client, sent) = self.sent[done.cookie as usize];
            if now > WARM_UP {
                self.shares[client].bytes += u64::from(self.clients[client].1.bytes);
                self.shares[client].latencies_ns.push(now.since(sent));
            }
            self.next.push_back((now + self.turnaround_ns, client));
        }
    }

    fn until(mut self, end: Time) -> Vec<Share> {
        while self.now < end {
            self.send();
            self.serve();
            let next = self.next.front().map(|&(at, _)| at);
            let times = [self.disk.next_timer(), self.device.next_event(), next];
            self.now = times.into_iter().flatten().min().unwrap().max(self.now);
        }
        self.shares
    }
}

/// Returns a declaration that has only a weight.
fn weighed(weight: u32) -> Portion {
    Portion { weight: Some(weight), ..Portion::default() }
}

#[test]
fn groups_of_1_and_16_clients_share_equally() {
    let ioprio = IoPriority::default();
    let load = |group| Load { group, action: Action::Read, bytes: 65_536, depth: 4, ioprio };
    let mut loads = vec![load("a")];
    loads.resize(17, load("b"));
    for (profile, end_s) in [("sata-ssd", 3), ("sata-7200", 20)] {
        for depth in [None, Some(4)] {
            let run = Run::new(profile, "cfq", &[("slice_idle", "0")], depth, &loads);
            let shares = run.until(Time::from_ns(end_s * iosched::SECOND_NS));
            let all: u64 = shares.iter().map(|share| share.bytes).sum();
            let percent = shares[0].bytes as f64 / all as f64 * 100.0;
            assert!((48.0..=52.0).contains(&percent), "{profile} {depth:?}: {percent}");
        }
    }
}

#[test]
fn cfq_reader_p99_among_writers_is_a_tenth_of_noop() {
    let ioprio = IoPriority::default();
    let mut loads = vec![Load { group: "", action: Action::Read, bytes: 4096, depth: 1, ioprio }];
    loads.resize(17, Load { group: "", action: Action::Write, bytes: 65_536, depth: 16, ioprio });
    for (profile, end_s) in [("sata-ssd", 4), ("sata-7200", 30)] {
        let end = Time::from_ns(end_s * iosched::SECOND_NS);
        let measure = |run: Run| {
            let mut shares = run.until(end);
            (shares[0].p99_ns() as f64, shares.iter().map(|share| share.bytes).sum::<u64>() as f64)
        };
        let (noop_p99_ns, noop_bytes) = measure(Run::new(profile, "noop", &[], None, &loads));
        let (p99_ns, bytes) = measure(Run::new(profile, "cfq", &[("slice_idle", "0")], Some(8), &loads));
        assert!(p99_ns <= noop_p99_ns / 10.0, "{profile}: {p99_ns} of {noop_p99_ns}");
        assert!(bytes >= noop_bytes * 0.85, "{profile}: {bytes} of {noop_bytes}");
    }
}

#[test]
fn only_shares_that_a_scheduler_ignores_have_no_effect() {
    let end = Time::from_ns(11 * iosched::SECOND_NS);
    for scheduler in iosched::Registry::linux().names() {
        for (shares, [favoured, other]) in [(Shares::Weights, ["be/4", "be/4"]), (Shares::Priorities, ["be/4", "idle"])]
        {
            let load = |group, ioprio: &str| Load {
                group: if shares == Shares::Weights { group } else { "" },
                action: Action::Read,
                bytes: 4096,
                depth: 16,
                ioprio: ioprio.parse().unwrap(),
            };
            let mut run = Run::new("sata-7200", scheduler, &[], Some(8), &[load("a", favoured), load("b", other)]);
            let ignored = run.disk.ignores(shares);
            if shares == Shares::Weights {
                run.disk.group("a", weighed(800)).unwrap();
                run.disk.group("b", weighed(200)).unwrap();
            }
            let had = run.until(end);
            let times = had[0].bytes as f64 / had[1].bytes.max(1) as f64;
            assert_eq!(times < 1.3, ignored, "{scheduler}, {shares:?}: {times:.2} times");
        }
    }
}

#[test]
fn idling_keeps_weights_on_a_fast_device() {
    let end = Time::from_ns(2 * iosched::SECOND_NS);
    let ioprio = IoPriority::default();
    let load = |group| Load { group, action: Action::Read, bytes: 4096, depth: 16, ioprio };
    let times = |tunables: &[(&str, &str)], turnaround_ns| {
        let mut run = Run::new("nvme", "cfq", tunables, Some(8), &[load("a"), load("b")]);
        run.disk.group("a", weighed(800)).unwrap();
        run.disk.group("b", weighed(200)).unwrap();
        run.turnaround_ns = turnaround_ns;
        let had = run.until(end);
        had[0].bytes as f64 / had[1].bytes as f64
    };
    // The device needs 80 us per request. Most requests of a client are on the way between client
    // and disk, and few wait in the queue.
    for turnaround_us in [30, 100, 300, 1000, 3000] {
        let kept = times(&[("slice_idle", "0")], turnaround_us * 1000);
        assert!((3.0..=4.2).contains(&kept), "{turnaround_us} us: {kept:.2} times");
    }
    // Without idling, or with a longer turnaround, the weights have no effect.
    for (tunables, turnaround_us) in
        [(&[("slice_idle", "0"), ("group_idle", "0")][..], 300), (&[("slice_idle", "0")], 20_000)]
    {
        let lost = times(tunables, turnaround_us * 1000);
        assert!((0.9..=1.3).contains(&lost), "{tunables:?} {turnaround_us} us: {lost:.2} times");
    }
}

#[test]
fn mclock_keeps_reservations_weights_and_limits_of_groups() {
    const SECONDS: u64 = 2;
    let ioprio = IoPriority::default();
    let load = |group| Load { group, action: Action::Read, bytes: 4096, depth: 32, ioprio };
    let loads = ["db", "web", "batch", "backup"].map(load);
    let iops = |declared: [Portion; 4]| {
        let mut run = Run::new("sata-ssd", "mclock", &[], Some(8), &loads);
        for (load, portion) in loads.iter().zip(declared) {
            run.disk.group(load.group, portion).unwrap();
        }
        let had = run.until(Time::from_ns((SECONDS + 1) * iosched::SECOND_NS));
        had.iter().map(|share| share.bytes as f64 / 4096.0 / SECONDS as f64).collect::<Vec<_>>()
    };
    let equal = iops([weighed(100); 4]);
    let total: f64 = equal.iter().sum();
    assert!(equal.iter().all(|&iops| (iops - total / 4.0).abs() < total / 4.0 * 0.02), "{equal:.0?}");
    let (reserved, limited) = ((total * 0.4) as u64, (total * 0.05) as u64);
    let rates = |reservation, limit| Rates { reservation, limit };
    let had = iops([
        Portion { weight: Some(10), rates: rates(Some(Rate::Ios(reserved)), None) },
        weighed(400),
        weighed(200),
        Portion { weight: Some(200), rates: rates(None, Some(Rate::Bytes(limited * 4096))) },
    ]);
    let rest = had.iter().sum::<f64>() - (reserved + limited) as f64;
    let expected = [reserved as f64, rest * 2.0 / 3.0, rest / 3.0, limited as f64];
    println!("{total:.0} IOPS in total: {had:.0?}, expected {expected:.0?}");
    for (had, expected) in had.iter().zip(expected) {
        assert!((had - expected).abs() <= expected * 0.03, "{had:.0} of {expected:.0} IOPS");
    }
}
