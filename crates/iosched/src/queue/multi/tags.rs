//! Allocation in blk-mq: tags of hardware queues, and the order of contexts that wait for a tag.
//!
//! Each io context has its hardware queue. A bio without a free tag waits, and its context gets
//! [`Submit::Full`](crate::Submit::Full). When a tag is free for the context, the tag is reserved,
//! and the context submits the bio again. [`Waking`] is the order in which waiting contexts try to
//! get a tag.

use std::collections::VecDeque;

use crate::context::{CgroupId, ContextId, IoPriority};
use crate::elevator::Elevator;
use crate::env::Env;
use crate::layer::{MultiQueueRules, Waking};
use crate::parts::tags::{TagLayout, TagMap};
use crate::queue::config::DeviceQueues;
use crate::request::{Bio, NO_TAG};

/// Value of `nr_requests` for a queue without a limit.
pub(in crate::queue) const UNLIMITED: u32 = u32::MAX;

/// Properties that a bio gets at submission.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) struct Origin {
    pub(in crate::queue) ioprio: IoPriority,
    pub(in crate::queue) cgroup: CgroupId,
}

impl Origin {
    #[inline]
    fn of(env: &Env, bio: &Bio) -> Self {
        Self { ioprio: env.bio_ioprio, cgroup: env.contexts.get(bio.context).cgroup }
    }
}

/// Tag and properties for a new request.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) struct Grant {
    pub(in crate::queue) tag: u32,
    pub(in crate::queue) hw_queue: u16,
    pub(in crate::queue) origin: Origin,
}

/// Bio that waits for a tag.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) struct Waiter {
    pub(in crate::queue) bio: Bio,
    origin: Origin,
    /// Number of tags that the bio may use, determined at the start of its wait.
    pub(in crate::queue) limit: Option<u32>,
    /// Whether the wait is not reported yet: the context must end its plug first.
    pub(in crate::queue) untold: bool,
}

/// Hardware queue.
#[derive(Debug)]
struct HwQueue {
    /// Tags; `None` if their number has no limit.
    tags: Option<TagMap>,
    waiting: VecDeque<Waiter>,
    /// Number of its requests in the device.
    in_driver: u32,
}

/// State of an io context.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    waits: bool,
    /// Reserved tag, if the context was woken.
    granted: Option<Grant>,
}

/// Pass over the waiting contexts of a hardware queue. Each context tries once to get a tag.
#[derive(Clone, Copy, Debug)]
struct Pass {
    hw_queue: usize,
    /// Index of the next context.
    at: usize,
    /// Index after the last context of this pass.
    end: usize,
    /// Limit of the last failed search for a tag, if no tag was released since then.
    missed: Option<Option<u32>>,
}

/// Allocation of one request queue.
#[derive(Debug)]
pub(in crate::queue) struct MultiQueue {
    pub(in crate::queue) rules: MultiQueueRules,
    layout: TagLayout,
    /// Whether limits on tags are counted per word of the tag bitmap.
    limits_words: bool,
    hw_queues: Vec<HwQueue>,
    tasks: Vec<Task>,
    /// Contexts that may submit again, but that `woken` has not returned to the host yet. Some of
    /// these contexts waited under the previous elevator. The other contexts have a reserved tag,
    /// which no other process can take.
    unnamed: VecDeque<ContextId>,
    /// Whether a tag was released and not offered to any context yet.
    returned: bool,
    /// Whether a completion released a tag since the last pass began, while contexts waited. The
    /// tag is offered to these contexts before other contexts can use it.
    freed: bool,
    pass: Option<Pass>,
    /// Hardware queue to check first for the next request.
    pub(in crate::queue) turn: u16,
}

impl MultiQueue {
    pub(in crate::queue) fn new(rules: MultiQueueRules, device: DeviceQueues, nr_requests: u32) -> Self {
        let DeviceQueues { count, layout, limits_words, .. } = device;
        let hw_queue = |_| HwQueue { tags: None, waiting: VecDeque::new(), in_driver: 0 };
        let mut queue = Self {
            rules,
            layout,
            limits_words,
            hw_queues: (0..count.max(1)).map(hw_queue).collect(),
            tasks: Vec::new(),
            unnamed: VecDeque::new(),
            returned: false,
            freed: false,
            pass: None,
            turn: 0,
        };
        queue.resize(nr_requests);
        queue.returned = false;
        queue
    }

