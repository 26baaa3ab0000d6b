//! When enough runs were made: every verdict is clear, or would not change for anything that matters.

use serde::Serialize;

use crate::compare::{SIGNIFICANCE, Verdict};
use crate::figure::Figure;
use crate::results::Results;

/// Before so many rounds nothing is clear.
pub const ROUNDS_MIN: u32 = 5;

/// A comparison that is not clear yet.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Unclear {
    /// Number of the setting.
    pub setting: usize,
    /// In which figure.
    pub figure: Figure,
    /// How far from what was found the true difference may be, per cent of the baseline.
    pub within_percent: f64,
}

/// The comparisons that are not clear yet. One is clear if there is a difference beyond doubt, or if it is known to
/// within `percent` of the baseline on either side (95 %) and so can be told from what matters.
///
/// Whoever looks after every round and ends when a difference shows up will see one by chance sooner or later. So each
/// look may err with a part of the 5 % only, the first with half, the next with a sixth, and so on (1 / (n (n + 1)),
/// which adds up to 1).
#[must_use]
pub fn unclear(results: &Results, percent: f64) -> Vec<Unclear> {
    let looks = f64::from((results.rounds + 1).saturating_sub(ROUNDS_MIN).max(1));
    let concluding = || results.figures.iter().filter(|results| results.concludes());
    let comparisons = concluding().flat_map(|results| {
        let settings = results.settings.iter().enumerate();
        settings.filter_map(|(setting, own)| Some((results.figure, setting, own.as_ref()?.comparison.as_ref()?)))
    });
    let comparisons: Vec<_> = comparisons.collect();
    let significance = SIGNIFICANCE / (looks * (looks + 1.0)) / comparisons.len().max(1) as f64;
    let open = comparisons.into_iter().filter_map(|(figure, setting, comparison)| {
        let within_percent = match comparison.interval_percent {
            Some((low, high)) => (high - low) / 2.0,
            // Against nothing there are no per cent: what is not a difference stays open.
            None => f64::INFINITY,
        };
        let told = comparison.verdict != Verdict::CannotTell;
        let exact = comparison.interval == Some((0.0, 0.0));
        let near = exact || within_percent <= percent;
        let clear = comparison.p.is_some_and(|p| p <= significance) || (told && near);
        (results.rounds < ROUNDS_MIN || !clear).then_some(Unclear { setting, figure, within_percent })
    });
    open.collect()
}
