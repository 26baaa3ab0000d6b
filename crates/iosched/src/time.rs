//! Time as the caller tells it.
//!
//! The library never reads a clock: every call that may depend on time takes `now`. Elevators also count
//! in jiffies where Linux' originals did, so a queue is told its `hz`.

use std::fmt;
use std::ops::{Add, Sub};

/// Nanoseconds in a microsecond.
pub const MICROSECOND_NS: u64 = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// A moment: nanoseconds since an origin of the host's choosing. Never goes back between two calls on one queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin. A queue does not begin here, but at [`Time::BEGINNING`].
    pub const ZERO: Self = Self(0);
    /// Where a host lets a queue's time begin: far enough from the origin that no elevator takes a moment for "never".
    pub const BEGINNING: Self = Self(1_000 * SECOND_NS);
    /// Later than any moment a host will name.
    pub const MAX: Self = Self(u64::MAX);

    /// The moment `ns` nanoseconds after the origin.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Nanoseconds since `earlier`; 0 if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Nanoseconds from `earlier` to this, negative if `earlier` is later.
    #[must_use]
    pub const fn signed_since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }
}

impl Add<u64> for Time {
    type Output = Self;

    /// The moment `ns` nanoseconds later.
    fn add(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }
}

impl Sub<u64> for Time {
    type Output = Self;

    /// The moment `ns` nanoseconds earlier, but not before the origin.
    fn sub(self, ns: u64) -> Self {
        Self(self.0.saturating_sub(ns))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ns", self.0)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / SECOND_NS, self.0 % SECOND_NS)
    }
}
