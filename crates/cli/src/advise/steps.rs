//! The steps to advice: a model of the device, a search on it, runs on the device.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use iosched::{KernelVersion, SECTOR_BYTES, Setting};
use iosched_advise::calibrate::{Calibration, Device, Measurements, Measurer as _, Pace};
use iosched_advise::tune::{Goal, Measure, Selection, TuneError, TuneResults, Tuned, Tuning, Wish};
use iosched_advise::{Confirmed, candidates, searchable, simulated};
use iosched_disk::{FixedConfig, Profile};
use iosched_kernel::facts::MachineFacts;
use iosched_kernel::settings::{Recorded, Session};
use iosched_kernel::target::Target;
use iosched_kernel::{BlockDevice, Roots, StateDirectory};
use iosched_lab::request::{self, CommandLine};
use iosched_lab::verify::{KernelBench, Limits, Verification, Work, for_records, open_target, scheduled_disk, verify};
use iosched_lab::{Control, Experiment, Figure, LabError, Progress, Records, workload_record};
use iosched_sim::Replay;
use iosched_workload::Workload;

use super::AdviseArgs;
use super::directory::AdviceDirectory;
use super::found::Found;
use crate::calibrate::{check_room, measure_watched};
use crate::fail::{of_comparison, of_device_request, usage};
use crate::options;
use crate::watched::{RUNS, Watched};

/// What the device is measured under, if it has it: nothing comes between.
const NO_SCHEDULER: &str = "none";

/// Everything that is known before anything runs.
pub(super) struct Plan<'a> {
    args: &'a AdviseArgs,
    roots: Roots,
    state: StateDirectory,
    workload: Workload,
    /// The same, for the device.
    work: Work,
    disk: BlockDevice,
    schedulers: Vec<Setting>,
    /// The version of Linux that the simulation follows: that of the running kernel, unless another is given.
    kernel: Option<KernelVersion>,
    profile: Option<Profile>,
    replay: Replay,
    limits: Limits,
}

impl<'a> Plan<'a> {
    /// Everything is checked before anything runs, but for what only a run can tell.
    pub(super) fn of(args: &'a AdviseArgs) -> Result<Self> {
        let (roots, state) = (Roots::default(), StateDirectory::usual()?);
        let workload = options::open_workload(Some(&args.workload), &args.reading)?;
        let replay = request::replay(args.replay.map(Into::into), args.speed, &workload).map_err(of_comparison)?;
        let fairness = |measure: &Measure| *measure == Measure::Figure(Figure::Fairness);
        let (goals, constraints) = args.wanted()?;
        if goals.iter().any(|own| fairness(&own.measure)) || constraints.iter().any(|own| fairness(&own.measure)) {
            return Err(usage(
                "fairness is measured only in simulation; use worst or p99 of a task, as in \"p99(reader)\"",
            ));
        }
        let work = Work::Workload(workload.clone());
        let target =
            open_target(&roots, &state, &args.on, args.destroy_data.as_deref(), &work).map_err(of_device_request)?;
        let disk = scheduled_disk(&target, &args.on.display().to_string(), Some(&work)).map_err(of_device_request)?;
        if args.profile.is_none() {
            let trace = if let Workload::Trace(trace) = &workload { Some(trace.as_ref()) } else { None };
            check_room(&target, args.file_size, trace, ", or a model of the device: --profile FILE")?;
        }
        let profile = args.profile.as_ref().map(|path| Profile::load(&of_file(path))).transpose()?;
        let limits = args.length.limits();
        let schedulers = schedulers(&disk, &args.schedulers)?;
        let running = KernelVersion::of_release(&MachineFacts::of(&roots).kernel);
        let kernel = args.kernel.or(running);
        Ok(Self { args, roots, state, workload, work, disk, schedulers, kernel, profile, replay, limits })
    }

    /// The disk whose scheduler is set.
    pub(super) const fn disk(&self) -> &BlockDevice {
        &self.disk
    }

    fn target(&self) -> Result<Target> {
        open_target(&self.roots, &self.state, &self.args.on, self.args.destroy_data.as_deref(), &self.work)
            .map_err(of_device_request)
    }

    /// How much of the target a model is made of.
    fn measured_bytes(&self, target: &Target) -> u64 {
        if target.is_directory() {
            return self.args.file_size << 20;
        }
        target.block_device().map_or(0, BlockDevice::size_bytes)
    }

    /// A device of which only the name and the size are known.
    fn stand_in(&self) -> Result<Profile> {
        let config = FixedConfig {
            depth: 32,
            parallel: 8,
            lat_ns: 1_000_000,
            ns_per_sector: 1000,
            write_lat_ns: None,
            steps: Vec::new(),
            capacity_sectors: self.measured_bytes(&self.target()?) / SECTOR_BYTES,
            max_hw_sectors_kb: 1280,
        };
        let model = iosched_disk::Model::Fixed(config);
        Ok(Profile::of(&self.args.on.display().to_string(), "not measured yet", model, Vec::new())?)
    }

