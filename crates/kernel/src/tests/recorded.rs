//! A machine for tests: the files of a real machine's `/sys`, `/proc` and `/dev`.
//!
//! `sda` has two partitions. The first is mounted on /boot. `dm-0` is built on the second and is
//! mounted on /. `sdb` is idle, and its partition `sdb1` is used for swap. `sdc` is free. `nvme0n1`
//! has a btrfs on /srv, which shows its own device number. `loop0` is over a file. `loop1` is over
//! `sdd`. `zram0` has no scheduler.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::block::BlockDevice;
use crate::roots::Roots;

/// The machine, in a temporary directory.
pub(crate) struct Recorded {
    root: tempfile::TempDir,
}

const MOUNTS: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 253:0 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw
28 27 8:1 / /boot rw,relatime shared:2 - ext4 /dev/sda1 rw
29 27 0:40 /@data /srv/my\\040data rw - btrfs /dev/nvme0n1 rw,subvol=/@data
";
const SWAPS: &str = "\
Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority
/dev/sdb1                               partition\t1048572\t\t0\t\t-2
";

impl Recorded {
    pub(crate) fn new() -> Self {
        let recorded = Self { root: tempfile::tempdir().unwrap() };
        let scsi = "none [mq-deadline] kyber bfq\n";
        for (name, number, sectors) in
            [("sda", "8:0", 2_097_152), ("sdb", "8:16", 4096), ("sdc", "8:32", 8192), ("sdd", "8:48", 8192)]
        {
            recorded.disk(name, number, sectors, Some(scsi));
            recorded.write(&format!("sys/devices/{name}/device/queue_depth"), "31\n");
            recorded.write(&format!("sys/devices/{name}/device/model"), "ST1000DM003     \n");
            recorded.write(&format!("sys/devices/{name}/device/vendor"), "ATA     \n");
            recorded.write(&format!("sys/devices/{name}/queue/rotational"), "1\n");
        }
        recorded.partition("sda", "sda1", "8:1");
        recorded.partition("sda", "sda2", "8:2");
        recorded.partition("sdb", "sdb1", "8:17");
        recorded.disk("dm-0", "253:0", 1_000_000, None);
        recorded.write("sys/devices/dm-0/dm/name", "vg-root\n");
        recorded.link("sys/devices/dm-0/slaves/sda2", "sys/devices/sda/sda2");
        recorded.link("sys/devices/sda/sda2/holders/dm-0", "sys/devices/dm-0");
        recorded.link("dev/mapper/vg-root", "dev/dm-0");
        recorded.disk("nvme0n1", "259:0", 1_000_215_216, Some("[none] mq-deadline\n"));
        recorded.write("sys/devices/nvme0n1/wwid", "eui.0025385b71b0f0ee\n");
        for queue in ["0", "1", "10"] {
            recorded.write(&format!("sys/devices/nvme0n1/mq/{queue}/nr_tags"), "1023\n");
        }
        recorded.disk("loop0", "7:0", 0, Some("[none] mq-deadline kyber bfq\n"));
        recorded.disk("loop1", "7:1", 8192, Some("[none] mq-deadline kyber bfq\n"));
        recorded.write("sys/devices/loop1/loop/backing_file", "/dev/sdd\n");
        recorded.write("sys/devices/loop1/loop/dio", "0\n");
        recorded.write("sys/devices/loop1/mq/0/nr_tags", "128\n");
        recorded.disk("zram0", "252:0", 8192, None);
        recorded.write("proc/self/mountinfo", MOUNTS);
        recorded.write("proc/swaps", SWAPS);
        recorded.write("proc/sys/kernel/random/boot_id", "690d769e-29d8-421e-b9cd-7093602b29f1\n");
        recorded.write("proc/sys/kernel/osrelease", "6.12.5-amd64\n");
        recorded.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A Fine CPU @ 3.00GHz\nflags\t\t: fpu lm\n");
        recorded.write("proc/meminfo", "MemTotal:       16318480 kB\nMemFree:         1000 kB\n");
        recorded.write("proc/loadavg", "0.25 0.10 0.05 1/100 4711\n");
        recorded.write("sys/devices/system/cpu/online", "0-3,6-7\n");
        recorded.write("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
        recorded
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::at(self.root.path())
    }

    pub(crate) fn device(&self, name: &str) -> BlockDevice {
        BlockDevice::named(&self.roots(), name).unwrap()
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    /// Writes a file below the root and creates its directories.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap().trim().to_owned()
    }

    pub(crate) fn link(&self, path: &str, to: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(self.root.path().join(to), path).unwrap();
    }

    fn node(&self, name: &str, number: &str, directory: &str) {
        self.write(&format!("{directory}/dev"), &format!("{number}\n"));
        self.write(&format!("{directory}/stat"), "10 1 80 5 20 2 160 7 0 9 12\n");
        self.link(&format!("sys/class/block/{name}"), directory);
        self.link(&format!("sys/dev/block/{number}"), directory);
        self.write(&format!("dev/{name}"), "");
    }

    pub(crate) fn disk(&self, name: &str, number: &str, sectors: u64, schedulers: Option<&str>) {
        let directory = format!("sys/devices/{name}");
        self.node(name, number, &directory);
        self.link(&format!("sys/block/{name}"), &directory);
        self.write(&format!("{directory}/size"), &format!("{sectors}\n"));
        for (attribute, text) in [
            ("logical_block_size", "512"),
            ("physical_block_size", "4096"),
            ("nr_requests", "256"),
            ("read_ahead_kb", "128"),
            ("rotational", "0"),
            ("wbt_lat_usec", "2000"),
            ("write_cache", "write back"),
            ("brand_new", "17"),
        ] {
            self.write(&format!("{directory}/queue/{attribute}"), &format!("{text}\n"));
        }
        if let Some(schedulers) = schedulers {
            self.write(&format!("{directory}/queue/scheduler"), schedulers);
        }
        for (tunable, text) in [("fifo_batch", "16"), ("read_expire", "500")] {
            self.write(&format!("{directory}/queue/iosched/{tunable}"), &format!("{text}\n"));
        }
    }

    pub(crate) fn partition(&self, disk: &str, name: &str, number: &str) {
        let directory = format!("sys/devices/{disk}/{name}");
        self.node(name, number, &directory);
        self.write(&format!("{directory}/partition"), "1\n");
        self.write(&format!("{directory}/size"), "2048\n");
    }
}
