//! Descriptions of tasks: closed loops with patterns and phases, and scheduled arrivals.
//!
//! All times are in ns since the start of the run. All sectors have 512 bytes. The comment of each
//! field gives its default.

use iosched::{Flags, IoClass, IoPriority, Op};
use serde::Deserialize;

/// A set of tasks, and the events scheduled for them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskSet {
    /// Name of the set; the file's name if missing.
    #[serde(default)]
    pub name: String,
    /// Description of the set.
    #[serde(default)]
    pub desc: String,
    /// The tasks.
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// I/Os at given times, independent of all completions. They need not be in order of time.
    #[serde(default)]
    pub arrivals: Vec<Arrival>,
    /// Time from which closed loops submit nothing, ns. `None`: no end.
    #[serde(default)]
    pub end_ns: Option<u64>,
    /// The cgroups that tasks are in.
    #[serde(default)]
    pub cgroups: Vec<Cgroup>,
    /// Changes of ioprios during the run.
    #[serde(default)]
    pub prio_changes: Vec<PriorityChange>,
    /// Changes of cgroups' weights during the run.
    #[serde(default)]
    pub weight_changes: Vec<WeightChange>,
    /// Moves of tasks to other cgroups during the run.
    #[serde(default)]
    pub cgroup_moves: Vec<CgroupMove>,
    /// Removals of cgroups during the run.
    #[serde(default)]
    pub cgroup_removals: Vec<CgroupRemoval>,
}

/// A task. Without a pattern and phases, the task submits nothing by itself. It then only gives a
/// name to the process of arrivals.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Process id, unique in a set.
    pub pid: u32,
    /// Name of the task in results.
    #[serde(default)]
    pub name: String,
    /// Class of the task's ioprio.
    #[serde(default)]
    pub class: Class,
    /// Level of the task's ioprio, 0 (most urgent) to 7; 4 if missing.
    #[serde(default = "level_default")]
    pub level: u8,
    /// Time of the first submission, ns.
    #[serde(default)]
    pub start_ns: u64,
    /// Operation of the task's I/Os: read (if missing), write, discard, or other (write zeroes
    /// without a transfer of data).
    #[serde(default)]
    pub op: TaskOp,
    /// Whether the task waits for its writes; true if missing. Reads are always sync. For reads,
    /// `true` sets the flag that Linux sets only if the submitter itself waits for the read. ADIOS
    /// uses this flag.
    #[serde(default)]
    pub sync: Option<bool>,
    /// Whether the task's sync writes lack the hint that more writes follow (as with fsync).
    #[serde(default)]
    pub noidle: bool,
    /// Whether the task's I/Os have the metadata hint. `meta` is another name of this field.
    #[serde(default, alias = "meta")]
    pub prio: bool,
    /// Whether the task always holds an exclusive resource of its file system, so that other tasks
    /// wait.
    #[serde(default)]
    pub fs_excl: bool,
    /// I/Os that the task keeps in flight; 1 if missing. With 0, the task starts nothing by itself:
    /// the `relay` or `wakes` of another task starts it.
    #[serde(default = "one")]
    pub iodepth: u32,
    /// Completions that the task waits for before it submits the same number of I/Os at once; 1 if
    /// missing.
    #[serde(default = "one")]
    pub batch: u32,
    /// Pid of the task that continues after this task. When an I/O of this task completes and no
    /// other I/O of this task is in flight, this task waits for its think time. Then the other task
    /// submits [`relay_n`](Self::relay_n) I/Os, or all its remaining I/Os if these are fewer. Two
    /// tasks that relay to each other take turns, like a process that calls fsync and the thread of
    /// the journal. For copies, the pid increases with the number of the copy.
    #[serde(default)]
    pub relay: Option<u32>,
    /// I/Os that the next task submits at once after a relay, at least 1; 1 if missing.
    #[serde(default = "one")]
    pub relay_n: u32,
    /// Pid of the task that each completion wakes. When an I/O of this task completes, this task
    /// waits for its think time. Then the other task submits one I/O, if it has any left. This task
    /// itself submits only when other tasks wake it. Stages of a pipeline work like this. For
    /// copies, the pid increases with the number of the copy.
    #[serde(default)]
    pub wakes: Option<u32>,
    /// Total number of the task's I/Os. If missing, the sum of its phases' counts, or no end.
    #[serde(default)]
    pub total: Option<u64>,
    /// Seed of the task's random generators; its pid if missing.
    #[serde(default)]
    pub seed: Option<u64>,
    /// Whether the task exits after its last I/O.
    #[serde(default)]
    pub exit: bool,
    /// Time at which the task exits, ns, even if I/Os are in flight.
    #[serde(default)]
    pub exit_ns: Option<u64>,
    /// Name of the task's cgroup; the root if missing.
    #[serde(default)]
    pub cgroup: Option<String>,
    /// Order of the sectors that the task's I/Os access.
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
    /// Range of the pattern `random`: its first sector, and the sector after its last sector. If
    /// missing, the range is 0 to 2^31.
    #[serde(default)]
    pub range: Option<[u64; 2]>,
    /// Alignment of positions in the pattern `random`, counted from the start of the range,
    /// sectors; `nr_sectors` if missing.
    #[serde(default)]
    pub align: Option<u64>,
    /// Time from a completion to the next submission, ns; 0 if missing.
    #[serde(default)]
    pub think_ns: Option<Think>,
    /// Phases, one after another. A field that is missing in a phase has the value of the task.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// Number of tasks with this description, at least 1. Their pids count up from `pid`.
    #[serde(default = "one")]
    pub copies: u32,
    /// Distance between the start sectors of two consecutive copies, sectors.
    #[serde(default)]
    pub copy_sectors: u64,
}

