//! Latencies of SSDs at rates of io.cost, from the results of resctl-bench.
//!
//! In the measurement, programs under memory pressure made the load. This load cannot be repeated.
//! Therefore each row has two simulated runs. The first run has a fixed closed loop of reads and
//! writes under io.cost at the rate of the row. The second run has reads and writes at the measured
//! mean rates, in random (Poisson) intervals. As in the measurement, all latencies are latencies of
//! the device alone.

use std::collections::BTreeSet;

use iosched_disk::io_cost::{Family, IoCostModel, Latencies, LatencyRow};

use super::case::{Figure, MeasuredCase, MeasuredDisk, Metric, Source};
use super::table::Line;
use crate::error::LabError;

/// Number of I/Os in flight in the closed loop. The next constants are the percentage of reads, and
/// the sizes of reads and writes in the form of `bssplit`. All values are means of the measured
/// loads.
const CLOSED_DEPTH: u32 = 48;
const CLOSED_READ_PERCENT: u32 = 60;
const CLOSED_SIZES: &str = "4k/66:32k/34,4k/97:64k/3";
/// Largest number of I/Os in flight at a fixed rate.
const OPEN_DEPTH: u32 = 512;
/// Name of the job with the reads.
const JOB: &str = "load";
/// Parts of the source: see [`MeasuredCase::part`].
const PARTS: [&str; 2] = ["io.cost", "smooth"];

/// A row of the table, with its model and its run.
struct Row {
    model: String,
    run: String,
    row: LatencyRow,
}

