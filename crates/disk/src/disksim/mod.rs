//! DiskSim's descriptions of disks, and what was measured of them.
//!
//! The simulator DiskSim came with descriptions of real disks, extracted from them by measurement: geometry with
//! zones, skews and slipped sectors (`*.model`), seek times (`*.seek`), bus, cache and overheads
//! (`*.diskspecs`); and with traces of what the disks did (`*.trace`). [`Description`] makes a profile for the
//! [`Hdd`](crate::Hdd) model of the first three, [`service_times`] reads the last. The meaning of the fields is that
//! of "The DiskSim Simulation Environment, Version 4.0 Reference Manual" (Bucy, Schindler, Schlosser, Ganger 2008).

mod error;
mod import;
mod parameters;
mod seeks;
mod services;
mod write;

pub use error::DiskSimError;
pub use import::{Description, Sources};
pub use services::{Service, service_times};
