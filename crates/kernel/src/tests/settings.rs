//! Tests of sessions and of the state after them, on a recorded machine.

use super::*;
use crate::recorded::Recorded as Machine;
use crate::settings::Session;
use iosched::Setting;

fn state(machine: &Machine) -> StateDirectory {
    StateDirectory::at(&machine.path().join("state"))
}

fn setting(text: &str) -> Setting {
    Setting::parse_of_kernel(text).unwrap()
}

/// Simulates a session that was killed after it applied `text`.
fn killed(machine: &Machine, device: &str, text: &str) {
    let mut session = Session::begin(&machine.device(device), &state(machine)).unwrap();
    session.apply(&setting(text)).unwrap();
    let journal = state(machine).path().join("settings").join(device);
    let kept = std::fs::read(&journal).unwrap();
    let queue: Vec<_> = ["nr_requests", "scheduler", "iosched/fifo_batch"]
        .map(|name| format!("sys/devices/{device}/queue/{name}"))
        .map(|path| (machine.read(&path), path))
        .into();
    drop(session);
    std::fs::write(&journal, kept).unwrap();
    queue.iter().for_each(|(value, path)| machine.write(path, value));
}

#[test]
fn session_restores_everything_on_end_and_on_drop() {
    let machine = Machine::new();
    let sda = machine.device("sda1");
    for by_drop in [false, true] {
        let mut session = Session::begin(&sda, &state(&machine)).unwrap();
        assert_eq!(session.device().name(), "sda");
        session.apply(&setting("present:nr_requests=7,fifo_batch=3")).unwrap();
        assert_eq!(machine.read("sys/devices/sda/queue/nr_requests"), "7");
        session.apply(&setting("present:fifo_batch=4")).unwrap();
        assert_eq!(
            machine.read("sys/devices/sda/queue/nr_requests"),
            "256",
            "a setting leaves other attributes unchanged"
        );
        if by_drop {
            drop(session);
        } else {
            assert_eq!(session.end().unwrap().changes.len(), 1);
        }
        assert_eq!(machine.read("sys/devices/sda/queue/iosched/fifo_batch"), "16");
        assert!(left_over(&state(&machine)).is_empty());
    }
}

#[test]
fn device_has_one_session_at_a_time() {
    let machine = Machine::new();
    let session = Session::begin(&machine.device("sda"), &state(&machine)).unwrap();
    let refused = Session::begin(&machine.device("sda2"), &state(&machine)).unwrap_err();
    assert!(matches!(refused, SettingsError::Busy { pid, .. } if pid == std::process::id()), "{refused}");
    let kept =
        restore(&machine.roots(), &state(&machine), "sda", RestoreOptions { force: true, ..RestoreOptions::default() })
            .unwrap();
    assert!(matches!(kept, Restoration::Kept { reason: LeftAlone::InUse { .. } }));
    assert!(Session::begin(&machine.device("sdb"), &state(&machine)).is_ok());
    drop(session);
    assert!(Session::begin(&machine.device("sda"), &state(&machine)).is_ok());
}

#[test]
fn restore_undoes_a_killed_session() {
    let machine = Machine::new();
    killed(&machine, "sdc", "present:nr_requests=9,fifo_batch=1");
    let refused = Session::begin(&machine.device("sdc"), &state(&machine)).unwrap_err().to_string();
    assert!(refused.ends_with("first run: iosched restore sdc"), "{refused}");
    let would = restore(
        &machine.roots(),
        &state(&machine),
        "sdc",
        RestoreOptions { dry_run: true, ..RestoreOptions::default() },
    )
    .unwrap();
    assert_eq!(machine.read("sys/devices/sdc/queue/nr_requests"), "9");
    let did = restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions::default()).unwrap();
    assert_eq!(did, would);
    assert!(matches!(&did, Restoration::PutBack(done) if done.changes.len() == 2), "{did:?}");
    assert_eq!(machine.read("sys/devices/sdc/queue/nr_requests"), "256");
    assert_eq!(
        restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions::default()).unwrap(),
        Restoration::Nothing
    );
}

