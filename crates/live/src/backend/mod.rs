//! What a live disk keeps its data on.
//!
//! A back end takes [commands](crate::disk::Command) and tells when they are complete: at once, when the ring has a
//! completion for it, or when a time has come. It knows nothing of clients and elevators.

mod cache;
#[cfg(test)]
mod cache_tests;
mod chance;
mod contract;
mod faulty;
mod file;
mod memory;
pub(crate) mod modelled;
mod size;
mod spec;
mod written;

pub use cache::{CachePlan, Lie};
pub(crate) use contract::{Backend, Completion};
pub use contract::{BackendCard, Extent};
pub use faulty::{Fault, FaultPlan, FaultPlanError, Faulty};
pub use file::{File, OpenError};
pub use memory::Memory;
pub use modelled::Modelled;
pub use spec::{Spec, SpecError};
