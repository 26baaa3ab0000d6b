//! Tests of devices on a recorded machine.

use std::path::Path;

use super::*;
use crate::recorded::Recorded;

fn names_of(devices: &[BlockDevice]) -> Vec<&str> {
    devices.iter().map(BlockDevice::name).collect()
}

#[test]
fn every_disk_is_listed_in_natural_order() {
    let machine = Recorded::new();
    let disks = BlockDevice::disks(&machine.roots());
    assert_eq!(names_of(&disks), ["dm-0", "loop0", "loop1", "nvme0n1", "sda", "sdb", "sdc", "sdd", "zram0"]);
}

#[test]
fn devices_are_found_by_name_number_and_device_file() {
    let machine = Recorded::new();
    let roots = machine.roots();
    assert_eq!(BlockDevice::find(&roots, Path::new("sda2")).unwrap().disk_name(), "sda");
    let number = "259:0".parse().unwrap();
    assert_eq!(BlockDevice::numbered(&roots, number).unwrap().name(), "nvme0n1");
    assert_eq!(BlockDevice::of_device_file(&roots, Path::new("/dev/mapper/vg-root")).unwrap().name(), "dm-0");
    let error = BlockDevice::find(&roots, Path::new("sdz")).unwrap_err().to_string();
    assert!(error.starts_with("sdz: there is no such block device; available: dm-0, loop0"), "{error}");
    let error = BlockDevice::find(&roots, Path::new("/proc/self/status")).unwrap_err().to_string();
    assert!(error.contains("is in a file system"), "{error}");
    for name in ["", ".", "..", "../block"] {
        assert!(BlockDevice::named(&roots, name).is_err(), "{name:?}");
    }
}

#[test]
fn depth_comes_from_the_device_or_all_driver_tags() {
    let machine = Recorded::new();
    assert_eq!(machine.device("sda").driver_depth(), Some(31));
    assert_eq!(machine.device("sda1").driver_depth(), Some(31), "a partition has the depth of its disk");
    assert_eq!(machine.device("nvme0n1").driver_depth(), Some(3 * 1023));
    assert_eq!(machine.device("nvme0n1").hw_queues(), Some(3));
    assert_eq!(machine.device("loop1").driver_depth(), Some(128));
    assert_eq!(machine.device("zram0").driver_depth(), None);
}

#[test]
fn device_stacks_and_models_are_found() {
    let machine = Recorded::new();
    for (name, made_of) in
        [("sda", "ST1000DM003"), ("sda1", "sda"), ("dm-0", "sda2 (vg-root)"), ("loop1", "/dev/sdd"), ("nvme0n1", "")]
    {
        assert_eq!(machine.device(name).made_of(), made_of, "{name}");
    }
    assert_eq!(names_of(&machine.device("dm-0").stack()), ["sda2", "sda"]);
    assert_eq!(names_of(&machine.device("loop1").stack()), ["sdd"]);
    machine.write("sys/devices/sdc/device/vendor", "SEAGATE \n");
    assert_eq!(machine.device("sdc").model().unwrap(), "SEAGATE ST1000DM003");
    assert_eq!(machine.device("loop1").virtual_kind(), Some("a file"));
    assert_eq!(machine.device("sda").virtual_kind(), None);
}

#[test]
fn nearest_disks_with_a_scheduler_are_found() {
    let machine = Recorded::new();
    assert_eq!(names_of(&machine.device("dm-0").scheduled()), ["sda"]);
    assert_eq!(names_of(&machine.device("sda1").scheduled()), ["sda"]);
    assert_eq!(names_of(&machine.device("loop1").scheduled()), ["loop1"]);
    assert!(machine.device("zram0").scheduled().is_empty());
    assert_eq!(machine.device("sda").scheduler().as_deref(), Some("mq-deadline"));
    assert_eq!(machine.device("sda").schedulers(), ["none", "mq-deadline", "kyber", "bfq"]);
}

#[test]
fn users_are_found_through_partitions_and_holders() {
    let machine = Recorded::new();
    let usage = |name: &str| machine.device(name).usage().to_string();
    assert_eq!(
        usage("sda"),
        "dm-0 is mounted on /, sda1 is mounted on /boot, the device dm-0 uses space on this \
                              device"
    );
    assert_eq!(usage("sda1"), "sda1 is mounted on /boot");
    assert_eq!(usage("sda2"), "dm-0 is mounted on /, the device dm-0 uses space on this device");
    assert_eq!(usage("sdb"), "sdb1 is used for swap");
    assert_eq!(usage("sdc"), "no program uses this device");
    assert_eq!(usage("sdd"), "the device loop1 uses space on this device");
    assert_eq!(usage("nvme0n1"), "nvme0n1 is mounted on /srv/my data");
}

