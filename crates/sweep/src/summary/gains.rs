//! What a fleet gains: chosen by one half of the runs, judged by the other, and the other way round.

use std::collections::BTreeMap;

use iosched_lab::{SIGNIFICANCE, marked, significant, stat};
use serde::Serialize;

use super::volumes::Volume;

/// How settings are chosen for a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// One setting for all volumes.
    Common,
    /// One for the volumes of each device.
    PerDevice,
    /// One for each volume.
    PerVolume,
}

impl Strategy {
    /// As it is called in sentences.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Common => "one setting for all",
            Self::PerDevice => "one for each device",
            Self::PerVolume => "one for each volume",
        }
    }
}

/// What is gained against the baseline, in per cent of it: negative is less of the figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// How settings are chosen.
    pub strategy: Strategy,
    /// By what is chosen for: a device's name, or nothing for all volumes. What all runs together choose; empty for
    /// each volume.
    pub settings: BTreeMap<String, String>,
    /// Of a typical volume: the geometric mean over volumes.
    pub percent: f64,
    /// Its 95 % interval over volumes; `None` of fewer than two.
    pub interval: Option<(f64, f64)>,
    /// Of the fleet's total, in which volumes count by their I/Os.
    pub total_percent: Option<f64>,
    /// Whether less of the figure is good, so that less is a gain.
    pub is_gain: bool,
    /// Volumes it rests on.
    pub volumes: usize,
}

impl Gain {
    /// "One setting for all (`bfq`): 12 % less (9 to 15 %), of the total 8 % less."
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut words = self.strategy.words().to_owned();
        words[..1].make_ascii_uppercase();
        let settings = match (self.strategy, self.settings.len()) {
            (Strategy::PerVolume, _) => String::new(),
            (_, 0) => String::new(),
            (Strategy::Common, _) => {
                format!(" ({})", self.settings.values().next().map_or_else(String::new, |setting| marked(setting)))
            }
            _ => {
                let each = self.settings.iter().map(|(device, label)| format!("{} on {device}", marked(label)));
                format!(" ({})", each.collect::<Vec<_>>().join(", "))
            }
        };
        let total = self
            .total_percent
            .map_or_else(String::new, |percent| format!(", of the total {}", signed_percent(percent)));
        format!("{words}{settings}: {}{}{total}.", signed_percent(self.percent), between(self.interval))
    }
}

/// "12 % less".
pub(super) fn signed_percent(percent: f64) -> String {
    let shown = significant(percent.abs(), 2);
    match percent {
        _ if percent.abs() < 0.005 => "the same".to_owned(),
        _ if percent < 0.0 => format!("{shown} % less"),
        _ => format!("{shown} % more"),
    }
}

/// " (9 to 15 %)", of the same sign or with signs.
pub(super) fn between(interval: Option<(f64, f64)>) -> String {
    let Some((low, high)) = interval else { return String::new() };
    if low.signum() == high.signum() {
        let (near, far) = (low.abs().min(high.abs()), low.abs().max(high.abs()));
        return format!(" ({} to {} %)", significant(near, 2), significant(far, 2));
    }
    let signed = |value: f64| {
        let shown = significant(value.abs(), 2);
        if value < 0.0 { format!("-{shown}") } else { format!("+{shown}") }
    };
    format!(" ({} to {} %)", signed(low), signed(high))
}

/// A half of the runs.
#[derive(Clone, Copy)]
enum Half {
    Even,
    Odd,
    Both,
}

impl Half {
    fn mean(self, values: &[f64]) -> f64 {
        let values: Vec<f64> = match self {
            Self::Even => values.iter().step_by(2).copied().collect(),
            Self::Odd => values.iter().skip(1).step_by(2).copied().collect(),
            Self::Both => values.to_vec(),
        };
        stat::mean(&values)
    }
}

/// The logarithm of a setting's figure over the baseline's.
fn ratio(volume: &Volume, label: &str, half: Half) -> Option<f64> {
    let mean = half.mean(volume.values.get(label)?);
    let base = half.mean(volume.values.get(&volume.baseline)?);
    (mean > 0.0 && base > 0.0).then(|| (mean / base).ln())
}

