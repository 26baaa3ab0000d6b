//! The text of the profile that a calibration writes.

use std::fmt::Write as _;

use iosched_disk::measure::{Figure, Unit};
use iosched_disk::{Anchor, Model};

use super::Calibration;
use super::probe::{Probe, Role};
use super::records::{Header, Measurements};
use super::summary::Summary;
use super::table::{Table, TableRow};
use super::target::Target;

/// Returns the description of the profile, one line.
pub(super) fn about(target: &Target, model: &Model) -> String {
    let gigabytes = target.capacity_sectors as f64 * 512.0 / 1e9;
    format!("{}, {gigabytes:.1} GB, calibrated as {}", target.name, model.kind())
}

/// Returns the measured metrics that are usual anchors of devices.
pub(super) fn anchors(measurements: &Measurements, model: &Model) -> Vec<Anchor> {
    type Value = fn(&Summary) -> f64;
    let figures: [(Figure, u32, Value); 3] = [
        (Figure::RandomRead4kLatency, 1, |summary| summary.mean_ns.median / 1e3),
        (Figure::RandomRead4kDepth1, 1, |summary| summary.iops.median),
        (Figure::RandomRead4kDepth32, 32, |summary| summary.iops.median),
    ];
    let known: Vec<(Probe, Summary)> = measurements
        .header
        .probes
        .iter()
        .zip(measurements.summaries())
        .filter_map(|(&probe, summary)| Some((probe, summary?)))
        .collect();
    let depth = match model {
        Model::Hdd(config) => config.depth,
        _ => measurements.header.target.depth,
    };
    let held_out = |depth: u32| {
        known.iter().find(|(probe, _)| {
            let plain = Probe { role: Role::HeldOut, bytes: 4096, depth, ..*probe };
            *probe == plain && !probe.sequential && !probe.writes()
        })
    };
    figures
        .into_iter()
        .filter(|&(_, needed, _)| needed <= depth)
        .filter_map(|(figure, depth, value)| {
            let (_, summary) = held_out(depth)?;
            let unit = if figure == Figure::RandomRead4kLatency { Unit::Microseconds } else { Unit::Iops };
            // One decimal is significant.
            let value = (value(summary) * 10.0).round() / 10.0;
            Some(Anchor { figure, value, unit, source: "measured".to_owned() })
        })
        .collect()
}

/// Returns the entry of a row in the list of rows to which a profile was fitted.
pub(super) fn row(row: &TableRow) -> String {
    format!("row {}", row.label())
}

/// Returns the fitted and the assumed parameters of a profile that was fitted to a table.
pub(super) fn lists(table: &Table, model: &Model) -> (Vec<String>, Vec<String>) {
    let rows: Vec<&TableRow> = table.rows.iter().filter(|row| row.is_for_fit).collect();
    let has_writes = rows.iter().any(|row| row.read_percent < 100);
    let (reads, writes, others) = match model {
        Model::Ssd(_) => (
            "dies, channels, read_sectors, read_ns, read_latency_ns, read_command_ns, bytes_per_second",
            "program_ns, write_latency_ns, write_command_ns",
            "program_sectors, erase_sectors, erase_ns, suspend_ns, buffer, cleaning, start",
        ),
        _ => ("servers, service_ns, transit_ns, bytes_per_second of reads", "times of writes", "flush_ns"),
    };
    let mut fitted = vec![format!("{reads}: least-squares fit to the rows with reads of {}", table.file)];
    let mut assumed = vec![others.to_owned(), "size and queue depth: given by the user, not measured".to_owned()];
    if has_writes {
        fitted.push(format!("{writes}: rows with writes"));
    } else {
        assumed.push(format!("{writes}: the table has no rows with writes"));
    }
    fitted.extend(rows.iter().map(|used| row(used)));
    (fitted, assumed)
}

/// Returns comments about how the profile was made.
pub(super) fn preface(calibration: &Calibration, header: &Header) -> String {
    let Header { target, version, command, probes, .. } = header;
    let mut text = format!("# A model of {}, calibrated by iosched {version}.\n#\n", target.name);
    let _ = writeln!(text, "# Made by: {command}");
    let _ = writeln!(text, "# {} probes; {}.", probes.len(), calibration.verdict);
    for condition in &target.conditions {
        let _ = writeln!(text, "# Measured with: {condition}.");
    }
    for (kind, fit) in &calibration.kinds {
        let _ = match fit {
            Ok(off) => writeln!(text, "# {kind}: the mean error is {:.1} %.", off * 100.0),
            Err(reason) => writeln!(text, "# {kind}: not tried, because {reason}."),
        };
    }
    if !probes.iter().any(Probe::writes) {
        let assumed = match calibration.profile.model() {
            Model::Server(_) => "take as long as reads",
            _ => "take the usual time of such devices",
        };
        let _ = writeln!(text, "# Writes were not measured. The model assumes that writes and flushes {assumed}.");
    }
    text.push('\n');
    text
}
