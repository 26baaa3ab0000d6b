//! Goals and constraints in the user's notation: `p99(sync)`, `throughput >= 95%`,
//! `worst(reader) <= 20 ms`.

mod measure;

use std::fmt;
use std::str::FromStr;

use measure::WHOSE;
pub use measure::{Measure, MeasureRecord, Statistic, Whose};

use crate::figure::Figure;

/// Metric to optimise. The metric determines the direction: for example, latency should be low, and
/// throughput high.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The metric.
    pub measure: Measure,
}

/// Limit that a setting must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// The metric.
    pub measure: Measure,
    /// Whether the bound is a minimum. If false, it is a maximum.
    pub at_least: bool,
    /// The bound.
    pub bound: Bound,
}

/// A goal or a constraint. A constraint is a goal with a bound.
#[derive(Clone, Debug, PartialEq)]
pub enum GoalOrConstraint {
    /// A metric to optimise.
    Goal(Goal),
    /// A limit to meet.
    Constraint(Constraint),
}

impl GoalOrConstraint {
    /// Separates goals from constraints. Both lists keep their order.
    #[must_use]
    pub fn apart(given: &[Self]) -> (Vec<Goal>, Vec<Constraint>) {
        let (mut goals, mut constraints) = (Vec::new(), Vec::new());
        for goal_or_constraint in given.iter().cloned() {
            match goal_or_constraint {
                Self::Goal(goal) => goals.push(goal),
                Self::Constraint(constraint) => constraints.push(constraint),
            }
        }
        (goals, constraints)
    }
}

impl FromStr for GoalOrConstraint {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let mut reader = Reader { text, at: 0 };
        reader.measure()?;
        reader.skip_space();
        if reader.rest().starts_with(['<', '>', '=']) {
            return text.parse().map(Self::Constraint);
        }
        text.parse().map(Self::Goal)
    }
}

/// Bound of a constraint: absolute, or relative to the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// A percentage of the baseline's value.
    Percent(f64),
    /// A value, and the unit in which it was written.
    Value(f64, Option<BoundUnit>),
}

/// A unit of a bound: its name, its kind, and its size. The size is given in the unit of metrics of
/// that kind.
pub type BoundUnit = (&'static str, Kind, f64);

/// Kind of quantity that a unit measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A time.
    Time,
    /// Bytes per second.
    Bandwidth,
    /// A number per second.
    Rate,
}

const UNITS: &[BoundUnit] = &[
    ("ns", Kind::Time, 1e-9),
    ("us", Kind::Time, 1e-6),
    ("ms", Kind::Time, 1e-3),
    ("s", Kind::Time, 1.0),
    ("kB/s", Kind::Bandwidth, 1e-3),
    ("MB/s", Kind::Bandwidth, 1.0),
    ("GB/s", Kind::Bandwidth, 1e3),
    ("KiB/s", Kind::Bandwidth, 1024e-6),
    ("MiB/s", Kind::Bandwidth, 1.048_576),
    ("1/s", Kind::Rate, 1.0),
    ("IOPS", Kind::Rate, 1.0),
];

/// Error in a goal or a constraint, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct GoalError {
    /// Text that the user gave.
    text: String,
    /// Position of the error, in characters from the start.
    at: usize,
    /// Problem, and the valid input.
    problem: String,
}

/// Largest number of characters of the text that the message shows, around the error.
const SHOWN_CHARS: usize = 160;

impl fmt::Display for GoalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last_start = self.text.chars().count().saturating_sub(SHOWN_CHARS);
        let start = self.at.saturating_sub(SHOWN_CHARS / 2).min(last_start);
        let shown: String = self.text.chars().skip(start).take(SHOWN_CHARS).collect();
        write!(f, "{shown}: {}\n  {shown}\n  {}^", self.problem, " ".repeat(self.at - start))
    }
}

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let mut reader = Reader { text, at: 0 };
        let measure = reader.measure()?;
        reader.skip_space();
        match reader.rest() {
            "" => Ok(Self { measure }),
            rest if rest.starts_with(['<', '>', '=']) => {
                Err(reader.error(reader.at, "a goal cannot have a limit; give limits with --subject-to"))
            }
            _ => Err(reader.error(reader.at, "unexpected trailing text; give each goal with its own --goal")),
        }
    }
}

