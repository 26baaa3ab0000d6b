//! What an application tells of itself when it is done.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Which way a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Rates.
    Higher,
    /// Times.
    Lower,
}

/// One figure, as the original prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is of, in the original's words: `random_write`, `file_create`, `tps`.
    pub name: String,
    /// Its unit, as the original has it: `KB/s`, `files/s`, `s`.
    pub unit: Cow<'static, str>,
    /// Its value.
    pub value: f64,
    /// Which way it is better.
    pub better: Better,
}

/// Values in an order that means something: over time, or process by process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is of.
    pub name: String,
    /// Unit of the values.
    pub unit: Cow<'static, str>,
    /// The values.
    pub values: Vec<f64>,
    /// Time from one value to the next, s; `None`: they are of one process after the other.
    pub step_s: Option<f64>,
}

/// What an application has measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its figures, in the order the original prints them.
    pub figures: Vec<Figure>,
    /// What it followed over time or process by process.
    pub series: Vec<Series>,
}
