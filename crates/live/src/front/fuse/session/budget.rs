//! Limit for the data of all requests of a file system. If there is not enough room for a request,
//! the request waits. All later requests then wait in the kernel.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The limit, and the number of bytes that requests hold.
pub(super) struct Budget {
    most: u64,
    held: Mutex<u64>,
    freed: Condvar,
}

/// Bytes that a request holds until this value is dropped.
pub(super) struct Held {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Budget {
    pub(super) fn new(most: u64) -> Self {
        Self { most, held: Mutex::new(0), freed: Condvar::new() }
    }

    fn held(&self) -> MutexGuard<'_, u64> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `bytes` bytes are free. A request that is larger than the limit waits until no
    /// other request holds bytes.
    pub(super) fn take(self: &Arc<Self>, bytes: u64) -> Held {
        let is_short = |held: &mut u64| *held > 0 && *held + bytes > self.most;
        let mut held = self.freed.wait_while(self.held(), is_short).unwrap_or_else(PoisonError::into_inner);
        *held += bytes;
        Held { budget: Arc::clone(self), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.budget.held() -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_is_exceeded_only_by_one_large_request_alone() {
        let budget = Arc::new(Budget::new(100));
        let (large, small) = (budget.take(1000), 60);
        std::thread::scope(|scope| {
            let take = || {
                let held = budget.take(small);
                assert_eq!(*budget.held(), small, "two requests do not fit");
                drop(held);
            };
            let takers: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            assert_eq!(*budget.held(), 1000);
            drop(large);
            takers.into_iter().for_each(|taker| taker.join().unwrap());
        });
        assert_eq!(*budget.held(), 0);
    }
}