#[test]
fn restore_after_a_reboot_reports_changes_and_needs_force() {
    let machine = Machine::new();
    killed(&machine, "sdc", "present:nr_requests=9");
    machine.write("proc/sys/kernel/random/boot_id", "another\n");
    let found = restore(
        &machine.roots(),
        &state(&machine),
        "sdc",
        RestoreOptions { dry_run: true, ..RestoreOptions::default() },
    )
    .unwrap();
    assert!(matches!(&found, Restoration::Rebooted { changes } if changes[0].to_string() == "nr_requests 9 -> 256"));
    let forced =
        restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions { force: true, ..RestoreOptions::default() })
            .unwrap();
    assert!(matches!(forced, Restoration::PutBack(_)));
    assert_eq!(machine.read("sys/devices/sdc/queue/nr_requests"), "256");
}

#[test]
fn device_with_another_diskseq_is_left_alone() {
    let machine = Machine::new();
    for (file, text) in [("size", "1\n"), ("diskseq", "12\n")] {
        machine.write("sys/devices/sdc/diskseq", "3\n");
        killed(&machine, "sdc", "present:nr_requests=9");
        machine.write(&format!("sys/devices/sdc/{file}"), text);
        let found = restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions::default()).unwrap();
        let is_another = matches!(found, Restoration::Kept { reason: LeftAlone::Another { .. } });
        assert_eq!(is_another, file == "diskseq", "only a new diskseq means another disk: {found:?}");
        restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions { force: true, ..RestoreOptions::default() })
            .unwrap();
        assert_eq!(machine.read("sys/devices/sdc/queue/nr_requests"), "256");
    }
}

#[test]
fn journal_of_another_device_is_forgotten_on_request() {
    let machine = Machine::new();
    machine.write("sys/devices/sdc/diskseq", "3\n");
    killed(&machine, "sdc", "present:nr_requests=9");
    machine.write("sys/devices/sdc/diskseq", "4\n");
    for dry_run in [true, false] {
        let options = RestoreOptions { dry_run, forget: true, ..RestoreOptions::default() };
        assert_eq!(restore(&machine.roots(), &state(&machine), "sdc", options).unwrap(), Restoration::Forgotten);
        assert_eq!(left_over(&state(&machine)).is_empty(), !dry_run);
        assert_eq!(machine.read("sys/devices/sdc/queue/nr_requests"), "9");
    }
}

#[test]
fn missing_device_is_forgotten_on_request_or_after_reboot() {
    let machine = Machine::new();
    for reboots in [false, true] {
        killed(&machine, "sdd", "present:nr_requests=9");
        let link = machine.path().join("sys/class/block/sdd");
        let to = std::fs::read_link(&link).unwrap();
        std::fs::remove_file(&link).unwrap();
        let options = if reboots {
            machine.write("proc/sys/kernel/random/boot_id", "another\n");
            RestoreOptions::default()
        } else {
            let found = restore(&machine.roots(), &state(&machine), "sdd", RestoreOptions::default()).unwrap();
            assert_eq!(found, Restoration::Kept { reason: LeftAlone::Gone });
            RestoreOptions { force: true, ..RestoreOptions::default() }
        };
        assert_eq!(restore(&machine.roots(), &state(&machine), "sdd", options).unwrap(), Restoration::Forgotten);
        std::os::unix::fs::symlink(to, link).unwrap();
    }
}

#[test]
fn damaged_journal_is_reported_and_kept() {
    let machine = Machine::new();
    killed(&machine, "sdc", "present:nr_requests=9");
    let journal = state(&machine).path().join("settings/sdc");
    let whole = std::fs::read_to_string(&journal).unwrap();
    for text in ["{", "[]", &whole.replace("\"version\": 1", "\"version\": 99"), &whole[..whole.len() / 4]] {
        std::fs::write(&journal, text).unwrap();
        let found = restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions::default()).unwrap();
        assert!(matches!(found, Restoration::Kept { reason: LeftAlone::Damaged { .. } }), "{found:?}");
    }
    std::fs::write(&journal, "").unwrap();
    let found = restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions::default()).unwrap();
    assert_eq!(found, Restoration::Nothing);
    assert!(left_over(&state(&machine)).is_empty());
}

#[test]
fn error_of_a_device_without_scheduler_names_one_below() {
    let machine = Machine::new();
    let refused = Session::begin(&machine.device("dm-0"), &state(&machine)).unwrap_err().to_string();
    assert_eq!(refused, "dm-0: this device has no scheduler; the devices below have one: sda");
    assert!(left_over(&state(&machine)).is_empty());
}

