//! Real disks: `doctor`, `validate` and `advise_on`, as in the commands of these names.

use std::path::PathBuf;

use iosched_advise::calibrate::{self, FILE_SIZE_MIB, PlaceError};
use iosched_advise::tune::{self, Constraint};
use iosched_advise::validation::{Battery, Measured, ValidationError, ValidationRequest, write_header, write_run};
use iosched_advise::{AdviceObserver, AdvicePlan, AdviceRequest, AdviceResults, AdviceStep, AdviseError};
use iosched_kernel::doctor::{DoctorError, Report, Snapshot};
use iosched_kernel::settings::Lasting;
use iosched_kernel::{BlockDevice, FindError, Roots};
use iosched_lab::request::{self, ns};
use iosched_lab::verify::{DeviceRequestError, Limits};
use iosched_lab::{Control, LabError};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::atomic_file::write_bytes_atomically;
use crate::error::{About as _, RunError, of_io, of_lab, of_profile, of_request, of_tuning, plain, usage, wrong};
use crate::page::framed;
use crate::policy::Policies;
use crate::question::{kernels, replay_mode};
use crate::tune::{goals, names};
use crate::values::{Device, Setting, Workload, check_length, within};

/// Returns a JSON document as Python values.
pub(crate) fn python<'py>(py: Python<'py>, document: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(document).map_err(|error| RunError::new_err(error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

/// Checks which I/O settings take effect on the disks of this machine: `iosched doctor --json`.
///
/// With `disk` (such as "sda", or a path on the disk), it checks only that disk and its parts.
/// `rates` is a file with the output of `iostat -x` or `sar -d`. The function changes nothing.
#[pyfunction]
#[pyo3(signature = (disk=None, *, rates=None))]
pub(crate) fn doctor<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = plain)] disk: Option<PathBuf>,
    #[pyo3(from_py_with = plain)] rates: Option<PathBuf>,
) -> PyResult<Bound<'py, PyAny>> {
    let roots = Roots::default();
    let found = disk.as_deref().map(|disk| BlockDevice::find(&roots, disk)).transpose();
    let name = found.map_err(|error| of_find(&error).about("disk"))?.map(|device| device.disk_name().to_owned());
    let machine = py.detach(|| Snapshot::of(&roots));
    let report = Report::of(&machine, name.as_deref(), rates.as_deref()).map_err(|error| match &error {
        DoctorError::Rates { source, .. } => of_io(source, &error).about("rates"),
        _ => usage(&error),
    })?;
    python(py, &report.document())
}

fn of_find(error: &FindError) -> PyErr {
    match error {
        FindError::Io { error: source, .. } => of_io(source, error),
        _ => usage(error),
    }
}

fn of_place(error: &PlaceError) -> PyErr {
    match error {
        PlaceError::Find(error) => of_find(error),
        _ => usage(error),
    }
}

fn of_target(error: &DeviceRequestError) -> PyErr {
    match error {
        DeviceRequestError::Request(error) => of_request(error),
        DeviceRequestError::Lab(error) => of_lab(error),
        DeviceRequestError::Find(error) => of_find(error),
        _ => usage(error),
    }
}

fn of_validation(error: &ValidationError) -> PyErr {
    match error {
        ValidationError::Place(error) => of_place(error).about("target"),
        ValidationError::Request(error) => of_target(error).about("target"),
        ValidationError::Profile(error) => of_profile(error).about("target"),
        ValidationError::Lab(error) => of_lab(error),
        ValidationError::Wrong(_) => usage(error),
        _ => RunError::new_err(error.to_string()),
    }
}

/// Validates a profile on a device: `iosched validate`.
///
/// `target` is a block device, a file, a directory, or the name of a profile to use instead of a
/// device. Real devices need root, because the runs change the scheduler. At the end and after
/// Ctrl-C, iosched restores the old settings.
#[pyfunction]
#[pyo3(signature = (
    target, profile, *, scheduler=None, runs=3, run_for=1.5, destroy_data=None, file_size=4096, seed=1
))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn validate(
    py: Python<'_>,
    #[pyo3(from_py_with = plain)] target: PathBuf,
    profile: &Bound<'_, PyAny>,
    scheduler: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = plain)] runs: u32,
    #[pyo3(from_py_with = plain)] run_for: f64,
    #[pyo3(from_py_with = plain)] destroy_data: Option<PathBuf>,
    #[pyo3(from_py_with = plain)] file_size: u64,
    #[pyo3(from_py_with = plain)] seed: u64,
) -> PyResult<Validation> {
    let device = Device::from_any(profile).about("profile")?;
    within("runs", f64::from(runs), 2.0..=100.0, "runs")?;
    check_length(0.0, Some(run_for), None)?;
    check_file_size(file_size)?;
    let schedulers = names("scheduler", scheduler)?;
    let target = target.to_string_lossy().into_owned();
    let request = ValidationRequest {
        target,
        destroy_data,
        file_size_mib: file_size,
        schedulers,
        runs,
        run_for_s: run_for,
        seed,
    };
    let command = format!("iosched.validate({:?}, …)", request.target);
    let done = Policies::default().carry_out(py, Some(1), |control| {
        let mut warnings = Vec::new();
        let measured = request.measure(
            control,
            |_| command,
            |progress| {
                if let iosched_advise::validation::Progress::Warning(warning) = progress {
                    warnings.push(warning.to_owned());
                }
            },
        )?;
        let battery = Battery::of(&measured, &device.profile, |_, _| {})?;
        Ok((measured, battery, warnings))
    })?;
    let (measured, battery, warnings) = done.map_err(|error| of_validation(&error))?;
    Ok(Validation { measured, device, battery, warnings })
}

