//! Findings about the kind of disk, and about settings of its queue that do not suit this kind.
//! Sources: Documentation/ABI/stable/sysfs-block of Linux 6.12, and for `cache_type` the
//! documentation of the driver sd.

use super::finding::{Finding, Id, Sure, Weight};
use super::snapshot::{Disk, RotationDoubt};

/// Largest default size of requests, KiB. Newer kernels use up to 4096 by default.
const REQUEST_USUAL_KIB: u64 = 1280;
/// Limit for the readahead, KiB. A larger readahead was probably set by a user.
const READ_AHEAD_LARGE_KIB: u64 = 2048;

/// Returns the findings about a disk.
pub(super) fn findings(disk: &Disk) -> Vec<Finding> {
    let mut found = Vec::new();
    if disk.is_real() {
        found.extend(virtual_disk(disk));
        found.extend(rotation(disk));
        found.extend(write_cache(disk));
        found.extend(discard(disk));
        found.extend(request_size(disk));
    }
    found.extend(read_ahead(disk));
    found
}

fn note(disk: &Disk, id: Id, file: &str, meaning: impl Into<String>) -> Finding {
    Finding::note(id, Some(&disk.name), disk.file(file), meaning)
}

fn set(disk: &Disk, assignment: &str) -> String {
    format!("iosched set {} {assignment}", disk.name)
}

fn virtual_disk(disk: &Disk) -> Option<Finding> {
    let kind = disk.virtual_kind?;
    let meaning = format!(
        "this disk is {kind}. The host schedules all requests again, and may undo the effect of settings on this \
         machine"
    );
    let file = match (&disk.model, &disk.driver) {
        (Some(_), _) => "device/model",
        (None, Some(_)) => "device/driver",
        (None, None) => "uevent",
    };
    Some(note(disk, Id::VirtualDisk, file, meaning))
}

fn rotation(disk: &Disk) -> Option<Finding> {
    let doubt = disk.rotation_doubt()?;
    let (why, sure, weight) = match doubt {
        RotationDoubt::Virtual => {
            ("the disk is virtual, and hypervisors report every disk as rotating", Sure::CannotKnow, Weight::Note)
        }
        RotationDoubt::Usb => (
            "the disk is connected by USB, and many USB bridges do not report whether a disk rotates",
            Sure::CannotKnow,
            Weight::Note,
        ),
        RotationDoubt::Model => ("the model name of the disk is the name of an SSD", Sure::Likely, Weight::Matters),
    };
    let meaning = format!(
        "the kernel treats this disk as a rotating disk. This may be wrong, because {why}. If the disk does not \
         rotate, the waits of bfq for readers have no benefit, and the default latency targets are too long"
    );
    let finding = Finding { weight, ..note(disk, Id::RotationalDoubtful, "queue/rotational", meaning).sure(sure) };
    Some(if weight == Weight::Matters { finding.remedy(set(disk, "rotational=0")) } else { finding })
}

fn write_cache(disk: &Disk) -> Option<Finding> {
    let drive_is_volatile = disk.drive_cache.as_deref().is_some_and(|text| text.starts_with("write back"));
    match disk.write_cache.as_deref()? {
        "write back" => {
            let meaning = "the write cache of this disk is volatile, and the kernel flushes the cache. A write \
                completes before the data is on the medium, and fsync waits for a flush";
            Some(note(disk, Id::WriteCacheVolatile, "queue/write_cache", meaning))
        }
        "write through" if drive_is_volatile => {
            let meaning = "the drive reports a volatile write cache, but the kernel does not flush this cache, \
                because write_cache is \"write through\". Unless the cache has a battery, a loss of power can \
                destroy data after a successful fsync";
            let finding = note(disk, Id::FlushesNotSent, "queue/write_cache", meaning).matters().sure(Sure::Likely);
            Some(finding.remedy(set(disk, "\"write_cache=write back\"")))
        }
        _ => None,
    }
}

fn discard(disk: &Disk) -> Option<Finding> {
    let is_off = disk.discard_max_bytes == Some(0) && disk.discard_max_hw_bytes? > 0;
    let bytes = disk.discard_max_hw_bytes?;
    let meaning = "the disk supports discard, but discard is off, so fstrim does nothing";
    let finding = note(disk, Id::DiscardOff, "queue/discard_max_bytes", meaning);
    is_off.then(|| finding.remedy(set(disk, &format!("discard_max_bytes={bytes}"))))
}

fn request_size(disk: &Disk) -> Option<Finding> {
    let (limit_kb, taken) = (disk.max_sectors_kb?, disk.max_hw_sectors_kb?);
    let usual = taken.min(REQUEST_USUAL_KIB);
    let meaning = format!(
        "the kernel splits requests at {limit_kb} KiB, although the disk accepts {taken} KiB, so large reads and \
         writes need more commands"
    );
    let finding = note(disk, Id::RequestsCut, "queue/max_sectors_kb", meaning);
    (limit_kb < usual).then(|| finding.remedy(set(disk, &format!("max_sectors_kb={usual}"))))
}

fn read_ahead(disk: &Disk) -> Option<Finding> {
    match disk.read_ahead_kb? {
        0 => {
            let meaning = "readahead is off, so a process that reads a file from start to end waits for every \
                single read";
            let finding = note(disk, Id::ReadAheadOff, "queue/read_ahead_kb", meaning).matters();
            Some(finding.remedy(set(disk, "read_ahead_kb=128")))
        }
        kib if kib > READ_AHEAD_LARGE_KIB => {
            let meaning = format!(
                "the kernel reads up to {kib} KiB ahead of a process that reads a file from start to end. This \
                 helps one such reader, but other processes wait longer"
            );
            Some(note(disk, Id::ReadAheadLarge, "queue/read_ahead_kb", meaning))
        }
        _ => None,
    }
}
