//! Who watches a run. The engine is compiled twice: for nobody, where watching is nothing at all, and for whoever does.

use iosched::{Decision, Flags, IoPriority, Op, TunableError};

/// What the queue did with a bio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is the first of a new request.
    Allocated,
    /// It joined a request.
    Merged,
    /// No request was free: its task waits, and the bio comes again.
    Full,
    /// It is done already: a flush of a device that needs none.
    Done,
    /// A controller holds it back: it joins a request or becomes one later.
    Held,
}

/// A bio that was handed to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submitted {
    /// Number of its task.
    pub task: usize,
    /// Its ordinal, from 1: what decisions call its cookie.
    pub bio: u64,
    /// What it does.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Whether it comes again after the queue was full.
    pub again: bool,
    /// What became of it.
    pub taken: Taken,
}

/// A request on its way to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// Number of the task whose bio founded it, in the order of [`RunResult::tasks`](crate::RunResult::tasks).
    pub task: usize,
    /// What it does.
    pub op: Op,
    /// First sector.
    pub sector: u64,
    /// Length in sectors; 0 for a flush.
    pub nr_sectors: u32,
}

/// An I/O that is done, all parts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// Number of its task.
    pub task: usize,
    /// What it did.
    pub op: Op,
    /// Length in sectors.
    pub nr_sectors: u32,
    /// Whether somebody waited for it.
    pub sync: bool,
    /// From submission to completion, ns.
    pub latency_ns: u64,
}

/// What the workload changed while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A task's ioprio.
    IoPriority {
        /// Number of the task.
        task: usize,
        /// From now on.
        ioprio: IoPriority,
    },
    /// A weight of a cgroup.
    Weight {
        /// Number of the cgroup in the workload's list.
        cgroup: usize,
        /// From now on.
        weight: u32,
        /// Whether it is the weight of its own tasks rather than that among its siblings.
        leaf: bool,
    },
    /// The cgroup a task is in.
    CgroupMove {
        /// Number of the task.
        task: usize,
        /// Number of the cgroup in the workload's list; `None`: the root.
        cgroup: Option<usize>,
    },
    /// A cgroup is removed now.
    CgroupRemoval {
        /// Number of the cgroup in the workload's list.
        cgroup: usize,
    },
}

/// Watches a run. Every method does nothing unless written; moments are ns since the run's start.
pub trait Observer {
    /// Whether the queue records decisions for [`decision`](Self::decision).
    fn wants_decisions(&self) -> bool {
        false
    }

    /// Who watches; `None` if nobody does: the engine then asks nothing while it runs.
    fn watching(&mut self) -> Option<&mut (dyn Observer + '_)>
    where
        Self: Sized,
    {
        Some(self)
    }

    /// There is a task of that number, process id and name: said of each before the run begins.
    fn task(&mut self, task: usize, pid: u32, name: &str) {
        let _ = (task, pid, name);
    }

    /// The ioprio that a task begins with: said of each before the run begins.
    fn ioprio(&mut self, task: usize, ioprio: IoPriority) {
        let _ = (task, ioprio);
    }

    /// The run begins. `tasks` is the number of tasks, `depth` the commands the device takes at once.
    fn begin(&mut self, tasks: usize, depth: u32) {
        let _ = (tasks, depth);
    }

    /// From now on requests of `task` collect on its plug (`open`), or do not any more.
    fn plug(&mut self, now_ns: u64, task: usize, open: bool) {
        let _ = (now_ns, task, open);
    }

    /// A bio was handed to the queue; what was decided about it comes after.
    fn submitted(&mut self, now_ns: u64, bio: &Submitted) {
        let _ = (now_ns, bio);
    }

    /// The queue or its elevator decided something. Cookies are ordinals of bios, from 1.
    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        let _ = (now_ns, decision);
    }

    /// A request goes to the device. `waiting` requests stay in the queue, `in_device` are now in the device.
    fn dispatched(&mut self, now_ns: u64, request: &Dispatched, waiting: usize, in_device: u32) {
        let _ = (now_ns, request, waiting, in_device);
    }

    /// A bio is done, by its ordinal; an I/O is done with the last of its bios.
    fn bio_done(&mut self, now_ns: u64, bio: u64) {
        let _ = (now_ns, bio);
    }

    /// An I/O is done.
    fn completed(&mut self, now_ns: u64, io: &Completed) {
        let _ = (now_ns, io);
    }

    /// The workload changed something.
    fn change(&mut self, now_ns: u64, change: &Change) {
        let _ = (now_ns, change);
    }

    /// A tunable was written, or read: the change of that number in the scenario's list. What it was when it is read, or
    /// nothing; or why it was refused.
    fn tunable(&mut self, now_ns: u64, change: usize, answer: &Result<String, TunableError>) {
        let _ = (now_ns, change, answer);
    }

    /// The queue is run once more although nothing has happened: the elevator gave nothing before.
    fn rerun(&mut self, now_ns: u64) {
        let _ = now_ns;
    }

    /// The run is over; the last event was at `finished_ns`.
    fn end(&mut self, finished_ns: u64) {
        let _ = finished_ns;
    }
}

/// Nobody watches.
impl Observer for () {
    fn watching(&mut self) -> Option<&mut (dyn Observer + '_)> {
        None
    }
}

/// All methods of an observer, handed on to one or two others if they are there: `$this` is what they are found in.
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

/// Both watch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn wants_decisions(&self) -> bool {
        self.0.wants_decisions() || self.1.wants_decisions()
    }

    hand_on!(this => Some(&mut this.0), Some(&mut this.1));
}

/// Somebody watches, or nobody.
impl<O: Observer> Observer for Option<O> {
    fn wants_decisions(&self) -> bool {
        self.as_ref().is_some_and(Observer::wants_decisions)
    }

    hand_on!(this => this.as_mut());
}

/// A closure that is given every decision.
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
