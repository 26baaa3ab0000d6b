//! Replay of a recording of a served disk's driver in the engine. The replay checks that the
//! prediction equals the real run.
//!
//! The engine runs by its own rules, event by event and turn by turn. The recording supplies the
//! completions of the device, the times at which timers took effect, and the arrivals. The engine
//! has a turn after each completion, timer and rerun, and after all arrivals of one time. The
//! replay fails if the recording has other turns or other decisions.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use iosched::recording::{Record, What};
use iosched::{Bio, CgroupId, ContextId, Decision, Driver, Due, IoError, Issued, Registry, RequestQueue, Time};
use iosched_disk::{Card, Command, Device};

use super::ORIGIN;
use super::core::{Core, NewIo, Treatment};
use super::drive::{Source, drive_one};
use crate::observer::Observer;
use crate::plan::{Limit, SimError};

/// Largest number of decisions by which the engine may be ahead of the recording, or the recording
/// ahead of the engine.
const AHEAD_MAX: usize = 1 << 20;
/// Largest number of requests in a device. A recording with more requests is invalid.
const DEPTH_MAX: u32 = 1 << 20;
/// First invalid time. Schedulers compute times with 64 bits, so later times in a recording could
/// overflow.
const END_OF_TIME: Time = Time::from_ns(1 << 62);

/// Counts of a replayed recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Number of records, including decisions.
    pub records: u64,
    /// Number of submitted bios.
    pub bios: u64,
    /// Number of requests that the device completed.
    pub requests: u64,
    /// Number of compared decisions, which were all equal.
    pub decisions: u64,
}

/// Reason why a recording cannot be replayed, or why the replay failed.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError<E: std::error::Error + 'static> {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(E),
    /// The recording does not begin with the creation of the queue.
    #[error("record {record}: a recording must begin with the creation of the queue")]
    Beginning {
        /// Number of the record, from 1.
        record: u64,
    },
    /// The recording contains an impossible event.
    #[error("record {record}: {problem}")]
    Impossible {
        /// Number of the record, from 1.
        record: u64,
        /// Description of the problem.
        problem: String,
    },
    /// The engine diverges from the recording.
    #[error("record {record}, at {at_ns} ns: the recording has {recorded}, but the simulator has {found}")]
    Diverged {
        /// Number of the record, from 1.
        record: u64,
        /// Time of the record, ns since the beginning.
        at_ns: u64,
        /// Recorded event or decision.
        recorded: String,
        /// Event or decision of the engine.
        found: String,
    },
}

/// Problem of a recording. The replay reports it at the end.
enum Trouble<E> {
    Read(E),
    Beginning,
    Impossible(String),
    Diverged { at: Time, recorded: String, found: String },
}

/// Records as they are read.
trait Recording: Iterator<Item = Result<Record<Self::Decided>, Self::Unread>> {
    /// Type of a recorded decision.
    type Decided: PartialEq<Decision> + fmt::Debug;
    /// Error of a record that cannot be read.
    type Unread;
}

impl<D, E, I> Recording for I
where
    D: PartialEq<Decision> + fmt::Debug,
    I: Iterator<Item = Result<Record<D>, E>>,
{
    type Decided = D;
    type Unread = E;
}

/// State of a recording in replay.
struct Tape<R: Recording> {
    records: R,
    /// The next record that is not a decision.
    head: Option<Record<R::Decided>>,
    replayed: Replayed,
    /// Recorded decisions that the engine has not made yet. The field `taken` has decisions of the
    /// engine that the recording has not reached yet.
    recorded: VecDeque<(Time, R::Decided)>,
    taken: VecDeque<(Time, Decision)>,
    trouble: Option<Trouble<R::Unread>>,
}

impl<R: Recording> Tape<R> {
    /// Advances to the next record that is not a decision.
    fn advance(&mut self) {
        self.head = None;
        while self.trouble.is_none() {
            match self.records.next() {
                Some(Ok(Record { at, what: What::Decision(decision) })) => {
                    self.replayed.records += 1;
                    self.recorded.push_back((at, decision));
                    self.compare();
                }
                Some(Ok(record)) => {
                    self.replayed.records += 1;
                    if record.at > END_OF_TIME {
                        self.impossible("the time is too large for a recording");
                        return;
                    }
                    self.head = Some(record);
                    return;
                }
                Some(Err(error)) => self.trouble = Some(Trouble::Read(error)),
                None => return,
            }
        }
    }

