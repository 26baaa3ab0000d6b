//! A request queue as its elevator sees it, and the data that both use: the index for merges, and
//! the requests between elevator and device.

mod dispatch_list;
mod merge_hash;

use crate::context::{Cgroups, ContextId, Contexts, IoPriority};
use crate::decision::{Decision, DecisionLog};
use crate::kernel::KernelVersion;
use crate::request::{RequestId, RequestStage, Requests};
use crate::time::{SECOND_NS, Time};

pub(crate) use dispatch_list::DispatchList;
pub(crate) use merge_hash::MergeCache;

/// A request queue as its elevator sees it. The present time does not change during a call.
#[derive(Debug)]
pub struct Env {
    /// Present time.
    pub now: Time,
    /// All requests of the queue; elevators hold ids.
    pub requests: Requests,
    /// All io contexts of the queue.
    pub contexts: Contexts,
    /// All cgroups of the queue.
    pub cgroups: Cgroups,
    /// Recorded decisions.
    pub log: DecisionLog,
    /// Jiffies per second.
    pub hz: u32,
    /// Length of a jiffy in ns.
    pub jiffy_ns: u64,
    /// Whether seeks cost time on the device.
    pub rotational: bool,
    /// Whether elevators treat cgroups separately.
    pub groups: bool,
    /// Whether the device queues commands, if the host knows.
    pub command_queueing: Option<bool>,
    /// Number of hardware queues of the device; always 1 for an elevator of the single-queue layer.
    pub hw_queues: u16,
    /// Ioprio of the bio that is being submitted; only in the multi-queue layer.
    pub bio_ioprio: IoPriority,
    /// Version of Linux whose rules apply.
    pub kernel: KernelVersion,
    /// Number of tags per word, if a limit on tags is counted in each word. `None`: the limit is
    /// counted over all tags.
    pub(crate) limit_word: Option<u32>,
    /// Whether requests of different cgroups may merge.
    pub(crate) merges_cgroups: bool,
    /// Hardware queue that runs at present, for elevators with separate queues per hardware queue.
    pub hw_queue: u16,
    /// Index of queued requests that a bio may join.
    pub(crate) merging: MergeCache,
    /// Requests that have left the elevator and wait for the device.
    pub(crate) dispatch_list: DispatchList,
    /// Time of the elevator's only timer.
    pub(crate) timer: Option<Time>,
    /// Whether the queue must run before anything else happens.
    pub(crate) kick: bool,
    /// Number of requests in the elevator.
    pub(crate) queued: usize,
}

impl Env {
    pub(crate) fn new(now: Time, hz: u32, rotational: bool, groups: bool) -> Self {
        Self {
            now,
            requests: Requests::default(),
            contexts: Contexts::default(),
            cgroups: Cgroups::default(),
            log: DecisionLog::default(),
            hz,
            jiffy_ns: SECOND_NS / u64::from(hz),
            rotational,
            groups,
            command_queueing: None,
            hw_queues: 1,
            bio_ioprio: IoPriority::default(),
            kernel: KernelVersion::default(),
            limit_word: None,
            merges_cgroups: false,
            hw_queue: 0,
            merging: MergeCache::default(),
            dispatch_list: DispatchList::default(),
            timer: None,
            kick: false,
            queued: 0,
        }
    }

