//! Output of rates: a table, its meaning for a scheduler, and its limits.

use std::fmt;

use super::{BUSY_PERCENT, DeviceRates, QUEUED_MIN, RatesSummary, RatesTool, Spread};
use crate::grouped::grouped;
use crate::table::{Align, Table};

const MB: f64 = 1e6;
/// Index of the column with the wait of reads, or of all requests if that is the only wait.
const READ_WAIT: usize = 6;
/// The heading of the table, with units.
const HEADING: [&str; 10] = [
    "device",
    "busy %",
    "requests/s",
    "read MB/s",
    "written MB/s",
    "KiB/request",
    "read ms",
    "write ms",
    "queue",
    "queue while busy",
];

impl fmt::Display for RatesSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tool = match self.tool {
            RatesTool::Iostat => "iostat -x",
            RatesTool::Sar => "sar -d",
        };
        let intervals = self.devices.iter().map(|device| device.intervals).max().unwrap_or(0);
        let left_out = if self.leaves_out_first {
            "; iosched left out the first report, because it may cover the time since the system started"
        } else {
            ""
        };
        if self.is_since_start {
            writeln!(
                f,
                "{tool}: one report, with averages since the system started. Such averages hide bursts; to get \
                 one report per second, run: iostat -x 1 60\n"
            )?;
        } else {
            let intervals = grouped(intervals);
            writeln!(
                f,
                "{tool}: {intervals} intervals{left_out}; the table has means, and the largest values in brackets\n"
            )?;
        }
        let mut heading = HEADING;
        // sar, iostat -s and old versions of iostat print only one wait, for all requests.
        if self.devices.iter().all(|device| device.read_wait_ms.is_none() && device.write_wait_ms.is_none()) {
            heading[READ_WAIT] = "request ms";
        }
        let mut table = Table::new(std::iter::once(Align::Left(0)).chain([Align::Right(0); HEADING.len() - 1]));
        table.row(heading);
        self.devices.iter().for_each(|device| table.row(device.row()));
        writeln!(f, "{table}")?;
        writeln!(f)?;
        for device in &self.devices {
            writeln!(f, "{}: {}", device.device, device.meaning())?;
        }
        let busiest = self.devices.iter().max_by(|a, b| a.busy_mean().total_cmp(&b.busy_mean()));
        let device = busiest.map_or("DISK", |device| device.device.as_str());
        write!(
            f,
            "\nThis table has rates and no requests, so iosched cannot compare schedulers with it. Record the \
             requests:\nnext:  iosched record {device} --for 60"
        )
    }
}

impl DeviceRates {
    fn busy_mean(&self) -> f64 {
        self.busy_percent.map_or(0.0, |busy| busy.mean)
    }

    /// Returns the requests per second, from their own column or as the sum of reads and writes.
    fn requests(&self) -> Option<Spread> {
        self.requests_per_s.or_else(|| {
            let (reads, writes) = (self.reads_per_s?, self.writes_per_s?);
            Some(Spread { mean: reads.mean + writes.mean, max: reads.max + writes.max })
        })
    }

    fn row(&self) -> [String; HEADING.len()] {
        let spread_text = |spread: Option<Spread>, unit: f64, decimals: usize| {
            spread.map_or_else(
                || "-".to_owned(),
                |Spread { mean, max }| format!("{:.decimals$} ({:.decimals$})", mean / unit, max / unit),
            )
        };
        let bytes = self.read_bytes_per_s.zip(self.write_bytes_per_s).map(|(read, write)| read.mean + write.mean);
        let size = bytes.zip(self.requests()).filter(|(_, requests)| requests.mean > 0.0);
        let size =
            size.map_or_else(|| "-".to_owned(), |(bytes, requests)| format!("{:.1}", bytes / requests.mean / 1024.0));
        [
            self.device.clone(),
            spread_text(self.busy_percent, 1.0, 0),
            spread_text(self.requests(), 1.0, 0),
            spread_text(self.read_bytes_per_s, MB, 1),
            spread_text(self.write_bytes_per_s, MB, 1),
            size,
            spread_text(self.read_wait_ms.or(self.wait_ms), 1.0, 2),
            spread_text(self.write_wait_ms, 1.0, 2),
            spread_text(self.queue, 1.0, 1),
            spread_text(self.queue_while_busy, 1.0, 1),
        ]
    }

    /// Returns a text with the meaning of the rates for a scheduler.
    #[must_use]
    pub fn meaning(&self) -> String {
        let (busy, queued) = (self.busy_intervals, self.queued_intervals);
        let share_of_intervals = format!("of {} intervals", grouped(self.intervals));
        if self.queue.is_none() {
            return "the report does not contain the number of waiting requests".to_owned();
        }
        let contradiction = self.contradiction().map_or_else(String::new, |contradiction| format!("; {contradiction}"));
        let Some(in_flight) = self.queue_while_busy else {
            let queue = self.queue.map_or(0.0, |queue| queue.max);
            return format!(
                "in the report, the busy time is always 0 %, and the longest queue has {queue:.1} \
                            requests{contradiction}"
            );
        };
        let means = format!(
            "{:.1} requests in flight while the disk was busy (mean; the largest value is {:.1})",
            in_flight.mean, in_flight.max
        );
        if queued == 0 {
            return format!(
                "{means}. A scheduler can seldom choose between several requests, unless requests arrived in \
                 bursts{contradiction}"
            );
        }
        let is_busy = if busy == 0 {
            format!("the disk was busy for less than {BUSY_PERCENT} % of the time in every interval")
        } else {
            format!(
                "the disk was busy for {BUSY_PERCENT} % of the time or more in {} {share_of_intervals}",
                grouped(busy)
            )
        };
        format!(
            "{means}, {QUEUED_MIN} or more in {} {share_of_intervals}; {is_busy}. A scheduler can choose between \
             several requests{contradiction}",
            grouped(queued)
        )
    }

    /// Returns a sentence if values contradict each other.
    fn contradiction(&self) -> Option<String> {
        let [queue, by_waits] = self.contradiction?;
        Some(format!(
            "the values of {} of {} intervals contradict each other. The queue length in the report is {queue:.2}, \
             but the product of rates and waits is {by_waits:.2} requests. Do not rely on either value",
            grouped(self.contradicting_intervals),
            grouped(self.intervals)
        ))
    }
}
