//! Makes plans from a folder of intents files, each on several profiles. Fresh runs check each goal
//! that a plan calls met. The program prints one line for each plan. At the end, it prints how many
//! of the checked goals hold.
//!
//! ```text
//! cargo run --release -p iosched-plan --example evaluate -- \
//!     [--results FILE.jsonl] [FILTER] [RUNS] [PROFILE…]
//! ```
//!
//! FILTER selects files by a part of their name; `all` selects all files. With `--results`, the
//! program appends each plan to FILE as one line of JSON when the plan is complete. A later run
//! with the same file leaves out the plans that the file already has. An interrupted evaluation can
//! therefore go on.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use iosched_lab::Control;
use iosched_plan::{Intents, Outcome, PlanOptions, plan, verify};
use iosched_workload::fio::NoVariables;
use serde::{Deserialize, Serialize};

/// Profiles of four kinds of devices.
const PROFILES: [&str; 4] = ["sata-7200", "sata-ssd", "nvme", "sata-2005"];
/// A goal that the plan calls met must hold in at least this share of the fresh runs.
const HOLDS: f64 = 0.95;

/// The key of a plan in the evaluation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Key {
    intents: String,
    profile: String,
    seed: u64,
    /// Number of fresh runs.
    fresh: u64,
}

/// The result of one plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Evaluated {
    #[serde(flatten)]
    key: Key,
    setting: String,
    /// Number of all goals.
    goals: usize,
    /// Number of goals that the plan called met.
    met: usize,
    /// Number of goals that the plan called met and that held in the fresh runs.
    held: usize,
    /// The goals that the plan called met and that did not hold.
    broken: Vec<String>,
    /// Number of simulated runs for the plan, and the time until the plan was made, s.
    simulated_runs: u64,
    seconds: f64,
}

/// The file of results.
struct Results {
    known: BTreeMap<Key, Evaluated>,
    file: Option<File>,
}

impl Results {
    /// Opens a file of results. Ignores an incomplete last line, which a killed run leaves.
    fn open(path: Option<&Path>) -> Result<Self, Box<dyn Error>> {
        let mut known = BTreeMap::new();
        let Some(path) = path else { return Ok(Self { known, file: None }) };
        let text = if path.exists() { std::fs::read_to_string(path)? } else { String::new() };
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        for (number, line) in text[..whole].lines().enumerate() {
            let of_line = |error| format!("{}:{}: {error}", path.display(), number + 1);
            let evaluated: Evaluated = serde_json::from_str(line).map_err(of_line)?;
            known.insert(evaluated.key.clone(), evaluated);
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        file.set_len(whole as u64)?;
        Ok(Self { known, file: Some(file) })
    }

    fn add(&mut self, evaluated: &Evaluated) -> Result<(), Box<dyn Error>> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all((serde_json::to_string(evaluated)? + "\n").as_bytes())?;
        Ok(file.sync_data()?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut results = None;
    if let Some(at) = words.iter().position(|word| word == "--results") {
        if at + 1 == words.len() {
            return Err("--results needs the name of a file".into());
        }
        results = Some(words.remove(at + 1));
        words.remove(at);
    }
    let filter = words.first().map_or("all", String::as_str);
    let fresh = words.get(1).map_or(Ok(20), |word| word.parse())?;
    let named: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
    let profiles = if named.is_empty() { PROFILES.to_vec() } else { named };
    let mut results = Results::open(results.as_deref().map(Path::new))?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/intents");
    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let stem = |path: &Path| path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    files.retain(|path| {
        let is_intents = path.extension().is_some_and(|extension| extension == "toml");
        let name = stem(path);
        is_intents && name.starts_with(|c: char| c.is_ascii_digit()) && (filter == "all" || name.contains(filter))
    });
    files.sort();
    let options = PlanOptions::default();
    let mut all = Vec::new();
    for path in &files {
        for profile in &profiles {
            let key = Key { intents: stem(path), profile: (*profile).to_owned(), seed: options.seed, fresh };
            let is_new = !results.known.contains_key(&key);
            let evaluated = match results.known.get(&key) {
                Some(known) => known.clone(),
                None => evaluate(path, key, &options)?,
            };
            if is_new {
                results.add(&evaluated)?;
            }
            show(&evaluated);
            all.push(evaluated);
        }
    }
    summary(&all);
    Ok(())
}

/// Makes a plan and checks it with fresh runs.
fn evaluate(path: &Path, key: Key, options: &PlanOptions) -> Result<Evaluated, Box<dyn Error>> {
    let mut intents = Intents::open(path, &NoVariables)?;
    intents.profile.clone_from(&key.profile);
    let control = Control::new(std::thread::available_parallelism().map_or(1, Into::into));
    let started = Instant::now();
    let planned = plan(&intents, options, &control, |_| ())?;
    let seconds = started.elapsed().as_secs_f64();
    let runs = verify(&intents, &planned, options, key.fresh, &control)?;
    let setting = planned.plan.setting.to_string();
    let (mut goals, mut met, mut broken) = (0, 0, Vec::new());
    for (number, unit) in planned.plan.units.iter().enumerate() {
        for (place, goal) in unit.goals.iter().enumerate() {
            goals += 1;
            if goal.outcome != Outcome::Met {
                continue;
            }
            met += 1;
            let times = runs.iter().filter(|run| run[number][place]).count();
            if (times as f64) < HOLDS * runs.len() as f64 {
                broken.push(format!("{} {}: held in {times} of {}", unit.name, goal.wanted.goal, runs.len()));
            }
        }
    }
    let held = met - broken.len();
    Ok(Evaluated { key, setting, goals, met, held, broken, simulated_runs: planned.runs, seconds })
}

fn show(evaluated: &Evaluated) {
    let Evaluated { key, setting, goals, met, held, seconds, .. } = evaluated;
    println!(
        "{} on {}: {setting} ({met} of {goals} goals met, {held} held), {} runs, {seconds:.1} s",
        key.intents, key.profile, evaluated.simulated_runs
    );
    evaluated.broken.iter().for_each(|broken| println!("  called met, but {broken}"));
}

fn summary(all: &[Evaluated]) {
    let sum = |of: fn(&Evaluated) -> usize| all.iter().map(of).sum::<usize>();
    println!("goals called met: {}, held: {}", sum(|one| one.met), sum(|one| one.held));
    let with_met = all.iter().filter(|one| one.met > 0);
    let held = with_met.clone().filter(|one| one.met == one.held).count();
    println!("plans: {}, with a met goal: {}, all of them held: {held}", all.len(), with_met.count());
    let mut seconds: Vec<f64> = all.iter().map(|one| one.seconds).collect();
    seconds.sort_by(f64::total_cmp);
    let at = |q: f64| {
        let last = seconds.len().saturating_sub(1);
        seconds.get(((seconds.len() as f64 * q) as usize).min(last)).copied().unwrap_or(0.0)
    };
    println!("time to a plan: median {:.1} s, longest {:.1} s", at(0.5), at(1.0));
}
