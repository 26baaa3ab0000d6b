//! Comparison of predicted and measured values, and the judgement of the profile.

use std::fmt;

use iosched::Setting;
use iosched_disk::{Fit, Profile, Validated};
use iosched_kernel::checks::Finding;
use iosched_lab::{Bounds, Figure, Pair as Compared, SIGNIFICANCE, Verdict, stat};
use iosched_sim::{Plan, run};
use serde::Serialize;
use serde_json::{Value, json};

use super::error::ValidationError;
use super::records::{Measured, Outcome};
use super::workloads::{Span, Trial};
use crate::calibrate::{Quantity, covered_percent, off};

/// Largest relative error of a predicted rate that counts as met.
pub const RATE_WITHIN: f64 = 0.10;
/// Largest relative error of a predicted 99th percentile that counts as met.
pub const TAIL_WITHIN: f64 = 0.25;
/// Simulated runs of each workload with each scheduler.
const RUNS: u32 = 4;
/// Share of the differences between schedulers whose error is at most the error of the profile.
const DIFFERENCES_COVERED: f64 = 0.9;
/// Share of noisy metrics above which the measurements cannot judge a profile.
const NOISY_SHARE: f64 = 0.5;
/// Largest share of the time for which other programs may use the device, per cent. A larger share
/// can change rates by more than [`RATE_WITHIN`].
const BUSY_PERCENT: f64 = RATE_WITHIN * 100.0;
/// Upper limit of errors, per cent.
const ERROR_PERCENT_MAX: f64 = 1e6;

/// The measured and predicted values of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Mean over the runs on the device, I/Os per second or ns.
    pub measured: f64,
    /// Standard deviation divided by the mean. `None` for one run.
    pub variation: Option<f64>,
    /// Mean over the simulated runs, in the same unit.
    pub predicted: f64,
}

impl Judged {
    /// Returns the relative error: the ratio of the predicted to the measured value, minus 1.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.predicted / self.measured.max(f64::MIN_POSITIVE) - 1.0
    }

    /// Returns whether the value varies from run to run by more than `within`.
    fn is_noisy(&self, within: f64) -> bool {
        self.variation.is_some_and(|variation| variation > within)
    }
}

/// The results of a workload with a scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Name of the workload.
    pub trial: &'static str,
    /// Name of the scheduler.
    pub scheduler: String,
    /// I/Os per second of the watched job.
    pub iops: Judged,
    /// The 99th percentile of the latency of the watched job, ns.
    pub p99_ns: Judged,
    /// Number of the workload.
    #[serde(skip)]
    pub number: usize,
}

impl Cell {
    /// Returns the values of `quantity`.
    #[must_use]
    pub const fn figure(&self, quantity: Quantity) -> &Judged {
        match quantity {
            Quantity::Iops => &self.iops,
            Quantity::P99 => &self.p99_ns,
        }
    }
}

/// Results of predicting the order of pairs of schedulers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OrderCount {
    /// Number of orders that are the same in the model and on the device.
    pub right: usize,
    /// Number of orders that are different in the model.
    pub wrong: usize,
    /// Number of orders that the model cannot tell.
    pub cannot_tell: usize,
    /// Number of pairs for which the device shows no order.
    pub not_measurable: usize,
}

impl OrderCount {
    /// Returns the number of pairs for which the device shows an order.
    #[must_use]
    pub const fn measurable(&self) -> usize {
        self.right + self.wrong + self.cannot_tell
    }
}

/// A pair of schedulers for one workload and one metric.
#[derive(Clone, Debug)]
struct Pair {
    trial: usize,
    name: &'static str,
    schedulers: [String; 2],
    quantity: Quantity,
    /// Measured values of the second scheduler, and of the first one. `predicted` has the same
    /// order.
    measured: [Vec<f64>; 2],
    predicted: [Vec<f64>; 2],
}

