//! Tunables and attributes, declared once.
//!
//! A [`Tunable`] describes one value that a user can read or write: its name in sysfs, unit,
//! default, range, meaning, and the field that stores it. Attribute files, settings such as
//! `cfq:quantum=8`, error messages, help, the reference page and a tuner's search space all use
//! this description.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::controllers::CgroupFileError;

/// Unit in which the value of a tunable is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Number of requests.
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
    /// Factor without a unit.
    Factor,
    /// Number of items; [`Spec::doc`] names the items.
    Count,
    /// Switch: 0 or 1.
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

/// Format of the numbers that a tunable accepts. The range is checked afterwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    /// Decimal number of any size.
    Any,
    /// Unsigned decimal number of 64 bits, as bfq and kyber read it. `-1` and 2^64 are refused,
    /// even if [`Spec::clamps`] is set.
    U64,
    /// Signed number of 32 bits, as mq-deadline reads it. The prefix `0x` means hexadecimal, and
    /// the prefix `0` means octal. Numbers that do not fit into 32 bits are refused, even if
    /// [`Spec::clamps`] is set.
    I32,
}

impl Reads {
    /// Returns whether `number` fits into this format.
    #[must_use]
    pub fn holds(self, number: i128) -> bool {
        match self {
            Self::Any => true,
            Self::U64 => u64::try_from(number).is_ok(),
            Self::I32 => i32::try_from(number).is_ok(),
        }
    }

    /// Parses `text` as a whole number. A number with too many
    /// digits becomes the largest possible number.
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

/// Declaration of one tunable or attribute, as users see it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Name of the file in sysfs.
    pub name: &'static str,
    /// Unit for reading and writing.
    pub unit: Unit,
    /// Default, in `unit`. If the default depends on the number of jiffies per second, this is the
    /// default for 1000 jiffies per second.
    pub default: u64,
    /// Smallest value, in `unit`.
    pub min: u64,
    /// Largest value, in `unit`.
    pub max: u64,
    /// Description of the effect, in one line.
    pub doc: &'static str,
    /// First kernel with this tunable.
    pub since: &'static str,
    /// Last kernel with this tunable; `None` if present Linux has it.
    pub until: Option<&'static str>,
    /// Whether the value can be read but not written.
    pub read_only: bool,
    /// Whether a number out of range becomes the nearest valid value. Otherwise the number is
    /// refused.
    pub clamps: bool,
    /// Whether the value is stored in jiffies, rounded up: see [`Spec::reads_as`].
    pub in_jiffies: bool,
    /// Whether the value may be negative. The value, default, minimum and maximum are then 64 bits
    /// in two's complement. [`Spec::number`] converts them to numbers.
    pub signed: bool,
    /// Format of the accepted numbers.
    pub reads: Reads,
    /// Number of base units per `unit`, if the value is stored as a 32-bit number of base units. A
    /// value that does not fit loses its upper bits.
    pub wraps: Option<u64>,
    /// Name of the tunable with the same value in a coarser unit, if this tunable is an alias.
    pub alias_of: Option<&'static str>,
    /// Values worth trying. `None` if a search for a good value is not useful.
    pub tuning: Option<Span>,
}

/// Declaration of an elevator's file that does not hold one number.
#[derive(Clone, Copy, Debug)]
pub struct TextSpec {
    /// Name of the file in sysfs.
    pub name: &'static str,
    /// Description of the accepted texts. Empty: the file is read-only.
    pub takes: &'static str,
    /// Whether the file can be read.
    pub readable: bool,
    /// Description of the effect, in one line.
    pub doc: &'static str,
    /// First version with this file.
    pub since: &'static str,
    /// Returns whether the file accepts a text.
    pub accepts: fn(&str) -> bool,
}

impl PartialEq for TextSpec {
    /// Compares the names of the files.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TextSpec {}

impl TextSpec {
    /// Checks whether `text` may be written.
    ///
    /// # Errors
    /// Fails if the file is read-only, or if it does not accept `text`.
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

/// Range of a tunable's values that are worth trying, much smaller than the range of accepted
/// values. Values outside of this range behave like its ends, or are not useful.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Smallest value above 0, in the unit of the declaration.
    pub low: u64,
    /// Largest value, in the unit of the declaration.
    pub high: u64,
    /// Whether 0 is also worth trying: it means "never", "off" or "automatic".
    pub zero: bool,
}

impl Span {
    /// Both values of a switch, 0 and 1.
    pub const SWITCH: Option<Self> = Self::or_zero(1, 1);

    /// Returns the range from `low` to `high`.
    #[must_use]
    pub const fn of(low: u64, high: u64) -> Option<Self> {
        Some(Self { low, high, zero: false })
    }

