//! fio jobs as workloads: what a job is, how its files lie on a device, and which I/Os it makes.
//!
//! A [`JobFile`] holds jobs of which every option is resolved and every copy (`numjobs`) stands by itself. What a
//! language does not say is fio's default, as of fio 3.33's HOWTO.

mod job;
mod value;

pub use job::{IgnoredOption, Job, JobFile};
pub use value::{
    BlockSize, CgroupMember, Client, CmdPriority, Delay, Direction, Distribution, ExitWhat, FileService,
    FileServiceOrder, Files, LatencyTarget, Mode, OpenSync, PerDirection, Percentiles, Placement, RandomGenerator,
    RateProcess, ReplayLog, Sequencer, Share, Size, SplitPriority, SplitSize, ThinkTime, ThinkTimeBlocks, Zone,
    ZoneSize,
};