impl FromStr for Constraint {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let mut reader = Reader { text, at: 0 };
        let measure = reader.measure()?;
        reader.skip_space();
        // `<` means the same as `<=`, as in plans.
        let signs = [(">=", true), ("<=", false), (">", true), ("<", false)];
        let Some((sign, at_least)) = signs.into_iter().find(|(sign, _)| reader.rest().starts_with(sign)) else {
            let example = format!("expected >= or <= here, as in \"{measure} >= 95%\"");
            return Err(reader.error(reader.at, &example));
        };
        reader.at += sign.len();
        let bound = reader.bound(&measure)?;
        Ok(Self { measure, at_least, bound })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.measure.fmt(f)
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.measure, if self.at_least { ">=" } else { "<=" })?;
        match self.bound {
            Bound::Percent(percent) => write!(f, "{percent}%"),
            Bound::Value(value, None) => write!(f, "{value}"),
            Bound::Value(value, Some((unit, ..))) => write!(f, "{value} {unit}"),
        }
    }
}

impl Bound {
    /// Converts the bound to `unit`, the unit of a metric. A percentage is not changed.
    ///
    /// # Errors
    /// The unit of the bound is of another kind.
    pub fn in_unit(self, unit: &str) -> Result<Self, String> {
        let Self::Value(value, Some((unit_given, kind, scale))) = self else { return Ok(self) };
        let figures = UNITS.iter().find(|known| known.0 == unit);
        match figures {
            _ if unit_given == unit => Ok(self),
            Some(known) if known.1 == kind => Ok(Self::Value(value * scale / known.2, Some(*known))),
            _ if unit == "0..1" || unit.is_empty() => {
                Err(format!("this metric has no unit; leave out the unit {unit_given}"))
            }
            _ => Err(format!("this metric is in {unit}, not in {unit_given}; write the limit in {unit}")),
        }
    }
}

