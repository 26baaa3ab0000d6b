//! Which elevators there are.

use crate::elevator::Registered;

/// Every elevator there is, in the order `queue/scheduler` lists them.
pub static ELEVATORS: &[Registered] = &[
    crate::noop::REGISTERED,
    crate::anticipatory::REGISTERED,
    crate::deadline::REGISTERED,
    crate::cfq::REGISTERED,
    crate::cfq::REGISTERED_2_6_34,
    crate::cfq::REGISTERED_2_6_30,
    crate::cfq::linux_2_6_16::REGISTERED,
    crate::mq_deadline::REGISTERED,
    crate::kyber::REGISTERED,
    crate::none::REGISTERED,
    crate::bfq::REGISTERED,
];

/// No elevator of that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not an elevator; there are {}", elevator_names().join(", "))]
pub struct UnknownElevator {
    /// The name given.
    pub name: String,
}

/// The names in the registry.
#[must_use]
pub fn elevator_names() -> Vec<&'static str> {
    ELEVATORS.iter().map(|e| e.name).collect()
}

/// The elevator called `name`.
///
/// # Errors
/// If there is none.
pub fn elevator(name: &str) -> Result<&'static Registered, UnknownElevator> {
    ELEVATORS.iter().find(|e| e.name == name).ok_or_else(|| UnknownElevator { name: name.to_owned() })
}
