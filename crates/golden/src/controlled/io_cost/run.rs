//! Runs the events of a scenario in order.

use std::collections::{BTreeMap, VecDeque};

use iosched::controllers::{IoCost, IoCostFile, Site};
use iosched::{Bio, CgroupId, ContextId, Op, Time};
use iosched_disk::Device;
use iosched_workload::{After, TaskLoop, TaskSet};

use super::block::{Block, Plugging, Submitter};
use super::lines::Lines;
use super::scenario::{Arrival, FileWrite, Scenario, ScriptedTask, WeightChange};
use crate::controlled::ScenarioError;

/// An action of a task or of an administrator.
#[derive(Debug)]
enum Act {
    Weigh(CgroupId, WeightChange),
    Remove(CgroupId),
    Write(FileWrite),
    Move(usize, CgroupId),
    /// A task's program submits this number of bios.
    Arrive(usize, u32),
    /// A task submits a bio of the scenario's list.
    Listed(usize, Arrival),
    Exit(usize),
    /// A task's sleep ends.
    Awake(usize),
}

/// A kind of event. Events at the same time are in the order of this list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Due {
    Completion,
    GroupTimer,
    PeriodTimer,
    Act,
}

/// Groups by name.
struct Names(Vec<(String, CgroupId)>);

impl Names {
    fn find(&self, name: &str) -> Result<CgroupId, ScenarioError> {
        let known = self.0.iter().find(|(known, _)| known == name);
        known.map(|&(_, group)| group).ok_or_else(|| ScenarioError::Unknown { what: "cgroup", name: name.to_owned() })
    }
}

/// A run of a scenario.
pub(super) struct Run {
    block: Block,
    tasks: Vec<ScriptedTask>,
    loops: Vec<TaskLoop>,
    /// Whether each bio, by its number, is in the scenario's list.
    listed: Vec<bool>,
    acts: BTreeMap<(Time, u64), Act>,
    scheduled: u64,
}

