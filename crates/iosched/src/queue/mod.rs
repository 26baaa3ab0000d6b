//! The request queue takes bios, and gives requests to a device. An elevator decides the order of
//! the requests. [`RequestQueue`] describes the calls of a host.

mod allocation;
mod attributes;
mod config;
mod control;
mod flush;
mod merge;
mod multi;
mod plug;
mod single;
mod stat;

use allocation::Allocation;
use attributes::Attributes;
use config::DeviceQueues;
pub use config::QueueConfig;
use flush::{Flushes, Turn};
use multi::Controlled;
use plug::{PlugRules, Plugs};
pub use stat::{Stat, StatGroup};

use std::collections::VecDeque;

use crate::collections::List;
use crate::context::{CgroupId, ContextId, IoPriority};
use crate::controllers::{ControllerWaits, NamedWrite};
use crate::decision::Decision;
use crate::elevator::{Elevator, Registered};
use crate::env::Env;
use crate::issued::{Issued, Part};
use crate::kernel::KernelVersion;
use crate::request::{Bio, BioDone, BioError, Fifo, Flags, Op, Request, RequestId, RequestStage};
use crate::time::Time;

/// Largest number of jiffies per second.
const HZ_MAX: u32 = 1_000_000;

/// Result of the submission of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submit {
    /// The bio began this new request. The request is in the elevator or on the task's plug.
    Queued(RequestId),
    /// The bio joined a request.
    Merged,
    /// The bio is complete: it is a flush, and the device needs no flush.
    Done(BioDone),
    /// No request can be allocated, and the queue has not changed. [`RequestQueue::take_woken`]
    /// returns the context when it may submit again. In the multi-queue layer, a tag is then
    /// reserved for the context's next bio.
    Full,
    /// A controller holds the bio. When a limit allows it, the queue continues the bio without a
    /// call of the host.
    Held,
}

/// Error of a failed request from the back end: an errno.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("I/O error {0}")]
pub struct IoError(pub i32);

/// Elevator that replaces the present elevator at the end of a switch.
struct Next {
    elevator: Box<dyn Elevator>,
    registered: Registered,
    nr_requests: u32,
}

/// Request queue with its elevator.
///
/// The caller owns time and the device. Every call that may depend on time takes `now`, which never
/// decreases. A host makes these calls:
///
/// - *submit*: [`RequestQueue::submit`] merges a bio into a queued request, or allocates and
///   inserts a new request. [`RequestQueue::plug`] and [`RequestQueue::unplug`] collect a task's
///   requests. After each call, the host checks [`RequestQueue::take_kick`] to see whether the
///   queue must run first. A task that gets [`Submit::Full`] ends its plug before it waits: perhaps
///   no request becomes free until the requests on this plug are complete. The task keeps its
///   position among the waiting tasks, even if other tasks submit: see
///   [`RequestQueue::take_woken`].
/// - *dispatch*: [`RequestQueue::dispatch`] returns at most one request. The host calls it when the
///   device has room. After `None`, the host tries again at the next completion, submission or
///   [`RequestQueue::next_timer`].
/// - *complete*: [`RequestQueue::complete`] takes a finished request back and reports its bios.
/// - *timer*: the host calls [`RequestQueue::timer`] at the time of [`RequestQueue::next_timer`].
/// - *control*: tunables, attributes, switching, processes, priorities, weights, yielding.
///
/// The elevator determines the layer. [`crate::Layer::SingleQueue`] has the attributes and rules of
/// Linux' legacy request queue, version 4.19: merging, congestion, plugging, flush, switching.
/// [`crate::Layer::MultiQueue`] has the attributes and rules of blk-mq, version 6.12: tags instead
/// of limits, hardware queues, plugs that keep their order, and merges of new requests. The
/// multi-queue layer wakes waiting contexts before the queue runs. The single-queue layer wakes
/// them after the queue has run.
///
/// # Panics
/// The following mistakes of a host cause a panic, also in release builds:
///
/// - `now` is before an earlier `now`.
/// - The host submits a bio that [`RequestQueue::check_bio`] refuses. A host that builds bios from
///   the values of clients calls `check_bio` first.
/// - The host completes or requeues a request that is not in the device, or reads a complete
///   request. The queue reuses the ids of complete requests. Therefore, a second completion of an
///   id completes a new request instead, if the new request with this id is already in the device.
/// - A process exits twice, or submits or opens a plug after its exit. The queue also reuses the
///   ids of exited processes. Other calls for an exited process have no effect.
/// - A call names a context or a cgroup that the queue never created, also as the parent of a new
///   cgroup. For a removed cgroup, the call applies to its nearest remaining ancestor.
pub struct RequestQueue {
    env: Env,
    elevator: Box<dyn Elevator>,
    registered: Registered,
    attributes: Attributes,
    write_cache: bool,
    device_fua: bool,
    barriers: bool,
    run_at_insertion: bool,
    device: DeviceQueues,
    allocation: Allocation,
    plugs: Plugs,
    /// Rules of plugs in the multi-queue layer.
    plug_rules: PlugRules,
    /// Whether the queue moves all requests from the elevator to the driver's list in one step, as
    /// in Linux 5.9 to 5.13.
    empties_elevator: bool,
    /// Requests on the driver's list, oldest first.
    pulled: VecDeque<RequestId>,
    flushes: Flushes,
    /// Whether data of flush sequences goes through the elevator, as in Linux since 6.5.
    queues_flush_data: bool,
    /// Requests that arrived during a switch of elevators.
    held: List<Fifo>,
    /// Elevator to switch to when the present elevator is empty.
    next: Option<Next>,
    /// Number of allocated requests that the elevator will still get, or has got and not completed.
    elevator_requests: usize,
    /// Requests in the device.
    in_driver: u32,
    stat: Stat,
    /// Controllers; `None` until a controller has something to do.
    controlled: Option<Box<Controlled>>,
    /// Whether wbt is on and `wbt_lat_usec` has not been written.
    throttles_writeback: bool,
    /// Written values for cgroups that do not exist yet.
    named: Vec<NamedWrite>,
}

