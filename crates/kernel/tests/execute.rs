//! Workloads run with real system calls, on files in a temporary directory. No test here needs
//! root.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use iosched::{Flags, Op, Time};
use iosched_kernel::{BlockDevice, ExecuteError, ExecuteOptions, Roots, StateDirectory, Target, execute};
use iosched_trace::TraceRequest;
use iosched_workload::app::Spec;
use iosched_workload::fio::{JobFile, Jobs, NoVariables};
use iosched_workload::outcome::{IoBin, Note, RunResult};
use iosched_workload::{Arrival, Hints, Pattern, Replay, Task, TaskOp, TaskSet, Think, Trace, Workload};

const MIB: u64 = 1 << 20;

/// A directory for a target.
struct TargetDirectory(tempfile::TempDir);

impl TargetDirectory {
    fn new() -> Self {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("data")).unwrap();
        Self(here)
    }

    fn target(&self) -> Target {
        let state = StateDirectory::at(&self.0.path().join("state"));
        Target::directory(&Roots::default(), &self.data(), &state).unwrap()
    }

    fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    /// Returns whether no file is left in the target's directory.
    fn is_clean(&self) -> bool {
        std::fs::read_dir(self.data()).unwrap().count() == 0
    }
}

fn jobs(text: &str) -> Workload {
    Workload::Jobs(Jobs::new(JobFile::parse("t.fio", text.as_bytes(), &NoVariables).unwrap()))
}

fn set(tasks: Vec<Task>) -> Workload {
    Workload::Tasks(Box::new(TaskSet { name: "t".to_owned(), tasks, ..TaskSet::default() }))
}

/// Returns a task that reads 50 random blocks of 4 KiB.
fn reader(pid: u32) -> Task {
    Task { pattern: Some(Pattern::Random), range: Some([0, 8192]), total: Some(50), ..Task::new(pid) }
}

/// Runs a workload on files that are removed afterwards.
fn run(workload: &Workload) -> RunResult {
    let place = TargetDirectory::new();
    let target = place.target().with_disk_bytes(8 * MIB);
    let result = execute::run(workload, &target, &ExecuteOptions::default()).unwrap();
    drop(target);
    assert!(place.is_clean());
    for task in &result.tasks {
        assert!(task.first_submit_ns.unwrap() <= task.last_completion_ns.unwrap());
        assert!(task.last_completion_ns.unwrap() <= result.finished_ns);
    }
    let sum =
        |of: fn(&IoBin) -> u64| result.io_timeline.iter().flat_map(|timeline| &timeline.bins).map(of).sum::<u64>();
    assert_eq!(sum(|bin| bin.ios), result.ios, "every I/O is in the timeline");
    assert_eq!(sum(|bin| bin.bytes_read + bin.bytes_written), result.bytes_read + result.bytes_written);
    result
}

#[test]
fn jobs_do_all_their_ios_at_their_queue_depth() {
    let text = "[a]\nrw=randread\nsize=2m\nbs=8k\ndirect=1\nioengine=io_uring\niodepth=8\n[b]\nrw=read\nsize=1m\n";
    let result = run(&jobs(text));
    assert_eq!((result.tasks[0].ios, result.tasks[0].bytes_read), (256, 2 * MIB));
    assert_eq!((result.tasks[1].ios, result.tasks[1].bytes_read), (256, MIB));
    assert_eq!((result.ios, result.bytes_read, result.bytes_written), (512, 3 * MIB, 0));
    assert_eq!(result.latency.reads.count(), 512);
    assert_eq!(result.jobs[0].read.ios, 256);
    // The job passes each depth from 1 to 7 once, and then stays at its full depth. The levels
    // count the depths 1, 2 to 3, and 4 to 7.
    assert_eq!(result.jobs[0].depth_level[..3], [1, 2, 4]);
    assert_eq!(result.jobs[0].depth_level.iter().sum::<u64>(), 256);
    assert_eq!(result.jobs[1].depth_level[0], 256);
}

