//! Runs a list of operations, or a number of operations from a seed.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::config::Config;
use crate::coverage::Coverage;
use crate::host::Host;
use crate::operation::{Mix, Operation};
use crate::random::Random;
use crate::violation::{Checked, Property, Violation, ensure, violation};

/// Result of a run of random operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// A hash of all events without decisions.
    pub digest: u64,
    /// A hash of all decisions. 0 if they were not recorded.
    pub decisions: u64,
    /// Counts of events.
    pub coverage: Coverage,
}

impl Outcome {
    /// Checks that another run of the same operations had the same events. Compares decisions only
    /// if both runs recorded them.
    ///
    /// # Errors
    /// If the events differ.
    pub fn must_equal(&self, other: &Self) -> Checked {
        let recorded = self.decisions != 0 && other.decisions != 0;
        ensure!(
            self.digest == other.digest && (!recorded || self.decisions == other.decisions),
            Determinism,
            "{self:?}, but the second time {other:?}"
        );
        Ok(())
    }
}

/// Accuracy of the observation of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Whether decisions are recorded and audited.
    pub record: bool,
    /// Number of operations between two comparisons of the queue's counters with its contents.
    pub check_every: u32,
}

impl Watch {
    /// Makes all checks after every operation.
    pub const CLOSE: Self = Self { record: true, check_every: 1 };
    /// Makes few checks, for long runs.
    pub const FAST: Self = Self { record: false, check_every: 4096 };
}

/// Does `operations` on a new queue, then drains it.
///
/// # Errors
/// The first violation. A panic counts as a violation.
pub fn run(
    config: &Config,
    operations: impl IntoIterator<Item = Operation>,
    watch: Watch,
) -> Result<Outcome, Violation> {
    let caught = catch_unwind(AssertUnwindSafe(|| run_caught(config, operations, watch)));
    caught.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message");
        Err(violation(Property::NoPanic, text.to_owned()))
    })
}

fn run_caught(
    config: &Config,
    operations: impl IntoIterator<Item = Operation>,
    watch: Watch,
) -> Result<Outcome, Violation> {
    let mut host = Host::new(config, watch.record)?;
    let mut until_check = watch.check_every;
    for operation in operations {
        host.apply(&operation)?;
        until_check -= 1;
        if until_check == 0 {
            until_check = watch.check_every;
            host.check()?;
        }
    }
    host.apply(&Operation::Drain)?;
    let (digest, decisions) = (host.digest(), host.decisions_digest());
    Ok(Outcome { digest, decisions, coverage: *host.coverage() })
}

/// Returns `count` operations that follow from `seed`.
pub fn operations(seed: u64, mix: Mix, count: u64) -> impl Iterator<Item = Operation> {
    let mut random = Random::new(seed);
    (0..count).map(move |_| Operation::decode(random.next_word(), &mix))
}

/// Does the same operations three times: twice with recorded decisions and once without. All three
/// runs must have the same events.
///
/// # Errors
/// The first violation.
pub fn run_alike(config: &Config, operations: &[Operation]) -> Result<Outcome, Violation> {
    let closely = run(config, operations.iter().copied(), Watch::CLOSE)?;
    let again = run(config, operations.iter().copied(), Watch { check_every: u32::MAX, ..Watch::CLOSE })?;
    let unrecorded = run(config, operations.iter().copied(), Watch::FAST)?;
    closely.must_equal(&again)?;
    closely.must_equal(&unrecorded)?;
    Ok(closely)
}

/// Removes all operations that are not needed for the failure from a failing list. The result
/// violates the same property. `run` does the operations of a list.
#[must_use]
pub fn shrink(operations: &[Operation], run: impl Fn(&[Operation]) -> Result<Outcome, Violation>) -> Vec<Operation> {
    let fails = |list: &[Operation]| run(list).err().map(|violation| violation.property);
    let Some(property) = fails(operations) else { return operations.to_vec() };
    let mut list = operations.to_vec();
    let mut piece = list.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < list.len() {
            let mut without = list.clone();
            without.drain(at..(at + piece).min(list.len()));
            if fails(&without) == Some(property) {
                list = without;
                shorter = true;
            } else {
                at += piece;
            }
        }
        if !(shorter && piece == 1) {
            piece /= 2;
        }
    }
    list
}
