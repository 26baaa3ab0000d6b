//! Observes the kernel's disks while other programs use them. Measures latencies by operation, I/O
//! priority class and cgroup, the load of each disk, and the I/O of each cgroup.
//!
//! | file | contents |
//! |---|---|
//! | `instance.rs` | a buffer of trace events for iosched itself |
//! | `ring.rs` | events in the kernel's ring buffer |
//! | `format.rs` | layouts of events |
//! | `event.rs` | events of requests and of `fsync` |
//! | `pairs.rs` | the start of each completed request |
//! | `owner.rs` | the cgroup and the process of a request |
//! | `cohort.rs` | chooses the requests to observe: all of them, or a sample |
//! | `io_stat.rs` | I/O of each cgroup, from `io.stat` |
//! | `sample.rs` | results of an observation |
//!
//! Latencies are from the request's start to its completion. A request starts when it enters the
//! request queue. io.max and wbt delay bios before this time.
//!
//! The events are in an instance of tracefs, so other tracers are not disturbed. At high rates,
//! only a sample is observed: all requests that start in a part of the time. The observation waits
//! for the completion of each request of the sample. The sample therefore contains long and short
//! latencies with equal probability.

mod cohort;
mod event;
mod format;
mod instance;
mod io_stat;
mod owner;
mod pairs;
mod ring;
mod sample;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use iosched::IoClass;
use iosched_numbers::Histogram;
use iosched_trace::ioprio_of_kernel;

use crate::block::{BlockDevice, Stat};
use crate::cgroup::Tree;
use crate::ioprio::ioprio_of;
use crate::roots::Roots;
use cohort::{Cohort, Step};
use event::{Event, Kind};
use instance::Instance;
use io_stat::GroupsIo;
use owner::Owners;
use pairs::{Completed, NumberMap, Pairs};

pub use event::Operation;
pub use instance::{left, remove_left};
pub use io_stat::GroupIo;
pub(crate) use owner::owner_of;
pub use owner::{OTHERS, Owner};
pub use sample::{DiskSample, GroupSample, Sample, Series, class_name};

/// Largest number of disks.
const DISKS_MAX: usize = 256;
/// Largest depth of devices above a disk.
const LEVELS_MAX: usize = 8;

/// Reason why latencies cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The kernel has no trace events of block devices.
    #[error("this kernel has no trace events of block devices (it is built without CONFIG_BLK_DEV_IO_TRACE)")]
    NoTracer,
    /// The file system of the tracer is not mounted.
    #[error("tracefs is not mounted; mount it with `mount -t tracefs tracefs {}`", path.display())]
    NotMounted {
        /// Usual mount point of tracefs.
        path: PathBuf,
    },
    /// This process lacks permission.
    #[error("{}: only root may read trace events", path.display())]
    Permission {
        /// Path that cannot be used.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("{}: {error}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error from the system.
        error: io::Error,
    },
}

/// Options of an observation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObserveOptions {
    /// Maximum depth of cgroups that are shown separately. The I/O of a deeper cgroup is added to
    /// its ancestor at this depth.
    pub depth_max: usize,
    /// Largest number of cgroups that are shown separately. All other cgroups count as [`OTHERS`].
    pub groups_max: usize,
    /// Whether processes of one cgroup are shown separately, by their names.
    pub tells_processes: bool,
    /// Rate of requests above which only a sample is observed, requests per second. `None`
    /// observes all requests.
    pub sampled_above: Option<u32>,
}

impl ObserveOptions {
    /// Default rate of requests above which only a sample is observed, per second. The cost of
    /// observing this rate is below 1 % of a CPU.
    pub const SAMPLED_ABOVE: u32 = 5_000;
}

impl Default for ObserveOptions {
    fn default() -> Self {
        let sampled_above = Some(Self::SAMPLED_ABOVE);
        Self { depth_max: 2, groups_max: 100, tells_processes: false, sampled_above }
    }
}

