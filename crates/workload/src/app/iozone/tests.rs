use crate::app::tests::{TimedCall, calls, drive};
use crate::app::{Advice, Application, Call, Node, OpenFlags, Source, Spec};

const FILE: Node = Node::new(0);
const KIB: u64 = 1_024;

fn calls_of(command: &str) -> Vec<Call> {
    calls(command, 1_000).0.into_iter().map(|timed| timed.call).collect()
}

/// Returns the calls of each test. A test lasts from one open to the next open.
fn tests(calls: &[Call]) -> Vec<&[Call]> {
    let mut starts: Vec<usize> = (0..calls.len()).filter(|&call| matches!(calls[call], Call::Open { .. })).collect();
    starts.push(calls.len());
    starts.windows(2).map(|ends| &calls[ends[0]..ends[1]]).collect()
}

/// Returns the offsets that a test accesses, in units of records.
fn records(calls: &[Call], record_bytes: u64) -> Vec<u64> {
    let mut records = Vec::new();
    for &call in calls {
        if let Call::Read { offset, bytes, calls, .. } | Call::Write { offset, bytes, calls, .. } = call {
            assert_eq!((bytes, offset % record_bytes), (record_bytes, 0));
            records.extend((0..calls).map(|call| offset / record_bytes + call));
        }
    }
    records
}

fn names(app: &dyn Application) -> Vec<String> {
    app.report().figures.into_iter().map(|figure| figure.name).collect()
}

const fn open(create: bool) -> Call {
    let flags =
        OpenFlags { create, truncate: create, direct: false, sync: false, data_only: false, advice: Advice::Normal };
    Call::Open { parent: Node::root(0), node: FILE, name_bytes: 10, flags }
}

const fn write(offset: u64, bytes: u64, calls: u64) -> Call {
    Call::Write { node: FILE, offset, bytes, calls, source: Source::Buffer }
}

#[test]
fn options_e_and_c_include_fsync_and_close_in_the_time() {
    let (write, fsync, close) = (write(0, 4 * KIB, 16), Call::Fsync { node: FILE }, Call::Close { node: FILE });
    for (options, kib_per_s) in [("", 64.0), ("-e ", 32.0), ("-c ", 32.0), ("-e -c ", 21.0)] {
        let (timed_calls, app) = calls(&format!("iozone -s 64 {options}-i 0"), 1_000_000_000);
        let calls: Vec<Call> = timed_calls.iter().map(|timed| timed.call).collect();
        let body: &[Call] = if options == "-c " { &[write, close] } else { &[write, fsync, close] };
        assert_eq!(calls, [&[open(true)], body, &[open(false)], body].concat(), "{options}");
        let rates = app.report().figures.into_iter().map(|figure| (figure.name, figure.unit, figure.value));
        let expected = ["write", "rewrite"].map(|name| (name.to_owned(), "KB/s".into(), kib_per_s));
        assert!(rates.eq(expected), "{options}");
    }
}

#[test]
fn all_thirteen_tests_run_in_order() {
    let (timed_calls, app) = calls("iozone -s 1m -r 64k -R", 1_000);
    let expected = [
        "write",
        "rewrite",
        "read",
        "reread",
        "random_read",
        "random_write",
        "backwards_read",
        "record_rewrite",
        "strided_read",
        "fwrite",
        "frewrite",
        "fread",
        "freread",
    ];
    assert_eq!(names(app.as_ref()), expected);
    let calls: Vec<Call> = timed_calls.iter().map(|timed| timed.call).collect();
    let tests = tests(&calls);
    for (test, name) in tests.iter().zip(expected) {
        assert_eq!(test[0], open(matches!(name, "write" | "fwrite")), "{name}");
        let is_write = test.iter().any(|call| matches!(call, Call::Write { .. }));
        assert_eq!(is_write, name.contains("write"), "{name}");
        assert_eq!(test.contains(&Call::Fsync { node: FILE }), is_write, "{name}");
        let records = records(test, 64 * KIB);
        assert_eq!(records.len(), 16);
        match name {
            "backwards_read" => assert!(records.into_iter().eq((0..16).rev())),
            "record_rewrite" => assert_eq!(records, [0; 16]),
            "random_read" | "random_write" => {
                let mut sorted = records.clone();
                sorted.sort_unstable();
                assert!(sorted.into_iter().eq(0..16), "each record once");
            }
            _ => assert!(records.into_iter().eq(0..16), "{name}"),
        }
    }
}

