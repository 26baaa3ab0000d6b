//! An elevator without its queue. The command `cargo xtask cost` uses this module to measure the
//! cost of the elevator itself. The elevator has only its view of the queue (`Env`) and the merge
//! hash.
//! This module makes the same calls of the elevator as [`RequestQueue`](crate::RequestQueue), in
//! the same order, and updates the state that these calls read. It has no limits and tags,
//! statistics, bios, plugs, flushes, switching or decision events. It calls
//! [`Elevator::limit_depth`], which is part of the elevator, but ignores the result. The measuring
//! program creates requests once and reuses them. There is one hardware queue, and all requests are
//! reads and writes.
//!
//! Only the measurement needs this module. It exists with the feature `bare`,
//! and its interface may change at any time.

use std::hint::black_box;

use crate::context::{CgroupId, ContextId, IoPriority};
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::layer::{Layer, Merging, MultiQueueRules};
use crate::queue::QueueConfig;
use crate::request::{Bio, Request, RequestId, RequestStage};
use crate::time::Time;

/// Elevator without a queue.
pub struct Bare {
    env: Env,
    elevator: Box<dyn Elevator>,
    /// Rules of the multi-queue layer, if the elevator runs there.
    rules: Option<MultiQueueRules>,
    nr_requests: u32,
    looks_up: bool,
    /// Number of lookups that found a request to merge with. A measured load has no such lookups.
    met: u64,
}

impl Bare {
    /// Creates the elevator `registered` at the time `now` for the device of `config`, with
    /// `nr_requests` tags. `looks_up` tells whether each new request causes a search for a request
    /// to merge with: `true` is like `nomerges` 0, and `false` is like `nomerges` 2.
    #[must_use]
    pub fn new(now: Time, config: &QueueConfig, registered: Registered, nr_requests: u32, looks_up: bool) -> Self {
        let mut env = Env::new(now, config.hz, config.rotational, config.groups);
        env.command_queueing = config.command_queueing;
        env.cgroups.weights = registered.weights;
        let mut elevator = (registered.build)(&env);
        let rules = match registered.layer {
            Layer::SingleQueue => None,
            Layer::MultiQueue(rules) => {
                elevator.resized(nr_requests);
                Some(rules)
            }
        };
        Self { env, elevator, rules, nr_requests, looks_up, met: 0 }
    }

    /// Creates an io context for a new process.
    pub fn create_context(&mut self, pid: u32, ioprio: IoPriority, cgroup: CgroupId) -> ContextId {
        self.env.contexts.create(pid, ioprio, cgroup)
    }

    /// Creates a slot for one request at a time.
    pub fn create_request(&mut self, bio: &Bio) -> RequestId {
        let id = self.env.requests.allocate(self.env.now, bio);
        let request = &mut self.env.requests[id];
        (request.in_elevator, request.stage) = (true, RequestStage::Free);
        id
    }

    /// Turns the unused slot `id` into a new request for `bio` at the time `now`.
    #[inline]
    pub fn renew(&mut self, now: Time, id: RequestId, bio: &Bio) {
        self.env.now = now;
        let context = self.env.contexts.get(bio.context);
        let request = &mut self.env.requests[id];
        debug_assert_eq!(request.stage, RequestStage::Free, "a slot holds one request at a time");
        (request.ioprio, request.cgroup) = (context.ioprio, context.cgroup);
        (request.sector, request.nr_sectors) = (bio.sector, bio.nr_sectors);
        (request.op, request.flags, request.context) = (bio.op, bio.flags, bio.context);
        request.allocated = now;
        request.mergeable = true;
    }

    /// Inserts `id`, which was renewed for `bio`, into the elevator. The host then dispatches if
    /// [`take_kick`](Self::take_kick) returns `true`.
    #[inline]
    pub fn insert(&mut self, id: RequestId, bio: &Bio) {
        match self.rules {
            None => {
                if self.looks_up {
                    self.met += u64::from(self.look_up(bio, None));
                }
                self.env.enqueue(id);
                self.elevator.add(&mut self.env, id);
            }
            Some(rules) => self.insert_multi(&rules, id, bio),
        }
    }

