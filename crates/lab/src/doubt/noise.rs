//! Effects of noise on metrics: trends and unusual runs of a real device, and two groups of runs.

use super::Doubt;
use super::find::Finder;
use crate::compare::{Outcomes, SIGNIFICANCE, outcomes_apart_percent};
use crate::figure::Figure;
use crate::results::{FigureResults, SettingFigure};
use crate::stat;

/// Significance level of each of these tests: probability of a false alarm.
const ALARM: f64 = 0.01;
/// Smallest reported drift, as a multiple of [`Figure::relevant_percent`].
const WORTH_TIMES: f64 = 4.0;
/// Smallest number of pairs for which a rank test can be significant.
const RANK_PAIRS_MIN: usize = 6;

impl Finder<'_> {
    pub(super) fn noise(&self, doubts: &mut Vec<Doubt>) {
        for results in self.results.figures.iter().filter(|results| results.concludes()) {
            doubts.extend(self.drift(results));
            for (setting, figure_of_setting) in results.settings.iter().enumerate() {
                let Some(figure_of_setting) = figure_of_setting else { continue };
                doubts.extend(self.odd_runs(results.figure, setting, figure_of_setting));
            }
        }
    }

    fn label(&self, setting: usize) -> String {
        self.records.header().settings[setting].label.clone()
    }

    /// Returns a doubt if the values rose or fell in the order of execution. Differences between
    /// the settings are removed first.
    fn drift(&self, results: &FigureResults) -> Option<Doubt> {
        let mut turns: Vec<(u32, f64)> = Vec::new();
        for (setting, figure_of_setting) in results.settings.iter().enumerate() {
            let Some(figure_of_setting) =
                figure_of_setting.as_ref().filter(|figure_of_setting| figure_of_setting.mean != 0.0)
            else {
                continue;
            };
            let runs = self.records.complete_runs(setting);
            let percents = figure_of_setting.values.iter().map(|value| (value / figure_of_setting.mean - 1.0) * 100.0);
            turns.extend(runs.iter().map(|run| run.turn.unwrap_or(run.run)).zip(percents));
        }
        turns.sort_by_key(|&(turn, _)| turn);
        let percents: Vec<f64> = turns.into_iter().map(|(_, percent)| percent).collect();
        let trend = stat::trend(&percents).filter(|trend| trend.p < ALARM)?;
        let worth = results.figure.relevant_percent() * WORTH_TIMES;
        (trend.change.abs() >= worth).then_some(Doubt::Drift {
            figure: results.figure,
            label: results.label.clone(),
            percent: trend.change,
        })
    }

    /// Adds a doubt for each metric whose runs have two outcomes under a setting.
    pub(super) fn two_groups(&self, doubts: &mut Vec<Doubt>) {
        let equal_within_percent = self.records.header().equal_within_percent;
        for results in self.results.figures.iter().filter(|results| results.concludes()) {
            let apart_percent = outcomes_apart_percent(results.figure, equal_within_percent);
            for (setting, of_setting) in results.settings.iter().enumerate() {
                let Some(SettingFigure { mean, values, .. }) = of_setting else { continue };
                let found = Outcomes::of(values, apart_percent / 100.0 * mean.abs());
                doubts.extend(found.map(|outcomes| Doubt::TwoGroups {
                    setting: self.label(setting),
                    figure: results.figure,
                    label: results.label.clone(),
                    means: [outcomes.low, outcomes.high],
                    runs: [outcomes.runs_low, outcomes.runs - outcomes.runs_low].map(u64::from),
                }));
            }
        }
    }

    /// Returns a doubt if a verdict depends on a few runs. Single runs have little influence on the
    /// rank test and the bootstrap. These methods therefore show no difference in this case.
    fn odd_runs(&self, figure: Figure, setting: usize, figure_of_setting: &SettingFigure) -> Option<Doubt> {
        let comparison = figure_of_setting.comparison.as_ref().filter(|comparison| comparison.verdict.differs())?;
        let by_rank = comparison.rank_p.is_none_or(|p| p > SIGNIFICANCE);
        let by_bootstrap = comparison.bootstrap.is_some_and(|(low, high)| low <= 0.0 && high >= 0.0);
        let odd = figure_of_setting.values.len() >= RANK_PAIRS_MIN && (by_rank || by_bootstrap);
        odd.then(|| Doubt::OddRuns { setting: self.label(setting), figure, label: self.results.label(figure) })
    }
}
