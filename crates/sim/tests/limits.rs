//! Tests that a time limit holds for every workload and under every setting.

use std::sync::Arc;

use iosched_disk::Profile;
use iosched_machine::description::Machine;
use iosched_sim::{Completed, Limit, Note, Observer, Plan, Replay, RunResult, run};
use iosched_trace::{ReadOptions, TraceReader};
use iosched_workload::fio::{JobFile, Jobs, NoVariables};
use iosched_workload::{TaskSet, Trace, Workload};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;
/// Time of one command of the device, ns.
const LATENCY_NS: u64 = 100_000;
/// Time that a scheduler may add after the limit, ns, because it idles for a process or waits until
/// a request is old enough.
const IDLING_NS: u64 = 100_000_000;

const SETTINGS: [&str; 8] =
    ["none", "mq-deadline", "kyber", "bfq", "noop", "deadline", "cfq", "mq-deadline:nr_requests=4"];

/// Returns a device of queue depth `depth` that serves `parallel` commands at a time.
fn device(depth: u32, parallel: u32) -> Profile {
    let text = format!(
        "kind = \"fixed\"\n[fixed]\ndepth = {depth}\nparallel = {parallel}\nlat_ns = {LATENCY_NS}\nns_per_sector = 0\n"
    );
    Profile::parse("fixed", &text).unwrap()
}

/// Latest time at which an I/O was requested, ns.
#[derive(Default)]
struct LastAsked(u64);

impl Observer for LastAsked {
    fn completed(&mut self, now_ns: u64, io: &Completed) {
        self.0 = self.0.max(now_ns - io.latency_ns);
    }
}

fn jobs(text: &str) -> Workload {
    Workload::Jobs(Jobs::new(JobFile::parse("j.fio", text.as_bytes(), &NoVariables).unwrap()))
}

fn tasks(text: &str) -> Workload {
    Workload::Tasks(TaskSet::parse("t.toml", text).unwrap().into())
}

/// Returns `count` reads of two processes, one every `gap_ns`.
fn trace(count: u64, gap_ns: u64) -> Workload {
    let mut text = String::from("arrival_ns,pid,op,sync,sector,nr_sectors,latency_ns\n");
    for i in 0..count {
        text += &format!("{},{},R,1,{},8,50000\n", i * gap_ns, 10 + i % 2, (i * 7_919_993) % 900_000);
    }
    let reader = TraceReader::from_reader(std::io::Cursor::new(text), "reads.csv", &ReadOptions::default()).unwrap();
    Workload::Trace(Arc::new(Trace::read("reads.csv", reader).unwrap()))
}

/// Number of kinds of workloads.
const KINDS: u8 = 8;

/// Returns a workload of the kind `kind` that takes more than a second. Each of its tasks has up to
/// `depth` I/Os in flight.
fn workload(kind: u8, depth: u32, think_us: u64) -> Workload {
    match kind {
        0 => tasks(&format!(
            "[[tasks]]\npid = 1\npattern = \"random\"\nrange = [0, 1000000]\niodepth = {depth}\ntotal = 40000\n\
             [[tasks]]\npid = 2\npattern = \"seq\"\niodepth = 2\ntotal = 40000\nthink_ns = {}\n",
            think_us * 1000
        )),
        1 => jobs(&format!(
            "[global]\nioengine=libaio\ndirect=1\nrw=randrw\nbs=4k\nsize=160m\nfilename=/dev/sda\n\
             [a]\niodepth={depth}\n[b]\niodepth=2\nthinktime={think_us}us\n"
        )),
        2 => trace(40_000, 25_000),
        3 => trace(40_000, 60_000),
        // Syncs, and a job that waits for the jobs before it.
        4 => direct_jobs(&format!(
            "[a]\nrw=randwrite\nfsync=7\niodepth={depth}\n[b]\nrw=randread\niodepth=4\nthinktime={think_us}us\n\
             [c]\nstonewall\nrw=read\n"
        )),
        // The second job starves.
        5 => direct_jobs(&format!(
            "time_based\nruntime=600\nrw=randread\niodepth={depth}\n[hi]\nprioclass=1\n[lo]\nprioclass=3\n"
        )),
        // Jobs with a rate, several copies of a job, and a delay.
        6 => direct_jobs(&format!(
            "[a]\nrw=randwrite\nnumjobs=3\nrate_iops=900\nrate_process=poisson\niodepth={depth}\n\
             [b]\nrw=read\nrate_iops=50\nstartdelay={think_us}us\n"
        )),
        // The first job ends before the limit, and other jobs start later.
        _ => direct_jobs(&format!(
            "[a]\nrw=randwrite\nio_size=64k\nend_fsync=1\niodepth={depth}\n[b]\nstonewall\nrw=randrw\n\
             iodepth={depth}\nfdatasync=5\n"
        )),
    }
}

