//! Tunables and attributes, declared once.
//!
//! A [`Tunable`] says everything there is to say of one value a user can read or write: its name in sysfs,
//! its unit, default, range and meaning, and where the value lives. Attribute files, `--set name=value`, error
//! messages, help, the reference page and a tuner's search space all come from it.

use std::fmt;

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
            Self::Factor => "times",
            Self::Count => "",
            Self::Switch => "0 or 1",
        })
    }
}

/// The declaration of one tunable or attribute, as a user meets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spec {
    /// Its file name in sysfs.
    pub name: &'static str,
    /// The unit it is read and written in.
    pub unit: Unit,
    /// Its value when nobody set it, in `unit`.
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
    /// Another name for the same value in a finer unit: the name it stands for.
    pub alias_of: Option<&'static str>,
}

/// A value that cannot be read or written so.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TunableError {
    /// No such name.
    #[error("{name}: there is no such {what} of {owner}; there are {known}")]
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
    #[error("{name}: {value:?} is not a whole number; {name} takes {min}..={max}{unit}")]
    NotANumber {
        /// The tunable.
        name: &'static str,
        /// What was given.
        value: String,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
        /// The unit, after a space; empty if it has none.
        unit: String,
    },
    /// Too small or too large.
    #[error("{name}: {value} is out of range {min}..={max}{unit}")]
    OutOfRange {
        /// The tunable.
        name: &'static str,
        /// What was given.
        value: u64,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
        /// The unit, after a space; empty if it has none.
        unit: String,
    },
    /// It can be read only.
    #[error("{name} is read-only")]
    ReadOnly {
        /// The attribute.
        name: &'static str,
    },
}

impl Spec {
    fn unit_text(&self) -> String {
        match self.unit {
            Unit::Count | Unit::Switch | Unit::Factor => String::new(),
            unit => format!(" {unit}"),
        }
    }

    /// Reads a value a user wrote, surrounding white space aside.
    ///
    /// # Errors
    /// If it is not a whole number, or out of range.
    pub fn parse(&self, text: &str) -> Result<u64, TunableError> {
        let text = text.trim();
        let value = text.parse().map_err(|_| TunableError::NotANumber {
            name: self.name,
            value: text.to_owned(),
            min: self.min,
            max: self.max,
            unit: self.unit_text(),
        })?;
        self.check(value)
    }

    /// `value`, if it is in range and may be written.
    ///
    /// # Errors
    /// If it is out of range, or this is read-only.
    pub fn check(&self, value: u64) -> Result<u64, TunableError> {
        if self.read_only {
            return Err(TunableError::ReadOnly { name: self.name });
        }
        if !(self.min..=self.max).contains(&value) {
            let Self { name, min, max, .. } = *self;
            return Err(TunableError::OutOfRange { name, value, min, max, unit: self.unit_text() });
        }
        Ok(value)
    }
}

/// How a field keeps its value. Only values in the declared range are ever stored.
pub(crate) trait Value: Copy {
    fn of(number: u64) -> Self;
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

impl Value for bool {
    fn of(number: u64) -> Self {
        number != 0
    }

    fn number(self) -> u64 {
        u64::from(self)
    }
}

/// A declaration, and where in `T` its value lives.
pub struct Tunable<T> {
    /// What a user sees.
    pub spec: Spec,
    /// Base units, as the value is kept, in one unit of `spec`: 1,000,000 for ms kept in ns.
    pub scale: u64,
    /// Reads the kept value.
    pub get: fn(&T) -> u64,
    /// Changes it.
    pub set: fn(&mut T, u64),
}

/// Gives `$field` of `$owner` to a user under `$name`.
///
/// `tunable!(Owner.field, "name", Unit::X, scale, default, min..=max, "since", "doc")`, then, if need be, struct-update
/// fields of [`Spec`] in braces.
macro_rules! tunable {
    ($owner:ident . $field:ident, $name:literal, $unit:ident, $scale:expr, $default:expr, $min:literal ..= $max:expr,
     $since:literal, $doc:literal $(, { $($extra:ident : $value:expr),* })?) => {
        $crate::tunable::Tunable::<$owner> {
            spec: {
                #[allow(unused_mut)]
                let mut spec = $crate::tunable::Spec {
                    name: $name,
                    unit: $crate::tunable::Unit::$unit,
                    default: $default,
                    min: $min,
                    max: $max,
                    doc: $doc,
                    since: $since,
                    until: None,
                    read_only: false,
                    alias_of: None,
                };
                $($(spec.$extra = $value;)*)?
                spec
            },
            scale: $scale,
            get: |owner| $crate::tunable::Value::number(owner.$field),
            set: |owner, value| owner.$field = $crate::tunable::Value::of(value),
        }
    };
}
pub(crate) use tunable;

/// Everything that `T` declares, and how to read and write it by name.
pub struct Declarations<T: 'static> {
    /// Whose they are, for error messages.
    pub owner: &'static str,
    /// "tunable" or "attribute".
    pub what: &'static str,
    /// The declarations.
    pub tunables: &'static [Tunable<T>],
}

impl<T: 'static> Declarations<T> {
    /// Sets every value of `values` to its default.
    pub fn set_defaults(&self, values: &mut T) {
        for tunable in self.tunables.iter().filter(|t| t.spec.alias_of.is_none()) {
            (tunable.set)(values, tunable.spec.default * tunable.scale);
        }
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
            known: if self.tunables.is_empty() {
                "none".to_owned()
            } else {
                self.tunables.iter().map(|t| t.spec.name).collect::<Vec<_>>().join(", ")
            },
        })
    }

    /// The value called `name`, in the unit of its declaration, rounded down.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn get(&self, values: &T, name: &str) -> Result<u64, TunableError> {
        let tunable = self.find(name)?;
        Ok((tunable.get)(values) / tunable.scale)
    }

    /// Gives `name` the value that `text` says. On error nothing has changed.
    ///
    /// # Errors
    /// If there is none of that name, or it does not take that value.
    pub fn set(&self, values: &mut T, name: &str, text: &str) -> Result<(), TunableError> {
        let tunable = self.find(name)?;
        let value = tunable.spec.parse(text)?;
        (tunable.set)(values, value * tunable.scale);
        Ok(())
    }
}
