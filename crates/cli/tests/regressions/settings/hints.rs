//! Messages about devices whose data would be destroyed by writes.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::common::{Loop, Mount, available, has_program, image, is_root, scheduler, sh};
use crate::list::{Answer, Sandbox, of_repository};

const WRITES: &str = "[[tasks]]\npid = 1\nop = \"write\"\npattern = \"random\"\nrange = [0, 1000]\ntotal = 10\n";
/// The option that a message must not suggest for a device with data.
const DESTROY: &str = "--destroy-data";

/// Returns a loop device over an image that contains only zeroes.
#[track_caller]
fn blank(place: &Sandbox) -> Option<Loop> {
    place.file("write.toml", WRITES);
    if !is_root() {
        return None;
    }
    Loop::new(&image(&place.here, "image", 64 << 20))
}

/// Asserts that `compare --on` and `advise` give the same answer for a workload that writes.
#[track_caller]
fn refused_alike(place: &Sandbox, on: &Path, says: &[&str], never: &[&str]) {
    let on = on.to_str().unwrap();
    let compare = ["compare", "--on", on, "-w", "write.toml", "--runs", "2", "--scheduler", "none"];
    let advise = ["advise", on, "-w", "write.toml"];
    for args in [&compare[..], &advise[..]] {
        let answer: Answer = place.iosched(args);
        answer.refused(2, says).never(never);
    }
}

pub(super) fn a_file(place: &Sandbox) {
    place.file("write.toml", WRITES);
    place.file("data", vec![1; 4096]);
    refused_alike(
        place,
        &place.path("data"),
        &["data: this is a regular file", "or a directory"],
        &[DESTROY, "destroys"],
    );
    refused_alike(place, &of_repository("README.md"), &["README.md: this is a regular file"], &[DESTROY, "destroys"]);
}

pub(super) fn a_pipe_or_character_device(place: &Sandbox) {
    place.file("write.toml", WRITES);
    sh("mkfifo \"$1\"", &[&place.path("pipe")]);
    refused_alike(place, &place.path("pipe"), &["this is a pipe, not a block device"], &[DESTROY]);
    refused_alike(place, Path::new("/dev/zero"), &["/dev/zero: this is a character device"], &[DESTROY]);
    place.iosched(&["calibrate", "pipe"]).refused(2, &["pipe: this is a pipe"]).never(&[DESTROY]);
}

pub(super) fn a_mounted_device(place: &Sandbox) {
    let Some(device) = blank(place).filter(|_| has_program("mkfs.ext4")) else { return };
    sh("mkfs.ext4 -q \"$1\"", &[&device.device]);
    let mount = Mount::new("ext4", &device.device, place.path("mounted"));
    let at = mount.at.display().to_string();
    refused_alike(place, &device.device, &["is mounted on", &at, "or give a directory"], &[DESTROY]);
    mount.end();
}

pub(super) fn an_unmounted_file_system(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    for (program, option, what) in
        [("mkfs.ext4", "-qF", "an ext2, ext3 or ext4 file system"), ("mkfs.xfs", "-qf", "an XFS file system")]
    {
        if !has_program(program) {
            continue;
        }
        sh("truncate -s 0 \"$1\"; truncate -s 320M \"$1\"; losetup -c \"$2\"", &[&place.path("image"), &device.device]);
        sh(&format!("{program} {option} \"$1\" >/dev/null"), &[&device.device]);
        refused_alike(place, &device.device, &["holds", what], &[DESTROY]);
    }
}

pub(super) fn a_partition_table(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    marked(
        place,
        &device,
        &[
            (512, b"EFI PART", "a GPT partition table"),
            ((64 << 20) - 512, b"EFI PART", "a GPT partition table"),
            (510, b"\x55\xaa", "an MBR partition table"),
        ],
    );
}

/// Asserts that the command reports each of these marks while the mark is on the device.
#[track_caller]
fn marked(place: &Sandbox, device: &Loop, marks: &[(u64, &[u8], &str)]) {
    let disk = OpenOptions::new().write(true).open(&device.device).unwrap();
    for (at, mark, what) in marks {
        disk.write_all_at(mark, *at).unwrap();
        disk.sync_all().unwrap();
        refused_alike(place, &device.device, &["holds", what], &[DESTROY]);
        disk.write_all_at(&vec![0; mark.len()], *at).unwrap();
    }
}

