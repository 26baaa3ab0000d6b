//! Tasks as they are described: in closed loops, with patterns and phases, and scheduled arrivals.
//!
//! All times are ns since the run's start, all sectors are 512 bytes. What a missing field means is said at it.

use iosched::{Flags, IoClass, IoPriority, Op};
use serde::Deserialize;

/// A set of tasks and what is scheduled for them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSet {
    /// Its name; the file's name if none is given.
    #[serde(default)]
    pub name: String,
    /// What it is about.
    #[serde(default)]
    pub desc: String,
    /// The tasks.
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// I/Os at given times, whatever else happens. Need not be in order of time.
    #[serde(default)]
    pub arrivals: Vec<Arrival>,
    /// Closed loops submit nothing at or after this moment, ns; `None`: no end.
    #[serde(default)]
    pub end_ns: Option<u64>,
    /// The cgroups that tasks are in.
    #[serde(default)]
    pub cgroups: Vec<Cgroup>,
    /// Changes of priorities while running.
    #[serde(default)]
    pub prio_changes: Vec<PriorityChange>,
    /// Changes of cgroups' weights while running.
    #[serde(default)]
    pub weight_changes: Vec<WeightChange>,
}

/// One task. Without a pattern and without phases it does nothing by itself and is only a name for arrivals.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Process id; unique in a set.
    pub pid: u32,
    /// Its name in results.
    #[serde(default)]
    pub name: String,
    /// Class of its ioprio.
    #[serde(default)]
    pub class: Class,
    /// Level of its ioprio, 0 (most urgent) to 7; 4 if missing.
    #[serde(default = "level_default")]
    pub level: u8,
    /// When it first submits, ns.
    #[serde(default)]
    pub start_ns: u64,
    /// Read (if missing) or write.
    #[serde(default)]
    pub op: TaskOp,
    /// Whether it waits for its writes; true if missing. Reads are always sync.
    #[serde(default = "yes")]
    pub sync: bool,
    /// Whether its sync writes come without the hint that more follow (fsync style).
    #[serde(default)]
    pub noidle: bool,
    /// Whether its I/Os carry the metadata hint.
    #[serde(default)]
    pub prio: bool,
    /// I/Os it keeps under way, at least 1; 1 if missing.
    #[serde(default = "one")]
    pub iodepth: u32,
    /// Completions it waits for before it submits as many I/Os at once; 1 if missing.
    #[serde(default = "one")]
    pub batch: u32,
    /// I/Os it does altogether; if missing, the sum of its phases' counts, or no end.
    #[serde(default)]
    pub total: Option<u64>,
    /// Seed of its generators; its pid if missing.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether it exits when it is done.
    #[serde(default)]
    pub exit: bool,
    /// When it exits whatever is under way, ns.
    #[serde(default)]
    pub exit_ns: Option<u64>,
    /// Its cgroup; the root if missing.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Where its I/Os go.
    #[serde(default)]
    pub pattern: Option<Pattern>,
    /// First sector; 0 if missing.
    #[serde(default)]
    pub start_sector: Option<u64>,
    /// Length of each I/O, sectors; 8 if missing.
    #[serde(default)]
    pub nr_sectors: Option<u32>,
    /// Distance between I/Os of the pattern `stride`, sectors; negative: backward.
    #[serde(default)]
    pub stride: Option<i64>,
    /// First sector, and the one behind the last, of the pattern `random`; 0 to 2^31 if missing.
    #[serde(default)]
    pub range: Option<[u64; 2]>,
    /// What positions of the pattern `random` are multiples of beyond the range's start, sectors; `nr_sectors` if
    /// missing.
    #[serde(default)]
    pub align: Option<u64>,
    /// Time from a completion to the next submission, ns; 0 if missing.
    #[serde(default)]
    pub think_ns: Option<Think>,
    /// What it does one after another; a field missing in a phase is the task's.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// How many tasks of this description there are, at least 1: their pids follow from `pid` on.
    #[serde(default = "one")]
    pub copies: u32,
    /// How much further on the device each copy starts than the one before it, sectors.
    #[serde(default)]
    pub copy_sectors: u64,
}

/// A part of a task's life. Every field but `count` overrides the task's of the same name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// I/Os in it; then the next phase begins. The last phase does not end.
    pub count: u64,
    /// See [`Task::pattern`].
    #[serde(default)]
    pub pattern: Option<Pattern>,
    /// See [`Task::start_sector`].
    #[serde(default)]
    pub start_sector: Option<u64>,
    /// See [`Task::nr_sectors`].
    #[serde(default)]
    pub nr_sectors: Option<u32>,
    /// See [`Task::stride`].
    #[serde(default)]
    pub stride: Option<i64>,
    /// See [`Task::range`].
    #[serde(default)]
    pub range: Option<[u64; 2]>,
    /// See [`Task::align`].
    #[serde(default)]
    pub align: Option<u64>,
    /// See [`Task::think_ns`].
    #[serde(default)]
    pub think_ns: Option<Think>,
}

/// Where a task's I/Os go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Each begins where the last one ended.
    Seq,
    /// Anywhere in the range.
    Random,
    /// Each `stride` sectors behind the last.
    Stride,
    /// Each ends where the last one began.
    Back,
}

/// What a task's I/Os do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOp {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
}

/// The class of a task's ioprio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Never set.
    #[default]
    None,
    /// Real time.
    Rt,
    /// Best effort.
    Be,
    /// Idle.
    Idle,
}

