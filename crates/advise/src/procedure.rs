//! The steps to advice: a model of the device, a search on the model, runs on the device.
//!
//! [`AdvicePlan::of`] checks an [`AdviceRequest`] as far as possible before anything runs.
//! [`AdvicePlan::carry_out`] reports its progress to an [`AdviceObserver`].

use std::path::{Path, PathBuf};

use iosched::{KernelVersion, SECTOR_BYTES, Setting};
use iosched_disk::{FixedConfig, Profile, ProfileError};
use iosched_kernel::facts::MachineFacts;
use iosched_kernel::settings::{Before, Recorded, Session};
use iosched_kernel::target::Target;
use iosched_kernel::{BlockDevice, FindError, Roots, SettingsError, StateDirectory, StateError};
use iosched_lab::goal::{Goal, Measure};
use iosched_lab::request::{self, RequestError};
use iosched_lab::verify::{DeviceRequestError, Limits, RealComparison, VerifyError, Work, open_target, scheduled_disk};
use iosched_lab::{Control, EQUAL_WITHIN_PERCENT, Experiment, Figure, LabError, Records};
use iosched_sim::Replay;
use iosched_workload::Workload;

use crate::calibrate::{
    self, CalibrateError, Calibration, Device, FILE_SIZE_MIB_DEFAULT, Measurements, Pace, PlaceError, check_room,
};
use crate::tune::{self, Constraint, Controller, Selection, TuneError, TuneResults, Tuned, Tuning, tune};
use crate::{Advice, Confirmed, candidates, searchable, simulated};

/// Scheduler of the device during the measurement, if the device offers this scheduler. It does not
/// reorder requests.
const NO_SCHEDULER: &str = "none";

