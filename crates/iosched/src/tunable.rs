//! Tunables and attributes, declared once.
//!
//! A [`Tunable`] says everything there is to say of one value a user can read or write: its name in sysfs,
//! its unit, default, range and meaning, and where the value lives. Attribute files, `--set name=value`, error
//! messages, help, the reference page and a tuner's search space all come from it.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::controllers::CgroupFileError;

/// What a value counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Requests.
    Requests,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
    /// KiB, 1,024 bytes.
    Kibibytes,
    /// Sectors of 512 bytes.
    Sectors,
    /// A factor.
    Factor,
    /// A number of something the doc names.
    Count,
    /// 0 or 1.
    Switch,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests => "requests",
            Self::Milliseconds => "ms",
            Self::Microseconds => "us",
            Self::Nanoseconds => "ns",
            Self::Kibibytes => "KiB",
            Self::Sectors => "sectors",
            Self::Factor => "times",
            Self::Count => "",
            Self::Switch => "0 or 1",
        })
    }
}

/// Which texts are a number, before the range is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// A decimal number of any size.
    Any,
    /// A decimal number of 64 bits without a sign, as bfq and kyber read: `-1` and 2^64 are refused
    /// even where values out of range become the nearest.
    U64,
    /// A number of 32 bits with a sign, as mq-deadline reads: `0x` begins a hexadecimal number and
    /// `0` an octal one. Larger and smaller ones are refused even where values out of range become
    /// the nearest.
    I32,
}

impl Reads {
    /// Whether `number` is read at all.
    #[must_use]
    pub fn holds(self, number: i128) -> bool {
        match self {
            Self::Any => true,
            Self::U64 => u64::try_from(number).is_ok(),
            Self::I32 => i32::try_from(number).is_ok(),
        }
    }

    /// The whole number that `text` is; one that is too long is as large as can be.
    fn whole(self, text: &str) -> Option<i128> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (radix, digits) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
            _ if self != Self::I32 => (10, text),
            Some(digits) => (16, digits),
            None if text.len() > 1 && text.starts_with('0') => (8, text),
            None => (10, text),
        };
        if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
            return None;
        }
        let number = i128::from_str_radix(digits, radix).unwrap_or(i128::MAX);
        Some(if negative { -number } else { number })
    }
}

/// The declaration of one tunable or attribute, as a user meets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Its file name in sysfs.
    pub name: &'static str,
    /// The unit it is read and written in.
    pub unit: Unit,
    /// Its value when nobody set it, in `unit`. Where it is a fraction of a second in jiffies: with 1000 of them.
    pub default: u64,
    /// Smallest value, in `unit`.
    pub min: u64,
    /// Largest value, in `unit`.
    pub max: u64,
    /// What it does, in one line.
    pub doc: &'static str,
    /// The first kernel that had it.
    pub since: &'static str,
    /// The last kernel that had it; `None` if today's still does.
    pub until: Option<&'static str>,
    /// It can be read but not written.
    pub read_only: bool,
    /// A whole number out of range is taken as the nearest in it; otherwise it is refused.
    pub clamps: bool,
    /// It is kept in jiffies, rounded up: see [`Spec::reads_as`].
    pub in_jiffies: bool,
    /// It may be negative: its value, default, smallest and largest are 64 bits in two's complement.
    /// [`Spec::number`] tells the number they stand for.
    pub signed: bool,
    /// Which texts are a number.
    pub reads: Reads,
    /// It is kept in 32 bits, as so many base units for one of `unit`: a larger value loses its
    /// upper bits.
    pub wraps: Option<u64>,
    /// Another name for the same value in a finer unit: the name it stands for.
    pub alias_of: Option<&'static str>,
    /// The values worth trying; `None`: it serves nobody to search for one.
    pub tuning: Option<Span>,
}

