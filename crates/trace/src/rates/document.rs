//! The JSON output of `iostat -x -o JSON` and `sadf -j -- -d`: `sysstat`, `hosts`, `statistics`,
//! and `disk` in each element of `statistics`. The names of values are the headings of the table.
//! sadf writes `disk-device` where iostat writes `disk_device`.

use serde_json::Value;

use super::{Field, RatesTool, Report, Row};

/// Returns whether a text seems to be the start of a document in this format.
pub(super) fn looks_like(head: &str) -> bool {
    head.trim_start().starts_with("{\"sysstat\"")
}

/// Returns the reports of a document, or `None` if there is none.
pub(super) fn reports(text: &str) -> Option<(RatesTool, Vec<Report>)> {
    let document: Value = looks_like(text).then(|| serde_json::from_str(text).ok())??;
    let hosts = document["sysstat"]["hosts"].as_array()?;
    let statistics = hosts.iter().filter_map(|host| host["statistics"].as_array()).flatten();
    let reports = statistics
        .filter_map(|statistic| Some(statistic["disk"].as_array()?.iter().filter_map(row).collect::<Report>()));
    let reports: Vec<_> = reports.filter(|report| !report.is_empty()).collect();
    let tool = if text.contains("\"disk-device\"") { RatesTool::Sar } else { RatesTool::Iostat };
    (!reports.is_empty()).then_some((tool, reports))
}

fn row(disk: &Value) -> Option<Row> {
    let device = ["disk_device", "disk-device"].into_iter().find_map(|name| disk[name].as_str())?.to_owned();
    let value = |(name, value): (&String, &Value)| {
        let (field, unit) = match name.as_str() {
            // sadf omits the "/s" of these names.
            "rkB" => Field::of("rkB/s"),
            "wkB" => Field::of("wkB/s"),
            "rd_sec" => Field::of("rd_sec/s"),
            "wr_sec" => Field::of("wr_sec/s"),
            "util-percent" => Field::of("%util"),
            name => Field::of(name),
        }?;
        Some((field, value.as_f64()? * unit))
    };
    Some(Row { device, values: disk.as_object()?.iter().filter_map(value).collect() })
}
