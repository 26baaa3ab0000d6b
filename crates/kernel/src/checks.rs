//! Checks of a device before a run. A finding is a reason to doubt the results, or a fact that a
//! reader needs to interpret them. Findings are stored in the record of the run.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::block::{BlockDevice, Stat};
use crate::facts::MachineFacts;
use crate::roots::{Roots, number};
use crate::settings::elsewhere;

/// Requirements of a run on the device.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Wanted {
    /// Schedulers that are compared.
    pub schedulers: Vec<String>,
    /// Whether I/O uses the page cache.
    pub buffered: bool,
    /// Whether io_uring is needed.
    pub io_uring: bool,
    /// Whether weights of cgroups are set.
    pub weights: bool,
    /// Whether processes have different ioprio classes.
    pub classes: bool,
    /// Largest number of I/Os in flight at once. `None` if not known.
    pub outstanding_max: Option<u32>,
}

/// Severity of a finding before runs on a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Useful information.
    Remark,
    /// The results may be misleading.
    Doubt,
    /// The run is not possible as requested.
    Obstacle,
}

/// Result of a check. Its `Display` is a sentence.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
pub enum Finding {
    /// The kernel throttles writeback before the scheduler.
    WritebackThrottled {
        /// Target latency of reads, us.
        wbt_lat_us: u64,
    },
    /// The driver accepts all requests that can exist.
    NothingQueues {
        /// Number of requests that can exist.
        nr_requests: u32,
        /// Number of requests that the driver accepts.
        driver_depth: u32,
    },
    /// The driver accepts many requests at once. These requests do not wait in the scheduler.
    DeepDriver {
        /// Number of requests that the driver accepts.
        driver_depth: u32,
    },
    /// Schedulers treat the device as a rotating disk, but it is probably not one.
    TakenForRotating {
        /// Description of the layer below.
        kind: String,
    },
    /// Another system below the device also schedules requests.
    Virtual {
        /// Description of the layer below.
        kind: String,
    },
    /// A loop device uses the page cache of its file's file system.
    LoopThroughCache,
    /// Other programs use a disk.
    OtherLoad {
        /// Name of the disk.
        device: String,
        /// Requests per second.
        iops: f64,
        /// Bytes per second.
        bytes_per_s: f64,
        /// Percentage of the time with a request in flight.
        busy_percent: f64,
        /// Duration of the observation, ms.
        watched_ms: u64,
    },
    /// The CPUs have other work.
    LoadedCpus {
        /// Mean load of the last minute.
        load: f64,
        /// Number of CPUs.
        cpus: u32,
    },
    /// The machine has only one CPU.
    OneCpu,
    /// The speed of the CPUs varies.
    Governor {
        /// Governor that chooses the speed.
        governor: String,
    },
    /// Writes complete before they are on the medium.
    WriteCache,
    /// A requested scheduler is not available.
    MissingScheduler {
        /// Name of the scheduler.
        name: String,
        /// Available schedulers.
        available: Vec<String>,
    },
    /// Buffered reads use the kernel's readahead.
    ReadAhead {
        /// Readahead, KiB.
        read_ahead_kb: u64,
    },
    /// The kernel keeps no statistics of the device.
    NoStatistics,
    /// io_uring cannot be used.
    NoIoUring {
        /// Reason.
        reason: String,
    },
    /// Weights of cgroups cannot be set.
    NoWeights,
    /// The kernel is older than 5.0, so its schedulers differ.
    OldKernel {
        /// Release of the kernel.
        release: String,
    },
}