/// The validation of a profile against a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Battery {
    /// Each workload with each scheduler.
    pub cells: Vec<Cell>,
    /// Number of rates whose error is at most [`RATE_WITHIN`], and number of all rates.
    pub rates_met: (usize, usize),
    /// Number of 99th percentiles whose error is at most [`TAIL_WITHIN`], and number of all 99th
    /// percentiles.
    pub tails_met: (usize, usize),
    /// Order of each pair of schedulers, by rates and by 99th percentiles.
    pub orders: OrderCount,
    /// Sentences about the orders that were predicted wrongly.
    pub wrong_orders: Vec<String>,
    /// Number of metrics that vary from run to run by more than their limit, and number of all
    /// metrics.
    pub noisy: (usize, usize),
    /// Load of other programs during the measurement: the largest load of each disk, and the load
    /// of the CPUs.
    pub loads: Vec<Finding>,
    /// Trust in the profile, and the error of differences between schedulers.
    pub validated: Validated,
    #[serde(skip)]
    errors_percent: [f64; 2],
}

impl Battery {
    /// Returns the results as data, such as for JSON.
    #[must_use]
    pub fn document(&self, measured: &Measured, profile: &Profile) -> Value {
        let trials = measured.header.trials();
        let trials = trials.iter().map(|trial| json!({ "name": trial.name, "about": trial.about }));
        json!({
            "target": measured.header.target,
            "profile": profile.name(),
            "about": profile.about(),
            "schedulers": measured.header.schedulers,
            "runs": measured.header.rounds,
            "battery": self,
            "decision": self.decision(),
            "answer": self.to_string(),
            "trials": trials.collect::<Value>(),
        })
    }

    /// Simulates the measured workloads on `profile` and judges the
    /// profile. The same records and profile give the same result.
    ///
    /// # Errors
    /// The profile cannot run a workload, or there are no measurements.
    pub fn of(
        measured: &Measured,
        profile: &Profile,
        mut observe: impl FnMut(usize, usize),
    ) -> Result<Self, ValidationError> {
        let header = &measured.header;
        let bytes = header.target.capacity_sectors.min(profile.card().capacity_sectors) * iosched::SECTOR_BYTES;
        let trials = header.trials();
        let there =
            (0..trials.len()).flat_map(|trial| (0..header.schedulers.len()).map(move |scheduler| (trial, scheduler)));
        let there: Vec<(usize, usize)> =
            there.filter(|&(trial, scheduler)| measured.of(trial, scheduler).next().is_some()).collect();
        let mut values = Vec::new();
        for (done, &(number, scheduler)) in there.iter().enumerate() {
            observe(done, there.len());
            let (trial, name) = (&trials[number], &header.schedulers[scheduler]);
            let simulate_run =
                |run: u32| simulate(trial, (bytes, header.span()), profile, name, header.seed + u64::from(run));
            let predicted = (0..RUNS).map(simulate_run).collect::<Result<Vec<_>, _>>()?;
            values.push(((number, scheduler), measured.of(number, scheduler).collect::<Vec<_>>(), predicted));
        }
        if values.is_empty() {
            return Err(ValidationError::TooLittle);
        }
        let cells: Vec<Cell> = values
            .iter()
            .map(|(number, measured, predicted)| {
                let judged = |quantity: Quantity| {
                    let [measured, predicted] = [measured, predicted].map(|outcomes| values_of(outcomes, quantity));
                    let mean = stat::mean(&measured);
                    Judged {
                        measured: mean,
                        variation: stat::standard_deviation(&measured).map(|sd| sd / mean.max(f64::MIN_POSITIVE)),
                        predicted: stat::mean(&predicted),
                    }
                };
                Cell {
                    trial: trials[number.0].name,
                    scheduler: header.schedulers[number.1].clone(),
                    iops: judged(Quantity::Iops),
                    p99_ns: judged(Quantity::P99),
                    number: number.0,
                }
            })
            .collect();
        let mut pairs = Vec::new();
        for (i, (first, first_outcomes, first_predicted)) in values.iter().enumerate() {
            for (second, other, other_predicted) in values[i + 1..].iter().filter(|(other, ..)| other.0 == first.0) {
                pairs.extend(Quantity::ALL.map(|quantity| Pair {
                    trial: first.0,
                    name: trials[first.0].name,
                    schedulers: [second.1, first.1].map(|number| header.schedulers[number].clone()),
                    quantity,
                    measured: [other, first_outcomes].map(|outcomes| values_of(outcomes, quantity)),
                    predicted: [other_predicted, first_predicted].map(|outcomes| values_of(outcomes, quantity)),
                }));
            }
        }
        Ok(Self::judge(cells, &pairs, largest(&measured.loads)))
    }

