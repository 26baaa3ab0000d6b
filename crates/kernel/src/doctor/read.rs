//! Reads the snapshot. It omits files that cannot be read. If this process lacks permission for a
//! file, the snapshot lists the file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use iosched::{IoClass, LEVEL_DEFAULT};
use iosched_trace::ioprio_of_kernel;

use super::groups;
use super::snapshot::{Disk, Ioprio, Layer, Snapshot, Spread, Throttling};
use crate::attribute::chosen;
use crate::block::{BlockDevice, Mounted, mounts};
use crate::facts::MachineFacts;
use crate::roots::{Roots, names};

/// Prefixes of disks in memory, which are left out.
const MEMORY: [&str; 2] = ["ram", "zram"];
/// Largest number of refused files that are listed.
const REFUSED_MAX: usize = 100;

/// Reader of files below the roots of the machine. Paths are given as a user knows them, such as
/// `/sys/block`.
pub(super) struct Reader<'r> {
    roots: &'r Roots,
    refused: Vec<String>,
}

impl Reader<'_> {
    /// Returns the actual path of a file in `/sys` or `/proc`.
    pub(super) fn place(&self, path: &str) -> PathBuf {
        let path = path.trim_start_matches('/');
        match path.split_once('/').unwrap_or((path, "")) {
            ("proc", rest) => self.roots.proc(rest),
            (_, rest) => self.roots.sys(rest),
        }
    }

    /// Returns the contents of a file, without white space at the ends.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        match fs::read(self.place(path)) {
            Ok(bytes) => Some(String::from_utf8_lossy(&bytes).trim().to_owned()),
            Err(error) => {
                let is_refused = error.kind() == io::ErrorKind::PermissionDenied;
                if is_refused && self.refused.len() < REFUSED_MAX {
                    self.refused.push(path.to_owned());
                }
                None
            }
        }
    }

    /// Returns the number in a file.
    pub(super) fn number<T: FromStr>(&mut self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Returns whether there is a file or directory at a path.
    pub(super) fn exists(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Returns the names in a directory.
    pub(super) fn names(&self, path: &str) -> Vec<String> {
        names(&self.place(path))
    }
}

/// Reads the machine below `roots`. `ask` returns the ioprio of a thread in the kernel's encoding.
pub(super) fn snapshot(roots: &Roots, ask: &dyn Fn(u32) -> Option<i32>) -> Snapshot {
    let mut reader = Reader { roots, refused: Vec::new() };
    let facts = MachineFacts::of(roots);
    let mounts = mounts(roots);
    let is_disk =
        |device: &BlockDevice| device.size_bytes() > 0 && !MEMORY.iter().any(|kind| device.name().starts_with(kind));
    let devices = BlockDevice::disks(roots).into_iter().filter(is_disk);
    let disks = devices.map(|device| disk(&mut reader, &device, &mounts)).collect();
    let zfs = mounts.iter().filter(|mount| mount.kind == "zfs").map(|mount| mount.at.clone()).collect();
    let cgroups = groups::read(&mut reader);
    let spread = btrfs(&reader);
    let ioprios = ioprios(&mut reader, ask);
    Snapshot {
        kernel: facts.kernel,
        virtualisation: facts.virtualisation,
        disks,
        cgroups,
        spread,
        zfs,
        ioprios,
        refused: reader.refused,
    }
}

fn disk(reader: &mut Reader<'_>, device: &BlockDevice, mounts: &[Mounted]) -> Disk {
    let name = device.name().to_owned();
    let at = |file: &str| format!("/sys/block/{name}/{file}");
    let flag = |number: Option<u8>| number.map(|number| number != 0);
    // Without a request queue, the file has no choice in brackets.
    let schedulers = reader.text(&at("queue/scheduler")).filter(|text| text.contains('['));
    let wbt = reader.number::<u64>(&at("queue/wbt_lat_usec"));
    let layer = layer(reader, device);
    let below = below(reader.roots, device, layer.as_ref(), mounts);
    let drive_cache = at("device/scsi_disk");
    let drive_cache = reader.names(&drive_cache).first().map(|entry| format!("{drive_cache}/{entry}/cache_type"));
    let drive_priority = ["device/ncq_prio_enable", "device/sas_ncq_prio_enable"];
    let usb = |path: &Path| path.components().any(|part| part.as_os_str().to_string_lossy().starts_with("usb"));
    Disk {
        number: device.number(),
        size_bytes: device.size_bytes(),
        scheduler: schedulers.as_deref().map(|text| chosen(text).to_owned()),
        schedulers: if schedulers.is_some() { device.schedulers() } else { Vec::new() },
        hw_queues: device.hw_queues(),
        nr_requests: reader.number(&at("queue/nr_requests")),
        queue_depth: queue_depth(reader, device),
        prio_aging_expire_ms: reader.number(&at("queue/iosched/prio_aging_expire")),
        drive_priority: drive_priority.into_iter().find(|file| reader.number::<u8>(&at(file)) == Some(1)),
        is_rotational: flag(reader.number(&at("queue/rotational"))),
        nomerges: reader.number(&at("queue/nomerges")),
        iostats: flag(reader.number(&at("queue/iostats"))),
        wbt: wbt.map(|us| if us == 0 { Throttling::Off } else { Throttling::TargetUs(us) }),
        write_cache: reader.text(&at("queue/write_cache")),
        drive_cache: drive_cache.and_then(|file| reader.text(&file)),
        discard_max_bytes: reader.number(&at("queue/discard_max_bytes")),
        discard_max_hw_bytes: reader.number(&at("queue/discard_max_hw_bytes")),
        max_sectors_kb: reader.number(&at("queue/max_sectors_kb")),
        max_hw_sectors_kb: reader.number(&at("queue/max_hw_sectors_kb")),
        read_ahead_kb: reader.number(&at("queue/read_ahead_kb")),
        model: device.model(),
        driver: device.driver(),
        is_usb: fs::canonicalize(reader.place(&at(""))).is_ok_and(|path| usb(&path)),
        virtual_kind: device.virtual_kind(),
        is_read_only: device.is_read_only(),
        layer,
        below,
        name,
    }
}

/// Returns the number of commands that the driver accepts from one hardware queue. The number is
/// not known for SCSI devices with several queues.
fn queue_depth(reader: &mut Reader<'_>, device: &BlockDevice) -> Option<u32> {
    let at = |file: &str| format!("/sys/block/{}/{file}", device.name());
    match reader.number(&at("device/queue_depth")) {
        Some(depth) => (device.hw_queues().unwrap_or(1) == 1).then_some(depth),
        None => {
            let queues = reader.names(&at("mq"));
            queues.iter().filter_map(|queue| reader.number(&at(&format!("mq/{queue}/nr_tags")))).min()
        }
    }
}

/// Returns the kind of a device that is not itself a disk. The UUID of a device-mapper device
/// begins with the name of the tool that created the device. For a partition, `partN-` precedes
/// this name.
fn layer(reader: &mut Reader<'_>, device: &BlockDevice) -> Option<Layer> {
    let at = |file: &str| format!("/sys/block/{}/{file}", device.name());
    if let Some(level) = reader.text(&at("md/level")) {
        return Some(Layer::Raid { level });
    }
    if let Some(file) = device.backing_file() {
        let is_direct = device.is_direct_loop().unwrap_or(false);
        return Some(Layer::Loop { file: file.display().to_string(), is_direct });
    }
    if !reader.exists(&at("dm")) {
        let is_other = !reader.names(&at("slaves")).is_empty();
        return if is_other { Some(Layer::Other) } else { nvme_paths(reader, device.name()) };
    }
    let uuid = reader.text(&at("dm/uuid")).unwrap_or_default();
    Some(match uuid.split('-').next() {
        Some("LVM") => Layer::Lvm,
        Some("CRYPT") => Layer::Crypt,
        Some("mpath") => Layer::Multipath,
        _ => Layer::Other,
    })
}

/// Returns the hidden paths of an NVMe disk without a queue, such as `nvme0c0n1` and `nvme0c1n1` of
/// `nvme0n1`.
fn nvme_paths(reader: &mut Reader<'_>, name: &str) -> Option<Layer> {
    let (subsystem, namespace) = name.strip_prefix("nvme")?.split_once('n')?;
    let begin = format!("nvme{subsystem}c");
    let is_path = |word: &String| {
        let controller = word.strip_prefix(&begin).and_then(|rest| rest.split_once('n'));
        controller.is_some_and(|(_, of_path)| of_path == namespace)
    };
    let names: Vec<String> = reader.names("/sys/block").into_iter().filter(is_path).collect();
    let mut with_scheduler = |path: String| {
        let text = reader.text(&format!("/sys/block/{path}/queue/scheduler"));
        let scheduler = text.filter(|text| text.contains('[')).map(|text| chosen(&text).to_owned());
        (path, scheduler)
    };
    let paths: Vec<_> = names.into_iter().map(&mut with_scheduler).collect();
    (!paths.is_empty()).then_some(Layer::NvmePaths { paths })
}

/// Returns the disks directly below. For a loop device, the mounts show the disk of its file. The
/// file itself is not examined, because its file system may not answer.
fn below(roots: &Roots, device: &BlockDevice, layer: Option<&Layer>, mounts: &[Mounted]) -> Vec<String> {
    let devices = match layer {
        Some(Layer::Loop { file, .. }) => {
            let name = file.strip_prefix("/dev/");
            let itself = name.and_then(|name| BlockDevice::named(roots, name).ok());
            let around = mounts.iter().filter(|mount| Path::new(file).starts_with(&mount.at));
            let mount = around.max_by_key(|mount| mount.at.as_os_str().len());
            itself.or_else(|| BlockDevice::numbered(roots, mount?.number)).into_iter().collect()
        }
        _ => device.below(),
    };
    let mut found: Vec<String> = Vec::new();
    for member in devices {
        let disk = member.disk_name();
        if disk != device.name() && !found.iter().any(|known| known == disk) {
            found.push(disk.to_owned());
        }
    }
    found
}

/// Returns btrfs file systems over more than one disk.
fn btrfs(reader: &Reader<'_>) -> Vec<Spread> {
    let mut found = Vec::new();
    for uuid in reader.names("/sys/fs/btrfs") {
        let file = format!("/sys/fs/btrfs/{uuid}/devices");
        let mut disks: Vec<String> = Vec::new();
        for name in reader.names(&file) {
            let Ok(device) = BlockDevice::named(reader.roots, &name) else { continue };
            if !disks.iter().any(|known| known == device.disk_name()) {
                disks.push(device.disk_name().to_owned());
            }
        }
        if disks.len() > 1 {
            found.push(Spread { kind: "btrfs", file, disks });
        }
    }
    found
}

/// Returns the ioprios that threads have set. Kernel threads, which have no command line, are left
/// out.
fn ioprios(reader: &mut Reader<'_>, ask: &dyn Fn(u32) -> Option<i32>) -> Option<Vec<Ioprio>> {
    let mut found: BTreeMap<(IoClass, Option<u8>), Ioprio> = BTreeMap::new();
    let mut processes = 0;
    for process in reader.names("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
        if fs::read(reader.place(&format!("/proc/{process}/cmdline"))).is_ok_and(|words| words.is_empty()) {
            continue;
        }
        for thread in reader.names(&format!("/proc/{process}/task")) {
            let Some(priority) = thread.parse().ok().and_then(ask) else { continue };
            processes += 1;
            let ioprio = ioprio_of_kernel(priority.cast_unsigned());
            let (class, level) = match ioprio.class() {
                IoClass::RealTime => ("rt", Some(ioprio.level())),
                // The default level is not a setting.
                IoClass::BestEffort if ioprio.level() != LEVEL_DEFAULT => ("be", Some(ioprio.level())),
                IoClass::Idle => ("idle", None),
                _ => continue,
            };
            let group = found.entry((ioprio.class(), level)).or_insert_with(|| {
                let name = fs::read(reader.place(&format!("/proc/{process}/comm"))).unwrap_or_default();
                let example = String::from_utf8_lossy(&name).trim().to_owned();
                Ioprio { class, level, threads: 0, example }
            });
            group.threads += 1;
        }
    }
    (processes > 0).then(|| found.into_values().collect())
}
