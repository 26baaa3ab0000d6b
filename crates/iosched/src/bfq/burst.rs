//! Bursts: many queues that are created together probably belong to a starting service, not to an
//! interactive task. Their weights are not raised.

use super::Bfq;
use super::data::group::GroupId;
use super::data::queue::{NEVER, QueueId};
use crate::env::Env;

/// Present burst.
#[derive(Debug)]
pub(super) struct Burst {
    /// Queues of the burst, while it is not large.
    pub(super) queues: Vec<QueueId>,
    /// Number of queues so far.
    pub(super) size: u32,
    pub(super) large: bool,
    /// Creation of the last queue, in jiffies.
    pub(super) last_at: i64,
    pub(super) group: GroupId,
}

impl Default for Burst {
    fn default() -> Self {
        Self { queues: Vec::new(), size: 0, large: false, last_at: NEVER, group: GroupId::ROOT }
    }
}

/// Time without a new queue after which a new burst begins, ms.
const INTERVAL_MS: u64 = 180;

/// Number of queues in a large burst.
const LARGE: u32 = 8;

/// Time during which a split queue does not count for bursts, ms.
const SPLIT_MS: u64 = 10;

impl Bfq {
    /// Adds a new queue to the present burst, or begins a new burst.
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

    /// Empties the list of the burst. If the burst is `large`,
    /// marks its queues as part of a large burst.
    fn empty_burst_list(&mut self, large: bool) {
        for id in std::mem::take(&mut self.burst.queues) {
            let queue = &mut self.queues[id];
            queue.in_burst_list = false;
            queue.in_large_burst |= large;
        }
    }
}
