//! The request queue takes bios, and gives requests to a device. An elevator decides their order. [`RequestQueue`]
//! describes the calls of a host.

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

/// Jiffies in a second at most.
const HZ_MAX: u32 = 1_000_000;

/// What became of a submitted bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submit {
    /// It is the first of this new request, which the elevator (or the task's plug) has.
    Queued(RequestId),
    /// It joined a request.
    Merged,
    /// It is done already: a flush of a device that needs none.
    Done(BioDone),
    /// No request can be allocated for it. Nothing happened; the context is named by [`RequestQueue::take_woken`] when
    /// it may submit again. In the multi-queue layer its next bio then has a tag already.
    Full,
    /// A controller holds it back; it goes on by itself when a limit allows.
    Held,
}

/// What the back end says of a failed request: an errno.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("I/O error {0}")]
pub struct IoError(pub i32);

/// The elevator that takes over next.
struct Next {
    elevator: Box<dyn Elevator>,
    registered: Registered,
    nr_requests: u32,
}

/// A request queue with its elevator.
///
/// The caller owns time and the device. Every call that may depend on time takes `now`, which never goes
/// back. In the order a host makes them, the calls are:
///
/// - *submit*: [`RequestQueue::submit`] merges a bio into a queued request, or allocates one and inserts it.
///   [`RequestQueue::plug`] and [`RequestQueue::unplug`] let a task's requests collect first. After each, the host asks
///   [`RequestQueue::take_kick`] whether to run the queue before it goes on.
///   A task that is told [`Submit::Full`] ends its plug before it waits: what it holds back may be what would make
///   room. It keeps its place among those who wait, whatever others submit: see
///   [`RequestQueue::take_woken`].
/// - *dispatch*: [`RequestQueue::dispatch`] gives out at most one request, whenever the device has room. When it
///   gives none, the host tries again after the next completion, submission, or [`RequestQueue::next_timer`].
/// - *complete*: [`RequestQueue::complete`] takes a request back and reports its bios.
/// - *timer*: [`RequestQueue::timer`], when the one deadline that was asked for has come.
/// - *control*: tunables, attributes, switching, processes, priorities, weights, yielding.
///
/// There are two layers, and the elevator says which it stands in. [`crate::Layer::SingleQueue`] has the attributes and
/// rules (merging, congestion, plugging, flush, switching) of Linux' legacy request queue, 4.19;
/// [`crate::Layer::MultiQueue`] those of blk-mq, 6.12: tags instead of limits, hardware queues, a plug that keeps its
/// order, and new requests that merge, too. In the multi-queue layer waiting contexts are attended to before the queue
/// is run, in the single-queue layer after.
///
/// # Panics
/// Every build panics on a mistake of the host:
///
/// - `now` is before the last one.
/// - A bio is submitted that [`RequestQueue::check_bio`] refuses. A host that makes bios of values
///   from others, such as clients, calls that first.
/// - A request is completed or requeued that the device does not have. The queue gives the id of a
///   complete request to a new one. A second completion is therefore taken for the new one's if the
///   device has that already.
/// - A process exits twice, or opens a plug after its exit. The queue gives the id of a process
///   that is gone to a new one, too.
/// - A call names a context or a cgroup that the queue never made, also as the parent of a cgroup.
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
    /// What plugs of the multi-queue layer do.
    plug_rules: PlugRules,
    /// Whether everything that the elevator gives out leaves it at once, for the driver's list.
    empties_elevator: bool,
    /// What has left the elevator so, oldest first.
    pulled: VecDeque<RequestId>,
    flushes: Flushes,
    /// Arrived while elevators are being switched.
    held: List<Fifo>,
    /// The elevator to switch to once the present one has nothing left.
    next: Option<Next>,
    /// Requests the elevator has to hear of yet: allocated, not finished.
    elevator_requests: usize,
    /// Requests in the device.
    in_driver: u32,
    stat: Stat,
    /// Controllers beside the elevator, once there is something for them to do.
    controlled: Option<Box<Controlled>>,
    /// wbt is on, and `wbt_lat_usec` was not written.
    throttles_writeback: bool,
    /// What is set of cgroups that do not exist yet.
    named: Vec<NamedWrite>,
}

/// Whether wbt is on before its file is written: Linux 6.15 and 6.16 did not switch it on.
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
    panic!("the device does not have {id:?}: the host completes or requeues each request once");
}