    fn task(&mut self, context: ContextId) -> &mut Task {
        if self.tasks.len() <= context.index() {
            self.tasks.resize(context.index() + 1, Task::default());
        }
        &mut self.tasks[context.index()]
    }

    /// Returns whether a tag is reserved for the context's next bio.
    #[inline]
    pub(in crate::queue) fn is_granted(&self, context: ContextId) -> bool {
        self.tasks.get(context.index()).is_some_and(|task| task.granted.is_some())
    }

    // ---- allocation

    /// Allocates a tag for `bio`: the tag reserved for its context, otherwise a free tag. The error
    /// is the number of tags that the bio may use; the caller makes the bio [wait](Self::wait).
    #[inline(always)]
    pub(in crate::queue) fn allocate(
        &mut self,
        env: &Env,
        elevator: &mut dyn Elevator,
        nr_requests: u32,
        bio: &Bio,
    ) -> Result<Grant, Option<u32>> {
        if self.freed {
            self.offer(env, elevator, nr_requests);
        }
        if let Some(grant) = self.tasks.get_mut(bio.context.index()).and_then(|task| task.granted.take()) {
            self.call_off(bio.context);
            return Ok(grant);
        }
        let hw_queue = env.hw_queue_of(bio.context);
        let origin = Origin::of(env, bio);
        let tag = match &mut self.hw_queues[usize::from(hw_queue)].tags {
            None => NO_TAG,
            Some(tags) => {
                let limit = elevator.limit_depth(env, bio, nr_requests);
                tags.get(limit).ok_or(limit)?
            }
        };
        Ok(Grant { tag, hw_queue, origin })
    }

    /// Offers tags from completions to waiting contexts, before the process that submits now can
    /// take a tag. Otherwise, waiting contexts would starve if a host always lets another process
    /// submit before the turn.
    #[cold]
    #[inline(never)]
    fn offer(&mut self, env: &Env, elevator: &mut dyn Elevator, nr_requests: u32) {
        while let Some(context) = self.next_woken(env, elevator, nr_requests) {
            self.unnamed.push_back(context);
        }
        self.freed = false;
    }

    /// Handles a submission of `context` with its reserved
    /// tag: the context need not be woken any more.
    #[cold]
    #[inline(never)]
    fn call_off(&mut self, context: ContextId) {
        self.unnamed.retain(|&other| other != context);
    }

    /// Makes `bio` wait for one of `limit` tags. `untold`: the wait is reported later.
    #[cold]
    pub(in crate::queue) fn wait(&mut self, env: &Env, bio: &Bio, limit: Option<u32>, untold: bool) -> Waiter {
        let waiter = Waiter { bio: *bio, origin: Origin::of(env, bio), limit, untold };
        if !std::mem::replace(&mut self.task(bio.context).waits, true) {
            let hw_queue = usize::from(env.hw_queue_of(bio.context));
            self.hw_queues[hw_queue].waiting.push_back(waiter);
        }
        waiter
    }

    /// Releases the tag of a finished request.
    #[inline]
    pub(in crate::queue) fn release(&mut self, tag: u32, hw_queue: u16, by_completion: bool) {
        if tag == NO_TAG {
            return;
        }
        let hw_queue = &mut self.hw_queues[usize::from(hw_queue)];
        if let Some(tags) = &mut hw_queue.tags {
            tags.put(tag);
        }
        self.returned |= by_completion || self.rules.waking == Waking::OnePass;
        self.freed |= by_completion && !hw_queue.waiting.is_empty();
        if let Some(pass) = &mut self.pass {
            pass.missed = None;
        }
    }

    /// Reports the wait of `context`, if it is not reported yet.
    pub(in crate::queue) fn tell(&mut self, context: ContextId) -> Option<Waiter> {
        let mut waiting = self.hw_queues.iter_mut().flat_map(|hw_queue| &mut hw_queue.waiting);
        let waiter = waiting.find(|waiter| waiter.bio.context == context && waiter.untold)?;
        waiter.untold = false;
        Some(*waiter)
    }

    /// Returns whether `context` waits.
    pub(in crate::queue) fn waits(&self, context: ContextId) -> bool {
        self.tasks.get(context.index()).is_some_and(|task| task.waits)
    }

    // ---- waking

    /// Returns whether no context can be woken. A tag that was released while no context waits
    /// stays free.
    #[inline]
    pub(in crate::queue) fn is_calm(&mut self) -> bool {
        if !self.unnamed.is_empty() || self.pass.is_some() {
            return false;
        }
        if let [only] = self.hw_queues.as_slice() {
            self.returned &= !only.waiting.is_empty();
        }
        !self.returned
    }

