//! cfq-2.6.16: the first CFQ with time slices.
//!
//! The rules are those of Linux 2.6.16. (Versions 2.6.13 to 2.6.15 drain the device between two
//! queues; 2.6.16 does not drain it.) Each process has one queue for all its requests. Queues take
//! turns by level, and CFQ idles for an active queue that becomes empty. This elevator shares ideas
//! with its successors but few rules, so it is separate from their family. Time is counted in
//! jiffies.
//!
//! - `rounds`: the order of queues;
//! - `turn`: the active queue, the length of its turn, and idling;
//! - `process`: the queue of each request, and its priority;
//! - `queue`: queues, and the choice of their next requests;
//! - this file: the life of requests.

mod event;
mod process;
mod queue;
mod rounds;
mod tunables;
mod turn;

use crate::context::ContextId;
use crate::elevator::{Elevator, PerProcess, Registered};
use crate::env::Env;
use crate::layer::Layer;
use crate::request::{Bio, RequestId, RequestStage};
use crate::tunable::{TunableSet, Tuned};
use process::Process;
use queue::{Queue, QueueId, Queues};
use rounds::Rounds;
use tunables::{DECLARATIONS, Tunables};
use turn::Timers;

pub(crate) const REGISTERED: Registered = Registered {
    about: "the first CFQ with time slices; for comparisons with later versions and for old experiments",
    since: "2.6.16",
    until: Some("2.6.16"),
    layer: Layer::SingleQueue,
    how: &[
        "Each process has one queue for all its requests. Async writers with the same ioprio share a queue.",
        "Queues of one level take turns. Level 0 gets turns first, then levels 0 and 1, then levels 0 to 2, and so \
         on. The real-time class has no precedence. The idle class waits until the disk has been quiet for 100 ms.",
        "A queue gets its next turn only after its requests in flight are complete.",
        "The active queue sends up to `quantum` requests together. Sync requests go before async requests. Within \
         each kind, the lowest sector goes first.",
        "Once in each turn, the oldest request goes first if it has waited fifo_expire_sync or \
         fifo_expire_async.",
        "A slice lasts slice_sync or slice_async, scaled by level. An async slice has at most 2 * \
         slice_async_rq * (8 - level) requests.",
        "If a queue becomes empty within its slice, the scheduler waits for the next request of the queue \
         (slice_idle). If the think time of the process is longer than slice_idle, the scheduler does not wait.",
        "If the scheduler does not wait for a queue, this queue gets a turn only while the device has fewer than \
         max_depth requests.",
    ],
    when: "Comparisons with experiments on Linux 2.6.16. On a device with command \
           queueing, small requests of many processes are slow: see max_depth.",
    tunables: || DECLARATIONS.specs().collect(),
    ..Registered::new("cfq-2.6.16", &|env| Box::new(Cfq2616::new(env)))
};

/// CFQ of Linux 2.6.16. Times are in jiffies.
pub(crate) struct Cfq2616 {
    tunables: Tuned<Tunables>,
    processes: Vec<Option<Process>>,
    queues: Queues,
    rounds: Rounds,
    active: Option<QueueId>,
    /// Whether the process of this turn's first request had exited when the request was released.
    /// It is `None` before the first request.
    active_process_exited: Option<bool>,
    /// Number of requests released in this turn.
    released: u64,
    timers: Timers,
    /// Last completion of a request of a class other than idle.
    last_completion: u64,
    /// Number of requests in the device.
    in_driver: u32,
    reported: event::ReportedQueues,
}

impl Cfq2616 {
    fn new(env: &Env) -> Self {
        Self {
            tunables: Tunables::new(env.hz),
            processes: Vec::new(),
            queues: Queues::default(),
            rounds: Rounds::default(),
            active: None,
            active_process_exited: None,
            released: 0,
            timers: Timers::default(),
            last_completion: 0,
            in_driver: 0,
            reported: event::ReportedQueues::default(),
        }
    }

