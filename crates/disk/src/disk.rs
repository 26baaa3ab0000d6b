//! `disk`: the simplest model of a rotating disk.
//!
//! One head serves commands in order. A command takes a seek, a fixed rotational delay if the head
//! moved, and a transfer. The seek grows with the square root of the distance in sectors. There is
//! no cache: a flush is an empty transfer at the position of the head. The arithmetic is in integer
//! nanoseconds. It gives the same times as the recorded runs of Linux' elevators.

use std::collections::VecDeque;

use iosched::{Op, Sector, Time};
use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};
use crate::{Card, Command, Device};

/// Parameters of a [`Disk`], as in a profile of the model `disk`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskConfig {
    /// Number of commands that the disk takes at the same time, 1 to 65,535.
    pub depth: u32,
    /// Part of a seek that does not depend on the distance, ns, up to a thousand seconds.
    pub seek_a0_ns: u64,
    /// Factor of the integer square root of the distance in sectors, ns, up to a millisecond.
    pub seek_a1_ns: u64,
    /// Rotational delay after a seek, ns, up to a thousand seconds.
    pub rot_ns: u64,
    /// Transfer time of one sector, ns, up to a second.
    pub ns_per_sector: u64,
    /// Size, sectors; 2^40 if absent.
    #[serde(default = "config::default_capacity_sectors")]
    pub capacity_sectors: u64,
    /// Largest command, KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
}

impl DiskConfig {
    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("disk.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("disk.seek_a0_ns", self.seek_a0_ns, 0..=config::LATENCY_NS_MAX)?;
        within("disk.seek_a1_ns", self.seek_a1_ns, 0..=1_000_000)?;
        within("disk.rot_ns", self.rot_ns, 0..=config::LATENCY_NS_MAX)?;
        within("disk.ns_per_sector", self.ns_per_sector, 0..=config::SECTOR_NS_MAX)?;
        within("disk.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("disk.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)
    }
}

/// A disk with one head that serves commands in order.
#[derive(Clone, Debug)]
pub struct Disk {
    card: Card,
    seek_a0_ns: u64,
    seek_a1_ns: u64,
    rot_ns: u64,
    ns_per_sector: u64,
    head: Sector,
    free: Time,
    /// Completion time and tag of each command in flight, in order.
    under_way: VecDeque<(Time, u32)>,
}

impl Disk {
    /// Creates an idle disk with its head at sector 0.
    ///
    /// # Errors
    /// The errors of [`DiskConfig::validate`].
    pub fn new(config: &DiskConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            card: Card {
                capacity_sectors: config.capacity_sectors,
                depth: config.depth,
                hw_queues: 1,
                rotational: true,
                write_cache: false,
                fua: false,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            seek_a0_ns: config.seek_a0_ns,
            seek_a1_ns: config.seek_a1_ns,
            rot_ns: config.rot_ns,
            ns_per_sector: config.ns_per_sector,
            head: 0,
            free: Time::ZERO,
            under_way: VecDeque::with_capacity(config.depth as usize),
        })
    }
}

impl Device for Disk {
    fn card(&self) -> &Card {
        &self.card
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        debug_assert!(self.under_way.len() < self.card.depth as usize, "more than depth commands");
        let sector = if command.op == Op::Flush { self.head } else { command.sector };
        let distance = sector.abs_diff(self.head);
        let position_ns = match distance {
            0 => 0,
            _ => self.seek_a0_ns + self.seek_a1_ns * distance.isqrt() + self.rot_ns,
        };
        let nr_sectors = u64::from(command.nr_sectors);
        self.free = self.free.max(now) + position_ns + self.ns_per_sector * nr_sectors;
        self.head = sector + nr_sectors;
        self.under_way.push_back((self.free, command.tag));
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.under_way.front().map(|&(done, _)| done)
    }

    #[inline]
    fn advance(&mut self, now: Time) -> Option<u32> {
        if self.next_event()? > now {
            return None;
        }
        self.under_way.pop_front().map(|(_, tag)| tag)
    }
}
