//! A host that obeys the contract of the request queue, with tasks and a device. The host reports
//! all events to the model.

mod control;
mod drain;
mod submit;

use std::fmt::Write as _;

use iosched::{BioDone, CgroupId, ContextId, Driver, IoError, Op, RequestId, RequestQueue, Rerun, Step, Time};

use crate::config::Config;
use crate::coverage::Coverage;
use crate::model::audit::Audit;
use crate::model::{Layer, Model, Seen};
use crate::operation::Operation;
use crate::random::Digest;
use crate::violation::{Checked, Violation, ensure};
use submit::{Recent, Remainder};

/// Largest number of requests that a plug holds.
const PLUG_MAX: u32 = 16;
/// Largest number of cgroups.
const CGROUPS_MAX: usize = 12;
/// Time at which a run ends, because elevators count time in 64 bits.
const END_OF_TIME: Time = Time::from_ns(1 << 62);

/// A process.
#[derive(Debug)]
struct Task {
    context: ContextId,
    pid: u32,
    /// The rest of an I/O that found the queue full. The task waits for room.
    remainder: Option<Remainder>,
    plugged: bool,
    /// Number of requests on the task's plug.
    on_plug: u32,
    last_end: u64,
    recent: Recent,
}

/// The host of one run.
pub struct Host {
    driver: Driver,
    model: Model,
    audit: Option<Audit>,
    config: Config,
    now: Time,
    tasks: Vec<Task>,
    pids: u32,
    cgroup_ids: Vec<CgroupId>,
    recent: Recent,
    /// Requests in the device.
    in_device: Vec<RequestId>,
    done: Vec<(BioDone, Result<(), IoError>)>,
    /// Number of times that the timer has fired since the last dispatch or completion.
    fired: u32,
    /// Whether wbt was on at any time, so that its timer may be set.
    throttled: bool,
    /// Whether a tunable was set to a very large value. The elevator may then wait for days.
    endless: bool,
    /// Whether a switch of elevators was in progress when decisions were last examined.
    switching: bool,
    digest: Digest,
    decisions: Digest,
    coverage: Coverage,
}

impl Host {
    /// Creates the host of `config`. If `record` is true, the host records and audits decisions.
    ///
    /// # Errors
    /// If a property is already violated.
    pub fn new(config: &Config, record: bool) -> Result<Self, Violation> {
        let queue = RequestQueue::new(config.origin, &config.queue, config.first());
        let mut host = Self {
            model: Model::new(&config.queue, config.origin),
            audit: None,
            config: config.clone(),
            now: config.origin,
            tasks: Vec::new(),
            pids: 0,
            cgroup_ids: vec![CgroupId::ROOT],
            recent: Recent::default(),
            in_device: Vec::new(),
            done: Vec::new(),
            fired: 0,
            throttled: config.queue.throttles_writeback,
            endless: false,
            switching: false,
            digest: Digest::default(),
            decisions: Digest::default(),
            coverage: Coverage::default(),
            driver: Driver::new(queue, Rerun::LINUX),
        };
        if record {
            host.driver.record_decisions(true);
            host.audit = Some(Audit::new(host.driver.queue(), config.queue.hz));
            host.look_at_decisions()?;
        }
        if let Some(nr_requests) = config.nr_requests {
            let set = host.driver.set_attribute(host.now, "nr_requests", &nr_requests.to_string());
            ensure!(set.is_ok(), Control, "nr_requests={nr_requests}: {set:?}");
        }
        host.preset(config.preset)?;
        for _ in 0..config.tasks {
            host.start_task(iosched::IoPriority::default(), 0)?;
        }
        Ok(host)
    }

    /// Does one operation, and then everything else that the contract of the queue requires of a
    /// host.
    ///
    /// # Errors
    /// If a property is violated.
    #[inline]
    pub fn apply(&mut self, operation: &Operation) -> Checked {
        if self.now >= END_OF_TIME {
            return Ok(());
        }
        self.coverage.operations += 1;
        self.do_operation(operation)?;
        if self.layer() == Layer::Multi { self.reconcile() } else { Ok(()) }
    }