impl Finding {
    /// Returns how serious the finding is for a run.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::MissingScheduler { .. } | Self::NoIoUring { .. } | Self::NoWeights => Severity::Obstacle,
            Self::WritebackThrottled { .. }
            | Self::NothingQueues { .. }
            | Self::LoopThroughCache
            | Self::OtherLoad { .. }
            | Self::LoadedCpus { .. }
            | Self::OneCpu
            | Self::NoStatistics
            | Self::OldKernel { .. } => Severity::Doubt,
            Self::DeepDriver { .. }
            | Self::TakenForRotating { .. }
            | Self::Virtual { .. }
            | Self::Governor { .. }
            | Self::WriteCache
            | Self::ReadAhead { .. } => Severity::Remark,
        }
    }

    /// Returns the remedy. Returns `None` if there is none or none is needed.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        let text = match self {
            Self::WritebackThrottled { .. } => "also compare with wbt_lat_usec=0".to_owned(),
            Self::NothingQueues { driver_depth, .. } => format!("set nr_requests above {driver_depth}"),
            Self::DeepDriver { driver_depth } => {
                format!(
                    "keep more than {driver_depth} I/Os in flight, or, if the driver allows this, make the queue of \
                     the driver shorter"
                )
            }
            Self::TakenForRotating { .. } => "also compare with rotational=0".to_owned(),
            Self::LoopThroughCache => "attach the loop device with losetup --direct-io=on".to_owned(),
            Self::OtherLoad { .. } => {
                "stop the other programs, or repeat the comparison when the device is quiet".to_owned()
            }
            Self::LoadedCpus { .. } => "repeat the comparison when the machine is quiet".to_owned(),
            Self::Governor { .. } => {
                "set the governor to performance, for example with cpupower frequency-set -g performance".to_owned()
            }
            Self::MissingScheduler { name, .. } => elsewhere(name),
            Self::NoStatistics => "set iostats=1".to_owned(),
            Self::NoIoUring { .. } => "set sysctl kernel.io_uring_disabled=0, or use depth 1".to_owned(),
            Self::NoWeights => "start the kernel with the controller io (cgroup v2) or blkio (cgroup v1)".to_owned(),
            Self::Virtual { .. }
            | Self::OneCpu
            | Self::WriteCache
            | Self::ReadAhead { .. }
            | Self::OldKernel { .. } => return None,
        };
        Some(text)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WritebackThrottled { wbt_lat_us } => {
                write!(
                    f,
                    "the kernel holds back buffered writes while reads take longer than {wbt_lat_us} us (wbt_lat_usec)"
                )
            }
            Self::NothingQueues { nr_requests, driver_depth } => write!(
                f,
                "none and mq-deadline behave the same. There are at most {nr_requests} requests (nr_requests), \
                 and the driver accepts {driver_depth} requests, so no request waits in the scheduler"
            ),
            Self::DeepDriver { driver_depth } => {
                write!(
                    f,
                    "none and mq-deadline behave the same with up to {driver_depth} requests in flight. The \
                     driver accepts this number of requests, so no request waits in the scheduler"
                )
            }
            Self::TakenForRotating { kind } => {
                write!(f, "the kernel treats the device as a rotating disk (rotational=1), but the device is {kind}")
            }
            Self::Virtual { kind } => write!(f, "the device is {kind}, so the host schedules requests too"),
            Self::LoopThroughCache => f.write_str("the loop device reads and writes its file through the page cache"),
            Self::OtherLoad { device, iops, bytes_per_s, busy_percent, watched_ms } => write!(
                f,
                "other programs use {device}. During {watched_ms} ms, the device had {iops:.0} IOPS and {:.1} \
                 MB/s, and was busy {busy_percent:.0} % of the time",
                bytes_per_s / 1e6
            ),
            Self::LoadedCpus { load, cpus } => {
                write!(f, "the machine has other work: the load average is {load:.2} on {cpus} CPUs")
            }
            Self::OneCpu => f.write_str(
                "this machine has only one CPU. The kernel and the programs share this CPU, so they slow each other \
                 down",
            ),
            Self::Governor { governor } => write!(f, "the speed of the CPUs varies (the governor is {governor})"),
            Self::WriteCache => f.write_str(
                "the device has a volatile write cache. Without a flush, writes complete before the data is on the \
                 medium",
            ),
            Self::MissingScheduler { name, available } => {
                write!(f, "the kernel has no scheduler {name}; it has {}", available.join(", "))
            }
            Self::ReadAhead { read_ahead_kb } => {
                write!(
                    f,
                    "the kernel reads up to {read_ahead_kb} KiB ahead of sequential buffered reads \
                     (read_ahead_kb)"
                )
            }
            Self::NoStatistics => f.write_str("the kernel keeps no statistics of the device (iostats=0)"),
            Self::NoIoUring { reason } => write!(f, "io_uring is not available: {reason}"),
            Self::NoWeights => {
                f.write_str("this machine has no I/O controller of cgroups, so iosched cannot set weights of cgroups")
            }
            Self::OldKernel { release } => {
                write!(
                    f,
                    "Linux {release} is older than 5.0, so the schedulers of this kernel differ from today's \
                     schedulers, even if the names are the same"
                )
            }
        }
    }
}

