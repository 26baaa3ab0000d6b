//! Tests of the detection of complete and incomplete recordings.

use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use crate::common::*;
use iosched::{Flags, Op, Time};
use iosched_trace::{
    Action, BlkEvent, Columns, EventReader, EventWriter, Format, Gap, ReadOptions, Source, TraceError, TraceReader,
    WHOLE_RECORDING, convert,
};

/// Writes these events as the trace of one CPU, reads it, and returns its gaps. The events
/// deliberately have no submissions.
fn gaps(events: &[BlkEvent]) -> Vec<Gap> {
    let mut data = Vec::new();
    let mut writer = EventWriter::new(&mut data);
    events.iter().for_each(|event| writer.write(event).unwrap());
    writer.finish().unwrap();
    let mut reader = TraceReader::from_reader(Cursor::new(data), "x.blktrace", &partial()).unwrap();
    reader.by_ref().for_each(drop);
    let missing = reader.completeness();
    missing.gaps().iter().filter(|gap| !matches!(gap, Gap::NoSubmissions { .. })).cloned().collect()
}

fn of_sample(name: &str) -> Vec<BlkEvent> {
    EventReader::open(samples().join(name)).unwrap().map(Result::unwrap).collect()
}

/// Returns an I/O with its times of issue and completion, ns.
fn io(number: u64, issued_ns: u64, completed_ns: u64) -> [BlkEvent; 2] {
    let at = |action, ns| {
        BlkEvent::new(action, Time::from_ns(ns), 8 << 20, 1).with_extent(Op::Read, Flags::SYNC, number * 8, 8)
    };
    [at(Action::Issue, issued_ns), at(Action::Complete, completed_ns)]
}

fn in_order(ios: impl Iterator<Item = [BlkEvent; 2]>) -> Vec<BlkEvent> {
    let mut events: Vec<BlkEvent> = ios.flatten().collect();
    events.sort_by_key(|event| event.time);
    events
}

#[test]
fn part_of_a_recording_has_no_certain_gaps() {
    for name in ["pgbench.blktrace", "sqlite-insert.blktrace"] {
        let events = of_sample(name);
        for parts in [2, 3, 5, 11] {
            for part in events.chunks(events.len() / parts) {
                let certain: Vec<Gap> = gaps(part).into_iter().filter(Gap::is_certain).collect();
                assert!(certain.is_empty(), "{name}: {parts} parts: {certain:?}");
            }
        }
    }
}

#[test]
fn deep_queue_at_both_ends_is_not_reported() {
    // 256 requests are always in flight, and they complete out of order.
    let all = in_order((0..20_000).map(|n| io(n, n * 100, n * 100 + 25_600 + n * 7_919 % 20_000)));
    let part = &all[10_000..30_000];
    let found = gaps(part);
    assert!(matches!(&found[..], [Gap::Unmatched(ends)] if ends.orphans > 100 && ends.pending > 100), "{found:?}");
    assert!(!found[0].is_certain() && !found[0].matters(), "{found:?}");
}

#[test]
fn with_end_message_requests_in_flight_at_the_ends_are_no_gap() {
    // 64 requests are in flight at a time, and a short recording sees a part of them.
    let all = in_order((0..200).map(|n| io(n, n * 100, n * 100 + 6_400)));
    let deep = |part: &[BlkEvent], message: Option<&str>| {
        let last = part.last().unwrap().time;
        let note = message.map(|text| BlkEvent::new(Action::NoteMessage, last, 0, 0).with_message(text));
        gaps(&part.iter().cloned().chain(note).collect::<Vec<_>>())
    };
    for part in [&all[..120], &all[100..180], &all[..40]] {
        let found = deep(part, Some(WHOLE_RECORDING));
        let [Gap::Unmatched(ends)] = &found[..] else { panic!("{found:?}") };
        assert!(!found[0].is_certain() && !found[0].matters() && ends.pending > 20, "{found:?}");
        assert!(found[0].to_string().ends_with("in flight when tracing began or ended"), "{}", found[0]);
        assert!(deep(part, Some("another message")).iter().any(Gap::matters), "without the message, the gap matters");
    }
}

#[test]
fn requeued_request_leaves_no_gap() {
    let mut events = in_order((0..1_000).map(|n| io(n, n * 1_000, n * 1_000 + 900)));
    for at in (0..1_000).step_by(10) {
        let mut again = events[at].clone();
        again.action = Action::Requeue;
        let issue = events[at].clone();
        events.splice(at..at, [issue, again]);
        events.sort_by_key(|event| event.time);
    }
    assert_eq!(gaps(&events), []);
}

#[test]
fn missing_share_of_issues_or_completions_is_a_certain_gap() {
    let all = in_order((0..5_000).map(|n| io(n, n * 1_000, n * 1_000 + 5_500)));
    let without = |action: Action, every: usize| {
        let mut seen = 0;
        let kept = all.iter().filter(|event| {
            seen += usize::from(event.action == action);
            event.action != action || !seen.is_multiple_of(every)
        });
        kept.cloned().collect::<Vec<_>>()
    };
    for action in [Action::Issue, Action::Complete] {
        for every in [2, 5, 20, 60] {
            let found = gaps(&without(action, every));
            assert!(found.iter().any(Gap::is_certain), "{action:?}, one of {every}: {found:?}");
        }
        let few = gaps(&without(action, 2_000));
        assert!(!few.is_empty() && few.iter().all(|gap| gap.matters() && !gap.is_certain()), "{action:?}: {few:?}");
    }
    let nothing: Vec<_> = all.iter().filter(|event| event.action != Action::Complete).cloned().collect();
    let found = gaps(&nothing);
    assert!(matches!(&found[..], [Gap::NoCompletions { issued: 5_000, one_file: false, .. }]), "{found:?}");
}

