//! Text output of the summary.

use std::fmt;

use super::{DeviceStages, SeekSummary, Span, StageSummary};
use crate::grouped::grouped;
use crate::summary::display::kib;
use crate::table::{Align, Table};

/// The meanings of the stages.
const MEANINGS: [&str; 8] = [
    "from a submission to the next",
    "from submission to allocation of a request",
    "from allocation to insertion",
    "from submission to merge",
    "from insertion to issue",
    "from merge to issue",
    "from issue to completion",
    "from submission to completion",
];

impl fmt::Display for StageSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new(std::iter::once(Align::Left(44)).chain([Align::Right(15); 4]));
        table.row(["stage         µs", "min", "mean", "max", "times"]);
        for ((name, span), meaning) in self.all.named().into_iter().zip(MEANINGS) {
            table.row(std::iter::once(format!("{name:6}{meaning}")).chain(stage(span)));
        }
        write!(f, "{table}")?;
        self.merges(f)?;
        self.seeks(f)?;
        self.plugs(f)
    }
}

fn stage(span: &Span) -> [String; 4] {
    let Some(mean_ns) = span.mean_ns() else { return ["-", "-", "-", "0"].map(str::to_owned) };
    let [min, mean, max] = [span.min_ns as f64, mean_ns, span.max_ns as f64].map(|ns| format!("{:.3}", ns / 1e3));
    [min, mean, max, grouped(span.count)]
}

impl StageSummary {
    fn merges(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = std::iter::once(Align::Left(14)).chain([Align::Right(10); 3]).chain([Align::Right(15); 4]);
        let mut table = Table::new(columns);
        table.row(["device", "queued", "issued", "ratio", "min KiB", "mean KiB", "max KiB", "KiB"]);
        for device in &self.devices {
            let bytes = device.issued_bytes as f64;
            let lengths = [
                device.issued_min_bytes as f64,
                bytes / device.issued.max(1) as f64,
                device.issued_max_bytes as f64,
                bytes,
            ];
            let ratio = device.merge_ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
            let counts = [device.name.clone(), grouped(device.queued), grouped(device.issued), ratio];
            table.row(counts.into_iter().chain(lengths.map(kib)));
        }
        write!(f, "\n\n{table}")
    }

    fn seeks(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = [Align::Left(14), Align::Left(30)].into_iter().chain([Align::Right(15); 5]);
        let mut table = Table::new(columns);
        table.row(["seeks", "sectors", "seeks", "mean", "median", "mode", "times"]);
        let rows =
            |device: &DeviceStages| [("submissions", device.queue_seeks), ("requests issued", device.issue_seeks)];
        for device in &self.devices {
            for (what, seeks) in rows(device) {
                if let Some(seeks) = seeks {
                    table.row([device.name.clone(), what.to_owned()].into_iter().chain(seek(&seeks)));
                }
            }
        }
        write!(f, "\n\n{table}")
    }

    fn plugs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.devices.iter().all(|device| device.plugs.is_none()) {
            return Ok(());
        }
        let columns = [Align::Left(14), Align::Right(10), Align::Right(10), Align::Right(15)];
        let mut table = Table::new(columns.into_iter().chain([Align::Right(20); 2]));
        table.row(["plugs", "plugs", "by timer", "time plugged %", "requests/unplug", "requests/timer"]);
        for device in &self.devices {
            let Some(plugs) = &device.plugs else { continue };
            let mean = |mean: Option<f64>| mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"));
            table.row([
                device.name.clone(),
                grouped(plugs.plugs),
                grouped(plugs.by_timer),
                plugs.plugged.map_or_else(|| "?".to_owned(), |plugged| format!("{:.3}", plugged * 100.0)),
                mean(plugs.requests_per_unplug),
                mean(plugs.requests_per_timer_unplug),
            ]);
        }
        write!(f, "\n\n{table}")
    }
}

fn seek(seeks: &SeekSummary) -> [String; 5] {
    let known = |sectors: Option<i64>| sectors.map_or_else(|| "?".to_owned(), |sectors| sectors.to_string());
    [
        grouped(seeks.count),
        format!("{:.1}", seeks.mean_sectors),
        known(seeks.median_sectors),
        known(seeks.mode_sectors),
        seeks.mode_count.map_or_else(|| "?".to_owned(), grouped),
    ]
}
