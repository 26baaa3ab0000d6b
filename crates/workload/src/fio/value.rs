//! Types of the values of a fio job's options: plain data. The options are the fields of
//! [`Job`](super::Job).

use std::sync::Arc;

use iosched::IoPriority;

/// A value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerDirection<T> {
    /// Value for reads.
    pub read: T,
    /// Value for writes.
    pub write: T,
    /// Value for trims (discards).
    pub trim: T,
}

impl<T> PerDirection<T> {
    /// Returns the value of one direction.
    #[inline]
    pub const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// Returns the value of one direction, mutable.
    #[inline]
    pub const fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }

    /// Applies `f` to each value.
    pub fn map<U>(&self, f: impl Fn(&T) -> U) -> PerDirection<U> {
        PerDirection { read: f(&self.read), write: f(&self.write), trim: f(&self.trim) }
    }
}

impl<T: Clone> PerDirection<T> {
    /// Creates equal values for all directions.
    pub fn all(value: T) -> Self {
        Self { read: value.clone(), write: value.clone(), trim: value }
    }
}

/// Direction of an I/O of a job.
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
    /// All directions in fio's order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];
}

/// `rw`: directions of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// `read`, `randread`.
    #[default]
    Read,
    /// `write`, `randwrite`.
    Write,
    /// `trim`, `randtrim`.
    Trim,
    /// `rw`, `readwrite`, `randrw`: reads and writes, mixed by `rwmixread`.
    ReadWrite,
    /// `trimwrite`, `randtrimwrite`: each block is trimmed, then written.
    TrimWrite,
}

impl Mode {
    /// Returns the directions of the mode.
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

/// `rw`: placement of the I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Sequential. The suffix (`read:8k`) is added to the offset after each I/O. A negative suffix
    /// goes backward; 0 means no gap.
    Sequential {
        /// Gap after each I/O, bytes.
        skip_bytes: i64,
    },
    /// Random. The suffix (`randread:8`) is the number of I/Os from one random offset, at least 1.
    Random {
        /// I/Os from one random offset.
        ios_per_offset: u32,
    },
}

impl Default for Placement {
    fn default() -> Self {
        Self::Sequential { skip_bytes: 0 }
    }
}

/// `rw_sequencer`: placement of the I/Os between two random offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sequencer {
    /// Each I/O begins where the previous one ended.
    #[default]
    Sequential,
    /// All I/Os have the same offset.
    Identical,
}

/// `blocksize`, `blocksize_range` or `bssplit` of one direction, bytes, at least 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// A fixed size.
    Fixed(u64),
    /// Sizes from `min` to `max`, uniformly distributed. They are multiples of `min` unless
    /// [`Job::bs_unaligned`](super::Job::bs_unaligned) is set.
    Range {
        /// Smallest size.
        min: u64,
        /// Largest size.
        max: u64,
    },
    /// Several sizes with shares that add up to 100.
    Split(Vec<SplitSize>),
}

/// One block size of the option `bssplit`, with its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitSize {
    /// Size, bytes.
    pub bytes: u64,
    /// Share of the I/Os with this size, per cent, 0 to 100.
    pub percent: u32,
}

impl BlockSize {
    /// Returns the smallest size, bytes.
    #[must_use]
    pub fn min_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { min, .. } => *min,
            Self::Split(sizes) => sizes.iter().map(|size| size.bytes).min().unwrap_or(0),
        }
    }

    /// Returns the largest size, bytes.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        match self {
            Self::Fixed(bytes) => *bytes,
            Self::Range { max, .. } => *max,
            Self::Split(sizes) => sizes.iter().map(|size| size.bytes).max().unwrap_or(0),
        }
    }
}

/// A size or position that can depend on the size of the file or device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// In bytes.
    Bytes(u64),
    /// In per cent of the file or device, 0 to 100.
    Percent(u32),
}

impl Default for Size {
    fn default() -> Self {
        Self::Bytes(0)
    }
}

/// Files of a job: their names and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// `filename`, split at its colons, with `directory` in front; at least one name. A name in
    /// `/dev/` is the whole device. Any other name is a file. All jobs that use this name share the
    /// file.
    Named(Vec<String>),
    /// `nrfiles` files that only this job uses, at least one.
    Own(u32),
}

/// `file_service_type`: choice of the file for the next I/O.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileService {
    /// Order of the files.
    pub order: FileServiceOrder,
    /// Number of I/Os to a file before the job chooses the next file, at least 1.
    pub ios_per_file: u32,
}