    #[inline]
    fn do_operation(&mut self, operation: &Operation) -> Checked {
        match *operation {
            Operation::Submit { task, op, flags, place, nr_sectors, run } => {
                if self.submit(task, op, flags, place, nr_sectors)? && run {
                    self.run(u32::MAX)?;
                }
                Ok(())
            }
            Operation::Plug { task } => self.plug(task),
            Operation::Unplug { task } => self.unplug(usize::from(task) % self.tasks.len()),
            Operation::Run { requests } => self.run(u32::from(requests)),
            Operation::Complete { pick, failed, after_ns, run } => {
                self.now = self.now + u64::from(after_ns);
                if self.complete(usize::from(pick), failed)? && run {
                    self.run(u32::MAX)?;
                }
                Ok(())
            }
            Operation::Timer { late_ns } => self.timer(u64::from(late_ns)),
            Operation::Advance { ns } => {
                self.now = self.now + ns;
                Ok(())
            }
            Operation::Tunable { which, value } => self.write_tunable(which, value),
            Operation::Attribute { which, value } => self.write_attribute(which, value),
            Operation::Priority { task, ioprio } => {
                let context = self.context(task);
                self.driver.set_ioprio(context, ioprio);
                Ok(())
            }
            Operation::Start { ioprio, cgroup } => self.start_task(ioprio, cgroup),
            Operation::Exit { task } => self.exit_task(task),
            Operation::CreateCgroup { parent, weight, leaf_weight } => self.create_cgroup(parent, weight, leaf_weight),
            Operation::Weights { cgroup, weight, leaf_weight } => self.change_weights(cgroup, weight, leaf_weight),
            Operation::Yield { from, to } => self.yield_to(from, to),
            Operation::Move { task, cgroup } => self.move_task(task, cgroup),
            Operation::RemoveCgroup { cgroup } => self.remove_cgroup(cgroup),
            Operation::Requeue { pick, run } => {
                self.requeue(usize::from(pick))?;
                if run { self.run(u32::MAX) } else { Ok(()) }
            }
            Operation::Switch { to } => self.switch(to),
            Operation::Drain => self.drain(),
        }
    }

    /// Compares the queue's counters with its contents, and its statistics with the model's sums.
    ///
    /// # Errors
    /// If the two sides differ.
    ///
    /// # Panics
    /// If a check of the library itself fails.
    pub fn check(&mut self) -> Checked {
        self.driver.queue().check();
        self.model.sums.advance(self.now);
        self.model.sums.check(self.driver.stat(self.now))?;
        self.check_waiters()?;
        let env = self.driver.queue().env();
        self.model.check_memory(env.contexts.len(), env.requests.capacity())
    }

