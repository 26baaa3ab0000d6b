//! Predicted beside measured, and what that comes to.

use std::fmt;

use iosched::Setting;
use iosched_disk::{Fit, Profile, Validated};
use iosched_lab::{Bounds, Figure, Pair as Compared, SIGNIFICANCE, Verdict, stat};
use iosched_sim::{Plan, run};
use serde::Serialize;

use super::error::ValidationError;
use super::records::{Measured, Outcome};
use super::workloads::{Span, Trial};
use crate::calibrate::{Quantity, covered_percent, off};

/// A predicted rate within this share of what was measured is met, and a 99th percentile.
pub const RATE_WITHIN: f64 = 0.10;
/// See [`RATE_WITHIN`].
pub const TAIL_WITHIN: f64 = 0.25;
/// Simulated runs of each workload under each scheduler.
const RUNS: u32 = 4;
/// Of so many differences a profile is no further off than it says.
const DIFFERENCES_COVERED: f64 = 0.9;
/// Differences further off are all the same, per cent.
const ERROR_PERCENT_MAX: f64 = 1e6;

/// What is known of one of two figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// Mean over the runs on the device: I/Os a second, or ns.
    pub measured: f64,
    /// Standard deviation over mean; `None` of one run.
    pub variation: Option<f64>,
    /// Mean over the simulated runs.
    pub predicted: f64,
}

impl Judged {
    /// Predicted over measured, less 1.
    #[must_use]
    pub fn difference(&self) -> f64 {
        self.predicted / self.measured.max(f64::MIN_POSITIVE) - 1.0
    }
}

/// A workload under a scheduler.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// The workload.
    pub trial: &'static str,
    /// The scheduler.
    pub scheduler: String,
    /// I/Os a second of who is watched.
    pub iops: Judged,
    /// The latency that one of its I/Os in a hundred exceeds, ns.
    pub p99_ns: Judged,
    /// Number of the workload.
    #[serde(skip)]
    pub number: usize,
}

impl Cell {
    /// That figure.
    #[must_use]
    pub const fn figure(&self, quantity: Quantity) -> &Judged {
        match quantity {
            Quantity::Iops => &self.iops,
            Quantity::P99 => &self.p99_ns,
        }
    }
}

/// What became of the orders of pairs of schedulers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OrderCount {
    /// Named as the device has it.
    pub right: usize,
    /// Named otherwise.
    pub wrong: usize,
    /// Not named: the model says that it cannot tell.
    pub cannot_tell: usize,
    /// The device itself does not show one.
    pub not_measurable: usize,
}

impl OrderCount {
    /// Those that the device shows.
    #[must_use]
    pub const fn measurable(&self) -> usize {
        self.right + self.wrong + self.cannot_tell
    }
}

/// A pair of schedulers in one workload and one figure.
#[derive(Clone, Debug)]
struct Pair {
    trial: usize,
    name: &'static str,
    schedulers: [String; 2],
    quantity: Quantity,
    /// Values of the second and of the first, as measured and as predicted.
    measured: [Vec<f64>; 2],
    predicted: [Vec<f64>; 2],
}

/// A profile beside a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Battery {
    /// Each workload under each scheduler.
    pub cells: Vec<Cell>,
    /// Rates within [`RATE_WITHIN`], and all.
    pub rates_met: (usize, usize),
    /// 99th percentiles within [`TAIL_WITHIN`], and all.
    pub tails_met: (usize, usize),
    /// Orders of pairs of schedulers, in rates and in 99th percentiles.
    pub orders: OrderCount,
    /// Each order that was named otherwise than the device has it, in words.
    pub wrong_orders: Vec<String>,
    /// What the profile is worth, and how far off differences between schedulers are.
    pub validated: Validated,
    #[serde(skip)]
    errors_percent: [f64; 2],
}

