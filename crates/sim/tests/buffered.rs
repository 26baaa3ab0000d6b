//! Buffered jobs of fio on a machine with a page cache, on a device of fixed speed.

use iosched::{Flags, IoClass, IoPriority, Op};
use iosched_disk::Profile;
use iosched_machine::description::Machine;
use iosched_sim::{JobResult, Note, Observer, Plan, RunResult, Submitted, run};
use iosched_workload::Workload;
use iosched_workload::fio::{
    CgroupMember, Client, Files, Job, JobFile, Jobs, Mode, OpenSync, Placement, Size, ThinkTime,
};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;
const RANDOM: Placement = Placement::Random { ios_per_offset: 1 };

/// Returns a machine with today's kernel and `cache_mib` of memory. Writers are not delayed while
/// at most 15 % of the memory is dirty. At 20 %, they are limited to the rate of the disk.
fn machine(cache_mib: u64) -> Machine {
    let text = include_str!("../../lab/machines/linux-6.12.toml");
    Machine { cache_mib, ..toml::from_str(text).unwrap() }
}

/// Returns a device with a volatile cache. It serves one command at a time, in 100 us plus the
/// transfer at 10 MB/s.
fn device() -> Profile {
    let text = "kind = \"server\"\n[server]\ncapacity_sectors = 4194304\ndepth = 32\nmax_hw_sectors_kb = 512\n\
                write_cache = true\nservers = 1\nflush_ns = 1000000\n\
                [server.read]\ntransit_ns = 0\nservice_ns = 100000\nbytes_per_second = 10000000\n";
    Profile::parse("server", text).unwrap()
}

fn job(name: &str, mode: Mode, size: u64) -> Job {
    Job { mode, size: Some(Size::Bytes(size)), ..Job::new(name) }
}

fn timed(job: Job, seconds: u64) -> Job {
    Job { runtime_ns: Some(seconds * SECOND), time_based: true, ..job }
}

fn workload(jobs: Vec<Job>) -> Workload {
    Workload::Jobs(Jobs::new(JobFile { name: "t.fio".to_owned(), jobs, ignored: Vec::new() }))
}

fn watched(machine: &Machine, jobs: Vec<Job>, observer: impl Observer) -> RunResult {
    let (workload, profile) = (workload(jobs), device());
    let plan = Plan { machine: Some(machine), ..Plan::new(&workload, &profile, "mq-deadline".parse().unwrap()) };
    run(&plan, observer).unwrap()
}

fn result(machine: &Machine, jobs: Vec<Job>) -> RunResult {
    watched(machine, jobs, ())
}

/// Returns the rate of a job's writes, bytes/s.
fn rate(job: &JobResult) -> f64 {
    job.write.bytes as f64 * 1e9 / (job.ended_ns - job.started_ns.unwrap()) as f64
}

/// Flags of bios, by task.
#[derive(Default)]
struct Bios(Vec<(usize, Op, Flags, u64)>);

impl Observer for Bios {
    fn submitted(&mut self, now_ns: u64, bio: &Submitted) {
        self.0.push((bio.task, bio.op, bio.flags, now_ns));
    }
}

#[test]
fn ionice_reaches_buffered_reads_from_linux_6_0() {
    let share = |scheduler: &str| {
        let reader = |name: &str, class, copy| {
            let job =
                Job { placement: RANDOM, ioprio: IoPriority::new(class, 4), copy, ..job(name, Mode::Read, 256 * MIB) };
            timed(job, 5)
        };
        let mut jobs = vec![reader("idle", IoClass::Idle, 0)];
        jobs.extend((0..4).map(|copy| reader("usual", IoClass::BestEffort, copy)));
        let (workload, profile, machine) = (workload(jobs), device(), machine(4000));
        let plan = Plan { machine: Some(&machine), ..Plan::new(&workload, &profile, scheduler.parse().unwrap()) };
        let result = run(&plan, ()).unwrap();
        let bytes: Vec<u64> = result.jobs.iter().map(|job| job.read.bytes).collect();
        bytes[0] as f64 / bytes.iter().sum::<u64>() as f64
    };
    let (before, after) = (share("mq-deadline @ 5.19"), share("mq-deadline @ 6.0"));
    assert!((0.18..0.22).contains(&before) && after < 0.05, "{before} {after}");
}

