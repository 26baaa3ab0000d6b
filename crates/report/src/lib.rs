//! The report: HTML pages that say what records say, to be read on a screen or printed.
//!
//! The upper of three rooms: what is told comes from [`iosched_lab`] and [`iosched_advise`], here it gets its look.
//!
//! | page | function | computed from |
//! |---|---|---|
//! | a comparison, on one device or several | [`html`] | [`Records`] |
//! | one plot of it, for a paper | [`plot_svg`] | [`Records`] |
//! | published experiments made again | [`experiments_html`] | [`ExperimentResults`] |
//! | a search for settings | [`tuning_html`] | [`TuneResults`] |
//! | a model of a device | [`calibration_html`] | [`Measurements`], [`Calibration`] |
//! | what to set on a device | [`advice_html`] | [`Advice`] and the records it rests on |
//! | a model against a recorded disk | [`validation_html`] | [`Validation`] |
//!
//! Sections of a comparison look at one `View` of a device: its records, its results and how each setting is shown.
//! Each setting has one colour throughout; every plot has a description and, where a plot alone would hide figures, a
//! table. Of several devices a page begins with who wins where.
//!
//! The report never runs anything, never judges and reads no file: the same records give the same bytes. A page needs
//! nothing else: style, plots and scripts are in it, and nothing is fetched. Every plot is drawn here, as SVG. Scripts
//! draw some of them again, so that they can be zoomed and read; without scripts, and printed, the page is whole.
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
pub fn tuning_html(results: &TuneResults<'_>) -> String {
    tune::page(results).into_string()
}

/// A calibration as one HTML page.
#[must_use]
pub fn calibration_html(measurements: &Measurements, calibration: &Calibration) -> String {
    calibrate::page(measurements, calibration).into_string()
}

/// Advice for a device as one HTML page: `records` are the runs on the device, `calibration` what its model was made
/// of, `lasting` how what is recommended is set, `untried` how that is set which was best in simulation and could not be
/// tried on the device.
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

/// A text of others with our looks: settings in backquotes are marked.
#[must_use]
pub fn prose(text: &str) -> maud::Markup {
    parts::prose(text)
}

/// A page of others with our looks; `version` is that of iosched.
#[must_use]
pub fn document(version: &str, title: &str, body: &maud::Markup) -> String {
    parts::document(version, title, body).into_string()
}

/// A validation as one HTML page.
#[must_use]
pub fn validation_html(validation: &Validation) -> String {
    validation::document(validation).into_string()
}
