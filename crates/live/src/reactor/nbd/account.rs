//! Who may take how much memory: what connections hold is counted, and what is left is shared.
//!
//! A connection may hold as much as is left to all others together, so that one alone has half of the budget, two
//! have a third each, and whoever comes always finds something. [`LEAST_BYTES`] are each one's own whatever others
//! hold: with that every request can be carried out, a large one in pieces, and nobody ever waits for another's
//! memory.

/// Bytes that every connection may hold.
pub(super) const LEAST_BYTES: u64 = 64 << 10;
/// The first piece of memory for a write's data, bytes: data that has not come takes no more.
const FIRST_BYTES: u64 = 16 << 10;
/// What a connection receives into, and what it keeps to send from, are so large, bytes.
const KEPT_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=128 << 10;

/// What all connections hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Account {
    pub(super) budget_bytes: u64,
    pub(super) held_bytes: u64,
}

impl Account {
    pub(super) const fn new(budget_bytes: u64) -> Self {
        Self { budget_bytes, held_bytes: 0 }
    }

    fn left(&self) -> u64 {
        self.budget_bytes.saturating_sub(self.held_bytes)
    }

    /// Bytes that one may take which holds `needed`, of which `charged` are counted already.
    pub(super) fn room(&self, needed: u64, charged: u64) -> u64 {
        let others = self.held_bytes.saturating_sub(charged);
        let left = self.budget_bytes.saturating_sub(others + needed);
        (left.saturating_sub(needed) / 2).max(LEAST_BYTES.saturating_sub(needed))
    }

    /// One that was charged for `charged` bytes holds `needed` by now.
    pub(super) fn charge(&mut self, charged: &mut u64, needed: u64) {
        self.held_bytes = self.held_bytes.saturating_sub(*charged) + needed;
        *charged = needed;
    }

    /// How much more memory a write is given of whose data `came` bytes have come: little at first, then ever more.
    pub(super) fn step(&self, came: u64) -> u64 {
        FIRST_BYTES.max(self.left() / 4096).max(3 * came)
    }

    /// What one of so many connections may keep for what it receives and what it sends, bytes: all of them together a
    /// quarter of the budget for either.
    pub(super) fn kept(&self, connections: usize) -> usize {
        let even = self.budget_bytes / 4 / connections.max(1) as u64;
        even.clamp(*KEPT_BYTES.start(), *KEPT_BYTES.end()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: u64 = 64 << 20;

    /// Has each give back some of what it has, a `returned`th, and take what it may, in turn, again and again; what
    /// each holds in the end.
    fn greedy(connections: usize, returned: u64) -> (Account, Vec<u64>) {
        let mut account = Account::new(BUDGET);
        let mut held = vec![0; connections];
        for _ in 0..200 {
            for needed in &mut held {
                let kept = *needed - *needed / returned;
                let more = account.room(kept, *needed);
                account.charge(needed, kept + more);
            }
        }
        (account, held)
    }

    #[test]
    fn one_alone_has_half_and_several_have_equal_parts() {
        for (connections, part) in [(1, 2), (3, 4), (15, 16)] {
            for needed in greedy(connections, 2).1 {
                assert!(needed.abs_diff(BUDGET / part) <= BUDGET / 1000, "{needed} of {BUDGET}, one of {connections}");
            }
        }
    }

    #[test]
    fn all_together_stay_within_the_budget_and_their_own() {
        for connections in [1, 2, 100, 1000, 4096] {
            let (account, held) = greedy(connections, u64::MAX);
            assert_eq!(account.held_bytes, held.iter().sum::<u64>());
            assert!(account.held_bytes <= BUDGET + connections as u64 * LEAST_BYTES);
            assert!(held.iter().all(|&needed| needed >= LEAST_BYTES));
            assert!(account.room(0, 0) >= LEAST_BYTES, "whoever comes finds something");
        }
    }

    #[test]
    fn returned_memory_is_available_again() {
        let (mut account, held) = greedy(10, 2);
        for mut needed in held {
            account.charge(&mut needed, 0);
        }
        assert_eq!((account.held_bytes, account.room(0, 0)), (0, BUDGET / 2));
    }

    #[test]
    fn absent_data_takes_little_memory_and_present_data_few_steps() {
        let mut account = Account::new(BUDGET);
        for _ in 0..1000 {
            let step = account.step(0);
            account.charge(&mut 0, step);
        }
        assert!(account.held_bytes < BUDGET / 3, "{}", account.held_bytes);
        let (mut came, mut steps) = (0, 0);
        while came < 32 << 20 {
            came += Account::new(0).step(came);
            steps += 1;
        }
        assert!(steps <= 8, "{steps}");
    }
}
