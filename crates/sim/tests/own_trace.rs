//! Tests that a run and the closed replay of its trace agree under every scheduler.

use std::sync::Arc;

use iosched::{Flags, Op, Time};
use iosched_disk::Profile;
use iosched_sim::{Observer, Plan, Replay, RunResult, Submitted, Taken, run};
use iosched_trace::TraceRequest;
use iosched_workload::fio::{JobFile, Jobs, NoVariables};
use iosched_workload::{Trace, Workload};

/// A trace of the bios of a run.
#[derive(Default)]
struct Recorder(Vec<(u64, Submitted, u64)>);

impl Observer for &mut Recorder {
    fn submitted(&mut self, now_ns: u64, bio: &Submitted) {
        if !bio.again {
            self.0.push((now_ns, *bio, 0));
        }
        assert_ne!(bio.taken, Taken::Held);
    }

    fn bio_done(&mut self, now_ns: u64, bio: u64) {
        let (.., done_ns) = self.0.iter_mut().rev().find(|(_, submitted, _)| submitted.bio == bio).unwrap();
        *done_ns = now_ns;
    }
}

impl Recorder {
    fn trace(self) -> Workload {
        let requests = self.0.into_iter().map(|(at_ns, bio, done_ns)| {
            Ok(TraceRequest {
                arrival: Time::from_ns(at_ns),
                pid: bio.task as u32,
                device: None,
                op: bio.op,
                flags: bio.flags | if bio.op == Op::Read { Flags::SYNC } else { Flags::empty() },
                sector: bio.sector,
                nr_sectors: bio.nr_sectors,
                latency_ns: Some(done_ns - at_ns),
                ioprio: None,
            })
        });
        Workload::Trace(Arc::new(Trace::collect("t", 1, requests).unwrap()))
    }
}

fn profile() -> Profile {
    Profile::named("sata-7200").unwrap()
}

fn result(workload: &Workload, scheduler: &str, observer: impl Observer) -> RunResult {
    let profile = profile();
    let plan = Plan { seed: 1, replay: Replay::Closed, ..Plan::new(workload, &profile, scheduler.parse().unwrap()) };
    run(&plan, observer).unwrap()
}

/// Returns a process of depth 16, and a process of depth 1 far from it.
fn jobs(deep: &str) -> Workload {
    let text = format!(
        "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/sdx\n[backup]\n{deep}\niodepth=16\n\
         [db]\nrw=randread\nbs=8k\nsize=512m\nio_size=6m\noffset=8g\n"
    );
    Workload::Jobs(Jobs::new(JobFile::parse("jobs.fio", text.as_bytes(), &NoVariables).unwrap()))
}

/// Runs the jobs, and the replay of their trace, under each scheduler. The trace is recorded under
/// `none`. Expects that finish time, mean latencies and 99th percentiles agree within `percent`.
fn expect_agreement(deep: &str, schedulers: &[&str], percent: f64) {
    let jobs = jobs(deep);
    let mut recorder = Recorder::default();
    result(&jobs, "none", &mut recorder);
    let trace = recorder.trace();
    for scheduler in schedulers {
        let (of_jobs, of_trace) = (result(&jobs, scheduler, ()), result(&trace, scheduler, ()));
        let mut values = vec![("finish", of_jobs.finished_ns as f64, of_trace.finished_ns as f64)];
        for (a, b) in of_jobs.tasks.iter().zip(&of_trace.tasks) {
            assert_eq!(a.ios, b.ios, "{deep}, {scheduler}");
            values.push(("mean", a.latency.mean_ns(), b.latency.mean_ns()));
            values.push(("p99", a.latency.quantile_ns(0.99) as f64, b.latency.quantile_ns(0.99) as f64));
        }
        for (metric, of_jobs, of_trace) in values {
            let off = (of_trace / of_jobs - 1.0).abs() * 100.0;
            assert!(off < percent, "{deep}, {scheduler}, {metric}: {of_jobs} ns for jobs, {of_trace} ns for the trace");
        }
    }
}

#[test]
fn replay_of_sequential_reads_agrees_with_the_run() {
    expect_agreement("rw=read\nbs=64k\nsize=128m", &["none", "mq-deadline", "kyber", "bfq"], 10.0);
}

#[test]
fn replay_of_random_reads_agrees_with_the_run() {
    expect_agreement("rw=randread\nbs=64k\nsize=4g\nio_size=64m", &["none", "mq-deadline", "kyber", "bfq"], 10.0);
}

#[test]
fn replay_of_random_writes_agrees_with_the_run() {
    expect_agreement("rw=randwrite\nbs=64k\nsize=4g\nio_size=64m", &["none", "mq-deadline", "kyber", "bfq"], 10.0);
}

#[test]
fn replay_of_mixed_ios_agrees_with_the_run() {
    expect_agreement("rw=randrw\nbs=64k\nsize=4g\nio_size=64m", &["none", "mq-deadline", "kyber", "bfq"], 10.0);
}
