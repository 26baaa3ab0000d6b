//! What a valid job file asks for that iosched does not do: with or without consequences.

use std::fmt;

use super::place::JobLine;

/// Something that changes nothing for the I/Os a device sees, and is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Where.
    pub place: JobLine,
    /// The option, as written.
    pub option: String,
    /// Its value, as written; empty if it has none.
    pub value: String,
    /// Why it makes no difference, or what is done instead.
    pub why: String,
}

/// Something that shapes I/O, and that iosched cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where.
    pub place: JobLine,
    /// The option, as written.
    pub option: String,
    /// Its value, as written; empty if it has none.
    pub value: String,
    /// Why not.
    pub why: String,
    /// What to use instead; empty if there is nothing like it.
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