/// Parser that reads from left to right.
struct Reader<'t> {
    text: &'t str,
    /// Number of bytes read.
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn take_while(&mut self, mut wanted: impl FnMut(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !wanted(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn error(&self, at: usize, problem: &str) -> GoalError {
        let at = self.text[..at].chars().count();
        GoalError { text: self.text.to_owned(), at, problem: problem.to_owned() }
    }

    fn measure(&mut self) -> Result<Measure, GoalError> {
        self.skip_space();
        let start = self.at;
        let name = self.take_while(|c| c.is_alphanumeric() || "_.-/:".contains(c));
        if name.is_empty() {
            return Err(self.error(start, "expected a metric here, such as p99(sync), throughput or finish"));
        }
        if !self.rest().trim_start().starts_with('(') {
            return self.bare(name, start);
        }
        self.skip_space();
        self.at += 1;
        let inside = self.at;
        // `dd (1234)` is one of several processes with the same name.
        let mut open = 0_usize;
        let is_inside = |c: char| match c {
            ')' if open == 0 => false,
            ')' => {
                open -= 1;
                true
            }
            _ => {
                open += usize::from(c == '(');
                true
            }
        };
        let whose = self.take_while(is_inside).trim();
        if !self.rest().starts_with(')') {
            return Err(self.error(self.at, "a ) is missing"));
        }
        self.at += 1;
        if whose.is_empty() {
            return Err(self.error(inside, &format!("expected a class of I/O here ({WHOSE}), or the name of a task")));
        }
        self.of_whom(name, start, whose)
    }

    /// Parses a name without parentheses.
    fn bare(&self, name: &str, start: usize) -> Result<Measure, GoalError> {
        Ok(match name.to_ascii_lowercase().as_str() {
            "throughput" => Measure::Figure(Figure::Throughput),
            "iops" => Measure::Figure(Figure::Iops),
            "finish" => Measure::Figure(Figure::Finish),
            "fairness" => Measure::Figure(Figure::Fairness),
            "utilisation" | "utilization" => {
                let problem = "utilisation cannot be a goal, because a high value is neither good nor bad; use \
                    throughput, iops or a latency";
                return Err(self.error(start, problem));
            }
            lower => match statistic(lower) {
                Some(found) => {
                    let statistic = found.map_err(|problem| self.error(start, problem))?;
                    let problem = format!(
                        "name the I/Os whose latency counts, for example {statistic}(sync). Write one of {WHOSE}, or \
                         the name of a task"
                    );
                    return Err(self.error(self.at, &problem));
                }
                None => Measure::Reported(name.to_owned()),
            },
        })
    }

    fn of_whom(&self, name: &str, start: usize, whose: &str) -> Result<Measure, GoalError> {
        let subject = match whose.to_ascii_lowercase().as_str() {
            "sync" => Whose::Sync,
            "async" => Whose::Async,
            "reads" | "read" => Whose::Reads,
            "writes" | "write" => Whose::Writes,
            "all" => Whose::All,
            _ => Whose::calls(whose).unwrap_or_else(|| Whose::Task(whose.to_owned())),
        };
        let lower = name.to_ascii_lowercase();
        match (lower.as_str(), &subject) {
            ("throughput", Whose::Task(_) | Whose::Calls(..)) => return Ok(Measure::Throughput(whose.to_owned())),
            ("iops", Whose::Task(_) | Whose::Calls(..)) => return Ok(Measure::Iops(whose.to_owned())),
            ("throughput" | "iops", _) => {
                let problem = format!(
                    "{lower} is not available for a class of I/O; write {lower} for the whole run, \
                     or name a task"
                );
                return Err(self.error(start, &problem));
            }
            _ => {}
        }
        match statistic(&lower) {
            Some(Ok(statistic)) => Ok(Measure::Latency(statistic, subject)),
            Some(Err(problem)) => Err(self.error(start, problem)),
            None => {
                let problem = format!(
                    "there is no metric {name} for {whose}; available: p50, p99, p99.9 and other percentiles, mean, \
                     worst, throughput and iops"
                );
                Err(self.error(start, &problem))
            }
        }
    }

    fn bound(&mut self, measure: &Measure) -> Result<Bound, GoalError> {
        self.skip_space();
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit() || c == '.');
        let value = digits.parse::<f64>().ok().filter(|value| value.is_finite());
        let Some(value) = value else {
            return Err(self.error(start, &format!("expected a number here, as in \"{measure} >= 95%\"")));
        };
        self.skip_space();
        let unit_at = self.at;
        let unit = self.take_while(|_| true).trim_end();
        match unit {
            "" => Ok(Bound::Value(value, None)),
            "%" => Ok(Bound::Percent(value)),
            _ => match UNITS.iter().find(|known| known.0.eq_ignore_ascii_case(unit)) {
                Some(known) => Ok(Bound::Value(value, Some(*known))),
                None => {
                    let known: Vec<&str> = UNITS.iter().map(|unit| unit.0).collect();
                    let problem =
                        format!("there is no unit {unit}; available: % (of the baseline), {}", known.join(", "));
                    Err(self.error(unit_at, &problem))
                }
            },
        }
    }
}

/// Parses a statistic; `None` if the name is not one.
fn statistic(name: &str) -> Option<Result<Statistic, &'static str>> {
    match name {
        "mean" => return Some(Ok(Statistic::Mean)),
        "worst" | "max" => return Some(Ok(Statistic::Worst)),
        "median" => return Some(Ok(Statistic::Quantile(0.5))),
        _ => {}
    }
    let percent = name.strip_prefix('p')?.parse::<f64>().ok()?;
    let in_range = percent > 0.0 && percent < 100.0;
    Some(if in_range {
        Ok(Statistic::Quantile(percent / 100.0))
    } else {
        Err("a percentile must be above 0 and below 100, such as p99 or p99.9; for the maximum, give \"worst\"")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_parsed_and_printed() {
        for (text, shown) in [
            ("p99(sync)", "p99(sync)"),
            (" P99.9 ( async ) ", "p99.9(async)"),
            ("median(reads)", "p50(reads)"),
            ("max(all)", "worst(all)"),
            ("mean(my reader)", "mean(my reader)"),
            ("throughput", "throughput"),
            ("Throughput(backup)", "throughput(backup)"),
            ("fairness", "fairness"),
            ("p99(FDATASYNC)", "p99(fdatasync)"),
            ("mean( my job  fsync)", "mean(my job fsync)"),
            ("iops(fsync)", "iops(fsync)"),
            ("tps", "tps"),
            ("file_create", "file_create"),
        ] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), shown, "{text:?}");
        }
    }

    #[test]
    fn constraints_are_parsed_and_printed() {
        for (text, shown) in [
            ("throughput >= 95%", "throughput >= 95%"),
            ("throughput>=80MB/s", "throughput >= 80 MB/s"),
            ("p99(sync) <= 20 ms", "p99(sync) <= 20 ms"),
            ("fairness >= 0.9", "fairness >= 0.9"),
            ("iops(reader) >= 100 IOPS", "iops(reader) >= 100 IOPS"),
        ] {
            let constraint = text.parse::<Constraint>().unwrap();
            assert_eq!(constraint.to_string(), shown);
            assert_eq!(shown.parse::<Constraint>().unwrap(), constraint);
        }
    }

    #[test]
    fn goal_with_a_bound_is_a_constraint() {
        let given: Vec<GoalOrConstraint> =
            ["throughput(backup)", "p99(db) <= 5ms"].map(|text| text.parse().unwrap()).into_iter().collect();
        let (goals, constraints) = GoalOrConstraint::apart(&given);
        assert_eq!((goals[0].to_string(), goals.len()), ("throughput(backup)".to_owned(), 1));
        assert_eq!(constraints[0].to_string(), "p99(db) <= 5 ms");
        let strict: GoalOrConstraint = "p99(db) < 5".parse().unwrap();
        assert_eq!(GoalOrConstraint::apart(&[strict]).1[0].to_string(), "p99(db) <= 5");
        assert!("p99(db) = 5".parse::<GoalOrConstraint>().unwrap_err().to_string().contains("expected >= or <= here"));
    }

    #[test]
    fn error_points_at_the_wrong_part_of_a_goal() {
        #[track_caller]
        fn wrong<T: FromStr<Err = GoalError> + fmt::Debug>(text: &str, at: usize, says: &str) {
            let error = text.parse::<T>().unwrap_err();
            assert_eq!(error.at, at, "{error}");
            assert!(error.problem.contains(says), "{error}");
            assert!(error.to_string().ends_with(&format!("\n  {}^", " ".repeat(at))), "{error}");
        }
        wrong::<Goal>("", 0, "p99(sync)");
        wrong::<Goal>("p99", 3, "for example p99(sync)");
        wrong::<Goal>("p99(sync", 8, ") is missing");
        wrong::<Goal>("p99()", 4, "name of a task");
        wrong::<Goal>("p100(sync)", 0, "below 100");
        wrong::<Goal>("p99(sync) throughput", 10, "its own --goal");
        wrong::<Goal>("throughput >= 5", 11, "--subject-to");
        wrong::<Goal>("speed(sync)", 0, "p99.9");
        wrong::<Goal>("iops(sync)", 0, "is not available for a class of I/O");
        wrong::<Goal>("utilisation", 0, "neither good nor bad");
        wrong::<Constraint>("throughput", 10, ">= or <=");
        wrong::<Constraint>("throughput = 5", 11, ">= or <=");
        wrong::<Constraint>("throughput >= much", 14, "a number");
        wrong::<Constraint>("throughput >= 5 parsecs", 16, "MB/s");
    }

    #[test]
    fn bounds_are_converted_to_the_unit_of_the_metric() {
        let bound = |text: &str| text.parse::<Constraint>().unwrap().bound;
        let in_unit = |text: &str, unit: &str| match bound(text).in_unit(unit) {
            Ok(Bound::Value(value, _)) => value,
            other => panic!("{other:?}"),
        };
        assert!((in_unit("p99(sync) <= 1.5 s", "ms") - 1500.0).abs() < 1e-9);
        assert!((in_unit("throughput >= 2 GB/s", "MB/s") - 2000.0).abs() < 1e-9);
        assert!((in_unit("finish <= 90", "s") - 90.0).abs() < 1e-9);
        assert!(bound("throughput >= 5 ms").in_unit("MB/s").unwrap_err().contains("MB/s"));
        assert!(bound("fairness >= 5 ms").in_unit("0..1").is_err());
        assert_eq!(bound("throughput >= 95%").in_unit("MB/s"), Ok(Bound::Percent(95.0)));
    }
}
