//! A summary of a trace, from one pass with bounded memory.

pub(crate) mod display;
mod timeline;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use iosched::{IoPriority, Op, SECTOR_BYTES, Sector, Time};
use iosched_numbers::Histogram;
use serde::{Deserialize, Serialize};

use crate::survey::{Survey, decimal_grain};
use crate::{Format, TraceError, TraceReader, TraceRequest};
use timeline::Timeline;
pub use timeline::{BINS_MAX, TimeBin};

/// Maximum number of processes that are distinguished: the first ones of the trace. The rest are
/// counted together.
pub const PROCESSES_MAX: usize = 4_096;
/// Maximum number of priorities that are distinguished for a process.
pub const PRIORITIES_MAX: usize = 8;
/// Maximum number of devices that are distinguished. The rest are counted together.
pub const DEVICES_MAX: usize = 256;
/// Maximum number of requests in flight that are followed.
const IN_FLIGHT_MAX: usize = 1 << 20;

/// Counts of requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// Number of requests.
    pub requests: u64,
    /// Number of sync requests among them.
    pub sync: u64,
    /// Total length, bytes.
    pub bytes: u64,
    /// Length of the shortest request with data, bytes; 0 if there is none.
    pub size_min_bytes: u64,
    /// Length of the longest request, bytes.
    pub size_max_bytes: u64,
}

impl Count {
    fn add(&mut self, request: &TraceRequest) {
        let bytes = u64::from(request.nr_sectors) * SECTOR_BYTES;
        if request.op.has_data() {
            let shortest = if self.size_min_bytes == 0 { bytes } else { self.size_min_bytes.min(bytes) };
            self.size_min_bytes = shortest;
        }
        self.size_max_bytes = self.size_max_bytes.max(bytes);
        self.requests += 1;
        self.sync += u64::from(request.is_sync());
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns the mean length, including requests without data, bytes; 0 if there is none.
    #[must_use]
    pub fn size_mean_bytes(&self) -> f64 {
        self.bytes as f64 / self.requests.max(1) as f64
    }
}

/// Requests of a range of lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeBucket {
    /// Largest length in this bucket, bytes: a power of two. All lengths in the bucket are above
    /// half of it.
    pub up_to_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Writes, including those of zeroes.
    pub writes: u64,
}

/// Counts of the requests of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessSummary {
    /// Its pid.
    pub pid: u32,
    /// Its name, if the trace has it.
    pub name: Option<String>,
    /// Requests with and without data.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Requests that begin where this process's previous request on the same device ended.
    pub sequential: u64,
    /// Priorities of the process, such as `idle` and `be/7`, in the order of time; at most
    /// [`PRIORITIES_MAX`]. Empty if the trace has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priorities: Vec<String>,
}

/// Counts of the requests to one device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSummary {
    /// Its number as in [`TraceRequest::device`].
    pub device: Option<u32>,
    /// Its name, if the trace has it; `major,minor` for device numbers.
    pub name: Option<String>,
    /// Requests to it.
    pub requests: u64,
    /// The sector after the last requested one. A device must have at least this size, sectors, to
    /// replay the trace.
    pub size_sectors: Sector,
}

/// Latencies in the recorded system, from submission to completion. The error of percentiles is at
/// most 1.6 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Requests with a known latency.
    pub requests: u64,
    /// Mean, ns.
    pub mean_ns: f64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 95th percentile, ns.
    pub p95_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
}

impl LatencySummary {
    /// Returns the summary of latencies, or `None` if there are none.
    fn of(latencies: &Histogram) -> Option<Self> {
        (!latencies.is_empty()).then(|| Self {
            requests: latencies.count(),
            mean_ns: latencies.mean_ns(),
            p50_ns: latencies.quantile_ns(0.50),
            p95_ns: latencies.quantile_ns(0.95),
            p99_ns: latencies.quantile_ns(0.99),
            max_ns: latencies.max_ns(),
        })
    }
}

