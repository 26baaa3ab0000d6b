//! `iosched report`: makes the report page of records. Nothing runs again.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueHint};
use iosched_lab::request::{did_you_mean, quoted};
use iosched_lab::{LabError, RecordReader, Records};
use iosched_report::NoPlot;

use iosched_terminal::fail::usage;
use iosched_terminal::output::{self, Kind, LAST_PAGE, Output, Outputs, WriteArgs, say};
use iosched_terminal::show::{self, Page};

/// Make a report from records, without running anything again
///
/// The report is one HTML page without external files. It has tables, verdicts, latency distributions, throughput and
/// shares over time, slices, and the command that produced the records. You can zoom plots and sort tables. In a
/// browser without JavaScript, the page still shows everything. The same records give the same page.
///
/// With --plot, the result is one plot as a picture for a paper or a slide.
#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    /// File of records from `iosched compare`, `tune`, `calibrate` or `reproduce`
    #[arg(value_name = "RECORDS", value_hint = ValueHint::FilePath)]
    records: Option<PathBuf>,
    /// Report on the last comparison that ran without --records
    #[arg(long, conflicts_with = "records")]
    last: bool,
    /// Write one plot of a comparison as a picture, instead of the page; `list` prints the names
    #[arg(long, value_name = "PLOT")]
    plot: Option<String>,
    /// Page or picture to write; - for standard output [default: RECORDS with the extension .html;
    /// last.html with --last]
    ///
    /// For a picture, the default is NAME-PLOT.svg. NAME is RECORDS without its extension, and PLOT
    /// is the name of the plot. The extension .svg, .png or .pdf chooses the format of a picture.
    /// If the file name has no extension, the format is SVG.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Print the metrics and verdicts of a comparison as `iosched compare --csv` does, and write no page
    #[arg(long, conflicts_with_all = ["plot", "output"])]
    csv: bool,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &ReportArgs) -> Result<()> {
    if args.plot.as_deref() == Some("list") {
        return list();
    }
    if args.records.is_none() && !args.last {
        return Err(usage("name a file of records, or add --last to use the records of the last comparison"));
    }
    match &args.plot {
        _ if args.csv => csv(args.records.as_deref()),
        Some(plot) => picture(plot, args),
        None => report(args.records.as_deref(), args.output.as_deref(), args.write),
    }
}

/// Prints the names of the plots.
fn list() -> Result<()> {
    let names = iosched_report::plots();
    let lines: String = names.map(|(name, about)| format!("{name:<15} {about}\n")).collect();
    output::print(&lines)
}

/// Prints metrics and verdicts as CSV. By default, uses the last comparison.
fn csv(path: Option<&Path>) -> Result<()> {
    let path = path.map_or_else(output::last_records, |path| Ok(path.to_owned()))?;
    is_of_comparison(&path, "--csv")?;
    output::print(&show::csv(&Page::of(&open(&path)?, None, None, None)))
}

/// Refuses a file of iosched that contains records, but not records of a comparison.
fn is_of_comparison(path: &Path, option: &str) -> Result<()> {
    std::fs::File::open(path).map_err(|source| LabError::Io { file: path.display().to_string(), source })?;
    let others = [Kind::Search, Kind::Measurements, Kind::Reproduction, Kind::Validation];
    if others.into_iter().any(|kind| kind.recognises(path).unwrap_or(false)) {
        return Err(usage(format!(
            "{}: these are not records of a comparison, so {option} cannot be used",
            path.display()
        )));
    }
    Ok(())
}

/// Reads the records of a comparison. Prints warnings about minor errors in them.
fn open(path: &Path) -> Result<Records> {
    let records = RecordReader::open(path)?;
    records.warnings.iter().for_each(|warning| say!("warning: {warning}"));
    Ok(records)
}

