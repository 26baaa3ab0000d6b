//! Decisions of mq-deadline, kyber and mclock as JSON.

use iosched::{KyberEvent, LatencyKind, MClockEvent, MqDeadlineChoice, Work};
use serde_json::{Value, json};

const DOMAINS: [&str; 4] = ["reads", "writes", "discards", "others"];

pub(super) fn mq_deadline(choice: MqDeadlineChoice) -> Value {
    let MqDeadlineChoice { given, batch, starved, writes, under_way: [real_time, best_effort, idle] } = choice;
    json!({
        "ev": "choice", "given": given, "batch": batch, "starved": starved, "writes": writes,
        "under_way": { "realtime": real_time, "best-effort": best_effort, "idle": idle },
    })
}

pub(super) fn kyber(event: KyberEvent) -> Value {
    let name = |domain: u8| DOMAINS[usize::from(domain)];
    match event {
        KyberEvent::Choice { domain, batch, token } => {
            json!({ "ev": "choice", "given": token.is_some(), "domain": name(domain), "batch": batch, "token": token })
        }
        KyberEvent::Throttled { domain } => json!({ "ev": "throttled", "domain": name(domain) }),
        KyberEvent::TimerArm { at } => json!({ "ev": "timer_arm", "at_ns": at.as_ns() }),
        KyberEvent::Timer => json!({ "ev": "timer" }),
        KyberEvent::Latency { domain, kind, bucket, samples } => {
            let kind = match kind {
                LatencyKind::Device => "device",
                LatencyKind::Total => "total",
            };
            json!({ "ev": "latency", "domain": name(domain), "kind": kind, "quarters": bucket, "samples": samples })
        }
        KyberEvent::Depth { domain, depth } => json!({ "ev": "depth", "domain": name(domain), "depth": depth }),
    }
}

pub(super) fn mclock(event: MClockEvent) -> Value {
    match event {
        MClockEvent::Choice { cookie, cgroup, phase, work: Work { ios, bytes } } => json!({
            "ev": "choice", "id": cookie, "cgroup": cgroup.index(), "phase": phase.name(),
            "ios": ios as f64 / Work::IO as f64, "bytes": bytes,
        }),
        MClockEvent::Limited { until } => json!({ "ev": "limited", "until_ns": until.as_ns() }),
        MClockEvent::Dropped { ns } => json!({ "ev": "dropped", "ns": ns }),
    }
}
