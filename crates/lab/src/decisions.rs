//! Decisions of the first run of each setting on each device, as JSON lines.

mod adios;
mod anticipatory;
mod bfq;
mod cfq_2_6_16;
mod controlled;
mod multi_queue;

use std::io::Write;

use iosched::{Decision, IoClass, MergeSide, QueueName, Workload};
use iosched_sim::{Decisions, run};
use serde_json::{Value, json};

use crate::error::LabError;
use crate::experiment::Experiment;

/// Repeats run 0 of every setting on every device, and writes the decisions of scheduler and queue.
/// Each line has one decision: the device's name if there are several devices, the setting's label,
/// the time in ns (`t`) and the event (`ev`). The plan determines a run completely, so the repeated
/// run makes the same decisions as the recorded run.
///
/// # Errors
/// A run fails, or writing fails.
pub fn write_decisions(experiment: &Experiment, out: &mut impl Write) -> Result<(), LabError> {
    let several = experiment.profiles().len() > 1;
    for (device, profile) in experiment.profiles().enumerate() {
        let name = several.then(|| profile.name());
        for (setting, record) in experiment.settings().iter().enumerate() {
            let plan = experiment.plan(device, setting, 0);
            let seed = plan.seed;
            let mut written = Ok(());
            let watch = Decisions(|now_ns: u64, decision: &Decision| {
                if written.is_ok() {
                    written = writeln!(out, "{}", line(name, &record.label, now_ns, decision));
                }
            });
            run(&plan, watch).map_err(|source| LabError::Run {
                name: experiment.name(device, setting),
                run: 0,
                seed,
                source: Box::new(source),
            })?;
            written.map_err(|source| LabError::Io { file: "decisions".to_owned(), source })?;
        }
    }
    Ok(())
}

fn line(device: Option<&str>, label: &str, now_ns: u64, decision: &Decision) -> Value {
    let mut line = json!({ "setting": label, "t": now_ns });
    if let (Value::Object(line), Value::Object(event)) = (&mut line, event(decision)) {
        line.extend(device.map(|name| ("device".to_owned(), name.into())));
        line.extend(event);
    }
    line
}

fn queue(name: &QueueName) -> Value {
    json!({ "pid": name.pid, "sync": name.sync })
}

pub(crate) fn workload(workload: Workload) -> &'static str {
    match workload {
        Workload::Async => "async",
        Workload::SyncNoIdle => "sync_noidle",
        Workload::Sync => "sync",
    }
}

/// Returns the name of a class in the notation of `ionice`.
pub(crate) fn class_name(class: IoClass) -> &'static str {
    match class {
        IoClass::None => "none",
        IoClass::RealTime => "realtime",
        IoClass::BestEffort => "best-effort",
        IoClass::Idle => "idle",
    }
}

/// Returns a decision as JSON. `ev` is the kind of the event.
#[must_use]
pub fn decision_json(decision: &Decision) -> Value {
    event(decision)
}

fn event(decision: &Decision) -> Value {
    match *decision {
        Decision::Insert { cookie, pid, sector, nr_sectors, op, sync, .. } => json!({
            "ev": "insert", "id": cookie, "pid": pid, "sector": sector, "nr_sectors": nr_sectors,
            "op": op.letter().to_string(), "sync": sync,
        }),
        Decision::Merge { cookie, pid, sector, nr_sectors, op, sync, into, side } => json!({
            "ev": "merge", "id": cookie, "pid": pid, "sector": sector, "nr_sectors": nr_sectors,
            "op": op.letter().to_string(), "sync": sync, "into": into,
            "side": match side { MergeSide::Back => "back", MergeSide::Front => "front" },
        }),
        Decision::RequestMerge { cookie, into } => json!({ "ev": "request_merge", "id": cookie, "into": into }),
        Decision::Dispatch { cookie, sector, nr_sectors, .. } => {
            json!({ "ev": "dispatch", "id": cookie, "sector": sector, "nr_sectors": nr_sectors })
        }
        Decision::Wait { cookie, pid, sector, nr_sectors, op, sync, limit } => json!({
            "ev": "wait", "id": cookie, "pid": pid, "sector": sector, "nr_sectors": nr_sectors,
            "op": op.letter().to_string(), "sync": sync, "limit": limit,
        }),
        Decision::Requeue { cookie } => json!({ "ev": "requeue", "id": cookie }),
        Decision::Complete { cookie } => json!({ "ev": "complete", "id": cookie }),
        Decision::Kick => json!({ "ev": "kick" }),
        Decision::Exit { pid } => json!({ "ev": "exit", "pid": pid }),
        Decision::HwTag { value } => json!({ "ev": "hw_tag", "value": value }),
        Decision::IdleArm { wait_ns } => json!({ "ev": "idle_arm", "wait_ns": wait_ns }),
        Decision::IdleCancel => json!({ "ev": "idle_cancel" }),
        Decision::IdleFire => json!({ "ev": "idle_fire" }),
        Decision::Active { queue: ref name, class, workload: kind, cgroup } => json!({
            "ev": "active", "queue": queue(name), "class": class_name(class),
            "workload": workload(kind), "cgroup": cgroup.index(),
        }),
        Decision::Expire { queue: ref name, timed_out } => {
            json!({ "ev": "expire", "queue": queue(name), "timed_out": timed_out })
        }
        Decision::Preempt { queue: ref name } => json!({ "ev": "preempt", "queue": queue(name) }),
        Decision::Slice { queue: ref name, slice_ns } => {
            json!({ "ev": "slice", "queue": queue(name), "slice_ns": slice_ns })
        }
        Decision::WorkloadSlice { slice_ns } => json!({ "ev": "workload_slice", "slice_ns": slice_ns }),
        Decision::IdleWindow { queue: ref name, worth } => {
            json!({ "ev": "idle_window", "queue": queue(name), "worth": worth })
        }
        Decision::WaitBusy { queue: ref name } => json!({ "ev": "wait_busy", "queue": queue(name) }),
        Decision::CooperatorMerge { queue: ref name, into_pid } => {
            json!({ "ev": "cooperator_merge", "queue": queue(name), "into_pid": into_pid })
        }
        Decision::CooperatorSplit { queue: ref name } => json!({ "ev": "cooperator_split", "queue": queue(name) }),
        Decision::Served { cgroup, vtime } => json!({ "ev": "served", "cgroup": cgroup.index(), "vtime": vtime }),
        Decision::Yield { pid, to_pid } => json!({ "ev": "yield", "pid": pid, "to_pid": to_pid }),
        Decision::Cfq2616(decision) => cfq_2_6_16::event(decision),
        Decision::Anticipatory(decision) => anticipatory::event(decision),
        Decision::Bfq(decision) => bfq::event(decision),
        Decision::MqDeadline(decision) => multi_queue::mq_deadline(decision),
        Decision::Kyber(decision) => multi_queue::kyber(decision),
        Decision::Adios(decision) => adios::event(decision),
        Decision::MClock(decision) => multi_queue::mclock(decision),
        Decision::Controlled(decision) => controlled::event(decision),
        Decision::Noted { what, values } => {
            let mut event = json!({ "ev": what });
            for (name, value) in values.into_iter().flatten() {
                event[name] = value.into();
            }
            event
        }
        Decision::Switch { elevator } => json!({ "ev": "switch", "elevator": elevator }),
    }
}
