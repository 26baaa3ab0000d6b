//! Processors of the host, and the time that they need for direct I/O.
//!
//! A process submits all its I/Os at the start of its turn. Its processor is then busy for the cost
//! of these I/Os. Other processes that need this processor wait. With time slices, the next process
//! is chosen as in CFS. Otherwise, processes run in the order in which they were woken. A scheduler
//! does part of its work under a lock. A processor spins while another processor holds the lock.

use std::collections::VecDeque;

use iosched_disk::{Host, SchedulerCost, TimeSlices};

const SECOND_NS: u64 = 1_000_000_000;

/// Processors and locks at work.
pub(in crate::engine) struct HostState {
    wake_ns: u64,
    request_ns: u64,
    /// Time between two interrupts of a processor's clock, ns. `None` if clock interrupts do not
    /// matter.
    clock_period_ns: Option<u64>,
    /// For each disk: the cost of its scheduler, and a time in ns. At this time, the scheduler's
    /// lock is free of all requests so far. The time is used only if there is one disk.
    disks: Vec<(SchedulerCost, u64)>,
    processors: Vec<Processor>,
    slices: Option<TimeSlices>,
    /// Time that each process has used, ns. A process that slept gets a credit. The process with
    /// the smallest time runs first. Empty without time slices.
    used_ns: Vec<u64>,
    /// Mean number of other processors that hold the lock of a disk, or spin for the lock, while
    /// the present process runs.
    holders: f64,
    /// Time that the present process needs, without waits for the lock of a single disk, ns.
    work_ns: u64,
    /// Part of `work_ns` in which the process holds a lock or spins, ns.
    at_locks_ns: u64,
    /// Time at which the present process releases its last lock, ns.
    locked_until_ns: u64,
}

#[derive(Clone, Default)]
struct Processor {
    /// Time at which the work of all processes that ran is done, ns; `None` if the processor is
    /// free.
    busy_until_ns: Option<u64>,
    /// Processes that can run, in the order in which they were woken.
    waiting: VecDeque<u32>,
    /// The process that has the present slice. `slice_ns` is the time that it has used of this
    /// slice, ns.
    current: u32,
    slice_ns: u64,
    /// Smallest used time among the processes that can run, ns. It never decreases.
    least_ns: u64,
    /// Share of the last turn in which the process held a lock or spun, 0 to 1.
    lock_share: f64,
    /// Length of all turns together, ns.
    busy_ns: u64,
}

