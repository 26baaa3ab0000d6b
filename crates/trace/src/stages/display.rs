//! The figures for people.

use std::fmt;

use super::{DeviceStages, SeekSummary, Span, StageSummary};
use crate::grouped::grouped;
use crate::summary::display::kib;

/// What the stages are, in words.
const MEANINGS: [&str; 8] = [
    "from a submission to the next",
    "submitted, until a request was got",
    "got, until inserted",
    "submitted, until merged",
    "inserted, until issued",
    "merged, until issued",
    "issued, until completed",
    "submitted, until completed",
];

impl fmt::Display for StageSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:44}", "stage         µs")?;
        ["min", "mean", "max", "times"].iter().try_for_each(|head| write!(f, "{head:>15}"))?;
        for ((name, span), meaning) in self.all.named().into_iter().zip(MEANINGS) {
            write!(f, "\n{name:6}{meaning:38}")?;
            stage(f, span)?;
        }
        self.merges(f)?;
        self.seeks(f)?;
        self.plugs(f)
    }
}

fn stage(f: &mut fmt::Formatter<'_>, span: &Span) -> fmt::Result {
    match span.mean_ns() {
        Some(mean_ns) => {
            let us = |ns: f64| ns / 1e3;
            write!(f, "{:>15.3}{:>15.3}", us(span.min_ns as f64), us(mean_ns))?;
            write!(f, "{:>15.3}{:>15}", us(span.max_ns as f64), grouped(span.count))
        }
        None => write!(f, "{:>15}{:>15}{:>15}{:>15}", "-", "-", "-", 0),
    }
}

impl StageSummary {
    fn merges(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n\n{:14}{:>10}{:>10}", "device", "queued", "issued")?;
        write!(f, "{:>10}", "ratio")?;
        ["min KiB", "mean KiB", "max KiB", "KiB"].iter().try_for_each(|head| write!(f, "{head:>15}"))?;
        for device in &self.devices {
            write!(f, "\n{:14}{:>10}{:>10}", device.name, grouped(device.queued), grouped(device.issued))?;
            match device.merge_ratio() {
                Some(ratio) => write!(f, "{ratio:>10.2}")?,
                None => write!(f, "{:>10}", "-")?,
            }
            let bytes = device.issued_bytes as f64;
            for bytes in [
                device.issued_min_bytes as f64,
                bytes / device.issued.max(1) as f64,
                device.issued_max_bytes as f64,
                bytes,
            ] {
                write!(f, "{:>15}", kib(bytes))?;
            }
        }
        Ok(())
    }

    fn seeks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n\n{:44}", "seeks         sectors")?;
        ["seeks", "mean", "median", "mode", "times"].iter().try_for_each(|head| write!(f, "{head:>15}"))?;
        let rows =
            |device: &DeviceStages| [("submissions", device.queue_seeks), ("requests issued", device.issue_seeks)];
        for device in &self.devices {
            for (what, seeks) in rows(device) {
                if let Some(seeks) = seeks {
                    write!(f, "\n{:14}{what:30}", device.name)?;
                    seek(f, &seeks)?;
                }
            }
        }
        Ok(())
    }

    fn plugs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.devices.iter().all(|device| device.plugs.is_none()) {
            return Ok(());
        }
        write!(f, "\n\n{:14}{:>10}{:>10}", "plugs", "plugs", "by timer")?;
        write!(f, "{:>15}{:>20}{:>20}", "time plugged %", "requests/unplug", "requests/timer")?;
        for device in &self.devices {
            let Some(plugs) = &device.plugs else { continue };
            let mean = |mean: Option<f64>| mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
            write!(f, "\n{:14}{:>10}{:>10}", device.name, grouped(plugs.plugs), grouped(plugs.by_timer))?;
            let plugged = plugs.plugged.map_or_else(|| "?".to_owned(), |plugged| format!("{:.3}", plugged * 100.0));
            write!(f, "{plugged:>15}{:>20}", mean(plugs.requests_per_unplug))?;
            write!(f, "{:>20}", mean(plugs.requests_per_timer_unplug))?;
        }
        Ok(())
    }
}

fn seek(f: &mut fmt::Formatter<'_>, seeks: &SeekSummary) -> fmt::Result {
    let known = |sectors: Option<i64>| sectors.map_or_else(|| "?".to_owned(), |sectors| sectors.to_string());
    let times = seeks.mode_count.map_or_else(|| "?".to_owned(), grouped);
    write!(f, "{:>15}{:>15.1}{:>15}", grouped(seeks.count), seeks.mean_sectors, known(seeks.median_sectors))?;
    write!(f, "{:>15}{times:>15}", known(seeks.mode_sectors))
}