impl Default for FileService {
    fn default() -> Self {
        Self { order: FileServiceOrder::RoundRobin, ios_per_file: 1 }
    }
}

/// Order in which files are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FileServiceOrder {
    /// Uniformly random.
    Random,
    /// One after another.
    RoundRobin,
    /// One file to its end, then the next file.
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
    /// Normally distributed around the middle file.
    Gauss {
        /// Deviation, per cent of the number of files, 0 to 100.
        deviation_percent: f64,
    },
}

/// `random_distribution`: frequencies of the blocks. `centre` is the position of the most frequent
/// block as a fraction of the file, 0 to 1. If it is `None`, a hash scatters the frequent blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Distribution {
    /// Uniform.
    #[default]
    Random,
    /// By Zipf's law.
    Zipf {
        /// Exponent, greater than 0, not 1.
        theta: f64,
        /// Position of the most frequent block as a fraction of the file, 0 to 1. If it is `None`,
        /// a hash scatters the frequent blocks.
        centre: Option<f64>,
    },
    /// By Pareto's law.
    Pareto {
        /// Shape, between 0 and 1.
        h: f64,
        /// Position of the most frequent block as a fraction of the file, 0 to 1. If it is `None`,
        /// a hash scatters the frequent blocks.
        centre: Option<f64>,
    },
    /// Normally distributed around the middle.
    Normal {
        /// Deviation, per cent of the file, 0 to 100.
        deviation_percent: f64,
        /// Position of the middle as a fraction of the file, 0 to 1. If it is `None`, a hash
        /// scatters the frequent blocks.
        centre: Option<f64>,
    },
    /// `zoned`, `zoned_abs`: each zone of the file has a share of the I/Os. A direction without
    /// zones is `Random`.
    Zoned(PerDirection<Vec<Zone>>),
}

/// A zone of the file. It follows the previous zone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Share of the I/Os in the zone, per cent. The shares of a direction add up to 100.
    pub access_percent: u32,
    /// Size of the zone.
    pub size: ZoneSize,
}

/// Size of a [`Zone`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZoneSize {
    /// Per cent of the file.
    Percent(u32),
    /// `zoned_abs`: bytes.
    Bytes(u64),
}

/// Generator of random offsets: the option `random_generator`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RandomGenerator {
    /// Random numbers, with a map of accessed blocks unless the map is disabled.
    #[default]
    Tausworthe,
    /// fio's LFSR, which accesses each block once without a map. The block size must be fixed.
    Lfsr,
    /// The same as `Tausworthe`, for very large files.
    Tausworthe64,
}

/// `sync`: whether writes of an open file are on the medium when they complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OpenSync {
    /// Writes can be in a volatile cache.
    #[default]
    None,
    /// `O_SYNC`: `sync=sync` or `sync=1`.
    Sync,
    /// `O_DSYNC`: `sync=dsync`.
    Dsync,
}

/// `thinktime` and its related options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTime {
    /// `thinktime`: pause after each group of `blocks` blocks, ns; 0: none.
    pub pause_ns: u64,
    /// `thinktime_spin`: part of the pause in which the CPU is busy, ns. It does not affect the
    /// device.
    pub spin_ns: u64,
    /// `thinktime_blocks`, at least 1.
    pub blocks: u32,
    /// `thinktime_blocks_type`.
    pub counted: ThinkTimeBlocks,
    /// `thinktime_iotime`: time of I/O after which the job also pauses, ns; 0: never.
    pub io_time_ns: u64,
}

impl Default for ThinkTime {
    fn default() -> Self {
        Self { pause_ns: 0, spin_ns: 0, blocks: 1, counted: ThinkTimeBlocks::Complete, io_time_ns: 0 }
    }
}

/// Kind of blocks that the option `thinktime_blocks` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkTimeBlocks {
    /// Completed I/Os.
    #[default]
    Complete,
    /// Issued I/Os.
    Issue,
}

/// `rate_process`: distribution of the submission times at a given rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// At equal intervals.
    #[default]
    Linear,
    /// As a Poisson process, with exponentially distributed intervals.
    Poisson,
}

/// A time drawn uniformly from `min_ns..=max_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delay {
    /// Shortest time, ns.
    pub min_ns: u64,
    /// Longest time, ns.
    pub max_ns: u64,
}

/// A share of I/Os, per cent, 0 to 100.
pub type Share = u32;

