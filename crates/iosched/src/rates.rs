//! Reservations and limits of cgroups, which only mclock uses.

use std::fmt;
use std::str::FromStr;

use crate::time::SECOND_NS;

/// File of a cgroup with its reservation, weight and limit.
pub(crate) const MCLOCK_FILE: &str = "io.mclock";
/// Largest rate in bytes per second: one exabyte per second.
const RATE_MAX: u64 = 1_000_000_000_000_000_000;
/// Largest rate in I/Os per second: one I/O per nanosecond.
const IOS_MAX: u64 = SECOND_NS;

/// Units of bytes, largest first: name and number of bytes.
const UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// Amount of service: I/Os and bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// I/Os, in units of 1/65,536 ([`Work::IO`]). A long request counts as several I/Os.
    pub ios: u64,
    /// Bytes of data.
    pub bytes: u64,
}

impl Work {
    /// One I/O, in the unit of [`Work::ios`].
    pub const IO: u64 = 1 << 16;

    /// Returns the work of one request. A request of more than `io_bytes` counts as several I/Os,
    /// in proportion to its length.
    #[must_use]
    pub fn of_request(bytes: u64, io_bytes: u64) -> Self {
        let ios = u128::from(bytes) * u128::from(Self::IO) / u128::from(io_bytes.max(1));
        Self { ios: u64::try_from(ios).unwrap_or(u64::MAX).max(Self::IO), bytes }
    }

    /// Returns the sum of two amounts. A sum beyond the range is the largest amount.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { ios: self.ios.saturating_add(other.ios), bytes: self.bytes.saturating_add(other.bytes) }
    }

    /// Returns the difference of two amounts. I/Os or bytes below 0 become 0.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self { ios: self.ios.saturating_sub(other.ios), bytes: self.bytes.saturating_sub(other.bytes) }
    }
}

/// Rate of service: I/Os per second, or bytes per second.
///
/// The notation is a whole number of I/Os per second (`500`), or a number with a unit of bytes
/// (`50MB`, `8MiB`). The suffix `/s` is optional.
///
/// ```
/// use iosched::Rate;
///
/// let rate: Rate = "50MB/s".parse()?;
/// assert_eq!((rate, rate.to_string().as_str()), (Rate::Bytes(50_000_000), "50MB"));
/// assert_eq!("500".parse(), Ok(Rate::Ios(500)));
/// assert!("50 apples".parse::<Rate>().is_err());
/// # Ok::<(), iosched::RateError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rate {
    /// I/Os per second, 1 to 1,000,000,000.
    Ios(u64),
    /// Bytes per second, 1 to 10^18.
    Bytes(u64),
}

/// Error for a text that is not a rate.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{given:?} is not a rate; write I/Os per second, such as 500, or bytes per second with a unit, such as 50MB; a \
     rate is at least 1"
)]
pub struct RateError {
    given: String,
}

impl Rate {
    /// Returns the time in ns that `work` takes at this rate, as a fraction.
    fn time(self, work: Work) -> (u128, u128) {
        let (amount, per_second) = match self {
            Self::Ios(rate) => (work.ios, u128::from(rate) * u128::from(Work::IO)),
            Self::Bytes(rate) => (work.bytes, u128::from(rate)),
        };
        (u128::from(amount) * u128::from(SECOND_NS), per_second.max(1))
    }

    /// Returns the time in ns that `work` takes at this rate, rounded down: for reservations.
    pub(crate) fn reserved_ns(self, work: Work) -> u64 {
        let (time, per_ns) = self.time(work);
        u64::try_from(time / per_ns).unwrap_or(u64::MAX)
    }

    /// Returns the time in ns that `work` takes at this rate, rounded up: for limits.
    pub(crate) fn limited_ns(self, work: Work) -> u64 {
        let (time, per_ns) = self.time(work);
        u64::try_from(time.div_ceil(per_ns)).unwrap_or(u64::MAX)
    }

    /// Returns whether this rate is above `other`, if both are in I/Os or both are in bytes.
    const fn is_above(self, other: Self) -> bool {
        match (self, other) {
            (Self::Ios(this), Self::Ios(other)) | (Self::Bytes(this), Self::Bytes(other)) => this > other,
            _ => false,
        }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        let wrong = || RateError { given: given.to_owned() };
        let text = given.trim();
        let text = text.strip_suffix("/s").unwrap_or(text);
        let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
        let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
        let unit = text[digits..].trim();
        let rate = match unit {
            "" | "IOPS" => Self::Ios(Some(number).filter(|number| (1..=IOS_MAX).contains(number)).ok_or_else(wrong)?),
            unit => {
                let &(_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
                let bytes = number.checked_mul(factor).filter(|bytes| (1..=RATE_MAX).contains(bytes));
                Self::Bytes(bytes.ok_or_else(wrong)?)
            }
        };
        Ok(rate)
    }
}

impl fmt::Display for Rate {
    /// Writes the rate in the notation that [`Rate`] parses.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Ios(rate) => write!(f, "{rate}"),
            Self::Bytes(rate) => {
                let (unit, factor) = UNITS.into_iter().find(|(_, factor)| rate % factor == 0).unwrap_or(("B", 1));
                write!(f, "{}{unit}", rate / factor)
            }
        }
    }
}

/// Reservation and limit of a cgroup. Weights are in [`Cgroup::weight`](crate::Cgroup::weight).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Rates {
    /// Service that the group gets even if other groups want more. `None`: no reservation.
    pub reservation: Option<Rate>,
    /// Service that the group never exceeds. `None`: no limit.
    pub limit: Option<Rate>,
}

