//! Conversion of results to evidence for a decision.

use iosched_kernel::checks::Finding;
use iosched_sim::Replay;

use super::{Criterion, Evidence, Starving};
use crate::answer::Answer;
use crate::doubt::Doubt;
use crate::figure::{Figure, TaskFigure};
use crate::goal::Goal;
use crate::record::{Header, OnDevice, WorkloadKind};
use crate::request::quoted;
use crate::results::{FigureResults, Results};

impl Evidence {
    /// Collects the evidence of one device.
    pub(crate) fn of(records: OnDevice<'_>, results: &Results) -> Self {
        let header = records.header();
        let labels: Vec<String> = header.settings.iter().map(|setting| setting.label.clone()).collect();
        let goals = results.figures.iter().any(|figure_results| figure_results.goal);
        let deciding = deciding(header, results);
        let first = deciding.map(|(figure_results, _)| figure_results.figure);
        let is_told =
            |figure_results: &&FigureResults| figure_results.concludes() || goals && is_cost(figure_results, header);
        let others =
            results.figures.iter().filter(|figure_results| Some(figure_results.figure) != first).filter(is_told);
        let criteria = deciding.iter().map(|(figure_results, _)| *figure_results).chain(others).map(criterion);
        let is_out_of_tree = |setting: &usize| header.settings[*setting].setting.is_out_of_tree();
        let served: Vec<usize> = (0..labels.len()).filter(|&setting| !records.can_be_set(setting)).collect();
        Self {
            baseline: header.baseline,
            kernels_differ: header.settings.iter().any(|of| of.setting.kernel() != header.settings[0].setting.kernel()),
            better_served: deciding
                .map_or_else(Vec::new, |(figure_results, _)| better_served(&results.answer, figure_results.figure)),
            out_of_tree: served.iter().copied().filter(is_out_of_tree).collect(),
            served,
            criteria: criteria.collect(),
            reason: deciding.and_then(|(_, reason)| reason),
            goal: goal(results).filter(|_| !goals),
            runs: results.rounds,
            equal_within_percent: header.equal_within_percent,
            idle_percent: results.answer.idle_percent,
            labels,
            run_word: if records.device().measured.is_some() { "runs" } else { "simulated runs" },
            runs_option: Some("--runs"),
            run_s: run_s(results),
            task_word: header.workload.kind.task_word(1),
            ..Self::default()
        }
        .with_doubts(&results.doubts)
    }

    /// Adds the evidence from doubts: starving tasks, layers below the scheduler, and doubts about
    /// the data. The doubts must name settings by the labels in this evidence.
    #[must_use]
    pub fn with_doubts(mut self, doubts: &[Doubt]) -> Self {
        self.starving = doubts.iter().filter_map(|doubt| starving(doubt, &self.labels)).collect();
        let is_unreached =
            |doubt: &Doubt| matches!(doubt, Doubt::NothingReached { settings, .. } if settings.is_empty());
        self.nothing_reached = doubts.iter().any(is_unreached);
        self.below = doubts.iter().find_map(below);
        self.spoiled = doubts.iter().find_map(Doubt::spoils);
        self
    }
}

/// Returns the mean run time of the fastest setting, s.
fn run_s(results: &Results) -> Option<f64> {
    let finish = results.figure(Figure::Finish)?;
    finish.settings.iter().flatten().map(|figure| figure.mean).reduce(f64::min)
}

fn criterion(results: &FigureResults) -> Criterion {
    let settings =
        results.settings.iter().map(|figure| figure.as_ref().map(|figure| (figure.mean, figure.comparison))).collect();
    let figure = results.figure;
    let beside_parts = results.label != figure.name();
    Criterion { figure, phrase: figure.phrase(beside_parts), settings, concludes: results.concludes() }
}

fn better_served(answer: &Answer, figure: Figure) -> Vec<usize> {
    let groups = answer.served.iter().filter(|group| group.figures.contains(&figure));
    groups.flat_map(|group| group.settings.clone()).collect()
}

