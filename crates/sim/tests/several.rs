//! Tests of workloads of several units in one run.

use std::sync::Arc;

use iosched::{IoClass, IoPriority, Registry, Setting};
use iosched_disk::Profile;
use iosched_sim::{Limit, Note, Plan, Replay, RunResult, run};
use iosched_trace::{ReadOptions, TraceReader};
use iosched_workload::fio::{JobFile, Jobs, NoVariables};
use iosched_workload::{Part, Several, TaskSet, Trace, Workload, app};

const SECOND: u64 = 1_000_000_000;

fn device() -> Profile {
    let text = "kind = \"fixed\"\n[fixed]\ndepth = 32\nparallel = 1\nlat_ns = 100000\nns_per_sector = 0\n";
    Profile::parse("fixed", text).unwrap()
}

fn jobs(text: &str) -> Workload {
    Workload::Jobs(Jobs::new(JobFile::parse("j.fio", text.as_bytes(), &NoVariables).unwrap()))
}

fn reader(depth: u32) -> Workload {
    jobs(&format!("[r]\nrw=randread\nsize=64m\nioengine=libaio\niodepth={depth}\ndirect=1\ntime_based\nruntime=60\n"))
}

fn tasks(text: &str) -> Workload {
    Workload::Tasks(TaskSet::parse("t.toml", text).unwrap().into())
}

fn sequential() -> Workload {
    tasks("[[tasks]]\npid = 7\nname = \"scan\"\npattern = \"seq\"\niodepth = 4\ntotal = 1000000000\n")
}

fn trace(count: u64) -> Workload {
    let mut text = String::from("arrival_ns,pid,op,sync,sector,nr_sectors,latency_ns\n");
    for i in 0..count {
        text += &format!("{},{},R,1,{},8,50000\n", i * 1_000_000, 10 + i % 2, (i * 7_919_993) % 900_000);
    }
    let reader = TraceReader::from_reader(std::io::Cursor::new(text), "reads.csv", &ReadOptions::default()).unwrap();
    Workload::Trace(Arc::new(Trace::read("reads.csv", reader).unwrap()))
}

fn several(parts: Vec<Part>) -> Workload {
    Workload::Several(Box::new(Several { name: "units".into(), parts }))
}

fn run_for(workload: &Workload, setting: &str, seconds: u64) -> RunResult {
    let (device, setting) = (device(), Setting::parse(setting, &Registry::linux()).unwrap());
    let limit = Limit { time_ns: Some(seconds * SECOND), ios: None };
    run(&Plan { limit, seed: 3, ..Plan::new(workload, &device, setting) }, ()).unwrap()
}

/// Returns the I/Os of each part.
fn ios(workload: &Workload, result: &RunResult) -> Vec<u64> {
    let Workload::Several(several) = workload else { panic!("the workload has no parts") };
    several.tasks().into_iter().map(|tasks| result.tasks[tasks].iter().map(|task| task.ios).sum()).collect()
}

#[test]
fn single_part_gives_the_result_of_its_workload() {
    for workload in [sequential(), trace(2_000)] {
        let alone = run_for(&workload, "none", 2);
        let part = run_for(&several(vec![Part::new("a", workload)]), "none", 2);
        assert_eq!((alone.ios, alone.bytes_read, alone.finished_ns), (part.ios, part.bytes_read, part.finished_ns));
        assert_eq!(alone.latency, part.latency);
    }
}

#[test]
fn workloads_of_every_kind_run_together() {
    let mut replayed = Part::new("replayed", trace(10_000));
    replayed.replay = Some(Replay::Closed);
    let parts =
        vec![Part::new("jobs", reader(8)), Part::new("scan", sequential()), replayed, Part::new("open", trace(10_000))];
    let workload = several(parts);
    for setting in ["none", "mq-deadline", "kyber", "bfq", "cfq", "adios"] {
        let result = run_for(&workload, setting, 3);
        let ios = ios(&workload, &result);
        assert!(ios.iter().all(|&ios| ios > 100), "{setting}: {ios:?}");
        assert_eq!(ios.iter().sum::<u64>(), result.ios, "{setting}");
        let names: Vec<&str> = result.tasks.iter().map(|task| task.cgroup.as_str()).collect();
        assert_eq!(names, ["jobs", "scan", "replayed", "replayed", "open", "open"]);
        assert_eq!(result, run_for(&workload, setting, 3), "{setting}: the same plan gives the same result");
    }
}

