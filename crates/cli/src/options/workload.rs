//! Workloads by the names that options give them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosched_lab::request;
use iosched_workload::Workload;

use super::reading::{self, Reading};
use crate::fail::of_comparison;

/// The files of a workload: those of a trace may be several.
pub(crate) fn files(workload: &Path) -> Vec<PathBuf> {
    iosched_trace::files(workload).unwrap_or_else(|_| vec![workload.to_owned()])
}

/// That a workload or a device that nobody named is a sample, and how to give others; `devices` has the options for that.
pub(crate) fn sample(workload: bool, device: bool, devices: &str) -> Option<String> {
    let trace = "a recorded pgbench run (PostgreSQL)";
    let model = format!("a model of a hard disk ({})", request::DEVICE);
    Some(match (workload, device) {
        (true, true) => {
            format!("This is a sample: {trace} on {model}. For your case, give --workload FILE and {devices}.")
        }
        (true, false) => format!("The workload is a sample: {trace}. For yours, give --workload FILE."),
        (false, true) => format!("The device is {model}. For yours, give {devices}."),
        (false, false) => return None,
    })
}

/// The workload; the sample if none is named. What is missing of a recording is the first that is said.
pub(crate) fn open_workload(path: Option<&Path>, reading: &Reading) -> Result<Workload> {
    let workload = request::open_workload(path, &reading.options()).map_err(of_comparison)?;
    if let Workload::Trace(trace) = &workload {
        reading::warn(trace.completeness());
    }
    Ok(workload)
}
