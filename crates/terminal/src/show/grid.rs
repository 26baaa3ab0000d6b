//! Tables that fit a terminal. Row heads are on the left. If columns do not
//! fit side by side, they continue in another block with the same row heads.
//!
//! This module does not use `comfy-table`, because it would wrap the text of cells, and numbers
//! must not be wrapped.

use console::{Style, Term};

/// Width, colours and detail of the output.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns of the terminal. `None` without a terminal.
    pub width: Option<usize>,
    /// Whether to use colours.
    pub colours: bool,
    /// Whether to show all results. Otherwise, the output has the answer and its reasons.
    pub details: bool,
}

/// Largest width of prose, even on a wider terminal.
const PROSE_WIDTH_MAX: usize = 100;
/// Width that is assumed for narrower terminals.
const WIDTH_MIN: usize = 40;
/// Gaps between columns. The second, smaller gap is used if all columns then fit.
const GAPS: [&str; 2] = ["   ", "  "];

impl Look {
    /// Returns the look of standard output. Colours are
    /// used only on a terminal, and not with NO_COLOR.
    pub fn of_standard_output() -> Self {
        let term = Term::stdout();
        let width = if term.is_term() { term.size_checked().map(|(_, columns)| columns.into()) } else { None };
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { width, colours: term.is_term() && console::colors_enabled() && !no_colour, details: false }
    }

    /// Returns this look with the given detail.
    pub fn with_details(self, details: bool) -> Self {
        Self { details, ..self }
    }

    /// Returns a look whose tables are no wider than prose if the output is not a terminal.
    pub fn no_wider_than_prose(self) -> Self {
        Self { width: self.width.or(Some(PROSE_WIDTH_MAX)), ..self }
    }

    /// Wraps text. Lines after the first begin with `indent`.
    pub fn wrap(self, text: &str, indent: &str) -> String {
        let width = self.width.unwrap_or(PROSE_WIDTH_MAX).clamp(WIDTH_MIN, PROSE_WIDTH_MAX);
        // A no-break space keeps a number and its unit on one line.
        let text = &text.replace(" %", "\u{a0}%");
        let words = text.trim_start_matches(' ');
        let mut wrapped = " ".repeat(text.len() - words.len());
        let mut used = wrapped.len();
        let mut first = true;
        for word in words.split(' ') {
            let length = word.chars().count();
            if std::mem::take(&mut first) {
                // The first word follows the leading blanks.
            } else if used + 1 + length > width {
                wrapped.push('\n');
                wrapped.push_str(indent);
                used = indent.chars().count();
            } else {
                wrapped.push(' ');
                used += 1;
            }
            wrapped.push_str(word);
            used += length;
        }
        wrapped.replace('\u{a0}', " ")
    }

    /// Returns the text with the colour of the tone, if colours are shown.
    pub fn paint(self, text: &str, tone: Tone) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            _ if !self.colours => return text.to_owned(),
            Tone::Good => Style::new().green(),
            Tone::Bad => Style::new().red(),
            Tone::Faint => Style::new().dim(),
        };
        style.force_styling(true).apply_to(text).to_string()
    }
}

/// Meaning of the colour of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// Better.
    Good,
    /// Worse.
    Bad,
    /// Less important.
    Faint,
}

/// A column with its head, which can have several lines, and its cells.
#[derive(Clone, Debug, Default)]
pub struct Column {
    /// The head. It can be broken after `:` and `,`.
    pub head: String,
    /// A separate line under the head.
    pub note: Option<String>,
    /// The cells.
    pub cells: Vec<(String, Tone)>,
}

impl Column {
    fn cells_width(&self) -> usize {
        self.cells.iter().map(|(text, _)| text.chars().count()).max().unwrap_or(0)
    }

    /// Returns the head in lines that are no wider than the cells, or than its longest part.
    fn head_lines(&self) -> Vec<String> {
        let parts: Vec<&str> = self.head.split_inclusive([':', ',']).collect();
        let widest = parts.iter().map(|part| part.chars().count()).max().unwrap_or(0);
        let width = self.cells_width().max(widest);
        let mut lines = vec![String::new()];
        for part in parts {
            match lines.last_mut() {
                Some(line) if line.chars().count() + part.chars().count() <= width => line.push_str(part),
                _ => lines.push(part.to_owned()),
            }
        }
        lines.extend(self.note.clone());
        lines
    }

    fn width(&self) -> usize {
        let head = self.head_lines().iter().map(|line| line.chars().count()).max().unwrap_or(0);
        self.cells_width().max(head)
    }
}

/// Pads a text on the right to `width` columns. Rust's own formats
/// panic on a width above 65,535, and names of jobs can be that long.
pub fn left(text: &str, width: usize) -> String {
    text.to_owned() + &blanks_beside(text, width)
}

/// Pads a text on the left to `width` columns.
pub fn right(text: &str, width: usize) -> String {
    blanks_beside(text, width) + text
}

fn blanks_beside(text: &str, width: usize) -> String {
    " ".repeat(width.saturating_sub(text.chars().count()))
}

