//! What the values of a fio job's options are: plain data. The options themselves are [`Job`](super::Job)'s fields.

use std::sync::Arc;

use iosched::IoPriority;

/// A value for each direction of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
    /// Of trims (discards).
    pub trim: T,
}

impl<T> PerDirection<T> {
    /// That of one direction.
    #[inline]
    pub const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// That of one direction, to be changed.
    #[inline]
    pub const fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }

    /// What `f` makes of each.
    pub fn map<U>(&self, f: impl Fn(&T) -> U) -> PerDirection<U> {
        PerDirection { read: f(&self.read), write: f(&self.write), trim: f(&self.trim) }
    }
}

impl<T: Clone> PerDirection<T> {
    /// The same for all.
    pub fn all(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}

/// What one I/O does with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards.
    Trim,
}

impl Direction {
    /// All, in fio's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];
}

/// `rw`: which directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `read`, `randread`.
    #[default]
    Read,
    /// `write`, `randwrite`.
    Write,
    /// `trim`, `randtrim`.
    Trim,
    /// `rw`, `readwrite`, `randrw`: by `rwmixread`.
    ReadWrite,
    /// `trimwrite`, `randtrimwrite`: each block is trimmed, then written.
    TrimWrite,
}

impl Mode {
    /// Its directions.
    #[must_use]
    pub const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Read => &[Direction::Read],
            Self::Write => &[Direction::Write],
            Self::Trim => &[Direction::Trim],
            Self::ReadWrite => &[Direction::Read, Direction::Write],
            Self::TrimWrite => &[Direction::Trim, Direction::Write],
        }
    }
}

/// `rw`: where each I/O goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One behind another; the suffix (`read:8k`) is added after each, negative going backward. 0: none.
    Sequential {
        /// Bytes.
        skip_bytes: i64,
    },
    /// Anywhere; the suffix (`randread:8`) is how many I/Os before a new random offset, at least 1.
    Random {
        /// I/Os from one random offset on.
        ios_per_offset: u32,
    },
}

impl Default for Placement {
    fn default() -> Self {
        Self::Sequential { skip_bytes: 0 }
    }
}

/// `rw_sequencer`: what the I/Os between two new random offsets are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Each behind the last.
    #[default]
    Sequential,
    /// The same offset again.
    Identical,
}

/// `blocksize`, `blocksize_range`, `bssplit` of one direction. Bytes, at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// Always the same.
    Fixed(u64),
    /// Evenly distributed, both included; multiples of `min` unless [`Job::bs_unaligned`](super::Job::bs_unaligned).
    Range {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// By share; shares add up to 100.
    Split(Vec<SplitSize>),
}

/// One size of `bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSize {
    /// The size.
    pub bytes: u64,
    /// Its share of I/Os, per cent, 0 to 100.
    pub percent: u32,
}

impl BlockSize {
    /// The smallest size there is.
    #[must_use]
    pub fn min_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, .. } => *min,
            Self::Split(sizes) => sizes.iter().map(|size| size.bytes).min().unwrap_or(0),
        }
    }

    /// The largest size there is.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { max, .. } => *max,
            Self::Split(sizes) => sizes.iter().map(|size| size.bytes).max().unwrap_or(0),
        }
    }
}

/// A size or place that may depend on that of the file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// So many bytes.
    Bytes(u64),
    /// So many per cent of the file or device, 0 to 100.
    Percent(u32),
}

impl Default for Size {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// Which files a job uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// `filename`, split at its colons, at least one, with `directory` before it. A name in `/dev/` is the whole
    /// device; any other is a file, and jobs that name it share it.
    Named(Vec<String>),
    /// `nrfiles` files that are this job's alone, at least one.
    Own(u32),
}

/// `file_service_type`: which file the next I/O goes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileService {
    /// The order.
    pub order: FileServiceOrder,
    /// I/Os to a file before the next is chosen, at least 1.
    pub ios_per_file: u32,
}

impl Default for FileService {
    fn default() -> Self {
        Self { order: FileServiceOrder::RoundRobin, ios_per_file: 1 }
    }
}

