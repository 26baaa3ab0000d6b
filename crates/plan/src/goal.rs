//! Goals of a unit, in the notation of an intents file.

use std::fmt;
use std::str::FromStr;

pub use iosched_lab::goal::Statistic;
use serde::{Deserialize, Serialize};

/// A goal, and whether the plan may miss it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WantedGoal {
    /// The goal.
    pub goal: Goal,
    /// Whether the plan must meet the goal. A plan may miss a soft goal.
    pub hard: bool,
}

/// A goal of a unit.
///
/// | text | goal |
/// |---|---|
/// | `p99(read) < 5 ms`, `mean(fsync) < 2 ms`, `worst(all) < 1 s` | a latency |
/// | `throughput >= 50 MB/s` | bytes per second |
/// | `iops >= 2000`, `iops <= 500` | I/Os per second |
/// | `share 2` | a share of the device among the units with a share: 2 gets twice as much as 1 |
/// | `before backup` | lower latencies than another unit while both have I/O |
/// | `reservation 500 IOPS`, `reservation 20 MB/s` | a rate that the unit gets if it asks for it |
/// | `limit 500 IOPS`, `limit 20 MB/s` | a rate that the unit does not exceed |
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Goal {
    /// A bound of a metric.
    Bound(Metric, Bound),
    /// A share of the device among all units with a share, above 0.
    Share(f64),
    /// Lower latencies than the unit of this name.
    Before(String),
    /// A rate that the unit gets if it needs this rate, in [`Metric::unit`].
    Reservation(Metric, f64),
    /// A rate that the unit does not exceed, in [`Metric::unit`].
    Limit(Metric, f64),
}

/// A metric of a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Metric {
    /// A latency, ms.
    Latency(Statistic, Operation),
    /// Throughput, MB/s (10^6 bytes per second).
    Throughput,
    /// I/Os per second.
    Iops,
}

/// I/Os that a latency covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Calls of `fsync` and `fdatasync`, from call to return.
    Fsync,
    /// All I/Os.
    All,
}

/// Bound of a metric, in [`Metric::unit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// The metric must not be above the value.
    AtMost(f64),
    /// The metric must not be below the value.
    AtLeast(f64),
}

impl Bound {
    /// Returns whether a value meets the bound.
    #[must_use]
    pub fn is_met_by(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }

    /// Returns the value of the bound.
    #[must_use]
    pub fn value(self) -> f64 {
        match self {
            Self::AtMost(value) | Self::AtLeast(value) => value,
        }
    }
}

impl Metric {
    /// Returns the unit of values of the metric.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::Latency(..) => "ms",
            Self::Throughput => "MB/s",
            Self::Iops => "IOPS",
        }
    }
}

/// Error in the text of a goal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("goal = {text:?}: {problem}")]
pub struct GoalError {
    text: String,
    problem: String,
}

