//! The answer, what is doubtful about it, and predicted beside measured.

use iosched_lab::{Comparison, Verdict};

use super::{Advice, Prediction};
use crate::tune::{Finding, MeasureRecord};

impl Advice<'_> {
    /// The answer in a sentence.
    #[must_use]
    pub fn answer(&self) -> String {
        let (present, goals) = (&self.present, self.measured.goal_names());
        match (self.measured.finding, self.measured.recommended()) {
            (Finding::Better, Some(best)) => {
                format!(
                    "set {}: {} than with {present}, which was set",
                    best.label,
                    self.measured.against_baseline(best)
                )
            }
            (Finding::Allowed, Some(best)) => format!(
                "set {}: it keeps {}, which {present}, which was set, does not; {}",
                best.label,
                self.wanted(),
                self.measured.against_baseline(best)
            ),
            (Finding::NothingBetter, _) => {
                let others = self.measured.standings.len().saturating_sub(1);
                let tried = match others {
                    0 => return format!("leave it as it is ({present}): there is nothing else to set"),
                    1 => "the other setting that was tried on the device does not serve".to_owned(),
                    n => format!("none of {n} other settings that were tried on the device serves"),
                };
                let kept = if self.measured.header.constraints.is_empty() {
                    String::new()
                } else {
                    format!(" and keeps {}", self.wanted())
                };
                let within = self.measured.header.equal_within_percent;
                format!("leave it as it is ({present}): {tried} {goals} better by more than {within} %{kept}")
            }
            (Finding::CannotTell, _) => {
                let unsure = self.measured.unsure_words().unwrap_or_default();
                format!(
                    "cannot tell whether to change what is set ({present}): nothing is better for sure, and {unsure}; until then leave it \
                     as it is"
                )
            }
            (Finding::Idle, _) => format!("{}: leave it as it is ({present})", self.measured.idle_words()),
            (Finding::NothingAllowed, _) => {
                format!("nothing that was tried on the device keeps {}: leave it as it is ({present})", self.wanted())
            }
            _ => format!(
                "nothing can be said: of {present} and another setting there are not two runs each with {goals} on the device"
            ),
        }
    }

    fn wanted(&self) -> String {
        let wanted: Vec<&str> = self.measured.header.constraints.iter().map(|own| own.text.as_str()).collect();
        wanted.join(" and ")
    }

    /// What a reader should know before following it, in sentences; [`Advice::reservations`] go with the runs on the
    /// device.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = self.starved.clone();
        let missing = &self.measured.header.workload.missing;
        if !missing.is_empty() {
            doubts.push(iosched_lab::incomplete(missing));
        }
        if self.model_fits == Some(false) {
            doubts.push(
                "no model fits the device, so the search in simulation is a weak hint: all schedulers were tried on the device, but other values \
                 than their defaults may be better"
                    .to_owned(),
            );
        }
        doubts.extend(self.predicted.model_error());
        doubts.extend(self.predictions.iter().filter_map(|own| self.missed(own)));
        if self.measured.finding == Finding::CannotTell {
            let runs = self.measured.unsure_runs().map_or_else(String::new, |runs| format!(" {runs}"));
            doubts.push(format!("more runs on the device may tell what these do not: --runs{runs}, or --until-sure"));
        }
        doubts.extend(self.measured.recommended().into_iter().flat_map(|best| self.measured.unsure_constraints(best)));
        doubts
    }

    /// A prediction that points the wrong way.
    fn missed(&self, own: &Prediction) -> Option<String> {
        let wrong = |goal: usize| {
            let (predicted, measured) = (own.predicted[goal].as_ref()?, own.measured[goal].as_ref()?);
            let opposite = matches!(
                (predicted.verdict, measured.verdict),
                (Verdict::Better, Verdict::Worse) | (Verdict::Worse, Verdict::Better)
            );
            let measure = &self.measured.header.measures[goal];
            opposite.then(|| {
                format!(
                    "of {} the model predicted {} {}, and it was {}: trust it less than the device",
                    own.label,
                    measure.name,
                    measure.describe(predicted),
                    measure.describe(measured)
                )
            })
        };
        (0..own.measured.len()).find_map(wrong)
    }

    /// A goal of a setting as predicted and as measured, in words: `None` where there is no prediction.
    #[must_use]
    pub fn predicted_and_measured(&self, own: &Prediction, goal: usize) -> Option<(String, String)> {
        let measure = &self.measured.header.measures[goal];
        let said = |comparison: &Option<Comparison>| comparison.as_ref().map(|own| brief(measure, own));
        Some((said(&own.predicted[goal])?, said(&own.measured[goal])?))
    }
}

/// A comparison in a few words, also where it is no difference: "-12 %".
fn brief(measure: &MeasureRecord, comparison: &Comparison) -> String {
    match comparison.percent {
        // A great rise is told as a multiple.
        Some(percent) if percent < 300.0 => format!("{percent:+.1} %"),
        _ => measure.describe(comparison),
    }
}