/// Returns whether wbt is on by default. Linux 6.15 and 6.16 do not switch wbt on.
fn wbt_begins_enabled(kernel: KernelVersion) -> bool {
    !kernel.is_since(6, 15) || kernel.is_since(6, 17)
}

#[cold]
#[inline(never)]
fn went_back(from: Time, to: Time) -> ! {
    panic!("time went back from {from} to {to}: the host's clock must be monotonic");
}

#[cold]
#[inline(never)]
fn not_in_device(id: RequestId) -> ! {
    panic!("the device does not have {id:?}; a host must complete or requeue each request exactly once");
}

#[cold]
#[inline(never)]
fn complete(id: RequestId) -> ! {
    panic!("the queue has no request {id:?}; an id is valid only until the request completes");
}

impl RequestQueue {
    /// Creates a queue at the time `now` with the elevator `registered` of a
    /// [`Registry`](crate::Registry) and all defaults. A value in `config` that is out of range
    /// becomes the nearest valid value.
    #[must_use]
    pub fn new(now: Time, config: &QueueConfig, registered: Registered) -> Self {
        let mut env = Env::new(now, config.hz.clamp(1, HZ_MAX), config.rotational, config.groups);
        env.command_queueing = config.command_queueing;
        env.kernel = config.kernel;
        env.merges_cgroups = !config.kernel.is_since(5, 18);
        let QueueConfig { depth, hw_queues, tag_layout, .. } = *config;
        let limits_words = !config.kernel.has((6, 17), &[(6, 12, 43)]);
        let device = DeviceQueues { depth: depth.max(1), count: hw_queues.max(1), layout: tag_layout, limits_words };
        let attributes = Attributes::new(config, registered.layer);
        let elevator = device.build(&mut env, &registered, attributes.nr_requests);
        env.cgroups.weights = registered.weights;
        let allocation = Allocation::new(registered.layer, device, attributes.nr_requests);
        env.limit_word = allocation.limit_word();
        Self {
            env,
            elevator,
            registered,
            allocation,
            attributes,
            write_cache: config.write_cache,
            device_fua: config.fua,
            barriers: config.barriers,
            run_at_insertion: config.run_at_insertion,
            device,
            plugs: Plugs::default(),
            plug_rules: PlugRules::of(config.kernel),
            empties_elevator: !config.driver_has_budget
                && config.kernel.is_since(5, 9)
                && !config.kernel.is_since(5, 14),
            pulled: VecDeque::new(),
            flushes: Flushes::default(),
            queues_flush_data: config.kernel.is_since(6, 5),
            held: List::default(),
            next: None,
            elevator_requests: 0,
            in_driver: 0,
            stat: Stat::default(),
            controlled: None,
            throttles_writeback: config.throttles_writeback && wbt_begins_enabled(config.kernel),
            named: Vec::new(),
        }
    }

