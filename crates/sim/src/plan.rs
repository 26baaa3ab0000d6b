//! The description of a run: workload, device, scheduler setting, seed.

use std::sync::atomic::AtomicBool;

use iosched::{KernelVersion, QueueConfig};
use iosched_disk::{Host, Profile};
use iosched_machine::description::Machine;
use iosched_workload::{Replay, Workload, app};
use serde::{Deserialize, Serialize};

use iosched::{Setting, SettingError};

/// One run. The same plan gives the same result.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The device.
    pub profile: &'a Profile,
    /// The scheduler, with tunables and attributes of the queue.
    pub scheduler: Setting,
    /// Seed of all random values, such as the positions of the platters at the start and the jitter
    /// of arrivals.
    pub seed: u64,
    /// Replay mode of a trace. It has no effect on tasks.
    pub replay: Replay,
    /// The block layer.
    pub block_layer: BlockLayer,
    /// The machine on which applications run. An application needs a machine. Other workloads
    /// ignore it.
    pub machine: Option<&'a Machine>,
    /// Host costs of the direct I/O of fio jobs, if they differ from the costs in the profile.
    pub host: Option<&'a Host>,
    /// Further disks of an application or of fio jobs, with their schedulers.
    pub more_disks: &'a [(Profile, Setting)],
    /// A second application, which runs at the same time as the workload and ends with it. The
    /// workload must also be an application.
    pub company: Option<&'a app::Spec>,
    /// Time after the workload's start in which results do not count, ns.
    pub warm_up_ns: u64,
    /// Limit of the run.
    pub limit: Limit,
    /// Interrupt flag, checked every 65,536 events. Once it is true, the run
    /// ends with [`SimError::Interrupted`].
    pub interrupt: Option<&'a AtomicBool>,
}

impl<'a> Plan<'a> {
    /// Returns a plan with seed 0, open replay at the recorded speed, the
    /// default block layer and no limit.
    #[must_use]
    pub fn new(workload: &'a Workload, profile: &'a Profile, scheduler: Setting) -> Self {
        Self {
            workload,
            profile,
            scheduler,
            seed: 0,
            replay: Replay::default(),
            block_layer: BlockLayer::default(),
            machine: None,
            host: None,
            more_disks: &[],
            company: None,
            warm_up_ns: 0,
            limit: Limit::default(),
            interrupt: None,
        }
    }
}

/// Version and settings of the block layer between tasks and device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLayer {
    /// Jiffies per second, 1 to 1,000,000.
    pub hz: u32,
    /// Whether schedulers distinguish cgroups, as in the kernels of distributions.
    pub groups: bool,
    /// Whether a task that submits several I/Os at once collects them on a plug,
    /// as in Linux. See [`BlockLayer::plug_from`].
    pub plug: bool,
    /// The version of Linux for settings that name no version. If it is `None`, Linux 6.12 applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelVersion>,
}

impl Default for BlockLayer {
    /// Returns 1,000 jiffies per second, with groups and plugs.
    fn default() -> Self {
        Self { hz: 1000, groups: true, plug: true, kernel: None }
    }
}

/// Smallest batch of I/Os that io_uring, and libaio since Linux 5.0, collect on a plug. A smaller
/// batch is submitted I/O by I/O.
const BATCH: u32 = 3;

/// Default of `read_ahead_kb`, KiB. Since Linux 6.17, rotational disks have a different default:
/// twice the largest request.
const READ_AHEAD_KB: u32 = 128;
/// The largest request since Linux 6.17, if the device supports this size, KiB.
const LARGE_REQUEST_KB: u32 = 4096;

impl BlockLayer {
    /// Returns the block layer with the version of Linux that a setting names, if any.
    #[must_use]
    pub fn under(self, setting: &Setting) -> Self {
        Self { kernel: setting.kernel().or(self.kernel), ..self }
    }

    /// Returns the largest readahead window on a modelled machine before anybody writes
    /// `read_ahead_kb`, KiB. If the kernel of the machine is older than all known versions, the
    /// machine keeps its own value.
    fn read_ahead_kb(&self, profile: &Profile, machine: &Machine) -> u32 {
        let card = profile.card();
        let is_larger = self.kernel.is_some_and(|kernel| kernel.is_since(6, 17))
            && machine.kernel.known().is_some()
            && card.rotational
            && machine.read_ahead_kb == READ_AHEAD_KB;
        if is_larger { 2 * card.max_hw_sectors_kb.min(LARGE_REQUEST_KB) } else { machine.read_ahead_kb }
    }

    /// Returns the smallest number of I/Os in one submission that a task collects on a plug. The
    /// multi-queue layer follows the rule of present kernels. In the single-queue layer (up to
    /// Linux 4.20), each `io_submit` had a plug.
    #[must_use]
    pub fn plug_from(&self, is_multi_queue: bool) -> u32 {
        match (self.plug, is_multi_queue) {
            (false, _) => u32::MAX,
            (true, false) => 2,
            (true, true) => BATCH,
        }
    }

