//! Workloads, and what they run on, by the names that options give them.

use std::path::{Path, PathBuf};

use anyhow::Result;
use iosched_lab::MachineProfile;
use iosched_workload::Workload;

use super::reading::{self, Reading};
use crate::fail::usage;
use crate::sample;

/// The device if none is named.
pub(crate) const DEVICE_DEFAULT: &str = "sata-7200";
/// Stands for standard input.
const STANDARD_INPUT: &str = "-";
/// The machine that applications run on if none is named.
const MACHINE_DEFAULT: &str = "server-2010";

/// The files of a workload: those of a trace may be several.
pub(crate) fn files(workload: &Path) -> Vec<PathBuf> {
    iosched_trace::files(workload).unwrap_or_else(|_| vec![workload.to_owned()])
}

/// The workload; the sample if none is named. What is missing of a recording is the first that is said.
pub(crate) fn open_workload(path: Option<&Path>, reading: &Reading) -> Result<Workload> {
    let workload = match path {
        Some(path) if path == Path::new(STANDARD_INPUT) => {
            Workload::read("standard input", std::io::stdin(), &crate::job::ProcessEnvironment, &reading.options())?
        }
        Some(path) => Workload::open_as(path, &crate::job::ProcessEnvironment, &reading.options())?,
        None => sample::open()?,
    };
    match (&workload, reading.given()) {
        (Workload::Trace(trace), _) => reading::warn(trace.completeness()),
        (_, Some(option)) => return Err(usage(format_args!("{option} is for traces, and this workload is none"))),
        (_, None) => {}
    }
    Ok(workload)
}

/// The machine that an application runs on; `None` of other workloads.
pub(crate) fn machine(name: Option<&str>, workload: &Workload) -> Result<Option<MachineProfile>> {
    match (workload, name) {
        (Workload::Application(_), name) => Ok(Some(MachineProfile::load(name.unwrap_or(MACHINE_DEFAULT))?)),
        (_, Some(_)) => Err(usage("--machine is for applications; other workloads go to the device itself")),
        (_, None) => Ok(None),
    }
}
