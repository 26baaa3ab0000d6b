//! Workloads of late: each is read once for all units under way that want it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use iosched_workload::Workload;

use crate::unit::Unit;

type Opened = Arc<OnceLock<Result<Workload, String>>>;

/// The workloads that were wanted last, of several threads.
pub struct Workloads {
    kept: Mutex<VecDeque<(String, Opened)>>,
    most: usize,
}

impl Workloads {
    /// Keeps so many at most.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self { kept: Mutex::new(VecDeque::new()), most }
    }

    /// The workload of `unit`: `open` is called if it is not kept. Whoever wants the same meanwhile waits for it.
    ///
    /// # Errors
    /// What `open` said.
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
