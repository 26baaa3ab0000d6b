//! Overview of several devices: the winner on each device, its lead, and a setting that is good on
//! all devices.
//!
//! Metrics of different devices are never compared. A setting wins on a device against the other
//! settings on the same device. The overview is computed from the results of each device. The
//! results are computed from records alone.

use serde::Serialize;

use crate::Direction;
use crate::compare::{Comparison, Verdict};
use crate::decide::{Decision, several};
use crate::doubt::Doubt;
use crate::figure::Figure;
use crate::record::{OnDevice, Records};
use crate::results::{FigureResults, Results, SettingFigure, figures_of};

/// Lead of the best setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// Index of the best setting in [`Header::settings`](crate::Header::settings).
    pub setting: usize,
    /// Index of the setting with which `setting` is compared: usually the baseline. If `setting` is
    /// the baseline, it is compared with the best of the worse settings.
    pub than: usize,
    /// Comparison of `setting` with `than`.
    pub comparison: Comparison,
}

/// Winner for one metric on one device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Some settings are certainly better than the baseline. Or all settings that are not equal to
    /// the baseline are certainly worse than the baseline.
    Best {
        /// Indices of the best settings.
        settings: Vec<usize>,
        /// Lead of the best of these settings.
        margin: Box<Margin>,
    },
    /// All settings are equal.
    Equal,
    /// No setting is better than the baseline. It is not clear whether some settings are worse.
    NothingBetter,
    /// It is not clear whether another setting is better than the baseline.
    CannotTell {
        /// Number of runs of each setting that would decide; `None` if no number would.
        runs_needed: Option<u32>,
    },
    /// The device was idle nearly all the time, so no best setting is named.
    Idle,
    /// There are too few runs, only one setting, no such metric on the device, or too few I/Os for
    /// the metric.
    Unknown,
}

/// Winners for one metric on all devices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FigureOverview {
    /// The metric.
    pub figure: Figure,
    /// Name of the metric for display, see [`Figure::label`].
    pub label: String,
    /// Winner on each device, in the order of the devices of the header.
    pub devices: Vec<Outcome>,
    /// Indices of the settings that are certainly among the best on every device. Devices without a
    /// best setting do not count. If no device has a best setting, the list contains all settings.
    pub everywhere: Vec<usize>,
    /// Indices of settings that a user cannot choose in Linux. On at least one device, each of them
    /// is certainly better than all settings that a user can choose.
    pub served: Vec<usize>,
}

/// Overview of the results of several devices.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Overview {
    /// Headline metrics that at least one device has.
    pub figures: Vec<FigureOverview>,
    /// Doubts that all devices share, in the order in which the first device has them.
    pub shared_doubts: Vec<Doubt>,
    /// Setting to use on each device, in sentences. The first sentences are about all devices. Each
    /// of the other sentences is about one device.
    pub sentences: Vec<String>,
    /// Deciding metric and number of runs, in sentences.
    pub judged: Option<String>,
}

impl Overview {
    /// Computes the overview of `records` from the results of each device, in order.
    #[must_use]
    pub fn of(records: &Records, devices: &[Results]) -> Self {
        let shared = |doubt: &&Doubt| devices.iter().all(|results| results.doubts.contains(doubt));
        let first = devices.first().map_or(&[] as &[Doubt], |results| &results.doubts);
        let names: Vec<&str> = records.header.devices.iter().map(|device| device.name.as_str()).collect();
        let labels: Vec<String> = records.header.settings.iter().map(|setting| setting.label.clone()).collect();
        let decisions: Vec<&Decision> = devices.iter().map(|results| &results.decision).collect();
        Self {
            sentences: several(&names, &labels, records.header.baseline, &decisions),
            judged: decisions.iter().find_map(|decision| decision.judged.clone()),
            figures: figures_of(devices).into_iter().filter_map(|figure| overview(records, devices, figure)).collect(),
            shared_doubts: first.iter().filter(shared).cloned().collect(),
        }
    }

