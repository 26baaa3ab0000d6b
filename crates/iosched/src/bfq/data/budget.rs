//! Largest budget of queues, which follows the device's peak rate.

use crate::parts::mean::SAMPLE;

/// Largest budget until enough budgets have been assigned, in sectors.
pub(in crate::bfq) const DEFAULT_MAX: i64 = 16 * 1024;

/// Decaying count of turns from which the device's largest budget applies: from the 11th turn.
const ASSIGNED_ENOUGH: u64 = 194;

/// Data that all budgets depend on.
#[derive(Debug)]
pub(in crate::bfq) struct Budgets {
    /// Largest budget on this device, in sectors.
    pub(in crate::bfq) max: i64,
    /// Number of assigned budgets, as a decaying count.
    assigned: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { max: DEFAULT_MAX, assigned: 0 }
    }
}

impl Budgets {
    /// Counts the start of a turn.
    pub(in crate::bfq) fn count_turn(&mut self) {
        self.assigned = (7 * self.assigned + SAMPLE) / 8;
    }

    pub(in crate::bfq) fn is_settled(&self) -> bool {
        self.assigned >= ASSIGNED_ENOUGH
    }
}
