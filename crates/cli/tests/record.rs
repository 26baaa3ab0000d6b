//! Tests of `iosched record` as root. The kernel's tracer records a loop device with known
//! requests.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{
    IOSCHED, Loop, Mount, Running, alone, available, directory, has_program, iosched, is_root, json, run, sh,
};
use common::{quick_disk, wait_for};

const TRACING: &str = "/sys/kernel/tracing";

/// Returns a device. Also returns the mount of tracefs if the test had to mount it. The end of the
/// test unmounts tracefs.
#[track_caller]
fn traced(name: &str) -> Option<(PathBuf, Loop, Option<Mount>)> {
    if !is_root() {
        return None;
    }
    let (here, device) = quick_disk(name, 256 << 20)?;
    let is_there = || Path::new(TRACING).join("current_tracer").exists();
    let mount = (!is_there()).then(|| Mount::new("tracefs", Path::new("tracefs"), TRACING.into()));
    let tracers = fs::read_to_string(Path::new(TRACING).join("available_tracers")).unwrap_or_default();
    available(tracers.split_whitespace().any(|name| name == "blk"), "the tracer blk").then_some((here, device, mount))
}

fn knob(name: &str) -> String {
    fs::read_to_string(Path::new(TRACING).join(name)).unwrap().trim().to_owned()
}

#[test]
fn recording_is_compared_and_the_tracer_restored() {
    let _alone = alone();
    let Some((here, device, _mount)) = traced("record") else { return };
    let name = device.device.file_name().unwrap().to_str().unwrap();
    let before = ["current_tracer", "options/bin", "trace_clock"].map(knob);
    let reads = "sleep 0.5; dd if=\"$1\" of=/dev/null bs=64k count=100 iflag=direct 2>/dev/null";
    let path = device.device.clone();
    let reader = std::thread::spawn(move || sh(reads, &[&path]));
    let (out, err) = iosched(&here, &["record", device.device.to_str().unwrap(), "--for", "2"], 0);
    reader.join().unwrap();
    assert_eq!(err, "");
    assert!(
        out.starts_with(&format!("{name}: 100 requests in 2.0 s (50 per second): 100 reads, 0 writes, 6 MB")),
        "{out}"
    );
    assert!(out.contains("requests by process: dd (") && out.contains(") 100\n"), "{out}");
    assert!(out.contains(&format!("iosched advise /dev/{name} --workload {name}.blktrace.0")), "{out}");
    assert_eq!(["current_tracer", "options/bin", "trace_clock"].map(knob), before);

    let file = format!("{name}.blktrace.0");
    let found = json(&here, &["trace", "info", &file, "--json"]);
    assert_eq!((&found["reads"]["requests"], &found["latency"]["requests"]), (&100.into(), &100.into()), "{found:#}");
    if has_program("blkparse") {
        let text = sh(&format!("blkparse -i {name} -D {} -a complete", here.display()), &[]);
        assert_eq!(text.lines().filter(|line| line.contains("  C  R")).count(), 100, "{text}");
    }
    let args = ["compare", "--workload", &file, "--device", "nvme", "--scheduler", "none", "--runs", "2", "--json"];
    json(&here, &args);
    // The origin of an existing trace is unknown, so the command replaces it only with --overwrite.
    let (_, err) = iosched(&here, &["record", name, "--for", "0.1"], 2);
    assert!(err.contains("--overwrite"), "{err}");
}

#[test]
fn recording_ended_by_a_signal_keeps_its_data() {
    let _alone = alone();
    let Some((here, device, _mount)) = traced("record-ended") else { return };
    let on = device.device.to_str().unwrap();
    for how in [&["-o", "nothing.blktrace.0"][..], &["-o", "nothing.blktrace.0", "--json"], &["-o", "-"]] {
        let (out, err) = iosched(&here, &[&["record", on, "--for", "0.2"], how].concat(), 1);
        assert_eq!(out, "");
        assert!(
            err.contains("the disk got no requests in 0.2 s, so iosched wrote no trace; run the workload"),
            "{err}"
        );
        assert!(!here.join("nothing.blktrace.0").exists(), "an empty recording left a file");
    }
    let (_, err) = iosched(&here, &["record", on, "--for", "0"], 2);
    assert!(err.contains("give a time from 1ns to 1000000s"), "{err}");
    let mut command = Command::new(IOSCHED);
    command.args(["record", on, "--for", "600", "-o", "part.blktrace.0", "--json"]).current_dir(&here);
    command.env("IOSCHED_STATE_DIR", here.join("state")).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut recording = Running(command.spawn().unwrap());
    wait_for(|| knob("current_tracer") == "blk");
    std::thread::sleep(std::time::Duration::from_millis(100));
    // The error message for a second recorder names the process that already records.
    let (_, err) = iosched(&here, &["record", on, "--for", "1", "-o", "second.blktrace.0"], 1);
    assert!(err.contains(&format!("process {} is already recording", recording.0.id())), "{err}");
    sh("dd if=\"$1\" of=/dev/null bs=4k count=10 iflag=direct 2>/dev/null", &[&device.device]);
    sh(&format!("kill -INT {}", recording.0.id()), &[]);
    assert_eq!(recording.0.wait().unwrap().code(), Some(0));
    assert_eq!(json(&here, &["trace", "info", "part.blktrace.0", "--json"])["reads"]["requests"], 10);
    assert_eq!(knob("current_tracer"), "nop");
}

