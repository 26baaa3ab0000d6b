//! The advisor: which model is this device, which settings serve a workload best on it, and does the device agree.
//!
//! The middle of three rooms: its runs, records and verdicts are those of [`iosched_lab`], and its results are drawn by
//! the report. It decides four things, each from records alone:
//!
//! | question | module | main types |
//! |---|---|---|
//! | Which model and which parameters are this device? | [`calibrate`] | [`Measurer`](calibrate::Measurer), [`Measurements`](calibrate::Measurements), [`Calibration`](calibrate::Calibration) |
//! | What should io.cost be told of it? | [`io_cost`] | [`IoCost`](io_cost::IoCost) |
//! | How far can that model be trusted? | [`validation`] | [`Measured`](validation::Measured), [`Battery`](validation::Battery) |
//! | Which setting is best on that model? | [`tune`](mod@tune) | [`Tuning`](tune::Tuning), [`Goal`](tune::Goal), [`TuneResults`](tune::TuneResults) |
//! | Is it also best on the device itself? | this page | [`candidates`], [`Confirmed`], [`Advice`] |
//! | All of these, one after another | this page | [`AdviceRequest`], [`AdvicePlan`], [`AdviceResults`] |
//!
//! The judge is the same in the last three: confirming runs against a baseline, by the house's verdict. In the search
//! the baseline is a setting and runs are simulated; in advice it is what is set on the device, and runs are real ones.
//!
//! The advisor changes a device only for runs, and puts everything back, except in [`AdvicePlan::apply`]. It never
//! draws. It never recommends by the model alone a setting that was not better on the device.
#![forbid(unsafe_code)]

mod advice;
pub mod calibrate;
mod candidates;
mod confirm;
pub mod io_cost;
mod procedure;
pub mod tune;
pub mod validation;
mod words;

pub use advice::{Advice, Prediction, searchable, simulated};
pub use candidates::candidates;
pub use confirm::Confirmed;
pub use procedure::{AdviceObserver, AdvicePlan, AdviceRequest, AdviceResults, AdviceStep, AdviseError};
