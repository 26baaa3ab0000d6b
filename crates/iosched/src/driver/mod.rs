//! Decides when a request queue runs, and in which order a host handles events. Every host needs
//! this logic. The module does no I/O. See [`Driver`].

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

/// Next step of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Step {
    /// Start this request on the device.
    Start(RequestId),
    /// Wake this process: it found the queue full and may submit again.
    Wake(ContextId),
}

/// Source of the next event. At equal times the earlier variant comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// Completion by the device.
    Device,
    /// Timer of the elevator or of a controller.
    Timer,
    /// Arrival from the workload.
    Arrival,
    /// Another run of the queue.
    Rerun,
}

/// Rule for runs of the queue after a delay, without another event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rerun {
    /// Never. Elevators of the single-queue layer set a timer when they let the device wait.
    #[default]
    Never,
    /// After a turn that left the device idle although requests are queued.
    DeviceIdle {
        /// Delay after that turn, ns.
        after_ns: u64,
        /// Idle time, ns, after which the queue releases requests although the elevator would wait.
        drain_ns: u64,
    },
    /// After a turn whose last run dispatched nothing although requests are queued.
    Barren {
        /// Delay after that turn, ns.
        after_ns: u64,
    },
}

impl Rerun {
    /// Delay of Linux, 3 ms, in ns. If the elevator left the device idle, blk-mq runs the queue
    /// again after this delay.
    pub const AFTER_NS: u64 = 3_000_000;

    /// Rule of Linux in the multi-queue layer. The number of repetitions has no limit.
    pub const LINUX: Self = Self::DeviceIdle { after_ns: Self::AFTER_NS, drain_ns: u64::MAX };

    /// Rule for served disks: as in Linux, but after ten such delays, the queue releases requests
    /// although the elevator would wait.
    ///
    /// mq-deadline computes a request's time of insertion from its deadline and the present expiry
    /// time. If the expiry time has become shorter, the computed time is too late. Under
    /// [`Self::LINUX`], the request waits until this late time.
    pub const SERVED: Self = Self::DeviceIdle { after_ns: Self::AFTER_NS, drain_ns: 10 * Self::AFTER_NS };
}

/// Phase of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No turn is active.
    Rest,
    /// The queue runs.
    Run,
    /// Waiting processes are woken.
    Wake,
}

/// Driver of a request queue: decides when the queue runs.
///
/// A host has a device, which takes requests while it has room, and workloads, which submit bios.
/// Each event is one of the following:
///
/// | event | call |
/// |---|---|
/// | the device has finished a request | [`Driver::complete`], or [`Driver::requeue`] if the device returns it unserved |
/// | the elevator's timer is due | [`Driver::timer`] |
/// | bios arrive | [`Driver::submit`], [`Driver::plug`], [`Driver::unplug`] |
/// | nothing has happened for a while | [`Driver::rerun`] |
///
/// # Order of calls
///
/// 1. The host calls [`Driver::next_due`] for the next event. The function orders events with equal
///    times.
/// 2. The host reports the event to the driver, with the call from the table.
/// 3. The host may submit now. For example, the process of the complete request submits its next
///    bio. After each submission and each `unplug`, the host starts all requests that
///    [`Driver::kicked`] returns. An elevator may require a run of the queue in the middle of an
///    event. With [`crate::QueueConfig::run_at_insertion`], every insertion requires a run.
///
/// A process that gets [`Submit::Full`] waits. It need not try again: the turn wakes it with
/// [`Step::Wake`], and then the process submits. Waiting processes keep their position, whatever
/// the host submits before the turn. In the multi-queue layer, a tag that a completion frees is
/// offered to them first, and is reserved for the process that is woken. If that process has
/// nothing to submit any more, the host calls [`Driver::decline`], and other processes can use the
/// tag.
///
/// The example `two_tenants` is a complete host: two tenants that find the queue full, wait and are
/// woken.
///
/// In a turn, the single-queue layer dispatches first. Then it wakes the waiting processes one by
/// one, and dispatches again after each process. The multi-queue layer first wakes all processes
/// that may continue. Each process that waited for a tag then has one.
///
/// # Panics
/// Panics in the same cases as [`RequestQueue`]. Builds with debug assertions also panic if a host
/// breaks the order: it submits although `kicked` may return more requests, or it calls `next_due`
/// although the turn has a step left.
pub struct Driver {
    queue: RequestQueue,
    rerun: Rerun,
    phase: Phase,
    /// Whether the last step of the active turn woke a process, which submits now.
    has_woken: bool,
    /// Whether the active turn follows the order of the multi-queue layer.
    is_multi_queue: bool,
    run: Run,
    /// Whether the queue runs in the middle of an event.
    is_kicked: bool,
    rerun_at: Option<Time>,
    /// Start of the device's idle time while requests are queued.
    idle_since: Option<Time>,
    /// Recording of the calls, if it is on.
    recording: Option<Box<Recording>>,
}

/// One run of the queue.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    has_begun: bool,
    has_given: bool,
    /// Whether the elevator was called and has dispatched nothing.
    is_barren: bool,
}

impl Driver {
    /// Creates a driver of `queue`. `rerun` is the rule for runs of the queue after a delay.
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