#[test]
fn a_writer_within_memory_does_not_reach_the_disk() {
    let result = result(&machine(1000), vec![job("w", Mode::Write, 64 * MIB)]);
    assert!(rate(&result.jobs[0]) > 1e9, "{}", rate(&result.jobs[0]));
    assert_eq!((result.bytes_written, result.jobs[0].write.ios), (0, 16_384));
    // A task's result contains the calls of this task only.
    let task = result.tasks.last().unwrap();
    assert_eq!((task.name.as_str(), task.ios, task.bytes_written), ("w", 16_384, 64 * MIB));
    assert_eq!(result.notes, []);
}

#[test]
fn writers_above_the_limit_get_the_rate_of_the_disk() {
    for writers in [1, 4] {
        let jobs = (0..writers).map(|copy| Job { copy, ..timed(job("w", Mode::Write, 256 * MIB), 60) }).collect();
        let result = result(&machine(100), jobs);
        let all: f64 = result.jobs.iter().map(rate).sum();
        // At the start, 20 MB of memory were free, and at the end, a part of it is free again.
        assert!((9e6..10.6e6).contains(&all), "{writers}: {all}");
        let slowest = result.jobs.iter().map(rate).fold(f64::MAX, f64::min);
        assert!(slowest > all / writers as f64 * 0.8, "{writers}: {slowest} of {all}");
        let busy = result.utilisation().unwrap();
        assert!(busy > 0.95, "{writers}: {busy}");
    }
}

#[test]
fn fsync_flushes_before_and_after_the_commit_block() {
    let synced = Job { fsync_ios: 1, ..job("w", Mode::Write, 40 * KIB) };
    let result = result(&machine(1000), vec![synced]);
    let job = &result.jobs[0];
    assert_eq!((job.write.ios, job.sync.count()), (10, 10));
    assert_eq!(result.queue.flushes.ios, 20, "without FUA each commit flushes twice");
    // Each commit writes the data, a descriptor, at least the inode, and the commit block.
    assert!((10 * 16 * KIB..10 * 28 * KIB).contains(&result.bytes_written), "{}", result.bytes_written);
    assert!(job.sync.mean_ns() > 2_000_000.0 && job.write.completion.mean_ns() < 50_000.0);
}

#[test]
fn fdatasync_of_allocated_blocks_writes_no_journal() {
    let option = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let log = Job { fdatasync_ios: 1, options: vec![option("overwrite", "1")], ..job("log", Mode::Write, 40 * KIB) };
    let overwritten = result(&machine(1000), vec![log.clone()]);
    assert_eq!((overwritten.queue.flushes.ios, overwritten.bytes_written), (10, 40 * KIB));
    // The journal must also record that unwritten blocks become written.
    let preallocated = result(&machine(1000), vec![Job { options: Vec::new(), ..log }]);
    assert_eq!(preallocated.queue.flushes.ios, 20);
}

#[test]
fn sync_writes_and_end_fsync_reach_the_medium() {
    let sync = result(&machine(1000), vec![Job { open_sync: OpenSync::Sync, ..job("w", Mode::Write, 40 * KIB) }]);
    assert_eq!(sync.queue.flushes.ios, 20);
    let end = result(&machine(1000), vec![Job { end_fsync: true, ..job("w", Mode::Write, 8 * MIB) }]);
    assert!(end.bytes_written >= 8 * MIB && end.jobs[0].sync.count() == 1);
    assert!(end.jobs[0].ended_ns > SECOND / 2, "{}", end.jobs[0].ended_ns);
    let closed = result(&machine(1000), vec![Job { fsync_on_close: true, ..job("w", Mode::Write, 8 * MIB) }]);
    assert_eq!(closed.bytes_written, end.bytes_written);
}

#[test]
fn old_pages_are_written_back_and_the_journal_commits() {
    let pause_ns = SECOND / 10;
    let slow = Job { think_time: ThinkTime { pause_ns, ..ThinkTime::default() }, ..job("w", Mode::Write, 64 * MIB) };
    let before = result(&machine(1000), vec![timed(slow.clone(), 29)]);
    let after = result(&machine(1000), vec![timed(slow, 60)]);
    assert_eq!((before.queue.flushes.ios, before.jobs[0].write.ios), (10, 290));
    assert!(before.bytes_written < 290 * 4 * KIB && after.bytes_written > 300 * 4 * KIB);
}

