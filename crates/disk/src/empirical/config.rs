//! Parameters of the `empirical` model.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, is_default, within};
use crate::credits::CreditsConfig;
use crate::rest::RestConfig;

/// Largest number of points of a distribution.
const SHARES_MAX: usize = 64;
/// Largest number of different sizes, and of different numbers of commands in flight.
const SIDE_MAX: usize = 32;
/// Largest factor of commands with the opposite direction.
const FACTOR_MAX: f64 = 1_000.0;

/// Parameters of an [`Empirical`](super::Empirical) device, as in a profile of this model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmpiricalConfig {
    /// Size in sectors of 512 bytes.
    pub capacity_sectors: u64,
    /// Number of commands that the device takes at the same time, 1 to 65,535.
    pub depth: u32,
    /// Number of hardware queues, 1 to 1,024; 1 if absent.
    #[serde(default = "one_queue")]
    pub hw_queues: u16,
    /// Largest command, KiB; 32,767 if absent.
    #[serde(default = "config::default_max_hw_sectors_kb")]
    pub max_hw_sectors_kb: u32,
    /// Whether the device reports that it is rotational.
    #[serde(default)]
    pub rotational: bool,
    /// Whether the device reports a volatile cache.
    #[serde(default)]
    pub write_cache: bool,
    /// Whether the host can use force-unit-access.
    #[serde(default)]
    pub fua: bool,
    /// Time of a flush, ns, up to a thousand seconds.
    #[serde(default)]
    pub flush_ns: u64,
    /// Shares of the commands for which cells have latencies (quantiles), ascending from 0 to 1.
    pub shares: Vec<f64>,
    /// Factors for the latencies of reads if half of the commands are writes. The list has one
    /// factor for each share. Empty: no effect.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reads_beside_writes: Vec<f64>,
    /// Factors for the latencies of writes if half of the commands are reads. The list has one
    /// factor for each share. Empty: no effect.
    #[serde(default, skip_serializing_if = "is_default")]
    pub writes_beside_reads: Vec<f64>,
    /// Cost of the first command after a rest; none if absent.
    #[serde(default)]
    pub rest: Option<RestConfig>,
    /// Reads that do not begin where another command ended.
    pub random_reads: Vec<EmpiricalCell>,
    /// Reads that begin where another command ended. If empty, `random_reads` applies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sequential_reads: Vec<EmpiricalCell>,
    /// Writes that do not begin where another command ended. If the profile has no writes, the
    /// values of reads apply.
    #[serde(default, skip_serializing_if = "is_default")]
    pub random_writes: Vec<EmpiricalCell>,
    /// Writes that begin where another command ended. If empty, `random_writes` applies.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sequential_writes: Vec<EmpiricalCell>,
    /// Buckets of credits for commands; none if empty.
    #[serde(default, skip_serializing_if = "is_default")]
    pub credits: Vec<CreditsConfig>,
}

/// Latencies of commands of one size with a given number of commands in flight. A list must have a
/// cell for every combination of its sizes and its numbers of commands in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmpiricalCell {
    /// Size of the commands, sectors, at least 1.
    pub sectors: u32,
    /// Number of commands in flight, including the new command, at least 1.
    pub under_way: u32,
    /// Latencies, ns, 1 to a thousand seconds, one for each share, not decreasing.
    pub ns: Vec<u64>,
}

const fn one_queue() -> u16 {
    1
}