#[test]
fn one_file_of_a_multi_file_sample_is_an_error() {
    let folders = [Some(samples()), shared_folder("samples", "IOSCHED_SAMPLES")];
    let mut tried = 0;
    for folder in folders.into_iter().flatten() {
        let folder_of_one = Folder::new("one-file");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if !name.contains(".blktrace.") || name == "grep-tree.blktrace.0.zst" {
                // The file of this CPU has only one request.
                continue;
            }
            let alone = folder_of_one.0.join(&name);
            std::fs::copy(&path, &alone).unwrap();
            let last = TraceReader::open(&alone).unwrap().last().unwrap();
            assert!(matches!(last, Err(TraceError::Partial { .. })), "{name}: {last:?}");
            let with = TraceReader::open_files(std::slice::from_ref(&alone), &partial()).unwrap();
            assert!(with.last().unwrap().is_ok(), "{name}");
            std::fs::remove_file(alone).unwrap();
            tried += 1;
        }
    }
    assert!(tried >= 4, "{tried}");
}

/// Returns whether the reader returns all data without errors and finds no gaps.
fn reads_as_complete(data: &[u8]) -> bool {
    let Ok(mut reader) = strictly(data, &ReadOptions::default()) else { return false };
    reader.by_ref().all(|item| item.is_ok()) && reader.completeness().is_whole()
}

#[test]
fn truncated_compressed_file_is_not_complete() {
    let text = corpus("csv/more-columns");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(&text[..], ruzstd::encoding::CompressionLevel::Fastest);
    for (name, data) in [("gzip", gzip), ("zstd", zstd)] {
        assert!(reads_as_complete(&data), "{name}");
        for length in 0..data.len() {
            assert!(!reads_as_complete(&data[..length]), "{name}: {length} of {} bytes", data.len());
        }
    }
}

#[test]
fn truncated_line_is_not_complete() {
    let rows: String = (0..200).map(|n| format!("{},{n},R,1,{},8,1,500,,p\n", n * 1_000_000, n * 8)).collect();
    let table = format!("arrival_ns,pid,op,sync,sector,nr_sectors,device,latency_ns,flags,process\n{rows}");
    for format in Format::ALL.into_iter().filter(|format| format.is_writable() && !format.has_events()) {
        let mut out = Vec::new();
        convert(&mut open(table.as_bytes()).unwrap(), &mut out, format).unwrap();
        assert!(reads_as_complete(&out), "{format}");
        for length in out.len() - 70..out.len() {
            let between = match format {
                Format::Vscsi => (length % 32) == 0,
                _ => out[length - 1] == b'\n',
            };
            // A log of fio is complete only with the lines that close its files.
            let expected = between && !matches!(format, Format::FioV2 | Format::FioV3);
            assert_eq!(reads_as_complete(&out[..length]), expected, "{format}: {length} of {}", out.len());
        }
    }
}

#[test]
fn column_names_set_units_and_meaning() {
    let read = |names: &str, text: &str| {
        let options = ReadOptions { columns: Some(Columns::parse(names).unwrap()), ..ReadOptions::default() };
        let reader = strictly(text.as_bytes(), &options).unwrap();
        let resolution_ns = reader.resolution_ns();
        let requests: Vec<_> = reader.map(Result::unwrap).collect();
        (resolution_ns, requests)
    };
    let (resolution_ns, requests) = read(
        "time_ms,op,offset_bytes,size_bytes,latency_us",
        "1.25,R,1000,24,7.5\n2.50,WS,512,1024,\n3,trim,0,512,1\n",
    );
    assert_eq!(resolution_ns, 10_000);
    let essence: Vec<_> =
        requests.iter().map(|r| (r.arrival.as_ns(), r.op, r.sector, r.nr_sectors, r.latency_ns)).collect();
    let expected = [
        (0, Op::Read, 1, 1, Some(7_500)),
        (1_250_000, Op::Write, 1, 2, None),
        (1_750_000, Op::Discard, 0, 1, Some(1_000)),
    ];
    assert_eq!(essence, expected);
    assert_eq!(requests[1].flags, Flags::SYNC);
    // Times stay as written only in the column `arrival_ns`.
    assert_eq!(read("arrival_ns,op,sector,nr_sectors", "5,R,0,8\n").1[0].arrival, Time::from_ns(5));
    assert_eq!(read("time_ns,op,sector,nr_sectors", "5,R,0,8\n").1[0].arrival, Time::ZERO);
    let (_, requests) =
        read("-,device,time_s,op,sector,nr_sectors,-", "x y sda 1 R 0 8 z".replace("x y", "x").as_str());
    assert_eq!(requests.len(), 1);
    assert_eq!(Columns::parse("time_ns,op,sector,-").unwrap_err().to_string().matches("is missing").count(), 1);
}

#[test]
fn title_lists_the_files_read_together() {
    let title = |names: &[&str]| {
        let paths: Vec<PathBuf> = names.iter().map(|name| PathBuf::from(format!("/some/where/{name}"))).collect();
        Source::of_files(&paths).title()
    };
    assert_eq!(title(&["x.csv"]), "x.csv");
    assert_eq!(title(&["x.blktrace.3"]), "x.blktrace.3");
    assert_eq!(title(&["x.blktrace.0", "x.blktrace.1"]), "x.blktrace.0 and .1, which iosched read together");
    assert_eq!(
        title(&["x.blktrace.0", "x.blktrace.1", "x.blktrace.2"]),
        "x.blktrace.0 to .2, which iosched read together"
    );
    assert_eq!(
        title(&["x.blktrace.0", "x.blktrace.1", "x.blktrace.3.gz"]),
        "x.blktrace.0, .1 and .3.gz, which iosched read together"
    );
}
