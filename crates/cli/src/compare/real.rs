//! `iosched compare --on`: on a real device, under the kernel's own schedulers.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched::Setting;
use iosched_kernel::target::Target;
use iosched_kernel::{BlockDevice, Roots, StateDirectory, consent, execute};
use iosched_lab::asked::{CommandLine, SettingTarget, did_you_mean, replay};
use iosched_lab::goal::Measure;
use iosched_lab::verify::{ForeignCommand, KernelBench, Verification, VerifyError, Work, for_records, verify};
use iosched_lab::{Control, Figure, LabError, SettingRecord, command_record, workload_record};

use super::{CompareArgs, Comparing, Written, outputs};
use crate::fail::{of_asked, usage};
use crate::options::{RunLength, UNTIL_SURE_PERCENT, open_workload, percent};
use crate::watched::on_interrupt;

/// Options of runs on a real device.
#[derive(Args, Debug)]
#[command(next_help_heading = "On a real device")]
pub(crate) struct RealArgs {
    /// Run on a real device under the kernel's schedulers: give a directory on the device, or the device itself, such
    /// as /dev/sdb
    ///
    /// In a directory, iosched reads and writes only files that it creates. It only reads a device, unless you name the
    /// device again with --destroy-data.
    ///
    /// iosched changes schedulers and tunables, so it needs root. It puts them back at the end. After a crash, `iosched
    /// restore` puts them back. A setting such as bfq:low_latency=0,nr_requests=64 uses the kernel's defaults for all
    /// other tunables. The setting "present" is the present scheduler of the device with its present tunables. A
    /// setting can contain a cgroup file, such as none:io.max=backup:wbps=50000000, for a cgroup of the workload.
    /// iosched creates these cgroups for the runs and removes them afterwards.
    #[arg(long, value_name = "DIR|DEVICE", value_hint = ValueHint::AnyPath, conflicts_with_all = ["machine", "decisions", "blktrace", "jobs", "no_fairness"])]
    pub(crate) on: Option<PathBuf>,

    /// Let the workload write to the device of --on, which destroys its data; repeat the name of the device
    ///
    /// If another program or a file system uses the device, iosched says so and changes nothing.
    #[arg(long, value_name = "DEVICE", requires = "on")]
    destroy_data: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) length: RunLength,

    /// Add runs until each verdict is clear, or each difference is known to within PERCENT of the baseline
    #[arg(long, value_name = "PERCENT", requires = "on", num_args = 0..=1, default_missing_value = UNTIL_SURE_PERCENT, value_parser = percent)]
    pub(crate) until_sure: Option<f64>,

    /// Shell command to run before each run of COMMAND; its time does not count
    #[arg(long, value_name = "COMMAND", requires = "command")]
    prepare: Option<String>,

    /// Command to run and time instead of a workload; $IOSCHED_TARGET holds the path of the target
    #[arg(last = true, value_name = "COMMAND", requires = "on", conflicts_with = "workload")]
    command: Vec<String>,
}

pub(super) fn compare(args: &CompareArgs, on: &Path) -> Result<ExitCode> {
    let real = &args.real;
    let roots = Roots::default();
    let state = StateDirectory::usual()?;
    let work = work(args)?;
    if args.goals.iter().any(|own| own.measure == Measure::Figure(Figure::Fairness)) {
        return Err(usage(
            "--goal fairness: fairness is measured only in simulation; use a metric of a job, as in \"p99(reader)\"",
        ));
    }
    // Before anything is made or set that is to be put back.
    let control = Arc::new(Control::new(1));
    on_interrupt(&control)?;
    let target = target(&roots, &state, on, real.destroy_data.as_deref(), &work)?;
    if let Work::Workload(workload) = &work {
        execute::check(workload, &target).map_err(|error| LabError::from(VerifyError::Execute(Box::new(error))))?;
    }
    let Some(device) = target.block_device().map(BlockDevice::disk) else {
        return Err(usage(format!(
            "{}: is not on a block device of this machine, so there is no scheduler to set; name a disk or a \
             directory on one",
            on.display()
        )));
    };
    let settings = settings(args, &device)?;
    let baseline = baseline(args, &settings, &device)?;
    let replay = match &work {
        Work::Workload(workload) => replay(args.replay.map(Into::into), args.speed, workload).map_err(of_asked)?,
        Work::Command(_) => iosched_sim::Replay::Closed,
    };
    let mut workload = match &work {
        Work::Workload(workload) => workload_record(workload),
        Work::Command(own) => command_record(&own.words),
    };
    let limits = real.length.limits();
    workload.timed |= limits.run_for_ns.is_some();
    let verification = Verification {
        warm_up_ns: limits.warm_up_ns,
        limit: limits.of_runs(),
        workload,
        command: command(args, on, &settings, baseline),
        settings: settings.clone(),
        baseline,
        runs: args.runs(),
        seed: args.seed,
        replay,
        until_sure_percent: real.until_sure,
        equal_within_percent: args.verdicts.equal_within,
        goals: args.goals.clone(),
    };
    let Written { records, report, .. } = Written::of(args, &mut outputs(args))?;
    let mut bench = KernelBench::new(&target, &state, &work, &settings, replay, limits)?;
    let mut comparing = Comparing::begin(args, records, report);
    let finished = verify(&verification, &mut bench, &control, |progress| comparing.observe(progress));
    comparing.watched.clear();
    comparing.show(&finished?, Vec::new())
}

