//! Values of options: parsed from text by the kind in the option's declaration.

use super::engines::{self, IoEngine};
use super::list;
use super::number;
use super::options::{JobOption, Unit, ValueKind};
use crate::fio::value::{Distribution, FileService, Mode, PerDirection, SplitSize};

/// A parsed value. Times are in us, as in fio. (The fields of a job are in ns.)
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Switch(bool),
    Number(i128),
    Numbers(PerDirection<Option<u64>>),
    Range([u64; 2]),
    Ranges(PerDirection<Option<[u64; 2]>>),
    Size(SizeValue),
    Real(f64),
    Reals(Vec<f64>),
    Word(&'static str),
    Words(Vec<&'static str>),
    Pattern(Pattern),
    Split(PerDirection<Option<Vec<SplitSize>>>),
    PrioritySplit(PerDirection<Vec<PrioritySplitEntry>>),
    Distribution(Distribution),
    FileService(FileService),
    Engine(EngineRef),
    /// The value is valid but not supported.
    NotModelled {
        why: &'static str,
        instead: &'static str,
    },
}

/// A reference to an engine in the table. Two references are equal if the names of their engines
/// are equal.
#[derive(Clone, Copy, Debug)]
pub(super) struct EngineRef(pub(super) &'static IoEngine);

impl PartialEq for EngineRef {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

/// Value of `size` and similar options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeValue {
    Bytes(u64),
    Percent(u32),
    /// Number of zones of a zoned device.
    Zones(u64),
}

/// Value of `rw`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) mode: Mode,
    pub(super) is_random: bool,
    /// Number after the colon.
    pub(super) suffix: Option<i64>,
}

/// An entry of `cmdprio_bssplit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrioritySplitEntry {
    pub(super) bytes: u64,
    pub(super) percent: u32,
    /// Class and level of the entry, if given.
    pub(super) priority: Option<(u8, u8)>,
}

/// The problem of a value, and a description of valid values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    pub(super) problem: String,
    pub(super) expected: String,
}

/// Format of numbers: the value of `k`, and whether an expression needs no parentheses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) kb_base: u32,
    pub(super) bare: bool,
}

impl Numbers {
    /// Parses a number within bounds.
    pub(super) fn read(self, text: &str, unit: Unit, min: i128, max: i128) -> Result<i128, String> {
        let number = number::read(text, unit.scale(self.kb_base), self.bare)?;
        if number < min {
            Err(format!("{number} is too small; it must be at least {min}"))
        } else if number > max {
            Err(format!("{number} is too large; it must be at most {max}"))
        } else {
            Ok(number)
        }
    }

    /// Parses a number that is within bounds and not negative.
    pub(super) fn unsigned(self, text: &str, unit: Unit, min: u64, max: u64) -> Result<u64, String> {
        self.read(text, unit, min.into(), max.into()).map(|number| u64::try_from(number).unwrap_or(max))
    }
}

/// Parses a value of this option.
///
/// # Errors
/// The problem, and a description of valid values.
pub(super) fn read(option: &JobOption, text: &str, numbers: Numbers) -> Result<Value, Wrong> {
    of_kind(option.kind, text, numbers)
        .map_err(|problem| Wrong { problem, expected: format!("expected: {}", option.kind) })
}

fn of_kind(kind: ValueKind, text: &str, numbers: Numbers) -> Result<Value, String> {
    match kind {
        ValueKind::Text | ValueKind::OptionalText => Ok(Value::Text(text.to_owned())),
        ValueKind::Flag | ValueKind::Bool => switch(text, numbers).map(Value::Switch),
        ValueKind::Number(unit, min, max) => numbers.read(text, unit, min.into(), max.into()).map(Value::Number),
        ValueKind::Numbers(unit, min, max) => {
            let min = u64::try_from(min).unwrap_or(0);
            list::per_direction(text, |text| numbers.unsigned(text, unit, min, max)).map(Value::Numbers)
        }
        ValueKind::Range(unit) => list::range_or_number(text, unit, numbers).map(Value::Range),
        ValueKind::Ranges(unit) => list::ranges(text, unit, numbers).map(Value::Ranges),
        ValueKind::Size => size(text, numbers).map(Value::Size),
        ValueKind::Float(min, max) => list::real(text, min, max).map(Value::Real),
        ValueKind::Floats(min, max) => list::reals(text, min, max).map(Value::Reals),
        ValueKind::Choice(words) => word(text, words).map(Value::Word),
        ValueKind::Choices(words) => {
            text.split(',').map(|text| word(text.trim(), words)).collect::<Result<_, _>>().map(Value::Words)
        }
        ValueKind::Pattern => pattern(text, numbers).map(Value::Pattern),
        ValueKind::Split => list::split(text, numbers).map(Value::Split),
        ValueKind::PrioritySplit => list::priority_split(text, numbers).map(Value::PrioritySplit),
        ValueKind::Distribution => list::distribution(text, numbers),
        ValueKind::FileService => list::file_service(text, numbers).map(Value::FileService),
        ValueKind::SyncFileRange => sync_file_range(text, numbers).map(Value::Number),
        ValueKind::Engine => engine(text).map(Value::Engine),
    }
}

