//! Back ends: the storage of a served disk.
//!
//! A back end takes [commands](crate::disk::Command) and reports their completion. A command
//! completes immediately, when the ring has a completion for it, or at a time that the back end
//! sets. The back end knows nothing about clients or schedulers.

mod cache;
#[cfg(test)]
mod cache_tests;
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
