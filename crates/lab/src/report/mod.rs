//! The report: one HTML page that says what records say, to be read on a screen or printed.
//!
//! Of several devices it begins with who wins where, and then has for each device what a page of one device has.
//!
//! Everything in it is computed from [`Records`] alone, and the same records give the same bytes. The page needs nothing
//! else: style and plots are in it, there are no scripts, and nothing is fetched. Each setting has one colour throughout;
//! every plot has a description and, where a plot alone would hide figures, a table.

mod advise;
mod calibrate;
mod context;
mod differences;
mod doubts;
mod experiments;
mod figures;
mod head;
mod latency;
mod page;
mod processes;
mod reproduce;
mod runs;
mod service;
mod several;
mod shares;
mod slices;
mod svg;
mod throughput;
mod tune;
mod turns;
mod units;
mod validation;
mod view;

pub use service::ServiceFigure;

use crate::record::Records;
use crate::reproduce::{ExperimentResults, ReproductionHeader};

/// The report of `records` as one HTML page; `file` is the name they were read from or written to, for the reader to
/// find them again.
#[must_use]
pub fn html(records: &Records, file: Option<&str>) -> String {
    let mut views: Vec<view::View<'_>> = records.devices().map(view::View::of).collect();
    match views.as_mut_slice() {
        [one] => page::page(one, file),
        all => several::page(records, all, file),
    }
    .into_string()
}

/// Reproduced experiments as one HTML page.
#[must_use]
pub fn experiments_html(header: &ReproductionHeader, results: &[ExperimentResults<'_>]) -> String {
    experiments::page(header, results).into_string()
}

/// A search for settings as one HTML page.
#[must_use]
pub fn tuning_html(results: &crate::tune::TuneResults<'_>) -> String {
    tune::page(results).into_string()
}

/// A calibration as one HTML page.
#[must_use]
pub fn calibration_html(
    measurements: &crate::calibrate::Measurements,
    calibration: &crate::calibrate::Calibration,
) -> String {
    calibrate::page(measurements, calibration).into_string()
}

/// Advice for a device as one HTML page: `records` are the runs on the device, `calibration` what its model was made of, `lasting` how
/// what is recommended is set.
#[must_use]
pub fn advice_html(
    advice: &crate::advise::Advice<'_>,
    records: &Records,
    calibration: Option<(&crate::calibrate::Measurements, &crate::calibrate::Calibration)>,
    lasting: Option<&iosched_kernel::settings::Lasting>,
) -> String {
    advise::page(advice, records, calibration, lasting).into_string()
}

/// A validation as one HTML page.
#[must_use]
pub fn validation_html(validation: &crate::validate::Validation) -> String {
    validation::document(validation).into_string()
}
