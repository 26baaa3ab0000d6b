//! deadline: batches in sector order, reads before writes, and a deadline for each request.
//!
//! The rules are those of Linux 4.19. Expiry times are counted in jiffies.

use crate::collections::List;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::Layer;
use crate::parts::sorted::{Sorted, inherit_fifo_place};
use crate::request::{Bio, Fifo, RequestId};
use crate::time::Time;
use crate::tunable::{Declarations, Span, TunableSet, Tuned, tunable};

pub(crate) const REGISTERED: Registered = Registered {
    about: "serves batches in sector order, prefers reads, and limits the waiting time; for databases and throughput",
    since: "4.19",
    until: Some("4.19"),
    layer: Layer::SingleQueue,
    how: &[
        "Reads and writes are separate. Each kind is sorted by sector, and also by age.",
        "A batch has up to fifo_batch requests, all reads or all writes, in sector order.",
        "If reads wait, the next batch has reads. But if writes also wait, one batch of writes follows after \
         writes_starved batches of reads.",
        "A batch continues where the last batch of its kind ended. But if the oldest request is past its deadline, \
         the batch begins with that request.",
        "deadline does not distinguish processes.",
    ],
    when: "Databases and servers that need throughput and a limited waiting time, but no fairness between processes.",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("deadline", &|_| Box::new(Deadline::new()))
};

/// Largest value of the tunables, as in Linux.
const MAX: u64 = i32::MAX as u64;

static DECLARATIONS: Declarations<Tunables> = Declarations {
    owner: "deadline",
    what: "tunable",
    tunables: &[
        tunable!(
            Tunables.read_expire_ms,
            "read_expire",
            Milliseconds,
            1,
            500,
            0..=MAX,
            "2.6.0",
            "a read that is older than this time begins the next batch of reads",
            { tuning: Span::of(16, 2_000) }
        ),
        tunable!(
            Tunables.write_expire_ms,
            "write_expire",
            Milliseconds,
            1,
            5000,
            0..=MAX,
            "2.6.0",
            "a write that is older than this time begins the next batch of writes",
            { tuning: Span::of(78, 20_000) }
        ),
        tunable!(
            Tunables.writes_starved,
            "writes_starved",
            Count,
            1,
            2,
            0..=MAX,
            "2.6.0",
            "largest number of consecutive batches of reads while writes wait",
            { tuning: Span::or_zero(1, 16) }
        ),
        tunable!(
            Tunables.front_merges,
            "front_merges",
            Switch,
            1,
            1,
            0..=1,
            "2.6.0",
            "1: also merge a bio with the beginning of a request",
            { tuning: Span::SWITCH }
        ),
        tunable!(Tunables.fifo_batch, "fifo_batch", Requests, 1, 16, 0..=MAX, "2.6.0", "largest number of requests in \
            one batch",
            { tuning: Span::of(1, 128) }),
    ],
};

#[derive(Debug, Default)]
struct Tunables {
    read_expire_ms: u64,
    write_expire_ms: u64,
    writes_starved: u32,
    front_merges: bool,
    fifo_batch: u32,
}

/// Queued requests of one direction.
#[derive(Debug, Default)]
struct Direction {
    sorted: Sorted,
    fifo: List<Fifo>,
}

const READ: usize = 0;
const WRITE: usize = 1;

struct Deadline {
    tunables: Tuned<Tunables>,
    directions: [Direction; 2],
    /// Direction and successor of the last served request.
    next: Option<(usize, RequestId)>,
    /// Number of served requests in the present batch.
    batching: u32,
    /// Number of read batches that were chosen while writes waited.
    starved: u32,
}

fn direction_of(env: &Env, id: RequestId) -> usize {
    usize::from(env.requests[id].op.is_write())
}

impl Deadline {
    fn new() -> Self {
        Self {
            tunables: DECLARATIONS.tuned(Tunables::default()),
            directions: Default::default(),
            next: None,
            batching: 0,
            starved: 0,
        }
    }

    /// Chooses the direction of a new batch.
    fn choose_direction(&mut self) -> Option<usize> {
        let reads = !self.directions[READ].fifo.is_empty();
        let writes = !self.directions[WRITE].fifo.is_empty();
        if reads && writes {
            let passed_over = self.starved;
            self.starved = self.starved.saturating_add(1);
            if passed_over < self.tunables.writes_starved {
                return Some(READ);
            }
        } else if reads {
            return Some(READ);
        } else if !writes {
            return None;
        }
        self.starved = 0;
        Some(WRITE)
    }

    /// Removes `id`. If `id` was the next request, its successor becomes the next.
    fn remove(&mut self, env: &mut Env, id: RequestId) {
        let direction = direction_of(env, id);
        let Direction { sorted, fifo } = &mut self.directions[direction];
        if self.next == Some((direction, id)) {
            self.next = sorted.next(&env.requests, id).map(|next| (direction, next));
        }
        sorted.remove(&mut env.requests, id);
        fifo.remove(env.requests.list_nodes(), id);
        debug_assert_eq!(sorted.is_empty(), fifo.is_empty(), "each sorted request is also in the FIFO");
    }
}

impl Elevator for Deadline {
    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        if !self.tunables.front_merges {
            return None;
        }
        self.directions[usize::from(bio.op.is_write())].sorted.find(&env.requests, bio.end())
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.directions[direction_of(env, id)].sorted.prev(&env.requests, id)
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.directions[direction_of(env, id)].sorted.next(&env.requests, id)
    }

    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        self.directions[direction_of(env, id)].sorted.reinsert(&mut env.requests, id);
    }

    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let fifo = &mut self.directions[direction_of(env, absorbed)].fifo;
        inherit_fifo_place(fifo, &mut env.requests, survivor, absorbed);
        self.remove(env, absorbed);
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let direction = direction_of(env, id);
        let expire_ms = if direction == READ { self.tunables.read_expire_ms } else { self.tunables.write_expire_ms };
        let expire_jiffies = (expire_ms * crate::time::MILLISECOND_NS).div_ceil(env.jiffy_ns);
        env.requests[id].deadline = Time::from_ns((env.jiffies() + expire_jiffies) * env.jiffy_ns);
        let Direction { sorted, fifo } = &mut self.directions[direction];
        sorted.insert(&mut env.requests, id);
        fifo.push_back(env.requests.list_nodes(), id);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        let (direction, id) = match self.next {
            Some(next) if self.batching < self.tunables.fifo_batch => next,
            next => {
                let direction = self.choose_direction()?;
                let oldest = self.directions[direction].fifo.first()?;
                self.batching = 0;
                match next {
                    Some((d, next)) if d == direction && env.requests[oldest].deadline > env.now => (d, next),
                    _ => (direction, oldest),
                }
            }
        };
        self.batching += 1;
        self.next = Some((direction, id));
        self.remove(env, id);
        debug_assert!(self.batching <= self.tunables.fifo_batch.max(1), "a batch ends");
        debug_assert!(self.next.is_none_or(|(direction, next)| direction_of(env, next) == direction));
        Some(id)
    }

    fn check(&self, env: &Env) {
        let sorted: usize = self.directions.iter().map(|d| d.sorted.check(&env.requests)).sum();
        assert_eq!(sorted, env.queued());
        for direction in &self.directions {
            assert_eq!(direction.sorted.is_empty(), direction.fifo.is_empty());
        }
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(&mut self.tunables)
    }
}
