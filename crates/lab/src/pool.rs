//! Many independent runs on several threads, handed on in the order in which they were planned.
//!
//! What a run is and what becomes of what it gives is left to others.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use iosched_sim::SimError;

use crate::error::LabError;

/// How runs are made, and how they are stopped; may be shared with another thread.
#[derive(Debug)]
pub struct Control {
    /// Runs at a time, at least 1.
    jobs: usize,
    stop: AtomicBool,
    abort: AtomicBool,
}

impl Control {
    /// So many runs at a time; 0 counts as 1.
    #[must_use]
    pub fn new(jobs: usize) -> Self {
        Self { jobs: jobs.max(1), stop: AtomicBool::new(false), abort: AtomicBool::new(false) }
    }

    /// The first time: starts nothing more, what runs is finished and kept. The second time: ends what runs, too.
    pub fn interrupt(&self) {
        if self.stop.swap(true, Ordering::Relaxed) {
            self.abort.store(true, Ordering::Relaxed);
        }
    }

    /// Whether nothing more is to be started.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Becomes true when nothing more is to be started: for what is better ended at once.
    #[must_use]
    pub const fn stopping(&self) -> &AtomicBool {
        &self.stop
    }

    /// Becomes true when what runs is to end.
    #[must_use]
    pub const fn aborted(&self) -> &AtomicBool {
        &self.abort
    }

    fn fail(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.abort.store(true, Ordering::Relaxed);
    }
}

/// What happens while runs are made.
#[derive(Debug)]
pub enum Event<T> {
    /// So many runs are done, in the order they finish.
    Done {
        /// Runs done.
        done: usize,
    },
    /// What a run gave, in the order of the plan.
    Taken(T),
}

/// Makes a run of every one of `jobs`; `carry_out` gives `None` if `control` ended it. Whether all were made.
///
/// # Errors
/// The first of `carry_out` or `observe`.
pub fn in_order<J: Sync, T: Send>(
    control: &Control,
    jobs: &[J],
    carry_out: impl Fn(&J) -> Result<Option<T>, LabError> + Sync,
    mut observe: impl FnMut(Event<T>) -> Result<(), LabError>,
) -> Result<bool, LabError> {
    // Bounded: whoever is slow to take results holds up the runs.
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
                // The first is the cause.
                failure.get_or_insert(error);
            }
        }
    });
    if let Some(error) = failure {
        return Err(error);
    }
    // What is left behind a run that will not come.
    std::mem::take(&mut gathered.waiting).into_values().try_for_each(|given| observe(Event::Taken(given)))?;
    Ok(done == jobs.len())
}

/// Brings results into the order of the plan.
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

/// What a run gave; `None` if it was ended early. What fails is told with its name, number and seed, and a panic is the
/// simulator's own fault.
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
