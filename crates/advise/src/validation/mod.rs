//! The battery: validation of a profile with workloads that its
//! calibration did not use, with each scheduler of the device.
//!
//! [`trials`] are twelve workloads. The device runs each of them several times with each scheduler.
//! [`Measured`] contains the results of the watched jobs. [`Battery::of`] simulates the same
//! workloads on the profile. It compares rates, 99th percentiles and the order of schedulers, and
//! computes the trust in the profile. [`Battery::trusted`] stores this result in the profile.

mod error;
mod judge;
mod measure;
mod records;
mod request;
mod workloads;

pub use error::ValidationError;
pub use judge::{Battery, Cell, Judged, OrderCount, RATE_WITHIN, TAIL_WITHIN, simulate};
pub use measure::Progress;
pub use records::{FORMAT, Header, Measured, Outcome, Run, write_header, write_load, write_run};
pub use request::ValidationRequest;
pub use workloads::{Span, TRIALS, Trial, trials};
