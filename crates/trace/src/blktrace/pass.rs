//! A block trace's events through a chain of steps, into another block trace: nothing is lost but what is left out.
//!
//! The chain decides on submissions (Q). What becomes of a submission that is kept is kept, too, whoever's process was
//! running and whenever it happens: merges, insertion, issue, completion, found by their sectors as long as the
//! submission is not completed. A request that holds a kept and another submission is kept whole. Events without
//! sectors (plugs, waits for a request) go by their process, device and time; messages by their time; names and
//! priorities of processes are all kept. Only for chains that suit events ([`Chain::suits_events`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;

use iosched::{Flags, Op, Sector};

use super::writer::EventWriter;
use super::{Action, BlkEvent, Category, Payload};
use crate::record::DeviceName;
use crate::transform::Chain;
use crate::{EventReader, TraceError, TraceRequest, WriteReport};

/// Most submissions followed at a time; the oldest is given up for a new one.
const HELD_MAX: usize = 65_536;
/// Most submissions one event is compared with.
const SCAN_MAX: usize = 1_024;

/// Device, first sector, number.
type Key = (u32, Sector, u64);

/// Submissions that were kept and are not completed.
#[derive(Default)]
struct OpenSubmissions {
    ends: BTreeMap<Key, Sector>,
    order: VecDeque<Key>,
    count: u64,
    longest: u64,
    /// Flushes by device.
    flushes: BTreeMap<u32, u64>,
    /// Writes with preflush or FUA, which complete once more without a length.
    steps: BTreeSet<(u32, Sector)>,
}

impl OpenSubmissions {
    fn add(&mut self, event: &BlkEvent, request: &TraceRequest) {
        if event.bytes == 0 {
            *self.flushes.entry(event.device).or_default() += 1;
            return;
        }
        if request.flags.intersects(Flags::FUA | Flags::PREFLUSH) && self.steps.len() < HELD_MAX {
            self.steps.insert((event.device, event.sector));
        }
        let key = (event.device, event.sector, self.count);
        self.count += 1;
        self.longest = self.longest.max(u64::from(event.nr_sectors()));
        self.ends.insert(key, request_end(event));
        self.order.push_back(key);
        while self.order.len() > HELD_MAX || self.order.front().is_some_and(|key| !self.ends.contains_key(key)) {
            let Some(oldest) = self.order.pop_front() else { break };
            self.ends.remove(&oldest);
        }
    }

    /// Whether the event is one of a kept submission; takes note of completions.
    fn has(&mut self, event: &BlkEvent) -> bool {
        if event.bytes == 0 {
            return self.has_without_length(event);
        }
        let (start, end) = (event.sector, request_end(event));
        let from = (event.device, start.saturating_sub(self.longest), 0);
        let found = self.ends.range(from..(event.device, end, 0)).rev().take(SCAN_MAX);
        let found: Vec<(Key, Sector)> =
            found.filter(|(_, other)| **other > start).map(|(key, end)| (*key, *end)).collect();
        if event.action == Action::Complete {
            for (key, _) in found.iter().filter(|(key, other)| key.1 >= start && *other <= end) {
                self.ends.remove(key);
            }
        }
        !found.is_empty()
    }

    fn has_without_length(&mut self, event: &BlkEvent) -> bool {
        let step = (event.device, event.sector);
        let flushes = self.flushes.get_mut(&event.device).filter(|count| **count > 0);
        // A flush that the kernel sends of its own completes without a direction.
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
        self.ends.is_empty() && self.steps.is_empty() && self.flushes.values().all(|&count| count == 0)
    }
}

fn request_end(event: &BlkEvent) -> Sector {
    event.sector.saturating_add(u64::from(event.nr_sectors()))
}

/// What a submission or remap asks for. What is neither read, write, discard nor flush (a command passed through)
/// counts as a read or write of its category.
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

/// Writes the events that `chain` keeps, changed, as blktrace's binary records of one CPU.
///
/// The report counts submissions. The chain should suit events ([`Chain::suits_events`]); where it does not,
/// completions move with arrivals.
///
/// # Errors
/// When nothing can be read, or writing fails.
pub fn convert_events(events: &mut EventReader, chain: &Chain, out: impl Write) -> Result<WriteReport, TraceError> {
    let mut writer = EventWriter::new(out);
    let mut kept = OpenSubmissions::default();
    let mut report = WriteReport::default();
    while let Some(event) = events.next() {
        let event = event?;
        let is_over = chain.is_over(event.time);
        if is_over && kept.is_empty() && !event.is_note() {
            break;
        }
        let name = events.process_names().get(&event.pid).copied();
        let device = |device: u32| DeviceName(device).to_string();
        let is_kept = match event.action {
            Action::NoteProcess | Action::NoteTimestamp => true,
            Action::NoteMessage => event.ioprio().is_some() || chain.spans(event.time),
            Action::Queue | Action::Remap => {
                let request = request_of(&event);
                let is_kept = chain.apply(&request, name, device).is_some();
                if is_kept && event.action == Action::Queue && !event.category.contains(Category::PC) {
                    report.written += 1;
                    kept.add(&event, &request);
                }
                is_kept
            }
            Action::Plug | Action::Unplug | Action::UnplugTimer | Action::SleepRequest => {
                chain.keeps_bystander(&event, name, device)
            }
            _ => kept.has(&event) || (event.bytes == 0 && chain.only_slices() && chain.spans(event.time)),
        };
        if is_kept || chain.is_empty() {
            writer.write(&moved(event, chain))?;
        }
    }
    writer.finish()?;
    Ok(report)
}

/// The event when and where the chain puts it.
fn moved(event: BlkEvent, chain: &Chain) -> BlkEvent {
    let mut event = BlkEvent { time: chain.time(event.time), ..event };
    // The last step of a write has a sector, but no length.
    let (sector, nr_sectors) = chain.place(event.sector, event.nr_sectors());
    if (sector, nr_sectors) != (event.sector, event.nr_sectors()) && (event.bytes > 0 || event.sector > 0) {
        // A length that is no whole number of sectors stays what it is.
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
