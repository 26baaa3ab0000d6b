//! Duration for which a thread polls before it sleeps.
//!
//! Waking a sleeping thread takes about 20 µs, and more on virtual machines. This is as long as
//! serving a small request from memory. A client that sends one request after the other is
//! therefore served faster by a thread that stays awake. The thread polls only while this has
//! recently been useful. It does not poll while several events come at once, because clients then
//! need the processors.

/// Longest short sleep, including the wake-up, ns. A longer one was worth sleeping.
const SHORT_NS: u64 = 120_000;
/// First and longest duration of polling, ns.
const FIRST_NS: u64 = 10_000;
const MOST_NS: u64 = 60_000;
/// Number of events at once from which the thread does not poll.
const MANY: usize = 5;

/// Present duration of polling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    ns: u64,
}

impl Patience {
    /// Returns the duration of polling after `came` events came at once, ns.
    pub(super) fn ns(self, came: usize) -> u64 {
        if came < MANY { self.ns } else { 0 }
    }

    /// Adapts the duration after the thread slept and an event came after `ns` ns.
    pub(super) fn slept(&mut self, ns: u64) {
        self.ns = if ns <= SHORT_NS { (self.ns * 2).clamp(FIRST_NS, MOST_NS) } else { 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_while_things_come_soon_and_goes_when_one_does_not() {
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
