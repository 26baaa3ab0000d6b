//! A plan as text: the decision, then the results of each unit, then doubts.

pub mod check;

use iosched::{IoClass, Setting};
use iosched_lab::{listed, significant};
use iosched_plan::{Condition, Goal, Nearest, Outcome, Planned, WantedGoal};

use super::{Column, Look, Tone, set};

/// Number of digits of values.
const DIGITS: i32 = 3;
/// Difference between the predicted share and the share of the weights that is worth a sentence.
const SHARE_DIFFERS: f64 = 0.05;
/// Loss of throughput that is worth a sentence, per cent.
const LOSS_PERCENT: f64 = 5.0;

/// Returns a plan as text. `next` is the next command to suggest.
pub fn text(planned: &Planned, next: Option<&str>, look: Look) -> String {
    let mut text = String::new();
    for paragraph in decision(planned) {
        text += &look.wrap(&paragraph, "");
        text.push('\n');
    }
    text.push('\n');
    text += &setting(&planned.plan.setting);
    text += &goals(planned, look);
    text.push('\n');
    text += &rates(planned, look);
    let reservations = reservations(planned, look.details);
    if !reservations.is_empty() {
        text.push('\n');
        for reservation in reservations {
            text += &look.wrap(&format!("- {reservation}"), "  ");
            text.push('\n');
        }
    }
    if let Some(next) = next {
        text += &format!("\nNext: {next}\n");
    }
    text
}

/// Formats the plans of several devices. The first line names the devices that meet the goals.
#[must_use]
pub fn fleet(devices: &[Planned], next: Option<&str>, look: Look) -> String {
    let mut out = look.wrap(&verdict(devices), "") + "\n";
    for planned in devices {
        out += &format!("\n# {}\n\n{}", place(planned), text(planned, None, look));
    }
    if let Some(next) = next {
        out += &format!("\nNext: {next}\n");
    }
    out
}

/// Returns the name of a plan's device.
fn place(planned: &Planned) -> String {
    planned.plan.device.clone().unwrap_or_else(|| planned.plan.profile.clone())
}

/// Returns sentences that say which devices meet all hard goals.
fn verdict(devices: &[Planned]) -> String {
    let named = |meets: bool| -> Vec<String> {
        devices.iter().filter(|planned| planned.meets_hard_goals() == meets).map(place).collect()
    };
    let (met, missed) = (named(true), named(false));
    match (met.len(), missed.len()) {
        (_, 0) => format!("All hard goals are met on all {} devices: {}.", met.len(), listed(&met, "and")),
        (0, _) => format!("No device meets all hard goals: {}.", listed(&missed, "and")),
        _ => format!("All hard goals are met on {}, but not on {}.", listed(&met, "and"), listed(&missed, "and")),
    }
}

/// Returns the decision in sentences.
fn decision(planned: &Planned) -> Vec<String> {
    let all = planned.goals().count();
    let met = planned.goals().filter(|(.., outcome)| *outcome == Outcome::Met).count();
    let setting = planned.plan.setting.to_string();
    let is_default = setting == planned.default && planned.plan.units.iter().all(|unit| unit.priority.is_none());
    let verb = if is_default { "Keep" } else { "Set" };
    let mut sentences = vec![format!("{verb} {}.", in_words(&planned.plan.setting))];
    for unit in &planned.plan.units {
        let Some(priority) = unit.priority else { continue };
        let class = if priority.class() == IoClass::Idle { "idle" } else { "real time" };
        sentences.push(format!("Give the processes of {} the I/O priority {priority} ({class}).", unit.name));
    }
    sentences.push(match (met, all) {
        (1, 1) => "The goal is then met.".to_owned(),
        (met, all) if met == all => format!("All {all} goals are then met."),
        (met, all) => format!("{met} of {all} goals {} then met.", if met == 1 { "is" } else { "are" }),
    });
    let mut paragraphs = vec![sentences.join(" ")];
    paragraphs.extend(planned.nearest.iter().map(|nearest| missed(planned, nearest)));
    paragraphs
}

/// Returns a setting in words, such as "`mq-deadline` with io.cost and io.weight".
fn in_words(setting: &Setting) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for attribute in setting.attributes() {
        // All files of io.cost together are one part.
        let name = attribute.name();
        let part = if name.starts_with("io.cost.") { "io.cost" } else { name };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    let mut parts: Vec<String> = parts.into_iter().map(str::to_owned).collect();
    match setting.tunables().len() {
        0 => {}
        1 => parts.insert(0, "1 tunable".to_owned()),
        count => parts.insert(0, format!("{count} tunables")),
    }
    let with = if parts.is_empty() { String::new() } else { format!(" with {}", listed(&parts, "and")) };
    format!("`{}`{with}", setting.name())
}

/// Returns the values of a setting, one in each line; empty for a scheduler without values.
fn setting(setting: &Setting) -> String {
    let values = setting.tunables().iter().chain(setting.attributes());
    let lines: String = values.map(|value| format!("  {}={}\n", value.name(), value.text())).collect();
    if lines.is_empty() { lines } else { format!("{lines}\n") }
}

