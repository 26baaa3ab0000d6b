//! Advice for a real device. A search in simulation finds the best settings, and runs on the device
//! confirm them.

use iosched::Setting;
use iosched_kernel::settings::{OfControllers, Recorded};
use iosched_lab::{Comparison, Doubt};
use serde::Serialize;

use crate::confirm::Confirmed;
use crate::tune::{Finding, Standing, TuneResults};

/// The advised setting, with the predicted and the measured results.
#[derive(Clone, Debug, Serialize)]
pub struct Advice<'a> {
    /// Setting of the device before the advice, in the syntax of settings.
    pub present: String,
    /// Whether the model of the search fits the device. `None` if the request names the model,
    /// because then iosched has no measurements to check the model.
    pub model_fits: Option<bool>,
    /// Results of the search in simulation, compared with the present setting.
    pub predicted: TuneResults<'a>,
    /// Results of the runs on the device, compared with the present setting.
    pub measured: TuneResults<'a>,
    /// Predicted and measured differences from the present setting, for each other setting that was
    /// confirmed on the device.
    pub predictions: Vec<Prediction>,
    /// Sentences about the tasks that starve under the advised setting.
    pub starved: Vec<String>,
    /// Sentences about the other doubts of the runs on the device.
    pub reservations: Vec<String>,
    /// All doubts of the runs on the device.
    #[serde(skip)]
    pub device_doubts: Vec<Doubt>,
}

/// The predicted and the measured differences of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Label of the setting.
    pub label: String,
    /// Predicted differences from the present setting, by goal. `None` if the search did not
    /// confirm the setting.
    pub predicted: Vec<Option<Comparison>>,
    /// Measured differences from the present setting, by goal.
    pub measured: Vec<Option<Comparison>>,
}

impl<'a> Advice<'a> {
    /// Creates the advice from a search in simulation and from the runs on the device that
    /// confirmed settings.
    #[must_use]
    pub fn of(present: String, model_fits: Option<bool>, predicted: TuneResults<'a>, confirmed: &'a Confirmed) -> Self {
        let measured = confirmed.results();
        let goals = measured.header.goals;
        let comparisons = |standing: &Standing| -> Vec<Option<Comparison>> {
            standing.figures[..goals].iter().map(|figure| figure.as_ref()?.comparison).collect()
        };
        let prediction = |standing: &Standing| {
            let predicted_standing =
                predicted.standings.iter().find(|predicted_standing| predicted_standing.label == standing.label);
            Prediction {
                label: standing.label.clone(),
                predicted: predicted_standing.map_or_else(|| vec![None; goals], comparisons),
                measured: comparisons(standing),
            }
        };
        let predictions = measured.standings.iter().skip(1).map(prediction).collect();
        // The caller reports an incomplete trace itself.
        let is_reported = |doubt: &&Doubt| !matches!(doubt, Doubt::TraceIncomplete { .. });
        let doubts = confirmed.of_device.iter().flat_map(|results| &results.doubts).filter(is_reported);
        let advised = measured.recommended().map(|standing| &standing.label);
        let (mut starved, others): (Vec<&Doubt>, Vec<&Doubt>) = doubts.partition(|doubt| match doubt {
            Doubt::Starved { settings, .. } => {
                settings.is_empty() || advised.is_some_and(|label| settings.contains(label))
            }
            _ => false,
        });
        // Tasks that starve under every setting come last,
        // because the advice does not cause their starvation.
        starved.sort_by_key(|doubt| matches!(doubt, Doubt::Starved { settings, .. } if settings.is_empty()));
        let [starved, reservations] =
            [starved, others].map(|doubts| doubts.into_iter().map(ToString::to_string).collect());
        let device_doubts = confirmed.of_device.iter().flat_map(|results| results.doubts.clone()).collect();
        Self { present, model_fits, predicted, measured, predictions, starved, reservations, device_doubts }
    }

    /// Returns the setting that the search recommends, if this setting writes files of cgroups. The
    /// advice never tries such a setting on the device.
    #[must_use]
    pub fn untried(&self) -> Option<&Standing> {
        let best = self.predicted.recommended().filter(|_| self.predicted.recommends())?;
        (!OfControllers::of(&best.setting).is_empty()).then_some(best)
    }

    /// Returns the setting to set on the device. `None` if the present setting should stay, or if
    /// the runs are not enough to decide.
    #[must_use]
    pub fn recommended(&self) -> Option<&Setting> {
        let best = self.measured.recommended()?;
        matches!(self.measured.finding, Finding::Better | Finding::Allowed).then_some(&best.setting)
    }
}

/// Returns the recorded setting of the device as a setting of the simulator.
/// `None` if no simulated scheduler has this name or accepts these tunables.
#[must_use]
pub fn simulated(recorded: &Recorded) -> Option<Setting> {
    recorded.setting().ok()?.to_string().parse().ok()
}

/// Returns the schedulers of the device that can be simulated, with their defaults.
#[must_use]
pub fn searchable(schedulers: &[String]) -> Vec<Setting> {
    schedulers.iter().filter_map(|name| name.parse().ok()).collect()
}
