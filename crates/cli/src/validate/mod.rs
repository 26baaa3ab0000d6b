//! `iosched validate`: compares models with measurements, and the decisions of the simulator with
//! recorded decisions.

mod device;
mod recording;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use iosched_disk::Profile;
use iosched_disk::disksim::service_times;
use iosched_lab::validate::validate;

use crate::import;
use crate::invocation::Invocation;
use iosched_terminal::fail::{all_of, usage};
use iosched_terminal::output::{Kind, Outputs, WriteArgs};
use iosched_terminal::show::{self, Look, validation};

/// Check device models against measurements, and the simulator against recorded decisions
///
/// `iosched validate DEVICE --profile P` runs twelve workloads on the device under each of its
/// schedulers, and simulates them with the profile. Calibration uses none of these workloads. The
/// output shows predicted and measured rates and p99 latencies. If the schedulers differ on the
/// device, the output says whether the profile predicts the better scheduler. The result is a
/// score: the percentage of the values that the profile predicts well. With --output, iosched
/// writes the profile to a file, together with the score and the prediction errors. A comparison
/// with this profile then ignores differences that are smaller than these errors.
///
/// iosched writes to a device only if you name the device again with --destroy-data. If you name a
/// file, iosched only reads the file. In a directory, iosched creates a file and writes to this
/// file. The command needs root, because it changes schedulers. At the end, iosched restores the
/// old values.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct ValidateArgs {
    #[command(subcommand)]
    command: Option<ValidateCommand>,
    #[command(flatten)]
    device: device::DeviceArgs,
}

#[derive(Debug, Subcommand)]
enum ValidateCommand {
    /// Compare the response times of a model with measurements of a real disk
    ///
    /// Each line of the trace is a request: `R|W Hit|Miss|Doub|Trip block count service_us
    /// next_us`. A block has 512 bytes. iosched ignores the second field. service_us is the time to
    /// completion. next_us is the time from the completion to the next request. The model gets the
    /// same requests. After each completion, the model waits for the recorded time (next_us), and
    /// then gets the next request. The last line has the result. It is the root mean square
    /// distance between the two distributions of response times (Ruemmler and Wilkes, 1994).
    Disk(DiskArgs),
    /// Replay a recording of a served disk in the simulator, and compare every decision
    ///
    /// `iosched serve --record-driver FILE` records all inputs of the request queue with their
    /// times, and all its decisions. mount, ublk and vhost have the same option. The inputs are
    /// submissions, completions, timers and changes of settings. The simulator gets the same
    /// inputs. If the simulator decides differently, iosched prints the first difference, and the
    /// exit status is 1.
    Recording(recording::RecordingArgs),
}

#[derive(Args, Debug)]
pub(crate) struct DiskArgs {
    /// Model: a profile from `iosched device list`, or a file whose name contains a / or ends in
    /// .toml
    #[arg(short, long, value_name = "PROFILE|FILE", alias = "profile", short_alias = 'p')]
    device: String,
    /// Trace of the real disk; may be .gz or .zst
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: PathBuf,
    /// Seed for the initial position of the platters
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = crate::options::whole(0..=u64::MAX))]
    seed: u64,
    /// Print everything as one JSON document
    #[arg(long)]
    json: bool,
    /// Write a report (one HTML page) to this file: the distributions, and where they differ
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    report: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &ValidateArgs, given: &Invocation) -> Result<ExitCode> {
    match &args.command {
        Some(ValidateCommand::Disk(args)) => run_disk(args)?,
        Some(ValidateCommand::Recording(args)) => recording::run(args)?,
        None => return device::run(&args.device, given),
    }
    Ok(ExitCode::SUCCESS)
}

fn run_disk(args: &DiskArgs) -> Result<()> {
    let profile = Profile::load(&args.device)?;
    let name = args.trace.display().to_string();
    let text = import::read(&args.trace)?;
    let services = service_times(&name, &text, profile.card().capacity_sectors).map_err(usage)?;
    let mut outputs = Outputs::new(args.write).prints("the result").reads(&args.device).reads(&args.trace);
    let report = outputs.optional("--report", args.report.as_ref(), Kind::Page)?;
    let validation = validate(&profile, &name, &services, args.seed);
    let reported = report.map(|out| out.text(&iosched_report::validation_html(&validation)));
    let text = if args.json {
        validation::disk_json(&validation)?
    } else {
        validation::disk_text(&validation, Look::of_standard_output())
    };
    let printed = show::answer(&text, args.json);
    all_of(reported.into_iter().chain([printed]))
}
