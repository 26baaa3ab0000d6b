//! Text output of a summary: a few tables, and the conclusion at the end.

use std::fmt;

use iosched::SECTOR_BYTES;

use super::{Count, TimeBin, TraceSummary};
use crate::grouped::grouped;
use crate::table::{Align, Table};

/// Maximum number of rows in the table of processes, and in the table of time.
const ROWS_MAX: usize = 16;
const KIB: f64 = 1024.0;

impl fmt::Display for TraceSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kinds(f)?;
        self.lengths(f)?;
        self.latencies(f)?;
        self.who(f)?;
        self.time(f)?;
        self.oddities(f)?;
        self.damage(f)?;
        self.sentence(f)
    }
}

impl TraceSummary {
    fn kinds(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(std::iter::once(Align::Left(16)).chain([Align::Right(12); 6]));
        table.row(["", "requests", "sync", "KiB", "mean KiB", "min KiB", "max KiB"]);
        let (requests, sync) = (grouped(self.all.requests), grouped(self.all.sync));
        table.row(["all".to_owned(), requests, sync, kib(self.all.bytes as f64)]);
        let kinds = [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("discards", &self.discards),
            ("zeroing writes", &self.write_zeroes),
        ];
        for (name, count) in kinds.into_iter().filter(|(_, count)| count.requests > 0) {
            table.row(row(name, count));
        }
        if self.flushes.requests > 0 {
            table.row(["flushes".to_owned(), grouped(self.flushes.requests), grouped(self.flushes.sync)]);
        }
        writeln!(f, "{table}")
    }

    fn lengths(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sizes.is_empty() {
            return Ok(());
        }
        let mut table = Table::new([Align::Left(6), Align::Right(9), Align::Right(13), Align::Right(12)]);
        table.row(["length", "KiB", "reads", "writes"]);
        for bucket in &self.sizes {
            let up_to = kib(bucket.up_to_bytes as f64);
            table.row(["up to".to_owned(), up_to, grouped(bucket.reads), grouped(bucket.writes)]);
        }
        writeln!(f, "\n{table}")
    }

