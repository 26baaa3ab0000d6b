use crate::app::tests::{calls, drive};
use crate::app::{Call, Node, Source, Spec};

fn calls_of(command: &str) -> Vec<Call> {
    calls(command, 1_000).0.into_iter().map(|timed| timed.call).collect()
}

fn count(calls: &[Call], like: impl Fn(&Call) -> bool) -> usize {
    calls.iter().filter(|call| like(call)).count()
}

/// Returns the directories of the files, in the order of their creation.
fn parents(calls: &[Call]) -> Vec<u32> {
    let of = |call: &Call| match *call {
        Call::Open { parent, flags, .. } if flags.create => Some(parent.0 - Node::new(0).0),
        _ => None,
    };
    calls.iter().filter_map(of).collect()
}

/// Returns the opens, flushes and syncs as text. Numbers count from the first file.
fn flushes(calls: &[Call]) -> Vec<String> {
    let number = |node: Node| node.0 - Node::new(0).0;
    let of = |call: &Call| match *call {
        Call::Open { node, flags, .. } => {
            Some(format!("{}{}", if flags.create { "create" } else { "open" }, number(node)))
        }
        Call::Fsync { node } => Some(format!("fsync{}", number(node))),
        Call::Close { node } => Some(format!("close{}", number(node))),
        Call::Sync => Some("sync".to_owned()),
        _ => None,
    };
    calls.iter().filter_map(of).collect()
}

#[test]
fn fsmark_writes_flushes_and_removes_a_thousand_files() {
    let calls = calls_of("fs_mark -S 1 -D 100 -N 10 -s 65536 -t 1 -w 4096");
    assert_eq!(count(&calls[..100], |call| matches!(call, Call::MakeDirectory { .. })), 100);
    let node = Node::new(100);
    let write = Call::Write { node, offset: 0, bytes: 4_096, calls: 16, source: Source::Buffer };
    assert_eq!(calls[101..104], [write, Call::Fsync { node }, Call::Close { node }]);
    assert_eq!(count(&calls, |call| matches!(call, Call::Fsync { .. })), 1_000);
    assert_eq!(count(&calls[calls.len() - 1_000..], |call| matches!(call, Call::Unlink { .. })), 1_000);
    assert_eq!(calls.len(), 100 + 5_000);
}

#[test]
fn directories_are_used_in_order_with_n_files_each() {
    assert_eq!(parents(&calls_of("fs_mark -D 3 -N 2 -n 8")), [0, 0, 1, 1, 2, 2, 0, 0]);
    assert_eq!(parents(&calls_of("fs_mark -D 3 -n 4")), [0, 1, 2, 0]);
    // Node 0 is the parent directory.
    assert_eq!(parents(&calls_of("fs_mark -d /mnt/test -D 2 -n 3")), [1, 2, 1]);
    assert_eq!(parents(&calls_of("fs_mark -d /mnt/test -n 2")), [0, 0]);
    // The next iteration continues with the directory after the last one.
    assert_eq!(parents(&calls_of("fs_mark -D 3 -n 2 -L 2")), [0, 1, 2, 0]);
}

#[test]
fn each_sync_method_flushes_the_expected_files() {
    let written = ["create0", "close0", "create1", "close1"];
    let [first, last] = [["open0", "fsync0", "close0"], ["open1", "fsync1", "close1"]];
    for (method, sync, again) in [
        (0, false, vec![]),
        (2, true, last.to_vec()),
        (3, false, [last, first].concat()),
        (4, true, [last, first].concat()),
        (5, false, [first, last].concat()),
        (6, true, [first, last].concat()),
    ] {
        let mut expected = written.to_vec();
        expected.extend(sync.then_some("sync"));
        expected.extend(again);
        assert_eq!(flushes(&calls_of(&format!("fs_mark -n 2 -S {method}"))), expected, "-S {method}");
    }
    let expected = ["create0", "fsync0", "close0", "create1", "fsync1", "close1"];
    assert_eq!(flushes(&calls_of("fs_mark -n 2 -S 1")), expected);
}

#[test]
fn the_last_write_of_a_file_may_be_short() {
    let calls = calls_of("fs_mark -n 1 -s 10000 -w 4k");
    let node = Node::new(0);
    let write = |offset, bytes, calls| Call::Write { node, offset, bytes, calls, source: Source::Buffer };
    assert_eq!(calls[1..3], [write(0, 4_096, 2), write(8_192, 1_808, 1)]);
}

#[test]
fn fsmark_reports_files_per_second_and_app_overhead() {
    let mut app = Spec::parse("fs_mark -n 10 -t 2 -L 2").unwrap().start(1, 1 << 30);
    let mut writes = 0;
    drive(app.as_mut(), |timed| match timed.call {
        Call::Fsync { .. } => {
            writes += 1;
            // The second iteration is half as fast.
            100_000_000 * if writes <= 20 { 1 } else { 2 }
        }
        Call::Unlink { .. } => 1_000_000_000,
        _ => 0,
    });
    let report = app.report();
    let per_s = |value: f64| (value * 10.0).round() / 10.0;
    assert_eq!((&*report.figures[0].unit, per_s(report.figures[0].value)), ("files/s", 15.0));
    assert_eq!((&*report.figures[1].unit, report.figures[1].value), ("us", 100.0));
    assert!(report.series[0].values.iter().copied().map(per_s).eq([20.0, 10.0]));
}

#[test]
fn with_k_files_stay_and_iterations_write_new_files() {
    let calls = calls_of("fs_mark -n 3 -L 2 -t 2 -k");
    assert_eq!(count(&calls, |call| matches!(call, Call::Unlink { .. })), 0);
    let mut nodes: Vec<u32> =
        calls.iter().filter_map(|call| if let Call::Open { node, .. } = call { Some(node.0) } else { None }).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes.len(), 12);
}

#[test]
fn invalid_options_are_refused() {
    let error = |text: &str| Spec::parse(text).map(|_| ()).unwrap_err().to_string();
    for (text, part) in [
        ("fs_mark -S 7", "-S: `7` is not a whole number from 0 to 6"),
        ("fs_mark -d a -d b", "-d: a second directory; give one"),
        ("fs_mark -n 100000000 -L 2", "-n: more than 100000000 files"),
        ("fs_mark -s 0", "-s: `0` is not a size"),
        ("fs_mark -F", "-F: unknown option; fs_mark knows -S METHOD"),
    ] {
        assert!(error(text).contains(part), "{}", error(text));
    }
}
