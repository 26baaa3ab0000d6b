//! Properties of running fio jobs, on a device of fixed latency.

use iosched::{Decision, Flags, IoClass, IoPriority, Op};
use iosched_disk::{Host, Profile, SchedulerCost};
use iosched_sim::{Decisions, Dispatched, JobResult, Note, Observer, Plan, RunResult, SimError, check, run};
use iosched_workload::Workload;
use iosched_workload::fio::{
    CgroupMember, Client, Delay, Direction, ExitWhat, Files, Job, JobFile, Jobs, LatencyTarget, LogIo, Mode, OpenSync,
    PerDirection, Placement, RateProcess, ReplayLog, Size, ThinkTime,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const RANDOM: Placement = Placement::Random { ios_per_offset: 1 };

/// Returns a device of queue depth `depth` that serves `parallel` commands at a time. A command
/// takes 1,000 ns plus 10 ns per sector, so 4 KiB take 1,080 ns.
fn device(depth: u32, parallel: u32) -> Profile {
    let text = format!(
        "kind = \"fixed\"\n[fixed]\ndepth = {depth}\nparallel = {parallel}\nlat_ns = 1000\nns_per_sector = 10\n"
    );
    Profile::parse("fixed", &text).unwrap()
}

/// Returns a job with direct I/O on the whole device. It makes `ios` I/Os of 4 KiB.
fn job(name: &str, ios: u64) -> Job {
    Job { files: Files::Named(vec!["/dev/sda".to_owned()]), direct: true, number_ios: Some(ios), ..Job::new(name) }
}

fn libaio(name: &str, ios: u64, io_depth: u32) -> Job {
    let size = Some(Size::Bytes(64 * MIB));
    Job { client: Client::Async, io_depth, io_depth_low: io_depth, size, ..job(name, ios) }
}

fn workload(jobs: Vec<Job>) -> Workload {
    Workload::Jobs(Jobs::new(JobFile { name: "t.fio".to_owned(), jobs, ignored: Vec::new() }))
}

fn plan<'a>(workload: &'a Workload, profile: &'a Profile) -> Plan<'a> {
    Plan::new(workload, profile, "noop".parse().unwrap())
}

fn result(jobs: Vec<Job>) -> RunResult {
    result_on(&device(32, 32), jobs)
}

fn result_on(profile: &Profile, jobs: Vec<Job>) -> RunResult {
    run(&plan(&workload(jobs), profile), ()).unwrap()
}

fn span(job: &JobResult) -> (u64, u64) {
    (job.started_ns.unwrap(), job.ended_ns)
}

/// Returns the events of a run with their times: inserts `+`, dispatches `>` and completions `-`.
fn story(jobs: Vec<Job>) -> String {
    let mut text = Vec::new();
    let watch = Decisions(|now_ns: u64, decision: &Decision| match decision {
        Decision::Insert { cookie, .. } => text.push(format!("{now_ns}+{cookie}")),
        Decision::Complete { cookie } => text.push(format!("{now_ns}-{cookie}")),
        _ => {}
    });
    run(&plan(&workload(jobs), &device(32, 32)), watch).unwrap();
    text.join(" ")
}

#[test]
fn synchronous_engine_has_one_io_in_flight() {
    let events = story(vec![Job { io_depth: 8, ..job("j", 3) }]);
    assert_eq!(events, "0+1 1080-1 1080+2 2160-2 2160+3 3240-3");
}

#[test]
fn an_asynchronous_engine_keeps_its_depth_full() {
    let placement = RANDOM;
    let result = result_on(&device(32, 4), vec![Job { placement, ..libaio("j", 1000, 4) }]);
    let job = &result.jobs[0];
    assert_eq!((job.read.ios, job.read.bytes, result.ios), (1000, 4000 * KIB, 1000));
    assert!(job.depth_level[2] >= 997, "{:?}", job.depth_level);
    assert_eq!(job.ended_ns, 250 * 1080);
}

#[test]
fn iodepth_low_is_reached_before_the_next_batch() {
    let batched = Job { batch_submit: 4, io_depth_low: 2, placement: RANDOM, ..libaio("j", 400, 4) };
    let job = &result(vec![batched]).jobs[0];
    // Each submission raises the depth from 2 to 4, so it has two I/Os.
    assert_eq!(job.depth_submit.iter().sum::<u64>(), job.depth_submit[1]);
    assert!(job.depth_submit[1] < 202, "{:?}", job.depth_submit);
    assert_eq!(job.read.ios, 400);
}

#[test]
fn completions_are_reaped_in_batches() {
    let taking = Job { batch_complete_min: 4, batch_complete_max: 8, placement: RANDOM, ..libaio("j", 800, 8) };
    let job = &result_on(&device(32, 1), vec![taking]).jobs[0];
    let batches: u64 = job.depth_complete.iter().sum();
    assert!((190..=210).contains(&batches), "{:?}", job.depth_complete);
    // The job sees the completion of the first I/O only after three further I/Os complete.
    assert!(job.read.completion.max_ns() > job.read.completion.min_ns() + 3 * 1080);
}

#[test]
fn full_queue_adds_submission_latency() {
    let one = Job { placement: RANDOM, ..libaio("j", 200, 16) };
    let (workload, profile) = (workload(vec![one]), device(1, 1));
    let plan = Plan { scheduler: "noop:nr_requests=4".parse().unwrap(), ..plan(&workload, &profile) };
    let result = run(&plan, ()).unwrap();
    let job = &result.jobs[0];
    assert!(job.read.submission.max_ns() >= 1080, "{}", job.read.submission.max_ns());
    assert!(result.notes.iter().any(|note| matches!(note, Note::WaitedForAllocation { .. })));
    assert_eq!(job.read.ios, 200);
    let parts = job.read.submission.sum_ns() + job.read.completion.sum_ns();
    assert_eq!(parts, job.read.latency.sum_ns());
}

#[test]
fn stonewall_waits_for_all_jobs_and_wait_for_for_one() {
    let jobs = vec![
        job("a", 10),
        job("b", 20),
        Job { stonewall: true, ..job("c", 5) },
        Job { wait_for: Some("c".to_owned()), ..job("d", 5) },
        job("e", 1),
    ];
    let spans: Vec<_> = result(jobs).jobs.iter().map(span).collect();
    let [a, b, c, d, e] = spans[..] else { panic!() };
    assert_eq!((a.0, b.0), (0, 0));
    assert_eq!((c.0, e.0), (b.1.max(a.1), c.0));
    assert_eq!(d.0, c.1);
}

#[test]
fn start_delay_is_random_within_its_range() {
    let late = |copy| Job { copy, start_delay: Delay { min_ns: 1000, max_ns: 9000 }, ..job("a", 1) };
    let starts: Vec<u64> = result((0..20).map(late).collect()).jobs.iter().map(|job| span(job).0).collect();
    assert!(starts.iter().all(|ns| (1000..=9000).contains(ns)));
    assert!(starts.iter().any(|&ns| ns != starts[0]));
}

#[test]
fn time_based_job_runs_for_its_whole_runtime() {
    let timed = |time_based| Job {
        runtime_ns: Some(SECOND / 100),
        time_based,
        number_ios: None,
        size: Some(Size::Bytes(MIB)),
        ..job("a", 0)
    };
    assert_eq!(result(vec![timed(false)]).jobs[0].read.ios, 256);
    let job = &result(vec![timed(true)]).jobs[0];
    assert!((SECOND / 100..SECOND / 100 + 1080).contains(&job.ended_ns), "{}", job.ended_ns);
    assert_eq!(job.read.ios, job.ended_ns / 1080);
}

#[test]
fn ios_during_ramp_time_do_not_count() {
    let ramped = Job {
        runtime_ns: Some(SECOND / 100),
        ramp_time_ns: SECOND / 200,
        time_based: true,
        number_ios: None,
        ..job("a", 0)
    };
    let result = result(vec![ramped]);
    let job = &result.jobs[0];
    assert_eq!(job.counted_from_ns, SECOND / 200);
    assert!(job.ended_ns >= SECOND / 100 + SECOND / 200);
    let expected = job.counted_ns() / 1080;
    assert!(job.read.ios.abs_diff(expected) <= 1, "{} of {expected}", job.read.ios);
    assert!(result.ios.abs_diff(job.read.ios) <= 1);
    assert_eq!(result.counted_from_ns, SECOND / 200);
    let per_s = 4096.0 * 1e9 / 1080.0;
    assert!((result.throughput_bytes_per_s() / per_s - 1.0).abs() < 0.01);
}

#[test]
fn think_time_starts_after_thinktime_blocks_complete() {
    let think_time = ThinkTime { pause_ns: 5000, blocks: 2, ..ThinkTime::default() };
    let events = story(vec![Job { think_time, ..job("a", 4) }]);
    assert_eq!(events, "0+1 1080-1 1080+2 2160-2 7160+3 8240-3 8240+4 9320-4");
}

#[test]
fn rate_is_met_or_limited_by_the_device() {
    let rated = |per_s| Job {
        rate_iops: PerDirection { read: Some(per_s), write: None, trim: None },
        runtime_ns: Some(SECOND),
        time_based: true,
        number_ios: None,
        size: Some(Size::Bytes(MIB)),
        ..job("a", 0)
    };
    assert_eq!(result(vec![rated(1000)]).jobs[0].read.ios, 1000);
    let fast = result(vec![rated(10_000_000)]).jobs[0].read.ios;
    assert_eq!(fast, SECOND / 1080 + 1);
    let bytes = Job {
        rate_iops: PerDirection::default(),
        rate_bytes_per_s: PerDirection { read: Some(4 * MIB), write: None, trim: None },
        ..rated(0)
    };
    assert_eq!(result(vec![bytes]).jobs[0].read.bytes, 4 * MIB);
}

#[test]
fn poisson_arrivals_have_exponential_gaps() {
    #[derive(Default)]
    struct Times(Vec<u64>);
    impl Observer for Times {
        fn dispatched(&mut self, now_ns: u64, _: &Dispatched, _: usize, _: u32) {
            self.0.push(now_ns);
        }
    }
    let rated = Job {
        rate_iops: PerDirection { read: Some(1000), write: None, trim: None },
        rate_process: RateProcess::Poisson,
        ..job("a", 20_000)
    };
    let mut times = Times::default();
    run(&plan(&workload(vec![rated]), &device(32, 32)), &mut times).unwrap();
    let gaps: Vec<f64> = times.0.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((mean - 1.0).abs() < 0.03 && (deviation - 1.0).abs() < 0.03, "{mean} {deviation}");
}

#[test]
fn read_and_write_rates_are_both_met() {
    let rated = Job {
        mode: Mode::ReadWrite,
        rate_iops: PerDirection { read: Some(900), write: Some(100), trim: None },
        runtime_ns: Some(SECOND),
        time_based: true,
        number_ios: None,
        ..job("a", 0)
    };
    let job = &result(vec![rated]).jobs[0];
    assert!(job.read.ios.abs_diff(900) <= 2 && job.write.ios.abs_diff(100) <= 2, "{} {}", job.read.ios, job.write.ios);
}

#[test]
fn job_below_its_minimum_rate_fails() {
    let slow = Job {
        rate_min_bytes_per_s: PerDirection { read: Some(u64::MAX), write: None, trim: None },
        rate_cycle_ns: 100_000,
        ..job("a", 1000)
    };
    let kept = Job { rate_min_bytes_per_s: PerDirection::all(Some(1)), ..slow.clone() };
    assert!(!result(vec![kept]).jobs[0].failed, "without writes, the minimum rate of writes does not apply");
    let result = result(vec![slow]);
    assert!(result.jobs[0].failed && result.jobs[0].read.ios < 100);
    assert_eq!(result.notes, [Note::JobFailed { job: "a".to_owned() }]);
}

#[test]
fn latency_target_finds_the_largest_depth_within_it() {
    let target = LatencyTarget { target_ns: 5 * 1080 + 10, window_ns: 1_000_000, percentile: 100.0, run: false };
    let searching = Job { latency_target: Some(target), placement: RANDOM, number_ios: None, ..libaio("a", 0, 64) };
    let job = &result_on(&device(64, 1), vec![searching]).jobs[0];
    assert_eq!(job.target_depth, Some(5));
    assert!(job.read.latency.max_ns() <= 5 * 1080 + 10, "only I/Os at the final depth count");
    assert!((900_000..1_200_000).contains(&job.counted_ns()));
}

#[test]
fn exitall_ends_other_jobs_in_its_scope() {
    let endless = |name, group| Job { group, number_ios: None, ..job(name, 0) };
    let first = |what| Job { exit_all: Some(what), ..job("first", 10) };
    let ended = |what| {
        let later = Job { stonewall: true, ..job("later", 3) };
        let counted = Job { number_ios: Some(1000), ..endless("own", 1) };
        let result = result(vec![first(what), endless("mate", 0), counted, later]);
        result.jobs.iter().map(|job| job.read.ios).collect::<Vec<_>>()
    };
    assert_eq!(ended(ExitWhat::Group), [10, 10, 1000, 0]);
    assert_eq!(ended(ExitWhat::Stonewall), [10, 10, 10, 3]);
    assert_eq!(ended(ExitWhat::All), [10, 10, 10, 0]);
}

#[test]
fn fsync_and_end_fsync_give_the_expected_flushes() {
    let synced = |fsync_ios, end_fsync| Job { mode: Mode::Write, fsync_ios, end_fsync, ..job("a", 10) };
    let profile = Profile::named("sata-7200").unwrap();
    for (fsync_ios, end_fsync, expected) in [(0, false, 0), (0, true, 1), (3, false, 3), (3, true, 4), (5, true, 2)] {
        let result = result_on(&profile, vec![synced(fsync_ios, end_fsync)]);
        assert_eq!(result.queue.flushes.ios, expected, "fsync={fsync_ios} end_fsync={end_fsync}");
        assert_eq!((result.jobs[0].sync.count(), result.jobs[0].write.ios), (expected, 10));
    }
}

#[test]
fn sync_writes_take_longer_than_cached_writes() {
    let profile = Profile::named("sata-7200").unwrap();
    let written = |open_sync| Job { mode: Mode::Write, placement: RANDOM, open_sync, ..job("a", 50) };
    let plain = result_on(&profile, vec![written(OpenSync::None)]);
    let sync = result_on(&profile, vec![written(OpenSync::Dsync)]);
    assert!(sync.finished_ns > 5 * plain.finished_ns, "{} {}", sync.finished_ns, plain.finished_ns);
}

#[test]
fn direct_writes_are_sync_and_buffered_writes_are_async() {
    let written = |direct| result(vec![Job { mode: Mode::Write, direct, ..job("a", 5) }]);
    assert_eq!(written(true).latency.writes_sync.count(), 5);
    let buffered = written(false);
    assert_eq!(buffered.latency.writes_async.count(), 5);
    assert_eq!(buffered.notes, [Note::NoPageCache { jobs: 1 }]);
}

#[test]
fn trims_are_discards() {
    let result = result(vec![Job { mode: Mode::Trim, ..job("a", 5) }]);
    assert_eq!((result.jobs[0].trim.ios, result.queue.discards.ios), (5, 5));
}

#[test]
fn priorities_and_cgroup_weights_divide_the_disk() {
    let busy = |name, ioprio, cgroup: Option<(&str, u32)>| Job {
        ioprio,
        cgroup: cgroup.map(|(name, weight)| CgroupMember { name: name.to_owned(), weight: Some(weight) }),
        offset: Size::Percent(if name == "a" { 0 } else { 50 }),
        runtime_ns: Some(20 * SECOND),
        time_based: true,
        number_ios: None,
        ..job(name, 0)
    };
    let profile = Profile::named("sata-7200").unwrap();
    let be = |level| IoPriority::new(IoClass::BestEffort, level);
    let share = |jobs: Vec<Job>| {
        let workload = workload(jobs);
        let plan = Plan { scheduler: "cfq".parse().unwrap(), ..plan(&workload, &profile) };
        let result = run(&plan, ()).unwrap();
        result.jobs[0].read.ios as f64 / result.jobs[1].read.ios as f64
    };
    assert!(share(vec![busy("a", be(0), None), busy("b", be(7), None)]) > 1.5);
    let groups = vec![busy("a", be(4), Some(("g/high", 1000))), busy("b", be(4), Some(("g/low", 100)))];
    let weighted = share(groups);
    assert!(weighted > 2.0, "{weighted}");
}

#[test]
fn rate_samples_are_taken_every_half_second() {
    let timed = Job { runtime_ns: Some(2 * SECOND), time_based: true, number_ios: None, ..job("a", 0) };
    let job = &result(vec![timed]).jobs[0];
    assert!((3..=4).contains(&job.read.ios_per_s.count));
    let per_s = 1e9 / 1080.0;
    assert!((job.read.ios_per_s.mean / per_s - 1.0).abs() < 1e-3);
    assert!((job.read.bytes_per_s.mean / (4096.0 * per_s) - 1.0).abs() < 1e-3);
}

#[test]
fn job_run_alone_makes_the_same_ios() {
    #[derive(Default)]
    struct Places(Vec<(usize, u64)>);
    impl Observer for Places {
        fn dispatched(&mut self, _: u64, request: &Dispatched, _: usize, _: u32) {
            self.0.push((request.task, request.sector));
        }
    }
    let job = |name| Job {
        files: Files::Own(2),
        size: Some(Size::Bytes(MIB)),
        placement: RANDOM,
        number_ios: None,
        ..job(name, 0)
    };
    let together = workload(vec![job("a"), Job { stonewall: true, ..job("b") }]);
    let profile = device(32, 32);
    let places = |workload: &Workload| {
        let mut places = Places::default();
        run(&plan(workload, &profile), &mut places).unwrap();
        places.0
    };
    let of_b: Vec<u64> = places(&together).into_iter().filter(|place| place.0 == 1).map(|place| place.1).collect();
    let alone: Vec<u64> = places(&together.only(1).unwrap()).into_iter().map(|place| place.1).collect();
    assert_eq!(of_b, alone);
    assert_eq!(of_b.len(), 256);
}

#[test]
fn log_is_replayed_in_order_and_at_recorded_times() {
    let io = |at_ns, direction, start| LogIo { at_ns, direction, start, bytes: 4 * KIB };
    let ios = [
        io(0, Some(Direction::Read), 80 * KIB),
        io(10_000, Some(Direction::Write), 40 * KIB),
        LogIo { at_ns: 20_000, direction: None, start: 0, bytes: 0 },
        io(50_000, Some(Direction::Read), 120 * KIB),
    ];
    let log = ReplayLog {
        path: "log".to_owned(),
        no_stall: false,
        time_scale_percent: 100,
        scale: 1,
        align_bytes: 0,
        skip: PerDirection::default(),
        skip_syncs: false,
        redirect: false,
        ios: ios.into(),
    };
    let replay = |log: &ReplayLog, loops| Job { replay: Some(log.clone()), number_ios: None, loops, ..job("j", 0) };
    let events = |log: &ReplayLog| story(vec![replay(log, 1)]);
    assert_eq!(
        events(&log),
        "0+1 1080-1 10000+2 11080-2 50000+4 51080-4",
        "the device gets no request for the sync (I/O 3)"
    );
    assert_eq!(
        events(&ReplayLog { time_scale_percent: 200, skip_syncs: true, ..log.clone() }),
        "0+1 1080-1 5000+2 6080-2 25000+3 26080-3"
    );
    let skip = PerDirection { read: true, ..PerDirection::default() };
    assert_eq!(events(&ReplayLog { skip, no_stall: true, skip_syncs: true, ..log.clone() }), "0+1 1080-1");
    let twice = result(vec![replay(&log, 2)]);
    assert_eq!((twice.jobs[0].read.ios, twice.jobs[0].write.ios), (4, 2));
    assert!(twice.finished_ns > 100_000, "the second pass begins when the first is over: {}", twice.finished_ns);
    let small = Profile::parse(
        "small",
        "kind = \"fixed\"\n[fixed]\ncapacity_sectors = 100\ndepth = 1\nparallel = 1\nlat_ns = 1\nns_per_sector = 1\n",
    )
    .unwrap();
    let refused = |log: &ReplayLog| check(&plan(&workload(vec![replay(log, 1)]), &small)).is_err();
    assert!(refused(&log) && !refused(&ReplayLog { scale: 4, ..log.clone() }));
}

#[test]
fn seed_changes_random_ios_only_without_randrepeat() {
    let mixed = |rand_repeat| {
        workload(vec![Job { mode: Mode::ReadWrite, placement: RANDOM, rand_repeat, ..libaio("a", 500, 8) }])
    };
    let profile = device(32, 3);
    let reads = |workload: &Workload, seed| {
        let result = run(&Plan { seed, ..plan(workload, &profile) }, ()).unwrap();
        assert_eq!(result, run(&Plan { seed, ..plan(workload, &profile) }, ()).unwrap());
        result.jobs[0].read.ios
    };
    assert_eq!(reads(&mixed(Some(true)), 1), reads(&mixed(Some(true)), 2));
    for free in [mixed(Some(false)), mixed(None)] {
        assert!((2..10).any(|seed| reads(&free, seed) != reads(&free, 1)));
    }
}

#[test]
fn jobs_that_do_not_fit_the_device_fail_before_the_run() {
    let large = workload(vec![Job { size: Some(Size::Bytes(u64::MAX)), ..job("a", 1) }]);
    let profile = device(1, 1);
    assert!(matches!(check(&plan(&large, &profile)), Err(SimError::Workload(_))));
    assert!(matches!(run(&plan(&large, &profile), ()), Err(SimError::Workload(_))));
}

#[test]
fn direct_write_is_sync() {
    let seen = std::cell::RefCell::new(Vec::new());
    let watch = Decisions(|_: u64, decision: &Decision| {
        if let Decision::Insert { op, sync, .. } = decision {
            seen.borrow_mut().push((*op, *sync));
        }
    });
    run(&plan(&workload(vec![Job { mode: Mode::Write, ..job("a", 1) }]), &device(1, 1)), watch).unwrap();
    assert_eq!(seen.into_inner(), [(Op::Write, Op::Write.is_sync(Flags::SYNC))]);
}

/// Returns a job of `ios` I/Os, `io_depth` of them in flight, that alternates between two disks.
fn on_two_disks(ios: u64, io_depth: u32) -> Workload {
    let files = Files::Named(vec!["/dev/sda".to_owned(), "/dev/sdb".to_owned()]);
    workload(vec![Job { files, placement: RANDOM, ..libaio("j", ios, io_depth) }])
}

#[test]
fn job_uses_its_named_disks_in_turn() {
    let (set, one) = (on_two_disks(1000, 2), device(1, 1));
    let more = [(one.clone(), "noop".parse().unwrap())];
    let both = run(&Plan { more_disks: &more, ..plan(&set, &one) }, ()).unwrap();
    // Each disk serves one I/O at a time, and half of the I/Os.
    assert_eq!((both.ios, both.finished_ns), (1000, 500 * 1080));
    assert_eq!((both.jobs[0].read.ios, both.tasks[0].ios, both.bytes_read), (1000, 1000, 1000 * 4096));
    let error = check(&plan(&set, &one)).unwrap_err().to_string();
    assert!(error.contains("/dev/sdb") && error.contains("only one device"), "{error}");
}

#[test]
fn slow_disk_collects_the_ios_of_a_job_on_two_disks() {
    let (set, fast) = (on_two_disks(2000, 16), device(32, 1));
    let text = "kind = \"fixed\"\n[fixed]\ndepth = 32\nparallel = 1\nlat_ns = 99920\nns_per_sector = 10\n";
    let slow = Profile::parse("slow", text).unwrap();
    let more = [(slow, "noop".parse().unwrap())];
    let result = run(&Plan { more_disks: &more, ..plan(&set, &fast) }, ()).unwrap();
    let per_io_ns = result.finished_ns / 2000;
    // Half of the I/Os go to a disk that takes 100 us for each.
    assert!((49_000..51_000).contains(&per_io_ns), "{per_io_ns}");
    let latency = &result.jobs[0].read.latency;
    assert!(latency.quantile_ns(0.25) < 5_000 && latency.quantile_ns(0.75) > 1_300_000);
}

#[test]
fn clock_interrupts_shorten_the_bursts_of_io_cost() {
    // io.cost allows 2,000 I/Os per second. Its timers have a range of 10 ms.
    let setting = "none:io.cost.model=rbps=8192000/rseqiops=2000/rrandiops=2000,\
                   io.cost.qos=enable=1/wlat=1000000/min=100/max=100";
    let bursts = |clock_hz| {
        let member = CgroupMember { name: "group".to_owned(), weight: None };
        let set = workload(vec![Job { cgroup: Some(member), ..libaio("j", 10_000, 64) }]);
        let host = Host { cores: 1, wake_ns: 0, request_ns: 0, clock_hz, slices: None, schedulers: [].into() };
        let device = device(1024, 64);
        let plan = Plan { host: Some(&host), ..Plan::new(&set, &device, setting.parse().unwrap()) };
        let mut milliseconds = std::collections::BTreeSet::new();
        let watch = Decisions(|now_ns: u64, decision: &Decision| {
            if matches!(decision, Decision::Dispatch { .. }) {
                milliseconds.insert(now_ns / 1_000_000);
            }
        });
        run(&plan, watch).unwrap();
        milliseconds.len()
    };
    let (asleep, ticking) = (bursts(None), bursts(Some(1000)));
    assert!(2 * ticking > 3 * asleep, "{ticking} bursts with a clock, {asleep} without");
}

#[test]
fn slow_host_limits_the_rate() {
    let rate = |jobs: u32, cores, lock_ns| {
        let set = workload((0..jobs).map(|i| libaio(&format!("j{i}"), 2000, 32)).collect());
        let costs = [("noop".to_owned(), SchedulerCost { request_ns: 0, lock_ns })].into();
        let host = Host { cores, wake_ns: 0, request_ns: 5_000, clock_hz: None, slices: None, schedulers: costs };
        let device = device(64, 64);
        let result = run(&Plan { host: Some(&host), ..plan(&set, &device) }, ()).unwrap();
        result.ios * 1_000_000 / (result.finished_ns / 1000)
    };
    assert!((190_000..205_000).contains(&rate(1, 1, 0)), "{}", rate(1, 1, 0));
    assert!((190_000..205_000).contains(&rate(2, 1, 0)), "two jobs share a processor: {}", rate(2, 1, 0));
    assert!((380_000..410_000).contains(&rate(2, 2, 0)), "{}", rate(2, 2, 0));
    assert!((240_000..260_000).contains(&rate(2, 2, 4_000)), "the lock: {}", rate(2, 2, 4_000));
}

#[test]
fn latencies_include_the_wait_for_a_busy_processor() {
    let set = workload(vec![libaio("j", 4000, 32)]);
    let host = Host { cores: 1, wake_ns: 0, request_ns: 5_000, clock_hz: None, slices: None, schedulers: [].into() };
    let device = device(64, 64);
    let result = run(&Plan { host: Some(&host), ..plan(&set, &device) }, ()).unwrap();
    // The processor submits 200,000 I/Os per second, and 32 I/Os are always in flight.
    let mean_ns = result.latency.reads.mean_ns();
    assert!((150_000.0..165_000.0).contains(&mean_ns), "{mean_ns}");
    assert_eq!(result.tasks[0].latency.count(), 4000);
    let of_job = result.jobs[0].read.latency.mean_ns();
    assert!((mean_ns - of_job).abs() < 1.0, "the job measures the same: {of_job}");
    let note = |note: &Note| matches!(note, Note::ProcessorBusy { percent: 95..=100, cores: 1 });
    assert!(result.notes.iter().any(note), "{:?}", result.notes);
}

#[test]
fn host_faster_than_the_disk_does_not_change_the_rate() {
    let set = workload(vec![libaio("j", 500, 4)]);
    let host = Host { cores: 1, wake_ns: 10, request_ns: 10, clock_hz: None, slices: None, schedulers: [].into() };
    let device = device(4, 4);
    let plan = plan(&set, &device);
    let (with, without) = (run(&Plan { host: Some(&host), ..plan.clone() }, ()).unwrap(), run(&plan, ()).unwrap());
    let rates = [&with, &without].map(|result| result.ios as f64 * 1e9 / result.finished_ns as f64);
    assert!((rates[0] / rates[1] - 1.0).abs() < 0.02, "{rates:?}");
    assert!(with.notes.is_empty(), "{:?}", with.notes);
}
