//! Decisions that only ADIOS takes: the list of a request, batches, and the latency model.

use crate::request::Op;
use crate::time::Time;

/// List of ADIOS that contains a waiting request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdiosList {
    /// Requests inserted before the latencies of reads and writes were known.
    Normal,
    /// Requests inserted at the head.
    Head,
    /// Requests sorted by deadline.
    Sorted,
    /// List of a batch. By operation: 0 reads, 1 writes, 2 discards, 3 others. With `batch_order`
    /// 1: 0 requests to serve immediately, 1 requests sorted by sector.
    Batch(u8),
}

/// Decision of ADIOS about requests and batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdiosEvent {
    /// A request was inserted.
    Queued {
        /// Host's name for the first bio of the request.
        cookie: u64,
        /// List that contains the request.
        list: AdiosList,
        /// Predicted latency of the request, ns.
        predicted_ns: u64,
        /// Deadline, if the request is sorted. The value can wrap.
        deadline: Option<Time>,
    },
    /// The latencies of reads and writes are known. Requests are sorted from now on.
    Stable,
    /// A request was put into the batch that the next [`AdiosEvent::Filled`] reports.
    Batched {
        /// Host's name for the first bio of the request.
        cookie: u64,
        /// List of the batch.
        list: u8,
    },
    /// A batch was filled.
    Filled {
        /// Page of the batch, 0 or 1.
        page: u8,
        /// Value of `batch_order` for this batch.
        order: u8,
        /// Predicted latency of all requests in flight before, ns.
        before_ns: u64,
        /// Predicted latency of the requests of the batch, ns.
        added_ns: u64,
        /// Balance between reads and other requests when both wait; if it is negative, the other
        /// requests are next.
        bias: i64,
    },
    /// The batch of this page is served from now on.
    Flipped {
        /// Page of the batch, 0 or 1.
        page: u8,
        /// On rotational devices: whether requests sorted by sector are served from the end.
        backward: Option<bool>,
    },
    /// A request is dispatched.
    Choice {
        /// List that contained the request.
        list: AdiosList,
        /// Predicted latency of all requests in flight, ns.
        predicted_ns: u64,
        /// Number of requests in flight.
        in_flight: u64,
        /// Same as in [`AdiosEvent::Flipped`].
        backward: Option<bool>,
    },
    /// A latency was measured.
    Sample {
        /// Host's name for the first bio of the request.
        cookie: u64,
        /// Time from the previous completion, or from the dispatch if the request was alone, ns.
        latency_ns: u64,
        /// Weight of the sample.
        weight: u64,
        /// Whether the request is larger than 4 KiB.
        large: bool,
        /// Histogram cell of the sample, 0 to 63.
        cell: u8,
    },
    /// The latency model of an operation changed.
    Model {
        /// Operation; [`Op::WriteZeroes`] means all operations except reads, writes and discards.
        op: Op,
        /// Latency of 4 KiB, ns.
        base_ns: u64,
        /// Latency of each further KiB, ns.
        slope_ns: u64,
        /// Sum of the latencies for the mean `base_ns`, ns.
        small_sum: u64,
        /// Number of the latencies for the mean `base_ns`.
        small_count: u64,
        /// Sum of the times for the mean `slope_ns`, ns.
        large_sum: u64,
        /// Size of the requests whose times are in `large_sum`, bytes. The mean `slope_ns` is
        /// `large_sum` divided by this size in KiB.
        large_bytes: u64,
    },
    /// The timer of the latency model is set.
    TimerArm {
        /// Time of the timer.
        at: Time,
    },
    /// The latency model was updated.
    Timer {
        /// Number of samples of small requests that remain for the next update.
        small: u64,
        /// Number of samples of large requests that remain for the next update.
        large: u64,
    },
}

impl AdiosEvent {
    /// Rebases times and renames cookies: see [`Decision::rebased`](super::Decision::rebased).
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