/// A part of a task's I/O. Every field except `count` overrides the task's field of the same name.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// Number of I/Os until the next phase begins. The last phase does not end.
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

/// Order of the sectors that a task's I/Os access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Each I/O begins where the previous one ended.
    Seq,
    /// Random positions in the range.
    Random,
    /// Each I/O begins `stride` sectors after the previous one's start.
    Stride,
    /// Each I/O ends where the previous one began.
    Back,
}

/// Operation of a task's I/Os.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskOp {
    /// Reads.
    #[default]
    Read,
    /// Writes.
    Write,
    /// Discards: the contents of the sectors are no longer needed.
    Discard,
    /// Writes of zeroes without a transfer of data.
    Other,
}

/// Class of a task's ioprio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// The ioprio was never set.
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
    /// A fixed time.
    Fixed(u64),
    /// Uniformly distributed from the first to the second value.
    Range([u64; 2]),
}

/// A number of I/Os; `None` for no end.
pub type Count = Option<u64>;

/// An I/O at a given time: `[t_ns, pid, op, sync, sector, nr_sectors]`, optionally followed by
/// hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Arrival(
    /// Time of the arrival, ns.
    pub u64,
    /// Pid of the submitter. A pid that belongs to no task has an ioprio that was never set.
    pub u32,
    /// Operation.
    pub TaskOp,
    /// Whether a process waits for the I/O. Reads are always sync; for reads, `true` sets the flag
    /// that [`Task::sync`] describes.
    #[serde(deserialize_with = "flag")]
    pub bool,
    /// First sector.
    pub u64,
    /// Length in sectors.
    pub u32,
    /// Hints of the I/O.
    #[serde(default)]
    pub Hints,
);

/// Hints of an arrival, written as a sum: 1 (a sync write after which no more writes follow, as
/// with fsync), 2 (metadata) and 4 (inserted at the head). Recordings also use `true` for 1.
/// Recordings of ADIOS use 1 for 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenHints")]
pub struct Hints {
    /// Whether a sync write lacks the hint that more writes follow.
    pub noidle: bool,
    /// Whether the I/O has the metadata hint.
    pub prio: bool,
    /// Whether the request is inserted at the head: see [`iosched::Issued::at_head`].
    pub at_head: bool,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "true, false, or a number from 0 to 7, which is the sum of 1 (no more writes follow), 2 \
     (metadata) and 4 (inserted at the head)"
)]
enum WrittenHints {
    Sum(u8),
    Flag(bool),
}

impl TryFrom<WrittenHints> for Hints {
    type Error = String;

    fn try_from(written: WrittenHints) -> Result<Self, Self::Error> {
        match written {
            WrittenHints::Sum(sum @ 0..=7) => {
                Ok(Self { noidle: sum & 1 != 0, prio: sum & 2 != 0, at_head: sum & 4 != 0 })
            }
            WrittenHints::Sum(sum) => Err(format!("the sum of the hints is {sum}, but it must be from 0 to 7")),
            WrittenHints::Flag(noidle) => Ok(Self { noidle, ..Self::default() }),
        }
    }
}

/// Deserializes `true` or `false`. Recordings also use 1 and 0.
fn flag<'de, D: serde::Deserializer<'de>>(written: D) -> Result<bool, D::Error> {
    match WrittenHints::deserialize(written)? {
        WrittenHints::Flag(flag) => Ok(flag),
        WrittenHints::Sum(sum @ 0..=1) => Ok(sum == 1),
        WrittenHints::Sum(sum) => Err(serde::de::Error::custom(format!(
            "{sum} is not a valid value; write true or \
             false"
        ))),
    }
}

/// A cgroup of the workload.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// Name of the cgroup.
    pub name: String,
    /// Name of the parent, which must be listed before this cgroup; `root` if missing.
    #[serde(default = "root")]
    pub parent: String,
    /// Weight among the siblings, in the range of the scheduler: CFQ 10 to 1000, bfq 1 to 1000. 0
    /// or missing: the scheduler's default (CFQ 500, bfq 100).
    #[serde(default)]
    pub weight: u32,
    /// Weight of the tasks directly in the cgroup against its child cgroups, 10 to 1000. 0 or
    /// missing: the scheduler's default. bfq does not have this weight.
    #[serde(default)]
    pub leaf_weight: u32,
}

