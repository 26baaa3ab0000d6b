//! A search as text: the decision and its commands, the confirmed settings,
//! the value of each change, the importance of tunables, and doubts.

use std::fmt::Write as _;

use iosched_advise::tune::{Controller, PutBack, Standing, TuneResults, commands_explained, lasting};
use iosched_lab::{Comparison, significant};

use super::closing::{decision, doubts};
use super::columns::figures_column;
use super::grid::{Column, Look, left, set};
use super::text::{seconds, subject, verdict, verdicts_title};
use super::{Cell, row};

/// Measures that are shown in addition to the goals if they differ between settings.
const USUAL: [&str; 5] = ["throughput", "mean(sync)", "p99(sync)", "worst(sync)", "p99(async)"];

/// Returns the text of the results of a search.
pub fn text(results: &TuneResults<'_>, elapsed_s: f64, next: Option<&str>, input: Option<&str>, look: Look) -> String {
    let best = results.recommended().filter(|_| results.recommends());
    let to_set = best.map_or_else(Vec::new, |best| commands_explained(&best.setting));
    let mut text = decision(&results.decision(), &to_set, input, look);
    text.push_str(&heading(results, elapsed_s, look));
    if !results.standings.is_empty() {
        let shown = shown(results);
        let _ = write!(text, "\n{}", figures(results, &shown, look));
        if shown.len() > 1 {
            let _ = write!(text, "\n{}", verdicts(results, &shown, look));
        }
    }
    if look.details || !results.header.space.controllers().is_empty() {
        text.push_str(&by_elevator(results, look));
    }
    if look.details {
        text.push_str(&put_back(results, look));
        text.push_str(&shares(results, look));
    }
    text.push_str(&front(results, look));
    text.push_str(&doubts(&results.doubts(), look));
    if let Some(best) = results.recommended().filter(|_| results.recommends()) {
        for (title, lines) in lasting(&best.setting, &results.header.baseline) {
            let _ = writeln!(text, "\n{title}");
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
        }
    }
    if let Some(next) = next {
        let _ = writeln!(text, "\n{:11}{next}", "next:");
    }
    text
}

fn heading(results: &TuneResults<'_>, elapsed_s: f64, look: Look) -> String {
    let header = results.header;
    let devices = std::slice::from_ref(&header.device);
    let mut text = subject(&header.workload, devices, header.machine.as_ref(), header.replay, look);
    let mut wanted = format!("goals: {}", results.goal_names());
    let constraints: Vec<&str> = header.constraints.iter().map(|constraint| constraint.text.as_str()).collect();
    if !constraints.is_empty() {
        let _ = write!(wanted, ", subject to {}", constraints.join(" and "));
    }
    let _ = writeln!(text, "{}", look.wrap(&wanted, "  "));
    let tunables: usize = header.space.elevators.iter().map(|elevator| elevator.dimensions.len()).sum();
    let elevators: Vec<&str> = header.space.elevators.iter().map(|elevator| elevator.defaults.name()).collect();
    let tried = format!(
        "The search tried {} of {} settings in {} runs ({tunables} tunables of {}). The best settings then ran {} times \
         with new seeds. The simulation of {} s of disk time took {} s.",
        results.settings,
        many(header.space.size()),
        results.search_runs,
        elevators.join(", "),
        results.confirm_runs,
        seconds(results.simulated_ns),
        significant(elapsed_s, 2)
    );
    let _ = writeln!(text, "{}", look.wrap(&tried, ""));
    text
}

/// Formats a large number with "thousand" or "million", or as a power of ten.
pub(super) fn many(number: u128) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{} thousand", number / 1000),
        1_000_000..1_000_000_000 => format!("{} million", number / 1_000_000),
        _ => format!("10^{}", number.ilog10()),
    }
}

/// Returns the indices of the standings that get a column: the baseline, the recommendation and the
/// Pareto front. Without a recommendation, adds the nearest setting.
pub(super) fn shown(results: &TuneResults<'_>) -> Vec<usize> {
    let mut shown = vec![0];
    shown.extend(results.best);
    shown.extend(results.front.iter().copied());
    if shown.iter().all(|&number| number == 0) && results.standings.len() > 1 {
        shown.push(1);
    }
    let mut seen = Vec::new();
    shown.retain(|number| {
        let new = !seen.contains(number);
        seen.push(*number);
        new
    });
    shown
}

/// Returns the measures that have a row: goals, constraints, and usual measures that differ.
fn rows(results: &TuneResults<'_>, shown: &[usize]) -> Vec<usize> {
    let header = results.header;
    let is_requested = |measure: usize| {
        measure < header.goals || header.constraints.iter().any(|constraint| constraint.measure == measure)
    };
    let usual = |measure: usize| USUAL.contains(&header.measures[measure].name.as_str());
    let differs = |measure: usize| {
        shown.iter().any(|&number| {
            let figure = results.standings[number].figures[measure].as_ref();
            figure.and_then(|figure| figure.comparison.as_ref()).is_some_and(|comparison| comparison.verdict.differs())
        })
    };
    (0..header.measures.len()).filter(|&measure| is_requested(measure) || usual(measure) && differs(measure)).collect()
}

fn heads(results: &TuneResults<'_>, rows: &[usize]) -> Vec<String> {
    let measures = || rows.iter().map(|&measure| &results.header.measures[measure]);
    let names = measures().map(|measure| measure.name.chars().count()).max().unwrap_or(0);
    let units = measures().map(|measure| measure.unit.len()).max().unwrap_or(0);
    measures().map(|measure| format!("{}   {:>units$}", left(&measure.name, names), measure.unit)).collect()
}

