//! Injection limit of a queue, and the present measurement.

use crate::request::RequestId;

/// Injection of other queues' requests while this queue is served:
/// the limit on their number, and its history.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Injection {
    pub(in crate::bfq) limit: u32,
    /// Service time without injection, ns; 0: not known.
    pub(in crate::bfq) baseline_ns: u64,
    /// Time of the last decrease or reset of the limit, in jiffies.
    pub(in crate::bfq) decreased_at: i64,
}

impl Injection {
    pub(in crate::bfq) fn new(now: i64) -> Self {
        Self { limit: 0, baseline_ns: 0, decreased_at: now }
    }
}

/// Request whose service time is measured.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Sample {
    pub(in crate::bfq) started_ns: u64,
    /// Whether the next dispatched request must be measured.
    pub(in crate::bfq) armed: bool,
    pub(in crate::bfq) watched: Option<RequestId>,
    /// Whether a request of another queue was dispatched in the meantime.
    pub(in crate::bfq) injected: bool,
}

impl Sample {
    pub(in crate::bfq) fn forget(&mut self) {
        *self = Self { started_ns: self.started_ns, ..Self::default() };
    }

    /// Handles the dispatch of a request of the active queue.
    #[inline]
    pub(in crate::bfq) fn dispatched(&mut self, request: RequestId) {
        if std::mem::take(&mut self.armed) {
            self.watched = Some(request);
        }
    }

    /// Returns whether `request` is the measured one.
    #[inline]
    pub(in crate::bfq) fn is_watched(&self, request: RequestId) -> bool {
        self.watched == Some(request)
    }
}
