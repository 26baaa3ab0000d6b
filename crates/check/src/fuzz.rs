//! The entry of the fuzz target. Any data of at least nine bytes encodes a run.
//!
//! The first eight bytes are the seed of the configuration. The ninth byte selects the elevator.
//! Then, every eight bytes are an operation.

use crate::config::Config;
use crate::config::elevators;
use crate::operation::{Mix, Operation};
use crate::run::run_alike;
use crate::violation::Violation;

/// Largest number of operations in one run.
const OPERATIONS_MAX: usize = 4_096;

/// Returns the run that `data` encodes, or `None` if `data` is too short.
#[must_use]
pub fn decode(data: &[u8]) -> Option<(Config, Vec<Operation>)> {
    let (seed, rest) = data.split_first_chunk()?;
    let (&elevator, rest) = rest.split_first()?;
    let config = Config::from_seed(usize::from(elevator) % elevators().len(), u64::from_le_bytes(*seed));
    let (words, _) = rest.as_chunks();
    let mix = Mix::default();
    let operations = words.iter().take(OPERATIONS_MAX).map(|word| Operation::decode(u64::from_le_bytes(*word), &mix));
    Some((config, operations.collect()))
}

/// Does the run that `data` encodes. Does nothing if `data` is too short.
///
/// # Errors
/// Returns the first violation.
pub fn replay(data: &[u8]) -> Result<(), Violation> {
    match decode(data) {
        Some((config, operations)) => run_alike(&config, &operations).map(|_| ()),
        None => Ok(()),
    }
}

/// Fuzz target of operation lists.
///
/// # Panics
/// Panics at the first violation.
pub fn operations(data: &[u8]) {
    if let Err(violation) = replay(data) {
        panic!("{violation}");
    }
}