    /// Sets the present time at the start of every call that may depend on time.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time) {
        if now < self.env.now {
            went_back(self.env.now, now);
        }
        self.env.now = now;
    }

    // ---- submit

    /// Submits a bio. The queue does not split bios: the host splits a longer I/O into bios of at
    /// most [`RequestQueue::max_sectors`]. If this limit becomes smaller after the split, the bios
    /// remain valid.
    pub fn submit(&mut self, now: Time, bio: &Bio) -> Submit {
        self.submit_issued(now, bio, &Issued::default())
    }

    /// Submits a bio as [`RequestQueue::submit`] does. `issued` describes a bio that was issued
    /// earlier, or that is a part of a longer I/O.
    pub fn submit_issued(&mut self, now: Time, bio: &Bio, issued: &Issued) -> Submit {
        self.enter(now);
        if !self.is_usual(bio) {
            self.check_unusual(bio);
        }
        if self.goes_straight(bio) {
            return self.submit_straight(bio);
        }
        self.submit_any_way(bio, issued)
    }

    /// Submits a bio in the general case: with flushes, controllers, plugs and [`Issued`].
    #[inline(never)]
    fn submit_any_way(&mut self, bio: &Bio, issued: &Issued) -> Submit {
        if self.is_multi_queue() {
            self.env.bio_ioprio = issued.ioprio.unwrap_or(self.env.contexts.get(bio.context).ioprio);
        }
        let submit = if issued.at_head && self.may_go_to_head(bio) {
            self.submit_at_head(bio)
        } else if bio.op == Op::Flush || bio.flags.intersects(Flags::PREFLUSH | Flags::FUA) {
            self.submit_flush(bio, issued.part)
        } else {
            self.submit_data(bio, issued.part)
        };
        if self.run_at_insertion && matches!(submit, Submit::Queued(_)) && !self.plugs.is_open(bio.context) {
            self.env.run_queue();
        }
        submit
    }

    /// Returns whether `bio` is a read or write that [`check_bio`](Self::check_bio) accepts. Nearly
    /// every submission passes this short check.
    #[inline(always)]
    fn is_usual(&self, bio: &Bio) -> bool {
        matches!(bio.op, Op::Read | Op::Write)
            && bio.nr_sectors.wrapping_sub(1) < self.attributes.max_hw_sectors
            && bio.sector <= u64::MAX - u64::from(u32::MAX)
            && self.env.contexts.find(bio.context).is_some_and(|context| !context.exited)
    }

    /// Checks a bio that [`is_usual`](Self::is_usual) did not accept.
    ///
    /// # Panics
    /// If [`check_bio`](Self::check_bio) refuses `bio`.
    #[cold]
    #[inline(never)]
    fn check_unusual(&self, bio: &Bio) {
        if let Err(error) = self.check_bio(bio) {
            panic!("{error}");
        }
    }

    /// Checks whether [`submit`](Self::submit) accepts `bio`. Hosts that build bios from the values
    /// of clients call this first.
    ///
    /// # Errors
    /// Returns the reason if `submit` would panic.
    pub fn check_bio(&self, bio: &Bio) -> Result<(), BioError> {
        match self.env.contexts.find(bio.context) {
            None => return Err(BioError::UnknownContext(bio.context)),
            Some(context) if context.exited => return Err(BioError::Exited(bio.context)),
            Some(_) => {}
        }
        let Bio { op, sector, nr_sectors, .. } = *bio;
        // Only reads and writes move data, so only reads and writes have a limit. The limit is
        // `max_hw_sectors_kb`, because the host may have split the I/O before `max_sectors_kb` was
        // reduced.
        let most = if matches!(op, Op::Read | Op::Write) { self.attributes.max_hw_sectors } else { u32::MAX };
        if op == Op::Flush {
            Ok(())
        } else if nr_sectors == 0 {
            Err(BioError::NoSectors)
        } else if nr_sectors > most {
            Err(BioError::TooLong { nr_sectors, most })
        } else if sector.checked_add(nr_sectors.into()).is_none() {
            Err(BioError::BeyondEnd { sector, nr_sectors })
        } else {
            Ok(())
        }
    }

    #[inline(always)]
    fn submit_data(&mut self, bio: &Bio, part: Part) -> Submit {
        match self.allocation.rules() {
            None => self.submit_single(bio),
            Some(rules) => self.submit_multi(&rules, bio, part),
        }
    }

    /// Allocates a request for `bio`, if the limits allow it.
    #[inline(always)]
    fn allocate(&mut self, bio: &Bio) -> Option<RequestId> {
        match &mut self.allocation {
            Allocation::Single(limits) => {
                let allowed = limits.allocate(self.env.now, self.attributes.nr_requests, bio.context, bio.is_sync());
                allowed.then(|| self.found(bio))
            }
            Allocation::Multi(_) => self.allocate_tagged(bio),
        }
    }

    /// Allocates a request for `bio`, which `context` submits for another process. `context` waits
    /// if no request is available.
    fn allocate_as(&mut self, context: ContextId, bio: &Bio) -> Option<RequestId> {
        match &mut self.allocation {
            Allocation::Single(limits) => {
                let allowed = limits.allocate(self.env.now, self.attributes.nr_requests, context, bio.is_sync());
                allowed.then(|| self.found(bio))
            }
            Allocation::Multi(_) => self.allocate_tagged_as(context, bio),
        }
    }

    /// Creates a request with `bio` as its first bio.
    #[inline(always)]
    fn found(&mut self, bio: &Bio) -> RequestId {
        let now = self.env.now;
        let context = self.env.contexts.get_mut(bio.context);
        context.bios += 1;
        let (ioprio, cgroup) = (context.ioprio, context.cgroup);
        if self.attributes.iostats {
            self.stat.advance(now);
        }
        self.stat.in_flight += 1;
        let id = self.env.requests.allocate(now, bio);
        let request = &mut self.env.requests[id];
        (request.ioprio, request.cgroup) = (ioprio, cgroup);
        id
    }

    #[inline(always)]
    fn join_elevator(&mut self, id: RequestId) {
        self.env.requests[id].in_elevator = true;
        self.elevator_requests += 1;
    }

    fn leave_elevator(&mut self, id: RequestId) {
        self.env.requests[id].in_elevator = false;
        self.elevator_requests -= 1;
    }

    fn give_to_elevator(&mut self, id: RequestId) {
        self.join_elevator(id);
        self.elevator.prepare(&mut self.env, id);
    }

    fn insert(&mut self, id: RequestId) {
        self.note_insert(id);
        self.env.enqueue(id);
        self.elevator.insert(&mut self.env, id);
        debug_assert_eq!(self.env.requests[id].stage, RequestStage::Queued, "an elevator queues each inserted request");
    }

    #[inline]
    fn note_insert(&mut self, id: RequestId) {
        if self.env.log.is_on() {
            self.note_insert_in_full(id);
        }
    }

    #[inline(never)]
    fn note_insert_in_full(&mut self, id: RequestId) {
        let request = &self.env.requests[id];
        let &Request { context, sector, nr_sectors, op, .. } = request;
        let cookie = self.env.requests.cookie(id);
        let (pid, sync, tag) = (self.env.pid(context), self.seen_as_sync(op, request.flags), request.tag());
        self.env.note(|| Decision::Insert { request: id, cookie, pid, sector, nr_sectors, op, sync, tag });
    }

    /// Returns whether an operation is sync for the elevator.
    fn seen_as_sync(&self, op: Op, flags: Flags) -> bool {
        self.allocation.multi().map_or_else(|| op.is_sync(flags), |multi| multi.rules.is_sync(op, flags))
    }

    /// Opens a plug: requests of `context` collect there until [`RequestQueue::unplug`].
    pub fn plug(&mut self, context: ContextId) {
        self.env.contexts.require_alive(context);
        self.plugs.open(context);
    }

    /// Ends the plug of `context` and gives its requests to the elevator. The single-queue layer
    /// gives one request per call, in sector order. The multi-queue layer gives all requests at
    /// once, in the order of submission. Returns whether the plug may still have requests. After
    /// each call, the host checks [`RequestQueue::take_kick`].
    pub fn unplug(&mut self, now: Time, context: ContextId) -> bool {
        self.enter(now);
        self.env.contexts.require(context);
        let more = match self.allocation.rules() {
            None => self.unplug_single(context),
            Some(rules) => self.unplug_multi(&rules, context),
        };
        if self.run_at_insertion && !more {
            self.env.run_queue();
        }
        more
    }

    /// Returns whether the queue must run before the next submission, and clears this flag. To run
    /// the queue, the host dispatches while the device has room. An elevator can set the flag. If
    /// [`QueueConfig::run_at_insertion`] is set, every insertion sets the flag.
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.env.kick)
    }

    /// Returns a context that found the queue full and may submit again, if there is one. In the
    /// single-queue layer, the context may find the queue full again. In the multi-queue layer, a
    /// tag is reserved for the context until it submits, [declines](Self::decline) or exits.
    ///
    /// Waiting contexts keep their position. In the multi-queue layer, a tag that a completion
    /// frees goes to a waiting context, even if another bio is submitted before this function is
    /// called.
    #[inline]
    pub fn take_woken(&mut self) -> Option<ContextId> {
        if self.has_controlled_woken() {
            return self.take_controlled_woken();
        }
        let context = self.allocation.woken(&self.env, self.elevator.as_mut(), self.attributes.nr_requests)?;
        if self.controlled.is_some() { self.take_woken_after(context) } else { Some(context) }
    }

    /// Returns `context`. But if `context` is the worker of the controllers, continues the worker,
    /// and returns the next woken context.
    #[inline(never)]
    fn take_woken_after(&mut self, context: ContextId) -> Option<ContextId> {
        if self.is_worker(context) { self.take_woken() } else { Some(context) }
    }

    /// Releases the tag that is reserved for a woken context, because the context has nothing to
    /// submit any more. Has no effect if no tag is reserved.
    pub fn decline(&mut self, context: ContextId) {
        self.env.contexts.require(context);
        self.decline_controlled(context);
        if let Some(multi) = self.allocation.multi_mut() {
            multi.decline(context);
        }
    }

    // ---- dispatch

    /// Returns the next request for the device, or `None` if there is no request, or if the
    /// requests must wait. The host calls this function only while the device has room.
    pub fn dispatch(&mut self, now: Time) -> Option<RequestId> {
        self.enter(now);
        let id = match self.next_released() {
            Some(id) => id,
            None if self.empties_elevator && self.is_multi_queue() => self.pull()?,
            None if self.next.is_some() || self.flushes.has_barrier() => return None,
            None => match self.ask_elevator() {
                Some(id) => {
                    self.env.unqueue(id);
                    id
                }
                // The elevator may have released a request to
                // the dispatch list instead of returning it.
                None if self.env.dispatch_list.is_empty() => return None,
                None => self.next_released()?,
            },
        };
        self.in_driver += 1;
        debug_assert!(
            !self.flushes.barrier_begun() || self.in_driver == 1,
            "no other request is in the device during a barrier"
        );
        let request = &mut self.env.requests[id];
        debug_assert!(matches!(request.stage, RequestStage::Released | RequestStage::Held), "given out once");
        request.stage = RequestStage::Started;
        self.allocation.started(request);
        if request.in_elevator {
            self.env.dispatch_list.taken_end = request.end();
        }
        if self.env.log.is_on() {
            let Request { sector, nr_sectors, .. } = self.env.requests[id];
            let cookie = self.env.requests.cookie(id);
            self.env.note(|| Decision::Dispatch { request: id, cookie, sector, nr_sectors });
        }
        if self.controlled.is_some() {
            self.start_controlled(id);
        }
        Some(id)
    }

    /// Returns the next request of the driver's list. If the list is empty, first fills it with the
    /// requests that the elevator dispatches, at most `nr_requests`.
    #[cold]
    #[inline(never)]
    fn pull(&mut self) -> Option<RequestId> {
        if self.pulled.is_empty() && self.next.is_none() && !self.flushes.has_barrier() {
            while self.pulled.len() < self.attributes.nr_requests as usize
                && let Some(id) = self.ask_elevator()
            {
                self.env.unqueue(id);
                self.pulled.push_back(id);
            }
        }
        self.pulled.pop_front().or_else(|| self.next_released())
    }

    /// Returns the elevator's choice. In the multi-queue layer, calls the elevator only if it has
    /// requests. An elevator with separate queues for the hardware queues is called for each
    /// hardware queue that has room, in turn.
    #[inline(always)]
    fn ask_elevator(&mut self) -> Option<RequestId> {
        let Some(multi) = self.allocation.multi_mut() else {
            return self.elevator.dispatch(&mut self.env);
        };
        if self.env.queued == 0 {
            return None;
        }
        let count = multi.hw_queues();
        if count == 1 || !multi.rules.per_hw_queue {
            return self.elevator.dispatch(&mut self.env);
        }
        for hw_queue in (multi.turn..count).chain(0..multi.turn) {
            if multi.in_driver(hw_queue) < self.device.depth {
                self.env.hw_queue = hw_queue;
                if let Some(id) = self.elevator.dispatch(&mut self.env) {
                    multi.turn = (hw_queue + 1) % count;
                    return Some(id);
                }
            }
        }
        None
    }

    /// Returns the next request that has left the elevator or bypasses it: first a due device
    /// flush, then the dispatch list, as far as barriers allow.
    #[inline(always)]
    fn next_released(&mut self) -> Option<RequestId> {
        if self.env.dispatch_list.is_empty() && self.flushes.has_none_waiting() {
            return None;
        }
        self.next_released_or_flush()
    }

    #[inline(never)]
    fn next_released_or_flush(&mut self) -> Option<RequestId> {
        if let Some(id) = self.start_flush() {
            return Some(id);
        }
        if self.flushes.has_barrier() {
            match self.barrier_turn() {
                Turn::Pass => {}
                Turn::Flush => return self.start_flush(),
                Turn::Wait => return None,
            }
        }
        let id = self.env.dispatch_list.pop(&mut self.env.requests)?;
        if self.env.requests[id].in_elevator {
            self.elevator.start(&mut self.env, id);
        }
        Some(id)
    }

    // ---- complete

    /// Completes the request `id`. Calls `done` with the result for every
    /// bio that is now complete, in sector order.
    pub fn complete(
        &mut self,
        now: Time,
        id: RequestId,
        result: Result<(), IoError>,
        mut done: impl FnMut(BioDone, Result<(), IoError>),
    ) {
        self.enter(now);
        self.leave_device(id);
        if self.env.log.is_on() {
            let cookie = self.env.requests.cookie(id);
            self.env.note(|| Decision::Complete { cookie });
        }
        if self.controlled.is_some() {
            self.complete_controlled(id);
        }
        if self.env.requests[id].in_elevator {
            self.elevator.complete(&mut self.env, id);
            if self.env.requests[id].flags.contains(Flags::FUA) && !self.device_fua {
                self.leave_elevator(id);
                self.complete_flush(id, result, &mut done);
            } else {
                self.finish(id, result, &mut done);
            }
        } else {
            self.complete_flush(id, result, &mut done);
        }
        if self.next.is_some() && self.may_finish_switch() {
            self.finish_switch();
        }
    }

    #[inline]
    fn leave_device(&mut self, id: RequestId) {
        let Some(request) = self.env.requests.started(id) else { not_in_device(id) };
        self.in_driver -= 1;
        self.allocation.left_device(request);
    }

    /// Takes back the request `id`, which the device cannot serve yet. The device gets it again
    /// before all other requests.
    pub fn requeue(&mut self, now: Time, id: RequestId) {
        self.enter(now);
        self.leave_device(id);
        let (cookie, in_elevator) = (self.env.requests.cookie(id), self.env.requests[id].in_elevator);
        self.env.note(|| Decision::Requeue { cookie });
        if in_elevator {
            self.elevator.requeue(&mut self.env, id);
        }
        self.env.requests[id].stage = RequestStage::Released;
        self.env.dispatch_list.give_back(&mut self.env.requests, id);
    }

    /// Reports the bios of a finished request, and frees the request.
    #[inline(always)]
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
        self.free(id, true);
    }

    /// Frees a request's slot, and its tag or its place in the limits.
    #[inline(always)]
    fn free(&mut self, id: RequestId, by_completion: bool) {
        self.stat.in_flight -= 1;
        let request = &self.env.requests[id];
        self.elevator_requests -= usize::from(request.in_elevator);
        self.allocation.release(self.env.now, self.attributes.nr_requests, request, by_completion);
        self.env.requests.release(id);
    }

    // ---- timer

    /// Returns when the host must call [`RequestQueue::timer`],
    /// if at all. Any call may change the time.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        match &self.controlled {
            None => self.env.timer,
            Some(_) => self.env.timer.into_iter().chain(self.next_controlled_timer()).min(),
        }
    }

    /// Handles a due timer. The host runs the queue afterwards if
    /// [`runs_after_timer`](Self::runs_after_timer) returns `true`.
    pub fn timer(&mut self, now: Time) {
        self.enter(now);
        if self.env.timer.is_some_and(|at| at <= now) {
            self.env.timer = None;
            self.elevator.timer(&mut self.env);
        }
        if self.next_controlled_timer().is_some_and(|at| at <= now) {
            self.timer_controlled();
        }
    }

    /// Handles an interrupt of the processor's clock. Some timers of controllers have a range of
    /// times. Such a timer fires at the end of its range, or at the first interrupt within the
    /// range. A host without such interrupts need not call this.
    pub fn clock_interrupt(&mut self, now: Time) {
        self.enter(now);
        self.clock_interrupt_controlled();
    }

    /// Returns whether Linux runs the queue after the [`timer`](Self::timer) that has just fired.
    /// With active controllers, Linux always runs the queue. Otherwise, the elevator decides. With
    /// CFQ of 2.6.16, the queue runs only if requests are queued. With ADIOS, the queue does not
    /// run, because ADIOS' timer only updates predictions. With all other elevators, the queue
    /// always runs. Recorded runs do not show this difference, because they run the queue after
    /// every event.
    #[must_use]
    pub fn runs_after_timer(&self) -> bool {
        self.controlled.is_some() || self.elevator.runs_after_timer()
    }

    /// Returns the number and the duration of the waits, for each controller and cgroup.
    #[must_use]
    pub fn controller_waits(&self) -> &[ControllerWaits] {
        self.controlled.as_ref().map_or(&[], |controlled| controlled.waits())
    }

    /// Returns how long the process of `context` must pause at the end of its system call, ns.
    /// Controllers pause a process if its cgroup harms other cgroups, or if its I/O was too urgent
    /// to wait.
    pub fn rest_ns(&mut self, now: Time, context: ContextId) -> u64 {
        self.enter(now);
        let cgroup = self.env.contexts.require(context).cgroup;
        if self.controlled.is_none() {
            return 0;
        }
        self.controlled().rest_ns(context, cgroup)
    }

    /// Returns whether no request is in flight and only timers of
    /// controllers remain. Some of these timers never end.
    #[must_use]
    pub fn only_controllers_go_on(&self) -> bool {
        self.controlled.as_ref().is_some_and(|controlled| controlled.is_idle())
            && self.env.requests.is_empty()
            && self.env.timer.is_none()
    }

    // ---- processes

    /// Creates an io context for a new process.
    pub fn create_context(&mut self, pid: u32, ioprio: IoPriority, cgroup: CgroupId) -> ContextId {
        self.env.cgroups.require(cgroup);
        self.env.contexts.create(pid, ioprio, cgroup)
    }

    /// Changes a process' ioprio. Most elevators notice the change at the process' next request.
    /// After the process has exited, the call has no effect.
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: IoPriority) {
        if self.env.contexts.require(context).exited {
            return;
        }
        self.env.contexts.get_mut(context).ioprio = ioprio;
        if let Some(elevator) = self.elevator.per_process() {
            elevator.ioprio_changed(&mut self.env, context);
        }
    }

    /// Ends a process. Its requests in flight complete as usual, but the process submits no more.
    /// When these requests are complete, the queue reuses the id `context` for another process.
    pub fn exit(&mut self, now: Time, context: ContextId) {
        self.enter(now);
        self.env.contexts.require_alive(context);
        while self.unplug(now, context) {}
        debug_assert!(
            self.plugs.len(context) == 0 && !self.plugs.is_open(context),
            "the plug of an exited process is empty"
        );
        let pid = self.env.pid(context);
        self.env.note(|| Decision::Exit { pid });
        self.leave_controlled(context);
        self.allocation.exit(now, self.attributes.nr_requests, context);
        self.exit_elevator(context);
        self.env.contexts.exit(context);
    }

    /// Reports the exit of a process to the elevator. Does nothing if the elevator will still get
    /// requests of the process, from held bios or from data that waits for a flush.
    fn exit_elevator(&mut self, context: ContextId) {
        if !self.exits_later(context)
            && !self.has_data_after_flush(context)
            && let Some(elevator) = self.elevator.per_process()
        {
            elevator.exit(&mut self.env, context);
        }
    }

    /// Gives the turn of the process `from` to `to`, because `from` will wait for I/O of `to`. For
    /// example, a process that calls fsync waits for the journal thread. After one of the two
    /// processes has exited, the call has no effect.
    pub fn yield_to(&mut self, now: Time, from: ContextId, to: ContextId) {
        self.enter(now);
        if self.env.contexts.require(from).exited || self.env.contexts.require(to).exited {
            return;
        }
        if let Some(elevator) = self.elevator.per_process() {
            elevator.yield_to(&mut self.env, from, to);
        }
    }

    /// Reports that the process of `context` has dirtied much memory, and sleeps until this device
    /// has written some of it. wbt then allows more writes in flight for a second. The process may
    /// have exited.
    pub fn dirtier_sleeps(&mut self, now: Time, context: ContextId) {
        self.enter(now);
        let cgroup = self.env.contexts.require(context).cgroup;
        if self.is_multi_queue() && (self.controlled.is_some() || self.throttles_writeback) {
            self.controlled().dirtier_sleeps(cgroup);
        }
    }

    // ---- observation

    /// Returns a request that is not complete yet.
    #[inline]
    #[must_use]
    pub fn request(&self, id: RequestId) -> &Request {
        match self.env.requests.live(id) {
            Some(request) => request,
            None => complete(id),
        }
    }

    /// Returns the host's name for the first bio of a request that is not complete yet.
    #[must_use]
    pub fn cookie(&self, id: RequestId) -> u64 {
        let _ = self.request(id);
        self.env.requests.cookie(id)
    }

    /// Returns the host's names for the bios of a request that is not
    /// complete yet, in sector order.
    pub fn bios(&self, id: RequestId) -> impl Iterator<Item = u64> + '_ {
        let _ = self.request(id);
        self.env.requests.bios(id)
    }

    /// Returns the elevator's view of the queue: requests, contexts, cgroups, the present time.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// Returns the number of requests that wait for the device: in
    /// the elevator, on plugs, released, or held.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.env.requests.len() - self.in_driver as usize
    }

    /// Returns whether the elevator runs in the multi-queue layer.
    #[inline]
    #[must_use]
    pub fn is_multi_queue(&self) -> bool {
        self.allocation.multi().is_some()
    }

    /// Returns the number of requests in the device.
    #[must_use]
    pub fn in_driver(&self) -> u32 {
        self.in_driver
    }

    /// Returns the statistics up to `now`.
    pub fn stat(&mut self, now: Time) -> &Stat {
        self.enter(now);
        if self.attributes.iostats {
            self.stat.advance(now);
        }
        &self.stat
    }

    /// Returns whether the queue is congested: it has so many requests of this kind (sync or async)
    /// that a writer should wait if it can. Always `false` in the multi-queue layer.
    #[must_use]
    pub fn congested(&self, sync: bool) -> bool {
        self.allocation.congested(sync)
    }

    /// Turns the recording of decisions on or off.
    pub fn record_decisions(&mut self, on: bool) {
        self.env.log.record(on);
        if on {
            self.elevator.recording(&mut self.env);
        }
    }

    /// Returns the decisions since the last call, oldest first, and removes them.
    pub fn take_decisions(&mut self) -> std::vec::Drain<'_, (Time, Decision)> {
        self.env.log.take()
    }

    /// Checks that the counters agree with the contents of the queue.
    ///
    /// # Panics
    /// If they do not agree.
    pub fn check(&self) {
        let count = |stage| self.env.requests.ids().filter(|&id| self.env.requests[id].stage == stage).count();
        self.allocation.check(&self.env, self.flushes.device_flush());
        let in_elevator = self.env.requests.ids().filter(|&id| self.env.requests[id].in_elevator).count();
        assert_eq!(in_elevator, self.elevator_requests);
        assert_eq!(count(RequestStage::Queued), self.env.queued);
        assert_eq!(count(RequestStage::Started), self.in_driver as usize);
        assert!(
            !self.flushes.barrier_begun() || self.in_driver <= 1,
            "no other request is in the device during a barrier"
        );
        let queued = self.env.requests.ids().filter(|&id| self.env.requests[id].stage == RequestStage::Queued);
        assert_eq!(queued.filter(|&id| self.env.requests[id].hashed).count(), self.env.merging.hash.len());
        assert!(self.env.merging.last.is_none_or(|id| self.env.requests[id].stage == RequestStage::Queued));
        if let Some(controlled) = &self.controlled {
            controlled.check();
        }
        self.elevator.check(&self.env);
    }
}