#[test]
fn restore_resets_the_tracer_of_a_killed_recording() {
    let _alone = alone();
    let Some((here, device, _mount)) = traced("record-killed") else { return };
    let mut command = Command::new(IOSCHED);
    command.args(["record", device.device.to_str().unwrap(), "--for", "600"]).current_dir(&here);
    command.env("IOSCHED_STATE_DIR", here.join("state")).stdin(Stdio::null()).stdout(Stdio::null());
    let recording = Running(command.spawn().unwrap());
    wait_for(|| knob("current_tracer") == "blk");
    drop(recording);
    assert_eq!(knob("current_tracer"), "blk");
    assert_eq!(iosched(&here, &["restore", "--dry-run"], 0).0, "the kernel's tracer: would be restored\n");
    assert_eq!(iosched(&here, &["restore"], 0).0, "the kernel's tracer: restored\n");
    assert_eq!((knob("current_tracer"), knob("options/bin")), ("nop".into(), "0".into()));
    assert_eq!(iosched(&here, &["restore"], 0).0, "nothing to restore\n");
}

#[test]
fn record_suggests_advise_on_a_directory_for_traces_with_writes() {
    let _alone = alone();
    let Some((here, device, _mount)) = traced("record-writes") else { return };
    let on = device.device.to_str().unwrap();
    let record = |disk: &str, target: &Path| {
        let write = "sleep 0.3; dd if=/dev/zero of=\"$1\" bs=4k count=10 oflag=direct conv=notrunc 2>/dev/null";
        let target = target.to_owned();
        let writer = std::thread::spawn(move || sh(write, &[&target]));
        let (out, _) = iosched(&here, &["record", disk, "--for", "1s", "-o", "w.blktrace.0", "--overwrite"], 0);
        writer.join().unwrap();
        assert!(!out.contains(" 0 writes"), "{out}");
        out.lines().find_map(|line| Some(line.split_once("iosched advise ")?.1.to_owned()))
    };
    assert_eq!(record(on, &device.device), None, "the device has no file system, so there is no directory to suggest");
    if !available(has_program("mkfs.ext4"), "mkfs.ext4") {
        return;
    }
    sh("mkfs.ext4 -q -F \"$1\"", &[&device.device]);
    let mounted = Mount::new("ext4", &device.device, here.join("mounted"));
    let file = mounted.at.join("file");
    fs::write(&file, [0; 65536]).unwrap();
    let trace = format!("{} --workload w.blktrace.0", mounted.at.display());
    // The small file system has no room for a file of the default size.
    let expected = |found: Option<String>| {
        let found = found.unwrap_or_default();
        let size: u64 = found.strip_prefix(&format!("{trace} --file-size ")).unwrap_or(&found).parse().unwrap();
        let about = rustix::fs::statvfs(&mounted.at).unwrap();
        assert!((64..=(about.f_bavail * about.f_frsize) >> 20).contains(&size), "{size} MiB");
    };
    // For a device, the next command has its mount point. For a file, it has the directory of the
    // file.
    expected(record(on, &file));
    expected(record(file.to_str().unwrap(), &file));
}

