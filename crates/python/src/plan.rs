//! Plans for several units, as in `iosched plan`.

use std::path::PathBuf;

use iosched::KernelVersion;
use iosched_lab::request::ProcessEnvironment;
use iosched_plan::{Fleet, Intents, PlanError, PlanOptions, Planned};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::device::python;
use crate::error::{About as _, of_lab, of_profile, plain, usage};
use crate::policy::Policies;

/// Finds a setting that meets the goals of several units on one device: `iosched plan --json`.
///
/// `intents` is the path of an intents file. The result is a dict: the setting, the units with
/// their goals and outcomes, the costs, the conditions that break the plan, and the nearest goals
/// that the plan can meet. If the file has a list of devices, the result has the
/// list `devices` with such a dict for each device.
#[pyfunction]
#[pyo3(signature = (intents, *, kernel=None, seed=1, jobs=None))]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    #[pyo3(from_py_with = plain)] intents: PathBuf,
    #[pyo3(from_py_with = plain)] kernel: Option<String>,
    #[pyo3(from_py_with = plain)] seed: u64,
    #[pyo3(from_py_with = plain)] jobs: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let kernel = kernel.map(|text| text.parse::<KernelVersion>()).transpose();
    let kernel = kernel.map_err(|error| usage(error).about("kernel"))?;
    let fleet = Intents::open_fleet(&intents, &ProcessEnvironment).map_err(|error| usage(error).about("intents"))?;
    let options = PlanOptions { seed, kernel };
    let planned = Policies::default()
        .carry_out(py, jobs, |control| {
            let of_device = |intents: &Intents| iosched_plan::plan(intents, &options, control, |_| ());
            fleet.iter().map(of_device).collect::<Result<Vec<Planned>, PlanError>>()
        })?
        .map_err(|error| match error {
            PlanError::Run(error) => of_lab(&error),
            PlanError::Profile(error) => of_profile(&error).about("intents"),
            PlanError::Interrupted => PyKeyboardInterrupt::new_err(()),
            error => usage(error).about("intents"),
        })?;
    match planned.as_slice() {
        [planned] => python(py, planned),
        _ => python(py, &Fleet { devices: planned }),
    }
}
