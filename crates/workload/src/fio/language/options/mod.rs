//! fio's options, declared once: name, aliases, values, and support by iosched.
//!
//! Parsing, messages, `iosched job options` and docs/fio-options.md use these declarations. Names,
//! ranges and defaults are those of fio (HOWTO of fio 3.33 and later, and the output of an
//! installed fio). `resolve` converts values into parts of a job.

mod engine;
mod io;
mod output;
mod process;
mod target;
mod verify;

use std::fmt;

use super::number::Scale;

/// An option of fio's jobs, and its support by iosched.
#[derive(Debug)]
pub struct JobOption {
    /// Name of the option.
    pub name: &'static str,
    /// Other names of the same option.
    pub aliases: &'static [&'static str],
    /// Kind of the option's values.
    pub kind: ValueKind,
    /// Subject of the option.
    pub category: Category,
    /// Support of the option by iosched.
    pub treatment: Treatment,
    /// Short description of the option.
    pub help: &'static str,
    /// Engines that have this option; empty: all jobs have it.
    pub engines: &'static [&'static str],
}

/// Kind of an option's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueKind {
    /// Any text that is not empty.
    Text,
    /// Any text, or no value.
    OptionalText,
    /// No value, 0 or 1. Without a value the option is on.
    Flag,
    /// 0 or 1.
    Bool,
    /// One number.
    Number(Unit, i64, u64),
    /// Up to three numbers, for reads, writes and trims.
    Numbers(Unit, i64, u64),
    /// A number or a range of numbers: `1k-4k`.
    Range(Unit),
    /// Up to three ranges, for reads, writes and trims.
    Ranges(Unit),
    /// Bytes, a share (`10%`) or zones of a zoned device (`4z`).
    Size,
    /// One real number.
    Float(f64, f64),
    /// Real numbers, separated by colons.
    Floats(f64, f64),
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Some of these words, separated by commas.
    Choices(&'static [&'static str]),
    /// `rw`: a pattern, optionally with `:N`.
    Pattern,
    /// `bssplit`.
    Split,
    /// `cmdprio_bssplit`.
    PrioritySplit,
    /// `random_distribution`.
    Distribution,
    /// `file_service_type`.
    FileService,
    /// `sync_file_range`.
    SyncFileRange,
    /// `ioengine`.
    Engine,
}

/// Unit of a number in a job file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A plain number. Suffixes such as `k` are allowed.
    Count,
    /// Bytes.
    Bytes,
    /// A time, in seconds without a suffix.
    Seconds,
    /// A time, in us without a suffix.
    Microseconds,
}

impl Unit {
    /// Returns the meaning of suffixes.
    pub(super) const fn scale(self, kb_base: u32) -> Scale {
        match self {
            Self::Count | Self::Bytes => Scale::Quantity { kb_base },
            Self::Seconds => Scale::Time { unit_us: 1_000_000 },
            Self::Microseconds => Scale::Time { unit_us: 1 },
        }
    }

    /// Returns the name of the unit in the table and in messages.
    const fn name(self) -> &'static str {
        match self {
            Self::Count => "number",
            Self::Bytes => "bytes",
            Self::Seconds => "time (s)",
            Self::Microseconds => "time (us)",
        }
    }
}

/// Subject of an option, which groups options in documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Files and devices.
    Target,
    /// Directions, sizes and places of I/Os.
    Io,
    /// Number of I/Os in flight.
    Depth,
    /// Times: runtime, order of jobs, rates, think time, latency.
    Pace,
    /// The process: priority, cgroup, CPU, memory.
    Process,
    /// Replay and recording of I/Os.
    Replay,
    /// Zoned devices.
    Zones,
    /// Verification, and contents of the written data.
    Data,
    /// Metrics and logs.
    Output,
    /// Options that only some I/O engines have.
    Engine,
}

impl Category {
    /// All categories, in the order of the reference page.
    pub const ALL: [Self; 10] = [
        Self::Target,
        Self::Io,
        Self::Depth,
        Self::Pace,
        Self::Process,
        Self::Replay,
        Self::Zones,
        Self::Data,
        Self::Output,
        Self::Engine,
    ];

    /// Returns the title of the category.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Target => "Files and devices",
            Self::Io => "Directions, sizes and positions of I/Os",
            Self::Depth => "I/O depth",
            Self::Pace => "Time, order, rates and latency",
            Self::Process => "Priorities, cgroups, CPU and memory",
            Self::Replay => "Replay and recording",
            Self::Zones => "Zoned devices",
            Self::Data => "Data and verification",
            Self::Output => "Metrics and logs",
            Self::Engine => "Options of single I/O engines",
        }
    }
}

