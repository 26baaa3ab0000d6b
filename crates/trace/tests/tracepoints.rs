//! Tests of the kernel's tracepoints as text, and of the events that are requests if submissions
//! are missing.

use crate::common::*;
use iosched::{Op, Time};
use iosched_trace::{
    Chain, EventReader, Filter, Format, Gap, ReadOptions, Step, TraceError, TraceReader, TraceRequest, convert_events,
    summarize_stages,
};

/// Returns the lines of the recorded text that contain one of these words.
fn only(words: &[&str]) -> Vec<u8> {
    let text = String::from_utf8(corpus("tracepoints/tracefs")).unwrap();
    let lines = text.lines().filter(|line| words.iter().any(|word| line.contains(word)));
    lines.map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

fn gaps(text: &[u8]) -> Vec<Gap> {
    let mut reader = strictly(text, &ReadOptions::default()).unwrap();
    reader.by_ref().for_each(|item| assert!(item.is_ok()));
    reader.completeness().gaps().to_vec()
}

fn essence(requests: &[TraceRequest]) -> Vec<(Op, u64, u32, u32, Option<u64>)> {
    requests
        .iter()
        .map(|request| (request.op, request.sector, request.nr_sectors, request.pid, request.latency_ns))
        .collect()
}

#[test]
fn tracefs_perf_and_trace_cmd_give_the_same_requests() {
    let (requests, warnings) = read(&corpus("tracepoints/tracefs"));
    assert!(warnings.is_empty(), "{warnings:?}");
    let queued = only(&["block_bio_queue"]).iter().filter(|b| **b == b'\n').count();
    assert_eq!(requests.len(), queued);
    assert_eq!(requests.iter().filter(|request| request.op == Op::Flush).count(), 3);
    assert!(requests.iter().all(|request| request.latency_ns.is_some()), "{requests:?}");
    // The request lasts from 14737.828221 to 14737.828313 s.
    assert_eq!(essence(&requests)[0], (Op::Write, 1_952, 32, 23_481, Some(92_000)));
    assert_eq!((requests[0].arrival, requests[0].device), (Time::ZERO, Some(7 << 20)));
    assert_eq!(requests[0].ioprio.unwrap().to_string(), "be/4");
    assert_eq!(requests.last().unwrap().op, Op::Discard);
    for tool in ["perf-script", "trace-cmd"] {
        let data = corpus(&format!("tracepoints/{tool}"));
        let (other, warnings) = read(&data);
        assert!(warnings.is_empty() && other == requests, "{tool}: {warnings:?}");
        let windows = String::from_utf8(data).unwrap().replace('\n', "\r\n\r\n");
        assert!(read(windows.as_bytes()).0 == requests, "{tool} with CRLF and blank lines");
    }
    let mut reader = strictly(&corpus("tracepoints/tracefs"), &ReadOptions::default()).unwrap();
    reader.by_ref().for_each(|item| assert!(item.is_ok()));
    assert!(reader.completeness().is_whole(), "{:?}", reader.completeness());
    assert_eq!(reader.process_names()[&23_481].to_text(), "fio");
    assert_eq!((reader.format(), reader.resolution_ns()), (Format::Tracepoints, 1_000));
}

#[test]
fn latency_format_and_lines_without_process_are_read() {
    let usual = b" postgres-9526  [001] d..1.  10.000100: block_rq_issue: 8,16 RS 8192 () 64 + 16 [postgres]\n\
        <idle>-0     [001] d.h1.  10.000300: block_rq_complete: 8,16 RS () 64 + 16 [0]\n";
    let latency = b" postgres-9526    1d..1.  10.000100: block_rq_issue:       8,16 RS 8192 () 64 + 16 [postgres]\n\
        <idle>-0       1d.h1.  10.000300: block_rq_complete:    8,16 RS () 64 + 16 [0]\n";
    let alone = b"   10.000100: block:block_rq_issue: 8,16 RS 8192 () 64 + 16 [postgres]\n\
        10.000300: block:block_rq_complete: 8,16 RS () 64 + 16 [0]\n";
    let requests = read(usual).0;
    assert_eq!(essence(&requests), [(Op::Read, 64, 16, 9_526, Some(200_000))]);
    assert_eq!(essence(&read(latency).0), essence(&requests));
    assert_eq!(essence(&read(alone).0), [(Op::Read, 64, 16, 0, Some(200_000))], "the lines have no process");
}

#[test]
fn requests_come_from_insertions_or_issues_without_submissions() {
    let all = read(&only(&["block_bio_queue", "block_rq_complete"])).0;
    let of_data = |requests: &[TraceRequest]| -> Vec<_> {
        let data = requests.iter().filter(|request| request.op.has_data());
        data.map(|request| (request.op, request.sector, request.nr_sectors)).collect()
    };
    // The text begins with a flush that the kernel issued for an earlier process.
    for (words, flushes) in [
        (&["block_rq_insert", "block_rq_issue", "block_rq_complete"][..], 4),
        (&["block_rq_issue", "block_rq_complete"], 4),
        (&["block_getrq", "block_rq_complete"], 3),
    ] {
        let text = only(words);
        let (requests, _) = read(&text);
        assert_eq!(of_data(&requests), of_data(&all), "{words:?}");
        assert_eq!(requests.iter().filter(|request| request.op == Op::Flush).count(), flushes, "{words:?}");
        assert!(requests.iter().all(|request| request.latency_ns.is_some()), "{words:?}: {requests:?}");
        let gaps = gaps(&text);
        assert!(
            matches!(gaps[..], [Gap::NoSubmissions { issued }] if issued == 7 + flushes as u64),
            "{words:?}: {gaps:?}"
        );
    }
    let issued = read(&only(&["block_rq_issue", "block_rq_complete"])).0;
    // The request is in the device from 14737.828240 to 14737.828313 s.
    assert_eq!(issued[0].latency_ns, Some(73_000));
    let gaps = gaps(&only(&["block_rq_issue"]));
    assert!(gaps.iter().any(|gap| matches!(gap, Gap::NoCompletions { .. })), "{gaps:?}");
}

#[test]
fn later_stages_are_known_if_submissions_are_missing() {
    let of = |words: &[&str]| {
        let reader = std::io::Cursor::new(only(words));
        summarize_stages(&mut EventReader::from_reader(reader, "input", &partial()).unwrap()).unwrap().all
    };
    let all = of(&["block_bio_queue", "block_getrq", "block_rq_insert", "block_rq_issue", "block_rq_complete"]);
    let inserted = of(&["block_rq_insert", "block_rq_issue", "block_rq_complete"]);
    let issued = of(&["block_rq_issue", "block_rq_complete"]);
    assert_eq!((all.d2c.count, all.q2c.count), (7, 7));
    assert_eq!((inserted.d2c, inserted.i2d, inserted.q2c.count), (all.d2c, all.i2d, 0));
    assert_eq!((issued.d2c, issued.i2d.count, issued.q2c.count), (all.d2c, 0, 0));
}

#[test]
fn bios_merged_into_allocated_requests_are_requests() {
    let text = "a-7 [000] . 1.000001: block_getrq: 8,0 W 0 + 8 [a]\na-7 [000] . 1.000003: block_bio_backmerge: 8,0 \
           W 8 + 8 [a]\n\
        a-7 [000] . 1.000004: block_rq_issue: 8,0 W 8192 () 0 + 16 be,0,2 [a]\n\
        <idle>-0 [000] . 1.000009: block_rq_complete: 8,0 W () 0 + 16 be,0,2 [0]\n";
    let (requests, _) = read(text.as_bytes());
    let found: Vec<_> =
        requests.iter().map(|request| (request.sector, request.nr_sectors, request.latency_ns)).collect();
    assert_eq!(found, [(0, 8, Some(8_000)), (8, 8, Some(6_000))]);
    assert!(requests.iter().all(|request| request.ioprio.unwrap().to_string() == "be/2"));
}

#[test]
fn other_kernel_events_may_precede_block_events() {
    let sched = "  bash   812 [001]  20.000001:   sched:sched_switch: prev_comm=bash prev_pid=812 ==> next_comm=a\n";
    let block = "my: job   81 [001]  20.412006: block:block_rq_issue: 8,16 W 8192 () 83 + 16 [my: job]\n";
    let (requests, _) = read(format!("{}{block}", sched.repeat(300)).as_bytes());
    assert_eq!(essence(&requests), [(Op::Write, 83, 16, 81, None)]);
    let error = open(sched.repeat(9).as_bytes()).err().unwrap().to_string();
    assert!(error.contains("iosched found no readable block events at its beginning"), "{error}");
}

#[test]
fn lost_events_are_a_gap() {
    let mut text = b"CPU:1 [LOST 20 EVENTS]\n".to_vec();
    text.extend(corpus("tracepoints/tracefs"));
    let mut reader = strictly(&text, &ReadOptions::default()).unwrap();
    let error = reader.by_ref().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("20 of the 78 records (25.6 %) were lost during the recording"), "{error}");
}

