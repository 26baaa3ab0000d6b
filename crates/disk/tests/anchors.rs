//! Comparison of the profiles with measurements of their devices.
//!
//! `cargo test -p iosched-disk anchors:: -- --nocapture` prints the metrics.

use iosched_disk::measure::{Figure, Quantity, Unit, data_sheet, measure, measure_anchor};
use iosched_disk::{Device, Profile};

/// Largest deviation of a model from the real device, as a share.
const TOLERANCE: f64 = 0.10;

#[test]
fn every_profile_meets_its_anchors() {
    let mut off = Vec::new();
    for name in Profile::names() {
        let profile = Profile::named(name).unwrap();
        for anchor in profile.anchors() {
            let measured = measure_anchor(&profile, anchor).expect("the profile has the metric of the anchor");
            let deviation = measured.deviation().expect("the measurement has an anchor");
            let line = format!(
                "{name} {}: {:.2} {}, not {} by {} ({:+.1} %)",
                anchor.figure,
                measured.value,
                anchor.unit,
                anchor.value,
                anchor.source,
                deviation * 100.0
            );
            println!("{line}");
            if deviation.abs() > TOLERANCE {
                off.push(line);
            }
        }
    }
    assert!(off.is_empty(), "off by more than 10 %:\n{}", off.join("\n"));
}

#[test]
fn a_rotating_disk_writes_as_fast_as_it_reads() {
    let profile = Profile::named("sata-7200").unwrap();
    let read = measure(&profile, Figure::SequentialReadOuterEdge).unwrap();
    let written = measure(&profile, Figure::SequentialWriteOuterEdge).unwrap();
    assert!((written / read - 1.0).abs() < 0.05, "read {read} B/s, written {written} B/s");
}

#[test]
fn built_in_profiles_are_sorted_and_described() {
    for name in Profile::names() {
        let profile = Profile::named(name).unwrap();
        assert_eq!(profile.name(), name);
        assert!(!profile.about().is_empty() && !profile.anchors().is_empty());
        assert_eq!(profile.card(), profile.device(3).card());
    }
    assert!(Profile::names().is_sorted());
}

#[test]
fn data_sheets_are_complete_and_reproducible() {
    let profile = Profile::named("sata-ssd").unwrap();
    let sheet = data_sheet(&profile);
    for anchor in profile.anchors() {
        assert!(sheet.figures.iter().any(|measured| measured.anchor.as_ref() == Some(anchor)));
    }
    assert!(sheet.figures.iter().all(|measured| measured.value.is_finite() && measured.value > 0.0));
    assert!(sheet.figures.windows(2).all(|pair| pair[0].figure < pair[1].figure));
    assert_eq!(sheet.distributions.len(), 4);
    assert_eq!(sheet.figures, data_sheet(&profile).figures);
}

const FIXED: &str = "kind = \"fixed\"\n[fixed]\ndepth = 1\nparallel = 1\nlat_ns = 1000\nns_per_sector = 1\n";

#[test]
fn anchors_that_cannot_be_measured_are_refused() {
    let check = |figure: &str, value: &str, unit: &str, expected: &[&str]| {
        let anchor =
            format!("[[anchors]]\nfigure = \"{figure}\"\nvalue = {value}\nunit = \"{unit}\"\nsource = \"me\"\n");
        let error = Profile::parse("mine.toml", &format!("{FIXED}{anchor}")).unwrap_err().to_string();
        for part in ["mine.toml"].iter().chain(expected) {
            assert!(error.contains(part), "{part:?} is not in {error:?}");
        }
    };
    check("speed", "1.0", "IOPS", &["line 8", "no metric \"speed\"", "random_read_4k_depth_1"]);
    check(
        "random_read_4k_depth_1",
        "1.0",
        "ms",
        &["anchors[0].unit", "cannot have the unit ms", "the unit must be IOPS"],
    );
    check("random_read_4k_latency", "1.0", "IOPS", &["the unit must be ms or us"]);
    check("random_read_4k_latency", "1.0", "ns", &["line 10", "ns"]);
    check("random_read_4k_latency", "0.0", "ms", &["anchors[0].value", "out of range"]);
    check("random_read_4k_latency", "nan", "ms", &["anchors[0].value", "out of range"]);
    check("average_read_seek", "1.0", "ms", &["anchors[0].figure", "no metric average_read_seek"]);
    let twice =
        "[[anchors]]\nfigure = \"random_read_4k_depth_1\"\nvalue = 1.0\nunit = \"IOPS\"\nsource = \"me\"\n".repeat(2);
    let error = Profile::parse("mine.toml", &format!("{FIXED}{twice}")).unwrap_err().to_string();
    assert!(error.contains("anchors[1].figure: random_read_4k_depth_1 is given twice"), "{error}");
}

#[test]
fn every_quantity_has_a_unit() {
    for quantity in [Quantity::Time, Quantity::Rate, Quantity::Throughput, Quantity::Ratio] {
        assert!(Unit::ALL.iter().any(|unit| unit.quantity() == quantity));
    }
}
