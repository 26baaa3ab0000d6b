//! Gains of a fleet, by cross-validation. One half of the runs chooses settings, and the other half
//! judges them. Then the two halves change roles.

use std::collections::BTreeMap;

use iosched_lab::{SIGNIFICANCE, marked, significant, stat};
use serde::Serialize;

use super::volumes::Volume;

/// Strategy for the choice of settings for a fleet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// One setting for all volumes.
    Common,
    /// One setting for the volumes of each device.
    PerDevice,
    /// One setting for each volume.
    PerVolume,
}

impl Strategy {
    /// Returns the strategy in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Common => "one setting for all",
            Self::PerDevice => "one setting for each device",
            Self::PerVolume => "one setting for each volume",
        }
    }
}

/// Change of a metric against the baseline, per cent of the baseline. A negative value is a
/// decrease.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gain {
    /// Strategy for the choice of settings.
    pub strategy: Strategy,
    /// Settings that all runs together choose. The key is the name of the device, or an empty text
    /// for all volumes. The map is empty if each volume has a separate setting.
    pub settings: BTreeMap<String, String>,
    /// Change of a typical volume, per cent: geometric mean over the volumes.
    pub percent: f64,
    /// 95 % interval of the change over the volumes, per cent. `None` for fewer than two volumes.
    pub interval: Option<(f64, f64)>,
    /// Change of the fleet's total, per cent. The weight of a volume is its number of I/Os.
    pub total_percent: Option<f64>,
    /// Whether the change is an improvement.
    pub is_gain: bool,
    /// Number of volumes that the values are based on.
    pub volumes: usize,
}

impl Gain {
    /// Returns whether neither a typical volume nor the total changes.
    #[must_use]
    pub fn is_same(&self) -> bool {
        is_same(self.percent) && self.total_percent.is_none_or(is_same)
    }

    /// Returns a sentence about a metric: "With one setting for all (`bfq`), the mean
    /// latency of sync I/O is 12 % less (9 to 15 %) on a typical volume and 8 % less in total."
    #[must_use]
    pub fn sentence(&self, metric: &str) -> String {
        let words = self.strategy.words();
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
        let total =
            self.total_percent.map_or_else(String::new, |percent| format!(" and {} in total", signed_percent(percent)));
        let typical = format!("{}{}", signed_percent(self.percent), between(self.interval));
        format!("With {words}{settings}, {metric} is {typical} on a typical volume{total}.")
    }
}

/// Returns whether a change in per cent is too small to be shown.
fn is_same(percent: f64) -> bool {
    percent.abs() < 0.005
}

/// Returns a change in words, such as "12 % less".
pub(super) fn signed_percent(percent: f64) -> String {
    let shown = significant(percent.abs(), 2);
    match percent {
        _ if is_same(percent) => "the same".to_owned(),
        _ if percent < 0.0 => format!("{shown} % less"),
        _ => format!("{shown} % more"),
    }
}

/// Returns an interval in parentheses, such as " (9 to 15 %)". It has signs only if the signs of
/// the two ends differ.
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

/// The part of the runs that chooses or judges settings.
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

/// Returns the logarithm of the ratio of a setting's metric to the baseline's.
fn ratio(volume: &Volume, label: &str, half: Half) -> Option<f64> {
    let mean = half.mean(volume.values.get(label)?);
    let base = half.mean(volume.values.get(&volume.baseline)?);
    (mean > 0.0 && base > 0.0).then(|| (mean / base).ln())
}

/// Returns the setting with the best mean ratio, among the settings that all volumes have.
fn best<'a>(volumes: &[&'a Volume], half: Half, higher_is_better: bool) -> Option<&'a str> {
    let first = volumes.first()?;
    let labels = first.values.keys().filter(|label| volumes.iter().all(|volume| volume.values.contains_key(*label)));
    let mean = |label: &String| {
        let all: Option<Vec<f64>> = volumes.iter().map(|volume| ratio(volume, label, half)).collect();
        all.map(|all| stat::mean(&all))
    };
    let rated = labels.filter_map(|label| Some((label.as_str(), mean(label)?)));
    let better = |a: f64, b: f64| if higher_is_better { b.total_cmp(&a) } else { a.total_cmp(&b) };
    // If settings are equal, the baseline is chosen.
    rated.min_by(|a, b| better(a.1, b.1).then((a.0 != first.baseline).cmp(&(b.0 != first.baseline)))).map(|rate| rate.0)
}

pub(super) fn all(volumes: &[Volume], higher_is_better: bool) -> Vec<Gain> {
    // Each half of the runs needs at least one run.
    let judged: Vec<&Volume> = volumes
        .iter()
        .filter(|volume| volume.runs >= 2)
        .filter(|volume| volume.values.values().all(|values| values.iter().all(|&value| value > 0.0)))
        .collect();
    let strategies = [Strategy::Common, Strategy::PerDevice, Strategy::PerVolume];
    strategies.into_iter().filter_map(|strategy| gain(strategy, &judged, higher_is_better)).collect()
}

/// Returns groups of volumes. All volumes of a group get the same setting.
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
