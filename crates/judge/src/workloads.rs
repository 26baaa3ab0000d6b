//! The workloads and devices of a report card.

use iosched_disk::Profile;
use iosched_workload::{TaskSet, WorkloadError};

/// The modelled devices: two rotating disks, an array behind a controller, three SSDs.
pub const DEVICES: [&str; 6] = ["sata-7200", "scsi-15k", "san-lun", "sata-ssd", "nvme", "nvme-980pro"];

/// A workload of the report card.
#[derive(Clone, Copy, Debug)]
pub struct JudgedWorkload {
    /// Name of the workload.
    pub name: &'static str,
    /// The metric that matters, in the notation of goals.
    pub goal: &'static str,
    /// The tasks, as a task file.
    pub text: &'static str,
}

macro_rules! workload {
    ($name:literal, $goal:literal) => {
        JudgedWorkload { name: $name, goal: $goal, text: include_str!(concat!("../workloads/", $name, ".toml")) }
    };
}

/// The workloads, in the order of the report card.
pub const WORKLOADS: [JudgedWorkload; 12] = [
    workload!("random-readers", "throughput"),
    workload!("sequential-readers", "throughput"),
    workload!("deep-queue", "throughput"),
    workload!("mixed", "p99(sync)"),
    workload!("many-processes", "p99(sync)"),
    workload!("database-and-backup", "p99(database)"),
    workload!("reader-and-writers", "p99(reader)"),
    workload!("log-and-readers", "p99(log)"),
    workload!("discards", "p99(reader)"),
    workload!("greedy-neighbour", "p99(modest)"),
    workload!("priorities", "p99(urgent)"),
    workload!("idle-backup", "p99(database)"),
];

impl JudgedWorkload {
    /// Returns the tasks of the workload.
    ///
    /// # Errors
    /// The text is not a task file.
    pub fn tasks(&self) -> Result<TaskSet, WorkloadError> {
        TaskSet::parse(self.name, self.text)
    }
}

/// Returns the length of a run on a device, ns. A run on a rotating disk is longer, because the
/// disk needs more time for the same number of requests.
pub(crate) fn run_ns(profile: &Profile) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    match (profile.card().rotational, profile.card().depth > 32) {
        (true, _) => 10 * SECOND_NS,
        (false, false) => 2 * SECOND_NS,
        (false, true) => SECOND_NS / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_is_valid_and_its_goal_names_a_task() {
        for workload in &WORKLOADS {
            let tasks = workload.tasks().unwrap();
            assert!(!tasks.desc.is_empty(), "{}", workload.name);
            let goal: iosched_lab::goal::Goal = workload.goal.parse().unwrap();
            let named = workload.goal.split_once('(').map(|(_, name)| name.trim_end_matches(')'));
            let is_known = |name: &str| name == "sync" || tasks.tasks.iter().any(|task| task.name == name);
            assert!(named.is_none_or(is_known), "{}: {:?}", workload.name, goal);
        }
    }

    #[test]
    fn every_device_has_a_profile() {
        let defaults: Vec<_> =
            DEVICES.iter().map(|name| Profile::named(name).unwrap().card().default_scheduler()).collect();
        assert_eq!(defaults[0], "mq-deadline");
        assert_eq!(defaults[5], "none");
    }
}
