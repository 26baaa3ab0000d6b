//! Tests of the running kernel's schedulers on loop devices, as root: switching, restoring,
//! refusing.

mod loops;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use iosched::Setting;
use iosched_kernel::attribute::AttributeError;
use iosched_kernel::block::Usage;
use iosched_kernel::settings::{self, Change, PutBack, Recorded, Restoration};
use iosched_kernel::{BlockDevice, Refusal, Roots, Session, SettingsError, StateDirectory, consent};
use iosched_testing::machine::{available, has_program, output};
use loops::Loop;

fn setting(text: &str) -> Setting {
    Setting::parse_of_kernel(text).unwrap()
}

fn values(device: &BlockDevice, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| device.attribute(name).unwrap().value).collect()
}

#[test]
fn tunables_of_every_scheduler_are_declared() {
    let Some(disk) = Loop::new() else { return };
    let mut session = Session::begin(&disk.device(), &disk.state()).unwrap();
    for scheduler in ["none", "mq-deadline", "kyber", "bfq", "bfq", "mq-deadline"] {
        if !disk.has(scheduler) {
            continue;
        }
        session.apply(&setting(scheduler)).unwrap();
        assert_eq!(disk.device().scheduler().as_deref(), Some(scheduler));
        let attributes = disk.device().attributes().unwrap();
        let tunables: Vec<_> = attributes.iter().filter(|attribute| attribute.is_tunable()).collect();
        assert_eq!(tunables.is_empty(), scheduler == "none", "{scheduler}");
        let unknown: Vec<_> = tunables.iter().filter(|tunable| tunable.declaration.is_none()).collect();
        assert!(unknown.is_empty(), "{scheduler}: {unknown:?}");
    }
}

#[test]
fn each_setting_starts_from_defaults() {
    let Some(disk) = Loop::new() else { return };
    if !disk.has("mq-deadline") || !disk.has("bfq") {
        return;
    }
    let device = disk.device();
    let mut session = Session::begin(&device, &disk.state()).unwrap();
    let of_deadline = ["nr_requests", "wbt_lat_usec", "fifo_batch", "read_ahead_kb"];
    session.apply(&setting("mq-deadline")).unwrap();
    let first = values(&device, &of_deadline);
    session.apply(&setting("bfq")).unwrap();
    let bfq = values(&device, &["nr_requests", "wbt_lat_usec", "low_latency"]);
    session.apply(&setting("mq-deadline:fifo_batch=1,nr_requests=32,wbt_lat_usec=1,read_ahead_kb=64")).unwrap();
    assert_eq!(values(&device, &of_deadline), ["32", "1", "1", "64"]);
    session.apply(&setting("mq-deadline")).unwrap();
    assert_eq!(values(&device, &of_deadline), first);
    session.apply(&setting("bfq:low_latency=0")).unwrap();
    session.apply(&setting("bfq")).unwrap();
    assert_eq!(values(&device, &["nr_requests", "wbt_lat_usec", "low_latency"]), bfq);
}

#[test]
fn session_restores_every_attribute_of_a_device() {
    let Some(disk) = Loop::new() else { return };
    if !disk.has("bfq") || !disk.has("mq-deadline") {
        return;
    }
    let device = disk.device();
    for (before, values) in [
        ("none", &[("nr_requests", "64")][..]),
        ("mq-deadline", &[("nr_requests", "512"), ("async_depth", "100"), ("read_expire", "125")]),
        ("bfq", &[("slice_idle_us", "500"), ("timeout_sync", "125"), ("max_budget", "5000"), ("nr_requests", "99")]),
    ] {
        device.set_attribute("scheduler", before).unwrap();
        values.iter().for_each(|(name, value)| drop(device.set_attribute(name, value).unwrap()));
        let recorded = Recorded::of(&device).unwrap();
        for applied in
            ["bfq:low_latency=0", "mq-deadline:nr_requests=16", "none", "present:nr_requests=20,wbt_lat_usec=0"]
        {
            let mut session = Session::begin(&device, &disk.state()).unwrap();
            session.apply(&setting(applied)).unwrap();
            drop(session);
            assert_eq!(Recorded::of(&device).unwrap(), recorded, "{before}, then {applied}");
            assert!(settings::left_over(&disk.state()).is_empty());
        }
    }
}

#[test]
fn refused_settings_give_specific_errors_and_are_undone() {
    let Some(disk) = Loop::new() else { return };
    let device = disk.device();
    let recorded = Recorded::of(&device).unwrap();
    let mut session = Session::begin(&device, &disk.state()).unwrap();
    let error = session.apply(&setting("bogus")).unwrap_err();
    assert!(matches!(&error, SettingsError::Missing { available, .. } if available.contains("none")), "{error}");
    let error = session.apply(&setting("none:fifo_batch=1")).unwrap_err();
    assert!(matches!(error, SettingsError::Attribute(AttributeError::Unknown { .. })), "{error}");
    let error = session.apply(&setting("none:nr_requests=1")).unwrap_err();
    assert!(matches!(error, SettingsError::Attribute(AttributeError::TookAnother { .. })), "{error}");
    session.end().unwrap();
    assert_eq!(Recorded::of(&device).unwrap(), recorded);
}

/// Environment variables for a second process of this program, which changes settings: the disk and
/// the state directory.
const KILLED_PROCESS: (&str, &str) = ("IOSCHED_TEST_DEVICE", "IOSCHED_TEST_STATE");