/// Returns jobs with direct I/O on one device. Their I/O takes longer than a second.
fn direct_jobs(text: &str) -> Workload {
    jobs(&format!("[global]\nioengine=libaio\ndirect=1\nbs=4k\nsize=160m\nfilename=/dev/sda\n{text}"))
}

fn limited(workload: &Workload, profile: &Profile, setting: &str, time_ns: u64, replay: Replay) -> (RunResult, u64) {
    let mut plan = Plan::new(workload, profile, setting.parse().unwrap());
    plan.limit = Limit { time_ns: Some(time_ns), ios: None };
    plan.replay = replay;
    let mut last = LastAsked::default();
    let result = run(&plan, &mut last).unwrap();
    (result, last.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn all_settings_stop_at_the_time_limit(
        kind in 0..KINDS,
        depth in 1u32..160,
        device_depth in prop::sample::select(vec![1u32, 4, 32]),
        parallel in 1u32..3,
        think_us in prop::sample::select(vec![0u64, 70, 30_000, 900_000]),
        time_ms in 20u64..300,
    ) {
        let (workload, profile) = (workload(kind, depth, think_us), device(device_depth, parallel));
        let time_ns = time_ms * 1_000_000;
        let replay = if kind == 2 { Replay::Open { speed: 1.0 } } else { Replay::Closed };
        for setting in SETTINGS {
            let (result, last_submitted_ns) = limited(&workload, &profile, setting, time_ns, replay);
            prop_assert!(last_submitted_ns < time_ns, "{setting}: asked at {last_submitted_ns} ns, the limit is {time_ns} ns");
            prop_assert!(result.notes.iter().any(|note| matches!(note, Note::Limited { .. })), "{setting}: {:?}", result.notes);
            // All I/Os in flight at the limit complete. In open replay, this includes the I/Os of
            // an overloaded queue.
            let in_flight = 3 * u64::from(depth) + 2 + 1024;
            let at_most = time_ns + in_flight * LATENCY_NS + IDLING_NS;
            let finished_ns = result.finished_ns;
            prop_assert!((time_ns..=at_most).contains(&finished_ns), "{setting}: ended at {finished_ns} ns of {time_ns} ns");
        }
    }
}

/// Controllers that delay buffered writes or the I/Os of the cgroup `slow`.
const CONTROLLERS: [&str; 5] = [
    "none:io.max=slow:riops=200/wiops=100",
    "mq-deadline:io.max=slow:rbps=2000000",
    "none:io.latency=fast:target=200",
    "bfq:wbt_lat_usec=500",
    "none:io.cost.qos=enable=1/min=100/max=100,io.cost.model=rbps=40960000/rseqiops=1000/rrandiops=1000",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn controllers_submit_no_io_after_the_time_limit(
        depth in 1u32..100,
        device_depth in prop::sample::select(vec![1u32, 32]),
        think_us in prop::sample::select(vec![0u64, 30_000]),
        time_ms in 20u64..300,
    ) {
        let workload = direct_jobs(&format!(
            "rw=randrw\niodepth={depth}\n[slow]\ncgroup=slow\n[fast]\ncgroup=fast\nfsync=9\nthinktime={think_us}us\n"
        ));
        let (profile, time_ns) = (device(device_depth, 1), time_ms * 1_000_000);
        for setting in CONTROLLERS {
            let (result, last_submitted_ns) = limited(&workload, &profile, setting, time_ns, Replay::Closed);
            prop_assert!(last_submitted_ns < time_ns, "{setting}: asked at {last_submitted_ns} ns, the limit is {time_ns} ns");
            prop_assert!(result.notes.iter().any(|note| matches!(note, Note::Limited { .. })), "{setting}: {:?}", result.notes);
            prop_assert!(result.finished_ns >= time_ns, "{setting}: ended at {} ns of {time_ns} ns", result.finished_ns);
        }
    }
}

/// Returns the rate of a run, MB/s.
fn rate(result: &RunResult) -> f64 {
    (result.bytes_read + result.bytes_written) as f64 * 1e3 / result.counted_ns() as f64
}

#[test]
fn job_deeper_than_the_tags_ends_at_the_time_limit() {
    let text =
        "[j]\ndirect=1\nbs=4k\nioengine=libaio\niodepth=48\nsize=8G\nfilename=/dev/sdx\nrw=randrw\nrwmixread=75\n";
    let profile = Profile::named("sata-7200").unwrap();
    let limited = |setting| limited(&jobs(text), &profile, setting, 3 * SECOND, Replay::Closed).0;
    let timed = jobs(&format!("{text}time_based\nruntime=3\n"));
    for (setting, expected) in [("mq-deadline", 2.44), ("none", 2.41)] {
        let by_task = limited(setting);
        let by_job = run(&Plan::new(&timed, &profile, setting.parse().unwrap()), ()).unwrap();
        for result in [&by_task, &by_job] {
            assert!(
                (3 * SECOND..3 * SECOND + SECOND / 2).contains(&result.finished_ns),
                "{setting} {}",
                result.finished_ns
            );
            assert!((rate(result) / expected - 1.0).abs() < 0.05, "{setting}: {} MB/s", rate(result));
        }
    }
}

#[test]
fn starving_task_does_not_prolong_the_run() {
    let text = "[global]\nioengine=libaio\ndirect=1\nnorandommap=1\ntime_based=1\nruntime=600\nfilename=/dev/nvme0n1\n\
                rw=randread\nbs=4k\niodepth=32\nsize=1g\n[hi]\nprioclass=1\n[lo]\nprioclass=2\n";
    let (workload, profile) = (jobs(text), Profile::named("sata-ssd").unwrap());
    for setting in ["none", "mq-deadline", "bfq"] {
        let (result, last_submitted_ns) = limited(&workload, &profile, setting, SECOND / 2, Replay::Closed);
        assert!(last_submitted_ns < SECOND / 2, "{setting}");
        assert!((SECOND / 2..SECOND).contains(&result.finished_ns), "{setting}: {} ns", result.finished_ns);
    }
}

#[test]
fn long_think_time_of_one_task_does_not_end_others_early() {
    // One task thinks until after the limit. The other task continues up to the limit.
    let workload = tasks(
        "[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 10\nthink_ns = 5_000_000_000\n\
         [[tasks]]\npid = 2\npattern = \"random\"\nrange = [0, 1000000]\niodepth = 4\ntotal = 40000\n",
    );
    let (result, last_submitted_ns) = limited(&workload, &device(4, 1), "none", SECOND / 5, Replay::Closed);
    assert!(
        result.ios > 1_900 && last_submitted_ns > SECOND / 5 - 1_000_000,
        "{} I/Os, until {last_submitted_ns} ns",
        result.ios
    );
}

#[test]
fn buffered_jobs_end_at_the_limit() {
    let text = "[global]\nsize=4g\nbs=64k\n[w]\nrw=randwrite\n[r]\nrw=randread\nthinktime=900ms\n";
    let workload = jobs(text);
    let machine: Machine = toml::from_str(include_str!("../../lab/machines/linux-6.12.toml")).unwrap();
    let profile = Profile::named("sata-7200").unwrap();
    for setting in ["none", "mq-deadline", "bfq", "kyber"] {
        let plan = Plan {
            machine: Some(&machine),
            limit: Limit { time_ns: Some(2 * SECOND), ios: None },
            ..Plan::new(&workload, &profile, setting.parse().unwrap())
        };
        let result = run(&plan, ()).unwrap();
        assert_eq!(result.finished_ns, 2 * SECOND, "{setting}");
    }
}

#[test]
fn jobs_count_ios_in_flight_at_the_limit() {
    let text = "[global]\nioengine=libaio\ndirect=1\nrw=randread\nbs=4k\nsize=160m\nfilename=/dev/sda\n\
                [deep]\niodepth=64\n[sleeper]\nthinktime=10s\n";
    let (workload, profile) = (jobs(text), device(64, 1));
    for setting in SETTINGS {
        let (result, _) = limited(&workload, &profile, setting, SECOND / 20, Replay::Closed);
        let [deep, sleeper] = &result.jobs[..] else { panic!("the run must have two jobs") };
        assert_eq!((deep.read.ios, sleeper.read.ios), (result.tasks[0].ios, result.tasks[1].ios), "{setting}");
        assert_eq!(Some(deep.ended_ns), result.tasks[0].last_completion_ns, "{setting}");
        assert_eq!(sleeper.ended_ns, SECOND / 20, "{setting}: the sleeper had no I/O in flight");
        // The device is always busy, so the jobs together have the rate of the device.
        let ios = deep.read.ios + sleeper.read.ios;
        assert_eq!(ios, deep.counted_ns() / LATENCY_NS, "{setting}");
    }
}

#[test]
fn only_libaio_counts_waits_for_a_request_as_submission() {
    for (engine, waits) in [("libaio", true), ("io_uring", false), ("posixaio", false)] {
        let text = format!(
            "[j]\nioengine={engine}\ndirect=1\nrw=randread\nbs=4k\nsize=16m\nio_size=4m\niodepth=64\n\
             iodepth_batch=8\nfilename=/dev/sda\n"
        );
        let profile = device(2, 1);
        let result = run(&Plan::new(&jobs(&text), &profile, "mq-deadline:nr_requests=4".parse().unwrap()), ()).unwrap();
        let read = &result.jobs[0].read;
        assert_eq!(read.submission.max_ns() > 0, waits, "{engine}: {} ns", read.submission.max_ns());
        assert!(read.completion.max_ns() > LATENCY_NS * 4, "{engine}");
        assert_eq!(read.latency.sum_ns(), read.submission.sum_ns() + read.completion.sum_ns(), "{engine}");
    }
}
