//! Latencies of an SSD at several rates of io.cost, and the model parameters that follow from them.
//!
//! Each row is one rate of io.cost under a load of reads and simultaneous writes. Three values per
//! disk describe all rows:
//!
//! - the latency of a single read without other load, which is the smallest first quartile of the
//!   reads;
//! - the rate at which the disk settles written data in its flash. This is the largest write rate
//!   among the rows in which the disk, not io.cost, is the limit;
//! - the longest occupation of a part of the flash by writes, from the 99th percentiles of reads.
//!
//! About 14 % of the reads meet an occupied part while the disk settles data (36 disks of the
//! project iocost-benchmarks).

use crate::server::ServerSettling;

/// Share of the reads that meet an occupied part of the flash while the disk settles data.
const OCCUPIED_SHARE: f64 = 0.14;
/// Rate of io.cost at and above which the disk counts as the limit, per cent of the model.
const LIMIT_PERCENT: f64 = 50.0;
/// Share of the time in which the disk settles data. Only rows with at least this share show the
/// occupations.
const SETTLING_MIN: f64 = 0.25;
/// Share of rows whose 99th percentile is within the error.
const COVERED: f64 = 0.8;
/// Percentile of the rows' tail latencies.
const P99: f64 = 0.99;
/// Assumed limit of the time that the disk needs for data that is not settled yet, ns. Without a
/// limit, a short burst of writes would delay reads for the rest of a run.
const BEHIND_NS_MAX: u64 = 1_000_000_000;

/// Rates and latencies of a disk at one rate of io.cost. Rates are means per second, latencies are
/// in us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyRow {
    /// Rate of io.cost, per cent of the model; `None` if io.cost was off.
    pub vrate_percent: Option<f64>,
    /// Reads per second.
    pub reads: f64,
    /// Writes per second.
    pub writes: f64,
    /// Mean size of a read, bytes.
    pub read_bytes: f64,
    /// Mean size of a write, bytes.
    pub write_bytes: f64,
    /// First quartile of the reads' latencies, us.
    pub read_p25_us: f64,
    /// Median of the reads' latencies, us.
    pub read_p50_us: f64,
    /// 99th percentile of the reads' latencies, us.
    pub read_p99_us: f64,
}

/// Latencies of a disk, from its rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// Latency of a single read without other load, ns, and the mean size of the reads in its row,
    /// bytes.
    pub lone_read: (u64, f64),
    /// Settling of written data.
    pub settling: ServerSettling,
    /// Error of the 99th percentiles, per cent. Four of five rows have at most this error.
    pub tail_error_percent: f64,
    /// Number of rows.
    pub rows: usize,
}

impl LatencyRow {
    fn written_per_second(&self) -> f64 {
        self.writes * self.write_bytes
    }

    fn is_at_the_limit(&self) -> bool {
        self.vrate_percent.is_none_or(|percent| percent >= LIMIT_PERCENT)
    }

    fn is_valid(&self) -> bool {
        let Self { reads, read_bytes, read_p25_us, read_p50_us, read_p99_us, .. } = *self;
        let positive = [reads, read_bytes, read_p25_us, read_p50_us, read_p99_us];
        positive.iter().all(|value| value.is_finite() && *value > 0.0) && self.written_per_second().is_finite()
    }
}

impl Latencies {
    /// Returns the latencies that follow from rows of one model of disk. Returns `None` if no row
    /// has enough writes to show their effect on reads.
    #[must_use]
    pub fn of(rows: &[LatencyRow]) -> Option<Self> {
        let rows: Vec<&LatencyRow> = rows.iter().filter(|row| row.is_valid()).collect();
        let lone = rows.iter().min_by(|a, b| a.read_p25_us.total_cmp(&b.read_p25_us))?;
        let limit = rows.iter().filter(|row| row.is_at_the_limit());
        let settled = limit.map(|row| row.written_per_second()).fold(0.0, f64::max);
        if settled < 1.0 {
            return None;
        }
        let longest_us = longest_us(&rows, settled)?;
        let mut errors: Vec<f64> = rows
            .iter()
            .map(|row| {
                let expected = p99_us(row, settled, longest_us).max(row.read_p50_us);
                (expected / row.read_p99_us).ln().abs().exp() - 1.0
            })
            .collect();
        errors.sort_unstable_by(f64::total_cmp);
        let last = (errors.len() as f64 * COVERED).ceil() as usize;
        let error = errors.get(last.saturating_sub(1)).copied().unwrap_or(0.0);
        Some(Self {
            lone_read: ((lone.read_p25_us * 1e3) as u64, lone.read_bytes),
            settling: ServerSettling {
                bytes_per_second: settled as u64,
                share: OCCUPIED_SHARE,
                longest_ns: (longest_us * 1e3) as u64,
                behind_ns: BEHIND_NS_MAX,
            },
            tail_error_percent: (error * 1e3).round() / 10.0,
            rows: rows.len(),
        })
    }
}