impl Battery {
    /// Simulates on `profile` what was measured, and judges it. The same records and profile give the same.
    ///
    /// # Errors
    /// The profile cannot run a workload, or nothing was measured.
    pub fn of(
        measured: &Measured,
        profile: &Profile,
        mut observe: impl FnMut(usize, usize),
    ) -> Result<Self, ValidationError> {
        let header = &measured.header;
        let bytes = header.target.capacity_sectors.min(profile.card().capacity_sectors) * iosched::SECTOR_BYTES;
        let trials = header.trials();
        let there = (0..trials.len()).flat_map(|trial| (0..header.schedulers.len()).map(move |own| (trial, own)));
        let there: Vec<(usize, usize)> =
            there.filter(|&(trial, own)| measured.of(trial, own).next().is_some()).collect();
        let mut values = Vec::new();
        for (done, &(number, scheduler)) in there.iter().enumerate() {
            observe(done, there.len());
            let (trial, name) = (&trials[number], &header.schedulers[scheduler]);
            let one = |run: u32| simulate(trial, (bytes, header.span()), profile, name, header.seed + u64::from(run));
            let predicted = (0..RUNS).map(one).collect::<Result<Vec<_>, _>>()?;
            values.push(((number, scheduler), measured.of(number, scheduler).collect::<Vec<_>>(), predicted));
        }
        if values.is_empty() {
            return Err(ValidationError::TooLittle);
        }
        let cells: Vec<Cell> = values
            .iter()
            .map(|(number, measured, predicted)| {
                let judged = |quantity: Quantity| {
                    let [measured, predicted] = [measured, predicted].map(|own| values_of(own, quantity));
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
        for (i, (first, own, own_predicted)) in values.iter().enumerate() {
            for (second, other, other_predicted) in values[i + 1..].iter().filter(|(other, ..)| other.0 == first.0) {
                pairs.extend(Quantity::ALL.map(|quantity| Pair {
                    trial: first.0,
                    name: trials[first.0].name,
                    schedulers: [second.1, first.1].map(|number| header.schedulers[number].clone()),
                    quantity,
                    measured: [other, own].map(|own| values_of(own, quantity)),
                    predicted: [other_predicted, own_predicted].map(|own| values_of(own, quantity)),
                }));
            }
        }
        Ok(Self::judge(cells, &pairs))
    }

    fn judge(cells: Vec<Cell>, pairs: &[Pair]) -> Self {
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
            // What the others say of how far off differences are: it is tried on what it did not see.
            let others = pairs.iter().filter(|other| other.trial != pair.trial);
            let error_percent = difference_error_percent(others, pair.quantity);
            match pair.judge(error_percent) {
                None => orders.not_measurable += 1,
                Some((_, Verdict::CannotTell)) => orders.cannot_tell += 1,
                Some((is, said)) if is == said => orders.right += 1,
                Some((is, said)) => {
                    orders.wrong += 1;
                    wrong_orders.push(pair.in_words(is, said));
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
        Self { cells, rates_met, tails_met, orders, wrong_orders, validated, errors_percent }
    }

    /// The profile, carrying how far it can be trusted: by what was seen here instead of what its fit says of itself.
    #[must_use]
    pub fn trusted(&self, profile: Profile) -> Profile {
        let [rate_error_percent, tail_error_percent] = self.errors_percent;
        let fits = profile.fit().is_none_or(|fit| fit.fits);
        profile.fitted(Fit {
            fits,
            rate_error_percent,
            tail_error_percent,
            rates_only: false,
            validated: Some(self.validated),
        })
    }
}

impl Pair {
    /// What the device shows and what the model says; `None` if the device shows nothing.
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

    /// How far off the predicted difference is, per cent of the first; `None` if there is nothing to have a share of.
    fn error_percent(&self) -> Option<f64> {
        let part = |[second, first]: &[Vec<f64>; 2]| {
            let first = stat::mean(first);
            (first > 0.0).then(|| (stat::mean(second) / first - 1.0) * 100.0)
        };
        Some((part(&self.predicted)? - part(&self.measured)?).abs())
    }

    fn in_words(&self, is: Verdict, said: Verdict) -> String {
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
            "{}, {figure}: `{second}` against `{first}` is {}, but the profile predicts {}",
            self.name,
            word(is),
            word(said)
        )
    }
}

/// How far off differences between schedulers are, in nine cases of ten, per cent.
fn difference_error_percent<'p>(pairs: impl Iterator<Item = &'p Pair>, quantity: Quantity) -> f64 {
    let errors = pairs.filter(|pair| pair.quantity == quantity).filter_map(Pair::error_percent);
    let error = quantile(errors.collect(), DIFFERENCES_COVERED).min(ERROR_PERCENT_MAX);
    (error * 10.0).round() / 10.0
}

/// The value that so large a share does not exceed; 0 of none.
fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let last = (values.len() as f64 * share).ceil() as usize;
    values.get(last.saturating_sub(1)).copied().unwrap_or(0.0)
}

/// A share in per cent, with as many digits as mean something.
fn percent(share: f64) -> f64 {
    ((share * 1e3).round() / 10.0).min(ERROR_PERCENT_MAX)
}

fn values_of(outcomes: &[Outcome], quantity: Quantity) -> Vec<f64> {
    let value = |own: &Outcome| match quantity {
        Quantity::Iops => own.iops,
        Quantity::P99 => own.p99_ns,
    };
    outcomes.iter().map(value).collect()
}

/// A run of `trial` on a model, on its first `bytes`.
///
/// # Errors
/// It cannot run there, or nothing was complete in the time that counts.
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
    /// What the profile is good for, in sentences.
    #[must_use]
    pub fn decision(&self) -> String {
        let OrderCount { right, wrong, cannot_tell, .. } = self.orders;
        let of = self.orders.measurable();
        let met = format!("It predicts {:.0} % of the rates and p99 latencies well.", self.validated.trust_percent);
        let shows = format!("The device shows {of} differences between schedulers.");
        let no = "Do not choose a scheduler by this profile. Compare on the device itself: --on.";
        match (of, wrong, right) {
            (0, ..) => format!(
                "Use any scheduler of the device for these workloads: the device shows no \
                 difference between them. Therefore the profile cannot be judged by their order. \
                 {met}"
            ),
            (_, 0, 0) => format!("{no} {shows} The profile predicts none of them. {met}"),
            (_, 0, _) => {
                let rest = if cannot_tell > 0 { format!(", and cannot tell {cannot_tell}") } else { String::new() };
                format!(
                    "Use this profile to choose a scheduler. {shows} The profile predicts {right} \
                     rightly and none wrongly{rest}. {met}"
                )
            }
            _ => format!("{no} {shows} The profile predicts {wrong} wrongly. {met}"),
        }
    }
}

impl fmt::Display for Battery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((rates, all), (tails, _)) = (self.rates_met, self.tails_met);
        let OrderCount { right, wrong, cannot_tell, not_measurable } = self.orders;
        let [rate, tail] = [RATE_WITHIN, TAIL_WITHIN].map(|within| within * 100.0);
        write!(f, "rates within {rate:.0} %: {rates} of {all}; p99 within {tail:.0} %: {tails} of {all}; ")?;
        if self.orders.measurable() == 0 {
            write!(f, "the device shows no difference between its schedulers")?;
        } else {
            let of = self.orders.measurable();
            write!(
                f,
                "orders of schedulers on the device: {of}, predicted {right}, wrong \
                       {wrong}, undecided {cannot_tell}"
            )?;
        }
        if not_measurable > 0 {
            write!(f, " ({not_measurable} more have no difference)")?;
        }
        write!(f, "; trust {:.0} %", self.validated.trust_percent)
    }
}