/// The order in which files are served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileServiceOrder {
    /// Any, evenly.
    Random,
    /// One after another.
    RoundRobin,
    /// Each to its end.
    Sequential,
    /// By Zipf's law.
    Zipf {
        /// Exponent, greater than 0, not 1.
        theta: f64,
    },
    /// By Pareto's law.
    Pareto {
        /// Shape, between 0 and 1.
        h: f64,
    },
    /// By a normal distribution round the middle file.
    Gauss {
        /// Deviation, per cent of the number of files, 0 to 100.
        deviation_percent: f64,
    },
}

/// `random_distribution`: how often each block is chosen. `centre`: where the most frequent lies, 0 to 1 of the file;
/// `None`: scattered by a hash.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// All alike.
    #[default]
    Random,
    /// By Zipf's law.
    Zipf {
        /// Exponent, greater than 0, not 1.
        theta: f64,
        /// See above.
        centre: Option<f64>,
    },
    /// By Pareto's law.
    Pareto {
        /// Shape, between 0 and 1.
        h: f64,
        /// See above.
        centre: Option<f64>,
    },
    /// Normally distributed round the middle.
    Normal {
        /// Deviation, per cent of the file, 0 to 100.
        deviation_percent: f64,
        /// Where the middle is, 0 to 1 of the file; `None`: scattered by a hash.
        centre: Option<f64>,
    },
    /// `zoned`, `zoned_abs`: each zone of the file by its share. A direction without zones is `Random`.
    Zoned(PerDirection<Vec<Zone>>),
}

/// A zone of the file, behind the one before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Its share of I/Os, per cent; those of a direction add up to 100.
    pub access_percent: u32,
    /// How much of the file it is.
    pub size: ZoneSize,
}

/// How large a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSize {
    /// Per cent of the file.
    Percent(u32),
    /// `zoned_abs`: bytes.
    Bytes(u64),
}

/// `random_generator`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomGenerator {
    /// With a map of what was done, unless switched off.
    #[default]
    Tausworthe,
    /// Each block once by construction; fixed block size.
    Lfsr,
    /// Like `Tausworthe`, for very large files.
    Tausworthe64,
}

/// Whether an open file's writes are on the medium when they are done: `sync`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenSync {
    /// No.
    #[default]
    None,
    /// `O_SYNC`: `sync=sync` or `sync=1`.
    Sync,
    /// `O_DSYNC`: `sync=dsync`.
    Dsync,
}

/// `thinktime` and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTime {
    /// `thinktime`: pause after every `blocks`, ns; 0: none.
    pub pause_ns: u64,
    /// `thinktime_spin`: part of the pause in which the CPU is busy, ns. Makes no difference to the device.
    pub spin_ns: u64,
    /// `thinktime_blocks`, at least 1.
    pub blocks: u32,
    /// `thinktime_blocks_type`.
    pub counted: ThinkTimeBlocks,
    /// `thinktime_iotime`: pause also after so long a time of I/O, ns; 0: never.
    pub io_time_ns: u64,
}

impl Default for ThinkTime {
    fn default() -> Self {
        Self { pause_ns: 0, spin_ns: 0, blocks: 1, counted: ThinkTimeBlocks::Complete, io_time_ns: 0 }
    }
}

/// What `thinktime_blocks` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkTimeBlocks {
    /// I/Os done.
    #[default]
    Complete,
    /// I/Os issued.
    Issue,
}

/// `rate_process`: how a given rate is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// At even distances.
    #[default]
    Linear,
    /// As a Poisson process: exponentially distributed distances.
    Poisson,
}

/// A time drawn evenly from `min_ns..=max_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// A share of I/Os, per cent, 0 to 100.
pub type Share = u32;

/// `cmdprio_percentage`, `cmdprio_class`, `cmdprio`, `cmdprio_bssplit`: I/Os with a priority of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CmdPriority {
    /// Share of I/Os with `priority`. Not together with `split`.
    pub percentage: PerDirection<Share>,
    /// Their priority.
    pub priority: PerDirection<IoPriority>,
    /// Shares by size.
    pub split: PerDirection<Vec<SplitPriority>>,
}

/// One entry of `cmdprio_bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitPriority {
    /// I/Os of this size.
    pub bytes: u64,
    /// Share of them with the priority.
    pub percent: Share,
    /// The priority.
    pub priority: IoPriority,
}

