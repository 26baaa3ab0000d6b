//! The cgroup and the name of each thread that submitted requests. The tracer's records contain
//! only the thread's number. iosched therefore looks up each thread when it reads the thread's
//! first request, a few ms after the submission. A thread that has already ended stays unknown.

use std::collections::BTreeMap;

use super::stream::Records;
use crate::observe::Owner;

/// Largest number of threads that are stored.
const THREADS_MAX: usize = 65_536;

/// Owners of threads, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// `None` if the thread had ended before it was looked up.
    known: BTreeMap<u32, Option<Owner>>,
}

impl Owners {
    /// Looks up each new thread that submitted requests in `records`.
    pub(super) fn take(&mut self, records: &[u8], look_up: impl Fn(u32) -> Option<Owner>) {
        for record in Records::of(records).filter(|record| record.is_submission()) {
            let tid = record.pid();
            if self.known.len() < THREADS_MAX && !self.known.contains_key(&tid) {
                self.known.insert(tid, look_up(tid));
            }
        }
    }

    /// Returns the owners by the numbers of their threads.
    pub(super) fn into_known(self) -> BTreeMap<u32, Owner> {
        self.known.into_iter().filter_map(|(tid, owner)| Some((tid, owner?))).collect()
    }
}
