//! Command lines: words, options and numbers, and what is wrong with them.

use crate::WorkloadError;
use crate::app::AppOption;

/// No size may be larger: sums and products of a few of them fit in 64 bits. 1 PiB.
pub(super) const BYTES_MAX: u64 = 1 << 50;

/// A command line.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    text: &'a str,
    words: Vec<&'a str>,
}

/// An option as it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given<'a> {
    /// Its name, as it is declared.
    pub(super) name: &'static str,
    /// Its value; empty if it has none.
    pub(super) value: &'a str,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.trim();
        Self { text, words: text.split_whitespace().collect() }
    }

    /// The line without white space around it.
    pub(super) const fn text(&self) -> &'a str {
        self.text
    }

    /// Its first word; empty if there is none.
    pub(super) fn program(&self) -> &'a str {
        self.words.first().unwrap_or(&"")
    }

    pub(super) fn error(
        &self,
        option: impl Into<String>,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> WorkloadError {
        WorkloadError::Command {
            command: self.text.to_owned(),
            option: option.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }

    fn unknown(&self, option: &str, known: &[AppOption]) -> WorkloadError {
        let known = known.iter().map(AppOption::usage).collect::<Vec<_>>().join(", ");
        self.error(option, "unknown option", format!("{} knows {known}", self.program()))
    }

    /// Options of one letter behind the first word, as getopt(3) reads them: `-s 64`, `-s64`, `-eo`.
    pub(super) fn letters(&self, known: &[AppOption]) -> Result<Vec<Given<'a>>, WorkloadError> {
        let mut given = Vec::new();
        let mut words = self.words.iter().skip(1);
        while let Some(&word) = words.next() {
            let Some(mut rest) = word.strip_prefix('-').filter(|rest| !rest.is_empty() && !rest.starts_with('-'))
            else {
                return Err(self.unknown(word, known));
            };
            while let Some(letter) = rest.chars().next() {
                let option = known.iter().find(|option| option.name[1..].starts_with(letter));
                let Some(option) = option else {
                    let named = if letter == '+' { word.to_owned() } else { format!("-{letter}") };
                    return Err(self.unknown(&named, known));
                };
                rest = &rest[letter.len_utf8()..];
                let mut value = "";
                if let Some(name) = option.value {
                    value = if rest.is_empty() { words.next().copied().unwrap_or("") } else { rest };
                    rest = "";
                    if value.is_empty() {
                        return Err(self.error(option.name, "has no value", format!("write {} {name}", option.name)));
                    }
                }
                given.push(Given { name: option.name, value });
            }
        }
        Ok(given)
    }

    /// Options written `name=value`, each at most once. `words` are those behind the program's name.
    pub(super) fn operands<'w>(
        &self,
        words: impl IntoIterator<Item = &'w str>,
        known: &[AppOption],
    ) -> Result<Vec<Given<'w>>, WorkloadError> {
        let mut given: Vec<Given<'w>> = Vec::new();
        for word in words {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            let Some(option) = known.iter().find(|option| option.name == name) else {
                return Err(self.unknown(name, known));
            };
            if value.is_empty() {
                return Err(self.error(option.name, "has no value", format!("write {}", option.usage())));
            }
            if given.iter().any(|other| other.name == name) {
                return Err(self.error(option.name, "is given twice", "give it once"));
            }
            given.push(Given { name: option.name, value });
        }
        Ok(given)
    }

    /// Words behind the first.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.words.iter().skip(1).copied()
    }

    /// A whole number from `least` to `most`.
    pub(super) fn number(&self, given: Given<'_>, least: u64, most: u64) -> Result<u64, WorkloadError> {
        let number = given.value.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            let problem = format!("`{}` is not a whole number from {least} to {most}", given.value);
            self.error(given.name, problem, "write such a number")
        })
    }

    /// A size, at least 1: a whole number with an ending `k`, `m`, `g` or `t`, of either case, for powers of 1024;
    /// without one in units of `unit` bytes. Bytes.
    pub(super) fn size(&self, given: Given<'_>, unit: u64) -> Result<u64, WorkloadError> {
        let value = given.value;
        let factor = match value.bytes().last().map(|last| last.to_ascii_lowercase()) {
            Some(b'k') => 1 << 10,
            Some(b'm') => 1 << 20,
            Some(b'g') => 1 << 30,
            Some(b't') => 1 << 40,
            _ => 0,
        };
        let (digits, factor) = if factor == 0 { (value, unit) } else { (&value[..value.len() - 1], factor) };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        bytes.filter(|bytes| (1..=BYTES_MAX).contains(bytes)).ok_or_else(|| {
            let unit = if unit == 1 { "bytes".to_owned() } else { format!("units of {unit} bytes") };
            let problem = format!("`{value}` is not a size from 1 byte to 1 PiB");
            self.error(given.name, problem, format!("write a whole number of {unit}, or one that ends in k, m, g or t"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[AppOption] = &[
        AppOption { name: "-s", value: Some("SIZE"), about: "" },
        AppOption { name: "-e", value: None, about: "" },
        AppOption { name: "-o", value: None, about: "" },
    ];

    fn letters(text: &str) -> Result<Vec<(&'static str, String)>, String> {
        let given = Line::new(text).letters(KNOWN).map_err(|error| error.to_string())?;
        Ok(given.iter().map(|given| (given.name, given.value.to_owned())).collect())
    }

    #[test]
    fn options_are_read_as_getopt_does() {
        let expected = vec![("-e", String::new()), ("-o", String::new()), ("-s", "64".to_owned())];
        for text in ["p -e -o -s 64", "p -eo -s64", "p  -eos 64 ", "p -eos64"] {
            assert_eq!(letters(text).as_ref(), Ok(&expected), "{text}");
        }
        assert_eq!(letters("p -x").unwrap_err(), "p -x: -x: unknown option; p knows -s SIZE, -e, -o");
        assert_eq!(letters("p -s").unwrap_err(), "p -s: -s: has no value; write -s SIZE");
        assert!(letters("p 64").is_err());
        assert!(letters("p -").is_err());
        assert!(letters("p --").is_err());
        assert!(letters("p -é").is_err());
    }

    #[test]
    fn sizes_have_units_and_limits() {
        let line = Line::new("p");
        let size = |value| line.size(Given { name: "-s", value }, 1024).ok();
        assert_eq!(size("64"), Some(65_536));
        assert_eq!(size("16G"), Some(16 << 30));
        assert_eq!(size("1m"), Some(1 << 20));
        for bad in ["", "0", "k", "-1", "1.5", "1q", "18446744073709551615", "2000t", "1é"] {
            assert_eq!(size(bad), None, "{bad}");
        }
    }
}