    /// Records a decision of the engine.
    fn taken(&mut self, at: Time, decision: Decision) {
        self.taken.push_back((at, decision));
        self.compare();
    }

    fn compare(&mut self) {
        while let (Some((recorded_at, recorded)), Some((at, found))) = (self.recorded.front(), self.taken.front()) {
            if recorded_at != at || recorded != found {
                let recorded = format!("at {} ns {recorded:?}", recorded_at.since(ORIGIN));
                self.diverge(*at, recorded, format!("{found:?}"));
                return;
            }
            self.recorded.pop_front();
            self.taken.pop_front();
            self.replayed.decisions += 1;
        }
        if self.recorded.len().max(self.taken.len()) > AHEAD_MAX {
            let (recorded, found) = (self.recorded.len(), self.taken.len());
            self.diverge(ORIGIN, format!("{recorded} more decisions"), format!("{found} more decisions"));
        }
    }

    fn diverge(&mut self, at: Time, recorded: String, found: String) {
        self.trouble.get_or_insert(Trouble::Diverged { at, recorded, found });
        self.head = None;
    }

    /// Ends the recording. It is an error if only the engine or only the recording has a further
    /// decision.
    fn end(&mut self) {
        if let Some(head) = self.head.take() {
            self.diverge(head.at, format!("{:?}", head.what), "no such event at this time".to_owned());
        }
        if self.trouble.is_none()
            && let Some(at) = self.recorded.front().map(|&(at, _)| at).or(self.taken.front().map(|&(at, _)| at))
        {
            let first = |some: Option<String>| some.unwrap_or_else(|| "no more decisions".to_owned());
            let recorded = first(self.recorded.front().map(|(_, decision)| format!("{decision:?}")));
            let found = first(self.taken.front().map(|(_, decision)| format!("{decision:?}")));
            self.diverge(at, recorded, found);
        }
    }

    fn impossible(&mut self, problem: impl Into<String>) {
        self.trouble.get_or_insert(Trouble::Impossible(problem.into()));
        self.head = None;
    }

    /// Returns the next record if it is an arrival.
    fn take_arrival(&mut self) -> Option<Record<R::Decided>> {
        self.head.take_if(|head| is_arrival(&head.what))
    }

    /// Returns the time of the next record, ns since the beginning, if `which` returns true for
    /// this record. Otherwise returns `u64::MAX`.
    fn due_ns(&self, which: impl Fn(&What<R::Decided>) -> bool) -> u64 {
        self.head.as_ref().filter(|head| which(&head.what)).map_or(u64::MAX, |head| head.at.since(ORIGIN))
    }

    /// Begins or continues a turn. The next record must be this turn.
    fn turn(&mut self, at: Time) {
        match &self.head {
            Some(Record { what: What::Turn, .. }) => self.advance(),
            Some(other) => {
                let recorded = format!("{:?}", other.what);
                self.diverge(at, recorded, "a turn".to_owned());
            }
            None => {}
        }
    }
}

type Shared<R> = Rc<RefCell<Tape<R>>>;

/// The device of a recording. It completes requests at the recorded times.
struct RecordedDevice<R: Recording> {
    tape: Shared<R>,
    card: Card,
    has: Vec<bool>,
}

impl<R: Recording> Device for RecordedDevice<R> {
    fn card(&self) -> &Card {
        &self.card
    }

    fn submit(&mut self, _: Time, command: Command) {
        let tag = command.tag as usize;
        if self.has.len() <= tag {
            self.has.resize(tag + 1, false);
        }
        self.has[tag] = true;
    }

    fn next_event(&self) -> Option<Time> {
        let due_ns = self.tape.borrow().due_ns(|what| matches!(what, What::Complete { .. }));
        (due_ns != u64::MAX).then(|| Time::from_ns(due_ns))
    }

