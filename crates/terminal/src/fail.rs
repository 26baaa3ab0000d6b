//! Error messages and exit codes at the end of the command.

use std::io;
use std::os::unix::fs::FileTypeExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use iosched::UnknownElevator;
use iosched_advise::AdviseError;
use iosched_advise::calibrate::{CalibrateError, PlaceError};
use iosched_advise::tune::TuneError;
use iosched_advise::validation::ValidationError;
use iosched_attributes::AttributesError;
use iosched_disk::ProfileError;
use iosched_kernel::directory::DirectoryError;
use iosched_kernel::file::FileError;
use iosched_kernel::{ExecuteError, FindError, Refusal};
use iosched_lab::LabError;
use iosched_lab::request::{RequestError, did_you_mean, listed, nearest, profile_meant, quoted};
use iosched_lab::verify::{DeviceRequestError, VerifyError};
use iosched_live::backend::{OpenError, SpecError};
use iosched_live::fuse::MountError;
use iosched_live::reactor::StartError;
use iosched_live::{QUOTED_CHARS_MAX, SocketError, cut, shortened};
use iosched_trace::TraceError;
use iosched_workload::WorkloadError;
use iosched_workload::app;
use iosched_workload::fio::JobError;

use crate::error::is_wrong_file;
pub use crate::error::{FAILED, INTERRUPTED, Unread, Usage, of_file, usage};
use crate::output::{self, say};

/// Exit code after an error of usage.
const USAGE: u8 = 2;

/// Whether error messages include details.
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Makes error messages include details from now on.
pub fn be_verbose() {
    VERBOSE.store(true, Ordering::Relaxed);
}

/// Converts an error of a comparison request: the message gets the names of options.
pub fn of_comparison(error: RequestError) -> anyhow::Error {
    match error {
        RequestError::Argument { .. } => usage(format_args!("--{error}")),
        RequestError::Workload(error) => error.into(),
        RequestError::Profile(error) => error.into(),
        RequestError::Lab(error) => error.into(),
    }
}

/// Converts an error of a device, file or directory to measure.
pub fn of_place(error: PlaceError) -> anyhow::Error {
    match error {
        PlaceError::Directory(error) => error.into(),
        PlaceError::File(error) => error.into(),
        PlaceError::Find(error) => error.into(),
        PlaceError::Refusal(error) => error.into(),
        PlaceError::Wrong(_) => usage(error),
        error => error.into(),
    }
}

/// Converts an error of a validation.
pub fn of_validation(error: ValidationError) -> anyhow::Error {
    match error {
        ValidationError::Place(error) => of_place(error),
        ValidationError::Request(error) => of_device_request(error),
        ValidationError::Profile(error) => error.into(),
        ValidationError::State(error) => error.into(),
        error => error.into(),
    }
}

/// Converts an error of the advice.
pub fn of_advice(error: AdviseError) -> anyhow::Error {
    match error {
        AdviseError::Request(error) => of_device_request(error),
        AdviseError::Place(error) => of_place(error),
        AdviseError::Argument(error) => of_comparison(error),
        AdviseError::Lab(error) => error.into(),
        AdviseError::Tune(error) => error.into(),
        AdviseError::Calibrate(error) => error.into(),
        AdviseError::Profile(error) => error.into(),
        AdviseError::Wrong(_) => usage(error),
        error => error.into(),
    }
}

/// Converts an error of a request for runs on a real device.
pub fn of_device_request(error: DeviceRequestError) -> anyhow::Error {
    match error {
        DeviceRequestError::Request(error) => of_comparison(error),
        DeviceRequestError::Lab(error) => error.into(),
        DeviceRequestError::Directory(error) => error.into(),
        DeviceRequestError::Find(error) => error.into(),
        DeviceRequestError::Refusal(error) => error.into(),
        DeviceRequestError::State(error) => error.into(),
        error => usage(error),
    }
}

/// Prints the error, and returns the exit code.
pub fn report(error: &anyhow::Error) -> ExitCode {
    if error.is::<Unread>() {
        return ExitCode::SUCCESS;
    }
    tell(error);
    ExitCode::from(if is_usage(error) { USAGE } else { FAILED })
}

/// Prints an error of the arguments and exits. clap also reports the output of `--help` and
/// `--version` as an error.
pub fn wrong_arguments(mut error: clap::Error, command: &clap::Command) -> ! {
    if let Some(tip) = workload_tip(&error, command) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    let rendered = error.render().to_string();
    let text = with_short_arguments(&rendered);
    if !error.use_stderr() || shortened(&text) == rendered {
        error.exit();
    }
    say!("{}", text.trim_end());
    output::exit(error.exit_code())
}

/// Returns a hint for a workload without its option, as in `compare job.fio`.
fn workload_tip(error: &clap::Error, command: &clap::Command) -> Option<String> {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_word = error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-');
    let given = std::env::args().skip(1).find_map(|name| command.find_subcommand(name));
    let takes_workload = |command: &clap::Command| command.get_arguments().any(|arg| arg.get_id() == "workload");
    let is_wanted = is_word && given.is_some_and(takes_workload);
    is_wanted.then(|| format!("name a workload with --workload {}", quoted(word)))
}

