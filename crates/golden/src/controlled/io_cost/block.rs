//! The block layer around the controller. A bio goes from its task through the gate and past the
//! controller. Then it gets a tag, waits on a plug, and goes to the device.

use std::collections::VecDeque;

use iosched::controllers::{
    BioCosts, BioId, BioState, ControllerEvent, IoCost, IoCostFile, Passage, Served, Site, Target,
};
use iosched::{Bio, CgroupId, ContextId, Op, Sector, Time};
use iosched_disk::{AnyDevice, Command, Device};

use super::lines::{Joined, Line, Lines, letters, list};

/// Largest number of requests that a plug holds.
const PLUG_REQUESTS: usize = 32;
/// Size of a plug's first request, in sectors. If the first request has at least this size, the
/// plug is flushed before another request is added.
const PLUG_SECTORS: u64 = 256;

/// A request. Requests are numbered in the order of their creation.
#[derive(Debug)]
struct Request {
    /// Name of the request, which is the name of its first bio.
    id: u64,
    sector: Sector,
    nr_sectors: u64,
    op: Op,
    group: CgroupId,
    urgent: bool,
    /// The first bio of the request.
    founder: BioId,
    /// Whether no more bios may join the request.
    unmergeable: bool,
    /// Bios in the order of sectors.
    bios: VecDeque<BioId>,
    requested: Time,
    got: Time,
}

/// Place at which a task's bio waits.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// At the gate, while a file is written.
    Gate(BioId),
    /// At the controller.
    Controller(BioId),
    /// For a tag, since this time.
    Tag(BioId, Time),
}

impl Stage {
    const fn why(&self) -> &'static str {
        match self {
            Self::Gate(_) => "freeze",
            Self::Controller(_) => "iocost",
            Self::Tag(..) => "tag",
        }
    }
}

/// A task with one thread, as it appears to the block layer.
#[derive(Debug)]
pub(super) struct Submitter {
    pub(super) pid: u32,
    pub(super) group: CgroupId,
    pub(super) context: ContextId,
    /// Whether the task is a kernel thread, which never sleeps.
    kthread: bool,
    /// System calls that the task makes one after another, each with its bios.
    /// The bios' group is set at submission.
    pub(super) calls: VecDeque<VecDeque<Bio>>,
    /// Place at which the task's bio waits.
    stage: Option<Stage>,
    asleep: bool,
    /// Numbers of requests that are not dispatched yet.
    plug: Vec<usize>,
}

impl Submitter {
    pub(super) fn new(pid: u32, group: CgroupId, context: ContextId, kthread: bool) -> Self {
        Self { pid, group, context, kthread, calls: VecDeque::new(), stage: None, asleep: false, plug: Vec::new() }
    }
}

/// Rules by which bios become requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plugging {
    pub(super) plug: bool,
    pub(super) merge: bool,
    pub(super) max_sectors: u64,
}

/// The block layer.
pub(super) struct Block {
    pub(super) site: Site,
    pub(super) controller: IoCost,
    pub(super) lines: Lines,
    pub(super) tasks: Vec<Submitter>,
    pub(super) device: AnyDevice,
    plugging: Plugging,
    requests: Vec<Request>,
    tags_free: u32,
    tag_waiters: VecDeque<usize>,
    /// Tasks that no longer wait.
    woken: VecDeque<usize>,
    /// Number of bios between the gate and their completion, without bios that joined a request.
    inside: u32,
    /// Waiting writes to files, for which the gate is shut.
    writes: VecDeque<(IoCostFile, String)>,
    gate_waiters: VecDeque<usize>,
    /// Tasks that must sleep because of this event, and the length of each sleep, ns.
    pub(super) sleeping: Vec<(usize, u64)>,
}

