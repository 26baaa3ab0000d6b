//! Reproduced experiments as text: published and simulated metrics, goals, and a summary.

use std::fmt::Write as _;

use iosched_lab::reproduce::Judgement;
use iosched_lab::reproduce::{
    Cell, Experiment, ExperimentResults, GoalOutcome, Known, ReproductionHeader, Row, Summary,
};
use iosched_lab::{Decimals, grouped, significant};

use super::Cell as Shown;
use super::columns::figures_column;
use super::grid::{Column, Look, Tone, set};

/// Returns the text of all experiments and their summary.
pub fn text(header: &ReproductionHeader, results: &[ExperimentResults<'_>], elapsed_s: f64, look: Look) -> String {
    let mut text = String::new();
    let (run, not_run): (Vec<_>, Vec<_>) = results.iter().partition(|outcome| outcome.was_run());
    for outcome in run {
        let _ = writeln!(text, "{}\n", experiment(header, outcome, look));
    }
    let summary = Summary::of(results, header.runs);
    if !not_run.is_empty() {
        let names: Vec<&str> = not_run.iter().map(|outcome| outcome.experiment.name.as_str()).collect();
        let names = names.join(", ");
        let without = format!("no case of these experiments ran under all settings, so they have no result: {names}");
        let _ = writeln!(text, "{}", look.wrap(&without, "  "));
    }
    if results.len() > 1 || summary.experiments_run == 0 {
        let _ = writeln!(text, "{}", look.wrap(&format!("all together: {}", summary.sentence()), "  "));
    }
    let _ = writeln!(text, "{}", look.wrap(&pace(summary.simulated_ns, elapsed_s), "  "));
    text
}

/// Formats the pace, such as "1,234 s simulated in 10 s: 123 times as fast as real time".
fn pace(simulated_ns: u64, elapsed_s: f64) -> String {
    let simulated_s = simulated_ns as f64 / 1e9;
    let times = match simulated_s / elapsed_s.max(1e-9) {
        times if times >= 1000.0 => grouped(times.round() as u64),
        times => significant(times, 2),
    };
    let simulated = grouped(simulated_s.round() as u64);
    format!("{simulated} s simulated in {} s: {times} times as fast as real time", significant(elapsed_s, 2))
}

fn experiment(header: &ReproductionHeader, results: &ExperimentResults<'_>, look: Look) -> String {
    let experiment = results.experiment;
    let mut text = format!("{}\n", look.wrap(&format!("{}: {}", experiment.name, experiment.title), "  "));
    let _ = writeln!(text, "{}", look.wrap(&format!("  {}", experiment.about), "  "));
    let times = results.runs_in_words(header.runs);
    let _ = writeln!(
        text,
        "{}\n",
        look.wrap(&format!("  on {}; iosched compares runs with the same seed: {times}", experiment.machine), "  ")
    );
    text.push_str(&table(results, look));
    if results.rows.iter().any(Row::is_short) {
        let short = "◦ shorter than a minute: the authors of the experiment quantum exclude such tests";
        let _ = writeln!(text, "{}", look.wrap(short, "  "));
    }
    if results.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.held_out) {
        let _ = writeln!(text, "{}", look.wrap("† published result that was not used to make the models", "  "));
    }
    if !results.goals.is_empty() {
        text.push_str("\ngoals (ratios):\n");
        text.push_str(&goals(results, look));
    }
    let sentence = Summary::of(std::slice::from_ref(results), header.runs).sentence();
    let _ = write!(text, "\n{}", look.wrap(&format!("{}: {sentence}", experiment.name), "  "));
    text
}

/// Returns a table with a line per test and setting.
fn table(results: &ExperimentResults<'_>, look: Look) -> String {
    let mut lines = Lines::default();
    results.rows.iter().for_each(|row| lines.add(results, row));
    lines.set(look)
}

/// The columns of the table.
#[derive(Default)]
struct Lines {
    heads: Vec<[String; 3]>,
    published: Vec<Shown>,
    ours: Vec<Shown>,
    ratios: Vec<(String, Tone)>,
    bands: Vec<(String, Tone)>,
    published_says: Vec<(String, Tone)>,
    ours_says: Vec<(String, Tone)>,
}

