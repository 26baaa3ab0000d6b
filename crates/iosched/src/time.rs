//! Time as the caller reports it.
//!
//! The library never reads a clock: every call that may depend on time takes `now`. Where Linux
//! counts in jiffies, elevators also count in jiffies. The host therefore gives a queue its `hz`.

use std::fmt;
use std::ops::{Add, Sub};

/// Number of nanoseconds in a microsecond.
pub const MICROSECOND_NS: u64 = 1_000;
/// Number of nanoseconds in a millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;
/// Number of nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Point in time, in nanoseconds since an origin that the host chooses. It never
/// decreases between two calls on one queue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// Origin of time. A queue starts later, at [`Time::BEGINNING`].
    pub const ZERO: Self = Self(0);
    /// Time at which a host starts a queue. It is so far from the origin that
    /// no elevator mistakes a time for "never".
    pub const BEGINNING: Self = Self(1_000 * SECOND_NS);
    /// Time that is later than any time of a host.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time `ns` nanoseconds after the origin.
    #[must_use]
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since the origin.
    #[must_use]
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the nanoseconds since `earlier`, or 0 if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the nanoseconds since `earlier`, negative if `earlier` is later.
    #[must_use]
    pub const fn signed_since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }
}

impl Add<u64> for Time {
    type Output = Self;

    /// Returns the time `ns` nanoseconds later.
    fn add(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }
}

impl Sub<u64> for Time {
    type Output = Self;

    /// Returns the time `ns` nanoseconds earlier, but not before the origin.
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
