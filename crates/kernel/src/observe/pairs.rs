//! Matches each completed request with its start.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::event::{Event, Kind, Operation};

/// Largest number of requests and `fsync` calls in flight.
const IN_FLIGHT_MAX: usize = 1 << 16;
/// Largest number of requests in flight that have the same sector and operation as an earlier
/// request.
const SAME_MAX: usize = 1 << 10;

/// A hasher of one number.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // The odd multiplier spreads the low bits to high bits. The XOR folds the high bits into
        // the low bits.
        let product = u128::from(self.0.rotate_left(5) ^ number) * 0x9e37_79b9_7f4a_7c15_u128;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

/// A map with numbers as keys.
pub(super) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// Identity of a request in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Key {
    sector: u64,
    device: u32,
    /// The operation, combined with the thread id for an `fsync`.
    operation: u32,
}

impl Key {
    const fn of(event: &Event) -> Self {
        let operation = match event.operation {
            Operation::Fsync => 8 + event.tid,
            operation => operation as u32,
        };
        Self { sector: event.sector, device: event.device, operation }
    }
}

/// A request in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InFlight {
    pub(super) started_ns: u64,
    pub(super) issued_ns: Option<u64>,
    pub(super) sectors: u32,
    /// Number of the series in which the request is counted.
    pub(super) series: u32,
}

/// A completed request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Completed {
    pub(super) start: InFlight,
    pub(super) ended_ns: u64,
    pub(super) sectors: u32,
}

/// Requests in flight.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    in_flight: NumberMap<Key, InFlight>,
    /// Requests in flight with the same key as an earlier request, in order of their start.
    same: VecDeque<(Key, InFlight)>,
    /// Whether the kernel reports requests that are merged into other requests.
    reports_merges: bool,
    /// Number of starts that were dropped.
    pub(super) dropped: u64,
}

impl Pairs {
    pub(super) fn new(reports_merges: bool) -> Self {
        Self { reports_merges, ..Self::default() }
    }

    /// Returns the number of requests in flight.
    pub(super) fn len(&self) -> usize {
        self.in_flight.len() + self.same.len()
    }

    /// Forgets all requests. Returns their number.
    pub(super) fn clear(&mut self) -> usize {
        let count = self.len();
        self.in_flight.clear();
        self.same.clear();
        count
    }

    /// Adds a request that was started.
    #[inline]
    pub(super) fn start(&mut self, event: &Event, series: u32) {
        let start = InFlight { started_ns: event.time_ns, issued_ns: None, sectors: event.sectors, series };
        self.insert(Key::of(event), start);
    }

