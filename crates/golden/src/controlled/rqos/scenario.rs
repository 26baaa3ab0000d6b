//! Scenarios: tasks, changes, groups, a device.

use iosched::{Flags, Op};
use iosched_disk::AnyDevice;
use iosched_workload::{Task, TaskOp, TaskSet};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::controlled::scenario::{DeviceConfig, ScenarioError};

/// A group, with the writes to its files before the run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    pub(super) name: String,
    #[serde(default)]
    pub(super) parent: Option<String>,
    #[serde(default, rename = "io.latency")]
    pub(super) io_latency: Option<String>,
    #[serde(default, rename = "io.max")]
    pub(super) io_max: Option<String>,
}

/// A change during the run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub(super) t_ns: u64,
    /// The file to write, or the name of another event.
    #[serde(alias = "event", rename = "file")]
    pub(super) what: String,
    #[serde(default)]
    pub(super) cgroup: Option<String>,
    #[serde(default)]
    pub(super) value: Value,
    #[serde(default)]
    pub(super) pid: Option<u32>,
}

impl Change {
    /// Returns the text that is written.
    pub(super) fn text(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), str::to_owned)
    }
}

/// Operation and flags of bios, for a task or for one of its phases.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Kind {
    #[serde(default)]
    op: TaskOp,
    #[serde(default)]
    sync: bool,
    #[serde(default)]
    noidle: bool,
    #[serde(default)]
    bg: bool,
    #[serde(default)]
    swap: bool,
    #[serde(default)]
    meta: bool,
}

impl Kind {
    pub(super) fn op(&self) -> Op {
        self.op.into()
    }

    pub(super) fn flags(&self) -> Flags {
        let given = [
            (Flags::SYNC, self.sync),
            (Flags::IDLE, self.sync && !self.noidle),
            (Flags::AHEAD, self.bg),
            (Flags::SWAP, self.swap),
            (Flags::PRIO, self.meta),
        ];
        of_op(self.op(), given.into_iter().filter(|&(_, given)| given).map(|(flag, _)| flag).collect())
    }
}

/// Returns the flags for an operation. Reads keep only the hints about their purpose.
fn of_op(op: Op, flags: Flags) -> Flags {
    if op.is_write() { flags } else { flags & (Flags::SWAP | Flags::PRIO) }
}

/// A task and the kinds of its bios.
#[derive(Clone, Debug)]
pub(super) struct Actor {
    pub(super) cgroup: String,
    /// Whether the task is a kernel thread, which never rests.
    pub(super) kernel: bool,
    /// Kinds of bios, by phase.
    pub(super) kinds: Vec<Kind>,
}

/// A bio that arrives at a given time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) t_ns: u64,
    /// Number of its task.
    pub(super) task: usize,
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) sector: u64,
    pub(super) nr_sectors: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(rename = "name")]
    _name: Value,
    #[serde(rename = "desc")]
    _desc: Value,
    device: DeviceConfig,
    #[serde(default = "hz_default")]
    hz: u32,
    #[serde(default)]
    end_ns: Option<u64>,
    #[serde(default)]
    queue_depth: Option<u32>,
    #[serde(default)]
    nr_requests: Option<u32>,
    #[serde(default)]
    tags: Option<u32>,
    #[serde(default)]
    max_sectors: Option<u32>,
    #[serde(default)]
    rotational: bool,
    #[serde(default)]
    write_cache: bool,
    #[serde(default)]
    cgroups: Vec<Group>,
    #[serde(default)]
    changes: Vec<Change>,
    #[serde(default)]
    tasks: Vec<Map<String, Value>>,
    #[serde(default)]
    arrivals: Vec<(u64, u32, TaskOp, String, u64, u32)>,
    /// Target of wbt. Null means the default target. If the field is missing, wbt is off.
    #[serde(default = "no_wbt")]
    wbt_lat_usec: Value,
}

fn hz_default() -> u32 {
    1000
}

fn no_wbt() -> Value {
    Value::Bool(false)
}

/// Writeback throttling of a scenario.
#[derive(Clone, Debug)]
pub(super) enum Wbt {
    None,
    Default,
    Written(String),
}

