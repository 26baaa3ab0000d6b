//! How the command ends: exit codes, and what is said with them.

use std::fmt;
use std::io;
use std::process::ExitCode;

use iosched_kernel::ExecuteError;
use iosched_kernel::file::FileError;
use iosched_lab::LabError;
use iosched_lab::calibrate::CalibrateError;
use iosched_lab::tune::TuneError;
use iosched_lab::verify::VerifyError;
use iosched_live::backend::{OpenError, SpecError};
use iosched_live::fuse::MountError;
use iosched_live::reactor::StartError;
use iosched_trace::TraceError;
use iosched_workload::WorkloadError;
use iosched_workload::fio::JobError;

use crate::output::say;

/// Ended by Ctrl-C: as a shell says of a program that SIGINT ended.
pub(crate) const INTERRUPTED: u8 = 130;
pub(crate) const FAILED: u8 = 1;
const USAGE: u8 = 2;

/// What the user asked for is not possible: another command line or another file would be.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// An error of usage.
pub(crate) fn usage(problem: impl fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Usage(problem.to_string()))
}

/// Says what went wrong; the exit code.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    // Whoever read our output has seen enough.
    let pipe_closed = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    if error.chain().any(pipe_closed) {
        return ExitCode::SUCCESS;
    }
    say!("error: {error}");
    ExitCode::from(if is_usage(error) { USAGE } else { FAILED })
}

fn is_usage(error: &anyhow::Error) -> bool {
    if let Some(error) = error.downcast_ref::<WorkloadError>() {
        return match error {
            WorkloadError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            WorkloadError::Trace(error) => is_usage_of_trace(error),
            WorkloadError::JobFile(error) => is_usage_of_job_file(error),
            _ => true,
        };
    }
    if let Some(error) = error.downcast_ref::<LabError>() {
        return is_usage_of_lab(error);
    }
    if let Some(error) = error.downcast_ref::<TuneError>() {
        return !matches!(error, TuneError::Lab(error) if !is_usage_of_lab(error));
    }
    if let Some(error) = error.downcast_ref::<CalibrateError>() {
        return match error {
            CalibrateError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
            CalibrateError::Measure { .. } | CalibrateError::Nothing { .. } | CalibrateError::Simulation(_) => false,
            _ => true,
        };
    }
    if let Some(error) = error.downcast_ref::<TraceError>() {
        return is_usage_of_trace(error);
    }
    if let Some(error) = error.downcast_ref::<JobError>() {
        return is_usage_of_job_file(error);
    }
    if let Some(error) = error.downcast_ref::<StartError>() {
        return match error {
            StartError::Backend(SpecError::Open(OpenError::Io { error, .. })) => {
                error.kind() == io::ErrorKind::NotFound
            }
            StartError::Backend(SpecError::Memory { .. }) | StartError::Ring(_) | StartError::System(_) => false,
            _ => true,
        };
    }
    if let Some(error) = error.downcast_ref::<MountError>() {
        return !matches!(error, MountError::Mount { .. });
    }
    if let Some(error) = error.downcast_ref::<FileError>() {
        return !matches!(error, FileError::Io { .. });
    }
    if error.is::<iosched_kernel::FindError>() || error.is::<iosched_kernel::Refusal>() {
        return true;
    }
    error.is::<Usage>() || error.is::<iosched_disk::ProfileError>() || error.is::<iosched::UnknownElevator>()
}

fn is_usage_of_verify(error: &VerifyError) -> bool {
    match error {
        VerifyError::Setting { .. } => true,
        VerifyError::Execute(error) => matches!(
            **error,
            ExecuteError::Workload(_) | ExecuteError::NoConsent { .. } | ExecuteError::NeedsDirectory { .. }
        ),
        _ => false,
    }
}

fn is_usage_of_lab(error: &LabError) -> bool {
    match error {
        LabError::Run { .. } | LabError::Bug { .. } => false,
        LabError::Verify(error) => is_usage_of_verify(error),
        LabError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        _ => true,
    }
}

fn is_usage_of_job_file(error: &JobError) -> bool {
    match error {
        JobError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        JobError::Unsupported(_) => false,
        _ => true,
    }
}

fn is_usage_of_trace(error: &TraceError) -> bool {
    match error {
        TraceError::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        TraceError::Unreadable { .. } | TraceError::Write(_) => false,
        _ => true,
    }
}