/// State of a processor at the end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Freed {
    /// The processor is busy until this time, ns, because another process interrupted the turn.
    Later(u64),
    /// The processor is free. The value is the process that runs next, if a process waits.
    For(Option<u32>),
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
            slices: host.slices,
            used_ns: Vec::new(),
            holders: 0.0,
            work_ns: 0,
            at_locks_ns: 0,
            locked_until_ns: 0,
        }
    }

    /// Returns the time of the next interrupt of the clock after `now_ns`, ns. All processors have
    /// their interrupts at the same time.
    #[inline]
    pub(super) fn clock_interrupt_ns(&self, now_ns: u64) -> u64 {
        self.clock_period_ns.map_or(u64::MAX, |period| (now_ns / period + 1) * period)
    }

    /// Returns the time in which the busiest processor worked, per cent of `run_ns`, the length of
    /// the run.
    pub(super) fn busy_percent(&self, run_ns: u64) -> u32 {
        let busy_ns = self.processors.iter().map(|processor| processor.busy_ns).max().unwrap_or(0);
        (busy_ns.min(run_ns) as f64 * 100.0 / run_ns.max(1) as f64) as u32
    }

    /// Returns the number of processors.
    pub(super) fn cores(&self) -> u32 {
        self.processors.len() as u32
    }

    fn processor_of(&self, task: u32) -> usize {
        task as usize % self.processors.len()
    }

    /// Starts a task on its processor. Returns `false` if the processor is busy. The task then
    /// waits until [`Self::free`] returns it. With time slices, a task that has used much less time
    /// than the running task interrupts the running task.
    #[inline]
    pub(super) fn takes(&mut self, task: u32) -> bool {
        let number = self.processor_of(task);
        let processor = &mut self.processors[number];
        if let Some(slices) = &self.slices {
            if self.used_ns.len() <= task as usize {
                self.used_ns.resize(task as usize + 1, 0);
            }
            // A process that slept gets a credit of half a period, as GENTLE_FAIR_SLEEPERS does in
            // CFS.
            let used_ns = &mut self.used_ns[task as usize];
            *used_ns = (*used_ns).max(processor.least_ns.saturating_sub(slices.period_ns / 2));
        }
        if processor.busy_until_ns.is_some() {
            let used_ns = |task: u32| self.used_ns[task as usize];
            let interrupts =
                self.slices.is_some_and(|slices| used_ns(processor.current) > used_ns(task) + slices.wake_up_ns);
            if !interrupts {
                processor.waiting.push_back(task);
                return false;
            }
        } else if processor.current != task {
            (processor.current, processor.slice_ns) = (task, 0);
        }
        if self.slices.is_some() {
            let waiting = processor.waiting.iter().map(|&task| self.used_ns[task as usize]);
            let least_ns = waiting.fold(self.used_ns[task as usize], u64::min);
            processor.least_ns = processor.least_ns.max(least_ns);
        }
        (self.work_ns, self.at_locks_ns, self.locked_until_ns) = (self.wake_ns, 0, 0);
        self.holders = self.holders(number);
        true
    }

    /// Returns the mean number of other processors that hold the lock of a disk, or spin for the
    /// lock. With one disk, this number is 0, because processes then take the lock in turn. With
    /// several disks, this function assumes that each process uses all disks equally, in an
    /// independent order.
    fn holders(&self, number: usize) -> f64 {
        if self.disks.len() == 1 || self.disks.iter().all(|(cost, _)| cost.lock_ns == 0) {
            return 0.0;
        }
        let others = self.processors.iter().enumerate().filter(|(other, _)| *other != number);
        let at_locks: f64 =
            others.filter(|(_, other)| other.busy_until_ns.is_some()).map(|(_, other)| other.lock_share).sum();
        at_locks / self.disks.len() as f64
    }

    /// Adds the cost of a request that the running task has submitted to a disk.
    #[inline]
    pub(super) fn submitted(&mut self, disk: usize, now_ns: u64) {
        let is_only_disk = self.disks.len() == 1;
        let (cost, lock_free_ns) = &mut self.disks[disk];
        self.work_ns += self.request_ns + cost.request_ns;
        if cost.lock_ns == 0 {
            return;
        }
        let spin_ns = (cost.lock_ns as f64 * self.holders) as u64;
        self.work_ns += spin_ns;
        self.at_locks_ns += cost.lock_ns + spin_ns;
        if is_only_disk {
            // The lock serves requests in the order in which the processes began their turns.
            *lock_free_ns = (*lock_free_ns).max(now_ns + self.wake_ns) + cost.lock_ns;
            self.locked_until_ns = self.locked_until_ns.max(*lock_free_ns);
        }
    }

    /// Ends the turn of a task. Returns its processor, and the time at which the processor becomes
    /// free, ns. Returns `None` if the task interrupted another turn, because that turn ends later.
    #[inline]
    pub(super) fn ran(&mut self, task: u32, now_ns: u64) -> Option<(u32, u64)> {
        let number = self.processor_of(task);
        let processor = &mut self.processors[number];
        let free_ns = (now_ns + self.work_ns).max(self.locked_until_ns);
        let turn_ns = free_ns - now_ns;
        processor.busy_ns += turn_ns;
        if self.slices.is_some() {
            self.used_ns[task as usize] += turn_ns;
        }
        if let Some(busy_ns) = &mut processor.busy_until_ns {
            *busy_ns += turn_ns;
            return None;
        }
        processor.slice_ns += turn_ns;
        processor.lock_share = self.at_locks_ns as f64 / turn_ns.max(1) as f64;
        processor.busy_until_ns = Some(free_ns);
        Some((number as u32, free_ns))
    }

    /// Frees a processor, and returns the next task that waits for it. If the processor is still
    /// busy, returns the time at which it becomes free.
    #[inline]
    pub(super) fn free(&mut self, number: u32, now_ns: u64) -> Freed {
        let processor = &mut self.processors[number as usize];
        if let Some(busy_ns) = processor.busy_until_ns.filter(|&busy_ns| busy_ns > now_ns) {
            return Freed::Later(busy_ns);
        }
        processor.busy_until_ns = None;
        let Some(slices) = self.slices.filter(|_| !processor.waiting.is_empty()) else {
            return Freed::For(processor.waiting.pop_front());
        };
        let used_ns = |place: usize| self.used_ns[processor.waiting[place] as usize];
        let least = (0..processor.waiting.len()).min_by_key(|&place| used_ns(place)).unwrap_or(0);
        let slice_ns = (slices.period_ns / processor.waiting.len() as u64).max(slices.least_ns);
        let keeps = |place: usize| {
            processor.slice_ns < slices.least_ns
                || (processor.slice_ns <= slice_ns && used_ns(place) <= used_ns(least) + slice_ns)
        };
        let current = processor.waiting.iter().position(|&task| task == processor.current);
        let next = current.filter(|&place| keeps(place)).unwrap_or(least);
        Freed::For(processor.waiting.remove(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(cores: u32, lock_ns: u64) -> Host {
        let schedulers = [("bfq".to_owned(), SchedulerCost { request_ns: 50, lock_ns })].into();
        Host { cores, wake_ns: 1000, request_ns: 100, clock_hz: None, slices: None, schedulers }
    }

    #[test]
    fn a_processor_is_busy_for_the_wake_up_and_each_request() {
        let mut host = HostState::new(&host(1, 0), &["bfq", "none"]);
        assert!(host.takes(0));
        host.submitted(0, 5);
        host.submitted(1, 5);
        assert_eq!(host.ran(0, 5), Some((0, 1255)));
        assert!(!host.takes(1), "the processor is busy");
        assert!(!host.takes(2), "the processor is busy");
        assert_eq!(host.free(0, 1255), Freed::For(Some(1)));
        assert_eq!(host.busy_percent(2500), 50);
    }

    #[test]
    fn clock_interrupts_occur_at_multiples_of_their_period() {
        let host =
            |clock_hz| Host { cores: 1, wake_ns: 0, request_ns: 0, clock_hz, slices: None, schedulers: [].into() };
        let ticking = HostState::new(&host(Some(1000)), &[]);
        assert_eq!(
            [0, 999_999, 1_000_000].map(|now| ticking.clock_interrupt_ns(now)),
            [1_000_000, 1_000_000, 2_000_000]
        );
        assert_eq!(HostState::new(&host(None), &[]).clock_interrupt_ns(5), u64::MAX);
    }

    #[test]
    fn processors_wait_for_the_lock_of_a_disk() {
        let mut host = HostState::new(&host(2, 120), &["bfq"]);
        assert!(host.takes(0));
        host.submitted(0, 0);
        host.submitted(0, 0);
        assert_eq!(host.ran(0, 0), Some((0, 1300)));
        assert!(host.takes(1));
        host.submitted(0, 0);
        // Processor 0 has the lock until 1,240 ns, so processor 1 waits.
        assert_eq!(host.ran(1, 0), Some((1, 1360)));
    }

    /// Returns the time per request for ten processes, each of which uses several disks in turn,
    /// ns.
    fn per_request_ns(disks: usize, lock_ns: u64) -> u64 {
        let schedulers = [("bfq".to_owned(), SchedulerCost { request_ns: 400, lock_ns })].into();
        let host = Host { cores: 10, wake_ns: 0, request_ns: 600, clock_hz: None, slices: None, schedulers };
        let mut host = HostState::new(&host, &vec!["bfq"; disks]);
        let mut next = [(0, 0); 10];
        let mut turns = 0;
        loop {
            let (task, &(at_ns, _)) = next.iter().enumerate().min_by_key(|(_, turn)| **turn).unwrap();
            if turns == 1000 {
                return at_ns / (100 * 16);
            }
            if turns >= 10 {
                host.free(task as u32, at_ns);
            }
            assert!(host.takes(task as u32));
            (0..16).for_each(|request| host.submitted(request % disks, at_ns));
            next[task] = (host.ran(task as u32, at_ns).unwrap().1, turns);
            turns += 1;
        }
    }

    #[test]
    fn processors_spin_while_another_holds_the_lock() {
        // A request takes 1000 ns without spinning, and the lock is held for 800 ns of this time.
        // Let R be the time at locks per request, with spinning. The nine other processes use eight
        // locks, so R = 800 (1 + 9 / 8 * R / (R + 200)). The solution is R = 1600 ns.
        let of_eight = per_request_ns(8, 800);
        assert!((1750..1850).contains(&of_eight), "{of_eight}");
        assert_eq!(per_request_ns(8, 0), 1000);
        let of_one = per_request_ns(1, 800);
        assert!((7800..8200).contains(&of_one), "processes take one lock in turn: {of_one}");
    }

    fn sharing() -> HostState {
        let slices = Some(TimeSlices { period_ns: 24_000, least_ns: 3_000, wake_up_ns: 4_000 });
        let host = Host { cores: 1, wake_ns: 0, request_ns: 100, clock_hz: None, slices, schedulers: [].into() };
        HostState::new(&host, &["none"])
    }

    fn runs(host: &mut HostState, task: u32, requests: u32, now_ns: u64) -> Option<u64> {
        (0..requests).for_each(|_| host.submitted(0, now_ns));
        host.ran(task, now_ns).map(|(_, free_ns)| free_ns)
    }

    #[test]
    fn busy_processes_alternate_in_time_slices() {
        let mut host = sharing();
        let (mut now_ns, mut order) = (0, Vec::new());
        assert!(host.takes(0));
        let mut task = 0;
        for _ in 0..120 {
            order.push(task);
            let free_ns = runs(&mut host, task, 10, now_ns).unwrap();
            // Every process always has I/Os to submit.
            let woken = if order.len() == 1 { vec![0, 1] } else { vec![task] };
            assert!(woken.into_iter().all(|task| !host.takes(task)));
            let Freed::For(Some(next)) = host.free(0, free_ns) else { panic!("processes wait") };
            assert!(host.takes(next));
            (task, now_ns) = (next, free_ns);
        }
        let changes = order.windows(2).filter(|pair| pair[0] != pair[1]).count();
        assert!((8..=12).contains(&changes), "120 turns of 1 us in slices of 12 us: {order:?}");
    }

    #[test]
    fn woken_process_preempts_a_busy_process() {
        let mut host = sharing();
        assert!(host.takes(0));
        assert_eq!(runs(&mut host, 0, 500, 0), Some(50_000));
        assert!(host.takes(1), "the woken process has used no time");
        assert_eq!(runs(&mut host, 1, 1, 10_000), None);
        assert!(host.takes(1), "the interrupted process has the processor again");
        assert_eq!(runs(&mut host, 1, 1, 20_000), None);
        assert_eq!(host.free(0, 50_000), Freed::Later(50_200));
        assert_eq!(host.free(0, 50_200), Freed::For(None));
    }

    #[test]
    fn process_releases_the_lock_while_it_uses_another_disk() {
        let mut host = HostState::new(&host(2, 120), &["bfq"; 4]);
        let mut ends = Vec::new();
        for task in 0..2 {
            assert!(host.takes(task));
            for request in 0..40 {
                host.submitted(request % 4, 0);
            }
            ends.push(host.ran(task, 0).unwrap().1);
        }
        // Each disk gets 20 requests, 10 from each process. They hold the disk's lock for 2400 ns
        // in total. Each process works for 7000 ns: the wake-up and its requests. The second
        // process spins when it needs a lock that the first process holds.
        let spin_ns = (120.0 * (40.0 * 120.0 / 7000.0) / 4.0) as u64;
        assert_eq!(ends, [7000, 7000 + 40 * spin_ns]);
    }
}