impl Rates {
    /// Returns whether the reservation is at most the limit. A rate in I/Os and a rate in bytes are
    /// not compared.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        !matches!((self.reservation, self.limit), (Some(reservation), Some(limit)) if reservation.is_above(limit))
    }

    /// Returns the text of a reservation: a rate, or 0 for none.
    #[must_use]
    pub fn reservation_text(&self) -> String {
        self.reservation.map_or_else(|| "0".to_owned(), |rate| rate.to_string())
    }

    /// Returns the text of a limit: a rate, or `max` for none.
    #[must_use]
    pub fn limit_text(&self) -> String {
        self.limit.map_or_else(|| "max".to_owned(), |rate| rate.to_string())
    }

    /// Parses a reservation: a rate, or 0 for none.
    ///
    /// # Errors
    /// Fails if the text is not a rate.
    pub fn parse_reservation(text: &str) -> Result<Option<Rate>, RateError> {
        if text == "0" { Ok(None) } else { text.parse().map(Some) }
    }

    /// Parses a limit: a rate, or `max` for none.
    ///
    /// # Errors
    /// Fails if the text is not a rate.
    pub fn parse_limit(text: &str) -> Result<Option<Rate>, RateError> {
        if text == "max" { Ok(None) } else { text.parse().map(Some) }
    }
}

/// Parsed text for the file io.mclock: the values that the text sets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct RatesWrite {
    reservation: Option<Option<Rate>>,
    limit: Option<Option<Rate>>,
    pub(crate) weight: Option<u32>,
}

impl RatesWrite {
    /// Parses words such as `reservation=500 weight=2 limit=50MB`. Each word may be given once.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut write = Self::default();
        for word in text.split_whitespace() {
            let (name, value) = word.split_once('=')?;
            let taken = match name {
                "reservation" => write.reservation.replace(Rates::parse_reservation(value).ok()?).is_some(),
                "limit" => write.limit.replace(Rates::parse_limit(value).ok()?).is_some(),
                "weight" => write.weight.replace(value.parse().ok()?).is_some(),
                _ => return None,
            };
            if taken {
                return None;
            }
        }
        (write != Self::default()).then_some(write)
    }

    /// Returns `rates` with the values that this write sets.
    pub(crate) fn applied_to(&self, rates: Rates) -> Rates {
        Rates { reservation: self.reservation.unwrap_or(rates.reservation), limit: self.limit.unwrap_or(rates.limit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_print_the_text_they_were_parsed_from() {
        for (text, rate) in [
            ("500", Rate::Ios(500)),
            ("1000000000", Rate::Ios(1_000_000_000)),
            ("50MB", Rate::Bytes(50_000_000)),
            ("8MiB", Rate::Bytes(8 << 20)),
            ("1500kB", Rate::Bytes(1_500_000)),
            ("7B", Rate::Bytes(7)),
        ] {
            assert_eq!((text.parse(), rate.to_string().as_str()), (Ok(rate), text));
        }
        assert_eq!("500 IOPS".parse(), Ok(Rate::Ios(500)));
        assert_eq!("2GB/s".parse(), Ok(Rate::Bytes(2_000_000_000)));
        for text in ["", "0", "0B", "-5", "1.5", "5mb", "MB", "1000000001", "99999999TB", "max", "5 5"] {
            let error = text.parse::<Rate>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is not a rate; write I/Os per second")), "{error}");
        }
    }

    #[test]
    fn a_write_changes_only_the_rates_it_names() {
        let before = Rates { reservation: Some(Rate::Ios(5)), limit: None };
        let write = RatesWrite::parse("limit=1MB weight=3").unwrap();
        assert_eq!(write.weight, Some(3));
        assert_eq!(write.applied_to(before), Rates { limit: Some(Rate::Bytes(1_000_000)), ..before });
        let none = RatesWrite::parse("reservation=0 limit=max").unwrap();
        assert_eq!(none.applied_to(write.applied_to(before)), Rates::default());
        for text in ["", "limit", "limit=", "limit=0", "weight=x", "size=5", "limit=5 limit=6", "reservation=max"] {
            assert_eq!(RatesWrite::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_reservation_may_not_exceed_a_limit_of_the_same_unit() {
        let rates = |reservation, limit| Rates { reservation: Some(reservation), limit: Some(limit) };
        assert!(rates(Rate::Ios(5), Rate::Ios(5)).is_consistent());
        assert!(!rates(Rate::Ios(6), Rate::Ios(5)).is_consistent());
        assert!(rates(Rate::Ios(6), Rate::Bytes(5)).is_consistent());
    }

    #[test]
    fn time_of_extreme_work_does_not_overflow() {
        let all = Work { ios: u64::MAX, bytes: u64::MAX };
        assert_eq!(Rate::Bytes(1).reserved_ns(all), u64::MAX);
        assert_eq!(Rate::Ios(500).reserved_ns(Work::of_request(4096, 65_536)), 2_000_000);
        assert_eq!(Rate::Ios(500).reserved_ns(Work::of_request(98_304, 65_536)), 3_000_000);
        let io = Work { ios: Work::IO, bytes: 0 };
        assert_eq!((Rate::Ios(3).reserved_ns(io), Rate::Ios(3).limited_ns(io)), (333_333_333, 333_333_334));
        assert_eq!(Rate::Ios(4).limited_ns(io), 250_000_000);
        assert_eq!(Rate::Bytes(1_000_000).reserved_ns(Work::of_request(4096, 65_536)), 4_096_000);
        assert_eq!(Work::of_request(u64::MAX, 0).ios, u64::MAX);
        assert_eq!(all.plus(all), all);
    }
}
