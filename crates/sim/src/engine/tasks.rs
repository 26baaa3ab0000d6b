//! Tasks in closed loops, and scheduled arrivals and changes.

use std::collections::VecDeque;

use iosched::{CgroupId, Driver, Flags, IoPriority, Op, Part};
use iosched_disk::Device;
use iosched_workload::{After, CgroupMove, CgroupRemoval, Task, TaskLoop, TaskNumbers, TaskSet};

use super::core::{Core, Issued, NewIo, Treatment};
use super::drive::Source;
use super::heap::Heap;
use super::several::Home;
use crate::observer::{Change, Observer};
use crate::plan::SimError;

/// Tag of I/Os of a task's own program.
const PROGRAM: u32 = 0;
/// Tag of scheduled arrivals.
const ARRIVAL: u32 = 1;
/// Kind of an event that is scheduled during the run: the task exits. Other events are arrivals.
const EXIT: u32 = 0;
/// Task number of an event that is scheduled during the run and reruns the queue.
const NOBODY: u32 = u32::MAX;

/// A cgroup and its present weights.
pub(super) struct Group {
    pub(super) id: CgroupId,
    weight: Option<u32>,
    leaf_weight: Option<u32>,
}

/// Makes the cgroups of a task set.
pub(super) fn create_cgroups(driver: &mut Driver, set: &TaskSet, home: &Home) -> Result<Vec<Group>, SimError> {
    let given = |weight| (weight != 0).then_some(weight);
    let mut groups: Vec<Group> = Vec::new();
    for cgroup in &set.cgroups {
        let parent = set.cgroups.iter().position(|c| c.name == cgroup.parent);
        let parent = parent.and_then(|index| groups.get(index)).map_or(home.id, |group| group.id);
        let (weight, leaf_weight) = (given(cgroup.weight), given(cgroup.leaf_weight));
        let name = home.name(&cgroup.name);
        let id = driver.create_cgroup(iosched::Cgroup { name, parent: Some(parent), weight, leaf_weight })?;
        groups.push(Group { id, weight, leaf_weight });
    }
    Ok(groups)
}

/// Events that are scheduled before the run. Events at the same time come in the order of the
/// variants below. The start and exit of a task are handled together.
#[derive(Clone, Copy)]
enum Fixed {
    Weight(u32),
    Removal(u32),
    Tunable(u32),
    Move(u32),
    Priority(u32),
    Start(u32),
    Exit(u32),
    Arrival(u32),
}

/// I/Os that wait for an earlier I/O of the task, for which the queue had no room.
#[derive(Clone, Copy)]
struct Behind {
    what: Ios,
    /// Values of their first bio from the time when they began to wait.
    issued: Option<Issued>,
}

/// I/Os of one event.
#[derive(Clone, Copy)]
enum Ios {
    Program { asked_ns: u64, ios: u32 },
    Arrival { index: u32 },
}

impl Ios {
    fn count(self) -> u64 {
        match self {
            Self::Program { ios, .. } => ios.into(),
            Self::Arrival { .. } => 1,
        }
    }
}

struct State {
    task_loop: TaskLoop,
    op: Op,
    flags: Flags,
    behind: VecDeque<Behind>,
    /// End of the task's rest, ns. Its program continues then.
    rests_until_ns: u64,
}

/// The tasks of a set in a run.
pub(super) struct Tasks<'a> {
    set: &'a TaskSet,
    tunables: &'a [TunableWrite],
    groups: Vec<Group>,
    /// The cgroup of tasks that name no cgroup.
    home: CgroupId,
    plug_from: u32,
    states: Vec<State>,
    /// Events in the order of their times. Events at the same time come in the order of the
    /// variants of [`Fixed`], then in the order of the file.
    fixed: Vec<(u64, Fixed)>,
    next_fixed: usize,
    numbers: TaskNumbers,
    heap: Heap,
}

/// A write or read of a tunable or attribute during the run.
pub(crate) struct TunableWrite {
    pub(crate) t_ns: u64,
    pub(crate) name: String,
    /// New value, or `None` for a read.
    pub(crate) value: Option<String>,
}

