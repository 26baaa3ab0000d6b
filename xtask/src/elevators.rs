//! The plots of docs/elevators.md and docs/controllers.md. They show one small workload with every
//! elevator, and one with every controller. The other text of the pages is written by hand.

use std::fmt::Write as _;

use iosched::{Registry, Setting};
use iosched_disk::Profile;
use iosched_report::ServiceFigure;
use iosched_sim::{Plan, RunResult, ServiceLog, run as simulate};
use iosched_workload::Workload;

use crate::page;

/// A page with one plot for each of several settings, and a table of the results.
struct Page {
    /// Path of the page, and directory of its plots, from the root of the repository.
    page: &'static str,
    figures: &'static str,
    /// The workload and the device.
    workload: &'static str,
    device: &'static str,
    /// Shown part of the run, ns.
    window_ns: (u64, u64),
    /// Title of the first column.
    column: &'static str,
    shown: Vec<Shown>,
}

/// A setting of the page.
struct Shown {
    /// Name of the setting. It is also the title of a section of the page.
    name: &'static str,
    about: &'static str,
    setting: String,
}

/// Returns the page of the elevators.
fn elevators() -> Page {
    let shown = |elevator: &iosched::Registered| Shown {
        name: elevator.name,
        about: elevator.about,
        setting: elevator.name.to_owned(),
    };
    Page {
        page: "docs/elevators.md",
        figures: "docs/elevators",
        workload: "docs/examples/elevators.toml",
        device: "sata-7200:depth=1",
        window_ns: (20_000_000_000, 20_600_000_000),
        column: "scheduler",
        shown: Registry::linux().elevators().iter().map(shown).collect(),
    }
}

/// Returns the page of the controllers. Each controller is used alone with `none`.
fn controllers() -> Page {
    let beside = [
        ("no controller", "the device takes what comes", "wbt_lat_usec=0"),
        ("io.max", "the backup may write 100 MB/s", "wbt_lat_usec=0,io.max=backup:wbps=100000000"),
        (
            "io.cost",
            "weights of 800 for db and 200 for the backup",
            "wbt_lat_usec=0,io.cost.model=rbps=560000000/rseqiops=98000/rrandiops=98000/wbps=500000000/wseqiops=90000/wrandiops=90000,io.cost.qos=enable=1/min=75/max=75,io.weight=db:800+backup:200",
        ),
        ("io.latency", "db has a target of 2 ms", "wbt_lat_usec=0,io.latency=db:target=2000"),
        ("wbt", "as Linux sets it: reads should take 2 ms", "wbt_lat_usec=2000"),
    ];
    let shown = |(name, about, written): (&'static str, &'static str, &str)| Shown {
        name,
        about,
        setting: format!("none:{written}"),
    };
    Page {
        page: "docs/controllers.md",
        figures: "docs/controllers",
        workload: "docs/examples/controllers.toml",
        device: "sata-ssd",
        window_ns: (4_000_000_000, 4_300_000_000),
        column: "controller (with none)",
        shown: beside.into_iter().map(shown).collect(),
    }
}

/// Arguments of `cargo xtask elevators`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Check that the plot and the table are up to date, and do not write them
    #[arg(long)]
    check: bool,
}

/// Writes or checks the plots and tables.
pub(crate) fn run(args: &Args) -> anyhow::Result<std::process::ExitCode> {
    let mut files: Vec<(String, String)> = Vec::new();
    for page in [elevators(), controllers()] {
        page.write(&mut files)?;
    }
    page::write_or_check(&files, args.check, "elevators")
}

impl Page {
    fn write(&self, files: &mut Vec<(String, String)>) -> anyhow::Result<()> {
        let workload = Workload::open(page::path(self.workload))?;
        let profile = Profile::named(self.device)?;
        let mut results = Vec::new();
        for &Shown { name, about, ref setting } in &self.shown {
            let plan = Plan::new(&workload, &profile, setting.parse::<Setting>()?);
            let mut log = ServiceLog::new(self.window_ns.1);
            let result = simulate(&plan, &mut log)?;
            let sectors = profile.card().capacity_sectors;
            let figure = ServiceFigure { log: &log, title: name, about, window_ns: self.window_ns, sectors };
            files.push((format!("{}/{}.svg", self.figures, name.replace(' ', "-")), figure.svg()));
            results.push((name, result));
        }
        let table = table(self.column, &results);
        files.push((self.page.to_owned(), page::with_part(self.page, "elevators", &table)?));
        Ok(())
    }
}

/// Returns a table with the throughput and the latency of every task with every setting.
fn table(column: &str, results: &[(&str, RunResult)]) -> String {
    let Some((_, first)) = results.first() else { return String::new() };
    let mut text = format!("| {column} |");
    for task in &first.tasks {
        let _ = write!(text, " {} MB/s |", task.name);
    }
    for task in &first.tasks {
        let _ = write!(text, " {} p99 ms |", task.name);
    }
    let columns = first.tasks.len() * 2;
    let _ = write!(text, "\n|---|{}\n", "---:|".repeat(columns));
    for (name, result) in results {
        let _ = write!(text, "| [{name}](#{}) |", name.replace('.', "").replace(' ', "-"));
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
