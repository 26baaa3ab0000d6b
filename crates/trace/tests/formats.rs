//! Tests of the other formats: meanings of the fields, disorder, damage, compression, and writing.

use std::io::Write as _;

use crate::common::*;
use iosched::{Flags, Op};
use iosched_trace::{Format, Gap, ReadOptions, TraceReader, TraceRequest, convert, summarize};

fn essence(requests: &[TraceRequest]) -> Vec<(u64, Op, u64, u32)> {
    requests.iter().map(|r| (r.arrival.as_ns(), r.op, r.sector, r.nr_sectors)).collect()
}

#[test]
fn blkreplay_skips_text_before_the_records() {
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
fn csv_processes_without_pids_are_numbered_by_name() {
    let text = b"time_us,op,sector,nr_sectors,process\n0,R,0,8,db\n1,W,8,8,\"backup, full\"\n2,R,16,8,db\n3,R,24,8,\n";
    let mut reader = open(text).unwrap();
    let requests: Vec<TraceRequest> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(requests.iter().map(|request| request.pid).collect::<Vec<_>>(), [1, 2, 1, 0]);
    let names: Vec<_> = reader.process_names().iter().map(|(pid, name)| (*pid, name.to_text())).collect();
    assert_eq!(names, [(1, "db".to_owned()), (2, "backup, full".to_owned())]);
}

#[test]
fn csv_fields_may_be_quoted() {
    let (requests, warnings) = read(b"\"time_us\",\"op\",\"sector\",\"nr_sectors\"\n\"5\",\"read\",\"8\",\"16\"\n");
    assert_eq!(essence(&requests), [(0, Op::Read, 8, 16)]);
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn skipped_records_are_reported_as_a_gap() {
    let mut text = String::from("time_us,op,sector,nr_sectors\n");
    (0..1_000).for_each(|n| text.push_str(&format!("{n},R,{},{}\n", n * 8, n % 2 * 8)));
    let mut reader = open(text.as_bytes()).unwrap();
    assert_eq!(reader.by_ref().map(Result::unwrap).count(), 500);
    let completeness = reader.completeness();
    let [gap @ Gap::PassedOver { records: 500, total: 1_000, first }] = completeness.gaps() else {
        panic!("{completeness:?}")
    };
    assert_eq!(first.place.line, Some(2));
    assert!(gap.matters() && !gap.is_certain(), "{gap}");
}

#[test]
fn csv_columns_are_found_by_name() {
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
fn conversion_keeps_the_fields_of_a_format() {
    let source = samples().join("pgbench.blktrace");
    let before: Vec<_> = TraceReader::open(&source).unwrap().map(Result::unwrap).collect();
    for format in Format::ALL
        .into_iter()
        .filter(|format| format.is_writable() && !format.has_events() && *format != Format::FioV2)
    {
        let mut out = Vec::new();
        let report = convert(&mut TraceReader::open(&source).unwrap(), &mut out, format).unwrap();
        let mut reader = open(&out).unwrap();
        assert_eq!(reader.format(), format);
        let after: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert!(reader.warnings().is_empty());
        assert_eq!(after.len() as u64, report.written);
        assert_eq!(report.written + report.left_out, 7_638);
        let kept = before.iter().filter(|request| format.spec().holds.unwrap().ops.contains(&request.op));
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
fn compression_is_detected_by_magic_number() {
    let data = corpus("csv/ours");
    let plain = read(&data).0;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&data).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = ruzstd::encoding::compress_to_vec(&data[..], ruzstd::encoding::CompressionLevel::Fastest);
    assert_eq!(read(&gzip).0, plain);
    assert_eq!(read(&zstd).0, plain);
    // Concatenated compressed files are one file.
    let (first, second) = data.split_at(70);
    let parts = [first, second]
        .map(|part| ruzstd::encoding::compress_to_vec(part, ruzstd::encoding::CompressionLevel::Fastest));
    assert_eq!(read(&parts.concat()).0, plain);
    let warnings = read(&gzip).1;
    assert!(
        warnings[0].starts_with("input: line 7, byte 111 of the decompressed data: found \"x\", expected a time"),
        "{warnings:?}"
    );
}

#[test]
fn errors_of_unreadable_input_list_the_formats_tried() {
    for (data, message) in [
        (&b""[..], "input: the trace is empty (0 bytes)"),
        (b"\x06\x74\x61\x65aaaa", "input: the block trace has version 6; iosched reads only version 7"),
    ] {
        assert_eq!(open(data).err().unwrap().to_string(), message);
    }
    let error = open(b"hello\nworld\n").err().unwrap();
    let message = error.to_string();
    let cause = "input: this is not a trace in a known format: its lines are neither records of a known format nor rows of \
     a table";
    assert!(message.starts_with(cause) && message.lines().count() == 1, "{message}");
    let tried = error.tried().unwrap();
    for format in Format::ALL {
        assert!(tried.contains(&format!("\n  {format}: ")), "{format} was tried: {tried}");
    }
}

#[test]
fn summary_totals_are_consistent() {
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
    // These are the values of blkparse's own summary of this trace.
    assert_eq!((summary.reads.bytes / 1024, summary.writes.bytes / 1024), (7_436, 68_688));
    // Little's law: the mean number of requests in flight is the rate times the mean latency, apart
    // from effects at both ends of the trace.
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
fn published_traces_are_read_without_warnings() {
    let Some(folder) = shared_folder("traces", "IOSCHED_TRACES") else { return };
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

/// Returns format, requests and warnings of a file of the corpus.
fn of_corpus(name: &str) -> (Format, Vec<TraceRequest>, Vec<String>) {
    let data = corpus(name);
    let (requests, warnings) = read(&data);
    (open(&data).unwrap().format(), requests, warnings)
}

#[test]
fn fio_logs_are_read_in_both_versions() {
    let (format, requests, warnings) = of_corpus("fio/v2");
    assert_eq!(format, Format::FioV2);
    assert_eq!(warnings, ["input: line 14, byte 244: iosched skipped an I/O of length 0"]);
    let expected = [
        (0, Op::Read, 8, 16),
        // Partial sectors of an unaligned I/O count as whole sectors.
        (1_500_000, Op::Write, 0, 3),
        (1_520_000, Op::Discard, 2_048, 128),
        (1_520_000, Op::Flush, 0, 0),
        (1_520_000, Op::Flush, 0, 0),
    ];
    assert_eq!(essence(&requests), expected);
    let devices: Vec<_> = requests.iter().map(|request| request.device).collect();
    assert_eq!(devices, [Some(0), Some(1), Some(0), Some(0), Some(1)]);

    let (format, requests, warnings) = of_corpus("fio/v3");
    let expected = [
        (149_000, Op::Read, 120, 8),
        (5_916_000, Op::Write, 1_512, 8),
        (307_731_000, Op::Flush, 0, 0),
        (307_783_000, Op::Discard, 816, 8),
    ];
    assert_eq!((format, essence(&requests)), (Format::FioV3, expected.to_vec()));
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("input: line 6, byte 107: found \"5920 /tmp/f nonsense 1 2\""), "{warnings:?}");
    // A log of version 3 has no `wait`, so the line is not a record.
    assert_eq!(read(b"fio version 3 iolog\n0 f wait 5 0\n0 f sync\n").1.len(), 1);
}

#[test]
fn msr_traces_are_read_by_host_and_disk() {
    let data = corpus("msr/heading");
    let mut reader = open(&data).unwrap();
    let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    let expected = [
        (0, Op::Read, 6_160_455, 48),
        (1_332_047_100, Op::Read, 1, 1),
        (1_332_052_600, Op::Write, 5_185_533, 8),
        (1_332_052_600, Op::Write, 1, 1),
    ];
    assert_eq!((reader.format(), essence(&requests)), (Format::Msr, expected.to_vec()));
    let latencies: Vec<_> = requests.iter().map(|request| request.latency_ns).collect();
    assert_eq!(latencies, [Some(4_128_600), Some(700), Some(196_300), None]);
    let names: Vec<_> = requests.iter().map(|request| reader.device_text(request.device.unwrap())).collect();
    assert_eq!(names, ["web.1", "usr.0", "web.1", "web.2"]);
    assert_eq!(reader.warnings().total(), 1);
}

#[test]
fn spc_traces_are_read() {
    let (format, requests, warnings) = of_corpus("spc/optional");
    let expected = [
        (551_706_000, Op::Write, 20_941_264, 16),
        (554_041_000, Op::Write, 20_939_840, 16),
        (900_000_000, Op::Read, 5, 1),
        (1_000_000_000, Op::Read, 3_072, 3),
    ];
    assert_eq!((format, essence(&requests), warnings.len()), (Format::Spc, expected.to_vec(), 1));
    assert_eq!(requests[3].device, Some(2));
    assert!(requests.iter().all(|request| request.latency_ns.is_none()));
}

#[test]
fn fiu_traces_are_read_with_their_processes() {
    let mut reader = open(&corpus("fiu/names")).unwrap();
    let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    let expected =
        [(0, Op::Write, 904_265_560, 8), (600_000, Op::Read, 3_345_071, 16), (1_600_000, Op::Write, 3_345_087, 8)];
    assert_eq!((reader.format(), essence(&requests)), (Format::Fiu, expected.to_vec()));
    let names: Vec<_> = reader.process_names().iter().map(|(pid, name)| (*pid, name.to_text())).collect();
    assert_eq!(names, [(16, "two words".to_owned()), (17, "x".to_owned()), (4_892, "syslogd".to_owned())]);
    assert_eq!(reader.device_text(requests[1].device.unwrap()), "8,1");
    assert_eq!(reader.warnings().total(), 1);
}

#[test]
fn alibaba_and_tencent_traces_are_read_by_volume() {
    let (format, requests, warnings) = of_corpus("alibaba/heading");
    let expected = [(0, Op::Write, 0, 3), (215_000, Op::Write, 17_173_304, 32), (261_000, Op::Read, 115_449_856, 704)];
    assert_eq!((format, essence(&requests), warnings.len()), (Format::Alibaba, expected.to_vec(), 1));
    assert_eq!(requests[2].device, Some(725));

    let (format, requests, warnings) = of_corpus("tencent/plain");
    let expected =
        [(0, Op::Read, 12_910_952, 128), (0, Op::Read, 78_643_200, 256), (1_000_000_000, Op::Write, 6_265_688, 8)];
    assert_eq!((format, essence(&requests), warnings.len()), (Format::Tencent, expected.to_vec(), 1));
    let one = ReadOptions { device: Some(1_360), ..ReadOptions::default() };
    assert_eq!(read_with(&corpus("tencent/plain"), &one).0.len(), 1);
}

#[test]
fn all_columns_of_iosched_csv_are_read() {
    let mut reader = open(&corpus("csv/all")).unwrap();
    let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(
        essence(&requests),
        [(0, Op::Read, 100, 8), (10, Op::Write, 100, 8), (20, Op::Flush, 0, 0), (30, Op::WriteZeroes, 7, 8)]
    );
    assert_eq!((requests[0].latency_ns, requests[0].flags), (Some(5_000), Flags::SYNC | Flags::PRIO | Flags::AHEAD));
    assert_eq!((requests[1].device, requests[1].latency_ns, requests[1].flags), (None, None, Flags::empty()));
    assert_eq!(reader.process_names()[&8].to_text(), "a, \"b\"");
    assert_eq!(reader.warnings().total(), 2);
}

#[test]
fn written_formats_are_detected_by_content() {
    for format in Format::ALL.into_iter().filter(|format| format.is_writable()) {
        let mut out = Vec::new();
        convert(&mut open(&corpus("csv/all")).unwrap(), &mut out, format).unwrap();
        assert_eq!(open(&out).unwrap().format(), format);
        // The name of the file does not matter.
        let named =
            TraceReader::from_reader(std::io::Cursor::new(out), "trace.mqsim", &ReadOptions::default()).unwrap();
        assert_eq!(named.format(), format);
    }
}

#[test]
fn every_format_reads_its_example() {
    for format in Format::ALL {
        let example = format.spec().example;
        let digits: String = example.split_whitespace().collect();
        let bytes = || (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
        let data = if format.is_binary() { bytes().collect() } else { format!("{example}\n").into_bytes() };
        let mut reader = open(&data).unwrap();
        let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(reader.format(), format, "{example}");
        let [request] = &requests[..] else { panic!("{format}: {requests:?}") };
        assert_eq!((request.op, request.sector, request.nr_sectors), (Op::Read, 4_530_168, 8), "{format}");
        assert!(reader.warnings().is_empty(), "{format}: {:?}", reader.warnings());
    }
}

#[test]
fn summary_tables_keep_columns_aligned() {
    // Sizes of 11 characters and more, long names of files, and counts of seeks.
    let lines = |file: &str| {
        (0..40u64)
            .map(|at| format!("{} {file} read {} 65536\n", at * 50_000, at * 9_999_999_999_872))
            .collect::<String>()
    };
    let text =
        format!("fio version 3 iolog\n{}{}", lines("/dev/a"), lines("/mnt/very/long/path/to/some/image.of.a.disk"));
    let summary = summarize(&mut open(text.as_bytes()).unwrap()).unwrap().to_string();
    for table in summary.split("\n\n").filter(|table| table.starts_with("device") || table.starts_with("time")) {
        let columns: Vec<usize> =
            table.lines().map(|line| line.split("  ").filter(|cell| !cell.trim().is_empty()).count()).collect();
        assert!(columns.len() > 2 && columns[1..].iter().all(|count| *count == columns[1]), "{table}");
        let widths: Vec<usize> = table.lines().map(str::len).collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    }
}

#[test]
fn comments_and_blank_lines_change_nothing() {
    for format in Format::ALL.into_iter().filter(|format| !format.is_binary()) {
        let example = format.spec().example;
        let lines: Vec<&str> = example.lines().collect();
        let around =
            |end: &str| format!("# of host a{end}{end}{}{end}  # noted{end}{end}", lines.join(&format!("{end}{end}")));
        for text in [around("\n"), around("\r\n"), format!("\u{feff}{}", around("\n"))] {
            let mut reader = strictly(text.as_bytes(), &ReadOptions::default()).unwrap();
            let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
            assert_eq!((reader.format(), requests.len()), (format, 1), "{text:?}");
            assert!(reader.warnings().is_empty(), "{format}: {:?}", reader.warnings());
        }
    }
}
