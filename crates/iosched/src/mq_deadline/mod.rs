//! mq-deadline: batches in sector order, reads before writes, three priority classes, and a
//! deadline for each request.
//!
//! The rules are those of Linux 6.12, or of the version that the queue is created for ([`rules`]).
//! Ages are counted in jiffies. Position, order and age are stored for each class. All classes
//! share the batch, its direction and the count of read batches. Therefore a check of one class may
//! end the batch of another class, even if the check finds no request.

mod rules;
mod tunables;

use crate::collections::List;
use crate::context::IoClass;
use crate::decision::{Decision, MqDeadlineChoice};
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::{Layer, MultiQueueRules};
use crate::parts::sorted::{Sorted, inherit_fifo_place};
use crate::request::{Bio, Fifo, RequestId, Sector};
use crate::time::Time;
use crate::tunable::{TunableSet, Tuned};
use rules::{Classes, Limit, Onward, Rules};
use tunables::{DECLARATIONS, Tunables};

pub(crate) const REGISTERED: Registered = Registered {
    about: "deadline for blk-mq: serves batches in sector order, prefers reads, limits the waiting time, and uses \
         ionice classes",
    since: "4.11",
    until: None,
    layer: Layer::MultiQueue(MultiQueueRules::USUAL),
    how: &[
        "Reads and writes of each class (real time, best effort, idle) are separate. Each kind is \
         sorted by sector, and also by age.",
        "A batch has up to fifo_batch requests, all reads or all writes, in sector order. The next batch continues \
         where the last batch ended.",
        "If the oldest request is past its deadline (read_expire, write_expire), the batch begins with this request.",
        "Reads go first. But if writes also wait, one batch of writes follows after writes_starved batches of reads.",
        "mq-deadline serves a lower class if the higher classes have no requests waiting or in the device.",
        "mq-deadline also serves requests of a lower class that are older than prio_aging_expire.",
        "async_depth limits the tags for all requests except reads.",
    ],
    when: "Databases and servers on a disk or a SATA SSD that need throughput and a limited waiting time, but no \
           fairness between processes.",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("mq-deadline", &|env| Box::new(MqDeadline::new(env)))
};

const CLASSES: usize = 3;
const BEST_EFFORT: usize = 1;
const IDLE: usize = 2;
const READ: usize = 0;
const WRITE: usize = 1;

/// Queued requests of one class and direction.
#[derive(Debug, Default)]
struct Direction {
    sorted: Sorted,
    fifo: List<Fifo>,
    /// First sector of the last dispatched request.
    position: Sector,
    /// Request that continues the batch, unless the position determines it.
    next: Option<RequestId>,
}

/// State of one class.
#[derive(Debug, Default)]
struct Class {
    directions: [Direction; 2],
    /// Requests that were inserted at the head, oldest first. If all classes share one list, it is
    /// the list of the first class.
    head: List<Fifo>,
    /// Number of requests that are inserted and not complete.
    under_way: u32,
}

struct MqDeadline {
    tunables: Tuned<Tunables>,
    rules: Rules,
    classes: [Class; CLASSES],
    /// Direction of the present batch.
    direction: usize,
    /// Number of requests dispatched in the present batch.
    batch: u32,
    /// Number of read batches that were chosen while writes waited.
    starved: u32,
}

fn class_of(class: IoClass) -> usize {
    match class {
        IoClass::RealTime => 0,
        IoClass::None | IoClass::BestEffort => BEST_EFFORT,
        IoClass::Idle => IDLE,
    }
}

/// Returns the jiffy of a request's deadline.
#[inline]
fn deadline(env: &Env, id: RequestId) -> u64 {
    env.requests[id].deadline.as_ns()
}

impl MqDeadline {
    fn new(env: &Env) -> Self {
        Self {
            tunables: Tunables::new(env.hz),
            rules: Rules::of(env.kernel),
            classes: Default::default(),
            direction: WRITE,
            batch: 0,
            starved: 0,
        }
    }

    #[inline]
    fn class_of(&self, class: IoClass) -> usize {
        if self.rules.classes == Classes::None { BEST_EFFORT } else { class_of(class) }
    }

    /// Returns the class and direction of a request.
    #[inline]
    fn place(&self, env: &Env, id: RequestId) -> (usize, usize) {
        let request = &env.requests[id];
        (self.class_of(request.ioprio.class), usize::from(request.op.is_write()))
    }

