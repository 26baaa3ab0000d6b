//! Arithmetic in values: `(1024 * 4 + 2) * 2`, with suffixes (`(4k * 2)`). Results are exact where
//! possible.
//!
//! The operators are the same as in fio: `+ - * / % ^` and parentheses. `^` is right-associative.
//! Integers stay integers. A division with a remainder, a decimal point or a negative exponent
//! gives a real number. Only the final result is rounded, towards zero.

use super::number::Scale;

/// Largest nesting of parentheses and right-associative operators.
const DEPTH_MAX: usize = 64;

/// Value of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Amount {
    Whole(i128),
    Real(f64),
}

impl Amount {
    #[expect(clippy::cast_precision_loss, reason = "a number with a fraction has a rounding error anyway")]
    fn real(self) -> f64 {
        match self {
            Self::Whole(integer) => integer as f64,
            Self::Real(real) => real,
        }
    }
}

/// Evaluates an expression and rounds it towards zero. `scale` gives the meaning of suffixes.
///
/// # Errors
/// The problem of the expression, as a message.
pub(super) fn evaluate(text: &str, scale: Scale) -> Result<i128, String> {
    let mut parser = Parser { text, at: 0, depth: 0, scale };
    let amount = parser.sum()?;
    parser.skip_blanks();
    if parser.at < text.len() {
        return Err(format!("`{}` is not expected here", &text[parser.at..]));
    }
    match amount {
        Amount::Whole(integer) => Ok(integer),
        #[expect(clippy::cast_possible_truncation, reason = "checked")]
        Amount::Real(real) if real.is_finite() && real.abs() < 1e30 => Ok(real as i128),
        Amount::Real(_) => Err(TOO_LARGE.to_owned()),
    }
}

const TOO_LARGE: &str = "the result is too large";

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    scale: Scale,
}

impl Parser<'_> {
    fn skip_blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn peek(&mut self) -> Option<char> {
        self.skip_blanks();
        self.text[self.at..].chars().next()
    }

    /// Consumes and returns the next character if it is in `wanted`.
    fn take(&mut self, wanted: &[char]) -> Option<char> {
        let next = self.peek().filter(|next| wanted.contains(next))?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} levels of parentheses"));
        }
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    fn sum(&mut self) -> Result<Amount, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.take(&['+', '-']) {
            let right = self.product()?;
            left = combine(operator, left, right)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Amount, String> {
        let mut left = self.signed()?;
        while let Some(operator) = self.take(&['*', '/', '%']) {
            let right = self.signed()?;
            left = combine(operator, left, right)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<Amount, String> {
        match self.take(&['-', '+']) {
            Some('-') => self.deeper(|parser| combine('-', Amount::Whole(0), parser.signed()?)),
            Some(_) => self.deeper(Self::signed),
            None => self.power(),
        }
    }

    fn power(&mut self) -> Result<Amount, String> {
        let base = self.operand()?;
        match self.take(&['^']) {
            Some(_) => self.deeper(|parser| combine('^', base, parser.signed()?)),
            None => Ok(base),
        }
    }

    fn operand(&mut self) -> Result<Amount, String> {
        match self.peek() {
            Some('(') => {
                self.at += 1;
                let inner = self.deeper(Self::sum)?;
                let close = self.take(&[')']);
                close.ok_or_else(|| "a parenthesis is not closed".to_owned()).and_then(|_| self.suffixed(inner))
            }
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) => Err(format!("expected a number, found `{c}`")),
            None => Err("expected a number, found the end of the value".to_owned()),
        }
    }

    /// Parses a number and its suffix. The number is hexadecimal, or decimal with an optional
    /// point.
    fn number(&mut self) -> Result<Amount, String> {
        let rest = &self.text[self.at..];
        let hexadecimal = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"));
        let (amount, length) = if let Some(digits) = hexadecimal {
            let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
            let integer = i128::from_str_radix(&digits[..length], 16).map_err(|_| not_a_number(rest))?;
            (Amount::Whole(integer), 2 + length)
        } else {
            let length = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
            let digits = &rest[..length];
            let integer = digits.parse().map(Amount::Whole).ok();
            let amount = integer.or_else(|| digits.parse().map(Amount::Real).ok());
            (amount.ok_or_else(|| not_a_number(rest))?, length)
        };
        self.at += length;
        self.suffixed(amount)
    }

    /// Parses a suffix directly after a number or a parenthesis.
    fn suffixed(&mut self, amount: Amount) -> Result<Amount, String> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        if length == 0 {
            return Ok(amount);
        }
        let suffix = &rest[..length];
        let factor = self
            .scale
            .factor(suffix)
            .ok_or_else(|| format!("`{suffix}` is not a unit; write {}", self.scale.suffixes()))?;
        self.at += length;
        combine('*', amount, Amount::Whole(factor.into()))
    }
}

