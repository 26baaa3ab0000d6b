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
use iosched_kernel::{BlockDevice, Roots, StateDirectory};
use iosched_lab::request::ProcessEnvironment;
use iosched_lab::{Control, grouped};
use iosched_plan::{Fleet, Intents, ObserveError, Plan, PlanError, PlanOptions, Planned, RecordRequest, plan, record};
use serde::de::{DeserializeOwned, IgnoredAny};

use iosched_terminal::fail::{FAILED, INTERRUPTED, of_file, usage};
use iosched_terminal::output::{Kind, Outputs, WriteArgs, print, say};
use iosched_terminal::progress::{Meter, on_interrupt};
use iosched_terminal::show::Look;
use iosched_terminal::show::plan as text;

use crate::invocation::Invocation;
use crate::options::{or_cpus, seconds_in};
use check::PlanCheck;
use output::PlanOutputArgs;

/// Find a setting that meets the goals of several units on one device
///
/// An intents file names units (services, containers, virtual machines) that share a device. Each
/// unit has a workload and goals, such as "p99(read) < 5 ms", "throughput >= 50 MB/s", "share 2",
/// "before backup", "reservation 500 IOPS" and "limit 20 MB/s". `workload = "observed"` records the
/// I/O of the unit now. iosched simulates all units together on the model of the device. It searches schedulers, tunables, weights, limits and
/// priorities for a setting that meets the goals. Then iosched checks the setting with new random
/// numbers. It also checks the setting with 30 % more load, with 30 % less load, with one unit less
/// (each unit in turn), and with one unit more.
///
/// The answer names the setting, the predicted value of each goal with its 95 % interval, and the
/// throughput that each unit loses. The answer also names the goals that the setting does not meet,
/// and the nearest goals that the plan can promise. docs/plan.md explains the file and the answer.
///
/// The file can have a list of devices. The answer then has a plan for each device, and names the
/// devices that meet the goals.
///
/// Instead of an intents file, you can give a plan that `--output` stored. `--write` writes the
/// plan as configuration of another program. `--apply` sets the plan now. `--persist` installs the plan
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

    /// Length of the recording for units with workload = "observed" [default: 30]
    ///
    /// iosched records all requests of the device, as iosched record does. It needs root. Run the workloads of the
    /// units meanwhile.
    #[arg(long, value_name = "SECONDS", value_parser = seconds_in(1.0..=3600.0))]
    observe_for: Option<f64>,

    /// Also print whether the plan holds under changed loads, and the share of the device that each weight gives
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

    /// Check whether the system still has the values of a stored plan, and whether each unit meets its goals
    #[arg(long, conflicts_with_all = ["write", "apply", "persist", "unpersist", "output"])]
    check: bool,

    /// Length of the observation with --check
    #[arg(long = "for", value_name = "SECONDS", default_value_t = 30.0, value_parser = seconds_in(0.1..=3600.0))]
    observed_s: f64,

    /// With --check, check until Ctrl-C, and serve Prometheus metrics at http://ADDRESS:PORT/metrics
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "json", value_parser = crate::served::address)]
    metrics: Option<String>,
}

/// Duration of a recording, s.
const OBSERVED_S: f64 = 30.0;

const EXAMPLES: &str = "In packages, docs/examples is /usr/share/doc/iosched/examples.

Examples:
  iosched plan docs/examples/plan/intents.toml
  iosched plan intents.toml --output plan.json
