//! Rates of devices by interval, as `iostat -x` and `sar -d` print them: busy time of devices and
//! waits of requests. Rates are not a trace, because they do not contain the requests. Rates are
//! therefore not enough to compare schedulers.
//!
//! | file | contents |
//! |---|---|
//! | `table.rs` | tables in text, of any version: the heading defines a column |
//! | `document.rs` | `iostat -o JSON`, `sadf -j` |
//! | `display.rs` | output |

mod display;
mod document;
mod table;

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;

use serde::Serialize;

use crate::decompress::{plain, read_text};
use crate::error::TraceError;
use crate::plain::open_plain;

/// Maximum length of the text that is read, bytes. It is enough for reports of several days.
pub const RATES_BYTES_MAX: u64 = 256 << 20;
/// Number of bytes at the start of a file that must contain the first heading.
const HEAD_BYTES: u64 = 64 * 1024;
/// Minimum busy time of a busy device, percent of an interval. Such a device either has no time
/// left, or executes many requests at once.
pub const BUSY_PERCENT: f64 = 90.0;
/// Minimum number of requests in flight, while the device is busy, with which a scheduler has a
/// choice.
pub const QUEUED_MIN: f64 = 2.0;
/// Factor by which the queue length must differ from the rates times the waits. If both this factor
/// and [`CONTRADICTION_MIN`] are exceeded, the values of the interval contradict each other.
const CONTRADICTION_TIMES: f64 = 3.0;
/// Minimum difference for a contradiction, requests. Printed values are rounded.
const CONTRADICTION_MIN: f64 = 0.1;

/// The tool that printed the rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RatesTool {
    /// `iostat -x`.
    Iostat,
    /// `sar -d`.
    Sar,
}

/// Rates of all devices in the output of iostat or sar.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RatesSummary {
    /// The tool that printed the rates.
    pub tool: RatesTool,
    /// Whether the first report was left out. iostat's first report covers the
    /// time since the machine's start.
    pub leaves_out_first: bool,
    /// Whether there is only one report of iostat, whose values are means since the system started.
    pub is_since_start: bool,
    /// The devices, in the order of the reports.
    pub devices: Vec<DeviceRates>,
}

/// Mean and maximum over all intervals.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: f64,
}

/// Rates of a device. Values that were not printed are `None`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DeviceRates {
    /// Name of the device.
    pub device: String,
    /// Number of intervals.
    pub intervals: u64,
    /// Reads per second.
    pub reads_per_s: Option<Spread>,
    /// Writes per second.
    pub writes_per_s: Option<Spread>,
    /// Requests per second, of any kind.
    pub requests_per_s: Option<Spread>,
    /// Bytes read per second.
    pub read_bytes_per_s: Option<Spread>,
    /// Bytes written per second.
    pub write_bytes_per_s: Option<Spread>,
    /// Latency of reads, ms, in queue and device together. The mean is over all reads; the maximum
    /// is the mean of the slowest interval.
    pub read_wait_ms: Option<Spread>,
    /// Latency of writes, in the same form as [`DeviceRates::read_wait_ms`].
    pub write_wait_ms: Option<Spread>,
    /// Latency of all requests, in the same form, if the tool does not distinguish reads and
    /// writes.
    pub wait_ms: Option<Spread>,
    /// Number of requests that were queued or in the device: the mean of each interval, including
    /// idle time.
    pub queue: Option<Spread>,
    /// Number of requests that were queued or in the device while the device was busy:
    /// [`DeviceRates::queue`] divided by the busy fraction of the time.
    pub queue_while_busy: Option<Spread>,
    /// Intervals in which the queue length contradicts the rates times the waits.
    pub contradicting_intervals: u64,
    /// For the first of these intervals: the printed queue length, and the queue length that
    /// follows from rates and waits.
    pub contradiction: Option<[f64; 2]>,
    /// Time in which the device had work, percent.
    pub busy_percent: Option<Spread>,
    /// Intervals in which the device was busy for [`BUSY_PERCENT`] or more.
    pub busy_intervals: u64,
    /// Intervals with [`QUEUED_MIN`] requests or more in flight while the device was busy.
    pub queued_intervals: u64,
}

/// Values of a device in a report.
#[derive(Clone, Default, PartialEq, Debug)]
struct Row {
    device: String,
    values: BTreeMap<Field, f64>,
}

impl Row {
    fn get(&self, field: Field) -> Option<f64> {
        self.values.get(&field).copied()
    }

    /// Returns the number of requests in flight while the device was busy. The printed queue length
    /// is a mean that includes idle time.
    fn queue_while_busy(&self) -> Option<f64> {
        let (queue, busy) = (self.get(Field::Queue)?, self.get(Field::Busy)?);
        // Some versions print more than 100 %.
        (busy > 0.0).then(|| queue / (busy.min(100.0) / 100.0))
    }

