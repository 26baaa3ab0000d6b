//! The cost of a rest. After a rest, processors must wake up, a link must leave its power-saving
//! state, or threads must be woken.
//!
//! The first command after a rest wakes the device. Commands that arrive before the device is awake
//! also wait.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};
use crate::distribution::{self, QuantilePoint, at};

/// Additional latency of the first command after a rest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestConfig {
    /// Shortest rest with this effect, ns, 1 to a thousand seconds.
    pub ns: u64,
    /// Distribution of the additional latency. Each rest draws a value, with linear interpolation
    /// between the points.
    pub extra: Vec<QuantilePoint>,
}

impl RestConfig {
    pub(crate) fn validate(&self, table: &str) -> Result<(), ConfigError> {
        within(&format!("{table}.ns"), self.ns, 1..=config::LATENCY_NS_MAX)?;
        if self.extra.is_empty() {
            let remedy = format!(
                "give at least the shortest time (share 0) and the longest time (share 1), or leave out the table \
                 {table}"
            );
            return Err(ConfigError::new(&format!("{table}.extra"), "the list is empty", remedy));
        }
        distribution::validate(&format!("{table}.extra"), &self.extra)
    }
}

/// State of a device's rest: whether the device sleeps, and the time at which it is awake.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    config: Option<RestConfig>,
    /// Start of the last idle time, ns.
    idle_since_ns: u64,
    awake_ns: u64,
}

impl Rest {
    pub(crate) fn new(config: Option<&RestConfig>) -> Self {
        Self { config: config.cloned(), ..Self::default() }
    }

    /// Begins an idle time.
    #[inline]
    pub(crate) const fn idles(&mut self, now_ns: u64) {
        self.idle_since_ns = now_ns;
    }

    /// Returns the earliest time at which a command that arrives now can run, ns. `is_first` tells
    /// whether the device has no other commands. `share` returns a random number from 0 to 1.
    #[inline]
    pub(crate) fn awake_ns(&mut self, now_ns: u64, is_first: bool, share: impl FnOnce() -> f64) -> u64 {
        let Some(config) = &self.config else { return now_ns };
        if is_first && now_ns - self.idle_since_ns.min(now_ns) >= config.ns {
            self.awake_ns = now_ns + at(&config.extra, share()) as u64;
        }
        self.awake_ns.max(now_ns)
    }
}
