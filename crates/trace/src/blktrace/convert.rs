//! Conversion of events into requests. Each submission becomes a request. The request has a latency
//! if the trace contains its completion.
//!
//! A submission is an event [`Action::Queue`]. The converter holds a submission until its
//! completion comes, so that it returns requests in order and with their latencies. It holds at
//! most [`HELD_MAX`] submissions, each for at most [`HELD_MAX_NS`] of the trace's time. A
//! completion names the sectors of a whole request, with its merged bios. The completion completes
//! the held submissions within these sectors. Each sector completes only once. If the trace also
//! has issue events, a completion completes only submissions that were issued. The kernel can
//! execute a write with preflush or FUA in steps. Such a write completes twice: first its data,
//! then the whole write, with a length of 0.
//!
//! An event names a request only by its sectors. If several submissions of the same sectors are in
//! flight, the converter prefers those with the length of the event, then the oldest. If another
//! choice is possible, the submissions are [uncertain](Converter::uncertain).
//!
//! In a trace without submissions, other events become requests; [`Arrivals`] decides which.
//!
//! A bio can pass through several devices. A trace of these devices can then have a submission of
//! the bio on each device, with remaps between them. Unless the caller selects a device, only the
//! submission to the topmost traced device counts. The converter omits a submission if a remap from
//! another device with submissions precedes the submission. A partition has no submissions, so a
//! request to a partition counts once, on its disk.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use iosched::{IoPriority, Op, Sector, Time};

use super::arrivals::{Arrivals, Take};
use super::{Action, BlkEvent, Category, Payload};
use crate::TraceRequest;
use crate::names::NAMES_MAX;

/// Maximum number of submissions that are held for their completions.
const HELD_MAX: usize = 65_536;
/// Longest time for which a submission is held, ns of the trace's time.
const HELD_MAX_NS: u64 = 30_000_000_000;
/// Longest wait for the second completion of a write in steps, ns.
const STEP_MAX_NS: u64 = 1_000_000_000;
/// Maximum number of remaps that are remembered until their submission comes.
const REMAPS_MAX: usize = 4_096;
/// Maximum number of devices that are distinguished.
const DEVICES_MAX: usize = 1_024;
/// Maximum number of held submissions with which one event is compared. Submissions that begin
/// within the event are compared first.
const SCAN_MAX: usize = 1_024;

/// Direction of a request. An event belongs only to submissions of the same direction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Read,
    Write,
    Discard,
    Flush,
}

impl Direction {
    const COUNT: usize = 4;

    pub(super) fn of(op: Op) -> Self {
        match op {
            Op::Read => Self::Read,
            Op::Write | Op::WriteZeroes => Self::Write,
            Op::Discard => Self::Discard,
            Op::Flush => Self::Flush,
        }
    }

    pub(super) fn of_category(category: Category) -> Self {
        if category.contains(Category::DISCARD) {
            Self::Discard
        } else if category.contains(Category::WRITE) {
            Self::Write
        } else {
            Self::Read
        }
    }
}

/// Key of a held submission: direction, device, first sector, number.
type Key = (Direction, u32, Sector, u64);

struct PendingSubmission {
    request: TraceRequest,
    /// Sectors that are not completed yet.
    remaining: u32,
    /// Completed parts of a submission that completes in parts.
    parts: Vec<(Sector, Sector)>,
    issued: bool,
    /// Whether an event may belong either to this submission or to another one of the same sectors.
    uncertain: bool,
    /// Time at which the data of a write in steps (preflush or FUA) was written.
    data_done: Option<Time>,
    resolved: bool,
}

/// Converts events into requests.
pub(crate) struct Converter {
    device: Option<u32>,
    latencies: bool,
    held: VecDeque<PendingSubmission>,
    /// Number of the first submission in `held`.
    first: u64,
    by_sector: BTreeSet<Key>,
    /// Longest held submission of each direction, sectors.
    longest: [u32; Direction::COUNT],
    now: Time,
    /// Remaps by target device and sector. The value has the device from which the bio first came,
    /// and the number of the remap.
    remaps: BTreeMap<(u32, Sector), (u32, u64)>,
    remap_order: VecDeque<((u32, Sector), u64)>,
    remap_count: u64,
    submitted_on: BTreeSet<u32>,
    flushes_on: BTreeSet<u32>,
    last_device: Option<u32>,
    /// Known ioprios of processes.
    ioprios: BTreeMap<u32, IoPriority>,
    found: Vec<u64>,
    arrivals: Arrivals,
    /// Requests whose submission is not in the trace.
    without_submission: u64,
    /// Number of requests whose latency is uncertain, because it may be the latency of another
    /// request of the same sectors.
    uncertain: u64,
}