fn check_file_size(mib: u64) -> PyResult<()> {
    let (least, most) = (*FILE_SIZE_MIB.start() as f64, *FILE_SIZE_MIB.end() as f64);
    within("file_size", mib as f64, least..=most, "MiB")
}

/// Measurements on a device, and the predictions of a profile.
#[pyclass(frozen, module = "iosched")]
pub(crate) struct Validation {
    measured: Measured,
    device: Device,
    battery: Battery,
    warnings: Vec<String>,
}

#[pymethods]
impl Validation {
    /// How exact the profile is, in sentences.
    #[getter]
    fn answer(&self) -> String {
        self.battery.decision()
    }

    /// The warnings of the runs. Each is a sentence.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// The device with the score and the errors of its profile. Comparisons on this device ignore
    /// differences below these errors.
    #[getter]
    fn device(&self) -> PyResult<Device> {
        Device::of(self.battery.trusted(self.device.profile.clone()), None)
    }

    /// Everything, as the document of `iosched validate --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        python(py, &self.battery.document(&self.measured, &self.device.profile))
    }

    /// The runs, as `iosched validate --records` writes them.
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut written = Vec::new();
        let failed = |error: std::io::Error| RunError::new_err(error.to_string());
        write_header(&mut written, &self.measured.header).map_err(failed)?;
        self.measured.runs.iter().try_for_each(|run| write_run(&mut written, run)).map_err(failed)?;
        Ok(PyBytes::new(py, &written))
    }

    fn __repr__(&self) -> String {
        format!("<Validation of {}: {}>", self.device.profile.name(), self.battery)
    }
}

fn of_advice(error: &AdviseError) -> PyErr {
    match error {
        AdviseError::Request(error) => of_target(error).about("on"),
        AdviseError::Place(error) => of_place(error).about("on"),
        AdviseError::Find(error) => of_find(error).about("on"),
        AdviseError::Argument(error) => of_request(error),
        AdviseError::Lab(error) => of_lab(error),
        AdviseError::Tune(error) => of_tuning(error),
        AdviseError::Profile(error) => of_profile(error),
        AdviseError::Wrong(_) => usage(error),
        _ => RunError::new_err(error.to_string()),
    }
}

/// Receives the events of the advice. Python shows none of them.
struct Silent;

