//! The advisor: it finds a model of a device and the best
//! settings for a workload on it, and checks them on the device.
//!
//! The advisor uses runs, records and verdicts of [`iosched_lab`], and the report
//! draws its results. It answers these questions, each from records alone:
//!
//! | question | module | main types |
//! |---|---|---|
//! | Which model and which parameters fit this device? | [`calibrate`] | [`Measurer`](calibrate::Measurer), [`Measurements`](calibrate::Measurements), [`Calibration`](calibrate::Calibration) |
//! | Which parameters should io.cost have for it? | [`io_cost`] | [`IoCost`](io_cost::IoCost) |
//! | How far can that model be trusted? | [`validation`] | [`Measured`](validation::Measured), [`Battery`](validation::Battery) |
//! | Which setting is best on that model? | [`tune`](mod@tune) | [`Tuning`](tune::Tuning), [`Goal`](tune::Goal), [`TuneResults`](tune::TuneResults) |
//! | Is this setting also best on the device itself? | this page | [`candidates`], [`Confirmed`], [`Advice`] |
//! | All of these questions, one after another | this page | [`AdviceRequest`], [`AdvicePlan`], [`AdviceResults`] |
//!
//! For the last three questions, confirming runs are compared with a baseline, and the verdicts
//! decide. The baseline of a search is a setting, and its runs are simulated. The baseline of
//! advice is the present setting of the device, and its runs are real.
//!
//! The advisor changes the settings of a device only for runs, and then restores all settings. Only
//! [`AdvicePlan::apply`] changes a setting for longer. The advisor draws no charts. It recommends a
//! setting only if the setting was also better on the device.
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
