//! The shares that result from weights: through the levels of cgroups, and in the predicted runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::candidate::Candidate;
use crate::ground::Ground;
use crate::measure::{Observed, UnitRun};

/// Default weight of a cgroup, for io.cost and bfq.
const WEIGHT_DEFAULT: u32 = 100;
/// Up to this weight, `io.bfq.weight` is equal to `IOWeight=`. Above it, systemd writes
/// `100 + (IOWeight - 100) / 11` to `io.bfq.weight`.
const SAME_UP_TO: u32 = 100;
const SYSTEMD_STEP: u32 = 11;

/// Weight of a unit, and the share that results from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EffectiveShare {
    /// Name of the unit.
    pub unit: String,
    /// Weight of the unit's cgroup.
    pub weight: u32,
    /// The value for `IOWeight=`. From this value, systemd computes [`EffectiveShare::weight`] for
    /// the controller in use.
    pub io_weight: u32,
    /// Share of the device's time from the weights of all levels while all units have I/O, 0 to 1.
    pub from_weights: f64,
    /// Predicted share of the bytes while all units have I/O, 0 to 1. If the units never have I/O
    /// at the same time, it is the share of all bytes. This share can differ from the share of the
    /// weights for three reasons: I/Os have different costs, the setting does not enforce weights
    /// strictly, or a unit needs less.
    pub predicted: f64,
}

/// Returns the value of `IOWeight=` for which systemd writes this weight to io.bfq.weight.
pub(crate) const fn io_weight_for_bfq(weight: u32) -> u32 {
    if weight <= SAME_UP_TO { weight } else { SAME_UP_TO + (weight - SAME_UP_TO) * SYSTEMD_STEP }
}

/// Returns the shares that result from a candidate's weights; empty if weights have no effect.
pub(crate) fn effective_shares(ground: &Ground<'_>, candidate: &Candidate, runs: &[Observed]) -> Vec<EffectiveShare> {
    if !candidate.uses_weights() || candidate.units.iter().all(|unit| unit.weight.is_none()) {
        return Vec::new();
    }
    let units = &ground.intents.units;
    let weight = |unit: usize| candidate.units[unit].weight.unwrap_or(WEIGHT_DEFAULT);
    let paths: Vec<(String, u32)> =
        units.iter().enumerate().map(|(number, unit)| (unit.cgroup_path(), weight(number))).collect();
    let shares = shares_of(&paths);
    let predicted = predicted_shares(runs, units.len());
    let effective_share = |(number, share): (usize, f64)| {
        let is_bfq = candidate.cost_us.is_none();
        EffectiveShare {
            unit: units[number].name.clone(),
            weight: weight(number),
            io_weight: if is_bfq { io_weight_for_bfq(weight(number)) } else { weight(number) },
            from_weights: share,
            predicted: predicted[number],
        }
    };
    shares.into_iter().enumerate().map(effective_share).collect()
}

/// Returns each unit's share of the bytes while all units have I/O. If the units never have I/O at
/// the same time, returns the shares of all bytes.
fn predicted_shares(runs: &[Observed], units: usize) -> Vec<f64> {
    let sums = |bytes: fn(&UnitRun) -> u64| -> Vec<f64> {
        (0..units).map(|unit| runs.iter().map(|run| bytes(&run.units[unit]) as f64).sum()).collect()
    };
    let contended = sums(|unit| unit.contended_bytes);
    let moved = if contended.iter().sum::<f64>() > 0.0 { contended } else { sums(UnitRun::bytes) };
    let all: f64 = moved.iter().sum();
    moved.into_iter().map(|bytes| if all > 0.0 { bytes / all } else { 0.0 }).collect()
}

/// Returns the share of each cgroup while all cgroups of the list have I/O. Each entry of the list
/// is a path and a weight. A parent that is not in the list has the default weight.
fn shares_of(cgroups: &[(String, u32)]) -> Vec<f64> {
    let mut weights: BTreeMap<&str, u32> = BTreeMap::new();
    for (path, weight) in cgroups {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends {
            weights.entry(&path[..end]).or_insert(WEIGHT_DEFAULT);
        }
        weights.insert(path, *weight);
    }
    let parent = |path: &str| path.rfind('/').map_or(String::new(), |at| path[..at].to_owned());
    let level = |path: &str| {
        let siblings = weights.iter().filter(|(other, _)| parent(other) == parent(path));
        let all: u32 = siblings.map(|(_, weight)| weight).sum();
        f64::from(weights.get(path).copied().unwrap_or(WEIGHT_DEFAULT)) / f64::from(all.max(1))
    };
    let share = |path: &str| {
        let above = path.match_indices('/').map(|(at, _)| level(&path[..at]));
        above.product::<f64>() * level(path)
    };
    cgroups.iter().map(|(path, _)| share(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_nested_cgroups_multiply() {
        let of = |list: &[(&str, u32)]| {
            shares_of(&list.iter().map(|(path, weight)| ((*path).to_owned(), *weight)).collect::<Vec<_>>())
        };
        assert_eq!(of(&[("a", 300), ("b", 100)]), [0.75, 0.25]);
        // The two units of one slice share one half, because both slices have the default weight.
        assert_eq!(of(&[("x.slice/a", 300), ("x.slice/b", 100), ("y.slice/c", 500)]), [0.375, 0.125, 0.5]);
    }

    #[test]
    fn predicted_share_uses_bytes_moved_while_all_units_have_io() {
        let run = |units: &[(u64, u64)]| Observed {
            units: units.iter().map(|&(contended, all)| UnitRun::with_bytes(contended, all)).collect(),
            seconds: 1.0,
        };
        assert_eq!(predicted_shares(&[run(&[(300, 300), (100, 900)])], 2), [0.75, 0.25]);
        assert_eq!(predicted_shares(&[run(&[(0, 300), (0, 900)])], 2), [0.25, 0.75]);
        assert_eq!(predicted_shares(&[run(&[(0, 0), (0, 0)])], 2), [0.0, 0.0]);
    }

    #[test]
    fn systemd_needs_larger_weights_for_bfq() {
        assert_eq!([50, 100, 101, 1000].map(io_weight_for_bfq), [50, 100, 111, 10_000]);
    }
}
