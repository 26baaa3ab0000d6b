//! Lines of the anticipatory elevator: each change of its state.

use iosched::{Anticipation, AnticipatoryEvent, Decision};
use iosched_workload::Scenario;

use super::{Family, append, common_decision};

pub(super) struct Anticipatory;

impl Family for Anticipatory {
    fn decision(&mut self, line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
        let Decision::Anticipatory(event) = *decision else {
            return common_decision(line, scenario, decision);
        };
        match event {
            AnticipatoryEvent::Anticipation(anticipation) => {
                let value = match anticipation {
                    Anticipation::Off => "off",
                    Anticipation::WaitRequest => "wait_req",
                    Anticipation::WaitNext => "wait_next",
                    Anticipation::Finished => "finished",
                };
                append(line, format_args!("\"antic\",\"v\":\"{value}\""))
            }
            AnticipatoryEvent::Batch { sync, changing, new } => {
                let direction = if sync { "sync" } else { "async" };
                let (changed, new) = (u8::from(changing), u8::from(new));
                append(line, format_args!("\"batch\",\"dir\":\"{direction}\",\"changed\":{changed},\"new\":{new}"))
            }
            AnticipatoryEvent::WriteQuota { requests } => append(line, format_args!("\"wcount\",\"v\":{requests}")),
            AnticipatoryEvent::ExitStatistics { probability, no_cooperator } => {
                append(line, format_args!("\"exit_stat\",\"prob\":{probability},\"no_coop\":{no_cooperator}"))
            }
            AnticipatoryEvent::NewThinkTime { jiffies } => append(line, format_args!("\"new_ttime\",\"v\":{jiffies}")),
        }
    }
}
