//! Workloads by the names that options give them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosched_lab::asked;
use iosched_workload::Workload;

use super::reading::{self, Reading};
use crate::fail::of_asked;

/// The files of a workload: those of a trace may be several.
pub(crate) fn files(workload: &Path) -> Vec<PathBuf> {
    iosched_trace::files(workload).unwrap_or_else(|_| vec![workload.to_owned()])
}

/// The workload; the sample if none is named. What is missing of a recording is the first that is said.
pub(crate) fn open_workload(path: Option<&Path>, reading: &Reading) -> Result<Workload> {
    let workload = asked::open_workload(path, &reading.options()).map_err(of_asked)?;
    if let Workload::Trace(trace) = &workload {
        reading::warn(trace.completeness());
    }
    Ok(workload)
}
