//! The state of a task's closed loop: how many I/Os the task submits after each completion, and
//! when it submits them. This module knows neither the queue nor the device.
//!
//! The caller lets the [first](TaskLoop::first) I/Os arrive at the task's start. It asks for the
//! [place](TaskLoop::next_place) of each I/O that [arrives](TaskLoop::arrive). It applies the
//! result of each [completion](TaskLoop::completed).

use crate::program::Program;
use crate::tasks::{Task, TaskSet};

/// The task that continues when an I/O of another task completes.
#[derive(Clone, Copy, Debug)]
struct Successor {
    task: u32,
    /// Number of I/Os that the task submits.
    ios: u64,
    /// Whether every completion starts the task. Otherwise, only a completion that leaves no I/O in
    /// flight starts it.
    each: bool,
}

/// Consequence of a completed I/O for its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// No submission follows yet.
    Nothing,
    /// The same task submits again.
    Again {
        /// Time of the submission, ns.
        at_ns: u64,
        /// Number of I/Os.
        ios: u32,
    },
    /// Another task is [called](TaskLoop::called).
    Call {
        /// Number of the other task in the set.
        task: u32,
        /// Time of its submission, ns.
        at_ns: u64,
        /// Number of I/Os. The other task submits fewer if it has fewer left.
        ios: u64,
    },
    /// The task has finished and exits.
    Exit,
}

/// The state of a task's closed loop.
#[derive(Clone, Debug)]
pub struct TaskLoop {
    program: Option<Program>,
    iodepth: u64,
    batch: u64,
    total: u64,
    exits: bool,
    successor: Option<Successor>,
    /// Time from which the task submits nothing, ns.
    end_ns: u64,
    submitted: u64,
    scheduled: u64,
    /// Number of completions in the current batch. The task waits for the rest of the batch.
    pend: u64,
    outstanding: u64,
    exited: bool,
}

impl TaskLoop {
    /// Creates the loops of a set's tasks in their initial state.
    #[must_use]
    pub fn all(set: &TaskSet) -> Vec<Self> {
        let numbers = TaskNumbers::of(set);
        set.tasks.iter().map(|task| Self::new(task, set, &numbers)).collect()
    }

    fn new(task: &Task, set: &TaskSet, numbers: &TaskNumbers) -> Self {
        let successor = match (task.relay, task.wakes) {
            (Some(pid), _) => Some((pid, task.relay_n.into(), false)),
            (None, Some(pid)) => Some((pid, 1, true)),
            (None, None) => None,
        };
        let successor =
            successor.and_then(|(pid, ios, each)| numbers.of_pid(pid).map(|task| Successor { task, ios, each }));
        let total = task.total().unwrap_or(u64::MAX);
        Self {
            program: Program::new(task),
            iodepth: task.iodepth.into(),
            batch: task.batch.into(),
            total,
            exits: task.exit,
            successor,
            end_ns: set.end_ns.unwrap_or(u64::MAX),
            submitted: 0,
            scheduled: total.min(task.iodepth.into()),
            pend: 0,
            outstanding: 0,
            exited: false,
        }
    }

    /// Returns the number of I/Os that arrive when the task starts. Returns 0 if the task submits
    /// nothing by itself.
    #[must_use]
    pub fn first(&self) -> u32 {
        if self.program.is_some() { self.total.min(self.iodepth) as u32 } else { 0 }
    }

    /// Returns the task that the completions of this task start, if any.
    #[must_use]
    pub fn calls(&self) -> Option<u32> {
        self.successor.map(|successor| successor.task)
    }

    /// Records the arrival of scheduled I/Os. Returns `false` if the task has exited.
    #[inline]
    pub fn arrive(&mut self, ios: u32) -> bool {
        if !self.exited {
            self.scheduled -= u64::from(ios);
            self.submitted += u64::from(ios);
            self.outstanding += u64::from(ios);
        }
        !self.exited
    }

    /// Returns the first sector and the length of the next arrived I/O. `None` if the task has no
    /// program.
    #[inline]
    pub fn next_place(&mut self) -> Option<(u64, u32)> {
        self.program.as_mut().map(Program::next_place)
    }

    /// Returns the number of the program's current phase.
    #[must_use]
    pub fn phase(&self) -> usize {
        self.program.as_ref().map_or(0, Program::phase)
    }

    /// Ends a phase after its last I/O. Without this call, the first I/O of the next phase ends it.
    pub fn end_phase(&mut self) {
        if let Some(program) = &mut self.program {
            program.end_phase();
        }
    }

