//! Answer to a comparison on one device: the best settings for each metric, equal settings, and
//! metrics without a clear verdict. [`decide`](crate::decide()) derives the decision from the
//! answer.

use serde::Serialize;

use crate::compare::Verdict;
use crate::figure::{Direction, Figure};
use crate::record::OnDevice;
use crate::results::{FigureResults, SettingFigure};

/// Utilisation below which the answer names no best setting, per cent. At this utilisation, at most
/// 1 in 20 I/Os arrives while the device is busy, so a scheduler can almost never choose between
/// I/Os.
pub const NOTHING_WAITS_PERCENT: f64 = 5.0;

/// Settings that are among the best for the same metrics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Indices of the settings. Every setting outside the group is certainly worse than the best
    /// setting in it.
    pub settings: Vec<usize>,
    /// Metrics for which these settings are the best.
    pub figures: Vec<Figure>,
    /// Whether the group is one setting, or settings that are certainly equal. If false, the runs
    /// do not show which setting of the group is the best.
    pub is_certain: bool,
    /// If `is_certain` is false: number of runs of each setting that would decide. `None` if no
    /// number of runs would decide.
    pub runs_needed: Option<u32>,
}

/// Best settings for each metric that conclusions use.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// Best settings, for metrics in which some settings are certainly worse than others. Groups
    /// that are certain come first, then groups with more metrics. If a user can choose at least
    /// one of the settings in Linux, the groups contain only such settings.
    pub best: Vec<Group>,
    /// Settings whose scheduler is not part of Linux, if they are certainly better than all
    /// settings that a user can choose in Linux.
    pub served: Vec<Group>,
    /// Whether only a served disk can use the settings.
    pub served_only: bool,
    /// Metrics in which all settings are equal.
    pub equal: Vec<Figure>,
    /// Metrics without any clear verdict.
    pub open: Option<Group>,
    /// Highest utilisation, per cent, if the device was idle nearly all the time. The answer then
    /// names no best setting.
    pub idle_percent: Option<f64>,
    /// Bound of equality that was applied, per cent.
    pub equal_within_percent: f64,
}

impl Answer {
    /// Computes the answer from the metrics of a device.
    pub(crate) fn of(figures: &[FigureResults], records: OnDevice<'_>) -> Self {
        let settings = 0..records.header().settings.len();
        let served_only = !settings.clone().any(|setting| records.can_be_set(setting));
        let equal_within_percent = records.header().equal_within_percent;
        let mut answer = Self { equal_within_percent, served_only, ..Self::default() };
        // If the settings differ, I/Os must have waited, for example in bursts.
        let concluding = || figures.iter().filter(|results| results.concludes());
        let compared = concluding()
            .flat_map(|setting_figure| setting_figure.settings.iter().flatten())
            .filter_map(|setting_figure| setting_figure.comparison);
        let waited = compared.into_iter().any(|found| found.verdict.differs());
        answer.idle_percent =
            highest_utilisation(figures).filter(|&percent| percent < NOTHING_WAITS_PERCENT && !waited);
        if answer.idle_percent.is_some() {
            return answer;
        }
        for results in figures.iter().filter(|results| results.concludes()) {
            answer.add(results, records);
        }
        answer.best.sort_by_key(|group| (!group.is_certain, std::cmp::Reverse(group.figures.len())));
        answer
    }

    fn add(&mut self, results: &FigureResults, records: OnDevice<'_>) {
        let figure = results.figure;
        let can_be_set = |setting: usize| self.served_only || records.can_be_set(setting);
        let numbered = results.settings.iter().enumerate();
        let having: Vec<(usize, &SettingFigure)> =
            numbered.filter_map(|(at, figure)| Some((at, figure.as_ref()?))).collect();
        let leading = having.iter().filter(|(number, _)| can_be_set(*number));
        let Some(&(leader, _)) = leading.min_by(|a, b| match figure.direction() {
            Direction::Higher => b.1.mean.total_cmp(&a.1.mean),
            _ => a.1.mean.total_cmp(&b.1.mean),
        }) else {
            return;
        };
        let group =
            |settings: Vec<usize>| Group { settings, figures: vec![figure], is_certain: true, runs_needed: None };
        let (mut best, mut served) = (group(vec![leader]), group(Vec::new()));
        let (mut open, mut any_worse) = (None::<Group>, false);
        for number in having.iter().map(|(number, _)| *number).filter(|&number| number != leader) {
            let found = results.between(records, number, leader);
            match found.verdict {
                Verdict::CannotTell => {
                    let open_group = Group { runs_needed: found.runs_needed, ..group(Vec::new()) };
                    // Keep the largest number of runs that any comparison needs. The number is
                    // `None` if no number of runs decides one of the comparisons.
                    match &mut open {
                        Some(open) => {
                            open.runs_needed = open.runs_needed.zip(open_group.runs_needed).map(|(a, b)| a.max(b))
                        }
                        None => open = Some(open_group),
                    }
                    if can_be_set(number) {
                        best.settings.push(number);
                        best.is_certain = false;
                    }
                }
                Verdict::Equal if can_be_set(number) => best.settings.push(number),
                Verdict::Better if !can_be_set(number) => served.settings.push(number),
                Verdict::Equal => {}
                _ => any_worse = true,
            }
        }
        best.settings.sort_unstable();
        match open {
            None if !any_worse && served.settings.is_empty() => return self.equal.push(figure),
            Some(open) if !any_worse && served.settings.is_empty() => {
                let open = Group { is_certain: false, settings: best.settings, ..open };
                return join(&mut self.open, open);
            }
            open => best.runs_needed = open.filter(|_| !best.is_certain).and_then(|open| open.runs_needed),
        }
        add(&mut self.best, best);
        if !served.settings.is_empty() {
            add(&mut self.served, served);
        }
    }
}

impl Group {
    fn join(&mut self, other: Self) {
        self.figures.extend(other.figures);
        self.runs_needed = self.runs_needed.zip(other.runs_needed).map(|(a, b)| a.max(b));
    }
}

/// Adds a group. If there is already a group with the same settings, joins the two groups.
fn add(all: &mut Vec<Group>, group: Group) {
    let alike = |known: &&mut Group| known.settings == group.settings && known.is_certain == group.is_certain;
    match all.iter_mut().find(alike) {
        Some(known) => known.join(group),
        None => all.push(group),
    }
}

fn join(group: &mut Option<Group>, other: Group) {
    match group {
        Some(known) => known.join(other),
        None => *group = Some(other),
    }
}

/// Returns the highest mean utilisation of all settings; `None` if the utilisation of a setting is
/// not known.
fn highest_utilisation(figures: &[FigureResults]) -> Option<f64> {
    let results = figures.iter().find(|results| results.figure == Figure::Utilisation)?;
    let all: Option<Vec<f64>> = results
        .settings
        .iter()
        .map(|setting_figure| setting_figure.as_ref().map(|setting_figure| setting_figure.mean))
        .collect();
    all?.into_iter().reduce(f64::max)
}
