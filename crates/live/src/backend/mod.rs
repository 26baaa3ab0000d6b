//! What a live disk keeps its data on.
//!
//! A back end takes [commands](Command) and tells when they are complete: at once, when the ring has a completion for it, or when a time
//! has come. It knows nothing of clients and elevators.

mod faulty;
mod file;
mod memory;
pub(crate) mod modelled;
mod spec;

use std::path::PathBuf;

use iosched::Time;
use iosched_system::{self as system, Segment};

use crate::Errno;
use crate::disk::Command;
use crate::ring::Submissions;
pub use faulty::{Fault, FaultPlan, FaultPlanError, Faulty};
pub use file::{File, OpenError};
pub use memory::Memory;
pub use modelled::Modelled;
pub use spec::{Spec, SpecError};

/// What a live disk needs to know of its back end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// What it is, for people.
    pub about: String,
    /// Size in bytes, a multiple of `block_bytes`.
    pub capacity_bytes: u64,
    /// What it reads and writes at least, in bytes: a power of two from 512 on.
    pub block_bytes: u32,
    /// Commands it takes at once if nothing else is asked for.
    pub depth: u32,
    /// Commands it takes at once at most.
    pub depth_max: u32,
    /// Whether seeking costs.
    pub rotational: bool,
    /// Whether a write that is complete may still have to be flushed.
    pub write_cache: bool,
    /// Whether it can write to stable storage at once.
    pub fua: bool,
    /// Whether what is trimmed reads as zeroes.
    pub trim_zeroes: bool,
    /// Whether zeroes, if they may become a hole, are written faster than data.
    pub fast_zeroes: bool,
    /// Largest command in KiB.
    pub max_hw_sectors_kb: u32,
}

/// A command is complete: its number and its result.
pub(crate) type Completion = (u32, Result<(), Errno>);

/// What keeps the data.
pub(crate) trait Backend: Send {
    /// What it is.
    fn card(&self) -> &Card;

    /// Begins a command. `segments` are its data in order: whoever takes them away drops them before the command is complete.
    /// If that is at once, it is put into `done`.
    fn start(
        &mut self,
        now: Time,
        command: &Command,
        segments: &mut Vec<Segment>,
        ring: &mut Submissions<'_>,
        done: &mut Vec<Completion>,
    );

    /// The ring has completed what was submitted for the command `id`, with `result` as a system call has it, and hands back
    /// its memory.
    fn completed(
        &mut self,
        _id: u32,
        _result: i32,
        _memory: system::Memory,
        _ring: &mut Submissions<'_>,
        _done: &mut Vec<Completion>,
    ) {
    }

    /// When [`Backend::advance`] has something to do.
    fn next_event(&self) -> Option<Time> {
        None
    }

    /// The file that the data was found by, if that name is no longer its: it was deleted, or another file has taken
    /// its place.
    fn gone(&self) -> Option<PathBuf> {
        None
    }

    /// Does what is due at `now`.
    fn advance(&mut self, _now: Time, _ring: &mut Submissions<'_>, _done: &mut Vec<Completion>) {}
}
