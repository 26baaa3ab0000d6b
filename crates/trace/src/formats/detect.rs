//! Which format a file is in, by its content; and where it is in none, why not.

use std::borrow::Cow;

use super::columns::decimal;
use super::{alibaba, blkparse, blkreplay, csv, event_text, fio, fiu, mqsim, msr, spc, tencent, tracepoints, vscsi};
use crate::blktrace;
use crate::error::{Misfit, TraceError};
use crate::format::Format;
use crate::input::{HEAD_BYTES, Input, excerpt};
use crate::names::Names;
use crate::text::{Line, LineFormat, Words};

/// Lines that are looked at.
const LINES_MAX: usize = 100;
/// Of these, so many must be of the format, per cent: a few can be damaged, and what is left out is counted when the
/// whole is read.
const FIT_PERCENT_MIN: usize = 50;
/// Bytes looked at for what text does not hold.
const TEXT_HEAD_BYTES: usize = 512;

/// The format of files that belong together.
pub(crate) fn detect(inputs: &mut [Input]) -> Result<Format, TraceError> {
    let Some(first) = inputs.first() else { return Err(TraceError::NoFile) };
    let first_name = first.name().to_owned();
    let mut all_empty = true;
    let mut formats = Vec::new();
    for input in inputs.iter_mut() {
        let name = input.name().to_owned();
        let head = input.peek(HEAD_BYTES);
        all_empty &= head.is_empty();
        formats.push(of_content(head, &name)?.or_else(|| binary_by_name(&name)));
    }
    if all_empty {
        // A file that cannot even be read a little is not empty but damaged.
        return match inputs.iter_mut().find_map(Input::failure_at_start) {
            Some(error) => Err(error),
            None => Err(TraceError::Empty { file: first_name }),
        };
    }
    if let [one] = formats[..] {
        return one.ok_or_else(|| unknown(&mut inputs[0]));
    }
    // One that cannot be told beside others that can is damaged at its start.
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

/// A block trace can be damaged at its start and still be read from where records follow; text cannot be taken for it.
fn binary_by_name(name: &str) -> Option<Format> {
    let file_name = std::path::Path::new(name).file_name()?.to_str()?;
    Format::of_file_name(file_name).filter(|format| *format == Format::Blktrace)
}

fn of_content(head: &[u8], name: &str) -> Result<Option<Format>, TraceError> {
    if let Some(fault) = blktrace::binary::order_fault(head) {
        let looks_like = Some(Cow::Borrowed(fault));
        return Err(TraceError::UnknownFormat { file: name.to_owned(), looks_like, misfits: Vec::new() });
    }
    if let Some(version) = blktrace::binary::sniff(head) {
        // One record of another version among ours is damage.
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
    Ok(TEXT_FORMATS.into_iter().find(|&format| misfit(format, lines).is_none()))
}

/// Formats of text, the most particular first.
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

/// Why lines are not of a format of text; `None` if they are.
fn misfit(format: Format, lines: &[u8]) -> Option<Misfit> {
    match format {
        Format::FioV2 => headed(format, lines, fio::sniff(lines) == Some(fio::Version::Two), "fio version 2 iolog"),
        Format::FioV3 => headed(format, lines, fio::sniff(lines) == Some(fio::Version::Three), "fio version 3 iolog"),
        Format::Csv => headed(format, lines, csv::sniff(lines), csv::Csv::EXPECTED),
        Format::Msr => unlike(format, lines, msr::Msr),
        Format::Alibaba => unlike(format, lines, alibaba::Alibaba),
        Format::Tencent => unlike(format, lines, tencent::Tencent),
        Format::Spc => unlike(format, lines, spc::Spc),
        Format::Fiu => unlike(format, lines, fiu::Fiu),
        Format::Blkreplay => unlike(format, lines, blkreplay::Blkreplay::new()),
        Format::Blkparse => unlike(format, lines, event_text::Lines(blkparse::Blkparse::default())),
        // Other events may come first.
        Format::Tracepoints => unlike_of(format, lines, usize::MAX, tracepoints::Lines),
        Format::Mqsim => unlike(format, lines, mqsim::Mqsim),
        Format::Blktrace | Format::Vscsi => None,
    }
}

/// Of a format that its first line tells.
fn headed(format: Format, lines: &[u8], fits: bool, expected: &'static str) -> Option<Misfit> {
    let (number, line) = first_line(lines)?;
    (!fits).then(|| Misfit { format, line: Some(number), found: excerpt(line), expected })
}

fn first_line(lines: &[u8]) -> Option<(u64, &[u8])> {
    let mut numbered = (1..).zip(lines.split(|&b| b == b'\n'));
    numbered.find(|(_, line)| !is_passed_over(line)).or(Some((1, &[])))
}

/// Blank, or a comment.
fn is_passed_over(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#")
}

/// Of a format that the shape of its lines tells. The first must be a record or what the format has above records: a
/// heading of something else says that the columns are others.
fn unlike<F: LineFormat>(format: Format, lines: &[u8], shape: F) -> Option<Misfit> {
    unlike_of(format, lines, LINES_MAX, shape)
}

/// The same, by so many lines.
fn unlike_of<F: LineFormat>(format: Format, lines: &[u8], lines_max: usize, mut shape: F) -> Option<Misfit> {
    let mut names = Names::default();
    let (mut records, mut bad, mut first, mut first_bad) = (0, 0, None, None);
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
    Some(Misfit { format, line: Some(number), found: excerpt(line), expected: F::EXPECTED })
}

/// That a file is in no format, and why.
fn unknown(input: &mut Input) -> TraceError {
    let file = input.name().to_owned();
    let head = input.peek(HEAD_BYTES);
    let lacking = csv::lacking(head).map(|problem| {
        format!("it is a table whose heading says too little: {problem}; name its columns with --columns")
    });
    let looks_like = looks_like(head).or_else(|| likely_text(head)).map(Cow::Borrowed).or(lacking.map(Cow::Owned));
    let lines = whole_lines(head);
    let is_text = !head.iter().take(TEXT_HEAD_BYTES).any(|&b| b == 0);
    let binary = |format: Format, expected| Misfit { format, line: None, found: String::new(), expected };
    let mut misfits = Vec::new();
    if is_text {
        misfits.extend(TEXT_FORMATS.into_iter().filter_map(|format| misfit(format, lines)));
    }
    misfits.push(binary(Format::Blktrace, "the magic 0x65617400 of a record"));
    misfits.push(binary(Format::Vscsi, "two records of version 1 or 2"));
    TraceError::UnknownFormat { file, looks_like, misfits }
}

/// What people give instead of a trace, and what is to be done with it.
fn looks_like(head: &[u8]) -> Option<&'static str> {
    Some(match head {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is text in UTF-16: convert it, as with iconv -f UTF-16 -t UTF-8",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "it is compressed with xz: decompress it first, as with xz -dc",
        [b'B', b'Z', b'h', ..] => "it is compressed with bzip2: decompress it first, as with bzip2 -dc",
        [0x04, 0x22, 0x4d, 0x18, ..] => "it is compressed with lz4: decompress it first, as with lz4 -dc",
        [b'P', b'K', 3, 4, ..] => "it is a zip archive: unpack it first",
        head if head.get(257..262) == Some(b"ustar") => "it is a tar archive: unpack it first",
        head if !head.is_empty() && head.iter().all(|&b| b == 0) => {
            "it is full of zero bytes: its data were lost; copy it again"
        }
        head if crate::rates::looks_like_rates(&String::from_utf8_lossy(head)) => {
            "it is a table of rates, as iostat and sar print it, and does not say what was asked: `iosched trace info` \
             reads it, and `iosched record` makes a trace"
        }
        _ => return None,
    })
}

/// The most likely kind of a text in no format, by its first lines.
fn likely_text(head: &[u8]) -> Option<&'static str> {
    let lines = || head.split(|&b| b == b'\n').map(<[u8]>::trim_ascii).filter(|line| !is_passed_over(line));
    let first: Vec<&[u8]> = Words::new(lines().next()?).take(6).collect();
    let is_action = |word: &&[u8]| {
        [&b"add"[..], b"open", b"close", b"read", b"write", b"trim", b"sync", b"datasync"].contains(word)
    };
    let is_number = |word: &&[u8]| decimal(word, 1).is_some();
    match first[..] {
        [_, action, ..] if is_action(&action) => Some(
            "the first line `fio version 2 iolog` is missing; put it above the others, or say --input-format fio-v2",
        ),
        [time, _, action, ..] if is_number(&time) && is_action(&action) => Some(
            "the first line `fio version 3 iolog` is missing; put it above the others, or say --input-format fio-v3",
        ),
        [time, device, start, length, op] if [time, device, start, length, op].iter().all(is_number) => Some(
            "it looks like a trace of DiskSim or SSDsim; name its columns and units, as in \
             --columns time_ms,device,sector,nr_sectors,op=1:read",
        ),
        [b"TIME(ms)", b"DISK", b"COMM", b"PID", ..] => Some(
            "it is the table of bpftrace's biosnoop, which prints no sectors; use biosnoop of bcc, or `iosched record`",
        ),
        _ if lines().take(LINES_MAX).any(tracepoints::is_event) => Some(
            "it holds events of the kernel as text, of perf script or trace-cmd report, but no block events at its \
             beginning; record block:block_bio_queue, block:block_rq_issue and block:block_rq_complete, or use `iosched record`",
        ),
        _ => None,
    }
}
