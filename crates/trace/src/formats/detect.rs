//! Detection of a file's format by its contents. If no format fits, this module returns the reason
//! for each format.

use std::borrow::Cow;

use iosched::SECTOR_BYTES;

use super::bare::BareTimes;
use super::lines::{BYTES_EXPECTED, LINES_MAX, is_passed_over};
use super::{
    alibaba, blkparse, blkreplay, cause, csv, event_text, fio, fio_log, fiu, mqsim, msr, spc, tencent, tracepoints,
    vscsi,
};
use crate::blktrace;
use crate::error::{Misfit, TraceError};
use crate::format::Format;
use crate::input::{HEAD_BYTES, Input, excerpt};
use crate::names::Names;
use crate::text::{Line, LineFormat, comma_fields, number};
use crate::unit::TimeUnit;

/// Minimum percentage of the examined lines that must be in the format. Other lines may be damaged;
/// the reader counts the lines that it skips.
const FIT_PERCENT_MIN: u64 = 50;
/// Number of bytes in which detection looks for bytes that do not occur in text.
const TEXT_HEAD_BYTES: usize = 512;

/// Returns the format of the files of one trace.
pub(crate) fn detect(inputs: &mut [Input], time_unit: Option<TimeUnit>) -> Result<Format, TraceError> {
    let Some(first) = inputs.first() else { return Err(TraceError::NoFile) };
    let first_name = first.name().to_owned();
    let mut all_empty = true;
    let mut formats = Vec::new();
    for input in inputs.iter_mut() {
        let name = input.name().to_owned();
        let head = input.peek(HEAD_BYTES);
        all_empty &= head.is_empty();
        formats.push(of_content(head, &name, time_unit)?.or_else(|| binary_by_name(&name)));
    }
    if all_empty {
        // A file whose first bytes cannot be read is damaged, not empty.
        return match inputs.iter_mut().find_map(Input::failure_at_start) {
            Some(error) => Err(error),
            None => Err(TraceError::Empty { file: first_name }),
        };
    }
    if let [one] = formats[..] {
        return one.ok_or_else(|| unknown(&mut inputs[0]));
    }
    // Among files of a block trace, a file of unknown format is a file with a damaged start.
    let wrong = formats.iter().position(|format| format.is_some_and(|format| format != Format::Blktrace));
    match wrong {
        Some(at) => {
            let format = formats[at].unwrap_or(Format::Blktrace);
            Err(TraceError::SeveralFiles { file: inputs[at].name().to_owned(), format })
        }
        None if formats.iter().all(Option::is_none) => Err(unknown(&mut inputs[0])),
        None => Ok(Format::Blktrace),
    }
}

/// Returns the format of a binary file by its name. A block trace with a damaged start can still be
/// read from the next record on. Without the name, the reader would treat the file as text.
fn binary_by_name(name: &str) -> Option<Format> {
    let file_name = std::path::Path::new(name).file_name()?.to_str()?;
    Format::of_file_name(file_name).filter(|format| *format == Format::Blktrace)
}

fn of_content(head: &[u8], name: &str, time_unit: Option<TimeUnit>) -> Result<Option<Format>, TraceError> {
    if let Some(fault) = blktrace::binary::order_fault(head) {
        let looks_like = Cow::Borrowed(fault);
        return Err(TraceError::UnknownFormat { file: name.to_owned(), looks_like, misfits: Vec::new() });
    }
    if let Some(version) = blktrace::binary::sniff(head) {
        // If the file also has records of version 7, the record of another version is damaged.
        let is_ours = || head.windows(4).any(|word| blktrace::binary::sniff(word) == Some(blktrace::VERSION));
        if version != blktrace::VERSION && !is_ours() {
            return Err(TraceError::UnsupportedVersion { file: name.to_owned(), version });
        }
        return Ok(Some(Format::Blktrace));
    }
    if vscsi::sniff(head).is_some() {
        return Ok(Some(Format::Vscsi));
    }
    if head.iter().take(TEXT_HEAD_BYTES).any(|&b| b == 0) {
        return Ok(None);
    }
    let lines = whole_lines(head);
    if let Some(refusal) = fio_log::refusal(lines, name) {
        let looks_like = Cow::Borrowed(refusal);
        return Err(TraceError::UnknownFormat { file: name.to_owned(), looks_like, misfits: Vec::new() });
    }
    Ok(of_lines(lines, time_unit))
}

/// Returns the first text format that these lines fit.
pub(super) fn of_lines(lines: &[u8], time_unit: Option<TimeUnit>) -> Option<Format> {
    TEXT_FORMATS.into_iter().find(|&format| misfit(format, lines, time_unit).is_none())
}

/// Text formats, the most specific first.
const TEXT_FORMATS: [Format; 12] = [
    Format::FioV2,
    Format::FioV3,
    Format::Csv,
    Format::Msr,
    Format::Alibaba,
    Format::Tencent,
    Format::Spc,
    Format::Fiu,
    Format::Blkreplay,
    Format::Blkparse,
    Format::Tracepoints,
    Format::Mqsim,
];

fn whole_lines(head: &[u8]) -> &[u8] {
    head.iter().rposition(|&b| b == b'\n').map_or(head, |end| &head[..end])
}