#[test]
fn disk_of_root_is_found_through_device_mapper() {
    let machine = Recorded::new();
    for (name, is_under_root) in [("sda", true), ("sda1", true), ("sda2", true), ("dm-0", true), ("sdb", false)] {
        assert_eq!(machine.device(name).is_under_root(), is_under_root, "{name}");
    }
}

#[test]
fn disks_of_root_are_found_through_raid_loop_and_btrfs() {
    let machine = Recorded::new();
    machine.disk("md0", "9:0", 1_000_000, None);
    machine.partition("md0", "md0p1", "259:7");
    machine.link("sys/devices/md0/slaves/sdb1", "sys/devices/sdb/sdb1");
    machine.link("sys/devices/md0/slaves/sdc", "sys/devices/sdc");
    for name in ["sda2", "nvme0n1"] {
        machine.write(&format!("sys/fs/btrfs/0b5e7a3c/devices/{name}"), "");
    }
    machine.write("sys/fs/btrfs/features/raid1c34", "0\n");
    // Device mapper builds dm-0 on sda2. Likewise, the RAID md0 is built on sdb1 and sdc, and loop1
    // on sdd.
    for (number, source, expected) in [
        ("9:0", "/dev/md0", &["sdb", "sdb1", "sdc", "md0", "md0p1"][..]),
        ("259:7", "/dev/md0p1", &["sdb", "sdb1", "sdc", "md0", "md0p1"]),
        ("8:2", "/dev/root", &["sda", "sda1", "sda2", "nvme0n1"]),
        ("7:1", "/dev/loop1", &["sdd", "loop1"]),
        ("0:40", "/dev/nvme0n1", &["sda", "sda1", "sda2", "nvme0n1"]),
    ] {
        machine.write("proc/self/mountinfo", &format!("27 1 {number} / / rw - any {source} rw\n"));
        let all = ["sda", "sda1", "sda2", "sdb", "sdb1", "sdc", "sdd", "md0", "md0p1", "dm-0", "loop1", "nvme0n1"];
        let found: Vec<_> = all.into_iter().filter(|name| machine.device(name).is_under_root()).collect();
        let mut expected = expected.to_vec();
        expected.sort_by_key(|name| all.iter().position(|known| known == name));
        assert_eq!(found, expected, "{source}");
    }
}

#[test]
fn circular_device_stack_ends() {
    let machine = Recorded::new();
    machine.write("sys/devices/loop0/loop/backing_file", "/dev/loop1\n");
    machine.write("sys/devices/loop1/loop/backing_file", "/dev/loop0\n");
    assert_eq!(names_of(&machine.device("loop0").stack()), ["loop1"]);
    assert_eq!(machine.device("loop0").usage().holders, ["loop1"]);
}

#[test]
fn statistics_are_parsed_and_subtracted() {
    let earlier: Stat = "10 1 80 5 20 2 160 7 3 9 12".parse().unwrap();
    assert_eq!(earlier.reads, Direction { requests: 10, merges: 1, bytes: 80 * 512, waited_ms: 5 });
    assert_eq!((earlier.in_flight, earlier.flushes), (3, 0));
    let later: Stat = "  15 1 120 6 20 2 160 7 0 19 22 4 0 8 1 2 3\n".parse().unwrap();
    let between = later.since(&earlier);
    assert_eq!((between.reads.requests, between.discards.requests, between.flushes), (5, 4, 2));
    assert_eq!((between.requests(), between.busy_ms, between.in_flight), (9, 10, 0));
    assert_eq!(earlier.since(&later).reads.requests, 0, "the counters of a replaced device start at 0");
    for text in ["", "1 2 3", "a b c d e f g h i j k", "-1 0 0 0 0 0 0 0 0 0 0"] {
        assert!(text.parse::<Stat>().is_err(), "{text:?}");
    }
    assert!(Recorded::new().device("sda1").stat().is_some());
}

#[test]
fn device_card_survives_json() {
    let machine = Recorded::new();
    let card = machine.device("sda").card();
    let text = serde_json::to_string(&card).unwrap();
    assert_eq!(serde_json::from_str::<DeviceCard>(&text).unwrap(), card);
    assert_eq!(machine.device("nvme0n1").identity().serial.as_deref(), Some("eui.0025385b71b0f0ee"));
}