    fn advance(&mut self, now: Time) -> Option<u32> {
        let mut tape = self.tape.borrow_mut();
        let Some(Record { at, what: What::Complete { request, .. } }) = tape.head else { return None };
        if at.since(ORIGIN) > now.as_ns() {
            return None;
        }
        if !self.has.get(request as usize).is_some_and(|&has| has) {
            let found = format!("the device does not have request {request}");
            tape.diverge(at, format!("the completion of request {request}"), found);
            return None;
        }
        self.has[request as usize] = false;
        tape.replayed.requests += 1;
        tape.advance();
        tape.turn(at);
        Some(request)
    }
}

/// The workload of a recording: its arrivals, and the times at which timers take effect.
struct Recorded<'a, R: Recording> {
    tape: Shared<R>,
    registry: &'a Registry,
    /// For each context, its present task; `None` if the task has exited.
    tasks: Vec<Option<u32>>,
    added: u32,
    cgroups: u32,
}

/// Checks the number of requests that a device takes at once.
fn checked(depth: u32) -> Result<u32, String> {
    let possible = (1..=DEPTH_MAX).contains(&depth);
    possible
        .then_some(depth)
        .ok_or_else(|| format!("the depth of the device is {depth}; it must be from 1 to {DEPTH_MAX}"))
}

/// Returns whether a record is an arrival. Completions, timers, reruns and turns are not arrivals.
fn is_arrival<D>(what: &What<D>) -> bool {
    !matches!(
        what,
        What::Complete { .. } | What::Timer | What::Rerun | What::Turn | What::Queue { .. } | What::Decision(_)
    )
}

