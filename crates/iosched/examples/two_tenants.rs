//! A complete host: two tenants share a device in virtual time. Both want more requests than the
//! queue has, so each is told [`Submit::Full`] again and again, waits, and goes on when the driver
//! wakes it.
//!
//! Run it with `cargo run --example two_tenants`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched::{
    Bio, Cgroup, ContextId, Driver, Due, Flags, IoPriority, Op, QueueConfig, Registry, RequestId, RequestQueue, Rerun,
    Step, Submit, Time,
};

/// Commands that the device takes at once.
const DEPTH: usize = 32;
/// Requests that each tenant wants under way.
const WANTED: u32 = 64;
const SECTORS: u32 = 256;
/// The device moves 128 KiB in this time, ns.
const SERVICE_NS: u64 = 100_000;

struct Tenant {
    context: ContextId,
    under_way: u32,
    served: u64,
    next_sector: u64,
}

struct Host {
    driver: Driver,
    /// What the device has, and when it is done with it.
    device: BinaryHeap<Reverse<(Time, RequestId)>>,
    device_free: Time,
    tenants: Vec<Tenant>,
}

impl Host {
    fn new(scheduler: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let config = QueueConfig { groups: true, rotational: false, depth: DEPTH as u32, ..QueueConfig::default() };
        let queue = RequestQueue::new(Time::ZERO, &config, Registry::linux().get(scheduler)?);
        let mut driver = Driver::new(queue, Rerun::LINUX);
        let mut tenants = Vec::new();
        for (pid, name) in [(1, "a"), (2, "b")] {
            let group = Cgroup { name: name.to_owned(), parent: None, weight: None, leaf_weight: None };
            let group = driver.create_cgroup(group)?;
            let context = driver.create_context(pid, IoPriority::default(), group);
            let next_sector = u64::from(pid) << 32;
            tenants.push(Tenant { context, under_way: 0, served: 0, next_sector });
        }
        Ok(Self { driver, device: BinaryHeap::new(), device_free: Time::ZERO, tenants })
    }

    /// The device takes a request.
    fn start(&mut self, now: Time, id: RequestId) {
        self.device_free = self.device_free.max(now) + SERVICE_NS;
        self.device.push(Reverse((self.device_free, id)));
    }

    /// The tenant submits until it has what it wants, or the queue is full. Then it waits: the
    /// driver wakes it.
    fn submit(&mut self, now: Time, tenant: usize) {
        while self.tenants[tenant].under_way < WANTED {
            let Tenant { context, next_sector, .. } = self.tenants[tenant];
            let cookie = tenant as u64;
            let (op, flags) = (Op::Read, Flags::empty());
            let bio = Bio { op, flags, sector: next_sector, nr_sectors: SECTORS, context, cookie };
            if self.driver.submit(now, &bio) == Submit::Full {
                return;
            }
            self.tenants[tenant].under_way += 1;
            // Neighbours would merge.
            self.tenants[tenant].next_sector += 2 * u64::from(SECTORS);
            // After each submission: what the elevator wants in the device before the next one.
            while let Some(id) = self.driver.kicked(now, self.device.len() < DEPTH) {
                self.start(now, id);
            }
        }
        // A tag may have been kept for it.
        self.driver.decline(self.tenants[tenant].context);
    }

    /// What follows every event: the turn, to its end.
    fn turn(&mut self, now: Time) {
        while let Some(step) = self.driver.turn(now, self.device.len() < DEPTH) {
            match step {
                Step::Start(id) => self.start(now, id),
                Step::Wake(context) => {
                    if let Some(tenant) = self.tenants.iter().position(|tenant| tenant.context == context) {
                        self.submit(now, tenant);
                    }
                }
            }
        }
    }

    /// The device is done with its first request: its tenant submits the next one at once, and then
    /// comes the turn.
    fn complete(&mut self, now: Time) {
        let Some(Reverse((_, id))) = self.device.pop() else { return };
        let mut done = Vec::new();
        self.driver.complete(now, id, Ok(()), |bio, _| done.push(bio.cookie as usize));
        for tenant in done {
            self.tenants[tenant].under_way -= 1;
            self.tenants[tenant].served += 1;
            self.submit(now, tenant);
        }
    }

    fn run(&mut self, until: Time) {
        for tenant in 0..self.tenants.len() {
            self.submit(Time::ZERO, tenant);
        }
        self.turn(Time::ZERO);
        let device_due = |host: &Self| host.device.peek().map(|Reverse((at, _))| *at);
        while let Some((now, due)) = self.driver.next_due(device_due(self), None).filter(|&(at, _)| at <= until) {
            match due {
                Due::Device => self.complete(now),
                Due::Timer => _ = self.driver.timer(now),
                Due::Rerun => self.driver.rerun(now),
                Due::Arrival => unreachable!("tenants submit when a request is done or they are woken"),
            }
            self.turn(now);
        }
    }
}

/// How many requests of each tenant the device has served under `scheduler` after a second.
#[allow(unreachable_pub, reason = "the tests call it")]
pub fn served(scheduler: &str) -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    let mut host = Host::new(scheduler)?;
    host.run(Time::ZERO + iosched::SECOND_NS);
    Ok(host.tenants.iter().map(|tenant| tenant.served).collect())
}

#[allow(dead_code, reason = "the tests call what it calls")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "cfq"] {
        println!("{scheduler}: {:?} requests served", served(scheduler)?);
    }
    Ok(())
}
