//! Tests that compare the models with measurements of disks and with required properties.

mod anchors;
mod array;
mod common;
mod disksim;
mod empirical;
mod hdd;
mod io_cost;
mod properties;
mod recorded;
mod server;
mod ssd;
mod streams;
