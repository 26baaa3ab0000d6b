//! Runs tasks in closed loops and scheduled arrivals, with one thread per task.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use iosched::{IoPriority, SECTOR_BYTES};
use iosched_workload::outcome::{Note, TaskResult};
use iosched_workload::{After, Arrival, Pattern, Task, TaskLoop, TaskNumbers, TaskOp, TaskSet};

use super::cgroup::Cgroups;
use super::ground::{Access, Ground, Need};
use super::message::{self, Message};
use super::port::{Io, IoOp, Port};
use super::recorder::Recorder;
use super::worker::{self, Next, Part, Played, Shared};
use super::{ExecuteError, Gathered, Run};
use crate::target::Target;

/// Tag of I/Os of a task's own program.
const PROGRAM: u64 = 0;
/// Tag of scheduled arrivals.
const ARRIVAL: u64 = 1;
/// Depth of the ring for a task that other tasks call or that has arrivals.
const DEPTH: usize = 64;

/// A task set and the target of its I/Os.
#[derive(Debug)]
pub(super) struct PreparedTasks<'t> {
    set: &'t TaskSet,
    pub(super) ground: Ground<'t>,
}

impl<'t> PreparedTasks<'t> {
    pub(super) fn new(set: &'t TaskSet, target: &'t Target) -> Result<Self, ExecuteError> {
        let reach_bytes = reach_sectors(set).saturating_mul(SECTOR_BYTES);
        Ok(Self { set, ground: Ground::new(target, Need::Disk { reach_bytes })? })
    }

    pub(super) fn run(&self, run: &Run<'_>) -> Result<Gathered, ExecuteError> {
        let shared = run.shared(self.set.tasks.len())?;
        let loops = TaskLoop::all(self.set);
        let mut called = vec![false; loops.len()];
        loops.iter().filter_map(TaskLoop::calls).for_each(|task| called[task as usize] = true);
        let numbers = TaskNumbers::of(self.set);
        let mut cgroups = Cgroups::of_tasks(self.set, run.cgroups)?;
        cgroups.add_buffered(has_async_writes(self.set));
        let mut makers = Vec::with_capacity(loops.len());
        for (number, task_loop) in loops.into_iter().enumerate() {
            let (shared, numbers, cgroups, called) = (&shared, &numbers, &cgroups, called[number]);
            makers.push(move || self.part(run, (shared, numbers, cgroups), number, (task_loop, called)));
        }
        let played = worker::play(&shared, cgroups.are_of_processes(), makers, || run.begin(false))?;
        let mut gathered = Gathered::default();
        for Played { recorder, counts, .. } in played {
            gathered.add(recorder, &counts);
        }
        gathered.result.notes.append(&mut cgroups.notes);
        self.add_notes(&mut gathered.result.notes);
        Ok(run.ended(gathered, &shared))
    }

    /// Creates the part of a task. This function runs on the task's thread.
    fn part<'a>(
        &'a self,
        run: &Run<'_>,
        (shared, numbers, cgroups): (&'a Shared<'a>, &TaskNumbers, &'a Cgroups),
        number: usize,
        (task_loop, is_called): (TaskLoop, bool),
    ) -> Result<(TaskPart<'a>, Port<'a>), ExecuteError> {
        let task = &self.set.tasks[number];
        if let Some(cgroup) = &task.cgroup {
            worker::join_cgroup(cgroups, cgroup)?;
        }
        worker::take_ioprio(task.ioprio())?;
        let mut part =
            TaskPart::new(self.set, (shared, cgroups), (number, task_loop), is_called, self.ground.pieces[0].bytes);
        let has_arrivals = part.schedule(numbers);
        let buffered = has_async_writes(self.set);
        let access = Access { write: writes(self.set), direct: true, buffered, ..Access::default() };
        let files = vec![self.ground.open(0, access)?];
        let bell = shared.inboxes[number].bell();
        let ring = task.iodepth > 1 || is_called || has_arrivals;
        let depth = if is_called || has_arrivals { DEPTH.max(task.iodepth as usize) } else { task.iodepth as usize };
        let engine = run.engine(ring, depth.max(1), longest_io(self.set), bell)?;
        let result = TaskResult {
            pid: task.pid,
            name: task.name.clone(),
            ioprio: task.ioprio().to_string(),
            cgroup: task.cgroup.clone().filter(|cgroup| cgroup != "root").unwrap_or_default(),
            ..TaskResult::default()
        };
        let recorder = Recorder::new(vec![result], shared.counted_from_ns, &shared.watch);
        Ok((part, Port::new(files, engine, bell, recorder, run.first_write(number))))
    }

