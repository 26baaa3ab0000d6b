//! fio jobs as workloads: the options of a job, the places of its files on a device, and its I/Os.
//!
//! A [`JobFile`] holds jobs with all options resolved. Each copy (`numjobs`) is a separate job.
//! Options that are not given have fio's defaults, as in the HOWTO of fio 3.33.
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `language/` | job files: sections, values, arithmetic, one table of all options; options that are honoured, ignored or rejected |
//! | `job.rs` | a job with all options resolved |
//! | `layout.rs` | the places of the jobs' files on the device |
//! | `generator.rs`, `distribution.rs`, `random_map.rs` | the sequence of a job's I/Os |
//! | `process/` | the state of a running job: its next action after each completion, its pace and its metrics |
//! | `program.rs` | jobs as programs that make system calls, on a machine with a page cache |
//! | `crew.rs` | the start and end of jobs that depend on other jobs |
//!
//! These files, `task_loop.rs` (a task's closed loop) and `replay.rs` (a process in closed replay)
//! do not execute I/Os. `crates/sim/src/engine` executes the I/Os in virtual time, and
//! `crates/kernel/src/execute` executes them with system calls. Both return the types of
//! `outcome/`.

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
