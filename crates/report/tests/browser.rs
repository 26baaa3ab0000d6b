//! Tests of pages in a real browser: `tests/browser/pages.test.js`, run by Node.js in a headless
//! Chromium.
//!
//! They need `node`, `chromium` and one run of `npm ci` in `tests/browser`. If a program or a
//! package is missing, the test prints this reason and is skipped. If CI is set, the test fails
//! instead.

mod samples;

use std::path::{Path, PathBuf};
use std::process::Command;

use iosched::Op;
use iosched_advise::calibrate::{Calibration, Pace, Simulated, measure};
use iosched_advise::tune::{Selection, TuneResults, Tuning, tune};
use iosched_disk::Profile;
use iosched_disk::disksim::Service;
use iosched_lab::validate::validate;
use iosched_lab::{Control, MeasuredRecord};
use samples::{MIXED, experiment_on, records_on};

/// Paths of Chromium browsers.
const BROWSERS: [&str; 4] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];

/// Returns the path of the browser. The error names the missing program.
fn browser(scripts: &Path) -> Result<PathBuf, String> {
    if !Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Err("node is not installed".to_owned());
    }
    if !scripts.join("node_modules/playwright-core").is_dir() {
        return Err(format!("npm ci was not run in {}", scripts.display()));
    }
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let found = named.or_else(|| BROWSERS.iter().map(PathBuf::from).find(|path| path.exists()));
    found.ok_or_else(|| "chromium is not installed; to use another browser, set CHROMIUM to its path".to_owned())
}

/// Writes the pages under test.
fn make(pages: &Path) {
    let settings = ["deadline", "cfq", "cfq:slice_idle=0,quantum=32", "bfq"];
    let one = records_on(MIXED, &settings, 3, &["sata-7200"]);
    let several = records_on(MIXED, &["deadline", "cfq"], 2, &["sata-7200", "sata-ssd"]);
    let mut real = records_on(MIXED, &["noop", "cfq"], 3, &["sata-ssd"]);
    real.header.devices[0].measured = Some(MeasuredRecord::default());
    for record in &mut real.timelines {
        record.timeline = iosched_sim::Timeline::from(std::mem::take(&mut record.timeline.io));
    }
    for (name, records) in [("one", one), ("several", several), ("real", real)] {
        let page = pages.join(format!("{name}.html"));
        std::fs::write(page, iosched_report::html(&records, Some("records.jsonl"))).expect("the page is written");
    }
    for (name, page) in [("tuned", tuned()), ("calibrated", calibrated()), ("validated", validated())] {
        std::fs::write(pages.join(format!("{name}.html")), page).expect("the page is written");
    }
}

/// Runs a search for two conflicting goals.
fn tuned() -> String {
    let goals = ["p99(reader)", "throughput"].map(|goal| goal.parse().expect("a goal"));
    let experiment = experiment_on(MIXED, &["deadline", "cfq"], &["sata-7200"]);
    let mut tuning = Tuning::new(experiment, &Selection::default(), goals.into()).expect("a search");
    tuning.budget = 60;
    let search = tune(&tuning, &Control::new(2), |_| Ok(())).expect("the search succeeds");
    let results = TuneResults::of(&search.header, &search.runs);
    assert!(results.front.len() > 1, "the goals do not conflict");
    iosched_report::tuning_html(&results)
}

fn calibrated() -> String {
    let profile = Profile::named("sata-ssd").expect("a profile");
    let pace = Pace { probe_ns: 50_000_000, ios: 100, ios_max: 300, ..Pace::SIMULATED };
    let never = std::sync::atomic::AtomicBool::new(false);
    let mut device = Simulated::new(profile.clone());
    let measured = measure(&mut device, pace, 1, "iosched calibrate mine", &never, |_| Ok(())).expect("measurements");
    let calibration = Calibration::check(&measured, &profile).expect("the calibration can be checked");
    iosched_report::calibration_html(&measured, &calibration)
}

/// Validates the model of one disk with the recording of another disk.
fn validated() -> String {
    let services = (0..400u64).map(|number| Service {
        op: if number % 4 == 0 { Op::Write } else { Op::Read },
        sector: number * 7_919_113 % 40_000_000,
        nr_sectors: 8,
        service_ns: 2_000_000 + number * 61_001 % 9_000_000,
        next_ns: 1_000_000,
    });
    let profile = Profile::named("sata-7200").expect("a profile");
    iosched_report::validation_html(&validate(&profile, "mine.trace", &services.collect::<Vec<_>>(), 1))
}

#[test]
fn pages_work_in_a_real_browser() {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    let browser = match browser(&scripts) {
        Ok(browser) => browser,
        Err(missing) => {
            assert!(std::env::var_os("CI").is_none(), "{missing}");
            eprintln!("skipped: {missing}");
            return;
        }
    };
    let pages = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    std::fs::create_dir_all(&pages).expect("a directory for pages");
    make(&pages);
    let output = Command::new("node")
        .args(["--test", "pages.test.js"])
        .current_dir(&scripts)
        .env("PAGES", &pages)
        .env("CHROMIUM", &browser)
        .output()
        .expect("node starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    println!("{text}");
}