#[test]
fn buffered_reader_reads_ahead_and_rereads_from_the_cache() {
    let loops = |loops| result(&machine(1000), vec![Job { loops, ..job("r", Mode::Read, 16 * MIB) }]);
    let once = loops(1);
    assert_eq!((once.bytes_read, once.jobs[0].read.ios), (16 * MIB, 4096));
    assert!(once.requests_dispatched < 200, "{}", once.requests_dispatched);
    let twice = loops(2);
    assert_eq!((twice.bytes_read, twice.jobs[0].read.ios), (16 * MIB, 8192));
    let random = result(&machine(1000), vec![Job { placement: RANDOM, ..job("r", Mode::Read, 16 * MIB) }]);
    assert_eq!((random.bytes_read, random.requests_dispatched), (16 * MIB, 4096));
}

#[test]
fn read_ahead_kb_of_the_disk_overrides_the_machine() {
    let (workload, profile) = (workload(vec![job("reader", Mode::Read, 8 * MIB)]), device());
    let requests = |of_machine, setting: &str| {
        let machine = Machine { read_ahead_kb: of_machine, ..machine(64) };
        let plan = Plan { machine: Some(&machine), ..Plan::new(&workload, &profile, setting.parse().unwrap()) };
        run(&plan, ()).unwrap().requests_dispatched
    };
    let wide = requests(512, "mq-deadline");
    assert_eq!(requests(32, "mq-deadline:read_ahead_kb=512"), wide);
    let narrow = requests(32, "mq-deadline");
    assert_eq!(requests(512, "mq-deadline:read_ahead_kb=32"), narrow);
    assert!(narrow > 4 * wide, "{narrow} against {wide}");
    assert_eq!(requests(512, "mq-deadline:read_ahead_kb=0"), 8 * MIB / (4 * KIB));
}

#[test]
fn bios_have_the_flags_that_wbt_checks() {
    let buffered = Job { fsync_ios: 64, placement: RANDOM, ..job("buffered", Mode::Write, 4 * MIB) };
    let direct = Job { direct: true, ..job("direct", Mode::Write, 4 * MIB) };
    let flood = timed(job("flood", Mode::Write, 256 * MIB), 20);
    let mut bios = Bios::default();
    let result = watched(&machine(100), vec![buffered, direct, flood], &mut bios as &mut dyn Observer);
    let number = |name: &str| result.tasks.iter().position(|task| task.name == name).unwrap();
    let all = |name: &str, expected: Flags| {
        let writes = bios.0.iter().filter(|(task, op, ..)| *task == number(name) && *op == Op::Write);
        let found: Vec<Flags> = writes.map(|(_, _, flags, _)| *flags & (Flags::SYNC | Flags::IDLE)).collect();
        assert!(!found.is_empty() && found.iter().all(|flags| *flags == expected), "{name}");
    };
    all("buffered", Flags::SYNC);
    all("direct", Flags::SYNC | Flags::IDLE);
    all("flush-0", Flags::empty());
    all("jbd-0", Flags::SYNC | Flags::IDLE);
}

#[test]
fn direct_job_keeps_its_depth_next_to_a_buffered_job() {
    let direct = Job {
        direct: true,
        client: Client::Async,
        io_depth: 4,
        io_depth_low: 4,
        placement: RANDOM,
        number_ios: Some(1000),
        ..job("direct", Mode::Read, 64 * MIB)
    };
    let result = result(&machine(1000), vec![direct, job("w", Mode::Write, MIB)]);
    let job = &result.jobs[0];
    assert!(job.depth_level[2] >= 997, "{:?}", job.depth_level);
    // A single read takes 510 us. With four in flight, each read waits for the others.
    assert!((1.9e6..2.2e6).contains(&job.read.completion.mean_ns()), "{}", job.read.completion.mean_ns());
}

#[test]
fn buffered_async_engines_do_one_io_at_a_time() {
    let buffered = Job { client: Client::Async, io_depth: 8, io_depth_low: 8, ..job("w", Mode::Write, MIB) };
    let result = result(&machine(1000), vec![buffered]);
    assert_eq!(result.notes, [Note::BufferedOneByOne { jobs: 1 }]);
    assert_eq!(result.jobs[0].write.ios, 256);
}

