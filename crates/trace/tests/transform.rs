//! Tests of slices, other speeds, other positions and filters: the data that each step keeps and
//! changes.

use std::collections::BTreeSet;

use crate::common::*;
use iosched::{Flags, Op, Time};
use iosched_trace::{
    Chain, Extent, Filter, Fit, Format, ProcessName, Step, TraceReader, TraceRequest, convert, convert_with,
};
use proptest::prelude::*;

fn pgbench() -> TraceReader {
    TraceReader::open(samples().join("pgbench.blktrace")).unwrap()
}

fn all() -> Vec<TraceRequest> {
    pgbench().map(Result::unwrap).collect()
}

/// Returns the sample after these steps, written as CSV, which holds all known data.
fn through(steps: Vec<Step>) -> Vec<TraceRequest> {
    let mut out = Vec::new();
    let report = convert_with(&mut pgbench(), &Chain::new(steps), &mut out, Format::Csv).unwrap();
    let requests = if report.written == 0 { Vec::new() } else { read(&out).0 };
    assert_eq!((requests.len() as u64, report.left_out, report.latencies_lost), (report.written, 0, 0));
    requests
}

fn kept(keep: impl Fn(&TraceRequest) -> bool) -> Vec<TraceRequest> {
    all().into_iter().filter(|request| keep(request)).collect()
}

#[test]
fn empty_chain_changes_nothing() {
    assert_eq!(through(Vec::new()), all());
    let (mut plain, mut chained) = (Vec::new(), Vec::new());
    convert(&mut pgbench(), &mut plain, Format::Blktrace).unwrap();
    convert_with(&mut pgbench(), &Chain::default(), &mut chained, Format::Blktrace).unwrap();
    assert_eq!(plain, chained);
}

#[test]
fn a_slice_begins_at_its_start_and_ends_before_its_end() {
    let (from, to) = (Time::from_ns(500_000_000), Time::from_ns(900_000_000));
    let sliced = through(vec![Step::Slice { from, to: Some(to) }]);
    let expected: Vec<_> = kept(|request| (from..to).contains(&request.arrival))
        .into_iter()
        .map(|request| TraceRequest { arrival: Time::from_ns(request.arrival.since(from)), ..request })
        .collect();
    assert!(expected.len() > 500, "{}", expected.len());
    assert_eq!(sliced, expected);
    // Two adjacent slices together are the whole trace.
    let first = through(vec![Step::Slice { from: Time::ZERO, to: Some(from) }]);
    let rest = through(vec![Step::Slice { from, to: None }]);
    assert_eq!(first.len() + rest.len(), all().len());
}

#[test]
fn speed_divides_arrivals_and_leaves_latencies() {
    let fast = through(vec![Step::Scale { speed: 4.0 }]);
    for (before, after) in all().iter().zip(&fast) {
        assert!((after.arrival.as_ns() * 4).abs_diff(before.arrival.as_ns()) <= 2);
        assert_eq!((before.latency_ns, before.sector, before.pid), (after.latency_ns, after.sector, after.pid));
    }
    let there_and_back = through(vec![Step::Scale { speed: 0.5 }, Step::Scale { speed: 2.0 }]);
    assert_eq!(there_and_back, all());
}

#[test]
fn steps_run_in_order() {
    let slice = |ns| Step::Slice { from: Time::ZERO, to: Some(Time::from_ns(ns)) };
    let second = Step::Scale { speed: 2.0 };
    assert_eq!(
        through(vec![slice(1_000_000_000), second.clone()]),
        through(vec![second, slice(500_000_000)]),
        "the first second at double speed is the first half second of the trace at double speed"
    );
}

#[test]
fn filter_keeps_requests_that_match_every_criterion() {
    let filter = |filter: Filter| through(vec![Step::Filter(filter)]);
    let names = pgbench_names();
    let postgres = |pid: &u32| names.iter().any(|(known, name)| known == pid && name == "postgres");

    let pids = BTreeSet::from([24_792, 24_795]);
    assert_eq!(filter(Filter { pids: pids.clone(), ..Filter::default() }), kept(|r| pids.contains(&r.pid)));
    let by_name = Filter { names: [ProcessName::new(b"postgres")].into(), ..Filter::default() };
    assert_eq!(filter(by_name.clone()), kept(|r| postgres(&r.pid)));
    let reads = Filter { ops: vec![Op::Read], ..by_name };
    assert_eq!(filter(reads), kept(|r| postgres(&r.pid) && r.op == Op::Read));
    let sectors = 3_000_000..4_000_000;
    let some = filter(Filter { sectors: Some(sectors.clone()), ..Filter::default() });
    assert_eq!(some, kept(|r| r.op != Op::Flush && r.sector < sectors.end && r.end() > sectors.start));
    assert!(!some.is_empty());
    let device = |name: &str| filter(Filter { devices: [name.to_owned()].into(), ..Filter::default() }).len();
    assert_eq!((device("7,0"), device("7340032"), device("8,0")), (all().len(), all().len(), 0));
}

fn pgbench_names() -> Vec<(u32, String)> {
    let mut reader = pgbench();
    reader.by_ref().for_each(drop);
    reader.process_names().iter().map(|(pid, name)| (*pid, name.to_text())).collect()
}

#[test]
fn remapped_trace_fits_and_keeps_adjacent_requests() {
    let mut extent = Extent::new();
    all().iter().for_each(|request| extent.add(request.op, request.sector, request.nr_sectors));
    assert_eq!(extent.placed_on(extent.end_sector()).fit(), Fit::AsIs);
    let capacity_sectors = extent.end_sector() / 2;
    let placement = extent.placed_on(capacity_sectors);
    assert!(matches!(placement.fit(), Fit::GapsShrunk { .. }), "{:?}", placement.fit());
    let small = through(vec![Step::Remap(placement)]);
    assert!(small.iter().all(|request| request.end() <= capacity_sectors));
    let neighbours =
        |requests: &[TraceRequest]| requests.windows(2).filter(|two| two[0].end() == two[1].sector).count();
    assert_eq!(neighbours(&small), neighbours(&all()));
    assert_eq!(small.len(), all().len());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn remapped_requests_are_within_the_device(
        places in prop::collection::vec((any::<u64>(), 1..10_000u32), 1..50),
        capacity_sectors in 1..1u64 << 40,
    ) {
        let mut extent = Extent::new();
        places.iter().for_each(|&(sector, nr_sectors)| extent.add(Op::Write, sector >> 8, nr_sectors));
        let placement = extent.placed_on(capacity_sectors);
        for &(sector, nr_sectors) in &places {
            let (to, length) = placement.place(sector >> 8, nr_sectors);
            prop_assert!(length > 0 && to + u64::from(length) <= capacity_sectors);
        }
    }

    #[test]
    fn scaled_arrivals_stay_in_order(
        mut times in prop::collection::vec(0..u64::MAX, 2..50),
        speed in 1e-6..1e6f64,
    ) {
        times.sort_unstable();
        let chain = Chain::new(vec![Step::Scale { speed }]);
        let request = |ns| TraceRequest {
            arrival: Time::from_ns(ns),
            pid: 0,
            device: None,
            op: Op::Read,
            flags: Flags::empty(),
            sector: 0,
            nr_sectors: 1,
            latency_ns: None,
            ioprio: None,
        };
        let arrivals: Vec<_> =
            times.iter().map(|&ns| chain.apply(&request(ns), None, |_| String::new()).unwrap().arrival).collect();
        prop_assert!(arrivals.is_sorted());
    }
}
