//! Decisions of the controllers as JSON.

use iosched::ControlledEvent;
use iosched::controllers::{Admission, IoCostEvent, Step, Verdict, WbtEvent, WeightReason};
use serde_json::{Value, json};

pub(super) fn event(event: ControlledEvent) -> Value {
    match event {
        ControlledEvent::Wait { controller, cookie, pid, cgroup } => json!({
            "ev": "controller_wait", "controller": controller, "id": cookie, "pid": pid, "cgroup": cgroup.index(),
        }),
        ControlledEvent::GoOn { controller, cookie, waited_ns } => json!({
            "ev": "controller_go_on", "controller": controller, "id": cookie, "waited_ns": waited_ns,
        }),
        ControlledEvent::Wbt(event) => named("wbt", wbt(event)),
        ControlledEvent::IoCost(event) => named("io.cost", io_cost(event)),
    }
}

fn named(controller: &str, mut event: Value) -> Value {
    event["controller"] = controller.into();
    event
}

fn wbt(event: WbtEvent) -> Value {
    match event {
        WbtEvent::Set { target_ns, background, normal, depth } => json!({
            "ev": "set", "target_ns": target_ns, "background": background, "normal": normal, "depth": depth,
        }),
        WbtEvent::Exceeded { latency_ns } => json!({ "ev": "exceeded", "latency_ns": latency_ns }),
        WbtEvent::Window { verdict, step, inflight, unknown, reads, writes, read_min_ns } => {
            let verdict = match verdict {
                Verdict::Ok => "ok",
                Verdict::Unknown => "unknown",
                Verdict::OnlyWrites => "only_writes",
                Verdict::Exceeded => "exceeded",
            };
            json!({
                "ev": "window", "verdict": verdict, "step": step, "under_way": inflight, "unknown": unknown,
                "reads": reads, "writes": writes, "read_min_ns": read_min_ns,
            })
        }
        WbtEvent::Step { way, step, background, normal, depth } => {
            let way = match way {
                Step::Up => "up",
                Step::Down => "down",
            };
            json!({
                "ev": "step", "way": way, "step": step, "background": background, "normal": normal, "depth": depth,
            })
        }
    }
}

fn io_cost(event: IoCostEvent) -> Value {
    match event {
        IoCostEvent::Activate { group, weight } => {
            json!({ "ev": "activate", "cgroup": group.index(), "weight": weight })
        }
        IoCostEvent::Idle { group, budget } => json!({ "ev": "idle", "cgroup": group.index(), "budget": budget }),
        IoCostEvent::Weight { group, why, from, to } => {
            let why = match why {
                WeightReason::Adjust { .. } => "adjust",
                WeightReason::Short => "short",
                WeightReason::Transfer { .. } => "transfer",
            };
            json!({ "ev": "weight", "cgroup": group.index(), "why": why, "from": from, "to": to })
        }
        IoCostEvent::Delay { group, ns } => json!({ "ev": "delay", "cgroup": group.index(), "ns": ns }),
        IoCostEvent::Rate { from, to, busy, missed_ppm: [reads, writes], waited_percent, lagging, short } => json!({
            "ev": "rate", "from": from, "to": to, "busy": busy, "reads_missed_ppm": reads,
            "writes_missed_ppm": writes, "waited_percent": waited_percent, "lagging": lagging, "short": short,
        }),
        IoCostEvent::Forgive { group, used_percent, debt: [before, after], .. } => json!({
            "ev": "forgive", "cgroup": group.index(), "used_percent": used_percent, "debt_before": before,
            "debt_after": after,
        }),
        IoCostEvent::Period { runs, rate, busy, period_us, .. } => {
            json!({ "ev": "period", "runs": runs, "rate": rate, "busy": busy, "period_us": period_us })
        }
        IoCostEvent::Arm { group, soft, hard } => json!({
            "ev": "timer_arm", "cgroup": group.index(), "soft_ns": soft.as_ns(), "hard_ns": hard.as_ns(),
        }),
        IoCostEvent::Timer { group } => json!({ "ev": "timer", "cgroup": group.index() }),
        IoCostEvent::Admit { cookie, how, absolute, cost } => json!({
            "ev": "admit", "id": cookie, "how": admission(how), "absolute": absolute, "cost": cost,
        }),
        IoCostEvent::Merge { cookie, how, absolute, cost } => json!({
            "ev": "charge_merged", "id": cookie, "how": admission(how), "absolute": absolute, "cost": cost,
        }),
        IoCostEvent::Tick { period } => json!({ "ev": "tick", "period": period }),
        IoCostEvent::Standing {
            group, full_share, current_share, budget, in_flight, debt, used_us, waiting, ..
        } => {
            json!({
                "ev": "standing", "cgroup": group.index(), "full_share": full_share, "current_share": current_share,
                "budget": budget, "in_flight": in_flight, "debt": debt, "used_us": used_us, "waiting": waiting,
            })
        }
        IoCostEvent::Free { group } => json!({ "ev": "free", "cgroup": group.index() }),
    }
}

fn admission(how: Admission) -> &'static str {
    match how {
        Admission::Now => "now",
        Admission::Woken => "woken",
        Admission::Debt => "debt",
        Admission::Free => "free",
    }
}
