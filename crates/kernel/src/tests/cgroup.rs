//! Tests of settings of cgroups for disks, on a recorded machine.

use super::*;
use crate::recorded::Recorded as Machine;

const TREE: &str = "sys/fs/cgroup";

/// Returns a machine with the cgroups `db` and `batch.slice/backup`, all with an io controller.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.write(&format!("{TREE}/cgroup.subtree_control"), "cpu io memory\n");
    machine.write(&format!("{TREE}/io.cost.qos"), "");
    machine.write(&format!("{TREE}/io.cost.model"), "");
    for group in ["db", "batch.slice", "batch.slice/backup"] {
        machine.write(&format!("{TREE}/{group}/cgroup.controllers"), "cpu io memory\n");
        machine.write(&format!("{TREE}/{group}/cgroup.subtree_control"), "io\n");
        for (file, text) in [("io.max", ""), ("io.latency", ""), ("io.weight", "default 100\n")] {
            machine.write(&format!("{TREE}/{group}/{file}"), text);
        }
        machine.write(&format!("{TREE}/{group}/io.prio.class"), "no-change\n");
    }
    machine
}

fn message<T: std::fmt::Debug>(result: Result<T, AttributeError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn cgroup_file_is_read_for_the_named_disk() {
    let machine = machine();
    machine.write(
        &format!("{TREE}/batch.slice/backup/io.max"),
        "8:16 rbps=max wbps=7 riops=max wiops=max\n8:0 rbps=max wbps=max riops=max wiops=120\n",
    );
    machine.write(&format!("{TREE}/db/io.weight"), "default 300\n8:16 800\n");
    let read = |disk: &str, name: &str| machine.device(disk).attribute(name).unwrap().value;
    assert_eq!(read("sda", "cgroup/batch.slice/backup/io.max"), "rbps=max wbps=max riops=max wiops=120");
    assert_eq!(read("sda1", "cgroup/batch.slice/backup/io.max"), "rbps=max wbps=max riops=max wiops=120");
    assert_eq!(read("sdc", "cgroup/batch.slice/backup/io.max"), "rbps=max wbps=max riops=max wiops=max");
    assert_eq!(
        (read("sdb", "cgroup/db/io.weight"), read("sda", "cgroup/db/io.weight")),
        ("800".into(), "default 300".into())
    );
    assert_eq!(read("sda", "cgroup/db/io.latency"), "target=0");
    assert_eq!(read("sda", "cgroup/io.cost.qos"), "enable=0 ctrl=auto");
    let all = Controls::of(&machine.roots());
    let on = |disk: &str| all.on(machine.device(disk).number()).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(on("sdb"), ["cgroup/batch.slice/backup/io.max", "cgroup/db/io.weight"]);
    assert_eq!(on("sdc"), ["cgroup/db/io.weight"], "a disk that no file names has the default weights");
}

#[test]
fn cgroup_lines_have_the_device_number() {
    let machine = machine();
    let sda = machine.device("sda");
    let set = |name: &str, value: &str, file: &str, line: &str, reads: &str| {
        assert_eq!(sda.set_attribute(name, value).unwrap(), reads);
        assert_eq!(machine.read(&format!("{TREE}/{file}")), line);
    };
    set("cgroup/db/io.max", "wbps=1000/wiops=7", "db/io.max", "8:0 wbps=1000 wiops=7", "wbps=1000 wiops=7");
    set("cgroup/db/io.weight", "800", "db/io.weight", "8:0 800", "800");
    set("cgroup/db/io.latency", "target=2000", "db/io.latency", "8:0 target=2000", "target=2000");
    set("cgroup/db/io.prio.class", "idle", "db/io.prio.class", "idle", "idle");
    set("cgroup/io.cost.qos", "enable=1 rpct=95", "io.cost.qos", "8:0 enable=1 rpct=95", "enable=1 rpct=95");
}

#[test]
fn cgroup_values_in_another_notation_are_equal() {
    let file = |name: &str| files().iter().find(|file| file.name == name).unwrap();
    for (name, read, written, same) in [
        ("io.max", "rbps=max wbps=1000 riops=max wiops=max", "wbps=1000", true),
        ("io.max", "rbps=max wbps=1000 riops=max wiops=max", "wbps=1000/riops=5", false),
        ("io.latency", "target=0", "target=max", true),
        ("io.weight", "default 100", "default", true),
        ("io.weight", "200", "default", false),
        ("io.cost.qos", "enable=1 ctrl=user rpct=95.00 rlat=2000 min=1.00", "enable=1 rpct=95/rlat=0x7d0", true),
        ("io.cost.qos", "enable=1 ctrl=auto rpct=0.00", "ctrl=user", false),
    ] {
        assert_eq!(file(name).is_same(read, written), same, "{name} {read} {written}");
    }
    for (name, value, kept) in [
        ("io.weight", "default 100", "default"),
        ("io.weight", "250", "250"),
        ("io.cost.qos", "enable=1 ctrl=auto rpct=0.00 rlat=25000", "enable=1 ctrl=auto"),
        ("io.cost.qos", "enable=1 ctrl=user rpct=95.00 rlat=2000", "enable=1 ctrl=user rpct=95.00 rlat=2000"),
        ("io.cost.model", "ctrl=auto model=linear rbps=1", "ctrl=auto"),
    ] {
        assert_eq!(file(name).settable(value), kept);
    }
}

#[test]
fn errors_of_wrong_cgroup_values_name_valid_ones() {
    let machine = machine();
    let sda = machine.device("sda");
    let set = |name: &str, value: &str| message(sda.set_attribute(name, value));
    assert_eq!(
        set("cgroup/db/io.max", "max=2"),
        "sda: io.max: \"max=2\" is not a valid value; write any of rbps=N, wbps=N, riops=N and wiops=N, where N is 2 \
         or more, or max"
    );
    for (name, value) in [
        ("cgroup/db/io.weight", "0"),
        ("cgroup/db/io.weight", "10001"),
        ("cgroup/db/io.max", "wbps=1+db:wbps=2"),
        ("cgroup/db/io.latency", ""),
        ("cgroup/db/io.prio.class", "fast"),
        ("cgroup/io.cost.qos", "enable=1 min=150 max=50"),
    ] {
        assert!(set(name, value).contains("is not a valid value; write "), "{name} {value}");
    }
    assert_eq!(machine.read(&format!("{TREE}/db/io.max")), "", "nothing was written");
    let of = |name: &str| message(sda.attribute(name));
    assert_eq!(of("cgroup/dbx/io.max"), "there is no cgroup \"dbx\"; the root has batch.slice, db");
    assert_eq!(of("cgroup/batch.slice/back/io.max"), "there is no cgroup \"batch.slice/back\"; batch.slice has backup");
    assert!(of("cgroup/../../block/io.max").starts_with("there is no cgroup"), "a path cannot leave the tree");
    assert!(of("cgroup/db/io.maxx").starts_with("io.maxx: cgroups have no such file; the files are io.max, "));
    assert_eq!(of("cgroup/db/io.cost.qos"), "only the root cgroup has io.cost.qos; use the name cgroup/io.cost.qos");
    assert_eq!(
        of("cgroup/io.max"),
        "the root cgroup has no io.max; name a cgroup, for example cgroup/batch.slice/io.max"
    );
    assert_eq!(
        of("cgroup/db/io.bfq.weight"),
        "cgroup db: the cgroup has no io.bfq.weight: load the scheduler with modprobe bfq"
    );
}

#[test]
fn error_of_a_missing_controller_says_how_to_enable_it() {
    let machine = machine();
    let of = |name: &str| message(machine.device("sda").attribute(name));
    machine.write(&format!("{TREE}/app/cgroup.controllers"), "cpu\n");
    machine.write(&format!("{TREE}/app/cgroup.subtree_control"), "\n");
    machine.write(&format!("{TREE}/app/web/cgroup.controllers"), "\n");
    machine.write(&format!("{TREE}/cgroup.subtree_control"), "cpu\n");
    let root = machine.path().join(TREE);
    let control = |group: &str| root.join(group).join("cgroup.subtree_control").display().to_string();
    assert_eq!(
        of("cgroup/app/io.max"),
        format!(
            "cgroup app: the cgroup has no io.max, because the io controller is not enabled for this cgroup; to \
             enable the controller, run: echo +io > {}",
            control("")
        )
    );
    assert!(of("cgroup/app/web/io.max").ends_with(&format!("echo +io | tee {} {}", control(""), control("app"))));
    machine.write(&format!("{TREE}/cgroup.controllers"), "cpu memory\n");
    assert!(
        of("cgroup/db/io.max").contains("have no io controller (they have: cpu memory)"),
        "{}",
        of("cgroup/db/io.max")
    );
    machine.write(&format!("{TREE}/blkio/tasks"), "");
    assert!(of("cgroup/db/io.max").contains("cgroups of version 1 use this controller, under the name blkio"));
    fs::remove_file(root.join("cgroup.controllers")).unwrap();
    assert!(of("cgroup/db/io.max").starts_with("this machine has no cgroups of version 2, but cgroups of version 1"));
    fs::remove_dir_all(&root).unwrap();
    assert!(of("cgroup/db/io.max").contains("mount -t cgroup2 none /sys/fs/cgroup"));
    assert_eq!(Controls::of(&machine.roots()), Controls::default());
}
