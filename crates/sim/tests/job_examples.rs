//! fio's example jobs. All run, except those that need an unsupported feature.
#![expect(clippy::disallowed_methods, reason = "the examples are next to the repository")]

use std::path::{Path, PathBuf};

use iosched_disk::Profile;
use iosched_sim::{Limit, Plan, run};
use iosched_workload::fio::JobError;
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

/// Options in the examples that the simulation always refuses.
const REFUSED: [&str; 8] =
    ["verify", "zonemode", "steadystate", "ss", "random_distribution", "num_range", "flow", "filename"];

/// Engines in the examples that send no I/O to a block device in a way that iosched knows.
const REFUSED_ENGINES: [&str; 30] = [
    "cpuio",
    "dev-dax",
    "dfs",
    "dirdelete",
    "dirstat",
    "e4defrag",
    "exec",
    "falloc",
    "filecreate",
    "filestat",
    "ftruncate",
    "http",
    "ime_aio",
    "ime_psync",
    "ime_psyncv",
    "io_uring_cmd",
    "libblkio",
    "libcufile",
    "libhdfs",
    "libhipfile",
    "libiscsi",
    "libpmem",
    "libzbc",
    "mtd",
    "net",
    "null",
    "rados",
    "rbd",
    "rdma",
    "sg",
];

#[test]
fn fio_examples_run_unless_they_need_an_unsupported_feature() {
    let Some(folder) = examples() else { return };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "fio"));
    paths.sort();
    assert!(!paths.is_empty(), "the folder holds job files");
    let profile = Profile::named("sata-7200").unwrap();
    for path in paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let workload = match Workload::open(&path) {
            Ok(workload) => workload,
            Err(WorkloadError::JobFile(JobError::Unsupported(refusals))) => {
                for refusal in refusals {
                    let is_known = REFUSED.contains(&refusal.option.as_str())
                        || refusal.option == "ioengine" && REFUSED_ENGINES.contains(&refusal.value.as_str());
                    assert!(is_known, "{name}: {refusal}");
                }
                continue;
            }
            // The file needs a variable or an engine from the command line. Without the command
            // line, fio also refuses the file.
            Err(WorkloadError::JobFile(JobError::Invalid { problems, .. })) => {
                let first = problems[0].to_string();
                let is_incomplete = ["is not set in the environment", "this option is only for ioengine="]
                    .iter()
                    .any(|why| first.contains(why));
                assert!(is_incomplete, "{name}: {first}");
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let mut plan = Plan::new(&workload, &profile, "cfq".parse().unwrap());
        plan.limit = Limit { time_ns: Some(600_000_000_000), ios: Some(3_000) };
        let result = run(&plan, ()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(result.ios > 0, "{name} makes no I/O");
        assert_eq!(result.jobs.len(), workload.task_count());
    }
}
