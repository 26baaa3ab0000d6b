//! When the queue is run, and who is heard first: what every host of a request queue repeats, in one place and without
//! I/O. See [`Driver`].

use crate::context::ContextId;
use crate::decision::Decision;
use crate::issued::Issued;
use crate::queue::{IoError, RequestQueue, Stat, Submit};
use crate::request::{Bio, BioDone, RequestId};
use crate::time::Time;

mod control;
pub mod recording;
#[cfg(test)]
mod tests;

use recording::{Recording, What};

/// What a host does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Step {
    /// The device takes this request.
    Start(RequestId),
    /// This process found the queue full and may submit again.
    Wake(ContextId),
}

/// Whose event is next. At equal times the earlier variant comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// The device's.
    Device,
    /// The elevator's timer.
    Timer,
    /// The workload's.
    Arrival,
    /// The queue is run once more.
    Rerun,
}

/// When the queue is run although nothing has happened that could have changed the elevator's mind but time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rerun {
    /// Never: the elevators of the single-queue layer that let the device wait ask for a timer.
    #[default]
    Never,
    /// So long after a turn that left the device idle though something is queued.
    DeviceIdle {
        /// How long, ns.
        after_ns: u64,
        /// What has not moved for so long is released whatever the elevator says, ns.
        drain_ns: u64,
    },
    /// So long after a turn whose last run gave nothing though something is queued, ns.
    Barren {
        /// How long, ns.
        after_ns: u64,
    },
}

impl Rerun {
    /// Linux' 3 ms, ns: blk-mq asks an elevator again that let an idle device wait.
    pub const AFTER_NS: u64 = 3_000_000;

    /// What Linux does in the multi-queue layer, however often it asks in vain.
    pub const LINUX: Self = Self::DeviceIdle { after_ns: Self::AFTER_NS, drain_ns: u64::MAX };

    /// As Linux, of a disk that others wait for: what was asked for ten times in vain is released.
    ///
    /// mq-deadline takes requests for later ones than they are when its times to expire become shorter; under
    /// [`Self::LINUX`] they stay until they are as old as they look.
    pub const SERVED: Self = Self::DeviceIdle { after_ns: Self::AFTER_NS, drain_ns: 10 * Self::AFTER_NS };
}

/// Where a turn stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No turn is under way.
    Rest,
    /// The queue is run.
    Run,
    /// Who waited is woken.
    Wake,
}

/// A request queue and when it is run.
///
/// A host has a device, which takes requests while it has room, and workloads, which submit bios. Whatever happens is
/// one of a few events:
///
/// | event | call |
/// |---|---|
/// | the device is done with a request | [`Driver::complete`], or [`Driver::requeue`] if it gives it back undone |
/// | the elevator's timer is due | [`Driver::timer`] |
/// | bios arrive | [`Driver::submit`], [`Driver::plug`], [`Driver::unplug`] |
/// | nothing has happened for a while | [`Driver::rerun`] |
///
/// # Order of calls
///
/// 1. [`Driver::next_due`] says which event is next. At equal times, it knows the order.
/// 2. The host tells the driver of the event, with the call of the table.
/// 3. The host may submit now. For example, the process whose request is complete submits its next
///    one. After each submission and each call of `unplug`, the host starts what [`Driver::kicked`]
///    gives, until it gives nothing: an elevator may want the queue run in the middle of an event,
///    and [every insertion](crate::QueueConfig::run_at_insertion) may.
/// 4. The host carries out the [`turn`](Driver::turn), step by step, until there is no step left.
///
/// A process that is told [`Submit::Full`] waits. It need not ask again: the turn wakes it with
/// [`Step::Wake`], and then the process submits. Waiting processes keep their place, whatever the
/// host submits before the turn. In the multi-queue layer, a tag that a completion frees is offered
/// to them first, and the one that is woken has it. If that process has nothing to submit any more,
/// the host calls [`Driver::decline`], and the tag is for others.
///
/// The example `two_tenants` is a complete host: two tenants that find the queue full, wait and are
/// woken.
///
/// In a turn, the single-queue layer dispatches first; then it wakes one process after the other that waited for a
/// request, and dispatches behind each. The multi-queue layer wakes everybody first: who waited for a tag has it by
/// then.
///
/// # Panics
/// Where [`RequestQueue`] does. Builds with debug assertions also panic where a host breaks the
/// order: when it submits although `kicked` may give more, or asks for the next event although the
/// turn has a step left.
pub struct Driver {
    queue: RequestQueue,
    rerun: Rerun,
    phase: Phase,
    /// The last step of the turn under way woke a process, which submits now.
    has_woken: bool,
    /// Of the turn under way: whether it is the multi-queue layer's.
    is_multi_queue: bool,
    run: Run,
    /// The queue is run because the elevator wanted it, in the middle of an event.
    is_kicked: bool,
    rerun_at: Option<Time>,
    /// Since when the device has been idle though something is queued.
    idle_since: Option<Time>,
    /// What it is told, if it is recorded.
    recording: Option<Box<Recording>>,
}

