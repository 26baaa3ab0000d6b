//! Volumes: the effect of each setting on each volume, and the choice of a setting.

use std::collections::{BTreeMap, BTreeSet};

use iosched_lab::{Direction, stat};
use serde::Serialize;

use crate::columns::Table;
use crate::error::SweepError;

/// Certainty of the choice of a setting for a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// A setting is certainly better than the baseline.
    Better,
    /// No setting is better by a difference that matters.
    NothingBetter,
    /// No setting is certainly better, but a setting may be better. The baseline stays until more
    /// runs decide.
    CannotTell,
}

impl Choice {
    /// Returns the reason for the chosen setting, in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "certainly better",
            Self::NothingBetter => "the baseline; no other setting is better",
            Self::CannotTell => "the baseline; cannot tell whether another setting is better",
        }
    }
}

/// A workload on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// Name of the workload, as in the plan.
    pub workload: String,
    /// Name of the device.
    pub device: String,
    /// Label of the baseline.
    pub baseline: String,
    /// Label of the chosen setting.
    pub chosen: String,
    /// Certainty of the choice.
    pub choice: Choice,
    /// Label of a setting that may be better, if the choice is uncertain.
    pub maybe: Option<String>,
    /// Change under the chosen setting in all runs, per cent of the baseline. Negative for a
    /// decrease.
    pub percent: Option<f64>,
    /// Number of runs of each setting.
    pub runs: usize,
    /// Mean number of I/Os of a run under the baseline.
    pub ios: u64,
    /// Doubts about the comparison, one per line.
    pub doubts: Option<String>,
    /// Values of the metric in each run, by setting. Values at the same index share a seed.
    #[serde(skip)]
    pub values: BTreeMap<String, Vec<f64>>,
}

pub(super) struct Read {
    pub(super) volumes: Vec<Volume>,
    pub(super) unit: String,
    pub(super) higher_is_better: bool,
    pub(super) without: usize,
}

/// Verdicts on a setting of a volume, one per seed.
#[derive(Default)]
struct Judged {
    verdicts: Vec<String>,
    baseline: bool,
}

#[derive(Default)]
struct Gathered {
    /// Values by setting, and then by seed and run.
    values: BTreeMap<String, BTreeMap<(u64, u64), f64>>,
    judged: BTreeMap<String, Judged>,
    ios: u64,
    doubts: Option<String>,
}

fn missing(table: &str, column: &str) -> SweepError {
    SweepError::Summary(format!("the table of {table} has no column {column}, so it is not from a sweep"))
}

/// Collects the rows that a summary needs. It reads the files one by one, and stores only the
/// necessary columns and the rows of one metric.
#[derive(Default)]
pub struct Gathering {
    figure: String,
    by_volume: BTreeMap<(String, String), Gathered>,
    /// All volumes, with or without the metric of the summary.
    seen: BTreeSet<(String, String)>,
    /// Metrics with a better direction.
    known: BTreeSet<String>,
    unit: Option<String>,
    better: Option<String>,
}

impl Gathering {
    /// Creates an empty collector. `figure` is the id of a metric with a better direction, such as
    /// `sync_mean`.
    #[must_use]
    pub fn new(figure: &str) -> Self {
        Self { figure: figure.to_owned(), ..Self::default() }
    }

    /// Adds rows of the table `runs`.
    ///
    /// # Errors
    /// The table does not have the columns of `runs`.
    pub fn runs(&mut self, runs: &Table) -> Result<(), SweepError> {
        let text = |name: &str| runs.text(name).ok_or_else(|| missing("runs", name));
        let integers = |name: &str| runs.whole(name).ok_or_else(|| missing("runs", name));
        let (workload, device) = (text("workload")?, text("device")?);
        let (scheduler, figures) = (text("scheduler")?, text("metric")?);
        let (seed, run) = (integers("seed")?, integers("run")?);
        let value = runs.number("value").ok_or_else(|| missing("runs", "value"))?;
        for row in 0..runs.rows() {
            if figures[row].as_deref() != Some(&self.figure) {
                continue;
            }
            if let (Some(workload), Some(device), Some(scheduler), Some(seed), Some(run), Some(value)) =
                (&workload[row], &device[row], &scheduler[row], seed[row], run[row], value[row])
            {
                let gathered = self.by_volume.entry((device.clone(), workload.clone())).or_default();
                gathered.values.entry(scheduler.clone()).or_default().insert((seed, run), value);
            }
        }
        Ok(())
    }

