//! The times of requests in each stage, as btt reports them, from one pass over
//! a block trace's events.
//!
//! A submission (Q) is followed through the events of its sectors. The kernel allocates a request
//! for the submission (G) or merges it (M). The request is inserted into the scheduler (I), issued
//! (D) and completed (C). All conventions are btt's: every merged submission counts in M2D, D2C and
//! Q2C; events without data (flushes) do not count; directions are not distinguished. [`seeks`] and
//! [`plugs`] compute the rest of btt's output for a device. The counts for each process are in
//! [`TraceSummary`](crate::TraceSummary).

mod display;
mod plugs;
mod seeks;

use std::collections::{BTreeMap, VecDeque};

use iosched::{SECTOR_BYTES, Sector, Time};
use serde::{Deserialize, Serialize};

use crate::blktrace::arrivals::Arrivals;
use crate::blktrace::{Action, BlkEvent};
use crate::record::DeviceName;
use crate::summary::DEVICES_MAX;
use crate::{EventReader, TraceError};
pub use plugs::PlugSummary;
use plugs::Plugs;
use seeks::Seeks;
pub use seeks::{DISTANCES_MAX, SeekSummary};

/// Maximum number of submissions that are followed at a time on one device. If there are more, the
/// oldest is dropped.
const HELD_MAX: usize = 65_536;
/// Maximum number of submissions with which one event is compared.
const SCAN_MAX: usize = 4_096;
/// Maximum number of submissions in which the search for a given sector looks.
const SCAN_BACK_MAX: usize = 64;

/// Statistics of the times between two kinds of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Number of times.
    pub count: u64,
    /// Shortest, ns; 0 if there is none.
    pub min_ns: u64,
    /// Longest, ns; 0 if there is none.
    pub max_ns: u64,
    /// Sum, ns; saturates.
    pub sum_ns: u64,
}

impl Span {
    fn add(&mut self, ns: u64) {
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.count += 1;
    }

    fn join(&mut self, other: &Self) {
        if other.count > 0 {
            self.min_ns = if self.count == 0 { other.min_ns } else { self.min_ns.min(other.min_ns) };
            self.max_ns = self.max_ns.max(other.max_ns);
            self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
            self.count += other.count;
        }
    }

    /// Returns the mean, ns, or `None` if there is none.
    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }
}

/// Times of requests in each stage, as btt names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    /// From a submission to the next one.
    pub q2q: Span,
    /// From a submission to the allocation of its request.
    pub q2g: Span,
    /// From the allocation of a request to its insertion into the scheduler.
    pub g2i: Span,
    /// From a submission to its merge into a request.
    pub q2m: Span,
    /// From insertion to issue.
    pub i2d: Span,
    /// From a merge to issue.
    pub m2d: Span,
    /// From issue to completion.
    pub d2c: Span,
    /// From submission to completion.
    pub q2c: Span,
}

impl Stages {
    /// Returns the stages with btt's names.
    #[must_use]
    pub const fn named(&self) -> [(&'static str, &Span); 8] {
        [
            ("Q2Q", &self.q2q),
            ("Q2G", &self.q2g),
            ("G2I", &self.g2i),
            ("Q2M", &self.q2m),
            ("I2D", &self.i2d),
            ("M2D", &self.m2d),
            ("D2C", &self.d2c),
            ("Q2C", &self.q2c),
        ]
    }

    /// Adds all stages except [`Stages::q2q`], whose times span submissions of all devices.
    fn join(&mut self, other: &Self) {
        self.q2g.join(&other.q2g);
        self.g2i.join(&other.g2i);
        self.q2m.join(&other.q2m);
        self.i2d.join(&other.i2d);
        self.m2d.join(&other.m2d);
        self.d2c.join(&other.d2c);
        self.q2c.join(&other.q2c);
    }
}

/// Summary of the events of one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceStages {
    /// `major << 20 | minor`.
    pub device: u32,
    /// `major,minor`.
    pub name: String,
    /// Times in each stage.
    pub stages: Stages,
    /// Submissions with data.
    pub queued: u64,
    /// Issued requests with data.
    pub issued: u64,
    /// Length of the shortest issued request, bytes; 0 if there is none.
    pub issued_min_bytes: u64,
    /// Length of the longest issued request, bytes.
    pub issued_max_bytes: u64,
    /// Length of all issued requests, bytes.
    pub issued_bytes: u64,
    /// Seeks from each submission to the next.
    pub queue_seeks: Option<SeekSummary>,
    /// Seeks from each issued request to the next.
    pub issue_seeks: Option<SeekSummary>,
    /// Plugs, if there were any.
    pub plugs: Option<PlugSummary>,
}

impl DeviceStages {
    /// Returns the ratio of submissions to issued requests, or `None` if none was issued.
    #[must_use]
    pub fn merge_ratio(&self) -> Option<f64> {
        (self.issued > 0).then(|| self.queued as f64 / self.issued as f64)
    }
}

