//! A summary for people: a few tables, the answer last.

use std::fmt;

use iosched::SECTOR_BYTES;

use super::{Count, TimeBin, TraceSummary};
use crate::grouped::grouped;

/// Most rows of processes and of time.
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
        let head = ["requests", "sync", "KiB", "mean KiB", "min KiB", "max KiB"];
        write!(f, "{:16}", "")?;
        head.iter().try_for_each(|head| write!(f, "{head:>12}"))?;
        writeln!(f)?;
        let (requests, sync) = (grouped(self.all.requests), grouped(self.all.sync));
        writeln!(f, "{:16}{requests:>12}{sync:>12}{:>12}", "all", kib(self.all.bytes as f64))?;
        let kinds = [
            ("reads", &self.reads),
            ("writes", &self.writes),
            ("discards", &self.discards),
            ("zeroing writes", &self.write_zeroes),
        ];
        for (name, count) in kinds.into_iter().filter(|(_, count)| count.requests > 0) {
            row(f, name, count)?;
        }
        if self.flushes.requests > 0 {
            let (requests, sync) = (grouped(self.flushes.requests), grouped(self.flushes.sync));
            writeln!(f, "{:16}{requests:>12}{sync:>12}", "flushes")?;
        }
        Ok(())
    }

    fn lengths(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sizes.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{:16}{:>12}{:>12}", "length      KiB", "reads", "writes")?;
        for bucket in &self.sizes {
            let up_to = format!("up to {:>9}", kib(bucket.up_to_bytes as f64));
            writeln!(f, "{up_to:16}{:>12}{:>12}", grouped(bucket.reads), grouped(bucket.writes))?;
        }
        Ok(())
    }

    fn latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(latency) = &self.latency else { return Ok(()) };
        write!(f, "\n{:16}", "latency       ms")?;
        ["mean", "p50", "p95", "p99", "max"].iter().try_for_each(|head| write!(f, "{head:>12}"))?;
        write!(f, "\n{:16}", "recorded")?;
        let figures = [latency.p50_ns, latency.p95_ns, latency.p99_ns, latency.max_ns];
        write!(f, "{:>12.3}", latency.mean_ns / 1e6)?;
        figures.iter().try_for_each(|&ns| write!(f, "{:>12.3}", ns as f64 / 1e6))?;
        if latency.requests < self.all.requests {
            write!(f, "   of {} requests", grouped(latency.requests))?;
        }
        writeln!(f)
    }

    fn who(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_processes = self.processes.iter().any(|process| process.pid != 0);
        if has_processes {
            let head = ["requests", "reads", "KiB", "sequential %"];
            write!(f, "\n{:<10}{:18}", "pid", "process")?;
            head.iter().try_for_each(|head| write!(f, "{head:>13}"))?;
            let has_priorities = self.processes.iter().any(|process| !process.priorities.is_empty());
            writeln!(f, "{}", if has_priorities { "  ionice" } else { "" })?;
            for process in self.processes.iter().take(ROWS_MAX) {
                write!(f, "{:<10}{:18}", process.pid, printable(process.name.as_deref().unwrap_or("?")))?;
                write!(f, "{:>13}{:>13}", grouped(process.requests), grouped(process.reads))?;
                write!(f, "{:>13}{:>13}", kib(process.bytes as f64), percent(process.sequential, process.requests))?;
                match process.priorities.is_empty() {
                    true if has_priorities => writeln!(f, "  ?")?,
                    true => writeln!(f)?,
                    false => writeln!(f, "  {}", process.priorities.join(", "))?,
                }
            }
            let rest = self.processes.iter().skip(ROWS_MAX).map(|process| process.requests).sum::<u64>();
            let others = rest + self.other_processes_requests;
            if others > 0 {
                let known = self.processes.len().saturating_sub(ROWS_MAX);
                let more = if self.other_processes_requests > 0 { "or more" } else { "" };
                let who = format!("{} others {more}", grouped(known as u64));
                writeln!(f, "{:28}{:>13}", who.trim_end(), grouped(others))?;
            }
        }
        if self.devices.len() > 1 {
            writeln!(f, "\n{:28}{:>13}{:>13}", "device", "requests", "size KiB")?;
            for device in &self.devices {
                let name = printable(device.name.as_deref().unwrap_or("?"));
                let size = kib(device.size_sectors as f64 * SECTOR_BYTES as f64);
                writeln!(f, "{name:28}{:>13}{size:>13}", grouped(device.requests))?;
            }
        }
        Ok(())
    }

    fn time(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.over_time.len() < 2 {
            return Ok(());
        }
        let joined = self.over_time.len().div_ceil(ROWS_MAX);
        let row_ns = self.bin_ns.saturating_mul(joined as u64);
        let has_depth = self.latency.is_some();
        write!(f, "\n{:16}{:>13}{:>13}", "time           s", "requests/s", "KiB/s")?;
        if has_depth {
            write!(f, "{:>13}{:>13}", "in flight", "most")?;
        }
        writeln!(f)?;
        for (at, bins) in self.over_time.chunks(joined).enumerate() {
            let start_ns = row_ns.saturating_mul(at as u64);
            let width_ns = row_ns.min(self.span_ns.saturating_sub(start_ns)).max(1);
            let per_second = 1e9 / width_ns as f64;
            let requests = bins.iter().map(|bin| bin.requests).sum::<u64>() as f64 * per_second;
            let bytes = bins.iter().map(|bin| bin.bytes as f64).sum::<f64>() * per_second;
            let start = format!("{:.6}", start_ns as f64 / 1e9);
            write!(
                f,
                "{start:>16}{:>13}{:>13}",
                grouped(requests.round() as u64),
                grouped((bytes / KIB).round() as u64)
            )?;
            if has_depth {
                write!(f, "{:>13.2}", self.depth_mean(bins, start_ns, width_ns))?;
                write!(f, "{:>13}", bins.iter().filter_map(|bin| bin.depth_max).max().unwrap_or(0))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }

    /// Of bins from `start_ns` on, `width_ns` together.
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
        write!(f, ", {} s recorded, times to {} ns", seconds(self.span_ns), grouped(self.resolution_ns))?;
        if self.steps_back > 0 {
            let times = if self.steps_back == 1 { "time" } else { "times" };
            let (count, by) = (grouped(self.steps_back), seconds(self.step_back_max_ns));
            write!(f, ", which go back {count} {times} by up to {by} s")?;
        }
        let with_data = self.with_data();
        write!(f, "; {} % sequential", percent(self.sequential, with_data))?;
        if processes > 0 {
            write!(f, ", {} % by process", percent(self.sequential_by_process, with_data))?;
        }
        if self.dropped_records > 0 {
            write!(f, "; {} records dropped while recording", grouped(self.dropped_records))?;
        }
        let size = self.size_sectors as f64 * SECTOR_BYTES as f64;
        write!(f, "; needs a device of {} KiB", kib(size))
    }
}

fn row(f: &mut fmt::Formatter<'_>, name: &str, count: &Count) -> fmt::Result {
    write!(f, "{name:16}{:>12}{:>12}", grouped(count.requests), grouped(count.sync))?;
    let figures =
        [count.bytes as f64, count.size_mean_bytes(), count.size_min_bytes as f64, count.size_max_bytes as f64];
    figures.iter().try_for_each(|&bytes| write!(f, "{:>12}", kib(bytes)))?;
    writeln!(f)
}

/// Bytes as KiB: whole ones whole, others to a tenth.
pub(crate) fn kib(bytes: f64) -> String {
    let tenths = (bytes / KIB * 10.0).round() as u64;
    if tenths.is_multiple_of(10) { grouped(tenths / 10) } else { format!("{}.{}", grouped(tenths / 10), tenths % 10) }
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}", part as f64 * 100.0 / whole.max(1) as f64)
}

/// To three places, more for short spans.
fn seconds(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    if seconds < 0.1 { format!("{seconds:.6}") } else { format!("{seconds:.2}") }
}

/// Without control characters: names and excerpts come from files.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
