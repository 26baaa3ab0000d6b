//! Runs all units of a plan on the cores of this machine.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use iosched_lab::Control;

use crate::dataset::{Directory, FAILED};
use crate::error::SweepError;
use crate::plan::{Failed, Units};
use crate::unit::Unit;
use crate::workloads::Workloads;

/// Control that stops a sweep. It can be shared with another thread.
#[derive(Debug, Default)]
pub struct Sweeping {
    stop: AtomicBool,
    abort: AtomicBool,
    /// Controls of the running units.
    controls: Mutex<Vec<Arc<Control>>>,
}

/// An event that occurs while the units of a sweep run.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A unit is done.
    Done(&'a Unit),
    /// A unit failed.
    Failed(&'a Failed),
}

/// Counts of the finished and failed units of a sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of units that the dataset had before this call.
    pub before: usize,
    /// Number of units that this call finished.
    pub finished: usize,
    /// Units that failed.
    pub failed: Vec<Failed>,
    /// Number of units of the dataset that belong to another plan or version.
    pub others: usize,
    /// Whether the sweep was stopped before its end.
    pub interrupted: bool,
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sweeping {
    /// Stops the sweep. After the first call, no further units start, and the running units finish.
    /// The second call also ends the running units.
    pub fn interrupt(&self) {
        if self.stop.swap(true, Ordering::SeqCst) {
            self.abort();
        }
    }

    /// Stops the sweep: no further units start, and the running units end.
    pub fn abort(&self) {
        self.stop.store(true, Ordering::SeqCst);
        self.abort.store(true, Ordering::SeqCst);
        locked(&self.controls).iter().for_each(|control| control.abort());
    }

    /// Registers a running unit. The unit counts as running until the result is dropped.
    fn begin(&self, threads: usize) -> Begun<'_> {
        let control = Arc::new(Control::new(threads));
        locked(&self.controls).push(Arc::clone(&control));
        // The sweep may have been aborted just before.
        if self.abort.load(Ordering::SeqCst) {
            control.abort();
        }
        Begun { all: self, control }
    }
}

struct Begun<'a> {
    all: &'a Sweeping,
    control: Arc<Control>,
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        locked(&self.all.controls).retain(|control| !Arc::ptr_eq(control, &self.control));
    }
}

/// Result of a unit, from the thread that ran it.
enum UnitResult {
    Done,
    Failed(String),
    Ended,
    Halt(SweepError),
}

/// Runs the units that are not in the dataset yet, `jobs` at the same time. Writes the files of
/// each unit when the unit ends.
///
/// # Errors
/// The dataset cannot be read or written, or `observe` fails. A failed unit is not an error: it is
/// listed in the outcome and in the dataset.
pub fn run(
    units: &Units,
    directory: &Directory,
    jobs: usize,
    sweeping: &Sweeping,
    mut observe: impl FnMut(Event<'_>, usize, usize) -> Result<(), SweepError>,
) -> Result<Outcome, SweepError> {
    let done = directory.done()?;
    let wanted: Vec<&Unit> = units.units.iter().filter(|unit| !done.contains(unit.id())).collect();
    let before = units.units.len() - wanted.len();
    let failed = units.refused.clone();
    let mut outcome = Outcome { before, others: done.len() - before, failed, ..Outcome::default() };
    let total = wanted.len();
    let workers = jobs.clamp(1, total.max(1));
    let threads = (jobs / workers).max(1);
    let next = AtomicUsize::new(0);
    let workloads = Workloads::new(workers + 1);
    let halted = thread::scope(|scope| {
        let (send, result) = mpsc::sync_channel(workers);
        for _ in 0..workers {
            let (send, next, wanted, workloads) = (send.clone(), &next, &wanted, &workloads);
            scope.spawn(move || {
                while !sweeping.stop.load(Ordering::SeqCst) {
                    let Some(&unit) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let begun = sweeping.begin(threads);
                    if send.send((unit, carry_out(unit, workloads, &begun.control, directory))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut halted = None;
        for (unit, result) in result {
            let observed = match result {
                UnitResult::Done => {
                    outcome.finished += 1;
                    observe(Event::Done(unit), outcome.finished, total)
                }
                UnitResult::Failed(problem) => {
                    let (workload, device) = (unit.workload().to_owned(), Some(unit.device().to_owned()));
                    let failed = Failed { workload, device, id: Some(unit.id().to_owned()), problem };
                    let observed = observe(Event::Failed(&failed), outcome.finished, total);
                    outcome.failed.push(failed);
                    observed
                }
                UnitResult::Ended => Ok(()),
                UnitResult::Halt(error) => Err(error),
            };
            if let Err(error) = observed {
                halted.get_or_insert(error);
                (0..2).for_each(|_| sweeping.interrupt());
            }
        }
        halted
    });
    outcome.failed.sort();
    outcome.interrupted = sweeping.stop.load(Ordering::SeqCst);
    if let Some(error) = halted {
        return Err(error);
    }
    directory.write(FAILED, listed(&outcome.failed)?.as_bytes())?;
    Ok(outcome)
}

fn carry_out(unit: &Unit, workloads: &Workloads, control: &Control, directory: &Directory) -> UnitResult {
    let workload = match workloads.get(unit, || unit.open(None).map_err(|error| error.to_string())) {
        Ok(workload) => workload,
        Err(problem) => return UnitResult::Failed(problem),
    };
    match unit.make(workload, control) {
        Ok(Some(results)) => directory.put(unit, &results).map_or_else(UnitResult::Halt, |()| UnitResult::Done),
        Ok(None) => UnitResult::Ended,
        Err(error) => UnitResult::Failed(error.to_string()),
    }
}

/// Returns the list of failed units for the dataset.
///
/// # Errors
/// Never.
fn listed(failed: &[Failed]) -> Result<String, SweepError> {
    let problem =
        |error: serde_json::Error| SweepError::Dataset { file: FAILED.to_owned(), problem: error.to_string() };
    serde_json::to_string_pretty(failed).map(|text| text + "\n").map_err(problem)
}
