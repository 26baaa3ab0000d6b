//! anticipatory: after a read, the disk waits for a moment at its position, because the same
//! process may read on from there.
//!
//! The rules are those of Linux 2.6.30 and 2.6.32. Sync requests (reads, and writes that a process
//! waits for) and async requests are served in alternating batches, each in sector order. Requests
//! have deadlines. Time is counted in jiffies.
//!
//! - `batch`: the kind of requests that is served, and for how long;
//! - `anticipate`: whether to wait for the last served process;
//! - `process`: the statistics for that decision;
//! - this file: the requests, and the choice of the next one.

mod anticipate;
mod batch;
mod event;
mod process;
mod tunables;

use crate::collections::List;
use crate::context::ContextId;
use crate::decision::{Anticipation, Decision};
use crate::elevator::{Elevator, PerProcess, Registered};
use crate::env::Env;
use crate::layer::Layer;
use crate::parts::head::{BackSeek, Head};
use crate::parts::sorted::{Sorted, inherit_fifo_place};
use crate::request::{Bio, Fifo, RequestId, RequestStage, Sector};
use crate::time::Time;
use crate::tunable::{TunableSet, Tuned};
use batch::Batch;
use event::ReportedEvents;
use process::{Newcomers, ProcessId, Processes};
use tunables::{DECLARATIONS, Tunables};

pub(crate) const REGISTERED: Registered = Registered {
    about: "waits for a reader's next request before it moves the head away; for a slow disk with \
            few readers",
    since: "2.6.30",
    until: Some("2.6.32"),
    layer: Layer::SingleQueue,
    how: &[
        "Sync requests (reads, O_DIRECT and fsync writes) and async requests take turns in \
         batches. Sync requests go first.",
        "While requests of the other kind wait, a sync batch lasts read_batch_expire, and an async batch lasts \
         write_batch_expire. An async batch ends earlier if it has used up its quota of requests.",
        "The quota depends on how long the last async batch kept the device busy.",
        "Within a batch, the request that is nearest to the last request is next. A backward distance counts twice, \
         and may be at most 512 MiB.",
        "A request that has waited read_expire or write_expire goes first.",
        "After a sync request, the scheduler waits up to antic_expire for the next request of the same process, or \
         for a near request of another process.",
        "The scheduler does not wait for a process that has ended, or whose think time is longer than antic_expire. \
         For a new process, the scheduler uses the average think time of earlier processes.",
    ],
    when: "A few sequential readers with short pauses, on one disk without command queueing. Do not use this \
           scheduler for RAID, SSDs, databases, or more than about five readers.",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("anticipatory", &|env| Box::new(Anticipatory::new(env)))
};

/// Limit and cost of backward seeks.
const BACK_SEEK: BackSeek = BackSeek { max_sectors: 1 << 20, penalty: 2 };

const ASYNC: usize = 0;
const SYNC: usize = 1;

/// Queued requests of one kind.
#[derive(Debug, Default)]
struct Direction {
    sorted: Sorted,
    fifo: List<Fifo>,
    /// Next request, if the oldest is not overdue.
    next: Option<RequestId>,
    /// End of the last released request.
    position: Sector,
    /// Jiffy of the last check of the oldest request.
    last_look: u64,
}

impl Direction {
    fn head(&self) -> Head {
        Head { position: self.position, back_seek: BACK_SEEK }
    }

    /// Returns the nearer of the neighbours of `id`.
    fn after(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        let (successor, predecessor) = self.sorted.neighbours(&env.requests, id);
        self.head().nearer(&env.requests, successor, predecessor)
    }

    fn remove(&mut self, env: &mut Env, id: RequestId) {
        self.sorted.remove(&mut env.requests, id);
        self.fifo.remove(env.requests.list_nodes(), id);
    }
}

/// Anticipatory elevator. Times are in jiffies.
pub(crate) struct Anticipatory {
    tunables: Tuned<Tunables>,
    /// Async requests, and sync requests.
    directions: [Direction; 2],
    batch: Batch,
    anticipation: Anticipation,
    /// Process whose sync request was released last, if no other request was released after it.
    awaited: Option<ProcessId>,
    /// Whether that request has completed.
    awaited_is_done: bool,
    /// Time of the completion.
    awaited_since: u64,
    processes: Processes,
    newcomers: Newcomers,
    /// Number of requests that are released and not complete.
    in_flight: u32,
    reported: ReportedEvents,
}

fn kind(env: &Env, id: RequestId) -> usize {
    usize::from(env.requests[id].is_sync())
}

