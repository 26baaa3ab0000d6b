//! The battery: a profile tried on workloads that its calibration did not see, under each of the device's schedulers.
//!
//! [`trials`] are twelve workloads. Whoever has the device runs each of them some times under each scheduler; what the
//! watched jobs did is [`Measured`]. [`Battery::of`] simulates the same on the profile, holds rates, slowest I/Os and
//! the order of schedulers beside each other, and comes to a figure of trust, which the profile then carries
//! ([`Battery::trusted`]).

mod error;
mod judge;
mod measure;
mod records;
mod workloads;

pub use error::ValidationError;
pub use judge::{Battery, Cell, Judged, OrderCount, RATE_WITHIN, TAIL_WITHIN, simulate};
pub use measure::{MODEL_SCHEDULERS, Progress, measure_device, measure_model};
pub use records::{FORMAT, Header, Measured, Outcome, Run, write_header, write_run};
pub use workloads::{Span, TRIALS, Trial, trials};
