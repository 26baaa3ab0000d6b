//! Goals for the accuracy on measured devices, and the results that the simulation reaches.

use super::case::{Metric, Source};
use super::run::MeasuredResult;
use super::tally::{TailAgreement, Tally, is_within};

/// Part of Kyber's grid that has a goal: a reader of depth 1 next to a writer of depth 256.
const GRID_PART: &str = "micro-bench-r1-w256";

/// A goal and the result of the simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The figures that the goal is about.
    pub about: &'static str,
    /// The goal.
    pub wanted: String,
    /// The result, in the unit of the goal.
    pub reached: String,
    /// Whether the simulation meets the goal.
    pub is_met: bool,
}

impl Target {
    /// Returns the goals of all sources with results, in the order of the sources.
    #[must_use]
    pub fn of(results: &[MeasuredResult<'_>]) -> Vec<Self> {
        let of_sources = |sources: &[Source]| -> Vec<&MeasuredResult<'_>> {
            results.iter().filter(|result| sources.contains(&result.case.source)).collect()
        };
        let mut targets = Vec::new();
        let study = Tally::of(&of_sources(&[Source::Icpe24, Source::Icpe24Interference]));
        targets.extend(share("980 PRO: rates within 15 %", study.rates_met, study.rates, 80));
        targets.extend(share("980 PRO: p99 within a factor of 1.5", study.p99s_met, study.p99s, 70));
        targets.extend(orders("980 PRO: pairs of schedulers in the right order", study, 67));
        let grid = of_sources(&[Source::KyberGrid]);
        let (met, all) = grid_counts(&grid);
        targets.extend(share("Kyber's grid, r1-w256: both rates and the reader's p99 within 25 %", met, all, 70));
        let optane = Tally::of(&of_sources(&[Source::IsolIocost]));
        let about = "Optane under io.cost: p99 within 25 %, bandwidth within 15 %";
        targets.extend(share(about, optane.rates_met + optane.p99s_met, optane.rates + optane.p99s, 80));
        for (part, about) in [
            ("io.cost", "SSDs under io.cost: read p99, median factor and rank correlation"),
            ("smooth", "SSDs under smooth load: read p99, median factor and rank correlation"),
        ] {
            let of_part: Vec<_> =
                of_sources(&[Source::SsdLatency]).into_iter().filter(|result| result.case.part() == part).collect();
            targets.extend(TailAgreement::of(&of_part).map(|agreement| tails(about, agreement)));
        }
        targets.extend(orders("Mails: relations that are right", Tally::of(&of_sources(&[Source::ListTables])), 100));
        targets
    }
}

