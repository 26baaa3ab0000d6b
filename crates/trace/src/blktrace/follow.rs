//! Which events of a block trace have no counterparts: completions of what was never sent, and requests that never
//! complete. That is how the missing file of a CPU shows.
//!
//! Requests complete on other CPUs than they were submitted on, at least some of them, and each CPU has a file of its
//! own. Sequence numbers count within a CPU, so they say nothing of others.

use std::collections::{BTreeMap, BTreeSet};

use iosched::{Sector, Time};

use super::{Action, BlkEvent, Category, Payload};
use crate::completeness::Unmatched;

/// Most requests followed at a time: more than any device holds. The oldest is given up for a new one.
const OPEN_MAX: usize = 65_536;
/// A request that so many others overtake was not under way when tracing ended: more than devices hold.
const OVERTAKEN_MAX: u64 = 1_024;
/// A device with work is silent at the end so many times longer than ever before if its completions are missing from
/// then on.
const SILENCE_TIMES: u64 = 4;
/// The message with which `iosched record` ends what it has recorded: everything of all CPUs is before it, so that what
/// has no counterpart was under way when recording began or ended.
pub const WHOLE_RECORDING: &str = "iosched record: all CPUs, and nothing was lost";
/// CPUs told apart.
const CPUS_MAX: usize = 8_192;

/// Which way, device, first sector.
type Key = (u8, u32, Sector);

/// Extents that were sent and are not completed: where each ends, and its number.
#[derive(Default)]
struct Open {
    extents: BTreeMap<Key, (Sector, u64)>,
    /// With the completions there had been.
    by_number: BTreeMap<u64, (Key, u64)>,
    sent: u64,
    given_up: u64,
    /// Sent again without having completed.
    replaced: u64,
}

impl Open {
    fn send(&mut self, key: Key, end: Sector, completions: u64) {
        let number = self.sent;
        self.sent += 1;
        if let Some((_, replaced)) = self.extents.insert(key, (end, number)) {
            self.by_number.remove(&replaced);
            self.replaced += 1;
        }
        self.by_number.insert(number, (key, completions));
        if self.by_number.len() > OPEN_MAX
            && let Some((_, (oldest, _))) = self.by_number.pop_first()
        {
            self.extents.remove(&oldest);
            self.given_up += 1;
        }
    }

    /// It comes back, to be sent again.
    fn take_back(&mut self, key: Key) {
        if let Some((_, number)) = self.extents.remove(&key) {
            self.by_number.remove(&number);
        }
    }

    /// Whether anything open shares sectors with what is completed, which ends what it covers.
    fn complete(&mut self, (way, device, start): Key, end: Sector) -> bool {
        let before = self.extents.range((way, device, 0)..(way, device, start)).next_back();
        let before = before.filter(|(_, (other_end, _))| *other_end > start).map(|(key, _)| *key);
        let within = self.extents.range((way, device, start)..(way, device, end.max(start))).map(|(key, _)| *key);
        let found: Vec<Key> = before.into_iter().chain(within).collect();
        for key in &found {
            let Some((own_end, number)) = self.extents.remove(key) else { continue };
            let sent_at = self.by_number.remove(&number).map_or(0, |(_, completions)| completions);
            if own_end > end {
                let rest = (key.0, key.1, end);
                self.extents.insert(rest, (own_end, number));
                self.by_number.insert(number, (rest, sent_at));
            }
        }
        !found.is_empty()
    }

    fn pending(&self) -> u64 {
        self.extents.len() as u64 + self.given_up + self.replaced
    }

    /// Those sent in the earlier half, or overtaken by more of the `completions` than a device holds.
    fn stale(&self, completions: u64) -> u64 {
        let middle = self.sent / 2;
        let is_stale =
            |(number, (_, sent_at)): (&u64, &(Key, u64))| *number < middle || completions - sent_at > OVERTAKEN_MAX;
        self.given_up + self.by_number.iter().filter(|request| is_stale(*request)).count() as u64
    }
}

/// Takes events in the order they happened.
#[derive(Default)]
pub(crate) struct Follower {
    submitted: Open,
    issued: Open,
    completions: u64,
    /// Completions of any kind, those without a length counted.
    any_completions: u64,
    orphans: u64,
    /// Orphans among the completions so far, when these were a power of two: by its exponent.
    orphans_at: Vec<u64>,
    /// Since when the device has been silent while it had work, and what was issued meanwhile.
    silent_since: Time,
    silent_issued: u64,
    longest_silence_ns: u64,
    now: Time,
    /// Whoever recorded it says that it is the whole.
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

    /// The CPUs that events are of, rising.
    pub(crate) fn cpus(&self) -> Vec<u32> {
        self.cpus.iter().copied().collect()
    }

    /// Requests that were issued where there is no completion at all.
    pub(crate) fn issued_without_completions(&self) -> Option<u64> {
        (self.issued.sent > 0 && self.any_completions == 0 && !self.is_whole).then_some(self.issued.sent)
    }

    /// Requests that were issued after the last completion, if that is longer ago than a device with work is silent.
    fn issued_into_silence(&self) -> u64 {
        let silence_ns = self.now.since(self.silent_since);
        let is_odd = self.completions > 0 && silence_ns > self.longest_silence_ns.saturating_mul(SILENCE_TIMES);
        if is_odd { self.silent_issued } else { 0 }
    }

    /// What has no counterpart; `None` if everything has, or if one side was not recorded.
    pub(crate) fn unmatched(&self) -> Option<Unmatched> {
        let by_issue = self.issued.sent > 0;
        let open = if by_issue { &self.issued } else { &self.submitted };
        if (self.any_completions == 0 && !self.is_whole) || open.sent == 0 {
            return None;
        }
        // From a quarter to half of the way on.
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
