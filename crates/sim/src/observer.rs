//! Observers of a run. The compiler makes one engine with an observer and one without. A run
//! without an observer therefore has no cost for observing.

use iosched::{Decision, Flags, IoPriority, Op, TunableError};

/// Result of submitting a bio to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The bio is the first of a new request.
    Allocated,
    /// The bio joined a request.
    Merged,
    /// No request was free. The task waits, and submits the bio again.
    Full,
    /// The bio is already complete: a flush of a device that needs no flush.
    Done,
    /// A controller delays the bio. Later, the bio starts a new request or joins a request.
    Held,
}

/// A bio that was submitted to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Index of the task.
    pub task: usize,
    /// Ordinal of the bio, from 1. Decisions use it as the cookie.
    pub bio: u64,
    /// Operation of the bio.
    pub op: Op,
    /// Flags of the bio.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Whether the task submits the bio again, because the queue was full.
    pub again: bool,
    /// Result of the submission.
    pub taken: Taken,
}

/// A request on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// Index of the task that submitted the first bio of the request, in
    /// [`RunResult::tasks`](crate::RunResult::tasks).
    pub task: usize,
    /// Operation of the request.
    pub op: Op,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
}

/// An I/O whose parts are all complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Index of the task.
    pub task: usize,
    /// Operation of the I/O.
    pub op: Op,
    /// Length in sectors.
    pub nr_sectors: u32,
    /// Whether the I/O was sync.
    pub sync: bool,
    /// Time from submission to completion, ns.
    pub latency_ns: u64,
}

/// A change that the workload made during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A task's ioprio changed.
    IoPriority {
        /// Index of the task.
        task: usize,
        /// New ioprio.
        ioprio: IoPriority,
    },
    /// A weight of a cgroup changed.
    Weight {
        /// Index of the cgroup in the workload's list.
        cgroup: usize,
        /// New weight.
        weight: u32,
        /// Whether `weight` is the weight of the cgroup's own tasks against its child groups. If
        /// false, `weight` is the weight of the cgroup against its siblings.
        leaf: bool,
    },
    /// A task moved to another cgroup.
    CgroupMove {
        /// Index of the task.
        task: usize,
        /// Index of the cgroup in the workload's list; `None`: the root.
        cgroup: Option<usize>,
    },
    /// A cgroup is removed.
    CgroupRemoval {
        /// Index of the cgroup in the workload's list.
        cgroup: usize,
    },
}

/// An observer of a run. By default, every method does nothing. Times are ns since the run's start.
pub trait Observer {
    /// Returns whether the queue records decisions for [`decision`](Self::decision).
    fn wants_decisions(&self) -> bool {
        false
    }

    /// Returns the observer. Returns `None` if the observer wants no reports; the engine then calls
    /// no other method during the run.
    fn watching(&mut self) -> Option<&mut (dyn Observer + '_)>
    where
        Self: Sized,
    {
        Some(self)
    }

    /// Reports a task's index, process id and name, before the run begins.
    fn task(&mut self, task: usize, pid: u32, name: &str) {
        let _ = (task, pid, name);
    }

    /// Reports the ioprio with which a task begins, before the run begins.
    fn ioprio(&mut self, task: usize, ioprio: IoPriority) {
        let _ = (task, ioprio);
    }

    /// Reports the start of the run. `tasks` is the number of tasks. `depth` is the number of
    /// commands that the device accepts at the same time.
    fn begin(&mut self, tasks: usize, depth: u32) {
        let _ = (tasks, depth);
    }

    /// Reports that `task` begins to collect requests on its plug (`open` is true), or ends its
    /// plug.
    fn plug(&mut self, now_ns: u64, task: usize, open: bool) {
        let _ = (now_ns, task, open);
    }

    /// Reports a bio that was submitted to the queue. Decisions about the bio follow.
    fn submitted(&mut self, now_ns: u64, bio: &Submitted) {
        let _ = (now_ns, bio);
    }

    /// Reports a decision of the queue or its scheduler. Cookies are ordinals of bios, from 1.
    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        let _ = (now_ns, decision);
    }

    /// Reports the dispatch of a request. `waiting` requests stay in the queue,
    /// and `in_device` are now in the device.
    fn dispatched(&mut self, now_ns: u64, request: &Dispatched, waiting: usize, in_device: u32) {
        let _ = (now_ns, request, waiting, in_device);
    }