impl RequestQueue {
    /// A queue with the elevator `registered` of a [`Registry`](crate::Registry) and all defaults, made at `now`. What
    /// is out of range in `config` becomes the nearest value that is not.
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

    /// Begins every call that may depend on time.
    #[inline]
    fn enter(&mut self, now: Time) {
        if now < self.env.now {
            went_back(self.env.now, now);
        }
        self.env.now = now;
    }

    // ---- submit

    /// Hands in a bio. It is not split: its length is at most [`RequestQueue::max_sectors`], as that was when the host
    /// cut it.
    pub fn submit(&mut self, now: Time, bio: &Bio) -> Submit {
        self.submit_issued(now, bio, &Issued::default())
    }

    /// [`RequestQueue::submit`], of a bio that was issued earlier, or that is a part of a longer one.
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

    /// [`RequestQueue::submit_issued`], whatever is on.
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

    /// Whether `bio` reads or writes and [`check_bio`](Self::check_bio) takes it: what nearly every
    /// submission does, in few instructions.
    #[inline(always)]
    fn is_usual(&self, bio: &Bio) -> bool {
        matches!(bio.op, Op::Read | Op::Write)
            && bio.nr_sectors.wrapping_sub(1) < self.attributes.max_hw_sectors
            && bio.sector <= u64::MAX - u64::from(u32::MAX)
            && self.env.contexts.find(bio.context).is_some_and(|context| !context.exited)
    }

    /// # Panics
    /// If [`check_bio`](Self::check_bio) refuses `bio`.
    #[cold]
    #[inline(never)]
    fn check_unusual(&self, bio: &Bio) {
        if let Err(error) = self.check_bio(bio) {
            panic!("{error}");
        }
    }

    /// Whether [`submit`](Self::submit) takes `bio`, which a host made of values from others.
    ///
    /// # Errors
    /// If `submit` would panic, why.
    pub fn check_bio(&self, bio: &Bio) -> Result<(), BioError> {
        match self.env.contexts.find(bio.context) {
            None => return Err(BioError::UnknownContext(bio.context)),
            Some(context) if context.exited => return Err(BioError::Exited(bio.context)),
            Some(_) => {}
        }
        let Bio { op, sector, nr_sectors, .. } = *bio;
        // Zeroes and trims move no data. A bio that waited may have been cut before
        // `max_sectors_kb` became less.
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

    /// A request for `bio`, if the limits allow one more.
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

    /// A request for `bio` of another process, which `context` sends on: it is `context` that waits for one.
    fn allocate_as(&mut self, context: ContextId, bio: &Bio) -> Option<RequestId> {
        match &mut self.allocation {
            Allocation::Single(limits) => {
                let allowed = limits.allocate(self.env.now, self.attributes.nr_requests, context, bio.is_sync());
                allowed.then(|| self.found(bio))
            }
            Allocation::Multi(_) => self.allocate_tagged_as(context, bio),
        }
    }

    /// A new request that begins with `bio`.
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

    fn give_to_elevator(&mut self, id: RequestId) {
        self.join_elevator(id);
        self.elevator.prepare(&mut self.env, id);
    }

    fn insert(&mut self, id: RequestId) {
        self.note_insert(id);
        self.env.enqueue(id);
        self.elevator.insert(&mut self.env, id);
        debug_assert_eq!(self.env.requests[id].stage, RequestStage::Queued, "an elevator keeps what it is given");
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

    /// Whether an operation is sync to the elevator.
    fn seen_as_sync(&self, op: Op, flags: Flags) -> bool {
        self.allocation.multi().map_or_else(|| op.is_sync(flags), |multi| multi.rules.is_sync(op, flags))
    }

    /// From now on, requests of `context` collect on its plug until [`RequestQueue::unplug`].
    pub fn plug(&mut self, context: ContextId) {
        self.env.contexts.require_alive(context);
        self.plugs.open(context);
    }

    /// Ends the plug of `context` and gives what it collected to the elevator: in the single-queue layer in sector
    /// order, one request a call, in the multi-queue layer as it came, all at once. Returns whether there may be more;
    /// after each call the host attends to [`RequestQueue::take_kick`].
    pub fn unplug(&mut self, now: Time, context: ContextId) -> bool {
        self.enter(now);
        let more = match self.allocation.rules() {
            None => self.unplug_single(context),
            Some(rules) => self.unplug_multi(&rules, context),
        };
        if self.run_at_insertion && !more {
            self.env.run_queue();
        }
        more
    }

    /// Whether the queue is to be run (dispatch while the device has room) before anything else is submitted: an
    /// elevator wants it, or [every insertion](QueueConfig::run_at_insertion) does. Asking takes the wish back.
    #[inline]
    pub fn take_kick(&mut self) -> bool {
        std::mem::take(&mut self.env.kick)
    }

    /// A context that found the queue full and may submit again, if any. What it submits may find the queue full again
    /// in the single-queue layer; in the multi-queue layer a tag is kept for it until it submits,
    /// [declines](Self::decline) or exits.
    ///
    /// Those that wait keep their place. What a completion frees in the multi-queue layer is
    /// offered to them before a bio of anybody else may have it, whether or not this is called
    /// before that bio is submitted.
    #[inline]
    pub fn take_woken(&mut self) -> Option<ContextId> {
        if self.controlled.is_some() {
            return self.take_woken_controlled();
        }
        self.allocation.woken(&self.env, self.elevator.as_mut(), self.attributes.nr_requests)
    }

    #[inline(never)]
    fn take_woken_controlled(&mut self) -> Option<ContextId> {
        loop {
            if let Some(context) = self.take_controlled_woken() {
                return Some(context);
            }
            let context = self.allocation.woken(&self.env, self.elevator.as_mut(), self.attributes.nr_requests)?;
            if !self.is_worker(context) {
                return Some(context);
            }
        }
    }

    /// A context that was woken has nothing to submit any more: what was kept for it is for others.
    pub fn decline(&mut self, context: ContextId) {
        self.decline_controlled(context);
        if let Some(multi) = self.allocation.multi_mut() {
            multi.decline(context);
        }
    }

    // ---- dispatch

    /// The request to send to the device next, or `None` if there is none or it should wait. The host calls
    /// it only while the device has room.
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
                // It may have released something to the dispatch list rather than give it out.
                None if self.env.dispatch_list.is_empty() => return None,
                None => self.next_released()?,
            },
        };
        self.in_driver += 1;
        debug_assert!(!self.flushes.barrier_begun() || self.in_driver == 1, "a barrier has the device for itself");
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

