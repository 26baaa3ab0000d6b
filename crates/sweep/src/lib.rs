//! Many comparisons, of a fleet's volumes or of a study's cases, on one machine or on many.
//!
//! A [`Plan`] says which workloads, devices, settings and seeds are to be crossed. It is cut into [`Unit`]s: a unit is
//! one comparison of all settings for one workload on one device, and is named by what goes into it, so that it is made
//! once, wherever and in whatever order. A unit gives rows, which go into a dataset of Parquet files ([`dataset`]), and
//! a [`Summary`] says of a dataset which setting each volume should have, and what the fleet gains.
//!
//! | file | what it has |
//! |---|---|
//! | `plan.rs`, `axis.rs` | plans, and their units |
//! | `unit.rs` | a unit: how it is named, run and told |
//! | `found.rs` | workloads that a pattern names on this machine |
//! | `columns.rs` | tables as Parquet files, and back |
//! | `dataset.rs` | where files of a dataset are, and what is in them |
//! | `workloads.rs` | workloads of late, each read once |
//! | `here.rs` | all units of a plan on this machine's cores |
//! | `estimate.rs` | what a plan will take |
//! | `summary/` | what a dataset says |
//!
//! Nothing here knows of clusters: whoever runs units elsewhere hands them out as JSON and puts their files where
//! [`dataset`] says.
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