impl Lines {
    fn add(&mut self, results: &ExperimentResults<'_>, row: &Row) {
        let experiment = results.experiment;
        let known = row.cells.iter().flat_map(|cell| [cell.published, simulated(cell)]).flatten();
        let decimals = Decimals::of(&known.map(|known| (known.mean, known.sd)).collect::<Vec<_>>());
        let shown =
            |known: Option<Known>| known.map(|known| (decimals.show(known.mean), known.sd.map(|sd| decimals.show(sd))));
        for (setting, cell) in row.cells.iter().enumerate() {
            let first = |text: String| if setting == 0 { text } else { String::new() };
            let mark = if row.is_short() { " ◦" } else { "" };
            let name = format!("{}/{}{mark}", experiment.cases[row.case].name, row.test);
            self.heads.push([
                first(name),
                first(row.unit.clone()),
                experiment.settings[setting].label.clone() + held_out(cell),
            ]);
            self.published.push(shown(cell.published));
            self.ours.push(shown(simulated(cell)));
            self.ratios.push((cell.ratio().map_or_else(String::new, |ratio| significant(ratio, 3)), near(cell)));
            let band = cell
                .band()
                .map_or_else(String::new, |(low, high)| format!("{} to {}", decimals.show(low), decimals.show(high)));
            self.bands.push((band, Tone::Faint));
            let is_baseline = setting == experiment.baseline();
            self.published_says.push(verdict(cell.verdict_published, is_baseline, Tone::Faint));
            let (tone, differs) = match cell.same() {
                Some(false) => (Tone::Bad, "  (not the same)"),
                Some(true) => (Tone::Good, ""),
                None => (Tone::Plain, ""),
            };
            let (verdict, tone) = match results.rounds[row.case] {
                0 => ("not run".to_owned(), Tone::Faint),
                _ => verdict(cell.verdict_simulated, is_baseline, tone),
            };
            let otherwise: String = cell
                .otherwise()
                .filter_map(|other| Some(format!("; {}: {}", other.assumption, words(other.verdict?))))
                .collect();
            let outcomes = cell.outcomes().map_or_else(String::new, |outcomes| format!("; {}", outcomes.describe("")));
            self.ours_says.push((verdict + differs + &outcomes + &otherwise, tone));
        }
    }

    fn set(self, look: Look) -> String {
        let width = |part: usize| self.heads.iter().map(|head| head[part].chars().count()).max().unwrap_or(0);
        let widths: [usize; 3] = std::array::from_fn(width);
        let head = |[name, unit, setting]: &[String; 3]| {
            format!("{name:0$}   {unit:>1$}   {setting:2$}", widths[0], widths[1], widths[2])
        };
        let heads: Vec<String> = self.heads.iter().map(head).collect();
        let column = |head: &str, cells| Column { head: head.to_owned(), note: None, cells };
        let figure =
            |head: &str, cells: &[Shown]| figures_column(head.to_owned(), None, cells.iter().map(Option::as_ref));
        let mut columns = vec![
            figure("published", &self.published),
            figure("simulated", &self.ours),
            column("ratio", self.ratios),
            column("published verdict", self.published_says),
            column("simulated verdict", self.ours_says),
        ];
        if self.bands.iter().any(|(band, _)| !band.is_empty()) {
            columns.insert(3, column("over unknown values", self.bands));
        }
        set(&heads, &columns, look)
    }
}

/// Returns the mark of results that were not used to make the models.
fn held_out(cell: &Cell) -> &'static str {
    if cell.held_out { " †" } else { "" }
}

fn simulated(cell: &Cell) -> Option<Known> {
    cell.simulated.as_ref().map(|simulation| simulation.known)
}

/// Returns the tone of a ratio. Ratios that differ too much from 1 are marked.
fn near(cell: &Cell) -> Tone {
    if cell.is_near() == Some(false) { Tone::Bad } else { Tone::Plain }
}

fn verdict(verdict: Option<Judgement>, is_baseline: bool, tone: Tone) -> (String, Tone) {
    match verdict {
        _ if is_baseline => (String::new(), Tone::Plain),
        Some(verdict) => (words(verdict), tone),
        None => ("-".to_owned(), Tone::Faint),
    }
}

fn words(verdict: Judgement) -> String {
    verdict.id().replace('_', " ")
}

