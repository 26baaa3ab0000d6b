//! What several devices say together: which setting wins where, by how much, and which is safe everywhere.
//!
//! Devices are never compared with each other's figures here: a setting wins on a device against the other settings on
//! the same device. Computed from the results of each device, and so from records alone.

use serde::Serialize;

use crate::Direction;
use crate::compare::{Comparison, Verdict};
use crate::decide::{Decision, several};
use crate::doubt::Doubt;
use crate::figure::Figure;
use crate::record::{OnDevice, Records};
use crate::results::{FigureResults, Results, SettingFigure, figures_of};

/// How far the best setting is ahead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// The setting of the best mean, its number in [`Header::settings`](crate::Header::settings).
    pub setting: usize,
    /// The setting it is compared with: the baseline, or, if that is the setting, the best of the worse ones.
    pub than: usize,
    /// `setting` against `than`.
    pub comparison: Comparison,
}

/// Who wins in one figure on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Some settings are better than the baseline for sure; or the baseline and its equals are better than the others.
    Best {
        /// Their numbers.
        settings: Vec<usize>,
        /// By how much.
        margin: Box<Margin>,
    },
    /// All settings are equal.
    Equal,
    /// Nothing is better than the baseline; whether others are worse cannot be told.
    NothingBetter,
    /// Whether another setting is better than the baseline cannot be told.
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
    /// Its name for people, see [`Figure::label`].
    pub label: String,
    /// Who wins, in the order of the devices of the header.
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
    /// What to use where, in sentences: of all devices, then of each.
    pub sentences: Vec<String>,
    /// By which metric and how many runs it was judged, in sentences.
    pub judged: Option<String>,
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
            judged: decisions.iter().find_map(|own| own.judged.clone()),
            figures: figures_of(devices).into_iter().filter_map(|figure| overview(records, devices, figure)).collect(),
            shared_doubts: first.iter().filter(shared).cloned().collect(),
        }
    }

    /// Doubts of a device that not every device shares.
    pub fn own_doubts<'a>(&'a self, results: &'a Results) -> impl Iterator<Item = &'a Doubt> {
        results.doubts.iter().filter(|doubt| !self.shared_doubts.contains(doubt))
    }
}

/// The name of a figure on several devices, for people: one that is beside metrics of parts on some device says so.
pub fn label_on<'r>(devices: impl IntoIterator<Item = &'r Results>, figure: Figure) -> String {
    let labels = devices.into_iter().map(|results| results.label(figure));
    labels.max_by_key(String::len).unwrap_or_else(|| figure.name().to_owned())
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
    let label = label_on(devices, figure);
    known.then_some(FigureOverview { figure, label, devices: outcomes, everywhere, served })
}

/// From the verdicts against the baseline, which tables and decisions show too.
fn outcome(device: OnDevice<'_>, results: &Results, figure: Figure) -> Outcome {
    let header = device.header();
    if header.settings.len() < 2 || results.rounds < 2 {
        return Outcome::Unknown;
    }
    if results.answer.idle_percent.is_some() {
        return Outcome::Idle;
    }
    let Some(all) = results.figure(figure).filter(|own| own.concludes()) else { return Outcome::Unknown };
    let found = |setting: usize| all.settings[setting].as_ref().and_then(|own| own.comparison);
    let compared: Vec<(usize, Comparison)> =
        (0..all.settings.len()).filter_map(|setting| Some((setting, found(setting)?))).collect();
    let of = |verdict: Verdict| compared.iter().filter(move |(_, own)| own.verdict == verdict).map(|(own, _)| *own);
    let can_be_set = |setting: &usize| results.answer.served_only || device.can_be_set(*setting);
    let better: Vec<usize> = of(Verdict::Better).filter(can_be_set).collect();
    let margin = |setting: usize, than: usize| {
        Box::new(Margin { setting, than, comparison: all.between(device, setting, than) })
    };
    if let Some(leader) = leading(all, better.iter().copied()) {
        return Outcome::Best { margin: margin(leader, header.baseline), settings: better };
    }
    if compared.is_empty() {
        return Outcome::Unknown;
    }
    if compared.iter().all(|(_, own)| own.verdict == Verdict::Equal) {
        return Outcome::Equal;
    }
    let open = compared.iter().filter(|(own, _)| can_be_set(own));
    let open: Vec<&Comparison> = open.map(|(_, own)| own).filter(|own| own.may_be_better(figure.direction())).collect();
    if !open.is_empty() {
        let runs = open.iter().map(|own| own.runs_needed).collect::<Option<Vec<u32>>>();
        return Outcome::CannotTell { runs_needed: runs.and_then(|all| all.into_iter().max()) };
    }
    let mut settings: Vec<usize> = of(Verdict::Equal).filter(can_be_set).chain([header.baseline]).collect();
    settings.sort_unstable();
    match leading(all, of(Verdict::Worse)) {
        Some(next) => Outcome::Best { margin: margin(header.baseline, next), settings },
        None => Outcome::NothingBetter,
    }
}

/// The setting of the best mean.
fn leading(all: &FigureResults, settings: impl Iterator<Item = usize>) -> Option<usize> {
    let having = |setting: usize| Some((setting, all.settings.get(setting)?.as_ref()?));
    let best = settings.filter_map(having).min_by(|a: &(usize, &SettingFigure), b| match all.figure.direction() {
        Direction::Higher => b.1.mean.total_cmp(&a.1.mean),
        _ => a.1.mean.total_cmp(&b.1.mean),
    });
    best.map(|(setting, _)| setting)
}
