//! The whole judgement: all parts for all judged schedulers.

use iosched_lab::Control;

use crate::card::{Judgement, ReportCard};
use crate::comparisons::{self, Compared};
use crate::request::{JudgeError, JudgeRequest};
use crate::{rules, shares, waits};

/// The part of a judgement that begins now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// A workload on a device, for all schedulers.
    Comparison {
        /// Number of this comparison, from 1.
        number: usize,
        /// Number of all comparisons.
        total: usize,
    },
    /// Shares under a scheduler.
    Shares(&'a str),
    /// Longest waits under a scheduler.
    Waits(&'a str),
    /// Rules that a scheduler must keep.
    Rules(&'a str),
    /// Cost of a scheduler.
    Cost(&'a str),
}

impl Part<'_> {
    /// Returns a line about the part, for users who wait for the result.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Comparison { number, total } => format!("comparison {number} of {total}"),
            Self::Shares(name) => format!("{name}: shares"),
            Self::Waits(name) => format!("{name}: search for the longest waits"),
            Self::Rules(name) => format!("{name}: random operations"),
            Self::Cost(name) => format!("{name}: instructions"),
        }
    }
}

/// Judges schedulers. If a scheduler breaks a rule, the other parts of its card are left out,
/// because its runs might never end. Calls `observe` before each part. If `control` is interrupted,
/// the judgement has only the complete parts.
///
/// # Errors
/// A scheduler is not in the registry or cannot run on a device of the report card, or a run fails.
/// If instructions cannot be counted, the card says why.
pub fn judge(
    request: &JudgeRequest,
    control: &Control,
    mut observe: impl FnMut(Part<'_>),
) -> Result<Judgement, JudgeError> {
    let registry = &request.registry;
    if request.schedulers.is_empty() {
        return Err(JudgeError::Nothing);
    }
    if request.runs < 2 {
        return Err(JudgeError::Runs(request.runs));
    }
    let mut cards = Vec::new();
    for name in &request.schedulers {
        let elevator = registry.get(name)?;
        cards.push(ReportCard::new(elevator.name, elevator.about));
    }
    let mut judgement = Judgement { compared: Vec::new(), cards, complete: false };
    for card in &mut judgement.cards {
        observe(Part::Rules(card.scheduler));
        let operations = (request.operations, request.seed);
        let Some(rules_outcome) = rules::check(registry, card.scheduler, operations, control)? else {
            return Ok(judgement);
        };
        card.rules = Some(rules_outcome);
    }
    let sound = judgement.cards.iter().filter(|card| !card.is_broken()).map(|card| card.scheduler);
    let sound: Vec<&str> = sound.collect();
    judgement.compared = compare_all(request, &sound, control, &mut observe)?;
    for card in judgement.cards.iter_mut().filter(|card| !card.is_broken()) {
        let name = card.scheduler;
        observe(Part::Shares(name));
        let Some(shares) = shares::measure(request, name, control)? else { return Ok(judgement) };
        card.shares = shares;
        observe(Part::Waits(name));
        let tries = (request.tries, request.seed);
        let Some(waits) = waits::search(registry, name, tries, control)? else { return Ok(judgement) };
        card.waits = waits;
        if let Some(counter) = &request.counter {
            observe(Part::Cost(name));
            match counter.count_all(registry, name, control) {
                Ok(Some(cost)) => card.cost = cost,
                Ok(None) => return Ok(judgement),
                // A signal that stops the judgement also reaches the counting program.
                Err(_) if control.is_stopping() => return Ok(judgement),
                Err(error) => card.cost_failure = Some(error.to_string()),
            }
        }
    }
    judgement.complete = true;
    Ok(judgement)
}

fn compare_all(
    request: &JudgeRequest,
    judged: &[&str],
    control: &Control,
    observe: &mut impl FnMut(Part<'_>),
) -> Result<Vec<Compared>, JudgeError> {
    let mut all = Vec::new();
    let pairs: Vec<_> = comparisons::pairs().filter(|_| request.compare && !judged.is_empty()).collect();
    for (number, &pair) in pairs.iter().enumerate() {
        observe(Part::Comparison { number: number + 1, total: pairs.len() });
        let Some(compared) = comparisons::compare(request, judged, pair, control)? else { break };
        all.push(compared);
    }
    Ok(all)
}
