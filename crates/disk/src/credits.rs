//! Credits: the rate that a device allows in the long run, and the additional amount that it allows
//! for a short time.
//!
//! These are token buckets, as providers of network disks document them for their volumes. The
//! device gets credits for a number of I/Os or bytes per second. If it uses fewer credits, it saves
//! the rest up to a limit. The same model describes a cache that accepts writes until it is full
//! and is emptied at the rate of the medium. The credits are then bytes of writes, and the limit is
//! the size of the cache.

use iosched::Op;
use serde::{Deserialize, Serialize};

use crate::Command;
use crate::config::{ConfigError, within};

/// Largest number of buckets of a device.
const BUCKETS_MAX: usize = 8;
const AMOUNT_MAX: u64 = 1_000_000_000_000_000;

/// A bucket of credits. It is full at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditsConfig {
    /// Commands that cost credits.
    pub of: CreditsOf,
    /// Unit of the cost.
    pub unit: CreditsUnit,
    /// Credits per second, 1 to 10^15: the rate in the long run.
    pub per_second: u64,
    /// Largest amount of saved credits, 1 to 10^15.
    pub saved: u64,
}

/// Commands that use credits of a bucket. Only commands with data use credits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreditsOf {
    /// All commands.
    All,
    /// Reads.
    Reads,
    /// All commands except reads.
    Writes,
}

/// Unit of a command's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreditsUnit {
    /// One credit per command.
    Ios,
    /// One credit per byte.
    Bytes,
}

impl CreditsConfig {
    /// Checks all buckets of a device.
    pub(crate) fn validate(field: &str, buckets: &[Self]) -> Result<(), ConfigError> {
        within(&format!("number of {field}"), buckets.len(), 0..=BUCKETS_MAX)?;
        for bucket in buckets {
            within(&format!("{field}.per_second"), bucket.per_second, 1..=AMOUNT_MAX)?;
            within(&format!("{field}.saved"), bucket.saved, 1..=AMOUNT_MAX)?;
        }
        Ok(())
    }

    /// Returns the cost of a command, credits. Returns 0 if this bucket does not apply to the
    /// command.
    const fn cost(&self, command: &Command) -> u64 {
        let pays = match self.of {
            CreditsOf::All => true,
            CreditsOf::Reads => matches!(command.op, Op::Read),
            CreditsOf::Writes => !matches!(command.op, Op::Read),
        };
        match self.unit {
            _ if !pays || !command.op.has_data() => 0,
            CreditsUnit::Ios => 1,
            CreditsUnit::Bytes => command.nr_sectors as u64 * iosched::SECTOR_BYTES,
        }
    }

    /// Returns the time in which the device gets `amount` credits, ns.
    fn ns(&self, amount: u64) -> i128 {
        i128::from(amount) * 1_000_000_000 / i128::from(self.per_second)
    }
}

/// The buckets of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credits {
    /// The buckets, each with the time at which it was or will be empty, ns; `None` until the first
    /// cost.
    buckets: Vec<(CreditsConfig, Option<i128>)>,
}

impl Credits {
    pub(crate) fn new(buckets: &[CreditsConfig]) -> Self {
        Self { buckets: buckets.iter().map(|&bucket| (bucket, None)).collect() }
    }

    /// Takes the credits for a command that arrives at `now_ns`. Returns the earliest time at which
    /// the command can run, ns.
    #[inline]
    pub(crate) fn pay(&mut self, now_ns: u64, command: &Command) -> u64 {
        let mut paid_ns = i128::from(now_ns);
        for (config, empty_ns) in &mut self.buckets {
            let cost = config.cost(command);
            if cost == 0 {
                continue;
            }
            // Credits above the limit are lost. This is the same as if the bucket had been empty at
            // a later time.
            let full_ns = i128::from(now_ns) - config.ns(config.saved);
            let empty = empty_ns.map_or(full_ns, |ns| ns.max(full_ns)) + config.ns(cost);
            *empty_ns = Some(empty);
            paid_ns = paid_ns.max(empty);
        }
        u64::try_from(paid_ns).unwrap_or(u64::MAX)
    }
}