    #[inline]
    fn direction_of(&mut self, env: &Env, id: RequestId) -> &mut Direction {
        let (class, direction) = self.place(env, id);
        &mut self.classes[class].directions[direction]
    }

    /// Removes the first request that was inserted at the head of `class`, and moves the position
    /// of its direction.
    fn pop_head(&mut self, env: &mut Env, class: usize) -> Option<RequestId> {
        let id = self.classes[class].head.first()?;
        self.classes[class].head.remove(env.requests.list_nodes(), id);
        let sector = env.requests[id].sector;
        self.direction_of(env, id).position = sector;
        Some(id)
    }

    fn remove(&mut self, env: &mut Env, id: RequestId) {
        let Direction { sorted, fifo, .. } = self.direction_of(env, id);
        sorted.remove(&mut env.requests, id);
        fifo.remove(env.requests.list_nodes(), id);
        debug_assert_eq!(sorted.is_empty(), fifo.is_empty(), "each sorted request is also in the FIFO");
    }

    /// Chooses the direction of a new batch in `class`; `None` if the class has no requests.
    fn choose_direction(&mut self, class: usize) -> Option<usize> {
        let [reads, writes] = [READ, WRITE].map(|d| !self.classes[class].directions[d].fifo.is_empty());
        let write = match (reads, writes) {
            (false, false) => return None,
            (true, true) => {
                let passed_over = self.starved;
                self.starved = self.starved.wrapping_add(1);
                // A negative limit becomes larger than every count.
                passed_over >= self.tunables.writes_starved as u32
            }
            (reads, _) => !reads,
        };
        if write {
            self.starved = 0;
        }
        Some(usize::from(write))
    }

    /// Returns the request of `class` to dispatch, if it was inserted at `latest` (in jiffies) or
    /// before. This check may end the present batch.
    fn pick(&mut self, env: &mut Env, class: usize, latest: i64) -> Option<RequestId> {
        if let Some(id) = self.classes[class].head.first() {
            let is_old = deadline(env, id) as i64 <= latest;
            return if is_old { self.pop_head(env, class) } else { None };
        }
        let by_position = self.rules.onward == Onward::Position;
        let onward = |direction: &Direction| match by_position {
            true => direction.sorted.at_or_after(&env.requests, direction.position),
            false => direction.next,
        };
        let next = onward(&self.classes[class].directions[self.direction]);
        let id = match next {
            Some(next) if self.batch < self.tunables.fifo_batch => next,
            _ => {
                let chosen = self.choose_direction(class)?;
                let direction = &self.classes[class].directions[chosen];
                let oldest = direction.fifo.first()?;
                (self.direction, self.batch) = (chosen, 0);
                if deadline(env, oldest) <= env.jiffies() { oldest } else { onward(direction).unwrap_or(oldest) }
            }
        };
        let expire = self.tunables.expire(self.direction == WRITE);
        if deadline(env, id) as i64 - expire as i64 > latest {
            return None;
        }
        self.batch += 1;
        let direction = &mut self.classes[class].directions[self.direction];
        direction.position = env.requests[id].sector;
        if !by_position {
            direction.next = direction.sorted.next(&env.requests, id);
            if self.rules.onward == Onward::Forgotten {
                self.classes[class].directions[1 - self.direction].next = None;
            }
        }
        self.remove(env, id);
        debug_assert!(self.batch <= self.tunables.fifo_batch.max(1), "a batch ends");
        debug_assert!(self.classes[class].under_way > 0, "a dispatched request is in the count of its class");
        Some(id)
    }

    fn choose(&mut self, env: &mut Env) -> Option<RequestId> {
        if self.rules.shares_head
            && let Some(id) = self.pop_head(env, 0)
        {
            return Some(id);
        }
        if self.rules.classes != Classes::Aging {
            return (0..CLASSES).find_map(|class| self.pick(env, class, i64::MAX));
        }
        let now = env.jiffies() as i64;
        if self.classes.iter().filter(|class| class.under_way > 0).count() >= 2 {
            let latest = now - self.tunables.prio_aging_expire as i64;
            if let Some(id) = self.pick(env, BEST_EFFORT, latest).or_else(|| self.pick(env, IDLE, latest)) {
                return Some(id);
            }
        }
        for class in 0..CLASSES {
            let picked = self.pick(env, class, now);
            if picked.is_some() || self.classes[class].under_way > 0 {
                return picked;
            }
        }
        None
    }
}

