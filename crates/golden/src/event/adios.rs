//! Lines of ADIOS: positions of requests, batches, latencies, and results of its files.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use iosched::{AdiosEvent, AdiosList, Decision, Time, TunableError};
use iosched_workload::{Scenario, TunableChange};

use super::{Event, Family, append, common_decision};

const EINVAL: i32 = 22;
const EIO: i32 = 5;
const ENOENT: i32 = 2;
const ERANGE: i32 = 34;

#[derive(Default)]
pub(super) struct Adios {
    /// Requests that were inserted at the head.
    heads: BTreeSet<u64>,
    /// The lists of the next batch that a line reports.
    batch: [Vec<String>; 4],
    /// Fields for the next request that is dispatched.
    choice: String,
}

impl Family for Adios {
    /// Moves the position of a request after its insertion. Drops the position of a request that
    /// merged.
    fn arranged(&mut self, events: &[(u64, Event)]) -> Vec<(u64, Event)> {
        let mut arranged: Vec<(u64, Event)> = Vec::with_capacity(events.len());
        let mut late: Vec<(u64, Event)> = Vec::new();
        for (now_ns, event) in events {
            match event {
                Event::Decision(Decision::Adios(decided @ (AdiosEvent::Queued { .. } | AdiosEvent::Stable))) => {
                    if let AdiosEvent::Queued { cookie, list: AdiosList::Head, .. } = decided {
                        self.heads.insert(*cookie);
                    }
                    late.push((*now_ns, event.clone()));
                }
                Event::Decision(Decision::RequestMerge { cookie, .. }) => {
                    late.retain(|(_, event)| queued(event) != Some(*cookie));
                    arranged.push((*now_ns, event.clone()));
                }
                _ => {
                    put_late(&mut arranged, &mut late);
                    arranged.push((*now_ns, event.clone()));
                }
            }
        }
        put_late(&mut arranged, &mut late);
        arranged
    }

    fn decision(&mut self, line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
        match *decision {
            Decision::Adios(event) => self.event(line, event),
            Decision::Insert { cookie, .. } => {
                common_decision(line, scenario, decision);
                if self.heads.contains(&cookie) {
                    line.push_str(",\"head\":1");
                }
                true
            }
            Decision::Dispatch { .. } => {
                common_decision(line, scenario, decision);
                append(line, format_args!("{}", std::mem::take(&mut self.choice)))
            }
            _ => common_decision(line, scenario, decision),
        }
    }

    fn tunable(&mut self, line: &mut String, change: &TunableChange, answer: &Result<String, TunableError>) -> bool {
        let (event, name) = (if change.value.is_null() { "show" } else { "tunable" }, &change.name);
        append(line, format_args!("\"{event}\",\"name\":\"{name}\""));
        if !change.value.is_null() {
            append(line, format_args!(",\"value\":{}", change.value));
        }
        match answer {
            Ok(text) if change.value.is_null() => {
                append(line, format_args!(",\"text\":{}", serde_json::Value::from(format!("{text}\n"))))
            }
            Ok(_) => append(line, format_args!(",\"ret\":0")),
            Err(error) => append(line, format_args!(",\"ret\":-{}", errno(error))),
        }
    }
}

/// Returns the request whose position the event reports.
fn queued(event: &Event) -> Option<u64> {
    match event {
        Event::Decision(Decision::Adios(AdiosEvent::Queued { cookie, .. })) => Some(*cookie),
        _ => None,
    }
}

/// Appends late events. Positions of requests come before the event `Stable`.
fn put_late(arranged: &mut Vec<(u64, Event)>, late: &mut Vec<(u64, Event)>) {
    late.sort_by_key(|(_, event)| queued(event).is_none());
    arranged.append(late);
}

/// Returns the error number that the file of the original elevator returns.
fn errno(error: &TunableError) -> i32 {
    match error {
        TunableError::Unknown { .. } => ENOENT,
        TunableError::ReadOnly { .. } | TunableError::WriteOnly { .. } => EIO,
        TunableError::OutOfRange { name, value, .. } if name.starts_with("lat_target_") && is_long(value) => ERANGE,
        _ => EINVAL,
    }
}

