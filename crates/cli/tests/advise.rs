//! Tests of `iosched advise` on loop devices, as root: the advice, the changed settings, the files
//! that remain, and arguments that the command refuses.

mod common;

use std::fs;

use common::{
    FuseDisk, Loop, Mount, TWO_CLASSES, alone, choose, directory, has_all_schedulers, has_minutes, has_program,
    iosched, is_root, json, quick_disk, scheduler, sh,
};

/// Model of the slow disk. It executes one command at a time, in 2 ms.
const ONE_AT_A_TIME: &str = "kind = \"fixed\"
about = \"one command at a time\"

[fixed]
depth = 128
parallel = 1
lat_ns = 2120000
ns_per_sector = 0
capacity_sectors = 2097152
max_hw_sectors_kb = 1280
";

const ONE_READER: &str = "end_ns = 3600000000000\n[[tasks]]\npid = 1\nname = \"reader\"\npattern = \"random\"\nrange = [0, 524288]\niodepth = 4\n";

/// A job with a rate far below the maximum of a device in memory.
const PACED_READER: &str = "[reader]\nrw=randread\nbs=4k\nsize=128m\nrate_iops=400\ntime_based=1\nruntime=3600\n";

#[test]
fn scheduler_for_a_class_is_set_only_on_request() {
    if !has_minutes() {
        return;
    }
    if !is_root() || !["nbdkit", "nbdfuse"].iter().all(|program| has_program(program)) {
        return;
    }
    let _alone = alone();
    let here = directory("advise-classes");
    let slow = FuseDisk::slow(&here);
    let Some(below) = Loop::new(&slow.directory.join("disk")) else { return };
    if !has_all_schedulers(&below) {
        return;
    }
    choose(&below, "none");
    let before = scheduler(&below);
    fs::write(here.join("classes.toml"), TWO_CLASSES).unwrap();
    fs::write(here.join("slow.toml"), ONE_AT_A_TIME).unwrap();
    let on = below.device.to_str().unwrap();
    let args = ["advise", on, "--workload", "classes.toml", "--goal", "mean(be)", "--profile", "slow.toml"];
    let brief = ["--run-for", "3", "--runs", "4", "--budget", "40", "--scheduler", "none,mq-deadline,kyber"];
    let search = [&args[..], &brief[..], &["--output", "advice"]].concat();
    let (out, err) = iosched(&here, &[&search[..], &["--details"]].concat(), 0);
    assert_eq!(err, "");
    // With none, the idle class gets half of the disk. With mq-deadline, it gets almost nothing.
    assert!(out.starts_with("Set `mq-deadline`: it shortens mean(be) by "), "{out}");
    // The decision and the first doubt name the task that becomes slower.
    let decision = out.split("\n\n").next().unwrap().replace("\n  ", " ");
    assert!(decision.contains("The cost: it ") && decision.contains("starves the task idle"), "{out}");
    assert!(out.contains("\ndoubts, the most important first:\n  - `mq-deadline`: idle starves"), "{out}");
    let name = on.strip_prefix("/dev/").unwrap();
    let command = format!("  echo mq-deadline > /sys/block/{name}/queue/scheduler\n");
    assert!(out.contains(&command) && out.contains("\nto undo the change:\n"), "{out}");
    assert_eq!(scheduler(&below), before);
    let kept = here.join("advice");
    let rule = fs::read_to_string(kept.join(format!("90-iosched-{name}.rules"))).unwrap();
    assert!(rule.contains(&format!("KERNEL==\"{name}\", ATTR{{queue/scheduler}}=\"mq-deadline\"")), "{rule}");
    let page = fs::read_to_string(kept.join("advice.html")).unwrap();
    assert!(page.contains("How to apply the setting, and how to undo it") && page.contains("Predictions"));
    // `report` can read the records of the search and of the measurements.
    for records in ["search.jsonl", "device.jsonl"] {
        iosched(&here, &["report", &format!("advice/{records}"), "-o", "again.html"], 0);
    }

    let found = json(&here, &[&args[..], &brief[..], &["--apply", "--json"]].concat());
    assert_eq!((&found["finding"], &found["applied"]), (&"better".into(), &true.into()), "{found:#}");
    assert_eq!(found["recommended"], "mq-deadline");
    assert!(scheduler(&below).contains("[mq-deadline]"));
    // Both `iosched restore` and the commands in the answer restore the old setting.
    let dry_run = iosched(&here, &["restore", on, "--dry-run"], 0).0;
    assert!(dry_run.contains("scheduler") && scheduler(&below).contains("[mq-deadline]"), "{dry_run}");
    for command in found["lasting"]["undo"].as_array().unwrap() {
        sh(command.as_str().unwrap(), &[]);
    }
    assert_eq!(scheduler(&below), before);
    iosched(&here, &["restore", on], 0);
    assert_eq!(scheduler(&below), before);
}