/// Observes disks until it is dropped.
#[derive(Debug)]
pub struct Observer {
    options: ObserveOptions,
    disks: Vec<BlockDevice>,
    /// Statistics of each disk at the last sample.
    stats: Vec<Option<Stat>>,
    tracer: Option<Tracer>,
    without_latencies: Option<ObserveError>,
    tree: Result<Tree, String>,
    groups: GroupsIo,
    sampled_at_ns: u64,
}

/// The part of an observer that reads trace events.
#[derive(Debug)]
struct Tracer {
    instance: Instance,
    owners: Owners,
    pairs: Pairs,
    cohort: Cohort,
    /// Index of the disk for each device number, in the form of trace events.
    devices: NumberMap<u32, u8>,
    /// Events of the previous reading that were too new to process, followed by all events of the
    /// present reading.
    events: Vec<Event>,
    series: Vec<Counted>,
    numbers: NumberMap<u64, u32>,
    lost: u64,
    unfinished: u64,
}

/// Requests of one series since the last sample.
#[derive(Debug)]
struct Counted {
    disk: u8,
    operation: Operation,
    class: IoClass,
    owner: u32,
    bytes: u64,
    latency: Histogram,
    /// Time between the start and the issue to the driver, summed over the `issued` requests, ns.
    waited_ns: u64,
    issued: u64,
}

/// Returns the present time of the monotonic clock, ns.
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Returns a device number in the form of trace events.
fn kernel_number(device: &BlockDevice) -> u32 {
    device.number().major << 20 | device.number().minor
}

/// Adds a device, its partitions and the devices built on it.
fn add_above(devices: &mut NumberMap<u32, u8>, device: &BlockDevice, disk: u8, levels: usize) {
    devices.entry(kernel_number(device)).or_insert(disk);
    if levels > 0 {
        for above in device.partitions().iter().chain(&device.holders()) {
            add_above(devices, above, disk, levels - 1);
        }
    }
}

impl Observer {
    /// Starts to observe disks. If trace events cannot be read, the observer reports only the load
    /// of disks and cgroups. [`Self::without_latencies`] then returns the reason.
    #[must_use]
    pub fn begin(roots: &Roots, disks: Vec<BlockDevice>, options: ObserveOptions) -> Self {
        let disks: Vec<BlockDevice> = disks.into_iter().take(DISKS_MAX).collect();
        let (tracer, without_latencies) = match Tracer::begin(roots, &disks, &options) {
            Ok(tracer) => (Some(tracer), None),
            Err(error) => (None, Some(error)),
        };
        let stats = disks.iter().map(BlockDevice::stat).collect();
        let tree = Tree::of(roots).map_err(|error| error.to_string());
        let mut observer = Self {
            groups: GroupsIo::new(),
            sampled_at_ns: now_ns(),
            options,
            disks,
            stats,
            tracer,
            without_latencies,
            tree,
        };
        observer.groups = observer.groups_now();
        observer
    }

    /// Returns the reason why there are no latencies.
    #[must_use]
    pub fn without_latencies(&self) -> Option<&ObserveError> {
        self.without_latencies.as_ref()
    }

    /// Returns the reason why there is no `io.stat`.
    #[must_use]
    pub fn without_groups(&self) -> Option<&str> {
        self.tree.as_ref().err().map(String::as_str)
    }

    /// Returns whether calls of `fsync` are observed. Only ext4 reports them.
    #[must_use]
    pub fn observes_fsync(&self) -> bool {
        self.tracer.as_ref().is_some_and(|tracer| tracer.instance.layouts().reports_fsync)
    }

    /// Returns the observed disks.
    #[must_use]
    pub fn disks(&self) -> &[BlockDevice] {
        &self.disks
    }

