//! Events of a run: collected from a simulated run, and written in the format of the recordings.
//!
//! This file has the lines that the recordings of all elevators share. Each family of elevators has
//! a file for its additional or different lines.

mod adios;
mod anticipatory;
mod bfq;
mod brief;
mod cfq;
mod cfq_2_6_16;
mod mq;

use std::fmt::Write as _;

use iosched::{BfqEvent, Decision, IoClass, MergeSide, Op, TunableError};
use iosched_sim::{Change, Completed, Observer};
use iosched_workload::{Scenario, TunableChange};

pub(crate) use brief::Sum;

/// Event of a recorded run, such as a dispatch.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A decision of the queue or its elevator.
    Decision(Decision),
    /// A change of the workload.
    Change(Change),
    /// A write or read of a tunable: number of the change in the scenario, and the result.
    Tunable(usize, Result<String, TunableError>),
    /// The queue is run once more without an event.
    Rerun,
}

/// Collects all events of a run that a recording would contain.
#[derive(Debug, Default)]
pub struct Events {
    /// Events so far, with their times in ns since the start.
    pub events: Vec<(u64, Event)>,
    groups: bool,
    /// The decision whether the device queues commands. The elevator decides during a completion,
    /// but recordings have the decision at the end of the completion.
    hw_tag: Option<(u64, Event)>,
    /// Whether BFQ is dispatching a request. Recordings have changes of a queue's state only after
    /// the dispatch.
    giving: bool,
    learnt: Option<(u64, Event)>,
    /// Whether a completion is in progress. Recordings have BFQ's peak rate only at the end of a
    /// completion.
    completing: bool,
    peak_rate: Option<(u64, Event)>,
}

impl Events {
    /// Creates a collector for a run of `scenario`. Without group scheduling, leaves out charges to
    /// the only group.
    pub fn of(scenario: &Scenario) -> Self {
        Self { events: Vec::new(), groups: scenario.group_iosched, ..Self::default() }
    }
}

impl Observer for Events {
    fn wants_decisions(&self) -> bool {
        true
    }

    fn decision(&mut self, now_ns: u64, decision: &Decision) {
        match decision {
            Decision::HwTag { .. } => self.hw_tag = Some((now_ns, Event::Decision(*decision))),
            Decision::Served { .. } if !self.groups => {}
            Decision::Bfq(BfqEvent::State { .. }) if self.giving => {
                self.learnt = Some((now_ns, Event::Decision(*decision)));
            }
            Decision::Bfq(BfqEvent::PeakRate { .. }) => {
                self.peak_rate = self.completing.then_some((now_ns, Event::Decision(*decision)));
            }
            Decision::Complete { .. } => {
                self.completing = true;
                self.events.push((now_ns, Event::Decision(*decision)));
            }
            Decision::Dispatch { .. } => {
                self.giving = false;
                self.events.push((now_ns, Event::Decision(*decision)));
                self.events.extend(self.learnt.take());
            }
            Decision::Bfq(BfqEvent::Give { .. }) => {
                self.giving = true;
                self.events.push((now_ns, Event::Decision(*decision)));
            }
            _ => self.events.push((now_ns, Event::Decision(*decision))),
        }
    }

    fn completed(&mut self, _now_ns: u64, _io: &Completed) {
        self.completing = false;
        self.events.extend(self.hw_tag.take());
        self.events.extend(self.peak_rate.take());
    }

    fn change(&mut self, now_ns: u64, change: &Change) {
        self.events.push((now_ns, Event::Change(*change)));
    }

    fn tunable(&mut self, now_ns: u64, change: usize, answer: &Result<String, TunableError>) {
        self.events.push((now_ns, Event::Tunable(change, answer.clone())));
    }

    fn rerun(&mut self, now_ns: u64) {
        self.events.push((now_ns, Event::Rerun));
    }
}

/// Format of the recordings of a family of elevators. It receives the events in order, so a line
/// may contain fields of an earlier event.
trait Family {
    /// Returns the events in the order of the recordings.
    fn arranged(&mut self, events: &[(u64, Event)]) -> Vec<(u64, Event)> {
        events.to_vec()
    }

    /// Appends the event's name in quotes and its fields to the line. Returns false if recordings
    /// have no line for the event.
    fn decision(&mut self, line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
        common_decision(line, scenario, decision)
    }

    /// Appends a change of the workload, like [`decision`](Self::decision).
    fn change(&mut self, line: &mut String, scenario: &Scenario, change: &Change) -> bool {
        common_change(line, scenario, change)
    }

    /// Appends the write or read of a tunable, like [`decision`](Self::decision).
    fn tunable(&mut self, line: &mut String, change: &TunableChange, answer: &Result<String, TunableError>) -> bool {
        // The recordings of these families have no refused write, so the line of a refused write
        // differs.
        let refused = if answer.is_err() { ",\"refused\":1" } else { "" };
        append(line, format_args!("\"tunable\",\"name\":\"{}\",\"value\":{}{refused}", change.name, change.value))
    }
}

/// Returns the family of an elevator.
fn family(elevator: &str) -> Box<dyn Family> {
    match elevator {
        "bfq" => Box::new(bfq::Bfq::default()),
        "anticipatory" => Box::new(anticipatory::Anticipatory),
        "cfq-2.6.16" => Box::new(cfq_2_6_16::Cfq2616),
        "adios" => Box::new(adios::Adios::default()),
        "mq-deadline" | "kyber" => Box::new(mq::MultiQueue::default()),
        _ => Box::new(cfq::Cfq),
    }
}

