//! Sweeps: many comparisons, such as of a fleet's volumes or a study's cases, on one or many
//! machines.
//!
//! A [`Plan`] names workloads, devices, settings and seeds, and combines each with each. The plan
//! consists of [`Unit`]s. A unit is one comparison of all settings for one workload on one device.
//! Its name is a hash of its inputs. Each unit therefore runs only once, on any machine and in any
//! order. The rows of a unit go into a dataset of Parquet files ([`dataset`]). A [`Summary`] of a
//! dataset names the best setting of each volume, and the gain of the fleet.
//!
//! | file | content |
//! |---|---|
//! | `plan.rs`, `axis.rs` | plans, and their units |
//! | `unit.rs` | a unit: its name, runs and rows |
//! | `found.rs` | search for local workloads |
//! | `columns.rs` | tables as Parquet files, and back |
//! | `dataset.rs` | layout of a dataset's files, and access to them |
//! | `workloads.rs` | cache of recent workloads |
//! | `here.rs` | execution of a plan on this machine |
//! | `estimate.rs` | estimate of a plan's resources |
//! | `summary/` | summary of a dataset |
//!
//! This crate does not depend on a cluster system. To run units elsewhere, send them as JSON, and
//! store their files at the paths that [`dataset`] defines.
#![forbid(unsafe_code)]

mod axis;
mod columns;
pub mod dataset;
mod error;
mod estimate;
mod found;
mod here;
mod plan;
mod summary;
mod unit;
mod workloads;

pub use columns::{Table, Values};
pub use error::SweepError;
pub use estimate::{Estimate, estimate};
pub use found::{Found, find};
pub use here::{Event, Outcome, Sweeping, run};
pub use plan::{Failed, Plan, Units, is_url};
pub use summary::{Choice, Gain, Gathering, Strategy, Summary, Volume};
pub use unit::{Unit, UnitTables};
pub use workloads::Workloads;
