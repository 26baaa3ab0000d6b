//! Results of resctl-bench: a list of jobs, each with its kind (`spec.kind`) and the machine
//! (`sysinfo`). All jobs of a file ran on one disk, unless the file was joined from several files.
//!
//! A file has several models of one disk: the base model, the model that was active during each job
//! (`sysinfo`), and scaled models (`solutions`). The base model describes the disk itself.

use serde_json::Value;

use super::document::{DocumentError, Found, Search, line_of, parse_json};
use super::latencies::LatencyRow;
use super::model::{Described, IoCostModel, IoCostQos};

/// JSON pointers to the description of the disk in a job.
const REPORTS: [&str; 2] = ["/sysinfo/sysreqs_report", "/sysinfo"];
/// Index of reads and of writes in pairs.
const READ: usize = 0;

/// Parameters and latencies of one disk in a result.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchResult {
    /// Model name of the disk; empty if it is not given.
    pub name: String,
    /// Firmware of the disk.
    pub firmware: Option<String>,
    /// Size of the disk, bytes.
    pub size_bytes: Option<u64>,
    /// Kernel of the measurement.
    pub kernel: Option<String>,
    /// Scheduler of the disk during the measurement.
    pub scheduler: Option<String>,
    /// Model of the disk.
    pub model: IoCostModel,
    /// QoS that belongs to the model.
    pub qos: Option<IoCostQos>,
    /// Latencies by rate of io.cost. Empty without a job of kind `iocost-qos`.
    pub rows: Vec<LatencyRow>,
}

/// Reads a result of resctl-bench. Returns one entry for each disk.
///
/// # Errors
/// The text is not a result of resctl-bench, or has no model.
pub fn results(text: &str) -> Result<Vec<BenchResult>, DocumentError> {
    let document = parse_json(text)?;
    let jobs = jobs(&document).ok_or(DocumentError::NoJobs)?;
    disks(&jobs).iter().map(|name| result(name, &jobs)).collect()
}

/// Returns the description of each disk in a document, if the document is a result.
pub(super) fn described(document: &Value) -> Option<Result<Vec<Described>, DocumentError>> {
    let jobs = jobs(document)?;
    // A job without a model does not hide the model of another disk.
    let all: Vec<Result<BenchResult, DocumentError>> = disks(&jobs).iter().map(|name| result(name, &jobs)).collect();
    if all.iter().all(Result::is_err) {
        return Some(all.into_iter().collect::<Result<Vec<_>, _>>().map(|_| Vec::new()));
    }
    let described = |found: BenchResult| Described { name: found.name, model: found.model, qos: found.qos };
    Some(Ok(all.into_iter().flatten().map(described).collect()))
}

/// Returns the jobs if the document is a result: one job, or a list of jobs.
fn jobs(document: &Value) -> Option<Vec<&Value>> {
    let list = match document {
        Value::Array(list) => list.iter().collect(),
        Value::Object(_) => vec![document],
        _ => return None,
    };
    let is_job = |job: &&Value| job.pointer("/spec/kind").is_some_and(Value::is_string);
    let has_machine = list.iter().any(|job| job.get("sysinfo").is_some_and(Value::is_object));
    (has_machine && list.iter().all(is_job)).then_some(list)
}

fn text(job: &Value, pointer: &str) -> Option<String> {
    job.pointer(pointer).and_then(line_of)
}

/// Returns a text from the description of a job's disk.
fn reported(job: &Value, key: &str) -> Option<String> {
    REPORTS.iter().find_map(|place| text(job, &format!("{place}/{key}")))
}

fn device_name(job: &Value) -> Option<String> {
    reported(job, "scr_dev_model")
}

