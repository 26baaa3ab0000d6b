//! Values of a table as programs, spreadsheets and people write them: numbers with units (`4K`,
//! `294us`), exponents, hexadecimal digits, separators of thousands, and clock times.

use std::borrow::Cow;

use iosched::{MICROSECOND_NS, MILLISECOND_NS, SECOND_NS, SECTOR_BYTES};

use super::columns::{Column, Delimiter};

/// Words that stand for a missing number.
const MISSING: [&str; 7] = ["-", "nan", "na", "n/a", "null", "none", "?"];
/// Units of sizes, in small letters. All are powers of 1024, because requests are whole sectors.
const SIZES: [(u64, &[&str]); 5] = [
    (1, &["b", "byte", "bytes"]),
    (1 << 10, &["k", "kb", "kib"]),
    (1 << 20, &["m", "mb", "mib"]),
    (1 << 30, &["g", "gb", "gib"]),
    (1 << 40, &["t", "tb", "tib"]),
];
/// Units of times.
const TIMES: [(u64, &[&str]); 4] = [
    (1, &["ns", "nsec"]),
    (MICROSECOND_NS, &["us", "usec", "µs", "μs"]),
    (MILLISECOND_NS, &["ms", "msec"]),
    (SECOND_NS, &["s", "sec", "secs"]),
];

/// Returns a value in the form that [`TableRow`](super::TableRow) accepts: digits with a decimal
/// point. Also returns the column with the unit of this value. Returns `None` if the value is
/// ambiguous or rounded.
pub(super) fn plain(value: &[u8], column: Column, delimiter: Delimiter) -> Option<(Column, Cow<'_, [u8]>)> {
    let mut others = value.iter().filter(|b| !b.is_ascii_digit());
    let is_plain = others.next().is_none_or(|b| *b == b'.' && column.has_fraction()) && others.next().is_none();
    if is_plain || !column.is_number() {
        return Some((column, value.into()));
    }
    let text = String::from_utf8_lossy(value);
    let is_optional = matches!(column, Column::Latency(_) | Column::Queued(_) | Column::Completion(_));
    if is_optional && MISSING.iter().any(|missing| text.eq_ignore_ascii_case(missing)) {
        return Some((column, Cow::Borrowed(b"")));
    }
    let is_time = matches!(column, Column::Arrival(_) | Column::Completion(_));
    if let Some(clock) = Clock::of(&text).filter(|_| is_time) {
        return Some((column.in_units_of(SECOND_NS), clock.seconds.into_bytes().into()));
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    if let Some(digits) = digits.filter(|_| !column.has_fraction()) {
        let number = u64::from_str_radix(digits, 16).ok()?;
        return Some((column, number.to_string().into_bytes().into()));
    }
    let (number, unit) = with_unit(&text, column)?;
    let number = separated(&without_exponent(number)?, column, delimiter)?;
    let column = unit.map_or(column, |unit| column.in_units_of(unit));
    let integer_end = number.find('.').filter(|dot| number[dot + 1..].bytes().all(|b| b == b'0'));
    let number = integer_end.map_or(number.as_str(), |dot| &number[..dot]);
    let is_size = matches!(column, Column::Offset(_) | Column::Length(_));
    let is_exact = unit.is_none() || !is_size || is_whole_sectors(number, unit.unwrap_or(1));
    is_exact.then(|| (column, number.as_bytes().to_vec().into()))
}

/// Returns the number in front of a unit, and the size of the unit in bytes or ns. Returns `None`
/// for a unit that the column does not have.
fn with_unit(text: &str, column: Column) -> Option<(&str, Option<u64>)> {
    let number = text.trim_end_matches(|c: char| c.is_alphabetic());
    let word = text[number.len()..].to_lowercase();
    let units: &[(u64, &[&str])] = match column {
        _ if word.is_empty() => return Some((number, None)),
        Column::OffsetBytes | Column::LengthBytes | Column::Offset(_) | Column::Length(_) => &SIZES,
        Column::Arrival(_) | Column::Completion(_) | Column::Latency(_) | Column::Queued(_) => &TIMES,
        _ => return None,
    };
    let unit = units.iter().find(|(_, names)| names.contains(&word.as_str()))?.0;
    Some((number.trim_end(), Some(unit)))
}

/// Returns whether `number` units of `unit` bytes are a whole number of sectors. Numbers that a
/// program rounded for people, such as 1.3 MB, are not whole sectors.
fn is_whole_sectors(number: &str, unit: u64) -> bool {
    let Some((integer, fraction)) = number.split_once('.') else { return true };
    let digits: Option<u128> = format!("{integer}{fraction}").parse().ok();
    let scale = u32::try_from(fraction.len()).ok().and_then(|digits| 10u128.checked_pow(digits));
    let bytes = digits.and_then(|digits| digits.checked_mul(u128::from(unit)));
    let sectors = scale.and_then(|scale| scale.checked_mul(u128::from(SECTOR_BYTES)));
    bytes.zip(sectors).is_some_and(|(bytes, sectors)| bytes % sectors == 0)
}

/// Returns a number such as `2.94e-04` without its exponent. Returns `None` if the exponent
/// replaces digits, as in `1.28E+17`.
fn without_exponent(number: &str) -> Option<Cow<'_, str>> {
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else { return Some(number.into()) };
    let exponent: i32 = exponent.parse().ok().filter(|power| (-99..=99).contains(power))?;
    let mantissa = mantissa.replace(',', ".");
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((&mantissa, ""));
    let is_number = integer.len() == 1 && format!("{integer}{fraction}").bytes().all(|b| b.is_ascii_digit());
    let is_zero = integer == "0" && fraction.bytes().all(|b| b == b'0');
    if !is_number || !is_zero && exponent > fraction.len() as i32 {
        return None;
    }
    Some(match usize::try_from(exponent) {
        _ if is_zero => "0".into(),
        Ok(power) => format!("{integer}{}.{}", &fraction[..power], &fraction[power..]).into(),
        Err(_) => format!("0.{}{integer}{fraction}", "0".repeat(exponent.unsigned_abs() as usize - 1)).into(),
    })
}