/// The declaration of a file of an elevator that does not hold one number.
#[derive(Clone, Copy, Debug)]
pub struct TextSpec {
    /// Its file name in sysfs.
    pub name: &'static str,
    /// What is written to it, in words; empty: nothing, it is read-only.
    pub takes: &'static str,
    /// Whether it can be read.
    pub readable: bool,
    /// What it does, in one line.
    pub doc: &'static str,
    /// The first version that had it.
    pub since: &'static str,
    /// Whether it takes a text.
    pub accepts: fn(&str) -> bool,
}

impl PartialEq for TextSpec {
    /// The same file.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TextSpec {}

impl TextSpec {
    /// Whether `text` may be written.
    ///
    /// # Errors
    /// If it may not.
    pub fn check(&self, text: &str) -> Result<(), TunableError> {
        if self.takes.is_empty() {
            Err(TunableError::ReadOnly { name: self.name })
        } else if (self.accepts)(text) {
            Ok(())
        } else {
            Err(TunableError::NotTaken { name: self.name, value: text.to_owned(), takes: self.takes })
        }
    }
}

/// The values of a tunable that are worth trying: much less than what it takes. Beyond them an elevator does what it
/// does at their end, or what nobody wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The smallest above 0, in the unit of the declaration.
    pub low: u64,
    /// The largest.
    pub high: u64,
    /// Whether 0 is worth trying, too: it means "never", "off" or "automatic".
    pub zero: bool,
}

impl Span {
    /// Of a switch.
    pub const SWITCH: Option<Self> = Self::or_zero(1, 1);

    /// From `low` to `high`.
    #[must_use]
    pub const fn of(low: u64, high: u64) -> Option<Self> {
        Some(Self { low, high, zero: false })
    }

    /// 0, and from `low` to `high`.
    #[must_use]
    pub const fn or_zero(low: u64, high: u64) -> Option<Self> {
        Some(Self { low, high, zero: true })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { low, high, zero } = *self;
        let zero = if zero { "0, " } else { "" };
        if low == high { write!(f, "{zero}{low}") } else { write!(f, "{zero}{low}..{high}") }
    }
}

/// A value that cannot be read or written so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TunableError {
    /// No such name.
    #[error("{name}: {owner} has no such {what}; available: {known}")]
    Unknown {
        /// The name given.
        name: String,
        /// "tunable" or "attribute".
        what: &'static str,
        /// Whose tunables were searched.
        owner: &'static str,
        /// The names there are.
        known: String,
    },
    /// Not a whole number.
    #[error("{name}: {value:?} is not a whole number; it must be from {takes}")]
    NotANumber {
        /// The tunable.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it takes: smallest and largest value, and the unit if there is one.
        takes: String,
    },
    /// Too small or too large.
    #[error("{name}: {value} is out of range; it must be from {takes}")]
    OutOfRange {
        /// The tunable.
        name: &'static str,
        /// What was given.
        value: String,
        /// Smallest and largest value, and the unit if there is one.
        takes: String,
    },
    /// Not a text that the file takes.
    #[error("{name}: {value:?} is not accepted; it takes {takes}")]
    NotTaken {
        /// The file.
        name: &'static str,
        /// What was given.
        value: String,
        /// What it takes, in words.
        takes: &'static str,
    },
    /// A controller's file that does not take what is written.
    #[error(transparent)]
    CgroupFile(#[from] CgroupFileError),
    /// It can be read only.
    #[error("{name} is read-only")]
    ReadOnly {
        /// The attribute.
        name: &'static str,
    },
    /// It can be written only.
    #[error("{name} is write-only")]
    WriteOnly {
        /// The file.
        name: &'static str,
    },
    /// It reads as text: see [`TunableSet::text`].
    #[error("{name} does not hold one number")]
    NoNumber {
        /// The file.
        name: &'static str,
    },
}

impl TunableError {
    /// There is no tunable `name`, because `owner` has none.
    pub(crate) fn none(name: &str, owner: &'static str) -> Self {
        Self::Unknown { name: name.to_owned(), what: "tunable", owner, known: "none".to_owned() }
    }
}

impl Spec {
    fn unit_text(&self) -> String {
        match self.unit {
            Unit::Count | Unit::Switch | Unit::Factor => String::new(),
            unit => format!(" {unit}"),
        }
    }

