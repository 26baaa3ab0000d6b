//! The parts that all workloads share: submission with splitting, the queue run, completion, and
//! results.

use std::collections::VecDeque;

use iosched::controllers::ControllerWaits;
use iosched::{
    Bio, CgroupId, ContextId, Driver, Flags, IoClass, IoError, IoPriority, Op, Part, RequestId, SECTOR_BYTES, Step,
};
use iosched::{KernelVersion, Submit, Time, TunableError};
use iosched_disk::{Command, Device};

use super::tally::Tally;
use crate::observer::{Change, Completed, Dispatched, Observer, Submitted, Taken};
use iosched_workload::outcome::{Latencies, Note, QueueStat, RunResult, SyncCalls, TaskResult};

/// The queue's time at the start of a run. It is far from zero, because schedulers use times near
/// zero with the meaning "never".
pub(crate) const ORIGIN: Time = Time::BEGINNING;

/// Bits of a cookie that hold the I/O's slot. The other bits hold the bio's ordinal.
const SLOT_BITS: u32 = 28;
/// End of the list of free slots.
const NONE: u32 = u32::MAX;

/// An I/O that a task submits.
#[derive(Clone, Copy)]
pub(super) struct NewIo {
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) sector: u64,
    pub(super) nr_sectors: u32,
    /// Tag that the workload gets back at completion.
    pub(super) tag: u32,
    /// Time at which the task requested the I/O, ns. The latency starts at this time.
    pub(super) asked_ns: u64,
    /// Values of the first bio, if it was [issued](Core::issue) before its submission.
    pub(super) issued: Option<Issued>,
    /// Position of this I/O in the longer I/O that it is a part of.
    pub(super) part: Part,
}

/// Deviations from the usual treatment of the bios of an I/O.
#[derive(Clone, Copy, Default)]
pub(super) struct Treatment {
    /// Whether the requests are inserted at the head.
    pub(super) at_head: bool,
    /// Whether the bios have no ioprio, even if the task has one.
    pub(super) without_ioprio: bool,
}

/// Values that a bio keeps while it waits to be submitted.
#[derive(Clone, Copy)]
pub(super) struct Issued {
    /// Ordinal of the bio.
    bio: u64,
    /// The task's ioprio when the bio was issued.
    ioprio: IoPriority,
}

impl Issued {
    /// Returns the values of the next bio. It was issued directly after this bio.
    pub(super) fn next(self) -> Self {
        Self { bio: self.bio + 1, ..self }
    }
}

/// An I/O in flight.
#[derive(Clone, Copy)]
struct Io {
    asked_ns: u64,
    /// Tag of the I/O. In a free slot, the index of the next free slot.
    tag: u32,
    task: u32,
    nr_sectors: u32,
    /// Number of parts that are not complete, including parts that are not yet submitted.
    parts: u32,
    op: Op,
    sync: bool,
}

/// An I/O of which some parts wait for room in the queue.
#[derive(Clone, Copy)]
struct Partial {
    slot: u32,
    /// Values of the next bio, if it was issued.
    issued: Option<Issued>,
    part: Part,
    treatment: Treatment,
    op: Op,
    flags: Flags,
    sector: u64,
    nr_sectors: u32,
}

/// A task as the engine knows it.
struct Owner {
    context: ContextId,
    partial: Option<Partial>,
    /// Whether the results of the task's I/Os do not count now.
    uncounted: bool,
    /// Whether the task keeps its ioprio when a recorded I/O has no ioprio.
    keeps_ioprio: bool,
}

/// Counts for the notes on the run.
#[derive(Default)]
struct Counts {
    split_ios: u64,
    split_parts: u64,
    waits: u64,
    late_ios: u64,
    past_end: u64,
}