impl Block {
    pub(super) fn new(mut site: Site, controller: IoCost, lines: Lines, device: AnyDevice, plugging: Plugging) -> Self {
        site.log.record(true);
        let tags_free = device.card().depth;
        Self {
            site,
            controller,
            lines,
            tasks: Vec::new(),
            device,
            plugging,
            requests: Vec::new(),
            tags_free,
            tag_waiters: VecDeque::new(),
            woken: VecDeque::new(),
            inside: 0,
            writes: VecDeque::new(),
            gate_waiters: VecDeque::new(),
            sleeping: Vec::new(),
        }
    }

    /// Creates a group.
    pub(super) fn create_group(&mut self, name: &str, parent: CgroupId) -> CgroupId {
        self.lines.name(name);
        self.site.groups.create(parent)
    }

    /// Returns a line of an event at the present time.
    pub(super) fn line(&self, event: &str) -> Line {
        Line::new(self.now_ns(), event)
    }

    /// Returns a line of an event of a group at the present time.
    pub(super) fn line_of(&self, event: &str, group: CgroupId) -> Line {
        self.line(event).text("cg", self.lines.name_of(group))
    }

    /// Writes a line. Earlier decisions of the controller are written first.
    pub(super) fn say(&mut self, line: Line) {
        self.take_decisions();
        self.lines.write(line);
    }

    fn take_decisions(&mut self) {
        for (now, event) in self.site.log.take() {
            if let ControllerEvent::IoCost(event) = event {
                self.lines.decision(now, &event);
            }
        }
    }

    /// Returns the time since the start, ns. Lines and the device use this time.
    pub(super) fn now_ns(&self) -> u64 {
        self.site.now.since(Time::BEGINNING)
    }

    /// Returns the group that pays for a task's bios.
    fn group_of(&self, task: usize) -> CgroupId {
        self.site.groups.living(self.tasks[task].group)
    }

    /// Makes a task submit the bios of a system call, after its earlier calls.
    pub(super) fn call(&mut self, task: usize, bios: VecDeque<Bio>) {
        let submitter = &mut self.tasks[task];
        submitter.calls.push_back(bios);
        if submitter.stage.is_none() && !submitter.asleep && submitter.calls.len() == 1 {
            self.run(task);
        }
    }

    /// Ends the sleep of a task.
    pub(super) fn awake(&mut self, task: usize) {
        self.tasks[task].asleep = false;
        self.run(task);
    }

    /// Runs a task until it must wait or has no further calls.
    fn run(&mut self, task: usize) {
        while !self.tasks[task].asleep {
            let submitter = &mut self.tasks[task];
            let goes_on = match submitter.stage.take() {
                Some(Stage::Gate(bio_id)) => self.enter(task, bio_id),
                Some(Stage::Controller(bio_id)) => self.ask(task, bio_id),
                Some(Stage::Tag(bio_id, requested)) => self.start(task, bio_id, requested),
                None => match submitter.calls.front_mut().map(VecDeque::pop_front) {
                    None => return,
                    Some(Some(bio)) => self.submit(task, &bio),
                    Some(None) => self.end_call(task),
                },
            };
            if !goes_on {
                return;
            }
        }
    }

    fn wait(&mut self, task: usize, stage: Stage) -> bool {
        let (Stage::Gate(bio_id) | Stage::Controller(bio_id) | Stage::Tag(bio_id, _)) = stage;
        self.tasks[task].stage = Some(stage);
        let id = self.site.bios[bio_id].cookie;
        self.say(self.line("wait").number("id", id).text("why", stage.why()));
        self.flush(task);
        false
    }

    fn end_call(&mut self, task: usize) -> bool {
        self.tasks[task].calls.pop_front();
        self.flush(task);
        let &Submitter { pid, context, kthread, .. } = &self.tasks[task];
        if self.site.take_rest(context) && !kthread {
            let ns = self.controller.rest_ns(&self.site, self.group_of(task));
            if ns > 0 {
                self.say(self.line("sleep").number("pid", pid).number("ns", ns));
                self.tasks[task].asleep = true;
                self.sleeping.push((task, ns));
            }
        }
        true
    }