/// Returns a number without separators of thousands, and with a decimal point for a decimal comma.
/// Returns `None` if the comma can be a decimal comma or a separator of thousands.
fn separated(number: &str, column: Column, delimiter: Delimiter) -> Option<String> {
    // Blanks, including non-breaking ones, and apostrophes only separate thousands.
    let number = without_thousands(number, |c| matches!(c, ' ' | '\u{a0}' | '\u{202f}' | '\'' | '\u{2019}'));
    let (commas, dots) = (number.matches(',').count(), number.matches('.').count());
    if delimiter != Delimiter::Byte(b',') && number.contains('.') {
        let comma = number.find(',').unwrap_or(number.len());
        if commas <= 1 && (dots > 1 || number.find('.').is_some_and(|dot| dot < comma && commas == 1)) {
            let integer = without_thousands(&number[..comma], |c| c == '.');
            return (!integer.contains('.')).then(|| integer + &number[comma..].replace(',', "."));
        }
    }
    let joined = without_thousands(&number, |c| c == ',');
    let is_grouped = joined.len() < number.len();
    match (commas, column.has_fraction()) {
        (0, _) => Some(number),
        (1, true) if delimiter != Delimiter::Byte(b',') && dots == 0 => {
            // If semicolons separate the columns, the comma is a decimal comma.
            (delimiter == Delimiter::Byte(b';') || !is_grouped).then(|| number.replace(',', "."))
        }
        _ => Some(joined),
    }
}