    /// Returns the queue for observation.
    #[inline]
    #[must_use]
    pub fn queue(&self) -> &RequestQueue {
        &self.queue
    }

    /// Turns the recording of decisions on or off: see [`RequestQueue::record_decisions`].
    pub fn record_decisions(&mut self, on: bool) {
        self.queue.record_decisions(on);
    }

    /// Returns and removes the decisions since the last call: see [`RequestQueue::take_decisions`].
    #[inline]
    pub fn take_decisions(&mut self) -> std::vec::Drain<'_, (Time, Decision)> {
        self.queue.take_decisions()
    }

    /// Returns the statistics up to `now`: see [`RequestQueue::stat`].
    pub fn stat(&mut self, now: Time) -> &Stat {
        self.queue.stat(now)
    }

    // ---- arrivals

    /// Submits a bio: see [`RequestQueue::submit`]. The host calls [`kicked`](Self::kicked) next.
    #[inline]
    pub fn submit(&mut self, now: Time, bio: &Bio) -> Submit {
        self.submit_issued(now, bio, &Issued::default())
    }

    /// Submits a bio that was issued earlier, or that is a part of a longer I/O: see
    /// [`RequestQueue::submit_issued`].
    #[inline]
    pub fn submit_issued(&mut self, now: Time, bio: &Bio, issued: &Issued) -> Submit {
        debug_assert!(!self.is_kicked, "a host submits when `Driver::kicked` gives nothing more");
        self.note(Some(now), || What::Submit(*bio, *issued));
        self.queue.submit_issued(now, bio, issued)
    }

    /// Opens a plug that collects the requests of `context`: see [`RequestQueue::plug`].
    #[inline]
    pub fn plug(&mut self, context: ContextId) {
        self.note(None, || What::Plug(context));
        self.queue.plug(context);
    }

    /// Ends the plug of `context`. If the result is `true`, the host calls this function again
    /// after [`kicked`](Self::kicked). See [`RequestQueue::unplug`].
    #[inline]
    pub fn unplug(&mut self, now: Time, context: ContextId) -> bool {
        self.note(Some(now), || What::Unplug(context));
        self.queue.unplug(now, context)
    }

    /// Returns the next request to start before the next submission, if the elevator or an
    /// insertion requires a run. The host calls this function until it returns `None`. `has_room`
    /// tells whether the device can take a request.
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

    /// Completes the request `id`: see [`RequestQueue::complete`].
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

    /// Takes back the request `id` unserved: see [`RequestQueue::requeue`].
    pub fn requeue(&mut self, now: Time, id: RequestId) {
        self.note(Some(now), || What::Requeue(id.index() as u32));
        self.queue.requeue(now, id);
    }

    /// Handles a due timer. Returns whether a turn follows. As in Linux, after some timers the
    /// queue runs only at the next submission or completion.
    pub fn timer(&mut self, now: Time) -> bool {
        self.note(Some(now), || What::Timer);
        self.queue.timer(now);
        self.queue.runs_after_timer()
    }

    /// Handles an interrupt of the processor's clock: see [`RequestQueue::clock_interrupt`]. The
    /// call is not recorded, because only simulated processors have such interrupts. Returns
    /// whether a turn follows.
    pub fn clock_interrupt(&mut self, now: Time) -> bool {
        self.queue.clock_interrupt(now);
        self.queue.runs_after_timer()
    }

    /// Returns when the next timer is due, if there is one.
    #[inline]
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.queue.next_timer()
    }

    /// Returns when the queue must run again although no event happens, if at all.
    #[inline]
    #[must_use]
    pub fn next_rerun(&self) -> Option<Time> {
        self.rerun_at
    }

    /// Handles a due rerun: prepares the turn that follows for another run of the queue.
    pub fn rerun(&mut self, now: Time) {
        self.note(Some(now), || What::Rerun);
        self.queue.enter(now);
        self.rerun_at = None;
        if let (Rerun::DeviceIdle { drain_ns, .. }, Some(since)) = (self.rerun, self.idle_since)
            && now.since(since) >= drain_ns
        {
            self.queue.drain(now);
        }
    }

    /// Returns the pause of a process: see [`RequestQueue::rest_ns`]. The call is not recorded,
    /// because only hosts with their own processes use it. Served disks have no processes.
    #[inline]
    pub fn rest_ns(&mut self, now: Time, context: ContextId) -> u64 {
        self.queue.rest_ns(now, context)
    }

    /// Returns the next event and its time. `device` is the time of the device's next completion,
    /// and `arrival` is the time of the next arrival.
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

    /// Returns the next step of the turn that follows an event, or `None` at its end. `has_room`
    /// tells whether the device can take a request.
    #[inline(always)]
    pub fn turn(&mut self, now: Time, has_room: bool) -> Option<Step> {
        if self.phase == Phase::Rest {
            self.queue.enter(now);
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

    /// Returns the next request of a run.
    #[inline(always)]
    fn dispatch(&mut self, now: Time, has_room: bool) -> Option<RequestId> {
        if !self.run.has_begun {
            // This run fulfils the requested kick.
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

    /// Plans another run after a run that dispatched nothing.
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
