//! A sample of `iosched watch` as a table, as JSON and as Prometheus metrics.

mod metrics;

use std::fmt::Write;

use iosched_kernel::observe::{DiskSample, Sample, Series, class_name};
use serde_json::{Value, json};

pub use metrics::SampleExporter;

/// Width of the column of cgroups.
const CGROUP_WIDTH: usize = 24;

/// Returns the series of a disk. The series with most bytes come first.
fn of_disk<'s>(sample: &'s Sample, disk: &DiskSample) -> Vec<&'s Series> {
    let mut series: Vec<&Series> = sample.series.iter().filter(|series| series.disk == disk.name).collect();
    series.sort_by_key(|series| std::cmp::Reverse((series.bytes, series.ios)));
    series
}

/// Shortens a long name to its end, because paths differ most in their last parts.
fn fitting(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        name.to_owned()
    } else {
        format!("…{}", name.chars().skip(length + 1 - width).collect::<String>())
    }
}

fn ms(ns: u64) -> String {
    let ms = ns as f64 / 1e6;
    if ms < 10.0 { format!("{ms:.2}") } else { format!("{ms:.0}") }
}

/// Returns the tables of a sample: the series and cgroups of each disk.
pub fn table(sample: &Sample) -> String {
    let mut out = String::new();
    let seconds = sample.seconds.max(1e-9);
    for disk in &sample.disks {
        let scheduler = disk.scheduler.as_deref().unwrap_or("no scheduler");
        let load = match (disk.busy(sample.seconds), disk.depth_while_busy()) {
            (Some(busy), Some(depth)) => {
                format!("busy {:.0} %, {depth:.1} requests in flight while busy", busy * 100.0)
            }
            (Some(_), None) => "idle".to_owned(),
            _ => "the kernel does not count the requests of this disk (iostats is 0)".to_owned(),
        };
        let _ = writeln!(out, "{}: {scheduler}, {load}", disk.name);
        let series = of_disk(sample, disk);
        if !series.is_empty() {
            let _ = writeln!(
                out,
                "  {:CGROUP_WIDTH$} {:4} {:7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}",
                "cgroup", "cls", "op", "IO/s", "MB/s", "p50 ms", "p99 ms", "max ms", "sched"
            );
        }
        for series in series {
            let (ios, megabytes) = (series.ios as f64 / seconds, series.bytes as f64 / 1e6 / seconds);
            let sched = series.waited_share().map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0));
            let latency = &series.latency;
            let _ = writeln!(
                out,
                "  {:CGROUP_WIDTH$} {:4} {:7} {ios:6.0} {megabytes:6.1} {:>6} {:>6} {:>6} {sched:>5}",
                fitting(&series.owner.name(), CGROUP_WIDTH),
                class_name(series.class),
                series.operation.name(),
                ms(latency.quantile_ns(0.5)),
                ms(latency.quantile_ns(0.99)),
                ms(latency.max_ns()),
            );
        }
        for group in sample.groups.iter().filter(|group| group.disk == disk.name) {
            let rate = |bytes: u64| bytes as f64 / 1e6 / seconds;
            let _ = writeln!(
                out,
                "  {:CGROUP_WIDTH$} io.stat: {:.1} MB/s read, {:.1} MB/s written, {:.0} IO/s",
                fitting(&group.cgroup, CGROUP_WIDTH),
                rate(group.io.read_bytes),
                rate(group.io.write_bytes),
                group.io.ios() as f64 / seconds
            );
        }
    }
    if !sample.series.is_empty() && sample.sampled < 0.97 {
        let _ = writeln!(out, "watch observed requests during only {:.0} % of the time", sample.sampled * 100.0);
    }
    if sample.lost > 0 {
        let _ = writeln!(out, "the kernel lost {} trace events, so the latencies are incomplete", sample.lost);
    }
    out
}

/// Returns a sample as a JSON document.
pub fn json(sample: &Sample) -> Value {
    let seconds = sample.seconds.max(1e-9);
    let per_s = |count: u64| count as f64 / seconds;
    let ms = |ns: u64| ns as f64 / 1e6;
    let disk = |disk: &DiskSample| {
        json!({
            "disk": disk.name,
            "scheduler": disk.scheduler,
            "busy": disk.busy(sample.seconds),
            "depth_while_busy": disk.depth_while_busy(),
            "driver_depth": disk.driver_depth,
            "reads_per_s": disk.stat.map(|stat| per_s(stat.reads.requests)),
            "writes_per_s": disk.stat.map(|stat| per_s(stat.writes.requests)),
            "read_bytes_per_s": disk.stat.map(|stat| per_s(stat.reads.bytes)),
            "write_bytes_per_s": disk.stat.map(|stat| per_s(stat.writes.bytes)),
        })
    };
    let series = |series: &Series| {
        json!({
            "disk": series.disk,
            "cgroup": series.owner.name(),
            "class": class_name(series.class),
            "operation": series.operation.name(),
            "ios_per_s": per_s(series.ios),
            "bytes_per_s": per_s(series.bytes),
            "observed": series.latency.count(),
            "mean_ms": series.latency.mean_ns() / 1e6,
            "p50_ms": ms(series.latency.quantile_ns(0.5)),
            "p99_ms": ms(series.latency.quantile_ns(0.99)),
            "p99_9_ms": ms(series.latency.quantile_ns(0.999)),
            "max_ms": ms(series.latency.max_ns()),
            "scheduler_share": series.waited_share(),
        })
    };
    json!({
        "seconds": sample.seconds,
        "sampled": sample.sampled,
        "lost_events": sample.lost,
        "unfinished": sample.unfinished,
        "disks": sample.disks.iter().map(disk).collect::<Vec<_>>(),
        "series": sample.series.iter().map(series).collect::<Vec<_>>(),
        "io_stat": sample.groups,
    })
}

#[cfg(test)]
mod tests {
    use super::metrics::tests::sample;
    use super::*;

    #[test]
    fn table_fits_80_columns() {
        let table = table(&sample());
        assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
        assert!(table.starts_with("sda: bfq, busy 50 %, 4.0 requests in flight while busy\n"), "{table}");
        let row = table.lines().nth(2).unwrap().split_whitespace().collect::<Vec<_>>();
        assert_eq!(row, ["system.slice/db.service", "be", "read", "100", "0.4", "2.00", "2.00", "2.00", "25%"]);
        assert!(
            table.contains("observed requests during only 50 % of the time")
                && table.contains("the kernel lost 3 trace events"),
            "{table}"
        );
    }

    #[test]
    fn long_names_keep_their_end() {
        assert_eq!(fitting("system.slice/db.service", 10), "…b.service");
        assert_eq!(fitting("a", 10), "a");
    }

    #[test]
    fn json_has_rates_and_latencies() {
        let json = json(&sample());
        assert_eq!(json["series"][0]["cgroup"], "system.slice/db.service");
        assert_eq!((&json["series"][0]["ios_per_s"], &json["series"][0]["max_ms"]), (&100.0.into(), &2.0.into()));
        assert_eq!((&json["disks"][0]["busy"], &json["lost_events"]), (&0.5.into(), &3.into()));
    }
}
