//! Reader of tables of measurements: CSV with a header and one line per figure.

use std::collections::BTreeMap;

use iosched::Setting;

use super::case::{Figure, MeasuredCase, Metric, Source};
use super::{isolation, latency, mails};
use crate::error::LabError;

/// A line of a table, with access by column.
pub(super) struct Line<'a> {
    file: &'a str,
    columns: &'a BTreeMap<String, usize>,
    record: csv::StringRecord,
}

impl Line<'_> {
    pub(super) fn error(&self, problem: String) -> LabError {
        let line = self.record.position().map_or(0, csv::Position::line);
        LabError::Data { file: self.file.to_owned(), problem: format!("line {line}: {problem}") }
    }

    pub(super) fn text(&self, column: &str) -> Result<&str, LabError> {
        let field = self.columns.get(column).and_then(|&column| self.record.get(column));
        field.ok_or_else(|| self.error(format!("there is no column {column}")))
    }

    pub(super) fn number<T: std::str::FromStr>(&self, column: &str) -> Result<T, LabError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| self.error(format!("{column}: {text:?} is not a valid number for this column")))
    }
}

/// Reads the table of a source. `file` is its name in messages.
///
/// # Errors
/// A column is missing, or a value is not valid for its column. The message contains the file and
/// the line.
pub(super) fn read(source: Source, file: &str, text: &str) -> Result<Vec<MeasuredCase>, LabError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let wrong = |error: &csv::Error| LabError::Data { file: file.to_owned(), problem: error.to_string() };
    let header = reader.headers().map_err(|error| wrong(&error))?;
    let columns: BTreeMap<String, usize> = header.iter().map(str::to_owned).zip(0..).collect();
    let line = |record: Result<csv::StringRecord, csv::Error>| {
        record.map(|record| Line { file, columns: &columns, record }).map_err(|error| wrong(&error))
    };
    let of_lines = match source {
        Source::SsdLatency => Some(latency::cases as fn(&[Line<'_>]) -> _),
        Source::ListTables => Some(mails::cases as fn(&[Line<'_>]) -> _),
        _ => None,
    };
    if let Some(of_lines) = of_lines {
        let lines: Result<Vec<Line<'_>>, LabError> = reader.records().map(line).collect();
        return of_lines(&lines?);
    }
    let mut cases: Vec<MeasuredCase> = Vec::new();
    for record in reader.records() {
        let line = line(record)?;
        let Some((case, figure)) = parse(source, &line)? else { continue };
        let same = cases.iter_mut().rev().find(|known| (&known.group, &known.setting) == (&case.group, &case.setting));
        match same {
            Some(known) => {
                for job in case.jobs {
                    if !known.jobs.contains(&job) {
                        known.jobs.push(job);
                    }
                }
                known.figures.push(figure);
            }
            None => cases.push(MeasuredCase { figures: vec![figure], ..case }),
        }
    }
    Ok(cases)
}

/// Returns the case and the figure of a line. The case contains only the job of this line. Returns
/// `None` if the figure is not compared.
fn parse(source: Source, line: &Line<'_>) -> Result<Option<(MeasuredCase, Figure)>, LabError> {
    if source == Source::IsolIocost {
        return isolation::parse(line);
    }
    let Some(metric) = Metric::named(line.text("metric")?) else { return Ok(None) };
    let is_grid = source == Source::KyberGrid;
    let scheduler = line.text("scheduler")?;
    // SPDK bypasses the kernel, so there is no scheduler.
    if scheduler == "spdk" {
        return Ok(None);
    }
    let setting = if is_grid {
        let (read_us, write_us) = (line.number::<u64>("read_lat_us")?, line.number::<u64>("write_lat_us")?);
        format!("{scheduler}:read_lat_nsec={},write_lat_nsec={}", read_us * 1000, write_us * 1000)
    } else {
        scheduler.to_owned()
    };
    let setting: Setting = setting.parse().map_err(|error| line.error(format!("scheduler: {error}")))?;
    let job = line.text("job")?;
    let experiment = line.text("experiment")?;
    let (group, text, disks) = if is_grid {
        (experiment.to_owned(), grid_job(line, experiment, job)?, 1)
    } else {
        let (bs, rw) = (line.text("bs")?, line.text("rw")?);
        let (iodepth, numjobs) = (line.number::<u32>("iodepth")?, line.number::<u32>("numjobs")?);
        let disks = line.number::<u32>("disks")?;
        let text = section(job, rw, bs, iodepth, numjobs);
        let figure = line.text("figure")?;
        let group = if source == Source::Icpe24 {
            format!("{figure}: {rw} {bs} x {iodepth} x {numjobs}, {disks} disk{}", if disks == 1 { "" } else { "s" })
        } else {
            format!("{figure}: {experiment}")
        };
        (group, text, disks)
    };
    let value = line.number::<f64>(if is_grid { "median" } else { "value" })?;
    let is_usable = value.is_finite() && value > 0.0;
    let figure = Figure { job: job.to_owned(), metric, measured: value };
    let case =
        MeasuredCase { source, group, setting, jobs: vec![text], disks, disk: None, obstacle: None, figures: vec![] };
    Ok(is_usable.then_some((case, figure)))
}

/// Returns the reader or the writer of Kyber's grid. For example, `micro-bench-r1-w256` has a
/// reader of depth 1 and a writer of depth 256.
fn grid_job(line: &Line<'_>, experiment: &str, job: &str) -> Result<String, LabError> {
    let (letter, rw) = match job {
        "reader" => ('r', "randread"),
        "writer" => ('w', "randwrite"),
        _ => return Err(line.error(format!("there is no job {job:?}; available: reader and writer"))),
    };
    let depth = experiment.split('-').find_map(|part| part.strip_prefix(letter)?.parse().ok());
    let depth = depth
        .ok_or_else(|| line.error(format!("experiment {experiment:?} does not give the queue depth of its {job}")))?;
    Ok(section(job, rw, "4k", depth, 1))
}

/// Returns the section of a job file for a job.
fn section(name: &str, rw: &str, bs: &str, iodepth: u32, numjobs: u32) -> String {
    format!("[{name}]\nrw={rw}\nbs={bs}\niodepth={iodepth}\nnumjobs={numjobs}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "experiment,figure,scheduler,job,bs,iodepth,numjobs,rw,disks,metric,value\n";

    #[test]
    fn lines_of_one_setting_are_one_case_with_all_its_jobs() {
        let text = format!(
            "# source\n{HEADER}L beside writers n=1,11c,kyber,foreground,4k,1,1,randread,8,iops,10,\n\
             L beside writers n=1,11c,kyber,background,4k,128,2,randwrite,8,clat_p99,20,\n\
             L beside writers n=1,11c,none,foreground,4k,1,1,randread,8,cpu,0.5,\n"
        )
        .replace(",\n", "\n");
        let cases = read(Source::Icpe24Interference, "t.csv", &text).unwrap();
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0].jobs.len(), 2);
        assert!(cases[0].jobs[1].contains("rw=randwrite\nbs=4k\niodepth=128\nnumjobs=2"), "{}", cases[0].jobs[1]);
        assert_eq!((cases[0].disks, cases[0].figures.len()), (8, 2));
    }

    #[test]
    fn kyber_grid_case_has_its_targets_and_depth() {
        let text = "experiment,scheduler,read_lat_us,write_lat_us,job,metric,median\n\
                    micro-bench-r1-w256,kyber,50,20,writer,iops,3209\n";
        let [case] = &read(Source::KyberGrid, "k.csv", text).unwrap()[..] else { panic!() };
        assert_eq!(case.setting.to_string(), "kyber:read_lat_nsec=50000,write_lat_nsec=20000");
        assert!(case.jobs[0].contains("iodepth=256"));
    }

    #[test]
    fn errors_name_file_line_and_column() {
        let wrong = |line: &str| {
            let text = format!("{HEADER}{line}\n");
            read(Source::Icpe24, "t.csv", &text).unwrap_err().to_string()
        };
        assert_eq!(
            wrong("e,1a,none,r,4k,many,1,randread,1,iops,5"),
            "t.csv: line 2: iodepth: \"many\" is not a valid number for this column"
        );
        assert!(wrong("e,1a,nine,r,4k,1,1,randread,1,iops,5").starts_with("t.csv: line 2: scheduler: "));
        let no_metric = read(Source::Icpe24, "t.csv", "experiment,job\na,b\n").unwrap_err().to_string();
        assert_eq!(no_metric, "t.csv: line 2: there is no column metric");
    }
}
