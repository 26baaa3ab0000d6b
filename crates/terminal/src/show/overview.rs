//! The common view of several devices: the best setting of each device, and its lead.

use iosched_lab::{
    Figure, FigureOverview, Header, Margin, Outcome, Overview, figures_of, label_on, labels, marked, runs_in_words,
};

use super::columns::{figures_column, heads};
use super::grid::{Column, Look, Tone, set};
use super::{Cell, Page, Sheet, row};

/// Returns a table of the best settings.
pub(super) fn wins_where(page: &Page<'_>, overview: &Overview, look: Look) -> String {
    if overview.figures.is_empty() {
        return String::new();
    }
    format!("{}\n{}", look.wrap(&title(page.header), "  "), wins(page.header, overview, look))
}

/// Returns the metrics of one setting, with a column per device.
pub(super) fn by_device(page: &Page<'_>, look: Look) -> String {
    let figures = figures_of(page.sheets.iter().map(|sheet| &sheet.results));
    let row_of = |figure: Figure| {
        let value = |sheet: &Sheet<'_>| {
            let setting_figure = sheet.results.figure(figure)?.settings.first()?.as_ref()?;
            Some((setting_figure.mean, setting_figure.sd))
        };
        row(page.sheets.iter().map(value).collect())
    };
    let rows: Vec<Vec<Cell>> = figures.iter().map(|&figure| row_of(figure)).collect();
    let column = |(number, sheet): (usize, &Sheet<'_>)| {
        figures_column(sheet.device.name.clone(), None, rows.iter().map(move |row| row[number].as_ref()))
    };
    let columns: Vec<Column> = page.sheets.iter().enumerate().map(column).collect();
    let label = |&figure: &Figure| (figure, label_on(page.sheets.iter().map(|sheet| &sheet.results), figure));
    let labels: Vec<(Figure, String)> = figures.iter().map(label).collect();
    let heads = heads(labels.iter().map(|(figure, label)| (*figure, label.as_str())));
    format!("{}\n\n{}", page.header.settings[0].label, set(&heads, &columns, look))
}

pub(super) fn title(header: &Header) -> String {
    let baseline = marked(&header.settings[header.baseline].label);
    format!("best setting on each device, and its gain over {baseline} (over the second best, if {baseline} is best):")
}

/// Returns two rows per metric, the best setting and its lead, with a column per device.
fn wins(header: &Header, overview: &Overview, look: Look) -> String {
    let heads: Vec<String> = overview.figures.iter().flat_map(|figure| [figure.label.clone(), String::new()]).collect();
    let column = |(number, device): (usize, &iosched_lab::DeviceRecord)| Column {
        head: device.name.clone(),
        note: None,
        cells: overview.figures.iter().flat_map(|figure| cells(header, figure, number)).collect(),
    };
    let columns: Vec<Column> = header.devices.iter().enumerate().map(column).collect();
    set(&heads, &columns, look)
}

fn cells(header: &Header, figure: &FigureOverview, device: usize) -> [(String, Tone); 2] {
    match &figure.devices[device] {
        Outcome::Unknown => [("-".to_owned(), Tone::Faint), Default::default()],
        Outcome::Equal => [("all are equal".to_owned(), Tone::Faint), Default::default()],
        Outcome::Idle => [("idle".to_owned(), Tone::Faint), Default::default()],
        Outcome::CannotTell { runs_needed } => {
            let would = runs_needed.map_or_else(String::new, |runs| format!("needs {}", runs_in_words(runs)));
            [("cannot tell".to_owned(), Tone::Faint), (would, Tone::Faint)]
        }
        Outcome::NothingBetter => [("nothing is better".to_owned(), Tone::Faint), Default::default()],
        Outcome::Best { settings, margin } => {
            let best = labels(header, settings, "and");
            [(best, Tone::Plain), (ahead(header, figure, margin), Tone::Good)]
        }
    }
}

/// Formats a lead. A lead over the baseline is "better by 18 % (15 to 21 %)". A lead over another
/// setting is, for example, "18 % better than cfq (15 to 21 %)".
pub(super) fn ahead(header: &Header, figure: &FigureOverview, margin: &Margin) -> String {
    let difference = margin.comparison.describe(figure.figure.unit());
    if margin.than == header.baseline {
        return difference;
    }
    let than = &header.settings[margin.than].label;
    let (what, interval) = match difference.split_once(" (") {
        Some((what, interval)) => (what, format!(" ({interval}")),
        None => (difference.as_str(), String::new()),
    };
    // "better by 46 %" becomes "46 % better than cfq".
    match what.strip_prefix("better by ").or_else(|| what.strip_prefix("better ")) {
        Some(size) => format!("{size} better than {than}{interval}"),
        None => format!("{what} than {than}{interval}"),
    }
}
