//! What a script is told of a plot, so that it can be drawn again: zoomed, with values where the pointer is, without
//! settings that are switched off.
//!
//! It stands beside the picture as JSON, in the page's own words: `script/charts.js` reads it. Values have four
//! digits: more than a plot shows.

use iosched_lab::Direction;
use serde::{Serialize, Serializer};

use super::view::Setting;

/// What values of an axis are, and so how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    /// Times in ns.
    Time,
    /// Per cent of I/Os, placed by the number of nines of their share.
    Nines,
    /// Bytes: positions.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Sizes in bytes, placed by their binary logarithm.
    Size,
    /// Numbers that are placed by their binary logarithm.
    Power,
    /// Shares, 0 to 1.
    Share,
    /// Numbers without a unit, or with that of the axis.
    Number,
}

/// An axis.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) quantity: Quantity,
    /// What is shown when nothing is zoomed.
    pub(crate) from: Value,
    pub(crate) to: Value,
    /// Whether equal factors are equal steps.
    pub(crate) log: bool,
    /// The unit of a plain number.
    pub(crate) unit: String,
    /// What stands beside it; empty if the plot's title says it.
    pub(crate) name: String,
    /// The values that are marked; empty: round ones.
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

/// A number to four digits; nothing if it is not finite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value(pub(crate) f64);

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.0.is_finite() {
            return serializer.serialize_none();
        }
        let digits = if self.0 == 0.0 { 0 } else { self.0.abs().log10().floor() as i32 };
        // A power of ten that is exact on either side of 1.
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

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Draw {
    /// A line from place to place.
    Line,
    /// Steps, the area below them filled.
    Area,
    /// Likewise, darker.
    Solid,
    /// A dot at each place.
    Dots,
}

/// Values of one setting.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    /// What is said before its values.
    pub(crate) name: String,
    /// Its setting's number: its colour, and what switches it off.
    pub(crate) setting: usize,
    pub(crate) draw: Draw,
    /// Whether its lines are dashed.
    pub(crate) dashed: bool,
    /// A value for each place.
    pub(crate) y: Vec<Value>,
    /// Where a line from each dot ends: an interval. Empty: there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) to: Vec<Value>,
    /// The lowest and the highest run at each place, or as far as runs scatter; of dots a line from one to the other.
    /// Empty: they are not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) low: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) high: Vec<Value>,
    /// A line across.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mean: Option<Value>,
    /// Whether its dots are only outlines.
    pub(crate) hollow: bool,
    /// Whether its name stands beside its dots.
    pub(crate) named: bool,
}

impl Series {
    pub(crate) fn of(setting: &Setting<'_>, name: &str, draw: Draw, y: impl IntoIterator<Item = f64>) -> Self {
        Self { dashed: setting.class.ends_with("dashed"), ..Self::plain(setting.number, name, draw, y) }
    }

    /// Of no setting, in the colour of that number.
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

/// What is shared out in columns, one part upon the other.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stack {
    pub(crate) setting: usize,
    /// Width of a column, in units of the axis.
    pub(crate) width: Value,
    /// From the bottom up.
    pub(crate) parts: Vec<Part>,
}

/// One of those who share.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    /// The class that its shape has in the picture: it is filled alike.
    pub(crate) class: String,
    /// Its share of each place.
    pub(crate) y: Vec<Value>,
}

/// Counts in columns and rows.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Heat {
    pub(crate) setting: usize,
    /// Width of a column, in units of the axis; the first begins at 0.
    pub(crate) width: Value,
    /// Bounds of rows: one more than there are rows, rising.
    pub(crate) rows: Vec<Value>,
    /// Of each column, row and count of what is not empty, one after the other.
    pub(crate) columns: Vec<Vec<u64>>,
    /// The highest count in this picture and its neighbours.
    pub(crate) most: u64,
}

/// See the module page.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// Places across that series have values for.
    pub(crate) at: Vec<Value>,
    pub(crate) series: Vec<Series>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heat: Option<Heat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stack: Option<Stack>,
    /// Which side is good.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) good: &'static str,
    /// Plots of one group are zoomed together.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
}

impl Chart {
    /// Series over places, by themselves.
    pub(crate) fn plain((x, y): (Axis, Axis), at: impl IntoIterator<Item = f64>, series: Vec<Series>) -> Self {
        let at = at.into_iter().map(Value).collect();
        Self { x, y, at, series, heat: None, stack: None, good: "", group: String::new() }
    }

    /// As JSON that may stand in a page.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default().replace('<', "\\u003c")
    }
}

/// Which side is good, to be read beside an axis; nothing if neither is.
pub(crate) const fn good(direction: Direction) -> &'static str {
    match direction {
        Direction::Lower => "↓ lower is better",
        Direction::Higher => "↑ higher is better",
        Direction::Neither => "",
    }
}

/// The arrow alone, to stand behind a name.
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
    fn values_have_four_digits_and_no_more_than_they_need() {
        let values = [0.0, 1.0, 123_456.0, 0.000_123_456, 2.5, -98_765.4, f64::NAN, f64::INFINITY].map(Value);
        assert_eq!(serde_json::to_string(&values).unwrap(), "[0,1,123500,0.0001235,2.5,-98770,null,null]");
    }

    #[test]
    fn json_cannot_end_the_element_it_stands_in() {
        let axis = Axis::linear(Quantity::Number, (0.0, 1.0));
        let setting = Setting { number: 0, label: "", short: String::new(), class: String::new() };
        let series = Series::of(&setting, "</script><b>", Draw::Line, []);
        let chart = Chart::plain((axis.clone(), axis), [], vec![series]);
        assert!(!chart.json().contains('<'));
    }
}
