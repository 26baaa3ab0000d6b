//! Requests for comparisons on a real device: the target, the settings, the work and the plan of
//! runs.
//!
//! `iosched compare --on`, the last step of `iosched advise` and the runs of `iosched validate` use
//! this module.

use std::path::Path;

use iosched::Setting;
use iosched_kernel::directory::DirectoryError;
use iosched_kernel::target::Target;
use iosched_kernel::{BlockDevice, FindError, Refusal, Roots, StateDirectory, StateError, consent, execute};
use iosched_sim::Replay;

use super::kernel::{ForeignCommand, KernelBench, Limits, Work, for_records};
use super::{Verification, VerifyError, verify};
use crate::compare::EQUAL_WITHIN_PERCENT;
use crate::error::LabError;
use crate::execute::{Finished, Progress};
use crate::goal::Goal;
use crate::pool::Control;
use crate::record::SettingRecord;
use crate::request::{RequestError, SettingTarget, did_you_mean};
use crate::{command_record, workload_record};

/// An error of a request for runs on a real device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceRequestError {
    /// An argument is wrong.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The request is wrong. The message says what is valid.
    #[error("{0}")]
    Wrong(String),
    /// The parts of the request do not fit together.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The directory is not usable.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// There is no such device.
    #[error(transparent)]
    Find(#[from] FindError),
    /// Writing to the device is not allowed.
    #[error(transparent)]
    Refusal(#[from] Refusal),
    /// The directory for records of changed settings is not usable.
    #[error(transparent)]
    State(#[from] StateError),
}

/// Work on a device, with its settings and number of runs.
#[derive(Clone, Debug)]
pub struct RealComparison {
    /// The workload or command.
    pub work: Work,
    /// The settings, without duplicates.
    pub settings: Vec<SettingRecord>,
    /// Index of the baseline in `settings`.
    pub baseline: usize,
    /// Number of runs of each setting. With `until_sure_percent`, this is the maximum.
    pub runs: u32,
    /// Seed of all runs and of the order of the runs.
    pub seed: u64,
    /// Replay mode of a trace.
    pub replay: Replay,
    /// Warm-up and length of each run.
    pub limits: Limits,
    /// Precision that ends the comparison, per cent of the baseline. It ends when every difference
    /// is clear or is known with this precision.
    pub until_sure_percent: Option<f64>,
    /// Largest difference from the baseline that counts as equal, per cent.
    pub equal_within_percent: f64,
    /// Metrics that conclusions use. If empty, conclusions use the usual metrics.
    pub goals: Vec<Goal>,
    /// Command line that produces comparable records.
    pub command: String,
}

impl RealComparison {
    /// Creates a comparison of `settings`. The first setting is the baseline. The replay is a
    /// closed loop, and the whole workload runs.
    #[must_use]
    pub fn of(work: Work, settings: impl IntoIterator<Item = Setting>, command: String) -> Self {
        Self {
            work,
            settings: settings.into_iter().map(for_records).collect(),
            baseline: 0,
            runs: crate::request::RUNS,
            seed: 1,
            replay: Replay::Closed,
            limits: Limits::default(),
            until_sure_percent: None,
            equal_within_percent: EQUAL_WITHIN_PERCENT,
            goals: Vec::new(),
            command,
        }
    }

    /// Creates the bench for the runs on `target`. Nothing is changed yet.
    ///
    /// # Errors
    /// The errors of [`KernelBench::new`].
    pub fn bench<'t>(&'t self, target: &'t Target, state: &StateDirectory) -> Result<KernelBench<'t>, VerifyError> {
        KernelBench::new(target, state, &self.work, &self.settings, self.replay, self.limits)
    }

    /// Makes all runs on `bench`, and restores all settings.
    ///
    /// # Errors
    /// The errors of [`verify`].
    pub fn run(
        &self,
        bench: &mut KernelBench<'_>,
        control: &Control,
        observe: impl FnMut(Progress<'_>) -> Result<(), LabError>,
    ) -> Result<Finished, LabError> {
        verify(&self.verification(), bench, control, observe)
    }

    fn verification(&self) -> Verification {
        let mut workload = match &self.work {
            Work::Workload(workload) => workload_record(workload),
            Work::Command(command) => command_record(&command.words),
        };
        workload.timed |= self.limits.run_for_ns.is_some();
        Verification {
            workload,
            settings: self.settings.clone(),
            baseline: self.baseline,
            runs: self.runs,
            seed: self.seed,
            replay: self.replay,
            warm_up_ns: self.limits.warm_up_ns,
            limit: self.limits.of_runs(),
            until_sure_percent: self.until_sure_percent,
            equal_within_percent: self.equal_within_percent,
            goals: self.goals.clone(),
            command: self.command.clone(),
        }
    }
}

/// Opens the directory or device `on` for `work`. Opens a device only for reading, unless `destroy`
/// also names this device.
///
/// # Errors
/// There is no such device or directory, or it may not be written.
pub fn open_target(
    roots: &Roots,
    state: &StateDirectory,
    on: &Path,
    destroy: Option<&Path>,
    work: &Work,
) -> Result<Target, DeviceRequestError> {
    let wrong = |problem| Err(RequestError::argument("destroy-data", "", problem).into());
    if on.is_dir() {
        if destroy.is_some() {
            return wrong("is only for devices; in a directory, iosched writes only to files that it creates");
        }
        return Ok(match work {
            Work::Workload(_) => Target::directory(roots, on, state)?,
            Work::Command(_) => Target::directory_of_command(roots, on)?,
        });
    }
    let device = BlockDevice::itself(roots, on)?;
    match (destroy, work) {
        (Some(_), Work::Command(_)) => wrong("is only for workloads; a command decides itself which files it writes"),
        (Some(typed), _) => Ok(Target::writable(consent::to_write(&device, Some(typed))?)),
        (None, _) => Ok(Target::read_only(device)),
    }
}

/// Returns the disk whose scheduler iosched sets for runs on `target`. `name` is the user's name
/// for the target. Checks that the work can run there.
///
/// # Errors
/// The work cannot run on the target, or the target is on no block device of this machine.
pub fn scheduled_disk(target: &Target, name: &str, work: Option<&Work>) -> Result<BlockDevice, DeviceRequestError> {
    if let Some(Work::Workload(workload)) = work {
        execute::check(workload, target).map_err(|error| LabError::from(VerifyError::Execute(Box::new(error))))?;
    }
    target.block_device().map(BlockDevice::disk).ok_or_else(|| {
        DeviceRequestError::Wrong(format!(
            "{name}: this path is not on a block device of this machine, so there is no scheduler to set; name a \
             disk, or a directory on a disk"
        ))
    })
}

/// Returns the settings that the user named, or all schedulers that the device offers now.
///
/// # Errors
/// A text is not a setting, a setting is named twice, or the device has no scheduler.
pub fn named_settings(named: &[String], device: &BlockDevice) -> Result<Vec<Setting>, DeviceRequestError> {
    let offered = device.schedulers();
    let target = SettingTarget::Kernel(&offered);
    let all = ["all".to_owned()];
    let mut settings: Vec<Setting> = Vec::new();
    for text in if named.is_empty() { &all[..] } else { named } {
        for setting in target.parse_all(text).map_err(|problem| RequestError::argument("scheduler", text, problem))? {
            if settings.contains(&setting) {
                return Err(LabError::TwiceTheSame { label: setting.to_string() }.into());
            }
            settings.push(setting);
        }
    }
    if settings.is_empty() {
        return Err(DeviceRequestError::Wrong(format!("{}: this device has no scheduler of its own", device.name())));
    }
    Ok(settings)
}

/// Returns the index of the baseline: the setting that the user named. If the user named none, the
/// baseline is the present setting. If the present setting is not compared, the baseline is the
/// first setting.
///
/// # Errors
/// The text is not a setting, or the setting is not compared.
pub fn named_baseline(
    named: Option<&str>,
    settings: &[Setting],
    device: &BlockDevice,
) -> Result<usize, DeviceRequestError> {
    let number = |setting: &Setting| settings.iter().position(|known| known == setting);
    let Some(named) = named else {
        let present = || device.scheduler().and_then(|name| number(&Setting::defaults(&name)));
        return Ok(number(&Setting::present()).or_else(present).unwrap_or(0));
    };
    let offered = device.schedulers();
    let setting = SettingTarget::Kernel(&offered).parse(named);
    let setting = setting.map_err(|problem| RequestError::argument("baseline", named, problem))?;
    let labels = || settings.iter().map(ToString::to_string).collect();
    let unknown = || LabError::UnknownBaseline { baseline: setting.to_string(), labels: labels() };
    Ok(number(&setting).ok_or_else(unknown)?)
}

impl ForeignCommand {
    /// Checks that there is a program to run.
    ///
    /// # Errors
    /// There is no program with that name. The message suggests a similar one.
    pub fn check(&self) -> Result<(), DeviceRequestError> {
        let Some(program) = self.words.first() else {
            return Err(DeviceRequestError::Wrong("there is no command to run".to_owned()));
        };
        if program.contains('/') {
            return match Path::new(program).exists() {
                true => Ok(()),
                false => Err(DeviceRequestError::Wrong(format!("{program}: there is no such program"))),
            };
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut directories = std::env::split_paths(&path);
        if directories.any(|directory| directory.join(program).symlink_metadata().is_ok()) {
            return Ok(());
        }
        let entries =
            std::env::split_paths(&path).filter_map(|directory| std::fs::read_dir(directory).ok()).flatten().flatten();
        let mut known: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        // The names are sorted, so that the suggestion does not depend on the order of the
        // directories.
        known.sort();
        let meant = did_you_mean(program, known.iter().map(String::as_str));
        Err(DeviceRequestError::Wrong(format!("{program}: there is no such program in $PATH{meant}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_without_an_existing_program_is_refused() {
        let command = |word: &str| ForeignCommand { words: vec![word.to_owned()], prepare: None }.check();
        assert!(command("sh").is_ok());
        assert_eq!(command("/no/such").unwrap_err().to_string(), "/no/such: there is no such program");
        let error = command("no-such-program-at-all").unwrap_err().to_string();
        assert!(error.starts_with("no-such-program-at-all: there is no such program in $PATH"), "{error}");
    }

    #[test]
    fn directory_refuses_destroy_data() {
        let here = std::env::temp_dir();
        let (roots, state) = (Roots::default(), StateDirectory::usual().unwrap());
        let work = Work::Command(ForeignCommand { words: vec!["true".to_owned()], prepare: None });
        let error = open_target(&roots, &state, &here, Some(Path::new("sda")), &work).unwrap_err();
        assert!(error.to_string().starts_with("destroy-data is only for devices; in a directory"), "{error}");
        assert!(open_target(&roots, &state, &here, None, &work).unwrap().is_directory());
    }
}