#[test]
fn random_tests_of_all_runs_use_the_same_order() {
    let order = |seed: u64| {
        let mut calls = Vec::new();
        drive(Spec::parse("iozone -s 16m -i 0 -i 2").unwrap().start(seed, 1 << 30).as_mut(), |timed| {
            calls.push(timed.call);
            1
        });
        let tests = tests(&calls);
        let [read, write] = [2, 3].map(|test| records(tests[test], 4 * KIB));
        assert_eq!(read, write);
        read
    };
    assert_eq!(order(1), order(2));
    assert!(order(1).windows(2).filter(|pair| pair[1] == pair[0] + 1).count() < 10);
}

#[test]
fn strided_read_takes_every_17th_record_and_wraps() {
    for count in [1, 16, 17, 18, 40, 1_000] {
        let calls = calls_of(&format!("iozone -s {count}k -r 1 -i 5"));
        let expected = (0..17).flat_map(|start| (start..count).step_by(17));
        assert!(records(&calls, KIB).into_iter().eq(expected), "{count}");
    }
}

#[test]
fn file_that_no_test_creates_exists_before_the_run() {
    let existing =
        |text: &str| Spec::parse(text).unwrap().start(1, 1 << 30).existing().iter().map(|file| file.bytes).collect();
    let (none, one): (Vec<_>, Vec<_>) = (vec![], vec![Some(1 << 20)]);
    assert_eq!((none.clone(), one.clone()), (existing("iozone -s 1m -i 1 -i 0"), existing("iozone -s 1m -i 1")));
    assert_eq!((none, one), (existing("iozone -s 1m -i 6"), existing("iozone -s 1m -i 4")));
}

#[test]
fn stdio_tests_ignore_direct_and_sync() {
    let calls = calls_of("iozone -s 64 -o -I -i 0 -i 6");
    let flags = calls.iter().filter_map(|&call| match call {
        Call::Open { flags, .. } => Some((flags.direct, flags.sync)),
        _ => None,
    });
    assert!(flags.eq([(true, true), (true, true), (false, false), (false, false)]));
}

#[test]
fn file_size_is_rounded_down_to_whole_records() {
    let calls = calls_of("iozone -s 100k -r 16k -i 0 -e");
    assert_eq!(calls[1], write(0, 16 * KIB, 6));
}

#[test]
fn measured_time_ends_when_the_first_process_finishes() {
    let run = |options: &str| {
        let mut app = Spec::parse(&format!("iozone -s 40 -t 2 -i 0 -i 1 {options}")).unwrap().start(1, 1 << 30);
        let mut timed_calls: Vec<TimedCall> = Vec::new();
        drive(app.as_mut(), |call| {
            timed_calls.push(call);
            // The second process is half as fast.
            1_000_000_000 * (call.task as u64 + 1)
        });
        (timed_calls, app.report())
    };
    let records = |timed_calls: &[TimedCall], task| {
        timed_calls
            .iter()
            .filter(|timed| timed.task == task && matches!(timed.call, Call::Read { .. } | Call::Write { .. }))
            .count()
    };
    let (timed_calls, report) = run("");
    // The first process read ten records in 10 s. In this time, the other process read five
    // records.
    assert_eq!(report.series[0].values, [4.0, 2.0]);
    assert_eq!(report.figures[0].value, 6.0);
    assert_eq!(records(&timed_calls, 0), 40);
    assert!(
        (30..40).contains(&records(&timed_calls, 1)),
        "files are written completely, but not read completely: {}",
        records(&timed_calls, 1)
    );
    assert_eq!(records(&run("-x").0, 1), 40);
    let second_open = |task| {
        let mut opens =
            timed_calls.iter().filter(|timed| timed.task == task && matches!(timed.call, Call::Open { .. }));
        opens.nth(1).map(|timed| timed.at_ns)
    };
    assert_eq!(second_open(0), second_open(1));
}

