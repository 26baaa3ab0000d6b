//! The figures of docs/elevators.md: one small workload under every elevator. The text around them is written by hand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use iosched::ELEVATORS;
use iosched_disk::Profile;
use iosched_lab::report::ServiceFigure;
use iosched_sim::{Plan, RunResult, SchedulerSetting, ServiceLog, run as simulate};
use iosched_workload::Workload;

/// Where the page and its figures stand, from the root of the repository.
const PAGE: &str = "docs/elevators.md";
const FIGURES: &str = "docs/elevators";
/// What is done, and on what.
const WORKLOAD: &str = "docs/examples/elevators.toml";
const DEVICE: &str = "sata-7200:depth=1";
/// What figures show of the run, ns.
const WINDOW_NS: (u64, u64) = (20_000_000_000, 20_600_000_000);
/// What encloses the table that is written by the command.
const BEGIN: &str = "<!-- written by cargo xtask elevators -->";
const END: &str = "<!-- end -->";

/// What to do with the page.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only say whether figures and table are up to date.
    #[arg(long)]
    check: bool,
}

/// Writes figures and table, or checks them.
pub(crate) fn run(args: &Args) -> anyhow::Result<std::process::ExitCode> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workload = Workload::open(root.join(WORKLOAD))?;
    let mut files: Vec<(PathBuf, String)> = Vec::new();
    let mut results = Vec::new();
    for elevator in ELEVATORS {
        let (result, log) = one(&workload, elevator.name)?;
        let (title, about) = (elevator.name, elevator.about);
        let figure = ServiceFigure { log: &log, title, about, window_ns: WINDOW_NS, sectors: 1_953_525_168 };
        files.push((root.join(FIGURES).join(format!("{}.svg", elevator.name)), figure.svg()));
        results.push((elevator.name, result));
    }
    let page = std::fs::read_to_string(root.join(PAGE)).with_context(|| format!("{PAGE} cannot be read"))?;
    files.push((root.join(PAGE), with_table(&page, &table(&results))?));
    let mut code = std::process::ExitCode::SUCCESS;
    for (path, text) in &files {
        if !args.check {
            std::fs::create_dir_all(root.join(FIGURES))?;
            std::fs::write(path, text)?;
        } else if std::fs::read_to_string(path).ok().as_ref() != Some(text) {
            eprintln!("{} is not what the elevators do: run `cargo xtask elevators`", path.display());
            code = std::process::ExitCode::FAILURE;
        }
    }
    if !args.check {
        println!("{PAGE} and {} figures written", files.len() - 1);
    }
    Ok(code)
}

fn one(workload: &Workload, elevator: &str) -> anyhow::Result<(RunResult, ServiceLog)> {
    let profile = Profile::named(DEVICE)?;
    let plan = Plan::new(workload, &profile, SchedulerSetting::defaults(elevator));
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

/// The page with the table as it is now.
fn with_table(page: &str, table: &str) -> anyhow::Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("{PAGE} has no line {END} behind {BEGIN}"))?;
    Ok(format!("{before}{BEGIN}\n\n{table}\n{END}{after}"))
}
