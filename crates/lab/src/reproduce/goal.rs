//! Goals: ratios of two figures that an experiment must reproduce.

use serde::{Deserialize, Serialize};

use super::judge::Known;

/// Relation between two figures, as the documents describe it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Goal {
    /// Description in a sentence.
    pub about: String,
    /// Property of the figures that is compared.
    #[serde(default)]
    pub measure: Measure,
    /// Figure in the numerator.
    pub of: FigureKey,
    /// Figure in the denominator.
    pub over: Other,
    /// Smallest ratio that meets the goal.
    pub low: Option<f64>,
    /// Largest ratio that meets the goal.
    pub high: Option<f64>,
}

/// Property of a published figure that a goal compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Mean of the figure.
    #[default]
    Mean,
    /// Standard deviation of the figure.
    Deviation,
}

/// Key of a figure: its case, test, unit and setting.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureKey {
    /// Name of the case.
    pub case: String,
    /// Name of the test in the case.
    pub test: String,
    /// Unit of the figure.
    pub unit: String,
    /// Label of the setting.
    pub setting: String,
}

/// Key of the second figure. A missing field has the same value as in the first figure.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Other {
    case: Option<String>,
    test: Option<String>,
    setting: Option<String>,
}

/// Outcome of a goal of a reproduced experiment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GoalOutcome {
    /// Ratio of the published figures.
    pub published: Option<f64>,
    /// Ratio of the simulated figures.
    pub simulated: Option<f64>,
    /// Whether the simulated ratio is within the bounds; `None` if the ratio is not known.
    pub met: Option<bool>,
}

impl Goal {
    /// Returns the key of the second figure.
    #[must_use]
    pub fn other(&self) -> FigureKey {
        let Other { case, test, setting } = &self.over;
        FigureKey {
            case: case.as_ref().unwrap_or(&self.of.case).clone(),
            test: test.as_ref().unwrap_or(&self.of.test).clone(),
            unit: self.of.unit.clone(),
            setting: setting.as_ref().unwrap_or(&self.of.setting).clone(),
        }
    }

    /// Returns the cases and settings of both figures.
    pub(super) fn places(&self) -> [(&String, &String); 2] {
        let Other { case, setting, .. } = &self.over;
        let other = (case.as_ref().unwrap_or(&self.of.case), setting.as_ref().unwrap_or(&self.of.setting));
        [(&self.of.case, &self.of.setting), other]
    }

    /// Returns the outcome, from functions that look up published and simulated figures.
    pub(super) fn outcome(
        &self,
        published: impl Fn(&FigureKey) -> Option<Known>,
        simulated: impl Fn(&FigureKey) -> Option<Known>,
    ) -> GoalOutcome {
        let other = self.other();
        let simulated = self.ratio(simulated(&self.of), simulated(&other));
        let within = |ratio: f64| self.low.is_none_or(|low| ratio >= low) && self.high.is_none_or(|high| ratio <= high);
        GoalOutcome {
            published: self.ratio(published(&self.of), published(&other)),
            simulated,
            met: simulated.map(within),
        }
    }

    fn ratio(&self, value: Option<Known>, over: Option<Known>) -> Option<f64> {
        let measured = |known: Known| match self.measure {
            Measure::Mean => Some(known.mean),
            Measure::Deviation => known.sd,
        };
        let (value, over) = (measured(value?)?, measured(over?)?);
        (over != 0.0).then(|| value / over)
    }

    /// Returns the bounds for display: "0.12 to 0.3", "at most 0.5".
    #[must_use]
    pub fn bounds(&self) -> String {
        match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{low} to {high}"),
            (Some(low), None) => format!("at least {low}"),
            (None, Some(high)) => format!("at most {high}"),
            (None, None) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_within_its_bounds() {
        let text = "about = \"x\"\nof = { case = \"c\", test = \"t\", unit = \"s\", setting = \"a\" }\nover = { setting = \"b\" }\nlow = 0.5\nhigh = 0.8";
        let goal: Goal = toml::from_str(text).unwrap();
        let figures = |a: f64| {
            move |place: &FigureKey| {
                Some(Known { mean: if place.setting == "a" { a } else { 10.0 }, sd: Some(a / 100.0) })
            }
        };
        let met = |a: f64| goal.outcome(|_| None, figures(a)).met;
        assert_eq!([met(4.9), met(5.0), met(8.0), met(8.1)], [Some(false), Some(true), Some(true), Some(false)]);
        assert_eq!(
            goal.outcome(figures(6.0), |_| None),
            GoalOutcome { published: Some(0.6), simulated: None, met: None }
        );
        let spread = Goal { measure: Measure::Deviation, ..goal };
        assert_eq!(spread.outcome(|_| None, figures(7.0)).simulated, Some(1.0));
    }
}
