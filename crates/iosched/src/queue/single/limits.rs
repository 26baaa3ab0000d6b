//! Limits on allocation: `nr_requests`, congestion, and the batch of a task that had to wait.

use std::collections::VecDeque;

use crate::context::ContextId;
use crate::time::{MILLISECOND_NS, Time};

/// Number of requests that a woken task may allocate beyond the limit.
const BATCH: u8 = 32;
/// Time limit of a batch, ns.
const BATCH_NS: u64 = 20 * MILLISECOND_NS;

/// Allocation of one kind of requests: sync or async.
#[derive(Debug, Default)]
struct Direction {
    count: u32,
    full: bool,
    congested: bool,
    waiting: VecDeque<ContextId>,
}

/// Requests that a woken task may still allocate.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    left: u8,
    since: Time,
}

/// State of one task.
#[derive(Clone, Copy, Debug, Default)]
struct Task {
    batch: Batch,
    /// Whether the task waits, for async and for sync requests.
    waits: [bool; 2],
}

/// Allocation limits of one queue.
#[derive(Debug, Default)]
pub(in crate::queue) struct Limits {
    directions: [Direction; 2],
    tasks: Vec<Task>,
    woken: VecDeque<ContextId>,
}

impl Limits {
    fn task(&mut self, context: ContextId) -> &mut Task {
        if self.tasks.len() <= context.index() {
            self.tasks.resize(context.index() + 1, Task::default());
        }
        &mut self.tasks[context.index()]
    }

    /// Wakes the next waiting task, if any, and gives it a batch.
    fn wake(&mut self, now: Time, sync: bool) {
        if let Some(context) = self.directions[usize::from(sync)].waiting.pop_front() {
            let task = self.task(context);
            task.waits[usize::from(sync)] = false;
            task.batch = Batch { left: BATCH, since: now };
            self.woken.push_back(context);
        }
    }

    /// Counts one more request of `context`. Returns `false` if the context must wait.
    #[inline]
    pub(in crate::queue) fn allocate(&mut self, now: Time, nr_requests: u32, context: ContextId, sync: bool) -> bool {
        let direction = &mut self.directions[usize::from(sync)];
        if direction.count + 1 < nr_requests {
            direction.count += 1;
            // Linux' mark of congestion: an eighth below the limit.
            direction.congested |= direction.count > nr_requests - nr_requests / 8;
            return true;
        }
        self.allocate_full(now, nr_requests, context, sync)
    }

    #[cold]
    fn allocate_full(&mut self, now: Time, nr_requests: u32, context: ContextId, sync: bool) -> bool {
        let Batch { left, since } = self.task(context).batch;
        let batching = left > 0 && (left == BATCH || now.since(since) < BATCH_NS);
        let direction = &mut self.directions[usize::from(sync)];
        direction.congested = true;
        let filled_just_now = !direction.full;
        direction.full = true;
        let hard_limit = nr_requests.saturating_add(nr_requests / 2);
        if (!filled_just_now && !batching) || direction.count >= hard_limit {
            if !std::mem::replace(&mut self.task(context).waits[usize::from(sync)], true) {
                self.directions[usize::from(sync)].waiting.push_back(context);
            }
            return false;
        }
        direction.count += 1;
        debug_assert!(direction.count <= hard_limit);
        self.task(context).batch =
            if filled_just_now { Batch { left: BATCH - 1, since: now } } else { Batch { left: left - 1, since } };
        true
    }

    /// Reduces the number of requests by one, and wakes the next waiting task if there is room.
    #[inline]
    pub(in crate::queue) fn release(&mut self, now: Time, nr_requests: u32, sync: bool) {
        let direction = &mut self.directions[usize::from(sync)];
        debug_assert!(direction.count > 0, "a released request was allocated before");
        direction.count -= 1;
        if direction.congested && direction.count < nr_requests - nr_requests / 8 - nr_requests / 16 - 1 {
            direction.congested = false;
        }
        if direction.full && direction.count < nr_requests {
            direction.full = false;
        }
        if direction.count < nr_requests && !direction.waiting.is_empty() {
            self.wake(now, sync);
        }
    }

    /// Returns whether no task waits or was woken.
    #[inline]
    pub(in crate::queue) fn is_calm(&self) -> bool {
        self.woken.is_empty() && self.directions.iter().all(|direction| direction.waiting.is_empty())
    }

    /// Returns a task that waited and may try again.
    pub(in crate::queue) fn woken(&mut self, now: Time) -> Option<ContextId> {
        if self.woken.is_empty() {
            for sync in [false, true] {
                let direction = &self.directions[usize::from(sync)];
                // The tasks that were woken before have merged their bios and allocated no request.
                // Therefore no later release of a request would wake the next task.
                if direction.count == 0 && !direction.waiting.is_empty() {
                    self.wake(now, sync);
                }
            }
        }
        self.woken.pop_front()
    }

    /// Counts a request that was allocated in the multi-queue layer.
    pub(in crate::queue) fn adopt(&mut self, sync: bool) {
        self.directions[usize::from(sync)].count += 1;
    }

    /// Lets `context`, which waited in the multi-queue layer, try again.
    pub(in crate::queue) fn retry(&mut self, context: ContextId) {
        self.woken.push_back(context);
    }

    /// Returns all tasks that wait or were woken. A task that waits for both kinds appears twice.
    pub(in crate::queue) fn waiters(&self) -> Vec<ContextId> {
        self.woken.iter().chain(self.directions.iter().flat_map(|direction| &direction.waiting)).copied().collect()
    }

    /// Handles a change of `nr_requests`: wakes the tasks that have room now.
    pub(in crate::queue) fn resized(&mut self, now: Time, nr_requests: u32) {
        for sync in [false, true] {
            let direction = &mut self.directions[usize::from(sync)];
            direction.full = direction.count >= nr_requests;
            direction.congested = direction.count > nr_requests - nr_requests / 8;
            self.wake_all_that_fit(now, nr_requests, sync);
        }
    }

    fn wake_all_that_fit(&mut self, now: Time, nr_requests: u32, sync: bool) {
        let direction = &self.directions[usize::from(sync)];
        let room = nr_requests.saturating_sub(direction.count) as usize;
        for _ in 0..room.min(direction.waiting.len()) {
            self.wake(now, sync);
        }
    }

    /// Removes an exited task. If it had been woken, another task is woken instead.
    pub(in crate::queue) fn exit(&mut self, now: Time, nr_requests: u32, context: ContextId) {
        for direction in &mut self.directions {
            direction.waiting.retain(|&c| c != context);
        }
        let woken = self.woken.len();
        self.woken.retain(|&c| c != context);
        *self.task(context) = Task::default();
        if self.woken.len() < woken {
            for sync in [false, true] {
                self.wake_all_that_fit(now, nr_requests, sync);
            }
        }
    }

    pub(in crate::queue) fn congested(&self, sync: bool) -> bool {
        self.directions[usize::from(sync)].congested
    }

    pub(in crate::queue) fn allocated(&self, sync: bool) -> u32 {
        self.directions[usize::from(sync)].count
    }
}