/// One run of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    has_begun: bool,
    has_given: bool,
    /// The elevator was asked, and nothing has been given out.
    is_barren: bool,
}

impl Driver {
    /// A driver of `queue`, which is run again as `rerun` says in the multi-queue layer.
    #[must_use]
    pub fn new(queue: RequestQueue, rerun: Rerun) -> Self {
        Self {
            queue,
            rerun,
            phase: Phase::Rest,
            has_woken: false,
            is_multi_queue: false,
            run: Run::default(),
            is_kicked: false,
            rerun_at: None,
            idle_since: None,
            recording: None,
        }
    }

    /// The queue, to look at it.
    #[inline]
    #[must_use]
    pub fn queue(&self) -> &RequestQueue {
        &self.queue
    }

    /// Turns the recording of decisions on or off: see [`RequestQueue::record_decisions`].
    pub fn record_decisions(&mut self, on: bool) {
        self.queue.record_decisions(on);
    }

    /// Takes the decisions since the last call: see [`RequestQueue::take_decisions`].
    #[inline]
    pub fn take_decisions(&mut self) -> std::vec::Drain<'_, (Time, Decision)> {
        self.queue.take_decisions()
    }

    /// The statistics up to now: see [`RequestQueue::stat`].
    pub fn stat(&mut self, now: Time) -> &Stat {
        self.queue.stat(now)
    }

    // ---- arrivals

    /// A bio arrives: see [`RequestQueue::submit`]. The host starts what is [`kicked`](Self::kicked) next.
    #[inline]
    pub fn submit(&mut self, now: Time, bio: &Bio) -> Submit {
        self.submit_issued(now, bio, &Issued::default())
    }

    /// A bio arrives that was issued earlier, or is a part of a longer one: see [`RequestQueue::submit_issued`].
    #[inline]
    pub fn submit_issued(&mut self, now: Time, bio: &Bio, issued: &Issued) -> Submit {
        debug_assert!(!self.is_kicked, "a host submits when `Driver::kicked` gives nothing more");
        self.note(Some(now), || What::Submit(*bio, *issued));
        self.queue.submit_issued(now, bio, issued)
    }

    /// From now on, what `context` submits collects on its plug: see [`RequestQueue::plug`].
    #[inline]
    pub fn plug(&mut self, context: ContextId) {
        self.note(None, || What::Plug(context));
        self.queue.plug(context);
    }

    /// Ends the plug of `context`; `true`: call again, after what is [`kicked`](Self::kicked). See
    /// [`RequestQueue::unplug`].
    #[inline]
    pub fn unplug(&mut self, now: Time, context: ContextId) -> bool {
        self.note(Some(now), || What::Unplug(context));
        self.queue.unplug(now, context)
    }

    /// What the device takes before anything else is submitted, if the elevator or an insertion wants that; the host
    /// asks until there is nothing more. `has_room`: the device can take a request.
    #[inline]
    pub fn kicked(&mut self, now: Time, has_room: bool) -> Option<RequestId> {
        if !self.is_kicked {
            if !self.queue.take_kick() {
                return None;
            }
            self.run.has_begun = false;
        }
        let given = self.dispatch(now, has_room);
        self.is_kicked = given.is_some();
        given
    }

    // ---- the device and time

    /// The device is done with `id`: see [`RequestQueue::complete`].
    #[inline]
    pub fn complete(
        &mut self,
        now: Time,
        id: RequestId,
        result: Result<(), IoError>,
        done: impl FnMut(BioDone, Result<(), IoError>),
    ) {
        self.note(Some(now), || What::Complete { request: id.index() as u32, result });
        self.queue.complete(now, id, result, done);
    }

    /// The device gives `id` back undone: see [`RequestQueue::requeue`].
    pub fn requeue(&mut self, now: Time, id: RequestId) {
        self.note(Some(now), || What::Requeue(id.index() as u32));
        self.queue.requeue(now, id);
    }

    /// The elevator's timer is due. Whether a turn follows, as in Linux: after some timers, the queue is run when the
    /// next request comes or is done.
    pub fn timer(&mut self, now: Time) -> bool {
        self.note(Some(now), || What::Timer);
        self.queue.timer(now);
        self.queue.runs_after_timer()
    }

    /// When the elevator's timer is due, if it has one.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.queue.next_timer()
    }

    /// When the queue is to be run once more although nothing happens, if it is.
    #[inline]
    #[must_use]
    pub fn next_rerun(&self) -> Option<Time> {
        self.rerun_at
    }

    /// The queue is run once more, by the turn that follows.
    pub fn rerun(&mut self, now: Time) {
        self.note(Some(now), || What::Rerun);
        self.rerun_at = None;
        if let (Rerun::DeviceIdle { drain_ns, .. }, Some(since)) = (self.rerun, self.idle_since)
            && now.since(since) >= drain_ns
        {
            self.queue.drain(now);
        }
    }

    /// See [`RequestQueue::rest_ns`]. Not recorded: who asks has processes of its own, and served disks have none.
    #[inline]
    pub fn rest_ns(&mut self, now: Time, context: ContextId) -> u64 {
        self.queue.rest_ns(now, context)
    }

    /// Which event is next, given when the device's and the workload's next are due, and when.
    #[inline]
    #[must_use]
    pub fn next_due(&self, device: Option<Time>, arrival: Option<Time>) -> Option<(Time, Due)> {
        debug_assert!(self.phase == Phase::Rest, "a host ends `Driver::turn` before the next event");
        let due = [
            (device, Due::Device),
            (self.queue.next_timer(), Due::Timer),
            (arrival, Due::Arrival),
            (self.rerun_at, Due::Rerun),
        ];
        due.into_iter().filter_map(|(at, due)| Some((at?, due))).min()
    }

    // ---- the turn

    /// The next step of the turn that follows an event; `None`: it is over. `has_room`: the device can take a request.
    #[inline(always)]
    pub fn turn(&mut self, now: Time, has_room: bool) -> Option<Step> {
        if self.phase == Phase::Rest {
            self.is_multi_queue = self.queue.is_multi_queue();
            self.begin(if self.is_multi_queue { Phase::Wake } else { Phase::Run });
            self.note(Some(now), || What::Turn);
        } else if self.has_woken {
            self.has_woken = false;
            self.note(Some(now), || What::Turn);
        }
        loop {
            if self.phase == Phase::Run {
                if let Some(id) = self.dispatch(now, has_room) {
                    return Some(Step::Start(id));
                }
                if self.is_multi_queue {
                    break;
                }
                self.phase = Phase::Wake;
            }
            if let Some(context) = self.queue.take_woken() {
                self.has_woken = true;
                if !self.is_multi_queue {
                    self.begin(Phase::Run);
                }
                return Some(Step::Wake(context));
            }
            if !self.is_multi_queue {
                break;
            }
            self.begin(Phase::Run);
        }
        self.phase = Phase::Rest;
        self.plan_rerun(now);
        None
    }

    #[inline(always)]
    fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.run.has_begun = false;
    }

    /// The next request of a run.
    #[inline(always)]
    fn dispatch(&mut self, now: Time, has_room: bool) -> Option<RequestId> {
        if !self.run.has_begun {
            // The wish is being fulfilled.
            self.queue.take_kick();
            self.run = Run { has_begun: true, ..Run::default() };
        }
        if !has_room {
            return None;
        }
        let given = self.queue.dispatch(now);
        match given {
            Some(_) => {
                self.run.has_given = true;
                self.idle_since = None;
            }
            None => self.run.is_barren = !self.run.has_given,
        }
        given
    }

    #[inline(always)]
    fn plan_rerun(&mut self, now: Time) {
        if self.run.is_barren && self.rerun_at.is_none() {
            self.plan_rerun_of_barren(now);
        }
    }

    /// The run that has just ended gave nothing.
    fn plan_rerun_of_barren(&mut self, now: Time) {
        let after_ns = match self.rerun {
            Rerun::DeviceIdle { after_ns, .. } if self.is_multi_queue && self.queue.in_driver() == 0 => after_ns,
            Rerun::Barren { after_ns } => after_ns,
            _ => return,
        };
        if self.queue.waiting() == 0 {
            return;
        }
        self.idle_since.get_or_insert(now);
        self.rerun_at = Some(now + after_ns);
    }
}