/// Returns a number without the separators between its groups of three digits. Returns the text
/// unchanged if the groups have other lengths.
fn without_thousands(text: &str, is_between: fn(char) -> bool) -> String {
    let end = |mark: char| if is_between(mark) { text.len() } else { text.find(mark).unwrap_or(text.len()) };
    let integer = &text[..end('.').min(end(','))];
    let mut groups = integer.split(is_between);
    let first = groups.next().unwrap_or("");
    let is_grouped = (1..=3).contains(&first.len())
        && !first.starts_with('0')
        && groups.all(|group| group.len() == 3 && group.bytes().all(|b| b.is_ascii_digit()));
    if is_grouped { integer.replace(is_between, "") + &text[integer.len()..] } else { text.to_owned() }
}

/// A time of day, possibly with a date.
pub(super) struct Clock {
    /// Seconds since midnight, or since 1970 if there is a date. Keeps the decimals of the text.
    seconds: String,
    /// Whether there is a date. Without a date, the time begins at 0 again on the next day.
    pub(super) is_dated: bool,
}

impl Clock {
    /// Parses `23:59:59.507829`. A date (`2026-11-20` or `2026/11/20`) may precede it, and a time
    /// zone (`Z` or `+01:00`) may follow.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (date, time) = match text.split_once(['T', ' ']) {
            Some((date, time)) => (Some(date), time),
            None => (None, text),
        };
        let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
        let (time, zone) = time.split_at(zone);
        let (integer, decimals) = match time.find(['.', ',']) {
            Some(mark) => (&time[..mark], format!(".{}", &time[mark + 1..])),
            None => (time, String::new()),
        };
        let number = |text: &str, most: i64| {
            let is_number = (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<i64>().ok().filter(|number| is_number && *number <= most)
        };
        let mut parts = integer.split(':');
        let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
        let of_day = number(hours, 23)? * 3_600 + number(minutes, 59)? * 60 + number(seconds, 60)?;
        let is_time = parts.next().is_none() && decimals.bytes().skip(1).all(|b| b.is_ascii_digit());
        let before_1970 = match date {
            Some(date) => {
                let mut parts = date.split(['-', '/']);
                let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
                let is_date = parts.next().is_none() && year.len() == 4;
                let (month, day) = (number(month, 12).filter(|_| is_date)?, number(day, 31)?);
                days(number(year, 9_999)?, month, day) * 86_400 - offset_s(zone)?
            }
            None if zone.is_empty() => 0,
            None => return None,
        };
        let seconds = u64::try_from(before_1970 + of_day).ok().filter(|_| is_time)?;
        Some(Self { seconds: format!("{seconds}{decimals}"), is_dated: date.is_some() })
    }
}