impl Run {
    pub(super) fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let device = scenario.device.device()?;
        let mut site = Site::new(Time::BEGINNING, scenario.hz);
        let controller = IoCost::new(&mut site, scenario.rotational, device.card().depth);
        let (plug, merge, max_sectors) = (scenario.plug, !scenario.nomerge, scenario.max_sectors.into());
        let plugging = Plugging { plug, merge, max_sectors };
        let block = Block::new(site, controller, Lines::new(scenario.brief), device, plugging);
        let mut tasks = scenario.tasks.clone();
        for &Arrival(_, pid, ..) in &scenario.arrivals {
            if !tasks.iter().any(|known| known.task.pid == pid) {
                tasks.push(ScriptedTask::named(pid));
            }
        }
        let set = TaskSet {
            tasks: tasks.iter().map(|scripted| scripted.task.clone()).collect(),
            end_ns: scenario.end_ns,
            ..TaskSet::default()
        };
        let mut run =
            Self { block, tasks, loops: TaskLoop::all(&set), listed: Vec::new(), acts: BTreeMap::new(), scheduled: 0 };
        run.set_up(scenario)?;
        Ok(run)
    }

    /// Makes the writes before the run, and schedules the events of the run.
    fn set_up(&mut self, scenario: &Scenario) -> Result<(), ScenarioError> {
        for (file, text) in &scenario.init {
            self.block.write((*file).into(), text);
        }
        let mut groups = Names(vec![("/".to_owned(), CgroupId::ROOT)]);
        for cgroup in &scenario.cgroups {
            let group = self.block.create_group(&cgroup.name, groups.find(&cgroup.parent)?);
            groups.0.push((cgroup.name.clone(), group));
            self.weigh(group, &format!("default {}", cgroup.weight));
        }
        for (scripted, number) in self.tasks.iter().zip(0..) {
            let group = groups.find(scripted.task.cgroup.as_deref().unwrap_or("/"))?;
            let context = ContextId::numbered(number);
            self.block.tasks.push(Submitter::new(scripted.task.pid, group, context, scripted.kthread));
        }
        for change in &scenario.weight_changes {
            self.schedule(change.t_ns, Act::Weigh(groups.find(&change.cgroup)?, change.clone()));
        }
        for removal in &scenario.cgroup_removals {
            self.schedule(removal.t_ns, Act::Remove(groups.find(&removal.cgroup)?));
        }
        for write in &scenario.file_writes {
            self.schedule(write.t_ns, Act::Write(write.clone()));
        }
        for change in &scenario.cgroup_moves {
            self.schedule(change.t_ns, Act::Move(self.task_of(change.pid)?, groups.find(&change.cgroup)?));
        }
        for task in 0..self.tasks.len() {
            let (start_ns, exit_ns) = (self.tasks[task].task.start_ns, self.tasks[task].task.exit_ns);
            let first = self.loops[task].first();
            if first > 0 {
                self.schedule(start_ns, Act::Arrive(task, first));
            }
            if let Some(exit_ns) = exit_ns {
                self.schedule(exit_ns, Act::Exit(task));
            }
        }
        for &arrival in &scenario.arrivals {
            self.schedule(arrival.0, Act::Listed(self.task_of(arrival.1)?, arrival));
        }
        Ok(())
    }

    fn task_of(&self, pid: u32) -> Result<usize, ScenarioError> {
        let unknown = || ScenarioError::Unknown { what: "task", name: pid.to_string() };
        self.tasks.iter().position(|scripted| scripted.task.pid == pid).ok_or_else(unknown)
    }

    fn schedule(&mut self, t_ns: u64, act: Act) {
        self.scheduled += 1;
        self.acts.insert((Time::BEGINNING + t_ns, self.scheduled), act);
    }

    /// Runs the scenario to its end. Returns the lines of its trace.
    pub(super) fn play(mut self) -> Vec<String> {
        while let Some((now, due)) = self.next() {
            self.block.site.now = now;
            match due {
                Due::Completion => self.complete(),
                Due::GroupTimer => self.block.controller.timer(&mut self.block.site),
                Due::PeriodTimer => self.fire(),
                Due::Act => {
                    if let Some((_, act)) = self.acts.pop_first() {
                        self.act(act);
                    }
                }
            }
            self.block.settle();
            for (task, ns) in std::mem::take(&mut self.block.sleeping) {
                self.schedule(self.block.now_ns().saturating_add(ns), Act::Awake(task));
            }
        }
        self.block.write_stat();
        self.block.lines.written
    }

    fn next(&self) -> Option<(Time, Due)> {
        let Block { site, controller, device, .. } = &self.block;
        [
            device.next_event().map(|at| (Time::BEGINNING + at.as_ns(), Due::Completion)),
            controller.next_timer().map(|at| (at, Due::GroupTimer)),
            site.wheel.next().map(|jiffy| (Time::from_ns(jiffy * site.jiffy_ns), Due::PeriodTimer)),
            self.acts.first_key_value().map(|(&(at, _), _)| (at, Due::Act)),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn fire(&mut self) {
        let Block { site, controller, .. } = &mut self.block;
        while let Some(timer) = site.wheel.fire(site.jiffies()) {
            controller.fire(site, timer);
        }
    }

    fn complete(&mut self) {
        for bio in self.block.complete().into_iter().flatten() {
            let task = bio.context.index();
            if !self.listed[bio.cookie as usize - 1] {
                self.follow(task);
            }
        }
    }

    /// Continues a task's closed loop when one of its bios is complete.
    fn follow(&mut self, task: usize) {
        let now_ns = self.block.now_ns();
        match self.loops[task].completed(now_ns) {
            After::Nothing => {}
            After::Again { at_ns, ios } => self.schedule(at_ns, Act::Arrive(task, ios)),
            After::Call { task: other, at_ns, ios } => {
                let ios = self.loops[other as usize].called(at_ns, ios);
                if ios > 0 {
                    self.schedule(at_ns, Act::Arrive(other as usize, ios));
                }
            }
            After::Exit => self.schedule(now_ns, Act::Exit(task)),
        }
    }

    fn act(&mut self, act: Act) {
        match act {
            Act::Weigh(group, change) => {
                let line = self.block.line_of("weight", group).number("w", change.weight);
                self.block.say(line.number("dev", u8::from(change.dev)));
                self.weigh(group, &change.text());
            }
            Act::Remove(group) => self.block.remove_group(group),
            Act::Write(write) => self.block.write_later(write.file.into(), &write.text),
            Act::Move(task, group) => {
                let line = self.block.line("move").number("pid", self.block.tasks[task].pid);
                self.block.say(line.text("cg", self.block.lines.name_of(group)));
                self.block.tasks[task].group = group;
            }
            Act::Arrive(task, ios) => self.arrive(task, ios),
            Act::Listed(task, arrival) => self.arrive_listed(task, arrival),
            Act::Exit(task) => {
                if self.loops[task].exit() {
                    self.block.say(self.block.line("exit").number("pid", self.block.tasks[task].pid));
                }
            }
            Act::Awake(task) => self.block.awake(task),
        }
    }

    /// Writes a group's io.weight. If the value is refused, nothing changes.
    fn weigh(&mut self, group: CgroupId, text: &str) {
        let Block { site, controller, .. } = &mut self.block;
        let _refused = controller.write(site, IoCostFile::Weight, group, text);
    }

    fn arrive(&mut self, task: usize, ios: u32) {
        if !self.loops[task].arrive(ios) {
            return;
        }
        let mut bios = VecDeque::new();
        for _ in 0..ios {
            let Some((sector, nr_sectors)) = self.loops[task].next_place() else { break };
            let op = self.tasks[task].op(self.loops[task].phase());
            bios.push_back(self.bio(task, op, sector, nr_sectors, false));
        }
        self.block.call(task, bios);
    }

    fn arrive_listed(&mut self, task: usize, Arrival(_, _, op, sector, nr_sectors): Arrival) {
        if !self.loops[task].has_exited() {
            let bio = self.bio(task, op.into(), sector, nr_sectors, true);
            self.block.call(task, VecDeque::from([bio]));
        }
    }

    /// Creates a bio. Bios are numbered from 1.
    fn bio(&mut self, task: usize, op: Op, sector: u64, nr_sectors: u32, listed: bool) -> Bio {
        self.listed.push(listed);
        let (flags, context) = (self.tasks[task].flags, self.block.tasks[task].context);
        Bio { op, flags, sector, nr_sectors, context, cookie: self.listed.len() as u64 }
    }
}