    fn submit(&mut self, task: usize, bio: &Bio) -> bool {
        let group = self.group_of(task);
        let bio_id = self.site.begin(BioState::new(self.site.now, bio, group));
        let &Bio { op, flags, cookie, sector, nr_sectors, .. } = bio;
        let line = self.line("submit").number("id", cookie).number("pid", self.tasks[task].pid);
        let line = line.text("cg", self.lines.name_of(group)).number("sector", sector).number("nr", nr_sectors);
        self.say(line.text("rw", &letters(op, flags)));
        if !self.writes.is_empty() {
            self.gate_waiters.push_back(task);
            return self.wait(task, Stage::Gate(bio_id));
        }
        self.enter(task, bio_id)
    }

    /// Moves a bio past the gate.
    fn enter(&mut self, task: usize, bio_id: BioId) -> bool {
        if self.merge(task, bio_id) {
            return true;
        }
        self.inside += 1;
        match self.controller.throttle(&mut self.site, bio_id) {
            Passage::Pass => self.ask(task, bio_id),
            Passage::Wait => self.wait(task, Stage::Controller(bio_id)),
        }
    }

    /// Joins a bio with the last request on its task's plug, if possible. Returns whether the bio
    /// joined.
    fn merge(&mut self, task: usize, bio_id: BioId) -> bool {
        let Some(&number) = self.tasks[task].plug.last() else { return false };
        let (request, bio) = (&mut self.requests[number], self.site.bios[bio_id]);
        let alike = request.op == bio.op && request.group == bio.cgroup && request.urgent == bio.is_urgent();
        if !self.plugging.merge || request.unmergeable || !alike || bio.op == Op::WriteZeroes {
            return false;
        }
        let nr_sectors = u64::from(bio.nr_sectors);
        let end = request.sector.wrapping_add(request.nr_sectors);
        let is_back = end == bio.sector;
        if !is_back && bio.sector.wrapping_add(nr_sectors) != request.sector {
            return false;
        }
        if request.nr_sectors + nr_sectors > self.plugging.max_sectors {
            request.unmergeable = true;
            return false;
        }
        let target = Target { sector: request.sector, end, first: request.bios[0] };
        if is_back {
            request.bios.push_back(bio_id);
        } else {
            request.bios.push_front(bio_id);
            request.sector = bio.sector;
        }
        request.nr_sectors += nr_sectors;
        let side = if is_back { "back" } else { "front" };
        self.lines.joined = Joined { into: request.id, side };
        self.controller.merged(&mut self.site, bio_id, &target);
        self.take_decisions();
        true
    }

    /// Requests a tag for a bio.
    fn ask(&mut self, task: usize, bio_id: BioId) -> bool {
        let requested = self.site.now;
        if self.tags_free == 0 {
            self.tag_waiters.push_back(task);
            return self.wait(task, Stage::Tag(bio_id, requested));
        }
        self.start(task, bio_id, requested)
    }

    /// Creates a request from a bio that has a tag.
    fn start(&mut self, task: usize, bio_id: BioId, requested: Time) -> bool {
        self.tags_free -= 1;
        let bio = &self.site.bios[bio_id];
        let number = self.requests.len();
        self.requests.push(Request {
            id: bio.cookie,
            sector: bio.sector,
            nr_sectors: bio.nr_sectors.into(),
            op: bio.op,
            group: bio.cgroup,
            urgent: bio.is_urgent(),
            founder: bio_id,
            unmergeable: false,
            bios: VecDeque::from([bio_id]),
            requested,
            got: self.site.now,
        });
        if !self.plugging.plug {
            self.dispatch(number);
            return true;
        }
        let plug = &self.tasks[task].plug;
        let is_large = |&first: &usize| self.plugging.merge && self.requests[first].nr_sectors >= PLUG_SECTORS;
        if plug.len() >= PLUG_REQUESTS || plug.first().is_some_and(is_large) {
            self.flush(task);
        }
        self.tasks[task].plug.push(number);
        true
    }

    fn flush(&mut self, task: usize) {
        for number in std::mem::take(&mut self.tasks[task].plug) {
            self.dispatch(number);
        }
    }

