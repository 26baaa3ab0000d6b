//! Tests of the page of a calibration: it is complete and reproducible, and has all measurements.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use iosched_advise::calibrate::{Calibration, Measurements, Pace, Progress, Role, Simulated, measure};
use iosched_disk::Profile;
use iosched_report::calibration_html;

/// A short pace, because the results are not judged here.
const PACE: Pace = Pace { probe_ns: 50_000_000, ios: 100, ios_max: 300, ..Pace::SIMULATED };

/// Measures a device of this profile. Stops after `samples` runs.
fn measured(profile: &str, samples: usize) -> Measurements {
    let mut device = Simulated::new(Profile::named(profile).unwrap());
    let interrupt = AtomicBool::new(false);
    let mut count = 0;
    let measurements = measure(&mut device, PACE, 1, "iosched calibrate mine", &interrupt, |progress| {
        count += usize::from(matches!(progress, Progress::Sample(_)));
        interrupt.store(count >= samples, Ordering::Relaxed);
        Ok(())
    });
    measurements.unwrap()
}

/// Returns the checked page of `measurements` and `profile`.
#[track_caller]
fn page(measurements: &Measurements, profile: &str) -> (String, Calibration) {
    let calibration = Calibration::check(measurements, &Profile::named(profile).unwrap()).unwrap();
    let html = calibration_html(measurements, &calibration);
    assert_eq!(html, calibration_html(measurements, &calibration), "the page of the same measurements differs");
    common::whole_page(&html);
    (html, calibration)
}

#[test]
fn verdict_comes_first_and_page_has_all_measurements() {
    let mut measurements = measured("nvme", usize::MAX);
    measurements.header.target.conditions = vec!["/dev/x, scheduler none".to_owned()];
    measurements.warnings = vec!["line 9 is cut short".to_owned()];
    let (html, calibration) = page(&measurements, "nvme");
    let verdict = calibration.verdict.to_string().replace(" %", "\u{a0}%");
    let at = html.find(&verdict[1..]).expect("the verdict");
    assert!(at < html.find("<section").unwrap() && html.contains("<li>Line 9 is cut short.</li>"));
    let is_seen = |role: Role| !matches!(role, Role::Pilot | Role::Saturation);
    for probe in measurements.header.probes.iter().filter(|probe| is_seen(probe.role)) {
        assert!(html.contains(&format!(">{probe}<")), "{probe}");
    }
    let places = common::whole_page(&html);
    for id in [
        "held-out",
        "probes",
        "models",
        "io-cost",
        "conditions",
        "plots",
        "depth-iops-t",
        "depth-p99-t",
        "depth-writes-t",
        "size-random-t",
        "place-t",
    ] {
        assert!(places.contains(&format!("calibration-{id}")), "{id}: {places:?}");
    }
    for part in [
        "<pre>ctrl=user model=linear rbps=",
        "IOCOST_QOS_MEASURED=rpct=95.00 rlat=",
        "/dev/x, scheduler none",
        "<pre>iosched calibrate mine</pre>",
        "# A model of nvme",
        "2 rounds",
    ] {
        assert!(html.contains(part), "{part}");
    }
    // The plot has random reads of 4 KiB at all eight depths. The dots of measurements that the fit
    // did not use are hollow.
    let from = html.find("aria-labelledby=\"calibration-depth-iops-t").unwrap();
    let plot = &html[from..from + html[from..].find("</svg>").unwrap()];
    assert_eq!([r#"class="dot""#, r#"class="hollow""#].map(|mark| plot.matches(mark).count()), [5, 3], "{plot}");
}

#[test]
fn page_marks_a_model_that_is_far_off() {
    let measurements = measured("sata-7200", usize::MAX);
    let (near, _) = page(&measurements, "sata-7200");
    let (far, calibration) = page(&measurements, "nvme");
    assert!(!calibration.verdict.fits && far.contains("No model fits: ssd is closest"));
    let bold = |html: &str| html.matches("%</b>").count();
    assert!(bold(&far) > bold(&near) + 50, "{} {}", bold(&far), bold(&near));
}

#[test]
fn page_leaves_out_unmeasured_values() {
    let mut measurements = measured("nvme", 1);
    measurements.header.target.name = "<&\"mine\">".to_owned();
    let (html, _) = page(&measurements, "nvme");
    let places = common::whole_page(&html);
    assert!(!places.contains("calibration-held-out") && !places.contains("calibration-plots"), "{places:?}");
    assert!(html.contains("Calibration of &lt;&amp;&quot;mine&quot;&gt;"));
}
