//! The result of checking a plan, as text and as Prometheus metrics.

use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};

use iosched_live::metrics::{Metrics, Page};
use iosched_plan::check::{CheckReport, CheckedGoal};
use iosched_plan::{Interval, Outcome};

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Met => "met",
        Outcome::Missed => "MISSED",
        Outcome::CannotTell => "cannot tell",
    }
}

fn shown(value: f64) -> String {
    match value {
        value if value.is_infinite() => "more".to_owned(),
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

fn interval(interval: Interval) -> String {
    if interval.from == interval.to {
        return shown(interval.value);
    }
    format!("{} ({} to {})", shown(interval.value), shown(interval.from), shown(interval.to))
}

/// Returns a report as text. The decision comes first.
pub fn text(report: &CheckReport) -> String {
    let mut out = String::new();
    let count = |outcome| report.goals.iter().filter(|goal| goal.outcome == outcome).count();
    let (missed, open) = (count(Outcome::Missed), count(Outcome::CannotTell));
    let device = report.device.as_deref().unwrap_or("the device");
    let decision = if report.holds() { "The plan holds" } else { "The plan does not hold" };
    let _ = writeln!(
        out,
        "{decision} on {device}: {} of {} goals met, {missed} missed, {open} cannot tell, observed for {:.0} s.",
        count(Outcome::Met),
        report.goals.len(),
        report.seconds
    );
    for deviation in &report.deviations {
        let found = match (&deviation.found, &deviation.error) {
            (Some(found), _) => format!("is {found}"),
            (None, error) => format!("is not readable: {}", error.as_deref().unwrap_or("unknown")),
        };
        let (name, planned) = (&deviation.name, &deviation.planned);
        let _ = writeln!(out, "  differs from the plan: {name} {found}, but the plan has {planned}");
    }
    for CheckedGoal { unit, wanted, observed, outcome, reason, .. } in &report.goals {
        let soft = if wanted.hard { "" } else { " (soft)" };
        let observed = observed.map_or_else(|| "-".to_owned(), interval);
        let _ = writeln!(out, "  {unit}: {}{soft}: {}, observed {observed}", wanted.goal, word(*outcome));
        if let Some(reason) = reason {
            let _ = writeln!(out, "    because {reason}");
        }
    }
    if report.lost > 0 {
        let _ = writeln!(out, "the kernel lost {} trace events, so the latencies are incomplete", report.lost);
    }
    out
}

/// The report of the last check, as Prometheus metrics.
#[derive(Debug, Default)]
pub struct CheckExporter {
    report: Mutex<Option<CheckReport>>,
}

impl CheckExporter {
    /// Replaces the exported report. There are no metrics before the first report.
    pub fn set(&self, report: CheckReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

impl Metrics for CheckExporter {
    fn write(&self, page: &mut Page<'_>) -> fmt::Result {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(report) = report.as_ref() else { return Ok(()) };
        let texts: Vec<String> = report.goals.iter().map(|goal| goal.wanted.goal.to_string()).collect();
        let goals = || report.goals.iter().zip(&texts);
        let labels = |goal: &'_ CheckedGoal| if goal.wanted.hard { "hard" } else { "soft" };
        // A goal that cannot be judged has no sample here. An alert on 0 therefore means a missed
        // goal.
        let met = goals().filter_map(|(goal, text)| {
            let value = match goal.outcome {
                Outcome::Met => 1.0,
                Outcome::Missed => 0.0,
                Outcome::CannotTell => return None,
            };
            Some((vec![("unit", goal.unit.as_str()), ("goal", text.as_str()), ("kind", labels(goal))], value))
        });
        page.gauge(("iosched_goal_met", "1 if the unit meets the goal, 0 if the unit misses the goal"), met)?;
        let values = goals().filter_map(|(goal, text)| {
            Some((vec![("unit", goal.unit.as_str()), ("goal", text.as_str())], goal.observed?.value))
        });
        page.gauge(("iosched_goal_observed", "Observed value, in the unit of the goal"), values)?;
        let help = "Number of values on the system that differ from the plan";
        page.gauge(("iosched_plan_deviations", help), [(Vec::new(), report.deviations.len() as f64)])
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Arc;

    use iosched_live::metrics::Listening;
    use iosched_plan::WantedGoal;
    use iosched_plan::check::Deviation;

    use super::*;

    fn report() -> CheckReport {
        let goal = |goal: &str, hard, outcome, reason: Option<&str>| CheckedGoal {
            unit: "db".to_owned(),
            wanted: WantedGoal { goal: goal.parse().unwrap(), hard },
            predicted: Interval { value: 3.0, from: 2.0, to: 4.0 },
            observed: (outcome != Outcome::CannotTell).then_some(Interval { value: 7.5, from: 7.0, to: 8.0 }),
            outcome,
            reason: reason.map(str::to_owned),
        };
        let deviation = Deviation {
            name: "scheduler".to_owned(),
            planned: "bfq".to_owned(),
            found: Some("none".to_owned()),
            error: None,
        };
        CheckReport {
            device: Some("/dev/sdb".to_owned()),
            seconds: 30.0,
            sampled: 1.0,
            lost: 0,
            deviations: vec![deviation],
            goals: vec![
                goal(
                    "p99(read) < 5 ms",
                    true,
                    Outcome::Missed,
                    Some("meanwhile, backup got 91 % of the device's bytes"),
                ),
                goal("iops >= 5", false, Outcome::Met, None),
                goal("p99(fsync) < 5 ms", true, Outcome::CannotTell, Some("the unit had no I/O of this kind")),
            ],
        }
    }

    #[test]
    fn plan_check_text_is_decision_then_deviations_then_goals() {
        let text = text(&report());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "The plan does not hold on /dev/sdb: 1 of 3 goals met, 1 missed, 1 cannot tell, observed for 30 s.",
                "  differs from the plan: scheduler is none, but the plan has bfq",
                "  db: p99(read) <= 5 ms: MISSED, observed 7.50 (7.00 to 8.00)",
                "    because meanwhile, backup got 91 % of the device's bytes",
                "  db: iops >= 5 IOPS (soft): met, observed 7.50 (7.00 to 8.00)",
                "  db: p99(fsync) <= 5 ms: cannot tell, observed -",
                "    because the unit had no I/O of this kind",
            ]
        );
    }

    #[test]
    fn checked_goals_are_served_as_metrics() {
        let exporter = Arc::new(CheckExporter::default());
        let at = Listening::at("127.0.0.1:0").unwrap().serve_metrics(Arc::clone(&exporter) as Arc<_>).unwrap();
        let page = || {
            let mut stream = TcpStream::connect(at).unwrap();
            write!(stream, "GET /metrics HTTP/1.0\r\n\r\n").unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            text
        };
        assert!(page().contains(" 200 OK"));
        exporter.set(report());
        let page = page();
        for line in [
            "iosched_goal_met{unit=\"db\",goal=\"p99(read) <= 5 ms\",kind=\"hard\"} 0",
            "iosched_goal_met{unit=\"db\",goal=\"iops >= 5 IOPS\",kind=\"soft\"} 1",
            "iosched_goal_observed{unit=\"db\",goal=\"iops >= 5 IOPS\"} 7.5",
            "iosched_plan_deviations 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
        assert!(!page.contains("fsync"), "{page}");
    }
}
