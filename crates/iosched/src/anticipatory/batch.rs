//! Batches: sync and async requests take turns, and how many async ones a turn may have.
//!
//! A batch of sync requests ends by time, one of async requests by time or number. Async requests are served from a
//! write cache perhaps, long before they are written: how long their batch took shows only in when the first sync
//! request after it completes. The number is steered so that this is about when the batch should have ended.

use super::tunables::Tunables;

/// The batch that is served. Times are in jiffies.
#[derive(Clone, Debug)]
pub(super) struct Batch {
    /// Whether it is one of sync requests.
    pub(super) sync: bool,
    /// It has been chosen, and waits for what is left of the batch before in the device.
    pub(super) changing: bool,
    /// Of a sync batch: none of its requests has completed yet.
    pub(super) new: bool,
    /// When it ends, if the other kind waits.
    pub(super) end: u64,
    /// Async requests a batch may have.
    pub(super) quota: u64,
    /// Async requests that this one still may have.
    pub(super) left: u64,
    /// The last async batch ran out of requests before its end.
    pub(super) idled: bool,
}

/// Fraction of a second that an async batch lasts unless told otherwise, and async requests that are thought to take
/// one jiffy.
const WRITE_BATCH_FRACTION: u64 = 8;
const JIFFIES_PER_WRITE: u64 = 10;
/// A batch that takes this many times too long, or too little, is corrected by halves instead of by one.
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

    /// Whether the other kind has its turn now, if it has requests.
    pub(super) fn is_over(&self, jiffy: u64) -> bool {
        !self.changing && !self.new && (jiffy > self.end || (!self.sync && self.left == 0))
    }

    /// The next batch is chosen: one of sync requests.
    pub(super) fn turn_to_sync(&mut self) {
        self.changing |= !self.sync;
        self.sync = true;
    }

    /// The next batch is chosen: one of async requests.
    pub(super) fn turn_to_async(&mut self) {
        if self.sync {
            self.changing = true;
            self.new = false;
        }
        self.sync = false;
        self.left = self.quota;
        self.idled = false;
    }

    /// The device is empty: the chosen batch begins.
    pub(super) fn begin(&mut self, jiffy: u64, tunables: &Tunables) {
        if self.sync {
            self.new = true;
        } else {
            self.end = jiffy + tunables.write_batch_expire;
        }
        self.changing = false;
    }

    /// What was left of the batch before has completed while the chosen one waited for it.
    pub(super) fn drained(&mut self, jiffy: u64, tunables: &Tunables) {
        self.end = jiffy + tunables.batch_expire(self.sync);
        self.changing = false;
        self.new |= self.sync;
    }

    /// The first sync request of a new batch has completed.
    pub(super) fn first_completed(&mut self, jiffy: u64, tunables: &Tunables) {
        self.adjust_quota(jiffy, tunables.write_batch_expire);
        self.end = jiffy + tunables.read_batch_expire;
        self.new = false;
    }

    /// Learns from how long the async batch before took. After a batch that [`drained`](Self::drained) the end is one
    /// to come, so it seems to have taken no time at all: so it is in Linux.
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
