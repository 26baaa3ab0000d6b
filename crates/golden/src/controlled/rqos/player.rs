//! Runs the events in order: completions, timers, tasks. After each event, the threads that can
//! continue run, and then the queue is run.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use iosched::controllers::{BioId, BioState, IoLatency, IoLatencyState, IoMax, Site, TimerId, Wbt};
use iosched::{Bio, CgroupId, ContextId, Flags, Op, SECOND_NS, Time};
use iosched_disk::{AnyDevice, Command, Device};
use iosched_workload::{After, TaskLoop};

use super::changes::KernelStep;
use super::lines::{self, LATENCY_AT_FIRST, Line, Names};
use super::path::{Step, Thread};
use super::scenario::{self, Actor, Arrival, Change, Scenario};
use crate::controlled::ScenarioError;

/// The run ends if only timers are left and none of them fires within this time, ns.
const ONLY_TIMERS_NS: u64 = 20 * SECOND_NS;

/// A scheduled event.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    Change(usize),
    Start(usize),
    Arrival(usize),
    Again { task: usize, bios: u32 },
    Awake(usize),
}

/// Owner of a timer.
#[derive(Clone, Copy)]
pub(super) enum Owner {
    Wbt,
    Latency,
    Max(Option<CgroupId>),
}

/// State of a bio in the run.
#[derive(Clone, Copy)]
pub(super) struct PlayedBio {
    pub(super) id: u64,
    pub(super) task: usize,
    /// Whether the bio belongs to the closed loop of a task.
    looped: bool,
    /// The bio from which this bio was split off.
    pub(super) whole: Option<BioId>,
    /// Number of requests that must complete before the bio ends: its own request, and the requests
    /// of its parts.
    pub(super) pending: u32,
    pub(super) split: bool,
    /// The thread that waits for the bio.
    pub(super) sleeper: usize,
}

/// A run of a scenario.
pub(super) struct Player {
    pub(super) site: Site,
    pub(super) wbt: Option<Wbt>,
    pub(super) latency: Option<IoLatency>,
    pub(super) max: Option<IoMax>,
    pub(super) names: Names,
    owners: Vec<Owner>,
    /// State of each group in io.latency, as a line last showed it.
    shown: Vec<IoLatencyState>,
    lines: Vec<String>,
    pub(super) now_ns: u64,
    pub(super) pids: Vec<u32>,
    pub(super) actors: Vec<Actor>,
    /// The group of each task.
    pub(super) groups: Vec<CgroupId>,
    loops: Vec<TaskLoop>,
    pub(super) changes: Vec<Change>,
    arrivals: Vec<Arrival>,
    pub(super) threads: Vec<Thread>,
    pub(super) runnable: VecDeque<usize>,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    bios: u64,
    /// State of bios, by number.
    pub(super) states: Vec<PlayedBio>,
    pub(super) inserted: VecDeque<BioId>,
    device: AnyDevice,
    /// Requests in the device, by the number of the bio.
    in_device: Vec<Option<BioId>>,
    started: u32,
    pub(super) tags_free: Option<u32>,
    pub(super) tag_waiters: VecDeque<BioId>,
    pub(super) max_sectors: u32,
    pub(super) rotational: bool,
    pub(super) nr_requests: u32,
    /// Number of bios between the entry and their completion.
    pub(super) inside: u32,
    /// Number of threads that let no further bio enter the queue, because they wait until it is
    /// empty.
    pub(super) gates: u32,
    pub(super) at_gate: Vec<usize>,
    pub(super) freezers: Vec<usize>,
    pub(super) worker_called: bool,
    /// Time of the latest event of a timer or task.
    begun_ns: Option<u64>,
}