    /// Reports the completion of a bio by its ordinal. An I/O completes with the last of its bios.
    fn bio_done(&mut self, now_ns: u64, bio: u64) {
        let _ = (now_ns, bio);
    }

    /// Reports the completion of an I/O.
    fn completed(&mut self, now_ns: u64, io: &Completed) {
        let _ = (now_ns, io);
    }

    /// Reports a change that the workload made.
    fn change(&mut self, now_ns: u64, change: &Change) {
        let _ = (now_ns, change);
    }

    /// Reports that a tunable was written or read. `change` is the index of the change in the
    /// scenario's list. `answer` is the value after a read, an empty text after a write, or the
    /// reason why the kernel would refuse the change.
    fn tunable(&mut self, now_ns: u64, change: usize, answer: &Result<String, TunableError>) {
        let _ = (now_ns, change, answer);
    }

    /// Reports a rerun: the queue runs without a new event, because the scheduler dispatched no
    /// request in the previous run of the queue.
    fn rerun(&mut self, now_ns: u64) {
        let _ = now_ns;
    }

    /// Reports the end of the run. The last event was at `finished_ns`.
    fn end(&mut self, finished_ns: u64) {
        let _ = finished_ns;
    }
}

/// No observer.
impl Observer for () {
    fn watching(&mut self) -> Option<&mut (dyn Observer + '_)> {
        None
    }
}

/// Implements the reporting methods of an observer. Each method calls the same method of one or two
/// other observers, if they exist. The expressions after `=>` return the other observers, with
/// `$this` as the observer itself.
macro_rules! hand_on {
    ($this:ident => $first:expr) => { hand_on!($this => $first, None::<&mut ()>); };
    ($this:ident => $first:expr, $second:expr) => {
        hand_on! { method task(task: usize, pid: u32, name: &str), $this, $first, $second }
        hand_on! { method ioprio(task: usize, ioprio: IoPriority), $this, $first, $second }
        hand_on! { method begin(tasks: usize, depth: u32), $this, $first, $second }
        hand_on! { method plug(now_ns: u64, task: usize, open: bool), $this, $first, $second }
        hand_on! { method submitted(now_ns: u64, bio: &Submitted), $this, $first, $second }
        hand_on! { method decision(now_ns: u64, decision: &Decision), $this, $first, $second }
        hand_on! { method dispatched(now_ns: u64, request: &Dispatched, waiting: usize, in_device: u32), $this, $first, $second }
        hand_on! { method bio_done(now_ns: u64, bio: u64), $this, $first, $second }
        hand_on! { method completed(now_ns: u64, io: &Completed), $this, $first, $second }
        hand_on! { method change(now_ns: u64, change: &Change), $this, $first, $second }
        hand_on! { method tunable(now_ns: u64, change: usize, answer: &Result<String, TunableError>), $this, $first, $second }
        hand_on! { method rerun(now_ns: u64), $this, $first, $second }
        hand_on! { method end(finished_ns: u64), $this, $first, $second }
    };
    (method $name:ident($($argument:ident: $type:ty),+), $this:ident, $first:expr, $second:expr) => {
        #[inline]
        fn $name(&mut self, $($argument: $type),+) {
            let $this = self;
            if let Some(observer) = $first {
                observer.$name($($argument),+);
            }
            if let Some(observer) = $second {
                observer.$name($($argument),+);
            }
        }
    };
}

impl<O: Observer + ?Sized> Observer for &mut O {
    fn wants_decisions(&self) -> bool {
        (**self).wants_decisions()
    }

    hand_on!(this => Some(&mut **this));
}

/// Two observers.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn wants_decisions(&self) -> bool {
        self.0.wants_decisions() || self.1.wants_decisions()
    }

    hand_on!(this => Some(&mut this.0), Some(&mut this.1));
}

/// An optional observer.
impl<O: Observer> Observer for Option<O> {
    fn wants_decisions(&self) -> bool {
        self.as_ref().is_some_and(Observer::wants_decisions)
    }

    hand_on!(this => this.as_mut());
}

/// An observer that calls a closure for every decision.
#[derive(Clone, Debug)]
pub struct Decisions<F>(pub F);

impl<F: FnMut(u64, &Decision)> Observer for Decisions<F> {
    fn wants_decisions(&self) -> bool {
        true
    }

    #[inline]
    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        (self.0)(now_ns, decision);
    }
}