    /// Returns the doubts of a device that at least one other device does not share.
    pub fn own_doubts<'a>(&'a self, results: &'a Results) -> impl Iterator<Item = &'a Doubt> {
        results.doubts.iter().filter(|doubt| !self.shared_doubts.contains(doubt))
    }
}

/// Returns the displayed name of a metric for several devices. The name has the prefix "device" if
/// it has this prefix on at least one device.
pub fn label_on<'r>(devices: impl IntoIterator<Item = &'r Results>, figure: Figure) -> String {
    let labels = devices.into_iter().map(|results| results.label(figure));
    labels.max_by_key(String::len).unwrap_or_else(|| figure.name().to_owned())
}

/// Returns the winners for one metric; `None` if nothing is known of the metric on any device.
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

/// Returns the winner on one device. The winner follows from the verdicts against the baseline.
/// Tables and decisions show the same verdicts.
fn outcome(device: OnDevice<'_>, results: &Results, figure: Figure) -> Outcome {
    let header = device.header();
    if header.settings.len() < 2 || results.rounds < 2 {
        return Outcome::Unknown;
    }
    if results.answer.idle_percent.is_some() {
        return Outcome::Idle;
    }
    let Some(all) = results.figure(figure).filter(|results| results.concludes()) else { return Outcome::Unknown };
    let found = |setting: usize| all.settings[setting].as_ref().and_then(|figure| figure.comparison);
    let compared: Vec<(usize, Comparison)> =
        (0..all.settings.len()).filter_map(|setting| Some((setting, found(setting)?))).collect();
    let devices_with = |verdict: Verdict| {
        compared.iter().filter(move |(_, comparison)| comparison.verdict == verdict).map(|(setting, _)| *setting)
    };
    let can_be_set = |setting: &usize| results.answer.served_only || device.can_be_set(*setting);
    let better: Vec<usize> = devices_with(Verdict::Better).filter(can_be_set).collect();
    let margin = |setting: usize, than: usize| {
        Box::new(Margin { setting, than, comparison: all.between(device, setting, than) })
    };
    if let Some(leader) = leading(all, better.iter().copied()) {
        return Outcome::Best { margin: margin(leader, header.baseline), settings: better };
    }
    if compared.is_empty() {
        return Outcome::Unknown;
    }
    if compared.iter().all(|(_, comparison)| comparison.verdict == Verdict::Equal) {
        return Outcome::Equal;
    }
    let open = compared.iter().filter(|(setting, _)| can_be_set(setting));
    let open: Vec<&Comparison> = open
        .map(|(_, comparison)| comparison)
        .filter(|comparison| comparison.may_be_better(figure.direction()))
        .collect();
    if !open.is_empty() {
        let runs = open.iter().map(|comparison| comparison.runs_needed).collect::<Option<Vec<u32>>>();
        return Outcome::CannotTell { runs_needed: runs.and_then(|all| all.into_iter().max()) };
    }
    let mut settings: Vec<usize> = devices_with(Verdict::Equal).filter(can_be_set).chain([header.baseline]).collect();
    settings.sort_unstable();
    match leading(all, devices_with(Verdict::Worse)) {
        Some(next) => Outcome::Best { margin: margin(header.baseline, next), settings },
        None => Outcome::NothingBetter,
    }
}

/// Returns the setting with the best mean.
fn leading(all: &FigureResults, settings: impl Iterator<Item = usize>) -> Option<usize> {
    let having = |setting: usize| Some((setting, all.settings.get(setting)?.as_ref()?));
    let best = settings.filter_map(having).min_by(|a: &(usize, &SettingFigure), b| match all.figure.direction() {
        Direction::Higher => b.1.mean.total_cmp(&a.1.mean),
        _ => a.1.mean.total_cmp(&b.1.mean),
    });
    best.map(|(setting, _)| setting)
}
