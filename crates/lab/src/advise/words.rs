//! The answer, what is doubtful about it, and predicted beside measured.

use super::{Advice, Prediction};
use crate::compare::{Comparison, Verdict};
use crate::number::significant;
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
            (Finding::NoDifference, _) => {
                let others = self.measured.standings.len().saturating_sub(1);
                let tried = match others {
                    0 => return format!("leave it as it is ({present}): there is nothing else to set"),
                    1 => "the other setting that was tried on the device does not serve".to_owned(),
                    n => format!("none of {n} other settings that were tried on the device serves"),
                };
                let seen = self.would_show().map_or_else(String::new, |percent| {
                    format!("; a difference of {} % would have shown", significant(percent, 2))
                });
                let kept = if self.measured.header.constraints.is_empty() {
                    String::new()
                } else {
                    format!(" and keeps {}", self.wanted())
                };
                format!("leave it as it is ({present}): {tried} {goals} better{kept}{seen}")
            }
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

    /// The difference in the first goal, per cent, that every setting would have shown: half the widest interval.
    fn would_show(&self) -> Option<f64> {
        let intervals = self.predictions.iter().map(|own| own.measured.first()?.as_ref()?.interval_percent);
        let halves = intervals.map(|interval| interval.map(|(low, high)| (high - low) / 2.0));
        let relevant = self.measured.header.measures[0].relevant_percent;
        halves.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max).map(|half| half.max(relevant))
    }

    /// What a reader should know before following it, in sentences; [`Advice::reservations`] go with the runs on the device.
    #[must_use]
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let missing = &self.measured.header.workload.missing;
        if !missing.is_empty() {
            doubts.push(crate::doubt::incomplete(missing));
        }
        if self.model_fits == Some(false) {
            doubts.push(
                "no model fits the device, so the search in simulation is a weak hint: all schedulers were tried on the device, but other values \
                 than their defaults may be better"
                    .to_owned(),
            );
        }
        doubts.extend(self.predictions.iter().filter_map(|own| self.missed(own)));
        doubts.extend(self.measured.undecided(|needed| format!("--runs {needed}")));
        doubts.extend(self.measured.recommended().into_iter().flat_map(|best| self.measured.unsure_constraints(best)));
        doubts.extend(self.starved.iter().cloned());
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
