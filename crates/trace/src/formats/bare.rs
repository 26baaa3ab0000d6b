//! Times that are bare numbers, in a unit that only the format or the user says.

use iosched::Time;

use crate::format::Format;
use crate::text::{decimal, number};
use crate::unit::TimeUnit;

/// How times that are bare numbers are read.
#[derive(Clone, Copy)]
pub(crate) struct BareTimes {
    unit_ns: u64,
    /// Whether they may have decimals, since somebody named the unit.
    decimals: bool,
}

impl BareTimes {
    /// In the unit that the format assumes, or in the one that is given.
    pub(crate) fn of(format: Format, given: Option<TimeUnit>) -> Self {
        Self { unit_ns: given.map_or(format.resolution_ns(), TimeUnit::ns), decimals: given.is_some() }
    }

    #[inline]
    pub(crate) fn parse(self, text: &[u8]) -> Option<Time> {
        let ns = if self.decimals { decimal(text, self.unit_ns)? } else { number(text)?.checked_mul(self.unit_ns)? };
        Some(Time::from_ns(ns))
    }

    /// How exact they are, ns, by the words of some lines: only times have decimals.
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
