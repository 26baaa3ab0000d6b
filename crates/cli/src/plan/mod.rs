//! `iosched plan`: a setting for several units with goals.

mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use iosched::KernelVersion;
use iosched_lab::Control;
use iosched_lab::request::ProcessEnvironment;
use iosched_plan::{Intents, PlanError, PlanOptions, Planned, plan};

use iosched_terminal::fail::{FAILED, INTERRUPTED, usage};
use iosched_terminal::output::{self, Kind, Outputs, WriteArgs};
use iosched_terminal::progress::{Meter, on_interrupt};
use iosched_terminal::show::Look;

use crate::invocation::Invocation;
use crate::options::or_cpus;

/// Find a setting that meets the goals of several units on one device
///
/// An intents file names units (services, containers, virtual machines) that share a device. Each unit has a workload
/// and goals, such as "p99(read) < 5 ms", "throughput >= 50 MB/s", "share 2", "before backup", "reservation 500 IOPS"
/// and "limit 20 MB/s". iosched simulates all units together on the model of the device. It searches schedulers,
/// tunables, weights, limits and priorities for a setting that meets the goals. Then it confirms the setting with new
/// random numbers, under 30 % more and less load, without each unit, and with another unit.
///
/// The answer names the setting, what each unit gets with the interval of 95 % probability, and what the setting costs
/// the other units. It also names the goals that cannot be met, and the nearest goals that can. docs/plan.md explains
/// the file and the answer.
///
/// The exit status is 0 if all hard goals are met, and 1 otherwise. Nothing on this machine changes.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PlanArgs {
    /// Intents file (TOML): the device, and the units with their workloads and goals
    #[arg(value_name = "INTENTS", value_hint = ValueHint::FilePath)]
    intents: PathBuf,

    /// Version of Linux whose rules the simulation follows, such as 6.1, 6.1.21, debian-12 or rhel9 [default: that of
    /// the intents file, or 6.12]
    #[arg(long, value_name = "VERSION")]
    kernel: Option<KernelVersion>,

    /// Seed of the random numbers; the same seed gives the same plan
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Number of runs at the same time; affects only how long the search takes [default: one per CPU]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,

    /// Also print the conditions that were tried, and the shares that weights come to
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
}

const EXAMPLES: &str = "Examples:
  iosched plan docs/examples/plan/intents.toml
  iosched plan intents.toml --output plan.json";

pub(crate) fn run(args: &PlanArgs, given: &Invocation) -> Result<ExitCode> {
    let mut outputs = Outputs::new(args.write).prints("the plan").reads(&args.intents);
    let out = outputs.optional("--output", args.output.as_ref(), Kind::Plan)?;
    let intents = Intents::open(&args.intents, &ProcessEnvironment).map_err(usage)?;
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    let options = PlanOptions { seed: args.seed, kernel: args.kernel };
    let meter = Meter::new("{spinner} {pos} runs in {elapsed}");
    let planned = plan(&intents, &options, &control, |step| meter.set_position(step.runs));
    meter.clear();
    let planned = match planned {
        Ok(planned) => planned,
        Err(PlanError::Interrupted) => {
            output::say!("interrupted before the plan was complete: there is no result");
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Err(error) => return Err(of_plan(error)),
    };
    let json = serde_json::to_string_pretty(&planned)? + "\n";
    if let Some(out) = out {
        out.text(&json)?;
    }
    let look = Look::of_standard_output().with_details(args.details);
    output::print(&if args.json { json } else { text::text(&planned, next(args, given, &planned).as_deref(), look) })?;
    Ok(if planned.meets_hard_goals() { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
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
