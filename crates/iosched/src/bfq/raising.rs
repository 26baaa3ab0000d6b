//! Weight raising: queues for which an interactive user seems to wait get a multiple of their
//! weight for some time.
//!
//! An interactive queue becomes busy after a pause. It is raised for the time that this device
//! needs to load a large application. A soft real-time queue has regular, small demands. It is
//! raised for a short time whenever it becomes busy again.

use super::Bfq;
use super::data::queue::{NEVER, QueueId};
use super::data::raising::Arrival;
use crate::env::Env;

/// Weight factor of an interactive queue.
pub(super) const INTERACTIVE: u32 = 30;

/// Weight factor of a soft real-time queue.
const SOFT_REAL_TIME: u32 = 30 * 100;

/// Time that a soft real-time queue stays raised without becoming busy again, ms.
const SOFT_REAL_TIME_MS: u64 = 300;

/// Number of served sectors after which an interactive queue must have finished loading.
const SERVED_MAX: i64 = 120_000;

/// Largest rate of a soft real-time queue, sectors per second.
const SOFT_REAL_TIME_RATE: i64 = 7000;

/// Additional jiffies for late timers.
const SLACK: i64 = 4;

/// Minimum and maximum time that an interactive queue is raised, ms.
const DURATION_MIN_MS: u64 = 3000;

const DURATION_MAX_MS: u64 = 25_000;

/// Weight of the default level. Only queues with this weight can be interactive or soft real-time.
const WEIGHT_ELIGIBLE: u32 = 40;

impl Bfq {
    /// Returns whether the queue is raised as soft real-time.
    pub(super) fn is_soft_length(&self, id: QueueId) -> bool {
        self.queues[id].raising.length == self.milliseconds(SOFT_REAL_TIME_MS)
    }

    /// Returns the time that an interactive queue is raised, in jiffies. It corresponds to a
    /// constant amount of data at the device's peak rate.
    pub(super) fn interactive_duration(&self) -> i64 {
        let jiffies = i64::try_from(self.peak_rate.reference_jiffies()).unwrap_or(i64::MAX);
        jiffies.clamp(self.milliseconds(DURATION_MIN_MS), self.milliseconds(DURATION_MAX_MS))
    }

    /// Returns the present or pending weight of a queue, without raising.
    fn pending_weight(&self, id: QueueId) -> u32 {
        self.entities[id.entity()].new_weight
    }

    /// Classifies a queue that becomes busy. `long` tells whether the queue had a long pause, and
    /// `owned` tells whether one process uses the queue.
    pub(super) fn judge_arrival(&self, now: i64, id: QueueId, long: bool, owned: bool) -> Arrival {
        let queue = &self.queues[id];
        let in_large_burst = queue.in_large_burst;
        let has_weight = self.rules.raises_any_weight || self.pending_weight(id) == WEIGHT_ELIGIBLE;
        let eligible = has_weight && !in_large_burst;
        let soft =
            eligible && !queue.seek.is_totally_seeky() && now > queue.raising.soft_next_start && queue.in_flight == 0;
        let interactive = eligible && long;
        let raised = self.entities[id.entity()].raise > 1;
        let deserves = self.tunables.low_latency && (raised || (queue.sync && owned && (interactive || soft)));
        Arrival { in_large_burst, interactive, soft, deserves }
    }

    /// Starts, changes or ends the raising of a queue that becomes busy.
    pub(super) fn update_raising(&mut self, now: i64, id: QueueId, arrival: &Arrival) {
        let duration = self.interactive_duration();
        let soft_length = self.milliseconds(SOFT_REAL_TIME_MS);
        let low_budget = 2 * self.min_budget();
        let entity = &mut self.entities[id.entity()];
        let before = entity.raise;
        let raising = &mut self.queues[id].raising;
        if before == 1 && arrival.deserves {
            if arrival.interactive {
                raising.served = 0;
                entity.raise = INTERACTIVE;
                raising.length = duration;
            } else {
                raising.switched_at = NEVER;
                entity.raise = SOFT_REAL_TIME;
                raising.length = soft_length;
            }
            entity.budget = entity.budget.min(low_budget);
        } else if before > 1 {
            if arrival.interactive {
                entity.raise = INTERACTIVE;
                raising.length = duration;
            } else if arrival.in_large_burst {
                entity.raise = 1;
            } else if arrival.soft {
                if raising.length != soft_length {
                    raising.switched_at = raising.stamp;
                    raising.length = soft_length;
                    entity.raise = SOFT_REAL_TIME;
                }
                raising.stamp = now;
            }
        }
        entity.changed |= entity.raise != before;
    }

