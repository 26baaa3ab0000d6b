//! Ends of the last commands. They show whether a command continues one of these commands.

use std::collections::VecDeque;

use iosched::Sector;

use crate::Command;

/// Number of commands to remember.
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

    /// Returns whether a command begins at the end of one of the last commands.
    #[inline]
    pub(crate) fn continues(&self, command: &Command) -> bool {
        self.sectors.contains(&command.sector)
    }

    /// Adds a command and removes the oldest one.
    #[inline]
    pub(crate) fn add(&mut self, command: &Command) {
        if self.sectors.len() == ENDS {
            self.sectors.pop_front();
        }
        self.sectors.push_back(command.sector + u64::from(command.nr_sectors));
    }
}
