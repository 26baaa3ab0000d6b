//! Tests of events that pass through a chain of steps. The requests in the written events must be
//! the same as the requests that pass through the chain themselves.

use std::collections::BTreeSet;

use crate::common::*;
use iosched::{Flags, Op, Time};
use iosched_trace::{
    Action, BlkEvent, Chain, EventReader, EventWriter, Extent, Filter, ProcessName, ReadOptions, Step, TraceReader,
    TraceRequest, convert_events, summarize_stages,
};

fn source(name: &str) -> std::path::PathBuf {
    samples().join(name)
}

/// Returns requests with times since the first request, because traces may have different origins.
fn since_first(mut requests: Vec<TraceRequest>) -> Vec<TraceRequest> {
    let first = requests.first().map_or(Time::ZERO, |request| request.arrival);
    requests.iter_mut().for_each(|request| request.arrival = Time::from_ns(request.arrival.since(first)));
    requests
}

fn passed(name: &str, chain: &Chain) -> Vec<u8> {
    let mut out = Vec::new();
    let report = convert_events(&mut EventReader::open(source(name)).unwrap(), chain, &mut out).unwrap();
    assert_eq!(report.left_out, 0);
    out
}

fn expected(name: &str, chain: &Chain) -> Vec<TraceRequest> {
    let mut reader = TraceReader::open(source(name)).unwrap();
    let mut requests = Vec::new();
    while let Some(request) = reader.next() {
        let request = request.unwrap();
        let process = reader.process_names().get(&request.pid).copied();
        requests.extend(chain.apply(&request, process, |device| reader.device_text(device)));
    }
    requests
}

fn chains(name: &str) -> Vec<(&'static str, Chain)> {
    let step = |step| Chain::new(vec![step]);
    let filter = |filter| step(Step::Filter(filter));
    let ns = Time::from_ns;
    let mut extent = Extent::new();
    for request in TraceReader::open(source(name)).unwrap().map(Result::unwrap) {
        extent.add(request.op, request.sector, request.nr_sectors);
    }
    let half = extent.placed_on(extent.end_sector() / 2);
    vec![
        ("everything", Chain::default()),
        ("slice", step(Step::Slice { from: ns(100_000_000), to: Some(ns(350_000_000)) })),
        ("end", step(Step::Slice { from: ns(300_000_000), to: None })),
        ("remap", step(Step::Remap(half))),
        ("reads", filter(Filter { ops: vec![Op::Read], ..Filter::default() })),
        ("name", filter(Filter { names: BTreeSet::from([ProcessName::new(b"postgres")]), ..Filter::default() })),
        ("sectors", filter(Filter { sectors: Some(3_000_000..4_500_000), ..Filter::default() })),
        (
            "reads of a slice",
            Chain::new(vec![
                Step::Slice { from: ns(50_000_000), to: Some(ns(500_000_000)) },
                Step::Filter(Filter { ops: vec![Op::Read, Op::Write], ..Filter::default() }),
            ]),
        ),
    ]
}

#[test]
fn events_and_requests_agree_after_a_chain() {
    for name in ["pgbench.blktrace", "sqlite-insert.blktrace"] {
        for (what, chain) in chains(name) {
            assert!(chain.suits_events());
            let expected = since_first(expected(name, &chain));
            let out = passed(name, &chain);
            let again = if expected.is_empty() { Vec::new() } else { since_first(read(&out).0) };
            println!("{name}, {what}: {} requests", expected.len());
            assert_eq!(again.len(), expected.len(), "{name}: {what}");
            for (at, (again, expected)) in again.iter().zip(&expected).enumerate() {
                assert_eq!(again, expected, "{name}: {what}: {at}");
            }
        }
    }
    assert!(!Chain::new(vec![Step::Scale { speed: 2.0 }]).suits_events());
}

#[test]
fn empty_chain_keeps_every_event() {
    for name in ["pgbench.blktrace", "sqlite-insert.blktrace"] {
        let essence = |reader: EventReader| {
            let events = reader.map(Result::unwrap).filter(|event| !event.is_note());
            let mut events: Vec<_> = events.map(|event| BlkEvent { sequence: 0, cpu: 0, ..event }).collect();
            events.sort_by_key(|event| (event.time, event.sector, event.action));
            events
        };
        let out = std::io::Cursor::new(passed(name, &Chain::default()));
        let after = essence(EventReader::from_reader(out, name, &Default::default()).unwrap());
        assert!(after == essence(EventReader::open(source(name)).unwrap()), "{name}");
    }
}

#[test]
fn stages_of_filtered_reads_count_only_reads() {
    let folder = Folder::new("part");
    let name = "pgbench.blktrace";
    let whole = summarize_stages(&mut EventReader::open(source(name)).unwrap()).unwrap();
    let reads = Chain::new(vec![Step::Filter(Filter { ops: vec![Op::Read], ..Filter::default() })]);
    std::fs::write(folder.0.join("part.blktrace.0"), passed(name, &reads)).unwrap();
    let part = summarize_stages(&mut EventReader::open(folder.0.join("part")).unwrap()).unwrap();
    assert_eq!(part.all.q2c.count, 674);
    assert!(part.all.q2c.count < whole.all.q2c.count && part.all.d2c.count == 674);
    let Some(text) = btt(&folder.0, "part") else { return };
    assert!(text.lines().any(|line| line.starts_with("Q2C") && line.ends_with(" 674")), "{text}");
}

#[test]
fn slice_keeps_priorities_set_before_its_start() {
    let mut file = Vec::new();
    let mut writer = EventWriter::new(&mut file);
    let read = |ms: u64, pid| {
        BlkEvent::new(Action::Queue, Time::from_ns(ms * 1_000_000), 8 << 20, pid).with_extent(
            Op::Read,
            Flags::SYNC,
            ms,
            8,
        )
    };
    writer.set_ioprio(Time::ZERO, 1, "idle".parse().unwrap()).unwrap();
    for ms in [0, 10, 20] {
        writer.write(&read(ms, 1)).unwrap();
    }
    writer.set_ioprio(Time::from_ns(20_000_000), 2, "be/7".parse().unwrap()).unwrap();
    writer.write(&read(21, 2)).unwrap();
    writer.finish().unwrap();
    let chain = Chain::new(vec![Step::Slice { from: Time::from_ns(5_000_000), to: None }]);
    let mut events = EventReader::from_reader(
        std::io::Cursor::new(file),
        "made",
        &ReadOptions { partial: true, ..ReadOptions::default() },
    )
    .unwrap();
    let mut sliced = Vec::new();
    convert_events(&mut events, &chain, &mut sliced).unwrap();
    let ioprios: Vec<_> =
        read_all(sliced).iter().map(|request| (request.pid, request.ioprio.unwrap().to_string())).collect();
    assert_eq!(ioprios, [(1, "idle".to_owned()), (1, "idle".to_owned()), (2, "be/7".to_owned())]);
}

fn read_all(file: Vec<u8>) -> Vec<TraceRequest> {
    let options = ReadOptions { partial: true, ..ReadOptions::default() };
    TraceReader::from_reader(std::io::Cursor::new(file), "sliced", &options).unwrap().map(Result::unwrap).collect()
}
