//! `iosched calibrate --table` and `iosched validate --table`: profiles and tables of results.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use iosched_advise::calibrate::{CalibrateError, Calibration, Table, Target};
use iosched_disk::Profile;
use iosched_terminal::fail::{FAILED, all_of, usage};
use iosched_terminal::output::{Kind, Outputs};
use iosched_terminal::show::{answer, tables};

use super::CalibrateArgs;
use crate::import;
use crate::invocation::Invocation;

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
    let written = out.map(|out| out.text(&(tables::comments(&calibration, &given.rerun().to_string()) + &profile)));
    let text = if args.json {
        tables::json(&table, &calibration)?
    } else {
        tables::text(&calibration, args.output.as_deref())
    };
    all_of(written.into_iter().chain([answer(&text, args.json)]))?;
    Ok(if calibration.verdict.fits { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

/// Prints the rows of a table that the fit of a profile did not use, with predicted and measured
/// values.
pub(crate) fn validate(profile: &Profile, file: &Path, as_json: bool) -> Result<ExitCode> {
    let table = read(file)?;
    let rows = Calibration::unused_rows(&table, profile).map_err(usage_of)?;
    if rows.is_empty() {
        let name = profile.name();
        return Err(usage(format!(
            "{}: profile {name} was fitted to all rows of this table, so no row is left for the validation; give a \
             table with other rows",
            table.file
        )));
    }
    let text = if as_json {
        tables::unused_rows_json(profile, &table, &rows)?
    } else {
        tables::unused_rows_text(profile, &table, &rows)
    };
    answer(&text, as_json)?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<Table> {
    Table::read(&file.display().to_string(), &import::read(file)?).map_err(usage_of)
}

/// Converts an error. A table that is invalid or does not suit the fit is a usage error.
fn usage_of(error: CalibrateError) -> anyhow::Error {
    match error {
        CalibrateError::Table { .. } | CalibrateError::NoKind { .. } | CalibrateError::Incomplete { .. } => {
            usage(error)
        }
        error => error.into(),
    }
}
