//! Decision for several devices: the setting to use on each.

use super::{Decision, DecisionKind};
use crate::words::{capital, listed, marked};

/// Largest number of sentences per device.
const OF_A_DEVICE: usize = 3;

/// Returns sentences: first the setting to use on each device, then the reasons for each device.
pub(crate) fn several(names: &[&str], labels: &[String], baseline: usize, decisions: &[&Decision]) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (name, decision) in names.iter().zip(decisions) {
        let what = what(decision, labels, baseline);
        match groups.iter_mut().find(|(known, _)| *known == what) {
            Some((_, on)) => on.push((*name).to_owned()),
            None => groups.push((what, vec![(*name).to_owned()])),
        }
    }
    let mut sentences = match groups.as_slice() {
        [] => Vec::new(),
        [(what, on)] if on.len() == 2 => vec![capital(&format!("{what} on both devices."))],
        [(what, on)] => vec![capital(&format!("{what} on all {} devices.", on.len()))],
        all => {
            let each: Vec<String> = all.iter().map(|(what, on)| format!("{what} on {}", listed(on, "and"))).collect();
            vec![format!("It depends on the device: {}.", each.join("; "))]
        }
    };
    if decisions.iter().all(|decision| decision.kind == DecisionKind::Nothing) {
        return decisions.first().map_or_else(Vec::new, |decision| decision.sentences.clone());
    }
    let reasons = names.iter().zip(decisions);
    sentences.extend(reasons.map(|(name, decision)| {
        let reasons = &decision.sentences[..decision.sentences.len().min(OF_A_DEVICE)];
        format!("{name}: {}", reasons.join(" "))
    }));
    sentences
}

/// Returns the decision in words, without a capital letter: "keep none", "set kyber".
fn what(decision: &Decision, labels: &[String], baseline: usize) -> String {
    let label = decision
        .setting
        .and_then(|setting| labels.get(setting))
        .map_or_else(|| "the setting".to_owned(), |label| marked(label));
    match decision.kind {
        DecisionKind::Change => format!("set {label}"),
        DecisionKind::Trade => format!("weigh {label} against {}", marked(&labels[baseline])),
        DecisionKind::CannotTell | DecisionKind::TooFewRuns => format!("keep {label} for now"),
        DecisionKind::Keep | DecisionKind::Equal | DecisionKind::Idle | DecisionKind::Nothing => {
            format!("keep {label}")
        }
    }
}
