//! Tests of the commands for the kernel's disks: list, read, set, restore.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::{IOSCHED, Loop, Mount, Running, answer, available, directory, has_program, image, is_root, wait_for};
use iosched::Setting;
use iosched_kernel::settings::Recorded;
use iosched_kernel::{BlockDevice, OwnDirectory, Roots, Session, StateDirectory};

/// Returns a loop device, if available.
#[track_caller]
fn disk(name: &str) -> Option<(PathBuf, Loop, BlockDevice)> {
    if !is_root() {
        return None;
    }
    let here = directory(name);
    let disk = Loop::new(&image(&here, "image", 16 << 20))?;
    let device = BlockDevice::find(&Roots::default(), &disk.device).unwrap();
    // An earlier user of the loop device may have left settings.
    device.set_attribute("scheduler", "none").unwrap();
    Some((here, disk, device))
}

/// Runs the command with a state directory of the tests, so that the changes do not appear in the
/// state directory of this machine.
fn run(args: &[&str]) -> (i32, String, String) {
    iosched(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernel-state"), args)
}

fn iosched(state: &Path, args: &[&str]) -> (i32, String, String) {
    answer(Command::new(IOSCHED).args(args).env("IOSCHED_STATE_DIR", state))
}

/// Runs `iosched restore` with this state directory.
fn restore(state: &Path, args: &[&str]) -> (i32, String, String) {
    iosched(state, &[&["restore"], args].concat())
}

#[test]
fn every_disk_is_listed() {
    let (code, out, _) = run(&["ls", "--all"]);
    assert_eq!(code, 0);
    let heads: Vec<_> =
        out.lines().next().unwrap().split("  ").map(str::trim).filter(|head| !head.is_empty()).collect();
    assert_eq!(heads, ["name", "size", "scheduler", "rotational", "depth", "made of", "mounted on"]);
    let listed: Vec<_> = out.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    let there: Vec<_> = fs::read_dir("/sys/block").unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(there.iter().all(|name| listed.contains(&name.to_str().unwrap())), "{out}");
    let (code, json, _) = run(&["ls", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, json.as_array().unwrap().len()), (0, there.len()));
}

#[test]
fn a_disk_is_listed_with_its_scheduler_its_depth_and_its_file() {
    let Some((here, _disk, device)) = disk("kernel-ls") else { return };
    let (_, out, _) = run(&["ls"]);
    let line = out.lines().find(|line| line.split(' ').next() == Some(device.name())).unwrap();
    let file = here.join("image");
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!((&words[1..4], words[5..].to_vec()), (&["16", "MiB", "none"][..], vec!["128", file.to_str().unwrap()]));
    let name = device.name();
    for of in [&["ls", "--at", &format!("/sys/block/{name}")][..], &["ls", name], &["ls", &format!("/dev/{name}")]] {
        let (code, json, _) = run(&[of, &["--json"]].concat());
        assert!(code == 0 && json.contains("\"size_bytes\": 16777216"), "{of:?}: {json}");
    }
}

#[test]
fn set_changes_a_disk_and_errors_name_valid_values() {
    let Some((_here, _disk, device)) = disk("kernel-set") else { return };
    let name = device.name();
    let of = |attribute: &str| format!("{name}/{attribute}");
    assert_eq!(run(&["set", &of("scheduler=mq-deadline"), &of("fifo_batch=4")]).0, 0);
    assert_eq!(run(&["get", "-n", &of("fifo_batch")]).1, "4\n");
    assert_eq!(run(&["set", name, "scheduler=mq-deadline", "fifo_batch=5"]).1, "scheduler=mq-deadline\nfifo_batch=5\n");
    assert_eq!(run(&["get", &format!("/dev/{name}"), "fifo_batch", "-n"]).1, "5\n");
    for (assignment, code, reason) in [
        ("nr_requests=0", 2, "nr_requests: 0 is out of range; it must be from 1 to 4294967295 requests"),
        ("write_cache=off", 2, "the value must be one of write back, write through"),
        ("scheduler=bogus", 2, "the kernel has no scheduler bogus for this device; it has none"),
        ("size=1", 1, "this attribute is read-only"),
        ("nothing=1", 2, "there is no such attribute"),
    ] {
        let (exit, _, err) = run(&["set", &of(assignment)]);
        assert!(exit == code && err.contains(reason), "{assignment}: {exit} {err}");
    }
}

#[test]
fn set_prints_changes_and_the_undo_command() {
    let Some((here, _disk, device)) = disk("kernel-undo") else { return };
    let (state, name) = (here.join("state"), device.name());
    let set = |words: &[&str]| {
        let (code, _, err) = iosched(&state, &[&["set"], words].concat());
        assert_eq!(code, 0, "{err}");
        err
    };
    let recorded = Recorded::of(&device).unwrap();
    let was = |attribute: &str| device.attribute(attribute).unwrap().value;
    let requests = was("nr_requests");
    let output = set(&[name, "scheduler=mq-deadline"]);
    assert!(output.starts_with(&format!("{name}: scheduler was none and is mq-deadline\n")), "{output}");
    let with_it = format!(
        "{name}: nr_requests was {requests} and is {}: the kernel also changed this attribute",
        was("nr_requests")
    );
    assert!(output.contains(&with_it), "{output}");
    let undo = format!("undo: iosched set {name} scheduler=none nr_requests={requests}");
    assert!(output.contains(&undo) && output.ends_with(&format!("or: iosched restore {name}\n")), "{output}");
    // The user can undo the next change alone, or together with all others.
    let output = set(&[name, "fifo_batch=4"]);
    assert!(output.contains(&format!("undo: iosched set {name} iosched/fifo_batch=16\n")), "{output}");
    assert!(output.contains("undoes all changes since the system started"), "{output}");
    let (code, out, _) = restore(&state, &[]);
    assert!(
        code == 0 && out.contains("changed this disk with iosched set. To undo these changes, run iosched restore"),
        "{out}"
    );
    assert_eq!(was("iosched/fifo_batch"), "4", "restore without a disk undid iosched set");
    let requests_with_it = was("nr_requests");
    let (code, out, err) = restore(&state, &[name]);
    assert!(code == 0 && out.contains("restored: scheduler mq-deadline -> none"), "{out}{err}");
    assert!(
        out.contains(&format!(", nr_requests {requests_with_it} -> {requests}")),
        "restore also undoes changes that the kernel made: {out}"
    );
    assert_eq!(Recorded::of(&device).unwrap(), recorded);
    assert_eq!(restore(&state, &[]).1, "nothing to restore\n");
    assert_eq!(set(&[name, "scheduler=none"]), "", "set prints nothing if nothing changes");
}

/// Returns the command in the message of `iosched set` that undoes the change.
fn undo_line(messages: &str) -> String {
    let line = messages.lines().find_map(|line| line.strip_prefix("undo: iosched "));
    line.unwrap_or_else(|| panic!("{messages}")).to_owned()
}

#[test]
fn undo_command_restores_every_tunable() {
    let Some((here, _disk, device)) = disk("kernel-undo-line") else { return };
    let (state, name) = (here.join("state"), device.name());
    for (before, values) in [
        ("none", "nr_requests=64"),
        ("mq-deadline", "fifo_batch=3 write_expire=700 nr_requests=64"),
        ("kyber", "read_lat_nsec=1000000"),
        ("bfq", "slice_idle_us=500 low_latency=0 timeout_sync=248"),
    ] {
        for after in ["none", "mq-deadline fifo_batch=9", "bfq slice_idle=0"] {
            let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
            let set = |scheduler: &str| {
                let all = [words("set"), words(name), words(&format!("scheduler={scheduler}"))].concat();
                iosched(&state, &all.iter().map(String::as_str).collect::<Vec<_>>())
            };
            // Setting another scheduler first resets the tunables.
            assert_eq!(set(if before == "none" { "bfq" } else { "none" }).0, 0);
            let (code, _, err) = set(&format!("{before} {values}"));
            assert_eq!(code, 0, "{before}: {err}");
            let recorded = Recorded::of(&device).unwrap();
            let (code, _, messages) = set(after);
            assert_eq!(code, 0, "{after}: {messages}");
            let line = undo_line(&messages);
            let command = format!("{IOSCHED} {line}");
            let done = Command::new("sh").args(["-c", &command]).env("IOSCHED_STATE_DIR", &state).output().unwrap();
            assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
            assert_eq!(Recorded::of(&device).unwrap(), recorded, "{before} to {after}: {line}");
        }
    }
    assert_eq!(restore(&state, &[name, "--force"]).0, 0);
    // `iosched set` reports a tunable that was set together with its scheduler.
    let (_, _, messages) = iosched(&state, &["set", name, "scheduler=mq-deadline", "fifo_batch=9"]);
    assert!(
        messages.contains(&format!(
            "{name}: iosched/fifo_batch is 9; the previous scheduler does not have this attribute\n"
        )),
        "{messages}"
    );
    assert_eq!(restore(&state, &[name]).0, 0);
}

#[test]
fn restore_keeps_values_that_another_program_set() {
    let Some((here, _disk, device)) = disk("kernel-foreign") else { return };
    let (state, name) = (here.join("state"), device.name());
    let was = |attribute: &str| device.attribute(attribute).unwrap().value;
    let before = was("read_ahead_kb");
    assert_eq!(iosched(&state, &["set", name, "read_ahead_kb=64", "nomerges=1"]).0, 0);
    fs::write(device.queue().join("read_ahead_kb"), "32").unwrap();
    let (code, out, _) = restore(&state, &[]);
    assert!(code == 0 && out.contains("changed this disk with iosched set"), "{out}");
    for args in [&[name, "--dry-run"][..], &[name]] {
        let (code, out, _) = restore(&state, args);
        let differences = format!(
            "after iosched set this disk, another program changed read_ahead_kb from 64 to 32; to restore the old \
             values nevertheless, add --force: {}",
            format_args!("nomerges 1 -> 0, read_ahead_kb 32 -> {before}")
        );
        assert!(code == 1 && out.contains(&differences), "{out}");
        assert_eq!((was("read_ahead_kb"), was("nomerges")), ("32".to_owned(), "1".to_owned()));
    }
    let (code, out, _) = restore(&state, &[name, "--force"]);
    assert!(code == 0 && out.contains("restored: "), "{out}");
    assert_eq!((was("read_ahead_kb"), was("nomerges")), (before, "0".to_owned()));
}

#[test]
fn a_disk_is_found_by_a_relative_mount_point_and_a_file_on_it() {
    let Some((here, disk, device)) = disk("kernel-relative") else { return };
    if !available(has_program("mkfs.ext4"), "mkfs.ext4") {
        return;
    }
    common::sh("mkfs.ext4 -q -F \"$1\"", &[&disk.device]);
    let mounted = Mount::new("ext4", &disk.device, here.join("mounted"));
    fs::write(mounted.at.join("file"), "x").unwrap();
    let iosched = |args: &[&str]| {
        let mut command = Command::new(IOSCHED);
        let output = command.args(args).current_dir(&here).env("IOSCHED_STATE_DIR", here.join("state")).output();
        let output = output.unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for place in ["mounted", "mounted/file"] {
        assert_eq!(
            iosched(&["get", place, "scheduler", "-n"]).1,
            "[none] mq-deadline kyber bfq\n".to_owned(),
            "{place}"
        );
        assert_eq!(iosched(&["set", place, "nomerges=1"]), (Some(0), "nomerges=1\n".to_owned()), "{place}");
        assert_eq!(device.attribute("nomerges").unwrap().value, "1");
        assert_eq!(iosched(&["set", place, "nomerges=0"]).0, Some(0), "{place}");
    }
    // An attribute takes precedence over a file with its name.
    fs::write(here.join("scheduler"), "x").unwrap();
    assert!(iosched(&["get", "scheduler"]).1.contains(&format!("{}/scheduler=", device.name())));
}

#[test]
fn root_disk_is_set_at_a_terminal_only_with_yes() {
    let has_script = Command::new("script").arg("--version").output().is_ok();
    if !is_root() || !available(has_script, "script") {
        return;
    }
    let disks = BlockDevice::disks(&Roots::default());
    let root = disks.iter().find(|disk| disk.is_under_root() && disk.attribute("nomerges").is_ok());
    let Some(root) = root else {
        available(false, "a disk under the root file system");
        return;
    };
    // The value that the attribute has.
    let assignment = format!("{}/nomerges={}", root.name(), root.attribute("nomerges").unwrap().value);
    let state = directory("kernel-root").join("state");
    let set = |more: &str| {
        let line = format!("{IOSCHED} set {assignment} {more}");
        let mut command = Command::new("script");
        let output = command.args(["-qec", &line, "/dev/null"]).env("IOSCHED_STATE_DIR", &state).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, output) = set("");
    assert!(
        code == Some(2) && output.contains("the root file system is on this disk") && output.contains("--yes"),
        "{output}"
    );
    let (code, output) = set("--yes");
    assert!(code == Some(0) && output.contains("nomerges="), "{output}");
    assert_eq!(run(&["set", &assignment]).0, 0, "a script needs no --yes");
}

#[test]
fn restore_reports_the_leftovers_it_undoes() {
    let Some((here, _disk, device)) = disk("kernel-restore") else { return };
    let (state, name) = (here.join("state"), device.name());
    assert_eq!(restore(&state, &[]), (0, "nothing to restore\n".to_owned(), String::new()));
    let recorded = Recorded::of(&device).unwrap();
    let mut session = Session::begin(&device, &StateDirectory::at(&state)).unwrap();
    session.apply(&Setting::parse_of_kernel("mq-deadline:read_ahead_kb=64").unwrap()).unwrap();
    let (code, out, _) = restore(&state, &[name]);
    assert!(code == 1 && out.contains(&format!("not restored: process {}", std::process::id())), "{out}");
    assert_eq!(restore(&state, &[]).0, 0, "a running session is not a leftover");
    let journal = state.join("settings").join(name);
    let text = fs::read_to_string(&journal).unwrap();
    session.end().unwrap();
    // Recreates the state that a kill leaves.
    fs::write(&journal, &text).unwrap();
    device.set_attribute("scheduler", "mq-deadline").unwrap();
    device.set_attribute("read_ahead_kb", "64").unwrap();
    let (code, out, _) = restore(&state, &["--dry-run"]);
    assert!(code == 0 && out.contains("would be restored: scheduler mq-deadline -> none"), "{out}");
    assert_eq!(device.scheduler().as_deref(), Some("mq-deadline"));
    let (code, out, _) = restore(&state, &[device.path().to_str().unwrap()]);
    assert!(code == 0 && out.starts_with(&format!("{name}: restored: scheduler mq-deadline -> none")), "{out}");
    assert_eq!(Recorded::of(&device).unwrap(), recorded);
    // `restore` does not change values that another program has set since the kill.
    fs::write(&journal, &text).unwrap();
    device.set_attribute("scheduler", "mq-deadline").unwrap();
    device.set_attribute("read_ahead_kb", "32").unwrap();
    let (code, out, _) = restore(&state, &[name]);
    assert!(
        code == 0
            && out.contains(
                "not restored, because another program changed these settings after iosched set them: \
                 read_ahead_kb is 32"
            ),
        "{out}"
    );
    assert!(out.contains(&format!("to restore these settings too, run: iosched set {name} read_ahead_kb=")), "{out}");
    device
        .set_attribute("read_ahead_kb", &recorded.values.iter().find(|(of, _)| of == "read_ahead_kb").unwrap().1)
        .unwrap();
    assert_eq!(Recorded::of(&device).unwrap(), recorded);
    assert_eq!(restore(&state, &[name]).1, format!("{name}: nothing to restore\n"));
    // First the same disk after it was removed and added again, then another disk with its name.
    let again = text.replace("\"sequence\": ", "\"sequence\": 9");
    let other = again.replace("\"size_bytes\": ", "\"size_bytes\": 9");
    for (text, expected) in [
        (again, "was removed and added again, so the recorded settings no longer apply"),
        (other, "iosched recorded the settings of another device"),
    ] {
        fs::write(&journal, text).unwrap();
        let (code, out, _) = restore(&state, &[]);
        assert!(code == 1 && out.contains(expected), "{out}");
    }
    assert_eq!(restore(&state, &["--force"]).1, format!("{name}: this disk has its old settings already\n"));
}

#[test]
fn restore_works_directly_after_a_comparison_is_killed() {
    let Some((here, _disk, device)) = disk("kernel-killed") else { return };
    let (state, name) = (here.join("state"), device.name());
    let job = "[r]\nrw=randread\nbs=4k\niodepth=8\nioengine=libaio\nsize=16m\ntime_based\nruntime=600\n";
    fs::write(here.join("read.fio"), job).unwrap();
    let recorded = Recorded::of(&device).unwrap();
    for _ in 0..10 {
        let mut command = Command::new(IOSCHED);
        command.args(["compare", "--on"]).arg(device.path()).args(["--workload", "read.fio", "--scheduler"]);
        command.args(["mq-deadline:fifo_batch=3", "--runs", "2"]).current_dir(&here).stdin(Stdio::null());
        command.env("IOSCHED_STATE_DIR", &state).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Running(command.spawn().unwrap());
        wait_for(|| device.attribute("fifo_batch").is_ok_and(|attribute| attribute.value == "3"));
        running.0.kill().unwrap();
        // The test does not wait for the killed process, so the process ends while `restore`
        // begins.
        let (code, out, err) = restore(&state, &[]);
        // If the kill came between two settings of the comparison, the disk already has its
        // original state.
        let is_back = ["restored: scheduler", "this disk has its old settings already"]
            .map(|text| out.starts_with(&format!("{name}: {text}")));
        assert!(code == 0 && is_back.contains(&true), "{out}{err}");
        assert_eq!(Recorded::of(&device).unwrap(), recorded);
    }
}

#[test]
fn persistent_setting_keeps_earlier_rules() {
    let Some((here, _disk, device)) = disk("kernel-persist") else { return };
    let (name, rules) = (device.name(), here.join("rules"));
    fs::create_dir(&rules).unwrap();
    let persist = format!("--persist={}", rules.display());
    let file = rules.join(format!("90-iosched-{name}.rules"));
    let rule =
        || fs::read_to_string(&file).unwrap().lines().last().unwrap().split(", ").skip(4).collect::<Vec<_>>().join(" ");
    let set = |assignments: &[&str]| run(&[&["set", name, persist.as_str()], assignments].concat());
    let (code, out, err) = set(&["scheduler=mq-deadline", "fifo_batch=8", "nomerges=1"]);
    let expected = format!("scheduler=mq-deadline\nfifo_batch=8\nnomerges=1\nat every start: {}\n", file.display());
    assert_eq!((code, out), (0, expected), "{err}");
    let first = "ATTR{queue/scheduler}=\"mq-deadline\" ATTR{queue/iosched/fifo_batch}=\"8\" ATTR{queue/nomerges}=\"1\"";
    assert_eq!(rule(), first);
    assert_eq!(set(&["fifo_batch=4"]).0, 0);
    assert_eq!(rule(), first.replace('8', "4"));
    // Tunables of another scheduler are also removed.
    assert_eq!(set(&["scheduler=none"]).0, 0);
    assert_eq!(rule(), "ATTR{queue/scheduler}=\"none\" ATTR{queue/nomerges}=\"1\"");
    for (assignment, reason) in
        [("nomerges=9", "is out of range; it must be from 0 to 2"), ("nomerges", "is not NAME=VALUE")]
    {
        let before = rule();
        let (code, _, err) = set(&[assignment]);
        assert!(code == 2 && err.contains(reason), "{err}");
        assert_eq!(rule(), before, "a refused assignment does not change the rule");
    }
    fs::write(&file, "# an administrator's\n").unwrap();
    let (code, _, err) = set(&["nomerges=0"]);
    assert!(code == 2 && err.contains("--overwrite"), "{err}");
    assert_eq!(run(&["get", name, "nomerges", "-n"]).1, "1\n", "a refused command sets nothing");
    // The next test that uses the device must find the original value.
    assert_eq!(run(&["set", name, "nomerges=0"]).0, 0);
}

#[test]
fn rates_of_kernel_disks_are_shown() {
    let Some((_here, _disk, device)) = disk("kernel-top") else { return };
    let read = format!("dd if={} of=/dev/null bs=1M count=8 iflag=direct 2>/dev/null", device.path().display());
    let reads = std::thread::spawn(move || {
        (0..20).for_each(|_| assert!(Command::new("sh").args(["-c", &read]).status().unwrap().success()))
    });
    let (code, out, err) = run(&["top", device.name(), "--interval", "0.5", "--once", "--json"]);
    reads.join().unwrap();
    assert_eq!(code, 0, "{err}");
    let sample: serde_json::Value = serde_json::from_str(&out).unwrap();
    let row = &sample["rows"][0];
    assert_eq!((&row["disk"], &row["scheduler"]), (&device.name().into(), &"none".into()));
    assert!(row["reads_per_s"].as_f64().unwrap() > 0.0 && row["writes_per_s"].as_f64() == Some(0.0), "{out}");
    let (_, all, _) = run(&["top", "--once", "-i", "0.1"]);
    assert!(all.lines().all(|line| line.chars().count() <= 80 || line.starts_with('w')), "{all}");
}

#[test]
fn top_names_the_process_that_writes_through_the_page_cache() {
    if !is_root() || !available(Path::new("/proc/self/io").exists(), "/proc/PID/io") {
        return;
    }
    let here = directory("top-writers");
    let counted = || fs::read_to_string("/proc/self/io").unwrap();
    let before = counted();
    fs::write(here.join("probe"), [1; 8192]).unwrap();
    if !available(counted().lines().nth(5) != before.lines().nth(5), "a file system whose writes are counted") {
        return;
    }
    // Each write uses new pages, which are freed before they reach the disk.
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let ((code, out, err), document) = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                fs::write(here.join("written"), vec![1; 8 << 20]).unwrap();
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        });
        let text = run(&["top", "--once", "-i", "0.5"]);
        let document = run(&["top", "--once", "-i", "0.5", "--json"]).1;
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        (text, document)
    });
    assert_eq!(code, 0, "{err}");
    let line = out.lines().find(|line| line.contains("writers (to any disk): ")).unwrap_or_else(|| panic!("{out}"));
    assert!(line.contains(&format!("({}) ", std::process::id())), "{line}");
    assert!(document.contains("writers (to any disk)"), "{document}");
}

