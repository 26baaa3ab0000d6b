//! A fio job with all options resolved: plain data, between the language and the engine.
//!
//! Names and meanings are the same as in fio (HOWTO of fio 3.33). All sizes are in bytes, all times
//! in ns. The language rejects values that are invalid for every device. The layout checks values
//! that depend on the capacity of the device.

use iosched::IoPriority;

use super::value::{
    BlockSize, CgroupMember, Client, CmdPriority, Delay, Distribution, ExitWhat, FileService, Files, LatencyTarget,
    Mode, OpenSync, PerDirection, Percentiles, Placement, RandomGenerator, RateProcess, ReplayLog, Sequencer, Share,
    Size, ThinkTime,
};

/// Jobs in the order of their file. The copies of a job (`numjobs`) follow each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFile {
    /// Name for display: the file's name without its folder.
    pub name: String,
    /// The jobs; at least one.
    pub jobs: Vec<Job>,
    /// Options that are valid in fio and have no effect here.
    pub ignored: Vec<IgnoredOption>,
}

/// An option that has no effect here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredOption {
    /// Line of the file, from 1; 0 for the command line.
    pub line: u32,
    /// Name of the option.
    pub option: String,
    /// Reason as the end of a sentence: "there is no page cache to invalidate".
    pub why: String,
}