    /// Records the completion of one I/O.
    #[inline]
    pub fn completed(&mut self, now_ns: u64) -> After {
        self.outstanding -= 1;
        let Some(program) = self.program.as_mut().filter(|_| !self.exited) else {
            return After::Nothing;
        };
        if let Some(Successor { task, ios, each }) = self.successor {
            if !each && self.outstanding > 0 {
                return After::Nothing;
            }
            return After::Call { task, at_ns: now_ns.saturating_add(program.next_think_ns()), ios };
        }
        let at_ns = now_ns.saturating_add(program.next_think_ns());
        let left = self.total - self.submitted - self.scheduled;
        if left > 0 && at_ns < self.end_ns {
            self.pend += 1;
            if self.pend >= self.batch || self.pend >= left || self.outstanding == 0 {
                let ios = self.pend.min(left);
                self.scheduled += ios;
                self.pend = 0;
                return After::Again { at_ns, ios: ios as u32 };
            }
        } else if self.exits && self.scheduled == 0 && self.outstanding == 0 {
            return After::Exit;
        }
        After::Nothing
    }

    /// Schedules up to `ios` I/Os at `at_ns`, because a completion of another task starts this
    /// task. Returns the number of scheduled I/Os.
    pub fn called(&mut self, at_ns: u64, ios: u64) -> u32 {
        let ios = ios.min(self.total - self.submitted - self.scheduled);
        if ios == 0 || at_ns >= self.end_ns || self.program.is_none() {
            return 0;
        }
        self.scheduled += ios;
        ios as u32
    }

    /// Returns whether the task has exited.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Marks the task as exited. Returns `false` if it had exited before.
    pub fn exit(&mut self) -> bool {
        !std::mem::replace(&mut self.exited, true)
    }
}

/// Numbers of a set's tasks, by pid.
#[derive(Clone, Debug)]
pub struct TaskNumbers(Vec<(u32, u32)>);

impl TaskNumbers {
    /// Creates the numbers of a set's tasks.
    #[must_use]
    pub fn of(set: &TaskSet) -> Self {
        let mut numbers: Vec<(u32, u32)> = set.tasks.iter().zip(0..).map(|(task, number)| (task.pid, number)).collect();
        numbers.sort_unstable();
        Self(numbers)
    }

    /// Returns the number of the task with this pid.
    #[must_use]
    pub fn of_pid(&self, pid: u32) -> Option<u32> {
        self.0.binary_search_by_key(&pid, |&(pid, _)| pid).ok().map(|at| self.0[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{Pattern, Think};

    fn set(tasks: Vec<Task>) -> TaskSet {
        TaskSet { tasks, ..TaskSet::default() }
    }

    fn task(pid: u32) -> Task {
        Task { pattern: Some(Pattern::Seq), think_ns: Some(Think::Fixed(10)), ..Task::new(pid) }
    }

    #[test]
    fn batch_is_submitted_when_full_or_when_no_more_ios_are_left() {
        let task = Task { iodepth: 3, batch: 2, total: Some(6), exit: true, ..task(1) };
        let mut tasks = TaskLoop::all(&set(vec![task]));
        let task = &mut tasks[0];
        assert_eq!(task.first(), 3);
        assert!(task.arrive(3));
        assert_eq!(task.completed(100), After::Nothing);
        assert_eq!(task.completed(200), After::Again { at_ns: 210, ios: 2 });
        assert!(task.arrive(2));
        assert_eq!(task.completed(300), After::Again { at_ns: 310, ios: 1 });
        assert!(task.arrive(1));
        assert_eq!(
            [task.completed(400), task.completed(500), task.completed(600)],
            [After::Nothing, After::Nothing, After::Exit]
        );
    }

    #[test]
    fn relay_calls_its_partner_when_it_has_no_io_in_flight() {
        let relays = Task { relay: Some(9), relay_n: 4, iodepth: 2, total: Some(2), ..task(1) };
        let mut tasks = TaskLoop::all(&set(vec![relays, Task { iodepth: 0, total: Some(3), ..task(9) }]));
        assert!(tasks[0].arrive(2));
        assert_eq!(tasks[0].completed(5), After::Nothing);
        assert_eq!(tasks[0].completed(7), After::Call { task: 1, at_ns: 17, ios: 4 });
        assert_eq!((tasks[1].first(), tasks[1].called(17, 4), tasks[1].called(17, 4)), (0, 3, 0));
    }
}
