//! Tests of writing and removing files.

use super::super::installed_tests::{place, plan};
use super::super::{Form, output};
use super::*;

const DROP_IN: &str = "etc/systemd/system/db.service.d/50-iosched.conf";
const MODULES: &str = "etc/modules-load.d/iosched-sdb.conf";
const RULE: &str = "etc/udev/rules.d/90-iosched-sdb.rules";

fn systemd(weight: u32) -> Output {
    let setting = format!("bfq:io.bfq.weight=db:{weight}");
    output(Form::Systemd, &plan(&setting, &[("db", "system.slice/db.service", None)]), &place()).unwrap()
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn unedited_files_of_iosched_are_replaced_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    assert_eq!(persist(&systemd(100), root, false).unwrap(), [MODULES, RULE, DROP_IN].map(|path| root.join(path)));
    persist(&systemd(200), root, false).unwrap();
    let text = fs::read_to_string(root.join(DROP_IN)).unwrap();
    assert!(text.contains("\nIOWeight=1200\n"), "{text}");
    assert_eq!(
        fs::read_dir(root.join("etc/systemd/system/db.service.d")).unwrap().count(),
        1,
        "no temporary file is left"
    );
    assert_eq!(unpersist(&systemd(200), root).unwrap().len(), 3);
    assert!(!root.join("etc/systemd/system/db.service.d").exists() && root.join("etc/udev/rules.d").exists());
    assert!(unpersist(&systemd(200), root).unwrap().is_empty());
}

#[test]
fn foreign_and_edited_files_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, RULE, "# mine\n");
    let error = persist(&systemd(100), root, true).unwrap_err().to_string();
    assert!(error.contains("iosched plan did not make it"), "{error}");
    assert!(!root.join(DROP_IN).exists(), "nothing is written");
    fs::remove_file(root.join(RULE)).unwrap();
    persist(&systemd(100), root, false).unwrap();
    let edited = fs::read_to_string(root.join(DROP_IN)).unwrap() + "IOWeight=7\n";
    fs::write(root.join(DROP_IN), &edited).unwrap();
    assert!(matches!(persist(&systemd(100), root, true), Err(PersistError::Edited { .. })));
    assert!(matches!(unpersist(&systemd(100), root), Err(PersistError::Edited { .. })));
    assert_eq!(fs::read_to_string(root.join(DROP_IN)).unwrap(), edited);
    assert!(root.join(RULE).exists());
    let link = root.join("link");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    assert!(look(&link).is_err(), "iosched does not own a dangling link");
}

#[test]
fn foreign_drop_ins_with_the_same_property_are_conflicts() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "etc/systemd/system/db.service.d/10-mine.conf", "[Service]\n# IOWeight=1\nIOWeight=300\nNice=5\n");
    write(root, "run/systemd/system.control/db.service.d/50-IOWeight.conf", "[Service]\nIOWeight=\n");
    write(root, "usr/lib/systemd/system/db.service", "[Service]\nIOWeight=9\n");
    let error = persist(&systemd(100), root, false).unwrap_err();
    let PersistError::Conflicts { conflicts } = &error else { panic!("{error}") };
    let found: Vec<_> = conflicts.iter().map(|found| (found.line, &*found.name)).collect();
    assert_eq!(found, [(3, "IOWeight")], "{error}");
    assert!(error.to_string().contains("10-mine.conf:3 sets IOWeight"), "{error}");
    persist(&systemd(100), root, true).unwrap();
}

#[test]
fn foreign_rules_for_the_same_disk_are_conflicts() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let path = "etc/udev/rules.d/60-io.rules";
    let rule = |condition: &str| format!("ACTION==\"add|change\", {condition}, ATTR{{queue/scheduler}}=\"kyber\"\n");
    for (condition, conflicts) in [
        ("KERNEL==\"sdb\"", true),
        ("KERNEL==\"sd[a-z]\"", true),
        ("KERNEL==\"sda\"", false),
        ("ATTR{queue/rotational}==\"1\"", true),
    ] {
        write(root, path, &rule(condition));
        assert_eq!(persist(&systemd(100), root, false).is_err(), conflicts, "{condition}");
        let _ = unpersist(&systemd(100), root);
    }
    write(root, path, "KERNEL==\"sdb\", ATTR{queue/scheduler}==\"kyber\", ATTR{queue/rq_affinity}=\"2\"\n");
    persist(&systemd(100), root, false).unwrap();
}

#[test]
fn files_without_a_fixed_place_need_a_directory() {
    let plan = plan("none:io.max=web:wbps=1000", &[("web", "container:web", None)]);
    let output = output(Form::Containers, &plan, &place()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let error = persist(&output, directory.path(), false).unwrap_err().to_string();
    assert!(error.contains("--write containers=DIR"), "{error}");
    let written = write_below(&output, directory.path()).unwrap();
    assert_eq!(written, ["web.options", "compose.iosched.yaml"].map(|name| directory.path().join(name)));
    write_below(&output, directory.path()).unwrap();
}

#[test]
fn failed_write_leaves_no_files() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    // A file has the path of the second directory, so the directory cannot be created.
    write(root, "etc/udev", "");
    assert!(matches!(persist(&systemd(100), root, false), Err(PersistError::Io { .. })));
    assert!(!root.join(MODULES).exists() && !root.join(DROP_IN).exists());
}
