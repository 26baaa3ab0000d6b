//! What is known of a queue about injection, and the measurement under way.

use crate::request::RequestId;

/// How many requests of others a queue bears.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Injection {
    pub(in crate::bfq) limit: u32,
    /// Service time without injection, ns; 0: not known.
    pub(in crate::bfq) baseline_ns: u64,
    /// When the limit was decreased or reset, in jiffies.
    pub(in crate::bfq) decreased_at: i64,
}

impl Injection {
    pub(in crate::bfq) fn new(now: i64) -> Self {
        Self { limit: 0, baseline_ns: 0, decreased_at: now }
    }
}

/// The request whose service is measured.
#[derive(Debug, Default)]
pub(in crate::bfq) struct Sample {
    pub(in crate::bfq) started_ns: u64,
    /// The next request given out is to be watched.
    pub(in crate::bfq) armed: bool,
    pub(in crate::bfq) watched: Option<RequestId>,
    /// A request of another queue was given out meanwhile.
    pub(in crate::bfq) injected: bool,
}

impl Sample {
    pub(in crate::bfq) fn forget(&mut self) {
        *self = Self { started_ns: self.started_ns, ..Self::default() };
    }

    /// A request of the queue in service is given out.
    #[inline]
    pub(in crate::bfq) fn dispatched(&mut self, request: RequestId) {
        if std::mem::take(&mut self.armed) {
            self.watched = Some(request);
        }
    }

    /// Whether it is `request` that is watched.
    #[inline]
    pub(in crate::bfq) fn is_watched(&self, request: RequestId) -> bool {
        self.watched == Some(request)
    }
}
