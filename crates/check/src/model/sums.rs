//! The sums that the statistics should show.

use iosched::{Op, Stat, StatGroup, Time};

use crate::violation::{Checked, ensure};

/// The expected statistics.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    on: bool,
    groups: [StatGroup; 4],
    pub(crate) in_flight: u64,
    busy_ns: u64,
    weighted_ns: u64,
    until: Time,
    /// Number of merges of requests with unknown operation.
    unseen_merges: u64,
}

fn group(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write | Op::WriteZeroes => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

impl Sums {
    pub(crate) fn new(now: Time) -> Self {
        Self {
            on: true,
            groups: Default::default(),
            in_flight: 0,
            busy_ns: 0,
            weighted_ns: 0,
            until: now,
            unseen_merges: 0,
        }
    }

    /// Advances to `now` with the present number of requests in flight.
    #[inline]
    pub(crate) fn advance(&mut self, now: Time) {
        let elapsed_ns = now.since(self.until);
        if self.on && self.in_flight > 0 {
            self.busy_ns += elapsed_ns;
            self.weighted_ns = self.weighted_ns.wrapping_add(elapsed_ns.wrapping_mul(self.in_flight));
        }
        self.until = now;
    }

    /// Turns statistics on or off.
    pub(crate) fn turn(&mut self, now: Time, on: bool) {
        self.advance(now);
        self.on = on;
    }

    #[inline]
    pub(crate) fn merged(&mut self, op: Op) {
        self.groups[group(op)].merges += u64::from(self.on);
    }

    /// Counts requests that were absorbed by other requests. Their operations are unknown.
    pub(crate) fn merged_unseen(&mut self, requests: u64) {
        self.unseen_merges += if self.on { requests } else { 0 };
    }

    #[inline]
    pub(crate) fn completed(&mut self, op: Op, nr_sectors: u32, time_ns: u64) {
        if self.on {
            let group = &mut self.groups[group(op)];
            group.ios += 1;
            group.sectors += u64::from(nr_sectors);
            group.time_ns += time_ns;
        }
    }

    pub(crate) fn flushed(&mut self, time_ns: u64) {
        self.completed(Op::Flush, 0, time_ns);
    }

    /// Compares with the queue's statistics of the same moment.
    pub(crate) fn check(&self, shown: &Stat) -> Checked {
        let shown_groups = [shown.reads, shown.writes, shown.discards, shown.flushes];
        let merges = |groups: &[StatGroup; 4]| groups.iter().map(|group| group.merges).sum::<u64>();
        let without_merges = |groups: &[StatGroup; 4]| groups.map(|group| StatGroup { merges: 0, ..group });
        let right = if self.unseen_merges == 0 {
            shown_groups == self.groups
        } else {
            without_merges(&shown_groups) == without_merges(&self.groups)
                && shown_groups.iter().zip(&self.groups).all(|(shown, seen)| shown.merges >= seen.merges)
                && merges(&shown_groups) == merges(&self.groups) + self.unseen_merges
        };
        ensure!(
            right,
            Statistics,
            "the counters are {shown_groups:?} instead of {:?} with {} merges of requests",
            self.groups,
            self.unseen_merges
        );
        let times = (shown.in_flight, shown.busy_ns, shown.weighted_ns);
        let right = (self.in_flight, self.busy_ns, self.weighted_ns);
        ensure!(
            times == right,
            Statistics,
            "the times in flight, busy and weighted are {times:?} instead of {right:?}"
        );
        Ok(())
    }
}