/// A request queue with its device and tasks.
pub(super) struct Core<D, O> {
    /// Present time, ns since the start.
    pub(super) now_ns: u64,
    pub(super) driver: Driver,
    pub(super) device: D,
    /// Cookies of completed bios that are not reported yet.
    pub(super) done: Vec<u64>,
    pub(super) notes: Vec<Note>,
    /// Number of submitted I/Os. `ios_max` is the limit of this number.
    pub(super) submitted: u64,
    pub(super) ios_max: u64,
    observer: O,
    depth: u32,
    in_device: u32,
    capacity_sectors: u64,
    max_sectors: u32,
    /// Requests in the device, by tag.
    started: Vec<Option<RequestId>>,
    ios: Vec<Io>,
    free_io: u32,
    bios: u64,
    owners: Vec<Owner>,
    /// Index of the first task of the part of the workload that runs now. Each part counts its
    /// tasks from 0.
    pub(super) first_task: u32,
    /// First sector of the region of the part that runs now.
    pub(super) first_sector: u64,
    /// Index of the task of each context.
    task_of_context: Vec<u32>,
    busy_since_ns: u64,
    finished_ns: u64,
    dispatched: u64,
    device_busy_ns: u64,
    latency: Latencies,
    tasks: Vec<TaskResult>,
    /// For each task that handles completions itself, later than the device reports them: the
    /// completed I/Os that it has not handled yet. Empty if there is no such task.
    unhandled: Vec<Option<VecDeque<Io>>>,
    /// Number of tasks whose I/Os do not count now.
    uncounted: u32,
    /// For each cgroup: number of rests of its tasks, and their total time, ns.
    rests: Vec<(u64, u64)>,
    counts: Counts,
    /// The start of the time that counts, and the values at that start.
    pub(super) tally: Tally,
}

impl<D: Device, O: Observer> Core<D, O> {
    pub(super) fn new(mut driver: Driver, device: D, observer: O) -> Self {
        driver.record_decisions(observer.wants_decisions());
        let card = device.card();
        Self {
            now_ns: 0,
            done: Vec::new(),
            notes: Vec::new(),
            submitted: 0,
            ios_max: u64::MAX,
            observer,
            depth: card.commands_max(),
            in_device: 0,
            capacity_sectors: card.capacity_sectors,
            max_sectors: driver.queue().max_sectors(),
            started: Vec::new(),
            ios: Vec::new(),
            free_io: NONE,
            bios: 0,
            owners: Vec::new(),
            first_task: 0,
            first_sector: 0,
            task_of_context: Vec::new(),
            busy_since_ns: 0,
            finished_ns: 0,
            dispatched: 0,
            device_busy_ns: 0,
            latency: Latencies::default(),
            tasks: Vec::new(),
            unhandled: Vec::new(),
            uncounted: 0,
            rests: Vec::new(),
            counts: Counts::default(),
            tally: Tally::default(),
            driver,
            device,
        }
    }

    /// Adds a task. Task numbers start at 0. All tasks are added before the first event.
    pub(super) fn add_task(&mut self, pid: u32, name: &str, ioprio: IoPriority, cgroup: CgroupId) {
        let context = self.driver.create_context(pid, ioprio, cgroup);
        if self.task_of_context.len() <= context.index() {
            self.task_of_context.resize(context.index() + 1, NONE);
        }
        self.task_of_context[context.index()] = self.owners.len() as u32;
        self.owners.push(Owner { context, partial: None, uncounted: false, keeps_ioprio: false });
        let mut known = self.driver.queue().env().cgroups.names();
        let cgroup = known.nth(cgroup.index()).filter(|_| cgroup != CgroupId::ROOT).unwrap_or_default().to_owned();
        let (name, ioprio) = (name.to_owned(), ioprio.to_string());
        self.tasks.push(TaskResult { pid, name, ioprio, cgroup, ..TaskResult::default() });
    }

    /// Makes the last added task report when it handles a completion. Its latencies then end at
    /// this report.
    pub(super) fn handles_later(&mut self) {
        self.unhandled.resize(self.owners.len() - 1, None);
        self.unhandled.push(Some(VecDeque::new()));
    }

    /// Reports that a task handles the completion of the I/O with this tag.
    pub(super) fn handled(&mut self, task: u32, tag: u32) {
        let task = self.owner(task);
        let Some(Some(unhandled)) = self.unhandled.get_mut(task) else { return };
        let place = unhandled.iter().position(|io| io.tag == tag);
        if let Some(io) = place.and_then(|place| unhandled.remove(place)) {
            self.account_late(&io);
        }
    }

