//! Runs of fio jobs in fio's JSON format, for tools that read fio's results. Keys, units and types
//! are the same as in fio 3.33.
//!
//! The output contains the first complete round. With one setting on one device, the output is one
//! document like fio's. With several settings or devices, the output is a list of these documents.
//! Each document also has `device` and `scheduler`.
//!
//! The simulation does not measure the host. Therefore `usr_cpu`, `sys_cpu`, `ctx`, `majf`, `minf`
//! and the timestamps are 0. `bw_*` and `iops_*` are over windows of 500 ms. With
//! `group_reporting`, the windows of all jobs of a group are combined. Deviations of latencies are
//! computed from histograms, with an accuracy of 1 %.

use iosched_sim::{DirectionResult, Histogram, JobResult, QueueStatGroup, Samples};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::error::LabError;
use crate::record::{Header, JobRecord, Records, RunRecord};

/// Bounds of fio's latency classes in each unit, without the last bound of milliseconds.
const LATENCY_BOUNDS: [u64; 10] = [2, 4, 10, 20, 50, 100, 250, 500, 750, 1000];
const NS_PER_MS: f64 = 1e6;

/// JSON value whose objects keep the order of their keys.
enum Json {
    Integer(u64),
    Number(f64),
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(value) => serializer.serialize_u64(*value),
            Self::Number(value) => serializer.serialize_f64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => items.serialize(serializer),
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (key, value) in fields {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Json {
    /// Rounds to a millionth, as fio prints numbers.
    fn from(value: f64) -> Self {
        Self::Number((value * 1e6).round() / 1e6)
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

fn object<K: Into<String>>(fields: impl IntoIterator<Item = (K, Json)>) -> Json {
    Json::Object(fields.into_iter().map(|(key, value)| (key.into(), value)).collect())
}

/// Returns the first complete round of `records` as fio's JSON. See the module page.
///
/// # Errors
/// The workload does not consist of fio jobs, or no round is complete.
pub fn fio_json(records: &Records) -> Result<String, LabError> {
    let header = &records.header;
    if header.workload.jobs.is_empty() {
        return Err(LabError::NotFioJobs { workload: header.workload.name.clone() });
    }
    let first = records.rounds().first().copied();
    let documents: Vec<Json> =
        records.runs.iter().filter(|run| Some(run.run) == first).map(|run| document(header, run)).collect();
    let all = match documents.len() {
        0 => return Err(LabError::NothingRun),
        1 => documents.into_iter().next().unwrap_or(Json::List(Vec::new())),
        _ => Json::List(documents),
    };
    match serde_json::to_string_pretty(&all) {
        Ok(text) => Ok(text + "\n"),
        Err(error) => unreachable!("text keys and plain numbers are JSON: {error}"),
    }
}

fn document(header: &Header, run: &RunRecord) -> Json {
    let jobs = &header.workload.jobs;
    let mut fields = vec![
        ("fio version", Json::Text(format!("fio-3.33-iosched-{}", header.version))),
        ("timestamp", 0u64.into()),
        ("timestamp_ms", 0u64.into()),
        ("time", "Thu Jan  1 00:00:00 1970".into()),
        ("device", header.devices[run.device].name.as_str().into()),
        ("scheduler", header.settings[run.setting].label.as_str().into()),
    ];
    if let Some(job) = jobs.iter().find(|job| !job.global_options.is_empty()) {
        fields.push(("global options", options(&job.global_options)));
    }
    fields.push(("jobs", Json::List(reported(jobs, &run.result.jobs).iter().map(entry).collect())));
    fields.push(("disk_util", Json::List(disk_util(header, run).into_iter().collect())));
    object(fields)
}

/// An entry of the report: a job, or a group with `group_reporting`.
struct Reported<'a> {
    /// The job, or the first job of the group.
    job: &'a JobRecord,
    result: JobResult,
    /// Time that counts, ns. For a group, this is the longest time of one of its jobs, even if the
    /// jobs did not run at the same time. fio does the same.
    counted_ns: u64,
}

/// Returns the entries of the report.
fn reported<'a>(jobs: &'a [JobRecord], results: &[JobResult]) -> Vec<Reported<'a>> {
    let mut all: Vec<Reported<'_>> = Vec::new();
    for (job, result) in jobs.iter().zip(results) {
        let is_of_group = |entry: &&mut Reported<'_>| {
            job.group_reporting && entry.job.group_reporting && entry.job.group == job.group
        };
        match all.iter_mut().find(is_of_group) {
            Some(entry) => {
                entry.result.merge(result);
                entry.counted_ns = entry.counted_ns.max(result.counted_ns());
            }
            None => all.push(Reported { job, result: result.clone(), counted_ns: result.counted_ns() }),
        }
    }
    all
}

