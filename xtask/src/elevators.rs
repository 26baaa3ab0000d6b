//! The figures of docs/elevators.md: one small workload under every elevator. The text around them is written by hand.

use std::fmt::Write as _;

use iosched::{Registry, Setting};
use iosched_disk::Profile;
use iosched_report::ServiceFigure;
use iosched_sim::{Plan, RunResult, ServiceLog, run as simulate};
use iosched_workload::Workload;

use crate::page;

/// Where the page and its figures stand, from the root of the repository.
const PAGE: &str = "docs/elevators.md";
const FIGURES: &str = "docs/elevators";
/// What is done, and on what.
const WORKLOAD: &str = "docs/examples/elevators.toml";
const DEVICE: &str = "sata-7200:depth=1";
/// What figures show of the run, ns.
const WINDOW_NS: (u64, u64) = (20_000_000_000, 20_600_000_000);

/// What to do with the page.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only say whether figures and table are up to date.
    #[arg(long)]
    check: bool,
}

/// Writes figures and table, or checks them.
pub(crate) fn run(args: &Args) -> anyhow::Result<std::process::ExitCode> {
    let workload = Workload::open(page::path(WORKLOAD))?;
    let mut files: Vec<(String, String)> = Vec::new();
    let mut results = Vec::new();
    for elevator in Registry::linux().elevators() {
        let (result, log) = one(&workload, elevator.name)?;
        let (title, about) = (elevator.name, elevator.about);
        let figure = ServiceFigure { log: &log, title, about, window_ns: WINDOW_NS, sectors: 1_953_525_168 };
        files.push((format!("{FIGURES}/{}.svg", elevator.name), figure.svg()));
        results.push((elevator.name, result));
    }
    files.push((PAGE.to_owned(), page::with_part(PAGE, "elevators", &table(&results))?));
    page::write_or_check(&files, args.check, "elevators")
}

fn one(workload: &Workload, elevator: &str) -> anyhow::Result<(RunResult, ServiceLog)> {
    let profile = Profile::named(DEVICE)?;
    let plan = Plan::new(workload, &profile, Setting::defaults(elevator));
    let mut log = ServiceLog::new(WINDOW_NS.1);
    let result = simulate(&plan, &mut log)?;
    Ok((result, log))
}

/// Throughput and waiting of every task under every elevator.
fn table(results: &[(&str, RunResult)]) -> String {
    let Some((_, first)) = results.first() else { return String::new() };
    let mut text = String::from("| elevator |");
    for task in &first.tasks {
        let _ = write!(text, " {} MB/s |", task.name);
    }
    for task in &first.tasks {
        let _ = write!(text, " {} p99 ms |", task.name);
    }
    let columns = first.tasks.len() * 2;
    let _ = write!(text, "\n|---|{}\n", "---:|".repeat(columns));
    for (name, result) in results {
        let _ = write!(text, "| [{name}](#{}) |", name.replace('.', ""));
        let seconds = result.finished_ns as f64 / 1e9;
        for task in &result.tasks {
            let megabytes = (task.bytes_read + task.bytes_written) as f64 / seconds / 1e6;
            let _ = write!(text, " {megabytes:.1} |");
        }
        for task in &result.tasks {
            let _ = write!(text, " {:.1} |", task.latency.quantile_ns(0.99) as f64 / 1e6);
        }
        text.push('\n');
    }
    text
}
