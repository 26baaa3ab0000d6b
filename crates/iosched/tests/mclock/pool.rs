//! A pool of servers with mclock, and clients that spread their requests over the servers.
//!
//! Each server has a device that serves several requests at the same time, with a service time for
//! each request. A client keeps a number of requests in flight at each server. With each request,
//! it reports the service that it got from the other servers ([`Tracker`]).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use iosched::{
    Bio, Cgroup, CgroupId, ContextId, Decision, Flags, IoPriority, MClockEvent, Op, Phase, QueueConfig, Registry,
    RequestId, RequestQueue, SECOND_NS, Submit, Time, Tracker, Work,
};

/// A client of the pool.
#[derive(Clone)]
pub(super) struct Load {
    /// Text for io.mclock.
    pub(super) rates: &'static str,
    /// Requests in flight at the same time, at all servers together.
    pub(super) depth: u32,
    /// Sectors of a request.
    pub(super) sectors: u32,
    /// Time from an answer to the next request, ns.
    pub(super) think_ns: u64,
    /// Part of the run in which it sends requests, s.
    pub(super) active_s: (u64, u64),
    /// Part of the run in which it pauses, s.
    pub(super) pause_s: (u64, u64),
    /// Part of the requests in flight at each server; missing: equal parts.
    pub(super) spread: &'static [u32],
}

impl Load {
    pub(super) const fn new(rates: &'static str, depth: u32) -> Self {
        Self { rates, depth, sectors: 8, think_ns: 0, active_s: (0, u64::MAX), pause_s: (0, 0), spread: &[] }
    }
}

/// A request that was dispatched.
#[derive(Clone, Copy)]
pub(super) struct Dispatched {
    pub(super) at_ns: u64,
    pub(super) waited_ns: u64,
    pub(super) phase: Phase,
}

/// Devices of the servers.
#[derive(Clone, Copy)]
pub(super) struct Devices {
    pub(super) places: usize,
    pub(super) service_ns: u64,
    /// Part of the run in which the devices stand still, s.
    pub(super) stalled_s: (u64, u64),
}

