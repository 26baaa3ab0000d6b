//! Detects files that would be in a known format after a simple change, and describes the change.
//! Pasted or exported traces often have other separators, lines above the first record, or a mark
//! in front of each line.

use super::columns::Columns;
use super::csv::Csv;
use super::detect::{of_lines, unlike};
use super::heading::HEADLESS;
use super::lines::{LINES_MAX, is_passed_over};
use crate::format::Format;
use crate::unit::TimeUnit;

/// Maximum number of lines above the first record that are skipped.
const ABOVE_MAX: usize = 20;
/// Separators that may replace each other, with their names, and the notation of `tr`.
const SEPARATORS: [(u8, &str, &str); 5] = [
    (b',', "commas", ","),
    (b';', "semicolons", ";"),
    (b'\t', "tabs", "\\t"),
    (b'|', "bars", "|"),
    (b' ', "blanks", " "),
];

/// Returns a sentence with the change after which `head` is in a known format, and the remedy.
pub(super) fn remedy(head: &[u8]) -> Option<String> {
    let lines = head.iter().rposition(|&b| b == b'\n').map_or(head, |end| &head[..end]);
    marked(lines)
        .or_else(|| odd_bytes(lines))
        .or_else(|| lines_above(lines))
        .or_else(|| other_separators(lines))
        .or_else(|| other_unit(lines))
        .or_else(|| headless(lines))
}

/// Recognises a mark in front of each line: `> ` as in quoted text, or a number as `grep -n` prints
/// it.
fn marked(lines: &[u8]) -> Option<String> {
    let quoted = |line: &[u8]| line.strip_prefix(b"> ").or_else(|| line.strip_prefix(b">")).map(<[u8]>::to_vec);
    let numbered = |line: &[u8]| {
        let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
        (digits > 0).then(|| line[digits..].strip_prefix(b":").map(<[u8]>::to_vec))?
    };
    let stripped = |strip: &dyn Fn(&[u8]) -> Option<Vec<u8>>| {
        let all = lines.split(|&b| b == b'\n').filter(|line| !line.trim_ascii().is_empty()).take(LINES_MAX).map(strip);
        Some(all.collect::<Option<Vec<_>>>()?.join(&b'\n'))
    };
    if let Some(format) = stripped(&quoted).and_then(|lines| of_lines(&lines, None)) {
        return Some(format!(
            "it looks like {format} with quotation marks (>) before each line; remove these marks with sed 's/^> \
             *//'"
        ));
    }
    let format = stripped(&numbered).and_then(|lines| of_lines(&lines, None))?;
    Some(format!("it looks like {format} with line numbers; remove the numbers with sed 's/^[0-9]*://'"))
}

/// Recognises fields in quotes, and the non-breaking blanks of web pages.
fn odd_bytes(lines: &[u8]) -> Option<String> {
    let unquoted: Vec<u8> = lines.iter().copied().filter(|&b| b != b'"').collect();
    if let Some(format) = of_lines(&unquoted, None).filter(|_| lines.contains(&b'"')) {
        return Some(format!("it looks like {format} with fields in quotes; remove the quotes with tr -d '\"'"));
    }
    let text = std::str::from_utf8(lines).ok().filter(|text| text.contains('\u{a0}'))?;
    let format = of_lines(text.replace('\u{a0}', " ").as_bytes(), None)?;
    Some(format!(
        "it looks like {format} with the blanks of a web page (no-break spaces); convert these blanks with sed \
         's/\\xc2\\xa0/ /g'"
    ))
}

/// Recognises records below a prompt or a heading.
fn lines_above(lines: &[u8]) -> Option<String> {
    let ends = lines.iter().enumerate().filter(|(_, b)| **b == b'\n').take(ABOVE_MAX);
    (2usize..).zip(ends).find_map(|(number, (end, _))| {
        let rest = &lines[end + 1..];
        let begins = rest.split(|&b| b == b'\n').next().is_some_and(|line| !is_passed_over(line));
        let enough = rest.split(|&b| b == b'\n').take(ABOVE_MAX).count() >= (number - 1).max(2);
        let format = of_lines(rest, None).filter(|_| begins && enough)?;
        let above = if number == 2 { "line 1".to_owned() } else { format!("lines 1 to {}", number - 1) };
        Some(format!(
            "from line {number} on, it looks like {format}; if this is right, remove {above}, for example with tail \
             -n +{number}"
        ))
    })
}

/// Recognises a separator that is not the separator of the format.
fn other_separators(lines: &[u8]) -> Option<String> {
    SEPARATORS.into_iter().find_map(|(byte, name, written)| {
        let others = SEPARATORS.into_iter().filter(|(other, ..)| [b',', b' '].contains(other) && *other != byte);
        others.into_iter().find_map(|(other, other_name, other_written)| {
            let replaced: Vec<u8> = lines.iter().map(|&b| if b == byte { other } else { b }).collect();
            let format = of_lines(&replaced, None).filter(|_| lines.contains(&byte))?;
            // A table may have any separator, so the separator is not the reason.
            (format != Format::Csv).then(|| {
                format!(
                    "it looks like {format} with {name} in place of {other_name}; convert it with tr '{written}' \
                     '{other_written}'"
                )
            })
        })
    })
}

/// Recognises times with decimals, or times that are too large for the unit that the format
/// assumes.
fn other_unit(lines: &[u8]) -> Option<String> {
    // Traces of DiskSim look like traces of MQSim, but DiskSim's format has another name.
    let formats = Format::ALL.into_iter().filter(|format| format.has_bare_times() && *format != Format::Mqsim);
    formats.into_iter().find_map(|format| {
        let assumed = TimeUnit::ALL.into_iter().find(|unit| unit.ns() == format.resolution_ns());
        let units = assumed.into_iter().chain(TimeUnit::ALL.into_iter().rev());
        let unit = units.into_iter().find(|unit| of_lines(lines, Some(*unit)) == Some(format))?;
        Some(format!(
            "it looks like {format}, but with times in another form; if the times are in {unit}, add --time-unit \
             {unit}"
        ))
    })
}

/// Recognises a table of a known tool without its heading.
fn headless(lines: &[u8]) -> Option<String> {
    HEADLESS.into_iter().find_map(|(tool, names)| {
        let columns = Columns::parse(names).ok()?;
        unlike(Format::Csv, lines, Csv::of(columns)).is_none().then(|| {
            format!("it looks like the table of {tool} without its heading; name the columns: --columns {names}")
        })
    })
}
