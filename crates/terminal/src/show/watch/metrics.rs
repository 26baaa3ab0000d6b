//! Prometheus metrics of the kernel's disks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iosched_kernel::Roots;
use iosched_kernel::doctor::{self, Finding, Snapshot, Weight};
use iosched_kernel::observe::{DiskSample, GroupIo, Sample, class_name};
use iosched_live::metrics::{Labels, Metrics, Page, Times};
use iosched_numbers::Histogram;

/// Interval between two examinations of the machine by the doctor.
const EXAMINED_EVERY: Duration = Duration::from_secs(60);
/// Largest number of series of requests. After that, no series is added.
const SERIES_MAX: usize = 20_000;
/// Upper bounds of the buckets of latencies, s.
const BOUNDS: [f64; 20] = [
    10e-6,
    25e-6,
    50e-6,
    100e-6,
    250e-6,
    500e-6,
    1e-3,
    2.5e-3,
    5e-3,
    10e-3,
    25e-3,
    50e-3,
    100e-3,
    250e-3,
    500e-3,
    1.0,
    2.5,
    5.0,
    10.0,
    f64::INFINITY,
];

/// Labels of requests.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Key {
    disk: String,
    scheduler: String,
    operation: &'static str,
    class: &'static str,
    cgroup: String,
}

impl Key {
    fn labels(&self) -> Labels<'_> {
        vec![
            ("disk", &self.disk),
            ("scheduler", &self.scheduler),
            ("operation", self.operation),
            ("class", self.class),
            ("cgroup", &self.cgroup),
        ]
    }
}

/// Sums since the start.
#[derive(Default, Debug)]
struct Total {
    ios: u64,
    bytes: u64,
    latency: Histogram,
    /// Mean share of the latency before the driver received a request, in the last sample.
    waited_share: f64,
}

#[derive(Default, Debug)]
struct State {
    totals: BTreeMap<Key, Total>,
    groups: BTreeMap<(String, String), GroupIo>,
    disks: Vec<DiskSample>,
    seconds: f64,
    sampled: f64,
    lost: u64,
    unfinished: u64,
    findings: Vec<Finding>,
    examined: Option<Instant>,
}

/// Sums of all samples so far, as Prometheus metrics.
#[derive(Debug)]
pub struct SampleExporter {
    roots: Roots,
    has_latencies: bool,
    state: Mutex<State>,
}

impl SampleExporter {
    /// Creates an exporter without samples. `has_latencies` says whether the samples have
    /// latencies.
    pub fn new(roots: Roots, has_latencies: bool) -> Self {
        Self { roots, has_latencies, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a sample to the sums. At most once a minute, also updates the findings of the doctor.
    pub fn add(&self, sample: &Sample) {
        let is_due = self.state().examined.is_none_or(|at| at.elapsed() >= EXAMINED_EVERY);
        let findings = is_due.then(|| doctor::examine(&Snapshot::of(&self.roots)));
        let mut state = self.state();
        if let Some(findings) = findings {
            (state.findings, state.examined) = (findings, Some(Instant::now()));
        }
        for series in &sample.series {
            let scheduler = sample.disk(&series.disk).and_then(|disk| disk.scheduler.clone()).unwrap_or_default();
            let key = Key {
                disk: series.disk.clone(),
                scheduler,
                operation: series.operation.name(),
                class: class_name(series.class),
                cgroup: series.owner.name(),
            };
            if state.totals.len() >= SERIES_MAX && !state.totals.contains_key(&key) {
                continue;
            }
            let total = state.totals.entry(key).or_default();
            total.ios += series.ios;
            total.bytes += series.bytes;
            total.latency.merge(&series.latency);
            total.waited_share = series.waited_share().unwrap_or(0.0);
        }
        for group in &sample.groups {
            let total = state.groups.entry((group.disk.clone(), group.cgroup.clone())).or_default();
            total.read_bytes += group.io.read_bytes;
            total.write_bytes += group.io.write_bytes;
            total.reads += group.io.reads;
            total.writes += group.io.writes;
        }
        state.disks.clone_from(&sample.disks);
        (state.seconds, state.sampled) = (sample.seconds, sample.sampled);
        state.lost += sample.lost;
        state.unfinished += sample.unfinished;
    }
}

/// Returns the number of latencies in each bucket of the metrics.
fn buckets(latency: &Histogram) -> Vec<(f64, u64)> {
    let mut buckets = BOUNDS.map(|bound| (bound, 0));
    for (first, width, count) in latency.buckets() {
        // All latencies of a narrow class of the histogram count as the middle of the class.
        let middle = (first + width / 2) as f64 / 1e9;
        if let Some(bucket) = buckets.iter_mut().find(|(bound, _)| middle <= *bound) {
            bucket.1 += count;
        }
    }
    buckets.to_vec()
}

fn name(weight: Weight) -> &'static str {
    match weight {
        Weight::Matters => "matters",
        Weight::Note => "note",
    }
}

impl State {
    fn requests(&self, page: &mut Page<'_>) -> fmt::Result {
        type Value = fn(&Total) -> u64;
        let counts: [(&str, &str, Value); 2] = [
            ("iosched_disk_operations", "Completed requests and calls of fsync", |total| total.ios),
            ("iosched_disk_bytes", "Bytes of completed requests", |total| total.bytes),
        ];
        for (name, help, value) in counts {
            page.counter((name, help), self.totals.iter().map(|(key, total)| (key.labels(), value(total))))?;
        }
        let help = "Time from the start of a request to its completion";
        let times = self.totals.iter().map(|(key, total)| Times {
            labels: key.labels(),
            seconds: total.latency.sum_ns() as f64 / 1e9,
            count: total.latency.count(),
            buckets: buckets(&total.latency),
        });
        page.histogram(("iosched_disk_wait_seconds", help), times)?;
        let help = "Part of the latency that passed before the driver received the request (mean of the last interval)";
        let shares = self.totals.iter().map(|(key, total)| (key.labels(), total.waited_share));
        page.gauge(("iosched_disk_scheduler_ratio", help), shares)
    }

