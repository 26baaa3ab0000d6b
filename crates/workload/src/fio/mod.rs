//! fio jobs as workloads: what a job is, how its files lie on a device, and which I/Os it makes.
//!
//! A [`JobFile`] holds jobs of which every option is resolved and every copy (`numjobs`) stands by itself. What a
//! language does not say is fio's default, as of fio 3.33's HOWTO.

mod crew;
mod distribution;
pub mod fuzz;
mod generator;
mod job;
mod jobs;
mod language;
mod layout;
mod log;
mod process;
mod random_map;
mod service;
mod value;

pub use crew::{Crew, Order};
pub use generator::{Generator, JobIo, Step, SyncKind};
pub use job::{IgnoredOption, Job, JobFile};
pub use jobs::Jobs;
pub use language::*;
pub use layout::{FILE_ALIGN_BYTES, JobLayout, Layout, Region};
pub(crate) use log::load as load_logs;
pub use process::{Action, Process, Slot};
pub use value::{
    BlockSize, CgroupMember, Client, CmdPriority, Delay, Direction, Distribution, ExitWhat, FileService,
    FileServiceOrder, Files, LatencyTarget, LogIo, Mode, OpenSync, PerDirection, Percentiles, Placement,
    RandomGenerator, RateProcess, ReplayLog, Sequencer, Share, Size, SplitPriority, SplitSize, ThinkTime,
    ThinkTimeBlocks, Zone, ZoneSize,
};
