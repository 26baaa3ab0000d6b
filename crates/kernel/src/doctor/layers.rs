//! Findings about layers between a file system and disks, and about whether the ioprio and the
//! cgroup of an I/O reach the disks. Only facts from files in `/sys` are certain. These files do
//! not show the target of a device-mapper device.

use super::finding::{Finding, Id, Sure};
use super::snapshot::{Disk, Layer, Snapshot};

/// Returns the findings about a disk.
pub(super) fn findings(machine: &Snapshot, disk: &Disk) -> Vec<Finding> {
    let mut found: Vec<Finding> = disk.layer.iter().map(|layer| layer_of(machine, disk, layer)).collect();
    for spread in machine.spread.iter().filter(|spread| spread.disks.contains(&disk.name)) {
        let others: Vec<&str> = spread.disks.iter().map(String::as_str).filter(|other| *other != disk.name).collect();
        let meaning = format!(
            "a {} file system is on this disk and on {}, so a setting of one disk takes effect for only a part \
             of the file system",
            spread.kind,
            others.join(", ")
        );
        found.push(Finding::note(Id::SeveralDisks, Some(&disk.name), &spread.file, meaning));
    }
    found
}

fn layer_of(machine: &Snapshot, disk: &Disk, layer: &Layer) -> Finding {
    let note = |id, file: &str, meaning: String| Finding::note(id, Some(&disk.name), disk.file(file), meaning);
    let below = if disk.below.is_empty() { "the disks below".to_owned() } else { disk.below.join(", ") };
    let decide = deciding(machine, disk);
    match layer {
        Layer::Lvm => {
            let meaning = format!(
                "this is a logical volume over {below}; {decide}. Linear and striped volumes pass ioprio and cgroup \
                 to the disks below. iosched cannot tell whether thin, cached and mirrored volumes do the same"
            );
            note(Id::LayerLvm, "dm/uuid", meaning).sure(Sure::Likely)
        }
        Layer::Crypt => {
            // "dm crypt: Fix IO priority lost when queuing write bios" is part of Linux 6.9.
            let (lost, are) =
                if machine.is_since((6, 9)) { ("the cgroup", "is") } else { ("ioprio and cgroup", "are") };
            let meaning = format!(
                "this is an encrypted device over {below}; {decide}. Kernel threads encrypt and send the writes, so \
                 {lost} of the writing process {are} lost"
            );
            note(Id::LayerCrypt, "dm/uuid", meaning).sure(Sure::Likely)
        }
        Layer::Multipath => match &disk.scheduler {
            Some(scheduler) => {
                let meaning = format!(
                    "this device joins several paths to one disk ({below}). Requests bypass the schedulers of the \
                     paths; the scheduler of this device, {scheduler}, decides"
                );
                note(Id::LayerMultipath, "dm/uuid", meaning)
            }
            None => {
                let meaning = format!("this device joins several paths to one disk ({below}); {decide}");
                note(Id::LayerMultipath, "dm/uuid", meaning).sure(Sure::Likely)
            }
        },
        Layer::Other => {
            let meaning = format!(
                "this device is made of {below}; iosched cannot tell whether ioprio and cgroup reach the disks below"
            );
            note(Id::LayerOther, "slaves", meaning).sure(Sure::CannotKnow)
        }
        Layer::NvmePaths { paths } => {
            let none = || "not known".to_owned();
            let paths_text =
                paths.iter().map(|(path, scheduler)| format!("{path}: {}", scheduler.clone().unwrap_or_else(none)));
            let paths_text: Vec<String> = paths_text.collect();
            let blind =
                |(_, scheduler): &(String, Option<String>)| matches!(scheduler.as_deref(), Some("none" | "kyber"));
            let ionice = if paths.iter().all(blind) { ", and ionice does nothing on this disk" } else { "" };
            let meaning = format!(
                "this device has no scheduler, so the schedulers of its paths decide ({}){ionice}",
                paths_text.join(", ")
            );
            let file = paths.first().map_or_else(String::new, |(path, _)| format!("/sys/block/{path}/queue/scheduler"));
            Finding::note(Id::LayerNvmePaths, Some(&disk.name), file, meaning)
        }
        Layer::Raid { level } if layer.is_written_by_kernel() => {
            let meaning = format!(
                "this is {level} over {below}; {decide}. The kernel writes whole stripes, so ioprio and cgroup of \
                 the writing process are lost"
            );
            note(Id::RaidWritesByKernel, "md/level", meaning).sure(Sure::Likely)
        }
        Layer::Raid { level } if ["raid0", "linear"].contains(&level.as_str()) => {
            let meaning = format!("this is {level} over {below}; {decide}. ioprio and cgroup reach these disks");
            note(Id::LayerRaid, "md/level", meaning).sure(Sure::Likely)
        }
        Layer::Raid { level } => {
            let meaning = format!(
                "this is {level} over {below}; {decide}. iosched cannot tell whether ioprio and cgroup reach these \
                 disks"
            );
            note(Id::LayerRaid, "md/level", meaning).sure(Sure::CannotKnow)
        }
        Layer::Loop { file, is_direct: true } => {
            let meaning = format!(
                "this is a loop device over {file} that bypasses the page cache. Kernel threads send its requests to \
                 {below}; iosched cannot tell whether ioprio and cgroup reach {below}"
            );
            note(Id::LayerLoop, "loop/dio", meaning).sure(Sure::CannotKnow)
        }
        Layer::Loop { file, is_direct: false } => {
            let meaning = format!(
                "this is a loop device over {file} that uses the page cache of {below}, so data is cached twice. \
                 Writes reach the disk at writeback, without the ioprio of the writing process"
            );
            let finding = note(Id::LoopThroughCache, "loop/dio", meaning);
            // A read-only loop device, such as a mounted package, is usually intended this way.
            if disk.is_read_only {
                return finding;
            }
            finding.matters().remedy(format!("losetup --direct-io=on /dev/{}", disk.name))
        }
    }
}

/// Names the schedulers below that order the I/O of a device without a scheduler.
fn deciding(machine: &Snapshot, disk: &Disk) -> String {
    let path_down = machine.way(&disk.name);
    let scheduled = path_down.iter().filter(|device| device.name != disk.name && device.scheduler.is_some());
    let names: Vec<&str> = scheduled.map(|device| device.name.as_str()).collect();
    match names[..] {
        [] => "this device has no scheduler".to_owned(),
        [one] => format!("this device has no scheduler, so the scheduler of {one} decides"),
        _ => format!("this device has no scheduler, so the schedulers of {} decide", names.join(", ")),
    }
}