    /// Returns the index of a task of the part that runs now.
    #[inline]
    fn owner(&self, task: u32) -> usize {
        (self.first_task + task) as usize
    }

    /// Makes the last added task keep its ioprio when a recorded I/O has no ioprio.
    pub(super) fn keep_ioprio(&mut self) {
        if let Some(owner) = self.owners.last_mut() {
            owner.keeps_ioprio = true;
        }
    }

    /// Sets the ioprio of `task`, if the recording has an ioprio and it differs from the present
    /// one.
    #[inline]
    pub(super) fn take_ioprio(&mut self, task: u32, ioprio: Option<IoPriority>) {
        let Owner { context, keeps_ioprio, .. } = self.owners[self.owner(task)];
        let ioprio = ioprio.filter(|ioprio| !keeps_ioprio || ioprio.class() != IoClass::None);
        if let Some(ioprio) = ioprio.filter(|ioprio| self.driver.queue().env().contexts.get(context).ioprio != *ioprio)
        {
            self.set_ioprio(task, ioprio);
        }
    }

    /// Sets the ioprio of `task`.
    #[cold]
    pub(super) fn set_ioprio(&mut self, task: u32, ioprio: IoPriority) {
        let task = self.owner(task);
        self.driver.set_ioprio(self.owners[task].context, ioprio);
        let now_ns = self.now_ns;
        self.observer.change(now_ns, &Change::IoPriority { task, ioprio });
    }

    /// Ends the system call of `task`. Returns the time for which the task must rest before it
    /// continues, ns.
    #[inline]
    pub(super) fn rest_ns(&mut self, task: u32) -> u64 {
        let context = self.context(task);
        let rest_ns = self.driver.rest_ns(ORIGIN + self.now_ns, context);
        if rest_ns > 0 && self.tally.has_begun() {
            self.count_rest(context, rest_ns);
        }
        rest_ns
    }

    #[cold]
    fn count_rest(&mut self, context: ContextId, rest_ns: u64) {
        let cgroup = self.driver.queue().env().contexts.get(context).cgroup.index();
        if self.rests.len() <= cgroup {
            self.rests.resize(cgroup + 1, (0, 0));
        }
        self.rests[cgroup].0 += 1;
        self.rests[cgroup].1 += rest_ns;
    }

    /// Sets whether completions of `task` count from now on. By default they count.
    pub(super) fn count(&mut self, task: u32, counts: bool) {
        let task = self.owner(task);
        let uncounted = &mut self.owners[task].uncounted;
        if *uncounted == counts {
            *uncounted = !counts;
            self.uncounted = if counts { self.uncounted - 1 } else { self.uncounted + 1 };
        }
    }

    /// Begins the run.
    pub(super) fn begin(&mut self) {
        for (number, task) in self.tasks.iter().enumerate() {
            self.observer.task(number, task.pid, &task.name);
            let context = self.owners[number].context;
            self.observer.ioprio(number, self.driver.queue().env().contexts.get(context).ioprio);
        }
        self.observer.begin(self.owners.len(), self.depth);
    }

    /// Advances the present time. If the results begin to count before `now_ns`, discards the
    /// earlier results.
    #[inline]
    pub(super) fn pass_until(&mut self, now_ns: u64) {
        if let Some(from_ns) = self.tally.begins(now_ns) {
            self.begin_to_count(from_ns);
        }
        self.now_ns = now_ns;
    }

    /// Makes the run last at least until `end_ns`, so that all compared settings have the same
    /// time.
    pub(super) fn last_until(&mut self, end_ns: u64) {
        self.pass_until(self.now_ns.max(end_ns));
        self.finished_ns = self.finished_ns.max(end_ns);
    }

    /// Records that a job's results count from now on. The first such job also starts the time that
    /// counts.
    pub(super) fn job_counts(&mut self) {
        self.tally.ramped_up(self.now_ns);
        self.pass_until(self.now_ns);
    }

    #[cold]
    fn begin_to_count(&mut self, from_ns: u64) {
        let under_way_ns = if self.in_device > 0 { from_ns - self.busy_since_ns } else { 0 };
        let stat = self.driver.stat(ORIGIN + from_ns).into();
        let controlled = self.driver.queue().controller_waits();
        self.tally.begin(from_ns, self.dispatched, self.device_busy_ns + under_way_ns, stat, controlled);
    }

