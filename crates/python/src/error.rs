//! Exceptions: what the libraries say, under a class by what is wrong.

use std::fmt::Display;
use std::io;

use iosched_advise::tune::TuneError;
use iosched_disk::ProfileError;
use iosched_lab::LabError;
use iosched_lab::asked::AskedError;
use iosched_sim::SimError;
use iosched_trace::TraceError as OfTrace;
use iosched_workload::WorkloadError as OfWorkload;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyFileNotFoundError, PyKeyboardInterrupt, PyOSError};

create_exception!(iosched, IoschedError, PyException, "Anything that iosched says is wrong.");
create_exception!(iosched, UsageError, IoschedError, "What was asked for cannot be: other arguments would be right.");
create_exception!(iosched, DeviceError, UsageError, "There is no such device profile, or no device can be so.");
create_exception!(iosched, WorkloadError, UsageError, "What should be a workload is none.");
create_exception!(iosched, TraceError, WorkloadError, "What should be a trace is none, or not the whole recording.");
create_exception!(iosched, RunError, IoschedError, "A run could not be finished.");
create_exception!(
    iosched,
    PolicyError,
    RunError,
    "An elevator written in Python raised something or returned nonsense. It has time_ns, method, queued (its requests then) and policy."
);

pub(crate) fn of_io(error: &io::Error, told: impl Display) -> PyErr {
    // What a file of Python's raised is raised again.
    if let Some(raised) = error.get_ref().and_then(|inner| inner.downcast_ref::<PyErr>()) {
        return pyo3::Python::attach(|py| raised.clone_ref(py));
    }
    match error.kind() {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(told.to_string()),
        _ => PyOSError::new_err(told.to_string()),
    }
}

pub(crate) fn usage(problem: impl Display) -> PyErr {
    UsageError::new_err(problem.to_string())
}

pub(crate) fn workload(problem: String) -> PyErr {
    WorkloadError::new_err(problem)
}

pub(crate) fn of_trace(error: &OfTrace) -> PyErr {
    match error {
        OfTrace::Io { source, .. } => of_io(source, error),
        OfTrace::NotFound { .. } => PyFileNotFoundError::new_err(error.to_string()),
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
    match error {
        LabError::Run { source, .. } if matches!(**source, SimError::Interrupted { .. }) => {
            PyKeyboardInterrupt::new_err(())
        }
        LabError::Run { .. } | LabError::Bug { .. } => RunError::new_err(error.to_string()),
        LabError::Io { source, .. } => of_io(source, error),
        _ => usage(error),
    }
}

pub(crate) fn of_asked(error: &AskedError) -> PyErr {
    match error {
        AskedError::Argument { .. } => usage(error),
        AskedError::Workload(error) => of_workload(error),
        AskedError::Profile(ProfileError::Unreadable { source, .. }) => of_io(source, error),
        AskedError::Profile(_) => DeviceError::new_err(error.to_string()),
        AskedError::Lab(error) => of_lab(error),
    }
}

pub(crate) fn of_tuning(error: &TuneError) -> PyErr {
    match error {
        TuneError::Lab(error) => of_lab(error),
        _ => usage(error),
    }
}

pub(crate) fn of_simulation(error: &SimError) -> PyErr {
    match error {
        SimError::Interrupted { .. } => PyKeyboardInterrupt::new_err(()),
        _ => RunError::new_err(error.to_string()),
    }
}
