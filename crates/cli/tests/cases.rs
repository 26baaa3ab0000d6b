//! Tests of inputs in forms that users have reported, with the correct results. The inputs were
//! made for these tests.
//!
//! | case | input | correct result |
//! |---|---|---|
//! | 01 | jobs deeper than the tags, or a job that starves, with `--run-for` | all settings end at the limit, and no setting wins because it ran longer |
//! | 02 | biosnoop: times of completion, names with blanks, rounded latencies | one I/O in flight, and the time of a closed replay with exact values |
//! | 03 | a trace with whole seconds | the latency of an idle disk |
//! | 04 | blkparse with D, or with D and C | issues count as requests, and D2C is measured |
//! | 05 | a log of fio whose times step back | the order of the file, and a doubt with the count and size of the steps |
//! | 06 | a log of fio without times | one I/O after another, as fio replays it |
//! | 07 | output of iostat: a disk with bursts, a single report, or contradictory values | the queue while the disk is busy; a note that the report is a mean since the start; the contradiction |
//! | 08 | a trace in ms and bytes that looks like MQSim's | doubts that name the units, and columns that read the trace |
//! | 09 | `dd`, and a stream of large reads | the rate of the disk at every size and depth |
//! | 10 | pasted command lines | a simulated program, or one sentence with a remedy |
//! | 11 | text of `perf script` and ftrace; fio's log of latencies | the requests, with their processes |
//! | 12 | Systor '17, sizes of 11 characters | the requests; columns with blanks between them |
//! | 13 | units with `IOWeight=200` and `300` under bfq | both weights of each unit, the shares, and the setting that gives the intended shares |
//! | 14 | etcd's test of `fdatasync` | p99 of `fdatasync` as a metric and a goal; the job's own IOPS |
//! | 15 | inputs without errors | unchanged results |
//! | 16 | a host that submits requests before its turn | no tenant starves: `a_tenant_that_submits_before_the_turn_starves_nobody` in `crates/iosched/tests/host.rs` |
//! | 17 | root works in a directory of another user | refused; nothing outside is written: `root_does_not_work_in_a_directory_of_another_user` in `kernel.rs`, `run_fails_if_its_directory_is_exchanged` in `crates/kernel/tests/execute.rs` |

mod common;

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use common::{IOSCHED, available, directory, is_root, run_in};
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

/// Returns whether two values differ by less than `percent` percent.
fn near(one: f64, other: f64, percent: f64) -> bool {
    (one / other - 1.0).abs() * 100.0 < percent
}

/// Writes `text` to `file`, and runs `trace info` on it. Returns the text output and the JSON
/// output.
#[track_caller]
fn info(here: &Path, file: &str, text: &str, more: &[&str]) -> (String, Value) {
    fs::write(here.join(file), text).unwrap();
    let args = [&["trace", "info", file], more].concat();
    let (code, out, err) = run_in(here, &args);
    assert_eq!(code, 0, "{err}");
    let json = run_in(here, &[&args[..], &["--json"]].concat()).1;
    (err + &out, serde_json::from_str(&json).unwrap())
}

/// Writes `text` to `file`. Returns the error when the file is read as a trace.
#[track_caller]
fn refusal(here: &Path, file: &str, text: &str) -> String {
    fs::write(here.join(file), text).unwrap();
    let (code, _, err) = run_in(here, &["trace", "info", file]);
    assert_ne!(code, 0, "iosched read {file} without an error");
    err
}

