//! The results of each unit in one run: an observer of the run, and the values of goals.

use iosched::{Op, SECTOR_BYTES};
use iosched_numbers::Histogram;
use iosched_sim::{Completed, Observer, Submitted};

use crate::goal::{Bound, Goal, Metric, Operation, Statistic};

/// Tolerance of a share: a unit may miss or exceed its share by this part of the share.
const SHARE_TOLERANCE: f64 = 0.1;
/// Tolerance of a limit: a unit may exceed its limit by this part of the limit, because controllers
/// work in slices of time.
const LIMIT_TOLERANCE: f64 = 0.02;
/// If the reservation of a unit is higher than its rate alone, the unit must get this share of its
/// rate alone.
const DEMAND_SHARE: f64 = 0.97;
/// Distance from a goal that has no value, because the unit completed no I/O of this kind.
const STARVED: f64 = 5.0;

/// The results of a unit in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitRun {
    reads: Histogram,
    writes: Histogram,
    fsyncs: Histogram,
    others: Histogram,
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) ios: u64,
    /// I/Os that no process waits for: writeback.
    pub(crate) async_writes: u64,
    pub(crate) reads_count: u64,
    /// Bytes moved while all units with a share had I/O.
    shared_bytes: u64,
    /// Bytes moved while all units had I/O.
    pub(crate) contended_bytes: u64,
    /// Number and sum of latencies, ns, while the other unit of the pair had I/O. Indexed like
    /// `pairs`.
    beside: Vec<(u64, u64)>,
    beside_other: Vec<(u64, u64)>,
}

/// The results of all units in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observed {
    pub(crate) units: Vec<UnitRun>,
    /// Measured time of the run, s.
    pub(crate) seconds: f64,
}

/// Observes a run.
pub(crate) struct Watch {
    unit_of_task: Vec<usize>,
    units: Vec<UnitRun>,
    /// Bios of each unit that are submitted and not complete.
    in_flight: Vec<u32>,
    /// Unit of each bio, by its ordinal.
    unit_of_bio: Vec<u8>,
    sharing: Vec<usize>,
    /// Pairs of a unit and the unit that it should precede.
    pairs: Vec<(usize, usize)>,
    counted_from_ns: u64,
}

impl Watch {
    /// Creates an observer. `unit_of_task` has the unit of each task.
    pub(crate) fn new(
        unit_of_task: Vec<usize>,
        units: usize,
        sharing: Vec<usize>,
        pairs: Vec<(usize, usize)>,
        counted_from_ns: u64,
    ) -> Self {
        let pair_count = pairs.len();
        let unit =
            UnitRun { beside: vec![(0, 0); pair_count], beside_other: vec![(0, 0); pair_count], ..UnitRun::default() };
        Self {
            unit_of_task,
            units: vec![unit; units],
            in_flight: vec![0; units],
            unit_of_bio: Vec::new(),
            sharing,
            pairs,
            counted_from_ns,
        }
    }

    pub(crate) fn into_observed(self, finished_ns: u64) -> Observed {
        let seconds = finished_ns.saturating_sub(self.counted_from_ns) as f64 / 1e9;
        Observed { units: self.units, seconds: seconds.max(1e-9) }
    }
}

impl Observer for Watch {
    fn submitted(&mut self, _now_ns: u64, bio: &Submitted) {
        if bio.again {
            return;
        }
        let unit = self.unit_of_task[bio.task];
        self.in_flight[unit] += 1;
        let place = bio.bio as usize;
        if self.unit_of_bio.len() <= place {
            self.unit_of_bio.resize(place + 1, u8::MAX);
        }
        self.unit_of_bio[place] = unit as u8;
    }

    fn bio_done(&mut self, _now_ns: u64, bio: u64) {
        if let Some(&unit) = self.unit_of_bio.get(bio as usize)
            && let Some(in_flight) = self.in_flight.get_mut(unit as usize)
        {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    fn completed(&mut self, now_ns: u64, io: &Completed) {
        if now_ns < self.counted_from_ns {
            return;
        }
        let number = self.unit_of_task[io.task];
        // The last bio of this I/O is already complete, but the unit still counts as busy.
        let is_busy = |unit: usize| unit == number || self.in_flight[unit] > 0;
        let all_share = self.sharing.iter().all(|&unit| is_busy(unit));
        let all_contend = (0..self.units.len()).all(is_busy);
        for (place, &(first, second)) in self.pairs.iter().enumerate() {
            if (number == first || number == second) && is_busy(first) && is_busy(second) {
                let unit = &mut self.units[number];
                let sum = if number == first { &mut unit.beside } else { &mut unit.beside_other };
                sum[place].0 += 1;
                sum[place].1 += io.latency_ns;
            }
        }
        let unit = &mut self.units[number];
        let bytes = u64::from(io.nr_sectors) * SECTOR_BYTES;
        match io.op {
            Op::Read => {
                unit.reads.record(io.latency_ns);
                unit.bytes_read += bytes;
                unit.reads_count += 1;
            }
            Op::Write => {
                unit.writes.record(io.latency_ns);
                unit.bytes_written += bytes;
                unit.async_writes += u64::from(!io.sync);
            }
            Op::Flush => {
                unit.fsyncs.record(io.latency_ns);
                return;
            }
            _ => unit.others.record(io.latency_ns),
        }
        unit.ios += 1;
        if all_share {
            unit.shared_bytes += bytes;
        }
        if all_contend {
            unit.contended_bytes += bytes;
        }
    }
}

/// The data that the value of a goal depends on, apart from the run.
pub(crate) struct Context<'a> {
    /// Number of the unit.
    pub(crate) unit: usize,
    /// The units with a share, and their shares.
    pub(crate) shares: &'a [(usize, f64)],
    /// Pairs of a unit and the unit that it should precede, as in [`Watch`].
    pub(crate) pairs: &'a [(usize, usize)],
    /// Number of the unit that a goal `before` names.
    pub(crate) other: Option<usize>,
    /// Rates of the unit if it runs alone: MB/s and IOPS.
    pub(crate) alone: (f64, f64),
}

impl UnitRun {
    /// Returns a run that read `bytes_read` in total, and `contended_bytes` while all units had
    /// I/O.
    #[cfg(test)]
    pub(crate) fn with_bytes(contended_bytes: u64, bytes_read: u64) -> Self {
        Self { contended_bytes, bytes_read, ..Self::default() }
    }