    /// Raises an async queue like an interactive one, after a long time without raising.
    pub(super) fn raise_async(&mut self, id: QueueId) {
        let duration = self.interactive_duration();
        self.queues[id].raising.length = duration;
        let entity = &mut self.entities[id.entity()];
        entity.raise = INTERACTIVE;
        entity.changed = true;
        self.raised_busy += 1;
    }

    /// Ends the raising of a queue.
    fn end_raising(&mut self, now: i64, id: QueueId) {
        if !self.is_soft_length(id) {
            self.queues[id].raising.soft_next_start = now;
        }
        let queue = &mut self.queues[id];
        self.raised_busy -= i32::from(queue.busy);
        queue.raising.length = 0;
        queue.raising.stamp = now;
        let entity = &mut self.entities[id.entity()];
        entity.raise = 1;
        entity.changed = true;
    }

    /// Turns a soft real-time queue back into the interactive queue that it was before.
    pub(super) fn back_to_interactive(&mut self, id: QueueId) {
        let duration = self.interactive_duration();
        let raising = &mut self.queues[id].raising;
        raising.length = duration;
        raising.stamp = raising.switched_at;
        let entity = &mut self.entities[id.entity()];
        entity.raise = INTERACTIVE;
        entity.changed = true;
    }

    /// Ends the soft real-time state of a queue. The queue becomes interactive again if its
    /// interactive time is not over. Otherwise its raising ends.
    pub(super) fn leave_soft(&mut self, now: i64, id: QueueId) {
        if now > self.queues[id].raising.switched_at + self.interactive_duration() {
            self.end_raising(now, id);
        } else {
            self.back_to_interactive(id);
        }
    }

    /// Checks after each served request whether the raising of a queue is over.
    pub(super) fn check_raising(&mut self, now: i64, id: QueueId) {
        if self.entities[id.entity()].raise > 1 {
            let queue = &self.queues[id];
            let over = now > queue.raising.stamp + queue.raising.length;
            if queue.in_large_burst {
                self.end_raising(now, id);
            } else if over {
                if self.is_soft_length(id) {
                    self.leave_soft(now, id);
                } else {
                    self.end_raising(now, id);
                }
            }
            if self.entities[id.entity()].raise > 1
                && !self.is_soft_length(id)
                && self.queues[id].raising.served > SERVED_MAX
            {
                self.end_raising(now, id);
            }
        }
        let entity = &self.entities[id.entity()];
        if (entity.weight > entity.original_weight) != (entity.raise > 1) {
            self.take_over_priority(id.entity(), false);
        }
    }

    /// Returns the earliest time, in jiffies, at which the queue may become busy again and still
    /// count as soft real-time.
    pub(super) fn soft_next_start(&self, env: &Env, id: QueueId) -> i64 {
        let queue = &self.queues[id];
        let hz = self.second_fraction(1);
        let by_rate = queue.backlogged_at + hz * queue.served_since_backlogged / SOFT_REAL_TIME_RATE;
        let idle = (self.tunables.slice_idle_ns / env.jiffy_ns) as i64;
        queue.raising.soft_next_start.max(by_rate).max(self.jiffies(env) + idle + SLACK)
    }

    /// Ends all raising, except for the active queue, after low_latency was turned off.
    pub(super) fn end_all_raising(&mut self, env: &Env) {
        let now = self.jiffies(env);
        let ids: Vec<QueueId> = self.queues.ids().collect();
        for &id in &ids {
            if self.entities[id.entity()].place != super::data::entity::EntityTree::Nowhere {
                self.end_raising(now, id);
            }
        }
        let groups: Vec<_> = self.groups.ids().collect();
        for group in groups {
            let queues = self.groups[group].async_queues;
            for id in queues.into_iter().flatten().flatten() {
                self.end_raising(now, id);
            }
        }
    }
}
