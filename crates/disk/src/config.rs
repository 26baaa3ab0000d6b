//! Errors of a configuration, and checks that all models share.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// An invalid parameter of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}; {remedy}")]
pub struct ConfigError {
    /// Name of the parameter, as in a profile.
    pub field: String,
    /// The problem of the value.
    pub problem: String,
    /// A remedy.
    pub remedy: String,
}

impl ConfigError {
    pub(crate) fn new(field: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { field: field.to_owned(), problem: problem.into(), remedy: remedy.into() }
    }
}

/// Returns an error if `value` is outside `allowed`.
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

/// Longest latency of a model, ns: a thousand seconds. This limit prevents overflows of times.
pub(crate) const LATENCY_NS_MAX: u64 = 1_000_000_000_000;
/// Longest transfer of one sector, ns.
pub(crate) const SECTOR_NS_MAX: u64 = 1_000_000_000;
/// Largest depth of a device: the number of tags of one NVMe queue.
pub(crate) const DEPTH_MAX: u32 = 65_535;
/// Largest device, sectors: 2^40, 512 TiB.
pub(crate) const CAPACITY_SECTORS_MAX: u64 = 1 << 40;
/// Largest command of a device without a limit in its profile, KiB: 65,535 sectors, the limit of
/// ATA.
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

/// Returns whether a value is the default, which the profile file can leave out.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