    /// The command line that does it again.
    fn command(&self) -> String {
        let args = self.args;
        let mut line = CommandLine::of("advise");
        line.word(args.on.display());
        line.option("--workload", args.workload.display());
        line.reading(&args.reading.options());
        let (goals, constraints) = Wish::apart(&args.goals);
        line.options("--goal", goals);
        line.options("--subject-to", constraints.iter().chain(&args.constraints));
        line.options("--profile", args.profile.iter().map(|path| path.display()));
        line.options("--destroy-data", args.destroy_data.iter().map(|path| path.display()));
        line.list("--scheduler", self.schedulers.iter().map(|own| own.name()));
        line.options("--kernel", args.kernel);
        line.option("--budget", args.budget);
        line.option("--confirm", args.confirm);
        line.option("--runs", args.runs);
        line.list("--controller", args.controllers.iter().map(|own| own.name()));
        args.length.write(&mut line);
        line.options("--until-sure", args.until_sure);
        line.option("--seed", args.seed);
        line.to_string()
    }
}

/// A name without a slash would be looked for among the profiles.
fn of_file(path: &Path) -> String {
    let name = path.display().to_string();
    if iosched_disk::is_path(&name) { name } else { format!("./{name}") }
}

/// Those that were named, or all that the device has now and that can be simulated.
fn schedulers(disk: &BlockDevice, named: &[String]) -> Result<Vec<Setting>> {
    let there = disk.schedulers();
    let named: Vec<String> = named.iter().map(|name| name.trim().to_owned()).collect();
    let all = if named.is_empty() { &there } else { &named };
    if let Some(unknown) = all.iter().find(|name| !there.contains(name)) {
        return Err(usage(format!(
            "--scheduler {unknown}: {} does not offer this scheduler; it offers {}",
            disk.path().display(),
            there.join(", ")
        )));
    }
    let searchable = searchable(all);
    if searchable.is_empty() {
        return Err(usage(format!("{}: none of its schedulers can be simulated", disk.path().display())));
    }
    Ok(searchable)
}

/// All of it; `None` if it was ended before there was anything to advise by.
pub(super) fn carry_out(plan: &Plan<'_>, kept: &mut AdviceDirectory, control: &Arc<Control>) -> Result<Option<Found>> {
    // That settings may be changed is known before minutes are spent.
    let session = Session::begin(&plan.disk, &plan.state)?;
    let present = session.recorded().clone();
    if plan.profile.is_none() {
        // So is a goal that the workload has no figure of, and a device that is too small.
        match tuning(plan, &plan.stand_in()?, &present)?.check(control) {
            // How long it takes there nobody knows yet.
            Ok(()) | Err(TuneError::Lab(LabError::OnlyWarmUp { .. })) => {}
            Err(error) => return Err(error.into()),
        }
        if control.is_stopping() {
            return Ok(None);
        }
    }
    let Some((calibration, profile)) = model(plan, session, kept, control)? else { return Ok(None) };
    let Some(search) = search(plan, &profile, &present, kept, control)? else { return Ok(None) };
    let fits = profile.fit().is_none_or(|fit| fit.fits);
    let best = candidates(&TuneResults::of(&search.header, &search.runs), fits, plan.args.confirm.into());
    let Some((records, interrupted)) = confirm(plan, &best, kept, control)? else { return Ok(None) };
    let confirmed = Confirmed::of(&search.header, &records);
    Ok(Some(Found { present, calibration, profile, search, records, confirmed, interrupted }))
}

/// A model of the device, and what it was made of.
type Model = (Option<(Measurements, Calibration)>, Profile);

fn model(
    plan: &Plan<'_>,
    mut session: Session,
    kept: &mut AdviceDirectory,
    control: &Control,
) -> Result<Option<Model>> {
    if let Some(profile) = &plan.profile {
        return Ok(Some((None, profile.clone())));
    }
    if plan.disk.schedulers().iter().any(|name| name == NO_SCHEDULER) {
        session.apply(&Setting::defaults(NO_SCHEDULER))?;
    }
    let (target, name) = (plan.target()?, plan.args.on.display().to_string());
    let bytes = plan.measured_bytes(&target);
    let target = if target.is_directory() { target.with_disk_bytes(bytes).keeping_disk() } else { target };
    let mut device = Device::new(target, &name, bytes, control.stopping());
    let pace = if plan.args.thorough { Pace::FULL } else { Pace::QUICK };
    let mut command = CommandLine::of("calibrate");
    command.word(&device.target().name);
    command.option("--seed", plan.args.seed);
    let command = command.to_string();
    let by = (plan.args.seed, command.as_str());
    let measured = measure_watched(&mut device, pace, by, &mut kept.calibration, control.stopping());
    session.end()?;
    let measurements = measured?;
    if control.is_stopping() {
        return Ok(None);
    }
    let calibration = Calibration::of(&measurements, "profile.toml", None)?;
    kept.profile(&calibration.to_toml(&measurements.header)?)?;
    let profile = calibration.profile.clone();
    Ok(Some((Some((measurements, calibration)), profile)))
}

