//! What controllers decide, and why.

use super::wheel::TimerId;
use crate::time::Time;

/// One decision of a controller.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ControllerEvent {
    /// A timer was set, perhaps to what it was set to already.
    Arm {
        /// Which.
        timer: TimerId,
        /// The jiffy that was asked for.
        jiffy: u64,
        /// The jiffy it fires at: never before the one after that, later the further off it is.
        fires: u64,
    },
    /// A timer fired.
    Fire {
        /// Which.
        timer: TimerId,
    },
}

/// Decisions since the host last took them.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    on: bool,
    events: Vec<(Time, ControllerEvent)>,
}

impl EventLog {
    /// Turns recording on or off; off also forgets what was not taken.
    pub fn record(&mut self, on: bool) {
        self.on = on;
        if !on {
            self.events.clear();
        }
    }

    /// Takes what was decided since the last call, oldest first.
    pub fn take(&mut self) -> std::vec::Drain<'_, (Time, ControllerEvent)> {
        self.events.drain(..)
    }

    #[inline]
    pub(super) fn note(&mut self, now: Time, event: impl FnOnce() -> ControllerEvent) {
        if self.on {
            self.events.push((now, event()));
        }
    }
}
