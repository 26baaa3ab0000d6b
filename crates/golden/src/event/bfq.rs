//! Lines of BFQ: its queues by number, the changes of their state, and its tags.

use iosched::{BfqEvent, BfqReason, BfqState, Decision, IoClass, TunableError};
use iosched_sim::Change;
use iosched_workload::{Scenario, TunableChange};

use super::{Family, append, cgroup_name, common_change, common_decision};

/// State between lines, because the line of a dispatch has the fields of two decisions.
#[derive(Default)]
pub(super) struct Bfq {
    /// The queue from which the next request is dispatched.
    giving: u32,
}

fn reason(reason: BfqReason) -> u8 {
    match reason {
        BfqReason::TooIdle => 0,
        BfqReason::Timeout => 1,
        BfqReason::Exhausted => 2,
        BfqReason::NoMoreRequests => 3,
        BfqReason::Preempted => 4,
    }
}

fn class(class: IoClass) -> i64 {
    match class {
        IoClass::RealTime => 1,
        IoClass::None | IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    }
}

/// Returns the names and values of a queue's state, as in a recording.
fn fields(state: &BfqState) -> [(&'static str, i64); 10] {
    [
        ("wr", state.raise.into()),
        ("weight", state.weight.into()),
        ("inject", state.inject_limit.into()),
        ("max_budget", state.max_budget),
        ("short_ttime", state.short_think_time.into()),
        ("io_bound", state.io_bound.into()),
        ("burst", state.in_large_burst.into()),
        ("seeky", state.seeky.into()),
        ("wr_max", state.raise_jiffies),
        ("cls", class(state.class)),
    ]
}

impl Bfq {
    fn event(&mut self, line: &mut String, scenario: &Scenario, event: &BfqEvent) -> bool {
        match *event {
            BfqEvent::Created { queue, pid, sync, cgroup } => {
                append(line, format_args!("\"newq\",\"q\":{queue},\"pid\":{pid},\"sync\":{}", u8::from(sync)));
                if scenario.group_iosched {
                    append(line, format_args!(",\"cg\":\"{}\"", cgroup_name(scenario, cgroup.index())));
                }
                true
            }
            BfqEvent::Freed { queue } => append(line, format_args!("\"freeq\",\"q\":{queue}")),
            BfqEvent::Active { queue, budget, start, finish, vtime } => {
                let times = format!("\"start\":{start},\"finish\":{finish},\"vtime\":{vtime}");
                append(line, format_args!("\"active\",\"q\":{queue},\"budget\":{budget},{times}"))
            }
            BfqEvent::Expire { queue, reason: why, slow } => {
                let (why, slow) = (reason(why), u8::from(slow));
                append(line, format_args!("\"expire\",\"q\":{queue},\"reason\":{why},\"slow\":{slow}"))
            }
            BfqEvent::Give { queue } => {
                self.giving = queue;
                false
            }
            BfqEvent::Merge { queue, into } => append(line, format_args!("\"qmerge\",\"q\":{queue},\"into\":{into}")),
            BfqEvent::Split { queue } => append(line, format_args!("\"split\",\"q\":{queue}")),
            BfqEvent::WakerTried { queue, waker } => {
                append(line, format_args!("\"waker_try\",\"q\":{queue},\"waker\":{waker}"))
            }
            BfqEvent::Waker { queue, waker } => append(line, format_args!("\"waker\",\"q\":{queue},\"waker\":{waker}")),
            BfqEvent::State { queue, before, state } => {
                append(line, format_args!("\"state\",\"q\":{queue}"));
                let before = before.map(|before| fields(&before));
                for (number, (name, value)) in fields(&state).into_iter().enumerate() {
                    if before.is_none_or(|before| before[number].1 != value) {
                        append(line, format_args!(",\"{name}\":{value}"));
                    }
                }
                true
            }
            BfqEvent::MaxBudget { max_budget, peak_rate } => {
                append(line, format_args!("\"max_budget\",\"v\":{max_budget},\"peak_rate\":{peak_rate}"))
            }
            BfqEvent::PeakRate { peak_rate } => append(line, format_args!("\"peak_rate\",\"v\":{peak_rate}")),
        }
    }
}

impl Family for Bfq {
    fn decision(&mut self, line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
        match *decision {
            Decision::Bfq(event) => self.event(line, scenario, &event),
            Decision::Wait { cookie, pid, limit, .. } => {
                let depth = limit.unwrap_or(scenario.tags.unwrap_or(0));
                append(line, format_args!("\"tag_wait\",\"id\":{cookie},\"pid\":{pid},\"depth\":{depth}"))
            }
            Decision::Dispatch { cookie, sector, nr_sectors, .. } => {
                append(line, format_args!("\"dispatch\",\"id\":{cookie},\"q\":{}", self.giving));
                if !scenario.nomerge {
                    append(line, format_args!(",\"sector\":{sector},\"nr\":{nr_sectors}"));
                }
                true
            }
            ref other => common_decision(line, scenario, other),
        }
    }

    fn change(&mut self, line: &mut String, scenario: &Scenario, change: &Change) -> bool {
        match *change {
            Change::Weight { cgroup, weight, .. } => {
                let name = cgroup_name(scenario, cgroup + 1);
                append(line, format_args!("\"cg_weight\",\"cg\":\"{name}\",\"weight\":{weight}"))
            }
            ref other => common_change(line, scenario, other),
        }
    }

    fn tunable(&mut self, line: &mut String, change: &TunableChange, answer: &Result<String, TunableError>) -> bool {
        let refused = if answer.is_err() { ",\"refused\":1" } else { "" };
        append(line, format_args!("\"tunable\",\"name\":\"{}\",\"v\":\"{}\"{refused}", change.name, change.value))
    }
}