/// Support of an option by iosched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// The option has the same effect as in fio.
    Honoured,
    /// The option is accepted and has no effect.
    NoEffect {
        /// Reason.
        why: &'static str,
    },
    /// The option affects I/O in a way that is not modelled. A job with it is rejected.
    Unsupported {
        /// Values that disable the option. They are accepted.
        unless: &'static [&'static str],
        /// Reason.
        why: &'static str,
        /// Option to use instead; empty if there is none.
        instead: &'static str,
    },
    /// The option has an effect only together with this other option. iosched supports the option
    /// if it supports the other option.
    With(&'static str),
    /// The option is supported if its engine is supported.
    OfEngine,
}

impl Treatment {
    /// Creates an option that is accepted without effect.
    const fn none(why: &'static str) -> Self {
        Self::NoEffect { why }
    }

    /// Creates an option that is rejected, except with these values.
    const fn unless(unless: &'static [&'static str], why: &'static str, instead: &'static str) -> Self {
        Self::Unsupported { unless, why, instead }
    }

    /// Returns a word for lists.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Honoured => "honoured",
            Self::NoEffect { .. } => "no effect",
            Self::Unsupported { .. } | Self::OfEngine => "not supported",
            Self::With(_) => "needs another option",
        }
    }

    /// Returns the reason why iosched does not honour the option, and a replacement. Returns an
    /// empty text if iosched honours the option.
    #[must_use]
    pub fn reason(self) -> String {
        match self {
            Self::Honoured => String::new(),
            Self::OfEngine => "iosched does not support the ioengine of this option".to_owned(),
            Self::With(option) => format!("has an effect only together with {option}"),
            Self::NoEffect { why } => why.to_owned(),
            Self::Unsupported { unless, why, instead } => {
                let mut reason = why.to_owned();
                if !unless.is_empty() {
                    reason = format!("{reason}. iosched accepts only the value {}", unless.join(" or "));
                }
                if !instead.is_empty() {
                    reason = format!("{reason}. Instead, {instead}");
                }
                reason
            }
        }
    }
}

/// Largest value of an unsigned `int` in fio.
const INT_MAX: u64 = u32::MAX as u64;
/// Any number.
const COUNT: ValueKind = ValueKind::Number(Unit::Count, 0, INT_MAX);
/// Any number, at least one.
const COUNT_1: ValueKind = ValueKind::Number(Unit::Count, 1, INT_MAX);
/// Any number of bytes.
const BYTES: ValueKind = ValueKind::Number(Unit::Bytes, 0, i64::MAX as u64);
/// A percentage.
const PERCENT: ValueKind = ValueKind::Number(Unit::Count, 0, 100);
/// A time in seconds.
const SECONDS: ValueKind = ValueKind::Number(Unit::Seconds, 0, TIME_MAX_US);
/// A time in us.
const MICROSECONDS: ValueKind = ValueKind::Number(Unit::Microseconds, 0, TIME_MAX_US);
/// The longest time, us: about 36 years.
const TIME_MAX_US: u64 = (1 << 60) / 1000;