    fn dispatch(&mut self, number: usize) {
        let &Request { id, sector, nr_sectors, op, .. } = &self.requests[number];
        let mut line = self.line("dispatch").number("id", id);
        if self.plugging.merge {
            line = line.number("sector", sector).number("nr", nr_sectors);
        }
        self.say(line);
        let now = Time::from_ns(self.now_ns());
        let command = Command { tag: number as u32, op, sector, nr_sectors: nr_sectors as u32, fua: false };
        self.device.submit(now, command);
    }

    /// Completes a request of the device, if it has one. Returns its bios.
    pub(super) fn complete(&mut self) -> Option<Vec<BioState>> {
        let number = self.device.advance(Time::from_ns(self.now_ns()))? as usize;
        let request = &mut self.requests[number];
        let bios: Vec<BioId> = std::mem::take(&mut request.bios).into();
        let &mut Request { id, op, nr_sectors, founder, requested, got, .. } = request;
        self.say(self.line("complete").number("id", id));
        let served = Served { founder, op, nr_sectors, requested, got };
        self.controller.completed(&self.site, &served, &bios);
        let done = bios.iter().map(|&bio_id| self.site.bios[bio_id]).collect();
        for bio_id in bios {
            if let Some(left) = self.site.end(bio_id) {
                self.controller.group_left(&mut self.site, left);
            }
        }
        self.tags_free += 1;
        self.inside -= 1;
        Some(done)
    }

    /// Removes a group.
    pub(super) fn remove_group(&mut self, group: CgroupId) {
        self.say(self.line_of("remove", group));
        if let Some(left) = self.site.remove_group(group) {
            self.controller.group_left(&mut self.site, left);
        }
    }

    /// Schedules a write to a file. The write happens when no bio is inside.
    pub(super) fn write_later(&mut self, file: IoCostFile, text: &str) {
        self.say(self.line("freeze"));
        self.writes.push_back((file, text.to_owned()));
    }

    /// Writes to a file.
    pub(super) fn write(&mut self, file: IoCostFile, text: &str) {
        if self.controller.write(&mut self.site, file, CgroupId::ROOT, text).is_err() {
            self.say(self.line("refused").text("text", text));
        }
        for (event, file) in [("qos", IoCostFile::Qos), ("model", IoCostFile::Model)] {
            let text = self.controller.read(file, CgroupId::ROOT);
            self.say(self.line(event).text("text", &text));
        }
        let costs = self.controller.costs();
        let [read, write] = costs.map(|BioCosts { page, sequential, random }| list([page, sequential, random]));
        let [slowest, fastest] = self.controller.rate_bounds();
        let line = self.line("coef").number("r", read).number("w", write);
        let line = line.number("period_us", self.controller.period_us());
        self.say(line.number("vmin", slowest).number("vmax", fastest));
    }

    /// Handles the consequences of an event, after the event itself.
    pub(super) fn settle(&mut self) {
        loop {
            let going_on: Vec<BioId> = self.site.take_going_on().collect();
            self.woken.extend(going_on.into_iter().map(|bio_id| self.site.bios[bio_id].context.index()));
            if self.tags_free > 0
                && let Some(task) = self.tag_waiters.pop_front()
            {
                self.run(task);
            } else if let Some(task) = self.woken.pop_front() {
                self.run(task);
            } else if self.inside == 0
                && let Some((file, text)) = self.writes.pop_front()
            {
                self.write(file, &text);
                if self.writes.is_empty() {
                    self.woken.append(&mut self.gate_waiters);
                }
            } else {
                break;
            }
        }
        self.take_decisions();
    }

    /// Writes the statistics of each group that is not freed.
    pub(super) fn write_stat(&mut self) {
        for group in self.site.groups.all() {
            if !self.controller.is_freed(group) {
                let text = self.controller.read(IoCostFile::Stat, group);
                self.say(self.line_of("stat", group).text("text", &text));
            }
        }
    }
}