    /// Returns the jiffies since the origin, rounded down.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.now.as_ns() / self.jiffy_ns
    }

    /// Returns when a timer that is set now for jiffy number `jiffy` fires: at the start of that
    /// jiffy, but at the earliest at the start of the next jiffy.
    pub(crate) fn tick(&self, jiffy: u64) -> Time {
        Time::from_ns(jiffy.max(self.jiffies() + 1).saturating_mul(self.jiffy_ns))
    }

    /// Returns when a timer that is set now for `delay` jiffies fires. As in Linux' timer wheel, a
    /// longer delay is rounded more coarsely.
    pub(crate) fn wheel(&self, delay: u64) -> Time {
        let (mut granularity, mut reach) = (1, 63);
        while delay >= reach {
            (granularity, reach) = (granularity * 8, reach * 8);
        }
        let jiffy = ((self.jiffies() + delay) / granularity + 1) * granularity;
        Time::from_ns(jiffy * self.jiffy_ns)
    }

    /// Sets the timer to the [`tick`](Self::tick) of `jiffy`, to
    /// idle for a process' next request until then.
    pub(crate) fn idle_until(&mut self, jiffy: u64) {
        let at = self.tick(jiffy);
        self.timer = Some(at);
        let wait_ns = at.since(self.now);
        self.note(|| Decision::IdleArm { wait_ns });
    }

    /// Cancels the timer: idling is no longer needed.
    #[inline]
    pub(crate) fn cancel_idle(&mut self) {
        if self.timer.take().is_some() {
            self.note(|| Decision::IdleCancel);
        }
    }

    /// Marks `id` as queued, so that bios may join it.
    #[inline(always)]
    pub(crate) fn enqueue(&mut self, id: RequestId) {
        let request = &mut self.requests[id];
        debug_assert!(request.in_elevator && request.stage != RequestStage::Queued, "inserted once");
        request.stage = RequestStage::Queued;
        self.queued += 1;
        if request.mergeable {
            self.merging.hash.insert(&mut self.requests, id);
            if self.merging.last.is_none() {
                self.merging.last = Some(id);
            }
        }
    }

    /// Marks `id` as no longer queued, so that nothing can merge with it.
    #[inline(always)]
    pub(crate) fn unqueue(&mut self, id: RequestId) {
        let request = &mut self.requests[id];
        debug_assert_eq!(request.stage, RequestStage::Queued, "only a queued request can leave the queue");
        request.stage = RequestStage::Released;
        self.queued -= 1;
        self.hide(id);
    }

    /// Prevents merges with `id`, which stays queued.
    #[inline(always)]
    pub(crate) fn hide(&mut self, id: RequestId) {
        let request = &self.requests[id];
        if request.hashed {
            let end = request.end();
            self.merging.hash.remove(&mut self.requests, id, end);
        }
        if self.merging.last == Some(id) {
            self.merging.last = None;
        }
    }

    /// Releases `id` to the dispatch list before the device takes it. The elevator must have
    /// removed `id` from its lists. The list is in sector order from the device's position; with
    /// `keep_directions`, `id` stays behind requests of the other direction.
    pub fn release_sorted(&mut self, id: RequestId, keep_directions: bool) {
        self.unqueue(id);
        self.dispatch_list.insert_sorted(&mut self.requests, id, keep_directions);
    }

    /// Returns the number of requests in the elevator. A request leaves the elevator when it is
    /// dispatched, released or absorbed.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Sets the time of the next [`Elevator::timer`](crate::Elevator::timer)
    /// call, and replaces an earlier time.
    pub fn set_timer(&mut self, at: Time) {
        self.timer = Some(at);
    }

    /// Cancels the timer.
    pub fn cancel_timer(&mut self) {
        self.timer = None;
    }

    /// Records a decision if recording is on.
    #[inline]
    pub fn note(&mut self, decision: impl FnOnce() -> Decision) {
        self.log.note(self.now, decision);
    }

    /// Returns the process id of a context.
    #[must_use]
    pub fn pid(&self, context: ContextId) -> u32 {
        self.contexts.get(context).pid
    }

    /// Returns the hardware queue for requests of `context`.
    #[inline]
    #[must_use]
    pub fn hw_queue_of(&self, context: ContextId) -> u16 {
        if self.hw_queues == 1 { 0 } else { (context.index() % usize::from(self.hw_queues)) as u16 }
    }

    /// Requires a run of the queue before the next submission. Records no decision.
    pub fn run_queue(&mut self) {
        self.kick = true;
    }

    /// Requires a run of the queue immediately, in the middle of a submission.
    pub fn kick(&mut self) {
        self.kick = true;
        self.note(|| Decision::Kick);
    }
}
