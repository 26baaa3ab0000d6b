//! Advice as text: the decision, the confirmed settings,
//! doubts, and how to apply the setting.

use std::fmt::Write as _;
use std::path::Path;

use iosched_advise::{Advice, AdviceResults};
use iosched_kernel::settings::Lasting;
use iosched_lab::grouped;
use serde_json::{Value, json};

use super::closing::{decision, doubts};
use super::grid::Look;
use super::machine;
use super::text::{seconds, subject};
use super::tuning::{figures, many, shown, verdicts};

/// The content of the output.
pub struct AdviceView<'a> {
    /// The advice.
    pub advice: &'a Advice<'a>,
    /// Calibration, predictions and measurements behind the advice.
    pub found: &'a AdviceResults,
    /// Commands and files for the advised setting. `None` if the present setting should stay.
    pub lasting: Option<&'a Lasting>,
    /// Commands and files for the best simulated setting, if it could not be tried on the device.
    pub untried: Option<&'a Lasting>,
    /// Whether the user requested to apply the setting, and whether the setting was applied.
    pub set: (bool, bool),
    /// Directory of the results, if they are stored.
    pub kept_in: Option<&'a Path>,
}

/// Returns the text of an advice, with its evidence.
pub fn text(view: &AdviceView<'_>, look: Look) -> String {
    let AdviceView { advice, found, .. } = view;
    let to_set = view.lasting.map_or(&[][..], |lasting| lasting.commands.as_slice());
    let mut text = decision(&advice.decision(), to_set, None, look) + &heading(view, look);
    let measured = &advice.measured;
    if !measured.standings.is_empty() {
        let mut shown = shown(measured);
        // Each setting that was run on the device has a column.
        shown.extend((0..measured.standings.len()).filter(|number| !shown.contains(number)).collect::<Vec<_>>());
        let _ = write!(text, "\n{}", figures(measured, &shown, look));
        if shown.len() > 1 {
            let _ = write!(text, "\n{}", verdicts(measured, &shown, look));
        }
    }
    if look.details {
        text.push_str(&predictions(advice, look));
    }
    let mut all = Vec::new();
    if found.interrupted {
        let (done, planned) = (found.records.rounds().len(), found.records.header.runs);
        all.push(format!("iosched stopped the runs on the device after {done} of {planned} runs of each setting"));
    }
    all.extend(advice.doubts());
    all.extend(advice.reservations.iter().cloned());
    text.push_str(&doubts(&all, look));
    if let Some(lasting) = view.lasting {
        text.push_str(&how(lasting, view.set.1));
    } else if view.set.0 {
        text.push_str("iosched changed no setting\n");
    }
    if let (Some(best), Some(lasting)) = (advice.untried(), view.untried) {
        let found = advice.predicted.against_baseline(best);
        let line = format!(
            "{} ran only in simulation, because advise does not change your cgroups. Result: {found}. To try this \
             setting on the device:",
            best.label
        );
        let _ = write!(text, "\n{}\n{}", look.wrap(&line, "  "), how(lasting, false));
    }
    if let Some(directory) = view.kept_in {
        let _ = writeln!(text, "all evidence: {}", directory.join("advice.html").display());
    }
    text
}

