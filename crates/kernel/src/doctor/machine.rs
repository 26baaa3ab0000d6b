//! Findings about the whole machine.

use super::finding::{Finding, Id, Sure};
use super::ionice;
use super::snapshot::Snapshot;

/// Largest number of files that a sentence names.
const NAMED_MAX: usize = 3;

/// Returns the findings about the machine.
pub(super) fn findings(machine: &Snapshot) -> Vec<Finding> {
    let mut found = cgroups(machine);
    if let Some(hypervisor) = &machine.virtualisation {
        let meaning = format!(
            "the machine is virtual ({hypervisor}). The host schedules the I/O of this machine again, and other \
             machines use the same disks"
        );
        found.push(Finding::note(Id::VirtualMachine, None, "/proc/cpuinfo", meaning));
    }
    if let Some(first) = machine.zfs.first() {
        let meaning = format!(
            "ZFS is mounted ({}). ZFS orders I/O in its own queues, and threads of ZFS send the writes. Therefore \
             ioprio and cgroup of the writing process do not reach the disks of ZFS; zpool status lists these disks",
            first.display()
        );
        found.push(Finding::note(Id::ZfsOwnThreads, None, "/proc/self/mountinfo", meaning).sure(Sure::Likely));
    }
    found.extend(ionice::seen(machine));
    if let Some(first) = machine.refused.first() {
        let named: Vec<&str> = machine.refused.iter().take(NAMED_MAX).map(String::as_str).collect();
        let more = machine.refused.len().saturating_sub(NAMED_MAX);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let meaning = format!("some files cannot be read without root: {}{more}", named.join(", "));
        let finding = Finding::note(Id::NotReadable, None, first, meaning).sure(Sure::CannotKnow);
        found.push(finding.remedy("sudo iosched doctor"));
    }
    found
}

fn cgroups(machine: &Snapshot) -> Vec<Finding> {
    let note = |id, file: String, meaning: &str| Finding::note(id, None, file, meaning);
    let unified = machine.cgroups.unified.as_ref();
    let root = unified.map_or("/sys/fs/cgroup", |unified| &unified.root);
    let mut found = Vec::new();
    match unified {
        _ if machine.cgroups.blkio.is_some() => {
            let meaning = "the I/O controller of this machine is blkio, of version 1 of cgroups. blkio has no \
                           io.max, io.weight, io.latency or io.cost, and counts only direct writes, not buffered \
                           writes";
            found.push(note(Id::CgroupV1, machine.cgroups.blkio.clone().unwrap_or_default(), meaning));
        }
        Some(unified) if unified.has_io && !unified.passes_io_on => {
            let meaning = "the root cgroup does not enable the I/O controller for other cgroups, so cgroups cannot \
                limit or share I/O";
            found.push(note(Id::CgroupIoNotPassedOn, format!("{root}/cgroup.subtree_control"), meaning));
        }
        Some(unified) if unified.has_io => {}
        _ => {
            let meaning = "this machine has no I/O controller of cgroups, so cgroups cannot limit or share I/O";
            found.push(note(Id::CgroupNoIo, format!("{root}/cgroup.controllers"), meaning));
        }
    }
    if unified.is_some_and(|unified| unified.is_part) {
        let meaning = "iosched sees only a part of the tree of cgroups, as in a container. Limits and weights above \
                       this part also take effect, but iosched cannot see them";
        found.push(note(Id::CgroupNamespace, format!("{root}/cgroup.type"), meaning).sure(Sure::CannotKnow));
    }
    found
}