impl<'a> Tasks<'a> {
    pub(super) fn new(
        set: &'a TaskSet,
        tunables: &'a [TunableWrite],
        groups: Vec<Group>,
        home: CgroupId,
        plug_from: u32,
    ) -> Self {
        let mut fixed = Vec::new();
        fixed.extend(set.weight_changes.iter().zip(0..).map(|(change, i)| (change.t_ns, Fixed::Weight(i))));
        fixed.extend(set.cgroup_removals.iter().zip(0..).map(|(removal, i)| (removal.t_ns, Fixed::Removal(i))));
        fixed.extend(tunables.iter().zip(0..).map(|(write, i)| (write.t_ns, Fixed::Tunable(i))));
        fixed.extend(set.cgroup_moves.iter().zip(0..).map(|(change, i)| (change.t_ns, Fixed::Move(i))));
        fixed.extend(set.prio_changes.iter().zip(0..).map(|(change, i)| (change.t_ns, Fixed::Priority(i))));
        for (task, i) in set.tasks.iter().zip(0..) {
            if task.has_program() && task.iodepth > 0 {
                fixed.push((task.start_ns, Fixed::Start(i)));
            }
            fixed.extend(task.exit_ns.map(|exit_ns| (exit_ns, Fixed::Exit(i))));
        }
        fixed.extend(set.arrivals.iter().zip(0..).map(|(arrival, i)| (arrival.0, Fixed::Arrival(i))));
        fixed.sort_by_key(|&(at_ns, _)| at_ns);
        let state = |(task, task_loop): (&Task, TaskLoop)| {
            let (op, flags) = (task.op.into(), task.flags());
            State { task_loop, op, flags, behind: VecDeque::new(), rests_until_ns: 0 }
        };
        let states = set.tasks.iter().zip(TaskLoop::all(set)).map(state).collect();
        let numbers = TaskNumbers::of(set);
        Self { set, tunables, groups, home, plug_from, states, fixed, next_fixed: 0, numbers, heap: Heap::default() }
    }

    fn task_of(&self, pid: u32) -> Option<u32> {
        self.numbers.of_pid(pid)
    }