#[test]
fn jobs_write_and_sync_as_often_as_requested() {
    let text = "[global]\nrw=write\nsize=256k\nfsync=16\n[calls]\ndirect=1\n[ring]\nioengine=libaio\niodepth=4\ndirect=1\n\
                [buffered]\nfdatasync=8\nfsync=0\nsync=dsync\n[files]\nnrfiles=4\nend_fsync=1\nfsync=0\n";
    let result = run(&jobs(text));
    let syncs: Vec<u64> = result.jobs.iter().map(|job| job.sync.count()).collect();
    assert_eq!(syncs, [4, 4, 8, 1]);
    assert!(result.jobs.iter().all(|job| job.write.ios == 64));
    assert_eq!(result.bytes_written, MIB);
    // The last job syncs each of its four files.
    assert_eq!(result.latency.others.count(), 4 + 4 + 8 + 4);
    assert_eq!((result.latency.writes_sync.count(), result.latency.writes_async.count()), (192, 64));
}

#[test]
fn stonewall_waits_for_jobs_and_exitall_ends_them() {
    let text = "[global]\nrw=randread\nsize=1m\n[a]\nnumber_ios=20\nthinktime=5000\nexitall\n\
                [b]\nthinktime=1000\ntime_based\nruntime=60\n[c]\nstonewall\nnumber_ios=5\n";
    let result = run(&jobs(text));
    let [a, b, c] = &result.jobs[..] else { panic!("three jobs") };
    assert_eq!((a.read.ios, c.read.ios), (20, 5));
    assert!(b.read.ios > 0 && b.ended_ns >= a.ended_ns);
    assert!(c.started_ns.unwrap() >= b.ended_ns.max(a.ended_ns));
}

#[test]
fn trims_run_and_transfer_no_data() {
    let result = run(&jobs("[a]\nrw=trim\nsize=64k\nbs=4k\ndirect=1\n"));
    assert_eq!((result.jobs[0].trim.ios, result.latency.others.count(), result.bytes_written), (16, 16, 0));
}

#[test]
fn tasks_do_all_their_ios_at_any_queue_depth() {
    let deep = Task { iodepth: 8, batch: 4, nr_sectors: Some(16), ..reader(2) };
    let writer = Task { op: TaskOp::Write, nr_sectors: Some(64), pattern: Some(Pattern::Seq), ..reader(3) };
    let lazy = Task { pid: 4, sync: Some(false), ..writer.clone() };
    let zeroes = Task { op: TaskOp::Other, total: Some(3), ..reader(5) };
    let result = run(&set(vec![reader(1), deep, writer, lazy, zeroes]));
    assert_eq!(result.tasks.iter().map(|task| task.ios).collect::<Vec<_>>(), [50, 50, 50, 50, 3]);
    assert_eq!(result.bytes_read, 50 * 4096 + 50 * 8192);
    assert_eq!(result.bytes_written, 2 * 50 * 32768);
    assert_eq!((result.latency.writes_sync.count(), result.latency.writes_async.count()), (50, 50));
    assert!(result.notes.contains(&Note::ThroughPageCache { tasks: 1 }));
}

#[test]
fn task_waits_for_its_start_and_think_times() {
    let task = Task { total: Some(11), think_ns: Some(Think::Fixed(5_000_000)), start_ns: 20_000_000, ..reader(1) };
    let result = run(&set(vec![task]));
    assert!(result.tasks[0].first_submit_ns.unwrap() >= 20_000_000);
    assert!(result.finished_ns >= 70_000_000);
    assert_eq!(result.lateness.unwrap().count(), 11);
}

#[test]
fn relayed_tasks_take_turns_until_none_continues() {
    let relay = |pid, other, iodepth| Task { relay: Some(other), total: Some(20), iodepth, ..reader(pid) };
    let result = run(&set(vec![relay(1, 2, 1), relay(2, 1, 0)]));
    assert_eq!([result.tasks[0].ios, result.tasks[1].ios], [20, 20]);
    let first = Task { wakes: Some(2), iodepth: 4, total: Some(4), ..reader(1) };
    let second = Task { wakes: Some(3), iodepth: 0, ..reader(2) };
    let third = Task { iodepth: 0, total: Some(3), ..reader(3) };
    let result = run(&set(vec![first, second, third]));
    assert_eq!(result.tasks.iter().map(|task| task.ios).collect::<Vec<_>>(), [4, 4, 3]);
}