#[test]
fn invalid_options_are_refused() {
    let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
    for (text, part) in [
        ("iozone -i 13", "-i: `13` is not a whole number from 0 to 7"),
        ("iozone -s 0", "-s: `0` is not a size from 1 byte to 1 PiB"),
        ("iozone -s 4 -r 8", "-r: a record of 8192 bytes does not fit in a file of 4096"),
        ("iozone -k 2", "-k: unknown option; iozone knows -a, -s SIZE"),
        ("iozone -s 64 tmp", "tmp: is not an option; name the file with -f"),
        ("iozone -+r", "-+r: unknown option"),
        ("iozone -a -n 1k -g 1p", "-g: `1p` is not a size"),
        ("iozone -t 0", "-t: `0` is not a whole number from 1 to 1000"),
    ] {
        assert!(error(text).contains(part), "{}", error(text));
    }
}

#[test]
fn option_f_accepts_a_file_name_per_process() {
    let app = calls("iozone -s 64k -t 2 -i 0 -F /mnt/a /mnt/b -Rb out.xls", 1_000).1;
    assert_eq!((app.tasks().len(), names(app.as_ref())), (2, vec!["write".to_owned(), "rewrite".to_owned()]));
}

#[test]
fn tests_run_once_per_record_or_file_size() {
    let app = calls("iozone -e -I -a -s 64k -r 4k -r 16k -i 0 -i 1 -i 2", 1_000).1;
    let tests = ["write", "rewrite", "read", "reread", "random_read", "random_write"];
    let expected: Vec<String> =
        ["4k", "16k"].iter().flat_map(|size| tests.map(|test| format!("{test}_{size}"))).collect();
    assert_eq!(names(app.as_ref()), expected);
    let app = calls("iozone -s 64k -s 128k -+n -i 0 -i 1", 1_000).1;
    assert_eq!(names(app.as_ref()), ["write_64k", "read_64k", "write_128k", "read_128k"]);
}

#[test]
fn automatic_mode_varies_file_and_record_sizes() {
    let (timed_calls, app) = calls("iozone -a -g 32m -i 1", 1_000);
    let mut pairs: Vec<(u64, u64)> = tests(&timed_calls.iter().map(|timed| timed.call).collect::<Vec<_>>())
        .into_iter()
        .filter_map(|calls| {
            let read = calls.iter().find_map(|call| match call {
                Call::Read { bytes, .. } => Some(*bytes),
                _ => None,
            })?;
            Some((records(calls, read).len() as u64 * read / KIB, read / KIB))
        })
        .collect();
    pairs.dedup();
    assert_eq!((pairs[0], pairs[1], pairs[5]), ((64, 4), (64, 8), (128, 4)));
    // Large files have no small records.
    let large: Vec<u64> = pairs.iter().filter(|(file, _)| *file == 32 * KIB).map(|(_, record)| *record).collect();
    assert_eq!(large, [64, 128, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384]);
    assert_eq!(names(app.as_ref()), ["read", "reread"]);
    assert_eq!(app.report().series[0].values.len(), pairs.len());
    let all = |text: &str| Spec::parse(text).is_ok();
    assert!(all("iozone -a") && all("iozone -az -n 1g -g 4g -y 64k -q 1m") && !all("iozone -l 3"));
}

#[test]
fn process_range_with_equal_bounds_is_accepted() {
    let spec = Spec::parse("iozone -l 2 -u 2 -r 16k -s 10M -F a b").unwrap();
    assert_eq!(spec.task_count(), 2);
    let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
    assert!(error("iozone -l 1 -u 4 -s 10M").contains(
        "-l: iosched does not simulate several numbers of processes in \
        one run"
    ));
    let mixed = error("iozone -i 0 -i 8 -t 2 -s 10M");
    assert!(mixed.contains("-i: iosched does not simulate test 8 (mixed, pwrite, pread and vectors)"), "{mixed}");
}
