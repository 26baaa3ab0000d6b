//! The other formats: what their fields mean, disorder, damage, compression, and all that is written.

mod common;

use std::io::Write as _;

use common::*;
use iosched::{Flags, Op};
use iosched_trace::{Format, TraceReader, TraceRequest, convert, summarize};

fn essence(requests: &[TraceRequest]) -> Vec<(u64, Op, u64, u32)> {
    requests.iter().map(|r| (r.arrival.as_ns(), r.op, r.sector, r.nr_sectors)).collect()
}

#[test]
fn blkreplay_begins_after_its_prose() {
    let data = corpus("blkreplay/prose");
    let (requests, warnings) = read(&data);
    let expected =
        [(0, Op::Write, 37_766_853, 64), (200_000_000, Op::Read, 1, 1), (449_518_165, Op::Read, 37_766_917, 14)];
    assert_eq!(essence(&requests), expected);
    assert_eq!(requests[2].flags, Flags::AHEAD);
    assert_eq!(
        warnings,
        ["input: line 6, byte 205: found \"not a line\", expected \"seconds ; sector ; sectors ; R or W ; …\""]
    );
    assert_eq!(open(&data).unwrap().format(), Format::Blkreplay);
}

#[test]
fn vscsi_is_read_in_both_versions() {
    let (requests, warnings) = read(&corpus("vscsi/version-1"));
    assert_eq!(
        essence(&requests)[..3],
        [(0, Op::Flush, 0, 0), (50_000, Op::Write, 1_000, 8), (100_000, Op::Read, 0, 1)]
    );
    assert!(requests.is_sorted_by_key(|request| request.arrival));
    assert_eq!((requests.len(), warnings.len()), (16, 4));
    assert!(warnings[0].contains("the command 0x12"), "{warnings:?}");

    let mut reader = open(&corpus("vscsi/version-2")).unwrap();
    let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(essence(&requests)[..2], [(0, Op::Read, 0, 8), (100_000, Op::Write, 1_000, 8)]);
    assert_eq!(requests[1].latency_ns, Some(251_000));
    assert_eq!((reader.format(), reader.resolution_ns(), reader.origin_ns()), (Format::Vscsi, 1_000, 5_000_000_000));
}

#[test]
fn mqsim_is_sorted_and_begins_at_zero() {
    let (requests, warnings) = read(b"2000 4 264719034 16 0\n5000 7 193987434 16 1\n3000 3 197570570 16 0\n");
    let expected =
        [(0, Op::Write, 264_719_034, 16), (1_000, Op::Write, 197_570_570, 16), (3_000, Op::Read, 193_987_434, 16)];
    assert_eq!(essence(&requests), expected);
    assert_eq!(requests[0].device, Some(4));
    assert!(warnings.is_empty());
}

