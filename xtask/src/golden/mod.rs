//! `golden`: recorded runs through our elevators, event by event.

mod compare;
#[path = "../../../crates/sim/tests/golden/event.rs"]
mod event;
// Reading archives is the tests' part of it.
#[allow(dead_code)]
#[path = "../../../crates/sim/tests/golden/fixture.rs"]
mod fixture;
mod record;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use flate2::read::GzDecoder;
use iosched_sim::run_scenario;
use iosched_workload::Scenario;

use compare::Verdict;
use event::Events;

/// Which of two neighbours a search ends at was left to the recorded kernel's allocator: ours differs by design.
const KNOWN_EXCEPTIONS: &[&str] = &["coopfuzz011", "coopfuzz034"];

const SCENARIO: &str = ".scenario.json";
const TRACE: &str = ".trace.jsonl.gz";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder with NAME.scenario.json and NAME.trace.jsonl.gz.
    dir: PathBuf,
    /// Only runs whose name holds this.
    #[arg(long, value_name = "SUBSTRING", default_value = "")]
    name: String,
    /// What to compare: every event, or only insert, merge, rq_merge, dispatch and complete.
    #[arg(long, value_enum, default_value = "all")]
    events: Which,
    /// Write the recorded runs to this file, in the form the tests keep them.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    All,
    Minimal,
}

/// Counts of a folder.
#[derive(Default)]
struct Counts {
    runs: usize,
    identical: usize,
    every_event: usize,
    unexpected: usize,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let names = names(&args.dir, &args.name)?;
    if names.is_empty() {
        bail!("{}: no *{SCENARIO} with {:?} in its name", args.dir.display(), args.name);
    }
    let mut counts = Counts::default();
    let mut archive = record::Archive::default();
    for name in &names {
        counts.runs += 1;
        if !one(args, name, &mut counts, &mut archive)? && !KNOWN_EXCEPTIONS.contains(&name.as_str()) {
            counts.unexpected += 1;
        }
    }
    if let Some(file) = &args.record {
        let bytes = archive.finish()?;
        fs::write(file, &bytes).with_context(|| format!("writing {}", file.display()))?;
        println!("{}: {} bytes", file.display(), bytes.len());
    }
    if args.events == Which::All {
        println!("{} in every event", counts.every_event);
    }
    println!("{} of {} identical", counts.identical, counts.runs);
    Ok(if counts.unexpected == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The names of the runs in `dir`, sorted.
fn names(dir: &Path, part: &str) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("reading the folder {}", dir.display()))? {
        let file = entry?.file_name();
        if let Some(name) = file.to_str().and_then(|file| file.strip_suffix(SCENARIO))
            && name.contains(part)
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Runs and compares one; says whether it is identical.
fn one(args: &Args, name: &str, counts: &mut Counts, archive: &mut record::Archive) -> anyhow::Result<bool> {
    let path = args.dir.join(format!("{name}{SCENARIO}"));
    let json = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    let scenario = match Scenario::parse(name, &json) {
        Ok(scenario) => scenario,
        Err(error) => {
            println!("{name} skipped: this scenario asks for what the simulator does not have: {error}");
            return Ok(false);
        }
    };
    if iosched::elevator(&scenario.sched).is_err() {
        println!("{name} skipped: there is no elevator {:?} yet", scenario.sched);
        return Ok(false);
    }
    let recorded = read_trace(&args.dir.join(format!("{name}{TRACE}")))?;
    let recorded: Vec<&str> = recorded.lines().collect();
    if args.record.is_some() {
        archive.add(name, &json, &recorded)?;
    }
    let mut events = Events::of(&scenario);
    if let Err(error) = run_scenario(&scenario, &mut events) {
        println!("{name} failed: {error}");
        return Ok(false);
    }
    let ours: Vec<String> =
        events.events.iter().map(|(now_ns, event)| event::line(&scenario, *now_ns, event)).collect();
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let verdict = match args.events {
        Which::All => compare::all(&recorded, &ours),
        Which::Minimal => compare::minimal(&recorded, &ours),
    };
    let known = if KNOWN_EXCEPTIONS.contains(&name) { " (a known exception)" } else { "" };
    match verdict {
        Verdict::Identical => {
            println!("{name} identical");
            counts.identical += 1;
            counts.every_event += 1;
            Ok(true)
        }
        Verdict::DecisionsDiffer(difference) => {
            println!("{name} identical (decisions differ: first difference {})", difference.one_line());
            counts.identical += 1;
            Ok(true)
        }
        Verdict::Differs(difference) => {
            println!("{name} DIFFERS{known}\n{difference}");
            Ok(false)
        }
    }
}

fn read_trace(path: &Path) -> anyhow::Result<String> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).with_context(|| format!("reading {}", path.display()))?;
    Ok(text)
}
