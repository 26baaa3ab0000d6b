//! `fixed`: a device whose latency does not depend on the place of the data.
//!
//! Identical servers share one queue. A command uses the server that is free first, for a latency
//! plus a transfer time. There is no cache: a flush has the latency of a write. The arithmetic is
//! in integer nanoseconds. It gives the same times as the recorded runs of Linux' elevators.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched::{Op, Time};
use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};
use crate::{Card, Command, Device};

/// Parameters of a [`Fixed`] device, as in a profile of the model `fixed`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedConfig {
    /// Number of commands that the device takes at the same time, 1 to 65,535.
    pub depth: u32,
    /// Number of commands that the device executes at the same time, 1 to 65,535.
    pub parallel: u32,
    /// Latency of a read, ns, up to a thousand seconds.
    pub lat_ns: u64,
    /// Transfer time of one sector, ns, up to a second.
    pub ns_per_sector: u64,
    /// Latency of all commands except reads, ns; `lat_ns` if absent.
    #[serde(default)]
    pub write_lat_ns: Option<u64>,
    /// Latencies that replace the latencies above from given times on.
    #[serde(default)]
    pub steps: Vec<FixedStep>,
    /// Size, sectors; 2^40 if absent.
    #[serde(default = "config::default_capacity_sectors")]
    pub capacity_sectors: u64,
    /// Largest command, KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
}

/// Latencies of commands submitted from a given time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedStep {
    /// Start, ns since the origin of time. If several steps have started, the last step in the list
    /// applies.
    pub t_ns: u64,
    /// Latency of a read, ns.
    pub lat_ns: u64,
    /// Latency of all commands except reads, ns.
    pub write_lat_ns: u64,
}

impl FixedConfig {
    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("fixed.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("fixed.parallel", self.parallel, 1..=config::DEPTH_MAX)?;
        within("fixed.lat_ns", self.lat_ns, 0..=config::LATENCY_NS_MAX)?;
        within("fixed.ns_per_sector", self.ns_per_sector, 0..=config::SECTOR_NS_MAX)?;
        let write_lat_ns = self.write_lat_ns.unwrap_or(self.lat_ns);
        within("fixed.write_lat_ns", write_lat_ns, 0..=config::LATENCY_NS_MAX)?;
        for step in &self.steps {
            within("fixed.steps.lat_ns", step.lat_ns, 0..=config::LATENCY_NS_MAX)?;
            within("fixed.steps.write_lat_ns", step.write_lat_ns, 0..=config::LATENCY_NS_MAX)?;
        }
        within("fixed.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("fixed.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)
    }
}

/// A device of identical servers with a fixed latency.
#[derive(Clone, Debug)]
pub struct Fixed {
    card: Card,
    lat_ns: u64,
    write_lat_ns: u64,
    ns_per_sector: u64,
    steps: Vec<FixedStep>,
    /// Time at which each server becomes free. Servers are identical, so the choice between free
    /// servers does not matter.
    free: BinaryHeap<Reverse<Time>>,
    /// Commands in flight: completion, number of the submission, tag.
    under_way: BinaryHeap<Reverse<(Time, u64, u32)>>,
    submitted: u64,
}

impl Fixed {
    /// Creates a device with all servers free.
    ///
    /// # Errors
    /// The errors of [`FixedConfig::validate`].
    pub fn new(config: &FixedConfig) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            card: Card {
                capacity_sectors: config.capacity_sectors,
                depth: config.depth,
                hw_queues: 1,
                rotational: false,
                write_cache: false,
                fua: false,
                max_hw_sectors_kb: config.max_hw_sectors_kb,
            },
            lat_ns: config.lat_ns,
            write_lat_ns: config.write_lat_ns.unwrap_or(config.lat_ns),
            ns_per_sector: config.ns_per_sector,
            steps: config.steps.clone(),
            free: (0..config.parallel).map(|_| Reverse(Time::ZERO)).collect(),
            under_way: BinaryHeap::with_capacity(config.depth as usize),
            submitted: 0,
        })
    }

    fn latency_ns(&self, now: Time, op: Op) -> u64 {
        let step = self.steps.iter().rev().find(|step| step.t_ns <= now.as_ns());
        match (step, op) {
            (None, Op::Read) => self.lat_ns,
            (None, _) => self.write_lat_ns,
            (Some(step), Op::Read) => step.lat_ns,
            (Some(step), _) => step.write_lat_ns,
        }
    }
}

impl Device for Fixed {
    fn card(&self) -> &Card {
        &self.card
    }

    #[inline]
    fn submit(&mut self, now: Time, command: Command) {
        debug_assert!(self.under_way.len() < self.card.depth as usize, "more than depth commands");
        let busy_ns = self.latency_ns(now, command.op) + self.ns_per_sector * u64::from(command.nr_sectors);
        let Some(mut server) = self.free.peek_mut() else { unreachable!("there must be at least one server") };
        let done = server.0.max(now) + busy_ns;
        *server = Reverse(done);
        self.under_way.push(Reverse((done, self.submitted, command.tag)));
        self.submitted += 1;
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.under_way.peek().map(|Reverse((done, ..))| *done)
    }

    #[inline]
    fn advance(&mut self, now: Time) -> Option<u32> {
        if self.next_event()? > now {
            return None;
        }
        self.under_way.pop().map(|Reverse((.., tag))| tag)
    }
}