/// What is run.
fn work(args: &CompareArgs) -> Result<Work> {
    if !args.real.command.is_empty() {
        if !args.real.length.is_default() {
            return Err(usage(
                "--run-for and --warm-up are only for workloads; a command runs until it ends, and all of its time \
                 counts",
            ));
        }
        check_program(&args.real.command[0])?;
        let (words, prepare) = (args.real.command.clone(), args.real.prepare.clone());
        return Ok(Work::Command(ForeignCommand { words, prepare }));
    }
    Ok(Work::Workload(open_workload(args.workload.as_deref(), &args.reading)?))
}

/// Whether there is a program to run.
fn check_program(program: &str) -> Result<()> {
    if program.contains('/') {
        return match Path::new(program).exists() {
            true => Ok(()),
            false => Err(usage(format!("{program}: there is no such program"))),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories = std::env::split_paths(&path);
    if directories.any(|directory| directory.join(program).symlink_metadata().is_ok()) {
        return Ok(());
    }
    let there =
        std::env::split_paths(&path).filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
    let mut known: Vec<String> = there.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    // Of several that are as near, always the same one.
    known.sort();
    let meant = did_you_mean(program, known.iter().map(String::as_str));
    Err(usage(format!("{program}: there is no such program in $PATH{meant}")))
}

/// Where it is run.
pub(crate) fn target(
    roots: &Roots,
    state: &StateDirectory,
    on: &Path,
    destroy: Option<&Path>,
    work: &Work,
) -> Result<Target> {
    if on.is_dir() {
        if destroy.is_some() {
            return Err(usage(
                "--destroy-data is only for devices; in a directory, iosched writes only to files that \
                 it creates",
            ));
        }
        return Ok(match work {
            Work::Workload(_) => Target::directory(roots, on, state)?,
            Work::Command(_) => Target::directory_of_command(roots, on)?,
        });
    }
    let device = BlockDevice::itself(roots, on)?;
    match (destroy, work) {
        (Some(_), Work::Command(_)) => {
            Err(usage("--destroy-data is only for workloads; iosched does not control which files a command writes"))
        }
        (Some(typed), _) => Ok(Target::writable(consent::to_write(&device, Some(typed))?)),
        (None, _) => Ok(Target::read_only(device)),
    }
}

/// Those that were named, or every scheduler that the device can have now.
fn settings(args: &CompareArgs, device: &BlockDevice) -> Result<Vec<SettingRecord>> {
    let offered = device.schedulers();
    let target = SettingTarget::Kernel(&offered);
    let all = ["all".to_owned()];
    let mut settings: Vec<SettingRecord> = Vec::new();
    for text in if args.schedulers.is_empty() { &all[..] } else { &args.schedulers } {
        for setting in target.parse_all(text).map_err(|problem| usage(format!("--scheduler {text}: {problem}")))? {
            let record = for_records(setting);
            if settings.iter().any(|known| known.label == record.label) {
                return Err(usage(format!(
                    "the setting {} is given twice with --scheduler; give each setting once",
                    record.label
                )));
            }
            settings.push(record);
        }
    }
    if settings.is_empty() {
        return Err(usage(format!("{}: has no scheduler of its own", device.name())));
    }
    Ok(settings)
}

/// The number of the setting that others are compared with: the one that was named, what is set now if that is compared,
/// or the first.
fn baseline(args: &CompareArgs, settings: &[SettingRecord], device: &BlockDevice) -> Result<usize> {
    let number = |label: &str| settings.iter().position(|setting| setting.label == label);
    let Some(named) = &args.baseline else {
        let as_it_is = number(&Setting::present().to_string());
        let present = || device.scheduler().and_then(|name| number(&name));
        return Ok(as_it_is.or_else(present).unwrap_or(0));
    };
    let offered = device.schedulers();
    let setting = SettingTarget::Kernel(&offered).parse(named);
    let setting = setting.map_err(|problem| usage(format!("--baseline {named}: {problem}")))?;
    number(&setting.to_string()).ok_or_else(|| {
        let labels: Vec<&str> = settings.iter().map(|setting| setting.label.as_str()).collect();
        usage(format!("the baseline {setting} is not one of the compared settings; they are {}", labels.join(", ")))
    })
}

/// The command line that makes such records, every choice spelled out.
fn command(args: &CompareArgs, on: &Path, settings: &[SettingRecord], baseline: usize) -> String {
    let real = &args.real;
    let mut line = CommandLine::of("compare");
    line.option("--on", on.display());
    line.options("--workload", args.workload.iter().map(|path| path.display()));
    line.reading(&args.reading.options());
    line.options("--destroy-data", real.destroy_data.iter().map(|device| device.display()));
    line.options("--scheduler", settings.iter().map(|setting| &setting.label));
    line.option("--baseline", &settings[baseline].label);
    line.options("--goal", &args.goals);
    line.option("--runs", args.runs());
    line.option("--seed", args.seed);
    line.equal_within(args.verdicts.equal_within);
    real.length.write(&mut line);
    line.options("--until-sure", real.until_sure);
    line.options("--prepare", &real.prepare);
    if !real.command.is_empty() {
        line.word("--");
        real.command.iter().for_each(|word| line.word(word));
    }
    line.to_string()
}