    /// Returns whether the limit on submitted I/Os is reached.
    #[inline]
    pub(super) fn is_exhausted(&self) -> bool {
        self.submitted >= self.ios_max
    }

    #[inline]
    pub(super) fn now(&self) -> Time {
        ORIGIN + self.now_ns
    }

    pub(super) fn context(&self, task: u32) -> ContextId {
        self.owners[self.owner(task)].context
    }

    /// Returns the version of Linux whose rules the request queue has.
    pub(super) fn kernel(&self) -> KernelVersion {
        self.driver.queue().env().kernel
    }

    pub(super) fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    // ---- submission

    /// Submits an I/O of `task`, in parts if it is too long for the queue.
    /// Returns false if the queue is full. The task must then submit nothing
    /// until it is woken and [`resume`](Self::resume) has succeeded.
    #[inline]
    pub(super) fn submit(&mut self, task: u32, io: &NewIo) -> bool {
        self.submit_with(task, io, Treatment::default())
    }

    /// Submits an I/O like [`submit`](Self::submit), but treats its bios according to `treatment`.
    #[inline]
    pub(super) fn submit_with(&mut self, task: u32, io: &NewIo, treatment: Treatment) -> bool {
        let task = self.first_task + task;
        let (sector, nr_sectors) = self.place(io);
        let &NewIo { op, flags, tag, asked_ns, .. } = io;
        let parts = if nr_sectors <= self.part_max(op) { 1 } else { self.count_parts(nr_sectors) };
        let sync = !op.is_write() || flags.contains(Flags::SYNC);
        let slot = self.allocate_io(Io { asked_ns, tag, task, nr_sectors, parts, op, sync });
        self.submitted += 1;
        self.tasks[task as usize].first_submit_ns.get_or_insert(asked_ns);
        let (issued, part) = (io.issued, io.part);
        self.send(task, Partial { slot, issued, part, treatment, op, flags, sector, nr_sectors }, false)
    }

    /// Issues bios that `task` submits later: fixes their ordinals and their ioprio now. Returns
    /// the values of the first of these bios.
    pub(super) fn issue(&mut self, task: u32, bios: u64) -> Issued {
        let ioprio = self.driver.queue().env().contexts.get(self.context(task)).ioprio;
        Issued { bio: self.next_bios(bios), ioprio }
    }

    /// Gives ordinals to the next `bios` bios. Returns the first ordinal.
    #[inline]
    fn next_bios(&mut self, bios: u64) -> u64 {
        let first = self.bios + 1;
        self.bios += bios;
        first
    }

    /// Moves an I/O into the device's capacity. Returns its first sector and its length.
    #[inline]
    fn place(&mut self, io: &NewIo) -> (u64, u32) {
        if self.first_sector > 0 {
            // Each part of the workload has its own first sector. Positions wrap at the end of the
            // device.
            let nr_sectors = u64::from(io.nr_sectors).min(self.capacity_sectors);
            let sector = (io.sector % self.capacity_sectors + self.first_sector) % self.capacity_sectors;
            return (sector.min(self.capacity_sectors - nr_sectors), nr_sectors as u32);
        }
        if io.sector.checked_add(io.nr_sectors.into()).is_some_and(|end| end <= self.capacity_sectors) {
            return (io.sector, io.nr_sectors);
        }
        self.counts.past_end += 1;
        let nr_sectors = u64::from(io.nr_sectors).min(self.capacity_sectors);
        ((io.sector % self.capacity_sectors).min(self.capacity_sectors - nr_sectors), nr_sectors as u32)
    }

    /// Returns the largest length of a bio, sectors. The limit on transfers does not apply to
    /// discards, because they move no data.
    #[inline]
    fn part_max(&self, op: Op) -> u32 {
        if op == Op::Discard { u32::MAX } else { self.max_sectors }
    }

    #[cold]
    fn count_parts(&mut self, nr_sectors: u32) -> u32 {
        let parts = nr_sectors.div_ceil(self.max_sectors);
        self.counts.split_ios += 1;
        self.counts.split_parts += u64::from(parts);
        parts
    }

