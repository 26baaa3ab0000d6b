//! Comparison of two runs, up to their first difference.

use std::fmt;

use iosched_golden::fixture::Minimal;

/// Number of lines that are shown before and after the first difference.
const CONTEXT: usize = 4;

/// The first difference between two runs.
#[derive(Debug)]
pub(super) struct Difference {
    /// Number of the event, from 0.
    at: usize,
    recorded: Option<String>,
    ours: Option<String>,
    before: Vec<String>,
    after: [Vec<String>; 2],
}

/// Result of comparing a simulated run with the recorded run.
#[derive(Debug)]
pub(super) enum Verdict {
    /// All events are equal.
    Identical,
    /// The runs have the same requests at the same times, but different decisions.
    DecisionsDiffer(Difference),
    /// The events differ. The value is the first difference among the compared events.
    Differs(Difference),
}

/// One of two compared runs: its lines, and the events that must be equal.
pub(super) struct Side<'a> {
    pub(super) lines: Vec<&'a str>,
    pub(super) minimal: Vec<(u64, Minimal)>,
}

/// Compares two runs, either by every event or only by the events that must be equal.
pub(super) fn compare(recorded: &Side<'_>, ours: &Side<'_>, every_event: bool) -> Verdict {
    let of_lines =
        if every_event { first_difference(&recorded.lines, &ours.lines, |line| (*line).to_owned()) } else { None };
    let of_minimal =
        first_difference(&recorded.minimal, &ours.minimal, |(now_ns, event)| format!("{now_ns} {event:?}"));
    match (of_lines, of_minimal) {
        (None, None) => Verdict::Identical,
        (Some(difference), None) => Verdict::DecisionsDiffer(difference),
        (Some(difference), Some(_)) | (None, Some(difference)) => Verdict::Differs(difference),
    }
}

fn first_difference<T: PartialEq>(recorded: &[T], ours: &[T], text: impl Fn(&T) -> String) -> Option<Difference> {
    let same = recorded.iter().zip(ours).take_while(|(a, b)| a == b).count();
    if same == recorded.len() && same == ours.len() {
        return None;
    }
    let texts = |events: &[T]| events.iter().map(&text).collect();
    let following = |events: &[T]| texts(events.get(same + 1..).map_or(&[], |rest| &rest[..rest.len().min(CONTEXT)]));
    Some(Difference {
        at: same,
        recorded: recorded.get(same).map(&text),
        ours: ours.get(same).map(&text),
        before: texts(&recorded[same.saturating_sub(CONTEXT)..same]),
        after: [following(recorded), following(ours)],
    })
}

const NOTHING: &str = "nothing more";

impl Difference {
    fn recorded(&self) -> &str {
        self.recorded.as_deref().unwrap_or(NOTHING)
    }

    fn ours(&self) -> &str {
        self.ours.as_deref().unwrap_or(NOTHING)
    }

    /// Returns the difference in one line.
    pub(super) fn one_line(&self) -> String {
        format!("event {}: recorded {}, ours {}", self.at, self.recorded(), self.ours())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "    first difference at event {}:", self.at)?;
        for line in &self.before {
            writeln!(f, "      both      {line}")?;
        }
        for (whose, line, after) in
            [("recorded", self.recorded(), &self.after[0]), ("ours    ", self.ours(), &self.after[1])]
        {
            writeln!(f, "    > {whose}  {line}")?;
            for line in after {
                writeln!(f, "      {whose}  {line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::minimal;
    use super::*;

    const INSERT: &str = r#"{"t":1,"ev":"insert","id":1,"pid":1,"sector":0,"nr":8,"rw":"R","sync":1}"#;
    const DISPATCH: &str = r#"{"t":1,"ev":"dispatch","id":1}"#;
    const EXPLAINED: &str = r#"{"t":1,"ev":"dispatch","id":1,"q":7}"#;
    const SLICE: &str = r#"{"t":1,"ev":"slice","pid":1,"sync":1,"ns":5}"#;

    fn verdict(recorded: &[&'static str], ours: &[&'static str], every_event: bool) -> Verdict {
        let side = |lines: &[&'static str]| Side { lines: lines.to_vec(), minimal: minimal(lines).unwrap() };
        compare(&side(recorded), &side(ours), every_event)
    }

    #[test]
    fn verdict_separates_decisions_from_requests() {
        let recorded = [INSERT, SLICE, DISPATCH];
        assert!(matches!(verdict(&recorded, &recorded, true), Verdict::Identical));
        assert!(matches!(verdict(&recorded, &[INSERT, DISPATCH], true), Verdict::DecisionsDiffer(d) if d.at == 1));
        assert!(matches!(verdict(&recorded, &[INSERT, SLICE], true), Verdict::Differs(d) if d.ours.is_none()));
        assert!(matches!(verdict(&recorded, &[INSERT, DISPATCH, SLICE], false), Verdict::Identical));
        assert!(
            matches!(verdict(&recorded, &[INSERT, SLICE, EXPLAINED], true), Verdict::DecisionsDiffer(d) if d.at == 2)
        );
    }

    #[test]
    fn a_coop_merge_is_not_a_merge() {
        let lines =
            [r#"{"t":1,"ev":"coop_merge","pid":1,"sync":1,"into":2}"#, r#"{"t":1,"ev":"rq_merge","id":1,"into":2}"#];
        assert_eq!(minimal(&lines).unwrap(), [(1, Minimal::RequestMerge { id: 1, into: 2 })]);
    }
}
