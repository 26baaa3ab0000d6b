//! Processors of the host, and their time for direct I/O.
//!
//! A process submits its I/Os at the moment it runs. Its processor is then busy for their cost.
//! Processes that need a busy processor wait in the order in which they were woken. A scheduler
//! does part of its work under a lock. This part waits while another processor holds the lock.

use std::collections::VecDeque;

use iosched_machine::description::{Host, SchedulerCost};

const SECOND_NS: u64 = 1_000_000_000;

/// Processors and locks at work.
pub(in crate::engine) struct HostState {
    wake_ns: u64,
    request_ns: u64,
    /// Time between two interrupts of a processor's clock, ns, if they matter.
    clock_period_ns: Option<u64>,
    /// Cost of the scheduler of each disk, and the time at which its lock has served all requests
    /// so far, ns.
    disks: Vec<(SchedulerCost, u64)>,
    processors: Vec<Processor>,
    /// Cost of the process that runs now, without waits, ns.
    work_ns: u64,
    /// Time at which the process that runs now has released its last lock, ns.
    locked_until_ns: u64,
}

#[derive(Clone, Default)]
struct Processor {
    is_busy: bool,
    waiting: VecDeque<u32>,
}

impl HostState {
    /// Creates an idle host of disks with these schedulers.
    pub(in crate::engine) fn new(host: &Host, schedulers: &[&str]) -> Self {
        let cost = |&scheduler: &&str| host.schedulers.get(scheduler).copied().unwrap_or_default();
        Self {
            wake_ns: host.wake_ns,
            request_ns: host.request_ns,
            clock_period_ns: host.clock_hz.map(|hz| SECOND_NS / u64::from(hz.max(1))),
            disks: schedulers.iter().map(|scheduler| (cost(scheduler), 0)).collect(),
            processors: vec![Processor::default(); host.cores.max(1) as usize],
            work_ns: 0,
            locked_until_ns: 0,
        }
    }

    /// Returns the time of the next interrupt of the clock after `now_ns`, ns. All processors have
    /// their interrupts at the same time.
    #[inline]
    pub(super) fn clock_interrupt_ns(&self, now_ns: u64) -> u64 {
        self.clock_period_ns.map_or(u64::MAX, |period| (now_ns / period + 1) * period)
    }

    fn processor_of(&self, task: u32) -> usize {
        task as usize % self.processors.len()
    }

    /// Starts a task on its processor. Returns `false` if the processor is busy. The task then
    /// waits until [`Self::free`] returns it.
    #[inline]
    pub(super) fn takes(&mut self, task: u32) -> bool {
        let processor = self.processor_of(task);
        let Processor { is_busy, waiting } = &mut self.processors[processor];
        if *is_busy {
            waiting.push_back(task);
            return false;
        }
        *is_busy = true;
        (self.work_ns, self.locked_until_ns) = (self.wake_ns, 0);
        true
    }

    /// Adds the cost of a request that the running task has submitted to a disk.
    #[inline]
    pub(super) fn submitted(&mut self, disk: usize, now_ns: u64) {
        let (cost, lock_free_ns) = &mut self.disks[disk];
        self.work_ns += self.request_ns + cost.request_ns;
        if cost.lock_ns > 0 {
            // The lock serves requests in the order in which processes began their turns. A process
            // holds the lock only for its requests to this disk. While it does other work, other
            // processes can use the lock.
            *lock_free_ns = (*lock_free_ns).max(now_ns + self.wake_ns) + cost.lock_ns;
            self.locked_until_ns = self.locked_until_ns.max(*lock_free_ns);
        }
    }

    /// Ends the turn of a task. Returns its processor, and the time at which the processor becomes
    /// free, ns.
    #[inline]
    pub(super) fn ran(&mut self, task: u32, now_ns: u64) -> (u32, u64) {
        let free_ns = (now_ns + self.work_ns).max(self.locked_until_ns);
        (self.processor_of(task) as u32, free_ns)
    }

    /// Frees a processor. Returns the next task that waits for it.
    #[inline]
    pub(super) fn free(&mut self, processor: u32) -> Option<u32> {
        let Processor { is_busy, waiting } = &mut self.processors[processor as usize];
        *is_busy = false;
        waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cores: u32, lock_ns: u64) -> HostState {
        let schedulers = [("bfq".to_owned(), SchedulerCost { request_ns: 50, lock_ns })].into();
        HostState::new(&Host { cores, wake_ns: 1000, request_ns: 100, clock_hz: None, schedulers }, &["bfq", "none"])
    }

    #[test]
    fn a_processor_is_busy_for_the_wake_up_and_each_request() {
        let mut host = host(1, 0);
        assert!(host.takes(0));
        host.submitted(0, 5);
        host.submitted(1, 5);
        assert_eq!(host.ran(0, 5), (0, 5 + 1000 + 150 + 100));
        assert!(!host.takes(1), "the processor is busy");
        assert!(!host.takes(2), "the processor is busy");
        assert_eq!(host.free(0), Some(1));
    }

    #[test]
    fn clock_interrupts_come_at_multiples_of_their_period() {
        let host = |clock_hz| Host { cores: 1, wake_ns: 0, request_ns: 0, clock_hz, schedulers: [].into() };
        let ticking = HostState::new(&host(Some(1000)), &[]);
        assert_eq!(
            [0, 999_999, 1_000_000].map(|now| ticking.clock_interrupt_ns(now)),
            [1_000_000, 1_000_000, 2_000_000]
        );
        assert_eq!(HostState::new(&host(None), &[]).clock_interrupt_ns(5), u64::MAX);
    }

    #[test]
    fn processors_wait_for_the_lock_of_a_disk() {
        let mut host = host(2, 120);
        assert!(host.takes(0));
        host.submitted(0, 0);
        host.submitted(0, 0);
        assert_eq!(host.ran(0, 0), (0, 1300));
        assert!(host.takes(1));
        host.submitted(0, 0);
        // The other processor has the lock for 240 ns from 1000 on.
        assert_eq!(host.ran(1, 0), (1, 1360));
    }

    #[test]
    fn process_releases_the_lock_while_it_uses_another_disk() {
        let schedulers = [("bfq".to_owned(), SchedulerCost { request_ns: 50, lock_ns: 120 })].into();
        let host = Host { cores: 2, wake_ns: 1000, request_ns: 100, clock_hz: None, schedulers };
        let mut host = HostState::new(&host, &["bfq"; 4]);
        let mut ends = Vec::new();
        for task in 0..2 {
            assert!(host.takes(task));
            for request in 0..40 {
                host.submitted(request % 4, 0);
            }
            ends.push(host.ran(task, 0).1);
        }
        // Each disk has 20 requests, whose locks last 2400 ns; each process works for 6000 ns.
        assert_eq!(ends, [7000, 7000]);
    }
}
