//! Compares observed values with goals.

use iosched_numbers::Histogram;

use super::Observed;
use super::unit::Unit;
use crate::goal::{Bound, Goal, Metric, Operation, Statistic};
use crate::plan::{Interval, Outcome, Plan};

/// Smallest number of I/Os for a statement about latencies.
const IOS_MIN: u64 = 20;
/// Least mean number of requests in flight of a unit that uses the device.
const IN_FLIGHT_MIN: f64 = 0.5;
/// Tolerance of shares.
const TOLERANCE: f64 = 0.1;
/// Two-sided 95 % quantile of the normal distribution.
const Z: f64 = 1.96;
/// Relative error of a quantile of a histogram.
const PRECISION: f64 = 0.008;
/// Least share of the observed time at which all requests count as observed.
const ALL: f64 = 0.97;

/// A judged goal.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) observed: Option<Interval>,
    pub(super) outcome: Outcome,
    /// Why iosched cannot tell whether the goal is met.
    pub(super) reason: Option<String>,
}

impl Judged {
    fn cannot_tell(observed: Option<Interval>, reason: impl Into<String>) -> Self {
        Self { observed, outcome: Outcome::CannotTell, reason: Some(reason.into()) }
    }

    fn of(interval: Interval, bound: Bound) -> Self {
        let outcome = match (bound.is_met_by(interval.from), bound.is_met_by(interval.to)) {
            (true, true) => Outcome::Met,
            (false, false) => Outcome::Missed,
            _ => Outcome::CannotTell,
        };
        let reason =
            (outcome == Outcome::CannotTell).then(|| "the unit had too few I/Os; observe for longer".to_owned());
        Self { observed: Some(interval), outcome, reason }
    }
}

fn exact(value: f64) -> Interval {
    Interval { value, from: value, to: value }
}

/// Returns a statistic of latencies with its 95 % interval, ms.
pub(super) fn statistic(latency: &Histogram, statistic: Statistic) -> Interval {
    let count = latency.count() as f64;
    let ms = |ns: f64| ns / 1e6;
    match statistic {
        Statistic::Worst => exact(ms(latency.max_ns() as f64)),
        Statistic::Mean => {
            let mean = latency.mean_ns();
            let squares: f64 = latency
                .buckets()
                .map(|(first, width, count)| ((first + width / 2) as f64 - mean).powi(2) * count as f64)
                .sum();
            let error = if count > 1.0 { (squares / (count - 1.0)).sqrt() / count.sqrt() * Z } else { mean };
            Interval { value: ms(mean), from: ms((mean - error).max(0.0)), to: ms(mean + error) }
        }
        Statistic::Quantile(q) => {
            // The rank of the quantile has a binomial distribution.
            let error = (q * (1.0 - q) / count.max(1.0)).sqrt() * Z;
            let at = |q: f64| ms(latency.quantile_ns(q) as f64);
            // Above the last rank, the sample says nothing about the upper end.
            let to = if q + error >= 1.0 { f64::INFINITY } else { at(q + error) * (1.0 + PRECISION) };
            Interval { value: at(q), from: at((q - error).max(0.0)) * (1.0 - PRECISION), to }
        }
    }
}