    /// Returns a hash of all events so far, without decisions.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.digest.value()
    }

    /// Returns a hash of all decisions so far.
    #[must_use]
    pub fn decisions_digest(&self) -> u64 {
        self.decisions.value()
    }

    /// Returns the counts of events.
    #[must_use]
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    fn context(&self, task: u8) -> ContextId {
        self.tasks[usize::from(task) % self.tasks.len()].context
    }

    fn arena(&self) -> usize {
        self.driver.queue().env().requests.len()
    }

    fn layer(&self) -> Layer {
        if self.driver.queue().is_multi_queue() { Layer::Multi } else { Layer::Single }
    }

    /// Counts requests that other requests absorbed during their insertion.
    fn reconcile(&mut self) -> Checked {
        let arena = self.arena();
        self.coverage.absorbed += self.model.reconcile(self.now, arena, self.driver.queue().max_sectors())?;
        Ok(())
    }

    fn is_cfq(&self) -> bool {
        crate::model::audit::keeps_sync_apart(self.driver.queue().scheduler())
    }

    // ---- the device

    /// Carries out a turn in which the device takes at most `requests` requests.
    #[inline]
    fn run(&mut self, requests: u32) -> Checked {
        let mut left = requests;
        loop {
            let has_room = left > 0 && self.has_room();
            let step = self.driver.turn(self.now, has_room);
            match step {
                Some(Step::Start(id)) => {
                    left -= 1;
                    self.start(id)?;
                }
                Some(Step::Wake(context)) => self.wake(context)?,
                None => {
                    self.look_at_decisions()?;
                    if has_room {
                        self.digest.add(1);
                        self.check_progress()?;
                    }
                    return Ok(());
                }
            }
        }
    }

    fn has_room(&self) -> bool {
        self.in_device.len() < self.config.depth as usize
    }

    /// Gives a request to the device.
    #[inline]
    fn start(&mut self, id: RequestId) -> Checked {
        let request = self.driver.queue().request(id);
        let seen = Seen {
            cookie: self.driver.queue().cookie(id),
            sector: request.sector(),
            nr_sectors: request.nr_sectors(),
            op: request.op(),
            sync: request.is_sync(),
            fua: request.needs_fua(),
        };
        // Reads the tags of the requests in the device again each time, because a switch of
        // elevators changes tags.
        let tag_of = |id: RequestId| {
            let request = self.driver.queue().request(id);
            request.tag().map(|tag| (request.hw_queue(), tag))
        };
        if let Some(tag) = tag_of(id) {
            let other = self.in_device.iter().find(|&&other| tag_of(other) == Some(tag));
            ensure!(other.is_none(), TagsOnce, "both {id:?} and {other:?} in the device have {tag:?}");
        }
        self.digest.add(2 + ((id.index() as u64) << 8));
        self.digest.add(seen.cookie);
        self.digest.add(seen.sector ^ u64::from(seen.nr_sectors) << 48);
        self.fired = 0;
        self.coverage.requests += 1;
        self.coverage.flushes += u64::from(seen.op == Op::Flush);
        let arena = self.arena();
        self.model.dispatched(self.now, id.index(), seen, arena)?;
        self.in_device.push(id);
        self.look_at_decisions()
    }

    /// Returns the number of requests that the elevator holds or has released.
    /// Requests that wait for a task, a flush or a switch do not count.
    fn in_elevator(&self) -> usize {
        let on_plugs: u32 = self.tasks.iter().map(|task| task.on_plug).sum();
        self.driver.queue().waiting() - on_plugs as usize
    }

    /// Checks, after the queue dispatched no request, that the queue waits for a coming event.
    #[inline]
    fn check_progress(&mut self) -> Checked {
        if !self.in_device.is_empty() {
            return Ok(());
        }
        ensure!(!self.driver.queue().is_switching(), Switching, "a switch waits, although no request is in the device");
        let waiting = self.in_elevator();
        ensure!(!self.model.waiting_for_flush(), Progress, "a flush is due, but was not dispatched");
        if waiting == 0 {
            return Ok(());
        }
        if self.layer() == Layer::Multi && self.tasks.iter().any(|task| task.plugged) {
            // The host does not know how many requests are on plugs.
            return Ok(());
        }
        let name = self.driver.queue().scheduler();
        if name == "mq-deadline" {
            // After an expiry time becomes shorter, mq-deadline computes a time of insertion for
            // queued requests that is too late. mq-deadline waits until this time.
            self.coverage.idle += 1;
            return Ok(());
        }
        ensure!(
            !matches!(name, "noop" | "deadline" | "none" | "kyber" | "adios"),
            Progress,
            "{waiting} requests wait and none is in the device, but {name} dispatches no request"
        );
        ensure!(
            self.driver.queue().next_timer().is_some(),
            Progress,
            "{waiting} requests wait and none is in the device, but no timer is set"
        );
        // The second timer of cfq-2.6.16, which is for the idle class, may fire too early.
        let in_vain_max = match name {
            "cfq-2.6.16" => 4,
            // Windows of wbt end with separate timers. These timers are shorter than bfq's waits.
            _ if self.throttled && self.endless => u32::MAX,
            _ if self.throttled => 64,
            _ => 2,
        };
        ensure!(
            self.fired < in_vain_max,
            Progress,
            "{waiting} requests wait, and the timer fired {} times in vain",
            self.fired
        );
        self.coverage.idle += 1;
        Ok(())
    }

    /// Makes the device give back one of its requests, unless it is a flush.
    fn requeue(&mut self, pick: usize) -> Checked {
        if self.in_device.is_empty() {
            return Ok(());
        }
        let at = pick % self.in_device.len();
        let id = self.in_device[at];
        if self.model.is_flush(id.index()) {
            return Ok(());
        }
        self.in_device.remove(at);
        self.coverage.requeues += 1;
        self.driver.requeue(self.now, id);
        self.digest.add(13 + ((id.index() as u64) << 8));
        self.model.given_back(id.index())?;
        self.look_at_decisions()?;
        self.attend_to_kick()
    }

    /// Completes one of the requests in the device. Returns whether there was one.
    #[inline]
    fn complete(&mut self, pick: usize, failed: bool) -> Result<bool, Violation> {
        if self.in_device.is_empty() {
            return Ok(false);
        }
        let id = if self.config.out_of_order {
            let at = pick % self.in_device.len();
            self.in_device.swap_remove(at)
        } else {
            self.in_device.remove(0)
        };
        self.fired = 0;
        let result = if failed { Err(IoError(5)) } else { Ok(()) };
        self.coverage.errors += u64::from(failed);
        self.done.clear();
        let done = &mut self.done;
        let switching = self.driver.queue().is_switching();
        self.driver.complete(self.now, id, result, |bio, result| done.push((bio, result)));
        self.digest.add(3 + ((id.index() as u64) << 8) + u64::from(failed));
        for (bio, _) in &self.done {
            self.digest.add(bio.cookie);
        }
        self.model.completed(self.now, id.index(), result, &self.done)?;
        if self.layer() == Layer::Multi {
            // The switch may have waited for this request. The queue then inserts the requests that
            // it held back.
            self.reconcile()?;
        }
        self.look_at_decisions()?;
        self.attend_to_takeover(switching);
        if let Some(audit) = &mut self.audit {
            self.done.iter().for_each(|(bio, _)| audit.finished(bio.cookie));
        }
        // Waiting tasks continue, even if no request is dispatched.
        self.run(0)?;
        Ok(true)
    }

    /// Waits for the timer and lets it fire.
    fn timer(&mut self, late_ns: u64) -> Checked {
        let Some(at) = self.driver.next_timer() else {
            self.driver.timer(self.now);
            return Ok(());
        };
        // Before the due time, the timer must have no effect.
        if at > self.now {
            self.driver.timer(self.now);
            ensure!(self.driver.next_timer() == Some(at), Progress, "a timer fired before its time");
        }
        self.now = self.now.max(at) + late_ns;
        self.driver.timer(self.now);
        self.digest.add(4);
        self.coverage.timers += 1;
        self.fired += 1;
        self.look_at_decisions()?;
        self.run(u32::MAX)
    }

    /// Starts the requests that the elevator wants to start immediately.
    #[inline]
    fn attend_to_kick(&mut self) -> Checked {
        while let Some(id) = self.driver.kicked(self.now, self.has_room()) {
            self.digest.add(5);
            self.coverage.kicks += 1;
            self.start(id)?;
        }
        self.look_at_decisions()
    }

    /// Audits the decisions of the last call.
    #[inline]
    fn look_at_decisions(&mut self) -> Checked {
        if let Some(at) = self.driver.queue().next_timer() {
            self.digest.add(at.as_ns());
        }
        let Some(audit) = &mut self.audit else { return Ok(()) };
        if std::mem::replace(&mut self.switching, self.driver.queue().is_switching())
            != self.driver.queue().is_switching()
        {
            audit.tunables_changed(self.driver.queue());
        }
        let (max_sectors, layer) = (self.driver.queue().max_sectors(), self.layer());
        let Some(audit) = &mut self.audit else { return Ok(()) };
        for (at, decision) in self.driver.take_decisions() {
            ensure!(at == self.now, Determinism, "{decision:?} has the time {at}, but the time is {}", self.now);
            // Writing to a hash cannot fail.
            let _ = write!(self.decisions, "{decision:?}");
            self.coverage.count(&decision);
            audit.take(&self.model, self.now, layer, &decision, max_sectors)?;
        }
        self.coverage.expired = audit.expired();
        Ok(())
    }
}
