//! The measured part of a run, and metrics that were not measured.

use std::path::Path;

use serde_json::Value;

use crate::common::{Loop, available, has_minutes, image, is_root};
use crate::list::Sandbox;

/// A job limited to 120 reads per second for 2 s.
const PACED: &str = "[paced]\nrw=randread\nbs=4k\nsize=8m\nrate_iops=120\ntime_based\nruntime=2\n";
/// The same job, but the first half of its run does not count.
const RAMPED: &str = "[paced]\nrw=randread\nbs=4k\nsize=8m\nrate_iops=120\ntime_based\nruntime=1\nramp_time=1\n";
/// A workload without an end.
const ENDLESS: &str = "end_ns = 3600000000000\n[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 10000]\n";

/// Returns a loop device over an image.
#[track_caller]
fn disk(place: &Sandbox) -> Option<Loop> {
    if !is_root() {
        return None;
    }
    Loop::new(&image(&place.here, "image", 16 << 20))
}

#[track_caller]
fn compared(place: &Sandbox, on: Option<&Path>, args: &[&str]) -> Value {
    let mut all = vec!["compare", "--json", "--runs", "2"];
    match on {
        Some(on) => all.extend(["--on", on.to_str().unwrap(), "--scheduler", "present"]),
        None => all.extend(["--scheduler", "deadline"]),
    }
    all.extend(args);
    serde_json::from_str(&place.iosched(&all).code(0).out).unwrap()
}

/// Returns the mean of a metric for the first setting, if the metric was measured.
fn mean(found: &Value, figure: &str) -> Option<f64> {
    let figures = found["metrics"].as_array().unwrap();
    figures.iter().find(|metric| metric["metric"] == figure)?["settings"][0]["mean"].as_f64()
}

#[track_caller]
fn near(found: &Value, figure: &str, wanted: f64) {
    let mean = mean(found, figure).unwrap_or_else(|| panic!("{figure}: not measured"));
    assert!((mean / wanted - 1.0).abs() < 0.1, "{figure}: {mean}, not {wanted}: {found:#}");
}

#[track_caller]
fn warm_up_takes_no_time(place: &Sandbox, on: Option<&Path>, warm_ups: &[&str]) {
    place.file("paced.fio", PACED);
    place.file("ramped.fio", RAMPED);
    for &warm_up in warm_ups {
        let found = compared(place, on, &["-w", "paced.fio", "--warm-up", warm_up]);
        near(&found, "iops", 120.0);
        near(&found, "throughput", 120.0 * 4096.0 / 1e6);
        near(&found, "finish", 2.0 - warm_up.parse::<f64>().unwrap());
    }
    let found = compared(place, on, &["-w", "ramped.fio"]);
    near(&found, "iops", 120.0);
    near(&found, "finish", 1.0);
}

pub(super) fn simulated_warm_up(place: &Sandbox) {
    warm_up_takes_no_time(place, None, &["0", "0.5", "1"]);
    let whole = compared(place, None, &["-w", "paced.fio"]);
    let half = compared(place, None, &["-w", "paced.fio", "--warm-up", "1"]);
    let of = |found: &Value| mean(found, "utilisation").unwrap();
    assert!((of(&whole) - of(&half)).abs() < 10.0 && of(&half) > 1.0, "{} {}", of(&whole), of(&half));
}

pub(super) fn real_warm_up(place: &Sandbox) {
    let Some(disk) = disk(place) else { return };
    let all: &[&str] = &["0", "0.5", "1"];
    warm_up_takes_no_time(place, Some(&disk.device), if has_minutes() { all } else { &all[1..2] });
}

pub(super) fn warm_up_is_recorded(place: &Sandbox) {
    place.file("endless.toml", ENDLESS);
    place.file("paced.fio", PACED);
    let args = ["-w", "endless.toml", "--run-for", "2", "--warm-up", "0.5", "--records", "first.jsonl"];
    let found = compared(place, None, &args);
    near(&found, "finish", 2.0);
    let first = place.read("first.jsonl");
    let header: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!((&header["warm_up_ns"], &header["limit"]["time_ns"]), (&500_000_000.into(), &2_500_000_000u64.into()));
    // The command in the records makes the same runs again.
    let command = header["command"].as_str().unwrap().to_owned();
    assert!(command.contains("--run-for 2 --warm-up 0.5"), "{command}");
    let mut words: Vec<&str> = command.split(' ').skip(1).collect();
    words.extend(["--records", "again.jsonl"]);
    place.iosched(&words).code(0);
    let runs = |records: String| records.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert!(runs(first) == runs(place.read("again.jsonl")), "{command}");
    // The report page of a run with a warm-up mentions the warm-up.
    place.iosched(&["report", "first.jsonl"]).code(0);
    assert!(
        place.read("first.html").contains("of each run are a warm-up and do not count"),
        "no warm-up in the \
         page"
    );
}

