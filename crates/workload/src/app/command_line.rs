//! Command lines: words, options, numbers and their errors.

use crate::WorkloadError;
use crate::app::option::AppOption;

/// Largest size, bytes: 1 PiB. Sums and products of a few sizes then fit in 64 bits.
pub(super) const BYTES_MAX: u64 = 1 << 50;

/// A command line.
#[derive(Clone, Debug)]
pub(super) struct Line<'a> {
    text: &'a str,
    words: Vec<&'a str>,
}

/// An option on a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given<'a> {
    /// Name of the option, as declared.
    pub(super) name: &'static str,
    /// Value of the option; empty if it has none.
    pub(super) value: &'a str,
}

impl<'a> Line<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let text = text.trim();
        Self { text, words: text.split_whitespace().collect() }
    }

    /// Returns the line without white space around it.
    pub(super) const fn text(&self) -> &'a str {
        self.text
    }

    /// Returns the first word; empty if the line has no word.
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

    /// Parses options after the first word: `-s 64`, `-s64`, `-eo`, `--time=10`, `--time 10`. Short
    /// options have the syntax of getopt(3), and long options have the syntax of getopt_long(3).
    /// Other words are errors.
    pub(super) fn letters(&self, known: &[AppOption]) -> Result<Vec<Given<'a>>, WorkloadError> {
        let (given, operands) = self.options(known)?;
        match operands.first() {
            Some(word) => Err(self.unknown(word, known)),
            None => Ok(given),
        }
    }

    /// Parses options, and also returns the words that are not options.
    pub(super) fn options(&self, known: &[AppOption]) -> Result<(Vec<Given<'a>>, Vec<&'a str>), WorkloadError> {
        let (mut given, mut operands) = (Vec::new(), Vec::new());
        let mut words = self.words.iter().skip(1);
        while let Some(&word) = words.next() {
            // IOzone has its own long options, which begin with `-+`.
            if word.starts_with("--") && word.len() > 2 || word.starts_with("-+") {
                let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
                let Some(option) = known.iter().find(|option| option.name == name) else {
                    return Err(self.unknown(name, known));
                };
                let value = match option.value {
                    Some(name) if is_optional(name) => value.unwrap_or(""),
                    Some(_) => value.or_else(|| words.next().copied()).unwrap_or(""),
                    None => "",
                };
                given.push(self.checked(option, value)?);
                continue;
            }
            let Some(mut rest) = word.strip_prefix('-').filter(|rest| !rest.is_empty() && !rest.starts_with('-'))
            else {
                operands.push(word);
                continue;
            };
            while let Some(letter) = rest.chars().next() {
                let is_letter =
                    |option: &&AppOption| option.name.strip_prefix('-').is_some_and(|name| name.chars().eq([letter]));
                let Some(option) = known.iter().find(is_letter) else {
                    return Err(self.unknown(&format!("-{letter}"), known));
                };
                rest = &rest[letter.len_utf8()..];
                let mut value = "";
                if option.value.is_some() {
                    value = if rest.is_empty() { words.next().copied().unwrap_or("") } else { rest };
                    rest = "";
                }
                given.push(self.checked(option, value)?);
            }
        }
        Ok((given, operands))
    }

    /// Checks that an option has a value if it needs one, and returns the option.
    fn checked(&self, option: &AppOption, value: &'a str) -> Result<Given<'a>, WorkloadError> {
        match option.value {
            Some(name) if value.is_empty() && !is_optional(name) => {
                Err(self.error(option.name, "has no value", format!("write {}", option.usage())))
            }
            _ => Ok(Given { name: option.name, value }),
        }
    }

    /// Parses options of the form `name=value`, each at most once. `words` are the words after the
    /// program's name.
    pub(super) fn operands<'w>(
        &self,
        words: impl IntoIterator<Item = &'w str>,
        known: &[AppOption],
        lists: &[&str],
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
            if !lists.contains(&name) && given.iter().any(|other| other.name == name) {
                return Err(self.error(option.name, "is given twice", "give it once"));
            }
            given.push(Given { name: option.name, value });
        }
        Ok(given)
    }

    /// Returns the words after the first word.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &'a str> + '_ {
        self.words.iter().skip(1).copied()
    }

    /// Parses an integer from `least` to `most`.
    pub(super) fn number(&self, given: Given<'_>, least: u64, most: u64) -> Result<u64, WorkloadError> {
        let number = given.value.parse::<u64>().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| {
            let problem = format!("`{}` is not a whole number from {least} to {most}", given.value);
            self.error(given.name, problem, "give a number in this range")
        })
    }

    /// Parses a time, at least 0, and returns ns. The number ends in `us`, `ms`, `s`, `m`, `h` or
    /// `d`. Without such a suffix, it is in seconds.
    pub(super) fn time(&self, given: Given<'_>) -> Result<u64, WorkloadError> {
        time_ns(given.value).ok_or_else(|| {
            let problem = format!("`{}` is not a time from 0 to 30 days", given.value);
            self.error(given.name, problem, "write seconds, or a number that ends in us, ms, s, m, h or d")
        })
    }

    /// Parses a size, at least 1, and returns bytes. The suffixes `k`, `m`, `g` and `t`, in lower
    /// or upper case, multiply an integer by a power of 1024. A number without a suffix is in units
    /// of `unit` bytes.
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
            self.error(
                given.name,
                problem,
                format!(
                    "write a whole number of {unit}, or a number that ends in k, m, g \
                or t"
                ),
            )
        })
    }
}