#[test]
fn device_without_gain_is_measured_but_not_changed() {
    if !has_minutes() {
        return;
    }
    if !is_root() {
        return;
    }
    let _alone = alone();
    let Some((here, device)) = quick_disk("advise-nothing", 256 << 20) else { return };
    if !has_all_schedulers(&device) {
        return;
    }
    fs::write(here.join("paced.fio"), PACED_READER).unwrap();
    let on = device.device.to_str().unwrap();
    choose(&device, "none");
    let args = ["advise", on, "--workload", "paced.fio", "--goal", "throughput", "--run-for", "0.3", "--runs", "5"];
    // No scheduler can improve this goal, because the job limits its own rate.
    let rest =
        ["--budget", "30", "--schedulers", "none,mq-deadline", "--confirm", "1", "--apply", "--json", "-o", "kept"];
    let found = json(&here, &[&args[..], &rest[..]].concat());
    assert_eq!(found["recommended"], serde_json::Value::Null, "{found:#}");
    // The verdict of such short runs can be uncertain.
    let finding = found["finding"].as_str().unwrap();
    assert!(["nothing_better", "cannot_tell", "idle"].contains(&finding) && found["applied"] == false, "{found:#}");
    assert!(found["answer"].as_str().unwrap().contains("none"), "{}", found["answer"]);
    assert_eq!(found["decision"]["setting"], "none");
    assert!(found["model"]["verdict"]["kind"].is_string(), "{}", found["model"]);
    assert!(scheduler(&device).contains("[none]"));
    // A later call accepts the profile.
    let profile = here.join("kept/profile.toml");
    assert!(fs::read_to_string(profile).unwrap().starts_with("# A model of "));
}

#[test]
fn advise_refuses_wrong_arguments_before_any_run() {
    if !is_root() {
        return;
    }
    let Some((here, device)) = quick_disk("advise-refused", 64 << 20) else { return };
    fs::write(here.join("read.toml"), ONE_READER).unwrap();
    fs::write(here.join("write.toml"), ONE_READER.replace("pattern", "op = \"write\"\npattern")).unwrap();
    let on = device.device.to_str().unwrap();
    let before = scheduler(&device);
    let refused = |args: &[&str], expected: &str| {
        let (_, err) = iosched(&here, &[&["advise"], args].concat(), 2);
        assert!(err.contains(expected), "{args:?}: {err}");
    };
    refused(&[on, "-w", "read.toml", "--goal", "fairness"], "iosched measures fairness only in simulation");
    refused(&[on, "-w", "read.toml", "--scheduler", "cfg"], "--scheduler cfg: ");
    refused(&[on, "-w", "absent.toml"], "absent.toml");
    refused(&["/dev/absent", "-w", "read.toml"], "absent");
    refused(&[on, "-w", "read.toml", "--profile", "absent.toml"], "absent.toml");
    refused(&[on, "-w", "read.toml", "--runs", "1"], "--runs");
    fs::write(here.join("slow.toml"), ONE_AT_A_TIME).unwrap();
    let into_file = [on, "-w", "read.toml", "--profile", "slow.toml", "--output", "read.toml"];
    refused(&into_file, "--output read.toml: this is a file; name a directory");
    refused(&[on, "-w", "write.toml", "--profile", "slow.toml", "-o", "kept"], "--destroy-data");
    assert_eq!(scheduler(&device), before);
    assert!(!here.join("kept").exists());
}

#[test]
fn full_file_system_is_an_error_that_names_the_option() {
    if !is_root() || !has_program("mkfs.ext4") {
        return;
    }
    let Some((here, device)) = quick_disk("advise-room", 256 << 20) else { return };
    sh("mkfs.ext4 -q -F \"$1\"", &[&device.device]);
    let mounted = Mount::new("ext4", &device.device, here.join("mounted"));
    let before = scheduler(&device);
    // A trace with positions up to 16 GiB.
    let rows: String = (0..100).map(|i| format!("{},1,R,1,{},8\n", i * 1_000_000, i * 335_544)).collect();
    fs::write(here.join("far.csv"), format!("arrival_ns,pid,op,sync,sector,nr_sectors\n{rows}")).unwrap();
    fs::write(here.join("large.fio"), "[large]\nrw=read\nsize=1g\n").unwrap();
    let advise = ["advise", "mounted", "--workload", "far.csv"];
    let refused = |args: &[&str]| iosched(&here, args, 2).1;
    let refusal = refused(&advise);
    assert!(
        refusal.contains("needs 4096 MiB (--file-size), but only 2") && refusal.contains(" MiB are free; add "),
        "{refusal}"
    );
    let option = refusal.split("add --file-size ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!((64..256).contains(&option.parse().unwrap()), "{refusal}");
    assert!(refusal.contains("iosched shrank the areas without I/O") && refusal.contains("--profile"), "{refusal}");
    for command in [&["calibrate", "mounted"][..], &["validate", "mounted", "--profile", "sata-ssd"]] {
        let refusal = refused(command);
        assert!(refusal.contains(&format!("add --file-size {option}\n")), "{command:?}: {refusal}");
    }
    let full = refused(&["advise", "mounted", "--workload", "far.csv", "--file-size", "250"]);
    assert!(full.contains("needs 250 MiB"), "{full}");
    let refusal = refused(&["compare", "--on", "mounted", "--workload", "large.fio"]);
    assert!(
        refusal.contains("need 1073741824 bytes, but the device has only 2") && refusal.contains("give a smaller size"),
        "{refusal}"
    );
    // Nothing was created or set, and the suggested size fits.
    assert_eq!(scheduler(&device), before);
    let left: Vec<_> = fs::read_dir(&mounted.at).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lost+found"]);
    sh(&format!("fallocate -l {option}MiB \"$1\""), &[&mounted.at.join("disk")]);
}