#[test]
fn recording_on_a_full_disk_keeps_the_recorded_part() {
    let _alone = alone();
    let Some((here, device, _mount)) = traced("record-room") else { return };
    // The recorder writes several MiB at once if it waits for a processor.
    let small = Mount::in_memory("size=12m", here.join("small"));
    let reads = "while dd if=\"$1\" of=/dev/null bs=4k count=2000 iflag=direct 2>/dev/null; do :; done";
    let mut command = Command::new("sh");
    let reader = Running(command.args(["-c", reads, "sh"]).arg(&device.device).stdin(Stdio::null()).spawn().unwrap());
    let args = ["record", device.device.to_str().unwrap(), "--for", "60", "-o", "small/r.blktrace.0"];
    let (out, err) = iosched(&here, &args, 1);
    drop(reader);
    assert!(err.contains("No space left") && err.contains("s, and iosched kept the recorded part. Free"), "{err}");
    assert!(out.contains(" requests in "), "{out}");
    let found = json(&here, &["trace", "info", "small/r.blktrace.0", "--json"]);
    assert!(found["reads"]["requests"].as_u64().unwrap() > 1000, "{found:#}");
    // If there is no room, the command fails before it records.
    fs::write(small.at.join("rest"), vec![1; 16 << 20]).unwrap_err();
    let (_, err) = iosched(&here, &["record", args[1], "--for", "1", "-o", "small/s.blktrace.0"], 1);
    assert!(err.contains("small/s.blktrace.0: cannot be written: No space left"), "{err}");
}