fn options(options: &[(String, String)]) -> Json {
    object(options.iter().map(|(name, value)| (name.as_str(), value.as_str().into())))
}

fn entry(&Reported { job, ref result, counted_ns: ns }: &Reported<'_>) -> Json {
    let end_s = result.ended_ns.saturating_sub(result.started_ns.unwrap_or(result.ended_ns)).div_ceil(1_000_000_000);
    let mut fields: Vec<(&str, Json)> = vec![
        ("jobname", job.name.as_str().into()),
        ("groupid", u64::from(job.group).into()),
        ("error", u64::from(result.failed).into()),
        ("eta", 0u64.into()),
        ("elapsed", end_s.into()),
        ("job options", options(&job.options)),
    ];
    if !job.description.is_empty() {
        fields.push(("desc", job.description.as_str().into()));
    }
    fields.extend([
        ("read", direction(job, &result.read, ns)),
        ("write", direction(job, &result.write, ns)),
        ("trim", direction(job, &result.trim, ns)),
        (
            "sync",
            object([
                ("total_ios", result.sync.count().into()),
                ("lat_ns", latency(&result.sync, (result.sync.count() > 0).then_some(&job.percentiles))),
            ]),
        ),
        ("job_runtime", (ns / 1_000_000).into()),
        ("usr_cpu", 0.0.into()),
        ("sys_cpu", 0.0.into()),
        ("ctx", 0u64.into()),
        ("majf", 0u64.into()),
        ("minf", 0u64.into()),
        ("iodepth_level", shares(["1", "2", "4", "8", "16", "32", ">=64"], result.depth_level)),
        ("iodepth_submit", shares(["0", "4", "8", "16", "32", "64", ">=64"], result.depth_submit)),
        ("iodepth_complete", shares(["0", "4", "8", "16", "32", "64", ">=64"], result.depth_complete)),
    ]);
    fields.extend(latency_classes(result));
    fields.extend([
        ("latency_depth", u64::from(result.target_depth.unwrap_or(job.io_depth)).into()),
        ("latency_target", (job.latency_target_ns / 1000).into()),
        ("latency_percentile", job.latency_percentile.into()),
        ("latency_window", (job.latency_window_ns / 1000).into()),
    ]);
    object(fields)
}

fn direction(job: &JobRecord, result: &DirectionResult, counted_ns: u64) -> Json {
    let counted_ns = if result.ios == 0 { 0 } else { counted_ns };
    let per_s = |amount: u64| if counted_ns == 0 { 0.0 } else { amount as f64 * 1e9 / counted_ns as f64 };
    let bytes_per_s = per_s(result.bytes);
    let percentiles = |wanted: bool, of: &Histogram| (wanted && !of.is_empty()).then_some(&job.percentiles);
    let Samples { min, max, mean, count, .. } = result.bytes_per_s;
    let kib = |bytes: f64| bytes / 1024.0;
    let share = if bytes_per_s == 0.0 { 0.0 } else { (mean * 100.0 / bytes_per_s).min(100.0) };
    let iops = result.ios_per_s;
    object([
        ("io_bytes", result.bytes.into()),
        ("io_kbytes", (result.bytes / 1024).into()),
        ("bw_bytes", (bytes_per_s as u64).into()),
        ("bw", (kib(bytes_per_s) as u64).into()),
        ("iops", per_s(result.ios).into()),
        ("runtime", (counted_ns / 1_000_000).into()),
        ("total_ios", result.ios.into()),
        ("short_ios", 0u64.into()),
        ("drop_ios", 0u64.into()),
        ("slat_ns", latency(&result.submission, percentiles(job.slat_percentiles, &result.submission))),
        ("clat_ns", latency(&result.completion, percentiles(job.clat_percentiles, &result.completion))),
        ("lat_ns", latency(&result.latency, percentiles(job.lat_percentiles, &result.latency))),
        ("bw_min", (kib(min) as u64).into()),
        ("bw_max", (kib(max) as u64).into()),
        ("bw_agg", share.into()),
        ("bw_mean", kib(mean).into()),
        ("bw_dev", kib(result.bytes_per_s.deviation()).into()),
        ("bw_samples", count.into()),
        ("iops_min", (iops.min as u64).into()),
        ("iops_max", (iops.max as u64).into()),
        ("iops_mean", iops.mean.into()),
        ("iops_stddev", iops.deviation().into()),
        ("iops_samples", iops.count.into()),
    ])
}