    fn fixed<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, what: Fixed) {
        match what {
            Fixed::Weight(i) => self.change_weight(core, i as usize),
            Fixed::Removal(i) => self.remove_cgroup(core, &self.set.cgroup_removals[i as usize]),
            Fixed::Move(i) => self.move_task(core, &self.set.cgroup_moves[i as usize]),
            Fixed::Tunable(i) => self.write_tunable(core, i as usize),
            Fixed::Priority(i) => {
                let change = self.set.prio_changes[i as usize];
                if let Some(task) = self.task_of(change.pid) {
                    core.set_ioprio(task, IoPriority::new(change.class.into(), change.level));
                }
            }
            Fixed::Start(task) => {
                let ios = self.states[task as usize].task_loop.first();
                self.arrive(core, task, ios);
            }
            Fixed::Exit(task) => self.exit(core, task),
            Fixed::Arrival(i) => {
                if let Some(task) = self.task_of(self.set.arrivals[i as usize].1) {
                    self.submit(core, task, Ios::Arrival { index: i });
                }
            }
        }
    }

    fn write_tunable<D: Device, O: Observer>(&self, core: &mut Core<D, O>, change: usize) {
        let now_ns = core.now_ns;
        let TunableWrite { name, value, .. } = &self.tunables[change];
        let answer = match value {
            Some(value) => core.write_tunable(name, value).map(|()| String::new()),
            None => core.driver.queue().tunable_text(name),
        };
        core.observer().tunable(now_ns, change, &answer);
        core.report_decisions();
    }

    /// Returns the index and the id of a cgroup. Tasks without a cgroup have the id of the home
    /// cgroup, and no index.
    fn cgroup(&self, name: &str) -> (Option<usize>, CgroupId) {
        let number = self.set.cgroups.iter().position(|c| c.name == name);
        (number, number.map_or(self.home, |number| self.groups[number].id))
    }

    fn move_task<D: Device, O: Observer>(&self, core: &mut Core<D, O>, change: &CgroupMove) {
        let Some(task) = self.task_of(change.pid) else {
            return;
        };
        let (cgroup, id) = self.cgroup(&change.cgroup);
        let now_ns = core.now_ns;
        core.observer().change(now_ns, &Change::CgroupMove { task: task as usize, cgroup });
        let (now, context) = (core.now(), core.context(task));
        core.driver.move_context(now, context, id);
        core.report_decisions();
    }

    fn remove_cgroup<D: Device, O: Observer>(&self, core: &mut Core<D, O>, removal: &CgroupRemoval) {
        let (Some(cgroup), id) = self.cgroup(&removal.cgroup) else {
            return;
        };
        let now_ns = core.now_ns;
        core.observer().change(now_ns, &Change::CgroupRemoval { cgroup });
        let now = core.now();
        core.driver.remove_cgroup(now, id);
        core.report_decisions();
    }

    fn change_weight<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, index: usize) {
        let change = &self.set.weight_changes[index];
        let Some(cgroup) = self.set.cgroups.iter().position(|c| c.name == change.cgroup) else {
            return;
        };
        let group = &mut self.groups[cgroup];
        let before = (group.weight, group.leaf_weight);
        if change.leaf {
            group.leaf_weight = Some(change.weight);
        } else {
            group.weight = Some(change.weight);
        }
        let Group { id, weight, leaf_weight } = *group;
        if core.driver.set_weights(id, weight, leaf_weight).is_err() {
            // The change is refused, like an invalid write to the cgroup's file.
            (group.weight, group.leaf_weight) = before;
            return;
        }
        let now_ns = core.now_ns;
        core.observer().change(now_ns, &Change::Weight { cgroup, weight: change.weight, leaf: change.leaf });
    }

    /// Handles an arrival event of a task's program.
    fn arrive<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32, ios: u32) {
        let rests_until_ns = self.states[task as usize].rests_until_ns;
        if rests_until_ns > core.now_ns {
            self.heap.push(rests_until_ns, task, ios);
            return;
        }
        if self.states[task as usize].task_loop.arrive(ios) {
            self.submit(core, task, Ios::Program { asked_ns: core.now_ns, ios });
        }
    }

    /// Submits I/Os now, or after I/Os that already wait.
    #[inline]
    fn submit<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32, what: Ios) {
        if self.states[task as usize].task_loop.has_exited() {
            return;
        }
        if core.is_waiting(task) {
            self.queue_up(core, task, what);
            return;
        }
        let plugged = matches!(what, Ios::Program { ios, .. } if ios >= self.plug_from);
        if let Some(left) = self.submit_now(core, task, Behind { what, issued: None }, plugged) {
            self.states[task as usize].behind.push_front(left);
        }
        if plugged {
            core.unplug(task);
        }
        self.rest(core, task);
    }

    /// Makes a task rest if a controller requires a rest and all I/Os of the task are submitted.
    #[inline]
    fn rest<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        if !core.is_waiting(task) {
            let rest_ns = core.rest_ns(task);
            if rest_ns > 0 {
                self.states[task as usize].rests_until_ns = core.now_ns + rest_ns;
            }
        }
    }

    #[cold]
    fn queue_up<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32, what: Ios) {
        core.count_late(what.count());
        let issued = Some(core.issue(task, what.count()));
        self.states[task as usize].behind.push_back(Behind { what, issued });
    }

    /// Submits I/Os until the queue is full. Returns the I/Os that could not be submitted.
    #[inline]
    fn submit_now<D: Device, O: Observer>(
        &mut self,
        core: &mut Core<D, O>,
        task: u32,
        next: Behind,
        plugged: bool,
    ) -> Option<Behind> {
        let Behind { what, mut issued } = next;
        match what {
            Ios::Arrival { index } => {
                if !core.is_exhausted() {
                    let arrival = self.set.arrivals[index as usize];
                    let (op, flags) = (arrival.2.into(), arrival.flags());
                    let (asked_ns, sector, nr_sectors) = (arrival.0, arrival.4, arrival.5);
                    core.submit_with(
                        task,
                        &NewIo { op, flags, sector, nr_sectors, tag: ARRIVAL, asked_ns, issued, part: Part::Whole },
                        Treatment { at_head: arrival.6.at_head, ..Treatment::default() },
                    );
                }
                None
            }
            Ios::Program { asked_ns, mut ios } => {
                let state = &mut self.states[task as usize];
                let (op, flags) = (state.op, state.flags);
                while ios > 0 && !core.is_exhausted() {
                    ios -= 1;
                    let (sector, nr_sectors) = state.task_loop.next_place()?;
                    if plugged {
                        core.plug(task);
                    }
                    let taken = core.submit(
                        task,
                        &NewIo { op, flags, sector, nr_sectors, tag: PROGRAM, asked_ns, issued, part: Part::Whole },
                    );
                    issued = issued.map(Issued::next);
                    if !taken {
                        let what = Ios::Program { asked_ns, ios };
                        if issued.is_none() && ios > 0 {
                            core.count_late(ios.into());
                            issued = Some(core.issue(task, ios.into()));
                        }
                        return (ios > 0).then_some(Behind { what, issued });
                    }
                }
                None
            }
        }
    }

    /// Continues a task that found the queue full: submits the I/Os that wait.
    fn go_on<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32, plugged: bool) {
        if !core.resume(task) {
            return;
        }
        while let Some(next) = self.states[task as usize].behind.pop_front() {
            if let Some(left) = self.submit_now(core, task, next, plugged) {
                self.states[task as usize].behind.push_front(left);
                return;
            }
            if core.is_waiting(task) {
                return;
            }
        }
    }

    fn exit<D: Device, O: Observer>(&mut self, core: &mut Core<D, O>, task: u32) {
        let state = &mut self.states[task as usize];
        if state.task_loop.exit() {
            state.behind.clear();
            core.exit(task);
        }
    }
}

