//! Tests of the fio JSON: its keys and types are those of an installed fio, and its values are
//! consistent.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use iosched_disk::Profile;
use iosched_lab::{Control, Experiment, LabError, Records, execute, fio_json};
use iosched_workload::fio::{Delay, Files, Job, JobFile, Jobs, Mode, PerDirection, Placement, Size};
use iosched_workload::{TaskSet, Workload};
use serde_json::Value;

/// Returns the job of [`OPTIONS`].
fn job(name: &str) -> Job {
    Job {
        files: Files::Named(vec!["data".to_owned()]),
        size: Some(Size::Bytes(4 << 20)),
        mode: Mode::ReadWrite,
        placement: Placement::Random { ios_per_offset: 1 },
        fsync_ios: 16,
        percentiles: iosched_workload::fio::Percentiles { slat: true, lat: true, ..Default::default() },
        options: vec![("rw".to_owned(), "randrw".to_owned()), ("fsync".to_owned(), "16".to_owned())],
        ..Job::new(name)
    }
}

const OPTIONS: [&str; 8] = [
    "--name=mix",
    "--rw=randrw",
    "--size=4m",
    "--filename=data",
    "--fsync=16",
    "--slat_percentiles=1",
    "--lat_percentiles=1",
    "--ioengine=libaio",
];

fn records(jobs: Vec<Job>, settings: &[&str]) -> Records {
    let file = JobFile { name: "mix.fio".to_owned(), jobs, ignored: Vec::new() };
    let settings = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let profile = Profile::named("sata-7200").unwrap();
    let mut experiment = Experiment::new(Workload::Jobs(Jobs::new(file)), profile, settings).unwrap();
    experiment.runs = 2;
    execute(&experiment, &Control::new(1), |_| Ok(())).unwrap().records
}

fn document(jobs: Vec<Job>) -> Value {
    serde_json::from_str(&fio_json(&records(jobs, &["cfq"])).unwrap()).unwrap()
}

/// Collects every path of a document with its type. A number with a point is a float, and a number
/// without a point is an integer.
fn shape(value: &Value, path: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, value)| shape(value, &format!("{path}/{key}"), all)),
        Value::Array(items) => items.iter().for_each(|item| shape(item, &format!("{path}[]"), all)),
        Value::Number(number) => {
            all.insert(format!("{path}: {}", if number.is_f64() { "float" } else { "integer" }));
        }
        Value::String(_) => {
            all.insert(format!("{path}: text"));
        }
        other => {
            all.insert(format!("{path}: {other}"));
        }
    }
}

fn shapes(value: &Value) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    shape(value, "", &mut all);
    // The user chooses the names of options and of the disk, so these paths differ. fio reports the
    // disk only if it can find it.
    all.retain(|path| !path.contains("options/") && !path.contains("disk_util"));
    all
}

#[test]
fn keys_and_types_match_an_installed_fio() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fio-json");
    std::fs::create_dir_all(&folder).unwrap();
    let run = Command::new("fio")
        .args(OPTIONS)
        .args(["--output-format=json", "--output=out.json"])
        .current_dir(&folder)
        .output();
    if let Err(error) = run {
        assert!(std::env::var_os("CI").is_none(), "fio cannot be run ({error}), and CI skips nothing");
        println!("skipped: fio cannot be run ({error}); install it to compare with its JSON");
        return;
    }
    assert!(run.unwrap().status.success());
    let theirs: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("out.json")).unwrap()).unwrap();
    let ours = shapes(&document(vec![job("mix")]));
    let theirs = shapes(&theirs);
    let missing: Vec<_> = theirs.difference(&ours).collect();
    assert!(missing.is_empty(), "fio has keys that iosched lacks: {missing:#?}");
    let extra: Vec<_> = ours.difference(&theirs).collect();
    assert_eq!(extra, ["/device: text", "/scheduler: text"]);
}