/// Returns the names of the disks in order. A job without a name belongs to the first disk.
fn disks(jobs: &[&Value]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in jobs.iter().filter_map(|job| device_name(job)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() {
        let devices = ["/record/iocost_dev_model", "/result/iocost_dev_model"];
        let found = jobs.iter().find_map(|job| devices.iter().find_map(|pointer| text(job, pointer)));
        names.push(found.unwrap_or_default());
    }
    names
}

/// Returns the rank of a model by its path. The base model of the disk has rank 0; the less
/// certainly a model describes the disk, the higher its rank. Returns `None` for models that are
/// derived from another model.
fn distance(place: &str) -> Option<u32> {
    let has = |part: &str| place.split('/').any(|key| key == part);
    match () {
        () if has("solutions") || has("runs") || has("inc_runs") => None,
        () if has("base_model") => Some(0),
        () if has("sysinfo") => Some(2),
        () => Some(1),
    }
}

/// Returns the result for the disk `name`.
fn result(name: &str, jobs: &[&Value]) -> Result<BenchResult, DocumentError> {
    let is_first = jobs.iter().find_map(|job| device_name(job)).is_none_or(|first| first == name);
    let belongs = |job: &Value| device_name(job).map_or(is_first, |device| device == name);
    let mut search = Search::default();
    let mut best: Option<(u32, Found)> = None;
    for (number, job) in jobs.iter().enumerate().filter(|(_, job)| belongs(job)) {
        for found in search.models_of(job, &format!("/{number}")) {
            let Some(distance) = distance(&found.place) else { continue };
            // If several models have the same rank, the last model is the model that later jobs
            // used.
            if best.as_ref().is_none_or(|(nearest, _)| distance <= *nearest) {
                best = Some((distance, found));
            }
        }
    }
    let Some((_, found)) = best else { return Err(search.into_error()) };
    let report = |key: &str| jobs.iter().filter(|job| belongs(job)).find_map(|job| reported(job, key));
    let size = |job: &&Value| job.pointer("/sysinfo/sysreqs_report/scr_dev_size")?.as_u64();
    Ok(BenchResult {
        name: name.to_owned(),
        firmware: report("scr_dev_fwrev"),
        size_bytes: jobs.iter().filter(|job| belongs(job)).find_map(size).filter(|size| *size > 0),
        kernel: report("kernel_version"),
        scheduler: report("scr_dev_iosched"),
        model: found.model,
        qos: found.qos,
        rows: jobs.iter().filter(|job| belongs(job)).flat_map(|job| rows(job)).collect(),
    })
}

/// Returns the rows of a job of kind `iocost-qos`. Other jobs have no rows.
fn rows(job: &Value) -> Vec<LatencyRow> {
    let runs = |pointer: &str| job.pointer(pointer).and_then(Value::as_array);
    let (Some(records), Some(results)) = (runs("/record/runs"), runs("/result/runs")) else { return Vec::new() };
    records.iter().zip(results).filter_map(|(record, result)| row(record, result)).collect()
}

/// Returns the row of a run. `record` has the settings. A failed run has no row.
fn row(record: &Value, result: &Value) -> Option<LatencyRow> {
    let storage = result.get("stor")?;
    let statistic = ["all_rstat", "final_rstat"].iter().find_map(|part| storage.get(*part)?.get("io_stat"))?;
    let per_second = |key: &str| statistic.get(key)?.get("mean")?.as_f64();
    let latency_us = |percentile: &str| {
        let seconds = storage.get("iolat")?.get(READ)?.get(percentile)?.get("mean")?.as_f64()?;
        Some(seconds * 1e6)
    };
    let is_off = record.pointer("/ovr/off").and_then(Value::as_bool).unwrap_or(false);
    let bound = |name: &str| record.get("ovr")?.get(name)?.as_f64();
    let fixed = bound("min").filter(|min| bound("max") == Some(*min));
    let mean = || result.pointer("/vrate/mean")?.as_f64();
    let (reads, writes) = (per_second("rios")?, per_second("wios")?);
    let each = |bytes: f64, ios: f64| if ios > 0.0 { bytes / ios } else { 0.0 };
    Some(LatencyRow {
        vrate_percent: if is_off { None } else { Some(fixed.or_else(mean)?) },
        reads,
        writes,
        read_bytes: each(per_second("rbytes")?, reads),
        write_bytes: each(per_second("wbytes")?, writes),
        read_p25_us: latency_us("25")?,
        read_p50_us: latency_us("50")?,
        read_p99_us: latency_us("99")?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn model(rbps: u64) -> Value {
        json!({"rbps": rbps, "rseqiops": 60_000, "rrandiops": 50_000,
               "wbps": 200_000_000, "wseqiops": 12_000, "wrandiops": 16_000})
    }

    fn machine(disk: &str, model: &Value) -> Value {
        let mut in_force = model.clone();
        in_force["ctrl"] = json!("user");
        in_force["model"] = json!("linear");
        json!({"bench_version": "2.2.5", "sysreqs_report": {
            "kernel_version": "5.18.0", "scr_devnr": [259, 0], "scr_dev": "nvme0n1", "scr_dev_model": disk,
            "scr_dev_fwrev": "F1", "scr_dev_size": 256_060_514_304_u64, "scr_dev_iosched": "none"},
            "iocost": {"vrate": 100.0, "model": in_force, "qos": {"enable": 1, "ctrl": "user"}}})
    }

    fn run(reads: f64, p99_s: f64) -> Value {
        let at = |seconds: f64| json!({"mean": seconds, "50": seconds, "cum": seconds});
        let reads_at = json!({"25": at(110e-6), "50": at(200e-6), "99": at(p99_s)});
        let per_second = |value: f64| json!({"mean": value, "50": value});
        json!({"stor": {"iolat": [reads_at, reads_at], "all_rstat": {"io_stat": {
            "rios": per_second(reads), "rbytes": per_second(reads * 16_384.0),
            "wios": per_second(500.0), "wbytes": per_second(10e6)}}},
            "prot": {}, "vrate": {"mean": 99.5}, "nr_reports": [60, 0]})
    }

    fn result_of(disk: &str, rbps: u64) -> Vec<Value> {
        let (base, scaled) = (model(rbps), model(rbps / 2));
        let qos = json!({"rpct": 95.0, "rlat": 80_000, "wpct": 95.0, "wlat": 300_000, "min": 1.0, "max": 10_000.0});
        let sysinfo = machine(disk, &model(rbps - 1));
        json!([
            {"spec": {"kind": "iocost-params", "id": null}, "sysinfo": machine(disk, &model(7)),
             "record": {"devnr": "259:0", "model": model(rbps - 2), "qos": qos}, "result": true},
            {"spec": {"kind": "hashd-params"}, "sysinfo": sysinfo, "record": {}, "result": {"rps_max": 2_000}},
            {"spec": {"kind": "iocost-qos"}, "sysinfo": sysinfo,
             "record": {"base_model": base, "base_qos": qos, "runs": [
                {"ovr": {"off": true}, "qos": null}, null,
                {"ovr": {"off": false, "min": 75.0, "max": 75.0}, "qos": qos}]},
             "result": {"runs": [run(8_000.0, 15e-3), null, run(6_000.0, 12e-3)]}},
            {"spec": {"kind": "iocost-tune"}, "sysinfo": sysinfo, "record": {"qos_props": []},
             "result": {"base_model": base, "base_qos": qos, "solutions": {
                "bandwidth": {"model": scaled, "qos": qos, "scale_factor": 0.5},
                "isolation": {"model": model(9), "qos": qos}}}}
        ])
        .as_array()
        .unwrap()
        .clone()
    }

    #[test]
    fn resctl_result_is_one_disk_with_its_base_model() {
        let text = Value::Array(result_of("ACME 1", 1_000_000_000)).to_string();
        let [found] = &super::super::read(&text).unwrap()[..] else { panic!() };
        assert_eq!((found.name.as_str(), found.model.rbps), ("ACME 1", 1_000_000_000));
        assert_eq!(found.qos.unwrap().rlat_us, 80_000);
        let [result] = &results(&text).unwrap()[..] else { panic!() };
        assert_eq!((result.firmware.as_deref(), result.size_bytes), (Some("F1"), Some(256_060_514_304)));
        assert_eq!((result.kernel.as_deref(), result.scheduler.as_deref()), (Some("5.18.0"), Some("none")));
        let vrates: Vec<_> = result.rows.iter().map(|row| row.vrate_percent).collect();
        assert_eq!(vrates, [None, Some(75.0)], "the run that failed has no row");
        let row = result.rows[0];
        assert!((row.read_p99_us - 15_000.0).abs() < 1e-6 && (row.write_bytes - 20_000.0).abs() < 1e-6, "{row:?}");
    }

    #[test]
    fn model_in_force_is_used_only_without_a_measured_model() {
        let model_of = |jobs: &[Value]| results(&Value::Array(jobs.to_vec()).to_string()).unwrap()[0].model.rbps;
        let jobs = result_of("ACME 1", 1_000);
        assert_eq!(model_of(&jobs[..1]), 998, "the measured coefficients");
        assert_eq!(model_of(&jobs[1..2]), 999, "the model in force");
        assert_eq!(model_of(&jobs[..2]), 998);
    }

    #[test]
    fn joined_results_are_several_disks() {
        let jobs = [result_of("ACME 1", 1_000), result_of("ACME 2", 2_000)].concat();
        let found = super::super::read(&Value::Array(jobs).to_string()).unwrap();
        let named: Vec<_> = found.iter().map(|found| (found.name.as_str(), found.model.rbps)).collect();
        assert_eq!(named, [("ACME 1", 1_000), ("ACME 2", 2_000)]);
    }

    #[test]
    fn result_without_sysreqs_report_is_one_disk() {
        let mut jobs = result_of("ACME 1", 1_000);
        jobs.iter_mut().for_each(|job| job["sysinfo"]["sysreqs_report"] = Value::Null);
        let found = super::super::read(&Value::Array(jobs).to_string()).unwrap();
        assert_eq!((found.len(), found[0].name.as_str(), found[0].model.rbps), (1, "", 1_000));
    }

    #[test]
    fn errors_name_the_cause() {
        let wrong = |text: &str| results(text).unwrap_err().to_string();
        assert!(wrong("{\"rbps\": 1}").contains("not a result of resctl-bench"), "{}", wrong("{\"rbps\": 1}"));
        let zeros = json!([{"spec": {"kind": "iocost-qos"}, "sysinfo": machine("A", &model(0))}]);
        assert!(wrong(&zeros.to_string()).contains("rbps: 0: a rate cannot be 0"), "{}", wrong(&zeros.to_string()));
        let none = json!([{"spec": {"kind": "storage"}, "sysinfo": {}}]);
        assert!(wrong(&none.to_string()).contains("the file has no model"), "{}", wrong(&none.to_string()));
    }
}