pub(super) fn unused_swap_space(place: &Sandbox) {
    let Some(device) = blank(place).filter(|_| has_program("mkswap")) else { return };
    sh("mkswap \"$1\" >/dev/null 2>&1", &[&device.device]);
    refused_alike(place, &device.device, &["holds swap space"], &[DESTROY]);
}

pub(super) fn below_a_loop_device(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    let Some(over) = Loop::new(&device.device) else { return };
    let name = over.device.file_name().unwrap().to_str().unwrap();
    refused_alike(place, &device.device, &[&format!("the device {name} uses space on this device")], &[DESTROY]);
}

pub(super) fn opened_exclusively(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    let exclusive = OpenOptions::new().read(true).custom_flags(0o200).open(&device.device);
    available(exclusive.is_ok(), "exclusive use of a loop device");
    refused_alike(place, &device.device, &["another program has opened this device exclusively"], &[DESTROY]);
}

pub(super) fn members(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    marked(
        place,
        &device,
        &[
            (4096, b"\xfc\x4e\x2b\xa9", "a part of a Linux RAID"),
            ((64 << 20) - 0x2000, b"\xfc\x4e\x2b\xa9", "a part of a Linux RAID"),
            (512, b"LABELONE", "an LVM physical volume"),
            (0, b"LUKS\xba\xbe", "LUKS encrypted data"),
            (65_600, b"_BHRfS_M", "a btrfs file system"),
            (82, b"FAT32   ", "a FAT file system"),
            (131_072, b"\x0c\xb1\xba\0\0\0\0\0", "a part of a ZFS pool"),
        ],
    );
}

pub(super) fn an_empty_device(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    let on = device.device.to_str().unwrap();
    refused_alike(
        place,
        &device.device,
        &["writing destroys the data on this device", &format!("{DESTROY} {on}"), "give a directory"],
        &[],
    );
}

pub(super) fn name_of_another_device(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    let on = device.device.to_str().unwrap();
    let args = ["compare", "--on", on, "-w", "write.toml", "--destroy-data", "/dev/other"];
    let proposed = format!("{DESTROY} {on}");
    place
        .iosched(&args)
        .refused(2, &["/dev/other: the workload would write to another device, "])
        .never(&[&proposed, "lets it be"]);
}

pub(super) fn no_change_before_a_refusal(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    let before = scheduler(&device);
    let on = device.device.to_str().unwrap();
    let args = ["compare", "--on", on, "-w", "write.toml", "--scheduler", "bfq"];
    place.iosched(&args).refused(2, &[DESTROY]);
    assert_eq!(scheduler(&device), before);
    assert!(!place.path("state/settings").exists(), "no settings were recorded");
}

pub(super) fn replaced_device(place: &Sandbox) {
    let Some(device) = blank(place) else { return };
    let name = device.device.file_name().unwrap().to_str().unwrap();
    let found = iosched_kernel::BlockDevice::find(&iosched_kernel::Roots::default(), &device.device).unwrap();
    let state = iosched_kernel::StateDirectory::at(&place.path("state"));
    let session = iosched_kernel::Session::begin(&found, &state).unwrap();
    let journal = place.path("state/settings").join(name);
    let text = fs::read_to_string(&journal).unwrap();
    session.end().unwrap();
    // A killed command left this record. Another disk with other settings now has the same name.
    fs::write(&journal, text.replace("\"sequence\": ", "\"sequence\": 9")).unwrap();
    found.set_attribute("read_ahead_kb", "64").unwrap();
    place
        .iosched(&["restore"])
        .code(1)
        .says(&[
            "was removed and added again, so the recorded settings no longer \
             apply",
            "--forget",
        ])
        .never(&["--force"]);
    place.iosched(&["restore", "--forget"]).code(0).says(&["iosched discarded the recorded settings"]);
    assert_eq!(found.attribute("read_ahead_kb").unwrap().value, "64");
    place.iosched(&["restore"]).code(0).says(&["nothing to restore"]);
    found.set_attribute("read_ahead_kb", "128").unwrap();
}
