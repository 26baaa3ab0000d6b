//! Targets and weights of io.cost. A reader with one I/O in flight runs together with seven jobs
//! that have 256 I/Os in flight each.

use iosched_disk::Profile;
use iosched_disk::io_cost::IoCostModel;

use super::case::{Figure, MeasuredCase, Metric, Source};
use super::table::Line;
use crate::error::LabError;

/// Name of the figures of all jobs together.
pub(super) const ALL_JOBS: &str = "all";
/// Name of the reader.
const READER: &str = "lc";
/// Name of the other jobs.
const OTHERS: &str = "others";
/// The disk. The file also states the source of each value.
const DISK: &str = include_str!("../../measured/optane-900p.toml");
/// The model of io.cost in the measurement. Each case scales this model.
const MODEL: IoCostModel = IoCostModel::of([2_413_821_952, 589_312, 589_312, 2_413_821_952, 589_312, 589_312]);
/// I/Os of 4 KiB in a MiB.
const IOS_PER_MIB: f64 = 256.0;

/// Returns the disk.
pub(super) fn disk() -> Result<Profile, LabError> {
    let wrong = |problem: String| LabError::Data { file: "optane-900p.toml".to_owned(), problem };
    Profile::parse("optane-900p", DISK).map_err(|error| wrong(error.to_string()))
}

/// Returns the case of a line and its figure. Returns `None` if the controller is not io.cost.
pub(super) fn parse(line: &Line<'_>) -> Result<Option<(MeasuredCase, Figure)>, LabError> {
    if line.text("controller")? != "io.cost" {
        return Ok(None);
    }
    let number = |column: &str| line.number::<f64>(column);
    let (weight, point) = (line.number::<u32>("lc_weight")?, line.text("point")?);
    let (amplifier, rlat, wlat) = (number("model_amplifier")?, number("rlat_us")?, number("wlat_us")?);
    let (rpct, wpct, min, max) = (number("rpct")?, number("wpct")?, number("min_pct")?, number("max_pct")?);
    let scaled = IoCostModel::of(MODEL.figures().map(|rate| ((rate as f64 * amplifier) as u64).max(1)));
    let model = started_at(min, &scaled).line().replace(' ', "/");
    let (lowest, highest) = (100, max / min * 100.0);
    let qos = format!(
        "enable=1/ctrl=user/rpct={rpct}/rlat={rlat:.0}/wpct={wpct}/wlat={wlat:.0}/min={lowest}/max={highest:.2}"
    );
    let setting = format!("none:io.cost.model={model},io.cost.qos={qos},io.weight={READER}:{weight}+{OTHERS}:1");
    let setting = setting.parse().map_err(|error| line.error(format!("a setting of io.cost: {error}")))?;
    let (metric, factor) = match (line.text("job")?, line.text("metric")?) {
        (READER, "latency") => (Metric::P99, 1.0),
        (ALL_JOBS, "bandwidth") => (Metric::Iops, IOS_PER_MIB),
        (job, metric) => {
            return Err(line.error(format!(
                "there is no {metric} of {job}; available: latency of {READER} and bandwidth of \
                    {ALL_JOBS}"
            )));
        }
    };
    let job = if metric == Metric::P99 { READER } else { ALL_JOBS }.to_owned();
    let figure = Figure { job, metric, measured: number("value")? * factor };
    let jobs = vec![
        format!("[{READER}]\nrw=randread\nbs=4k\niodepth=1\ncgroup={READER}\n"),
        format!("[{OTHERS}]\nrw=randread\nbs=4k\niodepth=256\nnumjobs=7\ncgroup={OTHERS}\n"),
    ];
    let group = format!("model x {amplifier}: point {point}, weight {weight}, rlat {rlat} us, min {min} %");
    let case = MeasuredCase {
        source: Source::IsolIocost,
        group,
        setting,
        jobs,
        disks: 1,
        disk: None,
        obstacle: None,
        figures: Vec::new(),
    };
    Ok(Some((case, figure)))
}

/// Returns the model with which a run starts at `min` percent of the rate of `model` instead of at
/// 100 percent.
///
/// io.cost keeps its rate from one run to the next. The measured runs came one after another, so a
/// measured run of 50 s shows the final rate that results from the targets. From 100 percent,
/// io.cost needs a minute or more to reach the lowest rate.
///
/// Only the costs of I/Os are scaled. The cost of bytes does not change, because it also gives the
/// service time that io.cost expects of a request. All I/Os have one page, so the sum of both costs
/// is exact.
fn started_at(min: f64, model: &IoCostModel) -> IoCostModel {
    let [rbps, rseqiops, rrandiops, wbps, wseqiops, wrandiops] = model.figures();
    let scaled = |rate: u64| ((rate as f64 * min / 100.0) as u64).max(1);
    IoCostModel::of([rbps, scaled(rseqiops), scaled(rrandiops), wbps, scaled(wseqiops), scaled(wrandiops)])
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    const TABLE: &str = "point,controller,lc_weight,model_amplifier,rlat_us,min_pct,max_pct,rpct,wpct,wlat_us,job,metric,value\n\
        3,io.cost,100,0.5,25,10.0,150,99,95,1000000,lc,latency,34.048\n\
        3,io.cost,100,0.5,25,10.0,150,99,95,1000000,all,bandwidth,100\n\
        4,none,1,1,25,10.0,150,99,95,1000000,all,bandwidth,100\n";

    #[test]
    fn a_point_is_one_case_with_the_scaled_model() {
        let cases = table::read(Source::IsolIocost, "t.csv", TABLE).unwrap();
        let [case] = &cases[..] else { panic!("{cases:?}") };
        assert_eq!(case.jobs.len(), 2);
        let setting = case.setting.to_string();
        assert!(setting.ends_with("io.weight=lc:100+others:1"), "{setting}");
        assert!(setting.contains("rpct=99/rlat=25/"), "{setting}");
        // The rates are a tenth of half the model. From there, the rate can grow to 150 % of half
        // the model.
        assert!(setting.contains("rbps=1206910976/rseqiops=29465/rrandiops=29465"), "{setting}");
        assert!(setting.contains("min=100/max=1500.00"), "{setting}");
        assert_eq!(case.figures[1].measured, 25_600.0, "100 MiB/s of 4 KiB");
    }

    #[test]
    fn errors_name_the_line() {
        let wrong = |from: &str, to: &str| {
            table::read(Source::IsolIocost, "t.csv", &TABLE.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert!(
            wrong("lc,latency", "lc,mean")
                .starts_with("t.csv: line 2: there is no mean of lc; available: latency of lc")
        );
        assert!(wrong(",25,10.0", ",soon,10.0").starts_with("t.csv: line 2: rlat_us: \"soon\""));
    }

    #[test]
    fn the_disk_reaches_the_rate_of_its_model() {
        let rate = iosched_disk::measure::saturation(&disk().unwrap()).reads.random.0;
        assert!((rate / 589_312.0 - 1.0).abs() < 0.02, "{rate}");
    }
}
