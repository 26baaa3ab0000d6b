//! Observation of loop devices, as root.

mod loops;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use iosched_kernel::Roots;
use iosched_kernel::observe::{ObserveOptions, Observer, Operation, Sample, Series};
use iosched_testing::machine::available;
use loops::Loop;

/// Hierarchies of cgroups, in the order in which the kernel uses them for I/O.
const HIERARCHIES: [&str; 2] = ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup"];

/// Lock that lets only one test observe at a time. A test counts the trace buffers of the whole
/// process.
static ONE: Mutex<()> = Mutex::new(());

/// A cgroup for a test, removed on drop.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Option<Self> {
        let root = HIERARCHIES.iter().map(Path::new).find(|root| root.join("cgroup.procs").exists());
        available(root.is_some(), "a hierarchy of cgroups").then_some(())?;
        let path = root?.join(name);
        available(fs::create_dir_all(&path).is_ok(), "permission to create a cgroup").then_some(Self(path))
    }

    /// Runs a shell command in the cgroup.
    fn run(&self, command: &str) {
        let command = format!("echo $$ > {}/cgroup.procs && {command}", self.0.display());
        let output = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Mounts tracefs if it is not mounted. tracefs stays mounted, because other tests may use it.
fn mount_tracefs() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        if !Path::new("/sys/kernel/tracing/instances").is_dir() {
            let _ = Command::new("mount").args(["-t", "tracefs", "tracefs", "/sys/kernel/tracing"]).status();
        }
    });
}

fn observer(disk: &Loop, options: ObserveOptions) -> Option<Observer> {
    mount_tracefs();
    let mut observer = Observer::begin(&Roots::default(), vec![disk.device()], options);
    let reason = observer.without_latencies().map(ToString::to_string);
    available(reason.is_none(), &format!("observation of requests ({reason:?})")).then_some(())?;
    observer.take().unwrap();
    Some(observer)
}

fn all() -> ObserveOptions {
    ObserveOptions { sampled_above: None, ..ObserveOptions::default() }
}

fn end(mut observer: Observer) -> Sample {
    observer.take_for(Duration::from_millis(300)).unwrap();
    observer.sample()
}

fn of<'s>(sample: &'s Sample, owner: &str, operation: Operation) -> &'s Series {
    let found = sample.series.iter().find(|series| series.owner.name() == owner && series.operation == operation);
    let owners = || sample.series.iter().map(|series| series.owner.name()).collect::<Vec<_>>();
    found.unwrap_or_else(|| panic!("no {operation:?} of {owner}, only of {:?}", owners()))
}

#[test]
fn requests_are_counted_for_their_cgroup_and_class() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(disk) = Loop::new() else { return };
    let Some(group) = Group::new("iosched-observed") else { return };
    let Some(mut observer) = observer(&disk, all()) else { return };
    let device = disk.path.display().to_string();
    // The pipes keep dd running until iosched has read its cgroup.
    let load = std::thread::spawn(move || {
        group.run(&format!(
            "ionice -c 3 dd if={device} iflag=direct bs=4k count=100 2>/dev/null | (sleep 0.4; cat > /dev/null) && \
             (head -c 1310720 /dev/zero; sleep 0.4) | dd of={device} iflag=fullblock oflag=direct bs=64k 2>/dev/null"
        ));
        group
    });
    while !load.is_finished() {
        observer.take_for(Duration::from_millis(50)).unwrap();
    }
    let _group = load.join().unwrap();
    let sample = end(observer);
    let (reads, writes) =
        (of(&sample, "iosched-observed", Operation::Read), of(&sample, "iosched-observed", Operation::Write));
    assert_eq!((reads.ios, reads.bytes, writes.ios, writes.bytes), (100, 409_600, 20, 20 << 16));
    assert_eq!(format!("{:?}", reads.class), "Idle");
    assert!(reads.latency.min_ns() > 1_000 && reads.latency.max_ns() < 10_000_000_000);
    assert!(reads.issued == 100 && reads.waited_ns < reads.latency.sum_ns(), "{}", reads.waited_ns);
    let stat = sample.disks[0].stat.unwrap();
    assert_eq!((stat.reads.requests, stat.writes.requests), (100, 20));
    assert_eq!((sample.lost, sample.unfinished), (0, 0));
}

#[test]
fn trace_buffer_is_removed_with_the_observer() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(disk) = Loop::new() else { return };
    let instances = || {
        let names = fs::read_dir("/sys/kernel/tracing/instances").into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        let ours = format!("iosched-{}-", std::process::id());
        names.filter(|name| name.starts_with(&ours)).count()
    };
    let Some(observer) = observer(&disk, all()) else { return };
    assert_eq!(instances(), 1);
    drop(observer);
    assert_eq!(instances(), 0);
}

#[test]
fn a_sample_estimates_all_requests() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(disk) = Loop::new() else { return };
    let Some(group) = Group::new("iosched-sampled") else { return };
    let options = ObserveOptions { sampled_above: Some(200), ..ObserveOptions::default() };
    let Some(mut observer) = observer(&disk, options) else { return };
    let device = disk.path.display().to_string();
    let reader = std::thread::spawn(move || {
        group.run(&format!(
            "for i in 1 2 3 4; do dd if={device} of=/dev/null iflag=direct bs=4k count=16384 2>/dev/null; done"
        ));
    });
    while !reader.is_finished() {
        observer.take_for(Duration::from_millis(50)).unwrap();
    }
    reader.join().unwrap();
    let sample = end(observer);
    let reads = of(&sample, "iosched-sampled", Operation::Read);
    let truth = sample.disks[0].stat.unwrap().reads.requests;
    assert_eq!(truth, 4 * 16_384);
    assert!(reads.latency.count() > 0 && reads.latency.count() < truth / 2, "{}", reads.latency.count());
    assert!(reads.ios.abs_diff(truth) * 20 < truth, "{} of {truth}", reads.ios);
    assert!(sample.sampled < 0.9, "{}", sample.sampled);
}

#[test]
fn fsync_is_observed_on_ext4() {
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(disk) = Loop::new() else { return };
    let formatted = Command::new("mkfs.ext4").arg("-q").arg(&disk.path).status();
    if !available(formatted.is_ok_and(|status| status.success()), "mkfs.ext4") {
        return;
    }
    let mounted = disk.here.path().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let status = Command::new("mount").arg(&disk.path).arg(&mounted).status();
    if !available(status.is_ok_and(|status| status.success()), "permission to mount") {
        return;
    }
    let observed = observer(&disk, ObserveOptions { tells_processes: true, ..all() }).map(|observer| {
        let can = observer.observes_fsync();
        let file = mounted.join("file");
        let command = format!("for i in 1 2 3; do echo x >> {0} && sync {0}; done", file.display());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
        (can, end(observer))
    });
    assert!(Command::new("umount").arg(&mounted).status().unwrap().success());
    let Some((can, sample)) = observed else { return };
    if available(can, "trace events of ext4") {
        let calls: u64 = sample.series.iter().filter(|s| s.operation == Operation::Fsync).map(|s| s.ios).sum();
        assert_eq!(calls, 3, "{:?}", sample.series);
    }
}
