//! Independent runs on several threads, with results in the order of the plan.
//!
//! The caller defines what a run does and how its result is used.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use iosched_sim::SimError;

use crate::error::LabError;

/// Number of parallel runs, and flags to stop them. It can be shared with another thread.
#[derive(Debug)]
pub struct Control {
    /// Number of parallel runs, at least 1.
    jobs: usize,
    stop: AtomicBool,
    abort: AtomicBool,
}

impl Control {
    /// Creates a control for `jobs` parallel runs; 0 counts as 1.
    #[must_use]
    pub fn new(jobs: usize) -> Self {
        Self { jobs: jobs.max(1), stop: AtomicBool::new(false), abort: AtomicBool::new(false) }
    }

    /// Stops the runs. The first call starts no more runs and lets the present ones finish. The
    /// second call also ends the present runs.
    pub fn interrupt(&self) {
        if self.stop.swap(true, Ordering::Relaxed) {
            self.abort.store(true, Ordering::Relaxed);
        }
    }

    /// Stops the runs: starts no more runs, and ends the present runs.
    pub fn abort(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.abort.store(true, Ordering::Relaxed);
    }

    /// Returns whether the pool starts no more runs.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Returns the flag that becomes true when no more runs are started. Work that should end at
    /// once can check it.
    #[must_use]
    pub const fn stopping(&self) -> &AtomicBool {
        &self.stop
    }

    /// Returns the flag that is set when present runs must end.
    #[must_use]
    pub const fn aborted(&self) -> &AtomicBool {
        &self.abort
    }

    fn fail(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.abort.store(true, Ordering::Relaxed);
    }
}

/// Event while several threads run the jobs of a pool.
#[derive(Debug)]
pub enum Event<T> {
    /// A run is complete.
    Done {
        /// Number of complete runs so far.
        done: usize,
    },
    /// Result of a run, in the order of the plan.
    Taken(T),
}

/// Makes a run for each of `jobs`. `carry_out` returns `None` if `control` ended the run. Returns
/// whether all runs were made.
///
/// # Errors
/// The first error of `carry_out` or `observe`.
pub fn in_order<J: Sync, T: Send>(
    control: &Control,
    jobs: &[J],
    carry_out: impl Fn(&J) -> Result<Option<T>, LabError> + Sync,
    mut observe: impl FnMut(Event<T>) -> Result<(), LabError>,
) -> Result<bool, LabError> {
    // The channel is bounded, so a slow observer delays the runs.
    let (sender, receiver) = mpsc::sync_channel(control.jobs);
    let next = AtomicUsize::new(0);
    let mut gathered = Gathered { waiting: BTreeMap::new(), next: 0 };
    let mut failure = None;
    let mut done = 0;
    std::thread::scope(|scope| {
        for _ in 0..control.jobs.min(jobs.len()) {
            let (sender, next, carry_out) = (sender.clone(), &next, &carry_out);
            scope.spawn(move || {
                while !control.is_stopping() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    if sender.send((number, carry_out(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        for (number, outcome) in receiver {
            let taken = match outcome {
                Ok(Some(given)) => {
                    done += 1;
                    observe(Event::Done { done }).and_then(|()| gathered.take(number, given, &mut observe))
                }
                Ok(None) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = taken {
                control.fail();
                // The first error is the cause of the others.
                failure.get_or_insert(error);
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    // Pass on the results of runs that come after a run that was ended early.
    std::mem::take(&mut gathered.waiting).into_values().try_for_each(|given| observe(Event::Taken(given)))?;
    Ok(done == jobs.len())
}

/// Sorts results into the order of the plan.
struct Gathered<T> {
    waiting: BTreeMap<usize, T>,
    next: usize,
}

impl<T> Gathered<T> {
    fn take(
        &mut self,
        number: usize,
        given: T,
        observe: &mut impl FnMut(Event<T>) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        self.waiting.insert(number, given);
        while let Some(given) = self.waiting.remove(&self.next) {
            self.next += 1;
            observe(Event::Taken(given))?;
        }
        Ok(())
    }
}

/// Returns the result of a run; `None` if the run was ended early. Errors contain the name, number
/// and seed of the run. A panic becomes an error that reports a bug of the simulator.
pub fn settled<T>(
    name: impl Fn() -> String,
    run: u32,
    seed: u64,
    make: impl FnOnce() -> Result<T, SimError>,
) -> Result<Option<T>, LabError> {
    match catch_unwind(AssertUnwindSafe(make)) {
        Ok(Ok(given)) => Ok(Some(given)),
        Ok(Err(SimError::Interrupted { .. })) => Ok(None),
        Ok(Err(source)) => Err(LabError::Run { name: name(), run, seed, source: Box::new(source) }),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Err(LabError::Bug { name: name(), run, seed, message: text.to_owned() })
        }
    }
}