    /// Returns 0 and the range from `low` to `high`.
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

/// Error of reading or writing a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TunableError {
    /// The name does not exist.
    #[error("{name}: {owner} has no such {what}; available: {known}")]
    Unknown {
        /// The given name.
        name: String,
        /// Kind of the name: "tunable" or "attribute".
        what: &'static str,
        /// Owner of the tunables that were searched.
        owner: &'static str,
        /// The existing names.
        known: String,
    },
    /// The value is not a whole number.
    #[error("{name}: {value:?} is not a whole number; it must be from {takes}")]
    NotANumber {
        /// The name of the tunable.
        name: &'static str,
        /// The given value.
        value: String,
        /// Smallest and largest value, and the unit if there is one.
        takes: String,
    },
    /// The value is too small or too large.
    #[error("{name}: {value} is out of range; it must be from {takes}")]
    OutOfRange {
        /// The name of the tunable.
        name: &'static str,
        /// The given value.
        value: String,
        /// Smallest and largest value, and the unit if there is one.
        takes: String,
    },
    /// The file does not accept the text.
    #[error("{name}: {value:?} is not a valid value; {name} takes {takes}")]
    NotTaken {
        /// The name of the file.
        name: &'static str,
        /// The given text.
        value: String,
        /// Description of the accepted texts.
        takes: &'static str,
    },
    /// A controller's file refuses the text.
    #[error(transparent)]
    CgroupFile(#[from] CgroupFileError),
    /// The value is read-only.
    #[error("{name} is read-only")]
    ReadOnly {
        /// The name of the attribute.
        name: &'static str,
    },
    /// The file is write-only.
    #[error("{name} is write-only")]
    WriteOnly {
        /// The name of the file.
        name: &'static str,
    },
    /// The file contains text, not one number: see [`TunableSet::text`].
    #[error("the file {name} contains text, not one number")]
    NoNumber {
        /// The name of the file.
        name: &'static str,
    },
}

impl TunableError {
    /// Creates the error for an owner without tunables.
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

    /// Parses a value that a user wrote. If [`Spec::clamps`] is set, a number out of range becomes
    /// the nearest valid value. White space around the number is ignored, whereas Linux accepts
    /// only one line end after the number.
    ///
    /// # Errors
    /// Fails if the text is not a number in the format of [`Spec::reads`], or if the tunable is
    /// read-only. Without [`Spec::clamps`], also fails if the number is out of range.
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

    /// Parses a value as [`parse`](Self::parse) does, but always refuses a value out of range.
    /// Callers use it when the nearest valid value would be wrong.
    ///
    /// # Errors
    /// Fails if the text is not a whole number, if the number is out of range, or if the tunable is
    /// read-only.
    pub fn parse_exactly(&self, text: &str) -> Result<u64, TunableError> {
        Self { clamps: false, ..*self }.parse(text)
    }

    /// Returns the number that `value` represents: see [`Spec::signed`].
    #[must_use]
    pub fn number(&self, value: u64) -> i128 {
        if self.signed { i128::from(value as i64) } else { value.into() }
    }

    /// Returns `value`. A value out of range becomes the nearest valid value if [`Spec::clamps`] is
    /// set.
    ///
    /// # Errors
    /// Fails if `value` is out of range and [`Spec::clamps`] is not set, or if the tunable is
    /// read-only.
    pub fn check(&self, value: u64) -> Result<u64, TunableError> {
        let number = self.number(value);
        self.nearest(number, &number.to_string())
    }

    /// Returns `number` as a stored value, after the check of the range. Errors show `text`.
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

    /// Returns the value that a user reads after writing `value`, on a queue with `hz` jiffies per
    /// second.
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

/// Converts `value` to base units, and returns the low 32 bits.
fn wrapped(value: u64, scale: u64) -> u64 {
    value.wrapping_mul(scale) & u64::from(u32::MAX)
}

const MILLISECONDS: u64 = 1000;

/// Converts milliseconds to jiffies, rounded up.
pub(crate) fn jiffies(milliseconds: u64, hz: u32) -> u64 {
    milliseconds.saturating_mul(hz.into()).div_ceil(MILLISECONDS)
}

/// Converts jiffies to milliseconds, rounded down.
fn milliseconds(jiffies: u64, hz: u32) -> u64 {
    jiffies.saturating_mul(MILLISECONDS) / u64::from(hz)
}

/// Type of a field that stores a value. Only values in the declared range are stored.
pub trait Value: Copy {
    /// Creates the value for `number`.
    fn of(number: u64) -> Self;