/// `cmdprio_percentage`, `cmdprio_class`, `cmdprio`, `cmdprio_bssplit`: priorities of single I/Os.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CmdPriority {
    /// Share of the I/Os with `priority`, per cent. Either this or `split` is used.
    pub percentage: PerDirection<Share>,
    /// Priority of these I/Os.
    pub priority: PerDirection<IoPriority>,
    /// Shares by size of the I/O.
    pub split: PerDirection<Vec<SplitPriority>>,
}

/// One entry of the option `cmdprio_bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitPriority {
    /// Size of the I/Os, bytes.
    pub bytes: u64,
    /// Share of the I/Os of this size that have the priority.
    pub percent: Share,
    /// Priority of these I/Os.
    pub priority: IoPriority,
}

/// Cgroup of a job: the options `cgroup` and `cgroup_weight`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupMember {
    /// Name of the cgroup: a path relative to the root, with parts separated by `/`.
    pub name: String,
    /// Weight of the cgroup, 10 to 1000; `None`: unchanged.
    pub weight: Option<u32>,
}

/// `latency_target` and its related options: fio searches for the largest depth that meets the
/// target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Target latency, ns, greater than 0.
    pub target_ns: u64,
    /// `latency_window`: duration of the test of each depth, ns.
    pub window_ns: u64,
    /// `latency_percentile`: share of the I/Os that must meet the target, per cent, 0 to 100.
    pub percentile: f64,
    /// `latency_run`: the job continues at the depth found, instead of ending.
    pub run: bool,
}

/// `read_iolog` and its related options: the job replays a log.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayLog {
    /// Path of the log, as given.
    pub path: String,
    /// `replay_no_stall`: ignores recorded times, and submits I/Os in order and as fast as the
    /// device allows.
    pub no_stall: bool,
    /// `replay_time_scale`: speed in per cent of the recorded speed, greater than 0.
    pub time_scale_percent: u32,
    /// `replay_scale`: divisor of the offsets, at least 1.
    pub scale: u32,
    /// `replay_align`: offsets are rounded down to multiples of this size, bytes; 0: no rounding.
    pub align_bytes: u64,
    /// `replay_skip`: directions that are left out.
    pub skip: PerDirection<bool>,
    /// `replay_skip`: whether syncs are left out.
    pub skip_syncs: bool,
    /// `replay_redirect`: whether the log can contain several files. All their I/Os go to the
    /// device.
    pub redirect: bool,
    /// I/Os of the log in order of time. Empty until the workload is opened, which reads the log.
    pub ios: Arc<[LogIo]>,
}

/// An I/O of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogIo {
    /// Time since the first I/O of the log, ns.
    pub at_ns: u64,
    /// Direction; `None`: a sync.
    pub direction: Option<Direction>,
    /// Start, bytes.
    pub start: u64,
    /// Length, bytes; 0 for a sync.
    pub bytes: u64,
}

impl ReplayLog {
    /// Returns the start of an I/O of the log on this device, bytes.
    #[must_use]
    pub fn start_of(&self, io: &LogIo) -> u64 {
        let start = io.start / u64::from(self.scale.max(1));
        start - start.checked_rem(self.align_bytes).unwrap_or(0)
    }

    /// Returns the time of an I/O of the log since the start of the replay, ns; 0 if `no_stall` is
    /// set.
    #[must_use]
    pub fn at_ns(&self, io: &LogIo) -> u64 {
        let speed = u128::from(self.time_scale_percent.max(1));
        if self.no_stall { 0 } else { u64::try_from(u128::from(io.at_ns) * 100 / speed).unwrap_or(u64::MAX) }
    }

    /// Returns whether an I/O of the log is replayed.
    #[must_use]
    pub fn replays(&self, io: &LogIo) -> bool {
        !io.direction.map_or(self.skip_syncs, |direction| *self.skip.of(direction))
    }
}

/// Use of `iodepth` by the I/O engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Client {
    /// One I/O at a time, independent of `iodepth`: `sync`, `psync`, `vsync`, `pvsync`, `pvsync2`,
    /// `mmap`.
    #[default]
    Sync,
    /// Up to `iodepth` I/Os at a time: `libaio`, `io_uring`, `posixaio`, `windowsaio`,
    /// `solarisaio`, `sg`, ...
    Async,
}

/// `exit_what`: jobs that end when a job with `exitall` ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitWhat {
    /// All jobs of the same group ([`Job::group`](super::Job::group)).
    #[default]
    Group,
    /// All jobs that run now, up to the next stonewall.
    Stonewall,
    /// All jobs, including those that have not started.
    All,
}

/// Percentiles of latencies that fio reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentiles {
    /// `percentile_list`, per cent, ascending, 0 to 100.
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