/// Returns a sentence which says by how much a goal is missed, and which goal can be met.
fn missed(planned: &Planned, nearest: &Nearest) -> String {
    let Nearest { unit, goal, by_percent, alone, achievable } = nearest;
    let outcome =
        planned.goals().find(|(name, wanted, _)| name == unit && *wanted == goal).map(|(.., outcome)| outcome);
    let soft = if goal.hard { "" } else { "Best effort: " };
    let mut text = match outcome {
        Some(Outcome::Missed) if *by_percent > 0.0 => {
            format!("{soft}{unit} misses {} by {} %.", goal.goal, significant(*by_percent, 2))
        }
        Some(Outcome::Missed) => format!("{soft}{unit} misses {}.", goal.goal),
        _ => format!("{soft}iosched cannot tell whether {unit} meets {}.", goal.goal),
    };
    if let Some(alone) = alone {
        let alone = significant(*alone, DIGITS);
        text += &format!(
            " No setting can meet this goal: even alone on the device, {unit} reaches only {alone} {}.",
            unit_of(goal)
        );
    }
    if let Some(achievable) = achievable {
        text += &format!(" This plan can promise {achievable}.");
    }
    text
}

fn unit_of(wanted: &WantedGoal) -> &'static str {
    match &wanted.goal {
        Goal::Bound(metric, _) | Goal::Reservation(metric, _) | Goal::Limit(metric, _) => metric.unit(),
        Goal::Share(_) => "parts",
        Goal::Before(_) => "x",
    }
}

/// Returns the table of goals.
fn goals(planned: &Planned, look: Look) -> String {
    let mut heads = Vec::new();
    let mut columns = ["predicted", "95 % interval", ""].map(|head| Column { head: head.into(), ..Column::default() });
    for unit in &planned.plan.units {
        for outcome in &unit.goals {
            let best_effort = if outcome.wanted.hard { "" } else { " (best effort)" };
            heads.push(format!("{} {}{best_effort}", unit.name, outcome.wanted.goal));
            let (value, from, to) = (outcome.predicted.value, outcome.predicted.from, outcome.predicted.to);
            let unit_of_goal = unit_of(&outcome.wanted);
            let number = |value: f64| significant(value, DIGITS);
            columns[0].cells.push((format!("{} {unit_of_goal}", number(value)), Tone::Plain));
            columns[1].cells.push((format!("{} to {}", number(from), number(to)), Tone::Plain));
            columns[2].cells.push(match outcome.outcome {
                Outcome::Met => ("met".to_owned(), Tone::Good),
                Outcome::Missed => ("missed".to_owned(), Tone::Bad),
                Outcome::CannotTell => ("cannot tell".to_owned(), Tone::Plain),
            });
        }
    }
    set(&heads, &columns, look)
}

/// Returns the table of throughputs, which shows what the plan costs each unit.
fn rates(planned: &Planned, look: Look) -> String {
    let heads: Vec<String> = planned.effects.iter().map(|effect| format!("{} MB/s", effect.unit)).collect();
    let default = planned.default.as_str();
    let mut columns = ["alone", default, "plan"].map(|head| Column { head: head.into(), ..Column::default() });
    for effect in &planned.effects {
        for (column, rates) in columns.iter_mut().zip([effect.alone, effect.default, effect.planned]) {
            column.cells.push((significant(rates.mb_per_s, DIGITS), Tone::Plain));
        }
    }
    set(&heads, &columns, look)
}

