//! The processors of the host, as direct I/O keeps them busy.
//!
//! A process that runs submits its I/Os at once, and its processor is busy for their cost afterwards. Processes whose
//! processor is busy wait in the order in which they were woken. The part of the work that a scheduler does under its
//! lock waits for other processors that hold the lock.

use std::collections::VecDeque;

use iosched_machine::description::{Host, SchedulerCost};

/// Processors and locks at work.
pub(in crate::engine) struct HostState {
    wake_ns: u64,
    request_ns: u64,
    /// Of each disk: what its scheduler costs, and when its lock is free, ns.
    disks: Vec<(SchedulerCost, u64)>,
    processors: Vec<Processor>,
    /// What the process that runs now costs without waiting, ns, and when it has had all locks.
    work_ns: u64,
    locked_until_ns: u64,
}

#[derive(Clone, Default)]
struct Processor {
    is_busy: bool,
    waiting: VecDeque<u32>,
}

impl HostState {
    /// The idle host of disks with these schedulers.
    pub(in crate::engine) fn new(host: &Host, schedulers: &[&str]) -> Self {
        let cost = |&scheduler: &&str| host.schedulers.get(scheduler).copied().unwrap_or_default();
        Self {
            wake_ns: host.wake_ns,
            request_ns: host.request_ns,
            disks: schedulers.iter().map(|scheduler| (cost(scheduler), 0)).collect(),
            processors: vec![Processor::default(); host.cores.max(1) as usize],
            work_ns: 0,
            locked_until_ns: 0,
        }
    }

    fn processor_of(&self, task: u32) -> usize {
        task as usize % self.processors.len()
    }

    /// A task is to run. `false`: it has to wait, and runs when its processor [is free](Self::free).
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

    /// The task that runs has submitted a request to this disk.
    #[inline]
    pub(super) fn submitted(&mut self, disk: usize, now_ns: u64) {
        let (cost, lock_free_ns) = &mut self.disks[disk];
        self.work_ns += self.request_ns + cost.request_ns;
        if cost.lock_ns > 0 {
            // Its turn comes after what it has done before, and after those who came earlier.
            let begins_ns = now_ns + self.work_ns - cost.lock_ns.min(self.work_ns);
            *lock_free_ns = (*lock_free_ns).max(begins_ns.max(self.locked_until_ns)) + cost.lock_ns;
            self.locked_until_ns = *lock_free_ns;
        }
    }

    /// The task has run. Its processor, and when that is free.
    #[inline]
    pub(super) fn ran(&mut self, task: u32, now_ns: u64) -> (u32, u64) {
        let free_ns = (now_ns + self.work_ns).max(self.locked_until_ns);
        (self.processor_of(task) as u32, free_ns)
    }

    /// A processor is free. The task that runs on it next, if one waits.
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
        HostState::new(&Host { cores, wake_ns: 1000, request_ns: 100, schedulers }, &["bfq", "none"])
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
    fn processors_wait_for_the_lock_of_a_disk() {
        let mut host = host(2, 120);
        assert!(host.takes(0));
        host.submitted(0, 0);
        host.submitted(0, 0);
        assert_eq!(host.ran(0, 0), (0, 1300));
        assert!(host.takes(1));
        host.submitted(0, 0);
        // The other processor has the lock until 1300.
        assert_eq!(host.ran(1, 0), (1, 1420));
    }
}
