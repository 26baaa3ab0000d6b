//! Recorded decisions, until the host takes them.

use crate::time::Time;

/// Decisions since the host last took them.
#[derive(Clone, Debug)]
pub struct Log<E> {
    on: bool,
    events: Vec<(Time, E)>,
}

impl<E> Default for Log<E> {
    fn default() -> Self {
        Self { on: false, events: Vec::new() }
    }
}

impl<E> Log<E> {
    /// Turns recording on or off. Turning it off also removes the recorded decisions.
    pub fn record(&mut self, on: bool) {
        self.on = on;
        if !on {
            self.events.clear();
        }
    }

    /// Returns whether decisions are recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Returns and removes the decisions since the last call, oldest first. A host that records
    /// calls this after every call of the queue.
    pub fn take(&mut self) -> std::vec::Drain<'_, (Time, E)> {
        self.events.drain(..)
    }

    #[inline]
    pub(crate) fn note(&mut self, now: Time, event: impl FnOnce() -> E) {
        if self.on {
            self.events.push((now, event()));
        }
    }
}
