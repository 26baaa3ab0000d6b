//! `iosched calibrate --table` and `iosched validate --table`: profiles and tables of results.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use iosched_advise::calibrate::{CalibrateError, Calibration, Residual, Table, Target, WITHIN};
use iosched_disk::Profile;
use iosched_lab::request::quoted;
use iosched_terminal::fail::{FAILED, all_of, usage};
use iosched_terminal::output::{Kind, Outputs};
use iosched_terminal::show::{answer, calibration as show};
use serde_json::{Value, json};

use super::CalibrateArgs;
use crate::import;
use crate::invocation::Invocation;

/// Largest relative error of a 99th percentile that counts as reached.
const TAIL_WITHIN: f64 = 0.25;

pub(super) fn run(args: &CalibrateArgs, given: &Invocation, file: &Path, name: &str) -> Result<ExitCode> {
    let table = read(file)?;
    let mut outputs = Outputs::new(args.write).prints("the result").reads(file);
    let out = outputs.optional("--output", args.output.as_ref(), Kind::Profile)?;
    let target = Target {
        name: table.file.clone(),
        model_name: None,
        capacity_sectors: args.size * 1_000_000_000 / 512,
        depth: args.depth.into(),
        max_sectors_kb: 1024,
        rotational: false,
        write_cache: true,
        fua: false,
        writable: true,
        conditions: Vec::new(),
    };
    let calibration = Calibration::of_table(&table, &target, name, args.kind).map_err(usage_of)?;
    let profile = calibration.profile.to_toml()?;
    let written = out.map(|out| out.text(&(preface(given, &calibration) + &profile)));
    let text = if args.json { as_json(&table, &calibration)? } else { as_text(args, &calibration) };
    all_of(written.into_iter().chain([answer(&text, args.json)]))?;
    Ok(if calibration.verdict.fits { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Prints the rows of a table that the fit of a profile did not use, predicted beside measured.
pub(crate) fn validate(profile: &Profile, file: &Path, as_json: bool) -> Result<ExitCode> {
    let table = read(file)?;
    let rows = Calibration::unused_rows(&table, profile).map_err(usage_of)?;
    if rows.is_empty() {
        let name = profile.name();
        return Err(usage(format!(
            "{}: the fit of {name} used all rows of this table; give a table with other rows",
            table.file
        )));
    }
    let used = table.rows.len() - rows.len();
    let text = if as_json {
        let document = json!({
            "profile": profile.name(), "table": table.file, "used_rows": used, "rows": show::rows(&rows),
            "rates": counted(&rows, |row| row.iops.difference(), WITHIN),
            "p99": counted(&rows, |row| row.p99_ns.difference(), TAIL_WITHIN),
        });
        serde_json::to_string_pretty(&document)? + "\n"
    } else {
        let mut text = format!("{}    {}\n", profile.name(), profile.about());
        let _ = writeln!(text, "{} rows of {}; the fit used {used} other rows\n", rows.len(), table.file);
        show::table(&mut text, "rows that the fit did not use", &rows);
        let [rates, all] = counted(&rows, |row| row.iops.difference(), WITHIN);
        let [tails, of] = counted(&rows, |row| row.p99_ns.difference(), TAIL_WITHIN);
        let _ = writeln!(
            text,
            "\n{rates} of {all} rates are within {:.0} %, and {tails} of {of} p99 are within {:.0} %",
            WITHIN * 100.0,
            TAIL_WITHIN * 100.0
        );
        text
    };
    answer(&text, as_json)?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<Table> {
    Table::read(&file.display().to_string(), &import::read(file)?).map_err(usage_of)
}

/// A table that is not valid, or does not suit the fit, is an error of usage.
fn usage_of(error: CalibrateError) -> anyhow::Error {
    match error {
        CalibrateError::Table { .. } | CalibrateError::NoKind { .. } | CalibrateError::Incomplete { .. } => {
            usage(error)
        }
        error => error.into(),
    }
}

/// Returns the number of known values within a relative error, and of all known values.
fn counted(rows: &[Residual], difference: impl Fn(&Residual) -> f64, within: f64) -> [usize; 2] {
    let known: Vec<f64> = rows.iter().map(difference).filter(|difference| difference.is_finite()).collect();
    [known.iter().filter(|difference| difference.abs() <= within).count(), known.len()]
}

/// Returns comments about how the profile was made.
fn preface(given: &Invocation, calibration: &Calibration) -> String {
    format!(
        "# A model of a device, calibrated by iosched {} from a table of results.\n#\n# Made by: {}\n# {}.\n\n",
        env!("CARGO_PKG_VERSION"),
        given.rerun(),
        calibration.verdict
    )
}

fn as_text(args: &CalibrateArgs, calibration: &Calibration) -> String {
    let mut text = String::new();
    show::table(&mut text, "rows", &calibration.residuals);
    if !calibration.held_out.is_empty() {
        text.push('\n');
        show::table(&mut text, "rows that the fit did not use", &calibration.held_out);
    }
    text.push('\n');
    show::kinds(&mut text, calibration);
    for missed in missed(&calibration.residuals) {
        let _ = writeln!(text, "not reached: {missed}");
    }
    let _ = writeln!(text, "{}", calibration.verdict);
    if let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) {
        let path = quoted(&path.to_string_lossy());
        let _ = writeln!(text, "next: iosched device show {path} --assumptions");
    }
    text
}

/// Returns each rate and 99th percentile that the model does not reach, in words.
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

fn as_json(table: &Table, calibration: &Calibration) -> Result<String> {
    let document: Value = json!({
        "table": table.file,
        "rows": show::rows(&calibration.residuals),
        "held_out": show::rows(&calibration.held_out),
        "kinds": show::kinds_json(calibration),
        "not_reached": missed(&calibration.residuals),
        "fitted": calibration.profile.fitted_to(),
        "assumed": calibration.profile.assumed(),
        "verdict": calibration.verdict,
        "answer": calibration.verdict.to_string(),
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
