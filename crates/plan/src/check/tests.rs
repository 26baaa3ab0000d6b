//! Tests of checks on made-up observations, and on a machine of files.

use std::fs;

use iosched::{IoClass, Registry, Setting};
use iosched_kernel::block::{Direction, Stat};
use iosched_kernel::observe::{DiskSample, GroupIo, GroupSample, Operation, Owner, Series};
use iosched_kernel::{BlockDevice, Roots};
use iosched_numbers::Histogram;

use super::*;
use crate::plan::{GoalOutcome, UnitPlan};

fn unit(name: &str, target: &str, goals: &[&str]) -> UnitPlan {
    let goal = |text: &&str| GoalOutcome {
        wanted: WantedGoal { goal: text.parse().unwrap(), hard: true },
        predicted: Interval { value: 1.0, from: 1.0, to: 1.0 },
        outcome: Outcome::Met,
    };
    UnitPlan {
        name: name.to_owned(),
        target: target.parse().unwrap(),
        cgroup: name.to_owned(),
        priority: None,
        goals: goals.iter().map(goal).collect(),
    }
}

fn plan(setting: &str, units: Vec<UnitPlan>) -> Plan {
    let setting = Setting::parse(setting, &Registry::linux()).unwrap();
    let (version, profile) = ("0.1.0".to_owned(), "ssd-sata".to_owned());
    Plan { version, device: Some("/dev/sda".to_owned()), profile, setting, units }
}

/// Returns I/Os of a cgroup with latencies from half of `ms` to `ms`. An I/O spends a quarter of
/// its latency in the scheduler.
fn series(cgroup: &str, operation: Operation, ios: u64, bytes: u64, ms: f64) -> Series {
    let mut latency = Histogram::default();
    (0..ios).for_each(|i| latency.record((ms * 1e6 * (0.5 + 0.5 * (i + 1) as f64 / ios as f64)) as u64));
    let owner = Owner { cgroup: Some(cgroup.to_owned()), process: Some("p".to_owned()) };
    let (disk, class, waited_ns) = ("sda".to_owned(), IoClass::None, latency.sum_ns() / 4);
    Series { disk, operation, class, owner, ios, bytes, issued: ios, waited_ns, latency }
}

fn observed(series: Vec<Series>) -> Observed {
    let bytes = series.iter().map(|series| series.bytes).sum();
    let reads = Direction { requests: 1, bytes, ..Direction::default() };
    let stat = Stat { reads, busy_ms: 10_000, queue_ms: 40_000, ..Stat::default() };
    let disk = DiskSample {
        name: "sda".to_owned(),
        scheduler: Some("none".to_owned()),
        has_requests: true,
        driver_depth: Some(32),
        stat: Some(stat),
    };
    let sample = Sample { seconds: 10.0, disks: vec![disk], series, sampled: 1.0, ..Sample::default() };
    Observed { sample, observes_fsync: true, ..Observed::default() }
}

const DB: &str = "system.slice/db.service";

/// Returns the outcome and the reason of the first goal.
fn first(plan: &Plan, observed: &Observed) -> (Outcome, String) {
    let report = check(plan, observed);
    (report.goals[0].outcome, report.goals[0].reason.clone().unwrap_or_default())
}

#[test]
fn goals_are_met_missed_or_undecided() {
    let series = || series(DB, Operation::Read, 1_000, 4_096_000, 8.0);
    for (goal, outcome) in [
        ("p99(read) < 9 ms", Outcome::Met),
        ("p99(read) < 5 ms", Outcome::Missed),
        ("p99(read) < 7.96 ms", Outcome::CannotTell),
        ("mean(read) < 6.5 ms", Outcome::Met),
        ("mean(all) < 5.5 ms", Outcome::Missed),
        ("worst(read) < 8.1 ms", Outcome::Met),
        ("p99(write) < 5 ms", Outcome::CannotTell),
        ("p99(fsync) < 5 ms", Outcome::CannotTell),
        ("iops >= 90", Outcome::Met),
        ("iops >= 150", Outcome::Missed),
        ("throughput <= 1 MB/s", Outcome::Met),
        ("limit 50 IOPS", Outcome::Missed),
        ("reservation 90 IOPS", Outcome::Met),
    ] {
        let plan = plan("none", vec![unit("db", "db.service", &[goal])]);
        assert_eq!(first(&plan, &observed(vec![series()])).0, outcome, "{goal}");
    }
}

#[test]
fn few_ios_do_not_decide_a_quantile() {
    let plan = plan("none", vec![unit("db", DB, &["p99(read) < 9 ms"])]);
    // The longest of 100 I/Os may be shorter than the 99 % quantile.
    let (outcome, reason) = first(&plan, &observed(vec![series(DB, Operation::Read, 100, 1, 8.0)]));
    assert_eq!(outcome, Outcome::CannotTell);
    assert!(reason.contains("observe for longer"), "{reason}");
    let (outcome, reason) = first(&plan, &observed(vec![series(DB, Operation::Read, 5, 1, 80.0)]));
    assert_eq!(outcome, Outcome::CannotTell);
    assert!(reason.contains("only 5 I/Os of this kind"), "{reason}");
}

