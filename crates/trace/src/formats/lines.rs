//! Recognition of lines that are not records, and the limits of detection.

use crate::text::decimal;

/// Maximum number of lines that are examined.
pub(super) const LINES_MAX: usize = 100;
/// Description of correct lengths, for formats that have lengths in bytes.
pub(super) const BYTES_EXPECTED: &str = "lengths in bytes, each at least 512";

/// Returns whether a line is blank, a comment, a rule of a table, or a preamble of a tracing tool.
pub(super) fn is_passed_over(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#") || is_preamble(line) || is_rule(line)
}

/// Returns whether a program prints this line before its output: tools of perf-tools, bcc and
/// bpftrace (such as `Tracing block I/O. Ctrl-C to end.`), and spreadsheets.
pub(super) fn is_preamble(line: &[u8]) -> bool {
    line.starts_with(b"Tracing ") || line.starts_with(b"Attaching ") || is_separator_mark(line)
}

/// Returns whether this is a line between the rows of a table in Markdown or of a database:
/// `|---|---:|` or `+----+----+`.
pub(super) fn is_rule(line: &[u8]) -> bool {
    line.iter().all(|b| b"|-:+= \t\r".contains(b)) && line.windows(3).any(|part| part == b"---" || part == b"===")
}

/// Returns whether this is `sep=;`, which spreadsheets write above a table.
fn is_separator_mark(line: &[u8]) -> bool {
    line.len() == 5 && line.get(..4).is_some_and(|mark| mark.eq_ignore_ascii_case(b"sep="))
}

/// Returns whether a field is a number in which an exponent replaces digits. Spreadsheets write
/// large numbers in this form: `1.28E+17`.
pub(super) fn is_rounded(field: &[u8]) -> bool {
    let mut parts = field.splitn(2, |b| b.eq_ignore_ascii_case(&b'e'));
    let (Some(number), Some(exponent)) = (parts.next(), parts.next()) else { return false };
    let number: Vec<u8> = number.iter().map(|&b| if b == b',' { b'.' } else { b }).collect();
    let decimals = number.iter().position(|&b| b == b'.').map_or(0, |dot| number.len() - dot - 1);
    let power = exponent.strip_prefix(b"+").and_then(|digits| decimal(digits, 1));
    decimal(&number, 1).is_some() && power.is_some_and(|power| power > decimals as u64)
}