#[test]
fn a_device_has_a_page_cache_and_no_journal() {
    let files = Files::Named(vec!["/dev/sda".to_owned()]);
    let raw = Job { files, fsync_ios: 1, ..job("w", Mode::Write, 40 * KIB) };
    let result = result(&machine(1000), vec![raw]);
    assert_eq!((result.bytes_written, result.queue.flushes.ios), (40 * KIB, 10));
}

#[test]
fn stonewall_and_exitall_work_for_buffered_jobs() {
    let first = job("first", Mode::Write, MIB);
    let second = Job {
        stonewall: true,
        exit_all: Some(iosched_workload::fio::ExitWhat::All),
        ..job("second", Mode::Write, MIB)
    };
    let think_time = ThinkTime { pause_ns: 1000 * SECOND, ..ThinkTime::default() };
    let sleeper = Job { think_time, ..job("sleeper", Mode::Write, MIB) };
    let result = result(&machine(1000), vec![first, second, sleeper]);
    let [first, second, sleeper] = &result.jobs[..] else { panic!("the run must have three jobs") };
    assert!(second.started_ns >= Some(first.ended_ns));
    assert_eq!((sleeper.write.ios, second.write.ios), (1, 256));
    assert!(sleeper.ended_ns < SECOND, "{}", sleeper.ended_ns);
}

#[test]
fn io_max_does_not_limit_writeback_of_a_cgroup() {
    let in_group =
        |name: &str, job: Job| Job { cgroup: Some(CgroupMember { name: name.to_owned(), weight: None }), ..job };
    let limited = |job: Job| {
        let (workload, profile, machine) = (workload(vec![timed(in_group("slow", job), 20)]), device(), machine(100));
        let scheduler = "none:io.max=slow:riops=10/wbps=100000".parse().unwrap();
        run(&Plan { machine: Some(&machine), ..Plan::new(&workload, &profile, scheduler) }, ()).unwrap().jobs.remove(0)
    };
    let reader = limited(Job { placement: RANDOM, ..job("reader", Mode::Read, 64 * MIB) });
    assert!((190..=210).contains(&reader.read.ios), "{}", reader.read.ios);
    let writer = limited(job("writer", Mode::Write, 256 * MIB));
    assert!(rate(&writer) > 9e6, "{}", rate(&writer));
    let synced = limited(Job { fsync_ios: 16, ..job("synced", Mode::Write, 256 * MIB) });
    assert!(rate(&synced) < 110_000.0, "{}", rate(&synced));
}

#[test]
fn cgroup_of_a_throttled_writer_affects_wbt_up_to_6_7() {
    // The writer sleeps because it has dirtied too much memory. wbt's latency target is so high
    // that wbt never reduces its limit.
    let reads = |kernel: &str, cgroup: Option<&str>| {
        let reader = Job { placement: RANDOM, ..timed(job("reader", Mode::Read, 64 * MIB), 20) };
        let cgroup = cgroup.map(|name| CgroupMember { name: name.to_owned(), weight: None });
        let writer = Job { cgroup, ..timed(job("writer", Mode::Write, 256 * MIB), 20) };
        let (workload, profile, machine) = (workload(vec![reader, writer]), device(), machine(100));
        let scheduler = format!("none:wbt_lat_usec=4000000 @ {kernel}").parse().unwrap();
        let result = run(&Plan { machine: Some(&machine), ..Plan::new(&workload, &profile, scheduler) }, ()).unwrap();
        result.jobs[0].read.ios as f64
    };
    let [before, after] = ["6.7", "6.8"].map(|kernel| reads(kernel, Some("db")) / reads(kernel, None));
    assert!((before - 1.0).abs() > 0.05 && after == 1.0, "{before} {after}");
}

#[test]
fn equal_buffered_runs_give_equal_results() {
    let jobs = || {
        let mixed = Job { placement: RANDOM, fsync_ios: 7, ..job("mixed", Mode::ReadWrite, 8 * MIB) };
        vec![mixed, timed(job("w", Mode::Write, 64 * MIB), 10)]
    };
    assert_eq!(result(&machine(100), jobs()), result(&machine(100), jobs()));
}