    #[inline(never)]
    fn insert_multi(&mut self, rules: &MultiQueueRules, id: RequestId, bio: &Bio) {
        self.env.bio_ioprio = self.env.contexts.get(bio.context).ioprio;
        if self.looks_up {
            let found = match rules.merging {
                Merging::Queue => self.look_up(bio, Some(rules)),
                Merging::Own => self.elevator.find_merge(&mut self.env, bio).is_some(),
            };
            self.met += u64::from(found);
        }
        black_box(self.elevator.limit_depth(&self.env, bio, self.nr_requests));
        self.elevator.prepare(&mut self.env, id);
        match rules.merging {
            Merging::Queue => {
                if self.looks_up {
                    self.met += u64::from(self.look_up_new(id));
                }
                self.env.enqueue(id);
            }
            Merging::Own => {
                self.env.requests[id].stage = RequestStage::Queued;
                self.env.queued += 1;
            }
        }
        self.elevator.insert(&mut self.env, id);
    }

    /// Returns whether `bio` may join a queued request: the request merged last, a request that
    /// ends where the bio begins, or a request that begins where the bio ends.
    #[inline]
    fn look_up(&mut self, bio: &Bio, rules: Option<&MultiQueueRules>) -> bool {
        if let Some(last) = self.env.merging.last {
            let is_adjacent = self.env.requests[last].adjacent(bio).is_some();
            // The multi-queue layer asks the elevator for permission before it checks adjacency.
            // The question has side effects in bfq.
            let is_asked = rules.is_some() || is_adjacent;
            let may_join = is_asked && self.may_join(bio, last, rules);
            if may_join && is_adjacent {
                return true;
            }
        }
        if let Some(behind) = self.env.merging.hash.find(&self.env.requests, bio.sector)
            && self.may_join(bio, behind, rules)
        {
            return true;
        }
        let front = self.elevator.find_front(&mut self.env, bio);
        front.is_some_and(|front| self.may_join(bio, front, rules))
    }

    #[inline]
    fn may_join(&mut self, bio: &Bio, into: RequestId, rules: Option<&MultiQueueRules>) -> bool {
        let request = &self.env.requests[into];
        let is_compatible = match rules {
            Some(rules) => rules.may_join(&self.env, bio, into),
            None => request.mergeable && request.op == bio.op,
        };
        is_compatible && self.elevator.may_merge(&mut self.env, bio, into)
    }

    /// Returns whether `new` continues the request merged last, or another queued request.
    #[inline]
    fn look_up_new(&mut self, new: RequestId) -> bool {
        let request = &self.env.requests[new];
        let (sector, op) = (request.sector, request.op);
        let is_met = |id: RequestId| {
            let before = &self.env.requests[id];
            before.end() == sector && before.op == op && before.mergeable
        };
        self.env.merging.last.is_some_and(is_met)
            || self.env.merging.hash.find(&self.env.requests, sector).is_some_and(is_met)
    }