    fn judge(cells: Vec<Cell>, pairs: &[Pair], loads: Vec<Finding>) -> Self {
        let met = |quantity: Quantity, within: f64| {
            let met = cells.iter().filter(|cell| cell.figure(quantity).difference().abs() <= within).count();
            (met, cells.len())
        };
        let (rates_met, tails_met) = (met(Quantity::Iops, RATE_WITHIN), met(Quantity::P99, TAIL_WITHIN));
        let errors_percent = Quantity::ALL.map(|quantity| {
            covered_percent(cells.iter().map(|cell| off(cell.figure(quantity).difference())).collect())
        });
        let mut orders = OrderCount::default();
        let mut wrong_orders = Vec::new();
        for pair in pairs {
            // The error of differences comes from the other workloads, so that no pair is judged by
            // its own data.
            let others = pairs.iter().filter(|other| other.trial != pair.trial);
            let error_percent = difference_error_percent(others, pair.quantity);
            match pair.judge(error_percent) {
                None => orders.not_measurable += 1,
                Some((_, Verdict::CannotTell)) => orders.cannot_tell += 1,
                Some((is, predicted_verdict)) if is == predicted_verdict => orders.right += 1,
                Some((is, predicted_verdict)) => {
                    orders.wrong += 1;
                    wrong_orders.push(pair.in_words(is, predicted_verdict));
                }
            }
        }
        let all = (rates_met.1 + tails_met.1).max(1);
        let validated = Validated {
            trust_percent: percent((rates_met.0 + tails_met.0) as f64 / all as f64),
            wrong_orders: orders.wrong as u32,
            rate_difference_error_percent: difference_error_percent(pairs.iter(), Quantity::Iops),
            tail_difference_error_percent: difference_error_percent(pairs.iter(), Quantity::P99),
        };
        let noisy = cells.iter().flat_map(|cell| [cell.iops.is_noisy(RATE_WITHIN), cell.p99_ns.is_noisy(TAIL_WITHIN)]);
        let noisy = (noisy.filter(|is_noisy| *is_noisy).count(), 2 * cells.len());
        Self { cells, rates_met, tails_met, orders, wrong_orders, noisy, loads, validated, errors_percent }
    }

    /// Returns whether the measurements cannot judge a profile: they vary too much, or other
    /// programs used the device for too much of the time.
    #[must_use]
    pub fn is_too_noisy(&self) -> bool {
        let is_busy =
            |load: &Finding| matches!(load, Finding::OtherLoad { busy_percent, .. } if *busy_percent > BUSY_PERCENT);
        self.noisy.0 as f64 > NOISY_SHARE * self.noisy.1 as f64 || self.loads.iter().any(is_busy)
    }

    /// Returns the profile with the errors of this validation instead of the errors of its fit. If
    /// the measurements are too noisy, returns the profile without a change.
    #[must_use]
    pub fn trusted(&self, profile: Profile) -> Profile {
        if self.is_too_noisy() {
            return profile;
        }
        let [rate_error_percent, tail_error_percent] = self.errors_percent;
        let fits = profile.fit().is_none_or(|fit| fit.fits);
        profile.fitted(Fit {
            fits,
            rate_error_percent,
            tail_error_percent,
            rates_only: false,
            validated: Some(self.validated),
            recorded: None,
        })
    }
}

