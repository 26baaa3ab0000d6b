//! A table of one interval, independent of its source.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A column of the table.
pub struct Column {
    /// Head above the column.
    pub head: &'static str,
    /// Name of the column in JSON, with its unit.
    pub name: &'static str,
    /// Width in characters. All columns and their gaps together have at most 80 characters.
    pub width: usize,
    /// Kind of the cells.
    pub kind: Kind,
}

/// Kind of a column's cells.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// Text.
    Text,
    /// Numbers with this number of decimals, or fewer if the column is too narrow.
    Number(usize),
    /// Percentages. They are highlighted if they reach the first value, and marked as alarming if
    /// they reach the second value.
    Percent(f64, f64),
}

/// A cell of a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Cell {
    /// Text.
    Text(String),
    /// A number.
    Number(f64),
    /// No measurement.
    Nothing,
}

/// A row of the table.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Id of the row. It is the same in all tables of a source.
    pub id: String,
    /// The cells, one for each column.
    pub cells: Vec<Cell>,
    /// Further details, one per line.
    pub details: Vec<String>,
}

/// A table of one interval.
pub struct Sample {
    /// Title of the table.
    pub title: String,
    /// Columns of the table.
    pub columns: &'static [Column],
    /// Number of the column that sorts the rows by default.
    pub sorted_by: usize,
    /// Rows of the table.
    pub rows: Vec<Row>,
    /// Note below the table.
    pub note: Option<String>,
    /// Attributes of a row that can be set, with the keys for them.
    pub settable: &'static [(char, &'static str)],
}

impl Sample {
    /// Returns whether a column is sorted in descending order by default.
    #[must_use]
    pub fn is_descending(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|column| column.kind != Kind::Text)
    }

    /// Sorts the rows by a column. Equal rows are sorted by their names.
    pub fn sort(&mut self, column: usize, descending: bool) {
        let order = |a: &Row, b: &Row| {
            let order = match (a.cells.get(column), b.cells.get(column)) {
                (Some(Cell::Number(a)), Some(Cell::Number(b))) => a.total_cmp(b),
                (Some(Cell::Text(a)), Some(Cell::Text(b))) => a.cmp(b),
                (Some(Cell::Nothing), Some(Cell::Number(_))) => Ordering::Less,
                (Some(Cell::Number(_)), Some(Cell::Nothing)) => Ordering::Greater,
                _ => Ordering::Equal,
            };
            let order = if descending { order.reverse() } else { order };
            order.then_with(|| a.id.len().cmp(&b.id.len())).then_with(|| a.id.cmp(&b.id))
        };
        self.rows.sort_by(order);
    }

    /// Returns the heads of the columns as a line.
    #[must_use]
    pub fn heads(&self) -> String {
        self.line(self.columns.iter().map(|column| column.head.to_owned()))
    }

    /// Returns a row as a line.
    #[must_use]
    pub fn row(&self, row: &Row) -> String {
        self.line(row.cells.iter().zip(self.columns).map(|(cell, column)| cell.text(column)))
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let cells = cells.zip(self.columns).map(|(cell, Column { width, kind, .. })| match kind {
            Kind::Text => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    /// Returns the table as text, with an empty line at the end.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("{}\n{}\n", self.title, self.heads());
        for row in &self.rows {
            let _ = writeln!(text, "{}", self.row(row));
        }
        if let Some(note) = &self.note {
            let _ = writeln!(text, "{note}");
        }
        text.push('\n');
        text
    }

    /// Returns the table as one JSON document in a line.
    #[must_use]
    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let cells = row.cells.iter().zip(self.columns).map(|(cell, column)| (column.name.to_owned(), cell.json()));
            Value::Object(cells.collect())
        });
        let mut document = Map::new();
        document.insert("about".to_owned(), self.title.clone().into());
        document.insert("rows".to_owned(), rows.collect());
        if let Some(note) = &self.note {
            document.insert("note".to_owned(), note.clone().into());
        }
        Value::Object(document)
    }
}

impl Cell {
    /// Returns the cell of a number that may be missing.
    #[must_use]
    pub fn number(value: Option<f64>) -> Self {
        value.map_or(Self::Nothing, Self::Number)
    }

    fn text(&self, column: &Column) -> String {
        match (self, column.kind) {
            (Self::Text(text), _) => text.chars().take(column.width).collect(),
            (Self::Number(number), Kind::Number(decimals)) => fitted(*number, column.width, decimals),
            (Self::Number(number), _) => format!("{number:.0}"),
            (Self::Nothing, _) => "-".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => text.clone().into(),
            // Counts are integers. More than three decimals would only be noise of the clock.
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => (*number as i64).into(),
            Self::Number(number) => ((number * 1e3).round() / 1e3).into(),
            Self::Nothing => Value::Null,
        }
    }
}

/// Formats a number within `width` characters, with fewer decimals or in thousands if it is large.
fn fitted(number: f64, width: usize, decimals: usize) -> String {
    let with = |decimals: usize| format!("{number:.decimals$}");
    let fits = |text: &String| text.len() <= width;
    let scaled =
        [(1e3, "k"), (1e6, "M"), (1e9, "G")].into_iter().map(|(unit, name)| format!("{:.0}{name}", number / unit));
    let all = (0..=decimals).rev().map(with).chain(scaled);
    all.into_iter().find(fits).unwrap_or_else(|| "#".repeat(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_decimals_that_fit_the_column() {
        for (number, expected) in
            [(0.04, "0.04"), (12.345, "12.35"), (1234.5, "1234.5"), (123_456.0, "123456"), (7_654_321.0, "7654k")]
        {
            assert_eq!(fitted(number, 6, 2), expected);
        }
    }
}