    /// Inserts `id` by sector. Another request that begins at the same sector is released early.
    fn sort(&mut self, env: &mut Env, id: RequestId) {
        let queue = Self::queue_of(env, id);
        while let Err(other) = self.queues[queue].sorted.insert_alone(&mut env.requests, id) {
            self.release(env, other);
        }
        if self.queues[queue].list.is_none() {
            self.rounds.enter(&mut self.queues, queue);
        }
        let next = self.queues[queue].next;
        self.queues[queue].next = Queue::better(env, next, Some(id));
    }

    /// Removes `id`, which is served next.
    fn take_out(&mut self, env: &mut Env, id: RequestId) {
        let sync = env.requests[id].is_sync();
        let number = Self::queue_of(env, id);
        let queue = &mut self.queues[number];
        queue.next = queue.after(env, id);
        queue.in_flight[usize::from(sync)] += 1;
        self.remove(env, number, id);
    }

    /// Removes `id` from its queue.
    fn remove(&mut self, env: &mut Env, number: QueueId, id: RequestId) {
        let queue = &mut self.queues[number];
        queue.fifo.remove(env.requests.list_nodes(), id);
        queue.sorted.remove(&mut env.requests, id);
        if !self.queues[number].has_requests() {
            self.rounds.leave(&mut self.queues, number);
        }
    }

    fn release(&mut self, env: &mut Env, id: RequestId) {
        self.take_out(env, id);
        env.release_sorted(id, false);
    }

    /// Checks at a sync request of `context` whether idling for its queue is worthwhile.
    fn think(&mut self, env: &Env, context: ContextId) {
        let slice_idle = self.tunables.slice_idle;
        let Some(process) = self.process_mut(context) else { return };
        process.think_time.sample(env.jiffies(), slice_idle);
        let (queue, think_time) = (process.queue, process.think_time);
        let queue = &mut self.queues[queue];
        if env.contexts.get(context).exited || slice_idle == 0 {
            queue.idle_window = false;
        } else if think_time.is_valid() {
            queue.idle_window = !think_time.is_longer_than(slice_idle);
        }
    }
}

impl Elevator for Cfq2616 {
    fn find_front(&mut self, env: &mut Env, bio: &Bio) -> Option<RequestId> {
        let queue = self.process_mut(bio.context)?.queue;
        let queue = Some(&self.queues[queue]).filter(|queue| queue.sync)?;
        queue.sorted.find(&env.requests, bio.end())
    }

    fn former(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queues[Self::queue_of(env, id)].sorted.prev(&env.requests, id)
    }

    fn latter(&self, env: &Env, id: RequestId) -> Option<RequestId> {
        self.queues[Self::queue_of(env, id)].sorted.next(&env.requests, id)
    }

    fn merged_front(&mut self, env: &mut Env, id: RequestId) {
        // From now on, the search finds this request first among requests with the same end. A
        // merge at the end of a request has the same effect.
        let end = env.requests[id].end();
        env.merging.hash.remove(&mut env.requests, id, end);
        env.merging.hash.insert(&mut env.requests, id);
        self.queues[Self::queue_of(env, id)].sorted.remove(&mut env.requests, id);
        self.sort(env, id);
        self.tell(env);
    }

    fn absorb(&mut self, env: &mut Env, _survivor: RequestId, absorbed: RequestId) {
        let number = Self::queue_of(env, absorbed);
        let queue = &mut self.queues[number];
        if queue.next == Some(absorbed) {
            queue.next = queue.after(env, absorbed);
        }
        queue.requests -= 1;
        self.remove(env, number, absorbed);
        self.retire(env, number);
        self.tell(env);
    }

    fn prepare(&mut self, env: &mut Env, id: RequestId) {
        self.boost(env, id);
        let queue = self.queue_for(env, id);
        self.queues[queue].requests += 1;
        env.requests[id].elevator = crate::collections::Id::number(queue);
    }

