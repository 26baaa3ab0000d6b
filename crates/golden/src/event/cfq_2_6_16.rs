//! Lines of CFQ 2.6.16: the active queue at the end of a step, and the wait of the idle class.

use iosched::{Cfq2616Event, Decision};
use iosched_workload::Scenario;

use super::{Family, append, common_decision};

pub(super) struct Cfq2616;

impl Family for Cfq2616 {
    fn decision(&mut self, line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
        let event = match *decision {
            Decision::Cfq2616(event) => event,
            // The recordings only contain the consequences of these decisions.
            Decision::Active { .. } | Decision::Expire { .. } | Decision::Preempt { .. } | Decision::Slice { .. } => {
                return false;
            }
            ref other => return common_decision(line, scenario, other),
        };
        match event {
            Cfq2616Event::Active { queue } => {
                let number = queue.map_or(-1, |queue| i64::from(queue.number));
                let key = queue.map_or(-1, |queue| queue.pid.map_or(0, i64::from));
                append(line, format_args!("\"q\",\"active\":{number},\"key\":{key},\"expired\":0"))
            }
            Cfq2616Event::GraceArm { wait_ns } => append(line, format_args!("\"class_arm\",\"ns\":{wait_ns}")),
            Cfq2616Event::GraceCancel => append(line, format_args!("\"class_cancel\"")),
            Cfq2616Event::GraceFire => append(line, format_args!("\"class_fire\"")),
        }
    }
}
