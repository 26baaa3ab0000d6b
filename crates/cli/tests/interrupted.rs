//! Tests of Ctrl-C during a long command: the messages, and reading the stored results.

mod common;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use common::{command_in, directory, ended_by_sigterm, interrupt, iosched, wait_for};

fn start(here: &Path, args: &[&str]) -> Child {
    command_in(here, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Sends SIGINT. Returns standard output and standard error.
fn interrupted(child: Child) -> (String, String) {
    interrupt(&child);
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    let (out, err) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert_eq!(status.code(), Some(130), "{out}{err}");
    (out, err)
}

/// The run takes days, so the command ends only if SIGTERM ends the run.
#[test]
fn sigterm_ends_a_simulated_run() {
    let here = directory("interrupted-term");
    let job = "[a]\nsize=1m\nrw=randread\nruntime=9d\ntime_based\ndirect=1\nnumjobs=8\n";
    fs::write(here.join("long.fio"), job).unwrap();
    let args = ["compare", "--workload", "long.fio", "--device", "sata-7200", "--runs", "1", "--no-fairness"];
    ended_by_sigterm(&here, &args);
}

/// Starts a command that reads an endless trace from standard input. Asserts that each signal ends
/// the command while it reads.
#[track_caller]
fn ended_while_reading(here: &Path, args: &[&str]) {
    let rows: String = (0..40_000).map(|i| format!("{},1,R,{},8\n", i * 1_000, i * 8)).collect();
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut command = command_in(here, args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // A pipe holds less data than this. When all data is written, the command has begun to
        // read.
        input.write_all(b"arrival_ns,pid,op,sector,nr_sectors\n").unwrap();
        input.write_all(rows.as_bytes()).unwrap();
        kill_process(Pid::from_child(&child), signal).unwrap();
        let done = child.wait_with_output().unwrap();
        drop(input);
        assert!(!done.status.success(), "{args:?}, {signal:?}");
        assert!(done.stdout.is_empty(), "{args:?}, {signal:?}");
    }
}

#[test]
fn signals_end_commands_that_read_a_trace() {
    let here = directory("interrupted-reading");
    for args in [
        &["advise", ".", "--workload", "-"][..],
        &["compare", "--workload", "-"],
        &["compare", "--on", ".", "--workload", "-"],
        &["tune", "--workload", "-", "--goal", "throughput", "--scheduler", "bfq"],
        &["trace", "info", "-"],
    ] {
        ended_while_reading(&here, args);
    }
}

#[test]
fn report_of_interrupted_reproduction_makes_the_same_page() {
    let here = directory("interrupted-reproduce");
    let args = ["reproduce", "dd", "-n", "1000000", "-j", "1", "--records", "dd.jsonl", "--report", "first.html"];
    let child = start(&here, &args);
    let lines = || fs::read_to_string(here.join("dd.jsonl")).map_or(0, |text| text.lines().count());
    wait_for(|| lines() > 8);
    let (out, err) = interrupted(child);
    assert!(err.contains("stopping after the current runs"), "{err}");
    let stopped = format!("stopped after {} of ", lines() - 1);
    assert!(out.contains(&format!("dd: {stopped}")) && out.contains(" of 1000000 runs each"), "{out}");
    assert!(!out.contains("there are no published values for these results"), "{out}");
    let (_, text) = iosched(&here, &["report", "dd.jsonl"], 0);
    assert_eq!(text, "dd.html: the report of dd.jsonl\n");
    let page = fs::read_to_string(here.join("dd.html")).unwrap();
    assert!(page.contains("Stopped after "), "{page}");
    assert_eq!(page, fs::read_to_string(here.join("first.html")).unwrap());
}

#[cfg(feature = "sweep")]
#[test]
fn interrupted_sweep_reports_the_end_and_missing_comparisons() {
    let here = directory("interrupted-sweep");
    let tasks = "[[tasks]]\npid = 1\npattern = \"random\"\ntotal = 2000\n";
    fs::write(here.join("tasks.toml"), tasks).unwrap();
    let plan = "workloads = \"tasks.toml\"\ndevices = \"sata-7200\"\nschedulers = [\"none\", \"bfq\"]\nruns = 20\nseeds = \"1..100000\"\n";
    fs::write(here.join("plan.toml"), plan).unwrap();
    let child = start(&here, &["sweep", "plan.toml", "-o", "out", "-j", "1"]);
    wait_for(|| fs::read_dir(here.join("out/runs/device=sata-7200")).is_ok_and(|runs| runs.count() > 2));
    let (out, err) = interrupted(child);
    assert!(err.contains("stopping after the current comparisons; a second Ctrl-C stops them too"), "{err}");
    assert!(out.contains("are missing; to continue, run the same command"), "{out}");
}