#[test]
fn reason_of_a_missed_latency_names_the_other_unit() {
    let units = vec![unit("db", DB, &["p99(read) < 5 ms"]), unit("backup", "backup.slice", &[])];
    let plan = plan("none", units);
    let all = vec![
        series(DB, Operation::Read, 1_000, 4_096_000, 8.0),
        series("backup.slice/a.service", Operation::Read, 1_000, 40_960_000, 8.0),
    ];
    let (outcome, reason) = first(&plan, &observed(all));
    assert_eq!(outcome, Outcome::Missed);
    for part in
        ["spent 75 % of their latency in the device", "backup got 91 % of the device's bytes", "busy all the time"]
    {
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn reason_of_a_missed_rate_names_its_limit() {
    let plan = plan("none", vec![unit("db", DB, &["throughput >= 50 MB/s"])]);
    let mut observed = observed(vec![series(DB, Operation::Write, 1_000, 99_000_000, 8.0)]);
    let (_, reason) = first(&plan, &observed);
    assert!(!reason.contains("io.max") && reason.contains("busy all the time"), "{reason}");
    observed.controls = vec![("cgroup/system.slice/io.max".to_owned(), "rbps=max wbps=10000000".to_owned())];
    let (outcome, reason) = first(&plan, &observed);
    assert_eq!(outcome, Outcome::Missed);
    assert!(reason.contains("io.max of system.slice limits the unit (wbps=10000000"), "{reason}");
}

#[test]
fn reason_for_an_idle_unit_says_it_needed_no_higher_rate() {
    let idle = || observed(vec![series(DB, Operation::Read, 100, 1_000, 1.0)]);
    let plan_with = |goal| plan("none", vec![unit("db", DB, &[goal])]);
    let (outcome, reason) = first(&plan_with("reservation 500 IOPS"), &idle());
    assert_eq!(outcome, Outcome::CannotTell);
    assert!(reason.contains("did not need a higher rate"), "{reason}");
    let (outcome, reason) = first(&plan_with("iops >= 500"), &idle());
    assert_eq!(outcome, Outcome::Missed);
    assert!(reason.contains("did not need a higher rate"), "{reason}");
}

#[test]
fn shares_count_while_all_units_have_requests() {
    let units = vec![unit("a", "a.slice", &["share 2"]), unit("b", "b.slice", &["share 1"])];
    let plan = plan("none", units);
    let of = |a, b, ms| {
        let all =
            vec![series("a.slice", Operation::Read, 1_000, a, ms), series("b.slice", Operation::Read, 1_000, b, 20.0)];
        check(&plan, &observed(all))
    };
    let fair = of(2_000_000, 1_000_000, 20.0);
    assert_eq!((fair.goals[0].outcome, fair.goals[1].outcome), (Outcome::Met, Outcome::Met));
    assert_eq!(fair.goals[0].observed.unwrap().value, 2.0);
    let unfair = of(1_000_000, 1_000_000, 20.0);
    assert_eq!((unfair.goals[0].outcome, unfair.goals[1].outcome), (Outcome::Missed, Outcome::Met));
    let idle = of(1_000_000, 1_000_000, 0.1);
    assert_eq!(idle.goals[0].outcome, Outcome::CannotTell);
    assert!(idle.goals[1].reason.as_ref().unwrap().starts_with("a had only 0.0 requests in flight"), "{idle:?}");
}

#[test]
fn order_compares_mean_latencies() {
    let plan = plan("none", vec![unit("db", DB, &["before backup"]), unit("backup", "backup.slice", &[])]);
    let of = |ms| {
        let all =
            vec![series(DB, Operation::Read, 1_000, 1, ms), series("backup.slice", Operation::Read, 1_000, 1, 8.0)];
        first(&plan, &observed(all)).0
    };
    assert_eq!((of(4.0), of(12.0)), (Outcome::Met, Outcome::Missed));
}

#[test]
fn worst_latency_of_a_partial_sample_is_undecided() {
    let plan = plan("none", vec![unit("db", DB, &["worst(read) < 9 ms"])]);
    let mut sampled = observed(vec![series(DB, Operation::Read, 1_000, 1, 8.0)]);
    sampled.sample.sampled = 0.1;
    let (outcome, reason) = first(&plan, &sampled);
    assert_eq!(outcome, Outcome::CannotTell);
    assert!(reason.contains("only 10 % of the time"), "{reason}");
}

#[test]
fn units_are_found_by_their_cgroup() {
    let owner = |cgroup: &str| Owner { cgroup: Some(cgroup.to_owned()), process: Some("fio".to_owned()) };
    for (target, cgroup, is_of) in [
        ("db.service", DB, true),
        ("system.slice", DB, true),
        (DB, "system.slice/db.service/worker", true),
        (DB, "system.slice/db.service2", false),
        ("libvirt:web-1", "machine.slice/machine-qemu\\x2d3\\x2dweb\\x2d1.scope/libvirt", true),
        ("libvirt:web", "machine.slice/machine-qemu\\x2d3\\x2dweb\\x2d1.scope", false),
        ("proxmox:101", "qemu.slice/101.scope", true),
        ("proxmox:10", "lxc/101", false),
        ("kubernetes:burstable", "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice", true),
        ("kubernetes:guaranteed", "kubepods.slice/kubepods-pod7.slice/cri", true),
        ("kubernetes:guaranteed", "kubepods.slice/kubepods-besteffort.slice", false),
        ("process:fio", "/", true),
        ("export:a", "/", false),
    ] {
        assert_eq!(unit::is_of(&target.parse().unwrap(), &owner(cgroup)), is_of, "{target} {cgroup}");
    }
    let plan = plan("none", vec![unit("a", "export:a", &["iops >= 5"])]);
    assert!(first(&plan, &observed(Vec::new())).1.contains("the metrics of the served disk"));
}

#[test]
fn io_stat_decides_rates_without_trace_events() {
    let plan = plan("none", vec![unit("db", DB, &["throughput >= 5 MB/s", "p99(read) < 5 ms"])]);
    let mut without = observed(Vec::new());
    without.without_latencies = Some("tracefs is not mounted".to_owned());
    let io = GroupIo { read_bytes: 60_000_000, reads: 100, ..GroupIo::default() };
    without.sample.groups = vec![GroupSample { cgroup: DB.to_owned(), disk: "sda".to_owned(), io }];
    let report = check(&plan, &without);
    assert_eq!((report.goals[0].outcome, report.goals[1].outcome), (Outcome::Met, Outcome::CannotTell));
    assert!(report.goals[1].reason.as_ref().unwrap().contains("tracefs is not mounted"));
}

#[test]
fn values_that_differ_from_the_plan_are_found() {
    let here = tempfile::tempdir().unwrap();
    let file = |path: &str, text: &str| {
        let path = here.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for directory in ["sys/block/sda", "sys/class/block/sda"] {
        file(&format!("{directory}/dev"), "8:0\n");
        file(&format!("{directory}/queue/scheduler"), "none [mq-deadline]\n");
        file(&format!("{directory}/queue/iosched/read_expire"), "500\n");
        file(&format!("{directory}/queue/wbt_lat_usec"), "2000\n");
    }
    file("sys/fs/cgroup/cgroup.controllers", "io\n");
    file("sys/fs/cgroup/backup.slice/cgroup.controllers", "io\n");
    file("sys/fs/cgroup/backup.slice/io.max", "8:0 rbps=max wbps=50000000 riops=max wiops=max\n");
    let device = BlockDevice::named(&Roots::at(here.path()), "sda").unwrap();
    let with = |setting: &str| {
        let plan = plan(setting, vec![unit("backup", "backup.slice", &[])]);
        deviations(&plan, &device).into_iter().map(|deviation| (deviation.name, deviation.found)).collect::<Vec<_>>()
    };
    assert_eq!(with("mq-deadline:read_expire=500,wbt_lat_usec=2000,io.max=backup:wbps=50000000"), []);
    let other = with("mq-deadline:read_expire=100,wbt_lat_usec=0,io.max=backup:wbps=20000000");
    let names: Vec<&str> = other.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["iosched/read_expire", "wbt_lat_usec", "cgroup/backup.slice/io.max"]);
    assert_eq!(with("none"), [("scheduler".to_owned(), Some("mq-deadline".to_owned()))]);
    assert!(
        !check(
            &plan("none", Vec::new()),
            &Observed { deviations: deviations(&plan("none", Vec::new()), &device), ..Observed::default() }
        )
        .holds()
    );
}

#[test]
fn requests_of_another_class_deviate_from_the_plan() {
    let of = |priority: &str, class| {
        let mut backup = unit("backup", "backup.slice", &[]);
        backup.priority = Some(priority.parse().unwrap());
        let series = Series { class, ..series("backup.slice", Operation::Read, 100, 1, 1.0) };
        check(&plan("none", vec![backup]), &observed(vec![series])).deviations
    };
    assert_eq!(of("idle", IoClass::Idle), []);
    assert_eq!(of("be/4", IoClass::None), []);
    let found = of("idle", IoClass::BestEffort);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].found.as_deref(), Some("be for 100 requests"));
}