    /// Submits the rest of an I/O, or keeps the rest if the queue is full. `again` is true if the
    /// queue was full at an earlier attempt.
    #[inline]
    fn send(&mut self, task: u32, mut left: Partial, mut again: bool) -> bool {
        let context = self.owners[task as usize].context;
        loop {
            let nr_sectors = left.nr_sectors.min(self.part_max(left.op));
            let number = left.issued.map_or_else(|| self.next_bios(1), |issued| issued.bio);
            let cookie = number << SLOT_BITS | u64::from(left.slot);
            let bio = Bio { op: left.op, flags: left.flags, sector: left.sector, nr_sectors, context, cookie };
            let Treatment { at_head, without_ioprio } = left.treatment;
            let ioprio = left.issued.map(|issued| issued.ioprio).or(without_ioprio.then(IoPriority::default));
            let part = match left.part {
                Part::Whole if nr_sectors < left.nr_sectors => Part::First { of_sectors: left.nr_sectors },
                part => part,
            };
            let issued = iosched::Issued { ioprio, part, at_head };
            let submit = self.driver.submit_issued(ORIGIN + self.now_ns, &bio, &issued);
            self.observe(task, &bio, again, submit);
            match submit {
                Submit::Queued(_) | Submit::Merged | Submit::Held => {}
                Submit::Done(done) => self.done.push(done.cookie),
                Submit::Full => {
                    let ioprio = ioprio.unwrap_or(self.driver.queue().env().contexts.get(context).ioprio);
                    left.issued = Some(Issued { bio: number, ioprio });
                    self.wait(task, left);
                    return false;
                }
            }
            again = false;
            (left.issued, left.part) = (None, Part::Rest);
            self.attend();
            left.sector += u64::from(nr_sectors);
            left.nr_sectors -= nr_sectors;
            if left.nr_sectors == 0 {
                return true;
            }
        }
    }

    #[inline]
    fn observe(&mut self, task: u32, bio: &Bio, again: bool, submit: Submit) {
        let taken = match submit {
            Submit::Queued(_) => Taken::Allocated,
            Submit::Merged => Taken::Merged,
            Submit::Done(_) => Taken::Done,
            Submit::Full => Taken::Full,
            Submit::Held => Taken::Held,
        };
        let &Bio { op, flags, sector, nr_sectors, .. } = bio;
        let bio = Submitted {
            task: task as usize,
            bio: bio.cookie >> SLOT_BITS,
            op,
            flags,
            sector,
            nr_sectors,
            again,
            taken,
        };
        self.observer.submitted(self.now_ns, &bio);
    }

    #[cold]
    fn wait(&mut self, task: u32, left: Partial) {
        self.report_decisions();
        self.counts.waits += 1;
        self.counts.late_ios += 1;
        self.owners[task as usize].partial = Some(left);
    }

    /// Sends the rest of an I/O for which the queue had no room. Returns true if
    /// `task` may submit other I/Os.
    pub(super) fn resume(&mut self, task: u32) -> bool {
        let owner = self.owner(task);
        match self.owners[owner].partial.take() {
            Some(left) => self.send(owner as u32, left, true),
            None => true,
        }
    }

    /// Counts I/Os that were submitted late.
    pub(super) fn count_late(&mut self, ios: u64) {
        self.counts.late_ios += ios;
    }

    /// Returns whether `task` waits for room in the queue.
    #[inline]
    pub(super) fn is_waiting(&self, task: u32) -> bool {
        self.owners[self.owner(task)].partial.is_some()
    }

    /// Makes `task` collect its requests on a plug from now on.
    pub(super) fn plug(&mut self, task: u32) {
        let owner = self.owner(task);
        self.observer.plug(self.now_ns, owner, true);
        self.driver.plug(self.owners[owner].context);
    }

    /// Does only one step of [`unplug`](Self::unplug). A recording contains each step separately.
    pub(super) fn unplug_once(&mut self, task: u32) {
        let _ = self.driver.unplug(self.now(), self.context(task));
        self.attend();
    }

