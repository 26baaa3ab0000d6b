//! Batches: sync and async requests take turns. A batch has a limited number of async requests.
//!
//! A batch of sync requests ends by time, a batch of async requests by time or number. A write
//! cache may accept async requests long before they are written. The duration of an async batch is
//! therefore known only when the first sync request after the batch completes. The elevator adjusts
//! the limit on async requests, so that this completion comes at about the planned end of the
//! batch.

use super::tunables::Tunables;

/// Present batch. Times are in jiffies.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Whether the batch has sync requests.
    pub(super) sync: bool,
    /// Whether the batch has been chosen, and waits for
    /// requests of the previous batch in the device.
    pub(super) changing: bool,
    /// Whether none of the requests of a sync batch has completed yet.
    pub(super) new: bool,
    /// Time when the batch ends if requests of the other kind (sync or async) wait.
    pub(super) end: u64,
    /// Limit on async requests per batch.
    pub(super) quota: u64,
    /// Number of async requests that this batch may still have.
    pub(super) left: u64,
    /// Whether the last async batch ran out of requests before its end.
    pub(super) idled: bool,
}

/// Default length of an async batch, as a fraction of a second. `JIFFIES_PER_WRITE` is the assumed
/// number of jiffies per async request.
const WRITE_BATCH_FRACTION: u64 = 8;
const JIFFIES_PER_WRITE: u64 = 10;
/// Ratio between actual and planned time beyond which the limit is
/// halved or doubled instead of changed by one.
const FAR_OFF: u64 = 3;

impl Batch {
    pub(super) fn new(jiffy: u64, hz: u32) -> Self {
        let hz = u64::from(hz);
        Self {
            sync: false,
            changing: false,
            new: false,
            end: jiffy + hz / 2,
            quota: (hz / WRITE_BATCH_FRACTION / JIFFIES_PER_WRITE).max(2),
            left: 0,
            idled: false,
        }
    }

    /// Returns whether a batch of the other kind is next, if there are requests of that kind.
    pub(super) fn is_over(&self, jiffy: u64) -> bool {
        !self.changing && !self.new && (jiffy > self.end || (!self.sync && self.left == 0))
    }

    /// Chooses a batch of sync requests.
    pub(super) fn turn_to_sync(&mut self) {
        self.changing |= !self.sync;
        self.sync = true;
    }

    /// Chooses a batch of async requests.
    pub(super) fn turn_to_async(&mut self) {
        if self.sync {
            self.changing = true;
            self.new = false;
        }
        self.sync = false;
        self.left = self.quota;
        self.idled = false;
    }

    /// Starts the chosen batch when the device is empty.
    pub(super) fn begin(&mut self, jiffy: u64, tunables: &Tunables) {
        if self.sync {
            self.new = true;
        } else {
            self.end = jiffy + tunables.write_batch_expire;
        }
        self.changing = false;
    }

    /// Starts the chosen batch when the last request of the previous batch has completed.
    pub(super) fn drained(&mut self, jiffy: u64, tunables: &Tunables) {
        self.end = jiffy + tunables.batch_expire(self.sync);
        self.changing = false;
        self.new |= self.sync;
    }

    /// Handles the first completion of a new sync batch.
    pub(super) fn first_completed(&mut self, jiffy: u64, tunables: &Tunables) {
        self.adjust_quota(jiffy, tunables.write_batch_expire);
        self.end = jiffy + tunables.read_batch_expire;
        self.new = false;
    }

    /// Adjusts the limit to the duration of the previous async batch. If [`drained`](Self::drained)
    /// started that batch, the end is in the future, so the measured duration is 0, as in Linux.
    fn adjust_quota(&mut self, jiffy: u64, should_take: u64) {
        let took = (jiffy + should_take).saturating_sub(self.end);
        if took > should_take && !self.idled {
            self.quota = if took > should_take.saturating_mul(FAR_OFF) { self.quota / 2 } else { self.quota - 1 };
        } else if took < should_take && self.left == 0 {
            let far_off = should_take > took.saturating_mul(FAR_OFF);
            self.quota = if far_off { self.quota.saturating_mul(2) } else { self.quota.saturating_add(1) };
        }
        self.quota = self.quota.max(1);
    }
}
