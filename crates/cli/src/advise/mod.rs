//! `iosched advise`: what to set on a device for a workload, and how one knows.

mod directory;
pub(crate) mod found;
mod steps;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched::Setting;
use iosched_advise::tune::{Constraint, Controller, Goal, Wish};
use iosched_kernel::StateDirectory;
use iosched_kernel::settings::{Before, Lasting, Session};
use iosched_lab::Control;

use crate::fail::{INTERRUPTED, usage};
use crate::options::{self, ReplayMode, VerdictArgs, speed};
use crate::output::{self, Kind, Outputs, WriteArgs, all_of};
use crate::show::{Look, advice};
use crate::watched::on_interrupt;
use directory::AdviceDirectory;
use steps::Plan;

/// Say what to set on a device for a workload, with the evidence
///
/// The device is measured into a model (or a model is given); schedulers that it has, and their tunables, are searched
/// on the model for what --goal asks; the best few and what is set now are then compared on the device itself, under
/// the kernel's own schedulers, in random order. What is recommended is better there beyond doubt; otherwise the advice
/// is to leave the device as it is.
///
/// Nothing is changed in the end, unless --apply says so: everything that was set is put back, also after Ctrl-C; after
/// a crash by iosched restore. A device is only read, unless --destroy-data names it; in a directory only files of its
/// own are made. Needs root, since schedulers are set.
///
/// Ctrl-C ends it after the current run; what was measured is kept with --output, and a profile that is there need not
/// be measured again (--profile).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AdviseArgs {
    /// A block device, as /dev/sdb, or a directory in a file system on it
    #[arg(value_name = "DEVICE|DIR", value_hint = ValueHint::AnyPath)]
    on: PathBuf,

    /// What is done to it: a job file, tasks, a trace or a command line, as of iosched compare
    #[arg(short, long, value_name = "FILE|COMMAND", value_hint = ValueHint::FilePath)]
    workload: PathBuf,

    #[command(flatten)]
    reading: crate::options::Reading,

    /// What is to be good, as in "p99(sync)" or "throughput"; once for each goal. With a bound, as in "p99(db) <= 5 ms",
    /// it is what must hold [default: p99(sync)]
    #[arg(short, long = "goal", value_name = "GOAL")]
    goals: Vec<Wish>,

    /// What must hold, as in "throughput >= 95%" of what it is now, or "p99(sync) <= 20 ms"
    #[arg(long = "subject-to", value_name = "CONSTRAINT")]
    constraints: Vec<Constraint>,

    /// A model of the device, as iosched calibrate makes it: the device is not measured
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    profile: Option<PathBuf>,

    /// Measure the device in three rounds of some minutes altogether, not in one of half a minute
    #[arg(long, conflicts_with = "profile")]
    thorough: bool,

    /// Choose from these schedulers only, separated by commas or given one by one [default: all that the device has
    /// now]
    #[arg(short, long = "scheduler", alias = "schedulers", value_name = "NAME,…", value_delimiter = ',')]
    schedulers: Vec<String>,

    /// Search controllers beside the elevator as well, in simulation: wbt, io.max, io.latency, io.cost. What belongs to
    /// cgroups is not tried on the device: how to set it is told
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    beside: Vec<Controller>,

    /// Runs to search with in simulation
    #[arg(long, value_name = "RUNS", default_value_t = 200)]
    budget: u32,

    /// Settings that are tried on the device, beside what is set now
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=20))]
    confirm: u8,

    /// Runs of each of them on the device
    #[arg(short = 'n', short_alias = 'r', long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    runs: u32,

    /// Make runs on the device until each difference is beyond doubt, or known to within so many per cent of what it is
    /// now; --runs is the most
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, default_missing_value = options::UNTIL_SURE_PERCENT, value_parser = options::percent)]
    until_sure: Option<f64>,

    #[command(flatten)]
    length: options::RunLength,

    /// Let the workload, and what measures the device, write to it, which destroys what is on it; the name is typed
    /// again
    #[arg(long, value_name = "DEVICE")]
    destroy_data: Option<PathBuf>,

    /// In a directory: size of the file that is measured for the model, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = crate::options::whole(64..=16_777_216))]
    file_size: u64,

    /// The machine that an application, or fio jobs with buffered I/O, are simulated on [default: linux-6.12]
    #[arg(short, long, value_name = "MACHINE|FILE")]
    machine: Option<String>,

    /// How a trace's times are used [default: as of iosched compare]
    #[arg(long, value_enum, value_name = "MODE")]
    replay: Option<ReplayMode>,

    /// How many times faster than recorded I/Os arrive, in open replay
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    speed: Option<f64>,

    /// Decides what is left to chance, and the order of runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,

    /// Set what is recommended, now; it stays until the next start or until it is undone
    #[arg(long)]
    apply: bool,

    /// Keep everything in this directory: measurements, profile, search, runs, page, udev rule and profile of tuned; in
    /// untried/ what sets that which was not tried, with drop-ins of systemd
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// Write a report, one HTML page, to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) verdicts: VerdictArgs,

    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    write: WriteArgs,
}