    /// Reads a value a user wrote, surrounding white space aside. Linux takes one line end behind
    /// the number, and no other white space.
    ///
    /// # Errors
    /// If it is not a whole number, or out of range.
    pub fn parse(&self, text: &str) -> Result<u64, TunableError> {
        let text = text.trim();
        let Some(number) = self.reads.whole(text) else {
            return Err(self.not_a_number(text));
        };
        let is_read = self.reads.holds(number) && !(self.reads == Reads::U64 && text.starts_with('-'));
        if is_read || self.read_only { self.nearest(number, text) } else { Err(self.out_of_range(text.to_owned())) }
    }

    pub(crate) fn not_a_number(&self, text: &str) -> TunableError {
        TunableError::NotANumber { name: self.name, value: text.to_owned(), takes: self.takes() }
    }

    /// Reads a value as [`parse`](Self::parse) does, and refuses one out of range also where the nearest would be
    /// taken for it: for whoever asks for this value and no other.
    ///
    /// # Errors
    /// If it is not a whole number, or out of range.
    pub fn parse_exactly(&self, text: &str) -> Result<u64, TunableError> {
        Self { clamps: false, ..*self }.parse(text)
    }

    /// The number that a value stands for.
    #[must_use]
    pub fn number(&self, value: u64) -> i128 {
        if self.signed { i128::from(value as i64) } else { value.into() }
    }

    /// `value`, or the nearest in range where that is taken for it, if it may be written.
    ///
    /// # Errors
    /// If it is out of range, or this is read-only.
    pub fn check(&self, value: u64) -> Result<u64, TunableError> {
        let number = self.number(value);
        self.nearest(number, &number.to_string())
    }

    /// The value of `number`, which `text` says.
    fn nearest(&self, number: i128, text: &str) -> Result<u64, TunableError> {
        if self.read_only {
            return Err(TunableError::ReadOnly { name: self.name });
        }
        match number {
            number if self.in_range(number) => Ok(number as u64),
            _ if !self.clamps => Err(self.out_of_range(text.to_owned())),
            number if number < self.number(self.min) => Ok(self.min),
            _ => Ok(self.max),
        }
    }

    fn out_of_range(&self, value: String) -> TunableError {
        TunableError::OutOfRange { name: self.name, value, takes: self.takes() }
    }

    fn takes(&self) -> String {
        format!("{} to {}{}", self.number(self.min), self.number(self.max), self.unit_text())
    }

    fn in_range(&self, number: i128) -> bool {
        (self.number(self.min)..=self.number(self.max)).contains(&number)
    }

    /// What `value` reads as once it is written, on a queue with `hz` jiffies in a second.
    #[must_use]
    pub fn reads_as(&self, value: u64, hz: u32) -> u64 {
        let value = if self.signed { value } else { value.clamp(self.min, self.max) };
        match self.wraps {
            Some(scale) => wrapped(value, scale) / scale,
            None if self.in_jiffies => milliseconds(jiffies(value, hz), hz),
            None => value,
        }
    }
}

/// `value` in base units, as far as 32 bits hold them.
fn wrapped(value: u64, scale: u64) -> u64 {
    value.wrapping_mul(scale) & u64::from(u32::MAX)
}

const MILLISECONDS: u64 = 1000;

/// The jiffies that cover so many milliseconds.
pub(crate) fn jiffies(milliseconds: u64, hz: u32) -> u64 {
    milliseconds.saturating_mul(hz.into()).div_ceil(MILLISECONDS)
}

/// So many jiffies in milliseconds, rounded down.
fn milliseconds(jiffies: u64, hz: u32) -> u64 {
    jiffies.saturating_mul(MILLISECONDS) / u64::from(hz)
}

/// How a field keeps its value. Only values in the declared range are ever stored.
pub trait Value: Copy {
    /// The value that stands for `number`.
    fn of(number: u64) -> Self;

    /// The number that it stands for.
    fn number(self) -> u64;
}

