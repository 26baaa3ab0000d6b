//! Runs work on all processors.

use std::sync::Mutex;

/// Calls `work` for each item, on all processors. Returns the results in the order of the items.
pub(crate) fn on_all_processors<I: Sync, T: Send>(items: &[I], work: impl Fn(&I) -> T + Sync) -> Vec<T> {
    let next = Mutex::new(0..items.len());
    let done = Mutex::new(Vec::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(at) = next.lock().ok().and_then(|mut next| next.next()) {
                    let result = work(&items[at]);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