/// Returns a machine with a cgroup that has an io controller.
fn with_cgroup() -> Machine {
    let machine = Machine::new();
    machine.write("sys/fs/cgroup/cgroup.subtree_control", "io\n");
    machine.write("sys/fs/cgroup/io.cost.qos", "");
    machine.write("sys/fs/cgroup/db/cgroup.controllers", "io\n");
    machine.write("sys/fs/cgroup/db/io.max", "8:32 rbps=max wbps=5 riops=max wiops=max\n");
    machine.write("sys/fs/cgroup/db/io.weight", "default 100\n");
    machine
}

#[test]
fn session_restores_cgroup_files_that_it_changed() {
    let machine = with_cgroup();
    let mut session = Session::begin(&machine.device("sdc"), &state(&machine)).unwrap();
    session.change("cgroup/db/io.max", "wbps=1000").unwrap();
    session.change("cgroup/db/io.weight", "700").unwrap();
    session.apply(&setting("present:io.cost.qos=enable=1,io.max=backup:wbps=7")).unwrap();
    assert_eq!(machine.read("sys/fs/cgroup/io.cost.qos"), "8:32 enable=1");
    let max = "8:32 rbps=max wbps=5 riops=max wiops=max";
    assert_eq!(machine.read("sys/fs/cgroup/db/io.max"), max, "the next setting restores a file that it does not name");
    session.change("cgroup/db/io.max", "wbps=2000").unwrap();
    let done: Vec<_> = session.end().unwrap().changes.iter().map(Change::to_string).collect();
    assert_eq!(done.len(), 2, "{done:?}");
    assert_eq!(machine.read("sys/fs/cgroup/db/io.max"), max);
    assert_eq!(machine.read("sys/fs/cgroup/db/io.weight"), "8:32 default");
    assert_eq!(machine.read("sys/fs/cgroup/io.cost.qos"), "8:32 enable=0 ctrl=auto");
}

#[test]
fn restore_undoes_cgroup_changes_or_reports_them_gone() {
    for removed in [false, true] {
        let machine = with_cgroup();
        let mut session = Session::begin(&machine.device("sdc"), &state(&machine)).unwrap();
        session.change("cgroup/db/io.max", "wbps=1000").unwrap();
        session.change("nr_requests", "9").unwrap();
        let journal = state(&machine).path().join("settings/sdc");
        let kept = std::fs::read(&journal).unwrap();
        drop(session);
        std::fs::write(&journal, kept).unwrap();
        machine.write("sys/fs/cgroup/db/io.max", "8:32 wbps=1000\n");
        if removed {
            std::fs::remove_dir_all(machine.path().join("sys/fs/cgroup/db")).unwrap();
        }
        let would = RestoreOptions { dry_run: true, ..RestoreOptions::default() };
        let would = restore(&machine.roots(), &state(&machine), "sdc", would).unwrap();
        let did = restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions::default()).unwrap();
        assert_eq!(did, would);
        let Restoration::PutBack(PutBack { changes, .. }) = did else { panic!("{did:?}") };
        let texts: Vec<_> = changes.iter().map(Change::to_string).collect();
        if removed {
            assert_eq!(texts, ["cgroup/db/io.max no longer exists, because its cgroup was removed"]);
        } else {
            assert_eq!(texts, ["cgroup/db/io.max wbps=1000 -> rbps=max wbps=5 riops=max wiops=max"]);
            assert_eq!(machine.read("sys/fs/cgroup/db/io.max"), "8:32 rbps=max wbps=5 riops=max wiops=max");
        }
        assert!(left_over(&state(&machine)).is_empty());
    }
}