/// Returns whether the value of an option is optional. The declaration then has the value's name in
/// brackets. An optional value can only follow `=`.
fn is_optional(value: &str) -> bool {
    value.starts_with('[')
}

/// Parses a time of at most 30 days: see [`Line::time`].
pub(crate) fn time_ns(text: &str) -> Option<u64> {
    const DAY_S: f64 = 86_400.0;
    const ENDINGS: [(&str, f64); 6] =
        [("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3_600.0), ("d", DAY_S)];
    let ending = ENDINGS.iter().find(|(ending, _)| text.ends_with(ending));
    let (ending, unit_s) = ending.copied().unwrap_or(("", 1.0));
    let number = text.strip_suffix(ending)?;
    let is_plain = number.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let seconds = number.parse::<f64>().ok().filter(|_| is_plain)? * unit_s;
    (0.0..=30.0 * DAY_S).contains(&seconds).then(|| (seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[AppOption] = &[
        AppOption { name: "-s", value: Some("SIZE"), about: "" },
        AppOption { name: "-e", value: None, about: "" },
        AppOption { name: "-o", value: None, about: "" },
    ];
    const LONG: &[AppOption] = &[
        AppOption { name: "--time", value: Some("S"), about: "" },
        AppOption { name: "--fast", value: None, about: "" },
        AppOption { name: "-t", value: None, about: "" },
    ];

    #[test]
    fn long_options_may_be_between_operands() {
        for text in ["p --time=10 --fast run -t x", "p run --time 10 --fast x -t"] {
            let (given, operands) = Line::new(text).options(LONG).unwrap();
            let given: Vec<_> = given.iter().map(|given| (given.name, given.value)).collect();
            assert_eq!(given, [("--time", "10"), ("--fast", ""), ("-t", "")], "{text}");
            assert_eq!(operands, ["run", "x"]);
        }
        for wrong in ["p --tim=3", "p --time", "p --time=", "p -f"] {
            assert!(Line::new(wrong).options(LONG).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_have_units_and_limits() {
        let of = |text| time_ns(text);
        assert_eq!(of("10"), Some(10_000_000_000));
        assert_eq!(of("1.5s"), Some(1_500_000_000));
        assert_eq!(of("250us"), Some(250_000));
        assert_eq!(of("20ms"), Some(20_000_000));
        assert_eq!((of("2m"), of("0")), (Some(120_000_000_000), Some(0)));
        assert!(["", "s", "-1", "inf", "nan", "1e99", "x", "31d", "+1"].iter().all(|text| of(text).is_none()));
    }

    fn letters(text: &str) -> Result<Vec<(&'static str, String)>, String> {
        let given = Line::new(text).letters(KNOWN).map_err(|error| error.to_string())?;
        Ok(given.iter().map(|given| (given.name, given.value.to_owned())).collect())
    }

    #[test]
    fn options_are_parsed_like_getopt() {
        let expected = vec![("-e", String::new()), ("-o", String::new()), ("-s", "64".to_owned())];
        for text in ["p -e -o -s 64", "p -eo -s64", "p  -eos 64 ", "p -eos64"] {
            assert_eq!(letters(text).as_ref(), Ok(&expected), "{text}");
        }
        assert_eq!(letters("p -x").unwrap_err(), "p -x: -x: unknown option; p knows -s SIZE, -e, -o");
        assert_eq!(letters("p -s").unwrap_err(), "p -s: -s: has no value; write -s SIZE");
        assert!(letters("p 64").is_err());
        assert!(letters("p -+e").is_err());
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
