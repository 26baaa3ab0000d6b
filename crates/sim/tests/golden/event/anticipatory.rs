//! Lines of the anticipatory elevator: its state, where it changed.

use std::fmt::Write as _;

use iosched::{Anticipation, AnticipatoryEvent};

pub(super) fn fields(text: &mut String, event: AnticipatoryEvent) -> std::fmt::Result {
    match event {
        AnticipatoryEvent::Anticipation(anticipation) => {
            let value = match anticipation {
                Anticipation::Off => "off",
                Anticipation::WaitRequest => "wait_req",
                Anticipation::WaitNext => "wait_next",
                Anticipation::Finished => "finished",
            };
            write!(text, "\"antic\",\"v\":\"{value}\"")
        }
        AnticipatoryEvent::Batch { sync, changing, new } => {
            let (direction, changed, new) = (if sync { "sync" } else { "async" }, u8::from(changing), u8::from(new));
            write!(text, "\"batch\",\"dir\":\"{direction}\",\"changed\":{changed},\"new\":{new}")
        }
        AnticipatoryEvent::WriteQuota { requests } => write!(text, "\"wcount\",\"v\":{requests}"),
        AnticipatoryEvent::ExitStatistics { probability, no_cooperator } => {
            write!(text, "\"exit_stat\",\"prob\":{probability},\"no_coop\":{no_cooperator}")
        }
        AnticipatoryEvent::NewThinkTime { jiffies } => write!(text, "\"new_ttime\",\"v\":{jiffies}"),
    }
}