    fn add_notes(&self, notes: &mut Vec<Note>) {
        let set = self.set;
        let hinted = |task: &Task| task.noidle || task.prio || task.fs_excl;
        let arrival_hinted = |arrival: &Arrival| arrival.6.noidle || arrival.6.prio;
        if set.tasks.iter().any(hinted) || set.arrivals.iter().any(arrival_hinted) {
            let what = "hints (noidle, prio, fs_excl)".to_owned();
            notes.push(Note::NotCarriedOut { what, why: "no system call sets these hints".to_owned() });
        }
        if !set.cgroup_removals.is_empty() {
            let what = "removal of cgroups during the run".to_owned();
            notes.push(Note::NotCarriedOut {
                what,
                why: "the kernel does not remove a cgroup with processes in it".to_owned(),
            });
        }
        if set.weight_changes.iter().any(|change| change.leaf)
            || set.cgroups.iter().any(|cgroup| cgroup.leaf_weight != 0)
        {
            let what = "leaf weights".to_owned();
            notes.push(Note::NotCarriedOut { what, why: "only CFQ used them".to_owned() });
        }
        let tasks = set.tasks.iter().filter(|task| is_async_write(task.op, task.is_flagged_sync())).count() as u64;
        if tasks > 0 {
            notes.push(Note::ThroughPageCache { tasks });
        }
    }
}

/// Returns whether a set changes data.
pub(super) fn writes(set: &TaskSet) -> bool {
    let tasks = set.tasks.iter().filter(|task| task.has_program()).map(|task| task.op);
    tasks.chain(set.arrivals.iter().map(|arrival| arrival.2)).any(|op| op != TaskOp::Read)
}

fn is_async_write(op: TaskOp, sync: bool) -> bool {
    op == TaskOp::Write && !sync
}

fn has_async_writes(set: &TaskSet) -> bool {
    set.tasks.iter().any(|task| is_async_write(task.op, task.is_flagged_sync()))
        || set.arrivals.iter().any(|arrival| is_async_write(arrival.2, arrival.3))
}

/// Returns the longest I/O of a set, bytes.
pub(super) fn longest_io(set: &TaskSet) -> u64 {
    let of_task = |task: &Task| {
        let usual = task.nr_sectors.unwrap_or(8);
        task.phases.iter().filter_map(|phase| phase.nr_sectors).fold(usual, u32::max)
    };
    let tasks = set.tasks.iter().map(of_task).max().unwrap_or(0);
    let arrivals = set.arrivals.iter().map(|arrival| arrival.5).max().unwrap_or(0);
    u64::from(tasks.max(arrivals)) * SECTOR_BYTES
}

/// Returns the highest sector that a set uses, as far as it is known.
fn reach_sectors(set: &TaskSet) -> u64 {
    let arrivals = set.arrivals.iter().map(|arrival| arrival.4.saturating_add(arrival.5.into()));
    let tasks = set.tasks.iter().filter(|task| task.has_program()).map(task_reach_sectors);
    arrivals.chain(tasks).max().unwrap_or(0)
}

fn task_reach_sectors(task: &Task) -> u64 {
    let reach = |count: Option<u64>, phase: &iosched_workload::Phase| {
        let length = u64::from(phase.nr_sectors.or(task.nr_sectors).unwrap_or(8));
        let start = phase.start_sector.or(task.start_sector).unwrap_or(0);
        let count = count.unwrap_or(u64::MAX);
        match phase.pattern.or(task.pattern).unwrap_or(Pattern::Seq) {
            Pattern::Seq => start.saturating_add(length.saturating_mul(count)),
            Pattern::Back => start.saturating_add(length),
            Pattern::Stride => {
                let stride = phase.stride.or(task.stride).unwrap_or(0).max(0) as u64;
                start.saturating_add(stride.saturating_mul(count)).saturating_add(length)
            }
            Pattern::Random => phase.range.or(task.range).map_or(u64::MAX, |[_, end]| end),
        }
    };
    if task.phases.is_empty() {
        return reach(task.total, &iosched_workload::Phase::default());
    }
    task.phases.iter().map(|phase| reach(Some(phase.count), phase)).max().unwrap_or(0)
}

/// Returns the new address of an I/O that ends after the end of the device: the address modulo the
/// device's size, as in a simulation. Returns `None` if the I/O needs no new address.
pub(super) fn wrapped(sector: u64, nr_sectors: u32, capacity_sectors: u64) -> Option<(u64, u32)> {
    if sector.checked_add(nr_sectors.into()).is_some_and(|end| end <= capacity_sectors) {
        return None;
    }
    let length = u64::from(nr_sectors).min(capacity_sectors);
    Some(((sector % capacity_sectors).min(capacity_sectors - length), length as u32))
}