/// Returns the findings about a device and its machine that need no waiting. In contrast,
/// [`other_load`] observes the device for some time.
#[must_use]
pub fn check(device: &BlockDevice, wanted: &Wanted) -> Vec<Finding> {
    let facts = MachineFacts::of(device.roots());
    let mut found = Vec::new();
    found.extend(of_schedulers(device, wanted));
    found.extend(of_queue(device, wanted));
    found.extend(of_what_it_is(device));
    found.extend(of_machine(device.roots(), &facts, wanted));
    // Most severe first.
    found.sort_by_key(|finding| std::cmp::Reverse(finding.severity()));
    found
}

fn of_schedulers(device: &BlockDevice, wanted: &Wanted) -> Vec<Finding> {
    let available = device.schedulers();
    let missing = wanted.schedulers.iter().filter(|name| !available.contains(name));
    missing.map(|name| Finding::MissingScheduler { name: name.clone(), available: available.clone() }).collect()
}

fn of_queue(device: &BlockDevice, wanted: &Wanted) -> Vec<Finding> {
    let attribute = |name: &str| number::<u64>(&device.queue().join(name));
    let mut found = Vec::new();
    if let Some(wbt_lat_us) = attribute("wbt_lat_usec").filter(|us| *us > 0 && wanted.buffered) {
        found.push(Finding::WritebackThrottled { wbt_lat_us });
    }
    // If processes have different ioprio classes, requests of a lower class may wait in the
    // scheduler while a higher class has requests. This can happen even if the driver has room.
    if let Some(driver_depth) = device.driver_takes().filter(|_| !wanted.classes) {
        match device.nr_requests().filter(|_| device.driver_takes_all() == Some(true)) {
            // The finding says that the scheduler behaves like none. It is useless if the scheduler
            // is none.
            Some(nr_requests) if device.scheduler().is_some_and(|name| name != "none") => {
                found.push(Finding::NothingQueues { nr_requests, driver_depth });
            }
            _ if wanted.outstanding_max.is_none_or(|most| most <= driver_depth) => {
                found.push(Finding::DeepDriver { driver_depth });
            }
            _ => {}
        }
    }
    if attribute("iostats") == Some(0) {
        found.push(Finding::NoStatistics);
    }
    if let Some(read_ahead_kb) = attribute("read_ahead_kb").filter(|_| wanted.buffered) {
        found.push(Finding::ReadAhead { read_ahead_kb });
    }
    found
}

fn of_what_it_is(device: &BlockDevice) -> Vec<Finding> {
    let mut found = Vec::new();
    if device.is_direct_loop() == Some(false) {
        found.push(Finding::LoopThroughCache);
    }
    if let Some(kind) = device.virtual_kind().map(str::to_owned) {
        if device.is_rotational() {
            found.push(Finding::TakenForRotating { kind: kind.clone() });
        }
        found.push(Finding::Virtual { kind });
    }
    if device.has_write_cache() == Some(true) {
        found.push(Finding::WriteCache);
    }
    found
}

