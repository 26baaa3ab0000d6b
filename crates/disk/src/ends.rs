//! Where the last commands ended: whether a command continues one of them.

use std::collections::VecDeque;

use iosched::Sector;

use crate::Command;

/// Commands that are remembered.
const ENDS: usize = 64;

/// The ends of the last commands.
#[derive(Clone, Debug)]
pub(crate) struct Ends {
    sectors: VecDeque<Sector>,
}

impl Ends {
    pub(crate) fn new() -> Self {
        Self { sectors: VecDeque::with_capacity(ENDS) }
    }

    /// Whether a command begins where one of the last ended.
    #[inline]
    pub(crate) fn continues(&self, command: &Command) -> bool {
        self.sectors.contains(&command.sector)
    }

    /// Remembers a command, and forgets the oldest.
    #[inline]
    pub(crate) fn add(&mut self, command: &Command) {
        if self.sectors.len() == ENDS {
            self.sectors.pop_front();
        }
        self.sectors.push_back(command.sector + u64::from(command.nr_sectors));
    }
}