#[test]
fn open_replay_keeps_times_and_wraps_addresses() {
    let tasks = TaskSet {
        tasks: vec![Task { exit_ns: Some(30_000_000), total: None, ..reader(1) }, Task::new(2)],
        arrivals: vec![
            Arrival(10_000_000, 2, TaskOp::Read, true, 1 << 40, 8, Hints::default()),
            Arrival(5_000_000, 2, TaskOp::Write, true, 8, 8, Hints::default()),
        ],
        ..TaskSet::default()
    };
    let result = run(&Workload::Tasks(Box::new(tasks)));
    assert!(result.tasks[0].ios > 0);
    assert_eq!((result.tasks[1].ios, result.bytes_written), (2, 4096));
    assert!(result.tasks[1].first_submit_ns.unwrap() >= 5_000_000);
    assert!(result.notes.contains(&Note::PastEnd { ios: 1, capacity_sectors: 8 * MIB / 512 }));
}

/// Returns a trace of `reads` reads by two processes. One read arrives every millisecond and
/// completes half a millisecond later.
fn trace(reads: u64) -> Workload {
    let request = |number: u64| {
        Ok(TraceRequest {
            arrival: Time::from_ns(number * 1_000_000),
            pid: 1 + number as u32 % 2,
            device: None,
            op: Op::Read,
            flags: Flags::SYNC,
            sector: number * 4096,
            nr_sectors: 8,
            latency_ns: Some(500_000),
            ioprio: None,
        })
    };
    Workload::Trace(Arc::new(Trace::collect("t", 1, (0..reads).map(request)).unwrap()))
}

/// Returns the ioprio of each of this process's threads, in the kernel's encoding.
fn ioprios() -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let numbers = threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok());
    numbers.filter_map(iosched_system::call::ioprio_of).collect()
}

#[test]
fn a_replayed_process_has_its_recorded_priority() {
    let Workload::Trace(mut trace) = trace(200) else { unreachable!() };
    let backup = "2=best-effort:6".parse().unwrap();
    Arc::get_mut(&mut trace).unwrap().prioritise(&[backup]).unwrap();
    let workload = Workload::Trace(trace);
    let place = TargetDirectory::new();
    let target = place.target().with_disk_bytes(8 * MIB);
    let prepared = execute::prepare(&workload, &target, None).unwrap();
    let wanted = 2 << 13 | 6;
    assert!(!ioprios().contains(&wanted));
    let (result, was_seen) = std::thread::scope(|scope| {
        let run = scope.spawn(|| prepared.run(&ExecuteOptions::default()).unwrap());
        let mut was_seen = false;
        while !run.is_finished() && !was_seen {
            was_seen = ioprios().contains(&wanted);
            std::thread::sleep(Duration::from_millis(5));
        }
        (run.join().unwrap(), was_seen)
    });
    assert!(was_seen);
    assert_eq!([&result.tasks[0].ioprio, &result.tasks[1].ioprio], ["none", "be/6"]);
}

#[test]
fn trace_replay_keeps_arrival_times_and_records_lateness() {
    let place = TargetDirectory::new();
    let target = place.target().with_disk_bytes(8 * MIB);
    let workload = trace(40);
    let prepared = execute::prepare(&workload, &target, None).unwrap();
    let open = |speed| Replay::Open { speed };
    for (replay, least_ns) in [(open(1.0), 39_000_000), (open(2.0), 19_500_000), (Replay::Closed, 0)] {
        let result = prepared.run(&ExecuteOptions { replay, ..ExecuteOptions::default() }).unwrap();
        assert_eq!([result.tasks[0].ios, result.tasks[1].ios, result.bytes_read], [20, 20, 40 * 4096]);
        assert!(result.finished_ns >= least_ns, "{replay:?}");
        assert_eq!(result.lateness.as_ref().unwrap().count(), 40);
        let fits = |note: &Note| matches!(note, Note::GapsShrunk { .. } | Note::Wrapped { .. });
        assert!(result.notes.iter().any(fits), "{:?}", result.notes);
    }
}

/// Runs an application in its own directory.
fn application(line: &str) -> RunResult {
    run(&Workload::Application(Box::new(Spec::parse(line).unwrap())))
}