impl Elevator for MqDeadline {
    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        if !self.tunables.front_merges {
            return None;
        }
        let class = self.class_of(env.bio_ioprio.class);
        self.classes[class].directions[usize::from(bio.op.is_write())].sorted.find(&env.requests, bio.end())
    }

    fn limit_depth(&mut self, env: &Env, bio: &Bio, nr_requests: u32) -> Option<u32> {
        let depth = self.tunables.async_depth;
        match self.rules.limit {
            _ if !bio.op.is_write() => None,
            Limit::None => None,
            Limit::Plain => Some(depth),
            Limit::Shared => Some(env.limit_word.map_or(depth, |word| {
                (u64::from(depth) * u64::from(word)).div_ceil(nr_requests.max(1).into()).min(word.into()) as u32
            })),
        }
    }

    fn resized(&mut self, nr_requests: u32) {
        let three_quarters = (u64::from(nr_requests) * 3 / 4).max(1) as u32;
        self.tunables.resized(if self.rules.starts_at_three_quarters { three_quarters } else { nr_requests });
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let (class, direction) = self.place(env, id);
        self.classes[class].directions[direction].sorted.prev(&env.requests, id)
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let (class, direction) = self.place(env, id);
        self.classes[class].directions[direction].sorted.next(&env.requests, id)
    }

    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        self.direction_of(env, id).sorted.reinsert(&mut env.requests, id);
    }

    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let Direction { sorted, fifo, next, .. } = self.direction_of(env, absorbed);
        inherit_fifo_place(fifo, &mut env.requests, survivor, absorbed);
        if *next == Some(absorbed) {
            *next = sorted.next(&env.requests, absorbed);
        }
        self.remove(env, absorbed);
        self.complete(env, absorbed);
    }

    fn absorb_new(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        self.complete(env, absorbed);
    }

    #[inline]
    fn prepare(&mut self, env: &mut Env, id: RequestId) {
        let (class, _) = self.place(env, id);
        self.classes[class].under_way += 1;
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let (class, direction) = self.place(env, id);
        let late = env.jiffies() + self.tunables.expire(direction == WRITE);
        env.requests[id].deadline = Time::from_ns(late);
        let Direction { sorted, fifo, .. } = &mut self.classes[class].directions[direction];
        sorted.insert(&mut env.requests, id);
        fifo.push_back(env.requests.list_nodes(), id);
    }

    fn insert_at_head(&mut self, env: &mut Env, id: RequestId) {
        let class = if self.rules.shares_head { 0 } else { self.place(env, id).0 };
        env.requests[id].deadline = Time::from_ns(env.jiffies());
        self.classes[class].head.push_back(env.requests.list_nodes(), id);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        let chosen = self.choose(env);
        env.note(|| {
            Decision::MqDeadline(MqDeadlineChoice {
                given: chosen.is_some(),
                batch: self.batch,
                starved: self.starved,
                writes: self.direction == WRITE,
                under_way: [0, 1, 2].map(|class: usize| self.classes[class].under_way),
            })
        });
        chosen
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        (0..CLASSES).find_map(|class| self.pick(env, class, i64::MAX))
    }

    fn start(&mut self, env: &mut Env, id: RequestId) {
        let sector = env.requests[id].sector;
        self.direction_of(env, id).position = sector;
    }

    #[inline]
    fn complete(&mut self, env: &mut Env, id: RequestId) {
        let (class, _) = self.place(env, id);
        self.classes[class].under_way -= 1;
    }

    fn check(&self, env: &Env) {
        let mut queued = 0;
        for class in &self.classes {
            let mut of_class = 0;
            for Direction { sorted, fifo, .. } in &class.directions {
                of_class += sorted.check(&env.requests);
                assert_eq!(sorted.is_empty(), fifo.is_empty());
            }
            assert!(of_class <= class.under_way as usize, "queued requests are in flight");
            queued += of_class;
        }
        let has_head = self.classes.iter().any(|class| !class.head.is_empty());
        assert!(
            if has_head { queued < env.queued() } else { queued == env.queued() },
            "all other requests are in the list of the head"
        );
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(&mut self.tunables)
    }
}