/// A job: a process that submits I/Os. [`Job::new`] gives fio's defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name of the job's section, or `name`.
    pub name: String,
    /// Line of the job's section, from 1; 0 for the command line.
    pub line: u32,
    /// Number of this copy of the section (`numjobs`), from 0. The job's offset includes
    /// `offset_increment` times this number.
    pub copy: u32,
    /// `description`.
    pub description: String,
    /// Options of the job's section as written, as pairs of name and value. fio's JSON has them in
    /// `job options`.
    pub options: Vec<(String, String)>,
    /// Options from `[global]`, as pairs of name and value.
    pub global_options: Vec<(String, String)>,

    /// Number of the job's group, from 0. It increases with `new_group` and `stonewall`.
    pub group: u32,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `stonewall`: the job starts after all jobs before it have ended. Only the first copy has
    /// this flag.
    pub stonewall: bool,
    /// `wait_for`: the job starts after the jobs with this name have ended.
    pub wait_for: Option<String>,
    /// `startdelay`, from the start of the run.
    pub start_delay: Delay,
    /// `exitall`: other jobs end when this job ends.
    pub exit_all: Option<ExitWhat>,
    /// `runtime`: time limit after the start and the ramp time, ns; `None`: no limit.
    pub runtime_ns: Option<u64>,
    /// `time_based`: the job repeats until `runtime`.
    pub time_based: bool,
    /// `ramp_time`, ns: I/Os in this time do not count.
    pub ramp_time_ns: u64,
    /// `loops`, at least 1.
    pub loops: u64,
    /// `number_ios`: number of I/Os after which the job ends.
    pub number_ios: Option<u64>,

    /// `rw`: directions of the I/Os.
    pub mode: Mode,
    /// `rw`: placement of the I/Os.
    pub placement: Placement,
    /// `rw_sequencer`.
    pub sequencer: Sequencer,
    /// `rwmixread`: share of reads of [`Mode::ReadWrite`], per cent, 0 to 100.
    pub rwmix_read_percent: Share,
    /// `percentage_random`, per cent. Not used for sequential placement.
    pub random_percent: PerDirection<Share>,

    /// `bs`, `bsrange`, `bssplit`.
    pub block_size: PerDirection<BlockSize>,
    /// `bs_unaligned`: sizes of a range need not be multiples of the smallest size.
    pub bs_unaligned: bool,
    /// `bs_is_seq_rand`: the size for reads applies to sequential I/Os, and the size for writes to
    /// random I/Os.
    pub bs_is_seq_rand: bool,
    /// `blockalign`: alignment of random offsets, bytes; `None`: the smallest block size.
    pub block_align: PerDirection<Option<u64>>,

    /// `filename`, `directory`, `nrfiles`.
    pub files: Files,
    /// `size`: size of all files together; `None`: the whole device or, for files, the sum of
    /// `filesize`.
    pub size: Option<Size>,
    /// `io_size`: bytes moved in one loop; `None`: same as `size`.
    pub io_size: Option<Size>,
    /// `filesize`: size of each file, drawn uniformly from smallest to largest, bytes.
    pub file_size: Option<[u64; 2]>,
    /// `fill_device`: `size` is the available space.
    pub fill_device: bool,
    /// `offset`: start of the job's region in each file.
    pub offset: Size,
    /// `offset_increment`: added to the offset once for each previous copy.
    pub offset_increment: Size,
    /// `offset_align`: an `offset` in per cent is rounded up to a multiple of this number, bytes. 0
    /// means the smallest block size.
    pub offset_align: u64,
    /// `file_service_type`.
    pub file_service: FileService,
    /// `openfiles`: largest number of open files; `None`: all.
    pub open_files: Option<u32>,

    /// `ioengine`: name of the engine.
    pub io_engine: String,
    /// Use of `iodepth` by the engine.
    pub client: Client,
    /// `iodepth`, at least 1.
    pub io_depth: u32,
    /// `iodepth_batch` (`iodepth_batch_submit`): I/Os submitted at once, at least 1.
    pub batch_submit: u32,
    /// `iodepth_batch_complete_min` (`iodepth_batch_complete`): smallest number of completions to
    /// wait for; 0: the job does not wait.
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max`: largest number of completions handled at once; at least
    /// `batch_complete_min`.
    pub batch_complete_max: u32,
    /// `iodepth_low`: after the depth was full, the job lets it fall to this depth before it fills
    /// it again.
    pub io_depth_low: u32,
    /// `direct` (or not `buffered`).
    pub direct: bool,
    /// `sync`.
    pub open_sync: OpenSync,
    /// `fsync`: number of writes between syncs; 0: never.
    pub fsync_ios: u32,
    /// `fdatasync`: number of writes between syncs; 0: never.
    pub fdatasync_ios: u32,
    /// `sync_file_range` with waiting: number of writes between syncs; 0: never.
    pub sync_file_range_ios: u32,
    /// `write_barrier`: every Nth write is a barrier; 0: none.
    pub barrier_ios: u32,
    /// `end_fsync`.
    pub end_fsync: bool,
    /// `fsync_on_close`.
    pub fsync_on_close: bool,

    /// `thinktime` and its related options.
    pub think_time: ThinkTime,
    /// `rate`, bytes/s.
    pub rate_bytes_per_s: PerDirection<Option<u64>>,
    /// `rate_min`, bytes/s: the smallest allowed rate.
    pub rate_min_bytes_per_s: PerDirection<Option<u64>>,
    /// `rate_iops`, I/Os/s.
    pub rate_iops: PerDirection<Option<u64>>,
    /// `rate_iops_min`, I/Os/s.
    pub rate_iops_min: PerDirection<Option<u64>>,
    /// `rate_process`.
    pub rate_process: RateProcess,
    /// `rate_cycle`: time over which the smallest rates are averaged, ns.
    pub rate_cycle_ns: u64,
    /// `rate_ignore_thinktime`: after think time, the job does not submit faster to reach its rate.
    pub rate_ignore_think_time: bool,
    /// `latency_target`.
    pub latency_target: Option<LatencyTarget>,
    /// `max_latency`, ns: a longer latency ends the job.
    pub max_latency_ns: PerDirection<Option<u64>>,

    /// `random_distribution`.
    pub distribution: Distribution,
    /// Whether `norandommap` is not set. The job then accesses each block once before it repeats
    /// any block.
    pub random_map: bool,
    /// `softrandommap`.
    pub soft_random_map: bool,
    /// `random_generator`.
    pub random_generator: RandomGenerator,
    /// `randseed`; `None`: fio's default.
    pub rand_seed: Option<u64>,
    /// `randrepeat`: if true, offsets are the same in every run. If false, they follow from the
    /// run's seed. If `None` (not given), they also follow from the run's seed, unless `randseed`
    /// is given. Thus the runs of a comparison differ.
    pub rand_repeat: Option<bool>,
    /// `allrandrepeat`: the same choice as `rand_repeat`, for all random values.
    pub all_rand_repeat: bool,

    /// `prio`, `prioclass`.
    pub ioprio: IoPriority,
    /// `cmdprio*`.
    pub cmd_priority: Option<CmdPriority>,
    /// `cgroup`, `cgroup_weight`; `None`: the root.
    pub cgroup: Option<CgroupMember>,
    /// `read_iolog` and its related options.
    pub replay: Option<ReplayLog>,
    /// `percentile_list`, `*_percentiles`.
    pub percentiles: Percentiles,
}

/// Default block size of fio, bytes.
const BLOCK_BYTES: u64 = 4096;

impl Job {
    /// Returns whether the job itself waits while the queue has no room for an I/O. With
    /// `io_uring`, the system call passes such an I/O to a kernel thread and returns. With
    /// `posixaio`, a thread of the C library submits the I/O. In these two cases the wait is part
    /// of the completion latency.
    #[must_use]
    pub fn waits_to_submit(&self) -> bool {
        !matches!(self.io_engine.as_str(), "io_uring" | "posixaio")
    }

    /// Creates a job with fio's defaults: sequential reads of 4 KiB, one at a time, of one file.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            line: 0,
            copy: 0,
            description: String::new(),
            options: Vec::new(),
            global_options: Vec::new(),
            group: 0,
            group_reporting: false,
            stonewall: false,
            wait_for: None,
            start_delay: Delay::default(),
            exit_all: None,
            runtime_ns: None,
            time_based: false,
            ramp_time_ns: 0,
            loops: 1,
            number_ios: None,
            mode: Mode::Read,
            placement: Placement::default(),
            sequencer: Sequencer::Sequential,
            rwmix_read_percent: 50,
            random_percent: PerDirection::all(100),
            block_size: PerDirection::all(BlockSize::Fixed(BLOCK_BYTES)),
            bs_unaligned: false,
            bs_is_seq_rand: false,
            block_align: PerDirection::all(None),
            files: Files::Own(1),
            size: None,
            io_size: None,
            file_size: None,
            fill_device: false,
            offset: Size::default(),
            offset_increment: Size::default(),
            offset_align: 0,
            file_service: FileService::default(),
            open_files: None,
            io_engine: "psync".to_owned(),
            client: Client::Sync,
            io_depth: 1,
            batch_submit: 1,
            batch_complete_min: 1,
            batch_complete_max: 1,
            io_depth_low: 1,
            direct: false,
            open_sync: OpenSync::None,
            fsync_ios: 0,
            fdatasync_ios: 0,
            sync_file_range_ios: 0,
            barrier_ios: 0,
            end_fsync: false,
            fsync_on_close: false,
            think_time: ThinkTime::default(),
            rate_bytes_per_s: PerDirection::all(None),
            rate_min_bytes_per_s: PerDirection::all(None),
            rate_iops: PerDirection::all(None),
            rate_iops_min: PerDirection::all(None),
            rate_process: RateProcess::Linear,
            rate_cycle_ns: 1_000_000_000,
            rate_ignore_think_time: false,
            latency_target: None,
            max_latency_ns: PerDirection::all(None),
            distribution: Distribution::Random,
            random_map: true,
            soft_random_map: false,
            random_generator: RandomGenerator::Tausworthe,
            rand_seed: None,
            rand_repeat: None,
            all_rand_repeat: false,
            ioprio: IoPriority::default(),
            cmd_priority: None,
            cgroup: None,
            replay: None,
            percentiles: Percentiles::default(),
        }
    }
}