    /// Returns the next context that waited and has a tag now.
    pub(in crate::queue) fn woken(
        &mut self,
        env: &Env,
        elevator: &mut dyn Elevator,
        nr_requests: u32,
    ) -> Option<ContextId> {
        match self.unnamed.pop_front() {
            Some(context) => Some(context),
            None => self.next_woken(env, elevator, nr_requests),
        }
    }

    /// Returns the next waiting context that gets a tag.
    fn next_woken(&mut self, env: &Env, elevator: &mut dyn Elevator, nr_requests: u32) -> Option<ContextId> {
        loop {
            let mut pass = match self.pass.take() {
                Some(pass) => pass,
                None if std::mem::take(&mut self.returned) => {
                    self.freed = false;
                    self.new_pass(0)
                }
                None => return None,
            };
            if let Some(context) = self.continue_pass(&mut pass, env, elevator, nr_requests) {
                self.pass = Some(pass);
                return Some(context);
            }
            if pass.hw_queue + 1 < self.hw_queues.len() {
                self.pass = Some(self.new_pass(pass.hw_queue + 1));
            }
        }
    }

    fn new_pass(&self, hw_queue: usize) -> Pass {
        let end = match self.rules.waking {
            Waking::OnePass => self.hw_queues[hw_queue].waiting.len(),
            Waking::Rescan => usize::MAX,
        };
        Pass { hw_queue, at: 0, end, missed: None }
    }

    fn continue_pass(
        &mut self,
        pass: &mut Pass,
        env: &Env,
        elevator: &mut dyn Elevator,
        nr_requests: u32,
    ) -> Option<ContextId> {
        let HwQueue { tags, waiting, .. } = &mut self.hw_queues[pass.hw_queue];
        while pass.at < pass.end.min(waiting.len()) {
            let Waiter { bio, origin, limit, .. } = waiting[pass.at];
            let limit = match self.rules.waking {
                Waking::OnePass => elevator.limit_depth(env, &bio, nr_requests),
                Waking::Rescan => limit,
            };
            let tag = match tags {
                None => Some(NO_TAG),
                // The search would fail again, so only the hint is updated.
                Some(tags) if pass.missed == Some(limit) => {
                    tags.miss();
                    None
                }
                Some(tags) => tags.get(limit),
            };
            let Some(tag) = tag else {
                // The search of the next context would also fail.
                limit?;
                pass.missed = Some(limit);
                pass.at += 1;
                continue;
            };
            waiting.remove(pass.at);
            match self.rules.waking {
                Waking::OnePass => pass.end -= 1,
                Waking::Rescan => pass.at = 0,
            }
            let hw_queue = pass.hw_queue as u16;
            let task = &mut self.tasks[bio.context.index()];
            *task = Task { waits: false, granted: Some(Grant { tag, hw_queue, origin }) };
            return Some(bio.context);
        }
        None
    }

    // ---- control

    /// Sets the number of tags per hardware queue to `nr_requests`.
    pub(in crate::queue) fn resize(&mut self, nr_requests: u32) {
        for hw_queue in &mut self.hw_queues {
            match &mut hw_queue.tags {
                // While a tag is in use, the layout of the tags must not change.
                Some(tags) if nr_requests != UNLIMITED && tags.held() > 0 => tags.resize(nr_requests),
                tags => {
                    let map = || TagMap::new(self.layout, nr_requests).with_limits(self.limits_words);
                    *tags = (nr_requests != UNLIMITED).then(map);
                }
            }
        }
        self.returned = true;
        if let Some(pass) = &mut self.pass {
            pass.missed = None;
        }
    }

    /// Returns the number of tags per word, if limits are counted per word.
    pub(in crate::queue) fn limit_word(&self) -> Option<u32> {
        self.hw_queues[0].tags.as_ref().and_then(TagMap::limit_word)
    }

    /// Allocates a tag for a request that was allocated under the previous elevator. Returns
    /// [`NO_TAG`] if no tag is free.
    pub(in crate::queue) fn adopt(&mut self, hw_queue: u16) -> u32 {
        let tags = self.hw_queues[usize::from(hw_queue)].tags.as_mut();
        tags.and_then(|tags| tags.get(None)).unwrap_or(NO_TAG)
    }