    /// Returns whether the elevator requires a run of the queue
    /// before anything else, and clears the flag.
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.env.kick)
    }

    /// Returns the request that the device takes next. The device must have room.
    #[inline]
    pub fn dispatch(&mut self, now: Time) -> Option<RequestId> {
        self.env.now = now;
        let id = match self.next_released() {
            Some(id) => id,
            // The multi-queue layer calls the elevator only if it has requests.
            None if self.rules.is_some() && self.env.queued == 0 => return None,
            None => match self.elevator.dispatch(&mut self.env) {
                Some(id) => {
                    self.env.unqueue(id);
                    id
                }
                None if self.env.dispatch_list.is_empty() => return None,
                None => self.next_released()?,
            },
        };
        let request = &mut self.env.requests[id];
        request.stage = RequestStage::Started;
        self.env.dispatch_list.taken_end = request.end();
        Some(id)
    }

    #[inline]
    fn next_released(&mut self) -> Option<RequestId> {
        let id = self.env.dispatch_list.pop(&mut self.env.requests)?;
        self.elevator.start(&mut self.env, id);
        Some(id)
    }

    /// Completes `id`. Its slot can be reused.
    #[inline]
    pub fn complete(&mut self, now: Time, id: RequestId) {
        self.env.now = now;
        self.elevator.complete(&mut self.env, id);
        self.env.requests[id].stage = RequestStage::Free;
    }

    /// Returns when the host must call [`timer`](Self::timer), if at all.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.env.timer
    }

    /// Handles a due timer.
    pub fn timer(&mut self, now: Time) {
        self.env.now = now;
        if self.env.timer.is_some_and(|at| at <= now) {
            self.env.timer = None;
            self.elevator.timer(&mut self.env);
        }
    }

    /// Returns the number of requests in the elevator.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.env.queued
    }

    /// Returns the request in the slot `id`.
    #[inline]
    #[must_use]
    pub fn request(&self, id: RequestId) -> &Request {
        &self.env.requests[id]
    }

    /// Checks that the elevator's counters agree with its
    /// contents, and that no lookup found a request.
    ///
    /// # Panics
    /// If a check fails.
    pub fn check(&self) {
        assert_eq!(self.met, 0, "the measured load has nothing to merge");
        self.elevator.check(&self.env);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{RequestQueue, Submit};
    use crate::registry::Registry;
    use crate::request::{Flags, Op};

    const BEGIN: Time = Time::from_ns(1_000_000_000_000);
    const TASKS: usize = 12;
    const QUEUED_PER_TASK: usize = 4;
    const DEPTH: usize = 3;
    const NR_REQUESTS: u32 = 1024;
    /// Delay before another dispatch when no event is due, ns.
    const AGAIN_NS: u64 = 3_000_000;

    /// Common interface of a queue and of an elevator without a queue, for the test's load.
    trait Target {
        fn submit(&mut self, now: Time, bio: &Bio);
        fn take_kick(&mut self) -> bool;
        fn dispatch(&mut self, now: Time) -> Option<(RequestId, u64)>;
        fn complete(&mut self, now: Time, id: RequestId);
        fn next_timer(&self) -> Option<Time>;
        fn timer(&mut self, now: Time);
    }

    impl Target for RequestQueue {
        fn submit(&mut self, now: Time, bio: &Bio) {
            assert!(matches!(RequestQueue::submit(self, now, bio), Submit::Queued(_)), "the bio becomes a request");
        }
        fn take_kick(&mut self) -> bool {
            self.take_kick()
        }
        fn dispatch(&mut self, now: Time) -> Option<(RequestId, u64)> {
            let id = self.dispatch(now)?;
            Some((id, self.cookie(id)))
        }
        fn complete(&mut self, now: Time, id: RequestId) {
            self.complete(now, id, Ok(()), |_, _| {});
        }
        fn next_timer(&self) -> Option<Time> {
            self.next_timer()
        }
        fn timer(&mut self, now: Time) {
            self.timer(now);
        }
    }

    /// The first vector contains the free slots. The second vector contains the cookie of each
    /// slot.
    impl Target for (Bare, Vec<RequestId>, Vec<u64>) {
        fn submit(&mut self, now: Time, bio: &Bio) {
            let id = self.1.pop().unwrap_or_else(|| self.0.create_request(bio));
            self.2.resize(self.2.len().max(id.index() + 1), 0);
            self.2[id.index()] = bio.cookie;
            self.0.renew(now, id, bio);
            self.0.insert(id, bio);
        }
        fn take_kick(&mut self) -> bool {
            self.0.take_kick()
        }
        fn dispatch(&mut self, now: Time) -> Option<(RequestId, u64)> {
            let id = self.0.dispatch(now)?;
            Some((id, self.2[id.index()]))
        }
        fn complete(&mut self, now: Time, id: RequestId) {
            self.0.complete(now, id);
            self.1.push(id);
        }
        fn next_timer(&self) -> Option<Time> {
            self.0.next_timer()
        }
        fn timer(&mut self, now: Time) {
            self.0.timer(now);
        }
    }

    fn next(random: &mut u64) -> u64 {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        *random
    }

    /// Returns the time of each dispatch, with the index of its bio. Half of the tasks read or
    /// write sequentially, the others at random, and most have a think time. No two bios are
    /// adjacent.
    fn dispatched(target: &mut impl Target, contexts: &[ContextId], mut random: u64) -> Vec<(Time, u64)> {
        let mut now = BEGIN;
        let mut arrivals: Vec<(Time, usize)> =
            (0..TASKS * QUEUED_PER_TASK).map(|i| (BEGIN + 10_000 * i as u64, i % TASKS)).collect();
        let mut places: Vec<u64> = (0..TASKS as u64).map(|task| task * 10_000_000).collect();
        let mut in_device: Vec<(Time, RequestId, usize)> = Vec::new();
        let mut owners: Vec<usize> = Vec::new();
        let mut order = Vec::new();
        while owners.len() < 6_000 {
            let due = [
                in_device.iter().map(|&(at, ..)| at).min(),
                target.next_timer(),
                arrivals.iter().map(|&(at, _)| at).min(),
            ];
            let at = due.into_iter().flatten().min();
            now = at.map_or(now + AGAIN_NS, |at| at.max(now));
            if at.is_some() && at == due[0] {
                let done = in_device.iter().position(|&(at, ..)| Some(at) == due[0]).unwrap();
                let (_, id, task) = in_device.swap_remove(done);
                target.complete(now, id);
                let think_ns = if task % 3 == 0 { 0 } else { next(&mut random) % 4_000_000 };
                arrivals.push((now + think_ns, task));
            } else if at.is_some() && at == due[1] {
                target.timer(now);
            } else if at.is_some() {
                let first = arrivals.iter().position(|&(at, _)| Some(at) == due[2]).unwrap();
                let (_, task) = arrivals.remove(first);
                places[task] += 16;
                let sector = if task % 2 == 0 { places[task] } else { next(&mut random) % 10_000_000 * 16 };
                let op = if next(&mut random).is_multiple_of(3) { Op::Write } else { Op::Read };
                let flags = if next(&mut random).is_multiple_of(4) { Flags::SYNC } else { Flags::empty() };
                let cookie = owners.len() as u64;
                owners.push(task);
                target.submit(now, &Bio { op, flags, sector, nr_sectors: 8, context: contexts[task], cookie });
                if !target.take_kick() {
                    continue;
                }
            }
            while in_device.len() < DEPTH
                && let Some((id, cookie)) = target.dispatch(now)
            {
                let service_ns = 50_000 + next(&mut random) % 2_000_000;
                in_device.push((now + service_ns, id, owners[cookie as usize]));
                order.push((now, cookie));
            }
        }
        order
    }

    #[test]
    fn elevators_dispatch_alike_with_and_without_a_queue() {
        let ioprio = |task: usize| ["none", "rt/2", "be/7", "idle"][task % 7 % 4].parse().unwrap();
        let config = QueueConfig::default();
        for registered in Registry::linux().elevators() {
            for (seed, nomerges) in [(1, "0"), (2, "2"), (3, "0")] {
                let seed = 0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed);
                let mut queue = RequestQueue::new(BEGIN, &config, *registered);
                queue.set_attribute(BEGIN, "nr_requests", &NR_REQUESTS.to_string()).unwrap();
                queue.set_attribute(BEGIN, "nomerges", nomerges).unwrap();
                let context = |task| queue.create_context(task as u32, ioprio(task), CgroupId::ROOT);
                let contexts: Vec<ContextId> = (0..TASKS).map(context).collect();
                let expected = dispatched(&mut queue, &contexts, seed);
                queue.check();

                let mut bare = Bare::new(BEGIN, &config, *registered, NR_REQUESTS, nomerges == "0");
                let context = |task| bare.create_context(task as u32, ioprio(task), CgroupId::ROOT);
                let contexts: Vec<ContextId> = (0..TASKS).map(context).collect();
                let mut target = (bare, Vec::new(), Vec::new());
                let order = dispatched(&mut target, &contexts, seed);
                target.0.check();
                let name = registered.name;
                assert!(order.len() > 5_900, "{name}: {} dispatched", order.len());
                let first = order.iter().zip(&expected).position(|(one, other)| one != other);
                assert_eq!((first, order.len()), (None, expected.len()), "{name}, nomerges {nomerges}");
            }
        }
    }
}