fn switch(text: &str, numbers: Numbers) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Err(format!("`{text}` is not 1")),
        "false" | "no" | "off" => Err(format!("`{text}` is not 0")),
        _ => numbers.read(text, Unit::Count, 0, 1).map(|number| number == 1),
    }
}

fn word(text: &str, words: &[&'static str]) -> Result<&'static str, String> {
    words.iter().find(|word| **word == text).copied().ok_or_else(|| format!("`{text}` is not a value of this option"))
}

fn size(text: &str, numbers: Numbers) -> Result<SizeValue, String> {
    if let Some(percent) = text.strip_suffix('%') {
        let percent = numbers.unsigned(percent, Unit::Count, 1, 100)?;
        return Ok(SizeValue::Percent(u32::try_from(percent).unwrap_or(100)));
    }
    if let Some(zones) = text.strip_suffix(['z', 'Z']) {
        return numbers.unsigned(zones, Unit::Count, 0, i64::MAX as u64).map(SizeValue::Zones);
    }
    numbers.unsigned(text, Unit::Bytes, 0, i64::MAX as u64).map(SizeValue::Bytes)
}

/// Values of `rw`: the name, the direction, and whether the placement is random.
const PATTERNS: [(&str, Mode, bool); 11] = [
    ("read", Mode::Read, false),
    ("write", Mode::Write, false),
    ("trim", Mode::Trim, false),
    ("randread", Mode::Read, true),
    ("randwrite", Mode::Write, true),
    ("randtrim", Mode::Trim, true),
    ("rw", Mode::ReadWrite, false),
    ("readwrite", Mode::ReadWrite, false),
    ("randrw", Mode::ReadWrite, true),
    ("trimwrite", Mode::TrimWrite, false),
    ("randtrimwrite", Mode::TrimWrite, true),
];

fn pattern(text: &str, numbers: Numbers) -> Result<Pattern, String> {
    let (name, suffix) = match text.split_once(':') {
        Some((name, suffix)) => (name, Some(suffix)),
        None => (text, None),
    };
    let known = PATTERNS.iter().find(|(known, ..)| *known == name);
    let (_, mode, is_random) = *known.ok_or_else(|| format!("`{name}` is not a pattern"))?;
    let (min, max, unit) =
        if is_random { (0, u32::MAX.into(), Unit::Count) } else { (i64::MIN.into(), i64::MAX.into(), Unit::Bytes) };
    let suffix = suffix.map(|suffix| numbers.read(suffix, unit, min, max)).transpose()?;
    Ok(Pattern { mode, is_random, suffix: suffix.and_then(|suffix| i64::try_from(suffix).ok()) })
}

fn sync_file_range(text: &str, numbers: Numbers) -> Result<i128, String> {
    let (words, count) = text.rsplit_once(':').ok_or_else(|| "the number of writes is missing".to_owned())?;
    for part in words.split(',') {
        word(part.trim(), &["wait_before", "write", "wait_after"])?;
    }
    numbers.read(count, Unit::Count, 0, u32::MAX.into())
}

fn engine(text: &str) -> Result<EngineRef, String> {
    // The name of an external engine is followed by the path of its file.
    let name = text.split_once(':').map_or(text, |(name, _)| if name == "external" { name } else { text });
    engines::io_engine(name).map(EngineRef).ok_or_else(|| format!("fio has no engine `{name}`"))
}
