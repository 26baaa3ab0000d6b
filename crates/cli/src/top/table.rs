//! A table of one interval, whatever it is about.

use std::cmp::Ordering;
use std::fmt::Write as _;

use serde_json::{Map, Value};

/// A column.
pub(super) struct Column {
    /// Above it.
    pub(super) head: &'static str,
    /// Its name in JSON, with its unit.
    pub(super) name: &'static str,
    /// In characters; all columns and the spaces between them fit 80.
    pub(super) width: usize,
    /// What it has.
    pub(super) kind: Kind,
}

/// What a column has.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// Words.
    Text,
    /// Numbers, with so many decimals if there is room for them.
    Number(usize),
    /// Percentages that are remarkable from the first one on, and alarming from the second.
    Percent(f64, f64),
}

/// What a row has in a column.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Cell {
    /// Words.
    Text(String),
    /// A number.
    Number(f64),
    /// Nothing was measured.
    Nothing,
}

/// A row.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Row {
    /// What stands for it in every table.
    pub(super) id: String,
    /// A cell for each column.
    pub(super) cells: Vec<Cell>,
    /// What else is known of it, line by line.
    pub(super) details: Vec<String>,
}

/// A table of one interval.
pub(super) struct Sample {
    /// What it is about: the first words in bold, as it were.
    pub(super) title: String,
    /// Its columns.
    pub(super) columns: &'static [Column],
    /// The column that it is sorted by if nothing is said.
    pub(super) sorted_by: usize,
    /// Its rows.
    pub(super) rows: Vec<Row>,
    /// What is said below it.
    pub(super) note: Option<String>,
    /// What can be set of a row: attributes, by the key that asks for it.
    #[cfg_attr(not(feature = "screen"), expect(dead_code, reason = "it is keys that set something"))]
    pub(super) settable: &'static [(char, &'static str)],
}

impl Sample {
    /// Whether a column is best sorted from the largest down.
    pub(super) fn is_descending(&self, column: usize) -> bool {
        self.columns.get(column).is_some_and(|column| column.kind != Kind::Text)
    }

    /// Sorts rows by a column; rows that are alike there by their names.
    pub(super) fn sort(&mut self, column: usize, descending: bool) {
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

    /// The heads of the columns in a line.
    pub(super) fn heads(&self) -> String {
        self.line(self.columns.iter().map(|column| column.head.to_owned()))
    }

    /// A row in a line.
    pub(super) fn row(&self, row: &Row) -> String {
        self.line(row.cells.iter().zip(self.columns).map(|(cell, column)| cell.text(column)))
    }

    fn line(&self, cells: impl Iterator<Item = String>) -> String {
        let cells = cells.zip(self.columns).map(|(cell, Column { width, kind, .. })| match kind {
            Kind::Text => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }

    /// As text that follows the one before it.
    pub(super) fn text(&self) -> String {
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

    /// As one JSON document in a line.
    pub(super) fn json(&self) -> Value {
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
    pub(super) fn number(value: Option<f64>) -> Self {
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
            // A count is one, and more decimals would be the noise of a clock.
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 1e15 => (*number as i64).into(),
            Self::Number(number) => ((number * 1e3).round() / 1e3).into(),
            Self::Nothing => Value::Null,
        }
    }
}

/// A number in so many characters: with fewer decimals, or in thousands, if it is large.
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
    fn numbers_have_as_many_decimals_as_there_is_room_for() {
        for (number, said) in
            [(0.04, "0.04"), (12.345, "12.35"), (1234.5, "1234.5"), (123_456.0, "123456"), (7_654_321.0, "7654k")]
        {
            assert_eq!(fitted(number, 6, 2), said);
        }
    }
}
