//! The report: HTML pages that present records, on a screen or printed.
//!
//! This crate presents results. [`iosched_lab`] and [`iosched_advise`] compute them.
//!
//! | page | function | computed from |
//! |---|---|---|
//! | a comparison, on one device or several | [`html`] | [`Records`] |
//! | one plot of a comparison, for a paper | [`plot_svg`] | [`Records`] |
//! | reproduced experiments | [`experiments_html`] | [`ExperimentResults`] |
//! | a search for settings | [`tuning_html`] | [`TuneResults`] |
//! | a model of a device | [`calibration_html`] | [`Measurements`], [`Calibration`] |
//! | advice: settings for a device | [`advice_html`] | [`Advice`] and its records |
//! | a model, compared with a recorded disk | [`validation_html`] | [`Validation`] |
//!
//! The sections of a comparison use one `View` of a device: its records, its results and the
//! appearance of each setting. A setting has the same colour on the whole page. Every plot has a
//! description. If the values of a plot cannot be read from its picture, the plot also has a table.
//! The page of several devices begins with the best settings of each device.
//!
//! # Inside
//!
//! | file | content |
//! |---|---|
//! | `page.rs`, `several.rs` | the page of a comparison, of one device or several, and the order of its sections |
//! | `view.rs`, `parts.rs`, `units.rs` | shared data, shared parts of pages, quantities |
//! | `figures.rs`, `processes.rs`, `waits.rs`, `narrow.rs` | tables, and tables on narrow screens |
//! | `context.rs`, `doubts.rs`, `reproduce.rs` | sections of text |
//! | `plots.rs`, `export.rs`, `pictures.rs` | the list of plots; plots as SVG, PNG and PDF |
//! | `differences.rs`, `runs.rs`, `scan.rs`, `latency.rs`, `sizes.rs`, `heat.rs` | plots of metrics and latencies |
//! | `over_time.rs`, `throughput.rs`, `shares.rs`, `head.rs`, `slices.rs`, `turns.rs`, `service.rs` | plots over time |
//! | `svg/`, `chart.rs`, `script/` | drawing; data for the script; the script that draws plots again |
//! | `tune.rs`, `advise.rs`, `calibrate/`, `experiments/`, `validation.rs` | the other pages |
//!
//! The report makes no runs, judges no results and reads no files. The same records give the same
//! bytes. A page is self-contained: it includes its style, plots and scripts, and loads nothing.
//! This crate draws every plot as SVG. Scripts draw some plots again, so that users can zoom and
//! read values. A page is also complete without scripts, and in print.
#![forbid(unsafe_code)]

mod advise;
mod calibrate;
mod chart;
mod context;
mod differences;
mod doubts;
mod experiments;
mod export;
mod figures;
mod head;
mod heat;
mod latency;
mod narrow;
mod over_time;
mod page;
mod parts;
#[cfg(feature = "pictures")]
mod pictures;
mod plots;
mod processes;
mod reproduce;
mod runs;
mod scan;
mod script;
mod service;
mod several;
mod shares;
mod sizes;
mod slices;
mod svg;
mod throughput;
mod tune;
mod turns;
mod units;
mod validation;
mod view;
mod waits;

use iosched_advise::Advice;
use iosched_advise::calibrate::{Calibration, Measurements};
use iosched_advise::tune::TuneResults;
use iosched_kernel::settings::Lasting;
use iosched_lab::Records;
use iosched_lab::reproduce::{ExperimentResults, ReproductionHeader};
use iosched_lab::validate::Validation;

#[cfg(feature = "pictures")]
pub use pictures::{pdf, png};
pub use plots::{NoPlot, plot_svg, plots};
pub use service::ServiceFigure;

/// Returns the report of `records` as one HTML page. The page shows `file` as the name of the file
/// of records.
#[must_use]
pub fn html(records: &Records, file: Option<&str>) -> String {
    let mut views: Vec<view::View<'_>> = records.devices().map(view::View::of).collect();
    match views.as_mut_slice() {
        [one] => page::page(one, file),
        all => several::page(records, all, file),
    }
    .into_string()
}

/// Returns reproduced experiments as one HTML page.
#[must_use]
pub fn experiments_html(header: &ReproductionHeader, results: &[ExperimentResults<'_>]) -> String {
    experiments::page(header, results).into_string()
}

/// Returns a search for settings as one HTML page.
#[must_use]
pub fn tuning_html(results: &TuneResults<'_>) -> String {
    tune::page(results).into_string()
}

/// Returns a calibration as one HTML page.
#[must_use]
pub fn calibration_html(measurements: &Measurements, calibration: &Calibration) -> String {
    calibrate::page(measurements, calibration).into_string()
}

/// Returns advice for a device as one HTML page.
///
/// - `records`: the runs on the device.
/// - `calibration`: the measurements and the model of the device.
/// - `lasting`: commands and files for the recommended setting.
/// - `untried`: commands and files for the best setting in simulation, if it could not be tried on
///   the device.
#[must_use]
pub fn advice_html(
    advice: &Advice<'_>,
    records: &Records,
    calibration: Option<(&Measurements, &Calibration)>,
    lasting: Option<&Lasting>,
    untried: Option<&Lasting>,
) -> String {
    advise::page(advice, records, calibration, lasting, untried).into_string()
}

/// Returns a text in the style of the report. Settings in backquotes are marked.
#[must_use]
pub fn prose(text: &str) -> maud::Markup {
    parts::prose(text)
}

/// Returns a page in the style of the report, with a body from the caller. `version` is the version
/// of iosched.
#[must_use]
pub fn document(version: &str, title: &str, body: &maud::Markup) -> String {
    parts::document(version, title, body).into_string()
}

/// Returns a validation as one HTML page.
#[must_use]
pub fn validation_html(validation: &Validation) -> String {
    validation::document(validation).into_string()
}
