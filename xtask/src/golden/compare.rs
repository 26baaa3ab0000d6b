//! Where two runs part.

use std::fmt;

/// Lines shown before and after the first difference.
const CONTEXT: usize = 4;

/// The first place at which two runs differ.
#[derive(Debug)]
pub(super) struct Difference {
    /// Number of the event, from 0.
    at: usize,
    recorded: Option<String>,
    ours: Option<String>,
    before: Vec<String>,
    after: [Vec<String>; 2],
}

/// How a run of ours compares with the recorded one.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Event by event.
    Identical,
    /// The same requests at the same times, for other reasons.
    DecisionsDiffer(Difference),
    /// Not the same.
    Differs(Difference),
}

/// Whether conformance depends on the event.
pub(super) fn is_minimal(line: &str) -> bool {
    const MINIMAL: [&str; 5] = ["insert\"", "merge\"", "rq_merge\"", "dispatch\"", "complete\""];
    let event = line.split_once("\"ev\":\"").map_or("", |(_, rest)| rest);
    MINIMAL.iter().any(|kind| event.starts_with(kind))
}

/// Compares every event, and if they differ those that matter.
pub(super) fn all(recorded: &[&str], ours: &[&str]) -> Verdict {
    let Some(difference) = first_difference(recorded, ours) else {
        return Verdict::Identical;
    };
    match minimal(recorded, ours) {
        Verdict::Identical => Verdict::DecisionsDiffer(difference),
        _ => Verdict::Differs(difference),
    }
}

/// Compares the events that matter.
pub(super) fn minimal(recorded: &[&str], ours: &[&str]) -> Verdict {
    let [recorded, ours] =
        [recorded, ours].map(|lines| -> Vec<&str> { lines.iter().copied().filter(|line| is_minimal(line)).collect() });
    first_difference(&recorded, &ours).map_or(Verdict::Identical, Verdict::Differs)
}

fn first_difference(recorded: &[&str], ours: &[&str]) -> Option<Difference> {
    let same = recorded.iter().zip(ours).take_while(|(a, b)| a == b).count();
    if same == recorded.len() && same == ours.len() {
        return None;
    }
    let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
    let following = |lines: &[&str]| owned(lines.get(same + 1..).map_or(&[], |rest| &rest[..rest.len().min(CONTEXT)]));
    Some(Difference {
        at: same,
        recorded: recorded.get(same).map(|&line| line.to_owned()),
        ours: ours.get(same).map(|&line| line.to_owned()),
        before: owned(&recorded[same.saturating_sub(CONTEXT)..same]),
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

    /// In one line.
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
    use super::*;

    const INSERT: &str = r#"{"t":1,"ev":"insert","id":1}"#;
    const DISPATCH: &str = r#"{"t":1,"ev":"dispatch","id":1}"#;
    const SLICE: &str = r#"{"t":1,"ev":"slice","pid":1,"sync":1,"ns":5}"#;

    #[test]
    fn other_reasons_for_the_same_requests_are_told_from_other_requests() {
        let recorded = [INSERT, SLICE, DISPATCH];
        assert!(matches!(all(&recorded, &recorded), Verdict::Identical));
        assert!(matches!(all(&recorded, &[INSERT, DISPATCH]), Verdict::DecisionsDiffer(d) if d.at == 1));
        assert!(matches!(all(&recorded, &[INSERT, SLICE]), Verdict::Differs(d) if d.ours.is_none()));
        assert!(matches!(minimal(&recorded, &[INSERT, DISPATCH, SLICE]), Verdict::Identical));
    }

    #[test]
    fn a_coop_merge_is_not_a_merge() {
        assert!(!is_minimal(r#"{"t":1,"ev":"coop_merge","pid":1,"sync":1,"into":2}"#));
        assert!(is_minimal(r#"{"t":1,"ev":"rq_merge","id":1,"into":2}"#));
    }
}
