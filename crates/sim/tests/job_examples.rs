//! fio's own example jobs, run: those that can be read and laid out make I/Os, and the others say why not.
#![expect(clippy::disallowed_methods, reason = "the examples lie beside the repository")]

use std::path::{Path, PathBuf};

use iosched_disk::Profile;
use iosched_sim::{Limit, Plan, SimError, run};
use iosched_workload::{Workload, WorkloadError};

fn examples() -> Option<PathBuf> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fio-jobs");
    let path = std::env::var_os("IOSCHED_FIO_JOBS").map_or_else(default, PathBuf::from);
    if path.is_dir() {
        return Some(path);
    }
    println!("skipped: no job files in {} (set IOSCHED_FIO_JOBS to a folder that has them)", path.display());
    None
}

#[test]
fn every_example_runs_or_says_why_not() {
    let Some(folder) = examples() else { return };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "fio"));
    paths.sort();
    let profile = Profile::named("sata-7200").unwrap();
    let (mut ran, mut refused, mut unread) = (0, 0, 0);
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let workload = match Workload::open(&path) {
            Ok(workload) => workload,
            Err(error) => {
                assert!(matches!(error, WorkloadError::JobFile(_)), "{name}: {error}");
                unread += 1;
                continue;
            }
        };
        let mut plan = Plan::new(&workload, &profile, "cfq".parse().unwrap());
        plan.limit = Limit { time_ns: Some(600_000_000_000), ios: Some(3_000) };
        match run(&plan, ()) {
            Ok(result) => {
                assert!(result.ios > 0, "{name} makes no I/O");
                assert_eq!(result.jobs.len(), workload.task_count());
                println!("{name}: {} I/Os, {} jobs, {:?}", result.ios, result.jobs.len(), result.notes);
                ran += 1;
            }
            Err(error) => {
                assert!(matches!(error, SimError::Workload(_)), "{name}: {error}");
                println!("{name}: {error}");
                refused += 1;
            }
        }
    }
    println!("{ran} ran, {refused} do not fit the device or leave something open, {unread} ask for what is not done");
    assert!(ran > refused);
}