impl Converter {
    pub(crate) fn new(device: Option<u32>, latencies: bool, arrivals: Arrivals) -> Self {
        Self {
            device,
            // Without submissions, the converter must hold requests: an issue event counts as a new
            // request only if it belongs to no held request.
            latencies: latencies || arrivals != Arrivals::Submissions,
            held: VecDeque::new(),
            first: 0,
            by_sector: BTreeSet::new(),
            longest: [0; Direction::COUNT],
            now: Time::ZERO,
            remaps: BTreeMap::new(),
            remap_order: VecDeque::new(),
            remap_count: 0,
            submitted_on: BTreeSet::new(),
            flushes_on: BTreeSet::new(),
            last_device: None,
            ioprios: BTreeMap::new(),
            found: Vec::new(),
            arrivals,
            without_submission: 0,
            uncertain: 0,
        }
    }

    /// Returns the number of completed requests whose latency is uncertain, because it may be the
    /// latency of another request of the same sectors.
    pub(crate) const fn uncertain(&self) -> u64 {
        self.uncertain
    }

    /// Returns the number of requests, up to now, whose submission is not in the trace.
    pub(crate) const fn without_submission(&self) -> u64 {
        self.without_submission
    }

    pub(crate) fn add(&mut self, event: &BlkEvent) {
        if event.is_note() {
            if let Some((pid, ioprio)) = event.ioprio()
                && (self.ioprios.len() < NAMES_MAX || self.ioprios.contains_key(&pid))
            {
                self.ioprios.insert(pid, ioprio);
            }
            return;
        }
        self.now = self.now.max(event.time);
        if event.action == Action::Remap {
            self.remember_remap(event);
        }
        if self.device.is_some_and(|device| device != event.device) || event.category.contains(Category::PC) {
            return;
        }
        match (self.arrivals.take(event), event.action) {
            (Take::Always, _) => self.submit(event),
            (Take::IfNew, _) => self.submit_once(event),
            (Take::Never, Action::Issue) if self.latencies => self.issue(event),
            (Take::Never, Action::Insert) if self.latencies => self.set_priority(event),
            (Take::Never, Action::Complete) if self.latencies => self.complete(event),
            _ => {}
        }
    }

    /// Returns the first request if it can no longer change. With `flush`, returns it in any case.
    #[inline]
    pub(crate) fn take(&mut self, flush: bool) -> Option<TraceRequest> {
        let front = self.held.front()?;
        let waited = |since: Time, most_ns: u64| self.now.since(since) > most_ns;
        let ready = front.resolved
            || flush
            || self.held.len() > HELD_MAX
            || waited(front.request.arrival, HELD_MAX_NS)
            || front.data_done.is_some_and(|at| waited(at, STEP_MAX_NS));
        if !ready {
            return None;
        }
        let held = self.held.pop_front()?;
        if self.latencies && !held.resolved {
            self.by_sector.remove(&key(&held.request, self.first));
        }
        self.first += 1;
        Some(held.request)
    }

    /// Adds a request, unless the event belongs to a held submission.
    fn submit_once(&mut self, event: &BlkEvent) {
        self.find(event);
        if self.found.is_empty() {
            self.submit(event);
        } else {
            self.set_priority_of_found(event);
        }
    }

    /// Sets the priority of the request. The text of the kernel's tracepoints contains this
    /// priority.
    fn set_priority(&mut self, event: &BlkEvent) {
        if matches!(event.payload, Payload::Priority(_)) && event.bytes > 0 {
            self.find(event);
            self.set_priority_of_found(event);
        }
    }

    fn set_priority_of_found(&mut self, event: &BlkEvent) {
        let Payload::Priority(ioprio) = event.payload else { return };
        for number in &self.found {
            self.held[(number - self.first) as usize].request.ioprio = Some(ioprio);
        }
    }

