//! The decision of advice, its doubts, and the comparison of predicted and measured values.

use iosched_lab::{Comparison, Decision, Verdict, decide, marked, significant};

use super::{Advice, Prediction};
use crate::tune::{Finding, MeasureRecord, TuneResults};

impl Advice<'_> {
    /// Returns which setting to use, and why. The runs on the device decide. The text adds the
    /// results of the simulation.
    #[must_use]
    pub fn decision(&self) -> Decision {
        let Some(evidence) = self.measured.evidence() else {
            let present = marked(&self.present);
            let sentence = match self.measured.finding {
                Finding::NothingBetter => {
                    format!(
                        "Keep {present}. The device has no other \
                                                   scheduler or tunable to try."
                    )
                }
                Finding::NothingAllowed => {
                    format!(
                        "Keep {present} for now. None of the settings that were tried on the device meets {}.",
                        self.wanted()
                    )
                }
                Finding::Idle => format!("Keep {present}. The device was idle nearly all the time."),
                _ => {
                    format!("Keep {present} for now. Each setting needs at least two runs on the device.")
                }
            };
            return Decision { sentences: vec![sentence], ..self.measured.decision() };
        };
        let mut evidence = evidence.with_doubts(&self.device_doubts);
        // The records use the label "present", but the reader knows the setting by its name.
        evidence.labels[0].clone_from(&self.present);
        evidence.runs_option = Some("--runs");
        let mut found = decide(&evidence);
        found.sentences.extend(self.which_evidence());
        found
    }

    /// Returns a sentence that names the evidence that decides, if the simulation and the device
    /// disagree.
    #[must_use]
    pub fn which_evidence(&self) -> Option<String> {
        let label = |results: &TuneResults<'_>| {
            results.recommended().filter(|_| results.recommends()).map(|standing| standing.label.clone())
        };
        let (predicted, measured) = (label(&self.predicted), label(&self.measured));
        if predicted == measured || matches!(self.measured.finding, Finding::Unconfirmed) {
            return None;
        }
        let simulated = match (self.predicted.finding, predicted) {
            (_, Some(best)) => format!("In simulation, {} was best.", marked(&best)),
            (Finding::CannotTell, _) => "The simulation alone could not decide.".to_owned(),
            (Finding::NothingBetter, _) => "In simulation, no setting was better.".to_owned(),
            _ => "The simulation alone gave no decision.".to_owned(),
        };
        Some(format!("{simulated} The runs on the device decide, because a model is never exact."))
    }

    fn wanted(&self) -> String {
        let wanted: Vec<&str> =
            self.measured.header.constraints.iter().map(|constraint| constraint.text.as_str()).collect();
        wanted.join(" and ")
    }

    /// Returns the doubts about the advice, in sentences. [`Advice::reservations`] are the doubts
    /// about the runs on the device.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = self.starved.clone();
        let missing = &self.measured.header.workload.missing;
        if !missing.is_empty() {
            doubts.push(iosched_lab::incomplete(missing));
        }
        if self.model_fits == Some(false) {
            doubts.push(
                "no model fits the device, so the search in simulation is only a weak hint. iosched tried all \
                 schedulers with their defaults on the device; other values may be better"
                    .to_owned(),
            );
        }
        doubts.extend(self.model_of_search());
        doubts.extend(self.predictions.iter().filter_map(|prediction| self.missed(prediction)));
        if self.measured.finding == Finding::CannotTell
            && let Some((open, runs)) = self.measured.more_runs()
        {
            doubts.push(format!("more runs on the device may show {open}: add --runs{runs}, or --until-sure"));
        }
        doubts.extend(self.measured.recommended().into_iter().flat_map(|best| self.measured.unsure_constraints(best)));
        doubts
    }

    /// Returns a sentence about the known error of the model. The error affects only the search,
    /// because the metrics of the advice come from the device.
    fn model_of_search(&self) -> Option<String> {
        let device = &self.predicted.header.device;
        let fit = device.fit?;
        let error = if fit.rates_only {
            format!(
                "was made only from maximum rates. Predicted rates may be wrong by {} %",
                significant(fit.rate_error_percent, 2)
            )
        } else {
            format!(
                "{} the device. In four of five cases, the error of a predicted rate is at most {} %, and the error \
                 of predicted times of the slowest I/Os is at most {} %",
                if fit.fits { "fits, but is not" } else { "does not fit" },
                significant(fit.rate_error_percent, 2),
                significant(fit.tail_error_percent, 2)
            )
        };
        Some(format!(
            "the search in simulation used the model of {}. This model {error}. The runs on the device do not \
             depend on the model",
            device.name
        ))
    }

    /// Returns a sentence about a predicted difference in the wrong direction.
    fn missed(&self, prediction: &Prediction) -> Option<String> {
        let wrong = |goal: usize| {
            let (predicted, measured) = (prediction.predicted[goal].as_ref()?, prediction.measured[goal].as_ref()?);
            let opposite = matches!(
                (predicted.verdict, measured.verdict),
                (Verdict::Better, Verdict::Worse) | (Verdict::Worse, Verdict::Better)
            );
            let measure = &self.measured.header.measures[goal];
            opposite.then(|| {
                format!(
                    "for `{}`, the model predicted {} {}, but the runs on the device show {}; trust the runs on \
                     the device",
                    prediction.label,
                    measure.name,
                    measure.describe(predicted),
                    measure.describe(measured)
                )
            })
        };
        (0..prediction.measured.len()).find_map(wrong)
    }

    /// Returns the predicted and the measured result of a setting in a goal, in words. `None`
    /// without a prediction.
    #[must_use]
    pub fn predicted_and_measured(&self, prediction: &Prediction, goal: usize) -> Option<(String, String)> {
        let measure = &self.measured.header.measures[goal];
        let in_words =
            |comparison: &Option<Comparison>| comparison.as_ref().map(|comparison| brief(measure, comparison));
        Some((in_words(&prediction.predicted[goal])?, in_words(&prediction.measured[goal])?))
    }
}

/// Formats a comparison briefly, such as "-12 %", even if there is no difference.
fn brief(measure: &MeasureRecord, comparison: &Comparison) -> String {
    match comparison.percent {
        // A large increase is shown as a multiple.
        Some(percent) if percent < 300.0 => format!("{percent:+.1} %"),
        _ => measure.describe(comparison),
    }
}
