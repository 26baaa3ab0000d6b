//! Finds events of a block trace without their counterparts: completions of requests that were
//! never sent, and requests that never complete. Such events reveal that the file of a CPU is
//! missing.
//!
//! Some requests always complete on another CPU than the one that submitted them, and each CPU has
//! a separate file. Sequence numbers are per CPU, so they cannot reveal a missing CPU.

use std::collections::{BTreeMap, BTreeSet};

use iosched::{Sector, Time};

use super::{Action, BlkEvent, Category, Payload};
use crate::completeness::Unmatched;

/// Maximum number of requests that are followed at a time. No device holds more. If there are more
/// requests, the oldest request is dropped.
const OPEN_MAX: usize = 65_536;
/// Maximum number of requests that can overtake a request in flight, because no device holds more.
/// If more requests overtook a pending request, the completion of this request is missing.
const OVERTAKEN_MAX: u64 = 1_024;
/// Factor for the time without completions at the end of the trace. If a device has work, and this
/// time exceeds every earlier time without completions by the factor, completions are missing.
const SILENCE_TIMES: u64 = 4;
/// The message with which `iosched record` ends a recording. All events of all CPUs precede this
/// message. Therefore requests without counterparts were in flight at the start or end of the
/// recording.
pub const WHOLE_RECORDING: &str = "iosched record: all CPUs, and nothing was lost";
/// Maximum number of CPUs that are distinguished.
const CPUS_MAX: usize = 8_192;

/// Direction, device, first sector.
type Place = (u8, u32, Sector);
/// Place and number, because several requests of the same sectors can be in flight.
type Key = (Place, u64);

/// Requests that were sent and are not completed.
#[derive(Default)]
struct Open {
    /// Ends of the requests, sectors.
    extents: BTreeMap<Key, Sector>,
    /// Place of each request by its number, with the number of completions before the request.
    by_number: BTreeMap<u64, (Place, u64)>,
    sent: u64,
    given_up: u64,
}

impl Open {
    fn send(&mut self, place: Place, end: Sector, completions: u64) {
        let number = self.sent;
        self.sent += 1;
        self.extents.insert((place, number), end);
        self.by_number.insert(number, (place, completions));
        if self.by_number.len() > OPEN_MAX
            && let Some((oldest, (place, _))) = self.by_number.pop_first()
        {
            self.extents.remove(&(place, oldest));
            self.given_up += 1;
        }
    }

    /// Removes a request that went back to the queue. It will be sent again.
    fn take_back(&mut self, place: Place) {
        let oldest = self.extents.range((place, 0)..=(place, u64::MAX)).next().map(|(key, _)| *key);
        if let Some(key) = oldest {
            self.extents.remove(&key);
            self.by_number.remove(&key.1);
        }
    }

    /// Returns whether an open request shares sectors with the completion. Removes the completed
    /// part, each sector once. Prefers a request of exactly these sectors, then the oldest.
    fn complete(&mut self, (way, device, start): Place, end: Sector) -> bool {
        let place = (way, device, start);
        let same = self.extents.range((place, 0)..=(place, u64::MAX)).find(|&(_, &other_end)| other_end == end);
        if let Some((&key, _)) = same {
            self.extents.remove(&key);
            self.by_number.remove(&key.1);
            return true;
        }
        let before = self.extents.range(((way, device, 0), 0)..(place, 0)).next_back().map(|((place, _), _)| *place);
        let before = before.into_iter().flat_map(|place| self.extents.range((place, 0)..=(place, u64::MAX)));
        let within = self.extents.range((place, 0)..((way, device, end.max(start)), 0));
        let mut covered = start;
        let mut found: Vec<(Key, Sector)> = Vec::new();
        for (&key, &other_end) in before.chain(within) {
            let from = key.0.2.max(start);
            if other_end > start && (found.is_empty() || from >= covered) {
                covered = other_end;
                found.push((key, other_end));
            }
        }
        for &(key, other_end) in &found {
            self.extents.remove(&key);
            let sent_at = self.by_number.remove(&key.1).map_or(0, |(_, completions)| completions);
            if other_end > end {
                let rest = (way, device, end);
                self.extents.insert((rest, key.1), other_end);
                self.by_number.insert(key.1, (rest, sent_at));
            }
        }
        !found.is_empty()
    }

    fn pending(&self) -> u64 {
        self.extents.len() as u64 + self.given_up
    }

    /// Returns the number of open requests that were not in flight at the end of the trace. Such a
    /// request was sent in the first half, or more requests overtook it than a device holds.
    fn stale(&self, completions: u64) -> u64 {
        let middle = self.sent / 2;
        let is_stale =
            |(number, (_, sent_at)): (&u64, &(Place, u64))| *number < middle || completions - sent_at > OVERTAKEN_MAX;
        self.given_up + self.by_number.iter().filter(|request| is_stale(*request)).count() as u64
    }
}

