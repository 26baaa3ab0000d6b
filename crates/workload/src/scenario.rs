//! Scenarios of recorded runs: a task set with its scheduler, device and host in one JSON file.

use iosched::{IoPriority, LEVEL_DEFAULT};
use serde::Deserialize;

use crate::error::WorkloadError;
use crate::tasks::{Arrival, Cgroup, PriorityChange, Task, TaskSet, WeightChange};

/// A scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it shows.
    #[serde(default)]
    pub desc: String,
    /// The elevator.
    pub sched: String,
    /// Jiffies in a second; 1000 if missing.
    #[serde(default = "hz_default")]
    pub hz: u32,
    /// Whether nothing is merged.
    #[serde(default = "yes")]
    pub nomerge: bool,
    /// Whether seeking costs.
    #[serde(default = "yes")]
    pub rotational: bool,
    /// Largest request that merging makes, sectors; 2560 if missing.
    #[serde(default = "max_sectors_default")]
    pub max_sectors: u32,
    /// The elevator's tunables, values in the unit of sysfs; in the order of the file.
    #[serde(default, deserialize_with = "in_order")]
    pub tunables: Vec<(String, serde_json::Value)>,
    /// Whether the elevator tells cgroups apart.
    #[serde(default)]
    pub group_iosched: bool,
    /// The device, `type` and parameters: for the owner of the device models to read.
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

/// The members of a JSON object in the order they are written in.
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
    /// Reads a scenario's JSON; `file` is for errors.
    ///
    /// # Errors
    /// It is not JSON, uses a field that is not known here, or a value makes no sense.
    pub fn parse(file: &str, json: &[u8]) -> Result<Self, WorkloadError> {
        let mut scenario: Self =
            serde_json::from_slice(json).map_err(|source| WorkloadError::Json { file: file.to_owned(), source })?;
        let mut tasks = scenario.take_tasks();
        tasks.complete(file)?;
        scenario.put_tasks(tasks);
        Ok(scenario)
    }

    /// Its tasks, as a workload.
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
        }
    }

    fn put_tasks(&mut self, set: TaskSet) {
        let TaskSet { tasks, arrivals, cgroups, prio_changes, weight_changes, .. } = set;
        (self.tasks, self.arrivals, self.cgroups) = (tasks, arrivals, cgroups);
        (self.prio_changes, self.weight_changes) = (prio_changes, weight_changes);
    }

    /// The tunables as `name`, `value` in the unit of sysfs.
    #[must_use]
    pub fn tunables(&self) -> Vec<(String, String)> {
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Bool(on) => u8::from(*on).to_string(),
            other => other.to_string(),
        };
        self.tunables.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    }
}

/// The ioprio of an arrival whose pid is no task's.
pub(crate) fn stranger() -> IoPriority {
    IoPriority::new(iosched::IoClass::None, LEVEL_DEFAULT)
}
