//! The backing of a disk: its owner, its errors, and files that replace the backing under its name.

use std::fs::{self, OpenOptions};
use std::process::Command;

use super::tools::{FAST_ZERO, NO_HOLE, READ, Serving, WRITE, WRITE_ZEROES, ask};
use crate::common::{Loop, Mount, has_program, image, is_root, output, sh};
use crate::list::Sandbox;

pub(super) fn fast_zeroes(place: &Sandbox) {
    let image = image(&place.here, "disk.img", 1 << 20);
    for (backing, fast) in [("memory:1M", true), ("model:sata-ssd,size=1M", false), (image.to_str().unwrap(), true)] {
        let mut serving = Serving::start(place, &[backing]);
        let mut socket = serving.connect();
        assert_eq!(ask(&mut socket, WRITE, 0), 0);
        let expected = if fast { 0 } else { 95 };
        assert_eq!(ask(&mut socket, WRITE_ZEROES, FAST_ZERO), expected, "{backing}");
        assert_eq!(ask(&mut socket, WRITE_ZEROES, FAST_ZERO | NO_HOLE), 95, "{backing}");
        assert_eq!(ask(&mut socket, WRITE_ZEROES, NO_HOLE), 0, "{backing}");
        if has_program("nbdinfo") {
            let mut info = Command::new("nbdinfo");
            let info = info.args(["--can", "fast-zero", "nbd+unix:///?socket=s"]).current_dir(&place.here).status();
            assert_eq!(info.unwrap().success(), fast, "{backing}");
        }
        assert_eq!(serving.stop(), Some(0));
    }
}

pub(super) fn errors_of_the_backing(place: &Sandbox) {
    let args = ["fault:bad=0+4096:memory:1M", "--metrics", "127.0.0.1:0", "--name", "sda"];
    let mut serving = Serving::start(place, &args);
    let mut socket = serving.connect();
    assert_eq!(ask(&mut socket, READ, 0), 5);
    assert_eq!(ask(&mut socket, WRITE, 0), 5);
    serving.says("sda: a read of 8 sectors at 0 failed: Input/output error (os error 5)");
    serving.says("sda: a write of 8 sectors at 0 failed: Input/output error (os error 5)");
    let metrics = serving.metrics("");
    for command in ["read", "write"] {
        let line = format!("\niosched_backing_errors_total{{command=\"{command}\",errno=\"5\"}} 1\n");
        assert!(metrics.contains(&line), "{metrics}");
    }
    for _ in 0..100 {
        assert_eq!(ask(&mut socket, READ, 0), 5);
    }
    assert_eq!(serving.stop(), Some(0));
    let text = serving.messages();
    assert!(text.matches("a read of").count() < 50 && text.contains(" more: reads that failed"), "{text}");
}

/// Mounts a file system in memory with this size.
fn small(place: &Sandbox, name: &str, size: &str) -> Mount {
    Mount::in_memory(&format!("size={size}"), place.path(name))
}

