//! Numbers with suffixes: quantities (`4k`, `0x200`), times (`10ms`), and their factors.

use super::arithmetic;

/// Meaning of suffixes, and the unit of a number without a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// Bytes or a plain number: `k`, `m`, `g`, `t`, `p`, optionally followed by `i` and `b`.
    Quantity {
        /// If 1024, `k` is 1024 and `ki` is 1000. If 1000, `k` is 1000 and `ki` is 1024, as in the
        /// standards.
        kb_base: u32,
    },
    /// A time, us: `us`, `ms`, `s`, `m`, `h`, `d`.
    Time {
        /// Unit of a number without a suffix, us.
        unit_us: u64,
    },
}

impl Scale {
    /// Returns the factor of a suffix.
    pub(super) fn factor(self, suffix: &str) -> Option<u64> {
        let suffix = suffix.to_ascii_lowercase();
        match self {
            Self::Time { .. } => Some(match suffix.as_str() {
                "us" | "usec" => 1,
                "ms" | "msec" => 1_000,
                "s" | "sec" => 1_000_000,
                "m" => 60_000_000,
                "h" => 3_600_000_000,
                "d" => 86_400_000_000,
                _ => return None,
            }),
            Self::Quantity { kb_base } => {
                let unit = suffix.strip_suffix('b').unwrap_or(&suffix);
                let (unit, i) = unit.strip_suffix('i').map_or((unit, false), |unit| (unit, true));
                let power = match (unit, i) {
                    ("", false) => return Some(1),
                    ("k", _) => 1,
                    ("m", _) => 2,
                    ("g", _) => 3,
                    ("t", _) => 4,
                    ("p", _) => 5,
                    _ => return None,
                };
                let base: u64 = if (kb_base == 1000) == i { 1024 } else { 1000 };
                Some(base.pow(power))
            }
        }
    }

    /// Returns the valid suffixes, for messages.
    pub(super) const fn suffixes(self) -> &'static str {
        match self {
            Self::Quantity { .. } => "k, m, g, t or p",
            Self::Time { .. } => "us, ms, s, m, h or d",
        }
    }

    /// Returns the unit of a number without a suffix.
    const fn unit(self) -> u64 {
        match self {
            Self::Quantity { .. } => 1,
            Self::Time { unit_us } => unit_us,
        }
    }
}

/// Parses a number: digits or `0x` with a suffix, or an expression that begins with a parenthesis.
/// Times are in us. As in fio, a number without a suffix in an expression is also in us. With
/// `bare`, an expression does not need parentheses, as after fio's keywords.
///
/// # Errors
/// The problem of the number, as a message.
pub(super) fn read(text: &str, scale: Scale, bare: bool) -> Result<i128, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("the number is missing".to_owned());
    }
    if text.starts_with('"') || text.starts_with('\'') {
        return Err("a number stands without quotes".to_owned());
    }
    if text.starts_with('(') || (bare && text.contains(['+', '-', '*', '/', '%', '^'])) {
        return arithmetic::evaluate(text, scale);
    }
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None => (10, digits),
    };
    let length = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    let (digits, suffix) = digits.split_at(length);
    if digits.is_empty() {
        return Err(format!("`{text}` is not a number"));
    }
    if suffix.starts_with('.') {
        return Err(format!("`{text}` is not a whole number; fio reads it as {digits}"));
    }
    if suffix.contains(['-', ':', ',']) {
        return Err(format!("`{text}` is more than one number"));
    }
    let number = i128::from_str_radix(digits, radix).map_err(|_| "the number is too large".to_owned())?;
    let factor = match suffix.trim() {
        "" => scale.unit(),
        suffix => {
            scale.factor(suffix).ok_or_else(|| format!("`{suffix}` is not a unit; write {}", scale.suffixes()))?
        }
    };
    let number = number.checked_mul(factor.into()).ok_or_else(|| "the number is too large".to_owned())?;
    Ok(if negative { -number } else { number })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Scale = Scale::Quantity { kb_base: 1024 };

    #[test]
    fn suffixes_follow_kb_base() {
        let standard = Scale::Quantity { kb_base: 1000 };
        for (text, traditional, by_standard) in [
            ("4096", 4096, 4096),
            ("4k", 4096, 4000),
            ("4KB", 4096, 4000),
            ("4ki", 4000, 4096),
            ("4KiB", 4000, 4096),
            ("1m", 1 << 20, 1_000_000),
            ("1t", 1 << 40, 1_000_000_000_000),
            ("2P", 2 << 50, 2_000_000_000_000_000),
            ("010k", 10240, 10000),
            ("0x10", 16, 16),
            ("7b", 7, 7),
            ("-8k", -8192, -8000),
        ] {
            assert_eq!(read(text, BYTES, false), Ok(traditional), "{text}");
            assert_eq!(read(text, standard, false), Ok(by_standard), "{text}");
        }
    }

    #[test]
    fn invalid_numbers_are_refused() {
        for text in [
            "",
            "k",
            "4x",
            "4kk",
            "4i",
            "4 4",
            "1.5m",
            "4k-8k",
            "\"4k\"",
            "0x",
            "99999999999999999999999999999999999999999999",
        ] {
            assert!(read(text, BYTES, false).is_err(), "{text}");
        }
    }

    #[test]
    fn time_without_suffix_has_the_unit_of_the_option() {
        let seconds = Scale::Time { unit_us: 1_000_000 };
        assert_eq!(read("5", seconds, false), Ok(5_000_000));
        assert_eq!(read("5ms", seconds, false), Ok(5_000));
        assert_eq!(read("1D", seconds, false), Ok(86_400_000_000));
        assert_eq!(read("(2*30)", seconds, false), Ok(60));
        assert_eq!(read("(2s*30)", seconds, false), Ok(60_000_000));
        assert!(read("1d2h", seconds, false).is_err());
    }
}