fn heading(view: &AdviceView<'_>, look: Look) -> String {
    let AdviceView { advice, found, .. } = view;
    let header = &found.records.header;
    let mut text = subject(&header.workload, &header.devices, header.machine.as_ref(), header.replay, look);
    let model = match &found.calibration {
        Some((measurements, calibration)) => {
            let target = &measurements.header.target;
            format!("model: {} of {}; {}", found.profile.model().kind(), target.name, calibration.verdict)
        }
        None => format!("model: {}, {}", found.profile.name(), found.profile.about()),
    };
    let _ = writeln!(text, "{}", look.wrap(&model, "  "));
    let predicted = &advice.predicted;
    let mut wanted = format!("goals: {}", predicted.goal_names());
    let constraints: Vec<&str> =
        predicted.header.constraints.iter().map(|constraint| constraint.text.as_str()).collect();
    if !constraints.is_empty() {
        let _ = write!(wanted, ", subject to {}", constraints.join(" and "));
    }
    let _ = writeln!(text, "{}", look.wrap(&wanted, "  "));
    let others = advice.measured.standings.len().saturating_sub(1);
    let searched = format!(
        "The search tried {} of {} settings in {} simulated runs. On the device, {others} of these settings and \
         the present setting ({}) ran {} times in total ({} s).",
        predicted.settings,
        many(predicted.header.space.size()),
        grouped((predicted.search_runs + predicted.confirm_runs) as u64),
        advice.present,
        advice.measured.confirm_runs,
        seconds(advice.measured.simulated_ns)
    );
    let _ = writeln!(text, "{}", look.wrap(&searched, "  "));
    text
}

/// Returns the predicted and the measured differences.
fn predictions(advice: &Advice<'_>, look: Look) -> String {
    let mut text = String::new();
    for prediction in &advice.predictions {
        let sentence = |goal: usize| {
            let (predicted, measured) = advice.predicted_and_measured(prediction, goal)?;
            let name = &advice.measured.header.measures[goal].name;
            Some(format!("{name} predicted {predicted}, measured {measured}"))
        };
        let all: Vec<String> = (0..advice.measured.header.goals).filter_map(sentence).collect();
        if !all.is_empty() {
            let _ = writeln!(text, "{}", look.wrap(&format!("  {}   {}", prediction.label, all.join("; ")), "    "));
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\nresults in simulation and on the device, compared with {}:\n{text}", advice.present)
    }
}

/// Returns the commands and files that set the setting, and the commands that undo it.
fn how(lasting: &Lasting, applied: bool) -> String {
    let mut text = String::new();
    let mut part = |title: &str, lines: &mut dyn Iterator<Item = &str>| {
        let _ = writeln!(text, "\n{title}");
        lines.for_each(|line| {
            let _ = writeln!(text, "{}", format!("  {line}").trim_end());
        });
    };
    let title = if applied {
        "applied until the next boot:"
    } else {
        "to apply this setting until the next boot, run as root:"
    };
    part(title, &mut lasting.commands.iter().map(String::as_str));
    part(
        &format!("to apply this setting at every boot, write these lines to {}:", lasting.rule_path),
        &mut lasting.rule.lines(),
    );
    for drop_in in &lasting.drop_ins {
        part(&format!("and these lines to {}:", drop_in.path), &mut drop_in.text.lines());
    }
    part(
        &format!("or, if you use tuned, write these lines to {}:", lasting.profile_path),
        &mut lasting.profile.lines(),
    );
    part("to undo the change:", &mut lasting.undo.iter().map(String::as_str));
    text.push('\n');
    text
}

/// Returns all results as one JSON document.
pub fn json(view: &AdviceView<'_>) -> Value {
    let AdviceView { advice, found, lasting, set, .. } = view;
    let (_, applied) = set;
    let verdict = found.calibration.as_ref().map(|(_, calibration)| &calibration.verdict);
    let decided = advice.decision();
    let setting = advice.recommended().map_or_else(|| advice.present.clone(), ToString::to_string);
    json!({
        "answer": decided.to_string(),
        "decision": machine::decision(&decided, |_| setting.as_str()),
        "finding": advice.measured.finding,
        "recommended": advice.recommended().map(ToString::to_string),
        "applied": applied,
        "interrupted": found.interrupted,
        "present": found.present,
        "model": { "name": found.profile.name(), "kind": found.profile.model().kind(), "verdict": verdict },
        "advice": advice,
        "doubts": advice.doubts(),
        "lasting": lasting,
        "untried": advice.untried().map(|best| json!({ "setting": best.label, "lasting": view.untried })),
    })
}
