//! Columns of metrics.

use iosched_lab::Figure;

use super::grid::{Column, Tone, left};

/// Returns the row heads of metrics and their labels, such as "sync p99        ms".
pub(super) fn heads<'f>(figures: impl Iterator<Item = (Figure, &'f str)> + Clone) -> Vec<String> {
    let names = figures.clone().map(|(_, label)| label.chars().count()).max().unwrap_or(0);
    let units = figures.clone().map(|(figure, _)| figure.unit().len()).max().unwrap_or(0);
    figures.map(|(figure, label)| format!("{}   {:>units$}", left(label, names), figure.unit())).collect()
}

/// Returns a column of numbers that are aligned at the decimal point.
pub(super) fn figures_column<'c>(
    head: String,
    note: Option<String>,
    cells: impl Iterator<Item = Option<&'c (String, Option<String>)>> + Clone,
) -> Column {
    let before = |text: &str| text.find('.').unwrap_or(text.len());
    let widest = cells.clone().flatten().map(|(mean, _)| before(mean)).max().unwrap_or(0);
    let after = cells.clone().flatten().map(|(mean, _)| mean.len() - before(mean)).max().unwrap_or(0);
    let show = |cell: Option<&(String, Option<String>)>| match cell {
        None => " ".repeat(widest.saturating_sub(1)) + "-",
        Some((mean, sd)) => {
            let mean = format!("{}{mean}", " ".repeat(widest - before(mean)));
            match sd {
                Some(sd) => format!("{mean:0$} ± {sd}", widest + after),
                None => mean,
            }
        }
    };
    Column { head, note, cells: cells.map(|cell| (show(cell), Tone::Plain)).collect() }
}