#[test]
fn restore_removes_directories_of_killed_runs() {
    let here = directory("kernel-directories");
    let state = here.join("state");
    let directory = OwnDirectory::create(&here, &StateDirectory::at(&state)).unwrap();
    let entry = state.join("directories").join(directory.path().file_name().unwrap());
    let (text, path) = (fs::read(&entry).unwrap(), directory.path().to_owned());
    fs::write(path.join("file"), "x").unwrap();
    // Recreates the state that a kill leaves: the directory exists, and no process holds the lock
    // of its record.
    std::mem::forget(directory);
    fs::remove_file(&entry).unwrap();
    fs::write(&entry, text).unwrap();
    assert_eq!(restore(&state, &[]), (0, format!("{}: removed\n", path.display()), String::new()));
    assert!(!path.exists());
}

#[test]
fn root_does_not_work_in_a_directory_of_another_user() {
    let (data, state) = (directory("kernel-shared"), directory("kernel-shared-state"));
    if std::os::unix::fs::chown(&data, Some(65534), None).is_err() {
        available(false, "root");
        return;
    }
    let output = Command::new(IOSCHED).env("IOSCHED_STATE_DIR", &state).arg("calibrate").arg(&data).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    let remedy = format!("install -d -m 700 {}/iosched-test", data.display());
    assert!(err.contains("its owner (user 65534) may rename files") && err.contains(&remedy), "{err}");
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0);
}

