//! What kyber decides and no other elevator: tokens, latencies, and what follows from them.

use crate::time::Time;

/// What a latency is one of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LatencyKind {
    /// From dispatch to completion: what the device is answerable for.
    Device,
    /// From allocation to completion.
    Total,
}

/// A decision of kyber's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KyberEvent {
    /// It was asked for a request.
    Choice {
        /// Whose turn it is: 0 reads, 1 writes, 2 discards, 3 the rest.
        domain: u8,
        /// Requests of this turn.
        batch: u32,
        /// The token of the request it gave, if it gave one.
        token: Option<u32>,
    },
    /// A domain has requests and no token.
    Throttled {
        /// Which.
        domain: u8,
    },
    /// Latencies will be looked at.
    TimerArm {
        /// When.
        at: Time,
    },
    /// Latencies are looked at.
    Timer,
    /// A percentile was taken.
    Latency {
        /// Of which domain.
        domain: u8,
        /// Of which latencies: the 90th of the device's, the 99th of the total.
        kind: LatencyKind,
        /// In quarters of the target, from 0; 7 is everything beyond.
        bucket: u32,
        /// From how many.
        samples: u32,
    },
    /// The number of a domain's tokens changed.
    Depth {
        /// Whose.
        domain: u8,
        /// To what.
        depth: u32,
    },
}
