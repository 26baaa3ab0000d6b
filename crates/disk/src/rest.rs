//! What a rest costs: processors that sleep, a link that saves power, threads that must be woken.
//!
//! Who comes first after a rest wakes the device up, and whoever comes meanwhile waits with it.

use serde::{Deserialize, Serialize};

use crate::config::{self, ConfigError, within};
use crate::distribution::{self, QuantilePoint, at};

/// What the first command after a rest takes longer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestConfig {
    /// From how long a rest on, in ns, 1 to a thousand seconds.
    pub ns: u64,
    /// How much longer, by share of all rests: drawn anew after each, on straight lines between these points.
    pub extra: Vec<QuantilePoint>,
}

impl RestConfig {
    pub(crate) fn validate(&self, table: &str) -> Result<(), ConfigError> {
        within(&format!("{table}.ns"), self.ns, 1..=config::LATENCY_NS_MAX)?;
        if self.extra.is_empty() {
            let remedy =
                format!("it has the shortest (share 0) and the longest (share 1), or there is no table {table}");
            return Err(ConfigError::new(&format!("{table}.extra"), "it is empty", remedy));
        }
        distribution::validate(&format!("{table}.extra"), &self.extra)
    }
}

/// Whether a device sleeps, and until when it wakes up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rest {
    config: Option<RestConfig>,
    /// When it last had nothing to do any more, ns.
    idle_since_ns: u64,
    awake_ns: u64,
}

impl Rest {
    pub(crate) fn new(config: Option<&RestConfig>) -> Self {
        Self { config: config.cloned(), ..Self::default() }
    }

    /// It has nothing to do any more.
    #[inline]
    pub(crate) const fn idles(&mut self, now_ns: u64) {
        self.idle_since_ns = now_ns;
    }

    /// From when on a command that comes now is worked on; `is_first` if the device has nothing else to do. `share`
    /// draws.
    #[inline]
    pub(crate) fn awake_ns(&mut self, now_ns: u64, is_first: bool, share: impl FnOnce() -> f64) -> u64 {
        let Some(config) = &self.config else { return now_ns };
        if is_first && now_ns - self.idle_since_ns.min(now_ns) >= config.ns {
            self.awake_ns = now_ns + at(&config.extra, share()) as u64;
        }
        self.awake_ns.max(now_ns)
    }
}