/// Returns the offset of a time zone from UTC, s. The zone is empty, `Z`, `+01:00`, `+0100` or
/// `+01`.
fn offset_s(zone: &str) -> Option<i64> {
    let digits = zone.get(1..).unwrap_or("").replace(':', "");
    match (zone.as_bytes().first(), digits.len()) {
        (None, _) | (Some(b'Z'), 0) => Some(0),
        (Some(sign @ (b'+' | b'-')), 2 | 4) => {
            let number = |part: &str| part.parse::<u8>().ok().map(i64::from);
            let minutes = digits.get(2..).filter(|minutes| !minutes.is_empty()).map_or(Some(0), number)?;
            let minutes = number(digits.get(..2)?)? * 60 + minutes;
            Some(if *sign == b'+' { minutes * 60 } else { -minutes * 60 })
        }
        _ => None,
    }
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar.
const fn days(year: i64, month: i64, day: i64) -> i64 {
    // If the year begins in March, the leap day is at the end of the year.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year / 4 - year / 100 + year / 400 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, column: &str, delimiter: u8) -> Option<(Column, String)> {
        let column = Column::of_name(column).unwrap();
        let (column, value) = plain(text.as_bytes(), column, Delimiter::Byte(delimiter))?;
        Some((column, String::from_utf8(value.into_owned()).unwrap()))
    }

    #[track_caller]
    fn is(text: &str, column: &str, expected: Column, value: &str) {
        assert_eq!(of(text, column, b';'), Some((expected, value.to_owned())), "{text}");
    }

    #[test]
    fn unit_after_a_number_replaces_the_unit_of_the_column() {
        for text in ["4K", "4k", "4 KB", "4KiB"] {
            is(text, "length_bytes", Column::Length(1_024), "4");
        }
        is("1.5M", "length_kib", Column::Length(1 << 20), "1.5");
        is("20G", "offset_bytes", Column::Offset(1 << 30), "20");
        is("4096B", "length_kib", Column::Length(1), "4096");
        is("294us", "latency_ms", Column::Latency(1_000), "294");
        is("0.294 ms", "latency_us", Column::Latency(1_000_000), "0.294");
        is("0.007829s", "time_s", Column::Arrival(SECOND_NS), "0.007829");
        // Rounded sizes, and units of other columns.
        for (text, column) in
            [("1.3M", "length_bytes"), ("4K", "nr_sectors"), ("4ms", "length_bytes"), ("4K", "time_s")]
        {
            assert_eq!(of(text, column, b','), None, "{text}");
        }
    }

    #[test]
    fn exponents_are_accepted_if_the_number_is_exact() {
        is("2.941672e-04", "latency_s", Column::Latency(SECOND_NS), "0.0002941672");
        is("1.78927505408000000e+11", "offset_bytes", Column::OffsetBytes, "178927505408");
        is("4.096E+03", "length_bytes", Column::LengthBytes, "4096");
        is("0.000e+00", "offset_bytes", Column::OffsetBytes, "0");
        is("1,5e+00", "time_ms", Column::Arrival(MILLISECOND_NS), "1.5");
        for rounded in ["1.28E+17", "1e3", "1.78928e+11"] {
            assert_eq!(of(rounded, "offset_bytes", b';'), None, "{rounded}");
        }
    }

    #[test]
    fn whole_numbers_may_have_a_fraction_of_zeros_or_be_hexadecimal() {
        is("178927505408.0", "offset_bytes", Column::OffsetBytes, "178927505408");
        is("0x14d47488", "sector", Column::Sector, "349467784");
        assert_eq!(of("4096.5", "length_bytes", b',').unwrap().1, "4096.5");
        assert_eq!(of("0xzz", "sector", b','), None);
    }

    #[test]
    fn dots_may_separate_thousands_before_a_decimal_comma() {
        is("178.927.505.408", "offset_bytes", Column::OffsetBytes, "178927505408");
        is("1.234,50", "time_ms", Column::Arrival(MILLISECOND_NS), "1234.50");
        for unclear in ["1.23.4", "12.34,5"] {
            assert_eq!(of(unclear, "time_ms", b';'), None, "{unclear}");
        }
    }

    #[test]
    fn latency_may_be_a_placeholder_word() {
        for text in ["NaN", "-", "N/A", "null"] {
            is(text, "latency_ms", Column::Latency(MILLISECOND_NS), "");
        }
        assert_eq!(of("NaN", "time_ms", b','), None);
    }

    #[test]
    fn clock_times_and_dates_are_seconds() {
        let seconds = |text: &str| Clock::of(text).map(|clock| (clock.seconds, clock.is_dated));
        assert_eq!(seconds("23:59:59.507829"), Some(("86399.507829".to_owned(), false)));
        assert_eq!(seconds("00:00:01,5"), Some(("1.5".to_owned(), false)));
        for text in [
            "2026-11-20 23:59:59.5",
            "2026/11/20T23:59:59.5Z",
            "2026-11-21T00:59:59.5+01:00",
            "2026-11-20 18:59:59.5-0500",
        ] {
            assert_eq!(seconds(text), Some(("1795219199.5".to_owned(), true)), "{text}");
        }
        assert_eq!(seconds("1970-01-01T00:00:00").unwrap().0, "0");
        assert_eq!(seconds("2000-03-01 00:00:00").unwrap().0, "951868800");
        for wrong in ["23:59", "24:00:00", "1:2:3:4", "2026-13-01 00:00:00", "20-11-2026 00:00:00", "x", "1:2:3+01"] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
