//! `iosched report`: the page of records, without running anything again.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_lab::{LabError, RecordReader, Records};

use crate::fail::usage;
use crate::options::quoted;
use crate::output::{self, Kind, LAST_PAGE, Outputs, WriteArgs};

/// Make a report of records, without running anything again
///
/// The report is one HTML page that needs nothing else: tables and verdicts, latency distributions, throughput and
/// shares over time, slices, and how to make the records again. The same records give the same page.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// A file that `iosched compare`, `tune` or `calibrate` left
    #[arg(value_name = "RECORDS", value_hint = ValueHint::FilePath)]
    records: Option<PathBuf>,
    /// Of the last comparison that was given no --records
    #[arg(long, conflicts_with = "records")]
    last: bool,
    /// The page to write; - for standard output [default: the name of RECORDS, ending in .html; last.html with
    /// --last]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if args.records.is_none() && !args.last {
        return Err(usage("name a file of records, or say --last for those of the last comparison"));
    }
    report(args.records.as_deref(), args.output.as_deref(), args.write)
}

/// Everything again from records; from those of the last comparison, if no others are named.
fn report(path: Option<&Path>, page: Option<&Path>, args: WriteArgs) -> Result<()> {
    let (path, page, of_last) = match path {
        Some(path) => (path.to_owned(), page.map_or_else(|| path.with_extension("html"), Path::to_owned), false),
        None => (output::last_records()?, page.unwrap_or(Path::new(LAST_PAGE)).to_owned(), true),
    };
    std::fs::File::open(&path).map_err(|source| LabError::Io { file: path.display().to_string(), source })?;
    if Kind::Validation.recognises(&path).unwrap_or(false) {
        let shown = quoted(&path.to_string_lossy());
        return Err(usage(format!(
            "{}: is of a validation, which has no page: iosched validate --from {shown} --profile P shows it",
            path.display()
        )));
    }
    let mut outputs = Outputs::new(args).reads(&path);
    let out = outputs.output("-o", &page, Kind::Page)?;
    let other = match crate::tune::page_of(&path)? {
        Some(html) => Some(html),
        None => crate::calibrate::page_of(&path)?,
    };
    let html = match other {
        Some(html) => html,
        None => {
            let records = RecordReader::open(&path)?;
            records.warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
            html(&records, (!of_last).then_some(&*path))
        }
    };
    out.text(&html)?;
    if of_last && !out.is_standard_output() {
        eprintln!("{}: the report of {}", page.display(), path.display());
    }
    Ok(())
}

/// The page; it names the file of records, unless that is another's with the next comparison.
pub(crate) fn html(records: &Records, path: Option<&Path>) -> String {
    let name = path.map(|path| path.display().to_string());
    iosched_report::html(records, name.as_deref())
}
