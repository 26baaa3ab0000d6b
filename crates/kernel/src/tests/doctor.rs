//! Tests of typical machines, each with exactly the findings that it must have.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::groups::{costs, unit};
use super::*;

const GIB: u64 = 1 << 30;

/// A machine for a test. Its files are in a temporary directory, at the same paths as on a real
/// machine.
pub(super) struct FakeMachine {
    root: tempfile::TempDir,
}

impl FakeMachine {
    /// Creates a machine without disks. It has cgroups of version 2, and the root enables the io
    /// controller for its children.
    pub(super) fn new() -> Self {
        let fake = Self { root: tempfile::tempdir().unwrap() };
        fake.write("proc/sys/kernel/osrelease", "6.12.5-amd64");
        fake.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu lm\n");
        fake.write("proc/self/mountinfo", "22 1 0:21 / /proc rw - proc proc rw\n");
        fake.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids");
        fake.write("sys/fs/cgroup/cgroup.subtree_control", "cpu io memory pids");
        fake.write("sys/fs/cgroup/io.cost.qos", "");
        fake.write("sys/fs/cgroup/io.cost.model", "");
        fake
    }

    fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
        self
    }

    fn link(&self, path: &str, to: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.root.path().join(to), path).unwrap();
    }

    /// Adds a disk with its name, number, place in `/sys/devices`, and attributes of its queue.
    fn disk(&self, name: &str, number: &str, place: &str, queue: &[(&str, &str)]) -> &Self {
        let directory = format!("sys/devices/{place}/{name}");
        self.write(&format!("{directory}/dev"), number);
        self.write(&format!("{directory}/size"), &(100 * GIB / 512).to_string());
        for (attribute, text) in [
            ("nomerges", "0"),
            ("iostats", "1"),
            ("discard_max_bytes", "2147450880"),
            ("discard_max_hw_bytes", "2147450880"),
            ("max_sectors_kb", "1280"),
            ("max_hw_sectors_kb", "32767"),
            ("read_ahead_kb", "128"),
            ("rotational", "0"),
            ("write_cache", "write through"),
        ]
        .iter()
        .chain(queue)
        {
            self.write(&format!("{directory}/queue/{attribute}"), text);
        }
        self.link(&format!("sys/class/block/{name}"), &directory);
        self.link(&format!("sys/block/{name}"), &directory);
        self.link(&format!("sys/dev/block/{number}"), &directory);
        self
    }

    /// Adds a SATA disk that accepts 32 commands.
    pub(super) fn sata(&self, name: &str, number: &str, model: &str, queue: &[(&str, &str)]) -> &Self {
        self.disk(name, number, "pci0000:00/ata1/host0/block", &[("write_cache", "write back"), ("nr_requests", "64")]);
        let directory = format!("sys/block/{name}");
        for (attribute, text) in queue {
            self.write(&format!("{directory}/queue/{attribute}"), text);
        }
        self.write(&format!("{directory}/device/model"), model);
        self.write(&format!("{directory}/device/vendor"), "ATA");
        self.write(&format!("{directory}/device/queue_depth"), "32");
        self.write(&format!("{directory}/device/scsi_disk/0:0:0:0/cache_type"), "write back");
        self.write(&format!("{directory}/mq/0/nr_tags"), "32")
    }

    /// Adds an NVMe disk with two hardware queues.
    fn nvme(&self, name: &str, number: &str, queue: &[(&str, &str)]) -> &Self {
        self.disk(name, number, "pci0000:00/nvme/nvme0", &[("nr_requests", "1023"), ("wbt_lat_usec", "2000")]);
        let directory = format!("sys/block/{name}");
        for (attribute, text) in queue {
            self.write(&format!("{directory}/queue/{attribute}"), text);
        }
        self.write(&format!("{directory}/device/model"), "A Fine NVMe Disk");
        self.write(&format!("{directory}/mq/0/nr_tags"), "1023");
        self.write(&format!("{directory}/mq/1/nr_tags"), "1023")
    }

    /// Adds a device that is built on others.
    pub(super) fn over(&self, name: &str, number: &str, below: &[&str], file: (&str, &str)) -> &Self {
        self.disk(name, number, "virtual/block", &[]);
        self.write(&format!("sys/block/{name}/{}", file.0), file.1);
        below.iter().for_each(|below| {
            self.link(&format!("sys/block/{name}/slaves/{below}"), &format!("sys/class/block/{below}"));
        });
        self
    }

    /// Adds a service of systemd with a file of its cgroup.
    fn service(&self, name: &str, file: &str, text: &str) -> &Self {
        let directory = format!("sys/fs/cgroup/system.slice/{name}.service");
        self.write(&format!("{directory}/cgroup.type"), "domain");
        self.write(&format!("{directory}/{file}"), text)
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        read::snapshot(&Roots::at(self.root.path()), &|_| None)
    }

    /// Compares the findings with `expected`. A finding about a disk is `sda none-on-rotating`. A
    /// finding about the machine is its name alone.
    #[track_caller]
    fn gives(&self, expected: &[&str]) {
        let found = examine(&self.snapshot());
        let mut names: Vec<String> = found
            .iter()
            .map(|finding| {
                let name = finding.id.name();
                finding.disk.as_ref().map_or_else(|| name.to_owned(), |disk| format!("{disk} {name}"))
            })
            .collect();
        names.sort();
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        assert_eq!(names, expected, "{found:#?}");
        assert!(found.is_sorted_by_key(|finding| finding.weight));
        for finding in &found {
            assert!(
                finding.file.starts_with('/') && !finding.meaning.is_empty() && !finding.meaning.contains("  "),
                "{finding:?}"
            );
        }
    }

    fn finding(&self, id: Id) -> Finding {
        examine(&self.snapshot()).into_iter().find(|finding| finding.id == id).unwrap()
    }
}

