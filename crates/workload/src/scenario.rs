//! Scenarios of recorded runs: a task set with its scheduler, device and host, in one JSON file.

use iosched::{IoPriority, LEVEL_DEFAULT};
use serde::Deserialize;

use crate::error::WorkloadError;
use crate::tasks::{Arrival, Cgroup, CgroupMove, CgroupRemoval, Hints, PriorityChange, Task, TaskSet, WeightChange};

/// A task set with its scheduler, device and host.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: String,
    /// Description of what the scenario shows.
    #[serde(default)]
    pub desc: String,
    /// Name of the scheduler.
    pub sched: String,
    /// Jiffies per second; 1000 if missing.
    #[serde(default = "hz_default")]
    pub hz: u32,
    /// Whether merging is disabled.
    #[serde(default = "yes")]
    pub nomerge: bool,
    /// Whether the device is rotational. If missing: true, but false in recordings of ADIOS.
    #[serde(default)]
    pub rotational: Option<bool>,
    /// Largest request that merging creates, sectors; 2560 if missing.
    #[serde(default = "max_sectors_default")]
    pub max_sectors: u32,
    /// Tunables of the scheduler in the order of the file. Values have the unit of sysfs.
    #[serde(default, deserialize_with = "in_order")]
    pub tunables: Vec<(String, serde_json::Value)>,
    /// Whether the scheduler distinguishes cgroups.
    #[serde(default)]
    pub group_iosched: bool,
    /// Device: `type` and parameters. The crate `iosched-sim` parses this value.
    pub device: serde_json::Value,
    /// See [`TaskSet::end_ns`].
    #[serde(default)]
    pub end_ns: Option<u64>,
    /// See [`TaskSet::tasks`].
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// See [`TaskSet::arrivals`].
    #[serde(default)]
    pub arrivals: Vec<Arrival>,
    /// See [`TaskSet::cgroups`].
    #[serde(default)]
    pub cgroups: Vec<Cgroup>,
    /// See [`TaskSet::prio_changes`].
    #[serde(default)]
    pub prio_changes: Vec<PriorityChange>,
    /// See [`TaskSet::weight_changes`].
    #[serde(default)]
    pub weight_changes: Vec<WeightChange>,
    /// See [`TaskSet::cgroup_moves`].
    #[serde(default)]
    pub cgroup_moves: Vec<CgroupMove>,
    /// See [`TaskSet::cgroup_removals`].
    #[serde(default)]
    pub cgroup_removals: Vec<CgroupRemoval>,
    /// Tunables of the scheduler that are written during the run.
    #[serde(default)]
    pub tunable_changes: Vec<TunableChange>,
    /// Number of scheduler tags; each request needs one. `None` (missing or 0): tags are unlimited.
    /// `nr_requests` is another name of this field.
    #[serde(default, alias = "nr_requests", deserialize_with = "none_if_zero")]
    pub tags: Option<u32>,
    /// Layout of the tags.
    #[serde(default)]
    pub tag_map: TagMap,
    /// Whether the bios of one event are collected in a plug.
    #[serde(default)]
    pub plug: bool,
    /// Level of detail of the recording.
    #[serde(default)]
    pub brief: Brief,
    /// Delay after which the queue runs again, ns, if a run dispatched nothing although requests
    /// wait. If missing, the queue does not run again. Recordings of mq-deadline and kyber follow
    /// another rule.
    #[serde(default)]
    pub rerun_ns: Option<u64>,
}

/// A write of a tunable during the run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunableChange {
    /// Time of the write, ns.
    pub t_ns: u64,
    /// Name of the tunable.
    pub name: String,
    /// New value in the unit of sysfs. `null`: the run reads the file of the tunable instead.
    pub value: serde_json::Value,
}

/// Layout of the scheduler tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TagMap {
    /// One word of at most 64 tags.
    #[default]
    Single,
    /// About four words, as in Linux.
    Linux,
}

/// Level of detail of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenBrief")]
pub enum Brief {
    /// Every event.
    #[default]
    No,
    /// Dispatches, with only their time and request. There are no insertions, completions or
    /// timers.
    Dispatches,
    /// Sums over the dispatches at intervals. There are no single dispatches and no merges.
    Sums,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "true, false, or a number from 0 to 2")]
enum WrittenBrief {
    On(bool),
    Grade(u8),
}

impl TryFrom<WrittenBrief> for Brief {
    type Error = String;

