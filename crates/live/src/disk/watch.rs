//! Observation of a served disk: counts of the scheduler's decisions, and the events of a block
//! trace.
//!
//! The trace has the same events as a trace of the kernel's queue: bios (`Q`), allocation (`G`),
//! insertion (`I`), merges (`M`, `F`), dispatch (`D`) and completion (`C`). All events have CPU 0
//! and device 8,0. A dispatch has the process of the request's first bio. A completion has pid 0.

use std::collections::BTreeMap;

use super::KEY_BITS;
use iosched::recording::{Record, What};
use iosched::{Decision, Driver, Flags, IoPriority, MergeSide, Op, Sector, Time};
use iosched_trace::{Action, BlkEvent, Payload, ProcessName};

/// Device 8,0, the first disk, in the encoding of the kernel's traces.
const DEVICE: u32 = 8 << 20;
/// First process number for clients whose process is unknown. Linux assigns only smaller numbers.
const UNKNOWN_PIDS: u32 = 1 << 22;

/// Counts of the scheduler's decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionCounts {
    /// A queue became active.
    pub slices: u64,
    /// The scheduler started to idle for a process's next request.
    pub idles: u64,
    /// The scheduler idled, but no request came.
    pub idles_in_vain: u64,
    /// A queue preempted the active queue.
    pub preemptions: u64,
    /// A bio was merged into a request.
    pub merges: u64,
}

/// Process, operation and range of a bio or request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    pub(super) pid: u32,
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) sector: Sector,
    pub(super) nr_sectors: u32,
}

/// State of the observation.
#[derive(Debug, Default)]
pub(super) struct Watch {
    pub(super) counts: DecisionCounts,
    /// Events of the trace since the last call of [`Watch::take_events`], if there is a trace.
    events: Option<Vec<BlkEvent>>,
    /// Priority of each process, as the trace last noted it.
    ioprios: BTreeMap<u32, IoPriority>,
    /// Requests that are not complete, by the cookie of the first bio.
    requests: BTreeMap<u64, Extent>,
    /// Whether the observer keeps decisions for a recording.
    keeps_decisions: bool,
    /// Decisions that the recording has not taken yet. They identify bios by their ordinals.
    pub(super) decisions: Vec<Record>,
}

/// Maximum number of remembered priorities of processes. Above this number, the observer forgets
/// all of them, and the trace notes the priorities again.
const IOPRIOS_MAX: usize = 65_536;

/// Returns the process number that represents a client in a trace.
pub(super) fn trace_pid(pid: u32, number: u32) -> u32 {
    if pid == 0 { UNKNOWN_PIDS + number } else { pid }
}

/// Returns a time relative to the start of the disk, as traces need it.
fn of_trace(now: Time) -> Time {
    Time::from_ns(now.since(Time::BEGINNING))
}

impl Watch {
    /// Starts or stops to keep the events of a block trace.
    pub(super) fn trace(&mut self, on: bool) {
        self.events = on.then(Vec::new);
        self.ioprios.clear();
        self.requests.clear();
    }

    /// Starts or stops to keep the decisions.
    pub(super) fn keep_decisions(&mut self, on: bool) {
        self.keeps_decisions = on;
        self.decisions.clear();
    }

    /// Returns the events of the trace since the last call.
    pub(super) fn take_events(&mut self) -> Vec<BlkEvent> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Notes a new client in the trace.
    pub(super) fn connected(&mut self, now: Time, pid: u32, name: &str) {
        if let Some(events) = &mut self.events {
            let payload = Payload::Name(ProcessName::new(name.as_bytes()));
            events.push(BlkEvent { payload, ..BlkEvent::new(Action::NoteProcess, of_trace(now), 0, pid) });
        }
    }

    /// Notes a bio that a process with the priority `ioprio` is about to submit.
    pub(super) fn queued(&mut self, now: Time, io: &Extent, ioprio: IoPriority) {
        if let Some(events) = &mut self.events
            && self.ioprios.get(&io.pid) != Some(&ioprio)
        {
            if self.ioprios.len() >= IOPRIOS_MAX {
                self.ioprios.clear();
            }
            self.ioprios.insert(io.pid, ioprio);
            events.push(BlkEvent::new(Action::NoteMessage, of_trace(now), 0, io.pid).with_ioprio(ioprio));
        }
        self.event(Action::Queue, now, io);
    }

    fn event(&mut self, action: Action, now: Time, io: &Extent) {
        if let Some(events) = &mut self.events {
            let event = BlkEvent::new(action, of_trace(now), DEVICE, io.pid);
            events.push(event.with_extent(io.op, io.flags, io.sector, io.nr_sectors));
        }
    }

    /// Processes the queue's decisions since the last call.
    pub(super) fn look(&mut self, driver: &mut Driver) {
        for (now, decision) in driver.take_decisions() {
            self.decision(now, &decision);
            if self.keeps_decisions {
                let what = What::Decision(decision.rebased(Time::BEGINNING, |cookie| cookie >> KEY_BITS));
                self.decisions.push(Record { at: now, what });
            }
        }
    }

    fn decision(&mut self, now: Time, decision: &Decision) {
        match *decision {
            Decision::Active { .. } => self.counts.slices += 1,
            Decision::IdleArm { .. } => self.counts.idles += 1,
            Decision::IdleFire => self.counts.idles_in_vain += 1,
            Decision::Preempt { .. } => self.counts.preemptions += 1,
            Decision::Merge { .. } => self.counts.merges += 1,
            _ => {}
        }
        if self.events.is_some() {
            self.traced(now, decision);
        }
    }

    fn traced(&mut self, now: Time, decision: &Decision) {
        match *decision {
            Decision::Insert { cookie, pid, sector, nr_sectors, op, sync, .. } => {
                let flags = if sync && op.is_write() { Flags::SYNC } else { Flags::empty() };
                let io = Extent { pid, op, flags, sector, nr_sectors };
                self.event(Action::GetRequest, now, &io);
                self.event(Action::Insert, now, &io);
                self.requests.insert(cookie, io);
            }
            Decision::Merge { pid, sector, nr_sectors, op, into, side, .. } => {
                let Some(io) = self.requests.get_mut(&into) else { return };
                io.nr_sectors += nr_sectors;
                io.sector = io.sector.min(sector);
                let joined = Extent { pid, op, flags: io.flags, sector, nr_sectors };
                let action = if side == MergeSide::Back { Action::BackMerge } else { Action::FrontMerge };
                self.event(action, now, &joined);
            }
            Decision::RequestMerge { cookie, into } => {
                let gone = self.requests.remove(&cookie);
                if let (Some(gone), Some(io)) = (gone, self.requests.get_mut(&into)) {
                    io.nr_sectors += gone.nr_sectors;
                }
            }
            Decision::Dispatch { cookie, .. } => {
                if let Some(io) = self.requests.get(&cookie).copied() {
                    self.event(Action::Issue, now, &io);
                }
            }
            Decision::Requeue { cookie } => {
                if let Some(io) = self.requests.get(&cookie).copied() {
                    self.event(Action::Requeue, now, &io);
                }
            }
            Decision::Complete { cookie } => {
                if let Some(io) = self.requests.remove(&cookie) {
                    self.event(Action::Complete, now, &Extent { pid: 0, ..io });
                }
            }
            _ => {}
        }
    }
}
