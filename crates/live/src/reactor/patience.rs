//! How long a thread looks for what comes next before it sleeps.
//!
//! To wake a sleeping thread takes the system some 20 µs, on virtual machines more: as long as serving a small request
//! from memory. A client that sends one request after the other is better served by a thread that stays awake. It does
//! so only as long as that has lately been worth it, and not when several things come at once: then the clients need
//! the processors.

/// A sleep that was longer than this, with waking up, was worth sleeping.
const SHORT_NS: u64 = 120_000;
/// Looks for so long at first, and at most.
const FIRST_NS: u64 = 10_000;
const MOST_NS: u64 = 60_000;
/// As many as this at once are no conversation.
const MANY: usize = 5;

/// How long it looks.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    ns: u64,
}

impl Patience {
    /// For so long, in ns, after `came` things came at once.
    pub(super) fn ns(self, came: usize) -> u64 {
        if came < MANY { self.ns } else { 0 }
    }

    /// It has slept after all, and something came after so many ns.
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