/// `cgroup`, `cgroup_weight`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMember {
    /// Its name: a path relative to the root, parts divided by `/`.
    pub name: String,
    /// Its weight, 10 to 1000; `None`: it stays as it is.
    pub weight: Option<u32>,
}

/// `latency_target` and what belongs to it: fio looks for the largest depth that keeps the target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Latency that is aimed at, ns, greater than 0.
    pub target_ns: u64,
    /// `latency_window`: how long each depth is tried, ns.
    pub window_ns: u64,
    /// `latency_percentile`: per cent of I/Os within the target, 0 to 100.
    pub percentile: f64,
    /// `latency_run`: go on at the depth found, instead of ending.
    pub run: bool,
}

/// `read_iolog` and what belongs to it: the job replays a log.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayLog {
    /// The log's path, as given.
    pub path: String,
    /// `replay_no_stall`: as fast as the device goes, in order.
    pub no_stall: bool,
    /// `replay_time_scale`: speed, per cent of that recorded, greater than 0.
    pub time_scale_percent: u32,
    /// `replay_scale`: offsets are divided by it, at least 1.
    pub scale: u32,
    /// `replay_align`: offsets are rounded down to multiples of it, bytes; 0: not.
    pub align_bytes: u64,
    /// `replay_skip`: directions left out.
    pub skip: PerDirection<bool>,
    /// `replay_skip`: syncs are left out.
    pub skip_syncs: bool,
    /// `replay_redirect`: the log may be about several files; all go to the device.
    pub redirect: bool,
    /// What it says is done, in order of time; empty until the log is read, when the workload is opened.
    pub ios: Arc<[LogIo]>,
}

/// One I/O of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogIo {
    /// When, since the log's first, ns.
    pub at_ns: u64,
    /// What it does; `None`: it syncs.
    pub direction: Option<Direction>,
    /// Where it begins, bytes.
    pub start: u64,
    /// How long it is, bytes; 0 if it syncs.
    pub bytes: u64,
}

impl ReplayLog {
    /// Where an I/O of the log goes on this device, bytes.
    #[must_use]
    pub fn start_of(&self, io: &LogIo) -> u64 {
        let start = io.start / u64::from(self.scale.max(1));
        start - start.checked_rem(self.align_bytes).unwrap_or(0)
    }

    /// When an I/O of the log is issued, since the replay began, ns: 0 without stalls.
    #[must_use]
    pub fn at_ns(&self, io: &LogIo) -> u64 {
        let speed = u128::from(self.time_scale_percent.max(1));
        if self.no_stall { 0 } else { u64::try_from(u128::from(io.at_ns) * 100 / speed).unwrap_or(u64::MAX) }
    }

    /// Whether an I/O of the log is replayed.
    #[must_use]
    pub fn replays(&self, io: &LogIo) -> bool {
        !io.direction.map_or(self.skip_syncs, |direction| *self.skip.of(direction))
    }
}

/// What the I/O engine makes of `iodepth`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// One I/O at a time, whatever `iodepth` says: `sync`, `psync`, `vsync`, `pvsync`, `pvsync2`, `mmap`.
    #[default]
    Sync,
    /// Up to `iodepth` at a time: `libaio`, `io_uring`, `posixaio`, `windowsaio`, `solarisaio`, `sg`, ...
    Async,
}

/// `exit_what`: whom a job with `exitall` ends when it is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// All jobs of its group ([`Job::group`](super::Job::group)).
    #[default]
    Group,
    /// All jobs that run now: up to the next stonewall.
    Stonewall,
    /// All jobs, also those that did not start.
    All,
}

/// Which percentiles are told.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// `percentile_list`, per cent, rising, 0 to 100.
    pub list: Vec<f64>,
    /// `slat_percentiles`.
    pub slat: bool,
    /// `clat_percentiles`.
    pub clat: bool,
    /// `lat_percentiles`.
    pub lat: bool,
}

impl Default for Percentiles {
    fn default() -> Self {
        let list =
            [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
        Self { list: list.to_vec(), slat: false, clat: true, lat: false }
    }
}
