//! `iosched plan`: a setting for several units with goals.

mod check;
mod output;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use iosched::KernelVersion;
use iosched_lab::Control;
use iosched_lab::request::ProcessEnvironment;
use iosched_plan::{Intents, PlanError, PlanOptions, Planned, plan};
use serde::de::DeserializeOwned;

use iosched_terminal::fail::{FAILED, INTERRUPTED, of_file, usage};
use iosched_terminal::output::{Kind, Outputs, WriteArgs, print, say};
use iosched_terminal::progress::{Meter, on_interrupt};
use iosched_terminal::show::Look;
use iosched_terminal::show::plan::text;

use crate::invocation::Invocation;
use crate::options::{or_cpus, seconds_in};
use check::PlanCheck;
use output::PlanOutputArgs;

/// Find a setting that meets the goals of several units on one device
///
/// An intents file names units (services, containers, virtual machines) that share a device. Each
/// unit has a workload and goals, such as "p99(read) < 5 ms", "throughput >= 50 MB/s", "share 2",
/// "before backup", "reservation 500 IOPS" and "limit 20 MB/s". iosched simulates all units
/// together on the model of the device. It searches schedulers, tunables, weights, limits and
/// priorities for a setting that meets the goals. Then iosched checks the setting with new random
/// numbers. It also checks the setting under 30 % more load, under 30 % less load, without each
/// unit, and with another unit.
///
/// The answer names the setting, the predicted value of each goal with its 95 % interval, and the
/// throughput that each unit loses. The answer also names the goals that the setting does not meet,
/// and the nearest goals that the plan can promise. docs/plan.md explains the file and the answer.
///
/// Instead of an intents file, you can give a plan that `--output` stored. `--write` writes the
/// plan in the form of another program. `--apply` sets the plan now. `--persist` installs the plan
/// for every start. `--check` checks whether the plan holds. Without these options, nothing on this
/// machine changes.
///
/// The exit status is 0 if all hard goals are met, and 1 otherwise.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Intents file (TOML) with the device and the units, or a stored plan (JSON)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Version of Linux to simulate, such as 6.1, 6.1.21, debian-12 or rhel9 [default: that of the
    /// intents file, or 6.12]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,

    /// Seed of the random numbers; the same seed gives the same plan
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Number of runs at the same time; affects only how long the search takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Also print the tried conditions, and the share of the device that each weight gives
    #[arg(long)]
    details: bool,

    /// Print the plan as JSON
    #[arg(long)]
    json: bool,

    /// Write the plan to this file (JSON)
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    #[command(flatten)]
    write: WriteArgs,

    #[command(flatten)]
    form: PlanOutputArgs,

    /// Check whether a stored plan holds: the system has its values, and each unit meets its goals
    #[arg(long, conflicts_with_all = ["write", "apply", "persist", "unpersist", "output"])]
    check: bool,

    /// Length of the observation with --check
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds_in(0.1..=3600.0))]
    observed_s: f64,

    /// With --check, check until Ctrl-C, and serve Prometheus metrics at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "json", value_parser = crate::served::address)]
    metrics: Option<String>,
}

const EXAMPLES: &str = "Examples:
  iosched plan docs/examples/plan/intents.toml
  iosched plan intents.toml --output plan.json
  iosched plan plan.json --write systemd
  iosched plan plan.json --write libvirt=vms --write containers=web
  sudo iosched plan plan.json --apply
  sudo iosched plan plan.json --persist
  sudo iosched plan plan.json --check --for 60";

pub(crate) fn run(args: &PlanArgs, given: &Invocation) -> Result<ExitCode> {
    if args.metrics.is_some() && !args.check {
        return Err(usage("--metrics needs --check: only a check has metrics"));
    }
    if args.file.extension().is_some_and(|extension| extension == "json") {
        return stored(args);
    }
    if args.check {
        let stored = "give a stored plan; make one with iosched plan INTENTS --output plan.json";
        return Err(usage(format!("--check {}: this is an intents file; {stored}", args.file.display())));
    }
    let mut outputs = Outputs::new(args.write).prints("the plan").reads(&args.file);
    let out = outputs.optional("--output", args.output.as_ref(), Kind::Plan)?;
    let intents = Intents::open(&args.file, &ProcessEnvironment).map_err(usage)?;
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let options = PlanOptions { seed: args.seed, kernel: args.kernel };
    let meter = Meter::new("{spinner} {pos} runs in {elapsed}");
    let planned = plan(&intents, &options, &control, |step| meter.set_position(step.runs));
    meter.clear();
    let planned = match planned {
        Ok(planned) => planned,
        Err(PlanError::Interrupted) => {
            say!("interrupted before the plan was complete: there is no result");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(error) => return Err(of_plan(error)),
    };
    let json = serde_json::to_string_pretty(&planned)? + "\n";
    if let Some(out) = out {
        out.text(&json)?;
    }
    let look = Look::of_standard_output().with_details(args.details);
    print(&if args.json { json } else { text(&planned, next(args, given, &planned).as_deref(), look) })?;
    if !planned.meets_hard_goals() {
        return Ok(ExitCode::from(FAILED));
    }
    if args.form.is_given() {
        args.form.carry_out(&planned.plan)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows, writes, sets, installs or checks a stored plan.
fn stored(args: &PlanArgs) -> Result<ExitCode> {
    if args.output.is_some() {
        return Err(usage(format!("--output: {} is already a stored plan", args.file.display())));
    }
    if args.check {
        return check::run(PlanCheck {
            plan: &load(&args.file)?,
            file: &args.file,
            length: Duration::from_secs_f64(args.observed_s),
            count: args.metrics.is_none().then_some(1),
            json: args.json,
            metrics: args.metrics.as_deref(),
        });
    }
    if args.form.is_given() {
        args.form.carry_out(&load(&args.file)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let planned: Planned = load(&args.file)?;
    let look = Look::of_standard_output().with_details(args.details);
    let json = || Ok::<_, serde_json::Error>(serde_json::to_string_pretty(&planned)? + "\n");
    print(&if args.json { json()? } else { text(&planned, None, look) })?;
    Ok(if planned.meets_hard_goals() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Reads a stored plan.
fn load<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| of_file(format!("{name}: {error}"), &error))?;
    serde_json::from_str(&text).map_err(|error| {
        usage(format!("{name}: this is not a plan: {error}; give the JSON file that iosched plan --output writes"))
    })
}

/// Converts an error of a plan. Errors in the file and in the profile's name are errors of usage.
fn of_plan(error: PlanError) -> anyhow::Error {
    match error {
        PlanError::Profile(error) => error.into(),
        PlanError::Run(error) => error.into(),
        PlanError::NoGoal { .. } | PlanError::NoSuchIo { .. } | PlanError::Idle { .. } => usage(error),
        error => anyhow!(error),
    }
}

/// Returns the next command: it stores the plan. `None` if the plan is stored already.
fn next(args: &PlanArgs, given: &Invocation, planned: &Planned) -> Option<String> {
    let is_stored = args.output.is_some();
    (!is_stored && planned.meets_hard_goals())
        .then(|| format!("{} --output plan.json", given.rerun().chosen("seed", [args.seed])))
}