/// Returns the assumed values that the documents do not give,
/// and the values that were fitted to published results.
pub fn assumptions(experiments: &[Experiment], look: Look) -> String {
    let mut text = String::new();
    for (number, experiment) in experiments.iter().enumerate() {
        let _ = writeln!(text, "{}{}: {}", if number > 0 { "\n" } else { "" }, experiment.name, experiment.title);
        for unknown in &experiment.unknowns {
            let labels: Vec<&str> = unknown.values.iter().map(|value| value.label.as_str()).collect();
            let taken = labels.first().copied().unwrap_or_default();
            let others = labels.get(1..).unwrap_or_default().join(", ");
            let line = format!(
                "unknown value: {}; iosched assumes {taken}, and repeats the first run with \
                 {others}",
                unknown.name
            );
            let _ = writeln!(text, "{}", look.wrap(&line, "    "));
            let _ = writeln!(text, "{}", look.wrap(&format!("    {}", unknown.about), "    "));
            let _ = writeln!(text, "{}", look.wrap(&format!("    cases: {}", unknown.cases.join(", ")), "    "));
        }
        for fitted in &experiment.fitted {
            let line = format!("  fitted:  {}: {}, to {}", fitted.parameter, fitted.value, fitted.to);
            let _ = writeln!(text, "{}", look.wrap(&line, "    "));
        }
        if experiment.unknowns.is_empty() && experiment.fitted.is_empty() {
            let _ = writeln!(text, "  nothing");
        }
    }
    let (unknown, fitted) = (
        experiments.iter().map(|experiment| experiment.unknowns.len()).sum::<usize>(),
        experiments.iter().map(|experiment| experiment.fitted.len()).sum::<usize>(),
    );
    let _ = writeln!(
        text,
        "\n{}",
        look.wrap(
            &format!(
                "{unknown} unknown values, {fitted} fitted values. The profiles of machines and disks contain \
                 other assumptions; a comment beside each value names them."
            ),
            "  "
        )
    );
    text
}

fn goals(results: &ExperimentResults<'_>, look: Look) -> String {
    let ratio = |ratio: Option<f64>| ratio.map_or_else(|| "-".to_owned(), |ratio| significant(ratio, 2));
    let mut text = String::new();
    for (goal, GoalOutcome { published, simulated, met }) in &results.goals {
        let (verdict, tone) = match met {
            Some(true) => ("met   ", Tone::Good),
            Some(false) => ("missed", Tone::Bad),
            None => ("-     ", Tone::Faint),
        };
        let rest =
            format!("{}: {}, published {}, wanted {}", goal.about, ratio(*simulated), ratio(*published), goal.bounds());
        let wrapped = look.wrap(&format!("          {rest}"), "          ");
        let _ = writeln!(text, "  {}{}", look.paint(verdict, tone), &wrapped[8..]);
    }
    text
}

/// Returns the experiments with their settings and cases.
pub fn list(experiments: &[Experiment]) -> String {
    let mut text = String::new();
    for (number, experiment) in experiments.iter().enumerate() {
        if number > 0 {
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "{}: {}\n  {}\n  on {}",
            experiment.name, experiment.title, experiment.about, experiment.machine
        );
        for setting in &experiment.settings {
            let all: Vec<String> = setting.schedulers.iter().map(ToString::to_string).collect();
            let baseline = if setting.label == experiment.baseline { "  (baseline)" } else { "" };
            let _ = writeln!(text, "  {:20}{}{baseline}", setting.label, all.join(" and "));
        }
        for case in &experiment.cases {
            let background = case.background.as_ref().map_or_else(String::new, |other| format!(" & {other}"));
            let _ = writeln!(text, "    {:26}{}{background}  ({})", case.name, case.command(), case.devices.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_lab::reproduce::CaseRun;
    use iosched_workload::app::{Better, Figure, Report};

    const EXPECTED: &str = include_str!("../../tests/page-reproduction.txt");

    /// Returns artificial runs: one case with the published values, one case with a different
    /// verdict, and one case that was not run.
    fn runs() -> Vec<CaseRun> {
        let run = |setting: &str, number: u32, seconds: f64| {
            let figure = |unit: &'static str, value, better| Figure {
                name: "write".to_owned(),
                unit: unit.into(),
                value,
                better,
            };
            let figures = vec![figure("s", seconds, Better::Lower), figure("MB/s", 1024.0 / seconds, Better::Higher)];
            let report = Report { figures, series: Vec::new() };
            CaseRun::new("dd", "write", setting, (number, 1), 12_000_000_000, &report)
        };
        let of_round = |number: u32| {
            let late = f64::from(number) * 0.05;
            [run("noop", number, 12.5 + late), run("deadline", number, 9.9 + late), run("cfq", number, 10.4 + late)]
        };
        (0..3).flat_map(of_round).collect()
    }

    #[test]
    fn page_matches_recorded_text() {
        let experiments = [Experiment::named("dd").unwrap()];
        let runs = runs();
        let results = experiments.each_ref().map(|experiment| ExperimentResults::of(experiment, &runs));
        let header = ReproductionHeader {
            version: "0.1.0".to_owned(),
            command: "iosched reproduce dd".to_owned(),
            experiments: vec!["dd".to_owned()],
            case: None,
            seed: 1,
            runs: 3,
        };
        let found = text(&header, &results, 0.5, Look { width: None, colours: false, details: true });
        if std::env::var_os("IOSCHED_RERECORD").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/page-reproduction.txt");
            std::fs::write(file, &found).unwrap();
        } else {
            assert_eq!(
                found, EXPECTED,
                "to record the page again: IOSCHED_RERECORD=1 cargo test -p iosched-terminal\n{found}"
            );
        }
    }
}