    /// The next request of the driver's list. If that is empty, all that the elevator gives out, at most `nr_requests`,
    /// is put there first.
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

    /// The elevator's choice. In the multi-queue layer it is asked only if it has something, and for hardware queues
    /// that have room in turn if it has a queue for each.
    #[inline]
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

    /// What has left the elevator or bypasses it: a device flush that is due, then the dispatch list as far as barriers
    /// let it.
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

    /// The device is done with `id`: `done` is told of every bio that is complete by this, in sector order, with the
    /// result.
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
            self.finish(id, result, &mut done);
        } else {
            self.complete_flush(id, result, &mut done);
        }
        if self.next.is_some() && self.may_finish_switch() {
            self.finish_switch();
        }
    }

    #[inline]
    fn leave_device(&mut self, id: RequestId) {
        let request = &self.env.requests[id];
        if request.stage != RequestStage::Started {
            not_in_device(id);
        }
        self.in_driver -= 1;
        self.allocation.left_device(request);
    }

    /// The device gives `id` back undone: it cannot take it yet. The request goes to the device before everything else.
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

    /// Ends the life of a request that is done.
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

    /// Gives back a request's slot and its place in the limits, or its tag.
    #[inline(always)]
    fn free(&mut self, id: RequestId, by_completion: bool) {
        self.stat.in_flight -= 1;
        let request = &self.env.requests[id];
        self.elevator_requests -= usize::from(request.in_elevator);
        self.allocation.release(self.env.now, self.attributes.nr_requests, request, by_completion);
        self.env.requests.release(id);
    }

    // ---- timer

    /// When the elevator wants [`RequestQueue::timer`] to be called, if at all. May change with any call.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        match &self.controlled {
            None => self.env.timer,
            Some(_) => self.env.timer.into_iter().chain(self.next_controlled_timer()).min(),
        }
    }

    /// The deadline has come; the host runs the queue afterwards, if [that is meant](Self::runs_after_timer).
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

    /// Whether Linux runs the queue after the [`timer`](Self::timer) that has just fired. CFQ of 2.6.16 leaves that to
    /// the next completion or submission while the device has requests; every other elevator does not. Recorded runs do
    /// not show it: in them the queue is run after every event.
    #[must_use]
    pub fn runs_after_timer(&self) -> bool {
        self.controlled.is_some() || self.elevator.runs_after_timer()
    }

    /// Who waited at which controller beside the elevator, and how long.
    #[must_use]
    pub fn controller_waits(&self) -> &[ControllerWaits] {
        self.controlled.as_ref().map_or(&[], |controlled| controlled.waits())
    }

    /// How long the process of `context` rests before it goes on, ns, now that its system call ends: what controllers
    /// have it pay for what could not wait, or for the harm that its cgroup does.
    pub fn rest_ns(&mut self, now: Time, context: ContextId) -> u64 {
        if self.controlled.is_none() {
            return 0;
        }
        self.enter(now);
        let cgroup = self.env.contexts.get(context).cgroup;
        self.controlled().rest_ns(context, cgroup)
    }

    /// Whether nothing is under way, and if anything is due it is a controller's: some of their timers never end.
    #[must_use]
    pub fn only_controllers_go_on(&self) -> bool {
        self.controlled.as_ref().is_some_and(|controlled| controlled.is_idle())
            && self.env.requests.is_empty()
            && self.env.timer.is_none()
    }

    // ---- processes

    /// An io context for a new process.
    pub fn create_context(&mut self, pid: u32, ioprio: IoPriority, cgroup: CgroupId) -> ContextId {
        self.env.cgroups.require(cgroup);
        self.env.contexts.create(pid, ioprio, cgroup)
    }

    /// Changes a process' ioprio. Most elevators notice at the process' next request.
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: IoPriority) {
        self.env.contexts.get_mut(context).ioprio = ioprio;
        if let Some(elevator) = self.elevator.per_process() {
            elevator.ioprio_changed(&mut self.env, context);
        }
    }

    /// The process exits; its requests under way complete as usual, and it submits no more. Its id is given to
    /// another process once they have.
    pub fn exit(&mut self, now: Time, context: ContextId) {
        self.enter(now);
        self.env.contexts.require_alive(context);
        while self.unplug(now, context) {}
        debug_assert!(self.plugs.len(context) == 0 && !self.plugs.is_open(context), "nothing is left on the plug");
        let pid = self.env.pid(context);
        self.env.note(|| Decision::Exit { pid });
        self.leave_controlled(context);
        self.allocation.exit(now, self.attributes.nr_requests, context);
        if !self.exits_later(context)
            && let Some(elevator) = self.elevator.per_process()
        {
            elevator.exit(&mut self.env, context);
        }
        self.env.contexts.exit(context);
    }

    /// The process `from` will now wait for I/O of `to` (an fsync for its journal thread) and gives up its turn to it.
    pub fn yield_to(&mut self, now: Time, from: ContextId, to: ContextId) {
        self.enter(now);
        if let Some(elevator) = self.elevator.per_process() {
            elevator.yield_to(&mut self.env, from, to);
        }
    }

    // ---- looking

    /// A request that is not complete yet.
    #[inline]
    #[must_use]
    pub fn request(&self, id: RequestId) -> &Request {
        &self.env.requests[id]
    }

    /// The host's name for the bio that founded a request.
    #[must_use]
    pub fn cookie(&self, id: RequestId) -> u64 {
        self.env.requests.cookie(id)
    }

    /// The host's names for the bios of a request, in sector order.
    pub fn bios(&self, id: RequestId) -> impl Iterator<Item = u64> + '_ {
        self.env.requests.bios(id)
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

    /// Whether the elevator stands in the multi-queue layer.
    #[inline]
    #[must_use]
    pub fn is_multi_queue(&self) -> bool {
        self.allocation.multi().is_some()
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

    /// Whether so many requests of that kind are allocated that a writer with a choice should hold back. The
    /// multi-queue layer never says so.
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
        self.allocation.check(&self.env, self.flushes.device_flush());
        let in_elevator = self.env.requests.ids().filter(|&id| self.env.requests[id].in_elevator).count();
        assert_eq!(in_elevator, self.elevator_requests);
        assert_eq!(count(RequestStage::Queued), self.env.queued);
        assert_eq!(count(RequestStage::Started), self.in_driver as usize);
        assert!(!self.flushes.barrier_begun() || self.in_driver <= 1, "a barrier has the device for itself");
        let queued = self.env.requests.ids().filter(|&id| self.env.requests[id].stage == RequestStage::Queued);
        assert_eq!(queued.filter(|&id| self.env.requests[id].hashed).count(), self.env.merging.hash.len());
        assert!(self.env.merging.last.is_none_or(|id| self.env.requests[id].stage == RequestStage::Queued));
        if let Some(controlled) = &self.controlled {
            controlled.check();
        }
        self.elevator.check(&self.env);
    }
}