    /// Sets the number of requests that the device takes at the same time.
    pub(super) fn set_depth(&mut self, depth: u32) {
        self.depth = depth;
    }

    /// Turns splitting off, because the submitter has split the I/Os already.
    pub(super) fn take_whole(&mut self) {
        self.max_sectors = u32::MAX;
    }

    /// Ends the plug of `task`.
    pub(super) fn unplug(&mut self, task: u32) {
        let owner = self.owner(task);
        let context = self.owners[owner].context;
        while self.driver.unplug(self.now(), context) {
            self.attend();
        }
        self.attend();
        self.observer.plug(self.now_ns, owner, false);
    }

    /// Gives the rest of the turn of `from` to `to`, because `from` waits for the work of `to`.
    pub(super) fn yield_to(&mut self, from: u32, to: u32) {
        let (from, to) = (self.context(from), self.context(to));
        let now = self.now();
        self.driver.yield_to(now, from, to);
        self.report_decisions();
    }

    /// Reports that `task` sleeps because it has dirtied much memory.
    pub(super) fn dirtier_sleeps(&mut self, task: u32) {
        let (now, context) = (self.now(), self.owners[task as usize].context);
        self.driver.dirtier_sleeps(now, context);
        self.report_decisions();
    }

    /// Drops the parts that `task` could not submit when the queue was full.
    pub(super) fn give_up(&mut self, task: u32) {
        let owner = self.owner(task);
        if let Some(left) = self.owners[owner].partial.take() {
            let unsent = left.nr_sectors.div_ceil(self.part_max(left.op)).max(1);
            let io = &mut self.ios[left.slot as usize];
            io.parts -= unsent;
            if io.parts == 0 {
                self.release_io(left.slot);
            }
        }
    }

    /// Ends `task`.
    pub(super) fn exit(&mut self, task: u32) {
        self.give_up(task);
        let context = self.context(task);
        let now = self.now();
        self.driver.exit(now, context);
        self.report_decisions();
    }

    // ---- the queue run

    /// Reports decisions, and starts the requests that the scheduler wants to start at once. Every
    /// method that submits calls this method at its end.
    #[inline]
    fn attend(&mut self) {
        self.report_decisions();
        while let Some(id) = self.driver.kicked(ORIGIN + self.now_ns, self.in_device < self.depth) {
            self.report_decisions();
            self.start(id);
        }
        self.report_decisions();
    }

    #[inline]
    pub(super) fn report_decisions(&mut self) {
        if self.observer.wants_decisions() {
            for (at, decision) in self.driver.take_decisions() {
                let decision = decision.rebased(ORIGIN, |cookie| cookie >> SLOT_BITS);
                self.observer.decision(at.since(ORIGIN), &decision);
            }
        }
    }

    /// Continues the turn after an event: starts requests. Returns a task that may submit again.
    /// The caller must let this task continue before the next call. Returns `None` at the end of
    /// the turn.
    #[inline]
    pub(super) fn turn(&mut self) -> Option<u32> {
        loop {
            let step = self.driver.turn(ORIGIN + self.now_ns, self.in_device < self.depth);
            self.report_decisions();
            match step? {
                Step::Start(id) => self.start(id),
                Step::Wake(context) => return Some(self.task_of_context[context.index()]),
            }
        }
    }

    /// Makes the next turn run the queue once more.
    pub(super) fn rerun(&mut self) {
        self.driver.rerun(self.now());
        self.report_decisions();
        self.observer.rerun(self.now_ns);
    }

    #[inline]
    fn start(&mut self, id: RequestId) {
        let request = self.driver.queue().request(id);
        let (op, sector) = (request.op(), request.sector());
        let nr_sectors = if op.has_data() { request.nr_sectors() } else { 0 };
        let (fua, context, hw_queue) = (request.needs_fua(), request.context(), request.hw_queue());
        let command = Command { tag: id.index() as u32, op, sector, nr_sectors, fua };
        self.device.submit_to(Time::from_ns(self.now_ns), hw_queue, command);
        if self.started.len() <= id.index() {
            self.started.resize(id.index() + 1, None);
        }
        self.started[id.index()] = Some(id);
        if self.in_device == 0 {
            self.busy_since_ns = self.now_ns;
        }
        self.in_device += 1;
        self.dispatched += 1;
        let task = self.task_of_context[context.index()] as usize;
        let request = Dispatched { task, op, sector, nr_sectors };
        self.observer.dispatched(self.now_ns, &request, self.driver.queue().waiting(), self.in_device);
    }

