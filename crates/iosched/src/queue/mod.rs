//! The request queue: between whoever submits bios and a device, with an elevator in the middle.
//!
//! The caller owns time and the device. Every call that may depend on time takes `now`, which never goes
//! back. In the order a host makes them, the calls are:
//!
//! - *submit*: [`RequestQueue::submit`] merges a bio into a queued request, or allocates one and inserts it.
//!   [`RequestQueue::plug`] and [`RequestQueue::unplug`] let a task's requests collect first. After each, the host asks
//!   [`RequestQueue::take_kick`] whether to run the queue before it goes on.
//!   A task that is told [`Submit::Full`] ends its plug before it waits: what it holds back may be what would make room.
//! - *dispatch*: [`RequestQueue::dispatch`] gives out at most one request, whenever the device has room. When it
//!   gives none, the host tries again after the next completion, submission, or [`RequestQueue::next_timer`].
//! - *complete*: [`RequestQueue::complete`] takes a request back and reports its bios.
//! - *timer*: [`RequestQueue::timer`], when the one deadline that was asked for has come.
//! - *control*: tunables, attributes, switching, processes, priorities, weights, yielding.
//!
//! Its attributes and rules (merging, congestion, plugging, flush, switching) are those of Linux' legacy
//! request queue, 4.19.

mod attributes;
mod control;
mod dispatch_list;
mod flush;
mod limits;
mod merge;
mod merge_hash;
mod plug;
mod stat;

use attributes::Attributes;
pub(crate) use dispatch_list::DispatchList;
use flush::Flushes;
use limits::Limits;
pub(crate) use merge_hash::MergeCache;
use plug::Plugs;
pub use stat::{Stat, StatGroup};

use crate::collections::List;
use crate::context::{CgroupId, ContextId, IoPriority};
use crate::decision::Decision;
use crate::elevator::{Elevator, Env, UnknownElevator, elevator};
use crate::request::{Bio, BioDone, Fifo, Flags, Op, Request, RequestId, Stage};
use crate::time::Time;

/// What a queue needs to know of its device and host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Jiffies in a second, 1 to 1,000,000: some of the originals' rules count in them.
    pub hz: u32,
    /// Whether seeking costs on the device.
    pub rotational: bool,
    /// Whether elevators tell cgroups apart.
    pub groups: bool,
    /// Whether the device acknowledges writes from a volatile cache.
    pub write_cache: bool,
    /// Whether the device honours force-unit-access itself.
    pub fua: bool,
    /// Largest request the device takes, in KiB.
    pub max_hw_sectors_kb: u32,
}

impl Default for QueueConfig {
    /// A disk with a write cache and without force-unit-access.
    fn default() -> Self {
        Self { hz: 1000, rotational: true, groups: false, write_cache: true, fua: false, max_hw_sectors_kb: 512 }
    }
}

/// What became of a submitted bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submit {
    /// It is the first of this new request, which the elevator (or the task's plug) has.
    Queued(RequestId),
    /// It joined a request.
    Merged,
    /// It is done already: a flush of a device that needs none.
    Done(BioDone),
    /// All requests are allocated. Nothing happened; the context is named by
    /// [`RequestQueue::take_woken`] when it may submit again.
    Full,
}

/// What the back end says of a failed request: an errno.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("I/O error {0}")]
pub struct IoError(pub i32);

/// A request queue with its elevator. See the module page for how to drive it.
pub struct RequestQueue {
    env: Env,
    elevator: Box<dyn Elevator>,
    attributes: Attributes,
    write_cache: bool,
    device_fua: bool,
    limits: Limits,
    plugs: Plugs,
    flushes: Flushes,
    /// Arrived while elevators are being switched.
    held: List<Fifo>,
    /// The elevator to switch to once the present one has nothing left.
    next_elevator: Option<Box<dyn Elevator>>,
    /// Requests the elevator has to hear of yet: allocated, not finished.
    elevator_requests: usize,
    /// Requests in the device.
    in_driver: u32,
    stat: Stat,
}

