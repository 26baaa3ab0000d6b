//! Events in the format of the recordings.

use iosched::controllers::{Admission, IoCostEvent, WeightReason};
use iosched::{CgroupId, Flags, Op, Time};

pub(super) use crate::controlled::line::Line;

/// Returns the letters of a bio, which show its operation and whether it is metadata or swap.
pub(super) fn letters(op: Op, flags: Flags) -> String {
    let marks = [(Flags::PRIO, 'm'), (Flags::SWAP, 's')].into_iter().filter(|&(flag, _)| flags.contains(flag));
    std::iter::once(op.letter()).chain(marks.map(|(_, mark)| mark)).collect()
}

/// Returns a list of numbers as JSON.
pub(super) fn list<const N: usize>(numbers: [u64; N]) -> String {
    format!("[{}]", numbers.map(|number| number.to_string()).join(","))
}

/// The lines of a run.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) written: Vec<String>,
    /// Level of brevity, 0 to 2. Higher levels leave out more events.
    brief: u8,
    /// Names of groups, by number.
    names: Vec<String>,
    /// The request that a bio most recently joined.
    pub(super) joined: Joined,
}

/// A request that a bio joins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Joined {
    /// Name of the request.
    pub(super) into: u64,
    /// Side of the request at which the bio joined.
    pub(super) side: &'static str,
}

impl Lines {
    pub(super) fn new(brief: u8) -> Self {
        Self { brief, names: vec!["/".to_owned()], ..Self::default() }
    }

    /// Adds the name of a new group.
    pub(super) fn name(&mut self, name: &str) {
        self.names.push(name.to_owned());
    }

    /// Returns a group's name.
    pub(super) fn name_of(&self, group: CgroupId) -> &str {
        &self.names[group.index()]
    }

    /// Writes a line, unless the level of brevity leaves out its event.
    pub(super) fn write(&mut self, line: Line) {
        let left_out = match line.event() {
            "submit" | "admit" | "wait" | "complete" | "arm" | "timer" => self.brief > 0,
            "dispatch" => self.brief > 1,
            _ => false,
        };
        if !left_out {
            self.written.push(line.end());
        }
    }

    /// Writes a decision of the controller.
    pub(super) fn decision(&mut self, now: Time, event: &IoCostEvent) {
        self.write(self.line_of(since_start(now), event));
    }

    fn line_of(&self, t_ns: u64, event: &IoCostEvent) -> Line {
        let line = |name| Line::new(t_ns, name);
        let line_of = |name, group| line(name).text("cg", self.name_of(group));
        match *event {
            IoCostEvent::Activate { group, weight } => line_of("activate", group).number("w", weight),
            IoCostEvent::Idle { group, budget } => line_of("idle", group).number("budget", budget),
            IoCostEvent::Weight { group, why, from, to } => {
                let line = |why| line_of("cw", group).text("why", why).number("from", from).number("to", to);
                match why {
                    WeightReason::Adjust { share } => line("adjust").number("cs", share),
                    WeightReason::Short => line("short"),
                    WeightReason::Transfer { after } => line("transfer").number("after", after),
                }
            }
            IoCostEvent::Arm { group, soft, hard } => {
                line_of("arm", group).number("soft", since_start(soft)).number("hard", since_start(hard))
            }
            IoCostEvent::Timer { group } => line_of("timer", group),
            IoCostEvent::Delay { group, ns } => line_of("delay", group).number("ns", ns),
            IoCostEvent::Admit { cookie, how, absolute, cost } => {
                let how = match how {
                    Admission::Now => "now",
                    Admission::Woken => "woken",
                    Admission::Debt => "debt",
                    Admission::Free => "free",
                };
                line("admit").number("id", cookie).text("how", how).number("abs", absolute).number("cost", cost)
            }
            IoCostEvent::Merge { cookie, how, absolute, cost } => {
                let how = match how {
                    Admission::Now | Admission::Woken => "cost",
                    Admission::Debt => "debt",
                    Admission::Free => "free",
                };
                let Joined { into, side } = self.joined;
                let line = line("merge").number("id", cookie).number("into", into).text("type", side);
                line.text("how", how).number("abs", absolute).number("cost", cost)
            }
            IoCostEvent::Tick { period } => line("tick").number("n", period),
            IoCostEvent::Rate { from, to, busy, missed_ppm, waited_percent, lagging, short } => line("vrate")
                .number("from", from)
                .number("to", to)
                .number("busy", busy)
                .number("miss", list(missed_ppm.map(u64::from)))
                .number("wait", waited_percent)
                .number("lag", lagging)
                .number("short", short),
            IoCostEvent::Forgive { group, used_percent, debt: [debt0, debt], delay_us: [delay0, delay] } => {
                let line = line_of("forgive", group).number("pct", used_percent).number("debt0", debt0);
                line.number("debt", debt).number("delay0", delay0).number("delay", delay)
            }
            IoCostEvent::Period { runs, base, rate, error, busy, period_us } => line("period")
                .number("run", u8::from(runs))
                .number("base", base)
                .number("rate", rate)
                .number("err", error)
                .number("busy", busy)
                .number("us", period_us),
            IoCostEvent::Standing {
                group,
                full_weight,
                current_weight,
                full_share,
                current_share,
                budget,
                in_flight,
                debt,
                delay_us,
                used_us,
                waiting,
            } => line_of("grp", group)
                .number("fw", full_weight)
                .number("cw", current_weight)
                .number("fs", full_share)
                .number("cs", current_share)
                .number("budget", budget)
                .number("infl", in_flight)
                .number("debt", debt)
                .number("delay", delay_us)
                .number("use", used_us)
                .number("nw", waiting),
            IoCostEvent::Free { group } => line_of("free", group),
        }
    }
}

/// Formats a time for lines: ns since the start.
fn since_start(at: Time) -> u64 {
    at.since(Time::BEGINNING)
}