/// A scenario.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) hz: u32,
    pub(super) queue_depth: Option<u32>,
    pub(super) nr_requests: Option<u32>,
    pub(super) tags: Option<u32>,
    pub(super) max_sectors: Option<u32>,
    pub(super) rotational: bool,
    pub(super) write_cache: bool,
    pub(super) wbt: Wbt,
    pub(super) cgroups: Vec<Group>,
    pub(super) changes: Vec<Change>,
    pub(super) tasks: TaskSet,
    /// For each task: the kinds of its bios.
    pub(super) actors: Vec<Actor>,
    pub(super) arrivals: Vec<Arrival>,
    pub(super) device: AnyDevice,
}

impl Scenario {
    pub(super) fn parse(json: &[u8]) -> Result<Self, ScenarioError> {
        let text: Text = serde_json::from_slice(json)?;
        let (mut tasks, mut actors) = (Vec::new(), Vec::new());
        for task in text.tasks {
            let (task, actor) = split(task)?;
            tasks.push(task);
            actors.push(actor);
        }
        let number = |pid: u32| {
            let unknown = || ScenarioError::Unknown { what: "task", name: pid.to_string() };
            tasks.iter().position(|task: &Task| task.pid == pid).ok_or_else(unknown)
        };
        let mut arrivals = Vec::new();
        for (t_ns, pid, op, flags, sector, nr_sectors) in text.arrivals {
            let op = op.into();
            let flags = of_op(op, flags.chars().map(flag).collect());
            arrivals.push(Arrival { t_ns, task: number(pid)?, op, flags, sector, nr_sectors });
        }
        Ok(Self {
            hz: text.hz,
            queue_depth: text.queue_depth,
            nr_requests: text.nr_requests,
            tags: text.tags,
            max_sectors: text.max_sectors,
            rotational: text.rotational,
            write_cache: text.write_cache,
            wbt: match text.wbt_lat_usec {
                Value::Bool(_) => Wbt::None,
                Value::Null => Wbt::Default,
                value => Wbt::Written(value.to_string()),
            },
            cgroups: text.cgroups,
            changes: text.changes,
            tasks: TaskSet { tasks, end_ns: text.end_ns, ..TaskSet::default() },
            actors,
            arrivals,
            device: text.device.device()?,
        })
    }
}

fn flag(letter: char) -> Flags {
    match letter {
        'S' => Flags::SYNC,
        'I' => Flags::IDLE,
        'B' => Flags::AHEAD,
        'P' => Flags::SWAP,
        'M' => Flags::PRIO,
        _ => Flags::empty(),
    }
}

/// Splits a task into its closed loop and the kinds of its bios.
fn split(mut task: Map<String, Value>) -> Result<(Task, Actor), ScenarioError> {
    const OF_BIOS: [&str; 6] = ["op", "sync", "noidle", "bg", "swap", "meta"];
    let kernel = task.remove("kthread").is_some_and(|kthread| kthread == Value::Bool(true));
    let cgroup = task.get("cgroup").and_then(Value::as_str).unwrap_or("/").to_owned();
    let bio_fields: Map<String, Value> =
        OF_BIOS.iter().filter_map(|&name| Some((name.to_owned(), task.remove(name)?))).collect();
    let mut kinds = Vec::new();
    let phases = task.get_mut("phases").and_then(Value::as_array_mut).into_iter().flatten();
    for phase in phases.filter_map(Value::as_object_mut) {
        let mut kind = bio_fields.clone();
        kind.extend(OF_BIOS.iter().filter_map(|&name| Some((name.to_owned(), phase.remove(name)?))));
        kinds.push(serde_json::from_value(Value::Object(kind))?);
        // The last phase has no end.
        phase.entry("count").or_insert(Value::from(u64::MAX));
    }
    if kinds.is_empty() {
        kinds.push(serde_json::from_value(Value::Object(bio_fields))?);
    }
    let mut task: Task = serde_json::from_value(Value::Object(task))?;
    if task.total.is_none() {
        // The task only names the process of arrivals, so it has no closed loop.
        (task.pattern, task.phases) = (None, Vec::new());
    }
    Ok((task, Actor { cgroup, kernel, kinds }))
}
