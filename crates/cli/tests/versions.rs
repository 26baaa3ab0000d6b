//! Tests of `--kernel`: comparisons of Linux versions.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A sequential reader and many random writes at the same time. The throughput of the reader
/// depends on when mq-deadline ends a batch.
const MIXED: &str = "[global]\ndirect=1\nioengine=libaio\nruntime=10\ntime_based=1\nsize=10g\n\
                     [reader]\nrw=read\nbs=64k\n[writer]\nrw=randwrite\nbs=16k\niodepth=32\n";

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn run(directory: &Path, args: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_iosched"));
    command.current_dir(directory).args(args).env("IOSCHED_STATE_DIR", directory).stdin(Stdio::null());
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn labels(json: &serde_json::Value) -> Vec<&str> {
    json["plan"]["settings"].as_array().unwrap().iter().map(|setting| setting["label"].as_str().unwrap()).collect()
}

#[test]
fn kernels_are_compared_like_settings() {
    let here = directory("kernels");
    std::fs::write(here.join("mixed.fio"), MIXED).unwrap();
    let common = ["compare", "-w", "mixed.fio", "-s", "mq-deadline", "-n", "3", "--no-fairness", "--json"];
    let kernels = ["--kernel", "debian-12", "--kernel", "6.12.0"];
    let (code, out, err) = run(&here, &[&common[..], &kernels].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(labels(&json), ["mq-deadline @ 6.1", "mq-deadline @ 6.12.0"]);
    let reader = json["metrics"].as_array().unwrap().iter().find(|metric| metric["name"] == "reader IOPS").unwrap();
    assert_eq!(
        reader["settings"][1]["comparison"]["verdict"], "worse",
        "6.12.0 has longer batches of writes: {reader}"
    );
    // The records contain the version, and their command makes the same records again.
    let records = std::fs::read_to_string(here.join("last.jsonl")).unwrap();
    assert!(records.lines().next().unwrap().contains("\"kernel\":\"6.12.0\""), "{records}");
    let command = json["plan"]["command"].as_str().unwrap();
    assert!(command.contains("--scheduler 'mq-deadline @ 6.12.0'"), "{command}");
    // A baseline without a version gets the first version.
    let (code, out, err) = run(&here, &[&common[..], &kernels, &["-b", "mq-deadline"]].concat());
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"mq-deadline @ 6.1\""));
}

#[test]
fn one_kernel_holds_for_all_settings() {
    let here = directory("one-kernel");
    let common = ["compare", "-s", "none", "-s", "mq-deadline", "-n", "1", "--no-fairness", "--json"];
    let (code, out, err) = run(&here, &[&common[..], &["--kernel", "6.1.20"]].concat());
    assert_eq!((code, err.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(labels(&json), ["none", "mq-deadline"]);
    assert_eq!(json["plan"]["host"]["kernel"], "6.1.20");
    assert!(json["plan"]["command"].as_str().unwrap().contains("--kernel 6.1.20"));
    // 6.12 is the default.
    let runs = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap()["metrics"].clone();
    let usual = run(&here, &common).1;
    let named = run(&here, &[&common[..], &["--kernel", "6.12"]].concat()).1;
    assert_eq!(runs(&usual), runs(&named));
}

#[test]
fn unknown_kernels_and_real_devices_are_refused() {
    let here = directory("unknown-kernel");
    for (args, expected) in [
        (&["compare", "--kernel", "6.99"][..], "\"6.99\" is not a known kernel; write a version from 4.18 to 7.0"),
        (&["compare", "--on", ".", "--kernel", "6.1"], "cannot be used with"),
        (&["compare", "-s", "bfq @ 3.10"], "\"3.10\" is not a known kernel"),
        (&["tune", "-s", "bfq", "-g", "throughput", "--kernel", "rhel7"], "\"rhel7\" is not a known kernel"),
    ] {
        let (code, out, err) = run(&here, args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.contains(expected), "{args:?}: {err}");
    }
}

#[test]
fn schedulers_of_the_past_refuse_other_kernels() {
    let here = directory("past-kernels");
    let refused = |args: &[&str], parts: &[&str]| {
        let (code, out, err) = run(&here, &[&["compare", "-n", "2"], args].concat());
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        parts.iter().for_each(|part| assert!(err.contains(part), "{args:?}: {err}"));
    };
    let rules = "cfq always follows the rules of Linux 4.19";
    let only = "iosched has cfq only with the rules of Linux 4.19";
    refused(&["-s", "none", "-s", "cfq @ 5.4"], &[only, "write cfq without @ 5.4"]);
    refused(&["-s", "cfq", "-s", "deadline", "--kernel", "5.4"], &[rules, "5.4 has no effect"]);
    refused(&["-s", "cfq", "--kernel", "5.4", "--kernel", "6.1"], &[rules, "has no effect"]);
    // If a scheduler of today is also compared, the version has an effect.
    let args = ["compare", "-s", "cfq", "-s", "none", "-n", "1", "--no-fairness", "--kernel", "5.4"];
    assert_eq!(run(&here, &args).0, 0);
    let (code, list, _) = run(&here, &["scheduler", "list"]);
    assert_eq!(code, 0);
    for (name, kernels) in [
        ("noop", "as of 4.19"),
        ("deadline", "as of 4.19"),
        ("anticipatory", "as of 2.6.30 to 2.6.32"),
        ("cfq", "as of 4.19"),
        ("cfq-2.6.34", "as of 2.6.34"),
        ("cfq-2.6.30", "as of 2.6.30"),
        ("cfq-2.6.16", "as of 2.6.16"),
        ("bfq", "4.12 to today"),
    ] {
        let line = list.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        assert!(line[14..].starts_with(&format!("{kernels} ")), "{line}");
    }
}