#[test]
fn set_writes_nothing_to_a_directory_that_imitates_a_disk() {
    let here = directory("kernel-looks-like-a-disk");
    let (data, victim) = (here.join("data"), here.join("victim"));
    fs::create_dir_all(data.join("queue")).unwrap();
    fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, data.join("queue/no_such_attribute")).unwrap();
    let (code, _, err) = run(&["set", data.to_str().unwrap(), "no_such_attribute=1"]);
    assert_ne!(code, 0, "{err}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

#[test]
fn unknown_device_is_a_usage_error() {
    let state = directory("kernel-usage");
    let (code, _, err) = restore(&state, &["no-such-disk"]);
    assert!(code == 2 && err.contains("there is no such block device; available:"), "{err}");
    let (code, _, err) = restore(&state, &["/proc"]);
    assert!(code == 2 && err.contains("is in a file system (proc) that is not on a block device"), "{err}");
    assert_eq!(restore(&state, &["--all", "sda"]).0, 2);
}

#[test]
fn users_without_root_get_a_clear_error() {
    let Some((here, _disk, device)) = disk("kernel-user") else { return };
    // A directory that other users can read.
    let place = tempfile_for_others();
    let program = place.join("iosched");
    fs::copy(IOSCHED, &program).unwrap();
    let assignment = format!("{}/nr_requests=64", device.name());
    let output = Command::new(&program).args(["set", &assignment]).uid(65534).gid(65534).output();
    fs::remove_dir_all(&place).unwrap();
    let Ok(output) = output else {
        available(false, "another user");
        return;
    };
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && err.contains("only the owner of this file has access"), "{err}");
    drop(here);
}

fn tempfile_for_others() -> PathBuf {
    let place = std::env::temp_dir().join(format!("iosched-test-{}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    place
}