    /// Returns the number of this value.
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

/// Representation of a stored value.
pub enum StoredAs<T> {
    /// Base units per unit of the declaration, for example 1,000,000 for ms stored in ns.
    Scaled(u64),
    /// Milliseconds as jiffies, rounded up.
    Jiffies {
        /// Returns the number of jiffies per second.
        hz: fn(&T) -> u32,
        /// `Some(n)`: the default is 1/n second, rounded down, but at least one jiffy. `None`: the
        /// declaration has the default.
        default_fraction: Option<u64>,
    },
}

/// Declaration of a value, and the field of `T` that stores it.
pub struct Tunable<T> {
    /// Declaration, as users see it.
    pub spec: Spec,
    /// Representation of the stored value.
    pub kept: StoredAs<T>,
    /// Returns the stored value.
    pub get: fn(&T) -> u64,
    /// Sets the stored value.
    pub set: fn(&mut T, u64),
}

/// Declares one tunable: gives users access to a field of a struct by name.
///
/// The form is `tunable!(Owner.field, "name", X, scale, default, min..=max, "since", "doc")`. `X`
/// is a variant of [`Unit`]. The field stores `scale` for each unit, for example `1_000_000` for
/// milliseconds stored in ns. `since` is the first version with the tunable. Add braces at the end
/// to set other fields of [`Spec`], for example `{ clamps: true, tuning: Span::of(1, 100) }`. If
/// milliseconds are stored in jiffies, write `Jiffies(default)` or `Jiffies(HZ / fraction)` instead
/// of unit, scale and default. The owner then needs a field `hz`.
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

/// All declarations of `T`, with access to the values by name.
pub struct Declarations<T: 'static> {
    /// Owner of the declarations, for error messages.
    pub owner: &'static str,
    /// Kind of the declarations, for error messages: "tunable" or "attribute".
    pub what: &'static str,
    /// The declarations.
    pub tunables: &'static [Tunable<T>],
}

impl<T> Tunable<T> {
    fn write(&self, values: &mut T, value: u64) {
        let stored = match self.kept {
            StoredAs::Scaled(scale) if self.spec.wraps.is_some() => wrapped(value, scale),
            StoredAs::Scaled(scale) => value.wrapping_mul(scale),
            StoredAs::Jiffies { hz, .. } => jiffies(value, hz(values)),
        };
        (self.set)(values, stored);
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
        let stored = (self.get)(values);
        match self.kept {
            StoredAs::Scaled(scale) => stored / scale,
            StoredAs::Jiffies { hz, .. } => milliseconds(stored, hz(values)),
        }
    }
}

impl<T: 'static> Declarations<T> {
    /// Sets every value in `values` to its default.
    pub fn set_defaults(&self, values: &mut T) {
        for tunable in self.tunables.iter().filter(|t| t.spec.alias_of.is_none()) {
            tunable.write_default(values);
        }
    }

    /// Sets every value in `values` to its default. Returns the values with access by name.
    #[must_use]
    pub fn tuned(&'static self, mut values: T) -> Tuned<T> {
        self.set_defaults(&mut values);
        Tuned { values, declarations: self }
    }

    /// Returns the declarations without the fields that store the values.
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

    /// Returns the value `name` in the unit of its declaration, rounded down.
    ///
    /// # Errors
    /// Fails if the name does not exist.
    pub fn get(&self, values: &T, name: &str) -> Result<u64, TunableError> {
        Ok(self.find(name)?.read(values))
    }

    /// Parses `text` and sets `name` to the result. An error changes nothing.
    ///
    /// # Errors
    /// Fails if the name does not exist, or if the tunable refuses the value.
    pub fn set(&self, values: &mut T, name: &str, text: &str) -> Result<(), TunableError> {
        let tunable = self.find(name)?;
        let value = tunable.spec.parse(text)?;
        tunable.write(values, value);
        Ok(())
    }
}

/// Values with their declarations. Code reads the values as fields of `T`.
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

/// Values that users read and write by name. Every [`Tuned`] struct implements this trait.
pub trait TunableSet {
    /// Returns the value `name` in the unit of its declaration, rounded down.
    ///
    /// # Errors
    /// Fails if the name does not exist, or if the file does not hold one number.
    fn get(&self, name: &str) -> Result<u64, TunableError>;

    /// Returns the content of the file `name`, without the last line end.
    ///
    /// # Errors
    /// Fails if the name does not exist, or if the file is write-only.
    fn text(&self, name: &str) -> Result<String, TunableError> {
        self.get(name).map(|value| value.to_string())
    }

    /// Parses `text` and sets `name` to the result. An error changes nothing.
    ///
    /// # Errors
    /// Fails if the name does not exist, or if the file refuses the value.
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
        DECLARATIONS.set(&mut values, name, text).expect("a whole number is accepted");
        DECLARATIONS.get(&values, name).expect("the tunable exists")
    }

    #[test]
    fn values_out_of_range_are_clamped() {
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
    fn milliseconds_are_rounded_up_to_whole_jiffies() {
        for (hz, written_ms, read_ms) in [(1000, 30, 30), (250, 30, 32), (100, 1, 10), (300, 5, 6), (1000, 5000, 2000)]
        {
            assert_eq!(written(hz, "expire", &written_ms.to_string()), read_ms);
            assert_eq!(DECLARATIONS.tunables[0].spec.reads_as(written_ms, hz), read_ms);
        }
    }

    #[test]
    fn defaults_in_seconds_round_down_to_at_least_one_jiffy() {
        for (hz, jiffies) in [(1000, 125), (250, 31), (100, 12), (4, 1)] {
            assert_eq!(with_hz(hz).expire, jiffies);
        }
    }
}