/// Summary of the events of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageSummary {
    /// Times for all devices together.
    pub all: Stages,
    /// Summaries by device, for at most [`DEVICES_MAX`].
    pub devices: Vec<DeviceStages>,
}

/// Makes a [`StageSummary`] from events, one by one.
#[derive(Debug, Default)]
pub struct StageSummarizer {
    devices: BTreeMap<u32, DeviceState>,
    q2q: Span,
    last_queue: Option<Time>,
    first: Option<Time>,
    last: Time,
    /// Distances remembered, for all devices.
    distances: usize,
    /// Whether the trace has no submissions. If so, a request begins with its first known event.
    without_submissions: bool,
}

/// A submission that is not complete.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    end: Sector,
    /// Time of submission, or `None` if the trace has no submissions.
    queued: Option<Time>,
    got: Option<Time>,
    merged: Option<Time>,
    inserted: Option<Time>,
    issued: Option<Time>,
}

/// First sector and number.
type Key = (Sector, u64);

#[derive(Debug, Default)]
struct DeviceState {
    held: BTreeMap<Key, OpenRequest>,
    order: VecDeque<Key>,
    count: u64,
    last_queue: Option<Time>,
    stages: Stages,
    queued: u64,
    issued: u64,
    issued_min_bytes: u64,
    issued_max_bytes: u64,
    issued_bytes: u64,
    queue_seeks: Seeks,
    issue_seeks: Seeks,
    plugs: Plugs,
}

impl StageSummarizer {
    /// Creates a summarizer that has seen no event.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an event, which must not be earlier than the preceding one.
    pub fn add(&mut self, event: &BlkEvent) {
        if event.is_note() {
            return;
        }
        if event.bytes > 0 && event.action == Action::Queue {
            self.first.get_or_insert(event.time);
        }
        if event.bytes > 0 && event.action == Action::Complete {
            self.last = self.last.max(event.time);
        }
        if self.devices.len() >= DEVICES_MAX && !self.devices.contains_key(&event.device) {
            return;
        }
        let device = self.devices.entry(event.device).or_default();
        if device.plugs.add(event) || event.bytes == 0 {
            return;
        }
        if event.action == Action::Queue
            && let Some(last) = self.last_queue.replace(event.time)
        {
            self.q2q.add(event.time.since(last));
        }
        if self.without_submissions {
            device.begin(event);
        }
        device.add(event, &mut self.distances);
    }

    /// Returns the summary of all events so far.
    #[must_use]
    pub fn finish(self) -> StageSummary {
        let span_ns = self.first.map_or(0, |first| self.last.since(first));
        let mut all = Stages { q2q: self.q2q, ..Stages::default() };
        let mut devices = Vec::new();
        for (device, state) in self.devices {
            all.join(&state.stages);
            devices.push(DeviceStages {
                device,
                name: DeviceName(device).to_string(),
                stages: state.stages,
                queued: state.queued,
                issued: state.issued,
                issued_min_bytes: state.issued_min_bytes,
                issued_max_bytes: state.issued_max_bytes,
                issued_bytes: state.issued_bytes,
                queue_seeks: state.queue_seeks.summary(),
                issue_seeks: state.issue_seeks.summary(),
                plugs: state.plugs.summary(span_ns),
            });
        }
        StageSummary { all, devices }
    }
}

impl DeviceState {
    fn add(&mut self, event: &BlkEvent, distances: &mut usize) {
        let now = event.time;
        match event.action {
            Action::Queue => {
                self.queue(event);
                self.queue_seeks.add(event, distances);
            }
            Action::GetRequest => {
                // The second part of a split submission gets a separate request.
                if let Some(held) = at(&mut self.held, event.sector) {
                    held.got = Some(now);
                    held.queued.into_iter().for_each(|queued| self.stages.q2g.add(now.since(queued)));
                }
            }
            Action::BackMerge | Action::FrontMerge => {
                if let Some((_, held)) = starting(&mut self.held, event.sector) {
                    held.merged = Some(now);
                    held.queued.into_iter().for_each(|queued| self.stages.q2m.add(now.since(queued)));
                }
            }
            Action::Insert => self.insert(event),
            Action::Issue => {
                self.issue(event);
                self.issue_seeks.add(event, distances);
            }
            Action::Complete => self.complete(event),
            _ => {}
        }
    }

    fn queue(&mut self, event: &BlkEvent) {
        self.queued += 1;
        if let Some(last) = self.last_queue.replace(event.time) {
            self.stages.q2q.add(event.time.since(last));
        }
        self.hold(event, Some(event.time));
    }