    /// Returns the length of the queue while the device was busy. If the values of the interval
    /// contradict each other, returns the largest length that follows from them.
    fn queue_at_most(&self) -> Option<f64> {
        let busy = self.get(Field::Busy).filter(|busy| *busy > 0.0).map_or(1.0, |busy| busy.min(100.0) / 100.0);
        let by_waits = self.contradiction().map(|[_, by_waits]| by_waits / busy);
        let queue = self.queue_while_busy().or_else(|| self.get(Field::Queue))?;
        Some(by_waits.map_or(queue, |waiting| waiting.max(queue)))
    }

    /// Returns the queue length and the sum of rates times waits if they contradict each other.
    /// According to Little's law they should be equal.
    fn contradiction(&self) -> Option<[f64; 2]> {
        let queue = self.get(Field::Queue)?;
        let product = |rate, wait| Some(self.get(rate)? * self.get(wait)?);
        let read_and_write = product(Field::Reads, Field::ReadWait).zip(product(Field::Writes, Field::WriteWait));
        let more = product(Field::Discards, Field::DiscardWait).unwrap_or(0.0)
            + product(Field::Flushes, Field::FlushWait).unwrap_or(0.0);
        let all = || Some(self.requests()? * self.get(Field::Wait)?);
        let by_waits = read_and_write.map(|(reads, writes)| reads + writes + more).or_else(all)? / 1000.0;
        let (least, most) = (queue.min(by_waits), queue.max(by_waits));
        // A wait of less than 10 us may be printed as 0.
        let rounded = self.requests().unwrap_or(0.0) * 0.01 / 1000.0;
        (most > least * CONTRADICTION_TIMES && most - least > CONTRADICTION_MIN + rounded).then_some([queue, by_waits])
    }

    /// Returns the requests per second, of any kind.
    fn requests(&self) -> Option<f64> {
        self.get(Field::Requests).or_else(|| Some(self.get(Field::Reads)? + self.get(Field::Writes)?))
    }
}

/// Meaning of a column.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Field {
    Reads,
    Writes,
    Requests,
    ReadBytes,
    WriteBytes,
    ReadWait,
    WriteWait,
    Discards,
    DiscardWait,
    Flushes,
    FlushWait,
    Wait,
    Queue,
    Busy,
}

impl Field {
    /// Returns the meaning of a heading, and the factor that converts its values to iosched's unit.
    fn of(heading: &str) -> Option<(Self, f64)> {
        const KIB: f64 = 1024.0;
        Some(match heading {
            "r/s" => (Self::Reads, 1.0),
            "w/s" => (Self::Writes, 1.0),
            "tps" => (Self::Requests, 1.0),
            "rkB/s" => (Self::ReadBytes, KIB),
            "wkB/s" => (Self::WriteBytes, KIB),
            "rMB/s" => (Self::ReadBytes, KIB * KIB),
            "wMB/s" => (Self::WriteBytes, KIB * KIB),
            "rsec/s" | "rd_sec/s" => (Self::ReadBytes, iosched::SECTOR_BYTES as f64),
            "wsec/s" | "wr_sec/s" => (Self::WriteBytes, iosched::SECTOR_BYTES as f64),
            "r_await" => (Self::ReadWait, 1.0),
            "w_await" => (Self::WriteWait, 1.0),
            "d/s" => (Self::Discards, 1.0),
            "d_await" => (Self::DiscardWait, 1.0),
            "f/s" => (Self::Flushes, 1.0),
            "f_await" => (Self::FlushWait, 1.0),
            "await" => (Self::Wait, 1.0),
            "aqu-sz" | "avgqu-sz" => (Self::Queue, 1.0),
            "%util" | "util" => (Self::Busy, 1.0),
            _ => return None,
        })
    }
}

/// A report: a row for each device.
type Report = Vec<Row>;

/// Reads the rates of iostat or sar from the file at `path`, which may be compressed. Returns
/// `None` if the file is not output of iostat or sar.
///
/// # Errors
/// If the file is output of iostat or sar, but cannot be read to its end.
pub fn read_rates(path: &Path) -> Result<Option<RatesSummary>, TraceError> {
    // If the file cannot be opened, reading it as a trace reports the error.
    let Ok(head) = read_head(path) else { return Ok(None) };
    if !looks_like_rates(&String::from_utf8_lossy(&head)) {
        return Ok(None);
    }
    let text = read_text(path, RATES_BYTES_MAX);
    Ok(rates_of(&text.map_err(|source| TraceError::Io { file: path.display().to_string(), source })?))
}