/// Judges a goal of the unit with the index `number`.
pub(super) fn judge(goal: &Goal, number: usize, plan: &Plan, units: &[Unit], observed: &Observed) -> Judged {
    let unit = &units[number];
    if let Some(reason) = &unit.unknown {
        return Judged::cannot_tell(None, reason);
    }
    let seconds = observed.sample.seconds;
    let rate = |metric: Metric| match metric {
        Metric::Iops => unit.all_ios() as f64 / seconds,
        _ => unit.all_bytes() as f64 / 1e6 / seconds,
    };
    let needs_latencies = matches!(goal, Goal::Bound(Metric::Latency(..), _) | Goal::Before(_));
    let without = observed.without_latencies.as_ref();
    if let Some(reason) = without.filter(|_| needs_latencies || unit.io.is_none()) {
        return Judged::cannot_tell(None, format!("iosched cannot observe requests: {reason}"));
    }
    match goal {
        Goal::Bound(Metric::Latency(which, operation), bound) => latency(unit, *which, *operation, *bound, observed),
        Goal::Bound(metric, bound) => Judged::of(exact(rate(*metric)), *bound),
        Goal::Limit(metric, most) => Judged::of(exact(rate(*metric)), Bound::AtMost(*most)),
        Goal::Reservation(metric, least) => {
            let judged = Judged::of(exact(rate(*metric)), Bound::AtLeast(*least));
            if judged.outcome == Outcome::Missed && unit.in_flight < IN_FLIGHT_MIN {
                return Judged::cannot_tell(judged.observed, idle(unit));
            }
            judged
        }
        Goal::Share(share) => share_of(*share, number, plan, units),
        Goal::Before(name) => {
            let Some(other) = plan.units.iter().position(|unit| unit.name == *name) else {
                return Judged::cannot_tell(None, format!("the plan has no unit {name}"));
            };
            let (mine, others) = (unit.latency(Operation::All), units[other].latency(Operation::All));
            if mine.count() < IOS_MIN || others.count() < IOS_MIN {
                return Judged::cannot_tell(
                    None,
                    format!("each of the two units needs at least {IOS_MIN} I/Os; observe for longer"),
                );
            }
            let [mine, others] = [mine, others].map(|latency| statistic(&latency, Statistic::Mean));
            let interval =
                Interval { value: mine.value / others.value, from: mine.from / others.to, to: mine.to / others.from };
            Judged::of(interval, Bound::AtMost(1.0))
        }
    }
}

/// Returns a sentence which says that a unit did not need a higher rate.
pub(super) fn idle(unit: &Unit) -> String {
    format!("the unit did not need a higher rate: on average, it had only {:.1} requests in flight", unit.in_flight)
}

fn latency(unit: &Unit, which: Statistic, operation: Operation, bound: Bound, observed: &Observed) -> Judged {
    let latency = unit.latency(operation);
    if operation == Operation::Fsync && !observed.observes_fsync {
        return Judged::cannot_tell(
            None,
            "iosched observes calls of fsync only on ext4, and this kernel does not report these calls",
        );
    }
    if latency.is_empty() {
        let hint = if operation == Operation::Fsync { "; iosched observes calls of fsync only on ext4" } else { "" };
        return Judged::cannot_tell(None, format!("the unit had no I/O of this kind{hint}"));
    }
    let interval = statistic(&latency, which);
    if latency.count() < IOS_MIN {
        let reason = format!("the unit had only {} I/Os of this kind; observe for longer", latency.count());
        return Judged::cannot_tell(Some(interval), reason);
    }
    let judged = Judged::of(interval, bound);
    // An I/O that was not observed may have taken longer.
    if which == Statistic::Worst && judged.outcome == Outcome::Met && observed.sample.sampled < ALL {
        let reason = format!("iosched observed only {:.0} % of the time", observed.sample.sampled * 100.0);
        return Judged::cannot_tell(Some(interval), reason);
    }
    judged
}

/// Judges a share of the bytes of all units with a share.
fn share_of(share: f64, number: usize, plan: &Plan, units: &[Unit]) -> Judged {
    let share_of = |goals: &[crate::plan::GoalOutcome]| {
        goals.iter().find_map(|goal| match goal.wanted.goal {
            Goal::Share(share) => Some(share),
            _ => None,
        })
    };
    let sharing: Vec<(usize, f64)> =
        plan.units.iter().enumerate().filter_map(|(number, unit)| Some((number, share_of(&unit.goals)?))).collect();
    let shares: f64 = sharing.iter().map(|(_, share)| share).sum();
    let bytes: u64 = sharing.iter().map(|(number, _)| units[*number].all_bytes()).sum();
    if bytes == 0 {
        return Judged::cannot_tell(None, "no unit with a share had I/O");
    }
    let value = units[number].all_bytes() as f64 / bytes as f64 * shares;
    if let Some((idle, _)) = sharing.iter().find(|(number, _)| units[*number].in_flight < IN_FLIGHT_MIN) {
        let reason = format!(
            "{} had only {:.1} requests in flight on average; a share counts only while all units have queued I/O",
            plan.units[*idle].name, units[*idle].in_flight
        );
        return Judged::cannot_tell(Some(exact(value)), reason);
    }
    Judged::of(exact(value), Bound::AtLeast(share * (1.0 - TOLERANCE)))
}
