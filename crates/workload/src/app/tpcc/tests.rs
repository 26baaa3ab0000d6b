use std::collections::BTreeMap;

use super::{BLOCK_BYTES, DATA, LOGS};
use crate::app::tests::{TimedCall, drive};
use crate::app::{Call, Report, Spec};

const MS: u64 = 1_000_000;

/// Runs tpcc. Reads and batches take `data_ms`, and writes to the log take `log_ms`.
fn run(options: &str, data_ms: u64, log_ms: u64) -> (Vec<TimedCall>, Report) {
    let mut app = Spec::parse(&format!("tpcc {options}")).unwrap().start(1, 1 << 30);
    let mut timed_calls = Vec::new();
    drive(app.as_mut(), |call| {
        timed_calls.push(call);
        match call.call {
            Call::Read { .. } | Call::WriteScattered { .. } => data_ms * MS,
            Call::Write { .. } => log_ms * MS,
            _ => 0,
        }
    });
    (timed_calls, app.report())
}

fn figures(report: &Report) -> BTreeMap<&str, f64> {
    report.figures.iter().map(|figure| (figure.name.as_str(), figure.value)).collect()
}

#[test]
fn transactions_make_the_published_number_of_ios_and_calls() {
    let report = run("seconds=600", 100, 5).1;
    let figures = figures(&report);
    // Published: 310.22 reads, 109.15 writes and 248.87 calls at 53.34 transactions per second.
    for (name, published) in [("physical_reads", 5.82), ("physical_writes", 2.05), ("user_calls", 4.67)] {
        let per_transaction = figures[name] / figures["tps"];
        assert!(
            (per_transaction / published - 1.0).abs() < 0.06,
            "{name}: {per_transaction} a transaction, {published} published"
        );
    }
    assert!((figures["tpmC"] / figures["tps"] / 60.0 - 0.45).abs() < 0.02);
    assert_eq!(report.series[0].values.len(), 600);
    let mean = report.series[0].values.iter().sum::<f64>() / 600.0;
    assert!((mean / figures["tps"] - 1.0).abs() < 1e-9);
}

#[test]
fn tpcc_reads_single_blocks_and_writes_a_log() {
    let timed_calls = run("seconds=60 warehouses=10 log_mb=1", 5, 2).0;
    let mut tenths = [0u32; 10];
    let mut ends = [0u64; 2];
    let mut changes = 0;
    for timed in &timed_calls {
        match timed.call {
            Call::Read { node, offset, bytes, calls } => {
                assert_eq!((node, bytes, calls, offset % BLOCK_BYTES), (DATA, BLOCK_BYTES, 1, 0));
                tenths[(offset / (100 << 20)) as usize] += 1;
            }
            Call::Write { node, offset, bytes, calls, .. } => {
                let log = LOGS.iter().position(|&log| log == node).unwrap();
                assert!((512..=128 << 10).contains(&bytes) && bytes % 512 == 0 && calls == 1);
                if offset == 0 {
                    changes += 1;
                    ends[log] = 0;
                }
                assert_eq!(offset, ends[log], "a log write starts at the end of the previous write");
                ends[log] += bytes;
                assert!(ends[log] <= 1 << 20);
            }
            _ => {}
        }
    }
    assert!(tenths.iter().all(|&reads| reads > 100), "{tenths:?}");
    assert!(changes > 10, "{changes}");
}

#[test]
fn calls_are_spread_over_a_transaction() {
    // Reads take no time here, so the time between two reads is the time of calls and rows.
    let timed_calls = run("sessions=1 seconds=600 warmup=0 call_us=1000 client_us=9000 touch_us=0", 0, 0).0;
    let mut last_ns = None;
    let mut gaps = [0u32; 2];
    for timed in timed_calls.iter().filter(|timed| timed.task == 0) {
        if let (Call::Read { .. }, Some(last_ns)) = (timed.call, last_ns) {
            let gap_ns = timed.at_ns - last_ns;
            assert_eq!(gap_ns % (10 * MS), 0, "whole calls");
            gaps[usize::from(gap_ns > 0)] += 1;
        }
        last_ns = Some(timed.at_ns);
    }
    // Half of all reads occur in a single call of the transaction Stock-Level. Other transactions
    // have about the same number of calls and reads, or more calls.
    let [at_once, later] = gaps.map(f64::from);
    assert!((0.25..0.4).contains(&(later / (at_once + later))), "{gaps:?}");
}

#[test]
fn concurrent_commits_share_log_writes() {
    let count = |timed_calls: &[TimedCall]| {
        timed_calls.iter().filter(|timed| matches!(timed.call, Call::Write { .. })).count() as f64
    };
    let commits = |report: &Report, seconds: f64| figures(report)["tps"] * seconds * 0.92;
    let (timed_calls, report) = run("sessions=1 seconds=100 warmup=0", 1, 5);
    assert!(
        (count(&timed_calls) / commits(&report, 100.0) - 1.0).abs() < 0.05,
        "a single session writes the log for each commit"
    );
    let (timed_calls, report) = run("sessions=64 seconds=100 warmup=0", 1, 20);
    assert!(count(&timed_calls) < commits(&report, 100.0) / 10.0, "concurrent commits share log writes");
}