#[test]
fn weights_of_the_parts_divide_the_device() {
    let part = |name: &str, path: &str, weight| Part {
        cgroup: path.into(),
        weight: Some(weight),
        ..Part::new(name, reader(8))
    };
    let share = |parts| {
        let workload = several(parts);
        let ios = ios(&workload, &run_for(&workload, "bfq:low_latency=0", 10));
        let all: u64 = ios.iter().sum();
        ios.into_iter().map(|ios| ios as f64 / all as f64).collect::<Vec<_>>()
    };
    let flat = share(vec![part("a", "a", 300), part("b", "b", 100)]);
    assert!((flat[0] - 0.75).abs() < 0.04, "{flat:?}");
    // Each slice has the default weight 100. The units of one slice therefore share one half of the
    // device.
    let nested = share(vec![part("a", "x.slice/a", 300), part("b", "x.slice/b", 100), part("c", "y.slice/c", 500)]);
    let wanted = [0.375, 0.125, 0.5];
    assert!(nested.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 0.05), "{nested:?}");
}

#[test]
fn io_max_of_a_part_limits_its_ios() {
    let workload = several(vec![Part::new("db", reader(1)), Part::new("backup", reader(32))]);
    let free = ios(&workload, &run_for(&workload, "none", 4));
    let capped = ios(&workload, &run_for(&workload, "none:io.max=backup:riops=500", 4));
    assert!((1_900..=2_150).contains(&capped[1]), "{capped:?}");
    assert!(capped[0] > 5 * free[0], "{free:?} {capped:?}");
}

#[test]
fn priority_of_a_part_applies_to_tasks_without_a_priority() {
    let with = |class| {
        let mut backup = Part::new("backup", trace(100_000));
        backup.priority = Some(IoPriority::new(class, 4));
        let workload = several(vec![backup]);
        run_for(&workload, "bfq", 1).tasks[0].ioprio.clone()
    };
    assert_eq!([with(IoClass::Idle), with(IoClass::BestEffort)], ["idle", "be/4"]);
    let real_time = jobs("[r]\nrw=randread\nsize=64m\nprioclass=1\nprio=2\ndirect=1\ntime_based\nruntime=60\n");
    let part = Part { priority: Some(IoPriority::new(IoClass::Idle, 7)), ..Part::new("a", real_time) };
    assert_eq!(run_for(&several(vec![part]), "bfq", 1).tasks[0].ioprio, "rt/2");
}

#[test]
fn the_run_ends_with_the_first_part() {
    let workload = several(vec![Part::new("short", trace(500)), Part::new("long", reader(1))]);
    let result = run_for(&workload, "none", 60);
    assert!((SECOND * 49 / 100..SECOND * 6 / 10).contains(&result.finished_ns), "{}", result.finished_ns);
    assert_eq!(ios(&workload, &result)[0], 500);
    assert!(result.notes.iter().any(|note| matches!(note, Note::Limited { .. })));
}

#[test]
fn ios_past_the_device_end_wrap_to_its_start() {
    let part = |first_sector| Part { first_sector, ..Part::new("scan", sequential()) };
    // Positions past the end of the device wrap to its start.
    let capacity = device().card().capacity_sectors;
    let result = run_for(&several(vec![part(capacity - 8), Part::new("other", reader(1))]), "none", 1);
    assert!(result.tasks[0].ios > 100 && !result.notes.iter().any(|note| matches!(note, Note::PastEnd { .. })));
}

#[test]
fn program_together_with_other_parts_is_an_error() {
    let program = Workload::Application(Box::new(app::Spec::parse("dd if=/dev/zero of=a bs=1M count=1").unwrap()));
    let workload = several(vec![Part::new("db", reader(1)), Part::new("copy", program)]);
    let device = device();
    let error = run(&Plan::new(&workload, &device, Setting::defaults("none")), ()).unwrap_err().to_string();
    assert!(
        error.starts_with("copy: in simulation, a program cannot run together with") && error.contains("fio job"),
        "{error}"
    );
    assert_eq!(
        iosched_sim::check(&Plan::new(&workload, &device, Setting::defaults("none"))).unwrap_err().to_string(),
        error
    );
}