/// Returns whether a metric that is not a goal can be reported as a cost. Costs are the metrics
/// that tables show, without duplicates.
fn is_cost(results: &FigureResults, header: &Header) -> bool {
    let twice = if header.workload.timed { Figure::Finish } else { Figure::Throughput };
    // An application reports its first metric a second time in another unit.
    let again = matches!(results.figure, Figure::Application(_)) && !results.figure.is_headline();
    results.shown && results.figure != twice && !again
}

/// Returns the metric that decides, and the reason. If there is a goal, the first goal decides, and
/// the reason is `None`. Without a goal, the metric depends on the workload: the application's
/// metric, the throughput with a time limit, the latency in an open loop, or else the finish time.
fn deciding<'r>(header: &Header, results: &'r Results) -> Option<(&'r FigureResults, Option<&'static str>)> {
    if let Some(goal) = results.figures.iter().find(|figure_results| figure_results.goal) {
        return Some((goal, None));
    }
    let concluding = || results.figures.iter().filter(|figure_results| figure_results.concludes());
    let reported = |figure_results: &&FigureResults| matches!(figure_results.figure, Figure::Application(_));
    if let Some(figure_results) = concluding().find(reported) {
        return Some((figure_results, Some("the program reports it")));
    }
    let is_open = header.workload.kind == WorkloadKind::Trace && matches!(header.replay, Replay::Open { .. });
    let latencies = [Figure::SyncMean, Figure::SyncP99, Figure::AsyncP99];
    let order = match (header.workload.timed, is_open) {
        (_, true) => [latencies.as_slice(), &[Figure::Finish]].concat(),
        (true, _) => [&[Figure::Throughput], latencies.as_slice()].concat(),
        _ => [&[Figure::Finish], latencies.as_slice()].concat(),
    };
    let first = order.iter().find_map(|figure| concluding().find(|figure_results| figure_results.figure == *figure));
    let chosen = first.or_else(|| concluding().next())?;
    Some((
        chosen,
        Some(match chosen.figure {
            Figure::Finish => "the workload has an end",
            Figure::Throughput => "all runs are equally long and no setting can finish sooner",
            Figure::SyncMean if is_open => "I/Os arrive at given times",
            _ => "this is the first metric that all runs have",
        }),
    ))
}

/// Prefixes of names of kernel threads. Users are usually not interested in these tasks.
const KERNEL_THREADS: [&str; 6] = ["kworker", "jbd2", "kswapd", "xfsaild", "flush-", "btrfs-"];

/// Returns a goal for the latency of the first task, if there are several tasks.
fn goal(results: &Results) -> Option<String> {
    if results.task_names.1 < 2 {
        return None;
    }
    let of_tasks = results
        .figures
        .iter()
        .filter(|figure_results| matches!(figure_results.figure, Figure::Task(_, TaskFigure::P99)));
    let goals = of_tasks.filter_map(|figure_results| {
        let task = figure_results.figure.task()?;
        if KERNEL_THREADS.iter().any(|start| task.starts_with(start)) {
            return None;
        }
        let goal = format!("p99({task})");
        // The goal is returned only if its text names this task. The parser may read the name in
        // another way.
        (goal.parse::<Goal>().ok()?.measure.task() == Some(task)).then_some(goal)
    });
    let goal = goals.into_iter().next()?;
    let plain = goal.chars().all(|c| c.is_ascii_alphanumeric() || "()._-/: ".contains(c));
    Some(if plain { format!("\"{goal}\"") } else { quoted(&goal) })
}

fn starving(doubt: &Doubt, labels: &[String]) -> Option<Starving> {
    let Doubt::Starved { settings, task, percent } = doubt else { return None };
    let under = |setting: &(usize, &String)| settings.is_empty() || settings.contains(setting.1);
    let settings = labels.iter().enumerate().filter(under).map(|(number, _)| number).collect();
    Some(Starving { task: task.clone(), settings, percent: *percent })
}

/// Returns a sentence if a layer below the scheduler orders the requests.
fn below(doubt: &Doubt) -> Option<String> {
    let Doubt::Found { finding } = doubt else { return None };
    match finding {
        Finding::Virtual { kind } => Some(format!(
            "The disk is {kind}. The layer below the disk also orders requests, and may matter more than the scheduler."
        )),
        Finding::NothingQueues { .. } => {
            Some("The driver takes every request at once, so no scheduler has anything to order.".to_owned())
        }
        _ => None,
    }
}