    /// Takes the events since the last call, without waiting. Returns the time after which to call
    /// this function again.
    ///
    /// # Errors
    /// The kernel's events cannot be read.
    pub fn take(&mut self) -> Result<Duration, ObserveError> {
        let Some(tracer) = &mut self.tracer else { return Ok(cohort::PAUSE) };
        let disks = &self.disks;
        tracer.take(|| disks.iter().filter_map(BlockDevice::stat).map(|stat| stat.requests() + stat.flushes).sum())
    }

    /// Takes events until `length` has passed.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn take_for(&mut self, length: Duration) -> Result<(), ObserveError> {
        self.take_unless(length, || false).map(drop)
    }

    /// Takes events until `length` has passed or `is_stopped` returns `true`. Returns whether the
    /// whole length was observed.
    ///
    /// # Errors
    /// See [`Self::take`].
    pub fn take_unless(&mut self, length: Duration, is_stopped: impl Fn() -> bool) -> Result<bool, ObserveError> {
        let end_ns = now_ns() + u64::try_from(length.as_nanos()).unwrap_or(u64::MAX / 2);
        loop {
            let pause = self.take()?;
            let left = Duration::from_nanos(end_ns.saturating_sub(now_ns()));
            if left.is_zero() || is_stopped() {
                return Ok(!is_stopped());
            }
            std::thread::sleep(pause.min(left));
        }
    }

    fn groups_now(&self) -> GroupsIo {
        self.tree.as_ref().map_or_else(
            |_| GroupsIo::new(),
            |tree| io_stat::of_groups(tree, self.options.depth_max, self.options.groups_max),
        )
    }

    /// Returns the results of the observation since the last sample, or since the start.
    pub fn sample(&mut self) -> Sample {
        let now_ns = now_ns();
        let seconds = now_ns.saturating_sub(self.sampled_at_ns) as f64 / 1e9;
        self.sampled_at_ns = now_ns;
        let mut disks = Vec::new();
        for (disk, before) in self.disks.iter().zip(&mut self.stats) {
            let now = disk.stat();
            let stat = now.zip(*before).map(|(now, before)| now.since(&before));
            *before = now;
            disks.push(DiskSample {
                name: disk.name().to_owned(),
                scheduler: disk.scheduler(),
                has_requests: disk.directory().join("mq").is_dir(),
                driver_depth: disk.driver_depth(),
                stat,
            });
        }
        let groups = self.groups_now();
        let names: BTreeMap<_, _> = self.disks.iter().map(|disk| (disk.number(), disk.name())).collect();
        let since = groups.iter().filter_map(|((cgroup, number), io)| {
            let before = self.groups.get(&(cgroup.clone(), *number)).copied().unwrap_or_default();
            let disk = (*names.get(number)?).to_owned();
            Some(GroupSample { cgroup: cgroup.clone(), disk, io: io.since(&before) })
        });
        let groups_since = since.filter(|group| group.io != GroupIo::default()).collect();
        self.groups = groups;
        let mut sample = Sample { seconds, disks, groups: groups_since, ..Sample::default() };
        if let Some(tracer) = &mut self.tracer {
            tracer.add_to(&mut sample);
        }
        sample.estimate();
        sample
    }
}

impl Tracer {
    fn begin(roots: &Roots, disks: &[BlockDevice], options: &ObserveOptions) -> Result<Self, ObserveError> {
        let mut devices = NumberMap::default();
        for (number, disk) in (0..).zip(disks) {
            add_above(&mut devices, disk, number, LEVELS_MAX);
        }
        let is_all = disks.len() == BlockDevice::disks(roots).len();
        let mut filter: Vec<u32> = if is_all { Vec::new() } else { devices.keys().copied().collect() };
        filter.sort_unstable();
        let instance = Instance::begin(roots, &filter)?;
        Ok(Self {
            pairs: Pairs::new(instance.layouts().reports_merges),
            owners: Owners::new(roots, options.depth_max, options.groups_max, options.tells_processes),
            cohort: Cohort::new(options.sampled_above),
            instance,
            devices,
            events: Vec::new(),
            series: Vec::new(),
            numbers: NumberMap::default(),
            lost: 0,
            unfinished: 0,
        })
    }