impl<D: Device, O: Observer> Source<D, O> for Tasks<'_> {
    #[inline]
    fn next_ns(&self) -> u64 {
        let fixed_ns = self.fixed.get(self.next_fixed).map_or(u64::MAX, |&(at_ns, _)| at_ns);
        fixed_ns.min(self.heap.next_ns())
    }

    fn has_more(&self) -> bool {
        let left = &self.fixed[self.next_fixed..];
        self.heap.next_ns() != u64::MAX
            || left.iter().any(|(_, what)| matches!(what, Fixed::Start(_) | Fixed::Arrival(_)))
    }

    #[inline]
    fn event(&mut self, core: &mut Core<D, O>) {
        if let Some(&(at_ns, what)) = self.fixed.get(self.next_fixed)
            && at_ns <= self.heap.next_ns()
        {
            self.next_fixed += 1;
            self.fixed(core, what);
        } else if let Some(event) = self.heap.pop() {
            match (event.task, event.what) {
                (NOBODY, _) => core.rerun(),
                (task, EXIT) => self.exit(core, task),
                (task, ios) => self.arrive(core, task, ios),
            }
        }
    }

    #[inline]
    fn completed(&mut self, core: &mut Core<D, O>, task: u32, tag: u32) {
        if tag != PROGRAM {
            return;
        }
        match self.states[task as usize].task_loop.completed(core.now_ns) {
            After::Nothing => {}
            After::Again { at_ns, ios } => self.heap.push(at_ns, task, ios),
            After::Call { task, at_ns, ios } => match self.states[task as usize].task_loop.called(at_ns, ios) {
                0 => {}
                ios => self.heap.push(at_ns, task, ios),
            },
            After::Exit => self.heap.push(core.now_ns, task, EXIT),
        }
    }

    fn schedule_rerun(&mut self, at_ns: u64) {
        self.heap.push(at_ns, NOBODY, EXIT);
    }

    fn woken(&mut self, core: &mut Core<D, O>, _disk: usize, task: u32) {
        // In the multi-queue layer, a task that waited for a tag collects its requests on a plug
        // again. In the single-queue layer, a task that waited for room uses no plug.
        let plugged = self.plug_from != u32::MAX && core.driver.queue().is_multi_queue();
        if plugged {
            core.plug(task);
        }
        self.go_on(core, task, plugged);
        if plugged {
            core.unplug(task);
        }
        self.rest(core, task);
    }
}
