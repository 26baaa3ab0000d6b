//! Tests of `iosched tune`: its output, its files and its end.

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{IOSCHED, directory, run};

const TASKS: &str = r#"
end_ns = 1_000_000_000
[[tasks]]
pid = 1
name = "scan"
pattern = "seq"
nr_sectors = 128
start_sector = 200_000_000
think_ns = [200000, 1500000]
[[tasks]]
pid = 2
name = "scan"
pattern = "seq"
nr_sectors = 128
start_sector = 1_200_000_000
think_ns = [200000, 1500000]
[[tasks]]
pid = 3
name = "lookup"
pattern = "random"
range = [600_000_000, 1_000_000_000]
think_ns = [1000000, 6000000]
"#;

/// Writes the tasks to a file in a directory of the test. Returns the path of the file.
fn tasks(here: &Path) -> String {
    let file = here.join("tasks.toml");
    fs::write(&file, TASKS).unwrap();
    file.display().to_string()
}

#[test]
fn recommendation_has_its_command_and_the_next_step() {
    let here = directory("tune");
    let workload = tasks(&here);
    let (records, page) = (here.join("tuned.jsonl"), here.join("tuned.html"));
    let files = [records.to_str().unwrap(), page.to_str().unwrap()];
    let search =
        ["tune", "-w", &workload, "-s", "cfq", "-g", "mean(lookup)", "--vary", "slice_idle,quantum", "--budget", "60"];
    let mut args = search.to_vec();
    args.extend(["--records", files[0], "--report", files[1]]);
    let (code, out, err) = run(&args);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let decision = out.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(
        decision.starts_with(
            "Linux has none of these settings, because they need a disk that iosched serves. On such a disk, set"
        ),
        "{out}"
    );
    // The setting costs most of the throughput, so the user must decide what matters more.
    assert!(decision.contains("`cfq:slice_idle=0` if mean(lookup) matters more than throughput. Otherwise"), "{out}");
    assert!(decision.contains("The gain: it shortens mean(lookup) by "), "{out}");
    assert!(out.contains("\n  iosched serve /dev/$DEV --scheduler cfq:slice_idle=0\n"), "{out}");
    assert!(out.lines().last().unwrap().starts_with("next:      iosched compare --workload "), "{out}");
    // The report page from the records equals the page that the search wrote.
    let again = here.join("again.html");
    let (code, ..) = run(&["report", files[0], "-o", again.to_str().unwrap()]);
    assert_eq!(code, 0);
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(fs::read_to_string(&again).unwrap(), html);
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("slice_idle=0"));
    let mut json = search.to_vec();
    json.extend(["--json", "--jobs", "1"]);
    let (code, out, _) = run(&json);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, value["finding"].as_str()), (0, Some("better")));
    let best = value["best"].as_u64().unwrap() as usize;
    assert_eq!(value["standings"][best]["label"], "cfq:slice_idle=0");
}

#[test]
fn search_that_finds_nothing_better_exits_with_0() {
    let here = directory("tune-none");
    let (code, out, _) = run(&["tune", "-w", &tasks(&here), "-s", "noop", "-g", "p99(sync)", "--budget", "30"]);
    assert_eq!(code, 0);
    assert!(out.starts_with("Keep `noop`. This scheduler has no tunable that is worth trying.\n"), "{out}");
}

#[test]
fn impossible_search_is_a_usage_error() {
    let here = directory("tune-usage");
    let workload = tasks(&here);
    let error = |rest: &[&str]| {
        let mut args = vec!["tune", "-w", &workload];
        args.extend(rest);
        let (code, out, err) = run(&args);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        err
    };
    assert!(error(&["-s", "cfq", "-g", "p99"]).contains("for example p99(sync)"));
    assert!(error(&["-s", "cfq", "-g", "p99(writer)"]).contains("lookup, scan"));
    assert!(error(&["-s", "cqf", "-g", "throughput"]).contains("there is no scheduler"));
    assert!(error(&["-s", "cfq", "-g", "throughput", "--vary", "slice_idel"]).contains("slice_idle"));
    assert!(error(&["-s", "cfq", "-g", "throughput", "--subject-to", "p99(sync) = 5"]).contains(">= or <="));
    assert!(error(&["-s", "cfq", "-g", "throughput", "--budget", "3"]).contains("at least"));
    assert!(error(&["-s", "cfq"]).contains("--goal"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_finished_runs_without_a_recommendation() {
    let here = directory("tune-interrupt");
    let (workload, records) = (tasks(&here), here.join("tuned.jsonl"));
    let args =
        ["tune", "-w", &workload, "-s", "cfq", "-g", "mean(lookup)", "--budget", "100000", "-j", "1", "--records"];
    let child = Command::new(IOSCHED)
        .args(args)
        .arg(&records)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = || fs::read_to_string(&records).map_or(0, |text| text.lines().count());
    let begun = std::time::Instant::now();
    while lines() < 20 {
        assert!(begun.elapsed() < common::PATIENCE, "the search wrote no runs");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    common::interrupt(&child);
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(130), "{out}");
    assert!(out.starts_with("Keep `cfq` for now. The search stopped before ") && !out.contains("recommended"), "{out}");
    assert!(lines() >= 20);
}

#[test]
fn search_without_cgroups_leaves_out_cgroup_controllers() {
    let here = directory("tune-without-cgroups");
    let workload = tasks(&here);
    let search = ["tune", "-w", &workload, "-g", "mean(lookup)", "--space", "today", "--budget", "40"];
    let (code, out, err) = run(&search);
    assert_eq!(code, 0, "{err}");
    let warning = "warning: the search leaves out the controllers `io.max`, `io.latency` and `io.cost`. These \
                   controllers need cgroups, but tasks has no cgroups";
    assert!(err.contains(warning) && err.contains("put the jobs of the workload into cgroups"), "{err}");
    assert!(out.contains("doubts") && out.replace("\n    ", " ").contains("tasks has no cgroups"), "{out}");
}

#[test]
fn controller_option_refuses_unknown_or_unusable_controllers() {
    let here = directory("tune-beside");
    let workload = tasks(&here);
    let search = |more: &[&str]| run(&[&["tune", "-w", &workload, "-g", "mean(lookup)"], more].concat());
    let (code, _, err) = search(&["-s", "none", "--controller", "io.max,wbt"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("io.max: these controllers need cgroups, but tasks has none"), "{err}");
    assert!(err.contains("--controller wbt"), "{err}");
    let (code, _, err) = search(&["-s", "none", "--controller", "io.mx"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("available: wbt, io.max, io.latency, io.cost"), "{err}");
}