/// Formats `columns` beside the row heads, in several blocks if the terminal is too narrow.
pub fn set(row_heads: &[String], columns: &[Column], look: Look) -> String {
    let heads_width = row_heads.iter().map(|head| head.chars().count()).max().unwrap_or(0);
    let fits = |used: usize| look.width.is_none_or(|width| used <= width);
    let table_width = |gap: &str| heads_width + columns.iter().map(|column| gap.len() + column.width()).sum::<usize>();
    let gap = GAPS.into_iter().find(|gap| fits(table_width(gap))).unwrap_or(GAPS[0]);
    let mut text = String::new();
    let mut rest = columns;
    while !rest.is_empty() {
        let mut used = heads_width;
        let fit = rest.iter().take_while(|column| {
            used += gap.len() + column.width();
            fits(used)
        });
        let (block, later) = rest.split_at(fit.count().max(1));
        if rest.len() < columns.len() {
            text.push('\n');
        }
        set_block(&mut text, row_heads, heads_width, gap, block, look);
        rest = later;
    }
    text
}

fn set_block(text: &mut String, row_heads: &[String], heads_width: usize, gap: &str, columns: &[Column], look: Look) {
    let heads: Vec<Vec<String>> = columns.iter().map(Column::head_lines).collect();
    let line = |head: &str, cells: Vec<(&str, Tone)>| {
        let mut line = left(head, heads_width);
        for ((cell, tone), column) in cells.into_iter().zip(columns) {
            line.push_str(gap);
            line.push_str(&look.paint(cell, tone));
            line.extend(std::iter::repeat_n(' ', column.width() - cell.chars().count()));
        }
        line.truncate(line.trim_end().len());
        line + "\n"
    };
    for number in 0..heads.iter().map(Vec::len).max().unwrap_or(0) {
        let head_line = |lines: &Vec<String>| lines.get(number).map_or(String::new(), Clone::clone);
        let cells: Vec<String> = heads.iter().map(head_line).collect();
        text.push_str(&line("", cells.iter().map(|cell| (cell.as_str(), Tone::Plain)).collect()));
    }
    for (row, head) in row_heads.iter().enumerate() {
        let cells = columns.iter().map(|column| column.cells.get(row).map_or(("", Tone::Plain), |(c, t)| (c, *t)));
        text.push_str(&line(head, cells.collect()));
    }
}

/// Formats a size in binary units, such as `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.into_iter().find(|(shift, _)| bytes >= 1 << shift);
    unit.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, name)| {
            let value = bytes as f64 / (1_u64 << shift) as f64;
            if value.fract() == 0.0 { format!("{value:.0} {name}") } else { format!("{value:.1} {name}") }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(head: &str, cells: &[&str]) -> Column {
        let cells = cells.iter().map(|cell| ((*cell).to_owned(), Tone::Plain)).collect();
        Column { head: head.to_owned(), note: None, cells }
    }

    #[test]
    fn long_headings_wrap_and_extra_columns_go_to_a_second_table() {
        let heads = ["one".to_owned(), "two".to_owned()];
        let columns = [column("a", &["1", "2"]), column("cfq:slice_idle=0,quantum=32", &["33333", "4"])];
        let wide = set(&heads, &columns, Look { width: None, colours: false, details: true });
        assert_eq!(
            wide,
            "      a   cfq:\n          slice_idle=0,\n          quantum=32\none   1   33333\ntwo   2   4\n"
        );
        let narrow = set(&heads, &columns, Look { width: Some(20), colours: false, details: true });
        assert_eq!(
            narrow,
            "      a\none   1\ntwo   2\n\n      cfq:\n      slice_idle=0,\n      quantum=32\none   33333\ntwo   4\n"
        );
    }

    #[test]
    fn tables_can_be_limited_to_the_width_of_prose() {
        let columns: Vec<Column> = (0..9).map(|_| column("setting", &["worse by 19 % (8.9 to 28 %)"])).collect();
        let look = Look { width: None, colours: false, details: false }.no_wider_than_prose();
        let text = set(&["finish".to_owned()], &columns, look);
        assert_eq!(text.lines().map(|line| line.chars().count()).max(), Some(96));
        assert_eq!(text.matches("worse").count(), 9);
    }

    #[test]
    fn row_heading_of_70_000_characters_is_printed() {
        let head = "j".repeat(70_000);
        let text = set(
            &[head.clone(), "short".to_owned()],
            &[column("x", &["1", "2"])],
            Look { width: Some(80), colours: false, details: true },
        );
        assert!(text.contains(&format!("\n{head}   1\nshort")), "{}", text.len());
        assert_eq!((left("a", 3), right("a", 3), left("abc", 1)), ("a  ".into(), "  a".into(), "abc".into()));
    }

    #[test]
    fn colour_codes_do_not_affect_alignment() {
        let mut good = column("x", &["better", "no"]);
        good.cells[0].1 = Tone::Good;
        let text = set(
            &["a".to_owned(), "b".to_owned()],
            &[good, column("y", &["1", "2"])],
            Look { width: None, colours: true, details: true },
        );
        assert!(text.contains("\u{1b}[32mbetter\u{1b}[0m   1\n"), "{text:?}");
        assert!(text.contains("b   no       2\n"), "{text:?}");
    }

    #[test]
    fn wrapped_prose_is_indented_and_never_splits_percentages() {
        let look = Look { width: Some(40), colours: false, details: true };
        let text = look.wrap("  - a list item that is longer than a line may be", "    ");
        assert_eq!(text, "  - a list item that is longer than a\n    line may be");
        assert_eq!(look.wrap("name      what", "  "), "name      what");
        let text = look.wrap("a number in a long line stays with its 99 %", "  ");
        assert_eq!(text, "a number in a long line stays with its\n  99 %");
    }
}