impl Value for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(self) -> u64 {
        self
    }
}

impl Value for u32 {
    fn of(number: u64) -> Self {
        Self::try_from(number).unwrap_or(Self::MAX)
    }

    fn number(self) -> u64 {
        u64::from(self)
    }
}

impl Value for i32 {
    fn of(number: u64) -> Self {
        Self::try_from(number as i64).unwrap_or(Self::MAX)
    }

    fn number(self) -> u64 {
        i64::from(self) as u64
    }
}

impl Value for bool {
    fn of(number: u64) -> Self {
        number != 0
    }

    fn number(self) -> u64 {
        u64::from(self)
    }
}

/// What a value is kept in.
pub enum StoredAs<T> {
    /// So many base units for one of the declaration: 1,000,000 for ms kept in ns.
    Scaled(u64),
    /// Milliseconds as jiffies, rounded up.
    Jiffies {
        /// Jiffies in a second.
        hz: fn(&T) -> u32,
        /// The default is this fraction of a second, rounded down but at least one jiffy; `None`: what the
        /// declaration says.
        default_fraction: Option<u64>,
    },
}

/// A declaration, and where in `T` its value lives.
pub struct Tunable<T> {
    /// What a user sees.
    pub spec: Spec,
    /// What the value is kept in.
    pub kept: StoredAs<T>,
    /// Reads the kept value.
    pub get: fn(&T) -> u64,
    /// Changes it.
    pub set: fn(&mut T, u64),
}

/// The declaration of one tunable: it gives a field of a struct to users, under a name.
///
/// `tunable!(Owner.field, "name", X, scale, default, min..=max, "since", "doc")` with `X` of [`Unit`]: the field is
/// kept in `scale` for one of the unit, so `1_000_000` for milliseconds that are kept in ns. `since` is the version
/// that first had it. Fields of [`Spec`] that differ from the usual follow in braces: `{ clamps: true, tuning:
/// Span::of(1, 100) }`. For milliseconds kept in jiffies, whose owner has a field `hz`, `Jiffies(default)` or
/// `Jiffies(HZ / fraction)` stands for unit, scale and default.
#[macro_export]
macro_rules! tunable {
    ($owner:ident . $field:ident, $name:literal, $unit:ident, $scale:expr, $default:expr, $($rest:tt)*) => {
        $crate::tunable!(@ $owner, $field, $name, $unit, $crate::StoredAs::Scaled($scale), false, $default, $($rest)*)
    };
    ($owner:ident . $field:ident, $name:literal, Jiffies(HZ / $fraction:literal), $($rest:tt)*) => {
        $crate::tunable!(@ $owner, $field, $name, Milliseconds,
            $crate::StoredAs::Jiffies { hz: |owner| owner.hz, default_fraction: Some($fraction) },
            true, 1000 / $fraction, $($rest)*)
    };
    ($owner:ident . $field:ident, $name:literal, Jiffies($default:expr), $($rest:tt)*) => {
        $crate::tunable!(@ $owner, $field, $name, Milliseconds,
            $crate::StoredAs::Jiffies { hz: |owner| owner.hz, default_fraction: None },
            true, $default, $($rest)*)
    };
    (@ $owner:ident, $field:ident, $name:literal, $unit:ident, $kept:expr, $in_jiffies:literal, $default:expr,
     $min:literal ..= $max:expr, $since:literal, $doc:literal $(, { $($extra:ident : $value:expr),* })?) => {
        $crate::Tunable::<$owner> {
            spec: {
                #[allow(unused_mut)]
                let mut spec = $crate::Spec {
                    name: $name,
                    unit: $crate::Unit::$unit,
                    default: $default,
                    min: $min,
                    max: $max,
                    doc: $doc,
                    since: $since,
                    until: None,
                    read_only: false,
                    clamps: false,
                    in_jiffies: $in_jiffies,
                    signed: false,
                    reads: $crate::Reads::Any,
                    wraps: None,
                    alias_of: None,
                    tuning: None,
                };
                $($(spec.$extra = $value;)*)?
                spec
            },
            kept: $kept,
            get: |owner| $crate::Value::number(owner.$field),
            set: |owner, value| owner.$field = $crate::Value::of(value),
        }
    };
}
pub(crate) use crate::tunable;

