//! Sample records for tests of pages.

use iosched::Setting;
use iosched_disk::Profile;
use iosched_lab::{Control, Experiment, Records, execute};
use iosched_workload::{TaskSet, Workload};

/// Returns records of `tasks` under `settings` on `profiles`.
pub(crate) fn records_on(tasks: &str, settings: &[&str], runs: u32, profiles: &[&str]) -> Records {
    let mut experiment = experiment_on(tasks, settings, profiles);
    experiment.runs = runs;
    execute(&experiment, &Control::new(1), |_| Ok(())).unwrap().records
}

/// Returns the experiment of the records.
pub(crate) fn experiment_on(tasks: &str, settings: &[&str], profiles: &[&str]) -> Experiment {
    let set = TaskSet::parse("tasks.toml", tasks).unwrap();
    let settings: Vec<Setting> = settings.iter().map(|setting| setting.parse().unwrap()).collect();
    let profile = |name: &str| Profile::named(name).unwrap();
    let mut experiment = Experiment::new(Workload::Tasks(set.into()), profile(profiles[0]), settings).unwrap();
    profiles[1..].iter().for_each(|name| experiment.add_device(profile(name)).unwrap());
    experiment
}

/// Two readers and an async writer.
pub(crate) const MIXED: &str = r#"
    name = "mixed"
    end_ns = 400_000_000
    [[tasks]]
    pid = 11
    name = "reader"
    pattern = "random"
    range = [0, 100_000_000]
    think_ns = 200_000
    [[tasks]]
    pid = 12
    name = "scan"
    pattern = "seq"
    nr_sectors = 64
    start_sector = 500_000_000
    [[tasks]]
    pid = 13
    name = "flusher"
    op = "write"
    sync = false
    iodepth = 8
    pattern = "random"
    range = [700_000_000, 900_000_000]
"#;
