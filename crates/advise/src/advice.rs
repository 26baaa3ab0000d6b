//! Advice for a real device: what a search in simulation proposes, confirmed on the device itself.

use iosched::Setting;
use iosched_kernel::settings::{OfControllers, Recorded};
use iosched_lab::{Comparison, Doubt};
use serde::Serialize;

use crate::confirm::Confirmed;
use crate::tune::{Finding, Standing, TuneResults};

/// What is advised, and why.
#[derive(Clone, Debug, Serialize)]
pub struct Advice<'a> {
    /// What was set, as one would ask for it.
    pub present: String,
    /// Whether the model that was searched on fits the device; `None` if it was given and not measured.
    pub model_fits: Option<bool>,
    /// What the search in simulation says, against what was set.
    pub predicted: TuneResults<'a>,
    /// What runs on the device say, against what was set.
    pub measured: TuneResults<'a>,
    /// Settings that were confirmed on the device, but for the present one: what was predicted of them and what was
    /// measured.
    pub predictions: Vec<Prediction>,
    /// Tasks that starve under what is advised, in sentences: who pays.
    pub starved: Vec<String>,
    /// What else is doubtful of the runs on the device, in sentences.
    pub reservations: Vec<String>,
    /// All doubts of the runs on the device.
    #[serde(skip)]
    pub device_doubts: Vec<Doubt>,
}

/// What was predicted of a setting, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// The setting.
    pub label: String,
    /// By goal, against what was set; `None` where it was not confirmed in simulation.
    pub predicted: Vec<Option<Comparison>>,
    /// Likewise on the device.
    pub measured: Vec<Option<Comparison>>,
}

impl<'a> Advice<'a> {
    /// Of a search in simulation and of what was confirmed on the device.
    #[must_use]
    pub fn of(present: String, model_fits: Option<bool>, predicted: TuneResults<'a>, confirmed: &'a Confirmed) -> Self {
        let measured = confirmed.results();
        let goals = measured.header.goals;
        let comparisons = |standing: &Standing| -> Vec<Option<Comparison>> {
            standing.figures[..goals].iter().map(|figure| figure.as_ref()?.comparison).collect()
        };
        let prediction = |standing: &Standing| {
            let own = predicted.standings.iter().find(|own| own.label == standing.label);
            Prediction {
                label: standing.label.clone(),
                predicted: own.map_or_else(|| vec![None; goals], comparisons),
                measured: comparisons(standing),
            }
        };
        let predictions = measured.standings.iter().skip(1).map(prediction).collect();
        // That the recording is not whole is told of the advice.
        let told = |doubt: &&Doubt| !matches!(doubt, Doubt::TraceIncomplete { .. });
        let doubts = confirmed.of_device.iter().flat_map(|results| &results.doubts).filter(told);
        let advised = measured.recommended().map(|own| &own.label);
        let (mut starved, others): (Vec<&Doubt>, Vec<&Doubt>) = doubts.partition(|doubt| match doubt {
            Doubt::Starved { settings, .. } => settings.is_empty() || advised.is_some_and(|own| settings.contains(own)),
            _ => false,
        });
        // Who starves under every setting does not pay for the advice.
        starved.sort_by_key(|doubt| matches!(doubt, Doubt::Starved { settings, .. } if settings.is_empty()));
        let [starved, reservations] = [starved, others].map(|own| own.into_iter().map(ToString::to_string).collect());
        let device_doubts = confirmed.of_device.iter().flat_map(|results| results.doubts.clone()).collect();
        Self { present, model_fits, predicted, measured, predictions, starved, reservations, device_doubts }
    }

    /// What the search found best and the device was not asked about, since it writes files of cgroups.
    #[must_use]
    pub fn untried(&self) -> Option<&Standing> {
        let best = self.predicted.recommended().filter(|_| self.predicted.recommends())?;
        (!OfControllers::of(&best.setting).is_empty()).then_some(best)
    }

    /// What is to be set; `None` if what is set is to stay, or nothing can be said.
    #[must_use]
    pub fn recommended(&self) -> Option<&Setting> {
        let best = self.measured.recommended()?;
        matches!(self.measured.finding, Finding::Better | Finding::Allowed).then_some(&best.setting)
    }
}

/// What was set, as our elevators have it; `None` if none of them is that scheduler, or takes those values.
#[must_use]
pub fn simulated(recorded: &Recorded) -> Option<Setting> {
    recorded.setting().ok()?.to_string().parse().ok()
}

/// Those of the device's schedulers that can be simulated, with their defaults.
#[must_use]
pub fn searchable(schedulers: &[String]) -> Vec<Setting> {
    schedulers.iter().filter_map(|name| name.parse().ok()).collect()
}
