//! Pages in a real browser: `tests/browser/pages.test.js`, run by Node.js in a headless Chromium.
//!
//! What it needs are `node`, `chromium` and, once, `npm ci` in `tests/browser`. Where one of them is missing that is
//! said, and with CI set it is a failure.

mod samples;

use std::path::{Path, PathBuf};
use std::process::Command;

use iosched_lab::MeasuredRecord;
use samples::{MIXED, records_on};

/// Programs that are a Chromium.
const BROWSERS: [&str; 4] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];

/// The browser; what is missing, if anything is.
fn browser(scripts: &Path) -> Result<PathBuf, String> {
    if !Command::new("node").arg("--version").output().is_ok_and(|said| said.status.success()) {
        return Err("there is no node".to_owned());
    }
    if !scripts.join("node_modules/playwright-core").is_dir() {
        return Err(format!("npm ci was not run in {}", scripts.display()));
    }
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    let found = named.or_else(|| BROWSERS.iter().map(PathBuf::from).find(|path| path.exists()));
    found.ok_or_else(|| "there is no chromium; CHROMIUM names another".to_owned())
}

/// The pages that are looked at.
fn make(pages: &Path) {
    let settings = ["deadline", "cfq", "cfq:slice_idle=0,quantum=32", "bfq"];
    let one = records_on(MIXED, &settings, 3, &["sata-7200"]);
    let several = records_on(MIXED, &["deadline", "cfq"], 2, &["sata-7200", "sata-ssd"]);
    let mut real = records_on(MIXED, &["noop", "cfq"], 3, &["sata-ssd"]);
    real.header.devices[0].measured = Some(MeasuredRecord::default());
    for own in &mut real.timelines {
        own.timeline = iosched_sim::Timeline::from(std::mem::take(&mut own.timeline.io));
    }
    for (name, records) in [("one", one), ("several", several), ("real", real)] {
        let page = pages.join(format!("{name}.html"));
        std::fs::write(page, iosched_report::html(&records, Some("records.jsonl")))
            .expect("a page that can be written");
    }
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
    std::fs::create_dir_all(&pages).expect("a folder for pages");
    make(&pages);
    let said = Command::new("node")
        .args(["--test", "pages.test.js"])
        .current_dir(&scripts)
        .env("PAGES", &pages)
        .env("CHROMIUM", &browser)
        .output()
        .expect("node runs");
    let text = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{text}\n{}", String::from_utf8_lossy(&said.stderr));
    println!("{text}");
}
