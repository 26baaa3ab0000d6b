//! Decisions that only kyber takes: tokens, latencies, and depths.

use crate::time::Time;

/// Kind of a measured latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatencyKind {
    /// From dispatch to completion: the latency of the device.
    Device,
    /// From allocation to completion.
    Total,
}

/// Decision of kyber about domains and their depths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KyberEvent {
    /// kyber was called for a request.
    Choice {
        /// Domain whose turn it is: 0 reads, 1 writes, 2 discards, 3 others.
        domain: u8,
        /// Number of requests in this turn.
        batch: u32,
        /// Token of the dispatched request, if there is one.
        token: Option<u32>,
    },
    /// A domain has requests and no free token.
    Throttled {
        /// The domain.
        domain: u8,
    },
    /// The timer for the latencies was set.
    TimerArm {
        /// Time of the timer.
        at: Time,
    },
    /// The timer for the latencies fired.
    Timer,
    /// A percentile was computed.
    Latency {
        /// The domain.
        domain: u8,
        /// Kind of latency: of the device (90th percentile), or total (99th percentile).
        kind: LatencyKind,
        /// Bucket in quarters of the target, from 0; 7 also contains all longer latencies.
        bucket: u32,
        /// Number of samples.
        samples: u32,
    },
    /// The number of a domain's tokens changed.
    Depth {
        /// The domain.
        domain: u8,
        /// New number of tokens.
        depth: u32,
    },
}