/// Returns the reason why lines are not of a text format, or `None` if they are.
fn misfit(format: Format, lines: &[u8], time_unit: Option<TimeUnit>) -> Option<Misfit> {
    let times = BareTimes::of(format, time_unit);
    match format {
        Format::FioV2 => headed(format, lines, fio::sniff(lines) == Some(fio::Version::Two), "fio version 2 iolog"),
        Format::FioV3 => headed(format, lines, fio::sniff(lines) == Some(fio::Version::Three), "fio version 3 iolog"),
        Format::Csv => headed(format, lines, csv::sniff(lines), csv::Csv::EXPECTED),
        Format::Msr => unlike(format, lines, msr::Msr),
        Format::Alibaba => unlike(format, lines, alibaba::Alibaba(times)).or_else(|| short_lengths(format, lines, 3)),
        Format::Tencent => unlike(format, lines, tencent::Tencent(times)),
        Format::Spc => unlike(format, lines, spc::Spc).or_else(|| short_lengths(format, lines, 2)),
        Format::Fiu => unlike(format, lines, fiu::Fiu(times)),
        Format::Blkreplay => unlike(format, lines, blkreplay::Blkreplay::new()),
        Format::Blkparse => unlike(format, lines, event_text::Lines(blkparse::Blkparse::default())),
        // Events of other parts of the kernel may come first.
        Format::Tracepoints => unlike_of(format, lines, usize::MAX, tracepoints::Lines),
        Format::Mqsim => unlike(format, lines, mqsim::Mqsim(times)),
        Format::Blktrace | Format::Vscsi => None,
    }
}

/// Returns a reason against the format if all lengths in this column, taken as bytes, are shorter
/// than a sector. The lengths then have another unit, and other columns may also have other
/// meanings.
fn short_lengths(format: Format, lines: &[u8], column: usize) -> Option<Misfit> {
    let lengths = lines.split(|&b| b == b'\n').take(LINES_MAX).filter_map(|line| {
        let length = number(comma_fields(line).nth(column)?)?;
        (length > 0).then_some((line, length))
    });
    let mut count = 0;
    let (first, _) = lengths.clone().next()?;
    let are_short = lengths.inspect(|_| count += 1).all(|(_, length)| length < SECTOR_BYTES);
    let found = excerpt(first);
    (are_short && count > 1).then_some(Misfit { format, line: None, found, expected: BYTES_EXPECTED, records: 0 })
}

/// Returns the misfit with a format that is recognised by its first line, or `None` if `fits` is
/// true.
fn headed(format: Format, lines: &[u8], fits: bool, expected: &'static str) -> Option<Misfit> {
    let (number, line) = first_line(lines)?;
    (!fits).then(|| Misfit { format, line: Some(number), found: excerpt(line), expected, records: 0 })
}

fn first_line(lines: &[u8]) -> Option<(u64, &[u8])> {
    let mut numbered = (1..).zip(lines.split(|&b| b == b'\n'));
    numbered.find(|(_, line)| !is_passed_over(line)).or(Some((1, &[])))
}

/// Returns the misfit with a format that is recognised by the shape of its lines. The first line
/// must be a record, or a line that the format allows above its records. Any other first line means
/// that the columns are different.
pub(super) fn unlike<F: LineFormat>(format: Format, lines: &[u8], shape: F) -> Option<Misfit> {
    unlike_of(format, lines, LINES_MAX, shape)
}

/// Returns the misfit as [`unlike`] does, but examines `lines_max` lines.
fn unlike_of<F: LineFormat>(format: Format, lines: &[u8], lines_max: usize, mut shape: F) -> Option<Misfit> {
    let mut names = Names::default();
    let (mut records, mut bad, mut first, mut first_bad) = (0u64, 0u64, None, None);
    let numbered = (1..).zip(lines.split(|&b| b == b'\n').take(lines_max));
    for (number, line) in numbered {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if is_passed_over(line) {
            continue;
        }
        first.get_or_insert((number, line));
        match shape.parse(line, &mut names) {
            Line::Request(_) => records += 1,
            Line::Other => {}
            Line::Bad => {
                bad += 1;
                first_bad.get_or_insert((number, line));
            }
        }
    }
    let first_is_bad = first_bad.is_some() && first == first_bad;
    if records > 0 && !first_is_bad && records * 100 >= (records + bad) * FIT_PERCENT_MIN {
        return None;
    }
    let (number, line) = first_bad.or(first).unwrap_or((1, &[]));
    Some(Misfit { format, line: Some(number), found: excerpt(line), expected: F::EXPECTED, records })
}

/// Returns the error that a file is in no known format, with the most likely
/// cause and the formats that were tried.
fn unknown(input: &mut Input) -> TraceError {
    let file = input.name().to_owned();
    let head = input.peek(HEAD_BYTES);
    let lines = whole_lines(head);
    let is_text = !head.iter().take(TEXT_HEAD_BYTES).any(|&b| b == 0);
    let binary = |format: Format, expected| Misfit { format, line: None, found: String::new(), expected, records: 0 };
    let mut misfits = Vec::new();
    if is_text {
        misfits.extend(TEXT_FORMATS.into_iter().filter_map(|format| misfit(format, lines, None)));
    }
    let cause = cause::of(head, is_text, &misfits);
    misfits.push(binary(Format::Blktrace, "the magic 0x65617400 of a record"));
    misfits.push(binary(Format::Vscsi, "two records of version 1 or 2"));
    TraceError::UnknownFormat { file, looks_like: cause, misfits }
}
