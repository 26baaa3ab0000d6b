//! Conversion of a block trace's events through a chain of steps into another
//! block trace. Only events that the chain removes are lost.
//!
//! The chain selects submissions (Q), or the events that count as requests instead ([`Arrivals`]).
//! The later events of a kept submission (merges, insertion, issue, completion) are kept too,
//! independent of their time and process. The converter finds these events by their sectors until
//! the submission completes. A request that contains a kept and a removed submission is kept as a
//! whole. Events without sectors (plugs, waits for a request) are selected by process, device and
//! time. Messages are selected by time. All names and priorities of processes are kept. The chain
//! should be suitable for events ([`Chain::suits_events`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;

use iosched::{Flags, Op, Sector};

use super::arrivals::{Arrivals, Take};
use super::convert::{Direction, overlap};
use super::writer::EventWriter;
use super::{Action, BlkEvent, Category, Payload};
use crate::record::DeviceName;
use crate::transform::Chain;
use crate::{EventReader, TraceError, TraceRequest, WriteReport};

/// Maximum number of submissions that are followed at a time. If there are more, the oldest is
/// dropped.
const HELD_MAX: usize = 65_536;
/// Maximum number of submissions with which one event is compared.
const SCAN_MAX: usize = 1_024;

/// Device, first sector, number.
type Key = (u32, Sector, u64);

/// A submission that is not completed.
#[derive(Clone, Copy)]
struct Sent {
    end: Sector,
    direction: Direction,
    pid: u32,
    is_kept: bool,
}

/// Kept submissions that are not completed. If other events count as requests instead of
/// submissions, the removed requests are in this list too.
struct OpenSubmissions {
    arrivals: Arrivals,
    sent: BTreeMap<Key, Sent>,
    order: VecDeque<Key>,
    count: u64,
    longest: u64,
    /// Number of kept submissions in `sent`.
    kept: usize,
    /// Flushes by device.
    flushes: BTreeMap<u32, u64>,
    /// Writes with preflush or FUA, which complete a second time without a length.
    steps: BTreeSet<(u32, Sector)>,
}

impl OpenSubmissions {
    fn new(arrivals: Arrivals) -> Self {
        Self {
            arrivals,
            sent: BTreeMap::new(),
            order: VecDeque::new(),
            count: 0,
            longest: 0,
            kept: 0,
            flushes: BTreeMap::new(),
            steps: BTreeSet::new(),
        }
    }

