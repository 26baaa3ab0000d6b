//! Sharing of writeback among disks and tasks, as in today's kernels. Disks share the limit on
//! dirty pages, and tasks share the write rate of a disk.
//!
//! A disk's share of the limit is its share of recent writeback. All tasks of a disk have the same
//! base rate. A task may dirty pages at the base rate times a ratio. The ratio depends on how far
//! the number of dirty pages is from the set point. The base rate follows from the disk's write
//! rate, and from the rate at which its tasks dirtied pages in the last period (Fengguang Wu,
//! "IO-less dirty throttling", Linux Plumbers Conference 2011;
//! Documentation/admin-guide/sysctl/vm.rst).

use super::throttle::{RATE_FIRST, RATE_PERIOD_NS, position_ratio};
use super::{DirtyInode, Model};

/// Time after which past writeback counts half, ns.
const LATELY_NS: u64 = 3_000_000_000;
/// Width of the range of a disk's dirty pages around the set point, in seconds of writeback.
const SPAN_S: u64 = 8;

/// Rates of a disk's writers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Base rate of each task, pages/s.
    task_rate: u64,
    since_ns: u64,
    /// Pages that tasks have dirtied since `since_ns`.
    dirtied: u64,
    /// Number of pages that were written back recently. It is halved regularly, so that old pages
    /// count less. The next field is the time of the last halving, ns.
    lately: u64,
    lately_ns: u64,
    written: u64,
}

impl Share {
    pub(super) const fn new() -> Self {
        Self { task_rate: RATE_FIRST, since_ns: 0, dirtied: 0, lately: 0, lately_ns: 0, written: 0 }
    }

    /// Updates the number of recently written pages of a disk. `written_pages` is the number of
    /// pages that the disk has written since the start.
    fn reckon(&mut self, now_ns: u64, written_pages: u64) {
        let periods = (now_ns - self.lately_ns) / LATELY_NS;
        self.lately >>= periods.min(63);
        self.lately_ns += periods * LATELY_NS;
        self.lately += written_pages - self.written;
        self.written = written_pages;
    }

    /// Records that a task has dirtied pages.
    pub(super) fn dirtied(&mut self, pages: u64) {
        self.dirtied += pages;
    }

    /// Updates the base rate. Tasks dirtied pages at `ratio` times the base rate, and the disk
    /// wrote `disk_rate` pages/s. The base rate moves towards the balanced rate or the allowed
    /// rate, whichever is nearer, by an eighth of the distance. It moves only if both of these
    /// rates are higher than the base rate, or both are lower.
    fn follow(&mut self, now_ns: u64, ratio: f64, disk_rate: u64) {
        let elapsed_ns = now_ns - self.since_ns;
        if elapsed_ns < RATE_PERIOD_NS {
            return;
        }
        let dirty_rate = (self.dirtied as f64 * 1e9 / elapsed_ns as f64).max(1.0);
        (self.since_ns, self.dirtied) = (now_ns, 0);
        let allowed = self.task_rate as f64 * ratio + 1.0;
        let balanced = (allowed * disk_rate as f64 / dirty_rate).min(disk_rate as f64);
        let current = self.task_rate as f64;
        let nearer = if balanced < current { balanced.max(allowed) } else { balanced.min(allowed) };
        if (nearer < current) == (balanced < current) {
            self.task_rate = ((current + (nearer - current) / 8.0) as u64).max(1);
        }
    }
}

impl Model {
    /// Returns the base rate of a task that writes to a disk, pages/s, and the ratio by which the
    /// caller multiplies this rate.
    pub(super) fn balanced(&mut self, disk: usize, free_run: u64, limit: u64, unclean: u64) -> (u64, f64) {
        let now_ns = self.now_ns;
        for disk in &mut self.disks {
            disk.share.reckon(now_ns, disk.written_pages);
        }
        let all: u64 = self.disks.iter().map(|disk| disk.share.lately).sum();
        let disk_rate = self.disks[disk].share.lately;
        let part = |pages: u64| {
            if all == 0 { pages } else { (u128::from(pages) * u128::from(disk_rate) / u128::from(all)) as u64 }
        };
        // A disk that has written little may use an eighth of the free pages below the limit.
        let own_limit = part(limit).max(limit.saturating_sub(unclean) / 8);
        let own_unclean = if self.disks.len() == 1 { unclean } else { self.unclean_of(disk) };
        let rate = self.disks[disk].rate.pages_per_s();
        let ratio = position_ratio(free_run, limit, unclean) * own_ratio(free_run, limit, own_limit, own_unclean, rate);
        let share = &mut self.disks[disk].share;
        share.follow(now_ns, ratio, rate);
        (share.task_rate, ratio)
    }