    fn submit(&mut self, event: &BlkEvent) {
        if self.device.is_none() && self.is_passed_on(event) {
            return;
        }
        let Some((op, flags)) = event.category.to_op(event.bytes > 0) else { return };
        let request = TraceRequest {
            arrival: event.time,
            pid: event.pid,
            device: Some(event.device),
            op,
            flags,
            sector: if op == Op::Flush { 0 } else { event.sector },
            nr_sectors: event.nr_sectors(),
            latency_ns: None,
            ioprio: match event.payload {
                Payload::Priority(ioprio) => Some(ioprio),
                _ => self.ioprios.get(&event.pid).copied(),
            },
        };
        self.without_submission += u64::from(event.action != Action::Queue);
        if self.latencies {
            if self.by_sector.is_empty() {
                self.longest = [0; Direction::COUNT];
            }
            let longest = &mut self.longest[Direction::of(op) as usize];
            *longest = (*longest).max(request.nr_sectors);
            self.by_sector.insert(key(&request, self.first + self.held.len() as u64));
        }
        self.held.push_back(PendingSubmission {
            request,
            remaining: request.nr_sectors,
            parts: Vec::new(),
            issued: false,
            uncertain: false,
            data_done: None,
            resolved: !self.latencies,
        });
    }

    /// Returns whether the bio came from another traced device. The converter has then already
    /// counted the submission to that device.
    fn is_passed_on(&mut self, event: &BlkEvent) -> bool {
        if self.last_device != Some(event.device) {
            self.last_device = Some(event.device);
            if self.submitted_on.len() < DEVICES_MAX {
                self.submitted_on.insert(event.device);
            }
        }
        if self.remaps.is_empty() {
            return false;
        }
        let from = self.remaps.remove(&(event.device, event.sector));
        from.is_some_and(|(from, _)| self.submitted_on.contains(&from))
    }

    /// Records a remap. A bio that passes several layers can be remapped several times before it is
    /// submitted. The origin is then the source of the first remap. A submission contains the disk,
    /// but a remap may contain a partition of the disk.
    fn remember_remap(&mut self, event: &BlkEvent) {
        let Payload::Remap { from_device, from_sector, to_device } = event.payload else { return };
        let origin = self.remaps.remove(&(from_device, from_sector)).map_or(from_device, |(origin, _)| origin);
        for device in [event.device, to_device] {
            if device != origin {
                self.remap_count += 1;
                self.remaps.insert((device, event.sector), (origin, self.remap_count));
                self.remap_order.push_back(((device, event.sector), self.remap_count));
            }
        }
        while self.remap_order.len() > REMAPS_MAX
            && let Some((place, count)) = self.remap_order.pop_front()
        {
            if self.remaps.get(&place).is_some_and(|remap| remap.1 == count) {
                self.remaps.remove(&place);
            }
        }
    }

    fn issue(&mut self, event: &BlkEvent) {
        if event.bytes == 0 {
            if event.category.contains(Category::FLUSH) && self.flushes_on.len() < DEVICES_MAX {
                self.flushes_on.insert(event.device);
            }
            return;
        }
        self.find(event);
        // A submission that is issued in parts has several issue events.
        self.choose(event, |held, within| !held.issued || !within);
        for number in &self.found {
            self.held[(number - self.first) as usize].issued = true;
        }
        self.set_priority_of_found(event);
    }

    /// Reduces `found` to the submissions to which an event belongs, so that each sector occurs
    /// once. `can` returns whether the event may belong to a submission. The second argument of
    /// `can` tells whether the submission lies within the event.
    fn choose(&mut self, event: &BlkEvent, can: impl Fn(&PendingSubmission, bool) -> bool) {
        let (start, end) = (event.sector, event.sector.saturating_add(u64::from(event.nr_sectors())));
        let extent = |held: &PendingSubmission| (held.request.sector.max(start), held.request.end().min(end));
        let (first, all) = (self.first, &mut self.held);
        let at = |number: u64| (number - first) as usize;
        self.found.retain(|&number| {
            let held = &all[at(number)];
            can(held, held.request.sector >= start && held.request.end() <= end)
                && held.parts.iter().all(|part| !overlap(*part, extent(held)))
        });
        if self.found.len() < 2 {
            return;
        }
        self.found.sort_unstable_by_key(|&number| {
            let request = &all[at(number)].request;
            ((request.sector, request.end()) != (start, end), number)
        });
        let mut chosen: Vec<u64> = Vec::new();
        for &number in &self.found {
            let rivals = chosen.iter().filter(|&&rival| overlap(extent(&all[at(rival)]), extent(&all[at(number)])));
            let rivals: Vec<u64> = rivals.copied().collect();
            if rivals.is_empty() {
                chosen.push(number);
            }
            for &rival in rivals.iter().chain((!rivals.is_empty()).then_some(&number)) {
                all[at(rival)].uncertain = true;
            }
        }
        self.found = chosen;
    }