/// Changes settings of a disk, and waits until the process is killed or its standard input ends.
fn hold_settings(device: &OsStr, state: &OsStr) {
    let device = BlockDevice::find(&Roots::default(), Path::new(device)).unwrap();
    let mut session = Session::begin(&device, &StateDirectory::at(Path::new(state))).unwrap();
    session.apply(&setting("mq-deadline:fifo_batch=1,nr_requests=32")).unwrap();
    println!("applied");
    let _ = std::io::stdin().lines().count();
}

#[test]
fn settings_of_a_killed_process_are_put_back() {
    if let (Some(device), Some(state)) = (std::env::var_os(KILLED_PROCESS.0), std::env::var_os(KILLED_PROCESS.1)) {
        return hold_settings(&device, &state);
    }
    let Some(disk) = Loop::new() else { return };
    if !disk.has("mq-deadline") {
        return;
    }
    let (device, state) = (disk.device(), disk.state());
    let recorded = Recorded::of(&device).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "settings_of_a_killed_process_are_put_back", "--nocapture"])
        .env(KILLED_PROCESS.0, &disk.path)
        .env(KILLED_PROCESS.1, state.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = BufReader::new(child.stdout.take().unwrap());
    assert!(printed.lines().map_while(Result::ok).any(|line| line.contains("applied")));
    let busy = Session::begin(&device, &state).unwrap_err();
    assert!(matches!(busy, SettingsError::Busy { pid, .. } if pid == child.id()), "{busy}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(values(&device, &["scheduler", "fifo_batch", "nr_requests"]), ["mq-deadline", "1", "32"]);
    assert!(matches!(Session::begin(&device, &state), Err(SettingsError::LeftOver { .. })));
    let restored =
        settings::restore(&Roots::default(), &state, device.name(), settings::RestoreOptions::default()).unwrap();
    let Restoration::PutBack(PutBack { changes, .. }) = restored else { panic!("{restored:?}") };
    assert_eq!(changes.first().map(Change::to_string).as_deref(), Some("scheduler mq-deadline -> none"));
    assert_eq!(Recorded::of(&device).unwrap(), recorded);
    assert!(settings::left_over(&state).is_empty());
}

/// Returns the reason why `device` may not be written.
fn refusal(device: &BlockDevice) -> Refusal {
    consent::to_write(device, Some(&device.path())).unwrap_err()
}

#[test]
fn free_device_can_be_written_and_is_held_exclusively() {
    let Some(disk) = Loop::new() else { return };
    let device = disk.device();
    let given = consent::to_write(&device, Some(&disk.path)).unwrap();
    let mut file = given.open(fs::OpenOptions::new().read(true)).unwrap();
    std::io::Write::write_all(&mut file, &[1; 4096]).unwrap();
    let second = refusal(&device);
    assert!(matches!(second, Refusal::Held { .. }), "{second}");
    drop((given, file));
    assert!(consent::to_write(&device, Some(&disk.path)).is_ok());
}

#[test]
fn mounted_device_is_refused_and_found_by_its_mount() {
    let Some(disk) = Loop::new() else { return };
    if !has_program("mkfs.ext4") {
        return;
    }
    output(Command::new("mkfs.ext4").arg("-q").arg(&disk.path));
    let at = disk.here.path().join("a mount");
    fs::create_dir(&at).unwrap();
    output(Command::new("mount").arg(&disk.path).arg(&at));
    let (device, found) = (disk.device(), BlockDevice::find(&Roots::default(), &at.join("lost+found")));
    let refused = refusal(&device);
    output(Command::new("umount").arg(&at));
    assert_eq!(found.unwrap(), device);
    let Refusal::InUse { usage: Usage { mounts, .. }, .. } = refused else { panic!("{refused}") };
    assert_eq!(mounts[0].at, fs::canonicalize(&at).unwrap());
}

#[test]
fn swap_device_is_refused() {
    let Some(disk) = Loop::new() else { return };
    output(Command::new("mkswap").arg("-q").arg(&disk.path));
    let on = Command::new("swapon").arg(&disk.path).status();
    if !available(on.is_ok_and(|status| status.success()), "swap") {
        return;
    }
    let refused = refusal(&disk.device());
    output(Command::new("swapoff").arg(&disk.path));
    assert!(matches!(&refused, Refusal::InUse { usage, .. } if usage.swaps.len() == 1), "{refused}");
}

#[test]
fn device_below_another_device_is_refused() {
    let Some(disk) = Loop::new() else { return };
    let over = Command::new("losetup").args(["--find", "--show"]).arg(&disk.path).output().unwrap();
    if !available(over.status.success(), "a loop device over another") {
        return;
    }
    let refused = refusal(&disk.device());
    let over = PathBuf::from(String::from_utf8(over.stdout).unwrap().trim());
    let stack = BlockDevice::find(&Roots::default(), &over).unwrap().stack();
    output(Command::new("losetup").arg("--detach").arg(over));
    assert!(matches!(&refused, Refusal::InUse { usage, .. } if usage.holders.len() == 1), "{refused}");
    assert_eq!(stack.first(), Some(&disk.device()));
}

#[test]
fn the_disk_under_root_is_refused() {
    let roots = Roots::default();
    let root = BlockDevice::find(&roots, Path::new("/"));
    if !available(root.is_ok(), "a disk under /") {
        return;
    }
    for device in root.into_iter().flat_map(|root| root.stack().into_iter().chain([root])) {
        assert!(matches!(refusal(&device), Refusal::UnderRoot { .. }), "{device}");
    }
}