pub(super) fn full_file_system(place: &Sandbox) {
    if !is_root() {
        return;
    }
    let full = small(place, "full", "64k");
    image(&full.at, "disk.img", 1 << 20);
    fs::write(full.at.join("filler"), vec![1; 128 << 10]).unwrap_err();
    let mut serving = Serving::start(place, &["full/disk.img", "--metrics", "127.0.0.1:0"]);
    assert_eq!(ask(&mut serving.connect(), WRITE, 0), 28);
    serving.says("disk: a write of 8 sectors at 0 failed: No space left on device");
    let metrics = serving.metrics("");
    assert!(metrics.contains("iosched_backing_errors_total{command=\"write\",errno=\"28\"} 1"), "{metrics}");
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn a_file_that_shrinks(place: &Sandbox) {
    let path = image(&place.here, "disk.img", 1 << 20);
    let mut serving = Serving::start(place, &["disk.img"]);
    let mut socket = serving.connect();
    assert_eq!(ask(&mut socket, READ, 0), 0);
    OpenOptions::new().write(true).open(path).unwrap().set_len(0).unwrap();
    assert_eq!(ask(&mut socket, READ, 0), 5);
    serving.says("disk: a read of 8 sectors at 0 failed: ");
    assert_eq!(ask(&mut socket, WRITE, 0), 0);
    assert_eq!(ask(&mut socket, READ, 0), 0);
    assert_eq!(serving.stop(), Some(0));
}

pub(super) fn a_file_that_is_deleted(place: &Sandbox) {
    let path = image(&place.here, "disk.img", 1 << 20);
    let mut serving = Serving::start(place, &["disk.img"]);
    let mut socket = serving.connect();
    fs::remove_file(path).unwrap();
    assert_eq!(ask(&mut socket, WRITE, 0), 0);
    assert_eq!(ask(&mut socket, READ, 0), 0);
    assert_eq!(serving.stop(), Some(0));
    let text = serving.messages();
    assert!(text.contains("warning: disk.img: another program deleted or replaced this file"), "{text}");
}

pub(super) fn record_over_the_disk(place: &Sandbox) {
    place.file("disk.img", vec![7; 1 << 20]);
    fs::hard_link(place.path("disk.img"), place.path("other")).unwrap();
    for record in ["disk.img", "other"] {
        let args = ["serve", "disk.img", "--unix", "s", "--record", record];
        place.iosched(&args).refused(2, &[record, "is an input of the command", "name another file"]);
    }
    assert!(fs::read(place.path("disk.img")).unwrap() == vec![7; 1 << 20], "the disk is unchanged");
}

pub(super) fn record_over_a_device(place: &Sandbox) {
    if !is_root() {
        return;
    }
    let file = place.file("device.img", vec![7; 1 << 20]);
    let Some(device) = Loop::new(&file) else { return };
    let args = ["serve", "memory:1M", "--unix", "s", "--record", device.device.to_str().unwrap()];
    place.iosched(&args).refused(2, &["is a block device", "name a file"]);
    drop(device);
    assert!(fs::read(file).unwrap() == vec![7; 1 << 20], "the device is unchanged");
}

pub(super) fn record_to_an_unread_fifo(place: &Sandbox) {
    output(Command::new("mkfifo").arg(place.path("fifo")));
    for option in ["--record", "--record-driver"] {
        let args = ["serve", "memory:1M", "--unix", "s", option, "fifo"];
        place.iosched(&args).refused(2, &["fifo: this is a FIFO without a reader; start the reader first"]);
    }
    assert!(!place.path("s").exists(), "no socket is created");
}

pub(super) fn record_to_a_full_device(place: &Sandbox) {
    let mut serving = Serving::start(place, &["memory:1M", "--record", "/dev/full"]);
    let mut socket = serving.connect();
    for _ in 0..5000 {
        assert_eq!(ask(&mut socket, READ, 0), 0);
    }
    serving.says("warning: /dev/full: ");
    assert_eq!(ask(&mut socket, READ, 0), 0);
    assert_eq!(serving.stop(), Some(1));
    let text = serving.messages();
    assert!(text.contains("error: the trace ends early: ") && text.contains("No space left on device"), "{text}");
}

pub(super) fn file_of_a_loop_device(place: &Sandbox) {
    if !is_root() {
        return;
    }
    let file = image(&place.here, "disk.img", 1 << 20);
    let Some(device) = Loop::new(&file) else { return };
    let name = device.device.file_name().unwrap().to_str().unwrap().to_owned();
    let text = format!("disk.img: the backing is in use: the device {name} uses space on this device");
    place.iosched(&["serve", "disk.img", "--unix", "s"]).refused(2, &[&text, "--force"]);
    place.iosched(&["mount", "disk.img", "mnt"]).code(2);
    assert!(!place.path("s").exists());
    let mut forced = Serving::start(place, &["disk.img", "--force"]);
    assert!(forced.messages().contains(&format!("warning: {text}")), "{}", forced.messages());
    assert_eq!(ask(&mut forced.connect(), READ, 0), 0);
    assert_eq!(forced.stop(), Some(0));
}

pub(super) fn mounted_device(place: &Sandbox) {
    if !is_root() || !has_program("mkfs.ext4") {
        return;
    }
    let file = image(&place.here, "disk.img", 4 << 20);
    let Some(device) = Loop::new(&file) else { return };
    sh("mkfs.ext4 -q \"$1\"", &[&device.device]);
    let mounted = Mount::new("ext4", &device.device, place.path("files"));
    let name = device.device.file_name().unwrap().to_str().unwrap();
    let text = format!("{name} is mounted on {}", mounted.at.display());
    for backing in [device.device.to_str().unwrap(), "disk.img", "fault:eio=0:disk.img"] {
        let args = ["serve", backing, "--unix", "s"];
        place.iosched(&args).refused(2, &["is in use: ", &text, "--force"]);
    }
    mounted.end();
}

pub(super) fn read_only_storage(place: &Sandbox) {
    if !is_root() {
        return;
    }
    let small = small(place, "small", "1m");
    image(&small.at, "disk.img", 64 << 10);
    sh("mount -o remount,ro \"$1\"", &[&small.at]);
    let args = ["serve", "small/disk.img", "--unix", "s"];
    place.iosched(&args).refused(1, &["small/disk.img: ", "must open this file for reading and writing"]);
}
