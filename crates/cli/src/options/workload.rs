//! Workloads from the values of options.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosched_lab::request;
use iosched_workload::Workload;

use super::reading::Reading;
use iosched_terminal::fail::of_comparison;
use iosched_terminal::show::trace::warn_of_gaps;

/// Returns the files of a workload. A trace can have several.
pub(crate) fn files(workload: &Path) -> Vec<PathBuf> {
    iosched_trace::files(workload).unwrap_or_else(|_| vec![workload.to_owned()])
}

/// Returns a sentence if the workload or the device is the sample. The sentence says how to choose
/// another one. `devices` names the options for devices.
pub(crate) fn sample(workload: bool, device: bool, devices: &str) -> Option<String> {
    let trace = "a recorded pgbench run (PostgreSQL)";
    let model = format!("a model of a hard disk ({})", request::DEVICE);
    Some(match (workload, device) {
        (true, true) => {
            format!(
                "This is a sample: {trace} on {model}. For your own workload and device, give --workload FILE and \
                 {devices}."
            )
        }
        (true, false) => format!("The workload is a sample: {trace}. For your own workload, give --workload FILE."),
        (false, true) => format!("The device is {model}. For your own device, give {devices}."),
        (false, false) => return None,
    })
}

/// Opens the workload. Without a path, opens the sample. Prints a warning if the trace is
/// incomplete.
pub(crate) fn open_workload(path: Option<&Path>, reading: &Reading) -> Result<Workload> {
    let workload = request::open_workload(path, &reading.options()).map_err(of_comparison)?;
    if let Workload::Trace(trace) = &workload {
        warn_of_gaps(trace.completeness());
    }
    Ok(workload)
}