/// Writes a plot to a picture file.
fn picture(plot: &str, args: &ReportArgs) -> Result<()> {
    let names = || iosched_report::plots().map(|(name, _)| name);
    if !names().any(|name| name == plot) {
        let (all, meant) = (names().collect::<Vec<_>>().join(", "), did_you_mean(plot, names()));
        return Err(usage(format!("--plot {plot}: there is no plot with this name; available: {all}{meant}")));
    }
    let (path, default) = match &args.records {
        Some(path) => {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            (path.clone(), path.with_file_name(format!("{name}-{plot}.svg")))
        }
        None => (output::last_records()?, PathBuf::from(format!("last-{plot}.svg"))),
    };
    let file = args.output.as_deref().unwrap_or(&default);
    let format = Format::of(file)?;
    is_of_comparison(&path, "--plot")?;
    let mut outputs = Outputs::new(args.write).reads(&path);
    let out = outputs.output("-o", file, Kind::Picture)?;
    let records = open(&path)?;
    let svg = iosched_report::plot_svg(&records, plot).map_err(|reason| match reason {
        NoPlot::Unknown => usage(format!("--plot {plot}: there is no plot with this name")),
        NoPlot::Empty => usage(format!("--plot {plot}: {}: these records have no data for this plot", path.display())),
    })?;
    let bytes = format.convert(svg)?;
    out.write(|writer| Ok(writer.write_all(&bytes)?))?;
    announce(&out, &format!("plot {plot}"), &path);
    Ok(())
}

/// Format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Svg,
    Png,
    Pdf,
}

impl Format {
    /// Returns the format for the extension of a file name. Without an extension, it is SVG.
    fn of(file: &Path) -> Result<Self> {
        let end = file.extension().map(|end| end.to_string_lossy().to_lowercase());
        let format = match end.as_deref() {
            None | Some("svg") => Self::Svg,
            Some("png") => Self::Png,
            Some("pdf") => Self::Pdf,
            Some(_) => {
                return Err(usage(format!("{}: the name of a picture must end in .svg, .png or .pdf", file.display())));
            }
        };
        if format != Self::Svg && !cfg!(feature = "pictures") {
            let problem = "this build of iosched draws only SVG; name the file *.svg, or build with --features full for PNG and \
                 PDF";
            return Err(usage(format!("{}: {problem}", file.display())));
        }
        Ok(format)
    }

    #[cfg(feature = "pictures")]
    fn convert(self, svg: String) -> Result<Vec<u8>> {
        let picture = match self {
            Self::Svg => return Ok(svg.into_bytes()),
            Self::Png => iosched_report::png(&svg),
            Self::Pdf => iosched_report::pdf(&svg),
        };
        picture.map_err(|problem| anyhow::anyhow!("the picture cannot be drawn: {problem}"))
    }

    #[cfg(not(feature = "pictures"))]
    #[expect(clippy::unnecessary_wraps, reason = "with pictures it can fail")]
    fn convert(self, svg: String) -> Result<Vec<u8>> {
        Ok(svg.into_bytes())
    }
}

/// Writes the report page of records. By default, uses the last comparison.
fn report(path: Option<&Path>, page: Option<&Path>, args: WriteArgs) -> Result<()> {
    let (path, page, of_last) = match path {
        Some(path) => (path.to_owned(), page.map_or_else(|| path.with_extension("html"), Path::to_owned), false),
        None => (output::last_records()?, page.unwrap_or(Path::new(LAST_PAGE)).to_owned(), true),
    };
    std::fs::File::open(&path).map_err(|source| LabError::Io { file: path.display().to_string(), source })?;
    if Kind::Validation.recognises(&path).unwrap_or(false) {
        let shown = quoted(&path.to_string_lossy());
        return Err(usage(format!(
            "{}: these records are from iosched validate, which has no report; show them with iosched validate \
             --from {shown} --profile P",
            path.display()
        )));
    }
    let mut outputs = Outputs::new(args).reads(&path);
    let out = outputs.output("-o", &page, Kind::Page)?;
    let readers = [crate::tune::page_of, crate::calibrate::page_of, crate::reproduce::page_of];
    let other = readers.into_iter().find_map(|read| read(&path).transpose()).transpose()?;
    let html = match other {
        Some(html) => html,
        None => html(&open(&path)?, (!of_last).then_some(&*path)),
    };
    out.text(&html)?;
    announce(&out, "report", &path);
    Ok(())
}

/// Prints the name of the output file.
fn announce(out: &Output, what: &str, records: &Path) {
    if out.is_file() {
        say!("{}: the {what} of {}", out.name().display(), records.display());
    }
}

/// Returns the report page of a comparison. The page contains the name of the file of records,
/// unless the next comparison will replace that file.
pub(crate) fn html(records: &Records, path: Option<&Path>) -> String {
    let name = path.map(|path| path.display().to_string());
    iosched_report::html(records, name.as_deref())
}
