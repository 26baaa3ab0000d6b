//! Converts the libraries' errors to classes of `iosched.errors`, with the name of the argument.

use std::fmt::Display;
use std::io;
use std::path::Path;

use iosched_advise::tune::{SpaceError, TuneError};
use iosched_disk::ProfileError;
use iosched_lab::LabError;
use iosched_lab::request::RequestError;
use iosched_sim::SimError;
use iosched_trace::TraceError as OfTrace;
use iosched_workload::WorkloadError as OfWorkload;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use pyo3::{import_exception, intern};

import_exception!(iosched.errors, ArgumentTypeError);
import_exception!(iosched.errors, ColumnError);
import_exception!(iosched.errors, DeviceError);
import_exception!(iosched.errors, FileError);
import_exception!(iosched.errors, IoschedError);
import_exception!(iosched.errors, IoschedWarning);
import_exception!(iosched.errors, MissingFileError);
import_exception!(iosched.errors, PolicyError);
import_exception!(iosched.errors, RunError);
import_exception!(iosched.errors, TraceError);
import_exception!(iosched.errors, UsageError);
import_exception!(iosched.errors, WorkloadError);

/// Adds the name of the argument to an error.
pub(crate) trait About {
    /// Adds the name of the argument, unless the error already names one. Converts Python's own
    /// TypeError and ValueError to errors of this package.
    fn about(self, argument: &str) -> Self;
}

impl About for PyErr {
    fn about(self, argument: &str) -> Self {
        Python::attach(|py| {
            let error = ours(py, self);
            let value = error.value(py);
            let name = intern!(py, "argument");
            let is_open =
                value.is_instance_of::<IoschedError>() && value.getattr(name).is_ok_and(|value| value.is_none());
            match is_open.then(|| value.setattr(name, argument)) {
                Some(Err(failed)) => failed,
                _ => error,
            }
        })
    }
}

impl<T> About for PyResult<T> {
    fn about(self, argument: &str) -> Self {
        self.map_err(|error| error.about(argument))
    }
}

/// Converts Python's TypeError and ValueError to classes of this package.
fn ours(py: Python<'_>, error: PyErr) -> PyErr {
    let text = || error.value(py).to_string();
    let known = |exception: PyErr| {
        exception.set_cause(py, Some(error.clone_ref(py)));
        exception
    };
    if error.is_instance_of::<IoschedError>(py) {
        error
    } else if error.is_instance_of::<PyTypeError>(py) {
        known(ArgumentTypeError::new_err(text()))
    } else if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOverflowError>(py) {
        known(UsageError::new_err(text()))
    } else {
        error
    }
}

/// Extracts an argument of a plain type. On failure, PyO3 adds a note with the name of the argument
/// to the exception. Errors of this package take the name from this note.
pub(crate) fn plain<'py, T>(given: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py> + 'static,
{
    let extracted = given.extract::<T>().map_err(Into::into).map_err(|error| ours(given.py(), error));
    let is_flag = std::any::TypeId::of::<T>() == std::any::TypeId::of::<bool>();
    if extracted.is_ok() && given.is_instance_of::<PyBool>() && !is_flag {
        return Err(ArgumentTypeError::new_err(format!("expected a number or text, found {given}")));
    }
    extracted
}

/// Converts an error of a file.
pub(crate) fn of_io(error: &io::Error, message: impl Display) -> PyErr {
    // An exception that a Python file object raised is raised again without a change.
    if let Some(raised) = error.get_ref().and_then(|inner| inner.downcast_ref::<PyErr>()) {
        return Python::attach(|py| raised.clone_ref(py));
    }
    match error.kind() {
        io::ErrorKind::NotFound => MissingFileError::new_err(message.to_string()),
        _ => FileError::new_err(message.to_string()),
    }
}

/// Converts an error of the file that an argument `path` names.
pub(crate) fn of_path(error: &io::Error, path: &Path) -> PyErr {
    of_io(error, format_args!("{}: {error}", path.display())).about("path")
}