impl Devices {
    /// Devices that serve `iops` requests per second, four at a time.
    pub(super) const fn new(iops: u64) -> Self {
        Self { places: 4, service_ns: 4 * SECOND_NS / iops, stalled_s: (0, 0) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Done(usize, RequestId),
    Timer(usize),
    /// A client sends a request to a server.
    Send(usize, usize),
}

struct Server {
    queue: RequestQueue,
    contexts: Vec<ContextId>,
    cgroups: Vec<CgroupId>,
    in_device: usize,
    timer: Option<Time>,
}

struct Sent {
    client: usize,
    at_ns: u64,
    chosen: Option<(Phase, Work)>,
}

pub(super) struct Pool {
    servers: Vec<Server>,
    devices: Devices,
    loads: Vec<Load>,
    trackers: Vec<Tracker>,
    /// Whether clients report the service that they got from other servers.
    pub(super) carries: bool,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    number: u64,
    random: u64,
    sent: BTreeMap<u64, Sent>,
    pub(super) dispatched: Vec<Vec<Dispatched>>,
}

impl Pool {
    pub(super) fn new(servers: usize, devices: Devices, loads: &[Load], tunables: &[(&str, &str)]) -> Self {
        let server = |_| {
            let config = QueueConfig { depth: 1024, groups: true, write_cache: false, ..QueueConfig::default() };
            let mut queue = RequestQueue::new(Time::ZERO, &config, Registry::linux().get("mclock").unwrap());
            queue.set_attribute(Time::ZERO, "nr_requests", "65536").unwrap();
            for (name, value) in tunables {
                queue.set_tunable(Time::ZERO, name, value).unwrap();
            }
            queue.record_decisions(true);
            let cgroup = |number: usize, load: &Load| {
                let name = format!("client{number}");
                let cgroup = Cgroup { name, parent: None, weight: None, leaf_weight: None };
                let id = queue.create_cgroup(cgroup).unwrap();
                queue.set_cgroup_attribute(Time::ZERO, id, "io.mclock", load.rates).unwrap();
                (id, queue.create_context(number as u32, IoPriority::default(), id))
            };
            let mut make = cgroup;
            let (cgroups, contexts) = loads.iter().enumerate().map(|(number, load)| make(number, load)).unzip();
            Server { queue, contexts, cgroups, in_device: 0, timer: None }
        };
        let mut pool = Self {
            servers: (0..servers).map(server).collect(),
            devices,
            loads: loads.to_vec(),
            trackers: vec![Tracker::new(servers); loads.len()],
            carries: true,
            events: BinaryHeap::new(),
            number: 0,
            random: 7,
            sent: BTreeMap::new(),
            dispatched: vec![Vec::new(); loads.len()],
        };
        for (client, load) in loads.iter().enumerate() {
            let parts = if load.spread.is_empty() { vec![1; servers] } else { load.spread.to_vec() };
            let all: u32 = parts.iter().sum();
            for (server, part) in parts.into_iter().enumerate() {
                for _ in 0..load.depth * part / all {
                    pool.after(load.active_s.0.saturating_mul(SECOND_NS), Event::Send(client, server));
                }
            }
        }
        pool
    }

    pub(super) fn queue(&mut self, server: usize) -> (&mut RequestQueue, &[CgroupId]) {
        let Server { queue, cgroups, .. } = &mut self.servers[server];
        (queue, cgroups)
    }

    fn after(&mut self, at_ns: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at_ns, self.number, event)));
    }

    fn below(&mut self, end: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % end
    }

    fn send(&mut self, now: Time, client: usize, server: usize) {
        let load = self.loads[client].clone();
        if now.as_ns() >= load.active_s.1.saturating_mul(SECOND_NS) {
            return;
        }
        let (from, until) = load.pause_s;
        if (from * SECOND_NS..until * SECOND_NS).contains(&now.as_ns()) {
            self.after(until * SECOND_NS, Event::Send(client, server));
            return;
        }
        let progress = self.trackers[client].next_request(server);
        self.number += 1;
        let cookie = self.number;
        let carries = self.carries;
        let Server { queue, contexts, cgroups, .. } = &mut self.servers[server];
        if carries {
            queue.served_elsewhere(now, cgroups[client], &progress);
        }
        let (context, nr_sectors) = (contexts[client], load.sectors);
        let bio = Bio { op: Op::Read, flags: Flags::empty(), sector: cookie * 1_000_003, nr_sectors, context, cookie };
        assert!(matches!(queue.submit(now, &bio), Submit::Queued(_)), "each bio becomes a request");
        self.sent.insert(cookie, Sent { client, at_ns: now.as_ns(), chosen: None });
        self.run_queue(now, server);
    }

    fn run_queue(&mut self, now: Time, server: usize) {
        let (from, until) = self.devices.stalled_s;
        let mut started = Vec::new();
        let Server { queue, in_device, timer, .. } = &mut self.servers[server];
        while *in_device < self.devices.places
            && let Some(id) = queue.dispatch(now)
        {
            *in_device += 1;
            started.push(id);
        }
        if self.number.is_multiple_of(97) {
            queue.check();
        }
        let decisions: Vec<_> = queue.take_decisions().collect();
        let next = queue.next_timer().filter(|&at| *timer != Some(at));
        *timer = next.or(*timer);
        for (_, decision) in decisions {
            if let Decision::MClock(MClockEvent::Choice { cookie, phase, work, .. }) = decision {
                let sent = self.sent.get_mut(&cookie).unwrap();
                sent.chosen = Some((phase, work));
                let waited_ns = now.as_ns() - sent.at_ns;
                self.dispatched[sent.client].push(Dispatched { at_ns: now.as_ns(), waited_ns, phase });
            }
        }
        if let Some(at) = next {
            self.after(at.max(now).as_ns(), Event::Timer(server));
        }
        for id in started {
            let service_ns = self.devices.service_ns;
            let jitter_ns = self.below(service_ns / 5) + service_ns * 9 / 10;
            let mut done_ns = now.as_ns() + jitter_ns;
            if (from * SECOND_NS..until * SECOND_NS).contains(&done_ns) {
                done_ns += (until - from) * SECOND_NS;
            }
            self.after(done_ns, Event::Done(server, id));
        }
    }

    fn done(&mut self, now: Time, server: usize, id: RequestId) {
        let at = &mut self.servers[server];
        at.in_device -= 1;
        let mut cookies = Vec::new();
        at.queue.complete(now, id, Ok(()), |bio, _| cookies.push(bio.cookie));
        self.run_queue(now, server);
        for cookie in cookies {
            let Sent { client, chosen, .. } = self.sent.remove(&cookie).unwrap();
            let (phase, work) = chosen.unwrap();
            self.trackers[client].answered(server, phase, work);
            let think_ns = self.loads[client].think_ns;
            self.after(now.as_ns() + think_ns, Event::Send(client, server));
        }
    }

    /// Runs the pool until the time `end_s`.
    pub(super) fn run(&mut self, end_s: u64) {
        while let Some(&Reverse((at_ns, _, event))) = self.events.peek()
            && at_ns <= end_s * SECOND_NS
        {
            self.events.pop();
            let now = Time::from_ns(at_ns);
            match event {
                Event::Send(client, server) => self.send(now, client, server),
                Event::Done(server, id) => self.done(now, server, id),
                Event::Timer(server) => {
                    let at = &mut self.servers[server];
                    at.timer = at.timer.filter(|&timer| timer > now);
                    if at.queue.next_timer().is_some_and(|timer| timer <= now) {
                        at.queue.timer(now);
                    }
                    self.run_queue(now, server);
                }
            }
        }
    }

    /// Returns the requests per second of each client from `from_s` to `until_s`.
    pub(super) fn iops(&self, from_s: u64, until_s: u64) -> Vec<f64> {
        let window = from_s * SECOND_NS..until_s * SECOND_NS;
        let of_client = |all: &Vec<Dispatched>| {
            all.iter().filter(|one| window.contains(&one.at_ns)).count() as f64 / (until_s - from_s) as f64
        };
        self.dispatched.iter().map(of_client).collect()
    }

    /// Returns the number of requests that wait or are in a device.
    pub(super) fn under_way(&self) -> usize {
        self.sent.len()
    }
}

/// Runs one server, and returns the requests per second of each client after a second of warm-up.
pub(super) fn one_server(iops: u64, loads: &[Load], end_s: u64) -> (Pool, Vec<f64>) {
    let mut pool = Pool::new(1, Devices::new(iops), loads, &[]);
    pool.run(end_s);
    let had = pool.iops(1, end_s);
    (pool, had)
}

/// Returns whether a value differs from the expected one by at most `percent`.
pub(super) fn is_near(value: f64, expected: f64, percent: f64) -> bool {
    (value - expected).abs() <= expected * percent / 100.0
}
