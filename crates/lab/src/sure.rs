//! Rule for ending the runs: every verdict is clear, or every difference is known with enough
//! precision.

use serde::Serialize;

use crate::compare::{SIGNIFICANCE, Verdict};
use crate::figure::Figure;
use crate::results::Results;

/// Smallest number of rounds at which a comparison can be clear.
pub const ROUNDS_MIN: u32 = 5;

/// A comparison that is not clear yet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unclear {
    /// Index of the setting.
    pub setting: usize,
    /// Metric of the comparison.
    pub figure: Figure,
    /// Half the width of the interval of the difference, per cent of the baseline.
    pub within_percent: f64,
}

/// Returns the comparisons that are not clear yet. A comparison is clear if its difference is
/// significant. It is also clear if it has a verdict and half the width of its interval is at most
/// `percent` of the baseline.
///
/// There is a check after every round. If every check used the full error probability of 5 %, some
/// check would sooner or later find a difference by chance. Therefore check n uses only the share 1
/// / (n (n + 1)) of the 5 %: a half, a sixth, and so on. The shares add up to 1.
#[must_use]
pub fn unclear(results: &Results, percent: f64) -> Vec<Unclear> {
    let looks = f64::from((results.rounds + 1).saturating_sub(ROUNDS_MIN).max(1));
    let concluding = || results.figures.iter().filter(|results| results.concludes());
    let comparisons = concluding().flat_map(|results| {
        let settings = results.settings.iter().enumerate();
        settings.filter_map(|(setting, figure)| Some((results.figure, setting, figure.as_ref()?.comparison.as_ref()?)))
    });
    let comparisons: Vec<_> = comparisons.collect();
    let significance = SIGNIFICANCE / (looks * (looks + 1.0)) / comparisons.len().max(1) as f64;
    let open = comparisons.into_iter().filter_map(|(figure, setting, comparison)| {
        let within_percent = match comparison.interval_percent {
            Some((low, high)) => (high - low) / 2.0,
            // If the baseline is 0, there is no percentage. Then only a significant difference
            // makes the comparison clear.
            None => f64::INFINITY,
        };
        let is_decided = comparison.verdict != Verdict::CannotTell;
        let exact = comparison.interval == Some((0.0, 0.0));
        let near = exact || within_percent <= percent;
        let clear = comparison.p.is_some_and(|p| p <= significance) || (is_decided && near);
        (results.rounds < ROUNDS_MIN || !clear).then_some(Unclear { setting, figure, within_percent })
    });
    open.collect()
}