/// Returns the requests in the file that `convert_events` writes with this chain.
fn passed(text: &[u8], chain: &Chain) -> (Vec<TraceRequest>, u64) {
    let reader = std::io::Cursor::new(text.to_vec());
    let mut events = EventReader::from_reader(reader, "input", &partial()).unwrap();
    let mut out = Vec::new();
    let report = convert_events(&mut events, chain, &mut out).unwrap();
    let completeness = events.completeness();
    assert!(completeness.gaps().iter().any(|gap| matches!(gap, Gap::NoSubmissions { .. })), "{completeness:?}");
    let again = TraceReader::from_reader(std::io::Cursor::new(out), "out", &partial()).unwrap();
    (again.collect::<Result<_, TraceError>>().unwrap(), report.written)
}

#[test]
fn chain_and_reader_derive_the_same_requests_from_events() {
    for words in [
        &["block_rq_issue", "block_rq_complete"][..],
        &["block_rq_insert", "block_rq_issue", "block_rq_complete"],
        &["block_getrq", "block_rq_issue", "block_rq_complete"],
    ] {
        let text = only(words);
        let expected = read(&text).0;
        let (all, written) = passed(&text, &Chain::default());
        assert_eq!((written, essence(&all)), (expected.len() as u64, essence(&expected)), "{words:?}");
        let priorities = |requests: &[TraceRequest]| -> Vec<_> {
            requests.iter().filter(|request| request.op.has_data()).map(|request| request.ioprio).collect()
        };
        if !words.contains(&"block_getrq") {
            assert_eq!(priorities(&all), priorities(&expected), "{words:?}");
        }
        let reads = Chain::new(vec![Step::Filter(Filter { ops: vec![Op::Read], ..Filter::default() })]);
        let (reads, written) = passed(&text, &reads);
        let of_reads: Vec<_> = essence(&expected).into_iter().filter(|request| request.0 == Op::Read).collect();
        assert_eq!((written, essence(&reads)), (of_reads.len() as u64, of_reads), "{words:?}");
    }
}