const DEADLINE: (&str, &str) = ("scheduler", "none [mq-deadline] kyber bfq");
const BFQ: (&str, &str) = ("scheduler", "none mq-deadline kyber [bfq]");
const NONE: (&str, &str) = ("scheduler", "[none] mq-deadline kyber bfq");
const ROTATING: (&str, &str) = ("rotational", "1");
const WBT_SSD: (&str, &str) = ("wbt_lat_usec", "2000");
const WBT_HDD: (&str, &str) = ("wbt_lat_usec", "75000");
const WBT_OFF: (&str, &str) = ("wbt_lat_usec", "0");

#[test]
fn findings_for_a_sata_ssd_with_mq_deadline() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "Samsung SSD 870", &[DEADLINE, WBT_SSD]);
    fake.write("sys/block/sda/queue/iosched/prio_aging_expire", "10000");
    fake.gives(&["sda ionice-classes-only", "sda wbt-on", "sda write-cache-volatile"]);
    assert!(fake.finding(Id::IoniceClassesOnly).meaning.contains("at most 10000 ms"));
    // Before Linux 5.14, mq-deadline ignored classes.
    fake.write("proc/sys/kernel/osrelease", "5.10.0-28-amd64");
    fake.gives(&["sda ionice-ignored", "sda wbt-on", "sda write-cache-volatile"]);
}

#[test]
fn findings_for_an_nvme_disk_with_none() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[("scheduler", "[none] mq-deadline")]);
    fake.gives(&["nvme0n1 ionice-ignored", "nvme0n1 wbt-on"]);
    let finding = fake.finding(Id::IoniceIgnored);
    assert_eq!(finding.meaning, "ionice does nothing on this disk, because the scheduler of this disk is none");
    assert_eq!((finding.weight, finding.remedy), (Weight::Note, None), "no program uses this device");
}

#[test]
fn findings_for_an_nvme_disk_with_a_scheduler() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[DEADLINE, ("nr_requests", "256")]);
    fake.gives(&["nvme0n1 ionice-classes-only", "nvme0n1 nothing-waits", "nvme0n1 wbt-on"]);
    fake.write("sys/block/nvme0n1/queue/scheduler", BFQ.1);
    fake.gives(&["nvme0n1 bfq-on-nvme", "nvme0n1 ionice-in-force", "nvme0n1 wbt-under-bfq"]);
    fake.write("sys/block/nvme0n1/queue/scheduler", "none mq-deadline [kyber]");
    fake.gives(&["nvme0n1 ionice-ignored", "nvme0n1 wbt-on"]);
}

#[test]
fn findings_for_an_nvme_disk_with_several_paths() {
    let fake = FakeMachine::new();
    fake.disk("nvme0n1", "259:0", "virtual/nvme-subsystem/nvme-subsys0", &[("write_cache", "write back")]);
    for path in ["nvme0c0n1", "nvme0c1n1", "nvme0c1n2", "nvme1c0n1"] {
        fake.write(&format!("sys/block/{path}/queue/scheduler"), "[none] mq-deadline");
    }
    fake.gives(&["nvme0n1 layer-nvme-paths", "nvme0n1 write-cache-volatile"]);
    let finding = fake.finding(Id::LayerNvmePaths);
    assert!(
        finding.meaning.ends_with("(nvme0c0n1: none, nvme0c1n1: none), and ionice does nothing on this disk"),
        "{finding:?}"
    );
    fake.write("sys/block/nvme0c1n1/queue/scheduler", "none [mq-deadline]");
    assert!(fake.finding(Id::LayerNvmePaths).meaning.ends_with("nvme0c1n1: mq-deadline)"));
}

