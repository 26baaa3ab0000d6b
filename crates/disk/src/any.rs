//! A device with any of the models. Hosts that use this type are compiled only once.

use iosched::Time;

use crate::array::Array;
use crate::disk::Disk;
use crate::empirical::Empirical;
use crate::fixed::Fixed;
use crate::hdd::Hdd;
use crate::server::Server;
use crate::ssd::Ssd;
use crate::{Card, Command, Device};
use iosched_numbers::SplitMix64;

/// One of the models. A `match` dispatches the calls, without a table of functions.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyDevice {
    /// Fixed latency.
    Fixed(Fixed),
    /// Seek times by distance, and a fixed rotational delay.
    Disk(Disk),
    /// A rotating disk.
    Hdd(Box<Hdd>),
    /// Flash behind one link.
    Ssd(Box<Ssd>),
    /// Disks behind a controller.
    Array(Box<Array>),
    /// Servers behind one queue, with a measured spread.
    Server(Box<Server>),
    /// Random latencies from measured distributions.
    Empirical(Box<Empirical>),
}

macro_rules! each {
    ($any:expr, $device:ident => $call:expr) => {
        match $any {
            AnyDevice::Fixed($device) => $call,
            AnyDevice::Disk($device) => $call,
            AnyDevice::Hdd($device) => $call,
            AnyDevice::Ssd($device) => $call,
            AnyDevice::Array($device) => $call,
            AnyDevice::Server($device) => $call,
            AnyDevice::Empirical($device) => $call,
        }
    };
}

impl AnyDevice {
    /// Sets the seed of the random differences between devices of one type. Must be called before
    /// any command.
    pub(crate) fn reseed(&mut self, seed: u64) {
        match self {
            Self::Fixed(_) | Self::Disk(_) | Self::Ssd(_) => {}
            Self::Array(array) => {
                for (i, member) in (0..).zip(array.members_mut()) {
                    member.reseed(scramble(seed).wrapping_add(i));
                }
            }
            Self::Server(server) => server.set_seed(scramble(seed)),
            Self::Empirical(empirical) => empirical.set_seed(scramble(seed)),
            Self::Hdd(hdd) => hdd.set_start_angle((scramble(seed) >> 32) as u32),
        }
    }
}

/// Mixes the bits of a number.
const fn scramble(seed: u64) -> u64 {
    SplitMix64::new(seed).next_u64()
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
    fn submit_to(&mut self, now: Time, hw_queue: u16, command: Command) {
        each!(self, device => device.submit_to(now, hw_queue, command));
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