    fn disks(&self, page: &mut Page<'_>) -> fmt::Result {
        fn of(disk: &str) -> Labels<'_> {
            vec![("disk", disk)]
        }
        let help = "Mean number of requests in flight in the last interval, without the time when the disk was idle";
        let depths = self.disks.iter().map(|disk| (of(&disk.name), disk.depth_while_busy().unwrap_or(0.0)));
        page.gauge(("iosched_disk_depth_while_busy", help), depths)?;
        let help = "Share of the last interval during which the disk had requests in flight, 0 to 1";
        let busy = self.disks.iter().map(|disk| (of(&disk.name), disk.busy(self.seconds).unwrap_or(0.0)));
        page.gauge(("iosched_disk_busy_ratio", help), busy)?;
        let inflight = self.disks.iter().filter_map(|disk| Some((of(&disk.name), disk.stat?.in_flight as f64)));
        page.gauge(("iosched_disk_inflight", "Requests in flight"), inflight)?;
        let infos = self
            .disks
            .iter()
            .map(|disk| vec![("disk", disk.name.as_str()), ("scheduler", disk.scheduler.as_deref().unwrap_or("none"))]);
        page.info(("iosched_disk", "The disk and its scheduler"), infos)
    }

    fn groups(&self, page: &mut Page<'_>) -> fmt::Result {
        type Parts = fn(&GroupIo) -> [(&'static str, u64); 2];
        let counts: [(&str, &str, Parts); 2] = [
            ("iosched_cgroup_bytes", "Bytes that a cgroup read or wrote, from io.stat", |io| {
                [("read", io.read_bytes), ("write", io.write_bytes)]
            }),
            ("iosched_cgroup_operations", "Reads or writes of a cgroup, from io.stat", |io| {
                [("read", io.reads), ("write", io.writes)]
            }),
        ];
        for (name, help, parts) in counts {
            let counted = self.groups.iter().flat_map(|((disk, cgroup), io)| {
                parts(io).map(|(direction, count)| {
                    let labels: Labels<'_> = vec![("disk", disk), ("cgroup", cgroup), ("operation", direction)];
                    (labels, count)
                })
            });
            page.counter((name, help), counted)?;
        }
        Ok(())
    }

    fn findings(&self, page: &mut Page<'_>) -> fmt::Result {
        let findings = self.findings.iter().map(|finding| {
            let disk = finding.disk.as_deref().unwrap_or("");
            (vec![("disk", disk), ("finding", finding.id.name()), ("weight", name(finding.weight))], 1.0)
        });
        // A disk may have the same finding twice, for example for two cgroups.
        let unique: BTreeMap<_, _> = findings.collect();
        page.gauge(("iosched_doctor_finding", "Findings of iosched doctor"), unique)
    }
}

impl Metrics for SampleExporter {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let state = self.state();
        state.requests(page)?;
        state.disks(page)?;
        state.groups(page)?;
        state.findings(page)?;
        let help = "1 if watch observes latencies, otherwise 0";
        page.gauge(("iosched_watch_latencies", help), [(Vec::new(), f64::from(u8::from(self.has_latencies)))])?;
        let help = "Part of the last interval (0 to 1) in which watch observed every request";
        page.gauge(("iosched_watch_sampled_ratio", help), [(Vec::new(), state.sampled)])?;
        let help = "Trace events that were lost";
        page.counter(("iosched_watch_events_lost", help), [(Vec::new(), state.lost)])?;
        let help = "Requests with an observed start, but without an observed completion";
        page.counter(("iosched_watch_unfinished", help), [(Vec::new(), state.unfinished)])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;

    use iosched::IoClass;
    use iosched_kernel::block::{Direction, Stat};
    use iosched_kernel::observe::{GroupSample, Operation, Owner, Series};
    use iosched_live::metrics::Listening;

    use super::*;

    /// Returns a sample of 1 s: 100 reads of a database, observed in half of the time.
    pub(crate) fn sample() -> Sample {
        let mut latency = Histogram::default();
        (0..100).for_each(|_| latency.record(2_000_000));
        let owner = Owner { cgroup: Some("system.slice/db.service".to_owned()), process: None };
        let series = Series {
            disk: "sda".to_owned(),
            operation: Operation::Read,
            class: IoClass::BestEffort,
            owner,
            ios: 100,
            bytes: 409_600,
            latency,
            issued: 100,
            waited_ns: 50_000_000,
        };
        let reads = Direction { requests: 100, bytes: 409_600, ..Direction::default() };
        let stat = Stat { reads, busy_ms: 500, queue_ms: 2_000, in_flight: 3, ..Stat::default() };
        let disk = DiskSample {
            name: "sda".to_owned(),
            scheduler: Some("bfq".to_owned()),
            has_requests: true,
            driver_depth: Some(32),
            stat: Some(stat),
        };
        let io = GroupIo { read_bytes: 409_600, reads: 100, ..GroupIo::default() };
        let group = GroupSample { cgroup: "system.slice".to_owned(), disk: "sda".to_owned(), io };
        Sample {
            seconds: 1.0,
            disks: vec![disk],
            series: vec![series],
            groups: vec![group],
            sampled: 0.5,
            lost: 3,
            unfinished: 1,
        }
    }

    fn get(at: std::net::SocketAddr, accept: &str) -> String {
        let mut stream = TcpStream::connect(at).unwrap();
        write!(stream, "GET /metrics HTTP/1.0\r\nAccept: {accept}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    /// Returns the page after two samples on a machine with one disk.
    fn page(accept: &str) -> String {
        let here = tempfile::tempdir().unwrap();
        let file = |path: &str, text: &str| {
            let path = here.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for directory in ["sys/block/sda", "sys/class/block/sda"] {
            file(&format!("{directory}/dev"), "8:0\n");
            file(&format!("{directory}/size"), "2097152\n");
            file(&format!("{directory}/queue/scheduler"), "[none] mq-deadline\n");
            file(&format!("{directory}/queue/rotational"), "1\n");
        }
        let exporter = Arc::new(SampleExporter::new(Roots::at(here.path()), true));
        exporter.add(&sample());
        exporter.add(&sample());
        let at = Listening::at("127.0.0.1:0").unwrap().serve_metrics(exporter).unwrap();
        get(at, accept)
    }

    #[test]
    fn metrics_are_sums_of_the_samples() {
        let page = page("text/plain");
        let labels = r#"disk="sda",scheduler="bfq",operation="read",class="be",cgroup="system.slice/db.service""#;
        for line in [
            format!("iosched_disk_operations_total{{{labels}}} 200"),
            format!("iosched_disk_bytes_total{{{labels}}} 819200"),
            format!("iosched_disk_wait_seconds_count{{{labels}}} 200"),
            format!("iosched_disk_wait_seconds_bucket{{le=\"0.001\",{labels}}} 0"),
            format!("iosched_disk_wait_seconds_bucket{{le=\"0.0025\",{labels}}} 200"),
            format!("iosched_disk_scheduler_ratio{{{labels}}} 0.25"),
            "iosched_disk_depth_while_busy{disk=\"sda\"} 4".to_owned(),
            "iosched_disk_busy_ratio{disk=\"sda\"} 0.5".to_owned(),
            "iosched_disk_info{disk=\"sda\",scheduler=\"bfq\"} 1".to_owned(),
            "iosched_cgroup_bytes_total{disk=\"sda\",cgroup=\"system.slice\",operation=\"read\"} 819200".to_owned(),
            "iosched_watch_events_lost_total 6".to_owned(),
            "iosched_watch_sampled_ratio 0.5".to_owned(),
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn findings_of_the_doctor_are_metrics() {
        let page = page("text/plain");
        let line = "iosched_doctor_finding{disk=\"sda\",finding=\"none-on-rotating\",weight=\"matters\"} 1";
        assert!(page.lines().any(|found| found == line), "{page}");
    }

    #[test]
    fn openmetrics_page_has_types_and_ends_with_eof() {
        let page = page("application/openmetrics-text");
        assert!(page.contains("# TYPE iosched_disk_operations counter") && page.ends_with("# EOF\n"), "{page}");
    }

    #[test]
    fn every_latency_is_in_a_bucket() {
        let mut latency = Histogram::default();
        [1, 9_000, 3_000_000, u64::MAX].into_iter().for_each(|ns| latency.record(ns));
        let buckets = buckets(&latency);
        assert_eq!(buckets.iter().map(|(_, count)| count).sum::<u64>(), 4);
        assert_eq!((buckets[0].1, buckets[19].1), (2, 1));
    }
}
