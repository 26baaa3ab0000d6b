//! Formatting of quantities.

use iosched_lab::{grouped, significant};

use super::svg::{Tick, log_ticks, ticks};

/// Bytes of a sector.
pub(crate) const SECTOR: f64 = 512.0;

/// A unit, and its size in the base unit.
pub(crate) type Unit = (&'static str, f64);

const TIMES: [Unit; 4] = [("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
const BYTES: [Unit; 5] = [("B", 1.0), ("kB", 1e3), ("MB", 1e6), ("GB", 1e9), ("TB", 1e12)];

/// Returns the largest unit in which `value` is at least `least`, or the smallest unit.
fn unit_of(units: &[Unit], value: f64, least: f64) -> Unit {
    units.iter().rev().find(|(_, size)| value >= size * least).copied().unwrap_or(units[0])
}

/// Formats a time in ns with `digits` significant digits, such as "3.8 ms".
pub(crate) fn time(ns: f64, digits: i32) -> String {
    let (name, size) = unit_of(&TIMES, ns, 0.9995);
    if ns == 0.0 { "0".to_owned() } else { format!("{} {name}", significant(ns / size, digits)) }
}

/// Formats the width of a bin exactly, such as "64 ms".
pub(crate) fn width(ns: u64) -> String {
    let (name, size) = unit_of(&TIMES, ns as f64, 1.0);
    format!("{} {name}", ns as f64 / size)
}

/// Returns the unit for an axis of times up to `max_ns`.
pub(crate) fn time_unit(max_ns: f64) -> Unit {
    unit_of(&TIMES, max_ns, 2.0)
}

/// Formats a number of bytes with three digits, such as "1.42 GB".
pub(crate) fn bytes(bytes: f64) -> String {
    let (name, size) = unit_of(&BYTES, bytes, 0.9995);
    if bytes < 1000.0 { format!("{bytes:.0} B") } else { format!("{} {name}", significant(bytes / size, 3)) }
}

/// Returns the unit for an axis of positions or rates up to `max`.
pub(crate) fn bytes_unit(max: f64) -> Unit {
    unit_of(&BYTES, max, 2.0)
}

/// Formats a number with a singular or plural noun.
pub(crate) fn counted(number: u64, singular: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { singular } else { many })
}

/// Formats a share, 0 to 1, in per cent.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        p if p > 0.0 && p < 0.1 => "< 0.1".to_owned(),
        p if p < 9.95 => format!("{p:.1}"),
        p => format!("{p:.0}"),
    }
}

/// Returns the marks of a linear axis whose values are in the base unit of `unit`.
pub(crate) fn linear_ticks(low: f64, high: f64, wanted: usize, unit: Unit) -> Vec<Tick> {
    let (values, decimals) = ticks(low / unit.1, high / unit.1, wanted);
    let tick = |value: f64| Tick { at: value * unit.1, label: format!("{:.decimals$}", value + 0.0) };
    values.into_iter().map(tick).collect()
}

/// Returns the marks of a time axis, with the unit at the last mark.
pub(crate) fn time_ticks(from_ns: f64, to_ns: f64, wanted: usize) -> Vec<Tick> {
    let unit = time_unit(to_ns);
    let mut marks = linear_ticks(from_ns, to_ns, wanted, unit);
    if let Some(last) = marks.last_mut() {
        last.label = format!("{} {}", last.label, unit.0);
    }
    marks
}

/// Returns the marks of a logarithmic time axis.
pub(crate) fn log_time_ticks(low_ns: f64, high_ns: f64) -> Vec<Tick> {
    log_ticks(low_ns, high_ns).into_iter().map(|at| Tick { at, label: time(at, 1) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_written_with_the_unit_that_fits() {
        assert_eq!([time(0.0, 2), time(812.0, 2), time(3_840_000.0, 2)], ["0", "812 ns", "3.8 ms"]);
        assert_eq!([width(64_000_000), width(1_024_000_000)], ["64 ms", "1.024 s"]);
        assert_eq!([time(999_999_999.0, 3), time(2.5e9, 2)], ["1.00 s", "2.5 s"]);
        assert_eq!([bytes(512.0), bytes(1_420_000.0)], ["512 B", "1.42 MB"]);
        assert_eq!([grouped(7), grouped(7638), grouped(1_000_000)], ["7", "7,638", "1,000,000"]);
        assert_eq!([percent(0.0), percent(0.0004), percent(0.0345), percent(0.5)], ["0.0", "< 0.1", "3.5", "50"]);
    }

    #[test]
    fn only_the_last_tick_of_a_time_axis_has_the_unit() {
        let labels: Vec<String> = time_ticks(0.0, 2.5e9, 5).into_iter().map(|tick| tick.label).collect();
        assert_eq!(labels, ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5 s"]);
    }
}