impl Pair {
    /// Returns the verdict of the device and the verdict of the model. `None` if the runs on the
    /// device are not enough to decide.
    fn judge(&self, error_percent: f64) -> Option<(Verdict, Verdict)> {
        let figure = match self.quantity {
            Quantity::Iops => Figure::Iops,
            Quantity::P99 => Figure::SyncP99,
        };
        let verdict = |[values, base]: &[Vec<f64>; 2], model_error_percent: f64| {
            let bounds = Bounds { model_error_percent, ..Bounds::default() };
            Compared { figure, values, base, bounds, concludes: true }.compare(SIGNIFICANCE).verdict
        };
        let is = verdict(&self.measured, 0.0);
        (is != Verdict::CannotTell).then(|| (is, verdict(&self.predicted, error_percent)))
    }

    /// Returns the error of the simulated change from the first scheduler to the second. The error
    /// is in per cent of the first scheduler's value. `None` if this value is 0.
    fn error_percent(&self) -> Option<f64> {
        let part = |[second, first]: &[Vec<f64>; 2]| {
            let first = stat::mean(first);
            (first > 0.0).then(|| (stat::mean(second) / first - 1.0) * 100.0)
        };
        Some((part(&self.predicted)? - part(&self.measured)?).abs())
    }

    fn in_words(&self, is: Verdict, predicted: Verdict) -> String {
        let word = |verdict: Verdict| match verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            _ => "equal",
        };
        let [second, first] = &self.schedulers;
        let figure = match self.quantity {
            Quantity::Iops => "rate",
            Quantity::P99 => "p99",
        };
        format!(
            "{}, {figure}: compared with `{first}`, `{second}` is {} on the device, but {} in the prediction of \
             the profile",
            self.name,
            word(is),
            word(predicted)
        )
    }
}

/// Returns the largest error of the differences between schedulers, per cent, without the worst
/// tenth of the errors.
fn difference_error_percent<'p>(pairs: impl Iterator<Item = &'p Pair>, quantity: Quantity) -> f64 {
    let errors = pairs.filter(|pair| pair.quantity == quantity).filter_map(Pair::error_percent);
    let error = quantile(errors.collect(), DIFFERENCES_COVERED).min(ERROR_PERCENT_MAX);
    (error * 10.0).round() / 10.0
}