impl<R: Recording> Recorded<'_, R> {
    /// Performs all arrivals before the next recorded turn.
    fn arrivals<V: Device, O: Observer>(&mut self, core: &mut Core<V, O>) {
        loop {
            let arrival = self.tape.borrow_mut().take_arrival();
            let Some(record) = arrival else { break };
            core.pass_until(core.now_ns.max(record.at.since(ORIGIN)));
            if let Err(problem) = self.perform(core, record.what) {
                self.tape.borrow_mut().impossible(problem);
                return;
            }
            self.tape.borrow_mut().advance();
        }
        let at = self.tape.borrow().head.as_ref().map_or(core.now(), |head| head.at);
        core.pass_until(core.now_ns.max(at.since(ORIGIN)));
        self.tape.borrow_mut().turn(core.now());
    }

    fn task(&self, context: ContextId) -> Result<u32, String> {
        let task = self.tasks.get(context.index()).copied().flatten();
        task.ok_or_else(|| format!("there is no process {}", context.index()))
    }

    fn cgroup(&self, cgroup: CgroupId) -> Result<CgroupId, String> {
        let known = cgroup.index() < self.cgroups as usize;
        known.then_some(cgroup).ok_or_else(|| format!("there is no cgroup {}", cgroup.index()))
    }

    fn perform<V: Device, O: Observer>(&mut self, core: &mut Core<V, O>, what: What<R::Decided>) -> Result<(), String> {
        let now = core.now();
        match what {
            What::Submit(bio, issued) => self.submit(core, &bio, issued)?,
            What::Plug(context) => core.plug(self.task(context)?),
            What::Unplug(context) => core.unplug_once(self.task(context)?),
            What::Decline(context) => core.driver.decline(core.context(self.task(context)?)),
            What::Context { pid, ioprio, cgroup } => {
                core.add_task(pid, "", ioprio, self.cgroup(cgroup)?);
                let context = core.context(self.added).index();
                if self.tasks.len() <= context {
                    self.tasks.resize(context + 1, None);
                }
                self.tasks[context] = Some(self.added);
                self.added += 1;
            }
            What::IoPriority(context, ioprio) => core.driver.set_ioprio(core.context(self.task(context)?), ioprio),
            What::Exit(context) => {
                core.exit(self.task(context)?);
                self.tasks[context.index()] = None;
            }
            What::Yield { from, to } => core.yield_to(self.task(from)?, self.task(to)?),
            What::DirtierSleeps(context) => core.dirtier_sleeps(self.task(context)?),
            What::Cgroup(cgroup) => {
                self.cgroup(cgroup.parent.unwrap_or(CgroupId::ROOT))?;
                if let Ok(id) = core.driver.create_cgroup(cgroup) {
                    self.cgroups = self.cgroups.max(id.index() as u32 + 1);
                }
            }
            What::Weights { cgroup, weight, leaf_weight } => {
                // The engine must refuse invalid weights, as the driver did.
                let _ = core.driver.set_weights(self.cgroup(cgroup)?, weight, leaf_weight);
            }
            What::Move(context, cgroup) => {
                core.driver.move_context(now, core.context(self.task(context)?), self.cgroup(cgroup)?);
            }
            What::Remove(cgroup) => core.driver.remove_cgroup(now, self.cgroup(cgroup)?),
            What::CgroupAttribute { cgroup, name, value } => {
                _ = core.driver.set_cgroup_attribute(now, self.cgroup(cgroup)?, &name, &value);
            }
            What::Attribute { name, value } => _ = core.driver.set_attribute(now, &name, &value),
            What::Tunable { name, value } => _ = core.driver.set_tunable(now, &name, &value),
            What::Switch(elevator) => {
                core.driver.switch(now, self.registry.get(&elevator).map_err(|error| error.to_string())?);
            }
            What::Depth(depth) => core.set_depth(checked(depth)?),
            What::Requeue(request) => {
                if !core.requeue(request) {
                    return Err(format!("the device does not have request {request}"));
                }
            }
            What::Queue { .. } | What::Complete { .. } | What::Timer | What::Rerun | What::Turn | What::Decision(_) => {
                unreachable!("no arrival")
            }
        }
        core.report_decisions();
        Ok(())
    }

    fn submit<V: Device, O: Observer>(
        &mut self,
        core: &mut Core<V, O>,
        bio: &Bio,
        issued: Issued,
    ) -> Result<(), String> {
        let &Bio { op, flags, sector, nr_sectors, context, .. } = bio;
        if op.has_data() != (nr_sectors > 0) || sector.checked_add(nr_sectors.into()).is_none() {
            return Err(format!("a bio of {nr_sectors} sectors at sector {sector} is not valid"));
        }
        if issued.ioprio.is_some() {
            return Err("the bio was issued before its submission; this is possible only in the simulator".to_owned());
        }
        let task = self.task(context)?;
        let asked_ns = core.now_ns;
        if !core.submit_with(
            task,
            &NewIo { op, flags, sector, nr_sectors, tag: 0, asked_ns, issued: None, part: issued.part },
            Treatment { at_head: issued.at_head, ..Treatment::default() },
        ) {
            // After the wait, the recording contains this submission again, as a separate record.
            core.give_up(task);
        }
        self.tape.borrow_mut().replayed.bios += 1;
        Ok(())
    }
}

impl<V: Device, O: Observer, R: Recording> Source<V, O> for Recorded<'_, R> {
    fn next_ns(&self) -> u64 {
        self.tape.borrow().due_ns(|what| is_arrival(what) || matches!(what, What::Turn))
    }

    fn event(&mut self, core: &mut Core<V, O>) {
        self.arrivals(core);
    }

    fn completed(&mut self, _: &mut Core<V, O>, _: u32, _: u32) {}

    fn woken(&mut self, core: &mut Core<V, O>, _disk: usize, _: u32) {
        self.arrivals(core);
    }

    fn heard_ns(&self, due: Due, due_ns: u64) -> u64 {
        let kind = |what: &What<R::Decided>| match due {
            Due::Timer => matches!(what, What::Timer),
            _ => matches!(what, What::Rerun),
        };
        let heard_ns = self.tape.borrow().due_ns(kind);
        if due_ns <= heard_ns { heard_ns } else { u64::MAX }
    }

    fn hears_on(&self) -> bool {
        self.tape.borrow().head.is_some()
    }

    fn heard(&mut self, now: Time) {
        let mut tape = self.tape.borrow_mut();
        tape.advance();
        tape.turn(now);
    }

    fn result(&self) -> Result<(), IoError> {
        match self.tape.borrow().head {
            Some(Record { what: What::Complete { result, .. }, .. }) => result,
            _ => Ok(()),
        }
    }
}

