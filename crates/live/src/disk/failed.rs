//! Commands that the back end has failed to do: told to whoever looks after the disk, and counted.

use std::collections::BTreeMap;

use iosched::{Op, Sector};

use super::{CommandFor, LiveDisk, Part};
use crate::Errno;

/// A command that the back end has failed to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed {
    /// What it was to do.
    pub op: Op,
    /// First sector.
    pub sector: Sector,
    /// Sectors; 0 of a flush.
    pub nr_sectors: u32,
    /// What it failed with.
    pub errno: Errno,
}

/// How many commands the back end has failed to do, by what they were to do and what it said.
pub type Failures = BTreeMap<(Op, Errno), u64>;

impl LiveDisk {
    /// Counts a command that has failed. What it was.
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