/// Returns the doubts about the plan.
fn reservations(planned: &Planned, details: bool) -> Vec<String> {
    let mut all = Vec::new();
    for effect in &planned.effects {
        let (before, after) = (effect.default.mb_per_s, effect.planned.mb_per_s);
        let loss = (1.0 - after / before.max(1e-9)) * 100.0;
        if loss >= LOSS_PERCENT {
            all.push(format!(
                "{} has {} % less throughput than under {}.",
                effect.unit,
                significant(loss, 2),
                planned.default
            ));
        }
    }
    let broken: Vec<&Condition> = planned.breaks().collect();
    if broken.is_empty() && planned.meets_hard_goals() {
        let text = "The hard goals also hold if the load is 30 % higher or 30 % lower, and if a unit joins or leaves.";
        all.push(text.to_owned());
    }
    for condition in &broken {
        let missed = condition.missed.iter().filter(|missed| missed.goal.hard).map(|missed| {
            let value = missed
                .value
                .map_or(String::new(), |value| format!(" ({} {})", significant(value, DIGITS), unit_of(&missed.goal)));
            format!("{} of {}{value}", missed.goal.goal, missed.unit)
        });
        all.push(format!("If {}, the plan misses {}.", condition.when, missed.collect::<Vec<_>>().join(", ")));
    }
    for share in &planned.effective_shares {
        let is_scaled = share.io_weight != share.weight;
        let differs = (share.from_weights - share.predicted).abs() > SHARE_DIFFERS;
        if is_scaled || details {
            let percent = |share: f64| format!("{:.0} %", share * 100.0);
            let mut text = format!(
                "With the weight {}, {} transfers {} of the bytes while all units have I/O.",
                share.weight,
                share.unit,
                percent(share.predicted)
            );
            if differs {
                text += &format!(" From the weights alone, its share would be {}.", percent(share.from_weights));
            }
            if is_scaled {
                text += &format!(
                    " In a systemd unit, write IOWeight={} for this weight, because for bfq, systemd writes a smaller \
                     weight than IOWeight.",
                    share.io_weight
                );
            }
            all.push(text);
        }
    }
    if let Some((rates, tails)) = planned.model_error_percent {
        all.push(format!(
            "The intervals include the error of the profile {}: {} % for rates and {} % for 99th percentiles.",
            planned.plan.profile,
            significant(rates, 2),
            significant(tails, 2)
        ));
    }
    all.extend(planned.notes.iter().cloned());
    if details {
        for condition in &planned.conditions {
            let state = if condition.missed.is_empty() { "all goals hold" } else { "some goals are missed" };
            all.push(format!("If {}, {state}.", condition.when));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use iosched::Registry;
    use iosched_plan::{Effect, GoalOutcome, Interval, MissedGoal, Plan, Rates, UnitPlan};

    use super::*;

    fn planned(outcome: Outcome) -> Planned {
        let wanted = WantedGoal { goal: "p99(read) < 5 ms".parse().unwrap(), hard: true };
        let predicted = Interval { value: 6.0, from: 5.5, to: 7.2 };
        let rates = |mb_per_s| Rates { mb_per_s, iops: 10.0 };
        let is_met = outcome == Outcome::Met;
        Planned {
            plan: Plan {
                version: "0.1.0".into(),
                device: None,
                profile: "sata-ssd".into(),
                setting: Setting::parse("bfq:io.bfq.weight=db:200", &Registry::linux()).unwrap(),
                units: vec![UnitPlan {
                    name: "db".into(),
                    target: "db.slice".parse().unwrap(),
                    cgroup: "db".into(),
                    priority: None,
                    goals: vec![GoalOutcome { wanted: wanted.clone(), predicted, outcome }],
                }],
            },
            intents: "i.toml".into(),
            default: "mq-deadline".into(),
            effects: vec![Effect {
                unit: "db".into(),
                alone: rates(100.0),
                default: rates(50.0),
                planned: rates(40.0),
            }],
            nearest: if is_met {
                Vec::new()
            } else {
                vec![Nearest {
                    unit: "db".into(),
                    goal: wanted.clone(),
                    by_percent: 20.0,
                    alone: None,
                    achievable: Some("p99(read) <= 7.3 ms".parse().unwrap()),
                }]
            },
            conditions: vec![Condition {
                when: "all units have 30 % more load".into(),
                missed: vec![MissedGoal { unit: "db".into(), goal: wanted, value: Some(9.0) }],
            }],
            effective_shares: Vec::new(),
            model_error_percent: Some((3.0, 12.0)),
            simulated_s: 3.0,
            runs: 100,
            seed: 1,
            notes: Vec::new(),
        }
    }

    const PLAIN: Look = Look { width: None, colours: false, details: false };

    #[test]
    fn missed_goal_and_nearest_goal_come_before_the_table() {
        let text = text(&planned(Outcome::Missed), None, PLAIN);
        let expected = "Set `bfq` with io.bfq.weight. 0 of 1 goals are then met.\n\
                        db misses p99(read) <= 5 ms by 20 %. This plan can promise p99(read) <= 7.3 ms.\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("missed") && text.contains("5.50 to 7.20"), "{text}");
    }

    #[test]
    fn plan_of_several_devices_starts_with_devices_that_meet_goals() {
        let of = |profile: &str, outcome| {
            let mut planned = planned(outcome);
            planned.plan.profile = profile.to_owned();
            planned
        };
        let (met, missed) = (of("a", Outcome::Met), of("b", Outcome::Missed));
        let text = fleet(&[met.clone(), missed.clone()], Some("iosched plan"), PLAIN);
        assert!(text.starts_with("All hard goals are met on a, but not on b.\n\n# a\n\nSet `bfq`"), "{text}");
        assert!(text.contains("\n# b\n\nSet `bfq`") && text.ends_with("\n\nNext: iosched plan\n"), "{text}");
        assert_eq!(verdict(&[met]), "All hard goals are met on all 1 devices: a.");
        assert_eq!(verdict(&[missed]), "No device meets all hard goals: b.");
    }

    #[test]
    fn plan_that_meets_its_goal_names_costs_and_conditions() {
        let text = text(&planned(Outcome::Met), Some("iosched plan i.toml"), PLAIN);
        assert!(text.starts_with("Set `bfq` with io.bfq.weight. The goal is then met.\n"), "{text}");
        for part in [
            "- db has 20 % less throughput than under mq-deadline.",
            "- If all units have 30 % more load, the plan misses p99(read) <= 5 ms of db (9.00 ms).",
            "3.0 % for rates and 12 % for 99th\n  percentiles.",
            "\nNext: iosched plan i.toml\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
