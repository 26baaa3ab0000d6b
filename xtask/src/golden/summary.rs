//! Counts of identical runs by kind.

use std::collections::BTreeMap;
use std::fmt;

use super::compare::Difference;

/// Result of one run.
pub(super) enum Outcome {
    /// All compared events are equal.
    Identical,
    /// The runs have the same requests at the same times, but different decisions.
    DecisionsDiffer(Difference),
    /// The events differ.
    Differs(Difference),
    /// The elevator is not in the registry yet.
    NoElevator,
    /// The run failed.
    Failed(String),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Identical => f.write_str("identical"),
            Self::DecisionsDiffer(difference) => {
                write!(f, "identical (decisions differ: first difference {})", difference.one_line())
            }
            Self::Differs(difference) => write!(f, "DIFFERS: {}", difference.one_line()),
            Self::NoElevator => f.write_str("not run: there is no such elevator yet"),
            Self::Failed(error) => write!(f, "FAILED: {error}"),
        }
    }
}

/// Counts of the runs of one kind.
#[derive(Clone, Copy, Default)]
struct Counts {
    runs: usize,
    every_event: usize,
    minimal: usize,
    differs: usize,
    known: usize,
    failed: usize,
    no_elevator: usize,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.every_event += other.every_event;
        self.minimal += other.minimal;
        self.differs += other.differs;
        self.known += other.known;
        self.failed += other.failed;
        self.no_elevator += other.no_elevator;
    }
}

/// Counts of the runs in a directory, by elevator and by the prefix of the run's name.
#[derive(Default)]
pub(super) struct Summary {
    kinds: BTreeMap<(String, String), Counts>,
    unexpected: usize,
}

impl Summary {
    /// Adds a run. If `known` is true, the run may differ.
    pub(super) fn add(&mut self, elevator: &str, name: &str, outcome: &Outcome, known: bool) {
        let letters = name.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(name.len());
        let counts = self.kinds.entry((elevator.to_owned(), name[..letters].to_owned())).or_default();
        counts.runs += 1;
        match outcome {
            Outcome::Identical => counts.every_event += 1,
            Outcome::DecisionsDiffer(_) => counts.minimal += 1,
            Outcome::Differs(_) if known => counts.known += 1,
            Outcome::Differs(_) => counts.differs += 1,
            Outcome::Failed(_) => counts.failed += 1,
            Outcome::NoElevator => counts.no_elevator += 1,
        }
        self.unexpected += usize::from(matches!(outcome, Outcome::Differs(_) | Outcome::Failed(_)) && !known);
    }

    /// Returns the number of runs that failed, or that differ although they must not.
    pub(super) fn unexpected(&self) -> usize {
        self.unexpected
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:<10} {:>6} {:>12} {:>8} {:>8} {:>6} {:>7} {:>12}",
            "elevator", "names", "runs", "every event", "minimal", "differs", "known", "failed", "no elevator"
        )?;
        let mut all = Counts::default();
        let row = |f: &mut fmt::Formatter<'_>, elevator: &str, names: &str, counts: Counts| {
            let Counts { runs, every_event, minimal, differs, known, failed, no_elevator } = counts;
            writeln!(
                f,
                "{elevator:<16} {names:<10} {runs:>6} {every_event:>12} {minimal:>8} {differs:>8} {known:>6} {failed:>7} {no_elevator:>12}"
            )
        };
        for ((elevator, names), counts) in &self.kinds {
            row(f, elevator, names, *counts)?;
            all.add(*counts);
        }
        row(f, "all", "", all)
    }
}
