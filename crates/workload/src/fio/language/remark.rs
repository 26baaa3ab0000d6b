//! Options of valid job files that iosched ignores or rejects.

use std::fmt;

use super::place::JobLine;

/// An option that iosched ignores because it does not change the I/Os of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Place of the option.
    pub place: JobLine,
    /// The option, as written.
    pub option: String,
    /// Value of the option, as written; empty if it has none.
    pub value: String,
    /// Reason why the option has no effect, or a replacement for the option.
    pub why: String,
}

/// An option that affects I/O and that iosched does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Place of the option.
    pub place: JobLine,
    /// The option, as written.
    pub option: String,
    /// Value of the option, as written; empty if it has none.
    pub value: String,
    /// Reason why iosched does not support the option.
    pub why: String,
    /// Option to use instead; empty if there is none.
    pub instead: String,
}

fn assignment(f: &mut fmt::Formatter<'_>, option: &str, value: &str) -> fmt::Result {
    f.write_str(option)?;
    if value.is_empty() { Ok(()) } else { write!(f, "={value}") }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        assignment(f, &self.option, &self.value)?;
        write!(f, ": {}", self.why)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        assignment(f, &self.option, &self.value)?;
        write!(f, ": not supported: {}", self.why)?;
        if self.instead.is_empty() { Ok(()) } else { write!(f, "; {}", self.instead) }
    }
}