/// Returns the number of figures in [`GRID_PART`] that match, and the number of all figures in it.
fn grid_counts(results: &[&MeasuredResult<'_>]) -> (u32, u32) {
    let figures = results.iter().filter(|result| result.case.part() == GRID_PART).flat_map(|result| result.figures());
    let is_meant = |job: &str, metric: Metric| metric == Metric::Iops || (metric == Metric::P99 && job == "reader");
    let within = Source::KyberGrid.rate_within();
    figures.filter(|(figure, _)| is_meant(&figure.job, figure.metric)).fold((0, 0), |(met, all), (figure, value)| {
        (met + u32::from(value.is_some_and(|value| is_within(value / figure.measured, within))), all + 1)
    })
}

/// Returns a goal for the share of figures that match; `None` without figures.
fn share(about: &'static str, met: u32, all: u32, wanted_percent: u32) -> Option<Target> {
    let reached = 100.0 * f64::from(met) / f64::from(all);
    (all > 0).then(|| Target {
        about,
        wanted: format!("{wanted_percent} %"),
        reached: format!("{reached:.0} % ({met} of {all})"),
        is_met: met * 100 >= all * wanted_percent,
    })
}

/// Returns a goal for the share of right orders; `None` without orders. If at least one order is
/// wrong, the goal is not met, even if the share is reached.
fn orders(about: &'static str, tally: Tally, wanted_percent: u32) -> Option<Target> {
    let Tally { right, wrong, none, .. } = tally;
    let target = share(about, right, right + wrong + none, wanted_percent)?;
    Some(Target {
        wanted: if wanted_percent == 100 { "all".to_owned() } else { format!("{}, none wrong", target.wanted) },
        reached: format!("{}, {wrong} wrong", target.reached),
        is_met: target.is_met && wrong == 0,
        ..target
    })
}

/// Returns a goal for 99th percentiles of many disks.
fn tails(about: &'static str, agreement: TailAgreement) -> Target {
    const FACTOR: f64 = 1.5;
    const RANK_CORRELATION: f64 = 0.8;
    let TailAgreement { factor, rank_correlation } = agreement;
    Target {
        about,
        wanted: format!("{FACTOR} and {RANK_CORRELATION}"),
        reached: format!("{factor:.2} and {rank_correlation:.2}"),
        is_met: factor <= FACTOR && rank_correlation >= RANK_CORRELATION,
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::{Figure, MeasuredCase};
    use super::*;

    fn case(source: Source, group: &str, setting: &str, figures: &[(&str, Metric, f64)]) -> MeasuredCase {
        let figure = |&(job, metric, measured): &(&str, Metric, f64)| Figure { job: job.to_owned(), metric, measured };
        MeasuredCase {
            source,
            group: group.to_owned(),
            setting: setting.parse().unwrap(),
            jobs: vec![],
            disks: 1,
            disk: None,
            obstacle: None,
            figures: figures.iter().map(figure).collect(),
        }
    }

    fn targets(cases: &[MeasuredCase], simulated: &[&[f64]]) -> Vec<Target> {
        let result = |(case, values): (_, &&[f64])| MeasuredResult {
            case,
            simulated: values.iter().map(|&value| Some(value)).collect(),
            recorded: None,
        };
        Target::of(&cases.iter().zip(simulated).map(result).collect::<Vec<_>>())
    }

    #[test]
    fn kyber_grid_goal_counts_rates_and_reader_p99() {
        let figures = [
            ("reader", Metric::Iops, 100.0),
            ("writer", Metric::Iops, 100.0),
            ("reader", Metric::P99, 100.0),
            ("writer", Metric::P99, 100.0),
            ("reader", Metric::P50, 100.0),
        ];
        let cases = [
            case(Source::KyberGrid, "micro-bench-r1-w256", "kyber", &figures),
            case(Source::KyberGrid, "micro-bench-r1-w1", "kyber", &figures),
        ];
        let [target] = &targets(&cases, &[&[124.0, 124.0, 81.0, 1.0, 1.0], &[1.0; 5]])[..] else { panic!() };
        assert_eq!((&*target.reached, target.is_met), ("100 % (3 of 3)", true));
        let [target] = &targets(&cases, &[&[126.0, 124.0, 81.0, 1.0, 1.0], &[1.0; 5]])[..] else { panic!() };
        assert_eq!((&*target.reached, target.is_met), ("67 % (2 of 3)", false));
    }

    #[test]
    fn wrong_relation_in_list_tables_misses_the_goal() {
        let row = |run: &str, value: f64| {
            case(Source::ListTables, &format!("readahead: {run}"), "none", &[("j", Metric::Throughput, value)])
        };
        let cases = [row("128", 122.0), row("2560", 165.0)];
        let relation = |simulated: [f64; 2]| {
            let found = targets(&cases, &[&simulated[..1], &simulated[1..]]);
            let [target] = &found[..] else { panic!("{found:?}") };
            (target.reached.clone(), target.is_met)
        };
        assert_eq!(relation([100.0, 150.0]), ("100 % (1 of 1), 0 wrong".to_owned(), true));
        assert_eq!(relation([150.0, 100.0]), ("0 % (0 of 1), 1 wrong".to_owned(), false));
        assert_eq!(relation([100.0, 101.0]), ("0 % (0 of 1), 0 wrong".to_owned(), false));
    }

    #[test]
    fn tail_goal_needs_small_factor_and_high_rank_correlation() {
        let agreement = |factor, rank_correlation| tails("p99", TailAgreement { factor, rank_correlation }).is_met;
        assert_eq!([agreement(1.4, 0.9), agreement(1.6, 0.9), agreement(1.4, 0.7)], [true, false, false]);
    }
}
