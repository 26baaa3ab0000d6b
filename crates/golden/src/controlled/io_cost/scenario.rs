//! The format of scenarios. Times are ns since the run's start.

use iosched::controllers::IoCostFile;
use iosched::{Flags, Op};
use iosched_workload::{CgroupMove, CgroupRemoval, Task, TaskOp};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::controlled::scenario::DeviceConfig;

/// A scenario.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "desc", default)]
    _desc: String,
    #[serde(rename = "sched")]
    _sched: String,
    #[serde(default = "hz_default")]
    pub(super) hz: u32,
    #[serde(default)]
    pub(super) rotational: bool,
    #[serde(default)]
    pub(super) plug: bool,
    #[serde(default = "yes")]
    pub(super) nomerge: bool,
    /// Size of the largest request that merging may create, sectors.
    #[serde(default = "max_sectors_default")]
    pub(super) max_sectors: u32,
    /// Level of brevity. Level 0 writes every line. Higher levels write fewer lines.
    #[serde(default)]
    pub(super) brief: u8,
    pub(super) device: DeviceConfig,
    /// Writes to files before the start, in this order.
    #[serde(default)]
    pub(super) init: Vec<(DeviceFile, String)>,
    #[serde(default)]
    pub(super) file_writes: Vec<FileWrite>,
    #[serde(default)]
    pub(super) cgroups: Vec<Cgroup>,
    #[serde(default)]
    pub(super) weight_changes: Vec<WeightChange>,
    #[serde(default)]
    pub(super) cgroup_moves: Vec<CgroupMove>,
    #[serde(default)]
    pub(super) cgroup_removals: Vec<CgroupRemoval>,
    #[serde(default)]
    pub(super) tasks: Vec<ScriptedTask>,
    #[serde(default)]
    pub(super) arrivals: Vec<Arrival>,
    pub(super) end_ns: Option<u64>,
}

const fn hz_default() -> u32 {
    1000
}

const fn yes() -> bool {
    true
}

const fn max_sectors_default() -> u32 {
    2560
}

/// A file of the device.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum DeviceFile {
    Qos,
    Model,
}

impl From<DeviceFile> for IoCostFile {
    fn from(file: DeviceFile) -> Self {
        match file {
            DeviceFile::Qos => Self::Qos,
            DeviceFile::Model => Self::Model,
        }
    }
}

/// A write to a file of the device during the run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileWrite {
    pub(super) file: DeviceFile,
    pub(super) t_ns: u64,
    /// Text after the device's number.
    pub(super) text: String,
}

/// A cgroup.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cgroup {
    pub(super) name: String,
    #[serde(default = "root")]
    pub(super) parent: String,
    #[serde(default = "weight_default")]
    pub(super) weight: u32,
}

fn root() -> String {
    "/".to_owned()
}

const fn weight_default() -> u32 {
    100
}

/// A write to a cgroup's io.weight during the run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WeightChange {
    pub(super) t_ns: u64,
    pub(super) cgroup: String,
    /// New weight. If `dev` is true, 0 removes the weight for this device.
    pub(super) weight: u32,
    /// Whether the weight is only for this device.
    #[serde(default)]
    pub(super) dev: bool,
}

impl WeightChange {
    /// Returns the text that is written.
    pub(super) fn text(&self) -> String {
        match (self.dev, self.weight) {
            (false, weight) => format!("default {weight}"),
            (true, 0) => "8:0 default".to_owned(),
            (true, weight) => format!("8:0 {weight}"),
        }
    }
}

/// An arrival: `[t_ns, pid, op, sector, nr_sectors]`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Arrival(pub(super) u64, pub(super) u32, pub(super) TaskOp, pub(super) u64, pub(super) u32);

/// A task, with additional fields for these scenarios.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(super) struct ScriptedTask {
    pub(super) task: Task,
    /// Hints for all bios of the task.
    pub(super) flags: Flags,
    /// Whether the task is a kernel thread, which never sleeps.
    pub(super) kthread: bool,
    /// Operation of the bios in each phase. `None` means the operation of the task.
    ops: Vec<Option<TaskOp>>,
}

impl ScriptedTask {
    /// Returns a task without a program, for arrivals.
    pub(super) fn named(pid: u32) -> Self {
        Self { task: Task::new(pid), flags: Flags::empty(), kthread: false, ops: Vec::new() }
    }

    /// Returns the operation of the task's bios in a phase.
    pub(super) fn op(&self, phase: usize) -> Op {
        self.ops.get(phase).copied().flatten().unwrap_or(self.task.op).into()
    }
}

impl TryFrom<Map<String, Value>> for ScriptedTask {
    type Error = serde_json::Error;

    fn try_from(mut written: Map<String, Value>) -> Result<Self, Self::Error> {
        let mut take = |name: &str| written.remove(name).map_or(Ok(false), serde_json::from_value);
        let (meta, swap, kthread) = (take("meta")?, take("swap")?, take("kthread")?);
        let mut ops = Vec::new();
        for phase in written.get_mut("phases").and_then(Value::as_array_mut).into_iter().flatten() {
            let phase = phase.as_object_mut();
            let op = phase.and_then(|phase| {
                // The last phase never ends, so a scenario may leave out its count.
                phase.entry("count").or_insert(Value::from(u64::MAX));
                phase.remove("op")
            });
            ops.push(op.map(serde_json::from_value::<TaskOp>).transpose()?);
        }
        let mut task: Task = serde_json::from_value(Value::Object(written))?;
        // Only the phases end. The task itself never ends.
        task.total.get_or_insert(u64::MAX);
        let mut flags = Flags::empty();
        flags.set(Flags::PRIO, meta);
        flags.set(Flags::SWAP, swap);
        Ok(Self { task, flags, kthread, ops })
    }
}