#[test]
fn applications_make_their_calls_and_report() {
    let result = application("dd if=/dev/zero of=out bs=64k count=32 conv=fsync");
    assert_eq!(
        (result.bytes_written, result.latency.writes_async.count(), result.latency.others.count()),
        (2 * MIB, 32, 1)
    );
    assert_eq!((result.sync_calls.fsync.count(), result.sync_calls.fdatasync.count()), (1, 0));
    let read = application("dd if=in of=/dev/null bs=64k count=32");
    assert_eq!(read.bytes_read, 2 * MIB);
    for line in
        ["fdtree -l 2 -d 2 -f 3 -s 4", "fs_mark -d /x -n 20 -s 4096 -t 2", "iozone -i 0 -i 1 -r 64 -s 1024 -t 2"]
    {
        let result = application(line);
        assert!(result.bytes_written > 0 && result.finished_ns > 0, "{line}");
        let report = result.app.unwrap();
        assert!(!report.figures.is_empty() && report.figures.iter().all(|figure| figure.value.is_finite()), "{line}");
    }
}

#[test]
fn program_for_a_device_is_refused_on_a_directory() {
    let workload = Workload::open("dd if=/dev/sda of=/dev/null bs=1M count=4").unwrap();
    let place = TargetDirectory::new();
    let refused = execute::run(&workload, &place.target(), &ExecuteOptions::default()).unwrap_err();
    assert!(matches!(refused, ExecuteError::UsesDevice { .. }), "{refused}");
}

#[test]
fn timeout_ends_a_program() {
    let result = run(&Workload::open("timeout 0.3 ioping -i 20ms .").unwrap());
    assert!((1..60).contains(&result.ios), "{}", result.ios);
}

#[test]
fn a_program_that_works_on_files_needs_a_directory() {
    let Some(device) = BlockDevice::disks(&Roots::default()).into_iter().next() else {
        println!("skipped: a block device is not available here");
        return;
    };
    let workload = Workload::Application(Box::new(Spec::parse("fdtree -l 1").unwrap()));
    let error = execute::prepare(&workload, &Target::read_only(device), None).unwrap_err();
    assert!(matches!(error, ExecuteError::NeedsDirectory { .. }), "{error}");
}

#[test]
fn a_run_is_limited_and_its_warm_up_does_not_count() {
    let place = TargetDirectory::new();
    let target = place.target().with_disk_bytes(MIB);
    let endless = set(vec![Task { total: None, ..reader(1) }]);
    let options = ExecuteOptions { warm_up_ns: 30_000_000, run_for_ns: Some(50_000_000), ..ExecuteOptions::default() };
    let result = execute::run(&endless, &target, &options).unwrap();
    assert_eq!(result.counted_from_ns, 30_000_000);
    assert!(result.finished_ns >= 30_000_000 && result.events > result.ios && result.ios > 0);
    assert!(result.notes.iter().any(|note| matches!(note, Note::Limited { at_ns: 80_000_000.., .. })));
    let job = jobs("[a]\nrw=randread\nsize=1m\ntime_based\nruntime=60\n");
    let result = execute::run(&job, &target, &options).unwrap();
    assert_eq!((result.counted_from_ns, result.jobs[0].counted_from_ns), (30_000_000, 30_000_000));
    assert_eq!(result.jobs[0].read.ios, result.ios);
}

#[test]
fn interrupt_ends_a_run_and_leaves_no_files() {
    let place = TargetDirectory::new();
    let endless = set(vec![Task { total: None, ..reader(1) }]);
    let late = jobs("[a]\nrw=read\nsize=1m\nstartdelay=1h\n");
    let program = Workload::Application(Box::new(Spec::parse("dd if=/dev/zero of=out bs=1 count=1G").unwrap()));
    for workload in [endless, late, trace(1_000_000), program] {
        let interrupt = AtomicBool::new(false);
        let target = place.target().with_disk_bytes(MIB);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(200));
                interrupt.store(true, Ordering::Relaxed);
            });
            let options = ExecuteOptions { interrupt: Some(&interrupt), ..ExecuteOptions::default() };
            let error = execute::run(&workload, &target, &options).unwrap_err();
            assert!(matches!(error, ExecuteError::Interrupted { .. }), "{error}");
        });
        drop(target);
        assert!(place.is_clean());
    }
}

#[test]
fn impossible_runs_give_specific_errors() {
    let place = TargetDirectory::new();
    let run = |workload: &Workload, disk_bytes, options: &ExecuteOptions<'_>| {
        execute::run(workload, &place.target().with_disk_bytes(disk_bytes), options).unwrap_err()
    };
    let options = ExecuteOptions::default();
    assert!(matches!(run(&set(vec![reader(1)]), 1 << 60, &options), ExecuteError::NoRoom { .. }));
    let long = set(vec![Task { nr_sectors: Some(u32::MAX), ..reader(1) }]);
    assert!(matches!(run(&long, MIB, &options), ExecuteError::TooLong { .. }));
    let speed = ExecuteOptions { replay: Replay::Open { speed: 0.0 }, ..options };
    assert!(matches!(run(&trace(1), MIB, &speed), ExecuteError::Speed { .. }));
}