impl Player {
    pub(super) fn new(scenario: &Scenario) -> Result<Self, ScenarioError> {
        let mut site = Site::new(Time::BEGINNING, scenario.hz);
        site.log.record(true);
        let mut names = Names { groups: vec!["/".to_owned()], ..Names::default() };
        for group in &scenario.cgroups {
            let parent = names.find(group.parent.as_deref().unwrap_or("/"))?;
            site.groups.create(parent);
            names.groups.push(group.name.clone());
        }
        let groups = scenario.actors.iter().map(|actor| names.find(&actor.cgroup)).collect::<Result<_, _>>()?;
        let depth = scenario.device.card().depth;
        let nr_requests = scenario.nr_requests.unwrap_or(depth);
        let shown = vec![LATENCY_AT_FIRST; names.groups.len()];
        let threads = scenario.tasks.tasks.len() + Thread::KERNEL;
        let mut player = Self {
            site,
            wbt: None,
            latency: None,
            max: None,
            names,
            owners: Vec::new(),
            shown,
            lines: Vec::new(),
            now_ns: 0,
            pids: scenario.tasks.tasks.iter().map(|task| task.pid).collect(),
            actors: scenario.actors.clone(),
            groups,
            loops: TaskLoop::all(&scenario.tasks),
            changes: scenario.changes.clone(),
            arrivals: scenario.arrivals.clone(),
            threads: (0..threads).map(|_| Thread::default()).collect(),
            runnable: VecDeque::new(),
            events: BinaryHeap::new(),
            scheduled: 0,
            bios: 0,
            states: Vec::new(),
            inserted: VecDeque::new(),
            device: scenario.device.clone(),
            in_device: Vec::new(),
            started: 0,
            tags_free: scenario.tags,
            tag_waiters: VecDeque::new(),
            max_sectors: scenario.max_sectors.unwrap_or(u32::MAX),
            rotational: scenario.rotational,
            nr_requests,
            inside: 0,
            gates: 0,
            at_gate: Vec::new(),
            freezers: Vec::new(),
            worker_called: false,
            begun_ns: None,
        };
        player.set_up(scenario)?;
        Ok(player)
    }

    /// Makes the writes before the run, and schedules the events of the run.
    fn set_up(&mut self, scenario: &Scenario) -> Result<(), ScenarioError> {
        let queue_depth = scenario.queue_depth.unwrap_or(self.nr_requests);
        if !matches!(scenario.wbt, scenario::Wbt::None) {
            let wbt = Wbt::new(&mut self.site, scenario.rotational, scenario.write_cache, queue_depth);
            self.add_timer(wbt.timer_id(), "wbt", Owner::Wbt);
            self.wbt = Some(wbt);
            self.flush();
        }
        if let scenario::Wbt::Written(text) = &scenario.wbt {
            self.show_write("wbt_lat_usec", None, text);
            self.write_wbt(text);
        }
        for (index, group) in scenario.cgroups.iter().enumerate() {
            let id = self.names.find(&group.name)?;
            debug_assert_eq!(id.index(), index + 1);
            if let Some(text) = &group.io_latency {
                self.show_write("io.latency", Some(id), text);
                self.activate_latency();
                self.write_latency(id, text);
                self.switch_latency();
            }
            if let Some(text) = &group.io_max {
                self.show_write("io.max", Some(id), text);
                self.activate_max();
                self.write_max(id, text);
            }
        }
        for (index, change) in scenario.changes.iter().enumerate() {
            self.schedule(change.t_ns, Event::Change(index));
        }
        for (index, task) in scenario.tasks.tasks.iter().enumerate() {
            if self.loops[index].first() > 0 {
                self.schedule(task.start_ns, Event::Start(index));
            }
        }
        for (index, arrival) in scenario.arrivals.iter().enumerate() {
            self.schedule(arrival.t_ns, Event::Arrival(index));
        }
        Ok(())
    }