pub(crate) fn usage(problem: impl Display) -> PyErr {
    UsageError::new_err(problem.to_string())
}

/// Returns an error about the value of an argument. `problem` continues a sentence that begins with
/// the name of the argument.
pub(crate) fn wrong(argument: &str, problem: impl Display) -> PyErr {
    usage(format_args!("{argument} {problem}")).about(argument)
}

pub(crate) fn workload(problem: String) -> PyErr {
    WorkloadError::new_err(problem)
}

pub(crate) fn of_trace(error: &OfTrace) -> PyErr {
    match error {
        OfTrace::Io { source, .. } => of_io(source, error),
        OfTrace::NotFound { .. } => MissingFileError::new_err(error.to_string()),
        _ => TraceError::new_err(error.to_string()),
    }
}

pub(crate) fn of_workload(error: &OfWorkload) -> PyErr {
    match error {
        OfWorkload::Trace(error) => of_trace(error),
        OfWorkload::Io { source, .. } => of_io(source, error),
        _ => WorkloadError::new_err(error.to_string()),
    }
}

pub(crate) fn of_profile(error: &ProfileError) -> PyErr {
    match error {
        ProfileError::Unreadable { source, .. } => of_io(source, error),
        _ => DeviceError::new_err(error.to_string()),
    }
}

pub(crate) fn of_lab(error: &LabError) -> PyErr {
    let about = match error {
        LabError::Run { source, .. } if matches!(**source, SimError::Interrupted { .. }) => {
            return PyKeyboardInterrupt::new_err(());
        }
        LabError::Run { .. } | LabError::Bug { .. } => return RunError::new_err(error.to_string()),
        LabError::Io { source, .. } => return of_io(source, error),
        LabError::NoSettings | LabError::TwiceTheSame { .. } | LabError::Setting { .. } => "scheduler",
        LabError::TwiceTheSameDevice { .. } => "device",
        LabError::NoRuns => "runs",
        LabError::OnlyWarmUp { .. } => "warm_up",
        LabError::UnknownBaseline { .. } => "baseline",
        LabError::UnknownMachine { .. } => "machine",
        LabError::NoSuchFigure { .. } => "goal",
        LabError::NoCgroup { .. } | LabError::Workload { .. } => "workload",
        LabError::NotRecords { .. } | LabError::LaterFormat { .. } | LabError::BadRecord { .. } => "path",
        _ => return usage(error),
    };
    usage(error).about(about)
}

pub(crate) fn of_request(error: &RequestError) -> PyErr {
    match error {
        RequestError::Argument { argument: "input-format", .. } => usage(error).about("format"),
        RequestError::Argument { argument, .. } => usage(error).about(argument),
        RequestError::Workload(error) => of_workload(error),
        RequestError::Profile(ProfileError::Unreadable { source, .. }) => of_io(source, error),
        RequestError::Profile(_) => DeviceError::new_err(error.to_string()),
        RequestError::Lab(error) => of_lab(error),
    }
}

pub(crate) fn of_tuning(error: &TuneError) -> PyErr {
    let about = match error {
        TuneError::Lab(error) => return of_lab(error),
        TuneError::Space(SpaceError::Setting(_)) => "scheduler",
        TuneError::Space(SpaceError::Unknown { option, .. } | SpaceError::NotWorthTrying { option, .. }) => {
            option.trim_start_matches('-')
        }
        TuneError::NoGoal => "goal",
        TuneError::Bound { .. } => "subject_to",
        TuneError::Budget { .. } => "budget",
        TuneError::NoCgroups { .. } => "also",
        TuneError::Devices { .. } => "device",
        _ => return usage(error),
    };
    usage(error).about(about)
}

pub(crate) fn of_simulation(error: &SimError) -> PyErr {
    match error {
        SimError::Interrupted { .. } => PyKeyboardInterrupt::new_err(()),
        _ => RunError::new_err(error.to_string()),
    }
}