#[test]
fn blk_tracer_and_time_differences_are_read() {
    let blk = b"# tracer: blk\n#\n   dd-42  [001] ..... 5.000001:   8,16   Q   R 8 + 8 [dd]\n   \
        dd-42  [001] ..... 5.000003:   8,16   D   R 8 + 8 [dd]\n  <idle>-0  [001] ..... 5.000901:   8,16   C   R 8 + 8 [0]\n";
    let differences = b"cpus=1\n dd-42 [001] 5.000001: (+0.000000) block_bio_queue:  8,16 R 8 + 8 [dd]\n \
        dd-42 [001] 5.000901: (+0.000900) block_rq_complete:  8,16 R () 8 + 8 [0]\n";
    for text in [&blk[..], differences] {
        let mut reader = crate::common::open(text).unwrap();
        assert_eq!((reader.format(), reader.resolution_ns()), (Format::Tracepoints, 1_000));
        let requests: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
        assert_eq!(essence(&requests), [(Op::Read, 8, 8, 42, Some(900_000))]);
        assert_eq!(reader.process_names()[&42].to_text(), "dd");
    }
}

#[test]
fn errors_of_unreadable_block_events_name_the_cause() {
    let what = "8,16 R 4096 () 8 + 8 [dd]";
    for (line, expected) in [
        (format!("dd 5.000001: block:block_rq_issue: {what}"), "no process ids; print the events with perf script -F"),
        (
            format!("block:block_rq_issue: {what}"),
            "cannot read the times of its block events; print the events with perf script -F",
        ),
        (format!("dd-42 [001] d..1. 205791001: block_rq_issue: {what}"), "clock that does not count in seconds"),
        (format!("dd-42 1d..1 123456us : block_rq_issue: {what}"), "the latency format of ftrace"),
        ("0.123 dd/42 block:block_rq_issue(dev: 8388624, sector: 8, nr_sector: 8)".to_owned(), "output of perf trace"),
    ] {
        let text = format!("{line}\n{line}\n");
        let message = crate::common::open(text.as_bytes()).err().unwrap().to_string();
        assert!(message.contains(expected), "{line}: {message}");
    }
}

#[test]
fn trace_with_only_completions_has_no_requests() {
    let text = |count: u64| -> String {
        (0..count).map(|i| format!("  8,0 1 {i} 0.{i:09} 0 C R {} + 8 [0]\n", i * 8)).collect()
    };
    let few = gaps(text(5).as_bytes());
    assert!(matches!(few[..], [Gap::CompletionsAlone { completions: 5 }]), "{few:?}");
    let many = text(20);
    let error = strictly(many.as_bytes(), &Default::default()).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("20 requests completed, but the recording has no submissions (Q)"), "{error}");
    assert!(error.contains("record again, with issues (D) or submissions (Q)"), "{error}");
}
