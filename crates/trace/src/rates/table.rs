//! Tables in text. Versions of iostat and sar have different columns in
//! different orders. The heading defines each column.

use std::collections::BTreeSet;

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
    /// Parses a line if it is a heading of rates. The word for devices comes first, or last with
    /// `iostat -h`. iostat translates this word; sar does not.
    fn of(line: &str) -> Option<Self> {
        let semicolons = line.starts_with("# ") && line.contains(';');
        let words = words(line, semicolons);
        let column = |(at, word): (usize, &&str)| Field::of(word).map(|(field, unit)| (at, field, unit));
        let columns: Vec<_> = words.iter().enumerate().filter_map(column).collect();
        let is_name = |word: &&str| Field::of(word).is_none() && !word.contains('/');
        let (tool, device) = match words.iter().position(|word| *word == "DEV") {
            Some(device) => (RatesTool::Sar, device),
            None if is_name(words.first()?) => (RatesTool::Iostat, 0),
            None if is_name(words.last()?) => (RatesTool::Iostat, words.len() - 1),
            None => return None,
        };
        // iostat -h prints a table for reads, a table for writes, and so on.
        let is_part = device > 0 && tool == RatesTool::Iostat && columns.len() > 1;
        let fields = columns.iter().map(|column| column.1).collect();
        (is_whole(&fields) || is_part).then_some(Self { tool, semicolons, words: words.len(), device, columns })
    }

    /// Returns the name of a device if it is alone in its line, above the values. iostat prints
    /// long names in this form. Versions 10 and 11 print all names in this form with `-h`.
    fn name_alone<'l>(&self, line: &'l str) -> Option<&'l str> {
        let words = words(line, self.semicolons);
        (self.device == 0 && words.len() == 1 && number(words[0]).is_none()).then(|| words[0])
    }

    /// Parses a line. `above` is the name in the line above, if that line contains only a name.
    /// Returns `None` if the line is not in this table or is a mean of other lines. sar begins a
    /// mean with `Average:`. sar translates this word, possibly into two words.
    fn row(&self, above: Option<&str>, line: &str) -> Option<Row> {
        let words: Vec<&str> = above.into_iter().chain(words(line, self.semicolons)).collect();
        if words.len() != self.words || words[0].ends_with(':') && self.tool == RatesTool::Sar {
            return None;
        }
        let value = |&(at, field, unit): &(usize, Field, f64)| Some((field, value(words[at], unit)?));
        let values = self.columns.iter().map(value).collect::<Option<_>>()?;
        Some(Row { device: words[self.device].to_owned(), values })
    }

    /// Returns whether the report already has these columns. If so, another report begins.
    fn repeats(&self, report: &Report) -> bool {
        report.iter().any(|row| self.columns.iter().any(|column| row.values.contains_key(&column.1)))
    }
}

/// Returns whether the columns include the busy time and the rate of requests.
fn is_whole(fields: &BTreeSet<Field>) -> bool {
    let has = |field| fields.contains(&field);
    has(Field::Busy) && (has(Field::Requests) || has(Field::Reads) && has(Field::Writes))
}

/// Parses a value of a column with this unit. With `-h`, percentages have a percent sign, and each
/// size has a separate unit: B, k, M or G.
fn value(word: &str, unit: f64) -> Option<f64> {
    let size = |letter: char, bytes: f64| Some(number(word.strip_suffix(letter)?)? * bytes);
    let sizes = [('B', 1.0), ('k', 1_024.0), ('M', 1_048_576.0), ('G', 1_073_741_824.0)];
    let plain = number(word).or_else(|| number(word.strip_suffix('%')?)).map(|number| number * unit);
    plain.or_else(|| sizes.into_iter().find_map(|(letter, bytes)| size(letter, bytes)))
}

/// Returns a line without the marks of quoted text (`>`) in front.
fn unquoted(line: &str) -> &str {
    line.trim_start_matches(['>', '\u{a0}']).strip_prefix(' ').filter(|_| line.starts_with('>')).unwrap_or(line)
}

/// Parses a number in the format of any locale. If a number has dots and commas, the last one is
/// the decimal mark.
fn number(word: &str) -> Option<f64> {
    let dot_is_last = word.rfind('.') > word.rfind(',');
    let plain = if dot_is_last { word.replace(',', "") } else { word.replace('.', "").replace(',', ".") };
    let number: f64 = word.parse().ok().or_else(|| plain.parse().ok())?;
    number.is_finite().then_some(number)
}

/// Returns whether one of the first lines is a heading, or several lines together are a heading.
pub(super) fn has_heading(head: &str) -> bool {
    let mut fields = BTreeSet::new();
    head.lines().filter_map(|line| Heading::of(unquoted(line))).any(|heading| {
        let new: BTreeSet<Field> = heading.columns.iter().map(|column| column.1).collect();
        if !fields.is_disjoint(&new) {
            fields.clear();
        }
        fields.extend(new);
        is_whole(&fields)
    })
}

/// Returns the reports of a text, or `None` if there is none.
pub(super) fn reports(text: &str) -> Option<(RatesTool, Vec<Report>)> {
    let (mut tool, mut reports) = (None, Vec::<Report>::new());
    let mut heading: Option<Heading> = None;
    let mut above = None;
    for line in text.lines().map(unquoted) {
        let name = above.take();
        if let Some(new) = Heading::of(line) {
            tool = tool.or(Some(new.tool));
            heading = Some(new).filter(|new| Some(new.tool) == tool);
            let is_next = |report: &Report| heading.as_ref().is_none_or(|heading| heading.repeats(report));
            if reports.last().is_none_or(|report| report.is_empty() || is_next(report)) {
                reports.push(Vec::new());
            }
        } else if line.trim().is_empty() {
            heading = None;
        } else if let (Some(heading), Some(report)) = (&heading, reports.last_mut()) {
            above = heading.name_alone(line);
            let Some(row) = heading.row(name, line) else { continue };
            let is_rest = |other: &&mut Row| other.device == row.device && !heading.repeats(&vec![(**other).clone()]);
            match report.iter_mut().find(is_rest) {
                Some(other) => other.values.extend(row.values),
                None => report.push(row),
            }
        }
    }
    for report in &mut reports {
        report.retain(|row| is_whole(&row.values.keys().copied().collect()));
    }
    reports.retain(|report| !report.is_empty());
    tool.filter(|_| !reports.is_empty()).map(|tool| (tool, reports))
}

/// Returns the first line below a heading that does not fit the heading, with the reason.
pub(super) fn fault(text: &str) -> Option<String> {
    let mut heading = None;
    (1..).zip(text.lines().map(unquoted)).find_map(|(number, line)| {
        if let Some(new) = Heading::of(line) {
            heading = Some(new);
            return None;
        }
        let heading = heading.as_ref().filter(|_| !line.trim().is_empty())?;
        let words = words(line, heading.semicolons);
        if words.len() != heading.words {
            return Some(format!("line {number} has {} values, but the heading has {}", words.len(), heading.words));
        }
        let wrong = heading.columns.iter().find(|(at, _, unit)| value(words[*at], *unit).is_none())?;
        Some(format!("{:?} in line {number} is not a number", words[wrong.0]))
    })
}
