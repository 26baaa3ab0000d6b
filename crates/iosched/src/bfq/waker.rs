//! Wakers. If a process repeatedly sends a request directly after a completion of another queue,
//! this other queue is the waker of the process' queue. The waker may be served during the turn of
//! the woken queue.

use super::Bfq;
use super::data::queue::QueueId;
use super::rules::Waking;
use crate::collections::Id;
use crate::decision::BfqEvent;
use crate::env::Env;

/// Time limit for the detections, as a multiple of slice_idle.
const WINDOW: u64 = 128;

impl Bfq {
    /// Handles a request that comes to a sync queue without other requests: looks for its waker.
    pub(super) fn look_for_waker(&mut self, env: &mut Env, id: QueueId) {
        let Some(last) = self.last_completed.filter(|&last| last != id) else { return };
        let now_ns = env.now.as_ns();
        let Waking { soon_ns, detections, is_limited_in_time } = self.rules.waking;
        let queue = &self.queues[id];
        if queue.short_think || now_ns.wrapping_sub(self.last_completion_ns) >= soon_ns {
            return;
        }
        let (serial, waker) = (queue.serial, self.queues[last].serial);
        let queue = &mut self.queues[id];
        let window_ns = self.tunables.slice_idle_ns.saturating_mul(WINDOW);
        let is_too_late = is_limited_in_time && now_ns > queue.detection_started_ns.saturating_add(window_ns);
        if queue.tentative_waker != waker || is_too_late {
            queue.tentative_waker = waker;
            queue.detections = 1;
            queue.detection_started_ns = now_ns;
            env.note(|| BfqEvent::WakerTried { queue: serial, waker }.into());
        } else {
            queue.detections += 1;
        }
        if self.queues[id].detections == detections {
            self.queues[id].tentative_waker = 0;
            self.lose_waker(id);
            self.set_waker(id, last);
            env.note(|| BfqEvent::Waker { queue: serial, waker }.into());
        }
    }

    /// Sets the waker of `id`, which has none yet.
    pub(super) fn set_waker(&mut self, id: QueueId, waker: QueueId) {
        debug_assert!(self.queues[id].waker.is_none());
        self.queues[id].waker = Some(waker);
        let queues = &mut self.queues;
        let mut woken = std::mem::take(&mut queues[waker].woken);
        woken.push_front(&mut queues.woken, id);
        queues[waker].woken = woken;
    }

    /// Removes the waker of `id`.
    pub(super) fn lose_waker(&mut self, id: QueueId) {
        if let Some(waker) = self.queues[id].waker.take() {
            let queues = &mut self.queues;
            let mut woken = std::mem::take(&mut queues[waker].woken);
            woken.remove(&mut queues.woken, id);
            queues[waker].woken = woken;
        }
    }

    /// Moves a queue that becomes busy to the front of its waker's list.
    pub(super) fn come_first_of_woken(&mut self, id: QueueId) {
        if let Some(waker) = self.queues[id].waker {
            self.lose_waker(id);
            self.set_waker(id, waker);
        }
    }

    /// Returns the number of queues that `id` wakes.
    pub(super) fn count_woken(&self, id: QueueId) -> usize {
        let mut count = 0;
        let mut at = self.queues[id].woken.first();
        while let Some(woken) = at {
            assert_eq!(self.queues[woken].waker, Some(id), "a woken queue knows its waker");
            count += 1;
            at = self.queues.woken[woken.number() as usize].next();
        }
        count
    }
}
