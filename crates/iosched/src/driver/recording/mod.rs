//! Recorded calls of a driver, in order. Another driver that gets the same calls makes the same
//! decisions.
//!
//! A host starts to [record](super::Driver::record) when it creates its driver, and regularly takes
//! the [`Record`]s. They contain everything that determines the queue's decisions: its
//! configuration, submissions, completions, timers and reruns, every change, and the start of each
//! turn. The steps of a turn are not recorded, because they follow from these records. In a file,
//! each record is a line of text ([`Record`]'s `Display` and [`Record::parse`]).

mod text;

pub use text::RecordError;

use std::fmt;

use super::Rerun;
use crate::context::{Cgroup, CgroupId, ContextId, IoPriority};
use crate::decision::Decision;
use crate::issued::Issued;
use crate::queue::{IoError, QueueConfig};
use crate::request::Bio;
use crate::time::Time;

/// Recorded call of a driver, or decision. `D` is the type of decisions: [`Decision`], or its
/// [text](DecisionText) for records that were read.
#[derive(Clone, PartialEq, Debug)]
pub struct Record<D = Decision> {
    /// Time of the call. A call that does not depend on time has the time of the previous record.
    pub at: Time,
    /// Call or decision.
    pub what: What<D>,
}

/// Call of a driver, or decision.
#[derive(Clone, PartialEq, Debug)]
pub enum What<D = Decision> {
    /// The queue with its elevator's defaults; always the first record.
    Queue {
        /// Configuration of the queue.
        config: QueueConfig,
        /// First elevator of the queue.
        elevator: String,
        /// Rule for runs of the queue after a delay.
        rerun: Rerun,
    },
    /// The number of requests that the device takes at the same time changes.
    Depth(u32),
    /// The device has finished a request, given by its [index](crate::RequestId::index).
    Complete {
        /// Index of the request.
        request: u32,
        /// Result from the device.
        result: Result<(), IoError>,
    },
    /// The device returns a request unserved.
    Requeue(u32),
    /// The timer is due.
    Timer,
    /// Another run of the queue is due.
    Rerun,
    /// A bio is submitted.
    Submit(Bio, Issued),
    /// A process opens a plug.
    Plug(ContextId),
    /// The plug of a process ends.
    Unplug(ContextId),
    /// A woken process has nothing to submit.
    Decline(ContextId),
    /// A process begins. It gets the next id of the queue.
    Context {
        /// Process id.
        pid: u32,
        /// I/O priority of the process.
        ioprio: IoPriority,
        /// Cgroup of the process.
        cgroup: CgroupId,
    },
    /// The priority of a process changes.
    IoPriority(ContextId, IoPriority),
    /// A process exits.
    Exit(ContextId),
    /// A process gives its turn to another process.
    Yield {
        /// Process that waits.
        from: ContextId,
        /// Process whose I/O the first process waits for.
        to: ContextId,
    },
    /// A process sleeps because it has dirtied much memory.
    DirtierSleeps(ContextId),
    /// A cgroup is created. It gets the next id of the queue, unless its weights are refused.
    Cgroup(Cgroup),
    /// The weights of a cgroup change, unless they are refused.
    Weights {
        /// The cgroup.
        cgroup: CgroupId,
        /// Weight among its siblings.
        weight: Option<u32>,
        /// Weight of its own processes.
        leaf_weight: Option<u32>,
    },
    /// A process moves to another cgroup.
    Move(ContextId, CgroupId),
    /// A cgroup is removed.
    Remove(CgroupId),
    /// A controller's file of a cgroup is written; the file may refuse the value.
    CgroupAttribute {
        /// The cgroup.
        cgroup: CgroupId,
        /// Name of the file.
        name: String,
        /// Written text.
        value: String,
    },
    /// An attribute of the queue is written; the attribute may refuse the value.
    Attribute {
        /// Name of the attribute.
        name: String,
        /// Written value.
        value: String,
    },
    /// A tunable of the elevator is written; the tunable may refuse the value.
    Tunable {
        /// Name of the tunable.
        name: String,
        /// Written value.
        value: String,
    },
    /// The queue switches to another elevator.
    Switch(String),
    /// A turn begins, or continues after a woken process has submitted.
    Turn,
    /// Decision, [rebased](Decision::rebased) to [`Time::BEGINNING`]. It has no effect on a driver.
    Decision(D),
}

/// Decision as text in a recording.
#[derive(Clone, PartialEq, Eq)]
pub struct DecisionText(pub Box<str>);

impl fmt::Debug for DecisionText {
    /// Formats the text as `Decision` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for DecisionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Decision> for DecisionText {
    fn from(decision: Decision) -> Self {
        Self(format!("{decision:?}").into())
    }
}

impl PartialEq<Decision> for DecisionText {
    fn eq(&self, decision: &Decision) -> bool {
        *self.0 == *format!("{decision:?}")
    }
}

/// Records since the host last took them.
#[derive(Default)]
pub(super) struct Recording {
    records: Vec<Record>,
    at: Time,
}

impl Recording {
    pub(super) fn note(&mut self, at: Option<Time>, what: What) {
        self.at = at.unwrap_or(self.at);
        self.records.push(Record { at: self.at, what });
    }

    pub(super) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }
}
