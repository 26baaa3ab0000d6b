//! What several devices say together: which setting wins where, by how much, and which is safe everywhere.
//!
//! Devices are never compared with each other's figures here: a setting wins on a device against the other settings on
//! the same device. Computed from the results of each device, and so from records alone.

use serde::Serialize;

use crate::Direction;
use crate::compare::Comparison;
use crate::decide::{Decision, several};
use crate::doubt::Doubt;
use crate::figure::Figure;
use crate::record::{OnDevice, Records};
use crate::results::{FigureResults, Results, SettingFigure, figures_of};

/// How far the best setting is ahead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// The setting of the best mean, its number in [`Header::settings`].
    pub setting: usize,
    /// The setting it is compared with: the baseline, or the next best where the baseline is among the best.
    pub than: usize,
    /// `setting` against `than`.
    pub comparison: Comparison,
}

/// Who wins in one figure on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Some settings are better than the others for sure.
    Best {
        /// Their numbers.
        settings: Vec<usize>,
        /// Whether they are known to be equal, or there is one; else it cannot be told which of them is the best.
        told: bool,
        /// By how much.
        margin: Box<Margin>,
    },
    /// All settings are equal.
    Equal,
    /// Which is best cannot be told.
    CannotTell {
        /// Runs of each setting that would tell; `None` if no number would.
        runs_needed: Option<u32>,
    },
    /// The device was idle nearly all the time: no best is named.
    Idle,
    /// Too few runs, one setting, or a figure that the device does not have or that rests on too few I/Os.
    Unknown,
}

/// One figure on all devices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureOverview {
    /// Which.
    pub figure: Figure,
    /// Who wins, in the order of [`Header::devices`].
    pub devices: Vec<Outcome>,
    /// Numbers of the settings that are among the best, for sure, on every device where some are; all of them if
    /// there is no such device.
    pub everywhere: Vec<usize>,
    /// Numbers of settings that a user cannot set, and that are better for sure on some device than all others.
    pub served: Vec<usize>,
}

/// What several devices say together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overview {
    /// The headline figures that at least one device has.
    pub figures: Vec<FigureOverview>,
    /// Doubts that every device shares, in the order of the first.
    pub shared_doubts: Vec<Doubt>,
    /// What to use where, in sentences: of all devices, then of each, then how it was judged.
    pub sentences: Vec<String>,
}

impl Overview {
    /// Computes it from the results of each device of `records`, in their order.
    #[must_use]
    pub fn of(records: &Records, devices: &[Results]) -> Self {
        let shared = |doubt: &&Doubt| devices.iter().all(|results| results.doubts.contains(doubt));
        let first = devices.first().map_or(&[] as &[Doubt], |results| &results.doubts);
        let names: Vec<&str> = records.header.devices.iter().map(|own| own.name.as_str()).collect();
        let labels: Vec<String> = records.header.settings.iter().map(|own| own.label.clone()).collect();
        let decisions: Vec<&Decision> = devices.iter().map(|own| &own.decision).collect();
        Self {
            sentences: several(&names, &labels, records.header.baseline, &decisions),
            figures: figures_of(devices).into_iter().filter_map(|figure| overview(records, devices, figure)).collect(),
            shared_doubts: first.iter().filter(shared).cloned().collect(),
        }
    }

    /// Doubts of a device that not every device shares.
    pub fn own_doubts<'a>(&'a self, results: &'a Results) -> impl Iterator<Item = &'a Doubt> {
        results.doubts.iter().filter(|doubt| !self.shared_doubts.contains(doubt))
    }
}

/// `None` if nothing is known of the figure on any device.
fn overview(records: &Records, devices: &[Results], figure: Figure) -> Option<FigureOverview> {
    let outcomes: Vec<Outcome> =
        records.devices().zip(devices).map(|(device, results)| outcome(device, results, figure)).collect();
    let mut everywhere: Vec<usize> = (0..records.header.settings.len()).collect();
    for outcome in &outcomes {
        if let Outcome::Best { settings, .. } = outcome {
            everywhere.retain(|setting| settings.contains(setting));
        }
    }
    let known = outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Unknown | Outcome::Idle));
    let groups = devices.iter().flat_map(|results| &results.answer.served);
    let mut served: Vec<usize> =
        groups.filter(|group| group.figures.contains(&figure)).flat_map(|group| group.settings.clone()).collect();
    served.sort_unstable();
    served.dedup();
    known.then_some(FigureOverview { figure, devices: outcomes, everywhere, served })
}

fn outcome(device: OnDevice<'_>, results: &Results, figure: Figure) -> Outcome {
    if device.header().settings.len() < 2 || results.rounds < 2 {
        return Outcome::Unknown;
    }
    let answer = &results.answer;
    if answer.idle_percent.is_some() {
        return Outcome::Idle;
    }
    if answer.equal.contains(&figure) {
        return Outcome::Equal;
    }
    if let Some(open) = answer.open.as_ref().filter(|open| open.figures.contains(&figure)) {
        return Outcome::CannotTell { runs_needed: open.runs_needed };
    }
    let group = answer.best.iter().find(|group| group.figures.contains(&figure));
    let (Some(group), Some(all)) = (group, results.figure(figure)) else { return Outcome::Unknown };
    match margin(device, all, &group.settings) {
        Some(margin) => Outcome::Best { settings: group.settings.clone(), told: group.told, margin: Box::new(margin) },
        None => Outcome::Unknown,
    }
}

fn margin(device: OnDevice<'_>, all: &FigureResults, best: &[usize]) -> Option<Margin> {
    let header = device.header();
    let having = |setting: usize| Some((setting, all.settings.get(setting)?.as_ref()?));
    let leading = |settings: &mut dyn Iterator<Item = usize>| {
        settings.filter_map(having).min_by(|a: &(usize, &SettingFigure), b| match all.figure.direction() {
            Direction::Higher => b.1.mean.total_cmp(&a.1.mean),
            _ => a.1.mean.total_cmp(&b.1.mean),
        })
    };
    let (setting, _) = leading(&mut best.iter().copied())?;
    let baseline = having(header.baseline).filter(|_| !best.contains(&header.baseline));
    let next = || leading(&mut (0..all.settings.len()).filter(|setting| !best.contains(setting)));
    let (than, _) = baseline.or_else(next)?;
    Some(Margin { setting, than, comparison: all.between(device, setting, than) })
}