#[test]
fn csv_columns_go_by_name() {
    let (requests, warnings) = read(&corpus("csv/more-columns"));
    assert_eq!(essence(&requests), [(3, Op::Read, 1, 2), (9, Op::Write, 1, 2)]);
    assert_eq!((requests[0].device, requests[0].latency_ns, requests[1].latency_ns), (Some(4), Some(5), None));
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn blkparse_lines_of_all_kinds_are_read() {
    let (requests, warnings) = read(&corpus("blkparse/summary"));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(essence(&requests), [(200, Op::Write, 2_148, 16)]);
    assert_eq!(requests[0].latency_ns, Some(600));
    let mut reader = open(&corpus("blkparse/summary")).unwrap();
    assert_eq!(reader.by_ref().count(), 1);
    assert_eq!(reader.process_names()[&77].to_text(), "writer two");
}

#[test]
fn what_a_format_holds_survives_conversion() {
    let source = samples().join("pgbench.blktrace");
    let before: Vec<_> = TraceReader::open(&source).unwrap().map(Result::unwrap).collect();
    for format in [Format::Csv, Format::Blkreplay, Format::Mqsim, Format::Vscsi] {
        let mut out = Vec::new();
        let report = convert(&mut TraceReader::open(&source).unwrap(), &mut out, format).unwrap();
        let mut reader = open(&out).unwrap();
        assert_eq!(reader.format(), format);
        let after: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert!(reader.warnings().is_empty());
        assert_eq!(after.len() as u64, report.written);
        assert_eq!(report.written + report.left_out, 7_638);
        let has_all = report.left_out == 0;
        let kept = before.iter().filter(|request| has_all || matches!(request.op, Op::Read | Op::Write));
        for (before, after) in kept.zip(&after) {
            assert_eq!((before.op, before.sector, before.nr_sectors), (after.op, after.sector, after.nr_sectors));
            assert!(
                before.arrival.as_ns().abs_diff(after.arrival.as_ns() + reader.origin_ns()) < format.resolution_ns()
            );
        }
    }
    assert!(convert(&mut TraceReader::open(&source).unwrap(), Vec::new(), Format::Blkparse).is_err());
}

#[test]
fn compression_is_told_by_magic_whatever_the_name() {
    let data = corpus("csv/ours");
    let plain = read(&data).0;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&data).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(&data[..], ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(read(&gzip).0, plain);
    assert_eq!(read(&zstd).0, plain);
    // Files put one behind the other are one file.
    let (first, second) = data.split_at(70);
    let parts = [first, second]
        .map(|part| ruzstd::encoding::compress_to_vec(part, ruzstd::encoding::CompressionLevel::Fastest));
    assert_eq!(read(&parts.concat()).0, plain);
    let warnings = read(&gzip).1;
    assert!(warnings[0].starts_with("input: line 7, byte 111 of the decompressed data: found \"x,1,R"), "{warnings:?}");
}

#[test]
fn what_cannot_be_told_says_so() {
    for (data, message) in [
        (&b""[..], "input: the trace is empty (0 bytes)"),
        (
            b"hello\nworld\n",
            "input: not a trace in a known format; known are blktrace, blkparse, blkreplay, vscsi, mqsim, csv",
        ),
        (b"\x06\x74\x61\x65aaaa", "input: a block trace of version 6; version 7 can be read"),
    ] {
        assert_eq!(open(data).err().unwrap().to_string(), message);
    }
}

#[test]
fn a_summary_adds_up() {
    let mut reader = TraceReader::open(samples().join("pgbench.blktrace")).unwrap();
    let summary = summarize(&mut reader).unwrap();
    assert_eq!((summary.all.requests, summary.reads.requests, summary.processes.len()), (7_638, 674, 9));
    assert_eq!(summary.processes[0].name.as_deref(), Some("postgres"));
    let json = serde_json::to_string(&summary).unwrap();
    let again: iosched_trace::TraceSummary = serde_json::from_str(&json).unwrap();
    assert_eq!((again.format, again.all, &again.processes), (summary.format, summary.all, &summary.processes));
    assert_eq!((&again.sizes, again.over_time.len()), (&summary.sizes, summary.over_time.len()));
    assert_eq!(summary.reads.bytes + summary.writes.bytes, summary.all.bytes);
    assert_eq!(summary.processes.iter().map(|process| process.requests).sum::<u64>(), 7_638);
    assert_eq!(summary.over_time.iter().map(|bin| bin.requests).sum::<u64>(), 7_638);
    assert_eq!(summary.sizes.iter().map(|bucket| bucket.reads + bucket.writes).sum::<u64>(), 674 + 4_164);
    // As blkparse's own summary of this trace has it.
    assert_eq!((summary.reads.bytes / 1024, summary.writes.bytes / 1024), (7_436, 68_688));
    // Little's law: what is in flight on average is the rate times the latency, but for the trace's ends.
    let latency = summary.latency.unwrap();
    let littles = latency.mean_ns * summary.all.requests as f64 / summary.span_ns as f64;
    let mean_depth: f64 = summary
        .over_time
        .iter()
        .enumerate()
        .map(|(at, bin)| {
            let width = summary.bin_ns.min(summary.span_ns - at as u64 * summary.bin_ns);
            bin.depth_mean.unwrap() * width as f64 / summary.span_ns as f64
        })
        .sum();
    assert!((littles / mean_depth - 1.0).abs() < 0.01, "{littles} {mean_depth}");
    let text = summary.to_string();
    assert!(text.lines().last().unwrap().starts_with("blktrace: 7,638 requests, 674 reads, 9 processes, 2.49 s"));
}

#[test]
fn traces_nobody_here_wrote_are_read() {
    let Some(folder) = beside("traces", "IOSCHED_TRACES") else { return };
    for (name, format, requests, reads) in [
        ("blkreplay/linux-mysql.load.gz", Format::Blkreplay, 80_794, 7_187),
        ("blkreplay/linux-webserver-2.load.gz", Format::Blkreplay, 269_007, 149_018),
        ("blkreplay/windows-shared-server.load.gz", Format::Blkreplay, 1_371, 0),
        ("cloudphysics/cloudPhysicsIO.vscsi.gz", Format::Vscsi, 113_872, 46_974),
        ("mqsim/tpcc-small.trace.gz", Format::Mqsim, 6_999, 4_381),
    ] {
        let mut reader = TraceReader::open(folder.join(name)).unwrap();
        let summary = summarize(&mut reader).unwrap();
        assert_eq!((summary.format, summary.all.requests, summary.reads.requests), (format, requests, reads), "{name}");
        assert_eq!(summary.warnings_total, 0, "{name}: {:?}", summary.warnings);
    }
}