/// Summary of the requests of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// Its format.
    pub format: Format,
    /// Resolution of its times, ns.
    pub resolution_ns: u64,
    /// Number of steps back in time, in the order of the file.
    #[serde(default)]
    pub steps_back: u64,
    /// Largest of these steps, ns.
    #[serde(default)]
    pub step_back_max_ns: u64,
    /// Oddities of its times, places and lengths, in sentences.
    #[serde(default)]
    pub oddities: Vec<String>,
    /// Time from the first submission to the last, ns.
    pub span_ns: u64,
    /// All requests.
    pub all: Count,
    /// Reads.
    pub reads: Count,
    /// Writes.
    pub writes: Count,
    /// Discards.
    pub discards: Count,
    /// Writes of zeroes, if the format distinguishes them.
    pub write_zeroes: Count,
    /// Flushes without data.
    pub flushes: Count,
    /// Lengths of reads and writes, shortest first, without empty buckets at either end.
    pub sizes: Vec<SizeBucket>,
    /// Requests with data that begin where the previous request on the same device ended. Both
    /// requests can be of different processes.
    pub sequential: u64,
    /// Requests with data that begin where the same process's previous request on the same device
    /// ended.
    pub sequential_by_process: u64,
    /// Processes, in the order of their number of requests, most first, then by pid; at most
    /// [`PROCESSES_MAX`].
    pub processes: Vec<ProcessSummary>,
    /// Requests of other processes.
    pub other_processes_requests: u64,
    /// Devices by number; at most [`DEVICES_MAX`].
    pub devices: Vec<DeviceSummary>,
    /// The size that a device must have to replay the trace, sectors.
    pub size_sectors: Sector,
    /// Latencies, if any is known.
    pub latency: Option<LatencySummary>,
    /// Width of the bins of `over_time`, ns.
    pub bin_ns: u64,
    /// Counts over time: at most [`BINS_MAX`] bins from the first submission to the last.
    pub over_time: Vec<TimeBin>,
    /// Records dropped during recording, according to sequence numbers.
    pub dropped_records: u64,
    /// Number of all warnings.
    pub warnings_total: u64,
    /// The first warnings.
    pub warnings: Vec<String>,
}

impl TraceSummary {
    /// Returns the number of requests with data.
    #[must_use]
    pub fn with_data(&self) -> u64 {
        self.all.requests - self.flushes.requests
    }
}

/// Makes a [`TraceSummary`] from requests, one by one.
#[derive(Debug, Default)]
pub struct Summarizer {
    first: Option<Time>,
    last: Time,
    counts: [Count; 5],
    all: Count,
    sizes: BTreeMap<u32, (u64, u64)>,
    processes: BTreeMap<u32, ProcessState>,
    other_processes_requests: u64,
    devices: BTreeMap<Option<u32>, DeviceState>,
    sequential: u64,
    size_sectors: Sector,
    latencies: Histogram,
    /// Greatest power of ten that divides all latencies, ns. It shows the resolution of the
    /// latencies.
    latency_grain_ns: Option<u64>,
    /// Requests in flight: the time of completion, and the time by which it may be earlier, ns.
    in_flight: BinaryHeap<Reverse<(Time, u64)>>,
    timeline: Timeline,
    survey: Survey,
}

#[derive(Debug, Default)]
struct ProcessState {
    summary: ProcessSummary,
    end: Option<(Option<u32>, Sector)>,
    ioprio: Option<IoPriority>,
}

#[derive(Debug, Default)]
struct DeviceState {
    requests: u64,
    size_sectors: Sector,
    end: Option<Sector>,
}

const OPS: [Op; 5] = [Op::Read, Op::Write, Op::Discard, Op::WriteZeroes, Op::Flush];

impl Summarizer {
    /// Creates a summarizer that has seen no request.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request, which must not be earlier than the preceding one.
    pub fn add(&mut self, request: &TraceRequest) {
        let first = *self.first.get_or_insert(request.arrival);
        let now = request.arrival.max(self.last);
        self.survey.add(request);
        self.all.add(request);
        let kind = OPS.iter().position(|op| *op == request.op).unwrap_or(0);
        self.counts[kind].add(request);
        self.add_size(request);
        self.size_sectors = self.size_sectors.max(request.end());
        self.add_device(request);
        self.add_process(request);
        self.pass_time(now, first);
        let bytes = u64::from(request.nr_sectors) * SECTOR_BYTES;
        self.timeline.arrive(now.since(first), bytes);
        if let Some(latency_ns) = request.latency_ns {
            self.latencies.record(latency_ns);
            if self.in_flight.len() < IN_FLIGHT_MAX {
                let slack_ns = self.latency_slack_ns(latency_ns);
                self.in_flight.push(Reverse((now + latency_ns, slack_ns)));
            }
            self.timeline.depth_reached(now.since(first), self.in_flight.len() as u64);
        }
    }

    /// Returns the time by which a request with this latency may have completed earlier, ns.
    /// Latencies are rounded, so the next request of a process may seem to begin before this
    /// request ended.
    fn latency_slack_ns(&mut self, latency_ns: u64) -> u64 {
        if latency_ns == 0 {
            return 0;
        }
        let grain_ns = decimal_grain(latency_ns).min(self.latency_grain_ns.unwrap_or(u64::MAX));
        self.latency_grain_ns = Some(grain_ns);
        // The first few latencies may be round by chance, so they do not show the resolution yet.
        (grain_ns - 1).min(latency_ns / 8)
    }

    /// Advances the time to `now`, and completes the requests that completed before `now`.
    fn pass_time(&mut self, now: Time, first: Time) {
        let is_done = |Reverse((done, slack_ns)): &&Reverse<(Time, u64)>| *done <= now + *slack_ns;
        while let Some(&Reverse((done, _))) = self.in_flight.peek().filter(is_done) {
            let done = done.min(now);
            self.timeline.depth_held(self.last.since(first), done.since(first), self.in_flight.len() as u64);
            self.last = self.last.max(done);
            self.in_flight.pop();
        }
        self.timeline.depth_held(self.last.since(first), now.since(first), self.in_flight.len() as u64);
        self.last = now;
    }

