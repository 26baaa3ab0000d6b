//! One entry function per reader for fuzzing. For any bytes, a reader must not panic, and its
//! results must be valid.
//!
//! `fuzz/` has a target for each entry. `cargo test` runs the entries with the stored inputs
//! (corpora).

use std::io::Cursor;

use iosched::{Op, Time};

use crate::{
    Action, BlkEvent, Category, Chain, EventReader, Extent, Filter, Format, Gap, ReadOptions, StageSummarizer, Step,
    Summarizer, TraceError, TraceReader, WARNINGS_MAX, convert, convert_events,
};

/// Maximum number of requests that are read, because compressed input can expand to many more.
const REQUESTS_MAX: usize = 100_000;

/// A target: its name, which is also the name of its corpus, and its entry function.
pub type Target = (&'static str, fn(&[u8]));

/// All targets of random input for readers of traces.
pub const TARGETS: [Target; 15] = [
    ("blktrace", blktrace),
    ("blkparse", blkparse),
    ("tracepoints", tracepoints),
    ("blkreplay", blkreplay),
    ("vscsi", vscsi),
    ("mqsim", mqsim),
    ("csv", csv),
    ("fio", fio),
    ("msr", msr),
    ("spc", spc),
    ("fiu", fiu),
    ("alibaba", alibaba),
    ("tencent", tencent),
    ("detect", detect),
    ("convert", converted),
];

/// Fuzzes the reader of blktrace's records.
pub fn blktrace(data: &[u8]) {
    read(data, Some(Format::Blktrace));
    events(data);
}

/// Fuzzes the reader of blkparse's text.
pub fn blkparse(data: &[u8]) {
    read(data, Some(Format::Blkparse));
    events(data);
}

/// Fuzzes the reader of the kernel's tracepoints as text.
pub fn tracepoints(data: &[u8]) {
    read(data, Some(Format::Tracepoints));
    events(data);
}

/// Fuzzes the reader of blkreplay's text.
pub fn blkreplay(data: &[u8]) {
    read(data, Some(Format::Blkreplay));
}

/// Fuzzes the reader of vscsiStats' records.
pub fn vscsi(data: &[u8]) {
    read(data, Some(Format::Vscsi));
}

/// Fuzzes the reader of MQSim's text.
pub fn mqsim(data: &[u8]) {
    read(data, Some(Format::Mqsim));
}

/// Fuzzes the reader of iosched's columns.
pub fn csv(data: &[u8]) {
    read(data, Some(Format::Csv));
}

/// Fuzzes the reader of fio's I/O logs, in both versions.
pub fn fio(data: &[u8]) {
    read(data, Some(Format::FioV2));
    read(data, Some(Format::FioV3));
}

/// Fuzzes the reader of the traces of Microsoft Research Cambridge.
pub fn msr(data: &[u8]) {
    read(data, Some(Format::Msr));
}

/// Fuzzes the reader of the Storage Performance Council's format.
pub fn spc(data: &[u8]) {
    read(data, Some(Format::Spc));
}

/// Fuzzes the reader of the traces of Florida International University.
pub fn fiu(data: &[u8]) {
    read(data, Some(Format::Fiu));
}

/// Fuzzes the reader of Alibaba's traces.
pub fn alibaba(data: &[u8]) {
    read(data, Some(Format::Alibaba));
}

/// Fuzzes the reader of Tencent's traces.
pub fn tencent(data: &[u8]) {
    read(data, Some(Format::Tencent));
}

/// Fuzzes detection and decompression, and the reader that detection selects.
pub fn detect(data: &[u8]) {
    read(data, None);
    // An incomplete file fails at the end of reading, or before.
    let Ok(mut reader) = TraceReader::from_reader(Cursor::new(data.to_vec()), "input", &ReadOptions::default()) else {
        return;
    };
    let refused = reader.by_ref().any(|item| item.is_err());
    let reason = !reader.warnings().is_empty() || !reader.completeness().is_whole();
    assert!(!refused || reason, "a refusal says why");
}

/// Fuzzes every writer, and the reader of its format with the written output.
pub fn converted(data: &[u8]) {
    for format in Format::ALL.into_iter().filter(|format| format.is_writable()) {
        let Ok(mut reader) = open(data, None) else { return };
        let mut out = Vec::new();
        let Ok(report) = convert(&mut reader, &mut out, format) else { return };
        if report.written == 0 {
            continue;
        }
        let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
        let again = TraceReader::from_reader(Cursor::new(out), "converted", &options);
        let again = again.map_or(0, |reader| reader.filter(Result::is_ok).count() as u64);
        assert_eq!(again, report.written, "{format}: the number of requests read equals the number written");
    }
}

/// Returns options that accept incomplete data.
fn partial() -> ReadOptions {
    ReadOptions { partial: true, ..ReadOptions::default() }
}

fn open(data: &[u8], format: Option<Format>) -> Result<TraceReader, TraceError> {
    let options = ReadOptions { format, ..partial() };
    TraceReader::from_reader(Cursor::new(data.to_vec()), "input", &options)
}

fn read(data: &[u8], format: Option<Format>) {
    let mut reader = match open(data, format) {
        Ok(reader) => reader,
        Err(error) => {
            let _ = error.to_string();
            return;
        }
    };
    let mut summarizer = Summarizer::new();
    let mut last = Time::ZERO;
    for item in reader.by_ref().take(REQUESTS_MAX) {
        match item {
            Ok(request) => {
                assert!(request.arrival >= last, "in order of time");
                assert_eq!(
                    request.op.has_data(),
                    request.nr_sectors > 0,
                    "a request has a length exactly when its operation has data"
                );
                last = request.arrival;
                summarizer.add(&request);
            }
            Err(error) => {
                assert!(matches!(error, TraceError::Unreadable { .. } | TraceError::BadLines { .. }), "{error}");
            }
        }
    }
    assert!(reader.warnings().kept().len() <= WARNINGS_MAX);
    let _ = summarizer.finish(&reader).to_string();
    reader.completeness().gaps().iter().for_each(|gap| drop(gap.to_string()));
}

fn events(data: &[u8]) {
    let Ok(mut reader) = EventReader::from_reader(Cursor::new(data.to_vec()), "input", &partial()) else { return };
    let mut last = Time::ZERO;
    for event in reader.by_ref().flatten().take(REQUESTS_MAX) {
        assert!(event.time >= last, "in order of time");
        last = event.time;
        let _ = event.to_blkparse_line(None);
    }
    let Ok(mut reader) = EventReader::from_reader(Cursor::new(data.to_vec()), "input", &partial()) else { return };
    let mut stages = StageSummarizer::new();
    reader.by_ref().flatten().take(REQUESTS_MAX).for_each(|event| stages.add(&event));
    let _ = stages.finish().to_string();
    passed(data);
}

/// Converts events through a chain, and reads the written events again.
fn passed(data: &[u8]) {
    let mut extent = Extent::new();
    extent.add(Op::Write, 1 << 20, 1 << 12);
    extent.add(Op::Discard, 1 << 40, 8);
    let slice = Step::Slice { from: Time::from_ns(100), to: Some(Time::from_ns(1 << 40)) };
    let filter = Filter { ops: vec![Op::Read, Op::Write], ..Filter::default() };
    let chain = Chain::new(vec![slice, Step::Filter(filter), Step::Remap(extent.placed_on(1 << 14))]);
    let Ok(mut reader) = EventReader::from_reader(Cursor::new(data.to_vec()), "input", &partial()) else { return };
    let mut out = Vec::new();
    let Ok(report) = convert_events(&mut reader, &chain, &mut out) else { return };
    // Whether events other than submissions count as requests.
    let others = reader.completeness().gaps().iter().any(|gap| matches!(gap, Gap::NoSubmissions { .. }));
    if report.written > 0 {
        let of_requests = |event: &BlkEvent| {
            let stands_for = matches!(event.action, Action::Insert | Action::Issue | Action::GetRequest)
                || matches!(event.action, Action::BackMerge | Action::FrontMerge);
            event.action == Action::Queue && !event.category.contains(Category::PC) || stands_for
        };
        let again = EventReader::from_reader(Cursor::new(out), "passed", &partial());
        let again = again.map_or(Vec::new(), |events| events.flatten().filter(of_requests).collect());
        let submissions = again.iter().filter(|event| event.action == Action::Queue).count() as u64;
        let is_same = submissions == report.written || (others && again.len() as u64 >= report.written);
        assert!(is_same, "the number of submissions read equals the number written");
    }
}
