//! Decides how long a thread polls before it sleeps.
//!
//! It takes about 20 µs to wake a sleeping thread, and more on virtual machines. Serving a small
//! request from memory takes about the same time. If a client sends one request after the other, a
//! thread that stays awake therefore serves the client faster. The thread polls only if polling has
//! recently been useful. It does not poll while several events arrive at the same time, because the
//! clients then need the processors.

/// Maximum duration of a short sleep, including the wake-up, ns. After a short sleep, the thread
/// polls for longer; after a longer sleep, it stops polling.
const SHORT_NS: u64 = 120_000;
/// First and maximum duration of polling, ns.
const FIRST_NS: u64 = 10_000;
const MOST_NS: u64 = 60_000;
/// Smallest number of simultaneous events at which the thread does not poll.
const MANY: usize = 5;

/// Current duration of polling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    ns: u64,
}

impl Patience {
    /// Returns how long to poll after `came` events arrived at the same time, ns.
    pub(super) fn ns(self, came: usize) -> u64 {
        if came < MANY { self.ns } else { 0 }
    }

    /// Adapts the duration of polling after a sleep. `ns` is the time until an event arrived, ns.
    pub(super) fn slept(&mut self, ns: u64) {
        self.ns = if ns <= SHORT_NS { (self.ns * 2).clamp(FIRST_NS, MOST_NS) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_grows_with_short_sleeps_and_a_long_one_resets_it() {
        let mut patience = Patience::default();
        let mut seen = Vec::new();
        for ns in [20_000, 20_000, 50_000, 120_000, 50_000, 120_001, 10_000] {
            patience.slept(ns);
            seen.push(patience.ns(1));
        }
        assert_eq!(seen, [10_000, 20_000, 40_000, 60_000, 60_000, 0, 10_000]);
        assert_eq!(patience.ns(MANY), 0);
    }
}
