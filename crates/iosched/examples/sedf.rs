//! sedf: shortest expected deadline first, an elevator outside of iosched.

use std::collections::BTreeSet;

use iosched::{
    Bio, CgroupId, Decision, Declarations, Elevator, Env, Flags, IoPriority, MICROSECOND_NS, MILLISECOND_NS, Op,
    QueueConfig, Registered, Registry, RequestId, RequestQueue, Time, TunableSet, Tuned, tunable,
};

#[derive(Default)]
struct Tunables {
    read_ms: u64,
}

static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "sedf",
    what: "tunable",
    tunables: &[tunable!(Tunables.read_ms, "read_expire", Milliseconds, 1, 50, 1..=9999, "1", "how long reads wait")],
};

struct Sedf {
    tunables: Tuned<Tunables>,
    queued: BTreeSet<(Time, RequestId)>,
}

impl Elevator for Sedf {
    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let request = &env.requests[id];
        let patience_ms = self.tunables.read_ms * if request.op().is_write() { 10 } else { 1 };
        // A sector takes 5 us on a device that moves about 100 MB/s.
        let due = env.now + patience_ms * MILLISECOND_NS + u64::from(request.nr_sectors()) * 5 * MICROSECOND_NS;
        env.requests[id].deadline = due;
        self.queued.insert((due, id));
        env.note(|| Decision::noted("sedf_due", [("due_ns", due.as_ns() as i64)]));
    }

    fn dispatch(&mut self, _env: &mut Env) -> Option<RequestId> {
        self.queued.pop_first().map(|(_, id)| id)
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        self.queued.remove(&(env.requests[absorbed].deadline, absorbed));
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(&mut self.tunables)
    }
}

pub(crate) const SEDF: Registered = Registered {
    about: "shortest expected deadline first",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("sedf", &|_| {
        Box::new(Sedf { tunables: DECLARATIONS.tuned(Tunables::default()), queued: BTreeSet::new() })
    })
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut registry = Registry::linux();
    registry.add(SEDF)?;
    let mut queue = RequestQueue::new(Time::ZERO, &QueueConfig::default(), registry.get("sedf")?);
    queue.set_tunable(Time::ZERO, "read_expire", "20")?;
    let context = queue.create_context(1, IoPriority::default(), CgroupId::ROOT);
    for (op, sector, nr_sectors) in [(Op::Write, 0, 8), (Op::Read, 9_000, 1_024), (Op::Read, 5_000, 8)] {
        queue.submit(Time::ZERO, &Bio { op, flags: Flags::empty(), sector, nr_sectors, context, cookie: sector });
    }
    while let Some(id) = queue.dispatch(Time::ZERO) {
        let request = queue.request(id);
        println!("{:?} of {} sectors at {}", request.op(), request.nr_sectors(), request.sector());
        queue.complete(Time::ZERO, id, Ok(()), |_, _| {});
    }
    Ok(())
}
