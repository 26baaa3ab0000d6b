//! Changes the load of a workload: repeats it without end, and scales it.

use iosched_workload::fio::{JobFile, Jobs};
use iosched_workload::{Replay, Task, Think, Workload};

/// Duration of an endless job, ns. It is longer than any run.
const ENDLESS_NS: u64 = 86_400_000_000_000;

/// Returns a workload whose closed loops continue until the run ends, so that each unit has its
/// usual load for the whole run. Two kinds of workloads do not change. A trace ends with its last
/// I/O. Jobs that wait for each other end as usual.
pub(crate) fn endless(workload: &Workload) -> Workload {
    match workload {
        Workload::Tasks(set) => {
            let mut set = set.clone();
            set.end_ns = None;
            for task in set.tasks.iter_mut().filter(|task| task.phases.is_empty() && !task.exit) {
                task.total = None;
            }
            Workload::Tasks(set)
        }
        Workload::Jobs(jobs) => {
            let mut file = jobs.file().clone();
            let is_chained = file.jobs.iter().any(|job| job.stonewall || job.wait_for.is_some());
            for job in file.jobs.iter_mut().filter(|job| !is_chained && job.replay.is_none()) {
                (job.time_based, job.runtime_ns, job.ramp_time_ns) = (true, Some(ENDLESS_NS), 0);
            }
            Workload::Jobs(Jobs::new(file))
        }
        other => other.clone(),
    }
}

/// Returns a workload with `scale` times the load: arrivals come faster, think times and pauses are
/// shorter, and the depth of asynchronous I/O is larger. A loop that waits for each I/O and never
/// pauses does not change, because it is always busy. The [`replay`] scales the load of a trace.
pub(crate) fn scaled(workload: &Workload, scale: f64) -> Workload {
    if (scale - 1.0).abs() < 1e-9 {
        return workload.clone();
    }
    match workload {
        Workload::Tasks(set) => {
            let mut set = set.clone();
            set.tasks.iter_mut().for_each(|task| scale_task(task, scale));
            for arrival in &mut set.arrivals {
                arrival.0 = divided(arrival.0, scale);
            }
            Workload::Tasks(set)
        }
        Workload::Jobs(jobs) => Workload::Jobs(Jobs::new(scaled_jobs(jobs.file(), scale))),
        other => other.clone(),
    }
}

/// Returns the replay mode of a unit's workload at `scale` times its load.
pub(crate) fn replay(workload: &Workload, scale: f64) -> Option<Replay> {
    matches!(workload, Workload::Trace(_)).then_some(Replay::Open { speed: scale })
}

fn divided(ns: u64, scale: f64) -> u64 {
    (ns as f64 / scale).round() as u64
}

/// Scales a depth. A depth of 1 stays, because the process waits for each I/O.
fn depth(ios: u32, scale: f64) -> u32 {
    if ios <= 1 { ios } else { ((f64::from(ios) * scale).round() as u32).max(1) }
}

fn scale_task(task: &mut Task, scale: f64) {
    task.iodepth = depth(task.iodepth, scale);
    task.batch = task.batch.min(task.iodepth.max(1));
    let shorter = |think: Think| match think {
        Think::Fixed(ns) => Think::Fixed(divided(ns, scale)),
        Think::Range([from, to]) => Think::Range([divided(from, scale), divided(to, scale)]),
    };
    task.think_ns = task.think_ns.map(shorter);
    for phase in &mut task.phases {
        phase.think_ns = phase.think_ns.map(shorter);
    }
}

fn scaled_jobs(file: &JobFile, scale: f64) -> JobFile {
    let mut file = file.clone();
    for job in &mut file.jobs {
        job.io_depth = depth(job.io_depth, scale);
        job.batch_submit = job.batch_submit.min(job.io_depth.max(1));
        job.batch_complete_min = job.batch_complete_min.min(job.io_depth.max(1));
        job.batch_complete_max = job.batch_complete_max.min(job.io_depth.max(1));
        job.io_depth_low = job.io_depth_low.min(job.io_depth.max(1));
        job.think_time.pause_ns = divided(job.think_time.pause_ns, scale);
        job.think_time.spin_ns = divided(job.think_time.spin_ns, scale);
        for rates in [&mut job.rate_bytes_per_s, &mut job.rate_iops] {
            for rate in [&mut rates.read, &mut rates.write, &mut rates.trim].into_iter().flatten() {
                *rate = ((*rate as f64 * scale).round() as u64).max(1);
            }
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use iosched_workload::TaskSet;
    use iosched_workload::fio::NoVariables;

    use super::*;

    fn jobs(text: &str) -> Workload {
        Workload::Jobs(Jobs::new(JobFile::parse("j.fio", text.as_bytes(), &NoVariables).unwrap()))
    }

    fn only_job(workload: &Workload) -> iosched_workload::fio::Job {
        let Workload::Jobs(jobs) = workload else { panic!("the workload is not a job file") };
        jobs.file().jobs[0].clone()
    }

    #[test]
    fn double_load_doubles_depth_and_rate_and_halves_pauses() {
        let text = "[a]\nrw=randread\nsize=1g\nioengine=libaio\niodepth=8\nrate_iops=100\nthinktime=1000\n";
        let job = only_job(&scaled(&jobs(text), 2.0));
        assert_eq!((job.io_depth, job.rate_iops.read, job.think_time.pause_ns), (16, Some(200), 500_000));
        let text = "[[tasks]]\npid = 1\npattern = \"random\"\nthink_ns = 1000\niodepth = 10\ntotal = 5\n";
        let tasks = Workload::Tasks(TaskSet::parse("t.toml", text).unwrap().into());
        let Workload::Tasks(set) = scaled(&endless(&tasks), 0.7) else { panic!("the workload is not a set of tasks") };
        assert_eq!((set.tasks[0].iodepth, set.tasks[0].think_ns), (7, Some(Think::Fixed(1429))));
        assert_eq!(set.tasks[0].total(), None);
    }

    #[test]
    fn a_process_that_waits_for_each_io_keeps_its_depth() {
        let job = only_job(&scaled(&jobs("[a]\nrw=randread\nsize=1g\n"), 1.3));
        assert_eq!(job.io_depth, 1);
    }

    #[test]
    fn endless_extends_jobs_that_do_not_wait_for_each_other() {
        let job = only_job(&endless(&jobs("[a]\nrw=randread\nsize=1g\nruntime=3\n")));
        assert!(job.time_based && job.runtime_ns == Some(ENDLESS_NS));
        let chained = jobs("[a]\nrw=randread\nsize=1g\nruntime=3\n[b]\nstonewall\nrw=read\nsize=1g\n");
        assert_eq!(only_job(&endless(&chained)).runtime_ns, Some(3_000_000_000));
    }
}