/// Event of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Change of a cgroup's weight, for all tasks in the cgroup. The value is the index of the
    /// change.
    Weight(usize),
    /// Move of the task to another cgroup. The value is the index of the move.
    Move(usize),
    /// Change of the task's ioprio. The value is the index of the change.
    Priority(usize),
    /// Submission of this number of I/Os by the task's program.
    Ios(u32),
    Exit,
    /// Scheduled I/O. The value is the index of the arrival.
    Arrival(usize),
}

impl What {
    const fn brings_ios(self) -> bool {
        matches!(self, Self::Ios(_) | Self::Arrival(_))
    }
}

/// A scheduled event. Events are ordered by time. Events with equal times are in the order in which
/// they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at_ns: u64,
    order: u64,
    what: What,
    /// Whether the event was scheduled for a later time. If `false`, the event was due at once.
    timed: bool,
}

/// A task at work.
struct TaskPart<'a> {
    set: &'a TaskSet,
    shared: &'a Shared<'a>,
    cgroups: &'a Cgroups,
    task: &'a Task,
    number: usize,
    task_loop: TaskLoop,
    /// Whether other tasks call this task.
    is_called: bool,
    capacity_sectors: u64,
    due: BinaryHeap<Reverse<Due>>,
    scheduled: u64,
    /// Number of scheduled events that cause I/Os.
    coming: usize,
    under_way: usize,
    /// Whether the task counts as busy.
    is_busy: bool,
    stopped: bool,
}

