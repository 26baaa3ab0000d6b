//! Settling of written data, which occupies parts of the flash.

use iosched::{Op, SECTOR_BYTES};

use super::ServerSettling;
use crate::Command;

/// State of the settling.
#[derive(Clone, Debug)]
pub(super) struct Settling {
    config: ServerSettling,
    /// Time at which the device will have settled all written data, in working time, ns.
    settled_ns: u64,
}

impl Settling {
    pub(super) const fn new(config: ServerSettling) -> Self {
        Self { config, settled_ns: 0 }
    }

    /// Adds the data of a command that arrives at `now_ns`. Returns the time that the command waits
    /// for an occupied part of the flash, ns. `unit` returns a random number below 1.
    #[inline]
    pub(super) fn wait_ns(&mut self, now_ns: u64, command: &Command, mut unit: impl FnMut() -> f64) -> u64 {
        let ServerSettling { bytes_per_second, share, longest_ns, behind_ns } = self.config;
        match command.op {
            Op::Read if self.settled_ns > now_ns && unit() < share => (longest_ns as f64 * unit()) as u64,
            Op::Write => {
                let bytes = u64::from(command.nr_sectors) * SECTOR_BYTES;
                let ns = (bytes as f64 * 1e9 / bytes_per_second as f64) as u64;
                self.settled_ns = (self.settled_ns.max(now_ns) + ns).min(now_ns + behind_ns);
                0
            }
            _ => 0,
        }
    }
}
