//! Reader of fio's JSON output.

use iosched_workload::app::{Better, Figure};
use serde_json::Value;

use super::figure;

/// Returns the metrics of every job and direction, or of every group if fio reports by group. They
/// are I/Os per second, bandwidth, and the mean and 99th percentile of the completion latency.
pub(super) fn figures(output: &str) -> Vec<Figure> {
    // Other messages may precede and follow the document.
    let Some(begin) = output.find("\n{").map(|at| at + 1).or_else(|| output.starts_with('{').then_some(0)) else {
        return Vec::new();
    };
    let mut documents = serde_json::Deserializer::from_str(&output[begin..]).into_iter::<Value>();
    let Some(Ok(document)) = documents.next() else { return Vec::new() };
    let jobs = document["jobs"].as_array().cloned().unwrap_or_default();
    jobs.iter().flat_map(of_job).collect()
}

fn of_job(job: &Value) -> Vec<Figure> {
    let name = job["jobname"].as_str().unwrap_or("job");
    let mut figures = Vec::new();
    for direction in ["read", "write", "trim"] {
        let of_direction = &job[direction];
        if of_direction["total_ios"].as_u64().unwrap_or(0) == 0 {
            continue;
        }
        let mut add = |what: &str, unit, value: Option<f64>, better| {
            figures.extend(value.map(|value| figure(&format!("{name} {direction} {what}"), unit, value, better)));
        };
        let ms = |value: &Value| value.as_f64().map(|ns| ns / 1e6);
        add("iops", "1/s", of_direction["iops"].as_f64(), Better::Higher);
        add("bandwidth", "MB/s", of_direction["bw_bytes"].as_f64().map(|bytes| bytes / 1e6), Better::Higher);
        add("mean", "ms", ms(&of_direction["clat_ns"]["mean"]), Better::Lower);
        add("p99", "ms", ms(&of_direction["clat_ns"]["percentile"]["99.000000"]), Better::Lower);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_and_direction_has_its_metrics() {
        let output = r#"fio: some remark about {braces}
{
  "jobs": [
    {"jobname": "reader", "read": {"total_ios": 100, "iops": 50.5, "bw_bytes": 2000000,
       "clat_ns": {"mean": 1500000.0, "percentile": {"99.000000": 4000000}}}, "write": {"total_ios": 0, "iops": 0.0}},
    {"jobname": "log", "read": {"total_ios": 0}, "write": {"total_ios": 7, "iops": 3.5, "bw_bytes": 1, "clat_ns": {"mean": 1e6}}}
  ]
}
trailing remark
"#;
        let found = figures(output);
        let found: Vec<_> =
            found.iter().map(|figure| (figure.name.as_str(), figure.unit.as_ref(), figure.value)).collect();
        assert_eq!(
            found,
            [
                ("reader_read_iops", "1/s", 50.5),
                ("reader_read_bandwidth", "MB/s", 2.0),
                ("reader_read_mean", "ms", 1.5),
                ("reader_read_p99", "ms", 4.0),
                ("log_write_iops", "1/s", 3.5),
                ("log_write_bandwidth", "MB/s", 1e-6),
                ("log_write_mean", "ms", 1.0),
            ]
        );
    }
}
