//! Bursts: queues that come up in numbers at once are those of some service starting, not of a person waiting, and are
//! not raised.

use super::Bfq;
use super::data::queue::QueueId;
use crate::env::Env;

/// A queue that comes up this long after the one before begins a new burst, ms.
const INTERVAL_MS: u64 = 180;

/// So many make a large burst.
const LARGE: u32 = 8;

/// A queue split off is not looked at for so long, ms.
const SPLIT_MS: u64 = 10;

impl Bfq {
    /// A queue came up.
    pub(super) fn join_burst(&mut self, env: &Env, id: QueueId) {
        let now = self.jiffies(env);
        let queue = &self.queues[id];
        if queue.in_burst_list || queue.in_large_burst || now <= queue.split_at + self.milliseconds(SPLIT_MS) {
            return;
        }
        let group = self.entities[id.entity()].group;
        if now > self.burst.last_at + self.milliseconds(INTERVAL_MS) || group != self.burst.group {
            self.burst.large = false;
            self.empty_burst_list(false);
            self.burst.size = 0;
            if self.busy == 0 {
                self.join_burst_list(id);
                self.burst.size = 1;
            }
            self.burst.group = group;
        } else if self.burst.large {
            self.queues[id].in_large_burst = true;
        } else {
            self.burst.size += 1;
            if self.burst.size == LARGE {
                self.burst.large = true;
                self.empty_burst_list(true);
                self.queues[id].in_large_burst = true;
            } else {
                self.join_burst_list(id);
            }
        }
        self.burst.last_at = now;
    }

    pub(super) fn join_burst_list(&mut self, id: QueueId) {
        debug_assert!(!self.queues[id].in_burst_list);
        self.queues[id].in_burst_list = true;
        self.burst.queues.push(id);
    }

    pub(super) fn leave_burst_list(&mut self, id: QueueId) {
        if std::mem::take(&mut self.queues[id].in_burst_list) {
            self.burst.queues.retain(|&other| other != id);
        }
    }

    /// Forgets the queues of the burst; if it has become `large`, they are of that from now on.
    fn empty_burst_list(&mut self, large: bool) {
        for id in std::mem::take(&mut self.burst.queues) {
            let queue = &mut self.queues[id];
            queue.in_burst_list = false;
            queue.in_large_burst |= large;
        }
    }
}