    // ---- completion, timer

    /// Handles the device's next event. Returns whether it is a completion.
    #[inline]
    pub(super) fn complete(&mut self, result: Result<(), IoError>) -> bool {
        let Some(tag) = self.device.advance(Time::from_ns(self.now_ns)) else {
            return false;
        };
        let Some(id) = self.started[tag as usize].take() else {
            unreachable!("the device reports an unknown command");
        };
        self.in_device -= 1;
        if self.in_device == 0 {
            self.device_busy_ns += self.now_ns - self.busy_since_ns;
        }
        let done = &mut self.done;
        self.driver.complete(ORIGIN + self.now_ns, id, result, |bio, _| done.push(bio.cookie));
        self.report_decisions();
        true
    }

    /// Takes a request back from the device without completing it. Returns false if the device does
    /// not have the request.
    pub(super) fn requeue(&mut self, tag: u32) -> bool {
        let Some(id) = self.started.get_mut(tag as usize).and_then(Option::take) else { return false };
        self.in_device -= 1;
        self.driver.requeue(self.now(), id);
        true
    }

    /// Writes a tunable of the scheduler. If the scheduler has no tunable of that name, writes the
    /// attribute of the queue.
    ///
    /// # Errors
    /// If the kernel would refuse the same write to the file.
    pub(super) fn write_tunable(&mut self, name: &str, value: &str) -> Result<(), TunableError> {
        let (now, driver) = (self.now(), &mut self.driver);
        match driver.set_tunable(now, name, value) {
            Err(TunableError::Unknown { .. }) if driver.queue().attribute(name).is_ok() => {
                driver.set_attribute(now, name, value)
            }
            written => written,
        }
    }

    /// Handles an interrupt of the processor's clock. Returns whether the queue must then be run.
    pub(super) fn clock_interrupt(&mut self) -> bool {
        let runs = self.driver.clock_interrupt(self.now());
        self.report_decisions();
        runs
    }

    /// Handles the scheduler's timer. Returns whether the queue must then be run.
    pub(super) fn timer(&mut self) -> bool {
        let runs = self.driver.timer(self.now());
        self.report_decisions();
        runs
    }

    /// Records the completion of a bio. If this completes its I/O, returns the task and the tag of
    /// the I/O.
    #[inline]
    pub(super) fn bio_done(&mut self, cookie: u64) -> Option<(u32, u32)> {
        self.observer.bio_done(self.now_ns, cookie >> SLOT_BITS);
        let slot = (cookie & ((1 << SLOT_BITS) - 1)) as u32;
        let io = &mut self.ios[slot as usize];
        io.parts -= 1;
        if io.parts > 0 {
            return None;
        }
        let io = *io;
        self.release_io(slot);
        match self.unhandled.get_mut(io.task as usize) {
            Some(Some(unhandled)) if io.op != Op::Flush => unhandled.push_back(io),
            _ => self.account(&io),
        }
        Some((io.task, io.tag))
    }

    /// Counts an I/O whose task handled its completion late. The function is separate, so that the
    /// compiler still inlines [`Self::account`] in [`Self::bio_done`].
    #[inline(never)]
    fn account_late(&mut self, io: &Io) {
        self.account(io);
    }