#[test]
fn database_writer_writes_batches_of_blocks() {
    let mut app = Spec::parse("tpcc seconds=60 dbwr_batch=40").unwrap().start(1, 1 << 30);
    let spec_tasks = app.tasks().len();
    let writer = spec_tasks - 2;
    assert_eq!(app.tasks()[writer].name, "database writer");
    let mut batches = 0;
    drive(app.as_mut(), |timed| {
        if let Call::WriteScattered { node, bytes } = timed.call {
            assert_eq!((timed.task, node, bytes), (writer, DATA, BLOCK_BYTES));
            batches += 1;
        }
        10 * MS
    });
    assert!(batches > 10);
    assert!(app.batch(0).is_empty());
}

#[test]
fn tpcc_reports_the_time_of_events() {
    let report = run("seconds=60", 20, 3).1;
    let figures = figures(&report);
    for (name, ms) in
        [("db_file_sequential_read", 20.0), ("db_file_parallel_write", 20.0), ("log_file_parallel_write", 3.0)]
    {
        assert!((figures[name] - ms).abs() < 1e-6, "{name}: {}", figures[name]);
    }
    // A commit finds the log writer idle, or waits for the end of the current write and for the
    // next write.
    assert!((3.0..=6.0).contains(&figures["log_file_sync_wait"]), "{}", figures["log_file_sync_wait"]);
}

#[test]
fn slow_log_increases_log_file_sync() {
    let fast = figures(&run("seconds=60", 20, 1).1)["log_file_sync"];
    let slow = figures(&run("seconds=60", 20, 50).1)["log_file_sync"];
    assert!(fast < 5.0 && slow > 20.0, "{fast} and {slow} %");
}

#[test]
fn slow_database_writer_slows_sessions() {
    let tps = |batch_ms: u64| {
        let mut app = Spec::parse("tpcc seconds=60 dbwr_batch=10").unwrap().start(1, 1 << 30);
        drive(app.as_mut(), |timed| match timed.call {
            Call::WriteScattered { .. } => batch_ms * MS,
            Call::Read { .. } => 10 * MS,
            _ => MS,
        });
        figures(&app.report())["tps"]
    };
    // After all free buffers are used, the database writer writes only ten blocks per second. This
    // is enough for five transactions per second.
    let (fast, slow) = (tps(1), tps(1_000));
    assert!(slow < fast / 10.0, "{fast} and {slow}");
}

#[test]
fn log_file_change_writes_dirty_blocks() {
    let blocks = |log_mb: u64| {
        let options = "seconds=60 warmup=0 dirty_blocks=200000 dirty_blocks_max=400000";
        let mut app = Spec::parse(&format!("tpcc {options} log_mb={log_mb}")).unwrap().start(1, 1 << 30);
        drive(app.as_mut(), |timed| if matches!(timed.call, Call::Read { .. }) { 10 * MS } else { MS });
        figures(&app.report())["physical_writes"] * 60.0
    };
    // Without a checkpoint, 200,000 blocks stay dirty. After a checkpoint, only blocks that changed
    // since then are dirty.
    let (never, often) = (blocks(100_000), blocks(32));
    assert!(often > never + 100_000.0, "{never} and {often}");
}

#[test]
fn small_log_does_not_stop_sessions() {
    let report = run("sessions=2000 seconds=5 warmup=0 log_mb=1 redo_kb=24", 1, 1).1;
    assert!(figures(&report)["tps"] > 10.0);
}

#[test]
fn calls_depend_only_on_the_seed() {
    let run = |seed: u64| {
        let mut app = Spec::parse("tpcc seconds=5 warmup=0").unwrap().start(seed, 1 << 30);
        let mut timed_calls = Vec::new();
        drive(app.as_mut(), |call| {
            timed_calls.push(call);
            MS
        });
        timed_calls
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn invalid_options_are_refused() {
    let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
    for (text, part) in [
        ("tpcc sessions=0", "sessions: `0` is not a whole number from 1 to 10000"),
        ("tpcc think=1", "think: unknown option; tpcc knows sessions=N"),
        ("tpcc dirty_blocks=5000", "dirty_blocks_max: the value is too small"),
        (
            "tpcc call_us=0 client_us=0 touch_us=0 miss_pct=0 index_miss_pct=0",
            "call_us: a transaction would take no time, and the run would never end",
        ),
        ("tpcc miss_pct=101", "miss_pct: `101` is not"),
    ] {
        assert!(error(text).contains(part), "{}", error(text));
    }
}
