//! The binary reader against blkparse, record by record, and what becomes of the samples.

use std::path::{Path, PathBuf};

use iosched_trace::{Action, EventReader, TraceReader};

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// The lines blkparse prints by default for the events of a trace.
fn lines_of(path: &Path) -> Vec<String> {
    let mut events = EventReader::open(path).expect("opens");
    let mut lines = Vec::new();
    while let Some(event) = events.next() {
        let event = event.expect("reads");
        let name = events.process_names().get(&event.pid).copied().filter(|_| event.pid != 0);
        lines.extend(event.to_blkparse_line(name));
    }
    assert!(events.warnings().is_empty(), "{:?}", events.warnings().kept());
    lines
}

fn text_lines(text: &str) -> Vec<String> {
    let events = text.lines().filter(|line| line.split_whitespace().next().is_some_and(|word| word.contains(',')));
    events.map(|line| line.trim_end().to_owned()).collect()
}

fn assert_same(ours: &[String], theirs: &[String]) {
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(ours, theirs, "record {at}");
    }
    assert_eq!(ours.len(), theirs.len());
}

#[test]
fn every_record_is_as_blkparse_prints_it() {
    let mut text = String::new();
    let file = std::fs::File::open(samples().join("sqlite-insert.txt.zst")).unwrap();
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(file).unwrap();
    std::io::Read::read_to_string(&mut decoder, &mut text).unwrap();
    assert_same(&lines_of(&samples().join("sqlite-insert.blktrace")), &text_lines(&text));
}

#[test]
fn text_and_binary_give_the_same_requests() {
    let binary: Vec<_> = TraceReader::open(samples().join("sqlite-insert.blktrace")).unwrap().flatten().collect();
    let text: Vec<_> = TraceReader::open(samples().join("sqlite-insert.txt.zst")).unwrap().flatten().collect();
    assert_eq!(binary.len(), 4791);
    for (binary, text) in binary.iter().zip(&text) {
        assert_eq!(binary, text);
    }
    assert_eq!(binary.len(), text.len());
}

#[test]
fn every_request_of_the_samples_finds_its_completion() {
    for (name, requests) in [("pgbench.blktrace", 7_638), ("sqlite-insert.blktrace.1.zst", 4_791)] {
        let read: Vec<_> = TraceReader::open(samples().join(name)).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(read.len(), requests);
        let without: Vec<_> = read.iter().filter(|request| request.latency_ns.is_none()).collect();
        assert!(without.is_empty(), "{} of {name} without latency, first {:?}", without.len(), without.first());
        assert!(read.is_sorted_by_key(|request| request.arrival));
    }
    let events = EventReader::open(samples().join("pgbench.blktrace")).unwrap().flatten();
    assert_eq!(events.filter(|event| event.action == Action::Queue).count(), 7_638);
}