    fn add_size(&mut self, request: &TraceRequest) {
        let bucket = (u64::from(request.nr_sectors) * SECTOR_BYTES).next_power_of_two().ilog2();
        match request.op {
            Op::Read => self.sizes.entry(bucket).or_default().0 += 1,
            Op::Write | Op::WriteZeroes => self.sizes.entry(bucket).or_default().1 += 1,
            Op::Discard | Op::Flush => {}
        }
    }

    fn add_device(&mut self, request: &TraceRequest) {
        if self.devices.len() >= DEVICES_MAX && !self.devices.contains_key(&request.device) {
            return;
        }
        let device = self.devices.entry(request.device).or_default();
        device.requests += 1;
        device.size_sectors = device.size_sectors.max(request.end());
        if request.op.has_data() {
            self.sequential += u64::from(device.end == Some(request.sector));
            device.end = Some(request.end());
        }
    }

    fn add_process(&mut self, request: &TraceRequest) {
        if self.processes.len() >= PROCESSES_MAX && !self.processes.contains_key(&request.pid) {
            self.other_processes_requests += 1;
            return;
        }
        let process = self.processes.entry(request.pid).or_default();
        let summary = &mut process.summary;
        if let Some(ioprio) = request.ioprio
            && process.ioprio.replace(ioprio) != Some(ioprio)
            && summary.priorities.len() < PRIORITIES_MAX
        {
            let text = ioprio.to_string();
            if !summary.priorities.contains(&text) {
                summary.priorities.push(text);
            }
        }
        summary.requests += 1;
        summary.reads += u64::from(request.op == Op::Read);
        if matches!(request.op, Op::Read | Op::Write) {
            summary.bytes = summary.bytes.saturating_add(u64::from(request.nr_sectors) * SECTOR_BYTES);
        }
        if request.op.has_data() {
            summary.sequential += u64::from(process.end == Some((request.device, request.sector)));
            process.end = Some((request.device, request.end()));
        }
    }

    /// Returns the summary. Format, names and warnings come from `reader`, which
    /// should be at its end.
    #[must_use]
    pub fn finish(self, reader: &TraceReader) -> TraceSummary {
        let names = reader.process_names();
        let mut processes: Vec<_> = self
            .processes
            .into_iter()
            .map(|(pid, state)| {
                let name = names.get(&pid).map(|name| name.to_text());
                ProcessSummary { pid, name, ..state.summary }
            })
            .collect();
        processes.sort_by_key(|process| (Reverse(process.requests), process.pid));
        let [reads, writes, discards, write_zeroes, flushes] = self.counts;
        let devices = self.devices.into_iter().map(|(device, state)| DeviceSummary {
            device,
            name: device.map(|device| reader.device_text(device)),
            requests: state.requests,
            size_sectors: state.size_sectors,
        });
        let warnings = reader.warnings();
        let span_ns = self.first.map_or(0, |first| self.last.since(first));
        let oddities = self.survey.oddities_of(reader);
        let depth_known = self.latencies.count() > 0;
        TraceSummary {
            format: reader.format(),
            resolution_ns: self.survey.resolution_ns(reader.resolution_ns()),
            steps_back: reader.steps_back().count,
            step_back_max_ns: reader.steps_back().largest_ns,
            oddities: oddities.iter().map(ToString::to_string).collect(),
            span_ns,
            all: self.all,
            reads,
            writes,
            discards,
            write_zeroes,
            flushes,
            sizes: size_buckets(&self.sizes),
            sequential: self.sequential,
            sequential_by_process: processes.iter().map(|process| process.sequential).sum(),
            processes,
            other_processes_requests: self.other_processes_requests,
            devices: devices.collect(),
            size_sectors: self.size_sectors,
            latency: LatencySummary::of(&self.latencies),
            bin_ns: self.timeline.bin_ns(),
            over_time: self.timeline.bins(span_ns, depth_known),
            dropped_records: warnings.dropped_records(),
            warnings_total: warnings.total(),
            warnings: warnings.kept().iter().map(ToString::to_string).collect(),
        }
    }
}

fn size_buckets(sizes: &BTreeMap<u32, (u64, u64)>) -> Vec<SizeBucket> {
    let (Some((&low, _)), Some((&high, _))) = (sizes.first_key_value(), sizes.last_key_value()) else {
        return Vec::new();
    };
    let bucket = |power: u32| {
        let (reads, writes) = sizes.get(&power).copied().unwrap_or_default();
        SizeBucket { up_to_bytes: 1 << power, reads, writes }
    };
    (low..=high).map(bucket).collect()
}

/// Reads `reader` to its end and returns a summary of the trace.
///
/// # Errors
/// If nothing can be read.
pub fn summarize(reader: &mut TraceReader) -> Result<TraceSummary, TraceError> {
    let mut summarizer = Summarizer::new();
    for request in reader.by_ref() {
        summarizer.add(&request?);
    }
    Ok(summarizer.finish(reader))
}