/// Returns the least value that at least the share `share` of the values does not exceed. 0 without
/// values.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = (values.len() as f64 * share).ceil() as usize;
    values.get(last.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// Returns a share in per cent, with one decimal.
fn percent(share: f64) -> f64 {
    ((share * 1e3).round() / 10.0).min(ERROR_PERCENT_MAX)
}

fn values_of(outcomes: &[Outcome], quantity: Quantity) -> Vec<f64> {
    let value = |outcome: &Outcome| match quantity {
        Quantity::Iops => outcome.iops,
        Quantity::P99 => outcome.p99_ns,
    };
    outcomes.iter().map(value).collect()
}

/// Simulates a run of `trial` on the first `bytes` of a model.
///
/// # Errors
/// The trial cannot run on the model, or no I/O completed in the measured time.
pub fn simulate(
    trial: &Trial,
    (bytes, span): (u64, Span),
    profile: &Profile,
    scheduler: &str,
    seed: u64,
) -> Result<Outcome, ValidationError> {
    let workload = trial.workload(bytes, span);
    let plan = Plan { seed, ..Plan::new(&workload, profile, Setting::defaults(scheduler)) };
    let failed =
        |source| ValidationError::Run { trial: trial.name, scheduler: scheduler.to_owned(), source: Box::new(source) };
    Outcome::of(trial, scheduler, &run(&plan, ()).map_err(failed)?)
}

impl Battery {
    /// Returns the judgement of the profile, in sentences.
    #[must_use]
    pub fn decision(&self) -> String {
        if self.is_too_noisy() {
            return self.too_noisy();
        }
        let OrderCount { right, wrong, cannot_tell, .. } = self.orders;
        let measurable = self.orders.measurable();
        let met =
            format!("The profile predicts {:.0} % of the rates and p99 latencies well.", self.validated.trust_percent);
        let shows = format!("The device shows {measurable} differences between schedulers.");
        let no = "Do not choose a scheduler with this profile. Compare the schedulers on the device itself (--on).";
        match (measurable, wrong, right) {
            (0, ..) => format!(
                "Use any scheduler of the device for these workloads, because the device shows no difference \
                 between the schedulers. For the same reason, iosched cannot judge whether the profile predicts the \
                 best scheduler. {met}"
            ),
            (_, 0, 0) => format!("{no} {shows} The profile predicts none of these differences. {met}"),
            (_, 0, _) => {
                let rest = if cannot_tell > 0 {
                    format!("; for {cannot_tell} differences, the profile cannot tell which scheduler is better")
                } else {
                    String::new()
                };
                format!(
                    "Use this profile to choose a scheduler. {shows} The profile predicts {right} of these \
                     differences correctly and none wrongly{rest}. {met}"
                )
            }
            _ => format!("{no} {shows} The profile predicts {wrong} of these differences wrongly. {met}"),
        }
    }
}

impl Battery {
    /// Returns the sentences for measurements that cannot judge a profile.
    fn too_noisy(&self) -> String {
        let ((noisy, all), [rate, tail]) = (self.noisy, [RATE_WITHIN, TAIL_WITHIN].map(|within| within * 100.0));
        let loads: String = self.loads.iter().map(|load| format!(" During the measurement, {load}.")).collect();
        let remedy = if loads.is_empty() {
            " iosched saw no other load before the runs. Find the cause, for example with `iosched top`, or give longer \
             runs with --run-for."
        } else {
            " Stop the other programs, and run the command again."
        };
        format!(
            "Too noisy to tell: the measurements cannot judge the profile. {noisy} of {all} rates and p99 latencies vary \
             from run to run by more than the limit ({rate:.0} % for rates, {tail:.0} % for p99).{loads}{remedy}"
        )
    }
}

/// Returns the largest load of other programs on each disk, and the load of the CPUs.
fn largest(loads: &[Finding]) -> Vec<Finding> {
    let mut largest: Vec<Finding> = Vec::new();
    for load in loads {
        let known = largest.iter_mut().find(|known| match (&**known, load) {
            (Finding::OtherLoad { device, .. }, Finding::OtherLoad { device: other, .. }) => device == other,
            (known, load) => std::mem::discriminant(known) == std::mem::discriminant(load),
        });
        match known {
            None => largest.push(load.clone()),
            Some(known) => {
                let busy = |load: &Finding| match load {
                    Finding::OtherLoad { busy_percent, .. } => *busy_percent,
                    _ => 0.0,
                };
                if busy(load) > busy(known) {
                    *known = load.clone();
                }
            }
        }
    }
    largest
}

impl fmt::Display for Battery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((rates, all), (tails, _)) = (self.rates_met, self.tails_met);
        let OrderCount { right, wrong, cannot_tell, not_measurable } = self.orders;
        let [rate, tail] = [RATE_WITHIN, TAIL_WITHIN].map(|within| within * 100.0);
        write!(
            f,
            "{rates} of {all} predicted rates are within {rate:.0} % of the device; {tails} of {all} predicted \
            p99 latencies are within {tail:.0} %; "
        )?;
        if self.orders.measurable() == 0 {
            write!(f, "the device shows no difference between its schedulers")?;
        } else {
            let measurable = self.orders.measurable();
            write!(
                f,
                "differences between schedulers on the device: {measurable}; predicted correctly: {right}, wrongly: \
                 {wrong}, cannot tell: {cannot_tell}"
            )?;
        }
        if not_measurable > 0 {
            write!(f, " ({not_measurable} more pairs of schedulers have no difference)")?;
        }
        let (noisy, all) = self.noisy;
        if noisy > 0 {
            write!(f, "; {noisy} of {all} metrics vary by more than their limit from run to run")?;
        }
        if self.is_too_noisy() {
            return write!(f, "; too noisy for a score");
        }
        write!(f, "; score {:.0} %", self.validated.trust_percent)
    }
}
