//! Tables in text. Versions of iostat and sar have other columns in another order; what a column is, its heading says.

use super::{Field, RatesTool, Report, Row};

/// A heading that was read: where the device's name stands, and what else.
struct Heading {
    tool: RatesTool,
    words: usize,
    device: usize,
    columns: Vec<(usize, Field, f64)>,
}

impl Heading {
    /// Of a line, if it is one: it names devices and how busy they were.
    fn of(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_device = |word: &&str| matches!(*word, "Device" | "Device:" | "DEV");
        let device = words.iter().position(is_device)?;
        let tool = if words[device] == "DEV" { RatesTool::Sar } else { RatesTool::Iostat };
        let column = |(at, word): (usize, &&str)| Field::of(word).map(|(field, unit)| (at, field, unit));
        let columns: Vec<_> = words.iter().enumerate().filter_map(column).collect();
        let is_extended = columns.iter().any(|&(_, field, _)| field == Field::Busy);
        is_extended.then_some(Self { tool, words: words.len(), device, columns })
    }

    /// What a line says; `None` if it is none of this table, or a sum of others.
    fn row(&self, line: &str) -> Option<Row> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.len() != self.words || words[0].ends_with(':') && self.tool == RatesTool::Sar {
            return None;
        }
        let value = |&(at, field, unit): &(usize, Field, f64)| Some((field, number(words[at])? * unit));
        let values = self.columns.iter().map(value).collect::<Option<_>>()?;
        Some(Row { device: words[self.device].to_owned(), values })
    }
}

/// A number, in whatever way the locale writes it.
fn number(word: &str) -> Option<f64> {
    let number: f64 = word.parse().ok().or_else(|| word.replace(',', ".").parse().ok())?;
    number.is_finite().then_some(number)
}

/// Whether some of the first lines are a heading.
pub(super) fn has_heading(head: &str) -> bool {
    head.lines().any(|line| Heading::of(line).is_some())
}

/// The reports of a text; `None` if there is none.
pub(super) fn reports(text: &str) -> Option<(RatesTool, Vec<Report>)> {
    let (mut tool, mut reports) = (None, Vec::<Report>::new());
    let mut heading: Option<Heading> = None;
    for line in text.lines() {
        if let Some(new) = Heading::of(line) {
            tool = tool.or(Some(new.tool));
            heading = Some(new).filter(|new| Some(new.tool) == tool);
            reports.push(Vec::new());
        } else if line.trim().is_empty() {
            heading = None;
        } else if let (Some(heading), Some(report)) = (&heading, reports.last_mut()) {
            report.extend(heading.row(line));
        }
    }
    reports.retain(|report| !report.is_empty());
    tool.filter(|_| !reports.is_empty()).map(|tool| (tool, reports))
}
