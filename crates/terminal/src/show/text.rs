//! Results as text: the decision, then metrics, verdicts and doubts.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use iosched_advise::tune::commands_of;
use iosched_lab::{
    Comparison, DeviceRecord, Figure, FigureResults, Header, MachineRecord, Verdict, WorkloadKind, WorkloadRecord,
    grouped, marked, significant,
};
use iosched_sim::Replay;

use super::closing::{decision, doubts, paragraphs};
use super::columns::{figures_column, heads};
use super::grid::{Column, Look, Tone, set};
use super::overview::{by_device, wins_where};
use super::{Cell, Page, Sheet, cells};

/// Returns the whole page. With several devices and without details, only the overview is shown.
pub fn text(page: &Page<'_>, look: Look) -> String {
    let look = look.no_wider_than_prose();
    let mut text = match (&page.overview, page.sheets.first()) {
        (Some(overview), _) => {
            let lines: Vec<String> =
                overview.sentences.iter().chain(&page.input).chain(&overview.judged).cloned().collect();
            paragraphs(&lines, look)
        }
        (None, Some(sheet)) => {
            let decided = &sheet.results.decision;
            decision(decided, &commands_of(decided, page.header), page.input.as_deref(), look)
        }
        (None, None) => String::new(),
    };
    text.push_str(&heading(page, look));
    // The metrics of one setting on several devices are side by side.
    let side_by_side = page.overview.is_some() && page.header.settings.len() == 1;
    if side_by_side {
        let _ = write!(text, "\n{}", by_device(page, look));
    } else if let Some(overview) = &page.overview {
        let _ = write!(text, "\n{}", wins_where(page, overview, look));
    }
    for sheet in page.sheets.iter().filter(|_| look.details || page.overview.is_none()) {
        if !side_by_side {
            text.push('\n');
            if page.overview.is_some() {
                let about = format!("{}: {}", sheet.device.name, sheet.device.about);
                let _ = writeln!(text, "{}\n", look.wrap(about.trim_end_matches([':', ' ']), "  "));
            }
            text.push_str(&figures(sheet, look));
        }
        if page.header.settings.len() > 1 && page.rounds() > 1 {
            let _ = write!(text, "\n{}", verdicts(sheet, look));
        }
        if look.details {
            text.push_str(&each(sheet, look));
        }
    }
    text.push_str(&doubts(&page.ranked_doubts(), look));
    if page.records.is_some() || page.next.is_some() {
        text.push('\n');
    }
    if let Some(records) = &page.records {
        let _ = writeln!(text, "{:11}{}", "records:", records.display());
    }
    if let Some(next) = &page.next {
        let _ = writeln!(text, "{:11}{next}", "next:");
    }
    text
}

/// Returns two columns with the properties of the comparison.
fn heading(page: &Page<'_>, look: Look) -> String {
    let Header { workload, devices, machine, replay, runs, .. } = page.header;
    let mut text = subject(workload, devices, machine.as_ref(), *replay, look);
    let rounds = page.rounds();
    let each = if devices.len() > 1 { "of each setting on each device" } else { "each" };
    let measured = devices.iter().any(|device| device.measured.is_some());
    let paired = if measured { "taking turns in random order" } else { "paired by seed" };
    let times = match rounds {
        1 => format!("1 run {each}"),
        n if n < *runs && page.header.until_sure_percent.is_none() => format!("{n} of {runs} runs {each}, {paired}"),
        n => format!("{n} runs {each}, {paired}"),
    };
    let time = seconds(page.sheets.iter().map(|sheet| sheet.results.simulated_ns).sum());
    let what = if measured { "run on the device" } else { "of disk time simulated" };
    let elapsed = page.elapsed_s.map_or(String::new(), |s| format!(" in {} s", significant(s, 2)));
    let _ = writeln!(text, "{}", look.wrap(&format!("{times}; {time} s {what}{elapsed}"), ""));
    let alone_ns: u64 = page.sheets.iter().map(|sheet| sheet.alone_ns).sum();
    if alone_ns > 0 {
        let alone = seconds(alone_ns);
        let line = format!(
            "in {alone} s of this time, each process ran alone, to measure fairness (skip: \
             --no-fairness)"
        );
        let _ = writeln!(text, "{}", look.wrap(&line, ""));
    }
    text
}