/// Returns the 99th percentile of the waits of reads, as a share of the longest occupation. A read
/// that meets an occupied part waits between 0 and the longest occupation.
fn tail_share(row: &LatencyRow, settled: f64) -> f64 {
    let meets = OCCUPIED_SHARE * (row.written_per_second() / settled).min(1.0);
    (1.0 - (1.0 - P99) / meets).max(0.0)
}

fn p99_us(row: &LatencyRow, settled: f64, longest_us: f64) -> f64 {
    longest_us * tail_share(row, settled)
}

/// Returns the longest occupation that fits the 99th percentiles best, us. The fit minimises the
/// squares of differences in logarithms. It uses only rows in which the disk settles data for much
/// of the time.
fn longest_us(rows: &[&LatencyRow], settled: f64) -> Option<f64> {
    let shows = rows.iter().filter(|row| row.written_per_second() >= SETTLING_MIN * settled);
    let logarithms: Vec<f64> = shows.map(|row| (row.read_p99_us / tail_share(row, settled)).ln()).collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    (!logarithms.is_empty() && mean.is_finite()).then(|| mean.exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(vrate_percent: Option<f64>, writes: f64, p25: f64, p99: f64) -> LatencyRow {
        LatencyRow {
            vrate_percent,
            reads: 10_000.0,
            writes,
            read_bytes: 16_384.0,
            write_bytes: 10_000.0,
            read_p25_us: p25,
            read_p50_us: p25 * 1.5,
            read_p99_us: p99,
        }
    }

    #[test]
    fn latency_parameters_are_recovered_from_rows() {
        // With writes at the settled rate, the 99th percentile is 13/14 of the longest occupation.
        let rows = [
            row(None, 1_000.0, 120.0, 13_000.0),
            row(Some(100.0), 1_000.0, 110.0, 13_000.0),
            // io.cost is the limit in this row, so it does not show the rate of the disk.
            row(Some(20.0), 4_000.0, 100.0, 13_000.0),
        ];
        let found = Latencies::of(&rows).unwrap();
        assert_eq!(found.lone_read, (100_000, 16_384.0));
        assert_eq!(found.settling.bytes_per_second, 10_000_000);
        assert!(found.settling.longest_ns.abs_diff(14_000_000) < 1_000, "{found:?}");
        assert!(found.tail_error_percent < 0.1 && found.rows == 3, "{found:?}");
    }

    #[test]
    fn tail_error_covers_four_of_five_rows() {
        let mut rows = vec![row(None, 1_000.0, 120.0, 13_000.0); 8];
        rows.push(row(None, 1_000.0, 120.0, 26_000.0));
        rows.push(row(None, 1_000.0, 120.0, 26_000.0));
        let found = Latencies::of(&rows).unwrap();
        // The fit is between the two values. Four of five rows have the lower value.
        assert!((10.0..25.0).contains(&found.tail_error_percent), "{found:?}");
    }

    #[test]
    fn rows_without_reads_or_writes_give_no_latencies() {
        assert_eq!(Latencies::of(&[]), None);
        assert_eq!(Latencies::of(&[row(None, 0.0, 100.0, 200.0)]), None);
        assert_eq!(Latencies::of(&[row(None, 10.0, 0.0, 200.0), row(None, 10.0, f64::NAN, 200.0)]), None);
    }
}