    fn try_from(written: WrittenBrief) -> Result<Self, Self::Error> {
        match written {
            WrittenBrief::On(false) | WrittenBrief::Grade(0) => Ok(Self::No),
            WrittenBrief::On(true) | WrittenBrief::Grade(1) => Ok(Self::Dispatches),
            WrittenBrief::Grade(2) => Ok(Self::Sums),
            WrittenBrief::Grade(grade) => Err(format!(
                "the field brief has the value {grade}, but it must be from 0 \
                 to 2"
            )),
        }
    }
}

fn none_if_zero<'de, D: serde::Deserializer<'de>>(number: D) -> Result<Option<u32>, D::Error> {
    Option::<u32>::deserialize(number).map(|tags| tags.filter(|&tags| tags > 0))
}

const fn hz_default() -> u32 {
    1000
}

const fn max_sectors_default() -> u32 {
    2560
}

const fn yes() -> bool {
    true
}

/// Deserializes the members of a JSON object in the order of the file.
fn in_order<'de, D: serde::Deserializer<'de>>(object: D) -> Result<Vec<(String, serde_json::Value)>, D::Error> {
    struct Members;

    impl<'de> serde::de::Visitor<'de> for Members {
        type Value = Vec<(String, serde_json::Value)>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object of tunables")
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some(member) = map.next_entry()? {
                members.push(member);
            }
            Ok(members)
        }
    }

    object.deserialize_map(Members)
}

impl Scenario {
    /// Parses the JSON of a scenario. `file` is its name in errors.
    ///
    /// # Errors
    /// The text is not JSON, or has an unknown field or an invalid value.
    pub fn parse(file: &str, json: &[u8]) -> Result<Self, WorkloadError> {
        let mut scenario: Self =
            serde_json::from_slice(json).map_err(|source| WorkloadError::Json { file: file.to_owned(), source })?;
        let mut tasks = scenario.take_tasks();
        if scenario.sched == "adios" {
            for Arrival(.., hints) in &mut tasks.arrivals {
                *hints = Hints { at_head: hints.noidle || hints.at_head, ..Hints::default() };
            }
        }
        tasks.complete(file)?;
        scenario.put_tasks(tasks);
        Ok(scenario)
    }

    /// Returns the tasks of the scenario as a workload.
    #[must_use]
    pub fn task_set(&self) -> TaskSet {
        self.clone().take_tasks()
    }

    fn take_tasks(&mut self) -> TaskSet {
        TaskSet {
            name: self.name.clone(),
            desc: self.desc.clone(),
            tasks: std::mem::take(&mut self.tasks),
            arrivals: std::mem::take(&mut self.arrivals),
            end_ns: self.end_ns,
            cgroups: std::mem::take(&mut self.cgroups),
            prio_changes: std::mem::take(&mut self.prio_changes),
            weight_changes: std::mem::take(&mut self.weight_changes),
            cgroup_moves: std::mem::take(&mut self.cgroup_moves),
            cgroup_removals: std::mem::take(&mut self.cgroup_removals),
        }
    }

    fn put_tasks(&mut self, set: TaskSet) {
        let TaskSet { tasks, arrivals, cgroups, prio_changes, weight_changes, .. } = set;
        (self.tasks, self.arrivals, self.cgroups) = (tasks, arrivals, cgroups);
        (self.prio_changes, self.weight_changes) = (prio_changes, weight_changes);
        (self.cgroup_moves, self.cgroup_removals) = (set.cgroup_moves, set.cgroup_removals);
    }

    /// Returns whether the device is rotational.
    #[must_use]
    pub fn is_rotational(&self) -> bool {
        self.rotational.unwrap_or(self.sched != "adios")
    }

    /// Returns the tunables as pairs of name and value. Values have the unit of sysfs.
    #[must_use]
    pub fn tunables(&self) -> Vec<(String, String)> {
        self.tunables.iter().map(|(name, value)| (name.clone(), as_written(value))).collect()
    }
}

impl TunableChange {
    /// Returns the text that the run writes to the tunable. Returns `None` if the run reads the
    /// tunable's file instead.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        (!self.value.is_null()).then(|| as_written(&self.value))
    }
}

fn as_written(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(on) => u8::from(*on).to_string(),
        other => other.to_string(),
    }
}

/// Returns the ioprio of an arrival whose pid belongs to no task.
pub(crate) fn stranger() -> IoPriority {
    IoPriority::new(iosched::IoClass::None, LEVEL_DEFAULT)
}