    /// Begins a request at its first known event. Plugs and completions do not begin requests.
    fn begin(&mut self, event: &BlkEvent) {
        use Action::{BackMerge, FrontMerge, GetRequest, Insert, Issue};
        let may_begin = matches!(event.action, GetRequest | BackMerge | FrontMerge | Insert | Issue);
        if may_begin && within(&mut self.held, event).next().is_none() {
            let held = self.hold(event, None);
            held.inserted = (event.action == Insert).then_some(event.time);
        }
    }

    fn hold(&mut self, event: &BlkEvent, queued: Option<Time>) -> &mut OpenRequest {
        let key = (event.sector, self.count);
        self.count += 1;
        let end = end_of(event);
        let held = OpenRequest { end, queued, got: None, merged: None, inserted: None, issued: None };
        self.held.insert(key, held);
        self.order.push_back(key);
        while self.held.len() > HELD_MAX || self.order.len() > 2 * HELD_MAX {
            let Some(oldest) = self.order.pop_front() else { break };
            self.held.remove(&oldest);
        }
        while self.order.front().is_some_and(|oldest| !self.held.contains_key(oldest)) {
            self.order.pop_front();
        }
        self.held.entry(key).or_insert(held)
    }

    fn insert(&mut self, event: &BlkEvent) {
        let now = event.time;
        let mut any = false;
        for held in within(&mut self.held, event) {
            any = true;
            if let Some(got) = held.got {
                held.inserted = Some(now);
                self.stages.g2i.add(now.since(got));
            }
        }
        if !any
            && let Some(held) = at(&mut self.held, event.sector)
            && let Some(got) = held.got
        {
            held.inserted = Some(now);
            self.stages.g2i.add(now.since(got));
        }
    }

    fn issue(&mut self, event: &BlkEvent) {
        let bytes = u64::from(event.bytes);
        self.issued_min_bytes = if self.issued == 0 { bytes } else { self.issued_min_bytes.min(bytes) };
        self.issued_max_bytes = self.issued_max_bytes.max(bytes);
        self.issued_bytes = self.issued_bytes.saturating_add(bytes);
        self.issued += 1;
        let now = event.time;
        for held in within(&mut self.held, event) {
            if let Some(inserted) = held.inserted {
                self.stages.i2d.add(now.since(inserted));
            } else if let Some(merged) = held.merged {
                self.stages.m2d.add(now.since(merged));
            }
            held.issued = Some(now);
        }
    }

    fn complete(&mut self, event: &BlkEvent) {
        let now = event.time;
        let mut done = Vec::new();
        for (key, held) in self.held.range((event.sector, 0)..(end_of(event), 0)).take(SCAN_MAX) {
            if held.end > end_of(event) {
                continue;
            }
            held.queued.into_iter().for_each(|queued| self.stages.q2c.add(now.since(queued)));
            if let Some(issued) = held.issued {
                self.stages.d2c.add(now.since(issued));
            }
            done.push(*key);
        }
        for key in done {
            self.held.remove(&key);
        }
    }
}

fn end_of(event: &BlkEvent) -> Sector {
    event.sector.saturating_add(u64::from(event.bytes) / SECTOR_BYTES)
}

/// Returns the submissions that lie within the event's sectors.
fn within<'a>(held: &'a mut BTreeMap<Key, OpenRequest>, event: &BlkEvent) -> impl Iterator<Item = &'a mut OpenRequest> {
    let end = end_of(event);
    let from = (event.sector.min(end), 0);
    held.range_mut(from..(end, 0)).take(SCAN_MAX).map(|(_, held)| held).filter(move |held| held.end <= end)
}

/// Returns the submission that begins at `sector`.
fn starting(held: &mut BTreeMap<Key, OpenRequest>, sector: Sector) -> Option<(&Key, &mut OpenRequest)> {
    held.range_mut((sector, 0)..=(sector, u64::MAX)).next()
}

/// Returns the submission that begins at `sector`. If there is none, returns one that contains
/// `sector`.
fn at(held: &mut BTreeMap<Key, OpenRequest>, sector: Sector) -> Option<&mut OpenRequest> {
    let key = match starting(held, sector) {
        Some((key, _)) => *key,
        None => {
            let before = held.range(..(sector, 0)).rev().take(SCAN_BACK_MAX);
            *before.map(|(key, held)| (key, held.end)).find(|(_, end)| sector < *end)?.0
        }
    };
    held.get_mut(&key)
}

/// Reads `events` to their end and returns the times of requests in each stage.
///
/// # Errors
/// If nothing can be read.
pub fn summarize_stages(events: &mut EventReader) -> Result<StageSummary, TraceError> {
    let without_submissions = events.arrivals() != Arrivals::Submissions;
    let mut summarizer = StageSummarizer { without_submissions, ..StageSummarizer::new() };
    for event in events {
        summarizer.add(&event?);
    }
    Ok(summarizer.finish())
}