/// Returns whether a number needs more than 64 bits.
fn is_long(number: &str) -> bool {
    !number.starts_with('-') && number.parse::<u64>().is_err()
}

fn list_name(list: AdiosList) -> String {
    match list {
        AdiosList::Normal => "\"p\"".to_owned(),
        AdiosList::Head => "\"h\"".to_owned(),
        AdiosList::Sorted => "\"t\"".to_owned(),
        AdiosList::Batch(list) => list.to_string(),
    }
}

fn direction(backward: Option<bool>) -> String {
    backward.map_or_else(String::new, |backward| format!(",\"dir\":{}", u8::from(backward)))
}

impl Adios {
    fn event(&mut self, line: &mut String, event: AdiosEvent) -> bool {
        match event {
            AdiosEvent::Queued { cookie, list, predicted_ns, deadline } => {
                let list = list_name(list);
                append(line, format_args!("\"queued\",\"id\":{cookie},\"to\":{list},\"pred\":{predicted_ns}"));
                if let Some(deadline) = deadline {
                    // The deadline is relative to the beginning of time, and wraps. Recordings have the
                    // absolute value.
                    let beginning_ns = Time::BEGINNING.as_ns();
                    let counted = i128::from(deadline.as_ns().wrapping_add(beginning_ns));
                    append(line, format_args!(",\"dl\":{}", counted - i128::from(beginning_ns)));
                }
                true
            }
            AdiosEvent::Stable => append(line, format_args!("\"stable\"")),
            AdiosEvent::Batched { cookie, list } => {
                self.batch[usize::from(list)].push(cookie.to_string());
                false
            }
            AdiosEvent::Filled { page, order, before_ns, added_ns, bias } => {
                let lists = std::mem::take(&mut self.batch);
                let lists = lists.iter().enumerate().filter(|(_, ids)| !ids.is_empty());
                let lists: Vec<String> = lists.map(|(list, ids)| format!("\"{list}\":[{}]", ids.join(","))).collect();
                let lists = lists.join(",");
                append(line, format_args!("\"fill\",\"pg\":{page},\"ord\":{order},\"tpl\":{before_ns}"));
                append(line, format_args!(",\"add\":{added_ns},\"bias\":{bias},\"q\":{{{lists}}}"))
            }
            AdiosEvent::Flipped { page, backward } => {
                append(line, format_args!("\"flip\",\"pg\":{page}{}", direction(backward)))
            }
            AdiosEvent::Choice { list, predicted_ns, in_flight, backward } => {
                self.choice.clear();
                let (list, direction) = (list_name(list), direction(backward));
                let _ = write!(self.choice, ",\"q\":{list},\"lat\":{predicted_ns},\"n\":{in_flight}{direction}");
                false
            }
            AdiosEvent::Sample { cookie, latency_ns, weight, large, cell } => {
                append(line, format_args!("\"sample\",\"id\":{cookie},\"lat\":{latency_ns},\"w\":{weight}"));
                append(line, format_args!(",\"big\":{},\"b\":{cell}", u8::from(large)))
            }
            AdiosEvent::Model { op, base_ns, slope_ns, small_sum, small_count, large_sum, large_bytes } => {
                let op = op.letter();
                append(line, format_args!("\"model\",\"op\":\"{op}\",\"base\":{base_ns},\"slope\":{slope_ns}"));
                append(line, format_args!(",\"sd\":{small_sum},\"sn\":{small_count}"));
                append(line, format_args!(",\"ld\":{large_sum},\"lb\":{large_bytes}"))
            }
            AdiosEvent::TimerArm { at } => append(line, format_args!("\"timer_arm\",\"at\":{}", at.as_ns())),
            AdiosEvent::Timer { small, large } => {
                append(line, format_args!("\"timer\",\"small\":{small},\"large\":{large}"))
            }
        }
    }
}
