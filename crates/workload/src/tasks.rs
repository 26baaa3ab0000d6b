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
    /// Tasks that change their cgroup while running.
    #[serde(default)]
    pub cgroup_moves: Vec<CgroupMove>,
    /// Cgroups that are removed while running.
    #[serde(default)]
    pub cgroup_removals: Vec<CgroupRemoval>,
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
    /// Read (if missing), write, discard, or other: zeroes are written without being sent.
    #[serde(default)]
    pub op: TaskOp,
    /// Whether it waits for its writes; true if missing. Reads are always sync; `true` gives them the flag that Linux
    /// gives only to reads that their submitter waits for itself, which ADIOS looks at.
    #[serde(default)]
    pub sync: Option<bool>,
    /// Whether its sync writes come without the hint that more follow (fsync style).
    #[serde(default)]
    pub noidle: bool,
    /// Whether its I/Os carry the metadata hint; `meta` means the same.
    #[serde(default, alias = "meta")]
    pub prio: bool,
    /// Whether it holds an exclusive resource of its file system all the time, so that others wait while it does.
    #[serde(default)]
    pub fs_excl: bool,
    /// I/Os it keeps under way; 1 if missing. 0: it begins nothing by itself, another task's `relay` or `wakes` does.
    #[serde(default = "one")]
    pub iodepth: u32,
    /// Completions it waits for before it submits as many I/Os at once; 1 if missing.
    #[serde(default = "one")]
    pub batch: u32,
    /// Pid of the task that goes on in its stead: when an I/O of this task is done and no other is under way, it
    /// thinks, and then the other task submits [`relay_n`](Self::relay_n) I/Os if it has so many left. Two tasks that
    /// relay to each other take turns, as a process that calls fsync and the journal's thread do. Copies relay to the
    /// pid as much further.
    #[serde(default)]
    pub relay: Option<u32>,
    /// I/Os that the task it relays to submits at once, at least 1; 1 if missing.
    #[serde(default = "one")]
    pub relay_n: u32,
    /// Pid of the task that each completion wakes: when an I/O of this task is done, it thinks, and then the other task
    /// submits one I/O if it has any left; this task submits nothing but what others wake it for. Stages of a pipeline
    /// do that. Copies wake the pid as much further.
    #[serde(default)]
    pub wakes: Option<u32>,
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
    /// Says that sectors' contents are no longer needed.
    Discard,
    /// Writes zeroes without sending them.
    Other,
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

/// An I/O at a given time: `[t_ns, pid, op, sync, sector, nr_sectors]`, and hints if it has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct Arrival(
    /// When, ns.
    pub u64,
    /// Whose. A pid that is no task's has an ioprio that was never set.
    pub u32,
    /// What.
    pub TaskOp,
    /// Whether somebody waits for it. Reads are always sync; `true` gives them the flag: see [`Task::sync`].
    #[serde(deserialize_with = "flag")]
    pub bool,
    /// First sector.
    pub u64,
    /// Length in sectors.
    pub u32,
    /// Its hints.
    #[serde(default)]
    pub Hints,
);

/// Hints of an arrival: a sum of 1 (a sync write that no more are to follow, fsync style), 2 (metadata) and 4 (inserted
/// at the head). Recordings have `true` for 1, too; those of ADIOS have 1 for 4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "WrittenHints")]
pub struct Hints {
    /// Its sync write comes without the hint that more follow.
    pub noidle: bool,
    /// It carries the metadata hint.
    pub prio: bool,
    /// Its request is inserted at the head: see [`iosched::Issued::at_head`].
    pub at_head: bool,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "true or false, or a sum of hints from 0 to 7")]
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
            WrittenHints::Sum(sum) => Err(format!("hints is {sum}; it must be from 0 to 7")),
            WrittenHints::Flag(noidle) => Ok(Self { noidle, ..Self::default() }),
        }
    }
}

/// `true` or `false`; recordings also have 1 and 0.
fn flag<'de, D: serde::Deserializer<'de>>(written: D) -> Result<bool, D::Error> {
    match WrittenHints::deserialize(written)? {
        WrittenHints::Flag(flag) => Ok(flag),
        WrittenHints::Sum(sum @ 0..=1) => Ok(sum == 1),
        WrittenHints::Sum(sum) => Err(serde::de::Error::custom(format!("{sum} is neither true nor false"))),
    }
}

/// A cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    /// Its name.
    pub name: String,
    /// Its parent's name, listed before it; `root` if missing.
    #[serde(default = "root")]
    pub parent: String,
    /// Its share among its siblings, in the range of the elevator (cfq 10 to 1000, bfq 1 to 1000); 0 or missing: its
    /// default (500, 100).
    #[serde(default)]
    pub weight: u32,
    /// The share of its own tasks against its children, 10 to 1000; 0 or missing: the elevator's default. bfq knows
    /// none.
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

/// A task moves to another cgroup; what it submitted before stays where it is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupMove {
    /// When, ns.
    pub t_ns: u64,
    /// Whose.
    pub pid: u32,
    /// Where to; `root` is the root.
    pub cgroup: String,
}

/// A cgroup is removed: its tasks count for the nearest of its ancestors that is left.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CgroupRemoval {
    /// When, ns.
    pub t_ns: u64,
    /// Which.
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
    /// What one task does, at the times it does it: for a run of this task alone. `None` if there is no task of that
    /// number. Cgroups stay as they are. A task that others begin or that goes on through others does so by itself.
    #[must_use]
    pub fn only(&self, task: usize) -> Option<Self> {
        let mut kept = self.tasks.get(task)?.clone();
        (kept.relay, kept.wakes) = (None, None);
        kept.iodepth = kept.iodepth.max(1);
        let pid = kept.pid;
        Some(Self {
            tasks: vec![kept],
            arrivals: self.arrivals.iter().filter(|arrival| arrival.1 == pid).copied().collect(),
            prio_changes: self.prio_changes.iter().filter(|change| change.pid == pid).copied().collect(),
            cgroup_moves: self.cgroup_moves.iter().filter(|change| change.pid == pid).cloned().collect(),
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

    /// Whether it submits by itself.
    #[must_use]
    pub fn has_program(&self) -> bool {
        self.pattern.is_some() || !self.phases.is_empty()
    }

    /// Its ioprio at the start.
    ///
    /// # Panics
    /// If its level is above 7; what is read from a file is checked.
    #[must_use]
    pub fn ioprio(&self) -> IoPriority {
        IoPriority::new(self.class.into(), self.level)
    }

    /// The flags of its I/Os.
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

    /// Whether its I/Os carry the flag that somebody waits for them.
    #[must_use]
    pub fn is_flagged_sync(&self) -> bool {
        self.sync.unwrap_or(self.op != TaskOp::Read)
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
    /// Its flags: a sync write carries the hint that more follow, as O_DIRECT writes do, unless its hints say
    /// otherwise.
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
