//! Any of the models, for hosts that are compiled once for all of them.

use iosched::Time;

use crate::disk::Disk;
use crate::fixed::Fixed;
use crate::{Card, Command, Device};

/// One of the models. Calls go through a `match`, not through a table of functions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyDevice {
    /// Fixed latency.
    Fixed(Fixed),
    /// Seek by distance, fixed rotational delay.
    Disk(Disk),
}

macro_rules! each {
    ($any:expr, $device:ident => $call:expr) => {
        match $any {
            AnyDevice::Fixed($device) => $call,
            AnyDevice::Disk($device) => $call,
        }
    };
}

impl AnyDevice {
    /// Sets what differs between two devices of one type, before any command.
    pub(crate) fn reseed(&mut self, _seed: u64) {
        match self {
            Self::Fixed(_) | Self::Disk(_) => {}
        }
    }
}

impl Device for AnyDevice {
    #[inline]
    fn card(&self) -> &Card {
        each!(self, device => device.card())
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        each!(self, device => device.submit(now, command));
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        each!(self, device => device.next_event())
    }

    #[inline]
    fn advance(&mut self, now: Time) -> Option<u32> {
        each!(self, device => device.advance(now))
    }
}