/// An error of a request for advice, or of one of its steps.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdviseError {
    /// The request is invalid.
    #[error("{0}")]
    Wrong(String),
    /// The target or the workload is wrong.
    #[error(transparent)]
    Request(#[from] DeviceRequestError),
    /// An argument is wrong.
    #[error(transparent)]
    Argument(#[from] RequestError),
    /// The target cannot be measured.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// A comparison failed.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The device cannot be prepared for runs.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The search failed.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// The device cannot be measured, or no model fits.
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The model cannot be written as a profile.
    #[error(transparent)]
    Toml(#[from] toml::ser::Error),
    /// Settings of the device cannot be changed.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The directory for records of changed settings cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The device was not found.
    #[error(transparent)]
    Find(#[from] FindError),
}

/// A request for advice: a device, a workload and the goals.
#[derive(Clone, Debug)]
pub struct AdviceRequest {
    /// A block device, or a directory in a file system on it.
    pub on: PathBuf,
    /// The same device, if the measurement and the workload may destroy its data.
    pub destroy_data: Option<PathBuf>,
    /// The workload to serve.
    pub workload: Workload,
    /// Use of a trace's times.
    pub replay: Replay,
    /// Warm-up and length of each run.
    pub limits: Limits,
    /// The metrics to optimise, at least one.
    pub goals: Vec<Goal>,
    /// Conditions that a setting must meet.
    pub constraints: Vec<Constraint>,
    /// A model of the device. If `None`, iosched measures the device.
    pub profile: Option<Profile>,
    /// Duration and extent of the measurement of the device.
    pub pace: Pace,
    /// Size of the file in a directory, MiB.
    pub file_size_mib: u64,
    /// The schedulers to choose from. If empty, all schedulers that the device offers now.
    pub schedulers: Vec<String>,
    /// Controllers that the search also covers, in simulation.
    pub controllers: Vec<Controller>,
    /// Number of simulated runs of the search.
    pub budget: u32,
    /// Number of settings that run on the device in addition to the present one.
    pub confirm: usize,
    /// Runs of each setting on the device.
    pub runs: u32,
    /// Largest error of a difference at which runs stop, per cent of the present value. Runs also
    /// stop when every difference is clear. If `None`, runs do not stop early.
    pub until_sure_percent: Option<f64>,
    /// Largest difference that counts as equal, per cent.
    pub equal_within_percent: f64,
    /// Machine model for applications and buffered I/O.
    pub machine: Option<String>,
    /// Version of Linux whose rules the simulation follows.
    /// `None` means the version of the running kernel.
    pub kernel: Option<KernelVersion>,
    /// Seed of all random values and of the order of runs.
    pub seed: u64,
}

impl AdviceRequest {
    /// Creates a request with the defaults of `iosched advise`: 200
    /// simulated runs, 4 settings on the device, 10 runs of each.
    #[must_use]
    pub fn new(on: &Path, workload: Workload, replay: Replay, goals: Vec<Goal>) -> Self {
        Self {
            on: on.to_owned(),
            destroy_data: None,
            workload,
            replay,
            limits: Limits::default(),
            goals,
            constraints: Vec::new(),
            profile: None,
            pace: Pace::QUICK,
            file_size_mib: FILE_SIZE_MIB_DEFAULT,
            schedulers: Vec::new(),
            controllers: Vec::new(),
            budget: 200,
            confirm: 4,
            runs: 10,
            until_sure_percent: None,
            equal_within_percent: EQUAL_WITHIN_PERCENT,
            machine: None,
            kernel: None,
            seed: 1,
        }
    }
}

/// A step of the advice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AdviceStep {
    /// The device is measured.
    Measure,
    /// Settings are searched on the model.
    Search,
    /// Settings are compared on the device.
    Run,
}

/// Receives the events of all steps in their order.
pub trait AdviceObserver {
    /// Reports the beginning of a step, after the end of the previous step.
    fn begins(&mut self, step: AdviceStep);
    /// Reports an event of the measurement.
    fn measuring(&mut self, progress: calibrate::Progress<'_>);
    /// Reports the model of the device, as a profile in TOML.
    fn model(&mut self, profile: &str);
    /// Reports an event of the search.
    fn searching(&mut self, progress: tune::Progress<'_>);
    /// Reports an event of the runs on the device.
    fn running(&mut self, progress: iosched_lab::Progress<'_>);
}

/// A request for advice that has been checked, before anything runs.
#[derive(Debug)]
pub struct AdvicePlan {
    request: AdviceRequest,
    /// Command line that repeats the run. The records store it.
    pub command: String,
    roots: Roots,
    state: StateDirectory,
    work: Work,
    disk: BlockDevice,
    schedulers: Vec<Setting>,
    /// Version of Linux whose rules the simulation follows. `None`
    /// means the default, because the running version is unknown.
    kernel: Option<KernelVersion>,
}

/// The results of all steps.
#[derive(Debug)]
pub struct AdviceResults {
    /// Setting of the device before the runs.
    pub present: Recorded,
    /// The measurements and the model that fits them. `None` if the request contained a model.
    pub calibration: Option<(Measurements, Calibration)>,
    /// The model of the device.
    pub profile: Profile,
    /// The search on the model.
    pub search: Tuned,
    /// Runs on the device.
    pub records: Records,
    /// The same runs, judged by the rules of the search.
    pub confirmed: Confirmed,
    /// Whether the runs ended early.
    pub interrupted: bool,
}

impl AdviceResults {
    /// Returns the advice that follows from the results.
    #[must_use]
    pub fn advice(&self) -> Advice<'_> {
        let present =
            self.present.setting().map_or_else(|_| self.present.scheduler.clone(), |setting| setting.to_string());
        let fits = self.profile.fit().map(|fit| fit.fits);
        let predicted = TuneResults::of(&self.search.header, &self.search.runs);
        Advice::of(present, fits, predicted, &self.confirmed)
    }
}

impl AdvicePlan {
    /// Checks everything that can be checked before anything runs.
    ///
    /// # Errors
    /// The request is wrong, or the workload cannot run on the device.
    pub fn of(request: AdviceRequest) -> Result<Self, AdviseError> {
        let (roots, state) = (Roots::default(), StateDirectory::usual()?);
        let of_goals = request.goals.iter().map(|goal| &goal.measure);
        let mut measures = of_goals.chain(request.constraints.iter().map(|constraint| &constraint.measure));
        if measures.any(|measure| *measure == Measure::Figure(Figure::Fairness)) {
            return Err(AdviseError::Wrong(
                "iosched measures fairness only in simulation; use worst or p99 of a task, as in \"p99(reader)\""
                    .to_owned(),
            ));
        }
        let work = Work::Workload(request.workload.clone());
        let target = open_target(&roots, &state, &request.on, request.destroy_data.as_deref(), &work)?;
        let disk = scheduled_disk(&target, &request.on.display().to_string(), Some(&work))?;
        if request.profile.is_none() {
            let trace = if let Workload::Trace(trace) = &request.workload { Some(trace.as_ref()) } else { None };
            check_room(&target, request.file_size_mib, trace, ", or give a model of the device: --profile FILE")?;
        }
        let schedulers = schedulers(&disk, &request.schedulers)?;
        let kernel = request.kernel.or_else(|| KernelVersion::of_release(&MachineFacts::of(&roots).kernel));
        Ok(Self { request, command: String::new(), roots, state, work, disk, schedulers, kernel })
    }

    /// Returns the disk whose scheduler is set.
    #[must_use]
    pub const fn disk(&self) -> &BlockDevice {
        &self.disk
    }

    /// Returns the schedulers to choose from, with their defaults.
    #[must_use]
    pub fn schedulers(&self) -> &[Setting] {
        &self.schedulers
    }

    /// Returns the version of Linux whose rules the simulation
    /// follows. `None` means the default of simulations.
    #[must_use]
    pub const fn kernel(&self) -> Option<KernelVersion> {
        self.kernel
    }

    /// Measures, searches and confirms. Returns `None` if `control` was interrupted
    /// before there was enough for advice. All settings of the device are restored.
    ///
    /// # Errors
    /// A step fails.
    pub fn carry_out(
        &self,
        control: &Control,
        observer: &mut dyn AdviceObserver,
    ) -> Result<Option<AdviceResults>, AdviseError> {
        // Fails early, before minutes of measuring, if settings cannot be changed.
        let session = Session::begin(&self.disk, &self.state)?;
        let present = session.recorded().clone();
        if self.request.profile.is_none() {
            // Also fails early if the workload lacks the metric of a goal, or if the device is too
            // small.
            match self.tuning(&self.stand_in()?, &present)?.check(control) {
                // The duration of runs on the device is not known yet.
                Ok(()) | Err(TuneError::Lab(LabError::OnlyWarmUp { .. })) => {}
                Err(error) => return Err(error.into()),
            }
            if control.is_stopping() {
                return Ok(None);
            }
        }
        let Some((calibration, profile)) = self.model(session, control, observer)? else { return Ok(None) };
        let Some(search) = self.search(&profile, &present, control, observer)? else { return Ok(None) };
        let fits = profile.fit().is_none_or(|fit| fit.fits);
        let best = candidates(&TuneResults::of(&search.header, &search.runs), fits, self.request.confirm);
        let Some((records, interrupted)) = self.confirm(&best, control, observer)? else { return Ok(None) };
        let confirmed = Confirmed::of(&search.header, &records);
        Ok(Some(AdviceResults { present, calibration, profile, search, records, confirmed, interrupted }))
    }

    /// Applies `setting` to the disk until the next boot. `iosched restore` undoes the change.
    ///
    /// # Errors
    /// The kernel rejects the setting.
    pub fn apply(&self, setting: &Setting) -> Result<(), AdviseError> {
        let before = Before::record(&self.disk, &self.state, &[])?;
        let mut session = Session::begin(&self.disk, &self.state)?;
        session.apply(setting)?;
        session.keep()?;
        Ok(before.end(&self.state)?)
    }

    fn target(&self) -> Result<Target, AdviseError> {
        let AdviceRequest { on, destroy_data, .. } = &self.request;
        Ok(open_target(&self.roots, &self.state, on, destroy_data.as_deref(), &self.work)?)
    }

    /// Returns the size of the part of the target that is modelled, bytes.
    fn measured_bytes(&self, target: &Target) -> u64 {
        if target.is_directory() {
            return self.request.file_size_mib << 20;
        }
        target.block_device().map_or(0, BlockDevice::size_bytes)
    }

    /// Returns a placeholder profile of a device whose name and size are known, but not its speed.
    fn stand_in(&self) -> Result<Profile, AdviseError> {
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
        Ok(Profile::of(&self.request.on.display().to_string(), "not measured yet", model, Vec::new())?)
    }

    fn model(
        &self,
        mut session: Session,
        control: &Control,
        observer: &mut dyn AdviceObserver,
    ) -> Result<Option<Model>, AdviseError> {
        let AdviceRequest { on, pace, seed, profile, .. } = &self.request;
        if let Some(profile) = profile {
            return Ok(Some((None, profile.clone())));
        }
        if self.disk.schedulers().iter().any(|name| name == NO_SCHEDULER) {
            session.apply(&Setting::defaults(NO_SCHEDULER))?;
        }
        let (target, name) = (self.target()?, on.display().to_string());
        let bytes = self.measured_bytes(&target);
        let target = if target.is_directory() { target.with_disk_bytes(bytes).keeping_disk() } else { target };
        let mut device = Device::new(target, &name, bytes, control.stopping());
        observer.begins(AdviceStep::Measure);
        let measured = calibrate::measure(&mut device, *pace, *seed, &self.command, control.stopping(), |progress| {
            observer.measuring(progress);
            Ok(())
        });
        session.end()?;
        let measurements = measured?;
        if control.is_stopping() {
            return Ok(None);
        }
        let calibration = Calibration::of(&measurements, "profile.toml", None)?;
        observer.model(&calibration.to_toml(&measurements.header)?);
        let profile = calibration.profile.clone();
        Ok(Some((Some((measurements, calibration)), profile)))
    }

    /// Returns the search on a model.
    fn tuning(&self, profile: &Profile, present: &Recorded) -> Result<Tuning, AdviseError> {
        let machine = request::machine(self.request.machine.as_deref(), &self.request.workload, &self.schedulers)?;
        let request = &self.request;
        let mut experiment = Experiment::new(request.workload.clone(), profile.clone(), self.schedulers.clone())?;
        machine.into_iter().try_for_each(|machine| experiment.set_machine(machine))?;
        if let Some(kernel) = self.kernel {
            experiment.set_kernel(kernel)?;
        }
        experiment.keep_profile_text(0, profile.to_toml()?);
        experiment.seed = request.seed;
        experiment.equal_within_percent = request.equal_within_percent;
        experiment.replay = request.replay;
        (experiment.warm_up_ns, experiment.limit) = (request.limits.warm_up_ns, request.limits.of_runs());
        experiment.command.clone_from(&self.command);
        let selection = Selection { beside: request.controllers.clone(), ..Selection::default() };
        let mut tuning = Tuning::new(experiment, &selection, request.goals.clone())?;
        tuning.constraints.clone_from(&request.constraints);
        tuning.budget = request.budget;
        // The present setting is the baseline, unless it cannot be simulated.
        if let Some(baseline) = simulated(present) {
            tuning.baseline = baseline;
        }
        Ok(tuning)
    }

    /// Searches on the model. Returns `None` if the search was interrupted.
    fn search(
        &self,
        profile: &Profile,
        present: &Recorded,
        control: &Control,
        observer: &mut dyn AdviceObserver,
    ) -> Result<Option<Tuned>, AdviseError> {
        let tuning = self.tuning(profile, present)?;
        observer.begins(AdviceStep::Search);
        let tuned = tune(&tuning, control, |progress| {
            observer.searching(progress);
            Ok(())
        });
        match tuned {
            Err(TuneError::Lab(LabError::NothingRun)) if control.is_stopping() => Ok(None),
            tuned => Ok(Some(tuned?).filter(|tuned| !tuned.interrupted)),
        }
    }

    /// Makes the runs on the device. Returns the records, and whether the runs were interrupted.
    /// `None` if there was nothing to compare yet.
    fn confirm(
        &self,
        best: &[Setting],
        control: &Control,
        observer: &mut dyn AdviceObserver,
    ) -> Result<Option<(Records, bool)>, AdviseError> {
        let request = &self.request;
        let target = self.target()?;
        let settings = [Setting::present()].into_iter().chain(best.iter().cloned());
        let of_constraints = request.constraints.iter().map(|constraint| Goal { measure: constraint.measure.clone() });
        let comparison = RealComparison {
            runs: request.runs,
            seed: request.seed,
            replay: request.replay,
            limits: request.limits,
            until_sure_percent: request.until_sure_percent,
            equal_within_percent: request.equal_within_percent,
            goals: request.goals.iter().cloned().chain(of_constraints).collect(),
            ..RealComparison::of(self.work.clone(), settings, self.command.clone())
        };
        let mut bench = comparison.bench(&target, &self.state)?;
        observer.begins(AdviceStep::Run);
        let finished = comparison.run(&mut bench, control, |progress| {
            observer.running(progress);
            Ok(())
        })?;
        let enough = finished.records.rounds().len() >= 2;
        Ok(enough.then_some((finished.records, finished.interrupted)))
    }
}

/// A model of the device, with the measurements and the calibration if the device was measured.
type Model = (Option<(Measurements, Calibration)>, Profile);

/// Returns the schedulers in `named`. If `named` is empty, returns all schedulers of the device
/// that can be simulated.
fn schedulers(disk: &BlockDevice, named: &[String]) -> Result<Vec<Setting>, AdviseError> {
    let offered = disk.schedulers();
    let named: Vec<String> = named.iter().map(|name| name.trim().to_owned()).collect();
    let all = if named.is_empty() { &offered } else { &named };
    if let Some(unknown) = all.iter().find(|name| !offered.contains(name)) {
        return Err(AdviseError::Wrong(format!(
            "--scheduler {unknown}: the device {} does not offer this scheduler; it offers {}",
            disk.path().display(),
            offered.join(", ")
        )));
    }
    let searchable = searchable(all);
    if searchable.is_empty() {
        return Err(AdviseError::Wrong(format!(
            "{}: iosched can simulate none of the schedulers of this device",
            disk.path().display()
        )));
    }
    Ok(searchable)
}