/// Returns a latency, with percentiles if a list is given.
fn latency(histogram: &Histogram, percentiles: Option<&Vec<f64>>) -> Json {
    let mean = histogram.mean_ns();
    let squares: f64 = histogram
        .buckets()
        .map(|(first, width, n)| n as f64 * (first as f64 + (width - 1) as f64 / 2.0 - mean).powi(2))
        .sum();
    let deviation = if histogram.count() < 2 { 0.0 } else { (squares / (histogram.count() - 1) as f64).sqrt() };
    let mut fields = vec![
        ("min", histogram.min_ns().into()),
        ("max", histogram.max_ns().into()),
        ("mean", mean.into()),
        ("stddev", deviation.into()),
        ("N", histogram.count().into()),
    ];
    if let Some(list) = percentiles {
        let entry = |percent: &f64| (format!("{percent:.6}"), histogram.quantile_ns(percent / 100.0).into());
        fields.push(("percentile", object(list.iter().map(entry))));
    }
    object(fields)
}

/// Returns the counts in per cent of their sum.
fn shares(names: [&str; 7], counts: [u64; 7]) -> Json {
    let sum = counts.iter().sum::<u64>().max(1) as f64;
    object(names.into_iter().zip(counts.map(|count| (count as f64 * 100.0 / sum).into())))
}

/// Returns the share of the I/Os in each class of completion latency, per cent. The classes are in
/// three units.
fn latency_classes(result: &JobResult) -> [(&'static str, Json); 3] {
    let bounds_ns: Vec<u64> = [1, 1_000, 1_000_000]
        .iter()
        .flat_map(|unit| LATENCY_BOUNDS.iter().map(move |bound| bound * unit))
        .chain([2_000_000_000, u64::MAX])
        .collect();
    let mut counts = vec![0u64; bounds_ns.len()];
    for completion in [&result.read.completion, &result.write.completion, &result.trim.completion] {
        for (first, _, count) in completion.buckets() {
            counts[bounds_ns.partition_point(|&bound| bound <= first).min(bounds_ns.len() - 1)] += count;
        }
    }
    let sum = counts.iter().sum::<u64>().max(1) as f64;
    let shares: Vec<f64> = counts.iter().map(|&count| count as f64 * 100.0 / sum).collect();
    let class = |from: usize| {
        let longer = if from == 20 { &[2000][..] } else { &[] };
        let names = LATENCY_BOUNDS.iter().chain(longer).map(ToString::to_string);
        let last = (from == 20).then(|| ">=2000".to_owned());
        object(names.chain(last).zip(shares[from..].iter().map(|&share| share.into())))
    };
    [("latency_ns", class(0)), ("latency_us", class(10)), ("latency_ms", class(20))]
}

/// Returns the statistics of the device; `None` if they were not recorded.
fn disk_util(header: &Header, run: &RunRecord) -> Option<Json> {
    let share = run.result.utilisation()?;
    let queue = &run.result.queue;
    let ticks = |group: &QueueStatGroup| -> Json { ((group.time_ns as f64 / NS_PER_MS) as u64).into() };
    Some(object([
        ("name", header.devices[run.device].name.as_str().into()),
        ("read_ios", queue.reads.ios.into()),
        ("write_ios", queue.writes.ios.into()),
        ("read_merges", queue.reads.merges.into()),
        ("write_merges", queue.writes.merges.into()),
        ("read_ticks", ticks(&queue.reads)),
        ("write_ticks", ticks(&queue.writes)),
        ("in_queue", ((queue.weighted_ns as f64 / NS_PER_MS) as u64).into()),
        ("util", (share * 100.0).into()),
    ]))
}
