//! What was decided, until the host takes it.

use crate::time::Time;

/// Decisions of a kind since the host last took them.
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
    /// Turns recording on or off; off also forgets what was not taken.
    pub fn record(&mut self, on: bool) {
        self.on = on;
        if !on {
            self.events.clear();
        }
    }

    /// Whether decisions are recorded.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Takes what was decided since the last call, oldest first. A host that records takes after every call.
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
