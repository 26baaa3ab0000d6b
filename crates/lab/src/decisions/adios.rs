//! Decisions of ADIOS as JSON.

use iosched::{AdiosEvent, AdiosList, Op};
use serde_json::{Value, json};

/// Returns the list that a request is in: a name, or the number of a list of the batch.
fn list(list: AdiosList) -> Value {
    match list {
        AdiosList::Normal => "unsorted".into(),
        AdiosList::Head => "head".into(),
        AdiosList::Sorted => "sorted".into(),
        AdiosList::Batch(number) => number.into(),
    }
}

fn operation(op: Op) -> &'static str {
    match op {
        Op::Read => "reads",
        Op::Write => "writes",
        Op::Discard => "discards",
        Op::WriteZeroes | Op::Flush => "others",
    }
}

pub(super) fn event(event: AdiosEvent) -> Value {
    match event {
        AdiosEvent::Queued { cookie, list: at, predicted_ns, deadline } => {
            let deadline_ns = deadline.map(iosched::Time::as_ns);
            json!({
                "ev": "queued", "id": cookie, "list": list(at), "predicted_ns": predicted_ns, "deadline_ns": deadline_ns,
            })
        }
        AdiosEvent::Stable => json!({ "ev": "latencies_known" }),
        AdiosEvent::Batched { cookie, list } => json!({ "ev": "batched", "id": cookie, "list": list }),
        AdiosEvent::Filled { page, order, before_ns, added_ns, bias } => json!({
            "ev": "batch_filled", "page": page, "order": order, "in_flight_ns": before_ns, "added_ns": added_ns,
            "bias": bias,
        }),
        AdiosEvent::Flipped { page, backward } => json!({ "ev": "batch_begun", "page": page, "backward": backward }),
        AdiosEvent::Choice { list: at, predicted_ns, in_flight, backward } => json!({
            "ev": "choice", "list": list(at), "in_flight": in_flight, "in_flight_ns": predicted_ns,
            "backward": backward,
        }),
        AdiosEvent::Sample { cookie, latency_ns, weight, large, cell } => json!({
            "ev": "sample", "id": cookie, "latency_ns": latency_ns, "weight": weight, "large": large, "cell": cell,
        }),
        AdiosEvent::Model { op, base_ns, slope_ns, small_sum, small_count, large_sum, large_bytes } => json!({
            "ev": "model", "of": operation(op), "base_ns": base_ns, "slope_ns_per_kib": slope_ns,
            "small_sum_ns": small_sum, "small_count": small_count, "large_sum_ns": large_sum, "large_bytes": large_bytes,
        }),
        AdiosEvent::TimerArm { at } => json!({ "ev": "timer_arm", "at_ns": at.as_ns() }),
        AdiosEvent::Timer { small, large } => json!({ "ev": "timer", "small_left": small, "large_left": large }),
    }
}
