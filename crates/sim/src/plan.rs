//! What to run: a workload, a device, a scheduler setting, a seed.

use std::sync::atomic::AtomicBool;

use iosched::{KernelVersion, QueueConfig};
use iosched_disk::Profile;
use iosched_machine::description::{Host, Machine};
use iosched_workload::{Replay, Workload, app};
use serde::{Deserialize, Serialize};

use iosched::{Setting, SettingError};

/// One run. The result is a function of it: the same plan gives the same result.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// What is done.
    pub workload: &'a Workload,
    /// The device it is done to.
    pub profile: &'a Profile,
    /// The elevator in between, and what is set of it and of the queue.
    pub scheduler: Setting,
    /// Decides everything that is left to chance: where the platters are at the start, the jitter of arrivals.
    pub seed: u64,
    /// How a trace is replayed; without meaning for tasks.
    pub replay: Replay,
    /// The machine.
    pub block_layer: BlockLayer,
    /// The machine that applications run on; they need one; without meaning for other workloads.
    pub machine: Option<&'a Machine>,
    /// What direct I/O of fio jobs costs the host, instead of what the machine says of it.
    pub host: Option<&'a Host>,
    /// Disks that an application or fio jobs use besides the first, and their elevators.
    pub more_disks: &'a [(Profile, Setting)],
    /// An application that runs beside the workload, if that is one, as long as it does.
    pub company: Option<&'a app::Spec>,
    /// What is done in this time from the workload's start does not count, ns.
    pub warm_up_ns: u64,
    /// When to stop early.
    pub limit: Limit,
    /// Looked at every 65,536 events: once it is true, the run ends with [`SimError::Interrupted`].
    pub interrupt: Option<&'a AtomicBool>,
}

impl<'a> Plan<'a> {
    /// A plan with seed 0, open replay at the recorded speed, the usual block layer and no limit.
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

/// The block layer between tasks and device, as it is built and used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockLayer {
    /// Jiffies in a second, 1 to 1,000,000.
    pub hz: u32,
    /// Whether elevators tell cgroups apart, as distribution kernels are built.
    pub groups: bool,
    /// Whether a task that submits several I/Os at once collects them on a plug, as real systems do: see
    /// [`BlockLayer::plug_from`].
    pub plug: bool,
    /// The version of Linux whose rules hold for settings that name none; `None`: 6.12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelVersion>,
}

impl Default for BlockLayer {
    /// 1,000 jiffies in a second, with groups and plugs.
    fn default() -> Self {
        Self { hz: 1000, groups: true, plug: true, kernel: None }
    }
}

/// A batch of so many I/Os is collected on a plug by io_uring, and by libaio since Linux 5.0: more than two. Smaller
/// ones go one by one.
const BATCH: u32 = 3;

/// The default of `read_ahead_kb`, KiB. From Linux 6.17 on, disks that rotate have twice the largest request instead.
const READ_AHEAD_KB: u32 = 128;
/// The largest request of Linux 6.17, if the device takes it, KiB.
const LARGE_REQUEST_KB: u32 = 4096;

impl BlockLayer {
    /// The same block layer under the version of Linux that a setting names, if it names one.
    #[must_use]
    pub fn under(self, setting: &Setting) -> Self {
        Self { kernel: setting.kernel().or(self.kernel), ..self }
    }

    /// Largest readahead window on a modelled machine until `read_ahead_kb` is written, KiB. A machine of a kernel that
    /// is older than the known ones keeps its value.
    fn read_ahead_kb(&self, profile: &Profile, machine: &Machine) -> u32 {
        let card = profile.card();
        let is_larger = self.kernel.is_some_and(|kernel| kernel.is_since(6, 17))
            && machine.kernel.known().is_some()
            && card.rotational
            && machine.read_ahead_kb == READ_AHEAD_KB;
        if is_larger { 2 * card.max_hw_sectors_kb.min(LARGE_REQUEST_KB) } else { machine.read_ahead_kb }
    }

    /// How many I/Os a task submits at once at least for them to collect on a plug, in a multi-queue layer of today or
    /// in the single-queue one, up to Linux 4.20, where each `io_submit` had a plug.
    #[must_use]
    pub fn plug_from(&self, is_multi_queue: bool) -> u32 {
        match (self.plug, is_multi_queue) {
            (false, _) => u32::MAX,
            (true, false) => 2,
            (true, true) => BATCH,
        }
    }

    /// The configuration of its request queue for a device, on a modelled machine if there is one.
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
            // SCSI drivers have a budget; drivers of NVMe disks and of virtual ones do not.
            driver_has_budget: card.hw_queues == 1,
            ..default
        }
    }
}

/// When to stop submitting; what is under way then still completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// No I/O is submitted at or after this moment, ns since the workload's start, warm-up included.
    pub time_ns: Option<u64>,
    /// At most so many I/Os are submitted.
    pub ios: Option<u64>,
}

/// Why a run gives no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// The scheduler setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The interrupt flag was set.
    #[error("interrupted after {events} events, at a virtual time of {at_ns} ns")]
    Interrupted {
        /// Events handled by then.
        events: u64,
        /// Virtual time by then, ns.
        at_ns: u64,
    },
    /// A value of the plan out of range.
    #[error("{field}: {value} is out of range; it must be {allowed}")]
    OutOfRange {
        /// Its name.
        field: &'static str,
        /// What it was.
        value: String,
        /// What it may be.
        allowed: &'static str,
    },
    /// A controller's file of a cgroup that the workload does not have.
    #[error("{file}: the workload has no cgroup {cgroup:?}; it has {known}", known = if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    NoCgroup {
        /// The file.
        file: String,
        /// The cgroup.
        cgroup: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// The elevator keeps requests for ever: a defect of the elevator.
    #[error(
        "{scheduler} holds {waiting} requests and never dispatches them ({at_ns} ns after the start); this is a \
     bug of the scheduler"
    )]
    Stuck {
        /// The elevator.
        scheduler: &'static str,
        /// How many requests wait.
        waiting: usize,
        /// Virtual time, ns.
        at_ns: u64,
    },
    /// The workload cannot be put on the device.
    #[error(transparent)]
    Workload(#[from] iosched_workload::WorkloadError),
    /// The file system of an application's machine.
    #[error(transparent)]
    Machine(#[from] iosched_machine::model::MachineError),
    /// An application has nothing to run on.
    #[error("{application}: an application needs a machine model; give one with --machine")]
    NoMachine {
        /// The command.
        application: String,
    },
    /// An application needs more disks than there are.
    #[error("{application} needs {needed} disks, but {given} are given")]
    TooFewDisks {
        /// The command.
        application: String,
        /// Disks that it uses.
        needed: usize,
        /// Disks there are.
        given: usize,
    },
    /// A cgroup's weight.
    #[error(transparent)]
    Weight(#[from] iosched::WeightError),
}