    pub(super) fn schedule(&mut self, t_ns: u64, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((t_ns, self.scheduled, event)));
    }

    /// Adds the name and owner of a controller's timer.
    pub(super) fn add_timer(&mut self, timer: TimerId, name: &str, owner: Owner) {
        debug_assert_eq!(timer.index(), self.owners.len(), "timers are named in the order in which they are made");
        self.names.timers.push(name.to_owned());
        self.owners.push(owner);
    }

    // ---- lines

    pub(super) fn line(&self, event: &str) -> Line {
        Line::new(self.now_ns, event)
    }

    pub(super) fn say(&mut self, line: Line) {
        self.flush();
        self.lines.push(line.end());
    }

    pub(super) fn say_of(&mut self, event: &str, id: BioId) {
        let line = self.line(event).number("id", self.states[id.index()].id);
        self.say(line);
    }

    /// Writes the controllers' decisions.
    pub(super) fn flush(&mut self) {
        for (_, event) in self.site.log.take() {
            let id = |bio_id: BioId| self.states[bio_id.index()].id;
            self.lines.push(lines::decision(self.now_ns, event, &self.names, id));
        }
    }

    /// Writes the changes of io.latency's state.
    pub(super) fn show_latency(&mut self) {
        self.flush();
        let Some(latency) = &self.latency else { return };
        for group in self.site.groups.all() {
            let now = latency.state(group);
            let before = std::mem::replace(&mut self.shown[group.index()], now);
            let name = self.names.group(group);
            self.lines.extend(lines::latency(self.now_ns, name, &before, &now, &self.names));
        }
    }

    // ---- the loop

    pub(super) fn play(mut self) -> Vec<String> {
        let mut last_ns = 0;
        loop {
            let completion = self.device.next_event().map(Time::as_ns);
            let timer = self.next_timer_ns();
            let event = self.events.peek().map(|&Reverse((t_ns, ..))| t_ns);
            if completion.is_none() && event.is_none() {
                let held = self.max.as_ref().map_or(0, IoMax::held);
                if timer.is_none_or(|timer_ns| held == 0 && timer_ns > last_ns + ONLY_TIMERS_NS) {
                    break;
                }
            }
            let at = [completion, timer, event].map(|at_ns| at_ns.unwrap_or(u64::MAX));
            self.now_ns = at.into_iter().min().unwrap_or(u64::MAX);
            self.site.now = Time::BEGINNING + self.now_ns;
            if at[0] == self.now_ns {
                last_ns = self.now_ns;
                self.complete_all();
                continue;
            }
            self.begun_ns = Some(self.now_ns);
            if at[1] == self.now_ns {
                self.fire();
            } else if let Some(Reverse((_, _, event))) = self.events.pop() {
                last_ns = self.now_ns;
                self.happen(event);
            }
            self.settle();
        }
        self.lines
    }

    /// Returns the time at which the next timers fire, ns. `None` if no timer is set.
    fn next_timer_ns(&self) -> Option<u64> {
        let jiffy_ns = self.site.jiffy_ns;
        let since_begin = |jiffy: u64| Time::from_ns(jiffy * jiffy_ns).since(Time::BEGINNING);
        let at_ns = since_begin(self.site.wheel.next()?);
        let is_past = at_ns < self.now_ns || (at_ns == self.now_ns && self.begun_ns == Some(self.now_ns));
        Some(if is_past { since_begin(self.site.jiffies() + 1) } else { at_ns })
    }

    fn fire(&mut self) {
        while let Some(timer) = self.site.wheel.fire(self.site.jiffies()) {
            self.site.fired(timer);
            match self.owners[timer.index()] {
                Owner::Wbt => self.with_wbt(|wbt, site| wbt.fire(site)),
                Owner::Latency => {
                    if let Some(latency) = &mut self.latency {
                        latency.fire(&self.site);
                    }
                }
                Owner::Max(of) => {
                    if let Some(max) = &mut self.max {
                        max.fire(&mut self.site, of);
                        if max.take_worker_call() {
                            self.worker_called = true;
                            self.wake_idle(self.worker());
                        }
                    }
                }
            }
            self.wake_ready();
            self.show_latency();
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Change(index) => {
                let writer = self.writer();
                self.threads[writer].work.push_back(Step::Kernel(KernelStep::Change(index)));
                self.wake_idle(writer);
            }
            Event::Start(task) => self.arrive(task, self.loops[task].first()),
            Event::Again { task, bios } => self.arrive(task, bios),
            Event::Arrival(index) => {
                let Arrival { task, op, flags, sector, nr_sectors, .. } = self.arrivals[index];
                let bio_id = self.submit(task, op, flags, sector, nr_sectors, false);
                self.threads[task].backlog.push_back(vec![bio_id]);
                self.wake_idle(task);
            }
            Event::Awake(thread) => self.wake(thread),
        }
    }

    /// Handles the arrival of bios of a closed loop.
    fn arrive(&mut self, task: usize, bios: u32) {
        self.loops[task].arrive(bios);
        let mut batch = Vec::new();
        for _ in 0..bios {
            let kinds = &self.actors[task].kinds;
            let kind = kinds[self.loops[task].phase().min(kinds.len() - 1)];
            let Some((sector, nr_sectors)) = self.loops[task].next_place() else { return };
            self.loops[task].end_phase();
            batch.push(self.submit(task, kind.op(), kind.flags(), sector, nr_sectors, true));
        }
        self.threads[task].backlog.push_back(batch);
        self.wake_idle(task);
    }

    fn submit(&mut self, task: usize, op: Op, flags: Flags, sector: u64, nr_sectors: u32, looped: bool) -> BioId {
        let context = ContextId::numbered(task as u32);
        let bio = Bio { op, flags, sector, nr_sectors, context, cookie: 0 };
        let id = self.begin(&BioState::new(self.site.now, &bio, CgroupId::ROOT), task, looped, None);
        let line = self.line("submit").number("id", self.states[id.index()].id).number("pid", self.pids[task]);
        let line = line.number("sector", sector).number("nr", nr_sectors);
        self.say(line.text("rw", &op.letter().to_string()).text("fl", &lines::flags(flags)));
        id
    }

    /// Creates a bio, or a part of a bio, and gives it a name.
    pub(super) fn begin(&mut self, state: &BioState, task: usize, looped: bool, whole: Option<BioId>) -> BioId {
        self.bios += 1;
        let id = self.site.begin(*state);
        let state = PlayedBio { id: self.bios, task, looped, whole, pending: 1, split: false, sleeper: usize::MAX };
        if id.index() == self.states.len() {
            self.states.push(state);
        } else {
            self.states[id.index()] = state;
        }
        id
    }

    /// Continues all threads that can continue, and runs the queue.
    fn settle(&mut self) {
        while let Some(thread) = self.runnable.pop_front() {
            self.threads[thread].queued = false;
            self.run(thread);
        }
        while self.started < self.device.card().depth
            && let Some(id) = self.inserted.pop_front()
        {
            self.say_of("dispatch", id);
            self.site.bios[id].dispatched = self.site.now;
            self.with_wbt(|wbt, site| wbt.started(site, id));
            let BioState { op, sector, nr_sectors, .. } = self.site.bios[id];
            let command = Command { tag: id.index() as u32, op, sector, nr_sectors, fua: false };
            self.device.submit(Time::from_ns(self.now_ns), command);
            if self.in_device.len() <= id.index() {
                self.in_device.resize(id.index() + 1, None);
            }
            self.in_device[id.index()] = Some(id);
            self.started += 1;
        }
    }

    // ---- completion

    fn complete_all(&mut self) {
        while let Some(tag) = self.device.advance(Time::from_ns(self.now_ns)) {
            if let Some(id) = self.in_device[tag as usize].take() {
                self.complete(id);
                self.settle();
            }
        }
    }

    fn complete(&mut self, id: BioId) {
        self.started -= 1;
        self.say_of("complete", id);
        let whole = self.states[id.index()].whole;
        let mut ended = None;
        if let Some(whole) = whole {
            self.end(id);
            self.end_piece(whole, &mut ended);
        } else {
            self.end_piece(id, &mut ended);
        }
        self.with_wbt(|wbt, site| wbt.completed(site, id));
        self.wake_ready();
        self.flush();
        match self.tag_waiters.pop_front() {
            Some(next) => self.wake(self.states[next.index()].sleeper),
            None => self.tags_free = self.tags_free.map(|free| free + 1),
        }
        self.inside -= 1;
        if self.inside == 0 {
            for freezer in std::mem::take(&mut self.freezers) {
                self.wake(freezer);
            }
        }
        if whole.is_some() {
            self.site.end(id);
        }
        if let Some(bio) = ended {
            self.site.end(bio);
            self.notify_task(bio);
        }
    }

    /// Ends a request of a bio. The bio ends with its last request.
    fn end_piece(&mut self, id: BioId, ended: &mut Option<BioId>) {
        let state = &mut self.states[id.index()];
        state.pending -= 1;
        if state.pending > 0 {
            return;
        }
        self.end(id);
        if self.states[id.index()].split {
            self.say_of("end", id);
        }
        *ended = Some(id);
    }

    fn end(&mut self, id: BioId) {
        if let Some(latency) = &mut self.latency {
            latency.bio_done(&mut self.site, id);
        }
        self.wake_ready();
        self.show_latency();
    }

    /// Reports the completion of a bio to the closed loop of its task.
    fn notify_task(&mut self, bio: BioId) {
        let PlayedBio { task, looped, .. } = self.states[bio.index()];
        if !looped {
            return;
        }
        if let After::Again { at_ns, ios } = self.loops[task].completed(self.now_ns) {
            self.schedule(at_ns, Event::Again { task, bios: ios });
        }
    }

    pub(super) fn with_wbt(&mut self, call: impl FnOnce(&mut Wbt, &mut Site)) {
        if let Some(wbt) = &mut self.wbt {
            call(wbt, &mut self.site);
        }
    }
}

impl Names {
    /// Returns the group with a name.
    pub(super) fn find(&self, name: &str) -> Result<CgroupId, ScenarioError> {
        let unknown = || ScenarioError::Unknown { what: "cgroup", name: name.to_owned() };
        self.groups.iter().position(|other| other == name).map(CgroupId::numbered).ok_or_else(unknown)
    }
}
