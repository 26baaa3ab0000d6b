//! What is wrong with a configuration, and the checks all models share.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// A parameter a model cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}; {remedy}")]
pub struct ConfigError {
    /// The parameter, as a profile spells it.
    pub field: String,
    /// What is wrong with its value.
    pub problem: String,
    /// What would be right.
    pub remedy: String,
}

impl ConfigError {
    pub(crate) fn new(field: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { field: field.to_owned(), problem: problem.into(), remedy: remedy.into() }
    }
}

/// Refuses `value` outside `allowed`.
pub(crate) fn within<T: PartialOrd + Display>(
    field: &str,
    value: T,
    allowed: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    if allowed.contains(&value) {
        return Ok(());
    }
    Err(ConfigError::new(
        field,
        format!("{value} is out of range"),
        format!("it must be from {} to {}", allowed.start(), allowed.end()),
    ))
}

/// Longest latency a model accepts, in ns: a thousand seconds, far from any overflow.
pub(crate) const LATENCY_NS_MAX: u64 = 1_000_000_000_000;
/// Longest transfer of one sector, in ns.
pub(crate) const SECTOR_NS_MAX: u64 = 1_000_000_000;
/// Most commands a device takes at once: as many tags as NVMe has in one queue.
pub(crate) const DEPTH_MAX: u32 = 65_535;
/// Largest device: 2 to the 40 sectors, 512 TiB.
pub(crate) const CAPACITY_SECTORS_MAX: u64 = 1 << 40;
/// Largest command of a device that names no limit of its own, in KiB: 65,535 sectors, as ATA counts.
pub(crate) const MAX_HW_SECTORS_KB: u32 = 32_767;

pub(crate) const fn default_capacity_sectors() -> u64 {
    CAPACITY_SECTORS_MAX
}

pub(crate) const fn default_max_hw_sectors_kb() -> u32 {
    MAX_HW_SECTORS_KB
}

pub(crate) const fn yes() -> bool {
    true
}

/// Whether a value need not be written, since reading puts it there.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
