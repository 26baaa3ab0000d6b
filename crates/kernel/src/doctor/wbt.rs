//! Findings about writeback throttling: its state, and whether it can have an effect.

use super::control::{Costing, costing};
use super::finding::{Finding, Id, Sure};
use super::snapshot::{Disk, Snapshot, Throttling};

/// Returns the finding about a disk that has writeback throttling.
pub(super) fn findings(machine: &Snapshot, disk: &Disk) -> Option<Finding> {
    let note = |id, meaning: String| Finding::note(id, Some(&disk.name), disk.file("queue/wbt_lat_usec"), meaning);
    let is_bfq = disk.has_scheduler("bfq");
    // Writeback throttling acts only on request queues.
    disk.scheduler.as_ref()?;
    Some(match disk.wbt? {
        Throttling::TargetUs(us) if is_bfq => {
            let meaning = format!(
                "bfq switches writeback throttling (wbt) off, but the kernel shows a wbt target of {us} us. If a \
                 program wrote this target after bfq was chosen, wbt is on. Otherwise wbt is off, and the kernel \
                 shows an old target"
            );
            note(Id::WbtUnderBfq, meaning).sure(Sure::CannotKnow)
        }
        Throttling::TargetUs(us) => note(
            Id::WbtOn,
            format!(
                "the kernel holds back buffered writes while reads take longer than {us} us, under every \
                 scheduler. The kernel does not hold back reads and direct writes"
            ),
        ),
        Throttling::Off => {
            let why = match () {
                () if is_bfq => ", because bfq switches it off",
                () if matches!(costing(machine, disk), Costing::On(_)) => {
                    ", because io.cost switches it off since Linux 6.1"
                }
                () => "",
            };
            let meaning = format!(
                "writeback throttling is off{why}; buffered writes go to the disk as fast as the scheduler accepts \
                 them"
            );
            note(Id::WbtOff, meaning)
        }
    })
}
