//! Budgets: the number of sectors that a queue may have served in a turn. A queue that uses its
//! budget quickly gets a larger budget. A queue that idles gets a smaller budget. The largest
//! budget follows the device's peak rate.

use super::Bfq;
use super::data::queue::QueueId;
use crate::decision::BfqReason;
use crate::env::Env;
use crate::parts::mean::SAMPLE;
use crate::request::RequestId;

/// Largest budget until enough budgets have been assigned, in sectors.
pub(super) const DEFAULT_MAX: i64 = 16 * 1024;

/// Decaying count of turns from which the device's largest budget applies. The 11th turn reaches
/// this count.
const ASSIGNED_ENOUGH: u64 = 194;

/// Data that all budgets depend on.
#[derive(Debug)]
pub(super) struct Budgets {
    /// Largest budget on this device, in sectors.
    pub(super) max: i64,
    /// Number of assigned budgets, as a decaying count.
    assigned: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { max: DEFAULT_MAX, assigned: 0 }
    }
}

impl Budgets {
    /// Counts the start of a turn.
    pub(super) fn count_turn(&mut self) {
        self.assigned = (7 * self.assigned + SAMPLE) / 8;
    }

    pub(super) fn is_settled(&self) -> bool {
        self.assigned >= ASSIGNED_ENOUGH
    }
}

/// Ratio of the largest budget to the smallest.
const MAX_OVER_MIN: i64 = 32;

/// Factor of the charge for async requests.
const ASYNC_FACTOR: i64 = 3;

impl Bfq {
    /// Returns the largest budget that applies now.
    pub(super) fn default_budget(&self) -> i64 {
        if self.budgets.is_settled() { self.budgets.max } else { DEFAULT_MAX }
    }

    /// Returns the smallest budget.
    pub(super) fn min_budget(&self) -> i64 {
        self.default_budget() / MAX_OVER_MIN
    }

    /// Returns the charge for serving `request` of queue `id`, in sectors.
    #[inline]
    pub(super) fn charge(&self, env: &Env, id: QueueId, request: RequestId) -> i64 {
        let sectors = i64::from(env.requests[request].nr_sectors);
        let queue = &self.queues[id];
        if queue.sync || self.entities[id.entity()].raise > 1 || self.is_asymmetric(Some(id)) {
            sectors
        } else {
            sectors * ASYNC_FACTOR
        }
    }

    /// Returns the charge for the queue's next request, if it has one.
    pub(super) fn next_charge(&self, env: &Env, id: QueueId) -> Option<i64> {
        self.queues[id].next.map(|next| self.charge(env, id, next))
    }

    /// Adapts the budget of a waiting queue to its new next request.
    #[inline]
    pub(super) fn next_changed(&mut self, env: &mut Env, id: QueueId) {
        if self.active == Some(id) {
            return;
        }
        let Some(charge) = self.next_charge(env, id) else { return };
        let entity = &mut self.entities[id.entity()];
        let budget = self.queues[id].max_budget.max(charge).max(entity.service);
        if entity.budget != budget {
            entity.budget = budget;
            self.requeue(env, id, false);
        }
    }

    /// Computes the largest budget of a queue at the end of its turn.
    pub(super) fn adapt_budget(&mut self, env: &Env, id: QueueId, reason: BfqReason) {
        let min = self.min_budget();
        let max = self.budgets.max;
        let entity = &self.entities[id.entity()];
        let queue = &self.queues[id];
        let raised = entity.raise > 1;
        let budget = if raised { 2 * min } else { queue.max_budget };
        let budget = match reason {
            _ if !queue.sync => max,
            _ if raised => budget,
            BfqReason::Preempted => return,
            BfqReason::TooIdle if queue.in_flight > 0 => (2 * budget).min(max),
            BfqReason::TooIdle if budget > 5 * min => budget - 4 * min,
            BfqReason::TooIdle => min,
            BfqReason::Timeout => (2 * budget).min(max),
            BfqReason::Exhausted => (4 * budget).min(max),
            BfqReason::NoMoreRequests => entity.service.max(min),
        };
        let automatic = self.budgets.is_settled() && self.tunables.max_budget == 0;
        let budget = if automatic { budget.min(max) } else { budget };
        self.queues[id].max_budget = budget;
        if let Some(charge) = self.next_charge(env, id) {
            self.entities[id.entity()].budget = budget.max(charge);
        }
    }

    /// Returns the largest budget: the number of sectors that the
    /// device transfers within the timeout of a turn.
    pub(super) fn automatic_max_budget(&self, env: &Env) -> i64 {
        let timeout_ms = self.tunables.timeout_jiffies * env.jiffy_ns / crate::time::MILLISECOND_NS;
        self.peak_rate.sectors_in_ms(timeout_ms)
    }
}
