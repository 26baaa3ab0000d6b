//! Results that an application reports at its end.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Direction in which a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Higher is better, as for rates.
    Higher,
    /// Lower is better, as for times.
    Lower,
}

/// A metric, as the original program prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the metric in the original program: `random_write`, `file_create`, `tps`.
    pub name: String,
    /// Unit of the metric in the original program: `KB/s`, `files/s`, `s`.
    pub unit: Cow<'static, str>,
    /// Value of the metric.
    pub value: f64,
    /// Direction in which the metric is better.
    pub better: Better,
}

/// Values in a meaningful order: one for each point in time, or one for each process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Unit of the values.
    pub unit: Cow<'static, str>,
    /// The values.
    pub values: Vec<f64>,
    /// Time from one value to the next, s. `None`: there is one value for each process.
    pub step_s: Option<f64>,
}

/// Measurements that an application prints at its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Metrics in the order in which the original prints them.
    pub figures: Vec<Figure>,
    /// Series of values over time or by process.
    pub series: Vec<Series>,
}