/// A think time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a time in ns, or [smallest, largest] in ns")]
pub enum Think {
    /// Always the same.
    Fixed(u64),
    /// Evenly distributed from the first to the second.
    Range([u64; 2]),
}

/// A number of I/Os, `None` for no end.
pub type Count = Option<u64>;

/// An I/O at a given time: `[t_ns, pid, "read" or "write", sync, sector, nr_sectors]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Arrival(
    /// When, ns.
    pub u64,
    /// Whose. A pid that is no task's has an ioprio that was never set.
    pub u32,
    /// What.
    pub TaskOp,
    /// Whether somebody waits for it.
    pub bool,
    /// First sector.
    pub u64,
    /// Length in sectors.
    pub u32,
);

/// A cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// Its name.
    pub name: String,
    /// Its parent's name, listed before it; `root` if missing.
    #[serde(default = "root")]
    pub parent: String,
    /// Its share among its siblings, in the range of the elevator (cfq 10 to 1000, bfq 1 to 1000); 0 or missing: its default (500, 100).
    #[serde(default)]
    pub weight: u32,
    /// The share of its own tasks against its children, in the range of the elevator (cfq 10 to 1000, bfq 1 to 1000); 0 or missing: its default (500, 100).
    #[serde(default)]
    pub leaf_weight: u32,
}

/// A task's ioprio changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityChange {
    /// When, ns.
    pub t_ns: u64,
    /// Whose.
    pub pid: u32,
    /// Class from now on.
    pub class: Class,
    /// Level from now on, 0 to 7.
    #[serde(default = "level_default")]
    pub level: u8,
}

/// A cgroup's weight changes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightChange {
    /// When, ns.
    pub t_ns: u64,
    /// Whose.
    pub cgroup: String,
    /// The weight from now on, in the range of the elevator.
    pub weight: u32,
    /// Whether it is the leaf weight that changes.
    #[serde(default)]
    pub leaf: bool,
}

const fn level_default() -> u8 {
    iosched::LEVEL_DEFAULT
}

const fn yes() -> bool {
    true
}

const fn one() -> u32 {
    1
}

fn root() -> String {
    "root".to_owned()
}

impl From<Class> for IoClass {
    fn from(class: Class) -> Self {
        match class {
            Class::None => Self::None,
            Class::Rt => Self::RealTime,
            Class::Be => Self::BestEffort,
            Class::Idle => Self::Idle,
        }
    }
}

impl From<TaskOp> for Op {
    fn from(op: TaskOp) -> Self {
        match op {
            TaskOp::Read => Self::Read,
            TaskOp::Write => Self::Write,
        }
    }
}

impl TaskSet {
    /// What one task does, at the times it does it: for a run of this task alone. `None` if there is no task of that
    /// number. Cgroups stay as they are.
    #[must_use]
    pub fn only(&self, task: usize) -> Option<Self> {
        let kept = self.tasks.get(task)?.clone();
        let pid = kept.pid;
        Some(Self {
            tasks: vec![kept],
            arrivals: self.arrivals.iter().filter(|arrival| arrival.1 == pid).copied().collect(),
            prio_changes: self.prio_changes.iter().filter(|change| change.pid == pid).copied().collect(),
            ..self.clone()
        })
    }
}

impl Task {
    /// A task that does nothing.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            name: String::new(),
            class: Class::None,
            level: iosched::LEVEL_DEFAULT,
            start_ns: 0,
            op: TaskOp::Read,
            sync: true,
            noidle: false,
            prio: false,
            iodepth: 1,
            batch: 1,
            total: None,
            seed: None,
            exit: false,
            exit_ns: None,
            cgroup: None,
            pattern: None,
            start_sector: None,
            nr_sectors: None,
            stride: None,
            range: None,
            align: None,
            think_ns: None,
            phases: Vec::new(),
            copies: 1,
            copy_sectors: 0,
        }
    }

    /// Whether it submits by itself.
    #[must_use]
    pub fn has_program(&self) -> bool {
        self.pattern.is_some() || !self.phases.is_empty()
    }

    /// Its ioprio at the start.
    #[must_use]
    pub fn ioprio(&self) -> IoPriority {
        IoPriority::new(self.class.into(), self.level)
    }

    /// The flags of its I/Os.
    #[must_use]
    pub fn flags(&self) -> Flags {
        let mut flags = Flags::empty();
        if self.op == TaskOp::Read || self.sync {
            flags |= Flags::SYNC;
        }
        if self.op == TaskOp::Write && self.sync && !self.noidle {
            flags |= Flags::IDLE;
        }
        if self.prio {
            flags |= Flags::PRIO;
        }
        flags
    }

    /// I/Os it does altogether.
    #[must_use]
    pub fn total(&self) -> Count {
        if self.total.is_some() || self.phases.is_empty() {
            return self.total;
        }
        Some(self.phases.iter().fold(0, |sum: u64, phase| sum.saturating_add(phase.count)))
    }
}

impl Arrival {
    /// Its flags: a sync write carries the hint that more follow, as O_DIRECT writes do.
    #[must_use]
    pub fn flags(&self) -> Flags {
        match (self.2, self.3) {
            (TaskOp::Read, _) => Flags::SYNC,
            (TaskOp::Write, true) => Flags::SYNC | Flags::IDLE,
            (TaskOp::Write, false) => Flags::empty(),
        }
    }
}
