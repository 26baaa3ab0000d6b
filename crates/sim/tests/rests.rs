//! Tests of rests that controllers impose on processes. A process rests after metadata I/Os that
//! could not wait, and after it delayed other processes.

use iosched_disk::Profile;
use iosched_sim::{Note, Plan, RunResult, run};
use iosched_workload::{TaskSet, Workload};

/// A device that serves one command at a time, in 1 ms.
const SLOW: &str = "kind = \"fixed\"\n[fixed]\ndepth = 32\nparallel = 1\nlat_ns = 1000000\nns_per_sector = 0\n";

/// The cgroup `scan` reads metadata, which must not wait. With a hundredth of the weight of `db`,
/// it always lacks budget.
const METADATA: &str = r#"
cgroups = [{ name = "db" }, { name = "scan" }]

[[tasks]]
pid = 1
cgroup = "db"
iodepth = 16
pattern = "random"
range = [0, 1000000]
nr_sectors = 8
total = 3000

[[tasks]]
pid = 2
cgroup = "scan"
meta = true
pattern = "random"
range = [1000000, 2000000]
nr_sectors = 8
total = 400
"#;

fn outcome(tasks: &str, setting: &str) -> RunResult {
    let workload = Workload::Tasks(TaskSet::parse("tasks.toml", tasks).unwrap().into());
    let profile = Profile::parse("slow", SLOW).unwrap();
    run(&Plan::new(&workload, &profile, setting.parse().unwrap()), ()).unwrap()
}

/// Returns the cgroup, the number of rests and their total time, ns.
fn rests(result: &RunResult) -> Vec<(&str, u64, u64)> {
    let rest = |note| match note {
        &Note::Rested { ref cgroup, rests, rest_ns } => Some((cgroup.as_str(), rests, rest_ns)),
        _ => None,
    };
    result.notes.iter().filter_map(rest).collect()
}

const WEIGHTS: &str = "none:io.cost.qos=enable=1/min=100/max=100,io.cost.model=rbps=4096000/rseqiops=1000/rrandiops=1000,\
                       io.weight=db:10000+scan:100";

#[test]
fn metadata_ios_over_budget_delay_the_process_later() {
    let result = outcome(METADATA, WEIGHTS);
    let rests = rests(&result);
    assert_eq!(rests.len(), 1, "{rests:?}");
    let (cgroup, times, rest_ns) = rests[0];
    assert_eq!(cgroup, "scan");
    assert!(times > 1 && rest_ns > 250_000 * times, "{times} rests of {rest_ns} ns in all");
    let free = outcome(METADATA, "none");
    let ended = |result: &RunResult| result.tasks[1].last_completion_ns.unwrap();
    assert!(ended(&result) > ended(&free).max(rest_ns), "{} after {}", ended(&result), ended(&free));
    assert_eq!(result.tasks[1].ios, 400, "all I/Os complete");
}

#[test]
fn processes_do_not_rest_without_controller_or_debt() {
    assert_eq!(rests(&outcome(METADATA, "none")), []);
    assert_eq!(rests(&outcome(&METADATA.replace("meta = true", "meta = false"), WEIGHTS)), []);
}
