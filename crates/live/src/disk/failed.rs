//! Commands that failed in the back end. The disk counts these commands and reports them to the
//! administrator.

use std::collections::BTreeMap;

use iosched::{Op, Sector};

use super::{CommandFor, LiveDisk, Part};
use crate::Errno;

/// A command that failed in the back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed {
    /// Operation of the command.
    pub op: Op,
    /// First sector of the command.
    pub sector: Sector,
    /// Number of sectors; 0 for a flush.
    pub nr_sectors: u32,
    /// Error of the command.
    pub errno: Errno,
}

/// Counts of failed commands, by operation and error.
pub type Failures = BTreeMap<(Op, Errno), u64>;

impl LiveDisk {
    /// Counts a failed command and returns its description.
    pub(super) fn failed(&mut self, purpose: CommandFor, errno: Errno) -> Failed {
        let (op, sector, nr_sectors) = match purpose.alone {
            Some(part) => {
                let Part { op, sector, nr_sectors, .. } = self.parts[part as usize];
                (op, sector, nr_sectors)
            }
            None => {
                let request = self.driver.queue().request(purpose.request);
                (request.op(), request.sector(), request.nr_sectors())
            }
        };
        *self.failures.entry((op, errno)).or_default() += 1;
        Failed { op, sector, nr_sectors, errno }
    }
}
