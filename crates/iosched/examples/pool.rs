//! Two servers of one pool under mclock. With each request, a client reports the service that it
//! got from the other server. Therefore its reservation and its weight apply for both servers
//! together.
//!
//! `cargo run -p iosched --example pool`

use iosched::{
    Bio, Cgroup, CgroupId, ContextId, Decision, Flags, IoPriority, MClockEvent, Op, Phase, QueueConfig, Registry,
    RequestId, RequestQueue, SECOND_NS, Time, Tracker, Work,
};

/// Time of a request on a device, ns: each server serves 4,000 requests per second.
const SERVICE_NS: u64 = SECOND_NS / 4_000;
const SERVERS: usize = 2;
/// The clients: their rates, and the requests that they keep waiting at each server.
const CLIENTS: [(&str, [usize; SERVERS]); 3] =
    [("reservation=1500 weight=1", [12, 4]), ("weight=200", [8, 8]), ("weight=100", [8, 8])];

/// A server: its queue, the client's names in it, and the request in the device.
struct Server {
    queue: RequestQueue,
    clients: Vec<(CgroupId, ContextId)>,
    in_device: Option<(RequestId, usize, Phase, Work)>,
}

impl Server {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        let config = QueueConfig { groups: true, ..QueueConfig::default() };
        let mut queue = RequestQueue::new(Time::BEGINNING, &config, Registry::linux().get("mclock")?);
        queue.set_attribute(Time::BEGINNING, "nr_requests", "1000")?;
        queue.record_decisions(true);
        let mut clients = Vec::new();
        for (number, (rates, _)) in CLIENTS.iter().enumerate() {
            let name = format!("client{number}");
            let cgroup = queue.create_cgroup(Cgroup { name, parent: None, weight: None, leaf_weight: None })?;
            queue.set_cgroup_attribute(Time::BEGINNING, cgroup, "io.mclock", rates)?;
            clients.push((cgroup, queue.create_context(number as u32, IoPriority::default(), cgroup)));
        }
        Ok(Self { queue, clients, in_device: None })
    }

    /// Takes the service that a request of a client reports, and then the request.
    fn submit(&mut self, now: Time, client: usize, number: u64, tracker: &mut Tracker, server: usize) {
        let (cgroup, context) = self.clients[client];
        self.queue.served_elsewhere(now, cgroup, &tracker.next_request(server));
        // The bio's cookie is the client, and its sector is far from all other bios.
        let (sector, cookie) = (number * 1_000_000, client as u64);
        self.queue.submit(now, &Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie });
    }

    /// Lets the device begin the next request. The decision says which client sent the request.
    fn start(&mut self, now: Time) {
        let Some(id) = self.queue.dispatch(now) else { return };
        let choice = self.queue.take_decisions().find_map(|(_, decision)| match decision {
            Decision::MClock(MClockEvent::Choice { cookie, phase, work, .. }) => Some((cookie as usize, phase, work)),
            _ => None,
        });
        self.in_device = choice.map(|(client, phase, work)| (id, client, phase, work));
    }
}

/// Returns the requests per second of each client, from both servers together.
fn run(carries: bool) -> Result<[u64; CLIENTS.len()], Box<dyn std::error::Error>> {
    let seconds = 4;
    let mut servers = [Server::new()?, Server::new()?];
    // If clients do not report their service, the reports come from separate trackers. These
    // trackers get no answers, so their reports are empty.
    let mut trackers = vec![Tracker::new(SERVERS); CLIENTS.len()];
    let mut silent = trackers.clone();
    let (mut served, mut number) = ([0; CLIENTS.len()], 0);
    for (at, server) in servers.iter_mut().enumerate() {
        for (client, (_, depth)) in CLIENTS.iter().enumerate() {
            for _ in 0..depth[at] {
                number += 1;
                server.submit(Time::BEGINNING, client, number, &mut trackers[client], at);
            }
        }
    }
    for step in 0..seconds * SECOND_NS / SERVICE_NS {
        let now = Time::BEGINNING + step * SERVICE_NS;
        for (at, server) in servers.iter_mut().enumerate() {
            if let Some((id, client, phase, work)) = server.in_device.take() {
                server.queue.complete(now, id, Ok(()), |_, _| {});
                trackers[client].answered(at, phase, work);
                served[client] += 1;
                number += 1;
                let carried = if carries { &mut trackers } else { &mut silent };
                server.submit(now, client, number, &mut carried[client], at);
            }
            server.start(now);
        }
    }
    Ok(served.map(|count| count / seconds))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (what, carries) in [("carried", true), ("not carried", false)] {
        let served = run(carries)?;
        println!("service elsewhere {what}:");
        for ((rates, _), iops) in CLIENTS.iter().zip(served) {
            println!("  {rates:26} {iops:5} IOPS");
        }
    }
    Ok(())
}
