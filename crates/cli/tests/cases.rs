//! Inputs of users, with the correct results.

mod common;

use std::path::Path;

use common::{directory, run_in};
use serde_json::Value;

/// Writes `text` to `file` and compares it as a workload.
#[track_caller]
fn compare(here: &Path, (file, text): (&str, &str), more: &[&str]) -> Value {
    std::fs::write(here.join(file), text).unwrap();
    compare_file(here, file, &[&["--json"], more].concat())
}

/// Compares a workload file in a directory; the result is JSON.
#[track_caller]
fn compare_file(here: &Path, file: &str, more: &[&str]) -> Value {
    let (code, out, err) = run_in(here, &[&["compare", "-j", "1", "-w", file], more].concat());
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

/// Returns the means of a metric, one for each setting.
#[track_caller]
fn means(json: &Value, figure: &str) -> Vec<f64> {
    let figures = json["metrics"].as_array().unwrap();
    let names: Vec<&Value> = figures.iter().map(|row| &row["metric"]).collect();
    let row = figures.iter().find(|row| row["metric"] == figure);
    let settings = row.unwrap_or_else(|| panic!("no {figure} in {names:?}"))["settings"].as_array().unwrap();
    settings.iter().map(|setting| setting["mean"].as_f64().unwrap()).collect()
}

/// Returns whether the answer names a best setting for this metric.
fn has_winner(json: &Value, figure: &str) -> bool {
    let best = json["answer"]["best"].as_array().unwrap();
    best.iter().flat_map(|best| best["metrics"].as_array().unwrap()).any(|named| named == figure)
}

/// Returns whether two values differ by less than `percent` per cent.
fn near(one: f64, other: f64, percent: f64) -> bool {
    (one / other - 1.0).abs() * 100.0 < percent
}

#[test]
fn a_job_deeper_than_the_tags_has_no_wrong_winner() {
    let here = directory("case-deep");
    let job =
        "[j]\ndirect=1\nbs=4k\nioengine=libaio\niodepth=48\nsize=8G\nfilename=/dev/sdx\nrw=randrw\nrwmixread=75\n";
    let settings = ["-d", "sata-7200", "-s", "mq-deadline", "-s", "none", "--run-for", "3", "-n", "3"];
    let json = compare(&here, ("deep.fio", job), &settings);
    let times = means(&json, "finish");
    // Requests in flight at the end complete.
    assert!(times.iter().all(|seconds| (3.0..3.6).contains(seconds)), "{times:?}");
    let throughput = means(&json, "throughput");
    assert!(near(throughput[0], throughput[1], 5.0), "{throughput:?}");
    // The mean latency differs, because with 32 tags a
    // third of the 48 requests are not yet submitted.
    for figure in ["throughput", "j_iops", "finish", "sync_p99"] {
        assert!(!has_winner(&json, figure), "{figure}: {}", json["answer"]);
    }
}

#[test]
fn a_job_that_starves_ends_with_the_others_under_every_setting() {
    let here = directory("case-starve");
    let job = "[global]\nioengine=libaio\ndirect=1\nnorandommap=1\ntime_based=1\nruntime=600\nfilename=/dev/sdx\n\
               rw=randread\nbs=4k\niodepth=32\n[hi]\nprioclass=1\n[lo]\nprioclass=2\n";
    let settings = ["-d", "sata-ssd", "-s", "mq-deadline", "-s", "none", "--run-for", "0.5", "-n", "2"];
    let json = compare(&here, ("starve.fio", job), &settings);
    let times = means(&json, "finish");
    assert!(times.iter().all(|seconds| (0.5..0.55).contains(seconds)), "{times:?}");
    let throughput = means(&json, "throughput");
    assert!(near(throughput[0], throughput[1], 5.0), "{throughput:?}");
    // The job of the real-time class wins only with mq-deadline, at the cost of the other job.
    let (hi, lo) = (means(&json, "hi_iops"), means(&json, "lo_iops"));
    assert!(hi[0] > 1.5 * lo[0] && near(hi[1], lo[1], 5.0), "{hi:?} {lo:?}");
    assert!(!has_winner(&json, "throughput") && !has_winner(&json, "finish"), "{}", json["answer"]);
}

#[test]
fn a_write_ahead_log_has_the_latency_of_fdatasync() {
    let here = directory("case-etcd");
    let job = "[wal]\nrw=write\nioengine=sync\nfdatasync=1\nsize=22m\nbs=2300\n";
    let settings = ["-d", "sata-ssd", "-s", "none", "-n", "1"];
    let json = compare(&here, ("wal.fio", job), &[&settings[..], &["--goal", "p99(fdatasync)"]].concat());
    assert!((6.0..7.0).contains(&means(&json, "p99(fdatasync)")[0]), "{json}");
    assert!((180.0..220.0).contains(&means(&json, "wal_iops")[0]), "{json}");
}

#[test]
fn a_poisson_process_keeps_the_rate() {
    let here = directory("case-poisson");
    let job = "[p]\nrw=randwrite\ndirect=1\nbs=4k\nioengine=libaio\niodepth=32\nsize=1g\nfilename=/dev/sdx\n\
               rate_iops=100\nrate_process=poisson\ntime_based=1\nruntime=30\n";
    let json = compare(&here, ("poisson.fio", job), &["-d", "sata-ssd", "-s", "none", "-n", "3"]);
    assert!(near(means(&json, "p_iops")[0], 100.0, 8.0), "{json}");
}

#[test]
fn sequential_reads_of_4_kib_reach_the_rate_of_the_disk() {
    let here = directory("case-sequential");
    let job = "[s]\nrw=read\ndirect=1\nbs=4k\nioengine=libaio\niodepth=16\nsize=1g\nfilename=/dev/sdx\n";
    let json = compare(&here, ("sequential.fio", job), &["-d", "sata-desktop", "-s", "none", "-n", "1"]);
    assert!(near(means(&json, "throughput")[0], 99.5, 3.0), "{json}");
}

#[test]
fn a_reader_that_sleeps_is_not_harmed_by_an_idle_writer() {
    let here = directory("case-sleeps");
    let tasks = "[[tasks]]\npid = 1\nname = \"site\"\npattern = \"random\"\nrange = [0, 400000000]\n\
                 think_ns = [30000000, 34000000]\ntotal = 300\n\
                 [[tasks]]\npid = 2\nname = \"copy\"\nclass = \"idle\"\npattern = \"seq\"\nstart_sector = 800000000\n\
                 nr_sectors = 8\nthink_ns = [5000000, 6000000]\ntotal = 1500\n";
    let settings = ["-d", "sata-ssd", "-s", "none", "-s", "bfq", "-s", "mq-deadline", "-n", "3"];
    let json = compare(&here, ("sleeps.toml", tasks), &settings);
    let rates = means(&json, "site_iops");
    assert!(rates.iter().all(|rate| near(*rate, rates[0], 5.0)), "{rates:?}");
    assert!(!has_winner(&json, "site_iops") && !has_winner(&json, "finish"), "{}", json["answer"]);
}

#[test]
fn a_job_that_ends_early_has_the_rate_of_its_time() {
    // Case 15: 600 reads with think times of 10 to 30
    // ms, about 30 per second, beside a longer stream.
    let here = directory("case-early");
    let tasks = "[[tasks]]\npid = 1\nname = \"site\"\npattern = \"random\"\nrange = [0, 900000000]\n\
                 think_ns = [10000000, 30000000]\ntotal = 600\n\
                 [[tasks]]\npid = 2\nname = \"rsync\"\nclass = \"idle\"\npattern = \"seq\"\n\
                 start_sector = 800000000\nnr_sectors = 256\ntotal = 40000\n";
    let json = compare(&here, ("early.toml", tasks), &["-d", "sata-desktop", "-s", "none", "-n", "1"]);
    let finish = means(&json, "finish")[0];
    assert!(finish > 60.0 && (25.0..35.0).contains(&means(&json, "site_iops")[0]), "{json}");
    // The rate of a job is the rate that fio prints.
    let job = "[global]\ndirect=1\nfilename=/dev/sdx\n[a]\nrw=randread\nsize=100m\nio_size=400k\n\
               [b]\nrw=read\nbs=1m\noffset=1g\nsize=200m\n";
    let settings = ["-d", "sata-7200", "-s", "none", "-n", "1"];
    let json = compare(&here, ("early.fio", job), &settings);
    let fio = compare_file(&here, "early.fio", &[&["--output-format", "fio-json"], &settings[..]].concat());
    for (number, name) in [(0, "a_iops"), (1, "b_iops")] {
        let rate = fio["jobs"][number]["read"]["iops"].as_f64().unwrap();
        assert!(near(means(&json, name)[0], rate, 0.1), "{name}: {rate} {json}");
    }
}

#[test]
fn parallel_scans_of_an_array_are_faster_without_idling() {
    let here = directory("case-scans");
    let task = |pid: u32| {
        format!(
            "[[tasks]]\npid = {pid}\nname = \"scan{pid}\"\npattern = \"seq\"\nstart_sector = {}\nnr_sectors = 64\n\
             total = 2000\n",
            u64::from(pid) * 50_000_000
        )
    };
    let tasks = (1..=8).map(task).collect::<String>();
    let settings = ["-d", "san-lun", "-s", "noop", "-s", "deadline", "-s", "cfq-2.6.34", "-n", "2"];
    let throughput = means(&compare(&here, ("scans.toml", &tasks), &settings), "throughput");
    assert!(near(throughput[0], throughput[1], 10.0) && throughput[0] > 1.5 * throughput[2], "{throughput:?}");
}

#[test]
fn metrics_of_the_device_say_so_beside_those_of_a_job() {
    let here = directory("labels");
    let job = "[t]\nrw=randread\ndirect=1\nsize=1m\n[u]\nrw=randread\ndirect=1\nsize=1m\n";
    let json = compare(&here, ("two.fio", job), &["--device", "sata-7200", "--scheduler", "none", "--runs", "2"]);
    let metrics = json["metrics"].as_array().unwrap();
    let name = |id: &str| metrics.iter().find(|found| found["metric"] == id).unwrap()["name"].as_str().unwrap();
    assert_eq!((name("sync_p99"), name("throughput")), ("device sync p99", "device throughput"));
    assert_eq!((name("finish"), name("t_p99")), ("finish", "t p99"));
}
