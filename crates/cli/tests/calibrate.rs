//! `iosched calibrate` from outside, on a model.

mod common;

use std::fs;

use common::{directory, run};
use iosched_disk::Profile;

/// A small fast device: one command at a time, 100 us each.
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
    let here = directory("calibrate");
    let path = |name: &str| here.join(name).to_string_lossy().into_owned();
    let (device, profile, records) = (path("device.toml"), path("mine.toml"), path("m.jsonl"));
    fs::write(&device, DEVICE).unwrap();
    let (code, out, err) = run(&["calibrate", &device, "-o", &profile, "--records", &records]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    for part in
        ["workloads that the fit did not see", "random read 4 KiB, depth 1 ", "server fits: ", "next: iosched compare"]
    {
        assert!(out.contains(part), "{part}: {out}");
    }
    let text = fs::read_to_string(&profile).unwrap();
    assert!(text.starts_with("# A model of ") && text.contains("# Made by: iosched calibrate "), "{text}");
    assert_eq!(Profile::load(&profile).unwrap().model().kind(), "server");

    // Again from the records, byte for byte; and beside what was measured of it.
    let (code, again, _) = run(&["calibrate", "--from", &records, "-o", &profile]);
    assert_eq!((code, again), (0, out));
    assert_eq!(fs::read_to_string(&profile).unwrap(), text);
    let (code, out, _) = run(&["calibrate", "--from", &records, "--check", &profile, "--json"]);
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, document["verdict"]["fits"].as_bool()), (0, Some(true)));
    assert!(document["held_out"].as_array().unwrap().len() >= 3);
    // The page is of the file, whoever is asked for it.
    let (page, same) = (path("page.html"), path("same.html"));
    let (code, _, err) = run(&["calibrate", "--from", &records, "--report", &page]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (code, _, err) = run(&["report", &records, "-o", &same]);
    assert_eq!((code, err.as_str()), (0, ""));
    let html = fs::read_to_string(&page).unwrap();
    assert_eq!(fs::read_to_string(&same).unwrap(), html);
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains("Server fits: "), "{html}");
    // Another device is not like it.
    let (code, out, _) = run(&["calibrate", "--from", &records, "--check", "sata-7200"]);
    assert!(code == 1 && out.contains("no model fits"), "{out}");
}

#[test]
fn what_cannot_be_calibrated_is_refused_with_what_would_be_right() {
    let here = directory("calibrate-refused");
    let file = here.join("file");
    fs::write(&file, "nothing").unwrap();
    let file = file.to_string_lossy();
    for (args, said) in [
        (vec!["calibrate"], "required"),
        (vec!["calibrate", &*file], "give a file of 64 MiB and more, or a directory"),
        (vec!["calibrate", &*file, "--destroy-data", &*file], "is a file, which is only read"),
        (vec!["calibrate", "/dev/no-such-disk"], "no-such-disk"),
        (vec!["calibrate", "nvme", "--destroy-data", "/dev/sda"], "a model has no data"),
        (vec!["calibrate", "--from", &*file], "not a file of measurements"),
        (vec!["calibrate", "--from", "no-such-file"], "no-such-file"),
        (vec!["calibrate", "nvme", "--check", "no-such-profile"], "there is no device profile"),
    ] {
        let (code, _, err) = run(&args);
        assert!(code == 2 && err.contains(said), "{args:?}: {code} {err}");
    }
}
