//! Events of a recorded run: gathered from a run of ours, as the recordings write them, and as the fixtures keep them.

#[path = "event/anticipatory.rs"]
mod anticipatory;

use std::fmt::Write as _;

use iosched::{Decision, IoClass, IoPriority, MergeSide, Op, Workload};
use iosched_sim::{Change, Completed, Observer};
use iosched_workload::Scenario;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Event {
    /// Of the queue or its elevator.
    Decision(Decision),
    /// Of the workload.
    Change(Change),
}

/// Gathers all events of a run that a recording would have.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub(crate) events: Vec<(u64, Event)>,
    groups: bool,
    /// Whether the device queues commands is decided in the middle of a completion; recordings say it at its end.
    hw_tag: Option<(u64, Event)>,
}

impl Events {
    /// For a run of `scenario`: without groups nobody writes down what the one group is charged.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        Self { events: Vec::new(), groups: scenario.group_iosched, hw_tag: None }
    }
}

impl Observer for Events {
    const DECISIONS: bool = true;

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        match decision {
            Decision::HwTag { .. } => self.hw_tag = Some((now_ns, Event::Decision(*decision))),
            Decision::Served { .. } if !self.groups => {}
            _ => self.events.push((now_ns, Event::Decision(*decision))),
        }
    }

    fn completed(&mut self, _now_ns: u64, _io: &Completed) {
        self.events.extend(self.hw_tag.take());
    }

    fn change(&mut self, now_ns: u64, change: &Change) {
        self.events.push((now_ns, Event::Change(*change)));
    }
}

fn class_of_queue(class: IoClass) -> u8 {
    match class {
        IoClass::None | IoClass::BestEffort => 0,
        IoClass::RealTime => 1,
        IoClass::Idle => 2,
    }
}

fn class_of_process(class: IoClass) -> u8 {
    match class {
        IoClass::None => 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    }
}

fn kind(workload: Workload) -> u8 {
    match workload {
        Workload::Async => 0,
        Workload::SyncNoIdle => 1,
        Workload::Sync => 2,
    }
}

/// The event as a line of a recording.
pub(crate) fn line(scenario: &Scenario, now_ns: u64, event: &Event) -> String {
    let mut text = format!("{{\"t\":{now_ns},\"ev\":");
    let _ = match event {
        Event::Decision(decision) => decision_fields(&mut text, scenario, decision),
        Event::Change(change) => change_fields(&mut text, scenario, change),
    };
    text.push('}');
    text
}

fn cgroup_name(scenario: &Scenario, index: usize) -> &str {
    match index.checked_sub(1) {
        None => "root",
        Some(index) => scenario.cgroups.get(index).map_or("?", |cgroup| &cgroup.name),
    }
}

fn change_fields(text: &mut String, scenario: &Scenario, change: &Change) -> std::fmt::Result {
    match *change {
        Change::IoPriority { task, ioprio: IoPriority { class, level } } => {
            let (pid, class) = (scenario.tasks[task].pid, class_of_process(class));
            write!(text, "\"setprio\",\"pid\":{pid},\"cls\":{class},\"level\":{level}")
        }
        Change::Weight { cgroup, weight, leaf } => {
            let (name, leaf) = (cgroup_name(scenario, cgroup + 1), u8::from(leaf));
            write!(text, "\"cg_weight\",\"cg\":\"{name}\",\"weight\":{weight},\"leaf\":{leaf}")
        }
    }
}

fn decision_fields(text: &mut String, scenario: &Scenario, decision: &Decision) -> std::fmt::Result {
    let queue = |name: iosched::QueueName| format!("\"pid\":{},\"sync\":{}", name.pid, u8::from(name.sync));
    let bio = |pid: u32, sector: u64, nr_sectors: u32, op: Op, sync: bool| {
        let (rw, sync) = (op.letter(), u8::from(sync));
        format!("\"pid\":{pid},\"sector\":{sector},\"nr\":{nr_sectors},\"rw\":\"{rw}\",\"sync\":{sync}")
    };
    match *decision {
        Decision::Insert { cookie, pid, sector, nr_sectors, op, sync, .. } => {
            write!(text, "\"insert\",\"id\":{cookie},{}", bio(pid, sector, nr_sectors, op, sync))
        }
        Decision::Merge { cookie, pid, sector, nr_sectors, op, sync, into, side } => {
            let bio = bio(pid, sector, nr_sectors, op, sync);
            let side = if side == MergeSide::Back { "back" } else { "front" };
            write!(text, "\"merge\",\"id\":{cookie},{bio},\"into\":{into},\"type\":\"{side}\"")
        }
        Decision::RequestMerge { cookie, into } => write!(text, "\"rq_merge\",\"id\":{cookie},\"into\":{into}"),
        Decision::Dispatch { cookie, sector, nr_sectors, .. } => {
            write!(text, "\"dispatch\",\"id\":{cookie}")?;
            if scenario.nomerge { Ok(()) } else { write!(text, ",\"sector\":{sector},\"nr\":{nr_sectors}") }
        }
        Decision::Complete { cookie } => write!(text, "\"complete\",\"id\":{cookie}"),
        Decision::Kick => write!(text, "\"kick\""),
        Decision::Exit { pid } => write!(text, "\"exit\",\"pid\":{pid}"),
        Decision::HwTag { value } => write!(text, "\"hw_tag\",\"v\":{value}"),
        Decision::IdleArm { wait_ns } => write!(text, "\"idle_arm\",\"ns\":{wait_ns}"),
        Decision::IdleCancel => write!(text, "\"idle_cancel\""),
        Decision::IdleFire => write!(text, "\"idle_fire\""),
        Decision::Active { queue: name, .. } if scenario.sched == "cfq-2.6.30" => {
            write!(text, "\"active\",{}", queue(name))
        }
        Decision::Active { queue: name, class, workload, cgroup } => {
            let (queue, class, kind) = (queue(name), class_of_queue(class), kind(workload));
            write!(text, "\"active\",{queue},\"cls\":{class},\"type\":{kind}")?;
            if scenario.group_iosched {
                write!(text, ",\"cg\":\"{}\"", cgroup_name(scenario, cgroup.index()))?;
            }
            Ok(())
        }
        Decision::Expire { queue: name, timed_out } => {
            write!(text, "\"expire\",{},\"timed_out\":{}", queue(name), u8::from(timed_out))
        }
        Decision::Preempt { queue: name } => write!(text, "\"preempt\",{}", queue(name)),
        Decision::Slice { queue: name, slice_ns } => write!(text, "\"slice\",{},\"ns\":{slice_ns}", queue(name)),
        Decision::WorkloadSlice { slice_ns } => write!(text, "\"wl_slice\",\"ns\":{slice_ns}"),
        Decision::IdleWindow { queue: name, worth } => {
            write!(text, "\"idle_window\",{},\"v\":{}", queue(name), u8::from(worth))
        }
        Decision::WaitBusy { queue: name } => write!(text, "\"wait_busy\",{}", queue(name)),
        Decision::CooperatorMerge { queue: name, into_pid } => {
            write!(text, "\"coop_merge\",{},\"into\":{into_pid}", queue(name))
        }
        Decision::CooperatorSplit { queue: name } => write!(text, "\"coop_split\",{}", queue(name)),
        Decision::Served { cgroup, vtime } => {
            write!(text, "\"served\",\"vt\":{vtime},\"cg\":\"{}\"", cgroup_name(scenario, cgroup.index()))
        }
        Decision::Anticipatory(event) => anticipatory::fields(text, event),
        ref other => write!(text, "\"{other:?}\""),
    }
}
