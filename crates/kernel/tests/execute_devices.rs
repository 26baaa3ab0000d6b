//! Workloads on loop devices, as root.

mod loops;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use iosched_kernel::{ExecuteOptions, Session, Target, consent, execute};
use iosched_testing::machine::{available, has_program};
use iosched_workload::outcome::{Note, RunResult};
use iosched_workload::{Cgroup, CgroupMove, Class, Pattern, Task, TaskOp, TaskSet, Workload};
use loops::Loop;

fn set(tasks: Vec<Task>) -> Workload {
    Workload::Tasks(Box::new(TaskSet { name: "t".to_owned(), tasks, ..TaskSet::default() }))
}

fn reader(pid: u32) -> Task {
    Task { pattern: Some(Pattern::Random), range: Some([0, 1 << 16]), ..Task::new(pid) }
}

/// Runs a workload that may destroy the data on the disk.
fn run(disk: &Loop, workload: &Workload, options: &ExecuteOptions<'_>) -> RunResult {
    let consent = consent::to_write(&disk.device(), Some(&disk.path)).unwrap();
    execute::run(workload, &Target::writable(consent), options).unwrap()
}

#[test]
fn device_runs_report_the_kernels_counters() {
    let Some(disk) = Loop::new() else { return };
    let read = Task { total: Some(200), ..reader(1) };
    let write = Task { op: TaskOp::Write, nr_sectors: Some(64), ..Task { total: Some(100), ..reader(2) } };
    let discard = Task { op: TaskOp::Discard, total: Some(10), ..reader(3) };
    let result = run(&disk, &set(vec![read.clone(), write, discard]), &ExecuteOptions::default());
    assert_eq!((result.bytes_read, result.bytes_written), (200 * 4096, 100 * 32768));
    assert_eq!((result.queue.reads.sectors, result.queue.writes.sectors), (200 * 8, 100 * 64));
    assert_eq!(result.queue.discards.ios, 10);
    assert!(result.requests_dispatched >= 300 && result.requests_dispatched <= 310);
    let only_read =
        execute::run(&set(vec![read]), &Target::read_only(disk.device()), &ExecuteOptions::default()).unwrap();
    assert_eq!((only_read.ios, only_read.queue.reads.ios), (200, 200));
}

#[test]
fn tasks_join_their_cgroups_and_cgroups_are_removed() {
    let Some(disk) = Loop::new() else { return };
    let hierarchy = Path::new("/sys/fs/cgroup/blkio");
    if !available(hierarchy.join("tasks").exists(), "a hierarchy of cgroups with blkio") {
        return;
    }
    let cgroup = |name: &str, parent: &str, weight| Cgroup {
        name: name.to_owned(),
        parent: parent.to_owned(),
        weight,
        leaf_weight: 0,
    };
    let cgroups = || std::fs::read_dir(hierarchy).unwrap().flatten().map(|entry| entry.path());
    let prefix = format!("iosched-{}-", std::process::id());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    // The cgroup has the same depth as in the workload.
    let mine = || cgroups().find(|path| name(path).starts_with(&prefix) && name(path).ends_with(".outer"));
    let task = Task { cgroup: Some("inner".to_owned()), total: None, ..reader(1) };
    let workload = Workload::Tasks(Box::new(TaskSet {
        tasks: vec![task],
        cgroups: vec![cgroup("outer", "root", 0), cgroup("inner", "outer", 0)],
        cgroup_moves: vec![CgroupMove { t_ns: 400_000_000, pid: 1, cgroup: "outer".to_owned() }],
        ..TaskSet::default()
    }));
    std::thread::scope(|scope| {
        let options = ExecuteOptions { run_for_ns: Some(800_000_000), ..ExecuteOptions::default() };
        let (disk, workload) = (&disk, &workload);
        let ran = scope.spawn(move || run(disk, workload, &options));
        let threads = |below: &str| {
            std::fs::read_to_string(mine()?.join(below).join("tasks")).ok().filter(|text| !text.is_empty())
        };
        let mut seen = [None, None];
        while !ran.is_finished() {
            for (seen, below) in seen.iter_mut().zip(["inner", ""]) {
                *seen = seen.take().or_else(|| threads(below));
            }
            sleep(Duration::from_millis(10));
        }
        let result = ran.join().unwrap();
        assert!(!result.notes.iter().any(|note| matches!(note, Note::NotCarriedOut { .. })), "{:?}", result.notes);
        assert!(seen[0].is_some() && seen[0] == seen[1], "{seen:?}");
    });
    assert_eq!(cgroups().find(|path| name(path).starts_with(&prefix)), None);
}

/// A disk served by nbdkit, which executes one command at a time in 2 ms, and the mount of the
/// disk.
struct Slow {
    server: Child,
    mount: Child,
}

impl Slow {
    fn start(here: &Path) -> Self {
        let socket = here.join("socket");
        let quiet = |command: &mut Command| command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.arg("-f").arg("-U").arg(&socket).args(["--filter=noparallel", "--filter=delay", "memory", "64M"]);
        let server = quiet(nbdkit.args(["rdelay=2ms", "wdelay=2ms", "serialize=all-requests"]));
        wait_for(&socket);
        std::fs::create_dir(here.join("mount")).unwrap();
        let mut nbdfuse = Command::new("nbdfuse");
        let mount = quiet(nbdfuse.arg(here.join("mount")).arg(format!("nbd+unix:///?socket={}", socket.display())));
        wait_for(&here.join("mount/nbd"));
        Self { server, mount }
    }

    fn stop(mut self, here: &Path) {
        let _ = Command::new("fusermount3").arg("-u").arg(here.join("mount")).status();
        let _ = self.mount.wait();
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

fn wait_for(path: &Path) {
    for _ in 0..500 {
        if path.exists() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{}: still missing after 5 s", path.display());
}

#[test]
fn bfq_limits_idle_readers_and_none_does_not() {
    if !["nbdkit", "nbdfuse", "fusermount3"].into_iter().all(has_program) {
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let path = here.path().to_owned();
    let slow = Slow::start(&path);
    if let Some(disk) = Loop::over(here, &path.join("mount/nbd"), "on") {
        let deep = |pid, class| Task { class, iodepth: 64, ..reader(pid) };
        let workload = set(vec![deep(1, Class::Be), deep(2, Class::Be), deep(3, Class::Idle), deep(4, Class::Idle)]);
        let options =
            ExecuteOptions { warm_up_ns: 500_000_000, run_for_ns: Some(1_500_000_000), ..ExecuteOptions::default() };
        let mut session = Session::begin(&disk.device(), &disk.state()).unwrap();
        let mut share = |scheduler: &str| {
            session.apply(&scheduler.parse().unwrap()).unwrap();
            let result = run(&disk, &workload, &options);
            let done = |tasks: &[usize]| tasks.iter().map(|&task| result.tasks[task].ios).sum::<u64>() as f64;
            done(&[2, 3]) / (done(&[0, 1]) + done(&[2, 3]))
        };
        let schedulers = ["none", "bfq"].into_iter().filter(|scheduler| disk.has(scheduler));
        for scheduler in schedulers {
            let share = share(scheduler);
            assert!(if scheduler == "none" { share > 0.3 } else { share < 0.2 }, "{scheduler}: {share}");
        }
    }
    slow.stop(&path);
}