#[test]
fn other_stacked_devices_are_unknown() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[NONE]);
    fake.over("bcache0", "252:0", &["nvme0n1"], ("bcache/label", ""));
    fake.gives(&["nvme0n1 ionice-ignored", "nvme0n1 wbt-on", "bcache0 layer-other"]);
    assert_eq!(fake.finding(Id::LayerOther).sure, Sure::CannotKnow);
}

#[test]
fn findings_for_a_rotating_disk_with_bfq() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "ST4000DM004", &[BFQ, ROTATING, WBT_OFF, ("discard_max_hw_bytes", "0")]);
    fake.gives(&["sda ionice-in-force", "sda wbt-off", "sda write-cache-volatile"]);
    assert!(fake.finding(Id::WbtOff).meaning.contains("bfq switches it off"));
}

#[test]
fn findings_for_a_rotating_disk_with_none() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "ST4000DM004", &[NONE, ROTATING, WBT_HDD]);
    fake.gives(&["sda none-on-rotating", "sda ionice-ignored", "sda wbt-on", "sda write-cache-volatile"]);
    let finding = fake.finding(Id::NoneOnRotating);
    assert_eq!(finding.remedy.as_deref(), Some("iosched set sda scheduler=mq-deadline"));
    fake.service("backup", "io.bfq.weight", "50");
    assert_eq!(fake.finding(Id::NoneOnRotating).remedy, fake.finding(Id::BfqWeightIgnored).remedy);
    assert_eq!((finding.weight, finding.sure), (Weight::Matters, Sure::Certain));
    // A controller with several queues usually sorts requests itself.
    fake.write("sys/block/sda/mq/1/nr_tags", "32");
    assert_eq!(fake.finding(Id::NoneOnRotating).sure, Sure::Likely);
}

#[test]
fn findings_for_lvm_over_raid_over_two_disks() {
    let fake = FakeMachine::new();
    for (name, number) in [("sda", "8:0"), ("sdb", "8:16")] {
        fake.sata(name, number, "ST4000DM004", &[DEADLINE, ROTATING, WBT_HDD]);
    }
    fake.over("md0", "9:0", &["sda", "sdb"], ("md/level", "raid1"));
    fake.over("dm-0", "253:0", &["md0"], ("dm/uuid", "LVM-abcdef"));
    let each = ["ionice-classes-only", "wbt-on", "write-cache-volatile"];
    let disks = ["sda", "sdb"].map(|disk| each.map(|id| format!("{disk} {id}")));
    let disks: Vec<&str> = disks.iter().flatten().map(String::as_str).collect();
    fake.gives(&[&disks[..], &["md0 layer-raid", "dm-0 layer-lvm"]].concat());
    let machine = fake.snapshot();
    let names = |disks: Vec<&Disk>| disks.iter().map(|disk| disk.name.clone()).collect::<Vec<_>>();
    assert!(fake.finding(Id::LayerLvm).meaning.contains("the schedulers of sda, sdb decide"));
    assert_eq!(names(machine.way("dm-0")), ["dm-0", "md0", "sda", "sdb"]);
    assert_eq!(names(machine.above("sdb")), ["md0", "dm-0"]);
    assert!(machine.way("nosuch").is_empty() && machine.above("nosuch").is_empty());
    fake.write("sys/block/md0/md/level", "raid5");
    fake.gives(&[&disks[..], &["md0 raid-writes-by-kernel", "dm-0 layer-lvm"]].concat());
}

#[test]
fn findings_for_dm_crypt_over_nvme() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[NONE]);
    fake.over("dm-0", "253:0", &["nvme0n1"], ("dm/uuid", "CRYPT-LUKS2-0123-luks"));
    fake.service("db", "io.latency", "253:0 target=2000");
    fake.gives(&["nvme0n1 ionice-ignored", "nvme0n1 wbt-on", "dm-0 layer-crypt", "dm-0 io-latency-without-queue"]);
    assert!(fake.finding(Id::LayerCrypt).meaning.contains("the cgroup of the writing process is lost"));
    fake.write("proc/sys/kernel/osrelease", "6.1.0-18-amd64");
    assert!(fake.finding(Id::LayerCrypt).meaning.contains("ioprio and cgroup of the writing process are lost"));
}

#[test]
fn kernel_thread_writes_make_io_max_finding_uncertain() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[NONE]);
    fake.service("db", "io.max", "259:0 wbps=1000000");
    let finding = fake.finding(Id::IoMaxSet);
    assert_eq!((finding.sure, finding.meaning.contains("dm-0")), (Sure::Certain, false));
    fake.over("dm-0", "253:0", &["nvme0n1"], ("dm/uuid", "CRYPT-LUKS2-0123-luks"));
    let finding = fake.finding(Id::IoMaxSet);
    assert!(
        finding
            .meaning
            .ends_with(". Writes through dm-0 do not count for any cgroup, because a kernel thread sends these writes"),
        "{finding:?}"
    );
    assert_eq!(finding.sure, Sure::Likely);
}

