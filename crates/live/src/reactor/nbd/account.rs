//! Account of the memory that connections hold, and rules that divide the free memory between
//! connections.
//!
//! A connection may hold at most as many bytes as remain free. A single connection therefore gets
//! half of the budget, and two connections get a third each. A new connection always finds free
//! memory. Each connection may always hold [`LEAST_BYTES`], even if no memory is free. This number
//! of bytes is enough for every request, because a large request is executed in pieces. A
//! connection therefore never waits for the memory of another connection.

/// Number of bytes that every connection may always hold.
pub(super) const LEAST_BYTES: u64 = 64 << 10;
/// Minimum size of a piece of memory for a write's data, bytes.
const FIRST_BYTES: u64 = 16 << 10;
/// Minimum and maximum size of a connection's receive buffer, bytes. The kept send buffer has the
/// same limits.
const KEPT_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=128 << 10;

/// Memory of all connections.
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

    /// Returns the number of bytes that a connection may still take. The connection holds `needed`
    /// bytes, and the account already contains `charged` of them.
    pub(super) fn room(&self, needed: u64, charged: u64) -> u64 {
        let others = self.held_bytes.saturating_sub(charged);
        let left = self.budget_bytes.saturating_sub(others + needed);
        (left.saturating_sub(needed) / 2).max(LEAST_BYTES.saturating_sub(needed))
    }

    /// Changes the charge of a connection from `charged` to `needed` bytes.
    pub(super) fn charge(&mut self, charged: &mut u64, needed: u64) {
        self.held_bytes = self.held_bytes.saturating_sub(*charged) + needed;
        *charged = needed;
    }

    /// Returns the size of the next piece of memory for a write. `came` is the number of bytes that
    /// have arrived. The pieces start small and grow.
    pub(super) fn step(&self, came: u64) -> u64 {
        FIRST_BYTES.max(self.left() / 4096).max(3 * came)
    }

    /// Returns the size of the buffer that each of `connections` connections may keep for
    /// receiving. Each may keep another buffer of this size for sending. The buffers of each
    /// direction together use a quarter of the budget.
    pub(super) fn kept(&self, connections: usize) -> usize {
        let even = self.budget_bytes / 4 / connections.max(1) as u64;
        even.clamp(*KEPT_BYTES.start(), *KEPT_BYTES.end()) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: u64 = 64 << 20;

    /// Simulates connections that take turns. In its turn, a connection gives back a part of its
    /// memory (1/`returned`), and then takes the allowed maximum. Returns the number of bytes that
    /// each connection finally holds.
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
    fn one_connection_gets_half_and_several_equal_parts() {
        for (connections, part) in [(1, 2), (3, 4), (15, 16)] {
            for needed in greedy(connections, 2).1 {
                assert!(needed.abs_diff(BUDGET / part) <= BUDGET / 1000, "{needed} of {BUDGET}, one of {connections}");
            }
        }
    }

    #[test]
    fn connections_stay_within_budget_plus_their_minimum() {
        for connections in [1, 2, 100, 1000, 4096] {
            let (account, held) = greedy(connections, u64::MAX);
            assert_eq!(account.held_bytes, held.iter().sum::<u64>());
            assert!(account.held_bytes <= BUDGET + connections as u64 * LEAST_BYTES);
            assert!(held.iter().all(|&needed| needed >= LEAST_BYTES));
            assert!(account.room(0, 0) >= LEAST_BYTES, "a new connection gets memory");
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
