//! Tests that write and read every writable format. Data that the format holds must stay the same,
//! and other data must be counted as lost. fio must accept the written logs.

use std::process::Command;

use crate::common::*;
use iosched::{Flags, IoPriority, Op, Time};
use iosched_trace::{
    Format, Holds, ProcessName, ReadOptions, TraceReader, TraceRequest, TraceWriter, WriteReport, convert,
};
use proptest::prelude::*;

/// Returns requests with gaps in ns and in whole seconds, over up to 25 hours, so that all
/// resolutions are tested.
fn requests() -> impl Strategy<Value = Vec<TraceRequest>> {
    let op = prop::sample::select(vec![Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush]);
    let gap_ns = prop_oneof![Just(0), 0..10_000u64, (0..9_000u64).prop_map(|s| s * 1_000_000_000)];
    let latency_ns = prop::option::of(0..30_000_000_000u64);
    // A block trace keeps the last ioprio of a process. So only requests before the first ioprio of
    // a process have no ioprio.
    let ioprio = prop::sample::select(vec!["none", "none/7", "rt/0", "be/4", "be/7", "idle"]);
    let ioprio = ioprio.prop_map(|text| text.parse::<IoPriority>().ok());
    let one = (gap_ns, op, 0..64u8, 0..1u64 << 40, 1..3_000u32, 1..9u32, 1..4u32, latency_ns, ioprio);
    prop::collection::vec(one, 1..40).prop_map(|all| {
        let mut arrival = Time::ZERO;
        let mut requests = Vec::new();
        for (gap_ns, op, flags, sector, nr_sectors, pid, device, latency_ns, ioprio) in all {
            arrival = if requests.is_empty() { arrival } else { arrival + gap_ns };
            let flags = Flags::from_bits_truncate(flags);
            let has_data = op.has_data();
            requests.push(TraceRequest {
                arrival,
                pid,
                device: Some(8 << 20 | device << 4),
                op,
                flags: if has_data { flags } else { flags & Flags::SYNC },
                sector: if has_data { sector } else { 0 },
                nr_sectors: if has_data { nr_sectors } else { 0 },
                latency_ns,
                ioprio,
            });
        }
        requests
    })
}

/// Returns the request that a reader is expected to return. Devices are compared separately.
fn held(holds: &Holds, resolution_ns: u64, request: &TraceRequest) -> Option<TraceRequest> {
    let op = match request.op {
        op if holds.ops.contains(&op) => op,
        Op::WriteZeroes => Op::Write,
        _ => return None,
    };
    let rounded = |ns: u64| ns / resolution_ns * resolution_ns;
    Some(TraceRequest {
        arrival: Time::from_ns(if holds.times { rounded(request.arrival.as_ns()) } else { 0 }),
        pid: if holds.processes { request.pid } else { 0 },
        device: None,
        op,
        flags: request.flags & holds.flags,
        latency_ns: request.latency_ns.filter(|_| holds.latencies).map(rounded),
        ioprio: request.ioprio.filter(|_| holds.priorities),
        ..*request
    })
}

fn name(pid: u32) -> ProcessName {
    ProcessName::new(format!("p, \"{pid}\"").as_bytes())
}

fn write(format: Format, requests: &[TraceRequest]) -> (Vec<u8>, WriteReport) {
    let mut out = Vec::new();
    let mut writer = TraceWriter::new(&mut out, format).unwrap();
    for request in requests {
        writer.write(request, Some(name(request.pid)), None).unwrap();
    }
    let report = writer.finish().unwrap();
    (out, report)
}

/// Renumbers devices by first mention, as formats with names of devices do.
fn renumbered(devices: impl Iterator<Item = Option<u32>>) -> Vec<Option<usize>> {
    let mut known = Vec::new();
    let mut number = |device: u32| match known.iter().position(|&other| other == device) {
        Some(at) => at,
        None => {
            known.push(device);
            known.len() - 1
        }
    };
    devices.map(|device| device.map(&mut number)).collect()
}