/// Returns the events as lines of a recording.
pub fn lines(scenario: &Scenario, events: &[(u64, Event)]) -> Vec<String> {
    let mut family = family(&scenario.sched);
    let mut brief = brief::Lines::of(scenario);
    let mut lines = Vec::with_capacity(events.len());
    for (now_ns, event) in &family.arranged(events) {
        let mut line = format!("{{\"t\":{now_ns},\"ev\":");
        let shown = match event {
            Event::Decision(decision) => family.decision(&mut line, scenario, decision),
            Event::Change(change) => family.change(&mut line, scenario, change),
            Event::Tunable(change, answer) => family.tunable(&mut line, &scenario.tunable_changes[*change], answer),
            Event::Rerun => append(&mut line, format_args!("\"rerun\"")),
        };
        line.push('}');
        if shown {
            brief.add(&mut lines, *now_ns, event, line);
        }
    }
    lines
}

/// Appends `text` to a line. Always returns true, because the event has a line.
fn append(line: &mut String, text: std::fmt::Arguments<'_>) -> bool {
    let _ = line.write_fmt(text);
    true
}

fn class_of_process(class: IoClass) -> u8 {
    match class {
        IoClass::None => 0,
        IoClass::RealTime => 1,
        IoClass::BestEffort => 2,
        IoClass::Idle => 3,
    }
}

fn cgroup_name(scenario: &Scenario, index: usize) -> &str {
    match index.checked_sub(1) {
        None => "root",
        Some(index) => scenario.cgroups.get(index).map_or("?", |cgroup| &cgroup.name),
    }
}

fn common_change(line: &mut String, scenario: &Scenario, change: &Change) -> bool {
    match *change {
        Change::IoPriority { task, ioprio } => {
            let (pid, class, level) = (scenario.tasks[task].pid, class_of_process(ioprio.class()), ioprio.level());
            append(line, format_args!("\"setprio\",\"pid\":{pid},\"cls\":{class},\"level\":{level}"))
        }
        Change::Weight { cgroup, weight, leaf } => {
            let (name, leaf) = (cgroup_name(scenario, cgroup + 1), u8::from(leaf));
            append(line, format_args!("\"cg_weight\",\"cg\":\"{name}\",\"weight\":{weight},\"leaf\":{leaf}"))
        }
        Change::CgroupMove { task, cgroup } => {
            let (pid, name) = (scenario.tasks[task].pid, cgroup_name(scenario, cgroup.map_or(0, |number| number + 1)));
            append(line, format_args!("\"cg_move\",\"pid\":{pid},\"cg\":\"{name}\""))
        }
        Change::CgroupRemoval { cgroup } => {
            append(line, format_args!("\"cg_offline\",\"cg\":\"{}\"", cgroup_name(scenario, cgroup + 1)))
        }
    }
}

fn common_decision(line: &mut String, scenario: &Scenario, decision: &Decision) -> bool {
    let bio = |pid: u32, sector: u64, nr_sectors: u32, op: Op, sync: bool| {
        let (rw, sync) = (op.letter(), u8::from(sync));
        format!("\"pid\":{pid},\"sector\":{sector},\"nr\":{nr_sectors},\"rw\":\"{rw}\",\"sync\":{sync}")
    };
    match *decision {
        Decision::Insert { cookie, pid, sector, nr_sectors, op, sync, tag, .. } => {
            append(line, format_args!("\"insert\",\"id\":{cookie},{}", bio(pid, sector, nr_sectors, op, sync)));
            tag.is_none_or(|tag| append(line, format_args!(",\"tag\":{tag}")))
        }
        Decision::Wait { cookie, pid, sector, nr_sectors, op, sync, .. } => {
            append(line, format_args!("\"wait\",\"id\":{cookie},{}", bio(pid, sector, nr_sectors, op, sync)))
        }
        Decision::Merge { cookie, pid, sector, nr_sectors, op, sync, into, side } => {
            let bio = bio(pid, sector, nr_sectors, op, sync);
            let side = if side == MergeSide::Back { "back" } else { "front" };
            append(line, format_args!("\"merge\",\"id\":{cookie},{bio},\"into\":{into},\"type\":\"{side}\""))
        }
        Decision::RequestMerge { cookie, into } => {
            append(line, format_args!("\"rq_merge\",\"id\":{cookie},\"into\":{into}"))
        }
        Decision::Dispatch { cookie, .. } if scenario.nomerge => {
            append(line, format_args!("\"dispatch\",\"id\":{cookie}"))
        }
        Decision::Dispatch { cookie, sector, nr_sectors, .. } => {
            append(line, format_args!("\"dispatch\",\"id\":{cookie},\"sector\":{sector},\"nr\":{nr_sectors}"))
        }
        Decision::Complete { cookie } => append(line, format_args!("\"complete\",\"id\":{cookie}")),
        Decision::Kick => append(line, format_args!("\"kick\"")),
        Decision::Exit { pid } => append(line, format_args!("\"exit\",\"pid\":{pid}")),
        Decision::HwTag { value } => append(line, format_args!("\"hw_tag\",\"v\":{value}")),
        Decision::IdleArm { wait_ns } => append(line, format_args!("\"idle_arm\",\"ns\":{wait_ns}")),
        Decision::IdleCancel => append(line, format_args!("\"idle_cancel\"")),
        Decision::IdleFire => append(line, format_args!("\"idle_fire\"")),
        ref other => append(line, format_args!("\"{other:?}\"")),
    }
}