    fn insert(&mut self, env: &mut Env, id: RequestId) {
        let number = Self::queue_of(env, id);
        self.sort(env, id);
        self.queues[number].fifo.push_back(env.requests.list_nodes(), id);
        if env.requests[id].is_sync() {
            self.think(env, env.requests[id].context);
            self.meet(env, number);
        }
        self.tell(env);
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        self.attempt(env);
        self.tell(env);
        None
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        if let Some(active) = self.active {
            self.expire(env, active, false);
        }
        let queue = &self.queues[self.rounds.any()?];
        let id = queue.next.or_else(|| queue.sorted.first())?;
        self.take_out(env, id);
        self.tell(env);
        Some(id)
    }

    fn start(&mut self, _env: &mut Env, _id: RequestId) {
        self.in_driver += 1;
    }

    fn requeue(&mut self, _env: &mut Env, _id: RequestId) {
        self.in_driver -= 1;
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        let number = Self::queue_of(env, id);
        let (context, sync, jiffy) = (env.requests[id].context, env.requests[id].is_sync(), env.jiffies());
        self.in_driver -= 1;
        let queue = &mut self.queues[number];
        queue.in_flight[usize::from(sync)] -= 1;
        queue.requests -= 1;
        if !queue.is_idle_class() {
            self.last_completion = jiffy;
        }
        if queue.in_flight() == 0 && queue.list.is_some() {
            queue.last_service = jiffy;
            self.rounds.file(&mut self.queues, number, false);
        }
        if sync && let Some(process) = self.process_mut(context) {
            process.think_time.completed(jiffy);
        }
        self.retire(env, number);
        self.tell(env);
    }

    fn timer(&mut self, env: &mut Env) {
        self.fire(env);
        self.tell(env);
    }

    /// Returns whether a queue has requests. Without requests, a run of the queue would do nothing.
    fn runs_after_timer(&self) -> bool {
        !self.rounds.is_empty()
    }

    fn recording(&mut self, env: &mut Env) {
        self.tell_anew(env);
    }

    fn check(&self, env: &Env) {
        self.rounds.check(&self.queues);
        let mut queued = 0;
        for number in self.queues.ids() {
            let queue = &self.queues[number];
            let count = |stages: &[RequestStage], sync: bool| {
                let requests = env.requests.ids().map(|id| (id, &env.requests[id]));
                let of_queue = requests.filter(|(id, rq)| rq.in_elevator && Self::queue_of(env, *id) == number);
                of_queue.filter(|(_, rq)| stages.contains(&rq.stage) && rq.is_sync() == sync).count()
            };
            let sorted = queue.sorted.check(&env.requests);
            assert_eq!(sorted, count(&[RequestStage::Queued], false) + count(&[RequestStage::Queued], true));
            assert_eq!(queue.next.is_some(), sorted > 0, "a queue with sorted requests has a next request");
            assert_eq!(queue.fifo.is_empty(), sorted == 0);
            let in_flight = [false, true].map(|sync| count(&[RequestStage::Released, RequestStage::Started], sync));
            assert_eq!(queue.in_flight.map(|count| count as usize), in_flight);
            let all = [RequestStage::Held, RequestStage::Queued, RequestStage::Released, RequestStage::Started];
            assert_eq!(queue.requests as usize, count(&all, false) + count(&all, true));
            let processes = self.processes.iter().flatten().filter(|process| process.queue == number).count();
            assert_eq!(queue.processes as usize, processes);
            assert!(queue.processes > 0 || queue.requests > 0, "each queue belongs to a process");
            queued += sorted;
        }
        assert_eq!(queued, env.queued());
        assert_eq!(env.timer, self.timers.next());
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

impl PerProcess for Cfq2616 {
    fn exit(&mut self, env: &mut Env, context: ContextId) {
        // The next step reports the change, as in the recorded runs.
        self.exit_process(env, context);
    }

    fn ioprio_changed(&mut self, env: &mut Env, context: ContextId) {
        self.change_priority(env, context);
    }
}
