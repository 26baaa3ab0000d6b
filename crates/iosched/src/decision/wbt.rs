//! Decisions of wbt, with their reasons.

/// Verdict of wbt on a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Reads were as fast as the target.
    Ok,
    /// There were too few I/Os for a verdict.
    Unknown,
    /// There were almost only writes.
    OnlyWrites,
    /// A read was slower than the target.
    Exceeded,
}

/// Direction of a change of wbt's limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// More writes are allowed.
    Up,
    /// Fewer writes are allowed.
    Down,
}

/// Decision of wbt about writes and their limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WbtEvent {
    /// wbt was created, or its configuration was written.
    Set {
        /// Target latency of reads, ns; 0: wbt is off.
        target_ns: u64,
        /// Limit on background writes in flight while there are reads.
        background: u32,
        /// Limit on background writes in flight without reads.
        normal: u32,
        /// Limit on writes in flight that processes wait for.
        depth: u32,
    },
    /// A latency exceeded the target in the window that has ended.
    Exceeded {
        /// The latency, ns.
        latency_ns: u64,
    },
    /// A window has ended.
    Window {
        /// Verdict on the window.
        verdict: Verdict,
        /// Step before.
        step: i32,
        /// Writes in flight.
        inflight: i64,
        /// Number of earlier windows in a row with the verdict unknown.
        unknown: u32,
        /// Completed reads.
        reads: u64,
        /// Completed writes.
        writes: u64,
        /// Shortest latency of a read, ns.
        read_min_ns: Option<u64>,
    },
    /// The step changed.
    Step {
        /// Direction of the change.
        way: Step,
        /// New step.
        step: i32,
        /// As in [`Set`](Self::Set).
        background: u32,
        /// As in [`Set`](Self::Set).
        normal: u32,
        /// As in [`Set`](Self::Set).
        depth: u32,
    },
}