    fn add(&mut self, event: &BlkEvent, request: &TraceRequest, is_kept: bool) {
        if !is_kept && self.arrivals == Arrivals::Submissions {
            return;
        }
        if event.bytes == 0 {
            *self.flushes.entry(event.device).or_default() += u64::from(is_kept);
            return;
        }
        let in_steps = self.arrivals.are_of_processes() && request.flags.intersects(Flags::FUA | Flags::PREFLUSH);
        if is_kept && in_steps && self.steps.len() < HELD_MAX {
            self.steps.insert((event.device, event.sector));
        }
        let key = (event.device, event.sector, self.count);
        self.count += 1;
        self.longest = self.longest.max(u64::from(event.nr_sectors()));
        let direction = Direction::of(request.op);
        self.sent.insert(key, Sent { end: request_end(event), direction, pid: event.pid, is_kept });
        self.kept += usize::from(is_kept);
        self.order.push_back(key);
        while self.order.len() > HELD_MAX || self.order.front().is_some_and(|key| !self.sent.contains_key(key)) {
            let Some(oldest) = self.order.pop_front() else { break };
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &Key) {
        let removed = self.sent.remove(key);
        self.kept -= usize::from(removed.is_some_and(|sent| sent.is_kept));
    }

    /// Returns the submissions that share sectors with an event.
    fn overlapping(&self, event: &BlkEvent) -> Vec<(Key, Sent)> {
        let (start, end) = (event.sector, request_end(event));
        let from = (event.device, start.saturating_sub(self.longest), 0);
        let found = self.sent.range(from..(event.device, end, 0)).rev().take(SCAN_MAX);
        found.filter(|(_, sent)| sent.end > start).map(|(key, sent)| (*key, *sent)).collect()
    }

    /// Returns whether the event belongs to a known request.
    fn knows(&self, event: &BlkEvent) -> bool {
        let direction = Direction::of_category(event.category);
        self.overlapping(event).iter().any(|(_, sent)| sent.direction == direction)
    }

    /// Returns the processes of the kept requests to which the event belongs.
    fn processes(&self, event: &BlkEvent) -> Vec<u32> {
        let kept = self.overlapping(event).into_iter().filter(|(_, sent)| sent.is_kept);
        kept.map(|(_, sent)| sent.pid).collect()
    }

    /// Returns whether the event belongs to a kept submission, and records completions.
    fn has(&mut self, event: &BlkEvent) -> bool {
        if event.bytes == 0 {
            return self.has_without_length(event);
        }
        let (start, end) = (event.sector, request_end(event));
        let mut found = self.overlapping(event);
        if event.action == Action::Complete {
            // Submissions of the same length come first, then the oldest. Each sector counts once.
            // The conversion to requests uses the same rules.
            found.sort_unstable_by_key(|&((_, sector, number), sent)| ((sector, sent.end) != (start, end), number));
            let mut completed: Vec<(Sector, Sector)> = Vec::new();
            for (key, sent) in found.iter().filter(|(key, sent)| key.1 >= start && sent.end <= end) {
                let extent = (key.1, sent.end);
                if completed.iter().all(|other| !overlap(*other, extent)) {
                    completed.push(extent);
                    self.remove(key);
                }
            }
        }
        found.iter().any(|(_, sent)| sent.is_kept)
    }

    fn has_without_length(&mut self, event: &BlkEvent) -> bool {
        let step = (event.device, event.sector);
        let flushes = self.flushes.get_mut(&event.device).filter(|count| **count > 0);
        if event.action == Action::Complete && !self.arrivals.are_of_processes() {
            let is_flush = !event.category.contains(Category::WRITE);
            return flushes.is_some_and(|count| {
                *count -= u64::from(is_flush);
                true
            });
        }
        // A flush that the kernel itself sent completes without a direction.
        if event.action != Action::Complete || !event.category.contains(Category::WRITE) {
            return flushes.is_some()
                || self.steps.range((event.device, 0)..=(event.device, Sector::MAX)).next().is_some();
        }
        if self.steps.remove(&step) {
            return true;
        }
        flushes.is_some_and(|count| {
            *count -= 1;
            true
        })
    }

    fn is_empty(&self) -> bool {
        self.kept == 0 && self.steps.is_empty() && self.flushes.values().all(|&count| count == 0)
    }
}

fn request_end(event: &BlkEvent) -> Sector {
    event.sector.saturating_add(u64::from(event.nr_sectors()))
}

/// Returns the request of a submission or remap. A passed-through command (not a read, write,
/// discard or flush) counts as a read or write, according to its category.
fn request_of(event: &BlkEvent) -> TraceRequest {
    let (op, flags) = event.category.to_op(event.bytes > 0).unwrap_or((Op::Flush, Flags::empty()));
    TraceRequest {
        arrival: event.time,
        pid: event.pid,
        device: Some(event.device),
        op,
        flags,
        sector: event.sector,
        nr_sectors: event.nr_sectors(),
        latency_ns: None,
        ioprio: None,
    }
}

/// Writes the events that `chain` keeps, transformed, as blktrace's binary records of one CPU.
///
/// The report counts submissions, or the events that count as requests instead. The chain should be
/// suitable for events ([`Chain::suits_events`]). A scale also changes the times of completions,
/// and thus the latencies.
///
/// # Errors
/// If nothing can be read, or writing fails.
pub fn convert_events(events: &mut EventReader, chain: &Chain, out: impl Write) -> Result<WriteReport, TraceError> {
    let mut writer = EventWriter::new(out);
    let arrivals = events.arrivals();
    let mut submissions = OpenSubmissions::new(arrivals);
    let mut report = WriteReport::default();
    while let Some(event) = events.next() {
        let event = event?;
        let is_over = chain.is_over(event.time);
        if is_over && submissions.is_empty() && !event.is_note() {
            break;
        }
        let name = events.process_names().get(&event.pid).copied();
        let device = |device: u32| DeviceName(device).to_string();
        let is_request = !event.category.contains(Category::PC)
            && match arrivals.take(&event) {
                Take::Always => true,
                Take::IfNew => !submissions.knows(&event),
                Take::Never => false,
            };
        let is_kept = match event.action {
            Action::NoteProcess | Action::NoteTimestamp => true,
            Action::NoteMessage => event.ioprio().is_some() || chain.spans(event.time),
            action if is_request || matches!(action, Action::Queue | Action::Remap) => {
                let request = request_of(&event);
                let is_kept = chain.apply(&request, name, device).is_some();
                let is_flush = event.category.contains(Category::FLUSH);
                if is_request && (event.bytes > 0 || is_flush || action == Action::Queue) {
                    report.written += u64::from(is_kept);
                    events.without_submission += u64::from(is_kept && action != Action::Queue);
                    submissions.add(&event, &request, is_kept);
                }
                is_kept
            }
            Action::Plug | Action::Unplug | Action::UnplugTimer | Action::SleepRequest => {
                chain.keeps_bystander(&event, name, device)
            }
            _ => submissions.has(&event) || (event.bytes == 0 && chain.only_slices() && chain.spans(event.time)),
        };
        if let Payload::Priority(ioprio) = event.payload {
            for pid in submissions.processes(&event) {
                writer.set_ioprio(chain.time(event.time), pid, ioprio)?;
            }
        }
        if is_kept || chain.is_empty() {
            writer.write(&moved(event, chain))?;
        }
    }
    writer.finish()?;
    Ok(report)
}

/// Returns the event with the time and sectors that the chain gives it.
fn moved(event: BlkEvent, chain: &Chain) -> BlkEvent {
    let mut event = BlkEvent { time: chain.time(event.time), ..event };
    // The last step of a write has a sector, but no length.
    let (sector, nr_sectors) = chain.place(event.sector, event.nr_sectors());
    if (sector, nr_sectors) != (event.sector, event.nr_sectors()) && (event.bytes > 0 || event.sector > 0) {
        // A length that is not a whole number of sectors stays as it is.
        event.bytes = event.bytes.min(nr_sectors << 9);
        event.sector = sector;
    }
    match &mut event.payload {
        Payload::Remap { from_sector, .. } => *from_sector = chain.place(*from_sector, 0).0,
        Payload::SplitAt(at) => *at = chain.place(*at, 0).0,
        _ => {}
    }
    event
}
