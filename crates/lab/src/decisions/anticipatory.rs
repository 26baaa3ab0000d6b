//! Decisions of the anticipatory scheduler as JSON.

use iosched::{Anticipation, AnticipatoryEvent};
use serde_json::{Value, json};

pub(super) fn event(event: AnticipatoryEvent) -> Value {
    match event {
        AnticipatoryEvent::Anticipation(anticipation) => {
            let value = match anticipation {
                Anticipation::Off => "off",
                Anticipation::WaitRequest => "wait_request",
                Anticipation::WaitNext => "wait_next",
                Anticipation::Finished => "finished",
            };
            json!({ "ev": "anticipation", "value": value })
        }
        AnticipatoryEvent::Batch { sync, changing, new } => {
            json!({ "ev": "batch", "sync": sync, "changing": changing, "new": new })
        }
        AnticipatoryEvent::WriteQuota { requests } => json!({ "ev": "write_quota", "requests": requests }),
        AnticipatoryEvent::ExitStatistics { probability, no_cooperator } => json!({
            "ev": "exit_statistics", "probability_256ths": probability, "no_cooperator_256ths": no_cooperator,
        }),
        AnticipatoryEvent::NewThinkTime { jiffies } => json!({ "ev": "new_think_time", "jiffies": jiffies }),
    }
}