#[test]
fn multipath_device_uses_its_own_scheduler() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "A SAN", &[NONE, ("write_cache", "write through"), ("discard_max_hw_bytes", "0")]);
    fake.write("sys/block/sda/device/scsi_disk/0:0:0:0/cache_type", "write through");
    fake.over("dm-0", "253:0", &["sda"], ("dm/uuid", "mpath-360"));
    fake.write("sys/block/dm-0/queue/scheduler", DEADLINE.1);
    fake.gives(&["sda ionice-ignored", "dm-0 layer-multipath", "dm-0 ionice-classes-only"]);
    fake.over("dm-1", "253:1", &["dm-0"], ("dm/uuid", "part1-mpath-360"));
    // Older kernels show only the name for a device without a request queue.
    fake.write("sys/block/dm-1/queue/scheduler", "none");
    fake.gives(&["sda ionice-ignored", "dm-0 layer-multipath", "dm-0 ionice-classes-only", "dm-1 layer-other"]);
}

#[test]
fn findings_for_a_virtio_disk_in_a_kvm_guest() {
    let fake = FakeMachine::new();
    fake.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu hypervisor lm\n");
    fake.write("sys/class/dmi/id/sys_vendor", "QEMU");
    let queue = [NONE, ROTATING, WBT_HDD, ("write_cache", "write back"), ("nr_requests", "256")];
    fake.disk("vda", "254:0", "pci0000:00/virtio1/block", &queue);
    fake.link("sys/block/vda/device/driver", "sys/bus/virtio/drivers/virtio_blk");
    fake.gives(&[
        "virtual-machine",
        "vda ionice-ignored",
        "vda rotational-doubtful",
        "vda virtual-disk",
        "vda wbt-on",
        "vda write-cache-volatile",
    ]);
}

#[test]
fn findings_for_a_loop_device_over_a_file_on_ext4() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "Samsung SSD 870", &[DEADLINE, WBT_SSD]);
    let mounts = "27 1 8:0 / / rw - ext4 /dev/sda rw\n28 27 0:22 / /proc rw - proc proc rw";
    fake.write("proc/self/mountinfo", mounts);
    fake.disk("loop0", "7:0", "virtual/block", &[NONE, ("nr_requests", "128")]);
    fake.write("sys/block/loop0/loop/backing_file", "/no/such/image");
    fake.write("sys/block/loop0/loop/dio", "0");
    let disk = ["sda ionice-classes-only", "sda wbt-on", "sda write-cache-volatile"];
    fake.gives(&[&disk[..], &["loop0 ionice-ignored", "loop0 loop-through-cache"]].concat());
    assert_eq!(fake.snapshot().disk("loop0").unwrap().below, ["sda"]);
    assert_eq!(fake.finding(Id::LoopThroughCache).weight, Weight::Matters);
    fake.write("sys/block/loop0/ro", "1");
    assert_eq!(fake.finding(Id::LoopThroughCache).weight, Weight::Note);
    fake.write("sys/block/loop0/loop/dio", "1");
    fake.gives(&[&disk[..], &["loop0 ionice-ignored", "loop0 layer-loop"]].concat());
    // Weights on all disks are not reported for loop devices.
    fake.service("db", "io.weight", "default 500");
    fake.gives(&[&disk[..], &["loop0 ionice-ignored", "loop0 layer-loop", "sda io-weight-ignored"]].concat());
}

#[test]
fn findings_for_a_disk_behind_usb() {
    let fake = FakeMachine::new();
    let queue = [DEADLINE, ROTATING, ("discard_max_bytes", "0"), ("discard_max_hw_bytes", "0"), ("nr_requests", "60")];
    fake.disk("sdb", "8:16", "pci0000:00/usb2/2-1/host6/block", &queue);
    fake.write("sys/block/sdb/device/queue_depth", "30");
    fake.write("sys/block/sdb/device/model", "Portable");
    fake.gives(&["sdb ionice-classes-only", "sdb rotational-doubtful"]);
    assert_eq!(fake.finding(Id::RotationalDoubtful).sure, Sure::CannotKnow);
    fake.write("sys/block/sdb/device/model", "Portable SSD T7");
    let finding = fake.finding(Id::RotationalDoubtful);
    assert_eq!((finding.sure, finding.remedy.as_deref()), (Sure::Likely, Some("iosched set sdb rotational=0")));
}