fn not_a_number(text: &str) -> String {
    format!("`{text}` is not a number")
}

fn combine(operator: char, left: Amount, right: Amount) -> Result<Amount, String> {
    let zero_divides = matches!(operator, '/' | '%') && right.real() == 0.0;
    if zero_divides {
        return Err("the expression divides by zero".to_owned());
    }
    if let (Amount::Whole(left), Amount::Whole(right)) = (left, right) {
        let integer = match operator {
            '+' => left.checked_add(right),
            '-' => left.checked_sub(right),
            '*' => left.checked_mul(right),
            '/' if left % right == 0 => Some(left / right),
            '%' => left.checked_rem(right),
            '^' if right >= 0 => u32::try_from(right).ok().and_then(|exponent| left.checked_pow(exponent)),
            _ => return real(operator, Amount::Whole(left), Amount::Whole(right)),
        };
        return integer.map(Amount::Whole).ok_or_else(|| TOO_LARGE.to_owned());
    }
    real(operator, left, right)
}

fn real(operator: char, left: Amount, right: Amount) -> Result<Amount, String> {
    let (left, right) = (left.real(), right.real());
    let result = match operator {
        '+' => left + right,
        '-' => left - right,
        '*' => left * right,
        '/' => left / right,
        '%' => left % right,
        _ => left.powf(right),
    };
    if result.is_finite() { Ok(Amount::Real(result)) } else { Err(TOO_LARGE.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: Scale = Scale::Quantity { kb_base: 1024 };

    #[test]
    fn operators_have_the_usual_precedence() {
        for (text, expected) in [
            ("(1024*4+2)*2", 8196),
            ("1+2*3", 7),
            ("(1+2)*3", 9),
            ("2^3^2", 512),
            ("-2^2", -4),
            ("10-3-4", 3),
            ("100/7*7", 100),
            ("7%4", 3),
            ("1.5*1k", 1536),
            ("4k*2", 8192),
            ("(1+1)m", 2 << 20),
            ("0x10k", 16384),
            ("2^-1*8", 4),
            (" ( 1 + 1 ) ", 2),
        ] {
            assert_eq!(evaluate(text, BYTES), Ok(expected), "{text}");
        }
    }

    #[test]
    fn errors_of_expressions_state_the_reason() {
        for (text, why) in [
            ("", "found the end"),
            ("(1", "not closed"),
            ("1)", "not expected"),
            ("1/0", "divides by zero"),
            ("1%(2-2)", "divides by zero"),
            ("4q", "`q`"),
            ("2^1000", "too large"),
            ("1..2", "not a number"),
            ("é", "expected a number"),
            ("0x", "not a number"),
        ] {
            let error = evaluate(text, BYTES).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(evaluate(&"(".repeat(100_000), BYTES).unwrap_err().contains("levels"));
        assert!(evaluate(&"-".repeat(100_000), BYTES).unwrap_err().contains("levels"));
        assert!(evaluate(&"2^".repeat(100_000), BYTES).unwrap_err().contains("levels"));
    }

    #[test]
    fn times_use_time_suffixes() {
        let time = Scale::Time { unit_us: 1_000_000 };
        assert_eq!(evaluate("1s+500ms", time), Ok(1_500_000));
        assert_eq!(evaluate("2m+7", time), Ok(120_000_007));
    }
}
