//! Applications: programs that make system calls.
//!
//! An [`Application`] is some tasks and the files they find. Whoever runs it, a modelled kernel or later a real one,
//! asks each task for its next [`Step`] when the one before is done, and tells it the time: the program measures itself
//! with it, as the original does, and [reports](Application::report) what the original reports. It knows nothing of
//! page caches, request queues and devices.

mod bonnie;
mod call;
pub(crate) mod command_line;
mod daemon;
mod dd;
mod fdtree;
mod fs_mark;
mod hdparm;
mod ioping;
mod iozone;
mod option;
mod permutation;
mod phased;
mod report;
mod spec;
mod sysbench;
#[cfg(test)]
mod tests;
mod tpcc;

pub use call::{Advice, Call, Node, OpenFlags, Source};
pub use daemon::Daemon;
pub use option::{About, AppOption};
pub use report::{Better, Figure, Report, Series};
pub(crate) use spec::as_fio;
pub use spec::{Spec, programs, programs_as_fio};

use crate::outcome::{JobResult, Note};

/// A task of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppTask {
    /// Its name, for people.
    pub name: String,
}

/// A file or directory that is there before the application starts; its data is on the medium and not cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Its number.
    pub node: Node,
    /// The directory it is in: a root, or one that is named before it.
    pub parent: Node,
    /// Length of its name.
    pub name_bytes: u8,
    /// Its size; `None`: a directory.
    pub bytes: Option<u64>,
}

/// What a file consists of when a program begins that has just made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The disk itself, from its first byte to its last: no file system.
    Device,
    /// Data, all of it on the medium.
    Written,
    /// Blocks that nothing was written to yet: as fallocate(2) leaves them.
    Preallocated,
    /// Nothing: a file without blocks, of its length.
    Hole,
}

/// A file that a program has laid out just before: what leads to it is in memory, and none of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// Its number.
    pub node: Node,
    /// Its size; without meaning of a device.
    pub bytes: u64,
    /// What it consists of.
    pub contents: Contents,
}

/// What an application that has ended leaves.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// What it has measured, if it is a program that prints figures.
    pub report: Option<Report>,
    /// What it tells of each job, if it consists of jobs.
    pub jobs: Vec<JobResult>,
    /// What a reader of its figures should know.
    pub notes: Vec<Note>,
}

/// What a task does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A system call, or a run of like ones.
    Call(Call),
    /// It computes for so long, ns of CPU time.
    Compute {
        /// How long.
        ns: u64,
    },
    /// It sleeps until this moment, ns since the start, or until [`Application::take_woken`] names it.
    Sleep {
        /// When it goes on.
        until_ns: u64,
    },
    /// It sleeps until [`Application::take_woken`] names it.
    Wait,
    /// It is done.
    Exit,
}

/// A running application. A function of its options and its seed.
pub trait Application: Send {
    /// Its tasks. All start at once.
    fn tasks(&self) -> &[AppTask];

    /// What it finds on the disks, parents before what is in them.
    fn existing(&self) -> &[Existing];

    /// What it has laid out on the first disk, besides what it finds.
    fn laid_out(&self) -> &[LaidOut] {
        &[]
    }

    /// A [`Call::Submit`] of `task` is done.
    fn done(&mut self, task: usize, tag: u32, now_ns: u64) {
        let _ = (task, tag, now_ns);
    }

    /// What task `task` does next; what it did before is done at `now_ns`, ns since the start. Not called again after
    /// [`Step::Exit`], nor while the task [waits](Step::Wait).
    fn step(&mut self, task: usize, now_ns: u64) -> Step;

    /// A task that waited or slept and may go on. Asked after every step, and after [`done`](Self::done), until it
    /// gives `None`.
    fn take_woken(&mut self) -> Option<usize> {
        None
    }

    /// The offsets of the [`Call::WriteScattered`] that `task` was last given, bytes; at least one, none twice. They
    /// stay the same until its next step.
    fn batch(&self, task: usize) -> &[u64] {
        let _ = task;
        &[]
    }

    /// How much of its work is done, 0 to 1; for progress bars.
    fn progress(&self) -> f64;

    /// What it has measured so far.
    fn report(&self) -> Report;

    /// What it leaves when it has ended, or the run has, at `now_ns`.
    fn told(&mut self, now_ns: u64) -> Told {
        let _ = now_ns;
        Told { report: Some(self.report()), ..Told::default() }
    }
}