/// Returns the first bytes.
fn read_head(path: &Path) -> io::Result<Vec<u8>> {
    let (reader, _) = plain(Box::new(open_plain(path)?))?;
    let mut head = Vec::new();
    reader.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// Parses the rates of iostat or sar in a text.
#[must_use]
pub fn rates_of(text: &str) -> Option<RatesSummary> {
    let (tool, reports) = document::reports(text).or_else(|| table::reports(text))?;
    Some(summary(tool, &reports))
}

/// Returns whether the first lines of a text seem to be output of iostat or sar.
pub(crate) fn looks_like_rates(head: &str) -> bool {
    table::has_heading(head) || document::looks_like(head)
}

/// Returns why a text that looks like output of iostat or sar has no report. Returns `None` if the
/// text has a report.
pub(crate) fn fault(text: &str) -> Option<String> {
    if rates_of(text).is_some() {
        return None;
    }
    Some(table::fault(text).unwrap_or_else(|| "no line follows the heading".to_owned()))
}

fn summary(tool: RatesTool, reports: &[Report]) -> RatesSummary {
    let leaves_out_first = tool == RatesTool::Iostat && reports.len() > 1;
    let is_since_start = tool == RatesTool::Iostat && reports.len() == 1;
    let reports = &reports[usize::from(leaves_out_first)..];
    let mut names: Vec<&str> = Vec::new();
    let mut rows: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in reports.iter().flatten() {
        let of_device = rows.entry(&row.device).or_insert_with(|| {
            names.push(&row.device);
            Vec::new()
        });
        of_device.push(row);
    }
    let devices = names.iter().map(|name| device(name, &rows[name])).collect();
    RatesSummary { tool, leaves_out_first, is_since_start, devices }
}

fn device(name: &str, rows: &[&Row]) -> DeviceRates {
    let get = |row: &Row, field| row.values.get(&field).copied();
    let spread = |field| {
        let values = || rows.iter().filter_map(|row| get(row, field));
        let count = values().count();
        let max = values().fold(0.0, f64::max);
        (count > 0).then(|| Spread { mean: values().sum::<f64>() / count as f64, max })
    };
    // The mean weights each interval's mean by its number of requests.
    let wait = |field, by: &dyn Fn(&Row) -> f64| {
        let values = || rows.iter().filter_map(|row| Some((get(row, field)?, by(row))));
        let requests: f64 = values().map(|(_, requests)| requests).sum();
        let total: f64 = values().map(|(wait, requests)| wait * requests).sum();
        (requests > 0.0)
            .then(|| Spread { mean: total / requests, max: values().map(|pair| pair.0).fold(0.0, f64::max) })
    };
    let value = |field| move |row: &Row| row.values.get(&field).copied().unwrap_or(0.0);
    let all =
        |row: &Row| get(row, Field::Requests).unwrap_or_else(|| value(Field::Reads)(row) + value(Field::Writes)(row));
    let busy = rows.iter().filter(|row| get(row, Field::Busy).is_some_and(|busy| busy >= BUSY_PERCENT)).count() as u64;
    let queues = || rows.iter().filter_map(|row| Some((row.queue_while_busy()?, get(row, Field::Busy)?)));
    // The mean is over the time in which the device was busy.
    let busy_total: f64 = queues().map(|(_, busy)| busy).sum();
    let queue_while_busy = (busy_total > 0.0).then(|| Spread {
        mean: queues().map(|(queue, busy)| queue * busy).sum::<f64>() / busy_total,
        max: queues().map(|requests| requests.0).fold(0.0, f64::max),
    });
    let contradictions: Vec<[f64; 2]> = rows.iter().filter_map(|row| row.contradiction()).collect();
    DeviceRates {
        device: name.to_owned(),
        intervals: rows.len() as u64,
        reads_per_s: spread(Field::Reads),
        writes_per_s: spread(Field::Writes),
        requests_per_s: spread(Field::Requests),
        read_bytes_per_s: spread(Field::ReadBytes),
        write_bytes_per_s: spread(Field::WriteBytes),
        read_wait_ms: wait(Field::ReadWait, &value(Field::Reads)),
        write_wait_ms: wait(Field::WriteWait, &value(Field::Writes)),
        wait_ms: wait(Field::Wait, &all),
        queue: spread(Field::Queue),
        queue_while_busy,
        contradicting_intervals: contradictions.len() as u64,
        contradiction: contradictions.first().copied(),
        busy_percent: spread(Field::Busy),
        busy_intervals: busy,
        queued_intervals: rows
            .iter()
            .filter(|row| row.queue_at_most().is_some_and(|waiting| waiting >= QUEUED_MIN))
            .count() as u64,
    }
}