pub(super) fn unused_fields_are_omitted(place: &Sandbox) {
    place.file("endless.toml", ENDLESS);
    compared(place, None, &["-w", "endless.toml", "--run-for", "0.2", "--records", "new.jsonl"]);
    let records = place.read("new.jsonl");
    assert!(!records.contains("warm_up_ns") && !records.contains("device_unwatched"), "unused fields are omitted");
    place.iosched(&["report", "new.jsonl"]).code(0);
}

pub(super) fn only_warm_up(place: &Sandbox) {
    place.file("paced.fio", PACED);
    let args = ["compare", "-w", "paced.fio", "--runs", "2", "--warm-up", "1000"];
    place.iosched(&args).refused(2, &["but the warm-up lasts 1000 s", "a longer workload"]);
    let Some(disk) = disk(place) else { return };
    place.file("read.toml", "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 10000]\ntotal = 10\n");
    let on = disk.device.to_str().unwrap();
    let args = ["compare", "--on", on, "-w", "read.toml", "--scheduler", "present", "--warm-up", "10"];
    place.iosched(&args).refused(2, &["but the warm-up lasts 10 s"]);
}

pub(super) fn external_commands(place: &Sandbox) {
    let here = place.here.to_str().unwrap();
    let roots = iosched_kernel::Roots::default();
    if !available(iosched_kernel::BlockDevice::find(&roots, &place.here).is_ok(), "a block device below the tests") {
        return;
    }
    let on = ["compare", "--on", here, "--scheduler", "present", "--runs", "2"];
    place
        .iosched(&[&on[..], &["--warm-up", "1", "--", "true"]].concat())
        .refused(2, &["--warm-up are only for workloads"]);
    let found = place.iosched(&[&on[..], &["--json", "--", "sleep", "0.2"]].concat());
    let found: Value = serde_json::from_str(&found.code(0).out).unwrap();
    for figure in ["throughput", "iops", "sync_mean", "sync_p99", "async_mean", "fairness"] {
        assert_eq!(mean(&found, figure), None, "{figure}: {found:#}");
    }
    assert!(mean(&found, "finish").unwrap() > 0.19);
    let answer = place.iosched(&[&on[..], &["--", "sleep", "0.2"]].concat());
    answer.code(0).never(&["throughput", "IOPS", "sync mean"]);
}

pub(super) fn without_statistics(place: &Sandbox) {
    let Some(disk) = disk(place) else { return };
    place.file("read.toml", "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 10000]\ntotal = 100\n");
    let name = disk.device.file_name().unwrap().to_str().unwrap();
    let found = compared(place, Some(&disk.device), &["-w", "read.toml"]);
    assert!(mean(&found, "utilisation").is_some(), "{found:#}");
    assert_eq!((mean(&found, "async_mean"), mean(&found, "fairness")), (None, None));
    let iostats = format!("/sys/block/{name}/queue/iostats");
    std::fs::write(&iostats, "0").unwrap();
    let found = compared(place, Some(&disk.device), &["-w", "read.toml"]);
    std::fs::write(&iostats, "1").unwrap();
    assert_eq!(mean(&found, "utilisation"), None, "{found:#}");
    assert!(mean(&found, "iops").is_some(), "{found:#}");
}

pub(super) fn tune_accepts_a_warm_up(place: &Sandbox) {
    place.file("endless.toml", ENDLESS);
    let args = ["tune", "-w", "endless.toml", "--scheduler", "deadline", "--goal", "iops", "--vary", "fifo_batch"];
    let length = ["--budget", "30", "--run-for", "0.3", "--warm-up", "0.1", "--records", "tuned.jsonl"];
    place.iosched(&[&args[..], &length[..]].concat()).code(0);
    let header = place.read("tuned.jsonl").lines().next().unwrap().to_owned();
    assert!(header.contains("--run-for 0.3 --warm-up 0.1"), "{header}");
    let args = ["tune", "-w", "endless.toml", "--scheduler", "deadline", "--goal", "iops", "--warm-up", "nothing"];
    place.iosched(&args).code(2).says(&["give 0, or a time from 1ns"]);
}