/// A change of a task's ioprio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorityChange {
    /// Time of the change, ns.
    pub t_ns: u64,
    /// Pid of the task.
    pub pid: u32,
    /// New class.
    pub class: Class,
    /// New level, 0 to 7.
    #[serde(default = "level_default")]
    pub level: u8,
}

/// A change of a cgroup's weight.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeightChange {
    /// Time of the change, ns.
    pub t_ns: u64,
    /// Name of the cgroup.
    pub cgroup: String,
    /// New weight, in the range of the scheduler.
    pub weight: u32,
    /// Whether the leaf weight changes.
    #[serde(default)]
    pub leaf: bool,
}

/// A move of a task to another cgroup. I/Os that the task submitted before stay in the old cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupMove {
    /// Time of the move, ns.
    pub t_ns: u64,
    /// Pid of the task.
    pub pid: u32,
    /// Name of the new cgroup; `root` is the root.
    pub cgroup: String,
}

/// A removal of a cgroup. Its tasks then belong to the nearest ancestor that still exists.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupRemoval {
    /// Time of the removal, ns.
    pub t_ns: u64,
    /// Name of the cgroup.
    pub cgroup: String,
}

const fn level_default() -> u8 {
    iosched::LEVEL_DEFAULT
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
            TaskOp::Discard => Self::Discard,
            TaskOp::Other => Self::WriteZeroes,
        }
    }
}

impl TaskSet {
    /// Returns a set with only the I/O of one task, to run this task alone. Times and cgroups do
    /// not change. A task that waits for other tasks to start or continue it runs by itself.
    /// Returns `None` if there is no task with this number.
    #[must_use]
    pub fn only(&self, task: usize) -> Option<Self> {
        let mut task_record = self.tasks.get(task)?.clone();
        (task_record.relay, task_record.wakes) = (None, None);
        task_record.iodepth = task_record.iodepth.max(1);
        let pid = task_record.pid;
        Some(Self {
            tasks: vec![task_record],
            arrivals: self.arrivals.iter().filter(|arrival| arrival.1 == pid).copied().collect(),
            prio_changes: self.prio_changes.iter().filter(|change| change.pid == pid).copied().collect(),
            cgroup_moves: self.cgroup_moves.iter().filter(|change| change.pid == pid).cloned().collect(),
            ..self.clone()
        })
    }
}

impl Task {
    /// Creates a task that submits nothing.
    #[must_use]
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            name: String::new(),
            class: Class::None,
            level: iosched::LEVEL_DEFAULT,
            start_ns: 0,
            op: TaskOp::Read,
            sync: None,
            noidle: false,
            prio: false,
            fs_excl: false,
            iodepth: 1,
            batch: 1,
            relay: None,
            relay_n: 1,
            wakes: None,
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

    /// Returns whether the task submits I/Os by itself.
    #[must_use]
    pub fn has_program(&self) -> bool {
        self.pattern.is_some() || !self.phases.is_empty()
    }

    /// Returns the task's ioprio at the start.
    ///
    /// # Panics
    /// The level is above 7. Levels from files are checked.
    #[must_use]
    pub fn ioprio(&self) -> IoPriority {
        IoPriority::new(self.class.into(), self.level)
    }

    /// Returns the flags of the task's I/Os.
    #[must_use]
    pub fn flags(&self) -> Flags {
        let mut flags = Flags::empty();
        let sync = self.is_flagged_sync();
        if sync {
            flags |= Flags::SYNC;
        }
        if self.op == TaskOp::Write && sync && !self.noidle {
            flags |= Flags::IDLE;
        }
        if self.prio {
            flags |= Flags::PRIO;
        }
        if self.fs_excl {
            flags |= Flags::FS_EXCL;
        }
        flags
    }

    /// Returns whether the task's I/Os have the flag `SYNC` (a process waits for the I/O).
    #[must_use]
    pub fn is_flagged_sync(&self) -> bool {
        self.sync.unwrap_or(self.op != TaskOp::Read)
    }

    /// Returns the total number of the task's I/Os.
    #[must_use]
    pub fn total(&self) -> Count {
        if self.total.is_some() || self.phases.is_empty() {
            return self.total;
        }
        Some(self.phases.iter().fold(0, |sum: u64, phase| sum.saturating_add(phase.count)))
    }
}

impl Arrival {
    /// Returns the flags of the arrival. A sync write has the flag `IDLE` (more writes follow), as
    /// O_DIRECT writes have, unless its hints exclude this.
    #[must_use]
    pub fn flags(&self) -> Flags {
        let Self(_, _, op, sync, _, _, hints) = *self;
        let mut flags = Flags::empty();
        flags.set(Flags::SYNC, sync);
        flags.set(Flags::IDLE, op == TaskOp::Write && sync && !hints.noidle);
        flags.set(Flags::PRIO, hints.prio);
        flags
    }
}
