//! Tables in text. Versions of iostat and sar have different columns in
//! different orders. The heading defines each column.

use super::{Field, RatesTool, Report, Row};

/// A parsed heading: positions of the device's name and of the other columns.
struct Heading {
    tool: RatesTool,
    /// Whether words are separated by `;`, as in the output of `sadf -d`, instead of blanks.
    semicolons: bool,
    words: usize,
    device: usize,
    columns: Vec<(usize, Field, f64)>,
}

fn words(line: &str, semicolons: bool) -> Vec<&str> {
    if semicolons { line.split(';').map(str::trim).collect() } else { line.split_whitespace().collect() }
}

impl Heading {
    /// Parses a line, if it is a heading: it names devices and their busy time.
    /// iostat translates the word for devices, which comes first; sar does not.
    fn of(line: &str) -> Option<Self> {
        let semicolons = line.starts_with("# ") && line.contains(';');
        let words = words(line, semicolons);
        let column = |(at, word): (usize, &&str)| Field::of(word).map(|(field, unit)| (at, field, unit));
        let columns: Vec<_> = words.iter().enumerate().filter_map(column).collect();
        let has = |wanted: Field| columns.iter().any(|&(_, field, _)| field == wanted);
        let (tool, device) = match words.iter().position(|word| *word == "DEV") {
            Some(device) => (RatesTool::Sar, device),
            None if Field::of(words.first()?).is_none() => (RatesTool::Iostat, 0),
            None => return None,
        };
        let has_rates = has(Field::Requests) || has(Field::Reads) && has(Field::Writes);
        let is_extended = has(Field::Busy) && has_rates;
        is_extended.then_some(Self { tool, semicolons, words: words.len(), device, columns })
    }

    /// Parses a line. Returns `None` if it is not a line of this table, or a mean of other lines.
    /// sar marks those lines with `Average:` in front, in any language and also as two words.
    fn row(&self, line: &str) -> Option<Row> {
        let words = words(line, self.semicolons);
        if words.len() != self.words || words[0].ends_with(':') && self.tool == RatesTool::Sar {
            return None;
        }
        let value = |&(at, field, unit): &(usize, Field, f64)| Some((field, value(words[at], unit)?));
        let values = self.columns.iter().map(value).collect::<Option<_>>()?;
        Some(Row { device: words[self.device].to_owned(), values })
    }
}

/// Parses a value in a column of this unit. With `-h`, percentages have a sign, and sizes a unit of
/// their own: B, k, M or G.
fn value(word: &str, unit: f64) -> Option<f64> {
    let size = |letter: char, bytes: f64| Some(number(word.strip_suffix(letter)?)? * bytes);
    let sizes = [('B', 1.0), ('k', 1_024.0), ('M', 1_048_576.0), ('G', 1_073_741_824.0)];
    let plain = number(word).or_else(|| number(word.strip_suffix('%')?)).map(|number| number * unit);
    plain.or_else(|| sizes.into_iter().find_map(|(letter, bytes)| size(letter, bytes)))
}

/// Returns a line without the marks of quoted text in front.
fn unquoted(line: &str) -> &str {
    line.trim_start_matches(['>', '\u{a0}']).strip_prefix(' ').filter(|_| line.starts_with('>')).unwrap_or(line)
}

/// Parses a number in the format of any locale.
fn number(word: &str) -> Option<f64> {
    let number: f64 = word.parse().ok().or_else(|| word.replace(',', ".").parse().ok())?;
    number.is_finite().then_some(number)
}

/// Returns whether some of the first lines are a heading.
pub(super) fn has_heading(head: &str) -> bool {
    head.lines().any(|line| Heading::of(unquoted(line)).is_some())
}

/// Returns the reports of a text, or `None` if there is none.
pub(super) fn reports(text: &str) -> Option<(RatesTool, Vec<Report>)> {
    let (mut tool, mut reports) = (None, Vec::<Report>::new());
    let mut heading: Option<Heading> = None;
    for line in text.lines().map(unquoted) {
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
