//! The table of waits at controllers, by cgroup: their duration, and their share of the latency.

use iosched_lab::{RunRecord, grouped};
use iosched_sim::Note;
use maud::{Markup, html};

use super::parts::name;
use super::units::{percent, time};
use super::view::{Setting, View};

/// Maximum number of process names for a cgroup.
const NAMES_MAX: usize = 3;
/// Name of the root cgroup.
const ROOT: &str = "/";

/// Waits of a cgroup at a controller under one setting, over all complete runs.
struct Row<'a> {
    setting: &'a Setting<'a>,
    controller: &'a str,
    cgroup: &'a str,
    runs: u64,
    bios: u64,
    wait_ns: u64,
    /// Sum of the latencies of all I/Os of the cgroup's processes, ns.
    latency_ns: u64,
    processes: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn of(setting: &'a Setting<'a>, (controller, cgroup): (&'a str, &'a str), runs: &[&'a RunRecord]) -> Self {
        let mut row = Self {
            setting,
            controller,
            cgroup,
            runs: runs.len() as u64,
            bios: 0,
            wait_ns: 0,
            latency_ns: 0,
            processes: Vec::new(),
        };
        for run in runs {
            for (_, bios, wait_ns) in waits(run).filter(|&(who, ..)| who == (controller, cgroup)) {
                row.bios += bios;
                row.wait_ns += wait_ns;
            }
            let is_own = |name: &str| name == cgroup || (name.is_empty() && cgroup == ROOT);
            for task in run.result.tasks.iter().filter(|task| is_own(&task.cgroup)) {
                row.latency_ns += task.latency.sum_ns();
                let name = task.name.trim();
                if !name.is_empty() && !row.processes.contains(&name) {
                    row.processes.push(name);
                }
            }
        }
        row
    }

    fn a_run(&self, sum: u64) -> f64 {
        sum as f64 / self.runs.max(1) as f64
    }

    fn who(&self) -> String {
        let more = self.processes.len().saturating_sub(NAMES_MAX);
        let mut names = self.processes[..self.processes.len() - more].join(", ");
        if more > 0 {
            names.push_str(&format!(" and {} more", grouped(more as u64)));
        }
        names
    }

    fn line(&self) -> Markup {
        html! {
            tr {
                th scope="row" { (name(self.setting)) }
                td { (self.cgroup) }
                td .quiet { (self.who()) }
                td { (self.controller) }
                td .number { (grouped(self.a_run(self.bios).round() as u64)) }
                td .number { (time(self.a_run(self.wait_ns), 3)) }
                td .number { (time(self.wait_ns as f64 / self.bios.max(1) as f64, 3)) }
                td .number {
                    @if self.latency_ns == 0 { span .quiet { "–" } }
                    @else { (percent(self.wait_ns as f64 / self.latency_ns as f64)) "\u{a0}%" }
                }
            }
        }
    }
}

/// Returns the waits of a run: controller and cgroup, number of bios, total wait in ns.
fn waits(run: &RunRecord) -> impl Iterator<Item = ((&str, &str), u64, u64)> {
    run.result.notes.iter().filter_map(|note| match note {
        Note::Throttled { controller, cgroup, bios, wait_ns } => {
            Some(((controller.as_str(), cgroup.as_str()), *bios, *wait_ns))
        }
        _ => None,
    })
}

/// Returns the section, or `None` if no bio waited at a controller.
pub(crate) fn section(view: &View<'_>) -> Option<Markup> {
    let rows = rows(view);
    (!rows.is_empty()).then(|| {
        html! {
            p .legend {
                "A controller can delay a bio before it becomes a request. The columns of bios and waits have means \
                 per run. \"Of latency\" is the sum of the waits, divided by the sum of the latencies of all I/Os \
                 in the cgroup (– if the cgroup has no I/Os). The sum includes the waits of all bios of an I/O. A wait can \
                 also make a process submit its later I/Os later. The sum does not include this delay."
            }
            div .scroll tabindex="0" {
                table .waits {
                    thead {
                        tr {
                            @for title in ["Setting", "cgroup", "Processes", "Controller"] { th scope="col" { (title) } }
                            @for title in ["bios", "in all", "each", "of latency"] { th scope="col" .number { (title) } }
                        }
                    }
                    tbody { @for row in &rows { (row.line()) } }
                }
            }
        }
    })
}

/// Returns the rows by setting. For each setting, the longest waits come first.
fn rows<'a>(view: &'a View<'_>) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    for setting in &view.settings {
        let runs = view.records.complete_runs(setting.number);
        let mut who: Vec<(&str, &str)> = runs.iter().flat_map(|run| waits(run)).map(|(who, ..)| who).collect();
        who.sort_unstable();
        who.dedup();
        let mut rows_of_setting: Vec<Row<'_>> = who.into_iter().map(|who| Row::of(setting, who, &runs)).collect();
        rows_of_setting.sort_by_key(|row| std::cmp::Reverse(row.wait_ns));
        rows.extend(rows_of_setting);
    }
    rows
}