impl RequestQueue {
    /// A queue with the elevator `scheduler` and all defaults, made at `now`.
    ///
    /// # Errors
    /// If there is no such elevator.
    pub fn new(now: Time, config: &QueueConfig, scheduler: &str) -> Result<Self, UnknownElevator> {
        let mut env = Env::new(now, config.hz, config.rotational, config.groups);
        let elevator = (elevator(scheduler)?.build)(&env);
        env.cgroups.weights = elevator.weights();
        Ok(Self {
            env,
            elevator,
            attributes: Attributes::new(config),
            write_cache: config.write_cache,
            device_fua: config.fua,
            limits: Limits::default(),
            plugs: Plugs::default(),
            flushes: Flushes::default(),
            held: List::default(),
            next_elevator: None,
            elevator_requests: 0,
            in_driver: 0,
            stat: Stat::default(),
        })
    }

    // ---- submit

    /// Hands in a bio. It is not split: its length is at most [`RequestQueue::max_sectors`].
    pub fn submit(&mut self, now: Time, bio: &Bio) -> Submit {
        self.env.now = now;
        if bio.op == Op::Flush || bio.flags.intersects(Flags::PREFLUSH | Flags::FUA) {
            return self.submit_flush(bio);
        }
        self.submit_data(bio)
    }

    #[inline]
    fn submit_data(&mut self, bio: &Bio) -> Submit {
        debug_assert!(bio.nr_sectors > 0, "a bio with data has a length");
        let switching = self.next_elevator.is_some();
        if !switching && self.merge(bio) {
            return Submit::Merged;
        }
        let Some(id) = self.allocate(bio) else {
            return Submit::Full;
        };
        if switching {
            self.held.push_back(self.env.requests.list_nodes(), id);
            return Submit::Queued(id);
        }
        // The usual way, in one call: nothing comes between allocation and insertion.
        if !self.plugs.is_open(bio.context) && !self.env.log.is_on() {
            self.join_elevator(id);
            self.enqueue(id);
            self.elevator.add(&mut self.env, id);
            return Submit::Queued(id);
        }
        self.give_to_elevator(id);
        if self.plugs.is_open(bio.context) {
            if self.plugs.push(bio.context, id) {
                // The plug stays: what comes next collects again.
                while let Some(id) = self.plugs.pop(&self.env.requests, bio.context) {
                    self.insert(id);
                }
            }
        } else {
            self.insert(id);
        }
        Submit::Queued(id)
    }

    /// A request for `bio`, if the limits allow one more.
    #[inline]
    fn allocate(&mut self, bio: &Bio) -> Option<RequestId> {
        let now = self.env.now;
        if !self.limits.allocate(now, self.attributes.nr_requests, bio.context, bio.is_sync()) {
            return None;
        }
        self.env.contexts.get_mut(bio.context).bios += 1;
        if self.attributes.iostats {
            self.stat.advance(now);
        }
        self.stat.in_flight += 1;
        Some(self.env.requests.allocate(now, bio))
    }

    #[inline]
    fn join_elevator(&mut self, id: RequestId) {
        self.env.requests[id].in_elevator = true;
        self.elevator_requests += 1;
    }

    fn give_to_elevator(&mut self, id: RequestId) {
        self.join_elevator(id);
        self.elevator.allocate(&mut self.env, id);
    }

    fn insert(&mut self, id: RequestId) {
        if self.env.log.is_on() {
            let Request { cookie, context, sector, nr_sectors, op, .. } = self.env.requests[id];
            let (pid, sync) = (self.env.pid(context), self.env.requests[id].is_sync());
            self.env.note(|| Decision::Insert { request: id, cookie, pid, sector, nr_sectors, op, sync });
        }
        self.enqueue(id);
        self.elevator.insert(&mut self.env, id);
    }

    /// From now on bios may join `id`.
    #[inline]
    fn enqueue(&mut self, id: RequestId) {
        let request = &mut self.env.requests[id];
        request.stage = Stage::Queued;
        if request.mergeable {
            self.env.merging.hash.insert(&mut self.env.requests, id);
            if self.env.merging.last.is_none() {
                self.env.merging.last = Some(id);
            }
        }
    }

    /// From now on, requests of `context` collect on its plug until [`RequestQueue::unplug`].
    pub fn plug(&mut self, context: ContextId) {
        self.plugs.open(context);
    }

