//! Load of disks: rates, waits and shares since the last sample.
//!
//! A [`Source`] creates a table at each call. A table of the kernel's disks has one row per disk. A
//! table of a served disk has one row per client.

mod clients;
mod kernel;
mod table;
mod writers;

use std::path::Path;

pub use table::{Cell, Column, Kind, Row, Sample};

use self::clients::Clients;
use self::kernel::KernelDisks;
use crate::{AttributesError, Disks, SYS_BLOCK};

/// Source of the tables that `iosched top` shows.
pub trait Source {
    /// Returns the table of the time since the last sample, or since the source was created.
    ///
    /// # Errors
    /// The server of the disk has ended, or its attributes cannot be read.
    fn sample(&mut self) -> Result<Sample, AttributesError>;

    /// Sets an attribute of a row.
    ///
    /// # Errors
    /// The row does not have the attribute, or the value is wrong.
    fn set(&mut self, row: &str, attribute: &str, value: &str) -> Result<(), AttributesError>;
}

/// Opens the source of the disks at `at`, which [`Disks::open`] finds. `None` means all disks of
/// the kernel that have had I/O.
///
/// # Errors
/// The errors of [`Disks::open`]; or `at` is a directory of several served disks, or not a served
/// disk.
pub fn open(at: Option<&Path>) -> Result<Box<dyn Source>, AttributesError> {
    let disks = Disks::open(at.unwrap_or(Path::new(SYS_BLOCK)))?;
    Ok(if disks.are_the_kernels {
        Box::new(KernelDisks::of(disks, at.is_some()))
    } else {
        Box::new(Clients::of(disks, at.unwrap_or(Path::new("")))?)
    })
}