/// Prints the message of an error on standard error.
pub fn tell(error: &anyhow::Error) {
    let tried = of_trace(error).filter(|_| VERBOSE.load(Ordering::Relaxed)).and_then(TraceError::tried);
    let tried = tried.map(|tried| format!("\n{tried}")).unwrap_or_default();
    say!("{}", with_short_arguments(&format!("error: {error}{}{}{tried}", meant(error), hint(error))));
}

/// Prints all errors except the first one, and returns the first one. An error of one output does
/// not prevent the other outputs.
///
/// # Errors
/// The first error of `results`.
pub fn all_of(results: impl IntoIterator<Item = Result<()>>) -> Result<()> {
    let mut errors = results.into_iter().filter_map(Result::err);
    let Some(first) = errors.next() else { return Ok(()) };
    for other in errors.filter(|other| !other.is::<Unread>()) {
        tell(&other);
    }
    Err(first)
}

/// Shortens the long arguments of the command line that appear in a message.
fn with_short_arguments(message: &str) -> String {
    let mut short = message.to_owned();
    for argument in std::env::args_os().filter(|argument| argument.len() > QUOTED_CHARS_MAX) {
        let argument = argument.to_string_lossy();
        short = short.replace(argument.trim(), &cut(argument.trim(), QUOTED_CHARS_MAX));
    }
    short
}

/// Returns the name that the user probably meant.
fn meant(error: &anyhow::Error) -> String {
    if let Some(unknown) = error.downcast_ref::<UnknownElevator>() {
        return did_you_mean(&unknown.name, unknown.known.iter().copied());
    }
    let of_backing = error.downcast_ref::<StartError>().and_then(|error| match error {
        StartError::Backend(SpecError::Profile(error)) => Some(error),
        _ => None,
    });
    if let Some(error) = error.downcast_ref().or(of_backing)
        && let meant = profile_meant(error)
        && !meant.is_empty()
    {
        return meant;
    }
    let not_found = match (of_trace(error), error.downcast_ref()) {
        (Some(TraceError::NotFound { file }), _) => file.split_whitespace().next(),
        (_, Some(WorkloadError::NoSuchProgram { program, remedy, .. })) if remedy.is_empty() => Some(program.as_str()),
        _ => None,
    };
    if let Some(program) = not_found {
        let is_command = of_trace(error).is_none();
        let programs = app::programs().iter().chain(app::programs_as_fio()).map(|known| known.name);
        let near = nearest(program, programs.clone());
        let known = || programs.collect::<Vec<_>>().join(", ");
        return match near {
            Some(near) => format!("; did you mean the program {near}?"),
            None if is_command => {
                format!("; iosched can simulate the programs {} and fio", known())
            }
            None => String::new(),
        };
    }
    if let Some(ProfileError::NotText { file, .. }) = error.downcast_ref()
        && std::fs::metadata(file).is_ok_and(|metadata| metadata.file_type().is_block_device())
    {
        return format!(
            "; to use the real device, run iosched compare --on {file}, or make a profile of this device with \
             iosched calibrate {file}"
        );
    }
    if let Some(FindError::Unknown { name, known }) = of_find(error) {
        return did_you_mean(name, listed(known));
    }
    String::new()
}

/// Returns the error of an unknown device, directly or from disk attributes.
fn of_find(error: &anyhow::Error) -> Option<&FindError> {
    let of_attributes = error.downcast_ref::<AttributesError>().and_then(|error| match error {
        AttributesError::Find(error) => Some(error),
        _ => None,
    });
    error.downcast_ref::<FindError>().or(of_attributes)
}

/// Returns the error of a trace, directly or from a workload.
fn of_trace(error: &anyhow::Error) -> Option<&TraceError> {
    let of_workload = error.downcast_ref::<WorkloadError>().and_then(|error| match error {
        WorkloadError::Trace(error) => Some(error),
        _ => None,
    });
    error.downcast_ref::<TraceError>().or(of_workload)
}

/// Returns a hint about an option that could help.
fn hint(error: &anyhow::Error) -> &'static str {
    match of_trace(error) {
        Some(TraceError::Partial { .. }) => "; to read the trace anyway, add --partial",
        Some(TraceError::BadLines { .. }) => {
            "; name the format of this file with --input-format or --columns, and add --partial to skip bad lines"
        }
        _ => "",
    }
}

