//! Applications: programs that make system calls.
//!
//! An [`Application`] consists of tasks and the files that exist at its start. A simulated kernel
//! runs the application. When a step of a task is done, the kernel asks the task for the next
//! [`Step`] and gives it the time. From these times, the application measures itself, as the
//! original program does. It [reports](Application::report) the metrics that the original program
//! prints. An application does not know page caches, request queues and devices.

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
    /// Name of the task for display.
    pub name: String,
}

/// A file or directory that exists before the application starts. Its data is on the medium, not in
/// the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Existing {
    /// Number of the node.
    pub node: Node,
    /// Directory of the node: a root, or a directory that is listed before the node.
    pub parent: Node,
    /// Length of the name, bytes.
    pub name_bytes: u8,
    /// Size of the file; `None`: a directory.
    pub bytes: Option<u64>,
}

/// Contents of a file that was created just before a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The whole disk, without a file system.
    Device,
    /// Data, all of it on the medium.
    Written,
    /// Blocks without data, as fallocate(2) creates them.
    Preallocated,
    /// A hole: a file with a length and without blocks.
    Hole,
}

/// A file that a program created just before the start. Its metadata is in memory, but its data is
/// not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaidOut {
    /// Number of the file.
    pub node: Node,
    /// Size of the file. Not used for a device.
    pub bytes: u64,
    /// Contents of the file.
    pub contents: Contents,
}

/// Results of an application that has ended.
#[derive(Clone, Debug, Default)]
pub struct AppOutcome {
    /// Metrics that the program measured. `None` if the program prints no metrics.
    pub report: Option<Report>,
    /// Results of each job, if the application consists of jobs.
    pub jobs: Vec<JobResult>,
    /// Notes for readers of the results.
    pub notes: Vec<Note>,
}

/// Next action of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A system call, or several equal system calls.
    Call(Call),
    /// The task computes for this CPU time.
    Compute {
        /// CPU time, ns.
        ns: u64,
    },
    /// The task sleeps until this time, or until [`Application::take_woken`] returns the task.
    Sleep {
        /// End of the sleep, ns since the start.
        until_ns: u64,
    },
    /// The task sleeps until [`Application::take_woken`] returns the task.
    Wait,
    /// The task exits.
    Exit,
}

/// A running application. Its behaviour depends only on its options, its seed and the times of the
/// calls.
pub trait Application: Send {
    /// Returns the tasks. All start at the same time.
    fn tasks(&self) -> &[AppTask];

    /// Returns the files and directories that exist on the disks at the start. Directories come
    /// before their contents.
    fn existing(&self) -> &[Existing];

    /// Returns the files that were created on the first disk just before the start. They are not
    /// part of [`existing`](Self::existing).
    fn laid_out(&self) -> &[LaidOut] {
        &[]
    }

    /// Reports that a [`Call::Submit`] of `task` is complete.
    fn done(&mut self, task: usize, tag: u32, now_ns: u64) {
        let _ = (task, tag, now_ns);
    }

    /// Returns the next step of task number `task`. The task's previous step ended at `now_ns`, ns
    /// since the start. The caller must not call this function after [`Step::Exit`], or while the
    /// task [waits](Step::Wait).
    fn step(&mut self, task: usize, now_ns: u64) -> Step;

    /// Returns a task that waited or slept and can continue. After every step and every
    /// [`done`](Self::done), the caller calls this function until it returns `None`.
    fn take_woken(&mut self) -> Option<usize> {
        None
    }

    /// Returns the byte offsets of the last [`Call::WriteScattered`] of `task`. There is at least
    /// one offset, and no offset appears twice. The offsets stay the same until the next step of
    /// the task.
    fn batch(&self, task: usize) -> &[u64] {
        let _ = task;
        &[]
    }

    /// Returns the completed share of the work, 0 to 1, for progress bars.
    fn progress(&self) -> f64;

    /// Returns the metrics that the application has measured so far.
    fn report(&self) -> Report;

    /// Returns the results at the end of the application or of the run, at `now_ns`.
    fn outcome(&mut self, now_ns: u64) -> AppOutcome {
        let _ = now_ns;
        AppOutcome { report: Some(self.report()), ..AppOutcome::default() }
    }
}