/// Of several volumes, the setting that all of them have with the best mean of ratios.
fn best<'a>(volumes: &[&'a Volume], half: Half, higher_is_better: bool) -> Option<&'a str> {
    let first = volumes.first()?;
    let labels = first.values.keys().filter(|label| volumes.iter().all(|volume| volume.values.contains_key(*label)));
    let mean = |label: &String| {
        let all: Option<Vec<f64>> = volumes.iter().map(|volume| ratio(volume, label, half)).collect();
        all.map(|all| stat::mean(&all))
    };
    let rated = labels.filter_map(|label| Some((label.as_str(), mean(label)?)));
    let better = |a: f64, b: f64| if higher_is_better { b.total_cmp(&a) } else { a.total_cmp(&b) };
    // Of equal ones the baseline.
    rated.min_by(|a, b| better(a.1, b.1).then((a.0 != first.baseline).cmp(&(b.0 != first.baseline)))).map(|rate| rate.0)
}

pub(super) fn all(volumes: &[Volume], higher_is_better: bool) -> Vec<Gain> {
    // What is chosen by one half is judged by the other.
    let judged: Vec<&Volume> = volumes
        .iter()
        .filter(|volume| volume.runs >= 2)
        .filter(|volume| volume.values.values().all(|values| values.iter().all(|&value| value > 0.0)))
        .collect();
    let strategies = [Strategy::Common, Strategy::PerDevice, Strategy::PerVolume];
    strategies.into_iter().filter_map(|strategy| gain(strategy, &judged, higher_is_better)).collect()
}

/// The volumes for which one setting is chosen, by what they are called.
fn groups<'a>(strategy: Strategy, volumes: &[&'a Volume]) -> BTreeMap<String, Vec<&'a Volume>> {
    let mut all: BTreeMap<String, Vec<&Volume>> = BTreeMap::new();
    for (number, volume) in volumes.iter().enumerate() {
        let key = match strategy {
            Strategy::Common => String::new(),
            Strategy::PerDevice => volume.device.clone(),
            Strategy::PerVolume => format!("{number:08}"),
        };
        all.entry(key).or_default().push(volume);
    }
    all
}

fn gain(strategy: Strategy, volumes: &[&Volume], higher_is_better: bool) -> Option<Gain> {
    let groups = groups(strategy, volumes);
    let mut ratios = Vec::new();
    let (mut total, mut base_total) = (0.0, 0.0);
    let mut settings = BTreeMap::new();
    for (key, volumes) in &groups {
        if strategy != Strategy::PerVolume {
            settings.insert(key.clone(), best(volumes, Half::Both, higher_is_better)?.to_owned());
        }
        let chosen = [(Half::Even, Half::Odd), (Half::Odd, Half::Even)]
            .map(|(by, judged_by)| Some((best(volumes, by, higher_is_better)?, judged_by)));
        for volume in volumes {
            let folds = chosen.iter().flatten().filter_map(|(label, by)| ratio(volume, label, *by));
            let folds: Vec<f64> = folds.collect();
            if folds.is_empty() {
                continue;
            }
            let mean = stat::mean(&folds);
            ratios.push(mean);
            let weight = volume.ios as f64;
            let base = Half::Both.mean(volume.values.get(&volume.baseline)?);
            base_total += weight * base;
            total += weight * base * mean.exp();
        }
    }
    if ratios.is_empty() {
        return None;
    }
    let percent = |log: f64| (log.exp() - 1.0) * 100.0;
    let zeroes = vec![0.0; ratios.len()];
    let interval = stat::paired(&ratios, &zeroes).map(|found| found.interval(SIGNIFICANCE));
    let mean = stat::mean(&ratios);
    Some(Gain {
        strategy,
        settings,
        percent: percent(mean),
        interval: interval.map(|(low, high)| (percent(low), percent(high))),
        total_percent: (base_total > 0.0).then(|| (total / base_total - 1.0) * 100.0),
        is_gain: (mean < 0.0) != higher_is_better,
        volumes: ratios.len(),
    })
}
