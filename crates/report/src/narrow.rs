//! Tables on narrow screens. Every cell gets a label with the heads of its column, so that the
//! style sheet can show a row as a list.
//!
//! This module finds the tables in the finished markup, which this crate has generated. It adds the
//! attribute `data-label` to cells. The attribute has the heads of the cell's column, from top to
//! bottom. The style sheet shows the attribute.

use std::fmt::Write as _;

/// Element of cells without a label, because the cell is the head of a row. Cells that span several
/// columns also have no label.
const HEAD: &str = "th";

/// A cell of a row.
struct Cell<'h> {
    name: &'h str,
    /// Position after the opening tag of the cell.
    opened: usize,
    text: String,
    columns: usize,
    rows: usize,
}

/// Returns a page with labels in its tables.
pub(crate) fn labelled(html: &str) -> String {
    let mut out = String::with_capacity(html.len() + html.len() / 8);
    let mut rest = html;
    while let Some(from) = rest.find("<table") {
        let Some(to) = rest[from..].find("</table>").map(|at| from + at) else { break };
        out.push_str(&rest[..from]);
        table(&rest[from..to], &mut out);
        rest = &rest[to..];
    }
    out.push_str(rest);
    out
}

/// Writes one table with labels.
fn table(html: &str, out: &mut String) {
    let Some(body) = html.find("<tbody") else { return out.push_str(html) };
    let labels = labels(&html[..body]);
    let mut written = 0;
    for row in rows(&html[body..]) {
        let mut column = 0;
        for cell in cells(row.1, body + row.0) {
            let label = labels.get(column).filter(|label| !label.is_empty() && cell.name != HEAD && cell.columns == 1);
            if let Some(label) = label {
                out.push_str(&html[written..cell.opened]);
                let _ = write!(out, " data-label=\"{label}\"");
                written = cell.opened;
            }
            column += cell.columns;
        }
    }
    out.push_str(&html[written..]);
}

/// Returns the heads of each column, joined from top to bottom. Special characters stay escaped.
fn labels(head: &str) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    // For each column: number of further rows in which a head with a row span occupies the column.
    let mut taken: Vec<usize> = Vec::new();
    for (from, row) in rows(head) {
        let mut column = 0;
        for cell in cells(row, from) {
            while taken.get(column).is_some_and(|&rows| rows > 0) {
                column += 1;
            }
            let end = column + cell.columns;
            labels.resize(labels.len().max(end), String::new());
            taken.resize(taken.len().max(end), 0);
            for (label, taken) in labels[column..end].iter_mut().zip(&mut taken[column..end]) {
                let gap = if label.is_empty() || cell.text.is_empty() { "" } else { " " };
                *label = format!("{label}{gap}{}", cell.text);
                *taken = cell.rows;
            }
            column = end;
        }
        taken.iter_mut().for_each(|rows| *rows = rows.saturating_sub(1));
    }
    labels
}

/// Returns the rows of a part of a table, each with its position.
fn rows(html: &str) -> impl Iterator<Item = (usize, &str)> {
    html.match_indices("<tr").map(|(from, _)| {
        let to = html[from..].find("</tr>").map_or(html.len(), |at| from + at);
        (from, &html[from..to])
    })
}

/// Returns the cells of a row that begins at `base`.
fn cells(row: &str, base: usize) -> Vec<Cell<'_>> {
    let mut found = Vec::new();
    for (from, _) in row.match_indices("<t") {
        let name = row.get(from + 1..from + 3).filter(|name| matches!(*name, "td" | "th"));
        let (Some(name), Some(end)) = (name, row[from..].find('>').map(|at| from + at)) else { continue };
        let tag = &row[from..end];
        let spans = |field: &str| {
            let value = tag.split_once(&format!("{field}=\"")).and_then(|(_, rest)| rest.split_once('"'));
            value.and_then(|(value, _)| value.parse().ok()).unwrap_or(1)
        };
        let close = format!("</{name}>");
        let to = row[end..].find(&close).map_or(row.len(), |at| end + at);
        let (columns, rows) = (spans("colspan"), spans("rowspan"));
        found.push(Cell { name, opened: base + end, text: text(&row[end + 1..to]), columns, rows });
    }
    found
}

/// Returns the visible text of some markup, on one line.
fn text(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        // A line break becomes a space. Other tags are removed.
        let (tag, after) = part.split_once('>').unwrap_or(("", part));
        text.push_str(if tag.starts_with("br") { " " } else { "" });
        text.push_str(after);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_table_cells_get_labels_from_their_column_headings() {
        let html = "<p>a</p><table class=\"x\"><thead><tr><th rowspan=\"2\">Who</th>\
            <th colspan=\"2\"><span>cfq<wbr></span></th><th rowspan=\"2\">all<br>of &amp; it</th></tr>\
            <tr><th>p50</th><th>p99</th></tr></thead><tbody><tr><th>a</th>\
            <td>1</td><td class=\"n\">2</td><td>3</td></tr><tr><td colspan=\"4\">none</td></tr></tbody></table><td>";
        let found = labelled(html);
        for cell in [
            "<td data-label=\"cfq p50\">1",
            "<td class=\"n\" data-label=\"cfq p99\">2",
            "<td data-label=\"all of &amp; it\">3",
            "<th>a</th>",
            "<td colspan=\"4\">none",
        ] {
            assert!(found.contains(cell), "{cell} in {found}");
        }
        let mut without = found;
        for label in ["cfq p50", "cfq p99", "all of &amp; it"] {
            without = without.replace(&format!(" data-label=\"{label}\""), "");
        }
        assert_eq!(without, html);
    }
}
