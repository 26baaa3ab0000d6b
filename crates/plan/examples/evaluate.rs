//! Makes plans from a folder of intents files on several profiles, and checks each goal that a plan
//! calls met with fresh runs. It prints a line for each plan, and the shares at the end.
//!
//! `cargo run --release -p iosched-plan --example evaluate -- [FILTER] [RUNS] [PROFILE…]`
//!
//! FILTER selects files by a part of their name; `all` selects all.

use std::path::Path;
use std::time::Instant;

use iosched_lab::Control;
use iosched_plan::{Intents, Outcome, PlanOptions, plan, verify};
use iosched_workload::fio::NoVariables;

/// Profiles of four kinds of devices.
const PROFILES: [&str; 4] = ["sata-7200", "sata-ssd", "nvme", "sata-2005"];
/// Share of the fresh runs in which a goal that is called met must hold.
const HOLDS: f64 = 0.95;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let filter = words.first().map_or("all", String::as_str);
    let runs = words.get(1).map_or(Ok(20), |word| word.parse())?;
    let named: Vec<&str> = words.iter().skip(2).map(String::as_str).collect();
    let profiles = if named.is_empty() { PROFILES.to_vec() } else { named };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/intents");
    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    files.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with(|c: char| c.is_ascii_digit()) && (filter == "all" || name.contains(filter))
    });
    files.sort();
    let (mut goals_met, mut goals_held, mut plans_met, mut plans_held, mut seconds) = (0, 0, 0, 0, Vec::new());
    for path in &files {
        for profile in &profiles {
            let mut intents = Intents::open(path, &NoVariables)?;
            intents.profile = (*profile).to_owned();
            let control = Control::new(std::thread::available_parallelism().map_or(1, Into::into));
            let options = PlanOptions::default();
            let started = Instant::now();
            let planned = plan(&intents, &options, &control, |_| ())?;
            let elapsed_s = started.elapsed().as_secs_f64();
            seconds.push(elapsed_s);
            let held = verify(&intents, &planned, &options, runs, &control)?;
            let (mut met, mut kept, mut all) = (0, 0, 0);
            for (number, unit) in planned.plan.units.iter().enumerate() {
                for (place, goal) in unit.goals.iter().enumerate() {
                    all += 1;
                    if goal.outcome != Outcome::Met {
                        continue;
                    }
                    met += 1;
                    let times = held.iter().filter(|run| run[number][place]).count();
                    kept += usize::from(times as f64 >= HOLDS * held.len() as f64);
                    if (times as f64) < HOLDS * held.len() as f64 {
                        println!("  {} {}: called met, held in {times} of {}", unit.name, goal.wanted.goal, held.len());
                    }
                }
            }
            goals_met += met;
            goals_held += kept;
            plans_met += usize::from(met > 0);
            plans_held += usize::from(met > 0 && met == kept);
            println!(
                "{} on {profile}: {} ({met} of {all} goals met, {kept} held), {elapsed_s:.1} s",
                path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
                planned.plan.setting
            );
        }
    }
    seconds.sort_by(f64::total_cmp);
    println!("goals called met: {goals_met}, held: {goals_held}");
    println!("plans with a met goal: {plans_met}, all of them held: {plans_held}");
    let at = |q: f64| {
        seconds.get(((seconds.len() as f64 * q) as usize).min(seconds.len().saturating_sub(1))).copied().unwrap_or(0.0)
    };
    println!("time to a plan: median {:.1} s, longest {:.1} s", at(0.5), at(1.0));
    Ok(())
}