impl<'a> TaskPart<'a> {
    fn new(
        set: &'a TaskSet,
        (shared, cgroups): (&'a Shared<'a>, &'a Cgroups),
        (number, task_loop): (usize, TaskLoop),
        is_called: bool,
        capacity_bytes: u64,
    ) -> Self {
        Self {
            set,
            shared,
            cgroups,
            task: &set.tasks[number],
            number,
            task_loop,
            is_called,
            capacity_sectors: capacity_bytes / SECTOR_BYTES,
            due: BinaryHeap::new(),
            scheduled: 0,
            coming: 0,
            under_way: 0,
            is_busy: true,
            stopped: false,
        }
    }

    /// Schedules the events that are known before the run. Returns whether the task has arrivals.
    fn schedule(&mut self, numbers: &TaskNumbers) -> bool {
        let (set, pid) = (self.set, self.task.pid);
        // Weight changes belong to no task, so the first task makes them.
        let weights = if self.number == 0 { &set.weight_changes[..] } else { &[] };
        for (number, change) in weights.iter().enumerate().filter(|(_, change)| !change.leaf) {
            self.at(change.t_ns, What::Weight(number), 0);
        }
        for (number, change) in set.cgroup_moves.iter().enumerate().filter(|(_, change)| change.pid == pid) {
            self.at(change.t_ns, What::Move(number), 0);
        }
        for (number, change) in set.prio_changes.iter().enumerate().filter(|(_, change)| change.pid == pid) {
            self.at(change.t_ns, What::Priority(number), 0);
        }
        if self.task_loop.first() > 0 {
            self.at(self.task.start_ns, What::Ios(self.task_loop.first()), 0);
        }
        if let Some(exit_ns) = self.task.exit_ns {
            self.at(exit_ns, What::Exit, 0);
        }
        let is_own = |arrival: &Arrival| numbers.of_pid(arrival.1) == u32::try_from(self.number).ok();
        let arrivals: Vec<usize> = (0..set.arrivals.len()).filter(|&number| is_own(&set.arrivals[number])).collect();
        for &number in &arrivals {
            self.at(set.arrivals[number].0, What::Arrival(number), 0);
        }
        !arrivals.is_empty()
    }

    fn at(&mut self, at_ns: u64, what: What, now_ns: u64) {
        if self.stopped || self.task_loop.has_exited() {
            return;
        }
        self.scheduled += 1;
        self.coming += usize::from(what.brings_ios());
        self.due.push(Reverse(Due { at_ns, order: self.scheduled, what, timed: at_ns > now_ns }));
    }

    fn act(&mut self, due: Due, port: &mut Port<'_>, now_ns: u64) {
        self.coming -= usize::from(due.what.brings_ios());
        match due.what {
            What::Priority(number) => {
                let change = self.set.prio_changes[number];
                if let Err(error) = worker::take_ioprio(IoPriority::new(change.class.into(), change.level)) {
                    self.shared.fail(error);
                }
            }
            What::Weight(number) => {
                let change = &self.set.weight_changes[number];
                self.changed(&change.cgroup, self.cgroups.set_weight(&change.cgroup, change.weight));
            }
            What::Move(number) => {
                let name = &self.set.cgroup_moves[number].cgroup;
                let is_known = self.set.cgroups.iter().any(|cgroup| cgroup.name == *name);
                self.changed(name, if is_known { self.cgroups.join(name) } else { self.cgroups.leave() });
            }
            What::Exit => self.exit(),
            What::Ios(ios) => {
                if self.task_loop.arrive(ios) {
                    for _ in 0..ios {
                        let Some(place) = self.task_loop.next_place() else { break };
                        self.submit(port, (self.task.op, self.task.is_flagged_sync()), place, (PROGRAM, now_ns));
                    }
                }
            }
            What::Arrival(number) => {
                let Arrival(_, _, op, sync, sector, nr_sectors, _) = self.set.arrivals[number];
                self.submit(port, (op, sync), (sector, nr_sectors), (ARRIVAL, now_ns));
            }
        }
        if due.timed && due.what.brings_ios() {
            port.recorder.was_due(due.at_ns, now_ns);
        }
    }

    fn submit(
        &mut self,
        port: &mut Port<'_>,
        (op, sync): (TaskOp, bool),
        (sector, nr_sectors): (u64, u32),
        (tag, now_ns): (u64, u64),
    ) {
        let (sector, nr_sectors) = match wrapped(sector, nr_sectors, self.capacity_sectors) {
            None => (sector, nr_sectors),
            Some(place) => {
                port.counts.past_end += 1;
                place
            }
        };
        let op_of = match op {
            TaskOp::Read => IoOp::Read,
            TaskOp::Write => IoOp::Write { stable: false },
            TaskOp::Discard => IoOp::Discard,
            TaskOp::Other => IoOp::Zero,
        };
        let io = Io {
            op: op_of,
            file: 0,
            offset: sector * SECTOR_BYTES,
            bytes: u64::from(nr_sectors) * SECTOR_BYTES,
            buffered: is_async_write(op, sync),
            ioprio: 0,
            task: 0,
            tag,
        };
        self.under_way += 1;
        port.submit(&io, now_ns);
    }

    /// Fails the run if a change of a cgroup failed.
    fn changed(&self, name: &str, done: std::io::Result<()>) {
        if let Err(error) = done {
            self.shared.fail(ExecuteError::Cgroup { cgroup: name.to_owned(), error });
        }
    }

    /// Ends the task's submissions.
    fn exit(&mut self) {
        self.task_loop.exit();
        self.due.clear();
        self.coming = 0;
    }
}

impl Part for TaskPart<'_> {
    fn receive(&mut self, message: Message, now_ns: u64) {
        let Message::Called { at_ns, ios } = message else { return };
        let ios = self.task_loop.called(at_ns, ios);
        if ios > 0 {
            self.at(at_ns, What::Ios(ios), now_ns);
        }
        // The calling task has already counted this task as busy.
        if self.is_busy {
            self.shared.becomes_idle();
        }
        self.is_busy = true;
    }

    fn go(&mut self, port: &mut Port<'_>, now_ns: u64) -> Next {
        while let Some(&Reverse(due)) = self.due.peek()
            && due.at_ns <= now_ns
        {
            self.due.pop();
            self.act(due, port, now_ns);
        }
        let has_work = self.coming > 0 || self.under_way > 0;
        if !has_work {
            if self.is_busy {
                self.is_busy = false;
                self.shared.becomes_idle();
            }
            if self.stopped || !self.is_called || self.shared.is_quiet() {
                return Next::Done;
            }
        }
        Next::Wait { until_ns: self.due.peek().map_or(u64::MAX, |Reverse(due)| due.at_ns) }
    }

    fn completed(&mut self, tag: u64, now_ns: u64) {
        self.under_way -= 1;
        if tag != PROGRAM {
            return;
        }
        match self.task_loop.completed(now_ns) {
            After::Nothing => {}
            After::Again { at_ns, ios } => self.at(at_ns, What::Ios(ios), now_ns),
            After::Call { task, at_ns, ios } => {
                self.shared.becomes_busy();
                message::post(&self.shared.inboxes[task as usize], Message::Called { at_ns, ios });
            }
            After::Exit => self.exit(),
        }
    }

    fn stop(&mut self, _now_ns: u64) -> bool {
        let has_work = self.coming > 0 || self.under_way > 0;
        self.stopped = true;
        self.due.clear();
        self.coming = 0;
        has_work
    }
}