fn writable() -> impl Iterator<Item = (Format, Holds)> {
    Format::ALL.into_iter().filter_map(|format| Some((format, format.spec().holds?)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_fields_round_trip_and_losses_are_counted(requests in requests()) {
        for (format, holds) in writable() {
            // A completion in a block trace finds its submission by its sectors, which are random
            // here. So formats with events are tested without latencies.
            let requests: Vec<_> = requests
                .iter()
                .map(|request| TraceRequest { latency_ns: request.latency_ns.filter(|_| !format.has_events()), ..*request })
                .collect();
            let resolution_ns = format.resolution_ns();
            let mut expected: Vec<_> =
                requests.iter().filter_map(|request| held(&holds, resolution_ns, request)).collect();
            let (file, report) = write(format, &requests);
            prop_assert_eq!(report.written, expected.len() as u64, "{}", format);
            prop_assert_eq!(report.left_out, (requests.len() - expected.len()) as u64, "{}", format);
            if expected.is_empty() {
                continue;
            }
            if format.spec().from_first {
                let origin = expected[0].arrival;
                expected.iter_mut().for_each(|request| request.arrival = Time::from_ns(request.arrival.since(origin)));
            }
            let mut reader = TraceReader::from_reader(std::io::Cursor::new(file), "written", &ReadOptions::default()).unwrap();
            prop_assert_eq!(reader.format(), format, "the format is detected by content");
            let again: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
            prop_assert!(reader.warnings().is_empty(), "{}: {:?}", format, reader.warnings().kept());
            let without: Vec<_> = again.iter().map(|request| TraceRequest { device: None, ..*request }).collect();
            prop_assert_eq!(&without, &expected, "{}", format);

            let kept = requests.iter().filter(|request| held(&holds, resolution_ns, request).is_some());
            let devices: Vec<_> = kept.clone().map(|request| request.device.filter(|_| holds.devices)).collect();
            let found = again.iter().map(|request| request.device);
            prop_assert_eq!(renumbered(found), renumbered(devices.into_iter()), "{}", format);
            let names = reader.process_names();
            for request in kept.clone().filter(|_| holds.processes) {
                prop_assert_eq!(names.get(&request.pid), Some(&name(request.pid)), "{}", format);
            }
            let counts = [
                (report.flags_lost, kept.clone().filter(|request| !holds.flags.contains(request.flags)).count()),
                (report.pids_lost, kept.clone().filter(|_| !holds.processes).count()),
                (report.devices_lost, kept.clone().filter(|_| !holds.devices).count()),
                (report.latencies_lost, kept.clone().filter(|r| !holds.latencies && r.latency_ns.is_some()).count()),
                (report.priorities_lost, kept.clone().filter(|r| !holds.priorities && r.ioprio.is_some()).count()),
                (report.times_lost, kept.filter(|r| !holds.times && r.arrival != Time::ZERO).count()),
            ];
            for (counted, expected) in counts {
                prop_assert_eq!(counted, expected as u64, "{}: {:?}", format, counts);
            }
        }
    }
}

#[test]
fn unknown_latency_stays_unknown() {
    let request = |latency_ns| TraceRequest {
        arrival: Time::ZERO,
        pid: 1,
        device: None,
        op: Op::Read,
        flags: Flags::empty(),
        sector: 8,
        nr_sectors: 8,
        latency_ns,
        ioprio: None,
    };
    for (format, _) in writable().filter(|(_, holds)| holds.latencies) {
        let known = TraceRequest { sector: 800, ..request(Some(4_200)) };
        let (file, _) = write(format, &[request(None), known]);
        let again: Vec<_> = read(&file).0.iter().map(|request| request.latency_ns).collect();
        assert_eq!(again, [None, Some(4_200)], "{format}");
    }
}

#[test]
fn device_names_survive_conversion() {
    let log = corpus("fio/v2");
    let mut out = Vec::new();
    let report = convert(&mut open(&log).unwrap(), &mut out, Format::FioV3).unwrap();
    assert_eq!((report.written, report.left_out, report.devices_lost), (5, 0, 0));
    let mut reader = open(&out).unwrap();
    assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 5);
    let names: Vec<_> = reader.device_names().iter().map(|(number, name)| (*number, name.as_ref())).collect();
    assert_eq!(names, [(0, "/data/a"), (1, "/data/b")]);
    let text = String::from_utf8(out).unwrap();
    assert!(
        text.starts_with("fio version 3 iolog\n0 /data/a add\n0 /data/a open\n0 /data/a read 4096 8192\n"),
        "{text}"
    );

    let mut out = Vec::new();
    convert(&mut open(&corpus("msr/heading")).unwrap(), &mut out, Format::Msr).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().next(), Some("0,web,1,Read,3154152960,24576,41286"));
    assert!(text.contains(",web,2,Write,512,512,\n"), "{text}");
}

/// Compares the numbers of reads and writes in fio's JSON output for a replayed log with the log.
#[test]
fn fio_replays_written_logs() {
    let requests: Vec<_> =
        TraceReader::open(samples().join("pgbench.blktrace")).unwrap().map(Result::unwrap).take(400).collect();
    let count = |op: Op| requests.iter().filter(|request| request.op == op).count() as u64;
    let folder = Folder::new("fio");
    // Four requests have high sectors, so a sparse file replaces the disk.
    let device = std::fs::File::create(folder.0.join("device")).unwrap();
    device.set_len(requests.iter().map(|request| request.end() * 512).max().unwrap()).unwrap();
    for format in [Format::FioV2, Format::FioV3] {
        let (log, report) = write(format, &requests);
        assert_eq!(report.written, 400);
        std::fs::write(folder.0.join("log"), log).unwrap();
        let arguments = ["--name=replay", "--read_iolog=log", "--replay_redirect=device", "--ioengine=psync"];
        let output =
            match Command::new("fio").args(arguments).arg("--output-format=json").current_dir(&folder.0).output() {
                Ok(output) => output,
                Err(error) => {
                    assert!(std::env::var_os("CI").is_none(), "fio cannot be run ({error}), and CI skips nothing");
                    println!("skipped: fio cannot be run ({error}); the package fio has it");
                    return;
                }
            };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout);
        let json: serde_json::Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
        let job = &json["jobs"][0];
        let done = |kind: &str, figure: &str| job[kind][figure].as_u64().unwrap();
        assert_eq!(
            (done("read", "total_ios"), done("write", "total_ios")),
            (count(Op::Read), count(Op::Write)),
            "{text}"
        );
        let bytes = |op: Op| requests.iter().filter(|r| r.op == op).map(|r| u64::from(r.nr_sectors) * 512).sum::<u64>();
        assert_eq!((done("read", "io_bytes"), done("write", "io_bytes")), (bytes(Op::Read), bytes(Op::Write)));
        println!("{format}: fio did {} reads and {} writes", count(Op::Read), count(Op::Write));
    }
}