/// Everything that `T` declares, and how to read and write it by name.
pub struct Declarations<T: 'static> {
    /// Whose they are, for error messages.
    pub owner: &'static str,
    /// "tunable" or "attribute".
    pub what: &'static str,
    /// The declarations.
    pub tunables: &'static [Tunable<T>],
}

impl<T> Tunable<T> {
    fn write(&self, values: &mut T, value: u64) {
        let kept = match self.kept {
            StoredAs::Scaled(scale) if self.spec.wraps.is_some() => wrapped(value, scale),
            StoredAs::Scaled(scale) => value.wrapping_mul(scale),
            StoredAs::Jiffies { hz, .. } => jiffies(value, hz(values)),
        };
        (self.set)(values, kept);
    }

    fn write_default(&self, values: &mut T) {
        match self.kept {
            StoredAs::Jiffies { hz, default_fraction: Some(fraction) } => {
                let jiffies = (u64::from(hz(values)) / fraction).max(1);
                (self.set)(values, jiffies);
            }
            _ => self.write(values, self.spec.default),
        }
    }

    fn read(&self, values: &T) -> u64 {
        let kept = (self.get)(values);
        match self.kept {
            StoredAs::Scaled(scale) => kept / scale,
            StoredAs::Jiffies { hz, .. } => milliseconds(kept, hz(values)),
        }
    }
}

impl<T: 'static> Declarations<T> {
    /// Sets every value of `values` to its default.
    pub fn set_defaults(&self, values: &mut T) {
        for tunable in self.tunables.iter().filter(|t| t.spec.alias_of.is_none()) {
            tunable.write_default(values);
        }
    }

    /// `values` with every value at its default, which users read and write by name from now on.
    #[must_use]
    pub fn tuned(&'static self, mut values: T) -> Tuned<T> {
        self.set_defaults(&mut values);
        Tuned { values, declarations: self }
    }

    /// The declarations without where the values live.
    pub fn specs(&self) -> impl Iterator<Item = &'static Spec> + use<T> {
        self.tunables.iter().map(|t| &t.spec)
    }

    fn find(&self, name: &str) -> Result<&'static Tunable<T>, TunableError> {
        self.tunables.iter().find(|t| t.spec.name == name).ok_or_else(|| TunableError::Unknown {
            name: name.to_owned(),
            what: self.what,
            owner: self.owner,
            known: self.tunables.iter().map(|t| t.spec.name).collect::<Vec<_>>().join(", "),
        })
    }

    /// The value called `name`, in the unit of its declaration, rounded down.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn get(&self, values: &T, name: &str) -> Result<u64, TunableError> {
        Ok(self.find(name)?.read(values))
    }

    /// Gives `name` the value that `text` says. On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, or it does not take that value.
    pub fn set(&self, values: &mut T, name: &str, text: &str) -> Result<(), TunableError> {
        let tunable = self.find(name)?;
        let value = tunable.spec.parse(text)?;
        tunable.write(values, value);
        Ok(())
    }
}

/// Values with their declarations. The values are read as fields of `T`.
///
/// ```
/// use iosched::{Declarations, TunableSet, Tuned, tunable};
///
/// #[derive(Default)]
/// struct Tunables {
///     expire_ns: u64,
/// }
///
/// static DECLARATIONS: Declarations<Tunables> = Declarations {
///     owner: "mine",
///     what: "tunable",
///     tunables: &[tunable!(Tunables.expire_ns, "expire", Milliseconds, 1_000_000, 5, 1..=1000, "1.0", "how long to wait")],
/// };
///
/// let mut tunables: Tuned<Tunables> = DECLARATIONS.tuned(Tunables::default());
/// assert_eq!(tunables.expire_ns, 5_000_000);
/// tunables.set("expire", "20")?;
/// assert_eq!(tunables.get("expire"), Ok(20));
/// let error = tunables.set("expire", "0").unwrap_err();
/// assert_eq!(error.to_string(), "expire: 0 is out of range; it must be from 1 to 1000 ms");
/// # Ok::<(), iosched::TunableError>(())
/// ```
pub struct Tuned<T: 'static> {
    values: T,
    declarations: &'static Declarations<T>,
}

