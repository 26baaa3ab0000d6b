//! A complete host: two tenants share a device in virtual time. Both want more
//! requests than the queue has, so each gets [`Submit::Full`] again and again,
//! waits, and continues when the driver wakes it.
//!
//! Run it with `cargo run --example two_tenants`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched::{
    Bio, Cgroup, ContextId, Driver, Due, Flags, IoPriority, Op, QueueConfig, Registry, RequestId, RequestQueue, Rerun,
    Step, Submit, Time,
};

/// Number of commands that the device accepts at the same time.
const DEPTH: usize = 32;
/// Number of requests that each tenant wants in flight.
const WANTED: u32 = 64;
const SECTORS: u32 = 256;
/// Time in which the device transfers 128 KiB, ns.
const SERVICE_NS: u64 = 100_000;

struct Tenant {
    context: ContextId,
    under_way: u32,
    served: u64,
    next_sector: u64,
}

struct Host {
    driver: Driver,
    /// Requests in the device, with their completion times.
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

    /// Starts a request on the device.
    fn start(&mut self, now: Time, id: RequestId) {
        self.device_free = self.device_free.max(now) + SERVICE_NS;
        self.device.push(Reverse((self.device_free, id)));
    }

    /// Submits until the tenant has enough requests in flight, or the queue is full. In that case
    /// the tenant waits until the driver wakes it.
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
            // Adjacent requests would merge.
            self.tenants[tenant].next_sector += 2 * u64::from(SECTORS);
            // After each submission, start the requests that must be in the device before the next
            // submission.
            while let Some(id) = self.driver.kicked(now, self.device.len() < DEPTH) {
                self.start(now, id);
            }
        }
        // A tag may be reserved for the tenant.
        self.driver.decline(self.tenants[tenant].context);
    }

    /// Executes the turn that follows every event.
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

    /// Completes the first request in the device. The tenant of that request submits its next
    /// request immediately. Then the turn follows.
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

/// Returns the number of requests of each tenant that the device
/// has served under `scheduler` in a second.
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
