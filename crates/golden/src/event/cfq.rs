//! Lines of CFQ. noop and deadline have only lines that all recordings share.

use iosched::{Decision, IoClass, Workload};
use iosched_workload::Scenario;

use super::{Family, append, cgroup_name, common_decision};

pub(super) struct Cfq;

fn class(class: IoClass) -> u8 {
    match class {
        IoClass::None | IoClass::BestEffort => 0,
        IoClass::RealTime => 1,
        IoClass::Idle => 2,
    }
}

fn kind(workload: Workload) -> u8 {
    match workload {
        Workload::Async => 0,
        Workload::SyncNoIdle => 1,
        Workload::Sync => 2,
    }
}

impl Family for Cfq {
    fn decision(&mut self, line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
        let queue = |name: iosched::QueueName| format!("\"pid\":{},\"sync\":{}", name.pid, u8::from(name.sync));
        match *decision {
            Decision::Active { queue: name, .. } if scenario.sched == "cfq-2.6.30" => {
                append(line, format_args!("\"active\",{}", queue(name)))
            }
            Decision::Active { queue: name, class: of, workload, cgroup } => {
                let (queue, class, kind) = (queue(name), class(of), kind(workload));
                append(line, format_args!("\"active\",{queue},\"cls\":{class},\"type\":{kind}"));
                if scenario.group_iosched {
                    append(line, format_args!(",\"cg\":\"{}\"", cgroup_name(scenario, cgroup.index())));
                }
                true
            }
            Decision::Expire { queue: name, timed_out } => {
                append(line, format_args!("\"expire\",{},\"timed_out\":{}", queue(name), u8::from(timed_out)))
            }
            Decision::Preempt { queue: name } => append(line, format_args!("\"preempt\",{}", queue(name))),
            Decision::Slice { queue: name, slice_ns } => {
                append(line, format_args!("\"slice\",{},\"ns\":{slice_ns}", queue(name)))
            }
            Decision::WorkloadSlice { slice_ns } => append(line, format_args!("\"wl_slice\",\"ns\":{slice_ns}")),
            Decision::IdleWindow { queue: name, worth } => {
                append(line, format_args!("\"idle_window\",{},\"v\":{}", queue(name), u8::from(worth)))
            }
            Decision::WaitBusy { queue: name } => append(line, format_args!("\"wait_busy\",{}", queue(name))),
            Decision::CooperatorMerge { queue: name, into_pid } => {
                append(line, format_args!("\"coop_merge\",{},\"into\":{into_pid}", queue(name)))
            }
            Decision::CooperatorSplit { queue: name } => append(line, format_args!("\"coop_split\",{}", queue(name))),
            Decision::Served { cgroup, vtime } => {
                let name = cgroup_name(scenario, cgroup.index());
                append(line, format_args!("\"served\",\"vt\":{vtime},\"cg\":\"{name}\""))
            }
            ref other => common_decision(line, scenario, other),
        }
    }
}
