//! Tests of `iosched judge`.

mod common;

use common::run;

#[test]
fn a_card_without_comparisons_has_all_other_parts() {
    let words = ["judge", "none", "--no-comparisons", "--no-cost", "--tries", "1", "--operations", "1000", "--json"];
    let (code, out, err) = run(&words);
    assert_eq!(code, 0, "{err}");
    let judgement: serde_json::Value = serde_json::from_str(&out).unwrap();
    let card = &judgement["cards"][0];
    assert_eq!((card["scheduler"].as_str(), judgement["complete"].as_bool()), (Some("none"), Some(true)));
    assert_eq!(judgement["compared"].as_array().map(Vec::len), Some(0));
    assert!(card["rules"]["violation"].is_null() && card["rules"]["operations"].as_u64() >= Some(1000), "{out}");
    let lengths = ["shares", "waits"].map(|part| card[part].as_array().map_or(0, Vec::len));
    assert_eq!(lengths, [12, 4], "{out}");
}

#[test]
fn wrong_schedulers_and_runs_are_usage_errors() {
    for (words, expected) in [
        (&["judge", "fifo"][..], "there is no scheduler \"fifo\"; available: noop"),
        (&["judge"][..], "<SCHEDULER>"),
        (&["judge", "bfq", "--runs", "1"][..], "--runs"),
        (&["judge", "--counted", "queue", "bfq", "random", "10"][..], "give the column (loop, elevator, whole)"),
    ] {
        let (code, out, err) = run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}");
        assert!(err.contains(expected), "{words:?}: {err}");
    }
}
