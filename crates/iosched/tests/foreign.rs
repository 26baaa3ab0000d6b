//! Elevators outside of this crate: what they can do, and the services of the queue.

use std::collections::BTreeMap;

use iosched::{
    Bio, CgroupId, ContextId, Decision, Elevator, Env, Flags, IoPriority, Layer, MultiQueueRules, Op, PerProcess,
    QueueConfig, Registered, Registry, RegistryError, RequestId, RequestQueue, Sector, Submit, Time, TunableError,
};

const NOW: Time = Time::from_ns(1_000_000_000);
const WAIT_NS: u64 = 3_000_000;

/// Elevator that serves the highest sector first. It lets the device wait after each request, and
/// counts exits.
#[derive(Default)]
struct Downward {
    queued: BTreeMap<Sector, RequestId>,
    waits: bool,
    exited: i64,
}

impl Elevator for Downward {
    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let same = self.queued.insert(env.requests[id].sector(), id);
        assert_eq!(same, None, "the tests send one request per sector");
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if self.waits {
            return None;
        }
        let given = self.drain(env)?;
        self.waits = true;
        env.set_timer(env.now + WAIT_NS);
        Some(given)
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        self.queued.remove(&env.requests[absorbed].sector());
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queued.range(..env.requests[id].sector()).next_back().map(|(_, &id)| id)
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queued.range(env.requests[id].sector() + 1..).next().map(|(_, &id)| id)
    }

    fn drain(&mut self, _env: &mut Env) -> Option<RequestId> {
        self.queued.pop_last().map(|(_, id)| id)
    }

    fn timer(&mut self, _env: &mut Env) {
        self.waits = false;
    }

    fn per_process(&mut self) -> Option<&mut dyn PerProcess> {
        Some(self)
    }

    fn check(&self, env: &Env) {
        assert_eq!(self.queued.len(), env.queued());
    }
}

impl PerProcess for Downward {
    fn exit(&mut self, env: &mut Env, context: ContextId) {
        self.exited += 1;
        let (pid, exited) = (i64::from(env.pid(context)), self.exited);
        env.note(|| Decision::noted("downward_exit", [("pid", pid), ("exited", exited)]));
    }
}

const DOWNWARD: Registered = Registered::new("downward", &|_| Box::new(Downward::default()));
const DOWNWARD_MQ: Registered = Registered {
    layer: Layer::MultiQueue(MultiQueueRules::USUAL),
    ..Registered::new("downward-mq", &|_| Box::new(Downward::default()))
};

fn queue(registered: Registered) -> (RequestQueue, ContextId) {
    let mut queue = RequestQueue::new(NOW, &QueueConfig::default(), registered);
    let context = queue.create_context(7, IoPriority::default(), CgroupId::ROOT);
    (queue, context)
}

fn read(context: ContextId, sector: Sector) -> Bio {
    Bio { op: Op::Read, flags: Flags::empty(), sector, nr_sectors: 8, context, cookie: sector }
}

/// Dispatches all requests from `now` on, and fires the timers. Returns the order.
fn order(queue: &mut RequestQueue, mut now: Time) -> Vec<Vec<u64>> {
    let mut order = Vec::new();
    while queue.waiting() > 0 {
        match queue.dispatch(now) {
            Some(id) => {
                order.push(queue.bios(id).collect());
                queue.check();
                queue.complete(now, id, Ok(()), |_, _| {});
            }
            None => {
                now = queue.next_timer().expect("an elevator that waits sets a timer");
                queue.timer(now);
            }
        }
        queue.check();
    }
    order
}

#[test]
fn a_foreign_elevator_orders_requests_and_merges_in_both_layers() {
    for registered in [DOWNWARD, DOWNWARD_MQ] {
        let (mut queue, context) = queue(registered);
        for sector in [0, 100, 116, 50] {
            assert!(matches!(queue.submit(NOW, &read(context, sector)), Submit::Queued(_)));
        }
        // The bio joins the request at 100, which then ends where the request at 116 begins.
        assert_eq!(queue.submit(NOW, &read(context, 108)), Submit::Merged);
        queue.check();
        assert_eq!(order(&mut queue, NOW), [vec![100, 108, 116], vec![50], vec![0]], "{}", registered.name);
    }
}

#[test]
fn a_switch_drains_a_foreign_elevator_that_waits() {
    let (mut queue, context) = queue(DOWNWARD);
    for sector in [0, 100, 200] {
        queue.submit(NOW, &read(context, sector));
    }
    let first = queue.dispatch(NOW).expect("the request with the highest sector");
    assert_eq!(queue.dispatch(NOW), None, "the elevator waits");
    queue.switch(NOW, Registry::linux().get("bfq").unwrap());
    assert_eq!(order(&mut queue, NOW), [[100], [0]]);
    queue.complete(NOW, first, Ok(()), |_, _| {});
    assert!(!queue.is_switching());
    queue.switch(NOW, DOWNWARD_MQ);
    assert_eq!(queue.scheduler(), "downward-mq");
    queue.submit(NOW, &read(context, 300));
    assert_eq!(order(&mut queue, NOW), [[300]]);
}

#[test]
fn a_foreign_elevator_is_listed_last_and_has_no_tunables() {
    let (mut queue, _) = queue(DOWNWARD);
    let shown = queue.attribute("scheduler").unwrap();
    assert_eq!(shown, format!("{} [downward]", Registry::linux().names().join(" ")));
    let error = queue.tunable("quantum").unwrap_err();
    assert_eq!(error.to_string(), "quantum: downward has no such tunable; available: none");
    assert!(matches!(queue.set_tunable(NOW, "quantum", "1"), Err(TunableError::Unknown { .. })));
}

#[test]
fn a_foreign_elevator_sees_exits_and_records_decisions() {
    let (mut queue, context) = queue(DOWNWARD);
    queue.record_decisions(true);
    queue.exit(NOW, context);
    let noted = Decision::noted("downward_exit", [("pid", 7), ("exited", 1)]);
    assert!(queue.take_decisions().any(|event| event == (NOW, noted)));
}

#[test]
fn elevator_names_must_be_unique_and_valid() {
    let mut registry = Registry::linux();
    registry.add(DOWNWARD).unwrap();
    assert_eq!(registry.add(DOWNWARD), Err(RegistryError::Taken("downward")));
    for name in ["", "two words", "a:b", "[x]"] {
        let error = registry.add(Registered { name, ..DOWNWARD }).unwrap_err();
        assert_eq!(error, RegistryError::Name(name));
    }
    assert_eq!(registry.names().last(), Some(&"downward"));
    assert!(Registry::linux().get("downward").is_err(), "other registries do not have the added elevator");
}