/// Returns a machine with systemd and with weights and limits of units.
fn with_units() -> FakeMachine {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "Samsung SSD 870", &[DEADLINE, WBT_SSD]);
    fake.service("backup", "io.weight", "default 50");
    fake.service("backup", "io.bfq.weight", "default 50");
    fake.service("backup", "io.max", "8:0 rbps=10485760 wbps=max riops=max wiops=max");
    fake.service("plain", "io.weight", "default 100");
    fake.service("plain", "io.max", "8:0 rbps=max wbps=max riops=max wiops=max");
    fake
}

const SSD: [&str; 4] = ["sda ionice-classes-only", "sda wbt-on", "sda write-cache-volatile", "sda io-max-set"];

#[test]
fn weights_of_units_without_io_cost_do_nothing() {
    let fake = with_units();
    fake.gives(&[&SSD[..], &["sda io-weight-ignored"]].concat());
    let finding = fake.finding(Id::IoWeightIgnored);
    assert!(finding.meaning.contains("(backup.service 50)"), "{}", finding.meaning);
    assert_eq!(finding.remedy.as_deref(), Some("iosched set sda scheduler=bfq"));
    assert_eq!(finding.file, "/sys/fs/cgroup/system.slice/backup.service/io.weight");
    assert_eq!((finding.weight, finding.sure), (Weight::Matters, Sure::Certain));
    let max = fake.finding(Id::IoMaxSet);
    assert!(max.meaning.contains("backup.service is limited to rbps=10485760"), "{}", max.meaning);
    // bfq has its own weights, and systemd sets them.
    fake.write("sys/block/sda/queue/scheduler", BFQ.1).write("sys/block/sda/queue/wbt_lat_usec", "0");
    let with_bfq = ["sda ionice-in-force", "sda wbt-off", "sda write-cache-volatile", "sda io-max-set"];
    fake.gives(&[&with_bfq[..], &["sda bfq-weight-in-force"]].concat());
    fs::remove_file(fake.root.path().join("sys/fs/cgroup/system.slice/backup.service/io.bfq.weight")).unwrap();
    fake.gives(&[&with_bfq[..], &["sda io-weight-ignored"]].concat());
    let finding = fake.finding(Id::IoWeightIgnored);
    assert_eq!(finding.remedy.as_deref(), Some("iosched set sda cgroup/io.cost.qos=enable=1"));
}

#[test]
fn finding_shows_the_shares_of_scaled_bfq_weights() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "Samsung SSD 870", &[BFQ, WBT_OFF]);
    fake.service("batch", "io.weight", "default 300").service("batch", "io.bfq.weight", "default 118");
    fake.service("web", "io.weight", "default 200").service("web", "io.bfq.weight", "default 109");
    let finding = fake.finding(Id::BfqWeightScaled);
    for part in [
        "batch.service IOWeight=300 became 118, web.service IOWeight=200 became 109",
        "If batch.service and web.service are always busy, they share the disk 52:48 instead of 60:40",
        "batch.service IOWeight=2300, web.service IOWeight=1200",
    ] {
        assert!(finding.meaning.contains(part), "{}", finding.meaning);
    }
    let write = |weight, unit| format!("echo {weight} > '/sys/fs/cgroup/system.slice/{unit}.service/io.bfq.weight'");
    let remedy = format!("{} && {}", write(300, "batch"), write(200, "web"));
    assert_eq!((finding.weight, finding.remedy), (Weight::Matters, Some(remedy)));
    // Weights that a user wrote directly are in force.
    fake.service("batch", "io.bfq.weight", "default 300").service("web", "io.bfq.weight", "default 200");
    assert!(examine(&fake.snapshot()).iter().all(|finding| finding.id != Id::BfqWeightScaled));
    // Up to 100, both files hold the same weight. If one unit has a scaled weight, the finding
    // compares it with units without a weight.
    fake.service("batch", "io.weight", "default 50").service("batch", "io.bfq.weight", "default 50");
    fake.service("web", "io.weight", "default 100").service("web", "io.bfq.weight", "default 100");
    assert!(examine(&fake.snapshot()).iter().all(|finding| finding.id != Id::BfqWeightScaled));
    fake.service("web", "io.weight", "default 105");
    assert!(fake.finding(Id::BfqWeightScaled).meaning.contains("web.service IOWeight=105 became 100"));
    fake.service("web", "io.weight", "default 10000").service("web", "io.bfq.weight", "default 1000");
    let finding = fake.finding(Id::BfqWeightScaled);
    assert!(finding.remedy.is_none() && finding.meaning.contains("no weight above 1000"), "{}", finding.meaning);
    // With another scheduler, scaled weights have no effect.
    fake.write("sys/block/sda/queue/scheduler", DEADLINE.1);
    assert!(examine(&fake.snapshot()).iter().all(|finding| finding.id != Id::BfqWeightScaled));
}

