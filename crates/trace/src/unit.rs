//! Units of time in options.

use std::fmt;
use std::str::FromStr;

use iosched::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS};

/// Unit of the times in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeUnit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Seconds.
    S,
}

impl TimeUnit {
    /// All units, the shortest first.
    pub const ALL: [Self; 4] = [Self::Ns, Self::Us, Self::Ms, Self::S];

    /// Returns the length of the unit, ns.
    #[must_use]
    pub const fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => MICROSECOND_NS,
            Self::Ms => MILLISECOND_NS,
            Self::S => SECOND_NS,
        }
    }

    /// Returns the name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::S => "s",
        }
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TimeUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|unit| unit.name() == text);
        found.ok_or_else(|| "write a unit of time: ns, us, ms or s".to_owned())
    }
}