    fn take(&mut self, requests: impl FnOnce() -> u64) -> Result<Duration, ObserveError> {
        let now = now_ns();
        if self.cohort.is_on() {
            self.read(now)?;
        }
        match self.cohort.step(now, self.pairs.len(), requests) {
            Step::Continue => {}
            Step::SwitchOn => self.instance.switch(true)?,
            Step::SwitchOff => {
                self.instance.switch(false)?;
                self.unfinished += self.pairs.clear() as u64;
            }
        }
        Ok(self.cohort.pause(now))
    }

    fn read(&mut self, now: u64) -> Result<(), ObserveError> {
        let lost = self.instance.read(&mut self.events)?;
        if lost > 0 {
            // Completions of requests in flight may be among the lost events.
            self.lost += lost;
            self.unfinished += self.pairs.clear() as u64;
        }
        // The events of each CPU are in order, but the events of different CPUs are not.
        self.events.sort_by_key(|event| event.time_ns);
        let ready = self.events.partition_point(|event| event.time_ns <= now);
        let mut events = std::mem::take(&mut self.events);
        for event in &events[..ready] {
            self.process(event, now);
        }
        events.drain(..ready);
        self.events = events;
        Ok(())
    }

    #[inline]
    fn process(&mut self, event: &Event, now: u64) {
        if !matches!(event.kind, Kind::Start | Kind::SyncStart) {
            if let Some(completed) = self.pairs.take(event) {
                self.count(&completed);
            }
            return;
        }
        if !self.cohort.contains(event.time_ns) {
            return;
        }
        let Some(&disk) = self.devices.get(&event.device) else { return };
        let owner = self.owners.of(event.tid, event.comm, now);
        let class = match event.ioprio {
            Some(ioprio) => ioprio_of_kernel(u32::from(ioprio)).class(),
            None if event.operation == Operation::Fsync => IoClass::None,
            None => ioprio_of(event.tid).map_or(IoClass::None, |ioprio| ioprio.class()),
        };
        let key = u64::from(owner) << 32 | u64::from(disk) << 16 | (event.operation as u64) << 8 | class as u64;
        let series = &mut self.series;
        let number = *self.numbers.entry(key).or_insert_with(|| {
            let (operation, latency) = (event.operation, Histogram::default());
            series.push(Counted { disk, operation, class, owner, bytes: 0, latency, waited_ns: 0, issued: 0 });
            (series.len() - 1) as u32
        });
        self.pairs.start(event, number);
    }

    #[inline]
    fn count(&mut self, completed: &Completed) {
        let Completed { start, ended_ns, sectors } = *completed;
        let series = &mut self.series[start.series as usize];
        series.bytes += u64::from(sectors) * iosched::SECTOR_BYTES;
        series.latency.record(ended_ns.saturating_sub(start.started_ns));
        if let Some(issued_ns) = start.issued_ns {
            series.issued += 1;
            series.waited_ns += issued_ns.saturating_sub(start.started_ns);
        }
    }

    fn add_to(&mut self, sample: &mut Sample) {
        for counted in self.series.iter_mut().filter(|counted| !counted.latency.is_empty()) {
            let latency = std::mem::take(&mut counted.latency);
            sample.series.push(Series {
                disk: sample.disks[usize::from(counted.disk)].name.clone(),
                operation: counted.operation,
                class: counted.class,
                owner: self.owners.owner(counted.owner).clone(),
                ios: latency.count(),
                bytes: std::mem::take(&mut counted.bytes),
                issued: std::mem::take(&mut counted.issued),
                waited_ns: std::mem::take(&mut counted.waited_ns),
                latency,
            });
        }
        sample.sampled = self.cohort.take_sampled();
        sample.lost = std::mem::take(&mut self.lost) + std::mem::take(&mut self.pairs.dropped);
        sample.unfinished = std::mem::take(&mut self.unfinished);
    }
}