/// An observer that adds every decision to the tape.
struct Compared<R: Recording>(Shared<R>);

impl<R: Recording> Observer for Compared<R> {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        self.0.borrow_mut().taken(ORIGIN + now_ns, *decision);
    }
}

/// Replays the recording of a driver, and compares the engine's decisions with
/// the recorded ones. Schedulers come from `registry`.
///
/// # Errors
/// If the recording cannot be read or replayed, or if the engine's decisions differ from it.
pub fn replay_recorded<D, E, I>(
    records: I,
    registry: &Registry,
    interrupt: Option<&AtomicBool>,
) -> Result<Replayed, RecordedError<E>>
where
    D: PartialEq<Decision> + fmt::Debug,
    E: std::error::Error + 'static,
    I: Iterator<Item = Result<Record<D>, E>>,
{
    let replayed = Replayed::default();
    let (recorded, taken) = (VecDeque::new(), VecDeque::new());
    let mut tape = Tape { records, head: None, replayed, recorded, taken, trouble: None };
    tape.advance();
    let begun = match tape.head.take() {
        Some(Record { at, what: What::Queue { config, elevator, rerun } }) if at >= ORIGIN => {
            Some((at, config, elevator, rerun))
        }
        _ => None,
    };
    let tape = Rc::new(RefCell::new(tape));
    match begun {
        Some((_, config, ..)) if !(1..=1_000_000).contains(&config.hz) || config.hw_queues == 0 => {
            let problem = format!(
                "a queue with {} jiffies per second and {} hardware queues is not valid",
                config.hz, config.hw_queues
            );
            tape.borrow_mut().impossible(problem);
        }
        Some((_, config, ..)) if checked(config.depth).is_err() => {
            tape.borrow_mut().impossible(checked(config.depth).unwrap_err());
        }
        Some((at, config, elevator, rerun)) => match registry.get(&elevator) {
            Ok(elevator) => {
                tape.borrow_mut().advance();
                let queue = RequestQueue::new(at, &config, elevator);
                carry_out(&tape, registry, Driver::new(queue, rerun), config.depth, interrupt);
            }
            Err(error) => tape.borrow_mut().impossible(error.to_string()),
        },
        None => _ = tape.borrow_mut().trouble.get_or_insert(Trouble::Beginning),
    }
    let mut tape = tape.borrow_mut();
    tape.end();
    let record = tape.replayed.records;
    Err(match tape.trouble.take() {
        None => return Ok(tape.replayed),
        Some(Trouble::Read(error)) => RecordedError::Read(error),
        Some(Trouble::Beginning) => RecordedError::Beginning { record },
        Some(Trouble::Impossible(problem)) => RecordedError::Impossible { record, problem },
        Some(Trouble::Diverged { at, recorded, found }) => {
            RecordedError::Diverged { record, at_ns: at.since(ORIGIN), recorded, found }
        }
    })
}

fn carry_out<R: Recording>(
    tape: &Shared<R>,
    registry: &Registry,
    driver: Driver,
    depth: u32,
    interrupt: Option<&AtomicBool>,
) {
    let card = Card {
        capacity_sectors: u64::MAX,
        depth,
        hw_queues: 1,
        rotational: false,
        write_cache: false,
        fua: false,
        max_hw_sectors_kb: u32::MAX,
    };
    let device = RecordedDevice { tape: Rc::clone(tape), card, has: Vec::new() };
    let mut core = Core::new(driver, device, Compared(Rc::clone(tape)));
    core.take_whole();
    let source = Recorded { tape: Rc::clone(tape), registry, tasks: Vec::new(), added: 0, cgroups: 1 };
    match drive_one(core, source, false, Limit::default(), interrupt) {
        // A recording may end with queued requests, because the recorder was stopped.
        Ok(_) | Err(SimError::Stuck { .. }) => {}
        Err(error) => tape.borrow_mut().impossible(error.to_string()),
    }
}
