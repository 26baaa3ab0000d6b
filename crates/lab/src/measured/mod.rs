//! Published measurements of named devices, compared with the same runs in simulation.
//!
//! A [`MeasuredCase`] is one setting of one run of a [`Source`]. [`simulate`] runs each case on a
//! model of the disk. [`Tally`] counts the simulated figures that match, and the pairs of
//! schedulers that have the same order as on the disk.

mod case;
mod host;
mod isolation;
mod latency;
mod mails;
mod run;
mod table;
mod tally;
mod target;

use std::path::Path;

use iosched_disk::io_cost::Family;

pub use case::{Figure, MeasuredCase, MeasuredDisk, Metric, Source};
pub use run::{MeasuredOptions, MeasuredResult, simulate};
pub use tally::{COVERED_PERCENT, DifferenceErrors, ORDER_PERCENT, Order, TailAgreement, Tally};
pub use target::Target;

use crate::error::LabError;

impl Source {
    /// Returns the built-in measurements.
    const fn shipped(self) -> &'static str {
        match self {
            Self::Icpe24 => include_str!("../../measured/icpe24.csv"),
            Self::Icpe24Interference => include_str!("../../measured/icpe24-interference.csv"),
            Self::KyberGrid => include_str!("../../measured/kyber-grid.csv"),
            Self::SsdLatency => Family::ALL[0].latency_table(),
            Self::IsolIocost => include_str!("../../measured/isol-iocost.csv"),
            Self::ListTables => include_str!("../../measured/list-tables.csv"),
        }
    }

    /// Returns the cases of all sources. Without a `directory`, reads the built-in measurements.
    /// Otherwise, reads the files of the directory that have the names of sources.
    ///
    /// # Errors
    /// A file cannot be read or is not valid, or the directory contains none of the files.
    pub fn cases(directory: Option<&Path>) -> Result<Vec<MeasuredCase>, LabError> {
        let Some(directory) = directory else {
            let shipped = |source: Self| table::read(source, &format!("{}.csv", source.name()), source.shipped());
            return Ok(Self::ALL.map(shipped).into_iter().collect::<Result<Vec<_>, _>>()?.concat());
        };
        let files = Self::ALL.map(|source| (source, directory.join(format!("{}.csv", source.name()))));
        let mut cases = Vec::new();
        for (source, path) in files.iter().filter(|(_, path)| path.exists()) {
            let file = path.display().to_string();
            let text = std::fs::read_to_string(path)
                .map_err(|error| LabError::Data { file: file.clone(), problem: error.to_string() })?;
            cases.extend(table::read(*source, &file, &text)?);
        }
        if cases.is_empty() {
            let names: Vec<String> = Self::ALL.iter().map(|source| format!("{}.csv", source.name())).collect();
            let problem =
                format!("the directory has no measurements; the files of measurements are named {}", names.join(", "));
            return Err(LabError::Data { file: directory.display().to_string(), problem });
        }
        Ok(cases)
    }
}
