//! The priorities (ionice) of processes during a recording. The tracer's records do not contain
//! them. iosched therefore queries each process when it reads the requests of the process, a few ms
//! after their submission. The priority of a process that has already ended stays unknown.

use std::collections::{BTreeMap, BTreeSet};

use iosched::IoPriority;

use super::stream::Records;

/// Largest number of processes, and largest number of changes, that are stored.
const PROCESSES_MAX: usize = 65_536;
const CHANGES_MAX: usize = 1 << 20;

/// Change of a process's priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    /// Time of the change on the clock of the records, ns.
    pub(super) time_ns: u64,
    pub(super) pid: u32,
    pub(super) ioprio: IoPriority,
}

/// The priorities of processes, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Priorities {
    known: BTreeMap<u32, IoPriority>,
    changes: Vec<Change>,
    /// Processes that were queried since [`Self::begin`].
    queried: BTreeSet<u32>,
}

impl Priorities {
    /// Starts a new round of queries, in which each process can be queried once.
    pub(super) fn begin(&mut self) {
        self.queried.clear();
    }

    /// Queries each process that submitted requests in `records` once.
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

    /// Returns the changes in order of time. The first priority of a process counts as a change.
    pub(super) fn into_changes(self) -> Vec<Change> {
        let mut changes = self.changes;
        changes.sort_by_key(|change| change.time_ns);
        changes
    }
}
