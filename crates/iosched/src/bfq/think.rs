//! Think time: whether the process of a queue soon sends its
//! next request, and whether it is I/O bound.

use super::Bfq;
use super::data::entity::Class;
use super::data::queue::{Queue, QueueId};
use crate::env::Env;
use crate::time::MILLISECOND_NS;

/// Time after a split during which the statistics of the process are not checked, ms.
const RESTORED_MS: u64 = 2000;
/// A process is not I/O bound if its idle time exceeds 1/`IDLE_PART` of the window.
const IDLE_PART: u64 = 5;
/// Window of this judgement, ns.
const WINDOW_NS: u64 = 200 * MILLISECOND_NS;
/// Time after a decrease of the inject limit, ms. A change to a short think time keeps the limit
/// during this time.
const LIMIT_KEPT_MS: u64 = 100;

impl Queue {
    /// Adds a think time sample when a request comes to an empty queue. A new queue has its last
    /// completion 1 ns after its creation. Therefore the think time of an immediate request wraps,
    /// and counts as the longest think time.
    fn sample_think_time(&mut self, now_ns: u64, idle_ns: u64) {
        if self.in_flight == 0 && !self.busy {
            self.think.record(now_ns.wrapping_sub(self.last_completion_ns).min(2 * idle_ns));
        }
    }

    /// Checks at a new request whether the process is I/O bound.
    fn observe_io_bound(&mut self, now_ns: u64) {
        let total_ns = now_ns.wrapping_sub(self.io_start_ns);
        if self.is_idle() {
            self.idle_ns = self.idle_ns.wrapping_add(now_ns.wrapping_sub(self.last_completion_ns));
        }
        if self.just_created {
            return;
        }
        self.io_bound = self.idle_ns.wrapping_mul(IDLE_PART) <= total_ns;
        if total_ns > WINDOW_NS {
            self.io_start_ns = now_ns - total_ns / 2;
            self.idle_ns /= 2;
        }
    }
}

impl Bfq {
    /// Updates the think time statistics at a new request.
    pub(super) fn observe_think_time(&mut self, env: &Env, id: QueueId) {
        let idle_ns = self.tunables.slice_idle_ns;
        let now = self.jiffies(env);
        let [restored, limit_kept] = [RESTORED_MS, LIMIT_KEPT_MS].map(|ms| self.milliseconds(ms));
        let class = self.entities[id.entity()].class;
        let queue = &mut self.queues[id];
        queue.sample_think_time(env.now.as_ns(), idle_ns);
        if !queue.sync || class == Class::Idle || idle_ns == 0 || now <= queue.split_at + restored {
            return;
        }
        let short = !queue.think.is_more_than(idle_ns / 2);
        let changed = std::mem::replace(&mut queue.short_think, short) != short;
        if changed && queue.injection.baseline_ns == 0 && (!short || now >= queue.injection.decreased_at + limit_kept) {
            self.reset_injection(now, id);
        }
    }

    /// Checks at a new sync request, which is not in the
    /// queue yet, whether the process is I/O bound.
    pub(super) fn observe_io_bound(&mut self, env: &Env, id: QueueId) {
        self.queues[id].observe_io_bound(env.now.as_ns());
    }
}
