//! Properties of a workload's I/O on which settings of a device depend.

use std::collections::BTreeSet;

use iosched::{IoClass, IoPriority, Op};
use iosched_workload::fio::{Client, Direction, Job};
use iosched_workload::{Class, TaskOp, TaskSet, Trace, Workload, fio};

use crate::knobs::Demand;

impl Demand {
    /// Demand of an unknown workload, which may make any I/O.
    pub const UNKNOWN: Self = Self {
        processes: None,
        outstanding_max: None,
        reads: true,
        writes: true,
        buffered_reads: true,
        buffered_writes: true,
        flushes: true,
        classes: false,
        levels: false,
        weights: false,
    };

    /// Returns the demand of a workload. Consecutive jobs count as if they ran together.
    #[must_use]
    pub fn of(workload: &Workload) -> Self {
        match workload {
            Workload::Tasks(set) => of_tasks(set),
            Workload::Jobs(jobs) => of_jobs(jobs),
            Workload::Trace(trace) => of_trace(trace),
            Workload::Application(spec) => Self { processes: Some(spec.task_count() as u32), ..Self::UNKNOWN },
            Workload::Several(several) => {
                Self { processes: Some(several.task_count() as u32), weights: several.parts.len() > 1, ..Self::UNKNOWN }
            }
        }
    }
}

/// Returns whether processes differ in class, and whether they differ in level.
fn differ(ioprios: impl Iterator<Item = IoPriority>) -> (bool, bool) {
    // A process without a class is served as best effort.
    let class = |ioprio: IoPriority| if ioprio.class() == IoClass::None { IoClass::BestEffort } else { ioprio.class() };
    let all: Vec<_> = ioprios.map(|ioprio| (class(ioprio), ioprio.level())).collect();
    (all.windows(2).any(|pair| pair[0].0 != pair[1].0), all.windows(2).any(|pair| pair[0].1 != pair[1].1))
}

fn of_tasks(set: &TaskSet) -> Demand {
    let working = || set.tasks.iter().filter(|task| task.has_program());
    let writes_as = |sync: bool| {
        working().any(|task| task.op == TaskOp::Write && task.is_flagged_sync() == sync)
            || set.arrivals.iter().any(|arrival| arrival.2 == TaskOp::Write && arrival.3 == sync)
    };
    let depth = |task: &iosched_workload::Task| task.iodepth.saturating_mul(task.copies.max(1));
    let changed = |class: Class, level| IoPriority::new(class.into(), level);
    let changes = set.prio_changes.iter().map(|change| changed(change.class, change.level));
    let (classes, levels) = differ(set.tasks.iter().map(iosched_workload::Task::ioprio).chain(changes));
    let weights: BTreeSet<u32> = set.cgroups.iter().map(|group| group.weight).collect();
    Demand {
        processes: u32::try_from(set.tasks.len()).ok(),
        // Arrivals do not wait for completions, so the number in flight has no limit.
        outstanding_max: set.arrivals.is_empty().then(|| working().map(depth).fold(0, u32::saturating_add)),
        reads: working().any(|task| task.op == TaskOp::Read) || set.arrivals.iter().any(|a| a.2 == TaskOp::Read),
        writes: writes_as(true) || writes_as(false),
        buffered_reads: false,
        buffered_writes: writes_as(false),
        flushes: false,
        classes,
        levels,
        weights: weights.len() > 1,
    }
}

fn of_jobs(jobs: &fio::Jobs) -> Demand {
    let all = || jobs.iter().map(|(_, job)| job);
    let does = |job: &Job, direction| job.mode.directions().contains(&direction);
    let reads = |job: &&Job| does(job, Direction::Read);
    let writes = |job: &&Job| does(job, Direction::Write);
    let depth = |job: &Job| if job.client == Client::Async { job.io_depth } else { 1 };
    let (classes, levels) = differ(all().map(|job| job.ioprio));
    let weights: BTreeSet<_> = all().map(|job| job.cgroup.as_ref().and_then(|member| member.weight)).collect();
    let direct = all().all(|job| job.direct);
    Demand {
        processes: u32::try_from(jobs.count()).ok(),
        // The kernel chooses the amount of writeback in flight.
        outstanding_max: direct.then(|| all().map(depth).fold(0, u32::saturating_add)),
        reads: all().any(|job| reads(&job)),
        writes: all().any(|job| writes(&job)),
        buffered_reads: all().any(|job| reads(&job) && !job.direct),
        buffered_writes: all().any(|job| writes(&job) && !job.direct),
        flushes: all().any(|job| job.fsync_ios > 0 || job.fdatasync_ios > 0 || job.end_fsync || job.fsync_on_close),
        classes,
        levels,
        weights: weights.len() > 1,
    }
}

fn of_trace(trace: &Trace) -> Demand {
    let mut ioprios: Vec<IoPriority> = Vec::new();
    for ioprio in trace.entries().filter_map(|entry| entry.ioprio()) {
        if !ioprios.contains(&ioprio) {
            ioprios.push(ioprio);
        }
    }
    let (classes, levels) = differ(ioprios.into_iter());
    let does = |op| trace.entries().any(|entry| entry.op() == op);
    Demand {
        processes: u32::try_from(trace.processes().len()).ok(),
        outstanding_max: None,
        reads: does(Op::Read),
        writes: does(Op::Write),
        buffered_reads: false,
        buffered_writes: false,
        flushes: does(Op::Flush),
        classes,
        levels,
        weights: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(text: &str) -> Demand {
        let text = format!("end_ns = 1000000000\n{text}");
        Demand::of(&Workload::Tasks(TaskSet::parse("t.toml", &text).unwrap().into()))
    }

    #[test]
    fn demand_knows_tasks_of_different_classes() {
        let found = tasks(
            "[[tasks]]\npid = 1\npattern = \"random\"\niodepth = 8\n[[tasks]]\npid = 2\nclass = \"idle\"\npattern = \"random\"\niodepth = 8\n",
        );
        let Demand { processes, outstanding_max, reads, writes, classes, levels, weights, .. } = found;
        assert_eq!((processes, outstanding_max, reads, writes), (Some(2), Some(16), true, false));
        assert_eq!((classes, levels, weights), (true, false, false));
    }

    #[test]
    fn a_class_that_was_never_set_is_best_effort() {
        let found = tasks(
            "[[tasks]]\npid = 1\npattern = \"seq\"\n[[tasks]]\npid = 2\nclass = \"be\"\nlevel = 4\nop = \"write\"\nsync = false\npattern = \"seq\"\n",
        );
        assert!(!found.classes && !found.levels && found.buffered_writes && found.writes);
    }
}