/// Returns the cases of the rows, in order.
pub(super) fn cases(lines: &[Line<'_>]) -> Result<Vec<MeasuredCase>, LabError> {
    let members = Family::named("ssd").map(Family::members).unwrap_or_default();
    let mut rows = Vec::new();
    let mut seen = BTreeSet::new();
    for line in lines {
        let row = parse(line)?;
        // One run was published under two names.
        if seen.insert(format!("{:?}", row.row)) {
            rows.push(row);
        }
    }
    let mut cases = Vec::new();
    for row in &rows {
        let member = members.iter().find(|member| member.model_name == row.model);
        let member = member.ok_or_else(|| LabError::Data {
            file: Source::SsdLatency.name().to_owned(),
            problem: format!("{:?} is not in the output of iosched device list --family ssd", row.model),
        })?;
        let of_model: Vec<LatencyRow> =
            rows.iter().filter(|other| other.model == row.model).map(|row| row.row).collect();
        let Some(latencies) = Latencies::of(&of_model) else { continue };
        let result = member.runs.iter().find(|run| run.result.ends_with(&row.run));
        let in_force = result.map_or_else(|| member.mean(), |run| run.model);
        let disk = MeasuredDisk::Member { name: row.model.clone(), latencies };
        cases.extend(of_row(row, &in_force, &disk));
    }
    Ok(cases)
}

fn parse(line: &Line<'_>) -> Result<Row, LabError> {
    let vrate = line.text("vrate")?;
    let vrate_percent = if vrate == "off" { None } else { Some(line.number("vrate")?) };
    let number = |column: &str| line.number::<f64>(column);
    let row = LatencyRow {
        vrate_percent,
        reads: number("ri")?,
        writes: number("wi")?,
        read_bytes: number("rb")?,
        write_bytes: number("wb")?,
        read_p25_us: number("r25")?,
        read_p50_us: number("r50")?,
        read_p99_us: number("r99")?,
    };
    Ok(Row { model: line.text("model")?.to_owned(), run: line.text("run")?.to_owned(), row })
}

/// Returns the two runs of a row.
fn of_row(row: &Row, model: &IoCostModel, disk: &MeasuredDisk) -> Vec<MeasuredCase> {
    let Row { model: name, run, row } = row;
    let vrate = row.vrate_percent.map_or_else(|| "off".to_owned(), |percent| format!("{percent}"));
    let figure = |metric, measured| Figure { job: JOB.to_owned(), metric, measured };
    let latencies = [figure(Metric::DeviceP50, row.read_p50_us), figure(Metric::DeviceP99, row.read_p99_us)];
    let case = |part: &str, setting: &str, jobs: Vec<String>, figures: Vec<Figure>| {
        Some(MeasuredCase {
            source: Source::SsdLatency,
            group: format!("{part}: {name} {run}, vrate {vrate}"),
            setting: setting.parse().ok()?,
            jobs,
            disks: 1,
            disk: Some(disk.clone()),
            obstacle: None,
            figures,
        })
    };
    let closed = format!(
        "[{JOB}]\nrw=randrw\nrwmixread={CLOSED_READ_PERCENT}\nbssplit={CLOSED_SIZES}\niodepth={CLOSED_DEPTH}\n\
         cgroup={JOB}\n"
    );
    let mut figures = latencies.to_vec();
    figures.push(figure(Metric::Iops, row.reads));
    let sectors = |bytes: f64| ((bytes / 4096.0).round() as u64).clamp(1, 256) * 4096;
    let open = |job: &str, rw: &str, ios: f64, bytes: f64| {
        let (ios, bytes) = (ios.round().max(1.0), sectors(bytes));
        format!("[{job}]\nrw={rw}\nbs={bytes}\nrate_iops={ios}\nrate_process=poisson\niodepth={OPEN_DEPTH}\n")
    };
    let mut smooth = vec![open(JOB, "randread", row.reads, row.read_bytes)];
    if row.writes >= 1.0 {
        smooth.push(open("writer", "randwrite", row.writes, row.write_bytes));
    }
    let limited = row.vrate_percent.map_or_else(|| "none".to_owned(), |percent| setting(model, percent));
    [case(PARTS[0], &limited, vec![closed], figures), case(PARTS[1], "none", smooth, latencies.to_vec())]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the scheduler none with io.cost at a fixed rate. The model is scaled so that io.cost has
/// this rate from the start. Otherwise io.cost would need dozens of periods to reach it.
fn setting(model: &IoCostModel, percent: f64) -> String {
    let scaled = model.figures().map(|rate| ((rate as f64 * percent / 100.0) as u64).max(1));
    let line = IoCostModel::of(scaled).line().replace(' ', "/");
    format!("none:io.cost.model={line},io.cost.qos=enable=1/ctrl=user/min=100/max=100")
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    const TABLE: &str = "model,run,vrate,ri,wi,rb,wb,r25,r50,r99\n\
        Samsung_SSD_970_EVO_500GB,a,off,9000,500,16384,10000,120,200,9000\n\
        Samsung_SSD_970_EVO_500GB,a,50.5,6000,400,16384,10000,100,150,8000\n\
        SKhynix_Phoenix,b,50.5,6000,400,16384,10000,100,150,8000\n";

    #[test]
    fn each_row_gives_an_io_cost_case_and_a_smooth_case() {
        let cases = table::read(Source::SsdLatency, "t.csv", TABLE).unwrap();
        assert_eq!(cases.len(), 4, "a run under two names counts once");
        assert_eq!(
            cases.iter().map(MeasuredCase::part).collect::<Vec<_>>(),
            ["io.cost", "smooth", "io.cost", "smooth"]
        );
        assert_eq!(cases[0].setting.to_string(), "none", "io.cost was off");
        let setting = cases[2].setting.to_string();
        assert!(setting.contains("io.cost.qos=enable=1/ctrl=user/min=100/max=100"), "{setting}");
        assert_eq!(
            cases[1].figures.iter().map(|figure| figure.metric).collect::<Vec<_>>(),
            [Metric::DeviceP50, Metric::DeviceP99]
        );
        assert!(cases[3].jobs[1].contains("rate_iops=400\nrate_process=poisson"), "{:?}", cases[3].jobs);
        // Both rows are about one model, so both have the disk of this model.
        assert_eq!(cases[0].disk, cases[3].disk);
    }

    #[test]
    fn errors_name_the_line_or_the_model() {
        let wrong = |from: &str, to: &str| {
            table::read(Source::SsdLatency, "t.csv", &TABLE.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert_eq!(wrong("9000,500", "many,500"), "t.csv: line 2: ri: \"many\" is not a valid number for this column");
        assert!(wrong("970_EVO", "971_EVO").contains("is not in the output of iosched device list --family ssd"));
    }
}