#[test]
fn unknown_disk_is_refused_before_tracing() {
    let here = directory("record-usage");
    let (code, out, err) = run(&["record", "no-such-disk", "-o", here.join("no.blktrace.0").to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("there is no such block device"), "{err}");
}

#[test]
fn a_recording_has_the_class_of_each_process() {
    let _alone = alone();
    if !available(has_program("fio"), "fio") {
        return;
    }
    let Some((here, device, _mount)) = traced("record-ionice") else { return };
    let path = device.device.clone();
    let jobs = "sleep 0.3; fio --filename=\"$1\" --rw=randread --bs=4k --direct=1 --ioengine=psync --time_based --runtime=1 \
        --rate_iops=100 --name=backup --prioclass=3 --name=db --prioclass=2 --prio=2 --name=usual >/dev/null";
    let asking = std::thread::spawn(move || sh(jobs, &[&path]));
    let (out, err) =
        iosched(&here, &["record", device.device.to_str().unwrap(), "--for", "2", "-o", "t.blktrace.0"], 0);
    asking.join().unwrap();
    assert_eq!(err, "");
    assert!(out.contains("idle"), "{out}");
    let found = json(&here, &["trace", "info", "t.blktrace.0", "--json"]);
    let mut all: Vec<Vec<String>> = found["processes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|process| process["requests"].as_u64() > Some(50))
        .map(|process| serde_json::from_value(process["priorities"].clone()).unwrap())
        .collect();
    all.sort();
    assert_eq!(all, [["be/2"], ["idle"], ["none"]], "{found:#}");
    if has_program("blkparse") {
        let text = sh(&format!("blkparse -i t -D {}", here.display()), &[]);
        assert!(text.contains("iosched ioprio: process") && text.contains("has idle"), "{text}");
        fs::write(here.join("t.txt"), text).unwrap();
        let of_text = json(&here, &["trace", "info", "t.txt", "--input-format", "blkparse", "--json"]);
        assert!(of_text["processes"].to_string().contains("idle"), "{of_text:#}");
    }
    let args = ["--device", "nvme", "--scheduler", "mq-deadline", "--scheduler", "bfq", "--runs", "1", "--json"];
    let compared = json(&here, &[&["compare", "--workload", "t.blktrace.0"][..], &args].concat());
    assert!(!compared["doubts"].to_string().contains("priorities_unknown"), "{:#}", compared["doubts"]);
    let metrics = compared["metrics"].to_string();
    for name in ["\"fio p99\"", "\"fio (idle) p99\"", "\"fio (be/2) p99\""] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
}

#[test]
fn processes_with_one_name_are_separated_by_priority() {
    let here = directory("same-name");
    let mut table = "arrival_ns,pid,op,sync,sector,nr_sectors,process\n".to_owned();
    for number in 0..400 {
        let pid = [1, 2, 2, 3][number % 4];
        table += &format!("{},{pid},R,1,{},8,fio\n", number * 20_000, number * 7919 % 100_000 * 8);
    }
    fs::write(here.join("t.csv"), table).unwrap();
    let compare = |more: &[&str]| {
        let args = ["compare", "-w", "t.csv", "-d", "sata-ssd", "--scheduler", "none,mq-deadline", "--runs", "1"];
        json(&here, &[&args[..], &["--json"], more].concat())["metrics"].to_string()
    };
    let joined = compare(&["--ionice", "*=none"]);
    assert!(!joined.contains("fio"), "a row for all processes would repeat the row of the device: {joined}");
    // The default level is the same as no priority.
    let apart = compare(&["--ionice", "2=idle", "--ionice", "3=best-effort:4", "--ionice", "*=none"]);
    assert!(apart.contains("\"fio (2 processes) p99\"") && apart.contains("\"fio (idle) p99\""), "{apart}");
    let goal = compare(&["--ionice", "2=idle", "--ionice", "*=none", "--goal", "p99(fio (idle))"]);
    assert!(goal.contains("p99(fio (idle))"), "{goal}");
}

#[test]
fn ionice_removes_the_doubt_about_missing_priorities() {
    let here = directory("no-priorities");
    let mut table = "arrival_ns,pid,op,sync,sector,nr_sectors,process\n".to_owned();
    for number in 0..400 {
        let (pid, name) = if number % 4 == 0 { (1, "db") } else { (2, "backup") };
        table += &format!("{},{pid},R,1,{},8,{name}\n", number * 20_000, number * 7919 % 100_000 * 8);
    }
    fs::write(here.join("t.csv"), table).unwrap();
    let compare = |scheduler: &str, more: &[&str]| {
        let args =
            ["compare", "--workload", "t.csv", "--device", "sata-ssd", "--scheduler", "none", "--scheduler", scheduler];
        json(&here, &[&args[..], &["--runs", "1", "--json"], more].concat())
    };
    let found = compare("mq-deadline", &[]);
    let first = &found["doubts"][0];
    assert_eq!((&first["doubt"], &first["settings"]), (&"priorities_unknown".into(), &vec!["mq-deadline"].into()));
    assert!(first["message"].as_str().unwrap().contains("--ionice backup=idle"), "{first}");
    let is_doubted = |found: &serde_json::Value| found["doubts"].to_string().contains("priorities_unknown");
    assert!(!is_doubted(&compare("kyber", &[])));
    let text = compare("mq-deadline", &["--ionice", "backup=idle", "--ionice", "*=none"]);
    assert!(!is_doubted(&text), "{:#}", text["doubts"]);
    assert_ne!(text["metrics"], found["metrics"], "--ionice has no effect on the metrics");

    let wrong = |ionice: &str| {
        iosched(&here, &["compare", "--workload", "t.csv", "--device", "sata-ssd", "--ionice", ionice], 2).1
    };
    assert!(wrong("backup=lazy").contains("PROCESS=CLASS"));
    assert!(wrong("postgres=idle").contains("backup, db"));
}

#[test]
fn a_plan_records_the_workload_of_an_observed_unit() {
    let _alone = alone();
    let Some((here, device, _mount)) = traced("record-plan") else { return };
    let node = device.device.to_str().unwrap();
    let name = device.device.file_name().unwrap().to_str().unwrap();
    let intents = |process: &str| {
        let text = format!(
            "device = \"{node}\"\nprofile = \"sata-ssd\"\n[unit.copy]\nmatch = \"process:{process}\"\n\
             workload = \"observed\"\ngoal = \"p99(read) < 50 ms\"\n"
        );
        fs::write(here.join("i.toml"), text).unwrap();
    };
    // 20 reads per second, from the start of the recording to its end.
    let reads = "i=0; while [ $i -lt 200 ]; do dd if=\"$1\" of=/dev/null bs=4k count=1 skip=$i iflag=direct 2>/dev/null || exit; \
                 i=$((i+1)); sleep 0.05; done";
    let mut command = Command::new("sh");
    let mut reader = Running(command.args(["-c", reads, "sh"]).arg(&device.device).spawn().unwrap());
    intents("dd");
    let (out, err) = iosched(&here, &["plan", "i.toml", "--observe-for", "3", "--output", "plan.json", "--json"], 0);
    assert!(!err.contains("error"), "{err}");
    let planned: serde_json::Value = serde_json::from_str(&out).unwrap();
    let note = planned["notes"][0].as_str().unwrap();
    assert!(note.starts_with(&format!("The workload of copy was recorded on {name} for 3.0 s: ")), "{note}");
    assert_eq!(planned["units"][0]["goals"][0]["outcome"], "met", "{planned:#}");
    assert_eq!(knob("current_tracer"), "nop");
    intents("postgres");
    let (_, err) = iosched(&here, &["plan", "i.toml", "--observe-for", "1"], 1);
    assert!(err.contains("match = \"process:postgres\" had no I/O") && err.contains("These had I/O"), "{err}");
    reader.0.kill().unwrap();
    reader.0.wait().unwrap();
    let (_, err) = iosched(&here, &["plan", "i.toml", "--observe-for", "1"], 1);
    assert!(err.contains(&format!("{name} had no I/O at all")), "{err}");
}