#[test]
fn missing_bfq_device_weight_is_a_finding() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "Samsung SSD 870", &[BFQ, WBT_OFF]);
    fake.service("db", "io.weight", "default 100\n8:0 300").service("db", "io.bfq.weight", "default 100");
    let finding = fake.finding(Id::BfqDeviceWeightMissing);
    assert!(
        finding.meaning.contains("(db.service 300), because systemd does not write IODeviceWeight="),
        "{}",
        finding.meaning
    );
    let file = "/sys/fs/cgroup/system.slice/db.service/io.bfq.weight";
    assert_eq!(finding.remedy, Some(format!("echo '8:0 300' > '{file}'")));
    fake.service("db", "io.bfq.weight", "default 100\n8:0 300");
    assert!(examine(&fake.snapshot()).iter().all(|finding| finding.id != Id::BfqDeviceWeightMissing));
}

#[test]
fn findings_say_whether_foreign_schedulers_use_ionice() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "Samsung SSD 870", &[("scheduler", "none mq-deadline [adios]"), WBT_OFF]);
    let finding = fake.finding(Id::IoniceIgnored);
    assert!(finding.meaning.contains("adios") && finding.sure == Sure::Likely, "{}", finding.meaning);
    fake.write("sys/block/sda/queue/scheduler", "none mq-deadline [novel]");
    let finding = fake.finding(Id::IoniceUnknown);
    assert!(
        finding.meaning.contains("does not know whether novel") && finding.meaning.contains("compare --on"),
        "{finding:?}"
    );
}

#[test]
fn weights_of_units_with_io_cost_are_in_force() {
    let fake = with_units();
    fake.write("sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=auto rpct=0.00 rlat=25000 wpct=0.00 wlat=25000");
    fake.write("sys/fs/cgroup/io.cost.model", "8:0 ctrl=auto model=linear rbps=488636629");
    fake.write("sys/block/sda/queue/wbt_lat_usec", "0");
    let disk = ["sda ionice-classes-only", "sda wbt-off", "sda write-cache-volatile", "sda io-max-set"];
    let in_force = ["sda io-weight-in-force", "sda io-cost-on"];
    fake.gives(&[&disk[..], &in_force, &["sda io-cost-default-model"]].concat());
    assert!(fake.finding(Id::WbtOff).meaning.contains("io.cost switches it off"));
    assert!(fake.finding(Id::IoCostOn).meaning.contains("has no latency targets"));
    fake.write("sys/fs/cgroup/io.cost.qos", "8:0 enable=1 ctrl=user rpct=95.00 rlat=2000 wpct=0.00 wlat=25000");
    fake.write("sys/fs/cgroup/io.cost.model", "8:0 ctrl=user model=linear rbps=488636629");
    fake.gives(&[&disk[..], &in_force].concat());
    assert!(fake.finding(Id::IoCostOn).meaning.contains("miss the latency targets"));
    fake.write("sys/fs/cgroup/io.cost.qos", "8:0 enable=0 ctrl=user\n8:16 enable=1");
    fake.gives(&[&disk[..], &["sda io-weight-ignored"]].concat());
}

#[test]
fn findings_for_latency_prio_class_and_bfq_weight_files() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "ST4000DM004", &[NONE, ROTATING, WBT_HDD]);
    let disk = ["sda none-on-rotating", "sda ionice-ignored", "sda wbt-on", "sda write-cache-volatile"];
    fake.service("db", "io.latency", "8:0 target=2000\n8:16 target=1");
    fake.service("batch", "io.prio.class", "idle");
    fake.service("plain", "io.prio.class", "no-change");
    fake.gives(&[&disk[..], &["sda io-latency-set", "sda io-prio-class-ignored"]].concat());
    assert!(fake.finding(Id::IoLatencySet).meaning.contains("the mean latency in a time window"));
    fake.write("sys/block/sda/queue/scheduler", DEADLINE.1);
    let disk = ["sda ionice-classes-only", "sda wbt-on", "sda write-cache-volatile"];
    fake.gives(&[&disk[..], &["sda io-latency-set", "sda io-prio-class-in-force"]].concat());
    fake.service("db", "io.bfq.weight", "default 100\n8:0 300");
    fake.gives(&[&disk[..], &["sda io-latency-set", "sda io-prio-class-in-force", "sda bfq-weight-ignored"]].concat());
}

#[test]
fn findings_for_cgroups_of_version_1_only() {
    let fake = FakeMachine::new();
    fs::remove_dir_all(fake.root.path().join("sys/fs/cgroup")).unwrap();
    fake.sata("sda", "8:0", "Samsung SSD 870", &[DEADLINE, WBT_SSD]);
    for file in ["blkio.throttle.read_bps_device", "blkio.throttle.write_iops_device"] {
        fake.write(&format!("sys/fs/cgroup/blkio/{file}"), "");
        fake.write(&format!("sys/fs/cgroup/blkio/system.slice/_db.service/{file}"), "8:0 1048576");
    }
    let disk = ["sda ionice-classes-only", "sda wbt-on", "sda write-cache-volatile"];
    fake.gives(&[&disk[..], &["cgroup-v1", "sda blkio-throttle-set"]].concat());
    let finding = fake.finding(Id::BlkioThrottleSet);
    assert!(finding.meaning.starts_with("db.service is limited to rbps=1048576 wiops=1048576 "), "{}", finding.meaning);
}

