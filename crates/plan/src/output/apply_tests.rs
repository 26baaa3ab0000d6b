//! Tests of setting a plan, with the files of an imitated machine.

use std::fs;

use iosched_kernel::Roots;
use iosched_kernel::settings::{RestoreOptions, undo};

use super::super::installed_tests::plan;
use super::*;

/// A machine with the disk `sdb` and the cgroups `system.slice/db.service` and `backup.slice`.
struct Machine {
    root: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        for (path, text) in [
            ("sys/devices/sdb/dev", "8:16\n"),
            ("sys/devices/sdb/size", "8192\n"),
            ("sys/devices/sdb/queue/scheduler", "[none] mq-deadline bfq\n"),
            ("sys/devices/sdb/queue/nr_requests", "64\n"),
            ("sys/devices/sdb/queue/nomerges", "0\n"),
            ("dev/sdb", ""),
            ("proc/sys/kernel/random/boot_id", "1\n"),
            ("sys/fs/cgroup/cgroup.controllers", "io\n"),
            ("sys/fs/cgroup/io.cost.qos", ""),
            ("sys/fs/cgroup/io.cost.model", ""),
        ] {
            machine.write(path, text);
        }
        for group in ["system.slice", "system.slice/db.service", "backup.slice"] {
            machine.write(&format!("sys/fs/cgroup/{group}/cgroup.controllers"), "io\n");
            for (file, text) in [("io.max", ""), ("io.weight", "default 100\n"), ("io.prio.class", "no-change\n")] {
                machine.write(&format!("sys/fs/cgroup/{group}/{file}"), text);
            }
        }
        for (link, to) in [
            ("sys/block/sdb", "sys/devices/sdb"),
            ("sys/class/block/sdb", "sys/devices/sdb"),
            ("sys/dev/block/8:16", "sys/devices/sdb"),
        ] {
            let path = machine.root.path().join(link);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(machine.root.path().join(to), path).unwrap();
        }
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap().trim().to_owned()
    }

    fn device(&self) -> BlockDevice {
        BlockDevice::named(&Roots::at(self.root.path()), "sdb").unwrap()
    }

    fn state(&self) -> StateDirectory {
        StateDirectory::at(&self.root.path().join("state"))
    }

    fn apply(&self, plan: &Plan, force: bool) -> Result<Applied, ApplyError> {
        apply(&ApplyRequest { plan, device: &self.device(), state: &self.state(), force })
    }
}

const DB: &str = "sys/fs/cgroup/system.slice/db.service";

fn a_plan() -> Plan {
    plan(
        "none:nomerges=2,io.max=backup:wbps=1000,io.prio.class=db:promote-to-rt",
        &[("db", "db.service", Some("be/0")), ("backup", "backup.slice", None)],
    )
}

#[test]
fn plan_is_applied_and_undone() {
    let machine = Machine::new();
    let applied = machine.apply(&a_plan(), false).unwrap();
    assert_eq!(machine.read(&format!("{DB}/io.prio.class")), "promote-to-rt");
    assert_eq!(machine.read("sys/fs/cgroup/backup.slice/io.max"), "8:16 wbps=1000");
    assert_eq!(machine.read("sys/devices/sdb/queue/nomerges"), "2");
    assert!(applied.undo.iter().any(|(name, _)| name == "nomerges"), "{:?}", applied.undo);
    assert!(applied.notes[0].text.contains("ionice -c 2 -n 0 -p"), "{:?}", applied.notes);
    // Setting the same plan again changes nothing, because its own values do not count as foreign.
    machine.apply(&a_plan(), false).unwrap();
    let other = plan("none:nomerges=1,io.max=backup:wbps=2000", &[("backup", "backup.slice", None)]);
    machine.apply(&other, false).unwrap();
    let device = machine.device();
    undo(device.roots(), &machine.state(), "sdb", RestoreOptions::default()).unwrap();
    assert_eq!(machine.read("sys/devices/sdb/queue/nomerges"), "0");
    assert_eq!(machine.read(&format!("{DB}/io.prio.class")), "no-change");
}

#[test]
fn values_of_other_programs_are_kept_unless_forced() {
    let machine = Machine::new();
    machine.write("sys/fs/cgroup/backup.slice/io.max", "8:16 rbps=max wbps=7 riops=max wiops=max\n");
    machine.write("sys/fs/cgroup/io.cost.qos", "8:16 enable=0 ctrl=auto rpct=0.00\n");
    machine.write(&format!("{DB}/io.max"), "8:16 rbps=9 wbps=max riops=max wiops=max\n");
    let error = machine.apply(&a_plan(), false).unwrap_err().to_string();
    assert!(error.contains("cgroup/backup.slice/io.max is \"rbps=max wbps=7"), "{error}");
    assert!(!error.contains("db.service"), "the plan does not set it: {error}");
    assert_eq!(machine.read("sys/devices/sdb/queue/nomerges"), "0", "nothing was changed");
    machine.apply(&a_plan(), true).unwrap();
    assert_eq!(machine.read("sys/fs/cgroup/backup.slice/io.max"), "8:16 wbps=1000");
}

#[test]
fn units_without_a_cgroup_are_refused() {
    let machine = Machine::new();
    for (target, words) in [
        ("web.service", "there is no cgroup web.service"),
        ("container:web", "--write containers"),
        ("kubernetes:guaranteed", "--write kubernetes"),
    ] {
        let plan = plan("none:nomerges=2,io.max=web:wbps=1000", &[("web", target, None)]);
        let error = machine.apply(&plan, false).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert_eq!(machine.read("sys/devices/sdb/queue/nomerges"), "0");
    }
}

#[test]
fn a_refused_value_restores_all_values() {
    let machine = Machine::new();
    // This cgroup has no such file.
    fs::remove_file(machine.root.path().join("sys/fs/cgroup/backup.slice/io.max")).unwrap();
    machine.apply(&a_plan(), false).unwrap_err();
    assert_eq!(machine.read("sys/devices/sdb/queue/nomerges"), "0");
    assert_eq!(machine.read(&format!("{DB}/io.prio.class")), "no-change");
}
