//! The report about all disks, or about one disk and its parts.

use std::io;
use std::path::Path;

use iosched_trace::{RATES_BYTES_MAX, rates_of, read_text};
use serde::Serialize;

use super::{Disk, Finding, Ioprio, Snapshot, examine, load};

/// Version of the JSON document. It increases if a field changes its meaning or is removed.
pub const SCHEMA: u32 = 1;

/// Reason why the doctor cannot make a report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DoctorError {
    /// The given disk or file is wrong. The user can give another one.
    #[error("{0}")]
    Wrong(String),
    /// The file with rates cannot be read.
    #[error("{file}: {source}; give a file with the output of iostat -x or sar -d")]
    Rates {
        /// Name of the file.
        file: String,
        /// Error of the system.
        source: io::Error,
    },
}

/// Report about all disks of a machine, or about one disk with its parts.
#[derive(Debug)]
pub struct Report<'m> {
    /// The machine.
    pub machine: &'m Snapshot,
    /// The disks of the stack, the chosen disk first.
    pub disks: Vec<&'m Disk>,
    /// The findings about these disks and the machine, important ones first.
    pub findings: Vec<Finding>,
}

/// The report as data, such as for JSON.
#[derive(Serialize, Debug)]
pub struct Document<'r> {
    schema: u32,
    kernel: &'r str,
    ioprios: Option<&'r [Ioprio]>,
    disks: &'r [&'r Disk],
    findings: &'r [Finding],
}

impl<'m> Report<'m> {
    /// Examines the machine. With a disk, the report has the disk and its parts. With a file of
    /// `iostat -x` or `sar -d`, the report also says whether requests wait.
    ///
    /// # Errors
    /// The machine has no such disk, or the file does not contain rates of its disks.
    pub fn of(machine: &'m Snapshot, disk: Option<&str>, rates: Option<&Path>) -> Result<Self, DoctorError> {
        let mut findings = examine(machine);
        if let Some(file) = rates {
            findings.extend(of_rates(machine, file)?);
            findings.sort_by_key(|finding| finding.weight);
        }
        match disk {
            Some(name) => Self::of_disk(machine, name, findings),
            None => Ok(Self::of_all(machine, findings)),
        }
    }

    /// Creates the report of all disks.
    #[must_use]
    pub fn of_all(machine: &'m Snapshot, findings: Vec<Finding>) -> Self {
        Self { machine, disks: machine.disks.iter().collect(), findings }
    }

    /// Creates the report of a disk, the disks below it, and the layers above it.
    ///
    /// # Errors
    /// The machine has no such disk.
    pub fn of_disk(machine: &'m Snapshot, name: &str, mut findings: Vec<Finding>) -> Result<Self, DoctorError> {
        let disks = machine.way(name);
        if disks.is_empty() {
            return Err(DoctorError::Wrong(format!(
                "{name}: this device has no scheduler, because the device is memory, a loop device without a file, \
                 or a drive without a medium"
            )));
        }
        let above = machine.above(name);
        let place = |finding: &Finding| match &finding.disk {
            None => Some(disks.len() + 1),
            Some(name) => {
                let is_layer =
                    finding.file.contains("/dm/") || finding.file.contains("/md/") || finding.file.contains("/loop/");
                let above = above.iter().any(|disk| disk.name == *name && is_layer).then_some(disks.len());
                disks.iter().position(|disk| disk.name == *name).or(above)
            }
        };
        findings.retain(|finding| place(finding).is_some());
        findings.sort_by_key(|finding| (finding.weight, place(finding)));
        Ok(Self { machine, disks, findings })
    }

    /// Returns the report as data.
    #[must_use]
    pub fn document(&self) -> Document<'_> {
        Document {
            schema: SCHEMA,
            kernel: &self.machine.kernel,
            ioprios: self.machine.ioprios.as_deref(),
            disks: &self.disks,
            findings: &self.findings,
        }
    }
}

/// Returns the findings from a file with the output of iostat or sar.
fn of_rates(machine: &Snapshot, file: &Path) -> Result<Vec<Finding>, DoctorError> {
    let shown = file.display();
    let from = if file == Path::new("-") { Path::new("/dev/stdin") } else { file };
    // The file is read only once, because a pipe cannot be read twice.
    let text =
        read_text(from, RATES_BYTES_MAX).map_err(|source| DoctorError::Rates { file: shown.to_string(), source })?;
    let wrong = || DoctorError::Wrong(format!("{shown}: this is not the output of iostat -x or sar -d"));
    let rates = rates_of(&text).ok_or_else(wrong)?;
    let found = load(machine, &rates, &shown.to_string());
    if found.is_empty() {
        let seen: Vec<&str> = rates.devices.iter().map(|rates| rates.device.as_str()).collect();
        let disks: Vec<&str> = machine.disks.iter().map(|disk| disk.name.as_str()).collect();
        let (seen, disks) = (seen.join(", "), disks.join(", "));
        return Err(DoctorError::Wrong(format!(
            "{shown}: the report has {seen}, but none of these devices has a scheduler on this machine; the disks of \
             this machine are {disks}"
        )));
    }
    Ok(found)
}
