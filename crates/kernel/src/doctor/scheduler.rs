//! Findings about whether the scheduler suits the disk, and whether it has requests to order.

use super::finding::{Finding, Id, Sure};
use super::snapshot::Disk;

/// Returns the findings about a disk with a request queue.
pub(super) fn findings(disk: &Disk) -> Vec<Finding> {
    let Some(scheduler) = disk.scheduler.as_deref() else { return Vec::new() };
    let note = |id, file: &str, meaning: String| Finding::note(id, Some(&disk.name), disk.file(file), meaning);
    let mut found = Vec::new();
    if scheduler == "none" && disk.is_rotational == Some(true) && disk.rotation_doubt().is_none() {
        found.extend(none_on_rotating(disk));
    }
    if scheduler == "bfq" && disk.is_nvme() {
        let meaning = "the scheduler of this NVMe disk is bfq. bfq has one lock for all requests. The CPUs wait for \
                       this lock, which slows a fast disk down. Use bfq here only if shares and ionice matter more \
                       than throughput";
        let finding = note(Id::BfqOnNvme, "queue/scheduler", meaning.to_owned()).matters().sure(Sure::Likely);
        found.push(finding.remedy(format!("iosched set {} scheduler=none", disk.name)));
    }
    found.extend(nothing_waits(disk));
    if let Some(nomerges @ 1..) = disk.nomerges {
        let merges =
            if nomerges == 1 { "merges requests only with the previous request" } else { "does not merge requests" };
        let meaning =
            format!("the kernel {merges} (nomerges is {nomerges}), so the disk gets more and smaller requests");
        let finding = note(Id::MergesOff, "queue/nomerges", meaning).matters();
        found.push(finding.remedy(format!("iosched set {} nomerges=0", disk.name)));
    }
    if disk.iostats == Some(false) {
        let meaning = "the kernel keeps no statistics of this disk, so iostat and iosched top show this disk as idle";
        let finding = note(Id::NoIostats, "queue/iostats", meaning.to_owned());
        found.push(finding.remedy(format!("iosched set {} iostats=1", disk.name)));
    }
    found
}

fn nothing_waits(disk: &Disk) -> Option<Finding> {
    let (requests, depth) = (disk.nr_requests?, disk.queue_depth?);
    let meaning = format!(
        "the driver accepts {depth} commands at the same time, and there are at most {requests} requests, so no \
         request waits in mq-deadline. mq-deadline then has nothing to sort, unless requests have different ioprio \
         classes"
    );
    let finding = Finding::note(Id::NothingWaits, Some(&disk.name), disk.file("queue/nr_requests"), meaning);
    (disk.has_scheduler("mq-deadline") && requests <= depth).then_some(finding)
}

fn none_on_rotating(disk: &Disk) -> Option<Finding> {
    // The scheduler of the device below orders the requests of a loop device.
    if disk.layer.is_some() {
        return None;
    }
    let meaning = "this is a rotating disk with the scheduler none. Only the disk itself sorts requests, and \
                   reads may wait behind many writes";
    let finding = Finding::note(Id::NoneOnRotating, Some(&disk.name), disk.file("queue/scheduler"), meaning).matters();
    // RAID controllers have several queues and sort requests themselves.
    let sure = if disk.hw_queues.unwrap_or(1) > 1 { Sure::Likely } else { Sure::Certain };
    let better = ["mq-deadline", "bfq"].into_iter().find(|name| disk.schedulers.iter().any(|known| known == name));
    let finding = finding.sure(sure);
    Some(match better {
        Some(better) => finding.remedy(format!("iosched set {} scheduler={better}", disk.name)),
        None => finding.remedy("modprobe mq-deadline"),
    })
}