/// What is searched on a model.
fn tuning(plan: &Plan<'_>, profile: &Profile, present: &Recorded) -> Result<Tuning> {
    let args = plan.args;
    let machine = request::machine(args.machine.as_deref(), &plan.workload, &plan.schedulers).map_err(of_comparison)?;
    let mut experiment = Experiment::new(plan.workload.clone(), profile.clone(), plan.schedulers.clone())?;
    machine.into_iter().try_for_each(|machine| experiment.set_machine(machine))?;
    if let Some(kernel) = plan.kernel {
        experiment.set_kernel(kernel)?;
    }
    experiment.keep_profile_text(0, profile.to_toml()?);
    experiment.seed = args.seed;
    experiment.equal_within_percent = args.verdicts.equal_within;
    experiment.replay = plan.replay;
    (experiment.warm_up_ns, experiment.limit) = (plan.limits.warm_up_ns, plan.limits.of_runs());
    experiment.command = plan.command();
    let selection = Selection { beside: args.controllers.clone(), ..Selection::default() };
    let (goals, constraints) = args.wanted()?;
    let mut tuning = Tuning::new(experiment, &selection, goals)?;
    tuning.constraints = constraints;
    tuning.budget = args.budget;
    // What is set now, unless it cannot be simulated.
    if let Some(baseline) = simulated(present) {
        tuning.baseline = baseline;
    }
    Ok(tuning)
}

/// Searches on the model; `None` if it was ended before its end.
fn search(
    plan: &Plan<'_>,
    profile: &Profile,
    present: &Recorded,
    kept: &mut AdviceDirectory,
    control: &Control,
) -> Result<Option<Tuned>> {
    let tuning = tuning(plan, profile, present)?;
    let of_kernel = plan.kernel.map_or_else(String::new, |kernel| format!(" of Linux {kernel}"));
    let template = format!("searching in simulation{of_kernel} {RUNS}");
    let mut watched = Watched::new(&template, std::mem::take(&mut kept.search));
    let tuned = crate::tune::search(&tuning, &mut watched, control)?.filter(|tuned| !tuned.interrupted);
    kept.search = std::mem::take(&mut watched.records);
    Ok(tuned)
}

/// Runs on the device, and whether they were ended early; `None` if that was before there was anything to compare.
fn confirm(
    plan: &Plan<'_>,
    best: &[Setting],
    kept: &mut AdviceDirectory,
    control: &Control,
) -> Result<Option<(Records, bool)>> {
    let target = plan.target()?;
    let all = [Setting::present()].into_iter().chain(best.iter().cloned());
    let settings: Vec<_> = all.map(for_records).collect();
    let (mut goals, constraints) = plan.args.wanted()?;
    goals.extend(constraints.into_iter().map(|own| Goal { measure: own.measure }));
    let mut record = workload_record(&plan.workload);
    record.timed |= plan.limits.run_for_ns.is_some();
    let verification = Verification {
        workload: record,
        settings: settings.clone(),
        baseline: 0,
        runs: plan.args.runs,
        seed: plan.args.seed,
        replay: plan.replay,
        warm_up_ns: plan.limits.warm_up_ns,
        limit: plan.limits.of_runs(),
        until_sure_percent: plan.args.until_sure,
        equal_within_percent: plan.args.verdicts.equal_within,
        goals,
        command: plan.command(),
    };
    let mut bench = KernelBench::new(&target, &plan.state, &plan.work, &settings, plan.replay, plan.limits)?;
    let template = format!("running on the device {RUNS}");
    let mut watched = Watched::new(&template, std::mem::take(&mut kept.device));
    let finished = verify(&verification, &mut bench, control, |progress| {
        match progress {
            Progress::Record(record) => watched.record(record),
            Progress::Done { done, of } => watched.done(done, of),
            Progress::Discarded { .. } | Progress::Left { .. } => watched.warn(progress.warning()),
        }
        Ok(())
    });
    watched.clear();
    kept.device = std::mem::take(&mut watched.records);
    let finished = finished?;
    let enough = finished.records.rounds().len() >= 2;
    Ok(enough.then_some((finished.records, finished.interrupted)))
}
