//! `cargo xtask golden`: compares recorded runs of Linux with the elevators of iosched, event by
//! event.

mod compare;
mod record;
mod summary;

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use flate2::read::GzDecoder;
use iosched_golden::controlled::Family;
use iosched_golden::fixture::Minimal;
use iosched_golden::{Events, lines, reason};
use iosched_sim::run_scenario;
use iosched_workload::Scenario;

use compare::{Side, Verdict};
use summary::{Outcome, Summary};

/// Number of differences that are shown with the events before and after them.
const SHOWN_IN_FULL: usize = 3;

const SCENARIO: &str = ".scenario.json";
const TRACE: &str = ".trace.jsonl.gz";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Directory with NAME.scenario.json and NAME.trace.jsonl.gz
    dir: PathBuf,
    /// Compare only runs with this text in their names
    #[arg(long, value_name = "SUBSTRING", default_value = "")]
    name: String,
    /// Events to compare: all, or only insert, merge, rq_merge, dispatch and complete
    #[arg(long, value_enum, default_value = "all")]
    events: Which,
    /// List identical runs too
    #[arg(long)]
    verbose: bool,
    /// Write the recorded runs to this file, in the form that the tests use
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Of random runs (with "fuzz" or "seed" in their names), write only one of every N of a kind
    #[arg(long, value_name = "N", default_value_t = 1, requires = "record", value_parser = clap::value_parser!(u32).range(1..))]
    thin: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    All,
    Minimal,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let names = names(&args.dir, &args.name)?;
    if names.is_empty() {
        bail!("{}: no *{SCENARIO} with {:?} in its name", args.dir.display(), args.name);
    }
    let mut summary = Summary::default();
    let mut archive = record::Archive::thinned(args.thin);
    for name in &names {
        let (sched, outcome) = one(args, name, &mut archive)?;
        let known = reason(&sched, name);
        match &outcome {
            Outcome::Identical if !args.verbose => {}
            Outcome::Differs(difference) if known.is_none() && summary.unexpected() < SHOWN_IN_FULL => {
                println!("{name} DIFFERS\n{difference}");
            }
            _ => println!("{name} {outcome}{}", known.map(|why| format!(" (known: {why})")).unwrap_or_default()),
        }
        summary.add(&sched, name, &outcome, known.is_some());
    }
    if let Some(file) = &args.record {
        let bytes = archive.finish()?;
        fs::write(file, &bytes).with_context(|| format!("writing {}", file.display()))?;
        println!("{}: {} bytes", file.display(), bytes.len());
    }
    print!("{summary}");
    Ok(if summary.unexpected() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the sorted names of the runs in `dir`.
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

/// Makes the run of one recording, and compares both. Returns the elevator and the result.
fn one(args: &Args, name: &str, archive: &mut record::Archive) -> anyhow::Result<(String, Outcome)> {
    let path = args.dir.join(format!("{name}{SCENARIO}"));
    let json = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
    if let Some(family) = Family::of(&json) {
        return Ok((family.name().to_owned(), controlled(args, name, family, &json, archive)?));
    }
    let scenario = match Scenario::parse(name, &json) {
        Ok(scenario) => scenario,
        Err(error) => return Ok(("?".to_owned(), Outcome::Failed(error.to_string()))),
    };
    let sched = scenario.sched.clone();
    let recorded = read_trace(&args.dir.join(format!("{name}{TRACE}")))?;
    let recorded: Vec<&str> = recorded.lines().collect();
    if args.record.is_some() {
        archive.add(name, &json, &recorded)?;
    }
    if iosched::Registry::linux().get(&sched).is_err() {
        return Ok((sched, Outcome::NoElevator));
    }
    let mut events = Events::of(&scenario);
    if let Err(error) = run_scenario(&scenario, &mut events) {
        return Ok((sched, Outcome::Failed(error.to_string())));
    }
    let recorded = Side { minimal: record::minimal(&recorded).with_context(|| name.to_owned())?, lines: recorded };
    let lines = lines(&scenario, &events.events);
    let ours =
        Side { minimal: Minimal::all(&scenario, &events.events), lines: lines.iter().map(String::as_str).collect() };
    Ok((sched, outcome(args, &recorded, &ours)))
}

/// Makes the run of one recording of controllers, and compares both.
fn controlled(
    args: &Args,
    name: &str,
    family: Family,
    json: &[u8],
    archive: &mut record::Archive,
) -> anyhow::Result<Outcome> {
    let recorded = read_trace(&args.dir.join(format!("{name}{TRACE}")))?;
    let recorded: Vec<&str> = recorded.lines().collect();
    if args.record.is_some() {
        archive.add_lines(name, json, &recorded);
    }
    let ours = match family.play(json) {
        Ok(lines) => lines,
        Err(error) => return Ok(Outcome::Failed(error.to_string())),
    };
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let recorded = Side { minimal: record::minimal(&recorded).with_context(|| name.to_owned())?, lines: recorded };
    let ours = Side { minimal: record::minimal(&ours).with_context(|| name.to_owned())?, lines: ours };
    Ok(outcome(args, &recorded, &ours))
}

fn outcome(args: &Args, recorded: &Side<'_>, ours: &Side<'_>) -> Outcome {
    match compare::compare(recorded, ours, args.events == Which::All) {
        Verdict::Identical => Outcome::Identical,
        Verdict::DecisionsDiffer(difference) => Outcome::DecisionsDiffer(difference),
        Verdict::Differs(difference) => Outcome::Differs(difference),
    }
}

fn read_trace(path: &Path) -> anyhow::Result<String> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).with_context(|| format!("reading {}", path.display()))?;
    Ok(text)
}