impl AdviceObserver for Silent {
    fn begins(&mut self, _: AdviceStep) {}
    fn measuring(&mut self, _: calibrate::Progress<'_>) {}
    fn model(&mut self, _: &str) {}
    fn searching(&mut self, _: tune::Progress<'_>) {}
    fn running(&mut self, _: iosched_lab::Progress<'_>) {}
}

/// Recommends a setting for a device and a workload, with runs on the device: `iosched advise`.
#[pyfunction]
#[pyo3(signature = (
    on, workload, goal, *, subject_to=None, profile=None, thorough=false, scheduler=None, controller=None,
    budget=200, confirm=4, runs=10, until_sure=None, destroy_data=None, file_size=4096, machine=None,
    replay=None, speed=None, equal_within=5.0, run_for=None, warm_up=0.0, seed=1, kernel=None
))]
#[expect(clippy::too_many_arguments, reason = "they are Python's keywords")]
pub(crate) fn advise_on(
    py: Python<'_>,
    #[pyo3(from_py_with = plain)] on: PathBuf,
    workload: Option<&Bound<'_, PyAny>>,
    goal: &Bound<'_, PyAny>,
    subject_to: Option<&Bound<'_, PyAny>>,
    profile: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = plain)] thorough: bool,
    scheduler: Option<&Bound<'_, PyAny>>,
    controller: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = plain)] budget: u32,
    #[pyo3(from_py_with = plain)] confirm: u8,
    #[pyo3(from_py_with = plain)] runs: u32,
    #[pyo3(from_py_with = plain)] until_sure: Option<f64>,
    #[pyo3(from_py_with = plain)] destroy_data: Option<PathBuf>,
    #[pyo3(from_py_with = plain)] file_size: u64,
    #[pyo3(from_py_with = plain)] machine: Option<String>,
    #[pyo3(from_py_with = plain)] replay: Option<String>,
    #[pyo3(from_py_with = plain)] speed: Option<f64>,
    #[pyo3(from_py_with = plain)] equal_within: f64,
    #[pyo3(from_py_with = plain)] run_for: Option<f64>,
    #[pyo3(from_py_with = plain)] warm_up: f64,
    #[pyo3(from_py_with = plain)] seed: u64,
    #[pyo3(from_py_with = plain)] kernel: Option<String>,
) -> PyResult<Advice> {
    let workload = Workload::from_any(workload).about("workload")?.inner;
    let profile = profile.map(Device::from_any).transpose().about("profile")?;
    within("confirm", f64::from(confirm), 1.0..=20.0, "settings")?;
    within("runs", f64::from(runs), 2.0..=1000.0, "runs")?;
    within("equal_within", equal_within, 0.01..=100.0, "per cent")?;
    until_sure.map_or(Ok(()), |percent| within("until_sure", percent, 0.01..=100.0, "per cent"))?;
    check_length(warm_up, run_for, speed)?;
    check_file_size(file_size)?;
    let mode = replay.as_deref().map(replay_mode).transpose()?;
    let replay = request::replay(mode, speed, &workload).map_err(|error| of_request(&error))?;
    let constraint = |text: String| text.parse().map_err(|problem| wrong("subject_to", problem));
    let constraints: Vec<Constraint> =
        names("subject_to", subject_to)?.into_iter().map(constraint).collect::<PyResult<_>>()?;
    let known = |name: String| name.parse().map_err(|problem| wrong("controller", problem));
    let controllers = names("controller", controller)?.into_iter().map(known).collect::<PyResult<_>>()?;
    let request = AdviceRequest {
        destroy_data,
        limits: Limits { warm_up_ns: ns(warm_up), run_for_ns: run_for.map(ns) },
        constraints,
        profile: profile.map(|device| device.profile),
        pace: if thorough { calibrate::Pace::FULL } else { calibrate::Pace::QUICK },
        file_size_mib: file_size,
        schedulers: names("scheduler", scheduler)?,
        controllers,
        budget,
        confirm: confirm.into(),
        runs,
        until_sure_percent: until_sure,
        equal_within_percent: equal_within,
        machine,
        kernel: kernels(kernel.as_slice())?.first().copied(),
        seed,
        ..AdviceRequest::new(&on, workload, replay, goals(goal)?)
    };
    let mut plan = AdvicePlan::of(request).map_err(|error| of_advice(&error))?;
    plan.command = format!("iosched.advise(…, on={:?}, …)", on.display().to_string());
    let found = Policies::default().carry_out(py, None, |control: &Control| plan.carry_out(control, &mut Silent))?;
    match found {
        Ok(Some(found)) => Ok(Advice { plan, found }),
        Ok(None) | Err(AdviseError::Lab(LabError::NothingRun)) => Err(PyKeyboardInterrupt::new_err(())),
        Err(error) => Err(of_advice(&error)),
    }
}

/// A recommendation, with the evidence from the device.
#[pyclass(frozen, module = "iosched")]
pub(crate) struct Advice {
    plan: AdvicePlan,
    found: AdviceResults,
}

impl Advice {
    fn lasting(&self) -> Option<Lasting> {
        let advice = self.found.advice();
        advice.recommended().map(|best| Lasting::of(self.plan.disk(), best, &self.found.present))
    }

    fn page(&self) -> String {
        let (advice, found) = (self.found.advice(), &self.found);
        let untried = advice.untried().map(|best| Lasting::of(self.plan.disk(), &best.setting, &found.present));
        let calibration = found.calibration.as_ref().map(|(measurements, calibration)| (measurements, calibration));
        iosched_report::advice_html(&advice, &found.records, calibration, self.lasting().as_ref(), untried.as_ref())
    }
}

#[pymethods]
impl Advice {
    /// The recommended setting. None means: keep the present setting.
    #[getter]
    fn recommended(&self) -> Option<Setting> {
        self.found.advice().recommended().map(|best| Setting(best.clone()))
    }

    /// The setting of the device before the runs.
    #[getter]
    fn present(&self) -> String {
        self.found.advice().present
    }

    /// The decision in sentences.
    #[getter]
    fn answer(&self) -> String {
        self.found.advice().decision().to_string()
    }

    /// The doubts. Each is a sentence.
    #[getter]
    fn doubts(&self) -> Vec<String> {
        self.found.advice().doubts()
    }

    /// Commands that apply the recommended setting until the next start, as root.
    #[getter]
    fn commands(&self) -> Vec<String> {
        self.lasting().map(|lasting| lasting.commands).unwrap_or_default()
    }

    /// The model of the device, as measured or as given.
    #[getter]
    fn device(&self) -> PyResult<Device> {
        Device::of(self.found.profile.clone(), None)
    }

    /// Writes the report, one HTML page.
    fn report(&self, #[pyo3(from_py_with = plain)] path: PathBuf) -> PyResult<()> {
        write_bytes_atomically(&path, self.page().as_bytes())
    }

    fn _repr_html_(&self) -> String {
        framed(&self.page())
    }
}
