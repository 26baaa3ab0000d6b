//! What ADIOS decides and no other elevator: where a request waits, batches, and what it learns of latencies.

use crate::request::Op;
use crate::time::Time;

/// Where a request of ADIOS waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdiosList {
    /// With those that came before the latencies of reads and writes were known.
    Normal,
    /// With those that were inserted at the head.
    Head,
    /// Sorted by deadline.
    Sorted,
    /// In this list of a batch: by operation (0 reads, 1 writes, 2 discards, 3 the rest), or, with `batch_order` 1, what
    /// is served at once (0) and what is sorted by sector (1).
    Batch(u8),
}

/// A decision of ADIOS'.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdiosEvent {
    /// A request was inserted.
    Queued {
        /// The host's name for its founding bio.
        cookie: u64,
        /// Where it waits.
        list: AdiosList,
        /// How long it is expected to take, ns.
        predicted_ns: u64,
        /// When it is due, of one that is sorted. (It wraps.)
        deadline: Option<Time>,
    },
    /// The latencies of reads and writes are known: requests are sorted from now on.
    Stable,
    /// A request is in the batch that [`AdiosEvent::Filled`] tells of next.
    Batched {
        /// The host's name for its founding bio.
        cookie: u64,
        /// The list of the batch.
        list: u8,
    },
    /// A batch was put together.
    Filled {
        /// Its page, 0 or 1.
        page: u8,
        /// The value of `batch_order` that it has.
        order: u8,
        /// What all requests in flight were expected to take before, ns.
        before_ns: u64,
        /// What those of the batch are expected to take, ns.
        added_ns: u64,
        /// Whose turn it is when reads and others are waiting: negative, the others'.
        bias: i64,
    },
    /// The batch of this page is served from now on.
    Flipped {
        /// 0 or 1.
        page: u8,
        /// On rotational devices: whether what is sorted by sector is served from the end.
        backward: Option<bool>,
    },
    /// It gives out a request.
    Choice {
        /// Where that waited.
        list: AdiosList,
        /// What all requests in flight are expected to take, ns.
        predicted_ns: u64,
        /// How many they are.
        in_flight: u64,
        /// As in [`AdiosEvent::Flipped`].
        backward: Option<bool>,
    },
    /// A latency was measured.
    Sample {
        /// The host's name for the founding bio of the request.
        cookie: u64,
        /// From the completion before it, or from its dispatch if it was alone, ns.
        latency_ns: u64,
        /// How many times it counts.
        weight: u64,
        /// Of a request of more than 4 KiB.
        large: bool,
        /// The cell it counts in, 0 to 63.
        cell: u8,
    },
    /// What is known of an operation's latencies changed.
    Model {
        /// Which operation; [`Op::WriteZeroes`] stands for the rest.
        op: Op,
        /// What 4 KiB take, ns.
        base_ns: u64,
        /// What each KiB more takes, ns.
        slope_ns: u64,
        /// Sum of the latencies that the base is the mean of.
        small_sum: u64,
        /// Their number.
        small_count: u64,
        /// Sum of the times that the slope is the mean of.
        large_sum: u64,
        /// The bytes they were for.
        large_bytes: u64,
    },
    /// Latencies will be looked at.
    TimerArm {
        /// When.
        at: Time,
    },
    /// Latencies were looked at.
    Timer {
        /// Samples of small requests that are left for the next time.
        small: u64,
        /// Samples of large requests.
        large: u64,
    },
}

impl AdiosEvent {
    /// See [`Decision::told`](super::Decision::told).
    pub(super) fn tell(&mut self, beginning: Time, renamed: impl Fn(u64) -> u64) {
        match self {
            Self::Queued { cookie, deadline, .. } => {
                *cookie = renamed(*cookie);
                let since = |at: Time| Time::from_ns(at.as_ns().wrapping_sub(beginning.as_ns()));
                *deadline = deadline.map(since);
            }
            Self::Batched { cookie, .. } | Self::Sample { cookie, .. } => *cookie = renamed(*cookie),
            Self::TimerArm { at } => *at = Time::from_ns(at.since(beginning)),
            _ => {}
        }
    }
}
