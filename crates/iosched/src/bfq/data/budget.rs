//! The largest budget of queues, and how it follows the device's peak rate.

use crate::parts::mean::SAMPLE;

/// The largest budget while few have been assigned, in sectors.
pub(in crate::bfq) const DEFAULT_MAX: i64 = 16 * 1024;

/// From so much on (a decaying count, of turns) the device's own largest budget counts: from the 11th turn.
const ASSIGNED_ENOUGH: u64 = 194;

/// What all budgets depend on.
#[derive(Debug)]
pub(in crate::bfq) struct Budgets {
    /// Largest budget on this device, in sectors.
    pub(in crate::bfq) max: i64,
    /// Budgets assigned, as a decaying count.
    assigned: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { max: DEFAULT_MAX, assigned: 0 }
    }
}

impl Budgets {
    /// One more turn begins.
    pub(in crate::bfq) fn count_turn(&mut self) {
        self.assigned = (7 * self.assigned + SAMPLE) / 8;
    }

    pub(in crate::bfq) fn is_settled(&self) -> bool {
        self.assigned >= ASSIGNED_ENOUGH
    }
}