#[test]
fn session_end_keeps_changes_by_other_programs() {
    let machine = Machine::new();
    let mut session = Session::begin(&machine.device("sda"), &state(&machine)).unwrap();
    session.apply(&setting("present:nr_requests=7,fifo_batch=3")).unwrap();
    assert_eq!(session.foreign(), []);
    machine.write("sys/devices/sda/queue/nr_requests", "9\n");
    machine.write("sys/devices/sda/queue/write_cache", "write through\n");
    let texts: Vec<_> = session.foreign().iter().map(Change::of_others).collect();
    assert_eq!(texts, ["nr_requests from 7 to 9", "write_cache from write back to write through"]);
    let PutBack { changes, left } = session.end().unwrap();
    assert_eq!(changes.iter().map(Change::to_string).collect::<Vec<_>>(), ["iosched/fifo_batch 3 -> 16"]);
    assert_eq!(
        left.iter().map(|change| (change.name.as_str(), change.to.as_str())).collect::<Vec<_>>(),
        [("nr_requests", "256"), ("write_cache", "write back")]
    );
    assert_eq!(machine.read("sys/devices/sda/queue/nr_requests"), "9");
    assert_eq!(machine.read("sys/devices/sda/queue/write_cache"), "write through");
}

#[test]
fn values_set_with_a_foreign_scheduler_are_kept() {
    let machine = Machine::new();
    let mut session = Session::begin(&machine.device("sda"), &state(&machine)).unwrap();
    session.apply(&setting("present:nr_requests=64")).unwrap();
    // The kernel had set `nr_requests` to 64 for the scheduler that the other program chose.
    machine.write("sys/devices/sda/queue/scheduler", "none mq-deadline [kyber] bfq\n");
    let PutBack { left, .. } = session.end().unwrap();
    assert_eq!(left.iter().map(Change::to_string).collect::<Vec<_>>(), ["scheduler kyber -> mq-deadline"]);
    assert_eq!(machine.read("sys/devices/sda/queue/nr_requests"), "64");
}

#[test]
fn next_setting_undoes_changes_by_other_programs() {
    let machine = Machine::new();
    let mut session = Session::begin(&machine.device("sda"), &state(&machine)).unwrap();
    session.apply(&setting("present:fifo_batch=3")).unwrap();
    machine.write("sys/devices/sda/queue/nr_requests", "9\n");
    session.apply(&setting("present:fifo_batch=4")).unwrap();
    assert_eq!(
        machine.read("sys/devices/sda/queue/nr_requests"),
        "256",
        "every setting starts from the same attributes"
    );
    assert_eq!(session.foreign(), []);
    let PutBack { left, .. } = session.end().unwrap();
    assert_eq!(left.iter().map(Change::to_string).collect::<Vec<_>>(), ["nr_requests 9 -> 256"]);
    assert_eq!(
        machine.read("sys/devices/sda/queue/nr_requests"),
        "9",
        "the end of the session restores the value of the other program"
    );
}

#[test]
fn restore_keeps_changes_by_other_programs_unless_forced() {
    let machine = Machine::new();
    for force in [false, true] {
        killed(&machine, "sdc", "present:nr_requests=9,fifo_batch=1");
        machine.write("sys/devices/sdc/queue/nr_requests", "11\n");
        let options = RestoreOptions { force, ..RestoreOptions::default() };
        let done = restore(&machine.roots(), &state(&machine), "sdc", options).unwrap();
        let Restoration::PutBack(PutBack { changes, left }) = done else { panic!("{done:?}") };
        assert_eq!((changes.len(), left.len()), if force { (2, 0) } else { (1, 1) });
        assert_eq!(machine.read("sys/devices/sdc/queue/nr_requests"), if force { "256" } else { "11" });
        assert_eq!(machine.read("sys/devices/sdc/queue/iosched/fifo_batch"), "16");
        machine.write("sys/devices/sdc/queue/nr_requests", "256\n");
    }
}

#[test]
fn session_killed_while_applying_is_fully_restored() {
    let machine = Machine::new();
    killed(&machine, "sdc", "present:nr_requests=9");
    let journal = state(&machine).path().join("settings/sdc");
    // While a setting is applied, the journal contains only the first value.
    let text = std::fs::read_to_string(&journal).unwrap();
    let end = text.find("\n}\n").unwrap() + 3;
    assert!(end < text.len());
    std::fs::write(&journal, &text[..end]).unwrap();
    machine.write("sys/devices/sdc/queue/nr_requests", "8\n");
    let done = restore(&machine.roots(), &state(&machine), "sdc", RestoreOptions::default()).unwrap();
    assert!(matches!(&done, Restoration::PutBack(done) if done.changes.len() == 1 && done.left.is_empty()), "{done:?}");
    assert_eq!(machine.read("sys/devices/sdc/queue/nr_requests"), "256");
}