    /// Returns the number of pages of a disk that are dirty or under writeback.
    fn unclean_of(&self, disk: usize) -> u64 {
        let this = &self.disks[disk];
        let dirty = |mapping| self.cache.dirty_pages(mapping);
        let listed: u64 = this.dirty_inodes.iter().map(|&DirtyInode { mapping, .. }| dirty(mapping)).sum();
        listed + this.held.iter().map(|&mapping| dirty(mapping)).sum::<u64>() + this.writeback_pages
    }
}

/// Returns the ratio for a disk's writers. It depends on the disk's own limit and dirty pages. The
/// ratio is 1 at the disk's set point. With more dirty pages it falls to a quarter, and with fewer
/// dirty pages it rises.
fn own_ratio(free_run: u64, limit: u64, own_limit: u64, own_unclean: u64, rate: u64) -> f64 {
    let share = own_limit as f64 / limit.max(1) as f64;
    let setpoint = (free_run + limit) as f64 / 2.0 * share;
    let span = (limit.saturating_sub(own_limit) + SPAN_S * rate) as f64 * share;
    let (end, unclean) = (setpoint + span.max(1.0), own_unclean as f64);
    let ratio = if unclean < end - span / 4.0 { (end - unclean) / (end - setpoint) } else { 0.25 };
    // A disk with almost no dirty pages must not become idle.
    let reserve = own_limit as f64 / 2.0;
    if unclean >= reserve { ratio } else { ratio * (reserve / unclean.max(reserve / 8.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates `writers` writers on a disk that writes `disk_rate` pages/s. Returns the final
    /// rate of each writer, pages/s, and the final number of dirty pages.
    fn settled(writers: u64, disk_rate: u64) -> (u64, u64) {
        let (free_run, limit) = (disk_rate * 5, disk_rate * 10);
        let (mut share, mut unclean) = (Share::new(), free_run);
        for period in 1..600 {
            let ratio = position_ratio(free_run, limit, unclean);
            let dirtied = (share.task_rate as f64 * ratio) as u64 * writers / 5;
            share.dirtied(dirtied);
            unclean = (unclean + dirtied).saturating_sub(disk_rate / 5).max(free_run);
            share.follow(period * RATE_PERIOD_NS, ratio, disk_rate);
        }
        (share.task_rate, unclean)
    }

    #[test]
    fn tasks_share_the_write_rate_at_the_dirty_set_point() {
        for (writers, disk_rate) in [(1, 10_000), (4, 10_000), (10, 100_000), (3, 6_000)] {
            let (rate, unclean) = settled(writers, disk_rate);
            let (expected, middle) = (disk_rate / writers, disk_rate * 15 / 2);
            assert!(rate.abs_diff(expected) * 10 <= expected, "{writers}: {rate} of {expected}");
            assert!(unclean.abs_diff(middle) * 10 <= middle, "{writers}: {unclean} of {middle}");
        }
    }

    #[test]
    fn disk_above_its_share_of_the_limit_has_a_lower_ratio() {
        let ratio = |own_limit, own_unclean| own_ratio(1500, 2000, own_limit, own_unclean, 100);
        assert!((ratio(2000, 1750) - 1.0).abs() < 1e-9);
        assert!(ratio(1000, 1500) < ratio(1000, 900) && ratio(1000, 10_000) == 0.25);
        assert!(ratio(1000, 100) > 2.0);
    }

    #[test]
    fn old_writes_count_less_in_the_share_of_a_disk() {
        let mut share = Share::new();
        share.reckon(1, 1000);
        share.reckon(LATELY_NS * 2, 1000);
        assert_eq!(share.lately, 250);
        share.reckon(LATELY_NS * 2 + 5, 1100);
        assert_eq!(share.lately, 350);
    }
}