    fn insert(&mut self, key: Key, start: InFlight) {
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            self.dropped += 1;
            return;
        }
        let earlier = self.in_flight.insert(key, start);
        let Some(earlier) = earlier else { return };
        // If the kernel does not report merges, the earlier request may be part of another request
        // now. The new request then replaces it.
        let can_be_two = self.reports_merges || key.operation == Operation::Flush as u32;
        if can_be_two && self.same.len() < SAME_MAX {
            self.in_flight.insert(key, earlier);
            self.same.push_back((key, start));
        } else {
            self.dropped += 1;
        }
    }

    /// Processes an event of a request that was started. Returns the request if it is complete.
    #[inline]
    pub(super) fn take(&mut self, event: &Event) -> Option<Completed> {
        let key = Key::of(event);
        match event.kind {
            Kind::Start | Kind::SyncStart => None,
            Kind::Issue => {
                if let Some(start) = self.in_flight.get_mut(&key) {
                    // The driver can return a request to the block layer, which issues it again.
                    // Only the first issue counts.
                    start.issued_ns.get_or_insert(event.time_ns);
                }
                None
            }
            Kind::Merge => {
                self.remove(key);
                None
            }
            Kind::FrontMerge => {
                let below = Key { sector: event.sector + u64::from(event.sectors), ..key };
                let start = self.remove(below)?;
                self.insert(key, InFlight { sectors: start.sectors + event.sectors, ..start });
                None
            }
            Kind::Complete | Kind::SyncEnd => {
                let start = self.remove(key)?;
                if (1..start.sectors).contains(&event.sectors) && event.operation != Operation::Discard {
                    // The driver completed a part of the request. The rest completes later.
                    let rest = Key { sector: event.sector + u64::from(event.sectors), ..key };
                    self.insert(rest, InFlight { sectors: start.sectors - event.sectors, ..start });
                    return None;
                }
                Some(Completed { start, ended_ns: event.time_ns, sectors: event.sectors })
            }
        }
    }

    #[inline]
    fn remove(&mut self, key: Key) -> Option<InFlight> {
        let start = self.in_flight.remove(&key)?;
        if !self.same.is_empty()
            && let Some(at) = self.same.iter().position(|(same, _)| *same == key)
            && let Some((_, next)) = self.same.remove(at)
        {
            self.in_flight.insert(key, next);
        }
        Some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, time_ns: u64, sector: u64, sectors: u32) -> Event {
        let operation = Operation::Write;
        Event { time_ns, sector, tid: 1, device: 7, sectors, ioprio: None, operation, kind, comm: [0; 16] }
    }

    fn pairs(events: &[Event]) -> (Vec<(u64, u32)>, Pairs) {
        let mut pairs = Pairs::new(true);
        let mut latencies = Vec::new();
        for event in events {
            if event.kind == Kind::Start {
                pairs.start(event, 0);
            }
            let completed = pairs.take(event);
            latencies.extend(completed.map(|done| (done.ended_ns - done.start.started_ns, done.sectors)));
        }
        (latencies, pairs)
    }

    #[test]
    fn a_request_ends_with_its_completion() {
        let other = Event { operation: Operation::Read, ..event(Kind::Complete, 15, 0, 8) };
        let (latencies, pairs) = pairs(&[
            event(Kind::Start, 10, 0, 8),
            other,
            event(Kind::Complete, 30, 0, 8),
            event(Kind::Complete, 40, 0, 8),
        ]);
        assert_eq!((latencies, pairs.len()), (vec![(20, 8)], 0));
    }

    #[test]
    fn requests_of_the_same_sector_end_in_order() {
        let starts = [event(Kind::Start, 10, 0, 8), event(Kind::Start, 11, 0, 8), event(Kind::Start, 12, 0, 8)];
        let ends = [20, 30, 40].map(|time| event(Kind::Complete, time, 0, 8));
        let (latencies, pairs) = pairs(&[starts, ends].concat());
        assert_eq!((latencies, pairs.len()), (vec![(10, 8), (19, 8), (28, 8)], 0));
    }

    #[test]
    fn merged_requests_end_with_the_request_they_are_part_of() {
        let (latencies, pairs) = pairs(&[
            event(Kind::Start, 10, 8, 8),
            event(Kind::FrontMerge, 12, 0, 8),
            event(Kind::Start, 13, 16, 8),
            event(Kind::Merge, 14, 16, 8),
            event(Kind::Complete, 30, 0, 24),
        ]);
        assert_eq!((latencies, pairs.len()), (vec![(20, 24)], 0));
    }

    #[test]
    fn a_request_that_completes_in_parts_ends_with_the_last_part() {
        let (latencies, _) =
            pairs(&[event(Kind::Start, 10, 0, 16), event(Kind::Complete, 20, 0, 4), event(Kind::Complete, 30, 4, 12)]);
        assert_eq!(latencies, [(20, 12)]);
    }

    #[test]
    fn requests_in_flight_are_bounded() {
        let starts: Vec<_> = (0..IN_FLIGHT_MAX as u64 + 9).map(|sector| event(Kind::Start, 1, sector, 1)).collect();
        let (_, pairs) = pairs(&starts);
        assert_eq!((pairs.len(), pairs.dropped), (IN_FLIGHT_MAX, 9));
    }
}