#[track_caller]
fn has_all(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Returns the doubts of a comparison, one per line.
fn doubts(json: &Value) -> String {
    json["doubts"].as_array().unwrap().iter().map(|doubt| format!("{}\n", doubt["message"].as_str().unwrap())).collect()
}

#[test]
fn iodepth_above_the_queue_depth_gives_no_false_winner() {
    let here = directory("case-deep");
    let job =
        "[j]\ndirect=1\nbs=4k\nioengine=libaio\niodepth=48\nsize=8G\nfilename=/dev/sdx\nrw=randrw\nrwmixread=75\n";
    let settings = ["-d", "sata-7200", "-s", "mq-deadline", "-s", "none", "--run-for", "3", "-n", "3"];
    let json = compare(&here, ("deep.fio", job), &settings);
    let times = means(&json, "finish");
    // Requests in flight at the end of the run still complete.
    assert!(times.iter().all(|seconds| (3.0..3.6).contains(seconds)), "{times:?}");
    let throughput = means(&json, "throughput");
    assert!(near(throughput[0], throughput[1], 5.0), "{throughput:?}");
    // The mean latency is not compared, because it differs: with 32 tags, 16 of the 48 requests are
    // not submitted yet.
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
fn write_ahead_log_job_has_fdatasync_latency_as_metric() {
    let here = directory("case-etcd");
    let job = "[wal]\nrw=write\nioengine=sync\nfdatasync=1\nsize=22m\nbs=2300\n";
    let settings = ["-d", "sata-ssd", "-s", "none", "-n", "1"];
    let json = compare(&here, ("wal.fio", job), &[&settings[..], &["--goal", "p99(fdatasync)"]].concat());
    assert!((6.0..7.0).contains(&means(&json, "p99(fdatasync)")[0]), "{json}");
    assert!((180.0..220.0).contains(&means(&json, "wal_iops")[0]), "{json}");
}

#[test]
fn poisson_arrivals_have_the_requested_rate() {
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
fn idle_class_copy_does_not_slow_a_sleeping_reader() {
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
fn rate_of_a_short_job_is_over_its_own_duration() {
    // Case 15: 600 reads with think times of 10 to 30 ms, which is about 30 reads per second. At
    // the same time, a longer stream of reads runs.
    let here = directory("case-early");
    let tasks = "[[tasks]]\npid = 1\nname = \"site\"\npattern = \"random\"\nrange = [0, 900000000]\n\
                 think_ns = [10000000, 30000000]\ntotal = 600\n\
                 [[tasks]]\npid = 2\nname = \"rsync\"\nclass = \"idle\"\npattern = \"seq\"\n\
                 start_sector = 800000000\nnr_sectors = 256\ntotal = 40000\n";
    let json = compare(&here, ("early.toml", tasks), &["-d", "sata-desktop", "-s", "none", "-n", "1"]);
    let finish = means(&json, "finish")[0];
    assert!(finish > 60.0 && (25.0..35.0).contains(&means(&json, "site_iops")[0]), "{json}");
    // The rate of a job is defined as in fio.
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
fn device_and_job_metrics_have_distinct_names() {
    let here = directory("labels");
    let job = "[t]\nrw=randread\ndirect=1\nsize=1m\n[u]\nrw=randread\ndirect=1\nsize=1m\n";
    let json = compare(&here, ("two.fio", job), &["--device", "sata-7200", "--scheduler", "none", "--runs", "2"]);
    let metrics = json["metrics"].as_array().unwrap();
    let name = |id: &str| metrics.iter().find(|found| found["metric"] == id).unwrap()["name"].as_str().unwrap();
    assert_eq!((name("sync_p99"), name("throughput")), ("device sync p99", "device throughput"));
    assert_eq!((name("finish"), name("t_p99")), ("finish", "t p99"));
}

/// Generator of the random numbers for the inputs.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Returns random reads of one process, one after another, without a pause. Each entry has the
/// submission and the latency, us.
fn one_at_a_time(count: u64) -> Vec<(u64, u64)> {
    let mut rng = Numbers(7);
    let mut now_us = 0;
    (0..count)
        .map(|_| {
            let latency_us = 3_000 + rng.below(14_000);
            now_us += latency_us;
            (now_us - latency_us, latency_us)
        })
        .collect()
}

#[test]
fn rounded_biosnoop_latencies_keep_one_io_in_flight() {
    let here = directory("case-biosnoop");
    let ios = one_at_a_time(400);
    let mut exact = "arrival_ns,pid,op,sync,sector,nr_sectors,latency_ns\n".to_owned();
    let mut rounded = exact.clone();
    let mut table = "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)\n".to_owned();
    for (at, (start_us, latency_us)) in (0u64..).zip(ios) {
        let (sector, end_us) = (at * 40_009 * 8, start_us + latency_us);
        writeln!(exact, "{start_us}000,42,R,1,{sector},32,{latency_us}000").unwrap();
        writeln!(rounded, "{start_us}000,42,R,1,{sector},32,{}0000", (latency_us + 5) / 10).unwrap();
        let (end_s, latency_ms) = (end_us as f64 / 1e6, latency_us as f64 / 1e3);
        let name = "C2 Compiler";
        writeln!(table, "{end_s:<11.6} {name:<14} 42      sdb       R {sector:<10} 16384   {latency_ms:6.2}").unwrap();
    }
    let (text, json) = info(&here, "biosnoop.txt", &table, &[]);
    assert!(text.contains("C2 Compiler"), "{text}");
    let most = json["over_time"].as_array().unwrap().iter().map(|bin| bin["depth_max"].as_u64().unwrap()).max();
    assert_eq!(most, Some(1), "{json}");
    let settings = ["-d", "nvme", "-s", "none", "-n", "1", "--replay", "closed"];
    let finish = |file, text: &str| means(&compare(&here, (file, text), &settings), "finish")[0];
    let expected = finish("exact.csv", &exact);
    assert!((0.03..0.04).contains(&expected), "{expected}");
    for (file, text) in [("rounded.csv", &rounded), ("biosnoop.txt", &table)] {
        assert!(near(finish(file, text), expected, 3.0), "{file}");
    }
}

#[test]
fn trace_with_whole_seconds_has_the_latency_of_an_idle_disk() {
    let here = directory("case-seconds");
    let mut rng = Numbers(3);
    let mut times: Vec<u64> = (0..3_000).map(|_| rng.below(10)).collect();
    times.sort_unstable();
    let text: String =
        times.iter().map(|s| format!("{},{},8,0,1063\n", 1_538_323_200 + s, rng.below(1 << 28) * 8)).collect();
    let json =
        compare(&here, ("seconds.csv", &text), &["-d", "sata-ssd", "-s", "none", "-s", "mq-deadline", "-n", "3"]);
    let latency_ms = means(&json, "sync_mean");
    assert!(latency_ms.iter().all(|ms| (0.07..0.13).contains(ms)), "{latency_ms:?}");
    has_all(&doubts(&json), &["the recorded times are exact only to 1 s"]);
    assert!(!has_winner(&json, "sync_mean"), "{}", json["answer"]);
}

/// Returns lines of blkparse: submission, issue and completion of reads. Each read takes 2 ms.
fn blkparse_lines(count: u64) -> Vec<String> {
    (0..count)
        .flat_map(|at| {
            let line = |us: u64, action: &str| {
                let us = at * 3_000 + us;
                let (pid, name) = if action == "C" { (0, "0") } else { (697, "my job") };
                let time = format!("{}.{:06}000", us / 1_000_000, us % 1_000_000);
                format!("  8,0    1 {:8} {time}   {pid}  {action}   R {} + 8 [{name}]\n", at + 1, at * 80)
            };
            [line(0, "Q"), line(10, "D"), line(2_010, "C")]
        })
        .collect()
}

#[test]
fn issues_are_requests_if_submissions_were_not_recorded() {
    let here = directory("case-issues");
    let lines = blkparse_lines(200);
    let only = |actions: &str| -> String {
        lines.iter().filter(|line| actions.split(' ').any(|a| line.contains(&format!("  {a}   R ")))).cloned().collect()
    };
    for (file, actions) in [("dc.txt", "D C"), ("d.txt", "D")] {
        let (text, json) = info(&here, file, &only(actions), &[]);
        assert_eq!(json["all"]["requests"], 200, "{json}");
        has_all(&text, &["200 requests have no submission (Q)", "my job"]);
        let d2c = text.lines().find(|line| line.starts_with("D2C")).unwrap();
        assert_eq!(d2c.contains("2000.000"), actions == "D C", "{d2c}");
    }
    let err = refusal(&here, "c.txt", &only("C"));
    has_all(&err, &["200 requests completed, but the recording has no submissions (Q)", "with issues (D)"]);
}

#[test]
fn fio_log_with_decreasing_times_keeps_its_order() {
    let here = directory("case-back");
    let mut log = "fio version 3 iolog\n0 /dev/sdx add\n0 /dev/sdx open\n".to_owned();
    for round in 0..5 {
        for at in 0..40u64 {
            let offset = (round * 40 + at) * 7_919 * 4_096;
            writeln!(log, "{} /dev/sdx read {offset} 4096", 1 + at * 25_000).unwrap();
        }
    }
    log += "975002 /dev/sdx close\n";
    let settings = ["-d", "sata-ssd", "-s", "none", "-n", "1"];
    let by_trace = compare(&here, ("back.log", &log), &settings);
    has_all(&doubts(&by_trace), &["times go backwards 4 times, by up to 0.975 s; iosched keeps the order of the file"]);
    let job = "[r]\nread_iolog=back.log\nfilename=/dev/sdx\ndirect=1\n";
    let by_job = compare(&here, ("back.fio", job), &settings);
    // Each of the five parts takes 0.975 s.
    for json in [by_trace, by_job] {
        assert!((4.87..4.89).contains(&means(&json, "finish")[0]), "{json}");
    }
}

#[test]
fn a_log_of_fio_without_times_runs_one_io_after_another() {
    let here = directory("case-timeless");
    let lines: String = (0..200u64).map(|at| format!("/dev/sdx read {} 4096\n", at * 97 % 200 * 40_960_000)).collect();
    let log = format!("fio version 2 iolog\n/dev/sdx add\n/dev/sdx open\n{lines}/dev/sdx close\n");
    let settings = ["-d", "sata-7200", "-s", "none", "-s", "bfq", "-s", "mq-deadline", "-n", "2"];
    let by_trace = compare(&here, ("timeless.log", &log), &settings);
    has_all(&doubts(&by_trace), &["the trace has no usable times", "submits its requests one after another"]);
    assert!(!has_winner(&by_trace, "finish"), "{}", by_trace["answer"]);
    let job = "[r]\nread_iolog=timeless.log\nfilename=/dev/sdx\ndirect=1\n";
    let by_job = compare(&here, ("timeless.fio", job), &settings);
    assert!(near(means(&by_trace, "finish")[0], means(&by_job, "finish")[0], 1.0), "{by_trace} {by_job}");
    let err = refusal(&here, "headless.log", &lines);
    has_all(&err, &["the first line `fio version 2 iolog` is missing"]);
}

#[test]
fn queue_from_iostat_counts_only_busy_time() {
    let here = directory("case-bursts");
    let heading =
        "Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz %util\n";
    let report = |values: &str| format!("{heading}sda {values}\n\n");
    let burst = "1.00 20.00 16.00 560.00 0.00 1.00 0.00 4.76 41.00 72.00 1.45 16.00 28.00 5.20";
    let linux = "Linux 6.1.0 (db)  11/29/26  _x86_64_  (8 CPU)\n\n";
    let (text, _) = info(&here, "bursts.txt", &format!("{linux}{}{}", report(burst), report(burst)), &[]);
    has_all(
        &text,
        &["27.9 requests in flight while the disk was busy", "A scheduler can choose between several requests"],
    );
    let (text, _) = info(&here, "single.txt", &format!("{linux}{}", report(burst)), &[]);
    has_all(&text, &["one report, with averages since the system started"]);
    let wrong = "450.00 0.00 1800.00 0.00 0.00 0.00 0.00 0.00 4.00 0.00 0.08 4.00 0.00 100.00";
    let (text, _) = info(&here, "wrong.txt", &format!("{linux}{}", report(wrong)), &[]);
    has_all(
        &text,
        &["contradict each other. The queue length in the report is 0.08, but the product of rates and waits is 1.80"],
    );
}

#[test]
fn trace_in_ms_and_bytes_gets_doubts_and_is_read_by_columns() {
    let here = directory("case-ms");
    let rows: String =
        (0..400u64).map(|at| format!("{} 0 {} 65536 {}\n", at * 4, at * 300_007 * 4_096, at % 2)).collect();
    let (text, _) = info(&here, "ms.trace", &rows, &[]);
    has_all(
        &text,
        &["the unit of the times may be ms, not ns; if so, add --time-unit ms", "Offsets may be in bytes, not sectors"],
    );
    let columns = ["--columns", "time_ms,device,offset_bytes,length_bytes,op=1:read"];
    let (_, json) = info(&here, "ms.trace", &rows, &columns);
    let all = &json["all"];
    assert_eq!((&all["requests"], &json["reads"]["requests"]), (&400.into(), &200.into()), "{json}");
    assert_eq!((&all["size_max_bytes"], &json["span_ns"]), (&65_536.into(), &1_596_000_000u64.into()), "{json}");
    // The same values with decimals, as DiskSim writes them.
    let decimals: String = rows.lines().map(|row| row.replacen(' ', ".381531 ", 1) + "\n").collect();
    let err = refusal(&here, "decimals.trace", &decimals);
    has_all(
        &err,
        &["a trace of DiskSim or SSDsim", "--time-unit ms", "--columns time_ms,device,sector,nr_sectors,op=1:read"],
    );
}

#[test]
fn large_reads_of_one_stream_have_the_rate_of_the_disk() {
    let here = directory("case-stream");
    for (device, rate) in [("sata-7200", 210.0), ("sata-desktop", 99.5)] {
        for (size, depth) in [("1m", 1), ("1m", 2), ("2m", 1), ("2m", 2), ("2m", 4)] {
            let job = format!(
                "[s]\nrw=read\ndirect=1\nioengine=libaio\nfilename=/dev/sdx\nsize=512m\nbs={size}\niodepth={depth}\n"
            );
            let json = compare(&here, ("stream.fio", &job), &["-d", device, "-s", "none", "-n", "1"]);
            let got = means(&json, "throughput")[0];
            assert!(got > 0.95 * rate, "{device}, {size}, depth {depth}: {got} MB/s");
        }
    }
    let dd = "dd if=f of=/dev/null bs=1M count=256";
    let json = compare_file(&here, dd, &["--json", "-d", "sata-desktop", "-s", "mq-deadline", "-n", "1"]);
    assert!(means(&json, "throughput")[0] > 0.95 * 99.5, "{json}");
}

#[test]
fn pasted_commands_are_simulated_or_refused_with_a_remedy() {
    let here = directory("case-lines");
    for line in [
        "fio --name=t --rw=randread --bs=4k --iodepth=16 --ioengine=libaio --direct=1 --size=64M --runtime=1",
        "$ sudo fio -name=t -rw=randread -bs=4k -direct=1 -size=1M | tee out",
        "time dd if=/dev/sda of=/dev/null bs=1M count=16 iflag=direct",
        "ionice -c3 nice dd if=f of=/dev/null bs=64k count=16",
        "hdparm -tT /dev/sda",
        "ioping -A -c 3 .",
        "dd if=f of=/dev/null bs=64k count=16 iflag=nocache",
        "iozone -+u -a -g 1m",
        "bonnie++ -d /tmp -s 64M -r 32M -n 0",
        "export S=1M; fio --name=a --rw=read --size=$S & iostat -x 1",
        "PS C:\\> fio.exe \u{2013}-name=a \u{2013}rw=read \u{2013}size=1m --ioengine=windowsaio",
        "sysbench fileio --file-total-size=16M --file-num=4 --file-test-mode=rndrd --time=1 run",
    ] {
        let args = ["compare", "-j", "1", "-n", "1", "-d", "sata-ssd", "-s", "none", "-w", line];
        let (code, _, err) = run_in(&here, &args);
        assert_eq!(code, 0, "{line}: {err}");
    }
    for (line, part) in [
        ("pgbench -i b && pgbench -c 10 -T 60 b", "pgbench: iosched does not simulate this program"),
        ("mysqlslap --concurrency=50", "iosched record DISK"),
        ("docker run x fio --name=a --rw=read --size=1m", "give only this command"),
        ("sysbench oltp_read_write run", "simulate a database with the workload tpcc"),
        ("bonnie -s 100", "bonnie++"),
        ("cp a b", "dd if=FILE of=COPY"),
        ("for i in 1 2; do dd if=a of=b; done", "for repetitions, use --runs"),
    ] {
        let args = ["compare", "-j", "1", "-n", "1", "-d", "sata-ssd", "-s", "none", "-w", line];
        let (code, _, err) = run_in(&here, &args);
        assert!(code == 2 && err.contains(part), "{line}: {err}");
        assert_eq!(err.matches(line).count().min(2), err.matches(line).count(), "the error repeats the line: {err}");
    }
}

#[test]
fn perf_ftrace_and_fio_latency_logs_are_read_as_traces() {
    let here = directory("case-events");
    let (mut perf, mut ftrace) = (String::new(), "# tracer: nop\n#\n".to_owned());
    let mut log = String::new();
    for at in 0..100u64 {
        let us = |more: u64| format!("205791.{:06}", at * 9_000 + more);
        let what = format!("8,16 R 4096 () {} + 8 [my job]", at * 800);
        let done = format!("8,16 R () {} + 8 [0]", at * 800);
        for (more, event, what) in
            [(0, "block_rq_insert", &what), (2, "block_rq_issue", &what), (8_002, "block_rq_complete", &done)]
        {
            writeln!(perf, "          my job  9526 [001] {}: block:{event}: {what}", us(more)).unwrap();
            writeln!(ftrace, "          my job-9526    [001] d..1. {}: {event}: {what}", us(more)).unwrap();
        }
        writeln!(log, "{}, 8002000, 0, 4096, {}, 0x0000", at * 9 + 8, at * 409_600).unwrap();
    }
    for (file, text) in [("perf-script.txt", &perf), ("trace.txt", &ftrace)] {
        let (text, json) = info(&here, file, text, &[]);
        assert_eq!(json["all"]["requests"], 100, "{json}");
        has_all(&text, &["my job", "9526", "8000.000"]);
    }
    let (text, json) = info(&here, "x_lat.1.log", &log, &[]);
    assert_eq!(json["all"]["requests"], 100, "{json}");
    has_all(&text, &["the recorded times are exact only to 1 ms", "8.002"]);
}

#[test]
fn latencies_in_us_of_old_fio_logs_are_detected() {
    let here = directory("case-old-log");
    // Before version 3, fio writes latencies in us. Here they are 8 ms.
    let log: String =
        (1..200u64).map(|at| format!("{}, {}, 0, 4096, {}\n", at * 9, 8_000 + at % 9, at * 40_960)).collect();
    let err = refusal(&here, "old_lat.1.log", &log);
    has_all(&err, &["its latencies seem to be in us, as in logs of fio before version 3"]);
    let columns = err.split("add --columns ").nth(1).unwrap().split(';').next().unwrap();
    let (text, json) = info(&here, "old_lat.1.log", &log, &["--columns", columns]);
    assert_eq!(json["all"]["requests"], 199, "{json}");
    has_all(&text, &["8.00"]);
}

#[test]
fn a_table_is_read_with_the_columns_that_the_error_names() {
    let here = directory("case-columns");
    let rows: String = (0..100u64)
        .map(|at| {
            format!("{at},C2 Compiler,0.{at:03}100000,0.{at:03}394000,Read,0,\"0x{:x}\",\"4,096\"\n", at * 40_960)
        })
        .collect();
    let table = format!("Line #,Process,Init Time (s),Complete Time (s),IO Type,Disk,Min Offset,Size (B)\n{rows}");
    let err = refusal(&here, "windows.csv", &table);
    let columns = err.split("--columns ").nth(1).unwrap().trim();
    assert!(columns.starts_with("-,process,time_s,completed_s,op"), "{err}");
    let (text, json) = info(&here, "windows.csv", &table, &["--columns", columns]);
    assert_eq!((&json["all"]["requests"], &json["all"]["size_max_bytes"]), (&100.into(), &4_096.into()), "{json}");
    has_all(&text, &["C2 Compiler", "0.294"]);
}

#[test]
fn columns_of_systor_17_do_not_run_together() {
    let here = directory("case-systor");
    let rows: String = (0..120u64)
        .map(|at| {
            format!("1455592811.{:09},0.008407658,R,{},{},4096\n", at * 1_000_003, at % 3, 392_669_103_616 + at * 4_096)
        })
        .collect();
    let (text, json) = info(&here, "systor.csv", &format!("Timestamp,Response,IOType,LUN,Offset,Size\n{rows}"), &[]);
    assert_eq!(json["devices"].as_array().unwrap().len(), 3, "{json}");
    let row = text.lines().find(|line| line.starts_with("0 ")).unwrap();
    let words: Vec<&str> = row.split_whitespace().collect();
    assert!(words.len() == 3 && words[1] == "40" && words[2].starts_with("383,4"), "{row}");
}

#[test]
fn doctor_shows_both_weights_of_units_and_their_shares() {
    if !is_root() {
        available(false, "root");
        return;
    }
    // systemd writes io.weight and the scaled io.bfq.weight. In Linux before 5.4, the file of
    // io.bfq.weight contains only the number.
    for plain in ["default ", ""] {
        let here = directory("case-weights");
        let disk = "sys/devices/pci0000:00/ata1/host0/block/sda";
        let files = [
            (format!("{disk}/dev"), "8:0"),
            (format!("{disk}/size"), "2000000"),
            (format!("{disk}/queue/scheduler"), "none mq-deadline [bfq]"),
            (format!("{disk}/queue/rotational"), "1"),
            ("sys/fs/cgroup/cgroup.controllers".to_owned(), "cpu io"),
            ("sys/fs/cgroup/cgroup.subtree_control".to_owned(), "cpu io"),
        ];
        let unit = |name: &str, file: &str| format!("sys/fs/cgroup/system.slice/{name}.service/{file}");
        let weights = [("web", 200, 109), ("batch", 300, 118)].map(|(name, weight, scaled)| {
            [
                (unit(name, "io.weight"), format!("default {weight}")),
                (unit(name, "io.bfq.weight"), format!("{plain}{scaled}")),
            ]
        });
        let files = files.map(|(path, text)| (path, text.to_owned()));
        for (path, text) in files.into_iter().chain(weights.into_iter().flatten()) {
            let path = here.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text + "\n").unwrap();
        }
        for link in ["sys/class/block/sda", "sys/block/sda", "sys/dev/block/8:0"] {
            let (link, up) = (here.join(link), "../".repeat(link.matches('/').count() - 1));
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(format!("{up}{}", disk.strip_prefix("sys/").unwrap()), link).unwrap();
        }
        let script = "mount --bind \"$1/sys\" /sys && exec \"$2\" doctor sda";
        let mut command = Command::new("unshare");
        let output = command.args(["-m", "sh", "-c", script, "sh"]).arg(&here).arg(IOSCHED).output().unwrap();
        let (text, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !available(!err.contains("unshare:") && !err.contains("mount:"), "a namespace for mounts") {
            return;
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        has_all(
            &text,
            &[
                "batch.service IOWeight=300 became 118, web.service IOWeight=200 became 109",
                "share the disk 52:48 instead of 60:40",
                "batch.service IOWeight=2300, web.service IOWeight=1200",
                "echo 300 >",
            ],
        );
    }
}

#[test]
fn spc_iostat_sar_and_ns_logs_are_read_correctly() {
    let here = directory("case-right");
    // The traces of UMass have operations in small letters.
    let spc: String = (0..100u64)
        .map(|at| format!("{},{},4096,{},{}.5\n", at % 3, at * 80, ["r", "w"][at as usize % 2], at))
        .collect();
    let (_, json) = info(&here, "financial.spc", &spc, &[]);
    assert_eq!((&json["format"], &json["all"]["requests"]), (&"spc".into(), &100.into()), "{json}");
    // Numbers with a decimal comma, and a clock with AM and PM.
    let iostat = "Device:  rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util\n\
                  sda 0,00 1,00 20,00 110,00 800,00 2640,00 52,92 2,60 20,00 10,00 21,80 5,00 65,00\n";
    let (text, _) = info(&here, "comma.txt", iostat, &[]);
    has_all(&text, &["10.00", "21.80", "4.0 requests in flight while the disk was busy"]);
    let sar = "12:00:01 AM DEV tps rkB/s wkB/s areq-sz aqu-sz await %util\n\
               12:10:01 AM sda 112.00 480.00 2400.00 25.71 1.36 12.10 60.00\n\
               Average: sda 112.00 480.00 2400.00 25.71 1.36 12.10 60.00\n";
    let (text, _) = info(&here, "sar.txt", sar, &[]);
    has_all(&text, &["sar -d: 1 intervals", "2.3 requests in flight while the disk was busy"]);
    // A log with times in ns instead of us.
    let log: String =
        (0..300u64).map(|at| format!("{} /dev/sdx write {} 1048576\n", at * 700_000_000, at << 20)).collect();
    let (text, _) = info(&here, "ns.log", &format!("fio version 3 iolog\n{log}"), &[]);
    has_all(&text, &["The unit of the times may be ns, not us", "--time-unit ns"]);
}
