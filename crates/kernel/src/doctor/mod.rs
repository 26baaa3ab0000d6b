//! Finds the settings between a process and a disk, and reports which of them have no effect.
//!
//! [`Snapshot::of`] reads the state of the machine, and writes nothing. [`examine`] then judges the
//! snapshot without I/O. It returns [`Finding`]s, each with its certainty. If no file shows a fact,
//! the finding says that the fact is not known.
//!
//! | file | contents |
//! |---|---|
//! | `snapshot.rs` | the facts about the machine and each disk |
//! | `read.rs` | reads the snapshot, below [`Roots`] |
//! | `groups.rs` | reads the settings of cgroups |
//! | `finding.rs` | the findings and their fields |
//! | `scheduler.rs` | whether the scheduler suits the disk, and whether it has requests to order |
//! | `ionice.rs` | whether the scheduler or the drive uses the ioprio of processes |
//! | `wbt.rs` | writeback throttling |
//! | `control.rs` | limits and weights of cgroups for a disk, and whether they are in force |
//! | `bfq.rs` | weights of systemd units under bfq |
//! | `layers.rs` | device mapper, RAID, loop devices, file systems over several disks |
//! | `hardware.rs` | the kind of disk, and settings of its queue that do not suit this kind |
//! | `load.rs` | rates from iostat or sar: whether requests wait |
//! | `machine.rs` | findings about the whole machine |
//! | `report.rs` | all disks, or one disk with its parts, and the findings about them |

mod bfq;
mod control;
mod finding;
mod groups;
mod hardware;
mod ionice;
mod layers;
mod load;
mod machine;
mod read;
mod report;
mod scheduler;
mod snapshot;
#[cfg(test)]
#[path = "../tests/doctor.rs"]
mod tests;
mod wbt;

pub use finding::{Finding, Id, Sure, Weight};
pub use groups::{Cgroups, Cost, Group, Unified, Weights};
pub use ionice::Looks;
pub use load::load;
pub use report::{DoctorError, Document, Report, SCHEMA};
pub use snapshot::{Disk, Ioprio, Layer, Snapshot, Spread, Throttling};

use crate::roots::Roots;

impl Snapshot {
    /// Reads the present state of the machine.
    #[must_use]
    pub fn of(roots: &Roots) -> Self {
        // Only the running kernel can report the ioprio of processes. The files of another machine
        // contain no ioprio.
        let ask = |tid| if *roots == Roots::default() { iosched_system::call::ioprio_of(tid) } else { None };
        read::snapshot(roots, &ask)
    }
}

/// Returns all findings. Important findings come first. Findings of the same importance are ordered
/// by disk.
#[must_use]
pub fn examine(machine: &Snapshot) -> Vec<Finding> {
    let mut found = machine::findings(machine);
    for disk in &machine.disks {
        found.extend(scheduler::findings(disk));
        found.extend(ionice::findings(machine, disk));
        found.extend(wbt::findings(machine, disk));
        found.extend(control::findings(machine, disk));
        found.extend(layers::findings(machine, disk));
        found.extend(hardware::findings(disk));
    }
    agree(&mut found);
    found.sort_by_key(|finding| finding.weight);
    found
}

/// Makes the findings about one disk propose the same scheduler. If ioprios or weights of groups
/// need a scheduler, the remedy of `NoneOnRotating` also proposes that scheduler.
fn agree(found: &mut [Finding]) {
    let needs_scheduler =
        |finding: &&Finding| matches!(finding.id, Id::IoniceIgnored | Id::IoWeightIgnored | Id::BfqWeightIgnored);
    let remedy = |finding: &Finding| {
        let remedy = finding.remedy.clone().filter(|text| text.contains(" scheduler="))?;
        Some((finding.disk.clone(), remedy))
    };
    let remedies: Vec<(Option<String>, String)> = found.iter().filter(needs_scheduler).filter_map(remedy).collect();
    for finding in found.iter_mut().filter(|finding| finding.id == Id::NoneOnRotating) {
        if let Some((_, remedy)) = remedies.iter().find(|(disk, _)| *disk == finding.disk) {
            finding.remedy = Some(remedy.clone());
        }
    }
}