    /// Lets `context`, which waited under the previous elevator, try again.
    pub(in crate::queue) fn retry(&mut self, context: ContextId) {
        self.unnamed.push_back(context);
    }

    /// Returns all contexts that wait or have a reserved tag.
    pub(in crate::queue) fn waiters(&self) -> Vec<ContextId> {
        let waiting = self.hw_queues.iter().flat_map(|hw_queue| &hw_queue.waiting).map(|waiter| waiter.bio.context);
        let granted = self.tasks.iter().zip(0..).filter(|(task, _)| task.granted.is_some());
        let named = granted.map(|(_, i)| ContextId(i)).filter(|context| !self.unnamed.contains(context));
        self.unnamed.iter().copied().chain(named).chain(waiting).collect()
    }

    /// Releases the tag reserved for `context`.
    pub(in crate::queue) fn decline(&mut self, context: ContextId) {
        let granted = self.tasks.get_mut(context.index()).and_then(|task| task.granted.take());
        if let Some(Grant { tag, hw_queue, .. }) = granted {
            self.release(tag, hw_queue, true);
        }
    }

    /// Removes an exited context, and releases its reserved tag.
    pub(in crate::queue) fn exit(&mut self, context: ContextId) {
        self.unnamed.retain(|&c| c != context);
        let Some(task) = self.tasks.get_mut(context.index()) else {
            return;
        };
        let Task { waits, granted } = std::mem::take(task);
        if let Some(Grant { tag, hw_queue, .. }) = granted {
            self.release(tag, hw_queue, true);
        }
        let place = |hw_queue: &HwQueue| hw_queue.waiting.iter().position(|waiter| waiter.bio.context == context);
        let mut found = self.hw_queues.iter().zip(0..).filter_map(|(hw_queue, i)| place(hw_queue).map(|at| (i, at)));
        let Some((hw_queue, place)) = found.next().filter(|_| waits) else {
            return;
        };
        self.hw_queues[hw_queue].waiting.remove(place);
        if let Some(pass) = self.pass.as_mut().filter(|pass| pass.hw_queue == hw_queue && pass.end != usize::MAX) {
            pass.at -= usize::from(place < pass.at);
            pass.end -= usize::from(place < pass.end);
        }
    }

    // ---- the device

    /// Returns the number of hardware queues.
    pub(in crate::queue) fn hw_queues(&self) -> u16 {
        self.hw_queues.len() as u16
    }

    #[inline]
    pub(in crate::queue) fn started(&mut self, hw_queue: u16) {
        self.hw_queues[usize::from(hw_queue)].in_driver += 1;
    }

    #[inline]
    pub(in crate::queue) fn left_device(&mut self, hw_queue: u16) {
        self.hw_queues[usize::from(hw_queue)].in_driver -= 1;
    }

    /// Returns the number of requests of `hw_queue` in the device.
    #[inline]
    pub(in crate::queue) fn in_driver(&self, hw_queue: u16) -> u32 {
        self.hw_queues[usize::from(hw_queue)].in_driver
    }

    /// Checks that each tag in use belongs to a request, or is reserved for a context.
    pub(in crate::queue) fn check(&self, env: &Env) {
        for (hw_queue, number) in self.hw_queues.iter().zip(0u16..) {
            let of_requests = env
                .requests
                .ids()
                .map(|id| &env.requests[id])
                .filter(|request| request.hw_queue == number && request.tag != NO_TAG)
                .map(|request| request.tag);
            let granted = self.tasks.iter().filter_map(|task| task.granted);
            let kept = granted.filter(|grant| grant.hw_queue == number && grant.tag != NO_TAG).map(|grant| grant.tag);
            let held: Vec<u32> = of_requests.chain(kept).collect();
            match &hw_queue.tags {
                Some(tags) => {
                    assert_eq!(held.len(), tags.held() as usize, "each held tag belongs to a request");
                    assert!(held.iter().all(|&tag| tags.holds(tag)), "no request holds a free tag");
                }
                None => assert!(held.is_empty(), "no tags without a limit"),
            }
            let waits = |waiter: &Waiter| self.tasks[waiter.bio.context.index()].waits;
            assert!(hw_queue.waiting.iter().all(waits));
        }
        let waiting: usize = self.hw_queues.iter().map(|hw_queue| hw_queue.waiting.len()).sum();
        assert_eq!(self.tasks.iter().filter(|task| task.waits).count(), waiting, "each waiting process is on a list");
    }
}
