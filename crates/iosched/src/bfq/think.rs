//! Think time: whether a queue's process soon follows up, and whether it mostly waits for its I/O.

use super::Bfq;
use super::data::entity::Class;
use super::data::queue::{Queue, QueueId};
use crate::env::Env;
use crate::time::MILLISECOND_NS;

/// For this long after a queue was split off, the record of its process is not looked at.
const RESTORED_MS: u64 = 2000;
/// A process that idles more than one part in so many is not bound by I/O.
const IDLE_PART: u64 = 5;
/// The window in which that is judged, ns.
const WINDOW_NS: u64 = 200 * MILLISECOND_NS;
/// Short think time may become long again so soon that the inject limit is left alone, ms.
const LIMIT_KEPT_MS: u64 = 100;

impl Queue {
    /// A request comes to a queue that had nothing: the process thought since the last completion. The clock of a new
    /// queue begins 1 ns late, so that a request at once counts as one after the longest time.
    fn sample_think_time(&mut self, now_ns: u64, idle_ns: u64) {
        if self.in_flight == 0 && !self.busy {
            self.think.record(now_ns.wrapping_sub(self.last_completion_ns).min(2 * idle_ns));
        }
    }

    /// A request comes: whether the process has mostly waited for I/O so far.
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
    /// A request comes to the queue: the record of its process' think time.
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

    /// A sync request comes to the queue, which does not hold it yet.
    pub(super) fn observe_io_bound(&mut self, env: &Env, id: QueueId) {
        self.queues[id].observe_io_bound(env.now.as_ns());
    }
}
