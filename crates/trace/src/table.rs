//! Text tables. Columns stay aligned for values of any length.

use std::fmt;

/// Minimum number of blanks between two cells.
const GAP: usize = 2;

/// Alignment of the text in a column, and the minimum width of the column, including the blanks
/// before it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left(usize),
    Right(usize),
}

/// A table. A row may have fewer cells than the table has columns.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table with these columns and no rows.
    pub(crate) fn new(columns: impl IntoIterator<Item = Align>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(|cell| cell.to_string()).collect());
    }

    fn width(&self, column: usize) -> usize {
        let longest = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let longest = longest.unwrap_or(0);
        match self.columns[column] {
            Align::Left(least) => {
                let is_beside = longest > 0 && matches!(self.columns.get(column + 1), Some(Align::Left(_)));
                least.max(longest + if is_beside { GAP } else { 0 })
            }
            Align::Right(least) => least.max(longest + if column > 0 { GAP } else { 0 }),
        }
    }
}

impl fmt::Display for Table {
    /// Writes the lines of the table, without trailing blanks and without a newline after the last
    /// line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for ((cell, align), width) in row.iter().zip(&self.columns).zip(&widths) {
                // A width in a format string is at most 65,535, but a name in a file may be longer.
                let blanks = " ".repeat(width.saturating_sub(cell.chars().count()));
                match align {
                    Align::Left(_) => line.extend([cell.as_str(), &blanks]),
                    Align::Right(_) => line.extend([&blanks, cell.as_str()]),
                }
            }
            write!(f, "{}{}", if number > 0 { "\n" } else { "" }, line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_columns_stay_separated_for_long_values() {
        let mut table = Table::new([Align::Left(8), Align::Right(8), Align::Right(8), Align::Left(0)]);
        table.row(["name", "reads", "KiB"]);
        table.row(["a", "1", "2", "  x"]);
        assert_eq!(table.to_string(), "name       reads     KiB\na              1       2  x");
        table.row(["a-long-name", "1,234,567", "383,465,471.5", "  y"]);
        let expected = [
            "name             reads            KiB",
            "a                    1              2  x",
            "a-long-name  1,234,567  383,465,471.5  y",
        ];
        assert_eq!(table.to_string(), expected.join("\n"));
    }
}