impl Anticipatory {
    fn new(env: &Env) -> Self {
        Self {
            tunables: Tunables::new(env.hz),
            directions: Default::default(),
            batch: Batch::new(env.jiffies(), env.hz),
            anticipation: Anticipation::Off,
            awaited: None,
            awaited_is_done: false,
            awaited_since: 0,
            processes: Processes::default(),
            newcomers: Newcomers::default(),
            in_flight: 0,
            reported: None,
        }
    }

    /// Inserts `id` by sector. Another request that begins at the same sector is released early.
    fn sort(&mut self, env: &mut Env, id: RequestId) {
        let kind = kind(env, id);
        while let Err(other) = self.directions[kind].sorted.insert_alone(&mut env.requests, id) {
            self.release(env, other);
        }
    }

    /// Returns whether the oldest request of a kind is overdue. The
    /// check is done only once per expiry time.
    fn is_overdue(&mut self, env: &Env, kind: usize) -> bool {
        let jiffy = env.jiffies();
        let expire = self.tunables.expire(kind == SYNC);
        let direction = &mut self.directions[kind];
        if jiffy.abs_diff(direction.last_look) < expire {
            return false;
        }
        direction.last_look = jiffy;
        direction.fifo.first().is_some_and(|oldest| tick(env, jiffy) > env.requests[oldest].deadline)
    }

    /// Returns the request to release now, if any.
    fn choose(&mut self, env: &mut Env) -> Option<RequestId> {
        let jiffy = env.jiffies();
        let [writes, reads] = [ASYNC, SYNC].map(|kind| !self.directions[kind].fifo.is_empty());
        if !self.batch.sync && !reads && (self.batch.left == 0 || !writes) {
            self.batch.idled = true;
        }
        if !(reads || writes) || self.is_waiting() || self.batch.changing {
            return None;
        }
        if !(reads && writes && self.batch.is_over(jiffy)) {
            if self.batch.sync && self.tunables.antic_expire > 0 {
                if self.is_overdue(env, SYNC) {
                    return self.directions[SYNC].fifo.first();
                }
                if self.holds_back(env) {
                    return None;
                }
            }
            if let Some(next) = self.directions[usize::from(self.batch.sync)].next {
                if reads && !writes {
                    self.batch.end = jiffy + self.tunables.read_batch_expire;
                }
                return Some(self.oldest_if_overdue(env).unwrap_or(next));
            }
        }
        self.turn(env, reads, writes)
    }

    /// Returns the oldest request of the batch's kind, if it is overdue.
    fn oldest_if_overdue(&mut self, env: &Env) -> Option<RequestId> {
        let kind = usize::from(self.batch.sync);
        if self.is_overdue(env, kind) { self.directions[kind].fifo.first() } else { None }
    }

    /// Starts a new batch. Returns its first request, if the device is empty.
    fn turn(&mut self, env: &Env, reads: bool, writes: bool) -> Option<RequestId> {
        if reads && !(writes && self.batch.sync) {
            self.batch.turn_to_sync();
        } else {
            self.batch.turn_to_async();
        }
        let jiffy = env.jiffies();
        let direction = &mut self.directions[usize::from(self.batch.sync)];
        direction.last_look = jiffy;
        let oldest = direction.fifo.first();
        if self.batch.changing {
            if self.in_flight > 0 {
                return None;
            }
            self.batch.begin(jiffy, &self.tunables);
        }
        oldest
    }

    /// Removes `id`, which is served next.
    fn take_out(&mut self, env: &mut Env, id: RequestId) {
        let process = self.processes.of(env, id);
        let (kind, end) = (kind(env, id), env.requests[id].end());
        self.stop_waiting(env, Anticipation::Off);
        if kind == SYNC {
            self.awaited = Some(process);
        } else {
            self.awaited = None;
            self.batch.left = self.batch.left.saturating_sub(1);
        }
        self.awaited_is_done = false;
        let direction = &mut self.directions[kind];
        direction.position = end;
        direction.next = direction.after(env, id);
        direction.remove(env, id);
        debug_assert_ne!(direction.next, Some(id), "a removed request is not the next request");
        let process = &mut self.processes[process];
        process.queued -= 1;
        process.released += 1;
        self.in_flight += 1;
    }

    fn release(&mut self, env: &mut Env, id: RequestId) {
        self.take_out(env, id);
        env.release_sorted(id, true);
    }
}

/// Returns the start of a jiffy.
fn tick(env: &Env, jiffy: u64) -> Time {
    Time::from_ns(jiffy.saturating_mul(env.jiffy_ns))
}

