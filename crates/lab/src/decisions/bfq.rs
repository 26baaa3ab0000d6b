//! Decisions of BFQ as JSON.

use iosched::{BfqEvent, BfqReason, BfqState};
use serde_json::{Value, json};

use super::class_name;

fn reason(reason: BfqReason) -> &'static str {
    match reason {
        BfqReason::TooIdle => "too_idle",
        BfqReason::Timeout => "timeout",
        BfqReason::Exhausted => "exhausted",
        BfqReason::NoMoreRequests => "no_more_requests",
        BfqReason::Preempted => "preempted",
    }
}

fn state(queue: u32, state: &BfqState) -> Value {
    json!({
        "ev": "state", "queue": queue, "raise": state.raise, "weight": state.weight,
        "inject_limit": state.inject_limit, "max_budget_sectors": state.max_budget,
        "short_think_time": state.short_think_time, "io_bound": state.io_bound,
        "in_large_burst": state.in_large_burst, "seeky": state.seeky, "raise_jiffies": state.raise_jiffies,
        "class": class_name(state.class),
    })
}

pub(super) fn event(event: BfqEvent) -> Value {
    match event {
        BfqEvent::Created { queue, pid, sync, cgroup } => {
            json!({ "ev": "queue_created", "queue": queue, "pid": pid, "sync": sync, "cgroup": cgroup.index() })
        }
        BfqEvent::Freed { queue } => json!({ "ev": "queue_freed", "queue": queue }),
        BfqEvent::Active { queue, budget, start, finish, vtime } => json!({
            "ev": "active", "queue": queue, "budget_sectors": budget, "start": start, "finish": finish, "vtime": vtime,
        }),
        BfqEvent::Expire { queue, reason: why, slow } => {
            json!({ "ev": "expire", "queue": queue, "reason": reason(why), "slow": slow })
        }
        BfqEvent::Give { queue } => json!({ "ev": "give", "queue": queue }),
        BfqEvent::Merge { queue, into } => json!({ "ev": "queue_merge", "queue": queue, "into": into }),
        BfqEvent::Split { queue } => json!({ "ev": "queue_split", "queue": queue }),
        BfqEvent::WakerTried { queue, waker } => json!({ "ev": "waker_tried", "queue": queue, "waker": waker }),
        BfqEvent::Waker { queue, waker } => json!({ "ev": "waker", "queue": queue, "waker": waker }),
        BfqEvent::State { queue, state: of, .. } => state(queue, &of),
        BfqEvent::MaxBudget { max_budget, peak_rate } => {
            json!({ "ev": "max_budget", "max_budget_sectors": max_budget, "peak_rate": peak_rate })
        }
        BfqEvent::PeakRate { peak_rate } => json!({ "ev": "peak_rate", "peak_rate": peak_rate }),
    }
}