/// Returns one line about the workload, one about the devices and one about the machine.
pub(super) fn subject(
    workload: &WorkloadRecord,
    devices: &[DeviceRecord],
    machine: Option<&MachineRecord>,
    replay: Replay,
    look: Look,
) -> String {
    let mut about = Vec::new();
    about.extend(workload.is_part().then(|| "a part of the recording".to_owned()));
    about.extend(workload.requests.map(|n| format!("{} requests", grouped(n))));
    about.extend(workload.reads.map(|n| format!("{} reads", grouped(n))));
    about.push(format!("{} {}", grouped(workload.tasks), workload.kind.task_word(workload.tasks)));
    about.extend(workload.span_ns.map(|ns| format!("{} s recorded", seconds(ns))));
    let mut rows = vec![(workload.name.as_str(), about.join(", "))];
    rows.extend(devices.iter().map(|device| (device.name.as_str(), device.about.clone())));
    rows.extend(machine.map(|machine| (machine.name.as_str(), machine.about.clone())));
    if workload.kind == WorkloadKind::Trace {
        rows.push(match replay {
            Replay::Closed => (
                "closed replay",
                "processes keep their think times and the order of their I/Os, and wait for I/O".to_owned(),
            ),
            Replay::Open { speed: 1.0 } => ("open replay", "I/Os arrive at their recorded times".to_owned()),
            Replay::Open { speed } => ("open replay", format!("I/Os arrive {speed} times as fast as in the recording")),
        });
    }
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).max(17);
    let mut text = String::new();
    for (name, about) in rows {
        let indent = " ".repeat(width + 3);
        let _ = writeln!(text, "{}", look.wrap(&format!("{name:width$}   {about}"), &indent));
    }
    text
}

/// Formats seconds with three significant digits and grouped thousands.
pub(super) fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 1000.0 { significant(seconds, 3) } else { grouped(seconds.round() as u64) }
}

/// Returns the metrics that have a row: all metrics with details, otherwise the important ones.
fn figures_shown<'s>(sheet: &'s Sheet<'_>, look: Look) -> Vec<&'s FigureResults> {
    let is_shown = |results: &&FigureResults| look.details || results.shown;
    sheet.results.figures.iter().filter(is_shown).collect()
}

fn row_heads(figures: &[&FigureResults]) -> Vec<String> {
    heads(figures.iter().map(|results| (results.figure, results.label.as_str())))
}

fn head_of(header: &Header, setting: usize) -> (String, Option<String>) {
    let baseline = (setting == header.baseline && header.settings.len() > 1).then(|| "(baseline)".to_owned());
    (header.settings[setting].label.clone(), baseline)
}

fn figures(sheet: &Sheet<'_>, look: Look) -> String {
    let table = |figures: &Vec<&FigureResults>| {
        let rows: Vec<Vec<Cell>> = figures.iter().map(|results| cells(results)).collect();
        let column = |setting: usize| {
            let (head, note) = head_of(sheet.header, setting);
            figures_column(head, note, rows.iter().map(|row| row[setting].as_ref()))
        };
        let columns: Vec<Column> = (0..sheet.header.settings.len()).map(column).collect();
        set(&row_heads(figures), &columns, look)
    };
    let figures = figures_shown(sheet, look);
    tables(&figures).iter().map(table).collect::<Vec<_>>().join("\n") + &more_tasks(sheet, &figures, look)
}

/// Splits the metrics into tables. Metrics of tasks have a separate table, because their names may
/// be long. If a metric of a task is a headline, all metrics are in one table.
fn tables<'r>(figures: &[&'r FigureResults]) -> Vec<Vec<&'r FigureResults>> {
    let of_task = |results: &FigureResults| results.figure.task().is_some();
    if figures.iter().any(|results| of_task(results) && results.headline) {
        return vec![figures.to_vec()];
    }
    let (tasks, others): (Vec<_>, Vec<_>) = figures.iter().copied().partition(|results| of_task(results));
    [others, tasks].into_iter().filter(|rows| !rows.is_empty()).collect()
}

