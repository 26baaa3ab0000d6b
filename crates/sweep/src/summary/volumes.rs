//! Volumes: what each setting does for each, and which it should have.

use std::collections::{BTreeMap, BTreeSet};

use iosched_lab::{Direction, stat};
use serde::Serialize;

use crate::columns::Table;
use crate::error::SweepError;

/// How sure it is which setting a volume should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// A setting is better than the baseline for sure.
    Better,
    /// None is better, or not by what matters.
    NothingBetter,
    /// None is better for sure, and one may be: the baseline stays until that is known.
    CannotTell,
}

impl Choice {
    /// What is said of a setting that volumes should have.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Better => "better for sure",
            Self::NothingBetter => "the baseline: nothing is better",
            Self::CannotTell => "the baseline: cannot tell whether another is better",
        }
    }
}

/// A workload on a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Volume {
    /// The workload, as the plan names it.
    pub workload: String,
    /// Its device.
    pub device: String,
    /// The setting that the others are compared with.
    pub baseline: String,
    /// The setting to choose.
    pub chosen: String,
    /// How sure that is.
    pub choice: Choice,
    /// What may be better where it cannot be told.
    pub maybe: Option<String>,
    /// How much better the chosen setting is than the baseline, in per cent of that (negative: less), in all runs.
    pub percent: Option<f64>,
    /// Runs of each setting.
    pub runs: usize,
    /// I/Os of a run.
    pub ios: u64,
    /// What makes the comparison doubtful.
    pub doubts: Option<String>,
    /// The figure of each run, by setting; runs of one number share a seed.
    #[serde(skip)]
    pub values: BTreeMap<String, Vec<f64>>,
}

pub(super) struct Read {
    pub(super) volumes: Vec<Volume>,
    pub(super) unit: String,
    pub(super) higher_is_better: bool,
    pub(super) without: usize,
}

/// What the verdicts say of a setting of a volume, of each seed.
#[derive(Default)]
struct Judged {
    verdicts: Vec<String>,
    baseline: bool,
}

#[derive(Default)]
struct Gathered {
    /// By setting: value by seed and run.
    values: BTreeMap<String, BTreeMap<(u64, u64), f64>>,
    judged: BTreeMap<String, Judged>,
    ios: u64,
    doubts: Option<String>,
}

fn missing(table: &str, column: &str) -> SweepError {
    SweepError::Summary(format!("the table of {table} has no column {column}, so it is not from a sweep"))
}

/// What a summary is made of, file by file: only what is wanted of each is kept.
#[derive(Default)]
pub struct Gathering {
    figure: String,
    by_volume: BTreeMap<(String, String), Gathered>,
    /// Volumes of any figure.
    seen: BTreeSet<(String, String)>,
    /// Figures that have a good side.
    known: BTreeSet<String>,
    unit: Option<String>,
    better: Option<String>,
}

impl Gathering {
    /// Nothing yet; `figure` is the id of a figure that has a good side, such as `sync_mean`.
    #[must_use]
    pub fn new(figure: &str) -> Self {
        Self { figure: figure.to_owned(), ..Self::default() }
    }

    /// Rows of the table `runs`.
    ///
    /// # Errors
    /// They are none.
    pub fn runs(&mut self, runs: &Table) -> Result<(), SweepError> {
        let text = |name: &str| runs.text(name).ok_or_else(|| missing("runs", name));
        let whole = |name: &str| runs.whole(name).ok_or_else(|| missing("runs", name));
        let (workload, device) = (text("workload")?, text("device")?);
        let (scheduler, figures) = (text("scheduler")?, text("metric")?);
        let (seed, run) = (whole("seed")?, whole("run")?);
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

    /// Rows of the table `verdicts`.
    ///
    /// # Errors
    /// They are none.
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

    /// All volumes that have the figure.
    pub(super) fn volumes(self) -> Result<Read, SweepError> {
        let Self { figure, by_volume, seen, known, unit, better } = self;
        let Some(unit) = unit else {
            let known: Vec<String> = known.into_iter().collect();
            let there_are = known.join(", ");
            return Err(SweepError::Summary(format!("no volume has the metric {figure}; available: {there_are}")));
        };
        let Some(better) = better else {
            let problem = "a high value is neither good nor bad, so this metric cannot choose a setting";
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
        // Of runs that every setting has: they are paired.
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
        // Of several seeds: better in all of them, else it cannot be told; better on the whole and not sure is a
        // perhaps.
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
            // A single run tells nothing.
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