/// Returns whether a different command line, setting or file could help.
pub fn is_usage(error: &anyhow::Error) -> bool {
    if let Some(error) = error.downcast_ref::<WorkloadError>() {
        return match error {
            WorkloadError::Io { source, .. } => is_wrong_file(source),
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
            CalibrateError::Io { source, .. } => is_wrong_file(source),
            CalibrateError::Measure { .. } | CalibrateError::Nothing { .. } | CalibrateError::Simulation(_) => false,
            _ => true,
        };
    }
    if let Some(error) = error.downcast_ref::<ValidationError>() {
        return match error {
            ValidationError::Wrong(_) => true,
            ValidationError::Lab(error) => is_usage_of_lab(error),
            _ => false,
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
        return !matches!(error, MountError::Mount { .. } | MountError::NotBuilt);
    }
    if let Some(error) = error.downcast_ref::<FileError>() {
        return !matches!(error, FileError::Io { .. });
    }
    if matches!(error.downcast_ref(), Some(DirectoryError::Shared { .. })) {
        return true;
    }
    if let Some(AttributesError::Wrong(_)) = error.downcast_ref() {
        return true;
    }
    if let Some(error) = of_find(error) {
        return !matches!(error, FindError::Io { error, .. } if !is_wrong_file(error));
    }
    if let Some(error) = error.downcast_ref::<Refusal>() {
        return !matches!(error, Refusal::Io { .. } | Refusal::Unseen { .. });
    }
    if let Some(error) = error.downcast_ref::<SocketError>() {
        return match error {
            SocketError::Io { source, .. } => is_wrong_file(source),
            SocketError::NotASocket { .. } | SocketError::Replaceable { .. } => true,
            // The path is right, but another program uses the socket.
            SocketError::InUse { .. } | SocketError::NotOurs { .. } => false,
        };
    }
    error.is::<Usage>() || error.is::<ProfileError>() || error.is::<UnknownElevator>()
}

fn is_usage_of_verify(error: &VerifyError) -> bool {
    match error {
        VerifyError::Setting { .. } => true,
        VerifyError::Execute(error) => matches!(
            **error,
            ExecuteError::Workload(_)
                | ExecuteError::NoConsent { .. }
                | ExecuteError::OnlyRead { .. }
                | ExecuteError::NeedsDirectory { .. }
                | ExecuteError::UsesDevice { .. }
        ),
        _ => false,
    }
}

fn is_usage_of_lab(error: &LabError) -> bool {
    match error {
        LabError::Run { .. } | LabError::Bug { .. } => false,
        LabError::Verify(error) => is_usage_of_verify(error),
        LabError::Io { source, .. } => is_wrong_file(source),
        _ => true,
    }
}

fn is_usage_of_job_file(error: &JobError) -> bool {
    match error {
        JobError::Io { source, .. } => is_wrong_file(source),
        JobError::Unsupported(_) => false,
        _ => true,
    }
}

fn is_usage_of_trace(error: &TraceError) -> bool {
    match error {
        TraceError::Io { source, .. } => is_wrong_file(source),
        TraceError::Unreadable { .. } | TraceError::Partial { .. } | TraceError::Write(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use iosched_kernel::{RecordError, SettingsError};
    use iosched_live::ublk::UblkError;
    use iosched_live::vhost::VhostError;

    use super::*;

    #[test]
    fn errors_of_one_kind_have_one_exit_status() {
        use io::ErrorKind::{NotFound, PermissionDenied};
        let path = || PathBuf::from("/x");
        let of = |kind: io::ErrorKind| io::Error::from(kind);
        let find = |kind| FindError::Io { path: path(), error: of(kind) }.into();
        let socket = |kind| SocketError::Io { path: path(), source: of(kind) }.into();
        let file = |kind| of_file("x".to_owned(), &of(kind));
        let kinds: [(&str, bool, Vec<anyhow::Error>); 5] = [
            ("a path that is not there", true, vec![find(NotFound), socket(NotFound), file(NotFound)]),
            (
                "no permission",
                false,
                vec![
                    find(PermissionDenied),
                    socket(PermissionDenied),
                    file(PermissionDenied),
                    Refusal::Io { path: path(), error: of(PermissionDenied) }.into(),
                    SettingsError::Permission { device: "sda".to_owned(), path: path() }.into(),
                    RecordError::Permission { path: path() }.into(),
                    UblkError::NotAllowed.into(),
                ],
            ),
            (
                "no such driver or file system",
                false,
                vec![
                    RecordError::NotMounted { path: path() }.into(),
                    RecordError::NoTracer.into(),
                    UblkError::NoDriver.into(),
                    MountError::Mount { directory: path(), source: of(NotFound) }.into(),
                ],
            ),
            ("not built in", false, vec![MountError::NotBuilt.into(), VhostError::NotBuilt.into()]),
            (
                "another process uses it",
                false,
                vec![
                    SocketError::InUse { path: path() }.into(),
                    SettingsError::Busy { device: "sda".to_owned(), pid: 1 }.into(),
                    RecordError::Recording { pid: 1 }.into(),
                    UblkError::Taken { number: 1 }.into(),
                ],
            ),
        ];
        for (kind, expected, errors) in kinds {
            for error in errors {
                assert_eq!(is_usage(&error), expected, "{kind}: {error}");
            }
        }
    }
}