const EXAMPLES: &str = "\
Examples:
  iosched advise /dev/sdb --workload lookups.fio --run-for 60 \\
      --goal \"p99(reads)\"
  iosched advise /srv/data --workload mixed.fio --run-for 60 \\
      --goal \"p99(reads)\" --subject-to \"throughput >= 95%\" --output advice
  iosched advise /dev/sdb --workload lookups.fio --run-for 60 \\
      --profile advice/profile.toml --apply";

pub(crate) fn run(args: &AdviseArgs) -> Result<ExitCode> {
    // Before anything is made or set that is to be put back.
    let control = Arc::new(Control::new(options::or_cpus(None)));
    on_interrupt(&control)?;
    let mut outputs = Outputs::new(args.write).prints("the advice").reads_all(&args.profile).reads_all(&args.machine);
    outputs = outputs.reads_all(options::files(&args.workload));
    let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
    let plan = Plan::of(args)?;
    let is_measured = args.profile.is_none();
    let mut kept = AdviceDirectory::open(args.output.as_deref(), plan.disk().name(), is_measured, &mut outputs)?;
    let Some(found) = steps::carry_out(&plan, &mut kept, &control)? else {
        let kept =
            kept.directory().map_or_else(String::new, |own| format!("; what was measured is in {}", own.display()));
        eprintln!("interrupted before anything was confirmed on the device: there is no advice{kept}");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    let advice = found.advice();
    let lasting = advice.recommended().map(|best| Lasting::of(plan.disk(), best, &found.present));
    let untried = advice.untried().map(|own| Lasting::of(plan.disk(), &own.setting, &found.present));
    let applied = match advice.recommended() {
        Some(best) if args.apply && !found.interrupted => {
            apply(&plan, best)?;
            true
        }
        _ => false,
    };
    let (set, kept_in) = ((args.apply, applied), args.output.as_deref());
    let (lasting, untried) = (lasting.as_ref(), untried.as_ref());
    let told = advice::AdviceView { advice: &advice, found: &found, lasting, untried, set, kept_in };
    let page = found.page(&advice, lasting, untried);
    let reported = report.map(|out| out.text(&page));
    let kept = kept.finish(&page, lasting, untried, &mut outputs);
    let printed = if args.json {
        output::json(&advice::json(&told))
    } else {
        output::print(&advice::text(&told, Look::of_standard_output().with_details(args.verdicts.details)))
    };
    all_of(reported.into_iter().chain([kept, printed]))?;
    Ok(if found.interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// Sets it, for good.
fn apply(plan: &Plan<'_>, setting: &Setting) -> Result<()> {
    let state = StateDirectory::usual()?;
    let before = Before::record(plan.disk(), &state, &[])?;
    let mut session = Session::begin(plan.disk(), &state)?;
    session.apply(setting)?;
    session.keep()?;
    Ok(before.forget_if_undone(&state)?)
}

impl AdviseArgs {
    /// What is to be good, and what must hold, wherever it was said.
    fn wanted(&self) -> Result<(Vec<Goal>, Vec<Constraint>)> {
        let (mut goals, mut constraints) = Wish::apart(&self.goals);
        constraints.extend(self.constraints.iter().cloned());
        if goals.is_empty() {
            goals.push("p99(sync)".parse::<Goal>().map_err(usage)?);
        }
        Ok((goals, constraints))
    }
}