/// Units of times and rates: name, metric of a rate, and size in the unit of the metric.
const TIMES_MS: [(&str, f64); 4] = [("ns", 1e-6), ("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
const RATES: [(&str, Metric, f64); 8] = [
    ("kB/s", Metric::Throughput, 1e-3),
    ("MB/s", Metric::Throughput, 1.0),
    ("GB/s", Metric::Throughput, 1e3),
    ("KiB/s", Metric::Throughput, 1024e-6),
    ("MiB/s", Metric::Throughput, 1.048_576),
    ("GiB/s", Metric::Throughput, 1_073.741_824),
    ("IOPS", Metric::Iops, 1.0),
    ("iops", Metric::Iops, 1.0),
];

impl FromStr for Goal {
    type Err = GoalError;

    fn from_str(text: &str) -> Result<Self, GoalError> {
        let error = |problem: String| GoalError { text: text.to_owned(), problem };
        let trimmed = text.trim();
        let (word, rest) = trimmed.split_once(char::is_whitespace).unwrap_or((trimmed, ""));
        match word {
            "share" => {
                let share = rest.trim().parse::<f64>().ok().filter(|share| share.is_finite() && *share > 0.0);
                return share
                    .map(Self::Share)
                    .ok_or_else(|| error("expected a number above 0 after `share`".to_owned()));
            }
            "before" if rest.trim().is_empty() => {
                return Err(error("expected the name of another unit after `before`".to_owned()));
            }
            "before" => return Ok(Self::Before(rest.trim().to_owned())),
            "reservation" => return rate(rest).map(|(metric, value)| Self::Reservation(metric, value)).map_err(error),
            "limit" => return rate(rest).map(|(metric, value)| Self::Limit(metric, value)).map_err(error),
            _ => {}
        }
        let Some(at) = trimmed.find(['<', '>']) else {
            return Err(error(
                "expected a metric with a bound, such as p99(read) < 5 ms, or a goal that begins with `share`, \
                 `before`, `reservation` or `limit`"
                    .to_owned(),
            ));
        };
        let metric = metric(trimmed[..at].trim()).map_err(error)?;
        let least = trimmed[at..].starts_with('>');
        let value = trimmed[at + 1..].trim_start_matches('=').trim();
        let value = match metric {
            Metric::Latency(..) => time_ms(value).map_err(error)?,
            Metric::Iops if value.ends_with(|c: char| c.is_ascii_digit()) => {
                rate(&format!("{value} IOPS")).map_err(error)?.1
            }
            _ => match rate(value).map_err(error)? {
                (unit_metric, value) if unit_metric == metric => value,
                _ => return Err(error(format!("the metric cannot have this unit; use {}", metric.unit()))),
            },
        };
        if matches!(metric, Metric::Latency(..)) && least {
            return Err(error("a latency needs an upper bound, such as < 5 ms".to_owned()));
        }
        Ok(Self::Bound(metric, if least { Bound::AtLeast(value) } else { Bound::AtMost(value) }))
    }
}

/// Parses a metric without its bound.
fn metric(text: &str) -> Result<Metric, String> {
    match text {
        "throughput" => return Ok(Metric::Throughput),
        "iops" => return Ok(Metric::Iops),
        _ => {}
    }
    let unknown = || {
        format!(
            "there is no metric {text}; available: throughput, iops, and latencies such as p99(read), \
             mean(write), worst(fsync) and p50(all)"
        )
    };
    let (statistic, operation) = text.strip_suffix(')').and_then(|rest| rest.split_once('(')).ok_or_else(unknown)?;
    let statistic = match statistic.trim() {
        "mean" => Statistic::Mean,
        "worst" => Statistic::Worst,
        name => {
            let percent = name.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
            let percent = percent.filter(|percent| *percent > 0.0 && *percent < 100.0).ok_or_else(unknown)?;
            Statistic::Quantile(percent / 100.0)
        }
    };
    let operation = match operation.trim() {
        "read" | "reads" => Operation::Read,
        "write" | "writes" => Operation::Write,
        "fsync" | "fdatasync" => Operation::Fsync,
        "all" => Operation::All,
        _ => return Err(unknown()),
    };
    Ok(Metric::Latency(statistic, operation))
}

/// Splits a number from its unit.
fn quantity(text: &str) -> Result<(f64, &str), String> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    let number = text[..end].replace('_', "").parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
    number
        .map(|number| (number, text[end..].trim()))
        .ok_or_else(|| format!("{text:?} is not a number above 0 with a unit"))
}

fn time_ms(text: &str) -> Result<f64, String> {
    let (number, unit) = quantity(text)?;
    let size = TIMES_MS.iter().find(|(name, _)| *name == unit).map(|(_, size)| number * size);
    size.ok_or_else(|| format!("{unit:?} is not a unit of time; use ns, us, ms or s"))
}

fn rate(text: &str) -> Result<(Metric, f64), String> {
    let (number, unit) = quantity(text)?;
    let known = RATES.iter().find(|(name, ..)| *name == unit);
    known
        .map(|(_, metric, size)| (*metric, number * size))
        .ok_or_else(|| format!("{unit:?} is not a unit of a rate; use IOPS, kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s"))
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency(statistic, operation) => {
                let operation = match operation {
                    Operation::Read => "read",
                    Operation::Write => "write",
                    Operation::Fsync => "fsync",
                    Operation::All => "all",
                };
                write!(f, "{statistic}({operation})")
            }
            Self::Throughput => f.write_str("throughput"),
            Self::Iops => f.write_str("iops"),
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound(metric, bound) => {
                let sign = if matches!(bound, Bound::AtMost(_)) { "<=" } else { ">=" };
                write!(f, "{metric} {sign} {} {}", bound.value(), metric.unit())
            }
            Self::Share(share) => write!(f, "share {share}"),
            Self::Before(unit) => write!(f, "before {unit}"),
            Self::Reservation(metric, value) => write!(f, "reservation {value} {}", metric.unit()),
            Self::Limit(metric, value) => write!(f, "limit {value} {}", metric.unit()),
        }
    }
}

impl TryFrom<String> for Goal {
    type Error = GoalError;

    fn try_from(text: String) -> Result<Self, GoalError> {
        text.parse()
    }
}

impl From<Goal> for String {
    fn from(goal: Goal) -> Self {
        goal.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_goal_equals_the_parsed_text() {
        for text in [
            "p99(read) <= 5 ms",
            "p99.9(fsync) <= 0.5 ms",
            "mean(write) <= 2 ms",
            "worst(all) <= 1000 ms",
            "throughput >= 50 MB/s",
            "iops <= 500 IOPS",
            "share 2",
            "before backup",
            "reservation 500 IOPS",
            "limit 20 MB/s",
        ] {
            assert_eq!(text.parse::<Goal>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn units_are_converted_to_those_of_the_metric() {
        let ms = |text: &str| text.parse::<Goal>();
        let latency = Metric::Latency(Statistic::Quantile(0.99), Operation::Read);
        assert_eq!(ms("p99(read) < 5000us"), Ok(Goal::Bound(latency, Bound::AtMost(5.0))));
        assert_eq!(ms("throughput >= 1 GiB/s"), Ok(Goal::Bound(Metric::Throughput, Bound::AtLeast(1_073.741_824))));
        assert_eq!(ms("iops >= 2_000"), Ok(Goal::Bound(Metric::Iops, Bound::AtLeast(2000.0))));
    }

    #[test]
    fn errors_of_goals_state_the_problem() {
        for (text, expected) in [
            ("fast", "expected a metric with a bound"),
            ("p99(reed) < 5 ms", "there is no metric p99(reed)"),
            ("p100(read) < 5 ms", "there is no metric"),
            ("p99(read) < 5", "is not a unit of time"),
            ("p99(read) > 5 ms", "needs an upper bound"),
            ("throughput >= 50 IOPS", "use MB/s"),
            ("share 0", "above 0"),
            ("share", "above 0"),
            ("before", "the name of another unit"),
            ("limit 0 IOPS", "not a number above 0"),
            ("limit 5 apples", "not a unit of a rate"),
        ] {
            let error = text.parse::<Goal>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn bound_includes_its_value() {
        assert!(Bound::AtMost(5.0).is_met_by(5.0) && !Bound::AtMost(5.0).is_met_by(5.1));
        assert!(Bound::AtLeast(5.0).is_met_by(5.0) && !Bound::AtLeast(5.0).is_met_by(4.9));
    }
}