/// Returns a line about the tasks without a row. Empty if all tasks have a row.
fn more_tasks(sheet: &Sheet<'_>, figures: &[&FigureResults], look: Look) -> String {
    let (with_figures, all) = sheet.results.task_names;
    let shown = figures.iter().filter_map(|results| results.figure.task()).collect::<BTreeSet<_>>().len();
    if all < 2 || shown >= all {
        return String::new();
    }
    let kind = sheet.header.workload.kind;
    let all_shown = kind.task_word(with_figures as u64);
    let more =
        if shown < with_figures { format!("--details shows {with_figures} {all_shown}, ") } else { String::new() };
    let what = kind.task_word(all as u64 - shown as u64);
    let one = kind.task_word(1);
    let text = format!("and {} more {what}: {more}--goal \"p99(NAME)\" shows the {one} NAME", all - shown);
    look.wrap(&text, "  ") + "\n"
}

fn verdicts(sheet: &Sheet<'_>, look: Look) -> String {
    let header = sheet.header;
    let figures = figures_shown(sheet, look);
    let table = |figures: &Vec<&FigureResults>| {
        let others = (0..header.settings.len()).filter(|&setting| setting != header.baseline);
        let column = |setting: usize| Column {
            head: header.settings[setting].label.clone(),
            note: None,
            cells: figures.iter().map(|results| verdict_cell(results, setting)).collect(),
        };
        set(&row_heads(figures), &others.map(column).collect::<Vec<_>>(), look)
    };
    let baseline = &header.settings[header.baseline].label;
    let title = verdicts_title(baseline, header.equal_within_percent);
    // Without details, only the first table is shown. The table of tasks is a detail.
    let all = tables(&figures);
    let shown = if look.details { all.len() } else { 1 };
    let tables: Vec<String> = all.iter().take(shown).map(table).collect();
    format!("{}\n{}", look.wrap(&title, ""), tables.join("\n"))
}

/// Returns the title of a table of verdicts.
pub(super) fn verdicts_title(baseline: &str, equal_within_percent: f64) -> String {
    let baseline = marked(baseline);
    format!("difference from {baseline} (95 % confidence for all rows; equal: within {equal_within_percent} %):")
}

fn verdict_cell(results: &FigureResults, setting: usize) -> (String, Tone) {
    let comparison = results.settings[setting].as_ref().and_then(|figure| figure.comparison.as_ref());
    comparison.map_or((String::new(), Tone::Plain), |comparison| verdict(comparison, results.figure))
}

pub(super) fn verdict(comparison: &Comparison, figure: Figure) -> (String, Tone) {
    let tone = match comparison.verdict {
        Verdict::Better => Tone::Good,
        Verdict::Worse => Tone::Bad,
        Verdict::More | Verdict::Less => Tone::Plain,
        Verdict::Equal | Verdict::CannotTell => Tone::Faint,
    };
    (comparison.describe(figure.unit()), tone)
}

