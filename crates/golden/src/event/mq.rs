//! Lines of mq-deadline and kyber. When the device takes a request, the line of the dispatch has
//! the elevator's choice. If the elevator gives no request, the choice has a separate line.

use std::fmt::Write as _;

use iosched::{Decision, KyberEvent, LatencyKind, MqDeadlineChoice};
use iosched_workload::Scenario;

use super::{Family, append, common_decision};

#[derive(Default)]
pub(super) struct MultiQueue {
    /// Fields for the next request that is dispatched.
    choice: String,
}

impl Family for MultiQueue {
    fn decision(&mut self, line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
        match *decision {
            Decision::MqDeadline(MqDeadlineChoice { given, batch, starved, writes, under_way: [rt, be, idle] }) => {
                let direction = if writes { 'W' } else { 'R' };
                self.choice = format!(",\"b\":{batch},\"s\":{starved},\"d\":\"{direction}\",\"q\":[{rt},{be},{idle}]");
                !given && self.none(line)
            }
            Decision::Kyber(KyberEvent::Choice { domain, batch, token }) => {
                self.choice = format!(",\"dom\":{domain},\"b\":{batch}");
                if let Some(token) = token {
                    let _ = write!(self.choice, ",\"tok\":{token}");
                }
                token.is_none() && self.none(line)
            }
            Decision::Kyber(event) => kyber(line, event),
            Decision::Dispatch { .. } => {
                common_decision(line, scenario, decision);
                append(line, format_args!("{}", std::mem::take(&mut self.choice)))
            }
            _ => common_decision(line, scenario, decision),
        }
    }
}

impl MultiQueue {
    fn none(&mut self, line: &mut String) -> bool {
        append(line, format_args!("\"none\"{}", std::mem::take(&mut self.choice)))
    }
}

fn kyber(line: &mut String, event: KyberEvent) -> bool {
    match event {
        KyberEvent::Choice { .. } => false,
        KyberEvent::Throttled { domain } => append(line, format_args!("\"throttled\",\"dom\":{domain}")),
        KyberEvent::TimerArm { at } => append(line, format_args!("\"timer_arm\",\"at\":{}", at.as_ns())),
        KyberEvent::Timer => append(line, format_args!("\"timer\"")),
        KyberEvent::Latency { domain, kind, bucket, samples } => {
            let kind = match kind {
                LatencyKind::Device => "io",
                LatencyKind::Total => "total",
            };
            append(
                line,
                format_args!("\"lat\",\"dom\":{domain},\"type\":\"{kind}\",\"bucket\":{bucket},\"samples\":{samples}"),
            )
        }
        KyberEvent::Depth { domain, depth } => {
            append(line, format_args!("\"depth\",\"dom\":{domain},\"depth\":{depth}"))
        }
    }
}