#[test]
fn values_in_the_json_are_consistent() {
    let document = document(vec![job("mix")]);
    let document_of_job = &document["jobs"][0];
    let bytes = |direction: &str| document_of_job[direction]["io_bytes"].as_u64().unwrap();
    assert_eq!(bytes("read") + bytes("write"), 4 << 20);
    let read = &document_of_job["read"];
    let seconds = read["runtime"].as_f64().unwrap() / 1000.0;
    let ios = read["total_ios"].as_f64().unwrap();
    assert!((read["iops"].as_f64().unwrap() * seconds / ios - 1.0).abs() < 0.01);
    assert!((read["bw"].as_f64().unwrap() * 1024.0 * seconds / (ios * 4096.0) - 1.0).abs() < 0.01);
    let sum = |latency: &str| read[latency]["mean"].as_f64().unwrap();
    assert!((sum("slat_ns") + sum("clat_ns") - sum("lat_ns")).abs() < 1.0);
    assert!(read["clat_ns"]["percentile"]["50.000000"].as_u64() <= read["clat_ns"]["percentile"]["99.000000"].as_u64());
    for group in [&["iodepth_level"][..], &["latency_ns", "latency_us", "latency_ms"]] {
        let shares = group.iter().flat_map(|name| document_of_job[name].as_object().unwrap().values());
        let sum: f64 = shares.map(|share| share.as_f64().unwrap()).sum();
        assert!((sum - 100.0).abs() < 0.01, "{group:?}: {sum}");
    }
    assert_eq!(
        document_of_job["sync"]["total_ios"].as_u64().unwrap(),
        document_of_job["sync"]["lat_ns"]["N"].as_u64().unwrap()
    );
    assert_eq!(document_of_job["job options"]["rw"], "randrw");
}

#[test]
fn group_reporting_merges_jobs_of_a_group() {
    let grouped = |name| Job { group_reporting: true, ..job(name) };
    let document = document(vec![grouped("a"), grouped("b"), job("c")]);
    let jobs = document["jobs"].as_array().unwrap();
    assert_eq!(jobs.iter().map(|job| job["jobname"].as_str().unwrap()).collect::<Vec<_>>(), ["a", "c"]);
    let bytes = |job: &Value| job["read"]["io_bytes"].as_u64().unwrap() + job["write"]["io_bytes"].as_u64().unwrap();
    assert_eq!(jobs.iter().map(bytes).collect::<Vec<_>>(), [8 << 20, 4 << 20]);
}

#[test]
fn runtime_of_a_group_is_that_of_its_longest_job() {
    let runtime = |delay_ns: u64| {
        let start_delay = Delay { min_ns: delay_ns, max_ns: delay_ns };
        let jobs = vec![job("a"), Job { start_delay, ..job("b") }];
        let grouped = jobs.into_iter().map(|job| Job { group_reporting: true, ..job }).collect();
        document(grouped)["jobs"][0]["read"]["runtime"].as_u64().unwrap()
    };
    let alone = document(vec![job("a")])["jobs"][0]["read"]["runtime"].as_u64().unwrap();
    // The second job begins long after the first has ended.
    assert!(runtime(60_000_000_000) < 2 * alone, "{} and {alone} ms", runtime(60_000_000_000));
}

#[test]
fn fio_json_is_a_list_for_settings_and_refuses_non_jobs() {
    let list: Value = serde_json::from_str(&fio_json(&records(vec![job("mix")], &["noop", "cfq"])).unwrap()).unwrap();
    let schedulers: Vec<_> = list.as_array().unwrap().iter().map(|run| run["scheduler"].as_str().unwrap()).collect();
    assert_eq!(schedulers, ["noop", "cfq"]);
    let tasks = TaskSet::parse("t.toml", "[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 5\n").unwrap();
    let profile = Profile::named("sata-7200").unwrap();
    let mut experiment =
        Experiment::new(Workload::Tasks(tasks.into()), profile, vec!["noop".parse().unwrap()]).unwrap();
    experiment.runs = 1;
    let records = execute(&experiment, &Control::new(1), |_| Ok(())).unwrap().records;
    assert!(matches!(fio_json(&records), Err(LabError::NotFioJobs { .. })));
}

#[test]
fn direction_without_ios_has_no_runtime() {
    let reads = Job {
        mode: Mode::Read,
        block_size: PerDirection::all(iosched_workload::fio::BlockSize::Fixed(8192)),
        ..job("r")
    };
    let document = document(vec![reads]);
    assert_eq!(document["jobs"][0]["write"]["runtime"], 0);
    assert_eq!(document["jobs"][0]["write"]["bw"], 0);
}
