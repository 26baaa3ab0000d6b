//! The results of a fit to a table of measurements, as text and as JSON.

use std::fmt::Write as _;
use std::path::Path;

use iosched_advise::calibrate::{Calibration, Residual, Table, WITHIN};
use iosched_disk::Profile;
use iosched_lab::request::quoted;

use super::calibration;

/// Largest relative error of a 99th percentile that the model meets.
const TAIL_WITHIN: f64 = 0.25;

/// Returns, as one JSON document, the rows of a table that the fit of a profile did not use, with
/// predicted and measured values.
///
/// # Errors
/// The rows cannot be written as JSON.
pub fn unused_rows_json(profile: &Profile, table: &Table, rows: &[Residual]) -> anyhow::Result<String> {
    let used = table.rows.len() - rows.len();
    let document = serde_json::json!({
        "profile": profile.name(), "table": table.file, "used_rows": used, "rows": calibration::rows(rows),
        "rates": counted(rows, |row| row.iops.difference(), WITHIN),
        "p99": counted(rows, |row| row.p99_ns.difference(), TAIL_WITHIN),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns, as text, the rows of a table that the fit of a profile did not use, with predicted and
/// measured values.
pub fn unused_rows_text(profile: &Profile, table: &Table, rows: &[Residual]) -> String {
    let used = table.rows.len() - rows.len();
    let mut text = format!("{}    {}\n", profile.name(), profile.about());
    let _ = writeln!(text, "{} rows of {}; the fit used {used} other rows\n", rows.len(), table.file);
    calibration::table(&mut text, "rows that the fit did not use", rows);
    let [rates, all] = counted(rows, |row| row.iops.difference(), WITHIN);
    let [tails, of] = counted(rows, |row| row.p99_ns.difference(), TAIL_WITHIN);
    let _ = writeln!(
        text,
        "\n{rates} of {all} rates are within {:.0} %, and {tails} of {of} p99 are within {:.0} %",
        WITHIN * 100.0,
        TAIL_WITHIN * 100.0
    );
    text
}

/// Returns comments about how the profile was made.
pub fn comments(fit: &Calibration, command: &str) -> String {
    format!(
        "# A model of a device, calibrated by iosched {} from a table of results.\n#\n# Made by: {command}\n# {}.\n\n",
        env!("CARGO_PKG_VERSION"),
        fit.verdict
    )
}

/// Returns the result of a fit to a table as text. `output` is the file of the profile, for the
/// next command.
pub fn text(fit: &Calibration, output: Option<&Path>) -> String {
    let mut text = String::new();
    calibration::table(&mut text, "rows", &fit.residuals);
    if !fit.held_out.is_empty() {
        text.push('\n');
        calibration::table(&mut text, "rows that the fit did not use", &fit.held_out);
    }
    text.push('\n');
    calibration::kinds(&mut text, fit);
    for missed in missed(&fit.residuals) {
        let _ = writeln!(text, "not reached: {missed}");
    }
    let _ = writeln!(text, "{}", fit.verdict);
    if let Some(path) = output.filter(|path| *path != Path::new("-")) {
        let path = quoted(&path.to_string_lossy());
        let _ = writeln!(text, "next: iosched device show {path} --assumptions");
    }
    text
}

/// Returns a text about each rate and 99th percentile that the model does not meet.
fn missed(residuals: &[Residual]) -> Vec<String> {
    let mut missed = Vec::new();
    for row in residuals {
        for (what, difference, within) in
            [("rate", row.iops.difference(), WITHIN), ("p99", row.p99_ns.difference(), TAIL_WITHIN)]
        {
            if difference.abs() > within {
                missed.push(format!("{what} of {}, {:+.0} %", row.probe, difference * 100.0));
            }
        }
    }
    missed
}

/// Returns the result of a fit to a table as one JSON document.
///
/// # Errors
/// The result cannot be written as JSON.
pub fn json(table: &Table, fit: &Calibration) -> anyhow::Result<String> {
    let document = serde_json::json!({
        "table": table.file,
        "rows": calibration::rows(&fit.residuals),
        "held_out": calibration::rows(&fit.held_out),
        "kinds": calibration::kinds_json(fit),
        "not_reached": missed(&fit.residuals),
        "fitted": fit.profile.fitted_to(),
        "assumed": fit.profile.assumed(),
        "verdict": fit.verdict,
        "answer": fit.verdict.to_string(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns the number of known values whose error is at most `within`, and the number of all known
/// values.
fn counted(rows: &[Residual], difference: impl Fn(&Residual) -> f64, within: f64) -> [usize; 2] {
    let known: Vec<f64> = rows.iter().map(difference).filter(|difference| difference.is_finite()).collect();
    [known.iter().filter(|difference| difference.abs() <= within).count(), known.len()]
}