#[test]
fn a_device_is_not_written_without_consent() {
    let Some(device) = BlockDevice::disks(&Roots::default()).into_iter().next() else {
        println!("skipped: a block device is not available here");
        return;
    };
    let target = Target::read_only(device);
    let write = set(vec![Task { op: TaskOp::Write, ..reader(1) }]);
    let text = ["[a]\nrw=randrw\nfilename=/dev/x\n", "[a]\nrw=randtrim\nsize=1m\n"];
    for workload in [write, jobs(text[0]), jobs(text[1])] {
        let error = execute::prepare(&workload, &target, None).unwrap_err();
        assert!(matches!(error, ExecuteError::NoConsent { .. }), "{error}");
        // The message proposes `--destroy-data`, unless the device is in use or has no medium.
        assert!(
            error.to_string().contains("iosched does not write to this device: /dev/")
                || error.to_string().contains("--destroy-data /dev/"),
            "{error}"
        );
    }
}

#[test]
fn kept_disk_is_created_once_and_removed_with_target() {
    let place = TargetDirectory::new();
    let target = place.target().with_disk_bytes(2 * MIB).keeping_disk();
    let disk = || {
        let own_directory = std::fs::read_dir(place.data()).unwrap().next().unwrap().unwrap().path();
        let mut files = std::fs::read_dir(own_directory).unwrap().map(|entry| entry.unwrap().path().join("disk"));
        let disk = files.find(|path| path.is_file()).expect("the disk is kept between runs");
        let about = std::fs::metadata(&disk).unwrap();
        (disk, about.len(), about.modified().unwrap())
    };
    for kind in ["read", "randread"] {
        let text = format!("[a]\nfilename=/dev/target\nrw={kind}\nsize=1m\n");
        execute::run(&jobs(&text), &target, &ExecuteOptions::default()).unwrap();
        assert_eq!(disk().1, 2 * MIB);
    }
    let before = disk();
    execute::run(&set(vec![reader(1)]), &target, &ExecuteOptions::default()).unwrap();
    assert_eq!(disk(), before, "the disk was not created or filled again");
    drop(target);
    assert!(place.is_clean());
}

#[test]
fn run_fails_if_its_directory_is_exchanged() {
    let writer = jobs("[a]\nrw=randwrite\nsize=64k\ntime_based\nruntime=200ms\n");
    let program = Workload::Application(Box::new(Spec::parse("dd if=/dev/zero of=out bs=64k count=4").unwrap()));
    for workload in &[writer, program] {
        let place = TargetDirectory::new();
        let victim = place.0.path().join("victim");
        std::fs::create_dir_all(victim.join("0")).unwrap();
        std::fs::write(victim.join("0/0"), "precious").unwrap();
        let target = place.target();
        let prepared = execute::prepare(workload, &target, None).unwrap();
        let own_directory = std::fs::read_dir(place.data()).unwrap().next().unwrap().unwrap().path();
        let error = std::thread::scope(|scope| {
            let run = scope.spawn(|| prepared.run(&ExecuteOptions::default()));
            std::fs::rename(&own_directory, place.0.path().join("moved")).unwrap();
            std::os::unix::fs::symlink(&victim, &own_directory).unwrap();
            run.join().unwrap().err().or_else(|| prepared.run(&ExecuteOptions::default()).err())
        });
        let error = error.expect("the run must fail after the exchange").to_string();
        assert!(error.contains("another process replaced or moved the directory"), "{error}");
        drop(prepared);
        drop(target);
        assert_eq!(std::fs::read(victim.join("0/0")).unwrap(), b"precious");
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 1);
    }
}

#[test]
fn command_directory_stays_empty_and_refuses_workloads() {
    let place = TargetDirectory::new();
    let target = Target::directory_of_command(&Roots::default(), &place.data()).unwrap();
    assert!(place.is_clean());
    let error = execute::prepare(&jobs("[a]\nrw=read\nsize=64k\n"), &target, None).unwrap_err().to_string();
    assert!(error.contains("iosched's own workloads do not run in it"), "{error}");
}