    /// Returns the configuration of the request queue for a device, on a
    /// modelled machine if there is one.
    #[must_use]
    pub fn queue_config(&self, profile: &Profile, machine: Option<&Machine>) -> QueueConfig {
        let card = profile.card();
        let default = QueueConfig::default();
        QueueConfig {
            barriers: machine.is_some_and(|machine| machine.kernel.has_barriers()),
            read_ahead_kb: machine.map_or(default.read_ahead_kb, |machine| self.read_ahead_kb(profile, machine)),
            hz: self.hz,
            rotational: card.rotational,
            groups: self.groups,
            write_cache: card.write_cache,
            fua: card.fua,
            max_hw_sectors_kb: card.max_hw_sectors_kb,
            depth: profile.tags(),
            hw_queues: card.hw_queues,
            run_at_insertion: true,
            throttles_writeback: true,
            kernel: self.kernel.unwrap_or_default(),
            // Drivers of SCSI disks have a budget. Drivers of NVMe disks and of virtual disks have
            // none.
            driver_has_budget: card.hw_queues == 1,
            ..default
        }
    }
}

/// Limits after which no I/O is submitted. I/Os in flight still complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Time after which no I/O is submitted, ns since the workload's start, including warm-up.
    pub time_ns: Option<u64>,
    /// Largest number of I/Os that are submitted.
    pub ios: Option<u64>,
}

/// Reason why a run gives no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The scheduler setting is not possible.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The interrupt flag was set.
    #[error("interrupted after {events} events, at a virtual time of {at_ns} ns")]
    Interrupted {
        /// Events handled before the interrupt.
        events: u64,
        /// Virtual time of the interrupt, ns.
        at_ns: u64,
    },
    /// A value of the plan is out of range.
    #[error("{field}: {value} is out of range; it must be {allowed}")]
    OutOfRange {
        /// Name of the value.
        field: &'static str,
        /// The value.
        value: String,
        /// Allowed range of the value.
        allowed: &'static str,
    },
    /// A controller's file is set for a cgroup that the workload does not have.
    #[error("{file}: the workload has no cgroup {cgroup:?}; it has {known}", known = if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    NoCgroup {
        /// Name of the file.
        file: String,
        /// Name of the cgroup.
        cgroup: String,
        /// Cgroups of the workload.
        known: Vec<String>,
    },
    /// The scheduler never dispatches its requests, which is a defect of the scheduler.
    #[error(
        "{scheduler} holds {waiting} requests and never dispatches them ({at_ns} ns after the start); this is a \
     bug of the scheduler"
    )]
    Stuck {
        /// Name of the scheduler.
        scheduler: &'static str,
        /// Number of waiting requests.
        waiting: usize,
        /// Virtual time, ns.
        at_ns: u64,
    },
    /// The workload does not fit on the device.
    #[error(transparent)]
    Workload(#[from] iosched_workload::WorkloadError),
    /// The modelled machine of an application reports an error.
    #[error(transparent)]
    Machine(#[from] iosched_machine::model::MachineError),
    /// An application has no machine.
    #[error("{application}: an application needs a machine model; add --machine NAME")]
    NoMachine {
        /// Name of the application.
        application: String,
    },
    /// An application needs more disks than are given.
    #[error("{application} needs {needed} disks, but the run has {given}")]
    TooFewDisks {
        /// Name of the application.
        application: String,
        /// Number of disks that the application uses.
        needed: usize,
        /// Number of disks in the plan.
        given: usize,
    },
    /// A workload cannot be a part of a workload of several units.
    #[error("{part}: {problem}")]
    Part {
        /// Name of the part.
        part: String,
        /// The reason.
        problem: &'static str,
    },
    /// The weight of a cgroup is not valid.
    #[error(transparent)]
    Weight(#[from] iosched::WeightError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linux_6_17_raises_readahead_of_rotating_disks() {
        let machine: Machine = toml::from_str(include_str!("../../lab/machines/linux-6.12.toml")).unwrap();
        let read_ahead_kb = |kernel: &str, profile: &str, machine: &Machine| {
            let layer = BlockLayer { kernel: Some(kernel.parse().unwrap()), ..BlockLayer::default() };
            layer.queue_config(&Profile::named(profile).unwrap(), Some(machine)).read_ahead_kb
        };
        for (kernel, of_hdd) in [("6.12", 128), ("6.16", 128), ("6.17", 8192), ("7.0", 8192)] {
            assert_eq!(read_ahead_kb(kernel, "sata-7200", &machine), of_hdd, "{kernel}");
            assert_eq!(read_ahead_kb(kernel, "sata-ssd", &machine), 128, "{kernel}");
        }
        let tuned = Machine { read_ahead_kb: 1024, ..machine };
        assert_eq!(read_ahead_kb("6.17", "sata-7200", &tuned), 1024);
    }
}
