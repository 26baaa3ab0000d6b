//! `fixed` and `disk`: small examples, computed by hand from the rules of the recorded runs.

use iosched::{Op, Time};
use iosched_disk::{Command, Device, Disk, DiskConfig, Fixed, FixedConfig, Profile};

/// A submission: time, operation, sector, length. Tags count up from 0.
type Submission = (u64, Op, u64, u32);

/// Runs `submissions` on `device`. Returns the tag and the time of each completion, in order.
fn drive(device: &mut impl Device, submissions: &[Submission]) -> Vec<(u32, u64)> {
    let mut done = Vec::new();
    let mut until = |device: &mut dyn Device, limit: Option<u64>| {
        while let Some(at) = device.next_event().filter(|at| limit.is_none_or(|limit| at.as_ns() <= limit)) {
            while let Some(tag) = device.advance(at) {
                done.push((tag, at.as_ns()));
            }
        }
    };
    for (tag, &(now, op, sector, nr_sectors)) in submissions.iter().enumerate() {
        until(device, Some(now));
        device.submit(Time::from_ns(now), Command { tag: tag as u32, op, sector, nr_sectors, fua: false });
    }
    until(device, None);
    done
}

fn fixed(json: &str) -> Fixed {
    let config: FixedConfig = serde_json::from_str(json).unwrap();
    Fixed::new(&config).unwrap()
}

fn disk(json: &str) -> Disk {
    let config: DiskConfig = serde_json::from_str(json).unwrap();
    Disk::new(&config).unwrap()
}

use Op::{Read, Write};

#[test]
fn fixed_takes_latency_plus_transfer() {
    let mut device = fixed(r#"{"depth": 1, "parallel": 1, "lat_ns": 2000, "ns_per_sector": 10}"#);
    assert_eq!(drive(&mut device, &[(100, Read, 7, 8), (5000, Write, 900, 1)]), [(0, 2180), (1, 7010)]);
}

#[test]
fn fixed_queues_behind_the_server_that_is_free_first() {
    let mut device = fixed(r#"{"depth": 4, "parallel": 2, "lat_ns": 100, "ns_per_sector": 1}"#);
    let submissions = [(0, Read, 0, 50), (0, Read, 0, 10), (0, Read, 0, 10), (0, Read, 0, 10)];
    // One server is busy at 0..150 and 150..260, the other at 0..110 and 110..220.
    assert_eq!(drive(&mut device, &submissions), [(1, 110), (0, 150), (2, 220), (3, 260)]);
}

#[test]
fn fixed_completes_in_order_of_submission_at_equal_times() {
    let mut device = fixed(r#"{"depth": 8, "parallel": 8, "lat_ns": 100, "ns_per_sector": 1}"#);
    let submissions =
        [(0, Read, 0, 20), (10, Read, 0, 10), (5, Read, 0, 15)].map(|(t, op, s, n)| (t.max(10), op, s, n));
    assert_eq!(drive(&mut device, &submissions), [(1, 120), (2, 125), (0, 130)]);
    let submissions = [(1000, Read, 0, 20), (1010, Read, 0, 10), (1015, Read, 0, 5)];
    assert_eq!(drive(&mut device, &submissions), [(0, 1120), (1, 1120), (2, 1120)]);
}

#[test]
fn fixed_has_separate_write_latency_and_timed_steps() {
    let json = r#"{"depth": 1, "parallel": 1, "lat_ns": 100, "ns_per_sector": 0, "write_lat_ns": 300,
        "steps": [{"t_ns": 1000, "lat_ns": 10, "write_lat_ns": 30}, {"t_ns": 2000, "lat_ns": 1, "write_lat_ns": 3}]}"#;
    let submissions = [(0, Read, 0, 8), (500, Write, 0, 8), (999, Read, 0, 8), (1100, Read, 0, 8), (2000, Write, 0, 8)];
    assert_eq!(drive(&mut fixed(json), &submissions), [(0, 100), (1, 800), (2, 1099), (3, 1110), (4, 2003)]);
}

#[test]
fn disk_seeks_by_the_integer_square_root_of_the_distance() {
    let json = r#"{"depth": 4, "seek_a0_ns": 800000, "seek_a1_ns": 200, "rot_ns": 4170000, "ns_per_sector": 3300}"#;
    let submissions = [
        (0, Read, 0, 8),          // no seek, the head is there: 26,400
        (0, Read, 8, 8),          // no seek either: 52,800
        (0, Read, 1_000_016, 16), // isqrt(1,000,000) = 1000: + 800,000 + 200,000 + 4,170,000 + 52,800
        (0, Write, 1_000_017, 1), // 15 sectors back, isqrt = 3: + 800,000 + 600 + 4,170,000 + 3,300
        (20_000_000, Read, 1_000_018, 1),
    ];
    let expected = [(0, 26_400), (1, 52_800), (2, 5_275_600), (3, 10_249_500), (4, 20_003_300)];
    assert_eq!(drive(&mut disk(json), &submissions), expected);
}

#[test]
fn profile_of_kind_disk_builds_a_working_device() {
    let text = "kind = \"disk\"\nabout = \"a toy\"\n[disk]\ndepth = 4\nseek_a0_ns = 800_000\nseek_a1_ns = 200\n\
        rot_ns = 4_170_000\nns_per_sector = 3_300\n";
    let profile = Profile::parse("toy", text).unwrap();
    assert_eq!((profile.name(), profile.about(), profile.card().depth), ("toy", "a toy", 4));
    assert_eq!(drive(&mut profile.device(1), &[(0, Read, 0, 8)]), [(0, 26_400)]);
    assert_eq!(drive(&mut profile.build(2), &[(0, Read, 0, 8)]), [(0, 26_400)]);
}

#[test]
fn errors_name_file_field_problem_and_remedy() {
    let check = |text: &str, parts: &[&str]| {
        let error = Profile::parse("mine.toml", text).unwrap_err().to_string();
        for part in ["mine.toml"].iter().chain(parts) {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    };
    let fixed = "kind = \"fixed\"\n[fixed]\nparallel = 1\nlat_ns = 5\nns_per_sector = 0\n";
    check(fixed, &["missing field `depth`"]);
    check(&format!("{fixed}depth = 0\n"), &["fixed.depth", "0 is out of range", "1 to 65535"]);
    check(&format!("{fixed}depth = 1\nlatency = 3\n"), &["unknown field `latency`", "`lat_ns`", "line 7"]);
    check(&fixed.replace("[fixed]", "[disk]"), &["unknown field"]);
    check("kind = \"disk\"\n", &["disk", "missing", "[disk]"]);
    check("kind = \"drum\"\n", &["unknown variant `drum`"]);
    let error = Profile::load("no-such").unwrap_err().to_string();
    assert!(error.contains("no-such") && error.contains(".toml"), "{error}");
    let error = Profile::load("/no/such.toml").unwrap_err().to_string();
    assert!(error.contains("/no/such.toml"), "{error}");
}