/// Declares a table of options, one line for each option. The macro imports the names that the
/// lines use.
macro_rules! options {
    ($(#[$doc:meta])* $table:ident, $category:ident, $engines:expr;
     $( $name:literal $(| $alias:literal)*, $kind:expr, $treatment:expr, $help:literal; )*) => {
        $(#[$doc])*
        pub(super) static $table: &[JobOption] = &[ $( JobOption {
            name: $name,
            aliases: &[$($alias),*],
            kind: $kind,
            category: Category::$category,
            treatment: $treatment,
            help: $help,
            engines: $engines,
        } ),* ];
    };
}
use options;

/// All tables of options.
static TABLES: &[&[JobOption]] = &[
    target::FILES,
    io::DIRECTION,
    io::BLOCKS,
    io::REGION,
    io::RANDOM,
    io::DURABILITY,
    io::DEPTH,
    process::TIME,
    process::ORDER,
    process::RATES,
    process::PROCESS,
    target::REPLAY,
    target::ZONES,
    verify::DATA,
    verify::VERIFY,
    output::OUTPUT,
    output::PROFILES,
    engine::CMDPRIO,
    engine::LIBAIO,
    engine::IO_URING,
    engine::URING_ONLY,
    engine::PVSYNC2,
    engine::NOWAIT,
    engine::UNCACHED,
    engine::HIPRI,
    engine::MMAP,
    engine::CPUIO,
    engine::NETWORK,
    engine::RDMA,
    engine::CEPH,
    engine::RADOS,
    engine::RBD,
    engine::GLUSTER,
    engine::SG,
    engine::FUA,
    engine::PASSTHROUGH,
    engine::PROTECTION,
    engine::XNVME,
    engine::LIBBLKIO,
    engine::HTTP,
    engine::HDFS,
    engine::DAOS,
    engine::GPU,
    engine::RPMA,
    engine::E4DEFRAG,
    engine::MTD,
    engine::NBD,
    engine::NFS,
    engine::EXEC,
    engine::STAT,
    engine::ISCSI,
];

/// Returns all options in the order of the reference page.
pub fn job_options() -> impl Iterator<Item = &'static JobOption> {
    Category::ALL.into_iter().flat_map(|category| all().filter(move |option| option.category == category))
}

/// Returns the value of an option that is written without a value (`Some(None)`: no value). Returns
/// `None` if the option needs a value.
pub(super) fn alone(name: &str) -> Option<Option<&'static str>> {
    match all().find(|option| option.is_called(name))?.kind {
        ValueKind::Flag | ValueKind::OptionalText => Some(None),
        ValueKind::Bool => Some(Some("1")),
        _ => None,
    }
}

fn all() -> impl Iterator<Item = &'static JobOption> {
    TABLES.iter().flat_map(|table| table.iter())
}

/// Result of looking up a name in a section with a given engine.
pub(super) enum Found {
    /// An option.
    Option(&'static JobOption),
    /// An option that only these other engines have.
    OtherEngine(&'static [&'static str]),
    /// There is no such option.
    No,
}

/// Finds an option by its name or an alias. Options of the engine come first.
pub(super) fn find(name: &str, engine: &str) -> Found {
    let mut other: &[&str] = &[];
    let mut common = None;
    for option in all().filter(|option| option.is_called(name)) {
        if option.engines.contains(&engine) {
            return Found::Option(option);
        }
        if option.engines.is_empty() {
            common = common.or(Some(option));
        } else if other.is_empty() {
            other = option.engines;
        }
    }
    match common {
        Some(option) => Found::Option(option),
        None if other.is_empty() => Found::No,
        None => Found::OtherEngine(other),
    }
}

/// Returns at most three similar names, the most similar first.
pub(super) fn near(name: &str) -> Vec<&'static str> {
    let name = name.to_ascii_lowercase();
    let far = (name.chars().count() / 3).max(1);
    let names = all().flat_map(|option| option.aliases.iter().copied().chain([option.name]));
    let mut near: Vec<_> =
        names.map(|known| (distance(&name, known), known)).filter(|(distance, _)| *distance <= far).collect();
    near.sort_unstable();
    near.dedup();
    let best = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter().take_while(|(distance, _)| *distance == best).take(3).map(|(_, known)| known).collect()
}

/// Returns the edit distance of two names: the number of characters to insert, remove, replace, or
/// swap with the next character. If the lengths differ by more than 4, the result is `usize::MAX`.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one.len().abs_diff(other.len()) > 4 {
        return usize::MAX;
    }
    let width = other.len() + 1;
    let mut rows = vec![0; (one.len() + 1) * width];
    for at in 0..rows.len() {
        let (i, j) = (at / width, at % width);
        rows[at] = match (i, j) {
            (0, other) | (other, 0) => other,
            _ => {
                let replaced = rows[at - width - 1] + usize::from(one[i - 1] != other[j - 1]);
                let edited = (rows[at - width] + 1).min(rows[at - 1] + 1).min(replaced);
                let swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                if swapped { edited.min(rows[at - 2 * width - 2] + 1) } else { edited }
            }
        };
    }
    rows[rows.len() - 1]
}