pub(super) fn figures(results: &TuneResults<'_>, shown: &[usize], look: Look) -> String {
    let rows = rows(results, shown);
    let cells: Vec<Vec<Cell>> = rows
        .iter()
        .map(|&measure| {
            let figure_of = |&number: &usize| {
                results.standings[number].figures[measure].as_ref().map(|figure| (figure.mean, figure.sd))
            };
            row(shown.iter().map(figure_of).collect())
        })
        .collect();
    let column = |(place, &number): (usize, &usize)| {
        let note = match number {
            0 => Some("(baseline)".to_owned()),
            _ if Some(number) == results.best => Some("(recommended)".to_owned()),
            _ => None,
        };
        figures_column(results.standings[number].label.clone(), note, cells.iter().map(|row| row[place].as_ref()))
    };
    let columns: Vec<Column> = shown.iter().enumerate().map(column).collect();
    set(&heads(results, &rows), &columns, look)
}

pub(super) fn verdicts(results: &TuneResults<'_>, shown: &[usize], look: Look) -> String {
    let rows = rows(results, shown);
    let cell = |standing: &Standing, measure: usize| {
        let comparison = standing.figures[measure].as_ref().and_then(|figure| figure.comparison.as_ref());
        let figure = results.header.measures[measure].figure();
        comparison.map_or_else(Default::default, |comparison| verdict(comparison, figure))
    };
    let columns: Vec<Column> = shown
        .iter()
        .filter(|number| **number != 0)
        .map(|&number| {
            let standing = &results.standings[number];
            let cells = rows.iter().map(|&measure| cell(standing, measure)).collect();
            Column { head: standing.label.clone(), note: None, cells }
        })
        .collect();
    let title = verdicts_title(&results.header.baseline.to_string(), results.header.equal_within_percent);
    format!("{}\n{}", look.wrap(&title, ""), set(&heads(results, &rows), &columns, look))
}

/// Returns the best confirmed setting of each elevator and of each controller.
fn by_elevator(results: &TuneResults<'_>, look: Look) -> String {
    let space = &results.header.space;
    let elevators: Vec<&str> = space.elevators.iter().map(|elevator| elevator.defaults.name()).collect();
    let uses = |standing: &Standing| Controller::used_by(&standing.setting);
    let bare = |standing: &&Standing| space.controllers().is_empty() || uses(standing).is_empty();
    let others = || results.standings.iter().skip(1);
    let best = |name: &&str| others().filter(bare).find(|standing| standing.setting.name() == *name);
    let mut found: Vec<&Standing> = elevators.iter().filter_map(best).collect();
    for controller in space.controllers() {
        let best = others().find(|standing| uses(standing).contains(&controller));
        found.extend(best.filter(|standing| found.iter().all(|known| known.label != standing.label)));
    }
    if found.is_empty() || elevators.len() < 2 && space.controllers().is_empty() {
        return String::new();
    }
    let with = if space.controllers().is_empty() { "" } else { ", and with each controller" };
    let mut text = format!("\nbest setting of each scheduler{with}:\n");
    for standing in found {
        let broken: Vec<String> = results.broken_by(standing).iter().map(ToString::to_string).collect();
        let broken = if broken.is_empty() { String::new() } else { format!("; breaks {}", broken.join(" and ")) };
        let line = format!("  {}   {}{broken}", standing.label, results.against_baseline(standing));
        let _ = writeln!(text, "{}", look.wrap(&line, "    "));
    }
    text
}

/// Returns the value of each change of the recommended setting.
fn put_back(results: &TuneResults<'_>, look: Look) -> String {
    let changes: Vec<&PutBack> = results.put_back.iter().filter(|change| !change.comparisons.is_empty()).collect();
    if changes.is_empty() {
        return String::new();
    }
    let mut text = "\neffect of each changed tunable: the result if only this tunable has its default\n".to_owned();
    for change in changes {
        let sentence = |(goal, comparison): (usize, &Comparison)| {
            let measure = &results.header.measures[goal];
            format!("{} {}", measure.name, measure.describe(comparison))
        };
        let all: Vec<String> = change.comparisons.iter().enumerate().map(sentence).collect();
        let line = format!("  {}={}   {}", change.name, change.default_text(), all.join(", "));
        let _ = writeln!(text, "{}", look.wrap(&line, "    "));
    }
    text
}

/// Returns the significant shares of the tunables, by goal.
fn shares(results: &TuneResults<'_>, look: Look) -> String {
    let mut text = String::new();
    for goal in 0..results.header.goals {
        let shares: Vec<_> = results.shares.iter().filter(|share| share.goal == goal).collect();
        if shares.is_empty() {
            continue;
        }
        let name = &results.header.measures[goal].name;
        let title = format!("how much each tunable contributes to the differences between settings, for {name}:");
        let _ = writeln!(text, "\n{}", look.wrap(&title, "  "));
        let width = shares.iter().map(|share| share.name.len()).max().unwrap_or(0);
        for share in shares {
            let (low, high) = share.interval_percent;
            let _ = writeln!(text, "  {:width$}  {:>3.0} % ({low:.0} to {high:.0} %)", share.name, share.percent);
        }
    }
    text
}

/// Returns the text about the settings on the Pareto front of several goals. No other setting beats
/// a setting on the front in all goals at once. The text is empty if the front has fewer than two
/// settings.
fn front(results: &TuneResults<'_>, look: Look) -> String {
    if results.front.len() < 2 {
        return String::new();
    }
    let mut text = format!(
        "\nsettings to choose from; no other setting beats any of these in all goals at once ({}):\n",
        results.goal_names()
    );
    for &number in &results.front {
        let standing = &results.standings[number];
        let sentence = if number == 0 { "the baseline".to_owned() } else { results.against_baseline(standing) };
        let _ = writeln!(text, "{}", look.wrap(&format!("  {}   {sentence}", standing.label), "    "));
    }
    text
}
