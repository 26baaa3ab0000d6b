//! The priorities (ionice) that processes had while they were recorded. The tracer's records do not have them, so each
//! process is asked when its requests are read, a few ms after it made them. A process that has ended by then cannot be
//! asked.

use std::collections::{BTreeMap, BTreeSet};

use iosched::IoPriority;

use super::stream::Records;

/// Processes and changes that are remembered at most.
const PROCESSES_MAX: usize = 65_536;
const CHANGES_MAX: usize = 1 << 20;

/// From then on a process has this priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// On the clock of the records, ns.
    pub(super) time_ns: u64,
    pub(super) pid: u32,
    pub(super) ioprio: IoPriority,
}

/// The priorities of processes, as far as these could be asked.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    known: BTreeMap<u32, IoPriority>,
    changes: Vec<Change>,
    /// Processes asked since [`Self::begin`].
    queried: BTreeSet<u32>,
}

impl Priorities {
    /// From now on each process may be asked again.
    pub(super) fn begin(&mut self) {
        self.queried.clear();
    }

    /// Asks the processes that submitted requests of `records`, each once.
    pub(super) fn take(&mut self, records: &[u8], ask: impl Fn(u32) -> Option<IoPriority>) {
        for record in Records::of(records).filter(|record| record.is_submission()) {
            let pid = record.pid();
            if !self.queried.insert(pid) {
                continue;
            }
            let Some(ioprio) = ask(pid) else { continue };
            let has_room = self.known.len() < PROCESSES_MAX || self.known.contains_key(&pid);
            if has_room && self.changes.len() < CHANGES_MAX && self.known.insert(pid, ioprio) != Some(ioprio) {
                self.changes.push(Change { time_ns: record.time_ns(), pid, ioprio });
            }
        }
    }

    /// What changed when, in order of time; a process' first priority counts as a change.
    pub(super) fn into_changes(self) -> Vec<Change> {
        let mut changes = self.changes;
        changes.sort_by_key(|change| change.time_ns);
        changes
    }
}
