//! Times that are bare numbers, in a unit that the format assumes or the user gives.

use iosched::Time;

use crate::format::Format;
use crate::text::{decimal, number};
use crate::unit::TimeUnit;

/// How bare times are parsed.
#[derive(Clone, Copy)]
pub(crate) struct BareTimes {
    unit_ns: u64,
    /// Whether the numbers may have decimals, because the user has given the unit.
    decimals: bool,
}

impl BareTimes {
    /// Uses the given unit, or otherwise the unit that the format assumes.
    pub(crate) fn of(format: Format, given: Option<TimeUnit>) -> Self {
        Self { unit_ns: given.map_or(format.resolution_ns(), TimeUnit::ns), decimals: given.is_some() }
    }

    #[inline]
    pub(crate) fn parse(self, text: &[u8]) -> Option<Time> {
        let ns = if self.decimals { decimal(text, self.unit_ns)? } else { number(text)?.checked_mul(self.unit_ns)? };
        Some(Time::from_ns(ns))
    }

    /// Returns the resolution of the times in these lines, ns. Only times have decimals, so all
    /// words with decimals are times.
    pub(crate) fn resolution_ns(self, head: &[u8]) -> u64 {
        let words = head.split(|&b| b.is_ascii_whitespace() || b == b',');
        let decimals = words.filter(|word| decimal(word, 1).is_some()).filter_map(|word| {
            let dot = word.iter().position(|&b| b == b'.')?;
            Some(word.len() - dot - 1)
        });
        let digits = if self.decimals { decimals.max().unwrap_or(0) } else { 0 };
        (0..digits).fold(self.unit_ns, |ns, _| ns / 10).max(1)
    }
}
