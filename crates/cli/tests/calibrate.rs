//! Tests of `iosched calibrate` and `iosched validate DEVICE` on a model.

mod common;

use std::fs;

use common::{directory, has_minutes, run};
use iosched::{Op, Time};
use iosched_disk::{Command, Device, Profile};

/// A small fast device. It executes one command at a time, in 100 us.
const DEVICE: &str = "
kind = \"fixed\"
[fixed]
depth = 4
parallel = 1
lat_ns = 100_000
ns_per_sector = 500
capacity_sectors = 2_097_152
";

#[test]
fn a_model_is_calibrated_fitted_again_and_checked() {
    if !has_minutes() {
        return;
    }
    let here = directory("calibrate");
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    let (device, profile, records) = (path("device.toml"), path("mine.toml"), path("m.jsonl"));
    fs::write(&device, DEVICE).unwrap();
    let (code, out, err) = run(&["calibrate", &device, "-o", &profile, "--records", &records]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in
        ["workloads that the fit did not use", "random read 4 KiB, depth 1 ", "server fits: ", "next: iosched compare"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let text = fs::read_to_string(&profile).unwrap();
    assert!(text.starts_with("# A model of ") && text.contains("# Made by: iosched calibrate "), "{text}");
    assert_eq!(Profile::load(&profile).unwrap().model().kind(), "server");

    // The same records give the same output, and the profile fits the measurements.
    let (code, again, _) = run(&["calibrate", "--from", &records, "-o", &profile]);
    assert_eq!((code, again), (0, out));
    assert_eq!(fs::read_to_string(&profile).unwrap(), text);
    let (code, out, _) = run(&["calibrate", "--from", &records, "--check", &profile, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, document["verdict"]["fits"].as_bool()), (0, Some(true)));
    assert!(document["held_out"].as_array().unwrap().len() >= 3);
    // Both commands write the same page.
    let (page, same) = (path("page.html"), path("same.html"));
    let (code, _, err) = run(&["calibrate", "--from", &records, "--report", &page]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, _, err) = run(&["report", &records, "-o", &same]);
    assert_eq!((code, err), (0, format!("{same}: the report of {records}\n")));
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(fs::read_to_string(&same).unwrap(), html);
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("Server fits: "), "{html}");
    // The measurements do not fit the profile of another device.
    let (code, out, _) = run(&["calibrate", "--from", &records, "--check", "sata-7200"]);
    assert!(code == 1 && out.contains("no model fits"), "{out}");
}

/// Returns a trace of a disk that executes one request at a time. Each line is a request.
fn served(profile: &Profile, requests: u64) -> String {
    let (mut device, mut now, mut text) = (profile.device(3), Time::ZERO, String::new());
    for number in 0..requests {
        // Every fourth request continues where the preceding request ended.
        let place = number - u64::from(number % 4 == 3);
        let sector = place.wrapping_mul(7_919_003) % (profile.card().capacity_sectors - 64) + 8 * (number - place);
        let op = if number % 5 == 0 { Op::Write } else { Op::Read };
        let begins = now;
        device.submit(now, Command { tag: 0, op, sector, nr_sectors: 8, fua: false });
        while let Some(at) = device.next_event() {
            now = at;
            if device.advance(now).is_some() {
                break;
            }
        }
        let letter = if op == Op::Write { 'W' } else { 'R' };
        let us = (now.as_ns() - begins.as_ns()) as f64 / 1e3;
        text += &format!("{letter} Miss {sector} 8 {us:.3} 5000.0\n");
        now = Time::from_ns(now.as_ns() + 5_000_000);
    }
    text
}

#[test]
fn rotating_disk_is_fitted_to_a_trace() {
    let here = directory("calibrate-trace");
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    let (trace, profile) = (path("served.trace"), path("mine.toml"));
    fs::write(&trace, served(&Profile::named("cheetah9LP").unwrap(), 1_200)).unwrap();
    let (code, out, err) = run(&["calibrate", "--trace", &trace, "--start", "cheetah9LP", "-o", &profile]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in ["1,200 requests, one at a time", "held-out requests", "rpm; reads ahead after "] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let fitted = Profile::load(&profile).unwrap();
    assert_eq!((fitted.model().kind(), fitted.card().capacity_sectors), ("hdd", 17_783_240));
    let (code, out, _) = run(&["calibrate", "--trace", &trace, "--start", "cheetah9LP", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let off_percent = document["held_out_rms_percent"].as_f64().unwrap();
    assert!(code == 0 && off_percent < 12.0, "{off_percent}");
    for (args, expected) in [
        (vec!["calibrate", "--trace", "no-such-file"], "no-such-file"),
        (vec!["calibrate", "--trace", &trace, "--start", "nvme"], "of kind ssd"),
        (vec!["calibrate", "--trace", &profile], "mine.toml:1: "),
        (vec!["calibrate", "nvme", "--trace", &trace], "cannot be used with"),
    ] {
        let (code, _, err) = run(&args);
        assert!(code == 2 && err.contains(expected), "{args:?}: {code} {err}");
    }
}

#[test]
fn calibrate_refuses_wrong_arguments_with_the_reason() {
    let here = directory("calibrate-refused");
    let file = here.join("file");
    fs::write(&file, "nothing").unwrap();
    let file = file.to_string_lossy();
    for (args, expected) in [
        (vec!["calibrate"], "required"),
        (vec!["calibrate", &*file], "give a file of at least 64 MiB, or a directory"),
        (
            vec!["calibrate", &*file, "--destroy-data", &*file],
            "is a file, and iosched does not write to files \
             that you name",
        ),
        (vec!["calibrate", "/dev/no-such-disk"], "no-such-disk"),
        (vec!["calibrate", "nvme", "--destroy-data", "/dev/sda"], "a model has no data"),
        (vec!["calibrate", "--from", &*file], "not a file of measurements"),
        (vec!["calibrate", "--from", "no-such-file"], "no-such-file"),
        (vec!["calibrate", "nvme", "--check", "no-such-profile"], "there is no device profile"),
    ] {
        let (code, _, err) = run(&args);
        assert!(code == 2 && err.contains(expected), "{args:?}: {code} {err}");
    }
}

#[test]
fn profile_contains_the_result_of_its_validation() {
    let here = directory("validate-device");
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    let (device, validated_profile, records) = (path("device.toml"), path("told.toml"), path("v.jsonl"));
    fs::write(&device, DEVICE).unwrap();
    let short = ["--runs", "2", "--run-for", "0.2", "--records", &records];
    let (code, out, err) =
        run(&[&["validate", &device, "--profile", &device, "-o", &validated_profile][..], &short].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in [
        "two classes: random 8 KiB reads",
        "predicted",
        "The profile predicts 100 % of",
        "48 of 48 predicted rates are within 10 %",
        "wrongly: 0",
        "; score 100 %",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    // The profile contains the result of the validation, and commands show it.
    let text = fs::read_to_string(&validated_profile).unwrap();
    assert!(text.contains("# Validated on ") && text.contains("trust_percent = 100.0"), "{text}");
    let validated = Profile::load(&validated_profile).unwrap().fit().unwrap().validated.unwrap();
    assert_eq!(validated.wrong_orders, 0);
    let (code, out_of_show, _) = run(&["device", "show", &validated_profile]);
    assert!(code == 0 && out_of_show.contains("validated on the device: score 100 %; "), "{out_of_show}");
    let (code, _, err) = run(&["report", &records, "-o", &path("page.html")]);
    assert!(code == 2 && err.contains("validate --from"), "{err}");
    // The same records give the same output. Another profile does not match the device.
    let (code, again, _) = run(&["validate", "--from", &records, "--profile", &device]);
    assert_eq!((code, again), (0, out));
    let (code, out, _) = run(&["validate", "--from", &records, "--profile", "sata-7200", "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let trust = document["battery"]["validated"]["trust_percent"].as_f64().unwrap();
    assert!(code == 0 && trust < 50.0, "{trust}");
    assert_eq!(document["battery"]["cells"].as_array().unwrap().len(), 48);
    assert_eq!(document["trials"].as_array().unwrap().len(), 12);
    let file = here.join("file");
    fs::write(&file, "nothing").unwrap();
    let file = file.to_string_lossy();
    for (args, expected) in [
        (vec!["validate"], "--profile"),
        (vec!["validate", "nvme"], "--profile"),
        (vec!["validate", "--profile", "nvme"], "required"),
        (vec!["validate", "nvme", "--profile", "no-such-profile"], "there is no device profile"),
        (vec!["validate", "nvme", "--profile", "nvme", "--scheduler", "cfq"], "none, mq-deadline, kyber, bfq"),
        (vec!["validate", "nvme", "--profile", "nvme", "--runs", "1"], "2"),
        (vec!["validate", "nvme", "--profile", "nvme", "--destroy-data", "/dev/sda"], "a model has no data"),
        (vec!["validate", "/dev/no-such-disk", "--profile", "nvme"], "no-such-disk"),
        (vec!["validate", "--from", &*file, "--profile", "nvme"], "is not a file of a validation"),
        (vec!["validate", "--from", "no-such-file", "--profile", "nvme"], "no-such-file"),
    ] {
        let (code, _, err) = run(&args);
        assert!(code == 2 && err.contains(expected), "{args:?}: {code} {err}");
    }
}

/// Rows of a table for one flash device: random reads of 4 KiB. The last two rows are not for the
/// fit.
const TABLE: &str = "rw,bs,iodepth,numjobs,iops,lat_mean,clat_p50,clat_p99,split
randread,4k,1,1,14483,68.29,64.26,78.34,given
randread,4k,4,1,58102,68.31,63.23,107,given
randread,4k,16,4,573509,111.2,88.58,301.1,given
randread,4k,64,4,780809,327.5,-,-,given
randread,16k,1,1,12150,82,80,100,given
randread,4k,8,1,113033,70.35,64.77,123.4,kept
randread,4k,8,4,378208,84.19,74.24,189.4,kept
";

#[test]
fn table_is_fitted_and_validated_with_unused_rows() {
    let here = directory("calibrate-table");
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    let (table, profile) = (path("results.csv"), path("disk.toml"));
    fs::write(&table, TABLE).unwrap();
    let (code, out, err) = run(&["calibrate", "--table", &table, "--kind", "ssd", "-o", &profile]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("random read 4 KiB, depth 64") && out.contains("rows that the fit did not use"), "{out}");
    assert!(out.contains("ssd fits: "), "{out}");
    // A metric for which the table has no value is not compared.
    let deepest = out.lines().find(|line| line.starts_with("random read 4 KiB, depth 256")).unwrap();
    assert!(deepest.contains(" - "), "{deepest}");
    let (_, shown, _) = run(&["device", "show", &profile, "--assumptions"]);
    for entry in ["row random read 4 KiB, depth 1: 14483 IOPS", "program_ns", "the table has no rows with writes"] {
        assert!(shown.contains(entry), "{entry}: {shown}");
    }
    assert!(!shown.contains("113033"), "the list has a row that the fit did not use: {shown}");
    let (code, out, err) = run(&["validate", "--profile", &profile, "--table", &table]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("2 rows of ") && out.contains("the fit used 5 other rows"), "{out}");
    assert!(out.contains("random read 4 KiB, depth 32") && !out.contains("random read 16 KiB"), "{out}");
    assert!(out.contains("2 of 2 rates are within 10 %"), "{out}");
    // All rows of this table were used for the fit.
    let used = TABLE.lines().take(6).collect::<Vec<_>>().join("\n");
    fs::write(&table, used).unwrap();
    let (code, _, err) = run(&["validate", "--profile", &profile, "--table", &table]);
    assert!(code == 2 && err.contains("was fitted to all rows of this table"), "{err}");
    for (text, message) in [
        ("rw,bs\n", "the column iops is missing"),
        ("rw,bs,iops\nwrite,4k,100\n", "the fit needs a row of random reads"),
    ] {
        fs::write(&table, text).unwrap();
        let (code, _, err) = run(&["calibrate", "--table", &table]);
        assert!(code == 2 && err.contains(message), "{err}");
    }
    let (code, _, err) = run(&["calibrate", "--table", &table, "--kind", "hdd"]);
    assert!(code == 2 && err.contains("a table shows only ssd and server"), "{err}");
}

#[test]
fn fio_json_results_are_read_as_a_table() {
    let here = directory("calibrate-fio");
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    let (job, results, profile) = (path("job.fio"), path("results.json"), path("disk.toml"));
    let sections: String = [1, 8, 64].map(|depth| format!("[depth-{depth}]\nstonewall\niodepth={depth}\n")).concat();
    let text = format!(
        "[global]\nrw=randread\nbs=4k\ndirect=1\nioengine=io_uring\nsize=10g\ntime_based\nruntime=1\n{sections}"
    );
    fs::write(&job, text).unwrap();
    let compare = ["compare", "--workload", &job, "--device", "nvme", "--scheduler", "none", "--runs", "1"];
    let (code, out, err) = run(&[&compare[..], &["--output-format", "fio-json"]].concat());
    assert_eq!(code, 0, "{err}");
    fs::write(&results, out).unwrap();
    let (code, out, err) = run(&["calibrate", "--table", &results, "--kind", "ssd", "-o", &profile]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("ssd fits: 3 of 3 rates of the model are within 10 %"), "{out}");
}