The plan of a device of this machine (device = \"/dev/NAME\"):
  iosched plan plan.json --write systemd
  iosched plan plan.json --write libvirt=vms --write containers=web
  sudo iosched plan plan.json --apply
  sudo iosched plan plan.json --persist
  sudo iosched plan plan.json --check --for 60";

pub(crate) fn run(args: &PlanArgs, given: &Invocation) -> Result<ExitCode> {
    if args.metrics.is_some() && !args.check {
        return Err(usage("--metrics needs --check, because only a check has metrics"));
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
    let mut fleet = Intents::open_fleet(&args.file, &ProcessEnvironment).map_err(usage)?;
    if args.observe_for.is_some() && !fleet.iter().any(Intents::needs_recording) {
        let file = args.file.display();
        return Err(usage(format!("--observe-for: no unit of {file} has workload = \"observed\"")));
    }
    let control = Arc::new(Control::new(or_cpus(args.jobs)));
    on_interrupt(&control)?;
    for intents in fleet.iter_mut().filter(|intents| intents.needs_recording()) {
        if !observe(intents, args.observe_for.unwrap_or(OBSERVED_S), &control)? {
            say!("interrupted before the recording was complete: there is no result");
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    let Some(fleet) = plans(args, &fleet, &control)? else {
        say!("interrupted before the plan was complete: there is no result");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    if let Some(out) = out {
        out.text(&json(&fleet)?)?;
    }
    let next = next(args, given, &fleet);
    show(args, &fleet, next.as_deref())?;
    if !meets_hard_goals(&fleet) {
        return Ok(ExitCode::from(FAILED));
    }
    if args.form.is_given() {
        args.form.carry_out(&fleet.devices.into_iter().map(|planned| planned.plan).collect::<Vec<_>>())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the plan of each device. Returns `None` if the user ended the search.
fn plans(args: &PlanArgs, fleet: &[Intents], control: &Control) -> Result<Option<Fleet>> {
    let options = PlanOptions { seed: args.seed, kernel: args.kernel };
    let meter = Meter::new("{spinner} {pos} runs in {elapsed}");
    let mut devices: Vec<Planned> = Vec::new();
    for intents in fleet {
        let before: u64 = devices.iter().map(|planned| planned.runs).sum();
        match plan(intents, &options, control, |step| meter.set_position(before + step.runs)) {
            Ok(planned) => devices.push(planned),
            Err(PlanError::Interrupted) => return Ok(None),
            Err(error) => return Err(of_plan(error)),
        }
    }
    meter.clear();
    Ok(Some(Fleet { devices }))
}

fn meets_hard_goals(fleet: &Fleet) -> bool {
    fleet.devices.iter().all(Planned::meets_hard_goals)
}

/// Returns the document of one plan, or of a list of plans.
fn json(fleet: &Fleet) -> Result<String> {
    let document = match fleet.devices.as_slice() {
        [planned] => serde_json::to_string_pretty(planned),
        _ => serde_json::to_string_pretty(fleet),
    };
    Ok(document? + "\n")
}

/// Prints plans as text or JSON.
fn show(args: &PlanArgs, fleet: &Fleet, next: Option<&str>) -> Result<()> {
    let look = Look::of_standard_output().with_details(args.details);
    let text = || match fleet.devices.as_slice() {
        [planned] => text::text(planned, next, look),
        devices => text::fleet(devices, next, look),
    };
    print(&if args.json { json(fleet)? } else { text() })
}

/// Records the workloads of the units that need a recording. Returns `false` if the user ended the
/// recording.
fn observe(intents: &mut Intents, seconds: f64, control: &Control) -> Result<bool> {
    let node = intents.device.clone().unwrap_or_default();
    let found = BlockDevice::find(&Roots::default(), Path::new(&node));
    let device = found.map_err(|error| usage(format!("{}: device: {error}", intents.name)))?.disk();
    let meter = Meter::new("recording {bar:30} {pos} of {len} s, {msg}");
    meter.set_length(seconds.ceil() as u64);
    let request = RecordRequest {
        device: &device,
        state: &StateDirectory::usual()?,
        length: Duration::from_secs_f64(seconds),
        is_ended: &|| control.is_stopping(),
    };
    let done = record(intents, &request, |elapsed, events| {
        meter.message(format_args!("{} events of {}", grouped(events), device.name()));
        meter.set_position(elapsed.as_secs());
    });
    meter.clear();
    match done {
        Ok(()) => Ok(true),
        Err(ObserveError::Interrupted) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Shows, writes, sets, installs or checks a stored plan.
fn stored(args: &PlanArgs) -> Result<ExitCode> {
    if args.output.is_some() {
        return Err(usage(format!("--output: {} is already a stored plan; leave out --output", args.file.display())));
    }
    if args.check {
        let plans: Fleet<Plan> = load(&args.file)?;
        if args.metrics.is_some() && plans.devices.len() > 1 {
            let file = args.file.display();
            return Err(usage(format!(
                "--metrics: {file} has several devices; write one intents file for each device"
            )));
        }
        let mut code = ExitCode::SUCCESS;
        for plan in &plans.devices {
            let checked = check::run(PlanCheck {
                plan,
                file: &args.file,
                length: Duration::from_secs_f64(args.observed_s),
                count: args.metrics.is_none().then_some(1),
                json: args.json,
                metrics: args.metrics.as_deref(),
            })?;
            if checked != ExitCode::SUCCESS {
                code = checked;
            }
        }
        return Ok(code);
    }
    if args.form.is_given() {
        args.form.carry_out(&load::<Plan>(&args.file)?.devices)?;
        return Ok(ExitCode::SUCCESS);
    }
    let fleet: Fleet = load(&args.file)?;
    show(args, &fleet, None)?;
    Ok(if meets_hard_goals(&fleet) { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Reads a stored plan, or the stored plans of several devices.
fn load<T: DeserializeOwned>(path: &Path) -> Result<Fleet<T>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| of_file(format!("{name}: {error}"), &error))?;
    // A document without this field is one plan. It is then parsed as a plan, so that errors have a
    // position in it.
    let is_fleet = serde_json::from_str::<Fleet<IgnoredAny>>(&text).is_ok();
    let plans = if is_fleet {
        serde_json::from_str(&text)
    } else {
        serde_json::from_str(&text).map(|plan| Fleet { devices: vec![plan] })
    };
    plans.map_err(|error| {
        usage(format!("{name}: this is not a plan: {error}; give the JSON file that iosched plan --output writes"))
    })
}

/// Converts an error of a plan. Errors in the file, and in the name of the profile, are usage
/// errors.
fn of_plan(error: PlanError) -> anyhow::Error {
    match error {
        PlanError::Profile(error) => error.into(),
        PlanError::Run(error) => error.into(),
        PlanError::NoGoal { .. } | PlanError::NoSuchIo { .. } | PlanError::Idle { .. } | PlanError::Short { .. } => {
            usage(error)
        }
        error => anyhow!(error),
    }
}

/// Returns the next command, which stores the plan. Returns `None` if the plan is already stored.
fn next(args: &PlanArgs, given: &Invocation, fleet: &Fleet) -> Option<String> {
    let is_stored = args.output.is_some();
    (!is_stored && meets_hard_goals(fleet))
        .then(|| format!("{} --output plan.json", given.rerun().chosen("seed", [args.seed])))
}
