//! Recordings that leave events out.

use iosched::Decision;
use iosched_workload::{Brief, Scenario};

use super::Event;

/// Number of dispatches between two sums.
const SUM_DISPATCHES: u64 = 500;

/// FNV-1a hash of the times and requests of all dispatches so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sum {
    state: u64,
    dispatches: u64,
}

impl Default for Sum {
    fn default() -> Self {
        Self { state: 0xcbf2_9ce4_8422_2325, dispatches: 0 }
    }
}

impl Sum {
    /// Adds a dispatch. After every [`SUM_DISPATCHES`] dispatches, returns their number and the
    /// sum.
    pub(crate) fn add(&mut self, now_ns: u64, id: u64) -> Option<(u64, u64)> {
        for byte in format!("{now_ns} {id}\n").bytes() {
            self.state = (self.state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        self.dispatches += 1;
        self.dispatches.is_multiple_of(SUM_DISPATCHES).then_some((self.dispatches, self.state))
    }
}

/// Selects the lines of a recording.
pub(super) struct Lines {
    brief: Brief,
    sum: Sum,
    /// Names of the events that are always included.
    always: &'static [&'static str],
}

impl Lines {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let always: &[&str] = match scenario.sched.as_str() {
            "adios" => &["model", "timer", "stable", "tunable", "show", "setprio", "exit"],
            _ => &["lat", "depth", "tunable", "setprio", "exit"],
        };
        Self { brief: scenario.brief, sum: Sum::default(), always }
    }

    /// Adds the line of an event, its short form, or the sum after a certain number of dispatches.
    pub(super) fn add(&mut self, lines: &mut Vec<String>, now_ns: u64, event: &Event, line: String) {
        const MERGES: [&str; 2] = ["merge", "rq_merge"];
        if self.brief == Brief::No {
            lines.push(line);
            return;
        }
        let name = line.split('"').nth(5).unwrap_or_default();
        match event {
            Event::Decision(Decision::Dispatch { cookie, .. }) if self.brief == Brief::Dispatches => {
                lines.push(format!("{{\"t\":{now_ns},\"ev\":\"dispatch\",\"id\":{cookie}}}"));
            }
            Event::Decision(Decision::Dispatch { cookie, .. }) => {
                if let Some((n, sum)) = self.sum.add(now_ns, *cookie) {
                    lines.push(format!("{{\"t\":{now_ns},\"ev\":\"sum\",\"n\":{n},\"fnv\":\"{sum:016x}\"}}"));
                }
            }
            _ if self.always.contains(&name) || (self.brief == Brief::Dispatches && MERGES.contains(&name)) => {
                lines.push(line);
            }
            _ => {}
        }
    }
}
