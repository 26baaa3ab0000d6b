//! Costs of I/O on the host: processor time, and the locks of schedulers.

use std::collections::BTreeMap;

use iosched::{Registry, UnknownElevator};
use serde::{Deserialize, Serialize};

use crate::config::{ConfigError, within};

/// Longest time that a cost or a slice can have, ns.
const LONGEST_NS: u64 = 1_000_000_000;

/// Costs of direct I/O on the host of a disk: the processor time of requests, and the lock of a
/// scheduler.
///
/// Processes are bound to cores in turn. Each run of a process costs `wake_ns`, and each I/O that it
/// submits costs `request_ns`. A process waits while its core is busy. A core that needs the lock
/// of a scheduler spins while another core holds it. These costs change results only if processes
/// submit more I/Os than a core can handle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Number of processors, 1 to 4,096.
    pub cores: u32,
    /// Cost of waking a process and of its system call, ns.
    pub wake_ns: u64,
    /// Cost of submitting a request and of its completion, without a scheduler, ns.
    pub request_ns: u64,
    /// Clock interrupts of each processor per second, at least 1. A timer of io.cost may fire
    /// within a range of times, and fires at the first interrupt in this range. If absent, these
    /// timers fire at the end of the range, as on a processor that sleeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_hz: Option<u32>,
    /// Time slices of processes that share a core. If absent, processes run in the order in which
    /// they were woken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<TimeSlices>,
    /// Further costs of each scheduler, by name; 0 for a scheduler without an entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub schedulers: BTreeMap<String, SchedulerCost>,
}

/// Time slices as under CFS, the scheduler of processes from Linux 2.6.23 to 6.5. The process that
/// has used the least time comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimeSlices {
    /// Time in which each process that can run gets a slice, ns. A process that slept gets a credit
    /// of at most half of this time.
    pub period_ns: u64,
    /// Shortest slice, ns.
    pub least_ns: u64,
    /// Least difference in used time, ns, at which a process that wakes up interrupts another
    /// process. The other process must have used more time.
    pub wake_up_ns: u64,
}

/// Host costs of a scheduler for each request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SchedulerCost {
    /// Cost in addition to [`Host::request_ns`], ns.
    pub request_ns: u64,
    /// Part of the total cost in which the core holds the lock of the disk's scheduler, ns. Only
    /// one core at a time can hold the lock.
    #[serde(default)]
    pub lock_ns: u64,
}

impl Host {
    /// Checks the ranges of all values. `table` is the name of the host's table for errors.
    pub(crate) fn validate(&self, table: &str) -> Result<(), ConfigError> {
        let time = |field: &str, ns: u64| within(&format!("{table}.{field}"), ns, 0..=LONGEST_NS);
        within(&format!("{table}.cores"), self.cores, 1..=4096)?;
        time("wake_ns", self.wake_ns)?;
        time("request_ns", self.request_ns)?;
        self.clock_hz.map_or(Ok(()), |hz| within(&format!("{table}.clock_hz"), hz, 1..=1_000_000))?;
        if let Some(slices) = self.slices {
            time("slices.period_ns", slices.period_ns)?;
            time("slices.least_ns", slices.least_ns)?;
            time("slices.wake_up_ns", slices.wake_up_ns)?;
        }
        for (name, cost) in &self.schedulers {
            Registry::linux().get(name).map_err(|UnknownElevator { known, .. }| {
                let field = format!("{table}.schedulers.{name}");
                let remedy = format!("use one of these names: {}", known.join(", "));
                ConfigError::new(&field, "there is no scheduler with this name", remedy)
            })?;
            time(&format!("schedulers.{name}.request_ns"), cost.request_ns)?;
            time(&format!("schedulers.{name}.lock_ns"), cost.lock_ns)?;
        }
        Ok(())
    }
}
