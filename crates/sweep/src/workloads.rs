//! Cache of recent workloads. All running units with the same workload share one read of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use iosched_workload::Workload;

use crate::unit::Unit;

type Opened = Arc<OnceLock<Result<Workload, String>>>;

/// Recent workloads, shared by several threads.
pub struct Workloads {
    kept: Mutex<VecDeque<(String, Opened)>>,
    most: usize,
}

impl Workloads {
    /// Creates a cache of at most `most` workloads.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { kept: Mutex::new(VecDeque::new()), most }
    }

    /// Returns the workload of `unit`. Calls `open` if the cache does not have the workload. Other
    /// threads that need the same workload wait.
    ///
    /// # Errors
    /// The error of `open`.
    pub fn get(&self, unit: &Unit, open: impl FnOnce() -> Result<Workload, String>) -> Result<Workload, String> {
        let key = unit.workload_key();
        let opened = {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            match kept.iter().find(|(known, _)| *known == key) {
                Some((_, opened)) => Arc::clone(opened),
                None => {
                    if kept.len() >= self.most {
                        kept.pop_front();
                    }
                    let opened = Opened::default();
                    kept.push_back((key, Arc::clone(&opened)));
                    opened
                }
            }
        };
        opened.get_or_init(open).clone()
    }
}
