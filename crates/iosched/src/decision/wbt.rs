//! What wbt decides, and why.

/// What a window of wbt says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Reads are as fast as they should be.
    Ok,
    /// Too little happened.
    Unknown,
    /// There were no reads to speak of.
    OnlyWrites,
    /// A read took too long.
    Exceeded,
}

/// Whether more writes are let through, or fewer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// More.
    Up,
    /// Fewer.
    Down,
}

/// A decision of wbt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WbtEvent {
    /// It was created, or what it goes by was written.
    Set {
        /// What reads may take, ns; 0: it is off.
        target_ns: u64,
        /// Writes under way at most that nobody waits for, beside reads.
        background: u32,
        /// The same without reads.
        normal: u32,
        /// Writes under way at most that somebody waits for.
        depth: u32,
    },
    /// What took too long in a window that has ended.
    Exceeded {
        /// How long, ns.
        latency_ns: u64,
    },
    /// A window has ended.
    Window {
        /// What it says.
        verdict: Verdict,
        /// The step before.
        step: i32,
        /// Writes under way.
        inflight: i64,
        /// Windows before it that said nothing.
        unknown: u32,
        /// Reads that completed.
        reads: u64,
        /// Writes that did.
        writes: u64,
        /// The shortest read, ns.
        read_min_ns: Option<u64>,
    },
    /// A step was made.
    Step {
        /// Which way.
        way: Step,
        /// The step now.
        step: i32,
        /// As of [`Set`](Self::Set).
        background: u32,
        /// As of [`Set`](Self::Set).
        normal: u32,
        /// As of [`Set`](Self::Set).
        depth: u32,
    },
}
