//! DiskSim's descriptions of disks, and measurements of them.
//!
//! The simulator DiskSim included descriptions of real disks. Its authors measured these disks. A
//! description consists of geometry with zones, skews and slipped sectors (`*.model`), seek times
//! (`*.seek`), and bus, cache and overheads (`*.diskspecs`). DiskSim also included traces of the
//! disks (`*.trace`). [`Description`] creates a profile for the [`Hdd`](crate::Hdd) model from the
//! first three files. [`service_times`] reads the traces. "The DiskSim Simulation Environment,
//! Version 4.0 Reference Manual" (Bucy, Schindler, Schlosser, Ganger 2008) defines the fields.

mod error;
mod import;
mod parameters;
mod seeks;
mod services;
mod write;

pub use error::DiskSimError;
pub use import::{Description, Sources};
pub use services::{Service, service_times};
