//! Tests of `iosched import disksim` and `iosched validate disk` on a small fictitious disk.

mod common;

use std::path::PathBuf;

use common::run_in as run;

const MODEL: &str = "dm_disk Small_model {
   Number of data surfaces = 2, # both sides
   Number of cylinders = 1000,
   Block count = 199000,
   Mechanical Model = dm_mech_g1 {
      Seek type = extracted,
      Single cylinder seek time = 1.0,
      Full strobe seek time = 10.0,
      Add. write settling delay = 0.3,
      Head switch time = 0.2,
      Rotation speed (in rpms) = 7200
   },
   Layout Model = dm_layout_g1 {
      LBN-to-PBN mapping scheme = 0,
      Sparing scheme used = 9,
      Rangesize for sparing = 1,
      Zones = [
         dm_layout_g1_zone {
            First cylinder number = 0,
            Last cylinder number = 999,
            Blocks per track = 100,
            Offset of first block = 0.000000,
            Empty space at zone front = 0,
            Skew for track switch = 20.000000,
            Skew for cylinder switch = 30.000000,
            Number of spares = 100,
            slips = [ 1234, 77 ],
            defects = [ ]
         }
      ]
   }
} # end
";
const SEEK: &str = "Seek distances measured: 3\n1,\t1.00000\n10,\t2.00000\n999,\t10.00000\n";
const SPECS: &str = "disksim_disk Small {
   Per-request overhead time = 0.0,
   Time scale for overheads = 1.0,
   Bulk sector transfer time = 0.1,
   Allow read hits on write data = 1,
   Max queue length = 1,
   Number of buffer segments = 3,
   Maximum number of write segments = 1,
   Segment size (in blks) = 128,
   Enable caching in buffer = 1,
   Buffer continuous read = 3,
   Maximum read-ahead (blks) = 128,
   Read-ahead over requested = 0,
   Fast write level = 2,
   Immediate buffer read = 0,
   Read hit over. after read = 0.1,
   Read hit over. after write = 0.2,
   Read miss over. after read = 0.3,
   Read miss over. after write = 0.4,
   Write hit over. after read = 0.5,
   Write hit over. after write = 0.6,
   Write miss over. after read = 0.7,
   Write miss over. after write = 0.8
}
";
/// A read, then a write and a read that the disk's cache serves. Their times follow from the
/// overheads and the link.
const TRACE: &str = "R Miss 100000 4 9000.0 50000.0
W Hit 500 4 900.0 50000.0
R Hit 500 4 600.0 50000.0
R Miss 150000 8 9000.0 50000.0
R Hit 150008 4 500.0 50000.0
";

fn directory(name: &str) -> PathBuf {
    let path = common::directory(name);
    for (file, text) in [("a.model", MODEL), ("a.seek", SEEK), ("a.diskspecs", SPECS), ("a.trace", TRACE)] {
        std::fs::write(path.join(file), text).unwrap();
    }
    path
}

const IMPORT: [&str; 7] = ["import", "disksim", "a.model", "a.seek", "a.diskspecs", "-o", "a.toml"];

#[test]
fn imported_disk_is_compared_with_measurements() {
    let here = directory("validate");
    let (code, out, err) = run(&here, &IMPORT);
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.contains("a.toml: Small, "), "{err}");
    assert_eq!(run(&here, &IMPORT).0, 0, "a second import replaces the profile");
    let profile = std::fs::read_to_string(here.join("a.toml")).unwrap();
    for part in ["capacity_sectors = 199_000", "slips = [\n    77, 1234,\n]", "write_hit_ns = [500_000, 600_000]"] {
        assert!(profile.contains(part), "{part}: {profile}");
    }
    let args = ["validate", "disk", "--device", "a.toml", "--trace", "a.trace", "--report", "a.html"];
    let (code, out, err) = run(&here, &args);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("On average the model answers "), "{out}");
    let last = out.lines().last().unwrap();
    let words: Vec<&str> = last.split(' ').collect();
    assert_eq!([words[0], words[2], words[4], words[6]], ["rms_ms", "mean_ms", "measured_mean_ms", "requests"]);
    assert_eq!((words[5], words[7]), ("4.00", "5"), "{last}");
    assert!(out.lines().any(|line| line.starts_with("writes") && line.contains("0.900     0.900")), "{out}");
    let from_cache = out.lines().find(|line| line.starts_with("reads from the cache")).unwrap();
    assert!(from_cache.contains("  2 ") && from_cache.contains("0.000"), "{from_cache}");
    let page = std::fs::read_to_string(here.join("a.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("a.toml against a.trace"));
    let (code, out, _) = run(&here, &["validate", "disk", "--profile", "a.toml", "--trace", "a.trace", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &json["all"]["requests"], &json["kinds"][0]["name"]), (0, &5.into(), &"reads".into()));
}

#[test]
fn validate_names_file_and_line_of_an_error() {
    let here = directory("validate-wrong");
    assert_eq!(run(&here, &IMPORT).0, 0);
    let refused = |args: &[&str], expected: &str| {
        let (code, out, err) = run(&here, args);
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}: {err}");
        assert!(err.starts_with("error: ") && err.contains(expected), "{args:?} should say {expected:?}: {err}");
    };
    let validate = |trace| ["validate", "disk", "--profile", "a.toml", "--trace", trace];
    refused(&validate("none.trace"), "none.trace: cannot be read");
    refused(&validate("a.model"), "a.model:1: \"dm_disk Small_model {\" is not a line with a measured request");
    std::fs::write(here.join("far.trace"), "R Hit 198999 4 1.0 1.0\n").unwrap();
    refused(&validate("far.trace"), "far.trace:1: 4 sectors at sector 198999 are out of range");
    refused(&["import", "disksim", "a.seek", "a.seek", "a.diskspecs"], "a.seek:1: the block is missing");
    refused(
        &["import", "disksim", "a.model", "a.model", "a.diskspecs"],
        "a.model:1: \"dm_disk Small_model {\" is not a distance and a seek time",
    );
    refused(&["import", "disksim", "a.model", "a.seek", "a.model"], "has no field");
    std::fs::write(here.join("b.model"), MODEL.replace("used = 9", "used = 5")).unwrap();
    refused(
        &["import", "disksim", "b.model", "a.seek", "a.diskspecs"],
        "b.model:15: sparing scheme 5 is not supported",
    );
    std::fs::write(here.join("b.model"), MODEL.replace("= 199000", "= 299000")).unwrap();
    refused(
        &["import", "disksim", "b.model", "a.seek", "a.diskspecs"],
        "a disk of 299000 sectors does not end in the last zone",
    );
}
