//! The table of processes: the work of each process, and its latency under every setting.

use iosched_lab::{grouped, significant, stat};
use iosched_sim::Histogram;
use maud::{Markup, html};

use super::parts::name;
use super::units::bytes;
use super::view::View;

const ROWS_MAX: usize = 40;

/// Results of one or several processes under one setting, over all complete runs.
#[derive(Clone, Debug, Default)]
struct Served {
    runs: u64,
    ios: u64,
    bytes: u64,
    latency: Histogram,
    slowdown: Option<f64>,
}

impl Served {
    fn ios_a_run(&self) -> f64 {
        self.ios as f64 / self.runs.max(1) as f64
    }

    fn bytes_a_run(&self) -> f64 {
        self.bytes as f64 / self.runs.max(1) as f64
    }
}

/// A row of the table: a process, and its results by setting.
struct Row {
    name: String,
    pid: Option<u32>,
    ioprio: String,
    settings: Vec<Served>,
}

impl Row {
    fn ios(&self) -> u64 {
        self.settings.iter().map(|served| served.ios).sum()
    }

    /// Returns whether the process did the same work under every setting. One column is then
    /// enough.
    fn alike(&self) -> bool {
        let work = |served: &Served| (served.ios, served.bytes, served.runs);
        self.settings.windows(2).all(|pair| work(&pair[0]) == work(&pair[1]))
    }
}

pub(crate) fn section(view: &View<'_>) -> Markup {
    let mut rows = rows(view);
    let idle = rows.iter().filter(|row| row.ios() == 0).count();
    rows.retain(|row| row.ios() > 0);
    rows.sort_by_key(|row| (std::cmp::Reverse(row.ios()), row.pid));
    if rows.is_empty() {
        return html! { p .quiet { "No process completed an I/O in a complete round." } };
    }
    let rows_shown = if rows.len() <= ROWS_MAX + 1 { rows.len() } else { ROWS_MAX };
    let rest = rows.split_off(rows_shown);
    if !rest.is_empty() {
        rows.push(together(&rest));
    }
    let alike = rows.iter().all(Row::alike);
    html! {
        p .legend {
            "Latencies are in ms, over all runs. I/Os and bytes are means per run. The slowdown is the mean \
                latency while the other processes run, divided by the mean latency while the process runs alone. – marks \
             a process that has too few I/Os, or did not run alone."
            @if idle > 0 { " " (grouped(idle as u64)) " more without any I/O." }
        }
        div .scroll tabindex="0" {
            table .processes {
                (head(view, alike))
                tbody { @for row in &rows { (line(row, alike)) } }
            }
        }
    }
}

fn rows(view: &View<'_>) -> Vec<Row> {
    let runs: Vec<_> = view.settings.iter().map(|setting| view.records.complete_runs(setting.number)).collect();
    let tasks = runs.iter().flatten().map(|run| run.result.tasks.len()).max().unwrap_or(0);
    let row = |task: usize| {
        let who = runs.iter().flatten().find_map(|run| run.result.tasks.get(task));
        let settings = runs.iter().enumerate().map(|(setting, runs)| {
            let mut served =
                Served { runs: runs.len() as u64, slowdown: slowdown(view, setting, task), ..Served::default() };
            for task_result in runs.iter().filter_map(|run| run.result.tasks.get(task)) {
                served.ios += task_result.ios;
                served.bytes += task_result.bytes_read + task_result.bytes_written;
                served.latency.merge(&task_result.latency);
            }
            served
        });
        Row {
            name: who.map_or_else(String::new, |who| who.name.trim().to_owned()),
            pid: who.map(|who| who.pid),
            ioprio: who.map_or_else(String::new, |who| who.ioprio.clone()),
            settings: settings.collect(),
        }
    };
    (0..tasks).map(row).collect()
}

/// Returns the mean of the runs' slowdowns.
fn slowdown(view: &View<'_>, setting: usize, task: usize) -> Option<f64> {
    let column = view.fairness.tasks.iter().position(|&counted| counted == task)?;
    let runs = view.fairness.slowdowns.get(setting)?;
    let values: Vec<f64> = runs.iter().filter_map(|run| run.get(column).copied()).collect();
    (!values.is_empty()).then(|| stat::mean(&values))
}

fn together(rows: &[Row]) -> Row {
    let mut settings: Vec<Served> =
        rows[0].settings.iter().map(|first| Served { runs: first.runs, ..Served::default() }).collect();
    for served_of_row in rows.iter().map(|row| &row.settings) {
        for (sum, served) in settings.iter_mut().zip(served_of_row) {
            sum.ios += served.ios;
            sum.bytes += served.bytes;
            sum.latency.merge(&served.latency);
        }
    }
    Row { name: format!("{} others", rows.len()), pid: None, ioprio: String::new(), settings }
}

fn head(view: &View<'_>, alike: bool) -> Markup {
    let columns = if alike { 3 } else { 5 };
    html! {
        thead {
            tr {
                th scope="col" rowspan="2" { "Process" }
                th scope="col" rowspan="2" .number { "pid" }
                th scope="col" rowspan="2" { "ioprio" }
                @if alike {
                    th scope="col" rowspan="2" .number { "I/Os" }
                    th scope="col" rowspan="2" .number { "bytes" }
                }
                @for setting in &view.settings { th scope="colgroup" colspan=(columns) .group { (name(setting)) } }
            }
            tr {
                @for _ in &view.settings {
                    @if !alike {
                        th scope="col" .number .group { "I/Os" }
                        th scope="col" .number { "bytes" }
                    }
                    th scope="col" .number .group[alike] { "mean" }
                    th scope="col" .number { "p99" }
                    th scope="col" .number { "slowdown" }
                }
            }
        }
    }
}

fn line(row: &Row, alike: bool) -> Markup {
    let first = row.settings.first();
    html! {
        tr {
            th scope="row" .who { @if row.name.is_empty() { span .quiet { "unnamed" } } @else { (row.name) } }
            td .number { @if let Some(pid) = row.pid { (pid) } }
            td { (row.ioprio) }
            @if let Some(served) = first.filter(|_| alike) { (work(served, false)) }
            @for served in &row.settings {
                @if !alike { (work(served, true)) }
                td .number .group[alike] { (ms(served.latency.mean_ns(), &served.latency)) }
                td .number { (ms(served.latency.quantile_ns(0.99) as f64, &served.latency)) }
                td .number { @if let Some(slowdown) = served.slowdown { (significant(slowdown, 2)) } @else { span .quiet { "–" } } }
            }
        }
    }
}

fn work(served: &Served, begins: bool) -> Markup {
    html! {
        td .number .group[begins] { (grouped(served.ios_a_run().round() as u64)) }
        td .number { (bytes(served.bytes_a_run())) }
    }
}

fn ms(ns: f64, latencies: &Histogram) -> String {
    if latencies.is_empty() { "–".to_owned() } else { significant(ns / 1e6, 3) }
}