    fn latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(latency) = &self.latency else { return Ok(()) };
        let columns = std::iter::once(Align::Left(16)).chain([Align::Right(12); 5]).chain([Align::Left(0)]);
        let mut table = Table::new(columns);
        table.row(["latency       ms", "mean", "p50", "p95", "p99", "max"]);
        let figures = [latency.p50_ns, latency.p95_ns, latency.p99_ns, latency.max_ns].map(|ns| ns as f64);
        let figures = std::iter::once(latency.mean_ns).chain(figures).map(|ns| format!("{:.3}", ns / 1e6));
        let is_part = latency.requests < self.all.requests;
        let number_of_requests = is_part.then(|| format!("   of {} requests", grouped(latency.requests)));
        table.row(std::iter::once("recorded".to_owned()).chain(figures).chain(number_of_requests));
        writeln!(f, "\n{table}")
    }

    fn who(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.processes.iter().any(|process| process.pid != 0) {
            writeln!(f, "\n{}", self.processes_table())?;
        }
        if self.devices.len() > 1 {
            let mut table = Table::new([Align::Left(28), Align::Right(13), Align::Right(13)]);
            table.row(["device", "requests", "size KiB"]);
            for device in &self.devices {
                let name = printable(device.name.as_deref().unwrap_or("?"));
                let size = kib(device.size_sectors as f64 * SECTOR_BYTES as f64);
                table.row([name, grouped(device.requests), size]);
            }
            writeln!(f, "\n{table}")?;
        }
        Ok(())
    }

    fn processes_table(&self) -> Table {
        let columns = [Align::Left(10), Align::Left(18)].into_iter().chain([Align::Right(13); 4]);
        let mut table = Table::new(columns.chain([Align::Left(0)]));
        let has_priorities = self.processes.iter().any(|process| !process.priorities.is_empty());
        let ionice = if has_priorities { "  ionice" } else { "" };
        table.row(["pid", "process", "requests", "reads", "KiB", "sequential %", ionice]);
        for process in self.processes.iter().take(ROWS_MAX) {
            let priorities = match process.priorities.is_empty() {
                true if has_priorities => "  ?".to_owned(),
                true => String::new(),
                false => format!("  {}", process.priorities.join(", ")),
            };
            table.row([
                process.pid.to_string(),
                printable(process.name.as_deref().unwrap_or("?")),
                grouped(process.requests),
                grouped(process.reads),
                kib(process.bytes as f64),
                percent(process.sequential, process.requests),
                priorities,
            ]);
        }
        let rest = self.processes.iter().skip(ROWS_MAX).map(|process| process.requests).sum::<u64>();
        let others = rest + self.other_processes_requests;
        if others > 0 {
            let known = self.processes.len().saturating_sub(ROWS_MAX);
            let more = if self.other_processes_requests > 0 { "or more others" } else { "others" };
            table.row([grouped(known as u64), more.to_owned(), grouped(others)]);
        }
        table
    }

    fn time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.over_time.len() < 2 {
            return Ok(());
        }
        let joined = self.over_time.len().div_ceil(ROWS_MAX);
        let row_ns = self.bin_ns.saturating_mul(joined as u64);
        let has_depth = self.latency.is_some();
        let mut table = Table::new(std::iter::once(Align::Right(16)).chain([Align::Right(13); 4]));
        let head = ["time           s", "requests/s", "KiB/s", "in flight", "most"];
        table.row(&head[..if has_depth { 5 } else { 3 }]);
        for (at, bins) in self.over_time.chunks(joined).enumerate() {
            let start_ns = row_ns.saturating_mul(at as u64);
            let width_ns = row_ns.min(self.span_ns.saturating_sub(start_ns)).max(1);
            let per_second = 1e9 / width_ns as f64;
            let requests = bins.iter().map(|bin| bin.requests).sum::<u64>() as f64 * per_second;
            let bytes = bins.iter().map(|bin| bin.bytes as f64).sum::<f64>() * per_second;
            let mut row = vec![
                format!("{:.6}", start_ns as f64 / 1e9),
                grouped(requests.round() as u64),
                grouped((bytes / KIB).round() as u64),
            ];
            if has_depth {
                row.push(format!("{:.2}", self.depth_mean(bins, start_ns, width_ns)));
                row.push(bins.iter().filter_map(|bin| bin.depth_max).max().unwrap_or(0).to_string());
            }
            table.row(row);
        }
        writeln!(f, "\n{table}")
    }

    /// Returns the mean depth over several bins. The first bin begins at `start_ns`, and the bins
    /// together have `width_ns`.
    fn depth_mean(&self, bins: &[TimeBin], start_ns: u64, width_ns: u64) -> f64 {
        let mut sum = 0.0;
        let mut from_ns = start_ns;
        for bin in bins {
            let bin_ns = self.bin_ns.min(self.span_ns.saturating_sub(from_ns)).max(1);
            sum += bin.depth_mean.unwrap_or(0.0) * bin_ns as f64;
            from_ns = from_ns.saturating_add(self.bin_ns);
        }
        sum / width_ns as f64
    }

    fn oddities(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.oddities.iter().try_for_each(|oddity| write!(f, "\ndoubt: {oddity}"))?;
        if self.oddities.is_empty() { Ok(()) } else { writeln!(f) }
    }

    fn damage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.warnings_total == 0 {
            return Ok(());
        }
        writeln!(f)?;
        for warning in &self.warnings {
            writeln!(f, "warning: {}", printable(warning))?;
        }
        let more = self.warnings_total - self.warnings.len() as u64;
        if more > 0 {
            writeln!(f, "and {} more warnings", grouped(more))?;
        }
        Ok(())
    }

    fn sentence(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = grouped(self.all.requests);
        write!(f, "\n{}: {requests} requests, {} reads", self.format, grouped(self.reads.requests))?;
        let processes = self.processes.iter().filter(|process| process.pid != 0).count();
        if processes > 0 {
            let more = if self.other_processes_requests > 0 { " or more" } else { "" };
            write!(f, ", {}{more} processes", grouped(processes as u64))?;
        }
        write!(f, ", {} s recorded, times exact to {} ns", seconds(self.span_ns), grouped(self.resolution_ns))?;
        if self.steps_back > 0 {
            let times = if self.steps_back == 1 { "time" } else { "times" };
            let (count, by) = (grouped(self.steps_back), seconds(self.step_back_max_ns));
            write!(f, ", times go backwards {count} {times}, by up to {by} s")?;
        }
        let with_data = self.with_data();
        write!(f, "; {} % sequential", percent(self.sequential, with_data))?;
        if processes > 0 {
            write!(f, ", {} % by process", percent(self.sequential_by_process, with_data))?;
        }
        if self.dropped_records > 0 {
            write!(f, "; {} records lost during the recording", grouped(self.dropped_records))?;
        }
        let size = self.size_sectors as f64 * SECTOR_BYTES as f64;
        write!(f, "; a replay needs a device of {} KiB", kib(size))
    }
}

fn row(name: &str, count: &Count) -> Vec<String> {
    let figures =
        [count.bytes as f64, count.size_mean_bytes(), count.size_min_bytes as f64, count.size_max_bytes as f64];
    let numbers = [name.to_owned(), grouped(count.requests), grouped(count.sync)];
    numbers.into_iter().chain(figures.map(kib)).collect()
}

/// Formats bytes as KiB, with one decimal unless the number is whole.
pub(crate) fn kib(bytes: f64) -> String {
    let tenths = (bytes / KIB * 10.0).round() as u64;
    if tenths.is_multiple_of(10) { grouped(tenths / 10) } else { format!("{}.{}", grouped(tenths / 10), tenths % 10) }
}

fn percent(part: u64, total: u64) -> String {
    format!("{:.1}", part as f64 * 100.0 / total.max(1) as f64)
}

/// Formats seconds with two decimals, or with six for short spans.
fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 0.1 { format!("{seconds:.6}") } else { format!("{seconds:.2}") }
}

/// Replaces control characters, because names and excerpts come from files.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
