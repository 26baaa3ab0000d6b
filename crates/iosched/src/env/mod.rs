//! What a request queue shows its elevator, and what the two share: where queued requests are found to merge with,
//! and what has left the elevator for the device.

mod dispatch_list;
mod merge_hash;

use crate::context::{Cgroups, ContextId, Contexts, IoPriority};
use crate::decision::{Decision, DecisionLog};
use crate::kernel::KernelVersion;
use crate::request::{RequestId, RequestStage, Requests};
use crate::time::{SECOND_NS, Time};

pub(crate) use dispatch_list::DispatchList;
pub(crate) use merge_hash::MergeCache;

/// What a request queue shows its elevator. One moment lasts as long as one call.
#[derive(Debug)]
pub struct Env {
    /// The present moment.
    pub now: Time,
    /// All requests of the queue; elevators hold ids.
    pub requests: Requests,
    /// All io contexts of the queue.
    pub contexts: Contexts,
    /// All cgroups of the queue.
    pub cgroups: Cgroups,
    /// Where decisions go.
    pub log: DecisionLog,
    /// Jiffies in a second.
    pub hz: u32,
    /// Length of a jiffy in ns.
    pub jiffy_ns: u64,
    /// Whether seeking costs on the device.
    pub rotational: bool,
    /// Whether cgroups are told apart.
    pub groups: bool,
    /// Whether the device queues commands, if the host knows.
    pub command_queueing: Option<bool>,
    /// Hardware queues of the device; always 1 to an elevator of the single-queue layer.
    pub hw_queues: u16,
    /// The ioprio of the bio that is being submitted; only in the multi-queue layer.
    pub bio_ioprio: IoPriority,
    /// The version of Linux whose rules hold.
    pub kernel: KernelVersion,
    /// Tags in a word, where a limit on tags is counted in each word; `None`: it is counted over all tags.
    pub(crate) limit_word: Option<u32>,
    /// Whether requests of different cgroups may be one.
    pub(crate) merges_cgroups: bool,
    /// The hardware queue that is being run, for elevators that have a queue for each.
    pub hw_queue: u16,
    /// Where queued requests are found that a bio may join.
    pub(crate) merging: MergeCache,
    /// What has left the elevator and waits for the device.
    pub(crate) dispatch_list: DispatchList,
    /// The one deadline an elevator may ask for: it is called back then.
    pub(crate) timer: Option<Time>,
    /// The elevator wants the queue run before anything else happens.
    pub(crate) kick: bool,
    /// Requests in the elevator.
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

    /// Jiffies since the origin, rounded down.
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        self.now.as_ns() / self.jiffy_ns
    }

    /// When a timer set now for jiffy number `jiffy` fires: as that begins, but not within the present one.
    pub(crate) fn tick(&self, jiffy: u64) -> Time {
        Time::from_ns(jiffy.max(self.jiffies() + 1).saturating_mul(self.jiffy_ns))
    }

    /// The moment at which a timer fires that is set now to go off in `delay` jiffies: the wheel it stands on is coarser
    /// the longer that is.
    pub(crate) fn wheel(&self, delay: u64) -> Time {
        let (mut granularity, mut reach) = (1, 63);
        while delay >= reach {
            (granularity, reach) = (granularity * 8, reach * 8);
        }
        let jiffy = ((self.jiffies() + delay) / granularity + 1) * granularity;
        Time::from_ns(jiffy * self.jiffy_ns)
    }

    /// Asks to be called back at the [`tick`](Self::tick) of `jiffy`, to wait for a process' next request until then.
    pub(crate) fn idle_until(&mut self, jiffy: u64) {
        let at = self.tick(jiffy);
        self.timer = Some(at);
        let wait_ns = at.since(self.now);
        self.note(|| Decision::IdleArm { wait_ns });
    }

    /// The callback is no longer asked for: whoever waited need not any more.
    #[inline]
    pub(crate) fn cancel_idle(&mut self) {
        if self.timer.take().is_some() {
            self.note(|| Decision::IdleCancel);
        }
    }

    /// `id` is queued from now on, and bios may join it.
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

    /// `id` is not queued any more: nothing may merge with it.
    #[inline(always)]
    pub(crate) fn unqueue(&mut self, id: RequestId) {
        let request = &mut self.requests[id];
        debug_assert_eq!(request.stage, RequestStage::Queued, "only what is queued is given out or released");
        request.stage = RequestStage::Released;
        self.queued -= 1;
        self.hide(id);
    }

    /// Nothing may merge with `id` any more, though it stays queued.
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

    /// The elevator, which has taken `id` out of its own lists, releases it to the dispatch list ahead of the device:
    /// in sector order from where the device is, and with `keep_directions` past no request of the other direction.
    pub fn release_sorted(&mut self, id: RequestId, keep_directions: bool) {
        self.unqueue(id);
        self.dispatch_list.insert_sorted(&mut self.requests, id, keep_directions);
    }

    /// Requests in the elevator: inserted, and not given out, released or absorbed.
    #[inline]
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Asks for [`Elevator::timer`](crate::Elevator::timer) at `at`, instead of whenever it was asked for before.
    pub fn set_timer(&mut self, at: Time) {
        self.timer = Some(at);
    }

    /// Asks for no call any more.
    pub fn cancel_timer(&mut self) {
        self.timer = None;
    }

    /// Records a decision, if decisions are recorded.
    #[inline]
    pub fn note(&mut self, decision: impl FnOnce() -> Decision) {
        self.log.note(self.now, decision);
    }

    /// The process id behind a context.
    #[must_use]
    pub fn pid(&self, context: ContextId) -> u32 {
        self.contexts.get(context).pid
    }

    /// The hardware queue that requests of `context` go to.
    #[inline]
    #[must_use]
    pub fn hw_queue_of(&self, context: ContextId) -> u16 {
        if self.hw_queues == 1 { 0 } else { (context.index() % usize::from(self.hw_queues)) as u16 }
    }

    /// Asks for the queue to be run before anything else is submitted, as a matter of course and not as a decision.
    pub fn run_queue(&mut self) {
        self.kick = true;
    }

    /// Asks for the queue to be run at once, in the middle of a submission.
    pub fn kick(&mut self) {
        self.kick = true;
        self.note(|| Decision::Kick);
    }
}