/// Returns one sentence about each setting of one device, compared with the baseline.
fn each(sheet: &Sheet<'_>, look: Look) -> String {
    let header = sheet.header;
    let mut text = String::new();
    if header.settings.len() > 1 {
        let _ = writeln!(text, "\nagainst {}:", marked(&header.settings[header.baseline].label));
        let width = header.settings.iter().map(|setting| setting.label.chars().count()).max().unwrap_or(0).min(30);
        for (number, setting) in header.settings.iter().enumerate() {
            if let Some(sentence) = sheet.results.sentence(header, number) {
                let indent = " ".repeat(width + 4);
                let _ = writeln!(text, "{}", look.wrap(&format!("  {:width$}  {sentence}", setting.label), &indent));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use iosched_disk::Profile;
    use iosched_lab::{AloneRecord, Experiment, Record, Records, RunRecord};
    use iosched_sim::{RunResult, TaskResult};
    use iosched_workload::{TaskSet, Workload};

    const EXPECTED: &str = include_str!("../../tests/page.txt");
    const EXPECTED_BRIEF: &str = include_str!("../../tests/page-brief.txt");
    const EXPECTED_DEVICES_BRIEF: &str = include_str!("../../tests/page-devices-brief.txt");
    const EXPECTED_NARROW: &str = include_str!("../../tests/page-narrow.txt");
    const EXPECTED_DEVICES: &str = include_str!("../../tests/page-devices.txt");

    /// Returns artificial records, so that the page does not depend on the elevators.
    fn records(devices: &[&str]) -> Records {
        let tasks = "name = \"two\"\n[[tasks]]\npid = 1\npattern = \"seq\"\ntotal = 100\n[[tasks]]\npid = 2\npattern = \"random\"\ntotal = 100\n";
        let workload = Workload::Tasks(TaskSet::parse("two.toml", tasks).unwrap().into());
        let settings = ["deadline", "noop", "cfq:slice_idle=0,quantum=32"];
        let settings = settings.map(|setting| setting.parse().unwrap()).to_vec();
        let mut experiment = Experiment::new(workload, Profile::named(devices[0]).unwrap(), settings).unwrap();
        devices[1..].iter().for_each(|name| experiment.add_device(Profile::named(name).unwrap()).unwrap());
        experiment.runs = 3;
        let header = experiment.header();
        let mut records = Records::new(header);
        for (device, setting) in (0..devices.len()).flat_map(|device| (0..3).map(move |setting| (device, setting))) {
            for run in 0..3 {
                // On the second device, all settings are equally fast, and the third setting is the
                // fairest.
                let ms = if device == 0 { [10, 11, 8][setting] } else { 2 };
                let spread = if device == 0 { [1, 1, 4] } else { [4, 4, 1] }[setting];
                let result = result(ms, u64::from(run), spread);
                records.add(Record::Run(Box::new(RunRecord {
                    device,
                    setting,
                    run,
                    seed: run.into(),
                    turn: None,
                    result,
                })));
            }
            for task in 0..2 {
                let result = result(5, 0, 1).tasks.swap_remove(task);
                records.add(Record::Alone(Box::new(AloneRecord { device, setting, task, seed: 0, result })));
            }
        }
        records
    }

    fn result(ms: u64, run: u64, spread: u64) -> RunResult {
        const MS: u64 = 1_000_000;
        let mut result = RunResult {
            finished_ns: (600 * ms + 7 * run) * MS * 10,
            ios: 200,
            bytes_read: 200_000_000,
            device_busy_ns: 500 * ms * MS * 10,
            ..RunResult::default()
        };
        for pid in 1..=2 {
            let mut task = TaskResult { pid, ios: 100, ..TaskResult::default() };
            for io in 0..100 {
                let ns = (ms * MS + run * 10_000 + io * 1000) * if pid == 1 { spread } else { 1 };
                task.latency.record(ns);
                result.latency.reads.record(ns);
            }
            result.tasks.push(task);
        }
        result
    }

    fn check(devices: &[&str], look: Look, expected: &str, file: &str) {
        let records = records(devices);
        let page = Page::of(&records, Some(0.8), None, Some("iosched compare --help".to_owned()));
        let found = text(&page, look);
        if std::env::var_os("IOSCHED_RERECORD").is_some() {
            std::fs::write(format!("{}/tests/{file}", env!("CARGO_MANIFEST_DIR")), &found).unwrap();
        } else {
            assert_eq!(
                found, expected,
                "to record the page again: IOSCHED_RERECORD=1 cargo test -p iosched-terminal\n{found}"
            );
        }
    }

    #[test]
    fn detailed_page_matches_recorded_text() {
        check(&["sata-7200"], Look { width: None, colours: false, details: true }, EXPECTED, "page.txt");
    }

    #[test]
    fn narrow_page_fits_60_columns_except_commands() {
        check(
            &["sata-7200"],
            Look { width: Some(60), colours: false, details: true },
            EXPECTED_NARROW,
            "page-narrow.txt",
        );
        // Commands are not wrapped.
        let is_command = |line: &str| ["next:", "  iosched ", "  # "].iter().any(|start| line.starts_with(start));
        let tables = EXPECTED_NARROW.lines().filter(|line| !is_command(line));
        assert_eq!(tables.filter(|line| line.chars().count() > 60).collect::<Vec<_>>(), [] as [&str; 0]);
    }

    #[test]
    fn brief_page_matches_recorded_text() {
        let look = Look { width: None, colours: false, details: false };
        check(&["sata-7200"], look, EXPECTED_BRIEF, "page-brief.txt");
        check(&["sata-7200", "sata-ssd"], look, EXPECTED_DEVICES_BRIEF, "page-devices-brief.txt");
    }

    #[test]
    fn page_of_several_devices_matches_recorded_text() {
        let look = Look { width: None, colours: false, details: true };
        check(&["sata-7200", "sata-ssd"], look, EXPECTED_DEVICES, "page-devices.txt");
    }
}