impl EmpiricalConfig {
    /// Checks that every parameter is in its range.
    ///
    /// # Errors
    /// The first parameter that is out of range or contradicts another.
    pub fn validate(&self) -> Result<(), ConfigError> {
        within("empirical.capacity_sectors", self.capacity_sectors, 1..=config::CAPACITY_SECTORS_MAX)?;
        within("empirical.depth", self.depth, 1..=config::DEPTH_MAX)?;
        within("empirical.hw_queues", self.hw_queues, 1..=1024)?;
        within("empirical.max_hw_sectors_kb", self.max_hw_sectors_kb, 4..=config::MAX_HW_SECTORS_KB)?;
        within("empirical.flush_ns", self.flush_ns, 0..=config::LATENCY_NS_MAX)?;
        within("number of empirical.shares", self.shares.len(), 2..=SHARES_MAX)?;
        let rise = self.shares.windows(2).all(|pair| pair[0] < pair[1]);
        if !rise || self.shares.first() != Some(&0.0) || self.shares.last() != Some(&1.0) {
            let problem = "the values do not increase from 0 to 1";
            return Err(ConfigError::new(
                "empirical.shares",
                problem,
                "write increasing shares of commands; the first share must be 0, and the last share must be 1",
            ));
        }
        self.validate_factors("empirical.reads_beside_writes", &self.reads_beside_writes)?;
        self.validate_factors("empirical.writes_beside_reads", &self.writes_beside_reads)?;
        self.rest.as_ref().map_or(Ok(()), |rest| rest.validate("empirical.rest"))?;
        if self.random_reads.is_empty() {
            let problem = "the table has no measurements";
            return Err(ConfigError::new("empirical.random_reads", problem, "give at least one cell"));
        }
        for (field, cells) in [
            ("empirical.random_reads", &self.random_reads),
            ("empirical.sequential_reads", &self.sequential_reads),
            ("empirical.random_writes", &self.random_writes),
            ("empirical.sequential_writes", &self.sequential_writes),
        ] {
            self.validate_cells(field, cells)?;
        }
        CreditsConfig::validate("empirical.credits", &self.credits)
    }

    fn validate_factors(&self, field: &str, factors: &[f64]) -> Result<(), ConfigError> {
        if !factors.is_empty() && factors.len() != self.shares.len() {
            let remedy = format!("give one value for each of the {} shares, or leave the field out", self.shares.len());
            return Err(ConfigError::new(field, format!("{} values are given", factors.len()), remedy));
        }
        factors.iter().try_for_each(|&factor| within(field, factor, 1.0 / FACTOR_MAX..=FACTOR_MAX))
    }

    fn validate_cells(&self, field: &str, cells: &[EmpiricalCell]) -> Result<(), ConfigError> {
        for cell in cells {
            within(&format!("{field}.sectors"), cell.sectors, 1..=1 << 20)?;
            within(&format!("{field}.under_way"), cell.under_way, 1..=config::DEPTH_MAX)?;
            let of_cell = format!("{field} of {} sectors, {} in flight", cell.sectors, cell.under_way);
            if cell.ns.len() != self.shares.len() {
                let remedy = format!("give one time for each of the {} shares", self.shares.len());
                return Err(ConfigError::new(&of_cell, format!("there are {} times", cell.ns.len()), remedy));
            }
            cell.ns.iter().try_for_each(|&ns| within(&of_cell, ns, 1..=config::LATENCY_NS_MAX))?;
            if !cell.ns.is_sorted() {
                return Err(ConfigError::new(
                    &of_cell,
                    "a time is less than the time before it",
                    "times must not decrease from one share to the next",
                ));
            }
        }
        let sizes: BTreeSet<u32> = cells.iter().map(|cell| cell.sectors).collect();
        let numbers: BTreeSet<u32> = cells.iter().map(|cell| cell.under_way).collect();
        within(&format!("{field}: number of different sizes"), sizes.len(), 0..=SIDE_MAX)?;
        within(&format!("{field}: number of different values of under_way"), numbers.len(), 0..=SIDE_MAX)?;
        let all: BTreeSet<(u32, u32)> = cells.iter().map(|cell| (cell.sectors, cell.under_way)).collect();
        if all.len() != cells.len() || all.len() != sizes.len() * numbers.len() {
            let problem = format!(
                "there are {} cells for {} values of sectors and {} values of under_way",
                cells.len(),
                sizes.len(),
                numbers.len()
            );
            return Err(ConfigError::new(field, problem, "give exactly one cell for each pair of these values"));
        }
        Ok(())
    }
}