impl JobOption {
    /// Returns whether the option has this name or alias.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

impl fmt::Display for ValueKind {
    /// Formats a description of the values, for tables and messages.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write_range = |f: &mut fmt::Formatter<'_>, unit: Unit, min: i64, max: u64| {
            write!(f, "{}", unit.name())?;
            match (min, max) {
                (0, max) if max >= INT_MAX => Ok(()),
                (min, max) if max >= INT_MAX => write!(f, ", {min}.."),
                (min, max) => write!(f, ", {min}..{max}"),
            }
        };
        match self {
            Self::Text => f.write_str("text"),
            Self::OptionalText => f.write_str("text, or no value"),
            Self::Flag => f.write_str("no value, 0 or 1"),
            Self::Bool => f.write_str("0 or 1"),
            Self::Number(unit, min, max) => write_range(f, *unit, *min, *max),
            Self::Numbers(unit, min, max) => {
                write_range(f, *unit, *min, *max)?;
                f.write_str("; up to three values: reads,writes,trims")
            }
            Self::Range(unit) => write!(f, "{}, or a range such as 1-4", unit.name()),
            Self::Ranges(unit) => {
                write!(f, "ranges of {}, such as 1k-4k,2k-8k; up to three ranges: reads,writes,trims", unit.name())
            }
            Self::Size => f.write_str("bytes or 1%..100%"),
            Self::Float(min, max) => write!(f, "real number, {min}..{max}"),
            Self::Floats(min, f64::MAX) => write!(f, "real numbers, at least {min}, separated by colons"),
            Self::Floats(min, max) => write!(f, "real numbers from {min} to {max}, separated by colons"),
            Self::Choice(words) => write!(f, "{}", words.join(", ")),
            Self::Choices(words) => write!(f, "some of {}, separated by commas", words.join(", ")),
            Self::Pattern => f.write_str(
                "read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite or randtrimwrite; \
                 optionally followed by :N",
            ),
            Self::Split => f.write_str(
                "sizes with their shares in %, such as 4k/10:64k/50:32k/40; up to three lists: reads,writes,trims",
            ),
            Self::PrioritySplit => {
                f.write_str("sizes with share in %, class and level, such as 64k/25/1/0; up to two lists: reads,writes")
            }
            Self::Distribution => {
                f.write_str("random, zipf:theta, pareto:h, normal:deviation, zoned:share/size or zoned_abs:share/size")
            }
            Self::FileService => {
                f.write_str("random, roundrobin, sequential, zipf, pareto or normal; optionally followed by :N")
            }
            Self::SyncFileRange => {
                f.write_str("wait_before, write and wait_after, separated by commas, each followed by :N")
            }
            Self::Engine => f.write_str("name of an I/O engine (see docs/fio.md)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_names_are_unique_within_an_engine() {
        let options: Vec<_> = all().collect();
        for (index, option) in options.iter().enumerate() {
            for name in option.aliases.iter().chain([&option.name]) {
                for other in options[index + 1..].iter().filter(|other| other.is_called(name)) {
                    let shared = option.engines.iter().any(|engine| other.engines.contains(engine));
                    assert!(
                        !shared && !option.engines.is_empty() && !other.engines.is_empty(),
                        "two options of an engine have the name {name}"
                    );
                }
            }
        }
    }

    #[test]
    fn engines_named_by_options_are_known() {
        for option in all() {
            for engine in option.engines {
                assert!(super::super::engines::io_engine(engine).is_some(), "{}: {engine}", option.name);
            }
        }
    }

    #[test]
    fn options_refused_with_their_engine_have_no_supported_engine() {
        for option in all().filter(|option| option.treatment == Treatment::OfEngine) {
            for engine in option.engines {
                let engine = super::super::engines::io_engine(engine).unwrap();
                assert!(!engine.is_supported(), "{}: the engine {} is supported", option.name, engine.name);
            }
        }
    }

    #[test]
    fn values_without_effect_are_valid() {
        for option in all() {
            let Treatment::Unsupported { unless, .. } = option.treatment else { continue };
            for value in unless {
                let numbers = super::super::value::Numbers { kb_base: 1024, bare: false };
                let read = super::super::value::read(option, value, numbers);
                assert!(read.is_ok(), "{}={value}: {read:?}", option.name);
            }
        }
    }

    #[test]
    fn misspelt_names_suggest_the_option() {
        for (typed, meant) in [
            ("blocksizee", "blocksize"),
            ("iodpeth", "iodepth"),
            ("rwmixred", "rwmixread"),
            ("RW", "rw"),
            ("run_time", "runtime"),
        ] {
            assert_eq!(near(typed).first(), Some(&meant), "{typed}");
        }
        assert!(near("quite_another_thing").is_empty());
        assert!(near(&"x".repeat(100_000)).is_empty());
    }
}