    /// Adds rows of the table `verdicts`.
    ///
    /// # Errors
    /// The table does not have the columns of `verdicts`.
    pub fn verdicts(&mut self, verdicts: &Table) -> Result<(), SweepError> {
        let text = |name: &str| verdicts.text(name).ok_or_else(|| missing("verdicts", name));
        let (workload, device, scheduler) = (text("workload")?, text("device")?, text("scheduler")?);
        let (figures, units, sides) = (text("metric")?, text("unit")?, text("better")?);
        let (verdict, doubts) = (text("verdict")?, text("doubts")?);
        let baseline = verdicts.truth("baseline").ok_or_else(|| missing("verdicts", "baseline"))?;
        let ios = verdicts.whole("ios").ok_or_else(|| missing("verdicts", "ios"))?;
        for row in 0..verdicts.rows() {
            let (Some(workload), Some(device), Some(scheduler), Some(figure)) =
                (&workload[row], &device[row], &scheduler[row], &figures[row])
            else {
                continue;
            };
            let key = (device.clone(), workload.clone());
            if sides[row].is_some() && !self.known.contains(figure) {
                self.known.insert(figure.clone());
            }
            if *figure == self.figure {
                self.unit.clone_from(&units[row]);
                self.better.clone_from(&sides[row]);
                let gathered = self.by_volume.entry(key.clone()).or_default();
                gathered.ios = ios[row].unwrap_or(0);
                gathered.doubts = doubts[row].clone().filter(|text| !text.is_empty());
                let judged = gathered.judged.entry(scheduler.clone()).or_default();
                judged.baseline |= baseline[row] == Some(true);
                judged.verdicts.extend(verdict[row].clone());
            }
            self.seen.insert(key);
        }
        Ok(())
    }

    /// Returns all volumes that have the metric.
    pub(super) fn volumes(self) -> Result<Read, SweepError> {
        let Self { figure, by_volume, seen, known, unit, better } = self;
        let Some(unit) = unit else {
            let known: Vec<String> = known.into_iter().collect();
            let there_are = known.join(", ");
            return Err(SweepError::Summary(format!("no volume has the metric {figure}; available: {there_are}")));
        };
        let Some(better) = better else {
            let problem = "this metric cannot choose a setting, because a high value is neither good nor bad";
            return Err(SweepError::Summary(format!("metric {figure}: {problem}")));
        };
        let higher_is_better = Some(better.as_str()) == Direction::Higher.better();
        let volumes = by_volume.into_iter().filter_map(|(key, rows)| rows.volume(key, higher_is_better));
        let volumes: Vec<Volume> = volumes.collect();
        Ok(Read { without: seen.len().saturating_sub(volumes.len()), volumes, unit, higher_is_better })
    }
}

impl Gathered {
    fn volume(self, (device, workload): (String, String), higher_is_better: bool) -> Option<Volume> {
        let baseline = self.judged.iter().find(|(_, judged)| judged.baseline).map(|(label, _)| label.clone())?;
        // Runs are compared in pairs, so only runs that every setting has are used.
        let of_baseline = self.values.get(&baseline)?;
        let keys: Vec<(u64, u64)> = of_baseline
            .keys()
            .filter(|key| self.values.values().all(|values| values.contains_key(key)))
            .copied()
            .collect();
        let values: BTreeMap<String, Vec<f64>> = self
            .values
            .iter()
            .map(|(label, values)| (label.clone(), keys.iter().map(|key| values[key]).collect()))
            .collect();
        if keys.is_empty() {
            return None;
        }
        let mean = |label: &str| values.get(label).map(|values| stat::mean(values));
        let best_of = |wanted: &str| {
            let all = |judged: &Judged| {
                !judged.verdicts.is_empty() && judged.verdicts.iter().all(|verdict| verdict == wanted)
            };
            let candidates = self
                .judged
                .iter()
                .filter(|(_, judged)| all(judged))
                .filter_map(|(label, _)| Some((label, mean(label)?)));
            candidates.min_by(|a, b| if higher_is_better { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) })
        };
        let base_mean = mean(&baseline)?;
        let is_better = |value: f64| if higher_is_better { value > base_mean } else { value < base_mean };
        // A setting is better only if it is better with all seeds. If its mean is better but a
        // verdict is undecided, the setting may be better.
        let better = best_of("better");
        let unsure =
            |judged: &Judged| judged.verdicts.iter().any(|verdict| verdict == "cannot_tell" || verdict == "better");
        let maybe = self
            .judged
            .iter()
            .filter(|(label, judged)| **label != baseline && unsure(judged))
            .filter_map(|(label, _)| Some((label, mean(label)?)))
            .filter(|(_, value)| is_better(*value))
            .min_by(|a, b| if higher_is_better { b.1.total_cmp(&a.1) } else { a.1.total_cmp(&b.1) });
        let (chosen, choice, maybe) = match (better, maybe) {
            (Some((label, _)), _) => (label.clone(), Choice::Better, None),
            (None, Some((label, _))) => (baseline.clone(), Choice::CannotTell, Some(label.clone())),
            // A single run is not enough to decide.
            (None, None) if keys.len() < 2 && self.judged.len() > 1 => (baseline.clone(), Choice::CannotTell, None),
            (None, None) => (baseline.clone(), Choice::NothingBetter, None),
        };
        let percent = mean(&chosen).filter(|_| base_mean != 0.0).map(|mean| (mean / base_mean - 1.0) * 100.0);
        Some(Volume {
            workload,
            device,
            baseline,
            chosen,
            choice,
            maybe,
            percent,
            runs: keys.len(),
            ios: self.ios,
            doubts: self.doubts,
            values,
        })
    }
}