fn of_machine(roots: &Roots, facts: &MachineFacts, wanted: &Wanted) -> Vec<Finding> {
    let mut found = Vec::new();
    if facts.cpus == 1 {
        found.push(Finding::OneCpu);
    }
    // More than half of the CPUs are busy or wait for disks.
    if let Some(load) = facts.load.filter(|load| *load > f64::from(facts.cpus) / 2.0) {
        found.push(Finding::LoadedCpus { load, cpus: facts.cpus });
    }
    if let Some(governor) = facts.governor.clone().filter(|governor| governor != "performance") {
        found.push(Finding::Governor { governor });
    }
    if let Some(reason) = without_io_uring(roots, facts).filter(|_| wanted.io_uring) {
        found.push(Finding::NoIoUring { reason });
    }
    if wanted.weights && !facts.cgroups.blkio && !facts.cgroups.io {
        found.push(Finding::NoWeights);
    }
    if version(&facts.kernel).is_some_and(|version| version < (5, 0)) {
        found.push(Finding::OldKernel { release: facts.kernel.clone() });
    }
    found
}

/// Returns the reason why io_uring cannot be used. Source:
/// Documentation/admin-guide/sysctl/kernel.rst of Linux 6.12.
fn without_io_uring(roots: &Roots, facts: &MachineFacts) -> Option<String> {
    match number::<u8>(&roots.proc("sys/kernel/io_uring_disabled")) {
        Some(2) => return Some("kernel.io_uring_disabled is 2".to_owned()),
        Some(1) if !rustix::process::geteuid().is_root() => {
            return Some("kernel.io_uring_disabled is 1, and iosched does not run as root".to_owned());
        }
        _ => {}
    }
    let too_old = version(&facts.kernel).is_some_and(|version| version < (5, 1));
    too_old.then(|| format!("Linux {} is older than 5.1", facts.kernel))
}

