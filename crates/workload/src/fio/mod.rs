//! fio jobs as workloads: what a job is, how its files lie on a device, and which I/Os it makes.
//!
//! A [`JobFile`] holds jobs of which every option is resolved and every copy (`numjobs`) stands by itself. What a
//! language does not say is fio's default, as of fio 3.33's HOWTO.
//!
//! # Inside
//!
//! | file | what it is |
//! |---|---|
//! | `language/` | job files: sections, values, arithmetic, one table of all options; what is honoured, what is ignored and what is refused |
//! | `job.rs` | a job once every option is resolved |
//! | `layout.rs` | where the files of jobs lie on the device |
//! | `generator.rs`, `distribution.rs`, `random_map.rs` | the sequence of a job's I/Os |
//! | `process/` | a job at work: what it does next, given what is done; its pace and its figures |
//! | `program.rs` | jobs as programs that make system calls, on a machine with a page cache |
//! | `crew.rs` | which jobs start and end because of others |
//!
//! All of it is sans-IO, as are `task_loop.rs` (a task's closed loop) and `replay.rs` (a process in closed replay):
//! `crates/sim/src/engine` and `crates/kernel/src/execute` carry out what they ask for, one in virtual time, the other
//! with system calls. `outcome/` is what both give.

mod crew;
mod distribution;
pub mod fuzz;
mod generator;
mod job;
mod jobs;
pub(crate) mod language;
mod layout;
mod log;
mod process;
mod program;
mod random_map;
mod service;
mod value;

pub use crate::outcome::SyncKind;
pub use crew::{Crew, Order};
pub use generator::{Generator, JobIo, Step};
pub use job::{IgnoredOption, Job, JobFile};
pub use jobs::Jobs;
pub use language::*;
pub use layout::{FILE_ALIGN_BYTES, JobLayout, Layout, Region};
pub(crate) use log::load as load_logs;
pub use process::{Action, Process, Slot};
pub use program::JobProgram;
pub use value::{
    BlockSize, CgroupMember, Client, CmdPriority, Delay, Direction, Distribution, ExitWhat, FileService,
    FileServiceOrder, Files, LatencyTarget, LogIo, Mode, OpenSync, PerDirection, Percentiles, Placement,
    RandomGenerator, RateProcess, ReplayLog, Sequencer, Share, Size, SplitPriority, SplitSize, ThinkTime,
    ThinkTimeBlocks, Zone, ZoneSize,
};