impl Elevator for Anticipatory {
    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        // Linux searches requests of the wrong kind: a write finds sync requests, and can join
        // writes among them. A read finds async requests, and cannot join them.
        let kind = if bio.op.is_write() { SYNC } else { ASYNC };
        self.directions[kind].sorted.find(&env.requests, bio.end())
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.directions[kind(env, id)].sorted.prev(&env.requests, id)
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.directions[kind(env, id)].sorted.next(&env.requests, id)
    }

    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        self.directions[kind(env, id)].sorted.remove(&mut env.requests, id);
        self.sort(env, id);
        self.tell(env);
    }

    fn absorb(&mut self, env: &mut Env, survivor: RequestId, absorbed: RequestId) {
        let process = self.processes.of(env, absorbed);
        let kind = kind(env, absorbed);
        let direction = &mut self.directions[kind];
        inherit_fifo_place(&mut direction.fifo, &mut env.requests, survivor, absorbed);
        if direction.next == Some(absorbed) {
            direction.next = direction.after(env, absorbed);
        }
        direction.remove(env, absorbed);
        self.processes[process].queued -= 1;
        if kind == SYNC {
            self.processes[process].completed(env.jiffies());
        }
        self.tell(env);
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let kind = kind(env, id);
        let process = self.processes.enter(env.requests[id].context, &mut self.awaited);
        if kind == SYNC {
            self.account(env, process, id);
        }
        self.processes[process].queued += 1;
        self.sort(env, id);
        env.requests[id].deadline = tick(env, env.jiffies() + self.tunables.expire(kind == SYNC));
        let direction = &mut self.directions[kind];
        direction.fifo.push_back(env.requests.list_nodes(), id);
        direction.next = direction.head().nearer(&env.requests, Some(id), direction.next);
        self.meet(env, id);
        self.tell(env);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if let Some(id) = self.choose(env) {
            self.release(env, id);
        }
        self.tell(env);
        None
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.stop_waiting(env, Anticipation::Off);
        let id = [SYNC, ASYNC].into_iter().find_map(|kind| {
            let direction = &self.directions[kind];
            direction.next.or_else(|| direction.sorted.first())
        })?;
        self.take_out(env, id);
        self.tell(env);
        Some(id)
    }

    fn start(&mut self, env: &mut Env, id: RequestId) {
        let process = self.processes.of(env, id);
        self.processes[process].released -= 1;
    }

    fn requeue(&mut self, env: &mut Env, id: RequestId) {
        let process = self.processes.of(env, id);
        self.processes[process].released += 1;
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        let jiffy = env.jiffies();
        let (process, sync) = (self.processes.of(env, id), env.requests[id].is_sync());
        if self.batch.changing && self.in_flight == 1 {
            self.batch.drained(jiffy, &self.tunables);
        }
        self.in_flight -= 1;
        if self.batch.new && sync == self.batch.sync {
            self.batch.first_completed(jiffy, &self.tunables);
        }
        if self.awaited == Some(process) {
            self.awaited_completed(env);
        }
        if sync {
            self.processes[process].completed(jiffy);
        }
        self.tell(env);
    }

    fn timer(&mut self, env: &mut Env) {
        env.note(|| Decision::IdleFire);
        self.waited_in_vain();
        self.tell(env);
    }

    fn recording(&mut self, env: &mut Env) {
        self.reported = None;
        self.tell(env);
    }

    fn check(&self, env: &Env) {
        let sorted: usize = self.directions.iter().map(|direction| direction.sorted.check(&env.requests)).sum();
        assert_eq!(sorted, env.queued());
        for direction in &self.directions {
            assert_eq!(direction.sorted.is_empty(), direction.fifo.is_empty());
            // There may be no next request after a front merge: another request at the same sector
            // was next and has been released.
            assert!(direction.next.is_none_or(|next| env.requests[next].stage == RequestStage::Queued));
        }
        let count = |stage| {
            env.requests.ids().filter(|&id| env.requests[id].in_elevator && env.requests[id].stage == stage).count()
        };
        assert_eq!(self.processes.sums(), (count(RequestStage::Queued), count(RequestStage::Released)));
        assert_eq!(self.in_flight as usize, count(RequestStage::Released) + count(RequestStage::Started));
        assert_eq!(env.timer.is_some(), self.anticipation == Anticipation::WaitNext);
        assert!(self.awaited.is_some() || !self.is_waiting());
        assert!(!self.batch.changing || self.in_flight > 0, "a batch waits for something");
    }

    fn tunables(&self) -> Option<&dyn TunableSet> {
        Some(&self.tunables)
    }

    fn tunables_mut(&mut self) -> Option<&mut dyn TunableSet> {
        Some(&mut self.tunables)
    }

    fn per_process(&mut self) -> Option<&mut dyn PerProcess> {
        Some(self)
    }
}

impl PerProcess for Anticipatory {
    fn exit(&mut self, _env: &mut Env, context: ContextId) {
        self.processes.exit(context);
    }
}