    fn latencies(&self, operation: Operation) -> Histogram {
        match operation {
            Operation::Read => self.reads.clone(),
            Operation::Write => self.writes.clone(),
            Operation::Fsync => self.fsyncs.clone(),
            Operation::All => {
                let mut all = self.reads.clone();
                all.merge(&self.writes);
                all.merge(&self.others);
                all
            }
        }
    }

    /// Returns whether the unit completed I/Os of this kind.
    pub(crate) fn has(&self, operation: Operation) -> bool {
        !self.latencies(operation).is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes_read + self.bytes_written
    }

    /// Returns the rates in MB/s and IOPS.
    pub(crate) fn rates(&self, seconds: f64) -> (f64, f64) {
        (self.bytes() as f64 / 1e6 / seconds, self.ios as f64 / seconds)
    }

    fn metric(&self, metric: Metric, seconds: f64) -> Option<f64> {
        match metric {
            Metric::Throughput => Some(self.rates(seconds).0),
            Metric::Iops => Some(self.rates(seconds).1),
            Metric::Latency(statistic, operation) => {
                let all = self.latencies(operation);
                let ns = match statistic {
                    _ if all.is_empty() => return None,
                    Statistic::Quantile(q) => all.quantile_ns(q) as f64,
                    Statistic::Mean => all.mean_ns(),
                    Statistic::Worst => all.max_ns() as f64,
                };
                Some(ns / 1e6)
            }
        }
    }
}

/// Returns the value of a goal in a run, in the unit of [`unit_of`]. `None` if the run has no I/O
/// of the kind that the goal concerns.
pub(crate) fn value(goal: &Goal, observed: &Observed, context: &Context<'_>) -> Option<f64> {
    let unit = &observed.units[context.unit];
    match goal {
        Goal::Bound(metric, _) | Goal::Reservation(metric, _) | Goal::Limit(metric, _) => {
            unit.metric(*metric, observed.seconds)
        }
        Goal::Share(_) => {
            let all: u64 = context.shares.iter().map(|&(unit, _)| observed.units[unit].shared_bytes).sum();
            let wanted: f64 = context.shares.iter().map(|(_, share)| share).sum();
            (all > 0).then(|| unit.shared_bytes as f64 / all as f64 * wanted)
        }
        Goal::Before(_) => {
            let place =
                context.pairs.iter().position(|&pair| Some(pair) == context.other.map(|o| (context.unit, o)))?;
            let (mine, theirs) = (unit.beside[place], observed.units[context.other?].beside_other[place]);
            let mean = |(count, sum): (u64, u64)| (count > 0).then(|| sum as f64 / count as f64);
            Some(mean(mine)? / mean(theirs)?.max(1.0))
        }
    }
}

/// Returns the range of values that meet a goal.
pub(crate) fn range(goal: &Goal, context: &Context<'_>) -> (f64, f64) {
    match goal {
        Goal::Bound(_, Bound::AtMost(most)) => (0.0, *most),
        Goal::Bound(_, Bound::AtLeast(least)) => (*least, f64::INFINITY),
        Goal::Share(share) => (share * (1.0 - SHARE_TOLERANCE), share * (1.0 + SHARE_TOLERANCE)),
        Goal::Before(_) => (0.0, 1.0),
        Goal::Reservation(metric, rate) => {
            let alone = if *metric == Metric::Throughput { context.alone.0 } else { context.alone.1 };
            (rate.min(alone * DEMAND_SHARE), f64::INFINITY)
        }
        Goal::Limit(_, rate) => (0.0, rate * (1.0 + LIMIT_TOLERANCE)),
    }
}

/// Returns the distance of a value from a range, as the logarithm of a ratio. The distance is 0 if
/// the value is inside the range by at least the factor `margin`.
pub(crate) fn distance(value: Option<f64>, (low, high): (f64, f64), margin: f64) -> f64 {
    let Some(value) = value else { return STARVED };
    let value = value.max(1e-9);
    // A range with two ends, such as the range of a share, is too narrow for the whole margin.
    let margin = if low > 0.0 && high.is_finite() { 1.0 + (margin - 1.0) / 4.0 } else { margin };
    let below = if low > 0.0 { (low * margin / value).ln().max(0.0) } else { 0.0 };
    let above = if high.is_finite() { (value * margin / high).ln().max(0.0) } else { 0.0 };
    (below + above).min(STARVED * 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(task: usize, op: Op, nr_sectors: u32, latency_ns: u64) -> Completed {
        Completed { task, op, nr_sectors, sync: true, latency_ns }
    }

    fn bio(task: usize, bio: u64) -> Submitted {
        let (op, flags, taken) = (Op::Read, iosched::Flags::SYNC, iosched_sim::Taken::Allocated);
        Submitted { task, bio, op, flags, sector: 0, nr_sectors: 8, again: false, taken }
    }

    fn context<'a>(unit: usize, shares: &'a [(usize, f64)], pairs: &'a [(usize, usize)]) -> Context<'a> {
        Context { unit, shares, pairs, other: pairs.first().map(|pair| pair.1), alone: (10.0, 100.0) }
    }

    #[test]
    fn shares_count_only_while_all_units_have_io() {
        let mut watch = Watch::new(vec![0, 1], 2, vec![0, 1], Vec::new(), 0);
        watch.submitted(0, &bio(0, 1));
        watch.bio_done(1, 1);
        // The second unit has no I/O, so this latency does not count.
        watch.completed(1, &done(0, Op::Read, 8000, 1));
        watch.submitted(1, &bio(1, 2));
        watch.submitted(1, &bio(0, 3));
        watch.bio_done(2, 3);
        watch.completed(2, &done(0, Op::Read, 8, 1));
        watch.submitted(2, &bio(0, 4));
        watch.bio_done(3, 2);
        watch.completed(3, &done(1, Op::Read, 24, 1));
        let observed = watch.into_observed(1_000_000_000);
        let shares = [(0, 1.0), (1, 1.0)];
        let found: Vec<f64> =
            (0..2).map(|unit| value(&Goal::Share(1.0), &observed, &context(unit, &shares, &[])).unwrap()).collect();
        assert_eq!(found, [0.5, 1.5]);
        let contended: Vec<u64> = observed.units.iter().map(|unit| unit.contended_bytes / SECTOR_BYTES).collect();
        assert_eq!(contended, [8, 24]);
        assert_eq!(observed.units[0].ios, 2);
    }

    #[test]
    fn before_compares_means_while_both_units_have_io() {
        let mut watch = Watch::new(vec![0, 1], 2, Vec::new(), vec![(0, 1)], 0);
        watch.submitted(0, &bio(0, 1));
        watch.submitted(0, &bio(1, 2));
        watch.bio_done(1, 1);
        watch.completed(1, &done(0, Op::Read, 8, 100));
        watch.submitted(1, &bio(0, 3));
        watch.bio_done(2, 2);
        watch.completed(2, &done(1, Op::Write, 8, 400));
        let observed = watch.into_observed(1_000_000_000);
        let pairs = [(0, 1)];
        assert_eq!(value(&Goal::Before("b".into()), &observed, &context(0, &[], &pairs)), Some(0.25));
    }

    #[test]
    fn flushes_count_as_fsyncs_and_not_as_ios() {
        let mut watch = Watch::new(vec![0], 1, Vec::new(), Vec::new(), 5);
        watch.completed(4, &done(0, Op::Flush, 0, 9));
        watch.completed(6, &done(0, Op::Flush, 0, 2_000_000));
        let observed = watch.into_observed(1_000_000_005);
        let goal: Goal = "worst(fsync) < 5 ms".parse().unwrap();
        assert_eq!(value(&goal, &observed, &context(0, &[], &[])), Some(2.0));
        assert_eq!(observed.units[0].ios, 0);
        assert_eq!(value(&"p99(read) < 5 ms".parse().unwrap(), &observed, &context(0, &[], &[])), None);
    }

    #[test]
    fn reservation_is_limited_by_the_rate_of_the_unit_alone() {
        let goal: Goal = "reservation 500 IOPS".parse().unwrap();
        assert_eq!(range(&goal, &context(0, &[], &[])), (97.0, f64::INFINITY));
        let goal: Goal = "reservation 50 IOPS".parse().unwrap();
        assert_eq!(range(&goal, &context(0, &[], &[])).0, 50.0);
    }

    #[test]
    fn distance_is_zero_only_within_the_margin() {
        assert_eq!(distance(Some(4.0), (0.0, 5.0), 1.1), 0.0);
        assert!(distance(Some(4.9), (0.0, 5.0), 1.1) > 0.0);
        assert!(distance(Some(40.0), (50.0, f64::INFINITY), 1.0) > 0.2);
        assert_eq!(distance(None, (0.0, 5.0), 1.0), STARVED);
    }
}
