//! Tests of `iosched doctor` on the disks of the machine that runs the test.

mod common;

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use common::{IOSCHED, Loop, directory, image, is_root, run};
use iosched_kernel::{BlockDevice, Roots};

#[test]
fn doctor_examines_every_disk_of_this_machine() {
    if fs::read_dir("/sys/block").is_err() {
        return;
    }
    let (code, text, errors) = run(&["doctor"]);
    assert_eq!((code, errors.as_str()), (0, ""));
    assert!(text.starts_with("name"), "{text}");
    let (code, json, _) = run(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &document["schema"]), (0, &1.into()));
    for disk in document["disks"].as_array().unwrap() {
        let name = disk["name"].as_str().unwrap();
        let (code, text, errors) = run(&["doctor", name]);
        let is_gone = BlockDevice::named(&Roots::default(), name).map_or(true, |disk| disk.size_bytes() == 0);
        // In the meantime, other tests may detach their loop devices.
        if code == 2 && is_gone {
            continue;
        }
        assert_eq!((code, errors.as_str()), (0, ""), "{name}");
        assert!(text.starts_with(name), "{text}");
        for line in text.lines().filter(|line| !line.contains("file: ") && !line.contains("do:   ")) {
            // Words are not broken, so a line with a long name can be longer.
            assert!(line.chars().count() <= 80 || !line.trim().contains(' '), "{line}");
        }
    }
}

#[test]
fn error_suggests_the_nearest_disk_name() {
    let disks = BlockDevice::disks(&Roots::default());
    let (code, _, errors) = run(&["doctor", "nosuchdisk"]);
    assert_eq!(code, 2);
    assert!(errors.contains("nosuchdisk: there is no such disk"), "{errors}");
    let Some(disk) = disks.first() else { return };
    let near = format!("{}x", disk.name());
    let (code, _, errors) = run(&["doctor", &near]);
    assert_eq!(code, 2);
    assert!(errors.contains("did you mean "), "{errors}");
    let (code, _, errors) = run(&["doctor", "/proc"]);
    assert_eq!((code, errors.contains("not on a block device")), (2, true), "{errors}");
}

#[test]
fn doctor_compares_rates_with_the_disks_of_this_machine() {
    let here = directory("doctor-rates");
    let disks = BlockDevice::disks(&Roots::default());
    let file = here.join("rates.txt");
    let rates = |text: &str| {
        fs::write(&file, text).unwrap();
        run(&["doctor", "--json", "--rates", file.to_str().unwrap()])
    };
    for (given, expected) in [("/nowhere/iostat.txt", "No such file"), ("/", "is a directory")] {
        let (code, _, errors) = run(&["doctor", "--rates", given]);
        assert_eq!(code, 2, "{errors}");
        assert!(errors.starts_with(&format!("error: --rates {given}: {expected}")), "{errors}");
    }
    let (code, _, errors) = rates("nothing of the kind\n");
    assert_eq!((code, errors.contains("is not the output of iostat -x or sar -d")), (2, true), "{errors}");
    // A pipe can be read only once.
    let piped = here.join("pipe");
    assert!(Command::new("mkfifo").arg(&piped).status().unwrap().success());
    for given in ["-", piped.to_str().unwrap()] {
        let mut doctor = Command::new(IOSCHED);
        doctor.args(["doctor", "--rates", given]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut doctor = doctor.spawn().unwrap();
        let stdin = doctor.stdin.take().unwrap();
        let mut to: Box<dyn Write> = match given {
            "-" => Box::new(stdin),
            path => Box::new(fs::File::options().write(true).open(path).unwrap()),
        };
        to.write_all(b"Device r/s w/s r_await w_await aqu-sz %util\nnosuchdisk 1 1 4.0 2.0 8.0 99\n").unwrap();
        drop(to);
        let text = doctor.wait_with_output().unwrap();
        let errors = String::from_utf8(text.stderr).unwrap();
        assert_eq!(
            (text.status.code(), errors.contains("has nosuchdisk, but none of these")),
            (Some(2), true),
            "{errors}"
        );
    }
    let report = |name: &str| format!("Device r/s w/s r_await w_await aqu-sz %util\n{name} 1 1 4.0 2.0 8.0 99\n");
    let (code, _, errors) = rates(&report("nosuchdisk"));
    assert_eq!((code, errors.contains("has nosuchdisk, but none of these")), (2, true), "{errors}");
    let (_, json, _) = run(&["doctor", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let known = document["disks"].as_array().unwrap().iter().find(|disk| disk["scheduler"].is_string());
    // Another test may have detached the loop device with this name.
    let Some(name) = known.and_then(|disk| disk["name"].as_str()).filter(|name| !name.starts_with("loop")) else {
        println!("skipped: none of {} disks has a scheduler", disks.len());
        return;
    };
    let (code, json, errors) = rates(&report(name));
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, errors.as_str()), (0, ""));
    let found = document["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == "load-waits").unwrap();
    assert_eq!((found["disk"].as_str(), found["file"].as_str()), (Some(name), file.to_str()));
}

#[test]
fn doctor_shows_file_and_scheduler_findings_of_loop_devices() {
    if !is_root() {
        return;
    }
    let here = directory("doctor-loop");
    let file = image(&here, "image", 16 << 20);
    let Some(disk) = Loop::new(&file) else { return };
    let device = BlockDevice::find(&Roots::default(), &disk.device).unwrap();
    let ids = || {
        let (code, json, errors) = run(&["doctor", device.name(), "--json"]);
        assert_eq!((code, errors.as_str()), (0, ""));
        let document: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(document["disks"][0]["layer"]["file"], file.to_str().unwrap());
        let findings = document["findings"].as_array().unwrap().iter();
        let finding = findings.filter(|finding| finding["disk"] == device.name());
        finding.map(|finding| finding["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (scheduler, expected) in
        [("none", "ionice-ignored"), ("mq-deadline", "ionice-classes-only"), ("bfq", "ionice-in-force")]
    {
        // Not every kernel has all these schedulers.
        if device.set_attribute("scheduler", scheduler).is_ok() {
            assert!(ids().iter().any(|id| id == expected), "{scheduler}: {:?}", ids());
        }
    }
    device.set_attribute("scheduler", "none").unwrap();
    assert!(ids().iter().any(|id| ["loop-through-cache", "layer-loop"].contains(&id.as_str())), "{:?}", ids());
}
