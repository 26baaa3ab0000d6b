//! The common arguments of `compare` and `tune`.

use iosched::{KernelVersion, Registry, UnknownKernel};
use iosched_advise::tune::Goal;
use iosched_lab::Experiment;
use iosched_lab::request::{self, ComparisonRequest, ReplayMode};
use pyo3::prelude::*;

use crate::error::{About as _, of_request, wrong};
use crate::values::{Device, Workload, check_length, one_or_more, within};

/// The workload, the devices, the settings and the length of the runs.
pub(crate) struct Question<'a, 'py> {
    pub(crate) workload: Option<&'a Bound<'py, PyAny>>,
    pub(crate) device: Option<&'a Bound<'py, PyAny>>,
    pub(crate) schedulers: Vec<String>,
    pub(crate) kernels: Vec<String>,
    pub(crate) baseline: Option<String>,
    pub(crate) goals: Vec<Goal>,
    pub(crate) registry: Registry,
    pub(crate) runs: u32,
    pub(crate) seed: u64,
    pub(crate) machine: Option<String>,
    pub(crate) replay: Option<String>,
    pub(crate) speed: Option<f64>,
    pub(crate) equal_within: f64,
    pub(crate) run_for: Option<f64>,
    pub(crate) warm_up: f64,
    pub(crate) no_fairness: bool,
}

impl Question<'_, '_> {
    /// Returns the experiment. `by` is the Python function. If no command line is equivalent to the
    /// call, the records name this function instead of a command line.
    pub(crate) fn experiment(self, by: &str) -> PyResult<Experiment> {
        let workload = Workload::from_any(self.workload).about("workload")?;
        let devices: Vec<Device> = match self.device {
            None => vec![Device::named(request::DEVICE.as_ref())?],
            Some(given) => {
                one_or_more(given).and_then(|all| all.iter().map(Device::from_any).collect()).about("device")?
            }
        };
        within("equal_within", self.equal_within, 0.01..=100.0, "per cent")?;
        check_length(self.warm_up, self.run_for, self.speed)?;
        let is_linux = self.registry.elevators().len() == Registry::linux().elevators().len();
        let request = ComparisonRequest {
            workload: workload.path.clone(),
            reading: workload.reading.clone(),
            devices: devices
                .iter()
                .map(|device| device.named.clone().unwrap_or_else(|| device.profile.name().to_owned()))
                .collect(),
            machine: self.machine,
            registry: self.registry,
            schedulers: self.schedulers,
            kernels: kernels(&self.kernels)?,
            baseline: self.baseline,
            runs: self.runs,
            seed: self.seed,
            replay: self.replay.as_deref().map(replay_mode).transpose()?,
            speed: self.speed,
            equal_within_percent: self.equal_within,
            goals: self.goals,
            warm_up_s: self.warm_up,
            run_for_s: self.run_for,
            no_fairness: self.no_fairness,
        };
        let profiles = devices.iter().map(|device| device.profile.clone()).collect();
        let mut experiment =
            request.experiment_of(workload.inner.clone(), profiles).map_err(|error| of_request(&error))?;
        for (number, device) in devices.iter().enumerate().filter(|(_, device)| device.named.is_none()) {
            experiment.keep_profile_text(number, device.to_toml_text().to_owned());
        }
        if !is_linux || !workload.is_named() || devices.iter().any(|device| device.named.is_none()) {
            // No command line can express objects that Python created.
            experiment.command = format!("iosched.{by}({}, …)", workload.inner.name());
        }
        Ok(experiment)
    }
}

pub(crate) fn replay_mode(text: &str) -> PyResult<ReplayMode> {
    match text {
        "closed" => Ok(ReplayMode::Closed),
        "open" => Ok(ReplayMode::Open),
        _ => Err(wrong("replay", format_args!("{text}: must be closed or open"))),
    }
}

pub(crate) fn kernels(texts: &[String]) -> PyResult<Vec<KernelVersion>> {
    let read = |text: &String| text.parse().map_err(|error: UnknownKernel| wrong("kernel", error));
    texts.iter().map(read).collect()
}
