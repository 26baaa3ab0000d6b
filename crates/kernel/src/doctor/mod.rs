//! What is in force on the way from a process to a disk, and what of it does nothing there.
//!
//! A [`Snapshot`] is read first, and nothing is written; [`examine`] judges it without I/O and gives [`Finding`]s, each
//! with how sure it is. What cannot be told from files is not guessed.
//!
//! | file | what it decides |
//! |---|---|
//! | `snapshot.rs` | what is known of the machine, and of each disk |
//! | `read.rs` | reads it, below [`Roots`] |
//! | `groups.rs` | reads what cgroups set |
//! | `finding.rs` | what a finding says, and which there are |
//! | `scheduler.rs` | whether the scheduler suits the disk, and has anything to do |
//! | `ionice.rs` | who looks at the ioprio of processes |
//! | `wbt.rs` | writeback throttling |
//! | `control.rs` | what cgroups set for a disk, and whether it is in force |
//! | `layers.rs` | device mapper, RAID, loop devices, file systems over several disks |
//! | `hardware.rs` | what the disk is, and how its queue treats it |
//! | `load.rs` | what iostat or sar saw: whether a scheduler has anything to do |
//! | `machine.rs` | what is of the whole machine |

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
pub use snapshot::{Disk, Ioprio, Layer, Snapshot, Spread, Throttling};

use crate::roots::Roots;

impl Snapshot {
    /// The machine as it is now.
    #[must_use]
    pub fn of(roots: &Roots) -> Self {
        // The processes of another machine cannot be asked.
        let ask = |tid| if *roots == Roots::default() { iosched_system::call::ioprio_of(tid) } else { None };
        read::snapshot(roots, &ask)
    }
}

/// Everything that is found, what matters first, then disk by disk.
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

/// Of a disk two schedulers are not proposed: what processes or groups have set decides.
fn agree(found: &mut [Finding]) {
    let asks = |own: &Finding| matches!(own.id, Id::IoniceIgnored | Id::IoWeightIgnored | Id::BfqWeightIgnored);
    let asked = found.iter().filter(|own| asks(own));
    let asked: Vec<(Option<String>, String)> = asked
        .filter_map(|own| Some((own.disk.clone(), own.remedy.clone().filter(|text| text.contains(" scheduler="))?)))
        .collect();
    for own in found.iter_mut().filter(|own| own.id == Id::NoneOnRotating) {
        if let Some((_, remedy)) = asked.iter().find(|(disk, _)| *disk == own.disk) {
            own.remedy = Some(remedy.clone());
        }
    }
}