/// Returns the first two numbers of a release.
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(['.', '-']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// I/Os per second below which a disk counts as unused.
const QUIET_IOPS: f64 = 1.0;

/// Observes a device and the devices below it for the duration `watch`, while iosched sends no I/O.
/// Returns the load of other programs.
#[must_use]
pub fn other_load(device: &BlockDevice, watch: Duration) -> Vec<Finding> {
    let mut disks: Vec<BlockDevice> = Vec::new();
    for disk in std::iter::once(device.disk()).chain(device.stack().iter().map(BlockDevice::disk)) {
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    let began = Instant::now();
    let before: Vec<_> = disks.iter().map(BlockDevice::stat).collect();
    thread::sleep(watch);
    let between = |(disk, before): (&BlockDevice, Option<Stat>)| {
        let done = disk.stat()?.since(&before?);
        load(disk.name(), &done, began.elapsed())
    };
    disks.iter().zip(before).filter_map(between).collect()
}

/// Returns a finding about the I/O in `watched`, if the rate is high enough.
fn load(device: &str, done: &Stat, watched: Duration) -> Option<Finding> {
    let seconds = watched.as_secs_f64().max(f64::EPSILON);
    let iops = done.requests() as f64 / seconds;
    (iops >= QUIET_IOPS).then(|| Finding::OtherLoad {
        device: device.to_owned(),
        iops,
        bytes_per_s: (done.reads.bytes + done.writes.bytes) as f64 / seconds,
        busy_percent: (done.busy_ms as f64 / 10.0 / seconds).min(100.0),
        watched_ms: watched.as_millis() as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::Recorded;

    fn found(machine: &Recorded, device: &str, wanted: &Wanted) -> Vec<Finding> {
        check(&machine.device(device), wanted)
    }

    #[test]
    fn an_ordinary_disk_gives_only_remarks() {
        let machine = Recorded::new();
        let findings = found(&machine, "sda", &Wanted::default());
        assert_eq!(findings, [Finding::DeepDriver { driver_depth: 31 }, Finding::WriteCache]);
        assert!(findings.iter().all(|finding| finding.severity() == Severity::Remark));
    }

    #[test]
    fn findings_are_complete_and_sorted_by_severity() {
        let machine = Recorded::new();
        for (file, text) in [
            ("sys/devices/loop1/queue/scheduler", "none [mq-deadline]"),
            ("sys/devices/loop1/queue/nr_requests", "128"),
            ("sys/devices/loop1/queue/rotational", "1"),
            ("sys/devices/loop1/queue/iostats", "0"),
            ("sys/devices/system/cpu/online", "0"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"),
            ("sys/fs/cgroup/cgroup.controllers", "cpu"),
            ("proc/loadavg", "1.50 1 1 1/1 1"),
            ("proc/sys/kernel/osrelease", "4.19.0"),
            ("proc/sys/kernel/io_uring_disabled", "2"),
        ] {
            machine.write(file, text);
        }
        let wanted = Wanted {
            schedulers: vec!["bfq".to_owned()],
            buffered: true,
            io_uring: true,
            weights: true,
            ..Wanted::default()
        };
        let findings = found(&machine, "loop1", &wanted);
        assert!(findings.is_sorted_by_key(|finding| std::cmp::Reverse(finding.severity())));
        for expected in [
            Finding::MissingScheduler { name: "bfq".into(), available: vec!["none".into(), "mq-deadline".into()] },
            Finding::NoIoUring { reason: "kernel.io_uring_disabled is 2".into() },
            Finding::NoWeights,
            Finding::WritebackThrottled { wbt_lat_us: 2000 },
            Finding::NothingQueues { nr_requests: 128, driver_depth: 128 },
            Finding::NoStatistics,
            Finding::LoopThroughCache,
            Finding::OneCpu,
            Finding::LoadedCpus { load: 1.5, cpus: 1 },
            Finding::OldKernel { release: "4.19.0".into() },
            Finding::Governor { governor: "powersave".into() },
            Finding::TakenForRotating { kind: "a file".into() },
            Finding::Virtual { kind: "a file".into() },
            Finding::ReadAhead { read_ahead_kb: 128 },
        ] {
            assert!(findings.contains(&expected), "{expected:?} is not among {findings:#?}");
        }
        let text = serde_json::to_string(&findings).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Finding>>(&text).unwrap(), findings);
        assert!(findings.iter().all(|finding| !finding.to_string().is_empty()));
    }

    #[test]
    fn deep_driver_is_a_finding_only_if_no_request_waits() {
        let machine = Recorded::new();
        let deep = |wanted: Wanted| found(&machine, "sda", &wanted).contains(&Finding::DeepDriver { driver_depth: 31 });
        assert!(deep(Wanted { outstanding_max: Some(20), ..Wanted::default() }));
        // mq-deadline holds a class back while a higher class has requests in flight.
        assert!(!deep(Wanted { outstanding_max: Some(20), classes: true, ..Wanted::default() }));
        assert!(!deep(Wanted { outstanding_max: Some(64), ..Wanted::default() }));
        // Requests of one hardware queue can use only the tags of that queue.
        let nvme = found(&machine, "nvme0n1", &Wanted::default());
        assert!(nvme.contains(&Finding::DeepDriver { driver_depth: 1023 }), "{nvme:?}");
    }

    #[test]
    fn load_of_other_programs_is_a_finding() {
        let busy: Stat = "500 0 4000 9 500 0 4000 9 0 250 9".parse().unwrap();
        let message = load("sda", &busy, Duration::from_secs(1)).unwrap().to_string();
        assert_eq!(
            message,
            "other programs use sda. During 1000 ms, the device had 1000 IOPS and 4.1 MB/s, and was busy 25 % of \
             the time"
        );
        assert_eq!(load("sda", &Stat::default(), Duration::from_secs(1)), None);
        assert_eq!(other_load(&Recorded::new().device("dm-0"), Duration::ZERO), []);
    }

    #[test]
    fn missing_scheduler_finding_says_how_to_get_it() {
        let remedy = |name: &str| {
            Finding::MissingScheduler { name: name.to_owned(), available: Vec::new() }.remedy().unwrap_or_default()
        };
        assert_eq!(remedy("bfq"), "try modprobe bfq, or modprobe bfq-iosched");
        let adios = remedy("adios");
        assert!(
            adios.starts_with("adios is not in Linux; boot a kernel that has adios (") && !adios.contains("modprobe")
        );
    }

    #[test]
    fn kernel_releases_are_parsed() {
        for (release, expected) in
            [("6.12.5-amd64", Some((6, 12))), ("5.0", Some((5, 0))), ("6.18-rc1", Some((6, 18))), ("odd", None)]
        {
            assert_eq!(version(release), expected, "{release}");
        }
    }
}