#[test]
fn findings_for_a_container_without_io_controller() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[NONE]);
    fs::remove_file(fake.root.path().join("sys/fs/cgroup/io.cost.qos")).unwrap();
    fake.write("sys/fs/cgroup/cgroup.controllers", "cpu memory pids");
    fake.write("sys/fs/cgroup/cgroup.type", "domain");
    let disk = ["nvme0n1 ionice-ignored", "nvme0n1 wbt-on"];
    fake.gives(&[&disk[..], &["cgroup-namespace", "cgroup-no-io"]].concat());
    // With the controller, it is not known whether weights are in force.
    fake.write("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids");
    fake.write("sys/fs/cgroup/app/io.weight", "default 10");
    fake.gives(&[&disk[..], &["cgroup-namespace", "nvme0n1 io-weight-unknown"]].concat());
    fake.write("sys/fs/cgroup/cgroup.subtree_control", "memory");
    fs::remove_dir_all(fake.root.path().join("sys/fs/cgroup/app")).unwrap();
    fake.gives(&[&disk[..], &["cgroup-namespace", "cgroup-io-not-passed-on"]].concat());
    fs::remove_dir_all(fake.root.path().join("sys/fs/cgroup")).unwrap();
    fake.gives(&[&disk[..], &["cgroup-no-io"]].concat());
}

#[test]
fn findings_for_btrfs_over_two_disks() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[NONE]).sata("sda", "8:0", "Samsung SSD 870", &[DEADLINE, WBT_SSD]);
    fake.link("sys/fs/btrfs/0123-4567/devices/nvme0n1", "sys/block/nvme0n1");
    fake.link("sys/fs/btrfs/0123-4567/devices/sda", "sys/block/sda");
    fake.link("sys/fs/btrfs/89ab-cdef/devices/sda", "sys/block/sda");
    fs::create_dir_all(fake.root.path().join("sys/fs/btrfs/features")).unwrap();
    fake.gives(&[
        "nvme0n1 ionice-ignored",
        "nvme0n1 several-disks",
        "nvme0n1 wbt-on",
        "sda ionice-classes-only",
        "sda several-disks",
        "sda wbt-on",
        "sda write-cache-volatile",
    ]);
    assert_eq!(fake.snapshot().way("sda").len(), 2);
}

#[test]
fn zfs_is_recognised_by_its_mounts() {
    let fake = FakeMachine::new();
    fake.write("proc/self/mountinfo", "27 1 0:40 / /tank rw - zfs tank rw");
    fake.gives(&["zfs-own-threads"]);
}

#[test]
fn findings_for_a_queue_with_changed_attributes() {
    let fake = FakeMachine::new();
    fake.sata("sda", "8:0", "INTEL SSDSC2", &[DEADLINE, ROTATING, WBT_SSD]);
    for (attribute, text) in [
        ("nomerges", "2"),
        ("iostats", "0"),
        ("nr_requests", "32"),
        ("write_cache", "write through"),
        ("discard_max_bytes", "0"),
        ("max_sectors_kb", "128"),
        ("read_ahead_kb", "0"),
    ] {
        fake.write(&format!("sys/block/sda/queue/{attribute}"), text);
    }
    fake.write("sys/block/sda/device/ncq_prio_enable", "1");
    let usual = ["sda ionice-classes-only", "sda ionice-by-the-drive", "sda wbt-on", "sda rotational-doubtful"];
    let changed = ["merges-off", "no-iostats", "nothing-waits", "flushes-not-sent", "discard-off", "requests-cut"];
    let changed: Vec<String> = changed.iter().map(|id| format!("sda {id}")).collect();
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    fake.gives(&[&usual[..], &changed, &["sda read-ahead-off"]].concat());
    fake.write("sys/block/sda/queue/read_ahead_kb", "8192");
    fake.gives(&[&usual[..], &changed, &["sda read-ahead-large"]].concat());
    // The drive uses the class although the scheduler does not.
    fake.write("sys/block/sda/queue/scheduler", NONE.1);
    assert!(examine(&fake.snapshot()).iter().all(|finding| finding.id != Id::IoniceIgnored));
}