    #[inline(always)]
    fn account(&mut self, io: &Io) {
        let &Io { asked_ns, task, nr_sectors, op, sync, .. } = io;
        let latency_ns = self.now_ns - asked_ns;
        self.finished_ns = self.now_ns;
        if !self.tally.has_begun() || (self.uncounted > 0 && self.owners[task as usize].uncounted) {
            return;
        }
        let bytes = u64::from(nr_sectors) * SECTOR_BYTES;
        let task_result = &mut self.tasks[task as usize];
        match (op, sync) {
            (Op::Read, _) => {
                task_result.bytes_read += bytes;
                self.latency.reads.record(latency_ns);
            }
            (Op::Write, sync) => {
                task_result.bytes_written += bytes;
                let kind = if sync { &mut self.latency.writes_sync } else { &mut self.latency.writes_async };
                kind.record(latency_ns);
            }
            _ => self.latency.others.record(latency_ns),
        }
        task_result.latency.record(latency_ns);
        task_result.last_completion_ns = Some(self.now_ns);
        task_result.progress.completed(self.now_ns);
        let io = Completed { task: task as usize, op, nr_sectors, sync, latency_ns };
        self.observer.completed(self.now_ns, &io);
    }

    #[inline]
    fn allocate_io(&mut self, io: Io) -> u32 {
        let slot = self.free_io;
        if slot != NONE {
            self.free_io = self.ios[slot as usize].tag;
            self.ios[slot as usize] = io;
            return slot;
        }
        let slot = self.ios.len() as u32;
        assert!(slot < 1 << SLOT_BITS, "there are fewer than 2^28 I/Os in flight");
        self.ios.push(io);
        slot
    }

    #[inline]
    fn release_io(&mut self, slot: u32) {
        self.ios[slot as usize].tag = self.free_io;
        self.free_io = slot;
    }

    // ---- the result

    pub(super) fn into_result(mut self, events: u64) -> RunResult {
        for io in std::mem::take(&mut self.unhandled).into_iter().flatten().flatten() {
            self.account_late(&io);
        }
        self.observer.end(self.now_ns);
        if self.in_device > 0 {
            self.device_busy_ns += self.now_ns - self.busy_since_ns;
        }
        let Counts { split_ios, split_parts, waits, late_ios, past_end } = self.counts;
        if split_ios > 0 {
            let max_sectors_kb = u64::from(self.max_sectors) / 2;
            self.notes.push(Note::Split { ios: split_ios, parts: split_parts, max_sectors_kb });
        }
        if waits > 0 {
            self.notes.push(Note::WaitedForAllocation { times: waits, ios: late_ios });
        }
        let queue = self.driver.queue();
        let waits = queue.controller_waits().iter().filter_map(|&all| self.tally.counted_waits(all));
        for ControllerWaits { controller, cgroup, bios, wait_ns } in waits {
            let (controller, cgroup) = (controller.to_owned(), queue.env().cgroups.get(cgroup).name.clone());
            self.notes.push(Note::Throttled { controller, cgroup, bios, wait_ns });
        }
        let cgroups = queue.env().cgroups.names();
        let rested = cgroups.zip(&self.rests).filter(|(_, (rests, _))| *rests > 0);
        let rested =
            rested.map(|(cgroup, &(rests, rest_ns))| Note::Rested { cgroup: cgroup.to_owned(), rests, rest_ns });
        self.notes.extend(rested);
        if past_end > 0 {
            self.notes.push(Note::PastEnd { ios: past_end, capacity_sectors: self.capacity_sectors });
        }
        for task in &mut self.tasks {
            task.ios = task.latency.count();
        }
        // If the run ended before counting began, nothing counts.
        if !self.tally.has_begun() {
            self.begin_to_count(self.now_ns);
        }
        let now = self.now();
        let queue: QueueStat = self.driver.stat(now).into();
        let mut result = RunResult {
            finished_ns: self.finished_ns,
            ios: self.tasks.iter().map(|task| task.ios).sum(),
            requests_dispatched: self.dispatched - self.tally.dispatched,
            bytes_read: self.tasks.iter().map(|task| task.bytes_read).sum(),
            bytes_written: self.tasks.iter().map(|task| task.bytes_written).sum(),
            latency: self.latency,
            tasks: self.tasks,
            device_busy_ns: self.device_busy_ns.saturating_sub(self.tally.busy_ns),
            device_unwatched: false,
            queue: queue.since(&self.tally.stat),
            events,
            notes: self.notes,
            jobs: Vec::new(),
            app: None,
            sync_calls: SyncCalls::default(),
            counted_from_ns: self.tally.counted_from_ns(),
            lateness: None,
            io_timeline: None,
        };
        result.find_contention();
        result
    }
}
