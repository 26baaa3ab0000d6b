//! Decisions of CFQ 2.6.16 as JSON.

use iosched::Cfq2616Event;
use serde_json::{Value, json};

pub(super) fn event(event: Cfq2616Event) -> Value {
    match event {
        Cfq2616Event::Active { queue: Some(queue) } => {
            json!({ "ev": "active_queue", "number": queue.number, "pid": queue.pid })
        }
        Cfq2616Event::Active { queue: None } => json!({ "ev": "active_queue", "number": null }),
        Cfq2616Event::GraceArm { wait_ns } => json!({ "ev": "grace_arm", "wait_ns": wait_ns }),
        Cfq2616Event::GraceCancel => json!({ "ev": "grace_cancel" }),
        Cfq2616Event::GraceFire => json!({ "ev": "grace_fire" }),
    }
}
