//! Start and end of jobs that depend on other jobs: `startdelay`, `stonewall`, `wait_for`,
//! `exitall`.
//!
//! The caller reports jobs that [start](Crew::starts) and jobs that have [ended](Crew::ended), and
//! executes the [orders](Crew::take_order).

use std::collections::VecDeque;

use super::job::Job;
use super::jobs::Jobs;
use super::process::Process;
use super::value::ExitWhat;

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Waiting,
    /// The job has an order to start.
    Called,
    Running,
    Ended,
}

/// An action that the caller takes with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Start the job at this time, unless it is skipped first.
    Start {
        /// Start time, ns.
        at_ns: u64,
    },
    /// Stop a running job: it submits no more I/Os.
    Stop,
    /// End a job that has not started.
    Skip,
}

struct Member<'a> {
    job: &'a Job,
    life: Life,
    delay_ns: u64,
}

/// The jobs of a run.
pub struct Crew<'a> {
    members: Vec<Member<'a>>,
    /// Whether the jobs run without waiting for each other.
    alone: bool,
    orders: VecDeque<(usize, Order)>,
}

impl<'a> Crew<'a> {
    /// Creates the jobs of a run. Jobs that wait for no other job get their orders immediately. The
    /// jobs have the same numbers as in [`Jobs::iter`].
    #[must_use]
    pub fn new(jobs: &'a Jobs, run_seed: u64) -> Self {
        let member = |(number, job): (usize, &'a Job)| {
            let delay_ns = Process::delay_ns(job, jobs.seed(number, run_seed));
            Member { job, life: Life::Waiting, delay_ns }
        };
        let mut crew =
            Self { members: jobs.iter().map(member).collect(), alone: jobs.is_alone(), orders: VecDeque::new() };
        crew.start_ready(0);
        crew
    }

    /// Returns the next order, and the number of its job.
    pub fn take_order(&mut self) -> Option<(usize, Order)> {
        self.orders.pop_front()
    }

    /// Records that a job is about to start. Returns `false` if the job must not start.
    pub fn starts(&mut self, number: usize) -> bool {
        let life = &mut self.members[number].life;
        let starts = *life == Life::Called;
        if starts {
            *life = Life::Running;
        }
        starts
    }

    /// Records the end of a job. As a result, other jobs may get new orders.
    pub fn ended(&mut self, number: usize, now_ns: u64) {
        self.members[number].life = Life::Ended;
        let Job { group, exit_all, .. } = *self.members[number].job;
        if let Some(what) = exit_all {
            for other in 0..self.members.len() {
                let Member { job, life, .. } = &self.members[other];
                let meant = match what {
                    ExitWhat::Group => job.group == group,
                    ExitWhat::Stonewall => *life == Life::Running,
                    ExitWhat::All => true,
                };
                if meant {
                    self.stop(other);
                }
            }
        }
        self.start_ready(now_ns);
    }

    fn stop(&mut self, number: usize) {
        let life = &mut self.members[number].life;
        let order = match life {
            Life::Waiting | Life::Called => {
                *life = Life::Ended;
                Order::Skip
            }
            Life::Running => Order::Stop,
            Life::Ended => return,
        };
        self.orders.push_back((number, order));
    }

    /// Orders the start of jobs that no longer wait for another job.
    fn start_ready(&mut self, now_ns: u64) {
        for i in 0..self.members.len() {
            let (before, [member, ..]) = self.members.split_at_mut(i) else { return };
            let unfinished = |earlier: &Member<'_>| earlier.life != Life::Ended;
            if !self.alone && member.job.stonewall && before.iter().any(unfinished) {
                return;
            }
            let awaited = member.job.wait_for.as_ref().filter(|_| !self.alone);
            let waits = awaited
                .is_some_and(|name| before.iter().any(|earlier| earlier.job.name == *name && unfinished(earlier)));
            if member.life == Life::Waiting && !waits {
                member.life = Life::Called;
                self.orders.push_back((i, Order::Start { at_ns: member.delay_ns.max(now_ns) }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fio::JobFile;

    fn jobs(jobs: Vec<Job>) -> Jobs {
        Jobs::new(JobFile { name: "t.fio".to_owned(), jobs, ignored: Vec::new() })
    }

    fn orders(crew: &mut Crew<'_>) -> Vec<(usize, Order)> {
        std::iter::from_fn(|| crew.take_order()).collect()
    }

    const NOW: Order = Order::Start { at_ns: 0 };

    #[test]
    fn stonewall_waits_for_all_jobs_before_it() {
        let set = jobs(vec![Job::new("a"), Job::new("b"), Job { stonewall: true, ..Job::new("c") }, Job::new("d")]);
        let mut crew = Crew::new(&set, 1);
        assert_eq!(orders(&mut crew), [(0, NOW), (1, NOW)]);
        assert!(crew.starts(0) && crew.starts(1) && !crew.starts(2));
        crew.ended(0, 5);
        assert_eq!(orders(&mut crew), []);
        crew.ended(1, 9);
        assert_eq!(orders(&mut crew), [(2, Order::Start { at_ns: 9 }), (3, Order::Start { at_ns: 9 })]);
    }

    #[test]
    fn job_with_wait_for_starts_when_the_other_job_ends() {
        let set = jobs(vec![Job::new("a"), Job { wait_for: Some("a".to_owned()), ..Job::new("b") }]);
        let mut crew = Crew::new(&set, 1);
        assert_eq!(orders(&mut crew), [(0, NOW)]);
        assert!(crew.starts(0));
        crew.ended(0, 7);
        assert_eq!(orders(&mut crew), [(1, Order::Start { at_ns: 7 })]);
        assert_eq!(orders(&mut Crew::new(&set.only(1).unwrap(), 1)), [(0, NOW)]);
    }

    #[test]
    fn exitall_stops_running_jobs_and_skips_later_ones() {
        let first = Job { exit_all: Some(ExitWhat::All), ..Job::new("a") };
        let set = jobs(vec![first, Job::new("b"), Job { stonewall: true, ..Job::new("c") }]);
        let mut crew = Crew::new(&set, 1);
        orders(&mut crew);
        assert!(crew.starts(0) && crew.starts(1));
        crew.ended(0, 3);
        assert_eq!(orders(&mut crew), [(1, Order::Stop), (2, Order::Skip)]);
        crew.ended(1, 4);
        assert_eq!(orders(&mut crew), []);
        assert!(!crew.starts(2));
    }
}