/// Follows events in the order of time.
#[derive(Default)]
pub(crate) struct Follower {
    submitted: Open,
    issued: Open,
    completions: u64,
    /// Completions of any kind, including those without a length.
    any_completions: u64,
    /// Whether any request began in the recording: it was submitted, allocated, inserted or issued.
    any_began: bool,
    orphans: u64,
    /// Number of orphans (completions without a known request) at the times when the number of
    /// completions was a power of two. The index is the exponent.
    orphans_at: Vec<u64>,
    /// Time of the last completion, or of the first issue after an idle time. The next field counts
    /// the issues since then.
    silent_since: Time,
    silent_issued: u64,
    longest_silence_ns: u64,
    now: Time,
    /// Whether the recorder has stated that the recording is complete.
    is_whole: bool,
    cpus: BTreeSet<u32>,
    last_cpu: Option<u32>,
}

impl Follower {
    #[inline]
    pub(crate) fn add(&mut self, event: &BlkEvent) {
        if event.is_note() {
            self.is_whole |= matches!(&event.payload, Payload::Message(text) if **text == *WHOLE_RECORDING);
            return;
        }
        if self.last_cpu != Some(event.cpu) && self.cpus.len() < CPUS_MAX {
            self.cpus.insert(event.cpu);
            self.last_cpu = Some(event.cpu);
        }
        self.now = event.time;
        if event.action == Action::Complete {
            self.any_completions += 1;
        }
        self.any_began |= matches!(event.action, Action::Queue | Action::GetRequest | Action::Insert | Action::Issue);
        if event.bytes == 0 || event.category.contains(Category::PC) {
            return;
        }
        let way = match event.category {
            category if category.contains(Category::DISCARD) => 2,
            category if category.contains(Category::WRITE) => 1,
            _ => 0,
        };
        let key = (way, event.device, event.sector);
        let end = event.sector.saturating_add(u64::from(event.nr_sectors()));
        match event.action {
            Action::Queue => self.submitted.send(key, end, self.completions),
            Action::Issue => {
                if self.issued.extents.is_empty() {
                    self.silent_since = event.time;
                }
                self.silent_issued += 1;
                self.issued.send(key, end, self.completions);
            }
            Action::Requeue => self.issued.take_back(key),
            Action::Complete => {
                let (submitted, issued) = (self.submitted.complete(key, end), self.issued.complete(key, end));
                self.orphans += u64::from(!submitted && !issued);
                self.longest_silence_ns = self.longest_silence_ns.max(event.time.since(self.silent_since));
                (self.silent_since, self.silent_issued) = (event.time, 0);
                self.completions += 1;
                if self.completions.is_power_of_two() {
                    self.orphans_at.push(self.orphans);
                }
            }
            _ => {}
        }
    }

    /// Returns the CPUs of the events, in rising order.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        self.cpus.iter().copied().collect()
    }

    /// Returns the number of issued requests if there is no completion at all.
    pub(crate) fn issued_without_completions(&self) -> Option<u64> {
        (self.issued.sent > 0 && self.any_completions == 0 && !self.is_whole).then_some(self.issued.sent)
    }

    /// Returns the number of completions if no request begins in the recording.
    pub(crate) fn completions_alone(&self) -> Option<u64> {
        (self.any_completions > 0 && !self.any_began && !self.is_whole).then_some(self.any_completions)
    }

    /// Returns the number of requests issued after the last completion, if the time without
    /// completions since then is unusually long.
    fn issued_into_silence(&self) -> u64 {
        let silence_ns = self.now.since(self.silent_since);
        let is_odd = self.completions > 0 && silence_ns > self.longest_silence_ns.saturating_mul(SILENCE_TIMES);
        if is_odd { self.silent_issued } else { 0 }
    }

    /// Returns the events without counterparts. Returns `None` if there are none, or if the trace
    /// has no completions or no events that begin requests.
    pub(crate) fn unmatched(&self) -> Option<Unmatched> {
        let by_issue = self.issued.sent > 0;
        let open = if by_issue { &self.issued } else { &self.submitted };
        if (self.any_completions == 0 && !self.is_whole) || open.sent == 0 {
            return None;
        }
        // The later part of the trace begins after a quarter to a half of the completions.
        let exponent = self.completions.checked_ilog2().unwrap_or(0).saturating_sub(1) as usize;
        let before = self.orphans_at.get(exponent).copied().unwrap_or(0);
        let unmatched = Unmatched {
            completions: self.completions,
            orphans: self.orphans,
            late_completions: self.completions.saturating_sub(1 << exponent),
            late_orphans: self.orphans - before.min(self.orphans),
            issued: open.sent,
            pending: open.pending(),
            stale_pending: open.stale(self.completions).max(self.issued_into_silence()),
            by_issue,
            cpus: self.cpus(),
            cpus_missing: false,
        };
        let unmatched = match self.is_whole {
            true => Unmatched { late_orphans: 0, stale_pending: 0, ..unmatched },
            false => unmatched,
        };
        (unmatched.orphans > 0 || unmatched.pending > 0).then_some(unmatched)
    }
}