impl<T> Deref for Tuned<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.values
    }
}

impl<T> DerefMut for Tuned<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.values
    }
}

/// What users read and write by name: a [`Tuned`] struct, whatever is in it.
pub trait TunableSet {
    /// The value called `name`, in the unit of its declaration, rounded down.
    ///
    /// # Errors
    /// If there is none of that name, or it is not one number.
    fn get(&self, name: &str) -> Result<u64, TunableError>;

    /// What the file `name` reads as, without the last line end.
    ///
    /// # Errors
    /// If there is none of that name, or it can be written only.
    fn text(&self, name: &str) -> Result<String, TunableError> {
        self.get(name).map(|value| value.to_string())
    }

    /// Gives `name` the value that `text` says. On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, or it does not take that value.
    fn set(&mut self, name: &str, text: &str) -> Result<(), TunableError>;
}

impl<T> TunableSet for Tuned<T> {
    fn get(&self, name: &str) -> Result<u64, TunableError> {
        self.declarations.get(&self.values, name)
    }

    fn text(&self, name: &str) -> Result<String, TunableError> {
        let tunable = self.declarations.find(name)?;
        Ok(tunable.spec.number(tunable.read(&self.values)).to_string())
    }

    fn set(&mut self, name: &str, text: &str) -> Result<(), TunableError> {
        self.declarations.set(&mut self.values, name, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Values {
        hz: u32,
        expire: u64,
        batch: u32,
    }

    static DECLARATIONS: Declarations<Values> = Declarations {
        owner: "a test",
        what: "tunable",
        tunables: &[
            tunable!(Values.expire, "expire", Jiffies(HZ / 8), 1..=2000, "2.6.0", "", { clamps: true }),
            tunable!(Values.batch, "batch", Requests, 1, 16, 2..=32, "2.6.0", "", { clamps: true }),
        ],
    };

    fn with_hz(hz: u32) -> Values {
        let mut values = Values { hz, ..Values::default() };
        DECLARATIONS.set_defaults(&mut values);
        values
    }

    fn written(hz: u32, name: &str, text: &str) -> u64 {
        let mut values = with_hz(hz);
        DECLARATIONS.set(&mut values, name, text).expect("a whole number is taken");
        DECLARATIONS.get(&values, name).expect("there is such a tunable")
    }

    #[test]
    fn clamped_values_are_the_nearest_in_range() {
        for (text, batch) in [("1", 2), ("-5", 2), ("33", 32), ("99999999999999999999", 32), (" 8\n", 8)] {
            assert_eq!(written(1000, "batch", text), batch, "{text:?}");
        }
        let mut values = with_hz(1000);
        for text in ["", "-", "8x", "1-2"] {
            let error = DECLARATIONS.set(&mut values, "batch", text);
            assert!(matches!(error, Err(TunableError::NotANumber { .. })), "{text:?}");
        }
    }

    #[test]
    fn milliseconds_are_kept_as_the_jiffies_that_cover_them() {
        for (hz, written_ms, read_ms) in [(1000, 30, 30), (250, 30, 32), (100, 1, 10), (300, 5, 6), (1000, 5000, 2000)]
        {
            assert_eq!(written(hz, "expire", &written_ms.to_string()), read_ms);
            assert_eq!(DECLARATIONS.tunables[0].spec.reads_as(written_ms, hz), read_ms);
        }
    }

    #[test]
    fn defaults_in_seconds_are_whole_jiffies_and_at_least_one() {
        for (hz, jiffies) in [(1000, 125), (250, 31), (100, 12), (4, 1)] {
            assert_eq!(with_hz(hz).expire, jiffies);
        }
    }
}
