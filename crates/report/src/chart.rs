//! Data of a plot for a script. The script draws the plot again: with zoom, with values at the
//! pointer, or without hidden settings.
//!
//! The data is next to the picture as JSON. `script/charts.js` reads it. Values have four digits,
//! which is more precise than the picture.

use iosched_lab::Direction;
use serde::{Serialize, Serializer};

use super::view::Setting;

/// Kind of the values of an axis. It decides the format of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    /// Times in ns.
    Time,
    /// Per cent of I/Os. The position is the number of nines in the share of I/Os.
    Nines,
    /// Positions in bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Sizes in bytes. The position is the binary logarithm of the size.
    Size,
    /// Numbers. The position is the binary logarithm of the number.
    Power,
    /// Shares, 0 to 1.
    Share,
    /// Numbers without a unit, or with the unit of the axis.
    Number,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) quantity: Quantity,
    /// Range without zoom.
    pub(crate) from: Value,
    pub(crate) to: Value,
    /// Whether the axis is logarithmic.
    pub(crate) log: bool,
    /// Unit of a plain number.
    pub(crate) unit: String,
    /// Text beside the axis. Empty if the title of the plot has this text.
    pub(crate) name: String,
    /// Values of the marks. Empty if the script chooses round values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) marks: Vec<Value>,
}

impl Axis {
    pub(crate) fn linear(quantity: Quantity, (from, to): (f64, f64)) -> Self {
        let (from, to, unit, name) = (Value(from), Value(to), String::new(), String::new());
        Self { quantity, from, to, log: false, unit, name, marks: Vec::new() }
    }

    pub(crate) fn log(quantity: Quantity, ends: (f64, f64)) -> Self {
        Self { log: true, ..Self::linear(quantity, ends) }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self }
    }
}

/// A number with four digits. It is null in JSON if it is not finite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value(pub(crate) f64);

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.0.is_finite() {
            return serializer.serialize_none();
        }
        let digits = if self.0 == 0.0 { 0 } else { self.0.abs().log10().floor() as i32 };
        // The power of ten is exact for both signs of the exponent.
        let rounded = match 3 - digits {
            places @ 0.. => (self.0 * 10f64.powi(places)).round() / 10f64.powi(places),
            places => (self.0 / 10f64.powi(-places)).round() * 10f64.powi(-places),
        };
        if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
            serializer.serialize_i64(rounded as i64)
        } else {
            serializer.serialize_f64(rounded)
        }
    }
}

/// Form of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Draw {
    /// A line that joins the values.
    Line,
    /// Steps with a filled area below.
    Area,
    /// Steps with a darker filled area below.
    Solid,
    /// A dot for each value.
    Dots,
}

/// A series of values, usually of one setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    /// Name of the series, shown before its values.
    pub(crate) name: String,
    /// Number of the setting. It decides the colour, and which switch hides the series.
    pub(crate) setting: usize,
    pub(crate) draw: Draw,
    /// Whether lines are dashed.
    pub(crate) dashed: bool,
    /// A value for each position on the horizontal axis.
    pub(crate) y: Vec<Value>,
    /// Other end of the interval of each dot. Empty if there are no intervals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) to: Vec<Value>,
    /// Lower ends of the ranges at each position. `high` has the upper ends. A range is from the
    /// lowest to the highest run, or the standard deviation. For dots, a line joins both ends. Both
    /// lists are empty if no ranges are shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) low: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) high: Vec<Value>,
    /// Value of a horizontal line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mean: Option<Value>,
    /// Whether dots are outlines.
    pub(crate) hollow: bool,
    /// Whether the picture shows the name beside the dots.
    pub(crate) named: bool,
}

impl Series {
    pub(crate) fn of(setting: &Setting<'_>, name: &str, draw: Draw, y: impl IntoIterator<Item = f64>) -> Self {
        Self { dashed: setting.class.ends_with("dashed"), ..Self::plain(setting.number, name, draw, y) }
    }

    /// Creates a series that belongs to no setting, in the colour with the number `colour`.
    pub(crate) fn plain(colour: usize, name: &str, draw: Draw, y: impl IntoIterator<Item = f64>) -> Self {
        Self {
            name: name.to_owned(),
            setting: colour,
            draw,
            dashed: false,
            y: y.into_iter().map(Value).collect(),
            to: Vec::new(),
            low: Vec::new(),
            high: Vec::new(),
            mean: None,
            hollow: false,
            named: false,
        }
    }
}

/// Stacked shares in columns.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stack {
    pub(crate) setting: usize,
    /// Width of a column, in units of the axis.
    pub(crate) width: Value,
    /// Parts of a column, from bottom to top.
    pub(crate) parts: Vec<Part>,
}

/// One part of every column.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// CSS class of the part's shape in the picture, so that the script uses the same colour.
    pub(crate) class: String,
    /// Share at each position.
    pub(crate) y: Vec<Value>,
}

/// Counts in columns and rows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Heat {
    pub(crate) setting: usize,
    /// Width of a column, in units of the axis. The first column begins at 0.
    pub(crate) width: Value,
    /// Bounds of the rows in ascending order. There is one more bound than rows.
    pub(crate) rows: Vec<Value>,
    /// For each column, the cells that are not empty: row and count of each cell, alternating.
    pub(crate) columns: Vec<Vec<u64>>,
    /// Highest count in this picture and in the other pictures of the same row.
    pub(crate) most: u64,
}

/// Data of a plot. See the module documentation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Positions on the horizontal axis at which series have values.
    pub(crate) at: Vec<Value>,
    pub(crate) series: Vec<Series>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heat: Option<Heat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stack: Option<Stack>,
    /// Text about the better direction.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) good: &'static str,
    /// Group of plots that the script zooms together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
}

impl Chart {
    /// Creates a chart of series only.
    pub(crate) fn plain((x, y): (Axis, Axis), at: impl IntoIterator<Item = f64>, series: Vec<Series>) -> Self {
        let at = at.into_iter().map(Value).collect();
        Self { x, y, at, series, heat: None, stack: None, good: "", group: String::new() }
    }

    /// Returns JSON that is safe inside a page.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default().replace('<', "\\u003c")
    }
}

/// Returns a text about the better direction of an axis. Empty if neither direction is better.
pub(crate) const fn good(direction: Direction) -> &'static str {
    match direction {
        Direction::Lower => "↓ lower is better",
        Direction::Higher => "↑ higher is better",
        Direction::Neither => "",
    }
}

/// Returns only the arrow of the better direction, for use after a name.
pub(crate) const fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Lower => "\u{a0}↓",
        Direction::Higher => "\u{a0}↑",
        Direction::Neither => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_at_most_four_significant_digits() {
        let values = [0.0, 1.0, 123_456.0, 0.000_123_456, 2.5, -98_765.4, f64::NAN, f64::INFINITY].map(Value);
        assert_eq!(serde_json::to_string(&values).unwrap(), "[0,1,123500,0.0001235,2.5,-98770,null,null]");
    }

    #[test]
    fn chart_json_cannot_close_its_script_element() {
        let axis = Axis::linear(Quantity::Number, (0.0, 1.0));
        let setting = Setting { number: 0, label: "", short: String::new(), class: String::new() };
        let series = Series::of(&setting, "</script><b>", Draw::Line, []);
        let chart = Chart::plain((axis.clone(), axis), [], vec![series]);
        assert!(!chart.json().contains('<'));
    }
}
