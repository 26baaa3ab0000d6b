//! Credits: what a device allows in the long run, and how much of it can be saved up and spent at once.
//!
//! Token buckets, as providers of network disks document them for their volumes: so many I/Os or bytes a second, and
//! while the device does less, the rest is saved, up to a limit. A cache that takes writes until it is full, and is
//! emptied at the pace of what is behind it, is the same: bytes of writes, with the cache's size as the limit.

use iosched::Op;
use serde::{Deserialize, Serialize};

use crate::Command;
use crate::config::{ConfigError, within};

/// Most buckets of a device.
const BUCKETS_MAX: usize = 8;
const AMOUNT_MAX: u64 = 1_000_000_000_000_000;

/// A bucket of credits, full in the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditsConfig {
    /// Which commands are paid for.
    pub of: CreditsOf,
    /// What they cost.
    pub unit: CreditsUnit,
    /// What is credited in a second, 1 to 10^15: the rate in the long run.
    pub per_second: u64,
    /// Most that can be saved up, 1 to 10^15.
    pub saved: u64,
}

/// Commands with data that a bucket pays for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreditsOf {
    /// All.
    All,
    /// Reads.
    Reads,
    /// Everything but reads.
    Writes,
}

/// What a command costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CreditsUnit {
    /// One each.
    Ios,
    /// Its bytes.
    Bytes,
}

impl CreditsConfig {
    /// Checks all buckets of a device.
    pub(crate) fn validate(field: &str, buckets: &[Self]) -> Result<(), ConfigError> {
        within(&format!("{field}: number of them"), buckets.len(), 0..=BUCKETS_MAX)?;
        for bucket in buckets {
            within(&format!("{field}.per_second"), bucket.per_second, 1..=AMOUNT_MAX)?;
            within(&format!("{field}.saved"), bucket.saved, 1..=AMOUNT_MAX)?;
        }
        Ok(())
    }

    /// What a command costs; 0 if this bucket does not pay for it.
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

    /// The time in which so much is credited, ns.
    fn ns(&self, amount: u64) -> i128 {
        i128::from(amount) * 1_000_000_000 / i128::from(self.per_second)
    }
}

/// The buckets of a device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Credits {
    /// Each with the moment at which it was, or will be, empty, ns; `None` until it first pays.
    buckets: Vec<(CreditsConfig, Option<i128>)>,
}

impl Credits {
    pub(crate) fn new(buckets: &[CreditsConfig]) -> Self {
        Self { buckets: buckets.iter().map(|&bucket| (bucket, None)).collect() }
    }

    /// Pays for a command that comes at `now_ns`; from when on it is paid for, ns.
    #[inline]
    pub(crate) fn pay(&mut self, now_ns: u64, command: &Command) -> u64 {
        let mut paid_ns = i128::from(now_ns);
        for (config, empty_ns) in &mut self.buckets {
            let cost = config.cost(command);
            if cost == 0 {
                continue;
            }
            // No more is saved than fits: it is as if it had been empty no longer ago.
            let full_ns = i128::from(now_ns) - config.ns(config.saved);
            let empty = empty_ns.map_or(full_ns, |ns| ns.max(full_ns)) + config.ns(cost);
            *empty_ns = Some(empty);
            paid_ns = paid_ns.max(empty);
        }
        u64::try_from(paid_ns).unwrap_or(u64::MAX)
    }
}
