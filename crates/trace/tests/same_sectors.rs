//! Tests of requests of the same sectors that are in flight at the same time.

use std::io::Cursor;

use iosched::{Flags, Op, Time};
use iosched_trace::{
    Action, BlkEvent, Chain, EventReader, EventWriter, Oddity, ReadOptions, Step, Survey, TraceReader, convert_events,
};

/// An event of a read: action, time in ns, process, first sector, length in sectors.
type Event = (Action, u64, u32, u64, u32);

const Q: Action = Action::Queue;
const D: Action = Action::Issue;
const C: Action = Action::Complete;

/// Returns the process and latency of each request, in the order of submission. Also returns the
/// number of requests whose latency may be the latency of another request.
fn latencies(events: &[Event]) -> (Vec<(u32, Option<u64>)>, u64) {
    let mut bytes = Vec::new();
    let mut writer = EventWriter::new(&mut bytes);
    for &(action, time_ns, pid, sector, nr_sectors) in events {
        let event = BlkEvent::new(action, Time::from_ns(time_ns), 8 << 20, pid);
        writer.write(&event.with_extent(Op::Read, Flags::SYNC, sector, nr_sectors)).unwrap();
    }
    writer.finish().unwrap();
    let mut reader = TraceReader::from_reader(Cursor::new(bytes), "t.blktrace.0", &ReadOptions::default()).unwrap();
    let mut survey = Survey::default();
    let mut found = Vec::new();
    for request in reader.by_ref() {
        let request = request.unwrap();
        survey.add(&request);
        found.push((request.pid, request.latency_ns));
    }
    assert!(reader.completeness().gaps().is_empty(), "{:?}", reader.completeness());
    let uncertain = survey.oddities_of(&reader).into_iter().find_map(|oddity| match oddity {
        Oddity::SameSectors { requests } => Some(requests),
        _ => None,
    });
    (found, uncertain.unwrap_or(0))
}

#[test]
fn each_completion_belongs_to_one_request() {
    let events = [
        (Q, 0, 1, 8, 8),
        (D, 10, 1, 8, 8),
        (Q, 100, 2, 8, 8),
        (D, 110, 2, 8, 8),
        (C, 1_000, 0, 8, 8),
        (C, 5_000, 0, 8, 8),
    ];
    assert_eq!(latencies(&events), (vec![(1, Some(1_000)), (2, Some(4_900))], 2));
}

#[test]
fn only_an_issued_request_completes() {
    // The second request is issued after the completion of the first, so the pairs are certain.
    let events = [
        (Q, 0, 1, 8, 8),
        (D, 10, 1, 8, 8),
        (Q, 100, 2, 8, 8),
        (C, 1_000, 0, 8, 8),
        (D, 2_000, 2, 8, 8),
        (C, 5_000, 0, 8, 8),
    ];
    assert_eq!(latencies(&events), (vec![(1, Some(1_000)), (2, Some(4_900))], 0));
}

#[test]
fn ambiguous_issue_makes_both_requests_uncertain() {
    let events = [
        (Q, 0, 1, 8, 8),
        (Q, 100, 2, 8, 8),
        (D, 200, 1, 8, 8),
        (C, 1_000, 0, 8, 8),
        (D, 2_000, 2, 8, 8),
        (C, 5_000, 0, 8, 8),
    ];
    assert_eq!(latencies(&events), (vec![(1, Some(1_000)), (2, Some(4_900))], 2));
}

#[test]
fn overlapping_requests_are_matched_by_length() {
    let events = [
        (Q, 0, 1, 0, 16),
        (D, 10, 1, 0, 16),
        (Q, 100, 2, 8, 8),
        (D, 110, 2, 8, 8),
        (Q, 200, 3, 0, 8),
        (D, 210, 3, 0, 8),
        (C, 1_000, 0, 8, 8),
        (C, 2_000, 0, 0, 8),
        (C, 5_000, 0, 0, 16),
    ];
    let (found, _) = latencies(&events);
    assert_eq!(found, [(1, Some(5_000)), (2, Some(900)), (3, Some(1_800))]);
}

#[test]
fn merged_and_split_requests_get_their_own_latency() {
    // Two bios in one request, and one bio in two requests. Both are in flight twice at the same
    // time.
    for (bios, requests) in [(vec![(8, 8), (16, 8)], vec![(8, 16)]), (vec![(8, 16)], vec![(8, 8), (16, 8)])] {
        let mut events: Vec<Event> = Vec::new();
        for (at_ns, pid) in [(0, 1), (100, 2)] {
            events.extend(bios.iter().map(|&(sector, length)| (Q, at_ns, pid, sector, length)));
            events.extend(requests.iter().map(|&(sector, length)| (D, at_ns + 10, pid, sector, length)));
        }
        for at_ns in [1_000, 5_000] {
            events.extend(requests.iter().map(|&(sector, length)| (C, at_ns, 0, sector, length)));
        }
        let (found, uncertain) = latencies(&events);
        let of = |pid: u32, ns: u64| bios.iter().map(move |_| (pid, Some(ns)));
        assert_eq!(found, of(1, 1_000).chain(of(2, 4_900)).collect::<Vec<_>>(), "{bios:?}");
        assert_eq!(uncertain, 2 * bios.len() as u64, "{bios:?}");
    }
}

#[test]
fn rereads_of_the_same_sectors_leave_no_gap() {
    // Three processes read the same 100 blocks, always at the same time.
    let mut events: Vec<Event> = Vec::new();
    for i in 0..100 {
        let (at_ns, sector) = (i * 10_000, i * 8);
        events.extend((1..=3u32).map(|pid| (Q, at_ns + u64::from(pid), pid, sector, 8)));
        events.extend((1..=3u32).map(|pid| (D, at_ns + 10 + u64::from(pid), pid, sector, 8)));
        events.extend((1..=3u32).map(|pid| (C, at_ns + 1_000 * u64::from(pid), 0, sector, 8)));
    }
    let (found, uncertain) = latencies(&events);
    assert!(found.iter().all(|&(pid, latency)| latency == Some(999 * u64::from(pid))), "{found:?}");
    assert_eq!(uncertain, 300);
}

#[test]
fn a_slice_keeps_each_completion_of_the_same_sectors() {
    let mut bytes = Vec::new();
    let mut writer = EventWriter::new(&mut bytes);
    for (action, time_ns, pid) in [(Q, 0, 1), (D, 10, 1), (Q, 100, 2), (D, 110, 2), (C, 1_000, 0), (C, 5_000, 0)] {
        let event = BlkEvent::new(action, Time::from_ns(time_ns), 8 << 20, pid);
        writer.write(&event.with_extent(Op::Read, Flags::SYNC, 8, 8)).unwrap();
    }
    writer.finish().unwrap();
    let mut events = EventReader::from_reader(Cursor::new(bytes), "t", &ReadOptions::default()).unwrap();
    let chain = Chain::new(vec![Step::Slice { from: Time::ZERO, to: Some(Time::from_ns(500)) }]);
    let mut out = Vec::new();
    convert_events(&mut events, &chain, &mut out).unwrap();
    let events = EventReader::from_reader(Cursor::new(out), "out", &ReadOptions::default()).unwrap();
    let times = events.map(Result::unwrap).filter(|event| event.action == C).map(|event| event.time.as_ns());
    assert_eq!(times.collect::<Vec<_>>(), [1_000, 5_000]);
}