#[test]
fn processes_with_ionice_make_ionice_findings_matter() {
    let fake = FakeMachine::new();
    fake.nvme("nvme0n1", "259:0", &[NONE]);
    for (tid, name, words) in [("10", "backup", "backup --all"), ("11", "plain", "plain"), ("12", "kworker", "")] {
        fake.write(&format!("proc/{tid}/comm"), name);
        fake.write(&format!("proc/{tid}/task/{tid}/comm"), name);
        fs::write(fake.root.path().join(format!("proc/{tid}/cmdline")), words).unwrap();
    }
    fake.write("proc/10/task/100/comm", "backup");
    fake.write("proc/11/task/110/comm", "plain");
    let ask = |tid| match tid {
        10 | 100 => Some(3 << 13 | 7),
        11 => Some(2 << 13 | 4),
        110 => Some(2 << 13),
        _ => Some(1 << 13),
    };
    let machine = read::snapshot(&Roots::at(fake.root.path()), &ask);
    let ioprios: Vec<_> =
        machine.ioprios.as_ref().unwrap().iter().map(|ioprio| (ioprio.class, ioprio.level, ioprio.threads)).collect();
    assert_eq!(ioprios, [("be", Some(0), 1), ("idle", None, 2)]);
    let found = examine(&machine);
    let ignored = found.iter().find(|finding| finding.id == Id::IoniceIgnored).unwrap();
    assert_eq!(ignored.weight, Weight::Matters);
    assert_eq!(ignored.remedy.as_deref(), Some("iosched set nvme0n1 scheduler=mq-deadline"));
    let seen = found.iter().find(|finding| finding.id == Id::IoprioSeen).unwrap();
    assert!(seen.meaning.ends_with("(be/0: 1 thread, such as plain; idle: 2 threads, such as backup)"));
}

#[test]
fn malformed_files_are_ignored() {
    let fake = FakeMachine::new();
    fake.sata(
        "sda",
        "8:0",
        "",
        &[("scheduler", ""), ("nr_requests", "-1"), ("rotational", "\u{fffd}"), ("wbt_lat_usec", "")],
    );
    fake.service("odd", "io.max", "8:0\n\nnonsense\n9:9 rbps=1");
    fake.service("odd", "io.latency", "8:0 target=\n8:0 x");
    fake.service("odd", "io.weight", "default many");
    fake.service("odd", "io.bfq.weight", "1 2 3\n8:0");
    fake.write("sys/fs/cgroup/io.cost.qos", "8:0\nenable=1\n8:0 enable");
    fs::write(fake.root.path().join("sys/block/sda/queue/read_ahead_kb"), [0xff, 0xfe]).unwrap();
    fake.gives(&["sda write-cache-volatile"]);
    // An empty machine.
    let empty = tempfile::tempdir().unwrap();
    let found = examine(&read::snapshot(&Roots::at(empty.path()), &|_| None));
    assert_eq!(found.iter().map(|finding| finding.id).collect::<Vec<_>>(), [Id::CgroupNoIo]);
}

#[test]
fn doctor_examines_the_machine_of_the_test() {
    let found = examine(&Snapshot::of(&Roots::default()));
    assert!(found.is_sorted_by_key(|finding| finding.weight));
    serde_json::to_string(&found).unwrap();
}

#[test]
fn docs_list_every_finding_identifier() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/doctor.md");
    let page = fs::read_to_string(page).unwrap();
    let cells = page.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    // A cell has one or more names in backquotes.
    let mut documented: Vec<&str> = cells.flat_map(|cell| cell.split('`').step_by(2)).collect();
    let mut known: Vec<&str> = Id::ALL.iter().map(|id| id.name()).collect();
    documented.sort_unstable();
    known.sort_unstable();
    assert_eq!(documented, known);
}

#[test]
fn unit_names_weights_and_costs_are_parsed() {
    for (path, expected) in [
        ("system.slice/backup.service", "backup.service"),
        ("system.slice/_db.service/worker", "db.service"),
        ("user.slice/user-1000.slice/user@1000.service/app.slice/x.scope", "x.scope"),
        ("docker/0123", "docker/0123"),
        ("", "the root cgroup"),
    ] {
        assert_eq!(unit(path), expected, "{path}");
    }
    let weights = Weights::parse("default 100\n8:16 200\n8:32 100\n").unwrap();
    let on = |number: &str| weights.on(number.parse().unwrap());
    assert_eq!((on("8:0"), on("8:16"), on("8:32")), (None, Some(200), None));
    assert_eq!((Weights::parse("100"), Weights::parse("default 100\n")), (None, None));
    assert_eq!(Weights::parse("300").unwrap().usual, 300);
    let cost = &costs("8:16 enable=1 ctrl=auto rpct=95.00 wpct=0.00", "8:16 ctrl=user model=linear")[0];
    assert!(cost.is_enabled && cost.looks_at_latency && !cost.has_default_model);
}