    fn complete(&mut self, event: &BlkEvent) {
        if event.bytes == 0 {
            self.complete_whole(event);
            return;
        }
        self.find(event);
        let any_issued = self.found.iter().any(|number| self.held[(number - self.first) as usize].issued);
        self.choose(event, |held, _| (held.issued || !any_issued) && held.data_done.is_none());
        let in_steps = self.flushes_on.contains(&event.device);
        let (start, end) = (event.sector, event.sector.saturating_add(u64::from(event.nr_sectors())));
        for number in std::mem::take(&mut self.found) {
            let held = &mut self.held[(number - self.first) as usize];
            let (from, to) = (held.request.sector.max(start), held.request.end().min(end));
            held.remaining = held.remaining.saturating_sub((to - from).min(u64::from(u32::MAX)) as u32);
            if held.remaining > 0 {
                held.parts.push((from, to));
                continue;
            }
            self.uncertain += u64::from(held.uncertain);
            held.request.latency_ns = Some(event.time.since(held.request.arrival));
            let steps = iosched::Flags::FUA | iosched::Flags::PREFLUSH;
            if in_steps && held.request.flags.intersects(steps) {
                held.data_done = Some(event.time);
            } else {
                self.resolve(number);
            }
        }
    }

    /// Handles a completion without a length: the completion of a flush, or of the last step of a
    /// write.
    fn complete_whole(&mut self, event: &BlkEvent) {
        // The completion of a flush that the kernel sent has no direction. The completion of a
        // flush of a process has the direction of a write.
        let is_of_process = event.category.contains(Category::WRITE);
        if is_of_process != self.arrivals.are_of_processes() {
            return;
        }
        let first = |direction: Direction, sector: Sector| {
            let range = (direction, event.device, sector, 0)..=(direction, event.device, sector, u64::MAX);
            self.by_sector.range(range).map(|key| key.3)
        };
        let data_done = |number: &u64| self.held[(number - self.first) as usize].data_done.is_some();
        let write = first(Direction::Write, event.sector).take(SCAN_MAX).find(data_done);
        let found = write.or_else(|| first(Direction::Flush, 0).next());
        if let Some(number) = found {
            let request = &mut self.held[(number - self.first) as usize].request;
            request.latency_ns = Some(event.time.since(request.arrival));
            self.resolve(number);
        }
    }

    fn resolve(&mut self, number: u64) {
        let held = &mut self.held[(number - self.first) as usize];
        held.resolved = true;
        let key = key(&held.request, number);
        self.by_sector.remove(&key);
    }

    /// Fills `found` with the held submissions that share sectors with `event`.
    fn find(&mut self, event: &BlkEvent) {
        self.found.clear();
        let direction = Direction::of_category(event.category);
        let longest = u64::from(self.longest[direction as usize]);
        let (start, end) = (event.sector, event.sector.saturating_add(u64::from(event.nr_sectors())));
        let low = (direction, event.device, start.saturating_sub(longest), 0);
        let high = (direction, event.device, end, 0);
        for &(.., sector, number) in self.by_sector.range(low..high).rev().take(SCAN_MAX) {
            let request = &self.held[(number - self.first) as usize].request;
            if sector < end && request.end() > start {
                self.found.push(number);
            }
        }
    }
}

/// Returns whether two extents share sectors.
pub(super) fn overlap(a: (Sector, Sector), b: (Sector, Sector)) -> bool {
    a.0 < b.1 && b.0 < a.1
}

fn key(request: &TraceRequest, number: u64) -> Key {
    (Direction::of(request.op), request.device.unwrap_or(0), request.sector, number)
}