    /// Ends the plug of `context` and gives what it collected to the elevator, one request a call, in sector
    /// order. Returns whether there may be more; between calls the host attends to [`RequestQueue::take_kick`].
    pub fn unplug(&mut self, now: Time, context: ContextId) -> bool {
        self.env.now = now;
        match self.plugs.pop(&self.env.requests, context) {
            Some(id) => {
                self.insert(id);
                true
            }
            None => {
                self.plugs.close(context);
                false
            }
        }
    }

    /// Whether the elevator wants the queue run (dispatch while the device has room) before anything else
    /// is submitted. Asking takes the wish back.
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.env.kick)
    }

    /// A context that found the queue full and may submit again, if any.
    pub fn take_woken(&mut self) -> Option<ContextId> {
        self.limits.woken(self.env.now)
    }

    // ---- dispatch

    /// The request to send to the device next, or `None` if there is none or it should wait. The host calls
    /// it only while the device has room.
    pub fn dispatch(&mut self, now: Time) -> Option<RequestId> {
        self.env.now = now;
        let id = match self.next_released() {
            Some(id) => id,
            None if self.next_elevator.is_some() => return None,
            None => match self.elevator.dispatch(&mut self.env) {
                Some(id) => {
                    self.env.unqueue(id);
                    id
                }
                None => self.next_released()?,
            },
        };
        self.in_driver += 1;
        let request = &mut self.env.requests[id];
        request.stage = Stage::Started;
        if request.in_elevator {
            self.env.dispatch_list.taken_end = request.end();
        }
        if self.env.log.is_on() {
            let Request { cookie, sector, nr_sectors, .. } = self.env.requests[id];
            self.env.note(|| Decision::Dispatch { request: id, cookie, sector, nr_sectors });
        }
        Some(id)
    }

    /// What has left the elevator or bypasses it: a device flush that is due, then the dispatch list.
    #[inline]
    fn next_released(&mut self) -> Option<RequestId> {
        if let Some(id) = self.start_flush() {
            return Some(id);
        }
        let id = self.env.dispatch_list.pop(&mut self.env.requests)?;
        if self.env.requests[id].in_elevator {
            self.elevator.start(&mut self.env, id);
        }
        Some(id)
    }

    // ---- complete

    /// The device is done with `id`: `done` is told of every bio that is complete by this, in sector order, with the
    /// result.
    pub fn complete(
        &mut self,
        now: Time,
        id: RequestId,
        result: Result<(), IoError>,
        mut done: impl FnMut(BioDone, Result<(), IoError>),
    ) {
        self.env.now = now;
        debug_assert_eq!(self.env.requests[id].stage, Stage::Started);
        self.in_driver -= 1;
        if self.env.log.is_on() {
            let cookie = self.env.requests[id].cookie;
            self.env.note(|| Decision::Complete { cookie });
        }
        if self.env.requests[id].in_elevator {
            self.elevator.complete(&mut self.env, id);
            self.finish(id, result, &mut done);
        } else {
            self.complete_flush(id, result, &mut done);
        }
        if self.next_elevator.is_some() && self.elevator_requests == 0 {
            self.finish_switch();
        }
    }

    /// Ends the life of a request that is done.
    #[inline]
    fn finish(
        &mut self,
        id: RequestId,
        result: Result<(), IoError>,
        done: &mut impl FnMut(BioDone, Result<(), IoError>),
    ) {
        let now = self.env.now;
        let Request { op, nr_sectors, allocated, .. } = self.env.requests[id];
        if self.attributes.iostats {
            self.stat.advance(now);
            if op.has_data() {
                self.stat.completed(op, nr_sectors, now.since(allocated));
            }
        }
        let contexts = &mut self.env.contexts;
        self.env.requests.take_bios(id, |bio| {
            contexts.bio_done(bio.context);
            done(bio, result);
        });
        self.free(id);
    }

    /// Gives back a request's slot and its place in the limits.
    #[inline]
    fn free(&mut self, id: RequestId) {
        self.stat.in_flight -= 1;
        let request = &self.env.requests[id];
        let sync = request.is_sync();
        self.elevator_requests -= usize::from(request.in_elevator);
        self.limits.release(self.env.now, self.attributes.nr_requests, sync);
        self.env.requests.release(id);
    }

    // ---- timer

    /// When the elevator wants [`RequestQueue::timer`] to be called, if at all. May change with any call.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.env.timer
    }

    /// The deadline has come; the host runs the queue afterwards.
    pub fn timer(&mut self, now: Time) {
        self.env.now = now;
        if self.env.timer.is_some_and(|at| at <= now) {
            self.env.timer = None;
            self.elevator.timer(&mut self.env);
        }
    }

    // ---- processes

    /// An io context for a new process.
    pub fn create_context(&mut self, pid: u32, ioprio: IoPriority, cgroup: CgroupId) -> ContextId {
        self.env.contexts.create(pid, ioprio, cgroup)
    }

    /// Changes a process' ioprio. The elevator notices at the process' next request.
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: IoPriority) {
        self.env.contexts.get_mut(context).ioprio = ioprio;
    }

    /// The process exits; its requests under way complete as usual, and it submits no more. Its id is given to
    /// another process once they have.
    pub fn exit(&mut self, now: Time, context: ContextId) {
        self.env.now = now;
        while self.unplug(now, context) {}
        let pid = self.env.pid(context);
        self.env.note(|| Decision::Exit { pid });
        self.limits.exit(now, self.attributes.nr_requests, context);
        self.elevator.exit(&mut self.env, context);
        self.env.contexts.exit(context);
    }

    /// The process `from` will now wait for I/O of `to` (an fsync for its journal thread) and gives up its turn to it.
    pub fn yield_to(&mut self, now: Time, from: ContextId, to: ContextId) {
        self.env.now = now;
        self.elevator.yield_to(&mut self.env, from, to);
    }

    // ---- looking

    /// A request that is not complete yet.
    #[inline]
    #[must_use]
    pub fn request(&self, id: RequestId) -> &Request {
        &self.env.requests[id]
    }

    /// What the elevator sees of the queue: requests, contexts, cgroups, the present moment.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Requests that wait for the device: in the elevator, on plugs, released, or held.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.env.requests.len() - self.in_driver as usize
    }

    /// Requests in the device.
    #[must_use]
    pub fn in_driver(&self) -> u32 {
        self.in_driver
    }

    /// The statistics up to now.
    pub fn stat(&mut self, now: Time) -> &Stat {
        if self.attributes.iostats {
            self.stat.advance(now);
        }
        &self.stat
    }

    /// Whether so many requests of that kind are allocated that a writer with a choice should hold back.
    #[must_use]
    pub fn congested(&self, sync: bool) -> bool {
        self.limits.congested(sync)
    }

    /// Turns the recording of decisions on or off.
    pub fn record_decisions(&mut self, on: bool) {
        self.env.log.record(on);
        if on {
            self.elevator.recording(&mut self.env);
        }
    }

    /// Takes the decisions since the last call, oldest first.
    pub fn take_decisions(&mut self) -> std::vec::Drain<'_, (Time, Decision)> {
        self.env.log.take()
    }

    /// Checks that counters agree with contents.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(&self) {
        let count = |stage| self.env.requests.ids().filter(|&id| self.env.requests[id].stage == stage).count();
        let mut allocated = [0; 2];
        let mut in_elevator = 0;
        for id in self.env.requests.ids() {
            let request = &self.env.requests[id];
            if !self.flushes.is_device_flush(id) {
                allocated[usize::from(request.is_sync())] += 1;
            }
            in_elevator += usize::from(request.in_elevator);
        }
        assert_eq!(allocated, [self.limits.allocated(false), self.limits.allocated(true)]);
        assert_eq!(in_elevator, self.elevator_requests);
        assert_eq!(count(Stage::Queued), self.elevator.queued());
        assert_eq!(count(Stage::Started), self.in_driver as usize);
        let queued = self.env.requests.ids().filter(|&id| self.env.requests[id].stage == Stage::Queued);
        assert_eq!(queued.filter(|&id| self.env.requests[id].hashed).count(), self.env.merging.hash.len());
        assert!(self.env.merging.last.is_none_or(|id| self.env.requests[id].stage == Stage::Queued));
        self.elevator.check(&self.env);
    }
}
